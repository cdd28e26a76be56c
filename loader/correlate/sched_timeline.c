// SPDX-License-Identifier: BSD-2-Clause
/* Threads and CPUs over time; see sched_timeline.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sched_past.h"
#include "sched_priv.h"
#include "sched_ring.h"
#include "sched_sleeps.h"

#define HELD_MAX  (8u << 20) /* slices of all threads; beyond, each keeps less */
#define HELD_EACH 4096

#define THREADS_MAX                                                                                \
	(1u << 17) /* that live, as far as we were told; BPF follows no more than 98,304 */

#define NET_RX_SOFTIRQ 3 /* as in /proc/softirqs */

static struct sched_irq *irq_at(const struct sched_thread *t, uint64_t n)
{
	return &t->irqs.at[n & (t->irqs.size - 1)];
}

/* ---- Threads ------------------------------------------------------------------------------------ */

struct sched_thread *sched__find(const struct sched *s, uint32_t tid)
{
	struct sched_thread *t;

	HASH_FIND_INT(s->threads, &tid, t);
	return t;
}

static struct sched_thread *thread_new(struct sched *s, uint32_t tid, uint32_t tgid)
{
	struct sched_thread *t =
		HASH_COUNT(s->threads) < THREADS_MAX ? calloc(1, sizeof(*t)) : NULL;

	if (!t)
		return NULL;
	t->tid = t->ns_tid = tid;
	t->tgid = tgid;
	t->last_cpu = SCHED_NO_CPU;
	t->refs = 1; /* while it lives */
	HASH_ADD_INT(s->threads, tid, t);
	if (!HASH_ADDED(hh, t)) {
		free(t);
		return NULL;
	}
	return t;
}

struct sched_thread *sched_thread__get(struct sched_thread *t)
{
	if (t)
		t->refs++;
	return t;
}

void sched_thread__put(struct sched *s, struct sched_thread *t)
{
	if (!t || --t->refs)
		return;
	s->nslices -= t->slices.end - t->slices.first;
	s->room -= t->slices.size * sizeof(*t->slices.at) + t->irqs.size * sizeof(*t->irqs.at) +
		   t->waits.size * sizeof(*t->waits.at) + t->past.size * sizeof(*t->past.at);
	tallies_forget(s->tallies, t);
	sleeps__free(s, t);
	free(t->slices.at);
	free(t->irqs.at);
	free(t->waits.at);
	free(t->past.at);
	free(t);
}

/* ---- Sums --------------------------------------------------------------------------------------- */

/* What `ns` of a slice from its begin on add; the switch with which it began is added apart. */
static void add_time(struct sched_sums *sums, const struct sched_slice *sl, uint64_t ns)
{
	switch (sl->state) {
	case SCHED_RUN:
		sums->on_cpu_ns += ns;
		break;
	case SCHED_RUNQ:
		sums->runq_ns += ns;
		sums->throttled_ns += ns < sl->throttled_ns ? ns : sl->throttled_ns;
		break;
	case SCHED_BLOCKED:
		sums->blocked_ns += ns;
		break;
	default:
		break;
	}
}

static void sub_time(struct sched_sums *sums, const struct sched_slice *sl, uint64_t ns)
{
	struct sched_sums part = {0}, rest = {0};

	add_time(&part, sl, ns);
	add_difference(&rest, sums, &part);
	*sums = rest;
}

/* A cursor is a mark at the begin of a slice, whose own switch is in the sums. */
static void cursor_next(const struct sched_thread *t, struct sched_mark *c)
{
	const struct sched_slice *sl = slice_at(t, c->slice);

	add_time(&c->sums, sl, slice_end(t, c->slice) - sl->start_ns);
	sl = slice_at(t, ++c->slice);
	c->sums.switches += sl->left;
	c->sums.preemptions += sl->preempted;
	c->sums.migrations += sl->migrated;
}

static void cursor_back(const struct sched_thread *t, struct sched_mark *c)
{
	const struct sched_slice *sl = slice_at(t, c->slice);

	c->sums.switches -= sl->left;
	c->sums.preemptions -= sl->preempted;
	c->sums.migrations -= sl->migrated;
	sl = slice_at(t, --c->slice);
	sub_time(&c->sums, sl, slice_end(t, c->slice) - sl->start_ns);
}

