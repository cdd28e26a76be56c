/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows, from ring records and samples into their histories and to the steps they served, and from there
 * into the `flow` and `drop` records of the traces.
 */
#ifndef NCCLSCOPE_DECODE_NET_H
#define NCCLSCOPE_DECODE_NET_H

#include "session.h"

#define NET_SAMPLE_NS 100000000ULL

#define NET_SAMPLES_MAX 65536 /* of one reading; more are left out */

/* `jiffy_ns`: of the kernel whose records come, 0: not known. */
void decode_net__init(struct session *s, uint64_t jiffy_ns);
void decode_net__free(struct session *s);

/* A record of SCOPE_EV_FLOW to SCOPE_EV_DROP, whose header's size is what there is; false: too short, or it says what cannot be. */
bool decode_net__event(struct session *s, const struct scope_ev_short *h);

/*
 * Takes what was read of flows once the ring has been emptied behind it (`drained`): then all is known
 * up to when it was read.
 */
void decode_net__tick(struct session *s, uint64_t now_ns, bool drained);

/* Whether it is time to read all flows: then decode_net__samples(). */
bool decode_net__due(const struct session *s, uint64_t now_ns);

/*
 * All flows as they were read, from now_ns on; copied. err: what there is is not all. Also when the recording ends,
 * while the programs are on; the ring is emptied after it.
 */
void decode_net__samples(struct session *s, uint64_t now_ns, const struct scope_flow_sample *x,
			 uint32_t n, int err);
/* The recording ends, and all that there is has come in. */
void decode_net__complete(struct session *s);

/* The process ends: its flows' last records. */
void decode_net__proc_end(struct proc *p);

#endif
