// SPDX-License-Identifier: BSD-2-Clause
/*
 * The tables that NCCL looks up (ncclProfiler_v1 ... v7) and what its callbacks do: one record into the
 * thread's buffer. One body serves v4 to v7, whose descriptors only grow; v1 to v3 are mapped onto it.
 * Every callback returns ncclSuccess, whatever it was given.
 */
#include <string.h>
#include "plugin.h"

#define PLUGIN_NAME "ncclscope"
#define EXPORT	    __attribute__((visibility("default")))

/* A record is written to a thread without a buffer too, for the public probes; here. */
#define SCRATCH_SIZE 128
/* In ids of events that this version of the ABI does not have; none of enum scope_what. */
#define WHAT_UNKNOWN 31

typedef ncclProfilerEventDescr_v7_t descr;

/* Field by field: a literal is made on the stack first, and read back by a load that has to wait for all of its stores. */
static inline void rec_put(struct scope_rec_hdr *h, size_t size, uint8_t kind, uint64_t now,
			   uint64_t id)
{
	h->size = (uint16_t)size;
	h->kind = kind;
	h->u8 = 0;
	h->u32 = 0;
	h->ts = now;
	h->id = id;
}

/* ---- Start -------------------------------------------------------------------------------------
 *
 * fill_*() write the payload of one type behind a scope_rec_start that the caller has filled, and
 * return the size of the whole record. String ids are taken first, in struct names: announcing a
 * string appends a record of its own.
 */
struct names {
	uint16_t func, datatype, algo, proto, extra;
};

static inline uint32_t fill_coll_api(void *rec, const descr *d, const struct names *n, int api,
				     uint32_t what)
{
	struct scope_rec_coll_api *r = rec;

	if (what == SCOPE_COLL_API) {
		r->s.h.u8 = d->collApi.graphCaptured;
		r->count = d->collApi.count;
		r->stream = (uintptr_t)d->collApi.stream;
		r->user_tag = api >= 7 ? d->collApi.userTag : 0;
		r->root = d->collApi.root;
	} else {
		r->s.h.u8 = d->p2pApi.graphCaptured;
		r->count = d->p2pApi.count;
		r->stream = (uintptr_t)d->p2pApi.stream;
		r->user_tag = api >= 7 ? d->p2pApi.userTag : 0;
		r->root = 0;
	}
	r->func = n->func;
	r->datatype = n->datatype;
	return sizeof(*r);
}

static inline uint32_t fill_coll(void *rec, const descr *d, const struct names *n, int api)
{
	struct scope_rec_coll *r = rec;

	r->s.h.u8 = d->coll.nChannels;
	r->s.h.u32 = d->coll.nWarps;
	r->seq = d->coll.seqNumber;
	r->send_buff = (uintptr_t)d->coll.sendBuff;
	r->recv_buff = (uintptr_t)d->coll.recvBuff;
	r->count = d->coll.count;
	r->parent_group = api >= 5 ? (uintptr_t)d->coll.parentGroup : 0;
	r->user_tag = api >= 7 ? d->coll.userTag : 0;
	r->root = d->coll.root;
	r->rank = d->rank;
	r->func = n->func;
	r->datatype = n->datatype;
	r->algo = n->algo;
	r->proto = n->proto;
	r->kernel_variant = n->extra;
	r->is_sym_coll = api >= 7 ? d->coll.isSymColl : 0;
	memset(r->pad, 0, sizeof(r->pad));
	return sizeof(*r);
}

static inline uint32_t fill_p2p(void *rec, const descr *d, const struct names *n, int api)
{
	struct scope_rec_p2p *r = rec;

	r->s.h.u8 = d->p2p.nChannels;
	r->buff = (uintptr_t)d->p2p.buff;
	r->count = d->p2p.count;
	r->parent_group = api >= 5 ? (uintptr_t)d->p2p.parentGroup : 0;
	r->user_tag = api >= 7 ? d->p2p.userTag : 0;
	r->peer = d->p2p.peer;
	r->rank = d->rank;
	r->func = n->func;
	r->datatype = n->datatype;
	memset(r->pad, 0, sizeof(r->pad));
	return sizeof(*r);
}

static inline uint32_t fill_proxy_op(void *rec, const descr *d)
{
	struct scope_rec_proxy_op *r = rec;

	r->s.h.u8 = d->proxyOp.channelId;
	r->s.h.u32 = d->proxyOp.isSend != 0;
	r->pid = d->proxyOp.pid;
	r->peer = d->proxyOp.peer;
	r->nsteps = d->proxyOp.nSteps;
	r->chunk_size_bytes = d->proxyOp.chunkSize;
	r->rank = d->rank;
	r->pad = 0;
	return sizeof(*r);
}

/*
 * `data` is the net plugin's, valid now and only now. Its layout is known for version 1 of NCCL's own
 * two transports; anything else is recorded as a number.
 */
