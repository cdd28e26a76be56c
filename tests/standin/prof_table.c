// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds and loads the plugin by NCCL's rules (src/plugin/plugin_open.cc, profiler.cc) and brings
 * events into the layout of the version in use. STANDIN_PROFILER_API=N is an NCCL that knows v1 to
 * vN; a plugin that is older than that goes through what NCCL's shims do.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "calls.h"
#include "prof_table.h"

#define NAME_LEN 255
#define CE_BITS	 (ncclProfileCeColl | ncclProfileCeSync | ncclProfileCeBatch)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int refs;
static void *lib;
enum { LOAD_FAILED = -1, LOAD_READY, LOAD_OK };
static _Atomic int status;
static pid_t load_pid;

static int api_used;	      /* version of the table found */
static void *table_;	      /* NULL: no plugin */
static ncclProfiler_v1_t *v1; /* v1 to v3 */
static ncclProfiler_v4_t *v4;
static ncclProfiler_v5_t *v5; /* v5 to v7 */

/* One word per copy of NCCL in the process, shared by its communicators; the plugin writes it. */
static int event_mask;

/* Faults of stops: they hold for the process. */
static long nostop_every, double_stop, state_after_stop, nostop_all, silent_ops;
static _Atomic long stops;

int prof_native(void)
{
	return settings()->native_api;
}

int prof_api(void)
{
	return api_used;
}

bool prof_loaded(void)
{
	return __atomic_load_n(&table_, __ATOMIC_ACQUIRE) != NULL;
}

int prof_pid(void)
{
	return load_pid;
}

int prof_mask_read(void)
{
	return __atomic_load_n(&event_mask, __ATOMIC_RELAXED);
}

/* ---- loading ---- */

static void *try_open(const char *name)
{
	void *h;

	/* Any prefix of the word matches, in NCCL too. */
	if (!strncasecmp(name, "STATIC_PLUGIN", strlen(name)))
		name = NULL;
	h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!h)
		si_info("PROFILER/Plugin: %s", dlerror());
	return h;
}

static bool is_lib_name(const char *s)
{
	size_t len = strlen(s);

	return !strncmp(s, "lib", 3) && len >= 3 && !strcmp(s + len - 3, ".so");
}

static void *open_plugin(const char *name)
{
	char buf[NAME_LEN + 1];
	void *h;

	if (!name || !*name)
		return try_open("libnccl-profiler.so");
	snprintf(buf, NAME_LEN, "%s", name);
	h = try_open(buf);
	if (h || strchr(name, '/') || is_lib_name(name))
		return h;
	snprintf(buf, sizeof(buf), "libnccl-profiler-%.200s.so", name);
	return try_open(buf);
}

static bool find_table(void)
{
	char sym[32];
	void *t = NULL;
	int n;

	for (n = prof_native(); n >= 1 && !t; n--) {
		snprintf(sym, sizeof(sym), "ncclProfiler_v%d", n);
		t = dlsym(lib, sym);
		if (t)
			api_used = n;
	}
	v1 = t && api_used <= 3 ? t : NULL;
	v4 = t && api_used == 4 ? t : NULL;
	v5 = t && api_used >= 5 ? t : NULL;
	__atomic_store_n(&table_, t, __ATOMIC_RELEASE);
	if (t)
		si_info("PROFILER/Plugin: Loaded %s (v%d)", *(const char **)t, api_used);
	return t != NULL;
}

static bool plugin_open(void)
{
	const char *name = getenv("NCCL_PROFILER_PLUGIN");

	if (name && !strcasecmp(name, "none"))
		return false;
	lib = open_plugin(name);
	if (!lib)
		return false;
	if (find_table())
		return true;
	si_info("External profiler plugin %s is unsupported", name ? name : "libnccl-profiler.so");
	dlclose(lib);
	lib = NULL;
	return false;
}

