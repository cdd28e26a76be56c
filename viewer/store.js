// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is known of the traces: processes with threads and flows, and columns of events, states and slices. Times are
 * ns since `trace.base`, on the clock of the first node; other nodes are moved there by their distance from the real clock.
 */

const F_OPEN = 1, F_SEND = 2, F_PXN = 4, F_ORPHAN = 8, F_LOSS = 16, F_SCHED = 32, F_RETRANS = 64, F_NO_DATA = 128, F_EXEC = 256, F_ALONE = 512, F_CAPTURED = 1024;

const PORTS_MAX = 16384; // of RDMA

const trace = {};

function clearTrace()
{
	Object.assign(trace, {
		base: null, t0: Infinity, t1: -Infinity, refOffset: null, records: 0, unreadable: 0, counts: new Map(), files: [],
		procs: [], threads: [], flows: [], ports: new Map(), comms: new Map(), lost: new Map(), kmsg: new Map(), shifts: new Map(), sources: [], report: null, truncated: 0,
		groupOf: new Map(), beginOf: new Map(), schedTo: new Map(), headers: [], selves: new Map(),
		events: new Table({
			start: Float64Array, end: Float64Array, stop: Float64Array, type: Uint8Array, flags: Uint16Array, proc: Uint32Array,
			thread: Uint32Array, comm: Uint32Array, rank: Int32Array, func: Uint32Array, seq: Float64Array, chan: Int32Array,
			peer: Int32Array, step: Int32Array, pHi: Uint32Array, pLo: Uint32Array, aHi: Uint32Array, aLo: Uint32Array,
			parent: Int32Array, op: Int32Array, run: Float32Array, runq: Float32Array, blocked: Float32Array, unknown: Float32Array, irq: Float32Array,
			noData: Float32Array, noRoom: Float32Array, pos: Float64Array, flow: Uint32Array, behind: Uint32Array, s0: Uint32Array, sn: Uint32Array,
		}, 4096),
		states: new Table({ts: Float64Array, name: Uint32Array, proc: Uint32Array, aHi: Uint32Array, aLo: Uint32Array, ev: Int32Array}, 8192),
		slices: 0,
	});
}

/* Its recording goes on in another file, as with each window of record --every; the report takes them for one by the same. */
const selfOf = head => JSON.stringify([head.bootId, head.pid, head.comm, head.cmdline, head.started]);

/* A process; `head` is its header, or a stand-in for one. */
function newProc(file, head)
{
	const p = {
		index: trace.procs.length, file, head, pid: head.pid, host: head.host, boot: head.bootId, clock: head.clock || head.bootId, comm: head.comm,
		shift: 0, rank: -1, within: -1 /* the communicator that this is in */, ranks: new Set(), rankIn: new Map(), many: false, threads: new Map(), flows: new Map(), flowNamed: new Map(), lost: [], signals: [], gpus: new Map(), held: [], footer: null, events: 0,
		seqCommon: true, // of its collectives, where they do not say
		open: new Map() /* records, by event */, recordings: [] /* of each: where its header is, and its last record's time */,
	};

	trace.procs.push(p);
	if (head.bootId)
		trace.selves.set(selfOf(head), p);
	return p;
}

function sameProc(head)
{
	return trace.selves.get(selfOf(head));
}

function newThread(proc, tid)
{
	const t = {index: trace.threads.length, proc, tid, comm: '', role: '', slices: null, sorted: true, events: 0, sums: null};

	trace.threads.push(t);
	proc.threads.set(tid, t);
	return t;
}

function threadOf(proc, tid)
{
	return proc.threads.get(tid) || newThread(proc, tid);
}

function newSlices()
{
	return new Table({
		t: Float64Array, d: Float64Array, state: Uint8Array, cpu: Int16Array, who: Uint32Array, whoPid: Int32Array, irqNs: Float32Array,
		run: Float64Array, runq: Float64Array, blocked: Float64Array, irq: Float64Array, pos: Float64Array,
	});
}

const newPoints = () => new Table({
	t: Float64Array, dt: Float64Array, tx: Float64Array, rx: Float64Array, rtt: Float32Array, retrans: Uint32Array,
	needless: Uint32Array, ooo: Uint32Array, pos: Float64Array,
}, 16);
const newResent = () => new Table({t: Float64Array, needless: Uint8Array}, 1);

