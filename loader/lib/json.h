/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON text on the hot path: appends to a buffer that the caller has made large enough. No printf, no
 * allocation, no double; everything that comes from a job goes through json_str(), which escapes.
 */
#ifndef NCCLSCOPE_JSON_H
#define NCCLSCOPE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A line being written: `at` moves towards `end`; the caller sees to it that it never gets there. */
struct json {
	char *at;
	char *end;
};

/* A literal, such as a key with its quotes and colon. */
#define json_lit(j, s) json_raw(j, s, sizeof(s) - 1)

static inline void json_raw(struct json *j, const char *s, size_t len)
{
	memcpy(j->at, s, len);
	j->at += len;
}

#define JSON_TEXT_MAX 79

/* Text that was made before, JSON already. */
struct json_text {
	uint8_t len;
	char at[JSON_TEXT_MAX];
};

/* Takes JSON_TEXT_MAX bytes of room, however short it is: a copy whose length is known is no call. */
static inline void json_ready(struct json *j, const struct json_text *t)
{
	memcpy(j->at, t->at, sizeof(t->at));
	j->at += t->len;
}

static inline void json_char(struct json *j, char c)
{
	*j->at++ = c;
}

/* Takes 8 bytes of room, however short it is. */
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);

/* "0x1f", lower case, with quotes; json_ptr() writes "null" for 0. */
void json_hex(struct json *j, uint64_t v);
void json_ptr(struct json *j, uint64_t v);

/* Nanoseconds as microseconds with three decimals. */
void json_us(struct json *j, uint64_t ns);
void json_us_signed(struct json *j, int64_t ns);

static inline void json_bool(struct json *j, int v)
{
	if (v)
		json_lit(j, "true");
	else
		json_lit(j, "false");
}

/*
 * A string of `len` bytes in quotes. Control characters, quotes and backslashes are escaped; bytes that
 * are no valid UTF-8 become U+FFFD. Takes at most 6 * len + 2 bytes.
 */
void json_str(struct json *j, const char *s, size_t len);

#endif