/* A failure is remembered for the life of the process. */
static void plugin_load(void)
{
	if (status == LOAD_FAILED)
		return;
	pthread_mutex_lock(&lock);
	if (status == LOAD_OK) {
		refs++;
	} else if (plugin_open()) {
		refs++;
		status = LOAD_OK;
		load_pid = getpid();
	} else {
		status = LOAD_FAILED;
	}
	pthread_mutex_unlock(&lock);
}

static void plugin_unload(void)
{
	pthread_mutex_lock(&lock);
	if (!--refs) {
		__atomic_store_n(&table_, NULL, __ATOMIC_RELEASE);
		if (lib)
			dlclose(lib);
		lib = NULL;
		status = LOAD_READY;
	}
	pthread_mutex_unlock(&lock);
}

static void load_stop_faults(int rank)
{
	long v;

	if (fault_get("no-stop", rank, "every", 1, &v)) {
		nostop_every = v;
		fault_get("no-stop", rank, "all", 0, &nostop_all);
	}
	if (fault_get("silent-ops", rank, "n", 1, &v))
		silent_ops = v;
	if (fault_get("double-stop", rank, "n", 1, &v))
		double_stop = v;
	if (fault_get("state-after-stop", rank, "n", 1, &v))
		state_after_stop = v;
}

static int init_of_version(struct ncclComm *c)
{
	if (v5)
		return v5->init(&c->prof_ctx, c->hash, &event_mask, c->name, c->nnodes, c->nranks,
				c->rank, (ncclDebugLogger_t)si_log);
	if (v4)
		return v4->init(&c->prof_ctx, &event_mask, c->name, c->hash, c->nnodes, c->nranks,
				c->rank, (ncclDebugLogger_t)si_log);
	return v1->init(&c->prof_ctx, &event_mask);
}

static int call_init(struct ncclComm *c)
{
	int err;

	calls_begin(CALL_INIT);
	err = init_of_version(c);
	calls_end(CALL_INIT);
	return err;
}

int prof_init(struct ncclComm *c)
{
	int err;

	plugin_load();
	c->prof_loaded = prof_loaded();
	if (!c->prof_loaded)
		return 0;
	load_stop_faults(c->rank);
	calls_open();
	err = call_init(c);
	/* The v5 shim of NCCL 2.29 and later takes the copy-engine bits away, once, here. */
	if (api_used == 5 && prof_native() >= 6)
		__atomic_fetch_and(&event_mask, ~CE_BITS, __ATOMIC_RELAXED);
	if (err)
		si_info("Profiler init failed with error '%d'. Continue without profiler.", err);
	return 0;
}

static void call_finalize(void *ctx)
{
	calls_begin(CALL_FINALIZE);
	if (v5)
		v5->finalize(ctx);
	else if (v4)
		v4->finalize(ctx);
	else
		v1->finalize(ctx);
	calls_end(CALL_FINALIZE);
}

/* NCCL drops its reference also when nothing was loaded: the count of a failed load goes below 0. */
void prof_finalize(struct ncclComm *c)
{
	if (!c->prof_loaded)
		return;
	if (prof_loaded() && c->prof_ctx)
		call_finalize(c->prof_ctx);
	c->prof_loaded = false;
	plugin_unload();
}

/* ---- start ---- */

/* A shim of a newer NCCL gives v1 to v3 no communicator: its name and hash moved to init. */
static bool through_shim(void)
{
	return prof_native() >= 4 && api_used <= 3;
}

