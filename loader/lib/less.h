/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NCCLSCOPE_LESS_H
#define NCCLSCOPE_LESS_H

#include <stdint.h>

/* a - b of counters, sums and times that others may have taken later, or wrongly: never below 0. */
static inline uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

#endif
