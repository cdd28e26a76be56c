// SPDX-License-Identifier: BSD-2-Clause
/* Clocks of nodes by the messages between them: what is found is never further off than it says, and it says how far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "merge_clock.h"

#define US  INT64_C(1000)
#define MS  INT64_C(1000000)
#define SEC INT64_C(1000000000)
#define NOW (1800000000 * SEC + SEC / 4)
#define MAX 64

/* A world in which the right time is known. */
static struct merge_clock *clock_;
static struct merge_fit fits[MAX];
static int64_t ahead[MAX]; /* by how much a node's clock is, at NOW */
static int64_t drift[MAX]; /* in ppm, from then on */
static uint64_t seed;
static struct merge_fit many[400];

static uint32_t any(uint32_t n)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((seed >> 33) % n);
}

static int64_t of_node(uint32_t node, int64_t at)
{
	return at + ahead[node] + (at - NOW) * drift[node] / 1000000;
}

static int begin(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < MAX; i++)
		ahead[i] = drift[i] = 0;
	seed = 1;
	clock_ = merge_clock__new();
	return !clock_;
}

static int end(void **state)
{
	(void)state;
	merge_clock__free(clock_);
	return 0;
}

static void message(uint32_t from, uint32_t to, int64_t at, int64_t takes)
{
	assert_int_equal(
		merge_clock__message(clock_, from, of_node(from, at), to, of_node(to, at + takes)),
		0);
}

static void solve(uint32_t n, uint32_t ref)
{
	memset(fits, 0, sizeof(fits));
	assert_int_equal(merge_clock__solve(clock_, n, ref, fits), 0);
}

/* By how much the fit of a node is off at a time. */
static int64_t off(uint32_t node, uint32_t ref, int64_t at)
{
	return llabs(of_node(node, at) + fits[node].add - of_node(ref, at));
}

static void the_fastest_ones_count(void **state)
{
	int i;

	(void)state;
	ahead[1] = 7300 * US;
	for (i = 0; i < 1000; i++) {
		message(0, 1, NOW + i * 40 * US, 30 * US + any(5000) * US);
		message(1, 0, NOW + i * 40 * US, 50 * US + any(5000) * US);
	}
	message(0, 1, NOW, 30 * US);
	message(1, 0, NOW, 50 * US);
	solve(2, 0);
	assert_int_equal(fits[0].add, 0);
	assert_int_equal(fits[0].error, 0);
	assert_int_equal(fits[1].add,
			 -7300 * US + 10 * US); /* half of by how much the ways differ */
	assert_in_range(fits[1].error, 40 * US,
			46 * US); /* one window, of which drift is not known */
	assert_true(off(1, 0, NOW) <= fits[1].error);
	solve(2, 1); /* seen from the other */
	assert_int_equal(fits[0].add, 7300 * US - 10 * US);
}

/* As in a ring: what goes is answered only all around. */
static void a_way_back_over_others(void **state)
{
	uint32_t i, turn;

	for (turn = 0; turn < 2; turn++) {
		end(state);
		begin(state);
		ahead[1] = turn ? 3 * SEC : 3 * MS;
		ahead[2] = -40 * MS;
		for (i = 0; i < 3; i++)
			message(i, (i + 1) % 3, NOW, 20 * US);
		solve(3, 0);
		for (i = 1; i < 3; i++) {
			assert_in_range(fits[i].error, 30 * US, 40 * US);
			assert_true(off(i, 0, NOW) <= fits[i].error);
		}
	}
}

static void without_a_way_back(void **state)
{
	(void)state;
	ahead[1] = -5 * MS;
	ahead[2] = -5 * MS;
	message(0, 1, NOW,
		10 * US); /* arrives before it was sent: at least 4.99 ms are to be added */
	message(2, 0, NOW, 10 * US); /* says nothing against its clock */
	solve(4, 0);
	assert_int_equal(fits[1].error, -1);
	assert_int_equal(fits[1].add, 4990 * US);
	assert_int_equal(fits[2].error, -1);
	assert_int_equal(fits[2].add, 0);
	assert_int_equal(fits[3].error, -1); /* nothing at all is known of it */
	assert_int_equal(fits[3].add, 0);
	/* what else is known of their clocks counts as far as that goes */
	fits[1].add = 4 * MS;
	fits[2].add = fits[3].add = 7 * MS;
	assert_int_equal(merge_clock__solve(clock_, 4, 0, fits), 0);
	assert_int_equal(fits[1].add, 4990 * US);
	assert_int_equal(fits[2].add, 5010 * US);
	assert_int_equal(fits[3].add, 7 * MS);
	assert_int_equal(fits[3].error, -1);
}

