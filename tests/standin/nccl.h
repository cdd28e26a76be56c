/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL's public C API, the part that the stand-in implements, in our own declarations with NCCL's
 * values and layouts: a program built against this header also builds against NVIDIA's.
 */
#ifndef STANDIN_NCCL_H
#define STANDIN_NCCL_H

#include <limits.h>
#include <stddef.h>

#define NCCL_MAJOR	  2
#define NCCL_MINOR	  28
#define NCCL_PATCH	  9
#define NCCL_VERSION_CODE 22809

#define NCCL_UNIQUE_ID_BYTES  128
#define NCCL_SPLIT_NOCOLOR    -1
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL

/* The stand-in works on host memory and has no CUDA: a stream is one of its own. */
typedef void *cudaStream_t;
typedef struct ncclComm *ncclComm_t;

typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclNumResults = 8,
} ncclResult_t;

typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclNumTypes = 10, /* NCCL has two 8-bit float types more */
} ncclDataType_t;

typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
} ncclRedOp_t;

typedef struct {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_MAGIC 0xcafebeef
#define NCCL_CONFIG_INITIALIZER                                                                    \
	{                                                                                          \
		.size = sizeof(ncclConfig_t), .magic = NCCL_CONFIG_MAGIC,                          \
		.version = NCCL_VERSION_CODE, .blocking = NCCL_CONFIG_UNDEF_INT,                   \
		.cgaClusterSize = NCCL_CONFIG_UNDEF_INT, .minCTAs = NCCL_CONFIG_UNDEF_INT,         \
		.maxCTAs = NCCL_CONFIG_UNDEF_INT, .netName = NCCL_CONFIG_UNDEF_PTR,                \
		.splitShare = NCCL_CONFIG_UNDEF_INT, .trafficClass = NCCL_CONFIG_UNDEF_INT,        \
		.commName = NCCL_CONFIG_UNDEF_PTR, .collnetEnable = NCCL_CONFIG_UNDEF_INT,         \
		.CTAPolicy = NCCL_CONFIG_UNDEF_INT, .shrinkShare = NCCL_CONFIG_UNDEF_INT,          \
		.nvlsCTAs = NCCL_CONFIG_UNDEF_INT, .nChannelsPerNetPeer = NCCL_CONFIG_UNDEF_INT,   \
		.nvlinkCentricSched = NCCL_CONFIG_UNDEF_INT,                                       \
	}

/* As in NCCL every function exists as pncclX too, and ncclX is a weak alias of it. */
#define STANDIN_DECL(ret, name, args)                                                              \
	ret name args;                                                                             \
	ret p##name args

STANDIN_DECL(ncclResult_t, ncclGetVersion, (int *version));
STANDIN_DECL(ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id));
STANDIN_DECL(const char *, ncclGetErrorString, (ncclResult_t result));
STANDIN_DECL(const char *, ncclGetLastError, (ncclComm_t comm));

STANDIN_DECL(ncclResult_t, ncclCommInitRank,
	     (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank));
STANDIN_DECL(ncclResult_t, ncclCommInitRankConfig,
	     (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config));
STANDIN_DECL(ncclResult_t, ncclCommInitAll, (ncclComm_t * comms, int ndev, const int *devlist));
STANDIN_DECL(ncclResult_t, ncclCommSplit,
	     (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config));
STANDIN_DECL(ncclResult_t, ncclCommFinalize, (ncclComm_t comm));
STANDIN_DECL(ncclResult_t, ncclCommDestroy, (ncclComm_t comm));
STANDIN_DECL(ncclResult_t, ncclCommAbort, (ncclComm_t comm));
STANDIN_DECL(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *async));
STANDIN_DECL(ncclResult_t, ncclCommCount, (const ncclComm_t comm, int *count));
STANDIN_DECL(ncclResult_t, ncclCommCuDevice, (const ncclComm_t comm, int *device));
STANDIN_DECL(ncclResult_t, ncclCommUserRank, (const ncclComm_t comm, int *rank));

STANDIN_DECL(ncclResult_t, ncclGroupStart, (void));
STANDIN_DECL(ncclResult_t, ncclGroupEnd, (void));

STANDIN_DECL(ncclResult_t, ncclAllReduce,
	     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
	      ncclComm_t comm, cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclAllGather,
	     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
	      cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclReduceScatter,
	     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
	      ncclComm_t comm, cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclBroadcast,
	     (const void *send, void *recv, size_t count, ncclDataType_t type, int root,
	      ncclComm_t comm, cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclBcast,
	     (void *buff, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
	      cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclReduce,
	     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
	      int root, ncclComm_t comm, cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclAlltoAll,
	     (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
	      cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclSend,
	     (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
	      cudaStream_t stream));
STANDIN_DECL(ncclResult_t, ncclRecv,
	     (void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
	      cudaStream_t stream));

#endif
