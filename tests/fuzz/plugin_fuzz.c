// SPDX-License-Identifier: BSD-2-Clause
/*
 * NCCL's callbacks in any order, from many threads, over all seven tables, with anything as a handle.
 * The plugin's objects are linked in, its semaphores are set here, and its flush probe is wrapped: what
 * a tracer would get is read, record by record, at every flush.
 *
 * Usage: plugin_fuzz [-n CALLS] [-t THREADS] [-s SEED]
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "descr.h"
#include "plugin.h"

#define SHARED	      1024 /* handles that threads pass to each other */
#define CONTEXTS      256
#define MASKS	      12 /* more libnccl than one process ever has */
#define SEEN_BITS     30
#define MAX_THREADS   16
#define SLICE_MAX     30000 /* calls before a thread ends, with whatever it had open */
#define CHILD_CALLS   3000
#define CHILD_SECONDS 60 /* one that waits for a lock of its parent's threads waits for ever */
#define FORK_EVERY    200000
#define NSTREAM	      8192
#define CHUNK_OF(tb)  ((tb)->h.pos + (tb)->h.len)

extern const ncclProfiler_v1_t ncclProfiler_v1, ncclProfiler_v2, ncclProfiler_v3;
extern const ncclProfiler_v4_t ncclProfiler_v4;
extern const ncclProfiler_v5_t ncclProfiler_v5, ncclProfiler_v6, ncclProfiler_v7;

enum phase { PHASE_ON, PHASE_CHAOS, PHASE_OFF };

static enum phase phase;
static uint64_t shared[SHARED], contexts[CONTEXTS];
static int masks[MASKS];
static uint64_t *seen;	/* a bit per counter of an id */
static uint16_t my_tag; /* 0: not known yet, in a new child */
static uint64_t left;	/* calls of this phase still to make */
static uint64_t nr_calls, nr_starts, nr_folded, nr_inits, nr_flushed, nr_records, nr_forks;
static uint64_t nr_probe_start, nr_probe_state, nr_probe_stop;
static uint64_t seed = 1;
/* exec'ed by one of us: says nothing, and makes no process, which might do the same. */
static bool quiet;
static bool in_child;
/* The sanitizers' own locks do not survive a fork amid other threads: there, threads pause for it. */
static pthread_rwlock_t fork_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define FAIL(fmt, ...)                                                                             \
	do {                                                                                       \
		fprintf(stderr, "%s:%d: " fmt " (seed %llu)\n", __func__, __LINE__, ##__VA_ARGS__, \
			(unsigned long long)seed);                                                 \
		abort();                                                                           \
	} while (0)
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			FAIL("not so: %s", #cond);                                                 \
	} while (0)

