/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Who ended a thread's sleep, and what that was in: scope_ev_woken, scope_ev_stack. */
#ifndef NCCLSCOPE_WOKEN_BPF_H
#define NCCLSCOPE_WOKEN_BPF_H

#include "scope.bpf.h"
#include "tuple.bpf.h"

#define TASK_INTERRUPTIBLE     0x01
#define TASK_STOPPED_OR_TRACED 0x0c /* __TASK_STOPPED | __TASK_TRACED */
#define TASK_FROZEN                                                                                \
	0x8000 /* since f5d39b020809 ("freezer,sched: Rewrite core freezer logic"), 6.1 */
#define PF_FROZEN 0x10000 /* before that; later it is kcompactd's, which serves no job */

/* Since 8f0eed4a78a8 ("freezer,sched: Use saved_state to reduce some spurious wakeups"), 6.7; with PREEMPT_RT before. */
struct task_struct___6_7 {
	unsigned int saved_state;
};

struct task_struct___5_10 {
	volatile long
		state; /* __state since 2f064a59a11f ("sched: Change task_struct::state"), 5.14 */
};

static __always_inline __u64 task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return BPF_CORE_READ((struct task_struct___5_10 *)task, state);
}

/*
 * By the freezer of cgroup v1, or by that of v2, which counts those as well that are stopped, or wait for who they vforked: only who sleeps
 * for it does so until a signal.
 */
static __always_inline bool task_is_frozen(struct task_struct *task, __u64 state)
{
	if (state & TASK_FROZEN || task->flags & PF_FROZEN)
		return true;
	return state & TASK_INTERRUPTIBLE && bpf_core_field_exists(task->frozen) &&
	       BPF_CORE_READ_BITFIELD(task, frozen);
}

/* Why it goes no further, amid whatever call; SCOPE_WHY_OTHER: nothing keeps it from that. */
static __always_inline __s32 task_held(struct task_struct *task)
{
	__u64 state = task_state(task);

	if (state & TASK_STOPPED_OR_TRACED)
		return SCOPE_WHY_STOPPED;
	return task_is_frozen(task, state) ? SCOPE_WHY_FROZEN : SCOPE_WHY_OTHER;
}

/* ---- In what --------------------------------------------------------------------------------------- */

/* The system call that a thread is in; exceptions and interrupts leave -1 there. */
static __always_inline __s32 task_syscall(struct task_struct *task)
{
	struct pt_regs *regs;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return SCOPE_WHY_OTHER;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	return (__s32)regs->orig_ax < 0 ? SCOPE_WHY_PAGEFAULT : (__s32)regs->orig_ax;
#else
	return regs->syscallno < 0 ? SCOPE_WHY_PAGEFAULT : regs->syscallno;
#endif
}

/* What the call was given first. */
static __always_inline __u64 task_syscall_arg(struct task_struct *task)
{
	struct pt_regs *regs;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return -1;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	return regs->di;
#else
	return regs->orig_x0;
#endif
}

#define MOUNTS_MAX 4 /* one upon the other */

/* The root of a mount is called as the place where that is; *mount is then the one above. */
static __always_inline struct dentry *mounted_at(struct dentry *dentry, struct mount **mount)
{
	struct mount *above;
	__u32 i;

	for (i = 0; i < MOUNTS_MAX && dentry == BPF_CORE_READ(*mount, mnt.mnt_root); i++) {
		above = BPF_CORE_READ(*mount, mnt_parent);
		if (above == *mount)
			break;
		dentry = BPF_CORE_READ(*mount, mnt_mountpoint);
		*mount = above;
	}
	return dentry;
}

