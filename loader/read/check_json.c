// SPDX-License-Identifier: BSD-2-Clause
/*
 * Strict JSON reader of `check`: one line in, a flat array of nodes out. Nothing is allocated per
 * value, and hostile input costs at most what its length says (depth and length are bounded).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "check_json.h"

struct parser {
	struct json_doc *doc;
	const char *start, *p, *end;
};

static int fail(struct parser *ps, const char *what)
{
	ps->doc->err = what;
	ps->doc->err_at = ps->p - ps->start;
	return -EINVAL;
}

static void skip_space(struct parser *ps)
{
	while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\t' || *ps->p == '\r'))
		ps->p++;
}

/* Length of the UTF-8 sequence at @p, 0 if it is none: no overlong forms, surrogates, > U+10FFFF. */
static unsigned int utf8_len(const unsigned char *p, size_t left)
{
	unsigned int n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
	unsigned int i;

	if (*p > 0xf4 || n > left)
		return 0;
	for (i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static bool hex4(const char *p, const char *end, uint32_t *val)
{
	int i;

	if (end - p < 4)
		return false;
	for (*val = 0, i = 0; i < 4; i++) {
		char c = p[i];
		uint32_t digit = c >= '0' && c <= '9'	? c - '0'
				 : c >= 'a' && c <= 'f' ? c - 'a' + 10
				 : c >= 'A' && c <= 'F' ? c - 'A' + 10
							: 16;

		if (digit > 15)
			return false;
		*val = *val << 4 | digit;
	}
	return true;
}

static char *put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		*to++ = c;
	} else if (c < 0x800) {
		*to++ = 0xc0 | c >> 6;
		*to++ = 0x80 | (c & 0x3f);
	} else if (c < 0x10000) {
		*to++ = 0xe0 | c >> 12;
		*to++ = 0x80 | (c >> 6 & 0x3f);
		*to++ = 0x80 | (c & 0x3f);
	} else {
		*to++ = 0xf0 | c >> 18;
		*to++ = 0x80 | (c >> 12 & 0x3f);
		*to++ = 0x80 | (c >> 6 & 0x3f);
		*to++ = 0x80 | (c & 0x3f);
	}
	return to;
}

