// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/node/node.c: texts as kernels write them, texts as nobody should, a tree of files in place of /proc and
 * the cgroups, and this machine's own.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "node.h"
#include "proc_tree.h"

#define TICK 10000000ULL /* of 100 Hz */

static const char stat_text[] = "cpu  100 20 30 4000 50 6 7 8 9 1\n"
				"cpu0 100 20 30 4000 50 6 7 8 9 1\n"
				"cpu2 1 0 0 0 0 0 0 18 0 0\n"
				"intr 27591542 0 0 0 0 0 0 1 2 3\n"
				"ctxt 190144620\n"
				"btime 1795209788\n"
				"procs_running 3\n"
				"procs_blocked 0\n"
				"softirq 40301206 0 832495 30\n";

static const char psi_text[] = "some avg10=0.00 avg60=0.15 avg300=0.42 total=1389228576\n"
			       "full avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";

static const char quota_v1[] = "nr_periods 12\nnr_throttled 5\nthrottled_time 123456789\n"
			       "nr_bursts 0\nburst_time 0\n";

static const char quota_v2[] = "usage_usec 6926938907\nuser_usec 1\nsystem_usec 2\nnr_periods 12\n"
			       "nr_throttled 5\nthrottled_usec 123456\nnr_bursts 0\nburst_usec 0\n";

static const char hybrid_text[] =
	"9:name=systemd:/\n4:cpuacct,cpuset:/no\n2:cpuacct,cpu:/a b:c\n0::/two\n";

static const char mount_text[] = "41 31 0:38 /x\\040y /sys/fs/cgroup/a\\134b rw shared:9 master:1 "
				 "- cgroup2 none rw,nsdelegate";

/* ---- Parsing ----------------------------------------------------------------------------------- */

static struct node_sample *parse_stat(const char *text, size_t len)
{
	uint32_t n = node_parse_ncpus(text, len);
	struct node_sample *s = calloc(1, sizeof(*s) + n * sizeof(s->cpus[0]));

	assert_non_null(s);
	assert_true(n <= NODE_CPUS_MAX);
	s->refs = 1;
	s->ncpus = n;
	node_parse_stat(text, len, TICK, s);
	return s;
}

static void test_stat(void **state)
{
	struct node_sample *s = parse_stat(stat_text, sizeof(stat_text) - 1);
	const struct node_cpu *cpu = node_sample__cpu(s, 0);

	(void)state;
	assert_int_equal(s->ncpus, 3);
	assert_non_null(cpu);
	assert_int_equal(cpu->busy, (100 + 20 + 30 + 6 + 7) * TICK);
	assert_int_equal(cpu->irq, 6 * TICK);
	assert_int_equal(cpu->softirq, 7 * TICK);
	assert_int_equal(cpu->steal, 8 * TICK);
	assert_null(node_sample__cpu(s, 1)); /* offline */
	assert_int_equal(node_sample__cpu(s, 2)->steal, 18 * TICK);
	assert_null(node_sample__cpu(s, 3));
	assert_null(node_sample__cpu(NULL, 0));
	assert_true(s->has_running && s->has_blocked);
	assert_int_equal(s->procs_running, 3);
	assert_int_equal(s->procs_blocked, 0);
	node_sample__put(s);
}

static void test_stat_hostile(void **state)
{
	static const char *const bad[] = {
		"",
		"cpu",
		"cpu0",
		"cpu0\n",
		"cpu0 1 2 3 4 5 6 7\n",	   /* before there was steal */
		"cpu0 1 2 3 4 5 6 7 -8\n", /* signed */
		"cpu0 1 2 3 4 5 6 7 x\n",
		"cpu0 18446744073709551616 0 0 0 0 0 0 0\n", /* no 64 bits */
		"cpu0 1844674407371 0 0 0 0 0 0 0\n",	     /* no 64 bits in ns */
		"cpu0 1844674407370 1 1 1 1 1 1 1\n",	     /* nor their sum */
		"cpu8192 1 2 3 4 5 6 7 8\n",
		"cpu99999999999999999999 1 2 3 4 5 6 7 8\n",
		"cpu-1 1 2 3 4 5 6 7 8\n",
		"cpux 1 2 3 4 5 6 7 8\n",
		"procs_running\nprocs_blocked -1\n",
		"procs_runningx 1\nxprocs_blocked 1\n",
	};
	struct node_sample *s;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		s = parse_stat(bad[i], strlen(bad[i]));
		if (node_sample__cpu(s, 0) || s->ncpus > 1 || s->has_running || s->has_blocked)
			fail_msg("'%s' was believed", bad[i]);
		node_sample__put(s);
	}
	s = parse_stat("cpu0 1 2 3 4 5 6 7 8", 20);
	s->ncpus = 1;
	node_parse_stat("cpu1 1 2 3 4 5 6 7 8", 20, TICK, s); /* has no room */
	node_sample__put(s);
	s = parse_stat("cpu8191 1 2 3 4 5 6 7 8", 23);
	assert_non_null(node_sample__cpu(s, 8191));
	node_sample__put(s);
}

