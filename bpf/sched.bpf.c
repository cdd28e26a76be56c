// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What the scheduler and interrupts do to the threads of recorded processes: each context switch that concerns such a
 * thread, or a CPU that such a thread waits for; all others leave after three loads. Switches that take little room gather in
 * records of several.
 */
#include "sched.bpf.h"
#include "quota.bpf.h"
#include "woken.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define VEC_NET_RX  3 /* NET_RX_SOFTIRQ */
#define QUOTA_KNOWN 1 /* quota_rq: quota_ns is what it was in the queue before */

/* `ours`: a recorded thread misses it if it is lost (false). */
static __always_inline bool emit(void *record, __u32 size, __u64 flags, bool may, bool ours)
{
	bool told = may && !bpf_ringbuf_output(&scope_ring, record, size, flags);

	scope_count(told   ? SCOPE_STAT_SCHED
		    : ours ? SCOPE_STAT_SCHED_LOST
			   : SCOPE_STAT_SCHED_OTHERS,
		    1);
	return told;
}

/* ---- Quotas ------------------------------------------------------------------------------------- */

/*
 * A thread waits for a CPU from now on: how much of that is a quota's? Whether one holds it back at the begin says little: the other
 * threads of its cgroup may use up what is left while it waits. So it is what its queue's time grows by meanwhile.
 */
static __always_inline void quota_begin(struct scope_task *t, struct task_struct *task)
{
	struct cfs_rq *cfs_rq;

	if (!quota_is_counted() || task->prio < QUOTA_NO_RT_PRIO)
		return;
	cfs_rq = task->se.cfs_rq;
	if (!cfs_rq)
		return;
	t->quota_rq = (__u64)cfs_rq;
	t->quota_ns = quota_held_ns(cfs_rq);
}

/* Of its wait so far. The next state begins without: task_waits_no_more(). */
static __always_inline __u64 quota_so_far(struct scope_task *t, struct task_struct *task, __u64 now)
{
	struct cfs_rq *cfs_rq;
	__u64 ns, waited_ns = now - t->wait_ns;

	if (!t->quota_rq || !quota_is_counted())
		return 0;
	ns = t->quota_ns;
	if (t->quota_rq != QUOTA_KNOWN) {
		cfs_rq = task->se.cfs_rq;
		if (!cfs_rq || (__u64)cfs_rq != t->quota_rq) /* it is in another cgroup by now */
			return 0;
		ns = quota_held_ns(cfs_rq) - ns;
	}
	return ns < waited_ns ? ns : waited_ns;
}

/* It goes to the queue of another CPU, where it does not wait for a quota but for its turn. */
static __always_inline void quota_keep(struct scope_task *t, struct task_struct *task, __u64 now)
{
	t->quota_ns = quota_so_far(t, task, now);
	t->quota_rq = QUOTA_KNOWN;
}

/* ---- A thread's states -------------------------------------------------------------------------- */

static __always_inline struct scope_task *task_get(struct task_struct *task, __u8 state, __u64 now)
{
	__u32 tid = task->pid;
	struct scope_task *t = task_find(tid);

	if (!t)
		return task_begin(task, tid, state, false, now);
	if (!t->told)
		task_tell(task, t, now);
	return t;
}

struct task_struct___cpu {
	unsigned int cpu; /* in thread_info since bcf9033e5449 ("sched: move CPU field"), 5.16 */
};

static __always_inline __u32 task_cpu(struct task_struct *task)
{
	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return BPF_CORE_READ((struct task_struct___cpu *)task, cpu);
}

/* Why a thread that leaves its CPU asleep does so. */
static __always_inline __s32 task_why(struct task_struct *task)
{
	__s32 why = task_held(task);

	if (why != SCOPE_WHY_OTHER)
		return why;
	why = task_syscall(task);
	if (why != SCOPE_WHY_PAGEFAULT && BPF_CORE_READ_BITFIELD(task, in_iowait))
		return SCOPE_WHY_IO;
	return why;
}

/* Its CPU has one more of them: waiters_add(). */
static __always_inline void task_wait(struct scope_task *t, __u32 cpu, __u64 now)
{
	t->state = SCOPE_TASK_WAIT;
	t->wait_ns = now;
	t->cpu = cpu;
}

/* ---- Switches ----------------------------------------------------------------------------------- */

