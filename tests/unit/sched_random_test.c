// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/correlate/sched_timeline.c by random histories of several threads on several CPUs: any span of their
 * time is what it was, to the nanosecond; with records lost, nothing is claimed that was not.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "sched_feed.h"

#define OPEN 3 /* marks of a thread whose spans are still to end */

/* What the test holds of one thread. */
struct watch {
	struct sched_thread *of;
	struct sched_mark from[OPEN];
	bool open[OPEN];
	uint64_t asked_ns; /* last */
	uint32_t told;	   /* its stays that have come as slices */
};

static struct watch watch[K_TASKS];
static struct {
	uint64_t seed, from, to;
	uint32_t tid;
} at_work; /* for who looks into a failure */
static uint64_t rng, kept_ns;
static bool lossy;
static bool tight; /* there is no memory: of most of the time sums alone are kept, here and there */
static uint32_t nspans;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 32) % n;
}

static struct watch *watch_of(const struct k_task *t)
{
	struct watch *w = &watch[t - k.tasks];

	if (!w->of && t->recorded)
		w->of = sched_thread__get(sched__find(&s, t->tid));
	return w->of ? w : NULL;
}

static void verify(const struct k_task *t, const struct watch *w, const struct sched_mark *from,
		   const struct sched_mark *to)
{
	struct sched_span span = between(w->of, from, to);
	struct k_span want;

	at_work.tid = t->tid;
	at_work.from = from->ns;
	at_work.to = to->ns;
	k_span(&k, t, from->ns, to->ns, &want);
	if (tight) {
		assert_adds_up(&span);
		assert_true(span.sums.preemptions <= span.sums.switches);
		assert_true(span.sums.switches <= 3000 && span.sums.migrations <= 3000);
		assert_int_equal(span.unknown_ns, want.ns[0]);
	} else if (lossy)
		assert_modest(&span, &want);
	else
		assert_exact(&span, &want);
	nspans++;
}

/* Asks for a point in a thread's time that is certain by now; begins a span, or ends some. */
static void ask(const struct k_task *t, struct watch *w, uint64_t ns)
{
	struct sched_mark m = mark(w->of, ns), after;
	uint32_t i = rnd(OPEN);

	if (w->open[i] && ns >= w->from[i].ns) {
		verify(t, w, &w->from[i], &m);
		sched_thread__mark_after(w->of, &w->from[i], ns, &after);
		verify(t, w, &w->from[i], &after);
		if (rnd(2))
			w->open[i] = false;
	} else if (!w->open[i]) {
		w->from[i] = m;
		w->open[i] = true;
	}
	w->asked_ns = ns;
}

/* Mostly in order; now and then a little back. Never before what is forgotten. */
static void ask_until(const struct k_task *t, struct watch *w, uint64_t until)
{
	uint32_t back = tight ? 100000 : 2000;
	uint64_t from = w->asked_ns;

	if (!rnd(8))
		from -= from < back ? from : rnd(back);
	if (from < kept_ns)
		from = kept_ns;
	if (until >= from)
		ask(t, w, from + (rnd(4) ? rnd((uint32_t)(until - from + 1)) : until - from));
}

/* All that runs hands in its records and is asked of, as in real life. */
static void some_chunk(void)
{
	struct k_task *t = k.cpus[rnd(k.ncpus)].curr;
	struct watch *w;
	uint32_t n;

	if (!t || !t->recorded || (drop && rnd(4)))
		return;
	k_chunk(&k, t);
	if (!sched__find(&s, t->tid))
		return;
	seen(t);
	w = watch_of(t);
	for (n = rnd(4); n; n--)
		ask_until(t, w, k.now_ns);
}

/* Another thread's record ends an event of this one, which does not run. */
static void some_question(void)
{
	struct k_task *t = &k.tasks[rnd(k.ntasks)];
	struct watch *w = watch_of(t);

	if (!w || t->ended)
		return;
	k_look(&k);
	/*
	 * What BPF says of a sleep is as certain as a record. (Who it waits behind then is not told
	 * yet.)
	 */
	if (w->of->seq == t->bpf.seq && sched_thread__last(w->of)->state == SCHED_BLOCKED &&
	    rnd(2)) {
		still(t);
		ask_until(t, w, t->state == SCOPE_TASK_WAIT ? t->woken_ns : k.now_ns);
	} else if (!lossy) {
		ask_until(t, w, t->state == SCOPE_TASK_RUN ? k.now_ns : t->left_ns);
	}
}

static struct k_task *some_task(uint8_t state, uint32_t cpu)
{
	uint32_t i, n = rnd(k.ntasks);
	struct k_task *t;

