// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/status/status_file.c, loader/status/status_show.c and loader/status/status_self.c: recorders that live and that were killed, files
 * and names that were made to do harm, tables that stay tables, and a recorder whose traces do not get on.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "log.h"
#include "pid_stat.h"
#include "recorder.h"
#include "status_file.h"
#include "status_show.h"

#define NOW_US	1000000000ull
#define NO_PID	0x7ffffffe /* beyond the kernel's pid_max */
#define ALL	0xffffu
#define HOSTILE "\x1b[31m\a\n\r\t\x7f\xc2\x9b\xe2\x80\xae\xff"

static char dir[] = "/tmp/ncclscope-status-XXXXXX";
static int dirfd_;

static void put(const char *name, const char *text, size_t len)
{
	int fd = openat(dirfd_, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !fstatat(dirfd_, name, &st, AT_SYMLINK_NOFOLLOW);
}

static void clear(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "find %s -mindepth 1 -delete", dir);
	assert_int_equal(system(cmd), 0);
}

static uint64_t start_of(pid_t pid)
{
	struct pid_stat p;

	assert_int_equal(pid_stat__read(pid, &p), 0);
	assert_true(p.start > 0);
	return p.start;
}

static json_t *recorder(pid_t pid, uint64_t start)
{
	json_t *o = json_pack("{s:i,s:I,s:I}", "pid", (int)pid, "startTime", (json_int_t)start,
			      "updatedUs", (json_int_t)NOW_US);

	assert_non_null(o);
	return o;
}

static enum status_state state_of(json_t *doc, uint64_t now_us)
{
	enum status_state state = status_file__state(doc, now_us);

	json_decref(doc);
	return state;
}

/* What a recorder of that pid would write, into the directory. */
static void put_recorder(pid_t pid, uint64_t start)
{
	json_t *doc = recorder(pid, start);
	char *text = json_dumps(doc, 0), name[64];

	snprintf(name, sizeof(name), "recorder-%d.json", pid);
	put(name, text, strlen(text));
	free(text);
	json_decref(doc);
}

/* ---- Alive, or not ----------------------------------------------------------------------------- */

static void test_state(void **state)
{
	uint64_t self = start_of(getpid());
	pid_t child;

	(void)state;
	assert_int_equal(state_of(recorder(getpid(), self), NOW_US), STATUS_RUNNING);
	assert_int_equal(state_of(recorder(getpid(), self), NOW_US + 4000000), STATUS_RUNNING);
	assert_int_equal(state_of(recorder(getpid(), self), NOW_US + 6000000), STATUS_SILENT);
	/* a time namespace that is ahead by parts of a tick rounds otherwise */
	assert_int_equal(state_of(recorder(getpid(), self + 1), NOW_US), STATUS_RUNNING);
	assert_int_equal(state_of(recorder(getpid(), self - 1), NOW_US), STATUS_RUNNING);
	/* another process has its number by now */
	assert_int_equal(state_of(recorder(getpid(), self + 2), NOW_US), STATUS_DEAD);
	assert_int_equal(state_of(recorder(getpid(), self - 2), NOW_US), STATUS_DEAD);
	assert_int_equal(state_of(recorder(NO_PID, self), NOW_US), STATUS_DEAD);
	child = fork();
	if (!child)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(state_of(recorder(child, start_of(child)), NOW_US), STATUS_DEAD);
	waitpid(child, NULL, 0);
}

/* Between its windows: as long as it says so. */
static void test_state_waiting(void **state)
{
	uint64_t self = start_of(getpid());
	json_t *doc = recorder(getpid(), self), *killed = recorder(NO_PID, self);

	(void)state;
	json_object_set_new(doc, "waitsUntilUs", json_integer(NOW_US + 600000000));
	json_object_set_new(killed, "waitsUntilUs", json_integer(NOW_US + 600000000));
	assert_int_equal(state_of(json_deep_copy(doc), NOW_US + 4000000), STATUS_WAITING);
	assert_int_equal(state_of(doc, NOW_US + 6000000), STATUS_SILENT);
	assert_int_equal(state_of(killed, NOW_US), STATUS_DEAD);
}

