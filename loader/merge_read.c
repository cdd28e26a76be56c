// SPDX-License-Identifier: BSD-2-Clause
/*
 * What lines tell before they can be merged: nodes and processes, messages between nodes, ends of connections, and whose the
 * operations are that others worked on. Children come before their operation, so what counts of them is kept by its id until
 * then. Nothing in a line is trusted: what has a wrong type counts as absent, and tables forget (recent.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "log.h"
#include "merge.h"
#include "recent.h"

#define KEEP	    65536		 /* of each kind in a process */
#define KEEP_MET    262144		 /* ends of messages */
#define KEEP_WHOLES 8192		 /* operations as a whole, */
#define WHOLE_NODES 64			 /* and of each so many nodes */
#define AGAIN_NS    INT64_C(10000000000) /* what comes again so much later is another one */
#define PROCS_MAX   65536
#define ENDS_MAX    16 /* of one connection's name */
#define FLOWS_MAX   (1u << 20)
#define ORIGINS_MAX (1u << 22)
#define FLOW_LEN    128
#define HOST_LEN    256
#define TIME_MAX    (INT64_C(1) << 61) /* 73 years */

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

/* An operation that nobody leaves before all have come, by nodes. It counts when it goes, too. */
struct whole {
	uint64_t addr; /* its key */
	uint32_t gen;  /* the how manieth of that key it is */
	uint32_t n;
	bool several;
	struct {
		uint32_t node;
		int64_t start, stop; /* last start and first stop of that node's ranks */
	} at[WHOLE_NODES];
	UT_hash_handle hh;
};

/* A rank's part in one, to know whether it comes again. */
struct part {
	uint64_t addr; /* key of the operation, node and rank */
	uint32_t gen;
	int64_t start;
	UT_hash_handle hh;
};

/* An operation that somebody may turn out to have worked on for another process. */
struct seen {
	uint64_t addr; /* as merge_origin's key */
	uint64_t comm, seq;
	int32_t rank;
	bool has_seq;
	UT_hash_handle hh;
};

struct merge_learner {
	struct met *met;
	struct whole *wholes;
	struct part *parts;
	struct seen *seen;
};

struct reader {
	struct merge *m;
	struct merge_learner *all;
	const char *path;
	uint32_t stream;
	struct merge_proc *first, *proc; /* of the stream; the one whose lines come */
	int64_t offset;			 /* of its node */
	struct step *steps;
	struct op *ops;
	struct coll *colls;
	struct call *calls;
	bool counts; /* its operations' seq is the same on all nodes */
	int64_t now;
};

typedef const struct json_node *node_t;

/* ---- Values ---------------------------------------------------------------------------------------------- */

static node_t get(const struct reader *rd, node_t obj, const char *key)
{
	return jn_get(&rd->m->doc, obj, key);
}

static bool get_point(const struct reader *rd, node_t obj, const char *key, int64_t *ns)
{
	return jn_time(get(rd, obj, key), true, ns) && *ns >= 0 && *ns < TIME_MAX;
}

static uint64_t get_addr(const struct reader *rd, node_t obj, const char *key)
{
	return jn_addr(get(rd, obj, key));
}

static uint64_t get_u64(const struct reader *rd, node_t obj, const char *key)
{
	uint64_t v;

	return jn_u64(get(rd, obj, key), &v) ? v : 0;
}

static int32_t get_i32(const struct reader *rd, node_t obj, const char *key, int32_t none)
{
	return jn_i32(get(rd, obj, key), none);
}

static uint64_t get_text(const struct reader *rd, node_t obj, const char *key)
{
	node_t n = get(rd, obj, key);
	uint64_t h = 0;
	uint32_t i;

	for (i = 0; n && n->kind == JSON_KIND_STR && i < n->len; i++)
		h = (h ^ (unsigned char)n->s[i]) * 0x100000001b3;
	return h;
}

