/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows, from ring records and samples into their histories and to the steps they served, and from there
 * into the `flow` and `drop` records of the traces.
 */
#ifndef NCCLSCOPE_DECODE_NET_H
#define NCCLSCOPE_DECODE_NET_H

#include "session.h"

#define NET_SAMPLE_NS 100000000ULL

/* Says what the session needs for flows; after attach__open(). */
void decode_net__init(struct session *s);
void decode_net__free(struct session *s);

/* A record of SCOPE_EV_FLOW to SCOPE_EV_DROP, whose header's size is what there is; false: too short. */
bool decode_net__event(struct session *s, const struct scope_ev_short *h);

/*
 * Reads all flows when it is time, and takes what was read once the ring has been emptied behind it
 * (`drained`): then all is known up to when it was read.
 */
void decode_net__tick(struct session *s, uint64_t now_ns, bool drained);

/* The recording ends: a last reading, while the programs are on; the ring is emptied after it. */
void decode_net__last(struct session *s);
/* And all that there is has come in. */
void decode_net__complete(struct session *s);

/* The process ends: its flows' last records. */
void decode_net__proc_end(struct proc *p);

#endif