static void test_state_of_nonsense(void **state)
{
	static const char *const docs[] = {
		"{}",
		"[]",
		"{\"pid\":0,\"startTime\":1,\"updatedUs\":1}",
		"{\"pid\":-1,\"startTime\":1,\"updatedUs\":1}",
		"{\"pid\":4294967297,\"startTime\":1,\"updatedUs\":1}",
		"{\"pid\":\"1\",\"startTime\":1,\"updatedUs\":1}",
		"{\"pid\":1e3,\"startTime\":1,\"updatedUs\":1}",
	};
	json_t *mine = recorder(getpid(), start_of(getpid()));
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(docs) / sizeof(*docs); i++)
		assert_int_equal(state_of(json_loads(docs[i], 0, NULL), NOW_US), STATUS_DEAD);
	json_object_set_new(mine, "updatedUs", json_integer(-1));
	assert_int_equal(state_of(mine, NOW_US), STATUS_SILENT);
}

/* ---- Files ------------------------------------------------------------------------------------- */

static void test_dir(void **state)
{
	char path[128], link[128];
	mode_t was = umask(077);
	struct stat st;
	int fd;

	(void)state;
	clear();
	snprintf(path, sizeof(path), "%s/made", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	fd = status_dir__make(path);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	close(fd);
	fd = status_dir__make(path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink(path, link), 0);
	fd = status_dir__make(link);
	assert_true(fd == -ELOOP || fd == -ENOTDIR);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(status_dir__make(path), -EPERM);
	if (!geteuid()) {
		assert_int_equal(chmod(path, 0755), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(status_dir__make(path), -EPERM);
	}
	umask(was);
}

static void test_write(void **state)
{
	mode_t was = umask(077);
	char text[8] = "";
	struct stat st;
	int fd;

	(void)state;
	clear();
	put("victim", "intact", 6);
	/* what somebody might have put in the way */
	assert_int_equal(symlinkat("victim", dirfd_, "recorder-7.tmp"), 0);
	assert_int_equal(symlinkat("victim", dirfd_, "recorder-7.json"), 0);
	assert_int_equal(status_file__write(dirfd_, 7, "{}", 2), 0);
	umask(was);
	assert_false(is_there("recorder-7.tmp"));
	assert_int_equal(fstatat(dirfd_, "recorder-7.json", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_size, 2);
	fd = openat(dirfd_, "victim", O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), 6);
	assert_string_equal(text, "intact");
	close(fd);
	status_file__remove(dirfd_, 7);
	assert_false(is_there("recorder-7.json"));
	status_file__remove(dirfd_, 7);
}

/* How many recorders are read, and what is said meanwhile. */
static size_t count_read(char *said, size_t size)
{
	char path[] = "/tmp/ncclscope-said-XXXXXX";
	int fd = mkstemp(path), was = dup(2);
	json_t *all;
	ssize_t n;
	size_t got;

	assert_true(fd >= 0 && was >= 0);
	fflush(stderr);
	dup2(fd, 2);
	all = status_dir__read(dir, NOW_US);
	fflush(stderr);
	dup2(was, 2);
	n = pread(fd, said, size - 1, 0);
	said[n > 0 ? n : 0] = 0;
	got = json_array_size(all);
	json_decref(all);
	close(fd);
	close(was);
	unlink(path);
	return got;
}

static void test_read(void **state)
{
	json_t *all, *first;

	(void)state;
	clear();
	put_recorder(getpid(), start_of(getpid()));
	put_recorder(NO_PID, 1);
	put_recorder(1, start_of(1) + 2);
	all = status_dir__read(dir, NOW_US + 3);
	assert_int_equal(json_array_size(all), 3);
	first = json_array_get(all, 0); /* in the order of their pids */
	assert_int_equal(json_integer_value(json_object_get(first, "pid")), 1);
	assert_string_equal(json_string_value(json_object_get(first, "state")), "dead");
	assert_int_equal(json_integer_value(json_object_get(first, "ageUs")), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(all, 1), "state")),
			    "running");
	assert_string_equal(json_string_value(json_object_get(json_array_get(all, 2), "state")),
			    "dead");
	json_decref(all);
	all = status_dir__read("/nonexistent/ncclscope", NOW_US);
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
}

