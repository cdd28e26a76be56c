// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls into the profiler plugin: which events at which masks with which fields, as NCCL
 * 2.28.9's src/plugin/profiler.cc makes them, its quirks included (a CollApi handle that is never
 * cleared, a rank that stays 0, a mask read once per API call).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "prof_abi.h"
#include "prof_table.h"

#define BELOW_TASK                                                                                 \
	(ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileKernelCh | ncclProfileNetPlugin)
#define MASK_COLL	(ncclProfileColl | BELOW_TASK)
#define MASK_P2P	(ncclProfileP2p | BELOW_TASK)
#define MASK_GROUP	(ncclProfileGroup | ncclProfileColl | ncclProfileP2p | BELOW_TASK)
#define MASK_CE		(ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch)
#define MASK_COLL_API	(ncclProfileCollApi | MASK_COLL)
#define MASK_P2P_API	(ncclProfileP2pApi | MASK_P2P)
#define MASK_PROXY_OP	(ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileNetPlugin)
#define MASK_PROXY_STEP (ncclProfileProxyStep | ncclProfileNetPlugin)
#define MASK_GROUP_API                                                                             \
	(ncclProfileGroupApi | ncclProfileCollApi | ncclProfileP2pApi | ncclProfileKernelLaunch |  \
	 MASK_GROUP)

#define NET_SOCK_ID ((NCCL_PROFILER_NET_TYPE_SOCK << 16) | 1)

/* Names are pointer-stable, as in NCCL: a plugin may use the pointer as a key. */
static const char *const func_names[FUNC_NUM] = {
	"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce",
	"SendRecv",  "Send",   "Recv",	    "AlltoAll",
};
static const char *const type_names[ncclNumTypes] = {
	"ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
	"ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16",
};
static const char algo_name[] = "RING";
static const char proto_name[] = "SIMPLE";

enum { API_RESET = 0, API_STARTED, API_STOPPED };
static __thread struct {
	int mask;
	int depth;
	int state;
	void *group_api;
	void *coll_api;
	void *p2p_api;
} api;

int prof_api_mask(void)
{
	return api.mask;
}

static bool on(int mask, int bits)
{
	return prof_loaded() && (mask & bits);
}

/* ---- GroupApi, CollApi, P2pApi: the thread that calls NCCL ---- */

void prof_group_api_start(struct ncclComm *comm)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileGroupApi};
	int bits = MASK_GROUP_API;

	api.mask = prof_mask_read();
	if (prof_native() >= 6)
		bits |= MASK_CE;
	if (prof_native() < 5 || !on(api.mask, bits) || api.depth)
		return;
	d.groupApi.groupDepth = group_depth;
	prof_start(comm->prof_ctx, &api.group_api, &d, NULL);
	api.depth = group_depth;
	api.state = API_STARTED;
}

void prof_group_api_state(int state)
{
	bool record = false;

	if (state == ncclProfilerGroupStartApiStop && api.state == API_STARTED) {
		api.state = API_STOPPED;
		record = true;
	} else if (state == ncclProfilerGroupEndApiStart && api.state == API_STOPPED) {
		api.state = API_RESET;
		record = true;
	}
	if (record && prof_loaded() && api.group_api)
		prof_record(api.group_api, state, NULL);
}

void prof_group_api_stop(void)
{
	if (!prof_loaded() || !api.group_api || api.depth)
		return;
	prof_stop(api.group_api);
	api.group_api = NULL;
}

void prof_group_depth_inc(void)
{
	api.depth += api.depth > 0;
}

void prof_group_depth_dec(void)
{
	api.depth -= api.depth > 0;
	if (!api.depth)
		prof_group_api_state(ncclProfilerGroupEndApiStart);
}

void prof_coll_api_start(struct ncclComm *comm, const struct task *t, void *stream)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileCollApi, .parentObj = api.group_api};
	int bits = MASK_COLL_API | (prof_native() >= 6 ? MASK_CE : 0);

	if (prof_native() < 5 || !on(api.mask, bits))
		return;
	d.collApi.func = func_names[t->api_func];
	d.collApi.count = t->count;
	d.collApi.datatype = type_names[t->type];
	d.collApi.root = t->root;
	d.collApi.stream = stream;
	d.collApi.userTag = t->tag;
	prof_start(comm->prof_ctx, &api.coll_api, &d, NULL);
}

/* NCCL does not clear this handle: after the mask goes off it is stopped again and again. */
void prof_coll_api_stop(void)
{
	if (prof_loaded() && api.coll_api)
		prof_stop(api.coll_api);
}

