// SPDX-License-Identifier: BSD-2-Clause
/* NCCL's numbers in words; see nccl_names.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "nccl_names.h"
#include "nccl_profiler.h"
#include "scope_abi.h"

static const struct {
	const char *type;
	const char *brief;
} types[SCOPE_NTYPES] = {
	[SCOPE_GROUP] = {"ncclProfileGroup", "group"},
	[SCOPE_COLL] = {"ncclProfileColl", "coll"},
	[SCOPE_P2P] = {"ncclProfileP2p", "p2p"},
	[SCOPE_PROXY_OP] = {"ncclProfileProxyOp", "proxyop"},
	[SCOPE_PROXY_STEP] = {"ncclProfileProxyStep", "proxystep"},
	[SCOPE_PROXY_CTRL] = {"ncclProfileProxyCtrl", "proxyctrl"},
	[SCOPE_KERNEL_CH] = {"ncclProfileKernelCh", "kernelch"},
	[SCOPE_NET_PLUGIN] = {"ncclProfileNetPlugin", "netplugin"},
	[SCOPE_GROUP_API] = {"ncclProfileGroupApi", "groupapi"},
	[SCOPE_COLL_API] = {"ncclProfileCollApi", "collapi"},
	[SCOPE_P2P_API] = {"ncclProfileP2pApi", "p2papi"},
	[SCOPE_KERNEL_LAUNCH] = {"ncclProfileKernelLaunch", "kernellaunch"},
	[SCOPE_CE_COLL] = {"ncclProfileCeColl", "cecoll"},
	[SCOPE_CE_SYNC] = {"ncclProfileCeSync", "cesync"},
	[SCOPE_CE_BATCH] = {"ncclProfileCeBatch", "cebatch"},
	[SCOPE_KERNEL_PHASE] = {"ncclProfileKernelPhase", "kernelphase"},
};

static const char *const states[NCCL_PROFILER_NSTATES] = {
	[ncclProfilerProxyOpSendPosted] = "ProxyOpSendPosted",
	[ncclProfilerProxyOpSendRemFifoWait] = "ProxyOpSendRemFifoWait",
	[ncclProfilerProxyOpSendTransmitted] = "ProxyOpSendTransmitted",
	[ncclProfilerProxyOpSendDone] = "ProxyOpSendDone",
	[ncclProfilerProxyOpRecvPosted] = "ProxyOpRecvPosted",
	[ncclProfilerProxyOpRecvReceived] = "ProxyOpRecvReceived",
	[ncclProfilerProxyOpRecvTransmitted] = "ProxyOpRecvTransmitted",
	[ncclProfilerProxyOpRecvDone] = "ProxyOpRecvDone",
	[ncclProfilerProxyStepSendGPUWait] = "ProxyStepSendGPUWait",
	[ncclProfilerProxyStepSendWait] = "ProxyStepSendWait",
	[ncclProfilerProxyStepRecvWait] = "ProxyStepRecvWait",
	[ncclProfilerProxyStepRecvFlushWait] = "ProxyStepRecvFlushWait",
	[ncclProfilerProxyStepRecvGPUWait] = "ProxyStepRecvGPUWait",
	[ncclProfilerProxyCtrlIdle] = "ProxyCtrlIdle",
	[ncclProfilerProxyCtrlActive] = "ProxyCtrlActive",
	[ncclProfilerProxyCtrlSleep] = "ProxyCtrlSleep",
	[ncclProfilerProxyCtrlWakeup] = "ProxyCtrlWakeup",
	[ncclProfilerProxyCtrlAppend] = "ProxyCtrlAppend",
	[ncclProfilerProxyCtrlAppendEnd] = "ProxyCtrlAppendEnd",
	[ncclProfilerProxyOpInProgress_v4] = "ProxyOpInProgress",
	[ncclProfilerProxyStepSendPeerWait_v4] = "ProxyStepSendPeerWait",
	[ncclProfilerNetPluginUpdate] = "NetPluginUpdate",
	[ncclProfilerKernelChStop] = "KernelChStop",
	[ncclProfilerGroupStartApiStop] = "GroupStartApiStop",
	[ncclProfilerGroupEndApiStart] = "GroupEndApiStart",
	[ncclProfilerCeCollStart] = "CeCollStart",
	[ncclProfilerCeCollComplete] = "CeCollComplete",
	[ncclProfilerCeSyncStart] = "CeSyncStart",
	[ncclProfilerCeSyncComplete] = "CeSyncComplete",
	[ncclProfilerCeBatchStart] = "CeBatchStart",
	[ncclProfilerCeBatchComplete] = "CeBatchComplete",
	[ncclProfilerKernelPhaseStop] = "KernelPhaseStop",
};

const char *event_type_name(uint32_t what)
{
	return what < SCOPE_NTYPES ? types[what].type : NULL;
}

const char *event_type_short(uint32_t what)
{
	return what < SCOPE_NTYPES ? types[what].brief : NULL;
}

const char *event_state_name(uint32_t state)
{
	return state < NCCL_PROFILER_NSTATES ? states[state] : NULL;
}

static int mask_word(const char *word, size_t len, uint32_t *mask)
{
	uint32_t what;

	if (len == 3 && !strncasecmp(word, "all", 3)) {
		*mask |= (1u << SCOPE_NTYPES) - 1;
		return 0;
	}
	if (len == 4 && !strncasecmp(word, "none", 4))
		return 0;
	for (what = 0; what < SCOPE_NTYPES; what++) {
		if (strlen(types[what].brief) == len &&
		    !strncasecmp(word, types[what].brief, len)) {
			*mask |= 1u << what;
			return 0;
		}
	}
	return -EINVAL;
}

int event_mask_parse(const char *text, uint32_t *mask)
{
	const char *p = text;
	char *end;
	size_t len;
	int err;

	*mask = 0;
	if (*text >= '0' && *text <= '9') {
		unsigned long v = strtoul(text, &end, 0);

		if (*end || v >= 1ul << SCOPE_NTYPES)
			return -EINVAL;
		*mask = (uint32_t)v;
		return 0;
	}
	for (;;) {
		len = strcspn(p, ",");
		err = mask_word(p, len, mask);
		if (err)
			return err;
		if (!p[len])
			return 0;
		p += len + 1;
	}
}

uint32_t event_mask_closure(uint32_t mask)
{
	const uint32_t ce = ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch;

	/* NCCL 2.28.9 src/plugin/profiler.cc, 2.30.7 for the copy engine; leaves first. */
	if (mask & ncclProfileNetPlugin)
		mask |= ncclProfileProxyStep;
	if (mask & ncclProfileProxyStep)
		mask |= ncclProfileProxyOp;
	if (mask & (ncclProfileProxyOp | ncclProfileKernelCh | ncclProfileKernelPhase))
		mask |= ncclProfileColl | ncclProfileP2p;
	if (mask & ce)
		mask |= ncclProfileCeColl;
	if (mask & (ncclProfileColl | ncclProfileP2p))
		mask |= ncclProfileGroup;
	if (mask & (ncclProfileColl | ce))
		mask |= ncclProfileCollApi;
	if (mask & ncclProfileP2p)
		mask |= ncclProfileP2pApi;
	if (mask & ~(uint32_t)ncclProfileProxyCtrl)
		mask |= ncclProfileGroupApi;
	return mask;
}

