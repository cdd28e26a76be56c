// SPDX-License-Identifier: BSD-2-Clause
/* GPUs: what is asked of NVML, a stand-in of which fake_nvml.c is, what of it gets into traces, and that nobody waits for it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clock.h"
#include "gpu.h"
#include "pipeline.h"
#include "trace.h"
#include "trace_lines.h"

#define UUID "82ff807f-dead-beef-9988-c0ffee0ab0f1"

/* ---- The process that looks --------------------------------------------------------------------------- */

#define FAKE	 FAKE_NVML_DIR "/nvml/libnvidia-ml.so.1"
#define FAKE_OLD FAKE_NVML_DIR "/nvml-old/libnvidia-ml.so.1"

static char gpus_file[] = "/tmp/ncclscope-gpus.XXXXXX";

static void gpus(const char *text)
{
	FILE *f = fopen(gpus_file, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Within 5 s, asking when it is time; 0: nothing has come. */
static int next(struct gpu_sampler *g, struct gpu_message *m, int *sig)
{
	struct pollfd ready = {.fd = g->fd, .events = POLLIN};
	uint64_t end = monotonic_ns() + 5 * NSEC_PER_SEC;
	int err;

	do {
		gpu_sampler__ask(g, monotonic_ns());
		poll(&ready, 1, 20);
		err = gpu_sampler__next(g, m, sig);
	} while (!err && monotonic_ns() < end);
	return err;
}

static struct gpu_sample sample(struct gpu_sampler *g)
{
	struct gpu_message m;
	int sig;

	assert_int_equal(next(g, &m, &sig), 1);
	assert_int_equal(m.kind, GPU_SAMPLE);
	assert_true(gpu_sample__ok(&m.sample));
	return m.sample;
}

static void says(struct gpu_sampler *g, enum gpu_message_kind kind, const char *text)
{
	struct gpu_message m;
	int sig;

	assert_int_equal(next(g, &m, &sig), 1);
	assert_int_equal(m.kind, kind);
	assert_non_null(strstr(m.text, text));
}

static void ends(struct gpu_sampler *g, int by)
{
	struct gpu_message m;
	int sig;

	assert_int_equal(next(g, &m, &sig), -ENODATA);
	assert_int_equal(sig, by);
	assert_int_equal(g->fd, -1);
	assert_int_equal(gpu_sampler__next(g, &m, &sig), -ENODATA);
	gpu_sampler__stop(g);
}

static uint64_t value(const struct gpu_sample *sm, enum gpu_value v)
{
	assert_true(gpu_sample__has(sm, v));
	return sm->value[v];
}

/* All that there is; of the other GPU, which supports little, that little. */
static void values(void **state)
{
	struct gpu_sample a, b, c;
	struct gpu_sampler g;

	(void)state;
	gpus("0 uuid GPU-82FF807F-dead-beef-9988-c0ffee0ab0f1\n0 name NVIDIA H200\n0 pci 0:3b:0\n"
	     "0 sm 1755\n0 smmax 1980\n0 mem 3201\n0 util 97\n0 temperature 61\n0 power 650123\n"
	     "0 limit 700000\n0 width 8\n0 widthmax 16\n0 reasons 0x84\n0 field74 1\n0 field75 8\n"
	     "0 field76 2\n0 field77 3\n0 field79 4\n0 field269 5\n0 field270 6\n0 field271 7\n"
	     "0 field3 11\n0 field4 12\n0 field38 13\n0 field45 14\n0 field52 15\n0 field59 16\n"
	     "0 field94 17\n0 field138 2\n0 field139 3\n"
	     "1 uuid GPU-82ff807f-dead-beef-9988-c0ffee0ab0f2\n1 util 0\n1 field75 9\n1 rate271 "
	     "1000000000\n"
	     "2 uuid MIG-82ff807f\n");
	assert_int_equal(gpu_sampler__start(&g, FAKE), 0);
	says(&g, GPU_READY, "570.00.fake, 2 GPUs");
	a = sample(&g);
	b = sample(&g);
	c = sample(&g);
	assert_int_equal(c.index, 0);
	c = sample(&g);
	gpu_sampler__stop(&g);

	assert_memory_equal(a.uuid, UUID, GPU_UUID_LEN);
	assert_string_equal(a.name, "NVIDIA H200");
	assert_string_equal(a.pci, "0000:3b:00.0");
	assert_int_equal(a.index, 0);
	assert_int_equal(value(&a, GPU_SM_CLOCK), 1755);
	assert_int_equal(value(&a, GPU_SM_CLOCK_MAX), 1980);
	assert_int_equal(value(&a, GPU_MEM_CLOCK), 3201);
	assert_int_equal(value(&a, GPU_UTIL), 97);
	assert_int_equal(value(&a, GPU_TEMPERATURE), 61);
	assert_int_equal(value(&a, GPU_POWER), 650123);
	assert_int_equal(value(&a, GPU_POWER_LIMIT), 700000);
	assert_int_equal(value(&a, GPU_PCIE_WIDTH), 8);
	assert_int_equal(value(&a, GPU_PCIE_WIDTH_MAX), 16);
	assert_int_equal(value(&a, GPU_REASONS), 0x84);
	assert_int_equal(value(&a, GPU_HELD_SW_POWER_CAP), 1);
	assert_int_equal(value(&a, GPU_HELD_SYNC_BOOST), 2);
	assert_int_equal(value(&a, GPU_HELD_BOARD_LIMIT), 3);
	assert_int_equal(value(&a, GPU_HELD_RELIABILITY), 4);
	assert_int_equal(value(&a, GPU_HELD_SW_THERMAL), 5);
	assert_int_equal(value(&a, GPU_HELD_HW_THERMAL), 6);
	assert_int_equal(value(&a, GPU_HELD_POWER_BRAKE), 7);
	assert_false(gpu_sample__has(&a, GPU_HELD_THERMAL)); /* the two above are its parts */
	assert_int_equal(value(&a, GPU_ECC_CORRECTED), 11);
	assert_int_equal(value(&a, GPU_ECC_UNCORRECTED), 12);
	assert_int_equal(value(&a, GPU_NVLINK_CRC_FLIT), 13);
	assert_int_equal(value(&a, GPU_NVLINK_CRC_DATA), 14);
	assert_int_equal(value(&a, GPU_NVLINK_REPLAY), 15);
	assert_int_equal(value(&a, GPU_NVLINK_RECOVERY), 16);
	assert_int_equal(value(&a, GPU_PCIE_REPLAY), 17);
	assert_int_equal(value(&a, GPU_NVLINK_SENT), 2048);
	assert_int_equal(value(&a, GPU_NVLINK_RECEIVED), 3072);

	assert_int_equal(b.index, 1);
	assert_int_equal(b.known, 1ull << GPU_UTIL | 1ull << GPU_HELD_THERMAL |
					  1ull << GPU_HELD_POWER_BRAKE);
	assert_int_equal(value(&b, GPU_UTIL), 0);
	assert_string_equal(b.name, "");
	assert_string_equal(b.pci, "");
	assert_in_range(c.ns - b.ns, 900000000, 3000000000);
	/* Read at about the times that the samples say. */
	assert_in_range(c.value[GPU_HELD_POWER_BRAKE] - b.value[GPU_HELD_POWER_BRAKE],
			(c.ns - b.ns) / 2, 2 * (c.ns - b.ns));
}

/* The first sample of the only GPU. */
static struct gpu_sample only(const char *library, const char *text)
{
	struct gpu_sampler g;
	struct gpu_sample a;

	gpus(text);
	assert_int_equal(gpu_sampler__start(&g, library), 0);
	says(&g, GPU_READY, "1 GPU");
	a = sample(&g);
	gpu_sampler__stop(&g);
	return a;
}

/* As drivers before 535 call it. */
static void older_name(void **state)
{
	struct gpu_sample a = only(FAKE_OLD, "0 uuid GPU-" UUID "\n0 reasons 0x4\n");

	(void)state;
	assert_int_equal(value(&a, GPU_REASONS), 4);
}

static void lost(void **state)
{
	struct gpu_sample a = only(FAKE, "0 uuid GPU-" UUID "\n0 lost 1\n0 field74 3\n");

	(void)state;
	assert_int_equal(a.lost, 1);
	assert_int_equal(a.known, 0);
}

static void no_library(void **state)
{
	struct gpu_sampler g;

	(void)state;
	assert_int_equal(gpu_sampler__start(&g, "/nonexistent/libnvidia-ml.so.1"), 0);
	says(&g, GPU_FAILED, "/nonexistent/libnvidia-ml.so.1");
	gpu_sampler__stop(&g);
	assert_int_equal(gpu_sampler__start(&g, "libz.so.1"), 0);
	says(&g, GPU_FAILED, "libz.so.1 is no NVML");
	gpu_sampler__stop(&g);
}

/* It may come yet, and is tried again; not at once. */
static void no_driver(void **state)
{
	struct gpu_sampler g;
	struct gpu_message m;
	uint64_t now;
	int sig;

	(void)state;
	gpus("- init 9\n");
	assert_int_equal(gpu_sampler__start(&g, FAKE), 0);
	says(&g, GPU_FAILED, "Driver Not Loaded");
	gpus("0 uuid GPU-" UUID "\n");
	now = monotonic_ns();
	gpu_sampler__ask(&g, now + 9 * NSEC_PER_SEC);
	assert_int_equal(g.asked_ns, 0);
	gpu_sampler__ask(&g, now + 11 * NSEC_PER_SEC);
	assert_int_equal(next(&g, &m, &sig), 1);
	assert_int_equal(m.kind, GPU_READY);
	assert_non_null(strstr(m.text, "1 GPU"));
	gpu_sampler__stop(&g);
	gpus("");
	assert_int_equal(gpu_sampler__start(&g, FAKE), 0);
	says(&g, GPU_FAILED, "no GPU that NVML tells of");
	gpu_sampler__stop(&g);
}

static void crash(void **state)
{
	struct gpu_sampler g;

	(void)state;
	gpus("0 uuid GPU-" UUID "\n0 crash 1\n");
	assert_int_equal(gpu_sampler__start(&g, FAKE), 0);
	says(&g, GPU_READY, "1 GPU");
	ends(&g, SIGKILL);
}

/* Whom the driver holds is left alone, and ends with us. */
static void hang(void **state)
{
	struct gpu_sampler g;
	struct gpu_message m;
	uint64_t now;
	pid_t pid;
	int sig;

	(void)state;
	gpus("0 uuid GPU-" UUID "\n0 hang 1\n");
	assert_int_equal(gpu_sampler__start(&g, FAKE), 0);
	pid = g.pid;
	says(&g, GPU_READY, "1 GPU");
	assert_int_equal(gpu_sampler__next(&g, &m, &sig), 0);
	kill(pid, SIGTERM); /* as a service's whole group gets it: it is ours to end it */
	kill(pid, SIGINT);
	usleep(20000);
	assert_int_equal(gpu_sampler__next(&g, &m, &sig), 0);
	now = g.asked_ns;
	assert_int_not_equal(now, 0);
	assert_int_equal(gpu_sampler__hangs(&g, now + 59 * NSEC_PER_SEC),
			 0); /* it may be waking them */
	assert_int_equal(gpu_sampler__hangs(&g, now + 60 * NSEC_PER_SEC), 60 * NSEC_PER_SEC);
	assert_int_equal(gpu_sampler__hangs(&g, now + 61 * NSEC_PER_SEC), 0); /* it is said once */
	gpu_sampler__stop(&g);
	assert_int_equal(g.fd, -1);
	assert_int_equal(kill(pid, 0), -1);
}

/* Nobody waits for an end that does not come: as of a process that is still in the driver. Its answers are not taken any more. */
static void slow_end(void **state)
{
	struct gpu_sampler g = {.fd = -1};
	struct gpu_message m;
	struct pollfd closed = {.events = POLLIN};
	int pair[2], sig, tries;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	g.pid = fork();
	if (!g.pid) {
		close(pair[0]);
		close(pair[1]);
		pause();
		_exit(1);
	}
	close(pair[1]);
	g.fd = pair[0];
	closed.fd = g.fd;
	assert_int_equal(poll(&closed, 1, 5000), 1);
	assert_int_equal(gpu_sampler__next(&g, &m, &sig), -ENODATA);
	assert_int_equal(sig, 0);
	assert_int_not_equal(g.pid, 0);
	kill(g.pid, SIGKILL);
	for (tries = 0; !sig && tries < 500; tries++) {
		usleep(10000);
		assert_int_equal(gpu_sampler__next(&g, &m, &sig), -ENODATA);
	}
	assert_int_equal(sig, SIGKILL);
	assert_int_equal(g.pid, 0);
	assert_int_equal(gpu_sampler__next(&g, &m, &sig), -ENODATA);
	assert_int_equal(sig, 0);
	gpu_sampler__stop(&g);
}

/* What it takes to sample them is its own word: five times that is left alone, 30 s at most; and not how late we read it. */
static void rests(void **state)
{
	static const struct {
		uint64_t took, next; /* ms, the latter since it was asked */
	} all[] = {{0, 1000},	  {100, 1000},	  {1000, 5000},
		   {5999, 29995}, {60000, 30000}, {UINT64_MAX / 1000000, 30000}};
	struct gpu_message m = {.kind = GPU_DONE};
	struct gpu_sampler g = {.fd = -1};
	uint64_t now, late;
	int pair[2], sig;
	size_t i;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	g.fd = pair[0];
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		m.took_ns = all[i].took * 1000000;
		now = monotonic_ns();
		g.next_ns = 0;
		gpu_sampler__ask(&g, now);
		assert_int_equal(g.asked_ns, now);
		assert_int_equal(send(pair[1], &m, sizeof(m), 0), sizeof(m));
		assert_int_equal(gpu_sampler__next(&g, &m, &sig), 0);
		late = monotonic_ns() - now;
		assert_in_range(g.next_ns, now + all[i].next * 1000000,
				now + all[i].next * 1000000 + late);
		assert_int_equal(g.asked_ns, 0);
	}
	/* asked long ago, read now: it need not rest */
	m.took_ns = 1000;
	g.next_ns = 0;
	gpu_sampler__ask(&g, now - 100 * NSEC_PER_SEC);
	assert_int_equal(send(pair[1], &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(gpu_sampler__next(&g, &m, &sig), 0);
	assert_true(g.next_ns <= monotonic_ns() + 1000000);
	close(pair[0]);
	close(pair[1]);
}

/* ---- Into traces ------------------------------------------------------------------------------------- */

static struct gpu_sample some(uint64_t ns)
{
	struct gpu_sample sm = {
		.ns = ns, .index = 1, .name = "NVIDIA \"H200\"\x01", .pci = "0000:3b:00.0"};

	memcpy(sm.uuid, UUID, sizeof(sm.uuid));
	return sm;
}

static void set(struct gpu_sample *sm, enum gpu_value v, uint64_t n)
{
	sm->known |= 1ull << v;
	sm->value[v] = n;
}

static void on_it(struct proc *p)
{
	memcpy(p->corr.gpus[0].uuid, UUID, sizeof(p->corr.gpus[0].uuid));
}

/* Of those on it: what it is, and what has moved since the sample before. */
static void traces(void **state)
{
	struct gpu_sample a = some(1000000), b = some(3000000), other = some(4000000);
	struct proc *p;

	(void)state;
	wanted[0] = "\"gpu\",";
	s = session_new();
	p = process(0, 1000);
	trace__clock(p, 1000); /* and the header before it */
	on_it(p);
	trace__clock(process(1, 1000), 1000); /* on another one */
	set(&a, GPU_SM_CLOCK, 1755);
	set(&a, GPU_REASONS, 0x8000000000000184);
	set(&a, GPU_HELD_SW_POWER_CAP, 1000000);
	set(&a, GPU_HELD_POWER_BRAKE, 5);
	set(&a, GPU_PCIE_REPLAY, 7);
	set(&a, GPU_NVLINK_SENT, 1 << 20);
	set(&b, GPU_SM_CLOCK, 1980);
	set(&b, GPU_HELD_SW_POWER_CAP, 2500000);
	set(&b, GPU_HELD_POWER_BRAKE, 5);
	set(&b, GPU_HELD_HW_THERMAL, 9); /* not known before */
	set(&b, GPU_PCIE_REPLAY, 6);	 /* the driver began anew */
	set(&b, GPU_ECC_CORRECTED, 1);
	set(&b, GPU_NVLINK_SENT, 3 << 20);
	set(&b, GPU_REASONS, 1 << 4 | 1 << 5 | 1 << 7);
	other.ns = 500000; /* before anybody was on it */
	memset(p->corr.gpus[0].uuid, 0, sizeof(p->corr.gpus[0].uuid));
	assert_int_equal(pipeline_gpu(s, &other), 0);
	other.ns = 4000000;
	on_it(p);
	assert_int_equal(pipeline_gpu(s, &a), 0);
	assert_int_equal(pipeline_gpu(s, &b), 0);
	other.uuid[0] = '9'; /* somebody put another one in */
	assert_int_equal(pipeline_gpu(s, &other), 0);
	b.lost = 1;
	b.known = 0;
	b.ns = 5000000;
	b.name[0] = b.pci[0] = 0;
	assert_int_equal(pipeline_gpu(s, &b), 0);
	session_free(s);
	chunks_files(take_file);
	assert_string_equal(
		lines,
		"{\"recordType\":\"gpu\",\"ts\":1000.000,\"gpuUuid\":\"" UUID
		"\",\"index\":1,\"pci\":\"0000:3b:00.0\",\"name\":\"NVIDIA "
		"\\\"H200\\\"\\u0001\",\"smClock\":1755,"
		"\"reasons\":[\"swPowerCap\",\"hwPowerBrakeSlowdown\",\"displayClock\"]}\n"
		"{\"recordType\":\"gpu\",\"ts\":3000.000,\"interval\":2000.000,\"gpuUuid\":\"" UUID
		"\",\"index\":1,\"pci\":\"0000:3b:00.0\",\"name\":\"NVIDIA "
		"\\\"H200\\\"\\u0001\",\"smClock\":1980,"
		"\"reasons\":[\"syncBoost\",\"swThermalSlowdown\",\"hwPowerBrakeSlowdown\"],"
		"\"held\":{\"swPowerCap\":1500.000,\"syncBoost\":2000.000,"
		"\"swThermalSlowdown\":2000.000},\"nvlinkSent\":2097152}\n"
		"{\"recordType\":\"gpu\",\"ts\":5000.000,\"gpuUuid\":\"" UUID
		"\",\"index\":1,\"lost\":true}\n");
}

/* A capture is hostile, too. */
static void nonsense(void **state)
{
	struct gpu_sample a;

	(void)state;
	s = session_new();
	a = some(1);
	a.index = GPU_MAX;
	assert_int_equal(pipeline_gpu(s, &a), -EINVAL);
	a = some(1);
	a.known = 1ull << GPU_VALUES;
	assert_int_equal(pipeline_gpu(s, &a), -EINVAL);
	a = some(1);
	a.lost = 2;
	assert_int_equal(pipeline_gpu(s, &a), -EINVAL);
	a = some(1);
	memset(a.name, 'x', sizeof(a.name));
	assert_int_equal(pipeline_gpu(s, &a), -EINVAL);
	a = some(1);
	memset(a.pci, 'x', sizeof(a.pci));
	assert_int_equal(pipeline_gpu(s, &a), -EINVAL);
	a = some(1);
	a.uuid[35] = 0;
	assert_int_equal(pipeline_gpu(s, &a), -EINVAL);
	assert_null(s->gpus);
	session_free(s);
	chunks_files(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),     cmocka_unit_test(older_name), cmocka_unit_test(lost),
		cmocka_unit_test(no_library), cmocka_unit_test(no_driver),  cmocka_unit_test(crash),
		cmocka_unit_test(hang),	      cmocka_unit_test(slow_end),   cmocka_unit_test(rests),
		cmocka_unit_test(traces),     cmocka_unit_test(nonsense)};
	int failed, fd = mkstemp(gpus_file);

	if (fd < 0 || !mkdtemp(chunks_dir))
		return 1;
	close(fd);
	setenv("FAKE_NVML", gpus_file, 1);
	failed = cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
	rmdir(chunks_dir);
	unlink(gpus_file);
	return failed;
}
