// SPDX-License-Identifier: BSD-2-Clause
/* loader/lib/clock.c: one monotone function, near the truth while the rate changes, and the machine's own. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "clock.h"
#include "pid_stat.h"

#define HZ 2500000000.0
#define MS 1000000ULL

static struct clock_fit *fit;
static uint64_t seed = 7;

static uint64_t rnd(uint64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

static int setup(void **state)
{
	(void)state;
	fit = malloc(sizeof(*fit));
	return clock_fit__init(fit, SCOPE_CLOCK_TSC);
}

static int teardown(void **state)
{
	(void)state;
	clock_fit__free(fit);
	free(fit);
	return 0;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t to_ns(uint64_t ticks)
{
	return clock_fit__to_ns(fit, SCOPE_CLOCK_TSC, ticks);
}

/*
 * Ten minutes at 10 ms a pair, during which NTP slews CLOCK_MONOTONIC by up to 500 ppm and changes its
 * mind every minute; each pair is off by up to 60 ns. Records lie between the pairs.
 */
static void test_rate_changes(void **state)
{
	double ticks = 1e12, ns = 5e9, rate = 1.0;
	uint64_t i, before, last = 0, worst = 0, t, real;

	(void)state;
	clock_fit__add(fit, (uint64_t)ticks, (uint64_t)ns);
	for (i = 0; i < 60000; i++) {
		if (i % 6000 == 0)
			rate = 1.0 + ((double)rnd(1001) - 500) / 1e6;
		before = (uint64_t)ticks;
		ticks += 10e6 * HZ / 1e9;
		ns += 10e6 * rate;
		clock_fit__add(fit, (uint64_t)ticks, (uint64_t)ns + rnd(60));
		for (t = before; t < (uint64_t)ticks; t += 5000000) {
			real = (uint64_t)(ns - (ticks - (double)t) * 1e9 / HZ * rate);
			if (distance(to_ns(t), real) > worst)
				worst = distance(to_ns(t), real);
			assert_true(to_ns(t) >= last);
			last = to_ns(t);
		}
	}
	assert_true(worst < 100);	    /* far below the promised microsecond */
	assert_true(fit->error_ns < 10000); /* where the rate jumped, seen at the next pair */
	assert_true(distance(fit->hz, (uint64_t)HZ) < HZ * 600e-6);
}

/* What was converted stays what it was, however many pairs come after it. */
static void test_stable(void **state)
{
	uint64_t i, ticks = 1000, ns = 1000000, at[100], was[100];

	(void)state;
	for (i = 0; i < 50000; i++) {
		clock_fit__add(fit, ticks, ns);
		if (i % 500 == 499) {
			at[i / 500] = ticks - rnd(2000);
			was[i / 500] = to_ns(at[i / 500]);
		}
		ticks += 20000 + rnd(10000);
		ns += 10000 + rnd(10);
	}
	for (i = 0; i < 100; i++)
		assert_int_equal(to_ns(at[i]), was[i]);
}

/* More pairs than the history holds: old records still come out in order. */
static void test_long(void **state)
{
	uint64_t i, ticks = 0, ns = 0, last = 0, v;

	(void)state;
	for (i = 0; i < 3 * CLOCK_HISTORY; i++) {
		ticks += 2500000;
		ns += MS;
		clock_fit__add(fit, ticks, ns);
	}
	for (v = ticks / 2; v <= ticks; v += ticks / 5000) {
		assert_true(to_ns(v) >= last);
		last = to_ns(v);
		assert_true(distance(last, (uint64_t)((double)v / 2.5)) < 1000);
	}
}

static void test_hostile(void **state)
{
	uint64_t i, v, last = 0;

	(void)state;
	assert_int_equal(to_ns(5), 0); /* no pair yet */
	clock_fit__add(fit, 1000, 1000);
	assert_int_equal(to_ns(5), 0);
	clock_fit__add(fit, 1000 + 2500000, 1000 + MS);
	clock_fit__add(fit, 1000, 5 * MS);		/* back: ignored */
	clock_fit__add(fit, 1000 + 5000000, 1000);	/* back: ignored */
	clock_fit__add(fit, 1000 + 2500000, 1000 + MS); /* again: ignored */
	assert_int_equal(to_ns(1000 + 2500000), 1000 + MS);
	for (i = 0; i < 64; i++) { /* monotone to the ends of the range */
		v = to_ns((1ULL << i) - 1);
		assert_true(v >= last);
		last = v;
	}
	assert_true(to_ns(UINT64_MAX) >= last);
	assert_int_equal(clock_fit__to_ns(fit, SCOPE_CLOCK_MONOTONIC, 12345), 12345);
	assert_int_equal(clock_fit__to_ns(fit, SCOPE_CLOCK_CNTVCT, 12345), 0);
}