/* ps->p is behind "\u". */
static int unescape_u(struct parser *ps, char **to)
{
	uint32_t c, low;

	if (!hex4(ps->p, ps->end, &c))
		return fail(ps, "\\u needs four hex digits");
	ps->p += 4;
	if (c >= 0xd800 && c < 0xdc00) {
		if (ps->end - ps->p < 6 || ps->p[0] != '\\' || ps->p[1] != 'u' ||
		    !hex4(ps->p + 2, ps->end, &low) || low < 0xdc00 || low > 0xdfff)
			return fail(ps, "a surrogate without its other half");
		ps->p += 6;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (c >= 0xdc00 && c < 0xe000) {
		return fail(ps, "a surrogate without its other half");
	}
	*to = put_utf8(*to, c);
	return 0;
}

static int unescape(struct parser *ps, char **to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *at;
	char c;

	if (ps->p == ps->end)
		return fail(ps, "the line ends within a string");
	c = *ps->p++;
	if (c == 'u')
		return unescape_u(ps, to);
	at = c ? strchr(from, c) : NULL;
	if (!at)
		return fail(ps, "an escape that JSON does not know");
	*(*to)++ = into[at - from];
	return 0;
}

/* The rest of a string that has escapes, copied into the arena from where it began. */
static int parse_escaped(struct parser *ps, const char *begin, const char **s, uint32_t *len)
{
	char *to = ps->doc->arena + ps->doc->arena_used, *out = to;
	int err;

	memcpy(out, begin, ps->p - begin);
	out += ps->p - begin;
	while (ps->p < ps->end && *ps->p != '"') {
		unsigned char c = *ps->p;
		unsigned int n = utf8_len((const unsigned char *)ps->p, ps->end - ps->p);

		if (c < 0x20)
			return fail(ps, "a control character within a string");
		if (!n) {
			ps->doc->err_utf8 = true;
			return fail(ps, "not UTF-8");
		}
		if (c == '\\') {
			ps->p++;
			err = unescape(ps, &out);
			if (err)
				return err;
			continue;
		}
		memcpy(out, ps->p, n);
		out += n;
		ps->p += n;
	}
	if (ps->p == ps->end)
		return fail(ps, "the line ends within a string");
	ps->p++;
	ps->doc->arena_used = out - ps->doc->arena;
	*s = to;
	*len = out - to;
	return 0;
}

static int parse_string(struct parser *ps, const char **s, uint32_t *len)
{
	const char *begin = ++ps->p;

	while (ps->p < ps->end && *ps->p != '"') {
		unsigned char c = *ps->p;
		unsigned int n = 1;

		if (c == '\\')
			return parse_escaped(ps, begin, s, len);
		if (c < 0x20)
			return fail(ps, "a control character within a string");
		if (c >= 0x80)
			n = utf8_len((const unsigned char *)ps->p, ps->end - ps->p);
		if (!n) {
			ps->doc->err_utf8 = true;
			return fail(ps, "not UTF-8");
		}
		ps->p += n;
	}
	if (ps->p == ps->end)
		return fail(ps, "the line ends within a string");
	*s = begin;
	*len = ps->p++ - begin;
	return 0;
}

static bool digits(struct parser *ps)
{
	const char *from = ps->p;

	while (ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9')
		ps->p++;
	return ps->p > from;
}

static int parse_number(struct parser *ps, struct json_node *node)
{
	const char *begin = ps->p, *first;

	node->kind = JSON_KIND_INT;
	if (*ps->p == '-')
		ps->p++;
	first = ps->p;
	if (!digits(ps))
		return fail(ps, "not a number of JSON (NaN and Infinity are none)");
	if (*first == '0' && ps->p - first > 1)
		return fail(ps, "a number with a leading zero");
	if (ps->p < ps->end && *ps->p == '.') {
		ps->p++;
		node->kind = JSON_KIND_REAL;
		if (!digits(ps))
			return fail(ps, "a number with nothing behind its point");
	}
	if (ps->p < ps->end && (*ps->p == 'e' || *ps->p == 'E')) {
		ps->p++;
		node->kind = JSON_KIND_REAL;
		if (ps->p < ps->end && (*ps->p == '+' || *ps->p == '-'))
			ps->p++;
		if (!digits(ps))
			return fail(ps, "a number with an empty exponent");
	}
	node->s = begin;
	node->len = ps->p - begin;
	return 0;
}

static int parse_word(struct parser *ps, struct json_node *node)
{
	static const struct {
		const char *text;
		enum json_kind kind;
	} words[] = {
		{"true", JSON_KIND_TRUE}, {"false", JSON_KIND_FALSE}, {"null", JSON_KIND_NULL}};
	size_t i, len;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		len = strlen(words[i].text);
		if ((size_t)(ps->end - ps->p) < len || memcmp(ps->p, words[i].text, len))
			continue;
		node->kind = words[i].kind;
		node->s = ps->p;
		node->len = len;
		ps->p += len;
		return 0;
	}
	return fail(ps, "not a value of JSON (NaN and Infinity are none)");
}

/* Index of a fresh node, or -ENOMEM. Nodes move when they grow: hold indices, not pointers. */
static int64_t new_node(struct json_doc *doc)
{
	if (doc->nr_nodes == doc->cap_nodes) {
		uint32_t cap = doc->cap_nodes * 2;
		/* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): never empty */
		struct json_node *nodes = realloc(doc->nodes, cap * sizeof(*nodes));

		if (!nodes)
			return -ENOMEM;
		doc->nodes = nodes;
		doc->cap_nodes = cap;
	}
	memset(&doc->nodes[doc->nr_nodes], 0, sizeof(*doc->nodes));
	return doc->nr_nodes++;
}

static int cmp_key(const struct json_node *a, const struct json_node *b)
{
	if (a->key_len != b->key_len)
		return a->key_len < b->key_len ? -1 : 1;
	return memcmp(a->key, b->key, a->key_len);
}

static int cmp_index(const void *a, const void *b, void *nodes)
{
	const struct json_node *n = nodes;

	return cmp_key(&n[*(const uint32_t *)a], &n[*(const uint32_t *)b]);
}

/* Many keys are sorted, so that a line of 100,000 of them does not cost 100,000 squared. */
static int many_unique(struct json_doc *doc, uint32_t first, uint32_t n, bool *dup)
{
	uint32_t i, k;

	if (n > doc->cap_sorted) {
		uint32_t *sorted = realloc(doc->sorted, n * sizeof(*sorted));

		if (!sorted)
			return -ENOMEM;
		doc->sorted = sorted;
		doc->cap_sorted = n;
	}
	for (i = first, k = 0; i; i = doc->nodes[i].next)
		doc->sorted[k++] = i;
	qsort_r(doc->sorted, n, sizeof(*doc->sorted), cmp_index, doc->nodes);
	for (k = 1; k < n; k++)
		if (!cmp_key(&doc->nodes[doc->sorted[k - 1]], &doc->nodes[doc->sorted[k]]))
			*dup = true;
	return 0;
}

static int keys_unique(struct parser *ps, uint32_t first, uint32_t n)
{
	struct json_doc *doc = ps->doc;
	bool dup = false;
	uint32_t a, b;
	int err = 0;

	if (n > 32)
		err = many_unique(doc, first, n, &dup);
	else
		for (a = first; a; a = doc->nodes[a].next)
			for (b = doc->nodes[a].next; b; b = doc->nodes[b].next)
				dup |= !cmp_key(&doc->nodes[a], &doc->nodes[b]);
	if (err || !dup)
		return err;
	doc->err_dup = true;
	return fail(ps, "a key occurs twice in this object");
}

static int parse_value(struct parser *ps, uint32_t at, unsigned int depth);

static int parse_key(struct parser *ps, const char **key, uint32_t *len)
{
	int err;

	if (ps->p == ps->end || *ps->p != '"')
		return fail(ps, "a key is expected here");
	err = parse_string(ps, key, len);
	if (err)
		return err;
	skip_space(ps);
	if (ps->p == ps->end || *ps->p != ':')
		return fail(ps, "':' is expected here");
	ps->p++;
	return 0;
}

/* An object or an array, ps->p on its bracket. */
static int parse_nest(struct parser *ps, uint32_t at, unsigned int depth)
{
	bool obj = *ps->p++ == '{';
	uint32_t last = 0, n = 0, key_len = 0;
	const char *key = NULL;
	int64_t idx;
	int err;

	if (depth >= JSON_MAX_DEPTH)
		return fail(ps, "nested deeper than 32 levels");
	ps->doc->nodes[at].kind = obj ? JSON_KIND_OBJ : JSON_KIND_ARR;
	skip_space(ps);
	if (ps->p < ps->end && *ps->p == (obj ? '}' : ']')) {
		ps->p++;
		return 0;
	}
	for (;; n++) {
		skip_space(ps);
		err = obj ? parse_key(ps, &key, &key_len) : 0;
		idx = err ? err : new_node(ps->doc);
		if (idx < 0)
			return idx;
		ps->doc->nodes[idx].key = key;
		ps->doc->nodes[idx].key_len = key_len;
		if (last)
			ps->doc->nodes[last].next = idx;
		else
			ps->doc->nodes[at].first = idx;
		last = idx;
		err = parse_value(ps, idx, depth + 1);
		if (err)
			return err;
		skip_space(ps);
		if (ps->p == ps->end)
			return fail(ps, "the line ends before the object does");
		if (*ps->p != ',')
			break;
		ps->p++;
	}
	if (*ps->p != (obj ? '}' : ']'))
		return fail(ps,
			    obj ? "',' or '}' is expected here" : "',' or ']' is expected here");
	ps->p++;
	return obj ? keys_unique(ps, ps->doc->nodes[at].first, n + 1) : 0;
}

static int parse_value(struct parser *ps, uint32_t at, unsigned int depth)
{
	const char *s;
	uint32_t len;
	int err;

	skip_space(ps);
	if (ps->p == ps->end)
		return fail(ps, "the line ends before the object does");
	switch (*ps->p) {
	case '{':
	case '[':
		return parse_nest(ps, at, depth);
	case '"':
		err = parse_string(ps, &s, &len);
		if (err)
			return err;
		ps->doc->nodes[at].kind = JSON_KIND_STR;
		ps->doc->nodes[at].s = s;
		ps->doc->nodes[at].len = len;
		return 0;
	case '-':
	case '0' ... '9':
		return parse_number(ps, &ps->doc->nodes[at]);
	default:
		return parse_word(ps, &ps->doc->nodes[at]);
	}
}

int json_doc__parse(struct json_doc *doc, const char *s, size_t len)
{
	struct parser ps = {.doc = doc, .start = s, .p = s, .end = s + len};
	int64_t root;
	int err;

	doc->nr_nodes = 0;
	doc->arena_used = 0;
	doc->err = NULL;
	doc->err_utf8 = doc->err_dup = false;
	if (len > JSON_MAX_LINE)
		return fail(&ps, "longer than 1 MiB");
	root = new_node(doc);
	if (root < 0)
		return root;
	err = parse_value(&ps, root, 0);
	if (err)
		return err;
	skip_space(&ps);
	return ps.p < ps.end ? fail(&ps, "text behind the object") : 0;
}

int json_doc__init(struct json_doc *doc)
{
	memset(doc, 0, sizeof(*doc));
	doc->cap_nodes = 256;
	doc->nodes = calloc(doc->cap_nodes, sizeof(*doc->nodes));
	doc->arena = malloc(JSON_MAX_LINE);
	if (doc->nodes && doc->arena)
		return 0;
	json_doc__free(doc);
	return -ENOMEM;
}

void json_doc__free(struct json_doc *doc)
{
	free(doc->nodes);
	free(doc->sorted);
	free(doc->arena);
	memset(doc, 0, sizeof(*doc));
}

const struct json_node *jn_get(const struct json_doc *doc, const struct json_node *obj,
			       const char *key)
{
	size_t len = strlen(key);
	uint32_t i;

	if (!obj || obj->kind != JSON_KIND_OBJ)
		return NULL;
	for (i = obj->first; i; i = doc->nodes[i].next)
		if (doc->nodes[i].key_len == len && !memcmp(doc->nodes[i].key, key, len))
			return &doc->nodes[i];
	return NULL;
}

bool jn_is(const struct json_node *node, const char *text)
{
	size_t len = strlen(text);

	return node && node->kind == JSON_KIND_STR && node->len == len &&
	       !memcmp(node->s, text, len);
}

static bool dec_u64(const char *s, uint32_t len, uint64_t *val)
{
	uint32_t i;

	for (*val = 0, i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(*val, 10, val) ||
		    __builtin_add_overflow(*val, (uint64_t)(s[i] - '0'), val))
			return false;
	}
	return len > 0;
}

