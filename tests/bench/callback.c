// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a profiler plugin's callback costs the thread that makes it: loads any plugin as NCCL does (ncclProfiler_v5)
 * and replays the callbacks of an AllReduce from two threads, the application's and the proxy's, in NCCL's order,
 * with nothing in between. No NCCL, no data: what is left when all else is free.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#include "nccl_profiler.h"

#define NSEC_PER_SEC 1000000000ull
#define CHANNELS_MAX 32
#define DEPTH	     4 /* steps of a connection in flight: NCCL's 8 slots by 2 a slice, ring/Simple */
#define WARM_UP	     16 /* operations before anything counts */
#define WINDOW                                                                                     \
	1400 /* callbacks of the proxy's, with a few flushes in them: 8 channels' operation */
#define HIST_TICKS (1u << 20)
#define CALLS_MAX  (1u << 17) /* of one operation on one thread */

#define MASK_BELOW                                                                                 \
	(ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileKernelCh | ncclProfileNetPlugin)
#define MASK_COLL	(ncclProfileColl | MASK_BELOW)
#define MASK_GROUP	(ncclProfileGroup | ncclProfileP2p | MASK_COLL)
#define MASK_COLL_API	(ncclProfileCollApi | MASK_COLL)
#define MASK_GROUP_API	(0xfff & ~ncclProfileProxyCtrl)
#define MASK_PROXY_OP	(ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin)
#define MASK_PROXY_STEP (ncclProfileProxyStep | ncclProfileNetPlugin)

#define unlikely(x) __builtin_expect(!!(x), 0)

struct options {
	const char *plugin;
	int force; /* mask whatever the plugin says; -1 as it says */
	int ops, channels, steps;
	int rate;    /* operations a second; 0: as fast as they go */
	int cpus[2]; /* of the application and of the proxy; -1: anywhere */
	bool each;   /* time every callback by itself */
};
static struct options opt = {.force = -1, .ops = 300, .channels = 8, .steps = 16, .cpus = {-1, -1}};

/* What NCCL has: the plugin's table, its mask word, the context. */
static const ncclProfiler_v5_t *prof;
static int event_mask;
static void *context;

/* One of the two threads. */
struct side {
	uint64_t calls;	 /* that were made */
	uint64_t ncalls; /* of those, when what counts began */
	uint64_t cpu_ns, begin_ns;
	double *op_ns; /* by the wall clock, of each operation */
	bool each;
	uint32_t nticks;
	uint32_t *ticks; /* of each callback of this operation */
	uint32_t *hist;	 /* of all, in ticks; owned */
	uint64_t nhist;
};
static struct side app, proxy;

