/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory in blocks of one size, that come and go at a rate: in pieces as large as a huge page, each asked for at once. malloc() would get it from
 * the kernel page by page, and each of these faults interrupts the job on the other CPUs as well. One thread takes and gives back.
 */
#ifndef NCCLSCOPE_BLOCKS_H
#define NCCLSCOPE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define BLOCKS_SIZE   (128u << 10)
#define BLOCKS_PIECE  (2u << 20)
#define BLOCKS_PIECES 18

struct blocks {
	struct blocks_piece {
		unsigned char *mem; /* NULL: not there */
		uint32_t free;	    /* a bit for each block */
	} piece[BLOCKS_PIECES];
};

/* BLOCKS_SIZE bytes, aligned to that; what is in them is anything. NULL: no memory, or BLOCKS_PIECES are in use. */
void *blocks__get(struct blocks *b);
/* One of blocks__get(). Of the pieces that nobody uses any more one is kept, the others are the kernel's again. */
void blocks__put(struct blocks *b, void *block);

/* All of them, whoever has them. */
void blocks__free(struct blocks *b);

#endif
