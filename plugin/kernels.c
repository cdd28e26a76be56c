// SPDX-License-Identifier: BSD-2-Clause
/*
 * KernelCh and KernelPhase, which NCCL does not bear to be switched while it works. Each Send and Recv of a group takes the mask as it is
 * at its call, and the GPU goes by that of one of a pair: if they differ, NCCL's proxy waits for the GPU's word for good,
 * and with it whoever destroys the communicator (2.28.9: enqueue.cc, transport/profiler.cc). Replays of a graph go by the mask at its capture.
 * So they go off only between groups, by the thread that calls NCCL, and not at all where there are graphs. And NCCL takes
 * memory for them, without looking whether it gets any.
 *
 * The stop of a GroupApi is not the end of a group: NCCL makes it at an inner one's end too (2.28.9 to 2.30.7: ncclGroupEnd counts down
 * what ncclGroupStart has not counted up), and starts another at the next call. But a Group on the thread that calls NCCL begins only when
 * all calls have been made. That of a non-blocking communicator begins elsewhere.
 *
 * And of another thread nobody knows whether it has looked at the mask and is about to make a Send, or the Recv to it: where several threads
 * call NCCL they stay on. Unless all that they have made are collectives: host and GPU go by the mask of each, and both count those without
 * KernelCh too (2.28.3 to 2.30.7: enqueue.cc, incWorkCounter() of proxy.cc), so that each is waited for in its own place. After a copy to
 * oneself, as in each AlltoAll, it is not: the GPU counts that and the host does not (nProxyOps in enqueue.cc), and a collective is waited
 * for where an earlier one was, which must then have had KernelCh as well. From interface 7 on the host counts nothing without
 * KernelCh. That leaves another thread's first Send or Recv, and its capture of the first graph, if it comes in the very moment when they go
 * off.
 *
 * Interfaces 3 and 4 have no GroupApi: NCCL tells of a group when it launches it (2.26.3 to 2.27.7: hostStreamPlanTask() of enqueue.cc), or replays
 * it if it was captured, long after its calls have taken their masks (taskAppend()). There they stay as they are at the end of the first
 * communicator's init, when nobody can have made a call yet: until the last one has ended.
 *
 * Broadcasts have no mask from interface 6 on: the GPU writes nothing in their places, nor does the host count them if a group has several
 * roots (2.29.2 to 2.30.7: allgatherv_sched.cc; from interface 7 on it counts none). Once it has counted less than the GPU, what is
 * waited for in such a place is there when 64 more with KernelCh have written: then they stay on. And where these do not come,
 * whoever destroys the communicator waits for good: so from interface 6 on they come on only where the user says so.
 */
#include <sys/statvfs.h>
#include "plugin.h"

#define SHM	"/dev/shm"
#define ROOM	(1ULL << 30) /* for each rank of the node: thirty communicators of NCCL 2.28.9 */
#define RANKS	8	     /* of a node, where NCCL does not say */
#define SETTLED 10	     /* flush ages: a loader that writes masks has done so by then */

/* How often there was a last communicator, and one more: who was in a group then is in none. */
static uint32_t era = 1;
/* Threads that have begun a group in it. */
static uint32_t callers;
/* There has been what all calls of a group must have one mask for. */
static bool one_mask;
/* The era in which this thread has become one of the callers. */
static __thread uint32_t called TLS_NO_CALL;
/* That in which it has begun its group; 0: none. */
static __thread uint32_t in_group TLS_NO_CALL;
/* One more than the root of the Broadcasts in that; 0: none. */
static __thread uint32_t broadcast_root TLS_NO_CALL;
/* Its last GroupApi is of a call that is a group of its own. */
static __thread bool one_call TLS_NO_CALL;
/* Since when nobody has wanted what is on (0: not so), in which epoch and with which hold: whoever changes these may be writing masks. */
static uint64_t unwanted_ts;
static uint32_t unwanted_epoch, unwanted_hold;

/* Broadcasts are collectives like others where NCCL makes no AllGatherV of them (2.29.2 to 2.30.7: collTaskAppend() of enqueue.cc). */
static bool may_hang(const struct scope_comm *comm)
{
	return comm->api >= 6 && !area_env_no_allgatherv();
}

static void say_may_hang(bool all_the_same, ncclDebugLogger_t logfn)
{
	if (!logfn)
		return;
	if (all_the_same)
		logfn(NCCL_LOG_INFO, NCCL_PROFILE, __FILE__, __LINE__,
		      "ncclscope: KernelCh events by NCCL_PROFILE_EVENT_MASK, with which NCCL 2.29 "
		      "and newer may wait for good after Broadcasts; "
		      "NCCL_ALLGATHERV_ENABLE=0 as well has them without that");
	else
		logfn(NCCL_LOG_INFO, NCCL_PROFILE, __FILE__, __LINE__,
		      "ncclscope: no KernelCh events, with which NCCL 2.29 and newer may wait for "
		      "good after Broadcasts; NCCL_ALLGATHERV_ENABLE=0 has them without that, "
		      "NCCL_PROFILE_EVENT_MASK=0x7fff all the same");
}

/*
 * The pool of operations of a proxy: in each process for each communicator, in shared memory, all of it at once. Those of one node over NVLink have
 * none but for KernelCh, and where there is no room NCCL follows a NULL (NVIDIA/nccl#2326).
 */
