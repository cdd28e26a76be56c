// SPDX-License-Identifier: BSD-2-Clause
/* Memory in blocks; see blocks.h. */
#include <stdbool.h>
#include <sys/mman.h>
#include "blocks.h"

#ifndef MADV_POPULATE_WRITE /* since Linux 5.14: before, each page is there when it is touched */
#define MADV_POPULATE_WRITE 23
#endif

#define IN_PIECE (BLOCKS_PIECE / BLOCKS_SIZE)
#define ALL_FREE ((1u << IN_PIECE) - 1)

/* At a multiple of its size, which a huge page has to be at: of twice as much, what lies before and behind is given back. */
static unsigned char *piece_map(void)
{
	unsigned char *mem = mmap(NULL, 2 * (size_t)BLOCKS_PIECE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (mem == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)mem % BLOCKS_PIECE;
	if (before)
		munmap(mem, before);
	mem += before;
	munmap(mem + BLOCKS_PIECE, BLOCKS_PIECE - before);
	/* Without the one or the other it only takes longer. */
	madvise(mem, BLOCKS_PIECE, MADV_HUGEPAGE);
	madvise(mem, BLOCKS_PIECE, MADV_POPULATE_WRITE);
	return mem;
}

/* Whether there is one that nobody uses. */
static bool has_empty(const struct blocks *b)
{
	const struct blocks_piece *p;

	for (p = b->piece; p < b->piece + BLOCKS_PIECES; p++) {
		if (p->mem && p->free == ALL_FREE)
			return true;
	}
	return false;
}

/* The first that has a free block: what has been in use lately is in a cache. NULL: none has, and there is no other. */
static struct blocks_piece *piece_of_free(struct blocks *b)
{
	struct blocks_piece *p, *unmapped = NULL;

	for (p = b->piece; p < b->piece + BLOCKS_PIECES; p++) {
		if (p->mem && p->free)
			return p;
		if (!p->mem && !unmapped)
			unmapped = p;
	}
	if (!unmapped)
		return NULL;
	unmapped->mem = piece_map();
	unmapped->free = ALL_FREE;
	return unmapped->mem ? unmapped : NULL;
}

void *blocks__get(struct blocks *b)
{
	struct blocks_piece *p = piece_of_free(b);
	uint32_t at;

	if (!p)
		return NULL;
	at = (uint32_t)__builtin_ctz(p->free);
	p->free &= p->free - 1;
	return p->mem + (size_t)at * BLOCKS_SIZE;
}

void blocks__put(struct blocks *b, void *block)
{
	struct blocks_piece *p = b->piece;
	bool had_empty = has_empty(b);
	size_t at;

	while (!p->mem || (uintptr_t)block - (uintptr_t)p->mem >= BLOCKS_PIECE)
		p++;
	at = (size_t)((unsigned char *)block - p->mem) / BLOCKS_SIZE;
	p->free |= 1u << at;
	if (p->free == ALL_FREE && had_empty) {
		munmap(p->mem, BLOCKS_PIECE);
		p->mem = NULL;
	}
}

void blocks__free(struct blocks *b)
{
	struct blocks_piece *p;

	for (p = b->piece; p < b->piece + BLOCKS_PIECES; p++) {
		if (p->mem)
			munmap(p->mem, BLOCKS_PIECE);
	}
	*b = (struct blocks){0};
}