static void test_psi(void **state)
{
	struct node_psi psi;

	(void)state;
	node_parse_psi(psi_text, sizeof(psi_text) - 1, &psi);
	assert_true(psi.has_some && psi.has_full);
	assert_int_equal(psi.some, 1389228576000);
	assert_int_equal(psi.full, 17000);
	node_parse_psi(psi_text, (size_t)(strchr(psi_text, '\n') - psi_text), &psi);
	assert_true(psi.has_some && !psi.has_full); /* cpu, before Linux 5.13 */
	node_parse_psi("some avg10=0.00\nfull total=\n", 29, &psi);
	assert_true(!psi.has_some && !psi.has_full);
	node_parse_psi("some total=18446744073709552\nfull total=1x\n", 43, &psi);
	assert_true(!psi.has_some && !psi.has_full);
	node_parse_psi(NULL, 0, &psi);
	assert_true(!psi.has_some && !psi.has_full);
}

static void test_quota(void **state)
{
	struct node_quota q = {0};

	(void)state;
	assert_true(node_parse_quota(quota_v1, sizeof(quota_v1) - 1, &q));
	assert_int_equal(q.periods, 12);
	assert_int_equal(q.throttled_periods, 5);
	assert_int_equal(q.throttled, 123456789);
	assert_true(node_parse_quota(quota_v2, sizeof(quota_v2) - 1, &q));
	assert_int_equal(q.throttled, 123456000);
	/* v2 without the controller; a field short; one that is no number */
	assert_false(node_parse_quota("usage_usec 1\nuser_usec 1\nsystem_usec 0\n", 39, &q));
	assert_false(node_parse_quota(quota_v1, 28, &q));
	assert_false(node_parse_quota("nr_periods 1\nnr_throttled 1\nthrottled_time -1\n", 46, &q));
	assert_false(node_parse_quota(
		"nr_periods 1\nnr_throttled 1\nthrottled_usec 18446744073709552\n", 61, &q));
}

static void test_limit(void **state)
{
	(void)state;
	assert_true(node_parse_limit("30000 100000\n", 13));
	assert_true(node_parse_limit("30000\n", 6));
	assert_false(node_parse_limit("max 100000\n", 11));
	assert_false(node_parse_limit("-1\n", 3));
	assert_false(node_parse_limit("", 0));
	assert_false(node_parse_limit("\n1\n", 3));
}

static void assert_cgroup(const char *text, const char *want, bool want_v2)
{
	char path[16] = "";
	bool v2 = !want_v2;

	if (!node_parse_cgroup(text, strlen(text), path, sizeof(path), &v2)) {
		if (want)
			fail_msg("nothing in '%s'", text);
		return;
	}
	if (!want)
		fail_msg("'%s' in '%s'", path, text);
	assert_string_equal(path, want);
	assert_int_equal(v2, want_v2);
}

static void test_cgroup(void **state)
{
	(void)state;
	assert_cgroup(hybrid_text, "/a b:c", false);
	assert_cgroup("0::/two\n2:cpu:/one\n", "/one", false);
	assert_cgroup("0::/two", "/two", true);
	assert_cgroup("0::/two\n0::/again\n", "/two", true);
	assert_cgroup("5:cpuset:/one\n4:cpuacct:/\n3:xcpu:/\n0::/two\n", "/two", true);
	assert_cgroup("5:name=cpu:/one\n", NULL, false);
	assert_cgroup("0::/as-long-as-fit\n", "/as-long-as-fit", true);
	assert_cgroup("0::/longer-than-fit\n", NULL, true);
	assert_cgroup("\n:\n::\n0:\ncpu\n", "", true);
	assert_cgroup("", NULL, false);
}

