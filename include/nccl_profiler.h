/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL's profiler plugin ABI, versions 1 to 7, in our own declarations: what NCCL 2.23 to 2.32 pass
 * to a plugin. Builds without NCCL and CUDA headers. Names are NCCL's, so that its documentation
 * applies; every size and offset is asserted at the end, for LP64 (x86-64 and arm64).
 *
 * Ownership: every pointer is NCCL's or the application's and valid during the call only. Two
 * exceptions: `func`, `datatype`, `algo`, `proto`, `phaseName` and `kernelVariant` are constants
 * inside libnccl (valid while it is mapped), and the mask word given to init lives as long as
 * libnccl. Contexts and handles are the plugin's own; NCCL only stores and returns them, possibly
 * late, twice, or in another process (PXN).
 */
#ifndef NCCLSCOPE_NCCL_PROFILER_H
#define NCCLSCOPE_NCCL_PROFILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The one value that a profiler callback should ever return. */
typedef enum {
	ncclSuccess = 0,
	ncclSystemError = 2,
	ncclInternalError = 3,
} ncclProfResult_t;

/* Levels and subsystems of NCCL's logger that a plugin uses. */
enum {
	NCCL_LOG_WARN = 2,
	NCCL_LOG_INFO = 3,
};
enum {
	NCCL_PROFILE = 0x4000,
};

/* printf-like; level and flags as above; file and line are the caller's. */
typedef void (*ncclDebugLogger_t)(int level, unsigned long flags, const char *file, int line,
				  const char *fmt, ...);

/* Event types: bits of the activation mask and values of a descriptor's `type`. */
enum {
	ncclProfileGroup = 0x0001,	  /* v1 */
	ncclProfileColl = 0x0002,	  /* v1 */
	ncclProfileP2p = 0x0004,	  /* v1 */
	ncclProfileProxyOp = 0x0008,	  /* v1 */
	ncclProfileProxyStep = 0x0010,	  /* v1 */
	ncclProfileProxyCtrl = 0x0020,	  /* v1 */
	ncclProfileKernelCh = 0x0040,	  /* v3 */
	ncclProfileNetPlugin = 0x0080,	  /* v3 */
	ncclProfileGroupApi = 0x0100,	  /* v5 */
	ncclProfileCollApi = 0x0200,	  /* v5 */
	ncclProfileP2pApi = 0x0400,	  /* v5 */
	ncclProfileKernelLaunch = 0x0800, /* v5 */
	ncclProfileCeColl = 0x1000,	  /* v6 */
	ncclProfileCeSync = 0x2000,	  /* v6 */
	ncclProfileCeBatch = 0x4000,	  /* v6 */
	ncclProfileKernelPhase = 0x8000,  /* v7 */
};
/* What kernels count on the GPU. Not NCCL's name. */
#define KERNELS ((uint32_t)(ncclProfileKernelCh | ncclProfileKernelPhase))

/* Event states: one enumeration for all versions; numbers never change their meaning. */
typedef enum {
	ncclProfilerProxyOpSendPosted = 0, /* 0 to 7: v1 to v3 only */
	ncclProfilerProxyOpSendRemFifoWait = 1,
	ncclProfilerProxyOpSendTransmitted = 2,
	ncclProfilerProxyOpSendDone = 3,
	ncclProfilerProxyOpRecvPosted = 4,
	ncclProfilerProxyOpRecvReceived = 5,
	ncclProfilerProxyOpRecvTransmitted = 6,
	ncclProfilerProxyOpRecvDone = 7,
	ncclProfilerProxyStepSendGPUWait = 8,
	ncclProfilerProxyStepSendWait = 9,
	ncclProfilerProxyStepRecvWait = 10,
	ncclProfilerProxyStepRecvFlushWait = 11,
	ncclProfilerProxyStepRecvGPUWait = 12,
	ncclProfilerProxyCtrlIdle = 13,
	ncclProfilerProxyCtrlActive = 14,
	ncclProfilerProxyCtrlSleep = 15,
	ncclProfilerProxyCtrlWakeup = 16,
	ncclProfilerProxyCtrlAppend = 17,
	ncclProfilerProxyCtrlAppendEnd = 18,
	ncclProfilerProxyOpInProgress_v4 = 19,
	ncclProfilerProxyStepSendPeerWait_v4 = 20,
	ncclProfilerNetPluginUpdate = 21,
	ncclProfilerKernelChStop = 22,
	ncclProfilerGroupStartApiStop = 23,
	ncclProfilerGroupEndApiStart = 24,
	ncclProfilerCeCollStart = 25,
	ncclProfilerCeCollComplete = 26,
	ncclProfilerCeSyncStart = 27,
	ncclProfilerCeSyncComplete = 28,
	ncclProfilerCeBatchStart = 29,
	ncclProfilerCeBatchComplete = 30,
	ncclProfilerKernelPhaseStop = 31,
} ncclProfilerEventState_t;

