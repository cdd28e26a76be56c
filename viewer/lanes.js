// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a lane looks like, by kind. A lane costs as many steps as it has columns of pixels, however much is in it: of events that
 * begin and end in one column the first is drawn, and what the kernel did in a column is the difference of two sums.
 */

const view = {t0: 0, t1: 1, all: null, scroll: 0, gutter: 208, axis: 24, w: 0, h: 0, dpr: 1, selected: null, ruler: null, op: null};
const words = []; // texts of this frame: x, y, width, text, colour

const scale = () => (view.w - view.gutter) / (view.t1 - view.t0); // CSS pixels a ns
const xOf = t => view.gutter + (t - view.t0) * scale();
const tOf = x => view.t0 + (x - view.gutter) / scale();

function say(x, y, w, s, ink)
{
	if (w > 14 && s)
		words.push([x, y, w, s, ink]);
}

/* ---- Events ------------------------------------------------------------------------------------------- */

function eventName(i)
{
	const e = trace.events, t = TYPES[e.type[i]], func = clean(texts[e.func[i]], 60);

	switch (e.type[i]) {
	case T_COLL: return func + ' #' + e.seq[i];
	case T_P2P: return func + (func === 'Recv' ? ' \u2190 ' : ' \u2192 ') + e.peer[i];
	case T_OP: return 'ch' + e.chan[i] + (e.flags[i] & F_SEND ? ' \u2192 ' : ' \u2190 ') + (e.peer[i] < 0 ? '?' : 'rank ' + e.peer[i]);
	case T_STEP: return 'step ' + e.step[i];
	}
	return t.short === 'other' ? func : t.short + (func ? ' ' + func : '') + (t.short.startsWith('Kernel') && e.chan[i] >= 0 ? ' ch' + e.chan[i] : '');
}

function inkOf(i)
{
	const e = trace.events, type = e.type[i];

	return word[type === T_OP && !(e.flags[i] & F_SEND) ? 'oprecv' : TYPES[type].ink];
}

/* States of an event, one after the other, as parts of its rectangle. */
function drawStates(i, x0, x1, y0, y1, px)
{
	const e = trace.events, s = trace.states, n = e.sn[i], from = e.s0[i], order = trace.stateOrder;
	let at = Math.max(x0, 0);

	if (x1 - x0 < 3 || !n) {
		const ink = n ? longestState(i) : null;

		rect(x0, y0, x1, y1, ink ? word[ink] : inkOf(i));
		return;
	}
	rect(x0, y0, x1, y1, inkOf(i));
	for (let k = 0; k < n; k++) {
		const st = order[from + k], to = k + 1 < n ? s.ts[order[from + k + 1]] : e.end[i], ink = STATE_INK.get(texts[s.name[st]]);
		const a = Math.max(at, Math.round(px(s.ts[st]))), b = Math.min(x1, Math.round(px(to)));

		if (b <= a || a >= raster.w)
			continue;
		if (ink)
			rect(a, y0, b, y1, word[ink]);
		at = b;
	}
}

function longestState(i)
{
	const e = trace.events, s = trace.states, n = Math.min(e.sn[i], 16), from = e.s0[i], order = trace.stateOrder;
	let best = null, most = -1;

	for (let k = 0; k < n; k++) {
		const st = order[from + k], d = (k + 1 < n ? s.ts[order[from + k + 1]] : e.end[i]) - s.ts[st];

		if (d > most) {
			most = d;
			best = STATE_INK.get(texts[s.name[st]]) || null;
		}
	}
	return best;
}

/* onCpu, runq, blocked and what is not known of an event, whether its thread has slices or not: parts of its bottom. */
function drawSplit(i, x0, x1, y0, y1)
{
	const e = trace.events, all = e.run[i] + e.runq[i] + e.blocked[i] + e.unknown[i];

	if (!(all > 0))
		return;
	const w = x1 - x0, irq = Math.min(e.irq[i], e.run[i]);
	const a = x0 + Math.round(w * irq / all), b = x0 + Math.round(w * e.run[i] / all), c = x0 + Math.round(w * (e.run[i] + e.runq[i]) / all);
	const known = x0 + Math.round(w * (all - e.unknown[i]) / all);

	rect(x0, y0, a, y1, word.irq);
	rect(a, y0, b, y1, word.run);
	rect(b, y0, c, y1, word.runq);
	rect(c, y0, known, y1, word.blocked);
	rect(known, y0, x1, y1, word.unknown);
}

