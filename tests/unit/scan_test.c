// SPDX-License-Identifier: BSD-2-Clause
/* loader/find/scan.c: when a process is looked into again. Looking and attaching are ours here, so that it may give no answer. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "attach.h"
#include "clock.h"
#include "log.h"
#include "notify.h"
#include "recorder.h"
#include "target.h"

/* What is answered of this process, and how often it was asked; others have no plugin. */
static struct {
	int find, want, attach;
	int asked, wants;
	uint64_t first_id;
	bool remapped; /* since it was found: another file is there */
	int bare;      /* no probe is on what it has mapped until so many more are attached to */
	int attached;  /* how often, */
	struct elf_file_id file; /* the last to which */
	int detached;		 /* how often */
	pid_t other;		 /* of this process the same is answered */
	pid_t left;		 /* this one has the plugin no more */
	const char *path;	 /* of the file; NULL: the program's */
	const char *other_path;	 /* and of the other one's; NULL: that */
	void (*polled)(void);	 /* what happens while the ring is read */
} plugin;

static const char *path_of(pid_t pid)
{
	if (pid == plugin.other && plugin.other_path)
		return plugin.other_path;
	return plugin.path ? plugin.path : "/proc/self/exe";
}

static struct elf_file_id file_at(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct elf_file_id id;

	assert_true(fd >= 0);
	assert_int_equal(elf__id(fd, &id), 0);
	close(fd);
	return id;
}

int target__find(struct target *t, pid_t pid)
{
	*t = (struct target){.pid = pid, .mem = -1};
	if ((pid != getpid() && pid != plugin.other) || pid == plugin.left)
		return -ENOENT;
	plugin.asked++;
	snprintf(t->path, sizeof(t->path), "%s",
		 plugin.remapped ? "/proc/self/maps" : path_of(pid));
	t->file = file_at(path_of(pid));
	t->first_id = plugin.first_id;
	return plugin.find;
}

int target__probed(struct target *t)
{
	(void)t;
	return plugin.bare ? -ENODATA : 0;
}

/* A plugin's file is one whose first byte is a P; one of another version has a Q. */
int target__check_file(int fd)
{
	char c = 0;

	if (pread(fd, &c, 1, 0) != 1)
		return -ENOEXEC;
	return c == 'P' ? 0 : c == 'Q' ? -EPROTO : -ENOENT;
}

void target__close(struct target *t)
{
	(void)t;
}

const char *target__error(int err)
{
	return strerror(-err);
}

int follow__want(struct recorder *r, struct target *t, pid_t pid, uint32_t mask)
{
	(void)r;
	(void)t;
	(void)pid;
	(void)mask;
	plugin.wants++;
	return plugin.want;
}

int attach__plugin(struct attach *a, const char *path, pid_t pid)
{
	(void)a;
	(void)pid;
	plugin.attached++;
	plugin.bare -= plugin.bare > 0;
	plugin.file = file_at(path);
	return plugin.attach;
}

static uint32_t warnings;

void __wrap_log_printf(enum log_level level, const char *fmt, ...);

void __wrap_log_printf(enum log_level level, const char *fmt, ...)
{
	(void)fmt;
	warnings += level == LOG_WARN;
}

void attach__plugin_off(struct attach *a, int link)
{
	(void)a;
	(void)link;
	plugin.detached++;
}

int attach__poll(struct attach *a, int timeout_ms)
{
	(void)a;
	(void)timeout_ms;
	if (plugin.polled)
		plugin.polled();
	return 0;
}

static uint32_t ticks, writes; /* of the watchdog, and of the status file */

void notify__tick(uint64_t now_ns)
{
	(void)now_ns;
	ticks++;
}

void status_self__waits(struct status_self *s, const struct recorder *r, uint64_t now)
{
	(void)s;
	(void)r;
	(void)now;
	writes++;
}

