/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocol buffers, written into a buffer in one pass: the length of a message is put in when it ends. (nanopb, which Debian has,
 * encodes each nested message twice to know its length, and the messages within it as often again: twice to the power of the depth,
 * which a trace may choose.)
 */
#ifndef NCCLSCOPE_PROTOBUF_H
#define NCCLSCOPE_PROTOBUF_H

#include "xbuf.h"

void pb_varint(struct xbuf *b, uint32_t field, uint64_t v);
void pb_fixed64(struct xbuf *b, uint32_t field, uint64_t v);
void pb_double(struct xbuf *b, uint32_t field, double v);
void pb_bytes(struct xbuf *b, uint32_t field, const void *s, size_t len);
void pb_string(struct xbuf *b, uint32_t field, const char *s);

/* A message within the one before: what is written until pb_end() of what pb_begin() returns. */
size_t pb_begin(struct xbuf *b, uint32_t field);
void pb_end(struct xbuf *b, size_t at);

#endif
