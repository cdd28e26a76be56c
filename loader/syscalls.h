/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of system calls by number, of the architecture that this is built for: the kernel says only the
 * number of the call that a thread sleeps in.
 */
#ifndef NCCLSCOPE_SYSCALLS_H
#define NCCLSCOPE_SYSCALLS_H

/* "futex"; NULL for a number that the headers of the build did not know, and for -1 (in no call). */
const char *syscall_name(int nr);

#endif
