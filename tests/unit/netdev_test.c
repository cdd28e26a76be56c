// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/node/netdev.c: texts as kernels write them, texts as nobody should, a tree of files in place of
 * /proc, and this machine's own, with a namespace beside it where that is allowed.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>
#include <cmocka.h>
#include "netdev.h"
#include "proc_tree.h"

#define HEADING                                                                                    \
	"Inter-|   Receive                                                |  Transmit\n"           \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs " \
	"drop fifo colls carrier compressed\n"

static const char dev_text[] =
	HEADING "    lo: 5176504   25013    0    0    0     0          0         0  5176504   "
		"25013    0    0 "
		"   0     0       0          0\n"
		"eth0.100@x:18446744073709551615 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";

/* Linux 4.19, with 11 columns, one CPU offline; and 6.18, with the CPU's number and two more. */
static const char softnet_old[] =
	"0001e240 00000001 00000002 00000000 00000000 00000000 00000000 00000000 00000000 0000000f "
	"00000003\n"
	"00000005 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
	"00000000\n";

static const char softnet_new[] =
	"0001e240 00000001 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
	"00000003 00000000 00000002 00000000 00000000\n";

/* ---- Parsing ----------------------------------------------------------------------------------- */

static void test_dev(void **state)
{
	struct netdev_dev devs[4];
	bool cut = true;
	int i;

	(void)state;
	assert_int_equal(netdev_parse(dev_text, sizeof(dev_text) - 1, devs, 4, &cut), 2);
	assert_false(cut);
	assert_string_equal(devs[0].name, "lo");
	assert_int_equal(devs[0].v[NETDEV_RX_BYTES], 5176504);
	assert_int_equal(devs[0].v[NETDEV_TX_PACKETS], 25013);
	assert_string_equal(devs[1].name, "eth0.100@x");
	assert_true(devs[1].v[NETDEV_RX_BYTES] == UINT64_MAX);
	for (i = 1; i < NETDEV_FIELDS; i++)
		assert_int_equal(devs[1].v[i], i + 1);
	assert_int_equal(netdev_parse(dev_text, sizeof(dev_text) - 1, devs, 1, &cut), 1);
	assert_true(cut);
	assert_int_equal(netdev_parse(dev_text, sizeof(dev_text) - 1, devs, 2, &cut), 2);
	assert_false(cut);
}

static void test_dev_hostile(void **state)
{
	static const char *const bad[] = {
		"",
		":",
		"lo",
		"lo:",
		": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
		"lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
		"lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 x",
		"lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 -1",
		"lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 1a",
		"lo: 18446744073709551616 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
		"as-long-as-names: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
		"lo:0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
	};
	struct netdev_dev dev;
	bool cut;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (netdev_parse(bad[i], strlen(bad[i]), &dev, 1, &cut) || cut)
			fail_msg("'%s' was believed", bad[i]);
	assert_int_equal(
		netdev_parse("l\0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", 42, &dev, 1, &cut), 0);
	/* Whatever its owner likes; and columns that come later. */
	assert_int_equal(netdev_parse("\xff|\"\\:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", 45,
				      &dev, 1, &cut),
			 1);
	assert_string_equal(dev.name, "\xff|\"\\");
}

static void test_softnet(void **state)
{
	struct netdev_cpu s = {0};
	uint32_t cpu = 77;

	(void)state;
	assert_true(netdev_parse_softnet(softnet_new, sizeof(softnet_new) - 2, &s, &cpu));
	assert_int_equal(cpu, 2);
	assert_true(s.known);
	assert_int_equal(s.processed, 123456);
	assert_int_equal(s.dropped, 1);
	assert_int_equal(s.squeezed, 2);
	assert_int_equal(s.flow_limit, 3);
	cpu = 77;
	assert_true(netdev_parse_softnet(softnet_old, 98, &s, &cpu));
	assert_int_equal(cpu, 77);
	assert_int_equal(s.processed, 123456);
	assert_false(netdev_parse_softnet(softnet_old, 89, &s, &cpu)); /* a column short */
	assert_false(netdev_parse_softnet("", 0, &s, &cpu));
	assert_false(netdev_parse_softnet("1 2 3 4 5 6 7 8 9 a x", 21, &s, &cpu));
	assert_false(netdev_parse_softnet("100000000 2 3 4 5 6 7 8 9 a b", 29, &s, &cpu));
	assert_false(netdev_parse_softnet("G 2 3 4 5 6 7 8 9 a b", 21, &s, &cpu));
}

