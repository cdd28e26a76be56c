// SPDX-License-Identifier: BSD-2-Clause
/* The page: what is where, what happens when, and when something has come. */

const LEGEND = [
	['Thread', ''], ['run', 'on CPU'], ['irq', 'irq'], ['runq', 'runnable'], ['blocked', 'blocked'],
	['NCCL', ''], ['coll', 'enqueue'], ['collend', 'execute'], ['peer', 'waits for peer'], ['gpu', 'GPU'], ['wire', 'sends'],
	['Flow', ''], ['tx', 'sent'], ['rx', 'received'], ['rtt', 'RTT'], ['retrans', 'lost'],
];

/* All that the legend has no room for: colours, and what they are of. */
const COLOURS = [
	['coll collend', 'Coll: until it is enqueued, until it has ended; CeColl'], ['p2p p2pend', 'P2p: the same'], ['group', 'Group, GroupApi'], ['api', 'CollApi, P2pApi'],
	['kernel', 'KernelLaunch, KernelCh, KernelPhase, CeBatch'], ['opsend oprecv', 'ProxyOp: sends, receives'], ['peer', 'waits for its peer; CeSync'], ['gpu', 'waits for the GPU'],
	['wire', 'sends, or has received; NetPlugin'], ['flush', 'flushes to the GPU what it has received'], ['step', 'ProxyStep, ProxyOp: anything else'],
	['ctrl opsend api', 'ProxyCtrl: idle or asleep; active; append and wakeup'], ['other', 'any other event'],
	['run irq runq blocked', 'thread: on a CPU, interrupted, runnable, blocked; of an event its lower edge'], ['tx rx rtt', 'flow, RDMA port: sent, received, round trip'],
	['unknown', 'lower edge of an event: what the thread did is not known'],
	['retrans', 'flow: sent again, dropped; RDMA port: errors; left edge of an event: in it, or records lost; process: a signal that ends or stops it, at its lower edge: its GPU is held down'], ['dim', 'flow: sent again needlessly'],
	['mark', 'upper edge, and on the map: slow, with a verdict'], ['heat0 heat1 heat2 heat3', 'map: waits for others, from never to all the time'],
	['hatched', 'at the end: has not ended; amid: in the queue; process: records lost'], ['accent irq', 'outlined: its operation on all ranks; found'],
];

function makeLegend()
{
	$('legend').replaceChildren(...LEGEND.map(([ink, label]) => label ? swatch(ink, label) : add(el('span'), el('b', '', ink))));
}

function makeKeys()
{
	const close = el('button', '', 'Close');

	close.addEventListener('click', () => $('keys').close());
	$('keys').replaceChildren(add(el('div'),
		add(el('section'), el('h2', '', 'Keys and mouse'), table(KEYS.map(([keys, what]) =>
			[add(el('span'), ...keys.split(', ').flatMap((k, n) => n ? [' ', el('kbd', '', k)] : [el('kbd', '', k)])), what]))),
		add(el('section'), el('h2', '', 'Colours and marks'), table(COLOURS.map(([inks, what]) =>
			[add(el('span', 'inks'), ...inks.split(' ').map(ink => swatch(ink, ''))), what])))), add(el('p'), close));
}

/* From its top: where the window is small, its button is below what can be seen, and browsers go there. */
function showKeys()
{
	$('keys').showModal();
	$('keys').scrollTop = 0;
}

function showEmpty()
{
	$('drop').hidden = trace.records > 0 || !loading.done;
}

const NOTICES_MAX = 8;

/* What was wrong with something, until it is read or there is something new to say. */
function showNotice(list)
{
	const close = el('button', '', 'Close'), more = list.length - NOTICES_MAX;

	close.addEventListener('click', () => showNotice([]));
	$('notice').hidden = !list.length;
	$('notice').replaceChildren(add(el('div'), ...list.slice(0, NOTICES_MAX).map(words => el('p', '', words)), ...more > 0 ? [el('p', '', 'and ' + countOf(more, 'more file'))] : []), close);
}

function showProgress()
{
	const bar = $('progress');

	bar.hidden = loading.done;
	if (loading.total > 1)
		bar.value = loading.at / loading.total;
	else
		bar.removeAttribute('value');
	summary();
}

function summary()
{
	const s = $('summary'), ranks = trace.procs.filter(p => p.rank >= 0).length, nodes = new Set(trace.procs.map(p => p.boot + ' ' + p.host)).size;
	const parts = [];

	if (trace.records) {
		parts.push(nodes + (nodes === 1 ? ' node' : ' nodes'), ranks + (ranks === 1 ? ' process' : ' processes'), span(trace.t1 - trace.t0), count(trace.events.n) + ' events');
		if (trace.slices)
			parts.push(count(trace.slices) + ' slices');
	}
	s.replaceChildren(loading.done ? '' : loading.total > 1 ? 'Reading, ' + percent(loading.at / loading.total) + ': ' : 'Reading: ', el('b', '', parts.join('  \u00b7  ')));
	if (trace.unreadable)
		add(s, '  \u00b7  ', el('span', 'bad', count(trace.unreadable) + (trace.unreadable === 1 ? ' torn line' : ' torn lines')));
	const lost = [...trace.lost.values()].reduce((a, b) => a + b, 0);

	if (lost)
		add(s, '  \u00b7  ', el('span', 'bad', count(lost) + ' records lost'));
	if (loading.full)
		add(s, '  \u00b7  ', el('span', 'bad', 'not all of it'));
	if (trace.truncated)
		add(s, '  \u00b7  ', el('span', 'bad', 'damaged: ' + count(trace.truncated)));
	if (loading.done && !trace.records)
		s.textContent = 'No trace in this page';
}

