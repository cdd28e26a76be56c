// SPDX-License-Identifier: BSD-2-Clause
/*
 * The reader of `check` against jansson: over many mutations of real lines both must accept the
 * same texts and read the same values. check_json.h says why the reader is not jansson itself.
 */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check_json.h"

static const char alphabet[] = "{}[]\",:\\u0019aefnrtl.-+E \t/\x80\xc3\xa9\xed\xf0\x1f";
static uint64_t seed = 1, nr_accepted, nr_refused;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

static bool same(const struct json_doc *doc, const struct json_node *node, const json_t *ref)
{
	char num[64];
	const json_t *val;
	uint32_t i, k = 0;

	switch (node->kind) {
	case JSON_KIND_NULL:
		return json_is_null(ref);
	case JSON_KIND_TRUE:
		return json_is_true(ref);
	case JSON_KIND_FALSE:
		return json_is_false(ref);
	case JSON_KIND_INT:
	case JSON_KIND_REAL:
		if (!json_is_real(ref) || node->len >= sizeof(num))
			return json_is_real(ref);
		snprintf(num, sizeof(num), "%.*s", (int)node->len, node->s);
		return strtod(num, NULL) == json_real_value(ref);
	case JSON_KIND_STR:
		return json_is_string(ref) && json_string_length(ref) == node->len &&
		       !memcmp(json_string_value(ref), node->s, node->len);
	case JSON_KIND_ARR:
		for (i = node->first; i; i = doc->nodes[i].next, k++) {
			val = json_array_get(ref, k);
			if (!val || !same(doc, &doc->nodes[i], val))
				return false;
		}
		return json_is_array(ref) && json_array_size(ref) == k;
	case JSON_KIND_OBJ:
		for (i = node->first; i; i = doc->nodes[i].next, k++) {
			char *key = strndup(doc->nodes[i].key, doc->nodes[i].key_len);

			val = json_object_get(ref, key);
			free(key);
			if (!val || !same(doc, &doc->nodes[i], val))
				return false;
		}
		return json_is_object(ref) && json_object_size(ref) == k;
	}
	return false;
}

/* Numbers as doubles, so that jansson takes those above 2^63 too. */
static int compare(struct json_doc *doc, const char *s, size_t len)
{
	const size_t flags =
		JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
	json_error_t error;
	json_t *ref = json_loadb(s, len, flags, &error);
	int err = json_doc__parse(doc, s, len), ret = 0;
	bool beyond = !ref && (json_error_code(&error) == json_error_numeric_overflow ||
			       json_error_code(&error) == json_error_null_byte_in_key);

	if (!beyond && (!ref != !!err || (ref && !same(doc, &doc->nodes[0], ref)))) {
		printf("FAIL: jansson %s, check_json %s: %.*s\n", ref ? "accepts" : error.text,
		       err ? doc->err : "accepts", (int)len, s);
		ret = 1;
	}
	nr_accepted += !err;
	nr_refused += !!err;
	json_decref(ref);
	return ret;
}

static int mutate(struct json_doc *doc, const char *line, size_t len, unsigned int rounds)
{
	char *copy = malloc(len + 1);
	unsigned int i, n;
	int failed = 0;

	for (i = 0; copy && i < rounds && failed < 10; i++) {
		size_t cut = rnd(16) ? len : rnd(len) + 1;

		memcpy(copy, line, len);
		for (n = rnd(3); n; n--)
			copy[rnd(len)] = alphabet[rnd(sizeof(alphabet) - 1)];
		failed += compare(doc, copy, cut);
	}
	free(copy);
	return failed;
}

/* What mutations seldom hit. */
static int corners(struct json_doc *doc)
{
	static const char *const texts[] = {
		"\"\\ud83d\\ude00\"",
		"\"\\ud83d\"",
		"\"\\ude00\"",
		"\"\\ud83d\\u0041\"",
		"\"\\u00e9\"",
		"\"\xf4\x90\x80\x80\"",
		"\"\xc0\x80\"",
		"\"\xed\xa0\x80\"",
		"\"\xf0\x9f\x98\x80\"",
		"-0",
		"-",
		"01",
		"1.",
		"1e",
		".5",
		"1e5",
		"18446744073709551615",
		"[1,]",
		"{\"a\":1,}",
		"{\"a\":1,\"\\u0061\":2}",
		"{}",
		"[]",
		"nul",
		"nulls",
		"",
		" ",
		"{\"a\"}",
		"[1 2]",
		"\"\\x\"",
		"\"\t\"",
		"[[[[[[[[1]]]]]]]]",
	};
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		failed += compare(doc, texts[i], strlen(texts[i]));
	return failed;
}

/* What readers reckon with: where it ends, to the nanosecond, and that it is left alone beyond. */
static int times(void)
{
	static const struct {
		const char *s;
		int64_t point, offset; /* -7: none */
	} want[] = {
		{"0", 0, 0},
		{"1.5", 1500, 1500},
		{"-0.001", -7, -1},
		{"2305843009213693.951", JN_TIME_MAX - 1, JN_TIME_MAX - 1},
		{"2305843009213693.952", -7, -7},
		{"-2305843009213693.951", -7, 1 - JN_TIME_MAX},
		{"-2305843009213693.952", -7, -7},
		{"9223372036854775807", -7, -7},
		{"1e3", -7, -7},
	};
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct json_node n = {.kind = JSON_KIND_REAL, .s = want[i].s};
		int64_t point = -7, offset = -7;

		n.len = strlen(n.s);
		if (jn_point(&n, &point) != (want[i].point != -7) || point != want[i].point ||
		    jn_offset(&n, &offset) != (want[i].offset != -7) || offset != want[i].offset) {
			printf("FAIL: %s is %lld, %lld\n", n.s, (long long)point,
			       (long long)offset);
			failed++;
		}
	}
	return failed + jn_point(NULL, NULL) + jn_offset(NULL, NULL);
}

int main(int argc, char **argv)
{
	struct json_doc doc;
	size_t cap = 0;
	char *line = NULL;
	ssize_t len;
	int failed, i;

	if (argc < 2 || json_doc__init(&doc)) {
		fprintf(stderr, "Usage: check_json_test TRACE...\n");
		return 1;
	}
	failed = corners(&doc) + times();
	for (i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "r");

		if (!file) {
			fprintf(stderr, "Failed to open '%s': %s\n", argv[i], strerror(errno));
			return 1;
		}
		while ((len = getline(&line, &cap, file)) > 1 && failed < 10)
			failed += mutate(&doc, line, len - 1, 500);
		fclose(file);
	}
	free(line);
	json_doc__free(&doc);
	printf("check_json_test: %llu texts accepted, %llu refused, %d differ from jansson\n",
	       (unsigned long long)nr_accepted, (unsigned long long)nr_refused, failed);
	return failed || !nr_accepted || !nr_refused;
}
