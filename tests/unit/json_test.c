// SPDX-License-Identifier: BSD-2-Clause
/* loader/lib/json.c against jansson: what it writes is JSON, and reads back as what went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <jansson.h>
#include "json.h"

static uint64_t seed = 99;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Written into exactly the room that json.h promises, so that ASan sees a byte more. */
static json_t *str(const char *s, size_t len)
{
	size_t max = 6 * len + 2;
	char *buf = malloc(max);
	struct json j = {buf, buf + max};
	json_t *v;

	json_str(&j, s, len);
	assert_true(j.at <= j.end);
	v = json_loadb(buf, (size_t)(j.at - buf), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	assert_non_null(v);
	free(buf);
	return v;
}

static void same(const char *s, size_t len)
{
	json_t *v = str(s, len);

	assert_int_equal(json_string_length(v), len);
	assert_memory_equal(json_string_value(v), s, len);
	json_decref(v);
}

static void reads(const char *s, const char *as)
{
	json_t *v = str(s, strlen(s));

	assert_string_equal(json_string_value(v), as);
	json_decref(v);
}

static void test_strings(void **state)
{
	char all[128];
	int i;

	(void)state;
	for (i = 0; i < 128; i++)
		all[i] = (char)i;
	same(all, sizeof(all));
	same("", 0);
	same("a\"b\\c\nd\te\rf\x1b\x7f</script>", 22);
	same("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
	same("\xef\xbf\xbf\xf4\x8f\xbf\xbf", 7);
}

#define R "\xef\xbf\xbd"

/* Unicode 15, table 3-7: each bad byte becomes one U+FFFD, good neighbours stay. */
static void test_bad_utf8(void **state)
{
	(void)state;
	reads("a\xff"
	      "b",
	      "a" R "b");
	reads("\x80", R);
	reads("\xc0\x80", R R);		    /* overlong */
	reads("\xe0\x9f\xbf", R R R);	    /* overlong */
	reads("\xed\xa0\x80", R R R);	    /* surrogate */
	reads("\xf4\x90\x80\x80", R R R R); /* above U+10FFFF */
	reads("\xf8\x88\x80\x80\x80", R R R R R);
	reads("x\xe2\x82", "x" R R); /* cut short */
	reads("\xf0\x9f\x98", R R R);
	reads("\xc3(", R "(");
}

static void test_random_bytes(void **state)
{
	char s[64];
	size_t len, i;
	int round;

	(void)state;
	for (round = 0; round < 200000; round++) {
		len = rnd() % sizeof(s);
		for (i = 0; i < len; i++)
			s[i] = (char)(rnd() >> 20);
		json_decref(str(s, len));
	}
}

#define WRITES(expected, call)                                                                     \
	do {                                                                                       \
		char buf_[64] = {0};                                                               \
		struct json j_ = {buf_, buf_ + sizeof(buf_)}, *j = &j_;                            \
		call;                                                                              \
		assert_string_equal(buf_, expected);                                               \
	} while (0)

static void test_numbers(void **state)
{
	char want[64];
	uint64_t v;
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		v = rnd() >> rnd() % 64;
		snprintf(want, sizeof(want), "%" PRIu64, v);
		WRITES(want, json_u64(j, v));
		snprintf(want, sizeof(want), "%" PRId64, (int64_t)v);
		WRITES(want, json_i64(j, (int64_t)v));
		snprintf(want, sizeof(want), "\"0x%" PRIx64 "\"", v);
		WRITES(want, json_hex(j, v));
		snprintf(want, sizeof(want), "%" PRIu64 ".%03u", v / 1000,
			 (unsigned int)(v % 1000));
		WRITES(want, json_us(j, v));
	}
	WRITES("0", json_u64(j, 0));
	WRITES("18446744073709551615", json_u64(j, UINT64_MAX));
	WRITES("-9223372036854775808", json_i64(j, INT64_MIN));
	WRITES("\"0x0\"", json_hex(j, 0));
	WRITES("\"0xffffffffffffffff\"", json_hex(j, UINT64_MAX));
	WRITES("\"null\"", json_ptr(j, 0));
	WRITES("\"0x1\"", json_ptr(j, 1));
	WRITES("0.000", json_us(j, 0));
	WRITES("0.001", json_us(j, 1));
	WRITES("1.020", json_us(j, 1020));
	WRITES("18446744073709551.615", json_us(j, UINT64_MAX));
	WRITES("-0.001", json_us_signed(j, -1));
	WRITES("-9223372036854775.808", json_us_signed(j, INT64_MIN));
	WRITES("true", json_bool(j, 7));
	WRITES("false", json_bool(j, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_bad_utf8),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