#define NCCL_PROFILER_NSTATES 32

/* Payloads that have not changed since they appeared. */
struct ncclProfProxyOp {
	pid_t pid; /* of the process that made the operation (PXN: not the one that runs it) */
	uint8_t channelId;
	int peer;
	int nSteps;
	int chunkSize; /* bytes, chunk times slice steps; not the size of a transfer */
	int isSend;
};
struct ncclProfProxyStep {
	int step;
};
struct ncclProfNetPlugin {
	int64_t id; /* low 16 bits version, next 16 bits type (1 IB, 2 socket) */
	void *data;
};
struct ncclProfKernelCh {
	uint8_t channelId;
	uint64_t pTimer; /* GPU globaltimer, ns; v4 and later */
};
struct ncclProfGroupApi {
	bool graphCaptured;
	int groupDepth;
};
struct ncclProfKernelLaunch {
	void *stream;
};
struct ncclProfCeSync {
	bool isComplete;
	int nRanks;
};
struct ncclProfCeBatch {
	int numOps;
	size_t totalBytes;
	bool useIntraSync;
};
struct ncclProfKernelPhase {
	uint8_t channelId;
	uint8_t phaseId; /* 0 initial_sync, 1 compute, 2 final_sync */
	const char *phaseName;
	uint64_t pTimer;
};

typedef struct {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t commHash;
			uint64_t seqNumber;
			uint8_t func; /* enum: see plugin/names.c */
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			uint8_t datatype;
			uint32_t op;
			size_t trafficBytes;
			uint8_t nMaxChannels;
			uint8_t nWarps;
			uint8_t algo;
			uint8_t proto;
			int isCollnet;
			int isNvls;
		} coll;
		struct {
			const char *name;
			uint64_t commHash;
			uint8_t func;
			void *buff;
			uint8_t datatype;
			size_t count;
			int peer;
		} p2p;
		struct ncclProfProxyOp proxyOp;
		struct ncclProfProxyStep proxyStep;
	};
} ncclProfilerEventDescr_v1_t;

typedef struct {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t commHash;
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			size_t trafficBytes;
			uint8_t nMaxChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
		} coll;
		struct {
			const char *name;
			uint64_t commHash;
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
		struct ncclProfProxyOp proxyOp;
		struct ncclProfProxyStep proxyStep;
	};
} ncclProfilerEventDescr_v2_t;

typedef struct {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			const char *name;
			uint64_t commHash;
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nMaxChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
		} coll;
		struct {
			const char *name;
			uint64_t commHash;
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
		} p2p;
		struct ncclProfProxyOp proxyOp;
		struct ncclProfProxyStep proxyStep;
		struct {
			uint8_t channelId;
		} kernelCh;
		struct ncclProfNetPlugin netPlugin;
	};
} ncclProfilerEventDescr_v3_t;

typedef struct {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t nChannels;
		} p2p;
		struct ncclProfProxyOp proxyOp;
		struct ncclProfProxyStep proxyStep;
		struct ncclProfKernelCh kernelCh;
		struct ncclProfNetPlugin netPlugin;
	};
} ncclProfilerEventDescr_v4_t;