/* This process, as it is known there after another pass, for which it would be time; how often it was asked in that. */
static struct scan_proc *pass(struct recorder *r, int *asked)
{
	struct scan_proc *p;
	pid_t pid = getpid();

	HASH_FIND_INT(r->scan.procs, &pid, p);
	if (p)
		p->look_ns = 0;
	plugin.asked = 0;
	scan__all(r);
	*asked = plugin.asked;
	HASH_FIND_INT(r->scan.procs, &pid, p);
	assert_non_null(p);
	return p;
}

static void assert_pause(const struct scan_proc *p, uint64_t s)
{
	int64_t ns = (int64_t)(p->look_ns - monotonic_ns());

	assert_true(ns > (int64_t)(s - 2) * NSEC_PER_SEC && ns <= (int64_t)s * NSEC_PER_SEC);
}

/* It is asked again after a while, each time a longer one, until there is an answer: then no more, as nothing changes. */
static void fails_and_comes(int find, int want)
{
	static const uint64_t pauses[] = {30, 60, 120, 240, 480, 600, 600};
	static struct recorder r;
	struct scan_proc *p;
	uint32_t i;
	int asked;

	for (i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		plugin.find = find;
		plugin.want = want;
		p = pass(&r, &asked);
		assert_int_equal(asked, 1);
		assert_pause(p, pauses[i]);
		assert_int_equal(p->hangs, find == -ETIMEDOUT || want == -ETIMEDOUT);
		assert_int_equal(scan__users(&r.scan), find ? 0 : 1);
	}
	plugin.find = plugin.want = 0;
	p = pass(&r, &asked);
	assert_int_equal(asked, 1);
	assert_non_null(p->file);
	assert_int_equal(p->file->users, 1);
	assert_int_equal(scan__users(&r.scan), 1);
	assert_false(p->hangs);
	pass(&r, &asked);
	assert_int_equal(asked, 0);
	scan__free(&r.scan);
}

static void test_hangs(void **state)
{
	(void)state;
	fails_and_comes(-ETIMEDOUT, 0);
	fails_and_comes(0, -ETIMEDOUT);
}

static void test_busy(void **state)
{
	(void)state;
	fails_and_comes(-EBUSY, 0);
	fails_and_comes(0, -EBUSY);
	fails_and_comes(-EAGAIN, 0);
	fails_and_comes(-EPIPE, 0);
}

/* What it is, or that it has no communicator yet, is an answer. */
static void test_answers(void **state)
{
	static const int errs[] = {-ENOENT, -EPROTO, -EREMOTE, -EACCES};
	static struct recorder r;
	struct scan_proc *p;
	uint32_t i;
	int asked;

	(void)state;
	log_level = LOG_ERR;
	for (i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		plugin.find = errs[i];
		p = pass(&r, &asked);
		assert_int_equal(asked, 1);
		assert_true(p->look_ns < monotonic_ns() + NSEC_PER_SEC);
		pass(&r, &asked);
		assert_int_equal(asked, 0);
		scan__free(&r.scan);
	}
	plugin.find = 0;
	plugin.want = -EAGAIN;
	p = pass(&r, &asked);
	assert_non_null(p->file);
	pass(&r, &asked);
	assert_int_equal(asked, 0);
	scan__free(&r.scan);
}

/*
 * A process that was there before us is recorded from the id on that was its next one when we came; one that has become another
 * program since, whose ids begin anew, from its first on.
 */
static void test_first_id(void **state)
{
	struct target t = {.pid = getpid(), .first_id = 90000};
	static struct recorder r;
	struct scan_proc *p;
	int asked;

	(void)state;
	plugin.find = plugin.want = 0;
	plugin.first_id = 50000;
	p = pass(&r, &asked);
	assert_int_equal(p->first_id, 50000);
	assert_int_equal(scan__first_id(&r, &t), 50000);
	t.first_id = 0; /* there was no answer */
	assert_int_equal(scan__first_id(&r, &t), 50000);
	t.first_id = 8193;
	assert_int_equal(scan__first_id(&r, &t), 1);
	t.first_id = 12289;
	assert_int_equal(scan__first_id(&r, &t), 1);
	p->first_id = 50000;
	plugin.first_id = 4097;
	p->vsize = UINT64_MAX; /* more than it has now: another program */
	p = pass(&r, &asked);
	assert_int_equal(asked, 1);
	assert_int_equal(p->first_id, 1);
	scan__free(&r.scan);
	plugin.first_id = 0;
}

