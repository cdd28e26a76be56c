// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One tiny program per BPF feature. loader/doctor/feat_bpf.c loads each alone, attaches it, makes it fire
 * and looks at what it left in scope_io: a feature works when that was seen, not when it loads.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/usdt.bpf.h>
#include "quota.bpf.h"
#include "scope_probe_io.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PROBE_RING_BYTES 65536
#define ETH_P_IP	 0x0800

struct scope_probe_io scope_io;

/* Programs write, the loader reads; when full, the hit is not counted and so the probe fails. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PROBE_RING_BYTES);
} scope_p_ring SEC(".maps");

static __always_inline bool comm_is_ours(const __u64 comm[2])
{
	return comm[0] == scope_io.comm[0] && comm[1] == scope_io.comm[1];
}

/* By name, because a pid means nothing until the pid namespace is known, which is probed too. */
static __always_inline bool is_ours(void)
{
	__u64 comm[2] = {};

	bpf_get_current_comm(comm, sizeof(comm));
	return comm_is_ours(comm);
}

static __always_inline void hit(void)
{
	__sync_fetch_and_add(&scope_io.hits, 1);
}

static __always_inline void hit_if_ours(void)
{
	if (is_ours())
		hit();
}

static __always_inline void read_user_word(void)
{
	__u64 value = 0;

	scope_io.err = bpf_probe_read_user(&value, sizeof(value), (void *)scope_io.user_addr);
	scope_io.value = value;
}

/* Sends a record that carries SCOPE_PROBE_COPY_BYTES of user memory, where src is given. */
static __always_inline void send_rec(const void *src)
{
	struct scope_probe_rec *rec;

	rec = bpf_ringbuf_reserve(&scope_p_ring, sizeof(*rec), 0);
	if (!rec)
		return;
	rec->nonce = scope_io.nonce;
	rec->ts_ns = bpf_ktime_get_ns();
	scope_io.err = src ? bpf_probe_read_user(rec->data, sizeof(rec->data), src) : 0;
	bpf_ringbuf_submit(rec, 0);
	hit();
}

