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

#define TEXT(t)                                                                                    \
	{                                                                                          \
		sizeof(t) - 1, t                                                                   \
	}
#define TYPE(what, type, brief) [what] = {type, brief, TEXT(",\"type\":\"" type "\"")}

static const struct {
	const char *type;
	const char *brief;
	struct json_text text;
} types[SCOPE_NTYPES] = {
	TYPE(SCOPE_GROUP, "ncclProfileGroup", "group"),
	TYPE(SCOPE_COLL, "ncclProfileColl", "coll"),
	TYPE(SCOPE_P2P, "ncclProfileP2p", "p2p"),
	TYPE(SCOPE_PROXY_OP, "ncclProfileProxyOp", "proxyop"),
	TYPE(SCOPE_PROXY_STEP, "ncclProfileProxyStep", "proxystep"),
	TYPE(SCOPE_PROXY_CTRL, "ncclProfileProxyCtrl", "proxyctrl"),
	TYPE(SCOPE_KERNEL_CH, "ncclProfileKernelCh", "kernelch"),
	TYPE(SCOPE_NET_PLUGIN, "ncclProfileNetPlugin", "netplugin"),
	TYPE(SCOPE_GROUP_API, "ncclProfileGroupApi", "groupapi"),
	TYPE(SCOPE_COLL_API, "ncclProfileCollApi", "collapi"),
	TYPE(SCOPE_P2P_API, "ncclProfileP2pApi", "p2papi"),
	TYPE(SCOPE_KERNEL_LAUNCH, "ncclProfileKernelLaunch", "kernellaunch"),
	TYPE(SCOPE_CE_COLL, "ncclProfileCeColl", "cecoll"),
	TYPE(SCOPE_CE_SYNC, "ncclProfileCeSync", "cesync"),
	TYPE(SCOPE_CE_BATCH, "ncclProfileCeBatch", "cebatch"),
	TYPE(SCOPE_KERNEL_PHASE, "ncclProfileKernelPhase", "kernelphase"),
};

#define STATE(state, number, name) [state] = {name, TEXT(",\"name\":\"" name "\",\"id\":" #number)}

static const struct {
	const char *name;
	struct json_text text;
} states[NCCL_PROFILER_NSTATES] = {
	STATE(ncclProfilerProxyOpSendPosted, 0, "ProxyOpSendPosted"),
	STATE(ncclProfilerProxyOpSendRemFifoWait, 1, "ProxyOpSendRemFifoWait"),
	STATE(ncclProfilerProxyOpSendTransmitted, 2, "ProxyOpSendTransmitted"),
	STATE(ncclProfilerProxyOpSendDone, 3, "ProxyOpSendDone"),
	STATE(ncclProfilerProxyOpRecvPosted, 4, "ProxyOpRecvPosted"),
	STATE(ncclProfilerProxyOpRecvReceived, 5, "ProxyOpRecvReceived"),
	STATE(ncclProfilerProxyOpRecvTransmitted, 6, "ProxyOpRecvTransmitted"),
	STATE(ncclProfilerProxyOpRecvDone, 7, "ProxyOpRecvDone"),
	STATE(ncclProfilerProxyStepSendGPUWait, 8, "ProxyStepSendGPUWait"),
	STATE(ncclProfilerProxyStepSendWait, 9, "ProxyStepSendWait"),
	STATE(ncclProfilerProxyStepRecvWait, 10, "ProxyStepRecvWait"),
	STATE(ncclProfilerProxyStepRecvFlushWait, 11, "ProxyStepRecvFlushWait"),
	STATE(ncclProfilerProxyStepRecvGPUWait, 12, "ProxyStepRecvGPUWait"),
	STATE(ncclProfilerProxyCtrlIdle, 13, "ProxyCtrlIdle"),
	STATE(ncclProfilerProxyCtrlActive, 14, "ProxyCtrlActive"),
	STATE(ncclProfilerProxyCtrlSleep, 15, "ProxyCtrlSleep"),
	STATE(ncclProfilerProxyCtrlWakeup, 16, "ProxyCtrlWakeup"),
	STATE(ncclProfilerProxyCtrlAppend, 17, "ProxyCtrlAppend"),
	STATE(ncclProfilerProxyCtrlAppendEnd, 18, "ProxyCtrlAppendEnd"),
	STATE(ncclProfilerProxyOpInProgress_v4, 19, "ProxyOpInProgress"),
	STATE(ncclProfilerProxyStepSendPeerWait_v4, 20, "ProxyStepSendPeerWait"),
	STATE(ncclProfilerNetPluginUpdate, 21, "NetPluginUpdate"),
	STATE(ncclProfilerKernelChStop, 22, "KernelChStop"),
	STATE(ncclProfilerGroupStartApiStop, 23, "GroupStartApiStop"),
	STATE(ncclProfilerGroupEndApiStart, 24, "GroupEndApiStart"),
	STATE(ncclProfilerCeCollStart, 25, "CeCollStart"),
	STATE(ncclProfilerCeCollComplete, 26, "CeCollComplete"),
	STATE(ncclProfilerCeSyncStart, 27, "CeSyncStart"),
	STATE(ncclProfilerCeSyncComplete, 28, "CeSyncComplete"),
	STATE(ncclProfilerCeBatchStart, 29, "CeBatchStart"),
	STATE(ncclProfilerCeBatchComplete, 30, "CeBatchComplete"),
	STATE(ncclProfilerKernelPhaseStop, 31, "KernelPhaseStop"),
};

const char *event_type_name(uint32_t what)
{
	return what < SCOPE_NTYPES ? types[what].type : NULL;
}

const struct json_text *event_type_text(uint32_t what)
{
	return what < SCOPE_NTYPES ? &types[what].text : NULL;
}

const char *event_type_short(uint32_t what)
{
	return what < SCOPE_NTYPES ? types[what].brief : NULL;
}

const char *event_state_name(uint32_t state)
{
	return state < NCCL_PROFILER_NSTATES ? states[state].name : NULL;
}

const struct json_text *event_state_text(uint32_t state)
{
	return state < NCCL_PROFILER_NSTATES ? &states[state].text : NULL;
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
	if (mask & (ncclProfileProxyOp | KERNELS))
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
