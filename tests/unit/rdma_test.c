// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/node/rdma.c: ports fed with readings, trees of files in place of sysfs, with what drivers and
 * malice may put there, and this process as the user of a device. Time is ours. And
 * loader/trace/trace_rdma.c: what of that goes into a line, and when it is too much.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "rdma.h"
#include "session.h"
#include "trace_keys.h"

#define MS 1000000ULL

/* ---- Names and numbers ------------------------------------------------------------------------- */

static uint64_t parse(const char *text)
{
	size_t len = strlen(text);
	char *copy = malloc(len + 1); /* ends where its memory ends */
	uint64_t v;

	assert_non_null(copy);
	memcpy(copy, text, len);
	copy = realloc(copy, len ? len : 1);
	v = rdma_parse(copy, len);
	free(copy);
	return v;
}

static void test_parse(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"N/A (no PMA)\n",
		"-1\n",
		"+1\n",
		" 1\n",
		"1 \n",
		"1\n\n",
		"0x1f\n",
		"1.5",
		"1\n2",
		"18446744073709551616\n",
		"99999999999999999999999999999999",
	};
	size_t i;

	(void)state;
	assert_int_equal(parse("0\n"), 0);
	assert_int_equal(parse("432000\n"), 432000);
	assert_int_equal(parse("432000"), 432000);
	assert_int_equal(parse("007\n"), 7);
	assert_true(parse("18446744073709551614\n") == UINT64_MAX - 1);
	assert_true(parse("18446744073709551615\n") == RDMA_UNKNOWN);
	assert_true(rdma_parse("1\0\n", 3) == RDMA_UNKNOWN);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (parse(bad[i]) != RDMA_UNKNOWN)
			fail_msg("'%s' was believed", bad[i]);
}

static void test_names(void **state)
{
	char name[80];

	(void)state;
	assert_true(rdma_name_ok("mlx5_0") && rdma_name_ok("VL15_dropped") && rdma_name_ok("a"));
	assert_true(rdma_name_ok("bnxt_re-bond0.1"));
	assert_false(rdma_name_ok("") || rdma_name_ok(".") || rdma_name_ok("..") ||
		     rdma_name_ok(".hidden") || rdma_name_ok("a/b") || rdma_name_ok("a b") ||
		     rdma_name_ok("a\"b") || rdma_name_ok("a\n") || rdma_name_ok("\xc3\xa4"));
	assert_true(rdma_counter_name_ok("Nak Sequence Error") && rdma_counter_name_ok("a"));
	assert_false(rdma_counter_name_ok("") || rdma_counter_name_ok(" ") ||
		     rdma_counter_name_ok(" a") || rdma_counter_name_ok("a ") ||
		     rdma_counter_name_ok(".a b") || rdma_counter_name_ok("a\tb") ||
		     rdma_counter_name_ok("a/ b"));
	memset(name, 'x', sizeof(name));
	name[RDMA_NAME_MAX - 1] = 0;
	assert_true(rdma_name_ok(name));
	name[RDMA_NAME_MAX - 1] = 'x';
	name[RDMA_NAME_MAX] = 0;
	assert_false(rdma_name_ok(name));

	assert_true(rdma_is_counter("port_xmit_wait") && rdma_is_counter("lifespan_expired"));
	assert_false(rdma_is_counter("lifespan") || rdma_is_counter("active_qps") ||
		     rdma_is_counter("watermark_mrs"));
}

static void test_moved(void **state)
{
	(void)state;
	assert_int_equal(rdma_moved(5, 5, true), 0);
	assert_int_equal(rdma_moved(5, 7, false), 2);
	assert_true(rdma_moved(0, UINT64_MAX - 1, false) == UINT64_MAX - 1);
	assert_int_equal(rdma_moved(7, 5, true), 5); /* reset */
	assert_int_equal(rdma_moved(UINT32_MAX - 9, 10, true), 20);
	assert_int_equal(rdma_moved(UINT32_MAX - 9, 10, false), 10); /* would have stopped */
	assert_int_equal(rdma_moved(UINT32_MAX, 0, true), 1);
	assert_int_equal(rdma_moved(UINT32_MAX, 0, false), 0);
	assert_int_equal(rdma_moved(0xefffffff, 5, true), 5); /* too far from the edge */
	assert_int_equal(rdma_moved(1ULL << 32, 5, true), 5); /* has more bits */
	assert_int_equal(rdma_moved(UINT32_MAX, 0x10000000, true), 0x10000000);
	assert_int_equal(rdma_moved(UINT64_MAX - 1, 3, true), 3);
}

/* ---- One port ---------------------------------------------------------------------------------- */

/* All that was emitted, as text: "device/port counter=n ...;" for each port. */
struct said {
	char text[4096];
	uint64_t from_ns, to_ns;
	bool open;
};

static void say(void *arg, const struct rdma_delta *d)
{
	struct said *s = arg;
	size_t len = strlen(s->text);

	assert_int_equal(d->first, !s->open);
	assert_true(d->n > 0);
	if (d->first)
		len += (size_t)snprintf(s->text + len, sizeof(s->text) - len, "%s/%u", d->device,
					d->port);
	len += (size_t)snprintf(s->text + len, sizeof(s->text) - len, " %s=%llu%s", d->counter,
				(unsigned long long)d->n, d->last ? ";" : "");
	assert_true(len < sizeof(s->text));
	s->open = !d->last;
	s->from_ns = d->from_ns;
	s->to_ns = d->to_ns;
}

static struct said port_said(const struct rdma_port *p, uint64_t from_ms, uint64_t to_ms)
{
	struct said s = {.text = ""};
	uint32_t n = rdma_port__deltas(p, from_ms * MS, to_ms * MS, say, &s);

	assert_false(s.open);
	assert_int_equal(n > 0, s.text[0] != 0);
	return s;
}

static void assert_port(const struct rdma_port *p, uint64_t from_ms, uint64_t to_ms,
			const char *want)
{
	struct said s = port_said(p, from_ms, to_ms);

	if (strcmp(s.text, want))
		fail_msg("%llu to %llu ms: '%s', not '%s'", (unsigned long long)from_ms,
			 (unsigned long long)to_ms, s.text, want);
}

