// SPDX-License-Identifier: BSD-2-Clause
/* Sums by culprit; see sched_culprits.h. There are few, mostly: they lie in a row. */
#include <string.h>
#include "sched_culprits.h"

static bool is_same(const struct culprit *a, const struct culprit *b)
{
	return a->id == b->id && !memcmp(a->comm, b->comm, sizeof(a->comm));
}

static struct culprit *find(struct culprits *c, const struct culprit *one)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		if (is_same(&c->at[i], one))
			return &c->at[i];
	return NULL;
}

static struct culprit *least(struct culprits *c)
{
	struct culprit *least = c->at;
	uint32_t i;

	for (i = 1; i < c->n; i++)
		if (c->at[i].ns < least->ns)
			least = &c->at[i];
	return least;
}

void culprits__copy(struct culprits *to, const struct culprits *from)
{
	memcpy(to->at, from->at, from->n * sizeof(*from->at));
	to->n = from->n;
	to->dropped = from->dropped;
}

void culprits__add(struct culprits *c, const struct culprit *one)
{
	struct culprit *there = find(c, one);

	if (there) {
		there->ns += one->ns;
		return;
	}
	if (c->n < CULPRITS_MAX) {
		c->at[c->n++] = *one;
		return;
	}
	c->dropped = true;
	there = least(c);
	if (there->ns < one->ns)
		*there = *one;
}

void culprits__take(struct culprits *c, const struct culprit *one)
{
	struct culprit *there = find(c, one);

	if (!there)
		return;
	there->ns -= one->ns;
	if (!there->ns)
		*there = c->at[--c->n];
}

/* Whatever order they came in. */
static bool is_before(const struct culprit *a, const struct culprit *b)
{
	if (a->ns != b->ns)
		return a->ns > b->ns;
	if (a->id != b->id)
		return a->id < b->id;
	return memcmp(a->comm, b->comm, sizeof(a->comm)) < 0;
}

uint32_t culprits__rank(struct culprits *c, uint32_t top)
{
	struct culprit first;
	uint32_t i, j, most;

	for (i = 0; i < top && i < c->n; i++) {
		for (most = i, j = i + 1; j < c->n; j++)
			if (is_before(&c->at[j], &c->at[most]))
				most = j;
		first = c->at[most];
		c->at[most] = c->at[i];
		c->at[i] = first;
	}
	return i;
}
