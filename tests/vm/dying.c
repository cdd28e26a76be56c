// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dies in one of many ways with records in its buffer: dying PLUGIN WAY. All it does with NCCL's interface is
 * done by hand, so that what must be in the trace is known to the last event: EVENTS of them, in one chunk.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "nccl_profiler.h"
#include "scope_abi.h"

#define EVENTS 20

static const ncclProfiler_v5_t *prof;
static struct scope_control *control;
static void *context;

static void event(void)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileProxyCtrl};
	void *handle = NULL;

	prof->startEvent(context, &handle, &d);
	prof->stopEvent(handle);
}

static uint32_t buffered(void)
{
	const struct scope_area *area = (const struct scope_area *)(uintptr_t)control->area;
	const struct scope_tbuf_hdr *tb;
	uint32_t n = 0;
	int i;

	for (i = 0; i < SCOPE_TBUFS && area->tbufs[i]; i++) {
		tb = (const struct scope_tbuf_hdr *)(uintptr_t)area->tbufs[i];
		n += tb->rec_cnt;
	}
	return n;
}

/*
 * The first event makes this thread known to whoever records. It says what it has to say, which its epoch ends, however slow the
 * machine is, and a pause is for what it may say again. Then flushing by age is turned off: from there on the buffer fills and nothing
 * takes it away. Whether that is so is said, as nothing would be tried else.
 */
static void fill_buffer(void)
{
	int i;

	event();
	for (i = 0; i < 2000 && __atomic_load_n(&control->epoch, __ATOMIC_ACQUIRE) == 1; i++)
		usleep(10000);
	usleep(400000);
	control->flush_ticks = INT64_MAX;
	for (i = 1; i < EVENTS; i++)
		event();
	dprintf(STDOUT_FILENO, "buffered %u\n", buffered());
}

/* ---- The thread that has the records ends itself ------------------------------------------------- */

static void way_exit(void)
{
	fill_buffer();
	exit(0);
}

static void way_quick_exit(void)
{
	fill_buffer();
	_exit(0);
}

static void way_exec(void)
{
	fill_buffer();
	execl("/bin/true", "true", (char *)NULL);
}

static void way_kill(void)
{
	fill_buffer();
	raise(SIGKILL);
}

static void way_segv(void)
{
	fill_buffer();
	raise(SIGSEGV);
}

static void way_abort(void)
{
	fill_buffer();
	abort();
}

/* ---- Another thread ends it ---------------------------------------------------------------------- */

static pthread_barrier_t filled;

static void *fill_and_sleep(void *arg)
{
	fill_buffer();
	pthread_barrier_wait(&filled);
	for (;;)
		pause();
	return arg;
}

static void *fill_and_spin(void *arg)
{
	fill_buffer();
	pthread_barrier_wait(&filled);
	for (;;)
		;
	return arg;
}

static void start(void *(*body)(void *))
{
	pthread_t thread;

	pthread_barrier_init(&filled, NULL, 2);
	if (pthread_create(&thread, NULL, body, NULL)) {
		perror("Failed to create a thread");
		exit(1);
	}
	pthread_barrier_wait(&filled);
}

static void way_other_exit(void)
{
	start(fill_and_sleep);
	exit(0);
}

static void way_other_quick_exit(void)
{
	start(fill_and_sleep);
	_exit(0);
}

static void way_spinning_quick_exit(void)
{
	start(fill_and_spin);
	_exit(0);
}

static void way_other_exec(void)
{
	start(fill_and_sleep);
	execl("/bin/true", "true", (char *)NULL);
}

static void way_other_kill(void)
{
	start(fill_and_sleep);
	raise(SIGKILL);
}

static void way_spinning_kill(void)
{
	start(fill_and_spin);
	raise(SIGKILL);
}

static void *fill_and_return(void *arg)
{
	fill_buffer();
	return arg;
}

static void way_thread_returns(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, fill_and_return, NULL))
		pthread_join(thread, NULL);
	_exit(0);
}

static const struct {
	const char *name;
	void (*fn)(void);
} ways[] = {
	{"exit", way_exit},
	{"_exit", way_quick_exit},
	{"exec", way_exec},
	{"kill", way_kill},
	{"segv", way_segv},
	{"abort", way_abort},
	{"thread-returns", way_thread_returns},
	{"other-exit", way_other_exit},
	{"other-_exit", way_other_quick_exit},
	{"spinning-_exit", way_spinning_quick_exit},
	{"other-exec", way_other_exec},
	{"other-kill", way_other_kill},
	{"spinning-kill", way_spinning_kill},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static int load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int mask = 0;

	if (!lib) {
		fprintf(stderr, "Failed to load '%s': %s\n", path, dlerror());
		return -1;
	}
	prof = dlsym(lib, "ncclProfiler_v5");
	control = dlsym(lib, SCOPE_CONTROL_SYMBOL);
	if (!prof || !control) {
		fprintf(stderr, "Failed to find the symbols of '%s': %s\n", path, dlerror());
		return -1;
	}
	prof->init(&context, 1, &mask, "dying", 1, 1, 0, NULL);
	if (!(mask & ncclProfileProxyCtrl)) {
		fprintf(stderr, "Failed to be recorded: the activation mask is %#x\n", mask);
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "--ways")) {
		for (i = 0; i < WAYS; i++)
			puts(ways[i].name);
		return 0;
	}
	for (i = 0; argc == 3 && i < WAYS; i++) {
		if (strcmp(argv[2], ways[i].name))
			continue;
		if (load(argv[1]))
			return 1;
		ways[i].fn();
	}
	fprintf(stderr, "Usage: dying --ways | PLUGIN WAY\n");
	return 2;
}
