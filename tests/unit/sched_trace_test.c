// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kernel context from the ring into the trace (decode_sched.c, sched_join.c, trace_sched.c), by
 * little recordings of which every figure is known.
 */
#include <signal.h>
#include "pipeline.h" /* before: its functions have arguments that are called s */
#include "sched_job.h"
#include "live.h"
#include "trace_keys.h"

static int setup(void **state)
{
	(void)state;
	begin(SCHED_MODE_EVENTS);
	return 0;
}

static int setup_slices(void **state)
{
	(void)state;
	begin(SCHED_MODE_SLICES);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	release();
	return 0;
}

/* Of the lines of events and threads, the text of `sched` and of what follows `stop`. */
static char texts[64][2048];
static uint32_t ntexts;

static void keep_text(const struct json_node *rec, const char *text)
{
	const char *at_sched = strstr(text, ",\"sched\":"), *end_of;
	char id[32] = "";

	if (jn_is(key(rec, "recordType"), "thread") && key(rec, "stop"))
		at_sched = strstr(text, ",\"since\":");
	else if (!jn_is(key(rec, "recordType"), "event") || !at_sched)
		return;
	assert_true(ntexts < 64);
	if (key(rec, "eventAddr"))
		memcpy(id, key(rec, "eventAddr")->s, key(rec, "eventAddr")->len);
	end_of = at_sched ? text + strlen(text) : NULL;
	snprintf(texts[ntexts++], sizeof(texts[0]), "%s %.*s", id,
		 (int)(at_sched ? end_of - at_sched : 0), at_sched ? at_sched : "");
}

static const char *sched_text(uint32_t n)
{
	char id[32];
	uint32_t i;

	snprintf(id, sizeof(id), "0x%" PRIx64 " ", events[n].id);
	for (i = 0; i < ntexts; i++)
		if (!strncmp(texts[i], id, strlen(id)))
			return texts[i] + strlen(id);
	return "";
}

/* ---- One operation, by hand ------------------------------------------------------------------ */

/* Whether what is told of the rank now has that key. */
static bool live_has(const char *name)
{
	struct corr_comm *comm, *tmp_comm;
	struct proc *p, *tmp;
	bool has = false;
	json_t *o;

	HASH_ITER (hh, s->procs, p, tmp) {
		HASH_ITER (hh, p->corr.comms, comm, tmp_comm) {
			o = live__doc(p, comm);
			assert_non_null(json_object_get(o, "runqUs"));
			has |= !!json_object_get(o, name);
			json_decref(o);
		}
	}
	return has;
}

static void test_operation(void **state)
{
	struct k_task *app, *proxy, *x = k_task(&k, HOG, HOG, "burn \"1\"", false);
	const uint64_t t0 = 100 * MS;
	uint32_t group, api, coll, op, step;

	(void)state;
	at(t0 - 10 * US);
	app = job_thread(0, 0, "python3");
	proxy = job_thread(1, 1, "NCCL Progress");
	communicator(app);
	at(t0);
	group = start(app, SCOPE_GROUP_API, 0);
	api = start(app, SCOPE_COLL_API, group);
	coll = start(app, SCOPE_COLL, api);
	at(t0 + 5 * US);
	stop_event(coll);
	stop_event(api);
	stop_event(group);
	flush(app, SCOPE_FLUSH_TOP);
	at(t0 + 10 * US);
	k_blocks(&k, 0, FUTEX, NULL);
	op = start(proxy, SCOPE_PROXY_OP, coll);
	at(t0 + 12 * US);
	step = start(proxy, SCOPE_PROXY_STEP, op);
	k_blocks(&k, 1, POLL, x);
	at(t0 + 40 * US);
	k_wakeup(&k, proxy, 1);
	at(t0 + 47 * US);
	k_preempts(&k, 1, proxy);
	at(t0 + 49 * US);
	k_irq(&k, 1, t0 + 48 * US);
	at(t0 + 50 * US);
	stop_event(step);
	at(t0 + 60 * US);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(t0 + 2000 * MS);
	tick();
	assert_true(live_has("irqUs") && live_has("throttledUs"));
	s->features.irq = s->features.quota = false;
	assert_true(!live_has("irqUs") && !live_has("throttledUs"));
	s->features.irq = s->features.quota = true;
	ntexts = 0;
	read_trace(keep_text);
	assert_string_equal(
		sched_text(step),
		",\"sched\":{\"onCpu\":3.000,\"runq\":7.000,\"blocked\":28.000,\"irq\":1.000,"
		"\"throttled\":0.000,\"switches\":0,\"preemptions\":0,\"migrations\":0,"
		"\"cpus\":[1],\"behind\":[{\"comm\":\"burn \\\"1\\\"\",\"pid\":900,\"us\":7.000}],"
		"\"blockedIn\":[{\"why\":\"ppoll\",\"us\":28.000}]}}");
	assert_string_equal(
		sched_text(coll),
		",\"sched\":{\"span\":90.000,\"onCpu\":15.000,\"runq\":7.000,\"blocked\":68.000,"
		"\"irq\":1.000,\"throttled\":0.000,\"switches\":2,\"preemptions\":0,"
		"\"migrations\":0,\"cpus\":[0,1],"
		"\"behind\":[{\"comm\":\"burn \\\"1\\\"\",\"pid\":900,\"us\":7.000}],"
		"\"blockedIn\":[{\"why\":\"futex\",\"us\":40.000},{\"why\":\"ppoll\",\"us\":28.000}"
		"]"
		","
		"\"app\":{\"threads\":1,\"span\":50.000,\"onCpu\":10.000,\"runq\":0.000,"
		"\"blocked\":40.000,\"irq\":0.000,\"throttled\":0.000,\"switches\":1,"
		"\"preemptions\":0,\"migrations\":0,\"cpus\":[0],"
		"\"blockedIn\":[{\"why\":\"futex\",\"us\":40.000}]},"
		"\"proxy\":{\"threads\":1,\"span\":40.000,\"onCpu\":5.000,\"runq\":7.000,"
		"\"blocked\":28.000,\"irq\":1.000,\"throttled\":0.000,\"switches\":1,"
		"\"preemptions\":0,\"migrations\":0,\"cpus\":[1],"
		"\"behind\":[{\"comm\":\"burn \\\"1\\\"\",\"pid\":900,\"us\":7.000}],"
		"\"blockedIn\":[{\"why\":\"ppoll\",\"us\":28.000}]}}}");
	assert_int_equal(s->bad_records, 0);
}