/* Each alone beside a good one, which must still be read; skipped with the word, or (NULL) not a recorder's name. */
static const struct {
	const char *name, *text, *word;
} bad_files[] = {
	{"recorder-21.json", "", "no recorder's status"},
	{"recorder-21.json", "garbage", "no recorder's status"},
	{"recorder-21.json", "{\"pid\":21,\"startTime\":1,\"updated", "no recorder's status"},
	{"recorder-21.json", "[1,2]", "no recorder's status"},
	{"recorder-21.json", "21", "no recorder's status"},
	{"recorder-21.json", "{\"pid\":22,\"startTime\":1,\"updatedUs\":1}",
	 "no recorder's status"},
	{"recorder-21.json", "{\"pid\":21,\"startTime\":\"1\",\"updatedUs\":1}", "no recorder's"},
	{"recorder-21.json", "{\"pid\":21,\"startTime\":1}", "no recorder's status"},
	{"recorder-21.json", "{\"pid\":21,\"pid\":21,\"startTime\":1,\"updatedUs\":1}",
	 "no recorder's"},
	{"recorder-21.json", "{\"pid\":21,\"startTime\":1,\"updatedUs\":1} x", "no recorder's"},
	{"recorder-021.json", "{\"pid\":21,\"startTime\":1,\"updatedUs\":1}", NULL},
	{"recorder-.json", "x", NULL},
	{"recorder--1.json", "x", NULL},
	{"recorder-21.json\n", "x", NULL},
	{"recorder-\x1b[31m.json", "x", NULL},
	{"recorder-99999999999999999999999999.json", "x", NULL},
	{"recorder-21.tmp", "x", NULL},
	{"notes.txt", "x", NULL},
};

static void test_read_bad(void **state)
{
	char said[4096];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad_files) / sizeof(*bad_files); i++) {
		clear();
		put_recorder(getpid(), 1);
		put(bad_files[i].name, bad_files[i].text, strlen(bad_files[i].text));
		assert_int_equal(count_read(said, sizeof(said)), 1);
		if (bad_files[i].word)
			assert_non_null(strstr(said, bad_files[i].word));
		else
			assert_string_equal(said, "");
	}
}

/* What is no file, too large, or not ours; none of it holds the reader up. */
static void test_read_no_file(void **state)
{
	static const char *const words[] = {"a symbolic link", "no regular file", "no regular file",
					    "File too large", "somebody else's file"};
	char said[4096];
	int i, fd;

	(void)state;
	for (i = 0; i < (geteuid() ? 4 : 5); i++) {
		clear();
		put_recorder(getpid(), 1);
		put("real", "{\"pid\":21,\"startTime\":1,\"updatedUs\":1}", 39);
		if (i == 0)
			assert_int_equal(symlinkat("real", dirfd_, "recorder-21.json"), 0);
		else if (i == 1)
			assert_int_equal(mkfifoat(dirfd_, "recorder-21.json", 0644), 0);
		else if (i == 2)
			assert_int_equal(mkdirat(dirfd_, "recorder-21.json", 0755), 0);
		else
			assert_int_equal(renameat(dirfd_, "real", dirfd_, "recorder-21.json"), 0);
		if (i == 3) {
			fd = openat(dirfd_, "recorder-21.json", O_WRONLY);
			assert_int_equal(ftruncate(fd, 1 << 28), 0);
			close(fd);
		} else if (i == 4) {
			assert_int_equal(fchownat(dirfd_, "recorder-21.json", 65534, 65534, 0), 0);
		}
		assert_int_equal(count_read(said, sizeof(said)), 1);
		assert_non_null(strstr(said, words[i]));
	}
}

