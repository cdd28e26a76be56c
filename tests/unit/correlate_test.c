// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/correlate/correlate.c by synthetic records: who is whose child, when an operation is over, what becomes of
 * what never ends; and the table of events against a plain array, under random load.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "chosen.h"
#include "correlate.h"
#include "nccl_profiler.h"

#define TAG	   0x1234
#define FOREIGN	   0x4321
#define TGID	   100
#define MS	   1000000ULL
#define S	   NSEC_PER_SEC
#define OUT_MAX	   64
#define MAX_EVENTS (1u << 20) /* as in correlate.c */

#define CHOSEN_COMMS 10000
#define CHOSEN_STEPS 60000

static struct correlate c;
static const struct corr_thread app = {.tid = 11, .host_tid = 1011},
				proxy = {.tid = 22, .host_tid = 1022};

static struct {
	struct corr_event ev[OUT_MAX];
	uint32_t rank[OUT_MAX];
	uint64_t hash[OUT_MAX];
	uint32_t nev;
	struct corr_state st[OUT_MAX];
	uint64_t st_id[OUT_MAX];
	uint32_t st_before[OUT_MAX]; /* events that were out before it */
	uint32_t nst;
	uint32_t ninit, nfini;
	uint64_t total;
} out;

#define OPEN_MAX 4096

/* What was told of open events: which, when, how long it had not moved. */
static struct {
	uint64_t id[OPEN_MAX], ts[OPEN_MAX], quiet[OPEN_MAX];
	uint32_t more[OPEN_MAX];
	uint32_t n;
} told;

static void on_event(void *arg, const struct corr_event *ev)
{
	assert_ptr_equal(arg, &out);
	out.total++;
	if (out.nev == OUT_MAX)
		return;
	out.rank[out.nev] = ev->comm ? (uint32_t)ev->comm->info.rank : 999;
	out.hash[out.nev] = ev->comm ? ev->comm->info.hash : 0;
	out.ev[out.nev++] = *ev;
}

static void on_state(void *arg, const struct corr_event *ev, const struct corr_state *st)
{
	assert_ptr_equal(arg, &out);
	assert_non_null(ev);
	if (out.nst == OUT_MAX)
		return;
	out.st_before[out.nst] = out.nev;
	out.st_id[out.nst] = ev->id;
	out.st[out.nst++] = *st;
}

static void on_lifecycle(void *arg, const struct corr_comm *comm, bool init, uint64_t ts_ns,
			 const struct corr_thread *thread)
{
	assert_ptr_equal(arg, &out);
	assert_non_null(comm);
	assert_true(ts_ns && thread->tid);
	if (init)
		out.ninit++;
	else
		out.nfini++;
}

static void on_open(void *arg, const struct corr_event *ev, uint32_t more)
{
	assert_ptr_equal(arg, &out);
	assert_false(ev->written);
	assert_true(told.n < OPEN_MAX);
	told.id[told.n] = ev->id;
	told.ts[told.n] = c.now_ns;
	told.quiet[told.n] = c.now_ns - ev->hung.moved_ns;
	told.more[told.n++] = more;
}

static int setup(void **state)
{
	const struct corr_sink sink = {&out, on_event, on_state, on_lifecycle, on_open};

	(void)state;
	memset(&out, 0, sizeof(out));
	memset(&told, 0, sizeof(told));
	assert_int_equal(correlate__init(&c, &sink, TGID), 0);
	c.tag = TAG;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	correlate__free(&c);
	correlate__free(&c);
	return 0;
}

/* ---- Records ----------------------------------------------------------------------------------- */

static uint64_t id_of(uint32_t what, uint64_t n)
{
	return (uint64_t)TAG << SCOPE_ID_TAG_SHIFT | (uint64_t)what << SCOPE_ID_COUNTER_BITS | n;
}

static uint64_t foreign(uint32_t what, uint64_t n)
{
	return (uint64_t)FOREIGN << SCOPE_ID_TAG_SHIFT | (uint64_t)what << SCOPE_ID_COUNTER_BITS |
	       n;
}

static uint64_t start_with(union corr_start *r, size_t size, uint64_t id, uint64_t parent,
			   uint64_t ts, const struct corr_thread *t)
{
	r->s.h.size = (uint16_t)size;
	r->s.h.kind = SCOPE_REC_START;
	r->s.h.id = id;
	r->s.parent = parent;
	if (!r->s.ctx)
		r->s.ctx = id_of(SCOPE_ID_WHAT_CTX, 1);
	correlate__start(&c, &r->s, ts, t);
	return id;
}

static uint64_t start(uint64_t id, uint64_t parent, uint64_t ts, const struct corr_thread *t)
{
	union corr_start r = {0};

	return start_with(&r, sizeof(r), id, parent, ts, t);
}

static uint64_t proxy_op(uint64_t n, uint64_t parent, int32_t pid, uint64_t ts)
{
	union corr_start r = {.proxy_op = {.pid = pid, .peer = 3}};

	r.s.h.u8 = 5; /* channel */
	r.s.h.u32 = 1;
	return start_with(&r, sizeof(r.proxy_op), id_of(SCOPE_PROXY_OP, n), parent, ts, &proxy);
}

static void state(uint64_t id, uint32_t nr, uint64_t ts);

/* As proxy_op(), and the progress thread begins with it. */
static uint64_t working_op(uint64_t n, uint64_t parent, int32_t pid, uint64_t ts)
{
	uint64_t id = proxy_op(n, parent, pid, ts);

	state(id, ncclProfilerProxyOpInProgress_v4, ts);
	return id;
}

static void stop_event(uint64_t id, uint64_t ts)
{
	correlate__stop(&c, id, ts, &proxy);
}

static void state(uint64_t id, uint32_t nr, uint64_t ts)
{
	const struct corr_state st = {.ts_ns = ts, .id = nr, .thread = proxy};

	correlate__state(&c, id, &st);
}

static void comm(uint64_t n, int32_t rank)
{
	const struct scope_comm info = {
		.ctx = id_of(SCOPE_ID_WHAT_CTX, n), .hash = 0xabc, .rank = rank, .api = 5};

	correlate__comm(&c, &info, 1, &app);
}

static const struct corr_event *find_out(uint64_t id)
{
	const struct corr_event *ev = NULL;
	uint32_t i;

	for (i = 0; i < out.nev; i++) {
		if (out.ev[i].id != id)
			continue;
		assert_null(ev); /* written once */
		ev = &out.ev[i];
	}
	return ev;
}

/* ---- One operation ----------------------------------------------------------------------------- */

static void test_whole_operation(void **arg)
{
	uint64_t api = id_of(SCOPE_COLL_API, 1), coll = id_of(SCOPE_COLL, 2), op, step;
	const struct corr_event *ev;

	(void)arg;
	comm(1, 7);
	comm(1, 8); /* told twice: the first holds */
	assert_int_equal(out.ninit, 1);
	start(api, 0, 10, &app);
	start(coll, api, 20, &app);
	stop_event(coll, 30);
	stop_event(api, 40);
	op = proxy_op(3, coll, TGID, 50);
	step = start(id_of(SCOPE_PROXY_STEP, 4), op, 60, &proxy);
	state(step, 9, 61);
	state(step, 20, 62);
	stop_event(step, 70);
	stop_event(op, 90); /* NCCL stops operations in bulk: the step tells the end */
	assert_non_null(find_out(api));
	assert_null(find_out(coll)); /* children may still come */
	correlate__tick(&c, 90 + S - 1);
	assert_null(find_out(coll));
	correlate__tick(&c, 90 + S);
	ev = find_out(coll);
	assert_non_null(ev);
	assert_int_equal(ev->exec, EXEC_PROXY);
	assert_int_equal(ev->exec_stop_ns, 70);
	assert_int_equal(ev->stop_ns, 30);
	assert_false(ev->unfinished || ev->orphan || ev->pxn);
	ev = find_out(step);
	assert_true(ev->has_op && ev->channel == 5 && ev->is_send && ev->peer == 3);
	assert_int_equal(ev->start_thread.tid, 22);
	assert_int_equal(out.nst, 2);
	assert_int_equal(out.st[0].id, 9);
	assert_int_equal(out.st[1].id, 20);
	assert_true(out.st_before[1] < out.nev);
	assert_int_equal(out.rank[0], 7);
	correlate__finalize(&c, id_of(SCOPE_ID_WHAT_CTX, 1), 100, &app);
	correlate__finalize(&c, id_of(SCOPE_ID_WHAT_CTX, 1), 101, &app);
	assert_int_equal(out.nfini, 1);
	assert_int_equal(c.counts.late + c.counts.orphans + c.counts.malformed, 0);
}

/* exec: by the enqueue where there is nothing else, by kernels, and by the proxy before kernels. */
static void test_exec_sources(void **arg)
{
	uint64_t a = id_of(SCOPE_COLL, 1), b = id_of(SCOPE_P2P, 2), d = id_of(SCOPE_COLL, 3), k, op;

	(void)arg;
	start(a, 0, 10, &app);
	stop_event(a, 20);
	start(b, 0, 10, &app);
	stop_event(b, 20);
	k = start(id_of(SCOPE_KERNEL_CH, 4), b, 30, &proxy);
	stop_event(k, 50);
	k = start(id_of(SCOPE_KERNEL_CH, 5), b, 31, &proxy);
	stop_event(k, 45);
	start(d, 0, 10, &app);
	k = start(id_of(SCOPE_KERNEL_CH, 6), d, 12, &proxy);
	op = proxy_op(7, d, TGID, 13);
	stop_event(op, 60);
	stop_event(k, 80);
	stop_event(d, 90);
	correlate__tick(&c, 2 * S);
	assert_int_equal(find_out(a)->exec, EXEC_ENQUEUE);
	assert_int_equal(find_out(a)->exec_stop_ns, 20);
	assert_int_equal(find_out(b)->exec, EXEC_KERNEL);
	assert_int_equal(find_out(b)->exec_stop_ns, 50);
	assert_int_equal(find_out(d)->exec, EXEC_PROXY);
	assert_int_equal(find_out(d)->exec_stop_ns, 60);
}

/* ---- The GPU's time ------------------------------------------------------------------------------ */

#define EPOCH 1795807284000000000ULL /* the GPU's clock is so far ahead */

static uint64_t api_call(uint32_t what, uint64_t n, uint64_t parent, bool captured, uint64_t ts)
{
	union corr_start r = {.s.h.u8 = captured};

	return start_with(&r, sizeof(r.coll_api), id_of(what, n), parent, ts, &app);
}

/* A kernel of an operation that ran from..to by the node's clock, and was seen `late` after both. */
static const struct corr_event *kernel(uint64_t n, uint64_t parent, uint64_t from, uint64_t to,
				       uint64_t late)
{
	union corr_start r = {.kernel_ch = {.ptimer_ns = EPOCH + from}};
	const struct corr_state st = {
		.ts_ns = to + late, .id = 22, .arg = EPOCH + to, .has_arg = true, .thread = proxy};
	uint64_t id = id_of(SCOPE_KERNEL_CH, n);

	start_with(&r, sizeof(r.kernel_ch), id, parent, from + late, &proxy);
	correlate__state(&c, id, &st);
	stop_event(id, to + late);
	return find_out(id);
}

