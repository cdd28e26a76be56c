/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a recorder reads of the world, fed into the pipeline as inputs (input.h): clocks, who processes are,
 * connections, the machine. Nothing here keeps what it reads: the pipeline does.
 */
#ifndef NCCLSCOPE_FEED_H
#define NCCLSCOPE_FEED_H

#include <stdbool.h>
#include <stdint.h>
#include "input.h"
#include "recorder.h"

/* The recording begins: what it has of `features` is known. 0 or -errno. */
int feed__session(struct recorder *r, const struct attach_features *features);

/* CPU time of ours since then. */
uint64_t feed__cpu_ns(const struct recorder *r);

/* All probes are on, now. */
void feed__attached(struct recorder *r);

void feed__ns(struct recorder *r, enum input_kind kind, uint64_t ns);

/* A pair of the job's clock and ours. */
void feed__clock(struct recorder *r);

/* A record of the ring, and before it what its meaning takes. */
void feed__record(struct recorder *r, const void *data, size_t size);
/* A buffer that was read from outside. */
void feed__outside(struct recorder *r, const struct scope_ev_chunk *c);

/* A process' place in time, and, the first time, who it is. */
void feed__proc(struct recorder *r, struct proc *p, bool from_start, uint64_t begin_ns,
		uint64_t first_id);

/* INPUT_END or INPUT_TAIL, by BPF's account of it. */
void feed__end(struct recorder *r, enum input_kind kind, const struct proc_key *key,
	       const struct scope_proc_stat *stat);

/* All connections as they are now. */
void feed__flows(struct recorder *r);

/* flags: INPUT_LATE, INPUT_FOLLOW, INPUT_CLOCKS */
void feed__tick(struct recorder *r, uint64_t now, uint32_t flags);
/* What we have cost so far. */
void feed__self(struct recorder *r);

/* What the node did: for each process. */
void feed__node(struct recorder *r);

/* What the kernel's log has of interest: to all processes. */
void feed__kmsg(struct recorder *r);

/* What GPUs do: for the processes that are on them; `last`: what has come, and no more. */
void feed__gpus(struct recorder *r, bool last);

/* Which RDMA devices processes have open and what their ports count, when it is time; `last`: now. */
void feed__rdma(struct recorder *r, bool last);

#endif
