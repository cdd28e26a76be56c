// SPDX-License-Identifier: BSD-2-Clause
/* What passed between nodes, as far as it bounds their clocks; see merge_read.h, and docs/merge.md for why it does. */
#include <stdlib.h>
#include <string.h>
#include "fnv.h"
#include "merge_read.h"
#include "seq.h"
#include "recent.h"

#define KEEP_WHOLES 8192		 /* operations as a whole, */
#define KEEP_NODES  (1u << 20)		 /* and nodes of all of these */
#define AGAIN_NS    INT64_C(10000000000) /* what comes again so much later is another one */

/* A ProxyStep that is under way. */
struct step {
	uint64_t addr;
	int64_t ready;	 /* its bytes have not been given to the network before; 0: not known */
	int64_t arrived; /* they were all there; 0: not known */
	UT_hash_handle hh;
};

/* One step of a ProxyOp, as the two ends of a message. */
struct hop {
	uint64_t step;
	int64_t sent, arrived; /* the latter if it was a receive */
};

/* A ProxyOp whose operation is under way: its first step and its last one. */
struct op {
	uint64_t addr, next; /* next: of the same operation; 0: none */
	uint32_t channel, nhops;
	int32_t peer;
	bool is_send;
	struct hop hops[2];
	UT_hash_handle hh;
};

struct coll {
	uint64_t addr, ops; /* ops: the last that came, which leads to the others; 0: none */
	UT_hash_handle hh;
};

/* When a call of the application's for an operation began. */
struct call {
	uint64_t addr;
	int64_t start;
	UT_hash_handle hh;
};

/*
 * A message, with one end or both. Whether its key is no other's as well, as all replays of a CUDA graph have one, is known when none has
 * come for long: so it counts when it goes.
 */
struct met {
	uint64_t addr; /* its key */
	uint32_t from, to;
	int64_t sent, arrived; /* 0: that end has not come */
	bool several;
	UT_hash_handle hh;
};

/* Of an operation, a node's part in it. */
struct whole_node {
	uint32_t node;
	uint32_t gen;	     /* the operation's when it came to it */
	int64_t start, stop; /* last start and first stop of its ranks */
};

/* An operation that nobody leaves before all have come, by nodes. It counts when it goes, too. */
struct whole {
	uint64_t addr; /* its key */
	uint32_t gen;  /* another one for each of that key, higher than all before */
	uint32_t n, cap;
	bool several;
	struct whole_node *at; /* owned */
	UT_hash_handle hh;
};

/* A rank's part in one, to know whether it comes again. */
struct part {
	uint64_t addr; /* key of the operation, node and rank */
	uint32_t gen;  /* the operation's when it came */
	int64_t start;
	UT_hash_handle hh;
};

static uint64_t get_text(const struct merge_reader *rd, node_t obj, const char *key)
{
	node_t n = get(rd, obj, key);

	return n && n->kind == JSON_KIND_STR ? fnv_more(0, n->s, n->len) : 0;
}

/* ---- Messages -------------------------------------------------------------------------------------------- */

static void pass(struct merge *m, uint32_t from, int64_t sent, uint32_t to, int64_t arrived)
{
	int err = merge_clock__message(m->clock, from, sent, to, arrived);

	m->err = m->err ?: err;
}

static void settle(struct merge *m, const struct met *e)
{
	if (e->sent && e->arrived && !e->several && e->from != e->to)
		pass(m, e->from, e->sent, e->to, e->arrived);
}

/*
 * When a part comes again, what another one that is there is of: not of the same as the last was, from which it is @was away, but of
 * what begins with this one, which is @now away. It has been read before this one, and what belongs to the last is missing. Where it
 * is far from both, clocks are, and which one is nearer tells nothing.
 */
static bool is_ahead(int64_t was, int64_t now)
{
	return was >= AGAIN_NS && now < AGAIN_NS;
}