/* What never stopped tells what its thread is in. */
static void test_unfinished(void **state)
{
	struct k_task *app, *proxy;
	uint32_t coll, op, ctrl;

	(void)state;
	app = job_thread(0, 0, "python3");
	proxy = job_thread(1, 1, "NCCL Progress");
	communicator(app);
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	flush(app, SCOPE_FLUSH_AGE);
	op = start(proxy, SCOPE_PROXY_OP, coll);
	ctrl = start(proxy, SCOPE_PROXY_CTRL, 0);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(101 * MS);
	k_blocks(&k, 1, -4, NULL);
	k_preempts(&k, 0, NULL);
	at(103 * MS);
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(op), "\"state\":\"blocked\",\"why\":\"stopped\"}"));
	assert_non_null(strstr(sched_text(op), "\"blocked\":2000.000"));
	assert_non_null(strstr(sched_text(ctrl), "\"onCpu\":1000.000"));
	assert_non_null(strstr(sched_text(coll), "\"state\":\"runq\"}"));
	assert_non_null(strstr(sched_text(coll), "\"runq\":2000.000"));
}

/* Before API 4 the application starts a ProxyOp and the progress thread stops it. */
static void test_started_for_another(void **state)
{
	struct k_task *app, *proxy;
	uint32_t coll, op, step;
	const char *text;

	(void)state;
	app = job_thread(0, 0, "python3");
	proxy = job_thread(1, 1, "NCCL Progress");
	communicator(app);
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	op = start(app, SCOPE_PROXY_OP, coll);
	at(101 * MS);
	stop_event(coll);
	stop_event(coll - 1);
	stop_event(coll - 2);
	flush(app, SCOPE_FLUSH_TOP);
	k_blocks(&k, 0, FUTEX, NULL);
	step = start(proxy, SCOPE_PROXY_STEP, op);
	at(104 * MS);
	stop_event(step);
	at(105 * MS);
	stop_by(proxy, op);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(2000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_text);
	text = sched_text(coll);
	assert_non_null(
		strstr(text, "\"app\":{\"threads\":1,\"span\":4000.000,\"onCpu\":1000.000"));
	assert_non_null(
		strstr(text, "\"proxy\":{\"threads\":1,\"span\":4000.000,\"onCpu\":4000.000"));
	assert_non_null(strstr(sched_text(op), "\"onCpu\":5000.000"));
}

/*
 * A job may say that a step of one thread belongs to the ProxyOp of another: figures add up all the
 * same.
 */
static void test_step_of_another(void **state)
{
	struct k_task *app, *proxy, *other;
	uint32_t coll, op, step;

	(void)state;
	app = job_thread(0, 0, "python3");
	at(50 * MS);
	other = job_thread(1, 1, "other");
	communicator(app);
	at(99 * MS);
	proxy = job_thread(2, 2, "NCCL Progress");
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	stop_event(coll);
	stop_event(coll - 1);
	stop_event(coll - 2);
	flush(app, SCOPE_FLUSH_TOP);
	op = start(proxy, SCOPE_PROXY_OP, coll);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(101 * MS);
	step = start(other, SCOPE_PROXY_STEP, op);
	at(102 * MS);
	stop_event(step);
	flush(other, SCOPE_FLUSH_AGE);
	at(103 * MS);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(2000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(coll), "\"proxy\":{\"threads\":1,\"span\":2000.000,"
						 "\"onCpu\":2000.000,\"runq\":0.000"));
}

/* An event that another thread stops: its own may have left its CPU meanwhile, and nobody may have told that yet. */
static void test_stopped_by_another(void **state)
{
	struct k_task *app, *other;
	uint32_t n;

	(void)state;
	k.gathers = true;
	app = job_thread(0, 0, "python3");
	other = job_thread(1, 1, "other");
	communicator(app);
	at(100 * MS);
	n = start(app, SCOPE_GROUP_API, 0);
	flush(app, SCOPE_FLUSH_AGE);
	at(101 * MS);
	k_blocks(&k, 0, FUTEX, NULL);
	at(104 * MS);
	k_wakeup(&k, app, 0);
	at(105 * MS);
	k_preempts(&k, 0, app);
	at(106 * MS);
	stop_by(other, n);
	flush(other, SCOPE_FLUSH_AGE);
	at(2000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(n), "\"onCpu\":2000.000,\"runq\":1000.000"));
	assert_non_null(strstr(sched_text(n), "\"blocked\":3000.000"));
}

/* ... or neither does: a callback of CUDA's, which did nothing for the operation but to enqueue it. */
static void test_started_by_a_third(void **state)
{
	struct k_task *app, *callback, *proxy;
	uint32_t coll, op, step;

	(void)state;
	app = job_thread(0, 0, "python3");
	proxy = job_thread(1, 1, "NCCL Progress");
	callback = job_thread(2, 2, "cuda callback");
	communicator(app);
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	at(101 * MS);
	stop_event(coll);
	stop_event(coll - 1);
	stop_event(coll - 2);
	flush(app, SCOPE_FLUSH_TOP);
	op = start(callback, SCOPE_PROXY_OP, coll);
	flush(callback, SCOPE_FLUSH_AGE);
	at(102 * MS);
	step = start(proxy, SCOPE_PROXY_STEP, op);
	at(104 * MS);
	stop_event(step);
	at(105 * MS);
	stop_by(proxy, op);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(2000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(coll),
			       "\"proxy\":{\"threads\":1,\"span\":3000.000,\"onCpu\":3000.000"));
}

/* Two ProxyOps at a time, that end in another order than their steps. */
static void test_two_at_a_time(void **state)
{
	struct k_task *app, *proxy;
	uint32_t coll, one, two, step;

	(void)state;
	app = job_thread(0, 0, "python3");
	proxy = job_thread(1, 1, "NCCL Progress");
	communicator(app);
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	stop_event(coll);
	stop_event(coll - 1);
	stop_event(coll - 2);
	flush(app, SCOPE_FLUSH_TOP);
	one = start(proxy, SCOPE_PROXY_OP, coll);
	at(101 * MS);
	two = start(proxy, SCOPE_PROXY_OP, coll);
	step = start(proxy, SCOPE_PROXY_STEP, one);
	at(102 * MS);
	stop_event(step);
	step = start(proxy, SCOPE_PROXY_STEP, two);
	at(104 * MS);
	stop_event(step);
	stop_event(two);
	at(105 * MS);
	stop_event(one);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(2000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(coll),
			       "\"proxy\":{\"threads\":1,\"span\":4000.000,\"onCpu\":4000.000"));
}

