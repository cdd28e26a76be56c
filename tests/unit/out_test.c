// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/trace/out.c: names, whole lines, and a disk that is full (RLIMIT_FSIZE; a tmpfs where we are root); by itself, and with
 * out_threads.c, whose data races TSan would see.
 */
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "log.h"
#include "out.h"
#include "out_threads.h"
#include "zst.h"

static char dir[] = "/tmp/ncclscope-out-XXXXXX";
static int dirfd_;
/* NULL: none. They outlive a test that fails, and so must its files: they are static. */
static struct out_threads *threads;

static void open_text(struct out_file *f, const char *stem)
{
	assert_int_equal(out_file__open(f, dirfd_, dir, stem, getuid(), getgid()), 0);
	f->writer = out_threads__next(threads);
}

static void open_zst(struct out_file *f, const char *stem)
{
	assert_int_equal(out_file__open_zst(f, dirfd_, dir, stem, getuid(), getgid()), 0);
	f->writer = out_threads__next(threads);
}

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

/* A job that is recorded again and again: the next number, with few looks. */
static void test_many_names(void **state)
{
	const uint32_t n = 12000;
	struct out_file f;
	char name[64];
	uint32_t i;

	(void)state;
	for (i = 1; i <= n; i++) {
		snprintf(name, sizeof(name), i == 1 ? "many.jsonl" : "many_%u.jsonl", i);
		close(openat(dirfd_, name, O_CREAT | O_EXCL | O_WRONLY, 0600));
		if (i > 20 && i < n)
			continue;
		assert_int_equal(out_file__open(&f, dirfd_, dir, "many", getuid(), getgid()), 0);
		snprintf(name, sizeof(name), "/many_%u.jsonl", i + 1);
		assert_non_null(strstr(f.path, name));
		assert_int_equal(unlinkat(dirfd_, name + 1, 0), 0);
		out_file__close(&f);
	}
	assert_int_equal(unlinkat(dirfd_, "many_3.jsonl", 0), 0);
	assert_int_equal(out_file__open(&f, dirfd_, dir, "many", getuid(), getgid()), 0);
	out_file__close(&f);
}

/* Away goes only what was made, is empty, and is still where it was. */
static void test_unmake(void **state)
{
	char path[512];
	int made = -1, kept;

	(void)state;
	snprintf(path, sizeof(path), "%s/brief/", dir);
	assert_int_equal(out_dir_check(path, (uid_t)-1, (gid_t)-1, &made), 0);
	assert_true(made >= 0);
	kept = made;
	assert_int_equal(out_dir_check(path, (uid_t)-1, (gid_t)-1, &made), 0);
	assert_int_equal(made, kept); /* there already */
	out_dir_unmake(path, made);
	assert_int_equal(faccessat(dirfd_, "brief", F_OK, 0), -1);
	made = -1;
	assert_int_equal(out_dir_check(path, (uid_t)-1, (gid_t)-1, &made), 0);
	assert_int_equal(mkdirat(dirfd_, "brief/file", 0700), 0);
	out_dir_unmake(path, made);
	assert_int_equal(faccessat(dirfd_, "brief/file", F_OK, 0), 0);
	assert_int_equal(unlinkat(dirfd_, "brief/file", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dirfd_, "brief", AT_REMOVEDIR), 0);
	made = -1;
	assert_int_equal(out_dir_check(path, (uid_t)-1, (gid_t)-1, &made), 0);
	assert_int_equal(renameat(dirfd_, "brief", dirfd_, "moved"), 0);
	assert_int_equal(mkdirat(dirfd_, "brief", 0700), 0); /* another one of its name */
	out_dir_unmake(path, made);
	assert_int_equal(unlinkat(dirfd_, "brief", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dirfd_, "moved", AT_REMOVEDIR), 0);
}

