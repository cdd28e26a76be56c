/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `ncclscope top` shows of a communicator while it is recorded: sums over its operations that are
 * written, and what is pending.
 */
#ifndef NCCLSCOPE_LIVE_H
#define NCCLSCOPE_LIVE_H

#include <jansson.h>
#include "sched_timeline.h"

struct proc;
struct session;
struct corr_comm;
struct corr_event;
struct sched_join;

/* Of one communicator in one process; malloc'ed with its first operation, freed with the communicator. */
struct live {
	uint64_t ops;		 /* of which something tells when they ended */
	uint64_t op_ns;		 /* in which any of them went on, */
	uint64_t until_ns;	 /* up to then */
	double bytes, bus_bytes; /* of these, as nccl-tests have them: by op_ns, algbw and busbw */
	uint64_t span_ns; /* progress threads, while they were at it; all ranks' time of waiting */
	struct sched_sums sums;
	struct sched_span recent; /* the same since live__doc() was last asked */
};

struct flow_counts;

/* One of the process' is over: these are its last figures, since the flow is known. */
void live__flow_end(struct proc *p, const struct flow_counts *c);

/* An operation is being written. */
void live__event(const struct proc *p, const struct corr_event *ev, const struct sched_join *join);

/*
 * "ops", "opUs" and the like, and "pending" of a communicator; ncclscope-status(1) explains the keys. NULL: no
 * memory. Who ran and what was slept in is told once.
 */
json_t *live__doc(const struct proc *p, struct corr_comm *comm);

/* Adds up the TCP flows that each process has now, for live__net(). */
void live__count_flows(const struct session *s);

/* The TCP flows of a process together, as they were counted, and those that are over; NULL: it has had none. */
json_t *live__net(const struct proc *p);

#endif
