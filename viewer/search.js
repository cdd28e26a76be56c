// SPDX-License-Identifier: BSD-2-Clause
/*
 * Search: every word has to be in an event's name, type, verdict, thread, communicator, flow, states, or be who its thread was behind; "#49"
 * and "rank 3" are that number and no other. What is found is outlined, and gone to.
 */

const HITS_MAX = 100000;
const SIGHT_MAX = 2000; // outlines in a frame
const search = {hits: [], at: -1, query: ''};

/* What there is in eventName() but the names of functions and types: figures, arrows, "ch", "rank" and "step". */
const IN_FIGURES = /^[-#?+.\dacehknprst\u2190\u2192 ]*$/;

/*
 * A word that is asked for. No word has a space in it, so it is in one of an event's parts or in none; and most parts are shared by many events,
 * so whether it is in them is found out once.
 */
class Word {
	constructor(word)
	{
		this.word = /^(#|rank=)\d+$/.test(word) ? word + ' ' : word;
		this.figures = IN_FIGURES.test(this.word);
		this.open = this.within('unfinished');
		this.retrans = this.within('retransmission');
		this.behind = this.within('behind');
		this.types = TYPES.map(t => this.within(t.short));
		this.texts = new Uint8Array(texts.length); // 0: not known; 1: no; 2: yes
		this.threads = trace.threads.map(t => this.within(t.comm + ' ' + t.role + ' ' + t.tid));
		this.comms = trace.commList.map(c => this.within(c.hash + ' ' + c.name));
		this.ranks = new Map();
	}

	within(words)
	{
		return (words + ' ').toLowerCase().includes(this.word);
	}

	inText(nr)
	{
		if (!this.texts[nr])
			this.texts[nr] = 1 + this.within(texts[nr]);
		return this.texts[nr] === 2;
	}

	isRank(nr)
	{
		if (!this.ranks.has(nr))
			this.ranks.set(nr, this.within(' rank=' + nr));
		return this.ranks.get(nr);
	}

	inStates(i)
	{
		const e = trace.events;

		for (let k = 0; k < Math.min(e.sn[i], 8); k++)
			if (this.inText(trace.states.name[trace.stateOrder[e.s0[i] + k]]))
				return true;
		return false;
	}

	inVerdict(i)
	{
		const v = verdictOf(i);

		return v && this.within(v.code + ' ' + (v.culprit || ''));
	}

	/* In anything that an event can be found by. */
	inEvent(i)
	{
		const e = trace.events;

		return this.types[e.type[i]] || this.threads[e.thread[i]] || this.comms[e.comm[i]] || this.inText(e.func[i]) || this.inText(e.flow[i]) || this.inStates(i) ||
			(e.behind[i] > 0 && (this.behind || this.inText(e.behind[i]))) || (this.open && e.flags[i] & F_OPEN) || (this.retrans && e.flags[i] & F_RETRANS) ||
			this.isRank(rankOf(i)) || this.inVerdict(i) || (this.figures && this.within(eventName(i)));
	}
}

const asked = () => $('query').value.trim().toLowerCase().replace(/\brank\s+(\d+)/g, 'rank=$1').split(/\s+/).filter(Boolean);

function runSearch(go = true)
{
	const q = asked().map(w => new Word(w)), n = trace.byStart.length;

	search.query = asked().join(' ');
	search.hits = [];
	search.at = -1;
	for (let k = 0; q.length && k < n && search.hits.length < HITS_MAX; k++) {
		const i = trace.byStart[k];

		if (trace.events.type[i] === T_LIFE || !laneOfEvent(i))
			continue;
		if (q.every(w => w.inEvent(i)))
			search.hits.push(i);
	}
	search.starts = Float64Array.from(search.hits, i => trace.events.start[i]);
	if (go && search.hits.length)
		stepHit(1, lowerBound(search.starts, search.hits.length, view.t0) - 1);
	tellHits();
	redraw();
}

function tellHits()
{
	const n = search.hits.length, more = n === HITS_MAX ? '+' : '';

	$('hits').textContent = !search.query ? '' : !n ? 'none' : (search.at < 0 ? '' : count(search.at + 1) + ' / ') + count(n) + more;
}

function stepHit(by, from = search.at)
{
	const n = search.hits.length;

	if (!n)
		return;
	search.at = ((from + by) % n + n) % n;
	goTo(search.hits[search.at]);
	tellHits();
}

/* Those of which something can be seen. */
function hitsInSight()
{
	const e = trace.events, list = [], n = search.hits.length;

	for (let k = Math.max(0, lowerBound(search.starts, n, view.t0) - 200); k < n && list.length < SIGHT_MAX; k++) {
		const i = search.hits[k];

		if (e.start[i] > view.t1)
			break;
		const lane = e.end[i] >= view.t0 && laneOfEvent(i), y = lane && yOf(lane);

		if (lane && y > -30 && y < view.h)
			list.push(i);
	}
	return list;
}

/* Brings an event into sight, opens what it is hidden below, and selects it. */
function goTo(i)
{
	const e = trace.events, d = Math.max(e.end[i] - e.start[i], 1000);

	reveal(i);
	select({event: i});
	if (e.start[i] < view.t0 || e.end[i] > view.t1 || d * scale() < 24)
		setView(e.start[i] - 2 * d, e.end[i] + 2 * d);
	const lane = laneOfEvent(i);

	if (lane && (yOf(lane) < view.axis || yOf(lane) + lane.h > view.h))
		view.scroll = lane.y - view.h / 2 + view.axis;
	redraw();
}

function reveal(i)
{
	const e = trace.events, p = trace.procs[e.proc[i]];

	if (layout.laneOf[i] >= 0 || !matches(i))
		return;
	layout.closed.set('n' + nodeKey(p), false);
	layout.closed.set(unitKey(p, e.rank[i]), false);
	layout.closed.set('t' + partOf(trace.threads[e.thread[i]], e.rank[i]), false);
	buildLayout();
}