static bool shm_full(const struct scope_comm *comm, ncclDebugLogger_t logfn)
{
	uint64_t ranks = RANKS, free = 0;
	struct statvfs st;

	if (comm->nnodes > 0 && comm->nranks > 0)
		ranks = ((uint64_t)comm->nranks + (uint64_t)comm->nnodes - 1) /
			(uint64_t)comm->nnodes;
	if (!statvfs(SHM, &st))
		free = (uint64_t)st.f_bavail * st.f_frsize;
	if (free >= ranks * ROOM)
		return false;
	if (logfn)
		logfn(NCCL_LOG_INFO, NCCL_PROFILE, __FILE__, __LINE__,
		      "ncclscope: no KernelCh events, for which NCCL needs room in " SHM
		      ": %llu MiB are free, of %llu; NCCL_PROFILE_EVENT_MASK=0x7fff has them all "
		      "the same",
		      (unsigned long long)free >> 20, (unsigned long long)(ranks * ROOM) >> 20);
	return true;
}

uint8_t kernels_refused(const struct scope_comm *comm, ncclDebugLogger_t logfn)
{
	bool by_env = area_env_wants(KERNELS), hangs = may_hang(comm);

	if (hangs)
		say_may_hang(by_env, logfn);
	if (by_env)
		return 0;
	if (hangs)
		return SCOPE_KERNELS_MAY_HANG;
	return shm_full(comm, logfn) ? SCOPE_KERNELS_SHM_FULL : 0;
}

void kernels_work(bool stays)
{
	uint8_t used = stays ? SCOPE_KERNELS_STAY : SCOPE_KERNELS_USED;
	struct scope_area *area = area_peek();

	if (area && !(__atomic_load_n(&area->kernels_used, __ATOMIC_RELAXED) & used) &&
	    area_masks(area) & KERNELS)
		__atomic_fetch_or(&area->kernels_used, used, __ATOMIC_RELAXED);
}

void kernels_settle(struct scope_area *area, int *mask)
{
	if (!((uint32_t)__atomic_load_n(mask, __ATOMIC_RELAXED) & KERNELS) ||
	    __atomic_fetch_or(&area->kernels_used, SCOPE_KERNELS_USED, __ATOMIC_SEQ_CST))
		return;
	/* A loader says what it wants before it looks whether they are used: we see that, or it leaves them on. */
	__atomic_fetch_and(mask, (int)(area_wanted() | ~KERNELS), __ATOMIC_SEQ_CST);
}

void kernels_group_begin(bool captured, int depth)
{
	uint32_t now = __atomic_load_n(&era, __ATOMIC_RELAXED);

	one_call = depth == 1;
	if (in_group != now) /* the one before has been launched */
		broadcast_root = 0;
	in_group = now;
	if (called != now) {
		called = now;
		__atomic_fetch_add(&callers, 1, __ATOMIC_SEQ_CST);
	}
	kernels_work(captured);
}

void kernels_one_mask(void)
{
	if (!__atomic_load_n(&one_mask, __ATOMIC_RELAXED))
		__atomic_store_n(&one_mask, true, __ATOMIC_SEQ_CST);
}

void kernels_broadcast(int root)
{
	uint32_t before = broadcast_root;

	broadcast_root = (uint32_t)root + 1;
	if ((before && before != broadcast_root) || __atomic_load_n(&one_mask, __ATOMIC_RELAXED))
		kernels_work(true);
}

/* This thread, which has made all calls of its group, does not divide another's. */
static bool nobody_else(void)
{
	return !__atomic_load_n(&one_mask, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&callers, __ATOMIC_SEQ_CST) == 1;
}

/*
 * For so long that a loader which has just looked at the mask has written it, and that one which comes back has. Another thread may
 * look, too: then it takes a little longer.
 */
static bool unwanted_long(void)
{
	uint32_t epoch = __atomic_load_n(&ncclscope_control.epoch, __ATOMIC_RELAXED);
	uint32_t hold = __atomic_load_n(&ncclscope_control.kernels_hold, __ATOMIC_RELAXED);
	uint64_t since = __atomic_load_n(&unwanted_ts, __ATOMIC_RELAXED), now = clock_now();

	if (since && __atomic_load_n(&unwanted_epoch, __ATOMIC_RELAXED) == epoch &&
	    __atomic_load_n(&unwanted_hold, __ATOMIC_RELAXED) == hold)
		return (now - since) / (SETTLED + (uint64_t)hold) >
		       __atomic_load_n(&ncclscope_control.flush_ticks, __ATOMIC_RELAXED);
	__atomic_store_n(&unwanted_epoch, epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&unwanted_hold, hold, __ATOMIC_RELAXED);
	__atomic_store_n(&unwanted_ts, now, __ATOMIC_RELAXED);
	return false;
}

void kernels_group_launch(void)
{
	uint32_t now = __atomic_load_n(&era, __ATOMIC_RELAXED), unwanted;
	struct scope_area *area = area_peek();

	if (in_group != now)
		return;
	in_group = 0;
	if (!area || __atomic_load_n(&area->kernels_used, __ATOMIC_RELAXED) != SCOPE_KERNELS_USED)
		return;
	unwanted = area_masks(area) & KERNELS & ~area_wanted();
	if (!unwanted)
		__atomic_store_n(&unwanted_ts, 0, __ATOMIC_RELAXED);
	else if (unwanted_long() && nobody_else())
		area_masks_clear(area, unwanted);
}

void kernels_group_stop(void)
{
	if (one_call)
		kernels_group_launch();
}

void kernels_end(struct scope_area *area)
{
	/* where NCCL has failed, a group may not have been launched */
	__atomic_fetch_add(&era, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&callers, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&one_mask, false, __ATOMIC_RELAXED);
	__atomic_store_n(&area->kernels_used, 0, __ATOMIC_RELAXED);
}