static void cursor_next_irq(const struct sched_thread *t, struct sched_mark *c)
{
	const struct sched_irq *irq = irq_at(t, c->irq++);

	c->sums.irq_ns += irq->dur_ns;
	c->sums.net_rx_ns += irq->net_rx ? irq->dur_ns : 0;
}

static void cursor_back_irq(const struct sched_thread *t, struct sched_mark *c)
{
	const struct sched_irq *irq = irq_at(t, --c->irq);

	c->sums.irq_ns -= irq->dur_ns;
	c->sums.net_rx_ns -= irq->net_rx ? irq->dur_ns : 0;
}

/* Those before its slice. */
static void cursor_catch_irqs(const struct sched_thread *t, struct sched_mark *c)
{
	uint64_t ns = slice_at(t, c->slice)->start_ns;

	while (c->irq < t->irqs.end && irq_at(t, c->irq)->start_ns < ns)
		cursor_next_irq(t, c);
}

/* Records come in order, so marks do, and a thread's cursor seldom has to go back. */
static void cursor_seek(const struct sched_thread *t, struct sched_mark *c, uint64_t ns)
{
	while (c->slice + 1 < t->slices.end && slice_at(t, c->slice + 1)->start_ns <= ns)
		cursor_next(t, c);
	while (c->slice > t->slices.first && slice_at(t, c->slice)->start_ns > ns)
		cursor_back(t, c);
	while (c->irq < t->irqs.end && irq_at(t, c->irq)->start_ns < ns)
		cursor_next_irq(t, c);
	while (c->irq > t->irqs.first && irq_at(t, c->irq - 1)->start_ns >= ns)
		cursor_back_irq(t, c);
}

/* The mark at `ns`, which lies in the cursor's slice. */
static void cursor_mark(const struct sched_thread *t, const struct sched_mark *c, uint64_t ns,
			struct sched_mark *mark)
{
	const struct sched_slice *sl = slice_at(t, c->slice);
	uint64_t at = ns;

	*mark = *c;
	mark->ns = ns;
	mark->early = ns < sl->start_ns;
	if (at > slice_certain(t, c->slice))
		at = slice_certain(t, c->slice);
	mark->certain_ns = at;
	if (at > sl->start_ns)
		add_time(&mark->sums, sl, at - sl->start_ns);
}

/* Whether the slice at `ns` is forgotten, and this its mark. */
static bool forgotten_mark(const struct sched_thread *t, uint64_t ns, struct sched_mark *mark)
{
	uint64_t first_ns = slice_at(t, t->slices.first)->start_ns;
	struct sched_point next;
	struct sched_mark oldest;

	if (ns >= first_ns || t->past.first == t->past.end)
		return false;
	oldest = t->oldest;
	cursor_catch_irqs(t, &oldest);
	next = (struct sched_point){.ns = first_ns, .sums = oldest.sums};
	return past__mark(&t->past, &next, ns, mark);
}

void sched_thread__mark(struct sched_thread *t, uint64_t ns, struct sched_mark *mark)
{
	*mark = (struct sched_mark){.ns = ns};
	if (t->slices.end == t->slices.first || forgotten_mark(t, ns, mark))
		return;
	cursor_seek(t, &t->cursor, ns);
	cursor_mark(t, &t->cursor, ns, mark);
}

void sched_thread__mark_after(const struct sched_thread *t, const struct sched_mark *from,
			      uint64_t ns, struct sched_mark *mark)
{
	struct sched_mark c = *from;

	*mark = (struct sched_mark){.ns = ns};
	if (t->slices.end == t->slices.first || forgotten_mark(t, ns, mark))
		return;
	if (c.slice < t->slices.first || c.irq < t->irqs.first) {
		c = t->cursor; /* forgotten by now */
	} else if (c.certain_ns > slice_at(t, c.slice)->start_ns) {
		sub_time(&c.sums, slice_at(t, c.slice),
			 c.certain_ns - slice_at(t, c.slice)->start_ns);
	}
	cursor_seek(t, &c, ns);
	cursor_mark(t, &c, ns, mark);
}

/* ---- Slices go ---------------------------------------------------------------------------------- */

