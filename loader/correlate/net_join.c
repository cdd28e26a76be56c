// SPDX-License-Identifier: BSD-2-Clause
/* Steps and flows; see net_join.h. */
#include <stdlib.h>
#include <string.h>
#include "correlate.h"
#include "less.h"
#include "net_join.h"
#include "search.h"

#define SIZE_MAX_BYTES 256 /* of a use that may be a size ahead of a step; as in net.bpf.c */
#define HEADER_MAX     8   /* bytes of such a size itself: NCCL's has 4 */
#define DONE_SLACK_NS  100 /* between the clocks: a call's end by BPF, a callback by the plugin */
#define SURE_WINDOWS   3   /* steps that a port was the only one to fit */
#define SURE_LEAD      4   /* how much less it contradicts than any other */
#define PORTS_WAIT_NS  (2 * NSEC_PER_SEC) /* for a reading of RDMA ports after an event */
#define VOTES_SURE     3		  /* steps that agree on the flow of their connection */
#define VOTES_MAX      64
#define AGAINST_SURE   8 /* and that speak for another connection's flow, one after the other */
#define RULED_OUT      3 /* steps without just one size: the right one has none, but for lost records */
#define WINDOWS_MAX    64 /* steps that did not make it sure: the right one may have been ruled out */
#define CONN_KEEP_NS   (600 * NSEC_PER_SEC) /* that has shown no flow: its next step may */
#define SET_MAX	       4096
#define GROUP_MAX      256  /* flows of a port; NCCL makes 65 at most for a connection */
#define PEERS_MAX      4096 /* ports that one connection may be at */
#define USES_MIN       64   /* room for so many */
#define WINDOW_MAX     4096 /* uses within a step; beyond, sizes tell nothing any more */

/* Flows with one listening port; NCCL makes one for each connection. */
struct net_group {
	struct {
		uint8_t addr[16];
		uint32_t netns;
		uint16_t port;
		uint16_t dir;
	} key;
	struct flow **flows; /* held */
	uint32_t n;
	uint32_t refs;	 /* candidates that it is */
	uint32_t owners; /* connections that were found to be at it */
	uint64_t given;	 /* bytes that were moved before its first step, or that steps were given */
	bool begun;
	uint64_t candidate; /* the count at which it was one of that connection's already */
	uint64_t counted;   /* the count that sizes and size_bytes are of */
	uint32_t sizes, size_bytes;
	uint64_t first_ns; /* the end of the first of them, */
	uint32_t first_bytes;
	UT_hash_handle hh;
};

/* A port that a connection may be at, and what speaks against it. */
struct net_candidate {
	struct net_group *group;
	uint32_t sizes_off,
		bytes_off; /* steps without just one size, with other bytes than it says */
	uint32_t fits;	   /* steps that begin with its only size */
};

/* What NCCL calls a connection: the steps of one are done one after the other. */
struct net_conn {
	struct {
		uint64_t ctx;
		int32_t origin_pid, peer;
		uint8_t channel, is_send, p2p, pad[5];
	} key;
	uint32_t refs;		 /* steps that are not written yet, and their operations */
	uint64_t done_ns;	 /* of its last step */
	uint32_t votes;		 /* steps that speak for flow, less those for others */
	uint32_t against;	 /* the last ones, that spoke for another connection's */
	struct flow *flow;	 /* held: the one that it was last found to use by itself */
	struct net_group *group; /* found: helper threads do its work */
	struct net_candidate *candidates;
	uint32_t ncandidates, room; /* of the array */
	uint32_t windows;	    /* steps that were weighed */
	uint32_t ncut, nout;	    /* steps that were looked at, and written */
	UT_hash_handle hh;
};

struct flow_set {
	uint32_t n, cap;
	struct flow *at[]; /* held */
};

void net_join__init(struct net_join *j, struct flows *flows)
{
	memset(j, 0, sizeof(*j));
	j->flows = flows;
	j->ports_ns = UINT64_MAX;
}

/* ---- Flows by listening port -------------------------------------------------------------------- */

/* NCCL's sender connects to where its receiver listens. */
static struct net_group *group_of(struct net_join *j, const struct flow *flow, int dir, bool make)
{
	struct net_group *g, key = {0};
	const struct scope_tuple *t = &flow->tuple;

	memcpy(key.key.addr, dir == SCOPE_TX ? t->remote : t->local, sizeof(key.key.addr));
	key.key.port = dir == SCOPE_TX ? t->remote_port : t->local_port;
	key.key.netns = flow->netns;
	key.key.dir = (uint16_t)dir;
	HASH_FIND(hh, j->groups, &key.key, sizeof(key.key), g);
	if (g || !make || HASH_COUNT(j->groups) >= NET_GROUPS_MAX)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->key = key.key;
	HASH_ADD(hh, j->groups, key, sizeof(g->key), g);
	if (!HASH_ADDED(hh, g)) {
		free(g);
		return NULL;
	}
	return g;
}