static __attribute__((noreturn)) void die(const char *what)
{
	fprintf(stderr, "callback: Failed to %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- Clocks ------------------------------------------------------------------------------------ */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* A pair around what is timed: nothing of it moves out, nothing else in. */
static inline uint64_t ticks_begin(void)
{
#if defined(__x86_64__)
	_mm_lfence();
	return __rdtsc();
#else
	return clock_ns(CLOCK_MONOTONIC);
#endif
}

static inline uint64_t ticks_end(void)
{
#if defined(__x86_64__)
	unsigned int cpu;
	uint64_t t = __rdtscp(&cpu);

	_mm_lfence();
	return t;
#else
	return clock_ns(CLOCK_MONOTONIC);
#endif
}

/* Ticks in a nanosecond, over 20 ms. */
static double ticks_per_ns(void)
{
	uint64_t ns = clock_ns(CLOCK_MONOTONIC), t = ticks_begin(), end;

	while ((end = clock_ns(CLOCK_MONOTONIC)) < ns + 20000000)
		;
	return (double)(ticks_end() - t) / (double)(end - ns);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* What a pair says of nothing: the median of many. It is taken off every single callback's time. */
static uint32_t pair_ticks(void)
{
	static uint32_t t[4001];
	const size_t n = sizeof(t) / sizeof(t[0]);
	uint64_t begin;
	size_t i;

	for (i = 0; i < n; i++) {
		begin = ticks_begin();
		t[i] = (uint32_t)(ticks_end() - begin);
	}
	qsort(t, n, sizeof(t[0]), by_size);
	return t[n / 2];
}

/* ---- Calls ------------------------------------------------------------------------------------- */

static inline void tick(struct side *s, uint64_t begin)
{
	uint64_t t = ticks_end() - begin;

	if (s->nticks < CALLS_MAX)
		s->ticks[s->nticks++] = t < HIST_TICKS ? (uint32_t)t : HIST_TICKS - 1;
}

static inline void call_start(struct side *s, void **handle, ncclProfilerEventDescr_v5_t *d)
{
	uint64_t begin;

	s->calls++;
	if (unlikely(s->each)) {
		begin = ticks_begin();
		prof->startEvent(context, handle, d);
		tick(s, begin);
	} else {
		prof->startEvent(context, handle, d);
	}
}

static inline void call_stop(struct side *s, void *handle)
{
	uint64_t begin;

	s->calls++;
	if (unlikely(s->each)) {
		begin = ticks_begin();
		prof->stopEvent(handle);
		tick(s, begin);
	} else {
		prof->stopEvent(handle);
	}
}

static inline void call_state(struct side *s, void *handle, int state,
			      ncclProfilerEventStateArgs_v4_t *args)
{
	uint64_t begin;

	s->calls++;
	if (unlikely(s->each)) {
		begin = ticks_begin();
		prof->recordEventState(handle, state, args);
		tick(s, begin);
	} else {
		prof->recordEventState(handle, state, args);
	}
}

/* ---- Where NCCL calls --------------------------------------------------------------------------
 *
 * NCCL's src/plugin/profiler.cc has a function for each: it tests the plugin and the mask that the operation was
 * enqueued with, fills a descriptor on its stack and calls. They are called whether there is a plugin or not.
 */
#define POINT static __attribute__((noinline)) void

static inline bool on(int mask, int bits)
{
	return prof && (mask & bits);
}

POINT group_api_start(int mask, void **h)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileGroupApi};

	if (!on(mask, MASK_GROUP_API))
		return;
	d.groupApi.groupDepth = 1;
	call_start(&app, h, &d);
}

POINT group_api_state(void *h, int state)
{
	if (prof && h)
		call_state(&app, h, state, NULL);
}

POINT coll_api_start(int mask, void *group, void **h)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileCollApi, .parentObj = group};

	if (!on(mask, MASK_COLL_API))
		return;
	d.collApi.func = "AllReduce";
	d.collApi.count = 1 << 24;
	d.collApi.datatype = "ncclFloat32";
	d.collApi.stream = &app;
	call_start(&app, h, &d);
}

POINT launch_start(int mask, void *group, void **h)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileKernelLaunch, .parentObj = group};

	if (!on(mask, ncclProfileKernelLaunch))
		return;
	d.kernelLaunch.stream = &app;
	call_start(&app, h, &d);
}

POINT group_start(int mask, void **h)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileGroup};

	if (on(mask, MASK_GROUP))
		call_start(&app, h, &d);
}

POINT coll_start(int mask, void *api, void *group, uint64_t seq, void **h)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileColl, .parentObj = api};

	if (!on(mask, MASK_COLL))
		return;
	d.coll.parentGroup = group;
	d.coll.seqNumber = seq;
	d.coll.func = "AllReduce";
	d.coll.sendBuff = &app;
	d.coll.recvBuff = &proxy;
	d.coll.count = 1 << 24;
	d.coll.datatype = "ncclFloat32";
	d.coll.nChannels = (uint8_t)opt.channels;
	d.coll.nWarps = 17;
	d.coll.algo = "RING";
	d.coll.proto = "SIMPLE";
	call_start(&app, h, &d);
}

POINT stop(struct side *s, void *h)
{
	if (prof && h)
		call_stop(s, h);
}

struct conn {
	void *op, *step[DEPTH];
	int channel, posted, sent, received, done;
	bool send;
};

