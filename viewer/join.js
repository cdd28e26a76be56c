// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which parts of ranks are of one operation, and what report says of it. Collectives have a number, but replays of a CUDA graph share one, and
 * a rank that was started again counts anew; messages have none. What belongs together is told by time then, much as in the report.
 */

const GIVE_UP_NS = 90e9; // what began so long after the other had ended is another operation
const TOLD_NS = 1000; // what the report says of a message is as exact as the trace
const CLOCKS_NS = 10e9; // real clocks of nodes are no further apart, or nothing can be said

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

/* Its number is not that of other ranks: which one it is on those nobody knows. */
const isAlone = i => trace.events.flags[i] & F_ALONE;

/*
 * In the order in which they ended, by number: a new one begins where the rank is in the last one already, or that was at another time. What is
 * one rank's alone is never the last one.
 */
function joinCollectives()
{
	const e = trace.events, colls = trace.byStart.filter(i => e.type[i] === T_COLL).sort((a, b) => e.end[a] - e.end[b]), numbers = new Map();
	const of = Array.from(colls, i => {
		const key = opKey(e.comm[i], texts[e.func[i]], e.seq[i]), number = numbers.get(key) || {nr: numbers.size, ops: [], last: null};

		numbers.set(key, number);
		return number;
	});
	const gaps = gapsOf(colls, of);

	colls.forEach((i, n) => {
		const number = of[n];
		let op = isAlone(i) ? null : number.last;

		if (op && !op.repeats?.has(e.rank[i]) && areTogether(op.parts.at(-1), i, gaps))
			addPart(op, i);
		else
			number.ops.push(op = newOp(i));
		if (isAlone(i))
			return;
		number.last = op;
		if (gaps.has(i)) // no other rank can be in it twice
			(op.repeats ??= new Set()).add(e.rank[i]);
	});
	return numbers;
}

/* ---- Messages ------------------------------------------------------------------------------------------- */

/* Its process, and which of its recordings (record --every): in another one messages are counted anew. */
const recordingOf = i => trace.procs.length * lowerBound(trace.headers, trace.headers.length, trace.events.pos[i]) + trace.events.proc[i];

/* By how much their clocks may be wrong about which of two came first. */
function clocksDoubt(a, b)
{
	const p = trace.procs[trace.events.proc[a]], q = trace.procs[trace.events.proc[b]];

	if (p.boot === q.boot)
		return 0;
	return p.clock === q.clock ? num(p.clockError) + num(q.clockError) : CLOCKS_NS;
}

/* Before it began all connections of its group were made; what a graph replays was called once for all, before. */
function calledAt(i)
{
	const e = trace.events, call = e.parent[i];

	return call >= 0 && e.type[call] === T_P2P_API && !(e.flags[call] & F_CAPTURED) ? Math.min(e.start[i], e.start[call]) : e.start[i];
}

/*
 * From one rank to another messages are received in the order in which they are sent. One end alone waits for the other, until it cannot come any
 * more: a Recv that had ended before; a Send likewise, before the Recv was called, but for one amid others, whose bytes may wait for their receiver.
 */
class Connection {
	constructor()
	{
		this.waiting = []; // all of them sent, or all received; those before `first` wait no longer
		this.first = 0;
		this.sends = false;
		this.paired = false; // the last one was: then the next ones belong together, too
		this.recordings = [-1, -1]; // of who receives, sends
	}

	giveUp()
	{
		this.first++;
		this.paired = false;
	}

	/* Of another recording, or near to what was lost: which of them belong together has to be found again. */
	begin(i, send)
	{
		const recording = recordingOf(i);

		if (trace.events.flags[i] & F_LOSS)
			this.paired = false;
		if (this.recordings[+send] === recording)
			return;
		this.recordings[+send] = recording;
		this.paired = false;
		if (this.sends === send)
			this.first = this.waiting.length;
	}

	/* The one that has waited for it; undefined: none. */
	otherEnd(i, send)
	{
		const e = trace.events;

		for (; this.sends !== send && this.first < this.waiting.length; this.giveUp()) {
			const o = this.waiting[this.first];

			if ((this.paired && !send) || e.end[o] + clocksDoubt(o, i) >= (send ? e.start[i] : calledAt(i)))
				return this.waiting[this.first++];
		}
		return undefined;
	}

	add(i, send)
	{
		this.begin(i, send);
		const o = this.otherEnd(i, send);

		if (o !== undefined) {
			this.paired = true;
			addPart(trace.opOf.get(o), i);
			return;
		}
		if (this.first === this.waiting.length) {
			this.waiting = [];
			this.first = 0;
		}
		this.sends = send;
		this.waiting.push(i);
		newOp(i);
	}
}

function joinMessages()
{
	const e = trace.events, conns = new Map();

	for (const i of trace.byStart) {
		if (e.type[i] !== T_P2P)
			continue;
		const send = texts[e.func[i]] !== 'Recv', key = e.comm[i] + ' ' + (send ? e.rank[i] + '>' + e.peer[i] : e.peer[i] + '>' + e.rank[i]);

		if (e.rank[i] < 0 || e.peer[i] < 0) { // nobody knows between whom
			newOp(i);
			continue;
		}
		if (!conns.has(key))
			conns.set(key, new Connection());
		conns.get(key).add(i, send);
	}
}

/* ---- Verdicts --------------------------------------------------------------------------------------------- */

/* The one that took as long as the report says. */
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

/*
 * Messages have no number but the report's own: it is the one that took as long, to the us, and no other, whether or not it waited for those
 * before it; of those that never ended the first that its rank has to do with.
 */
function messageTold(messages, v, ns)
{
	const e = trace.events, of = i => v.rank === undefined || rankOf(i) === v.rank || e.peer[i] === v.rank;

	if (v.hung === true)
		return messages.filter(op => !op.verdict && op.parts.some(i => e.flags[i] & F_OPEN && of(i))).sort((x, y) => e.start[x.parts[0]] - e.start[y.parts[0]])[0];
	return messages.find(op => op.parts.some(i => Math.abs(e.end[i] - e.start[i] - ns) <= TOLD_NS || Math.abs(e.end[i] - beganAt(i) - ns) <= TOLD_NS));
}

/* What report says of operations; its list of slow ones has the longest. */
function joinVerdicts(numbers)
{
	const messages = trace.ops.filter(op => trace.events.type[op.parts[0]] === T_P2P);

	trace.slow = [];
	for (const v of trace.report && Array.isArray(trace.report.slow) ? trace.report.slow : []) {
		const comm = trace.comms.get(String(v.commHash)), ns = Number(v.duration) * 1e3;
		const op = comm && (v.func === 'SendRecv' ? messageTold(messages.filter(m => trace.events.comm[m.parts[0]] === comm.index), v, ns) :
			opTold(numbers.get(opKey(comm.index, String(v.func), Number(v.seq)))?.ops || [], ns));

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
