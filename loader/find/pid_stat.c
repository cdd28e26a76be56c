// SPDX-License-Identifier: BSD-2-Clause
/* /proc/PID/stat; see pid_stat.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "pid_stat.h"

/* The beginning of a file of /proc/PID, as a string. 0 or -errno. */
static int slurp(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	buf[n] = 0;
	return 0;
}

bool pid_stat__is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* The first number of a line of /proc/PID/status. 0 or -errno. */
static int status_number(pid_t pid, const char *key, uint32_t *value)
{
	char buf[1024]; /* the name, which comes before, takes 64 at most, escaped */
	const char *at;
	int err = slurp(pid, "status", buf, sizeof(buf));

	if (err)
		return err;
	at = strstr(buf, key);
	return at && sscanf(at + strlen(key), "%u", value) == 1 ? 0 : -EPROTO;
}

int pid_stat__uid(pid_t pid, uint32_t *uid)
{
	return status_number(pid, "\nUid:", uid);
}

int pid_stat__process(pid_t tid, pid_t *pid)
{
	uint32_t tgid = 0;
	int err = status_number(tid, "\nTgid:", &tgid);

	*pid = (pid_t)tgid;
	return err;
}

int pid_stat__read(pid_t pid, struct pid_stat *st)
{
	unsigned long long flags, start, vsize;
	char buf[1024];
	const char *end;
	int err = slurp(pid, "stat", buf, sizeof(buf));

	if (err)
		return err;
	/* The name in parentheses may be anything, also spaces and parentheses. */
	end = strrchr(buf, ')');
	if (!end ||
	    sscanf(end + 1,
		   " %c %*s %*s %*s %*s %*s %llu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%llu %llu",
		   &st->state, &flags, &start, &vsize) != 4)
		return -EPROTO;
	st->flags = flags;
	st->start = start - (uint64_t)(boottime_ahead_ns() / proc_tick_ns());
	st->vsize = vsize;
	return 0;
}

bool pid_stat__has_ended(pid_t pid)
{
	struct pid_stat st;

	return pid_stat__is_gone(pid) || (!pid_stat__read(pid, &st) && pid_stat__is_zombie(&st));
}
