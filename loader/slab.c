// SPDX-License-Identifier: BSD-2-Clause
/* Items of one size, in pages: see slab.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "slab.h"

/* A page's beginning; then items, each behind a word that says which page it is of. */
struct slab_page {
	struct slab_page *prev, *next; /* in a list of the slab's */
	void *free; /* items that were given back, each beginning with the next */
	uint32_t used, begun;
	bool listed; /* it is partial */
};

static uint32_t room_of(const struct slab *s)
{
	return (uint32_t)((SLAB_PAGE - sizeof(struct slab_page)) / s->slot);
}

static size_t price_of(const struct slab *s)
{
	return SLAB_PAGE + (size_t)room_of(s) * s->extra;
}

static struct slab_page *page_of(void *item)
{
	return ((struct slab_page **)item)[-1];
}

static void list_add(struct slab_page **list, struct slab_page *page)
{
	page->prev = NULL;
	page->next = *list;
	if (*list)
		(*list)->prev = page;
	*list = page;
}

static void list_del(struct slab_page **list, struct slab_page *page)
{
	if (page->next)
		page->next->prev = page->prev;
	if (page->prev)
		page->prev->next = page->next;
	else
		*list = page->next;
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
		list_del(&s->partial, page);
		page->listed = false;
		return page;
	}
	page = s->empty;
	if (!page)
		return page_new(s, memory);
	list_del(&s->empty, page);
	s->nempty--;
	return page;
}

void slab__init(struct slab *s, size_t item, size_t extra)
{
	memset(s, 0, sizeof(*s));
	s->slot = (uint32_t)((item + 7) & ~(size_t)7) + sizeof(struct slab_page *);
	s->extra = (uint32_t)extra;
}

void *slab__take(struct slab *s, struct budget_part *memory)
{
	struct slab_page *page = s->current, **slot;
	void *item;

	if (!page || page->used == room_of(s)) {
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
			list_del(&s->partial, page);
		page->listed = false;
		if (s->nempty >= SLAB_KEEP) {
			page_free(s, page, memory);
			return;
		}
		list_add(&s->empty, page);
		s->nempty++;
	} else if (!page->listed && page->used <= room_of(s) / 2) {
		list_add(&s->partial, page);
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
