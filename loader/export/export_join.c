// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which parts of ranks are one operation. The name of one is communicator, function and seq, which all replays of a CUDA graph have in
 * common, as do the lives of a rank that was restarted: of one name a rank is in each operation once. Files come one after the other,
 * so a rank's next part belongs to what others did at the same time, not to what they did last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export.h"
#include "search.h"

/* Of all; then the name that came first goes, and its next operation counts as its first. */
#define BYTES_MAX (16u << 20)
#define OVERHEAD  32 /* what a piece of memory takes besides */
#define RANKS_MAX 65536
#define MOVED_MAX 4096 /* so many operations are moved for one that began before them */
#define NEAR	  8    /* of those that began before it, the last ones are looked at */

/* One operation of a name. */
struct turn {
	int64_t start, end; /* of the part that came first */
	uint64_t *ranks;    /* a bit for each that is in it; owned */
	uint32_t words, nr;
};

struct name {
	uint64_t hash;
	struct turn *turns; /* in the order of their start; owned */
	uint32_t n, cap;
	UT_hash_handle hh;
};

struct export_join {
	struct name *names; /* oldest first */
	size_t bytes;
};

struct export_join *export_join__new(void)
{
	return calloc(1, sizeof(struct export_join));
}

static void forget_name(struct export_join *j, struct name *name)
{
	uint32_t i;

	HASH_DEL(j->names, name);
	j->bytes -= sizeof(*name) + OVERHEAD + name->cap * sizeof(*name->turns);
	for (i = 0; i < name->n; i++) {
		j->bytes -= OVERHEAD + name->turns[i].words * sizeof(uint64_t);
		free(name->turns[i].ranks);
	}
	free(name->turns);
	free(name);
}

void export_join__free(struct export_join *j)
{
	while (j && j->names)
		forget_name(j, j->names);
	free(j);
}

static struct name *name_of(struct export_join *j, uint64_t hash)
{
	struct name *name;

	HASH_FIND(hh, j->names, &hash, sizeof(hash), name);
	if (name)
		return name;
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	name->hash = hash;
	HASH_ADD(hh, j->names, hash, sizeof(name->hash), name);
	if (!HASH_ADDED(hh, name)) {
		free(name);
		return NULL;
	}
	j->bytes += sizeof(*name) + OVERHEAD;
	return name;
}

static bool has_rank(const struct turn *t, uint32_t rank)
{
	return rank / 64 < t->words && t->ranks[rank / 64] >> rank % 64 & 1;
}

static int add_rank(struct export_join *j, struct turn *t, uint32_t rank)
{
	uint32_t words = rank / 64 + 1;
	uint64_t *ranks;

	if (!t->ranks || words > t->words) {
		ranks = reallocarray(t->ranks, words, sizeof(*ranks));
		if (!ranks)
			return -ENOMEM;
		memset(ranks + t->words, 0, (words - t->words) * sizeof(*ranks));
		j->bytes += (t->ranks ? 0 : OVERHEAD) + (words - t->words) * sizeof(*ranks);
		t->ranks = ranks;
		t->words = words;
	}
	t->ranks[rank / 64] |= UINT64_C(1) << rank % 64;
	return 0;
}

static bool begins_later(const void *of, uint64_t i, uint64_t ns)
{
	const struct name *name = of;

	return name->turns[i].start > (int64_t)ns;
}

/* How many began before or at @ns. */
static uint32_t begun(const struct name *name, int64_t ns)
{
	return (uint32_t)search_later(0, name->n, begins_later, name, (uint64_t)ns);
}

/* The one without the rank that has most of its time in common. */
static struct turn *at_the_time(const struct name *name, uint32_t rank, int64_t start, int64_t end)
{
	uint32_t last = begun(name, end), i;
	struct turn *best = NULL, *t;
	int64_t most = -1, from, to;

	for (i = last; i && last - i < NEAR; i--) {
		t = &name->turns[i - 1];
		from = t->start > start ? t->start : start;
		to = t->end < end ? t->end : end;
		if (to - from > most && !has_rank(t, rank)) {
			most = to - from;
			best = t;
		}
	}
	return best;
}

static struct turn *add_turn(struct export_join *j, struct name *name, int64_t start, int64_t end,
			     int *err)
{
	uint32_t at = begun(name, start), cap = name->cap ? 2 * name->cap : 1;
	struct turn *turns;

	if (name->n - at > MOVED_MAX)
		return NULL;
	if (name->n == name->cap) {
		turns = reallocarray(name->turns, cap, sizeof(*turns));
		if (!turns) {
			*err = -ENOMEM;
			return NULL;
		}
		j->bytes += (cap - name->cap) * sizeof(*turns);
		name->turns = turns;
		name->cap = cap;
	}
	memmove(&name->turns[at + 1], &name->turns[at], (name->n - at) * sizeof(*turns));
	name->turns[at] = (struct turn){.start = start, .end = end, .nr = name->n++};
	return &name->turns[at];
}

uint64_t export_join_of(struct export *x, uint64_t hash, int32_t rank, int64_t start, int64_t end)
{
	struct name *name;
	struct turn *t;

	if (rank < 0 || rank >= RANKS_MAX)
		return 0;
	while (x->join->bytes > BYTES_MAX)
		forget_name(x->join, x->join->names);
	name = name_of(x->join, hash);
	if (!name) {
		x->err = -ENOMEM;
		return 0;
	}
	/* of one alone it is known without a look at clocks, which may be wrong by more than it takes */
	if (name->n == 1 && !has_rank(&name->turns[0], (uint32_t)rank))
		t = &name->turns[0];
	else
		t = at_the_time(name, (uint32_t)rank, start, end);
	if (!t)
		t = add_turn(x->join, name, start, end, &x->err);
	if (t && add_rank(x->join, t, (uint32_t)rank))
		x->err = -ENOMEM;
	if (!t || x->err)
		return 0;
	/* another export may number them in another way: they are not to be joined with those, if they are put together */
	return t->nr ? fnv_more(fnv_more(hash, &t->nr, sizeof(t->nr)), &t->start, sizeof(t->start))
		     : hash;
}
