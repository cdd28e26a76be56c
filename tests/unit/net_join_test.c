// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/correlate/net_join.c and flows.c: a job is made up whose flows are known, step by step, and each step must be
 * given its own, without and with helper threads, in whatever order connections take turns; and what flows
 * count within a time, by points set by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "correlate.h"
#include "nccl_profiler.h"

#define TAG	0x1234
#define TGID	100
#define PROXY	1022
#define HELPER	2000
#define CONNS	16 /* half of them send */
#define SOCKETS 3  /* ctrl, and two of helpers */
#define HEADER	8
#define INLINE	128 /* a message no longer than that goes with its size */
#define AHEAD	4   /* requests of a connection that are made at once */
#define TURN	10  /* steps of one communicator, then of the other that shares the connection */
#define MS	1000000ULL

/* ---- The made-up job ---------------------------------------------------------------------------- */

struct conn {
	bool is_send;
	uint64_t op, ops[2]; /* the one whose turn it is, of those of two communicators */
	struct flow *socks[SOCKETS];
	uint32_t made, done;	/* steps */
	uint64_t steps[AHEAD];	/* their ids, by number */
	uint64_t left[SOCKETS]; /* bytes of the oldest one that are still to be moved */
	bool header;		/* of the oldest one has been moved */
	uint32_t size;		/* of the oldest one */
};

static struct job {
	struct flows flows;
	struct net_join join;
	struct correlate c;
	struct conn conns[CONNS];
	uint64_t total[CONNS][SOCKETS][2]; /* bytes of each socket */
	uint32_t sizes[CONNS][4096];
	uint64_t now, next_id;
	uint64_t given[CONNS]; /* bytes of each one's flows that steps were given */
	uint32_t nconns;       /* of them that have anything to do */
	uint32_t lost_from,
		lost_to; /* steps of which the thread's own calls are not told, of some */
	bool helpers, skips, one_port, shared,
		untold; /* untold: as NCCL's APIs 1 to 3, which do not say how long a step is */
	uint32_t
		dies; /* once so many of them have made a step, no calls are told of but of one in four */
	uint32_t right, wrong, none, bytes_off;
} job;

static uint64_t id_of(uint32_t what)
{
	return (uint64_t)TAG << SCOPE_ID_TAG_SHIFT | (uint64_t)what << SCOPE_ID_COUNTER_BITS |
	       ++job.next_id;
}

static uint64_t pass(uint64_t least, uint64_t span)
{
	job.now += least + (uint64_t)random() % span;
	return job.now;
}

static struct flow *flow_new(uint32_t conn, uint32_t sock)
{
	struct scope_ev_flow ev = {
		.sk = 0x1000 + conn * 16 + sock, .since_ns = 1, .tgid = TGID, .netns = 1};
	uint16_t listening = (uint16_t)(job.one_port ? 5000 : 5000 + conn);
	uint16_t other = (uint16_t)(40000 + conn * 16 + sock);
	bool is_send = job.conns[conn].is_send;
	struct flow *flow;

	ev.h.ts_ns = 1;
	memset(ev.tuple.local + 10, 0xff, 2);
	memset(ev.tuple.remote + 10, 0xff, 2);
	ev.tuple.local[15] = 1;
	ev.tuple.remote[15] = 2;
	ev.tuple.local_port = is_send ? other : listening;
	ev.tuple.remote_port = is_send ? listening : other;
	flow = flows__get(&job.flows, &ev);
	assert_non_null(flow);
	assert_ptr_equal(flows__get(&job.flows, &ev), flow);
	flow__told(flow, &ev);
	return flow;
}

static uint32_t begun(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < CONNS; i++)
		n += job.conns[i].done > 0;
	return n;
}

