// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kernel context from the ring into the trace, by random recordings: the trace passes check, and
 * every event, thread and slice of it says what was; with records lost, no more than was.
 */
#include "sched_job.h"

#define PROXIES 3

static struct k_task *app, *proxies[PROXIES];
static uint32_t op_of[PROXIES], step_of[PROXIES]; /* open */
static uint32_t coll_at, coll_open;		  /* the newest; open */
static uint64_t next_tick_ns, rng, seed_at_work;
static bool lossy;
static uint32_t checked[SCOPE_NTYPES + 2];

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 32) % n;
}

static void app_works(void)
{
	if (coll_open && rnd(2)) {
		stop_event(coll_open);
		stop_event(coll_open - 1);
		stop_event(coll_open - 2);
		coll_open = 0;
	} else if (!coll_open && nevents + 8 < EVENTS && !rnd(4)) {
		coll_at = coll_open =
			start(app, SCOPE_COLL,
			      start(app, SCOPE_COLL_API, start(app, SCOPE_GROUP_API, 0)));
	}
}

/* The operation that a ProxyOp may still be for: not one that may be written by now. */
static uint32_t recent_coll(void)
{
	const struct event *ev = &events[coll_at];

	return coll_at && k.now_ns - ev->start_ns < 500 * MS ? coll_at : 0;
}

static void proxy_works(uint32_t i)
{
	if (step_of[i]) {
		stop_event(step_of[i]);
		step_of[i] = 0;
	} else if (op_of[i] && rnd(3)) {
		if (nevents + 8 < EVENTS)
			step_of[i] = start(proxies[i], SCOPE_PROXY_STEP, op_of[i]);
	} else if (op_of[i]) {
		stop_event(op_of[i]);
		op_of[i] = 0;
	} else if (recent_coll() && nevents + 8 < EVENTS) {
		op_of[i] = start(proxies[i], SCOPE_PROXY_OP, recent_coll());
	}
}

/* A thread of the job that runs makes some events, and hands some in. */
static void some_work(void)
{
	struct k_task *t = k.cpus[rnd(k.ncpus)].curr;
	uint32_t i;

	if (!t || t->tgid != JOB)
		return;
	if (t == app)
		app_works();
	for (i = 0; i < PROXIES; i++)
		if (t == proxies[i])
			proxy_works(i);
	if (buffer_of(t)->len && (rnd(3) || k.now_ns - buffer_of(t)->begun_ns > 10 * MS))
		flush(t, SCOPE_FLUSH_AGE);
}

/* The loader comes round. A thread that is silent for long is read from outside. */
static void some_tick(void)
{
	uint32_t i;

	if (k.now_ns < next_tick_ns)
		return;
	next_tick_ns = k.now_ns + 200 * MS;
	for (i = 0; job() && i < k.ntasks; i++)
		if (buffers[i].len && k.now_ns - buffers[i].begun_ns > 200 * MS &&
		    k.tasks[i].got_seq == k.tasks[i].bpf.seq) /* see test_outside_after_loss() */
			flush(&k.tasks[i], SCOPE_FLUSH_OUTSIDE);
	tick();
}

static struct k_task *some_task(uint8_t state)
{
	uint32_t i, n = rnd(k.ntasks);
	struct k_task *t;

	for (i = 0; i < k.ntasks; i++) {
		t = &k.tasks[(n + i) % k.ntasks];
		if (t->state == state && !t->ended)
			return t;
	}
	return NULL;
}

/*
 * Who has waited longest for `cpu`: nobody starves until an operation is written (see
 * test_starved()).
 */
static struct k_task *next_task(uint32_t cpu)
{
	struct k_task *t, *first = NULL;
	uint32_t i;

	for (i = 0; i < k.ntasks; i++) {
		t = &k.tasks[i];
		if (t->state == SCOPE_TASK_WAIT && t->cpu == cpu && !t->ended &&
		    (!first || t->woken_ns < first->woken_ns))
			first = t;
	}
	return first;
}

