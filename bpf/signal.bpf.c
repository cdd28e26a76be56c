// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Who sends recorded processes signals that end or stop them. */
#include "scope.bpf.h"
#include "signal.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Of a process that handles its own faults (a JVM does) no more than one in so long is told. */
#define FAULTS_NS 1000000000ull
/* Of a process, but for what kills it for sure: so many at once, and then one in so long. What is beyond is counted as lost. */
#define SIGNALS_BURST 64
#define SIGNALS_NS    62500000ull

#define SI_KERNEL 0x80 /* <asm-generic/siginfo.h> */
#define SIG_IGN	  1    /* <asm-generic/signal-defs.h>; SIG_DFL is 0 */

/* In place of a siginfo (<linux/sched/signal.h>). 0 is none, as a call's: there is nothing to read, which gives 0, SI_USER. */
#define SEND_SIG_PRIV 1

/* The tracepoint's result: in the queue, of no use, or pending without room for who sent it. */
#define TRACE_SIGNAL_DELIVERED 0
#define TRACE_SIGNAL_IGNORED   1
#define TRACE_SIGNAL_LOSE_INFO 4

#define SIGNAL_CLD_MASK 0x30 /* signal_struct.flags: it was stopped, or was to be, until now */

/* SIGCONT has done its work before it is ignored. */
static __always_inline bool is_sent(struct task_struct *task, __u32 sig, int result)
{
	if (sig == SIGCONT)
		return (result == TRACE_SIGNAL_IGNORED || result == TRACE_SIGNAL_DELIVERED) &&
		       BPF_CORE_READ(task, signal, flags) & SIGNAL_CLD_MASK;
	return result == TRACE_SIGNAL_DELIVERED || result == TRACE_SIGNAL_LOSE_INFO;
}

static __always_inline __s32 signal_code(struct kernel_siginfo *info)
{
	if ((unsigned long)info == SEND_SIG_PRIV)
		return SI_KERNEL;
	return BPF_CORE_READ(info, si_code);
}

static __always_inline __u64 handler_of(struct task_struct *task, __u32 sig)
{
	struct sighand_struct *hand = BPF_CORE_READ(task, sighand);
	void *action = (void *)hand + bpf_core_field_offset(struct sighand_struct, action) +
		       (sig - 1) * bpf_core_type_size(struct k_sigaction);
	__u64 handler = 0;

	bpf_core_read(&handler, sizeof(handler), &((struct k_sigaction *)action)->sa.sa_handler);
	return handler;
}

/* Of a signal with a handler: whoever handles a stop goes on. */
static __always_inline bool is_told(struct scope_proc_stat *stat, __u32 sig, __s32 code, __u64 now)
{
	if (signal_is_of(sig, SIGNALS_END | 1u << SIGCONT))
		return true;
	if (!signal_is_of(sig, SIGNALS_FAULT))
		return false;
	if (code > 0 && now - stat->fault_ns < FAULTS_NS)
		return false;
	stat->fault_ns = now;
	return true;
}

/* A process may send itself as many as it likes. */
static __always_inline bool has_share(struct scope_proc_stat *stat, __u32 sig, __u64 now)
{
	__u64 at = stat->signals_ns > now ? stat->signals_ns : now;

	if (sig == SIGKILL)
		return true;
	if (at - now > SIGNALS_BURST * SIGNALS_NS)
		return false;
	stat->signals_ns = at + SIGNALS_NS;
	return true;
}

static __always_inline void tell(const struct scope_ev_signal *e, struct scope_proc_stat *stat,
				 struct task_struct *task)
{
	if (has_share(stat, e->sig, e->h.ts_ns) && scope_may_tell(task, sizeof(*e)) &&
	    !bpf_ringbuf_output(&scope_ring, (void *)e, sizeof(*e), scope_wake_flags(false))) {
		scope_count(SCOPE_STAT_SCHED, 1);
		return;
	}
	scope_count(SCOPE_STAT_SCHED_LOST, 1);
	__sync_fetch_and_add(&stat->context_lost, 1);
}

/* A process that has handed in nothing yet has no trace that could tell. */
SEC("tp_btf/signal_generate")
int BPF_PROG(scope_signal_sent, int sig, struct kernel_siginfo *info, struct task_struct *task,
	     int group, int result)
{
	struct scope_ev_signal e = {.h = {SCOPE_ABI, SCOPE_EV_SIGNAL, sizeof(e), 0}};
	struct task_struct *from = (void *)bpf_get_current_task();
	__u64 ids = bpf_get_current_pid_tgid(), handler;
	__u32 tgid = task->tgid;
	struct scope_proc_stat *stat;

	if (!scope_is_recorded(tgid) || signal_is_of(sig, SIGNALS_HARMLESS) ||
	    !is_sent(task, sig, result))
		return 0;
	stat = bpf_map_lookup_elem(&scope_procs, &tgid);
	handler = handler_of(task, sig);
	if (!stat || (handler == SIG_IGN && sig != SIGCONT))
		return 0;
	e.h.ts_ns = bpf_ktime_get_ns();
	e.sig = sig;
	e.code = signal_code(info);
	e.handled = handler > SIG_IGN;
	if (e.handled && !is_told(stat, sig, e.code, e.h.ts_ns))
		return 0;
	e.start_ns = BPF_CORE_READ(task, group_leader, start_time);
	e.tgid = tgid;
	e.ns_tid = group ? 0 : scope_ns_nr(BPF_CORE_READ(task, thread_pid));
	e.from_tgid = ids >> 32;
	e.from_tid = (__u32)ids;
	e.from_ns_tgid = scope_ns_nr(BPF_CORE_READ(from, group_leader, thread_pid));
	e.from_uid = (__u32)bpf_get_current_uid_gid();
	e.exiting = !!(BPF_CORE_READ(from, flags) & PF_EXITING);
	bpf_get_current_comm(e.from_comm, sizeof(e.from_comm));
	tell(&e, stat, task);
	return 0;
}