static void use(uint32_t conn, uint32_t sock, uint32_t tid, uint32_t bytes)
{
	struct conn *c = &job.conns[conn];
	int dir = c->is_send ? SCOPE_TX : SCOPE_RX;
	uint64_t first = job.now, last = pass(500, 20000);
	const struct net_use u = {.first_ns = first, .last_ns = last, .bytes = bytes};
	struct scope_ev_uses ev = {
		.dir = (uint32_t)dir, .tid = tid, .n = 1, .at[0] = {.bytes = bytes}};
	struct net_use half = u;
	bool again = false, late = false;

	if (job.dies && begun() >= job.dies && conn % 4)
		return;
	if (sock == 0 && conn % 8 < 2 && c->done >= job.lost_from && c->done < job.lost_to) {
		job.total[conn][sock][dir] += bytes;
		return;
	}
	if (job.skips && c->done > 8 && random() % 50 == 0) { /* made good by the next one */
		job.total[conn][sock][dir] += bytes;
		return;
	}
	if (random() % 4 == 0) { /* a sample tells of it first, in part */
		half.last_ns = first + (last - first) / 2;
		half.bytes /= 2;
		net_join__uses(&job.join, c->socks[sock], tid, dir, &half, 1, first);
		again = true;
	} else {
		late = random() % 4 == 0; /* or after it is over */
	}
	ev.h.ts_ns = last;
	ev.total = job.total[conn][sock][dir] += bytes;
	assert_int_equal(flow__uses(c->socks[sock], &ev, 0), 0);
	net_join__uses(&job.join, c->socks[sock], tid, dir, &u, 1, again ? first : 0);
	half.last_ns = first;
	half.bytes /= 2;
	if (late)
		net_join__uses(&job.join, c->socks[sock], tid, dir, &half, 1, first);
}

static struct corr_thread proxy_thread(void)
{
	return (struct corr_thread){.tid = 22, .host_tid = PROXY};
}

/* Makes a request, of which NCCL has a few at a time. */
static void make(struct conn *c)
{
	struct corr_thread t = proxy_thread();
	struct scope_rec_start r = {.h = {.size = sizeof(r), .kind = SCOPE_REC_START}};
	struct corr_state st = {.id = c->is_send ? 9 : 10, .thread = t};

	r.h.id = c->steps[c->made % AHEAD] = id_of(SCOPE_PROXY_STEP);
	r.h.u32 = c->made++;
	r.parent = c->op;
	correlate__start(&job.c, &r, pass(200, 500), &t);
	st.ts_ns = pass(200, 500);
	st.arg = job.sizes[c - job.conns][r.h.u32];
	st.has_arg = c->is_send && !job.untold;
	correlate__state(&job.c, r.h.id, &st);
}

static void finish(struct conn *c)
{
	uint64_t id = c->steps[c->done++ % AHEAD];
	struct corr_thread t = proxy_thread();
	struct corr_state st = {.id = 11, .thread = t, .arg = c->size, .has_arg = !job.untold};

	c->header = false;
	if (!c->is_send) {
		st.ts_ns = pass(200, 300);
		correlate__state(&job.c, id, &st);
		pass(0, 3 * MS); /* for the GPU; others go on meanwhile, but here they wait */
	}
	correlate__stop(&job.c, id, pass(200, 300), &t);
}

static bool is_inline(const struct conn *c)
{
	return job.helpers && c->size <= INLINE;
}

/* The size goes first; what goes with it is sent by the same call, and received by another. */
static void begin(uint32_t nr)
{
	struct conn *c = &job.conns[nr];

	c->size = job.sizes[nr][c->done];
	c->header = true;
	if (is_inline(c)) {
		use(nr, 0, PROXY, c->is_send ? HEADER + c->size : HEADER);
		c->left[0] = c->is_send ? 0 : c->size;
		return;
	}
	use(nr, 0, PROXY, job.helpers ? HEADER : HEADER + c->size / 2);
	c->left[0] = job.helpers ? 0 : c->size - c->size / 2;
	c->left[1] = job.helpers ? c->size / 2 : 0;
	c->left[2] = job.helpers ? c->size - c->size / 2 : 0;
}

/* Who shares a connection with another one comes when that has done all of its. */
static bool may_make(struct conn *c)
{
	if (job.shared && c->made % TURN == 0) {
		if (c->made != c->done)
			return false;
		c->op = c->ops[c->made / TURN % 2];
	}
	return c->made - c->done < AHEAD;
}