static uint64_t netns(const char *text)
{
	return netdev_parse_netns(text, strlen(text));
}

static void test_netns(void **state)
{
	(void)state;
	assert_int_equal(netns("net:[4026531840]"), 4026531840);
	assert_int_equal(netns("net:[1]"), 1);
	assert_int_equal(netns("net:[]"), 0);
	assert_int_equal(netns("net:[1"), 0);
	assert_int_equal(netns("net:[1]]"), 0);
	assert_int_equal(netns("mnt:[4026531840]"), 0);
	assert_int_equal(netns("net:[99999999999999999999]"), 0);
	assert_int_equal(netns("net:["), 0);
	assert_int_equal(netns(""), 0);
}

/* All parsers over bytes that end where their memory ends. */
static void parse_all(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	struct netdev_dev devs[3];
	struct netdev_cpu cpu;
	uint32_t nr, n, i;
	bool cut;

	assert_non_null(copy);
	memcpy(copy, text, len);
	n = netdev_parse(copy, len, devs, 3, &cut);
	for (i = 0; i < n; i++)
		assert_true(devs[i].name[0] && strlen(devs[i].name) < NETDEV_NAME_MAX);
	netdev_parse_softnet(copy, len, &cpu, &nr);
	netdev_parse_netns(copy, len);
	free(copy);
}

static void test_garbage(void **state)
{
	static const char *const texts[] = {dev_text, softnet_old, softnet_new, "net:[4026531840]"};
	static const char bytes[] = "\0\n:[] -019afx|\377";

	(void)state;
	parse_garbage(texts, 4, bytes, sizeof(bytes) - 1, 8000, parse_all);
}

/* ---- A tree ------------------------------------------------------------------------------------ */

/* A process in a namespace. */
static void put_process(int pid, const char *ns)
{
	char path[PATH_MAX], name[64];

	snprintf(name, sizeof(name), "/proc/%d/ns/net", pid);
	put(name, NULL);
	snprintf(path, sizeof(path), "%s%s", root, name);
	unlink(path);
	assert_int_equal(symlink(ns, path), 0);
}

static void put_dev(int pid, const char *lines)
{
	char name[64], text[2048];

	snprintf(name, sizeof(name), "/proc/%d/net/dev", pid);
	snprintf(text, sizeof(text), HEADING "%s", lines);
	put(name, text);
}

