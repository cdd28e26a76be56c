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
#include "sched_sleeps.h"
#include "search.h"

#define TALLIES	  32 /* threads that are asked for by turns, in steps and in operations */
#define TALLY_MIN 4  /* slices: so few are added up as fast */

/* ---- Added up -------------------------------------------------------------------------------------- */

struct ran_on {
	uint32_t cpu, times;
};

struct blamed {
	struct culprits who, what, wakers, files;
	struct ran_on cpus[SCHED_CPUS];
	uint32_t ncpus;
	bool dropped; /* there were more CPUs */
};

static void blamed_clear(struct blamed *b)
{
	culprits__clear(&b->who);
	culprits__clear(&b->what);
	culprits__clear(&b->wakers);
	culprits__clear(&b->files);
	b->ncpus = 0;
	b->dropped = false;
}

static void blamed_copy(struct blamed *to, const struct blamed *from)
{
	culprits__copy(&to->who, &from->who);
	culprits__copy(&to->what, &from->what);
	culprits__copy(&to->wakers, &from->wakers);
	culprits__copy(&to->files, &from->files);
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

typedef void (*culprit_fn)(struct culprits *, const struct culprit *);

/* ns of a sleep: in what, and if it was a long one who ended it, and in which file. */
static void count_sleep(const struct sched_thread *t, const struct sched_slice *sl, uint64_t ns,
			struct blamed *b, culprit_fn count)
{
	const struct sched_sleep *sleep = sleeps__of(t, sl);
	struct culprit one = {.ns = ns, .id = (uint32_t)sl->why};

	count(&b->what, &one);
	if (sleep && sleep->by_tgid) {
		one.id = sleep->by_tgid;
		memcpy(one.comm, sleep->by_comm, sizeof(one.comm));
		count(&b->wakers, &one);
	}
	if (sleep && sleep->file) { /* its address is good for as long as the sleep is kept */
		one = (struct culprit){.ns = ns, .id = sleep->file->nr};
		memcpy(one.comm, &sleep->file, sizeof(sleep->file));
		count(&b->files, &one);
	}
}

/* What of a slice lies between two marks. */
static void add_part(const struct sched *s, const struct sched_thread *t, uint64_t n,
		     const struct sched_mark *from, const struct sched_mark *to, struct blamed *b)
{
	const struct sched_slice *sl = slice_at(t, n);
	uint64_t begin = sl->start_ns > from->ns ? sl->start_ns : from->ns;
	uint64_t end = slice_certain(t, n) < to->ns ? slice_certain(t, n) : to->ns;

	if (begin >= end)
		return;
	if (sl->state == SCHED_RUN)
		cpu_add(b, sl->cpu);
	else if (sl->state == SCHED_RUNQ)
		blame_cpu(s, &b->who, sl->cpu, begin, end);
	else if (sl->state == SCHED_BLOCKED)
		count_sleep(t, sl, end - begin, b, culprits__add);
}

/* A whole one that has ended. It changes no more: what is added can be taken. */
static void whole(const struct sched_thread *t, uint64_t n, struct blamed *b, bool add)
{
	culprit_fn count = add ? culprits__add : culprits__take;
	const struct sched_slice *sl = slice_at(t, n), *next = slice_at(t, n + 1);
	uint64_t ns = next->start_ns - sl->start_ns;
	uint64_t i = sl->waits > t->waits.first ? sl->waits : t->waits.first;

	if (!ns)
		return;
	if (sl->state == SCHED_RUN && add)
		cpu_add(b, sl->cpu);
	else if (sl->state == SCHED_RUN)
		cpu_take(b, sl->cpu);
	else if (sl->state == SCHED_BLOCKED)
		count_sleep(t, sl, ns, b, count);
	for (; sl->state == SCHED_RUNQ && i < next->waits; i++)
		count(&b->who, wait_at(t, i));
}

static uint64_t slice_nr(const struct sched_thread *t, const struct sched_slice *slice)
{
	uint64_t at = (uint64_t)(slice - t->slices.at);

	return t->slices.first + ((at - t->slices.first) & (t->slices.size - 1));
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
	return b->who.dropped || b->what.dropped || b->wakers.dropped || b->files.dropped ||
	       b->dropped;
}

/* Whether nothing of it is forgotten. */
static bool is_whole(const struct tally *y)
{
	const struct sched_thread *t = y->t;

	return y->first >= t->slices.first && y->first < t->slices.end &&
	       slice_at(t, y->first)->waits >= t->waits.first &&
	       sleeps__known_since(t, slice_at(t, y->first)->start_ns);
}

static void tally_begin(struct tally *y, struct blamed *sum, uint64_t first)
{
	y->first = y->end = first;
	blamed_clear(sum);
}

/* That nobody has asked for the longest time. */
static struct tally *tally_oldest(struct sched_tallies *all)
{
	struct tally *y, *old = all->at;

	for (y = all->at; y < all->at + TALLIES; y++)
		old = y->asked < old->asked ? y : old;
	return old;
}

/* The one that is nearest, or the oldest, begun anew. */
static struct tally *tally_of(struct sched_tallies *all, const struct sched_thread *t,
			      uint64_t first, uint64_t end)
{
	struct tally *y, *near = NULL;
	uint64_t steps, least = end - first;

	for (y = all->at; y < all->at + TALLIES; y++) {
		if (y->t != t)
			continue;
		steps = distance(y->first, first) + distance(y->end, end);
		if (steps >= least || !is_whole(y))
			continue;
		near = y;
		least = steps;
	}
	if (near)
		return near;
	y = tally_oldest(all);
	y->t = t;
	tally_begin(y, &all->sums[y - all->at], first);
	return y;
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

static void span_rank_files(struct sched_span *span, struct culprits *files)
{
	struct sched_file *file;
	uint32_t i;

	span->nfiles = culprits__rank(files, SCHED_TOP);
	for (i = 0; i < span->nfiles; i++) {
		memcpy(&file, files->at[i].comm, sizeof(file));
		span->files[i].ns = files->at[i].ns;
		memcpy(span->files[i].fs, file->id.fs, sizeof(file->id.fs));
		memcpy(span->files[i].name, file->id.name, sizeof(file->id.name));
	}
}

static uint32_t rank_who(struct sched_span_who *to, struct culprits *who)
{
	uint32_t n = culprits__rank(who, SCHED_TOP), i;

	for (i = 0; i < n; i++) {
		to[i] = (struct sched_span_who){.ns = who->at[i].ns, .tgid = who->at[i].id};
		memcpy(to[i].comm, who->at[i].comm, sizeof(to[i].comm));
	}
	return n;
}

static void span_rank(struct sched_span *span, struct blamed *b)
{
	uint32_t i;

	span->nbehind = rank_who(span->behind, &b->who);
	span->nblocked_in = culprits__rank(&b->what, SCHED_TOP);
	for (i = 0; i < span->nblocked_in; i++) {
		span->blocked_in[i].why = (int32_t)b->what.at[i].id;
		span->blocked_in[i].ns = b->what.at[i].ns;
	}
	span->nwoken_by = rank_who(span->woken_by, &b->wakers);
	for (i = 0; i < b->ncpus; i++)
		span_cpu(span, b->cpus[i].cpu);
}

/* Noted when the wait ended, as who ran on the CPU is forgotten sooner. */
void sched__behind(const struct sched *s, const struct sched_thread *t,
		   const struct sched_slice *slice, uint64_t end_ns, struct sched_span *span)
{
	struct blamed b;

	blamed_clear(&b);
	if (slice == sched_thread__last(t))
		blame_cpu(s, &b.who, slice->cpu, slice->start_ns, end_ns);
	else
		whole(t, slice_nr(t, slice), &b, true);
	span_rank(span, &b);
}

static void blame_who(struct culprits *c, const struct sched_span_who *who, uint32_t n)
{
	struct culprit one;

	for (; n; n--, who++) {
		one = (struct culprit){.ns = who->ns, .id = who->tgid};
		memcpy(one.comm, who->comm, sizeof(one.comm));
		culprits__add(c, &one);
	}
}

static void blame_span(struct blamed *b, const struct sched_span *span)
{
	struct culprit one;
	uint32_t i;

	blame_who(&b->who, span->behind, span->nbehind);
	blame_who(&b->wakers, span->woken_by, span->nwoken_by);
	for (i = 0; i < span->nblocked_in; i++) {
		one = (struct culprit){.ns = span->blocked_in[i].ns,
				       .id = (uint32_t)span->blocked_in[i].why};
		culprits__add(&b->what, &one);
	}
}

static void add_file(struct sched_span_file *all, uint32_t *n, const struct sched_span_file *one)
{
	uint32_t i;

	for (i = 0; i < *n && (strcmp(all[i].name, one->name) || strcmp(all[i].fs, one->fs)); i++)
		;
	if (i < *n)
		all[i].ns += one->ns;
	else
		all[(*n)++] = *one;
}

static int more_first(const void *a, const void *b)
{
	const struct sched_span_file *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return strcmp(x->name, y->name) ?: strcmp(x->fs, y->fs);
}

static void add_files(struct sched_span *to, const struct sched_span *from)
{
	struct sched_span_file all[2 * SCHED_TOP];
	uint32_t i, n = 0;

	for (i = 0; i < to->nfiles; i++)
		add_file(all, &n, &to->files[i]);
	for (i = 0; i < from->nfiles; i++)
		add_file(all, &n, &from->files[i]);
	qsort(all, n, sizeof(*all), more_first);
	to->nfiles = n < SCHED_TOP ? n : SCHED_TOP;
	memcpy(to->files, all, to->nfiles * sizeof(*all));
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
	if (span->sums.preemptions > span->sums.switches)
		span->sums.preemptions = span->sums.switches;
}

static uint64_t *more_of(uint64_t *a, uint64_t *b)
{
	return *a > *b ? a : b;
}

/*
 * One mark was set in time, and the other when its slice had gone, near to it: where that one is told to have less of a state, it has
 * the more of another.
 */
static void cut_excess(struct sched_span *span)
{
	struct sched_sums *sums = &span->sums;
	uint64_t excess = less(sums->on_cpu_ns + sums->runq_ns + sums->blocked_ns, span->span_ns);
	uint64_t *most, part;

	for (; excess; excess -= part) {
		most = more_of(&sums->on_cpu_ns, more_of(&sums->runq_ns, &sums->blocked_ns));
		part = excess < *most ? excess : *most;
		*most -= part;
	}
}

/* Most first, no more than `max` ns together. */
#define CUT_LIST(list, n, max)                                                                     \
	do {                                                                                       \
		uint64_t left_ = (max);                                                            \
		uint32_t i_;                                                                       \
                                                                                                   \
		for (i_ = 0; i_ < (n) && left_; i_++) {                                            \
			if ((list)[i_].ns > left_)                                                 \
				(list)[i_].ns = left_;                                             \
			left_ -= (list)[i_].ns;                                                    \
		}                                                                                  \
		(n) = i_;                                                                          \
	} while (0)

/* What the slices say of a time may be more than sums of which one mark was told from what is near to it. */
static void cut_lists(struct sched_span *span)
{
	CUT_LIST(span->behind, span->nbehind, span->sums.runq_ns);
	CUT_LIST(span->blocked_in, span->nblocked_in, span->sums.blocked_ns);
	CUT_LIST(span->woken_by, span->nwoken_by, span->sums.blocked_ns);
	CUT_LIST(span->files, span->nfiles, span->sums.blocked_ns);
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
	cut_excess(span);
	known = span->sums.on_cpu_ns + span->sums.runq_ns + span->sums.blocked_ns;
	span->unknown_ns = less(span->span_ns, known);
	clamp(span);
	span_walk(s, t, from, to, most, &b);
	span_rank(span, &b);
	span_rank_files(span, &b.files);
	cut_lists(span);
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
	add_files(to, from);
	for (i = 0; i < from->ncpus; i++)
		span_cpu(to, from->cpus[i]);
}