/* A file that cannot be attached to is tried again and again, as its process goes on; that is said once. */
static void test_says_once(void **state)
{
	static struct recorder r;
	struct scan_proc *p;
	uint32_t i, asked_all = 0;
	int asked;

	(void)state;
	plugin.find = plugin.want = 0;
	plugin.attach = -ENOSPC;
	warnings = 0;
	for (i = 0; i < 50; i++) {
		p = pass(&r, &asked);
		p->vsize ^= 4096; /* it maps and unmaps */
		asked_all += (uint32_t)asked;
		assert_null(p->file);
		assert_int_equal(scan__users(&r.scan), 0);
	}
	assert_int_equal(asked_all, 50);
	assert_int_equal(warnings, 1);
	plugin.attach = 0;
	p = pass(&r, &asked);
	p->vsize ^= 4096;
	pass(&r, &asked);
	p->vsize ^= 4096;
	assert_non_null(pass(&r, &asked)->file);
	scan__free(&r.scan);
}

/* Nor is it said of each process that a job forks: of some, and how many more there were. */
static void test_says_of_some(void **state)
{
	static struct recorder r;
	struct scan_proc *p;
	uint32_t i;
	int asked;

	(void)state;
	plugin.find = -EPROTO;
	warnings = 0;
	for (i = 0; i < 50; i++) {
		p = pass(&r, &asked);
		assert_int_equal(asked, 1);
		p->start ^= 1; /* another one, next time */
	}
	assert_int_equal(warnings, 16);
	assert_int_equal(r.scan.untold, 34);
	r.scan.tell_ns = 0; /* much later */
	pass(&r, &asked);
	assert_int_equal(r.scan.untold, 0);
	assert_int_equal(warnings, 17);
	plugin.find = 0;
	scan__free(&r.scan);
}

/* A process that has mapped another file since it was found costs nobody else the file that it had. */
static void test_remapped(void **state)
{
	struct elf_file_id own = file_at("/proc/self/exe");
	static struct recorder r;
	struct scan_proc *p;
	int asked;

	(void)state;
	plugin.remapped = true;
	plugin.attached = 0;
	warnings = 0;
	p = pass(&r, &asked);
	assert_int_equal(asked, 1);
	assert_null(p->file);
	assert_int_equal(plugin.attached, 0);
	assert_int_equal(warnings, 1);
	assert_null(r.scan.files);
	plugin.remapped = false;
	p->vsize ^= 4096;
	assert_non_null(pass(&r, &asked)->file);
	assert_int_equal(plugin.attached, 1);
	assert_memory_equal(&plugin.file, &own, sizeof(own));
	scan__free(&r.scan);
}

/* A process that has a known file mapped without a probe has one of its own by the same numbers: one link more, or a word. */
static void test_copied_up(void **state)
{
	static struct recorder r;
	struct scan_proc *p;
	int asked, i;

	(void)state;
	plugin.attached = plugin.detached = 0;
	warnings = 0;
	p = pass(&r, &asked);
	assert_non_null(p->file);
	assert_int_equal(plugin.attached, 1);
	for (i = 0; i < 3; i++) {
		p->start ^= 1; /* another process */
		plugin.bare = i < 2;
		p = pass(&r, &asked);
		assert_int_equal(asked, 1);
		assert_int_equal(scan__users(&r.scan), i != 1);
		assert_int_equal(plugin.attached, 2);
		assert_int_equal(warnings, i > 0); /* the second time it is not that */
	}
	assert_int_equal(plugin.detached, 0);
	plugin.find = -ENOENT;
	p->vsize = UINT64_MAX;
	pass(&r, &asked);
	pass(&r, &asked);
	assert_int_equal(plugin.detached, 2);
	scan__free(&r.scan);
	plugin.find = plugin.bare = 0;
}

