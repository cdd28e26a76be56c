// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's text files; see text.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "text.h"

#define FILE_MIN 16384

bool text__line(struct text *t, struct text *line)
{
	const char *nl;

	if (t->at >= t->end)
		return false;
	nl = memchr(t->at, '\n', (size_t)(t->end - t->at));
	line->at = t->at;
	line->end = nl ? nl : t->end;
	t->at = nl ? nl + 1 : t->end;
	return true;
}

bool text__word(struct text *t, char sep, struct text *word)
{
	while (t->at < t->end && *t->at == sep)
		t->at++;
	word->at = t->at;
	while (t->at < t->end && *t->at != sep)
		t->at++;
	word->end = t->at;
	if (t->at < t->end)
		t->at++;
	return word->at < word->end;
}

bool text__is(const struct text *word, const char *s)
{
	size_t len = strlen(s);

	return (size_t)(word->end - word->at) == len && !memcmp(word->at, s, len);
}

static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 : 16;
}

bool text__number(const struct text *word, uint64_t base, uint64_t *value)
{
	const char *p;
	uint64_t v = 0;

	for (p = word->at; p < word->end; p++)
		if (digit(*p) >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, digit(*p), &v))
			return false;
	*value = v;
	return word->at < word->end;
}

bool text__take(struct text *t, uint64_t base, uint64_t *value)
{
	struct text word;

	return text__word(t, ' ', &word) && text__number(&word, base, value);
}

static int grow(struct text_file *f)
{
	size_t cap = f->cap ? f->cap * 2 : FILE_MIN;
	char *at = realloc(f->at, cap);

	if (!at)
		return -ENOMEM;
	f->at = at;
	f->cap = cap;
	return 0;
}

int text_file__read(struct text_file *f, const char *root, const char *name, size_t max)
{
	char path[PATH_MAX];
	ssize_t n = 1;
	int fd, err = 0;

	f->len = 0;
	if (snprintf(path, sizeof(path), "%s%s", root, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (!err && n > 0 && f->len < max) {
		if (f->len == f->cap)
			err = grow(f);
		if (err)
			break;
		n = read(fd, f->at + f->len, f->cap - f->len);
		if (n < 0)
			err = -errno;
		else
			f->len += (size_t)n;
	}
	close(fd);
	if (f->len > max)
		f->len = max;
	return err;
}

void text_file__free(struct text_file *f)
{
	free(f->at);
	*f = (struct text_file){0};
}
