// SPDX-License-Identifier: BSD-2-Clause
/* A process that may hang; see aside.h. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "aside.h"

/* Nothing of ours may live on with one that hangs: no descriptor (of BPF, of traces), no signal that is ours. */
void aside__begin(const char *name, pid_t parent, int sock)
{
	int null = open("/dev/null", O_RDWR), i;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	for (i = 0; i < ASIDE_SOCK; i++) /* somebody may wait for the end of our output */
		if (dup2(null, i) != i)
			_exit(1);
	if (getppid() != parent || dup2(sock, ASIDE_SOCK) != ASIDE_SOCK)
		_exit(1);
	closefrom(ASIDE_SOCK + 1);
}
