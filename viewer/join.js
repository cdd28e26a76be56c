// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which parts of ranks are of one operation, and what report says of it. Collectives have a number, but replays of a CUDA graph share one, and
 * a rank that was started again counts anew: what belongs together is told by time then.
 */

const GIVE_UP_NS = 90e9; // what began so long after the other had ended is another operation

const opKey = (comm, func, seq) => comm + ' ' + func + ' ' + seq;

function newOp(i)
{
	const op = {parts: [i], repeats: null, verdict: null};

	trace.ops.push(op);
	trace.opOf.set(i, op);
	return op;
}

function addPart(op, i)
{
	op.parts.push(i);
	trace.opOf.set(i, op);
}

/* ---- Collectives ---------------------------------------------------------------------------------------- */

/*
 * Of what a rank has more than once by the same number: how far its end is from that of the nearest other. @of: the number of each of
 * @colls, which are in the order in which they ended.
 */
function gapsOf(colls, of)
{
	const e = trace.events, gaps = new Map(), last = new Map();

	colls.forEach((i, n) => {
		const whose = of[n].nr * 2 ** 32 + e.rank[i], before = last.get(whose);

		last.set(whose, i);
		if (before === undefined)
			return;
		gaps.set(before, Math.min(gaps.get(before) ?? Infinity, e.end[i] - e.end[before]));
		gaps.set(i, e.end[i] - e.end[before]);
	});
	return gaps;
}

/*
 * Parts of two ranks, of which a ended first: whether they went on together for half of the shorter one's time, or ended far nearer to each other
 * than to any replay of their own. By their ends, as all end one together, and may call it whenever they like.
 */
function areTogether(a, b, gaps)
{
	const e = trace.events, beganA = beganAt(a), beganB = beganAt(b), common = e.end[a] - Math.max(beganA, beganB);

	if (2 * common >= Math.min(e.end[a] - beganA, e.end[b] - beganB))
		return true;
	return common > -GIVE_UP_NS && 2 * (e.end[b] - e.end[a]) <= Math.min(gaps.get(a) ?? Infinity, gaps.get(b) ?? Infinity);
}

/* In the order in which they ended, by number: a new one begins where the rank is in the last one already, or that was at another time. */
function joinCollectives()
{
	const e = trace.events, colls = trace.byStart.filter(i => e.type[i] === T_COLL).sort((a, b) => e.end[a] - e.end[b]), numbers = new Map();
	const of = Array.from(colls, i => {
		const key = opKey(e.comm[i], texts[e.func[i]], e.seq[i]), number = numbers.get(key) || {nr: numbers.size, ops: []};

		numbers.set(key, number);
		return number;
	});
	const gaps = gapsOf(colls, of);

	colls.forEach((i, n) => {
		let op = of[n].ops.at(-1);

		if (op && !op.repeats?.has(e.rank[i]) && areTogether(op.parts.at(-1), i, gaps))
			addPart(op, i);
		else
			of[n].ops.push(op = newOp(i));
		if (gaps.has(i)) // no other rank can be in it twice
			(op.repeats ??= new Set()).add(e.rank[i]);
	});
	return numbers;
}

/* ---- Messages ------------------------------------------------------------------------------------------- */

/* The nth from a to b on either side. */
function joinMessages()
{
	const e = trace.events, sends = new Map(), ops = new Map();

	for (const i of trace.byStart) {
		if (e.type[i] !== T_P2P)
			continue;
		const send = texts[e.func[i]] !== 'Recv', pair = e.comm[i] + ' ' + (send ? e.rank[i] + '>' + e.peer[i] : e.peer[i] + '>' + e.rank[i]), n = sends.get(send + pair) || 0, op = ops.get(pair + ' ' + n);

		sends.set(send + pair, n + 1);
		if (op)
			addPart(op, i);
		else
			ops.set(pair + ' ' + n, newOp(i));
	}
}

/* ---- Verdicts --------------------------------------------------------------------------------------------- */

/* Of those of one number the one that took as long as the report says. */
function opTold(ops, ns)
{
	let best, least = Infinity;

	for (const op of ops) {
		const off = Math.abs(op.parts.reduce((d, i) => Math.max(d, trace.events.end[i] - beganAt(i)), 0) - ns);

		if (!best || off < least) {
			best = op;
			least = off;
		}
	}
	return best;
}

/* What report says of operations; its list of slow ones has the longest. */
function joinVerdicts(numbers)
{
	trace.slow = [];
	for (const v of trace.report && Array.isArray(trace.report.slow) ? trace.report.slow : []) {
		const comm = trace.comms.get(String(v.commHash)), ns = Number(v.duration) * 1e3;
		const op = comm && opTold(numbers.get(opKey(comm.index, String(v.func), Number(v.seq)))?.ops || [], ns);

		if (op)
			op.verdict = v;
		trace.slow.push({verdict: v, op, ns, expected: Number(v.expected) * 1e3});
	}
	trace.slow.sort((a, b) => !!b.verdict.hung - !!a.verdict.hung || b.ns - a.ns);
}

function joinOperations()
{
	trace.ops = [];
	trace.opOf = new Map();
	joinMessages();
	joinVerdicts(joinCollectives());
}