	for (i = 0; i < k.ntasks; i++) {
		t = &k.tasks[(n + i) % k.ntasks];
		if (t->state == state && !t->ended && (cpu == K_NO_CPU || t->cpu == cpu))
			return t;
	}
	return NULL;
}

static void some_switch(void)
{
	static const int32_t whys[] = {FUTEX, POLL, 0, 1, 23, -1, -2, -3, -4, 44, 45};
	struct k_out how = {.blocks = rnd(2), .why = whys[rnd(11)], .quota = !rnd(3)};
	uint32_t cpu = rnd(k.ncpus);
	struct k_task *next = some_task(SCOPE_TASK_WAIT, cpu);
	uint64_t waited = 0;

	if (next && next->bpf.known && next->bpf.wait_ns)
		waited = k.now_ns - next->bpf.wait_ns;
	if (k.cpus[cpu].curr && !rnd(40)) {
		k_exit(&k, cpu, next);
		return;
	}
	if (next || (k.cpus[cpu].curr && how.blocks))
		k_switch(&k, cpu, &how, next, rnd(2) ? rnd((uint32_t)waited + 1) : waited * 2);
}

static void some_wakeup(void)
{
	struct k_task *t = some_task(SCOPE_TASK_BLOCKED, K_NO_CPU);

	if (!t)
		return;
	if (rnd(3)) { /* it has slept for long */
		k_waking(&k, t, rnd(4) ? &k.tasks[rnd(k.ntasks)] : NULL, rnd(K_FILES));
		at(k.now_ns + rnd(3));
	}
	k_wakeup(&k, t, rnd(k.ncpus));
}

static void some_move(void)
{
	struct k_task *t = some_task(SCOPE_TASK_WAIT, K_NO_CPU);

	if (t)
		k_migrate(&k, t, rnd(k.ncpus));
}

static void some_irq(void)
{
	uint64_t from = k.now_ns;

	at(from + rnd(50));
	k_irq(&k, rnd(k.ncpus), from);
}

static void some_birth(void)
{
	if (k.ntasks < K_TASKS)
		k_fork(&k, k_task(&k, 1000 + k.ntasks, JOB + k.ntasks % 2, "child", true));
}

static const struct sched_slice *next_true_slice(struct watch *w, uint64_t *end, uint64_t *irq)
{
	const struct sched_slice *slice;

	do {
		slice = sched_thread__next_slice(w->of, FOREVER, end, irq);
	} while (slice && slice->start_ns == *end);
	return slice;
}

/* The slices of a thread are its stays, one after the other. */
static void tell_slices(const struct k_task *t, struct watch *w)
{
	const struct sched_slice *slice;
	struct sched_span span;
	struct k_span want;
	uint64_t end, irq;
	uint32_t i;

	while ((slice = next_true_slice(w, &end, &irq))) {
		while (t->stays[w->told].begin_ns == k_stay_end(t, w->told))
			w->told++;
		i = w->told++;
		assert_int_equal(slice->start_ns, t->stays[i].begin_ns);
		assert_int_equal(end, k_stay_end(t, i));
		assert_int_equal(slice->state, t->stays[i].state);
		assert_int_equal(slice->preempted, t->stays[i].preempted);
		k_span(&k, t, slice->start_ns, end, &want);
		if (slice->state == SCHED_RUN)
			assert_int_equal(irq, want.irq_ns);
		if (slice->state != SCHED_RUNQ || slice->start_ns < kept_ns)
			continue;
		sched_span__clear(&span);
		sched__behind(&s, w->of, slice, end, &span);
		assert_behind(&span, &want);
	}
}

/* Forgets what no span that is open needs. */
static void prune(bool slices)
{
	uint64_t keep = k.now_ns > 3000 ? k.now_ns - 3000 : 0;
	struct watch *w;
	uint32_t i, j;

	for (i = 0; i < k.ntasks; i++)
		for (j = 0; j < OPEN; j++)
			if (watch[i].open[j] && watch[i].from[j].ns < keep)
				keep = watch[i].from[j].ns;
	for (i = 0; i < k.ntasks; i++) {
		w = watch_of(&k.tasks[i]);
		if (w && slices && !lossy)
			tell_slices(&k.tasks[i], w);
		if (w && !w->of->gone)
			sched_thread__prune(&s, w->of, keep, slices);
	}
	sched__prune_cpus(&s, keep);
	kept_ns = keep > kept_ns ? keep : kept_ns;
}

