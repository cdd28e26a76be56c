// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/record/record_opts.c: sizes on the command line of `record`; and what is said of a command and of a directory that are
 * not there, before anything is recorded.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "cmd.h"
#include "job.h"
#include "nccl_profiler.h"
#include "out.h"
#include "recorder.h"
#include "sched_join.h"
#include "summary.h"

#define K UINT64_C(1024)
#define M (1024 * K)
#define G (1024 * M)

static char said[4096]; /* on standard error */

static void parse(struct record_options *o, char *option, char *value)
{
	char name[] = "ncclscope record";
	char *argv[] = {name, option, value, NULL};

	memset(o, 0, sizeof(*o));
	record_options__parse(o, 3, argv);
}

/* What `fn` does in a child: its exit status. */
static int status_of(void (*fn)(char *arg), char *arg)
{
	int fds[2], status;
	ssize_t n;
	size_t len = 0;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		fn(arg);
		fflush(stderr);
		_exit(EXIT_OK);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void parse_ring(char *value)
{
	char option[] = "--ring";
	struct record_options o;

	parse(&o, option, value);
}

static void parse_backlog(char *value)
{
	char option[] = "--backlog";
	struct record_options o;

	parse(&o, option, value);
}

/* What is asked of the kernel is what status and headers say. */
static void test_ring(void **state)
{
	static struct {
		char text[12];
		uint64_t bytes;
	} good[] = {{"256K", 256 * K}, {"262144", 256 * K}, {"262145", 512 * K},
		    {"300K", 512 * K}, {"65M", 128 * M},    {"64M", 64 * M},
		    {"1G", G},	       {"1025M", 2 * G},    {"2G", 2 * G}};
	static char bad[][12] = {"0",  "64",	"64K", "262143", "255K",
				 "3G", "2049M", "64X", "-1",	 ""};
	char option[] = "--ring", net[] = "--net", off[] = "off";
	struct record_options o;
	size_t i;

	(void)state;
	parse(&o, net, off);
	assert_int_equal(o.ring_bytes, 64 * M);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		parse(&o, option, good[i].text);
		assert_int_equal(o.ring_bytes, good[i].bytes);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(status_of(parse_ring, bad[i]), EXIT_USAGE);
		assert_non_null(strstr(said, "from 256K to 2G"));
		assert_non_null(strstr(said, "without a unit, bytes"));
	}
}

static void test_backlog(void **state)
{
	char option[] = "--backlog", bytes[] = "65536", unit[] = "16G", bad[] = "16GB";
	struct record_options o;

	(void)state;
	parse(&o, option, bytes);
	assert_int_equal(o.backlog_bytes, 65536);
	parse(&o, option, unit);
	assert_int_equal(o.backlog_bytes, 16 * G);
	assert_int_equal(status_of(parse_backlog, bad), EXIT_USAGE);
	assert_non_null(strstr(said, "without a unit, bytes"));
}

static void parse_line(char *text)
{
	char *argv[8] = {NULL}, *word;
	struct record_options o = {0};
	int n = 0;

	for (word = strtok(text, " "); word && n < 7; word = strtok(NULL, " "))
		argv[n++] = word;
	record_options__parse(&o, n, argv);
}

/* Other commands have - for a stream; here it would be a file or a directory of that name. */
static void test_no_stream(void **state)
{
	char raw[] = "record --raw -", dir[] = "record -o -", both[] = "record --raw cap -o -";
	char of_that_name[] = "record --raw ./- -o ./-";

	(void)state;
	assert_int_equal(status_of(parse_line, raw), EXIT_USAGE);
	assert_non_null(strstr(said, "--raw takes a file, and '-' for standard output is none"));
	assert_non_null(strstr(said, "./-\n"));
	assert_int_equal(status_of(parse_line, dir), EXIT_USAGE);
	assert_non_null(strstr(said, "-o takes a directory, and '-' for standard output is none"));
	assert_int_equal(status_of(parse_line, both), EXIT_USAGE);
	assert_int_equal(status_of(parse_line, of_that_name), EXIT_OK);
}