static void some_switch(uint32_t cpu)
{
	static const int32_t whys[] = {FUTEX, POLL, 0, 1, 23, -1, -2, -3, -4};
	struct k_out how = {.blocks = rnd(2), .why = whys[rnd(9)], .quota = !rnd(3)};
	struct k_task *next = next_task(cpu);

	if (next || (k.cpus[cpu].curr && how.blocks))
		k_switch(&k, cpu, &how, next, rnd(1000 * 1000));
}

static void some_kernel(void)
{
	uint32_t cpu = rnd(k.ncpus), what = rnd(10);
	struct k_task *t;
	uint64_t from;

	if (what < 5) {
		some_switch(cpu);
	} else if (what < 8) {
		t = some_task(SCOPE_TASK_BLOCKED);
		if (t)
			k_wakeup(&k, t, cpu);
	} else if (what == 8) {
		t = some_task(SCOPE_TASK_WAIT);
		if (t)
			k_migrate(&k, t, cpu);
	} else {
		from = k.now_ns;
		at(from + 1 + rnd(20000));
		k_irq(&k, cpu, from);
	}
}

/* A worker of the job that makes no events comes or goes. */
static void some_worker(void)
{
	uint32_t cpu = rnd(k.ncpus);
	struct k_task *t = k.cpus[cpu].curr;

	if (t && !strcmp(t->comm, "worker")) {
		k_exit(&k, cpu, next_task(cpu));
	} else if (k.ntasks < K_TASKS) {
		t = k_task(&k, JOB + k.ntasks, JOB, "worker", true);
		t->ns_tid = 5 + k.ntasks;
		k_fork(&k, t);
	}
}

static void populate(void)
{
	uint32_t i;

	k.ncpus = 1 + rnd(4);
	app = job_thread(0, 0, "python3");
	for (i = 0; i < PROXIES; i++) {
		at(k.now_ns + MS);
		proxies[i] = job_thread(1 + i, (1 + i) % k.ncpus, "NCCL Progress");
	}
	for (i = 0; i < k.ncpus; i++) { /* whatever a CPU's first record is: it is over */
		at(k.now_ns + MS);
		k_preempts(&k, i, NULL);
	}
	for (i = 0; i < 4; i++)
		k_task(&k, HOG + i, HOG + i / 2, i % 2 ? "burn" : "churn", false);
	at(k.now_ns + MS);
	k_preempts(&k, app->cpu, app);
	communicator(app);
	coll_at = coll_open = 0;
	memset(op_of, 0, sizeof(op_of));
	memset(step_of, 0, sizeof(step_of));
	next_tick_ns = 0;
}

/* A thread of the job comes to run, on CPU 0. */
static void get_to_run(struct k_task *t)
{
	at(k.now_ns + MS);
	if (t->state == SCOPE_TASK_RUN)
		k_preempts(&k, t->cpu, NULL);
	at(k.now_ns + MS);
	if (t->state == SCOPE_TASK_BLOCKED)
		k_wakeup(&k, t, 0);
	at(k.now_ns + MS);
	k_migrate(&k, t, 0);
	at(k.now_ns + MS);
	k_preempts(&k, 0, t);
	at(k.now_ns + MS);
}

/* All that is open comes to its end, and is written. */
static void finish(void)
{
	uint32_t i;

	drop = 0;
	for (i = 0; i < PROXIES; i++) {
		get_to_run(proxies[i]);
		if (step_of[i])
			stop_event(step_of[i]);
		if (op_of[i])
			stop_event(op_of[i]);
		flush(proxies[i], SCOPE_FLUSH_TOP);
	}
	get_to_run(app);
	if (coll_open) {
		stop_event(coll_open);
		stop_event(coll_open - 1);
		stop_event(coll_open - 2);
	}
	flush(app, SCOPE_FLUSH_TOP);
	at(k.now_ns + 2000 * MS);
	tick();
}