static void populate(void)
{
	uint32_t i;

	k.ncpus = 1 + rnd(4);
	for (i = 0; i < k.ncpus; i++)
		prime(i);
	for (i = rnd(6); i; i--)
		job_thread(i);
	for (i = rnd(6); i; i--)
		hog(i, i % 2 ? "odd" : "even");
	for (i = rnd(3); i; i--) /* threads of one process with names of their own */
		k_task(&k, 800 + i, HOG, i % 2 ? "odd" : "third", false);
}

static void step(void)
{
	static void (*const some[])(void) = {some_switch,   some_switch, some_switch, some_switch,
					     some_wakeup,   some_wakeup, some_wakeup, some_move,
					     some_irq,	    some_chunk,	 some_chunk,  some_chunk,
					     some_question, some_birth};
	uint32_t n = sizeof(some) / sizeof(*some);

	at(k.now_ns + 1 + rnd(rnd(10) ? 100 : 1000));
	if (lossy && !rnd(30))
		drop = rnd(12);
	/* Births are rare: 96 tasks have to do. */
	some[rnd(rnd(30) ? n - 1 : n)]();
}

/* All end; what was lost is told to the last record. */
static void end_all(void)
{
	uint64_t want = 0;
	struct k_task *t;
	uint32_t i;

	drop = 0;
	for (i = 0; i < k.ntasks; i++) {
		t = &k.tasks[i];
		if (t->ended)
			continue;
		if (t->state == SCOPE_TASK_BLOCKED)
			k_wakeup(&k, t, 0);
		at(k.now_ns + 5);
		if (t->state == SCOPE_TASK_WAIT) {
			k_migrate(&k, t, 0);
			k_preempts(&k, 0, t);
		}
		at(k.now_ns + 5);
		k_exit(&k, t->cpu, NULL);
	}
	for (i = 0; i < k.ntasks; i++)
		want += k.tasks[i].lost;
	assert_int_equal(lost, want);
	assert_null(s.threads);
}

static int forget_history(void **state)
{
	uint32_t i;

	(void)state;
	if (at_work.seed)
		print_message("# seed %" PRIu64 ", thread %u, from %" PRIu64 " to %" PRIu64 "\n",
			      at_work.seed, at_work.tid, at_work.from, at_work.to);
	at_work.seed = 0;
	for (i = 0; i < K_TASKS; i++)
		sched_thread__put(&s, watch[i].of);
	memset(watch, 0, sizeof(watch));
	return teardown(NULL);
}

static bool again(void)
{
	return !rnd(4);
}

static void one_history(uint64_t seed, uint32_t steps)
{
	bool slices;
	uint32_t i;

	at_work.seed = seed;
	rng = seed * 0x9e3779b97f4a7c15ull;
	kept_ns = 0;
	begin(K_CPUS);
	s.room_max = tight;
	k.gathers = rnd(3);
	k.again = again;
	slices = rnd(2);
	populate();
	for (i = 0; i < steps; i++) {
		step();
		if (!tight && !rnd(100))
			prune(slices);
	}
	for (i = 0; i < k.ntasks; i++)
		watch_of(&k.tasks[i]);
	end_all();
	prune(slices && !tight);
	for (i = 0; i < k.ntasks; i++) {
		if (watch[i].of && !lossy && k.tasks[i].left_ns >= kept_ns)
			ask_until(&k.tasks[i], &watch[i], k.now_ns);
	}
	at_work.seed = 0;
	forget_history(NULL);
}

/* SCHED_HISTORIES in the environment has them run longer; one that fails is SCHED_SEED. */
static void histories(void)
{
	const char *n = getenv("SCHED_HISTORIES"), *one = getenv("SCHED_SEED");
	uint64_t seed, end = n ? strtoull(n, NULL, 10) : 300;

	nspans = 0;
	for (seed = 1; seed <= end && !one; seed++) {
		one_history(seed, 3000);
	}
	if (one)
		one_history(strtoull(one, NULL, 10), 3000);
	print_message("# %u spans\n", nspans);
}

static void test_histories(void **state)
{
	(void)state;
	lossy = false;
	histories();
}

static void test_histories_with_loss(void **state)
{
	(void)state;
	lossy = true;
	histories();
}

static void test_histories_without_room(void **state)
{
	(void)state;
	lossy = false;
	tight = true;
	histories();
	tight = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_histories, forget_history),
		cmocka_unit_test_teardown(test_histories_with_loss, forget_history),
		cmocka_unit_test_teardown(test_histories_without_room, forget_history),
	};

	return cmocka_run_group_tests_name("sched_random", tests, NULL, NULL);
}
