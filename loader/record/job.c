// SPDX-License-Identifier: BSD-2-Clause
/* The job that `record -- CMD` starts; see job.h. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "job.h"
#include "plugin_path.h"
#include "rlimits.h"

#define PLUGIN_ENV "NCCL_PROFILER_PLUGIN"

static bool env_id(const char *name, unsigned int *id)
{
	const char *v = getenv(name);
	unsigned long n;
	char *end;

	if (!v || !*v)
		return false;
	errno = 0;
	n = strtoul(v, &end, 10);
	if (errno || *end || *v < '0' || *v > '9' || n >= (unsigned int)-1)
		return false;
	*id = (unsigned int)n;
	return true;
}

void invoking_user(uid_t *uid, gid_t *gid)
{
	*uid = getuid();
	*gid = getgid();
	/* sudo sets both; only root may be asked to act for somebody else */
	if (geteuid() == 0 && env_id("SUDO_UID", uid))
		env_id("SUDO_GID", gid);
}

/* For good: supplementary groups first, the uid last. */
static int become(uid_t uid, gid_t gid)
{
	const struct passwd *pw;

	if (uid == geteuid())
		return 0;
	pw = getpwuid(uid);
	if (pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	if (setgid(gid) || setuid(uid))
		return -errno;
	if (pw) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	return 0;
}

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
#define N_CAUGHT (sizeof(caught) / sizeof(caught[0]))

/* As exec would, but at once: until then our handler would swallow what is for the job. What is ignored stays so. */
static void uncatch(void)
{
	struct sigaction was;
	size_t i;

	for (i = 0; i < N_CAUGHT; i++)
		if (!sigaction(caught[i], NULL, &was) && was.sa_handler != SIG_IGN)
			signal(caught[i], SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
}

/* In the child; returns only if it failed. */
static int run(char **argv, const char *plugin)
{
	uid_t uid;
	gid_t gid;
	int err;

	limits_restore(); /* while we are root still */
	invoking_user(&uid, &gid);
	err = become(uid, gid);
	if (err)
		return err;
	setenv(PLUGIN_ENV, plugin, 1);
	execvp(argv[0], argv);
	return -errno;
}

/* The child: a byte says that it may go on, the end of them that it may not. */
static _Noreturn void child(int sock, char **argv, const char *plugin)
{
	sigset_t none;
	int err = 0;
	ssize_t n;
	char go;

	uncatch();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(sock, &go, 1) != 1)
		_exit(126);
	err = run(argv, plugin);
	n = send(sock, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(n == sizeof(err) ? 127 : 126);
}

/* Whoever forks now has a child in which these come when it is ready for them. */
static void block_caught(sigset_t *was)
{
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < N_CAUGHT; i++)
		sigaddset(&set, caught[i]);
	sigprocmask(SIG_BLOCK, &set, was);
}

/* What became of the child, which waits for us: 0, it runs; or -errno. */
static int child_go(int sock, const volatile sig_atomic_t *stop)
{
	int err = 0;
	ssize_t n;

	if (*stop)
		return -ECANCELED;
	send(sock, "", 1, MSG_NOSIGNAL); /* unless a signal has ended it, which its end will tell */
	do {
		n = read(sock, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? err : 0;
}

pid_t job__start(char **argv, const char *plugin, const volatile sig_atomic_t *stop)
{
	sigset_t was;
	int s[2], err;
	pid_t pid;

	/* Closed by a successful exec; otherwise brings the child's errno. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s))
		return -errno;
	block_caught(&was);
	pid = fork();
	err = pid < 0 ? -errno : 0;
	if (!pid) {
		close(s[0]);
		child(s[1], argv, plugin);
	}
	sigprocmask(SIG_SETMASK, &was, NULL);
	close(s[1]);
	if (!err)
		err = child_go(s[0], stop);
	close(s[0]);
	if (pid > 0 && err)
		waitpid(pid, NULL, 0);
	return err ? err : pid;
}

/* NCCL takes a file or the middle of its name. */
const char *job__replaced(const char *plugin)
{
	const char *named = getenv(PLUGIN_ENV), *file;
	char real[PATH_MAX];

	if (!named || !*named || !strcmp(named, "ncclscope"))
		return NULL;
	file = strrchr(named, '/');
	if (!strcmp(file ? file + 1 : named, PLUGIN_FILE))
		return NULL;
	return realpath(named, real) && !strcmp(real, plugin) ? NULL : named;
}

const char *job__advice(const char *cmd, int err)
{
	if (err != -ENOENT || strchr(cmd, '/') || !getenv("SUDO_UID"))
		return "";
	return "; sudo may have reset PATH: name it with its path, or begin CMD by env "
	       "PATH=\"$PATH\"";
}

bool job__ended(pid_t pid, int *code)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	*code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return true;
}
