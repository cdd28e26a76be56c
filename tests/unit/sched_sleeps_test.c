// SPDX-License-Identifier: BSD-2-Clause
/* loader/correlate/sched_sleeps.c: who ended long sleeps and in which files they were, how these are called, and what is forgotten. */
#include <stdlib.h>
#include <string.h>
#include "sched_feed.h"
#include "sched_priv.h"
#include "sched_sleeps.h"

/* A thread that has run until now and sleeps in `why` from here on. */
static struct k_task *sleeper(int32_t why)
{
	struct k_task *t;

	at(k.now_ns + 100);
	t = running(0, 0);
	at(k.now_ns + 100);
	k_blocks(&k, 0, why, NULL);
	at(k.now_ns + 1000);
	return t;
}

/* It runs again, and goes to sleep again. */
static void again(struct k_task *t, int32_t why)
{
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t);
	at(k.now_ns + 100);
	k_blocks(&k, 0, why, NULL);
	at(k.now_ns + 1000);
}

/* ---- Names -------------------------------------------------------------------------------------- */

static struct scope_ev_woken woken(const struct k_task *t, int32_t call, const char *fs,
				   const char *dir, const char *name)
{
	struct scope_ev_woken e = {.h = {SCOPE_ABI, SCOPE_EV_WOKEN, sizeof(e), k.now_ns},
				   .since_ns = t->bpf.asleep_ns,
				   .tid = t->tid,
				   .call = call};

	snprintf(e.fs, sizeof(e.fs), "%s", fs);
	snprintf(e.dir, sizeof(e.dir), "%s", dir);
	snprintf(e.name, sizeof(e.name), "%s", name);
	return e;
}

/* What the file of that record is called; "": it has none. */
static const char *name_of(struct k_task *t, const struct scope_ev_woken *e)
{
	static struct sched_span span;
	uint64_t from = e->since_ns;

	sched__woken(&s, e);
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t);
	span = span_of(thread(t), from, k.now_ns);
	assert_adds_up(&span);
	at(k.now_ns + 10);
	k_blocks(&k, 0, e->call, NULL);
	at(k.now_ns + 10);
	return span.nfiles ? span.files[0].name : "";
}

static void test_names(void **state)
{
	static const struct {
		const char *fs, *dir, *name, *is;
	} files[] = {
		{"nfs4", "shards", "0012.tar", "shards/0012.tar"},
		{"ext4", "/", "vmlinuz", "/vmlinuz"}, /* what is mounted there is the root */
		{"ext4", "", "/", "/"},
		{"xfs", "data", "data", "data/data"},
		{"pipefs", "", "", "pipe"},
		{"sockfs", "", "UNIX", "socket"},
		{"anon_inodefs", "", "[eventpoll]", "[eventpoll]"},
		{"devtmpfs", "dev", "nvidia-uvm", "dev/nvidia-uvm"},
		{"", "shards", "0012.tar", ""},
	};
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		e = woken(t, SYS_read, files[i].fs, files[i].dir, files[i].name);
		assert_string_equal(name_of(t, &e), files[i].is);
	}
}

static void test_sockets(void **state)
{
	struct k_task *t = sleeper(SYS_recvfrom);
	struct scope_ev_woken e = woken(t, SYS_recvfrom, "sockfs", "", "TCP");

	(void)state;
	e.has_sock = 1;
	memcpy(e.sock.local, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x07", 16);
	memcpy(e.sock.remote, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x08", 16);
	e.sock.local_port = 41230;
	e.sock.remote_port = 443;
	assert_string_equal(name_of(t, &e), "10.0.0.7:41230>10.0.0.8:443");
	/* the longest there are */
	e = woken(t, SYS_recvfrom, "sockfs", "", "TCPv6");
	e.has_sock = 1;
	memset(e.sock.local, 0xfd, 16);
	memset(e.sock.remote, 0xfd, 16);
	e.sock.local_port = e.sock.remote_port = 65535;
	assert_string_equal(name_of(t, &e), "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:65535>"
					    "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:65535");
}

/* The first argument of these is no file's descriptor, whatever file has that number. */
static void test_no_files(void **state)
{
	static const int32_t calls[] = {
		SYS_futex, SYS_clock_nanosleep, SYS_wait4,	 SYS_openat, SYS_ppoll,
		SYS_mmap,  SCOPE_WHY_PAGEFAULT, SCOPE_WHY_OTHER, 100000,     INT32_MIN};
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		e = woken(t, calls[i], "ext4", "dir", "name");
		assert_string_equal(name_of(t, &e), "");
	}
	assert_null(s.files);
}

/* Stopped amid a call, it does not wait for that; the kernel calls block I/O so, in whatever call. */
static void test_why(void **state)
{
	struct k_task *t = sleeper(SCOPE_WHY_STOPPED);
	struct scope_ev_woken e = woken(t, SYS_read, "nfs4", "dir", "name");

	(void)state;
	assert_string_equal(name_of(t, &e), "");
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t);
	k_blocks(&k, 0, SCOPE_WHY_IO, NULL);
	at(k.now_ns + 1000);
	e = woken(t, SYS_read, "nfs4", "dir", "name");
	assert_string_equal(name_of(t, &e), "dir/name");
}