/* @netns null: not known, of the one by that name that came last, or will come first. */
function flowOf(proc, name, netns)
{
	const key = name + ' ' + (netns ?? ''), unknown = name + ' ';
	let f = netns === null ? proc.flowNamed.get(name) : proc.flows.get(key);

	if (!f && netns !== null && (f = proc.flows.get(unknown))) {
		f.netns = netns;
		proc.flows.delete(unknown);
		proc.flows.set(key, f);
	}
	if (!f) {
		f = {
			index: trace.flows.length, proc, name, netns, tid: 0, peer: null, channel: null, isSend: null, bytes: 0, errors: 0, drops: [],
			pts: newPoints(), resent: newResent(),
		};
		proc.flows.set(key, f);
		trace.flows.push(f);
	}
	proc.flowNamed.set(name, f);
	return f;
}

const nodeKey = p => p.boot + ' ' + p.host;

/* A port of RDMA is drawn as a flow is, and is its node's. Null: too many. */
function portOf(proc, name)
{
	const node = nodeKey(proc), key = node + ' ' + name;
	let f = trace.ports.get(key);

	if (!f && trace.ports.size < PORTS_MAX) {
		f = {proc, node, name, isPort: true, bytes: 0, errors: 0, drops: [], pts: newPoints(), resent: newResent(), told: 0};
		trace.ports.set(key, f);
	}
	return f || null;
}

/* All processes of a node tell of it, each in intervals of its own and in a file of its own: of those that overlap the first counts. */
function settlePort(f)
{
	const from = f.pts;

	if (f.told === from.n)
		return;
	const order = Uint32Array.from({length: from.n}, (_, i) => i).sort((a, b) => from.t[a] - from.t[b]), to = newPoints();
	let until = -Infinity;

	Object.assign(f, {bytes: 0, errors: 0});
	for (const i of order) {
		if (from.t[i] - from.dt[i] < until - 1)
			continue;
		const k = to.add();

		for (const col of ['t', 'dt', 'tx', 'rx', 'retrans', 'pos'])
			to[col][k] = from[col][i];
		until = from.t[i];
		f.bytes += from.tx[i] + from.rx[i];
		f.errors += from.retrans[i];
	}
	f.pts = to;
	f.told = to.n;
}

function commOf(hash)
{
	let c = trace.comms.get(hash);

	if (!c) {
		c = {index: trace.comms.size, hash, name: '', nranks: 0, label: ''};
		trace.comms.set(hash, c);
	}
	return c;
}

/* ---- Ids of events ------------------------------------------------------------------------------------ */

/* Which event of a process has an id. Other profilers use ids again: then it is the last that had begun by then. */
class Ids {
	constructor()
	{
		this.seed = Math.random() * 0x7fffffff | 0; // whoever makes ids cannot make them meet
		this.resize(1 << 12);
	}

	resize(size)
	{
		this.mask = size - 1;
		this.head = new Int32Array(size).fill(-1);
		this.next = new Int32Array(trace.events.cap);
		this.n = 0;
	}

	slot(proc, hi, lo)
	{
		let h = Math.imul(lo ^ this.seed, 0x9e3779b1);

		h = Math.imul(h ^ h >>> 15 ^ hi, 0x85ebca6b);
		h = Math.imul(h ^ h >>> 13 ^ proc, 0xc2b2ae35);
		return (h ^ h >>> 16) & this.mask;
	}

	/* The event after those that are in. */
	add()
	{
		const e = trace.events, i = this.n, s = this.slot(e.proc[i], e.aHi[i], e.aLo[i]);

		this.next[i] = this.head[s];
		this.head[s] = i;
		this.n++;
	}

	/* All events that have come since. */
	*update()
	{
		const n = trace.events.n;

		if (n > this.next.length || n > this.head.length)
			this.resize(2 ** Math.ceil(Math.log2(n + 1)));
		while (this.n < n) {
			this.add();
			if (!(this.n & PART))
				yield;
		}
	}

