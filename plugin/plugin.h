/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the plugin: the thread's buffer and the hot path over it, inline; the slow paths beside it.
 * Rules of the house: no lock, no allocation, no file and no environment on the event path; nothing
 * that NCCL hands us is dereferenced but descriptors and NCCL's own static strings.
 */
#ifndef NCCLSCOPE_PLUGIN_H
#define NCCLSCOPE_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>
#include "clock.h"
#include "nccl_profiler.h"
#include "scope_abi.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- Semaphores --------------------------------------------------------------------------------
 *
 * The four USDT semaphores lie in one word (plugin/probes.c), so that one load on the hot path tells
 * who listens: nobody, only the loader (the usual case), or somebody on the public probes.
 */
union scope_sems {
	struct {
		uint16_t flush, start, state, stop;
	};
	uint64_t all;
};
extern union scope_sems scope_sems;

static inline union scope_sems sems_read(void)
{
	union scope_sems s;

	s.all = __atomic_load_n(&scope_sems.all, __ATOMIC_RELAXED);
	return s;
}

/* The probe sites; fire only when the semaphore is set. */
void probe_flush(void *tb, uint64_t reason);
void probe_start(uint64_t id, uint64_t type, const void *rec);
void probe_state(uint64_t id, uint64_t state, uint64_t arg);
void probe_stop(uint64_t id);

/* ---- Folding of repeats ------------------------------------------------------------------------
 *
 * NCCL repeats some callbacks at poll rate: the start of one receive step, SendPeerWait, before v4 SendRemFifoWait of a ProxyOp.
 * The live steps of this thread, and such operations, direct-mapped by id. One that finds its place taken has one further off, of
 * FOLDS_TRIES the free one, or that of the step which has not moved for longest: NCCL polls few of those that are open, so these keep
 * theirs.
 */
#define FOLDS	    256
#define FOLDS_FAR   1024
#define FOLDS_TRIES 4

struct fold {
	uint64_t id; /* 0: free */
	uint64_t parent;
	uint64_t arg; /* of the last state */
	uint64_t last_state_ts, last_start_ts;
	uint32_t step;	/* of one with FOLD_NO_REC: `steps` of its last state */
	uint16_t state; /* last state, FOLD_NO_STATE before the first */
	uint16_t far;	/* steps whose place this would be that have one further off */
	uint32_t state_repeats, start_repeats;
	uint64_t at; /* where its scope_rec_step lies: bytes since the buffer was made */
};
_Static_assert(sizeof(struct fold) == 64, "one cache line");
#define FOLD_NO_STATE 0xffff
#define FOLD_NO_REC   UINT64_MAX /* `at` of one that has none */
/* A step that has not moved for so many flush ages gives its place to a new one. */
#define FOLD_IDLE 100

/* ---- The thread's buffer ----------------------------------------------------------------------- */

struct tbuf {
	struct scope_tbuf_hdr h; /* what BPF and the loader read */
	unsigned char data[SCOPE_TBUF_DATA_SIZE];
	struct fold folds[FOLDS];   /* ours alone */
	struct fold far[FOLDS_FAR]; /* likewise; not touched as long as none is needed */
};

/* One load, no call that may allocate; the bytes come from the space glibc keeps for such libraries. */
#define TLS_NO_CALL __attribute__((tls_model("initial-exec")))
extern __thread struct tbuf *tbuf_self TLS_NO_CALL;

extern struct scope_control ncclscope_control;

/*
 * First callback of a thread, first since the loader bumped the epoch, or first after a fork.
 * Returns NULL when there is no memory: what would have been a record is then lost, tbuf_missed().
 */
struct tbuf *tbuf_slow(void);

/* Counts a record for which the thread had no buffer. Where nobody listens there would have been none, and nothing is lost. */
void tbuf_missed(void);

/* Hands the buffer to whoever listens and empties it. */
void tbuf_flush(struct tbuf *tb, uint32_t reason);

static inline struct tbuf *tbuf_get(void)
{
	struct tbuf *tb = tbuf_self;

	if (unlikely(!tb ||
		     tb->h.epoch != __atomic_load_n(&ncclscope_control.epoch, __ATOMIC_RELAXED)))
		tb = tbuf_slow();
	return tb;
}

/* Room for a record of `size` bytes, written but not committed. */
static inline void *tbuf_reserve(struct tbuf *tb, uint32_t size)
{
	if (unlikely(tb->h.len + size > SCOPE_TBUF_DATA_SIZE))
		tbuf_flush(tb, SCOPE_FLUSH_FULL);
	return tb->data + tb->h.len;
}

/*
 * len and rec_cnt change in one store: whoever reads this buffer from outside sees both or neither,
 * and the bytes before them.
 */
static inline void tbuf_commit_as(struct tbuf *tb, uint32_t size, uint32_t recs)
{
	uint64_t v = (uint64_t)(tb->h.rec_cnt + recs) << 32 | (tb->h.len + size);

	__atomic_store_n((uint64_t *)(void *)&tb->h.len, v, __ATOMIC_RELEASE);
}

