// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Who sends recorded processes signals that end or stop them. */
#include "scope.bpf.h"
#include "signal.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FAULTS_NS                                                                                  \
	1000000000ull /* of a process that handles its own (a JVM does): no more than one in so long */

/* enum siginfo constants of <asm-generic/siginfo.h>, and send_signal_locked()'s for no siginfo at all */
#define SI_USER		0
#define SI_KERNEL	0x80
#define SEND_SIG_NOINFO 0
#define SEND_SIG_PRIV	1

/* The tracepoint's result: in the queue, of no use, or pending without room for who sent it. */
#define TRACE_SIGNAL_DELIVERED 0
#define TRACE_SIGNAL_IGNORED   1
#define TRACE_SIGNAL_LOSE_INFO 4

/* SIGCONT has done its work before it is ignored. */
static __always_inline bool is_sent(__u32 sig, int result)
{
	return result == TRACE_SIGNAL_DELIVERED || result == TRACE_SIGNAL_LOSE_INFO ||
	       (result == TRACE_SIGNAL_IGNORED && sig == SIGCONT);
}

static __always_inline __s32 signal_code(struct kernel_siginfo *info)
{
	switch ((unsigned long)info) {
	case SEND_SIG_NOINFO:
		return SI_USER;
	case SEND_SIG_PRIV:
		return SI_KERNEL;
	default:
		return BPF_CORE_READ(info, si_code);
	}
}

/* Its handler; SIG_DFL is 0. One that is ignored does not get here. */
static __always_inline bool is_handled(struct task_struct *task, __u32 sig)
{
	struct sighand_struct *hand = BPF_CORE_READ(task, sighand);
	void *action = (void *)hand + bpf_core_field_offset(struct sighand_struct, action) +
		       (sig - 1) * bpf_core_type_size(struct k_sigaction);
	__u64 handler = 0;

	bpf_core_read(&handler, sizeof(handler), &((struct k_sigaction *)action)->sa.sa_handler);
	return handler;
}

/* Of a signal with a handler. */
static __always_inline bool is_told(struct scope_proc_stat *stat, __u32 sig, __s32 code)
{
	__u64 now;

	if (signal_is_of(sig, SIGNALS_END))
		return true;
	if (!signal_is_of(sig, SIGNALS_FAULT))
		return false;
	now = bpf_ktime_get_ns();
	if (code > 0 && (!stat || now - stat->fault_ns < FAULTS_NS))
		return false;
	if (stat)
		stat->fault_ns = now;
	return true;
}

static __always_inline bool tell(struct scope_ev_signal *e, struct task_struct *task)
{
	return scope_may_tell(task, sizeof(*e)) &&
	       !bpf_ringbuf_output(&scope_ring, e, sizeof(*e), scope_wake_flags(false));
}

SEC("tp_btf/signal_generate")
int BPF_PROG(scope_signal_sent, int sig, struct kernel_siginfo *info, struct task_struct *task,
	     int group, int result)
{
	struct task_struct *from = (void *)bpf_get_current_task();
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = task->tgid;
	struct scope_proc_stat *stat;
	struct scope_ev_signal e = {.h = {SCOPE_ABI, SCOPE_EV_SIGNAL, sizeof(e), 0}};

	if (!scope_is_recorded(tgid) || signal_is_of(sig, SIGNALS_HARMLESS) ||
	    !is_sent(sig, result))
		return 0;
	stat = bpf_map_lookup_elem(&scope_procs, &tgid);
	e.sig = sig;
	e.code = signal_code(info);
	e.handled = is_handled(task, sig);
	if (e.handled && !is_told(stat, sig, e.code))
		return 0;
	e.h.ts_ns = bpf_ktime_get_ns();
	e.start_ns = BPF_CORE_READ(task, group_leader, start_time);
	e.tgid = tgid;
	e.ns_tid = group ? 0 : scope_ns_nr(BPF_CORE_READ(task, thread_pid));
	e.from_tgid = ids >> 32;
	e.from_tid = (__u32)ids;
	e.from_ns_tgid = scope_ns_nr(BPF_CORE_READ(from, group_leader, thread_pid));
	e.from_uid = (__u32)bpf_get_current_uid_gid();
	bpf_get_current_comm(e.from_comm, sizeof(e.from_comm));
	if (tell(&e, task)) {
		scope_count(SCOPE_STAT_SCHED, 1);
	} else {
		scope_count(SCOPE_STAT_SCHED_LOST, 1);
		if (stat && stat->signals_lost < 0xffff)
			stat->signals_lost++;
	}
	return 0;
}
