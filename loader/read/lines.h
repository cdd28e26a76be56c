/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of traces: of files, of directories, of standard input, compressed or not. One file after the other. */
#ifndef NCCLSCOPE_LINES_H
#define NCCLSCOPE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What becomes of them. What returns another value than 0 ends the reading. */
struct lines_ops {
	/* A file begins; "(stdin)" is one. Also called of those that cannot be opened. */
	int (*begin)(void *to, const char *path);
	/* Without its newline; valid during the call. @whole: it had one. */
	int (*line)(void *to, const char *s, size_t len, bool whole);
	/* A line beyond JSON_MAX_LINE, which is passed over. */
	int (*too_long)(void *to);
	/* The file has been read to its end. */
	int (*end)(void *to);
	/* It could not be read (further); of those whose end has no call. May be NULL, then it is told. */
	void (*failed)(void *to, int err);
	/* Now and then, in bytes of the files as they are; may be NULL. */
	void (*progress)(void *to, uint64_t done, uint64_t total);
	bool quiet; /* what cannot be read is not told */
};

/*
 * Reads what @paths name, up to NULL: files, directories (their trace_*.jsonl and .jsonl.zst, by name, without what leads to no regular
 * file, as a pipe), "-". What cannot be read is told, and the others are read all the same. 0 or the first -errno, or what a function above returned.
 */
int lines_read(char *const *paths, const struct lines_ops *ops, void *to);

/*
 * Has @visit called for the file that @path names, or for what a directory has of traces (trace_*.jsonl and .jsonl.zst), by
 * name. A directory without any is the wrong one: that is told, but if @quiet. 0, or the last error of these.
 */
int lines_visit(const char *path, bool quiet, int (*visit)(void *to, const char *file), void *to);

/* Whether a file that @paths name, as above, is that at @path: it must not be written over. */
bool lines_have(char *const *paths, const char *path);

struct json_doc;

/*
 * Parses a line. Where it does not parse, a recording may have broken off in it, and cat have put the next file behind it: then @s is
 * moved to that one's header, this is parsed, and @torn is set, also where it does not parse either. 0, -ENOMEM, or -EINVAL: then
 * what is wrong with all of the line is in @doc.
 */
int lines_parse(struct json_doc *doc, const char **s, size_t *len, bool *torn);

#endif
