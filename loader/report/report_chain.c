// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations one after another, of whatever communicators, pure: what one has held its ranks up for they bring into the next, and
 * that is told of the first only. What a single operation says of that is report_late.c's.
 */
#include <stdlib.h>
#include <string.h>
#include "report_priv.h"

/* ---- In a communicator's queue ------------------------------------------------------------------------ */

static void shorten(int64_t *ns, double share)
{
	*ns = (int64_t)((double)*ns * share);
}

static void shorten_role(struct report_role *r, double share)
{
	uint32_t i;

	shorten(&r->span, share);
	shorten(&r->on, share);
	shorten(&r->runq, share);
	shorten(&r->blocked, share);
	shorten(&r->unknown, share);
	shorten(&r->irq, share);
	shorten(&r->throttled, share);
	for (i = 0; i < REPORT_WHO; i++) {
		shorten(&r->behind[i].ns, share);
		shorten(&r->in[i].ns, share);
	}
	for (i = 0; i < REPORT_SLEEPS; i++) {
		shorten(&r->waker[i].ns, share);
		shorten(&r->file[i].ns, share);
	}
}

/* What steps tell stays: they follow those of the operations before on their connections. */
static void shorten_link(struct report_link *l, double share)
{
	shorten(&l->dur, share);
	shorten(&l->no_data, share);
	shorten(&l->no_room, share);
	shorten(&l->data_wait, share);
	shorten(&l->recv, share);
	shorten(&l->stall, share);
	shorten(&l->room_wait, share);
	shorten(&l->busy, share);
	shorten(&l->rwnd, share);
	shorten(&l->sndbuf, share);
}

/* What threads did and flows had from its call on, some of it while those before were executed: it is taken to be spread evenly. */
static void begin_at(struct report_part *p, int64_t ns)
{
	double share = (double)(p->stop - ns) / (double)part_ns(p);
	uint32_t i;

	p->start = ns;
	shorten_role(&p->app, share);
	shorten_role(&p->proxy, share);
	for (i = 0; i < p->nlinks; i++)
		shorten_link(&p->link[i], share);
}

/* The first steps may wait for the GPU, which has not come to it before @ns. */
static void skip_gpu(struct report_link *l, int64_t ns)
{
	double till = (double)ns * l->gpu_n,
	       queued = (till < l->gpu_to ? till : l->gpu_to) - l->gpu_from;

	if (queued >= (double)l->gpu)
		l->gpu = 0;
	else if (queued > 0)
		l->gpu -= (int64_t)queued;
}

/* Called before it, and over when its kernel began: that may have waited for it in its stream. */
static bool is_before(const struct report_last *op, const struct report_op_info *info,
		      const struct report_part *p)
{
	return op->called <= p->start && op->began < p->kernel.at &&
	       op->ended <= p->kernel.at + REPORT_ENDS &&
	       (!info->group || op->group != info->group);
}

/* Of its process' operations before, of whatever communicators. */
static void take_after(const struct report_op_info *info, struct report_part *p)
{
	uint32_t i;

	for (i = 0; i < p->proc->nops && i < REPORT_LAST; i++)
		if (is_before(&p->proc->ops[i], info, p))
			p->after = most(p->after, p->proc->ops[i].ended);
}

static void note_last(const struct report_op_info *info, const struct report_part *p)
{
	int64_t began = p->kernel.at ? p->kernel.at : p->start;
	struct report_proc *proc = p->proc;
	struct report_last *last = &proc->ops[(proc->nops - 1) % REPORT_LAST];

	if (proc->nops && info->group && last->group == info->group) {
		last->called = least(last->called, p->start);
		last->began = least(last->began, began);
		last->ended = most(last->ended, p->stop);
		return;
	}
	proc->ops[proc->nops++ % REPORT_LAST] = (struct report_last){
		.group = info->group, .called = p->start, .began = began, .ended = p->stop};
}