static void group_add(struct net_join *j, struct flow *flow, int dir)
{
	struct net_group *g = group_of(j, flow, dir, true);
	struct flow **grown;
	uint32_t i;

	if (!g)
		return;
	for (i = 0; i < g->n; i++)
		if (g->flows[i] == flow)
			return;
	if (g->n == GROUP_MAX)
		return;
	if (!(g->n & (g->n - 1))) {
		grown = realloc(g->flows, (g->n ? g->n * 2 : 1) * sizeof(struct flow *));
		if (!grown)
			return;
		g->flows = grown;
	}
	g->flows[g->n++] = flow__hold(flow);
}

/* ---- Uses --------------------------------------------------------------------------------------- */

static struct net_thread *thread_get(struct net_join *j, uint32_t tid, bool make)
{
	struct net_thread *t;

	HASH_FIND(hh, j->threads, &tid, sizeof(tid), t);
	if (t || !make || HASH_COUNT(j->threads) >= NET_THREADS_MAX)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	HASH_ADD(hh, j->threads, tid, sizeof(t->tid), t);
	if (!HASH_ADDED(hh, t)) {
		free(t);
		return NULL;
	}
	return t;
}

static void uses_drop(struct net_join *j, struct net_uses *u, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		flow__put(j->flows, u->at[u->first + i].flow);
	u->n -= n;
	u->first = u->n ? u->first + n : 0; /* so that there is room */
}

/* For `more`, USES_MIN at most. */
static bool uses_room(struct net_join *j, struct net_uses *u, uint32_t more)
{
	struct net_use *grown;
	uint32_t cap;

	if (u->n + more > NET_USES_MAX)
		uses_drop(j, u, NET_USES_MAX / 2);
	if (u->first + u->n + more <= u->cap)
		return true;
	if (u->first > u->cap / 2) {
		memmove(u->at, u->at + u->first, u->n * sizeof(*u->at));
		u->first = 0;
		return uses_room(j, u, more);
	}
	cap = u->cap ? u->cap * 2 : USES_MIN;
	if (!budget_part__take(j->memory, (cap - u->cap) * sizeof(*grown))) {
		uses_drop(j, u, (u->n + 1) / 2);
		return u->cap && uses_room(j, u, more);
	}
	grown = realloc(u->at, cap * sizeof(*grown));
	if (!grown) {
		budget_part__give(j->memory, (cap - u->cap) * sizeof(*grown));
		return false;
	}
	u->at = grown;
	u->cap = cap;
	return true;
}

/*
 * A use that was told before it was over: one of the last of its thread, not over before this one began. False: more
 * of it was known already, because a sample is taken after records that are younger.
 */
static bool uses_replace(struct net_join *j, struct net_uses *u, const struct flow *flow,
			 const struct net_use *use)
{
	struct net_use *p;
	uint32_t i;

	for (i = u->n; i; i--) {
		p = &u->at[u->first + i - 1];
		if (p->last_ns < use->first_ns)
			return true;
		if (p->flow != flow || p->first_ns != use->first_ns)
			continue;
		if (p->last_ns > use->last_ns)
			return false;
		flow__put(j->flows, p->flow);
		memmove(p, p + 1, (u->n - i) * sizeof(*p));
		u->n--;
		return true;
	}
	return true;
}

static bool is_later(const void *uses, uint64_t i, uint64_t ns)
{
	return ((const struct net_use *)uses)[i].last_ns > ns;
}

/* Those of other flows in the same time have come before or will: from the last one on, so that each of them moves once. */
static void uses_add(struct net_join *j, struct net_uses *u, struct flow *flow,
		     const struct net_use *use, uint32_t n)
{
	struct net_use *begin;
	uint64_t end, at;

	if (!uses_room(j, u, n))
		return;
	begin = u->at + u->first;
	end = u->n;
	u->n += n;
	while (n--) {
		at = search_later(0, end, is_later, begin, use[n].last_ns);
		memmove(begin + at + n + 1, begin + at, (end - at) * sizeof(*begin));
		begin[at + n] = use[n];
		begin[at + n].flow = flow__hold(flow);
		end = at;
	}
}

/* How many of them there are in order, and were not told before. */
static uint32_t uses_run(const struct net_use *use, uint32_t n, uint64_t again_ns)
{
	uint32_t i = 1;

	n = n < USES_MIN ? n : USES_MIN;
	while (i < n && use[i].first_ns != again_ns && use[i].last_ns >= use[i - 1].last_ns)
		i++;
	return i;
}

