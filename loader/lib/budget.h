/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that jobs make us hold: a bound for all of them, of which one may have four times what is left. So one that
 * takes all it can get stops at four fifths, n of them at 4 / (4 n + 1) each, and others always find room.
 */
#ifndef NCCLSCOPE_BUDGET_H
#define NCCLSCOPE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_FLOOR 65536 /* anybody may have so much */

struct budget {
	uint64_t max, used;
};

/* What one process holds of it. of NULL: there is no bound. */
struct budget_part {
	struct budget *of;
	uint64_t used;
};

static inline bool budget_part__take(struct budget_part *p, size_t n)
{
	uint64_t left;

	if (!p || !p->of)
		return true;
	left = p->of->max > p->of->used ? p->of->max - p->of->used : 0;
	if (p->used + n > BUDGET_FLOOR && p->used + n > 4 * left)
		return false;
	p->used += n;
	p->of->used += n;
	return true;
}

static inline void budget_part__give(struct budget_part *p, size_t n)
{
	if (!p || !p->of)
		return;
	p->used -= n;
	p->of->used -= n;
}

#endif
