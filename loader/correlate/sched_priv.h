/* SPDX-License-Identifier: BSD-2-Clause */
/* Between sched_timeline.c, which keeps what happened, and sched_span.c, which sums it up. */
#ifndef NCCLSCOPE_SCHED_PRIV_H
#define NCCLSCOPE_SCHED_PRIV_H

#include "less.h"
#include "sched_culprits.h"
#include "sched_timeline.h"

static inline struct sched_slice *slice_at(const struct sched_thread *t, uint64_t n)
{
	return &t->slices.at[n & (t->slices.size - 1)];
}

static inline struct culprit *wait_at(const struct sched_thread *t, uint64_t n)
{
	return &t->waits.at[n & (t->waits.size - 1)];
}

static inline uint64_t slice_end(const struct sched_thread *t, uint64_t n)
{
	if (n + 1 < t->slices.end)
		return slice_at(t, n + 1)->start_ns;
	return t->gone ? t->end_ns : UINT64_MAX;
}

/*
 * Up to when a slice is certain. Wake-ups are told when the thread runs, so the last one, a sleep, is what it
 * is up to when the thread was last seen so.
 */
static inline uint64_t slice_certain(const struct sched_thread *t, uint64_t n)
{
	const struct sched_slice *sl = slice_at(t, n);

	if (sl->state != SCHED_BLOCKED || t->gone || n + 1 < t->slices.end)
		return slice_end(t, n);
	return t->seen_ns > sl->start_ns ? t->seen_ns : sl->start_ns;
}

/* *to += *a - *b */
static inline void add_difference(struct sched_sums *to, const struct sched_sums *a,
				  const struct sched_sums *b)
{
	to->on_cpu_ns += less(a->on_cpu_ns, b->on_cpu_ns);
	to->runq_ns += less(a->runq_ns, b->runq_ns);
	to->blocked_ns += less(a->blocked_ns, b->blocked_ns);
	to->irq_ns += less(a->irq_ns, b->irq_ns);
	to->net_rx_ns += less(a->net_rx_ns, b->net_rx_ns);
	to->throttled_ns += less(a->throttled_ns, b->throttled_ns);
	to->switches += less(a->switches, b->switches);
	to->preemptions += less(a->preemptions, b->preemptions);
	to->migrations += less(a->migrations, b->migrations);
}

/* Adds who ran on `cpu` between two times in which a recorded thread waited for it. */
void blame_cpu(const struct sched *s, struct culprits *c, uint32_t cpu, uint64_t from, uint64_t to);

/* What spans keep from one to the next; NULL: no memory. */
struct sched_tallies *tallies_new(void);
/* A thread goes. NULL is fine. */
void tallies_forget(struct sched_tallies *all, const struct sched_thread *t);

#endif