/* 20 ppm are 12 ms in ten minutes: more than the messages take, also within a second. */
static void a_clock_that_drifts(void **state)
{
	const int64_t last = NOW + 600 * SEC;
	int64_t at;

	(void)state;
	ahead[1] = 2 * MS;
	drift[1] = 20;
	for (at = NOW; at <= last; at += 10 * MS) {
		message(0, 1, at, 5 * US + any(20) * US);
		message(1, 0, at, 5 * US + any(20) * US);
	}
	solve(2, 0);
	assert_true(off(1, 0, NOW) <= fits[1].error);
	assert_true(off(1, 0, last) <= fits[1].error);
	assert_in_range(fits[1].error, 6000 * US,
			8000 * US); /* a window is an eighth, and as much is added */
	solve(2, 1);
	assert_true(off(0, 1, NOW) <= fits[0].error && off(0, 1, last) <= fits[0].error);
}

/* What comes back comes back late, so that one bound moves with the clock and the other says little. */
static void a_clock_that_drifts_seen_from_one_side(void **state)
{
	const int64_t last = NOW + 5 * SEC;
	int64_t at;

	(void)state;
	drift[1] = 80;
	for (at = NOW; at <= last; at += MS) {
		message(0, 1, at, 5 * US + any(20) * US);
		message(1, 0, at, 2 * MS + any(20) * US);
	}
	solve(2, 0);
	assert_true(off(1, 0, NOW) <= fits[1].error && off(1, 0, last) <= fits[1].error);
	solve(2, 1);
	assert_true(off(0, 1, NOW) <= fits[0].error && off(0, 1, last) <= fits[0].error);
}

/* Little traffic in a while: what was before says less the longer that is ago, and the more the clock can have drifted by then. */
static void windows_that_say_little(void **state)
{
	int64_t near;
	int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		message(0, 1, NOW + i * SEC, 20 * US);
		message(1, 0, NOW + i * SEC, 20 * US);
	}
	solve(2, 0);
	near = fits[1].error;
	assert_in_range(near, 20 * US, 45 * US);
	message(0, 1, NOW + 100 * SEC, 900 * MS);
	message(1, 0, NOW + 100 * SEC, 20 * US);
	solve(2, 0);
	assert_int_equal(fits[1].add, 0);
	assert_in_range(fits[1].error, 100 * US, 250 * US);
	/* and still less an hour later: all that there was is one window then */
	assert_int_equal(merge_clock__time(clock_, 0, NOW + 3600 * SEC), 0);
	solve(2, 0);
	assert_in_range(fits[1].error, 1 * MS, 400 * MS);
}

/* Whichever clock is wrong, by an hour: traces of 20 s are not of an hour for that. */
static void a_wrong_clock(void **state)
{
	const int64_t last = NOW + 20 * SEC;
	int64_t at, error = 0;
	uint32_t wrong, i;

	for (wrong = 0; wrong < 8; wrong++) {
		end(state);
		begin(state);
		drift[1] = 30;
		if (wrong)
			ahead[wrong / 2] = (wrong % 2 ? 3600 : -3600) * SEC + 20 * MS;
		for (at = NOW; at < last; at += 10 * MS)
			for (i = 0; i < 4; i++) {
				message(i, (i + 1) % 4, at, 50 * US + any(500) * US);
				message((i + 1) % 4, i, at, 50 * US + any(500) * US);
			}
		for (i = 0; i < 4; i++)
			assert_int_equal(merge_clock__time(clock_, i, of_node(i, last)), 0);
		solve(4, wrong % 4);
		for (i = 0; i < 4; i++) {
			assert_true(off(i, wrong % 4, NOW) <= fits[i].error);
			assert_true(off(i, wrong % 4, last) <= fits[i].error);
			error = !wrong && fits[i].error > error ? fits[i].error : error;
			assert_in_range(fits[i].error, 0, 2 * error);
		}
	}
}

