/* SPDX-License-Identifier: BSD-2-Clause */
/* Searching in what is in the order of time, where what is asked for is mostly young. */
#ifndef NCCLSCOPE_SEARCH_H
#define NCCLSCOPE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The first i from lo to before hi for which is_later(of, i, ns), and then for all that follow; hi if there is none. From
 * the end backwards in steps that double, so that few are touched that are not in the cache.
 */
static inline uint64_t search_later(uint64_t lo, uint64_t hi,
				    bool (*is_later)(const void *of, uint64_t i, uint64_t ns),
				    const void *of, uint64_t ns)
{
	uint64_t mid, step;

	for (step = 8; hi - lo > step; step *= 2) {
		mid = hi - step;
		if (!is_later(of, mid, ns)) {
			lo = mid + 1;
			break;
		}
		hi = mid;
	}
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (is_later(of, mid, ns))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

#endif
