/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the thread that makes traces is scheduled: it takes what the job leaves. As SCHED_IDLE it runs where a CPU has nothing else
 * to do, and gives way to whoever wakes up; a ring of ranks stands still while one of them has no CPU. Where all CPUs are taken that is
 * not enough: whoever spins and yields, as NCCL's proxy does, hands it the CPU, and takes it back at the next tick. So there it does not
 * run at all, and looks now and then whether that has changed. What waits for it meanwhile waits in the backlog. Only where that does
 * not last, or where catching up costs next to nothing, does it ask for its share like everybody else.
 * When the recording is over somebody waits for it to end, and the job goes on beside it: then it is SCHED_OTHER, and as nice as leaves
 * it a tenth of a CPU.
 */
#ifndef NCCLSCOPE_PACE_H
#define NCCLSCOPE_PACE_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What there is to do, as of now. */
struct pace_load {
	uint64_t now_ns;
	uint64_t put_bytes, taken_bytes; /* of inputs, since the beginning */
	uint64_t oldest_ns;		 /* since when the oldest of them waits; 0: none does */
	uint64_t file_bytes, file_max;	 /* that they take on the disk, and may */
	uint64_t cpu_ns;		 /* that taking them has cost so far */
	bool wants_cpu; /* who takes them has a CPU or waits for one: not for a disk, say */
};

struct pace {
	pid_t tid;	  /* whose pace it is */
	bool may;	  /* it could leave SCHED_IDLE again */
	int base, nice;	  /* nice values: that it began with, and that it has */
	bool ends;	  /* pace__end() */
	bool lift;	  /* not even that gets it a CPU */
	atomic_bool idle; /* it is to be SCHED_IDLE, */
	atomic_bool held; /* but not now: pace__hold() */
	bool full, quick; /* why it is not idle: the file fills up; little comes, and it is late */
	uint64_t raised;  /* how often it was not for these */
	uint64_t since_ns, since_bytes;
	uint64_t cost_ns, cost_bytes; /* cpu_ns and taken_bytes when `each` was last known */
	double each;		      /* ns of CPU time that a byte has cost lately; 0: not known */
	double share;		      /* of a CPU, that what comes now will take */

	atomic_bool stands; /* at pace__gate(); only while `idle` */
	sem_t go;
	uint64_t turn_ns, turn_cpu_ns; /* of the turn before */
	uint64_t stands_until_ns;
	uint64_t pause_ns; /* for so long: longer each time that it finds the CPUs taken */
};

/*
 * Of the calling thread. It stays as it is if it was given another policy than SCHED_OTHER (chrt), or if it could not leave
 * SCHED_IDLE again (RLIMIT_NICE, seccomp).
 */
void pace__begin(struct pace *p);

/* A moment later: by another thread, which is never SCHED_IDLE. */
void pace__turn(struct pace *p, const struct pace_load *load);

/* The thread itself, while it holds nothing that others need: returns when there may be a CPU for it. */
void pace__gate(struct pace *p);

/* Like everybody else from now on, until a turn says otherwise: who puts waits for it, and what is not put is lost. */
void pace__raise(struct pace *p);

/* No more is put, but for little, and somebody waits for all that was. Turns go on. */
void pace__end(struct pace *p);

/*
 * The thread itself, around what takes locks that others need: it may be kept from its CPU for long with them, and is not SCHED_IDLE
 * in between.
 */
void pace__hold(struct pace *p);
void pace__again(struct pace *p);

#endif