POINT op_start(int mask, struct conn *c, void *coll)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileProxyOp, .parentObj = coll};

	if (!on(mask, MASK_PROXY_OP))
		return;
	d.proxyOp.pid = getpid(); /* kept by glibc's caller in NCCL too: once an operation */
	d.proxyOp.channelId = (uint8_t)c->channel;
	d.proxyOp.peer = 1;
	d.proxyOp.nSteps = opt.steps;
	d.proxyOp.chunkSize = 4 << 20;
	d.proxyOp.isSend = c->send;
	call_start(&proxy, &c->op, &d);
}

POINT op_progress(struct conn *c)
{
	ncclProfilerEventStateArgs_v4_t a = {0};

	if (prof && c->op)
		call_state(&proxy, c->op, ncclProfilerProxyOpInProgress_v4, &a);
}

POINT step_start(int mask, struct conn *c, int step)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileProxyStep, .parentObj = c->op};

	if (!on(mask, MASK_PROXY_STEP))
		return;
	d.proxyStep.step = step;
	call_start(&proxy, &c->step[step % DEPTH], &d);
}

POINT step_state(struct conn *c, int step, int state)
{
	ncclProfilerEventStateArgs_v4_t a = {.proxyStep = {.transSize = 1 << 20}};

	if (prof && c->op && c->step[step % DEPTH])
		call_state(&proxy, c->step[step % DEPTH], state, &a);
}

POINT step_stop(struct conn *c, int step)
{
	if (!prof || !c->step[step % DEPTH])
		return;
	call_stop(&proxy, c->step[step % DEPTH]);
	c->step[step % DEPTH] = NULL;
}

POINT ctrl_start(void **h)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileProxyCtrl};

	*h = NULL;
	if (on(__atomic_load_n(&event_mask, __ATOMIC_RELAXED), ncclProfileProxyCtrl))
		call_start(&proxy, h, &d);
}

POINT ctrl_state(void *h, int state)
{
	ncclProfilerEventStateArgs_v4_t a = {.proxyCtrl = {.appendedProxyOps = opt.channels}};

	if (h && on(__atomic_load_n(&event_mask, __ATOMIC_RELAXED), ncclProfileProxyCtrl))
		call_state(&proxy, h, state, &a);
}

POINT kernel_start(int mask, int channel, void *coll, void **h)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileKernelCh, .parentObj = coll};

	if (!on(mask, ncclProfileKernelCh))
		return;
	d.kernelCh.channelId = (uint8_t)channel;
	d.kernelCh.pTimer = 1700000000000000000ull;
	call_start(&proxy, h, &d);
}

POINT kernel_stop(void *h)
{
	ncclProfilerEventStateArgs_v4_t a = {.kernelCh = {.pTimer = 1700000000000001024ull}};

	if (!prof || !h)
		return;
	call_state(&proxy, h, ncclProfilerKernelChStop, &a);
	call_stop(&proxy, h);
}

/* ---- An operation on the proxy's thread -------------------------------------------------------- */

struct op {
	int mask;
	void *coll;
};

/* One pass of NCCL's sendProxyProgress over a connection: post, or hand to the network, or find done. */
static bool send_pass(int mask, struct conn *c)
{
	if (c->posted < opt.steps && c->posted < c->done + DEPTH) {
		step_start(mask, c, c->posted);
		step_state(c, c->posted++, ncclProfilerProxyStepSendGPUWait);
	} else if (c->sent < c->posted) {
		step_state(c, c->sent, ncclProfilerProxyStepSendPeerWait_v4);
		step_state(c, c->sent++, ncclProfilerProxyStepSendWait);
	} else {
		step_stop(c, c->done++);
	}
	return c->done == opt.steps;
}