static void note_collective(struct report_comm *c, struct report_member *m,
			    const struct report_part *p)
{
	int64_t at = p->start + p->proc->offset;

	c->ended_at = most(c->ended_at, at);
	if (at > m->has_ended.at)
		m->has_ended = (struct report_call){at, p->group};
}

void report_queue(struct report_comm *c, const struct report_op_info *info,
		  struct report_part *part)
{
	struct report_member *m = report_member_as(c, part);
	struct report_queue *q;
	uint32_t i;

	part->group = info->group;
	part->proc->called = most(part->proc->called, part->start);
	take_after(info, part);
	if (!m || !part->known || part->unfinished)
		return;
	note_last(info, part);
	if (!info->p2p)
		note_collective(c, m, part);
	q = &m->queue;
	if (q->proc != part->proc)
		*q = (struct report_queue){
			.proc = part->proc, .begin = INT64_MIN, .end = part->start};
	else if (part->stop < q->end && (!info->group || info->group != q->group))
		return; /* its line was late: when it could begin is not known */
	if (!info->group || info->group != q->group)
		q->begin = q->end;
	q->group = info->group;
	q->end = most(q->end, part->stop);
	if (part->start < q->begin && q->begin < part->stop)
		begin_at(part, q->begin);
	for (i = 0; i < part->nlinks; i++)
		skip_gpu(&part->link[i], most(part->start, part->after));
}

/* ---- What is forgotten --------------------------------------------------------------------------------- */

/*
 * After an operation of which not all is known nothing is of any of its communicator's ranks. Those of a large one are told when they
 * come again, to whichever operation: else each such operation would cost as much as it has ranks.
 */
#define FEW_MEMBERS 32
/* So many of a process' ranks are looked at, its newest ones, and that which comes. */
#define RANKS_OF 32

static void set_lag(struct report_proc *p, int64_t lag)
{
	struct report_member *m = p->in;
	uint32_t n;

	p->lag = lag;
	for (n = 0; m && n < RANKS_OF; m = m->next, n++)
		m->comm->lag = most(m->comm->lag, lag);
}

static void take_forgotten(struct report_member *m, int64_t *lag)
{
	const struct report_comm *c = m->comm;

	if (m->forgot == c->forgot)
		return;
	m->forgot = c->forgot;
	m->proc->has_ended = false;
	*lag = most(*lag, c->forgot_lag);
}

static void catch_up(struct report_proc *p, struct report_member *own)
{
	struct report_member *m = p->in;
	int64_t lag = p->lag;
	uint32_t n;

	for (n = 0; m && n < RANKS_OF; m = m->next, n++)
		take_forgotten(m, &lag);
	if (own && own->proc == p)
		take_forgotten(own, &lag);
	if (lag != p->lag)
		set_lag(p, lag);
}

/* All who have come to it. */
static void catch_up_all(const struct report_op *op)
{
	const struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		catch_up(p->proc, op->comm->forgot ? report_member_as(op->comm, p) : NULL);
	}
}

static void forget(struct report_proc *p, int64_t lag)
{
	p->has_ended = false;
	set_lag(p, lag);
}

/* Those that it has few of; returns how late all of them come, no less than @lag. */
static int64_t forget_few(const struct report_comm *c, int64_t lag)
{
	struct report_member *m, *tmp;

	HASH_ITER (hh, c->members, m, tmp) {
		catch_up(m->proc, m);
		lag = most(lag, m->proc->lag);
	}
	HASH_ITER (hh, c->members, m, tmp)
		forget(m->proc, lag);
	return lag;
}

/* Who was in it, and when it ended for them, is not known; but that all came together. */
static void forget_ends(struct report_op *op)
{
	struct report_comm *c = op->comm;
	int64_t lag = 0;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		lag = most(lag, op->parts[i]->proc->lag);
	if (HASH_COUNT(c->members) <= FEW_MEMBERS) {
		lag = forget_few(c, lag);
	} else {
		lag = most(lag, c->lag);
		c->forgot++;
		c->forgot_lag = lag;
		catch_up_all(op);
	}
	for (i = 0; i < op->nparts; i++)
		forget(op->parts[i]->proc, lag);
	c->lag = lag;
}

