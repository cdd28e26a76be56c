/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces that are given more than once: the same file again, or a copy of it, compressed or not. A trace goes by its header and the
 * line behind that, which has a time: two recordings of a process differ in it. And what of a process is there twice all the same.
 */
#ifndef NCCLSCOPE_COPIES_H
#define NCCLSCOPE_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From its first event's stop to the last one's; nothing is in it at first. */
struct copies_span {
	int64_t first, last; /* ns of its node's clock */
};

#define COPIES_SPAN_NONE ((struct copies_span){INT64_MAX, INT64_MIN})

/* Zero at first. */
struct copies {
	struct copy *seen;
	uint64_t n;	 /* traces that have come before */
	char first[256]; /* the file of the first of these */
	struct recording *recorded;
	size_t nr_recorded, room;
};

/* A trace that is read: how much is in it, as one copy may have broken off before another. Zero at first. */
struct copies_trace {
	struct copy *of; /* NULL: none */
	uint64_t records;
	bool again;
};

uint64_t copies__hash(const char *s, size_t len);
/*
 * Whether a trace has come before, by its header's hash and the line behind it; @path is its file. 1, 0, or -ENOMEM. Its reader
 * then counts @t->records, also of one that is left out, until copies__end().
 */
int copies__again(struct copies *c, struct copies_trace *t, uint64_t header, const char *line,
		  size_t len, const char *path);
/* It has been read, as far as could be; @t is as at first again. */
void copies__end(struct copies_trace *t, const char *path);

static inline void copies__extend(struct copies_span *s, int64_t ns)
{
	if (ns < s->first)
		s->first = ns;
	if (ns > s->last)
		s->last = ns;
}

/*
 * A recording of a process has been read, whose @node (a hash) and @pid there are these. Windows of one process follow each other;
 * what two recorders have of it at a time is taken from both, as neither need have all. 0 or -ENOMEM.
 */
int copies__recorded(struct copies *c, uint64_t node, int32_t pid, const struct copies_span *when,
		     const char *path);
/* What the user ought to know. */
void copies__warn(const struct copies *c);
void copies__free(struct copies *c);

#endif
