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

int64_t report_op_beyond(const struct report_op *op)
{
	int64_t d = 0;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		d = most(d, part_ns(op->parts[i]) + op->parts[i]->beyond);
	return d - report_op_duration(op);
}

/* Those that it can be compared with, and itself, in the order of the operation's parts. */
static const struct report_beside *beside(const struct report_part *p, bool nodes)
{
	return nodes ? &p->on_both : &p->on_clock;
}

/* So many of them are compared: REPORT_LATE at most. */
static uint32_t compared(const struct report_beside *b)
{
	uint32_t n = b->n;

	while (n && b->at[n - 1]->nr >= REPORT_LATE)
		n--;
	return n < REPORT_LATE ? n : REPORT_LATE;
}

/* What of a wait of a loose operation is more than there usually is. */
static int64_t unusual(const struct report_op *op, int64_t ns)
{
	return ns > op->usual ? most(0, ns - op->typical) : 0;
}

/*
 * What of its being late by @late is a rank's own doing. As much longer as it took from the end of the operation before than ranks
 * do is, which needs no clock in common; and what that operation has not been found to hold it up for.
 */
static int64_t own_doing(const struct report_op *op, const struct report_part *p, int64_t late)
{
	int64_t own;

	if (op->loose)
		return unusual(op, late - p->held);
	if (late <= 0 || op->gap < 0 || p->gap < 0)
		return late;
	own = most(0, least(late, p->gap - op->gap));
	if (p->knows_usual)
		own = most(own, least(late, p->later - p->told));
	return most(own, late - p->held);
}

/* The first in the list of those that part @i can be compared with; itself, if there is none before it. */
static uint32_t first_beside(const struct report_op *op, uint32_t i, bool nodes)
{
	const struct report_beside *b = beside(op->parts[i], nodes);

	return b->n ? b->at[0]->nr : i;
}

/* Of those that @p can be compared with, but itself: the median of their starts, or ends (of a loose one the first), and how far clocks may be wrong. False: of none. */
static bool others_of(const struct report_op *op, const struct report_part *p, bool nodes,
		      bool ends, int64_t *median, int64_t *doubt)
{
	const struct report_beside *b = beside(p, nodes);
	int64_t times[REPORT_LATE];
	uint32_t n = compared(b), k, m = 0;
	const struct report_part *q;

	*doubt = 0;
	for (k = 0; k < n; k++) {
		q = b->at[k];
		if (q == p)
			continue;
		times[m++] = ends ? q->stop : q->start;
		*doubt = most(*doubt, report_clocks_doubt(p->proc, q->proc));
	}
	*median = report_median(times, m);
	if (op->loose && m) /* it goes on when all are there: what any of them waited is a wait */
		*median = times[0];
	return m;
}

/* Of ranks that were in it up to then, or longer: since when the first of them was. */
struct stay {
	int64_t until, since;
};

static int cmp_until(const void *a, const void *b)
{
	const struct stay *x = a, *y = b;

	return (x->until > y->until) - (x->until < y->until);
}

/* In the order of their ends, as far as these are sure. */
static void take_stays(const struct report_beside *b, uint32_t n, struct stay *s)
{
	const struct report_part *p;
	uint32_t i;

	if (!n)
		return;
	for (i = 0; i < n; i++) {
		p = b->at[i];
		s[i].until = p->known && !p->unfinished ? p->stop + p->kernel.error : INT64_MAX;
		s[i].since = p->start;
	}
	qsort(s, n, sizeof(*s), cmp_until);
	for (i = n; i > 1; i--)
		s[i - 2].since = least(s[i - 2].since, s[i - 1].since);
}

/*
 * By how much @p came after @usual; but nobody waited for it for longer than one had been there that was in it still. Only collectives such
 * as AllReduce need all ranks: the root of a Broadcast, or the leaves of a Reduce, hand their data over and leave.
 */
static int64_t late_for_others(const struct report_op *op, const struct report_part *p,
			       int64_t usual, int64_t doubt, const struct stay *s, uint32_t n)
{
	int64_t late = p->start - usual;
	uint32_t from = 0, to = n, mid;

	if (op->loose || late <= 0)
		return late;
	while (from < to) {
		mid = from + (to - from) / 2;
		if (s[mid].until < p->start - doubt)
			from = mid + 1;
		else
			to = mid;
	}
	return from < n ? least(late, p->start - s[from].since) : 0;
}