/* ---- From one operation to the next -------------------------------------------------------------------- */

#define LAG_MAX (INT64_C(1) << 60)
#define FEW	5 /* operations of a kind: no median yet */

/* Of whom the last operation of the communicator is known, which all of its ranks were in that the input has; else NULL. */
static struct report_member *was_in_last(const struct report_comm *c, const struct report_part *p)
{
	struct report_member *m = report_member_as(c, p);

	return m && m->nr && m->nr == c->nr && m->ended_proc == p->proc ? m : NULL;
}

static void gaps_in_comm(struct report_op *op)
{
	const struct report_member *m;
	struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		m = was_in_last(op->comm, p);
		/* a call that did not wait for the operation before was not held up by it */
		if (!m || p->start < m->ended)
			continue;
		p->gap = p->start - m->ended;
		p->held = m->held;
	}
}

static int64_t least_lag(const struct report_op *op)
{
	int64_t lag = INT64_MAX;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		lag = least(lag, op->parts[i]->proc->lag);
	return lag;
}

/* By how much later than usual, and what is told of that. */
static void take_usual(struct report_op *op)
{
	int64_t v[REPORT_USUAL];
	struct report_member *m;
	struct report_part *p;
	uint32_t i, n;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		m = was_in_last(op->comm, p);
		if (!m)
			continue;
		n = (uint32_t)least(m->ntook, REPORT_USUAL);
		memcpy(v, m->took, sizeof(v));
		p->knows_usual = n >= 3;
		p->later = p->start - m->ended - report_median(v, n);
		p->told = p->proc->lag - m->lag;
		m->took[m->ntook++ % REPORT_USUAL] = p->start - m->ended;
	}
}

static int by_lag(const void *a, const void *b)
{
	const struct report_part *x = *(struct report_part *const *)a,
				 *y = *(struct report_part *const *)b;

	if (x->proc->clock != y->proc->clock)
		return x->proc->clock < y->proc->clock ? -1 : 1;
	return x->proc->lag < y->proc->lag ? 1 : x->proc->lag > y->proc->lag ? -1 : 0;
}

/* Of one clock: who had as much to make up for and came sooner shows what of it was left. */
static void hold_less(struct report_part **p, uint32_t n)
{
	int64_t first = INT64_MAX, left = INT64_MAX;
	uint32_t i, k;

	for (i = 0; i < n; i++)
		first = least(first, p[i]->start);
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && p[k]->proc->lag == p[i]->proc->lag; k++)
			left = least(left, p[k]->start - first);
		for (; i < k; i++)
			p[i]->held = least(p[i]->held, left);
	}
}

static void held_by_lags(struct report_op *op)
{
	uint32_t n = (uint32_t)least(op->nparts, REPORT_LATE), i, k;
	int64_t lag = least_lag(op), any = 0;
	struct report_part *p[REPORT_LATE];

	for (i = 0; i < op->nparts; i++) {
		op->parts[i]->held = op->parts[i]->proc->lag - lag;
		any |= op->parts[i]->held;
	}
	if (!any)
		return;
	memcpy(p, op->parts, n * sizeof(struct report_part *));
	qsort(p, n, sizeof(struct report_part *), by_lag);
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && p[k]->proc->clock == p[i]->proc->clock;)
			k++;
		hold_less(p + i, k - i);
	}
}

/*
 * When its process' operation before ended. They come in the order in which they end, for whichever rank is last: one that this one began
 * before may have come already. False: it went on with another one meanwhile, or nothing is known.
 */
static bool ended_before(const struct report_part *p, int64_t *ended)
{
	const struct report_proc *proc = p->proc;
	bool has_next = p->start < proc->ended - REPORT_ENDS;

	*ended = has_next ? proc->ended_before : proc->ended;
	if (proc->several || !proc->has_ended || (has_next && p->start > proc->began))
		return false;
	return p->start >= *ended - REPORT_ENDS;
}