static bool parse_mount(const char *line, struct node_mount *m)
{
	return node_parse_mount(line, strlen(line), m);
}

static void test_mount(void **state)
{
	struct node_mount m;

	(void)state;
	assert_true(parse_mount(mount_text, &m));
	assert_true(m.v2 && m.major == 0 && m.minor == 38);
	assert_string_equal(m.root, "/x y");
	assert_string_equal(m.point, "/sys/fs/cgroup/a\\b");
	assert_true(parse_mount("32 31 7:29 / /c rw - cgroup cgroup rw,cpu,cpuacct", &m));
	assert_true(!m.v2 && m.major == 7 && m.minor == 29);
	assert_true(parse_mount("32 31 0:29 / /c\\04\\08\\400 rw - cgroup cgroup rw,cpu", &m));
	assert_string_equal(m.point, "/c\\04\\08\\400"); /* no escapes */
	assert_false(parse_mount("32 31 0:29 / /c rw - cgroup cgroup rw,cpuacct,cpuset", &m));
	assert_false(parse_mount("32 31 0:29 / /c rw - cgroup cgroup", &m));
	assert_false(parse_mount("32 31 0:29 / /c rw - tmpfs cgroup rw,cpu", &m));
	assert_false(parse_mount("32 31 0:29 / /c rw cgroup cgroup rw,cpu", &m));
	assert_false(parse_mount("32 31 0 / /c rw - cgroup cgroup rw,cpu", &m));
	assert_false(parse_mount("32 31 0:4294967296 / /c rw - cgroup cgroup rw,cpu", &m));
	assert_false(parse_mount("32 31 0:29 / /c\\000d rw - cgroup cgroup rw,cpu", &m));
	assert_false(parse_mount("", &m));
}

/* All parsers over bytes that end where their memory ends. */
static void parse_all(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1), path[64];
	struct node_quota quota;
	struct node_mount mount;
	struct node_psi psi;
	bool v2;

	assert_non_null(copy);
	memcpy(copy, text, len);
	node_sample__put(parse_stat(copy, len));
	node_parse_psi(copy, len, &psi);
	node_parse_quota(copy, len, &quota);
	node_parse_limit(copy, len);
	node_parse_mount(copy, len, &mount);
	if (node_parse_cgroup(copy, len, path, sizeof(path), &v2))
		assert_true(strlen(path) < sizeof(path));
	free(copy);
}

static void test_garbage(void **state)
{
	static const char *const texts[] = {stat_text, psi_text,    quota_v1,
					    quota_v2,  hybrid_text, mount_text};
	static const char bytes[] = "\0\n\\:, -0189cpu=/\377";

	(void)state;
	parse_garbage(texts, 6, bytes, sizeof(bytes) - 1, 6000, parse_all);
}

/* ---- A tree ------------------------------------------------------------------------------------ */

static void mounted(char *text, size_t size, const char *mount_root, const char *point, bool v2)
{
	size_t len = strlen(text);
	struct stat st;

	assert_int_equal(stat(root, &st), 0);
	snprintf(text + len, size - len, "41 31 %u:%u %s %s rw - %s none rw%s\n", major(st.st_dev),
		 minor(st.st_dev), mount_root, point, v2 ? "cgroup2" : "cgroup",
		 v2 ? ",nsdelegate" : ",cpu,cpuacct");
}

static void put_mounts(const char *mount_root, const char *point, bool v2)
{
	char text[1024] = "31 23 0:28 / / rw - tmpfs tmpfs rw\n";

	mounted(text, sizeof(text), mount_root, point, v2);
	put("/proc/self/mountinfo", text);
}

static int find(struct node_cgroup *c, struct node_quota *quota)
{
	int err = node_cgroup__find(c, root, 7);

	if (!err)
		assert_int_equal(node_cgroup__read(c, quota), 0);
	else
		assert_int_equal(node_cgroup__read(c, quota), -ENOENT);
	return err;
}

static const char no_quota[] = "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n";