/* An end that was there comes again: of the same message, or of another one by that name, long after. */
static bool comes_again(struct merge_reader *rd, struct met *e, bool sent, int64_t ns)
{
	int64_t was = sent ? e->sent : e->arrived, other = sent ? e->arrived : e->sent;

	if (!was)
		return false;
	if (llabs(ns - was) < AGAIN_NS) {
		e->several = true;
		return true;
	}
	if (other && is_ahead(llabs(other - was), llabs(other - ns)))
		return false;
	if (llabs(e->arrived - e->sent) < AGAIN_NS)
		settle(rd->m, e);
	e->sent = e->arrived = 0;
	e->several = false;
	return false;
}

/* One end of a message; with its other, a bound for the clocks of two nodes. */
static void meet(struct merge_reader *rd, uint64_t key, bool sent, int64_t ns)
{
	struct merge_learner *all = rd->all;
	struct met *e = RECENT(all->met, struct met, key, false, KEEP_MET, &rd->m->err);

	if (!e && HASH_COUNT(all->met) >= KEEP_MET)
		settle(rd->m, all->met); /* the oldest, which goes */
	e = RECENT(all->met, struct met, key, true, KEEP_MET, &rd->m->err);
	ns += rd->offset;
	if (!e || comes_again(rd, e, sent, ns))
		return;
	if (sent) {
		e->sent = ns;
		e->from = rd->proc->node;
	} else {
		e->arrived = ns;
		e->to = rd->proc->node;
	}
}

/*
 * SendWait comes after the step's bytes have been given to the network, which may be quicker. What is before it does not: NCCL has asked for
 * room at the peer, again and again, and last right before; or, in older versions, for the data.
 */
void messages__state(struct merge_reader *rd, node_t rec)
{
	node_t name = get(rd, rec, "name");
	bool send = jn_is(name, "ProxyStepSendPeerWait") || jn_is(name, "ProxyStepSendGPUWait");
	struct step *s;
	int64_t ts;

	if (!get_point(rd, rec, "ts", &ts))
		return;
	move_to(rd, ts);
	if (!send && !jn_is(name, "ProxyStepRecvFlushWait"))
		return;
	s = RECENT(rd->steps, struct step, get_addr(rd, rec, "eventAddr"), true, KEEP, &rd->m->err);
	if (s && send) {
		get_point(rd, rec, "lastTs", &ts);
		s->ready = ts;
	} else if (s) {
		s->arrived = ts;
	}
}

void messages__step(struct merge_reader *rd, node_t rec, int64_t start, int64_t stop)
{
	uint64_t number = get_u64(rd, get(rd, rec, "details"), "step");
	struct step *s = RECENT(rd->steps, struct step, get_addr(rd, rec, "eventAddr"), false, KEEP,
				&rd->m->err);
	struct op *op =
		RECENT(rd->ops, struct op, get_addr(rd, rec, "parentObj"), true, KEEP, &rd->m->err);
	struct hop hop = {number, s && s->ready ? s->ready : start,
			  s && s->arrived ? s->arrived : stop};

	if (s)
		RECENT_FORGET(rd->steps, s);
	if (!op)
		return;
	if (!op->nhops) {
		op->hops[op->nhops++] = hop;
	} else if (number < op->hops[0].step) {
		op->hops[0] = hop;
	} else if (op->nhops == 1 || number > op->hops[1].step) {
		op->hops[1] = hop;
		op->nhops = 2;
	}
}

void messages__proxy_op(struct merge_reader *rd, node_t rec, int64_t start, int64_t stop)
{
	node_t details = get(rd, rec, "details");
	struct op *op =
		RECENT(rd->ops, struct op, get_addr(rd, rec, "eventAddr"), true, KEEP, &rd->m->err);
	struct coll *c = RECENT(rd->colls, struct coll, get_addr(rd, rec, "parentObj"), true, KEEP,
				&rd->m->err);

	if (!op || !c)
		return;
	op->channel = (uint32_t)get_u64(rd, details, "channel");
	op->peer = get_i32(rd, details, "peer", -1);
	op->is_send = jn_true(get(rd, details, "isSend"));
	if (!op->nhops) /* steps are not recorded: it is all one */
		op->hops[op->nhops++] = (struct hop){UINT64_MAX, start, stop};
	op->next = c->ops;
	c->ops = op->addr;
}

