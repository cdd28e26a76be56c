/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiler ABI beside NCCL's public API in one file: three result names exist in both, and the
 * plugin's get a prefix here.
 */
#ifndef STANDIN_PROF_ABI_H
#define STANDIN_PROF_ABI_H

#define ncclSuccess	  ncclProfSuccess
#define ncclSystemError	  ncclProfSystemError
#define ncclInternalError ncclProfInternalError
#include "../../include/nccl_profiler.h"
#undef ncclSuccess
#undef ncclSystemError
#undef ncclInternalError

#endif
