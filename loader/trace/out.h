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
	OUT_OPEN,
	OUT_THREAD,
	OUT_SLICE,
	OUT_FLOW,
	OUT_DROP,
	OUT_SIGNAL,
	OUT_NODE,
	OUT_GPU,
	OUT_KMSG,
	OUT_CLOCK,
	OUT_LOST,
	OUT_FOOTER,
	OUT_KINDS,
};

extern const char *const out_kind_names[OUT_KINDS];

#define OUT_LINE_MAX (1u << 20) /* bytes of a line, '\n' included: the format's own limit */

struct out_file {
	/* A thread's that writes, while it has lines of this file, which stays where it is then; else the owner's. */
	struct zst_writer *zst; /* NULL: the file is text; owned */
	uint64_t size;		/* bytes of the file that are whole lines */
	bool torn;		/* there are others behind them, which could not be cut off yet */

	/* Both's, for as long as it is open. */
	int fd;
	char *path; /* for messages; owned */

	/* The owner's. */
	char *buf; /* whole lines not yet written */
	size_t len, cap;
	uint64_t oldest_ns;	     /* when the first line in buf was added */
	uint64_t counts[OUT_KINDS];  /* lines in the file and on their way */
	uint64_t pending[OUT_KINDS]; /* of these, lines in buf */
	uint64_t write_lost; /* lines lost to write errors and not yet reported in the trace */
	bool failing;
	int err;     /* of batches that could not be written since the last out_file__flush() */
	bool ending; /* what comes now may use the room that was kept for it; set by the owner */
	struct out_writer
		*writer;    /* NULL: who adds lines writes them; set by the owner; out_threads.h */
	uint32_t in_flight; /* batches that the writer has */
};

/* Whole lines on their way into a file. */
struct out_batch {
	struct out_file *file;
	char *buf; /* of out_file, or a writer's own */
	size_t len, cap;
	uint64_t kinds[OUT_KINDS];
	bool ending;
	int err; /* on the way back: 0 or -errno */
};

/*
 * Opens the directory at `path`, or makes it (owned by uid:gid; uid -1: by root) in one that is there. The way to
 * it leads through no symbolic link that somebody else than root, we or `uid` can have made or can change; where
 * `links` is false, through none at all. What others have made where anybody may (/tmp) is not taken. An fd or
 * -errno, for out_dir_error().
 */
int out_dir_open(const char *path, bool links, uid_t uid, gid_t gid);
/* The same; *made: it was not there before. */
int out_dir_make(const char *path, bool links, uid_t uid, gid_t gid, bool *made);
const char *out_dir_error(int err);
/* The same way to one that is there, for looking at what is in it (O_PATH). An fd or -errno. */
int out_dir_find(const char *path, bool links, uid_t uid);
/*
 * Before there is anything to write: makes the directory `dir`, or (NULL) sees that one can be made where we are: a mistake in its name
 * should not cost a trace. 0 or -errno, which has been told. Where `dir` was not there before, *made is the caller's, for
 * out_dir_unmake(); else it stays as it is. May be NULL.
 */
int out_dir_check(const char *dir, uid_t uid, gid_t gid, int *made);
/* Nothing came to be written: takes the directory away again if it is empty, and closes `made`. */
void out_dir_unmake(const char *dir, int made);

/*
 * Takes what is open as `fd` away from dirfd, where it has the last name of `path`; not what somebody else has put in its place.
 * `flags` as unlinkat(2) has them.
 */
void unlink_ours(int dirfd, const char *path, int fd, int flags);

/* `name` below dirfd, by no link and no way out of it: an fd or -errno. */
int open_beneath(int dirfd, const char *name, int flags, mode_t mode);

/*
 * Makes a new file `name` in dirfd, mode 0640, owned by uid:gid; where that name is taken, name_2 and so
 * on before the extension. `dir` is for messages. 0 or -errno.
 */
int out_file__open(struct out_file *f, int dirfd, const char *dir, const char *stem, uid_t uid,
		   gid_t gid);

/* The same, compressed: name.jsonl.zst. What out_file__flush() has written can be read, whatever comes then. */
int out_file__open_zst(struct out_file *f, int dirfd, const char *dir, const char *stem, uid_t uid,
		       gid_t gid);

/* Room for a line of at most `max` bytes; then out_line_end() with what was written. NULL: no memory. */
struct json out_line_begin(struct out_file *f, size_t max);
void out_line_end(struct out_file *f, const struct json *j, enum out_kind kind, uint64_t now_ns);

/*
 * Writes what is buffered, and waits until all is written. 0 or -errno, of any lines since the last flush: those that
 * cannot be written are dropped and counted.
 */
int out_file__flush(struct out_file *f);

/* Writes what is buffered, or has a thread do it: the next flush tells what became of it. */
void out_file__push(struct out_file *f);

/* For whoever writes a batch, one after the other of a file: into the file, and batch->err is set. */
void out_batch__write(struct out_batch *batch);

/* For the file's owner: what became of a batch, in their order, goes into the file's counts. */
void out_batch__account(const struct out_batch *batch);

/* Somebody has deleted it: what is in it nobody will read. */
bool out_file__is_gone(const struct out_file *f);

/* How many lines it has that tell something: not the header, not the account of losses. */
uint64_t out_file__lines(const struct out_file *f);

/* After a line that took much room: gives that back, when there is nothing in it. */
void out_file__shrink(struct out_file *f);

/*
 * Writes what there is, and closes the file. How many lines may not be in it: some file systems (NFS) tell only then that they
 * have not written what they took. Safe on a file that was never opened, safe twice.
 */
uint64_t out_file__end(struct out_file *f);

/* The same, and frees it. */
void out_file__close(struct out_file *f);

#endif
