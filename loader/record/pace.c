// SPDX-License-Identifier: BSD-2-Clause
/* Giving way, and for how long; see pace.h. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "clock.h"
#include "log.h"
#include "pace.h"

#define LATE_NS	   (500 * 1000000ull) /* who looks at traces while they are made waits for so long, */
#define IN_TIME_NS (60 * 1000000ull)
#define WINDOW_NS  (250 * 1000000ull) /* in which what comes is counted */
#define ENOUGH	   (256 << 10)	      /* bytes that tell what each costs */
#define SMALL	   0.02		      /* of a CPU: whom that is too much has no more to give */
#define FULL	   3 / 4	      /* of the file */
#define EMPTY	   1 / 2
#define PAUSE_NS   (250 * 1000000ull)
#define PAUSE_MAX  (4 * NSEC_PER_SEC)
#define LAST_NICE  19
#define LAST_STEP  5 /* three times the weight */
#define LAST_NS	   (500 * 1000000ull)
#define LAST_SHARE 0.1 /* of a CPU: for less there is no end to it */

/* 0 or -errno. */
static int be(pid_t tid, int policy)
{
	const struct sched_param none = {0};

	return sched_setscheduler(tid, policy, &none) ? -errno : 0;
}

static void be_nice(struct pace *p, int nice)
{
	if (nice != p->nice && !setpriority(PRIO_PROCESS, (id_t)p->tid, nice))
		p->nice = nice;
}

void pace__begin(struct pace *p)
{
	int err = sched_getscheduler(0) == SCHED_OTHER ? be(0, SCHED_IDLE) : -EPERM;

	*p = (struct pace){.tid = gettid(), .base = getpriority(PRIO_PROCESS, 0)};
	p->nice = p->base;
	sem_init(&p->go, 0, 0);
	if (!err)
		err = be(0, SCHED_OTHER); /* whether there is a way back */
	p->may = !err;
	if (err)
		pr_debug("Failed to give way to others: %s, continuing at normal priority\n",
			 strerror(-err));
}

/*
 * What comes takes such a share of a CPU, by what was taken lately. A little tells nothing of that: with it files are opened, and
 * memory is used for the first time.
 */
static void count(struct pace *p, const struct pace_load *l)
{
	double bytes, taken = (double)(l->taken_bytes - p->cost_bytes);

	if (l->now_ns - p->since_ns < WINDOW_NS)
		return;
	if (taken >= ENOUGH) {
		p->each = (double)(l->cpu_ns - p->cost_ns) / taken;
		p->cost_ns = l->cpu_ns;
		p->cost_bytes = l->taken_bytes;
	}
	bytes = (double)(l->put_bytes - p->since_bytes);
	p->share = p->since_ns ? bytes * p->each / (double)(l->now_ns - p->since_ns) : 0;
	p->since_ns = l->now_ns;
	p->since_bytes = l->put_bytes;
}

static void decide(struct pace *p, const struct pace_load *l)
{
	uint64_t late_ns = l->oldest_ns ? l->now_ns - l->oldest_ns : 0;

	if (l->file_bytes > l->file_max * FULL)
		p->full = true;
	else if (l->file_bytes <= l->file_max * EMPTY)
		p->full = false;
	if (late_ns < IN_TIME_NS || p->share > 2 * SMALL)
		p->quick = false;
	else if (late_ns > LATE_NS && p->share < SMALL)
		p->quick = true;
}

static void go_on(struct pace *p)
{
	if (!p->stands)
		return;
	p->stands = false;
	sem_post(&p->go);
}

/* Since the turn before there was something to do all the time, and a CPU for less than half of it. */
static bool is_starved(const struct pace *p, const struct pace_load *l)
{
	return l->wants_cpu && l->oldest_ns && l->oldest_ns <= p->turn_ns &&
	       l->cpu_ns - p->turn_cpu_ns < (l->now_ns - p->turn_ns) / 2;
}

/* Where the CPUs are taken it stands still, for longer each time that it finds them so, until half of the file is used. */
static void stand_or_go(struct pace *p, const struct pace_load *l)
{
	bool starved = is_starved(p, l);

	if (!p->idle || l->file_bytes > l->file_max * EMPTY ||
	    (p->stands && l->now_ns >= p->stands_until_ns)) {
		go_on(p);
	} else if (!p->stands && !starved) {
		p->pause_ns = 0;
	} else if (!p->stands) {
		p->pause_ns = p->pause_ns ? 2 * p->pause_ns : PAUSE_NS;
		if (p->pause_ns > PAUSE_MAX)
			p->pause_ns = PAUSE_MAX;
		p->stands_until_ns = l->now_ns + p->pause_ns;
		p->stands = true;
	}
	p->turn_ns = l->now_ns;
	p->turn_cpu_ns = l->cpu_ns;
}

void pace__gate(struct pace *p)
{
	while (p->stands)
		sem_wait(&p->go); /* a signal, or an old word: it looks again */
}

static bool is_to_be_idle(const struct pace *p)
{
	return p->idle && !p->held;
}

/*
 * The thread and the one that has its turns may both be here. Whoever comes last has seen what both want: had the other changed it after that,
 * it would come here, too.
 */
static int apply(struct pace *p)
{
	bool idle;
	int err;

	do {
		idle = is_to_be_idle(p);
		err = be(p->tid, idle ? SCHED_IDLE : SCHED_OTHER);
	} while (idle != is_to_be_idle(p));
	return err;
}

static void schedule(struct pace *p, bool idle)
{
	if (idle == p->idle)
		return;
	p->idle = idle;
	if (apply(p))
		p->idle = false;
}

/* Somebody waits for it to end: it is as nice as leaves it a little of a CPU. */
static void last_turn(struct pace *p, const struct pace_load *l)
{
	uint64_t ns = l->now_ns - p->turn_ns;
	bool starved =
		l->wants_cpu && (double)(l->cpu_ns - p->turn_cpu_ns) < LAST_SHARE * (double)ns;

	if (p->turn_ns && ns < LAST_NS)
		return;
	if (p->turn_ns && starved) {
		p->lift |= p->nice <= p->base;
		be_nice(p, p->nice - LAST_STEP > p->base ? p->nice - LAST_STEP : p->base);
	}
	p->turn_ns = l->now_ns;
	p->turn_cpu_ns = l->cpu_ns;
}

void pace__turn(struct pace *p, const struct pace_load *load)
{
	bool had_to = p->full || p->quick, idle;

	if (!p->may)
		return;
	if (p->ends) {
		last_turn(p, load);
		return;
	}
	count(p, load);
	decide(p, load);
	idle = !p->full && !p->quick;
	p->raised += !idle && !had_to;
	schedule(p, idle);
	stand_or_go(p, load);
}

void pace__end(struct pace *p)
{
	if (!p->may || p->ends)
		return;
	p->ends = true;
	p->turn_ns = 0; /* it may have stood still since */
	if (p->base < LAST_NICE)
		be_nice(p, LAST_NICE); /* first: it is not to be like everybody else for a moment */
	schedule(p, false);
	go_on(p);
}

void pace__raise(struct pace *p)
{
	if (!p->may)
		return;
	be_nice(p, p->base);
	schedule(p, false);
	go_on(p);
}

void pace__hold(struct pace *p)
{
	p->held = true;
	if (p->idle)
		apply(p);
}

void pace__again(struct pace *p)
{
	p->held = false;
	if (p->idle)
		apply(p);
}