bool jn_u64(const struct json_node *node, uint64_t *val)
{
	return node && node->kind == JSON_KIND_INT && dec_u64(node->s, node->len, val);
}

bool jn_i64(const struct json_node *node, int64_t *val)
{
	uint64_t abs;
	bool neg;

	if (!node || node->kind != JSON_KIND_INT)
		return false;
	neg = *node->s == '-';
	if (!dec_u64(node->s + neg, node->len - neg, &abs) || abs > (uint64_t)INT64_MAX + neg)
		return false;
	*val = neg ? (int64_t)-abs : (int64_t)abs;
	return true;
}

int32_t jn_i32(const struct json_node *node, int32_t none)
{
	int64_t v;

	return jn_i64(node, &v) && v >= INT32_MIN && v <= INT32_MAX ? (int32_t)v : none;
}

bool jn_true(const struct json_node *node)
{
	return node && node->kind == JSON_KIND_TRUE;
}

bool jn_hex(const struct json_node *node, uint64_t *val)
{
	uint32_t i;

	if (!node || node->kind != JSON_KIND_STR || node->len < 3 || node->len > 18 ||
	    node->s[0] != '0' || node->s[1] != 'x' || (node->s[2] == '0' && node->len > 3))
		return false;
	for (*val = 0, i = 2; i < node->len; i++) {
		char c = node->s[i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		*val = *val << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return true;
}

uint64_t jn_addr(const struct json_node *node)
{
	uint64_t v;

	return jn_hex(node, &v) ? v : 0;
}

/* 97 years: the sum of three times, and the difference of any two, fit into 64 bits. */
#define MAX_TIME_US (INT64_MAX / 3 / 1000)

bool jn_time(const struct json_node *node, bool lax, int64_t *ns)
{
	uint64_t us, frac = 0;
	const char *s, *dot;
	uint32_t len, i, n;
	bool neg;

	if (!node || (node->kind != JSON_KIND_REAL && !(lax && node->kind == JSON_KIND_INT)))
		return false;
	neg = *node->s == '-';
	s = node->s + neg;
	len = node->len - neg;
	dot = memchr(s, '.', len);
	n = dot ? len - (dot + 1 - s) : 0;
	if ((!lax && n != 3) || !dec_u64(s, dot ? dot - s : len, &us) || us > MAX_TIME_US)
		return false;
	for (i = 0; i < n; i++) {
		if (dot[1 + i] < '0' || dot[1 + i] > '9')
			return false;
		if (i < 3)
			frac = frac * 10 + (dot[1 + i] - '0');
	}
	for (; i < 3; i++)
		frac *= 10;
	*ns = us * 1000 + frac;
	if (neg)
		*ns = -*ns;
	return true;
}

bool jn_offset(const struct json_node *node, int64_t *ns)
{
	int64_t v;

	if (!jn_time(node, true, &v) || v <= -JN_TIME_MAX || v >= JN_TIME_MAX)
		return false;
	*ns = v;
	return true;
}

bool jn_point(const struct json_node *node, int64_t *ns)
{
	int64_t v;

	if (!jn_offset(node, &v) || v < 0)
		return false;
	*ns = v;
	return true;
}