static void test_expire(void **state)
{
	json_t *all;

	(void)state;
	clear();
	put_recorder(getpid(), start_of(getpid()));
	put_recorder(NO_PID, 1);
	put_recorder(1, start_of(1) + 2);
	put("recorder-2147483645.tmp", "{", 1);
	put("recorder-2147483645.json", "garbage", 7);
	put("notes.txt", "x", 1);
	assert_int_equal(symlinkat("notes.txt", dirfd_, "recorder-2147483644.json"), 0);
	status_dir__expire(dirfd_);
	assert_false(is_there("recorder-2147483646.json"));
	assert_false(is_there("recorder-2147483645.tmp"));
	assert_false(is_there("recorder-2147483645.json"));
	assert_false(is_there("recorder-2147483644.json"));
	assert_false(is_there("recorder-1.json"));
	assert_true(is_there("notes.txt"));
	all = status_dir__read(dir, NOW_US);
	assert_int_equal(json_array_size(all), 1);
	json_decref(all);
}

/* ---- Words ------------------------------------------------------------------------------------- */

static void assert_mask(uint32_t mask, uint32_t all, size_t width, const char *want)
{
	char buf[128];

	memset(buf, 'x', sizeof(buf));
	status_mask_text(buf, width, mask, all);
	assert_string_equal(buf, want);
	assert_true(strlen(buf) <= width);
}

static void test_masks(void **state)
{
	uint32_t mask;
	char buf[32];

	(void)state;
	assert_mask(0, ALL, 20, "none");
	assert_mask(ALL, ALL, 20, "all");
	assert_mask(0xfff, 0xfff, 20, "all");
	assert_mask(0xfbf, 0xfff, 20, "all but kernelch");
	assert_mask(0xf7ff, ALL, 20, "all but kernellaunch");
	assert_mask(0x3fff, ALL, 20, "group,coll,p2p,+11");
	assert_mask(0x2, ALL, 20, "coll");
	assert_mask(0x2, 0x2, 20, "all");
	assert_mask(0x2, 0, 20, "coll");
	assert_mask(0x12, ALL, 20, "coll,proxystep");
	assert_mask(0x1e, ALL, 20, "coll,p2p,proxyop,+1");
	assert_mask(0x1e, ALL, 26, "coll,p2p,proxyop,proxystep");
	assert_mask(0xffff0002, ALL, 20, "coll");
	for (mask = 0; mask <= ALL; mask++) {
		memset(buf, 0x55, sizeof(buf));
		status_mask_text(buf, 20, mask, mask & 1 ? ALL : 0xfff);
		assert_true(strnlen(buf, sizeof(buf)) <= 20);
		assert_int_equal(buf[21], 0x55);
	}
}

static void test_text(void **state)
{
	static const char bad[] = "a\xff\xc3(b\xed\xa0\x80";
	json_t *v = status_text(bad, strlen(bad));

	(void)state;
	assert_string_equal(json_string_value(v), "a\xef\xbf\xbd\xef\xbf\xbd(b\xef\xbf\xbd"
						  "\xef\xbf\xbd\xef\xbf\xbd");
	json_decref(v);
	v = status_text("\xc3\xa9\n", 3);
	assert_string_equal(json_string_value(v), "\xc3\xa9\n");
	json_decref(v);
}

/* ---- Tables ------------------------------------------------------------------------------------ */