/* Two clocks are apart by what lies between a kernel's launch and its being seen. */
static void test_gpu_times(void **arg)
{
	uint64_t group, coll, other, at = S, error;
	const struct corr_event *ev;

	(void)arg;
	comm(1, 0);
	coll = start(id_of(SCOPE_COLL, 1), 0, at, &app);
	ev = kernel(2, coll, at + 100000, at + 200000, 5000);
	assert_false(ev->has_gpu); /* nobody knows when it was launched */

	at = 2 * S;
	group = api_call(SCOPE_GROUP_API, 3, 0, false, at);
	coll = api_call(SCOPE_COLL_API, 4, group, false, at + 1000);
	other = api_call(SCOPE_COLL_API, 5, group, false, at + 2000);
	start(id_of(SCOPE_KERNEL_LAUNCH, 6), group, at + 10000, &app);
	start(id_of(SCOPE_KERNEL_LAUNCH, 7), group, at + 50000, &app); /* it may be the other's */
	coll = start(id_of(SCOPE_COLL, 8), coll, at + 60000, &app);
	other = start(id_of(SCOPE_COLL, 9), other, at + 60000, &app);
	ev = kernel(10, coll, at + 20000, at + 90000, 4000);
	assert_true(ev->has_gpu);
	/* 10 us from launch to begin, 4 until it was seen: known to half of that and a grain. */
	assert_in_range(ev->gpu_error_ns, 7000, 7000 + 2 * GPU_GRAIN_NS);
	assert_in_range(ev->gpu_start_ns, at + 20000 - ev->gpu_error_ns,
			at + 20000 + ev->gpu_error_ns);
	assert_int_equal(ev->gpu_stop_ns - ev->gpu_start_ns, 70000);
	assert_true(ev->gpu_stop_ns <= ev->stop_ns);
	error = ev->gpu_error_ns;
	ev = kernel(11, other, at + 70000, at + 95000, 1000); /* seen sooner: better */
	assert_true(ev->has_gpu && ev->gpu_error_ns < error);
	assert_in_range(ev->gpu_start_ns, at + 70000 - ev->gpu_error_ns,
			at + 70000 + ev->gpu_error_ns);
}

/* A Coll of one channel, by a protocol, whose kernel was launched at @at; with its calls it has the numbers from @n on. */
static uint64_t launched(uint64_t n, uint16_t proto, uint64_t at)
{
	uint64_t group = api_call(SCOPE_GROUP_API, n, 0, false, at);
	uint64_t call = api_call(SCOPE_COLL_API, n + 1, group, false, at);
	union corr_start r = {.coll = {.proto = proto}};

	start(id_of(SCOPE_KERNEL_LAUNCH, n + 2), group, at, &app);
	r.s.h.u8 = 1; /* channels */
	return start_with(&r, sizeof(r.coll), id_of(SCOPE_COLL, n + 3), call, at, &app);
}

/*
 * A Coll of one channel, by a protocol, whose kernel was launched at @at and waited 15 ms for its turn; data came to it 9 us before
 * its end, which was seen 3 us later. What its kernel's error was.
 */
static uint64_t queued(uint64_t n, uint16_t proto, bool receives, uint64_t at)
{
	uint64_t begin = at + 15 * MS, end = begin + 100000, coll = launched(n, proto, at), op,
		 step;
	const struct corr_event *ev;

	op = proxy_op(n + 4, coll, TGID, at);
	step = start(id_of(SCOPE_PROXY_STEP, n + 5), op, begin, &proxy);
	state(step, receives ? 12 : 9, end - 9000);
	stop_event(step, end);
	ev = kernel(n + 6, coll, begin, end, 3000);
	stop_event(op, end + 3000);
	stop_event(coll, end + 3000);
	assert_true(ev->has_gpu);
	return ev->gpu_error_ns;
}

/* Where all kernels wait for their turn, none follows its launch: what was handed to one tells how old its stamp can be. */
static void test_gpu_times_queued(void **arg)
{
	(void)arg;
	comm(1, 0);
	c.simple = 5;
	assert_true(queued(10, 5, false, 1 * S) > 7 * MS); /* its last step sent */
	assert_true(queued(20, 6, true, 2 * S) > 7 * MS);  /* data may be seen without the proxy */
	assert_true(queued(30, 5, true, 3 * S) > 7 * MS);
	/* by that one: 12 us, and a second's drift */
	assert_in_range(queued(40, 5, true, 3 * S + 200 * MS), 6000,
			6000 + 215 * MS / 1000000 * GPU_DRIFT_PPM + 2 * GPU_GRAIN_NS);
}

static void comm_on(uint64_t n, const char *gpu)
{
	struct scope_comm info = {.ctx = id_of(SCOPE_ID_WHAT_CTX, n), .hash = n, .api = 5};

	memcpy(info.gpu_uuid, gpu, strlen(gpu));
	correlate__comm(&c, &info, 1, &app);
}

/* What the kernels of one communicator tell holds for others on the same GPU, and for no other GPU. */
static void test_gpu_times_shared(void **arg)
{
	uint64_t n;
	char name[8];

	(void)arg;
	comm_on(1, "one");
	comm_on(2, "one");
	comm_on(3, "two");
	comm_on(4, "");
	comm_on(5, "");
	assert_ptr_equal(correlate__comm_find(&c, id_of(SCOPE_ID_WHAT_CTX, 1))->gpu,
			 correlate__comm_find(&c, id_of(SCOPE_ID_WHAT_CTX, 2))->gpu);
	for (n = 6; n < 100; n++) {
		snprintf(name, sizeof(name), "%u", (unsigned int)n);
		comm_on(n, name);
	}
	for (n = 3; n < 100; n++)
		assert_ptr_not_equal(
			correlate__comm_find(&c, id_of(SCOPE_ID_WHAT_CTX, n))->gpu,
			correlate__comm_find(&c, id_of(SCOPE_ID_WHAT_CTX, n - 1))->gpu);
}

/* By what is recorded, as a mask has it: groups without calls tell as much, launches without groups nothing. */
static void test_gpu_times_masked(void **arg)
{
	const struct corr_event *ev;
	uint64_t coll, at = S;

	(void)arg;
	comm(1, 0);
	start(id_of(SCOPE_KERNEL_LAUNCH, 1), 0, at, &app);
	coll = start(id_of(SCOPE_COLL, 2), 0, at, &app);
	assert_false(kernel(3, coll, at + 8000, at + 20000, 2000)->has_gpu);
	at = 2 * S;
	start(id_of(SCOPE_KERNEL_LAUNCH, 4), api_call(SCOPE_GROUP_API, 5, 0, false, at), at, &app);
	coll = start(id_of(SCOPE_COLL, 6), 0, at, &app);
	ev = kernel(7, coll, at + 8000, at + 20000, 2000);
	assert_true(ev->has_gpu);
	assert_in_range(ev->gpu_error_ns, 5000, 5000 + 2 * GPU_GRAIN_NS);
}

/* A graph's replay launches no kernel that is told of: the host's part comes first. */
static void test_gpu_times_captured(void **arg)
{
	uint64_t group, api, coll, at = S;
	const struct corr_event *ev;

	(void)arg;
	comm(1, 0);
	group = api_call(SCOPE_GROUP_API, 1, 0, true, at);
	api = api_call(SCOPE_COLL_API, 2, group, true, at);
	stop_event(api, at);
	stop_event(group, at);
	at = 60 * S;
	coll = start(id_of(SCOPE_COLL, 3), api, at, &app);
	ev = kernel(4, coll, at + 8000, at + 20000, 2000);
	assert_true(ev->has_gpu);
	assert_in_range(ev->gpu_error_ns, 5000, 5000 + 2 * GPU_GRAIN_NS);
}

/* Stamps that a kernel of ours never made: no times, and nothing else is lost. */
static void test_gpu_times_hostile(void **arg)
{
	static const uint64_t stamps[][2] = {{0, 0},
					     {UINT64_MAX, 1},
					     {1, UINT64_MAX},
					     {EPOCH, EPOCH - 1},
					     {INT64_MAX, INT64_MAX},
					     {1, 1}};
	const struct corr_event *ev;
	uint64_t coll, i;

	(void)arg;
	comm(1, 0);
	for (i = 0; i < sizeof(stamps) / sizeof(stamps[0]); i++) {
		uint64_t at = (i + 1) * S, n = 10 * (i + 1);
		union corr_start r = {.kernel_ch = {.ptimer_ns = stamps[i][0]}};
		const struct corr_state st = {
			.ts_ns = at + 3000, .id = 22, .arg = stamps[i][1], .has_arg = true};

		coll = launched(n, 0, at);
		start_with(&r, sizeof(r.kernel_ch), id_of(SCOPE_KERNEL_CH, n + 4), coll, at + 2000,
			   &proxy);
		correlate__state(&c, id_of(SCOPE_KERNEL_CH, n + 4), &st);
		stop_event(id_of(SCOPE_KERNEL_CH, n + 4), at + 4000);
		ev = find_out(id_of(SCOPE_KERNEL_CH, n + 4));
		assert_non_null(ev);
		assert_true(!ev->has_gpu || (ev->gpu_start_ns <= ev->gpu_stop_ns &&
					     ev->gpu_stop_ns <= ev->stop_ns));
		ev = kernel(n + 5, coll, at + 5000, at + 6000,
			    2000); /* the clock was set, for all we know */
		assert_true(ev->has_gpu);
	}
}

/* A child that NCCL never stops must not hold its operation for ever, and not let it go early. */
static void test_stuck_child(void **arg)
{
	uint64_t coll = id_of(SCOPE_COLL, 1), op;

	(void)arg;
	start(coll, 0, 10, &app);
	stop_event(coll, 20);
	op = working_op(2, coll, TGID, 30);
	correlate__tick(&c, 59 * S);
	assert_null(find_out(coll));
	correlate__tick(&c, 61 * S);
	assert_non_null(find_out(coll));
	assert_null(find_out(op));
	stop_event(op, 62 * S); /* still an event of its own, and no orphan */
	assert_false(find_out(op)->orphan);
	assert_int_equal(c.counts.orphans, 0);
}

/* Operations that are enqueued while the one before them hangs have their children when their turn comes. */
static void test_queued_behind_stuck(void **arg)
{
	uint64_t first = id_of(SCOPE_COLL, 1), second = id_of(SCOPE_COLL, 2), op;
	uint64_t other = id_of(SCOPE_COLL, 3), t;
	union corr_start elsewhere = {.s.ctx = id_of(SCOPE_ID_WHAT_CTX, 2)};

	(void)arg;
	comm(1, 0);
	comm(2, 0);
	start(first, 0, 10, &app);
	stop_event(first, 20);
	op = working_op(4, first, TGID, 30);
	start(second, 0, 40, &app);
	stop_event(second, 50);
	start_with(&elsewhere, sizeof(elsewhere), other, 0, 60, &app);
	stop_event(other, 70);
	for (t = S; t <= 10 * S; t += S / 4)
		correlate__tick(&c, t);
	assert_null(find_out(first));
	assert_null(find_out(second));
	assert_non_null(find_out(other)); /* of another communicator: it is not behind those */
	stop_event(op, 10 * S);
	correlate__tick(&c, 10 * S + S / 2);
	op = working_op(5, second, TGID, 10 * S + S / 2);
	correlate__tick(&c, 12 * S);
	assert_non_null(find_out(first));
	assert_null(find_out(second));
	stop_event(op, 12 * S);
	correlate__tick(&c, 13 * S);
	assert_int_equal(find_out(second)->exec, EXEC_PROXY);
	assert_int_equal(find_out(second)->exec_stop_ns, 12 * S);
	assert_int_equal(c.counts.orphans, 0);
}

