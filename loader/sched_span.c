// SPDX-License-Identifier: BSD-2-Clause
/*
 * What happened between two marks of a thread's time; see sched_timeline.h. Sums are differences of the marks. Who it
 * waited behind, what it slept in and where it ran are added up slice by slice: a thread that works on many events at a
 * time is asked for nearly the same span over and over, so what was added up for one is kept, and only what the next one
 * has less or more is taken away and added.
 */
#include <stdlib.h>
#include <string.h>
#include "sched_priv.h"
#include "search.h"

#define TALLIES	  32 /* threads that are asked for by turns, in steps and in operations */
#define TALLY_MIN 4  /* slices: so few are added up as fast */

/* ---- Added up -------------------------------------------------------------------------------------- */

struct ran_on {
	uint32_t cpu, times;
};

struct blamed {
	struct culprits who, what;
	struct ran_on cpus[SCHED_CPUS];
	uint32_t ncpus;
	bool dropped; /* there were more CPUs */
};

static void blamed_clear(struct blamed *b)
{
	culprits__clear(&b->who);
	culprits__clear(&b->what);
	b->ncpus = 0;
	b->dropped = false;
}

static void blamed_copy(struct blamed *to, const struct blamed *from)
{
	culprits__copy(&to->who, &from->who);
	culprits__copy(&to->what, &from->what);
	memcpy(to->cpus, from->cpus, from->ncpus * sizeof(*from->cpus));
	to->ncpus = from->ncpus;
}

static void cpu_add(struct blamed *b, uint32_t cpu)
{
	uint32_t i;

	for (i = 0; i < b->ncpus && b->cpus[i].cpu != cpu; i++)
		;
	if (cpu == SCHED_NO_CPU)
		return;
	if (i < b->ncpus)
		b->cpus[i].times++;
	else if (i < SCHED_CPUS)
		b->cpus[b->ncpus++] = (struct ran_on){cpu, 1};
	else
		b->dropped = true;
}

static void cpu_take(struct blamed *b, uint32_t cpu)
{
	uint32_t i;

	for (i = 0; i < b->ncpus; i++)
		if (b->cpus[i].cpu == cpu && !--b->cpus[i].times)
			b->cpus[i] = b->cpus[--b->ncpus];
}

static bool ends_later(const void *cpu, uint64_t i, uint64_t ns)
{
	const struct sched_cpu *c = cpu;

	return c->at[i & (c->size - 1)].end_ns > ns;
}

void blame_cpu(const struct sched *s, struct culprits *c, uint32_t cpu, uint64_t from, uint64_t to)
{
	const struct sched_cpu *on = cpu < s->ncpus ? &s->cpus[cpu] : NULL;
	const struct sched_run *run;
	struct culprit one;
	uint64_t n, end;

	if (!on)
		return;
	if (from < on->known_ns)
		from = on->known_ns;
	for (n = search_later(on->first, on->end, ends_later, on, from); n < on->end && from < to;
	     n++) {
		run = &on->at[n & (on->size - 1)];
		end = run->end_ns < to ? run->end_ns : to;
		if (run->tgid) {
			one = (struct culprit){.ns = end - from, .id = run->tgid};
			memcpy(one.comm, run->comm, sizeof(one.comm));
			culprits__add(c, &one);
		}
		from = end;
	}
}

/* What of a slice lies between two marks. */
static void add_part(const struct sched *s, const struct sched_thread *t, uint64_t n,
		     const struct sched_mark *from, const struct sched_mark *to, struct blamed *b)
{
	const struct sched_slice *sl = slice_at(t, n);
	uint64_t begin = sl->start_ns > from->ns ? sl->start_ns : from->ns;
	uint64_t end = slice_certain(t, n) < to->ns ? slice_certain(t, n) : to->ns;
	struct culprit what = {.ns = end - begin, .id = (uint32_t)sl->why};

	if (begin >= end)
		return;
	if (sl->state == SCHED_RUN)
		cpu_add(b, sl->cpu);
	else if (sl->state == SCHED_RUNQ)
		blame_cpu(s, &b->who, sl->cpu, begin, end);
	else if (sl->state == SCHED_BLOCKED)
		culprits__add(&b->what, &what);
}

