// SPDX-License-Identifier: BSD-2-Clause
/* zstd streams; see zst.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "raw.h"
#include "zst.h"

#define LEVEL	   1  /* makes less of a trace than 3 does, and in less time */
#define WINDOW_LOG 18 /* what a recorded process may make us hold: 256 KiB */
/*
 * Of the table that matches are looked up in: 8 KiB, which stay in a core's first cache. Lines of a trace are like those
 * right before; a larger table finds older ones, which are no longer worth the miss.
 */
#define HASH_LOG 11
/*
 * Of what is read: 8 MiB, which is what every reader of zstd is to take (RFC 8878, 3.1.1.1.2), and all levels up to -19 ask for
 * no more. libzstd would hold 128 MiB, of each of hundreds of traces side by side, and a few KiB of a file can make it do so.
 */
#define READ_WINDOW_LOG 23
#define READ_BYTES	(128 << 10)

/* An empty block that is the last one (RFC 8878, 3.1.1.2): ends a frame without a checksum after any flush. */
static const char last_block[] = {1, 0, 0};

/* ---- Writing ----------------------------------------------------------------------------------- */

struct zst_writer {
	ZSTD_CCtx *ctx;
	char *out;
	size_t cap;
	bool open;	  /* the file has a frame that is not ended */
	bool close_first; /* and the compressor cannot go on with it */
	bool ends;	  /* what was put does */
};

struct zst_writer *zst_writer__new(void)
{
	struct zst_writer *z = calloc(1, sizeof(*z));

	if (!z)
		return NULL;
	z->ctx = ZSTD_createCCtx();
	if (!z->ctx ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(z->ctx, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(z->ctx, ZSTD_c_windowLog, WINDOW_LOG)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(z->ctx, ZSTD_c_hashLog, HASH_LOG)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(z->ctx, ZSTD_c_checksumFlag, 0))) {
		zst_writer__free(z);
		return NULL;
	}
	return z;
}

static int make_room(struct zst_writer *z, size_t len)
{
	size_t cap = sizeof(last_block) + ZSTD_compressBound(len) + 64;
	char *out;

	if (cap <= z->cap)
		return 0;
	out = realloc(z->out, cap);
	if (!out)
		return -ENOMEM;
	z->out = out;
	z->cap = cap;
	return 0;
}

int zst_writer__put(struct zst_writer *z, const void *data, size_t len, bool end, const char **out,
		    size_t *out_len)
{
	ZSTD_inBuffer in = {data, len, 0};
	ZSTD_outBuffer to = {NULL, 0, 0};
	size_t left;

	if (make_room(z, len))
		return -ENOMEM;
	to = (ZSTD_outBuffer){z->out, z->cap, 0};
	if (z->close_first) {
		memcpy(z->out, last_block, sizeof(last_block));
		to.pos = sizeof(last_block);
	}
	left = ZSTD_compressStream2(z->ctx, &to, &in, end ? ZSTD_e_end : ZSTD_e_flush);
	if (left) /* an error, or more than its own bound */
		return ZSTD_isError(left) ? -ENOMEM : -EIO;
	z->ends = end;
	*out = z->out;
	*out_len = to.pos;
	return 0;
}

void zst_writer__written(struct zst_writer *z, bool ok)
{
	if (ok) {
		z->open = !z->ends;
		z->close_first = false;
		return;
	}
	z->close_first |= z->open;
	z->open = false;
	ZSTD_CCtx_reset(z->ctx, ZSTD_reset_session_only);
}

bool zst_writer__is_open(const struct zst_writer *z)
{
	return z->open || z->close_first;
}

void zst_writer__free(struct zst_writer *z)
{
	if (!z)
		return;
	ZSTD_freeCCtx(z->ctx);
	free(z->out);
	free(z);
}

/* ---- Reading ----------------------------------------------------------------------------------- */

struct zst_reader {
	ZSTD_DCtx *ctx;
	ZSTD_inBuffer in;
	bool any; /* text, or all of a frame that has none */
	char buf[READ_BYTES];
};

bool zst_is_stream(const void *data, size_t len)
{
	static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd};

	return len >= sizeof(magic) && !memcmp(data, magic, sizeof(magic));
}

bool zst_file_is_stream(int fd)
{
	char magic[4];
	ssize_t n = pread(fd, magic, sizeof(magic), 0);

	return n > 0 && zst_is_stream(magic, (size_t)n);
}

static bool is_capture(const void *data, size_t len)
{
	return len >= sizeof(RAW_MAGIC) && !memcmp(data, RAW_MAGIC, sizeof(RAW_MAGIC));
}

bool zst_packs_capture(const void *data, size_t len)
{
	char begin[sizeof(RAW_MAGIC)];
	ZSTD_outBuffer out = {begin, sizeof(begin), 0};
	ZSTD_inBuffer in = {data, len, 0};
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	size_t err = 0;

	while (ctx && !ZSTD_isError(err) && in.pos < in.size && out.pos < out.size)
		err = ZSTD_decompressStream(ctx, &out, &in);
	ZSTD_freeDCtx(ctx);
	return is_capture(begin, out.pos);
}

