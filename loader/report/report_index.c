// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which parts of an operation are of a rank, of a node, of a clock, pure; see report.h. Looked for one by one, for each part, they
 * would take the square of the number of ranks. And by those beside it, how long one was in it of whom nothing tells that.
 */
#include <errno.h>
#include <stdlib.h>
#include "report_priv.h"

typedef int (*comparison)(const void *a, const void *b);

static const struct report_part *part_at(const void *list)
{
	return *(struct report_part *const *)list;
}

static int cmp(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_rank(const void *a, const void *b)
{
	const struct report_part *x = part_at(a), *y = part_at(b);

	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : cmp(x->nr, y->nr);
}

static int by_node(const void *a, const void *b)
{
	const struct report_part *x = part_at(a), *y = part_at(b);

	return cmp(x->proc->node, y->proc->node)
		       ?: cmp(x->proc->clock, y->proc->clock)
		       ?: cmp(x->nr, y->nr);
}

static int by_clock(const void *a, const void *b)
{
	const struct report_part *x = part_at(a), *y = part_at(b);

	return cmp(x->proc->clock, y->proc->clock) ?: cmp(x->nr, y->nr);
}

/* Where only some of a node's traces have been merged, their times are by two clocks. */
static void set_on_node(struct report_beside beside)
{
	struct report_beside both;
	uint32_t i = 0, k;
	int64_t last;

	while (i < beside.n) {
		last = INT64_MIN;
		for (k = i; k < beside.n && beside.at[k]->proc->clock == beside.at[i]->proc->clock;)
			last = most(last, beside.at[k++]->start);
		both = (struct report_beside){beside.at + i, k - i};
		for (; i < k; i++) {
			beside.at[i]->on_node = beside;
			beside.at[i]->on_both = both;
			beside.at[i]->last_start = most(beside.at[i]->last_start, last);
		}
	}
}

/* Of one node they are twice as sure as this, which set_on_node() has seen to. */
static void set_on_clock(struct report_beside beside)
{
	struct report_part *p;
	int64_t last = INT64_MIN;
	uint32_t i;

	for (i = 0; i < beside.n; i++)
		last = most(last, beside.at[i]->start - beside.at[i]->proc->clock_error);
	for (i = 0; i < beside.n; i++) {
		p = beside.at[i];
		p->on_clock = beside;
		p->last_start = most(p->last_start, last - p->proc->clock_error);
	}
}

static void sort(const struct report_op *op, struct report_part **to, comparison order)
{
	memcpy(to, op->parts, op->nparts * sizeof(struct report_part *));
	qsort(to, op->nparts, sizeof(struct report_part *), order);
}

static int index_parts(struct report_op *op)
{
	uint32_t n = op->nparts, i, k;
	struct report_part **nodes, **clocks;

	free(op->index);
	op->index = calloc(n ?: 1, 3 * sizeof(struct report_part *));
	for (i = 0; i < n; i++) {
		op->parts[i]->nr = i;
		op->parts[i]->on_node = op->parts[i]->on_clock = op->parts[i]->on_both =
			(struct report_beside){0};
		op->parts[i]->last_start = op->parts[i]->start;
	}
	if (!op->index)
		return -ENOMEM;
	nodes = op->index + n;
	clocks = nodes + n;
	sort(op, op->index, by_rank);
	sort(op, nodes, by_node);
	sort(op, clocks, by_clock);
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && nodes[k]->proc->node == nodes[i]->proc->node;)
			k++;
		set_on_node((struct report_beside){nodes + i, k - i});
	}
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && clocks[k]->proc->clock == clocks[i]->proc->clock;)
			k++;
		set_on_clock((struct report_beside){clocks + i, k - i});
	}
	return 0;
}

/* ---- Of whom nothing tells when it ended ------------------------------------------------------------- */

/* So long was one in it at most of whom that is known; 0: not known of any, of all, or it goes on. */
static int64_t longest_of_some(const struct report_op *op)
{
	int64_t longest = 0;
	bool all = true;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		if (op->parts[i]->unfinished)
			return 0;
		if (op->parts[i]->known)
			longest = most(longest, part_ns(op->parts[i]));
		else
			all = false;
	}
	return all ? 0 : longest;
}

/*
 * Those of one clock end together. Who called before all of whom it is known when the call was executed went ahead: it was in it no
 * sooner than they were.
 */
static void set_times(struct report_beside beside, int64_t longest)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	struct report_part *p;
	uint32_t i;

	for (i = 0; i < beside.n; i++) {
		if (!beside.at[i]->known)
			continue;
		first = least(first, beside.at[i]->start);
		last = most(last, beside.at[i]->stop);
	}
	for (i = 0; i < beside.n; i++) {
		p = beside.at[i];
		if (p->known)
			continue;
		if (last == INT64_MIN) {
			p->stop = p->start + longest;
			continue;
		}
		p->start = most(p->start, first);
		p->stop = least(most(p->start, last), p->start + longest);
	}
}

/* False: they are as they were. */
static bool set_unknown(const struct report_op *op)
{
	int64_t longest = longest_of_some(op);
	struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts && longest; i++) {
		p = op->parts[i];
		if (p->on_clock.at[0] == p)
			set_times(p->on_clock, longest);
	}
	return longest;
}

int report_index(struct report_op *op)
{
	int err = index_parts(op);

	return !err && set_unknown(op) ? index_parts(op) : err;
}

struct report_part *report_part_of(const struct report_op *op, int32_t rank)
{
	uint32_t from = 0, to = op->index ? op->nparts : 0, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (op->index[mid]->rank < rank)
			from = mid + 1;
		else
			to = mid;
	}
	return op->index && from < op->nparts && op->index[from]->rank == rank ? op->index[from]
									       : NULL;
}
