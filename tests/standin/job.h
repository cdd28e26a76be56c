/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scope-job: shared between the program and its data (job_check.c). The program also compiles
 * against NVIDIA's nccl.h and CUDA with -DUSE_REAL_NCCL.
 */
#ifndef STANDIN_JOB_H
#define STANDIN_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef USE_REAL_NCCL
#include <cuda_runtime_api.h>
#include <nccl.h>
#else
#include "nccl.h"
#include "standin.h"
#endif

enum job_op {
	JOB_ALLREDUCE,
	JOB_ALLGATHER,
	JOB_REDUCESCATTER,
	JOB_BROADCAST,
	JOB_REDUCE,
	JOB_SENDRECV,
	JOB_ALLTOALL,
	JOB_NOPS,
	JOB_MIX = JOB_NOPS, /* all of these in turn */
	JOB_PIPELINE,
};

/* One operation as one rank sees it; count is in elements, as in NCCL's call. */
struct job_call {
	enum job_op op;
	ncclDataType_t type;
	ncclRedOp_t red;
	size_t count;
	int rank;
	int nranks;
	int root;
	unsigned seed;
};

size_t job_type_size(ncclDataType_t type);
/* Elements of the two buffers of a call. */
size_t job_send_count(const struct job_call *c);
size_t job_recv_count(const struct job_call *c);
void job_fill(const struct job_call *c, void *send);
/* Index of the first wrong element of recv, or -1. */
long job_check(const struct job_call *c, const void *recv);

#endif