void net_join__uses(struct net_join *j, struct flow *flow, uint32_t tid, int dir,
		    const struct net_use *use, uint32_t n, uint64_t again_ns)
{
	struct net_thread *t = thread_get(j, tid, true);
	uint32_t run;

	group_add(j, flow, dir);
	if (!j->since_ns)
		j->since_ns = use->first_ns;
	for (; t && n; use += run, n -= run) {
		run = 1;
		if (use->first_ns == again_ns && !uses_replace(j, &t->uses[dir], flow, use))
			continue;
		run = uses_run(use, n, again_ns);
		uses_add(j, &t->uses[dir], flow, use, run);
	}
}

/* The thread's last use up to ts_ns; NULL: none. Those before it lie before it, from *begin on. */
static const struct net_use *last_use(struct net_join *j, uint32_t tid, int dir, uint64_t ts_ns,
				      const struct net_use **begin)
{
	struct net_thread *t = thread_get(j, tid, false);
	const struct net_uses *u = t ? &t->uses[dir] : NULL;
	uint64_t n;

	if (!u || !u->n)
		return NULL;
	*begin = u->at + u->first;
	n = search_later(0, u->n, is_later, *begin, ts_ns);
	return n ? *begin + n - 1 : NULL;
}

/* ---- Connections -------------------------------------------------------------------------------- */

static struct net_conn *conn_new(struct net_join *j, const struct net_conn *key)
{
	struct net_conn *c;

	if (HASH_COUNT(j->conns) >= NET_CONNS_MAX || !budget_part__take(j->memory, sizeof(*c)))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->key = key->key;
		HASH_ADD(hh, j->conns, key, sizeof(c->key), c);
	}
	if (c && HASH_ADDED(hh, c))
		return c;
	free(c);
	budget_part__give(j->memory, sizeof(*c));
	return NULL;
}

static struct net_conn *conn_of(struct net_join *j, const struct corr_event *op)
{
	struct net_conn *c, key = {0};

	key.key.ctx = op->start.s.ctx;
	key.key.origin_pid = op->pxn ? op->origin_pid : 0;
	key.key.peer = op->start.proxy_op.peer;
	key.key.channel = op->start.s.h.u8;
	key.key.is_send = op->start.s.h.u32 != 0;
	key.key.p2p = SCOPE_ID_WHAT(op->start.s.parent) == SCOPE_P2P;
	HASH_FIND(hh, j->conns, &key.key, sizeof(key.key), c);
	return c ? c : conn_new(j, &key);
}

void net_join__step(struct net_join *j, struct corr_event *op, struct corr_event *step)
{
	struct net_conn *c = op->net.conn;

	/* That of an operation is that of all its steps: it is looked for once. */
	if (!c) {
		c = conn_of(j, op);
		if (!c)
			return;
		op->net.conn = c;
		c->refs++;
	}
	step->net.conn = c;
	c->refs++;
}

static int dir_of(const struct net_conn *c)
{
	return c->key.is_send ? SCOPE_TX : SCOPE_RX;
}

static uint64_t bytes_within(struct flow *flow, int dir, uint64_t from_ns, uint64_t to_ns)
{
	const struct flow_point *a = flow__at(flow, from_ns), *b = flow__at(flow, to_ns);

	return a && b && b->c.bytes[dir] > a->c.bytes[dir] ? b->c.bytes[dir] - a->c.bytes[dir] : 0;
}

static uint64_t group_bytes(const struct net_group *g, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < g->n; i++)
		sum += bytes_within(g->flows[i], g->key.dir, from_ns, to_ns);
	return sum;
}

static uint64_t group_total(const struct net_group *g, uint64_t ts_ns)
{
	const struct flow_point *p;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		p = flow__at(g->flows[i], ts_ns);
		sum += p ? p->c.bytes[g->key.dir] : 0;
	}
	return sum;
}

/* ---- By the thread itself ----------------------------------------------------------------------- */

static void note_role(struct flow *flow, const struct corr_event *step)
{
	const struct corr_comm *comm = step->comm;
	struct flow_role *role = &flow->role;

	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): of a flow that was found */
	role->known = true;
	role->is_send = step->is_send;
	role->channel = step->channel;
	role->peer = step->peer;
	role->rank = comm && !step->pxn ? comm->info.rank : -1;
	role->ctx = step->net.conn->key.ctx;
}

/* Bytes that no step was given. */
static uint64_t left_of(const struct flow *flow, int dir)
{
	const struct flow_point *last = flow__last(flow);

	return last ? less(last->c.bytes[dir], flow->given[dir]) : 0;
}

static void use_flow(struct net_join *j, struct corr_event *step, struct flow *flow)
{
	struct net_conn *c = step->net.conn;
	int dir = dir_of(c);
	uint64_t left = left_of(flow, dir);
	uint64_t n = bytes_within(flow, dir, step->net.from_ns, step->net.to_ns);

	/* A byte is one step's, also where another one had it wrongly. */
	step->net.bytes[dir] = n < left ? n : left;
	flow->given[dir] += step->net.bytes[dir];
	step->net.flow = flow__hold(flow);
	note_role(flow, step);
	j->direct++;
}

