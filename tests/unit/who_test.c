// SPDX-License-Identifier: BSD-2-Clause
/* loader/find/who.c: the build id of a libnccl, and of nothing else, whatever its path looks like. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "elf_file.h"
#include "patience.h"
#include "who.h"

#define PIECE 1023 /* of a line, for who reads it by pieces */

static char dir[] = "/tmp/who_test.XXXXXX";
static char own_id[ELF_BUILD_ID_LEN];

static void shell(const char *fmt, const char *arg)
{
	char command[4096];

	snprintf(command, sizeof(command), fmt, arg);
	assert_int_equal(system(command), 0);
}

/* A copy of this program at `path`, whose folders are made. */
static void copy_to(const char *path)
{
	char command[8192];

	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\" && cp /proc/%d/exe '%s'",
		 path, (int)getpid(), path);
	assert_int_equal(system(command), 0);
}

/* At which place of its line a name begins. */
static size_t names_at(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[PIECE + 1];
	char *name = NULL;

	while (f && !name && fgets(line, sizeof(line), f))
		name = strchr(line, '/');
	assert_non_null(name);
	fclose(f);
	return (size_t)(name - line);
}

/* A path of which the rest comes at the begin of the second piece of its line. */
static void long_path(char *path, size_t size, const char *rest)
{
	size_t len = PIECE - names_at(), i;

	snprintf(path, size, "%s/", dir);
	for (i = strlen(path); i < len; i++)
		path[i] = i % 200 ? 'x' : '/';
	path[len - 1] = 'x';
	snprintf(path + len, size - len, "%s", rest);
}

/* The build id of libnccl in a process that has `path` mapped. */
static const char *id_with(const char *path)
{
	static char id[ELF_BUILD_ID_LEN];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct who w;
	void *at;

	assert_true(fd >= 0);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	assert_int_equal(who__read(&w, (uint32_t)getpid(), getuid()), 0);
	snprintf(id, sizeof(id), "%s", who__part(&w, WHO_BUILD_ID, NULL));
	who__free(&w);
	munmap(at, 4096);
	return id;
}

static void test_build_id(void **state)
{
	char path[4096];

	(void)state;
	snprintf(path, sizeof(path), "%s/libnccl.so.2.28", dir);
	copy_to(path);
	assert_string_equal(id_with(path), own_id);
	long_path(path, sizeof(path), "/libnccl.so.2");
	copy_to(path);
	assert_string_equal(id_with(path), own_id);
	snprintf(path, sizeof(path), "%s/libnccl.so.d/other.so", dir);
	copy_to(path);
	assert_string_equal(id_with(path), "");
}

/* What follows in the line's second piece looks like one of its own, with a file that the process has not mapped. */
static void test_no_other_file(void **state)
{
	char path[4096], rest[512], other[64];

	(void)state;
	snprintf(other, sizeof(other), "%s/other", dir);
	copy_to(other);
	snprintf(rest, sizeof(rest), "../root%s /libnccl.so.2", other);
	long_path(path, sizeof(path), rest);
	copy_to(path);
	shell("echo no ELF file >'%s'", path);
	assert_string_equal(id_with(path), "");
}

static int begin(void **state)
{
	int fd = elf__open("/proc/self/exe");

	(void)state;
	if (fd < 0 || elf__build_id(fd, own_id, sizeof(own_id)) || !mkdtemp(dir))
		return -1;
	close(fd);
	return 0;
}

static int end(void **state)
{
	(void)state;
	patience__end();
	shell("rm -r '%s'", dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_build_id),
					   cmocka_unit_test(test_no_other_file)};

	if (geteuid()) {
		printf("1..0 # SKIP /proc/PID/map_files takes root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("who", tests, begin, end);
}
