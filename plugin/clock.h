/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cheapest clock of the machine that all CPUs agree on. What it counts is the loader's business:
 * a buffer says which clock its records carry, the loader converts to CLOCK_MONOTONIC.
 */
#ifndef NCCLSCOPE_PLUGIN_CLOCK_H
#define NCCLSCOPE_PLUGIN_CLOCK_H

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif
#include "scope_abi.h"

/* enum scope_clock; set once by clock_setup(), before the first record. */
extern uint8_t clock_kind;

static inline uint64_t clock_now(void)
{
	struct timespec ts;

#if defined(__x86_64__)
	if (__builtin_expect(clock_kind == SCOPE_CLOCK_TSC, 1))
		return __rdtsc();
#elif defined(__aarch64__)
	if (__builtin_expect(clock_kind == SCOPE_CLOCK_CNTVCT, 1)) {
		uint64_t v;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
		return v;
	}
#endif
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline void clock_setup(void)
{
	uint8_t kind = SCOPE_CLOCK_MONOTONIC;

#if defined(__x86_64__)
	unsigned int a, b, c, d;

	/* Invariant TSC: one rate in all P-, C- and T-states, the same on all CPUs. */
	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)))
		kind = SCOPE_CLOCK_TSC;
#elif defined(__aarch64__)
	kind = SCOPE_CLOCK_CNTVCT; /* architected: fixed rate, system-wide */
#endif
	__atomic_store_n(&clock_kind, kind, __ATOMIC_RELAXED);
}

#endif