typedef struct {
	uint64_t type;
	void *parentObj;
	int rank;
	union {
		struct ncclProfGroupApi groupApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool graphCaptured;
		} collApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool graphCaptured;
		} p2pApi;
		struct ncclProfKernelLaunch kernelLaunch;
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
			void *parentGroup;
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t nChannels;
			void *parentGroup;
		} p2p;
		struct ncclProfProxyOp proxyOp;
		struct ncclProfProxyStep proxyStep;
		struct ncclProfKernelCh kernelCh;
		struct ncclProfNetPlugin netPlugin;
	};
} ncclProfilerEventDescr_v5_t;

/*
 * v6 adds copy-engine events and v7 appends fields to v6, neither moves anything: the v7
 * declaration describes v6, v5 and (but for the width of `type` and the API events) v4 as well, up
 * to the size of each.
 */
typedef struct {
	uint64_t type;
	void *parentObj;
	int rank;
	union {
		struct ncclProfGroupApi groupApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool graphCaptured;
			uint64_t userTag; /* v7 */
		} collApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool graphCaptured;
			uint64_t userTag; /* v7 */
		} p2pApi;
		struct ncclProfKernelLaunch kernelLaunch;
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			uint8_t nChannels;
			uint8_t nWarps;
			const char *algo;
			const char *proto;
			void *parentGroup;
			const char *kernelVariant; /* v7 */
			bool isSymColl;		   /* v7 */
			uint64_t userTag;	   /* v7 */
		} coll;
		struct {
			const char *func;
			void *buff;
			const char *datatype;
			size_t count;
			int peer;
			uint8_t nChannels;
			void *parentGroup;
			uint64_t userTag; /* v7 */
		} p2p;
		struct ncclProfProxyOp proxyOp;
		struct ncclProfProxyStep proxyStep;
		struct ncclProfKernelCh kernelCh;
		struct ncclProfNetPlugin netPlugin;
		struct {
			uint64_t seqNumber;
			const char *func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			const char *datatype;
			const char *syncStrategy;
			bool intraBatchSync;
			uint32_t batchSize;
			uint32_t numBatches;
			uint32_t ceSeqNum;
			void *stream;
			uint64_t userTag; /* v7 */
		} ceColl;
		struct ncclProfCeSync ceCollSync;
		struct ncclProfCeBatch ceCollBatch;
		struct ncclProfKernelPhase kernelPhase;
	};
} ncclProfilerEventDescr_v7_t;

/* v6 has no type of its own here: its 112 bytes are the first 112 of v7. */
#define NCCL_PROFILER_DESCR_V6_SIZE 112

typedef union {
	struct {
		size_t transSize;
		int steps;
	} proxyOp;
	struct {
		int appendedProxyOps;
	} proxyCtrl;
} ncclProfilerEventStateArgs_v1_t; /* v1 to v3 */

typedef union {
	struct {
		size_t transSize;
	} proxyStep;
	struct {
		int appendedProxyOps;
	} proxyCtrl;
	struct {
		void *data;
	} netPlugin;
	struct {
		uint64_t pTimer;
	} kernelCh;		   /* KernelPhase too */
} ncclProfilerEventStateArgs_v4_t; /* v4 to v7 */

/* The exported tables. All callbacks return ncclSuccess; NCCL ignores what they return, but init. */
typedef struct {
	const char *name;
	ncclProfResult_t (*init)(void **context, int *eActivationMask);
	ncclProfResult_t (*startEvent)(void *context, void **eHandle, void *eDescr);
	ncclProfResult_t (*stopEvent)(void *eHandle);
	ncclProfResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,
					     ncclProfilerEventStateArgs_v1_t *eStateArgs);
	ncclProfResult_t (*finalize)(void *context);
} ncclProfiler_v1_t; /* v1 to v3; eDescr is a ncclProfilerEventDescr_v1_t, _v2_t or _v3_t */