static void test_directories(void **state)
{
	char path[512];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/new", dir);
	fd = out_dir_open(path, true, (uid_t)-1, (gid_t)-1);
	assert_true(fd >= 0);
	close(fd);
	fd = out_dir_open(path, true, (uid_t)-1, (gid_t)-1); /* there already */
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlinkat("new", dirfd_, "dirlink"), 0);
	snprintf(path, sizeof(path), "%s/dirlink", dir);
	fd = out_dir_open(path, true, (uid_t)-1, (gid_t)-1); /* where nobody else can put one */
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(out_dir_open(path, false, (uid_t)-1, (gid_t)-1), -ELOOP);
	assert_int_equal(fchmod(dirfd_, 0777), 0);
	assert_int_equal(out_dir_open(path, true, (uid_t)-1, (gid_t)-1), -ELOOP);
	assert_int_equal(fchmod(dirfd_, 01777), 0);
	fd = out_dir_open(path, true, (uid_t)-1, (gid_t)-1); /* guarded: it is ours */
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(fchmod(dirfd_, 0700), 0);
	assert_int_equal(symlinkat("nowhere", dirfd_, "dangling"), 0);
	snprintf(path, sizeof(path), "%s/dangling", dir);
	assert_int_equal(out_dir_open(path, true, (uid_t)-1, (gid_t)-1), -ENOENT);
	assert_int_equal(symlinkat("loop", dirfd_, "loop"), 0);
	snprintf(path, sizeof(path), "%s/loop", dir);
	assert_int_equal(out_dir_open(path, true, (uid_t)-1, (gid_t)-1), -ELOOP);
	snprintf(path, sizeof(path), "%s/dirlink/..//new/./made/", dir);
	fd = out_dir_open(path, true, (uid_t)-1, (gid_t)-1);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unlinkat(dirfd_, "new/made", AT_REMOVEDIR), 0);
	assert_int_equal(out_dir_open("", true, (uid_t)-1, (gid_t)-1), -ENOENT);
	fd = out_dir_open("/", true, (uid_t)-1, (gid_t)-1);
	assert_true(fd >= 0 || fd == -EACCES);
	close(fd);
	snprintf(path, sizeof(path), "%s/%0300d", dir, 0);
	assert_int_equal(out_dir_open(path, true, (uid_t)-1, (gid_t)-1), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "%s/trace.jsonl", dir);
	assert_int_equal(out_dir_open(path, true, (uid_t)-1, (gid_t)-1), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/no/where", dir);
	assert_int_equal(out_dir_open(path, true, (uid_t)-1, (gid_t)-1), -ENOENT);
}

/* Long lines and many: the buffer grows, lines stay whole and in order. */
static void test_large(void **state)
{
	static struct out_file f;
	uint64_t i;

	(void)state;
	open_text(&f, "large");
	line(&f, OUT_HEADER, OUT_LINE_MAX - 1, 'h');
	for (i = 0; i < 100000; i++)
		line(&f, OUT_EVENT, 20 + i % 50, 'x');
	assert_int_equal(f.counts[OUT_EVENT], 100000);
	assert_int_equal(out_file__flush(&f), 0);
	assert_int_equal((uint64_t)size_of("large.jsonl"), f.size);
	out_file__close(&f);
	assert_int_equal(unlinkat(dirfd_, "large.jsonl", 0), 0);
}

/* Full: lines are lost and counted, none is torn, and it goes on when there is room again. */
static void full(int (*limit)(uint64_t bytes), int error)
{
	static struct out_file f;

	open_text(&f, "full");
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

/* Where there are these bytes to be read, and then an end. */
static int pipe_with(const char *bytes, size_t len)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], bytes, len), len);
	close(fds[1]);
	return fds[0];
}

/* The first letters of the lines of a compressed file, as far as it can be read. */
static const char *letters_of(const char *name, size_t cut)
{
	static char text[1 << 20], letters[64], file[1 << 16];
	int fd = openat(dirfd_, name, O_RDONLY);
	struct zst_text z = {0};
	size_t len = 0, n = 0;
	ssize_t got = read(fd, file, sizeof(file));
	char *at, *nl;

	close(fd);
	assert_true(got > (ssize_t)cut && zst_is_stream(file, (size_t)got));
	fd = pipe_with(file, (size_t)got - cut);
	while ((got = zst_text__read(&z, fd, text + len, sizeof(text) - len)) > 0)
		len += (size_t)got;
	assert_non_null(z.reader);
	assert_int_equal(got, 0);
	zst_text__end(&z);
	close(fd);
	for (at = text; (nl = memchr(at, '\n', len - (size_t)(at - text))); at = nl + 1) {
		assert_int_equal(*at, nl[-1]);
		letters[n++] = *at;
	}
	letters[n] = 0;
	return letters;
}

