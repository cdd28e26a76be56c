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

/* In the child; returns only if it failed. */
static int run(char **argv, const char *plugin)
{
	sigset_t none;
	uid_t uid;
	gid_t gid;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	limits_restore(); /* while we are root still */
	invoking_user(&uid, &gid);
	err = become(uid, gid);
	if (err)
		return err;
	setenv(PLUGIN_ENV, plugin, 1);
	execvp(argv[0], argv);
	return -errno;
}

pid_t job__start(char **argv, const char *plugin)
{
	int pipefd[2], err = 0;
	ssize_t n;
	pid_t pid;

	/* Closed by a successful exec; otherwise carries the child's errno. */
	if (pipe2(pipefd, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0)
		err = -errno;
	if (!pid) {
		close(pipefd[0]);
		err = run(argv, plugin);
		n = write(pipefd[1], &err, sizeof(err));
		_exit(n == sizeof(err) ? 127 : 126);
	}
	close(pipefd[1]);
	if (pid > 0) {
		do {
			n = read(pipefd[0], &err, sizeof(err));
		} while (n < 0 && errno == EINTR);
		if (n == sizeof(err))
			waitpid(pid, NULL, 0);
		else
			err = 0;
	}
	close(pipefd[0]);
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