void prof_p2p_api_start(struct ncclComm *comm, const struct task *t, void *stream)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileP2pApi, .parentObj = api.group_api};

	if (prof_native() < 5 || !on(api.mask, MASK_P2P_API))
		return;
	d.p2pApi.func = func_names[t->func];
	d.p2pApi.count = t->count;
	d.p2pApi.datatype = type_names[t->type];
	d.p2pApi.stream = stream;
	d.p2pApi.userTag = t->tag;
	prof_start(comm->prof_ctx, &api.p2p_api, &d, NULL);
}

void prof_p2p_api_stop(void)
{
	if (!prof_loaded() || !api.p2p_api)
		return;
	prof_stop(api.p2p_api);
	api.p2p_api = NULL;
}

/* What a task keeps of the API call that made it. */
void prof_task_handles(struct task *t)
{
	t->mask = api.mask;
	t->group_api = api.group_api;
	t->api = t->func == FUNC_SEND || t->func == FUNC_RECV ? api.p2p_api : api.coll_api;
}

/* ---- KernelLaunch, Group, Coll, P2p ---- */

/* NCCL takes the mask of the first task that has one. */
static struct task *first_masked(struct plan *p)
{
	struct task *t;

	for (t = p->colls.head; t; t = t->next)
		if (t->mask)
			return t;
	for (t = p->p2ps.head; t; t = t->next)
		if (t->mask)
			return t;
	return NULL;
}

void prof_launch_start(struct plan *p)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileKernelLaunch};
	struct task *t = prof_loaded() ? first_masked(p) : NULL;

	if (prof_native() < 5 || !t || !(t->mask & ncclProfileKernelLaunch))
		return;
	d.parentObj = t->group_api;
	d.kernelLaunch.stream = p->stream;
	prof_start(p->comm->prof_ctx, &p->launch_handle, &d, NULL);
}

void prof_launch_stop(struct plan *p)
{
	if (prof_loaded() && p->launch_handle)
		prof_stop(p->launch_handle);
}

void prof_group_start(struct plan *p)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileGroup};
	struct task *t = prof_loaded() ? first_masked(p) : NULL;

	if (t && (t->mask & MASK_GROUP))
		prof_start(p->comm->prof_ctx, &p->group_handle, &d, NULL);
}

void prof_group_stop(struct plan *p)
{
	if (prof_loaded() && p->group_handle)
		prof_stop(p->group_handle);
}

static void coll_start(struct plan *p, struct task *t)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileColl, .rank = p->comm->rank};
	struct prof_extra x = {p->comm->name, p->comm->hash, t->func, t->type, t->op, t->traffic};

	d.parentObj = prof_native() >= 5 ? t->api : p->group_handle;
	d.coll.parentGroup = p->group_handle;
	d.coll.seqNumber = p->comm->seq[t->func];
	d.coll.func = func_names[t->func];
	d.coll.sendBuff = t->send;
	d.coll.recvBuff = t->recv;
	d.coll.count = t->count;
	d.coll.root = t->root;
	d.coll.datatype = type_names[t->type];
	d.coll.nChannels = t->nchannels;
	d.coll.nWarps = 17; /* what NCCL takes for ring/Simple: 512 threads and one warp more */
	d.coll.algo = algo_name;
	d.coll.proto = proto_name;
	d.coll.userTag = t->tag;
	prof_start(p->comm->prof_ctx, &t->handle, &d, &x);
}

static void p2p_start(struct plan *p, struct task *t)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileP2p, .rank = p->comm->rank};
	struct prof_extra x = {p->comm->name, p->comm->hash, t->func, t->type, t->op, t->bytes};

	d.parentObj = prof_native() >= 5 ? t->api : p->group_handle;
	d.p2p.parentGroup = p->group_handle;
	d.p2p.func = func_names[t->func];
	d.p2p.buff = t->func == FUNC_SEND ? (void *)(uintptr_t)t->send : t->recv;
	d.p2p.count = t->count;
	d.p2p.datatype = type_names[t->type];
	d.p2p.peer = t->root;
	d.p2p.nChannels = t->nchannels;
	d.p2p.userTag = t->tag;
	prof_start(p->comm->prof_ctx, &t->handle, &d, &x);
}

void prof_tasks_start(struct plan *p)
{
	struct task *t;
	bool told;

	for (t = p->colls.head; t; t = t->next) {
		told = on(t->mask, MASK_COLL);
		if (told)
			coll_start(p, t);
		/* Up to 2.25 only what is told; since then also without a plugin: RAS uses it. */
		if (told || prof_native() > 2)
			p->comm->seq[t->func]++;
	}
	for (t = p->p2ps.head; t; t = t->next)
		if (on(t->mask, MASK_P2P))
			p2p_start(p, t);
}

