// SPDX-License-Identifier: BSD-2-Clause
/* Keys, mouse and what they do, as in Perfetto where that has a key for it. */

const NARROWEST = 20; // ns in sight
const KEYS = [
	['W, S', 'zoom in and out, where the mouse is'], ['A, D', 'left and right; with Shift faster'], ['Wheel', 'up and down; with Shift left and right'],
	['Ctrl + wheel', 'zoom'], ['Drag', 'move'], ['Shift + drag', 'ruler: sums of what lies in it'], ['Click', 'select; on a name: fold'],
	['F', 'zoom to what is selected, or to the ruler'], ['0', 'all of the trace'], ['/', 'search'], ['N, Shift + N', 'next and previous hit'],
	['J, K', 'next and previous slow operation'], ['[, ]', 'previous and next event of the row'], ['P', 'panel'], ['Esc', 'nothing selected, no ruler'], ['?', 'this'],
];
const mouse = {x: 0, y: 0, drag: null, tip: '' /* what was in sight when it was shown */};
const held = new Set(); // of W, A, S and D
let fast = false; // with Shift

/* Beside the trace no more than half of what is in sight; ever less of it the more is, so that at the widest the trace is in the middle. */
function setView(t0, t1)
{
	const all = Math.max(NARROWEST, trace.t1 - trace.t0), centre = (trace.t0 + trace.t1) / 2, widest = all * 1.04;
	const w = Math.max(NARROWEST, Math.min(t1 - t0, widest)), beside = Math.min(w / 2, widest - w + all * .02), far = Math.max(0, (all - w) / 2 + beside);
	const at = Math.max(centre - far, Math.min((t0 + t1) / 2, centre + far));

	if (!Number.isFinite(at) || !Number.isFinite(w))
		return;
	view.t0 = at - w / 2;
	view.t1 = at + w / 2;
	redraw();
}

function wholeTrace()
{
	const pad = (trace.t1 - trace.t0) * .01 + 1;

	setView(trace.t0 - pad, trace.t1 + pad);
}

function zoom(factor, x = mouse.x)
{
	const t = tOf(Math.max(view.gutter, x));

	setView(t - (t - view.t0) * factor, t + (view.t1 - t) * factor);
}

function pan(share)
{
	const by = (view.t1 - view.t0) * share;

	setView(view.t0 + by, view.t1 + by);
}

/* ---- Keys held down move on with every frame ------------------------------------------------------------- */

let last = 0;

function glide(now)
{
	const dt = Math.min(50, now - last) / 1000, by = 1.2 * dt * (fast ? 3 : 1);

	last = now;
	if (!held.size)
		return;
	if (held.has('w'))
		zoom(Math.exp(-3 * dt));
	if (held.has('s'))
		zoom(Math.exp(3 * dt));
	if (held.has('a'))
		pan(-by);
	if (held.has('d'))
		pan(by);
	requestAnimationFrame(glide);
}

function hold(key)
{
	if (held.has(key))
		return;
	/* a tap is a step */
	if (key === 'w' || key === 's')
		zoom(key === 'w' ? .8 : 1.25);
	else
		pan(key === 'a' ? -.1 : .1);
	held.add(key);
	if (held.size === 1) {
		last = performance.now();
		requestAnimationFrame(glide);
	}
}

const bound = {
	'0': wholeTrace, home: wholeTrace, f: zoomToSelection, n: () => stepHit(1), N: () => stepHit(-1), j: () => stepSlow(1), k: () => stepSlow(-1),
	'[': () => stepRow(-1), ']': () => stepRow(1), p: togglePanel, '?': showKeys, '/': () => $('query').select(),
	Escape: () => {
		view.ruler = null;
		view.op = null;
		select(null);
	},
	ArrowLeft: () => pan(-.1), ArrowRight: () => pan(.1), ArrowUp: () => scrollBy(-60), ArrowDown: () => scrollBy(60),
	PageUp: () => scrollBy(-view.h * .8), PageDown: () => scrollBy(view.h * .8),
};

