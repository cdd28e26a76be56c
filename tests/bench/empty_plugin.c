// SPDX-License-Identifier: BSD-2-Clause
/* A profiler plugin that does nothing but take NCCL's calls: what calling costs. */
#include "nccl_profiler.h"

static ncclProfResult_t init(void **context, uint64_t hash, int *mask, const char *name, int nnodes,
			     int nranks, int rank, ncclDebugLogger_t logfn)
{
	(void)hash, (void)name, (void)nnodes, (void)nranks, (void)rank, (void)logfn;
	*context = mask;
	*mask = 0xfff;
	return ncclSuccess;
}

static ncclProfResult_t start(void *context, void **handle, void *descr)
{
	(void)descr;
	*handle = context; /* NCCL leaves out the children of NULL */
	return ncclSuccess;
}

static ncclProfResult_t stop(void *handle)
{
	(void)handle;
	return ncclSuccess;
}

static ncclProfResult_t state(void *handle, ncclProfilerEventState_t number,
			      ncclProfilerEventStateArgs_v4_t *args)
{
	(void)handle, (void)number, (void)args;
	return ncclSuccess;
}

static ncclProfResult_t finalize(void *context)
{
	(void)context;
	return ncclSuccess;
}

__attribute__((visibility("default")))
const ncclProfiler_v5_t ncclProfiler_v5 = {"empty", init, start, stop, state, finalize};