static void meet_op(struct merge_reader *rd, const struct op *op, uint64_t key, int32_t rank)
{
	uint64_t from = (uint32_t)(op->is_send ? rank : op->peer);
	uint64_t to = (uint32_t)(op->is_send ? op->peer : rank);
	uint32_t i;

	for (i = 0; i < op->nhops; i++)
		meet(rd, KEY_OF(key, from << 32 | to, op->channel, op->hops[i].step), op->is_send,
		     op->is_send ? op->hops[i].sent : op->hops[i].arrived);
}

static void pass_both(struct merge *m, const struct whole_node *a, const struct whole_node *b)
{
	pass(m, a->node, a->start, b->node, b->stop);
	pass(m, b->node, b->start, a->node, a->stop);
}

static int by_node(const void *pa, const void *pb)
{
	const struct whole_node *a = pa, *b = pb;

	return (a->node > b->node) - (a->node < b->node);
}

/*
 * Each with the next one, and with the first: so there are short ways between any two of thousands. In the order of nodes, whichever
 * came first: of all operations the same ones are bounded by each other.
 */
static void settle_whole(struct merge *m, struct whole *w)
{
	uint32_t i;

	if (w->n < 2 || w->several)
		return;
	qsort(w->at, w->n, sizeof(*w->at), by_node);
	for (i = 1; i < w->n; i++) {
		pass_both(m, &w->at[i - 1], &w->at[i]);
		if (i > 1)
			pass_both(m, &w->at[0], &w->at[i]);
	}
}

static void drop_whole(struct merge *m, struct merge_learner *all, struct whole *w)
{
	settle_whole(m, w);
	all->whole_nodes -= w->cap;
	free(w->at);
	RECENT_FORGET(all->wholes, w);
}

/* For how long one was over when the other began; negative: there is a time that is of both. */
static int64_t apart(const struct whole_node *a, const struct whole_node *b)
{
	int64_t ab = b->start - a->stop, ba = a->start - b->stop;

	return ab > ba ? ab : ba;
}

/* A part of the next one by its name has come, of the node whose part in this one was @was. */
static void next_whole(struct merge_reader *rd, struct whole *w, struct whole_node was,
		       const struct whole_node *now)
{
	struct whole_node *at = w->at, *end = at + w->n, *ahead = at, moved;

	for (; at < end; at++) {
		if (is_ahead(apart(at, &was), apart(at, now)))
			continue;
		moved = *ahead;
		*ahead++ = *at;
		*at = moved;
	}
	w->n = (uint32_t)(ahead - w->at);
	settle_whole(rd->m, w);
	w->n = (uint32_t)(end - ahead);
	memmove(w->at, ahead, w->n * sizeof(*ahead));
	w->several = w->several && w->n;
	w->gen = ++rd->all->gens;
}

static struct whole_node *node_of(const struct whole *w, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < w->n; i++)
		if (w->at[i].node == node)
			return &w->at[i];
	return NULL;
}

/*
 * Whether a rank's part in it has come before. One that comes long after is of another one by that name, as is one that is long after
 * that of another rank of its node.
 */
static bool is_again(struct merge_reader *rd, struct whole *w, int32_t rank,
		     const struct whole_node *now)
{
	struct part *p =
		RECENT(rd->all->parts, struct part, KEY_OF(w->addr, rd->proc->node, (uint32_t)rank),
		       true, KEEP_MET, &rd->m->err);
	const struct whole_node *was = node_of(w, now->node);

	if (!p || (p->start && llabs(now->start - p->start) < AGAIN_NS))
		return true;
	if (was && (p->gen >= was->gen || apart(was, now) >= AGAIN_NS))
		next_whole(rd, w, *was, now);
	p->gen = w->gen;
	p->start = now->start;
	return false;
}

/* For one node more. Older operations make room for it. */
static int grow_whole(struct merge *m, struct merge_learner *all, struct whole *w)
{
	uint32_t cap = w->cap ? 2 * w->cap : 4;
	struct whole_node *at;

	if (w->n < w->cap)
		return 0;
	at = reallocarray(w->at, cap, sizeof(*at));
	if (!at)
		return -ENOMEM;
	w->at = at;
	all->whole_nodes += cap - w->cap;
	w->cap = cap;
	while (all->whole_nodes > KEEP_NODES && all->wholes != w)
		drop_whole(m, all, all->wholes);
	return 0;
}