/* The sums at the first slice; they are kept there only while slices go that may be asked for. */
static void seek_oldest(struct sched_thread *t)
{
	const struct sched_slice *first = slice_at(t, t->slices.first);
	struct sched_mark *c = &t->oldest;

	if (c->slice == t->slices.first && c->irq >= t->irqs.first)
		return;
	*c = t->cursor;
	while (c->slice > t->slices.first)
		cursor_back(t, c);
	while (c->irq > t->irqs.first && irq_at(t, c->irq - 1)->start_ns >= first->start_ns)
		cursor_back_irq(t, c);
}

/* The first slice goes, though an event may ask for its time yet. There is another one. */
static void slice_forget(struct sched *s, struct sched_thread *t)
{
	struct sched_mark *c = &t->oldest;

	seek_oldest(t);
	if (past__due(&t->past, slice_end(t, c->slice))) {
		cursor_catch_irqs(t, c);
		past__add(s, &t->past, slice_at(t, c->slice)->start_ns, &c->sums);
	}
	cursor_next(t, c);
	t->slices.first++;
	if (t->cursor.slice < t->slices.first)
		t->cursor = *c;
}

/* ---- Slices in ---------------------------------------------------------------------------------- */

/* A wait is over: who ran meanwhile is not to be looked for again and again. */
static void wait_over(struct sched *s, struct sched_thread *t, const struct sched_slice *sl,
		      uint64_t end_ns)
{
	struct culprits who;
	uint32_t i;

	culprits__clear(&who);
	blame_cpu(s, &who, sl->cpu, sl->start_ns, end_ns);
	for (i = 0; i < who.n && RING_ROOM(s, &t->waits, SCHED_SLICES_MAX); i++)
		*wait_at(t, t->waits.end++) = who.at[i];
}

/* A new state from ts_ns on. Time does not go back for a thread, whatever the records say. */
static struct sched_slice *slice_begin(struct sched *s, struct sched_thread *t, uint64_t ts_ns,
				       enum sched_state state, uint32_t cpu)
{
	uint64_t held = t->slices.end - t->slices.first;
	struct sched_slice *sl, last = {.state = SCHED_UNKNOWN};

	if (held)
		last = *slice_at(t, t->slices.end - 1);
	if (held && held == t->slices.size &&
	    !ring_grows(s, t->slices.size, sizeof(*sl), SCHED_SLICES_MAX))
		slice_forget(s, t);
	if (!RING_ROOM(s, &t->slices, SCHED_SLICES_MAX))
		return NULL;
	if (ts_ns < t->last_ns)
		ts_ns = t->last_ns;
	t->last_ns = ts_ns;
	if (!t->slices.end)
		t->since_ns = ts_ns;
	else if (last.state == SCHED_RUNQ)
		wait_over(s, t, &last, ts_ns);
	sl = slice_at(t, t->slices.end++);
	*sl = (struct sched_slice){.start_ns = ts_ns,
				   .waits = t->waits.end,
				   .cpu = cpu,
				   .why = SCOPE_WHY_OTHER,
				   .state = state};
	s->nslices += t->slices.end - t->slices.first - held;
	return sl;
}

static struct sched_slice *last_slice(const struct sched_thread *t)
{
	return t->slices.end > t->slices.first ? slice_at(t, t->slices.end - 1) : NULL;
}

const struct sched_slice *sched_thread__last(const struct sched_thread *t)
{
	return last_slice(t);
}

const struct sched_slice *sched_thread__at(const struct sched_thread *t, uint64_t ns)
{
	uint64_t i;

	for (i = t->slices.end; i > t->slices.first; i--)
		if (slice_at(t, i - 1)->start_ns <= ns)
			return slice_at(t, i - 1);
	return NULL;
}

/*
 * Records of the thread are missing before this one: from the last that came its state is not known. Returns
 * how many.
 */
static uint32_t gap(struct sched *s, struct sched_thread *t, uint32_t seq)
{
	uint32_t missing = seq - t->seq - 1;
	struct sched_slice *last = last_slice(t);

	t->seq = seq;
	t->gap = 0;
	if (!missing || missing > INT32_MAX) /* or an old record: not ours to judge */
		return 0;
	t->gap = missing;
	if (last && t->seen_ns <= last->start_ns)
		last->state = SCHED_UNKNOWN;
	else if (last)
		slice_begin(s, t, t->seen_ns, SCHED_UNKNOWN, SCHED_NO_CPU);
	return missing;
}

