// SPDX-License-Identifier: BSD-2-Clause
/*
 * Above the lanes: ranks by time over the whole trace, the darker the more of its operations a rank spent waiting for others. It had
 * come before its peers, or its progress thread had looked for data and found none (noData); without figures of that, and where it still
 * waits, as noData ends when data comes, steps were in RecvWait. Also the scroll bar: the part in sight is framed, and can be dragged.
 */

const HEAT_COLS = 720, HEAT_HIGH = 160;
const heat = {rows: [], h: 0, rowH: 0};

/* When the last of an operation's ranks began it, of those by one clock: looked for once, as there may be thousands. */
function lastBegan(op, clock, known)
{
	if (!known.has(op)) {
		const e = trace.events, last = new Map();

		for (const part of op.parts) {
			const its = trace.procs[e.proc[part]].clock;

			last.set(its, Math.max(last.get(its) ?? -Infinity, beganAt(part)));
		}
		known.set(op, last);
	}
	return known.get(op).get(clock) ?? -Infinity;
}

/* Of an operation of a rank: 0..1 of its time. Like report's. */
function waitShare(i, op, kids, known)
{
	const e = trace.events, d = e.end[i] - beganAt(i), early = Math.max(0, lastBegan(op, trace.procs[e.proc[i]].clock, known) - beganAt(i));
	let wait = 0, all = 0;

	for (const c of kids) {
		if (e.type[c] !== T_OP || e.flags[c] & F_SEND)
			continue;
		all += e.end[c] - e.start[c];
		wait += e.flags[c] & F_NO_DATA && !(e.flags[c] & F_OPEN) ? e.noData[c] : Math.max(e.noData[c], recvWait(c));
	}
	return d > 0 ? Math.min(1, Math.max(all > 0 ? wait / all : 0, early / d)) : 0;
}

/* The longest time in RecvWait of the steps of an operation of the proxy, as steps overlap. */
function recvWait(c)
{
	const e = trace.events, s = trace.states;
	let longest = 0;

	for (const step of childrenOf(c)) {
		for (let k = 0; k < e.sn[step]; k++) {
			const st = trace.stateOrder[e.s0[step] + k], to = k + 1 < e.sn[step] ? s.ts[trace.stateOrder[e.s0[step] + k + 1]] : e.end[step];

			if (texts[s.name[st]] === 'ProxyStepRecvWait')
				longest = Math.max(longest, to - s.ts[st]);
		}
	}
	return longest;
}

/* Children by parent, as states are by event. */
function *linkChildren()
{
	const e = trace.events, first = new Uint32Array(e.n + 1), list = new Uint32Array(e.n);

	for (let i = 0; i < e.n; i++)
		if (e.parent[i] >= 0)
			first[e.parent[i] + 1]++;
	for (let i = 0; i < e.n; i++)
		first[i + 1] += first[i];
	const at = first.slice();

	yield;
	for (let n = 0; n < e.n; n++) {
		const i = trace.byStart[n];

		if (e.parent[i] >= 0)
			list[at[e.parent[i]]++] = i;
		if (!(n & PART))
			yield;
	}
	trace.kids = {first, list};
}

function childrenOf(i, max = Infinity)
{
	const from = trace.kids.first[i];

	return [...trace.kids.list.subarray(from, Math.min(trace.kids.first[i + 1], from + max))];
}

function *buildHeat()
{
	const e = trace.events, rows = new Map(), known = new Map(), all = Math.max(1, trace.t1 - trace.t0);
	let n = 0;

	yield* linkChildren();
	for (const {proc, rank} of unitsOf(nodesOf(false)))
		rows.set(unitKey(proc, rank), {proc, rank, op: new Float64Array(HEAT_COLS), wait: new Float64Array(HEAT_COLS)});
	for (const [i, op] of trace.opOf) {
		const row = rows.get(unitKey(trace.procs[e.proc[i]], e.rank[i])), begin = beganAt(i);

		if (!(++n & 255))
			yield;
		if (!row || begin < trace.t0)
			continue;
		const share = waitShare(i, op, childrenOf(i), known);
		const c1 = Math.min(HEAT_COLS - 1, (e.end[i] - trace.t0) / all * HEAT_COLS);

		for (let c = Math.floor((begin - trace.t0) / all * HEAT_COLS); c <= c1; c++) {
			const a = Math.max(begin, trace.t0 + c * all / HEAT_COLS), b = Math.min(e.end[i], trace.t0 + (c + 1) * all / HEAT_COLS);

			row.op[c] += Math.max(0, b - a);
			row.wait[c] += Math.max(0, b - a) * share;
		}
	}
	heat.rows = [...rows.values()];
	const high = heat.rows.length * Math.max(2, Math.min(13, Math.floor(104 / Math.max(1, heat.rows.length))));

	heat.rowH = Math.min(HEAT_HIGH, high) / Math.max(1, heat.rows.length);
	heat.h = Math.max(26, Math.min(HEAT_HIGH, high)) + 18;
	heat.image = null;
	$('heat').style.height = heat.h + 'px';
}

