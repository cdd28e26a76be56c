// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parts of ranks into operations, and these in the order in which they ended; see report.h. Memory is bounded by how many parts
 * may wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "clock.h"
#include "report_priv.h"

#define WAIT_NS	   (3 * NSEC_PER_SEC)	/* an operation's line may be so late */
#define GIVE_UP_NS (90 * NSEC_PER_SEC)	/* for ranks that have not come */
#define ORDER_NS   (2 * REPORT_SETTLED) /* for operations that ended before it */
#define WALK	   1024			/* places in their order that are looked at for one */

struct pending_key {
	uint64_t comm, seq;
	uint32_t func, zero;
};

struct pending {
	struct pending_key key;
	struct report_op *op;
	int64_t newest; /* by the real clock */
	struct pending *prev, *next;
	UT_hash_handle hh;
};

/* ---- In order ----------------------------------------------------------------------------------------- */

static void have_turn(struct report *r, struct pending *p)
{
	r->released = most(r->released, p->newest);
	report_chain(p->op, p->newest);
	report_finish(r, p->op);
	free(p);
}

/* The one that ended first. */
static void release(struct report *r)
{
	struct pending *p = r->ready;

	DL_DELETE(r->ready, p);
	r->nready -= p->op->nparts;
	have_turn(r, p);
}

static void release_before(struct report *r, int64_t ns)
{
	while (r->ready && r->ready->newest + ORDER_NS < ns)
		release(r);
}

/* It waits for no rank any more, but for operations that ended before it. They come nearly in order: from the end. */
static void complete(struct report *r, struct pending *p)
{
	struct pending *before = r->ready ? r->ready->prev : NULL;
	uint32_t n = 0;

	HASH_DEL(r->pending, p);
	r->npending -= p->op->nparts;
	if (p->newest < r->released) { /* too late for its turn */
		have_turn(r, p);
		return;
	}
	r->nready += p->op->nparts;
	while (before && before->newest > p->newest && n++ < WALK)
		before = before == r->ready ? NULL : before->prev;
	if (before)
		DL_APPEND_ELEM(r->ready, before, p);
	else
		DL_PREPEND(r->ready, p);
	release_before(r, r->came_to);
}

/* ---- Parts ------------------------------------------------------------------------------------------------ */

static struct report_op *new_op(struct report *r, const struct report_op_info *info)
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

static int add_to(struct report *r, struct report_op *op, struct report_part *part)
{
	struct report_part **parts;
	uint32_t cap = op->cap ? 2 * op->cap : 4;

	if (op->nparts == op->cap) {
		parts = reallocarray(op->parts, cap, sizeof(*parts));
		if (!parts) {
			r->err = -ENOMEM;
			free(part);
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
	p->newest = INT64_MIN;
	p->op = new_op(r, info);
	if (p->op)
		HASH_ADD(hh, r->pending, key, sizeof(key), p);
	if (p->op && HASH_ADDED(hh, p))
		return p;
	if (p->op) {
		r->err = -ENOMEM;
		report_op_free(p->op);
	}
	free(p);
	return NULL;
}

static bool has_rank(const struct report_op *op, int32_t rank)
{
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		if (op->parts[i]->rank == rank)
			return true;
	return false;
}

void report_add_part(struct report *r, const struct report_op_info *info, struct report_part *part)
{
	struct pending *p;
	struct report_op *op;
	int64_t at = part->stop + part->proc->offset;

	if (!info->joined) {
		op = new_op(r, info);
		if (op)
			report_queue(op->comm, info, part);
		if (!op) {
			free(part);
		} else if (add_to(r, op, part)) {
			report_op_free(op);
		} else {
			report_carry(op);
			report_finish(r, op);
		}
		return;
	}
	p = pending_of(r, info);
	if (p && has_rank(p->op, part->rank)) { /* another life of the job */
		complete(r, p);
		p = pending_of(r, info);
	}
	if (!p) {
		free(part);
		return;
	}
	report_member(r, p->op->comm, part->rank, part->proc);
	report_queue(p->op->comm, info, part);
	if (add_to(r, p->op, part))
		return;
	r->npending++;
	p->newest = at > p->newest ? at : p->newest;
	if (p->op->comm->nranks > 0 && p->op->nparts >= (uint32_t)p->op->comm->nranks)
		complete(r, p);
	while (r->npending + r->nready > REPORT_PARTS)
		if (r->ready)
			release(r);
		else
			complete(r, r->pending);
}

void report_expire(struct report *r, int64_t ns)
{
	struct pending *p, *tmp;

	HASH_ITER (hh, r->pending, p, tmp) {
		if (p->newest + WAIT_NS >= ns)
			continue;
		if (p->op->nparts >= HASH_COUNT(p->op->comm->members) ||
		    p->newest + GIVE_UP_NS < ns)
			complete(r, p);
	}
	r->came_to = ns;
	release_before(r, ns);
}

void report_join_end(struct report *r)
{
	struct pending *p, *tmp;

	HASH_ITER (hh, r->pending, p, tmp)
		complete(r, p);
	while (r->ready)
		release(r);
}

void report_join_free(struct report *r)
{
	struct pending *p, *tmp;

	HASH_ITER (hh, r->pending, p, tmp) {
		HASH_DEL(r->pending, p);
		report_op_free(p->op);
		free(p);
	}
	DL_FOREACH_SAFE (r->ready, p, tmp) {
		report_op_free(p->op);
		free(p);
	}
}
