// SPDX-License-Identifier: BSD-2-Clause
/* Traces that are given more than once; see copies.h. That two differ and their hashes do not is left to chance. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "copies.h"
#include "fnv.h"
#include "hash.h"
#include "human.h"
#include "log.h"

struct copy {
	uint64_t key;
	uint64_t taken; /* records of the one that was taken */
	uint64_t left;	/* and of the longest that was left out, */
	char *path;	/* whose file this is; owned */
	UT_hash_handle hh;
};

struct recording {
	uint64_t process; /* or others of that pid, which have times of their own */
	struct copies_span when;
	char *path; /* owned */
};

/* ---- A trace that is read -------------------------------------------------------------------------------- */

int copies__begin(struct copies_trace *t, const char *s, size_t len)
{
	t->begins = true;
	xbuf__put(&t->header, s, len);
	return t->header.failed ? -ENOMEM : 0;
}

static struct copy *new_copy(struct copies *c, uint64_t key)
{
	struct copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->key = key;
	HASH_ADD(hh, c->seen, key, sizeof(copy->key), copy);
	if (HASH_ADDED(hh, copy))
		return copy;
	free(copy);
	return NULL;
}

/* Whether the trace has come before is known by now. */
static int find(struct copies *c, struct copies_trace *t, uint64_t key, const char *path)
{
	HASH_FIND(hh, c->seen, &key, sizeof(key), t->of);
	if (!t->of) {
		t->of = new_copy(c, key);
		return t->of ? COPIES_BEGIN : -ENOMEM;
	}
	t->is_copy = true;
	t->header.len = 0;
	if (!c->n++)
		snprintf(c->first, sizeof(c->first), "%s", path);
	return COPIES_LEAVE;
}

int copies__line(struct copies *c, struct copies_trace *t, const char *s, size_t len,
		 const char *path)
{
	uint64_t header;

	t->records++;
	if (!t->begins)
		return t->is_copy ? COPIES_LEAVE : COPIES_TAKE;
	t->begins = false;
	header = fnv_more(FNV_BEGIN, t->header.s, t->header.len);
	return find(c, t, fnv_more(header, s, len), path);
}

bool copies__header(struct copies_trace *t, const char **s, size_t *len)
{
	*s = t->header.s;
	*len = t->header.len;
	t->header.len = 0;
	return *len;
}

void copies__end(struct copies_trace *t, const char *path)
{
	struct copy *copy = t->of;

	if (copy && !t->is_copy) {
		copy->taken = t->records;
	} else if (copy && t->records > copy->left) {
		copy->left = t->records;
		free(copy->path);
		copy->path = strdup(path);
	}
	t->header.len = 0;
	*t = (struct copies_trace){.header = t->header};
}

void copies__trace_free(struct copies_trace *t)
{
	xbuf__free(&t->header);
}

/* ---- Recordings of a process ------------------------------------------------------------------------------ */

int copies__recorded(struct copies *c, uint64_t node, int32_t pid, const struct copies_span *when,
		     const char *path)
{
	size_t room = c->room ? 2 * c->room : 64;
	struct recording *r;

	if (when->first > when->last)
		return 0;
	if (c->nr_recorded == c->room) {
		r = reallocarray(c->recorded, room, sizeof(*r));
		if (!r)
			return -ENOMEM;
		c->recorded = r;
		c->room = room;
	}
	r = &c->recorded[c->nr_recorded];
	*r = (struct recording){fnv_more(node, &pid, sizeof(pid)), *when, strdup(path)};
	if (!r->path)
		return -ENOMEM;
	c->nr_recorded++;
	return 0;
}

/* By process, then by time. */
static int by_begin(const void *pa, const void *pb)
{
	const struct recording *a = pa, *b = pb;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->when.first > b->when.first) - (a->when.first < b->when.first);
}

/* Processes that two recordings have at the same time, and a file of one of these. */
static uint64_t doubles(const struct copies *c, const char **path)
{
	const struct recording *r = c->recorded, *said = NULL;
	int64_t last = INT64_MIN;
	uint64_t n = 0;
	size_t i;

	if (c->nr_recorded)
		qsort(c->recorded, c->nr_recorded, sizeof(*c->recorded), by_begin);
	for (i = 0; i < c->nr_recorded; i++, r++) {
		if (!i || r->process != r[-1].process)
			last = INT64_MIN;
		if (r->when.first < last && (!said || said->process != r->process)) {
			said = r;
			*path = n++ ? *path : r->path;
		}
		if (r->when.last > last)
			last = r->when.last;
	}
	return n;
}

/* ---- What is said ----------------------------------------------------------------------------------------- */

/* What was taken is written by the time that more is found in another copy. */
static void warn_longer(const struct copies *c)
{
	const struct copy *copy, *first = NULL;
	uint64_t n = 0;

	for (copy = c->seen; copy; copy = copy->hh.next)
		if (copy->left > copy->taken) {
			first = first ? first : copy;
			n++;
		}
	if (n)
		pr_warn("Of %" PRIu64 " of these what was left out has more in it than what was "
			"taken, which broke off before: give that alone; the first: '%s' has "
			"%" PRIu64 " records, %" PRIu64 " were taken\n",
			n, first->path ? first->path : "", first->left, first->taken);
}

void copies__warn(const struct copies *c)
{
	const char *path = "";
	uint64_t n = doubles(c, &path);

	if (n)
		pr_warn("Processes that two recordings have at the same time: %" PRIu64
			". Their events are there twice; give one of the two; one of these traces: "
			"'%s'\n",
			n, path);
	if (c->n)
		pr_warn("Traces of %" PRIu64 " process%s are given more than once, and taken once; "
			"the first that was left out: '%s'\n",
			c->n, human__es(c->n), c->first);
	warn_longer(c);
}

void copies__free(struct copies *c)
{
	const struct copy *copy;

	for (copy = c->seen; copy; copy = copy->hh.next)
		free(copy->path);
	HASH_FREE_ALL(c->seen);
	while (c->nr_recorded)
		free(c->recorded[--c->nr_recorded].path);
	free(c->recorded);
	c->recorded = NULL;
	c->room = 0;
}