/* What has been flushed can be read, whatever comes then; and a disk that was full costs no more than its lines. */
static void test_compressed(void **state)
{
	static struct out_file f;

	(void)state;
	open_zst(&f, "zst");
	line(&f, OUT_HEADER, 1000, 'h');
	assert_int_equal(out_file__flush(&f), 0);
	assert_string_equal(letters_of("zst.jsonl.zst", 0), "h");
	line(&f, OUT_EVENT, 30000, 'a');
	line(&f, OUT_EVENT, 30000, 'b');
	line(&f, OUT_EVENT, 300, 'c');
	if (!threads)
		assert_string_equal(letters_of("zst.jsonl.zst", 0), "hab"); /* by 48 KiB */
	assert_int_equal(out_file__flush(&f), 0);
	assert_string_equal(letters_of("zst.jsonl.zst", 0), "habc");
	assert_true(f.size < 1000 && (uint64_t)size_of("zst.jsonl.zst") == f.size);
	assert_int_equal(limit_by_rlimit(f.size + 5), 0);
	line(&f, OUT_EVENT, 300, 'd');
	assert_int_equal(out_file__flush(&f), -EFBIG);
	line(&f, OUT_EVENT, 300, 'e');
	assert_int_equal(out_file__flush(&f), -EFBIG);
	assert_int_equal(f.write_lost, 2);
	assert_string_equal(letters_of("zst.jsonl.zst", 0), "habc");
	assert_int_equal(limit_by_rlimit(0), 0);
	line(&f, OUT_LOST, 300, 'l');
	assert_int_equal(out_file__flush(&f), 0);
	assert_string_equal(letters_of("zst.jsonl.zst", 0), "habcl");
	line(&f, OUT_EVENT, 300, 'm');
	assert_int_equal(out_file__flush(&f), 0);
	f.ending = true;
	line(&f, OUT_FOOTER, 300, 'f');
	out_file__close(&f);
	assert_string_equal(letters_of("zst.jsonl.zst", 0), "habclmf");
	assert_string_equal(letters_of("zst.jsonl.zst", 1), "habclm"); /* torn */
	if (!threads)
		assert_int_equal(unlinkat(dirfd_, "zst.jsonl.zst", 0), 0);
}

