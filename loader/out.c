// SPDX-License-Identifier: BSD-2-Clause
/* Directories and files of whole lines; see out.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "log.h"
#include "out.h"

#define FLUSH_BYTES (48 * 1024)
#define BUF_MIN	    (64 * 1024)

const char *const out_kind_names[OUT_KINDS] = {
	[OUT_HEADER] = "header", [OUT_EVENT] = "event",	  [OUT_STATE] = "state",
	[OUT_THREAD] = "thread", [OUT_SLICE] = "slice",	  [OUT_FLOW] = "flow",
	[OUT_DROP] = "drop",	 [OUT_NODE] = "node",	  [OUT_CLOCK] = "clock",
	[OUT_LOST] = "lost",	 [OUT_FOOTER] = "footer",
};

int out_dir_open(const char *path, uid_t uid, gid_t gid)
{
	bool made = mkdir(path, 0755) == 0;
	int fd, err = 0;

	if (!made && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (made && uid != (uid_t)-1 && fchown(fd, uid, gid))
		err = -errno;
	/* Root may write anywhere but where the file system itself says no: find that out now. */
	if (!err && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

int out_file__open(struct out_file *f, int dirfd, const char *dir, const char *stem, uid_t uid,
		   gid_t gid)
{
	char name[256];
	int i, err;

	memset(f, 0, sizeof(*f));
	f->fd = -1;
	for (i = 1; f->fd < 0 && i < 10000; i++) {
		if (i == 1)
			snprintf(name, sizeof(name), "%s.jsonl", stem);
		else
			snprintf(name, sizeof(name), "%s_%d.jsonl", stem, i);
		f->fd = openat(dirfd, name,
			       O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
			       0640);
		if (f->fd < 0 && errno != EEXIST)
			return -errno;
	}
	if (f->fd < 0)
		return -EEXIST;
	if (fchown(f->fd, uid, gid)) {
		err = -errno;
		goto cleanup;
	}
	fchmod(f->fd, 0640); /* whatever the umask */
	if (asprintf(&f->path, "%s/%s", dir, name) < 0) {
		f->path = NULL;
		err = -ENOMEM;
		goto cleanup;
	}
	return 0;
cleanup:
	close(f->fd);
	f->fd = -1;
	return err;
}

struct json out_line_begin(struct out_file *f, size_t max)
{
	struct json j = {0};
	size_t cap;
	char *buf;

	if (f->len + max + 1 > f->cap) {
		cap = f->len + max + 1 < BUF_MIN ? BUF_MIN : f->len + max + 1;
		buf = realloc(f->buf, cap);
		if (!buf)
			return j;
		f->buf = buf;
		f->cap = cap;
	}
	j.at = f->buf + f->len;
	j.end = j.at + max;
	return j;
}

void out_line_end(struct out_file *f, const struct json *j, enum out_kind kind, uint64_t now_ns)
{
	if (!f->len)
		f->oldest_ns = now_ns;
	f->len = (size_t)(j->at - f->buf);
	f->buf[f->len++] = '\n';
	f->counts[kind]++;
	f->pending[kind]++;
	if (f->len >= FLUSH_BYTES)
		out_file__flush(f);
}

/* The lines in buf cannot be written: forget them, and what of them reached the file. */
static void drop_pending(struct out_file *f, int err)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < OUT_KINDS; i++) {
		n += i == OUT_HEADER ? 0 : f->pending[i]; /* that will be written again */
		f->counts[i] -= f->pending[i];
	}
	f->write_lost += n;
	if (!f->failing)
		pr_warn("Failed to write '%s': %s, continuing without %llu lines; lost lines are "
			"counted\n",
			f->path, strerror(-err), (unsigned long long)n);
	f->failing = true;
	if (ftruncate(f->fd, (off_t)f->size))
		pr_debug("Failed to truncate '%s': %s\n", f->path, strerror(errno));
}

int out_file__flush(struct out_file *f)
{
	size_t done = 0;
	ssize_t n;
	int err = 0;

	if (!f->len)
		return 0;
	while (done < f->len) {
		n = write(f->fd, f->buf + done, f->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? -errno : -ENOSPC;
			break;
		}
		done += (size_t)n;
	}
	if (err) {
		drop_pending(f, err);
	} else {
		f->size += f->len;
		if (f->failing)
			pr_info("Writing '%s' works again\n", f->path);
		f->failing = false;
	}
	f->len = 0;
	memset(f->pending, 0, sizeof(f->pending));
	return err;
}

void out_file__close(struct out_file *f)
{
	if (!f->path)
		return;
	out_file__flush(f);
	close(f->fd);
	free(f->path);
	free(f->buf);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}
