// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the recorder's loop has to do with RDMA ports, feed__rdma(): what they count comes in, and a device that hangs, as one does whose
 * firmware is stuck, holds up neither the loop nor the other devices. pread() hangs here, in who reads the files of one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "clock.h"
#include "feed.h"
#include "log.h"
#include "pipeline.h"
#include "recorder.h"

#define MS 1000000ULL

/* ---- A tree of two devices, which this process has open ----------------------------------------- */

static char root[64];
static int fds[2];

static void put(const char *name, const char *text)
{
	char path[256], *p;
	int fd;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		assert_true(!mkdir(path, 0755) || errno == EEXIST);
		*p = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

#define DATA(i) "/sys/class/infiniband/mlx5_" #i "/ports/1/counters/port_xmit_data"

/* ---- What hangs ---------------------------------------------------------------------------------- */

/* In all processes of this test: files of mlx5_1. */
static atomic_bool *hang;

ssize_t __real_pread(int fd, void *buf, size_t n, off_t off);
ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t off);

ssize_t __wrap_pread(int fd, void *buf, size_t n, off_t off)
{
	char link[64], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = 0;
	while (*hang && strstr(path, "/mlx5_1/"))
		usleep(1000);
	return __real_pread(fd, buf, n, off);
}

/* ---- The recorder, and who takes its inputs ------------------------------------------------------ */

static struct recorder r;
static struct proc proc;
static struct session *taken;
static uint32_t inputs, warnings;
static char warning[256];

void __wrap_pipeline__feed(struct session *s, enum input_kind kind, const void *data, size_t size);
void __wrap_log_printf(enum log_level level, const char *fmt, ...);

void __wrap_pipeline__feed(struct session *s, enum input_kind kind, const void *data, size_t size)
{
	(void)s;
	if (kind != INPUT_RDMA)
		return;
	inputs++;
	assert_int_equal(pipeline_rdma(taken, data, size), 0);
}

void __wrap_log_printf(enum log_level level, const char *fmt, ...)
{
	va_list args;

	warnings += level == LOG_WARN;
	va_start(args, fmt);
	vsnprintf(warning, sizeof(warning), fmt, args);
	va_end(args);
}

static void recording_begins(void)
{
	assert_int_equal(rdma__init(&r.s.rdma, root), 0);
	rdma_sampler__reset(&r.rdma);
	memset(&proc, 0, sizeof(proc));
	proc.key.tgid = (uint32_t)getpid();
	HASH_ADD(hh, r.s.procs, key, sizeof(proc.key), &proc);
	taken = calloc(1, sizeof(*taken));
	assert_non_null(taken);
}

static void recording_ends(void)
{
	HASH_DEL(r.s.procs, &proc);
	rdma__free(&r.s.rdma);
	rdma__free(&taken->rdma);
	free(taken);
}

static int setup(void **state)
{
	char name[] = "/tmp/ncclscope-rdma-XXXXXX", path[128];
	int i;

	(void)state;
	if (!mkdtemp(name))
		return -1;
	strcpy(root, name);
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
	put("/sys/class/infiniband_verbs/uverbs1/ibdev", "mlx5_1\n");
	put(DATA(0), "1000\n");
	put(DATA(1), "2000\n");
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", i);
		put(path, "");
		snprintf(path, sizeof(path), "%s/dev/infiniband/uverbs%d", root, i);
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	*hang = false;
	warnings = inputs = 0;
	r.s.counters = true;
	assert_int_equal(rdma_sampler__start(&r.rdma, root), 0);
	recording_begins();
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	*hang = false;
	recording_ends();
	rdma_sampler__stop(&r.rdma);
	close(fds[0]);
	close(fds[1]);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* A turn of the loop, which nothing may hold up: how long it took at most. */
static uint64_t longest_ns;

static void turn(void)
{
	uint64_t begin = monotonic_ns(), took;

	feed__rdma(&r, false);
	took = monotonic_ns() - begin;
	if (took > longest_ns)
		longest_ns = took;
	usleep(10000);
}

static void turns(uint64_t ms)
{
	uint64_t end = monotonic_ns() + ms * MS;

	while (monotonic_ns() < end)
		turn();
}

/* Of the one that was named so, in what has been taken; NULL: it is not there. */
static const struct rdma_port *port(const char *device)
{
	uint32_t i;

	for (i = 0; i < taken->rdma.nports; i++)
		if (!strcmp(taken->rdma.ports[i]->device, device))
			return taken->rdma.ports[i];
	return NULL;
}

static uint64_t rows(const char *device)
{
	return port(device) ? port(device)->nrows : 0;
}

static void until_rows(const char *device, uint64_t n)
{
	uint64_t end = monotonic_ns() + 20000 * MS;

	while (rows(device) < n && monotonic_ns() < end)
		turn();
	assert_true(rows(device) >= n);
}

static uint64_t total(const char *device)
{
	assert_non_null(port(device));
	assert_int_equal(port(device)->ncounters, 1);
	assert_string_equal(rdma_counter__name(&port(device)->counters[0]), "port_xmit_data");
	return port(device)->counters[0].total;
}

/* ---- Tests --------------------------------------------------------------------------------------- */

static void test_samples(void **state)
{
	const struct rdma_row *last;
	uint64_t begin;

	(void)state;
	until_rows("mlx5_0", 1);
	until_rows("mlx5_1", 1);
	assert_string_equal(taken->rdma.devices[0].name, "mlx5_0");
	assert_string_equal(taken->rdma.ports[0]->device, "mlx5_0"); /* in the order of places */
	begin = monotonic_ns();
	put(DATA(0), "1003\n");
	until_rows("mlx5_0", rows("mlx5_0") + 3);
	assert_int_equal(total("mlx5_0"), 3);
	assert_int_equal(total("mlx5_1"), 0);
	last = rdma_port__last(port("mlx5_0"));
	assert_true(last->begin_ns > begin && last->begin_ns <= last->end_ns);
	assert_true(last->end_ns < monotonic_ns());
	assert_true(taken->rdma_ns > begin - 1000 * MS && taken->rdma_ns < monotonic_ns());
	assert_true(r.rdma.samples > 3 && !r.rdma.cut);

	/* At the end, what came since the last one. */
	put(DATA(0), "1007\n");
	put(DATA(1), "2001\n");
	feed__rdma(&r, true);
	assert_int_equal(total("mlx5_0"), 7);
	assert_int_equal(total("mlx5_1"), 1);
	assert_int_equal(warnings, 0);
}

/* Who asked for all until some time is not told afterwards of what ended before. */
static void test_after(void **state)
{
	uint64_t n, ns;

	(void)state;
	until_rows("mlx5_0", 1);
	n = rows("mlx5_0");
	ns = monotonic_ns() + 300 * MS;
	rdma_sampler__after(&r.rdma, ns);
	until_rows("mlx5_0", n + 1);
	assert_int_equal(rdma_port__last(port("mlx5_0"))->end_ns, ns + 1);
	until_rows("mlx5_0", n + 6);
	assert_true(rdma_port__last(port("mlx5_0"))->end_ns > ns + 1);
}

static void test_hangs(void **state)
{
	uint64_t n, begin, until_ns;

	(void)state;
	until_rows("mlx5_0", 1);
	until_rows("mlx5_1", 1);
	longest_ns = 0;
	*hang = true;
	put(DATA(1), "2005\n");
	turns(500); /* one under way may have been past that */
	n = rows("mlx5_1");
	begin = rows("mlx5_0");
	turns(2000);
	assert_int_equal(rows("mlx5_1"), n);
	assert_true(rows("mlx5_0") > begin + 5);
	assert_in_range(longest_ns, 0, 500 * MS);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, "mlx5_1 does not answer"));
	until_ns = taken->rdma_ns;
	turns(300);
	assert_true(taken->rdma_ns > until_ns); /* nobody waits for it */

	begin = monotonic_ns();
	feed__rdma(&r, true);
	assert_in_range(monotonic_ns() - begin, 0, 500 * MS);

	*hang = false; /* and so that read comes to its end */
	until_rows("mlx5_1", n + 1);
	feed__rdma(&r, true);
	assert_int_equal(total("mlx5_1"), 5);
	assert_int_equal(warnings, 1);
}