/* The freezer of cgroup v1 had the end of a sleep wait, in whatever call that was. */
static void test_frozen_within(void **state)
{
	struct k_task *t = sleeper(SYS_clock_nanosleep);
	struct scope_ev_woken e = woken(t, SCOPE_WHY_FROZEN, "", "", "");
	uint64_t from = e.since_ns;
	struct sched_span span;

	(void)state;
	e.asleep = true; /* which it may still get out of before that ends */
	sched__woken(&s, &e);
	assert_int_equal(sched_thread__last(thread(t))->why, SYS_clock_nanosleep);
	e.asleep = false;
	name_of(t, &e);
	span = span_of(thread(t), from, k.now_ns - 10);
	assert_int_equal(span.nblocked_in, 1);
	assert_int_equal(span.blocked_in[0].why, SCOPE_WHY_FROZEN);
}

/* Nor was it in the file that it had gone to sleep in. */
static void test_frozen_in_file(void **state)
{
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e = woken(t, SYS_read, "nfs4", "dir", "name");

	(void)state;
	e.asleep = true;
	sched__woken(&s, &e);
	assert_int_equal(HASH_COUNT(s.files), 1);
	e = woken(t, SCOPE_WHY_FROZEN, "", "", "");
	assert_string_equal(name_of(t, &e), "");
	assert_null(s.files);
}

/* The same name on two filesystems is two files. */
static void test_filesystems(void **state)
{
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e = woken(t, SYS_read, "nfs4", "shards", "1.tar");
	struct sched_span span;
	uint64_t from = e.since_ns;

	(void)state;
	name_of(t, &e);
	at(k.now_ns + 500);
	e = woken(t, SYS_read, "ext4", "shards", "1.tar");
	name_of(t, &e);
	span = span_of(thread(t), from, k.now_ns - 10);
	assert_int_equal(span.nfiles, 2);
	assert_string_equal(span.files[0].fs, "nfs4");
	assert_int_equal(span.files[0].ns, 1000);
	assert_string_equal(span.files[1].fs, "ext4");
	assert_int_equal(HASH_COUNT(s.files), 2);
	sched_span__add(&span, &span);
	assert_int_equal(span.nfiles, 2);
	assert_int_equal(span.files[1].ns, 2 * 510);
}

/* A thread that is held longer than all the rest. */
static void test_held(void **state)
{
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e = woken(t, SYS_read, "nfs4", "dir", "name");
	struct sched_thread *of = sched_thread__get(thread(t));

	(void)state;
	sched__woken(&s, &e);
	sched__free(&s);
	sched_thread__put(&s, of);
}

/* A capture is anybody's: nothing in it need end. */
static void test_names_without_end(void **state)
{
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e = woken(t, SYS_read, "", "", "");
	const char *name;

	(void)state;
	memset(e.fs, 'f', sizeof(e.fs));
	memset(e.dir, 'd', sizeof(e.dir));
	memset(e.name, 'n', sizeof(e.name));
	memset(e.by_comm, 'c', sizeof(e.by_comm));
	name = name_of(t, &e);
	assert_int_equal(strlen(name), SCHED_FILE_LEN - 1);
	assert_int_equal(strspn(name, "d"), SCOPE_FILE_LEN);
	assert_int_equal(name[SCOPE_FILE_LEN], '/');
	assert_int_equal(strlen(s.files->id.fs), sizeof(s.files->id.fs) - 1);
}

/* ---- Whose sleep it was ---------------------------------------------------------------------------- */

static void test_wakers(void **state)
{
	struct k_task *t = sleeper(FUTEX), *x = hog(0, "loader"), *y = hog(1, "server");
	struct sched_span span;

	(void)state;
	k_waking(&k, t, x, 0);
	again(t, SYS_read);
	k_waking(&k, t, y, 3);
	at(k.now_ns + 500); /* from there on it is about to be runnable */
	again(t, SYS_read);
	k_waking(&k, t, NULL, 3);
	again(t, FUTEX);
	span = span_of(thread(t), 0, k.now_ns);
	assert_int_equal(span.nwoken_by, 2);
	assert_string_equal(span.woken_by[0].comm, "server");
	assert_int_equal(span.woken_by[0].ns, 1500);
	assert_string_equal(span.woken_by[1].comm, "loader");
	assert_int_equal(span.woken_by[1].tgid, x->tgid);
	assert_int_equal(span.woken_by[1].ns, 1000);
	assert_int_equal(span.nfiles, 1);
	assert_string_equal(span.files[0].name, "data/3");
	assert_int_equal(span.files[0].ns, 2500);
}