/* A capture alone has no traces to be compressed. */
static void test_compress_raw(void **state)
{
	char alone[] = "record --compress --raw cap", dir[] = "record --compress --raw cap -o d";

	(void)state;
	assert_int_equal(status_of(parse_line, alone), EXIT_USAGE);
	assert_non_null(
		strstr(said, "--compress is about traces, and --raw makes none without -o"));
	assert_int_equal(status_of(parse_line, dir), EXIT_OK);
}

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* What comes to both while a command is started: right before there is its process, or right before it is the command. */
static int before_fork, before_exec;

pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_execvp(const char *file, char *const argv[]);
int __wrap_execvp(const char *file, char *const argv[]);

pid_t __wrap_fork(void)
{
	if (before_fork)
		raise(before_fork);
	return __real_fork();
}

int __wrap_execvp(const char *file, char *const argv[])
{
	if (before_exec)
		raise(before_exec);
	return __real_execvp(file, argv);
}

/* The command's exit status; or why it was not started. */
static int status_of_job(const char *text)
{
	char sh[] = "sh", c[] = "-c", cmd[64];
	char *argv[] = {sh, c, cmd, NULL};
	int code = -1;
	pid_t pid;

	snprintf(cmd, sizeof(cmd), "%s", text);
	pid = job__start(argv, "none", &stop);
	if (pid < 0)
		return pid;
	while (!job__ended(pid, &code))
		usleep(1000);
	return code;
}

/* Who starts a command catches these; the command is not to. What nohup has ignored it ignores. */
static void test_signals(void **state)
{
	const struct sigaction sa = {.sa_handler = on_signal};
	struct sigaction was[2];

	(void)state;
	sigaction(SIGINT, &sa, &was[0]);
	sigaction(SIGHUP, &(struct sigaction){.sa_handler = SIG_IGN}, &was[1]);
	assert_int_equal(status_of_job("exit 7"), 7);
	assert_int_equal(status_of_job("kill -HUP $$; exit 8"), 8);
	before_exec = SIGINT;
	assert_int_equal(status_of_job("exit 7"), 128 + SIGINT);
	before_exec = SIGHUP;
	assert_int_equal(status_of_job("exit 7"), 7);
	before_exec = 0;
	assert_int_equal(stop, 0);
	before_fork = SIGINT;
	assert_int_equal(status_of_job("exit 7"), -ECANCELED);
	assert_int_equal(stop, 1);
	before_fork = 0;
	assert_int_equal(status_of_job("exit 7"), -ECANCELED);
	assert_int_equal(waitpid(-1, NULL, 0), -1); /* no process stays */
	stop = 0;
	sigaction(SIGINT, &was[0], NULL);
	sigaction(SIGHUP, &was[1], NULL);
}

static void test_no_command(void **state)
{
	char cmd[] = "ncclscope-no-such-command", path[] = "/nonexistent/command", none[] = "none";
	char *argv[] = {cmd, NULL};

	(void)state;
	unsetenv("SUDO_UID");
	assert_int_equal(job__start(argv, none, &stop), -ENOENT);
	assert_string_equal(job__advice(cmd, -ENOENT), "");
	setenv("SUDO_UID", "0", 1);
	assert_non_null(strstr(job__advice(cmd, -ENOENT), "; sudo may have reset PATH"));
	assert_string_equal(job__advice(path, -ENOENT), "");
	assert_string_equal(job__advice(cmd, -EACCES), "");
	unsetenv("SUDO_UID");
}