/*
 * A machine that sleeps may begin its counter anew when it wakes up, while CLOCK_MONOTONIC goes on: so do records, which lie between the
 * pairs of after. What is left of before is of a time that its chunk bounds.
 */
static void test_begins_anew(void **state)
{
	uint64_t i, ticks = 1ULL << 50, ns = 400000 * 1000 * MS, was, v, last = 0;

	(void)state;
	for (i = 0; i < 100; i++, ticks += 125000000, ns += 50 * MS)
		clock_fit__add(fit, ticks, ns);
	was = ticks - 125000000;
	assert_int_equal(to_ns(was), ns - 50 * MS);
	ticks = 1000000;
	for (i = 0; i < 10; i++, ticks += 125000000, ns += 50 * MS)
		clock_fit__add(fit, ticks, ns);
	for (v = 1000000; v < ticks - 125000000; v += 1000000) {
		assert_true(distance(to_ns(v), ns - (ticks - v) * 2 / 5) < 10);
		assert_true(to_ns(v) >= last);
		last = to_ns(v);
	}
	assert_true(to_ns(was) > ns);
	assert_true(distance(fit->hz, (uint64_t)HZ) < 10);
	/* A little back is another CPU's: that pair is left, and the others stay. */
	clock_fit__add(fit, ticks - 125000000 - 1000, ns);
	assert_true(distance(to_ns(ticks - 125000000), ns - 50 * MS) < 10);
}

static void sample(void)
{
	struct clock_pair pair;

	if (clock_pair__read(fit->source, &pair))
		clock_fit__add(fit, pair.ticks, pair.ns);
}

/* This machine's own counter: between two readings of the clock lies what the fit says. */
static void test_this_machine(void **state)
{
	uint64_t before, after, ticks, ns, error;
	int i;

	(void)state;
	clock_fit__free(fit);
	assert_int_equal(clock_fit__init(fit, clock_source()), 0);
	for (i = 0; i < 30; i++) {
		sample();
		usleep(2000);
		before = monotonic_ns();
		ticks = clock_ticks(fit->source);
		after = monotonic_ns();
		if (!clock_fit__covers(fit, after))
			sample();
		if (i < 5 && fit->source != SCOPE_CLOCK_MONOTONIC)
			continue;
		ns = clock_fit__to_ns(fit, fit->source, ticks);
		assert_true(ns + 1000 >= before && ns <= after + 1000);
	}
	assert_true(realtime_offset_ns(&error) != 0);
	assert_true(error < MS);
}

/* ---- A time namespace -------------------------------------------------------------------------- */

/* In a namespace whose clocks are hours ahead: this program anew, which writes what it takes for the time, and for our start, to `fd`. */
static void in_namespace(int fd)
{
	static const char ahead[] = "monotonic 3600 0\nboottime 7200 0";
	char arg[16], pid[16];
	int offsets;

	if (unshare(CLONE_NEWTIME))
		_exit(77);
	offsets = open("/proc/self/timens_offsets", O_WRONLY);
	if (write(offsets, ahead, strlen(ahead)) != (ssize_t)strlen(ahead))
		_exit(77);
	snprintf(arg, sizeof(arg), "%d", fd);
	snprintf(pid, sizeof(pid), "%d", getppid());
	if (!fork()) /* who has unshared it is not in there itself */
		execl("/proc/self/exe", "clock_test", arg, pid, NULL);
	wait(NULL);
	_exit(0);
}

static int tell_time(int fd, pid_t pid)
{
	uint64_t begin = monotonic_ns(), all[3] = {begin};
	struct pid_stat stat = {0};
	struct timespec until = monotonic_until(begin + 20 * MS);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	all[1] = monotonic_ns();
	pid_stat__read(pid, &stat);
	all[2] = stat.start;
	return write(fd, all, sizeof(all)) != (ssize_t)sizeof(all);
}

/* BPF has the node's clock, and so have we wherever we run. */
static void test_time_namespace(void **state)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), told[3];
	struct pid_stat self;
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid)
		in_namespace(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fds[1]);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(read(fds[0], told, sizeof(told)), sizeof(told));
	close(fds[0]);
	assert_in_range(told[0], begin, clock_ns(CLOCK_MONOTONIC));
	assert_in_range(told[1], told[0] + 20 * MS, clock_ns(CLOCK_MONOTONIC));
	assert_int_equal(pid_stat__read(getpid(), &self), 0);
	assert_int_equal(told[2], self.start);
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_rate_changes),   TEST(test_stable),	   TEST(test_long),
		TEST(test_hostile),	   TEST(test_begins_anew), TEST(test_this_machine),
		TEST(test_time_namespace),
	};

	if (argc > 2)
		return tell_time(atoi(argv[1]), atoi(argv[2]));
	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