static void count(uint64_t *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

/* ---- Sanitizers -------------------------------------------------------------------------------- */

/* The C library keeps dlsym()'s last error for each thread: a leak where a child exits. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* A child is told of threads that its parent has yet to join: it has none of them. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_thread_leaks=0";
}

/* ---- Ids --------------------------------------------------------------------------------------- */

static void id_check(uint64_t id, uint32_t what)
{
	uint64_t counter = id & ((1ULL << SCOPE_ID_COUNTER_BITS) - 1), bit = 1ULL << (counter % 64);
	uint16_t tag = __atomic_load_n(&my_tag, __ATOMIC_RELAXED);

	if (!id || SCOPE_ID_TAG(id) != tag)
		FAIL("id %#llx without the tag %#x", (unsigned long long)id, tag);
	if (SCOPE_ID_WHAT(id) != what)
		FAIL("id %#llx is not of type %u", (unsigned long long)id, what);
	CHECK(counter && counter >> SEEN_BITS == 0);
	if (__atomic_fetch_or(&seen[counter / 64], bit, __ATOMIC_RELAXED) & bit)
		FAIL("id %#llx was given twice", (unsigned long long)id);
}

/* ---- What a tracer sees ------------------------------------------------------------------------ */

static struct stream {
	uint64_t tbuf, pos, rec_pos;
} streams[NSTREAM];
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;

/* One writer per stream: only the look-up is shared. */
static struct stream *stream_of(const struct tbuf *tb)
{
	uint32_t i;

	pthread_mutex_lock(&streams_lock);
	for (i = 0; streams[i].tbuf && streams[i].tbuf != (uintptr_t)tb; i++)
		CHECK(i + 1 < NSTREAM);
	streams[i].tbuf = (uintptr_t)tb;
	pthread_mutex_unlock(&streams_lock);
	return &streams[i];
}

static const uint16_t start_sizes[SCOPE_NTYPES] = {
	[SCOPE_GROUP] = 40,	  [SCOPE_COLL] = 112,	   [SCOPE_P2P] = 88,
	[SCOPE_PROXY_OP] = 64,	  [SCOPE_PROXY_STEP] = 40, [SCOPE_PROXY_CTRL] = 40,
	[SCOPE_KERNEL_CH] = 48,	  [SCOPE_NET_PLUGIN] = 88, [SCOPE_GROUP_API] = 40,
	[SCOPE_COLL_API] = 72,	  [SCOPE_P2P_API] = 72,	   [SCOPE_KERNEL_LAUNCH] = 48,
	[SCOPE_CE_COLL] = 120,	  [SCOPE_CE_SYNC] = 40,	   [SCOPE_CE_BATCH] = 48,
	[SCOPE_KERNEL_PHASE] = 56};

static void start_check(const struct scope_rec_hdr *r)
{
	uint16_t tag = __atomic_load_n(&my_tag, __ATOMIC_RELAXED);
	uint32_t what = SCOPE_ID_WHAT(r->id);

	CHECK(!tag || SCOPE_ID_TAG(r->id) == tag);
	CHECK(what < SCOPE_NTYPES);
	CHECK(r->size == start_sizes[what]);
}

static void step_check(const struct scope_rec_step *r)
{
	CHECK(r->s.h.size == sizeof(*r) && r->s.h.u8 <= SCOPE_STEP_RECV);
	CHECK(SCOPE_ID_WHAT(r->s.h.id) == SCOPE_PROXY_STEP);
	CHECK(r->s.h.u8 || !(r->ticks[0] | r->ticks[1] | r->ticks[2]));
}

static uint32_t parts(const struct scope_rec_hdr *r)
{
	const uint32_t *ticks = ((const struct scope_rec_step *)r)->ticks;

	return r->kind != SCOPE_REC_STEP ? 0 : !!ticks[0] + !!ticks[1] + !!ticks[2] + !!ticks[3];
}

static void record_check(const struct scope_rec_hdr *r)
{
	switch (r->kind) {
	case SCOPE_REC_START:
		start_check(r);
		return;
	case SCOPE_REC_STEP:
		step_check((const struct scope_rec_step *)r);
		return;
	case SCOPE_REC_STATE:
		CHECK(r->size == sizeof(*r) || r->size == sizeof(struct scope_rec_state));
		return;
	case SCOPE_REC_STOP:
	case SCOPE_REC_FINALIZE:
		CHECK(r->size == sizeof(*r));
		return;
	case SCOPE_REC_STATE_REPEAT:
	case SCOPE_REC_START_REPEAT:
		CHECK(r->size == sizeof(*r) && r->u32);
		/* states of operations, too: before v4 NCCL polls in one of these */
		CHECK(SCOPE_ID_WHAT(r->id) == SCOPE_PROXY_STEP ||
		      (r->kind == SCOPE_REC_STATE_REPEAT &&
		       SCOPE_ID_WHAT(r->id) == SCOPE_PROXY_OP));
		return;
	case SCOPE_REC_STRING:
		CHECK(r->u32 > 0 && r->u32 < SCOPE_STRINGS && r->u8 <= SCOPE_STRING_MAX);
		CHECK(r->size == sizeof(*r) + ((r->u8 + 7) & ~7));
		return;
	case SCOPE_REC_COMM:
		CHECK(r->size == sizeof(struct scope_rec_comm));
		CHECK(((const struct scope_rec_comm *)r)->comm.ctx == r->id);
		return;
	case SCOPE_REC_COMM_NAME:
		CHECK(r->size == sizeof(struct scope_rec_comm_name));
		return;
	default:
		FAIL("record of kind %u", r->kind);
	}
}

/* The whole buffer parses, and its header agrees with what is in it. */
static void buffer_check(const struct tbuf *tb)
{
	const struct scope_rec_hdr *r;
	uint32_t off, n = 0;

	CHECK(tb->h.magic == SCOPE_TBUF_MAGIC);
	CHECK(tb->h.len <= SCOPE_TBUF_DATA_SIZE);
	for (off = 0; off < tb->h.len; off += r->size) {
		r = (const struct scope_rec_hdr *)(tb->data + off);
		CHECK(r->size >= sizeof(*r) && r->size % 8 == 0 && r->size <= tb->h.len - off);
		record_check(r);
		n += parts(r) + (r->kind != SCOPE_REC_STRING); /* those are told again, not lost */
	}
	CHECK(off == tb->h.len);
	CHECK(n == tb->h.rec_cnt);
}

void __real_probe_flush(void *tb, uint64_t reason);
void __wrap_probe_flush(void *tb, uint64_t reason);

void __wrap_probe_flush(void *p, uint64_t reason)
{
	const struct tbuf *tb = p;
	struct stream *st = stream_of(tb);

	__real_probe_flush(p, reason);
	buffer_check(tb);
	CHECK(reason <= SCOPE_FLUSH_EPOCH);
	CHECK(__atomic_load_n(&tb->h.tid, __ATOMIC_RELAXED) == (uint32_t)syscall(SYS_gettid));
	CHECK(tb->h.pos >= st->pos && tb->h.rec_pos >= st->rec_pos);
	/* With somebody listening all the time nothing is missed. */
	if (__atomic_load_n(&phase, __ATOMIC_RELAXED) == PHASE_ON && !in_child)
		CHECK(tb->h.pos == st->pos && tb->h.rec_pos == st->rec_pos);
	st->pos = CHUNK_OF(tb);
	st->rec_pos = tb->h.rec_pos + tb->h.rec_cnt;
	count(&nr_flushed);
	__atomic_fetch_add(&nr_records, tb->h.rec_cnt, __ATOMIC_RELAXED);
}

void __real_probe_start(uint64_t id, uint64_t type, const void *rec);
void __wrap_probe_start(uint64_t id, uint64_t type, const void *rec);
void __real_probe_state(uint64_t id, uint64_t state, uint64_t arg);
void __wrap_probe_state(uint64_t id, uint64_t state, uint64_t arg);
void __real_probe_stop(uint64_t id);
void __wrap_probe_stop(uint64_t id);

void __wrap_probe_start(uint64_t id, uint64_t type, const void *rec)
{
	const struct scope_rec_start *s = rec;

	__real_probe_start(id, type, rec);
	CHECK(type == 1ULL << SCOPE_ID_WHAT(id));
	CHECK(rec || type == ncclProfileProxyStep); /* NULL: a start that was folded */
	if (rec) {
		CHECK(s->h.id == id && s->h.kind == SCOPE_REC_START);
		start_check(&s->h);
	}
	count(&nr_probe_start);
}

void __wrap_probe_state(uint64_t id, uint64_t state, uint64_t arg)
{
	__real_probe_state(id, state, arg);
	CHECK(id);
	count(&nr_probe_state);
}

void __wrap_probe_stop(uint64_t id)
{
	__real_probe_stop(id);
	CHECK(id);
	count(&nr_probe_stop);
}

/* ---- Callbacks --------------------------------------------------------------------------------- */

struct fuzzer {
	struct rng r;
	uint64_t live[32]; /* handles of this thread, some of them stopped */
	union any_descr step;
	void *step_handle;
	int step_api;
};

static ncclProfResult_t call_start(int api, void *ctx, void **handle, void *d)
{
	switch (api) {
	case 1:
		return ncclProfiler_v1.startEvent(ctx, handle, d);
	case 2:
		return ncclProfiler_v2.startEvent(ctx, handle, d);
	case 3:
		return ncclProfiler_v3.startEvent(ctx, handle, d);
	case 4:
		return ncclProfiler_v4.startEvent(ctx, handle, d);
	case 5:
		return ncclProfiler_v5.startEvent(ctx, handle, d);
	case 6:
		return ncclProfiler_v6.startEvent(ctx, handle, d);
	default:
		return ncclProfiler_v7.startEvent(ctx, handle, d);
	}
}

static const ncclProfiler_v1_t *old_table(int api)
{
	return api == 1 ? &ncclProfiler_v1 : api == 2 ? &ncclProfiler_v2 : &ncclProfiler_v3;
}

static const ncclProfiler_v5_t *new_table(int api)
{
	return api == 5 ? &ncclProfiler_v5 : api == 6 ? &ncclProfiler_v6 : &ncclProfiler_v7;
}

static int any_api(struct rng *r)
{
	return 1 + (int)rnd_below(r, 7);
}

/* A handle or context of ours, of another thread, of another process, NULL, or noise. */
static uint64_t any_handle(struct fuzzer *f)
{
	switch (rnd_below(&f->r, 16)) {
	case 0:
		return 0;
	case 1:
		return rnd(&f->r);
	case 2:
		return (rnd(&f->r) & 0xffffffffffffULL) | (uint64_t)my_tag << SCOPE_ID_TAG_SHIFT;
	case 3:
	case 4:
		return __atomic_load_n(&shared[rnd_below(&f->r, SHARED)], __ATOMIC_RELAXED);
	case 5:
		return __atomic_load_n(&contexts[rnd_below(&f->r, CONTEXTS)], __ATOMIC_RELAXED);
	default:
		return f->live[rnd_below(&f->r, 32)];
	}
}

static uint64_t any_type(struct fuzzer *f, int api)
{
	switch (rnd_below(&f->r, 16)) {
	case 0:
		return rnd(&f->r) & 0x1ffff;
	case 1:
		return rnd_below(&f->r, 2) ? 0 : rnd(&f->r);
	case 2:
		return 1ULL << rnd_below(&f->r, 64);
	default:
		return 1ULL << rnd_below(&f->r, descr_types(api));
	}
}

static void keep_handle(struct fuzzer *f, uint64_t id)
{
	if (rnd_below(&f->r, 8))
		f->live[rnd_below(&f->r, 32)] = id;
	else
		__atomic_store_n(&shared[rnd_below(&f->r, SHARED)], id, __ATOMIC_RELAXED);
}

static void do_start(struct fuzzer *f)
{
	int api = any_api(&f->r);
	uint64_t type = any_type(f, api);
	void *was = (void *)(uintptr_t)(rnd_below(&f->r, 3) ? 0 : any_handle(f)), *handle = was;
	void *ctx = (void *)(uintptr_t)any_handle(f);
	union any_descr d;

	if (api < 5)
		type &= 0xff;
	descr_random(&f->r, api, &d, type, any_handle(f));
	if (rnd_below(&f->r, 1000) == 0) {
		CHECK(call_start(api, ctx, NULL, &d) == ncclSuccess);
		return;
	}
	if (rnd_below(&f->r, 1000) == 0) {
		CHECK(call_start(api, ctx, &handle, NULL) == ncclSuccess);
		id_check((uintptr_t)handle, 31);
		return;
	}
	CHECK(call_start(api, ctx, &handle, &d) == ncclSuccess);
	id_check((uintptr_t)handle, descr_what(api, type));
	count(&nr_starts);
	keep_handle(f, (uintptr_t)handle);
	if (type == ncclProfileProxyStep) {
		f->step = d;
		f->step_api = api;
		f->step_handle = handle;
	}
}

/* NCCL starts one receive step again and again until its data is there. */
static void do_repeat(struct fuzzer *f)
{
	void *was = f->step_handle;

	if (!was)
		return;
	CHECK(call_start(f->step_api, NULL, &f->step_handle, &f->step) == ncclSuccess);
	if (f->step_handle == was)
		count(&nr_folded);
	else
		id_check((uintptr_t)f->step_handle, SCOPE_PROXY_STEP);
}

static void do_stop(struct fuzzer *f)
{
	void *handle = (void *)(uintptr_t)any_handle(f);
	int api = any_api(&f->r);
	ncclProfResult_t ret;

	if (rnd_below(&f->r, 4) == 0)
		handle = f->step_handle;
	if (api < 4)
		ret = old_table(api)->stopEvent(handle);
	else if (api == 4)
		ret = ncclProfiler_v4.stopEvent(handle);
	else
		ret = new_table(api)->stopEvent(handle);
	CHECK(ret == ncclSuccess);
}

static void do_state(struct fuzzer *f)
{
	uint64_t handle = rnd_below(&f->r, 3) ? any_handle(f) : (uintptr_t)f->step_handle;
	uint32_t state = rnd_below(&f->r, 20) ? rnd_below(&f->r, 34) : (uint32_t)rnd(&f->r);
	ncclProfilerEventStateArgs_v1_t v1 = {.proxyOp = {rnd_below(&f->r, 3), 7}};
	ncclProfilerEventStateArgs_v4_t v4 = {.proxyStep = {rnd_below(&f->r, 3)}};
	bool with = rnd_below(&f->r, 4);
	int api = any_api(&f->r);
	void *h = (void *)(uintptr_t)handle;
	ncclProfilerEventState_t s = (ncclProfilerEventState_t)state;
	ncclProfResult_t ret;

	if (api < 4)
		ret = old_table(api)->recordEventState(h, s, with ? &v1 : NULL);
	else if (api == 4)
		ret = ncclProfiler_v4.recordEventState(h, s, with ? &v4 : NULL);
	else
		ret = new_table(api)->recordEventState(h, s, with ? &v4 : NULL);
	CHECK(ret == ncclSuccess);
}

static void quiet_log(int level, unsigned long flags, const char *file, int line, const char *fmt,
		      ...)
{
	CHECK(flags == NCCL_PROFILE && file && line > 0 && fmt);
	CHECK(level == NCCL_LOG_WARN || level == NCCL_LOG_INFO);
}

static void do_init(struct fuzzer *f)
{
	int *mask = rnd_below(&f->r, 20) ? &masks[rnd_below(&f->r, MASKS)] : NULL;
	ncclDebugLogger_t log = rnd_below(&f->r, 2) ? quiet_log : NULL;
	const char *name = descr_string(&f->r);
	int api = any_api(&f->r), rank = (int)rnd(&f->r);
	uint64_t hash = rnd(&f->r), old;
	void *ctx = NULL, **out = rnd_below(&f->r, 50) ? &ctx : NULL;
	ncclProfResult_t ret;

	if (api < 4)
		ret = old_table(api)->init(out, mask);
	else if (api == 4)
		ret = ncclProfiler_v4.init(out, mask, name, hash, 1, 2, rank, log);
	else
		ret = new_table(api)->init(out, hash, mask, name, 1, 2, rank, log);
	CHECK(ret == ncclSuccess);
	count(&nr_inits);
	if (mask)
		CHECK(((uint32_t)__atomic_load_n(mask, __ATOMIC_RELAXED) & ~0x7fffu) == 0);
	if (!out)
		return;
	id_check((uintptr_t)ctx, SCOPE_ID_WHAT_CTX);
	old = __atomic_exchange_n(&contexts[rnd_below(&f->r, CONTEXTS)], (uintptr_t)ctx,
				  __ATOMIC_RELAXED);
	if (rnd_below(&f->r, 8)) /* else it never comes */
		CHECK(old_table(1)->finalize((void *)(uintptr_t)old) == ncclSuccess);
}

static void do_finalize(struct fuzzer *f)
{
	void *ctx = (void *)(uintptr_t)any_handle(f);
	int i, n = rnd_below(&f->r, 4) ? 1 : 2;

	if (rnd_below(&f->r, 2))
		ctx = (void *)(uintptr_t)__atomic_load_n(&contexts[rnd_below(&f->r, CONTEXTS)],
							 __ATOMIC_RELAXED);
	for (i = 0; i < n; i++)
		CHECK(new_table(7)->finalize(ctx) == ncclSuccess);
}

static void fuzz_one(struct fuzzer *f)
{
	uint32_t which = rnd_below(&f->r, 1000);

	if (which < 330)
		do_start(f);
	else if (which < 430)
		do_repeat(f);
	else if (which < 660)
		do_stop(f);
	else if (which < 994)
		do_state(f);
	else if (which < 997)
		do_init(f);
	else
		do_finalize(f);
}

static void fuzz_calls(struct fuzzer *f, uint64_t n)
{
	while (n--) {
		fuzz_one(f);
		if (tbuf_self && rnd_below(&f->r, 256) == 0)
			buffer_check(tbuf_self);
	}
}

/* ---- Threads, phases --------------------------------------------------------------------------- */

static void *slice(void *arg)
{
	struct fuzzer f = {.r = {.s = (uintptr_t)arg}};
	uint64_t want = 1000 + rnd_below(&f.r, SLICE_MAX), have, n;

	have = __atomic_load_n(&left, __ATOMIC_RELAXED);
	do {
		n = have < want ? have : want;
	} while (!__atomic_compare_exchange_n(&left, &have, have - n, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	fuzz_calls(&f, n);
	__atomic_fetch_add(&nr_calls, n, __ATOMIC_RELAXED);
	return NULL;
}

/* Keeps one thread alive at a time; they end with events open, one after the other. */
static void *worker(void *arg)
{
	struct rng r = {.s = (uintptr_t)arg};
	pthread_t thread;

	while (__atomic_load_n(&left, __ATOMIC_RELAXED)) {
		pthread_rwlock_rdlock(&fork_lock);
		if (pthread_create(&thread, NULL, slice, (void *)(uintptr_t)(rnd(&r) | 1)))
			FAIL("pthread_create");
		pthread_join(thread, NULL);
		pthread_rwlock_unlock(&fork_lock);
	}
	return NULL;
}

/* Tracers and loaders that come and go. */
static void *chaos(void *arg)
{
	struct rng r = {.s = (uintptr_t)arg};
	union scope_sems s;
	struct scope_want *w;

	while (__atomic_load_n(&left, __ATOMIC_RELAXED)) {
		s.flush = rnd_below(&r, 4) ? 1 : 0;
		s.start = rnd_below(&r, 3) ? 0 : 1;
		s.state = rnd_below(&r, 3) ? 0 : 1;
		s.stop = rnd_below(&r, 3) ? 0 : 1;
		__atomic_store_n(&scope_sems.all, s.all, __ATOMIC_RELAXED);
		__atomic_store_n(&ncclscope_control.flush_ticks,
				 rnd(&r) >> (32 + rnd_below(&r, 32)), __ATOMIC_RELAXED);
		if (rnd_below(&r, 4) == 0)
			__atomic_fetch_add(&ncclscope_control.epoch, 1, __ATOMIC_RELEASE);
		w = &ncclscope_control.want[rnd_below(&r, SCOPE_WANT_SLOTS)];
		__atomic_store_n(&w->mask, (uint16_t)rnd(&r), __ATOMIC_RELAXED);
		__atomic_store_n(&w->owner,
				 rnd_below(&r, 8) ? rnd_below(&r, 3) : SCOPE_OWNER_MANUAL,
				 __ATOMIC_RELAXED);
		usleep(200);
	}
	return NULL;
}

static void calm(uint16_t flush)
{
	union scope_sems s = {.flush = flush};
	int i;

	__atomic_store_n(&scope_sems.all, s.all, __ATOMIC_RELAXED);
	__atomic_store_n(&ncclscope_control.flush_ticks, 25000000, __ATOMIC_RELAXED);
	for (i = 0; i < SCOPE_WANT_SLOTS; i++) {
		__atomic_store_n(&ncclscope_control.want[i].mask, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&ncclscope_control.want[i].owner, 0, __ATOMIC_RELAXED);
	}
}

/* ---- fork and exec ----------------------------------------------------------------------------- */

static void child_begin(void)
{
	in_child = true;
	alarm(CHILD_SECONDS);
	memset(streams, 0, sizeof(streams));
	pthread_mutex_init(&streams_lock, NULL); /* another thread may have held it */
}

/* A process of its own from here on: a fresh tag, no record of its parent. */
static void child_run(uint64_t child_seed, int how)
{
	struct fuzzer f = {.r = {.s = child_seed}};
	const struct scope_area *area;
	void *handle = NULL;
	union any_descr d;

	child_begin();
	memset(seen, 0, 1 << 20);
	my_tag = 0;
	calm(how % 2);
	descr_random(&f.r, 7, &d, ncclProfileGroupApi, 0);
	CHECK(ncclProfiler_v7.startEvent(NULL, &handle, &d) == ncclSuccess);
	area = area_peek();
	CHECK(area && area->pid == (uint32_t)getpid());
	CHECK(tbuf_self && tbuf_self->h.magic == SCOPE_TBUF_MAGIC);
	CHECK(tbuf_self->h.rec_pos + tbuf_self->h.rec_cnt <= 1);
	my_tag = area->tag;
	id_check((uintptr_t)handle, SCOPE_GROUP_API);
	fuzz_calls(&f, CHILD_CALLS);
	if (how < 2)
		_exit(0);
	if (how < 4)
		exit(0);
	execl("/proc/self/exe", "plugin_fuzz", "-n", "1000", "-t", "2", "-q", NULL);
	FAIL("execl: %s", strerror(errno));
}

static void fork_one(struct rng *r)
{
	uint64_t child_seed = rnd(r) | 1;
	int status, how = (int)rnd_below(r, 5);
	pid_t pid;

	fflush(stdout);
	if (SANITIZED)
		pthread_rwlock_wrlock(&fork_lock);
	pid = fork();
	if (SANITIZED && pid)
		pthread_rwlock_unlock(&fork_lock);
	if (pid < 0 && SANITIZED && errno == ENOMEM && nr_forks >= 3)
		return; /* the kernel counts TSan's shadow as if it were used */
	if (pid < 0)
		FAIL("fork: %s", strerror(errno));
	if (!pid)
		child_run(child_seed, how);
	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "child %d (%d) ended with status %#x (seed %llu)\n", pid, how,
			status, (unsigned long long)seed);
		_exit(1); /* the core, if any, is the child's */
	}
	nr_forks++;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run_phase(enum phase p, uint64_t n, int nthreads, struct rng *r)
{
	pthread_t threads[MAX_THREADS + 1];
	uint64_t at, next = n;
	int i;

	__atomic_store_n(&phase, p, __ATOMIC_RELAXED);
	calm(p != PHASE_OFF);
	__atomic_store_n(&left, n, __ATOMIC_RELAXED);
	for (i = 0; i < nthreads + (p == PHASE_CHAOS); i++)
		if (pthread_create(&threads[i], NULL, i < nthreads ? worker : chaos,
				   (void *)(uintptr_t)(rnd(r) | 1)))
			FAIL("pthread_create");
	while ((at = __atomic_load_n(&left, __ATOMIC_RELAXED))) {
		if (at <= next && !quiet) {
			fork_one(r);
			next = at > FORK_EVERY ? at - FORK_EVERY : 0;
		}
		usleep(1000);
	}
	while (i--)
		pthread_join(threads[i], NULL);
}

static void *init_loop(void *stop)
{
	void *ctx = NULL;

	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED)) {
		CHECK(!ncclProfiler_v6.init(&ctx, 1, &masks[0], "c", 1, 1, 0, NULL));
		CHECK(!ncclProfiler_v6.finalize(ctx));
	}
	return NULL;
}

