/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the stand-in offers beside NCCL's API, because there is no CUDA runtime to ask: streams, and
 * the numbers of what it really did, so that a test can compare a trace with the truth.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdint.h>
#include "nccl.h"

ncclResult_t standinStreamCreate(cudaStream_t *stream);
/* Waits for all work on the stream; NULL means every stream of the process. */
ncclResult_t standinStreamSynchronize(cudaStream_t stream);
ncclResult_t standinStreamDestroy(cudaStream_t stream);

/* Operations enqueued by this communicator (rank), whether or not a profiler saw them. */
struct standin_counters {
	uint64_t groups; /* kernel plans: one Group event each */
	uint64_t colls;
	uint64_t p2ps;
	uint64_t proxy_ops;
	uint64_t proxy_steps; /* network transfers, both directions */
	uint64_t kernel_chs;  /* KernelCh events that the bit would give */
	uint64_t coll_apis;
	uint64_t p2p_apis;
	uint64_t group_apis;
	uint64_t ce_colls;
};
ncclResult_t standinCounters(ncclComm_t comm, struct standin_counters *out);
/* The hash that init gives to the profiler (commId, commHash). */
ncclResult_t standinCommHash(ncclComm_t comm, uint64_t *hash);
/* What v7 calls userTag; for the calls of this thread from now on. */
void standinSetUserTag(uint64_t tag);

#endif