/* The process was stopped, say, before its progress thread had begun: the operation is written, and still known. */
static void test_children_late(void **arg)
{
	uint64_t coll = id_of(SCOPE_COLL, 1), op, i;

	(void)arg;
	start(coll, 0, 10, &app);
	stop_event(coll, 20);
	correlate__tick(&c, 2 * S);
	assert_int_equal(find_out(coll)->exec, EXEC_ENQUEUE);
	correlate__tick(&c, 50 * S);
	op = proxy_op(2, coll, TGID, 50 * S);
	stop_event(op, 51 * S);
	assert_false(find_out(op)->orphan);
	assert_int_equal(c.counts.orphans, 0);
	correlate__tick(&c, 70 * S);
	assert_int_equal(c.table_used, 0);
	/* Where operations never have children, some are enough. */
	for (i = 3; i < 10000; i++) {
		start(id_of(SCOPE_COLL, i), 0, 70 * S + i, &app);
		stop_event(id_of(SCOPE_COLL, i), 70 * S + i);
	}
	correlate__tick(&c, 72 * S);
	correlate__tick(&c, 75 * S);
	assert_in_range(c.table_used, 1, 1024);
}

/* Another thread's buffer comes late: children are known before their parents. */
static void test_children_first(void **arg)
{
	uint64_t coll = id_of(SCOPE_COLL, 1), op = id_of(SCOPE_PROXY_OP, 2);
	uint64_t done = id_of(SCOPE_PROXY_STEP, 3), open = id_of(SCOPE_PROXY_STEP, 4);

	(void)arg;
	start(done, op, 40, &proxy);
	stop_event(done, 50);
	start(open, op, 45, &proxy);
	assert_null(find_out(done)); /* waits for its parent */
	proxy_op(2, coll, TGID, 30);
	stop_event(open, 70);
	stop_event(op, 80);
	start(coll, 0, 10, &app);
	stop_event(coll, 20);
	correlate__tick(&c, 3 * S);
	assert_true(find_out(done)->has_op && find_out(open)->has_op);
	assert_int_equal(find_out(coll)->exec, EXEC_PROXY);
	assert_int_equal(find_out(coll)->exec_stop_ns, 70);
	assert_false(find_out(done)->orphan || find_out(open)->orphan || find_out(op)->orphan);
	assert_int_equal(c.counts.orphans, 0);
}

/* A parent that never comes: a second of grace, then it is written, flagged and counted. */
static void test_orphan(void **arg)
{
	uint64_t step = id_of(SCOPE_PROXY_STEP, 1), api = id_of(SCOPE_COLL_API, 2);
	uint64_t coll = id_of(SCOPE_COLL, 3), op = id_of(SCOPE_PROXY_OP, 99);

	(void)arg;
	start(step, op, 10, &proxy);
	stop_event(step, 20);
	start(coll, api, 10, &app);
	stop_event(coll, 20);
	correlate__tick(&c, 20 + S / 2);
	assert_int_equal(out.nev, 0);
	correlate__tick(&c, 2 * S);
	assert_true(find_out(step)->orphan && find_out(coll)->orphan);
	assert_int_equal(c.counts.orphans, 2);
}

/* A ProxyOp of the communicator @ctx, which the process @pid has, by its own number. */
static void op_of(uint64_t ctx, int32_t pid, uint64_t op, uint64_t parent, uint64_t at)
{
	union corr_start r = {.proxy_op = {.pid = pid, .peer = 1}};

	r.s.ctx = ctx;
	start_with(&r, sizeof(r.proxy_op), op, parent, at, &proxy);
}

static void step_of(uint64_t ctx, uint64_t step, uint64_t op)
{
	union corr_start r = {.s = {.ctx = ctx}};

	start_with(&r, sizeof(r.s), step, op, 20, &proxy);
}

static void test_pxn(void **arg)
{
	uint64_t other = foreign(SCOPE_ID_WHAT_CTX, 1);
	uint64_t op = id_of(SCOPE_PROXY_OP, 1), step = id_of(SCOPE_PROXY_STEP, 2);
	uint64_t lost = id_of(SCOPE_PROXY_STEP, 3);

	(void)arg;
	comm(1, 0);
	op_of(other, 555, op, foreign(SCOPE_COLL, 9), 10);
	step_of(other, step, op);
	step_of(other, lost, id_of(SCOPE_PROXY_OP, 77));
	stop_event(step, 30);
	stop_event(lost, 31);
	stop_event(op, 40);
	assert_true(find_out(op)->pxn && find_out(step)->pxn && find_out(lost)->pxn);
	assert_int_equal(find_out(op)->origin_pid, 555);
	assert_int_equal(find_out(step)->origin_pid, 555);
	assert_null(find_out(op)->comm);
	assert_null(find_out(step)->comm);
	assert_int_equal(find_out(op)->start.s.parent, foreign(SCOPE_COLL, 9));
	assert_int_equal(c.counts.orphans, 0);
}

/* Ranks in containers of their own may all be the same number to themselves: then ids tell whose it is, those that do. */
static void test_pxn_of_same_pid(void **arg)
{
	uint64_t other = foreign(SCOPE_ID_WHAT_CTX, 1);
	uint64_t op = id_of(SCOPE_PROXY_OP, 1), step = id_of(SCOPE_PROXY_STEP, 2);
	uint64_t own = id_of(SCOPE_PROXY_OP, 3);

	(void)arg;
	comm(1, 0);
	op_of(other, TGID, op, foreign(SCOPE_COLL, 9), 10);
	step_of(other, step, op);
	stop_event(step, 30);
	stop_event(op, 40);
	op_of((uint64_t)SCOPE_TAG_NONE << SCOPE_ID_TAG_SHIFT | SCOPE_ID_WHAT_CTX, TGID, own, 0, 50);
	stop_event(own, 60);
	correlate__end(&c);
	assert_true(find_out(op)->pxn && find_out(step)->pxn);
	assert_int_equal(find_out(op)->origin_pid, TGID);
	assert_false(find_out(op)->orphan);
	assert_false(find_out(own)->pxn);
	assert_int_equal(c.counts.orphans, 0);
}

/* Up to API 2 NCCL counts what it tells: the same on all ranks if it told all since the communicator was made. */
static void test_seq_common(void **arg)
{
	static const struct {
		uint32_t api, mask;
		bool made, common;
	} cases[] = {{2, 0xfff, true, true},
		     {2, 0xfff, false, false},
		     {2, 0, true, false},
		     {2, ncclProfileP2p, true, false},
		     {3, 0, false, true}};
	struct scope_comm info = {0};
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		info.ctx = id_of(SCOPE_ID_WHAT_CTX, i + 1);
		info.api = cases[i].api;
		info.mask = cases[i].mask;
		correlate__comm(&c, &info, 1, &app);
		if (cases[i].made)
			correlate__comm_made(&c, info.ctx);
		assert_int_equal(corr_seq_common(correlate__comm_find(&c, info.ctx)),
				 cases[i].common);
	}
}

/* A process may have two copies of the plugin, each with a tag of its own. */
static void test_pxn_of_two_copies(void **arg)
{
	struct scope_comm second = {
		.ctx = foreign(SCOPE_ID_WHAT_CTX, 1), .hash = 0xdef, .rank = 1, .api = 5};
	uint64_t op = foreign(SCOPE_PROXY_OP, 1), lost = foreign(SCOPE_PROXY_STEP, 2);

	(void)arg;
	comm(1, 0);
	correlate__comm(&c, &second, 1, &app);
	op_of(second.ctx, TGID, op, 0, 10);
	step_of(second.ctx, lost, foreign(SCOPE_PROXY_OP, 77));
	stop_event(lost, 30);
	stop_event(op, 40);
	correlate__end(&c);
	assert_false(find_out(op)->pxn);
	assert_false(find_out(lost)->pxn);
}

static void test_repeats(void **arg)
{
	uint64_t step = start(id_of(SCOPE_PROXY_STEP, 1), 0, 10, &proxy);

	(void)arg;
	correlate__start_repeat(&c, step, 41);
	correlate__start_repeat(&c, step, 1);
	state(step, 20, 20);
	correlate__state_repeat(&c, step, 20, 5, 30);
	correlate__state_repeat(&c, step, 20, 6, 40);
	state(step, 9, 50);
	/* The first was written already: its repeats stand alone. */
	correlate__tick(&c, 2 * S);
	correlate__state_repeat(&c, step, 9, 3, 2 * S + 1);
	stop_event(step, 3 * S);
	assert_int_equal(find_out(step)->start_repeats, 42);
	assert_int_equal(out.nst, 3);
	assert_int_equal(out.st[0].repeats, 11);
	assert_int_equal(out.st[0].ts_ns, 20);
	assert_int_equal(out.st[0].last_ts_ns, 40);
	assert_int_equal(out.st[1].repeats, 0);
	assert_int_equal(out.st[2].id, 9);
	assert_int_equal(out.st[2].repeats, 3);
}

/* NCCL stops late, twice, and what never was; each is counted, none is an event. */
static void test_late_and_double(void **arg)
{
	uint64_t step = start(id_of(SCOPE_PROXY_STEP, 1), 0, 10, &proxy);
	uint64_t coll = start(id_of(SCOPE_COLL, 2), 0, 10, &app);

	(void)arg;
	stop_event(step, 20);
	stop_event(step, 21);
	state(step, 9, 22);
	stop_event(coll, 20);
	stop_event(coll, 21);
	stop_event(foreign(SCOPE_COLL, 7), 22);
	correlate__state_repeat(&c, step, 9, 3, 23);
	correlate__start_repeat(&c, step, 3);
	assert_int_equal(c.counts.late, 5);
	assert_int_equal(c.counts.orphans, 0);
	start(coll, 0, 30, &app); /* an id used twice */
	assert_int_equal(c.counts.malformed, 1);
	/* After a loss, it is the start that is missing. */
	c.lost = 3;
	stop_event(id_of(SCOPE_PROXY_STEP, 50), 40);
	stop_event(foreign(SCOPE_PROXY_STEP, 50), 40);
	assert_int_equal(c.counts.orphans, 1);
	assert_int_equal(c.counts.late, 6);
	/* Not that of what began before the recording, nor of what NCCL stops twice. */
	c.first_id = 60;
	stop_event(id_of(SCOPE_PROXY_STEP, 50), 40);
	state(id_of(SCOPE_PROXY_STEP, 51), 9, 41);
	stop_event(start(id_of(SCOPE_NET_PLUGIN, 70), 0, 42, &proxy), 43);
	stop_event(id_of(SCOPE_NET_PLUGIN, 70), 43);
	stop_event(id_of(SCOPE_COLL_API, 71), 43);
	assert_int_equal(c.counts.orphans, 1);
	assert_int_equal(c.counts.late, 10);
	state(id_of(SCOPE_NET_PLUGIN, 72), 21, 44);
	stop_event(id_of(SCOPE_PROXY_STEP, 73), 44);
	assert_int_equal(c.counts.orphans, 3);
	assert_int_equal(out.total, 2);
}

