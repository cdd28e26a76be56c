/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernels with PREEMPT_RT, on which what we do may not be done. */
#ifndef NCCLSCOPE_REALTIME_H
#define NCCLSCOPE_REALTIME_H

#include <stdbool.h>

struct btf;

/*
 * Whether whoever writes into BPF's ring buffer may sleep on this kernel: its lock does with PREEMPT_RT, before 6.12 and what has that change
 * as well ("bpf: Use raw_spinlock_t in ringbuf"), and we write with interrupts off, at a switch. The kernel would say "scheduling while
 * atomic", and may stand still. `btf`: its types; `version`: as uname(2) has it.
 */
bool realtime_ring_sleeps(const struct btf *btf, const char *version);
/* The same of the running kernel. */
bool realtime_ring_sleeps_here(const struct btf *btf);

#define REALTIME_RING_SLEEPS "the ring buffer's lock may sleep on this PREEMPT_RT kernel"

#endif
