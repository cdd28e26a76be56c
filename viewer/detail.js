// SPDX-License-Identifier: BSD-2-Clause
/* All of what is selected: its line is unpacked again, so nothing that the trace says of it is missing. */

const DEPTH_MAX = 8;
const ROWS_SHOWN = 400;
const detail = {of: null, record: null, shown: null, error: ''};

function select(sel)
{
	view.selected = sel;
	if (sel) {
		panel.tab = 'selected';
		$('panel').hidden = false;
		loadDetail();
	}
	renderPane();
	redraw();
}

/* What is selected meanwhile may be unpacked before: what comes late for that is dropped. */
async function loadDetail()
{
	const sel = view.selected, got = {of: sel, record: null, shown: null, error: ''};
	const pos = sel.event !== undefined ? trace.events.pos[sel.event] : sel.slice !== undefined ? sel.thread.slices.pos[sel.slice] : sel.pos;

	Object.assign(detail, got);
	if (pos === undefined)
		return;
	try {
		const line = await lineAt(pos);

		got.record = JSON.parse(line);
		got.shown = JSON.parse(numbersAsText(line));
	} catch (err) {
		got.error = 'Its line cannot be read again.';
	}
	if (view.selected !== sel)
		return;
	Object.assign(detail, got);
	if (panel.tab === 'selected')
		renderPane();
}

/* Numbers of 64 bits have more digits than a double: they are shown as the line has them. What is in quotes already stays as it is. */
function numbersAsText(line)
{
	return line.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g, s => s.startsWith('"') ? s : '"' + s + '"');
}

function selectedPane()
{
	const sel = view.selected;

	if (!sel)
		return [el('p', 'dim', 'Click on something in the timeline to see all that is known of it.')];
	if (sel.event !== undefined)
		return eventPane(sel.event);
	if (sel.slice !== undefined)
		return slicePane(sel.thread, sel.slice);
	return sel.flow.isPort ? portPane(sel.flow) : flowPane(sel.flow);
}

function record()
{
	if (detail.error)
		return [el('p', 'dim', detail.error)];
	return detail.shown && detail.of === view.selected ? [el('h3', '', 'The record'), keysOf(detail.shown)] : [];
}

const factsTable = facts => table(facts.map(([k, v]) => [el('span', 'fact', k), v]));

/* ---- Events ------------------------------------------------------------------------------------------- */

function fullName(i)
{
	const short = TYPES[trace.events.type[i]].short, name = eventName(i);

	return name.startsWith(short) ? name : short + ' ' + name;
}

function eventPane(i)
{
	const e = trace.events, p = trace.procs[e.proc[i]], t = trace.threads[e.thread[i]], out = [], v = verdictOf(i);
	const open = e.flags[i] & F_OPEN, here = rankOf(i) === e.rank[i] ? '' : ', ' + e.rank[i] + ' of its communicator';

	out.push(el('h2', '', fullName(i)));
	const facts = [
		['takes', open ? 'had not ended after ' + span(e.end[i] - e.start[i]) : span(e.end[i] - beganAt(i))],
		['begins', span(e.start[i] - trace.t0)], ['rank', procLabel(p, rankOf(i)) + here], ['thread', (t.role ? t.role + ' ' : '') + clean(t.comm, 40) + ' [' + t.tid + ']'],
	];

	if (TYPES[e.type[i]].op && e.end[i] > stoppedAt(i))
		facts.splice(1, 0, ['enqueued in', span(e.stop[i] - e.start[i])]);
	if (trace.beginOf.has(i))
		facts.splice(2, 0, ['in the queue', span(beganAt(i) - e.stop[i])]);
	if (e.flags[i] & F_LOSS)
		facts.push(['short of', 'records were lost while it ran']);
	if (e.flags[i] & F_ORPHAN)
		facts.push(['parent', 'never seen']);
	out.push(factsTable(facts));
	if (v)
		out.push(...opVerdict(v));
	out.push(...schedPart(i), ...statesPart(i), ...familyPart(i), ...record());
	return out;
}

function opVerdict(v)
{
	const card = el('div', 'verdict');

	add(card, add(el('header'), el('span', 'code', clean(v.code, 40)), el('span', 'cost', sure(v))));
	add(card, el('div', '', who(v) || 'nobody in particular'), el('p', '', 'The operation took ' + span(num(v.duration) * 1e3) + ', the median of its kind is ' + span(num(v.expected) * 1e3) + '.'));
	return [el('h3', '', 'Why it was slow'), card];
}