static void test_loss_near(void **arg)
{
	uint64_t before = start(id_of(SCOPE_PROXY_CTRL, 1), 0, 10, &proxy), open;

	(void)arg;
	stop_event(before, 20);
	open = start(id_of(SCOPE_PROXY_CTRL, 2), 0, 10, &proxy);
	c.lost += 7;
	stop_event(open, 30);
	open = start(id_of(SCOPE_PROXY_CTRL, 3), 0, 10, &proxy);
	c.lost += 2;
	correlate__end(&c);
	assert_int_equal(find_out(before)->loss_near, 0);
	assert_int_equal(find_out(id_of(SCOPE_PROXY_CTRL, 2))->loss_near, 7);
	assert_int_equal(find_out(open)->loss_near, 2);
}

/* Time that goes back, as a job can make it, must not give negative durations. */
static void test_time_back(void **arg)
{
	uint64_t step = start(id_of(SCOPE_PROXY_STEP, 1), 0, 1000, &proxy);

	(void)arg;
	state(step, 8, 900);
	correlate__state_repeat(&c, step, 8, 1, 800);
	state(step, 9, 5000);
	stop_event(step, 500);
	assert_int_equal(find_out(step)->stop_ns, 1000);
	assert_int_equal(out.st[0].ts_ns, 1000);
	assert_true(out.st[0].last_ts_ns >= out.st[0].ts_ns);
	assert_int_equal(out.st[1].ts_ns, 1000); /* not after its event */
}

static void test_unfinished(void **arg)
{
	uint64_t coll = start(id_of(SCOPE_COLL, 1), 0, 10, &app), op, step;

	(void)arg;
	stop_event(coll, 20);
	op = proxy_op(2, coll, TGID, 30);
	step = start(id_of(SCOPE_PROXY_STEP, 3), op, 40, &proxy);
	state(step, 9, 50);
	correlate__end(&c);
	assert_int_equal(out.nev, 3);
	assert_true(find_out(op)->unfinished && find_out(step)->unfinished);
	assert_int_equal(find_out(step)->last_state, 9);
	assert_false(find_out(op)->orphan || find_out(step)->orphan || find_out(coll)->orphan);
	assert_int_equal(out.nst, 1);
	assert_false(find_out(coll)->unfinished);
	correlate__end(&c);
	assert_int_equal(out.nev, 3);
}

/* A captured call is the parent of every replay of its graph, for as long as the graph lives. */
static void test_captured_parent(void **arg)
{
	union corr_start r = {0};
	uint64_t api = id_of(SCOPE_COLL_API, 1), plain = id_of(SCOPE_COLL_API, 2), coll, i;

	(void)arg;
	r.s.h.u8 = 1; /* graphCaptured */
	start_with(&r, sizeof(r.coll_api), api, 0, 10, &app);
	stop_event(api, 20);
	start(plain, 0, 10, &app);
	stop_event(plain, 20);
	for (i = 1; i < 100; i++)
		correlate__tick(&c, i * S);
	assert_non_null(correlate__find(&c, api));
	assert_null(correlate__find(&c, plain));
	coll = start(id_of(SCOPE_COLL, 3), api, 100 * S, &app);
	stop_event(coll, 101 * S);
	correlate__tick(&c, 103 * S);
	assert_false(find_out(coll)->orphan);
}

/* A call's operation begins as NCCL launches the group, which first connects it to peers, and they may be late: its GroupApi is open. */
static void test_call_of_open_group(void **arg)
{
	uint64_t group = api_call(SCOPE_GROUP_API, 1, 0, false, 10), call, p2p, i;

	(void)arg;
	call = api_call(SCOPE_P2P_API, 2, group, false, 11);
	stop_event(call, 12);
	for (i = 1; i < 100; i++)
		correlate__tick(&c, i * S);
	p2p = start(id_of(SCOPE_P2P, 3), call, 100 * S, &app);
	stop_event(p2p, 100 * S);
	stop_event(group, 100 * S);
	for (i = 101; i < 110; i++)
		correlate__tick(&c, i * S);
	assert_false(find_out(p2p)->orphan);
	assert_int_equal(c.counts.orphans, 0);
	assert_null(correlate__find(&c, call)); /* no longer than that */
}

/* Nor more than there is room for. */
static void test_many_calls_of_open_group(void **arg)
{
	uint64_t group = api_call(SCOPE_GROUP_API, 1, 0, false, 10), i;

	(void)arg;
	for (i = 0; i < 70000; i++)
		stop_event(api_call(SCOPE_COLL_API, 2 + i, group, false, 11), 12);
	for (i = 1; i < 10; i++)
		correlate__tick(&c, i * S);
	assert_int_equal(c.gone.n, 1 << 16);
	stop_event(group, 10 * S);
	correlate__tick(&c, 13 * S);
	correlate__tick(&c, 15 * S);
	assert_int_equal(c.gone.n, 0);
}

/* v1 to v3 tell name, hash and rank with their first Coll or P2p, not at init. */
static void test_comm_by_event(void **arg)
{
	union corr_start r = {.coll = {.rank = 6}};
	uint64_t coll = id_of(SCOPE_COLL, 1);

	(void)arg;
	comm(1, -1);
	correlate__comm_name(&c, id_of(SCOPE_ID_WHAT_CTX, 1), 0xbeef, "name", 6);
	correlate__comm_name(&c, id_of(SCOPE_ID_WHAT_CTX, 2), 1, "nobody", 6);
	start_with(&r, sizeof(r.coll), coll, 0, 10, &app);
	correlate__finalize(&c, id_of(SCOPE_ID_WHAT_CTX, 1), 15, &app);
	stop_event(coll, 20); /* the communicator lives as long as its events */
	correlate__tick(&c, 2 * S);
	assert_int_equal(out.rank[0], 6);
	assert_int_equal(out.hash[0], 0xbeef);
}

/* More open events than there is room for: the oldest is given up, counted, and written. */
static void test_eviction(void **arg)
{
	const uint64_t n = MAX_EVENTS + 1000;
	uint64_t i;

	(void)arg;
	for (i = 1; i <= n; i++)
		start(id_of(SCOPE_PROXY_CTRL, i), 0, i, &proxy);
	assert_int_equal(c.counts.evicted, n - MAX_EVENTS);
	assert_int_equal(out.total, n - MAX_EVENTS);
	assert_true(out.ev[0].unfinished);
	assert_int_equal(out.ev[0].id, id_of(SCOPE_PROXY_CTRL, 1));
	stop_event(id_of(SCOPE_PROXY_CTRL, 1), n + 1); /* late, for what was given up */
	assert_int_equal(c.counts.late, 1);
	correlate__end(&c);
	assert_int_equal(out.total, n);
}

/* ---- What does not move ------------------------------------------------------------------------ */

/* Ticks as the recorder does. */
static void pass(uint64_t from, uint64_t to)
{
	for (; from <= to; from += 50 * MS) {
		correlate__tick(&c, from);
		if (hung__due(&c))
			hung__tell(&c);
	}
}

/* How often it was told; the nth time's index in `told`. */
static uint32_t times_told(uint64_t id, uint32_t nth, uint32_t *at)
{
	uint32_t i, n = 0;

	for (i = 0; i < told.n; i++) {
		if (told.id[i] != id)
			continue;
		if (n++ == nth && at)
			*at = i;
	}
	return n;
}

/* The chain, each behind its parent, after a second, and then at growing distances. */
static void test_hung_chain(void **arg)
{
	static const uint32_t after[] = {1, 3, 7, 15, 31, 63, 123};
	uint64_t coll = id_of(SCOPE_COLL, 1), api = id_of(SCOPE_COLL_API, 9), op, step;
	uint32_t i, at = 0;

	(void)arg;
	start(api, 0, S - 20, &app);
	start(coll, api, S - 10, &app);
	stop_event(coll, S - 5);
	op = proxy_op(2, coll, TGID, S);
	step = start(id_of(SCOPE_PROXY_STEP, 3), op, S + 10, &proxy);
	state(step, 20, S + 20);
	pass(S, 2 * S);
	assert_int_equal(told.n, 0);
	pass(2 * S, 2 * S + 200 * MS);
	assert_int_equal(told.n, 4);
	assert_true(told.id[0] == api && told.id[1] == coll && told.id[2] == op &&
		    told.id[3] == step);
	assert_int_equal(told.more[3], 0);
	assert_true(told.quiet[3] >= S && told.quiet[0] >= S);
	assert_true(out.nst == 1 && out.st[0].id == 20); /* its state is out as well */
	pass(2 * S + 250 * MS, 130 * S);
	assert_int_equal(times_told(step, 0, NULL), 7);
	for (i = 0; i < 7; i++) {
		times_told(step, i, &at);
		assert_in_range(told.ts[at], (1 + after[i]) * S, (1 + after[i]) * S + 600 * MS);
	}
	/* After a minute the operation is written without its children, and not told again. */
	assert_non_null(find_out(coll));
	assert_int_equal(times_told(coll, 0, NULL), 5);
	assert_int_equal(c.hung.events, 4);
	stop_event(step, 140 * S);
	stop_event(op, 140 * S);
	stop_event(api, 140 * S);
	pass(140 * S, 160 * S);
	assert_int_equal(times_told(step, 0, NULL), 7);
	assert_in_range(c.hung.longest_ns, 139 * S - MS, 139 * S + 20);
}

/* The recording ends: what was told is told as it is then, but not what went on or has stopped since. */
static void test_hung_end(void **arg)
{
	uint64_t coll = id_of(SCOPE_COLL, 1), op, still, moves, stops;
	uint32_t at = 0;

	(void)arg;
	start(coll, 0, S, &app);
	stop_event(coll, S);
	op = proxy_op(2, coll, TGID, S);
	still = start(id_of(SCOPE_PROXY_STEP, 3), op, S, &proxy);
	moves = start(id_of(SCOPE_PROXY_STEP, 4), id_of(SCOPE_PROXY_OP, 99), S, &proxy);
	stops = start(id_of(SCOPE_PROXY_STEP, 5), id_of(SCOPE_PROXY_OP, 98), S, &proxy);
	pass(S, 2 * S + 200 * MS);
	assert_int_equal(told.n, 5);
	state(moves, 20, 2 * S + 300 * MS);
	stop_event(stops, 2 * S + 300 * MS);
	correlate__tick(&c, 2 * S + 700 * MS);
	correlate__end(&c);
	assert_int_equal(told.n, 8);
	assert_int_equal(times_told(still, 1, &at), 2);
	assert_int_equal(told.ts[at], 2 * S + 700 * MS);
	assert_int_equal(times_told(op, 0, NULL), 2);
	assert_int_equal(times_told(coll, 0, NULL), 2);
	assert_int_equal(times_told(moves, 0, NULL), 1);
	assert_int_equal(times_told(stops, 0, NULL), 1);
}

