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

/*
 * Forks one that reads for us what is everybody's, without a privilege: run(ASIDE_SOCK, arg), then it ends. *fd: our end of a
 * socket that keeps messages apart, -1 where there is none. 0 or -errno.
 */
int aside__start(int *fd, pid_t *pid, const char *name, void (*run)(int fd, const char *arg),
		 const char *arg);

#define ASIDE_TRIES                                                                                \
	20 /* of 1 ms, to wait for its end: who is in a driver dies when it comes back */

/* Waits so often for its end; *pid is its number until then, and 0 afterwards. The signal that ended it, if that is known; else 0. */
int aside__reap(pid_t *pid, int tries);

/* Ends it, if it can be ended, and closes *fd. */
void aside__stop(int *fd, pid_t *pid);

#endif
