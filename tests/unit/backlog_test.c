// SPDX-License-Identifier: BSD-2-Clause
/* loader/decode/backlog.c: everything comes out as it went in, in its order, from memory and from the file, whoever waits for whom. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "backlog.h"
#include "clock.h"

#define MEMORY (32u << 20)
#define HEAD   8 /* bytes of each */

static char dir_name[] = "/tmp/backlog_test.XXXXXX";
static int dir;
static _Atomic unsigned int waited;
static struct backlog *b;
static uint64_t put_n, taken_n;
static unsigned char bytes[1 << 20];

static int group_setup(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	if (!mkdtemp(dir_name))
		return -1;
	dir = open(dir_name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int group_teardown(void **state)
{
	(void)state;
	close(dir);
	return rmdir(dir_name); /* whatever was made has no name */
}

/* A record's length and content by its number, in any sequence that has all sizes. */
static uint32_t size_of(uint64_t n)
{
	return n % 1000 == 999 ? 300000 : (uint32_t)(n * 2654435761u % 2000);
}

static void put(uint64_t n)
{
	while (n--) {
		backlog__put(b, (uint32_t)put_n, bytes + put_n % 1000, size_of(put_n));
		put_n++;
	}
}

static void take(uint64_t n)
{
	struct backlog_rec rec;

	while (n--) {
		assert_int_equal(backlog__take(b, &rec), 0);
		assert_int_equal(rec.kind, (uint32_t)taken_n);
		assert_int_equal(rec.size, size_of(taken_n));
		assert_int_equal((uintptr_t)rec.data % 8, 0);
		assert_memory_equal(rec.data, bytes + taken_n % 1000, rec.size);
		taken_n++;
	}
}

static void nobody_waits(void *arg)
{
	(void)arg;
	waited++;
}

static void begin(int in, uint64_t file_max, void (*waits)(void *arg))
{
	waited = 0;
	put_n = taken_n = 0;
	b = backlog__new(in, file_max, waits, NULL);
	assert_non_null(b);
}

static void test_order(void **state)
{
	struct backlog_state s;
	int i;

	(void)state;
	begin(dir, 1 << 30, nobody_waits);
	s = backlog__state(b);
	assert_int_equal(s.oldest_ns, 0);
	for (i = 0; i < 50; i++) {
		put(37);
		s = backlog__state(b);
		assert_true(s.oldest_ns && s.oldest_ns <= monotonic_ns());
		backlog__push(b);
		take(37);
	}
	put(1);
	backlog__push(b);
	take(1); /* what is before it is given back */
	s = backlog__state(b);
	assert_int_equal(s.file_bytes, 0);
	assert_int_equal(s.put_bytes - s.taken_bytes, HEAD + (size_of(put_n - 1) + 7) / 8 * 8);
	backlog__free(b);
}

/* Who takes comes not at all, then in the end: what memory has no room for lies in the file, and is gone when it was taken. */
static void test_file(void **state)
{
	struct backlog_state s;
	int round;

	(void)state;
	begin(dir, 1 << 30, nobody_waits);
	for (round = 0; round < 3; round++) {
		put(60000);
		s = backlog__state(b);
		assert_true(s.put_bytes - s.taken_bytes > MEMORY);
		assert_true(s.file_bytes > 0);
		take(30000);
		put(20000);
		take(49000);
		backlog__push(b);
		take(1000);
		put(1);
		backlog__push(b);
		take(1);
		s = backlog__state(b);
		assert_int_equal(s.file_bytes, 0);
	}
	assert_int_equal(waited, 0);
	backlog__free(b);
}

/* The file is empty again at the very moment at which more goes there. */
static void test_file_again(void **state)
{
	int round;

	(void)state;
	begin(dir, 1 << 30, nobody_waits);
	for (round = 0; round < 3; round++) {
		while (!backlog__state(b).file_bytes)
			put(10);
		while (backlog__state(b).file_bytes) {
			take(3);
			put(1); /* what is younger is in memory again */
		}
		while (backlog__state(b).taken_bytes + MEMORY > backlog__state(b).put_bytes)
			put(10);
		put(2000);
	}
	backlog__push(b);
	while (put_n - taken_n > 500) {
		take(1);
		if (taken_n % 100 == 0)
			backlog__push(b);
	}
	backlog__free(b);
}

struct taker {
	uint64_t n;
	bool late;	      /* it comes when there is no room any more, */
	_Atomic bool all_put; /* or nothing to wait for */
};

static void *take_all(void *arg)
{
	const struct timespec pause = {.tv_nsec = 1000000}, begin = {.tv_nsec = 300000000};
	const struct taker *t = arg;

	if (!t->late)
		nanosleep(&begin, NULL);
	while (t->late && !waited && !t->all_put)
		nanosleep(&pause, NULL);
	while (taken_n < t->n) {
		take(1);
		if (taken_n % 5000 == 0)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

/* No file, or none any more: who puts waits, says so, and nothing is lost. */
static void with_thread(int in, uint64_t file_max, bool late)
{
	struct taker t = {.n = 150000, .late = late};
	pthread_t thread;

	begin(in, file_max, nobody_waits);
	assert_int_equal(pthread_create(&thread, NULL, take_all, &t), 0);
	while (put_n < t.n) {
		put(100);
		backlog__push(b);
	}
	t.all_put = true;
	while (backlog__state(b).put_bytes - backlog__state(b).taken_bytes > 1 << 20)
		backlog__push(b);
	backlog__push(b);
	pthread_join(thread, NULL);
	assert_int_equal(taken_n, t.n);
	backlog__free(b);
}

static void test_threads(void **state)
{
	(void)state;
	with_thread(dir, 1 << 30, false);
	assert_int_equal(waited, 0);
}

static void test_no_directory(void **state)
{
	(void)state;
	with_thread(-1, 1 << 30, true);
	assert_true(waited > 0);
}

static void test_small_file(void **state)
{
	(void)state;
	with_thread(dir, 1 << 20, true);
	assert_true(waited > 0);
}

/* As a full disk, and there is room again. */
static void test_full(void **state)
{
	struct rlimit was, small;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &was);
	small = was;
	small.rlim_cur = 1 << 20;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	with_thread(dir, 1 << 30, true);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_true(waited > 0);
}

static uint64_t in_file; /* when there was no room for the first time */

static void take_some(void *arg)
{
	struct backlog_rec rec;
	int i;

	(void)arg;
	if (!waited++)
		in_file = backlog__state(b).file_bytes;
	for (i = 0; i < 3; i++)
		assert_int_equal(backlog__take(b, &rec), 0);
}

/* As --backlog has it, and nothing else: also with blocks that are but half full, as the next record has no room in them. */
static void test_bound(void **state)
{
	const uint64_t file_max = 64 << 20, size = 66000;

	(void)state;
	begin(dir, file_max, take_some);
	while (!waited)
		backlog__put(b, 0, bytes, size);
	assert_true(in_file <= file_max && in_file + size + 2 * HEAD > file_max);
	backlog__free(b);
	begin(dir, BACKLOG_FILE_MAX, nobody_waits);
	put(1);
	backlog__push(b);
	take(1);
	backlog__free(b);
}

/* What nobody takes is freed. */
static void test_left(void **state)
{
	(void)state;
	begin(dir, 1 << 30, nobody_waits);
	put(60000);
	take(1);
	backlog__free(b);
	backlog__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	     cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_again),   cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_directory), cmocka_unit_test(test_small_file),
		cmocka_unit_test(test_full),	     cmocka_unit_test(test_bound),
		cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests_name("backlog", tests, group_setup, group_teardown);
}
