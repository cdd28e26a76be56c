// SPDX-License-Identifier: BSD-2-Clause
/* loader/record/pace.c: behind everybody else while that lasts, like everybody else when it does not or costs nothing. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include "clock.h"
#include "pace.h"

#define MS	 UINT64_C(1000000)
#define FILE_MAX (100u << 20)
#define NS_BYTE	 4	   /* that taking costs */
#define BEGIN	 (10 * MS) /* that the first of it costs besides, where `dear` */

static struct pace pace;
static struct pace_load load;
static bool dear;
static double gets; /* of a CPU, beside what taking costs; below 0: just that */

static int setup(void **state)
{
	(void)state;
	dear = false;
	gets = -1;
	pace__begin(&pace);
	load = (struct pace_load){.now_ns = NSEC_PER_SEC, .file_max = FILE_MAX};
	return pace.may && sched_getscheduler(0) == SCHED_OTHER ? 0 : -1;
}

static int teardown(void **state)
{
	const struct sched_param none = {0};

	(void)state;
	setpriority(PRIO_PROCESS, 0, 0);
	return sched_setscheduler(0, SCHED_OTHER, &none);
}

/* Turns every 50 ms, in each of which so much comes and so much is taken; the oldest of what is left waits since then. */
static void turns(uint32_t n, uint64_t put, uint64_t taken)
{
	uint64_t got = load.cpu_ns;

	while (n--) {
		load.now_ns += 50 * MS;
		load.put_bytes += put;
		load.taken_bytes += taken;
		if (load.taken_bytes > load.put_bytes)
			load.taken_bytes = load.put_bytes;
		load.cpu_ns = load.taken_bytes * NS_BYTE + (dear && load.taken_bytes ? BEGIN : 0);
		if (gets >= 0)
			load.cpu_ns = got += (uint64_t)(gets * 50 * MS);
		if (load.taken_bytes == load.put_bytes)
			load.oldest_ns = 0;
		else if (!load.oldest_ns)
			load.oldest_ns = load.now_ns;
		pace__turn(&pace, &load);
	}
}