/* As much of everything as there is; `text` in every place that is a job's or a path's. */
static json_t *whole(const char *text)
{
	json_t *t = status_text(text, strlen(text));
	const char *key = json_string_value(t);
	json_t *doc = json_pack(
		"{s:[{s:i,s:s,s:I,s:I,s:{s:I,s:O},s:[O,O],s:{s:I,s:I},s:{s:I,s:I},s:{s:I,s:I},"
		"s:{s:I,s:I},s:[{s:i,s:O,s:I,s:I,s:I,s:O,s:{s:I,s:I}}]}],"
		"s:[{s:i,s:O,s:i,s:I,s:[{s:I}],s:[{s:s,s:I,s:i},{s:s,s:I}],s:i,"
		"s:[{s:O,s:i,s:i,s:O}]}],s:i}",
		"recorders", "pid", 4194304, "state", "running", "startedUs", (json_int_t)1,
		"updatedUs", (json_int_t)NOW_US, "options", "mask", (json_int_t)0xf7ff, "output", t,
		"outputs", t, t, "ring", "bytes", (json_int_t)1 << 31, "used", (json_int_t)1 << 31,
		"self", "cpuUs", (json_int_t)NOW_US * 64, "memory", (json_int_t)1 << 62, "counts",
		"records", (json_int_t)1 << 62, "events", (json_int_t)1 << 62, "lost", "ring-full",
		(json_int_t)1 << 62, key, (json_int_t)1 << 61, "processes", "hostPid", 4194304,
		"comm", t, "records", (json_int_t)1 << 62, "events", (json_int_t)1 << 62,
		"lastRecordUs", (json_int_t)1, "trace", t, "lost", "ring-full", (json_int_t)1 << 62,
		key, (json_int_t)1 << 61, "processes", "hostPid", 4194304, "comm", t, "epoch", 1,
		"ceiling", (json_int_t)0xfff, "masks", "mask", (json_int_t)0xf0f0f, "wants", "by",
		"recorder", "mask", (json_int_t)0x7fff, "pid", 4194304, "by", "arm", "mask",
		(json_int_t)0xfffff, "communicators", 4096, "comms", "commHash", t, "rank",
		INT32_MAX, "nranks", INT32_MAX, "commName", t, "hidden", 0);

	json_decref(t);
	return doc;
}

static char *table(const json_t *doc)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	status_show__table(doc, 90000 * NOW_US, true, f);
	fclose(f);
	return text;
}

static time_t clock_s(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec;
}

/* Lines of at most 100 printable ASCII characters, no blank at their ends. */
static int assert_table(const char *text)
{
	const char *p;
	int lines = 0, width = 0;

	for (p = text; *p; p++) {
		if (*p == '\n') {
			assert_true(width == 0 || p[-1] != ' ');
			width = 0;
			lines++;
			continue;
		}
		assert_true(*p >= 0x20 && *p < 0x7f);
		assert_true(++width <= STATUS_WIDTH);
	}
	assert_int_equal(width, 0);
	return lines;
}

static void test_table(void **state)
{
	json_t *doc = whole("name");
	char *text = table(doc);

	(void)state;
	assert_int_equal(assert_table(text), 14);
	assert_non_null(strstr(text, "\n 4194304  running  "));
	assert_non_null(strstr(text, "all but kernellaunch  name +1\n"));
	assert_non_null(strstr(text, "4194304   all but kernelphase\n"));
	assert_non_null(strstr(text, "arm       all\n"));
	assert_non_null(strstr(text, "communicator name, rank 2147483647 of 2147483647: name\n"));
	assert_non_null(strstr(text, "and 4095 more\n"));
	free(text);
	json_decref(doc);
	doc = json_pack("{s:[],s:[],s:i}", "recorders", "processes", "hidden", 3);
	text = table(doc);
	assert_string_equal(text, "");
	free(text);
	json_decref(doc);
}