static inline uint32_t fill_net_plugin(void *rec, const descr *d)
{
	struct scope_rec_net_plugin *r = rec;
	uint64_t id = (uint64_t)d->netPlugin.id;
	const ncclProfilerNetIbDescr_v1_t *ib = d->netPlugin.data;
	const ncclProfilerNetSockDescr_v1_t *sock = d->netPlugin.data;

	memset(&r->net_id, 0, sizeof(*r) - sizeof(r->s));
	r->net_id = d->netPlugin.id;
	r->data = (uintptr_t)d->netPlugin.data;
	if (!d->netPlugin.data || (id & 0xffff) != 1)
		return sizeof(*r);
	if (id >> 16 == NCCL_PROFILER_NET_TYPE_IB && ib->type == 1) {
		r->s.h.u8 = 1;
		r->device_or_fd = ib->qp.device;
		r->wr_id = ib->qp.wr_id;
		r->opcode_or_op = ib->qp.opcode;
		r->qp_num = ib->qp.qpNum;
		r->length_bytes = ib->qp.length;
	} else if (id >> 16 == NCCL_PROFILER_NET_TYPE_SOCK && sock->type == 1) {
		r->s.h.u8 = 1;
		r->device_or_fd = sock->sock.fd;
		r->opcode_or_op = sock->sock.op;
		r->length_bytes = sock->sock.length;
	}
	return sizeof(*r);
}

static inline uint32_t fill_ce_coll(void *rec, const descr *d, const struct names *n, int api)
{
	struct scope_rec_ce_coll *r = rec;

	r->s.h.u8 = d->ceColl.intraBatchSync;
	r->seq = d->ceColl.seqNumber;
	r->send_buff = (uintptr_t)d->ceColl.sendBuff;
	r->recv_buff = (uintptr_t)d->ceColl.recvBuff;
	r->count = d->ceColl.count;
	r->stream = (uintptr_t)d->ceColl.stream;
	r->user_tag = api >= 7 ? d->ceColl.userTag : 0;
	r->root = d->ceColl.root;
	r->rank = d->rank;
	r->batch_size = d->ceColl.batchSize;
	r->num_batches = d->ceColl.numBatches;
	r->ce_seq = d->ceColl.ceSeqNum;
	r->func = n->func;
	r->datatype = n->datatype;
	r->sync_strategy = n->extra;
	memset(r->pad, 0, sizeof(r->pad));
	return sizeof(*r);
}

static inline uint32_t fill_kernel(void *rec, const descr *d, const struct names *n, uint32_t what,
				   int api)
{
	struct scope_rec_kernel_phase *phase = rec;
	struct scope_rec_kernel_ch *ch = rec;

	if (what == SCOPE_KERNEL_PHASE) {
		phase->s.h.u8 = d->kernelPhase.channelId;
		phase->s.h.u32 = d->kernelPhase.phaseId;
		phase->ptimer_ns = d->kernelPhase.pTimer;
		phase->phase_name = n->extra;
		memset(phase->pad, 0, sizeof(phase->pad));
		return sizeof(*phase);
	}
	ch->s.h.u8 = d->kernelCh.channelId;
	ch->ptimer_ns = api >= 4 ? d->kernelCh.pTimer : 0;
	return sizeof(*ch);
}

static inline uint32_t fill_ce_batch(void *rec, const descr *d)
{
	struct scope_rec_ce_batch *r = rec;

	r->s.h.u8 = d->ceCollBatch.useIntraSync;
	r->s.h.u32 = (uint32_t)d->ceCollBatch.numOps;
	r->total_bytes = d->ceCollBatch.totalBytes;
	return sizeof(*r);
}

static inline uint32_t fill_stream(void *rec, const descr *d)
{
	struct scope_rec_stream *r = rec;

	r->stream = (uintptr_t)d->kernelLaunch.stream;
	return sizeof(*r);
}

static uint32_t fill(void *rec, uint32_t what, const descr *d, const struct names *n, int api)
{
	struct scope_rec_start *s = rec;

	switch (what) {
	case SCOPE_COLL:
		return fill_coll(rec, d, n, api);
	case SCOPE_P2P:
		return fill_p2p(rec, d, n, api);
	case SCOPE_PROXY_OP:
		return fill_proxy_op(rec, d);
	case SCOPE_KERNEL_CH:
	case SCOPE_KERNEL_PHASE:
		return fill_kernel(rec, d, n, what, api);
	case SCOPE_NET_PLUGIN:
		return fill_net_plugin(rec, d);
	case SCOPE_COLL_API:
	case SCOPE_P2P_API:
		return fill_coll_api(rec, d, n, api, what);
	case SCOPE_KERNEL_LAUNCH:
		return fill_stream(rec, d);
	case SCOPE_CE_COLL:
		return fill_ce_coll(rec, d, n, api);
	case SCOPE_CE_BATCH:
		return fill_ce_batch(rec, d);
	case SCOPE_CE_SYNC:
		s->h.u8 = d->ceCollSync.isComplete;
		s->h.u32 = (uint32_t)d->ceCollSync.nRanks;
		return sizeof(*s);
	case SCOPE_GROUP_API:
		s->h.u8 = d->groupApi.graphCaptured;
		s->h.u32 = (uint32_t)d->groupApi.groupDepth;
		return sizeof(*s);
	default: /* Group, ProxyCtrl */
		return sizeof(*s);
	}
}

