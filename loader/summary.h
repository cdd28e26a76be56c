/* SPDX-License-Identifier: BSD-2-Clause */
/* What `record` prints at its end: events by type, the slowest operations, what was lost. */
#ifndef NCCLSCOPE_SUMMARY_H
#define NCCLSCOPE_SUMMARY_H

#include <stdint.h>
#include <stdio.h>
#include "proc.h"

#define SUMMARY_SLOWEST 8

struct summary_op {
	uint64_t duration_ns;
	uint64_t seq;
	uint64_t comm_hash;
	uint64_t count;
	int32_t rank;
	uint32_t pid;
	uint8_t exec;
	char func[24];
	char datatype[16];
};

struct summary {
	uint64_t events[SCOPE_NTYPES];
	uint64_t unfinished, orphans, states;
	struct summary_op slowest[SUMMARY_SLOWEST]; /* longest first */
	uint32_t nslowest;
	struct sched_span app, proxy; /* of operations' threads, while they ran */
	uint64_t lost[LOSS_CAUSES];
	uint64_t late, malformed, evicted;
	uint32_t procs, files;
	char example[256]; /* a trace's path */
};

struct session;
struct correlate;
struct sched_join;

void summary__event(struct summary *s, const struct proc *p, const struct corr_event *ev,
		    const struct sched_join *join);
void summary__proc_end(struct summary *s, const struct proc *p);
uint64_t summary__lost(const struct summary *s);
void summary__print(const struct summary *s, const char *dir, FILE *f);

#endif
