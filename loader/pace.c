// SPDX-License-Identifier: BSD-2-Clause
/* Giving way, and not for too long; see pace.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "log.h"
#include "pace.h"
#include "thread.h"

#define LOOK_NS	  (50 * 1000000ull)
#define LATE_NS	  (100 * 1000000ull) /* since the last turn: counters are sampled so often */
#define LASTS_NS  (300 * 1000000ull) /* at least, SPARE: who is late is seen, and gets its turn */
#define SAMPLE_NS 3000000L
#define SPARE	  8 /* of the ring one part in so many may fill up; there BPF begins to share it out */

/*
 * Whoever is SCHED_IDLE holds no lock: it may get no CPU for a second, and nobody would help it. `idle` is what the thread wants to
 * be; who finds it behind makes it SCHED_OTHER, again and again, whatever it is just about to do.
 */
struct pace {
	pid_t tid; /* whose pace it is */
	pace_ring_fn ring;
	const void *arg;
	uint64_t spare;			   /* bytes */
	uint64_t since_ns, since_produced; /* what comes is counted from there */
	bool calm;			   /* and it was little */
	_Atomic uint64_t turn_ns, late;
	atomic_bool idle, raised; /* raised: for this turn */
	pthread_t thread;
	pthread_mutex_t lock; /* for what follows, at the begin and the end */
	pthread_cond_t wake;  /* of CLOCK_MONOTONIC */
	bool tried, ends;
	int err; /* tried: why the thread cannot change policies */
};

/* 0 or -errno. */
static int be(pid_t tid, int policy)
{
	const struct sched_param none = {0};

	return sched_setscheduler(tid, policy, &none) ? -errno : 0;
}

/* ---- The thread that looks ---------------------------------------------------------------------- */

static bool is_behind(struct pace *p)
{
	uint64_t turn_ns = p->turn_ns;
	struct ring_pos pos = p->ring(p->arg);

	return pos.produced - pos.consumed > p->spare || monotonic_ns() - turn_ns > LATE_NS;
}

static void look(struct pace *p)
{
	if (!p->idle || !is_behind(p))
		return;
	be(p->tid, SCHED_OTHER);
	if (!atomic_exchange(&p->raised, true))
		p->late++;
}

static void sleep_until(struct pace *p, uint64_t ns)
{
	const struct timespec ts = {.tv_sec = (time_t)(ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	while (!p->ends && monotonic_ns() < ns)
		pthread_cond_timedwait(&p->wake, &p->lock, &ts);
}

static void *watch(void *arg)
{
	struct pace *p = arg;
	int err;

	/* On itself, whom nobody waits for: whether there is a way back. */
	err = be(0, SCHED_IDLE);
	if (!err)
		err = be(0, SCHED_OTHER);
	pthread_mutex_lock(&p->lock);
	p->err = err;
	p->tried = true;
	pthread_cond_broadcast(&p->wake);
	while (!p->ends && !p->err) {
		sleep_until(p, monotonic_ns() + LOOK_NS);
		look(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* 0 or -errno. */
static int watch_start(struct pace *p)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	return thread__start(&p->thread, watch, p, "ncclscope-pace");
}

/* What it found, trying. */
static int watch_tried(struct pace *p)
{
	int err;

	pthread_mutex_lock(&p->lock);
	while (!p->tried)
		pthread_cond_wait(&p->wake, &p->lock);
	err = p->err;
	pthread_mutex_unlock(&p->lock);
	return err;
}

static void watch_end(struct pace *p)
{
	pthread_mutex_lock(&p->lock);
	p->ends = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
}

static void pace_free(struct pace *p)
{
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- The one whose pace it is ------------------------------------------------------------------- */

struct pace *pace__begin(pace_ring_fn ring, const void *arg, uint64_t ring_bytes)
{
	struct pace *p = sched_getscheduler(0) == SCHED_OTHER ? calloc(1, sizeof(*p)) : NULL;
	int err;

	if (!p)
		return NULL;
	p->tid = gettid();
	p->ring = ring;
	p->arg = arg;
	p->spare = ring_bytes / SPARE;
	p->since_ns = monotonic_ns();
	p->turn_ns = p->since_ns;
	err = watch_start(p);
	if (!err) {
		err = watch_tried(p);
		if (!err)
			return p;
		watch_end(p);
	}
	pr_debug("Failed to give way to others: %s, continuing at normal priority\n",
		 strerror(-err));
	pace_free(p);
	return NULL;
}

/* Whether what comes has room for long enough. */
static void count(struct pace *p, uint64_t now_ns)
{
	struct ring_pos pos;

	if (now_ns - p->since_ns < LATE_NS)
		return;
	pos = p->ring(p->arg);
	p->calm = (double)(pos.produced - p->since_produced) * LASTS_NS <
		  (double)p->spare * (double)(now_ns - p->since_ns);
	p->since_ns = now_ns;
	p->since_produced = pos.produced;
}

void pace__turn(struct pace *p, uint64_t now_ns, bool caught_up)
{
	if (!p)
		return;
	p->turn_ns = now_ns;
	count(p, now_ns);
	if (!p->calm) {
		if (atomic_exchange(&p->idle, false))
			be(p->tid, SCHED_OTHER);
		return;
	}
	if (!caught_up || (p->idle && !p->raised))
		return;
	p->raised = false;
	p->idle = true; /* first: who is not known to be idle is not helped */
	be(p->tid, SCHED_IDLE);
}

void pace__raise(struct pace *p)
{
	if (!p || !p->idle)
		return;
	p->raised = true;
	be(p->tid, SCHED_OTHER);
}

void pace__sample(struct pace *p)
{
	const struct timespec moment = {.tv_nsec = SAMPLE_NS};

	pace__raise(p);
	if (p && p->idle)
		nanosleep(&moment, NULL);
}

uint64_t pace__end(struct pace *p)
{
	uint64_t late;

	if (!p)
		return 0;
	p->idle = false;
	be(p->tid, SCHED_OTHER);
	watch_end(p);
	late = p->late;
	pace_free(p);
	return late;
}

void pace__leave(void)
{
	if (sched_getscheduler(0) == SCHED_IDLE)
		be(0, SCHED_OTHER);
}
