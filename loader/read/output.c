// SPDX-License-Identifier: BSD-2-Clause
/* Files that are there when they are whole; see output.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "job.h"
#include "log.h"
#include "output.h"
#include "write_all.h"

/* Beside the file until it is whole. For the handler of signals, too: written once, before there is one. */
static char part[PATH_MAX];

static void remove_part(int sig)
{
	unlink(part);
	signal(sig, SIG_DFL);
	raise(sig);
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

#define NENDS (sizeof(ends) / sizeof(*ends))

static struct sigaction before[NENDS], before_limit;

/* What is ignored stays so: nohup(1). Where there is a limit for a file's size, writing fails instead, and says so. */
static void catch_signals(void)
{
	struct sigaction remove = {.sa_handler = remove_part}, ignore = {.sa_handler = SIG_IGN};
	size_t i;

	sigaction(SIGXFSZ, &ignore, &before_limit);

	for (i = 0; i < NENDS; i++)
		if (!sigaction(ends[i], NULL, &before[i]) && before[i].sa_handler != SIG_IGN)
			sigaction(ends[i], &remove, NULL);
}

static void release_signals(void)
{
	size_t i;

	for (i = 0; i < NENDS; i++)
		sigaction(ends[i], &before[i], NULL);
	sigaction(SIGXFSZ, &before_limit, NULL);
}

static int give_to_caller(int fd)
{
	uid_t uid;
	gid_t gid;

	if (geteuid())
		return 0;
	invoking_user(&uid, &gid);
	return uid && fchown(fd, uid, gid) ? -errno : 0;
}

/* Beside the place where it will be, so that rename() can put it there. */
static int open_part(struct output *o, const char *path, mode_t mode)
{
	mode_t mask = umask(0);
	int err;

	umask(mask);
	if ((size_t)snprintf(part, sizeof(part), "%s.XXXXXX", path) >= sizeof(part)) {
		*part = '\0';
		return -ENAMETOOLONG;
	}
	o->fd = mkostemp(part, O_CLOEXEC);
	if (o->fd < 0) {
		err = -errno;
		*part = '\0';
		return err;
	}
	catch_signals();
	o->path = path;
	err = fchmod(o->fd, mode & ~mask) ? -errno : give_to_caller(o->fd);
	if (err)
		output__close(o, false);
	return err;
}

/* Links that stand for an open file, not for a name that could be given to another one. */
static bool is_descriptor(const char *path)
{
	return !strncmp(path, "/dev/std", 8) || !strncmp(path, "/dev/fd/", 8) ||
	       !strncmp(path, "/proc/", 6);
}

int output__open(struct output *o, const char *path, mode_t mode)
{
	struct stat st;

	*o = (struct output){.fd = STDOUT_FILENO};
	if (!path || !strcmp(path, "-"))
		return 0;
	if (is_descriptor(path)) {
		o->fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		return o->fd < 0 ? -errno : 0;
	}
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return open_part(o, path, mode);
	/* a device, a pipe */
	o->fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	return o->fd < 0 ? -errno : 0;
}

const char *output__name(const char *path)
{
	return path && strcmp(path, "-") ? path : "standard output";
}

int output__write(const struct output *o, const void *data, size_t len)
{
	return write_all(o->fd, data, len);
}

/* stdio keeps what it could not write, and would fail again whenever somebody looks. */
int output__flush(void)
{
	static int err;

	if (err || (!fflush(stdout) && !ferror(stdout)))
		return err;
	err = errno ? -errno : -EIO;
	pr_err("Failed to write '%s': %s\n", output__name(NULL), strerror(-err));
	return err;
}

int output__close(struct output *o, bool ok)
{
	int err = 0;

	if (o->fd > STDERR_FILENO && close(o->fd))
		err = -errno;
	o->fd = -1;
	if (!*part)
		return err;
	if (ok && !err && rename(part, o->path))
		err = -errno;
	if (!ok || err)
		unlink(part);
	release_signals();
	*part = '\0';
	return err;
}