void prof_tasks_stop(struct plan *p)
{
	struct task *t;

	if (!prof_loaded())
		return;
	for (t = p->colls.head; t; t = t->next)
		if (t->handle)
			prof_stop(t->handle);
	for (t = p->p2ps.head; t; t = t->next)
		if (t->handle)
			prof_stop(t->handle);
}

/* ---- copy-engine collectives (v6): on the launching thread, stop means enqueued ---- */

bool prof_ce_wanted(const struct task *t)
{
	return settings()->ce && prof_native() >= 6 && t->func == FUNC_ALLGATHER;
}

static void ce_sync(struct ncclComm *comm, void *coll, bool complete)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileCeSync, .rank = comm->rank};
	void *h = NULL;

	if (!coll || !on(prof_mask_read(), ncclProfileCeSync))
		return;
	d.parentObj = coll;
	d.ceCollSync.isComplete = complete;
	d.ceCollSync.nRanks = comm->nranks;
	prof_start(comm->prof_ctx, &h, &d, NULL);
	if (h)
		prof_stop(h);
}

static void ce_batch(struct ncclComm *comm, struct task *t, void *coll)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileCeBatch, .rank = comm->rank};
	void *h = NULL;

	if (!coll || !on(prof_mask_read(), ncclProfileCeBatch))
		return;
	d.parentObj = coll;
	d.ceCollBatch.numOps = comm->nranks;
	d.ceCollBatch.totalBytes = t->count * type_size(t->type) * comm->nranks;
	prof_start(comm->prof_ctx, &h, &d, NULL);
	if (h)
		prof_stop(h);
}

void prof_ce(struct ncclComm *comm, struct task *t, void *stream)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileCeColl, .rank = comm->rank};
	void *h = NULL;

	if (on(prof_mask_read(), MASK_CE)) {
		d.parentObj = t->api;
		d.ceColl.seqNumber = comm->ce_seq;
		d.ceColl.func = func_names[t->func];
		d.ceColl.sendBuff = t->send;
		d.ceColl.recvBuff = t->recv;
		d.ceColl.count = t->count;
		d.ceColl.root = t->root;
		d.ceColl.datatype = type_names[t->type];
		d.ceColl.syncStrategy = "UC";
		d.ceColl.ceSeqNum = comm->ce_seq;
		d.ceColl.stream = stream;
		d.ceColl.userTag = t->tag;
		prof_start(comm->prof_ctx, &h, &d, NULL);
	}
	ce_sync(comm, h, false);
	ce_batch(comm, t, h);
	ce_sync(comm, h, true);
	comm->ce_seq++;
	if (h)
		prof_stop(h);
}

/* ---- ProxyOp, ProxyStep: the progress thread; context and parent may be another process' ---- */

void prof_op_start(struct args *a, struct sub *s)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileProxyOp, .rank = s->op.rank};

	if (!on(s->op.mask, MASK_PROXY_OP))
		return;
	d.parentObj = (void *)(uintptr_t)s->op.task_handle;
	d.proxyOp.pid = s->op.pid;
	d.proxyOp.channelId = s->op.channel;
	d.proxyOp.peer = s->op.peer;
	d.proxyOp.nSteps = DIV_UP(s->op.nsteps, s->op.slice_steps);
	d.proxyOp.chunkSize = s->op.chunk_size * s->op.slice_steps;
	d.proxyOp.isSend = a->kind == OP_SEND;
	prof_start((void *)(uintptr_t)s->op.ctx, &s->op_handle, &d, NULL);
	if (prof_ops_are_silent())
		s->op_handle = NULL;
}

void prof_op_stop(struct sub *s)
{
	if (!prof_loaded() || !s->op_handle)
		return;
	prof_stop(s->op_handle);
	s->op_handle = NULL;
}

void prof_op_progress(struct sub *s)
{
	ncclProfilerEventStateArgs_v4_t a = {0};

	if (prof_loaded() && s->op_handle)
		prof_record(s->op_handle, ncclProfilerProxyOpInProgress_v4, &a);
}

/* The eight states that NCCL 2.23 to 2.26 gave for each slice of an operation. */
void prof_op_old_state(struct args *a, struct sub *s, int state, int steps)
{
	(void)a;
	if (prof_native() <= 3 && prof_loaded() && s->op_handle)
		prof_record_old(s->op_handle, state, s->trans_size, steps);
}

static void **step_handle(struct sub *s, int step)
{
	return &s->step_handle[DIV_UP(step, s->op.slice_steps) % NCCL_STEPS];
}

void prof_step_start(struct sub *s, int step)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileProxyStep, .rank = s->op.rank};

	if (!on(s->op.mask, MASK_PROXY_STEP) || prof_ops_are_silent())
		return;
	d.parentObj = s->op_handle;
	d.proxyStep.step = DIV_UP(step, s->op.slice_steps);
	prof_start((void *)(uintptr_t)s->op.ctx, step_handle(s, step), &d, NULL);
}