/* Times of the record in one bar: of the whole, and of the roles in an operation. */
function schedPart(i)
{
	const o = detail.of === view.selected && detail.record ? objectOf(own(detail.record, 'sched')) : {}, out = [], e = trace.events;

	if (!(e.flags[i] & F_SCHED))
		return [];
	out.push(el('h3', '', 'What the kernel did to ' + (TYPES[e.type[i]].op ? 'its threads' : 'the thread') + (schedIsCut(i) ? ', in the first ' + span(schedTo(i) - e.start[i]) : '')));
	const parts = [['', {run: e.run[i], runq: e.runq[i], blocked: e.blocked[i], unknown: e.unknown[i], irq: e.irq[i]}, o]];

	for (const role of ['app', 'proxy', 'before']) {
		const r = objectOf(own(o, role));

		if (r.onCpu !== undefined)
			parts.push([role === 'before' ? 'the application, before it called' : role + ', ' + num(r.threads) + (r.threads === 1 ? ' thread' : ' threads'), {run: num(r.onCpu) * 1e3, runq: num(r.runq) * 1e3, blocked: num(r.blocked) * 1e3, unknown: num(r.unknown) * 1e3, irq: num(r.irq) * 1e3}, r]);
	}
	for (const [name, s, r] of parts.length > 1 ? parts.slice(1) : parts)
		out.push(...roleBar(name, s, r));
	return out;
}

function roleBar(name, s, r)
{
	const out = name ? [el('div', 'dim', name)] : [], list = [];

	out.push(splitBar(s), splitTable(s));
	for (const b of Array.isArray(r.behind) ? r.behind.slice(0, 8) : [])
		list.push(['behind ' + clean(objectOf(b).comm, 40) + ' [' + num(objectOf(b).pid) + ']', {n: span(num(objectOf(b).us) * 1e3)}]);
	for (const b of Array.isArray(r.blockedIn) ? r.blockedIn.slice(0, 8) : [])
		list.push(['in ' + clean(objectOf(b).why, 40), {n: span(num(objectOf(b).us) * 1e3)}]);
	for (const w of Array.isArray(r.wokenBy) ? r.wokenBy.slice(0, 8) : [])
		list.push(['until ' + clean(objectOf(w).comm, 40) + ' [' + num(objectOf(w).pid) + '] woke it', {n: span(num(objectOf(w).us) * 1e3)}]);
	for (const f of Array.isArray(r.files) ? r.files.slice(0, 8) : [])
		list.push(['on ' + clean(objectOf(f).file, 80) + ' (' + clean(objectOf(f).fs, 20) + ')', {n: span(num(objectOf(f).us) * 1e3)}]);
	if (list.length)
		out.push(table(list));
	return out;
}

function statesPart(i)
{
	const e = trace.events, s = trace.states, n = Math.min(e.sn[i], ROWS_SHOWN), rows = [];

	for (let k = 0; k < n; k++) {
		const st = trace.stateOrder[e.s0[i] + k], to = k + 1 < e.sn[i] ? s.ts[trace.stateOrder[e.s0[i] + k + 1]] : e.end[i], name = texts[s.name[st]];

		rows.push([swatch(STATE_INK.get(name) || 'step', clean(name, 60)), {n: '+' + span(s.ts[st] - e.start[i])}, {n: span(Math.max(0, to - s.ts[st]))}]);
	}
	return rows.length ? [el('h3', '', 'States'), table(rows, ['state', {n: 'after'}, {n: 'for'}])] : [];
}

function linkTo(i, label)
{
	const b = el('button', '', label);

	about.set(b, i);
	b.addEventListener('click', () => goTo(i));
	return b;
}

function familyPart(i)
{
	const e = trace.events, op = trace.opOf.get(e.op[i]), kids = childrenOf(i), out = [];

	if (e.parent[i] >= 0)
		out.push(el('h3', '', 'Parent'), add(el('div', 'links'), linkTo(e.parent[i], fullName(e.parent[i]))));
	if (op && op.parts.length > 1)
		out.push(el('h3', '', 'The operation, by rank'), partsTable(op, i));
	if (kids.length)
		out.push(el('h3', '', count(kids.length) + (kids.length === 1 ? ' child' : ' children')),
			add(el('div', 'links'), ...kids.slice(0, 40).map(c => linkTo(c, eventName(c) + ' ' + lasted(c)))));
	return out;
}

