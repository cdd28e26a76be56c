/* SPDX-License-Identifier: BSD-2-Clause */
/* Resource limits: raised for the recorder, given back for the job that it starts. */
#ifndef NCCLSCOPE_RLIMITS_H
#define NCCLSCOPE_RLIMITS_H

#include <stdbool.h>

/*
 * Files to the hard limit (two descriptors a process); locked memory for kernels before 5.11; nice values to none, which is
 * the way out of SCHED_IDLE and back from nice value 19; the least real-time priority (rescue.h). A file that may not get larger
 * is an error, like a full disk, not a signal.
 */
void limits_raise(void);

/* Whether a thread may leave SCHED_IDLE, and nice value 19, again, and be real-time. */
bool limits_nice(void);

/* As they were before limits_raise(); for the child, before exec. */
void limits_restore(void);

#endif
