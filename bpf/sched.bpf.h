/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of each thread of a recorded process, as sched.bpf.c follows it and nccl.bpf.c begins and ends
 * it.
 */
#ifndef NCCLSCOPE_SCHED_BPF_H
#define NCCLSCOPE_SCHED_BPF_H

#include "scope.bpf.h"

#define NO_CPU 0xffffffffu

/* ---- CPUs --------------------------------------------------------------------------------------- */

struct scope_cpu {
	__u64 net_rx_ns; /* in soft interrupts that handle packets, in all; the loader reads it: first */
	__u64 net_rx_since_ns;
	__u32 waiters; /* recorded threads that wait in its queue: its switches are of interest */
	__u32 irq_depth;
	__u32 irq_tid;	  /* the thread below */
	__u16 irqs_wait;  /* some may have gathered that are not told yet */
	__u16 irqs_busy;  /* they are being written */
	__u64 irq_end_ns; /* of the last outermost one */
	__u64 irq_ns;
	__u64 curr;	     /* the task_struct that runs, since the first switch that we see */
	__u64 irq_nested_ns; /* an interrupt within another ended last */
};

_Static_assert(sizeof(struct scope_cpu) == 64 &&
		       __builtin_offsetof(struct scope_cpu, net_rx_ns) == 0,
	       "attach__net_rx() of the loader");

/* By number. BPF writes all of it; the loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* begins at a page: a cache line each */
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scope_cpu);
} scope_cpus SCOPE_SHARED SEC(".maps");

static __always_inline struct scope_cpu *cpu_get(__u32 cpu)
{
	return bpf_map_lookup_elem(&scope_cpus, &cpu);
}

static __always_inline void waiters_add(__u32 cpu, __s32 n)
{
	struct scope_cpu *c = cpu_get(cpu);

	if (c)
		__sync_fetch_and_add(&c->waiters, n);
}

/* ---- Threads ------------------------------------------------------------------------------------ */

/*
 * By tid, without a hash: each switch of a recorded thread looks up two. BPF takes a free slot at fork or first sight
 * and gives it back at exit. Where two threads take one at the same time, the other is found to be missing at its
 * next record, and begins anew in scope_tasks.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* begins at a page: a cache line each */
	__uint(max_entries, SCOPE_TASK_SLOTS);
	__type(key, __u32);
	__type(value, struct scope_task);
} scope_slots SCOPE_SHARED SEC(".maps");

/*
 * Threads whose slot was another's. BPF inserts and deletes as above. Full means: the states of threads beyond
 * are not known.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct scope_task);
} scope_tasks SCOPE_SHARED SEC(".maps");

static __always_inline struct scope_task *task_slot(__u32 tid)
{
	__u32 slot = tid % SCOPE_TASK_SLOTS;

	return bpf_map_lookup_elem(&scope_slots, &slot);
}

static __always_inline struct scope_task *task_find(__u32 tid)
{
	struct scope_task *t = task_slot(tid);

	if (!t || t->tid == tid)
		return t;
	return bpf_map_lookup_elem(&scope_tasks, &tid);
}

/*
 * One that runs, or is gone, keeps no CPU's switches of interest. The kernel skips a program now and then, and is then silent
 * about what it would have told: a wait that nobody ended would count for good.
 */
static __always_inline void task_waits_no_more(struct scope_task *t)
{
	if (t->state == SCOPE_TASK_WAIT && t->wait_ns)
		waiters_add(t->cpu, -1);
	t->wait_ns = 0;
	t->quota_rq = 0; /* also where nobody told of its end */
}

static __always_inline void task_forget(__u32 tid)
{
	struct scope_task *t = task_find(tid);

	if (!t)
		return;
	task_waits_no_more(t);
	if (t == task_slot(tid))
		t->tid = 0;
	else
		bpf_map_delete_elem(&scope_tasks, &tid);
}

/* Tells the loader who a thread is; again later if the ring has no room now. */
static TASK_INLINE int task_tell(struct task_struct *task, struct scope_task *t, __u64 now)
{
	struct scope_ev_thread *e = NULL;

	if (scope_may_tell(task, sizeof(*e)))
		e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);
	if (!e)
		return 0;
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
	__builtin_memcpy(t->comm, e->comm, sizeof(t->comm));
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	scope_count(SCOPE_STAT_SCHED, 1);
	t->told = 1;
	t->born = 0;
	return 0;
}

