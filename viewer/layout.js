// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lanes: what is above what. Nodes have processes (ranks), these threads and flows; a thread has rows of events, which never overlap in
 * a row, and one for what the kernel did to it. Every lane knows its place, so that only those in sight are drawn.
 */

const ROWS_MAX = 24; // of events of a kind that overlap; more share the last one
const FLOWS_SHOWN = 4;
const OPEN_UNITS = 8; // of ranks, before anybody has folded one
const H = {node: 20, proc: 24, thread: 18, flows: 18, row: 18, low: 13, kernel: 16, flow: 36, gap: 6};

const layout = {lanes: [], height: 0, laneOf: new Int32Array(0), headOf: new Int32Array(0), closed: new Map(), by: new Map(), rows: new Map()};

/* A row of events that follow each other; @ev: their numbers, in order of what @from says of them. */
function newRow(ev, from = i => trace.events.start[i])
{
	const e = trace.events, n = ev.length, start = new Float64Array(n), end = new Float64Array(n);
	let max = -Infinity;

	for (let k = 0; k < n; k++) {
		start[k] = from(ev[k]);
		max = end[k] = Math.max(max, e.end[ev[k]]);
	}
	return {ev: Uint32Array.from(ev), start, end, n};
}

/* First fit: each event into the first row that is free by then. */
function pack(list)
{
	const e = trace.events, rows = [], ends = [];

	for (const i of list) {
		let r = ends.findIndex(end => end <= e.start[i]);

		if (r < 0 && rows.length < ROWS_MAX) {
			r = rows.length;
			rows.push([]);
			ends.push(0);
		} else if (r < 0) {
			r = ROWS_MAX - 1;
		}
		rows[r].push(i);
		ends[r] = Math.max(e.end[i], r === ROWS_MAX - 1 ? ends[r] : -Infinity);
	}
	return rows.map(row => newRow(row));
}

/* Events of a thread belong together by type, and below a progress thread by channel, direction and peer as well. */
function bandKey(i)
{
	const e = trace.events, type = e.type[i];
	let at = i;

	if (!TYPES[type].mine)
		return type;
	for (let n = 0; at >= 0 && e.type[at] !== T_OP && n < UP_MAX; n++)
		at = e.parent[at];
	if (at < 0)
		at = i;
	return 32 + ((((e.chan[at] + 1) & 0xffff) * 2 + (e.flags[at] & F_SEND ? 0 : 1)) * 65536 + ((e.peer[at] + 1) & 0xffff)) * 32 + type;
}

function bandLabel(i)
{
	const e = trace.events, t = TYPES[e.type[i]];

	if (!t.mine || e.type[i] !== T_OP)
		return t.mine ? '' : t.short;
	return 'ch' + e.chan[i] + (e.flags[i] & F_SEND ? ' \u2192 ' : ' \u2190 ') + (e.peer[i] < 0 ? '?' : 'rank ' + e.peer[i]);
}

/* Where a process has several ranks of a communicator, each has its part of a thread. */
const partOf = (t, rank) => t.proc.many ? t.index + '/' + rank : t.index;

/* What is shown of each thread, or a rank's part of it: to (band to events). */
function *collect()
{
	const e = trace.events, by = new Map();

	for (let n = 0; n < trace.byStart.length; n++) {
		const i = trace.byStart[n];

		if (!(n & PART))
			yield;
		if (!matches(i) || e.type[i] === T_LIFE)
			continue;
		const part = partOf(trace.threads[e.thread[i]], e.rank[i]);
		let bands = by.get(part);

		if (!bands)
			by.set(part, bands = new Map());
		const key = bandKey(i), list = bands.get(key);

		if (list)
			list.push(i);
		else
			bands.set(key, [i]);
	}
	return by;
}

/* Rows of what is shown of a band; it is shown again with every fold. */
function rowsOf(list)
{
	if (!layout.rows.has(list))
		layout.rows.set(list, pack(list));
	return layout.rows.get(list);
}