/* NULL: none any more. */
static void conn_set_flow(struct net_join *j, struct net_conn *c, struct flow *flow)
{
	struct flow *was = c->flow;

	c->flow = flow__hold(flow);
	if (flow)
		flow->conns++;
	if (was)
		was->conns--;
	flow__put(j->flows, was);
}

/* Two connections do not share one, but for may_share(). */
static bool is_others(const struct net_conn *c, const struct flow *flow)
{
	return flow->conns > (c->flow == flow);
}

/*
 * Communicators that share resources (splitShare, shrinkShare) have their connections in common: what is of the same
 * channel and direction may be one for both.
 */
static bool may_share(const struct net_conn *c, const struct flow *flow)
{
	const struct flow_role *role = &flow->role;

	return role->known && role->ctx != c->key.ctx && role->channel == c->key.channel &&
	       role->is_send == (c->key.is_send != 0);
}

/*
 * A connection stays with its flow: a step that speaks for another one has lost its own call's record, or the kernel
 * has skipped our program. At first that is not sure, unless the other one is another connection's.
 */
static struct flow *elect(struct net_join *j, struct net_conn *c, struct flow *flow)
{
	if (c->flow == flow) {
		c->against = 0;
		c->votes += c->votes < VOTES_MAX;
		return flow;
	}
	if (c->flow && is_others(c, flow) && ++c->against < AGAINST_SURE)
		return c->flow;
	if (c->votes >= VOTES_SURE) {
		c->votes--;
		return c->flow;
	}
	c->against = 0;
	conn_set_flow(j, c, flow);
	c->votes = 1;
	return flow;
}

/* Whether helper threads may move data to the flow's port: then it has more flows than this one. */
static bool may_be_helped(struct net_join *j, const struct net_conn *c, const struct flow *flow)
{
	const struct net_group *g = group_of(j, flow, dir_of(c), false);

	return g ? g->n > 1 : flow != c->flow;
}

/* Whether within the step the flow moved its bytes and no others, with so many of a size at least. */
static bool moved_all(struct flow *flow, const struct corr_event *step, uint32_t size)
{
	uint64_t n = bytes_within(flow, dir_of(step->net.conn), step->net.from_ns, step->net.to_ns);

	return step->has_trans_size && n >= step->trans_size + size &&
	       n <= step->trans_size + HEADER_MAX;
}

/* Of what is as short as a size, that says nothing. */
static bool moved_data(struct flow *flow, const struct corr_event *step)
{
	return step->trans_size > SIZE_MAX_BYTES && moved_all(flow, step, 0);
}

/*
 * Whether another one's flow is this one's as well: it moved this step's bytes, which no other step was given; or
 * it comes again and again, if NCCL does not say how many that are.
 */
static bool is_shared(struct flow *flow, const struct corr_event *step)
{
	struct net_conn *c = step->net.conn;

	if (!may_share(c, flow))
		return false;
	if (!step->has_trans_size)
		return ++c->against >= AGAINST_SURE;
	return moved_all(flow, step, 1) && left_of(flow, dir_of(c)) > step->trans_size;
}

/*
 * The flow over which the thread moved bytes last before the step was done. That may be a mere size, of
 * whatever connection, this one's too, where helper threads move the data: then there are more flows to the
 * port than this one, and it did not move the bytes of the step.
 */
static bool by_itself(struct net_join *j, struct corr_event *step)
{
	struct net_conn *c = step->net.conn;
	const struct net_use *begin, *u;
	bool helped;

	if (c->group)
		return false;
	helped = c->flow && may_be_helped(j, c, c->flow);
	u = last_use(j, step->stop_thread.host_tid, dir_of(c), step->net.to_ns, &begin);
	if (!u || u->last_ns <= step->net.from_ns) {
		if (!c->flow || c->votes < VOTES_SURE || helped)
			return false;
		use_flow(j, step, c->flow);
		return true;
	}
	if (!c->flow || u->flow != c->flow) /* else it has just been looked for */
		helped |= may_be_helped(j, c, u->flow);
	if (helped && !moved_data(u->flow, step))
		return false;
	/* Its first calls were not told of, and what came last is another one's: there is no telling. */
	if (!c->flow && is_others(c, u->flow) && !is_shared(u->flow, step))
		return true;
	use_flow(j, step, elect(j, c, u->flow));
	return true;
}

/* ---- With helper threads ------------------------------------------------------------------------ */

