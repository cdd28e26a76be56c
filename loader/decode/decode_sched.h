/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel context, from ring records into the threads' timelines, and from there into slices. */
#ifndef NCCLSCOPE_DECODE_SCHED_H
#define NCCLSCOPE_DECODE_SCHED_H

#include "session.h"

/* A record of SCOPE_EV_THREAD to SCOPE_EV_IRQ, whose header's size is what there is; false: too short. */
bool decode_sched__event(struct session *s, const struct scope_ev_short *h);

/* The thread that handed in a chunk, which it did while it ran; NULL: not known. */
struct sched_thread *decode_sched__chunk(struct session *s, struct proc *p,
					 const struct scope_ev_chunk *c);

/* A thread has ended. */
void decode_sched__exit(struct session *s, const struct scope_ev_exit *e);

/* A thread has ended some time ago, and nothing has told of it: since it was last seen, its state is not known. */
void decode_sched__gone(struct session *s, struct sched_thread *t);

/* The same of a process that is not recorded: where it was the last one, all have, whether the ring had room to tell or not. */
void decode_sched__unrecorded_exit(struct session *s, const struct scope_ev_exit *e);

/* Writes slices that ended over a second ago (before that a thread's role may not show), forgets old ones. */
void decode_sched__tick(struct session *s, uint64_t now_ns);

/* BPF has made `seq` records of a thread, and all that came are in: the others are lost. */
void decode_sched__counted(struct session *s, struct sched_thread *t, uint32_t seq);

/* The recording ends at end_ns: so do all states. */
void decode_sched__end(struct session *s, uint64_t end_ns);

#endif