/* By whatever name, ours is not another one. */
static void test_replaced(void **state)
{
	static const char plugin[] = "/proc/version"; /* for a file that is there */
	static const char *const ours[] = {"",
					   "ncclscope",
					   "libnccl-profiler-ncclscope.so",
					   "/elsewhere/libnccl-profiler-ncclscope.so",
					   plugin,
					   "/proc/./version"};
	static const char *const others[] = {"other", "ncclscope2", "/proc/self/exe", "/none.so"};
	size_t i;

	(void)state;
	unsetenv("NCCL_PROFILER_PLUGIN");
	assert_null(job__replaced(plugin));
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		setenv("NCCL_PROFILER_PLUGIN", ours[i], 1);
		assert_null(job__replaced(plugin));
	}
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		setenv("NCCL_PROFILER_PLUGIN", others[i], 1);
		assert_string_equal(job__replaced(plugin), others[i]);
	}
	unsetenv("NCCL_PROFILER_PLUGIN");
}

static void check_dir(char *dir)
{
	_exit(out_dir_check(dir, getuid(), getgid(), NULL) ? EXIT_FAILED : EXIT_OK);
}

static void test_no_parent(void **state)
{
	char below[] = "/nonexistent/parent/dir", file[] = "/dev/null", there[] = "/";

	(void)state;
	assert_int_equal(status_of(check_dir, below), EXIT_FAILED);
	assert_non_null(strstr(said, "; its parent must exist; name another with -o"));
	assert_int_equal(status_of(check_dir, file), EXIT_FAILED);
	assert_null(strstr(said, "parent"));
	assert_int_equal(status_of(check_dir, there), EXIT_OK);
}

/* What it prints; the caller's to free. */
static char *printed(const struct summary *s)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	summary__print(s, "d", f);
	fclose(f);
	return text;
}

/* What it prints at its end is not wider than the report: names of the longest that there are. */
static void summary_fits(void **state)
{
	struct summary s = {.flows = 1, .nworst = 1, .nslowest = 1};
	char *text, *line, *rest;

	(void)state;
	s.worst[0] = (struct summary_flow){.name = "255.255.255.255:65535>255.255.255.255:65535",
					   .rank = 1023,
					   .peer = 1022,
					   .again = 99999,
					   .needed = 88888,
					   .busy_ns = 100,
					   .rwnd_ns = 50,
					   .sndbuf_ns = 50};
	s.slowest[0] = (struct summary_op){.duration_ns = UINT64_C(99999999999000),
					   .seq = 9999999,
					   .comm_hash = UINT64_MAX,
					   .count = UINT64_C(999999999999),
					   .rank = 99999,
					   .pid = 4194303,
					   .open = true,
					   .func = "ReduceScatter",
					   .datatype = "ncclFloat8e4m3"};
	s.proxy.span_ns = s.proxy.sums.blocked_ns = 100;
	s.proxy.nbehind = 2;
	strcpy(s.proxy.behind[0].comm, "qemu-system-x86");
	strcpy(s.proxy.behind[1].comm, "python3\033worker");
	s.proxy.behind[0].tgid = s.proxy.behind[1].tgid = 4194303;
	s.proxy.nblocked_in = 1;
	text = printed(&s);
	assert_non_null(strstr(text, "behind qemu-system-x86[4194303],"));
	assert_non_null(strstr(text, "behind python3?worker[4194303], in "));
	assert_non_null(strstr(text, "99999 segments sent again, 11111 of them needlessly"));
	assert_non_null(strstr(text, "\n> 99999999.999  ReduceScatter "));
	assert_non_null(strstr(text, "\n> still open"));
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (strlen(line) > 100)
			fail_msg("%zu columns: %s", strlen(line), line);
	free(text);
}

/*
 * Without anything that tells of an operation's end, its time is that of its enqueue: of microseconds, in which a thread may well have
 * waited for its CPU for the most part, and its application did not.
 */