/* How late somebody came. */
struct lateness {
	const struct report_part *part; /* who did so by its own doing; NULL: nobody */
	int64_t own;			/* by how much */
	int64_t wait;			/* by how much the last one did, whosever doing that was */
};

/* The last one was held up. Of those that came before it: who was late most by its own doing, after @usual. */
static const struct report_part *late_before(const struct report_op *op,
					     const struct report_part *last, bool nodes,
					     int64_t usual, int64_t doubt, const struct stay *stays,
					     int64_t *late)
{
	const struct report_beside *b = beside(last, nodes);
	const struct report_part *worst = last, *p;
	uint32_t n = compared(b), i;
	int64_t own;

	for (i = 0; i < n; i++) {
		p = b->at[i];
		if (p == last)
			continue;
		own = own_doing(op, p, late_for_others(op, p, usual, doubt, stays, n));
		if (own > *late) {
			*late = own;
			worst = p;
		}
	}
	return worst;
}

/* Of those that @first can be compared with, it being the first of them in the list. */
static void late_beside(const struct report_op *op, uint32_t first, bool nodes, struct lateness *l)
{
	const struct report_part *last = op->parts[first];
	const struct report_beside *b = beside(last, nodes);
	uint32_t n = compared(b), k;
	int64_t by = 0, own = 0, median, doubt;
	struct stay stays[REPORT_LATE];

	for (k = 0; k < n; k++)
		if (b->at[k]->start > last->start)
			last = b->at[k];
	if (others_of(op, last, nodes, false, &median, &doubt))
		by = most(0, last->start - median - doubt);
	l->wait = most(l->wait, by);
	if (by) {
		take_stays(b, n, stays);
		own = own_doing(op, last,
				late_for_others(op, last, median + doubt, doubt, stays, n));
		if (own < by)
			last = late_before(op, last, nodes, median + doubt, doubt, stays, &own);
	}
	if (own > l->own) {
		l->own = own;
		l->part = last;
	}
}

/* Of each node (@nodes), or each clock, which several nodes may have been merged into: the last start, against the median of the others there. */
static void late_by_clock(const struct report_op *op, bool nodes, struct lateness *l)
{
	uint32_t n = least(op->nparts, REPORT_LATE), i;

	for (i = 0; i < n; i++)
		if (first_beside(op, i, nodes) == i) /* else these have had their turn */
			late_beside(op, i, nodes, l);
}

/* And by one clock: only some of its traces may have been merged. */
static bool one_node(const struct report_op *op)
{
	return !op->nparts || op->parts[0]->on_both.n == op->nparts;
}

int64_t report_longer(const struct report_op *op)
{
	int64_t shortest = INT64_MAX, longest = 0;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		shortest = least(shortest, part_ns(op->parts[i]));
		longest = most(longest, part_ns(op->parts[i]));
	}
	return longest - shortest;
}

bool report_one_clock(const struct report_op *op)
{
	uint32_t i;

	for (i = 1; i < op->nparts; i++)
		if (op->parts[i]->proc->clock != op->parts[0]->proc->clock)
			return false;
	return true;
}

/* By how much @p ended before the median of those whose clock it has, as far as that is sure; 0: of none. */
static int64_t ended_before(const struct report_op *op, const struct report_part *p)
{
	int64_t median, doubt;

	return others_of(op, p, false, true, &median, &doubt) ? median - p->stop - doubt : 0;
}

/*
 * Whatever clocks say: all end together, so who is in it for the shortest time came last. Unless a clock says that it ended before
 * them, who were held up when it had all it needed.
 */
static const struct report_part *late_by_length(const struct report_op *op, int64_t *late)
{
	int64_t others[REPORT_LATE];
	const struct report_part *shortest = NULL;
	uint32_t n = least(op->nparts, REPORT_LATE), i, m = 0;

	*late = 0;
	if (op->loose)
		return NULL; /* who sends need not wait for who receives */
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
	return *late > 0 && ended_before(op, shortest) < *late / 2 ? shortest : NULL;
}

