/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the recorder's thread is scheduled: it takes what the job leaves. As SCHED_IDLE it runs where a CPU has nothing else
 * to do, and gives way to whoever wakes up; a ring of ranks stands still while one of them has no CPU. Only when it is behind
 * does it ask for its share like everybody else, until it has caught up: another thread, which does nothing but look,
 * sees to that.
 */
#ifndef NCCLSCOPE_PACE_H
#define NCCLSCOPE_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include "attach.h"

/* How far the ring has come; asked by both threads. */
typedef struct ring_pos (*pace_ring_fn)(const void *arg);

struct pace;

/*
 * For the calling thread, from the first turn on. NULL: it goes on as it is, because it was given another policy than
 * SCHED_OTHER (chrt), because it could not leave SCHED_IDLE again (RLIMIT_NICE, seccomp), or for lack of memory.
 */
struct pace *pace__begin(pace_ring_fn ring, const void *arg, uint64_t ring_bytes);

/* A turn of the loop is over, at now_ns; `caught_up`: the ring had no more than was taken. NULL is fine, as below. */
void pace__turn(struct pace *p, uint64_t now_ns, bool caught_up);

/*
 * Until the next turn like everybody else: before what makes others wait who wait for the kernel's locks that we have then, as an SCHED_IDLE thread
 * may have them for a long time.
 */
void pace__raise(struct pace *p);

/*
 * Before a look at what others' threads do at this very moment: as SCHED_IDLE one looks just when some of them sleep. The
 * same, and a moment later, so that it is any moment.
 */
void pace__sample(struct pace *p);

/* As SCHED_OTHER again, for good; frees it. By the thread that began. Returns how often it was behind. */
uint64_t pace__end(struct pace *p);

/* For a child that is forked meanwhile, and has no pace. */
void pace__leave(void);

#endif
