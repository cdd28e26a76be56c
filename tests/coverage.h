/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Into all that `make coverage` compiles: a process that leaves by _exit, as the one that reads what is a job's, tells what it
 * ran all the same.
 */
#ifndef NCCLSCOPE_COVERAGE_H
#define NCCLSCOPE_COVERAGE_H

#include <unistd.h>

void __gcov_dump(void);

#define _exit(status) (__gcov_dump(), _exit(status))

#endif