static void take_names(struct tbuf *tb, struct names *n, uint32_t what, const descr *d, int api)
{
	switch (what) {
	case SCOPE_COLL:
		n->func = string_id(tb, d->coll.func);
		n->datatype = string_id(tb, d->coll.datatype);
		n->algo = string_id(tb, d->coll.algo);
		n->proto = string_id(tb, d->coll.proto);
		n->extra = api >= 7 ? string_id(tb, d->coll.kernelVariant) : 0;
		return;
	case SCOPE_P2P:
		n->func = string_id(tb, d->p2p.func);
		n->datatype = string_id(tb, d->p2p.datatype);
		return;
	case SCOPE_COLL_API: /* func and datatype lie at one place in collApi and p2pApi */
	case SCOPE_P2P_API:
		n->func = string_id(tb, d->collApi.func);
		n->datatype = string_id(tb, d->collApi.datatype);
		return;
	case SCOPE_CE_COLL:
		n->func = string_id(tb, d->ceColl.func);
		n->datatype = string_id(tb, d->ceColl.datatype);
		n->extra = string_id(tb, d->ceColl.syncStrategy);
		return;
	case SCOPE_KERNEL_PHASE:
		n->extra = string_id(tb, d->kernelPhase.phaseName);
		return;
	default:
		return;
	}
}

static void repeat_write(struct tbuf *tb, uint8_t kind, uint64_t id, uint8_t state, uint32_t n,
			 uint64_t last)
{
	struct scope_rec_hdr *r = tbuf_reserve(tb, sizeof(*r));

	rec_put(r, sizeof(*r), kind, last, id);
	r->u8 = state;
	r->u32 = n;
	tbuf_commit(tb, sizeof(*r));
}

/* Writes what was folded, before the step goes on to another state or stops. */
static inline void fold_settle(struct tbuf *tb, struct fold *f)
{
	if (unlikely(f->start_repeats)) {
		repeat_write(tb, SCOPE_REC_START_REPEAT, f->id, 0, f->start_repeats,
			     f->last_start_ts);
		f->start_repeats = 0;
	}
	if (unlikely(f->state_repeats)) {
		repeat_write(tb, SCOPE_REC_STATE_REPEAT, f->id, (uint8_t)f->state, f->state_repeats,
			     f->last_state_ts);
		f->state_repeats = 0;
	}
}

static __attribute__((noinline)) struct fold *fold_find_far(struct tbuf *tb, uint64_t id)
{
	struct fold *f;
	uint64_t i;

	for (i = 0; i < FOLDS_TRIES; i++) {
		f = &tb->far[(id + i) % FOLDS_FAR];
		if (f->id == id)
			return f;
	}
	return NULL;
}

/* The step's place; NULL: it has none. */
static inline struct fold *fold_find(struct tbuf *tb, uint64_t id)
{
	struct fold *f = &tb->folds[id % FOLDS];

	if (f->id == id)
		return f;
	return unlikely(f->far) ? fold_find_far(tb, id) : NULL;
}

/* The step that this start repeats, if NCCL started the same one before and it is still open. */
static inline struct fold *fold_repeat(struct tbuf *tb, void *const *handle, const descr *d)
{
	uint64_t h = (uintptr_t)*handle;
	struct fold *f = h ? fold_find(tb, h) : NULL;

	if (f && f->parent == (uintptr_t)d->parentObj && f->step == (uint32_t)d->proxyStep.step)
		return f;
	return NULL;
}

static inline uint64_t fold_moved(const struct fold *f)
{
	return f->last_state_ts > f->last_start_ts ? f->last_state_ts : f->last_start_ts;
}

static inline bool fold_is_idle(const struct fold *f, uint64_t now)
{
	return now - fold_moved(f) >=
	       FOLD_IDLE * __atomic_load_n(&ncclscope_control.flush_ticks, __ATOMIC_RELAXED);
}

/* Its counts are settled. */
static inline void fold_free(struct tbuf *tb, struct fold *f)
{
	struct fold *own = &tb->folds[f->id % FOLDS];

	if (unlikely(f != own))
		own->far--;
	f->id = 0;
}

static __attribute__((noinline)) struct fold *fold_take_far(struct tbuf *tb, uint64_t id)
{
	struct fold *f, *best = NULL;
	uint64_t i;

	for (i = 0; i < FOLDS_TRIES; i++) {
		f = &tb->far[(id + i) % FOLDS_FAR];
		if (!best || !f->id || (best->id && fold_moved(f) < fold_moved(best)))
			best = f;
	}
	if (best->id) {
		fold_settle(tb, best);
		fold_free(tb, best);
	}
	tb->folds[id % FOLDS].far++;
	return best;
}

/* A place for a step that has none; writes what the one before it there has left. */
static inline struct fold *fold_take(struct tbuf *tb, uint64_t id, uint64_t now)
{
	struct fold *f = &tb->folds[id % FOLDS];

	if (unlikely(f->id)) {
		if (fold_is_idle(f, now))
			fold_settle(tb, f);
		else
			f = fold_take_far(tb, id);
	}
	f->id = id;
	f->state = FOLD_NO_STATE;
	f->last_start_ts = now;
	f->last_state_ts = now;
	return f;
}

static inline struct fold *fold_open(struct tbuf *tb, uint64_t id, const descr *d, uint64_t now)
{
	struct fold *f = fold_take(tb, id, now);

	f->parent = (uintptr_t)d->parentObj;
	f->step = (uint32_t)d->proxyStep.step;
	return f;
}