static void note_end(struct report_part *p)
{
	struct report_proc *proc = p->proc;

	proc->ended_before = proc->has_ended ? proc->ended : INT64_MAX;
	proc->began = p->start;
	proc->ended = p->stop;
	proc->has_ended = true;
}

/*
 * How long each rank took from its last operation, of whatever communicator. Which one that was is not known of a process that is
 * several ranks, or of one that goes on with another communicator meanwhile.
 */
static void take_gaps(struct report_op *op)
{
	struct report_part *p;
	int64_t ended;
	uint32_t i;

	take_usual(op);
	for (i = 0; i < op->nparts; i++) {
		if (!ended_before(op->parts[i], &ended)) {
			gaps_in_comm(op);
			return;
		}
	}
	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		ended_before(p, &ended);
		p->gap = most(0, p->start - ended);
	}
	held_by_lags(op);
}

/* By how much it took longer than its kind did so far, if that makes it a slow one. */
static int64_t told(const struct report_op *op)
{
	const struct report_class *k = op->class;
	int64_t v[REPORT_HELD], expected;
	uint32_t i;

	for (i = 0; i < k->nheld; i++)
		v[i] = k->held[i]->own;
	if (!k->warm && k->nheld < FEW)
		return 0;
	expected = k->warm ? hist__quantile(&k->time, 0.5) : report_median(v, k->nheld);
	return op->seq && (double)op->own > REPORT_TOO_LONG * (double)expected ? op->own - expected
									       : 0;
}

/* @held: of each part; what is told beyond that has held all of them up. */
static void note_lags(struct report_op *op, const int64_t *held, uint32_t n)
{
	int64_t waited = report_op_duration(op) - op->own, before = least_lag(op), behind = 0,
		alone = 0;
	struct report_proc *p;
	uint32_t i;

	for (i = 0; i < n; i++) {
		behind = most(behind, op->parts[i]->proc->lag - before);
		alone = most(alone, held[i]);
	}
	/* what of it has cost nobody time here is made up for */
	before = least(before + least(behind, waited) + most(0, told(op) - alone), LAG_MAX);
	for (i = 0; i < n; i++) {
		p = op->parts[i]->proc;
		if (p->has_ended && op->parts[i]->stop < p->ended)
			continue; /* another went on for longer */
		set_lag(p, least(before + held[i], LAG_MAX));
		note_end(op->parts[i]);
	}
}

static void note_ends(struct report_op *op)
{
	int64_t held[REPORT_LATE];
	uint32_t n = (uint32_t)least(op->nparts, REPORT_LATE), i;
	struct report_comm *c = op->comm;
	struct report_member *m;

	report_held(op, held, n);
	note_lags(op, held, n);
	if (n == op->nparts) /* all of its members, some of which come less late now */
		c->lag = 0;
	for (i = 0; i < n; i++) {
		c->lag = most(c->lag, op->parts[i]->proc->lag);
		m = report_member_as(c, op->parts[i]);
		if (!m)
			continue;
		m->nr = c->nr;
		m->ended_proc = op->parts[i]->proc;
		m->ended = op->parts[i]->stop;
		m->held = held[i];
		m->lag = op->parts[i]->proc->lag;
	}
}

/* ---- Sends and Recvs of some ranks ----------------------------------------------------------------------- */

#define WAITS_FEW  128	/* before, what is usual is not known */
#define WAITS_LONG 1024 /* twice as many messages later the longest waits are forgotten */

/* Into the two longest. */
static void put_longest(uint32_t top[2], uint32_t us)
{
	if (us > top[0]) {
		top[1] = top[0];
		top[0] = us;
	} else if (us > top[1]) {
		top[1] = us;
	}
}

