/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where events and the scheduler meet: correlate has an event take marks in its thread's time, the writer
 * asks what happened between them. Part of correlate, and as pure.
 */
#ifndef NCCLSCOPE_SCHED_JOIN_H
#define NCCLSCOPE_SCHED_JOIN_H

#include "correlate.h"

/* An event starts on a thread (NULL: one whose states are not known). */
void sched_join__start(struct corr_event *ev, struct sched_thread *thread);
void sched_join__stop(struct correlate *c, struct corr_event *ev, struct sched_thread *thread);

/* The event is about to be written: of one that another thread has stopped, its own is known by now. */
void sched_join__settle(struct corr_event *ev);

/* A ProxyOp has started or stopped that belongs to an operation: its thread serves it. */
void sched_join__served(struct corr_event *op, struct corr_event *proxy_op);

/* One that has started is silent: that its thread sleeps is not for its operation's sake. */
void sched_join__silent(struct corr_event *op, struct corr_event *proxy_op);

/* The event is written: gives back what it holds. Safe twice. */
void sched_join__release(struct correlate *c, struct corr_event *ev);

/* What the kernel did to an event's threads. `threads` 0 in a span: not known. */
struct sched_join {
	struct sched_span all;
	struct sched_span app, proxy; /* operations only */
	struct sched_span
		before; /* likewise: app's thread, since the start of its operation before */
	const struct sched_slice
		*unfinished_in; /* what its thread is in now; NULL: it has stopped */
};

/* For an event that is being written; an operation's exec is closed. */
void sched_join__of(const struct correlate *c, const struct corr_event *ev,
		    struct sched_join *join);
/* For one that goes on: up to now, and culprits as of late. */
void sched_join__now(const struct correlate *c, const struct corr_event *ev,
		     struct sched_join *join);

#endif
