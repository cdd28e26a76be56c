/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A strict JSON reader for one line of a trace that keeps every number as it is written. jansson
 * cannot: it refuses integers above 2^63 - 1 (half of all commIds) and turns times into doubles.
 */
#ifndef NCCLSCOPE_CHECK_JSON_H
#define NCCLSCOPE_CHECK_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line may have 1 MiB; nothing that we write nests deeper than 5. */
#define JSON_MAX_LINE  (1U << 20)
#define JSON_MAX_DEPTH 32

enum json_kind {
	JSON_KIND_NULL,
	JSON_KIND_TRUE,
	JSON_KIND_FALSE,
	JSON_KIND_INT,	/* digits only; may be beyond 64 bits */
	JSON_KIND_REAL, /* with a fraction or an exponent */
	JSON_KIND_STR,
	JSON_KIND_ARR,
	JSON_KIND_OBJ,
};

/* Text points into the line, or into the document's arena where the line has escapes. */
struct json_node {
	enum json_kind kind;
	uint32_t len;
	uint32_t key_len;
	uint32_t next;	/* next sibling, 0: none (the root is node 0) */
	uint32_t first; /* first child, 0: none */
	const char *s;	/* string: its value; number: its literal */
	const char *key;
};

struct json_doc {
	struct json_node *nodes;
	uint32_t nr_nodes, cap_nodes;
	uint32_t *sorted; /* scratch of the search for duplicate keys */
	uint32_t cap_sorted;
	char *arena; /* unescaped strings; JSON_MAX_LINE bytes, as they only get shorter */
	size_t arena_used;
	/* After -EINVAL: what is wrong and where in the line. */
	const char *err;
	size_t err_at;
	bool err_utf8, err_dup;
};

int json_doc__init(struct json_doc *doc);
void json_doc__free(struct json_doc *doc);

/* Reads one value, the whole of @s. 0, -EINVAL (see err above) or -ENOMEM. */
int json_doc__parse(struct json_doc *doc, const char *s, size_t len);

/* Reading nodes; all of them take NULL for a key that is absent. */
const struct json_node *jn_get(const struct json_doc *doc, const struct json_node *obj,
			       const char *key);
bool jn_is(const struct json_node *node, const char *text);
bool jn_u64(const struct json_node *node, uint64_t *val);
bool jn_i64(const struct json_node *node, int64_t *val);
/* One of 32 bits, or @none. */
int32_t jn_i32(const struct json_node *node, int32_t none);
bool jn_true(const struct json_node *node);
/* "0x..." with at most 16 digits, lower case, no leading zero. */
bool jn_hex(const struct json_node *node, uint64_t *val);
/* The same; 0: none. */
uint64_t jn_addr(const struct json_node *node);
/* Microseconds with exactly three decimals (or, if @lax, with any or none), as nanoseconds. */
bool jn_time(const struct json_node *node, bool lax, int64_t *ns);

/* What readers reckon with, so that sums of two fit: 73 years. Both are lax; what is beyond leaves @ns. */
#define JN_TIME_MAX (INT64_C(1) << 61)
/* A point in time, or how long something took. */
bool jn_point(const struct json_node *node, int64_t *ns);
/* How far one clock is ahead of another. */
bool jn_offset(const struct json_node *node, int64_t *ns);

#endif
