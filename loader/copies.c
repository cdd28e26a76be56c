// SPDX-License-Identifier: BSD-2-Clause
/* Traces that are given more than once; see copies.h. That two differ and their hashes do not is left to chance. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include "copies.h"
#include "fnv.h"
#include "hash.h"
#include "log.h"

struct copy {
	uint64_t key;
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

void copies__warn(const struct copies *c)
{
	if (c->n)
		pr_warn("Traces of %" PRIu64 " process%s are given more than once, and taken once; "
			"the first that was left out: '%s'\n",
			c->n, c->n == 1 ? "" : "es", c->first);
}

void copies__free(struct copies *c)
{
	HASH_FREE_ALL(c->seen);
}