void sched__thread(struct sched *s, const struct scope_ev_thread *e)
{
	struct sched_thread *t = sched__find(s, e->tid);

	/* Its records begin anew: the end of the one before with its number was lost. */
	if (t && t->slices.end &&
	    ((t->proc_start_ns && t->proc_start_ns != e->start_ns) ||
	     (!e->seq && (t->seq || e->born)))) {
		sched__exit(s, t, 0, t->seen_ns);
		t = NULL;
	}
	if (!t)
		t = thread_new(s, e->tid, e->tgid);
	if (!t)
		return;
	t->proc_start_ns = e->start_ns;
	t->tgid = e->tgid;
	t->ns_tid = e->ns_tid;
	memcpy(t->comm, e->comm, sizeof(t->comm));
	memcpy(t->ran_as, e->comm, sizeof(t->ran_as));
	if (t->slices.end) /* told late, because the ring was full */
		return;
	t->seq = e->seq;
	slice_begin(s, t, e->h.ts_ns, e->state <= SCOPE_TASK_BLOCKED ? e->state : SCHED_UNKNOWN,
		    SCHED_NO_CPU);
}

/* The thread of a record; one whose introduction was lost is made. */
static struct sched_thread *thread_of(struct sched *s, uint32_t tid, uint32_t tgid, uint32_t seq)
{
	struct sched_thread *t = sched__find(s, tid);

	if (t)
		return t;
	t = thread_new(s, tid, tgid);
	if (t)
		t->seq = seq - 1;
	return t;
}

static void ran_on(struct sched_thread *t, uint32_t cpu)
{
	if (cpu < SCHED_RAN_ON)
		t->ran_on[cpu / 64] |= 1ull << cpu % 64;
}

/*
 * The thread was on the CPU, and nobody has told when it came: the kernel skips a program now and then. Not before what that
 * CPU told last; and what it was seen in counts already.
 */
static void came_untold(struct sched *s, struct sched_thread *t, uint64_t told_ns)
{
	const struct sched_slice *last = last_slice(t);

	if (last && last->state != SCHED_RUN && last->state != SCHED_UNKNOWN)
		slice_begin(s, t, told_ns > t->seen_ns ? told_ns : t->seen_ns, SCHED_UNKNOWN,
			    SCHED_NO_CPU);
}

/* `told_ns`: of the CPU's record before. */
static uint32_t switch_out(struct sched *s, const struct scope_ev_switch *e, struct sched_thread *t,
			   uint64_t told_ns)
{
	uint32_t lost = gap(s, t, e->prev_seq);
	bool runq = e->prev_state == SCOPE_TASK_WAIT;
	struct sched_slice *sl;

	came_untold(s, t, told_ns);
	/* Where it ran is news if its run was not seen to begin. */
	if (last_slice(t) && last_slice(t)->state == SCHED_RUN)
		last_slice(t)->cpu = e->cpu;
	t->last_cpu = e->cpu;
	ran_on(t, e->cpu);
	t->wait = t->slices.end;
	sl = slice_begin(s, t, e->h.ts_ns, runq ? SCHED_RUNQ : SCHED_BLOCKED,
			 runq ? e->cpu : SCHED_NO_CPU);
	if (!sl)
		return lost;
	sl->left = true;
	sl->preempted = runq;
	sl->why = runq ? SCOPE_WHY_OTHER : e->why;
	return lost;
}

/* A wait's throttled time, over its slices from the first on: a quota holds at the begin. */
static void spread_throttled(struct sched_thread *t, uint64_t throttled_ns)
{
	uint64_t n = t->wait > t->cursor.slice ? t->wait : t->cursor.slice, len;

	for (; throttled_ns && n + 1 < t->slices.end; n++) {
		if (slice_at(t, n)->state != SCHED_RUNQ)
			continue;
		len = slice_end(t, n) - slice_at(t, n)->start_ns;
		slice_at(t, n)->throttled_ns = throttled_ns < len ? throttled_ns : len;
		throttled_ns -= slice_at(t, n)->throttled_ns;
	}
}

