// SPDX-License-Identifier: BSD-2-Clause
/* Captures; see raw.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "log.h"
#include "out.h"
#include "raw.h"
#include "version.h"
#include "write_all.h"
#include "zst.h"

#define WRITE_BYTES (1 << 20)
#define READ_BYTES  (1 << 20)
#define ALIGN	    8u

_Static_assert(sizeof(struct raw_file_hdr) == 64 && sizeof(struct raw_rec_hdr) == 8, "raw format");
_Static_assert(sizeof(RAW_MAGIC) == 8, "raw format");

static size_t padded(size_t size)
{
	return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* ---- Writing ----------------------------------------------------------------------------------- */

struct raw_writer {
	int fd, dirfd;	  /* dirfd: where it was made */
	bool dir_is_made; /* by us, for it */
	int err;	  /* why nothing more is written */
	char *path;
	uint64_t size; /* whole records in the file */
	size_t len;
	unsigned char buf[WRITE_BYTES];
};

/* As it was found: nothing is in it. */
static void leave_dir(struct raw_writer *w, const char *dir)
{
	if (w->dir_is_made)
		out_dir_unmake(dir, w->dirfd);
	else
		close(w->dirfd);
	w->dirfd = -1;
}

/* With w->dirfd if there is a file. */
static int open_file(struct raw_writer *w, const char *path, uid_t uid, gid_t gid)
{
	char *dir = strdup(path), *name = strdup(path);
	int fd;

	if (!dir || !name) {
		free(dir);
		free(name);
		return -ENOMEM;
	}
	w->dirfd = out_dir_make(dirname(dir), true, uid, gid, &w->dir_is_made);
	fd = w->dirfd < 0 ? w->dirfd
			  : open_beneath(w->dirfd, basename(name),
					 O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0600);
	if (fd >= 0 && fchown(fd, uid, gid))
		pr_debug("Failed to give '%s' to user %d: %s\n", path, (int)uid, strerror(errno));
	if (fd < 0 && w->dirfd >= 0)
		leave_dir(w, dir);
	free(dir);
	free(name);
	return fd;
}

/* All of it or nothing. */
static int append(struct raw_writer *w, const void *data, size_t size)
{
	if (w->err)
		return w->err;
	w->err = write_all(w->fd, data, size);
	if (!w->err)
		return 0;
	pr_warn("Failed to write '%s': %s, it ends there; continuing without it\n", w->path,
		strerror(-w->err));
	if (ftruncate(w->fd, (off_t)w->size))
		pr_debug("Failed to truncate '%s': %s\n", w->path, strerror(errno));
	return w->err;
}

struct raw_writer *raw_writer__open(const char *path, uid_t uid, gid_t gid, int *err)
{
	struct raw_file_hdr h = {.magic = RAW_MAGIC, .version = RAW_VERSION, .ring_abi = SCOPE_ABI};
	struct raw_writer *w = malloc(sizeof(*w));

	*err = -ENOMEM;
	if (!w)
		return NULL;
	memset(w, 0, offsetof(struct raw_writer, buf));
	w->path = strdup(path);
	w->fd = w->path ? open_file(w, path, uid, gid) : -ENOMEM;
	if (w->fd < 0) {
		*err = w->fd;
		free(w->path);
		free(w);
		return NULL;
	}
	*err = 0;
	snprintf(h.recorder, sizeof(h.recorder), "ncclscope %s", NCCLSCOPE_VERSION);
	memcpy(w->buf, &h, sizeof(h));
	w->len = sizeof(h);
	return w;
}

void raw_writer__put(struct raw_writer *w, enum input_kind kind, const void *data, size_t size)
{
	const struct raw_rec_hdr h = {
		.size = (uint32_t)size, .kind = (uint16_t)kind, .mark = RAW_MARK};
	size_t whole = sizeof(h) + padded(size);
	static const char zero[ALIGN];

	if (w->err)
		return;
	if (size > RAW_RECORD_MAX) { /* no input is that long */
		w->err = -EMSGSIZE;
		pr_warn("Failed to write '%s': a record of %zu bytes, it ends there\n", w->path,
			size);
		return;
	}
	if (whole > sizeof(w->buf) - w->len)
		raw_writer__flush(w);
	if (whole > sizeof(w->buf)) { /* rare: many flows */
		append(w, &h, sizeof(h));
		append(w, data, size);
		if (!append(w, zero, padded(size) - size))
			w->size += whole;
		return;
	}
	memcpy(w->buf + w->len, &h, sizeof(h));
	if (size)
		memcpy(w->buf + w->len + sizeof(h), data, size);
	memset(w->buf + w->len + sizeof(h) + size, 0, padded(size) - size);
	w->len += whole;
}

int raw_writer__flush(struct raw_writer *w)
{
	int err = append(w, w->buf, w->len);

	w->size += err ? 0 : w->len;
	w->len = 0;
	return err;
}

uint64_t raw_writer__bytes(const struct raw_writer *w)
{
	return w->size;
}

static void writer_free(struct raw_writer *w)
{
	if (w->dirfd >= 0)
		close(w->dirfd);
	free(w->path);
	free(w);
}

int raw_writer__close(struct raw_writer *w)
{
	int err, end;

	if (!w)
		return 0;
	err = raw_writer__flush(w);
	end = close(w->fd) ? -errno : 0; /* some file systems tell only now: NFS */
	if (end && !err)
		pr_warn("Failed to write '%s': %s, it may not be whole\n", w->path, strerror(-end));
	writer_free(w);
	return err ? err : end;
}

void raw_writer__abandon(struct raw_writer *w)
{
	unlink_ours(w->dirfd, w->path, w->fd, 0);
	close(w->fd);
	leave_dir(w, dirname(w->path));
	writer_free(w);
}

