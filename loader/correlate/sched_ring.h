/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads and CPUs keep of the last while: rings that drop the oldest. Sizes are powers of two; all together take no more than
 * sched.room_max bytes.
 */
#ifndef NCCLSCOPE_SCHED_RING_H
#define NCCLSCOPE_SCHED_RING_H

#include "sched_timeline.h"

/* Whether a ring that is full may grow: to max, and within what all rings may take. */
bool ring_grows(const struct sched *s, uint32_t size, size_t item, uint32_t max);
/* Makes room for one more of `item` bytes, up to max; then the oldest goes. false: no memory. */
bool ring_room(struct sched *s, void **at, uint32_t *size, uint64_t *first, uint64_t end,
	       size_t item, uint32_t max);
/* After much at once, most of it stays empty. */
void ring_shrink(struct sched *s, void **at, uint32_t *size, uint64_t first, uint64_t end,
		 size_t item);

#define RING_ROOM(s, r, max)                                                                       \
	ring_room(s, (void **)&(r)->at, &(r)->size, &(r)->first, (r)->end, sizeof(*(r)->at), max)

#define RING_SHRINK(s, r)                                                                          \
	ring_shrink(s, (void **)&(r)->at, &(r)->size, (r)->first, (r)->end, sizeof(*(r)->at))

#endif
