/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of each thread of a recorded process, as sched.bpf.c follows it and nccl.bpf.c begins and ends
 * it. What is here runs once in the life of a thread.
 */
#ifndef NCCLSCOPE_SCHED_BPF_H
#define NCCLSCOPE_SCHED_BPF_H

#include "scope.bpf.h"

#define PF_EXITING 0x00000004

#ifndef TASK_INLINE
#define TASK_INLINE __noinline
#endif

/*
 * By tid. BPF inserts at fork or first sight and deletes at exit. Full means: the states of threads beyond
 * are not known.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct scope_task);
} scope_tasks SCOPE_SHARED SEC(".maps");

/* Tells the loader who a thread is; again later if the ring has no room now. */
static TASK_INLINE int task_tell(struct task_struct *task, struct scope_task *t, __u64 now)
{
	struct scope_ev_thread *e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);

	if (!e) {
		scope_count(SCOPE_STAT_SCHED_LOST, 1);
		return 0;
	}
	e->h.abi = SCOPE_ABI;
	e->h.kind = SCOPE_EV_THREAD;
	e->h.size = sizeof(*e);
	e->h.ts_ns = now;
	e->start_ns = BPF_CORE_READ(task, group_leader, start_time);
	e->tgid = BPF_CORE_READ(task, tgid);
	e->tid = BPF_CORE_READ(task, pid);
	e->ns_tgid = scope_ns_nr(BPF_CORE_READ(task, group_leader, thread_pid));
	e->ns_tid = scope_ns_nr(BPF_CORE_READ(task, thread_pid));
	e->seq = t->seq;
	e->state = t->state;
	e->born = t->born;
	__builtin_memset(e->pad, 0, sizeof(e->pad));
	BPF_CORE_READ_INTO(&e->comm, task, comm);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	scope_count(SCOPE_STAT_SCHED, 1);
	t->told = 1;
	t->born = 0;
	return 0;
}

/* A thread that was not known so far is in `state`. NULL: it is on its way out, or the map is full. */
static TASK_INLINE struct scope_task *task_begin(struct task_struct *task, __u32 tid, __u8 state,
						 bool born, __u64 now)
{
	struct scope_task fresh = {.state = state, .born = born}, *t;

	if (BPF_CORE_READ(task, flags) & PF_EXITING)
		return NULL;
	if (bpf_map_update_elem(&scope_tasks, &tid, &fresh, BPF_NOEXIST))
		scope_count(SCOPE_STAT_MAP_FULL, 1);
	t = bpf_map_lookup_elem(&scope_tasks, &tid);
	if (t)
		task_tell(task, t, now);
	return t;
}

#endif