static void test_find_v1(void **state)
{
	struct node_quota q;
	struct node_cgroup c;

	(void)state;
	put("/proc/7/cgroup", "3:cpu,cpuacct:/job/step\n0::/else\n");
	put_mounts("/", "/cg/cpu\\040v1", false);
	put("/cg/cpu v1/cpu.stat", no_quota);
	put("/cg/cpu v1/cpu.cfs_quota_us", "-1\n");
	assert_int_equal(find(&c, &q), -ENOENT); /* it is gone: what is above it is not it */
	put("/cg/cpu v1/job/step/cpu.stat", quota_v1);
	put("/cg/cpu v1/job/step/cpu.cfs_quota_us", "30000\n");
	assert_int_equal(find(&c, &q), 0);
	assert_true(!c.v2 && c.limited && c.own);
	assert_int_equal(q.throttled, 123456789);
	node_cgroup__close(&c);
	node_cgroup__close(&c);
}

static void test_find_v2(void **state)
{
	struct node_quota q;
	struct node_cgroup c;

	(void)state;
	put("/proc/7/cgroup", "0::/job/step/task\n");
	put_mounts("/", "/cg", true);
	put("/cg/cpu.stat", "usage_usec 1\n");
	put("/cg/job/step/task/cpu.stat", "usage_usec 1\n");
	assert_int_equal(find(&c, &q), -ENOENT); /* no controllers at all */
	put("/cg/cgroup.controllers", "cpuset memory\n");
	assert_int_equal(find(&c, &q), -ENOENT);
	put("/cg/cgroup.controllers", "cpuset cpu memory\n");
	assert_int_equal(find(&c, &q), -ENODATA); /* not handed down */
	put("/cg/job/cpu.stat", quota_v2);
	put("/cg/job/cpu.max", "max 100000\n");
	assert_int_equal(find(&c, &q), 0);
	assert_true(c.v2 && !c.limited && c.own);
	assert_int_equal(q.throttled, 123456000);
	node_cgroup__close(&c);
}

/* The nearest with a quota; else the nearest. */
static void test_find_nearest(void **state)
{
	static const char nearest[] = "nr_periods 3\nnr_throttled 2\nthrottled_usec 1\n";
	struct node_quota q;
	struct node_cgroup c;

	(void)state;
	put("/proc/7/cgroup", "0::/pod/box\n");
	put_mounts("/", "/cg", true);
	put("/cg/cgroup.controllers", "cpu\n");
	put("/cg/pod/cpu.stat", quota_v2);
	put("/cg/pod/cpu.max", "200000 100000\n");
	put("/cg/pod/box/cpu.stat", nearest);
	put("/cg/pod/box/cpu.max", "max 100000\n");
	assert_int_equal(find(&c, &q), 0);
	assert_true(c.limited && !c.own);
	assert_int_equal(q.periods, 12);
	node_cgroup__close(&c);
	put("/cg/pod/box/cpu.max", "100000 100000\n");
	assert_int_equal(find(&c, &q), 0);
	assert_true(c.limited && c.own);
	assert_int_equal(q.periods, 3);
	node_cgroup__close(&c);
	put("/cg/pod/cpu.max", "max 100000\n");
	put("/cg/pod/box/cpu.max", "max 100000\n");
	assert_int_equal(find(&c, &q), 0);
	assert_true(!c.limited && c.own);
	assert_int_equal(q.periods, 3);
	node_cgroup__close(&c);
}

/* Only a part of the hierarchy is mounted, as in a container. */
static void test_find_part(void **state)
{
	struct node_quota q;
	struct node_cgroup c;
	char text[1024] = "";

	(void)state;
	put("/cg/cpu.stat", quota_v1);
	put("/cg/in/cpu.stat", no_quota);
	put_mounts("/docker/1", "/cg", false);
	put("/proc/7/cgroup", "3:cpu:/docker/1\n");
	assert_int_equal(find(&c, &q), 0);
	assert_int_equal(q.periods, 12);
	node_cgroup__close(&c);
	put("/proc/7/cgroup", "3:cpu:/docker/1/in\n");
	assert_int_equal(find(&c, &q), 0);
	assert_int_equal(q.periods, 0);
	node_cgroup__close(&c);
	put("/cg/2/cpu.stat", quota_v1);
	put("/proc/7/cgroup", "3:cpu:/docker/12\n");
	assert_int_equal(find(&c, &q), -ENOENT);
	put("/proc/7/cgroup", "3:cpu:/../other\n");
	assert_int_equal(find(&c, &q), -ENOENT);
	put("/proc/7/cgroup", "0::/docker/1\n"); /* the other hierarchy */
	assert_int_equal(find(&c, &q), -ENOENT);
	/* The second mount has it, and its figures do not mix with those of the first. */
	put("/proc/7/cgroup", "3:cpu:/docker/1/deep\n");
	put("/cg/cpu.cfs_quota_us", "1000\n");
	put("/all/docker/1/deep/cpu.stat", no_quota);
	mounted(text, sizeof(text), "/docker/1", "/cg", false);
	mounted(text, sizeof(text), "/", "/all", false);
	put("/proc/self/mountinfo", text);
	assert_int_equal(find(&c, &q), 0);
	assert_true(!c.limited && q.periods == 0);
	node_cgroup__close(&c);
}

