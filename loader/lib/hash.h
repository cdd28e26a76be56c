/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uthash. Its tables take memory of their own: where there is none an element is not added, and HASH_ADDED() tells;
 * by itself uthash would end the program. Keys are mostly what jobs, or whoever writes a trace, have chosen: its own hash
 * function is a known one, by which all keys can be made to fall into one bucket.
 */
#ifndef NCCLSCOPE_HASH_H
#define NCCLSCOPE_HASH_H

#define HASH_NONFATAL_OOM	       1
#define HASH_FUNCTION(data, len, hash) ((hash) = (unsigned int)hash__of(data, len))
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* Made up at the program's start: nobody outside knows it. */
extern uint64_t hash_key[3];

/* Each bit of the product is in it: the upper ones depend on all bits below, the lower ones do not on those above. */
static inline uint64_t hash__fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* All bits of it may be used. Twice: of numbers that count up, the first product is as regular as they are. */
static inline uint64_t hash__of(const void *data, size_t len)
{
	uint64_t hash = hash_key[0] ^ len, word = 0;
	const char *at = data;

	for (; len >= sizeof(word); len -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = hash__fold(hash ^ word, hash_key[1]);
	}
	if (len) {
		word = 0;
		memcpy(&word, at, len);
		hash = hash__fold(hash ^ word, hash_key[1]);
	}
	return hash__fold(hash, hash_key[2]);
}

/* After each HASH_ADD: whether the element is in the table. */
#define HASH_ADDED(hh, el) ((el)->hh.tbl != NULL)

/* Frees all elements of a table, which own nothing else, and so the table. */
#define HASH_FREE_ALL(head)                                                                        \
	do {                                                                                       \
		__typeof__(head) el_, tmp_;                                                        \
                                                                                                   \
		HASH_ITER (hh, head, el_, tmp_) {                                                  \
			HASH_DEL(head, el_);                                                       \
			free(el_);                                                                 \
		}                                                                                  \
	} while (0)

#endif