/*
 * What clocks say of it, which is sure. And who came last by lengths (@by) where these say more, as clocks say nothing, or their
 * errors leave little of it; else NULL.
 */
static const struct report_part *late_by_all(const struct report_op *op, struct lateness *l,
					     int64_t *by)
{
	const struct report_part *shortest = NULL;

	late_by_clock(op, true, l);
	if (!one_node(op)) {
		late_by_clock(op, false, l);
		shortest = late_by_length(op, by);
	}
	return shortest && *by / 2 >= l->wait ? shortest : NULL;
}

const struct report_part *report_late(const struct report_op *op, int64_t *late, double *trust)
{
	struct lateness l = {0};
	const struct report_part *shortest;
	int64_t by, own;

	shortest = late_by_all(op, &l, &by);
	*trust = 1;
	if (shortest) {
		own = own_doing(op, shortest, by);
		if (own > l.own) {
			l.own = own;
			l.part = shortest;
			*trust = 0.8;
		}
	}
	*late = l.own;
	return l.part;
}

int64_t report_late_on_node(const struct report_op *op)
{
	struct lateness l = {0};

	late_by_clock(op, true, &l);
	return l.own;
}

/* ---- What is carried over --------------------------------------------------------------------------------- */

/* Ranks of one clock, of which some came later because the operation before had held them up. */
struct pushed {
	int64_t by;    /* so much later they had all come for that; 0: no later */
	int64_t until; /* by then */
};

static struct pushed pushed_of(const struct report_op *op, const struct report_part *mine)
{
	const struct report_beside *b = beside(mine, false);
	int64_t first = INT64_MAX, last = INT64_MIN, own = INT64_MIN, doubt = 0, late;
	const struct report_part *p;
	struct pushed pushed;
	uint32_t n = compared(b), i;

	for (i = 0; i < n; i++) {
		p = b->at[i];
		first = least(first, p->start);
		doubt = most(doubt, report_clocks_doubt(p->proc, mine->proc));
	}
	for (i = 0; i < n; i++) {
		p = b->at[i];
		late = p->start - first - doubt;
		last = most(last, p->start);
		own = most(own, p->start - most(0, late - own_doing(op, p, late)));
	}
	pushed.by = last - own;
	pushed.until = first + pushed.by;
	return pushed;
}

static int64_t median_gap(const struct report_op *op, uint32_t n)
{
	int64_t gaps[REPORT_LATE];
	uint32_t i, m = 0;

	for (i = 0; i < n; i++)
		if (op->parts[i]->gap >= 0)
			gaps[m++] = op->parts[i]->gap;
	return m > 1 ? report_median(gaps, m) : -1;
}

/* Of ranks whose clock tells of none that were held up: what they waited for one that came late by its own doing is not taken off. */
static int64_t with_late(const struct report_op *op)
{
	const struct report_part *p;
	int64_t late;
	double trust;

	p = report_late(op, &late, &trust);
	return p && !pushed_of(op, p).by ? least(late + part_ns(p), report_op_duration(op)) : 0;
}

static bool any_held(const struct report_op *op, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (op->parts[i]->held)
			return true;
	return false;
}

/* By how much later than usual it came, against the median of the others; 0: not known. */
static int64_t later_than_others(const struct report_op *op, const struct report_part *p)
{
	int64_t v[REPORT_LATE];
	uint32_t n = least(op->nparts, REPORT_LATE), i, m = 0;

	for (i = 0; i < n; i++)
		if (op->parts[i] != p && op->parts[i]->knows_usual)
			v[m++] = op->parts[i]->later;
	return p->knows_usual && m ? p->later - report_median(v, m) : 0;
}

/*
 * Where no clock tells: by how much the rank that was in it for the shortest came later for what was before, as far as that is not
 * its own doing. It came later than usual, too: else the others ended later.
 */
static int64_t pushed_by_length(const struct report_op *op)
{
	const struct report_part *p;
	struct lateness l = {0};
	int64_t by;

	p = late_by_all(op, &l, &by);
	if (!p)
		return 0;
	return most(0, least(by - own_doing(op, p, by), later_than_others(op, p)));
}

