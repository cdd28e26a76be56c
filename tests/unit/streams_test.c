// SPDX-License-Identifier: BSD-2-Clause
/* loader/read/streams.c: where they begin, and in which order, where there are more than can be read side by side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "streams.h"

#define N	4352
#define SEC_US	INT64_C(1000000)
#define SPAN_US (30 * SEC_US) /* as in streams.c */

static int64_t first_us[N];
static uint32_t begun[N], nbegun;

static void *begin(void *to, const char *path, uint32_t nr)
{
	(void)to;
	(void)path;
	assert_true(nbegun < N);
	begun[nbegun++] = nr;
	return &begun;
}

static int line(void *reader, const char *s, size_t len, bool whole)
{
	(void)reader;
	(void)s;
	(void)len;
	(void)whole;
	return 0;
}

static int64_t now(const void *reader)
{
	(void)reader;
	return 0;
}

static void end(void *reader)
{
	(void)reader;
}

static void read_all(void)
{
	static const struct streams_ops ops = {
		.begin = begin, .line = line, .now = now, .end = end};
	char path[] = "/tmp/ncclscope-streams-XXXXXX", *paths[] = {path, NULL};
	const struct streams_options opt = {.again = true};
	int fd = mkstemp(path), err, i;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct streams *s;

	assert_non_null(f);
	for (i = 0; i < N; i++)
		fprintf(f,
			"{\"recordType\":\"header\",\"clock\":{\"realtimeOffset\":1000.000}}\n"
			"{\"ts\":%lld.000}\n",
			(long long)first_us[i]);
	fclose(f);
	s = streams__new(paths, &opt, &err);
	assert_non_null(s);
	nbegun = 0;
	assert_int_equal(streams__read(s, &ops, NULL), 0);
	assert_int_equal(nbegun, N);
	assert_true(streams__totals(s)->waited);
	streams__free(s);
	unlink(path);
}

/* Of one job, some ms apart: as they are given, in which a node's are together. */
static void test_together(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		first_us[i] = 5 * SEC_US + i * 7919 % 1000 * 1000;
	read_all();
	for (i = 0; i < N; i++)
		assert_int_equal(begun[i], i);
}

/* 272 processes of 16 windows each, of which one begins each 1.1 s: no process' last window before another one's first. */
static void test_staggered(void **state)
{
	int64_t latest = 0;
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++)
		first_us[i] = 5 * SEC_US + i % 16 * 300 * SEC_US + i / 16 * 11 * SEC_US / 10;
	read_all();
	for (i = 0; i < N; i++) {
		assert_true(first_us[begun[i]] >= latest - SPAN_US);
		latest = first_us[begun[i]] > latest ? first_us[begun[i]] : latest;
	}
}

/* A file's text is looked through in chunks: a header is found wherever in them it begins, also across two. */
static void header_at(size_t at)
{
	static const char header[] = "{\"recordType\":\"header\"}\n";
	static const struct streams_ops ops = {
		.begin = begin, .line = line, .now = now, .end = end};
	char path[] = "/tmp/ncclscope-streams-XXXXXX", *paths[] = {path, NULL};
	const struct streams_options opt = {.again = true};
	int fd = mkstemp(path), err;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	struct streams *s;

	assert_non_null(f);
	fputs(header, f);
	fprintf(f, "%*s\n%s", (int)(at - sizeof(header)), "", header);
	assert_int_equal(ftell(f), at + sizeof(header) - 1);
	fclose(f);
	s = streams__new(paths, &opt, &err);
	assert_non_null(s);
	nbegun = 0;
	assert_int_equal(streams__read(s, &ops, NULL), 0);
	if (nbegun != 2)
		fail_msg("a header at %zu: %u pieces", at, nbegun);
	streams__free(s);
	unlink(path);
}

static void test_across_chunks(void **state)
{
	size_t at;

	(void)state;
	for (at = (1 << 20) - 24; at <= (1 << 20) + 1; at++)
		header_at(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_staggered),
		cmocka_unit_test(test_across_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
