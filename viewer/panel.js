// SPDX-License-Identifier: BSD-2-Clause
/* The panel: why it was slow, what is selected, sums over the ruler, the trace itself. */

const TABS = [['slow', 'Why slow'], ['selected', 'Selected'], ['ruler', 'Ruler'], ['trace', 'Trace']];
const panel = {tab: 'slow'};

function makeTabs()
{
	for (const [key, label] of TABS) {
		const b = el('button', '', label);

		b.id = 'tab-' + key;
		b.setAttribute('role', 'tab');
		b.addEventListener('click', () => showTab(key));
		$('tabs').append(b);
	}
}

function showTab(key)
{
	panel.tab = key;
	$('pane').scrollTop = 0;
	renderPane();
}

const panes = {slow: slowPane, selected: selectedPane, ruler: rulerPane, trace: tracePane};

const about = new WeakMap(); // of what can have the focus in the pane, what it is about: a verdict, an operation, an event

/* The pane is made anew, so who is in it with the keyboard is taken to the same place again, or else to its beginning. */
function renderPane()
{
	const pane = $('pane'), had = document.activeElement, inside = had !== pane && pane.contains(had);

	for (const [key] of TABS)
		$('tab-' + key).setAttribute('aria-selected', String(key === panel.tab));
	pane.replaceChildren(...panes[panel.tab]());
	if (inside)
		(sameAs(had) || pane).focus({preventScroll: true});
}

function sameAs(had)
{
	const what = about.get(had);

	return what !== undefined && [...$('pane').querySelectorAll('button:enabled, [tabindex]')].find(e => about.get(e) === what);
}

/* A table of rows of cells; a cell is text, an element, or {n: a figure}. */
function table(rows, head)
{
	const t = el('table');

	if (head)
		add(t, add(el('thead'), row(head, 'th')));
	return add(t, add(el('tbody'), ...rows.map(r => row(r, 'td'))));
}

function row(cells, tag)
{
	return add(el('tr'), ...cells.map(c => {
		if (c instanceof Node)
			return add(el(tag), c);
		return c !== null && typeof c === 'object' ? el(tag, 'n', c.n) : el(tag, '', c);
	}));
}

function swatch(ink, label)
{
	const s = el('span'), i = el('i');

	if (ink === 'hatched')
		i.className = ink;
	else
		i.style.background = colour[ink];
	return add(s, i, label);
}

/* ---- Why slow ------------------------------------------------------------------------------------------ */

const CULPRIT_WORD = new Map([['proxy-preempted', 'behind'], ['proxy-blocked', 'in']]);

const byWhom = v => v.culprit !== undefined ? (CULPRIT_WORD.get(v.code) || 'by') + ' ' + clean(v.culprit, 120) : '';

/* Of an operation: of which rank it is known, and what held that up. */
const who = v => v.rank === undefined ? clean(v.culprit ?? '', 120) : ['rank ' + v.rank, byWhom(v)].filter(Boolean).join(', ');

/* The process that it is on, if that is in the trace. */
const procOf = v => trace.procs.find(p => p.host === v.host && p.pid === v.pid);

/* Of a process that is several ranks the communicator in which it is that one, if people do not know it by that anyway. */
function withinOf(v, p)
{
	const c = trace.comms.get(v.commHash);

	return v.commHash === undefined || (p && p.within === c?.index) ? '' : ' of ' + (c ? c.label : clean(v.commHash, 40));
}

/* Of the whole job, as report has it. */
function whose(v)
{
	const p = procOf(v), on = v.host !== undefined ? ' on ' + clean(v.host, 60) : '';

	if (v.ranks)
		return count(num(v.ranks)) + ' ranks in turn' + withinOf(v);
	if (v.rank === undefined)
		return v.culprit !== undefined ? 'port ' + clean(v.culprit, 120) : '';
	return 'rank ' + v.rank + withinOf(v, p) + (p ? ', ' + clean(p.comm, 24) + '[' + p.pid + ']' : v.pid !== undefined ? ', process ' + num(v.pid) : '') + on;
}

