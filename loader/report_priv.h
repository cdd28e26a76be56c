/* SPDX-License-Identifier: BSD-2-Clause */
/* Between report_join.c, which has the operations, report_late.c and report_verdict.c, which judge one, and report_chain.c and report_stat.c, which see all. */
#ifndef NCCLSCOPE_REPORT_PRIV_H
#define NCCLSCOPE_REPORT_PRIV_H

#include "report.h"

#define REPORT_LATE 1024 /* ranks of an operation that are compared */
#define REPORT_PARTS                                                                               \
	32768 /* that wait for other ranks or operations: the oldest ones wait no longer */
#define REPORT_SETTLED                                                                             \
	INT64_C(1500000000) /* ns after an operation: until then there may be word of children that never ended */
#define REPORT_TOO_LONG 1.5 /* as much longer than expected is slow */

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t part_ns(const struct report_part *p)
{
	return p->stop - p->start;
}

/* NULL: the input has nobody of that rank. */
static inline struct report_member *report_member_of(const struct report_comm *c, int32_t rank)
{
	struct report_member *m;

	HASH_FIND(hh, c->members, &rank, sizeof(rank), m);
	return m;
}

/* Sorts them. The lower one of two in the middle; 0 of none. */
int64_t report_median(int64_t *v, uint32_t n);

/* As far as the clocks of single nodes tell: by how much the last rank came late; 0: none did. */
int64_t report_late_on_node(const struct report_op *op);

struct report_class *report_class_of(struct report *r, struct report_comm *c,
				     const struct report_op_info *info);
void report_op_free(struct report_op *op);

/* All parts that there will be are there. Takes the operation over. */
void report_finish(struct report *r, struct report_op *op);

/* All that still wait, in their order. */
void report_join_end(struct report *r);
void report_join_free(struct report *r);

/* Takes from the part of an operation what it has waited for those before it in its communicator, which was called while they went on. */
void report_queue(const struct report_comm *c, const struct report_op_info *info,
		  struct report_part *part);

/*
 * What ranks bring into it from their operations before, and into the next ones from it. They come in the order in which they end, but for
 * one whose line was late. @ended: by the real clock.
 */
void report_chain(struct report_op *op, int64_t ended);

#endif
