/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For limits in seconds, which are there to tell what is slow from what never ends: TEST_SLOWER of the environment is how many
 * times longer they may be, where the CPU is emulated (tests/vm/unit.sh).
 */
#ifndef NCCLSCOPE_TESTS_SLOWER_H
#define NCCLSCOPE_TESTS_SLOWER_H

#include <stdlib.h>

static inline double slower(void)
{
	const char *env = getenv("TEST_SLOWER");
	double times = env ? atof(env) : 1;

	return times > 1 ? times : 1;
}

#endif
