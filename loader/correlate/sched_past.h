/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a thread's sums were at times whose slices are forgotten. A thread that polls with sched_yield fills its ring of slices within a
 * quarter of a second, and what it called is often read later than that.
 */
#ifndef NCCLSCOPE_SCHED_PAST_H
#define NCCLSCOPE_SCHED_PAST_H

#include "sched_timeline.h"

#define SCHED_PAST_MAX 4096 /* points of one thread; beyond, they are thinned out */
#define SCHED_PAST_STEP_NS                                                                         \
	65536 /* between two, but for what is one slice, and until there are too many */

/* Whether a slice that goes and ends at end_ns is to have a point at its begin. */
static inline bool past__due(const struct sched_past *p, uint64_t end_ns)
{
	return end_ns - p->last_ns > p->step_ns;
}

/* A point before a slice that goes. Thinner if memory is short. */
void past__add(struct sched *s, struct sched_past *p, uint64_t ns, const struct sched_sums *sums);
/*
 * The mark at a time that is forgotten: `next` is where the slices begin that are not. Between two points all is spread evenly, so it is
 * exact within what was one slice. false: there are no points.
 */
bool past__mark(const struct sched_past *p, const struct sched_point *next, uint64_t ns,
		struct sched_mark *mark);
/* Forgets what is not needed for times from keep_ns on; the slices begin at next_ns. */
void past__prune(struct sched *s, struct sched_past *p, uint64_t next_ns, uint64_t keep_ns);

#endif