/* Who came when, and how long it took. */
function partsTable(op, own_)
{
	const first = opSpan(op)[0];

	return table([...op.parts].sort((a, b) => rankOf(a) - rankOf(b)).slice(0, ROWS_SHOWN).map(i => {
		const b = linkTo(i, 'rank ' + rankOf(i));

		b.disabled = i === own_;
		return [add(el('span', 'links'), b), {n: '+' + span(beganAt(i) - first)}, {n: lasted(i)}];
	}), ['', {n: 'came after'}, {n: 'takes'}]);
}

/* ---- Slices and flows ------------------------------------------------------------------------------------ */

function slicePane(t, n)
{
	const s = t.slices, who_ = clean(texts[s.who[n]], 200), state = s.state[n], facts = [
		['takes', span(s.d[n])], ['begins', span(s.t[n] - trace.t0)], ['thread', threadName(t)],
	];

	if (s.cpu[n] >= 0)
		facts.push(['CPU', String(s.cpu[n])]);
	if (state === 1 && who_)
		facts.push(['behind', who_ + ' [' + s.whoPid[n] + ']']);
	if (state === 2 && who_)
		facts.push(['in', who_]);
	if (s.irqNs[n] > 0)
		facts.push(['interrupts', span(s.irqNs[n])]);
	return [el('h2', '', 'Thread is ' + SLICE_WORDS[state]), factsTable(facts), ...record()];
}

const sumOf = (p, col) => p[col].subarray(0, p.n).reduce((a, b) => a + b, 0);

/* Below it the record that was clicked at, with all counters that moved. */
function portPane(f)
{
	const p = f.pts, at = view.selected.point;
	const facts = [['sent', bytes(sumOf(p, 'tx'))], ['received', bytes(sumOf(p, 'rx'))], ['errors', count(f.errors)], ['node', clean(f.proc.host, 60)]];

	if (at !== undefined && p.dt[at] > 0)
		facts.unshift(['then', bytes((p.tx[at] + p.rx[at]) / p.dt[at] * 1e9) + '/s, errors: ' + count(p.retrans[at])]);
	return [el('h2', '', 'RDMA port ' + clean(f.name, 120)), el('p', 'dim', 'what it counted, whoever used it'), factsTable(facts), ...record()];
}

function flowPane(f)
{
	const p = f.pts, at = view.selected.point;
	const sum = col => sumOf(p, col), retrans = sum('retrans'), needless = sum('needless');
	const facts = [
		['moved', bytes(f.bytes)], ['sent', bytes(sum('tx'))], ['received', bytes(sum('rx'))],
		['sent again', countOf(retrans, 'segment') + (needless ? ', ' + count(needless) + ' of them needlessly' : '')],
		['out of order', count(sum('ooo'))], ['dropped here', count(f.drops.reduce((n, d) => n + d.n, 0))], ['rank', procLabel(f.proc)],
	];

	if (at !== undefined && p.dt[at] > 0)
		facts.unshift(['then', bytes((p.tx[at] + p.rx[at]) / p.dt[at] * 1e9) + '/s, round trip ' + span(p.rtt[at])]);
	const out = [el('h2', '', clean(f.name, 120)), el('p', 'dim', flowLabel(f)), factsTable(facts)];

	if (f.drops.length)
		out.push(el('h3', '', 'Drops'), table(f.drops.slice(0, 100).map(d => [clean(d.reason, 60), clean(d.dir, 8), {n: count(d.n)}, {n: span(d.t - trace.t0)}])));
	return out.concat(record());
}

/* ---- Any record ---------------------------------------------------------------------------------------------- */

/* Keys of objects become a.b, lists of plain values one cell. Whatever the keys are: they are only ever text. */
function flatten(o, prefix, depth, rows)
{
	for (const [key, v] of Object.entries(o)) {
		const name = prefix + clean(key, 60);

		if (rows.length >= ROWS_SHOWN)
			return;
		if (v === null || typeof v !== 'object')
			rows.push([name, clean(v === '' ? '""' : v)]);
		else if (depth >= DEPTH_MAX)
			rows.push([name, '\u2026']);
		else if (Array.isArray(v) && v.every(x => x === null || typeof x !== 'object'))
			rows.push([name, clean(v.join(', '))]);
		else
			flatten(v, name + '.', depth + 1, rows);
	}
}

function keysOf(o)
{
	const rows = [];

	flatten(o, '', 0, rows);
	const t = table(rows);

	t.id = 'record';
	for (const tr of t.querySelectorAll('tr')) {
		tr.firstChild.className = 'key';
		tr.firstChild.title = tr.firstChild.textContent;
	}
	return t;
}