static void to_v1(ncclProfilerEventDescr_v1_t *o, const ncclProfilerEventDescr_v7_t *d,
		  const struct prof_extra *x)
{
	if (d->type == ncclProfileColl) {
		o->coll.name = through_shim() ? NULL : x->name;
		o->coll.commHash = through_shim() ? 0 : x->hash;
		o->coll.seqNumber = d->coll.seqNumber;
		o->coll.func = x->func;
		o->coll.sendBuff = d->coll.sendBuff;
		o->coll.recvBuff = d->coll.recvBuff;
		o->coll.count = d->coll.count;
		o->coll.root = d->coll.root;
		o->coll.datatype = x->type;
		o->coll.op = through_shim() ? 0 : x->op;
		o->coll.trafficBytes = through_shim() ? 0 : x->traffic;
		o->coll.nMaxChannels = d->coll.nChannels;
		o->coll.nWarps = d->coll.nWarps;
		o->coll.algo = NCCL_ALGO_RING;
		o->coll.proto = NCCL_PROTO_SIMPLE;
	} else if (d->type == ncclProfileP2p) {
		o->p2p.name = through_shim() ? NULL : x->name;
		o->p2p.commHash = through_shim() ? 0 : x->hash;
		o->p2p.func = x->func;
		o->p2p.buff = d->p2p.buff;
		o->p2p.datatype = x->type;
		o->p2p.count = d->p2p.count;
		o->p2p.peer = d->p2p.peer;
	}
}

static void to_v2(ncclProfilerEventDescr_v2_t *o, const ncclProfilerEventDescr_v7_t *d,
		  const struct prof_extra *x)
{
	if (d->type == ncclProfileColl) {
		o->coll.name = through_shim() ? NULL : x->name;
		o->coll.commHash = through_shim() ? 0 : x->hash;
		o->coll.seqNumber = d->coll.seqNumber;
		o->coll.func = d->coll.func;
		o->coll.sendBuff = d->coll.sendBuff;
		o->coll.recvBuff = d->coll.recvBuff;
		o->coll.count = d->coll.count;
		o->coll.root = d->coll.root;
		o->coll.datatype = d->coll.datatype;
		o->coll.trafficBytes = through_shim() ? 0 : x->traffic;
		o->coll.nMaxChannels = d->coll.nChannels;
		o->coll.nWarps = d->coll.nWarps;
		o->coll.algo = d->coll.algo;
		o->coll.proto = d->coll.proto;
	} else if (d->type == ncclProfileP2p) {
		o->p2p.name = through_shim() ? NULL : x->name;
		o->p2p.commHash = through_shim() ? 0 : x->hash;
		o->p2p.func = d->p2p.func;
		o->p2p.buff = d->p2p.buff;
		o->p2p.datatype = d->p2p.datatype;
		o->p2p.count = d->p2p.count;
		o->p2p.peer = d->p2p.peer;
	}
}

static void to_v3(ncclProfilerEventDescr_v3_t *o, const ncclProfilerEventDescr_v7_t *d,
		  const struct prof_extra *x)
{
	if (d->type == ncclProfileColl) {
		o->coll.name = through_shim() ? NULL : x->name;
		o->coll.commHash = through_shim() ? 0 : x->hash;
		o->coll.seqNumber = d->coll.seqNumber;
		o->coll.func = d->coll.func;
		o->coll.sendBuff = d->coll.sendBuff;
		o->coll.recvBuff = d->coll.recvBuff;
		o->coll.count = d->coll.count;
		o->coll.root = d->coll.root;
		o->coll.datatype = d->coll.datatype;
		o->coll.nMaxChannels = d->coll.nChannels;
		o->coll.nWarps = d->coll.nWarps;
		o->coll.algo = d->coll.algo;
		o->coll.proto = d->coll.proto;
	} else if (d->type == ncclProfileP2p) {
		o->p2p.name = through_shim() ? NULL : x->name;
		o->p2p.commHash = through_shim() ? 0 : x->hash;
		o->p2p.func = d->p2p.func;
		o->p2p.buff = d->p2p.buff;
		o->p2p.datatype = d->p2p.datatype;
		o->p2p.count = d->p2p.count;
		o->p2p.peer = d->p2p.peer;
	} else if (d->type == ncclProfileKernelCh) {
		o->kernelCh.channelId = d->kernelCh.channelId;
	} else if (d->type == ncclProfileNetPlugin) {
		o->netPlugin = d->netPlugin;
	}
}