typedef void (*culprit_fn)(struct culprits *, const struct culprit *);

/* A whole one that has ended. It changes no more: what is added can be taken. */
static void whole(const struct sched_thread *t, uint64_t n, struct blamed *b, bool add)
{
	culprit_fn count = add ? culprits__add : culprits__take;
	const struct sched_slice *sl = slice_at(t, n), *next = slice_at(t, n + 1);
	struct culprit what = {.ns = next->start_ns - sl->start_ns, .id = (uint32_t)sl->why};
	uint64_t i = sl->waits > t->waits.first ? sl->waits : t->waits.first;

	if (!what.ns)
		return;
	if (sl->state == SCHED_RUN && add)
		cpu_add(b, sl->cpu);
	else if (sl->state == SCHED_RUN)
		cpu_take(b, sl->cpu);
	else if (sl->state == SCHED_BLOCKED)
		count(&b->what, &what);
	for (; sl->state == SCHED_RUNQ && i < next->waits; i++)
		count(&b->who, wait_at(t, i));
}

/* ---- Kept ------------------------------------------------------------------------------------------ */

/* Slices `first` to before `end` of a thread, whole and ended, added up. */
struct tally {
	const struct sched_thread *t; /* NULL: none */
	uint64_t first, end;
	uint64_t asked; /* when it was last, in the number of askings */
};

struct sched_tallies {
	struct tally at[TALLIES];
	struct blamed sums[TALLIES]; /* of each; apart, as all are looked through */
	uint64_t asked;
};

struct sched_tallies *tallies_new(void)
{
	return calloc(1, sizeof(struct sched_tallies));
}

