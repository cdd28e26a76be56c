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
#include "xbuf.h"

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

/*
 * The trace that a reader is at: which one it is, and how much is in it, as one copy may have broken off before another. Its header
 * waits here until the line behind it has come; if none does, the trace is no copy. Zero at first.
 */
struct copies_trace {
	bool begins;	    /* its header is all that has come of it */
	bool is_copy;	    /* it has come before: it is left out */
	struct copy *of;    /* NULL: none */
	uint64_t records;   /* behind the header, also of one that is left out */
	struct xbuf header; /* owned; len 0: none that waits */
};

/* What becomes of a line. */
enum copies_line {
	COPIES_TAKE,
	COPIES_BEGIN, /* it is behind its header, which is to be taken before it */
	COPIES_LEAVE  /* it is of a copy */
};

/* A header has come, of which a copy is kept; the trace before it has been ended. 0 or -ENOMEM. */
int copies__begin(struct copies_trace *t, const char *s, size_t len);
/* A line that is no header, of the file @path: an enum copies_line, or -ENOMEM. */
int copies__line(struct copies *c, struct copies_trace *t, const char *s, size_t len,
		 const char *path);
/*
 * The header that waits, which it then does no more; its text is valid up to copies__begin() or copies__trace_free(). false: none does.
 * Who has taken it when it came does not ask.
 */
bool copies__header(struct copies_trace *t, const char **s, size_t *len);
/* The trace has been read, as far as could be, and its header, if that still waits, is none of a copy: it has been taken. */
void copies__end(struct copies_trace *t, const char *path);
void copies__trace_free(struct copies_trace *t);

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
