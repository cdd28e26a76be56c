/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long sleeps of threads: who ended each, the file that it was in a call on, and where in the kernel that was. A sleep belongs to the slice that begins when it does;
 * what is not known to have been one is not kept.
 */
#ifndef NCCLSCOPE_SCHED_SLEEPS_H
#define NCCLSCOPE_SCHED_SLEEPS_H

#include "sched_timeline.h"

#define SCHED_SLEEPS_MAX 4096 /* of one thread */

/* A file that threads slept in calls on. Held by sleeps. */
struct sched_file {
	struct sched_file_id {
		char fs[sizeof(((struct scope_ev_woken *)0)->fs)]; /* type of its filesystem */
		char name[SCHED_FILE_LEN];
	} id;	     /* filled up with 0 */
	uint32_t nr; /* how many there were before */
	uint32_t refs;
	UT_hash_handle hh; /* by id */
};

struct sched_sleep {
	uint64_t start_ns; /* its slice's */
	int32_t call; /* scope_ev_woken.call: of a slice that began before it was seen, all that is known */
	uint32_t by_tgid; /* who ended it; 0: not known */
	char by_comm[SCOPE_COMM_LEN];
	struct sched_file *file;   /* NULL: none, or not known */
	struct sched_stack *stack; /* owned; NULL: not known, as of those under a second */
};

/* Where in the kernel a thread sleeps: functions' numbers in struct symbols, the innermost first. */
struct sched_stack {
	uint32_t n;
	uint64_t at[];
};

/* `slice`, the thread's last, is that sleep. Nothing if memory is short. */
void sleeps__add(struct sched *s, struct sched_thread *t, const struct sched_slice *slice,
		 const struct scope_ev_woken *e);
/* Of the newest of the thread, if it is that one. Nothing if memory is short. */
void sleeps__stack(struct sched *s, struct sched_thread *t, const struct scope_ev_stack *e);
/* The one of a slice; NULL: it was none, or is forgotten. Valid until more is added to the thread. */
const struct sched_sleep *sleeps__of(const struct sched_thread *t, const struct sched_slice *slice);
/* Whether none is forgotten that began at ns or later. */
bool sleeps__known_since(const struct sched_thread *t, uint64_t ns);
/* Forgets those that began before ns. */
void sleeps__prune(struct sched *s, struct sched_thread *t, uint64_t ns);
/* The table of files goes. Those of threads that somebody holds stay, in no table. */
void sleeps__forget_files(struct sched *s);
/* Forgets all, and the ring. */
void sleeps__free(struct sched *s, struct sched_thread *t);

#endif