/* A sample that took 2 ms, of two counters; the second is one of hw_counters. */
static void feed(struct rdma_port *p, uint64_t ms, uint64_t data, uint64_t oos)
{
	rdma_counter__take(rdma_port__counter(p, "port_rcv_data", false), p, data);
	rdma_counter__take(rdma_port__counter(p, "out_of_sequence", true), p, oos);
	assert_int_equal(rdma_port__row(p, ms * MS, (ms + 2) * MS), 0);
}

static void test_deltas(void **state)
{
	struct rdma_port *p = rdma_port__new("mlx5_0", 1);
	struct said s;

	(void)state;
	assert_port(p, 0, 1000, "");
	feed(p, 100, 5000, 7);
	assert_port(p, 0, 1000, "");
	feed(p, 200, 6000, 7);
	feed(p, 300, 6000, 9);
	feed(p, 400, 6500, 9);
	/* From the last sample that was over to the first that had not begun. */
	assert_port(p, 202, 300, "mlx5_0/1 out_of_sequence=2;");
	assert_port(p, 201, 300, "mlx5_0/1 port_rcv_data=1000 out_of_sequence=2;");
	assert_port(p, 202, 301, "mlx5_0/1 port_rcv_data=500 out_of_sequence=2;");
	assert_port(p, 250, 251, "mlx5_0/1 out_of_sequence=2;");
	assert_port(p, 302, 302, "mlx5_0/1 port_rcv_data=500;");
	/* As far as there are any. */
	assert_port(p, 0, 90, "");
	assert_port(p, 0, 150, "mlx5_0/1 port_rcv_data=1000;");
	assert_port(p, 310, 9999, "mlx5_0/1 port_rcv_data=500;");
	assert_port(p, 402, 9999, "");
	assert_port(p, 9000, 9999, "");
	assert_port(p, 300, 100, ""); /* no interval at all */
	s = port_said(p, 250, 260);
	assert_int_equal(s.from_ns, 200 * MS);
	assert_int_equal(s.to_ns, 302 * MS);
	rdma_port__free(p);
	rdma_port__free(NULL);
}

/* What a driver tells may be 12 ms old, and a jiffy. */
static void test_age(void **state)
{
	struct rdma_port *p = rdma_port__new("r0", 1);

	(void)state;
	p->age_ns = 22 * MS;
	feed(p, 10, 0, 0);
	feed(p, 110, 0, 1);
	feed(p, 210, 0, 3);
	assert_port(p, 20, 88, "r0/1 out_of_sequence=1;");
	assert_port(p, 20, 89, "r0/1 out_of_sequence=3;");
	p->age_ns = 300 * MS; /* somebody has set it: rows stay in order */
	feed(p, 310, 0, 7);
	assert_port(p, 20, 89, "r0/1 out_of_sequence=3;");
	assert_port(p, 20, 189, "r0/1 out_of_sequence=7;");
	rdma_port__free(p);
}

static void test_resets(void **state)
{
	struct rdma_port *p = rdma_port__new("mlx5_0", 2);

	(void)state;
	feed(p, 0, UINT32_MAX - 4, UINT32_MAX - 4);
	feed(p, 100, UINT32_MAX, 5);
	feed(p, 200, 30, 5);
	assert_port(p, 10, 90, "mlx5_0/2 port_rcv_data=4 out_of_sequence=10;");
	assert_port(p, 110, 190, "mlx5_0/2 port_rcv_data=30;");
	assert_port(p, 10, 190, "mlx5_0/2 port_rcv_data=34 out_of_sequence=10;");
	feed(p, 300, RDMA_UNKNOWN, 4);
	feed(p, 400, 31, 4);
	assert_port(p, 210, 290, "mlx5_0/2 out_of_sequence=4;");
	assert_port(p, 310, 390, "mlx5_0/2 port_rcv_data=1;"); /* where it was seen */
	rdma_port__free(p);
}

static void test_late_counter(void **state)
{
	struct rdma_port *p = rdma_port__new("mlx5_0", 1);

	(void)state;
	feed(p, 0, 1, 1);
	rdma_counter__take(rdma_port__counter(p, "new", true), p, 500);
	feed(p, 100, 1, 1);
	rdma_counter__take(rdma_port__counter(p, "new", true), p, 502);
	feed(p, 200, 1, 1);
	assert_port(p, 0, 100, ""); /* what it had before is not of this time */
	assert_port(p, 0, 200, "mlx5_0/1 new=2;");
	rdma_port__free(p);
}

/* Linux 7.2's rxe has link_downed in both folders. */
static void test_twins(void **state)
{
	struct rdma_port *p = rdma_port__new("rxe0", 1);
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		rdma_counter__take(rdma_port__counter(p, "link_downed", true), p, (uint64_t)i * 2);
		rdma_counter__take(rdma_port__counter(p, "symbol_error", false), p, (uint64_t)i);
		rdma_counter__take(rdma_port__counter(p, "link_downed", false), p, (uint64_t)i);
		rdma_counter__take(rdma_port__counter(p, "symbol_error", true), p, (uint64_t)i * 2);
		assert_int_equal(rdma_port__row(p, (uint64_t)i * MS, (uint64_t)i * MS), 0);
	}
	assert_int_equal(p->ncounters, 4);
	assert_port(p, 0, 9,
		    "rxe0/1 hw_link_downed=2 symbol_error=1 link_downed=1 hw_symbol_error=2;");
	rdma_port__free(p);
}

static char *nr_name(int i)
{
	static char name[32];

	snprintf(name, sizeof(name), "c%d", i);
	return name;
}

