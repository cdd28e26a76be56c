/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process with the plugin in it, seen from outside: its control block, its arming, its thread
 * buffers. Everything read is the job's and checked; everything written goes through process_vm_writev,
 * which respects the process' own page protections.
 */
#ifndef NCCLSCOPE_TARGET_H
#define NCCLSCOPE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "scope_abi.h"

struct target {
	pid_t pid;
	uint64_t control; /* address of struct scope_control in the process */
	char path[4096];  /* of the plugin, openable by us: below /proc/PID/root */
};

/*
 * Finds the plugin in a process. 0; -ESRCH no such process; -ENOENT it has no plugin; -EPROTO a plugin of
 * another ABI version; or what /proc said.
 */
int target__find(struct target *t, pid_t pid);

/*
 * Asks for event types on behalf of `owner` (a loader's pid, or SCOPE_OWNER_MANUAL), bumps the epoch,
 * sets the flush age, and writes NCCL's masks. mask 0 takes the request back. 0 or -errno; -EAGAIN: no
 * communicator yet, so nothing to arm until the first (the request stays).
 */
int target__want(const struct target *t, uint32_t owner, uint32_t mask, uint64_t flush_ticks);

/* The published communicators, one call each. 0 or -errno. */
int target__comms(const struct target *t, void (*fn)(void *arg, const struct scope_comm *comm),
		  void *arg);

/*
 * Reads a thread's buffer from outside, in the form that BPF would have sent: `chunk` has room for
 * sizeof(struct scope_ev_chunk) + SCOPE_TBUF_DATA_SIZE. Fills all but the identity. Returns 1 if there is
 * something beyond `pos`, 0 if not (or it was being flushed just now), -errno.
 */
int target__read_tbuf(pid_t pid, uint64_t tbuf, uint64_t pos, struct scope_ev_chunk *chunk);

#endif