bool zst_is_gzip(const void *data, size_t len)
{
	return len >= 3 && !memcmp(data, "\x1f\x8b\x08", 3);
}

static int refuse(const void *data, size_t len)
{
	if (zst_is_gzip(data, len))
		return -ENOEXEC;
	return is_capture(data, len) ? -EMEDIUMTYPE : 0;
}

static int refuse_packed(int fd)
{
	char *buf = malloc(ZST_BEGIN);
	ssize_t n = buf ? pread(fd, buf, ZST_BEGIN, 0) : 0;
	int err = 0;

	if (n > 0 && zst_packs_capture(buf, (size_t)n))
		err = -ENOMEDIUM;
	free(buf);
	return err;
}

int zst_file_refuse(int fd)
{
	char magic[sizeof(RAW_MAGIC)];
	ssize_t n = pread(fd, magic, sizeof(magic), 0);

	if (n > 0 && zst_is_stream(magic, (size_t)n))
		return refuse_packed(fd);
	return n > 0 ? refuse(magic, (size_t)n) : 0;
}

/* `data`: what was read of the file already, at most READ_BYTES, which is copied. NULL: no memory. */
static struct zst_reader *reader_new(const void *data, size_t len)
{
	struct zst_reader *z = malloc(sizeof(*z));

	if (!z)
		return NULL;
	z->ctx = ZSTD_createDCtx();
	if (!z->ctx ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(z->ctx, ZSTD_d_windowLogMax, READ_WINDOW_LOG))) {
		ZSTD_freeDCtx(z->ctx);
		free(z);
		return NULL;
	}
	memcpy(z->buf, data, len);
	z->in = (ZSTD_inBuffer){z->buf, len, 0};
	z->any = false;
	return z;
}

static ssize_t read_patiently(int fd, void *buf, size_t size)
{
	ssize_t n;

	do {
		n = read(fd, buf, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* More of the file; 0 at its end. */
static ssize_t more(struct zst_reader *z, int fd)
{
	ssize_t n = read_patiently(fd, z->buf, sizeof(z->buf));

	if (n > 0)
		z->in = (ZSTD_inBuffer){z->buf, (size_t)n, 0};
	return n;
}

static ssize_t reader_read(struct zst_reader *z, int fd, void *buf, size_t size)
{
	ZSTD_outBuffer out = {buf, size, 0};
	size_t left;
	ssize_t n;

	for (;;) {
		left = ZSTD_decompressStream(z->ctx, &out, &z->in);
		if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
			return -EOVERFLOW;
		if (ZSTD_isError(left))
			return -EPROTO;
		z->any |= out.pos || !left;
		if (out.pos)
			return (ssize_t)out.pos;
		if (z->in.pos < z->in.size)
			continue;
		n = more(z, fd);
		if (n <= 0)
			return n || z->any ? n : -ENOLINK;
	}
}

ssize_t zst_text__read(struct zst_text *t, int fd, void *buf, size_t size)
{
	bool first = !t->begun;
	int refused;
	ssize_t n;

	if (t->reader)
		return reader_read(t->reader, fd, buf, size);
	t->begun = true;
	n = read_patiently(fd, buf, first && size > READ_BYTES ? READ_BYTES : size);
	refused = first && n > 0 ? refuse(buf, (size_t)n) : 0;
	if (refused)
		return refused;
	if (!first || n < 0 || !zst_is_stream(buf, (size_t)n))
		return n;
	t->reader = reader_new(buf, (size_t)n);
	if (!t->reader)
		return -ENOMEM;
	n = reader_read(t->reader, fd, buf, size);
	return n > 0 && is_capture(buf, (size_t)n) ? -ENOMEDIUM : n;
}

const char *zst_text__error(int err)
{
	if (err == -ENOEXEC)
		return "it is compressed by gzip: unpack it, or use zstd";
	if (err == -EMEDIUMTYPE)
		return "it is a capture of record --raw: 'ncclscope convert' makes traces of it";
	if (err == -ENOMEDIUM)
		return "it is a capture of record --raw, compressed by zstd: 'ncclscope convert' "
		       "makes traces of what 'zstd -d' makes of it";
	if (err == -EOVERFLOW)
		return "it is compressed with a window of more than 8 MiB, as by zstd --long or "
		       "--ultra: unpack it, 'zstd -d --long=31', or compress it by 'zstd -19' at "
		       "most";
	if (err == -ENOLINK)
		return "it is compressed, and cut before its first record is whole: whoever wrote "
		       "it was killed then, or the disk was full; leave it out";
	return err == -EPROTO ? "its compression is damaged" : strerror(-err);
}

void zst_text__end(struct zst_text *t)
{
	if (t->reader)
		ZSTD_freeDCtx(t->reader->ctx);
	free(t->reader);
	*t = (struct zst_text){0};
}