/* What belongs to no sleep that is known: of a thread that runs, of another time, of nobody; and what comes twice. */
static void test_of_no_sleep(void **state)
{
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e = woken(t, SYS_read, "ext4", "dir", "name");
	const struct sched_slice *last = sched_thread__last(thread(t));

	(void)state;
	e.since_ns++;
	sched__woken(&s, &e);
	e.since_ns -= 2;
	sched__woken(&s, &e);
	e.since_ns++;
	e.tid++;
	sched__woken(&s, &e);
	e.tid--;
	e.h.ts_ns = e.since_ns - 1;
	sched__woken(&s, &e);
	assert_null(sleeps__of(thread(t), last));
	e.h.ts_ns = k.now_ns;
	sched__woken(&s, &e);
	sched__woken(&s, &e);
	assert_non_null(sleeps__of(thread(t), last));
	assert_int_equal(thread(t)->sleeps.end, 1);
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t);
	e.since_ns = sched_thread__last(thread(t))->start_ns;
	e.h.ts_ns = ++k.now_ns;
	sched__woken(&s, &e);
	assert_int_equal(thread(t)->sleeps.end, 1);
}

/* Told while it lasts, its file is known before anybody has ended it, and who does that later. */
static void test_asleep(void **state)
{
	struct k_task *t = sleeper(SYS_read), *x = hog(0, "loader"), *y = hog(1, "other");
	struct scope_ev_woken e = woken(t, SYS_read, "nfs4", "dir", "name");
	struct sched_span span;

	(void)state;
	e.asleep = 1;
	e.by_tgid = x->tgid; /* nobody's, whatever it says */
	sched__woken(&s, &e);
	span = span_of(thread(t), 200, k.now_ns);
	assert_int_equal(span.nwoken_by, 0);
	assert_string_equal(span.files[0].name, "dir/name");
	assert_int_equal(span.files[0].ns, 1000);
	at(k.now_ns + 500);
	e.h.ts_ns = k.now_ns;
	sched__woken(&s, &e); /* again */
	e = woken(t, SYS_read, "ext4", "another", "one");
	e.by_tgid = x->tgid;
	memcpy(e.by_comm, x->comm, sizeof(e.by_comm));
	sched__woken(&s, &e);
	e.by_tgid = y->tgid;
	sched__woken(&s, &e);
	again(t, FUTEX);
	span = span_of(thread(t), 200, k.now_ns);
	assert_int_equal(span.nwoken_by, 1);
	assert_string_equal(span.woken_by[0].comm, "loader");
	assert_int_equal(span.woken_by[0].ns, 1500);
	assert_int_equal(span.nfiles, 1);
	assert_string_equal(span.files[0].name, "dir/name");
	assert_int_equal(span.files[0].ns, 1500);
}

/* Where in the kernel: of that sleep, once, and for as long as that is remembered. */
static void test_stack(void **state)
{
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e = woken(t, SYS_read, "", "", "");
	struct scope_ev_stack in = {.h = {SCOPE_ABI, SCOPE_EV_STACK, sizeof(in), k.now_ns},
				    .since_ns = e.since_ns,
				    .tid = t->tid,
				    .n = 2,
				    .at = {0x1000, 0x2000}};
	const struct sched_slice *slice;
	uint64_t room;

	(void)state;
	sched__stack(&s, &in); /* nothing is known of its sleep */
	slice = sched_thread__last(thread(t));
	assert_null(sleeps__of(thread(t), slice));
	e.asleep = 1;
	sched__woken(&s, &e);
	room = s.room;
	in.since_ns--;
	sched__stack(&s, &in); /* another one */
	in.since_ns++;
	in.n = 0;
	sched__stack(&s, &in);
	assert_null(sleeps__of(thread(t), slice)->stack);
	s.room_max = s.room + 8;
	in.n = UINT32_MAX; /* of a capture */
	sched__stack(&s, &in);
	assert_null(sleeps__of(thread(t), slice)->stack);
	s.room_max = 0;
	sched__stack(&s, &in);
	in.n = 1;
	sched__stack(&s, &in);
	slice = sched_thread__last(thread(t));
	assert_int_equal(sleeps__of(thread(t), slice)->stack->n, SCOPE_STACK_LEN);
	assert_int_equal(sleeps__of(thread(t), slice)->stack->at[1], 0x2000);
	assert_int_equal(s.room, room + sizeof(struct sched_stack) + sizeof(in.at));
	again(t, FUTEX);
	again(t, FUTEX);
	sched_thread__prune(&s, thread(t), k.now_ns, false);
	assert_int_equal(s.room, room);
	in.tid = 1;
	sched__stack(&s, &in); /* of a thread that is not known */
}