const sure = v => num(v.confidence) > 0 ? percent(num(v.confidence)) + ' sure' : '';

function verdictCard(v)
{
	const card = el('div', 'verdict'), evidence = Array.isArray(v.evidence) ? v.evidence : [];

	add(card, add(el('header'), el('span', 'code', clean(v.code, 40)), el('span', 'cost', [span(num(v.cost) * 1e9), sure(v)].filter(Boolean).join(', '))));
	for (const words of [whose(v), v.rank !== undefined || v.code === 'proxy-preempted' ? byWhom(v) : ''].filter(Boolean))
		add(card, el('div', '', words));
	for (const words of evidence)
		add(card, el('p', '', clean(words)));
	add(card, el('p', '', !num(v.ops) ? 'in no operation that was recorded' :
		'in ' + count(num(v.ops)) + (num(v.ops) === 1 ? ' operation, ' : ' operations, ') + count(num(v.slow)) + ' of them slow' + (num(v.hung) ? ', ' + count(num(v.hung)) + ' never ended' : '')));
	const worst = worstOf(v);

	if (worst) {
		about.set(card, v);
		leadTo(card, worst);
	}
	return card;
}

/*
 * Of what a verdict is on, the first of the slow ones, of which those that hang come first; the report lists the longest of a kind only. A rank
 * is its process', as another one may have that number in another communicator.
 */
function worstOf(v)
{
	const its = s => s.code === v.code && s.host === v.host && s.pid === v.pid && s.rank === v.rank && s.culprit === v.culprit &&
		(v.commHash === undefined || s.commHash === v.commHash);

	return trace.slow.find(s => s.op && its(s.verdict))?.op;
}

/* No button: its text is to be marked and copied, which is no click. */
function leadTo(card, op)
{
	card.classList.add('leads');
	card.tabIndex = 0;
	card.setAttribute('role', 'button');
	card.title = 'Its worst operation';
	card.addEventListener('click', () => {
		if (getSelection().isCollapsed)
			goToOp(op);
	});
	card.addEventListener('keydown', ev => {
		if (ev.key !== 'Enter' && ev.key !== ' ')
			return;
		ev.preventDefault();
		goToOp(op);
	});
}

/* Without report: the longest, against the median of their kind. */
function longest()
{
	const e = trace.events, kinds = new Map(), list = [];

	for (const op of trace.ops) {
		const i = op.parts[0], [a, b] = opSpan(op), key = e.comm[i] + ' ' + e.func[i], kind = kinds.get(key) || [];

		kinds.set(key, kind);
		kind.push(b - a);
		list.push({op, ns: b - a, key, verdict: null});
	}
	for (const kind of kinds.values())
		kind.sort((a, b) => a - b);
	for (const item of list) {
		const kind = kinds.get(item.key);

		item.expected = kind[kind.length >> 1];
	}
	return list.sort((a, b) => b.ns - a.ns).slice(0, 32);
}

/* Each communicator counts its own. */
function opTitle(s)
{
	const i = s.op?.parts[0], comm = s.op ? trace.commList[trace.events.comm[i]] : trace.comms.get(String(s.verdict.commHash));
	const of = comm && trace.commList.filter(c => c.hash !== '0x0').length > 1 ? ' of ' + comm.label : '';

	if (s.op)
		return (trace.events.type[i] === T_P2P ? 'rank ' + trace.events.rank[i] + ': ' : '') + eventName(i) + of;
	return clean(s.verdict.func, 60) + ' #' + s.verdict.seq + of;
}

