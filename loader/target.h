/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process with the plugin in it, seen from outside: its control block, its arming, its thread
 * buffers. Everything read is the job's and checked. All access goes through one /proc/PID/mem, which
 * stays with the memory that it was opened for: a pid names another program after an exec (of a setuid
 * one, say) and another process after its end, and the addresses that we read and write are the job's.
 */
#ifndef NCCLSCOPE_TARGET_H
#define NCCLSCOPE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "scope_abi.h"

struct target {
	pid_t pid;
	int mem;	  /* its /proc/PID/mem; -1 closed */
	uint64_t control; /* address of struct scope_control in the process */
	char path[4096];  /* of the plugin, openable by us: the very file that is mapped */
};

/*
 * Finds the plugin in a process and holds on to it until target__close(). 0; -ESRCH no such process; -ENOENT it has no plugin; -EPROTO a plugin of
 * another ABI version; or what /proc said.
 */
int target__find(struct target *t, pid_t pid);

/* Safe twice, and after a target__find() that failed. */
void target__close(struct target *t);

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
int target__read_tbuf(const struct target *t, uint64_t tbuf, uint64_t pos,
		      struct scope_ev_chunk *chunk);

#endif
