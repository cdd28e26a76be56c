/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Items of one size that live for about as long as each other. They lie in pages, a page is filled before another is begun,
 * and one that is empty goes back: so after much at once, the memory does too. malloc() would spread what lives over all
 * that ever lived.
 */
#ifndef NCCLSCOPE_SLAB_H
#define NCCLSCOPE_SLAB_H

#include <stddef.h>
#include <stdint.h>
#include "budget.h"

/* Bytes of a page; malloc() adds its own. */
#define SLAB_PAGE 32736u
/* Empty pages: begun and emptied over and over, each would cost a malloc(). */
#define SLAB_KEEP 4u

struct slab_page;

struct slab {
	uint32_t slot;		   /* bytes: an item and what it needs */
	uint32_t extra;		   /* bytes an item takes elsewhere */
	uint32_t room;		   /* items of a page; so that no item costs a division */
	struct slab_page *current; /* that is being filled; NULL: none */
	struct slab_page *partial; /* half empty, or more; the last that became so first */
	struct slab_page *empty;
	uint32_t nempty;
};

/* @item: bytes of one, at most a quarter of a page; @extra: that it takes elsewhere, for the budget. */
void slab__init(struct slab *s, size_t item, size_t extra);
/* An item, aligned to 8 bytes, not initialized. `memory` pays for pages, NULL: nobody. NULL: it has none left, or there is none. */
void *slab__take(struct slab *s, struct budget_part *memory);
/* `item`: of slab__take() of the same slab and `memory`. */
void slab__give(struct slab *s, void *item, struct budget_part *memory);
/* Frees what is kept for later. All items have been given back. */
void slab__free(struct slab *s, struct budget_part *memory);

#endif
