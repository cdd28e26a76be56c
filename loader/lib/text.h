/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's text files in /proc, /sys and cgroups: lines, words and numbers of it, and reading a whole one.
 * Nothing in a text is trusted; numbers that do not fit are none.
 */
#ifndef NCCLSCOPE_TEXT_H
#define NCCLSCOPE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of text that parsing has not come to yet. Not owned. */
struct text {
	const char *at, *end;
};

static inline struct text text_of(const char *at, size_t len)
{
	return (struct text){at, at ? at + len : at};
}

/* The next line, without its newline; false at the end. */
bool text__line(struct text *t, struct text *line);

/* The next word, up to a byte `sep`, which is taken as well; false where nothing is left. */
bool text__word(struct text *t, char sep, struct text *word);

bool text__is(const struct text *word, const char *s);

/* A word that is a number of that base (10 or 16, lower case) and nothing else. */
bool text__number(const struct text *word, uint64_t base, uint64_t *value);

/* The next word, between spaces, as such a number. */
bool text__take(struct text *t, uint64_t base, uint64_t *value);

/* The text of one file, in memory that is used again; zero at first. */
struct text_file {
	char *at;
	size_t len, cap;
};

/* The first `max` bytes of root + name. 0 or -errno. */
int text_file__read(struct text_file *f, const char *root, const char *name, size_t max);
void text_file__free(struct text_file *f);

#endif