/*
 * What came on top of a thread is told before it leaves the CPU. It can leave it within an interrupt, and even while that is
 * being written, where interrupts are threads' (PREEMPT_RT) and we can be preempted (from Linux 7.0 on).
 */
static __always_inline void irqs_flush(struct scope_cpu *c, struct task_struct *prev)
{
	struct scope_irqs *q;

	if (!c->irqs_wait || c->irqs_busy)
		return;
	c->irqs_wait = 0;
	q = irqs_here();
	if (q)
		irqs_tell(q, prev);
}

/* The next record of a thread is the one that `cpu` makes now. What another CPU has of it comes before. */
static __always_inline void task_goes_on(struct scope_task *t, struct scope_switches *q, __u32 cpu)
{
	if (t->at_cpu != cpu)
		switches_copy(t->at_cpu, t->at_seq);
	t->at_cpu = cpu;
	t->at_seq = q->seq + 1;
}

static __always_inline bool is_named(const char *a, const char *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;

	return x[0] == y[0] && x[1] == y[1];
}

/* prev leaves `cpu`. `preempt`: whatever its state says, it did not want to. How many wait for the CPU more than did. */
static __always_inline __s32 switch_out(struct scope_cpu *c, struct scope_switches *q,
					struct scope_switch *s, __u32 cpu, bool preempt,
					struct task_struct *prev)
{
	__s32 more = 0;

	struct scope_task *t = task_get(prev, SCOPE_TASK_RUN, s->ts_ns);

	irqs_flush(c, prev);
	if (!t)
		return 0;
	task_waits_no_more(t); /* nobody may have told that it got its CPU */
	task_goes_on(t, q, cpu);
	s->flags |= SCOPE_SWITCH_PREV;
	s->prev_seq = ++t->seq;
	if (preempt || !task_state(prev)) {
		task_wait(t, cpu, s->ts_ns);
		more = 1;
		quota_begin(t, prev);
	} else {
		t->asleep_ns = s->ts_ns;
		t->asleep = 0;
		smp_barrier(); /* whoever finds it asleep finds this */
		t->state = SCOPE_TASK_BLOCKED;
		q->why = task_why(prev);
	}
	s->prev_state = t->state;
	if (!t->told || !is_named(t->comm, prev->comm))
		q->whole = 1;
	return more;
}

/* The same, of next. Most follow one that waits from now on: both together change nothing in a word that all CPUs write. */
static __always_inline __s32 switch_in(struct scope_switches *q, struct scope_switch *s, __u32 cpu,
				       struct task_struct *next)
{
	struct scope_task *t = task_get(next, SCOPE_TASK_WAIT, s->ts_ns);
	__s32 more = 0;

	if (!t)
		return 0;
	task_goes_on(t, q, cpu);
	s->flags |= SCOPE_SWITCH_NEXT;
	s->next_seq = ++t->seq;
	if (t->state == SCOPE_TASK_WAIT && t->wait_ns) {
		q->wait_ns = t->wait_ns;
		q->throttled_ns = quota_so_far(t, next, s->ts_ns);
	}
	if (t->state == SCOPE_TASK_WAIT && t->wait_ns && t->cpu == cpu) {
		more = -1;
		t->wait_ns = 0;
	}
	task_waits_no_more(t);
	t->state = SCOPE_TASK_RUN;
	if (!t->told)
		q->whole = 1;
	return more;
}

/*
 * next is not recorded, or not any more: its end, or a recording's, has gone by unseen where the kernel skips a program. What it waited
 * for it has.
 */
static __always_inline void stranger_in(__u32 tid)
{
	struct scope_task *t = tid ? task_slot(tid) : NULL; /* 0: idle, which has none */

	if (t && t->tid && t->tid != tid)
		t = bpf_map_lookup_elem(&scope_tasks, &tid);
	if (t && t->tid == tid)
		task_waits_no_more(t);
}