/* recvProxyProgress goes through all stages in one pass. */
static bool recv_pass(int mask, struct conn *c)
{
	if (c->posted < opt.steps && c->posted < c->done + DEPTH) {
		step_start(mask, c, c->posted);
		step_state(c, c->posted++, ncclProfilerProxyStepRecvWait);
		if (c->posted < DEPTH)
			return false;
	}
	if (c->received < c->posted)
		step_state(c, c->received++, ncclProfilerProxyStepRecvFlushWait);
	if (c->sent < c->received - 1 || c->received == opt.steps)
		step_state(c, c->sent++, ncclProfilerProxyStepRecvGPUWait);
	if (c->done < c->sent - 1 || c->sent == opt.steps)
		step_stop(c, c->done++);
	return c->done == opt.steps;
}

static void ctrl(int first, int second)
{
	void *h;

	ctrl_start(&h);
	ctrl_state(h, first);
	if (second)
		ctrl_state(h, second);
	stop(&proxy, h);
}

static void proxy_op(const struct op *op)
{
	struct conn conns[2 * CHANNELS_MAX] = {0};
	void *kernel[CHANNELS_MAX] = {0};
	int i, left, n = 2 * opt.channels;

	ctrl(ncclProfilerProxyCtrlAppend, ncclProfilerProxyCtrlAppendEnd);
	for (i = 0; i < n; i++) {
		conns[i].channel = i / 2;
		conns[i].send = i % 2;
		op_start(op->mask, &conns[i], op->coll);
	}
	for (i = 0; i < n; i++)
		op_progress(&conns[i]);
	for (i = 0; i < opt.channels; i++)
		kernel_start(op->mask, i, op->coll, &kernel[i]);
	for (left = n; left;) {
		for (i = 0; i < n; i++) {
			struct conn *c = &conns[i];

			if (c->done == opt.steps)
				continue;
			if (c->send ? send_pass(op->mask, c) : recv_pass(op->mask, c)) {
				stop(&proxy, c->op);
				left--;
			}
		}
	}
	for (i = 0; i < opt.channels; i++)
		kernel_stop(kernel[i]);
	ctrl(ncclProfilerProxyCtrlIdle, 0);
}

/* ---- Timing ------------------------------------------------------------------------------------ */

/*
 * CPU time is what the thread itself has used: nothing of what ran instead of it. It is looked at twice an
 * operation, over a thousand callbacks apart.
 */
static void side_begin(struct side *s)
{
	s->nticks = 0;
	s->begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void side_end(struct side *s, int i)
{
	uint64_t ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->begin_ns;
	uint32_t k;

	if (i < 0) {
		s->ncalls = s->calls;
		return;
	}
	s->cpu_ns += ns;
	s->op_ns[i] = (double)ns;
	for (k = 0; k < s->nticks; k++)
		s->hist[s->ticks[k]]++;
	s->nhist += s->nticks;
}

static void side_setup(struct side *s)
{
	s->each = opt.each;
	s->op_ns = calloc((size_t)opt.ops, sizeof(*s->op_ns));
	s->ticks = calloc(CALLS_MAX, sizeof(*s->ticks));
	s->hist = calloc(HIST_TICKS, sizeof(*s->hist));
	if (!s->op_ns || !s->ticks || !s->hist)
		die("allocate");
}

/* ---- The threads ------------------------------------------------------------------------------- */

static struct op posted_op;
static sem_t posted, done;

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("take the CPU");
}

/*
 * NCCL's progress thread sleeps on a condition when it has nothing to do, and so does this one: a thread that looks
 * every few microseconds costs nothing alone, but 64 of them take the CPU from each other in the middle of a callback.
 */
static void *proxy_run(void *unused)
{
	int i;

	pin(opt.cpus[1]);
	for (i = -WARM_UP; i < opt.ops; i++) {
		while (sem_wait(&posted))
			;
		side_begin(&proxy);
		proxy_op(&posted_op);
		side_end(&proxy, i);
		sem_post(&done);
	}
	return unused;
}