/* No byte of it can be trusted. */
static void test_damaged(void **state)
{
	char file[4096], text[4096];
	struct zst_text z = {0};
	ssize_t len, n, i;
	int fd;

	(void)state;
	fd = openat(dirfd_, "zst.jsonl.zst", O_RDONLY);
	len = read(fd, file, sizeof(file));
	close(fd);
	assert_true(len > 20);
	for (i = 0; i < len; i++) {
		file[i] ^= 0x55;
		fd = pipe_with(file, (size_t)len);
		do {
			n = zst_text__read(&z, fd, text, sizeof(text));
		} while (n > 0);
		assert_true(n == 0 || n == -EPROTO || n == -ENOLINK || n == -EOVERFLOW);
		zst_text__end(&z);
		close(fd);
		file[i] ^= 0x55;
	}
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

/* Full to the last byte that lines may have: what tells of it still fits, and the rest is given back. */
static void full_to_the_end(void)
{
	static struct out_file f;
	struct stat st;

	assert_int_equal(limit_by_tmpfs(8192), 0);
	open_text(&f, "end");
	line(&f, OUT_HEADER, 1000, 'h');
	do
		line(&f, OUT_EVENT, 99, 'a');
	while (!out_file__flush(&f));
	assert_int_equal(f.write_lost, 1);
	line(&f, OUT_LOST, 99, 'l'); /* about the file: not among what it lost */
	assert_int_equal(out_file__flush(&f), -ENOSPC);
	assert_int_equal(f.write_lost, 1);
	f.ending = true;
	line(&f, OUT_LOST, 1500, 'l');
	line(&f, OUT_FOOTER, 1500, 'f');
	assert_int_equal(out_file__flush(&f), 0);
	assert_int_equal(fstat(f.fd, &st), 0);
	assert_int_equal(st.st_size, f.size);
	out_file__close(&f);
	assert_int_equal(fstatat(dirfd_, "end.jsonl", &st, 0), 0);
	assert_true(st.st_blocks * 512 - st.st_size < 4096);
	assert_int_equal(unlinkat(dirfd_, "end.jsonl", 0), 0);
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
	full_to_the_end();
	close(dirfd_);
	dirfd_ = was;
	assert_int_equal(umount(dir), 0);
}

/* Four files at a time, more than threads: each has its own lines in their order, text or not. */
static void test_several(void **state)
{
	static struct out_file f[4];
	char name[32], letters[64];
	uint32_t i, n;

	(void)state;
	for (n = 0; n < 4; n++) {
		snprintf(name, sizeof(name), "several-%u", n);
		(n % 2 ? open_zst : open_text)(&f[n], name);
	}
	for (i = 0; i < 40; i++) {
		for (n = 0; n < 4; n++)
			line(&f[n], OUT_EVENT, 5000 + 997 * n, (char)('a' + (i + n) % 26));
		if (i % 8 == 7)
			out_file__push(&f[i / 8 % 4]);
	}
	for (n = 0; n < 4; n++) {
		out_file__close(&f[n]);
		for (i = 0; i < 40; i++)
			letters[i] = (char)('a' + (i + n) % 26);
		letters[i] = 0;
		snprintf(name, sizeof(name), "several-%u.jsonl%s", n, n % 2 ? ".zst" : "");
		if (n % 2)
			assert_string_equal(letters_of(name, 0), letters);
		else
			assert_lines(name, letters);
		assert_int_equal(unlinkat(dirfd_, name, 0), 0);
	}
}

/* Full while much is on its way: what is in the file, and what is said to be lost, is all there was. */
static void test_full_meanwhile(void **state)
{
	static struct out_file f;
	uint32_t i;

	(void)state;
	open_text(&f, "meanwhile");
	assert_int_equal(limit_by_rlimit(1 << 20), 0);
	for (i = 0; i < 3000; i++)
		line(&f, OUT_EVENT, 999, 'a');
	out_file__flush(&f);
	assert_int_equal(f.counts[OUT_EVENT] * 1000, f.size);
	assert_int_equal(f.counts[OUT_EVENT] + f.write_lost, 3000);
	assert_true(f.counts[OUT_EVENT] > 900 && f.write_lost > 1900);
	assert_int_equal((uint64_t)size_of("meanwhile.jsonl"), f.size);
	assert_int_equal(limit_by_rlimit(0), 0);
	line(&f, OUT_EVENT, 999, 'b');
	assert_int_equal(out_file__flush(&f), 0);
	assert_false(f.failing);
	assert_int_equal(out_file__flush(&f), 0);
	out_file__close(&f);
	assert_int_equal(unlinkat(dirfd_, "meanwhile.jsonl", 0), 0);
}

static void test_deleted(void **state)
{
	struct out_file f = {0};

	(void)state;
	assert_false(out_file__is_gone(&f));
	assert_int_equal(out_file__open(&f, dirfd_, dir, "gone", getuid(), getgid()), 0);
	line(&f, OUT_HEADER, 100, 'h');
	line(&f, OUT_EVENT, 100, 'a');
	line(&f, OUT_LOST, 100, 'l');
	assert_false(out_file__is_gone(&f));
	assert_int_equal(renameat(dirfd_, "gone.jsonl", dirfd_, "moved.jsonl"), 0);
	assert_false(out_file__is_gone(&f)); /* somebody has it */
	assert_int_equal(unlinkat(dirfd_, "moved.jsonl", 0), 0);
	assert_true(out_file__is_gone(&f));
	assert_int_equal(out_file__lines(&f), 1);
	out_file__close(&f);
}

#define NOBODY 65534

/* In a child, as who may not give files away: as root on a file system that makes root nobody. */
static int open_for_another(int fd)
{
	struct out_file f;

	if (!getuid() && setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return out_file__open(&f, fd, dir, "refused", 0, 0);
}

/* A file whose owner cannot be set is not left behind: it is tried again each second. */
static void test_refused(void **state)
{
	int fd, status;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdirat(dirfd_, "refuses", 0700), 0);
	fd = openat(dirfd_, "refuses", O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	if (!getuid())
		assert_int_equal(fchown(fd, NOBODY, NOBODY), 0);
	pid = fork();
	if (!pid)
		_exit(-open_for_another(fd));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EPERM);
	close(fd);
	assert_int_equal(unlinkat(dirfd_, "refuses", AT_REMOVEDIR), 0); /* empty */
}

static int begin_threads(void **state)
{
	(void)state;
	threads = out_threads__new(2);
	return !threads;
}

static void test_no_threads(void **state)
{
	(void)state;
	assert_null(out_threads__new(0));
	assert_null(out_threads__next(NULL));
	out_threads__free(NULL);
}

static int no_limit(void **state)
{
	(void)state;
	return limit_by_rlimit(0);
}

#define TESTS_OF_WRITING                                                                           \
	cmocka_unit_test(test_large), cmocka_unit_test(test_several),                              \
		cmocka_unit_test_teardown(test_full_limit, no_limit),                              \
		cmocka_unit_test_teardown(test_full_meanwhile, no_limit),                          \
		cmocka_unit_test(test_full_disk),                                                  \
		cmocka_unit_test_teardown(test_compressed, no_limit)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_many_names),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_unmake),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_threads),
		TESTS_OF_WRITING,
		cmocka_unit_test_setup(test_large, begin_threads), /* from here on */
		TESTS_OF_WRITING,
		cmocka_unit_test(test_damaged),
	};
	char command[64];
	int failed;

	log_level = LOG_ERR;
	if (!mkdtemp(dir))
		return 1;
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	failed = cmocka_run_group_tests_name("out", tests, NULL, NULL);
	out_threads__free(threads);
	close(dirfd_);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || failed;
}
