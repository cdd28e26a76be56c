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
};

typedef bool (*heap_before)(const void *a, const void *b);

/* 0, or -ENOMEM: then it is not in. */
static inline int heap__push(struct heap *h, void *el, heap_before before)
{
	size_t cap = h->cap ? 2 * h->cap : 64, i;
	void **at = h->n == h->cap ? reallocarray(h->at, cap, sizeof(*at)) : h->at;

	if (!at)
		return -ENOMEM;
	h->cap = h->n == h->cap ? cap : h->cap;
	h->at = at;
	for (i = h->n++; i && before(el, at[(i - 1) / 2]); i = (i - 1) / 2)
		at[i] = at[(i - 1) / 2];
	at[i] = el;
	return 0;
}

/* Takes the first out; there must be one. */
static inline void *heap__pop(struct heap *h, heap_before before)
{
	void **at = h->at, *first = at[0], *el = at[--h->n];
	size_t i = 0, kid;

	for (; (kid = 2 * i + 1) < h->n; i = kid) {
		if (kid + 1 < h->n && before(at[kid + 1], at[kid]))
			kid++;
		if (!before(at[kid], el))
			break;
		at[i] = at[kid];
	}
	at[i] = el;
	return first;
}

#endif