/* One party with room is enough. A switch between two others that a recorded thread waits for is nobody's. */
static __always_inline bool switch_may(const struct scope_switch *s, struct task_struct *prev,
				       struct task_struct *next)
{
	if (!scope_ring_is_filling())
		return true;
	if (!(s->flags & (SCOPE_SWITCH_PREV | SCOPE_SWITCH_NEXT)))
		return bpf_ringbuf_query(&scope_ring, BPF_RB_AVAIL_DATA) <
		       bpf_ringbuf_query(&scope_ring, BPF_RB_RING_SIZE) / 2;
	return (s->flags & SCOPE_SWITCH_PREV &&
		scope_share_take(prev->tgid, scope_task_uid(prev), sizeof(struct scope_ev_switch),
				 SHARE_CONTEXT)) ||
	       (s->flags & SCOPE_SWITCH_NEXT &&
		scope_share_take(next->tgid, scope_task_uid(next), sizeof(struct scope_ev_switch),
				 SHARE_CONTEXT));
}

/* A record of its own: of `s` and what `q` says beside it. */
static TASK_INLINE int switch_tell(struct scope_switches *q, struct scope_switch *s, __u32 cpu,
				   struct task_struct *prev, struct task_struct *next)
{
	struct scope_ev_switch e = {
		.h = {SCOPE_ABI, SCOPE_EV_SWITCH, sizeof(e), s->ts_ns},
		.cpu = cpu,
		.cpu_seq = q->seq + 1,
		.flags = s->flags & ~SCOPE_SWITCH_WAITED,
		.prev_tid = s->prev_tid,
		.prev_tgid = prev->tgid,
		.prev_seq = s->prev_seq,
		.why = q->why,
		.prev_state = s->prev_state,
		.next_tid = s->next_tid,
		.next_seq = s->next_seq,
		.wait_ns = q->wait_ns,
		.throttled_ns = q->throttled_ns,
	};
	struct scope_task *t;

	__builtin_memcpy(e.prev_comm, prev->comm, sizeof(e.prev_comm));
	if (!emit(&e, sizeof(e), scope_wake_rarely(e.cpu_seq), switch_may(s, prev, next),
		  e.flags & (SCOPE_SWITCH_PREV | SCOPE_SWITCH_NEXT)))
		return 0;
	t = e.flags & SCOPE_SWITCH_PREV ? task_find(e.prev_tid) : NULL;
	if (t)
		__builtin_memcpy(t->comm, e.prev_comm, sizeof(t->comm));
	return 0;
}

/* Whether it says all by what scope_switch has room for. Beyond a part of the ring all have a share of it: each for itself. */
static __always_inline bool switch_fits(struct scope_switches *q, struct scope_switch *s,
					__u32 prev_tid)
{
	__u64 waited = s->ts_ns - q->wait_ns;

	if (q->whole || q->throttled_ns || q->why != (__s16)q->why)
		return false;
	if (s->flags == SCOPE_SWITCH_WATCHED ||
	    (s->flags & SCOPE_SWITCH_WATCHED && prev_tid && !(s->flags & SCOPE_SWITCH_PREV)))
		return false; /* who prev is has not been told */
	s->why = q->why;
	s->waited_ns = 0;
	if (q->wait_ns) {
		if (waited >> 32)
			return false;
		s->flags |= SCOPE_SWITCH_WAITED;
		s->waited_ns = waited;
	}
	return q->seq != switches_told(q, q->told) || !scope_ring_is_filling();
}

/* It counts from here on. */
static __always_inline int switch_gather(struct scope_switches *q, __u32 cpu)
{
	smp_barrier();
	q->seq++;
	/* Whatever has been copied: `told` has to go on. */
	if (q->seq - q->told < SCOPE_SWITCHES)
		return 0;
	switches_tell(q, cpu, q->seq);
	smp_barrier();
	q->told = q->seq;
	return 0;
}

static __always_inline int switch_record(struct scope_cpu *c, __u32 cpu, bool preempt,
					 struct task_struct *prev, struct task_struct *next)
{
	struct scope_switches *q = switches_of(cpu);
	struct scope_switch *s;
	__s32 more = 0;

