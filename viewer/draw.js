// SPDX-License-Identifier: BSD-2-Clause
/* A frame: lanes in sight into the raster, then what the canvas draws over them: names, the axis, links, the ruler. */

const FONT = 'system-ui, "DejaVu Sans", sans-serif';
let pending = false;

/* At most once a frame. */
function redraw()
{
	if (pending)
		return;
	pending = true;
	requestAnimationFrame(() => {
		pending = false;
		draw();
	});
}

function fitCanvas(canvas, w, h)
{
	const d = view.dpr, cw = Math.max(1, Math.round(w * d)), ch = Math.max(1, Math.round(h * d));

	if (canvas.width !== cw || canvas.height !== ch) {
		canvas.width = cw;
		canvas.height = ch;
	}
	return canvas.getContext('2d', {alpha: false});
}

function draw()
{
	const canvas = $('lanes'), box = canvas.getBoundingClientRect();

	view.dpr = Math.min(4, window.devicePixelRatio || 1);
	view.w = Math.max(view.gutter + 50, box.width);
	view.h = box.height;
	view.scroll = Math.max(0, Math.min(view.scroll, layout.height - view.h + view.axis + 40));
	hideStaleTip();
	const ctx = fitCanvas(canvas, view.w, view.h);

	rasterSize(canvas.width, canvas.height);
	rasterClear(word.bg);
	words.length = 0;
	drawLanes();
	ctx.setTransform(1, 0, 0, 1, 0, 0);
	ctx.putImageData(raster.image, 0, 0);
	ctx.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
	drawWords(ctx);
	drawSelection(ctx);
	drawLinks(ctx);
	drawLabels(ctx);
	drawRuler(ctx);
	drawAxis(ctx);
	drawHeat();
	if (trace.records && !view.painted) {
		view.painted = true;
		performance.mark('ncclscope-first-paint');
	}
}

const yOf = lane => lane.y - view.scroll + view.axis;

/* fn(lane, its top in CSS pixels) of each in sight. */
function eachLane(fn)
{
	for (let n = laneAt(view.scroll); n < layout.lanes.length; n++) {
		const lane = layout.lanes[n], top = yOf(lane);

		if (top >= view.h)
			break;
		fn(lane, top);
	}
}

function drawLanes()
{
	const d = view.dpr;

	eachLane((lane, top) => {
		const y0 = Math.round(top * d), y1 = Math.round((top + lane.h) * d);

		switch (lane.kind) {
		case 'node': rect(0, y0, raster.w, y1, word.head); break;
		case 'proc':
			rect(0, y0, raster.w, y1, word.head);
			rect(0, y0, raster.w, y0 + 1, word.line);
			drawEvents(lane, lane.row, top, false);
			drawLosses(lane.proc, y0, y1);
			drawSignals(lane.proc, top, y1);
			drawHeld(lane.proc, y1);
			break;
		case 'thread':
		case 'flows': rect(0, y0, raster.w, y0 + 1, word.line); break;
		case 'events': drawEvents(lane, lane.row, top, lane.low); break;
		case 'kernel': drawKernel(lane, top); break;
		case 'flow': drawFlow(lane, top); break;
		}
	});
	drawGrid();
}

/* Where records were lost. */
function drawLosses(p, y0, y1)
{
	for (const l of p.lost)
		if (l.to >= view.t0 && l.from <= view.t1)
			hatch(Math.max(Math.round(view.gutter * view.dpr), Math.round(xOf(l.from) * view.dpr)), y0, Math.min(raster.w, Math.round(xOf(l.to) * view.dpr) + 2), y1, word.retrans);
}

function drawSignals(p, top, y1)
{
	for (const s of p.signals)
		if (s.t >= view.t0 && s.t <= view.t1)
			mark(Math.round(xOf(s.t) * view.dpr), top, y1);
}

const HELD_HEIGHT = 4;

/* When its GPU's clocks were held down: along the lower edge. */
function drawHeld(p, y1)
{
	const d = view.dpr;

	for (const h of p.held)
		if (h.to >= view.t0 && h.from <= view.t1)
			rect(Math.max(Math.round(view.gutter * d), Math.round(xOf(h.from) * d)), y1 - Math.round(HELD_HEIGHT * d), Math.round(xOf(h.to) * d) + 1, y1, word.retrans);
}

/* Steps of 1, 2 and 5. */
function tickStep()
{
	const least = 90 / scale(), ten = 10 ** Math.floor(Math.log10(least));

	return [1, 2, 5, 10].map(m => m * ten).find(s => s >= least) || 10 * ten;
}

function eachTick(fn)
{
	const step = tickStep(), from = trace.t0 + Math.ceil((view.t0 - trace.t0) / step) * step;

	if (!Number.isFinite(from) || !(step > 0))
		return;
	for (let n = 0, t = from; t < view.t1 && n < 100; n++, t = from + n * step)
		fn(t, step);
}