/* Whatever moves below it keeps an event from being told; then it counts from there. */
static void test_hung_moves(void **arg)
{
	uint64_t coll = id_of(SCOPE_COLL, 1), api = id_of(SCOPE_GROUP_API, 9), op, step = 0, t, n;
	uint64_t kernel = id_of(SCOPE_KERNEL_CH, 7), repeated;
	uint32_t at = 0;

	(void)arg;
	start(api, 0, S, &app);
	start(coll, api, S, &app);
	stop_event(coll, S);
	start(kernel, coll, S, &proxy);
	op = proxy_op(2, coll, TGID, S);
	for (t = S, n = 10; t < 20 * S; t += 900 * MS, n++) {
		step = start(id_of(SCOPE_PROXY_STEP, n), op, t, &proxy);
		pass(t, t + 400 * MS);
		state(step, 9, t + 400 * MS);
		pass(t + 400 * MS, t + 850 * MS);
		stop_event(step, t + 850 * MS);
	}
	assert_int_equal(told.n, 0);
	/* What NCCL repeats while it polls is no movement. */
	repeated = start(id_of(SCOPE_PROXY_STEP, n), op, t, &proxy);
	state(repeated, 20, t);
	for (n = 0; n < 40; n++) {
		state(repeated, 20, t + n * 50 * MS);
		correlate__state_repeat(&c, repeated, 20, 1000, t + n * 50 * MS);
		correlate__start_repeat(&c, repeated, 1000);
		pass(t + n * 50 * MS, t + n * 50 * MS);
	}
	assert_int_equal(told.n, 5);
	assert_int_equal(times_told(repeated, 0, &at), 1);
	assert_in_range(told.quiet[at], S, S + 200 * MS);
	assert_int_equal(times_told(kernel, 0, NULL), 1);
	/* It moves once: from a second later on it is told again, from the beginning. */
	t += 2 * S;
	state(repeated, 9, t);
	pass(t, t + S);
	assert_int_equal(told.n, 5);
	pass(t + S, t + S + 200 * MS);
	assert_int_equal(told.n, 10);
	pass(t + S + 250 * MS, t + 3 * S + 300 * MS);
	assert_int_equal(told.n, 15);
	/* Nor is what NCCL before 2.27 repeats of the operation. */
	for (n = 0; n < 40; n++) {
		state(op, ncclProfilerProxyOpSendRemFifoWait, t + 4 * S + n * 50 * MS);
		pass(t + 4 * S + n * 50 * MS, t + 4 * S + n * 50 * MS);
	}
	assert_int_equal(times_told(op, 3, &at), 4);
	assert_in_range(told.quiet[at], S, S + 200 * MS);
}

/* An operation that waits for its turn moves with those before it on its communicator. */
static void test_hung_queue(void **arg)
{
	uint64_t first = id_of(SCOPE_COLL, 1), second = id_of(SCOPE_COLL, 2), op, queued, step, t;

	(void)arg;
	comm(1, 0);
	start(first, 0, S, &app);
	stop_event(first, S);
	start(second, 0, S, &app);
	stop_event(second, S);
	op = proxy_op(3, first, TGID, S);
	queued = proxy_op(4, second, TGID, S);
	for (t = S; t < 10 * S; t += 500 * MS) {
		step = start(id_of(SCOPE_PROXY_STEP, 10 + t / MS), op, t, &proxy);
		stop_event(step, t + 10 * MS);
		pass(t, t + 450 * MS);
	}
	assert_int_equal(told.n, 0);
	start(id_of(SCOPE_PROXY_STEP, 5), op, t, &proxy);
	pass(t, t + S + 200 * MS);
	assert_int_equal(times_told(op, 0, NULL), 1);
	assert_int_equal(times_told(queued, 0, NULL), 1);
	assert_int_equal(told.n, 5);
	/* Its turn comes while the other one hangs: from then on it counts for itself. */
	step = start(id_of(SCOPE_PROXY_STEP, 6), queued, t + 2 * S, &proxy);
	pass(t + 2 * S, t + 3 * S);
	assert_int_equal(times_told(step, 0, NULL), 0);
	pass(t + 3 * S, t + 3 * S + 200 * MS);
	assert_int_equal(times_told(step, 0, NULL), 1);
	assert_int_equal(times_told(second, 0, NULL), 2);
}

/* A progress thread without work, and an operation whose children are over. */
static void test_hung_not(void **arg)
{
	uint64_t ctrl = start(id_of(SCOPE_PROXY_CTRL, 1), 0, S, &proxy), coll, op;

	(void)arg;
	state(ctrl, ncclProfilerProxyCtrlSleep, S);
	pass(S, 100 * S);
	assert_int_equal(told.n, 0);
	assert_int_equal(out.nst, 1);
	state(ctrl, ncclProfilerProxyCtrlWakeup, 100 * S);
	pass(100 * S, 102 * S);
	assert_int_equal(times_told(ctrl, 0, NULL), 1);
	stop_event(ctrl, 102 * S);
	coll = start(id_of(SCOPE_COLL, 2), 0, 110 * S, &app);
	stop_event(coll, 110 * S);
	op = proxy_op(3, coll, TGID, 110 * S);
	stop_event(op, 110 * S + 900 * MS);
	pass(110 * S, 120 * S);
	assert_int_equal(told.n, 1);
	assert_non_null(find_out(coll));
}

/* More than may be told at a time: those of the oldest, with all above them; the rest is counted. */
static void test_hung_bound(void **arg)
{
	uint64_t coll = start(id_of(SCOPE_COLL, 1), 0, S, &app), op[10], n, i, seen = 0;

	(void)arg;
	stop_event(coll, S);
	for (i = 0; i < 10; i++)
		op[i] = proxy_op(10 + i, coll, TGID, S + i);
	for (n = 0; n < 1000; n++)
		start(id_of(SCOPE_PROXY_STEP, 100 + n), op[n % 10], S + 100 + n, &proxy);
	pass(S, 2 * S + 200 * MS);
	assert_int_equal(told.n, HUNG_TOLD_MAX);
	assert_int_equal(told.more[HUNG_TOLD_MAX - 1], 1011 - HUNG_TOLD_MAX);
	for (i = 0; i + 1 < HUNG_TOLD_MAX; i++)
		assert_int_equal(told.more[i], 0);
	assert_true(told.id[0] == coll && told.id[1] == op[0]);
	for (i = 0; i < HUNG_TOLD_MAX; i++) {
		if (SCOPE_ID_WHAT(told.id[i]) != SCOPE_PROXY_STEP)
			continue;
		assert_true(told.id[i] == id_of(SCOPE_PROXY_STEP, 100 + seen));
		seen++;
	}
	assert_int_equal(seen, HUNG_TOLD_MAX - 11);
	pass(2 * S + 250 * MS, 4 * S + 500 * MS); /* those left out wait as the others do */
	assert_int_equal(told.n, 2 * HUNG_TOLD_MAX);
	assert_int_equal(c.hung.events, 1011);
}

/* Parents as a job may make them up. */
static void test_hung_circle(void **arg)
{
	uint64_t a = id_of(SCOPE_PROXY_OP, 1), b = id_of(SCOPE_PROXY_STEP, 2), self;

	(void)arg;
	self = start(id_of(SCOPE_KERNEL_CH, 3), id_of(SCOPE_KERNEL_CH, 3), S, &proxy);
	start(a, b, S, &proxy);
	start(b, a, S, &proxy);
	pass(S, 5 * S);
	assert_true(times_told(a, 0, NULL) == 2 && times_told(b, 0, NULL) == 2);
	assert_int_equal(times_told(self, 0, NULL), 2);
	state(b, 9, 5 * S);
	stop_event(a, 6 * S);
	stop_event(b, 6 * S);
}