/* The thread's look at one connection: as far as it can go with its oldest request. */
static void work(uint32_t nr)
{
	struct conn *c = &job.conns[nr];
	uint64_t n;
	uint32_t i;

	if (may_make(c) && random() % 3)
		make(c);
	if (c->made == c->done)
		return;
	if (!c->header) {
		begin(nr);
		if (!is_inline(c) || (!c->is_send && random() % 4 == 0))
			return;
	}
	for (i = 0; i < SOCKETS; i++) {
		if (!c->left[i])
			continue;
		n = is_inline(c) || random() % 2 ? c->left[i] : c->left[i] / 2 + 1;
		use(nr, i, i ? HELPER + nr * 4 + i : PROXY, (uint32_t)n);
		c->left[i] -= n;
		if (random() % 3 == 0 && (c->left[0] || c->left[1] || c->left[2]))
			return; /* the rest at the next look */
	}
	if (c->left[0] || c->left[1] || c->left[2])
		return;
	pass(300, 500);
	finish(c);
}

static uint32_t conn_of(const struct corr_event *step)
{
	uint64_t op = step->start.s.parent;
	uint32_t i;

	for (i = 0; i < CONNS - 1 && op != job.conns[i].ops[0] && op != job.conns[i].ops[1]; i++)
		;
	return i;
}

static void on_event(void *arg, const struct corr_event *ev)
{
	uint32_t nr;
	int dir = ev->is_send ? SCOPE_TX : SCOPE_RX;
	const struct flow *flow = ev->net.flow;
	bool own;

	(void)arg;
	if (ev->what != SCOPE_PROXY_STEP || !ev->stopped)
		return;
	nr = conn_of(ev);
	if (!flow) {
		job.none++;
		return;
	}
	job.given[(flow->key.sk - 0x1000) / 16] += ev->net.bytes[dir];
	own = flow == job.conns[nr].socks[0] || flow == job.conns[nr].socks[1] ||
	      flow == job.conns[nr].socks[2];
	if (!own)
		job.wrong++;
	else
		job.right++;
	if (ev->net.bytes[dir] != HEADER + (uint64_t)job.sizes[nr][ev->start.s.h.u32])
		job.bytes_off++;
}

static void on_state(void *arg, const struct corr_event *ev, const struct corr_state *st)
{
	(void)arg;
	(void)ev;
	(void)st;
}

/* Each connection is of a communicator of its own; two of each direction have the same channel. */
static void op_start(uint32_t nr, uint32_t which)
{
	struct corr_thread t = proxy_thread();
	struct scope_rec_proxy_op r = {
		.s.h = {.size = sizeof(r), .kind = SCOPE_REC_START, .u8 = (uint8_t)(nr / 4)}};

	r.s.h.id = job.conns[nr].ops[which] = id_of(SCOPE_PROXY_OP);
	r.s.h.u32 = job.conns[nr].is_send;
	r.s.ctx = id_of(SCOPE_ID_WHAT_CTX);
	r.pid = TGID;
	r.peer = (int32_t)which + 1;
	correlate__start(&job.c, &r.s, job.now, &t);
}

static void job_begin(unsigned int seed, bool helpers, bool one_port, bool equal)
{
	const struct corr_sink sink = {&job, on_event, on_state, NULL, NULL};
	uint32_t i, k;

	memset(&job, 0, sizeof(job));
	srandom(seed);
	job.now = 1000 * MS;
	job.nconns = CONNS;
	job.helpers = helpers;
	job.one_port = one_port;
	job.flows.jiffy_ns = 4 * MS;
	assert_int_equal(correlate__init(&job.c, &sink, TGID), 0);
	net_join__init(&job.join, &job.flows);
	job.c.net = &job.join;
	job.c.tag = TAG;
	for (i = 0; i < CONNS; i++) {
		job.conns[i].is_send = i % 2;
		for (k = 0; k < SOCKETS; k++)
			if (!k || helpers)
				job.conns[i].socks[k] = flow_new(i, k);
		for (k = 0; k < 4096; k++)
			job.sizes[i][k] = equal ? 65536 : 1000 + 8 * ((uint32_t)random() % 100000);
		op_start(i, 0);
		job.conns[i].op = job.conns[i].ops[0];
	}
}