/* One that it has not got yet. Of the steps that were weighed, it had no size in any. */
static void candidate_add(struct net_join *j, struct net_conn *c, struct net_group *g)
{
	uint32_t room = c->room ? c->room * 2 : 1;
	struct net_candidate *grown;

	if (c->ncandidates == PEERS_MAX)
		return;
	if (c->ncandidates == c->room) {
		if (!budget_part__take(j->memory, (room - c->room) * sizeof(*grown)))
			return;
		grown = realloc(c->candidates, room * sizeof(*grown));
		if (!grown) {
			budget_part__give(j->memory, (room - c->room) * sizeof(*grown));
			return;
		}
		c->candidates = grown;
		c->room = room;
	}
	c->candidates[c->ncandidates++] =
		(struct net_candidate){.group = g, .sizes_off = c->windows};
	g->refs++;
}

static void candidate_drop(struct net_conn *c, uint32_t i)
{
	c->candidates[i].group->refs--;
	c->candidates[i] = c->candidates[--c->ncandidates];
}

static void candidates_free(struct net_join *j, struct net_conn *c)
{
	while (c->ncandidates)
		candidate_drop(c, c->ncandidates - 1);
	budget_part__give(j->memory, c->room * sizeof(*c->candidates));
	free(c->candidates);
	c->candidates = NULL;
	c->room = 0;
}

/* Whether it is another one's already. */
static bool is_taken(const struct net_conn *c, const struct net_group *g)
{
	return g->owners > (c->group == g);
}

/* What serves one connection only serves no other. */
static bool may_be_at(const struct net_conn *c, const struct net_group *g)
{
	return !is_taken(c, g) || (g->n && may_share(c, g->flows[0]));
}

/* Ports that have a size within its first steps are possible: the first one alone may be the one whose size was lost. */
static bool is_learning(const struct net_conn *c)
{
	return !c->group && c->windows < RULED_OUT;
}

/*
 * Counts the sizes of each port that the thread moved within the step; all that have one are possible at
 * first. False: too many to tell anything.
 */
static bool count_sizes(struct net_join *j, const struct corr_event *step)
{
	struct net_conn *c = step->net.conn;
	int dir = dir_of(c);
	const struct net_use *begin, *u;
	struct net_group *g;
	uint32_t i, n = 0;

	j->counts++;
	for (i = 0; i < c->ncandidates && is_learning(c); i++)
		c->candidates[i].group->candidate = j->counts;
	u = last_use(j, step->stop_thread.host_tid, dir, step->net.to_ns, &begin);
	for (; u && u >= begin && u->last_ns > step->net.from_ns; u--) {
		if (++n > WINDOW_MAX) {
			j->counts++;
			return false;
		}
		g = u->bytes <= SIZE_MAX_BYTES ? group_of(j, u->flow, dir, false) : NULL;
		if (!g || g->n == GROUP_MAX)
			continue;
		if (g->counted != j->counts) {
			g->counted = j->counts;
			g->sizes = g->size_bytes = 0;
			if (is_learning(c) && g->candidate != j->counts && may_be_at(c, g))
				candidate_add(j, c, g);
		}
		g->first_ns = u->last_ns;
		g->first_bytes = u->bytes;
		g->sizes++;
		g->size_bytes += u->bytes;
	}
	return true;
}

static uint32_t against(const struct net_candidate *cand)
{
	return 2 * cand->sizes_off + cand->bytes_off;
}

/*
 * Ports that the steps contradict, or that are known to be another connection's. Where none is left, the right one was
 * among them, or had no size that was told: it is looked for anew.
 */
static void rule_out(struct net_conn *c)
{
	const struct net_candidate *cand;
	uint32_t i;

	for (i = 0; i < c->ncandidates;) {
		cand = &c->candidates[i];
		if (!may_be_at(c, cand->group) || cand->sizes_off >= RULED_OUT)
			candidate_drop(c, i);
		else
			i++;
	}
	if (!c->ncandidates)
		c->windows = 0;
}

/*
 * A message of NCCL_SOCKET_INLINE bytes or less, 128 by default, goes with its size, and helpers move nothing: the thread
 * sends both by one call, and receives them by two.
 */
static bool is_inline(const struct net_group *g, const struct corr_event *step)
{
	return step->has_trans_size && g->sizes <= 2 && g->size_bytes > step->trans_size &&
	       g->size_bytes <= step->trans_size + HEADER_MAX;
}

/* Whether what the thread moved over the port is one size, ahead of a step or with it. */
static bool one_size(const struct net_group *g, const struct corr_event *step)
{
	if (g->sizes == 1 || is_inline(g, step))
		return true;
	/* Up to API 3 NCCL does not say how long the step is. */
	return !step->has_trans_size && !step->is_send && g->sizes == 2 &&
	       group_bytes(g, step->net.from_ns, step->net.to_ns) == g->size_bytes;
}

