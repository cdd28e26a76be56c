// SPDX-License-Identifier: BSD-2-Clause
/* Starting threads; see thread.h. */
#include <signal.h>
#include <stddef.h>
#include "thread.h"

static void starters_signals(sigset_t *set)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	size_t i;

	sigfillset(set);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(set, own[i]);
}

int thread__start(pthread_t *thread, void *(*fn)(void *arg), void *arg, const char *name)
{
	sigset_t set, was;
	int err;

	starters_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &was);
	err = -pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	if (!err)
		pthread_setname_np(*thread, name);
	return err;
}
