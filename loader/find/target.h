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
#include "elf_file.h"
#include "scope_abi.h"

struct scope_ev_chunk;

struct target {
	pid_t pid;
	uint32_t uid;	    /* whose it is */
	int mem;	    /* its /proc/PID/mem; -1 closed */
	uint64_t control;   /* address of struct scope_control in the process */
	uint64_t semaphore; /* and of the flush probe's; 0: not known */
	/* Counter from which on ids are younger than target__want(); 1 where there were none. */
	uint64_t first_id;
	/* Its own environment's, as of target__want(), where that could write NCCL's masks. */
	bool has_ceiling;
	uint16_t ceiling;
	uint16_t mask;	 /* likewise, what these are then, all together */
	char path[4096]; /* of the plugin, openable by us: the very file that is mapped, or was */
	/* Which one that is: the process may have mapped another one by now. */
	struct elf_file_id file;
};

/* /proc has threads by their numbers as well. Whether that is one, not its process' first: that, and which one's, is said then. */
bool target__is_thread(pid_t tid);

/*
 * All that follows and reads a process can also return -ETIMEDOUT: it hangs, the target is closed, and asking again soon
 * would hang again; that was said then. -EBUSY: as many as may be of that user's hang already, or they were waited for too long.
 */

/*
 * Finds the plugin in a process and holds on to it until target__close(). 0; -ESRCH no such process; -ENOENT it has no plugin; -EPROTO a plugin of
 * another ABI version; -EREMOTE its file is on a file system that a user serves; or what /proc said.
 */
int target__find(struct target *t, pid_t pid);

/* Whether a file is a plugin whose records we know, by what its processes begin with. 0; -EPROTO, or as elf_file.h. */
int target__check_file(int fd);

/*
 * Whether a probe is on what it has mapped, by its semaphore: a file that is attached to need not be that one. 0; -ENODATA: there is
 * none; another -errno. Of another recorder's it cannot be told.
 */
int target__probed(struct target *t);

/* What one of these errors means, in words. */
const char *target__error(int err);
/* What to do about it, for the end of that message: begins with "; ", or is "". */
const char *target__advice(int err);

/* The same for looking only: what is found cannot be armed. */
int target__find_readonly(struct target *t, pid_t pid);

/* Safe twice, and after a target__find() that failed. */
void target__close(struct target *t);

/*
 * Asks for event types on behalf of `owner` (our pid, or SCOPE_OWNER_MANUAL), bumps the epoch,
 * sets the flush age, and writes NCCL's masks. mask 0 takes the request back. 0 or -errno; -EAGAIN: no
 * communicator yet, so nothing to arm until the first (the request stays).
 */
int target__want(struct target *t, uint32_t owner, uint32_t mask, uint64_t flush_ticks);

/*
 * Takes a request back as target__want() with mask 0 does. KernelCh, which cannot come on again while NCCL works, stays on for `hold`
 * flush ages more, now and until whoever wants that says 0. TARGET_HOLD_AS_IS, as target__want(): no matter to us.
 */
#define TARGET_HOLD_AS_IS UINT32_MAX
int target__leave(struct target *t, uint32_t owner, uint32_t hold);

/* Sets the flush age alone, which every recorder of the process shares. As target__bury(). */
int target__age(struct target *t, uint64_t flush_ticks);

/*
 * Takes back what loaders wanted that were killed; others learn nothing of it. 0, -ETIMEDOUT as target__want(), or
 * another -errno: it may have ended by now; -EAGAIN: another loader was at it, once more later.
 */
int target__bury(struct target *t);

/* Whether it is a recorder in our own pid namespace, whose pid means something to us. */
bool target__owner_is_here(const struct scope_want *w);
/* It was one, and died without giving its slot back. Of another namespace's nobody can tell. */
bool target__owner_is_dead(const struct scope_want *w);

/* What a process is asked for, and by whom; all of it is what the process says. */
struct target_state {
	uint32_t epoch;
	struct scope_want want[SCOPE_WANT_SLOTS];
	uint32_t ceiling; /* like the following: 0 before the first communicator */
	uint32_t nmasks;
	uint32_t masks[SCOPE_MASKS]; /* NCCL's, one for each copy of it in the process */
};

/* 0 or -errno. */
int target__state(struct target *t, struct target_state *state);

/* The published communicators, one call each. 0 or -errno. */
int target__comms(struct target *t, void (*fn)(void *arg, const struct scope_comm *comm),
		  void *arg);

/* A thread's buffer that is to be read from outside. */
struct target_read {
	/* What lies beyond pos is wanted. 0: no thread's, but what those without one have lost: a chunk that has lost_cnt and no more. */
	uint64_t tbuf, pos;
	void *arg; /* the caller's */
	/*
	 * Out, in the form that BPF would have sent, but for the identity; malloc'ed, the caller's. Without records if there
	 * is nothing beyond pos. NULL: it was being flushed just now, or it cannot be read.
	 */
	struct scope_ev_chunk *chunk;
};

/* Reads buffers of one process; each `chunk` is NULL before. 0 or -errno. */
int target__read_tbufs(struct target *t, struct target_read *reads, int n);

#endif