/* Another thread's ProxyOp that is open does not make this one's longer. */
static void test_open_child_of_another(void **state)
{
	struct k_task *app, *one, *two;
	uint32_t coll, op, step;

	(void)state;
	app = job_thread(0, 0, "python3");
	one = job_thread(1, 1, "NCCL Progress");
	two = job_thread(2, 2, "NCCL Progress");
	communicator(app);
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	stop_event(coll);
	stop_event(coll - 1);
	stop_event(coll - 2);
	flush(app, SCOPE_FLUSH_TOP);
	op = start(one, SCOPE_PROXY_OP, coll);
	at(101 * MS);
	stop_event(op);
	flush(one, SCOPE_FLUSH_AGE);
	op = start(two, SCOPE_PROXY_OP, coll); /* never stops; its step tells how far it came */
	step = start(two, SCOPE_PROXY_STEP, op);
	at(104 * MS);
	stop_event(step);
	flush(two, SCOPE_FLUSH_AGE);
	at(110 * MS);
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(coll), "\"proxy\":{\"threads\":2,\"span\":4000.000"));
}

/* Calls a collective, and waits for something else then; what is called is in @group and @first. */
static struct k_task *calls_and_waits(struct k_task *x, uint32_t *group, uint32_t *first)
{
	struct k_task *app = job_thread(0, 0, "python3");
	uint32_t api;

	communicator(app);
	at(100 * MS);
	*group = start(app, SCOPE_GROUP_API, 0);
	api = start(app, SCOPE_COLL_API, *group);
	*first = start(app, SCOPE_COLL, api);
	at(110 * MS);
	stop_event(*first);
	stop_event(api);
	stop_event(*group);
	flush(app, SCOPE_FLUSH_TOP);
	at(130 * MS);
	k_blocks(&k, 0, POLL, x);
	return app;
}

/*
 * What the application's thread did between two calls, also where most of that time's slices are forgotten; nothing
 * is told of before the first call, and other events of the thread do not count.
 */
static void test_before(void **state)
{
	struct k_task *app, *x = k_task(&k, HOG, HOG, "burn", false);
	uint32_t first, second, group, api;
	const char *text;

	(void)state;
	app = calls_and_waits(x, &group, &first);
	at(5130 * MS);
	tick();
	k_wakeup(&k, app, 0);
	at(5170 * MS);
	k_preempts(&k, 0, app);
	group = start(app, SCOPE_GROUP_API, 0);
	at(5180 * MS);
	api = start(app, SCOPE_COLL_API, group);
	second = start(app, SCOPE_COLL, api);
	at(5181 * MS);
	stop_event(second);
	stop_event(api);
	stop_event(group);
	flush(app, SCOPE_FLUSH_TOP);
	at(9000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(first), "\"app\":"));
	assert_null(strstr(sched_text(first), "\"before\":"));
	assert_null(strstr(sched_text(group), "\"before\":"));
	text = strstr(sched_text(second), "\"before\":");
	assert_non_null(text);
	assert_string_equal(
		text,
		"\"before\":{\"threads\":1,\"span\":5080000.000,\"onCpu\":40000.000,"
		"\"runq\":40000.000,\"blocked\":5000000.000,\"irq\":0.000,\"throttled\":0.000,"
		"\"switches\":1,\"preemptions\":0,\"migrations\":0,\"cpus\":[0],"
		"\"behind\":[{\"comm\":\"burn\",\"pid\":900,\"us\":40000.000}],"
		"\"blockedIn\":[{\"why\":\"ppoll\",\"us\":5000000.000}]}}}");
}