/* `view` calls a page by the trace or the directory that it is of, unless it is told another name. */
function pageName()
{
	const name = location.pathname.split('/').at(-1).replace(/\.html?$/, '');

	try {
		return decodeURIComponent(name);
	} catch (err) {
		return name;
	}
}

function title()
{
	const n = trace.files.length, traces = n + ' traces', name = loading.dropped ? '' : pageName();

	if (!trace.procs.length && n !== 1)
		return 'ncclscope';
	return (n === 1 ? clean(trace.files[0].name || 'trace', 80) : name ? clean(name, 60) + ': ' + traces : traces) + ' \u2013 ncclscope';
}

/* More of the trace is there than before. */
function *changed()
{
	const all = view.all;

	trace.commList = [...trace.comms.values()];
	nameComms();
	nameRanks();
	fillFilters();
	yield* arrange();
	yield* buildHeat();
	buildLayout();
	if (!all || (view.t0 <= all[0] && view.t1 >= all[1]))
		wholeTrace();
	view.all = [trace.t0, trace.t1];
	if ($('query').value)
		runSearch(false);
	if (loading.done || panel.tab !== 'selected')
		renderPane();
	tellShown();
	showEmpty();
	document.title = title();
	redraw();
}

function resetView()
{
	Object.assign(view, {scroll: 0, selected: null, ruler: null, op: null, all: null, painted: false});
	Object.assign(search, {hits: [], at: -1});
	Object.assign(layout, {lanes: [], height: 0, by: new Map(), rows: new Map()});
	layout.closed.clear();
	heat.rows = [];
	forgetFilters();
	panel.tab = 'slow';
}

function onDrop(ev)
{
	ev.preventDefault();
	$('drop').hidden = true;
	loadFiles(ev.dataTransfer.files);
}

function listen()
{
	const lanes = $('lanes');

	window.addEventListener('keydown', onKey);
	window.addEventListener('keyup', ev => {
		held.delete(ev.key.toLowerCase());
		fast = ev.shiftKey;
	});
	window.addEventListener('blur', () => held.clear());
	lanes.addEventListener('pointerdown', onDown);
	lanes.addEventListener('pointermove', onMove);
	lanes.addEventListener('pointerup', onUp);
	lanes.addEventListener('pointerleave', hideTip);
	lanes.addEventListener('wheel', onWheel, {passive: false});
	$('heat').addEventListener('wheel', onWheel, {passive: false});
	heatDrag();
	let typing = 0;

	$('query').addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => runSearch(false), 150);
	});
	$('query').addEventListener('keydown', ev => {
		if (ev.key === 'Enter') {
			clearTimeout(typing);
			if (asked().join(' ') !== search.query || search.at < 0)
				runSearch();
			else
				stepHit(ev.shiftKey ? -1 : 1);
		} else if (ev.key === 'Escape') {
			$('lanes').focus();
		}
	});
	$('next').addEventListener('click', () => stepHit(1));
	$('prev').addEventListener('click', () => stepHit(-1));
	$('fit').addEventListener('click', wholeTrace);
	$('side').addEventListener('click', togglePanel);
	$('help').addEventListener('click', showKeys);
	window.addEventListener('dragover', ev => {
		ev.preventDefault();
		$('drop').hidden = false;
	});
	window.addEventListener('dragleave', ev => {
		if (!ev.relatedTarget)
			showEmpty();
	});
	window.addEventListener('drop', onDrop);
	new ResizeObserver(redraw).observe($('stage'));
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
}

function recolour()
{
	readColours();
	view.dark = matchMedia('(prefers-color-scheme: dark)').matches;
	heat.image = null;
	makeLegend();
	makeKeys();
	renderPane();
	redraw();
}

/* For consoles, and for our tests: nothing that the page would not show. */
Object.defineProperty(window, 'ncclscope', {value: Object.freeze({
	counts: () => Object.fromEntries([...trace.counts].map(([k, n]) => [k === '__proto__' ? 'proto' : k, n])),
	info: () => ({records: trace.records, unreadable: trace.unreadable, events: trace.events.n, states: trace.states.n, slices: trace.slices,
		procs: trace.procs.length, t0: view.t0, t1: view.t1, from: trace.t0, to: trace.t1, lanes: layout.lanes.length, scroll: view.scroll, hits: search.hits.length}),
	lanes: () => layout.lanes.map(l => ({kind: l.kind, label: l.label, y: yOf(l), h: l.h, n: l.row ? l.row.n : 0})),
	place: (lane, n) => boxOf(layout.lanes[lane].row.ev[n]) && (({x0, x1, y0, y1}) => ({x0, x1, y0, y1}))(boxOf(layout.lanes[lane].row.ev[n])),
	draw,
})});

clearTrace();
readColours();
view.dark = matchMedia('(prefers-color-scheme: dark)').matches;
atOnce(digest());
trace.commList = [];
makeFilters();
makeTabs();
makeKeys();
buildLayout();
atOnce(buildHeat());
listen();
makeLegend();
renderPane();
tellShown();
redraw();
takeTurn(loadPage);