/* What several numbers are together; that two differ and this does not is left to chance. */
static uint64_t key_of(const uint64_t *v, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	while (n--) {
		h = (h ^ *v++) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	return h;
}

#define KEY_OF(...)                                                                                \
	key_of((const uint64_t[]){__VA_ARGS__},                                                    \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* ---- Processes ------------------------------------------------------------------------------------------- */

static uint32_t new_node(struct merge *m, const char *boot, node_t host, int64_t offset,
			 int64_t error)
{
	struct merge_node *nodes = reallocarray(m->nodes, m->nnodes + 1, sizeof(*nodes)), *n;
	uint32_t len = host && host->kind == JSON_KIND_STR ? host->len : 0;

	if (!nodes) {
		m->err = -ENOMEM;
		return MERGE_NO_NODE;
	}
	m->nodes = nodes;
	n = &nodes[m->nnodes];
	*n = (struct merge_node){
		.offset = offset,
		.offset_error = error,
		.host = strndup(len ? host->s : "", len < HOST_LEN ? len : HOST_LEN)};
	if (!n->host) {
		m->err = -ENOMEM;
		return MERGE_NO_NODE;
	}
	memcpy(n->boot, boot, MERGE_UUID);
	return m->nnodes++;
}

static uint32_t node_of(struct reader *rd, node_t rec)
{
	node_t boot = get(rd, rec, "bootId"), clock = get(rd, rec, "clock");
	struct merge *m = rd->m;
	int64_t offset, error = 0;
	uint32_t i;

	if (!boot || boot->kind != JSON_KIND_STR || boot->len != MERGE_UUID ||
	    !jn_time(get(rd, clock, "realtimeOffset"), true, &offset) || offset <= -TIME_MAX ||
	    offset >= TIME_MAX)
		return MERGE_NO_NODE;
	for (i = 0; i < m->nnodes; i++)
		if (!memcmp(m->nodes[i].boot, boot->s, MERGE_UUID))
			return i;
	if (m->nnodes == MERGE_NODES_MAX)
		return MERGE_NO_NODE;
	get_point(rd, clock, "realtimeError", &error);
	return new_node(m, boot->s, get(rd, rec, "host"), offset, error);
}

static struct merge_proc *new_proc(struct reader *rd)
{
	struct merge_proc *p;

	if (rd->m->procs == PROCS_MAX) {
		pr_err("'%s' and those before it are of more than %d processes\n", rd->path,
		       PROCS_MAX);
		rd->m->err = -E2BIG;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		rd->m->err = -ENOMEM;
		return NULL;
	}
	p->node = MERGE_NO_NODE;
	p->pid = p->host_pid = -1;
	if (rd->proc)
		rd->proc->next = p;
	else
		rd->first = p;
	rd->m->procs++;
	return rd->proc = p;
}

static void forget_all(struct reader *rd)
{
	HASH_FREE_ALL(rd->steps);
	HASH_FREE_ALL(rd->ops);
	HASH_FREE_ALL(rd->colls);
	HASH_FREE_ALL(rd->calls);
}

/* Up to NCCL 2.25 seq counts only operations that are recorded: which ones those are differs between nodes. */
static bool has_common_seq(const struct reader *rd, node_t rec)
{
	node_t version = get(rd, rec, "ncclVersion");
	unsigned int major, minor;
	char text[16] = "";

	if (!version || version->kind != JSON_KIND_STR || version->len >= sizeof(text))
		return true;
	memcpy(text, version->s, version->len);
	return sscanf(text, "%u.%u", &major, &minor) != 2 || major > 2 || minor > 25;
}

static int take_header(struct reader *rd, node_t rec)
{
	struct merge_proc *p;

	if (get(rd, get(rd, rec, "clock"), "merged")) {
		pr_err("'%s' is merged already: merge the traces that it was made of, all at "
		       "once\n",
		       rd->path);
		return -EALREADY;
	}
	forget_all(rd);
	p = new_proc(rd);
	if (!p)
		return rd->m->err;
	rd->counts = has_common_seq(rd, rec);
	p->pid = get_i32(rd, rec, "pid", -1);
	p->host_pid = get_i32(rd, rec, "hostPid", p->pid);
	p->node = node_of(rd, rec);
	if (p->node == MERGE_NO_NODE) {
		rd->m->headless++;
		return rd->m->err;
	}
	rd->m->nodes[p->node].procs++;
	rd->offset = rd->m->nodes[p->node].offset;
	return 0;
}

/* The latest time in a line: its process has come so far. */
static void move_to(struct reader *rd, int64_t ns)
{
	if (ns + rd->offset > rd->now)
		rd->now = ns + rd->offset;
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

/* An end that was there comes again: of the same message, or of another one by that name, long after. */
static bool comes_again(struct reader *rd, struct met *e, int64_t was, int64_t ns)
{
	if (!was)
		return false;
	if (llabs(ns - was) < AGAIN_NS) {
		e->several = true;
		return true;
	}
	if (llabs(e->arrived - e->sent) < AGAIN_NS)
		settle(rd->m, e);
	e->sent = e->arrived = 0;
	e->several = false;
	return false;
}

/* One end of a message; with its other, a bound for the clocks of two nodes. */
static void meet(struct reader *rd, uint64_t key, bool sent, int64_t ns)
{
	struct merge_learner *all = rd->all;
	struct met *e = RECENT(all->met, struct met, key, false, KEEP_MET, &rd->m->err);

	if (!e && HASH_COUNT(all->met) >= KEEP_MET)
		settle(rd->m, all->met); /* the oldest, which goes */
	e = RECENT(all->met, struct met, key, true, KEEP_MET, &rd->m->err);
	ns += rd->offset;
	if (!e || comes_again(rd, e, sent ? e->sent : e->arrived, ns))
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
static void take_state(struct reader *rd, node_t rec)
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

static void take_step(struct reader *rd, node_t rec, int64_t start, int64_t stop)
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

static void take_proxy_op(struct reader *rd, node_t rec, int64_t start, int64_t stop)
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

static void meet_op(struct reader *rd, const struct op *op, uint64_t key, int32_t rank)
{
	uint64_t from = (uint32_t)(op->is_send ? rank : op->peer);
	uint64_t to = (uint32_t)(op->is_send ? op->peer : rank);
	uint32_t i;

	for (i = 0; i < op->nhops; i++)
		meet(rd, KEY_OF(key, from << 32 | to, op->channel, op->hops[i].step), op->is_send,
		     op->is_send ? op->hops[i].sent : op->hops[i].arrived);
}

static void settle_whole(struct merge *m, const struct whole *w)
{
	uint32_t i, next;

	for (i = 0; i < w->n && w->n > 1 && !w->several; i++) {
		next = (i + 1) % w->n;
		pass(m, w->at[i].node, w->at[i].start, w->at[next].node, w->at[next].stop);
		pass(m, w->at[next].node, w->at[next].start, w->at[i].node, w->at[i].stop);
	}
}

/* Whether a rank's part in it has come before. One that comes long after is of another one by that name. */
static bool is_again(struct reader *rd, struct whole *w, int32_t rank, int64_t start)
{
	struct part *p =
		RECENT(rd->all->parts, struct part, KEY_OF(w->addr, rd->proc->node, (uint32_t)rank),
		       true, KEEP_MET, &rd->m->err);

	if (!p || (p->start && p->gen == w->gen && llabs(start - p->start) < AGAIN_NS))
		return true;
	if (p->start && p->gen == w->gen) {
		settle_whole(rd->m, w);
		w->gen++;
		w->n = 0;
		w->several = false;
	}
	p->gen = w->gen;
	p->start = start;
	return false;
}

static void add_to_whole(struct whole *w, uint32_t node, int64_t start, int64_t stop)
{
	uint32_t i;

	for (i = 0; i < w->n && w->at[i].node != node; i++)
		;
	if (i == WHOLE_NODES)
		return;
	if (i == w->n) {
		w->at[w->n].node = node;
		w->at[w->n].start = start;
		w->at[w->n++].stop = stop;
		return;
	}
	w->at[i].start = start > w->at[i].start ? start : w->at[i].start;
	w->at[i].stop = stop < w->at[i].stop ? stop : w->at[i].stop;
}

/* Of an AllReduce nobody has the result before all have given their part, which is none before they have called. */
static void meet_all(struct reader *rd, uint64_t key, int32_t rank, int64_t start, int64_t stop)
{
	struct merge_learner *all = rd->all;
	struct whole *w = RECENT(all->wholes, struct whole, key, false, KEEP_WHOLES, &rd->m->err);

	if (!w && HASH_COUNT(all->wholes) >= KEEP_WHOLES)
		settle_whole(rd->m, all->wholes); /* the oldest, which goes */
	w = RECENT(all->wholes, struct whole, key, true, KEEP_WHOLES, &rd->m->err);
	start += rd->offset;
	if (!w)
		return;
	if (is_again(rd, w, rank, start))
		w->several = true;
	else
		add_to_whole(w, rd->proc->node, start, stop + rd->offset);
}

static void settle_all(struct merge *m, struct merge_learner *all)
{
	struct whole *w, *wtmp;
	struct met *e, *tmp;

	HASH_ITER (hh, all->met, e, tmp)
		settle(m, e);
	HASH_ITER (hh, all->wholes, w, wtmp)
		settle_whole(m, w);
}

static void take_coll(struct reader *rd, node_t rec)
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
	bool sure = rd->counts && get(rd, details, "seq") && !get(rd, rec, "lossNear");
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

/* ---- PXN -------------------------------------------------------------------------------------------------- */

static struct merge_origin *origin_of(const struct merge *m, uint64_t key)
{
	struct merge_origin *o;

	HASH_FIND(hh, m->origins, &key, sizeof(key), o);
	return o;
}

/* A process names another of its node by the pid that this has for itself. */
static uint64_t origin_key(uint32_t node, int32_t pid, uint64_t addr)
{
	return KEY_OF(node, (uint32_t)pid, addr);
}

const struct merge_origin *merge_origin_of(const struct merge *m, const struct merge_proc *proc,
					   int32_t pid, uint64_t parent)
{
	const struct merge_origin *o = origin_of(m, origin_key(proc->node, pid, parent));

	return o && o->known ? o : NULL;
}

static void tell_origin(struct merge_origin *o, const struct seen *s)
{
	o->comm = s->comm;
	o->seq = s->seq;
	o->rank = s->rank;
	o->has_seq = s->has_seq;
	o->known = true;
}

static struct merge_origin *want_origin(struct reader *rd, uint64_t key)
{
	struct merge_origin *o = origin_of(rd->m, key);
	struct seen *s;

	if (o || HASH_COUNT(rd->m->origins) >= ORIGINS_MAX)
		return o;
	o = calloc(1, sizeof(*o));
	if (o) {
		o->key = key;
		HASH_ADD(hh, rd->m->origins, key, sizeof(key), o);
	}
	if (!o || !HASH_ADDED(hh, o)) {
		free(o);
		rd->m->err = -ENOMEM;
		return NULL;
	}
	s = RECENT(rd->all->seen, struct seen, key, false, KEEP_MET, &rd->m->err);
	if (s)
		tell_origin(o, s);
	return o;
}

/* Its steps are written before it, and have to be told whose they are. */
static void take_pxn_op(struct reader *rd, node_t rec)
{
	struct merge_proc *p = rd->proc;
	struct merge_origin *o =
		want_origin(rd, origin_key(p->node, get_i32(rd, rec, "originPid", -1),
					   get_addr(rd, rec, "parentObj")));
	struct merge_pxn *list;

	if (!o || p->npxn >= ORIGINS_MAX)
		return;
	if (p->npxn == p->cap_pxn) {
		list = reallocarray(p->pxn, p->cap_pxn ? 2 * p->cap_pxn : 64, sizeof(*list));
		if (!list) {
			rd->m->err = -ENOMEM;
			return;
		}
		p->pxn = list;
		p->cap_pxn = p->cap_pxn ? 2 * p->cap_pxn : 64;
	}
	p->pxn[p->npxn++] = (struct merge_pxn){get_addr(rd, rec, "eventAddr"), o};
}

/* Somebody may have worked on it, or have done so. */
static void take_origin(struct reader *rd, node_t rec)
{
	uint64_t key = origin_key(rd->proc->node, rd->proc->pid, get_addr(rd, rec, "eventAddr"));
	struct merge_origin *o = origin_of(rd->m, key);
	struct seen *s = RECENT(rd->all->seen, struct seen, key, true, KEEP_MET, &rd->m->err);
	node_t details = get(rd, rec, "details");

	if (!s)
		return;
	s->comm = get_addr(rd, rec, "commHash");
	s->rank = get_i32(rd, rec, "rank", -1);
	s->has_seq = get(rd, details, "seq");
	s->seq = get_u64(rd, details, "seq");
	if (o && !o->known)
		tell_origin(o, s);
}

static int by_addr(const void *a, const void *b)
{
	const struct merge_pxn *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* ---- Connections -------------------------------------------------------------------------------------------- */

static struct merge_flow *flow_of(const struct merge *m, const char *name, size_t len)
{
	struct merge_flow *f;

	HASH_FIND(hh, m->flows, name, len, f);
	return f;
}

static struct merge_flow *new_flow(struct merge *m, node_t name)
{
	struct merge_flow *f = flow_of(m, name->s, name->len);

	if (f || HASH_COUNT(m->flows) >= FLOWS_MAX)
		return f;
	f = calloc(1, sizeof(*f) + name->len + 1);
	if (f) {
		memcpy(f->name, name->s, name->len);
		f->len = name->len;
		HASH_ADD_KEYPTR(hh, m->flows, f->name, f->len, f);
	}
	if (!f || !HASH_ADDED(hh, f)) {
		free(f);
		m->err = -ENOMEM;
		return NULL;
	}
	return f;
}

static void take_flow(struct reader *rd, node_t rec)
{
	node_t name = get(rd, rec, "flow");
	struct merge_flow *f;
	struct merge_end *e;
	int64_t ts;

	if (get_point(rd, rec, "ts", &ts))
		move_to(rd, ts);
	if (!name || name->kind != JSON_KIND_STR || name->len > FLOW_LEN)
		return;
	f = new_flow(rd->m, name);
	if (!f)
		return;
	for (e = f->ends; e && e->proc != rd->proc;)
		e = e->next;
	if (!e && f->nends == ENDS_MAX)
		return;
	if (!e) {
		f->nends++;
		e = calloc(1, sizeof(*e));
		if (!e) {
			rd->m->err = -ENOMEM;
			return;
		}
		*e = (struct merge_end){.proc = rd->proc, .rank = -1, .next = f->ends, .flow = f};
		f->ends = e;
	}
	e->rank = get_i32(rd, rec, "rank", e->rank);
	e->is_local |= !!get(rd, rec, "peerPid");
}

/* "a>b" to "b>a" in @to, FLOW_LEN bytes; false: it is none. */
static bool mirror(const char *name, size_t len, char *to)
{
	const char *gt = memchr(name, '>', len);
	size_t first;

	if (!gt || len > FLOW_LEN)
		return false;
	first = (size_t)(gt - name);
	memcpy(to, gt + 1, len - first - 1);
	to[len - first - 1] = '>';
	memcpy(to + len - first, name, first);
	return true;
}

/* Addresses that each node has for itself. */
static bool is_loopback(const char *name, size_t len)
{
	return (len > 4 && !memcmp(name, "127.", 4)) || (len > 5 && !memcmp(name, "[::1]", 5));
}

static const struct merge_end *end_of(const struct merge_flow *f, const struct merge_proc *proc)
{
	const struct merge_end *e = f ? f->ends : NULL;

	while (e && e->proc != proc)
		e = e->next;
	return e;
}

const struct merge_end *merge_peer(const struct merge *m, const struct merge_proc *proc,
				   const char *name, size_t len)
{
	const struct merge_end *mine = end_of(flow_of(m, name, len), proc), *e, *peer = NULL;
	const struct merge_flow *f;
	char other[FLOW_LEN];

	if (!mine || mine->is_local || is_loopback(name, len) || !mirror(name, len, other))
		return NULL;
	for (e = mine->flow->ends; e; e = e->next)
		if (e->proc->node != proc->node)
			return NULL; /* addresses that several nodes have */
	f = flow_of(m, other, len);
	for (e = f ? f->ends : NULL; e; e = e->next) {
		if (e->proc->node == MERGE_NO_NODE)
			continue;
		/* several that could be it, or one that its own node has for itself as well */
		if (peer || e->proc->node == proc->node || e->is_local)
			return NULL;
		peer = e;
	}
	return f && f->nends < ENDS_MAX ? peer : NULL;
}

/* ---- Lines ------------------------------------------------------------------------------------------------ */

static void take_call(struct reader *rd, node_t rec, int64_t start)
{
	struct call *call = RECENT(rd->calls, struct call, get_addr(rd, rec, "eventAddr"), true,
				   KEEP, &rd->m->err);

	if (call)
		call->start = start;
}

static void take_event(struct reader *rd, node_t rec)
{
	node_t type = get(rd, rec, "type");
	bool pxn = get(rd, rec, "isPxn");
	int64_t start, stop;

	if (!get_point(rd, get(rd, rec, "start"), "ts", &start))
		return;
	if (jn_is(type, "ncclProfileColl") || jn_is(type, "ncclProfileP2p"))
		take_origin(rd, rec);
	if (pxn && jn_is(type, "ncclProfileProxyOp"))
		take_pxn_op(rd, rec);
	if (!get_point(rd, get(rd, rec, "stop"), "ts", &stop)) {
		move_to(rd, start);
		return;
	}
	move_to(rd, stop);
	if (pxn)
		return;
	if (jn_is(type, "ncclProfileCollApi"))
		take_call(rd, rec, start);
	if (jn_is(type, "ncclProfileProxyStep"))
		take_step(rd, rec, start, stop);
	else if (jn_is(type, "ncclProfileProxyOp"))
		take_proxy_op(rd, rec, start, stop);
	else if (jn_is(type, "ncclProfileColl") || jn_is(type, "ncclProfileP2p"))
		take_coll(rd, rec);
}

static int learn_line(void *reader, const char *s, size_t len, bool whole)
{
	struct reader *rd = reader;
	int err = merge_parse(rd->m, &s, &len, whole);
	node_t rec = &rd->m->doc.nodes[0], kind;

	if (err)
		return err == -ENOMEM ? err : 0;
	kind = get(rd, rec, "recordType");
	if (jn_is(kind, "header"))
		return take_header(rd, rec);
	if (!rd->proc) {
		rd->m->headless++;
		if (!new_proc(rd))
			return rd->m->err;
	}
	if (rd->proc->node == MERGE_NO_NODE)
		return 0;
	if (jn_is(kind, "event"))
		take_event(rd, rec);
	else if (jn_is(kind, "state"))
		take_state(rd, rec);
	else if (jn_is(kind, "flow"))
		take_flow(rd, rec);
	return rd->m->err;
}

static int add_stream(struct merge *m, uint32_t nr)
{
	struct merge_proc **list;

	if (nr < m->nstreams)
		return 0;
	list = reallocarray(m->streams, nr + 1, sizeof(struct merge_proc *));
	if (!list)
		return -ENOMEM;
	memset(list + m->nstreams, 0, (nr + 1 - m->nstreams) * sizeof(struct merge_proc *));
	m->streams = list;
	m->nstreams = nr + 1;
	return 0;
}

static void *begin_stream(void *to, const char *path, uint32_t nr)
{
	struct merge *m = to;
	struct reader *rd = calloc(1, sizeof(*rd));

	if (!rd || add_stream(m, nr)) {
		free(rd);
		return NULL;
	}
	rd->m = m;
	rd->all = m->learner;
	rd->path = path;
	rd->stream = nr;
	rd->now = INT64_MIN;
	return rd;
}

static int64_t reader_now(const void *reader)
{
	const struct reader *rd = reader;

	return rd->now;
}

static void end_stream(void *reader)
{
	struct reader *rd = reader;

	if (rd->proc && rd->proc->node != MERGE_NO_NODE && rd->now > INT64_MIN)
		rd->m->err = rd->m->err ?: merge_clock__time(rd->m->clock, rd->now);
	rd->m->streams[rd->stream] = rd->first;
	forget_all(rd);
	free(rd);
}

static void sort_pxn(struct merge *m)
{
	struct merge_proc *p;
	uint32_t i;

	for (i = 0; i < m->nstreams; i++)
		for (p = m->streams[i]; p; p = p->next)
			if (p->npxn)
				qsort(p->pxn, p->npxn, sizeof(*p->pxn), by_addr);
}

int merge_read(struct merge *m, struct streams *files)
{
	static const struct streams_ops ops = {.what = "Reading",
					       .begin = begin_stream,
					       .line = learn_line,
					       .now = reader_now,
					       .end = end_stream};
	struct merge_learner all = {0};
	int err;

	m->learner = &all;
	err = streams__read(files, &ops, m);
	m->learner = NULL;
	settle_all(m, &all);
	HASH_FREE_ALL(all.met);
	HASH_FREE_ALL(all.wholes);
	HASH_FREE_ALL(all.parts);
	HASH_FREE_ALL(all.seen);
	sort_pxn(m);
	return m->err ?: err;
}