/* There may be no room for it for a while: that is said once, and it is tried again. */
static void test_copied_up_no_room(void **state)
{
	static struct recorder r;
	struct scan_proc *p;
	int asked, i;

	(void)state;
	plugin.attached = plugin.detached = 0;
	warnings = 0;
	pass(&r, &asked)->start ^= 1; /* another process, next time */
	plugin.attach = -ENOSPC;
	plugin.bare = 4;
	for (i = 0; i < 3; i++) {
		p = pass(&r, &asked);
		assert_int_equal(asked, 1);
		assert_pause(p, 30u << i);
		assert_int_equal(plugin.attached, 2 + i);
		assert_int_equal(scan__users(&r.scan), 0);
	}
	assert_int_equal(warnings, 1);
	plugin.attach = 0;
	pass(&r, &asked);
	assert_int_equal(plugin.attached, 5);
	assert_int_equal(scan__users(&r.scan), 1);
	pass(&r, &asked);
	assert_int_equal(asked, 0);
	scan__free(&r.scan);
}

/* Whether it has the plugin is not known: that is told, until it can be looked into. */
static void test_hidden(void **state)
{
	static struct recorder r;
	struct scan_proc *p;
	int asked;

	(void)state;
	plugin.find = -EACCES;
	pass(&r, &asked);
	assert_int_equal(scan__hidden(&r.scan), 1);
	plugin.find = -EPERM;
	p = pass(&r, &asked);
	p->vsize = 0;
	pass(&r, &asked);
	assert_int_equal(scan__hidden(&r.scan), 1);
	plugin.find = 0;
	p->vsize = 0;
	pass(&r, &asked);
	assert_int_equal(scan__hidden(&r.scan), 0);
	assert_int_equal(scan__users(&r.scan), 1);
	scan__free(&r.scan);
}

/* A zombie, as a thread of the kernel, has nothing that could be looked into, though it is when all are looked into again. */
static void test_without_memory(void **state)
{
	static struct recorder r;
	struct scan_proc *p;
	pid_t pid = fork();
	siginfo_t info;
	int asked;

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	plugin.find = -EACCES;
	plugin.other = pid;
	pass(&r, &asked);
	HASH_FIND_INT(r.scan.procs, &pid, p);
	assert_non_null(p);
	p->vsize = UINT64_MAX;
	pass(&r, &asked);
	assert_int_equal(p->vsize, 0);
	assert_int_equal(scan__hidden(&r.scan), 1);
	plugin.find = plugin.other = 0;
	waitpid(pid, NULL, 0);
	scan__free(&r.scan);
}

/* It came before the file was changed, and we after: what we attach to by its mapping is the changed file, and nothing is asked of it. */
static void test_unreachable(void **state)
{
	static struct recorder r;
	struct scan_proc *p;
	int asked, i;

	(void)state;
	plugin.attached = plugin.detached = plugin.wants = 0;
	plugin.bare = 100;
	warnings = 0;
	for (i = 0; i < 4; i++) {
		p = pass(&r, &asked);
		assert_int_equal(asked, 1);
		assert_non_null(p->file);
		assert_int_equal(scan__users(&r.scan), 0);
		assert_int_equal(plugin.attached, i ? 2 : 1); /* one more try, not one for each */
		assert_int_equal(plugin.detached, i ? 1 : 0);
		p->start ^= 1; /* another process */
	}
	assert_int_equal(plugin.wants, 0);
	assert_int_equal(warnings, 4);
	plugin.bare = 0;
	pass(&r, &asked);
	assert_int_equal(scan__users(&r.scan), 1);
	scan__free(&r.scan);
}

static void put_file(const char *path, const char *content)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}