function opButton(s)
{
	const b = el('button', 'op'), why = el('span', 'why'), v = s.verdict;

	add(b, el('span', 'what', opTitle(s)), el('span', 'long', span(s.ns)));
	if (v)
		add(why, el('b', '', clean(v.code, 40)), ' ' + [who(v), sure(v)].filter(Boolean).join(', '));
	add(why, (v ? ' \u00b7 ' : '') + 'median ' + span(s.expected));
	add(b, why);
	about.set(b, s.op);
	b.disabled = !s.op;
	b.classList.toggle('on', view.op === s.op && !!s.op);
	b.addEventListener('click', () => goToOp(s.op));
	return b;
}

/* The part that a verdict names, else the one that took longest. */
function goToOp(op)
{
	const e = trace.events, [a, b] = opSpan(op), rank = op.verdict?.rank;
	const part = op.parts.find(i => rankOf(i) === rank) ?? op.parts.reduce((x, i) => e.end[i] - beganAt(i) > e.end[x] - beganAt(x) ? i : x);

	reveal(part);
	view.op = op;
	setView(a - (b - a) * .15, b + (b - a) * .15);
	view.selected = {event: part};
	const lane = laneOfEvent(part);

	if (lane)
		view.scroll = Math.max(0, lane.y - 120);
	loadDetail();
	renderPane();
	redraw();
}

/* How many there are: of a kind with many the report lists the longest only. */
function slowCount(r, listed)
{
	let all = 0;

	for (const comm of Array.isArray(r.comms) ? r.comms : [])
		for (const kind of Array.isArray(comm?.ops) ? comm.ops : [])
			all += num(kind?.slow);
	return all > listed ? count(listed) + ' of ' + count(all) : count(listed);
}

/* Of jobs in which no operation began or ended: what their ranks' first threads were in at the end, of each first those that are in something else than most. */
function stillPart(list, beside)
{
	const several = beside || list.some(s => objectOf(s).commHash !== objectOf(list[0]).commHash);
	const rows = list.slice(0, 200).map(objectOf).map(s => {
		const stack = clean(str(s.stack), 120), file = clean(str(s.file), 80);
		const end = str(s.end) && 'it ended: ' + clean(str(s.end), 40) + (str(s.how) && '; ' + clean(str(s.how), 200));
		const now = typeof s.asleep === 'number' ? clean(str(s.in), 40) + (file && ' on ' + file) + (stack && ' (' + stack + ')') :
			typeof s.busy === 'number' ? 'not asleep: on a CPU for ' + percent(s.busy) + ' of its time' : '';
		const what = [now, end].filter(Boolean).join('; ') || 'not known';

		return [(s.apart === true ? '! ' : '') + num(s.rank), ...several ? [trace.comms.get(s.commHash)?.label ?? ''] : [], what, {n: typeof s.asleep === 'number' ? (s.orLonger === true ? '> ' : '') + span(s.asleep * 1e9) : ''}];
	});

	return [el('p', '', beside ? 'No operation began or ended in other jobs. What their ranks\u2019 first threads were in when the recording ended:' :
		'No operation began or ended. What the ranks\u2019 first threads were in when the recording ended:'),
	table(rows, ['rank', ...several ? ['of'] : [], 'in', {n: 'asleep for'}]),
	...list.length > rows.length ? [el('p', 'dim', `and ${list.length - rows.length} more`)] : []];
}

function slowPane()
{
	const r = trace.report, out = [], list = trace.slow.length ? trace.slow : longest();

	if (!loading.done && !trace.records)
		return [el('p', 'dim', 'Reading')];
	if (r) {
		const verdicts = Array.isArray(r.verdicts) ? r.verdicts : [], still = Array.isArray(r.still) ? r.still : [];
		const beside = (Array.isArray(r.comms) ? r.comms : []).some(c => Array.isArray(c?.ops) && c.ops.length);

		out.push(...verdicts.slice(0, 50).map(verdictCard));
		if (still.length && !beside)
			return [...out, ...stillPart(still, false)];
		if (!verdicts.length)
			out.push(el('p', 'dim', 'Nothing stands out over the whole job: no rank, process or connection held it up.'));
		if (still.length)
			out.push(...stillPart(still, true));
		out.push(el('h3', '', trace.slow.length ? 'Slow operations, longest first (' + slowCount(r, list.length) + ')' : 'No slow operations; the longest'));
	} else {
		out.push(el('p', 'dim', 'Verdicts come with ncclscope view; these are the longest operations of what was dropped here.'));
	}
	const ol = el('ol');

	ol.id = 'slow';
	for (const s of list.slice(0, 200))
		if (!s.op || !s.op.parts.every(i => !matches(i)))
			add(ol, add(el('li'), opButton(s)));
	out.push(ol);
	return out;
}

