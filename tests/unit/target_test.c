// SPDX-License-Identifier: BSD-2-Clause
/* Reaching the plugin of another process, and what may be written there. */
#include <dlfcn.h>
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
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "child.h"
#include "elf_file.h"
#include "nccl_profiler.h"
#include "patience.h"
#include "scope_abi.h"
#include "target.h"

#define KERNEL_CH    0x40
#define KERNEL_PHASE 0x8000

static const ncclProfiler_v5_t *profiler; /* v7 */
static const ncclProfiler_v4_t *profiler_v4;
static struct scope_control *control;
static int *mask;

/* In the victim: a communicator, everything allowed, and NCCL's mask as it is to be. */
static void job(int now)
{
	struct scope_area *area;
	void *ctx;

	profiler->init(&ctx, 1, mask, "c", 1, 2, 0, NULL);
	area = (struct scope_area *)(uintptr_t)control->area;
	area->ceiling = 0xffff;
	area->kernel_ch_ok = 1;
	*mask = now;
}

static void job_coll(void)
{
	job(0x2);
}

static void job_kernel_ch(void)
{
	job(0x2 | KERNEL_CH);
}

static void job_kernel_phase(void)
{
	job(0x2 | KERNEL_PHASE);
}

/* Besides, somebody looks for symbols in the file: that mapping comes before those of the library. */
static void job_symbols(void)
{
	int fd = open(PLUGIN_PATH, O_RDONLY | O_CLOEXEC);

	job(0x2);
	if (fd < 0 ||
	    mmap((void *)0x10000000, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		_exit(1);
}

/* Its library is one that may be unloaded: the plugin would not turn this mask off. */
static void job_may_go(void)
{
	job(0);
	((struct scope_area *)(uintptr_t)control->area)->mask_bases[0] = 0;
}

static void no_job(void)
{
}

/* A copy of the plugin that is only mapped, as who reads or writes a file does; `prot` and `flags` of mmap(2). */
static char copy[] = "/tmp/libnccl-profiler-target.XXXXXX";

static void map_copy(int prot, int flags)
{
	int fd = open(copy, O_RDWR | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, 1 << 20, prot, flags, fd, 0) == MAP_FAILED)
		_exit(1);
}

static void reads_file(void)
{
	map_copy(PROT_READ, MAP_PRIVATE);
}

static void writes_file(void)
{
	map_copy(PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void alters_copy(void)
{
	map_copy(PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

/* Libraries of others, before ours in memory, in a folder whose name has the plugin's in it. */
static char folder[] = "/tmp/nccl-profiler-target.XXXXXX";

static void job_in_folder(void)
{
	char path[64];
	uintptr_t i;
	int fd;

	job(0x2);
	for (i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "%s/lib%d.so", folder, (int)i);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || ftruncate(fd, 4096) ||
		    mmap((void *)(0x10000000 + i * 8192), 4096, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			_exit(1);
		close(fd);
		unlink(path);
	}
}

static pid_t victim(void (*fn)(void))
{
	int ready[2];
	pid_t pid = child_begin(ready);

	if (!pid) {
		fn();
		child_says(ready, 'r');
	}
	child_said(ready);
	return pid;
}

/* What the mask is when we have asked for `want`. */
static int mask_after(void (*fn)(void), uint32_t want, int *err)
{
	int value = -1;
	struct iovec here = {&value, sizeof(value)}, there = {mask, sizeof(value)};
	pid_t pid = victim(fn);
	struct target t;

	assert_int_equal(target__find(&t, pid), 0);
	*err = target__want(&t, (uint32_t)getpid(), want, 0);
	target__close(&t);
	assert_int_equal(process_vm_readv(pid, &here, 1, &there, 1, 0), sizeof(value));
	child_end(pid);
	return value;
}

/* What its environment allows is known with the first mask that can be written. */
static void test_ceiling(void **state)
{
	void (*const jobs[])(void) = {job_coll, job_may_go, no_job};
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		pid_t pid = victim(jobs[i]);
		struct target t;

		assert_int_equal(target__find(&t, pid), 0);
		assert_false(t.has_ceiling);
		assert_int_equal(target__want(&t, (uint32_t)getpid(), 0x2, 0), i ? -EAGAIN : 0);
		assert_int_equal(t.has_ceiling, !i);
		assert_int_equal(t.ceiling, i ? 0 : 0xffff);
		assert_int_equal(t.mask, i ? 0 : 0x2);
		target__close(&t);
		child_end(pid);
	}
}

static void job_unbuffered(void)
{
	job(0x2);
	((struct scope_area *)(uintptr_t)control->area)->nobuf_lost_cnt = 7;
}

/* What threads without a buffer have lost is read where there is a communicator. */
static void test_unbuffered(void **state)
{
	struct target_read read = {.tbuf = 0};
	pid_t pid = victim(job_unbuffered);
	struct target t;

	(void)state;
	assert_int_equal(target__find_readonly(&t, pid), 0);
	assert_int_equal(target__read_tbufs(&t, &read, 1), 0);
	assert_non_null(read.chunk);
	assert_int_equal(read.chunk->lost_cnt, 7);
	assert_int_equal(read.chunk->reason, SCOPE_FLUSH_OUTSIDE);
	assert_int_equal(read.chunk->tbuf | read.chunk->len | read.chunk->rec_cnt, 0);
	free(read.chunk);
	target__close(&t);
	child_end(pid);

	pid = victim(no_job);
	read.chunk = NULL;
	assert_int_equal(target__find_readonly(&t, pid), 0);
	assert_int_equal(target__read_tbufs(&t, &read, 1), 0);
	assert_null(read.chunk);
	target__close(&t);
	child_end(pid);
}

/* Neither comes on in a running job, whether or not the other one is on. */
static void test_never_on(void **state)
{
	int err;

	(void)state;
	assert_int_equal(mask_after(job_coll, 0xffff, &err), 0xffff & ~(KERNEL_CH | KERNEL_PHASE));
	assert_int_equal(err, 0);
	assert_int_equal(mask_after(job_kernel_ch, 0xffff, &err), 0xffff & ~KERNEL_PHASE);
	assert_int_equal(err, 0);
	assert_int_equal(mask_after(job_kernel_phase, 0xffff, &err), 0xffff & ~KERNEL_CH);
	assert_int_equal(err, 0);
}

static void job_kernels_used(void)
{
	job(0x2 | KERNEL_CH);
	((struct scope_area *)(uintptr_t)control->area)->kernels_used = SCOPE_KERNELS_USED;
}

/* Of whose first group NCCL tells when its calls have been made. */
static void job_kernel_ch_v4(void)
{
	struct scope_area *area;
	void *ctx;

	profiler->init(&ctx, 1, mask, "c", 1, 2, 0, NULL); /* for an area */
	profiler->finalize(ctx);
	area = (struct scope_area *)(uintptr_t)control->area;
	area->kernel_ch_ok = 1;
	control->want[0] =
		(struct scope_want){.mask = 0x2 | KERNEL_CH, .owner = SCOPE_OWNER_MANUAL};
	profiler_v4->init(&ctx, mask, "c", 1, 1, 2, 0, NULL);
	control->want[0] = (struct scope_want){0};
}

/* Nor does it go off under NCCL that works by it: the plugin sees to that. */
static void test_never_off(void **state)
{
	int err;

	(void)state;
	assert_int_equal(mask_after(job_kernel_ch, 0x2, &err), 0x2);
	assert_int_equal(mask_after(job_kernel_ch, 0, &err), 0);
	assert_int_equal(mask_after(job_kernels_used, 0x3, &err), 0x3 | KERNEL_CH);
	assert_int_equal(mask_after(job_kernels_used, 0, &err), KERNEL_CH);
	assert_int_equal(mask_after(job_kernel_ch_v4, 0x3, &err), 0x3 | KERNEL_CH);
	assert_int_equal(mask_after(job_kernel_ch_v4, 0, &err), KERNEL_CH);
}

/* A recorder that comes back has KernelCh held until it leaves for good, whoever comes and goes. */
static void test_hold(void **state)
{
	uint32_t hold = 0;
	struct iovec here = {&hold, sizeof(hold)}, there = {&control->kernels_hold, sizeof(hold)};
	static const struct {
		uint32_t want;
		int leave; /* -1: it wants */
		uint32_t hold;
	} steps[] = {{0x3, -1, 0},  {0, 3000, 3000}, {0x3, -1, 3000},
		     {0, -1, 3000}, {0, 7, 7},	     {0, 0, 0}};
	pid_t pid = victim(job_kernels_used);
	struct target t;
	uint32_t i;
	int err;

	(void)state;
	assert_int_equal(target__find(&t, pid), 0);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		err = steps[i].leave < 0
			      ? target__want(&t, (uint32_t)getpid(), steps[i].want, 0)
			      : target__leave(&t, (uint32_t)getpid(), (uint32_t)steps[i].leave);
		assert_int_equal(err, 0);
		assert_int_equal(process_vm_readv(pid, &here, 1, &there, 1, 0), sizeof(hold));
		assert_int_equal(hold, steps[i].hold);
	}
	target__close(&t);
	child_end(pid);
}

static void test_symbols(void **state)
{
	int err;

	(void)state;
	assert_int_equal(mask_after(job_symbols, 0x3, &err), 0x3);
	assert_int_equal(err, 0);
}

/* Which file was looked at is known outside, where it is opened again. */
static void test_file(void **state)
{
	int fd = open(PLUGIN_PATH, O_PATH | O_CLOEXEC);
	pid_t pid = victim(job_coll);
	struct elf_file_id file;
	struct target t;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(elf__id(fd, &file), 0);
	close(fd);
	assert_int_equal(target__find_readonly(&t, pid), 0);
	assert_memory_equal(&t.file, &file, sizeof(file));
	fd = elf__open_same(t.path, &t.file);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(elf__open_same("/proc/self/exe", &t.file), -ESTALE);
	target__close(&t);
	child_end(pid);
}

/* A file is a plugin of ours by what its control block begins with. */
static void test_check_file(void **state)
{
	int fd = open(PLUGIN_PATH, O_RDONLY | O_CLOEXEC), other = open(copy, O_RDWR | O_CLOEXEC);
	struct scope_control ctl;
	unsigned long long value;
	uint32_t abi;
	off_t at = 0;

	(void)state;
	assert_int_equal(target__check_file(fd), 0);
	assert_int_equal(elf__symbol(fd, SCOPE_CONTROL_SYMBOL, &value, NULL), 0);
	assert_int_equal(elf__read(fd, value, &ctl, sizeof(ctl)), 0);
	close(fd);
	while (pread(other, &abi, sizeof(abi), at) == sizeof(abi) &&
	       memcmp(&abi, &ctl.magic, sizeof(abi)))
		at += 8;
	at += (off_t)offsetof(struct scope_control, abi);
	abi = SCOPE_ABI + 1;
	assert_int_equal(pwrite(other, &abi, sizeof(abi), at), sizeof(abi));
	assert_int_equal(target__check_file(other), -EPROTO);
	abi = SCOPE_ABI;
	assert_int_equal(pwrite(other, &abi, sizeof(abi), at), sizeof(abi));
	assert_int_equal(target__check_file(other), 0);
	close(other);
	other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(target__check_file(other), -ENOENT);
	close(other);
}

static void test_in_folder(void **state)
{
	int err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mask_after(job_in_folder, 0x3, &err), 0x3);
	assert_int_equal(err, 0);
	rmdir(folder);
}

static void test_may_go(void **state)
{
	int err;

	(void)state;
	assert_int_equal(mask_after(job_may_go, 0xfff, &err), 0);
	assert_int_equal(err, -EAGAIN);
}

static uint16_t pidns(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	return (uint16_t)st.st_ino;
}

static pid_t dead_pid(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

/* Its parent does not wait for it. */
static pid_t zombie_pid(void)
{
	pid_t pid = fork();
	siginfo_t info;

	if (!pid)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	return pid;
}

/*
 * Recorders that died: two here, and, by its number, one of another pid namespace; and another of that with our own pid. And one that
 * lives.
 */
static void job_recorded(void)
{
	uint32_t dead = (uint32_t)dead_pid(), zombie = (uint32_t)zombie_pid();
	uint16_t other = pidns() ^ 1;

	job(0);
	control->want[0] = (struct scope_want){.mask = 0x8, .pidns = pidns(), .owner = dead};
	control->want[1] = (struct scope_want){.mask = 0x10, .pidns = other, .owner = dead};
	control->want[2] =
		(struct scope_want){.mask = 0x20, .pidns = other, .owner = (uint32_t)getppid()};
	control->want[3] = (struct scope_want){.mask = 0x4, .pidns = pidns(), .owner = zombie};
	control->want[4] =
		(struct scope_want){.mask = 0x100, .pidns = pidns(), .owner = (uint32_t)getpid()};
}

/* A pid of another namespace is nobody's here: neither dead nor ours. */
static void test_owners(void **state)
{
	int err;

	(void)state;
	assert_int_equal(mask_after(job_recorded, 0x2, &err), 0x2 | 0x10 | 0x20 | 0x100);
	assert_int_equal(err, 0);
	assert_int_equal(mask_after(job_recorded, 0, &err), 0x10 | 0x20 | 0x100);
	assert_int_equal(err, 0);
}

static int mask_of(pid_t pid)
{
	int value = -1;
	struct iovec here = {&value, sizeof(value)}, there = {mask, sizeof(value)};

	assert_int_equal(process_vm_readv(pid, &here, 1, &there, 1, 0), sizeof(value));
	return value;
}

/* Whoever holds the lock is not waited for: once more later. Where nobody died nothing is written. */
static void test_bury(void **state)
{
	pid_t pid = victim(job_recorded);
	struct target t;
	char path[64];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(target__find(&t, pid), 0);
	assert_int_equal(target__bury(&t), -EAGAIN);
	assert_int_equal(mask_of(pid), 0);
	flock(fd, LOCK_UN);
	assert_int_equal(target__bury(&t), 0);
	assert_int_equal(mask_of(pid), 0x10 | 0x20 | 0x100);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(target__bury(&t), 0);
	close(fd);
	target__close(&t);
	child_end(pid);
}

static void test_only_mapped(void **state)
{
	static void (*const fns[])(void) = {reads_file, writes_file, alters_copy};
	struct target t;
	pid_t pid;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(fns) / sizeof(*fns); i++) {
		pid = victim(fns[i]);
		assert_int_equal(target__find(&t, pid), -ENOENT);
		child_end(pid);
	}
}

static int copy_file(void)
{
	char command[1024];
	int fd = mkstemp(copy);

	if (fd < 0)
		return -1;
	close(fd);
	snprintf(command, sizeof(command), "cp '%s' '%s'", PLUGIN_PATH, copy);
	return system(command);
}

/* The plugin is mapped under that name here, and so in victims, which have only the copy. */
static int load(void **state)
{
	void *nccl, *plugin;

	(void)state;
	setenv("NCCL_PROFILE_EVENT_MASK", "0xfff", 1); /* KernelCh whatever is free in /dev/shm */
	nccl = dlopen(FAKE_NCCL, RTLD_NOW);
	plugin = dlopen(PLUGIN_PATH, RTLD_NOW);
	if (!nccl || !plugin)
		return -1;
	mask = dlsym(nccl, "ncclProfilerEventMask");
	profiler = dlsym(plugin, "ncclProfiler_v7");
	profiler_v4 = dlsym(plugin, "ncclProfiler_v4");
	control = dlsym(plugin, "ncclscope_control");
	return mask && profiler && profiler_v4 && control ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	patience__end();
	return unlink(copy);
}

static int begin(void **state)
{
	(void)state;
	return copy_file();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_mapped), /* before it is loaded here */
		cmocka_unit_test(test_check_file),  /* and written to */
		cmocka_unit_test_setup(test_never_on, load),
		cmocka_unit_test_setup(test_never_off, load),
		cmocka_unit_test_setup(test_hold, load),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_unbuffered),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_in_folder),
		cmocka_unit_test(test_may_go),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_bury)};

	return cmocka_run_group_tests_name("target", tests, begin, end);
}
