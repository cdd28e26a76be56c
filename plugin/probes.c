// SPDX-License-Identifier: BSD-2-Clause
/*
 * The USDT probe sites (documented in include/scope_probes.h) and their semaphores. Each site is in a
 * noinline function of its own: arguments are then plain registers, which every tracer can parse, and those of
 * the flush probe the function's own, as which the loader reads them.
 */
#include "plugin.h"

/*
 * systemtap's <sys/sdt.h> wants one unsigned short per semaphore, named provider_probe_semaphore, in
 * section .probes. The names below are aliases into one word, in the order of union scope_sems.
 */
union scope_sems scope_sems __attribute__((section(".probes"), aligned(8), used));

#define SEM_ALIAS(probe, offset)                                                                   \
	__asm__(".globl ncclscope_" #probe "_semaphore\n"                                          \
		".hidden ncclscope_" #probe "_semaphore\n"                                         \
		".set ncclscope_" #probe "_semaphore, scope_sems + " #offset)

SEM_ALIAS(flush, 0);
SEM_ALIAS(start, 2);
SEM_ALIAS(state, 4);
SEM_ALIAS(stop, 6);

#define _SDT_HAS_SEMAPHORES 1
extern unsigned short ncclscope_flush_semaphore, ncclscope_start_semaphore,
	ncclscope_state_semaphore, ncclscope_stop_semaphore;
#include <sys/sdt.h>

/* Keeps an argument in a register up to the site: libbpf before 1.7 cannot parse gcc's SIB form. */
#define IN_REG(x) __asm__ volatile("" : "+r"(x))

__attribute__((noinline)) void probe_flush(void *tb, uint64_t reason)
{
	IN_REG(tb);
	IN_REG(reason);
	DTRACE_PROBE2(ncclscope, flush, tb, reason);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void probe_start(uint64_t id, uint64_t type, const void *rec)
{
	IN_REG(id);
	IN_REG(type);
	IN_REG(rec);
	DTRACE_PROBE3(ncclscope, start, id, type, rec);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void probe_state(uint64_t id, uint64_t state, uint64_t arg)
{
	IN_REG(id);
	IN_REG(state);
	IN_REG(arg);
	DTRACE_PROBE3(ncclscope, state, id, state, arg);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void probe_stop(uint64_t id)
{
	IN_REG(id);
	DTRACE_PROBE1(ncclscope, stop, id);
	__asm__ volatile("" ::: "memory");
}
