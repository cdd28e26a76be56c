/* SPDX-License-Identifier: BSD-2-Clause */
/* A process of ours that does what may hang: it can be left behind, and ends with us. */
#ifndef NCCLSCOPE_ASIDE_H
#define NCCLSCOPE_ASIDE_H

#include <sys/types.h>

#define ASIDE_SOCK 3 /* all that is open there, but for 0, 1 and 2, which lead nowhere */

/*
 * In the child, first of all: @name is what ps shows, @parent who forked it, @sock what leads there, and is ASIDE_SOCK then. No signal
 * that is ours reaches it. Ends the process if that cannot be had.
 */
void aside__begin(const char *name, pid_t parent, int sock);

#endif
