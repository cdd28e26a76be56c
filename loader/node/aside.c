// SPDX-License-Identifier: BSD-2-Clause
/* A process that may hang; see aside.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "aside.h"
#include "caps.h"

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

int aside__start(int *fd, pid_t *pid, const char *name, void (*run)(int fd, const char *arg),
		 const char *arg)
{
	const struct rlimit none = {0};
	pid_t parent = getpid();
	int s[2], err;

	*fd = -1;
	*pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s))
		return -errno;
	*pid = fork();
	if (!*pid) {
		aside__begin(name, parent, s[1]);
		caps__drop_all();
		setrlimit(RLIMIT_CORE, &none);
		run(ASIDE_SOCK, arg);
		_exit(0);
	}
	err = *pid < 0 ? -errno : 0;
	close(s[1]);
	if (err) {
		close(s[0]);
		*pid = 0;
		return err;
	}
	*fd = s[0];
	return 0;
}

int aside__reap(pid_t *pid, int tries)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	int status = 0;
	pid_t ended = 0;

	while (*pid && !(ended = waitpid(*pid, &status, WNOHANG)) && --tries > 0)
		nanosleep(&ms, NULL);
	if (!*pid || !ended)
		return 0;
	*pid = 0;
	return ended > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void aside__stop(int *fd, pid_t *pid)
{
	if (*fd >= 0) {
		kill(*pid, SIGKILL);
		close(*fd);
	}
	*fd = -1;
	aside__reap(pid, ASIDE_TRIES);
}