void tallies_forget(struct sched_tallies *all, const struct sched_thread *t)
{
	uint32_t i;

	for (i = 0; all && i < TALLIES; i++)
		if (all->at[i].t == t)
			all->at[i].t = NULL;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool has_dropped(const struct blamed *b)
{
	return b->who.dropped || b->what.dropped || b->dropped;
}

/* Whether nothing of it is forgotten. */
static bool is_whole(const struct tally *y)
{
	const struct sched_thread *t = y->t;

	return y->first >= t->slices.first && y->first < t->slices.end &&
	       slice_at(t, y->first)->waits >= t->waits.first;
}

static void tally_begin(struct tally *y, struct blamed *sum, uint64_t first)
{
	y->first = y->end = first;
	blamed_clear(sum);
}

/* The one that is nearest, or that nobody has asked for the longest time, begun anew. */
static struct tally *tally_of(struct sched_tallies *all, const struct sched_thread *t,
			      uint64_t first, uint64_t end)
{
	struct tally *y, *near = NULL, *old = all->at;
	uint64_t steps, least = end - first;

	for (y = all->at; y < all->at + TALLIES; y++) {
		old = y->asked < old->asked ? y : old;
		steps = distance(y->first, first) + distance(y->end, end);
		if (y->t != t || steps >= least || !is_whole(y))
			continue;
		near = y;
		least = steps;
	}
	if (near)
		return near;
	old->t = t;
	tally_begin(old, &all->sums[old - all->at], first);
	return old;
}

/* Less first: so there are never more culprits than there were, or will be. */
static void tally_move(struct tally *y, struct blamed *sum, uint64_t first, uint64_t end)
{
	while (y->first < first)
		whole(y->t, y->first++, sum, false);
	while (y->end > end)
		whole(y->t, --y->end, sum, false);
	while (y->first > first)
		whole(y->t, --y->first, sum, true);
	while (y->end < end)
		whole(y->t, y->end++, sum, true);
}

/* The sum of slices `first` to before `end`, at least one. */
static void tally_sum(struct sched_tallies *all, const struct sched_thread *t, uint64_t first,
		      uint64_t end, struct blamed *b)
{
	struct tally *y = tally_of(all, t, first, end);
	struct blamed *sum = &all->sums[y - all->at];
	bool fresh = y->first == y->end;

	y->asked = ++all->asked;
	tally_move(y, sum, first, end);
	if (has_dropped(sum) && !fresh) { /* who was, goes by the order in which they came */
		tally_begin(y, sum, first);
		tally_move(y, sum, first, end);
	}
	blamed_copy(b, sum);
	if (has_dropped(sum))
		y->t = NULL;
}

/* ---- Spans ----------------------------------------------------------------------------------------- */

/* At most the last `most` slices. The first and the last may be in it by a part. */
static void span_walk(const struct sched *s, const struct sched_thread *t,
		      const struct sched_mark *from, const struct sched_mark *to, uint64_t most,
		      struct blamed *b)
{
	uint64_t n = from->slice > t->slices.first ? from->slice : t->slices.first;
	uint64_t last = to->slice < t->slices.end ? to->slice : t->slices.end - 1;
	uint64_t first, end, i;

	blamed_clear(b);
	if (t->slices.first == t->slices.end)
		return;
	if (t->slices.end > most && n < t->slices.end - most)
		n = t->slices.end - most;
	while (n < last && slice_at(t, n + 1)->start_ns <= from->ns)
		n++;
	while (last > n && slice_at(t, last)->start_ns >= to->ns)
		last--;
	first = n + (slice_at(t, n)->start_ns < from->ns);
	end = last + (last + 1 < t->slices.end && slice_end(t, last) <= to->ns);
	if (first + TALLY_MIN < end && most == UINT64_MAX)
		tally_sum(s->tallies, t, first, end, b);
	else
		for (i = first; i < end; i++)
			whole(t, i, b, true);
	if (n < first)
		add_part(s, t, n, from, to, b);
	if (last >= first && last >= end)
		add_part(s, t, last, from, to, b);
}

/* In order, each once. */
static void span_cpu(struct sched_span *span, uint32_t cpu)
{
	uint32_t i = span->ncpus;

	while (i && span->cpus[i - 1] > cpu)
		i--;
	if ((i && span->cpus[i - 1] == cpu) || span->ncpus == SCHED_CPUS)
		return;
	memmove(&span->cpus[i + 1], &span->cpus[i], (span->ncpus - i) * sizeof(*span->cpus));
	span->cpus[i] = cpu;
	span->ncpus++;
}

static void span_rank(struct sched_span *span, struct blamed *b)
{
	uint32_t i;

	span->nbehind = culprits__rank(&b->who, SCHED_TOP);
	for (i = 0; i < span->nbehind; i++) {
		span->behind[i].tgid = b->who.at[i].id;
		memcpy(span->behind[i].comm, b->who.at[i].comm, SCOPE_COMM_LEN);
		span->behind[i].ns = b->who.at[i].ns;
	}
	span->nblocked_in = culprits__rank(&b->what, SCHED_TOP);
	for (i = 0; i < span->nblocked_in; i++) {
		span->blocked_in[i].why = (int32_t)b->what.at[i].id;
		span->blocked_in[i].ns = b->what.at[i].ns;
	}
	for (i = 0; i < b->ncpus; i++)
		span_cpu(span, b->cpus[i].cpu);
}

void sched__behind(const struct sched *s, const struct sched_slice *slice, uint64_t end_ns,
		   struct sched_span *span)
{
	struct blamed b;

	blamed_clear(&b);
	blame_cpu(s, &b.who, slice->cpu, slice->start_ns, end_ns);
	span_rank(span, &b);
}

static void blame_span(struct blamed *b, const struct sched_span *span)
{
	struct culprit one;
	uint32_t i;

	for (i = 0; i < span->nbehind; i++) {
		one = (struct culprit){.ns = span->behind[i].ns, .id = span->behind[i].tgid};
		memcpy(one.comm, span->behind[i].comm, sizeof(one.comm));
		culprits__add(&b->who, &one);
	}
	for (i = 0; i < span->nblocked_in; i++) {
		one = (struct culprit){.ns = span->blocked_in[i].ns,
				       .id = (uint32_t)span->blocked_in[i].why};
		culprits__add(&b->what, &one);
	}
}

/* A mark is set before all of an interrupt or a quota may be known: parts never exceed the whole. */
static void clamp(struct sched_span *span)
{
	if (span->sums.irq_ns > span->sums.on_cpu_ns)
		span->sums.irq_ns = span->sums.on_cpu_ns;
	if (span->sums.net_rx_ns > span->sums.irq_ns)
		span->sums.net_rx_ns = span->sums.irq_ns;
	if (span->sums.throttled_ns > span->sums.runq_ns)
		span->sums.throttled_ns = span->sums.runq_ns;
}

/*
 * A mark that was set when the state at its time was not known, or was taken for what it turned out not to be: the slice
 * that it lay in has ended before.
 */
static const struct sched_mark *mark_again(const struct sched_thread *t,
					   const struct sched_mark *mark, struct sched_mark *fresh)
{
	uint64_t n = mark->slice >= t->slices.first ? mark->slice + 1 : t->slices.first;
	bool ended = n < t->slices.end && slice_at(t, n)->start_ns < mark->ns;

	if ((mark->certain_ns >= mark->ns && !ended) || mark->early)
		return mark;
	sched_thread__mark_after(t, mark, mark->ns, fresh);
	return fresh;
}

static void span_of(const struct sched *s, const struct sched_thread *t,
		    const struct sched_mark *from, const struct sched_mark *to, uint64_t most,
		    struct sched_span *span)
{
	struct sched_mark from_now, to_now;
	struct blamed b;
	uint64_t known;

	sched_span__clear(span);
	if (to->ns < from->ns)
		return;
	from = mark_again(t, from, &from_now);
	to = mark_again(t, to, &to_now);
	span->threads = 1;
	span->span_ns = to->ns - from->ns;
	/* What is forgotten at the end is more than the span. */
	if (!to->early)
		add_difference(&span->sums, &to->sums, &from->sums);
	known = span->sums.on_cpu_ns + span->sums.runq_ns + span->sums.blocked_ns;
	span->unknown_ns = less(span->span_ns, known);
	clamp(span);
	span_walk(s, t, from, to, most, &b);
	span_rank(span, &b);
}

void sched__span(const struct sched *s, const struct sched_thread *t, const struct sched_mark *from,
		 const struct sched_mark *to, struct sched_span *span)
{
	span_of(s, t, from, to, UINT64_MAX, span);
}

/* Whoever asks now asks for many events of the thread, so its cursor goes along. */
void sched__span_now(const struct sched *s, struct sched_thread *t, const struct sched_mark *from,
		     uint64_t now_ns, struct sched_span *span)
{
	struct sched_mark to;

	sched_thread__mark(t, now_ns, &to);
	span_of(s, t, from, &to, SCHED_RECENT, span);
}

void sched_span__add(struct sched_span *to, const struct sched_span *from)
{
	static const struct sched_sums none;
	struct blamed b;
	uint32_t i;

	if (!to->threads) {
		*to = *from;
		return;
	}
	to->threads += from->threads;
	to->span_ns += from->span_ns;
	to->unknown_ns += from->unknown_ns;
	add_difference(&to->sums, &from->sums, &none);
	blamed_clear(&b);
	blame_span(&b, to);
	blame_span(&b, from);
	span_rank(to, &b);
	for (i = 0; i < from->ncpus; i++)
		span_cpu(to, from->cpus[i]);
}
