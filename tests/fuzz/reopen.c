// SPDX-License-Identifier: BSD-2-Clause
/*
 * The built library as NCCL loads it: dlopen, dlclose and dlopen again, threads that end after the last
 * dlclose, and a process that ends with it. Usage: reopen LIBRARY
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "elf_file.h"
#include "nccl_profiler.h"
#include "scope_abi.h"
#include "scope_probes.h"

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("not ok reopen: line %d: not so: %s\n", __LINE__, #cond);           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const char *path;
static const ncclProfiler_v5_t *table;
static pthread_barrier_t barrier;

/* As a tracer would set it: by the note, since the plugin hides the symbol. */
static void set_flush_semaphore(void *lib, uint16_t v)
{
	unsigned long long at;
	struct link_map *map;
	int sites, fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && !dlinfo(lib, RTLD_DI_LINKMAP, &map));
	CHECK(!elf__usdt(fd, SCOPE_PROVIDER, SCOPE_PROBE_FLUSH, &sites, &at) && sites == 1 && at);
	close(fd);
	*(volatile uint16_t *)(map->l_addr + at) = v;
}

static uint64_t event(void)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileGroupApi};
	void *handle = NULL;

	CHECK(!table->startEvent(NULL, &handle, &d) && handle);
	return (uintptr_t)handle;
}

/* Makes a record, and ends when the library has been closed. */
static void *outlive(void *arg)
{
	*(uint64_t *)arg = event();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct scope_control *control, *again;
	uint64_t first, second, third;
	pthread_t thread;
	void *lib, *ctx = NULL;
	int mask = 0;

	path = argc == 2 ? argv[1] : "";
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		printf("not ok reopen: %s\n", dlerror());
		return 1;
	}
	table = dlsym(lib, "ncclProfiler_v6");
	control = dlsym(lib, SCOPE_CONTROL_SYMBOL);
	CHECK(table && control && control->magic == SCOPE_CONTROL_MAGIC && !control->area);
	set_flush_semaphore(lib, 1);
	CHECK(!table->init(&ctx, 1, &mask, "c", 1, 1, 0, NULL) && ctx && mask);
	pthread_barrier_init(&barrier, NULL, 2);
	CHECK(!pthread_create(&thread, NULL, outlive, &first));
	pthread_barrier_wait(&barrier);
	CHECK(!table->finalize(ctx) && !dlclose(lib));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);

	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(lib);
	table = dlsym(lib, "ncclProfiler_v7");
	again = dlsym(lib, SCOPE_CONTROL_SYMBOL);
	CHECK(table && again == control && control->area);
	second = event();
	third = event();
	CHECK(first != second && second != third && SCOPE_ID_TAG(first) == SCOPE_ID_TAG(second));
	CHECK(!table->stopEvent((void *)(uintptr_t)first)); /* late, of another life */
	CHECK(!dlclose(lib));
	CHECK(!table->stopEvent((void *)(uintptr_t)second)); /* after dlclose: still mapped */
	printf("ok reopen\n");
	return 0; /* with records in the buffer: the exit handler flushes */
}
