// SPDX-License-Identifier: BSD-2-Clause
/* JSON text on the hot path; see json.h. */
#include <stdbool.h>
#include "json.h"

/* Two digits at a time: a division by 100 instead of two by 10. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

static const char hex[] = "0123456789abcdef";

#define EACH(byte) (0x0101010101010101ull * (byte))

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Eight characters at once are put together with the first one in the lowest byte"
#endif

/*
 * The eight decimal digits of v, below 10^8, the first in the lowest byte: halves, pairs and digits come apart side by
 * side in one word, the divisions by 100 and by 10 being products that are exact for what there is.
 */
static uint64_t eight_digits(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32, q;

	q = (x * 10486 >> 20) & 0x0000007f0000007full;
	x = q | (x - 100 * q) << 16;
	q = (x * 103 >> 10) & 0x000f000f000f000full;
	x = q | (x - 10 * q) << 8;
	return x | EACH('0');
}

/* The same in hex. */
static uint64_t eight_hex(uint32_t v)
{
	uint64_t x = __builtin_bswap32(v), letters;

	x = (x | x << 16) & 0x0000ffff0000ffffull;
	x = (x | x << 8) & 0x00ff00ff00ff00ffull;
	x = (x >> 4 & 0x000f000f000f000full) | (x & 0x000f000f000f000full) << 8;
	letters = (x + EACH(6)) >> 4 & EACH(1);
	return x + EACH('0') + letters * ('a' - '0' - 10);
}

/* Below 10^8, without zeros in front, and without a branch by how long it is; writes eight bytes all the same. */
static void short_u64(struct json *j, uint32_t v)
{
	uint64_t x = eight_digits(v);
	/* the last digit is one in any case */
	uint32_t zeros = (uint32_t)__builtin_ctzll((x - EACH('0')) | 1ull << 56) & ~7u;

	x >>= zeros;
	memcpy(j->at, &x, sizeof(x));
	j->at += sizeof(x) - zeros / 8;
}

void json_u64(struct json *j, uint64_t v)
{
	uint64_t eight;

	if (v < 10) {
		json_char(j, (char)('0' + v));
		return;
	}
	if (v < 100000000) {
		short_u64(j, (uint32_t)v);
		return;
	}
	json_u64(j, v / 100000000);
	eight = eight_digits((uint32_t)(v % 100000000));
	json_raw(j, (const char *)&eight, sizeof(eight));
}

void json_i64(struct json *j, int64_t v)
{
	if (v < 0)
		json_char(j, '-');
	json_u64(j, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void json_hex(struct json *j, uint64_t v)
{
	uint32_t n = (67 - (uint32_t)__builtin_clzll(v | 1)) / 4;
	uint64_t eight;
	char *p;

	json_lit(j, "\"0x");
	for (p = j->at + n; p - j->at >= 8; v >>= 32) {
		eight = eight_hex((uint32_t)v);
		p -= sizeof(eight);
		memcpy(p, &eight, sizeof(eight));
	}
	for (; p > j->at; v >>= 4)
		*--p = hex[v & 15];
	j->at += n;
	json_char(j, '"');
}

void json_ptr(struct json *j, uint64_t v)
{
	if (v)
		json_hex(j, v);
	else
		json_lit(j, "\"null\"");
}

void json_us(struct json *j, uint64_t ns)
{
	uint32_t frac = (uint32_t)(ns % 1000);

	json_u64(j, ns / 1000);
	json_char(j, '.');
	json_char(j, (char)('0' + frac / 100));
	json_raw(j, pairs + 2 * (frac % 100), 2);
}

void json_us_signed(struct json *j, int64_t ns)
{
	if (ns < 0)
		json_char(j, '-');
	json_us(j, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
}

/*
 * Length of the well-formed UTF-8 sequence at s, 0 if there is none (Unicode 15, table 3-7: no
 * surrogates, no overlong forms, nothing above U+10FFFF).
 */
static size_t utf8_len(const unsigned char *s, size_t left)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n, i;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > left)
		return 0;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static void json_escape(struct json *j, unsigned char c)
{
	switch (c) {
	case '"':
		json_lit(j, "\\\"");
		return;
	case '\\':
		json_lit(j, "\\\\");
		return;
	case '\n':
		json_lit(j, "\\n");
		return;
	case '\t':
		json_lit(j, "\\t");
		return;
	default:
		json_lit(j, "\\u00");
		json_char(j, hex[c >> 4]);
		json_char(j, hex[c & 15]);
	}
}

/* Nearly all text of jobs: what needs no escape, and is one byte a character. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Not 0 where a byte of x is 0; bytes above one that is may be taken for it, too. */
static uint64_t zeros(uint64_t x)
{
	return (x - EACH(1)) & ~x & EACH(0x80);
}

/* The same of eight characters at once. */
static bool are_plain(uint64_t x)
{
	uint64_t control = (x - EACH(0x20)) & ~x;

	return !((control | x) & EACH(0x80)) &&
	       !(zeros(x ^ EACH('"')) | zeros(x ^ EACH('\\')) | zeros(x ^ EACH(0x7f)));
}

void json_str(struct json *j, const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;
	uint64_t eight;
	size_t i, n;

	json_char(j, '"');
	for (i = 0; i + sizeof(eight) <= len; i += sizeof(eight)) {
		memcpy(&eight, s + i, sizeof(eight));
		if (!are_plain(eight))
			break;
		memcpy(j->at + i, &eight, sizeof(eight));
	}
	for (; i < len && is_plain(u[i]); i++)
		j->at[i] = s[i];
	j->at += i;
	for (; i < len; i += n) {
		n = utf8_len(u + i, len - i);
		if (!n) {
			json_lit(j, "\xef\xbf\xbd");
			n = 1;
		} else if (n == 1 && (u[i] < 0x20 || u[i] == '"' || u[i] == '\\' || u[i] == 0x7f)) {
			json_escape(j, u[i]);
		} else {
			json_raw(j, s + i, n);
		}
	}
	json_char(j, '"');
}