const PARTS = ['run', 'runq', 'blocked', 'unknown', 'irq'];

/* ---- The ruler ------------------------------------------------------------------------------------------- */

/* What threads did between a and b: from slices; where there are none, from the operations' sums, by their part in it. */
function threadSums(t, a, b)
{
	const to = {run: 0, runq: 0, blocked: 0, irq: 0};

	if (t.slices && t.summed)
		sliceSums(t.slices, a, b, to);
	return to;
}

/* Steps in a state overlap; so these are sums over steps, as the report's are over threads. */
function stateSums(a, b)
{
	const e = trace.events, s = trace.states, by = new Map();

	for (let i = 0; i < e.n; i++) {
		if (!e.sn[i] || e.end[i] < a || e.start[i] > b || !matches(i))
			continue;
		for (let k = 0; k < e.sn[i]; k++) {
			const st = trace.stateOrder[e.s0[i] + k], to = k + 1 < e.sn[i] ? s.ts[trace.stateOrder[e.s0[i] + k + 1]] : e.end[i];
			const d = Math.min(b, to) - Math.max(a, s.ts[st]);

			if (d > 0)
				by.set(s.name[st], (by.get(s.name[st]) || 0) + d);
		}
	}
	return [...by].sort((x, y) => y[1] - x[1]);
}

/*
 * Of events of one thread, in order of their start: what it did while any of them was under way. Those that cover a time together, as steps do,
 * tell of the same time: so their shares are averaged there, whatever else each of them covers. There may be a million: none gets an object.
 */
function sweepShares(list, a, b)
{
	const {start} = trace.events, parts = PARTS.map(key => trace.events[key]), sum = new Float64Array(PARTS.length), now = new Float64Array(PARTS.length);
	const ends = Float64Array.from(list, sharesTo), byEnd = Uint32Array.from(list, (_, n) => n).sort((x, y) => ends[x] - ends[y]);
	let under = 0, at = a, next = 0;
	const move = (to, i, by) => {
		const ns = Math.max(0, Math.min(b, to) - at), all = sharesOf(i);

		for (let k = 0; k < parts.length; k++) {
			sum[k] += under ? now[k] / under * ns : 0;
			now[k] = under + by ? Math.max(0, now[k] + by * parts[k][i] / all) : 0;
		}
		at += ns;
		under += by;
	};

	for (const n of byEnd) {
		for (; next < list.length && start[list[next]] <= ends[n]; next++)
			move(start[list[next]], list[next], 1);
		move(ends[n], list[n], -1);
	}
	return Object.fromEntries(PARTS.map((key, k) => [key, sum[k]]));
}

/* Until when an event tells of its thread, and of how much time. */
const sharesTo = i => Math.min(stoppedAt(i), schedTo(i));

function sharesOf(i)
{
	const e = trace.events;

	return e.run[i] + e.runq[i] + e.blocked[i] + e.unknown[i];
}

/* Of threads without slices, by the sums of events, as if each had been spread evenly over its event. */
function eventShares(a, b)
{
	const e = trace.events, by = new Map();

	for (const i of trace.byStart) {
		const from = e.start[i];

		if (from >= b)
			break;
		if (!(e.flags[i] & F_SCHED) || sharesTo(i) <= Math.max(a, from) || !sharesOf(i) || TYPES[e.type[i]].op || trace.threads[e.thread[i]].slices || !matches(i))
			continue;
		if (!by.has(e.thread[i]))
			by.set(e.thread[i], []);
		by.get(e.thread[i]).push(i);
	}
	return new Map([...by].map(([t, list]) => [t, sweepShares(list, a, b)]));
}