/* With another communicator, in which the peer has another number. */
static void share_all(void)
{
	uint32_t i;

	job.shared = true;
	for (i = 0; i < CONNS; i++)
		op_start(i, 1);
}

static void job_end(void)
{
	job.flows.complete_ns = UINT64_MAX;
	correlate__end(&job.c);
	correlate__free(&job.c);
	net_join__free(&job.join);
	flows__free(&job.flows);
}

/* Connections take turns as they do in NCCL's loop, but for some that have nothing to do. */
static void job_run(uint32_t steps)
{
	uint32_t i, turn, left = CONNS;

	for (turn = 0; left; turn++) {
		for (i = left = 0; i < job.nconns; i++) {
			if (job.conns[i].done >= steps)
				continue;
			left++;
			if (random() % 8)
				work(i);
		}
		if (turn % 16 == 0) {
			job.flows.complete_ns = job.now;
			correlate__tick(&job.c, job.now);
		}
		if (turn % 512 == 0)
			net_join__prune(&job.join, correlate__oldest(&job.c) - 100 * MS);
	}
}

/* All steps of the job, to its end, are told of their own flow with their own bytes. */
static void check_right(unsigned int seed, uint32_t steps)
{
	job_run(steps);
	job_end();
	if (job.wrong || job.none || job.bytes_off)
		print_message("seed %u: %u right, %u wrong, %u none, bytes of %u off\n", seed,
			      job.right, job.wrong, job.none, job.bytes_off);
	assert_int_equal(job.wrong, 0);
	assert_int_equal(job.bytes_off, 0);
	assert_in_range(job.right, job.nconns * steps, job.nconns * (steps + AHEAD));
	assert_int_equal(job.none, 0);
}

static void check_job(bool helpers, bool one_port, bool equal, uint32_t steps)
{
	unsigned int seed;

	for (seed = 1; seed <= 10; seed++) {
		job_begin(seed, helpers, one_port, equal);
		check_right(seed, steps);
	}
}

static void test_itself(void **state)
{
	(void)state;
	check_job(false, false, false, 100);
}

static void test_itself_one_port(void **state)
{
	(void)state;
	check_job(false, true, true, 100);
}

/* Every third step is a short one, which goes with its size; the first `few` of each connection are, too. */
static void some_short(uint32_t few)
{
	uint32_t i, k;

	for (i = 0; i < CONNS; i++)
		for (k = 0; k < 4096; k++)
			if (k < few || k % 3 == 2)
				job.sizes[i][k] = 8 * (1 + (uint32_t)random() % (INLINE / 8));
}

/* As after ncclCommSplit with splitShare: the flows are those of both communicators. */
static void check_shared(bool helpers, bool equal, bool with_short)
{
	unsigned int seed;

	for (seed = 1; seed <= 10; seed++) {
		job_begin(seed, helpers, false, equal);
		share_all();
		if (with_short)
			some_short(0);
		check_right(seed, 100);
	}
}

static void test_shared(void **state)
{
	(void)state;
	check_shared(false, false, false);
	check_shared(false, true, false);
	check_shared(false, true, true);
}

static void test_shared_helpers(void **state)
{
	(void)state;
	check_shared(true, false, false);
	check_shared(true, true, false);
	check_shared(true, true, true);
}

/* Where NCCL does not say how long steps are, the second one's first steps have no flow, but with helpers. */
static void test_shared_untold(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		job_begin(seed, seed % 2, false, false);
		share_all();
		job.untold = true;
		job_run(100);
		job_end();
		assert_int_equal(job.wrong, 0);
		assert_in_range(job.none, 0, job.helpers ? 0 : CONNS * 7);
	}
}

/* The kernel skips a program now and then: bytes are told with the next call, but flows are what they are. */
static void test_skipped(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= 10; seed++) {
		job_begin(seed, false, false, true);
		job.skips = true;
		job_run(200);
		job_end();
		assert_int_equal(job.wrong, 0);
		assert_int_equal(job.none, 0);
		assert_true(job.bytes_off > 0);
	}
}

/*
 * Killed after a few steps: a connection whose last calls are not told of does not take another one's. One that has not
 * told of any may, but each byte is given once.
 */