/* The sleep lasted until then, even if all that follows is lost. */
static void test_seen_until_woken(void **state)
{
	struct k_task *t = sleeper(SYS_read), *x = hog(0, "loader");
	struct sched_span span;

	(void)state;
	k_waking(&k, t, x, 1);
	drop = 1;
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t); /* lost */
	at(k.now_ns + 300);
	k_blocks(&k, 0, FUTEX, NULL);
	span = span_of(thread(t), 200, k.now_ns);
	assert_adds_up(&span);
	assert_int_equal(span.sums.blocked_ns, 1000);
	assert_int_equal(span.unknown_ns, 300);
	assert_int_equal(span.woken_by[0].ns, 1000);
}

/* ---- What is kept ---------------------------------------------------------------------------------- */

/* Whoever is asked for overlapping spans is told of what is still known. */
static void test_the_oldest_go(void **state)
{
	enum { N = SCHED_SLEEPS_MAX + 100 };
	struct k_task *t = sleeper(SYS_read), *x = hog(0, "loader");
	struct sched_mark first, some, to;
	struct sched_span span;
	uint32_t i;

	(void)state;
	first = mark(thread(t), k.now_ns);
	for (i = 0; i < N; i++) {
		k_waking(&k, t, x, 1 + i % 7);
		again(t, SYS_read);
		if (i == N / 2)
			some = mark(thread(t), k.now_ns);
		if (i == N - 200) { /* what was added up for this is not to be taken away later */
			to = mark(thread(t), k.now_ns);
			span = between(thread(t), &first, &to);
			assert_int_equal(span.nwoken_by, 1);
		}
	}
	to = mark(thread(t), k.now_ns);
	assert_int_equal(thread(t)->sleeps.end - thread(t)->sleeps.first, SCHED_SLEEPS_MAX);
	span = between(thread(t), &first, &to);
	assert_adds_up(&span);
	/* the last one is not over */
	assert_int_equal(span.woken_by[0].ns, SCHED_SLEEPS_MAX * 1000ull);
	assert_true(span.blocked_in[0].ns > span.woken_by[0].ns);
	span = between(thread(t), &some, &to);
	assert_int_equal(span.woken_by[0].ns, (N - 2 - N / 2) * 1000ull);
	assert_int_equal(HASH_COUNT(s.files), 7);
	sched_thread__prune(&s, thread(t), k.now_ns, false);
	assert_null(s.files);
	assert_int_equal(thread(t)->sleeps.first, thread(t)->sleeps.end);
}

/* Files are none of what makes a job more than its share of memory. */
static void test_no_room(void **state)
{
	struct k_task *t = sleeper(SYS_read);
	struct scope_ev_woken e = woken(t, SYS_read, "ext4", "dir", "first");

	(void)state;
	assert_string_equal(name_of(t, &e), "dir/first");
	s.room_max = s.room;
	e = woken(t, SYS_read, "ext4", "dir", "second");
	assert_string_equal(name_of(t, &e), "");
	e = woken(t, SYS_read, "ext4", "dir", "first"); /* it is there */
	assert_string_equal(name_of(t, &e), "dir/first");
	s.room_max = 0;
}

static struct sched_span span_with(const char *a, uint64_t a_ns, const char *b, uint64_t b_ns)
{
	struct sched_span span = {.threads = 1, .nfiles = 2};

	strcpy(span.files[0].name, a);
	span.files[0].ns = a_ns;
	strcpy(span.files[1].name, b);
	span.files[1].ns = b_ns;
	return span;
}

/* Of several threads: files by their names, the most first. */
static void test_sums(void **state)
{
	struct sched_span all = span_with("a", 30, "b", 20), one = span_with("b", 15, "c", 10);

	(void)state;
	sched_span__add(&all, &one);
	assert_int_equal(all.nfiles, 3);
	assert_string_equal(all.files[0].name, "b");
	assert_int_equal(all.files[0].ns, 35);
	assert_string_equal(all.files[1].name, "a");
	one = span_with("d", 40, "e", 30);
	sched_span__add(&all, &one);
	assert_int_equal(all.nfiles, SCHED_TOP);
	assert_string_equal(all.files[0].name, "d");
	assert_string_equal(all.files[3].name, "e"); /* as long as a: by name; and c is beyond */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sockets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_why, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frozen_within, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frozen_in_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filesystems, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_without_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wakers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_no_sleep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asleep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seen_until_woken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_oldest_go, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests_name("sched_sleeps", tests, NULL, NULL);
}
