/* SPDX-License-Identifier: BSD-2-Clause */
/* What of root's power a recorder keeps. docs/privileges.md has the table, and how it was found. */
#ifndef NCCLSCOPE_CAPS_H
#define NCCLSCOPE_CAPS_H

#include <stdbool.h>
#include <linux/capability.h>

/* Newer than the headers of some distributions that we build on. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

/*
 * For good, once all is attached and the job is started (which must not inherit it): drops all capabilities but
 * those that recording goes on to need, those as well that a program that we would start could get, and
 * no_new_privs on top. perf: new processes take perf's uprobes, which take CAP_SYS_ADMIN: else it stays only where something that was
 * split off from it is not held; nice: limits do not let a thread out of SCHED_IDLE again, which takes CAP_SYS_NICE then. 0 or -errno.
 */
int caps__drop(bool perf, bool nice);

/* The same of all of them, as far as that can be had. */
void caps__drop_all(void);

#endif