/* A state that NCCL makes at poll rate: of a step, before v4 of an operation. */
static inline bool is_polled(uint64_t id, uint32_t state, int api)
{
	if (state == ncclProfilerProxyStepSendPeerWait_v4)
		return SCOPE_ID_WHAT(id) == SCOPE_PROXY_STEP;
	return api < 4 && state == ncclProfilerProxyOpSendRemFifoWait &&
	       SCOPE_ID_WHAT(id) == SCOPE_PROXY_OP;
}

static inline bool fold_in_state(const struct fold *f, uint32_t state, uint64_t arg, uint32_t steps,
				 int api)
{
	if (likely(f->state != state || f->arg != arg))
		return false;
	return api >= 4 || f->at != FOLD_NO_REC || f->step == steps;
}

/* Of an operation, or of a step that began before there was a recorder, or whose place another has by now: NCCL may poll it from here on. */
static __attribute__((noinline)) struct fold *fold_reopen(struct tbuf *tb, uint64_t id,
							  uint64_t now)
{
	struct fold *f = fold_take(tb, id, now);

	f->parent = id; /* nobody's: no start repeats it */
	f->at = FOLD_NO_REC;
	return f;
}

/* ---- A step in one record ----------------------------------------------------------------------
 *
 * Its states and its stop go where its start lies, while that is in the buffer: half the bytes, so half the
 * flushes, and less to write. `ticks` come last: who reads from outside sees a part whole or not at all.
 */
#define PLACE(dir, part)     ((dir) << 4 | (part))
#define PLACE_ARG(dir, part) (PLACE(dir, part) | 0x80)
static const uint8_t step_places[NCCL_PROFILER_NSTATES] = {
	[ncclProfilerProxyStepSendGPUWait] = PLACE(SCOPE_STEP_SEND, SCOPE_STEP_GPU),
	[ncclProfilerProxyStepSendPeerWait_v4] = PLACE(SCOPE_STEP_SEND, SCOPE_STEP_PEER),
	[ncclProfilerProxyStepSendWait] = PLACE_ARG(SCOPE_STEP_SEND, SCOPE_STEP_DONE),
	[ncclProfilerProxyStepRecvWait] = PLACE(SCOPE_STEP_RECV, SCOPE_STEP_GPU),
	[ncclProfilerProxyStepRecvFlushWait] = PLACE_ARG(SCOPE_STEP_RECV, SCOPE_STEP_PEER),
	[ncclProfilerProxyStepRecvGPUWait] = PLACE(SCOPE_STEP_RECV, SCOPE_STEP_DONE),
};

static inline void step_open(struct tbuf *tb, struct fold *f, struct scope_rec_step *r)
{
	f->at = tb->h.pos + tb->h.len;
	r->s.h.size = sizeof(*r);
	r->s.h.kind = SCOPE_REC_STEP;
	memset(r->ticks, 0, sizeof(*r) - sizeof(r->s));
}

/* The step's record, if it has one that has not been handed in. */
static inline struct scope_rec_step *step_rec(struct tbuf *tb, const struct fold *f)
{
	uint64_t off = f->at - tb->h.pos;

	return likely(off < tb->h.len) ? (struct scope_rec_step *)(tb->data + off) : NULL;
}

/* False: it has no place there. */
static inline bool step_part(struct tbuf *tb, struct scope_rec_step *r, uint32_t part, uint64_t now)
{
	uint64_t ticks = now - r->s.h.ts;

	if (unlikely(r->ticks[part] || ticks >= UINT32_MAX))
		return false;
	__atomic_store_n(&r->ticks[part], (uint32_t)ticks + 1, __ATOMIC_RELEASE);
	tbuf_count(tb);
	return true;
}

static inline bool step_state(struct tbuf *tb, struct scope_rec_step *r, uint32_t state,
			      bool has_arg, uint64_t arg, uint64_t now)
{
	uint8_t place = state < NCCL_PROFILER_NSTATES ? step_places[state] : 0;
	uint8_t dir = place >> 4 & 3;

	if (unlikely(!dir || has_arg != place >> 7 || (r->s.h.u8 && r->s.h.u8 != dir)))
		return false;
	if (unlikely(r->ticks[place & 3] || now - r->s.h.ts >= UINT32_MAX))
		return false;
	r->s.h.u8 = dir;
	if (has_arg)
		r->trans_size_bytes = arg;
	return step_part(tb, r, place & 3, now);
}

/* Where there is no buffer for it, the public probes have a record all the same. */
static __attribute__((noinline)) void probe_scratch(void *context, const descr *d, uint32_t what,
						    uint64_t type, int api, uint64_t id)
{
	uint64_t scratch[SCRATCH_SIZE / 8];
	struct scope_rec_start *s = (void *)scratch;
	const struct names none = {0};

	rec_put(&s->h, 0, SCOPE_REC_START, clock_now(), id);
	s->parent = (uintptr_t)d->parentObj;
	s->ctx = (uintptr_t)context;
	if (what == SCOPE_PROXY_STEP)
		s->h.u32 = (uint32_t)d->proxyStep.step;
	s->h.size = (uint16_t)fill(s, what, d, &none, api);
	probe_start(id, type, s);
}