/* ---- Switches that gather ----------------------------------------------------------------------- */

/* By CPU; the loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scope_switches);
} scope_switches SCOPE_SHARED SEC(".maps");

static __always_inline struct scope_switches *switches_of(__u32 cpu)
{
	return bpf_map_lookup_elem(&scope_switches, &cpu);
}

/* The number of the last one that is in the ring, or lost. */
static __always_inline __u32 switches_told(const struct scope_switches *q, __u32 told)
{
	__u32 copied = q->copied; /* perhaps long ago */

	return copied - told <= SCOPE_SWITCHES ? copied : told;
}

/*
 * Puts the n from number `first` on into the ring, in a place for `most`. If the CPU has told meanwhile (`told` is another) then
 * these were among it, and their slots may hold others by now.
 */
#define SWITCHES_PUT(most)                                                                         \
	static __always_inline bool switches_put_##most(struct scope_switches *q, __u32 cpu,       \
							__u32 told, __u32 first, __u32 n)          \
	{                                                                                          \
		struct scope_ev_switches *e;                                                       \
		__u32 i;                                                                           \
                                                                                                   \
		e = bpf_ringbuf_reserve(&scope_ring, SCOPE_SWITCHES_SIZE(most), 0);                \
		if (!e)                                                                            \
			return false;                                                              \
		e->h.abi = SCOPE_ABI;                                                              \
		e->h.kind = SCOPE_EV_SWITCHES;                                                     \
		e->h.size = SCOPE_SWITCHES_SIZE(n);                                                \
		e->h.ts_ns = q->at[first % SCOPE_SWITCH_SLOTS].ts_ns;                              \
		e->cpu = cpu;                                                                      \
		e->cpu_seq = first;                                                                \
		barrier_var(n); /* else clang, which knows it, leaves the first condition out */   \
		for (i = 0; i < (most) && i < n; i++)                                              \
			e->at[i] = q->at[(first + i) % SCOPE_SWITCH_SLOTS];                        \
		smp_barrier();                                                                     \
		if (q->told != told)                                                               \
			bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);                                  \
		else                                                                               \
			bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);                                   \
		return true;                                                                       \
	}

/* The verifier wants constant sizes. */
SWITCHES_PUT(4)
SWITCHES_PUT(SCOPE_SWITCHES)

/* Those up to number `last`. They are lost if the ring has no room: whoever comes behind them must not come first. */
static TASK_INLINE int switches_tell(struct scope_switches *q, __u32 cpu, __u32 last)
{
	__u32 told = q->told, from = switches_told(q, told), n = last - from;
	bool ok;

	if (!n || n > SCOPE_SWITCHES)
		return 0;
	smp_barrier();
	if (n <= 4)
		ok = switches_put_4(q, cpu, told, from + 1, n);
	else
		ok = switches_put_SCOPE_SWITCHES(q, cpu, told, from + 1, n);
	if (!ok && q->told != told) /* by the CPU, meanwhile: told or counted */
		return 0;
	scope_count(ok ? SCOPE_STAT_SCHED : SCOPE_STAT_SCHED_LOST, ok ? 1 : n);
	return 0;
}

/*
 * What another CPU has gathered, up to number `last`: it goes on meanwhile. Who knows of `last` got that from a thread that the CPU
 * has switched away from, or holds the CPU's run queue, or is on it: so what is older is there to be seen.
 */
static TASK_INLINE int switches_copy(__u32 cpu, __u32 last)
{
	struct scope_switches *q = switches_of(cpu);
	__u32 n = q ? last - switches_told(q, q->told) : 0;

	if (!q || !n || n > SCOPE_SWITCHES)
		return 0;
	switches_tell(q, cpu, last);
	q->copied = last;
	return 0;
}

/* All that the CPU that we are on has gathered. */
static __always_inline void switches_copy_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scope_switches *q = scope_sched ? switches_of(cpu) : NULL;

	if (q)
		switches_copy(cpu, q->seq);
}