static void test_dies(void **state)
{
	unsigned int seed;
	uint32_t i;

	(void)state;
	for (seed = 1; seed <= 100; seed++) {
		job_begin(seed, false, false, true);
		job.dies = seed % 2 ? CONNS : CONNS / 2;
		job_run(4);
		job_end();
		if (job.dies == CONNS)
			assert_int_equal(job.wrong, 0);
		for (i = 0; i < CONNS; i++)
			assert_in_range(job.given[i], 0,
					job.total[i][0][i % 2 ? SCOPE_TX : SCOPE_RX]);
	}
}

static void test_helpers(void **state)
{
	(void)state;
	check_job(true, false, false, 100);
}

/* All steps of one size: only the sizes ahead of them tell. */
static void test_helpers_equal(void **state)
{
	(void)state;
	check_job(true, false, true, 100);
}

/* Sizes of some are lost when they begin, so that nothing or others seem right: they are found all the same. */
static void check_lost(bool equal, bool untold, uint32_t from, uint32_t to)
{
	unsigned int seed;

	for (seed = 1; seed <= 10; seed++) {
		job_begin(seed, true, false, equal);
		job.lost_from = from;
		job.lost_to = to;
		job.untold = untold;
		job_run(100);
		job_end();
		assert_int_equal(job.wrong, 0);
		assert_in_range(job.none, 0, CONNS / 4 * 20);
	}
}

static void test_helpers_lost(void **state)
{
	(void)state;
	check_lost(false, false, 0, 4);
	check_lost(true, false, 0, 4);
	check_lost(true, false, 0, 1);
	check_lost(true, false, 1, 4);
	check_lost(false, true, 0, 4);
	check_lost(true, true, 1, 4);
}

static void check_short(uint32_t nconns, bool equal, bool untold, uint32_t few)
{
	unsigned int seed;

	for (seed = 1; seed <= 10; seed++) {
		job_begin(seed, true, false, equal);
		some_short(few);
		job.nconns = nconns;
		job.untold = untold;
		check_right(seed, 100);
	}
}

static void test_helpers_short(void **state)
{
	(void)state;
	check_short(CONNS, false, false, 0);
	check_short(CONNS, true, false, 0);
}

/* None but one each way: nothing is to be ruled out. */
static void test_helpers_short_alone(void **state)
{
	(void)state;
	check_short(2, false, false, 0);
}

/* Helpers have moved nothing yet: each port seems to have one flow. */
static void test_helpers_short_first(void **state)
{
	(void)state;
	check_short(CONNS, false, false, 20);
}

static void test_helpers_short_untold(void **state)
{
	(void)state;
	check_short(CONNS, false, true, 0);
	check_short(2, false, true, 0);
	check_short(CONNS, false, true, 20);
}

/* All sockets of all connections at one port: nothing tells them apart, so nothing must be said. */
static void test_helpers_one_port(void **state)
{
	(void)state;
	job_begin(1, true, true, true);
	job_run(50);
	job_end();
	assert_int_equal(job.wrong, 0);
}

/* What a thread did over many flows, told of each by itself: in order of time, whatever the order it was told in. */
static void test_uses_order(void **state)
{
	static struct net_use batch[8];
	const struct net_uses *u;
	uint64_t now = 1000, told = 0;
	uint32_t i, k, n;

	(void)state;
	job_begin(3, false, false, false);
	for (i = 0; i < 3000; i++) {
		now += (uint64_t)random() % 50;
		n = 1 + (uint32_t)random() % 8;
		for (k = 0; k < n; k++) {
			batch[k].first_ns = now + (uint64_t)random() % 100;
			batch[k].last_ns = batch[k].first_ns + (uint64_t)random() % 100;
			if (k && random() % 8 && batch[k].last_ns < batch[k - 1].last_ns)
				batch[k].last_ns = batch[k - 1].last_ns;
			batch[k].bytes = (uint32_t)told++;
		}
		net_join__uses(&job.join, job.conns[i % CONNS].socks[0], PROXY, SCOPE_TX, batch, n,
			       1);
	}
	u = &job.join.threads->uses[SCOPE_TX];
	assert_int_equal(u->n, told);
	for (i = 1; i < u->n; i++) {
		assert_true(u->at[i - 1].last_ns <= u->at[i].last_ns);
		if (u->at[i - 1].last_ns == u->at[i].last_ns) /* as they came */
			assert_true(u->at[i - 1].bytes < u->at[i].bytes);
	}
	job_end();
}

