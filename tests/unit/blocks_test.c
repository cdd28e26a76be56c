// SPDX-License-Identifier: BSD-2-Clause
/* loader/decode/blocks.c: each block is somebody's alone, and what nobody uses is the kernel's again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "blocks.h"

#define ALL (BLOCKS_PIECES * (BLOCKS_PIECE / BLOCKS_SIZE))

static struct blocks b;
static unsigned char *block[ALL];

static void take_all(void)
{
	int i;

	for (i = 0; i < (int)ALL; i++) {
		block[i] = blocks__get(&b);
		assert_non_null(block[i]);
		assert_int_equal((uintptr_t)block[i] % BLOCKS_SIZE, 0);
		memset(block[i], i % 251, BLOCKS_SIZE);
	}
	assert_null(blocks__get(&b));
}

static void check_all(void)
{
	int i;

	for (i = 0; i < (int)ALL; i++) {
		assert_int_equal(block[i][0], i % 251);
		assert_int_equal(block[i][BLOCKS_SIZE - 1], i % 251);
	}
}

static bool is_mapped(void *at)
{
	unsigned char in[BLOCKS_SIZE / 4096];

	return !mincore(at, BLOCKS_SIZE, in) || errno != ENOMEM;
}

static void test_alone(void **state)
{
	int i;

	(void)state;
	take_all();
	check_all();
	/* Every third, and again. */
	for (i = 0; i < (int)ALL; i += 3)
		blocks__put(&b, block[i]);
	for (i = 0; i < (int)ALL; i += 3) {
		block[i] = blocks__get(&b);
		assert_non_null(block[i]);
		memset(block[i], i % 251, BLOCKS_SIZE);
	}
	assert_null(blocks__get(&b));
	check_all();
	blocks__free(&b);
}

static void test_given_back(void **state)
{
	int i;

	(void)state;
	take_all();
	for (i = 0; i < (int)ALL; i++)
		blocks__put(&b, block[i]);
	for (i = 0; i < (int)ALL; i++)
		assert_int_equal(is_mapped(block[i]), i < (int)(BLOCKS_PIECE / BLOCKS_SIZE));
	assert_ptr_equal(blocks__get(&b), block[0]);
	blocks__free(&b);
	assert_false(is_mapped(block[0]));
}

/* One block more than a piece has comes and goes: the second piece stays. */
static void test_kept(void **state)
{
	void *more;
	int i;

	(void)state;
	for (i = 0; i < (int)(BLOCKS_PIECE / BLOCKS_SIZE); i++)
		block[i] = blocks__get(&b);
	more = blocks__get(&b);
	for (i = 0; i < 3; i++) {
		blocks__put(&b, more);
		assert_true(is_mapped(more));
		assert_ptr_equal(blocks__get(&b), more);
	}
	/* What is free in it comes before another piece. */
	blocks__put(&b, block[3]);
	assert_ptr_equal(blocks__get(&b), block[3]);
	assert_true(is_mapped(more));
	blocks__free(&b);
}

/* Whose are there still is no question when all is freed. */
static void test_freed(void **state)
{
	(void)state;
	take_all();
	blocks__free(&b);
	assert_false(is_mapped(block[0]));
	assert_false(is_mapped(block[ALL - 1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
