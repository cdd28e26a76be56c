// SPDX-License-Identifier: BSD-2-Clause
/* loader/out.c: names, whole lines, and a disk that is full (RLIMIT_FSIZE; a tmpfs where we are root). */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "log.h"
#include "out.h"

static char dir[] = "/tmp/ncclscope-out-XXXXXX";
static int dirfd_;

static void line(struct out_file *f, enum out_kind kind, size_t len, char c)
{
	struct json j = out_line_begin(f, len);

	assert_non_null(j.at);
	memset(j.at, c, len);
	j.at += len;
	out_line_end(f, &j, kind, 1);
}

static off_t size_of(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dirfd_, name, &st, 0), 0);
	return st.st_size;
}

/* Whole lines only, each of one letter. */
static void assert_lines(const char *name, const char *letters)
{
	char path[512], *text = NULL;
	size_t cap = 0;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	while ((n = getline(&text, &cap, f)) > 0) {
		assert_int_equal(text[n - 1], '\n');
		assert_int_equal(text[0], *letters);
		assert_int_equal(text[n - 2], *letters);
		letters++;
	}
	assert_int_equal(*letters, 0);
	free(text);
	fclose(f);
}

static void test_names(void **state)
{
	struct out_file a, b, c;
	struct stat st;
	mode_t was = umask(077);

	(void)state;
	assert_int_equal(out_file__open(&a, dirfd_, dir, "trace", getuid(), getgid()), 0);
	assert_int_equal(out_file__open(&b, dirfd_, dir, "trace", getuid(), getgid()), 0);
	assert_int_equal(symlinkat("/etc/passwd", dirfd_, "link.jsonl"), 0);
	assert_int_equal(out_file__open(&c, dirfd_, dir, "link", getuid(), getgid()), 0);
	umask(was);
	assert_non_null(strstr(a.path, "/trace.jsonl"));
	assert_non_null(strstr(b.path, "/trace_2.jsonl"));
	assert_non_null(strstr(c.path, "/link_2.jsonl")); /* never through a link */
	assert_int_equal(fstat(a.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	line(&a, OUT_EVENT, 100, 'a');
	line(&a, OUT_STATE, 200, 'b');
	assert_int_equal(size_of("trace.jsonl"), 0); /* buffered */
	out_file__close(&a);
	assert_int_equal(size_of("trace.jsonl"), 302);
	assert_lines("trace.jsonl", "ab");
	out_file__close(&a); /* twice is fine */
	out_file__close(&b);
	out_file__close(&c);
}

static void test_directories(void **state)
{
	char path[512];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/new", dir);
	fd = out_dir_open(path, (uid_t)-1, (gid_t)-1);
	assert_true(fd >= 0);
	close(fd);
	fd = out_dir_open(path, (uid_t)-1, (gid_t)-1); /* there already */
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlinkat("new", dirfd_, "dirlink"), 0);
	snprintf(path, sizeof(path), "%s/dirlink", dir);
	assert_int_equal(out_dir_open(path, (uid_t)-1, (gid_t)-1), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/trace.jsonl", dir);
	assert_int_equal(out_dir_open(path, (uid_t)-1, (gid_t)-1), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/no/where", dir);
	assert_int_equal(out_dir_open(path, (uid_t)-1, (gid_t)-1), -ENOENT);
}

/* Long lines and many: the buffer grows, lines stay whole and in order. */
static void test_large(void **state)
{
	struct out_file f;
	uint64_t i;

	(void)state;
	assert_int_equal(out_file__open(&f, dirfd_, dir, "large", getuid(), getgid()), 0);
	line(&f, OUT_HEADER, OUT_LINE_MAX - 1, 'h');
	for (i = 0; i < 100000; i++)
		line(&f, OUT_EVENT, 20 + i % 50, 'x');
	assert_int_equal(f.counts[OUT_EVENT], 100000);
	assert_int_equal(out_file__flush(&f), 0);
	assert_int_equal((uint64_t)size_of("large.jsonl"), f.size);
	out_file__close(&f);
}

/* Full: lines are lost and counted, none is torn, and it goes on when there is room again. */
static void full(int (*limit)(uint64_t bytes), int error)
{
	struct out_file f;

	assert_int_equal(out_file__open(&f, dirfd_, dir, "full", getuid(), getgid()), 0);
	line(&f, OUT_HEADER, 1000, 'h');
	assert_int_equal(out_file__flush(&f), 0);
	assert_int_equal(limit(8192), 0);
	line(&f, OUT_EVENT, 3000, 'a');
	assert_int_equal(out_file__flush(&f), 0);
	line(&f, OUT_EVENT, 3000, 'b'); /* the first of these would fit, in part */
	line(&f, OUT_EVENT, 3000, 'c');
	line(&f, OUT_STATE, 3000, 'd');
	assert_int_equal(out_file__flush(&f), -error);
	assert_int_equal(f.write_lost, 3);
	assert_int_equal(f.counts[OUT_EVENT], 1); /* what is in the file, for the footer */
	assert_int_equal(f.counts[OUT_STATE], 0);
	assert_true(f.failing);
	assert_lines("full.jsonl", "ha");
	line(&f, OUT_EVENT, 9000, 'e');
	assert_int_equal(out_file__flush(&f), -error);
	assert_int_equal(f.write_lost, 4);
	assert_int_equal(limit(0), 0);
	line(&f, OUT_LOST, 500, 'l');
	assert_int_equal(out_file__flush(&f), 0);
	assert_false(f.failing);
	line(&f, OUT_FOOTER, 500, 'f');
	out_file__close(&f);
	assert_lines("full.jsonl", "half");
	assert_int_equal(unlinkat(dirfd_, "full.jsonl", 0), 0);
}

static int limit_by_rlimit(uint64_t bytes)
{
	struct rlimit r;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = bytes ? bytes : r.rlim_max;
	return setrlimit(RLIMIT_FSIZE, &r);
}

static void test_full_limit(void **state)
{
	(void)state;
	full(limit_by_rlimit, EFBIG);
}

/* A tmpfs of two pages, then of many. */
static int limit_by_tmpfs(uint64_t bytes)
{
	return mount("none", dir, "tmpfs", MS_REMOUNT, bytes ? "size=8192" : "size=1m");
}

static void test_full_disk(void **state)
{
	int was = dirfd_;

	(void)state;
	if (mount("none", dir, "tmpfs", 0, "size=1m")) {
		printf("skip test_full_disk: no tmpfs: %s\n", strerror(errno));
		return;
	}
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	full(limit_by_tmpfs, ENOSPC);
	close(dirfd_);
	dirfd_ = was;
	assert_int_equal(umount(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	  cmocka_unit_test(test_directories),
		cmocka_unit_test(test_large),	  cmocka_unit_test(test_full_limit),
		cmocka_unit_test(test_full_disk),
	};
	char command[64];
	int failed;

	log_level = LOG_ERR;
	if (!mkdtemp(dir))
		return 1;
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	failed = cmocka_run_group_tests_name("out", tests, NULL, NULL);
	close(dirfd_);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || failed;
}