/* ---- Reading ----------------------------------------------------------------------------------- */

/* Brings `need` bytes from `at` on into the buffer, as far as the file has them. 0 or -errno. */
static int fill(struct raw_reader *r, size_t need)
{
	unsigned char *buf;
	ssize_t n;

	if (r->len - r->at >= need || r->eof)
		return 0;
	memmove(r->buf, r->buf + r->at, r->len - r->at);
	r->offset += r->at;
	r->len -= r->at;
	r->at = 0;
	if (need > r->cap) {
		buf = realloc(r->buf, need);
		if (!buf)
			return -ENOMEM;
		r->buf = buf;
		r->cap = need;
	}
	while (r->len < need && !r->eof) {
		n = r->fd < 0 ? 0 : read(r->fd, r->buf + r->len, r->cap - r->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r->eof = !n;
		r->len += (size_t)n;
	}
	return 0;
}

/* Whether it is a capture, but for that. */
static bool is_packed(struct raw_reader *r)
{
	return zst_is_stream(r->buf, r->len) && !fill(r, ZST_BEGIN) &&
	       zst_packs_capture(r->buf, r->len);
}

static int check_header(struct raw_reader *r)
{
	struct raw_file_hdr h;
	int err = fill(r, sizeof(h));

	if (err)
		return err;
	if (is_packed(r)) {
		snprintf(r->why, sizeof(r->why),
			 "it is compressed by zstd: unpack it, zstd -d FILE, or convert what comes "
			 "through a pipe, zstd -dc FILE | ncclscope convert -");
		return -EPROTO;
	}
	if (zst_is_gzip(r->buf, r->len)) {
		snprintf(r->why, sizeof(r->why),
			 "it is compressed by gzip: unpack it, gzip -d FILE, and convert that");
		return -EPROTO;
	}
	if (r->len < sizeof(h)) {
		snprintf(r->why, sizeof(r->why), "it has %zu bytes, and a capture at least %zu",
			 r->len, sizeof(h));
		return -EPROTO;
	}
	memcpy(&h, r->buf, sizeof(h));
	if (memcmp(h.magic, RAW_MAGIC, sizeof(h.magic))) {
		snprintf(r->why, sizeof(r->why), "it is no capture of 'ncclscope record --raw'");
		return -EPROTO;
	}
	if (h.version < RAW_OLDEST || h.version > RAW_VERSION || h.ring_abi != SCOPE_ABI) {
		snprintf(r->why, sizeof(r->why),
			 "it is of version %u.%u, and this program reads %u.%u to %u.%u: use the "
			 "one that wrote it, %.40s",
			 h.version, h.ring_abi, RAW_OLDEST, (uint32_t)SCOPE_ABI, RAW_VERSION,
			 (uint32_t)SCOPE_ABI,
			 memchr(h.recorder, 0, sizeof(h.recorder)) ? h.recorder : "?");
		return -EPROTO;
	}
	r->at = sizeof(h);
	return 0;
}

int raw_reader__open(struct raw_reader *r, int fd)
{
	int err;

	*r = (struct raw_reader){.fd = fd, .cap = READ_BYTES};
	r->buf = malloc(r->cap);
	err = r->buf ? check_header(r) : -ENOMEM;
	if (err) {
		if (!r->why[0])
			snprintf(r->why, sizeof(r->why), "%s", strerror(-err));
		raw_reader__close(r);
	}
	return err;
}

int raw_reader__of(struct raw_reader *r, const void *data, size_t size)
{
	int err;

	*r = (struct raw_reader){.fd = -1, .cap = size + 1, .len = size, .eof = true};
	r->buf = malloc(r->cap);
	if (r->buf && size)
		memcpy(r->buf, data, size);
	err = r->buf ? check_header(r) : -ENOMEM;
	if (err)
		raw_reader__close(r);
	return err;
}

/* Where the file ends, or what is not a record. */
static int broken(struct raw_reader *r, const struct raw_rec *rec, size_t need)
{
	snprintf(r->why, sizeof(r->why), "it ends within the record at byte %llu: %zu bytes of %zu",
		 (unsigned long long)rec->offset, r->len - r->at, need);
	return -ENODATA;
}

int raw_reader__next(struct raw_reader *r, struct raw_rec *rec)
{
	struct raw_rec_hdr h;
	size_t need = sizeof(h);
	int err = fill(r, need);

	rec->offset = r->offset + r->at;
	if (err)
		goto failed;
	if (r->len == r->at)
		return 0;
	if (r->len - r->at < need)
		return broken(r, rec, need);
	memcpy(&h, r->buf + r->at, sizeof(h));
	if (h.mark != RAW_MARK || h.size > RAW_RECORD_MAX || !h.kind || h.kind >= INPUT_KINDS) {
		snprintf(r->why, sizeof(r->why),
			 "there is no record at byte %llu (kind %u, %u bytes): it is damaged, or "
			 "of a newer program",
			 (unsigned long long)rec->offset, h.kind, h.size);
		return -EPROTO;
	}
	need += padded(h.size);
	err = fill(r, need);
	if (err)
		goto failed;
	if (r->len - r->at < need)
		return broken(r, rec, need);
	rec->kind = (enum input_kind)h.kind;
	rec->size = h.size;
	rec->data = r->buf + r->at + sizeof(h);
	r->at += need;
	return 1;
failed:
	snprintf(r->why, sizeof(r->why), "%s at byte %llu", strerror(-err),
		 (unsigned long long)rec->offset);
	return err;
}

void raw_reader__close(struct raw_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->buf);
	r->buf = NULL;
	r->fd = -1;
	r->eof = true;
	r->len = r->at = r->cap = 0;
}
