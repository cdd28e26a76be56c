/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads beside the one that does the work. */
#ifndef NCCLSCOPE_THREAD_H
#define NCCLSCOPE_THREAD_H

#include <pthread.h>

/*
 * A thread that runs fn(arg) and is shown as `name`, at most 15 bytes. Signals are its starter's, but for what it does wrong
 * itself. To be joined. 0 or -errno.
 */
int thread__start(pthread_t *thread, void *(*fn)(void *arg), void *arg, const char *name);

#endif
