/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc/PID/stat says of a process. */
#ifndef NCCLSCOPE_PID_STAT_H
#define NCCLSCOPE_PID_STAT_H

#include <stdint.h>
#include <sys/types.h>

struct pid_stat {
	uint64_t start; /* clock ticks since boot: with the pid, the process */
	uint64_t vsize; /* of its address space, in bytes */
	uint64_t flags; /* the kernel's, such as PF_KTHREAD */
	char state;	/* 'R', 'S', ..., 'Z' */
};

/* 0 or -errno; -ESRCH: no such process. */
int pid_stat__read(pid_t pid, struct pid_stat *st);

/* Whose it is: its real uid, as it is here. 0 or -errno. */
int pid_stat__uid(pid_t pid, uint32_t *uid);

#endif
