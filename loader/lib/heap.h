/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary heap of pointers: the one that goes before all others is had first. Who goes first is the caller's to say. */
#ifndef NCCLSCOPE_HEAP_H
#define NCCLSCOPE_HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Zero at first; at[0] is the first. `at` is owned, free() it; what it points to is not. */
struct heap {
	void **at;
	size_t n, cap;
	void (*moved)(void *el, size_t i); /* is told where an element is now; NULL: nobody asks */
};

typedef bool (*heap_before)(const void *a, const void *b);

static inline void heap__put(struct heap *h, size_t i, void *el)
{
	h->at[i] = el;
	if (h->moved)
		h->moved(el, i);
}

/* To its place, from @i, which is nobody's: upwards, or downwards. Where that is. */
static inline size_t heap__rise(struct heap *h, size_t i, void *el, heap_before before)
{
	for (; i && before(el, h->at[(i - 1) / 2]); i = (i - 1) / 2)
		heap__put(h, i, h->at[(i - 1) / 2]);
	heap__put(h, i, el);
	return i;
}

static inline void heap__sink(struct heap *h, size_t i, void *el, heap_before before)
{
	size_t kid;

	for (; (kid = 2 * i + 1) < h->n; i = kid) {
		if (kid + 1 < h->n && before(h->at[kid + 1], h->at[kid]))
			kid++;
		if (!before(h->at[kid], el))
			break;
		heap__put(h, i, h->at[kid]);
	}
	heap__put(h, i, el);
}

/* 0, or -ENOMEM: then it is not in. */
static inline int heap__push(struct heap *h, void *el, heap_before before)
{
	size_t cap = h->cap ? 2 * h->cap : 64;
	void **at = h->n == h->cap ? reallocarray(h->at, cap, sizeof(*at)) : h->at;

	if (!at)
		return -ENOMEM;
	h->cap = h->n == h->cap ? cap : h->cap;
	h->at = at;
	heap__rise(h, h->n++, el, before);
	return 0;
}

/* That at @i goes before others than it did. */
static inline void heap__settle(struct heap *h, size_t i, heap_before before)
{
	void *el = h->at[i];

	heap__sink(h, heap__rise(h, i, el, before), el, before);
}

/* Takes that at @i out. */
static inline void heap__remove(struct heap *h, size_t i, heap_before before)
{
	void *last = h->at[--h->n];

	if (i < h->n)
		heap__sink(h, heap__rise(h, i, last, before), last, before);
}

/* Takes the first out; there must be one. */
static inline void *heap__pop(struct heap *h, heap_before before)
{
	void *first = h->at[0];

	heap__remove(h, 0, before);
	return first;
}

#endif