/*
 * A thread turns out to have been runnable since wait_ns (0: it was not told), which its wake-up did not say. It
 * waited for `cpu`, as moves come before this, unless `lost` ones are missing.
 */
static void woken(struct sched *s, struct sched_thread *t, uint64_t wait_ns, uint32_t cpu,
		  uint32_t lost)
{
	const struct sched_slice *last = last_slice(t);

	if (!wait_ns || !last || last->state == SCHED_RUNQ || wait_ns < last->start_ns)
		return;
	t->wait = t->slices.end;
	slice_begin(s, t, wait_ns, SCHED_RUNQ, lost ? SCHED_NO_CPU : cpu);
}

static uint32_t switch_in(struct sched *s, const struct scope_ev_switch *e, struct sched_thread *t)
{
	uint32_t lost = gap(s, t, e->next_seq);
	struct sched_slice *sl;

	woken(s, t, e->wait_ns, e->cpu, lost);
	sl = slice_begin(s, t, e->h.ts_ns, SCHED_RUN, e->cpu);
	if (!sl)
		return lost;
	sl->migrated = t->last_cpu != SCHED_NO_CPU && t->last_cpu != e->cpu;
	t->last_cpu = e->cpu;
	ran_on(t, e->cpu);
	if (e->throttled_ns)
		spread_throttled(t, e->throttled_ns);
	return lost;
}

/* ---- CPUs --------------------------------------------------------------------------------------- */

/* The oldest run goes: who ran until its end is not known any more. */
static void run_forget(struct sched_cpu *c)
{
	c->known_ns = c->at[c->first++ % c->size].end_ns;
}

/*
 * After switch `before` came `seq`, or something else if that is the same. Returns when the CPU had told of one before; 0: it never
 * had, or that is forgotten.
 */
static uint64_t cpu_ran(struct sched *s, uint32_t cpu, uint32_t before, uint32_t seq,
			uint64_t end_ns, uint32_t tgid, const char *comm)
{
	struct sched_cpu *c = cpu < s->ncpus ? &s->cpus[cpu] : NULL;
	uint64_t told_ns = 0;
	struct sched_run *run;
	bool whole;

	if (!c)
		return 0;
	if (c->end > c->first)
		told_ns = c->at[(c->end - 1) % c->size].end_ns;
	if (c->size && c->end - c->first == c->size &&
	    !ring_grows(s, c->size, sizeof(*c->at), SCHED_RUNS_MAX))
		run_forget(c);
	if (!RING_ROOM(s, c, SCHED_RUNS_MAX))
		return told_ns;
	/* After a gap it was somebody else for a part of the time: nobody is blamed. */
	whole = before == c->seq;
	c->seq = seq;
	if (end_ns < told_ns)
		return told_ns;
	run = &c->at[c->end++ % c->size];
	run->end_ns = end_ns;
	run->tgid = whole ? tgid : 0;
	comm_copy(run->comm, comm);
	return told_ns;
}

uint32_t sched__switch(struct sched *s, const struct scope_ev_switch *e, struct sched_thread **who)
{
	struct sched_thread *t;
	uint32_t lost = 0, n;
	uint64_t told_ns;

	*who = NULL;
	told_ns = cpu_ran(s, e->cpu, e->cpu_seq - 1, e->cpu_seq, e->h.ts_ns,
			  e->flags & SCOPE_SWITCH_WATCHED ? e->prev_tgid : 0, e->prev_comm);
	if (e->flags & SCOPE_SWITCH_PREV) {
		t = thread_of(s, e->prev_tid, e->prev_tgid, e->prev_seq);
		*who = t;
		if (t)
			memcpy(t->ran_as, e->prev_comm, sizeof(t->ran_as));
		lost = t ? switch_out(s, e, t, told_ns) : 0;
	}
	if (e->flags & SCOPE_SWITCH_NEXT) {
		t = thread_of(s, e->next_tid, 0, e->next_seq);
		n = t ? switch_in(s, e, t) : 0;
		if (n || !*who)
			*who = t;
		lost += n;
	}
	return lost;
}

