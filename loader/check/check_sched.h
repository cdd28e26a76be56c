/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of the scheduler's part of a trace: `sched` of events, and what the records `thread` and `slice` say of a thread's
 * time. check_rules.c calls them for each record of a process.
 */
#ifndef NCCLSCOPE_CHECK_SCHED_H
#define NCCLSCOPE_CHECK_SCHED_H

#include "check.h"

/* Of one process; all zero at its beginning. */
struct sched_rules {
	struct slice_end *slices; /* open addressing, by tid; owned */
	uint32_t nr, size;
};

void sched_rules__event(struct check *c, const struct json_node *rec, enum etype etype);
/* An event that is told while it is open. */
void sched_rules__open(struct check *c, const struct json_node *rec, enum etype etype);
/* @time: from when the thread was first seen to its end. */
void sched_rules__thread(struct check *c, const struct json_node *rec, int64_t time);
void sched_rules__slice(struct check *c, struct sched_rules *s, const struct json_node *rec);
void sched_rules__free(struct sched_rules *s);

#endif