/* One second: a pass, in which it is looked at what is at the plugin's path. */
static void pass_with(struct recorder *r, const char *content)
{
	char other[PATH_MAX + 8];

	snprintf(other, sizeof(other), "%s.new", r->plugin);
	put_file(other, content);
	assert_int_equal(rename(other, r->plugin), 0);
	scan__all(r);
}

/* A recorder whose plugin is at @path, a new file; what scan__init() says of it. */
static int named_begin(struct recorder *r, char *path, const char *text)
{
	plugin.find = -ENOENT;
	plugin.attached = plugin.detached = 0;
	warnings = 0;
	close(mkstemp(path));
	put_file(path, text);
	r->opt.plugin = path;
	snprintf(r->plugin, sizeof(r->plugin), "%s", path);
	return scan__init(r, true);
}

static void named_end(struct recorder *r, const char *path)
{
	unlink(path);
	scan__free(&r->scan);
	plugin.find = 0;
}

static void passes(struct recorder *r, int n)
{
	while (n--)
		scan__all(r);
}

/*
 * Another file at the plugin's path is attached to before anybody has it, and that one's probe goes then; not while it is
 * half there, nor if it is of another version, which is said once.
 */
static void test_replaced(void **state)
{
	char path[] = "/tmp/ncclscope-scan-XXXXXX";
	static struct recorder r;
	struct elf_file_id file;
	int i;

	(void)state;
	assert_int_equal(named_begin(&r, path, "P"), 0);
	assert_int_equal(plugin.attached, 1);
	passes(&r, 3);
	assert_int_equal(plugin.attached, 1);
	pass_with(&r, "P");
	assert_int_equal(plugin.attached, 2);
	file = file_at(path);
	assert_memory_equal(&plugin.file, &file, sizeof(file));
	assert_int_equal(plugin.detached, 0); /* who has loaded that may not have been seen yet */
	ticks = writes = 0;
	scan__all(&r);
	assert_int_equal(plugin.detached, 1);
	assert_int_equal(HASH_COUNT(r.scan.files), 1);
	assert_int_equal(ticks, 1); /* many may go at once, and the kernel takes its time */
	assert_int_equal(writes, 1);

	pass_with(&r, "");
	assert_int_equal(warnings, 0);
	for (i = 0; i < 3; i++)
		pass_with(&r, "Q");
	assert_int_equal(warnings, 1);
	unlink(path);
	passes(&r, 3);
	assert_int_equal(plugin.attached, 2);
	assert_int_equal(plugin.detached, 1);
	put_file(path, "P");
	scan__all(&r);
	assert_int_equal(plugin.attached, 3);
	assert_int_equal(warnings, 1);
	named_end(&r, path);
}

/* Nor does the next window attach to one of another version, or when it is written to in place. */
static void test_other_version(void **state)
{
	char path[] = "/tmp/ncclscope-scan-XXXXXX";
	static struct recorder r;

	(void)state;
	assert_int_equal(named_begin(&r, path, "Q"), -EPROTO);
	passes(&r, 3);
	assert_int_equal(plugin.attached, 0);
	assert_int_equal(warnings, 0); /* whoever begins the window has said so */
	pass_with(&r, "P");
	assert_int_equal(plugin.attached, 1);
	put_file(path, "QQ");
	passes(&r, 3);
	assert_int_equal(plugin.attached, 1);
	assert_int_equal(warnings, 2); /* that it was written to, and what it is now */
	named_end(&r, path);
}

/* What is there now cannot be attached to for a while: that is said once, and it is tried again. */
static void test_not_yet(void **state)
{
	char path[] = "/tmp/ncclscope-scan-XXXXXX";
	static struct recorder r;
	int i;

	(void)state;
	assert_int_equal(named_begin(&r, path, "P"), 0);
	plugin.attached = 0;
	plugin.attach = -ENOSPC;
	pass_with(&r, "P");
	passes(&r, 3);
	assert_int_equal(plugin.attached, 2); /* once more when the one before went */
	for (i = 0; i < 2; i++) {
		plugin.attach = i ? 0 : -ENOSPC;
		r.scan.files->retry_ns = 0; /* much later */
		scan__all(&r);
		assert_int_equal(plugin.attached, 3 + i);
	}
	assert_int_equal(warnings, 1);
	assert_true(r.scan.files->link >= 0);
	named_end(&r, path);
}

