// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parts of ranks into operations, and these in the order in which they ended; see report.h. Memory is bounded by how many parts
 * may wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "report_priv.h"

#define ORDER_NS (2 * REPORT_SETTLED) /* for operations that ended before it */

struct pending_key {
	uint64_t comm, seq;
	uint32_t func, zero;
};

struct come_key {
	uint64_t clock, node; /* 0: of a rank; of any node */
	int32_t rank;	      /* -1: of any */
	uint32_t zero;
};

/* What of an operation has come: of a rank, of a node, of a clock. So each part that comes need not be held against each that has. */
struct come {
	struct come_key key;
	/* Of those that ended, and of all; of a clock, as far as that is sure. */
	int64_t first_end, last_start;
	UT_hash_handle hh;
};

struct pending {
	struct pending_key key;
	struct come *come; /* owned */
	struct report_op *op;
	int64_t newest; /* by the real clock */
	int64_t since;	/* report_waits_since(), of its parts the last */
	uint64_t bytes; /* that r->waiting_bytes counts */
	uint64_t nr;	/* of those that ended at the same time, which came first */
	int64_t due;	/* no sooner than then it has waited for long enough */
	size_t due_at;	/* its place in r->due; NOT_DUE: none */
	UT_hash_handle hh;
};

#define NOT_DUE SIZE_MAX

#define TABLE_BYTES (sizeof(UT_hash_table) + HASH_INITIAL_NUM_BUCKETS * sizeof(UT_hash_bucket))
/* A thing has a bucket, of which there are up to twice as many as things, and malloc()'s own. */
#define COME_BYTES (sizeof(struct come) + 2 * sizeof(UT_hash_bucket) + 16)

static void add_bytes(struct report *r, struct pending *p, uint64_t bytes)
{
	p->bytes += bytes;
	r->waiting_bytes += bytes;
}

static void forget_bytes(struct report *r, struct pending *p)
{
	r->waiting_bytes -= p->bytes;
	p->bytes = 0;
}

/* ---- Who has waited for long enough ------------------------------------------------------------------- */

static bool due_first(const void *a, const void *b)
{
	return ((const struct pending *)a)->due < ((const struct pending *)b)->due;
}

static void due_moved(void *p, size_t i)
{
	((struct pending *)p)->due_at = i;
}

static int64_t due_of(const struct pending *p)
{
	bool all = p->op->nparts >= HASH_COUNT(p->op->comm->members);

	return p->since + (all ? REPORT_WAIT_NS : REPORT_GIVE_UP_NS);
}

/* A part of it has come. That ranks have come that it lacks makes it due later, which is seen when it seems to be. */
static void set_due(struct report *r, struct pending *p)
{
	p->due = due_of(p);
	r->due.moved = due_moved;
	if (p->due_at != NOT_DUE)
		heap__settle(&r->due, p->due_at, due_first);
	else if (heap__push(&r->due, p, due_first))
		r->err = -ENOMEM;
}

static void forget_due(struct report *r, struct pending *p)
{
	if (p->due_at != NOT_DUE)
		heap__remove(&r->due, p->due_at, due_first);
}

/* ---- In order ----------------------------------------------------------------------------------------- */

static void have_turn(struct report *r, struct pending *p)
{
	r->released = most(r->released, p->newest);
	if (report_index(p->op))
		r->err = -ENOMEM;
	report_chain(p->op, p->newest);
	report_finish(r, p->op);
	free(p);
}

static bool ended_first(const void *pa, const void *pb)
{
	const struct pending *a = pa, *b = pb;

	return a->newest != b->newest ? a->newest < b->newest : a->nr < b->nr;
}

/* The one that ended first. */
static void release(struct report *r)
{
	struct pending *p = heap__pop(&r->ready, ended_first);

	r->parts_ready -= p->op->nparts;
	forget_bytes(r, p);
	have_turn(r, p);
}

static void release_before(struct report *r, int64_t ns)
{
	const struct pending *p;

	while ((p = r->ready.n ? r->ready.at[0] : NULL) && p->newest + ORDER_NS < ns)
		release(r);
}