static void test_gives_way(void **state)
{
	(void)state;
	assert_false(pace.idle);
	turns(20, 1000, 1000);
	assert_true(pace.idle);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

/* A flood waits for as long as there is room. */
static void test_flood(void **state)
{
	(void)state;
	turns(20, 1000, 1000);
	turns(100, 1 << 20, 1 << 16); /* 80 ms of CPU time a second */
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	assert_int_equal(pace.raised, 0);
}

/* What comes next costs little, and somebody may look at the traces: it catches up with all there is. */
static void test_flood_ends(void **state)
{
	(void)state;
	turns(20, 1000, 1000);
	turns(100, 1 << 20, 1 << 16);
	turns(20, 1000, 1000);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(pace.raised, 1);
	turns(20, 1000, UINT32_MAX);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

/* Little comes all the time, and it gets no CPU for it. */
static void test_starved(void **state)
{
	(void)state;
	turns(1, 1000, 1000);
	turns(20, 1000, 100);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	/* While it catches up, a flood begins. */
	turns(20, 1 << 20, 1 << 16);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

/* Likewise, from the beginning on: that files are opened and memory is new says nothing of what comes. */
static void test_starved_early(void **state)
{
	(void)state;
	dear = true;
	turns(1, 5000, 5000);
	turns(20, 20000, 500);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	turns(20, 20000, UINT32_MAX);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	assert_int_equal(pace.raised, 1);
}

static void test_file_fills_up(void **state)
{
	(void)state;
	turns(100, 1 << 20, 1 << 16);
	load.file_bytes = FILE_MAX / 4 * 3;
	turns(1, 1 << 20, 1 << 16);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	load.file_bytes++;
	turns(1, 1 << 20, 1 << 16);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	load.file_bytes = FILE_MAX / 2 + 1;
	turns(1, 1 << 20, 1 << 16);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	load.file_bytes = FILE_MAX / 2;
	turns(1, 1 << 20, 1 << 16);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	assert_int_equal(pace.raised, 1);
}

static void test_raise(void **state)
{
	(void)state;
	turns(20, 1000, 1000);
	pace__raise(&pace);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	turns(1, 1000, 1000);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	assert_int_equal(pace.raised, 0);
	/* Who puts had to wait, and said so, before a turn saw it. */
	pace__raise(&pace);
	load.file_bytes = FILE_MAX;
	turns(5, 1 << 20, 1 << 16);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(pace.raised, 1);
}

/* A flood that gets so much of a CPU: pause_ms() is how long it stands still then, looking away once it has. */
static void flood(double cpu, uint32_t n)
{
	gets = cpu;
	turns(n, 1 << 20, pace.stands ? 0 : 1 << 16);
}

static uint64_t pause_ms(void)
{
	uint64_t from;

	while (!pace.stands)
		flood(0.1, 1);
	from = load.now_ns;
	while (pace.stands)
		flood(0, 1);
	return (load.now_ns - from) / MS;
}

/* All CPUs are taken: what it would get is taken from whoever yields. It looks again, less and less often. */
static void test_stands(void **state)
{
	static const uint64_t pauses[] = {250, 500, 1000, 2000, 4000, 4000};
	size_t i;

	(void)state;
	flood(0.1, 10); /* what it costs is known */
	turns(1, 0, UINT32_MAX);
	load.wants_cpu = true;
	flood(0.1, 1);
	assert_false(pace.stands); /* there was nothing to do before */
	for (i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
		assert_int_equal(pause_ms(), pauses[i]);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	/* One look that finds a CPU, and it begins anew. */
	flood(0.9, 2);
	assert_false(pace.stands);
	assert_int_equal(pause_ms(), 250);
}

/* A CPU is there, or nothing is left to do, or it is the disk that it waits for. */
static void test_goes_on(void **state)
{
	(void)state;
	load.wants_cpu = true;
	flood(0.6, 100);
	assert_false(pace.stands);
	gets = 0.1;
	turns(100, 1 << 20, UINT32_MAX);
	assert_false(pace.stands);
	load.wants_cpu = false;
	flood(0.1, 100);
	assert_false(pace.stands);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	assert_int_equal(pace.raised, 0);
}

/* It does not wait for the file to be full. */
static void test_stands_while_there_is_room(void **state)
{
	(void)state;
	load.wants_cpu = true;
	load.file_bytes = FILE_MAX / 2;
	flood(0.1, 3);
	assert_true(pace.stands);
	load.file_bytes++;
	flood(0, 1);
	assert_false(pace.stands);
	flood(0.1, 100);
	assert_false(pace.stands);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

/* What comes next costs little, and is late. */
static void test_stands_no_more_when_cheap(void **state)
{
	(void)state;
	load.wants_cpu = true;
	gets = 0.1;
	turns(10, 1 << 20, 1 << 19);
	assert_true(pace.stands);
	turns(20, 1000, 0);
	assert_false(pace.stands);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

static void *at_the_gate(void *arg)
{
	pace__gate(&pace);
	*(volatile bool *)arg = true;
	return NULL;
}

/* Somebody waits for it: at once. */
static void test_gate(void **state)
{
	volatile bool through = false;
	pthread_t thread;

	(void)state;
	load.wants_cpu = true;
	flood(0.1, 3);
	assert_true(pace.stands);
	assert_int_equal(pthread_create(&thread, NULL, at_the_gate, (void *)&through), 0);
	usleep(50000);
	assert_false(through);
	pace__raise(&pace);
	pthread_join(thread, NULL);
	assert_true(through);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	pace__gate(&pace);
	flood(0.1, 2);
	assert_true(pace.stands);
}

static void test_hold(void **state)
{
	(void)state;
	pace__hold(&pace);
	pace__again(&pace);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	turns(20, 1000, 1000);
	pace__hold(&pace);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	pace__again(&pace);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
	/* A turn does not take it off its CPU in between, and what it decided holds after that. */
	pace__raise(&pace);
	pace__hold(&pace);
	turns(20, 1000, 1000);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	pace__again(&pace);
	assert_int_equal(sched_getscheduler(0), SCHED_IDLE);
}

static struct {
	atomic_uint rounds;
	atomic_bool over;
} holder;

static void *holds(void *arg)
{
	(void)arg;
	pace__begin(&pace);
	for (holder.rounds = 1; !holder.over; holder.rounds++) {
		pace__hold(&pace);
		pace__again(&pace);
	}
	return NULL;
}

static void rounds(unsigned int n)
{
	for (n += holder.rounds; (int)(holder.rounds - n) < 0;)
		sched_yield();
}

/* The thread and the one that has the turns at the same time: what was wanted last is what it is. */
static void test_hold_at_any_time(void **state)
{
	pthread_t thread;
	int i;

	(void)state;
	holder.rounds = 0;
	holder.over = false;
	assert_int_equal(pthread_create(&thread, NULL, holds, NULL), 0);
	rounds(1);
	for (i = 0; i < 300; i++) {
		turns(1, 1000, 1000);
		assert_true(pace.idle);
		rounds(2);
		pace__raise(&pace);
		rounds(2);
		assert_int_equal(sched_getscheduler(pace.tid), SCHED_OTHER);
	}
	holder.over = true;
	pthread_join(thread, NULL);
}

static int nice_value(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

/* Somebody waits for it to end, and others for its CPU. */
static void test_ends(void **state)
{
	(void)state;
	turns(20, 1000, 1000);
	pace__end(&pace);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
	assert_int_equal(nice_value(), 19);
	/* A tenth of a CPU is enough; so is nothing, where it waits for a disk. */
	gets = 0.11;
	load.wants_cpu = true;
	turns(100, 0, 0);
	assert_int_equal(nice_value(), 19);
	gets = 0;
	load.wants_cpu = false;
	turns(100, 0, 0);
	assert_int_equal(nice_value(), 19);
	assert_false(pace.lift);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

/* There are those that do not yield. */
static void test_ends_some_time(void **state)
{
	static const int values[] = {14, 9, 4, 0, 0};
	size_t i;

	(void)state;
	turns(20, 1000, 1000);
	turns(10, 1 << 20, 0); /* it stands still meanwhile */
	pace__end(&pace);
	gets = 0.09;
	load.wants_cpu = true;
	turns(10, 0, 0);
	assert_int_equal(nice_value(), 19);
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		turns(10, 0, 0);
		assert_int_equal(nice_value(), values[i]);
		/* Like everybody else it gets nothing, either. */
		assert_int_equal(pace.lift, i == 4);
	}
	pace__end(&pace);
	assert_int_equal(nice_value(), 0);
}

/* What comes then finds no room: that would be lost. */
static void test_ends_but_is_full(void **state)
{
	(void)state;
	pace__end(&pace);
	pace__raise(&pace);
	assert_int_equal(nice_value(), 0);
	pace__end(&pace);
	assert_int_equal(nice_value(), 0);
}

/* What somebody chose stays. */
static void test_chosen(void **state)
{
	const struct sched_param none = {0};

	(void)state;
	assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	pace__begin(&pace);
	assert_false(pace.may);
	turns(20, 1000, 1000);
	pace__raise(&pace);
	pace__hold(&pace);
	pace__again(&pace);
	pace__end(&pace);
	assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
	assert_int_equal(nice_value(), 0);
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_gives_way),
		TEST(test_flood),
		TEST(test_flood_ends),
		TEST(test_starved),
		TEST(test_starved_early),
		TEST(test_file_fills_up),
		TEST(test_raise),
		TEST(test_hold),
		TEST(test_hold_at_any_time),
		TEST(test_ends),
		TEST(test_ends_some_time),
		TEST(test_ends_but_is_full),
		TEST(test_stands),
		TEST(test_goes_on),
		TEST(test_stands_while_there_is_room),
		TEST(test_stands_no_more_when_cheap),
		TEST(test_gate),
		cmocka_unit_test(test_chosen),
	};

	/* Root may; others by their RLIMIT_NICE, or in a container, not always. */
	pace__begin(&pace);
	if (!pace.may) {
		puts("SKIP: pace_test: a thread may not leave SCHED_IDLE again (CAP_SYS_NICE, "
		     "RLIMIT_NICE)");
		return 77;
	}
	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
