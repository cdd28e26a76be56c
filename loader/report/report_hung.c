// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations that never ended, and which of them say why; see report.h. Ranks that wait in one may be those that others wait for in
 * another: only the one that waits for a rank that does not wait itself says why all of them hang.
 */
#include <stdlib.h>
#include <utlist.h>
#include "report_priv.h"

#define ROUNDS	   256	/* communicators one behind the other that are followed */
#define CANDIDATES 1024 /* of a communicator: each is held against all of its ranks */

static int64_t begin_of(const struct report_part *p)
{
	return p->start + p->proc->offset;
}

static int64_t first_start(const struct report_op *op)
{
	int64_t first = INT64_MAX;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		first = least(first, begin_of(op->parts[i]));
	return first;
}

static int64_t last_start(const struct report_op *op)
{
	int64_t last = INT64_MIN;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		last = most(last, begin_of(op->parts[i]));
	return last;
}

/* ---- That it has ended after all ------------------------------------------------------------------------ */

/*
 * The end of a recording, or a lost record, may hide when a collective ended. The next one that its rank called in the communicator does not
 * end before it, but for those of a group, which are executed together.
 */
static bool has_passed(const struct report_member *m, struct report_call call)
{
	return m->has_ended.at > call.at && (!call.group || call.group != m->has_ended.group);
}

/* All have gone on that were in it still. A message may wait for its other end while what comes after it ends. */
static bool is_over(const struct report_op *op)
{
	const struct report_member *m;
	const struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		if (!p->unfinished)
			continue;
		m = report_member_as(op->comm, p);
		if (op->p2p || !m || !has_passed(m, (struct report_call){begin_of(p), p->group}))
			return false;
	}
	return true;
}

/* Of those that are freed only this is known: if a collective has ended that was called after all of them, they have. */
static void uncount_freed(struct report_comm *c)
{
	struct report_class *k;

	if (!c->freed_at || c->ended_at <= c->freed_at)
		return;
	c->freed_at = 0;
	for (k = c->classes; k; k = k->next) {
		if (!k->freed)
			continue;
		k->hung -= k->freed;
		k->freed = k->cut = 0;
	}
}

/* ---- While input is read ------------------------------------------------------------------------------- */

static void hangs_in(struct report_proc *p, const struct report_comm *c)
{
	p->hangs_in_more |= p->hangs_in && p->hangs_in != c;
	p->hangs_in = p->hangs_in ?: c;
}

static void note_that_it_hangs(const struct report_op *op, struct report_part *p)
{
	struct report_member *m = report_member_as(op->comm, p);

	if (p->known && !p->unfinished) /* its part of it is over */
		return;
	if (!m) {
		hangs_in(p->proc, op->comm);
		return;
	}
	m->hangs[op->p2p] = p->proc;
	if (!op->p2p && begin_of(p) > m->hangs_in.at)
		m->hangs_in = (struct report_call){begin_of(p), p->group};
}

/* Whose first one it is, of those that hang; NULL: nobody's that is known. */
static struct report_member *first_of(const struct report_op *op, const struct report_part *p)
{
	struct report_member *m = report_member_as(op->comm, p);
	const struct report_part *q = m && m->hung ? report_part_of(m->hung, p->rank) : NULL;

	return m && (!q || begin_of(p) < begin_of(q)) ? m : NULL;
}

/* Those that are nobody's first one without it go to @rest. So many ranks it is the first one of. */
static uint32_t leave_to(struct report_op *op, struct report_op **rest)
{
	struct report_member *m;
	uint32_t n = 0, i;

	for (i = 0; i < op->nparts; i++) {
		m = first_of(op, op->parts[i]);
		n += m != NULL;
		if (!m || !m->hung || --m->hung->firsts)
			continue;
		DL_DELETE(op->comm->hung, m->hung);
		DL_APPEND(*rest, m->hung);
	}
	return n;
}

/* There is no room for it after all. */
static void take_back(struct report_op *op, struct report_op **rest)
{
	struct report_member *m;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		m = first_of(op, op->parts[i]);
		if (m && m->hung)
			m->hung->firsts++;
	}
	DL_CONCAT(op->comm->hung, *rest);
	*rest = NULL;
}

static void keep(struct report *r, struct report_op *op, uint32_t firsts)
{
	struct report_member *m;
	uint32_t i;

	op->firsts = firsts;
	for (i = 0; i < op->nparts; i++) {
		m = first_of(op, op->parts[i]);
		if (m)
			m->hung = op;
	}
	r->hung_bytes += report_op_bytes(op);
	DL_APPEND(op->comm->hung, op);
}

/* Whether it hangs may turn out at the end only. */
static void note_freed(const struct report_op *op)
{
	op->class->cut += !report_stands_still(op);
	if (op->p2p)
		return;
	op->class->freed++;
	op->comm->freed_at = most(op->comm->freed_at, last_start(op));
}

/* It is not kept. */
static void leave(struct report_op *op)
{
	note_freed(op);
	report_op_free(op);
}

/* It was kept. */
static void drop(struct report *r, struct report_op *op)
{
	r->hung_bytes -= report_op_bytes(op);
	report_op_free(op);
}