/* Of an operation that takes long it is told as well: that is written more than a second after what was before it. */
static void test_before_long(void **state)
{
	struct k_task *app, *x = k_task(&k, HOG, HOG, "burn", false);
	uint32_t first, second, group, api;

	(void)state;
	app = calls_and_waits(x, &group, &first);
	at(600 * MS);
	k_wakeup(&k, app, 0);
	at(620 * MS);
	k_preempts(&k, 0, app);
	at(700 * MS);
	group = start(app, SCOPE_GROUP_API, 0);
	api = start(app, SCOPE_COLL_API, group);
	second = start(app, SCOPE_COLL, api);
	flush(app, SCOPE_FLUSH_AGE);
	at(1650 * MS);
	tick();
	at(1700 * MS);
	stop_event(second);
	stop_event(api);
	stop_event(group);
	flush(app, SCOPE_FLUSH_TOP);
	at(9000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(
		strstr(sched_text(second), "\"before\":{\"threads\":1,\"span\":600000.000,"));
	assert_non_null(strstr(sched_text(second),
			       "\"blockedIn\":[{\"why\":\"ppoll\",\"us\":470000.000}]}}"));
}

/*
 * A buffer is read from outside while its thread waits, and where it ran in between was lost: what
 * it did then it did not do asleep.
 */
static void test_outside_after_loss(void **state)
{
	struct k_task *app;
	uint32_t group;

	(void)state;
	app = job_thread(0, 0, "python3");
	communicator(app);
	at(100 * MS);
	group = start(app, SCOPE_GROUP_API, 0);
	at(101 * MS);
	k_blocks(&k, 0, FUTEX, NULL);
	at(110 * MS);
	k_wakeup(&k, app, 0);
	drop = 2;
	k_preempts(&k, 0, app);
	at(150 * MS);
	stop_event(group);
	at(151 * MS);
	k_preempts(&k, 0, NULL);
	at(400 * MS);
	flush(app, SCOPE_FLUSH_OUTSIDE);
	ntexts = 0;
	read_trace(keep_text);
	assert_null(strstr(sched_text(group), "\"blocked\":49000.000"));
}

/* Woken, but not on a CPU for so long that its operation is written meanwhile: that is no sleep. */
static void test_starved(void **state)
{
	struct k_task *app, *proxy, *x = k_task(&k, HOG, HOG, "burn", false);
	const char *text;
	uint32_t coll, op;

	(void)state;
	app = job_thread(0, 0, "python3");
	proxy = job_thread(1, 1, "NCCL Progress");
	communicator(app);
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	stop_event(coll);
	stop_event(coll - 1);
	stop_event(coll - 2);
	flush(app, SCOPE_FLUSH_TOP);
	op = start(proxy, SCOPE_PROXY_OP, coll);
	at(101 * MS);
	k_blocks(&k, 0, FUTEX, x);
	at(110 * MS);
	k_wakeup(&k, app, 0);
	at(200 * MS);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(1500 * MS);
	tick();
	at(1600 * MS);
	k_preempts(&k, 0, app);
	ntexts = 0;
	read_trace(keep_text);
	text = strstr(sched_text(coll), "\"app\":");
	assert_non_null(text);
	assert_non_null(strstr(text, "\"runq\":90000.000,\"blocked\":9000.000"));
}

/*
 * It sleeps at once after its last record, whose time, by the clock that the plugin reads, is a
 * little later than the kernel's. Read from outside, that does not make it run all the time.
 */
static void test_outside_and_clock(void **state)
{
	struct k_task *app;
	uint32_t group, i;

	(void)state;
	app = job_thread(0, 0, "python3");
	communicator(app);
	at(100 * MS);
	group = start(app, SCOPE_GROUP_API, 0);
	at(101 * MS);
	k_blocks(&k, 0, FUTEX, NULL);
	at(101 * MS + 3 * US);
	stop_event(group);
	at(500 * MS);
	flush(app, SCOPE_FLUSH_OUTSIDE);
	at(900 * MS);
	k_wakeup(&k, app, 0);
	k_preempts(&k, 0, app);
	at(910 * MS);
	ntexts = 0;
	read_trace(keep_text);
	for (i = 0; i < ntexts; i++)
		if (strstr(texts[i], ",\"since\":"))
			assert_non_null(strstr(texts[i], "\"onCpu\":110"));
}

/* An operation's start comes after two ProxyOps of one thread, of which one is open still. */
static void test_late_operation(void **state)
{
	struct k_task *app, *proxy;
	uint32_t coll, op, step;

	(void)state;
	app = job_thread(0, 0, "python3");
	proxy = job_thread(1, 1, "NCCL Progress");
	communicator(app);
	at(100 * MS);
	coll = start(app, SCOPE_COLL, start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	stop_event(coll);
	stop_event(coll - 1);
	stop_event(coll - 2);
	op = start(proxy, SCOPE_PROXY_OP, coll);
	at(101 * MS);
	stop_event(op);
	op = start(proxy, SCOPE_PROXY_OP, coll);
	step = start(proxy, SCOPE_PROXY_STEP, op);
	at(104 * MS);
	stop_event(step);
	flush(proxy, SCOPE_FLUSH_AGE);
	flush(app, SCOPE_FLUSH_AGE);
	at(110 * MS);
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(coll),
			       "\"proxy\":{\"threads\":1,\"span\":4000.000,\"onCpu\":4000.000"));
}

/* ---- How long it is kept ---------------------------------------------------------------------- */

/* What a thread did is known from then on, by what is kept of it; and who ran on a CPU. */
static uint64_t known_since(const struct k_task *t)
{
	const struct sched_slices *of = &sched__find(&s->sched, t->tid)->slices;

	return of->at[of->first & (of->size - 1)].start_ns;
}

static uint64_t cpu_known_since(uint32_t cpu)
{
	const struct sched_cpu *of = &s->sched.cpus[cpu];

	return of->at[of->first & (of->size - 1)].end_ns;
}

/* On and off CPU 0 every 10 ms, and the recorder comes by as often as it does. */
static void goes_on_until(struct k_task *t, uint64_t until_ns)
{
	uint32_t i;

	for (i = 0; k.now_ns < until_ns; i++) {
		at(k.now_ns + 10 * MS);
		k_preempts(&k, 0, NULL);
		at(k.now_ns + 10 * MS);
		k_preempts(&k, 0, t);
		if (i % 10 == 9)
			tick();
	}
}

/* A process with a communicator and a progress thread on CPU 1. */
static void begin_at_100ms(struct k_task **app, struct k_task **proxy)
{
	*app = job_thread(0, 0, "python3");
	*proxy = job_thread(1, 1, "NCCL Progress");
	communicator(*app);
	at(100 * MS);
}

/* An idle progress thread has a ProxyCtrl open for as long as it sleeps: nothing of other threads, and of CPUs, is kept for it. */
static void test_idle_keeps_its_own(void **state)
{
	struct k_task *app, *proxy;
	uint32_t ctrl;

	(void)state;
	begin_at_100ms(&app, &proxy);
	ctrl = start(proxy, SCOPE_PROXY_CTRL, 0);
	flush(proxy, SCOPE_FLUSH_AGE);
	at(101 * MS);
	k_blocks(&k, 1, FUTEX, NULL);
	goes_on_until(app, 10000 * MS);
	assert_in_range(known_since(app), k.now_ns - 1500 * MS, k.now_ns - 900 * MS);
	assert_in_range(cpu_known_since(0), k.now_ns - 1500 * MS, k.now_ns - 900 * MS);
	assert_true(known_since(proxy) < 100 * MS);
	k_wakeup(&k, proxy, 2);
	k_preempts(&k, 2, proxy);
	goes_on_until(app, 12000 * MS);
	stop_event(ctrl);
	flush(proxy, SCOPE_FLUSH_AGE);
	goes_on_until(app, 14000 * MS);
	assert_true(known_since(proxy) > 10000 * MS);
	ntexts = 0;
	read_trace(keep_text);
	assert_non_null(strstr(sched_text(ctrl), "{\"onCpu\":2001000.000,\"runq\":0.000,"
						 "\"blocked\":9900000.000,"));
	assert_non_null(strstr(sched_text(ctrl), "\"cpus\":[1,2],"));
	assert_non_null(
		strstr(sched_text(ctrl), "\"blockedIn\":[{\"why\":\"futex\",\"us\":9900000.000}"));
}