static void wait_for_turn(struct report *r, struct pending *p)
{
	p->nr = r->next_ready++;
	if (p->newest < r->released) { /* too late for it */
		have_turn(r, p);
	} else if (heap__push(&r->ready, p, ended_first)) {
		r->err = -ENOMEM;
		have_turn(r, p);
	} else {
		r->parts_ready += p->op->nparts;
		add_bytes(r, p, sizeof(*p) + report_op_bytes(p->op));
		release_before(r, r->came_to);
	}
}

static bool is_of_one_clock(const struct report_op *op)
{
	uint32_t i;

	for (i = 1; i < op->nparts; i++)
		if (op->parts[i]->proc->clock != op->parts[0]->proc->clock)
			return false;
	return true;
}

/* It waits for no rank any more, but for operations that ended before it. */
static void complete(struct report *r, struct pending *p)
{
	/* they do meet: what was waited for is lost, or of no recording */
	if (p->op->comm->in_vain && !is_of_one_clock(p->op))
		p->op->comm->in_vain = 0;
	HASH_DEL(r->pending, p);
	forget_due(r, p);
	HASH_FREE_ALL(p->come);
	r->npending -= p->op->nparts;
	forget_bytes(r, p);
	wait_for_turn(r, p);
}

/* Ranks that come to it later begin a second one of the same number. */
static void give_up(struct report *r, struct pending *p)
{
	struct report_comm *c = p->op->comm;

	c->given_up = p->op->seq >= c->given_up ? p->op->seq + 1 : c->given_up;
	if (p->op->nparts && p->op->seq >= c->in_vain && is_of_one_clock(p->op)) {
		c->in_vain = p->op->seq + 1;
		c->in_vain_clock = p->op->parts[0]->proc->clock;
	}
	complete(r, p);
}

void report_ready(struct report *r, struct report_op *op, int64_t newest)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p) {
		r->err = -ENOMEM;
		report_op_free(op);
		return;
	}
	p->op = op;
	p->newest = newest;
	wait_for_turn(r, p);
}

static uint32_t room(const struct report *r)
{
	uint64_t all = (uint64_t)REPORT_PARTS_EACH * r->nprocs;

	if (all < REPORT_PARTS)
		return REPORT_PARTS;
	return all < REPORT_PARTS_MAX ? (uint32_t)all : REPORT_PARTS_MAX;
}

static void make_room(struct report *r)
{
	while (r->npending + r->parts_ready > room(r) || r->waiting_bytes > r->waiting_room) {
		if (r->ready.n) {
			release(r);
			continue;
		}
		if (report_p2p_oldest(r, false))
			continue;
		if (r->pending)
			complete(r, r->pending);
		else if (!report_p2p_oldest(r, true))
			return;
		r->totals.hurried++;
	}
	while (r->nmessages > REPORT_MESSAGES && report_p2p_oldest(r, true))
		r->totals.hurried++;
}

/* ---- Parts ------------------------------------------------------------------------------------------------ */

struct report_op *report_op_new(struct report *r, const struct report_op_info *info)
{
	struct report_op *op = calloc(1, sizeof(*op));

	if (!op) {
		r->err = -ENOMEM;
		return NULL;
	}
	op->comm = report_comm(r, info->comm);
	op->class = op->comm ? report_class_of(r, op->comm, info) : NULL;
	op->func = info->func;
	op->seq = info->seq;
	op->bytes = info->bytes;
	if (op->class) {
		if (info->bytes < op->class->min_bytes)
			op->class->min_bytes = info->bytes;
		if (info->bytes > op->class->max_bytes)
			op->class->max_bytes = info->bytes;
		return op;
	}
	free(op);
	r->totals.unjoined++; /* of more communicators or classes than there is room for */
	return NULL;
}

int report_op_add(struct report *r, struct report_op *op, struct report_part *part)
{
	struct report_part **parts;
	uint32_t cap = op->cap ? 2 * op->cap : 4;

	if (op->nparts == op->cap) {
		parts = reallocarray(op->parts, cap, sizeof(*parts));
		if (!parts) {
			r->err = -ENOMEM;
			return -ENOMEM;
		}
		op->parts = parts;
		op->cap = cap;
	}
	op->parts[op->nparts++] = part;
	return 0;
}

static struct pending *pending_of(struct report *r, const struct report_op_info *info)
{
	struct pending_key key;
	struct pending *p;

