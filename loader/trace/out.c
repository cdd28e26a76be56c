// SPDX-License-Identifier: BSD-2-Clause
/* Files of whole lines; see out.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "human.h"
#include "log.h"
#include "out.h"
#include "out_threads.h"
#include "write_all.h"
#include "zst.h"

#define FLUSH_BYTES (48 * 1024)
#define BUF_MIN	    (64 * 1024)
#define NUMBER_MAX  (1u << 30) /* behind a name */
#define TRIES_MAX   1000       /* others were faster */
#define RESERVE                                                                                    \
	4096 /* behind the lines: for the account of what a full disk took, and the footer */

const char *const out_kind_names[OUT_KINDS] = {
	[OUT_HEADER] = "header", [OUT_EVENT] = "event",	  [OUT_STATE] = "state",
	[OUT_OPEN] = "open",	 [OUT_THREAD] = "thread", [OUT_SLICE] = "slice",
	[OUT_FLOW] = "flow",	 [OUT_DROP] = "drop",	  [OUT_SIGNAL] = "signal",
	[OUT_NODE] = "node",	 [OUT_GPU] = "gpu",	  [OUT_KMSG] = "kmsg",
	[OUT_CLOCK] = "clock",	 [OUT_LOST] = "lost",	  [OUT_FOOTER] = "footer",
};

/* ---- Names ------------------------------------------------------------------------------------- */

#define NAME_SIZE 256

static void put_name(char name[NAME_SIZE], const char *stem, uint32_t nr, const char *ext)
{
	if (nr == 1)
		snprintf(name, NAME_SIZE, "%s%s", stem, ext);
	else
		snprintf(name, NAME_SIZE, "%s_%u%s", stem, nr, ext);
}

static bool is_taken(int dirfd, const char *stem, uint32_t nr, const char *ext)
{
	char name[NAME_SIZE];
	struct stat st;

	put_name(name, stem, nr, ext);
	return !fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW);
}

/*
 * A number beyond one that is taken which is free, and the one before it is not: the next one where there are no gaps.
 * A job that is recorded again and again has many, so not one by one. 0: there is none.
 */
static uint32_t free_number(int dirfd, const char *stem, uint32_t taken, const char *ext)
{
	uint32_t step = 1, low = taken, high, mid;

	for (; is_taken(dirfd, stem, low + step, ext); step *= 2) {
		low += step;
		if (low > NUMBER_MAX)
			return 0;
	}
	high = low + step;
	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (is_taken(dirfd, stem, mid, ext))
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* Makes it, by a name that was free. An fd or -errno. */
static int make_file(int dirfd, const char *stem, const char *ext, char name[NAME_SIZE])
{
	uint32_t nr = 1;
	int fd = -EEXIST, tries;

	for (tries = 0; nr && fd == -EEXIST && tries < TRIES_MAX; tries++) {
		put_name(name, stem, nr, ext);
		fd = open_beneath(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0640);
		if (fd == -EEXIST)
			nr = free_number(dirfd, stem, nr, ext);
	}
	return fd;
}

static int open_as(struct out_file *f, int dirfd, const char *dir, const char *stem,
		   const char *ext, uid_t uid, gid_t gid)
{
	char name[NAME_SIZE];
	int err;

	memset(f, 0, sizeof(*f));
	f->fd = make_file(dirfd, stem, ext, name);
	if (f->fd < 0)
		return f->fd;
	fchmod(f->fd, 0640); /* whatever the umask; while it is ours */
	if (fchown(f->fd, uid, gid)) {
		err = -errno;
		goto cleanup;
	}
	if (asprintf(&f->path, "%s/%s", dir, name) < 0) {
		f->path = NULL;
		err = -ENOMEM;
		goto cleanup;
	}
	return 0;
cleanup: /* it is tried again, under another name: nothing may be left of each time */
	unlinkat(dirfd, name, 0);
	close(f->fd);
	f->fd = -1;
	return err;
}

int out_file__open(struct out_file *f, int dirfd, const char *dir, const char *stem, uid_t uid,
		   gid_t gid)
{
	return open_as(f, dirfd, dir, stem, ".jsonl", uid, gid);
}

int out_file__open_zst(struct out_file *f, int dirfd, const char *dir, const char *stem, uid_t uid,
		       gid_t gid)
{
	struct zst_writer *zst = zst_writer__new();
	int err = zst ? open_as(f, dirfd, dir, stem, ".jsonl.zst", uid, gid) : -ENOMEM;

	if (err)
		zst_writer__free(zst);
	else
		f->zst = zst;
	return err;
}

/* ---- Lines ------------------------------------------------------------------------------------- */

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
		out_file__push(f);
}

/* Lines that tell something; the others are about the file, and told again. */
static uint64_t count_lines(const uint64_t *counts)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < OUT_KINDS; i++)
		if (i != OUT_HEADER && i != OUT_LOST && i != OUT_FOOTER)
			n += counts[i];
	return n;
}

/* ---- Into the file ------------------------------------------------------------------------------ */

/*
 * Room for the lines, and for the end of the file behind them: where that is not to be had, the disk counts
 * as full while the last lines still fit. Not every file system can; it then does without. A limit of our files' size
 * (RLIMIT_FSIZE) is as good as a full disk; fallocate() does not ask for it.
 */