/* A child makes a communicator whatever the threads of its parent, that it has not, were doing in theirs. */
static void fork_amid_inits(int nthreads)
{
	pthread_t threads[MAX_THREADS];
	void *ctx = NULL;
	bool stop = false;
	int i, status;
	pid_t pid;

	for (i = 0; i < nthreads; i++)
		CHECK(!pthread_create(&threads[i], NULL, init_loop, &stop));
	for (i = 0; i < 300; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			child_begin();
			_exit(!!ncclProfiler_v6.init(&ctx, 1, &masks[0], "c", 1, 1, 0, NULL));
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		if (status)
			FAIL("child %d, amid inits, ended with status %#x", pid, status);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	while (nthreads--)
		pthread_join(threads[nthreads], NULL);
}

/* ---- One thread at a time ---------------------------------------------------------------------- */

/* More communicators than the area publishes; every finalize twice. */
static void many_communicators(void)
{
	enum { N = SCOPE_COMMS + 500 };
	static void *ctx[N];
	int i, twice;

	for (i = 0; i < N; i++) {
		CHECK(!ncclProfiler_v6.init(&ctx[i], (uint64_t)i, &masks[0], "c", 1, N, i, NULL));
		id_check((uintptr_t)ctx[i], SCOPE_ID_WHAT_CTX);
	}
	for (twice = 0; twice < 2; twice++)
		for (i = 0; i < N; i++)
			CHECK(!ncclProfiler_v6.finalize(ctx[i]));
}

static void finalize_all(void)
{
	const struct scope_area *area = area_peek();
	int i;

	for (i = 0; i < SCOPE_COMMS; i++)
		if (area->comms[i].ctx)
			ncclProfiler_v7.finalize((void *)(uintptr_t)area->comms[i].ctx);
	for (i = 0; i < SCOPE_COMMS; i++)
		CHECK(!area->comms[i].ctx);
	for (i = 0; i < SCOPE_MASKS; i++)
		CHECK(!area->masks[i]);
}

/* With nobody there, the first callback switches NCCL off. */
static void off_means_off(void)
{
	union any_descr d = {.v7 = {.type = ncclProfileProxyStep}};
	void *ctx = NULL, *handle = NULL;
	static int mask;

	calm(1);
	CHECK(!ncclProfiler_v7.init(&ctx, 1, &mask, NULL, 1, 1, 0, NULL));
	id_check((uintptr_t)ctx, SCOPE_ID_WHAT_CTX);
	CHECK(mask);
	calm(0);
	CHECK(!ncclProfiler_v7.startEvent(ctx, &handle, &d));
	id_check((uintptr_t)handle, SCOPE_PROXY_STEP);
	CHECK(!mask);
	CHECK(!ncclProfiler_v7.finalize(ctx));
}

static int parse(int argc, char **argv, uint64_t *n, int *nthreads)
{
	int c;

	while ((c = getopt(argc, argv, "n:t:s:q")) != -1) {
		if (c == 'n')
			*n = strtoull(optarg, NULL, 0);
		else if (c == 't')
			*nthreads = atoi(optarg);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0) | 1;
		else if (c == 'q')
			quiet = true;
		else
			return -EINVAL;
	}
	return *nthreads < 1 || *nthreads > MAX_THREADS ? -EINVAL : 0;
}

