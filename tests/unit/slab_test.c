// SPDX-License-Identifier: BSD-2-Clause
/* loader/lib/slab.c: items do not overlap and keep what is written to them, pages go back, the budget pays for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "slab.h"

#define ITEM 840
#define N    10000

static struct budget budget;
static struct budget_part part;
static struct slab slab;
static unsigned char *items[N];

static int setup(void **state)
{
	(void)state;
	budget = (struct budget){.max = 1ull << 30};
	part = (struct budget_part){.of = &budget};
	slab__init(&slab, ITEM, 32);
	memset(items, 0, sizeof(items));
	return 0;
}

static int teardown(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		if (items[i])
			slab__give(&slab, items[i], &part);
	slab__free(&slab, &part);
	assert_true(budget.used == 0 && part.used == 0);
	return 0;
}

static void take(uint32_t i)
{
	items[i] = slab__take(&slab, &part);
	assert_non_null(items[i]);
	assert_int_equal((uintptr_t)items[i] % 8, 0);
	memset(items[i], (int)(i % 251), ITEM);
}

static void give(uint32_t i)
{
	uint32_t at;

	for (at = 0; at < ITEM; at++)
		assert_int_equal(items[i][at], i % 251);
	slab__give(&slab, items[i], &part);
	items[i] = NULL;
}

static void test_random(void **state)
{
	uint64_t seed = 88172645463325252ull;
	uint32_t round, i;

	(void)state;
	for (round = 0; round < 20 * N; round++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		i = (uint32_t)(seed >> 32) % N;
		if (items[i])
			give(i);
		else
			take(i);
	}
}

/* After much at once, what goes on living moves to few pages: all but a few are given back. */
static void test_gives_back(void **state)
{
	uint64_t most, steady;
	uint32_t i, round;

	(void)state;
	for (i = 0; i < N; i++)
		take(i);
	most = budget.used;
	assert_true(most > (uint64_t)N * ITEM && most < (uint64_t)N * ITEM * 11 / 10);
	for (i = 0; i < N * 9 / 10; i++)
		give(i);
	assert_true(budget.used < most / 10 + (SLAB_KEEP + 2) * (SLAB_PAGE + 2048));
	for (round = 0; round < 5; round++) {
		for (i = 0; i < N; i++) {
			give((i + N * 9 / 10) % N);
			take(i);
		}
	}
	steady = budget.used;
	assert_true(steady < most / 10 + (SLAB_KEEP + 2) * (SLAB_PAGE + 2048));
}

/* One in twenty stays, in all pages: they are filled up again before there are new ones. */
static void test_held_pages_are_used(void **state)
{
	uint64_t most;
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		take(i);
	most = budget.used;
	for (i = 0; i < N; i++)
		if (i % 20)
			give(i);
	for (i = 0; i < N; i++)
		if (i % 20)
			take(i);
	assert_true(budget.used <= most);
}

static void test_budget(void **state)
{
	uint32_t i;

	(void)state;
	budget.max = 1u << 20;
	for (i = 0; i < N && (items[i] = slab__take(&slab, &part)); i++)
		memset(items[i], (int)(i % 251), ITEM);
	assert_true(i * ITEM > BUDGET_FLOOR / 3 && i * ITEM < 1u << 20);
	assert_null(slab__take(&slab, &part));
	/* of a page that is half empty */
	for (i = 0; i < SLAB_PAGE / ITEM; i++)
		give(i);
	for (i = 0; i < SLAB_PAGE / ITEM / 2; i++)
		take(i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gives_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held_pages_are_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
	};

	return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