/*
 * What remains when nobody listens to the buffers: an id for NCCL, and NCCL's mask to 0 unless the
 * public probes are wanted. Callbacks of operations already in flight come here as well.
 */
static uint64_t start_unheard(void *context, const descr *d, uint32_t what, uint64_t type, int api,
			      union scope_sems sems)
{
	uint64_t id = id_next(tbuf_get(), what);

	if (!sems.all)
		area_disarm();
	else if (sems.start && what < SCOPE_NTYPES)
		probe_scratch(context, d, what, type, api, id);
	return id;
}

/*
 * The number of an event type. One that this version of the ABI does not have gets an id, no record: what lies in its descriptor
 * is not known, and must not be followed.
 */
static inline __attribute__((always_inline)) uint32_t what_of(uint64_t type, int api)
{
	/* Event types of a version: bits 0 to n - 1. */
	static const uint8_t ntypes[] = {0, 6, 6, 8, 8, 12, 15, 16};
	uint32_t what;

	what = type && !(type & (type - 1)) ? (uint32_t)__builtin_ctzll(type) : SCOPE_NTYPES;
	return likely(what < ntypes[api]) ? what : WHAT_UNKNOWN;
}

/* True: NCCL starts a step once more, which is counted, and *handle stays what it was. */
static inline __attribute__((always_inline)) bool start_again(struct tbuf *tb, void **handle,
							      const descr *d, uint64_t type,
							      union scope_sems sems, uint64_t now)
{
	struct fold *f = fold_repeat(tb, handle, d);

	if (likely(!f))
		return false;
	f->start_repeats += f->start_repeats != UINT32_MAX;
	f->last_start_ts = now;
	if (unlikely(sems.start))
		probe_start(f->id, type, NULL);
	tbuf_flush_if_old(tb, now);
	return true;
}

static inline void start_group(uint32_t what, const descr *d, int api)
{
	switch (what) {
	case SCOPE_GROUP_API:
		kernels_group_begin(d->groupApi.graphCaptured, d->groupApi.groupDepth);
		if (api >= 7) /* NCCL may lose track of collectives too */
			kernels_one_mask();
		return;
	/* The GroupApi tells of the communicator of its first call, which need not be the one that captures. */
	case SCOPE_COLL_API:
		if (api >= 6 && d->collApi.func && !strcmp(d->collApi.func, "Broadcast"))
			kernels_broadcast(d->collApi.root);
		if (d->collApi.graphCaptured)
			kernels_work(true);
		return;
	case SCOPE_P2P_API:
		kernels_one_mask();
		if (d->p2pApi.graphCaptured)
			kernels_work(true);
		return;
	case SCOPE_GROUP:
		if (api < 5)
			kernels_work(false);
		else
			kernels_group_launch();
		return;
	default:
		return;
	}
}

static inline __attribute__((always_inline)) ncclProfResult_t
start(void *context, void **handle, const descr *d, uint64_t type, int api)
{
	union scope_sems sems = sems_read();
	struct scope_rec_start *s;
	struct names n = {0};
	struct fold *f = NULL;
	struct tbuf *tb;
	uint64_t id, now;
	uint32_t what, size;
	bool is_step;

	if (unlikely(!handle))
		return ncclSuccess;
	what = what_of(type, api);
	if (unlikely(what != SCOPE_PROXY_STEP))
		start_group(what, d, api);
	if (unlikely(!sems.flush || what == WHAT_UNKNOWN)) {
		*handle = (void *)(uintptr_t)start_unheard(context, d, what, type, api, sems);
		return ncclSuccess;
	}
	tb = tbuf_get(); /* before the clock is read: the first one here also chooses it */
	now = clock_now();
	if (unlikely(!tb)) {
		tbuf_missed();
		id = id_next(tb, what);
		if (sems.start)
			probe_scratch(context, d, what, type, api, id);
		*handle = (void *)(uintptr_t)id;
		return ncclSuccess;
	}
	is_step = what == SCOPE_PROXY_STEP;
	if (likely(is_step)) {
		if (unlikely(start_again(tb, handle, d, type, sems, now)))
			return ncclSuccess;
	} else {
		take_names(tb, &n, what, d, api);
	}
	id = id_next(tb, what);
	if (likely(is_step))
		f = fold_open(tb, id, d, now); /* may append records: before ours is reserved */
	s = tbuf_reserve(tb, is_step ? sizeof(struct scope_rec_step) : SCRATCH_SIZE);
	rec_put(&s->h, 0, SCOPE_REC_START, now, id);
	s->parent = (uintptr_t)d->parentObj;
	s->ctx = (uintptr_t)context;
	if (likely(is_step)) {
		s->h.u32 = (uint32_t)d->proxyStep.step;
		size = sizeof(*s);
	} else {
		size = fill(s, what, d, &n, api);
	}
	s->h.size = (uint16_t)size;
	if (unlikely(sems.start))
		probe_start(id, type, s);
	if (likely(is_step)) {
		step_open(tb, f, (struct scope_rec_step *)s);
		size = sizeof(struct scope_rec_step);
	}
	tbuf_commit(tb, size);
	tbuf_flush_if_old(tb, now);
	*handle = (void *)(uintptr_t)id;
	return ncclSuccess;
}