function onKey(ev)
{
	if (ev.target instanceof HTMLInputElement || ev.target instanceof HTMLSelectElement || $('keys').open || ev.ctrlKey || ev.metaKey || ev.altKey)
		return;
	const key = ev.key.length === 1 ? ev.key : ev.key, low = key.toLowerCase();

	if (ev.target.closest?.('#panel') && /^(Arrow|Page|Home| |Enter)/.test(key))
		return;
	if ('wasd'.includes(low) && low.length === 1) {
		fast = ev.shiftKey;
		hold(low);
		ev.preventDefault();
		return;
	}
	const fn = bound[key] || (ev.shiftKey ? null : bound[low]);

	if (!fn)
		return;
	fn();
	ev.preventDefault();
}

function scrollBy(dy)
{
	view.scroll += dy;
	redraw();
}

function zoomToSelection()
{
	const sel = view.selected, e = trace.events, r = view.ruler;
	let a, b;

	if (r)
		[a, b] = [Math.min(r.a, r.b), Math.max(r.a, r.b)];
	else if (sel?.event !== undefined)
		[a, b] = [e.start[sel.event], e.end[sel.event]];
	else if (sel?.slice !== undefined)
		[a, b] = [sel.thread.slices.t[sel.slice], sel.thread.slices.t[sel.slice] + sel.thread.slices.d[sel.slice]];
	else
		return;
	setView(a - (b - a) * .1, b + (b - a) * .1);
}

function stepSlow(by)
{
	const list = (trace.slow.length ? trace.slow : longest()).filter(s => s.op), at = list.findIndex(s => s.op === view.op);

	if (!list.length)
		return;
	panel.tab = 'slow';
	goToOp(list[((at < 0 && by < 0 ? 0 : at) + by + list.length) % list.length].op);
}

function stepRow(by)
{
	const i = view.selected?.event, lane = i !== undefined && laneOfEvent(i), at = lane && lane.row ? lane.row.ev.indexOf(i) : -1;

	if (at >= 0 && lane.row.ev[at + by] !== undefined)
		goTo(lane.row.ev[at + by]);
}

function togglePanel()
{
	$('panel').hidden = !$('panel').hidden;
	redraw();
}

/* ---- The mouse --------------------------------------------------------------------------------------------- */

/* What is at a place of the lanes: {lane, event | slice | point}. */
function hit(x, y)
{
	if (y < view.axis)
		return null;
	const lane = layout.lanes[laneAt(y - view.axis + view.scroll)];

	if (!lane)
		return null;
	if (x < view.gutter)
		return {lane};
	const t = tOf(x), near = 3 / scale();

	if (lane.kind === 'proc') {
		const signal = lane.proc.signals.find(s => Math.abs(s.t - t) <= near);

		if (signal)
			return {lane, signal};
		if (y - view.axis + view.scroll >= lane.y + lane.h - HELD_HEIGHT - 1) {
			const held = lane.proc.held.find(h => t >= h.from - near && t <= h.to + near);

			if (held)
				return {lane, held};
		}
	}
	if (lane.row)
		return {lane, event: eventAt(lane.row, t, near)};
	if (lane.kind === 'kernel')
		return {lane, slice: sliceAt(lane.thread.slices, t, near)};
	if (lane.kind === 'flow') {
		const p = lane.flow.pts, n = lowerBound(p.t, p.n, t);

		return {lane, point: n < p.n && t >= p.t[n] - p.dt[n] - near ? n : undefined};
	}
	return {lane};
}

function eventAt(row, t, near)
{
	const e = trace.events;
	let best, gap = near;

	for (let n = lowerBound(row.end, row.n, t - near), left = 200; n < row.n && row.start[n] <= t + near && left; n++, left--) {
		const i = row.ev[n], d = Math.max(row.start[n] - t, t - e.end[i], 0);

		if (d <= gap && (best === undefined || d < gap || row.start[n] > e.start[best])) {
			best = i;
			gap = d;
		}
	}
	return best;
}

