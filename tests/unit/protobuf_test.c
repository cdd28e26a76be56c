// SPDX-License-Identifier: BSD-2-Clause
/* loader/export/protobuf.c: the bytes that the wire format wants, by the examples and the rules of its documentation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "protobuf.h"

static void bytes(struct xbuf *b, const char *want, size_t len)
{
	assert_false(b->failed);
	assert_int_equal(b->len, len);
	assert_memory_equal(b->s, want, len);
	xbuf__free(b);
}

static void test_wire(void **state)
{
	struct xbuf b = {0};

	(void)state;
	pb_varint(&b, 1, 150);
	bytes(&b, "\x08\x96\x01", 3);
	pb_varint(&b, 1, 0);
	bytes(&b, "\x08\x00", 2);
	pb_varint(&b, 1, UINT64_MAX); /* an int32 of -1 as well */
	bytes(&b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	pb_varint(&b, 98, 127);
	bytes(&b, "\x90\x06\x7f", 3);
	pb_string(&b, 2, "testing");
	bytes(&b, "\x12\x07testing", 9);
	pb_fixed64(&b, 47, 0x0102030405060708);
	bytes(&b, "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01", 10);
	pb_double(&b, 5, 1.0);
	bytes(&b, "\x29\0\0\0\0\0\0\xf0\x3f", 9);
}

/* A length of one byte, of two, of three: what was written moves. */
static void test_nested(void **state)
{
	static const struct {
		size_t len;
		const char *length;
		size_t n;
	} cases[] = {{0, "\x00", 1},
		     {127, "\x7f", 1},
		     {128, "\x80\x01", 2},
		     {16383, "\xff\x7f", 2},
		     {16384, "\x80\x80\x01", 3}};
	static const char text[16384];
	struct xbuf b = {0};
	size_t i, at;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		at = pb_begin(&b, 3);
		xbuf__put(&b, text, cases[i].len);
		pb_end(&b, at);
		assert_int_equal(b.len, 1 + cases[i].n + cases[i].len);
		assert_memory_equal(b.s, "\x1a", 1);
		assert_memory_equal(b.s + 1, cases[i].length, cases[i].n);
		assert_memory_equal(b.s + 1 + cases[i].n, text, cases[i].len);
		xbuf__free(&b);
	}
	at = pb_begin(&b, 3);
	i = pb_begin(&b, 1);
	pb_varint(&b, 1, 150);
	pb_end(&b, i);
	pb_end(&b, at);
	bytes(&b, "\x1a\x05\x0a\x03\x08\x96\x01", 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_nested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
