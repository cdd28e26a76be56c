/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces that are given more than once: the same file again, or a copy of it, compressed or not. A trace goes by its header and the
 * line behind that, which has a time: two recordings of a process differ in it.
 */
#ifndef NCCLSCOPE_COPIES_H
#define NCCLSCOPE_COPIES_H

#include <stddef.h>
#include <stdint.h>

/* Zero at first. */
struct copies {
	struct copy *seen;
	uint64_t n;	 /* traces that have come before */
	char first[256]; /* the file of the first of these */
};

uint64_t copies__hash(const char *s, size_t len);
/* Whether a trace has come before, by its header's hash and the line behind it; @path is its file. 1, 0, or -ENOMEM. */
int copies__again(struct copies *c, uint64_t header, const char *line, size_t len,
		  const char *path);
/* What the user ought to know. */
void copies__warn(const struct copies *c);
void copies__free(struct copies *c);

#endif