function sliceAt(s, t, near)
{
	const n = Math.max(0, lowerBound(s.t, s.n, t) - 1);

	return t >= s.t[n] - near && t <= s.t[n] + s.d[n] + near ? n : undefined;
}

function place(ev)
{
	const box = $('lanes').getBoundingClientRect();

	return [ev.clientX - box.left, ev.clientY - box.top];
}

function onDown(ev)
{
	if (ev.button !== 0)
		return;
	const [x, y] = place(ev);

	$('lanes').focus({preventScroll: true});
	$('lanes').setPointerCapture(ev.pointerId);
	mouse.drag = {x, y, t0: view.t0, t1: view.t1, scroll: view.scroll, moved: false, ruler: ev.shiftKey && x >= view.gutter};
}

function onMove(ev)
{
	const [x, y] = place(ev), drag = mouse.drag;

	mouse.x = x;
	mouse.y = y;
	if (!drag) {
		tip(x, y);
		return;
	}
	drag.moved ||= Math.abs(x - drag.x) + Math.abs(y - drag.y) > 3;
	if (!drag.moved)
		return;
	hideTip();
	if (drag.ruler) {
		view.ruler = {a: tOf(drag.x), b: tOf(Math.max(view.gutter, x))};
		redraw();
	} else {
		const by = (drag.x - x) / scale();

		view.scroll = drag.scroll + drag.y - y;
		setView(drag.t0 + by, drag.t1 + by);
	}
}

function onUp(ev)
{
	const drag = mouse.drag;

	mouse.drag = null;
	if (!drag)
		return;
	if (drag.moved && drag.ruler) {
		$('panel').hidden = false;
		showTab('ruler');
	} else if (!drag.moved) {
		click(...place(ev));
	}
}

function click(x, y)
{
	const h = hit(x, y);

	if (!h)
		return;
	if (h.lane.key !== undefined && (x < view.gutter || (!h.lane.row && h.event === undefined))) {
		layout.closed.set(h.lane.key, !h.lane.closed);
		buildLayout();
		redraw();
	} else if (h.event !== undefined) {
		select({event: h.event});
	} else if (h.slice !== undefined) {
		select({thread: h.lane.thread, slice: h.slice});
	} else if (h.lane.kind === 'flow') {
		select({flow: h.lane.flow, point: h.point, pos: h.point === undefined ? undefined : h.lane.flow.pts.pos[h.point]});
	} else {
		select(null);
	}
}

/* Up and down; sideways with Shift, or as a pad gives it; Ctrl, which is also how a pad tells of a pinch, zooms. */
function onWheel(ev)
{
	const unit = ev.deltaMode === 1 ? 16 : ev.deltaMode === 2 ? 400 : 1, dx = ev.deltaX * unit, dy = ev.deltaY * unit;

	ev.preventDefault();
	hideTip();
	[mouse.x, mouse.y] = place(ev);
	if (ev.ctrlKey || ev.metaKey) {
		zoom(Math.exp(Math.max(-300, Math.min(300, dy)) * .004));
		return;
	}
	const side = ev.shiftKey ? dx || dy : dx;

	if (side)
		pan(side / (view.w - view.gutter));
	if (!ev.shiftKey)
		view.scroll += dy;
	redraw();
}

/* ---- The tip -------------------------------------------------------------------------------------------- */