/* It begins to just at the end. */
static void test_hangs_at_the_end(void **state)
{
	uint64_t begin, n;

	(void)state;
	until_rows("mlx5_0", 1);
	until_rows("mlx5_1", 1);
	*hang = true;
	put(DATA(0), "1009\n");
	begin = monotonic_ns();
	n = rows("mlx5_0");
	feed__rdma(&r, true);
	assert_in_range(monotonic_ns() - begin, 0, RDMA_FINISH_NS + 500 * MS);
	assert_true(rows("mlx5_0") > n);
	assert_int_equal(total("mlx5_0"), 9);

	begin = monotonic_ns();
	rdma_sampler__stop(&r.rdma);
	assert_in_range(monotonic_ns() - begin, 0, 500 * MS);
}

/*
 * As for a recorder in the node's network namespace when a job's pod has a device of its own: its verbs are there, what it counts is
 * not. It is told once, also in later recordings, and the device is read if it comes.
 */
static void test_elsewhere(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s/sys/class/infiniband/mlx5_1'", root);
	assert_int_equal(system(command), 0);
	until_rows("mlx5_0", 3);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, "mlx5_1 is in another network namespace"));
	recording_ends();
	recording_begins();
	until_rows("mlx5_0", 3);
	feed__rdma(&r, true);
	assert_int_equal(warnings, 1);
	assert_null(port("mlx5_1"));
	put(DATA(1), "2000\n");
	until_rows("mlx5_1", 1);
	assert_int_equal(warnings, 1);
}

/* A second recording: its traces know of nothing that was told in the first, and between them nobody is asked. */
static void test_windows(void **state)
{
	(void)state;
	until_rows("mlx5_0", 1);
	recording_ends();
	rdma_sampler__reset(&r.rdma);
	inputs = 0;
	usleep(300000);
	put(DATA(0), "1500\n");
	recording_begins();
	until_rows("mlx5_0", 1);
	put(DATA(0), "1501\n");
	until_rows("mlx5_0", 4);
	assert_int_equal(total("mlx5_0"), 1);
	assert_true(inputs > 0);
}

static void test_dies(void **state)
{
	(void)state;
	until_rows("mlx5_0", 1);
	kill(r.rdma.pid, SIGKILL);
	turns(200);
	assert_int_equal(r.rdma.fd, -1);
	assert_int_equal(warnings, 1);
	feed__rdma(&r, true);
	assert_int_equal(warnings, 1);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_samples),   TREE_TEST(test_after),
		TREE_TEST(test_hangs),	   TREE_TEST(test_hangs_at_the_end),
		TREE_TEST(test_elsewhere), TREE_TEST(test_windows),
		TREE_TEST(test_dies),
	};

	hang = mmap(NULL, sizeof(*hang), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hang == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests_name("rdma_sampler", tests, NULL, NULL);
}