const steps = ['heat0', 'heat1', 'heat2', 'heat3'];

function heatInk(share)
{
	const at = Math.min(2.999, Math.max(0, share) * 3), n = Math.floor(at), f = at - n, a = word[steps[n]], b = word[steps[n + 1]];
	const mix = shift => Math.round((a >>> shift & 255) * (1 - f) + (b >>> shift & 255) * f);

	return (255 << 24 | mix(16) << 16 | mix(8) << 8 | mix(0)) >>> 0;
}

/*
 * The map itself changes with the trace only. Of more ranks than it has lines, those that share one are as light as the lightest: whom all the
 * others wait for waits least.
 */
function heatImage()
{
	const n = Math.max(1, Math.min(heat.rows.length, Math.floor(HEAT_HIGH * view.dpr)));
	const image = new ImageData(HEAT_COLS, n), px = new Uint32Array(image.data.buffer), least = new Float64Array(n * HEAT_COLS).fill(Infinity);
	const canvas = new OffscreenCanvas(HEAT_COLS, n);

	heat.rows.forEach((row, r) => {
		const at = Math.floor(r * n / heat.rows.length) * HEAT_COLS;

		for (let c = 0; c < HEAT_COLS; c++)
			if (row.op[c] > 0)
				least[at + c] = Math.min(least[at + c], row.wait[c] / row.op[c]);
	});
	least.forEach((share, at) => {
		px[at] = share < Infinity ? heatInk(share) : word.bg;
	});
	canvas.getContext('2d').putImageData(image, 0, 0);
	return canvas;
}

const heatX = t => view.gutter + (t - trace.t0) / Math.max(1, trace.t1 - trace.t0) * (view.w - view.gutter);
const heatT = x => trace.t0 + (x - view.gutter) / (view.w - view.gutter) * Math.max(1, trace.t1 - trace.t0);

function drawHeat()
{
	const ctx = fitCanvas($('heat'), view.w, heat.h);

	ctx.setTransform(view.dpr, 0, 0, view.dpr, 0, 0);
	ctx.fillStyle = colour.bg;
	ctx.fillRect(0, 0, view.w, heat.h);
	if (!heat.rows.length || !Number.isFinite(trace.t0))
		return;
	heat.image ||= heatImage();
	ctx.imageSmoothingEnabled = false;
	ctx.drawImage(heat.image, view.gutter, 16, view.w - view.gutter, heat.rows.length * heat.rowH);
	drawHeatNames(ctx);
	drawSlowMarks(ctx);
	const x0 = Math.max(view.gutter, heatX(view.t0)), x1 = Math.min(view.w, heatX(view.t1));

	/* what is not in sight is paler */
	ctx.globalAlpha = .4;
	ctx.fillStyle = colour.bg;
	ctx.fillRect(view.gutter, 14, x0 - view.gutter, heat.h);
	ctx.fillRect(x1, 14, view.w - x1, heat.h);
	ctx.globalAlpha = 1;
	ctx.strokeStyle = colour.accent;
	ctx.lineWidth = 1.5;
	ctx.strokeRect(x0 + .5, .75, Math.max(2, x1 - x0 - 1), heat.h - 1.5);
}

function drawHeatNames(ctx)
{
	ctx.font = '10px ' + FONT;
	ctx.textBaseline = 'middle';
	ctx.fillStyle = colour.dim;
	ctx.fillText('waiting for others, by rank', 10, 8);
	const several = new Set(heat.rows.map(row => row.proc.within).filter(comm => comm >= 0)).size > 1, at = n => 16.5 + n * heat.rowH;

	if (heat.rowH >= 9)
		heat.rows.forEach((row, r) => ctx.fillText(heatName(row, several), 21, at(r + .5)));
	else if (several)
		eachGroup((name, from, to) => ctx.fillText(name, 21, at((from + to) / 2)));
}

/* Ranks of several jobs have the same numbers: there with the communicator in which that is their rank. */
function heatName({proc, rank}, several)
{
	if (rank < 0)
		return '[' + proc.pid + ']';
	return 'rank ' + rank + (several && proc.within >= 0 ? ' of ' + shorten(trace.commList[proc.within].label, 24) : '');
}

/* Where there is no room for ranks' names: fn(communicator, its first row, the one behind its last) of those that have room for theirs. */
function eachGroup(fn)
{
	for (let from = 0, to; from < heat.rows.length; from = to) {
		const {within} = heat.rows[from].proc;

		for (to = from + 1; to < heat.rows.length && heat.rows[to].proc.within === within;)
			to++;
		if (within >= 0 && (to - from) * heat.rowH >= 9)
			fn(shorten(trace.commList[within].label, 32), from, to);
	}
}

/* Where slow operations are. */
function drawSlowMarks(ctx)
{
	ctx.fillStyle = colour.mark;
	for (const s of trace.slow) {
		if (!s.op)
			continue;
		const x = heatX(opSpan(s.op)[0]);

		ctx.beginPath();
		ctx.moveTo(x - 4, 4);
		ctx.lineTo(x + 4, 4);
		ctx.lineTo(x, 12);
		ctx.fill();
	}
}