/* ---- Stop -------------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) ncclProfResult_t stop(void *handle, int api)
{
	union scope_sems sems = sems_read();
	uint64_t id = (uintptr_t)handle, now;
	uint32_t what = SCOPE_ID_WHAT(id);
	struct scope_rec_step *step;
	struct scope_rec_hdr *r;
	struct tbuf *tb;
	struct fold *f;

	if (unlikely(!id))
		return ncclSuccess; /* NCCL stops NULL where a start was declined or masked */
	if (unlikely(sems.stop))
		probe_stop(id);
	if (unlikely(what == SCOPE_GROUP_API))
		kernels_group_stop();
	if (unlikely(!sems.flush)) {
		if (!sems.all)
			area_disarm();
		return ncclSuccess;
	}
	tb = tbuf_get();
	now = clock_now();
	if (unlikely(!tb)) {
		tbuf_missed();
		return ncclSuccess;
	}
	f = fold_find(tb, id);
	if (f) {
		fold_settle(tb, f);
		fold_free(tb, f);
		step = step_rec(tb, f);
		if (step && step_part(tb, step, SCOPE_STEP_STOP, now)) {
			tbuf_flush_if_old(tb, now);
			return ncclSuccess;
		}
	}
	r = tbuf_reserve(tb, sizeof(*r));
	rec_put(r, sizeof(*r), SCOPE_REC_STOP, now, id);
	tbuf_commit(tb, sizeof(*r));
	/* The end of a user's call: the thread may not come back for long. */
	if (what == SCOPE_GROUP_API || (api < 5 && what == SCOPE_GROUP))
		tbuf_flush(tb, SCOPE_FLUSH_TOP);
	else
		tbuf_flush_if_old(tb, now);
	return ncclSuccess;
}

/* ---- State ------------------------------------------------------------------------------------- */

static inline void state_write(struct tbuf *tb, uint64_t id, uint32_t state, bool has_arg,
			       uint64_t arg, uint32_t steps, uint64_t now)
{
	struct scope_rec_state *r = tbuf_reserve(tb, sizeof(*r));
	uint32_t size = has_arg ? sizeof(*r) : sizeof(r->h);

	rec_put(&r->h, size, SCOPE_REC_STATE, now, id);
	r->h.u8 = (uint8_t)state;
	r->h.u32 = steps;
	if (has_arg)
		r->arg = arg;
	tbuf_commit(tb, size);
}

static inline __attribute__((always_inline)) void
state_record(uint64_t id, uint32_t state, bool has_arg, uint64_t arg, uint32_t steps, int api)
{
	union scope_sems sems = sems_read();
	struct scope_rec_step *step;
	struct tbuf *tb;
	struct fold *f;
	uint64_t now;

	if (unlikely(!id))
		return;
	if (unlikely(sems.state))
		probe_state(id, state, arg);
	if (unlikely(!sems.flush)) {
		if (!sems.all)
			area_disarm();
		return;
	}
	tb = tbuf_get();
	now = clock_now();
	if (unlikely(!tb)) {
		tbuf_missed();
		return;
	}
	f = fold_find(tb, id);
	if (unlikely(!f && is_polled(id, state, api)))
		f = fold_reopen(tb, id, now);
	if (f) {
		if (unlikely(fold_in_state(f, state, arg, steps, api))) {
			f->state_repeats += f->state_repeats != UINT32_MAX;
			f->last_state_ts = now;
			tbuf_flush_if_old(tb, now);
			return;
		}
		fold_settle(tb, f);
		f->state = (uint16_t)state;
		f->arg = arg;
		f->last_state_ts = now;
		step = step_rec(tb, f);
		if (step && !steps && step_state(tb, step, state, has_arg, arg, now)) {
			tbuf_flush_if_old(tb, now);
			return;
		}
		if (api < 4 && f->at == FOLD_NO_REC)
			f->step = steps;
	}
	state_write(tb, id, state, has_arg, arg, steps, now);
	tbuf_flush_if_old(tb, now);
}

/* A number that NCCL does not have must not turn into one that it has. */
static inline uint32_t state_number(ncclProfilerEventState_t state)
{
	return (uint32_t)state < 0xff ? (uint32_t)state : 0xff;
}

/*
 * Which member of the union counts follows from the state; NCCL passes an args pointer for many states
 * that have no argument, and none at all for the two of GroupApi.
 */
static ncclProfResult_t state_v4(void *handle, ncclProfilerEventState_t state,
				 ncclProfilerEventStateArgs_v4_t *args)
{
	uint64_t arg = 0;
	bool has_arg = false;

	if (args) {
		switch ((int)state) {
		case ncclProfilerProxyStepSendWait:
		case ncclProfilerProxyStepRecvFlushWait:
			arg = args->proxyStep.transSize;
			has_arg = true;
			break;
		case ncclProfilerProxyCtrlAppendEnd:
			arg = (uint64_t)(int64_t)args->proxyCtrl.appendedProxyOps;
			has_arg = true;
			break;
		case ncclProfilerNetPluginUpdate:
			arg = (uintptr_t)args->netPlugin.data;
			has_arg = true;
			break;
		case ncclProfilerKernelChStop:
		case ncclProfilerKernelPhaseStop:
			arg = args->kernelCh.pTimer;
			has_arg = true;
			break;
		default:
			break;
		}
	}
	state_record((uintptr_t)handle, state_number(state), has_arg, arg, 0, 4);
	return ncclSuccess;
}