/* ---- Against the truth ----------------------------------------------------------------------- */

static struct event *event_of(const struct json_node *rec)
{
	uint64_t id, n;

	assert_true(jn_hex(key(rec, "eventAddr"), &id));
	n = id & ((1ull << SCOPE_ID_COUNTER_BITS) - 1);
	assert_true(n && n <= nevents && events[n].id == id);
	return &events[n];
}

static void k_span_add(struct k_span *to, const struct k_span *from)
{
	uint32_t i;

	for (i = 0; i < 4; i++)
		to->ns[i] += from->ns[i];
	to->irq_ns += from->irq_ns;
	to->throttled_ns += from->throttled_ns;
	to->switches += from->switches;
	to->preemptions += from->preemptions;
	to->migrations += from->migrations;
	to->cpus |= from->cpus;
}

static void verify_cpus(const struct json_node *part, uint64_t want)
{
	uint64_t cpu, cpus = 0;
	uint32_t i;

	for (i = key(part, "cpus")->first; i; i = doc.nodes[i].next) {
		assert_true(jn_u64(&doc.nodes[i], &cpu) && cpu < 64);
		cpus |= 1ull << cpu;
	}
	assert_int_equal(cpus, want);
}

/* check has seen that it adds up. With loss, less may be known, never more. */
static void verify_part(const struct json_node *part, const struct k_span *want)
{
	if (lossy) {
		assert_true(ns_of(part, "onCpu") <= want->ns[SCOPE_TASK_RUN]);
		assert_true(ns_of(part, "runq") <= want->ns[SCOPE_TASK_WAIT]);
		assert_true(ns_of(part, "blocked") <= want->ns[SCOPE_TASK_BLOCKED]);
		return;
	}
	assert_int_equal(ns_of(part, "onCpu"), want->ns[SCOPE_TASK_RUN]);
	assert_int_equal(ns_of(part, "runq"), want->ns[SCOPE_TASK_WAIT]);
	assert_int_equal(ns_of(part, "blocked"), want->ns[SCOPE_TASK_BLOCKED]);
	assert_int_equal(ns_of(part, "unknown"), want->ns[0]);
	assert_int_equal(ns_of(part, "irq"), want->irq_ns);
	assert_int_equal(ns_of(part, "throttled"), want->throttled_ns);
	assert_int_equal(nr_of(part, "switches"), want->switches);
	assert_int_equal(nr_of(part, "preemptions"), want->preemptions);
	assert_int_equal(nr_of(part, "migrations"), want->migrations);
	if (key(part, "cpus"))
		verify_cpus(part, want->cpus);
}

/* Each of those that it names ran for so long. */
static void verify_behind(const struct json_node *sched, const struct k_span *want)
{
	const struct json_node *list = key(sched, "behind"), *who;
	uint32_t i, j, n = 0;

	for (i = list ? list->first : 0; i; i = doc.nodes[i].next) {
		who = &doc.nodes[i];
		for (j = 0; j < want->nbehind; j++)
			if (nr_of(who, "pid") == want->behind[j].tgid &&
			    jn_is(key(who, "comm"), want->behind[j].comm))
				break;
		assert_true(j < want->nbehind);
		assert_int_equal(ns_of(who, "us"), want->behind[j].ns);
		n++;
	}
	assert_int_equal(n, want->nbehind < SCHED_TOP ? want->nbehind : SCHED_TOP);
}

/* From a thread's first ProxyOp of an operation to the last end of one. false: it had none. */
static bool served(const struct k_task *t, uint32_t coll, uint64_t stop_ns, struct k_span *want)
{
	uint64_t from = UINT64_MAX, to = 0, last;
	bool open = false;
	uint32_t i;

	for (i = 1; i <= nevents; i++) {
		if (events[i].what != SCOPE_PROXY_OP || events[i].parent != coll ||
		    events[i].task != t)
			continue;
		from = events[i].start_ns < from ? events[i].start_ns : from;
		last = events[i].child_ns ? events[i].child_ns : events[i].stop_ns;
		open |= !events[i].stop_ns;
		to = last > to ? last : to;
	}
	if (from >= stop_ns)
		return false;
	k_span(&k, t, from, open || to > stop_ns ? stop_ns : to, want);
	return true;
}