/* Connections whose flows have gone are forgotten; those that only rest are not. */
static void test_conns_go(void **state)
{
	struct budget all = {.max = 1ull << 30};
	struct budget_part memory = {.of = &all};
	uint64_t conns;
	uint32_t i;

	(void)state;
	job_begin(1, false, false, false);
	job.join.memory = &memory;
	job_run(20);
	job.flows.complete_ns = UINT64_MAX;
	correlate__end(&job.c);
	net_join__prune(&job.join, job.now + 1 * MS); /* all uses are forgotten */
	conns = all.used;
	for (i = 0; i < CONNS / 2; i++)
		flow__gone(job.conns[i].socks[0]);
	net_join__prune(&job.join, job.now + 100000 * MS);
	assert_int_equal(all.used, conns); /* the next step may show another one */
	net_join__prune(&job.join, job.now + 1000000 * MS);
	assert_int_equal(all.used, conns / 2);
	for (i = CONNS / 2; i < CONNS; i++)
		flow__gone(job.conns[i].socks[0]);
	net_join__prune(&job.join, job.now + 1000000 * MS);
	assert_int_equal(all.used, 0);
	assert_null(job.join.conns);
	correlate__free(&job.c);
	net_join__free(&job.join);
	flows__free(&job.flows);
}

/* ---- Figures ------------------------------------------------------------------------------------ */

static struct flow *one_flow(void)
{
	memset(&job, 0, sizeof(job));
	job.flows.jiffy_ns = 4 * MS;
	job.conns[0].is_send = true;
	return flow_new(0, 0);
}

static void point(struct flow *flow, uint64_t ts_ns, uint32_t retrans, uint32_t busy, uint32_t rwnd,
		  uint64_t empty_ns)
{
	struct scope_ev_uses ev = {.dir = SCOPE_RX, .n = 1, .total = ts_ns, .empty_ns = empty_ns};

	ev.h.ts_ns = ts_ns;
	ev.tcp.total_retrans = retrans;
	ev.tcp.busy = busy;
	ev.tcp.rwnd_limited = rwnd;
	assert_int_equal(flow__uses(flow, &ev, 0), 0);
}

static void test_figures(void **state)
{
	struct flow *flow = one_flow();
	struct flow_figures fig = {0};

	(void)state;
	point(flow, 10 * MS, 1, 1, 0, 0);
	point(flow, 30 * MS, 5, 6, 3, 8 * MS);
	point(flow, 20 * MS, 3, 4, 2, 8 * MS); /* late */
	flow_figures__add(&fig, &job.flows, flow, 12 * MS, 25 * MS);
	assert_int_equal(fig.retrans, 2);
	assert_int_equal(fig.busy_ns, 12 * MS);
	assert_int_equal(fig.rwnd_ns, 8 * MS);
	assert_int_equal(fig.empty_ns[SCOPE_RX], 8 * MS);
	/* No more than there is time. */
	memset(&fig, 0, sizeof(fig));
	flow_figures__add(&fig, &job.flows, flow, 18 * MS, 21 * MS);
	assert_int_equal(fig.busy_ns, 3 * MS);
	assert_int_equal(fig.rwnd_ns, 3 * MS);
	assert_int_equal(fig.empty_ns[SCOPE_RX], 3 * MS);
	flows__free(&job.flows);
}

/* A burst is told when the next one begins: a retransmission meanwhile does not know of its bytes. */
static void test_told_late(void **state)
{
	struct scope_ev_uses use = {.dir = SCOPE_TX, .n = 1, .total = 1000};
	struct scope_ev_retrans r = {.total = 2};
	struct flow *flow = one_flow();

	(void)state;
	r.h.ts_ns = 20 * MS;
	assert_int_equal(flow__retrans(flow, &r), 0);
	use.h.ts_ns = 10 * MS;
	assert_int_equal(flow__uses(flow, &use, 0), 0);
	assert_int_equal(flow__at(flow, 15 * MS)->c.bytes[SCOPE_TX], 1000);
	assert_int_equal(flow__at(flow, 25 * MS)->c.bytes[SCOPE_TX], 1000);
	assert_int_equal(flow__at(flow, 15 * MS)->c.retrans, 0);
	assert_int_equal(flow__at(flow, 25 * MS)->c.retrans, 2);
	flows__free(&job.flows);
}