/* v1 to v3 give transSize and steps with the states of ProxyOp, and with every one of them. */
static ncclProfResult_t state_v1(void *handle, ncclProfilerEventState_t state,
				 ncclProfilerEventStateArgs_v1_t *args)
{
	uint32_t steps = 0;
	uint64_t arg = 0;
	bool has_arg = false;

	if (args && (uint32_t)state <= ncclProfilerProxyOpRecvDone) {
		arg = args->proxyOp.transSize;
		steps = (uint32_t)args->proxyOp.steps;
		has_arg = true;
	} else if (args && state == ncclProfilerProxyCtrlAppendEnd) {
		arg = (uint64_t)(int64_t)args->proxyCtrl.appendedProxyOps;
		has_arg = true;
	}
	state_record((uintptr_t)handle, state_number(state), has_arg, arg, steps, 3);
	return ncclSuccess;
}

/* ---- init and finalize ------------------------------------------------------------------------- */

static void comm_record(const struct scope_comm *comm)
{
	struct scope_rec_comm *r;
	struct tbuf *tb;

	if (!sems_read().flush)
		return;
	tb = tbuf_get();
	if (!tb) {
		tbuf_missed();
		return;
	}
	r = tbuf_reserve(tb, sizeof(*r));
	rec_put(&r->h, sizeof(*r), SCOPE_REC_COMM, clock_now(), comm->ctx);
	r->comm = *comm;
	tbuf_commit(tb, sizeof(*r));
	tbuf_flush(tb, SCOPE_FLUSH_INIT);
}

static ncclProfResult_t init(void **context, struct scope_comm *comm, int *mask, const char *name,
			     ncclDebugLogger_t logfn)
{
	uint64_t ctx = comm_init(comm, mask, name, logfn);

	if (context)
		*context = (void *)(uintptr_t)ctx;
	comm_record(comm);
	comm_settle(comm, mask);
	return ncclSuccess;
}

static ncclProfResult_t init_v1to3(void **context, int *mask, uint32_t api)
{
	struct scope_comm comm = {.api = api, .rank = -1};

	return init(context, &comm, mask, NULL, NULL);
}

static ncclProfResult_t init_v1(void **context, int *mask)
{
	return init_v1to3(context, mask, 1);
}

static ncclProfResult_t init_v2(void **context, int *mask)
{
	return init_v1to3(context, mask, 2);
}

static ncclProfResult_t init_v3(void **context, int *mask)
{
	return init_v1to3(context, mask, 3);
}

static ncclProfResult_t init_v4(void **context, int *mask, const char *name, uint64_t hash,
				int nnodes, int nranks, int rank, ncclDebugLogger_t logfn)
{
	struct scope_comm comm = {
		.api = 4, .hash = hash, .nnodes = nnodes, .nranks = nranks, .rank = rank};

	return init(context, &comm, mask, name, logfn);
}

#define INIT_V5(v)                                                                                 \
	static ncclProfResult_t init_v##v(void **context, uint64_t hash, int *mask,                \
					  const char *name, int nnodes, int nranks, int rank,      \
					  ncclDebugLogger_t logfn)                                 \
	{                                                                                          \
		struct scope_comm comm = {                                                         \
			.api = v, .hash = hash, .nnodes = nnodes, .nranks = nranks, .rank = rank}; \
                                                                                                   \
		return init(context, &comm, mask, name, logfn);                                    \
	}
INIT_V5(5)
INIT_V5(6)
INIT_V5(7)

static ncclProfResult_t finalize(void *context)
{
	uint64_t ctx = (uintptr_t)context;
	struct scope_rec_hdr *r;
	struct tbuf *tb;

	/* Once per context: a second finalize, or a foreign context, says nothing. */
	if (!comm_finalize(ctx) || !sems_read().flush)
		return ncclSuccess;
	tb = tbuf_get();
	if (!tb) {
		tbuf_missed();
		return ncclSuccess;
	}
	r = tbuf_reserve(tb, sizeof(*r));
	rec_put(r, sizeof(*r), SCOPE_REC_FINALIZE, clock_now(), ctx);
	tbuf_commit(tb, sizeof(*r));
	tbuf_flush(tb, SCOPE_FLUSH_FINALIZE);
	return ncclSuccess;
}

/* ---- v4 to v7 ---------------------------------------------------------------------------------- */

#define START_V5(v)                                                                                \
	static ncclProfResult_t start_v##v(void *context, void **handle, void *d)                  \
	{                                                                                          \
		return start(context, handle, d, d ? ((const descr *)d)->type : 0, v);             \
	}
START_V5(5)
START_V5(6)
START_V5(7)

static ncclProfResult_t start_v4(void *context, void **handle, void *d)
{
	/* One byte wide, and what follows it is padding: garbage. */
	return start(context, handle, d, d ? ((const ncclProfilerEventDescr_v4_t *)d)->type : 0, 4);
}

static ncclProfResult_t stop_v1to4(void *handle)
{
	return stop(handle, 4);
}

static ncclProfResult_t stop_v5(void *handle)
{
	return stop(handle, 5);
}