/* Until when one waits stands below it, by the real clock; it has counted nothing that could be told. */
static void test_table_waiting(void **state)
{
	static const int64_t untils[] = {90060 * (int64_t)NOW_US, INT64_MAX, -1};
	char *text, want[64];
	time_t until;
	json_t *doc;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(untils) / sizeof(*untils); i++) {
		doc = json_pack("{s:[{s:i,s:s,s:I,s:I,s:I,s:{s:I,s:s}}]}", "recorders", "pid", 4711,
				"state", "waiting", "startedUs", (json_int_t)(89997 * NOW_US),
				"updatedUs", (json_int_t)(90000 * NOW_US), "waitsUntilUs",
				(json_int_t)untils[i], "options", "mask", (json_int_t)2, "output",
				"name");
		text = table(doc);
		assert_int_equal(assert_table(text), 3);
		assert_non_null(
			strstr(text, "\n    4711  waiting  50m00s       -      -     -  coll"));
		assert_null(strstr(text, "RECORDS"));
		assert_non_null(
			strstr(text, "\n                    its next recording begins at "));
		if (!i) { /* the table is of another now than the clock's */
			until = clock_s(CLOCK_REALTIME) - clock_s(CLOCK_MONOTONIC) +
				(time_t)(untils[i] / 1000000);
			strftime(want, sizeof(want), "%Y-%m-%d", localtime(&until));
			assert_non_null(strstr(text, want));
		}
		free(text);
		json_decref(doc);
	}
}

/* Where traces are behind, the state is that of then: what came last came not long before. */
static void test_last_as_of(void **state)
{
	json_t *doc =
		json_pack("{s:[{s:i,s:s,s:I,s:[{s:i,s:I,s:s}]}]}", "recorders", "pid", 1, "state",
			  "running", "asOfUs", (json_int_t)7 * 1000000, "processes", "hostPid",
			  4711, "lastRecordUs", (json_int_t)5 * 1000000, "trace", "name");
	char *text = table(doc);

	(void)state;
	assert_non_null(strstr(text, " 2.0s  name\n"));
	free(text);
	json_object_del(json_array_get(json_object_get(doc, "recorders"), 0), "asOfUs");
	text = table(doc);
	assert_null(strstr(text, " 2.0s  name\n"));
	free(text);
	json_decref(doc);
}

static void test_table_hostile(void **state)
{
	char longest[9000];
	const char *const texts[] = {HOSTILE, "", " ", "%s%n%s", "\\x1b", longest};
	json_t *doc;
	char *text;
	size_t i;

	(void)state;
	memset(longest, '\x1b', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		doc = whole(texts[i]);
		assert_non_null(doc);
		text = table(doc);
		assert_int_equal(assert_table(text), 14);
		if (i == 0)
			assert_non_null(strstr(text, "\\x1b[31m\\x07\\x0a"));
		free(text);
		json_decref(doc);
	}
}

/* Every value of the document, one after the other, in place of each other kind of value. */
static void mutate(json_t *root, json_t *at)
{
	json_t *const others[] = {
		json_null(),	      json_true(),  json_integer(-1), json_real(1e300),
		json_string(HOSTILE), json_array(), json_object(),    json_integer(INT64_MAX)};
	size_t n = json_is_array(at) ? json_array_size(at) : json_object_size(at), i, k;
	void *iter = json_is_object(at) ? json_object_iter(at) : NULL;
	json_t *was;
	char *text;

	for (i = 0; i < n; i++) {
		was = json_incref(iter ? json_object_iter_value(iter) : json_array_get(at, i));
		if (json_is_array(was) || json_is_object(was))
			mutate(root, was);
		for (k = 0; k < sizeof(others) / sizeof(*others); k++) {
			if (iter)
				json_object_iter_set(at, iter, others[k]);
			else
				json_array_set(at, i, others[k]);
			text = table(root);
			assert_table(text);
			free(text);
		}
		if (iter)
			json_object_iter_set_new(at, iter, was);
		else
			json_array_set_new(at, i, was);
		if (iter)
			iter = json_object_iter_next(at, iter);
	}
	for (k = 0; k < sizeof(others) / sizeof(*others); k++)
		json_decref(others[k]);
}

static void test_table_wrong_types(void **state)
{
	json_t *doc = whole("name");

	(void)state;
	mutate(doc, doc);
	json_decref(doc);
}