/* ... also where the stop of one before was lost. */
static void test_idle_again(void **state)
{
	struct k_task *app, *proxy;
	uint32_t ctrl;

	(void)state;
	begin_at_100ms(&app, &proxy);
	start(proxy, SCOPE_PROXY_CTRL, 0);
	ctrl = start(proxy, SCOPE_PROXY_CTRL, 0);
	at(101 * MS);
	stop_event(ctrl);
	flush(proxy, SCOPE_FLUSH_AGE);
	k_blocks(&k, 1, FUTEX, NULL);
	at(102 * MS);
	k_wakeup(&k, proxy, 1);
	k_preempts(&k, 1, proxy);
	goes_on_until(app, 5000 * MS);
	assert_int_equal(known_since(proxy), 102 * MS);
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* A thread without events that is over before its first slice was written has its sums like any. */
static void test_short_life(void **state)
{
	struct k_task *app, *t;
	uint32_t i;

	(void)state;
	at(100 * MS);
	app = job_thread(0, 0, "python3");
	communicator(app);
	at(110 * MS);
	t = job_thread(1, 1, "worker");
	at(115 * MS);
	k_exit(&k, t->cpu, NULL);
	ntexts = 0;
	read_trace(keep_text);
	for (i = 0; i < ntexts; i++)
		assert_non_null(strstr(texts[i], ",\"since\":"));
	assert_int_equal(ntexts, 2);
	assert_non_null(strstr(texts[0], ",\"since\":110000.000,\"onCpu\":5000.000"));
}

/* Its end found no room in the ring: what it did since it was last seen is not known, however long the process goes on. */
static void test_end_lost(void **state)
{
	struct k_task *app, *t;
	struct input_still gone = {.gone = 1};
	uint32_t i;

	(void)state;
	at(100 * MS);
	app = job_thread(0, 0, "python3");
	communicator(app);
	at(110 * MS);
	t = job_thread(1, 1, "worker");
	gone.tid = t->tid;
	at(115 * MS);
	flush(t, SCOPE_FLUSH_AGE);
	at(120 * MS);
	k.cpus[1].curr = NULL;
	t->ended = true;
	at(5000 * MS);
	gone.now_ns = k.now_ns;
	s->begun = true;
	assert_int_equal(pipeline__apply(s, INPUT_STILL, &gone, sizeof(gone)), 0);
	assert_null(sched__find(&s->sched, t->tid));
	assert_int_equal(pipeline__apply(s, INPUT_STILL, &gone, sizeof(gone)), 0);
	at(10000 * MS);
	ntexts = 0;
	read_trace(keep_text);
	assert_int_equal(ntexts, 2);
	for (i = 0; i < ntexts && !strstr(texts[i], ",\"since\":110000.000,"); i++)
		;
	assert_true(i < ntexts);
	assert_non_null(strstr(texts[i], ",\"onCpu\":5000.000,\"runq\":0.000,\"blocked\":0.000,"
					 "\"unknown\":9885000.000,"));
}

/* Interrupts in a run that turns out to be unknown are no more of it than the rest. */
static void test_irq_in_gap(void **state)
{
	struct k_task *app;

	(void)state;
	at(100 * MS);
	app = job_thread(0, 0, "python3");
	start(app, SCOPE_GROUP_API, 0);
	stop_event(1);
	communicator(app);
	at(110 * MS);
	k_blocks(&k, 0, FUTEX, NULL);
	at(111 * MS);
	k_wakeup(&k, app, 0);
	k_preempts(&k, 0, app);
	at(200 * MS);
	k_irq(&k, 0, 120 * MS);
	drop = 1;
	k_blocks(&k, 0, FUTEX, NULL);
	at(300 * MS);
	k_wakeup(&k, app, 0);
	k_preempts(&k, 0, app);
	at(301 * MS);
	ntexts = 0;
	read_trace(keep_text);
	assert_int_equal(s->summary.lost[LOSS_CONTEXT], 1);
}

/* A process that is over leaves nothing behind, also where the ends of its threads were lost. */
static void test_nothing_left(void **state)
{
	struct k_task *app, *t;

	(void)state;
	at(100 * MS);
	app = job_thread(0, 0, "python3");
	t = job_thread(1, 1, "worker");
	communicator(app);
	flush(t, SCOPE_FLUSH_AGE);
	at(110 * MS);
	proc__end(job(), "signal 9", false, 0);
	assert_null(s->procs);
	at(5000 * MS);
	tick();
	assert_null(s->sched.threads);
	assert_int_equal(s->sched.nslices, 0);
}

/* A thread's buffer that another with its number hands in is not that thread's. */
static void test_chunk_of_another(void **state)
{
	struct k_task *old = job_thread(0, 0, "old"), *app;
	uint32_t n;

	(void)state;
	at(100 * MS);
	k.cpus[0].curr = NULL; /* it ends, and the ring has no room for that, nor for the next */
	app = k_task(&k, old->tid, JOB + 9, "python3", true);
	app->state = SCOPE_TASK_RUN;
	app->start_ns = 90 * MS;
	drop = 1;
	k_begin(&k, app, SCOPE_TASK_RUN, false);
	at(110 * MS);
	communicator(app);
	n = start(app, SCOPE_GROUP_API, 0);
	at(120 * MS);
	stop_event(n);
	flush(app, SCOPE_FLUSH_TOP);
	ntexts = 0;
	read_trace(keep_text);
	assert_string_equal(sched_text(n), "");
	for (n = 0; n < ntexts; n++)
		assert_null(strstr(texts[n], ",\"since\":"));
}

static char slice_text[512];

static void keep_slice_too(const struct json_node *rec, const char *text)
{
	keep_text(rec, text);
	if (jn_is(key(rec, "recordType"), "slice") && key(rec, "wokenBy"))
		snprintf(slice_text, sizeof(slice_text), "%s", strstr(text, ",\"why\":"));
}

/* Who ended a long sleep, and in which file that was: of the operation that it was in, before the next, and of the slice. */
static void test_woken(void **state)
{
	struct k_task *app, *loader = k_task(&k, HOG, HOG, "pt_data_worker", false);
	const uint64_t t0 = 100 * MS;
	uint32_t group, api, first, coll;

	(void)state;
	at(t0 - 10 * US);
	app = job_thread(0, 0, "python3");
	communicator(app);
	at(t0);
	group = start(app, SCOPE_GROUP_API, 0);
	api = start(app, SCOPE_COLL_API, group);
	first = start(app, SCOPE_COLL, api);
	at(t0 + 10 * US);
	k_blocks(&k, 0, FUTEX, NULL);
	at(t0 + 20 * US);
	k_waking(&k, app, app, 0);
	k_wakeup(&k, app, 0);
	k_preempts(&k, 0, app);
	stop_event(first);
	at(t0 + 30 * US);
	k_blocks(&k, 0, SYS_read, NULL);
	at(t0 + 2030 * US);
	k_waking(&k, app, loader, 7);
	k_wakeup(&k, app, 0);
	k_preempts(&k, 0, app);
	at(t0 + 2040 * US);
	coll = start(app, SCOPE_COLL, api);
	stop_event(coll);
	stop_event(api);
	stop_event(group);
	flush(app, SCOPE_FLUSH_TOP);
	at(t0 + 2000 * MS);
	tick();
	ntexts = 0;
	read_trace(keep_slice_too);
	assert_non_null(strstr(sched_text(first), "\"app\":{\"threads\":1,\"span\":20.000,"));
	assert_non_null(strstr(sched_text(first),
			       "\"blockedIn\":[{\"why\":\"futex\",\"us\":10.000}],\"wokenBy\":["
			       "{\"comm\":\"python3\",\"pid\":2000000000,\"us\":10.000}]"));
	assert_null(strstr(sched_text(first), "\"files\":"));
	assert_non_null(
		strstr(sched_text(coll),
		       "\"blockedIn\":[{\"why\":\"read\",\"us\":2000.000},{\"why\":\"futex\","
		       "\"us\":10.000}],"
		       "\"wokenBy\":[{\"comm\":\"pt_data_worker\",\"pid\":900,\"us\":2000.000},"
		       "{\"comm\":\"python3\",\"pid\":2000000000,\"us\":10.000}],"
		       "\"files\":[{\"file\":\"data/7\",\"fs\":\"ext4\",\"us\":2000.000}]}}"));
	assert_string_equal(slice_text,
			    ",\"why\":\"read\",\"wokenBy\":{\"comm\":\"pt_data_worker\","
			    "\"pid\":900},\"file\":\"data/7\",\"fs\":\"ext4\"}");
}

static char last_text[512];

static void keep_last_state(const struct json_node *rec, const char *text)
{
	if (jn_is(key(rec, "recordType"), "thread") && key(rec, "stateSince"))
		snprintf(last_text, sizeof(last_text), "%s", strstr(text, ",\"state\":"));
	if (jn_is(key(rec, "recordType"), "slice") && key(rec, "stack"))
		snprintf(slice_text, sizeof(slice_text), "%s", strstr(text, ",\"why\":"));
}

/* Where in the kernel a thread is that does not wake up: of the thread, and of its slice. */
static void test_stack(void **state)
{
	static const char *const names[] = {"anon_pipe_read", "vfs_read", ""};
	struct scope_ev_woken asleep = {.h = {SCOPE_ABI, SCOPE_EV_WOKEN, sizeof(asleep), 1200 * MS},
					.call = SYS_read,
					.fs = "ext4",
					.dir = "data",
					.name = "7",
					.asleep = 1};
	struct scope_ev_stack e = {.h = {SCOPE_ABI, SCOPE_EV_STACK, sizeof(e), 1200 * MS}};
	struct k_task *app;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(symbols__add(&s->symbols, 0x1000 + i, names[i]), 0);
		e.at[e.n++] = 0x1000 + i;
	}
	e.at[e.n++] = 0x9000;
	at(100 * MS);
	app = job_thread(0, 0, "python3");
	communicator(app);
	at(110 * MS);
	k_blocks(&k, 0, SYS_read, NULL);
	asleep.tid = e.tid = app->tid;
	asleep.since_ns = e.since_ns = app->bpf.asleep_ns;
	at(1200 * MS);
	decode__event(s, &asleep, sizeof(asleep));
	decode__event(s, &e, sizeof(e));
	at(3000 * MS);
	tick();
	read_trace(keep_last_state);
	assert_string_equal(last_text,
			    ",\"state\":\"blocked\",\"why\":\"read\",\"stateSince\":110000.000,"
			    "\"file\":\"data/7\",\"fs\":\"ext4\","
			    "\"stack\":[\"anon_pipe_read\",\"vfs_read\",\"?\",\"?\"]}");
	assert_non_null(strstr(slice_text, ",\"stack\":[\"anon_pipe_read\","));
}