/* ---- v1 to v3 ----------------------------------------------------------------------------------
 *
 * Everything but Coll, P2p and KernelCh lies where v4 has it. NCCL before 2.27 names the communicator
 * in each Coll and P2p: the loader is told when a thread sees one for the first time.
 */
static void comm_name_record(uint64_t ctx, const char *name, uint64_t hash, int rank)
{
	static __thread uint64_t last_ctx TLS_NO_CALL, last_hash TLS_NO_CALL;
	static __thread uint32_t last_epoch TLS_NO_CALL;
	struct scope_rec_comm_name *r;
	struct tbuf *tb;

	if ((!hash && !name) || !sems_read().flush)
		return;
	tb = tbuf_get();
	if (!tb || (last_ctx == ctx && last_hash == hash && last_epoch == tb->h.epoch))
		return;
	last_ctx = ctx;
	last_hash = hash;
	last_epoch = tb->h.epoch; /* a loader that comes later wants to know as well */
	r = tbuf_reserve(tb, sizeof(*r));
	memset(r, 0, sizeof(*r));
	rec_put(&r->h, sizeof(*r), SCOPE_REC_COMM_NAME, clock_now(), ctx);
	r->h.u32 = (uint32_t)rank;
	r->hash = hash;
	if (name)
		strncpy(r->name, name, sizeof(r->name) - 1);
	tbuf_commit(tb, sizeof(*r));
}

/* A Coll or P2p in v4's places; anything else of v1 to v3 is there already. The NAME_ make strings of v1's enumerations. */
#define MAP_OLD(v, NAME_FUNC, NAME_TYPE, NAME_ALGO, NAME_PROTO)                                    \
	static const descr *map_v##v(const ncclProfilerEventDescr_v##v##_t *o, descr *d)           \
	{                                                                                          \
		memset(d, 0, sizeof(*d));                                                          \
		if (o->type == ncclProfileColl) {                                                  \
			d->coll.seqNumber = o->coll.seqNumber;                                     \
			d->coll.func = NAME_FUNC(o->coll.func);                                    \
			d->coll.sendBuff = o->coll.sendBuff;                                       \
			d->coll.recvBuff = o->coll.recvBuff;                                       \
			d->coll.count = o->coll.count;                                             \
			d->coll.root = o->coll.root;                                               \
			d->coll.datatype = NAME_TYPE(o->coll.datatype);                            \
			d->coll.nChannels = o->coll.nMaxChannels;                                  \
			d->coll.nWarps = o->coll.nWarps;                                           \
			d->coll.algo = NAME_ALGO(o->coll.algo);                                    \
			d->coll.proto = NAME_PROTO(o->coll.proto);                                 \
		} else {                                                                           \
			d->p2p.func = NAME_FUNC(o->p2p.func);                                      \
			d->p2p.buff = o->p2p.buff;                                                 \
			d->p2p.datatype = NAME_TYPE(o->p2p.datatype);                              \
			d->p2p.count = o->p2p.count;                                               \
			d->p2p.peer = o->p2p.peer;                                                 \
		}                                                                                  \
		return d;                                                                          \
	}
#define AS_IS(x) (x)
MAP_OLD(1, name_func, name_datatype, name_algo, name_proto)
MAP_OLD(2, AS_IS, AS_IS, AS_IS, AS_IS)
MAP_OLD(3, AS_IS, AS_IS, AS_IS, AS_IS)

#define START_OLD(v)                                                                               \
	static ncclProfResult_t start_v##v(void *context, void **handle, void *old)                \
	{                                                                                          \
		const ncclProfilerEventDescr_v##v##_t *o = old;                                    \
		const descr *d = old;                                                              \
		descr mapped;                                                                      \
                                                                                                   \
		if (o && (o->type == ncclProfileColl || o->type == ncclProfileP2p)) {              \
			/* name and commHash lie at one place in coll and p2p */                   \
			comm_name_record((uintptr_t)context, o->coll.name, o->coll.commHash,       \
					 o->rank);                                                 \
			d = map_v##v(o, &mapped);                                                  \
			mapped.parentObj = o->parentObj;                                           \
			mapped.rank = o->rank;                                                     \
		}                                                                                  \
		return start(context, handle, d, o ? o->type : 0, v);                              \
	}
START_OLD(1)
START_OLD(2)
START_OLD(3)

/* ---- What NCCL looks up ------------------------------------------------------------------------ */

#define TABLE(v, type, stop_fn, state_fn)                                                          \
	EXPORT const type ncclProfiler_v##v = {PLUGIN_NAME, init_v##v, start_v##v,                 \
					       stop_fn,	    state_fn,  finalize}

TABLE(1, ncclProfiler_v1_t, stop_v1to4, state_v1);
TABLE(2, ncclProfiler_v1_t, stop_v1to4, state_v1);
TABLE(3, ncclProfiler_v1_t, stop_v1to4, state_v1);
TABLE(4, ncclProfiler_v4_t, stop_v1to4, state_v4);
TABLE(5, ncclProfiler_v5_t, stop_v5, state_v4);
TABLE(6, ncclProfiler_v5_t, stop_v5, state_v4);
TABLE(7, ncclProfiler_v5_t, stop_v5, state_v4);