static int add_to_whole(struct merge_reader *rd, struct whole *w, const struct whole_node *part)
{
	struct whole_node *at = node_of(w, part->node);
	int err;

	if (!at) {
		err = grow_whole(rd->m, rd->all, w);
		if (err)
			return err;
		at = &w->at[w->n++];
		*at = *part;
		at->gen = w->gen;
		return 0;
	}
	at->start = part->start > at->start ? part->start : at->start;
	at->stop = part->stop < at->stop ? part->stop : at->stop;
	return 0;
}

/* Of an AllReduce nobody has the result before all have given their part, which is none before they have called. */
static void meet_all(struct merge_reader *rd, uint64_t key, int32_t rank, int64_t start,
		     int64_t stop)
{
	const struct whole_node part = {
		.node = rd->proc->node, .start = start + rd->offset, .stop = stop + rd->offset};
	struct merge_learner *all = rd->all;
	struct whole *w = RECENT(all->wholes, struct whole, key, false, KEEP_WHOLES, &rd->m->err);

	if (!w && HASH_COUNT(all->wholes) >= KEEP_WHOLES)
		drop_whole(rd->m, all,
			   all->wholes); /* the oldest: RECENT() would leave what it owns */
	w = RECENT(all->wholes, struct whole, key, true, KEEP_WHOLES, &rd->m->err);
	if (!w)
		return;
	if (!w->gen)
		w->gen = ++all->gens;
	if (is_again(rd, w, rank, &part))
		w->several = true;
	else if (add_to_whole(rd, w, &part))
		rd->m->err = -ENOMEM;
}

void messages__operation(struct merge_reader *rd, node_t rec)
{
	node_t details = get(rd, rec, "details"), exec = get(rd, rec, "exec");
	uint64_t key = KEY_OF(get_addr(rd, rec, "commHash"), get_text(rd, rec, "func"),
			      get_u64(rd, details, "seq"));
	struct coll *c = RECENT(rd->colls, struct coll, get_addr(rd, rec, "eventAddr"), false, KEEP,
				&rd->m->err);
	int32_t rank = get_i32(rd, rec, "rank", -1);
	struct call *call = RECENT(rd->calls, struct call, get_addr(rd, rec, "parentObj"), false,
				   KEEP, &rd->m->err);
	/* where something is missing, the last of what there is may be too early */
	bool sure = seq__is_common(&rd->m->doc, details, rd->common) && get(rd, details, "seq") &&
		    !get(rd, rec, "lossNear");
	uint64_t next = c ? c->ops : 0;
	struct op *op;
	int64_t stop;

	while (next && (op = RECENT(rd->ops, struct op, next, false, KEEP, &rd->m->err))) {
		next = op->next;
		if (sure)
			meet_op(rd, op, key, rank);
		RECENT_FORGET(rd->ops, op);
	}
	if (c)
		RECENT_FORGET(rd->colls, c);
	/* the event itself may begin after its kernel */
	if (sure && call && jn_is(get(rd, rec, "func"), "AllReduce") &&
	    get_point(rd, exec, "stop", &stop) && !jn_is(get(rd, exec, "source"), "enqueue"))
		meet_all(rd, key, rank, call->start, stop);
}

void messages__call(struct merge_reader *rd, node_t rec, int64_t start)
{
	struct call *call = RECENT(rd->calls, struct call, get_addr(rd, rec, "eventAddr"), true,
				   KEEP, &rd->m->err);

	if (call)
		call->start = start;
}

void messages__forget(struct merge_reader *rd)
{
	HASH_FREE_ALL(rd->steps);
	HASH_FREE_ALL(rd->ops);
	HASH_FREE_ALL(rd->colls);
	HASH_FREE_ALL(rd->calls);
}

void messages__settle(struct merge *m, struct merge_learner *all)
{
	struct whole *w, *wtmp;
	struct met *e, *tmp;

	HASH_ITER (hh, all->met, e, tmp)
		settle(m, e);
	HASH_ITER (hh, all->wholes, w, wtmp)
		drop_whole(m, all, w);
	HASH_FREE_ALL(all->met);
	HASH_FREE_ALL(all->parts);
}
