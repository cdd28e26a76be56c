/* SPDX-License-Identifier: BSD-2-Clause */
/* zstd streams, by libzstd: of traces that are written, so that what was flushed can be read; and of traces that are read. */
#ifndef NCCLSCOPE_ZST_H
#define NCCLSCOPE_ZST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* ---- Writing ----------------------------------------------------------------------------------- */

struct zst_writer;

struct zst_writer *zst_writer__new(void); /* NULL: no memory */

/*
 * Compresses `len` bytes so that a reader of what came so far has all of them; `end`: and that the file may end there. *out
 * is the writer's, valid until the next call. Then zst_writer__written(), with whether they are in the file. 0 or -errno.
 */
int zst_writer__put(struct zst_writer *z, const void *data, size_t len, bool end, const char **out,
		    size_t *out_len);
/* Where what was put is not in the file, a new frame begins behind what is. */
void zst_writer__written(struct zst_writer *z, bool ok);
/* Whether the file would end within a frame. */
bool zst_writer__is_open(const struct zst_writer *z);

void zst_writer__free(struct zst_writer *z); /* NULL is fine */

/* ---- Reading ----------------------------------------------------------------------------------- */

/* Whether a file that begins so is one. */
bool zst_is_stream(const void *data, size_t len);
/* Whether a regular file is; its position stays. */
bool zst_file_is_stream(int fd);
/* Whether a stream that begins so is of a capture (raw.h): told if that is ZST_BEGIN long, or all of it, and not damaged. */
#define ZST_BEGIN (160u << 10) /* no block of a stream is longer than 128 KiB */
bool zst_packs_capture(const void *data, size_t len);
/* Whether a file that begins so is gzip's, which we do not read. */
bool zst_is_gzip(const void *data, size_t len);
/*
 * 0, or why a regular file is no text by how it begins: -ENOEXEC: gzip; -EMEDIUMTYPE: a capture (raw.h); -ENOMEDIUM: a capture that
 * is compressed by zstd. Its position stays.
 */
int zst_file_refuse(int fd);

/* The text of a file from its beginning on, compressed or not, which its first bytes tell. Zero at first. */
struct zst_text {
	struct zst_reader *reader; /* owned; NULL: not compressed */
	bool begun;
};

/*
 * As read(2), but for -errno, and no EINTR. 0 also where the file ends within a frame, but -ENOLINK: before any of its text;
 * -EPROTO: it is damaged; -EOVERFLOW: its window is larger than we take; or as zst_file_refuse().
 */
ssize_t zst_text__read(struct zst_text *t, int fd, void *buf, size_t size);

/* What to say of an error of it. */
const char *zst_text__error(int err);

/* Zero again. Safe twice. */
void zst_text__end(struct zst_text *t);

#endif