bool sched__nth_switch(const struct sched *s, const struct scope_ev_switches *e, uint32_t n,
		       struct scope_ev_switch *nth)
{
	const struct scope_switch *at = &e->at[n];
	const struct sched_thread *prev = NULL;
	uint32_t seq = e->cpu_seq + n;

	if (e->cpu < s->ncpus && seq - s->cpus[e->cpu].seq - 1 > INT32_MAX)
		return false;
	if (at->flags & SCOPE_SWITCH_PREV)
		prev = sched__find(s, at->prev_tid);
	*nth = (struct scope_ev_switch){
		.h = {e->h.abi, SCOPE_EV_SWITCH, sizeof(*nth), at->ts_ns},
		.cpu = e->cpu,
		.cpu_seq = seq,
		.flags = at->flags,
		.prev_tid = at->prev_tid,
		.prev_tgid = prev ? prev->tgid : 0,
		.prev_seq = at->prev_seq,
		.why = at->why,
		.prev_state = at->prev_state,
		.next_tid = at->next_tid,
		.next_seq = at->next_seq,
		.wait_ns = at->flags & SCOPE_SWITCH_WAITED ? less(at->ts_ns, at->waited_ns) : 0,
	};
	if (prev)
		memcpy(nth->prev_comm, prev->ran_as, sizeof(nth->prev_comm));
	return true;
}

/* A slice of a wait that was split by a move. */
uint32_t sched__migrate(struct sched *s, const struct scope_ev_migrate *e,
			struct sched_thread **who)
{
	struct sched_thread *t = sched__find(s, e->tid);
	uint32_t lost;

	*who = t;
	cpu_ran(s, e->from, e->cpu_seq, e->cpu_seq, e->h.ts_ns, e->curr_tgid, e->curr_comm);
	if (!t)
		return 0;
	lost = gap(s, t, e->seq);
	woken(s, t, e->wait_ns, e->from, lost);
	slice_begin(s, t, e->h.ts_ns, SCHED_RUNQ, e->to);
	return lost;
}

void sched__woken(struct sched *s, const struct scope_ev_woken *e)
{
	struct sched_thread *t = sched__find(s, e->tid);
	struct sched_slice *last = t ? last_slice(t) : NULL;

	if (!last || last->state != SCHED_BLOCKED || last->start_ns != e->since_ns ||
	    e->h.ts_ns < e->since_ns)
		return;
	sleeps__add(s, t, last, e);
	/* cgroup v1 freezes who sleeps where it does: from when on is not known, but that it did not go on when it would have */
	if (e->call == SCOPE_WHY_FROZEN && !e->asleep)
		last->why = SCOPE_WHY_FROZEN;
	if (e->h.ts_ns > t->seen_ns)
		t->seen_ns = e->h.ts_ns;
}

void sched__stack(struct sched *s, const struct scope_ev_stack *e)
{
	struct sched_thread *t = sched__find(s, e->tid);

	if (t)
		sleeps__stack(s, t, e);
}

/* false: it comes too late. What was before the thread, as another had its number, is none of its. */
static bool irq_add(struct sched *s, struct sched_thread *t, uint64_t start_ns,
		    const struct scope_irq *from)
{
	struct sched_irq *irq;

	if (start_ns < t->since_ns)
		return true;
	if (t->irqs.end > t->irqs.first) {
		irq = irq_at(t, t->irqs.end - 1);
		if (start_ns < irq->start_ns + irq->dur_ns)
			return false;
	}
	if (t->irqs.size && t->irqs.end - t->irqs.first == t->irqs.size &&
	    !ring_grows(s, t->irqs.size, sizeof(*irq), SCHED_SLICES_MAX)) {
		if (t->oldest.irq == t->irqs.first)
			cursor_next_irq(t, &t->oldest);
		if (t->cursor.irq == t->irqs.first)
			cursor_next_irq(t, &t->cursor);
	}
	if (!RING_ROOM(s, &t->irqs, SCHED_SLICES_MAX))
		return true;
	irq = irq_at(t, t->irqs.end++);
	irq->start_ns = start_ns;
	irq->dur_ns = from->dur_ns;
	irq->net_rx = from->soft && from->vec == NET_RX_SOFTIRQ;
	return true;
}