/* The v4 shim of 2.28 does not copy p2p.nChannels (it leaves stack bytes; here 0xa5). */
static void to_v4(ncclProfilerEventDescr_v4_t *o, const ncclProfilerEventDescr_v7_t *d)
{
	switch (d->type) {
	case ncclProfileColl:
		o->coll.seqNumber = d->coll.seqNumber;
		o->coll.func = d->coll.func;
		o->coll.sendBuff = d->coll.sendBuff;
		o->coll.recvBuff = d->coll.recvBuff;
		o->coll.count = d->coll.count;
		o->coll.root = d->coll.root;
		o->coll.datatype = d->coll.datatype;
		o->coll.nChannels = d->coll.nChannels;
		o->coll.nWarps = d->coll.nWarps;
		o->coll.algo = d->coll.algo;
		o->coll.proto = d->coll.proto;
		break;
	case ncclProfileP2p:
		o->p2p.func = d->p2p.func;
		o->p2p.buff = d->p2p.buff;
		o->p2p.datatype = d->p2p.datatype;
		o->p2p.count = d->p2p.count;
		o->p2p.peer = d->p2p.peer;
		o->p2p.nChannels = prof_native() == 4 ? d->p2p.nChannels : 0xa5;
		break;
	case ncclProfileKernelCh:
		o->kernelCh = d->kernelCh;
		break;
	case ncclProfileNetPlugin:
		o->netPlugin = d->netPlugin;
		break;
	}
}

/* v5 and v6 are the first 112 bytes of v7. A plugin gets memory that ends there. */
static void start_v5(void *ctx, void **handle, const ncclProfilerEventDescr_v7_t *d)
{
	char buf[NCCL_PROFILER_DESCR_V6_SIZE] __attribute__((aligned(8)));
	ncclProfilerEventDescr_v7_t v7 = *d;

	if (api_used == 7) {
		v5->startEvent(ctx, handle, &v7);
		return;
	}
	memcpy(buf, &v7, sizeof(buf));
	/* userTag of the API events lies inside: those bytes are padding before v7. */
	if (d->type == ncclProfileCollApi)
		memset(buf + offsetof(ncclProfilerEventDescr_v7_t, collApi.userTag), 0, 8);
	else if (d->type == ncclProfileP2pApi)
		memset(buf + offsetof(ncclProfilerEventDescr_v7_t, p2pApi.userTag), 0, 8);
	else if (d->type == ncclProfileP2p)
		memset(buf + offsetof(ncclProfilerEventDescr_v7_t, p2p.userTag), 0, 8);
	v5->startEvent(ctx, handle, buf);
}

#define START_OLD(tab, n, ...)                                                                     \
	do {                                                                                       \
		ncclProfilerEventDescr_v##n##_t o_ = {                                             \
			.type = d->type, .parentObj = parent, .rank = d->rank};                    \
		if (d->type == ncclProfileProxyOp)                                                 \
			o_.proxyOp = d->proxyOp;                                                   \
		else if (d->type == ncclProfileProxyStep)                                          \
			o_.proxyStep = d->proxyStep;                                               \
		else                                                                               \
			to_v##n(&o_, d, ##__VA_ARGS__);                                            \
		(tab)->startEvent(ctx, handle, &o_);                                               \
	} while (0)

/* The types that a version does not know are dropped without writing the handle (v4, v5, v6
 * shims), or after clearing it (v1 to v3 shims). */
static bool known(uint64_t type)
{
	static const uint64_t max[] = {0, 0x20, 0x20, 0x80, 0x80, 0x800, 0x4000, 0x8000};

	return type <= max[api_used];
}