void prof_step_state(struct sub *s, int step, int state)
{
	ncclProfilerEventStateArgs_v4_t a = {.proxyStep = {.transSize = s->trans_size}};
	void *h = *step_handle(s, step);

	if (prof_loaded() && s->op_handle && h)
		prof_record(h, state, &a);
}

void prof_step_stop(struct sub *s, int step)
{
	void **h = step_handle(s, step);

	if (!prof_loaded() || !*h)
		return;
	prof_stop_step(*h);
	*h = NULL;
}

/* ---- ProxyCtrl: the mask of the moment counts, twice ---- */

void prof_ctrl_start(void *ctx, void **handle)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileProxyCtrl};

	if (on(prof_mask_read(), ncclProfileProxyCtrl))
		prof_start(ctx, handle, &d, NULL);
	else
		*handle = NULL;
}

void prof_ctrl_state(void *handle, int appended, int state)
{
	ncclProfilerEventStateArgs_v4_t a = {.proxyCtrl = {.appendedProxyOps = appended}};

	if (handle && on(prof_mask_read(), ncclProfileProxyCtrl))
		prof_record(handle, state, &a);
}

void prof_ctrl_stop(void *handle)
{
	if (prof_loaded() && handle)
		prof_stop(handle);
}

/* ---- KernelCh, KernelPhase ---- */

/* v7's phases of one kernel channel; the stand-in's kernel has no barriers, so two are short. */
static void phases(struct sub *s, uint64_t t0, uint64_t t1)
{
	static const char *const names[] = {"initial_sync", "compute", "final_sync"};
	uint64_t at[4] = {t0, t0 + (t1 - t0) / 16, t1 - (t1 - t0) / 16, t1};
	int i;

	for (i = 0; i < 3; i++) {
		ncclProfilerEventDescr_v7_t d = {.type = ncclProfileKernelPhase};
		ncclProfilerEventStateArgs_v4_t a = {.kernelCh = {.pTimer = at[i + 1]}};
		void *h = NULL;

		d.parentObj = s->kernel_handle;
		d.kernelPhase.channelId = s->op.channel;
		d.kernelPhase.phaseId = i;
		d.kernelPhase.phaseName = names[i];
		d.kernelPhase.pTimer = at[i];
		prof_start((void *)(uintptr_t)s->op.ctx, &h, &d, NULL);
		if (!h)
			continue;
		prof_record(h, ncclProfilerKernelPhaseStop, &a);
		prof_stop(h);
	}
}

void prof_kernel_start(struct sub *s, uint64_t ts)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileKernelCh};

	s->base = ts;
	if (prof_native() < 3 || !on(s->op.mask, ncclProfileKernelCh))
		return;
	d.parentObj = (void *)(uintptr_t)s->op.task_handle;
	d.kernelCh.channelId = s->op.channel;
	d.kernelCh.pTimer = ts;
	prof_start((void *)(uintptr_t)s->op.ctx, &s->kernel_handle, &d, NULL);
}

void prof_kernel_stop(struct sub *s, uint64_t ts)
{
	ncclProfilerEventStateArgs_v4_t a = {.kernelCh = {.pTimer = ts}};

	if (!prof_loaded() || !s->kernel_handle)
		return;
	if (prof_native() >= 7 && (s->op.mask & ncclProfileKernelPhase))
		phases(s, s->base, ts);
	prof_record(s->kernel_handle, ncclProfilerKernelChStop, &a);
	prof_stop(s->kernel_handle);
}

/* ---- NetPlugin: not in NVIDIA's builds (NCCL_ENABLE_NET_PROFILING) ---- */

static bool net_profiling(void)
{
	return settings()->net_profiler && prof_loaded() && prof_native() >= 3;
}

void prof_net_start(struct req *r, void **handle, int fd, int size)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileNetPlugin};
	ncclProfilerNetSockDescr_v1_t data = {.type = 1};
	struct sub *s = r->sub;

	if (!net_profiling() || *handle || !(s->op.mask & ncclProfileNetPlugin))
		return;
	data.sock.fd = fd;
	data.sock.op = !r->is_send;
	data.sock.length = size;
	d.parentObj = *step_handle(s, r->step);
	d.rank = s->op.rank;
	d.netPlugin.id = NET_SOCK_ID;
	d.netPlugin.data = &data;
	prof_start((void *)(uintptr_t)s->op.ctx, handle, &d, NULL);
}

/* As in NCCL with the bit off: stop comes all the same, with a NULL handle. */
void prof_net_stop(void **handle)
{
	if (!net_profiling())
		return;
	prof_stop(*handle);
	*handle = NULL;
}
