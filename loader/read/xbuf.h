/* SPDX-License-Identifier: BSD-2-Clause */
/* Text and bytes that grow; JSON into them. A lack of memory stays in the buffer, for its owner. */
#ifndef NCCLSCOPE_XBUF_H
#define NCCLSCOPE_XBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "check_json.h"

struct xbuf {
	char *s;
	size_t len, cap;
	bool failed; /* there was no memory: what it holds is not all */
};

/* Room for n bytes more, of which the caller makes use; NULL: no memory. */
char *xbuf__room(struct xbuf *b, size_t n);
void xbuf__put(struct xbuf *b, const void *s, size_t n);
#define xbuf__lit(b, text) xbuf__put(b, text, sizeof(text) - 1)
void xbuf__text(struct xbuf *b, const char *s);
void xbuf__u64(struct xbuf *b, uint64_t v);
/* Nanoseconds as microseconds with three decimals. */
void xbuf__us(struct xbuf *b, int64_t ns);
/* A JSON string, and a value that was read. */
void xbuf__str(struct xbuf *b, const char *s, size_t len);
void xbuf__node(struct xbuf *b, const struct json_doc *doc, const struct json_node *n);
void xbuf__free(struct xbuf *b);

#endif