typedef struct {
	const char *name;
	ncclProfResult_t (*init)(void **context, int *eActivationMask, const char *commName,
				 uint64_t commHash, int nNodes, int nranks, int rank,
				 ncclDebugLogger_t logfn);
	ncclProfResult_t (*startEvent)(void *context, void **eHandle, void *eDescr);
	ncclProfResult_t (*stopEvent)(void *eHandle);
	ncclProfResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,
					     ncclProfilerEventStateArgs_v4_t *eStateArgs);
	ncclProfResult_t (*finalize)(void *context);
} ncclProfiler_v4_t; /* eDescr is a ncclProfilerEventDescr_v4_t */

typedef struct {
	const char *name;
	/* The trap between v4 and v5: the hash comes before the mask, not after the name. */
	ncclProfResult_t (*init)(void **context, uint64_t commId, int *eActivationMask,
				 const char *commName, int nNodes, int nranks, int rank,
				 ncclDebugLogger_t logfn);
	ncclProfResult_t (*startEvent)(void *context, void **eHandle, void *eDescr);
	ncclProfResult_t (*stopEvent)(void *eHandle);
	ncclProfResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_t eState,
					     ncclProfilerEventStateArgs_v4_t *eStateArgs);
	ncclProfResult_t (*finalize)(void *context);
} ncclProfiler_v5_t; /* v5 to v7; eDescr is a ncclProfilerEventDescr_v5_t or _v7_t */

/* What net plugins pass as NetPlugin data, in NCCL's own IB and socket transports (version 1). */
enum {
	NCCL_PROFILER_NET_TYPE_IB = 1,
	NCCL_PROFILER_NET_TYPE_SOCK = 2,
};
typedef struct {
	uint8_t type; /* 1: queue pair */
	union {
		struct {
			int device;
			uint64_t wr_id;
			int opcode;
			int qpNum;
			size_t length;
		} qp;
	};
} ncclProfilerNetIbDescr_v1_t;
typedef struct {
	uint8_t type; /* 1: socket */
	union {
		struct {
			int fd;
			int op; /* 0 send, 1 receive */
			size_t length;
		} sock;
	};
} ncclProfilerNetSockDescr_v1_t;

#define NCCL_ABI_SIZE(t, s)    _Static_assert(sizeof(t) == (s), "NCCL's ABI: sizeof " #t)
#define NCCL_ABI_AT(t, f, off) _Static_assert(offsetof(t, f) == (off), "NCCL's ABI: " #t "." #f)

NCCL_ABI_SIZE(ncclProfilerEventDescr_v1_t, 120);
NCCL_ABI_SIZE(ncclProfilerEventDescr_v2_t, 128);
NCCL_ABI_SIZE(ncclProfilerEventDescr_v3_t, 120);
NCCL_ABI_SIZE(ncclProfilerEventDescr_v4_t, 104);
NCCL_ABI_SIZE(ncclProfilerEventDescr_v5_t, 112);
NCCL_ABI_SIZE(ncclProfilerEventDescr_v7_t, 136);
NCCL_ABI_SIZE(ncclProfilerEventStateArgs_v1_t, 16);
NCCL_ABI_SIZE(ncclProfilerEventStateArgs_v4_t, 8);
NCCL_ABI_SIZE(ncclProfiler_v1_t, 48);
NCCL_ABI_SIZE(ncclProfiler_v4_t, 48);
NCCL_ABI_SIZE(ncclProfiler_v5_t, 48);
NCCL_ABI_SIZE(ncclProfilerNetIbDescr_v1_t, 40);
NCCL_ABI_SIZE(ncclProfilerNetSockDescr_v1_t, 24);

/* Fields at one place in the versions that have them. */
#define NCCL_ABI_HEADER(t)                                                                         \
	NCCL_ABI_AT(t, type, 0);                                                                   \
	NCCL_ABI_AT(t, parentObj, 8);                                                              \
	NCCL_ABI_AT(t, rank, 16)