function splitBar(s)
{
	const bar = el('div', 'split'), unknown = s.unknown || 0, all = s.run + s.runq + s.blocked + unknown, irq = Math.min(s.irq || 0, s.run);

	for (const [ink, v] of [['irq', irq], ['run', s.run - irq], ['runq', s.runq], ['blocked', s.blocked], ['unknown', unknown]]) {
		const i = el('i');

		i.style.width = (all > 0 ? 100 * v / all : 0) + '%';
		i.style.background = colour[ink];
		i.title = ink + ' ' + span(v);
		bar.append(i);
	}
	return bar;
}

const splitTable = s => table([
	[swatch('run', 'running'), {n: span(s.run)}, swatch('runq', 'runnable'), {n: span(s.runq)}],
	[swatch('blocked', 'blocked'), {n: span(s.blocked)}, swatch('irq', 'interrupts'), {n: span(s.irq)}],
	...s.unknown > 0 ? [[swatch('unknown', 'not known'), {n: span(s.unknown)}, '', {n: ''}]] : [],
]);

const rankName = p => p.many || p.rank < 0 ? procLabel(p) : 'rank ' + p.rank;
const threadName = t => rankName(t.proc) + ' ' + (t.role || clean(t.comm, 20)) + ' [' + t.tid + ']';

function rulerPane()
{
	const r = view.ruler, out = [];

	if (!r || r.a === r.b)
		return [el('p', 'dim', 'Hold Shift and drag over the timeline: sums of what threads did there, and of NCCL\u2019s states.')];
	const a = Math.min(r.a, r.b), b = Math.max(r.a, r.b), with_ = trace.threads.filter(t => t.slices && layout.order.some(u => u.proc === t.proc));

	out.push(el('h2', '', span(b - a)), el('p', 'dim', 'from ' + span(a - trace.t0) + ' to ' + span(b - trace.t0)));
	const rows = with_.map(t => [threadName(t), threadSums(t, a, b)]).filter(([, s]) => s.run + s.runq + s.blocked > 0);

	if (rows.length)
		out.push(el('h3', '', 'What the kernel did to threads'), sumTable(rows));
	const shares = [...eventShares(a, b)].map(([t, s]) => [threadName(trace.threads[t]), s]);

	if (shares.length)
		out.push(el('h3', '', 'Threads without slices, about, while NCCL was at something'), sumTable(shares));
	const states = stateSums(a, b);

	if (states.length)
		out.push(el('h3', '', 'NCCL\u2019s states, summed over steps (they overlap)'),
			table(states.slice(0, 500).map(([name, ns]) => [swatch(STATE_INK.get(texts[name]) || 'step', clean(texts[name].replace(/^ncclProfile/, ''), 60)), {n: span(ns)}])));
	return out;
}

function sumTable(rows)
{
	const list = el('ul');

	rows.sort((x, y) => y[1].runq - x[1].runq);
	list.className = 'sums';
	for (const [name, s] of rows.slice(0, 200))
		add(list, add(el('li'), el('div', '', name), splitBar(s), splitTable(s)));
	return list;
}

/* ---- GPUs -------------------------------------------------------------------------------------------------- */

/* A stretch of time in which it was held down, or lost. */
function heldText(h)
{
	const how = h.why === 'lost' ? 'lost: the driver does not reach it' : 'held down by ' + clean(h.why, 40) + ' for ' + (100 * h.share / h.n).toFixed(0) + ' % of the time';

	return 'GPU ' + h.gpu.index + ' ' + how + ', ' + span(h.to - h.from) + ' from ' + span(h.from - trace.t0) + ' on';
}

