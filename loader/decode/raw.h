/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture: a file of inputs (input.h), one record each, as they came. docs/raw.md is the format. Written by `record
 * --raw`, read by `convert`, which takes it for hostile.
 */
#ifndef NCCLSCOPE_RAW_H
#define NCCLSCOPE_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "input.h"

#define RAW_MAGIC      "NCCLRAW" /* with its 0, 8 bytes */
#define RAW_VERSION    11u
#define RAW_OLDEST     4u	   /* that is read: before what the kernel skipped was in it */
#define RAW_RECORD_MAX (64u << 20) /* of a record; NET_SAMPLES_MAX flows are 17 MiB */

struct raw_file_hdr {
	char magic[8];
	uint32_t version;  /* RAW_VERSION; in the byte order of the machine that wrote it */
	uint32_t ring_abi; /* SCOPE_ABI of the records of the ring */
	char recorder[48]; /* name and version of who wrote it; for people */
};

/* A record: this, `size` bytes, and up to 7 of 0, so that the next one is aligned to 8. */
struct raw_rec_hdr {
	uint32_t size;
	uint16_t kind; /* enum input_kind; a reader that does not know it stops there */
	uint16_t mark; /* RAW_MARK: what is read is not something else */
};

#define RAW_MARK 0x5752

/* ---- Writing ----------------------------------------------------------------------------------- */

struct raw_writer;

/*
 * Makes the file `path`, mode 0600, which is not there yet; directories as for traces, see out_dir_open(), uid and gid
 * of who called us. NULL: no memory, or *err is -errno, for out_dir_error().
 */
struct raw_writer *raw_writer__open(const char *path, uid_t uid, gid_t gid, int *err);

/* Into the buffer, and to the file when that is full. */
void raw_writer__put(struct raw_writer *w, enum input_kind kind, const void *data, size_t size);

/*
 * Writes what is buffered. When that cannot be written the file ends before it, with a whole record, and nothing more
 * is written: what would follow makes no sense without it. Said once. 0 or -errno, then and ever after.
 */
int raw_writer__flush(struct raw_writer *w);

uint64_t raw_writer__bytes(const struct raw_writer *w); /* in the file */

/* Flushes, closes, frees; NULL is fine. 0 or -errno: not all is in the file. */
int raw_writer__close(struct raw_writer *w);
/* Closes, frees, and takes the file away, if it is still what has that name, and its directory, if that was made for it. */
void raw_writer__abandon(struct raw_writer *w);

/* ---- Reading ----------------------------------------------------------------------------------- */

struct raw_rec {
	enum input_kind kind;
	uint32_t size;
	const void *data; /* aligned to 8 bytes; valid until the next one is read */
	uint64_t offset;  /* of the record in the file */
};

struct raw_reader {
	int fd;		    /* -1: the whole file is in buf */
	unsigned char *buf; /* owned */
	size_t cap, len, at;
	uint64_t offset; /* of buf in the file */
	bool eof;
	char why[160]; /* after an error: what is wrong, for people */
};

/* Takes over fd, also when it fails. 0, -errno, or -EPROTO: no capture, or of another version; why. */
int raw_reader__open(struct raw_reader *r, int fd);

/*
 * The next record. 1; 0 at the end; -ENODATA: the file ends within a record, at rec->offset; -EPROTO: it is damaged there;
 * other -errno. why says more of the last three.
 */
int raw_reader__next(struct raw_reader *r, struct raw_rec *rec);

/* Of a file of memory; `data` is copied. As raw_reader__open(). */
int raw_reader__of(struct raw_reader *r, const void *data, size_t size);

void raw_reader__close(struct raw_reader *r);

#endif
