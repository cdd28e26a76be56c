// SPDX-License-Identifier: BSD-2-Clause
/*
 * The GPU's UUID as init publishes it, with and without a libcuda in the process. The program's RUNPATH
 * has one, so that a plugin that loaded it would be seen.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "plugin.h"

#define REST "ff807f-dead-beef-9988-c0ffee0ab0f1"

extern const ncclProfiler_v5_t ncclProfiler_v6;

/* By a link, as libcuda.so.1 is one to libcuda.so.535.54.03. */
static void *load_by_link(const char *path)
{
	char dir[] = "/tmp/ncclscope-cuda.XXXXXX", link[64];
	void *lib = NULL;

	if (!mkdtemp(dir))
		return NULL;
	snprintf(link, sizeof(link), "%s/other.so", dir);
	if (!symlink(path, link))
		lib = dlopen(link, RTLD_NOW);
	unlink(link);
	rmdir(dir);
	return lib;
}

/* In a process of its own, where `lib` is loaded (or none) and `env` set: 0 if init published `uuid`. */
static int published(const char *lib, const char *env, const char *uuid)
{
	const struct scope_comm *comm;
	char path[256];
	int mask = 0;
	void *ctx;

	if (env)
		setenv(env, "1", 1);
	snprintf(path, sizeof(path), "%s/%s/libcuda.so.1", FAKE_CUDA_DIR, lib ? lib : "");
	if (lib && !(getenv("BY_LINK") ? load_by_link(path) : dlopen(path, RTLD_NOW)))
		return 2;
	scope_sems.flush = 1;
	ncclProfiler_v6.init(&ctx, 1, &mask, "c", 1, 1, 0, NULL);
	comm = &area_peek()->comms[0];
	if (comm->ctx != (uintptr_t)ctx)
		return 3;
	if (!lib && dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
		return 4; /* we brought it in */
	if (!lib && !dlopen("libcuda.so.1", RTLD_NOW))
		return 5; /* it was not there to be found: this test shows nothing */
	if (strlen(uuid) != (*uuid ? SCOPE_GPU_UUID_LEN : 0))
		return 6;
	return strncmp(comm->gpu_uuid, uuid, SCOPE_GPU_UUID_LEN) ? 7 : 0;
}

static void check(const char *lib, const char *env, const char *uuid)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(published(lib, env, uuid));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_uuid(void **state)
{
	(void)state;
	check("cuda", NULL, "82" REST); /* _v2 first: it tells MIG instances apart */
	check("cuda-no-v2", NULL, "81" REST);
	check("cuda", "BY_LINK", "82" REST);
}

static void test_none(void **state)
{
	(void)state;
	check(NULL, NULL, "");
	check("cuda-no-uuid", NULL, "");
	check("cuda", "FAKE_CUDA_NO_CONTEXT", "");
	check("cuda", "FAKE_CUDA_NO_UUID", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_uuid),
					   cmocka_unit_test(test_none)};

	return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