	if (!q)
		return 0;
	/*
	 * Nobody looks at it before it counts. And what the verifier finds in a map it does not know: it would go
	 * through the rest for each value that flags may have.
	 */
	s = &q->at[(q->seq + 1) % SCOPE_SWITCH_SLOTS];
	s->ts_ns = bpf_ktime_get_ns();
	s->prev_tid = prev->pid;
	s->prev_seq = 0;
	s->next_tid = next->pid;
	s->next_seq = 0;
	s->prev_state = 0;
	s->flags = c->waiters ? SCOPE_SWITCH_WATCHED : 0;
	q->whole = 0;
	q->wait_ns = 0;
	q->throttled_ns = 0;
	q->why = SCOPE_WHY_OTHER;
	if (scope_is_recorded(prev->tgid))
		more = switch_out(c, q, s, cpu, preempt, prev);
	if (scope_is_recorded(next->tgid))
		more += switch_in(q, s, cpu, next);
	else
		stranger_in(next->pid);
	if (more)
		__sync_fetch_and_add(&c->waiters, more);
	if (switch_fits(q, s, prev->pid))
		return switch_gather(q, cpu);
	switches_tell(q, cpu, q->seq); /* these come before */
	q->told = q->seq;
	switch_tell(q, s, cpu, prev, next);
	smp_barrier(); /* nobody shall take it for one that gathers */
	q->told = q->seq + 1;
	smp_barrier();
	q->seq++;
	return 0;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(scope_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scope_cpu *c = cpu_get(cpu);

	if (!c)
		return 0;
	c->curr = (__u64)next;
	if (!c->waiters && !scope_is_recorded(prev->tgid) && !scope_is_recorded(next->tgid))
		return 0;
	return switch_record(c, cpu, preempt, prev, next);
}

/* ---- Wake-ups, births, moves -------------------------------------------------------------------- */

static __always_inline int wakeup(struct task_struct *task)
{
	struct scope_task *t;
	__u64 now;

	if (!scope_is_recorded(task->tgid))
		return 0;
	now = bpf_ktime_get_ns();
	t = task_get(task, SCOPE_TASK_BLOCKED, now);
	/* A wake-up of a thread that is on its way to sleep, but still runs, changes nothing. */
	if (!t || t->state != SCOPE_TASK_BLOCKED)
		return 0;
	task_wait(t, task_cpu(task), now);
	quota_begin(t, task);
	waiters_add(t->cpu, 1);
	return 0;
}

SEC("?tp_btf/sched_wakeup")
int BPF_PROG(scope_wakeup, struct task_struct *task)
{
	return wakeup(task);
}

SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(scope_wake_new, struct task_struct *task)
{
	return wakeup(task);
}

/* The state of one that is recorded and has slept for that long, since *since and until *now; else NULL. */
static __always_inline struct scope_task *slept_for(struct task_struct *task, __u64 ns,
						    __u64 *since, __u64 *now)
{
	struct scope_task *t;

	if (!scope_is_recorded(task->tgid) || is_on_cpu(task))
		return NULL;
	t = task_find(task->pid);
	if (!t || t->state != SCOPE_TASK_BLOCKED)
		return NULL;
	*since = *(volatile __u64 *)&t->asleep_ns; /* its waker takes it */
	if (!*since)
		return NULL;
	*now = bpf_ktime_get_ns();
	return *now >= *since && *now - *since >= ns ? t : NULL;
}

/*
 * Here the waker runs, which sched_wakeup may tell of on another CPU. But the thread may be on its way to sleep still, or have no CPU
 * to run on yet: what its state is the others tell.
 */
SEC("?tp_btf/sched_waking")
int BPF_PROG(scope_waking, struct task_struct *task)
{
	__u64 since = 0, now = 0;
	struct scope_task *t = slept_for(task, SCOPE_SLEEP_LONG_NS, &since, &now);

	if (!t)
		return 0;
	t->asleep_ns = 0;
	switches_copy(t->at_cpu, t->at_seq); /* with which it went to sleep */
	woken_tell(task, since, now, false);
	return 0;
}

/*
 * A thread that was not known so far, for it has slept since before it was recorded: its sleep is known from now on. It may be woken at any
 * time, and is another's then: the last that is asked is whether that has happened.
 */
static TASK_INLINE int sleeper_begin(struct task_struct *task)
{
	__u64 now;

	/* on_rq: an int, or from 7.x on less */
	if (!task_state(task) || BPF_CORE_READ_BITFIELD(task, on_rq) || is_on_cpu(task))
		return 0;
	now = bpf_ktime_get_ns();
	if (task_find(task->pid))
		return 0;
	task_begin(task, task->pid, SCOPE_TASK_BLOCKED, false, now);
	return 0;
}

/* All threads. Tells of those that have slept for long and still do, once each: what they sleep in is of interest before somebody wakes them. */
SEC("?iter/task")
int scope_asleep(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct scope_task *t;
	__u64 since = 0, now = 0;

	if (!task || !scope_is_recorded(task->tgid))
		return 0;
	if (!task_find(task->pid)) {
		sleeper_begin(task);
		return 0;
	}
	t = slept_for(task, SCOPE_ASLEEP_NS, &since, &now);
	if (!t || t->asleep)
		return 0;
	t->asleep = 1;
	woken_tell(task, since, now, true);
	stack_tell(task, t, since, now);
	return 0;
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(scope_fork, struct task_struct *parent, struct task_struct *child)
{
	if (scope_is_recorded(child->tgid)) /* a thread; a process has a tgid of its own */
		task_begin(child, child->pid, SCOPE_TASK_BLOCKED, true, bpf_ktime_get_ns());
	return 0;
}

static __always_inline void migrate_record(struct scope_task *t, struct task_struct *task,
					   __u32 tid, __u32 to, __u64 now)
{
	struct scope_ev_migrate e = {
		.h = {SCOPE_ABI, SCOPE_EV_MIGRATE, sizeof(e), now},
		.tid = tid,
		.seq = ++t->seq,
		.from = t->cpu,
		.to = to,
		.wait_ns = t->wait_ns,
	};
	struct scope_switches *q = switches_of(t->cpu);
	struct scope_cpu *c = cpu_get(t->cpu);
	struct task_struct *curr;

	if (!c || !q)
		return;
	/* Before it come what else the thread did, and who ran where it waited. */
	switches_copy(t->at_cpu, t->at_seq);
	e.cpu_seq = q->seq;
	switches_copy(t->cpu, e.cpu_seq);
	/* It runs now: so it is there. (The kernel's own run queues are not shown by every kernel.) */
	curr = (struct task_struct *)c->curr;
	if (curr) {
		e.curr_tid = BPF_CORE_READ(curr, pid);
		e.curr_tgid = BPF_CORE_READ(curr, tgid);
		BPF_CORE_READ_INTO(&e.curr_comm, curr, comm);
	}
	emit(&e, sizeof(e), scope_wake_rarely(e.seq), scope_may_tell(task, sizeof(e)), true);
}

/* Of interest while the thread waits; one that is being woken goes where the wake-up says. */
SEC("?tp_btf/sched_migrate_task")
int BPF_PROG(scope_migrate, struct task_struct *task, int to)
{
	__u32 tid = task->pid;
	struct scope_task *t;
	__u64 now;

	if (!scope_is_recorded(task->tgid))
		return 0;
	t = task_find(tid);
	if (!t || t->state != SCOPE_TASK_WAIT || !t->wait_ns || t->cpu == (__u32)to)
		return 0;
	now = bpf_ktime_get_ns();
	migrate_record(t, task, tid, to, now);
	quota_keep(t, task, now);
	waiters_add(t->cpu, -1);
	waiters_add(to, 1);
	t->cpu = to;
	return 0;
}

/* ---- Interrupts --------------------------------------------------------------------------------- */

/* Interrupts nest (hard upon soft): the outermost counts. */
static __always_inline void irq_enter(struct scope_cpu *c, __u32 tid, __u64 now)
{
	/* An exit that we missed, because the process ended or we came in between, must not last. */
	if (c->irq_tid != tid)
		c->irq_depth = 0;
	c->irq_tid = tid;
	if (c->irq_depth++)
		return;
	barrier(); /* who comes from here on is nested */
	/* Who came since we looked at the clock is not: it is told, and we begin behind it. */
	c->irq_ns = c->irq_end_ns > now ? c->irq_end_ns : now;
}

/* Begins a record with the interrupt that began at `ns`, if that cannot go into the one that is being filled. */
static __always_inline void irqs_begin(struct scope_irqs *q, __u32 cpu, __u32 tid, __u64 ns)
{
	struct scope_ev_irq *e = &q->rec;
	__u32 n = SCOPE_IRQS_N(e->fill);

	if (n >= SCOPE_IRQS || (n && (e->tid != tid || ns - e->h.ts_ns > SCOPE_IRQS_NS))) {
		irqs_tell(q, (void *)bpf_get_current_task());
		n = 0;
	}
	if (n)
		return;
	e->fill = (SCOPE_IRQS_NR(e->fill) + 1) << 8;
	barrier(); /* first: who copies sees that it is another */
	e->h = (struct scope_ev_short){SCOPE_ABI, SCOPE_EV_IRQ, 0, ns};
	e->tid = tid;
	e->cpu = cpu;
}

static __always_inline void irqs_add(struct scope_irqs *q, struct scope_cpu *c, bool soft,
				     __u16 vec, __u64 now)
{
	__u32 n = SCOPE_IRQS_N(q->rec.fill) % SCOPE_IRQS;
	struct scope_irq *i = &q->rec.at[n];
	__u64 dur;

	barrier();
	/* Who came while we told the record before is nested too. */
	if (c->irq_nested_ns > now)
		now = c->irq_nested_ns;
	c->irq_end_ns = now;
	dur = now - c->irq_ns;
	i->after_ns = c->irq_ns - q->rec.h.ts_ns;
	i->dur_ns = dur < (__u32)-1 ? dur : (__u32)-1;
	i->vec = vec;
	i->soft = soft;
	i->pad = 0;
	barrier(); /* who copies sees it whole, or not at all */
	q->rec.fill++;
}

static __always_inline void irq_exit(struct scope_cpu *c, __u32 cpu, __u32 tid, bool soft,
				     __u16 vec, __u64 now)
{
	struct scope_irqs *q;

	if (c->irq_tid != tid || !c->irq_depth)
		return;
	if (c->irq_depth > 1) {
		c->irq_depth--;
		c->irq_nested_ns = now;
		return;
	}
	q = irqs_here();
	if (q && !c->irqs_busy) {
		c->irqs_busy = 1;
		barrier();
		irqs_begin(q, cpu, tid, c->irq_ns);
		irqs_add(q, c, soft, vec, now);
		barrier();
		c->irqs_busy = 0;
		c->irqs_wait = 1;
	} else {
		irqs_count(tid, false);
	}
	barrier(); /* last: one that came meanwhile did not write */
	c->irq_depth = 0;
}

SEC("?tp_btf/irq_handler_entry")
int BPF_PROG(scope_irq_in)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct scope_cpu *c;

	if (!scope_is_recorded(ids >> 32))
		return 0;
	c = cpu_get(bpf_get_smp_processor_id());
	if (c)
		irq_enter(c, ids, bpf_ktime_get_ns());
	return 0;
}

SEC("?tp_btf/irq_handler_exit")
int BPF_PROG(scope_irq_out, int irq)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 cpu = bpf_get_smp_processor_id();
	struct scope_cpu *c;