/* What lanes are made of, for as long as neither trace nor filters change. */
function *arrange()
{
	let by, filters, place = 0;

	do {
		filters = chosen.changes;
		by = yield* collect();
	} while (filters !== chosen.changes);
	layout.by = by;
	layout.rows = new Map();
	for (const {proc, rank} of unitsOf(nodesOf(true))) {
		if (isClosed(unitKey(proc, rank), place++ >= OPEN_UNITS))
			continue;
		for (const t of proc.threads.values()) {
			for (const list of (by.get(partOf(t, rank)) || new Map()).values()) {
				rowsOf(list);
				yield;
			}
		}
	}
}

function push(lane)
{
	lane.y = layout.height;
	lane.index = layout.lanes.length;
	layout.lanes.push(lane);
	layout.height += lane.h;
}

const isClosed = (key, byDefault) => layout.closed.get(key) ?? byDefault;

/* Events of lanes that are shut are pointed at by their head. */
function eventsBelow(bands, head)
{
	for (const list of bands.values())
		for (const i of list)
			layout.headOf[i] = head;
}

function eventsOfUnit(p, rank, by, head)
{
	for (const t of p.threads.values())
		if (by.get(partOf(t, rank)))
			eventsBelow(by.get(partOf(t, rank)), head);
}

function pushBand(key, list, t, depth)
{
	const type = TYPES[trace.events.type[list[0]]];
	let label = bandLabel(list[0]);

	for (const row of rowsOf(list)) {
		for (const i of row.ev)
			layout.laneOf[i] = layout.lanes.length;
		push({kind: 'events', h: type.low ? H.low : H.row, label, depth, row, thread: t, low: !!type.low});
		label = '';
	}
}

const roleOrder = {app: 0, proxy: 1, other: 3};

function pushThread(t, rank, bands, depth)
{
	const key = 't' + partOf(t, rank), events = bands ? [...bands.values()].reduce((n, l) => n + l.length, 0) : 0;
	const closed = isClosed(key, false), name = clean(t.comm, 32), role = t.role && t.role !== 'other' ? t.role : '';

	if (!events && (!t.slices || (t.proc.many && rank !== firstRank(t.proc))))
		return;
	push({kind: 'thread', h: H.thread, key, closed, depth, thread: t, label: [role, name].filter(Boolean).join(' \u00b7 ') + ' [' + t.tid + ']'});
	const head = layout.lanes.length - 1;

	if (bands)
		eventsBelow(bands, head);
	if (!closed && bands)
		for (const k of [...bands.keys()].sort((a, b) => a - b))
			pushBand(k, bands.get(k), t, depth + 1);
	if (t.slices)
		push({kind: 'kernel', h: H.kernel, depth: depth + 1, thread: t, label: 'kernel'});
}

/* Flows of a process, or ports of a node: @what one of them is called. */
function pushFlows(all, key, what, depth)
{
	const flows = [...all].sort((a, b) => b.errors - a.errors || b.bytes - a.bytes), closed = isClosed(key, true);

	if (!flows.length)
		return;
	const shown = closed ? flows.slice(0, FLOWS_SHOWN).filter(f => f.errors + f.bytes > 0) : flows;
	const label = flows.length + ' ' + what + (flows.length === 1 ? '' : 's') + (closed && shown.length && shown.length < flows.length ? ', the ' + shown.length + ' busiest' : '');

	push({kind: 'flows', h: H.flows, key, closed, depth, label});
	for (const f of shown)
		push({kind: 'flow', h: H.flow, depth: depth + 1, flow: f, label: f.isPort ? clean(f.name, 40) : flowLabel(f)});
}

function flowLabel(f)
{
	return f.peer === null ? clean(f.name, 40) : 'ch' + f.channel + (f.isSend ? ' \u2192 ' : ' \u2190 ') + 'rank ' + f.peer;
}

/* Without a rank a process that has several is called by its name alone. */
function procLabel(p, rank = p.many ? -1 : p.rank)
{
	const name = clean(p.comm, 24);

	return (rank < 0 ? 'process' : 'rank ' + rank) + ' ' + (name ? name + ' ' : '') + '[' + p.pid + ']';
}

/* The operations of a rank in one row, over its threads: to be seen beside other ranks'. */
function summaryRow(p, rank, by)
{
	const list = [];

	for (const t of p.threads.values())
		for (const part of (by.get(partOf(t, rank)) || new Map()).values())
			if (TYPES[trace.events.type[part[0]]].op)
				for (const i of part) // a call takes some 100,000 arguments
					list.push(i);
	return newRow(list.sort((a, b) => beganAt(a) - beganAt(b)), beganAt);
}