function drawEvent(i, x0, x1, y0, y1, px, low)
{
	const e = trace.events, type = TYPES[e.type[i]], d = view.dpr, split = e.flags[i] & F_SCHED && x1 - x0 > 5 * d ? Math.round((low ? 2 : 4) * d) : 0;

	if (type.op) {
		const mid = Math.min(x1, Math.max(x0 + (x1 - x0 > 3 ? 1 : 0), Math.round(px(stoppedAt(i)))));

		rect(x0, y0, x1, y1, word[type.end]);
		if (trace.beginOf.has(i)) // called ahead: it waits in the queue
			hatch(mid, y0, Math.min(x1, Math.round(px(beganAt(i)))), y1, word.bg);
		rect(x0, y0, mid, y1, word[type.ink]);
		if (trace.opOf.get(i)?.verdict)
			rect(x0, y0, x1, y0 + Math.round(2 * d), word.mark);
	} else {
		drawStates(i, x0, x1, y0, y1, px);
	}
	if (split) {
		const to = schedIsCut(i) ? Math.min(x1, Math.max(x0, Math.round(px(schedTo(i))))) : x1;

		rect(x0, y1 - split - 1, to, y1 - split, word.bg);
		drawSplit(i, x0, to, y1 - split, y1);
	}
	if (e.flags[i] & F_OPEN)
		hatch(Math.max(x0, x1 - Math.round(24 * d)), y0, x1, y1, word.bg);
	if (e.flags[i] & (F_LOSS | F_RETRANS) && x1 - x0 > 3)
		rect(x0, y0, x0 + Math.round(2 * d), y1, word.retrans);
	if (x1 - x0 > 4)
		rect(x1 - 1, y0, x1, y1, word.bg);
}

function drawEvents(lane, row, top, low)
{
	const d = view.dpr, k = scale() * d, left = Math.round(view.gutter * d), e = trace.events;
	const px = t => view.gutter * d + (t - view.t0) * k, at = x => view.t0 + (x - view.gutter * d) / k;
	const y0 = Math.round((top + 1) * d), y1 = Math.round((top + lane.h - 1) * d);
	let n = lowerBound(row.end, row.n, view.t0), drawn = left, said = left;

	while (n < row.n && row.start[n] < view.t1) {
		const i = row.ev[n], a = Math.max(left, Math.floor(px(row.start[n]))), b = Math.max(a + 1, Math.round(px(e.end[i])));

		if (b > drawn) {
			drawEvent(i, a, Math.min(b, raster.w + 4), y0, y1, px, low);
			drawn = b;
			if (b - a > 34 * d && a >= said - 1) { // they may share a column
				const split = e.flags[i] & F_SCHED ? (low ? 2 : 4) : 0;

				say(a / d + 3, top + (lane.h - split) / 2, Math.min(b, raster.w) / d - a / d - 6, eventLabel(i, low), e.type[i] === T_STEP && e.sn[i] ? 'onbright' : 'plain');
				said = b;
			}
		}
		/* the next that begins behind what is drawn, or reaches beyond it: a long one may follow short ones in their column */
		n = Math.max(n + 1, Math.min(gallop(row.start, row.n, at(drawn), n), gallop(row.end, row.n, at(drawn + .5), n)));
	}
}

function eventLabel(i, low)
{
	const name = eventName(i);

	return low ? name : name + '  ' + lasted(i);
}

/* ---- The kernel ----------------------------------------------------------------------------------------- */

const sums = {run: 0, runq: 0, blocked: 0, irq: 0};

function drawKernel(lane, top)
{
	const s = lane.thread.slices, d = view.dpr, left = Math.round(view.gutter * d), k = scale() * d;
	const y0 = Math.round((top + 1) * d), y1 = Math.round((top + lane.h - 2) * d), h = y1 - y0, step = 1 / k;
	const from = Math.max(left, Math.floor(view.gutter * d + (s.t[0] - view.t0) * k));
	const end = s.t[s.n - 1] + s.d[s.n - 1], to = Math.min(raster.w, Math.ceil(view.gutter * d + (end - view.t0) * k));
	let hint = 0;

	if (lane.thread.summed !== s.n) // more has come since
		return;
	for (let x = from; x < to; x++) {
		const a = view.t0 + (x - view.gutter * d) * step, b = a + step;

		hint = sliceSums(s, a, b, sums, hint);
		hint = Math.max(0, hint - 1);
		const irq = Math.round(h * Math.min(sums.irq, sums.run) / step), run = Math.round(h * sums.run / step);
		const runq = Math.round(h * (sums.run + sums.runq) / step), all = Math.round(h * (sums.run + sums.runq + sums.blocked) / step);

		rect(x, y1 - all, x + 1, y1 - runq, word.blocked);
		rect(x, y1 - runq, x + 1, y1 - run, word.runq);
		rect(x, y1 - run, x + 1, y1 - irq, word.run);
		rect(x, y1 - irq, x + 1, y1, word.irq);
	}
	nameSlices(s, top, end);
}