	memset(&key, 0, sizeof(key));
	key.comm = info->comm;
	key.seq = info->seq;
	key.func = info->func;
	HASH_FIND(hh, r->pending, &key, sizeof(key), p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p) {
		r->err = -ENOMEM;
		return NULL;
	}
	p->key = key;
	p->newest = p->since = INT64_MIN;
	p->due_at = NOT_DUE;
	p->op = report_op_new(r, info);
	if (p->op)
		HASH_ADD(hh, r->pending, key, sizeof(key), p);
	if (p->op && HASH_ADDED(hh, p)) {
		add_bytes(r, p, sizeof(*p) + sizeof(*p->op) + TABLE_BYTES);
		return p;
	}
	if (p->op) {
		r->err = -ENOMEM;
		report_op_free(p->op);
	}
	free(p);
	return NULL;
}

/* NULL: nothing has. */
static struct come *come_of(const struct pending *p, const struct come_key *key)
{
	struct come *c;

	HASH_FIND(hh, p->come, key, sizeof(*key), c);
	return c;
}

static struct come_key key_of_rank(int32_t rank)
{
	return (struct come_key){.rank = rank};
}

static struct come_key key_of_clock(const struct report_part *part, bool node)
{
	return (struct come_key){
		.clock = part->proc->clock, .node = node ? part->proc->node : 0, .rank = -1};
}

static bool has_rank(const struct pending *p, int32_t rank)
{
	const struct come_key key = key_of_rank(rank);

	return come_of(p, &key);
}

/* @doubt: of the part's times against what @key is of. */
static int note_come(struct report *r, struct pending *p, const struct report_part *part,
		     const struct come_key *key, int64_t doubt)
{
	struct come *c = come_of(p, key);

	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return -ENOMEM;
		c->key = *key;
		c->first_end = INT64_MAX;
		c->last_start = INT64_MIN;
		HASH_ADD(hh, p->come, key, sizeof(c->key), c);
		if (!HASH_ADDED(hh, c)) {
			free(c);
			return -ENOMEM;
		}
		add_bytes(r, p, COME_BYTES);
	}
	if (part->known && !part->unfinished)
		c->first_end = least(c->first_end, part->stop + doubt);
	c->last_start = most(c->last_start, part->start - doubt);
	return 0;
}

static int note_part(struct report *r, struct pending *p, const struct report_part *part)
{
	struct come_key rank = key_of_rank(part->rank), node = key_of_clock(part, true),
			clock = key_of_clock(part, false);

	return note_come(r, p, part, &rank, 0)
		       ?: note_come(r, p, part, &node, 0)
		       ?: note_come(r, p, part, &clock, part->proc->clock_error);
}

/*
 * Whether, by the clock that they have in common, one that has come is over before the part begins (1), or this before one of them does
 * (-1); that is no wonder of one whose end is not known.
 */
static int over_before(const struct come *c, const struct report_part *part, int64_t doubt)
{
	if (c->first_end < part->start - REPORT_ENDS - doubt)
		return 1;
	return part->known && !part->unfinished && part->stop + REPORT_ENDS + doubt < c->last_start
		       ? -1
		       : 0;
}

/*
 * Replays of a CUDA graph have one number. Nobody has the result of an AllReduce before all have called it: of which @part is over before
 * another rank's begins is one before (-1), the other way round a later one (1).
 */
static int is_other_life(const struct report *r, const struct pending *p,
			 const struct report_part *part)
{
	struct come_key node = key_of_clock(part, true), clock = key_of_clock(part, false);
	const struct come *c;
	int life = 0;

	if (strcmp(names__text(r->names, p->op->func), "AllReduce"))
		return 0;
	c = come_of(p, &node);
	if (c)
		life = over_before(c, part, 0);
	c = life ? NULL : come_of(p, &clock);
	return c ? over_before(c, part, part->proc->clock_error) : life;
}

/* An operation that is judged for what @part is alone; NULL: none, and the part is freed. */
static struct report_op *op_of_one(struct report *r, const struct report_op_info *info,
				   struct report_part *part)
{
	struct report_op *op = report_op_new(r, info);

	if (op && info->counted)
		report_member(r, op->comm, part->rank, part->proc);
	if (op)
		report_queue(op->comm, info, part);
	if (op && !report_op_add(r, op, part))
		return op;
	free(part);
	if (op)
		report_op_free(op);
	return NULL;
}

