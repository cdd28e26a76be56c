/* SPDX-License-Identifier: BSD-2-Clause */
/* Uprobes by uprobe_multi links (Linux 6.6), which neither the headers nor the libbpf of older distributions know. */
#ifndef NCCLSCOPE_UPROBE_MULTI_H
#define NCCLSCOPE_UPROBE_MULTI_H

#include <sys/types.h>

#define TRACE_UPROBE_MULTI 48 /* BPF_TRACE_UPROBE_MULTI: a program's expected_attach_type */

/*
 * A link of a program that was loaded for TRACE_UPROBE_MULTI to the instruction at `offset` of the file at
 * `path`, for one process or (pid -1) for all; semaphore_offset: where the kernel counts it in, 0: nowhere.
 * An fd, which ends it when closed, or -errno.
 */
int uprobe_multi__link(int prog_fd, const char *path, unsigned long offset,
		       unsigned long semaphore_offset, pid_t pid);

#endif