static void free_all(struct report *r, struct report_op **list)
{
	struct report_op *op;

	while ((op = *list)) {
		DL_DELETE(*list, op);
		drop(r, op);
	}
}

static uint64_t bytes_of(const struct report_op *list)
{
	const struct report_op *op;
	uint64_t bytes = 0;

	for (op = list; op; op = op->next)
		bytes += report_op_bytes(op);
	return bytes;
}

/* It does not hang. */
static void let_go(struct report *r, struct report_op *op)
{
	struct report_member *m;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		m = report_member_as(op->comm, op->parts[i]);
		if (m && m->hung == op)
			m->hung = NULL;
	}
	op->class->hung--;
	DL_DELETE(op->comm->hung, op);
	drop(r, op);
}

/* What its ranks hung in before may be over by now: then it may be the first one that they hang in. */
static void look_again(struct report *r, const struct report_op *op)
{
	const struct report_op *seen = NULL;
	struct report_member *m;
	uint32_t i;

	uncount_freed(op->comm);
	for (i = 0; i < op->nparts; i++) {
		m = report_member_as(op->comm, op->parts[i]);
		if (!m || !m->hung || m->hung == seen)
			continue;
		seen = m->hung;
		if (is_over(m->hung))
			let_go(r, m->hung);
	}
}

void report_hung_take(struct report *r, struct report_op *op)
{
	struct report_op *rest = NULL;
	uint32_t i, n;

	look_again(r, op);
	op->class->hung++;
	for (i = 0; i < op->nparts; i++)
		note_that_it_hangs(op, op->parts[i]);
	n = leave_to(op, &rest);
	if (!n && op->comm->hung) {
		leave(op);
		return;
	}
	if (r->hung_bytes - bytes_of(rest) + report_op_bytes(op) > r->hung_room) {
		r->totals.hung_left++;
		take_back(op, &rest);
		leave(op);
		return;
	}
	keep(r, op, n);
	for (op = rest; op; op = op->next)
		note_freed(op);
	free_all(r, &rest);
}

void report_hung_free(struct report *r, struct report_comm *c)
{
	free_all(r, &c->hung);
}

/* ---- At the end ---------------------------------------------------------------------------------------- */

const struct report_member *report_member_in(const struct report_op *op, struct report_member *m,
					     int64_t until)
{
	const struct report_part *p = m->before ? report_part_of(op, m->rank) : NULL;
	const struct report_member *life = p ? report_life_of(m, p->proc) : NULL;

	if (life)
		return life;
	for (life = m; life->before && report_begin(life->proc) > until; life = life->before)
		;
	return life;
}

int64_t report_open_until(const struct report_op *op)
{
	const struct report_part *p;
	int64_t until = INT64_MAX;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		if (p->unfinished)
			until = least(until, p->stop + p->beyond + p->proc->offset);
	}
	return until;
}

bool report_hangs_elsewhere(const struct report_op *op, const struct report_member *m)
{
	const struct report_proc *p = m->proc;

	if (m->hangs[true] == p || (op->p2p && m->hangs[false] == p))
		return true;
	/* which of its ranks it is in another communicator is not known of one that is several */
	return !p->several && p->hangs_in && (p->hangs_in != op->comm || p->hangs_in_more);
}

static bool is_any(const struct report_op *op, const struct report_member *m)
{
	(void)op;
	return m != NULL;
}

static bool is_idle(const struct report_op *op, const struct report_member *m)
{
	return !report_hangs_elsewhere(op, m);
}

static bool is_told(const struct report_op *op, const struct report_member *m)
{
	return m->proc->told && !m->proc->several && report_hangs_elsewhere(op, m);
}

/* Whether it waits for one that is so, of the ranks that the input has. */
static bool waits_for(const struct report_op *op,
		      bool (*is)(const struct report_op *op, const struct report_member *m))
{
	int64_t until = report_open_until(op);
	struct report_member *m, *tmp;
	uint32_t i;

	for (i = 0; op->p2p && i < op->awaited.n && i < REPORT_AWAITED; i++) {
		m = report_member_of(op->comm, op->awaited.rank[i]);
		if (m && is(op, report_member_in(op, m, until)) && !report_part_of(op, m->rank))
			return true;
	}
	if (op->p2p || op->comm->alone)
		return false;
	HASH_ITER (hh, op->comm->members, m, tmp)
		if (is(op, report_member_in(op, m, until)) && !report_part_of(op, m->rank))
			return true;
	return false;
}

bool report_waits_for_idle(const struct report_op *op)
{
	return waits_for(op, is_idle);
}

/* Nobody else's hanging is why it does. */
static bool says_why(const struct report_op *op)
{
	return report_waits_for_idle(op) || !waits_for(op, is_any);
}

/* Of an earlier life of the job: one of its ranks has become another process since. */
static bool is_past(const struct report_op *op)
{
	const struct report_member *m;
	uint32_t i;

	for (i = 0; i < op->nparts && op->comm->restarted; i++) {
		m = report_member_of(op->comm, op->parts[i]->rank);
		if (m && m->proc->self != op->parts[i]->proc->self)
			return true;
	}
	return false;
}