static void app_op(uint64_t seq)
{
	void *group_api = NULL, *api = NULL, *launch = NULL, *group = NULL, *coll = NULL;
	int mask = opt.force >= 0 ? opt.force : __atomic_load_n(&event_mask, __ATOMIC_RELAXED);

	if (opt.force >= 0) /* a plugin that nobody listens to switches it off */
		__atomic_store_n(&event_mask, mask, __ATOMIC_RELAXED);
	group_api_start(mask, &group_api);
	group_api_state(group_api, ncclProfilerGroupStartApiStop);
	coll_api_start(mask, group_api, &api);
	stop(&app, api);
	group_api_state(group_api, ncclProfilerGroupEndApiStart);
	launch_start(mask, group_api, &launch);
	stop(&app, launch);
	group_start(mask, &group);
	coll_start(mask, api, group, seq, &coll);
	stop(&app, coll);
	stop(&app, group);
	stop(&app, group_api);
	posted_op = (struct op){.mask = mask, .coll = coll};
}

static void app_run(void)
{
	uint64_t next = clock_ns(CLOCK_MONOTONIC);
	struct timespec ts;
	int i;

	pin(opt.cpus[0]);
	for (i = -WARM_UP; i < opt.ops; i++) {
		if (opt.rate) {
			next += NSEC_PER_SEC / (uint64_t)opt.rate;
			ts = (struct timespec){.tv_sec = (time_t)(next / NSEC_PER_SEC),
					       .tv_nsec = (long)(next % NSEC_PER_SEC)};
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
		}
		side_begin(&app);
		app_op((uint64_t)(i + WARM_UP));
		side_end(&app, i);
		sem_post(&posted);
		while (sem_wait(&done))
			;
	}
}

/* ---- What is said ------------------------------------------------------------------------------ */