/* Between lanes only, so that nothing of them is lost. */
function drawGrid()
{
	const d = view.dpr, {px, w, h} = raster, bg = word.bg, head = word.head;

	eachTick(t => {
		const x = Math.round(xOf(t) * d);

		if (x < view.gutter * d || x >= w)
			return;
		for (let at = Math.round(view.axis * d) * w + x; at < w * h; at += w)
			if (px[at] === bg || px[at] === head)
				px[at] = word.line;
	});
}

/* Times from the beginning of the trace, to as many digits as ticks differ in. */
function tickLabel(t, step)
{
	const v = t - trace.t0, unit = step >= 1e9 ? [1e9, ' s'] : step >= 1e6 && Math.abs(v) < 1e10 ? [1e6, ' ms'] :
		step >= 1e3 && Math.abs(v) < 1e8 ? [1e3, ' \u00b5s'] : step >= 1 && Math.abs(v) < 1e6 ? [1, ' ns'] : [1e9, ' s'];

	return (v / unit[0]).toFixed(Math.max(0, Math.min(12, Math.ceil(-Math.log10(step / unit[0]) - 1e-9)))) + unit[1];
}

function drawAxis(ctx)
{
	ctx.fillStyle = colour.bg;
	ctx.fillRect(0, 0, view.w, view.axis);
	ctx.fillStyle = colour.line;
	ctx.fillRect(0, view.axis - 1, view.w, 1);
	if (!view.all || view.all[0] > view.all[1]) // no time is known yet
		return;
	ctx.font = '11px ' + FONT;
	ctx.textBaseline = 'middle';
	eachTick((t, step) => {
		const x = xOf(t);

		ctx.fillStyle = colour.line;
		ctx.fillRect(Math.round(x), view.axis - 6, 1, 6);
		ctx.fillStyle = colour.dim;
		if (x + 50 < view.w)
			ctx.fillText(tickLabel(t, step), x + 4, view.axis / 2);
	});
	ctx.fillStyle = colour.bg;
	ctx.fillRect(0, 0, view.gutter, view.axis - 1);
	ctx.fillStyle = colour.dim;
	ctx.fillText(span(view.t1 - view.t0) + ' in sight', 10, view.axis / 2);
}

const glyph = 5.7; // of 10.5 px text, roughly: measuring it takes longer than drawing it

function drawWords(ctx)
{
	ctx.font = '10.5px ' + FONT;
	ctx.textBaseline = 'middle';
	for (const [x, y, w, s, ink] of words) {
		const n = Math.floor(w / glyph), cut = s.length > n ? s.slice(0, Math.max(1, n - 2)) + '\u2026' : s; // as wide as two

		ctx.fillStyle = ink === 'plain' ? colour.text : '#10161d';
		ctx.fillText(cut, x, y);
	}
}

function drawLabels(ctx)
{
	ctx.save();
	ctx.beginPath();
	ctx.rect(0, view.axis, view.gutter, view.h);
	ctx.clip();
	ctx.fillStyle = colour.bg;
	ctx.fillRect(0, view.axis, view.gutter, view.h);
	ctx.textBaseline = 'middle';
	eachLane((lane, top) => {
		if (lane.kind !== 'proc' && lane.kind !== 'node')
			return;
		ctx.fillStyle = colour.head;
		ctx.fillRect(0, top, view.gutter, lane.h);
	});
	ctx.fillStyle = colour.line;
	ctx.fillRect(view.gutter - 1, view.axis, 1, view.h);
	ctx.restore();
	ctx.save();
	ctx.beginPath();
	ctx.rect(0, view.axis, view.w, view.h);
	ctx.clip();
	ctx.textBaseline = 'middle';
	eachLane((lane, top) => drawLabel(ctx, lane, top));
	ctx.restore();
}

/* Of heads that have nothing beside them the label may be as long as it is. */
function drawLabel(ctx, lane, top)
{
	const indent = 10 + lane.depth * 11, head = lane.key !== undefined, flow = lane.kind === 'flow', y = top + (flow ? 7 : Math.min(lane.h, 24) / 2);
	const [font, glyphs] = lane.kind === 'proc' ? ['600 12px ', 6.7] : head ? ['11.5px ', 6.2] : ['10.5px ', 5.7];
	const room = Math.floor(((head && !lane.row ? view.w : view.gutter) - indent - 14) / glyphs);

	if (head)
		triangle(ctx, indent - 4, y, lane.closed);
	ctx.font = font + FONT;
	ctx.fillStyle = head || flow ? colour.text : colour.dim;
	ctx.fillText(shorten(lane.label, room), indent + (head ? 6 : 0), y + .5);
	ctx.fillStyle = colour.dim;
	if (flow)
		peakWords(flowPeaks(lane.flow)).forEach((s, n) => ctx.fillText(s, indent, y + 11.5 * (n + 1)));
}

function triangle(ctx, x, y, closed)
{
	ctx.fillStyle = colour.dim;
	ctx.beginPath();
	if (closed) {
		ctx.moveTo(x - 2, y - 4);
		ctx.lineTo(x + 3, y);
		ctx.lineTo(x - 2, y + 4);
	} else {
		ctx.moveTo(x - 4, y - 2);
		ctx.lineTo(x + 4, y - 2);
		ctx.lineTo(x, y + 3);
	}
	ctx.fill();
}

