/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of system calls by number, of the architecture that this is built for: the kernel says only the
 * number of the call that a thread sleeps in.
 */
#ifndef NCCLSCOPE_SYSCALLS_H
#define NCCLSCOPE_SYSCALLS_H

#include <stdbool.h>

/* "futex"; NULL for a number that the headers of the build did not know, and for -1 (in no call). */
const char *syscall_name(int nr);

/* Whether a call is given a file's descriptor first, and may sleep for that file. */
bool syscall_takes_file(int nr);

#endif