static void verify_operation(const struct json_node *sched, const struct event *ev,
			     uint64_t stop_ns)
{
	struct k_span want, one;
	uint32_t i, n = 0;

	k_span(&k, ev->task, ev->start_ns, stop_ns, &want);
	if (!lossy)
		assert_int_equal(ns_of(key(sched, "app"), "span"), stop_ns - ev->start_ns);
	if (!lossy || key(sched, "app"))
		verify_part(key(sched, "app"), &want);
	memset(&want, 0, sizeof(want));
	for (i = 0; i < PROXIES; i++) {
		if (!served(proxies[i], (uint32_t)(ev - events), stop_ns, &one))
			continue;
		k_span_add(&want, &one);
		n++;
	}
	if (lossy) /* of which nothing is known, they are left out */
		assert_true(nr_of(key(sched, "proxy"), "threads") <= n);
	else
		assert_int_equal(nr_of(key(sched, "proxy"), "threads"), n);
	if (key(sched, "proxy"))
		verify_part(key(sched, "proxy"), &want);
}

static void verify_event(const struct json_node *rec)
{
	const struct json_node *sched = key(rec, "sched");
	const struct event *ev;
	struct k_span want;

	if (!key(rec, "eventAddr")) /* lifecycle */
		return;
	ev = event_of(rec);
	checked[ev->what]++;
	if (lossy && !sched)
		return;
	assert_non_null(sched);
	assert_null(key(rec, "unfinished"));
	if (ev->what == SCOPE_COLL) {
		verify_operation(sched, ev, ns_of(key(rec, "exec"), "stop"));
		return;
	}
	k_span(&k, ev->task, ev->start_ns, ev->stop_ns, &want);
	verify_part(sched, &want);
	if (!lossy)
		verify_behind(sched, &want);
}

static const struct k_task *task_of(const struct json_node *rec)
{
	uint64_t ns_tid = nr_of(rec, "tid");
	uint32_t i;

	for (i = 0; i < k.ntasks; i++)
		if (k.tasks[i].tgid == JOB && k.tasks[i].ns_tid == ns_tid)
			return &k.tasks[i];
	fail_msg("no thread %" PRIu64, ns_tid);
	return NULL;
}

/*
 * Of one that lives at the end, that it was woken is not known, nor that its last records were
 * lost.
 */
static void verify_thread(const struct json_node *rec)
{
	const struct k_task *t = task_of(rec);
	struct k_span want;

	if (!key(rec, "stop") || !key(rec, "since") ||
	    (!t->ended && (t->state != SCOPE_TASK_RUN || t->got_seq != t->bpf.seq)))
		return;
	checked[SCOPE_NTYPES]++;
	k_span(&k, t, ns_of(rec, "since"), ns_of(rec, "stop"), &want);
	/* Interrupts count whole, also one in which the thread's time is over. */
	verify_part(rec, &want);
}

static bool is_stay(const struct json_node *rec, const struct k_task *t, uint32_t i)
{
	static const char *const names[] = {"", "run", "runq", "blocked"};
	const struct k_stay *stay = &t->stays[i];
	uint64_t end_ns = k_stay_end(t, i) < s->end_ns ? k_stay_end(t, i) : s->end_ns;

	return stay->begin_ns == ns_of(rec, "ts") && end_ns - stay->begin_ns == ns_of(rec, "dur") &&
	       jn_is(key(rec, "state"), names[stay->state]) &&
	       (stay->cpu == K_NO_CPU || nr_of(rec, "cpu") == stay->cpu) &&
	       stay->preempted == !!key(rec, "preempted");
}

