/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of what reads the kernel's text files: a tree of such files in place of the real ones, and texts that are damaged. */
#ifndef NCCLSCOPE_PROC_TREE_H
#define NCCLSCOPE_PROC_TREE_H

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/stat.h>

static char root[] = "/tmp/ncclscope-tree-XXXXXX";

/* Makes a file below the root, and the folders above it; without a text only these. */
static void put(const char *name, const char *text)
{
	char path[PATH_MAX], *p;
	FILE *f;

	assert_true(snprintf(path, sizeof(path), "%s%s", root, name) < (int)sizeof(path));
	for (p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		assert_true(!mkdir(path, 0755) || errno == EEXIST);
		*p = '/';
	}
	if (!text)
		return;
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int tree_setup(void **state)
{
	(void)state;
	strcpy(strrchr(root, '-'), "-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tree_teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

/* Every beginning of each text, and @rounds times four of @bytes put in at random. */
static void parse_garbage(const char *const *texts, size_t n, const char *bytes, size_t nbytes,
			  size_t rounds, void (*parse)(const char *text, size_t len))
{
	uint64_t seed = 88172645463325252ULL;
	char text[1024];
	size_t i, k, len;

	for (i = 0; i < n; i++) {
		assert_true(strlen(texts[i]) < sizeof(text));
		for (len = 0; len <= strlen(texts[i]); len++)
			parse(texts[i], len);
	}
	for (k = 0; k < rounds; k++) {
		len = strlen(texts[k % n]);
		memcpy(text, texts[k % n], len);
		for (i = 0; i < 4; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			text[(seed >> 8) % len] = bytes[(seed >> 40) % nbytes];
		}
		parse(text, len);
	}
}

#endif
