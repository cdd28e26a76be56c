/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc/PID/stat says of a process. */
#ifndef NCCLSCOPE_PID_STAT_H
#define NCCLSCOPE_PID_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of the kernel's include/linux/sched.h. */
#define PF_EXITING 0x00000004 /* on its way out, or a zombie */
#define PF_KTHREAD 0x00200000 /* a thread of the kernel */

struct pid_stat {
	uint64_t
		start; /* clock ticks since the node's boot, in a time namespace perhaps one off: with the pid, the process */
	uint64_t vsize; /* of its address space, in bytes */
	uint64_t flags; /* PF_... */
	char state;	/* 'R', 'S', ..., 'Z' */
};

/* 0 or -errno; -ESRCH: no such process. */
int pid_stat__read(pid_t pid, struct pid_stat *st);

/* There is no such process: asked without /proc, which may hide others' processes. */
bool pid_stat__is_gone(pid_t pid);

/* It has ended, and its parent has not waited for it. */
static inline bool pid_stat__is_zombie(const struct pid_stat *st)
{
	return st->state == 'Z' || st->state == 'X';
}

/* It has ended: gone, or a zombie that its parent has not waited for. Where /proc hides it, that it is there is all that is known. */
bool pid_stat__has_ended(pid_t pid);

/* Whose it is: its real uid, as it is here. 0 or -errno. */
int pid_stat__uid(pid_t pid, uint32_t *uid);

/* Whose thread it is: itself for a process. 0 or -errno. */
int pid_stat__process(pid_t tid, pid_t *pid);

#endif