/* The file of a task's descriptor. It may go away, and its memory be another's, while we read: then names are wrong, or none. */
static __always_inline struct file *task_file(struct task_struct *task, __u32 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(fdt, fd), *file = NULL;

	if (fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

static __always_inline void woken_sock(struct scope_ev_woken *e, struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if (family != AF_INET && family != AF_INET6)
		return;
	tuple_fill(&e->sock, sk);
	e->has_sock = 1;
}

static __always_inline void woken_file(struct scope_ev_woken *e, struct file *file)
{
	struct mount *mount =
		(void *)BPF_CORE_READ(file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	struct dentry *dentry = mounted_at(BPF_CORE_READ(file, f_path.dentry), &mount),
		      *parent = BPF_CORE_READ(dentry, d_parent);
	const char *fs = BPF_CORE_READ(file, f_inode, i_sb, s_type, name);

	bpf_probe_read_kernel_str(e->fs, sizeof(e->fs), fs);
	bpf_probe_read_kernel_str(e->name, sizeof(e->name), BPF_CORE_READ(dentry, d_name.name));
	if (parent != dentry) { /* as that of what has no path is */
		parent = mounted_at(parent, &mount);
		bpf_probe_read_kernel_str(e->dir, sizeof(e->dir),
					  BPF_CORE_READ(parent, d_name.name));
	}
	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK)
		woken_sock(e, file);
}

/* ---- By whom --------------------------------------------------------------------------------------- */

#define SOFTIRQ_SERVED                                                                             \
	0x00000100 /* <linux/preempt.h>: SOFTIRQ_OFFSET; more than that is being off */
#define HARDIRQ_MASK 0x000f0000
#define NMI_MASK     0x00f00000

#if defined(__TARGET_ARCH_x86)
/*
 * The count of each CPU, in bytes behind its run queue; both are the CPU's own variables. 0: not known. Set by the loader before load, of
 * the kernel's types: where variables have no symbols, as without CONFIG_KALLSYMS_ALL, programs may not name them; and of a type that the
 * kernel lacks libbpf looks through its modules, for which it takes CAP_SYS_ADMIN.
 */
const volatile __s64 scope_preempt_at = 0;

static __always_inline __u32 preempt_count(struct task_struct *current)
{
	__u32 count = -1;
	char *rq;

	if (!scope_preempt_at || !bpf_core_field_exists(struct sched_entity, cfs_rq))
		return -1;
	rq = (char *)BPF_CORE_READ(current, se.cfs_rq, rq);
	bpf_probe_read_kernel(&count, sizeof(count), rq + scope_preempt_at);
	return count;
}
#else
static __always_inline __u32 preempt_count(struct task_struct *current)
{
	return BPF_CORE_READ(current, thread_info.preempt.count);
}
#endif

/* Whether the current thread itself runs here, and not an interrupt on top of it; if that is not known, no. */
static __always_inline bool is_thread_context(void)
{
	__u32 count = preempt_count((void *)bpf_get_current_task());

	return !(count & (SOFTIRQ_SERVED | HARDIRQ_MASK | NMI_MASK));
}

/* Whether it is leaving its CPU still: then its switch is being written. */
static __always_inline bool is_on_cpu(struct task_struct *task)
{
	/* an int, or from 7.x on less */
	return bpf_core_field_exists(task->on_cpu) && BPF_CORE_READ_BITFIELD(task, on_cpu);
}

/* cgroup v1's freezer wakes whoever slept when it froze him, and he sleeps on: that does not tell what had his sleep last. */
static __always_inline bool thaw_wakes_all(void)
{
	return !bpf_core_field_exists(((struct task_struct___6_7 *)0)->saved_state);
}

/* A record of the task's found no room: its process counts that, since no number shows it. */
static __always_inline void woken_lost(struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct scope_proc_stat *stat = bpf_map_lookup_elem(&scope_procs, &tgid);

	scope_count(SCOPE_STAT_SCHED_LOST, 1);
	if (stat)
		__sync_fetch_and_add(&stat->context_lost, 1);
}

/* task has slept since `since`, and is woken here and now, or is `asleep` still. */
static TASK_INLINE int woken_tell(struct task_struct *task, __u64 since, __u64 now, bool asleep)
{
	struct scope_ev_woken *e = NULL;
	struct file *file;

	if (scope_may_tell(task, sizeof(*e)))
		e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);
	if (!e) { /* asked once: up to 6.1, the verifier forgets that it is there */
		woken_lost(task);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->h.abi = SCOPE_ABI;
	e->h.kind = SCOPE_EV_WOKEN;
	e->h.size = sizeof(*e);
	e->h.ts_ns = now;
	e->since_ns = since;
	e->tid = BPF_CORE_READ(task, pid);
	e->call = task_held(task);
	if (e->call == SCOPE_WHY_FROZEN && !asleep && thaw_wakes_all())
		e->call = SCOPE_WHY_OTHER;
	if (e->call == SCOPE_WHY_OTHER)
		e->call = task_syscall(task);
	file = e->call >= 0 ? task_file(task, task_syscall_arg(task)) : NULL;
	if (file)
		woken_file(e, file);
	e->asleep = asleep;
	if (!asleep && is_thread_context()) {
		e->by_tgid = bpf_get_current_pid_tgid() >> 32;
		bpf_get_current_comm(e->by_comm, sizeof(e->by_comm));
	}
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	scope_count(SCOPE_STAT_SCHED, 1);
	return 0;
}

/* ---- Where in the kernel ---------------------------------------------------------------------------- */

/* Of a task that has slept since `since` and still does; nothing if that ends meanwhile. */
static TASK_INLINE int stack_tell(struct task_struct *task, struct scope_task *t, __u64 since,
				  __u64 now)
{
	struct scope_ev_stack *e = NULL;
	long bytes;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_task_stack))
		return 0;
	if (scope_may_tell(task, sizeof(*e)))
		e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);
	if (!e) {
		woken_lost(task);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->h.abi = SCOPE_ABI;
	e->h.kind = SCOPE_EV_STACK;
	e->h.size = sizeof(*e);
	e->h.ts_ns = now;
	e->since_ns = since;
	e->tid = BPF_CORE_READ(task, pid);
	bytes = bpf_get_task_stack(task, e->at, sizeof(e->at), 0);
	if (bytes <= 0 || *(volatile __u64 *)&t->asleep_ns != since || is_on_cpu(task)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	e->n = bytes / sizeof(e->at[0]);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	scope_count(SCOPE_STAT_SCHED, 1);
	return 0;
}

#endif