/* ---- Interrupts that gather --------------------------------------------------------------------- */

/*
 * What has come on top of the thread that runs on a CPU, until there are SCOPE_IRQS of them or it leaves the CPU. A chunk of
 * the thread or its end needs them before: these, and the loader when it reads a buffer from outside, tell a copy.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scope_irqs);
} scope_irqs SCOPE_SHARED SEC(".maps");

static __always_inline struct scope_irqs *irqs_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scope_irqs, &zero);
}

static __always_inline void irqs_count(__u32 tid, bool told)
{
	struct scope_task *t = told ? NULL : task_find(tid);

	if (t) /* its next record shows that one is missing */
		__sync_fetch_and_add(&t->seq, 1);
	scope_count(told ? SCOPE_STAT_SCHED : SCOPE_STAT_SCHED_LOST, 1);
}

/*
 * Only where nothing else on the CPU writes them: at a switch, and at the end of the outermost interrupt. `task`: whose
 * share of the ring it is.
 */
static TASK_INLINE int irqs_tell(struct scope_irqs *q, struct task_struct *task)
{
	__u32 n = SCOPE_IRQS_N(q->rec.fill), size;

	if (!n || n > SCOPE_IRQS)
		return 0;
	size = SCOPE_IRQS_SIZE(n);
	q->rec.h.size = size;
	irqs_count(q->rec.tid,
		   scope_may_tell(task, size) &&
			   !bpf_ringbuf_output(&scope_ring, &q->rec, size, BPF_RB_NO_WAKEUP));
	q->rec.fill = SCOPE_IRQS_NR(q->rec.fill) << 8;
	return 0;
}

/*
 * Those of thread `tid`, which this one is or was, before a record of its that is younger. An interrupt or, where we can be
 * preempted, another thread may write them meanwhile: who begins another record has told this one.
 */
static TASK_INLINE int irqs_tell_copy(struct task_struct *task, __u32 tid)
{
	struct scope_irqs *q = scope_sched ? irqs_here() : NULL;
	struct scope_ev_irq *e = NULL;
	__u64 fill;
	__u32 n;

	if (!q)
		return 0;
	fill = q->rec.fill;
	barrier();
	n = SCOPE_IRQS_N(fill);
	if (!n || n > SCOPE_IRQS || q->rec.tid != tid || q->copied == fill)
		return 0;
	q->copied = fill;
	if (scope_may_tell(task, sizeof(*e)))
		e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);
	if (!e) { /* whatever is told later: the chunk, or the end, comes without them */
		irqs_count(tid, false);
		return 0;
	}
	*e = q->rec;
	barrier();
	if (SCOPE_IRQS_NR(q->rec.fill) != SCOPE_IRQS_NR(fill)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	e->fill = fill;
	e->h.size = SCOPE_IRQS_SIZE(n);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	irqs_count(tid, true);
	return 0;
}

/*
 * A thread that was not known so far is in `state`: asleep from now on, if it has not just been born. NULL: it is on its way out, or the
 * map is full. All is in its slot as that shows: from then on it is others' as well.
 */
static TASK_INLINE struct scope_task *task_begin(struct task_struct *task, __u32 tid, __u8 state,
						 bool born, __u64 now)
{
	struct scope_task fresh = {.state = state, .born = born, .tid = tid, .at_cpu = NO_CPU};
	struct scope_task *t = task_slot(tid);

	if (BPF_CORE_READ(task, flags) & PF_EXITING)
		return NULL;
	if (t && t->tid == tid && !born) /* another CPU has begun it meanwhile */
		return t;
	if (state == SCOPE_TASK_BLOCKED && !born)
		fresh.asleep_ns = now;
	if (t && (!t->tid || t->tid == tid)) { /* of one whose end has gone by unseen */
		task_waits_no_more(t);
		*t = fresh;
	} else {
		if (bpf_map_update_elem(&scope_tasks, &tid, &fresh, BPF_NOEXIST))
			scope_count(SCOPE_STAT_MAP_FULL, 1);
		t = bpf_map_lookup_elem(&scope_tasks, &tid);
	}
	if (t)
		task_tell(task, t, now);
	return t;
}

#endif