#define NCCL_ABI_PROXY(t)                                                                          \
	NCCL_ABI_AT(t, proxyOp.pid, 24);                                                           \
	NCCL_ABI_AT(t, proxyOp.channelId, 28);                                                     \
	NCCL_ABI_AT(t, proxyOp.peer, 32);                                                          \
	NCCL_ABI_AT(t, proxyOp.nSteps, 36);                                                        \
	NCCL_ABI_AT(t, proxyOp.chunkSize, 40);                                                     \
	NCCL_ABI_AT(t, proxyOp.isSend, 44);                                                        \
	NCCL_ABI_AT(t, proxyStep.step, 24)
#define NCCL_ABI_NET(t)                                                                            \
	NCCL_ABI_AT(t, kernelCh.channelId, 24);                                                    \
	NCCL_ABI_AT(t, netPlugin.id, 24);                                                          \
	NCCL_ABI_AT(t, netPlugin.data, 32)
#define NCCL_ABI_V4(t)                                                                             \
	NCCL_ABI_AT(t, kernelCh.pTimer, 32);                                                       \
	NCCL_ABI_AT(t, coll.seqNumber, 24);                                                        \
	NCCL_ABI_AT(t, coll.func, 32);                                                             \
	NCCL_ABI_AT(t, coll.sendBuff, 40);                                                         \
	NCCL_ABI_AT(t, coll.recvBuff, 48);                                                         \
	NCCL_ABI_AT(t, coll.count, 56);                                                            \
	NCCL_ABI_AT(t, coll.root, 64);                                                             \
	NCCL_ABI_AT(t, coll.datatype, 72);                                                         \
	NCCL_ABI_AT(t, coll.nChannels, 80);                                                        \
	NCCL_ABI_AT(t, coll.nWarps, 81);                                                           \
	NCCL_ABI_AT(t, coll.algo, 88);                                                             \
	NCCL_ABI_AT(t, coll.proto, 96);                                                            \
	NCCL_ABI_AT(t, p2p.func, 24);                                                              \
	NCCL_ABI_AT(t, p2p.buff, 32);                                                              \
	NCCL_ABI_AT(t, p2p.datatype, 40);                                                          \
	NCCL_ABI_AT(t, p2p.count, 48);                                                             \
	NCCL_ABI_AT(t, p2p.peer, 56);                                                              \
	NCCL_ABI_AT(t, p2p.nChannels, 60)
#define NCCL_ABI_V5(t)                                                                             \
	NCCL_ABI_AT(t, groupApi.graphCaptured, 24);                                                \
	NCCL_ABI_AT(t, groupApi.groupDepth, 28);                                                   \
	NCCL_ABI_AT(t, collApi.func, 24);                                                          \
	NCCL_ABI_AT(t, collApi.count, 32);                                                         \
	NCCL_ABI_AT(t, collApi.datatype, 40);                                                      \
	NCCL_ABI_AT(t, collApi.root, 48);                                                          \
	NCCL_ABI_AT(t, collApi.stream, 56);                                                        \
	NCCL_ABI_AT(t, collApi.graphCaptured, 64);                                                 \
	NCCL_ABI_AT(t, p2pApi.func, 24);                                                           \
	NCCL_ABI_AT(t, p2pApi.count, 32);                                                          \
	NCCL_ABI_AT(t, p2pApi.datatype, 40);                                                       \
	NCCL_ABI_AT(t, p2pApi.stream, 48);                                                         \
	NCCL_ABI_AT(t, p2pApi.graphCaptured, 56);                                                  \
	NCCL_ABI_AT(t, kernelLaunch.stream, 24);                                                   \
	NCCL_ABI_AT(t, coll.parentGroup, 104);                                                     \
	NCCL_ABI_AT(t, p2p.parentGroup, 64)

