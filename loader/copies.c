// SPDX-License-Identifier: BSD-2-Clause
/* Traces that are given more than once; see copies.h. That two differ and their hashes do not is left to chance. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "copies.h"
#include "fnv.h"
#include "hash.h"
#include "log.h"

struct copy {
	uint64_t key;
	UT_hash_handle hh;
};

struct recording {
	struct copies_span when;
	struct recording *next;
};

struct recorded {
	uint64_t key; /* the process, or others of that pid, which have times of their own */
	struct recording *list; /* owned */
	bool is_double;
	UT_hash_handle hh;
};

uint64_t copies__hash(const char *s, size_t len)
{
	return fnv_more(FNV_BEGIN, s, len);
}

int copies__again(struct copies *c, uint64_t header, const char *line, size_t len, const char *path)
{
	uint64_t key = fnv_more(header, line, len);
	struct copy *copy;

	HASH_FIND(hh, c->seen, &key, sizeof(key), copy);
	if (copy) {
		if (!c->n++)
			snprintf(c->first, sizeof(c->first), "%s", path);
		return 1;
	}
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	copy->key = key;
	HASH_ADD(hh, c->seen, key, sizeof(copy->key), copy);
	if (HASH_ADDED(hh, copy))
		return 0;
	free(copy);
	return -ENOMEM;
}

static struct recorded *recorded_of(struct copies *c, uint64_t key)
{
	struct recorded *p;

	HASH_FIND(hh, c->procs, &key, sizeof(key), p);
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->key = key;
	HASH_ADD(hh, c->procs, key, sizeof(p->key), p);
	if (HASH_ADDED(hh, p))
		return p;
	free(p);
	return NULL;
}

static void found_double(struct copies *c, struct recorded *p, const char *path)
{
	if (p->is_double)
		return;
	p->is_double = true;
	if (!c->doubles++)
		snprintf(c->first_double, sizeof(c->first_double), "%s", path);
}

int copies__recorded(struct copies *c, uint64_t node, int32_t pid, const struct copies_span *when,
		     const char *path)
{
	struct recorded *p = recorded_of(c, fnv_more(node, &pid, sizeof(pid)));
	struct recording *r = p ? calloc(1, sizeof(*r)) : NULL, *other;

	if (!r)
		return -ENOMEM;
	r->when = *when;
	for (other = p->list; other; other = other->next)
		if (when->first < other->when.last && other->when.first < when->last)
			found_double(c, p, path);
	r->next = p->list;
	p->list = r;
	return 0;
}

void copies__warn(const struct copies *c)
{
	if (c->doubles)
		pr_warn("Processes that two recordings have at the same time: %" PRIu64
			". Their events are there twice; give one of the two; a trace of the "
			"first: '%s'\n",
			c->doubles, c->first_double);
	if (c->n)
		pr_warn("Traces of %" PRIu64 " process%s are given more than once, and taken once; "
			"the first that was left out: '%s'\n",
			c->n, c->n == 1 ? "" : "es", c->first);
}

void copies__free(struct copies *c)
{
	struct recorded *p, *tmp;
	struct recording *r;

	HASH_FREE_ALL(c->seen);
	HASH_ITER (hh, c->procs, p, tmp)
		while ((r = p->list)) {
			p->list = r->next;
			free(r);
		}
	HASH_FREE_ALL(c->procs);
}