/* A sample tells of a burst that is not told yet: it was over when its last call was. */
static void test_sample_open(void **state)
{
	struct scope_flow_sample x = {.ts_ns = 20 * MS};
	struct flow *flow = one_flow();

	(void)state;
	x.open[SCOPE_TX] = (struct scope_flow_open){
		.first_ns = 8 * MS, .last_ns = 10 * MS, .total = 1000, .bytes = 1000, .calls = 2};
	x.tcp.use.total_retrans = 3;
	assert_int_equal(flow__sample(flow, &x), 0);
	assert_int_equal(flow__at(flow, 9 * MS)->c.bytes[SCOPE_TX], 0);
	assert_int_equal(flow__at(flow, 10 * MS)->c.bytes[SCOPE_TX], 1000);
	assert_int_equal(flow__at(flow, 10 * MS)->c.retrans, 0);
	assert_int_equal(flow__at(flow, 20 * MS)->c.retrans, 3);
	flows__free(&job.flows);
}

static void test_thinning(void **state)
{
	struct flow *flow = one_flow();
	struct flow_figures fig = {0};
	uint32_t i, n = 3 * FLOW_POINTS_MAX;

	(void)state;
	for (i = 0; i < n; i++)
		point(flow, (i + 1) * MS, i, 0, 0, 0);
	assert_true(flow->npoints <= FLOW_POINTS_MAX);
	flow_figures__add(&fig, &job.flows, flow, 2, n * MS);
	assert_int_equal(fig.retrans, n - 1);
	flow__prune(flow, n / 2 * MS);
	assert_true(flow__at(flow, n / 2 * MS)->ts_ns <= n / 2 * MS);
	assert_int_equal(flow__last(flow)->ts_ns, n * MS);
	flows__free(&job.flows);
}

/* Whoever came when there were few has no more than the others, also when it is over and kept. */
static void test_share(void **state)
{
	struct scope_ev_flow ev = {.since_ns = 1};
	struct flow *flow = one_flow(), *tmp;
	uint64_t n = 0;
	uint32_t i;

	(void)state;
	for (i = 1; flow->npoints < FLOW_POINTS_MAX; i++)
		point(flow, i * MS, i, 0, 0, 0);
	flow__gone(flow);
	for (ev.sk = 1; ev.sk < 4096; ev.sk++) {
		ev.tuple.local_port = (uint16_t)ev.sk;
		assert_non_null(flows__get(&job.flows, &ev));
	}
	flows__prune(&job.flows, 0);
	HASH_ITER (hh, job.flows.by_key, flow, tmp) {
		n += flow->cap;
		assert_in_range(flow->npoints, 1, 512);
	}
	assert_true(n < FLOW_POINTS_MAX + 4096 * 16);
	flow = flows__find(&job.flows, 0x1000, 1);
	assert_int_equal(flow__at(flow, 0)->ts_ns, 1);
	assert_int_equal(flow__last(flow)->ts_ns, (i - 1) * MS);
	flows__free(&job.flows);
}

/* The one that is asked for is found from whichever was asked for before: against all of them, one by one. */
static void test_at(void **state)
{
	struct flow *flow = one_flow();
	const struct flow_point *p;
	uint64_t now = 1, ts;
	uint32_t i, q, want;

	(void)state;
	srandom(7);
	for (i = 0; i < 20000; i++) {
		now += (uint64_t)random() % 3; /* some at the same time */
		ts = now - (random() % 8 ? 0 : (uint64_t)random() % 5 % now);
		point(flow, ts, 0, 0, 0, 0);
		if (random() % 1000 == 0)
			flow__prune(flow, now - now / 4);
		for (q = 0; q < 3; q++) {
			ts = random() % 4 ? now - (uint64_t)random() % 30 % now
					  : (uint64_t)random() % (now + 9);
			p = flow->points + flow->first;
			for (want = 0; want + 1 < flow->npoints && p[want + 1].ts_ns <= ts; want++)
				;
			assert_ptr_equal(flow__at(flow, ts), p + want);
		}
	}
	flows__free(&job.flows);
}