/* Collectives are executed one after the other. Those of the last life, if there are any. */
static const struct report_op *first_collective(const struct report_comm *c)
{
	const struct report_op *op, *first = NULL;
	int64_t start, least_start = INT64_MAX;
	bool past, first_past = true;

	for (op = c->hung; op; op = op->next) {
		if (op->p2p)
			continue;
		start = first_start(op);
		past = is_past(op);
		if (!first || (past != first_past ? first_past : start < least_start)) {
			first = op;
			least_start = start;
			first_past = past;
		}
	}
	return first;
}

struct candidate {
	bool past;
	bool why;
	int plain;
	int64_t reset; /* if that is what holds it up */
	double evidence;
	int64_t start;
};

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (a->past != b->past)
		return b->past;
	if (a->why != b->why)
		return a->why;
	if (a->plain != b->plain)
		return a->plain > b->plain;
	if (a->reset != b->reset)
		return a->reset < b->reset;
	if (a->evidence > b->evidence || a->evidence < b->evidence)
		return a->evidence > b->evidence;
	return a->start < b->start;
}

/* What its rank shows. Of resets the first one: others follow from it, when the ranks give up. */
static void weigh(struct report *r, const struct report_op *op, struct candidate *at)
{
	const struct report_proc *p;
	struct report_verdict v;

	report_judge_hung(r, op, &v);
	p = v.cause.proc;
	at->plain = report_plain(&v.cause);
	at->evidence = v.confidence;
	if (p && v.cause.code == CODE_RESET && at->plain)
		at->reset = p->reset_ns + p->offset;
}

/*
 * Of those of a communicator the first that says why; if none does, the first. Where each rank's collective is one of its own, as nobody
 * knows which belong together, the first one may be that of a rank that only waits: there the one whose rank shows most.
 */
static struct report_op *best_of(struct report *r, struct report_comm *c)
{
	const struct report_op *collective = first_collective(c);
	struct report_op *op, *best = NULL;
	struct candidate at, best_at = {.why = false};
	uint32_t n = 0;

	for (op = c->hung; op; op = op->next) {
		if (!c->alone && !op->p2p && op != collective)
			continue;
		at = (struct candidate){.past = is_past(op),
					.why = says_why(op),
					.reset = INT64_MAX,
					.start = first_start(op)};
		if (c->alone && n++ < CANDIDATES)
			weigh(r, op, &at);
		if (best && !is_better(&at, &best_at))
			continue;
		best = op;
		best_at = at;
	}
	c->says_why = best_at.why;
	return best;
}

/* It becomes the first. The others are freed, but for those that are other ranks' of the same. */
static void choose(struct report *r, struct report_comm *c)
{
	struct report_op *best = best_of(r, c);

	DL_DELETE(c->hung, best);
	if (!c->alone)
		free_all(r, &c->hung);
	DL_PREPEND(c->hung, best);
}

/* Where its ranks hang, but for collectives that are over. */
static void note_ranks(struct report_comm *c)
{
	struct report_member *newest, *tmp, *m;
	int i;

	HASH_ITER (hh, c->members, newest, tmp) {
		for (m = newest; m; m = m->before) {
			if (m->hangs[false] && has_passed(m, m->hangs_in))
				m->hangs[false] = NULL;
			for (i = 0; i < 2; i++)
				if (m->hangs[i])
					hangs_in(m->hangs[i], c);
		}
	}
}

/* Those that have ended after all, or whose ranks were ended as another rank's death ended the job. */
static void leave_cut_off(struct report *r, struct report_comm *c)
{
	struct report_op *op, *next;
	struct report_class *k;

	for (op = c->hung; op; op = next) {
		next = op->next;
		if (is_over(op) || !report_is_hung(op))
			let_go(r, op);
	}
	for (k = c->classes; k && !c->killed; k = k->next)
		k->hung -= k->cut;
}

static void tell(const struct report_comm *c)
{
	const struct report_op *op;
	uint32_t i;

	for (op = c->hung; op; op = op->next)
		for (i = 0; i < op->nparts; i++)
			op->parts[i]->proc->told = true;
}

/* Those of communicators that wait for ranks of which another one says why they hang. */
static bool follow(struct report *r)
{
	struct report_comm *c, *tmp;
	bool more = false;

	HASH_ITER (hh, r->comms, c, tmp) {
		if (!c->hung || c->says_why || c->follows || !waits_for(c->hung, is_told))
			continue;
		c->follows = more = true;
		tell(c);
	}
	return more;
}

void report_hung_end(struct report *r)
{
	struct report_comm *c, *tmp;
	int i;

	HASH_ITER (hh, r->comms, c, tmp)
		note_ranks(c);
	HASH_ITER (hh, r->comms, c, tmp) {
		uncount_freed(c);
		leave_cut_off(r, c);
		if (!c->hung)
			continue;
		choose(r, c);
		if (c->says_why)
			tell(c);
	}
	for (i = 0; i < ROUNDS && follow(r); i++)
		;
}
