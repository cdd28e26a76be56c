// SPDX-License-Identifier: BSD-2-Clause
/* loader/record/rescue.c: who does not come by is made real-time, and is ordinary again when it does, or takes too much. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "clock.h"
#include "rescue.h"

#define MS	 1000000L
#define PATIENCE (20 * NSEC_PER_SEC) /* on a machine that is busy */
#define REALTIME SCHED_RR

static int policy(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static int setup(void **state)
{
	(void)state;
	return rescue__start() || policy() != SCHED_OTHER ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	rescue__stop();
	return policy() == SCHED_OTHER ? 0 : -1;
}

/* It comes by, each so many ms, until it is scheduled like that. */
static void comes_until(int want, long every_ms)
{
	uint64_t end = monotonic_ns() + PATIENCE;

	while (policy() != want && monotonic_ns() < end) {
		rescue__here(monotonic_ns());
		sleep_ns(every_ms * MS);
	}
	assert_int_equal(policy(), want);
}

/* It takes a CPU all the time, and comes by or not. */
static void spins_until(int want, bool comes)
{
	uint64_t end = monotonic_ns() + PATIENCE;

	while (policy() != want && monotonic_ns() < end)
		if (comes)
			rescue__here(monotonic_ns());
	assert_int_equal(policy(), want);
}

/* For half a second. The longest that it was away, since a busy machine may keep it from its CPU. */
static uint64_t comes_in_time(void)
{
	uint64_t last = monotonic_ns(), end = last + NSEC_PER_SEC / 2, worst = 0, now;

	do {
		sleep_ns(10 * MS);
		now = monotonic_ns();
		rescue__here(now);
		worst = now - last > worst ? now - last : worst;
		last = now;
	} while (now < end);
	return worst;
}

static void test_in_time(void **state)
{
	uint64_t give_up = monotonic_ns() + PATIENCE, worst;

	(void)state;
	while ((worst = comes_in_time()) > 100 * MS && monotonic_ns() < give_up) {
		rescue__stop();
		assert_int_equal(rescue__start(), 0);
	}
	assert_true(worst <= 100 * MS);
	assert_int_equal(policy(), SCHED_OTHER);
	assert_int_equal(rescue__stop(), 0);
}

static void test_late(void **state)
{
	uint64_t begin;

	(void)state;
	spins_until(REALTIME, false);
	begin = monotonic_ns();
	comes_until(SCHED_OTHER, 20); /* for a while: what kept it away may be there yet */
	assert_true(monotonic_ns() - begin > NSEC_PER_SEC);
	spins_until(REALTIME, false);
	assert_true(rescue__stop() >= 2);
	assert_int_equal(policy(), SCHED_OTHER);
}

static void test_takes_too_much(void **state)
{
	uint64_t begin;

	(void)state;
	spins_until(REALTIME, false);
	begin = monotonic_ns();
	spins_until(SCHED_OTHER, true);
	assert_true(monotonic_ns() - begin < 3 * NSEC_PER_SEC);
	begin = monotonic_ns();
	spins_until(REALTIME, false);
	assert_true(monotonic_ns() - begin > NSEC_PER_SEC / 3); /* not again at once */
}

/* Who has no CAP_SYS_NICE keeps this flag: it is ordinary all the same. */
static void test_flag(void **state)
{
	const struct sched_param none = {0};

	(void)state;
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none), 0);
	spins_until(REALTIME, false);
	rescue__stop();
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none), 0);
	assert_int_equal(rescue__start(), 0);
	rescue__stop();
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

/* What it starts is not real-time. */
static void test_child(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	spins_until(REALTIME, false);
	pid = fork();
	if (!pid)
		_exit(policy() == SCHED_OTHER ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_other(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(rescue__raise(pid), 0);
	assert_int_equal(sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK, REALTIME);
	assert_int_equal(rescue__raise(pid), -EALREADY);
	assert_int_equal(rescue__lower(pid), 0);
	assert_int_equal(sched_getscheduler(pid), SCHED_OTHER);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_chosen(void **state)
{
	const struct sched_param none = {0};

	(void)state;
	assert_int_equal(rescue__start(), -EALREADY); /* one at a time */
	rescue__stop();
	assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	assert_int_equal(rescue__start(), -EALREADY);
	rescue__here(monotonic_ns()); /* nobody looks */
	assert_int_equal(rescue__stop(), 0);
	assert_int_equal(policy(), SCHED_BATCH);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(test_##f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(in_time), T(late), T(takes_too_much), T(child), T(flag), T(other), T(chosen),
	};

	if (rescue__start()) {
		puts("SKIP: rescue_test: a thread may not be real-time (CAP_SYS_NICE, "
		     "RLIMIT_RTPRIO)");
		return 77;
	}
	rescue__stop();
	return cmocka_run_group_tests_name("rescue", tests, NULL, NULL);
}