/* What the step has moved over the port, if that is its. */
static uint64_t step_bytes(const struct net_group *g, const struct corr_event *step)
{
	return is_inline(g, step) ? g->size_bytes : step->trans_size + g->size_bytes;
}

/* Whether the step begins with its size. That is so also where a helper's calls for it are told with those for the next one. */
static bool size_first(const struct net_group *g, const struct corr_event *step)
{
	return group_bytes(g, step->net.from_ns, g->first_ns) == g->first_bytes;
}

/* What the step says against a port, or for it. */
static void weigh_one(struct net_candidate *cand, const struct corr_event *step, bool counted)
{
	const struct net_group *g = cand->group;

	if (!counted || !one_size(g, step)) {
		cand->sizes_off++;
		return;
	}
	cand->fits += size_first(g, step);
	cand->bytes_off +=
		step->has_trans_size &&
		group_bytes(g, step->net.from_ns, step->net.to_ns) != step_bytes(g, step);
}

/* What the step says against each of the ports; nothing, if it comes behind one that was done later. */
static void weigh(struct net_join *j, const struct corr_event *step)
{
	struct net_conn *c = step->net.conn;
	struct net_candidate *cand;
	uint32_t i;

	if (step->net.from_ns >= step->net.to_ns)
		return;
	if (c->windows == WINDOWS_MAX)
		c->windows = 0;
	if (!c->windows)
		candidates_free(j, c);
	if (!count_sizes(j, step))
		return;
	c->windows++;
	for (i = 0; i < c->ncandidates; i++) {
		cand = &c->candidates[i];
		weigh_one(cand, step, cand->group->counted == j->counts);
	}
	rule_out(c);
}

/*
 * Whether one port is left; `end`: nothing more will come, so a smaller lead must do, but for one that another connection has
 * as well.
 */
static bool settle(struct net_join *j, struct net_conn *c, bool end)
{
	uint32_t i, best = 0, second = UINT32_MAX;

	rule_out(c);
	if (c->group || !c->ncandidates || (!end && c->windows < SURE_WINDOWS))
		return c->group;
	for (i = 1; i < c->ncandidates; i++)
		if (against(&c->candidates[i]) < against(&c->candidates[best]))
			best = i;
	for (i = 0; i < c->ncandidates; i++)
		if (i != best && against(&c->candidates[i]) < second)
			second = against(&c->candidates[i]);
	if (c->windows < SURE_WINDOWS && is_taken(c, c->candidates[best].group))
		return false;
	/* What is left when others were ruled out is not right for that: the right one may have been before. */
	if (c->candidates[best].fits * 3 < c->windows * 2)
		return false;
	if (second != UINT32_MAX && second < against(&c->candidates[best]) + (end ? 1 : SURE_LEAD))
		return false;
	c->group = c->candidates[best].group;
	c->group->owners++;
	candidates_free(j, c);
	return true;
}

/* The one of the port's flows that moved most within a time; NULL: none moved anything. */
static struct flow *busiest(const struct net_group *g, uint64_t from_ns, uint64_t to_ns)
{
	struct flow *flow = NULL;
	uint64_t n, most = 0;
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		n = bytes_within(g->flows[i], g->key.dir, from_ns, to_ns);
		if (n <= most)
			continue;
		most = n;
		flow = g->flows[i];
	}
	return flow;
}

/*
 * A helper that goes on with the next step before anybody told of this one's end leaves no trace of where one ends
 * and the other begins: then the step's bytes are what NCCL says they are, as far as all the port has moved.
 */
static uint64_t bytes_of(const struct net_join *j, struct net_group *g,
			 const struct corr_event *step)
{
	uint64_t n = group_bytes(g, step->net.from_ns, step->net.to_ns), all;

	if (step->has_trans_size && g->counted == j->counts && one_size(g, step)) {
		all = group_total(g, UINT64_MAX);
		n = step_bytes(g, step);
		all = less(all, g->given);
		n = all < n ? all : n;
	}
	g->given += n;
	return n;
}

/* Of the port's flows the one that moved most, with the bytes of all. */
static void use_group(struct net_join *j, struct corr_event *step)
{
	struct net_group *g = step->net.conn->group;
	struct flow *flow = busiest(g, step->net.from_ns, step->net.to_ns);
	uint32_t i;

	if (!g->begun)
		g->given = group_total(g, step->net.from_ns);
	g->begun = true;
	count_sizes(j, step);
	if (!flow)
		flow = busiest(g, step->net.from_ns, UINT64_MAX);
	if (!flow && g->n)
		flow = g->flows[0];
	if (!flow)
		return;
	for (i = 0; i < g->n; i++)
		note_role(g->flows[i], step);
	step->net.flow = flow__hold(flow);
	step->net.group = g;
	step->net.bytes[g->key.dir] = bytes_of(j, g, step);
	j->helped++;
}