	find(proc, hi, lo, at)
	{
		const e = trace.events;
		let best = -1;

		if (!hi && !lo)
			return -1;
		for (let i = this.head[this.slot(proc, hi, lo)], left = 4096; i >= 0 && left; i = this.next[i], left--) {
			if (e.aLo[i] !== lo || e.aHi[i] !== hi || e.proc[i] !== proc)
				continue;
			if (best < 0 || (e.start[i] <= at && (e.start[best] > at || e.start[i] > e.start[best])))
				best = i;
		}
		return best;
	}
}

/* ---- What follows from the records ------------------------------------------------------------------ */

/*
 * It takes seconds of a trace of millions, so all of it can be paused, at each `yield`. What is drawn meanwhile is of before: whole columns and
 * lists are made aside and take the place of the old ones at once, or else each of their values is as good as the one before.
 */
const PART = (1 << 13) - 1; // of a loop from one pause to the next, some ms

const UP_MAX = 16; // nothing is nested deeper; a circle of parents ends there

/* The operation that an event is of: itself, or above it. */
function operationOf(i)
{
	const e = trace.events;

	for (let n = 0; i >= 0 && n < UP_MAX; i = e.parent[i], n++)
		if (TYPES[e.type[i]].op)
			return i;
	return -1;
}

/* CollApi to its operation: what is below an Api event has no operation above it. */
function *linkEvents()
{
	const e = trace.events, ids = trace.ids;

	yield* ids.update();
	for (let i = 0; i < e.n; i++) {
		const parent = ids.find(e.proc[i], e.pHi[i], e.pLo[i], e.start[i]);

		e.parent[i] = parent === i ? -1 : parent;
		if (!(i & PART))
			yield;
	}
	for (let i = 0; i < e.n; i++) {
		e.op[i] = operationOf(i);
		if (!(i & PART))
			yield;
	}
}