static inline void tbuf_commit(struct tbuf *tb, uint32_t size)
{
	tbuf_commit_as(tb, size, 1);
}

/* One more record, in bytes that are committed already. */
static inline void tbuf_count(struct tbuf *tb)
{
	__atomic_store_n(&tb->h.rec_cnt, tb->h.rec_cnt + 1, __ATOMIC_RELEASE);
}

static inline void tbuf_flush_if_old(struct tbuf *tb, uint64_t now)
{
	uint64_t age = __atomic_load_n(&ncclscope_control.flush_ticks, __ATOMIC_RELAXED);

	/* signed: a flush in this very callback is later than `now` */
	if (unlikely((int64_t)(now - tb->h.flush_ts) > (int64_t)age))
		tbuf_flush(tb, SCOPE_FLUSH_AGE);
}

/* ---- Ids --------------------------------------------------------------------------------------- */

/* An id for a thread without a buffer, or with its block used up. */
uint64_t id_slow(struct tbuf *tb, uint32_t what);

static inline uint64_t id_make(uint64_t tag, uint64_t what, uint64_t counter)
{
	return tag << SCOPE_ID_TAG_SHIFT | what << SCOPE_ID_COUNTER_BITS | counter;
}

static inline uint64_t id_next(struct tbuf *tb, uint32_t what)
{
	if (unlikely(!tb || tb->h.next_id == tb->h.end_id))
		return id_slow(tb, what);
	return id_make(tb->h.tag, what, tb->h.next_id++);
}

/* ---- Interned strings -------------------------------------------------------------------------- */

/*
 * The id of one of NCCL's static strings, announced to the loader once per thread and epoch. Called
 * before the record that uses it is reserved, since it may append one of its own.
 */
uint16_t string_id(struct tbuf *tb, const char *s);

/* v1's enumerations as the strings that v2 and later use; "" for a number NCCL never had. */
const char *name_func(uint8_t func);
const char *name_datatype(uint8_t datatype);
const char *name_algo(uint8_t algo);
const char *name_proto(uint8_t proto);

/* ---- The process ------------------------------------------------------------------------------- */

/* The process' area, made or (after a fork) made anew; NULL without memory. */
struct scope_area *area_get(void);

/* The area if it is ready, else NULL; never makes one. */
struct scope_area *area_peek(void);

/* Nobody listens any more: NCCL's masks to 0, but for KernelCh, unless `ncclscope arm` asked to stay. */
void area_disarm(void);
/* What the user's environment says when the plugin is loaded; tests have more of them. */
void area_read_env(void);
/* Whether the user's event mask names one of `types`. */
bool area_env_wants(uint32_t types);
/* NCCL makes no AllGatherV of Broadcasts. */
bool area_env_no_allgatherv(void);
/* Types that somebody wants now; 0: nobody listens. All until a loader has said. */
uint32_t area_wanted(void);
/* What NCCL's masks have on, together. */
uint32_t area_masks(const struct scope_area *area);
/* Turns types off in all of them. */
void area_masks_clear(const struct scope_area *area, uint32_t types);

/*
 * init of a communicator: publishes it, decides the mask (*mask is NCCL's word) and fills `comm`.
 * Returns the context to give to NCCL, never 0.
 */
uint64_t comm_init(struct scope_comm *comm, int *mask, const char *name, ncclDebugLogger_t logfn);
/* The end of init, once a loader has been told of the communicator: from here on the user may call NCCL. */
void comm_settle(const struct scope_comm *comm, int *mask);
/* finalize; false when the context is not (or no longer) known. */
bool comm_finalize(uint64_t ctx);

/* ---- KernelCh and KernelPhase: kernels.c ----------------------------------------------------------- */

/* enum scope_no_kernels, and says so: why they would do harm; 0: not, or the user has them all the same by the event mask. */
uint8_t kernels_refused(const struct scope_comm *comm, ncclDebugLogger_t logfn);
/* NCCL has work: for which they stay on, as for a graph's capture, or not. Before ABI 5 there is no more to be known, and they stay on. */
void kernels_work(bool stays);
/* ABI 3 and 4, under the area's lock: the last moment of an init at which they may go off. `mask` is NCCL's word. */
void kernels_settle(struct scope_area *area, int *mask);
/* A GroupApi begins: the thread is in a group. `depth` is NCCL's. */
void kernels_group_begin(bool captured, int depth);
/* From here on all calls of a group must have one mask: if several threads make groups, none turns them off. */
void kernels_one_mask(void);
/* It makes a Broadcast, from ABI 6 on. */
void kernels_broadcast(int root);
/* A Group begins, from ABI 5 on: if it is in the thread that was in one, that has made all calls of it. */
void kernels_group_launch(void);
/* A GroupApi ends, which may be that of a group within another. */
void kernels_group_stop(void);
/* There is no communicator any more: nobody waits for a GPU's word. */
void kernels_end(struct scope_area *area);

/* UUID of the current CUDA device, 36 characters, if libcuda is already there; else all 0. */
void cuda_uuid(char uuid[SCOPE_GPU_UUID_LEN]);

#endif