static void summary_of_enqueues(void **state)
{
	struct corr_event ev = {.what = SCOPE_COLL, .stopped = true, .exec = EXEC_ENQUEUE};
	struct sched_join join = {.app = {.threads = 1, .span_ns = 10, .sums.runq_ns = 8}};
	struct proc *p = calloc(1, sizeof(*p));
	struct summary s = {.nslowest = 0};
	char *text;
	int i;

	(void)state;
	assert_non_null(p);
	for (i = 0; i < 2; i++) {
		summary__event(&s, p, &ev, &join);
		ev.exec = EXEC_PROXY;
		text = printed(&s);
		assert_non_null(strstr(text, i ? "\nThreads of operations, while those ran\n"
					       : "\nThreads of operations, while those were "
						 "enqueued: when they ended is not recorded\n"));
		free(text);
	}
	free(p);
}

/* Kernels of communicators that there were before: where nothing else accounts for it. */
static void summary_without_kernels(void **state)
{
	struct proc *p = calloc(1, sizeof(*p));
	struct summary s = {.procs = 2};

	(void)state;
	assert_non_null(p);
	summary__proc_end(&s, p);
	assert_false(summary__lacks_kernels(&s)); /* the job leaves them out, or NCCL has none */
	p->kernels_late = true;
	summary__proc_end(&s, p);
	assert_true(summary__lacks_kernels(&s));
	s.may_hang = 1; /* told by the summary */
	assert_false(summary__lacks_kernels(&s));
	s.may_hang = 0;
	s.events[SCOPE_KERNEL_CH] = 1; /* they stayed on */
	assert_false(summary__lacks_kernels(&s));
	s.events[SCOPE_KERNEL_CH] = 0;
	p->mask = ncclProfileColl |
		  ncclProfileKernelCh; /* its first communicator was made meanwhile */
	summary__proc_end(&s, p);
	assert_false(summary__lacks_kernels(&s));
	s.may_have_kernels = p->mask = 0;
	p->from_start = true;
	summary__proc_end(&s, p);
	assert_false(summary__lacks_kernels(&s));
	s = (struct summary){0};
	assert_false(summary__lacks_kernels(&s));
	free(p);
}

static void parse_mask(struct record_options *o, const char *list)
{
	char option[] = "--mask", value[32];

	snprintf(value, sizeof(value), "%s", list);
	parse(o, option, value);
}

static void test_kernels_by_name(void **state)
{
	struct record_options o;

	(void)state;
	parse_mask(&o, "coll,kernelch");
	assert_true(o.kernels);
	parse_mask(&o, "kernelphase");
	assert_true(o.kernels);
	parse_mask(&o, "all");
	assert_false(o.kernels);
	parse_mask(&o, "0xfff");
	assert_false(o.kernels);
	parse_mask(&o, "proxystep");
	assert_false(o.kernels);
}

/* Who ran while a quota kept a thread from running is not to blame. */
static void summary_of_a_quota(void **state)
{
	struct summary s = {.nslowest = 0};
	char *text;
	int i;

	(void)state;
	s.proxy.span_ns = 200;
	s.proxy.sums.runq_ns = 100;
	s.proxy.nbehind = 1;
	strcpy(s.proxy.behind[0].comm, "cc1");
	s.proxy.behind[0].tgid = 815;
	for (i = 49; i <= 50; i++) {
		s.proxy.sums.throttled_ns = (uint64_t)i;
		text = printed(&s);
		if (i < 50)
			assert_non_null(strstr(text, "  behind cc1[815]\n"));
		else
			assert_non_null(strstr(text, "  held by a CPU quota 25.0 %\n"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(summary_fits),		cmocka_unit_test(summary_of_a_quota),
		cmocka_unit_test(summary_of_enqueues),	cmocka_unit_test(summary_without_kernels),
		cmocka_unit_test(test_kernels_by_name), cmocka_unit_test(test_ring),
		cmocka_unit_test(test_backlog),		cmocka_unit_test(test_no_command),
		cmocka_unit_test(test_replaced),	cmocka_unit_test(test_no_parent),
		cmocka_unit_test(test_compress_raw),	cmocka_unit_test(test_no_stream),
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
