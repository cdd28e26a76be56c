/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where traces go: directories and append-only files of whole lines. A disk that is full or gone costs
 * lines, which are counted, never the recording.
 */
#ifndef NCCLSCOPE_OUT_H
#define NCCLSCOPE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "json.h"

/* The kinds of lines in a trace, for the footer's counts. */
enum out_kind {
	OUT_HEADER,
	OUT_EVENT,
	OUT_STATE,
	OUT_THREAD,
	OUT_SLICE,
	OUT_FLOW,
	OUT_DROP,
	OUT_NODE,
	OUT_CLOCK,
	OUT_LOST,
	OUT_FOOTER,
	OUT_KINDS,
};

extern const char *const out_kind_names[OUT_KINDS];

#define OUT_LINE_MAX (1u << 20) /* bytes of a line, '\n' included: the format's own limit */

struct out_file {
	int fd;
	char *path; /* for messages; owned */
	char *buf;  /* whole lines not yet written */
	size_t len, cap;
	uint64_t size;		     /* bytes of whole lines in the file */
	uint64_t oldest_ns;	     /* when the first line in buf was added */
	uint64_t counts[OUT_KINDS];  /* lines in the file and in buf */
	uint64_t pending[OUT_KINDS]; /* of these, lines in buf */
	uint64_t write_lost; /* lines lost to write errors and not yet reported in the trace */
	bool failing;
};

/*
 * Opens or makes the directory at `path` (owned by uid:gid if made, uid -1: by root). Returns an fd or
 * -errno; -ENOTDIR also for a symbolic link.
 */
int out_dir_open(const char *path, uid_t uid, gid_t gid);

/*
 * Makes a new file `name` in dirfd, mode 0640, owned by uid:gid; where that name is taken, name_2 and so
 * on before the extension. `dir` is for messages. 0 or -errno.
 */
int out_file__open(struct out_file *f, int dirfd, const char *dir, const char *stem, uid_t uid,
		   gid_t gid);

/* Room for a line of at most `max` bytes; then out_line_end() with what was written. NULL: no memory. */
struct json out_line_begin(struct out_file *f, size_t max);
void out_line_end(struct out_file *f, const struct json *j, enum out_kind kind, uint64_t now_ns);

/* Writes what is buffered. Returns 0 or -errno; lines that cannot be written are dropped and counted. */
int out_file__flush(struct out_file *f);

/* Flushes and closes; safe on a file that was never opened, safe twice. */
void out_file__close(struct out_file *f);

#endif
