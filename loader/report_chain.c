// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations one after another, of whatever communicators, pure: what one has held its ranks up for they bring into the next, and
 * that is told of the first only. What a single operation says of that is report_late.c's.
 */
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
}

/*
 * @ns: when it begins. What steps tell stays: they follow those of the operations before on their connections. But the first ones may
 * wait for the GPU, which has not come to it yet.
 */
static void shorten_link(struct report_link *l, double share, int64_t ns)
{
	double till = (double)ns * l->gpu_n,
	       queued = (till < l->gpu_to ? till : l->gpu_to) - l->gpu_from;

	if (queued > 0)
		l->gpu = most(0, l->gpu - (int64_t)queued);
	shorten(&l->dur, share);
	shorten(&l->no_data, share);
	shorten(&l->no_room, share);
	shorten(&l->data_wait, share);
	shorten(&l->room_wait, share);
	shorten(&l->busy, share);
	shorten(&l->rwnd, share);
	shorten(&l->sndbuf, share);
}

/*
 * What threads did and flows had from its call on, some of it while those before were executed: it is taken to be spread evenly. */
static void begin_at(struct report_part *p, int64_t ns)
{
	double share = (double)(p->stop - ns) / (double)part_ns(p);
	uint32_t i;

	p->start = ns;
	shorten_role(&p->app, share);
	shorten_role(&p->proxy, share);
	for (i = 0; i < p->nlinks; i++)
		shorten_link(&p->link[i], share, ns);
}

void report_queue(const struct report_comm *c, const struct report_op_info *info,
		  struct report_part *part)
{
	struct report_member *m;
	struct report_queue *q;

	HASH_FIND(hh, c->members, &part->rank, sizeof(part->rank), m);
	if (!m || !part->known || part->unfinished)
		return;
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
}

/* ---- From one operation to the next -------------------------------------------------------------------- */

bool report_is_slow(const struct report *r, const struct report_op *op, int64_t expected)
{
	/* the first operation makes connections and threads: it is no wonder if it is slow */
	if (r->opt.slower_than)
		return op->own > r->opt.slower_than;
	return op->seq && (double)op->own > REPORT_TOO_LONG * (double)expected;
}

/* From the last operation of its communicator, which all of its ranks were in that the input has. */
static void gaps_in_comm(struct report_op *op)
{
	struct report_comm *c = op->comm;
	struct report_member *m;
	struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		HASH_FIND(hh, c->members, &p->rank, sizeof(p->rank), m);
		/* a call that did not wait for the operation before was not held up by it */
		if (!m || !m->nr || m->nr != c->nr || m->ended_proc != p->proc ||
		    p->start < m->ended)
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

#define ENDS_NS                                                                                    \
	INT64_C(1000000) /* by the proxy an operation ends so much later than the GPU is done with it */

/*
 * How long each rank took from its last operation, of whatever communicator. Which one that was is not known of a process that is
 * several ranks, or of one that goes on with another communicator meanwhile.
 */
static void take_gaps(struct report_op *op)
{
	int64_t lag = least_lag(op);
	struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		if (p->proc->several || !p->proc->has_ended ||
		    p->start < p->proc->ended - ENDS_NS) {
			gaps_in_comm(op);
			return;
		}
	}
	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		p->gap = most(0, p->start - p->proc->ended);
		p->held = p->proc->lag - lag;
	}
}

#define FEW 5 /* operations of a kind: no median yet */

/* By how much it took longer than its kind did so far, if that is told of it. */
static int64_t told(const struct report *r, const struct report_op *op)
{
	const struct report_class *k = op->class;
	int64_t v[REPORT_HELD], expected;
	uint32_t i;

	for (i = 0; i < k->nheld; i++)
		v[i] = k->held[i]->own;
	if (!k->warm && k->nheld < FEW)
		return 0;
	expected = k->warm ? hist__quantile(&k->time, 0.5) : report_median(v, k->nheld);
	return report_is_slow(r, op, expected) ? most(0, op->own - expected) : 0;
}

/* @held: of each part; what is told beyond that has held all of them up. */
static void note_lags(const struct report *r, struct report_op *op, const int64_t *held, uint32_t n)
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
	before += least(behind, waited) + most(0, told(r, op) - alone);
	for (i = 0; i < n; i++) {
		p = op->parts[i]->proc;
		p->lag = before + held[i];
		p->ended = op->parts[i]->stop;
		p->has_ended = true;
	}
}

static void note_ends(const struct report *r, struct report_op *op)
{
	int64_t held[REPORT_LATE];
	uint32_t n = (uint32_t)least(op->nparts, REPORT_LATE), i;
	struct report_comm *c = op->comm;
	struct report_member *m;

	report_held(op, held, n);
	note_lags(r, op, held, n);
	for (i = 0; i < n; i++) {
		HASH_FIND(hh, c->members, &op->parts[i]->rank, sizeof(op->parts[i]->rank), m);
		if (!m)
			continue;
		m->nr = c->nr;
		m->ended_proc = op->parts[i]->proc;
		m->ended = op->parts[i]->stop;
		m->held = held[i];
	}
}

/* What has been of it, and of whom, is not known. */
static void forget_ends(struct report_comm *c)
{
	struct report_member *m, *tmp;

	HASH_ITER (hh, c->members, m, tmp)
		m->proc->has_ended = false;
}

void report_chain(const struct report *r, struct report_op *op, int64_t ended)
{
	struct report_comm *c = op->comm;
	bool whole = op->nparts >= HASH_COUNT(c->members);
	uint32_t i;

	take_gaps(op);
	report_carry(op);
	for (i = 0; i < op->nparts; i++)
		whole &= op->parts[i]->known && !op->parts[i]->unfinished;
	if (ended < c->last)
		return;
	c->last = ended;
	c->nr++;
	if (whole)
		note_ends(r, op);
	else
		forget_ends(c);
}