const firstRank = p => p.ranks.size ? Math.min(...p.ranks) : p.rank;
const unitKey = (p, rank) => 'p' + p.index + (p.many ? '/' + rank : '');

/* A process, or a rank of one that has several. */
function pushUnit({proc: p, rank}, by, depth, place)
{
	const key = unitKey(p, rank), closed = isClosed(key, place >= OPEN_UNITS), threads = [...p.threads.values()];

	push({kind: 'proc', h: H.proc, key, closed, depth, proc: p, label: procLabel(p, rank), row: summaryRow(p, rank, by)});
	const head = layout.lanes.length - 1;

	eventsOfUnit(p, rank, by, head);
	if (closed)
		return;
	threads.sort((a, b) => (roleOrder[a.role] ?? 2) - (roleOrder[b.role] ?? 2) || b.events - a.events || a.tid - b.tid);
	for (const t of threads)
		pushThread(t, rank, by.get(partOf(t, rank)), depth + 1);
	if (!p.many || rank === firstRank(p))
		pushFlows(p.flows.values(), 'f' + p.index, 'flow', depth + 1);
	push({kind: 'gap', h: H.gap, depth, label: ''});
}

/* Nodes, and on each its processes' ranks in their order, those of a job behind each other; @filtered: those that the filters let through. */
function nodesOf(filtered)
{
	const nodes = new Map(), several = new Set(trace.procs.map(p => p.clock)).size > 1;

	for (const p of trace.procs) {
		if (filtered && !matchesProc(p))
			continue;
		const key = nodeKey(p);

		if (!nodes.has(key))
			nodes.set(key, {host: p.host, units: [], note: p.clockError > 0 ? ', clock within ' + span(p.clockError) : several && p.record ? ', by its real clock' : ''});
		for (const rank of p.many ? [...p.ranks].slice(0, 1024) : [p.rank])
			if (!filtered || !p.many || !chosen.rank || String(rank) === chosen.rank)
				nodes.get(key).units.push({proc: p, rank});
	}
	for (const node of nodes.values())
		node.units.sort((a, b) => (a.rank < 0) - (b.rank < 0) || a.proc.within - b.proc.within || a.rank - b.rank || a.proc.pid - b.proc.pid);
	return nodes;
}

const unitsOf = nodes => [...nodes.values()].flatMap(n => n.units);

function portsOfNodes()
{
	const of = new Map();

	for (const f of trace.ports.values()) {
		settlePort(f);
		if (!of.has(f.node))
			of.set(f.node, []);
		of.get(f.node).push(f);
	}
	return of;
}

function buildLayout()
{
	const nodes = nodesOf(true), by = layout.by, ports = portsOfNodes();
	let place = 0;

	Object.assign(layout, {lanes: [], height: 0, laneOf: new Int32Array(trace.events.n).fill(-1), headOf: new Int32Array(trace.events.n).fill(-1)});
	for (const [key, node] of nodes) {
		const closed = isClosed('n' + key, false);

		push({kind: 'node', h: H.node, key: 'n' + key, closed, depth: 0, label: (clean(node.host, 40) || 'node') + node.note});
		if (closed) {
			for (const {proc, rank} of node.units)
				eventsOfUnit(proc, rank, by, layout.lanes.length - 1);
			continue;
		}
		for (const unit of node.units)
			pushUnit(unit, by, 1, place++);
		pushFlows(ports.get(key) || [], 'r' + key, 'RDMA port', 1);
	}
	layout.order = unitsOf(nodes);
}

/* Where an event is drawn, or what it is hidden below; a lane, or null. */
function laneOfEvent(i)
{
	const at = layout.laneOf[i] >= 0 ? layout.laneOf[i] : layout.headOf[i];

	return at >= 0 ? layout.lanes[at] : null;
}

/* The first lane that is not above y. */
function laneAt(y)
{
	let lo = 0, hi = layout.lanes.length;

	while (lo < hi) {
		const mid = (lo + hi) >>> 1;

		if (layout.lanes[mid].y + layout.lanes[mid].h <= y)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