static struct k_task *asleep_since_110_ms(void)
{
	struct k_task *app;

	at(100 * MS);
	app = job_thread(0, 0, "python3");
	communicator(app);
	at(110 * MS);
	k_blocks(&k, 0, SYS_read, NULL);
	return app;
}

/* It wakes the thread. */
static void is_sent(struct k_task *app, uint64_t at_ms, int32_t sig, bool handled)
{
	const struct scope_ev_signal e = {
		.h = {SCOPE_ABI, SCOPE_EV_SIGNAL, sizeof(e), at_ms * MS},
		.start_ns = 10,
		.tgid = JOB,
		.sig = sig,
		.handled = handled,
	};

	at(at_ms * MS);
	k_wakeup(&k, app, 0); /* the kernel tells of the signal right after that */
	decode__event(s, &e, sizeof(e));
	k_preempts(&k, 0, app);
}

/* @status: as wait(2) has it */
static void ends(uint64_t at_ms, int32_t status)
{
	at(at_ms * MS);
	k.exit_code = status;
	k_exit(&k, 0, NULL);
	*last_text = 0;
	read_trace(keep_last_state);
}

/* What a thread was in when the signal came that ended its process, if it had been for long. */
static void test_killed_asleep(void **state)
{
	(void)state;
	is_sent(asleep_since_110_ms(), 3000, SIGKILL, false);
	ends(3002, SIGKILL);
	assert_string_equal(last_text,
			    ",\"state\":\"blocked\",\"why\":\"read\",\"stateSince\":110000.000}");
}

/* Its memory was written to disk first; it is told then that this has gone on for too long. */
static void test_killed_with_a_core(void **state)
{
	struct k_task *app = asleep_since_110_ms();

	(void)state;
	is_sent(app, 3000, SIGABRT, false);
	k_blocks(&k, 0, SYS_read, NULL);
	is_sent(app, 6000, SIGKILL, false);
	ends(6002, SIGABRT | 0x80);
	assert_string_equal(last_text,
			    ",\"state\":\"blocked\",\"why\":\"read\",\"stateSince\":110000.000}");
}

