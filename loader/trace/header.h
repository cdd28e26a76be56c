/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a process is: its trace file, named after its job, and the header line in it. */
#ifndef NCCLSCOPE_HEADER_H
#define NCCLSCOPE_HEADER_H

#include "proc.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

struct session;

/* What modes are called on the command line and in traces, by enum sched_mode and enum net_mode; NULL at the end. */
extern const char *const sched_mode_names[], *const net_mode_names[];

/* What the node says of itself, into s->host, if it is not there yet. 0 or -errno: no boot id. */
int header__host(struct session *s);

/* Opens the process' trace file and writes its header. 0 or -errno; logs a failure once. */
int header__write(struct proc *p);

/* True if text of a job may become part of a file's name: [A-Za-z0-9_.-], at most 64, no leading dot. */
bool name_is_safe(const char *s);

#endif
