// SPDX-License-Identifier: BSD-2-Clause
/* loader/node/patience.c: what is slow, what hangs, and for how long a user's processes are waited for in all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "clock.h"
#include "patience.h"

#define MS 1000000ull

/* There: after so many ms, the same. */
static int answer_after(struct patience_call *call)
{
	uint32_t ms;

	memcpy(&ms, call->in, sizeof(ms));
	usleep(ms * 1000);
	call->out = malloc(sizeof(ms));
	if (!call->out)
		return -ENOMEM;
	memcpy(call->out, &ms, sizeof(ms));
	call->out_len = sizeof(ms);
	return 0;
}

static int ask(uint32_t ms, uint32_t uid)
{
	struct patience_call call = {.in = &ms, .in_len = sizeof(ms), .in_fd = -1};
	int err = patience__call(answer_after, &call, uid);

	if (!err) {
		assert_int_equal(call.out_len, sizeof(ms));
		assert_memory_equal(call.out, &ms, sizeof(ms));
	}
	free(call.out);
	return err;
}

/* Each answers in time, and all of them together would hold us up for long. */
static void test_budget(void **state)
{
	uint64_t begin = monotonic_ns(), took;
	int i, err = 0;

	(void)state;
	for (i = 0; i < 20 && !err; i++)
		err = ask(300, 1);
	took = monotonic_ns() - begin;
	assert_int_equal(err, -EBUSY);
	assert_in_range(took, 2000 * MS, 4000 * MS);
	begin = monotonic_ns();
	for (i = 0; i < 100; i++)
		assert_int_equal(ask(300, 1), -EBUSY);
	assert_true(monotonic_ns() - begin < 200 * MS); /* at once */
	assert_int_equal(ask(300, 2), 0);		/* somebody else's */
}

/* As time goes by, there is patience again: at most 300 ms in 20 times that. */
static void test_again(void **state)
{
	uint64_t end = monotonic_ns() + 8000 * MS;
	int err;

	(void)state;
	do {
		usleep(100000);
		err = ask(0, 1);
	} while (err == -EBUSY && monotonic_ns() < end);
	assert_int_equal(err, 0);
}

/* What answers soon is never too much. */
static void test_soon(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		assert_int_equal(ask(1, 3), 0);
}

/* One that hangs is waited for once; of all others, as ever. */
static void test_hangs(void **state)
{
	(void)state;
	assert_int_equal(ask(30000, 4), -ETIMEDOUT);
	assert_int_equal(ask(0, 4), 0);
	assert_int_equal(ask(0, 5), 0);
}

/* More users than are known: who took the most is not forgotten for them. */
static void test_many_users(void **state)
{
	uint32_t uid;
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(ask(900, 6), 0);
	for (uid = 1000; uid < 1070; uid++)
		assert_int_equal(ask(55, uid), 0);
	assert_int_equal(ask(0, 6), -EBUSY);
}

static void test_pause(void **state)
{
	static const uint64_t s[] = {30, 60, 120, 240, 480, 600, 600};
	uint64_t ns = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
		ns = patience__pause(ns);
		assert_int_equal(ns, s[i] * NSEC_PER_SEC);
	}
}

static int end(void **state)
{
	(void)state;
	patience__end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_budget),	   cmocka_unit_test(test_again),
		cmocka_unit_test(test_soon),	   cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_many_users), cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests_name("patience", tests, NULL, end);
}