static void verify_slice(const struct json_node *rec)
{
	const struct k_task *t = task_of(rec);
	uint32_t i;

	for (i = 0; i < t->nstays; i++)
		if (is_stay(rec, t, i))
			break;
	if (!lossy && i == t->nstays && ns_of(rec, "ts") + ns_of(rec, "dur") < s->end_ns)
		fail_msg("thread %u was in no such state at %" PRIu64, t->tid, ns_of(rec, "ts"));
	checked[SCOPE_NTYPES + 1]++;
}

static void verify_line(const struct json_node *rec, const char *text)
{
	(void)text;
	if (jn_is(key(rec, "recordType"), "event"))
		verify_event(rec);
	else if (jn_is(key(rec, "recordType"), "thread"))
		verify_thread(rec);
	else if (jn_is(key(rec, "recordType"), "slice"))
		verify_slice(rec);
}

static void verify_loss(void)
{
	uint64_t want = 0;
	uint32_t i;

	for (i = 0; i < k.ntasks; i++)
		want += k.tasks[i].lost;
	assert_int_equal(s->summary.lost[LOSS_CONTEXT] + s->context_lost, want);
	assert_int_equal(s->bad_records, 0);
}

static int teardown(void **state)
{
	(void)state;
	if (seed_at_work)
		print_message("# seed %" PRIu64 "%s\n", seed_at_work, lossy ? ", with loss" : "");
	seed_at_work = 0;
	release();
	return 0;
}

static bool again(void)
{
	return !rnd(4);
}

static void one_recording(uint64_t seed, enum sched_mode mode)
{
	uint32_t i;

	seed_at_work = seed;
	rng = seed * 0x9e3779b97f4a7c15ull;
	begin(mode);
	k.gathers = rnd(3);
	k.again = again;
	populate();
	for (i = 0; i < 4000; i++) {
		at(k.now_ns + 1 + rnd(rnd(20) ? 2000 * US : 50 * MS));
		if (lossy && !rnd(40))
			drop = rnd(12);
		some_kernel();
		at(k.now_ns + 1 + rnd(2000 * US));
		some_work();
		if (!rnd(50))
			some_worker();
		some_tick();
	}
	finish();
	read_trace(verify_line);
	verify_loss();
	seed_at_work = 0;
	release();
}

/* SCHED_RECORDINGS in the environment makes more of them; one that fails is SCHED_SEED. */
static void recordings(enum sched_mode mode)
{
	const char *n = getenv("SCHED_RECORDINGS"), *one = getenv("SCHED_SEED");
	uint64_t seed, end_seed = n ? strtoull(n, NULL, 10) : 25;

	memset(checked, 0, sizeof(checked));
	for (seed = 1; seed <= end_seed && !one; seed++)
		one_recording(seed, mode);
	if (one)
		one_recording(strtoull(one, NULL, 10), mode);
	print_message("# %u operations, %u ProxyOps, %u steps, %u threads, %u slices\n",
		      checked[SCOPE_COLL], checked[SCOPE_PROXY_OP], checked[SCOPE_PROXY_STEP],
		      checked[SCOPE_NTYPES], checked[SCOPE_NTYPES + 1]);
}

static void test_recordings(void **state)
{
	(void)state;
	lossy = false;
	recordings(SCHED_MODE_EVENTS);
}

static void test_recordings_with_slices(void **state)
{
	(void)state;
	lossy = false;
	recordings(SCHED_MODE_SLICES);
}

static void test_recordings_with_loss(void **state)
{
	(void)state;
	lossy = true;
	recordings(SCHED_MODE_EVENTS);
	recordings(SCHED_MODE_SLICES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_recordings, teardown),
		cmocka_unit_test_teardown(test_recordings_with_slices, teardown),
		cmocka_unit_test_teardown(test_recordings_with_loss, teardown),
	};

	return RUN_TESTS("sched_recordings", tests);
}