function tipText(h)
{
	const e = trace.events;

	if (h.held)
		return heldText(h.held);
	if (h.signal)
		return clean(h.signal.what, 20) + ' from ' + clean(h.signal.by, 40) + ', ' + span(h.signal.t - trace.t0) + ' after the beginning';

	if (h.event !== undefined) {
		const v = verdictOf(h.event), st = e.flags[h.event] & F_SCHED;

		return TYPES[e.type[h.event]].short + '  ' + eventName(h.event) + '\n' + lasted(h.event) + ', rank ' + rankOf(h.event) +
			(st ? '\n' + (schedIsCut(h.event) ? 'of the first ' + span(schedTo(h.event) - e.start[h.event]) + ': ' : '') + 'running ' + span(e.run[h.event]) + ', runnable ' + span(e.runq[h.event]) + ', blocked ' + span(e.blocked[h.event]) +
				(e.unknown[h.event] > 0 ? ', not known ' + span(e.unknown[h.event]) : '') : '') +
			(v ? '\n' + clean(v.code, 40) + (who(v) ? ': ' + who(v) : '') : '');
	}
	if (h.slice !== undefined) {
		const s = h.lane.thread.slices;

		return SLICE_WORDS[s.state[h.slice]] + ', ' + span(s.d[h.slice]) + '\n' + sliceName(s, h.slice) + (s.irqNs[h.slice] > 0 ? '\ninterrupts ' + span(s.irqNs[h.slice]) : '');
	}
	if (h.point !== undefined) {
		const p = h.lane.flow.pts, n = h.point;

		if (h.lane.flow.isPort)
			return clean(h.lane.flow.name, 80) + '\n' + bytes((p.tx[n] + p.rx[n]) / Math.max(p.dt[n], 1) * 1e9) + '/s' + (p.retrans[n] ? '\nerrors: ' + count(p.retrans[n]) : '');
		return clean(h.lane.flow.name, 80) + (p.dt[n] > 0 ? '\n' + bytes((p.tx[n] + p.rx[n]) / p.dt[n] * 1e9) + '/s' : '') + ', round trip ' + span(p.rtt[n]) +
			(p.retrans[n] ? '\n' + countOf(p.retrans[n], 'segment') + ' sent again, ' + count(p.needless[n]) + ' needlessly' : '');
	}
	return h.lane.label && h.lane.label.length > 24 ? h.lane.label : '';
}

function tip(x, y)
{
	const h = hit(x, y), s = h ? tipText(h) : '', box = $('tip');

	$('lanes').style.cursor = h && (h.event !== undefined || h.slice !== undefined || h.point !== undefined || (h.lane.key !== undefined && x < view.gutter)) ? 'pointer' : 'default';
	if (!s) {
		hideTip();
		return;
	}
	mouse.tip = inSight();
	box.hidden = false;
	box.textContent = s;
	const top = $('lanes').offsetTop + y;

	box.style.left = Math.max(4, Math.min(x + 14, view.w - box.offsetWidth - 6)) + 'px';
	box.style.top = (y + box.offsetHeight + 24 < view.h ? top + 16 : top - box.offsetHeight - 10) + 'px';
}

const inSight = () => [view.t0, view.t1, view.scroll, view.h, layout.height].join();

function hideTip()
{
	$('tip').hidden = true;
}

/* What the mouse was on may have moved away below it, by a key or a search. */
function hideStaleTip()
{
	if (!$('tip').hidden && mouse.tip !== inSight())
		hideTip();
}

/* ---- The heat map: click to go there, drag for what is to be in sight -------------------------------------- */

function heatDrag()
{
	const canvas = $('heat');
	let from = null;

	const at = ev => heatT(Math.max(view.gutter, ev.clientX - canvas.getBoundingClientRect().left));

	canvas.addEventListener('pointerdown', ev => {
		canvas.setPointerCapture(ev.pointerId);
		from = {t: at(ev), x: ev.clientX, w: view.t1 - view.t0};
		if (from.w < (trace.t1 - trace.t0) * .9)
			setView(from.t - from.w / 2, from.t + from.w / 2);
	});
	canvas.addEventListener('pointermove', ev => {
		if (!from || Math.abs(ev.clientX - from.x) < 4)
			return;
		const t = at(ev);

		setView(Math.min(t, from.t), Math.max(t, from.t));
	});
	canvas.addEventListener('pointerup', () => {
		from = null;
	});
}
