// SPDX-License-Identifier: BSD-2-Clause
/*
 * The plugin beside what else a process does with the dynamic linker: as NCCL loads it, without sanitizers, whose
 * own locks do not survive a fork amid other threads.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "nccl_profiler.h"
#include "scope_abi.h"

#define CHILDREN 500
#define PATIENCE 30 /* seconds: who waits for a lock waits for ever */
#define OTHER	 FAKE_NCCL_DIR "/other/libnccl.so.2"

static const ncclProfiler_v5_t *profiler; /* v7 */
static struct scope_control *control;
static void *ctx, *handle;
static int *mask;

static void load(const char *path)
{
	void *nccl = dlopen(path, RTLD_NOW), *plugin = dlopen(PLUGIN_PATH, RTLD_NOW);

	assert_non_null(dlopen(FAKE_CUDA, RTLD_NOW));
	assert_non_null(nccl);
	assert_non_null(plugin);
	mask = dlsym(nccl, "ncclProfilerEventMask");
	profiler = dlsym(plugin, "ncclProfiler_v7");
	control = dlsym(plugin, "ncclscope_control");
	assert_true(mask && profiler && control);
}

/* A communicator and an event of it, recorded by somebody who is gone then. */
static int begin(void **state)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileGroupApi};

	(void)state;
	load(FAKE_NCCL_DIR "/libnccl.so.2");
	control->want[0] = (struct scope_want){.mask = 0xfff, .owner = SCOPE_OWNER_MANUAL};
	control->epoch++;
	profiler->init(&ctx, 1, mask, "c", 1, 2, 0, NULL);
	profiler->startEvent(ctx, &handle, (void *)&d);
	control->want[0] = (struct scope_want){0};
	return *mask && handle ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	profiler->finalize(ctx);
	return 0;
}

static void *open_other(void *arg)
{
	(void)arg;
	return dlopen(OTHER, RTLD_NOW);
}

/* The dynamic linker's lock is held while constructors run: for as long as they like. */
static void test_event_amid_dlopen(void **state)
{
	int out[2], in[2];
	char fds[32], c;
	pthread_t thread;
	void *other;

	(void)state;
	assert_int_equal(pipe(out) | pipe(in), 0);
	snprintf(fds, sizeof(fds), "%d %d", out[1], in[0]);
	setenv("FAKE_NCCL_FDS", fds, 1);
	assert_int_equal(pthread_create(&thread, NULL, open_other, NULL), 0);
	assert_int_equal(read(out[0], &c, 1), 1);
	alarm(PATIENCE);
	profiler->stopEvent(handle); /* there is nobody any more: it turns NCCL off */
	alarm(0);
	assert_int_equal(*mask, 0);
	assert_int_equal(write(in[1], &c, 1), 1);
	pthread_join(thread, &other);
	unsetenv("FAKE_NCCL_FDS");
	assert_non_null(other);
	dlclose(other);
}

static void *open_and_close(void *stop)
{
	void *other;

	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
		other = dlopen(OTHER, RTLD_NOW);
		if (!other)
			abort();
		dlclose(other);
	}
	return NULL;
}

static void test_child_amid_dlopen(void **state)
{
	int i, status, stop = 0, bad = 0;
	pthread_t thread;
	pid_t pid;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, open_and_close, &stop), 0);
	for (i = 0; i < CHILDREN; i++) {
		pid = fork();
		if (!pid) {
			alarm(PATIENCE);
			profiler->init(&ctx, 1, mask, "c", 1, 2, 0, NULL);
			profiler->finalize(ctx);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		bad += status != 0;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(bad, 0);
}

/* Whoever closes libnccl without an end of its communicators leaves the mask to be written by us, and by a recorder. */
static void test_nccl_stays(void **state)
{
	char path[] = FAKE_NCCL_DIR "/libnccl.so.2";
	void *nccl;
	int i;

	(void)state;
	for (i = 0; i < 100 && (nccl = dlopen(path, RTLD_NOW | RTLD_NOLOAD)); i++) {
		dlclose(nccl);
		dlclose(nccl); /* as whoever has opened it */
	}
	nccl = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	assert_non_null(nccl);
	*mask = 0xfbf;
	control->epoch++;
	profiler->stopEvent(handle);
	assert_int_equal(*mask, 0);
}

static void test_version(void **state)
{
	const struct scope_area *area = (const struct scope_area *)(uintptr_t)control->area;

	(void)state;
	assert_int_equal(area->comms[0].ctx, (uintptr_t)ctx);
	assert_int_equal(area->comms[0].nccl_version, 22907);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_version, begin, end),
		cmocka_unit_test_setup_teardown(test_event_amid_dlopen, begin, end),
		cmocka_unit_test_setup_teardown(test_child_amid_dlopen, begin, end),
		cmocka_unit_test_setup_teardown(test_nccl_stays, begin, end)};

	return cmocka_run_group_tests_name("linker", tests, NULL, NULL);
}
