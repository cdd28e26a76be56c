// SPDX-License-Identifier: BSD-2-Clause
/*
 * 10^8 events in one process at full speed: no id is given twice, and every record that leaves a buffer
 * names the parent that its maker meant. Counts every id in a bitmap, when it is handed out and again
 * when its start and its stop come out of the flush probe.
 *
 * Usage: ids [-n EVENTS] [-t THREADS]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "nccl_profiler.h"
#include "plugin.h"

#define STEPS	    7	    /* of an operation: 8 events */
#define PER_THREAD  3000000 /* events before a thread ends and hands on its buffer */
#define MAX_THREADS 8

extern const ncclProfiler_v5_t ncclProfiler_v6;

enum { GIVEN, STARTED, STOPPED, MAPS };
static uint64_t *maps[MAPS], bits = 1ULL << 28;
static uint64_t left, nr_given, nr_started, nr_steps;

static __attribute__((noreturn)) void fail(const char *what, uint64_t id)
{
	fprintf(stderr, "not ok ids: %s (id %#llx)\n", what, (unsigned long long)id);
	abort();
}

static void mark(int map, uint64_t id)
{
	uint64_t n = id & ((1ULL << SCOPE_ID_COUNTER_BITS) - 1), bit = 1ULL << (n % 64);

	if (n >= bits)
		fail("counter runs away", id);
	if (__atomic_fetch_or(&maps[map][n / 64], bit, __ATOMIC_RELAXED) & bit)
		fail(map == GIVEN ? "given twice" : "recorded twice", id);
}

/* ---- What leaves the buffers ------------------------------------------------------------------- */

/* Of this thread: its operation, as the records tell it. The maker writes what it meant into `step`. */
static __thread uint64_t op_seen;

static void start_seen(const struct scope_rec_start *s)
{
	mark(STARTED, s->h.id);
	__atomic_fetch_add(&nr_started, 1, __ATOMIC_RELAXED);
	if (SCOPE_ID_WHAT(s->h.id) == SCOPE_PROXY_OP) {
		op_seen = s->h.id;
		return;
	}
	__atomic_fetch_add(&nr_steps, 1, __ATOMIC_RELAXED);
	if (s->parent != op_seen || s->h.u32 != (uint32_t)op_seen)
		fail("false parent", s->h.id);
}

void __real_probe_flush(void *tb, uint64_t reason);
void __wrap_probe_flush(void *tb, uint64_t reason);

void __wrap_probe_flush(void *p, uint64_t reason)
{
	const struct tbuf *tb = p;
	const struct scope_rec_hdr *r;
	uint32_t off, n = 0;

	__real_probe_flush(p, reason);
	for (off = 0; off < tb->h.len; off += r->size, n++) {
		r = (const struct scope_rec_hdr *)(tb->data + off);
		if (!r->size || r->size > tb->h.len - off)
			fail("torn record", off);
		if (r->kind == SCOPE_REC_START || r->kind == SCOPE_REC_STEP)
			start_seen((const struct scope_rec_start *)r);
		if (r->kind == SCOPE_REC_STEP && ((const struct scope_rec_step *)r)->ticks[3]) {
			mark(STOPPED, r->id);
			n++;
		}
		if (r->kind == SCOPE_REC_STOP)
			mark(STOPPED, r->id);
	}
	if (n != tb->h.rec_cnt)
		fail("wrong count of records", n);
}

/* ---- Callbacks --------------------------------------------------------------------------------- */

static void *start(void *ctx, uint64_t type, void *parent)
{
	ncclProfilerEventDescr_v7_t d = {.type = type, .parentObj = parent};
	void *handle = NULL;

	/* In the lower half of the id: what a record with another's parent could not have. */
	d.proxyStep.step = (int)(uint32_t)(uintptr_t)parent;
	if (ncclProfiler_v6.startEvent(ctx, &handle, &d) || !handle)
		fail("start failed", 0);
	mark(GIVEN, (uintptr_t)handle);
	return handle;
}

static void *run(void *ctx)
{
	void *op, *steps[STEPS];
	uint64_t n;
	int i;

	for (n = 0; n < PER_THREAD; n += 1 + STEPS) {
		op = start(ctx, ncclProfileProxyOp, NULL);
		for (i = 0; i < STEPS; i++)
			steps[i] = start(ctx, ncclProfileProxyStep, op);
		for (i = 0; i < STEPS; i++)
			ncclProfiler_v6.stopEvent(steps[i]);
		ncclProfiler_v6.stopEvent(op);
	}
	__atomic_fetch_add(&nr_given, n, __ATOMIC_RELAXED);
	return NULL;
}

static void *worker(void *ctx)
{
	pthread_t thread;

	while ((int64_t)__atomic_fetch_sub(&left, PER_THREAD, __ATOMIC_RELAXED) > 0) {
		if (pthread_create(&thread, NULL, run, ctx))
			fail("pthread_create", 0);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static uint64_t count_bits(int map)
{
	uint64_t i, n = 0;

	for (i = 0; i < bits / 64; i++)
		n += (uint64_t)__builtin_popcountll(maps[map][i]);
	return n;
}

int main(int argc, char **argv)
{
	uint64_t events = 100000000;
	pthread_t threads[MAX_THREADS];
	int i, c, nthreads = 4, mask = 0;
	struct timespec a, b;
	void *ctx = NULL;

	while ((c = getopt(argc, argv, "n:t:")) != -1) {
		if (c == 'n')
			events = strtoull(optarg, NULL, 0);
		else if (c == 't')
			nthreads = atoi(optarg);
	}
	if (optind != argc || nthreads < 1 || nthreads > MAX_THREADS || events > bits / 2) {
		fprintf(stderr, "Usage: ids [-n EVENTS] [-t THREADS]\n");
		return 2;
	}
	for (i = 0; i < MAPS; i++)
		maps[i] = calloc(bits / 64, sizeof(uint64_t));
	scope_sems.flush = 1;
	ncclProfiler_v6.init(&ctx, 1, &mask, "ids", 1, 1, 0, NULL);
	clock_gettime(CLOCK_MONOTONIC, &a);
	left = events;
	for (i = 0; i < nthreads; i++)
		if (pthread_create(&threads[i], NULL, worker, ctx))
			fail("pthread_create", 0);
	while (i--)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (nr_given < events || nr_started != nr_given || count_bits(GIVEN) != nr_given)
		fail("events are missing", nr_given);
	if (memcmp(maps[GIVEN], maps[STARTED], bits / 8) ||
	    memcmp(maps[GIVEN], maps[STOPPED], bits / 8))
		fail("what was recorded is not what was given", nr_given);
	printf("%llu events, %llu steps below their operation, %d threads at a time: %.1f s\n",
	       (unsigned long long)nr_given, (unsigned long long)nr_steps, nthreads,
	       (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
	printf("ok ids\n");
	return 0;
}
