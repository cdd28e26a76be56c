// SPDX-License-Identifier: BSD-2-Clause
/* loader/trace/retain.c: which traces are deleted, and that nothing else is. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "log.h"
#include "retain.h"

#define PATH_LEN 64

static char dir[] = "/tmp/ncclscope-retain-XXXXXX";

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

static int make(const char *path, off_t bytes)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	return fd;
}

/* A trace of the recording that runs, which has `bytes` when it is closed. */
static void trace(struct retain *r, const char *path, off_t bytes)
{
	int fd = make(path, 0);

	retain__add(r, path, fd);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

static void end_recording(struct retain *r)
{
	retain__end_recording(r, true, getuid());
}

/* Names of traces: nr of recording, nr in it. */
static const char *name(int recording, int nr)
{
	static char names[8][PATH_LEN];
	static int at;
	char *n = names[at++ % 8];

	snprintf(n, PATH_LEN, "dump/trace_%d_pid%d.jsonl", recording, nr);
	return n;
}

static struct retain *begin(uint64_t max_bytes, uint32_t max_files, bool own_dirs)
{
	struct retain *r = retain__new(max_bytes, max_files, own_dirs);

	assert_non_null(r);
	if (!is_there("dump"))
		assert_int_equal(mkdir("dump", 0755), 0);
	return r;
}

static void assert_deleted(const struct retain *r, uint64_t recordings, uint64_t files,
			   uint64_t bytes)
{
	struct retain_deleted d = retain__deleted(r);

	assert_int_equal(d.recordings, recordings);
	assert_int_equal(d.files, files);
	assert_int_equal(d.bytes, bytes);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_all(const char *path)
{
	struct stat st;

	if (!lstat(path, &st))
		assert_int_equal(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void end(struct retain *r)
{
	retain__free(r);
	remove_all("dump");
	remove_all("elsewhere");
}

/* Whole recordings, the oldest first; the newest stays, however large. */
static void test_oldest(void **state)
{
	struct retain *r = begin(4 * 8192, 100, false);
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		trace(r, name(i, 1), 4097); /* two blocks */
		trace(r, name(i, 2), 8192);
		end_recording(r);
		assert_int_equal(is_there(name(i, 1)) + is_there(name(i, 2)), 2);
		if (i >= 2)
			assert_int_equal(is_there(name(i - 2, 1)) + is_there(name(i - 2, 2)), 0);
		if (i)
			assert_int_equal(is_there(name(i - 1, 1)) + is_there(name(i - 1, 2)), 2);
	}
	assert_deleted(r, 2, 4, 4 * 8192);
	trace(r, name(4, 1), 1 << 20);
	end_recording(r);
	assert_true(is_there(name(4, 1)));
	assert_false(is_there(name(3, 1)));
	assert_deleted(r, 4, 8, 8 * 8192);
	end(r);
}

/* Files that take nearly no room are bounded in number. */
static void test_many(void **state)
{
	struct retain *r = begin(1 << 30, 3, false);
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		trace(r, name(i, 1), 1);
		trace(r, name(i, 2), 1);
		end_recording(r);
	}
	assert_int_equal(is_there(name(0, 1)) + is_there(name(1, 2)), 0);
	assert_int_equal(is_there(name(2, 1)) + is_there(name(2, 2)), 2);
	end(r);
}

/* Nothing was recorded for hours: what was before that is what somebody will ask for. */
static void test_silence(void **state)
{
	struct retain *r = begin(1, 100, false);
	int i;

	(void)state;
	trace(r, name(0, 1), 100);
	for (i = 0; i < 5; i++)
		end_recording(r);
	assert_true(is_there(name(0, 1)));
	trace(r, name(1, 1), 100);
	end_recording(r);
	assert_false(is_there(name(0, 1)));
	end(r);
}

/* Under a trace's name there is another file by now, or a link, or none. */
static void test_others(void **state)
{
	struct retain *r = begin(1, 100, false);

	(void)state;
	trace(r, name(0, 1), 100);
	trace(r, name(0, 2), 100);
	trace(r, name(0, 3), 100);
	trace(r, name(0, 4), 100);
	end_recording(r);
	assert_int_equal(rename(name(0, 1), "dump/kept.jsonl"), 0);
	close(make(name(0, 1), 5));
	assert_int_equal(rename(name(0, 2), "dump/moved.jsonl"), 0);
	assert_int_equal(symlink("moved.jsonl", name(0, 2)), 0);
	assert_int_equal(unlink(name(0, 3)), 0);
	trace(r, name(1, 1), 100);
	end_recording(r);
	assert_true(is_there(name(0, 1)));
	assert_true(is_there("dump/kept.jsonl"));
	assert_true(is_there("dump/moved.jsonl"));
	assert_true(is_there(name(0, 2)));
	assert_false(is_there(name(0, 4)));
	assert_deleted(r, 1, 1, 4096);
	end(r);
}

/* The directory is another by now: a link that anybody can have made. */
static void test_directory_moved(void **state)
{
	struct retain *r = begin(1, 100, true);
	struct stat st;

	(void)state;
	trace(r, name(0, 1), 100);
	end_recording(r);
	assert_int_equal(rename("dump", "elsewhere"), 0);
	assert_int_equal(symlink("elsewhere", "dump"), 0);
	trace(r, "elsewhere/new.jsonl", 100);
	retain__end_recording(r, false, getuid());
	assert_true(is_there("elsewhere/trace_0_pid1.jsonl"));
	assert_int_equal(lstat("dump", &st), 0);
	end(r);
}

/* A job's own directory goes with its last trace, but not with something else in it; one that -o names stays. */
static void test_directories(void **state)
{
	int own;

	(void)state;
	for (own = 0; own < 2; own++) {
		struct retain *r = begin(1, 100, own);

		assert_int_equal(mkdir("elsewhere", 0755), 0);
		trace(r, name(0, 1), 100);
		end_recording(r);
		trace(r, "elsewhere/trace_1.jsonl", 100);
		end_recording(r);
		assert_false(is_there(name(0, 1)));
		assert_int_equal(is_there("dump"), !own);
		close(make("elsewhere/notes", 1));
		trace(r, "trace_2.jsonl", 100);
		end_recording(r);
		assert_false(is_there("elsewhere/trace_1.jsonl"));
		assert_true(is_there("elsewhere/notes"));
		assert_int_equal(unlink("trace_2.jsonl"), 0);
		end(r);
	}
}

/* Deleted while it was written: its lines are counted as lost elsewhere. */
static void test_gone(void **state)
{
	struct retain *r = begin(1, 100, false);
	int fd = make(name(0, 1), 10);

	(void)state;
	assert_int_equal(unlink(name(0, 1)), 0);
	retain__add(r, name(0, 1), fd);
	close(fd);
	close(make(name(0, 1), 10));
	end_recording(r);
	trace(r, name(1, 1), 10);
	end_recording(r);
	assert_true(is_there(name(0, 1)));
	end(r);
}

/* Recordings that somebody has moved to another disk take no room: nothing else goes for them. */
static void test_moved_away(void **state)
{
	struct retain *r = begin(5 * 8192, 100, false);
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		trace(r, name(i, 1), 8192);
		end_recording(r);
	}
	for (i = 1; i < 4; i++)
		assert_int_equal(unlink(name(i, 1)), 0);
	for (i = 5; i < 8; i++) {
		trace(r, name(i, 1), 8192);
		end_recording(r);
	}
	assert_deleted(r, 0, 0, 0);
	assert_int_equal(is_there(name(0, 1)) + is_there(name(4, 1)), 2);
	trace(r, name(8, 1), 8192);
	end_recording(r);
	assert_deleted(r, 1, 1, 8192);
	assert_false(is_there(name(0, 1)));
	end(r);
}

/*
 * Somebody has deleted a trace, and the next one has its name and, as ext4 gives them out again, its inode: it is of the newest recording, and counts
 * once.
 */
static void test_inode_again(void **state)
{
	struct retain *r = begin(4 * 8192, 100, false);
	int i, fd;

	(void)state;
	for (i = 0; i < 3; i++) {
		trace(r, name(i, 1), 8192);
		end_recording(r);
	}
	fd = open(
		name(1, 1),
		O_WRONLY |
			O_TRUNC); /* in place of a new one: which inode that has is the file system's choice */
	assert_true(fd >= 0);
	retain__add(r, name(1, 1), fd);
	assert_int_equal(ftruncate(fd, 2 * 8192), 0);
	close(fd);
	end_recording(r);
	assert_deleted(r, 0, 0, 0);
	trace(r, name(3, 1), 8192);
	end_recording(r);
	assert_true(is_there(name(1, 1)));
	assert_deleted(r, 1, 1, 8192);
	assert_false(is_there(name(0, 1)));
	trace(r, name(4, 1), 2 * 8192);
	end_recording(r);
	assert_false(is_there(name(2, 1)) || is_there(name(1, 1)));
	assert_deleted(r, 3, 3, 4 * 8192);
	end(r);
}

/* As before, and the one that is deleted and made again is of the same recording. */
static void test_inode_again_within(void **state)
{
	struct retain *r = begin(3 * 8192, 100, false);
	int fd;

	(void)state;
	trace(r, name(0, 1), 8192);
	end_recording(r);
	trace(r, name(1, 1), 8192);
	fd = open(name(1, 1), O_WRONLY);
	assert_true(fd >= 0);
	retain__add(r, name(1, 1), fd);
	close(fd);
	trace(r, name(1, 2), 8192);
	end_recording(r);
	assert_deleted(r, 0, 0, 0);
	assert_true(is_there(name(0, 1)));
	end(r);
}

static int enter(void **state)
{
	(void)state;
	log_level = LOG_WARN;
	return mkdtemp(dir) ? chdir(dir) : -1;
}

static int leave(void **state)
{
	(void)state;
	return chdir("/") || rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_directory_moved),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_moved_away),
		cmocka_unit_test(test_inode_again),
		cmocka_unit_test(test_inode_again_within),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