/* What held it down for more than a hundredth of the time, trouble or not, and errors. */
function gpuTrouble(g)
{
	const out = [...g.held].filter(([, ns]) => ns > g.time / 100).sort((a, b) => b[1] - a[1]).map(([why, ns]) => clean(why, 40) + ' ' + (100 * ns / g.time).toFixed(0) + ' %');

	if (g.lost)
		out.unshift('lost');
	if (g.errors)
		out.push(countOf(g.errors, 'error'));
	return out.join(', ');
}

function gpuTable()
{
	const rows = trace.procs.flatMap(p => [...p.gpus.values()].map(g => [rankName(p), clean(p.host, 40), {n: String(g.index)}, {n: g.n ? (g.clock / g.n).toFixed(0) : '-'},
		{n: g.hot ? String(g.hot) : '-'}, {n: g.watt ? g.watt.toFixed(0) : '-'}, gpuTrouble(g)]));

	return rows.length ? [el('h3', '', 'GPUs'), table(rows.slice(0, 500), ['rank', 'node', {n: 'GPU'}, {n: 'MHz'}, {n: '\u00b0C'}, {n: 'W max'}, 'held down, errors'])] : [];
}

/* ---- The trace --------------------------------------------------------------------------------------------- */

function tracePane()
{
	const out = [el('h2', '', 'This trace')], kinds = [...trace.counts].sort((a, b) => b[1] - a[1]);
	const counts = table(kinds.slice(0, 500).map(([kind, n]) => [clean(kind, 60), {n: count(n)}]), ['record', {n: 'lines'}]);

	counts.id = 'counts';
	out.push(counts);
	if (trace.unreadable)
		out.push(el('p', '', count(trace.unreadable) + (trace.unreadable === 1 ? ' line could' : ' lines could') + ' not be read: torn off, or no records.'));
	if (trace.truncated)
		out.push(el('p', '', countOf(trace.truncated, 'block') + ' or ' + (trace.truncated === 1 ? 'file is' : 'files are') + ' damaged and left out.'));
	if (trace.lost.size)
		out.push(el('h3', '', 'Lost while recording'), table([...trace.lost].slice(0, 500).map(([cause, n]) => [clean(cause, 60), {n: count(n)}])));
	out.push(el('h3', '', 'Processes'));
	out.push(table(trace.procs.slice(0, 500).map(p => [procLabel(p), clean(p.host, 40), p.footer ? clean(p.footer.end, 40) : 'not finished']), ['rank', 'node', 'end']));
	const signals = trace.procs.flatMap(p => p.signals.map(s => ({...s, p}))).sort((a, b) => a.t - b.t);

	if (signals.length)
		out.push(el('h3', '', 'Signals that end or stop'), table(signals.slice(0, 500).map(s =>
			[procLabel(s.p), clean(s.what, 20), clean(s.by, 40), {n: span(s.t - trace.t0)}]), ['rank', 'signal', 'from', {n: 'after'}]));
	out.push(...gpuTable());
	const logged = [...trace.kmsg.values()].sort((a, b) => a.t - b.t);

	if (logged.length)
		out.push(el('h3', '', 'From the kernel\u2019s log'), table(logged.slice(0, 500).map(k =>
			[clean(k.host, 40), clean(k.text, 200), {n: span(k.t - trace.t0)}]), ['node', 'line', {n: 'after'}]));
	out.push(el('h3', '', 'Files'));
	const files = el('ul');

	for (const f of trace.files.slice(0, 500))
		add(files, el('li', '', clean(f.name, 200) + (f.error ? ': ' + f.error : '')));
	out.push(files);
	out.push(el('h3', '', 'Communicators'));
	out.push(table([...trace.comms.values()].filter(c => c.hash !== '0x0').slice(0, 500).map(c => [clean(c.name || '-', 60), clean(c.hash, 40), c.nranks > 0 ? countOf(c.nranks, 'rank') : ''])));
	return out;
}
