/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of many traces, read side by side, so that what ranks did at a time comes one soon after the other, and only what is
 * open need be kept. A stream is a piece of a file, from one header to the next: a file that cat made of several is several. Of
 * what is compressed, or no regular file, no pieces are known: it is one stream, in which several headers may come. Of more
 * streams than can be read side by side (4,096) those come first that begin first.
 */
#ifndef NCCLSCOPE_STREAMS_H
#define NCCLSCOPE_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct streams;

struct streams_options {
	bool brief; /* the files of a recorder that ends: one header each, nothing is followed, nothing is told */
	bool silent;	  /* what cannot be read is the caller's to say */
	bool again;	  /* they are to be read more than once: regular files only */
	int64_t limit_ns; /* stop reading after so long; 0: never */
};

struct streams_totals {
	uint64_t files;
	uint64_t bytes, total_bytes; /* read; to be read, as far as that is known */
	uint64_t too_long;	     /* lines beyond JSON_MAX_LINE, passed over */
	bool cut;		     /* by limit_ns */
	bool waited;		     /* there were more streams than are read side by side */
};

/* What becomes of the lines. */
struct streams_ops {
	const char *what; /* for the progress line: "Reading"; NULL: none */
	/* Stream @nr, counted from 0, begins: its reader, which the functions below get. NULL: no memory. */
	void *(*begin)(void *to, const char *path, uint32_t nr);
	/* Without its newline; valid during the call. @whole: it had one. Not 0: the reading ends. */
	int (*line)(void *reader, const char *s, size_t len, bool whole);
	/* How far the stream has come, in ns of a clock that all have. NULL: they are read one after the other. */
	int64_t (*now)(const void *reader);
	/* It has been read to its end, or as far as could be. */
	void (*end)(void *reader);
	/* All have come so far; may be NULL. */
	void (*floor)(void *to, int64_t now);
};

/*
 * The streams of @paths, up to NULL: files, directories (their trace_*.jsonl and .jsonl.zst, by name), "-". What cannot be opened is
 * told, and the others are there all the same; *err is the last of these. NULL: no memory.
 */
struct streams *streams__new(char *const *paths, const struct streams_options *opt, int *err);
/*
 * Reads all of them. What a line() returned, -ENOMEM, or the first error of a file, which is told and takes only the rest of that
 * file away.
 */
int streams__read(struct streams *f, const struct streams_ops *ops, void *to);
/* Of the last reading. */
const struct streams_totals *streams__totals(const struct streams *f);
void streams__free(struct streams *f); /* takes NULL */

#endif
