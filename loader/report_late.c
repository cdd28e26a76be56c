// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who came late to an operation, pure; see report.h. Clocks tell, as far as they can be compared, and how long each rank was in it;
 * and what of that is a rank's own doing, the time that each took from its operation before.
 */
#include <stdlib.h>
#include "report_priv.h"

static int cmp_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int64_t report_median(int64_t *v, uint32_t n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), cmp_ns);
	return v[(n - 1) / 2];
}

int64_t report_op_duration(const struct report_op *op)
{
	int64_t d = 0;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		d = most(d, part_ns(op->parts[i]));
	return d;
}

/* By how much their clocks may be wrong about which of two came first. */
static int64_t clocks_doubt(const struct report_proc *a, const struct report_proc *b)
{
	return a->node == b->node ? 0 : a->clock_error + b->clock_error;
}

static bool compare(const struct report_proc *a, const struct report_proc *b, bool nodes)
{
	return nodes ? a->node == b->node : a->clock == b->clock;
}

/*
 * What of its being late by @late is a rank's own doing: as much longer as it took from the end of the operation before than
 * ranks do. The rest is that this had ended later for it, which has been held against that. Needs no clock in common.
 */
static int64_t own_doing(const struct report_op *op, const struct report_part *p, int64_t late)
{
	return op->gap >= 0 && p->gap >= 0 ? most(0, least(late, p->gap - op->gap)) : late;
}

/* By how much @p came after the median of those that it can be compared with, and how far their clocks may be wrong; false: of none. */
static bool behind_others(const struct report_op *op, const struct report_part *p, bool nodes,
			  int64_t *by, int64_t *doubt)
{
	int64_t starts[REPORT_LATE];
	uint32_t n = least(op->nparts, REPORT_LATE), k, m = 0;

	*doubt = 0;
	for (k = 0; k < n; k++) {
		if (op->parts[k] == p || !compare(op->parts[k]->proc, p->proc, nodes))
			continue;
		starts[m++] = op->parts[k]->start;
		*doubt = most(*doubt, clocks_doubt(p->proc, op->parts[k]->proc));
	}
	*by = p->start - report_median(starts, m);
	return m;
}

/*
 * Of each node (@nodes), or each clock, which several nodes may have been merged into: the last start, and how long at least that
 * was after the median of the other ranks there.
 */
static const struct report_part *late_by_clock(const struct report_op *op, bool nodes,
					       int64_t *late, int64_t *carried)
{
	const struct report_part *p, *last, *worst = NULL;
	uint32_t n = least(op->nparts, REPORT_LATE), i, k;
	int64_t by, doubt, own;

	*late = *carried = 0;
	for (i = 0; i < n; i++) {
		p = op->parts[i];
		for (k = 0; k < i && !compare(op->parts[k]->proc, p->proc, nodes); k++)
			;
		if (k < i)
			continue; /* these have had their turn */
		for (last = p, k = i; k < n; k++)
			if (compare(op->parts[k]->proc, p->proc, nodes) &&
			    op->parts[k]->start > last->start)
				last = op->parts[k];
		if (!behind_others(op, last, nodes, &by, &doubt) || by <= doubt)
			continue;
		own = own_doing(op, last, by - doubt);
		*carried = most(*carried, by - doubt - own);
		if (own > *late) {
			*late = own;
			worst = last;
		}
	}
	return worst;
}

static bool one_node(const struct report_op *op)
{
	uint32_t i;

	for (i = 1; i < op->nparts; i++)
		if (op->parts[i]->proc->node != op->parts[0]->proc->node)
			return false;
	return true;
}

/* A clock knows that it did not come as late as that. */
static bool came_before(const struct report_op *op, const struct report_part *p, int64_t late)
{
	int64_t by, doubt;

	return (behind_others(op, p, true, &by, &doubt) && by < late) ||
	       (behind_others(op, p, false, &by, &doubt) && by + doubt < late);
}

/*
 * Whatever clocks say: all end together, so who is in it for the shortest time came last. Or it ended before them, if they were
 * held up after it had all it needed.
 */
static const struct report_part *late_by_length(const struct report_op *op, int64_t *late)
{
	int64_t others[REPORT_LATE];
	const struct report_part *shortest = NULL;
	uint32_t n = least(op->nparts, REPORT_LATE), i, m = 0;

	*late = 0;
	for (i = 0; i < n; i++) {
		if (!op->parts[i]->known || op->parts[i]->unfinished)
			return NULL;
		if (!shortest || part_ns(op->parts[i]) < part_ns(shortest))
			shortest = op->parts[i];
	}
	for (i = 0; i < n; i++)
		if (op->parts[i] != shortest)
			others[m++] = part_ns(op->parts[i]);
	if (m < 2)
		return NULL; /* which of two is the odd one is not known */
	*late = report_median(others, m) - part_ns(shortest);
	return *late > 0 && !came_before(op, shortest, *late / 2) ? shortest : NULL;
}

/* What a clock says is sure. Lengths say more where it says nothing, or the errors of clocks leave little of it. */
const struct report_part *report_late(const struct report_op *op, int64_t *late, int64_t *carried,
				      double *trust)
{
	const struct report_part *here = late_by_clock(op, true, late, carried), *there;
	int64_t by, more, own;

	*trust = 1;
	if (one_node(op))
		return here;
	there = late_by_clock(op, false, &by, &more);
	*carried = most(*carried, more);
	if (there && by > *late) {
		here = there;
		*late = by;
	}
	there = late_by_length(op, &by);
	if (!there || by / 2 < *late + *carried)
		return here;
	own = own_doing(op, there, by);
	*carried = by - own;
	*late = own;
	*trust = 0.8;
	return own ? there : NULL;
}

int64_t report_late_on_node(const struct report_op *op)
{
	int64_t late, carried;

	late_by_clock(op, true, &late, &carried);
	return late;
}

void report_carry(struct report_op *op)
{
	int64_t gaps[REPORT_LATE], late;
	uint32_t n = least(op->nparts, REPORT_LATE), i, m = 0;
	double trust;

	for (i = 0; i < n; i++)
		if (op->parts[i]->gap >= 0)
			gaps[m++] = op->parts[i]->gap;
	op->gap = m > 1 ? report_median(gaps, m) : -1;
	report_late(op, &late, &op->carried, &trust);
}