static void call_start(void *ctx, void **handle, ncclProfilerEventDescr_v7_t *d,
		       const struct prof_extra *x)
{
	void *parent = d->parentObj;

	if (v5) {
		start_v5(ctx, handle, d);
		return;
	}
	/* Before v5 the parent of Coll and P2p is the Group. */
	if (d->type == ncclProfileColl)
		parent = d->coll.parentGroup;
	else if (d->type == ncclProfileP2p)
		parent = d->p2p.parentGroup;
	if (api_used == 4)
		START_OLD(v4, 4);
	else if (api_used == 3)
		START_OLD(v1, 3, x);
	else if (api_used == 2)
		START_OLD(v1, 2, x);
	else
		START_OLD(v1, 1, x);
}

void prof_start(void *ctx, void **handle, ncclProfilerEventDescr_v7_t *d,
		const struct prof_extra *x)
{
	int kind = CALL_START + __builtin_ctzll(d->type);

	if (api_used <= 3 && prof_native() >= 4)
		*handle = NULL;
	if (!known(d->type))
		return;
	calls_begin(kind);
	call_start(ctx, handle, d, x);
	calls_end(kind);
}

/* ---- states and stops ---- */

static void call_state_v1(void *handle, int state, ncclProfilerEventStateArgs_v1_t *args)
{
	calls_begin(CALL_STATE + state);
	v1->recordEventState(handle, state, args);
	calls_end(CALL_STATE + state);
}

static void call_state(void *handle, int state, ncclProfilerEventStateArgs_v4_t *args)
{
	calls_begin(CALL_STATE + state);
	if (v4)
		v4->recordEventState(handle, state, args);
	else if (v5)
		v5->recordEventState(handle, state, args);
	calls_end(CALL_STATE + state);
}

/* v1 to v3 know states 0 to 18, and pass the step states no arguments that mean something. */
static void record_v1(void *handle, int state, const ncclProfilerEventStateArgs_v4_t *args)
{
	ncclProfilerEventStateArgs_v1_t a = {0};

	if (state > ncclProfilerProxyCtrlAppendEnd)
		return;
	if (state >= ncclProfilerProxyCtrlIdle && args)
		a.proxyCtrl.appendedProxyOps = args->proxyCtrl.appendedProxyOps;
	/* NCCL 2.23 and 2.24 pass NULL with step states. */
	call_state_v1(handle, state,
		      state < ncclProfilerProxyCtrlIdle && !through_shim() ? NULL : &a);
}

void prof_record(void *handle, int state, ncclProfilerEventStateArgs_v4_t *args)
{
	ncclProfilerEventStateArgs_v4_t copy = {0};

	if (v1) {
		record_v1(handle, state, args);
		return;
	}
	if (args)
		copy = *args;
	if (v4 && state > ncclProfilerKernelChStop)
		return;
	call_state(handle, state, args ? &copy : NULL);
}

void prof_record_old(void *handle, int state, size_t trans_size, int steps)
{
	ncclProfilerEventStateArgs_v1_t a = {.proxyOp = {trans_size, steps}};

	if (v1)
		call_state_v1(handle, state, &a);
}

static void call_stop(void *handle)
{
	int kind = handle ? CALL_STOP : CALL_STOP_NULL;

	calls_begin(kind);
	if (v5)
		v5->stopEvent(handle);
	else if (v4)
		v4->stopEvent(handle);
	else if (v1)
		v1->stopEvent(handle);
	calls_end(kind);
}

bool prof_ops_are_silent(void)
{
	return silent_ops;
}

static bool drop_stop(void)
{
	return nostop_every && (atomic_fetch_add(&stops, 1) + 1) % nostop_every == 0;
}

void prof_stop(void *handle)
{
	if (nostop_all && drop_stop())
		return;
	call_stop(handle);
}

void prof_stop_step(void *handle)
{
	ncclProfilerEventStateArgs_v4_t a = {0};

	if (nostop_every && drop_stop())
		return;
	call_stop(handle);
	if (double_stop)
		call_stop(handle);
	if (state_after_stop)
		prof_record(handle, ncclProfilerProxyStepRecvGPUWait, &a);
}