/* How many of them have come already. UINT32_MAX: what was read where it gathered has overtaken this one. */
static uint32_t irqs_known(struct sched_cpu *c, uint64_t fill)
{
	uint64_t last = c->irqs_fill;

	if (SCOPE_IRQS_NR(fill) < SCOPE_IRQS_NR(last))
		return fill & SCOPE_IRQS_UNTOLD ? SCOPE_IRQS : UINT32_MAX;
	if (SCOPE_IRQS_NR(fill) > SCOPE_IRQS_NR(last) || SCOPE_IRQS_N(fill) > SCOPE_IRQS_N(last))
		c->irqs_fill = fill;
	return SCOPE_IRQS_NR(fill) > SCOPE_IRQS_NR(last) ? 0 : SCOPE_IRQS_N(last);
}

uint32_t sched__irq(struct sched *s, const struct scope_ev_irq *e, struct sched_thread **who)
{
	size_t n = (e->h.size - offsetof(struct scope_ev_irq, at)) / sizeof(e->at[0]), i;
	struct sched_thread *t = sched__find(s, e->tid);
	uint32_t known, lost = 0;

	*who = t;
	if (e->cpu >= s->ncpus)
		return 0;
	known = irqs_known(&s->cpus[e->cpu], e->fill);
	if (known == UINT32_MAX)
		return 1;
	if (n > SCOPE_IRQS_N(e->fill))
		n = SCOPE_IRQS_N(e->fill);
	for (i = known; t && i < n && i < SCOPE_IRQS; i++)
		if (!irq_add(s, t, e->h.ts_ns + e->at[i].after_ns, &e->at[i]))
			lost = 1;
	return lost;
}

uint32_t sched__counted(struct sched *s, struct sched_thread *t, uint32_t seq)
{
	uint32_t lost;

	if (!seq || seq == t->seq || seq - t->seq > INT32_MAX) /* or told of an older state */
		return 0;
	lost = gap(s, t, seq + 1);
	t->seq = seq;
	return lost;
}

uint32_t sched__seen(struct sched *s, struct sched_thread *t, uint32_t seq, uint64_t ts_ns)
{
	uint32_t lost = sched__counted(s, t, seq);

	if (!seq || seq != t->seq)
		return 0;
	came_untold(s, t,
		    0); /* it runs, whatever was told last: what it is in is not that any more */
	if (last_slice(t) && last_slice(t)->state != SCHED_RUN)
		slice_begin(s, t, ts_ns, SCHED_RUN, SCHED_NO_CPU);
	if (ts_ns > t->seen_ns)
		t->seen_ns = ts_ns;
	return lost;
}

void sched__still(struct sched *s, struct sched_thread *t, uint32_t seq, uint64_t wait_ns,
		  uint32_t cpu, uint64_t now_ns)
{
	const struct sched_slice *last = last_slice(t);

	if (!last || last->state != SCHED_BLOCKED || seq != t->seq)
		return;
	if (!wait_ns && now_ns > t->seen_ns)
		t->seen_ns = now_ns;
	woken(s, t, wait_ns, cpu, 0);
}

void sched__process_end(struct sched *s, uint32_t tgid, uint64_t start_ns, uint64_t end_ns)
{
	struct sched_thread *t, *tmp;

	HASH_ITER (hh, s->threads, t, tmp)
		if (t->tgid == tgid && t->proc_start_ns == start_ns)
			sched__exit(s, t, 0, end_ns);
}

uint32_t sched__exit(struct sched *s, struct sched_thread *t, uint32_t seq, uint64_t ts_ns)
{
	uint32_t lost = sched__seen(s, t, seq, ts_ns);

	t->gone = true;
	t->end_ns = ts_ns > t->last_ns ? ts_ns : t->last_ns;
	HASH_DEL(s->threads, t);
	sched_thread__put(s, t);
	return lost;
}

/* ---- Slices out --------------------------------------------------------------------------------- */