static void test_killed_after_a_nap(void **state)
{
	(void)state;
	is_sent(asleep_since_110_ms(), 1000, SIGKILL, false);
	ends(1002, SIGKILL);
	assert_string_equal(last_text, "");
}

/* A signal without a handler need not end a process: it may be blocked, and be waited for. */
static void test_killed_later(void **state)
{
	struct k_task *app = asleep_since_110_ms();

	(void)state;
	is_sent(app, 3000, SIGTERM, false);
	at(3100 * MS);
	k_blocks(&k, 0, SYS_read, NULL);
	is_sent(app, 8000, SIGKILL, false);
	ends(8002, SIGKILL);
	assert_string_equal(last_text,
			    ",\"state\":\"blocked\",\"why\":\"read\",\"stateSince\":3100000.000}");
}

static void test_lives_on(void **state)
{
	(void)state;
	is_sent(asleep_since_110_ms(), 3000, SIGTERM, false);
	ends(13000, 0);
	assert_string_equal(last_text, "");
}

static void test_exits_upon_it(void **state)
{
	(void)state;
	is_sent(asleep_since_110_ms(), 3000, SIGTERM, false);
	ends(3002, 143 << 8);
	assert_string_equal(last_text, "");
}

static void test_not_killed(void **state)
{
	(void)state;
	is_sent(asleep_since_110_ms(), 3000, SIGTERM, true);
	ends(3002, 0);
	assert_string_equal(last_text, "");
}

static void test_stopped_asleep(void **state)
{
	(void)state;
	is_sent(asleep_since_110_ms(), 3000, SIGSTOP, false);
	ends(3002, 0);
	assert_string_equal(last_text, "");
}

/* A thread or a slice with the longest names there are. */
static void test_longest_stack(void **state)
{
	struct sched_stack *stack =
		calloc(1, sizeof(*stack) + SCOPE_STACK_LEN * sizeof(stack->at[0]));
	const struct sched_sleep sleep = {.stack = stack};
	char name[SCOPE_SYMBOL_LEN] = "", *line = malloc(STACK_MAX);
	struct json j = {line, line + STACK_MAX};

	(void)state;
	memset(name, 1, sizeof(name) - 1);
	stack->n = SCOPE_STACK_LEN;
	put_stack(&j, &s->symbols, &sleep); /* none has a name */
	assert_ptr_equal(j.at, line);
	symbols__add(&s->symbols, 0, name);
	put_stack(&j, &s->symbols, &sleep);
	assert_true((size_t)(j.at - line) > STACK_MAX / 2);
	assert_true((size_t)(j.at - line) <= STACK_MAX);
	free(line);
	free(stack);
}

/* All that may be in it, as long as it gets. */
static struct sched_span longest(void)
{
	struct sched_span span = {.threads = UINT64_MAX,
				  .ncpus = SCHED_CPUS,
				  .nbehind = SCHED_TOP,
				  .nblocked_in = SCHED_TOP,
				  .nwoken_by = SCHED_TOP,
				  .nfiles = SCHED_TOP,
				  .span_ns = UINT64_MAX,
				  .unknown_ns = UINT64_MAX};
	uint32_t i;

	memset(&span.sums, 0xff, sizeof(span.sums));
	memset(span.cpus, 0xff, sizeof(span.cpus));
	for (i = 0; i < SCHED_TOP; i++) {
		span.behind[i].ns = span.woken_by[i].ns = span.blocked_in[i].ns = span.files[i].ns =
			UINT64_MAX;
		span.behind[i].tgid = span.woken_by[i].tgid = UINT32_MAX;
		memset(span.behind[i].comm, 1, SCOPE_COMM_LEN);
		memset(span.woken_by[i].comm, 1, SCOPE_COMM_LEN);
		memset(span.files[i].fs, 1, sizeof(span.files[i].fs) - 1);
		memset(span.files[i].name, 1, SCHED_FILE_LEN - 1);
		span.blocked_in[i].why = SCOPE_WHY_PAGEFAULT;
	}
	return span;
}

/* What is written has no bound of its own: its room is what this may take, and half of the rest for the other keys of an event. */
static void test_longest(void **state)
{
	struct sched_join *join = calloc(1, sizeof(*join));
	const struct sched_slice in = {.state = SCHED_BLOCKED, .why = SCOPE_WHY_PAGEFAULT};
	const struct corr_event ev = {.what = SCOPE_COLL};
	struct proc *p = calloc(1, sizeof(*p));
	char *line = malloc(EVENT_MAX);
	struct json j = {line, line + EVENT_MAX};

	(void)state;
	p->session = s;
	join->all = join->app = join->proxy = join->before = longest();
	join->unfinished_in = &in;
	put_sched(&j, p, &ev, join);
	assert_true((size_t)(j.at - line) < EVENT_MAX - RDMA_EVENT_MAX - 4096);
	free(line);
	free(p);
	free(join);
}

/* A record of @whole bytes, as short as it can be and longer; how many of these are too short. @bad: how many there were before. */
static uint64_t cut_short(struct scope_ev_short *h, uint32_t whole, uint64_t bad)
{
	uint64_t before = bad;
	void *exact;

	for (h->size = sizeof(*h); h->size <= whole; h->size++) {
		exact = malloc(h->size); /* ASan sees one byte too many */
		memcpy(exact, h, h->size);
		decode__event(s, exact, h->size);
		free(exact);
		bad += h->size < whole;
		assert_int_equal(s->bad_records, bad);
	}
	return bad - before;
}