/* It did not wait for the last one. Of a rank that has come before it ended, it may have waited for that. */
static int64_t after_those_it_met(const struct report_part *p)
{
	const struct report_beside *b = beside(p, false);
	uint32_t n = compared(b), i;
	int64_t last = p->start;

	for (i = 0; i < n; i++)
		if (b->at[i]->start < p->stop)
			last = most(last, b->at[i]->start);
	return p->stop - last;
}

void report_carry(struct report_op *op)
{
	uint32_t n = least(op->nparts, REPORT_LATE), i, k;
	struct pushed pushed[REPORT_LATE];
	const struct report_part *p;
	int64_t by = 0, longer;

	op->gap = median_gap(op, n);
	for (i = 0; i < n; i++) {
		k = first_beside(op, i, false);
		pushed[i] = k < i ? pushed[k] : pushed_of(op, op->parts[i]);
		by = most(by, pushed[i].by);
	}
	if (!by && any_held(op, n))
		by = pushed_by_length(op);
	if (op->loose && !report_one_clock(op)) {
		longer = report_longer(op);
		by = most(by, longer - unusual(op, longer));
	}
	op->own = by ? with_late(op) : 0;
	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		if (i < n && pushed[i].by && op->loose && p->stop <= pushed[i].until)
			op->own = most(op->own, after_those_it_met(p));
		else if (i < n && pushed[i].by)
			op->own = most(op->own, p->stop - most(p->start, pushed[i].until));
		else /* by another clock, it waited for as long at most */
			op->own = most(op->own, part_ns(p) - by);
	}
}

/* When the first of those that have its clock had ended for sure. */
static int64_t first_end(const struct report_part *p)
{
	const struct report_beside *b = beside(p, false);
	int64_t first = p->stop, doubt = 0;
	uint32_t n = compared(b), k;

	for (k = 0; k < n; k++) {
		first = least(first, b->at[k]->stop);
		doubt = most(doubt, report_clocks_doubt(p->proc, b->at[k]->proc));
	}
	return first + doubt;
}

void report_held(const struct report_op *op, int64_t *held, uint32_t n)
{
	int64_t firsts[REPORT_LATE], all;
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		k = first_beside(op, i, false);
		firsts[i] = k < i ? firsts[k] : first_end(op->parts[i]);
		all = op->parts[i]->stop - firsts[i];
		held[i] = op->seq && (double)op->own > REPORT_TOO_LONG * (double)(op->own - all)
				  ? most(0, all)
				  : 0;
	}
}

/* ---- Kernels ------------------------------------------------------------------------------------------------ */

/* What of kernels is compared: each is more the later it began. */
typedef int64_t (*kernel_figure)(const struct report_part *p);

/*
 * How long the GPU took to begin what had been asked of it, since what it may have been busy with of the same process: longer, too,
 * where the application goes further ahead of it.
 */
static int64_t kernel_wait(const struct report_part *p)
{
	return most(0, p->kernel.at - most(p->start, p->after));
}

static int64_t kernel_begin(const struct report_part *p)
{
	return p->kernel.at;
}

/* By its own clock. All end together, so that of the last one is the shortest. */
static int64_t kernel_before_end(const struct report_part *p)
{
	return p->kernel.at - p->stop;
}

/* Whose kernels are compared. */
enum whose { OF_NODE, OF_CLOCK, OF_ALL };

static struct report_beside kernels_of(const struct report_op *op, const struct report_part *p,
				       enum whose whose)
{
	return whose == OF_ALL ? (struct report_beside){op->parts, op->nparts}
			       : *beside(p, whose == OF_NODE);
}

/* By how much a figure of its kernel is more than the median of the others', as far as clocks are sure, the GPUs' as well. */
static int64_t kernel_beyond(const struct report_op *op, const struct report_part *p,
			     enum whose whose, kernel_figure figure)
{
	const struct report_beside b = kernels_of(op, p, whose);
	int64_t others[REPORT_LATE], doubt = 0;
	uint32_t n = compared(&b), i, m = 0;
	const struct report_part *q;

	for (i = 0; i < n; i++) {
		q = b.at[i];
		if (q == p || !q->kernel.at)
			continue;
		others[m++] = figure(q);
		doubt = most(doubt,
			     q->kernel.error +
				     (whose == OF_ALL ? 0 : report_clocks_doubt(q->proc, p->proc)));
	}
	return m ? figure(p) - report_median(others, m) - doubt - p->kernel.error : 0;
}