/*
 * Stages of a pipeline wait for each other, as with the first messages of an iteration: what comes again and again is how the job is
 * made. So the second longest of many waits is as usual as all shorter ones, and those a little longer.
 */
static int64_t usual_wait(const struct report_waits *w)
{
	uint32_t top[2];

	if (!w || w->n < WAITS_FEW)
		return LAG_MAX;
	memcpy(top, w->top[0], sizeof(top));
	put_longest(top, w->top[1][0]);
	put_longest(top, w->top[1][1]);
	return (int64_t)(REPORT_TOO_LONG * 1000 * (double)top[1]);
}

static int64_t median_wait(const struct report_waits *w)
{
	uint32_t n = (uint32_t)(w->n < REPORT_WAITS ? w->n : REPORT_WAITS), i;
	int64_t v[REPORT_WAITS];

	for (i = 0; i < n; i++)
		v[i] = w->us[i] * INT64_C(1000);
	return report_median(v, n);
}

static void add_wait(struct report_waits *w, int64_t ns)
{
	uint32_t us = (uint32_t)least(ns / 1000, UINT32_MAX);

	put_longest(w->top[0], us);
	w->us[w->n++ % REPORT_WAITS] = us;
	if (w->n % WAITS_LONG)
		return;
	memcpy(w->top[1], w->top[0], sizeof(w->top[1]));
	memset(w->top[0], 0, sizeof(w->top[0]));
}

static void take_waits(struct report_op *op)
{
	struct report_waits *w = op->waits;
	int64_t late;
	double trust;

	op->usual = op->typical = 0;
	if (report_one_clock(op))
		report_late(op, &late, &trust);
	else
		late = report_longer(op);
	op->usual = usual_wait(w);
	if (w && late > op->usual)
		op->typical = median_wait(w);
	if (w)
		add_wait(w, late);
}

/* How much sooner than the last one of those with its clock a part ended: by so much less it was held up. */
static int64_t ended_sooner(const struct report_op *op, const struct report_part *p)
{
	int64_t last = p->stop;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		if (op->parts[i]->proc->clock == p->proc->clock)
			last = most(last, op->parts[i]->stop);
	return last - p->stop;
}

/* Nobody but those in it was held up by what was before, or is by this. */
static void chain_loose(struct report_op *op, bool whole)
{
	int64_t before = least_lag(op), behind = 0, waited, more, sooner, lag;
	uint32_t n = (uint32_t)least(op->nparts, REPORT_LATE), i;
	bool known = whole;
	struct report_proc *p;
	int64_t ended;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i]->proc;
		known &= ended_before(op->parts[i], &ended);
		behind = most(behind, p->lag - before);
	}
	if (known)
		held_by_lags(op);
	take_waits(op);
	report_carry(op);
	if (!whole)
		return;
	waited = known ? least(behind, report_op_duration(op) - op->own) : 0;
	more = told(op);
	for (i = 0; i < n; i++) {
		p = op->parts[i]->proc;
		if (p->has_ended && op->parts[i]->stop < p->ended)
			continue;
		sooner = waited || more ? ended_sooner(op, op->parts[i]) : 0;
		lag = most(p->lag, before + most(0, waited - sooner)) + most(0, more - sooner);
		set_lag(p, least(lag, LAG_MAX));
		note_end(op->parts[i]);
	}
}

void report_chain(struct report_op *op, int64_t ended)
{
	struct report_comm *c = op->comm;
	bool whole = true;
	uint32_t i;

	catch_up_all(op);
	for (i = 0; i < op->nparts; i++)
		whole &= op->parts[i]->known && !op->parts[i]->unfinished;
	if (op->loose) {
		chain_loose(op, whole && !op->awaited.n);
		return;
	}
	take_gaps(op);
	report_carry(op);
	if (ended < c->last)
		return;
	c->last = ended;
	c->nr++;
	if (whole && op->nparts >= HASH_COUNT(c->members))
		note_ends(op);
	else
		forget_ends(op);
}