static void test_bad_records(void **state)
{
	struct {
		struct scope_ev_short h;
		char rest[128];
	} rec = {.h = {SCOPE_ABI, 0, 0, 5 * MS}};
	static const size_t sizes[] = {[SCOPE_EV_THREAD] = sizeof(struct scope_ev_thread),
				       [SCOPE_EV_SWITCH] = sizeof(struct scope_ev_switch),
				       [SCOPE_EV_MIGRATE] = sizeof(struct scope_ev_migrate),
				       [SCOPE_EV_IRQ] = offsetof(struct scope_ev_irq, at[1])};
	struct scope_ev_switches several = {.h = {SCOPE_ABI, SCOPE_EV_SWITCHES, 0, 5 * MS}};
	struct scope_ev_woken woken = {.h = {SCOPE_ABI, SCOPE_EV_WOKEN, 0, 5 * MS}};
	struct scope_ev_stack stack = {.h = {SCOPE_ABI, SCOPE_EV_STACK, 0, 5 * MS}};
	uint64_t bad = 0;
	uint32_t size;
	void *exact;

	(void)state;
	for (rec.h.kind = SCOPE_EV_THREAD; rec.h.kind <= SCOPE_EV_IRQ; rec.h.kind++) {
		bad += cut_short(&rec.h, (uint32_t)sizes[rec.h.kind], bad);
		decode__event(s, &rec, sizeof(rec.h) - 1);
		rec.h.size = sizeof(rec) + 1;
		decode__event(s, &rec, sizeof(rec));
		bad += 2;
		assert_int_equal(s->bad_records, bad);
	}
	bad += cut_short(&woken.h, sizeof(woken), bad);
	bad += cut_short(&stack.h, sizeof(stack), bad);
	for (size = sizeof(several.h); size <= sizeof(several); size++) {
		several.h.size = size;
		exact = malloc(size);
		memcpy(exact, &several, size);
		decode__event(s, exact, size);
		free(exact);
		/* one to all, whole */
		bad += size < SCOPE_SWITCHES_SIZE(1) ||
		       size != SCOPE_SWITCHES_SIZE(SCOPE_SWITCHES_N(size));
		assert_int_equal(s->bad_records, bad);
	}
}

/* ---- CPUs of `node` records ---------------------------------------------------------------------- */

#define NODE_CPUS 4

/* The CPUs of each process' records, in their order: "pid:cpu,cpu;cpu". */
static char node_cpus[256];

static void keep_cpus(const struct json_node *rec, const char *text)
{
	const char *at = strstr(text, "\"cpus\":[");
	size_t n = strlen(node_cpus);

	if (jn_is(key(rec, "recordType"), "header"))
		snprintf(node_cpus + n, sizeof(node_cpus) - n, " %" PRIu64 ":",
			 nr_of(rec, "hostPid"));
	if (!jn_is(key(rec, "recordType"), "node"))
		return;
	while ((at = strstr(at, "{\"cpu\":"))) {
		at += strlen("{\"cpu\":");
		strncat(node_cpus, at, 1);
	}
	strcat(node_cpus, ";");
}

/* All that there are have a record. */
static void node_sample_at(uint64_t ns)
{
	struct {
		struct input_node in;
		struct input_cpu cpus[NODE_CPUS];
	} x = {.in = {.now_ns = ns, .ncpus = NODE_CPUS}};
	struct input_node_of of = {0};
	struct proc *p, *tmp;
	uint32_t i;

	at(ns);
	k_look(&k);
	for (i = 0; i < NODE_CPUS; i++)
		x.cpus[i].flags = INPUT_CPU_KNOWN;
	assert_int_equal(pipeline_node(s, &x, sizeof(x)), 0);
	HASH_ITER (hh, s->procs, p, tmp) {
		of.start_ns = p->key.start_ns;
		of.tgid = p->key.tgid;
		assert_int_equal(pipeline_node_of(s, &of), 0);
	}
}

/* Where threads of a process were since its last record: they have run there, or are there still, or ended there. */
static void test_node_cpus(void **state)
{
	struct k_task *a[2], *b, *worker;

	(void)state;
	at(10 * MS);
	a[0] = job_thread(0, 0, "python3");
	a[1] = job_thread(1, 1, "NCCL Progress");
	b = k_task(&k, JOB + 1000, JOB + 1000, "python3", true);
	k_fork(&k, b);
	k_wakeup(&k, b, 2);
	k_preempts(&k, 2, b);
	communicator(a[0]);
	communicator(b);
	node_sample_at(1000 * MS); /* from here on */
	node_sample_at(2000 * MS);
	at(2100 * MS);
	k_blocks(&k, 1, POLL, NULL);
	k_wakeup(&k, a[1], 3);
	k_preempts(&k, 3, a[1]);
	node_sample_at(3000 * MS);
	node_sample_at(4000 * MS);
	at(4100 * MS);
	worker = k_task(&k, JOB + 2, JOB, "pt_data_worker", true);
	k_fork(&k, worker);
	k_wakeup(&k, worker, 2);
	k_preempts(&k, 2, worker);
	at(4200 * MS);
	k_exit(&k, 2, b);
	node_sample_at(5000 * MS);
	node_sample_at(6000 * MS);
	node_cpus[0] = 0;
	read_trace(keep_cpus);
	pipeline_node_free(s);
	assert_non_null(strstr(node_cpus, " 2000000000:01;013;03;023;03;"));
	assert_non_null(strstr(node_cpus, " 2000001000:2;2;2;2;2;"));
}

int main(void)
{
#define TEST(f)	       cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_SLICES(f) cmocka_unit_test_setup_teardown(f, setup_slices, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_operation),
		TEST(test_unfinished),
		TEST(test_started_for_another),
		TEST(test_started_by_a_third),
		TEST(test_step_of_another),
		TEST(test_stopped_by_another),
		TEST(test_two_at_a_time),
		TEST(test_open_child_of_another),
		TEST(test_before),
		TEST(test_before_long),
		TEST(test_outside_after_loss),
		TEST(test_outside_and_clock),
		TEST(test_late_operation),
		TEST(test_starved),
		TEST(test_idle_keeps_its_own),
		TEST(test_idle_again),
		TEST_SLICES(test_short_life),
		TEST_SLICES(test_end_lost),
		TEST(test_irq_in_gap),
		TEST(test_nothing_left),
		TEST(test_chunk_of_another),
		TEST_SLICES(test_woken),
		TEST_SLICES(test_stack),
		TEST_SLICES(test_killed_asleep),
		TEST_SLICES(test_killed_with_a_core),
		TEST_SLICES(test_killed_after_a_nap),
		TEST_SLICES(test_killed_later),
		TEST_SLICES(test_lives_on),
		TEST_SLICES(test_exits_upon_it),
		TEST_SLICES(test_not_killed),
		TEST_SLICES(test_stopped_asleep),
		TEST(test_longest_stack),
		TEST(test_longest),
		TEST(test_node_cpus),
		TEST(test_bad_records),
	};
	return RUN_TESTS("sched_trace", tests);
}
