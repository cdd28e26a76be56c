// SPDX-License-Identifier: BSD-2-Clause
/* Real-time while there is no other way to a CPU; see rescue.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "rescue.h"
#include "thread.h"

#define LOOK_NS	  (50 * 1000000ull)
#define LATE_NS	  (150 * 1000000ull) /* it comes by each 50 ms: a share of a CPU is not so late */
#define KEEP_NS	  (2 * NSEC_PER_SEC) /* then it tries again without */
#define BUDGET_NS NSEC_PER_SEC	     /* in which it may have */
#define BUDGET	  1 / 2 /* of a CPU: what came while it was away is made up for; more is a flood, */
#define PAUSE_NS  (500 * 1000000ull) /* and has to wait like everybody else, for so long */

static struct {
	pthread_t thread;
	bool started;
	sem_t stop;
	pid_t tid; /* who is looked after */

	/* Its word to the one who looks: */
	_Atomic uint64_t here_ns;
	_Atomic uint64_t not_before_ns;
	/* and back. */
	atomic_bool raised;
	uint32_t times; /* the looking thread's, until it has ended */

	/* Its own: since when it is real-time, and when that began to count for the budget; 0: it is not. */
	uint64_t since_ns, window_ns, window_cpu_ns;
} rescue;

static bool is_ordinary(pid_t tid)
{
	return (sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER;
}

int rescue__raise(pid_t tid)
{
	const struct sched_param least = {.sched_priority = 1};

	if (!is_ordinary(tid))
		return -EALREADY;
	return sched_setscheduler(tid, SCHED_RR | SCHED_RESET_ON_FORK, &least) ? -errno : 0;
}

int rescue__lower(pid_t tid)
{
	const struct sched_param none = {0};

	/* The flag goes with CAP_SYS_NICE only, and does no harm. */
	if (!sched_setscheduler(tid, SCHED_OTHER, &none))
		return 0;
	return sched_setscheduler(tid, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) ? -errno : 0;
}

/* ---- Who looks ----------------------------------------------------------------------------------- */

static void look(uint64_t now)
{
	uint64_t here = rescue.here_ns; /* it may have come by since `now` */

	if (now < here + LATE_NS || now < rescue.not_before_ns)
		return;
	if (!rescue__raise(rescue.tid)) {
		rescue.raised = true;
		rescue.times++;
	}
}

/* It takes no lock that others hold, and no memory: it would wait for them. */
static void *look_main(void *arg)
{
	struct timespec until;
	uint64_t next = monotonic_ns();

	(void)arg;
	rescue__raise(0); /* allowed: it has been tried */
	for (;;) {
		next += LOOK_NS;
		until = monotonic_until(next);
		if (!sem_clockwait(&rescue.stop, CLOCK_MONOTONIC, &until))
			return NULL;
		look(monotonic_ns());
	}
}

/* ---- Who is looked after ------------------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void window_begin(uint64_t now)
{
	rescue.window_ns = now;
	rescue.window_cpu_ns = cpu_ns();
}

static void be_ordinary(uint64_t again_ns)
{
	rescue.since_ns = 0;
	rescue.not_before_ns = again_ns;
	rescue.raised = false; /* first: once it is ordinary it may get no CPU to say so */
	rescue__lower(rescue.tid);
}

int rescue__start(void)
{
	int err;

	if (rescue.started || !is_ordinary(0))
		return -EALREADY;
	rescue.tid = gettid();
	rescue.here_ns = monotonic_ns();
	rescue.since_ns = 0;
	rescue.not_before_ns = 0;
	rescue.raised = false;
	rescue.times = 0;
	if (sem_init(&rescue.stop, 0, 0))
		return -errno;
	/* Whether it is allowed: the thread that looks has the rights that we have. */
	err = rescue__raise(0);
	rescue__lower(0);
	if (!err)
		err = thread__start(&rescue.thread, look_main, NULL, "ncclscope-watch");
	if (err)
		sem_destroy(&rescue.stop);
	rescue.started = !err;
	return err;
}

void rescue__here(uint64_t now)
{
	if (!rescue.started)
		return;
	rescue.here_ns = now;
	if (!rescue.raised)
		return;
	if (!rescue.since_ns) {
		rescue.since_ns = now;
		window_begin(now);
	} else if (now - rescue.window_ns >= BUDGET_NS) {
		if (cpu_ns() - rescue.window_cpu_ns > (now - rescue.window_ns) * BUDGET)
			be_ordinary(now + PAUSE_NS);
		else if (now - rescue.since_ns >= KEEP_NS)
			be_ordinary(now);
		else
			window_begin(now);
	}
}

uint32_t rescue__stop(void)
{
	if (!rescue.started)
		return 0;
	sem_post(&rescue.stop);
	pthread_join(rescue.thread, NULL);
	sem_destroy(&rescue.stop);
	rescue.started = false;
	if (rescue.raised)
		be_ordinary(0);
	return rescue.times;
}
