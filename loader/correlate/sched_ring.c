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

bool ring_room(struct sched *s, void **at, uint32_t *size, uint64_t *first, uint64_t end,
	       size_t item, uint32_t max)
{
	uint32_t grown = *size ? *size * 2 : RING_MIN;
	char *fresh;
	uint64_t i;

	if (end - *first < *size)
		return true;
	if (!ring_grows(s, *size, item, max)) {
		(*first)++;
		return true;
	}
	fresh = malloc(grown * item);
	if (!fresh)
		return false;
	for (i = *first; *size && i < end; i++)
		memcpy(fresh + (i % grown) * item, (char *)*at + (i % *size) * item, item);
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
	uint64_t i;

	if (less < RING_FLOOR || end - first > *size / 8)
		return;
	fresh = malloc(less * item);
	if (!fresh)
		return;
	for (i = first; i < end; i++)
		memcpy(fresh + (i % less) * item, (char *)*at + (i % *size) * item, item);
	free(*at);
	*at = fresh;
	*size = less;
	s->room -= less * item;
}
