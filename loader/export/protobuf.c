// SPDX-License-Identifier: BSD-2-Clause
/* Protocol buffers' wire format; see protobuf.h. */
#include <string.h>
#include "protobuf.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

#define VARINT_MAX 10 /* bytes of 64 bits, 7 in each */

static size_t encode(unsigned char to[VARINT_MAX], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		to[n++] = (unsigned char)(v | 0x80);
	to[n++] = (unsigned char)v;
	return n;
}

static void put_varint(struct xbuf *b, uint64_t v)
{
	char *at = xbuf__room(b, VARINT_MAX);

	if (at)
		b->len += encode((unsigned char *)at, v);
}

static void put_tag(struct xbuf *b, uint32_t field, enum wire wire)
{
	put_varint(b, (uint64_t)field << 3 | wire);
}

void pb_varint(struct xbuf *b, uint32_t field, uint64_t v)
{
	put_tag(b, field, WIRE_VARINT);
	put_varint(b, v);
}

void pb_fixed64(struct xbuf *b, uint32_t field, uint64_t v)
{
	unsigned char little[8];
	int i;

	for (i = 0; i < 8; i++)
		little[i] = (unsigned char)(v >> 8 * i);
	put_tag(b, field, WIRE_64);
	xbuf__put(b, little, sizeof(little));
}

void pb_double(struct xbuf *b, uint32_t field, double v)
{
	uint64_t bits;

	_Static_assert(sizeof(bits) == sizeof(v), "IEEE 754");
	memcpy(&bits, &v, sizeof(bits));
	pb_fixed64(b, field, bits);
}

void pb_bytes(struct xbuf *b, uint32_t field, const void *s, size_t len)
{
	put_tag(b, field, WIRE_BYTES);
	put_varint(b, len);
	xbuf__put(b, s, len);
}

void pb_string(struct xbuf *b, uint32_t field, const char *s)
{
	pb_bytes(b, field, s, strlen(s));
}

/* One byte is kept for the length, as most need no more. */
size_t pb_begin(struct xbuf *b, uint32_t field)
{
	put_tag(b, field, WIRE_BYTES);
	xbuf__put(b, "", 1);
	return b->len;
}

void pb_end(struct xbuf *b, size_t at)
{
	unsigned char length[VARINT_MAX];
	size_t n;

	if (b->failed)
		return;
	n = encode(length, b->len - at);
	if (n > 1) {
		if (!xbuf__room(b, n - 1))
			return;
		memmove(b->s + at + n - 1, b->s + at, b->len - at);
		b->len += n - 1;
	}
	memcpy(b->s + at - 1, length, n);
}
