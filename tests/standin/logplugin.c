// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profiler plugin of all seven versions that counts callbacks and holds their order, parents,
 * threads and fields against what NCCL promises: the judge of the stand-in. One line per process
 * is appended to $LOGPLUGIN_OUT; $LOGPLUGIN_MASK is the event mask; after $LOGPLUGIN_OFF_AFTER
 * CollApi events the mask goes to 0.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../../include/nccl_profiler.h"

#define EXPORT	  __attribute__((visibility("default")))
#define MAX_TYPES 16
#define MAX_BAD	  20

struct event {
	uint8_t type; /* bit number */
	uint8_t stopped;
	uint8_t is_send;
	int8_t last_state;
	int nsteps;
	int steps; /* of an operation: children seen */
	int step;
	int tid;
	int foreign;
	uint64_t parent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event *events;
static size_t nevents, cap;
static long starts[MAX_TYPES], stops[MAX_TYPES], states[32], bad, late, repeats, foreign;
static long inits, finals;
static unsigned long long trans_bytes;
static int api;
static int *mask_word;
static long off_after, first_mask;

static const char *const type_names[MAX_TYPES] = {
	"Group",    "Coll",	 "P2p",	     "ProxyOp",	    "ProxyStep", "ProxyCtrl",
	"KernelCh", "NetPlugin", "GroupApi", "CollApi",	    "P2pApi",	 "KernelLaunch",
	"CeColl",   "CeSync",	 "CeBatch",  "KernelPhase",
};
enum {
	GROUP,
	COLL,
	P2P,
	OP,
	STEP,
	CTRL,
	KCH,
	NET,
	GAPI,
	CAPI,
	PAPI,
	LAUNCH,
	CE,
	CESYNC,
	CEBATCH,
	PHASE
};

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...)
{
	va_list ap;

	if (bad++ >= MAX_BAD)
		return;
	va_start(ap, fmt);
	fprintf(stderr, "logplugin[%d]: ", (int)getpid());
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

static int tid(void)
{
	static __thread int t;

	if (!t)
		t = syscall(SYS_gettid);
	return t;
}

/* Handles: process, then a number that is never used again. */
static struct event *find(uint64_t h)
{
	uint64_t i = (h & 0xffffffff) - 1;

	if (h >> 32 != (uint64_t)getpid() || i >= nevents)
		return NULL;
	return &events[i];
}

static int bit_of(uint64_t type)
{
	int b = __builtin_ctzll(type);

	if (!type || type & (type - 1) || b >= MAX_TYPES) {
		wrong("event type %#llx", (unsigned long long)type);
		return -1;
	}
	return b;
}

static void check_parent(int type, uint64_t h, int allowed)
{
	struct event *p = h ? find(h) : NULL;

	if (!p || !(allowed >> p->type & 1))
		wrong("%s has parent %#llx of type %s", type_names[type], (unsigned long long)h,
		      p ? type_names[p->type] : "?");
}

static void check_parents(int type, uint64_t parent, int is_foreign)
{
	int task_parent = api >= 5 ? (type == COLL ? 1 << CAPI : 1 << PAPI) : 1 << GROUP;

	switch (type) {
	case COLL:
	case P2P:
		check_parent(type, parent, task_parent);
		break;
	case OP:
		if (!is_foreign)
			check_parent(type, parent, 1 << COLL | 1 << P2P);
		break;
	case KCH:
		check_parent(type, parent, 1 << COLL | 1 << P2P);
		break;
	case STEP:
		check_parent(type, parent, 1 << OP);
		break;
	case NET:
		check_parent(type, parent, 1 << STEP);
		break;
	case CAPI:
	case PAPI:
	case LAUNCH:
		check_parent(type, parent, 1 << GAPI);
		break;
	case CE:
		check_parent(type, parent, 1 << CAPI);
		break;
	case CESYNC:
	case CEBATCH:
		check_parent(type, parent, 1 << CE);
		break;
	case PHASE:
		check_parent(type, parent, 1 << KCH);
		break;
	default:
		if (parent)
			wrong("%s has a parent", type_names[type]);
	}
}

static int repeated(void **handle, int type, uint64_t parent, int step)
{
	struct event *old = find((uintptr_t)*handle);

	return type == STEP && old && !old->stopped && old->parent == parent && old->step == step;
}

struct seen { /* what the layouts have in common */
	uint64_t type;
	void *parent;
	int rank;
	const struct ncclProfProxyOp *op;
	int step;
};

static void start_step(struct event *e, const struct seen *s)
{
	struct event *op = find((uintptr_t)s->parent);

	if (!op)
		return;
	if (s->step != op->steps)
		wrong("step %d after %d steps", s->step, op->steps);
	op->steps++;
	e->is_send = op->is_send;
}

static ncclProfResult_t start(void *ctx, void **handle, const struct seen *s)
{
	int type = bit_of(s->type), is_foreign;
	struct event *e;

	if (type < 0)
		return ncclSuccess;
	if (!ctx)
		wrong("no context for %s", type_names[type]);
	if (s->rank && !(1 << type & (1 << COLL | 1 << P2P | 1 << OP | 1 << STEP | 1 << NET |
				      1 << CE | 1 << CESYNC | 1 << CEBATCH)))
		wrong("%s has rank %d", type_names[type], s->rank);
	pthread_mutex_lock(&lock);
	if (repeated(handle, type, (uintptr_t)s->parent, s->step)) {
		repeats++;
		pthread_mutex_unlock(&lock);
		return ncclSuccess;
	}
	is_foreign = type == OP && s->op->pid != getpid();
	foreign += is_foreign;
	check_parents(type, (uintptr_t)s->parent, is_foreign);
	if (nevents == cap) {
		cap = cap ? 2 * cap : 4096;
		events = realloc(events, cap * sizeof(*events));
	}
	e = &events[nevents++];
	memset(e, 0, sizeof(*e));
	e->type = type;
	e->last_state = -1;
	e->tid = tid();
	e->parent = (uintptr_t)s->parent;
	e->step = s->step;
	e->foreign = is_foreign;
	if (type == OP) {
		e->nsteps = s->op->nSteps;
		e->is_send = s->op->isSend;
	} else if (type == STEP) {
		start_step(e, s);
	}
	starts[type]++;
	if (type == CAPI && starts[CAPI] == off_after)
		__atomic_store_n(mask_word, 0, __ATOMIC_RELAXED);
	*handle = (void *)(uintptr_t)((uint64_t)getpid() << 32 | nevents);
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

static void check_stop(struct event *e)
{
	if (e->tid != tid())
		wrong("%s stops on another thread", type_names[e->type]);
	if (e->type == OP && e->steps != e->nsteps && (first_mask & (1 << STEP)))
		wrong("ProxyOp of %d steps had %d", e->nsteps, e->steps);
	if (e->type == STEP && e->last_state != (e->is_send ? ncclProfilerProxyStepSendWait
							    : ncclProfilerProxyStepRecvGPUWait))
		wrong("a %s step ends in state %d", e->is_send ? "send" : "receive", e->last_state);
	if (e->type == OP && api >= 4 && e->last_state != ncclProfilerProxyOpInProgress_v4)
		wrong("a ProxyOp ends in state %d", e->last_state);
	if (e->type == KCH && api >= 4 && e->last_state != ncclProfilerKernelChStop)
		wrong("a KernelCh ends in state %d", e->last_state);
}

static ncclProfResult_t stop(void *handle)
{
	struct event *e;

	pthread_mutex_lock(&lock);
	e = find((uintptr_t)handle);
	if (!e) {
		late++;
	} else if (e->stopped) {
		late++;
	} else {
		check_stop(e);
		e->stopped = 1;
		stops[e->type]++;
	}
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

/* The state that has to come before this one, or -1. */
static int before(int state)
{
	switch (state) {
	case ncclProfilerProxyStepSendPeerWait_v4:
		return ncclProfilerProxyStepSendGPUWait;
	case ncclProfilerProxyStepSendWait:
		return api >= 4 ? ncclProfilerProxyStepSendPeerWait_v4
				: ncclProfilerProxyStepSendGPUWait;
	case ncclProfilerProxyStepRecvFlushWait:
		return ncclProfilerProxyStepRecvWait;
	case ncclProfilerProxyStepRecvGPUWait:
		return ncclProfilerProxyStepRecvFlushWait;
	case ncclProfilerGroupEndApiStart:
		return ncclProfilerGroupStartApiStop;
	default:
		return -1;
	}
}

static void state(void *handle, int st, size_t trans)
{
	struct event *e;

	pthread_mutex_lock(&lock);
	e = find((uintptr_t)handle);
	if (st < 0 || st > 31) {
		wrong("state %d", st);
	} else if (!e || e->stopped) {
		late++;
	} else {
		states[st]++;
		if (e->tid != tid())
			wrong("state %d on another thread", st);
		if (e->last_state == st && st == ncclProfilerProxyStepSendPeerWait_v4)
			repeats++;
		else if (e->last_state != before(st) && before(st) >= 0)
			wrong("state %d after %d", st, e->last_state);
		e->last_state = st;
		if (st == ncclProfilerProxyStepSendWait || st == ncclProfilerProxyStepRecvFlushWait)
			trans_bytes += trans;
	}
	pthread_mutex_unlock(&lock);
}

static ncclProfResult_t state_v1(void *handle, ncclProfilerEventState_t st,
				 ncclProfilerEventStateArgs_v1_t *a)
{
	if (!a && (st < ncclProfilerProxyStepSendGPUWait || st > ncclProfilerProxyStepRecvGPUWait))
		wrong("state %d without arguments", st);
	state(handle, st, 0);
	return ncclSuccess;
}

static ncclProfResult_t state_v4(void *handle, ncclProfilerEventState_t st,
				 ncclProfilerEventStateArgs_v4_t *a)
{
	int api_state = st == ncclProfilerGroupStartApiStop || st == ncclProfilerGroupEndApiStart;

	if ((a == NULL) != api_state)
		wrong("state %d %s arguments", st, a ? "with" : "without");
	state(handle, st, a ? a->proxyStep.transSize : 0);
	return ncclSuccess;
}

/* ---- the versions ---- */

static void check_strings(const char *func, const char *type, const char *algo, const char *proto)
{
	if (!func || !type || strncmp(type, "nccl", 4))
		wrong("func '%s', datatype '%s'", func ? func : "", type ? type : "");
	if (!algo || !proto || strcmp(algo, "RING") || strcmp(proto, "SIMPLE"))
		wrong("algo '%s', proto '%s'", algo ? algo : "", proto ? proto : "");
}

static ncclProfResult_t start_v1(void *ctx, void **handle, void *descr)
{
	ncclProfilerEventDescr_v1_t *d = descr;
	struct seen s = {d->type, d->parentObj, d->rank, &d->proxyOp, d->proxyStep.step};

	if (d->type == ncclProfileColl &&
	    (d->coll.func > 4 || d->coll.algo != 1 || d->coll.proto != 2 || !d->coll.nMaxChannels ||
	     !d->coll.trafficBytes || !d->coll.commHash))
		wrong("v1 Coll: func %d algo %d proto %d channels %d", d->coll.func, d->coll.algo,
		      d->coll.proto, d->coll.nMaxChannels);
	return start(ctx, handle, &s);
}

static ncclProfResult_t start_v2(void *ctx, void **handle, void *descr)
{
	ncclProfilerEventDescr_v2_t *d = descr;
	struct seen s = {d->type, d->parentObj, d->rank, &d->proxyOp, d->proxyStep.step};

	if (d->type == ncclProfileColl) {
		check_strings(d->coll.func, d->coll.datatype, d->coll.algo, d->coll.proto);
		if (!d->coll.commHash || !d->coll.trafficBytes)
			wrong("v2 Coll without hash or traffic");
	}
	return start(ctx, handle, &s);
}

static ncclProfResult_t start_v3(void *ctx, void **handle, void *descr)
{
	ncclProfilerEventDescr_v3_t *d = descr;
	struct seen s = {d->type, d->parentObj, d->rank, &d->proxyOp, d->proxyStep.step};

	if (d->type == ncclProfileColl) {
		check_strings(d->coll.func, d->coll.datatype, d->coll.algo, d->coll.proto);
		if (!d->coll.commHash)
			wrong("v3 Coll without hash");
	}
	return start(ctx, handle, &s);
}

static ncclProfResult_t start_v4(void *ctx, void **handle, void *descr)
{
	ncclProfilerEventDescr_v4_t *d = descr;
	struct seen s = {d->type, d->parentObj, d->rank, &d->proxyOp, d->proxyStep.step};

	if (d->type == ncclProfileColl)
		check_strings(d->coll.func, d->coll.datatype, d->coll.algo, d->coll.proto);
	if (d->type == ncclProfileP2p && (d->p2p.nChannels < 1 || d->p2p.nChannels > 64))
		wrong("v4 P2p: %d channels", d->p2p.nChannels);
	return start(ctx, handle, &s);
}

static ncclProfResult_t start_v5(void *ctx, void **handle, void *descr)
{
	ncclProfilerEventDescr_v5_t *d = descr;
	struct seen s = {d->type, d->parentObj, d->rank, &d->proxyOp, d->proxyStep.step};
	struct event *g;

	if (d->type == ncclProfileColl) {
		check_strings(d->coll.func, d->coll.datatype, d->coll.algo, d->coll.proto);
		pthread_mutex_lock(&lock);
		g = find((uintptr_t)d->coll.parentGroup);
		if (!g || g->type != GROUP)
			wrong("Coll without a group");
		pthread_mutex_unlock(&lock);
		if (!strcmp(d->coll.func, "AllGather") && strcmp(d->coll.datatype, "ncclInt8"))
			wrong("AllGather counts '%s'", d->coll.datatype);
	}
	if (d->type == ncclProfileGroupApi && d->groupApi.groupDepth < 1)
		wrong("GroupApi at depth %d", d->groupApi.groupDepth);
	if (d->type == ncclProfileProxyOp && d->proxyOp.isSend >> 1)
		wrong("ProxyOp isSend %d", d->proxyOp.isSend);
	return start(ctx, handle, &s);
}

static ncclProfResult_t start_v7(void *ctx, void **handle, void *descr)
{
	ncclProfilerEventDescr_v7_t *d = descr;

	if (d->type == ncclProfileKernelPhase &&
	    (d->kernelPhase.phaseId > 2 || !d->kernelPhase.phaseName))
		wrong("KernelPhase %d", d->kernelPhase.phaseId);
	return start_v5(ctx, handle, descr);
}

static ncclProfResult_t init_any(void **ctx, int *mask, int version)
{
	const char *s = getenv("LOGPLUGIN_MASK");

	pthread_mutex_lock(&lock);
	api = version;
	inits++;
	mask_word = mask;
	off_after = getenv("LOGPLUGIN_OFF_AFTER") ? atol(getenv("LOGPLUGIN_OFF_AFTER")) : -1;
	*ctx = (void *)(uintptr_t)(0xc0000000u + inits);
	first_mask = s ? strtol(s, NULL, 0) : 4095;
	__atomic_store_n(mask, first_mask, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

#define INIT_OLD(n)                                                                                \
	static ncclProfResult_t init_v##n(void **ctx, int *mask)                                   \
	{                                                                                          \
		return init_any(ctx, mask, n);                                                     \
	}
INIT_OLD(1)
INIT_OLD(2)
INIT_OLD(3)

static ncclProfResult_t init_v4(void **ctx, int *mask, const char *name, uint64_t hash, int nnodes,
				int nranks, int rank, ncclDebugLogger_t logfn)
{
	(void)name;
	if (!hash || nnodes < 1 || rank < 0 || rank >= nranks || !logfn)
		wrong("v4 init: hash %llx, %d nodes, rank %d of %d", (unsigned long long)hash,
		      nnodes, rank, nranks);
	return init_any(ctx, mask, 4);
}

static ncclProfResult_t init_new(void **ctx, uint64_t hash, int *mask, int nnodes, int nranks,
				 int rank, ncclDebugLogger_t logfn, int version)
{
	if (!hash || nnodes < 1 || rank < 0 || rank >= nranks || !logfn)
		wrong("v%d init: hash %llx, %d nodes, rank %d of %d", version,
		      (unsigned long long)hash, nnodes, rank, nranks);
	return init_any(ctx, mask, version);
}

#define INIT_NEW(n)                                                                                \
	static ncclProfResult_t init_v##n(void **ctx, uint64_t hash, int *mask, const char *name,  \
					  int nnodes, int nranks, int rank,                        \
					  ncclDebugLogger_t logfn)                                 \
	{                                                                                          \
		(void)name;                                                                        \
		return init_new(ctx, hash, mask, nnodes, nranks, rank, logfn, n);                  \
	}
INIT_NEW(5)
INIT_NEW(6)
INIT_NEW(7)

static ncclProfResult_t finalize(void *ctx)
{
	(void)ctx;
	__atomic_add_fetch(&finals, 1, __ATOMIC_RELAXED);
	return ncclSuccess;
}

EXPORT ncclProfiler_v1_t ncclProfiler_v1 = {"log", init_v1, start_v1, stop, state_v1, finalize};
EXPORT ncclProfiler_v1_t ncclProfiler_v2 = {"log", init_v2, start_v2, stop, state_v1, finalize};
EXPORT ncclProfiler_v1_t ncclProfiler_v3 = {"log", init_v3, start_v3, stop, state_v1, finalize};
EXPORT ncclProfiler_v4_t ncclProfiler_v4 = {"log", init_v4, start_v4, stop, state_v4, finalize};
EXPORT ncclProfiler_v5_t ncclProfiler_v5 = {"log", init_v5, start_v5, stop, state_v4, finalize};
EXPORT ncclProfiler_v5_t ncclProfiler_v6 = {"log", init_v6, start_v5, stop, state_v4, finalize};
EXPORT ncclProfiler_v5_t ncclProfiler_v7 = {"log", init_v7, start_v7, stop, state_v4, finalize};

/* ---- the line ---- */

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("LOGPLUGIN_OUT");
	char line[4096];
	long open_ = 0;
	int n, i, fd;

	if (!path || !inits)
		return;
	n = snprintf(line, sizeof(line), "pid=%d api=%d init=%ld final=%ld", (int)getpid(), api,
		     inits, finals);
	for (i = 0; i < MAX_TYPES; i++) {
		n += snprintf(line + n, sizeof(line) - n, " %s=%ld", type_names[i], starts[i]);
		open_ += starts[i] - stops[i];
	}
	for (i = 0; i < 32; i++)
		n += snprintf(line + n, sizeof(line) - n, " s%d=%ld", i, states[i]);
	n += snprintf(line + n, sizeof(line) - n,
		      " bytes=%llu open=%ld late=%ld repeats=%ld foreign=%ld bad=%ld\n",
		      trans_bytes, open_, late, repeats, foreign, bad);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd >= 0) {
		if (write(fd, line, n) != n)
			fprintf(stderr, "logplugin: Failed to write '%s'\n", path);
		close(fd);
	}
	free(events);
}