static void test_drops(void **state)
{
	struct flow *flow = one_flow();
	struct flow_figures fig = {0};
	struct flow_drop d = {.rx = true};
	uint32_t i;

	(void)state;
	point(flow, 1, 0, 0, 0, 0);
	for (i = 0; i < 10; i++) {
		d.ts_ns = i * MS;
		d.reason = i % 3 == 0 ? 7 : i % 3 == 1 ? 9 : 100 + i;
		assert_int_equal(flow__drop(flow, &d), 0);
	}
	flow_figures__add(&fig, &job.flows, flow, 1 * MS, 9 * MS);
	assert_int_equal(fig.ndrops, 4);
	assert_int_equal(fig.drops[0].n, 3);
	assert_true(fig.drops[0].reason == 7 || fig.drops[0].reason == 9);
	assert_int_equal(fig.drops[1].n, 3);
	flows__free(&job.flows);
}

static void test_peer(void **state)
{
	struct scope_ev_flow ev = {
		.sk = 1, .since_ns = 1, .netns = 1, .tuple = {.local_port = 1, .remote_port = 2}};
	struct flow *a, *b, *other;

	(void)state;
	memset(&job, 0, sizeof(job));
	memset(ev.tuple.local + 10, 0xff, 2);
	memset(ev.tuple.remote + 10, 0xff, 2);
	ev.tuple.local[12] = ev.tuple.remote[12] = 127;
	a = flows__get(&job.flows, &ev);
	ev.tuple.local_port = 2;
	ev.tuple.remote_port = 1;
	ev.sk = 2;
	ev.netns = 2;
	other = flows__get(&job.flows, &ev); /* the loopback of another namespace */
	assert_null(flows__peer(&job.flows, a));
	ev.sk = 3;
	ev.netns = 1;
	b = flows__get(&job.flows, &ev);
	assert_ptr_equal(flows__peer(&job.flows, a), b);
	assert_ptr_equal(flows__peer(&job.flows, b), a);
	flow__hold(b);
	flow__gone(b);
	flow__gone(other);
	flows__prune(&job.flows, 1);
	assert_ptr_equal(flows__peer(&job.flows, a), b);
	flow__put(&job.flows, b);
	assert_null(flows__peer(&job.flows, a));
	assert_string_equal(a->name, "127.0.0.0:1>127.0.0.0:2");
	flows__free(&job.flows);
}

static void test_name_v6(void **state)
{
	struct scope_ev_flow ev = {.sk = 1, .since_ns = 1};
	struct flow *flow;

	(void)state;
	memset(&job, 0, sizeof(job));
	memset(&ev.tuple, 0xee, sizeof(ev.tuple));
	ev.tuple.remote_port = 7;
	flow = flows__get(&job.flows, &ev);
	assert_string_equal(flow->name, "[eeee:eeee:eeee:eeee:eeee:eeee:eeee:eeee]:61166>"
					"[eeee:eeee:eeee:eeee:eeee:eeee:eeee:eeee]:7");
	flows__free(&job.flows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_itself),
		cmocka_unit_test(test_itself_one_port),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_shared_helpers),
		cmocka_unit_test(test_shared_untold),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_dies),
		cmocka_unit_test(test_helpers),
		cmocka_unit_test(test_helpers_equal),
		cmocka_unit_test(test_helpers_lost),
		cmocka_unit_test(test_helpers_short),
		cmocka_unit_test(test_helpers_short_alone),
		cmocka_unit_test(test_helpers_short_first),
		cmocka_unit_test(test_helpers_short_untold),
		cmocka_unit_test(test_helpers_one_port),
		cmocka_unit_test(test_uses_order),
		cmocka_unit_test(test_conns_go),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_told_late),
		cmocka_unit_test(test_sample_open),
		cmocka_unit_test(test_thinning),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_drops),
		cmocka_unit_test(test_peer),
		cmocka_unit_test(test_name_v6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
