// SPDX-License-Identifier: BSD-2-Clause
/*
 * guest PLUGIN PROCESSES MODE [ARG...]: processes that are NCCL to the plugin and nothing else, so that many of them fit
 * on a small machine: no network, no polling threads. An operation is 5 events and 6 states. MODE is
 *   threads T N   T threads, each N operations, of one communicator
 *   paced T N R   the same, R operations a second by all threads together
 *   comms N       N communicators after each other, an operation in each
 *   idle          load the plugin, then wait for SIGTERM
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "nccl_profiler.h"

#define STEPS 1
#define BURST 16 /* operations between two sleeps of a paced thread */

static const ncclProfiler_v5_t *profiler;
static int mask;

struct worker {
	pthread_t thread;
	void *context;
	int operations;
	double period_ns; /* of one; 0: as fast as may be */
};

static void *begin(void *context, void *parent, ncclProfilerEventDescr_v5_t *d)
{
	void *handle = NULL;

	d->parentObj = parent;
	if (__atomic_load_n(&mask, __ATOMIC_RELAXED) & (int)d->type)
		profiler->startEvent(context, &handle, d);
	return handle;
}

static void state(void *handle, int id, size_t bytes)
{
	ncclProfilerEventStateArgs_v4_t args = {.proxyStep.transSize = bytes};

	profiler->recordEventState(handle, (ncclProfilerEventState_t)id, &args);
}

/* A receive of one step, below an operation. */
static void proxy(void *context, void *coll)
{
	ncclProfilerEventDescr_v5_t op = {.type = ncclProfileProxyOp},
				    step = {.type = ncclProfileProxyStep};
	void *op_handle, *step_handle;

	op.proxyOp.pid = getpid();
	op.proxyOp.nSteps = STEPS;
	op_handle = begin(context, coll, &op);
	state(op_handle, ncclProfilerProxyOpInProgress_v4, 0);
	step_handle = begin(context, op_handle, &step);
	state(step_handle, ncclProfilerProxyStepRecvWait, 0);
	state(step_handle, ncclProfilerProxyStepRecvFlushWait, 4096);
	state(step_handle, ncclProfilerProxyStepRecvGPUWait, 0);
	profiler->stopEvent(step_handle);
	profiler->stopEvent(op_handle);
}

static void operate(void *context)
{
	ncclProfilerEventDescr_v5_t group = {.type = ncclProfileGroupApi},
				    api = {.type = ncclProfileCollApi},
				    coll = {.type = ncclProfileColl};
	void *group_handle, *api_handle, *coll_handle;

	group_handle = begin(context, NULL, &group);
	state(group_handle, ncclProfilerGroupStartApiStop, 0);
	api.collApi.func = "AllReduce";
	api.collApi.datatype = "ncclFloat32";
	api_handle = begin(context, group_handle, &api);
	coll.coll.func = "AllReduce";
	coll.coll.datatype = "ncclFloat32";
	coll.coll.algo = "RING";
	coll.coll.proto = "SIMPLE";
	coll_handle = begin(context, api_handle, &coll);
	profiler->stopEvent(coll_handle);
	profiler->stopEvent(api_handle);
	state(group_handle, ncclProfilerGroupEndApiStart, 0);
	proxy(context, coll_handle);
	profiler->stopEvent(group_handle);
}

static void *communicator(uint64_t hash)
{
	void *context = NULL;

	profiler->init(&context, hash, &mask, "guest", 1, 2, 0, NULL);
	return context;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct timespec begin, at;
	long long ns;
	int i;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (i = 0; i < w->operations; i++) {
		operate(w->context);
		if (!w->period_ns || i % BURST)
			continue;
		ns = begin.tv_nsec + (long long)(w->period_ns * i);
		at.tv_sec = begin.tv_sec + (time_t)(ns / 1000000000);
		at.tv_nsec = (long)(ns % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	return NULL;
}

static int do_threads(int threads, int operations, int rate)
{
	struct worker *w = calloc((size_t)threads, sizeof(*w));
	void *context = communicator(1);
	int i;

	for (i = 0; w && i < threads; i++) {
		w[i].context = context;
		w[i].operations = operations;
		w[i].period_ns = rate ? 1e9 * threads / rate : 0;
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			return 1;
	}
	for (i = 0; w && i < threads; i++)
		pthread_join(w[i].thread, NULL);
	profiler->finalize(context);
	free(w);
	return !w;
}

static int do_comms(int n)
{
	void *context;
	int i;

	for (i = 0; i < n; i++) {
		context = communicator((uint64_t)i + 1);
		operate(context);
		profiler->finalize(context);
	}
	return 0;
}

static int do_idle(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &sig);
	return 0;
}

static int live(char **argv)
{
	void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

	profiler = plugin ? dlsym(plugin, "ncclProfiler_v5") : NULL;
	if (!profiler) {
		fprintf(stderr, "guest: Failed to load '%s': %s\n", argv[1], dlerror());
		return 1;
	}
	if (!strcmp(argv[3], "threads"))
		return do_threads(atoi(argv[4]), atoi(argv[5]), 0);
	if (!strcmp(argv[3], "paced"))
		return do_threads(atoi(argv[4]), atoi(argv[5]), atoi(argv[6]));
	if (!strcmp(argv[3], "comms"))
		return do_comms(atoi(argv[4]));
	return do_idle();
}

/* How many arguments there have to be. */
static int args_of(const char *mode)
{
	static const char *const modes[] = {"idle", "comms", "threads", "paced"};
	int i;

	for (i = 0; i < 4; i++)
		if (!strcmp(mode, modes[i]))
			return 4 + i;
	return 0;
}

int main(int argc, char **argv)
{
	int i, status, failed = 0, n = argc > 3 ? atoi(argv[2]) : 0;
	sigset_t set;
	pid_t pid;

	if (n < 1 || argc != args_of(argv[3])) {
		fprintf(stderr, "Usage: guest PLUGIN PROCESSES threads T N | paced T N R | comms N "
				"| idle\n");
		return 2;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (!strcmp(argv[3], "idle"))
		sigprocmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < n; i++) {
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGTERM);
			exit(live(argv));
		}
		failed += pid < 0;
	}
	if (!strcmp(argv[3], "idle"))
		return do_idle();
	while (wait(&status) > 0)
		failed += status != 0;
	return failed > 0;
}