/* Room for more counters takes rows away, and only the oldest ones. */
static void test_room(void **state)
{
	struct rdma_port *p = rdma_port__new("mlx5_0", 1);
	uint64_t kept;
	int i;

	(void)state;
	for (i = 0; i < 2000; i++)
		feed(p, (uint64_t)i * 100, (uint64_t)i, 0);
	assert_int_equal(p->rows_max, RDMA_ROWS);
	assert_int_equal(p->nrows - p->oldest, RDMA_ROWS);
	assert_port(p, 0, 1000000, "mlx5_0/1 port_rcv_data=639;");
	assert_port(p, 199810, 199890, "mlx5_0/1 port_rcv_data=1;");
	assert_port(p, 0, 1000, ""); /* forgotten */

	for (i = 0; i < 100; i++)
		assert_non_null(rdma_port__counter(p, nr_name(i), true));
	assert_true(p->rows_max < RDMA_ROWS);
	kept = p->nrows - p->oldest;
	assert_int_equal(kept, p->rows_max);
	assert_int_equal(port_said(p, 0, 1000000).to_ns, 199902 * MS);
	assert_port(p, 199810, 199890, "mlx5_0/1 port_rcv_data=1;");
	feed(p, 200000, 2000, 0);
	assert_int_equal(p->nrows - p->oldest, kept);
	assert_port(p, 199910, 200000, "mlx5_0/1 port_rcv_data=1;");

	for (i = 0; p->ncounters < RDMA_COUNTERS_MAX; i++)
		assert_non_null(rdma_port__counter(p, nr_name(i), true));
	assert_null(rdma_port__counter(p, "one_too_many", true));
	assert_non_null(rdma_port__counter(p, "c0", true));
	feed(p, 200100, 2001, 0);
	assert_port(p, 199910, 200100, "mlx5_0/1 port_rcv_data=2;");
	assert_true(p->rows_max * (sizeof(struct rdma_row) + p->cap * 8) <= RDMA_ROW_BYTES);
	rdma_port__free(p);
}

/* ---- Any samples, any interval: against sums of our own -------------------------------------------- */

#define MODEL_ROWS 400
#define MODEL_CNT  40

static uint64_t random_seed = 88172645463325252ULL;

static uint64_t rnd(uint64_t below)
{
	random_seed ^= random_seed << 13;
	random_seed ^= random_seed >> 7;
	random_seed ^= random_seed << 17;
	return (random_seed >> 11) % below;
}

struct model {
	uint64_t begin[MODEL_ROWS], end[MODEL_ROWS], sum[MODEL_ROWS][MODEL_CNT];
	uint64_t got[MODEL_CNT];
};

static void model_say(void *arg, const struct rdma_delta *d)
{
	struct model *m = arg;
	int i = atoi(d->counter + 1);

	assert_true(i < MODEL_CNT && !m->got[i]);
	m->got[i] = d->n;
}

/* Counters that move, stand still, wrap, are reset, cannot be read. */
static void model_feed(struct model *m, struct rdma_port *p)
{
	uint64_t raw[MODEL_CNT] = {0}, sum[MODEL_CNT] = {0}, pending[MODEL_CNT] = {0}, now = 0;
	struct rdma_counter *c;
	int row, i;

	for (row = 0; row < MODEL_ROWS; row++) {
		m->begin[row] = now += rnd(1000);
		m->end[row] = now += rnd(10);
		for (i = 0; i < MODEL_CNT; i++) {
			uint64_t by = i % 3 ? rnd(3) : rnd(200000000);

			if (!row)
				by = 0;
			raw[i] += by;
			pending[i] += by;
			if (i % 5 == 0)
				raw[i] &= UINT32_MAX; /* by less than 2^28 at a time */
			c = rdma_port__counter(p, nr_name(i), true);
			if (i % 5 && i % 4 == 0 && row && rnd(8) == 0) {
				rdma_counter__take(c, p, RDMA_UNKNOWN);
			} else {
				rdma_counter__take(c, p, raw[i]);
				sum[i] += pending[i];
				pending[i] = 0;
			}
			m->sum[row][i] = sum[i];
		}
		assert_int_equal(rdma_port__row(p, m->begin[row], m->end[row]), 0);
	}
}

static void test_model(void **state)
{
	struct rdma_port *p = rdma_port__new("any", 1);
	static struct model m;
	uint64_t from, to;
	int k, a, b, i;

	(void)state;
	model_feed(&m, p);
	for (k = 0; k < 20000; k++) {
		from = rnd(m.end[MODEL_ROWS - 1] + 1000);
		to = from + rnd(k % 2 ? 3000 : 300000);
		for (a = MODEL_ROWS - 1; a && m.end[a] > from; a--)
			;
		for (b = 0; b < MODEL_ROWS - 1 && m.begin[b] < to; b++)
			;
		memset(m.got, 0, sizeof(m.got));
		rdma_port__deltas(p, from, to, model_say, &m);
		for (i = 0; i < MODEL_CNT; i++)
			assert_int_equal(m.got[i], a < b ? m.sum[b][i] - m.sum[a][i] : 0);
	}
	rdma_port__free(p);
}

/* ---- A tree ------------------------------------------------------------------------------------ */

static char root[256];
static uint64_t now_ns, step_ns;

/* Every look at the clock takes step_ns. */
static uint64_t fake_clock(void)
{
	return now_ns += step_ns;
}

static const char *in_root(const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", root, name);
	return path;
}

