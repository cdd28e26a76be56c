// SPDX-License-Identifier: BSD-2-Clause
/* Items of one size, in pages: see slab.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "slab.h"

/* A page's beginning; then items, each behind a word that says which page it is of. */
struct slab_page {
	struct slab_page *prev, *next; /* in a list of the slab's */
	void *free; /* items that were given back, each beginning with the next */
	uint32_t used, begun;
	bool listed; /* it is partial */
};

static size_t price_of(const struct slab *s)
{
	return SLAB_PAGE + (size_t)s->room * s->extra;
}

static struct slab_page *page_of(void *item)
{
	return ((struct slab_page **)item)[-1];
}

static struct slab_page *page_new(const struct slab *s, struct budget_part *memory)
{
	struct slab_page *page;

	if (!budget_part__take(memory, price_of(s)))
		return NULL;
	page = malloc(SLAB_PAGE);
	if (page)
		memset(page, 0, sizeof(*page));
	else
		budget_part__give(memory, price_of(s));
	return page;
}

static void page_free(const struct slab *s, struct slab_page *page, struct budget_part *memory)
{
	budget_part__give(memory, price_of(s));
	free(page);
}

/* One with room for many. What others have left is filled up first. */
static struct slab_page *page_take(struct slab *s, struct budget_part *memory)
{
	struct slab_page *page = s->partial;

	if (page) {
		DL_DELETE(s->partial, page);
		page->listed = false;
		return page;
	}
	page = s->empty;
	if (!page)
		return page_new(s, memory);
	DL_DELETE(s->empty, page);
	s->nempty--;
	return page;
}

void slab__init(struct slab *s, size_t item, size_t extra)
{
	memset(s, 0, sizeof(*s));
	s->slot = (uint32_t)((item + 7) & ~(size_t)7) + sizeof(struct slab_page *);
	s->extra = (uint32_t)extra;
	s->room = (uint32_t)((SLAB_PAGE - sizeof(struct slab_page)) / s->slot);
}

void *slab__take(struct slab *s, struct budget_part *memory)
{
	struct slab_page *page = s->current, **slot;
	void *item;

	if (!page || page->used == s->room) {
		page = page_take(s, memory);
		if (!page)
			return NULL;
		s->current = page;
	}
	page->used++;
	item = page->free;
	if (item) {
		memcpy(&page->free, item, sizeof(page->free));
		return item;
	}
	slot = (struct slab_page **)((char *)(page + 1) + (size_t)page->begun++ * s->slot);
	*slot = page;
	return slot + 1;
}

void slab__give(struct slab *s, void *item, struct budget_part *memory)
{
	struct slab_page *page = page_of(item);

	memcpy(item, &page->free, sizeof(page->free));
	page->free = item;
	page->used--;
	if (page == s->current)
		return;
	if (!page->used) {
		if (page->listed)
			DL_DELETE(s->partial, page);
		page->listed = false;
		if (s->nempty >= SLAB_KEEP) {
			page_free(s, page, memory);
			return;
		}
		DL_PREPEND(s->empty, page);
		s->nempty++;
	} else if (!page->listed && page->used <= s->room / 2) {
		DL_PREPEND(s->partial, page);
		page->listed = true;
	}
}

void slab__free(struct slab *s, struct budget_part *memory)
{
	struct slab_page *page;

	if (s->current)
		page_free(s, s->current, memory);
	s->current = NULL;
	while ((page = s->empty)) {
		s->empty = page->next;
		page_free(s, page, memory);
	}
	s->nempty = 0;
}