NCCL_ABI_HEADER(ncclProfilerEventDescr_v1_t);
NCCL_ABI_HEADER(ncclProfilerEventDescr_v2_t);
NCCL_ABI_HEADER(ncclProfilerEventDescr_v3_t);
NCCL_ABI_HEADER(ncclProfilerEventDescr_v4_t);
NCCL_ABI_HEADER(ncclProfilerEventDescr_v5_t);
NCCL_ABI_HEADER(ncclProfilerEventDescr_v7_t);
NCCL_ABI_PROXY(ncclProfilerEventDescr_v1_t);
NCCL_ABI_PROXY(ncclProfilerEventDescr_v2_t);
NCCL_ABI_PROXY(ncclProfilerEventDescr_v3_t);
NCCL_ABI_PROXY(ncclProfilerEventDescr_v4_t);
NCCL_ABI_PROXY(ncclProfilerEventDescr_v5_t);
NCCL_ABI_PROXY(ncclProfilerEventDescr_v7_t);
NCCL_ABI_NET(ncclProfilerEventDescr_v3_t);
NCCL_ABI_NET(ncclProfilerEventDescr_v4_t);
NCCL_ABI_NET(ncclProfilerEventDescr_v5_t);
NCCL_ABI_NET(ncclProfilerEventDescr_v7_t);
NCCL_ABI_V4(ncclProfilerEventDescr_v4_t);
NCCL_ABI_V4(ncclProfilerEventDescr_v5_t);
NCCL_ABI_V4(ncclProfilerEventDescr_v7_t);
NCCL_ABI_V5(ncclProfilerEventDescr_v5_t);
NCCL_ABI_V5(ncclProfilerEventDescr_v7_t);

NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, collApi.userTag, 72);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, p2pApi.userTag, 64);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, coll.kernelVariant, 112);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, coll.isSymColl, 120);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, coll.userTag, 128);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, p2p.userTag, 72);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.seqNumber, 24);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.func, 32);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.sendBuff, 40);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.recvBuff, 48);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.count, 56);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.root, 64);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.datatype, 72);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.syncStrategy, 80);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.intraBatchSync, 88);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.batchSize, 92);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.numBatches, 96);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.ceSeqNum, 100);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.stream, 104);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceColl.userTag, 112);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceCollSync.isComplete, 24);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceCollSync.nRanks, 28);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceCollBatch.numOps, 24);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceCollBatch.totalBytes, 32);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, ceCollBatch.useIntraSync, 40);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.channelId, 24);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.phaseId, 25);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.phaseName, 32);
NCCL_ABI_AT(ncclProfilerEventDescr_v7_t, kernelPhase.pTimer, 40);
NCCL_ABI_AT(ncclProfilerNetIbDescr_v1_t, qp.device, 8);
NCCL_ABI_AT(ncclProfilerNetIbDescr_v1_t, qp.wr_id, 16);
NCCL_ABI_AT(ncclProfilerNetIbDescr_v1_t, qp.opcode, 24);
NCCL_ABI_AT(ncclProfilerNetIbDescr_v1_t, qp.qpNum, 28);
NCCL_ABI_AT(ncclProfilerNetIbDescr_v1_t, qp.length, 32);
NCCL_ABI_AT(ncclProfilerNetSockDescr_v1_t, sock.fd, 8);
NCCL_ABI_AT(ncclProfilerNetSockDescr_v1_t, sock.op, 12);
NCCL_ABI_AT(ncclProfilerNetSockDescr_v1_t, sock.length, 16);
/* v1 to v3 differ from each other only in Coll and P2p. */
NCCL_ABI_AT(ncclProfilerEventDescr_v1_t, coll.func, 48);
NCCL_ABI_AT(ncclProfilerEventDescr_v1_t, coll.datatype, 84);
NCCL_ABI_AT(ncclProfilerEventDescr_v1_t, coll.nMaxChannels, 104);
NCCL_ABI_AT(ncclProfilerEventDescr_v1_t, coll.isNvls, 112);
NCCL_ABI_AT(ncclProfilerEventDescr_v1_t, p2p.peer, 72);
NCCL_ABI_AT(ncclProfilerEventDescr_v2_t, coll.datatype, 88);
NCCL_ABI_AT(ncclProfilerEventDescr_v2_t, coll.proto, 120);
NCCL_ABI_AT(ncclProfilerEventDescr_v2_t, p2p.peer, 72);
NCCL_ABI_AT(ncclProfilerEventDescr_v3_t, coll.nMaxChannels, 96);
NCCL_ABI_AT(ncclProfilerEventDescr_v3_t, coll.proto, 112);

#endif