/* ---- Steps -------------------------------------------------------------------------------------- */

/* Its piece of the connection's bytes: from the end of the step before to its own. */
static void cut(struct corr_event *step)
{
	struct net_conn *c = step->net.conn;
	uint64_t done = step->is_send || !step->net.done_ns ? step->stop_ns : step->net.done_ns;

	step->net.cut = true;
	step->net.nr = c->ncut++;
	step->net.to_ns = done + DONE_SLACK_NS;
	step->net.from_ns = c->done_ns ? c->done_ns : step->start_ns;
	if (step->net.wait_ns > step->net.from_ns)
		step->net.from_ns = step->net.wait_ns;
	if (step->net.to_ns > c->done_ns)
		c->done_ns = step->net.to_ns;
}

void net_join__look(struct net_join *j, struct corr_event *step)
{
	if (step->what != SCOPE_PROXY_STEP || !step->net.conn || step->net.cut)
		return;
	j->steps++;
	cut(step);
	/* Of what went before we looked, there is no record. */
	if (!by_itself(j, step) && !step->net.conn->group && step->net.from_ns >= j->since_ns)
		weigh(j, step);
}

/* Whether its flow is known, or will not be. */
static bool step_settled(struct net_join *j, struct corr_event *step, bool end)
{
	struct net_conn *c = step->net.conn;

	if (step->net.flow)
		return true;
	if (settle(j, c, end)) {
		use_group(j, step);
		return true;
	}
	if (!end && c->ncandidates && j->flows->complete_ns < step->stop_ns + NET_UNSURE_NS)
		return false;
	j->unsure++;
	return true;
}

/* Those of a connection in their order: each is given its part of the bytes. */
static bool step_ready(struct net_join *j, struct corr_event *step, bool end)
{
	struct net_conn *c = step->net.conn;

	if (!c)
		return true;
	net_join__look(j, step);
	if (step->net.nr != c->nout && !end)
		return false;
	if (!step_settled(j, step, end))
		return false;
	c->nout = step->net.nr + 1;
	return true;
}

bool net_join__ready(struct net_join *j, struct corr_event *ev, bool end)
{
	if (!end && j->flows->complete_ns < ev->stop_ns)
		return false;
	if (ev->what == SCOPE_PROXY_STEP)
		return step_ready(j, ev, end);
	if (end)
		return true;
	/* Ports may be slow to read: not for ever. */
	return !ev->net.held &&
	       (j->ports_ns >= ev->stop_ns || j->flows->complete_ns >= ev->stop_ns + PORTS_WAIT_NS);
}

/* ---- Operations --------------------------------------------------------------------------------- */

static void set_add(void *arg, struct flow *flow)
{
	struct flow_set **set = arg, *s = *set;
	uint32_t i, cap;

	for (i = 0; s && i < s->n; i++)
		if (s->at[i] == flow)
			return;
	if (!s || s->n == s->cap) {
		cap = s ? s->cap * 2 : 2;
		if (cap > SET_MAX)
			return;
		s = realloc(s, sizeof(*s) + cap * sizeof(s->at[0]));
		if (!s)
			return;
		if (!*set)
			s->n = 0;
		s->cap = cap;
		*set = s;
	}
	s->at[s->n++] = flow__hold(flow);
}

void net_join__each(const struct corr_event *ev, void (*fn)(void *arg, struct flow *flow),
		    void *arg)
{
	const struct net_group *g = ev->net.group;
	uint32_t i;

	if (ev->net.flow)
		fn(arg, ev->net.flow);
	for (i = 0; g && i < g->n; i++)
		if (g->flows[i] != ev->net.flow &&
		    bytes_within(g->flows[i], g->key.dir, ev->net.from_ns, ev->net.to_ns))
			fn(arg, g->flows[i]);
	for (i = 0; ev->net.set && i < ev->net.set->n; i++)
		fn(arg, ev->net.set->at[i]);
}

void net_join__child(struct corr_event *parent, const struct corr_event *child)
{
	if (parent->net.held)
		parent->net.held--;
	parent->net.bytes[SCOPE_TX] += child->net.bytes[SCOPE_TX];
	parent->net.bytes[SCOPE_RX] += child->net.bytes[SCOPE_RX];
	net_join__each(child, set_add, &parent->net.set);
}

/* Written, or given up: then others need not wait for it. */
static void step_out(struct net_conn *c, const struct corr_event *step)
{
	c->refs--;
	if (step->net.cut && (int32_t)(step->net.nr - c->nout) >= 0)
		c->nout = step->net.nr + 1;
}