const struct sched_slice *sched_thread__next_slice(struct sched_thread *t, uint64_t until_ns,
						   uint64_t *end_ns, uint64_t *irq_ns)
{
	if (t->written < t->slices.first) {
		t->overrun += (uint32_t)(t->slices.first - t->written);
		t->written = t->slices.first;
	}
	if (t->written_irq < t->irqs.first)
		t->written_irq = t->irqs.first;
	if (t->written >= t->slices.end)
		return NULL;
	*end_ns = slice_end(t, t->written);
	if (*end_ns == UINT64_MAX || *end_ns > until_ns)
		return NULL;
	for (*irq_ns = 0; t->written_irq < t->irqs.end; t->written_irq++) {
		if (irq_at(t, t->written_irq)->start_ns >= *end_ns)
			break;
		if (irq_at(t, t->written_irq)->start_ns >= slice_at(t, t->written)->start_ns)
			*irq_ns += irq_at(t, t->written_irq)->dur_ns;
	}
	return slice_at(t, t->written++);
}

bool sched_thread__slices_due(const struct sched *s, const struct sched_thread *t)
{
	const struct sched_slices *of = &t->slices;
	uint32_t room = ring_grows(s, of->size, sizeof(*of->at), SCHED_SLICES_MAX)
				? SCHED_SLICES_MAX
				: of->size;

	return of->end - t->written > room / 2;
}

/* ---- Memory ------------------------------------------------------------------------------------- */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void sched_thread__prune(struct sched *s, struct sched_thread *t, uint64_t keep_ns, bool slices)
{
	uint64_t stay, stay_irq;
	bool full = s->nslices > HELD_MAX;

	/* Nobody has asked for a time so late: the sums go on from there. */
	while (t->cursor.slice + 1 < t->slices.end && slice_end(t, t->cursor.slice) <= keep_ns)
		cursor_next(t, &t->cursor);
	while (t->cursor.irq < t->irqs.end && irq_at(t, t->cursor.irq)->start_ns < keep_ns)
		cursor_next_irq(t, &t->cursor);
	stay = slices ? min_u64(t->written, t->cursor.slice) : t->cursor.slice;
	stay_irq = slices ? min_u64(t->written_irq, t->cursor.irq) : t->cursor.irq;

	if (t->past.size)
		past__prune(s, &t->past, slice_at(t, t->slices.first)->start_ns, keep_ns);
	if (t->past.first < t->past.end)
		cursor_catch_irqs(t, &t->oldest); /* before they go */
	for (; t->slices.first < stay; s->nslices--) {
		if (slice_end(t, t->slices.first) <= keep_ns)
			t->slices.first++;
		else if (full && t->slices.end - t->slices.first > HELD_EACH)
			slice_forget(s, t);
		else
			break;
	}
	while (t->irqs.first < stay_irq && irq_at(t, t->irqs.first)->start_ns < keep_ns)
		t->irqs.first++;
	if (t->slices.first < t->slices.end && t->waits.first < slice_at(t, t->slices.first)->waits)
		t->waits.first = slice_at(t, t->slices.first)->waits;
	if (t->slices.first < t->slices.end)
		sleeps__prune(s, t, slice_at(t, t->slices.first)->start_ns);
	RING_SHRINK(s, &t->slices);
	RING_SHRINK(s, &t->waits);
	RING_SHRINK(s, &t->irqs);
}

void sched__prune_cpus(struct sched *s, uint64_t keep_ns)
{
	struct sched_cpu *c;
	uint32_t i;

	for (i = 0; i < s->ncpus; i++) {
		c = &s->cpus[i];
		while (c->first < c->end && c->at[c->first % c->size].end_ns < keep_ns)
			run_forget(c);
		RING_SHRINK(s, c);
	}
}

int sched__init(struct sched *s, uint32_t ncpus)
{
	memset(s, 0, sizeof(*s));
	s->cpus = calloc(ncpus, sizeof(*s->cpus));
	s->tallies = tallies_new();
	if (!s->cpus || !s->tallies) {
		free(s->cpus);
		free(s->tallies);
		memset(s, 0, sizeof(*s));
		return -ENOMEM;
	}
	s->ncpus = ncpus;
	return 0;
}

void sched__free(struct sched *s)
{
	struct sched_thread *t, *tmp;
	uint32_t i;

	HASH_ITER (hh, s->threads, t, tmp)
		sched__exit(s, t, t->seq, t->last_ns);
	sleeps__forget_files(s);
	for (i = 0; i < s->ncpus; i++)
		free(s->cpus[i].at);
	free(s->cpus);
	free(s->tallies);
	memset(s, 0, sizeof(*s));
}
