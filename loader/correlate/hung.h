/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events that are open and do not move: which of them are due to be told. Part of correlate, and as pure. An
 * event moves when it, or one below it, starts, changes its state or stops; what NCCL merely repeats while it
 * polls is no movement. A kernel moves with its operation; an operation whose turn has not come, because
 * others of its communicator are before it, moves with that.
 *
 * Cost: an event that is open for a moment only costs a few stores. Those that last are on a wheel, each where
 * its time comes; a tick looks at those whose time has come and at no other.
 */
#ifndef NCCLSCOPE_HUNG_H
#define NCCLSCOPE_HUNG_H

#include <stdbool.h>
#include <stdint.h>

struct correlate;
struct corr_event;

#define HUNG_TOLD_MAX 128 /* events of a process at a time; those beyond are counted */

/*
 * What is told has not moved for a second. A parent learns of movements below it up to 10 ms late from each
 * level, so it takes 50 ms more to be sure.
 */
#define HUNG_QUIET_NS 1050000000ull

enum hung_watch {
	HUNG_NONE,  /* young, or of no interest */
	HUNG_SOON,  /* on the wheel, where its time is no later than it should be */
	HUNG_LATER, /* told: on the wheel, unless it moves */
	HUNG_IDLE,  /* nothing to wait for, until it moves */
	HUNG_DUE,
	HUNG_PICKED, /* due, and to be told now */
};

/* What an event keeps. */
struct hung_event {
	struct corr_event *next, **at; /* in a slot of the wheel, or among those that are due */
	uint64_t moved_ns;
	uint64_t passed_ns; /* what its parent knows of that */
	uint64_t told_ns;
	uint16_t told; /* how often, since it moved */
	uint8_t watch; /* enum hung_watch */
	bool begun;    /* it is being worked on */
	bool counted;
};

struct hung {
	struct corr_event **wheel; /* NULL: no event has lasted yet, or no memory */
	uint64_t slot;		   /* to look at next */
	struct corr_event
		*young; /* in correlate's list of open ones: the first that is not watched yet */
	struct corr_event *due;
	uint32_t ndue;
	uint64_t events;     /* that did not move for HUNG_QUIET_NS, */
	uint64_t longest_ns; /* and for how long at most */
};

/* It has come onto, and leaves, the list of open events. */
void hung__opened(struct correlate *c, struct corr_event *ev);
void hung__closed(struct correlate *c, const struct corr_event *ev);

void hung__moved(struct correlate *c, struct corr_event *ev, uint64_t ts_ns);

/* One that was linked to its parent has started, before or after that did. */
void hung__child(struct correlate *c, struct corr_event *parent, struct corr_event *ev);

/* It may last: it is watched from now on. */
void hung__watch(struct correlate *c, struct corr_event *ev, uint64_t now_ns);

/* At ts_ns it has stopped, or is given up. Safe twice. */
void hung__forget(struct correlate *c, struct corr_event *ev, uint64_t ts_ns);

void hung__tick(struct correlate *c, uint64_t now_ns);

/*
 * Whether some are due; then tell() hands them to the sink, at most HUNG_TOLD_MAX: the oldest of the deepest,
 * each behind those that it is below. Again after 2, 4, 8 s and so on, up to 60, if they do not move.
 */
bool hung__due(const struct correlate *c);
void hung__tell(struct correlate *c);
/* The recording ends: once more all that were told and have not moved since, with what they are now. */
void hung__end(struct correlate *c);

void hung__free(struct correlate *c);

#endif