static struct scan_proc *proc_at(struct recorder *r, pid_t pid)
{
	struct scan_proc *p;

	HASH_FIND_INT(r->scan.procs, &pid, p);
	assert_non_null(p);
	return p;
}

/* As many files as may be are attached to: who has another one, and does nothing of itself, is recorded when one of them goes. */
static void test_room(void **state)
{
	char path[] = "/tmp/ncclscope-scan-XXXXXX";
	static struct recorder r;
	pid_t pid = fork();
	int asked;

	(void)state;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	close(mkstemp(path));
	pass(&r, &asked);
	plugin.other = pid;
	plugin.other_path = path;
	plugin.attach = -ENOSPC;
	proc_at(&r, pid)->vsize = UINT64_MAX;
	proc_at(&r, pid)->look_ns = 0;
	warnings = 0;
	pass(&r, &asked);
	assert_int_equal(asked, 1);
	passes(&r, 4);
	assert_int_equal(warnings, 1);
	assert_int_equal(scan__users(&r.scan), 1);
	plugin.attach = 0;
	plugin.left = getpid();
	proc_at(&r, getpid())->vsize = UINT64_MAX;
	pass(&r, &asked);
	passes(&r, 2);
	assert_non_null(proc_at(&r, pid)->file);
	assert_int_equal(scan__users(&r.scan), 1);
	assert_int_equal(warnings, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	plugin.other = plugin.left = 0;
	plugin.other_path = NULL;
	unlink(path);
	scan__free(&r.scan);
}

static struct recorder reused;

/* Its number has become another process', which hands something in. */
static void reuse(void)
{
	struct target t = {.pid = getpid(), .first_id = 7};

	plugin.polled = NULL;
	proc_at(&reused, getpid())->start ^= 1;
	assert_int_equal(scan__first_id(&reused, &t), 7);
}

/* While a file is attached to, the ring is read: the process that has it may be gone then, and its number another one's. */
static void test_reused(void **state)
{
	struct scan_proc *p;
	int asked;

	(void)state;
	plugin.polled = reuse;
	p = pass(&reused, &asked);
	assert_int_equal(asked, 1);
	assert_null(plugin.polled);
	assert_int_equal(p->first_id, 7);
	assert_null(p->file);
	assert_int_equal(reused.scan.files->users, 0);
	scan__free(&reused.scan);
}

/* Who has a file that was written to had a moment without its probe, in which its plugin turned everything off. */
static void test_written_to(void **state)
{
	char path[] = "/tmp/ncclscope-scan-XXXXXX";
	static struct recorder r;
	int asked, wants, i;

	(void)state;
	close(mkstemp(path));
	plugin.path = path;
	pass(&r, &asked);
	pass(&r, &asked);
	wants = plugin.wants;
	pass(&r, &asked);
	assert_int_equal(plugin.wants, wants);
	put_file(path, "another text");
	plugin.detached = 0;
	for (i = 0; i < 4; i++)
		pass(&r, &asked);
	assert_int_equal(plugin.detached, 1);
	assert_int_equal(plugin.wants, wants + 1);
	plugin.path = NULL;
	unlink(path);
	scan__free(&r.scan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_first_id),
		cmocka_unit_test(test_says_once),
		cmocka_unit_test(test_says_of_some),
		cmocka_unit_test(test_remapped),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_copied_up),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_not_yet),
		cmocka_unit_test(test_unreachable),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_copied_up_no_room),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_reused),
		cmocka_unit_test(test_written_to),
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
