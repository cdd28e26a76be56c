// SPDX-License-Identifier: BSD-2-Clause
/* Rings that grow and shrink; see sched_ring.h. */
#include <stdlib.h>
#include <string.h>
#include "sched_ring.h"

#define RING_MIN 16

_Static_assert(!(RING_MIN & (RING_MIN - 1)) && !(SCHED_SLICES_MAX & (SCHED_SLICES_MAX - 1)) &&
		       !(SCHED_RUNS_MAX & (SCHED_RUNS_MAX - 1)),
	       "rings");

#define RING_FLOOR 64 /* everybody may have so many, however much others have */

bool ring_grows(const struct sched *s, uint32_t size, size_t item, uint32_t max)
{
	uint32_t more = size ? size : RING_MIN;

	return size < max &&
	       (!s->room_max || size + more <= RING_FLOOR || s->room + more * item <= s->room_max);
}

/* What lies from `first` to `end` in a ring, in one of another size. A size is a power of two. */
static void ring_move(char *to, uint32_t to_size, const char *from, uint32_t from_size,
		      uint64_t first, uint64_t end, size_t item)
{
	uint32_t at, was, n;

	for (; first < end; first += n) {
		at = first & (to_size - 1);
		was = first & (from_size - 1);
		n = to_size - at < from_size - was ? to_size - at : from_size - was;
		n = n < end - first ? n : (uint32_t)(end - first);
		memcpy(to + at * item, from + was * item, n * item);
	}
}

bool ring_room(struct sched *s, void **at, uint32_t *size, uint64_t *first, uint64_t end,
	       size_t item, uint32_t max)
{
	uint32_t grown = *size ? *size * 2 : RING_MIN;
	char *fresh;

	if (end - *first < *size)
		return true;
	if (!ring_grows(s, *size, item, max)) {
		(*first)++;
		return true;
	}
	fresh = malloc(grown * item);
	if (!fresh)
		return false;
	if (*size)
		ring_move(fresh, grown, *at, *size, *first, end, item);
	free(*at);
	*at = fresh;
	s->room += (grown - *size) * item;
	*size = grown;
	return true;
}

void ring_shrink(struct sched *s, void **at, uint32_t *size, uint64_t first, uint64_t end,
		 size_t item)
{
	uint32_t less = *size / 2;
	char *fresh;

	if (less < RING_FLOOR || end - first > *size / 8)
		return;
	fresh = malloc(less * item);
	if (!fresh)
		return;
	ring_move(fresh, less, *at, *size, first, end, item);
	free(*at);
	*at = fresh;
	*size = less;
	s->room -= less * item;
}
