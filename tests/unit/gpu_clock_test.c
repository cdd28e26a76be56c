// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/decode/gpu_clock.c: what two clocks are apart lies within the error that it says, whatever they drift and however late
 * one is told; what contradicts it is believed; and no stamp does harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "clock.h"
#include "gpu_clock.h"

#define EPOCH 1795807284000000000ULL
#define US    1000ULL
#define MS    1000000ULL
#define S     ((uint64_t)NSEC_PER_SEC)

/* The GPU's clock at `ns` of the node's, of one that is `ppm` faster and counts in steps. */
static uint64_t gpu_at(uint64_t ns, int ppm, uint64_t grain)
{
	int64_t drift = (int64_t)ns / 1000000 * ppm;

	return (EPOCH + ns + (uint64_t)drift) / grain * grain;
}

static void bound(const struct gpu_clock *g, uint64_t now, uint64_t stamp, uint64_t true_ns)
{
	uint64_t error, ns;
	int64_t offset;

	assert_true(gpu_clock__offset(g, now, &offset, &error));
	ns = stamp + (uint64_t)offset;
	if (ns + error < true_ns || ns > true_ns + error)
		fail_msg("%llu is not within %llu of %llu", (unsigned long long)ns,
			 (unsigned long long)error, (unsigned long long)true_ns);
}

static void test_one_side(void **arg)
{
	struct gpu_clock g = {0};
	uint64_t error;
	int64_t offset;

	(void)arg;
	assert_false(gpu_clock__offset(&g, S, &offset, &error));
	gpu_clock__add(&g, EPOCH + S, 0, S + 10 * US);
	assert_false(gpu_clock__offset(&g, S, &offset, &error));
	gpu_clock__add(&g, EPOCH + S, S - 10 * US, 0);
	assert_true(gpu_clock__offset(&g, S + 10 * US, &offset, &error));
	assert_in_range(error, 10 * US, 12 * US);
	assert_in_range(offset + (int64_t)EPOCH + 1000, 0, 2000);
}

/* Kernels at any distance, seen at any delay, of clocks that drift as far as they may. */
static void test_drift(void **arg)
{
	static const int ppm[] = {0, 7, -7, GPU_DRIFT_PPM - 5, 5 - GPU_DRIFT_PPM};
	static const uint64_t grains[] = {1, 32, GPU_GRAIN_NS};
	struct gpu_clock g;
	size_t i, j;
	int n;

	(void)arg;
	srandom(7);
	for (i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++) {
		for (j = 0; j < sizeof(grains) / sizeof(grains[0]); j++) {
			uint64_t t = S;

			g = (struct gpu_clock){0};
			for (n = 0; n < 20000; n++) {
				uint64_t begin = t + (uint64_t)random() % (200 * US);
				uint64_t seen = begin + (uint64_t)random() % (100 * US);
				uint64_t stamp = gpu_at(begin, ppm[i], grains[j]);

				gpu_clock__add(&g, stamp, random() % 3 ? t : 0, seen);
				if (n > 10)
					bound(&g, seen, stamp, begin);
				t = seen +
				    (uint64_t)random() % (random() % 100 ? 300 * US : 900 * MS);
			}
		}
	}
}

/* The closest bounds hold, and those of long ago less and less, until they are none. */
static void test_age(void **arg)
{
	struct gpu_clock g = {0};
	uint64_t error;
	int64_t offset;

	(void)arg;
	gpu_clock__add(&g, EPOCH + S, S - US, S + US);
	gpu_clock__add(&g, EPOCH + S + MS, S, S + 900 * MS);
	assert_true(gpu_clock__offset(&g, S + MS, &offset, &error));
	assert_in_range(error, US, 3 * US);
	assert_true(gpu_clock__offset(&g, 11 * S, &offset, &error));
	assert_in_range(error, 10 * S / 1000000 * GPU_DRIFT_PPM,
			10 * S / 1000000 * GPU_DRIFT_PPM + 3 * US);
	assert_false(gpu_clock__offset(&g, 200 * S, &offset, &error));
	gpu_clock__add(&g, EPOCH + 200 * S, 200 * S - US, 200 * S + US);
	assert_true(gpu_clock__offset(&g, 200 * S, &offset, &error));
	assert_in_range(error, US, 3 * US);
}

/* A driver that was loaded anew: the clock has another epoch. */
static void test_set(void **arg)
{
	static const int64_t by[] = {3600 * NSEC_PER_SEC, -3600 * NSEC_PER_SEC, 1000000, -1000000};
	struct gpu_clock g;
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
		uint64_t stamp = EPOCH + 2 * S + (uint64_t)by[i];

		g = (struct gpu_clock){0};
		gpu_clock__add(&g, EPOCH + S, S - US, S + US);
		bound(&g, S, EPOCH + S, S);
		gpu_clock__add(&g, stamp, 2 * S - US, 2 * S + US);
		bound(&g, 2 * S, stamp, 2 * S);
	}
}

static void test_hostile(void **arg)
{
	static const uint64_t any[] = {0, 1, EPOCH, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
	size_t n = sizeof(any) / sizeof(any[0]), i, j, k;
	struct gpu_clock g = {0};
	uint64_t error;
	int64_t offset;

	(void)arg;
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			for (k = 0; k < n; k++) {
				gpu_clock__add(&g, any[i], any[j], any[k]);
				if (gpu_clock__offset(&g, any[k], &offset, &error))
					assert_true(error <= GPU_ERROR_MAX_NS + GPU_GRAIN_NS);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_side), cmocka_unit_test(test_drift),
		cmocka_unit_test(test_age),	 cmocka_unit_test(test_set),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests_name("gpu_clock", tests, NULL, NULL);
}