static void test_samples(void **state)
{
	struct netdev_sample *was, *now;
	const struct netdev_dev *dev;
	struct netdev_sampler n;

	(void)state;
	put_process(7, "net:[40]");
	put_process(8, "net:[40]");
	put_process(9, "net:[41]");
	put_dev(7, "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
		   "va: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
		   "vb: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
	put_dev(9, "");
	netdev__init(&n, root);
	assert_int_equal(netdev__round(&n), -ENOENT); /* no softnet_stat, and what of it */
	was = netdev_sample__get(netdev__of(&n, 7));
	assert_non_null(was);
	assert_int_equal(was->netns, 40);
	assert_int_equal(was->n, 3);
	assert_true(was->now_ns > 0);
	assert_ptr_equal(netdev__of(&n, 8), was); /* the same namespace, read once */
	assert_int_equal(netdev__of(&n, 9)->n, 0);
	assert_null(netdev__of(&n, 10));

	/* va has gone, vb was made anew, vc has come. */
	put_dev(8, "lo: 1 2 3 5 5 6 7 8 9 10 11 12 13 14 15 16\n"
		   "vb: 1 2 2 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
		   "vc: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
	netdev__round(&n);
	now = netdev__of(&n, 8);
	assert_ptr_not_equal(now, was);
	assert_ptr_equal(netdev__of(&n, 7), now);
	dev = netdev_sample__was(was, now, 0);
	assert_string_equal(dev->name, "lo");
	assert_int_equal(netdev_since(dev->v[NETDEV_RX_DROPPED], now->devs[0].v[NETDEV_RX_DROPPED]),
			 1);
	dev = netdev_sample__was(was, now, 1);
	assert_string_equal(dev->name, "vb");
	assert_int_equal(netdev_since(dev->v[NETDEV_RX_ERRORS], now->devs[1].v[NETDEV_RX_ERRORS]),
			 2);
	assert_null(netdev_sample__was(was, now, 2));
	assert_null(netdev_sample__was(was, now, 3));
	assert_null(netdev_sample__was(NULL, now, 0));
	assert_null(netdev_sample__was(was, NULL, 0));
	assert_int_equal(n.nspaces, 2);
	netdev__round(&n);
	assert_int_equal(n.nspaces, 1); /* 41: nobody asked */
	/* The process went to another namespace, whose lo is another. */
	put_process(7, "net:[42]");
	now = netdev__of(&n, 7);
	assert_int_equal(now->netns, 42);
	assert_null(netdev_sample__was(was, now, 0));
	assert_int_equal(was->refs, 1);
	netdev_sample__put(was);
	netdev_sample__put(NULL);
	netdev__free(&n);
	netdev__free(&n);
}

static void test_many(void **state)
{
	struct netdev_sampler n;
	static char text[300 * 64];
	char ns[32];
	size_t len;
	int i;

	(void)state;
	len = (size_t)sprintf(text, HEADING);
	for (i = 0; i < 300; i++)
		len += (size_t)sprintf(text + len, "d%d: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
				       i);
	put("/proc/1/net/dev", text);
	put_process(1, "net:[1]");
	for (i = 2; i < 40; i++) {
		snprintf(ns, sizeof(ns), "net:[%d]", i);
		put_process(i, ns);
		put_dev(i, "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
	}
	netdev__init(&n, root);
	netdev__round(&n);
	assert_int_equal(netdev__of(&n, 1)->n, NETDEV_DEVICES_MAX);
	assert_true(netdev__of(&n, 1)->cut);
	assert_string_equal(netdev__of(&n, 1)->devs[255].name, "d255");
	for (i = 2; i < 40; i++)
		assert_int_equal(netdev__of(&n, i)->netns, i);
	assert_int_equal(n.nspaces, 39);
	netdev__round(&n);
	assert_int_equal(netdev__of(&n, 20)->netns, 20);
	netdev__round(&n);
	assert_int_equal(n.nspaces, 1);
	/* A process that ends has a namespace and no devices, or neither. */
	put("/proc/20/net/dev", "");
	assert_null(netdev__of(&n, 20));
	put_process(21, "/etc");
	assert_null(netdev__of(&n, 21));
	netdev__free(&n);
}

static void put_softnet(const char *text)
{
	put("/proc/net/softnet_stat", text);
}

#define ZEROS "0 0 0 0 0 0 0 "

static void test_softnet_sums(void **state)
{
	struct netdev_sampler n;

	(void)state;
	netdev__init(&n, root);
	assert_int_equal(netdev__round(&n), -ENOENT);
	assert_false(n.softnet.known);
	put_softnet("1000 0 0 " ZEROS "0 0 0\nfffffffe 5 5 " ZEROS "0 0 2\n");
	assert_int_equal(netdev__round(&n), 0);
	assert_true(n.softnet.known);
	assert_int_equal(n.softnet.processed, 0);
	/* A CPU comes, one has wrapped, and all have numbers. */
	put_softnet("1005 0 0 " ZEROS "0 0 0\n7 0 0 " ZEROS "0 0 1\n3 5 6 " ZEROS "1 0 2\n");
	assert_int_equal(netdev__round(&n), 0);
	assert_int_equal(n.softnet.processed, 10);
	assert_int_equal(n.softnet.dropped, 0);
	assert_int_equal(n.softnet.squeezed, 1);
	assert_int_equal(n.softnet.flow_limit, 1);
	put_softnet("8 1 0 " ZEROS "0 0 1\n");
	assert_int_equal(netdev__round(&n), 0);
	assert_int_equal(n.softnet.processed, 11);
	assert_int_equal(n.softnet.dropped, 1);
	/* Unreadable lines, CPUs beyond all limits. */
	put_softnet("x\n9 1 0 " ZEROS "0 0 2000\n9 1 0 " ZEROS "0 0 ffffffff\n\n");
	assert_int_equal(netdev__round(&n), 0);
	assert_int_equal(n.softnet.processed, 11);
	assert_true(n.ncpus <= NETDEV_CPUS_MAX);
	netdev__free(&n);
}

/* Before 5.10 the order of the lines tells, while it stays the same. */
static void test_softnet_order(void **state)
{
	struct netdev_sampler n;

	(void)state;
	netdev__init(&n, root);
	put_softnet("10 0 0 " ZEROS "0\n20 0 0 " ZEROS "0\n30 0 0 " ZEROS "0\n");
	netdev__round(&n);
	put_softnet("11 0 0 " ZEROS "0\n21 0 0 " ZEROS "0\n31 0 0 " ZEROS "0\n");
	netdev__round(&n);
	assert_int_equal(n.softnet.processed, 3);
	put_softnet("12 0 0 " ZEROS "0\n32 0 0 " ZEROS "0\n");
	netdev__round(&n);
	assert_int_equal(n.softnet.processed, 3);
	put_softnet("13 0 0 " ZEROS "0\n33 0 0 " ZEROS "0\n");
	netdev__round(&n);
	assert_int_equal(n.softnet.processed, 5);
	put_softnet("14 0 0 " ZEROS "0\n22 0 0 " ZEROS "0\n34 0 0 " ZEROS "0\n");
	netdev__round(&n);
	put_softnet("15 0 0 " ZEROS "0\n23 0 0 " ZEROS "0\n35 0 0 " ZEROS "0\n");
	netdev__round(&n);
	assert_int_equal(n.softnet.processed, 8);
	netdev__free(&n);
}

/* ---- This machine ------------------------------------------------------------------------------ */

/* Packets that are counted: to ourselves. */
static void send_some(int cnt)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(9),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	while (cnt--) /* what comes back, that nobody is there, is an error of every other one */
		sendto(fd, "", 1, 0, (struct sockaddr *)&to, sizeof(to));
	close(fd);
}

static const struct netdev_dev *find(const struct netdev_sample *s, const char *name)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (!strcmp(s->devs[i].name, name))
			return &s->devs[i];
	return NULL;
}

static void test_real(void **state)
{
	struct netdev_softnet softnet;
	struct netdev_sample *was;
	const struct netdev_dev *a, *b;
	struct netdev_sampler n;

	(void)state;
	netdev__init(&n, "");
	assert_int_equal(netdev__round(&n), 0);
	assert_true(n.softnet.known && n.ncpus > 0);
	was = netdev_sample__get(netdev__of(&n, getpid()));
	assert_non_null(was);
	assert_ptr_equal(netdev__of(&n, getpid()), was);
	softnet = n.softnet;
	a = find(was, "lo");
	send_some(100);
	assert_int_equal(netdev__round(&n), 0);
	b = find(netdev__of(&n, getpid()), "lo");
	if (a && b && b->v[NETDEV_TX_PACKETS] != a->v[NETDEV_TX_PACKETS]) { /* it may be down */
		assert_true(netdev_since(a->v[NETDEV_RX_PACKETS], b->v[NETDEV_RX_PACKETS]) >= 50);
		assert_true(n.softnet.processed - softnet.processed >= 50);
	}
	netdev_sample__put(was);
	assert_null(netdev__of(&n, INT_MAX));
	netdev__free(&n);
}

/* A process in a namespace of its own has devices of its own. */
static void test_real_namespace(void **state)
{
	struct netdev_sample *ours, *theirs;
	int ready[2], status;
	struct netdev_sampler n;
	char byte = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		byte = !unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET);
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	netdev__init(&n, "");
	netdev__round(&n);
	ours = netdev__of(&n, getpid());
	theirs = netdev__of(&n, pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ready[0]);
	close(ready[1]);
	if (byte) {
		assert_true(ours && theirs && ours->netns != theirs->netns);
		assert_non_null(find(theirs, "lo"));
		assert_int_equal(find(theirs, "lo")->v[NETDEV_RX_PACKETS], 0);
		assert_null(netdev_sample__was(ours, theirs, 0));
	}
	netdev__free(&n);
	if (!byte) {
		puts("skip test_real_namespace: this user may not make one");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dev),
		cmocka_unit_test(test_dev_hostile),
		cmocka_unit_test(test_softnet),
		cmocka_unit_test(test_netns),
		cmocka_unit_test(test_garbage),
		TREE_TEST(test_samples),
		TREE_TEST(test_many),
		TREE_TEST(test_softnet_sums),
		TREE_TEST(test_softnet_order),
		cmocka_unit_test(test_real),
		cmocka_unit_test(test_real_namespace),
	};

	return cmocka_run_group_tests_name("netdev", tests, NULL, NULL);
}