SEC("?raw_tp/sched_process_exit")
int scope_p_rawtp(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?raw_tp/sched_process_exit")
int scope_p_ringbuf(void *ctx)
{
	if (is_ours())
		send_rec(NULL);
	return 0;
}

SEC("?tp_btf/sched_switch")
int scope_p_switch(void *ctx)
{
	hit_if_ours();
	return 0;
}

/* Events of a task that need not be the one that runs. */
static __always_inline int hit_if_named(struct task_struct *task)
{
	__u64 comm[2] = {};

	bpf_core_read(comm, sizeof(comm), &task->comm);
	if (comm_is_ours(comm))
		hit();
	return 0;
}

SEC("?tp_btf/sched_wakeup")
int BPF_PROG(scope_p_wakeup, struct task_struct *task)
{
	return hit_if_named(task);
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(scope_p_waking, struct task_struct *task)
{
	return hit_if_named(task);
}

SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(scope_p_wakenew, struct task_struct *task)
{
	return hit_if_named(task);
}

SEC("?tp_btf/sched_migrate_task")
int BPF_PROG(scope_p_migrate, struct task_struct *task)
{
	return hit_if_named(task);
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(scope_p_fork, struct task_struct *parent, struct task_struct *child)
{
	return hit_if_named(child);
}

SEC("?tp_btf/sched_process_exit")
int scope_p_exit(void *ctx)
{
	if (is_ours()) {
		read_user_word();
		hit();
	}
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(scope_p_exec, struct task_struct *task)
{
	struct task_struct *parent = BPF_CORE_READ(task, real_parent);

	/* The name of the process itself is that of the new program by now. */
	return hit_if_named(parent);
}

SEC("?tp_btf/signal_deliver")
int scope_p_signal(void *ctx)
{
	if (is_ours()) {
		read_user_word();
		hit();
	}
	return 0;
}

SEC("?tp_btf/signal_generate")
int BPF_PROG(scope_p_sent, int sig, struct kernel_siginfo *info, struct task_struct *task)
{
	return hit_if_named(task);
}

/* Whose time an interrupt takes is chance: any one counts. */
SEC("?tp_btf/irq_handler_entry")
int scope_p_irqin(void *ctx)
{
	hit();
	return 0;
}

SEC("?tp_btf/irq_handler_exit")
int scope_p_irqout(void *ctx)
{
	hit();
	return 0;
}

SEC("?tp_btf/softirq_entry")
int scope_p_softin(void *ctx)
{
	hit();
	return 0;
}

SEC("?tp_btf/softirq_exit")
int scope_p_softout(void *ctx)
{
	hit();
	return 0;
}

/*
 * The system call of a process that is being switched away. It is in several of them in its life; the one
 * that it was sent to sleep in has to be among them.
 */
SEC("?tp_btf/sched_switch")
int BPF_PROG(scope_p_syscall, bool preempt, struct task_struct *prev)
{
	struct pt_regs *regs;
	__s64 nr;

	if (!is_ours())
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(prev);
#if defined(__TARGET_ARCH_x86)
	nr = (__s64)regs->orig_ax;
#else
	nr = regs->syscallno;
#endif
	if (scope_io.value != scope_io.syscall)
		scope_io.value = nr;
	hit();
	return 0;
}

/*
 * By way of the task: the variable runqueues can be had only on kernels with CONFIG_KALLSYMS_ALL, and a
 * program that names it, weakly or not, does not load on others.
 */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(scope_p_runq, struct task_struct *task)
{
	if (!is_ours())
		return 0;
	scope_io.err = -2; /* ENOENT: this kernel has no such fields */
	if (bpf_core_field_exists(struct sched_entity, cfs_rq)) {
		scope_io.err = 0;
		scope_io.value = BPF_CORE_READ(task, se.cfs_rq, rq, curr) == task;
	}
	hit();
	return 0;
}

/* Whether its cgroup's queues are counted for; and how long the cgroup was held back, which cpu.stat has as well. */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(scope_p_quota, struct task_struct *task)
{
	struct cfs_rq *cfs_rq;

	if (!is_ours())
		return 0;
	scope_io.err = -2;
	if (quota_is_counted() && bpf_core_field_exists(struct task_group, cfs_bandwidth)) {
		cfs_rq = BPF_CORE_READ(task, se.cfs_rq);
		scope_io.err = BPF_CORE_READ(cfs_rq, throttle_count) < 0 ? -22 : 0;
		scope_io.value = BPF_CORE_READ(cfs_rq, tg, cfs_bandwidth.throttled_time);
	}
	hit();
	return 0;
}

SEC("?tracepoint/sched/sched_process_exit")
int scope_p_tp(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?kprobe/wake_up_new_task")
int scope_p_kprobe(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?fentry/wake_up_new_task")
int scope_p_fentry(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?iter/task")
int scope_p_iter(struct bpf_iter__task *ctx)
{
	if (ctx->task)
		hit();
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int scope_p_nspid(void *ctx)
{
	struct bpf_pidns_info info = {};

	if (!is_ours())
		return 0;
	scope_io.err =
		bpf_get_ns_current_pid_tgid(scope_io.ns_dev, scope_io.ns_ino, &info, sizeof(info));
	scope_io.value = info.tgid;
	hit();
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(scope_p_core, struct task_struct *task)
{
	struct pid *pid;
	__u32 level = 0;
	int nr = 0;

	if (!is_ours())
		return 0;
	/* numbers[] has one entry per nested pid namespace; its index is no constant for CO-RE. */
	pid = BPF_CORE_READ(task, thread_pid);
	bpf_core_read(&level, sizeof(level), &pid->level);
	scope_io.err = bpf_probe_read_kernel(&nr, sizeof(nr),
					     (void *)pid + bpf_core_field_offset(pid->numbers) +
						     level * bpf_core_type_size(struct upid) +
						     bpf_core_field_offset(struct upid, nr));
	scope_io.value = nr;
	if (BPF_CORE_READ(task, nsproxy, pid_ns_for_children))
		hit();
	return 0;
}

SEC("?tp_btf/sock_send_length")
int scope_p_netsend(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?tp_btf/sock_recv_length")
int scope_p_netrecv(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?tp_btf/tcp_rcv_space_adjust")
int scope_p_rcvadj(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?fexit/tcp_recvmsg")
int scope_p_recvf(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?fexit/tcp_sendmsg")
int scope_p_sendf(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?kprobe/tcp_sendmsg")
int scope_p_sendk(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?tp_btf/tcp_destroy_sock")
int scope_p_tcpend(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?tp_btf/tcp_retransmit_skb")
int scope_p_retrans(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?tp_btf/tcp_receive_reset")
int scope_p_rstin(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?tp_btf/tcp_send_reset")
int scope_p_rstout(void *ctx)
{
	hit_if_ours();
	return 0;
}

SEC("?tp_btf/kfree_skb")
int scope_p_drop(void *ctx)
{
	hit_if_ours();
	return 0;
}

/* When a socket that has sent is shut down: how much, by a plain load, as record has it. */
SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(scope_p_tcp, struct sock *sk, int old, int state)
{
	struct tcp_sock *tp;

	if (state != TCP_FIN_WAIT1 || !is_ours())
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	scope_io.err = tp ? 0 : -2;
	if (tp)
		scope_io.value = tp->bytes_sent;
	hit();
	return 0;
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(scope_p_tcpset, struct sock *sk, int old, int state)
{
	if (state == TCP_SYN_SENT)
		hit_if_ours();
	return 0;
}

SEC("?tp_btf/kfree_skb")
int BPF_PROG(scope_p_dropwhy, struct sk_buff *skb, void *location, __u32 reason)
{
	if (skb->protocol != bpf_htons(ETH_P_IP) || !is_ours())
		return 0;
	if (!scope_io.hits)
		scope_io.value = reason;
	hit();
	return 0;
}

/* Not attached, so that it comes when it is called only. */
SEC("?raw_tp/kfree_skb")
int scope_p_run(void *ctx)
{
	hit();
	return 0;
}

SEC("?iter/task_file")
int scope_p_iterfd(struct bpf_iter__task_file *ctx)
{
	if (ctx->task && ctx->file)
		hit();
	return 0;
}

SEC("?usdt")
int BPF_USDT(scope_p_usdt, __u64 nonce, const void *src)
{
	if (nonce == scope_io.nonce)
		send_rec(src);
	return 0;
}

SEC("?uprobe")
int BPF_KPROBE(scope_p_uprobe, __u64 nonce)
{
	if (nonce == scope_io.nonce)
		hit();
	return 0;
}

SEC("?uprobe")
int BPF_KPROBE(scope_p_umulti, __u64 nonce)
{
	if (nonce == scope_io.nonce)
		hit();
	return 0;
}

SEC("?uprobe")
int BPF_KPROBE(scope_p_rduser, __u64 nonce)
{
	if (nonce == scope_io.nonce) {
		read_user_word();
		hit();
	}
	return 0;
}

SEC("?uprobe.s")
int BPF_KPROBE(scope_p_sleep, __u64 nonce)
{
	__u64 value = 0;

	if (nonce != scope_io.nonce)
		return 0;
	scope_io.err = bpf_copy_from_user(&value, sizeof(value), (void *)scope_io.user_addr);
	scope_io.value = value;
	hit();
	return 0;
}