void net_join__release(struct net_join *j, struct corr_event *ev)
{
	uint32_t i;

	if (!j)
		return;
	if (ev->net.conn)
		step_out(ev->net.conn, ev);
	flow__put(j->flows, ev->net.flow);
	for (i = 0; ev->net.set && i < ev->net.set->n; i++)
		flow__put(j->flows, ev->net.set->at[i]);
	free(ev->net.set);
	memset(&ev->net, 0, sizeof(ev->net));
}

/* ---- Memory ------------------------------------------------------------------------------------- */

static void disown(struct net_conn *c)
{
	if (!c->group)
		return;
	if (!--c->group->owners)
		c->group->begun = false;
	c->group = NULL;
	c->windows = 0;
}

static void group_free(struct net_join *j, struct net_group *g)
{
	uint32_t i;

	HASH_DELETE(hh, j->groups, g);
	for (i = 0; i < g->n; i++)
		flow__put(j->flows, g->flows[i]);
	free(g->flows);
	free(g);
}

static void group_del(struct net_join *j, struct net_group *g, struct flow *flow)
{
	const struct flow_point *last = flow__last(flow);
	uint64_t n = last ? last->c.bytes[g->key.dir] : 0;

	g->given -= n < g->given ? n : g->given;
	flow__put(j->flows, flow);
}

/* A port whose flows are gone is forgotten when no connection is at it any more. */
static void group_prune(struct net_join *j, struct net_group *g, uint64_t before_ns)
{
	const struct flow_point *last;
	uint32_t i, n = 0;

	for (i = 0; i < g->n; i++) {
		last = flow__last(g->flows[i]);
		if (g->flows[i]->gone && (!last || last->ts_ns < before_ns))
			group_del(j, g, g->flows[i]);
		else
			g->flows[n++] = g->flows[i];
	}
	/* The array's size follows from n: it only shrinks in steps of what group_add() makes. */
	g->n = n;
	if (!n && !g->owners && !g->refs)
		group_free(j, g);
}

static void conn_free(struct net_join *j, struct net_conn *c)
{
	HASH_DELETE(hh, j->conns, c);
	budget_part__give(j->memory, sizeof(*c));
	disown(c);
	conn_set_flow(j, c, NULL);
	candidates_free(j, c);
	free(c);
}

/* One that has no flow any more, or never had, is of a communicator that has gone; where there are many, any other, too. */
static bool conn_is_over(const struct net_join *j, const struct net_conn *c, uint64_t before_ns)
{
	if (c->refs || c->done_ns >= before_ns)
		return false;
	return HASH_COUNT(j->conns) > NET_CONNS_MAX / 2 ||
	       (!c->flow && !c->group && c->done_ns < less(before_ns, CONN_KEEP_NS));
}

static void conn_prune(struct net_join *j, struct net_conn *c, uint64_t before_ns)
{
	if (c->flow && c->flow->gone) {
		conn_set_flow(j, c, NULL);
		c->votes = 0;
	}
	if (c->group && !c->group->n)
		disown(c);
	if (conn_is_over(j, c, before_ns))
		conn_free(j, c);
}

static void thread_free(struct net_join *j, struct net_thread *t)
{
	int dir;

	HASH_DELETE(hh, j->threads, t);
	for (dir = 0; dir < 2; dir++) {
		uses_drop(j, &t->uses[dir], t->uses[dir].n);
		budget_part__give(j->memory, t->uses[dir].cap * sizeof(*t->uses[dir].at));
		free(t->uses[dir].at);
	}
	free(t);
}

static void thread_prune(struct net_join *j, struct net_thread *t, uint64_t before_ns)
{
	struct net_uses *u;
	uint32_t n;
	int dir;

	for (dir = 0; dir < 2; dir++) {
		u = &t->uses[dir];
		for (n = 0; n < u->n && u->at[u->first + n].last_ns < before_ns;)
			n++;
		uses_drop(j, u, n);
	}
	if (!t->uses[SCOPE_TX].n && !t->uses[SCOPE_RX].n)
		thread_free(j, t);
}

void net_join__prune(struct net_join *j, uint64_t before_ns)
{
	struct net_thread *t, *ttmp;
	struct net_group *g, *gtmp;
	struct net_conn *c, *ctmp;

	HASH_ITER (hh, j->threads, t, ttmp)
		thread_prune(j, t, before_ns);
	HASH_ITER (hh, j->groups, g, gtmp)
		group_prune(j, g, before_ns);
	HASH_ITER (hh, j->conns, c, ctmp)
		conn_prune(j, c, before_ns);
}

void net_join__free(struct net_join *j)
{
	struct net_thread *t, *ttmp;
	struct net_group *g, *gtmp;
	struct net_conn *c, *ctmp;

	HASH_ITER (hh, j->threads, t, ttmp)
		thread_free(j, t);
	HASH_ITER (hh, j->conns, c, ctmp)
		conn_free(j, c);
	HASH_ITER (hh, j->groups, g, gtmp)
		group_free(j, g);
}
