/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a process is: its trace file, named after its job, and the header line in it. */
#ifndef NCCLSCOPE_HEADER_H
#define NCCLSCOPE_HEADER_H

#include "proc.h"

/* Opens the process' trace file and writes its header. 0 or -errno; logs a failure once. */
int header__write(struct proc *p);

/* True if text of a job may become part of a file's name: [A-Za-z0-9_.-], at most 64, no leading dot. */
bool name_is_safe(const char *s);

#endif