int main(int argc, char **argv)
{
	uint64_t n = 10000000;
	struct rng r;
	int nthreads = 3;
	double begin = now_s();

	if (parse(argc, argv, &n, &nthreads)) {
		fprintf(stderr, "Usage: plugin_fuzz [-n CALLS] [-t THREADS] [-s SEED]\n");
		return 2;
	}
	r.s = seed;
	seen = calloc(1, (1ULL << SEEN_BITS) / 8);
	CHECK(seen);
	my_tag = area_get()->tag;
	run_phase(PHASE_ON, n / 5 * 2, nthreads, &r);
	setenv("NCCL_ALLGATHERV_ENABLE", "0", 1); /* from here on KernelCh with each interface */
	area_read_env();
	run_phase(PHASE_CHAOS, n / 5 * 2, nthreads, &r);
	run_phase(PHASE_OFF, n - n / 5 * 4, nthreads, &r);
	calm(1);
	argv[0] = (char *)"plugin_fuzz"; /* found by PATH: what dladdr() says has no folder then */
	if (!SANITIZED && !quiet)
		fork_amid_inits(nthreads);
	finalize_all();
	many_communicators();
	off_means_off();
	finalize_all();
	if (quiet)
		return 0;
	printf("%llu calls, %llu starts and %llu repeats, %llu inits, %llu flushes of %llu "
	       "records, "
	       "%llu/%llu/%llu start/state/stop probes, %llu forks: %.1f s\n",
	       (unsigned long long)nr_calls, (unsigned long long)nr_starts,
	       (unsigned long long)nr_folded, (unsigned long long)nr_inits,
	       (unsigned long long)nr_flushed, (unsigned long long)nr_records,
	       (unsigned long long)nr_probe_start, (unsigned long long)nr_probe_state,
	       (unsigned long long)nr_probe_stop, (unsigned long long)nr_forks, now_s() - begin);
	printf("ok plugin_fuzz\n");
	return 0;
}
