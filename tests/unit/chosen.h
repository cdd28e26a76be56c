/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids that a job, or whoever writes a trace, has chosen so that they fall into one bucket of uthash by its own hash
 * function; of plain ids as many are there to compare with.
 */
#ifndef NCCLSCOPE_TESTS_CHOSEN_H
#define NCCLSCOPE_TESTS_CHOSEN_H

#include <stdint.h>
#include "hash.h"

/* Eight bits do: a table whose growth parts nothing ceases to grow. */
#define CHOSEN_BITS 8

/* The one after @id. */
static inline uint64_t chosen_after(uint64_t id)
{
	unsigned int h;

	do {
		id++;
		HASH_JEN(&id, sizeof(id), h);
	} while (h & ((1u << CHOSEN_BITS) - 1));
	return id;
}

#endif