/* Makes a file below the root, and the folders above it; one that is there keeps its inode. */
static void put(const char *name, const char *text)
{
	char path[2 * PATH_MAX], *p;
	int fd;

	strcpy(path, in_root(name));
	for (p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		assert_true(!mkdir(path, 0755) || errno == EEXIST);
		*p = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void take_away(const char *name)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf '%s%s'", root, name);
	assert_int_equal(system(command), 0);
}

#define PORT "/sys/class/infiniband/mlx5_0/ports/1/"

static int tree_setup(void **state)
{
	char name[] = "/tmp/ncclscope-rdma-XXXXXX", *path;

	(void)state;
	if (!mkdtemp(name))
		return -1;
	path = realpath(name, NULL);
	snprintf(root, sizeof(root), "%s", path);
	free(path);
	now_ns = 1000000 * MS;
	step_ns = 0;
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
	put("/dev/infiniband/uverbs0", "");
	return 0;
}

static int tree_teardown(void **state)
{
	(void)state;
	take_away("");
	return 0;
}

static void begin(struct rdma *r)
{
	assert_int_equal(rdma__init(r, root), 0);
	r->clock = fake_clock;
}

static int open_device(const char *name)
{
	int fd = open(in_root(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* What the loop of record does, every 50 ms. */
static void run_ms(struct rdma *r, struct rdma_user *u, uint64_t ms)
{
	uint64_t end = now_ns + ms * MS;

	while (now_ns < end) {
		now_ns += 50 * MS;
		assert_int_equal(rdma__look(r, u, getpid()), 0);
		rdma__sample(r);
	}
}

static void assert_said(const struct rdma *r, uint64_t devices, uint64_t ago_ms, const char *want)
{
	struct said s = {.text = ""};
	uint32_t n = rdma__deltas(r, devices, now_ns - ago_ms * MS, now_ns, say, &s);

	if (strcmp(s.text, want))
		fail_msg("'%s', not '%s'", s.text, want);
	assert_int_equal(n > 0, want[0] != 0);
}

static void test_tree(void **state)
{
	struct said s = {.text = ""};
	struct rdma_user u = {0};
	struct rdma r;
	int fd, i;

	(void)state;
	put(PORT "counters/port_xmit_data", "1000\n");
	put(PORT "counters/symbol_error", "N/A (no PMA)\n");
	put(PORT "hw_counters/out_of_sequence", "4294967290\n");
	put(PORT "hw_counters/lifespan", "10\n");
	put(PORT "hw_counters/active_qps", "5\n");
	put(PORT "state", "4: ACTIVE\n");
	put("/sys/class/infiniband/mlx5_1/ports/1/counters/port_xmit_data", "1\n");
	begin(&r);
	run_ms(&r, &u, 2000);
	assert_true(u.devices == 0 && r.nports == 0 && r.samples == 0); /* nobody has it open */

	fd = open_device("/dev/infiniband/uverbs0");
	run_ms(&r, &u, 2000);
	assert_int_equal(u.devices, 1);
	assert_string_equal(r.devices[0].name, "mlx5_0");
	assert_int_equal(r.nports, 1);
	assert_int_equal(r.ports[0]->ncounters, 3);
	assert_int_equal(r.ports[0]->age_ns, 20 * MS);
	assert_in_range(r.samples, 8, 20);
	for (i = 0; i < 3; i++)
		assert_int_equal(r.ports[0]->counters[i].failed,
				 !strcmp(r.ports[0]->counters[i].label, "hw_symbol_error"));
	assert_said(&r, u.devices, 2000, "");

	put(PORT "counters/port_xmit_data", "1250\n");
	put(PORT "hw_counters/out_of_sequence", "4\n");
	put(PORT "hw_counters/active_qps", "9\n");
	run_ms(&r, &u, 200);
	assert_int_equal(rdma__deltas(&r, 1, now_ns - 1000 * MS, now_ns, say, &s), 2);
	assert_non_null(strstr(s.text, " port_xmit_data=250")); /* in the folder's order */
	assert_non_null(strstr(s.text, " out_of_sequence=10"));
	put(PORT "counters/symbol_error", "3\n"); /* can be read now: from here on */
	run_ms(&r, &u, 1200);
	put(PORT "counters/symbol_error", "5\n");
	run_ms(&r, &u, 300);
	assert_said(&r, 1, 400, "mlx5_0/1 symbol_error=2;");
	assert_said(&r, 2, 400, "");
	assert_said(&r, 0, 400, "");
	assert_false(r.cut);
	close(fd);
	rdma__free(&r);
	rdma__free(&r);
}

static bool is_read(const struct rdma *r)
{
	uint32_t i, c;

	for (i = 0; i < r->nports; i++)
		for (c = 0; c < r->ports[i]->ncounters; c++)
			if (r->ports[i]->counters[c].fd >= 0)
				return true;
	return false;
}

/* What is not used any more is not read, but told of for as long as it is remembered. */
static void test_unused(void **state)
{
	struct rdma_user u = {0};
	struct rdma r;
	int fd = open_device("/dev/infiniband/uverbs0");

	(void)state;
	put(PORT "counters/port_xmit_data", "1000\n");
	begin(&r);
	run_ms(&r, &u, 1000);
	put(PORT "counters/port_xmit_data", "1001\n");
	run_ms(&r, &u, 1000);
	close(fd);
	run_ms(&r, &u, 5000);
	assert_false(is_read(&r));
	assert_int_equal(u.devices, 1);
	assert_said(&r, 1, 7000, "mlx5_0/1 port_xmit_data=1;");
	/* Others used it meanwhile: that is not ours. */
	put(PORT "counters/port_xmit_data", "2000\n");
	fd = open_device("/dev/infiniband/uverbs0");
	run_ms(&r, &u, 2000);
	assert_true(is_read(&r));
	assert_said(&r, 1, 2000, "");
	put(PORT "counters/port_xmit_data", "2003\n");
	run_ms(&r, &u, 300);
	assert_said(&r, 1, 2000, "mlx5_0/1 port_xmit_data=3;");
	assert_said(&r, 1, 9000, "mlx5_0/1 port_xmit_data=4;");
	close(fd);
	run_ms(&r, &u, 70000);
	assert_int_equal(r.nports, 0);
	assert_said(&r, 1, 80000, "");
	rdma__free(&r);
}

static void test_vanish(void **state)
{
	struct rdma_user u = {0};
	struct rdma r;
	int fd = open_device("/dev/infiniband/uverbs0");

	(void)state;
	put(PORT "counters/port_xmit_data", "1000\n");
	begin(&r);
	run_ms(&r, &u, 1000);
	take_away("/sys/class/infiniband/mlx5_0/ports/1");
	run_ms(&r, &u, 2000);
	assert_false(is_read(&r));
	/* It is back, as a new one; with another port. */
	put(PORT "counters/port_xmit_data", "5\n");
	put("/sys/class/infiniband/mlx5_0/ports/2/hw_counters/rx_pkts", "7\n");
	run_ms(&r, &u, 2000);
	assert_int_equal(r.nports, 2);
	assert_said(&r, 1, 9000, "");
	put(PORT "counters/port_xmit_data", "6\n");
	run_ms(&r, &u, 300);
	assert_said(&r, 1, 9000, "mlx5_0/1 port_xmit_data=1;");
	/* A file that is replaced, between two looks at the folder: its counter was reset. */
	take_away(PORT "counters/port_xmit_data");
	put(PORT "counters/port_xmit_data", "2\n");
	run_ms(&r, &u, 1500);
	assert_said(&r, 1, 1500, "mlx5_0/1 port_xmit_data=2;");
	/* All of it goes, and the root with it. */
	take_away("");
	run_ms(&r, &u, 2000);
	assert_false(is_read(&r));
	assert_said(&r, 1, 3500, "mlx5_0/1 port_xmit_data=2;");
	close(fd);
	rdma__free(&r);
}

static void test_nothing(void **state)
{
	struct rdma_user u = {0};
	struct rdma r;
	int fd;

	(void)state;
	take_away("/sys");
	begin(&r);
	fd = open_device("/dev/infiniband/uverbs0");
	run_ms(&r, &u, 3000);
	assert_int_equal(u.devices, 0);
	assert_said(&r, UINT64_MAX, 3000, "");
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
	run_ms(&r, &u, 2000); /* a device without a folder */
	assert_int_equal(u.devices, 1);
	assert_int_equal(r.nports, 0);
	assert_true(r.devices[0].elsewhere);
	put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	run_ms(&r, &u, 2000); /* a port without counters */
	assert_false(r.devices[0].elsewhere);
	assert_int_equal(r.samples, 0);
	put(PORT "counters", "a file\n");
	put(PORT "hw_counters/lifespan", "10\n");
	run_ms(&r, &u, 2000);
	assert_int_equal(r.samples, 0);
	assert_false(is_read(&r));
	close(fd);
	memset(&u, 0, sizeof(u));
	assert_int_equal(rdma__look(&r, &u, INT_MAX), -ENOENT);
	rdma__free(&r);

	take_away("");
	assert_int_equal(rdma__init(&r, root), -ENOENT);
	rdma__free(&r);
}

static void link_to(const char *to, const char *name)
{
	assert_int_equal(symlink(to, in_root(name)), 0);
}

/* Inside, sysfs' own links lead to the device; none leads out. */
static void test_links(void **state)
{
	struct rdma_user u = {0};
	char path[PATH_MAX + 64];
	struct rdma r;
	int fd = open_device("/dev/infiniband/uverbs0");

	(void)state;
	put("/sys/devices/pci0/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1\n");
	assert_int_equal(mkdir(in_root("/sys/class/infiniband"), 0755), 0);
	link_to("../../devices/pci0/infiniband/mlx5_0", "/sys/class/infiniband/mlx5_0");
	begin(&r);
	run_ms(&r, &u, 1000);
	assert_true(is_read(&r));
	rdma__free(&r);

	/* Out by "..", by an absolute path, even if it comes back. */
	assert_int_equal(unlink(in_root("/sys/class/infiniband/mlx5_0")), 0);
	snprintf(path, sizeof(path), "../../..%s/../%s/sys/devices/pci0/infiniband/mlx5_0", "/..",
		 strrchr(root, '/') + 1);
	link_to(path, "/sys/class/infiniband/mlx5_0");
	begin(&r);
	run_ms(&r, &u, 1000);
	assert_int_equal(r.nports, 0);
	assert_int_equal(unlink(in_root("/sys/class/infiniband/mlx5_0")), 0);
	snprintf(path, sizeof(path), "%s/sys/devices/pci0/infiniband/mlx5_0", root);
	link_to(path, "/sys/class/infiniband/mlx5_0");
	run_ms(&r, &u, 1500);
	assert_int_equal(r.nports, 0);
	rdma__free(&r);

	/* Below the device there are no links. */
	take_away("/sys/class/infiniband/mlx5_0");
	put(PORT "state", "");
	link_to("../../../../../devices/pci0/infiniband/mlx5_0/ports/1/counters", PORT "counters");
	assert_int_equal(mkdir(in_root(PORT "hw_counters"), 0755), 0);
	link_to("../state", PORT "hw_counters/rx_pkts");
	link_to("/etc/hostname", PORT "hw_counters/tx_pkts");
	begin(&r);
	run_ms(&r, &u, 1000);
	assert_int_equal(r.nports, 1);
	assert_false(is_read(&r));
	rdma__free(&r);
	close(fd);
}

static void test_hostile_files(void **state)
{
	struct rdma_user u = {0};
	char name[PATH_MAX], text[70000];
	struct rdma r;
	int fd = open_device("/dev/infiniband/uverbs0"), i;

	(void)state;
	memset(text, '9', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	put(PORT "counters/long", text);
	put(PORT "counters/empty", "");
	put(PORT "counters/space at the end ", "1\n");
	put(PORT "counters/quote\"", "1\n");
	put(PORT "counters/.hidden", "1\n");
	put(PORT "counters/folder/file", "1\n");
	snprintf(name, sizeof(name), PORT "counters/%.70s", text);
	put(name, "1\n");
	assert_int_equal(mkfifo(in_root(PORT "counters/fifo"), 0600), 0);
	put("/sys/class/infiniband/mlx5_0/ports/01/counters/port_xmit_data", "1\n");
	put("/sys/class/infiniband/mlx5_0/ports/4294967296/counters/port_xmit_data", "1\n");
	put("/sys/class/infiniband/mlx5_0/ports/x/counters/port_xmit_data", "1\n");
	put("/sys/class/infiniband/mlx5_0/ports/3", "a file\n");
	put(PORT "hw_counters/lifespan", "99999999\n");
	put(PORT "hw_counters/rx_pkts", "1\n");
	begin(&r);
	run_ms(&r, &u, 2000);
	assert_int_equal(r.nports, 1);
	assert_int_equal(r.ports[0]->ncounters, 3);
	assert_int_equal(r.ports[0]->age_ns, 0);
	put(PORT "counters/empty", "1\n");
	put(PORT "hw_counters/rx_pkts", "x\n");
	run_ms(&r, &u, 2000);
	put(PORT "counters/empty", "2\n");
	put(PORT "hw_counters/rx_pkts", "2\n");
	run_ms(&r, &u, 1200);
	assert_false(r.cut);

	/* More of everything than there is room for. */
	for (i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), PORT "counters/c%d", i);
		put(name, "1\n");
	}
	run_ms(&r, &u, 1500);
	assert_true(r.cut);
	assert_int_equal(r.ports[0]->ncounters, RDMA_COUNTERS_MAX);
	r.cut = false;
	take_away("/sys/class/infiniband/mlx5_0/ports/1");
	for (i = 0; i < 70; i++) {
		snprintf(name, sizeof(name),
			 "/sys/class/infiniband/mlx5_0/ports/%d/counters/symbol_error", i + 10);
		put(name, "1\n");
	}
	run_ms(&r, &u, 1500);
	assert_true(r.cut);
	assert_int_equal(r.nports, RDMA_PORTS_MAX);
	close(fd);
	rdma__free(&r);
}

/* What a process may have open that is no device, and what sysfs may say of one. */
static void test_hostile_users(void **state)
{
	static const char *const names[] = {"../mlx5_0\n", "mlx5_0 \n", "",	   "\n",
					    "a/b\n",	   ".\n",	"mlx5\n_0"};
	static const char *const files[] = {
		"/dev/infiniband/uverbs",    "/dev/infiniband/uverbs00",
		"/dev/infiniband/uverbs0x",  "/dev/infiniband/uverbs-0",
		"/dev/infiniband/umad0",     "/dev/infiniband/rdma_cm",
		"/x/dev/infiniband/uverbs0", "/dev/infiniband/uverbs99999999999999999999",
		"/dev/infiniband/uverbs9",
	};
	struct rdma_user u = {0};
	char name[80];
	struct rdma r;
	size_t i;
	int fd;

	(void)state;
	put("/sys/class/infiniband_verbs/uverbs00/ibdev", "mlx5_0\n");
	put("/sys/class/infiniband_verbs/uverbs9/none", "");
	begin(&r);
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		put(files[i], "");
		fd = open_device(files[i]);
		run_ms(&r, &u, 1100);
		if (u.devices)
			fail_msg("'%s' is no device", files[i]);
		close(fd);
	}
	fd = open_device("/dev/infiniband/uverbs0");
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		put("/sys/class/infiniband_verbs/uverbs0/ibdev", names[i]);
		run_ms(&r, &u, 1100);
		if (u.devices)
			fail_msg("'%s' was believed", names[i]);
	}
	memset(name, 'x', sizeof(name));
	name[RDMA_NAME_MAX] = 0;
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", name);
	run_ms(&r, &u, 1100);
	assert_int_equal(u.devices, 0);
	name[RDMA_NAME_MAX - 1] = 0;
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", name);
	run_ms(&r, &u, 1100);
	assert_int_equal(u.devices, 1);
	assert_string_equal(r.devices[0].name, name);
	/* The file that a descriptor is of has gone. */
	close(fd);
	fd = open_device("/dev/infiniband/uverbs0");
	take_away("/dev");
	u.devices = 0;
	run_ms(&r, &u, 1100);
	assert_int_equal(u.devices, 0);
	close(fd);
	rdma__free(&r);
}

/*
 * Devices come and go; 64 fit into a set, and places are given again when nobody can ask for
 * what was there.
 */
static void test_many_devices(void **state)
{
	struct rdma_user u = {0}, later = {0};
	int fds[RDMA_DEVICES_MAX + 2], i;
	char name[64], text[64];
	struct rdma r;

	(void)state;
	for (i = 0; i < RDMA_DEVICES_MAX + 2; i++) {
		snprintf(name, sizeof(name), "/dev/infiniband/uverbs%d", i);
		put(name, "");
		fds[i] = open_device(name);
		snprintf(name, sizeof(name), "/sys/class/infiniband_verbs/uverbs%d/ibdev", i);
		snprintf(text, sizeof(text), "mlx5_%d\n", i);
		put(name, text);
	}
	begin(&r);
	run_ms(&r, &u, 1000);
	assert_true(u.devices == UINT64_MAX);
	assert_true(r.cut);
	for (i = 0; i < RDMA_DEVICES_MAX + 1; i++)
		close(fds[i]);
	run_ms(&r, &later, 1100);
	assert_int_equal(later.devices, 0);
	run_ms(&r, &later, 70000);
	assert_true(later.devices && !(later.devices & (later.devices - 1)));
	assert_string_equal(r.devices[__builtin_ctzll(later.devices)].name, "mlx5_65");
	close(fds[RDMA_DEVICES_MAX + 1]);
	rdma__free(&r);
}

/* A place that was never given away comes first: who had the old one keeps its number. */
static void test_places(void **state)
{
	struct rdma_user u = {0};
	struct rdma r;
	int fd = open_device("/dev/infiniband/uverbs0");

	(void)state;
	begin(&r);
	run_ms(&r, &u, 1000);
	assert_int_equal(u.devices, 1);
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_1\n");
	run_ms(&r, &u, 100000);
	assert_int_equal(u.devices, 3);
	assert_string_equal(r.devices[0].name, "mlx5_0");
	close(fd);
	rdma__free(&r);
}

/* That nothing moved is known, or it is not; and at the end there is a sample of what came last. */
static void test_known(void **state)
{
	int fd = open_device("/dev/infiniband/uverbs0");
	struct rdma_user u = {0};
	uint64_t begin_ns;
	struct rdma r;

	(void)state;
	put(PORT "counters/symbol_error", "N/A (no PMA)\n");
	begin(&r);
	run_ms(&r, &u, 1000);
	begin_ns = now_ns;
	run_ms(&r, &u, 5000);
	put(PORT "counters/port_xmit_data", "1\n");
	assert_false(rdma__known(&r, 0, begin_ns));
	run_ms(&r, &u, 2000);
	assert_true(rdma__known(&r, u.devices, begin_ns));
	assert_false(rdma__known(&r, 2, begin_ns));
	assert_false(rdma__known(&r, u.devices, now_ns + MS));
	assert_said(&r, 1, 2000, "");

	put(PORT "counters/port_xmit_data", "4\n");
	now_ns += MS;
	assert_false(rdma__sample(&r));
	r.next_ns = 0;
	assert_true(rdma__sample(&r));
	assert_said(&r, 1, 1, "mlx5_0/1 port_xmit_data=3;");
	now_ns += 50 * MS;
	assert_false(rdma__sample(&r));
	close(fd);
	rdma__free(&r);
}

/* A machine whose files take long is asked less often. */
static void test_cost(void **state)
{
	struct rdma_user u = {0};
	int fd = open_device("/dev/infiniband/uverbs0");
	uint64_t begin_ns;
	struct rdma r;

	(void)state;
	put(PORT "counters/port_xmit_data", "1\n");
	begin(&r);
	run_ms(&r, &u, 1000);
	r.samples = r.cost_ns = r.max_cost_ns = 0;
	run_ms(&r, &u, 10000);
	assert_int_equal(r.samples, 100);
	assert_int_equal(r.cost_ns, 0);

	step_ns = 20 * MS; /* and so a sample of one port 60 ms */
	r.samples = r.cost_ns = r.max_cost_ns = 0;
	begin_ns = now_ns;
	while (now_ns < begin_ns + 30000 * MS)
		run_ms(&r, &u, 50);
	assert_in_range(r.samples, 10, 30);
	assert_in_range(r.cost_ns, 1, (now_ns - begin_ns) / RDMA_COST + r.max_cost_ns);
	step_ns = 0;
	begin_ns = r.samples;
	run_ms(&r, &u, 4000); /* and as often as before when it is fast again */
	assert_in_range(r.samples - begin_ns, 25, 40);
	close(fd);
	rdma__free(&r);
}

/* A low limit of descriptors is not used up. */
static void test_files(void **state)
{
	struct rdma_user u = {0};
	int fd = open_device("/dev/infiniband/uverbs0"), i, n = 0;
	struct rlimit was, limit;
	char name[PATH_MAX];
	struct rdma r;

	(void)state;
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), PORT "counters/c%d", i);
		put(name, "1\n");
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	limit = (struct rlimit){.rlim_cur = 64, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	begin(&r);
	run_ms(&r, &u, 3000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	for (i = 0; i < 100; i++)
		n += r.ports[0]->counters[i].fd >= 0;
	assert_int_equal(n, 32);
	assert_true(r.cut);
	run_ms(&r, &u, 1500);
	for (i = 0, n = 0; i < 100; i++)
		n += r.ports[0]->counters[i].fd >= 0;
	assert_int_equal(n, 100);
	close(fd);
	rdma__free(&r);
}

/* What is behind 5,000 other descriptors is found after a while, and none of the looks goes through all of them. */
static void test_many_descriptors(void **state)
{
	enum { FIRST = 100, LAST = 5100 };
	struct rdma_user u = {0};
	struct rlimit was, limit;
	struct rdma r;
	int fd, i;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	limit = (struct rlimit){.rlim_cur = LAST + 100, .rlim_max = was.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		printf("skip test_many_descriptors: %s\n", strerror(errno));
		return;
	}
	put(PORT "counters/port_xmit_data", "1\n");
	fd = open_device("/dev/infiniband/uverbs0");
	assert_int_equal(dup2(fd, LAST), LAST);
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (i = FIRST; i < LAST; i++)
		assert_int_equal(dup2(fd, i), i);
	begin(&r);
	for (i = 0; i < 4; i++) {
		run_ms(&r, &u, 50);
		assert_int_equal(u.devices, 0);
	}
	run_ms(&r, &u, 50);
	assert_int_equal(u.devices, 1);
	for (i = 0; i < 20; i++) { /* and stays so */
		run_ms(&r, &u, 500);
		assert_true(is_read(&r));
	}
	close(LAST);
	run_ms(&r, &u, 6000);
	assert_false(is_read(&r));
	for (i = FIRST; i < LAST; i++)
		close(i);
	close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	rdma__free(&r);
}

/* Looks at many processes have a share of the time together, and each of them its turn. */
static void test_share(void **state)
{
	static struct rdma_user u[100];
	uint64_t begin_ns, was, looks = 0, turn;
	struct rdma r;
	int i, at = 0, err;

	(void)state;
	begin(&r);
	step_ns = MS; /* and so much is a look */
	for (begin_ns = now_ns; now_ns < begin_ns + 20000 * MS; now_ns += 50 * MS) {
		for (i = 0, err = 0, turn = 0; i < 100 && !err; i++) {
			was = u[at].next_ns;
			err = rdma__look(&r, &u[at], getpid());
			turn += u[at].next_ns != was;
			if (!err)
				at = (at + 1) % 100;
		}
		assert_true(!err || err == -EAGAIN);
		assert_true(turn <= 2 * RDMA_TURN_NS / MS);
		looks += turn;
	}
	assert_in_range(looks, 200, (now_ns - begin_ns) / RDMA_COST / MS + 10);
	for (i = 0; i < 100; i++)
		assert_true(u[i].next_ns > now_ns - 5000 * MS);
	step_ns = 0;
	rdma__free(&r);
}

/* ---- In a line --------------------------------------------------------------------------------- */

#define LINE_FROM 10
#define LINE_TO	  20

/* Counters of that name, followed by their number, which have moved by twice that and one. */
static void line_port(struct rdma *r, uint32_t place, const char *device, uint32_t nr,
		      const char *name, int counters)
{
	struct rdma_port *p = rdma_port__new(device, nr);
	char text[RDMA_NAME_MAX + 16];
	uint64_t reading;
	int time, i;

	for (time = 0; time < 2; time++) {
		for (i = 0; i < counters; i++) {
			snprintf(text, sizeof(text), "%s%d", name, i);
			reading = time ? (uint64_t)i * 2 + 1 : 0;
			rdma_counter__take(rdma_port__counter(p, text, true), p, reading);
		}
		assert_int_equal(rdma_port__row(p, time ? LINE_TO : 0, time ? LINE_TO : 0), 0);
	}
	p->place = place;
	snprintf(r->devices[place].name, sizeof(r->devices[place].name), "%s", device);
	r->ports[r->nports++] = p;
}

/* What put_rdma() writes, a string that is ours until the next call; NULL: it says nothing. */
static const char *line(struct session *s, uint64_t devices, uint64_t from, uint64_t to)
{
	static char *text;
	struct proc p = {.session = s, .rdma.devices = devices};
	struct json j;

	free(text);
	text = malloc(RDMA_EVENT_MAX + 1); /* ends where its memory ends */
	assert_non_null(text);
	j = (struct json){.at = text, .end = text + RDMA_EVENT_MAX};
	if (!put_rdma(&j, ",\"rdma\":", &p, from, to, RDMA_EVENT_MAX)) {
		assert_ptr_equal(j.at, text);
		return NULL;
	}
	assert_true(j.at <= j.end);
	*j.at = 0;
	return text;
}

static void line_free(struct session *s)
{
	rdma__free(&s->rdma);
	free(s);
}

static void test_line(void **state)
{
	struct session *s = calloc(1, sizeof(*s));

	(void)state;
	assert_int_equal(rdma__init(&s->rdma, ""), 0);
	assert_null(line(s, UINT64_MAX, LINE_FROM, LINE_TO));
	line_port(&s->rdma, 0, "mlx5_0", 1, "a", 2);
	line_port(&s->rdma, 0, "mlx5_0", 2, "b", 0);
	line_port(&s->rdma, 3, "mlx5_3", 1, "c", 1);
	line_port(&s->rdma, 4, "mlx5_4", 1, "d", 1);
	assert_string_equal(
		line(s, 9, LINE_FROM, LINE_TO),
		",\"rdma\":[{\"device\":\"mlx5_0\",\"port\":1,\"counters\":{\"a0\":1,"
		"\"a1\":3}},{\"device\":\"mlx5_3\",\"port\":1,\"counters\":{\"c0\":1}}]");
	assert_null(line(s, 0, LINE_FROM, LINE_TO));
	assert_null(line(s, 2, LINE_FROM, LINE_TO));
	assert_null(line(s, 9, LINE_TO, LINE_TO + 5)); /* nothing moved */
	line_free(s);
}

/* How often `what` is in the text. */
static int times(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* What practice has fits. */
static void test_line_usual(void **state)
{
	struct session *s = calloc(1, sizeof(*s));
	char device[16];
	const char *text;
	int i;

	(void)state;
	assert_int_equal(rdma__init(&s->rdma, ""), 0);
	for (i = 0; i < 8; i++) {
		snprintf(device, sizeof(device), "mlx5_%d", i);
		line_port(&s->rdma, (uint32_t)i, device, 1, "rx_write_requests_", 60);
	}
	text = line(s, 255, LINE_FROM, LINE_TO);
	assert_int_equal(times(text, "rx_write_requests_"), 8 * 60);
	assert_int_equal(times(text, "more"), 0);
	line_free(s);
}

/* As many ports, counters and letters as there can be: each port has its share, and says what is missing. */
static void test_line_full(void **state)
{
	struct session *s = calloc(1, sizeof(*s));
	char device[RDMA_NAME_MAX], name[RDMA_NAME_MAX];
	const char *text, *at;
	int i, shown, more, ports = 0;

	(void)state;
	assert_int_equal(rdma__init(&s->rdma, ""), 0);
	memset(name, 'c', sizeof(name));
	name[RDMA_NAME_MAX - 4] = 0;
	for (i = 0; i < RDMA_PORTS_MAX; i++) {
		memset(device, 'd', sizeof(device));
		snprintf(device + RDMA_NAME_MAX - 3, 3, "%02d", i);
		line_port(&s->rdma, (uint32_t)i, device, UINT32_MAX, name, RDMA_COUNTERS_MAX);
	}
	text = line(s, UINT64_MAX, LINE_FROM, LINE_TO);
	assert_int_equal(times(text, "{\"device\""), RDMA_PORTS_MAX);
	for (at = text; (at = strstr(at, "\"counters\":{")); ports++) {
		at += strlen("\"counters\":{");
		for (shown = 0; *at == '"'; shown++)
			at += strcspn(at, ",}") + (at[strcspn(at, ",}")] == ',');
		assert_int_equal(sscanf(at, "},\"more\":%d}", &more), 1);
		assert_true(shown > 0);
		assert_int_equal(shown + more, RDMA_COUNTERS_MAX);
	}
	assert_int_equal(ports, RDMA_PORTS_MAX);
	/* One that moved alone has all the room. */
	text = line(s, 1, LINE_FROM, LINE_TO);
	assert_in_range(times(text, name), (RDMA_EVENT_MAX - 512) / 90, RDMA_COUNTERS_MAX);
	line_free(s);
}

/* ---- This machine ------------------------------------------------------------------------------ */

/* Which may have such devices or not, and somebody else's file has the name of one. */
static void test_real(void **state)
{
	struct rdma_user u = {0};
	struct rdma r;
	int fd;

	(void)state;
	assert_int_equal(rdma__init(&r, ""), 0);
	fd = open_device("/dev/infiniband/uverbs0");
	assert_int_equal(rdma__look(&r, &u, getpid()), 0);
	assert_int_equal(u.devices, 0);
	assert_int_equal(rdma__look(&r, &u, getpid()), 0);
	assert_false(rdma__sample(&r));
	close(fd);
	rdma__free(&r);
	assert_int_equal(rdma__init(&r, "/"), 0);
	assert_string_equal(r.root, "");
	rdma__free(&r);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_deltas),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_resets),
		cmocka_unit_test(test_late_counter),
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_model),
		TREE_TEST(test_tree),
		TREE_TEST(test_unused),
		TREE_TEST(test_vanish),
		TREE_TEST(test_nothing),
		TREE_TEST(test_links),
		TREE_TEST(test_hostile_files),
		TREE_TEST(test_hostile_users),
		TREE_TEST(test_many_devices),
		TREE_TEST(test_places),
		TREE_TEST(test_known),
		TREE_TEST(test_cost),
		TREE_TEST(test_files),
		TREE_TEST(test_many_descriptors),
		TREE_TEST(test_share),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_line_usual),
		cmocka_unit_test(test_line_full),
		TREE_TEST(test_real),
	};

	return cmocka_run_group_tests_name("rdma", tests, NULL, NULL);
}
