/* SPDX-License-Identifier: BSD-2-Clause */
/* FNV-1a, 64 bits: for tables and ids; whoever wants two texts to have the same hash can make them. */
#ifndef NCCLSCOPE_FNV_H
#define NCCLSCOPE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)

/* Of more data, from what it was so far; FNV_BEGIN at first. */
static inline uint64_t fnv_more(uint64_t h, const void *data, size_t len)
{
	const unsigned char *s = data;

	while (len--)
		h = (h ^ *s++) * UINT64_C(0x100000001b3);
	return h;
}

#endif