static void in_root(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s%s", root, name);
}

static void test_find_hostile(void **state)
{
	char path[PATH_MAX], text[3 * PATH_MAX + 16];
	struct node_quota q;
	struct node_cgroup c;
	size_t i;

	(void)state;
	put("/secret/cpu.stat", quota_v1);
	put("/cg/job/none", "");
	put_mounts("/", "/cg", false);
	in_root(path, "/cg/link");
	assert_int_equal(symlink("../secret", path), 0);
	in_root(path, "/cg/job/cpu.stat");
	assert_int_equal(symlink("../../secret/cpu.stat", path), 0);
	put("/proc/7/cgroup", "3:cpu:/link\n");
	assert_int_equal(find(&c, &q), -ENOTDIR);
	put("/proc/7/cgroup", "3:cpu:/job/../../secret\n");
	assert_int_equal(find(&c, &q), -ENOENT);
	put("/proc/7/cgroup", "3:cpu:/job\n"); /* its cpu.stat is a link */
	assert_int_equal(find(&c, &q), -ENODATA);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it */
	assert_int_equal(find(&c, &q), -ENODATA);
	put("/proc/7/cgroup", "3:cpu:/job/none\n");
	assert_int_equal(find(&c, &q), -ENOTDIR);

	/* A path as long as the kernel's own limit, and longer. */
	strcpy(text, "3:cpu:");
	for (i = 6; i < 2 * PATH_MAX; i++)
		text[i] = i % 2 ? 'a' : '/';
	text[i] = 0;
	put("/proc/7/cgroup", text);
	assert_int_equal(find(&c, &q), -ENOENT);
	text[6 + 4095] = 0;
	put("/proc/7/cgroup", text);
	assert_int_equal(find(&c, &q), -ENOENT);
}

static void test_find_nothing(void **state)
{
	struct node_quota q;
	struct node_cgroup c;

	(void)state;
	assert_int_equal(find(&c, &q), -ENOENT);
	put("/proc/7/cgroup", "3:cpu:/\n");
	assert_int_equal(find(&c, &q), -ENOENT);
	put("/cg/cpu.stat", quota_v1);
	put("/proc/self/mountinfo", "41 31 4095:1 / /cg rw - cgroup none rw,cpu\n");
	assert_int_equal(find(&c, &q), -ENOENT); /* something else lies over it */
	put_mounts("/", "/not-there", false);
	assert_int_equal(find(&c, &q), -ENOENT);
	memset(&c, 0, sizeof(c));
	node_cgroup__close(&c);
	assert_int_equal(access("/proc/self/fd/0", F_OK), 0);
}

/* ---- Samples ----------------------------------------------------------------------------------- */

static void test_samples(void **state)
{
	struct node_sample *first;
	struct node_sampler n;

	(void)state;
	node__init(&n, root);
	assert_int_equal(node__sample(&n), 0); /* nothing there */
	assert_int_equal(n.last->ncpus, 0);
	assert_true(!n.last->has_running && !n.last->psi[NODE_PSI_CPU].has_some);
	assert_true(n.last->now_ns > 0);

	put("/proc/stat", stat_text);
	put("/proc/pressure/io", psi_text);
	n.tick_ns = TICK;
	assert_int_equal(node__sample(&n), 0);
	assert_int_equal(n.last->ncpus, 3);
	assert_true(n.last->psi[NODE_PSI_IO].has_full && !n.last->psi[NODE_PSI_MEMORY].has_full);
	first = node_sample__get(n.last);

	put("/proc/stat", "cpu0 101 20 30 4000 50 6 7 7 9 1\nprocs_running 1\n");
	assert_int_equal(node__sample(&n), 0);
	assert_ptr_not_equal(n.last, first);
	assert_true(n.last->now_ns >= first->now_ns);
	assert_int_equal(node_since(first->cpus[0].busy, n.last->cpus[0].busy), TICK);
	assert_int_equal(node_since(first->cpus[0].steal, n.last->cpus[0].steal), 0);
	assert_true(!n.last->has_blocked && first->has_blocked);
	node_sample__put(first);
	node__free(&n);
	node__free(&n);
}