/* The recorder was stopped for longer than the wheel goes round; and time that jumps is no movement. */
static void test_hung_late(void **arg)
{
	uint64_t step = start(id_of(SCOPE_PROXY_STEP, 1), 0, S, &proxy);

	(void)arg;
	pass(S, 4 * S + 500 * MS);
	assert_int_equal(told.n, 2);
	pass(400 * S, 400 * S);
	assert_int_equal(told.n, 3);
	state(step, 9, 400 * S);
	pass(900 * S, 900 * S);
	assert_int_equal(told.n, 4);
	stop_event(step, 900 * S);
	pass(901 * S, 1000 * S);
	assert_int_equal(told.n, 4);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

/* A tick does not go through all that is open: with 100,000 it takes no more than with 100, 20 us aside. */
static void test_hung_cost(void **arg)
{
	uint64_t took[2], now = S, i, n = 100, k;

	(void)arg;
	for (k = 0; k < 2; k++, n = 100000) {
		for (i = 0; i < n; i++) {
			start(id_of(SCOPE_PROXY_STEP, now + i), 0, now, &proxy);
			state(id_of(SCOPE_PROXY_STEP, now + i), 9, now);
		}
		pass(now, now + 20 * S);
		told.n = 0;
		/* Between two times at which they are told. */
		now += 20 * S;
		took[k] = cpu_ns();
		for (i = 0; i < 200; i++)
			correlate__tick(&c, now + i * 50 * MS);
		took[k] = (cpu_ns() - took[k]) / 200;
		now += 10 * S;
	}
	printf("# a tick with 100 open events: %llu ns, with 100,100: %llu ns\n",
	       (unsigned long long)took[0], (unsigned long long)took[1]);
	assert_in_range(took[1], 0, took[0] + 20000);
	took[0] = cpu_ns();
	correlate__tick(&c, now + 10 * S);
	assert_true(hung__due(&c));
	hung__tell(&c);
	printf("# to tell them: %llu us\n", (unsigned long long)(cpu_ns() - took[0]) / 1000);
	assert_int_equal(told.n, HUNG_TOLD_MAX);
}

/* They go while others are written all the time, too. */
static void test_childless_expire(void **arg)
{
	uint64_t now, api, i = 0;

	(void)arg;
	for (now = S; now < 200 * S; now += 50 * MS) {
		api = api_call(SCOPE_COLL_API, ++i, 0, false, now);
		stop_event(start(id_of(SCOPE_COLL, i), api, now, &app), now);
		stop_event(api, now);
		correlate__tick(&c, now);
	}
	assert_in_range(c.childless.n, 1, 1024);
	assert_in_range(c.table_used, 1, 1024 + 100);
	for (; now < 210 * S; now += MS) {
		stop_event(start(id_of(SCOPE_COLL, ++i), 0, now, &app), now);
		stop_event(api_call(SCOPE_COLL_API, i, 0, false, now), now);
		correlate__tick(&c, now);
	}
	assert_int_equal(c.childless.n, 1024);
}

/* Nor through the calls that graphs have captured, which stay for as long as there is room: with 50,000 of them likewise. */
static void test_captured_cost(void **arg)
{
	uint64_t took[2], now = S, i, n = 100, id, k;

	(void)arg;
	for (k = 0; k < 2; k++, n = 50000) {
		for (i = 0; i < n; i++) {
			id = api_call(SCOPE_COLL_API, now + i, 0, true, now);
			stop_event(id, now);
		}
		now += 10 * S;
		took[k] = cpu_ns();
		for (i = 0; i < 200; i++)
			correlate__tick(&c, now + i * 50 * MS);
		took[k] = (cpu_ns() - took[k]) / 200;
		now += 20 * S;
	}
	printf("# a tick with 100 captured calls: %llu ns, with 50,100: %llu ns\n",
	       (unsigned long long)took[0], (unsigned long long)took[1]);
	assert_non_null(correlate__find(&c, id_of(SCOPE_COLL_API, S)));
	assert_in_range(took[1], 0, took[0] + 20000);
}

/* There is room for so many, whatever else was written lately; then the oldest go. */
static void test_captured_room(void **arg)
{
	const uint64_t n = 60000;
	uint64_t i, id;

	(void)arg;
	for (i = 1; i <= n; i++)
		stop_event(api_call(SCOPE_COLL_API, i, 0, true, S), S);
	for (i = 1; i <= 20000; i++)
		stop_event(api_call(SCOPE_COLL_API, n + i, 0, false, 2 * S), 2 * S);
	correlate__tick(&c, 3 * S);
	assert_non_null(correlate__find(&c, id_of(SCOPE_COLL_API, 1)));
	correlate__tick(&c, 5 * S);
	assert_int_equal(c.table_used, n);
	for (i = 1; i <= 20000; i++) {
		id = api_call(SCOPE_COLL_API, 2 * n + i, 0, true, 5 * S);
		stop_event(id, 5 * S);
	}
	correlate__tick(&c, 100 * S);
	assert_null(correlate__find(&c, id_of(SCOPE_COLL_API, 1)));
	assert_non_null(correlate__find(&c, id));
	assert_int_equal(c.table_used, 1 << 16);
}

/* The same of those that have stopped and wait: for a parent, or for children. */
static void test_eviction_of_stopped(void **arg)
{
	const uint64_t n = MAX_EVENTS / 2 + 1000;
	uint64_t i;

	(void)arg;
	for (i = 1; i <= n; i++) {
		start(id_of(SCOPE_PROXY_CTRL, i), id_of(SCOPE_GROUP, i), i, &proxy);
		stop_event(id_of(SCOPE_PROXY_CTRL, i), i);
		start(id_of(SCOPE_COLL, i), 0, i, &proxy);
		stop_event(id_of(SCOPE_COLL, i), i);
	}
	assert_true(c.table_used <= MAX_EVENTS);
	assert_in_range(c.counts.evicted, 1, 10000);
	correlate__end(&c);
	assert_int_equal(out.total, 2 * n);
}

/* What several may hold together: whoever takes all leaves the fifth part to others. */
static void test_memory(void **arg)
{
	struct budget all = {.max = 10000 * 1000};
	struct budget_part part = {.of = &all}, other = {.of = &all};
	uint64_t i;

	(void)arg;
	c.memory = &part;
	for (i = 1; i <= 50000; i++) {
		start(id_of(SCOPE_PROXY_CTRL, 2 * i), 0, i, &proxy);
		start(id_of(SCOPE_COLL, 2 * i + 1), 0, i, &proxy);
		stop_event(id_of(SCOPE_COLL, 2 * i + 1), i);
	}
	assert_in_range(part.used, all.max * 7 / 10, all.max * 81 / 100);
	assert_true(budget_part__take(&other, all.max / 10));
	assert_false(budget_part__take(&part, 1000));
	correlate__comm(&c, &(struct scope_comm){.ctx = id_of(SCOPE_ID_WHAT_CTX, 9), .api = 5}, 1,
			&proxy);
	assert_int_equal(c.counts.malformed, 1);
	correlate__end(&c);
	assert_int_equal(out.total, 100000);
	correlate__free(&c);
	assert_int_equal(part.used, 0);
	assert_int_equal(all.used, other.used);
}

/* ---- Random load against a plain array --------------------------------------------------------- */

#define MODEL 4096

static struct {
	uint64_t id;
	bool open;
} model[MODEL];

static uint64_t seed = 12345;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

static void test_table(void **arg)
{
	uint64_t next = 1, started = 0, stopped = 0, late = 0, now = 1;
	uint32_t i, k, open = 0;

	(void)arg;
	for (i = 0; i < 400000; i++) {
		k = rnd(i < 200000 ? MODEL : MODEL / 8); /* grows, then shrinks */
		now += rnd(1000);
		if (!model[k].open) {
			/* ids that lie close, and ids that hash anywhere */
			next += rnd(4) ? 1 : rnd(1u << 20);
			model[k].id = id_of(SCOPE_PROXY_CTRL, next);
			model[k].open = true;
			start(model[k].id, 0, now, &proxy);
			started++;
			open++;
		} else {
			stop_event(model[k].id, now);
			model[k].open = false;
			stopped++;
			open--;
			if (rnd(10) == 0) {
				stop_event(model[k].id, now);
				late++;
			}
		}
		if (i % 20000)
			continue;
		for (k = 0; k < MODEL; k++)
			assert_int_equal(!!correlate__find(&c, model[k].id), model[k].open);
		assert_int_equal(c.table_used, open);
		assert_int_equal(c.open.n, open);
	}
	assert_int_equal(out.total, stopped);
	assert_int_equal(c.counts.late, late);
	assert_int_equal(c.counts.malformed, 0);
	correlate__end(&c);
	assert_int_equal(out.total, started);
}

/* Whole trees in any order of their records: nothing is lost, nothing orphaned, nothing written twice. */
static void test_any_order(void **arg)
{
	enum { N = 6 };
	uint64_t id[N], parent[N] = {0}, now = 10;
	uint32_t round, i, k, tmp, order[N], total = 0;

	(void)arg;
	for (round = 1; round <= 3000; round++) {
		static const uint32_t what[N] = {SCOPE_GROUP_API,  SCOPE_COLL_API,
						 SCOPE_COLL,	   SCOPE_PROXY_OP,
						 SCOPE_PROXY_STEP, SCOPE_PROXY_STEP};

		for (i = 0; i < N; i++) {
			id[i] = id_of(what[i], round * 16 + i);
			parent[i] = i == 5 ? id[3] : i ? id[i - 1] : 0;
			order[i] = i;
		}
		for (i = N - 1; i; i--) {
			k = rnd(i + 1);
			tmp = order[i];
			order[i] = order[k];
			order[k] = tmp;
		}
		for (i = 0; i < N; i++, now += 10) {
			if (order[i] == 3)
				proxy_op(round * 16 + 3, parent[3], TGID, now);
			else
				start(id[order[i]], parent[order[i]], now, &proxy);
			if (rnd(2)) {
				stop_event(id[order[i]], now + 5);
				order[i] = N;
			}
		}
		for (i = 0; i < N; i++, now += 10)
			if (order[i] < N)
				stop_event(id[order[i]], now);
		total += N;
		if (rnd(4) == 0) {
			now += 3 * S;
			correlate__tick(&c, now);
			assert_int_equal(out.total, total);
		}
	}
	correlate__end(&c);
	assert_int_equal(out.total, total);
	assert_int_equal(c.counts.orphans + c.counts.late + c.counts.malformed, 0);
	for (i = 0; i < out.nev; i++)
		assert_true(out.ev[i].what != SCOPE_COLL || out.ev[i].exec == EXEC_PROXY);
}

/* ---- Boundaries of the recording --------------------------------------------------------------- */

/* Another recorder had it begun: its children, and theirs, are none of ours, and no orphans either. */
static void test_begun_before(void **arg)
{
	uint64_t op, step, coll;

	(void)arg;
	c.first_id = 1000;
	op = proxy_op(1001, id_of(SCOPE_COLL, 999), TGID, S);
	step = start(id_of(SCOPE_PROXY_STEP, 1002), op, S + 1, &proxy);
	state(step, 9, S + 2);
	stop_event(step, S + 3);
	stop_event(op, S + 4);
	coll = start(id_of(SCOPE_COLL, 1003), 0, S + 5, &app);
	op = proxy_op(1004, coll, TGID, S + 6);
	stop_event(op, S + 7);
	stop_event(coll, S + 8);
	correlate__tick(&c, 10 * S);
	correlate__end(&c);
	assert_int_equal(out.nst, 0);
	assert_int_equal(out.nev, 2);
	assert_int_equal(out.ev[1].id, coll);
	assert_int_equal(c.counts.outside, 2);
	assert_int_equal(c.counts.orphans, 0);
}

/* A neighbour's ids have their own counter. */
static void test_begun_before_not_pxn(void **arg)
{
	(void)arg;
	c.first_id = 1000;
	stop_event(proxy_op(1001, foreign(SCOPE_COLL, 5), TGID + 1, S), S + 1);
	correlate__end(&c);
	assert_int_equal(out.nev, 1);
	assert_true(out.ev[0].pxn);
}

static void test_cut(void **arg)
{
	uint64_t coll, op, next, next_op;

	(void)arg;
	coll = start(id_of(SCOPE_COLL, 1), 0, S, &app);
	stop_event(coll, S + 1);
	correlate__cut(&c, S + 10);
	correlate__cut(&c, S + 20); /* the first one counts */
	op = working_op(2, coll, TGID, S + 11);
	next = start(id_of(SCOPE_COLL, 3), 0, S + 12, &app);
	next_op = working_op(4, next, TGID, S + 13);
	start(id_of(SCOPE_PROXY_STEP, 5), next_op, S + 14, &proxy);
	assert_false(correlate__settled(&c, S + MS, 0));
	stop_event(op, S + 15);
	assert_false(correlate__settled(&c, S + MS, 2 * MS));
	assert_true(correlate__settled(&c, S + 2 * MS + 15, 2 * MS));
	correlate__end(&c);
	assert_int_equal(out.nev, 2);
	assert_int_equal(out.ev[0].id, op);
	assert_int_equal(out.ev[1].id, coll);
	assert_int_equal(c.counts.outside, 3);
}

/* An idle proxy thread is no operation under way. */
static void test_settled_idle(void **arg)
{
	(void)arg;
	assert_true(correlate__settled(&c, S, 0));
	start(id_of(SCOPE_PROXY_CTRL, 1), 0, S, &proxy);
	assert_true(correlate__settled(&c, 2 * S, 0));
	start(id_of(SCOPE_GROUP_API, 2), 0, 2 * S, &app);
	assert_false(correlate__settled(&c, 3 * S, 0));
}

static void test_colls_max(void **arg)
{
	uint64_t i, api, coll;

	(void)arg;
	c.colls_max = 3;
	for (i = 0; i < 5; i++) {
		api = start(id_of(SCOPE_COLL_API, 10 * i + 1), 0, S + 10 * i, &app);
		coll = start(id_of(SCOPE_COLL, 10 * i + 2), api, S + 10 * i + 1, &app);
		stop_event(coll, S + 10 * i + 2);
		stop_event(api, S + 10 * i + 3);
		stop_event(proxy_op(10 * i + 3, coll, TGID, S + 10 * i + 4), S + 10 * i + 5);
	}
	assert_int_equal(c.colls, 3);
	correlate__end(&c);
	assert_int_equal(out.nev, 9);
	assert_int_equal(c.counts.outside, 6);
}

/* ---- What is pending ----------------------------------------------------------------------------- */

struct pending {
	uint64_t n, id, since_ns; /* the oldest */
};

static void on_pending(void *arg, const struct corr_event *op)
{
	struct pending *p = arg;

	if (p->n++ && op->start_ns >= p->since_ns)
		return;
	p->id = op->id;
	p->since_ns = op->start_ns;
}

static struct pending pending(void)
{
	struct pending p = {0};

	correlate__pending(&c, on_pending, &p);
	return p;
}

static uint64_t operation(uint32_t what, uint64_t n, uint64_t from, uint64_t to)
{
	uint64_t id = start(id_of(what, n), 0, from, &app);

	stop_event(id, to);
	return id;
}

/* It is written after a minute, and has not ended by that. */
static void test_pending_stuck(void **arg)
{
	uint64_t coll, op[2], t;

	(void)arg;
	comm(1, 0);
	coll = operation(SCOPE_COLL, 1, S, S + 1);
	op[0] = working_op(2, coll, TGID, S + 2);
	op[1] = start(id_of(SCOPE_KERNEL_CH, 3), coll, S + 3, &proxy);
	for (t = S; t < 3600 * S; t += 500 * MS) {
		correlate__tick(&c, t);
		assert_int_equal(pending().n, 1);
		assert_int_equal(pending().since_ns, S);
	}
	assert_true(find_out(coll)->open_children == 2);
	stop_event(op[0], t);
	assert_int_equal(pending().n, 1);
	stop_event(op[1], t);
	assert_int_equal(pending().n, 0);
	/* Which may have children still, as others that are written; not for ever. */
	op[0] = working_op(4, coll, TGID, t + S);
	assert_int_equal(pending().id, coll);
	stop_event(op[0], t + 2 * S);
	assert_int_equal(pending().n, 0);
	assert_false(find_out(op[0])->orphan);
	correlate__tick(&c, t + 70 * S);
	correlate__tick(&c, t + 80 * S);
	assert_int_equal(c.table_used, 0);
}

/* The progress thread has nothing to do. */
static void proxy_sleeps(uint64_t n, uint64_t from, uint64_t to)
{
	uint64_t ctrl = start(id_of(SCOPE_PROXY_CTRL, n), 0, from, &proxy);

	state(ctrl, ncclProfilerProxyCtrlSleep, from);
	state(ctrl, ncclProfilerProxyCtrlWakeup, to);
	stop_event(ctrl, to);
}

/* CollNet: NCCL starts its ProxyOps, and tells nothing more of them. */
static void test_silent(void **arg)
{
	uint64_t coll, op[2], t;

	(void)arg;
	comm(1, 0);
	coll = operation(SCOPE_COLL, 1, S, S + 1);
	op[0] = proxy_op(2, coll, TGID, S + 2);
	op[1] = proxy_op(3, coll, TGID, S + 3);
	assert_int_equal(pending().n, 1);
	proxy_sleeps(4, S + 500 * MS, S + 501 * MS);
	for (t = S + 600 * MS; t < 9 * S; t += 500 * MS) {
		pass(t, t + 500 * MS);
		assert_int_equal(pending().n, 0);
	}
	assert_int_equal(told.n, 0);
	assert_int_equal(find_out(coll)->exec, EXEC_ENQUEUE);
	assert_int_equal(find_out(coll)->open_children, 0);
	assert_true(find_out(op[0])->unfinished && find_out(op[0])->silent);
	assert_true(find_out(op[1])->unfinished && find_out(op[1])->silent);
	assert_true(correlate__settled(&c, t, S));
	assert_int_equal(c.counts.evicted + c.counts.orphans, 0);
	pass(t, t + 70 * S);
	assert_int_equal(c.table_used, 0);
	t += 71 * S;
	operation(SCOPE_P2P, 4, t, t + 1);
	proxy_op(5, id_of(SCOPE_P2P, 4), TGID, t + 2);
	proxy_sleeps(9, t + 3, t + 4);
	correlate__tick(&c, t + 5);
	assert_int_equal(pending().n, 0);
	/* Its kernel tells when it ends. */
	t += 2 * S;
	coll = operation(SCOPE_COLL, 6, t, t + 1);
	proxy_op(7, coll, TGID, t + 2);
	op[0] = start(id_of(SCOPE_KERNEL_CH, 8), coll, t + 3, &proxy);
	proxy_sleeps(10, t + 4, t + 5);
	pass(t, t + 3 * S);
	assert_int_equal(pending().n, 1);
	assert_true(times_told(coll, 0, NULL) > 0);
	stop_event(op[0], t + 4 * S);
	pass(t + 4 * S, t + 6 * S);
	assert_int_equal(find_out(coll)->exec, EXEC_KERNEL);
	assert_int_equal(find_out(coll)->exec_stop_ns, t + 4 * S);
}

/* Behind one that hangs, or that began before the recording, its thread does not sleep: it waits. So it does if another thread sleeps. */
static void test_silent_not(void **arg)
{
	uint64_t coll, op, ctrl;

	(void)arg;
	comm(1, 0);
	coll = operation(SCOPE_COLL, 1, S, S + 1);
	proxy_sleeps(7, S + 1, S + 2);
	op = proxy_op(2, coll, TGID, S + 2);
	ctrl = start(id_of(SCOPE_PROXY_CTRL, 8), 0, 2 * S, &app);
	state(ctrl, ncclProfilerProxyCtrlSleep, 2 * S);
	pass(S, 20 * S);
	assert_int_equal(pending().n, 1);
	assert_true(times_told(coll, 0, NULL) > 0);
	assert_false(correlate__settled(&c, 20 * S, S));
	state(op, ncclProfilerProxyOpInProgress_v4, 20 * S);
	proxy_sleeps(9, 20 * S, 21 * S); /* which NCCL's does not then */
	pass(20 * S, 30 * S);
	assert_int_equal(pending().n, 1);
	stop_event(op, 30 * S);
	assert_int_equal(pending().n, 0);
	coll = operation(SCOPE_COLL, 3, 31 * S, 31 * S + 1);
	op = proxy_op(4, coll, TGID, 31 * S + 2);
	correlate__end(&c);
	assert_true(find_out(op)->unfinished && !find_out(op)->silent);
	assert_int_equal(find_out(coll)->open_children, 1);
	assert_int_equal(c.counts.orphans + c.counts.late, 0);
}

/* One whose operation has been written, and one that the end of the recording finds. */
static void test_silent_written(void **arg)
{
	uint64_t coll, op[2];

	(void)arg;
	comm(1, 0);
	coll = operation(SCOPE_COLL, 1, S, S + 1);
	op[0] = proxy_op(2, coll, TGID, S + 2);
	pass(S, 70 * S);
	assert_int_equal(find_out(coll)->open_children, 1);
	proxy_sleeps(3, 70 * S, 71 * S);
	op[1] = proxy_op(4, coll, TGID, 71 * S);
	correlate__tick(&c, 72 * S);
	assert_true(find_out(op[0])->silent);
	assert_int_equal(pending().n, 1);
	proxy_sleeps(5, 73 * S, 74 * S);
	correlate__end(&c);
	assert_true(find_out(op[1])->silent);
	assert_int_equal(c.counts.orphans, 0);
}

/* They do not pile up. */
static void test_silent_many(void **arg)
{
	uint64_t n, t = S;

	(void)arg;
	comm(1, 0);
	for (n = 0; n < 30000; n++, t += MS) {
		operation(SCOPE_COLL, 4 * n + 1, t, t + 1);
		proxy_op(4 * n + 2, id_of(SCOPE_COLL, 4 * n + 1), TGID, t + 2);
		proxy_sleeps(4 * n + 3, t + 3, t + 4);
		if (n % 100 == 0)
			correlate__tick(&c, t);
		assert_true(c.open.n <= 100);
	}
	assert_int_equal(c.counts.evicted, 0);
	assert_int_equal(HASH_COUNT(c.sleepers), 1);
}

/* What waited behind it for more than a minute, and hangs when its turn comes. */
static void test_pending_late(void **arg)
{
	uint64_t first, second, op, t;

	(void)arg;
	comm(1, 0);
	first = operation(SCOPE_COLL, 1, S, S + 1);
	op = working_op(3, first, TGID, S + 2);
	second = operation(SCOPE_COLL, 2, S + 10, S + 11);
	pass(S, 80 * S);
	assert_non_null(find_out(second));
	stop_event(op, 80 * S);
	op = working_op(4, second, TGID, 80 * S + 1);
	for (t = 80 * S; t < 300 * S; t += S) {
		correlate__tick(&c, t);
		assert_int_equal(pending().n, 1);
		assert_int_equal(pending().id, second);
	}
	correlate__finalize(&c, id_of(SCOPE_ID_WHAT_CTX, 1), t, &app);
	assert_int_equal(pending().n, 0);
	correlate__tick(&c, t + S);
	assert_null(correlate__find(&c, second));
	stop_event(op, t + S);
	correlate__end(&c);
	assert_int_equal(c.counts.orphans, 0);
}

/* A Send is in NCCL's buffers, what comes next has ended, and its peer does not receive. */
static void test_pending_sent(void **arg)
{
	uint64_t sent, op, t;

	(void)arg;
	comm(1, 0);
	sent = operation(SCOPE_P2P, 1, S, S + 1);
	op = working_op(2, sent, TGID, S + 2);
	stop_event(working_op(4, operation(SCOPE_P2P, 3, S + 10, S + 11), TGID, S + 12), 2 * S);
	for (t = 4 * S; t < 100 * S; t += S) {
		correlate__tick(&c, t);
		assert_int_equal(pending().n, 1);
		assert_int_equal(pending().id, sent);
	}
	stop_event(op, t);
	assert_int_equal(pending().n, 0);
}

/* NCCL does not tell the end of each child: what was called later has ended. */
static void test_pending_passed(void **arg)
{
	uint64_t coll, later, p2p[2], other;
	union corr_start elsewhere = {.s.ctx = id_of(SCOPE_ID_WHAT_CTX, 2)};

	(void)arg;
	comm(1, 0);
	comm(2, 0);
	coll = operation(SCOPE_COLL, 1, S, S + 1);
	working_op(2, coll, TGID, S + 2);
	other = id_of(SCOPE_COLL, 10);
	start_with(&elsewhere, sizeof(elsewhere), other, 0, S + 10, &app);
	stop_event(other, S + 11);
	working_op(11, other, TGID, S + 12);
	later = operation(SCOPE_COLL, 3, S + 20, S + 21);
	correlate__tick(&c, 65 * S); /* that it was given up tells nothing */
	assert_int_equal(pending().n, 2);
	later = operation(SCOPE_COLL, 4, 65 * S, 65 * S + 1);
	stop_event(working_op(5, later, TGID, 65 * S + 2), 66 * S);
	correlate__tick(&c, 68 * S);
	assert_non_null(find_out(later));
	assert_int_equal(pending().n, 1);
	assert_int_equal(pending().id, other);
	correlate__finalize(&c, id_of(SCOPE_ID_WHAT_CTX, 2), 68 * S, &app);

	/* Of what is called together, one may hang, and others may not. */
	p2p[0] = start(id_of(SCOPE_P2P, 6), 0, 70 * S, &app);
	p2p[1] = start(id_of(SCOPE_P2P, 7), 0, 70 * S + 1, &app);
	stop_event(p2p[0], 70 * S + 2);
	stop_event(p2p[1], 70 * S + 3);
	working_op(8, p2p[0], TGID, 70 * S + 4);
	stop_event(working_op(9, p2p[1], TGID, 70 * S + 5), 71 * S);
	correlate__tick(&c, 73 * S);
	assert_non_null(find_out(p2p[1]));
	correlate__tick(&c, 200 * S);
	assert_non_null(find_out(p2p[0]));
	assert_int_equal(pending().n, 1);
	assert_int_equal(pending().id, p2p[0]);
}

/* Its stop was lost: not for ever. */
static void test_pending_lost(void **arg)
{
	uint64_t coll, other, op;

	(void)arg;
	comm(1, 0);
	coll = start(id_of(SCOPE_COLL, 1), 0, S, &app);
	op = proxy_op(2, coll, TGID, S + 2);
	other = operation(SCOPE_COLL, 3, 2 * S, 2 * S + 1); /* it waits for the one before it */
	correlate__tick(&c, 4 * S);
	assert_non_null(find_out(other));
	c.lost += 2; /* and that of its child */
	correlate__tick(&c, 100 * S);
	assert_int_equal(pending().id, coll);
	assert_false(correlate__settled(&c, 100 * S, S));
	other = operation(SCOPE_COLL, 4, 101 * S, 101 * S + 1);
	stop_event(proxy_op(5, other, TGID, 101 * S + 2), 101 * S + 3);
	assert_int_equal(pending().n, 1);
	assert_int_equal(correlate__oldest(&c), S);
	correlate__tick(&c, 103 * S);
	assert_int_equal(correlate__oldest(&c), UINT64_MAX);
	assert_int_equal(pending().n, 0);
	assert_true(correlate__settled(&c, 103 * S, S));
	assert_false(correlate__find(&c, op)->stopped);

	/* Nothing was lost since. */
	coll = start(id_of(SCOPE_COLL, 6), 0, 110 * S, &app);
	operation(SCOPE_COLL, 7, 111 * S, 111 * S + 1);
	correlate__tick(&c, 114 * S);
	assert_int_equal(pending().id, coll);
	assert_false(correlate__settled(&c, 114 * S, S));
	/* Where no children are recorded, that it was called is what there is to know. */
	c.lost++;
	assert_int_equal(pending().n, 0);
	assert_true(correlate__settled(&c, 114 * S, S));
}

/* What is asked for goes back to the start of the one that took longest, though others have stopped before it. */
static void test_oldest(void **arg)
{
	uint64_t late = id_of(SCOPE_COLL, 1), child = id_of(SCOPE_PROXY_STEP, 2);

	(void)arg;
	comm(1, 0);
	assert_int_equal(correlate__oldest(&c), UINT64_MAX);
	start(late, 0, 50 * S, &app);
	start(child, id_of(SCOPE_PROXY_OP, 3), 51 * S, &proxy); /* whose start does not come */
	operation(SCOPE_COLL, 4, 53 * S, 53 * S + 1 * MS);
	stop_event(start(id_of(SCOPE_PROXY_STEP, 5), id_of(SCOPE_PROXY_OP, 3), 53 * S, &proxy),
		   53 * S + 2 * MS);
	stop_event(late, 53 * S + 50 * MS);
	stop_event(child, 53 * S + 50 * MS);
	correlate__tick(&c, 53 * S + 500 * MS);
	assert_int_equal(correlate__oldest(&c), 50 * S);
	assert_int_equal(correlate__oldest_net(&c), 50 * S);
	correlate__tick(&c, 54 * S + 49 * MS); /* those that stopped first are written */
	assert_int_equal(out.total, 2);
	assert_int_equal(correlate__oldest(&c), 50 * S);
	correlate__tick(&c, 54 * S + 50 * MS);
	assert_int_equal(out.total, 4);
	assert_int_equal(correlate__oldest(&c), UINT64_MAX);

	/* of those alone whose parents have not come */
	start(child + 10, id_of(SCOPE_PROXY_OP, 3), 60 * S, &proxy);
	stop_event(start(child + 11, id_of(SCOPE_PROXY_OP, 3), 62 * S, &proxy), 63 * S);
	stop_event(child + 10, 63 * S);
	assert_int_equal(correlate__oldest(&c), 60 * S);
}

/* Many that wait behind one that hangs are not looked at by each tick; what is few is, whatever else comes. */
static void test_queued_cost(void **arg)
{
	uint64_t first, op, last = 0, looks, from, t, i;

	(void)arg;
	comm(1, 0);
	first = operation(SCOPE_COLL, 1, S, S + 1);
	op = working_op(2, first, TGID, S + 2);
	for (i = 0; i < 100000; i++)
		last = operation(SCOPE_P2P, 10 + i, S + 10 + i, S + 11 + i);
	for (t = S; t < 3 * S; t += 10 * MS)
		correlate__tick(&c, t);
	looks = c.looks;
	from = cpu_ns();
	for (; t < 8 * S; t += 10 * MS)
		correlate__tick(&c, t);
	print_message("# a second with 100,000 operations behind one that hangs: %llu us\n",
		      (unsigned long long)(cpu_ns() - from) / 5000);
	assert_in_range(c.looks - looks, 15, 21);
	assert_int_equal(out.total, 0);
	from = cpu_ns();
	assert_int_equal(correlate__oldest(&c), S);
	print_message("# which of them is the oldest: %llu us\n",
		      (unsigned long long)(cpu_ns() - from) / 1000);
	/* It goes on, and nobody has worked on those behind it. */
	stop_event(op, t);
	correlate__tick(&c, t + S + 300 * MS);
	correlate__tick(&c, t + 2 * S + 600 * MS);
	assert_int_equal(out.total, 100002);
	assert_int_equal(out.ev[0].id, op);
	assert_int_equal(out.ev[1].id, first);
	assert_int_equal(out.ev[2].id, id_of(SCOPE_P2P, 10));
	assert_true(correlate__find(&c, last) && correlate__find(&c, last)->written);
	for (t += 3 * S, i = 0; i < 100000; i++) /* many, and not kept: they are written in time */
		operation(SCOPE_P2P, 200000 + i, t, t + 1);
	looks = c.looks;
	for (i = 0; i < 10; i++)
		correlate__tick(&c, t + i * MS);
	assert_int_equal(c.looks, looks + 10);
}

/* Of communicators, by uthash's own function, or that just count up. */
static uint64_t take_comms(bool chosen)
{
	uint64_t from, i, id = 1, took = 0;
	struct scope_comm info = {.api = 5};

	for (i = 0; i < CHOSEN_COMMS; i++) {
		id = chosen ? chosen_after(id) : id + 1;
		info.ctx = id;
		from = cpu_ns();
		correlate__comm(&c, &info, 1, &app);
		correlate__comm_name(&c, id, 1, "x", 0);
		took += cpu_ns() - from;
	}
	return took;
}

/* Of steps: the golden ratio has an inverse, by which groups of ids can be chosen that all lie in one place. */
static uint64_t take_steps(bool chosen)
{
	uint64_t golden = 0x9e3779b97f4a7c15ULL, inverse = golden, from, group, i, n;

	for (i = 0; i < 5; i++)
		inverse *= 2 - golden * inverse;
	assert_int_equal(golden * inverse, 1);
	from = cpu_ns();
	for (i = n = 0; n < CHOSEN_STEPS; i++) {
		group = inverse * i;
		if (!chosen)
			start(id_of(SCOPE_PROXY_STEP, n++), 0, S + i, &proxy);
		else if (!(group >> 61) && (group >> 40 & 31) == SCOPE_PROXY_STEP && ++n)
			start(group << 3, 0, S + i, &proxy);
	}
	return cpu_ns() - from;
}

/* Ids are the job's: whatever they are, others' records do not wait for that. */
static void test_chosen_ids(void **arg)
{
	uint64_t took[2];
	int k;

	(void)arg;
	for (k = 0; k < 2; k++) {
		took[k] = take_comms(k);
		teardown(NULL);
		setup(NULL);
	}
	print_message("# communicators: %llu us, with chosen ids: %llu us\n",
		      (unsigned long long)took[0] / 1000, (unsigned long long)took[1] / 1000);
	assert_in_range(took[1], 0, 20 * took[0]);
	for (k = 0; k < 2; k++)
		took[k] = take_steps(k);
	print_message("# steps: %llu us, with chosen ids: %llu us\n",
		      (unsigned long long)took[0] / 1000, (unsigned long long)took[1] / 1000);
	assert_in_range(took[1], 0, 20 * took[0]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_whole_operation),
		TEST(test_queued_behind_stuck),
		TEST(test_children_late),
		TEST(test_exec_sources),
		TEST(test_gpu_times),
		TEST(test_gpu_times_queued),
		TEST(test_gpu_times_shared),
		TEST(test_gpu_times_masked),
		TEST(test_gpu_times_captured),
		TEST(test_gpu_times_hostile),
		TEST(test_stuck_child),
		TEST(test_children_first),
		TEST(test_orphan),
		TEST(test_pxn),
		TEST(test_pxn_of_same_pid),
		TEST(test_pxn_of_two_copies),
		TEST(test_seq_common),
		TEST(test_repeats),
		TEST(test_late_and_double),
		TEST(test_loss_near),
		TEST(test_time_back),
		TEST(test_unfinished),
		TEST(test_captured_parent),
		TEST(test_call_of_open_group),
		TEST(test_many_calls_of_open_group),
		TEST(test_comm_by_event),
		TEST(test_eviction),
		TEST(test_eviction_of_stopped),
		TEST(test_memory),
		TEST(test_table),
		TEST(test_any_order),
		TEST(test_begun_before),
		TEST(test_begun_before_not_pxn),
		TEST(test_cut),
		TEST(test_settled_idle),
		TEST(test_colls_max),
		TEST(test_pending_stuck),
		TEST(test_silent),
		TEST(test_silent_not),
		TEST(test_silent_written),
		TEST(test_silent_many),
		TEST(test_pending_late),
		TEST(test_pending_sent),
		TEST(test_pending_passed),
		TEST(test_pending_lost),
		TEST(test_oldest),
		TEST(test_queued_cost),
		TEST(test_hung_chain),
		TEST(test_hung_end),
		TEST(test_hung_moves),
		TEST(test_hung_queue),
		TEST(test_hung_not),
		TEST(test_hung_bound),
		TEST(test_hung_circle),
		TEST(test_hung_late),
		TEST(test_hung_cost),
		TEST(test_childless_expire),
		TEST(test_captured_cost),
		TEST(test_captured_room),
		TEST(test_chosen_ids),
	};

	return cmocka_run_group_tests_name("correlate", tests, NULL, NULL);
}
