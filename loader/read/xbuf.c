// SPDX-License-Identifier: BSD-2-Clause
/* Buffers that grow; see xbuf.h. */
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "xbuf.h"

char *xbuf__room(struct xbuf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 256;
	char *s;

	if (b->failed)
		return NULL;
	if (b->cap - b->len >= n)
		return b->s + b->len;
	while (cap - b->len < n)
		cap *= 2;
	s = realloc(b->s, cap);
	if (!s) {
		b->failed = true;
		return NULL;
	}
	b->s = s;
	b->cap = cap;
	return s + b->len;
}

void xbuf__put(struct xbuf *b, const void *s, size_t n)
{
	char *at = n ? xbuf__room(b, n) : NULL;

	if (!at)
		return;
	memcpy(at, s, n);
	b->len += n;
}

void xbuf__text(struct xbuf *b, const char *s)
{
	xbuf__put(b, s, strlen(s));
}

/* What a function of json.h writes, of at most `max` bytes. */
#define PUT_JSON(b, max, write)                                                                    \
	do {                                                                                       \
		char *at_ = xbuf__room(b, max);                                                    \
		struct json j = {at_, at_ ? at_ + (max) : at_};                                    \
                                                                                                   \
		if (at_) {                                                                         \
			write;                                                                     \
			(b)->len += (size_t)(j.at - at_);                                          \
		}                                                                                  \
	} while (0)

void xbuf__u64(struct xbuf *b, uint64_t v)
{
	PUT_JSON(b, 24, json_u64(&j, v));
}

void xbuf__us(struct xbuf *b, int64_t ns)
{
	PUT_JSON(b, 32, json_us_signed(&j, ns));
}

void xbuf__str(struct xbuf *b, const char *s, size_t len)
{
	PUT_JSON(b, 6 * len + 2, json_str(&j, s, len));
}

/* As deep as the reader lets it be. */
void xbuf__node(struct xbuf *b, const struct json_doc *doc, const struct json_node *n)
{
	bool obj = n->kind == JSON_KIND_OBJ;
	uint32_t i;

	if (n->kind == JSON_KIND_STR) {
		xbuf__str(b, n->s, n->len);
		return;
	}
	if (!obj && n->kind != JSON_KIND_ARR) {
		xbuf__put(b, n->s, n->len);
		return;
	}
	xbuf__put(b, obj ? "{" : "[", 1);
	for (i = n->first; i; i = doc->nodes[i].next) {
		if (i != n->first)
			xbuf__lit(b, ",");
		if (obj) {
			xbuf__str(b, doc->nodes[i].key, doc->nodes[i].key_len);
			xbuf__lit(b, ":");
		}
		xbuf__node(b, doc, &doc->nodes[i]);
	}
	xbuf__put(b, obj ? "}" : "]", 1);
}

void xbuf__free(struct xbuf *b)
{
	free(b->s);
	memset(b, 0, sizeof(*b));
}