/* More text than fits into the first piece of memory: a line of interrupts, and CPUs behind it. */
static void test_large(void **state)
{
	static char text[300000];
	struct node_sampler n;
	size_t i;

	(void)state;
	strcpy(text, "intr 1");
	for (i = 6; i < sizeof(text) - 64; i += 2)
		strcpy(text + i, " 0");
	strcpy(text + i, "\ncpu1 1 2 3 4 5 6 7 8\nprocs_blocked 4\n");
	put("/proc/stat", text);
	node__init(&n, root);
	assert_int_equal(node__sample(&n), 0);
	assert_non_null(node_sample__cpu(n.last, 1));
	assert_int_equal(n.last->procs_blocked, 4);
	node__free(&n);
}

/* ---- This machine ------------------------------------------------------------------------------ */

static void test_real(void **state)
{
	struct node_sample *first;
	long online = 0;
	struct node_sampler n;
	struct timespec nap = {.tv_nsec = 50000000};
	uint32_t i;

	(void)state;
	node__init(&n, "");
	assert_int_equal(node__sample(&n), 0);
	first = node_sample__get(n.last);
	nanosleep(&nap, NULL);
	assert_int_equal(node__sample(&n), 0);
	for (i = 0; i < n.last->ncpus; i++) {
		if (!node_sample__cpu(n.last, i))
			continue;
		online++;
		assert_true(n.last->cpus[i].busy >= first->cpus[i].busy);
		assert_true(n.last->cpus[i].busy >= n.last->cpus[i].irq + n.last->cpus[i].softirq);
	}
	assert_int_equal(online, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(n.last->has_running && n.last->procs_running >= 1);
	assert_true(n.last->has_blocked);
	assert_true(n.last->now_ns - first->now_ns >= 50000000);
	if (!access("/proc/pressure/memory", R_OK)) /* may be off at boot, then it cannot be read */
		assert_true(n.last->psi[NODE_PSI_MEMORY].has_full ==
			    n.last->psi[NODE_PSI_MEMORY].has_some);
	node_sample__put(first);
	node__free(&n);
}

/* Whatever cgroups this machine has, looking at our own ends in one of three ways. */
static void test_real_cgroup(void **state)
{
	struct node_quota a, b;
	struct node_cgroup c, d;
	int err;

	(void)state;
	err = node_cgroup__find(&c, "", 0);
	assert_int_equal(node_cgroup__find(&d, "", getpid()), err);
	assert_true(!err || err == -ENOENT || err == -ENODATA);
	if (!err) {
		assert_int_equal(node_cgroup__read(&c, &a), 0);
		assert_int_equal(node_cgroup__read(&d, &b), 0);
		assert_true(a.throttled_periods <= a.periods && a.periods <= b.periods);
	}
	node_cgroup__close(&c);
	node_cgroup__close(&d);
	assert_true(node_cgroup__find(&c, "", INT_MAX) < 0); /* no such process */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),  cmocka_unit_test(test_stat_hostile),
		cmocka_unit_test(test_psi),   cmocka_unit_test(test_quota),
		cmocka_unit_test(test_limit), cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_mount), cmocka_unit_test(test_garbage),
		TREE_TEST(test_find_v1),      TREE_TEST(test_find_v2),
		TREE_TEST(test_find_nearest), TREE_TEST(test_find_part),
		TREE_TEST(test_find_hostile), TREE_TEST(test_find_nothing),
		TREE_TEST(test_samples),      TREE_TEST(test_large),
		cmocka_unit_test(test_real),  cmocka_unit_test(test_real_cgroup),
	};

	return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