function nameSlices(s, top, end)
{
	const k = scale(), least = 36 / k, first = Math.max(0, lowerBound(s.t, s.n, view.t0) - 1), last = lowerBound(s.t, s.n, Math.min(view.t1, end));

	if (last - first > 4 * view.w)
		return;
	for (let i = first; i < last; i++) {
		if (s.d[i] < least)
			continue;
		const a = Math.max(view.gutter, xOf(s.t[i])), b = Math.min(view.w, xOf(s.t[i] + s.d[i]));

		say(a + 3, top + 7.5, b - a - 6, sliceName(s, i), s.state[i] === 2 ? 'plain' : 'onbright');
	}
}

function sliceName(s, i)
{
	const who = clean(texts[s.who[i]], 40);

	if (s.state[i] === 0)
		return 'CPU ' + s.cpu[i];
	if (s.state[i] === 1)
		return who ? 'behind ' + who : 'runnable';
	return who || 'blocked';
}

/* ---- Flows ------------------------------------------------------------------------------------------------ */

/* Throughput as area (to us below, from us above would not be read: both from the bottom), round trip as line, losses as marks. */
function drawFlow(lane, top)
{
	const f = lane.flow, p = f.pts, d = view.dpr, left = Math.round(view.gutter * d), k = scale() * d;
	const px = t => Math.round(view.gutter * d + (t - view.t0) * k), y0 = Math.round((top + 12) * d), y1 = Math.round((top + lane.h - 1) * d), h = y1 - y0;
	const peak = flowPeaks(f);
	let last = null;

	rect(left, y1, raster.w, y1 + 1, word.line);
	for (let i = Math.max(0, lowerBound(p.t, p.n, view.t0)); i < p.n; i++) {
		const a = Math.max(left, px(p.t[i] - p.dt[i])), b = Math.max(a + 1, px(p.t[i]));

		if (p.t[i] - p.dt[i] > view.t1)
			break;
		if (p.dt[i] > 0 && b >= left) {
			const rx = Math.round(h * p.rx[i] / p.dt[i] / peak.rate), tx = Math.round(h * p.tx[i] / p.dt[i] / peak.rate);

			rect(a, y1 - rx, b, y1, word.rx);
			rect(a, y1 - rx - tx, b, y1 - rx, word.tx);
		}
		if (!(p.dt[i] > 0))
			last = null;
		if (p.rtt[i] > 0 && b >= left) {
			const y = y1 - 1 - Math.round((h - 2) * p.rtt[i] / peak.rtt);

			if (last !== null)
				rect(a, Math.min(last, y), a + 1, Math.max(last, y) + Math.ceil(d), word.rtt);
			rect(a, y, b, y + Math.ceil(d), word.rtt);
			last = y;
		}
		if (p.retrans[i] > 0 && !f.resent.n && b >= left)
			markResent(b, top, y0, p.retrans[i] <= p.needless[i]);
	}
	for (let i = lowerBound(f.resent.t, f.resent.n, view.t0), x = -1; i < f.resent.n && f.resent.t[i] <= view.t1; i++)
		if (px(f.resent.t[i]) !== x || !f.resent.needless[i])
			markResent(x = px(f.resent.t[i]), top, y0, f.resent.needless[i]);
	for (const drop of f.drops)
		if (drop.t >= view.t0 && drop.t <= view.t1)
			mark(px(drop.t), top, y1);
}

/* What the height of a flow's lane stands for. */
const peakWords = p => [p.rate > 1e-8 ? 'up to ' + bytes(p.rate * 1e9) + '/s' : '', p.rtt > 1 ? 'round trip up to ' + span(p.rtt) : ''].filter(Boolean);

/* Segments were sent again, all of them needlessly or not: when, or in which record if the trace tells no more. */
function markResent(x, top, y0, needless)
{
	const d = view.dpr;

	rect(x - Math.ceil(2 * d), Math.round((top + 2) * d), x + Math.ceil(d), y0, word[needless ? 'dim' : 'retrans']);
}

/* A drop, or a signal: a line through the lane. */
function mark(x, top, y1)
{
	const d = view.dpr;

	rect(x - Math.ceil(d), Math.round(top * d), x + Math.ceil(d), y1, word.retrans);
	rect(x - Math.ceil(3 * d), Math.round(top * d), x + Math.ceil(3 * d), Math.round((top + 4) * d), word.retrans);
}

function flowPeaks(f)
{
	const p = f.pts;

	if (f.peaks && f.peaks.n === p.n)
		return f.peaks;
	f.peaks = {n: p.n, rate: 1e-9, rtt: 1};
	for (let i = 0; i < p.n; i++) {
		if (p.dt[i] > 0)
			f.peaks.rate = Math.max(f.peaks.rate, (p.tx[i] + p.rx[i]) / p.dt[i]);
		f.peaks.rtt = Math.max(f.peaks.rtt, p.rtt[i]);
	}
	return f.peaks;
}