static void test_json(void **state)
{
	json_t *doc = whole(HOSTILE), *again;
	char *text = NULL, *p;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(status_show__json(doc, f), 0);
	fclose(f);
	for (p = text; *p; p++)
		assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
	assert_non_null(strstr(text, "\\u007f"));
	again = json_loads(text, 0, NULL);
	assert_true(json_equal(doc, again));
	json_decref(again);
	json_decref(doc);
	free(text);
	f = fopen("/dev/full", "w");
	doc = whole("x");
	setbuf(f, NULL);
	assert_int_equal(status_show__json(doc, f), -EIO);
	fclose(f);
	json_decref(doc);
}

/* ---- A recorder ------------------------------------------------------------------------------------ */

/* BPF's, which is not there. */
struct ring_pos __wrap_attach__ring(const struct attach *a);
uint64_t __wrap_attach__stat(const struct attach *a, uint32_t stat);

struct ring_pos __wrap_attach__ring(const struct attach *a)
{
	(void)a;
	return (struct ring_pos){.produced = 4096};
}

uint64_t __wrap_attach__stat(const struct attach *a, uint32_t stat)
{
	(void)a;
	(void)stat;
	return 0;
}

static json_int_t number_in(const json_t *doc, const char *in, const char *key)
{
	return json_integer_value(json_object_get(json_object_get(doc, in), key));
}

/* Who makes the traces stands still, be it before it was ever asked: what waits for it, and that there is a recorder, is told. */
static void test_waits_from_the_first(void **state)
{
	static struct recorder r;
	const uint64_t first = 5000000000ull;
	int asked;
	json_t *all;

	(void)state;
	setenv("NCCLSCOPE_STATUS_DIR", dir, 1);
	for (asked = 0; asked < 2; asked++) {
		clear();
		r = (struct recorder){0};
		r.s.digest = digest__new(&r.s, 0, NULL, NULL);
		assert_non_null(r.s.digest);
		/* as it is set up, there is nothing yet that could be told */
		status_self__waits(&r.status, &r, first);
		r.attach = (struct attach *)&r;
		r.s.ring_bytes = 8192;
		if (asked)
			status_self__tick(&r.status, &r, first);
		all = status_dir__read(dir, NOW_US);
		assert_int_equal(json_array_size(all), 0);
		json_decref(all);
		digest__put(r.s.digest, INPUT_TICK, "1234567", 8);
		status_self__waits(&r.status, &r, first + 1);
		all = status_dir__read(dir, NOW_US);
		assert_int_equal(json_array_size(all), 1);
		assert_int_equal(number_in(json_array_get(all, 0), "ring", "used"), 4096);
		assert_true(number_in(json_array_get(all, 0), "backlog", "bytes") > 0);
		json_decref(all);
		status_self__close(&r.status);
		digest__free(r.s.digest);
	}
	unsetenv("NCCLSCOPE_STATUS_DIR");
}

static int setup(void **state)
{
	(void)state;
	alarm(60); /* a reader that is held up */
	assert_non_null(mkdtemp(dir));
	dirfd_ = open(dir, O_RDONLY | O_DIRECTORY);
	return dirfd_ < 0;
}

static int teardown(void **state)
{
	(void)state;
	clear();
	close(dirfd_);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),	      cmocka_unit_test(test_state_of_nonsense),
		cmocka_unit_test(test_state_waiting), cmocka_unit_test(test_table_waiting),
		cmocka_unit_test(test_dir),	      cmocka_unit_test(test_write),
		cmocka_unit_test(test_read),	      cmocka_unit_test(test_read_bad),
		cmocka_unit_test(test_read_no_file),  cmocka_unit_test(test_expire),
		cmocka_unit_test(test_masks),	      cmocka_unit_test(test_text),
		cmocka_unit_test(test_table),	      cmocka_unit_test(test_last_as_of),
		cmocka_unit_test(test_table_hostile), cmocka_unit_test(test_table_wrong_types),
		cmocka_unit_test(test_json),	      cmocka_unit_test(test_waits_from_the_first),
	};

	return cmocka_run_group_tests_name("status", tests, setup, teardown);
}