/* ---- Over the lanes -------------------------------------------------------------------------------------- */

function inside(ctx, fn)
{
	ctx.save();
	ctx.beginPath();
	ctx.rect(view.gutter, view.axis, view.w - view.gutter, view.h - view.axis);
	ctx.clip();
	fn();
	ctx.restore();
}

/* {x0, x1, y0, y1} of an event, or of what it is hidden below. */
function boxOf(i)
{
	const lane = laneOfEvent(i), e = trace.events;

	if (!lane)
		return null;
	const top = yOf(lane), x0 = xOf(e.start[i]);

	return {x0, x1: Math.max(x0 + 2, xOf(e.end[i])), y0: top + 1, y1: top + Math.min(lane.h, 24) - 1, lane};
}

function outline(ctx, b, ink, width)
{
	ctx.strokeStyle = ink;
	ctx.lineWidth = width;
	const x0 = Math.max(b.x0, view.gutter - 4), x1 = Math.min(b.x1, view.w + 4);

	ctx.strokeRect(x0 - .5, b.y0 - .5, x1 - x0 + 1, b.y1 - b.y0 + 1);
}

function drawSelection(ctx)
{
	const sel = view.selected;

	inside(ctx, () => {
		if (search.hits.length)
			for (const i of hitsInSight())
				outline(ctx, boxOf(i) || {x0: -9, x1: -9, y0: 0, y1: 0}, colour.irq, 1.5);
		if (sel?.event !== undefined) {
			const b = boxOf(sel.event);

			if (b)
				outline(ctx, b, colour.text, 2);
		} else if (sel?.slice !== undefined) {
			const lane = layout.lanes.find(l => l.kind === 'kernel' && l.thread === sel.thread), s = sel.thread.slices;

			if (lane)
				outline(ctx, {x0: xOf(s.t[sel.slice]), x1: xOf(s.t[sel.slice] + s.d[sel.slice]), y0: yOf(lane) + 1, y1: yOf(lane) + lane.h - 1}, colour.text, 2);
		}
	});
}

const LINKS_MAX = 200; // of children

/* The selected event to its parent, to its children, and one operation over the ranks. */
function drawLinks(ctx)
{
	const i = view.selected?.event;

	if (i === undefined)
		return;
	const e = trace.events, op = trace.opOf.get(e.op[i]);

	inside(ctx, () => {
		ctx.lineWidth = 1;
		ctx.strokeStyle = colour.dim;
		if (e.parent[i] >= 0)
			link(ctx, boxOf(e.parent[i]), boxOf(i));
		for (const c of childrenOf(i, LINKS_MAX))
			link(ctx, boxOf(i), boxOf(c));
		if (!op)
			return;
		const parts = op.parts.map(boxOf).filter(b => b).sort((a, b) => a.y0 - b.y0);

		ctx.strokeStyle = colour.accent;
		ctx.lineWidth = 1.5;
		for (let n = 0; n < parts.length; n++) {
			outline(ctx, parts[n], colour.accent, 1.5);
			if (n) {
				join(ctx, parts[n - 1].x0, parts[n - 1].y1, parts[n].x0, parts[n].y0);
				join(ctx, parts[n - 1].x1, parts[n - 1].y1, parts[n].x1, parts[n].y0);
			}
		}
	});
}

function link(ctx, from, to)
{
	if (from && to && from.lane !== to.lane)
		join(ctx, Math.max(from.x0, Math.min(from.x1, to.x0)), from.y1 <= to.y0 ? from.y1 : from.y0, to.x0, from.y1 <= to.y0 ? to.y0 : to.y1);
}

function join(ctx, x0, y0, x1, y1)
{
	const bend = (y1 - y0) / 2;

	if (Math.max(x0, x1) < view.gutter || Math.min(x0, x1) > view.w)
		return;
	ctx.beginPath();
	ctx.moveTo(x0, y0);
	ctx.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
	ctx.stroke();
}

function drawRuler(ctx)
{
	const r = view.ruler;

	if (!r)
		return;
	const x0 = Math.max(view.gutter, xOf(Math.min(r.a, r.b))), x1 = Math.min(view.w, xOf(Math.max(r.a, r.b)));

	if (x1 <= x0)
		return;
	ctx.fillStyle = colour.shade;
	ctx.fillRect(x0, view.axis, x1 - x0, view.h);
	ctx.fillStyle = colour.accent;
	ctx.fillRect(x0, view.axis, 1, view.h);
	ctx.fillRect(x1 - 1, view.axis, 1, view.h);
	const s = span(Math.abs(r.b - r.a)), w = s.length * 6.6 + 12, x = Math.max(view.gutter, Math.min(view.w - w, (x0 + x1 - w) / 2));

	ctx.fillRect(x, view.axis + 4, w, 17);
	ctx.font = '600 11px ' + FONT;
	ctx.fillStyle = colour.bg;
	ctx.textBaseline = 'middle';
	ctx.fillText(s, x + 6, view.axis + 13);
}