/* ---- Sizes -------------------------------------------------------------------------------------- */

uint64_t nccl_type_size(const char *name, size_t len)
{
	static const struct {
		const char *name;
		uint64_t size;
	} sizes[] = {{"ncclInt8", 1},	{"ncclUint8", 1},  {"ncclFloat16", 2}, {"ncclBfloat16", 2},
		     {"ncclInt32", 4},	{"ncclUint32", 4}, {"ncclFloat32", 4}, {"ncclInt64", 8},
		     {"ncclUint64", 8}, {"ncclFloat64", 8}};
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (strlen(sizes[i].name) == len && !memcmp(name, sizes[i].name, len))
			return sizes[i].size;
	return 1; /* of eight bits, or unknown */
}

double nccl_size_factor(const char *func, int32_t n)
{
	bool all = !strcmp(func, "AllGather") || !strcmp(func, "ReduceScatter") ||
		   !strcmp(func, "AlltoAll");

	return all && n > 0 ? n : 1;
}

double nccl_bus_factor(const char *func, int32_t n)
{
	if (n < 2)
		return 1;
	if (!strcmp(func, "AllReduce"))
		return 2.0 * (n - 1) / n;
	return nccl_size_factor(func, n) > 1 ? (double)(n - 1) / n : 1;
}