/* Those of the other ranks that it was with have not come in time, and may do so later; or cannot be told. */
static void add_before(struct report *r, const struct report_op_info *info,
		       struct report_part *part)
{
	struct report_op *op = op_of_one(r, info, part);

	if (!op)
		return;
	op->comm->alone += !info->joined;
	report_ready(r, op, part->stop + part->proc->offset);
}

/* Of other profilers, which do not number operations. */
static void add_alone(struct report *r, const struct report_op_info *info, struct report_part *part)
{
	struct report_op *op = op_of_one(r, info, part);

	if (!op)
		return;
	if (report_index(op))
		r->err = -ENOMEM;
	report_carry(op);
	report_finish(r, op);
}

/* The first part of an operation: others may have waited for it in vain. */
static void note_late(struct report *r, const struct report_op *op, const struct report_part *part)
{
	const struct report_comm *c = op->comm;

	if (op->seq < c->given_up && report_waits_since(part) + REPORT_WAIT_NS < r->came_to)
		r->totals.read_late++;
	else if (op->seq < c->in_vain && part->proc->clock != c->in_vain_clock)
		r->totals.too_late++;
}

static void add_joined(struct report *r, const struct report_op_info *info,
		       struct report_part *part)
{
	int64_t at = part->stop + part->beyond + part->proc->offset;
	struct pending *p = pending_of(r, info);
	struct report_op *op;
	int life = p ? is_other_life(r, p, part) : 0;

	if (life < 0) {
		add_before(r, info, part);
		return;
	}
	if (p && (life || has_rank(p, part->rank))) { /* another life of the job */
		complete(r, p);
		p = pending_of(r, info);
	}
	if (!p) {
		free(part);
		return;
	}
	op = p->op;
	if (!op->nparts)
		note_late(r, op, part);
	report_member(r, op->comm, part->rank, part->proc);
	report_queue(op->comm, info, part);
	if (note_part(r, p, part))
		r->err = -ENOMEM;
	if (report_op_add(r, op, part)) {
		free(part);
		return;
	}
	add_bytes(r, p, report_part_bytes(part) + sizeof(part));
	r->npending++;
	p->newest = at > p->newest ? at : p->newest;
	p->since = most(p->since, report_waits_since(part));
	if (op->comm->nranks > 0 && op->nparts >= (uint32_t)op->comm->nranks)
		complete(r, p);
	else
		set_due(r, p);
}

void report_add_part(struct report *r, const struct report_op_info *info, struct report_part *part)
{
	struct report_comm *c = info->p2p ? report_comm(r, info->comm) : NULL;
	int64_t start = part->start;

	if (c) {
		report_member(r, c, part->rank, part->proc);
		report_queue(c, info, part);
		report_p2p_add(r, info, part, start);
	} else if (info->joined) {
		add_joined(r, info, part);
	} else if (info->counted) {
		add_before(r, info, part);
	} else {
		add_alone(r, info, part);
	}
	make_room(r);
}

void report_expire(struct report *r, int64_t ns)
{
	struct pending *p;

	while ((p = r->due.n ? r->due.at[0] : NULL) && p->due < ns) {
		p->due = due_of(p);
		if (p->due < ns)
			give_up(r, p);
		else
			heap__settle(&r->due, 0, due_first);
	}
	report_p2p_expire(r, ns);
	r->came_to = ns;
	release_before(r, ns);
}

void report_join_end(struct report *r)
{
	struct pending *p, *tmp;

	HASH_ITER (hh, r->pending, p, tmp)
		complete(r, p);
	while (report_p2p_oldest(r, false) || report_p2p_oldest(r, true))
		;
	while (r->ready.n)
		release(r);
}

void report_join_free(struct report *r)
{
	struct pending *p, *tmp;
	size_t i;

	report_p2p_free(r);
	HASH_ITER (hh, r->pending, p, tmp) {
		HASH_DEL(r->pending, p);
		HASH_FREE_ALL(p->come);
		report_op_free(p->op);
		free(p);
	}
	for (i = 0; i < r->ready.n; i++) {
		p = r->ready.at[i];
		report_op_free(p->op);
		free(p);
	}
	free(r->due.at);
	free(r->ready.at);
}