static int reserve(const struct out_file *f, size_t len, bool ending)
{
	struct rlimit limit;
	int err;

	if (ending)
		return 0;
	if (!getrlimit(RLIMIT_FSIZE, &limit) && f->size + len + RESERVE > limit.rlim_cur)
		return -EFBIG;
	do {
		err = fallocate(f->fd, FALLOC_FL_KEEP_SIZE, (off_t)f->size, (off_t)len + RESERVE)
			      ? -errno
			      : 0;
	} while (err == -EINTR);
	return err == -ENOSPC || err == -EDQUOT ? err : 0;
}

/* A frame that no flush has ended: where the last lines were lost, or there was nothing more. */
static void end_frame(struct out_file *f)
{
	const char *data;
	size_t len, done = 0;

	if (!zst_writer__is_open(f->zst) || zst_writer__put(f->zst, NULL, 0, true, &data, &len))
		return;
	if (!write_from(f->fd, data, len, &done))
		f->size += len;
}

/* What follows the whole lines goes. 0 or -errno; where that fails, nothing may be written behind it. */
static int cut_off(struct out_file *f)
{
	f->torn = ftruncate(f->fd, (off_t)f->size);
	return f->torn ? -errno : 0;
}

void out_batch__write(struct out_batch *batch)
{
	struct out_file *f = batch->file;
	size_t done = 0, len = batch->len;
	const char *data = batch->buf;
	int err = f->torn ? cut_off(f) : 0;

	if (f->zst && !err)
		err = zst_writer__put(f->zst, batch->buf, batch->len, batch->ending, &data, &len);
	if (!err)
		err = reserve(f, len, batch->ending);
	if (!err)
		err = write_from(f->fd, data, len, &done);
	if (f->zst)
		zst_writer__written(f->zst, !err);
	batch->err = err;
	if (!err)
		f->size += len;
	else if (done) /* only then: it gives the reserve back, too */
		cut_off(f);
}

/* Lines that cannot be written. */
static void count_dropped(struct out_file *f, const struct out_batch *batch)
{
	uint64_t n = count_lines(batch->kinds);
	char without[64] = "";
	int i;

	for (i = 0; i < OUT_KINDS; i++)
		f->counts[i] -= batch->kinds[i];
	f->write_lost += n;
	if (n) /* else it was the header */
		snprintf(without, sizeof(without), ", continuing without %llu line%s",
			 (unsigned long long)n, human__s(n));
	if (!f->failing)
		pr_warn("Failed to write '%s': %s%s; lost lines are counted\n", f->path,
			strerror(-batch->err), without);
}

void out_batch__account(const struct out_batch *batch)
{
	struct out_file *f = batch->file;

	if (batch->err)
		count_dropped(f, batch);
	else if (f->failing)
		pr_info("Writing '%s' works again\n", f->path);
	f->failing = batch->err;
	if (batch->err)
		f->err = batch->err;
}

static struct out_batch batch_of(struct out_file *f)
{
	struct out_batch batch = {
		.file = f, .buf = f->buf, .len = f->len, .cap = f->cap, .ending = f->ending};

	memcpy(batch.kinds, f->pending, sizeof(batch.kinds));
	return batch;
}

void out_file__push(struct out_file *f)
{
	struct out_batch batch;

	if (!f->len)
		return;
	batch = batch_of(f);
	if (f->writer) {
		out_writer__put(f->writer, &batch);
		f->buf = batch.buf; /* another one */
		f->cap = batch.cap;
	} else {
		out_batch__write(&batch);
		out_batch__account(&batch);
	}
	f->len = 0;
	memset(f->pending, 0, sizeof(f->pending));
}

int out_file__flush(struct out_file *f)
{
	int err;

	out_file__push(f);
	if (f->writer)
		out_writer__settle(f->writer, f);
	err = f->err;
	f->err = 0;
	return err;
}

bool out_file__is_gone(const struct out_file *f)
{
	struct stat st;

	if (!f->path)
		return false;
	return fstat(f->fd, &st) ? errno == ESTALE : !st.st_nlink;
}

uint64_t out_file__lines(const struct out_file *f)
{
	return count_lines(f->counts);
}

void out_file__shrink(struct out_file *f)
{
	if (f->len)
		return;
	free(f->buf);
	f->buf = NULL;
	f->cap = 0;
}

uint64_t out_file__end(struct out_file *f)
{
	uint64_t lines;

	if (!f->path || f->fd < 0)
		return 0;
	f->ending = true;
	out_file__flush(f);
	if (f->zst)
		end_frame(f);
	if (cut_off(f)) /* what of the reserve was not needed, too */
		pr_debug("Failed to truncate '%s': %s\n", f->path, strerror(errno));
	lines = close(f->fd) ? out_file__lines(f) : 0;
	f->fd = -1;
	if (lines)
		pr_warn("Failed to write '%s': %s, its %llu lines may not be there and are counted "
			"as lost\n",
			f->path, strerror(errno), (unsigned long long)lines);
	return lines;
}

void out_file__close(struct out_file *f)
{
	if (!f->path)
		return;
	out_file__end(f);
	zst_writer__free(f->zst);
	free(f->path);
	free(f->buf);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}