	if (!scope_is_recorded(ids >> 32))
		return 0;
	c = cpu_get(cpu);
	if (c)
		irq_exit(c, cpu, ids, false, irq, bpf_ktime_get_ns());
	return 0;
}

/* NET_RX counts on top of whomever it comes; soft interrupts do not nest. One look at the clock for both. */
SEC("?tp_btf/softirq_entry")
int BPF_PROG(scope_soft_in, unsigned int vec)
{
	__u64 ids = bpf_get_current_pid_tgid(), now;
	bool ours = scope_is_recorded(ids >> 32);
	struct scope_cpu *c;

	if (!ours && vec != VEC_NET_RX)
		return 0;
	c = cpu_get(bpf_get_smp_processor_id());
	if (!c)
		return 0;
	now = bpf_ktime_get_ns();
	if (vec == VEC_NET_RX)
		c->net_rx_since_ns = now;
	if (ours)
		irq_enter(c, ids, now);
	return 0;
}

SEC("?tp_btf/softirq_exit")
int BPF_PROG(scope_soft_out, unsigned int vec)
{
	__u64 ids = bpf_get_current_pid_tgid(), now;
	__u32 cpu = bpf_get_smp_processor_id();
	bool ours = scope_is_recorded(ids >> 32);
	struct scope_cpu *c;

	if (!ours && vec != VEC_NET_RX)
		return 0;
	c = cpu_get(cpu);
	if (!c)
		return 0;
	now = bpf_ktime_get_ns();
	if (vec == VEC_NET_RX && c->net_rx_since_ns) {
		c->net_rx_ns += now - c->net_rx_since_ns;
		c->net_rx_since_ns = 0;
	}
	if (ours)
		irq_exit(c, cpu, ids, true, vec, now);
	return 0;
}
