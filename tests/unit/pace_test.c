// SPDX-License-Identifier: BSD-2-Clause
/* loader/pace.c: behind everybody else while there is time, like everybody else when there is none, and never for good. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "clock.h"
#include "pace.h"

#define RING (1u << 20)
#define MS   1000000ull

static uint64_t produced, consumed; /* asked for by two threads */
static struct pace *pace;

static struct ring_pos ring(const void *arg)
{
	assert_ptr_equal(arg, &produced);
	return (struct ring_pos){.produced = __atomic_load_n(&produced, __ATOMIC_RELAXED),
				 .consumed = __atomic_load_n(&consumed, __ATOMIC_RELAXED)};
}

static void sleep_ms(uint64_t ms)
{
	const struct timespec ts = {.tv_nsec = (long)(ms * MS)};

	nanosleep(&ts, NULL);
}

static void come(uint64_t bytes)
{
	__atomic_fetch_add(&produced, bytes, __ATOMIC_RELAXED);
}

static void take(void)
{
	__atomic_store_n(&consumed, produced, __ATOMIC_RELAXED);
}

static int setup(void **state)
{
	(void)state;
	produced = consumed = 0;
	pace = pace__begin(ring, &produced, RING);
	return pace ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	pace__end(pace);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	return 0;
}

/* Turns every 10 ms, in each of which so much comes and is taken. */
static void turns(uint32_t n, uint64_t bytes)
{
	while (n--) {
		sleep_ms(10);
		come(bytes);
		take();
		pace__turn(pace, monotonic_ns(), true);
	}
}

static void test_gives_way(void **state)
{
	(void)state;
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	turns(15, 100);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

static void test_late(void **state)
{
	(void)state;
	turns(15, 100);
	sleep_ms(300); /* no turn */
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	pace__turn(pace, monotonic_ns(), false); /* there is more */
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	pace__turn(pace, monotonic_ns(), true);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	assert_true(pace__end(pace) >= 1);
	pace = NULL;
}

/* Turns in time are not enough if they do not take what comes. */
static void test_ring_fills(void **state)
{
	uint64_t turn_ns = 0;
	uint32_t i;

	(void)state;
	turns(15, 100);
	for (i = 0; i < 80; i++) {
		/* This thread may have to wait itself, and be late for that. */
		if (i < 40 && sched_getscheduler(0) != SCHED_IDLE)
			assert_true(monotonic_ns() - turn_ns > 90 * MS);
		come(RING / 400);
		sleep_ms(10);
		turn_ns = monotonic_ns();
		pace__turn(pace, turn_ns, i < 40);
	}
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* So much comes that the ring would not last. */
static void test_flood(void **state)
{
	(void)state;
	turns(30, RING / 8 / 5);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	turns(30, 100);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

static void test_sample(void **state)
{
	uint64_t begin;

	(void)state;
	pace__sample(pace);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	turns(15, 100);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	begin = monotonic_ns();
	pace__sample(pace);
	assert_true(monotonic_ns() - begin >= MS);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	pace__turn(pace, monotonic_ns(), true);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	pace__sample(NULL);
}

static void test_child(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	turns(15, 100);
	pid = fork();
	if (!pid) {
		pace__leave();
		_exit(sched_getscheduler(0) == SCHED_OTHER ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

/* What somebody chose stays. */
static void test_chosen(void **state)
{
	const struct sched_param none = {0};

	(void)state;
	assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	assert_null(pace__begin(ring, &produced, RING));
	pace__turn(NULL, monotonic_ns(), true);
	pace__leave();
	assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
	assert_int_equal(pace__end(NULL), 0);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

/* Root may; others by their RLIMIT_NICE, or in a container, not always. */
static bool may_leave_idle(void)
{
	bool may;

	pace = pace__begin(ring, &produced, RING);
	may = pace;
	pace__end(pace);
	return may;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gives_way, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring_fills, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child, setup, teardown),
		cmocka_unit_test(test_chosen),
	};

	if (!may_leave_idle()) {
		puts("SKIP: pace_test: a thread may not leave SCHED_IDLE again (CAP_SYS_NICE, "
		     "RLIMIT_NICE)");
		return 77;
	}
	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