/* It gets slow, and drifts: narrow windows from before do not stand for all of it. */
static void traffic_that_gets_slow(void **state)
{
	const int64_t last = NOW + 600 * SEC;
	int64_t at, takes;
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		end(state);
		begin(state);
		drift[1] = (const int64_t[]){1, 2, 5, 20}[i];
		for (at = NOW; at < last; at += 50 * MS) {
			takes = at < NOW + 60 * SEC
					? 8 * US
					: (const int64_t[]){100, 100, 500, 2000}[i] * US;
			message(0, 1, at, takes + any(10) * US);
			message(1, 0, at, takes + any(10) * US);
		}
		solve(2, 0);
		assert_true(off(1, 0, NOW) <= fits[1].error && off(1, 0, last) <= fits[1].error);
	}
}

/* Twenty seconds of it, wherever windows begin in them, and then nothing moves for an hour. */
static void a_hang(void **state)
{
	const int64_t longest = 110 * SEC; /* than any window of an hour */
	int64_t first, last, at;
	int ppm;

	for (ppm = 3; ppm < 100; ppm *= 3)
		for (first = NOW; first < NOW + longest; first += 9 * SEC) {
			end(state);
			begin(state);
			drift[1] = ppm;
			for (at = first; at < first + 20 * SEC; at += 10 * MS) {
				message(0, 1, at, 50 * US);
				message(1, 0, at, 50 * US);
			}
			last = first + 3600 * SEC;
			assert_int_equal(merge_clock__time(clock_, 0, last), 0);
			solve(2, 0);
			assert_true(off(1, 0, first) <= fits[1].error);
			assert_true(off(1, 0, last) <= fits[1].error);
		}
}

/* All that goes one way is long before all that comes back: how the clock went meanwhile nothing tells. */
static void one_way_and_later_the_other(void **state)
{
	const int64_t last = NOW + 3600 * SEC;
	int64_t at;
	int i;

	for (i = 0; i < 2; i++) {
		end(state);
		begin(state);
		drift[1] = i ? 50 : -50;
		for (at = NOW; at < NOW + 600 * SEC; at += 100 * MS) {
			message(0, 1, at, 20 * US + any(1000) * US);
			message(1, 0, last - (at - NOW), 200 * MS + any(1000) * US);
		}
		solve(2, 0);
		assert_true(off(1, 0, NOW) <= fits[1].error);
		assert_true(off(1, 0, last) <= fits[1].error);
	}
}

/* Contradictions all around, of as many nodes as there may be: they end, and nothing overflows. */
static void a_ring_of_nonsense(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 400; i++)
		assert_int_equal(merge_clock__message(clock_, i, NOW, (i + 1) % 400,
						      NOW - (INT64_C(1) << 48)),
				 0);
	assert_int_equal(merge_clock__solve(clock_, 400, 0, many), 0);
}

/* Who talks to everybody, with clocks that drift: that takes no time to speak of. */
static void many_that_drift(void **state)
{
	uint32_t i, k;
	int64_t at;

	(void)state;
	for (at = NOW; at < NOW + 3600 * SEC; at += 60 * SEC)
		for (i = 0; i < 128; i++)
			for (k = 0; k < 128; k += 7)
				if (i != k)
					assert_int_equal(
						merge_clock__message(
							clock_, i, at + (at - NOW) * i / 10000000,
							k,
							at + 20 * US + (at - NOW) * k / 10000000),
						0);
	assert_int_equal(merge_clock__solve(clock_, 128, 7, many), 0);
	assert_true(many[98].error > 10 * MS);
}