static int by_ns(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile_ns(const struct side *s, double q, double rate, uint32_t pair)
{
	uint64_t want = (uint64_t)((double)s->nhist * q), seen = 0;
	uint32_t t;

	for (t = 0; t < HIST_TICKS; t++) {
		seen += s->hist[t];
		if (seen > want)
			break;
	}
	return t > pair ? (double)(t - pair) / rate : 0;
}

/*
 * Of so many operations each the time, in order; how many such windows there are. A buffer is flushed every few
 * hundred callbacks: the quietest of single operations with few channels would be those in which none is.
 */
static int windows(double *op_ns, int ops)
{
	int n = opt.ops / ops, i, k;
	double sum;

	for (i = 0; i < n; i++) {
		for (sum = 0, k = 0; k < ops; k++)
			sum += op_ns[i * ops + k];
		op_ns[i] = sum;
	}
	qsort(op_ns, (size_t)n, sizeof(*op_ns), by_ns);
	return n;
}

/*
 * `points`: where NCCL would call in an operation with everything on; what a callback costs is the time over these.
 * `ops`: operations of a window.
 */
static void print_side(const char *name, struct side *s, uint64_t points, int ops, double rate,
		       uint32_t pair)
{
	uint64_t n = points * (uint64_t)opt.ops;
	int nwindows = windows(s->op_ns, ops);
	double window = (double)points * ops;

	printf(",\"%s\":{\"points\":%llu,\"calls\":%llu,\"allCalls\":%llu", name,
	       (unsigned long long)n, (unsigned long long)(s->calls - s->ncalls),
	       (unsigned long long)s->calls);
	if (!s->each)
		printf(",\"mean\":%.3f,\"median\":%.3f,\"quiet\":%.3f",
		       (double)s->cpu_ns / (double)n, s->op_ns[nwindows / 2] / window,
		       s->op_ns[nwindows / 10] / window);
	else if (s->nhist)
		printf(",\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f",
		       quantile_ns(s, 0.5, rate, pair), quantile_ns(s, 0.9, rate, pair),
		       quantile_ns(s, 0.99, rate, pair), quantile_ns(s, 0.999, rate, pair),
		       quantile_ns(s, 1 - 1e-12, rate, pair));
	putchar('}');
}

static void print(double rate, uint32_t pair)
{
	uint64_t points = 2 * (uint64_t)opt.channels * (3 + 5 * (uint64_t)opt.steps) +
			  3 * (uint64_t)opt.channels + 7;
	int ops = (int)((WINDOW + points - 1) / points);

	ops = ops < opt.ops ? ops : opt.ops;
	printf("{\"pid\":%d,\"mask\":%d,\"ops\":%d,\"channels\":%d,\"steps\":%d,\"clockNs\":%.1f",
	       getpid(), event_mask, opt.ops, opt.channels, opt.steps, pair / rate);
	print_side("app", &app, 12, ops, rate, pair);
	print_side("proxy", &proxy, points, ops, rate, pair);
	puts("}");
}

/* ---- The command line -------------------------------------------------------------------------- */

static void open_plugin(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	prof = lib ? dlsym(lib, "ncclProfiler_v5") : NULL;
	if (!prof) {
		fprintf(stderr, "callback: Failed to load '%s': %s\n", path, dlerror());
		exit(1);
	}
	if (prof->init(&context, 0x1234567890abcdefull, &event_mask, "bench", 1, 2, 0, NULL)) {
		fprintf(stderr, "callback: '%s' refuses to begin\n", path);
		exit(1);
	}
}

static __attribute__((noreturn)) void usage(void)
{
	fprintf(stderr,
		"Usage: callback [--plugin PATH] [--force MASK] [--ops N] [--rate N] [--channels "
		"N]\n"
		"                [--steps N] [--cpus APP,PROXY] [--each]\n"
		"  --plugin PATH     what to call (nothing)\n"
		"  --force MASK      NCCL's event mask, whatever the plugin makes of it\n"
		"  --ops N           AllReduces (300)\n"
		"  --rate N          of them in a second (as many as will)\n"
		"  --channels N      channels of each, at most 32 (8)\n"
		"  --steps N         steps of each connection, two a channel (16)\n"
		"  --cpus APP,PROXY  CPUs of the two threads (anywhere)\n"
		"  --each            time each callback by itself: quantiles instead of means\n");
	exit(2);
}

static void parse_cpus(const char *s)
{
	char *end;

	opt.cpus[0] = (int)strtol(s, &end, 10);
	if (*end != ',')
		usage();
	opt.cpus[1] = (int)strtol(end + 1, &end, 10);
	if (*end)
		usage();
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"plugin", required_argument, NULL, 'p'},
		{"force", required_argument, NULL, 'f'},
		{"ops", required_argument, NULL, 'o'},
		{"rate", required_argument, NULL, 'r'},
		{"channels", required_argument, NULL, 'c'},
		{"steps", required_argument, NULL, 's'},
		{"cpus", required_argument, NULL, 'C'},
		{"each", no_argument, NULL, 'e'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'p':
			opt.plugin = optarg;
			break;
		case 'f':
			opt.force = (int)strtol(optarg, NULL, 0);
			break;
		case 'o':
			opt.ops = atoi(optarg);
			break;
		case 'r':
			opt.rate = atoi(optarg);
			break;
		case 'c':
			opt.channels = atoi(optarg);
			break;
		case 's':
			opt.steps = atoi(optarg);
			break;
		case 'C':
			parse_cpus(optarg);
			break;
		case 'e':
			opt.each = true;
			break;
		default:
			usage();
		}
	}
	if (optind != argc || opt.ops < 1 || opt.rate < 0 || opt.steps < DEPTH ||
	    opt.channels < 1 || opt.channels > CHANNELS_MAX)
		usage();
}

int main(int argc, char **argv)
{
	pthread_t thread;
	uint32_t pair;
	double rate;

	parse(argc, argv);
	if (opt.plugin)
		open_plugin(opt.plugin);
	pin(opt.cpus[1]); /* on the CPU that counts */
	rate = ticks_per_ns();
	pair = pair_ticks();
	side_setup(&app);
	side_setup(&proxy);
	if (sem_init(&posted, 0, 0) || sem_init(&done, 0, 0) ||
	    pthread_create(&thread, NULL, proxy_run, NULL))
		die("start a thread");
	app_run();
	pthread_join(thread, NULL);
	print(rate, pair);
	if (prof)
		prof->finalize(context);
	return 0;
}