/* States by event, in order of time: those of event i are trace.stateOrder[s0 .. s0 + sn). */
function *linkStates()
{
	const e = trace.events, s = trace.states, ids = trace.ids, s0 = new Uint32Array(e.cap), sn = new Uint32Array(e.cap);

	for (let i = 0; i < s.n; i++) {
		s.ev[i] = ids.find(s.proc[i], s.aHi[i], s.aLo[i], s.ts[i]);
		if (s.ev[i] >= 0)
			sn[s.ev[i]]++;
		if (!(i & PART))
			yield;
	}
	let at = 0;

	for (let i = 0; i < e.n; i++) {
		s0[i] = at;
		at += sn[i];
		sn[i] = 0;
	}
	const order = new Uint32Array(at);

	for (let i = 0; i < s.n; i++) {
		const ev = s.ev[i];

		if (!(i & PART))
			yield;
		if (ev < 0)
			continue;
		let k = s0[ev] + sn[ev]++;

		for (; k > s0[ev] && s.ts[order[k - 1]] > s.ts[i] && sn[ev] < 4096; k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	Object.assign(e, {s0, sn});
	trace.stateOrder = order;
}

/* Sums up to each slice, so that those of any time are two look-ups. Only what is new, but for one that came late. */
function sumSlices(t)
{
	const s = t.slices;

	if (!t.sorted)
		sortSlices(t);
	for (let i = t.summed || 0; i < s.n; i++) {
		const k = i + 1; // sums are before slice i; those before the end are kept in cells of their own

		s.run[i] = i ? s.run[i - 1] + (s.state[i - 1] === 0 ? s.d[i - 1] : 0) : 0;
		s.runq[i] = i ? s.runq[i - 1] + (s.state[i - 1] === 1 ? s.d[i - 1] : 0) : 0;
		s.blocked[i] = i ? s.blocked[i - 1] + (s.state[i - 1] === 2 ? s.d[i - 1] : 0) : 0;
		s.irq[i] = i ? s.irq[i - 1] + s.irqNs[i - 1] : 0;
		t.summed = k;
	}
}

/* No recording of ours needs it. */
function sortSlices(t)
{
	const s = t.slices, order = Array.from({length: s.n}, (_, i) => i).sort((a, b) => s.t[a] - s.t[b]);

	for (const [name] of s.spec) {
		const old = s[name].slice(0, s.n);

		for (let i = 0; i < s.n; i++)
			s[name][i] = old[order[i]];
	}
	for (let i = 0; i + 1 < s.n; i++)
		s.d[i] = Math.min(s.d[i], s.t[i + 1] - s.t[i]); // they may not overlap
	t.sorted = true;
	t.summed = 0;
}

/* What a thread did between a and b: {run, runq, blocked, irq}, into `to`. @hint: a slice from where to look. */
function sliceSums(s, a, b, to, hint = 0)
{
	const i = Math.max(0, gallop(s.t, s.n, a, hint) - 1), j = Math.max(i, gallop(s.t, s.n, b, i) - 1);

	upTo(s, j, b, to);
	const run = to.run, runq = to.runq, blocked = to.blocked, irq = to.irq;

	upTo(s, i, a, to);
	to.run = run - to.run;
	to.runq = runq - to.runq;
	to.blocked = blocked - to.blocked;
	to.irq = irq - to.irq;
	return j;
}

/* All before x, which lies in slice i or behind it. */
function upTo(s, i, x, to)
{
	const part = Math.min(Math.max(x - s.t[i], 0), s.d[i]), state = s.state[i];

	to.run = s.run[i] + (state === 0 ? part : 0);
	to.runq = s.runq[i] + (state === 1 ? part : 0);
	to.blocked = s.blocked[i] + (state === 2 ? part : 0);
	to.irq = s.irq[i] + (s.irqNs[i] > 0 && s.d[i] > 0 ? s.irqNs[i] * part / s.d[i] : 0);
}

/* Other profilers do not tell when an operation has ended: with the last of its proxy operations, else of its kernels. */
function *closeOperations()
{
	const e = trace.events;

	for (const type of [T_KERNEL, T_OP]) {
		const last = new Map();

		for (let i = 0; i < e.n; i++) {
			const op = e.type[i] === type ? e.op[i] : -1;

			if (op >= 0 && op !== i && !(e.flags[op] & (F_EXEC | F_OPEN)))
				last.set(op, Math.max(last.get(op) ?? -Infinity, e.end[i])); // times before `base` are below 0
			if (!(i & PART))
				yield;
		}
		for (const [op, end] of last)
			e.end[op] = Math.max(e.stop[op], end);
	}
}

/* What has not ended below an operation of NCCL keeps it open, even if NCCL has enqueued it and its line says no more; as in the report. */
function openOperations()
{
	const e = trace.events;

	for (let i = 0; i < e.n; i++)
		if (e.flags[i] & F_OPEN && !(e.flags[i] & F_PXN) && e.parent[i] >= 0 && TYPES[e.type[e.parent[i]]].op)
			e.flags[e.parent[i]] |= F_OPEN;
}

/* The time of the last record of the process in the recording that an event is of. */
function lastBeside(i)
{
	const proc = trace.procs[trace.events.proc[i]], all = proc.recordings, pos = trace.events.pos[i];
	let n = all.length;

	while (n > 0 && all[n - 1].pos > pos)
		n--;
	return n > 0 ? all[n - 1].last : proc.last;
}

/*
 * Where an event does not say when it ended, that of its process' last one will do. What the kernel did is told of an operation until `exec` ends
 * only; an event that was closed before has another end by now.
 */
function closeOpen()
{
	const e = trace.events;

	for (let i = 0; i < e.n; i++) {
		if (!(e.flags[i] & F_OPEN))
			continue;
		if (e.flags[i] & F_EXEC && !trace.schedTo.has(i))
			trace.schedTo.set(i, e.end[i]);
		e.end[i] = Math.max(e.start[i], lastBeside(i));
	}
}

/* Until when it is told what the kernel did in an event: of what hangs not always to its end. */
const schedTo = i => trace.schedTo.get(i) ?? trace.events.end[i];
const schedIsCut = i => schedTo(i) < trace.events.end[i];

/* ---- Operations -------------------------------------------------------------------------- */

/*
 * Operations of a communicator are executed one after the other, but for those of a group; a thread that calls ahead has them wait in
 * its queue. When those began that have waited: when the ones before them had ended, as the report has it.
 */
function queueOperations()
{
	const e = trace.events, last = new Map();

	trace.beginOf = new Map();
	for (const i of trace.byStart.filter(n => TYPES[e.type[n]].op && e.end[n] > e.stop[n] && !(e.flags[n] & F_OPEN)).sort((a, b) => e.end[a] - e.end[b])) {
		const key = e.proc[i] + ' ' + e.comm[i] + ' ' + e.rank[i], group = trace.groupOf.get(i) || (e.pHi[i] || e.pLo[i] ? e.pHi[i] + ':' + e.pLo[i] : '');
		let q = last.get(key);

		if (!q)
			last.set(key, q = {group: '', begin: -Infinity, end: e.start[i]});
		if (!group || group !== q.group)
			q.begin = q.end;
		q.group = group;
		q.end = e.end[i];
		if (e.start[i] < q.begin && q.begin < e.end[i])
			trace.beginOf.set(i, q.begin);
	}
}

/* When an event began, an operation to be executed. */
const beganAt = i => trace.beginOf.get(i) ?? trace.events.start[i];

/* When NCCL stopped it, an operation to be enqueued; what it never stopped lasts. */
const stoppedAt = i => trace.events.flags[i] & F_OPEN && trace.events.stop[i] === trace.events.start[i] ? trace.events.end[i] : trace.events.stop[i];

const lasted = i => span(trace.events.end[i] - beganAt(i)) + (trace.events.flags[i] & F_OPEN ? ', open' : '');

/* A process goes by its rank of the largest communicator, of equal ones the first, as in the report. */
function nameRanks()
{
	const sizes = trace.commList.map(c => c.nranks);

	for (const p of trace.procs) // some traces do not say how many there are
		for (const [comm, rank] of p.rankIn)
			sizes[comm] = trace.commList[comm].nranks || Math.max(sizes[comm], rank + 1);
	for (const p of trace.procs) {
		let of = -1;

		for (const [comm, rank] of p.rankIn)
			if (rank >= 0 && sizes[comm] > of) {
				of = sizes[comm];
				p.rank = rank;
				p.within = comm;
			}
	}
}

/* What people call communicators: by their names, those that have none or share it by their hash. */
function nameComms()
{
	const names = new Map();

	for (const c of trace.commList)
		names.set(c.name, (names.get(c.name) || 0) + 1);
	for (const c of trace.commList)
		c.label = clean(c.name && names.get(c.name) === 1 ? c.name : c.hash, 40);
}

/* What people know an event's rank by; one process may be several. */
function rankOf(i)
{
	const p = trace.procs[trace.events.proc[i]];

	return p.many || p.rank < 0 ? trace.events.rank[i] : p.rank;
}

/* Of an operation: from its first start to its last end. */
function opSpan(op)
{
	const e = trace.events;
	let a = Infinity, b = -Infinity;

	for (const i of op.parts) {
		a = Math.min(a, beganAt(i));
		b = Math.max(b, e.end[i]);
	}
	return [a, b];
}

/* From two parts that are in order, which follow each other, one. */
function *mergeParts(from, to, a, middle, end, compare)
{
	for (let at = a, b = middle; at < end; at++) {
		to[at] = b >= end || (a < middle && compare(from[a], from[b]) <= 0) ? from[a++] : from[b++];
		if (!(at & PART))
			yield;
	}
}

/* What is around others before these. */
function *sortedByStart()
{
	const e = trace.events, compare = (a, b) => e.start[a] - e.start[b] || e.end[b] - e.end[a];
	let from = new Uint32Array(e.n).map((_, i) => i), to = new Uint32Array(e.n);

	for (let at = 0; at < e.n; at += PART) {
		from.subarray(at, at + PART).sort(compare);
		yield;
	}
	for (let size = PART; size < e.n; size *= 2) {
		for (let at = 0; at < e.n; at += 2 * size)
			yield* mergeParts(from, to, at, Math.min(e.n, at + size), Math.min(e.n, at + 2 * size), compare);
		[from, to] = [to, from];
	}
	return from;
}

/* All that follows; called now and then while a trace comes in, and when it is there. */
function *digest()
{
	if (!trace.ids || trace.ids.n > trace.events.n)
		trace.ids = new Ids();
	yield* linkEvents();
	openOperations();
	closeOpen();
	yield;
	yield* closeOperations();
	yield* linkStates();
	for (const t of trace.threads) {
		if (t.slices)
			sumSlices(t);
		yield;
	}
	trace.byStart = yield* sortedByStart();
	yield;
	queueOperations();
	yield;
	joinOperations();
}