/* The one with most of a figure, of those that @with can be compared with; NULL: no kernel of theirs is known. */
static const struct report_part *last_kernel(const struct report_op *op,
					     const struct report_part *with, enum whose whose,
					     kernel_figure figure)
{
	const struct report_beside b = kernels_of(op, with, whose);
	const struct report_part *last = NULL, *p;
	uint32_t n = compared(&b), i;

	for (i = 0; i < n; i++) {
		p = b.at[i];
		if (p->kernel.at && (!last || figure(p) > figure(last)))
			last = p;
	}
	return last;
}

/* kernel_wait() of all, which each node's last one is held against. */
struct waits {
	uint32_t n; /* 0: not asked for yet */
	int64_t sorted[REPORT_LATE];
	int64_t error[2]; /* the two largest */
};

static void take_waits(const struct report_op *op, struct waits *w)
{
	uint32_t n = least(op->nparts, REPORT_LATE), i;
	int64_t error;

	w->error[0] = w->error[1] = 0;
	for (i = 0; i < n; i++) {
		if (!op->parts[i]->kernel.at)
			continue;
		w->sorted[w->n++] = kernel_wait(op->parts[i]);
		error = op->parts[i]->kernel.error;
		w->error[1] = most(w->error[1], least(error, w->error[0]));
		w->error[0] = most(w->error[0], error);
	}
	report_median(w->sorted, w->n);
}

/* As kernel_beyond() of all. */
static int64_t wait_beyond(const struct report_op *op, const struct report_part *p, struct waits *w)
{
	int64_t own = kernel_wait(p), doubt;

	if (!w->n)
		take_waits(op, w);
	doubt = p->kernel.error == w->error[0] ? w->error[1] : w->error[0];
	return w->n > 1 ? own - report_median_but(w->sorted, w->n, own) - doubt - p->kernel.error
			: 0;
}

/* That its application went ahead is not its GPU's doing, nor that it came late: so it is late by no more than it had to wait. */
static void take_late_kernel(const struct report_op *op, const struct report_part *p, int64_t by,
			     struct waits *waits, struct lateness *l)
{
	if (by > l->own)
		by = least(by, wait_beyond(op, p, waits));
	if (by <= l->own)
		return;
	l->own = by;
	l->part = p;
}

/* Of each node, or of each clock: the last one. */
static void late_kernel_by_clock(const struct report_op *op, enum whose whose, struct waits *waits,
				 struct lateness *l)
{
	uint32_t n = least(op->nparts, REPORT_LATE), i;
	const struct report_part *p;

	for (i = 0; i < n; i++) {
		if (first_beside(op, i, whose == OF_NODE) != i)
			continue;
		p = last_kernel(op, op->parts[i], whose, kernel_begin);
		if (p)
			take_late_kernel(op, p, kernel_beyond(op, p, whose, kernel_begin), waits,
					 l);
	}
}

static bool all_ended(const struct report_op *op)
{
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		if (!op->parts[i]->known || op->parts[i]->unfinished)
			return false;
	return true;
}

/* Whatever clocks say: whose kernel is the shortest, as in late_by_length(). */
static void late_kernel_by_length(const struct report_op *op, struct waits *waits,
				  struct lateness *l)
{
	const struct report_part *p = last_kernel(op, NULL, OF_ALL, kernel_before_end);
	int64_t by = p ? kernel_beyond(op, p, OF_ALL, kernel_before_end) : 0;

	if (p && ended_before(op, p) < by / 2)
		take_late_kernel(op, p, by, waits, l);
}

/* A stage of a pipeline waits for the one before, whatever its GPU does. */
const struct report_part *report_late_kernel(const struct report_op *op, int64_t *late)
{
	struct lateness l = {0};
	struct waits waits;

	waits.n = 0;
	if (!op->loose)
		late_kernel_by_clock(op, OF_NODE, &waits, &l);
	if (!op->loose && !one_node(op)) {
		late_kernel_by_clock(op, OF_CLOCK, &waits, &l);
		if (all_ended(op))
			late_kernel_by_length(op, &waits, &l);
	}
	*late = l.own;
	return l.part;
}
