/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How long a cgroup's quota has held back a queue of a CPU, as the kernel counts it: no other of its figures is of one CPU. */
#ifndef NCCLSCOPE_QUOTA_BPF_H
#define NCCLSCOPE_QUOTA_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define QUOTA_NO_RT_PRIO 100 /* MAX_RT_PRIO: threads of that and above are subject to quotas */

/* Since 677ea015f231 ("sched: add throttled time stat for throttled children"), 6.6; from when it had threads to hold back. */
struct cfs_rq___self {
	__u64 throttled_clock_self; /* 0: it is not held back */
	__u64 throttled_clock_self_time;
} __attribute__((preserve_access_index));

/* Before, in a clock that goes slower on a slow CPU. Since 64eaf50731ac ("Fix cfs_rq_clock_pelt() for throttled cfs_rq"), 5.19. */
struct cfs_rq___pelt {
	__u64 throttled_clock_pelt;
	__u64 throttled_clock_pelt_time;
	int throttle_count;
} __attribute__((preserve_access_index));

/* Before, in one that stands while interrupts are handled. */
struct cfs_rq___task {
	__u64 throttled_clock_task;
	__u64 throttled_clock_task_time;
	int throttle_count;
} __attribute__((preserve_access_index));

struct rq___pelt {
	__u64 clock_pelt;
	unsigned long lost_idle_time;
} __attribute__((preserve_access_index));

static __always_inline bool quota_is_counted(void)
{
	return bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	       (bpf_core_field_exists(struct cfs_rq___self, throttled_clock_self_time) ||
		bpf_core_field_exists(struct cfs_rq___pelt, throttled_clock_pelt_time) ||
		bpf_core_field_exists(struct cfs_rq___task, throttled_clock_task_time));
}

/*
 * ns in all, up to now, by that cgroup's quota or one above it. Only under the lock of the CPU's queue, whose clock has been
 * set: at a switch or wake-up. Plain loads, as the verifier knows what they point to: bpf_probe_read_kernel() costs 30 ns.
 */
static __always_inline __u64 quota_held_ns(struct cfs_rq *cfs_rq)
{
	struct cfs_rq___self *self = (void *)cfs_rq;
	struct cfs_rq___pelt *pelt = (void *)cfs_rq;
	struct cfs_rq___task *task = (void *)cfs_rq;
	struct rq___pelt *rq;
	__u64 since;

	if (bpf_core_field_exists(self->throttled_clock_self_time)) {
		since = self->throttled_clock_self;
		return self->throttled_clock_self_time + (since ? cfs_rq->rq->clock - since : 0);
	}
	if (bpf_core_field_exists(pelt->throttled_clock_pelt_time)) {
		if (!pelt->throttle_count)
			return pelt->throttled_clock_pelt_time;
		rq = (void *)cfs_rq->rq;
		return pelt->throttled_clock_pelt_time + rq->clock_pelt - rq->lost_idle_time -
		       pelt->throttled_clock_pelt;
	}
	if (!task->throttle_count)
		return task->throttled_clock_task_time;
	return task->throttled_clock_task_time + cfs_rq->rq->clock_task -
	       task->throttled_clock_task;
}

#endif
