/* SPDX-License-Identifier: BSD-2-Clause */
/* Between report_late.c and report_verdict.c, which judge one operation, and report_stat.c, which has them all. */
#ifndef NCCLSCOPE_REPORT_PRIV_H
#define NCCLSCOPE_REPORT_PRIV_H

#include "report.h"

#define REPORT_LATE	1024 /* ranks of an operation that are compared */
#define REPORT_TOO_LONG 1.5  /* as much longer than expected is slow */

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

/* Sorts them. The lower one of two in the middle; 0 of none. */
int64_t report_median(int64_t *v, uint32_t n);

/* As far as the clocks of single nodes tell: by how much the last rank came late; 0: none did. */
int64_t report_late_on_node(const struct report_op *op);

#endif
