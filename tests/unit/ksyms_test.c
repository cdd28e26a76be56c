// SPDX-License-Identifier: BSD-2-Clause
/* loader/attach/ksyms.c: names for addresses, from texts as /proc/kallsyms has them, also hidden, broken and none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "ksyms.h"

static char path[] = "/tmp/ksyms_test.XXXXXX";

static struct ksyms with(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return (struct ksyms){.path = path};
}

static void test_names(void **state)
{
	struct ksyms k = with("ffffffff81000100 T second\n"
			      "ffffffff81000000 t first\n"
			      "ffffffff81000180 D some_data\n"
			      "0000000000012000 A percpu\n"
			      "ffffffffc0000000 t in_module\t[nf_tables]\n"
			      "ffffffff81000200 W weak\n");

	(void)state;
	assert_null(ksyms__name(&k, 0));
	assert_null(ksyms__name(&k, 0xffffffff80ffffff));
	assert_string_equal(ksyms__name(&k, 0xffffffff81000000), "first");
	assert_string_equal(ksyms__name(&k, 0xffffffff810000ff), "first");
	assert_string_equal(ksyms__name(&k, 0xffffffff81000100), "second");
	assert_string_equal(ksyms__name(&k, 0xffffffff81000190), "second");
	assert_string_equal(ksyms__name(&k, 0xffffffff81000250), "weak");
	assert_string_equal(ksyms__name(&k, 0xffffffffc0000010), "in_module");
	assert_string_equal(ksyms__name(&k, UINT64_MAX), "in_module");
	ksyms__free(&k);
}

/* kptr_restrict, or a reader without privilege: zeroes. */
static void test_hidden(void **state)
{
	struct ksyms k = with("0000000000000000 T first\n0000000000000000 T second\n");

	(void)state;
	assert_null(ksyms__name(&k, 0xffffffff81000000));
	assert_null(ksyms__name(&k, 1));
	ksyms__free(&k);
}

static void test_broken(void **state)
{
	struct ksyms k = with("\n \nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
			      "fffffffff81000000 T too_long\nxyz T no_number\n"
			      "FFFFFFFF81000000 T upper\nffffffff81000010 T good");

	(void)state;
	assert_string_equal(ksyms__name(&k, UINT64_MAX), "good");
	assert_null(ksyms__name(&k, 0xffffffff8100000f));
	ksyms__free(&k);
}

static void test_none(void **state)
{
	struct ksyms k = {.path = "/nonexistent/kallsyms"};

	(void)state;
	assert_null(ksyms__name(&k, UINT64_MAX));
	assert_null(ksyms__name(&k, UINT64_MAX)); /* asks once only */
	ksyms__free(&k);
	ksyms__free(&k);
}

/* More than any first guess at the memory. */
static void test_many(void **state)
{
	struct ksyms k = {.path = path};
	FILE *f = fopen(path, "w");
	char name[32];
	uint64_t i;

	(void)state;
	assert_non_null(f);
	for (i = 0; i < 100000; i++)
		fprintf(f, "%016llx t function_%llu\n",
			(unsigned long long)(0xffffffff81000000 + (99999 - i) * 16),
			(unsigned long long)(99999 - i));
	assert_int_equal(fclose(f), 0);
	for (i = 0; i < 100000; i += 997) {
		snprintf(name, sizeof(name), "function_%llu", (unsigned long long)i);
		assert_string_equal(ksyms__name(&k, 0xffffffff81000000 + i * 16 + i % 16), name);
	}
	ksyms__free(&k);
}

/* Whatever this kernel lets us see. */
static void test_this_kernel(void **state)
{
	struct ksyms k = {0};
	const char *name = ksyms__name(&k, UINT64_MAX);

	(void)state;
	assert_true(!name || *name);
	ksyms__free(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),  cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_none),
		cmocka_unit_test(test_many),   cmocka_unit_test(test_this_kernel),
	};
	int fd = mkstemp(path), err;

	if (fd < 0)
		return 1;
	close(fd);
	err = cmocka_run_group_tests_name("ksyms", tests, NULL, NULL);
	unlink(path);
	return err;
}