/* What cannot be true of any clock: there is an end to it, and the doubt is as large as the nonsense. */
static void nonsense(void **state)
{
	(void)state;
	message(0, 1, NOW, -3 * MS);
	message(1, 2, NOW, -3 * MS);
	message(2, 0, NOW, -3 * MS);
	assert_int_equal(merge_clock__message(clock_, 0, INT64_MIN, 1, INT64_MAX), 0);
	assert_int_equal(merge_clock__message(clock_, 0, INT64_MAX, 1, 0), 0);
	assert_int_equal(merge_clock__message(clock_, 7, NOW, 9, NOW),
			 0); /* of no node that is asked for */
	solve(3, 0);
	assert_in_range(fits[1].error, 4 * MS, 10 * MS);
	assert_in_range(fits[2].error, 4 * MS, 10 * MS);
}

/* Windows get longer. */
static void a_very_long_time(void **state)
{
	int64_t i;

	(void)state;
	ahead[1] = 5 * MS;
	for (i = 0; i < 300000; i++) {
		message(0, 1, NOW + i * SEC, 40 * US);
		message(1, 0, NOW + i * SEC, 40 * US);
	}
	solve(2, 0);
	assert_int_equal(fits[1].add, -5 * MS);
	assert_in_range(fits[1].error, 40 * US, 44 * US);
}

/*
 * Whoever is the reference, and however far clocks are apart. Where that is little, all of it is in one window, and then no message
 * arrives before it was sent.
 */
static void any_network(int64_t apart)
{
	struct sent {
		uint32_t from, to;
		int64_t at, takes;
	} sent[2000], *s;
	uint32_t n = 3 + any(MAX - 3), i, ref = any(n);

	for (i = 0; i < n; i++)
		ahead[i] = ((int64_t)any(2000) - 1000) * apart / 1000;
	for (i = 0, s = sent; i < 2000; i++, s++) {
		*s = (struct sent){.from = i % n,
				   .to = i < n ? (i + 1) % n : any(n),
				   .at = NOW + i * 100 * US,
				   .takes = 5 * US + any(3000) * US};
		if (s->from == s->to)
			s->to = (s->to + 1) % n;
		message(s->from, s->to, s->at, s->takes);
	}
	solve(n, ref);
	for (i = 0; i < n; i++) {
		assert_true(fits[i].error >= 0);
		assert_true(off(i, ref, NOW) <= fits[i].error);
	}
	for (s = sent; s < sent + 2000 && apart < 100 * MS; s++)
		assert_true(of_node(s->from, s->at) + fits[s->from].add <=
			    of_node(s->to, s->at + s->takes) + fits[s->to].add);
}

static void any_networks(void **state)
{
	uint64_t i;

	for (i = 1; i < 40; i++) {
		end(state);
		begin(state);
		seed = i;
		any_network(i % 2 ? 50 * MS : 20 * SEC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_fastest_ones_count, begin, end),
		cmocka_unit_test_setup_teardown(a_way_back_over_others, begin, end),
		cmocka_unit_test_setup_teardown(without_a_way_back, begin, end),
		cmocka_unit_test_setup_teardown(a_clock_that_drifts, begin, end),
		cmocka_unit_test_setup_teardown(a_clock_that_drifts_seen_from_one_side, begin, end),
		cmocka_unit_test_setup_teardown(windows_that_say_little, begin, end),
		cmocka_unit_test_setup_teardown(a_wrong_clock, begin, end),
		cmocka_unit_test_setup_teardown(traffic_that_gets_slow, begin, end),
		cmocka_unit_test_setup_teardown(a_hang, begin, end),
		cmocka_unit_test_setup_teardown(one_way_and_later_the_other, begin, end),
		cmocka_unit_test_setup_teardown(nonsense, begin, end),
		cmocka_unit_test_setup_teardown(a_ring_of_nonsense, begin, end),
		cmocka_unit_test_setup_teardown(many_that_drift, begin, end),
		cmocka_unit_test_setup_teardown(a_very_long_time, begin, end),
		cmocka_unit_test_setup_teardown(any_networks, begin, end),
	};

	return cmocka_run_group_tests_name("merge_clock", tests, NULL, NULL);
}
