// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * From the plugin to the ring: at the flush probe, and when a thread dies with records left, the
 * thread's buffer is copied as it is, with an identity that the job cannot forge.
 */
#define TASK_INLINE __always_inline /* see no_private_stack() */
#include "sched.bpf.h"
#include "signal.bpf.h"
#include <asm/errno.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The process, registered at its first buffer. A reused tgid is told by its start time. */
static __always_inline struct scope_proc_stat *proc_get(__u32 tgid, __u64 start_ns)
{
	struct scope_proc_stat *stat = bpf_map_lookup_elem(&scope_procs, &tgid);

	if (!stat || stat->start_ns != start_ns) {
		struct scope_proc_stat fresh = {.start_ns = start_ns};

		if (bpf_map_update_elem(&scope_procs, &tgid, &fresh, BPF_ANY))
			scope_count(SCOPE_STAT_MAP_FULL, 1);
		stat = bpf_map_lookup_elem(&scope_procs, &tgid);
		scope_set_recorded(tgid, true);
	}
	return stat;
}

__u32 scope_found_missed; /* for the loader: of so many processes the ring had no room to tell */

/*
 * All threads. Tells of processes that are armed and have handed in nothing, once each: of a job that hangs, or does not communicate,
 * there is nothing else to know them by. It may end or become another program meanwhile: either that finds the entry, or we find that.
 */
SEC("?iter/task")
int scope_found(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct scope_proc_stat fresh = {};
	struct scope_ev_hdr *e;
	__u32 tgid;
	__u8 *on;
	int err;

	if (!task || task->pid != task->tgid || (task->flags & PF_EXITING))
		return 0;
	tgid = task->tgid;
	on = scope_pid(tgid);
	if (!on || *on != SCOPE_PID_ARMED || bpf_map_lookup_elem(&scope_procs, &tgid))
		return 0;
	e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&scope_found_missed, 1);
		return 0;
	}
	scope_stamp_task(e, SCOPE_EV_FOUND, sizeof(*e), task);
	fresh.start_ns = task->start_time;
	err = bpf_map_update_elem(&scope_procs, &tgid, &fresh, BPF_NOEXIST);
	if (err) {
		if (err != -EEXIST)
			scope_count(SCOPE_STAT_MAP_FULL, 1);
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	if ((*(volatile unsigned int *)&task->flags & PF_EXITING) ||
	    *(volatile __u8 *)on == SCOPE_PID_OFF) {
		bpf_map_delete_elem(&scope_procs, &tgid);
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		return 0;
	}
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* How a chunk fared. */
enum sent { SENT_NO_FIT, SENT_OK, SENT_RING_FULL, SENT_FAULT, SENT_LIMITED };

/*
 * The verifier wants constant sizes, so a chunk takes the smallest of six; `size` in its header says
 * how much of it counts. The bound on `len` stands twice, the second time on the very register that is passed: kernels up to 6.1 lose the first in a
 * spill ("R2 unbounded memory access").
 */
#define CHUNK_ROOM(class) ((class) - sizeof(struct scope_ev_chunk))

#define CHUNK_TRY(class)                                                                           \
	static __always_inline enum sent chunk_try_##class(                                        \
		struct task_struct * task, const struct scope_tbuf_hdr *tb, __u64 addr,            \
		__u32 reason, __u32 seq, __u64 limited)                                            \
	{                                                                                          \
		__u64 len = tb->len;                                                               \
		struct scope_ev_chunk *e;                                                          \
		bool urgent = reason == SCOPE_FLUSH_INIT || reason == SCOPE_FLUSH_FINALIZE;        \
                                                                                                   \
		if (len > CHUNK_ROOM(class))                                                       \
			return SENT_NO_FIT;                                                        \
		e = bpf_ringbuf_reserve(&scope_ring, class, 0);                                    \
		if (!e)                                                                            \
			return SENT_RING_FULL;                                                     \
		scope_stamp(&e->h, SCOPE_EV_CHUNK, sizeof(*e) + len, task);                        \
		chunk_fill(e, tb, addr, reason, seq, limited);                                     \
		barrier_var(len);                                                                  \
		if (len > CHUNK_ROOM(class))                                                       \
			len = CHUNK_ROOM(class);                                                   \
		/* the buffer's pages were touched just before the probe */                        \
		if (bpf_probe_read_user(e + 1, len, (void *)(addr + SCOPE_TBUF_HDR_SIZE))) {       \
			bpf_ringbuf_discard(e, scope_wake_flags(false));                           \
			return SENT_FAULT;                                                         \
		}                                                                                  \
		bpf_ringbuf_submit(e, scope_wake_flags(urgent));                                   \
		return SENT_OK;                                                                    \
	}

/* Of the thread that we are in, its records until now being told; 0 if its states are not followed. */
static __always_inline __u32 sched_seq(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), seq;
	struct scope_task *t = scope_sched ? task_find(tid) : NULL;

	if (!t)
		return 0;
	seq = t->seq;
	barrier(); /* first: we may be preempted, and more of them come */
	switches_copy(t->at_cpu, t->at_seq);
	return seq;
}

/* A thread that hands in a buffer is on a CPU: if that is the first we see of it, its states begin here. */
static __always_inline void sched_see(struct task_struct *task)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	if (scope_sched && !task_find(tid))
		task_begin(task, tid, SCOPE_TASK_RUN, false, bpf_ktime_get_ns());
}

static __always_inline void chunk_fill(struct scope_ev_chunk *e, const struct scope_tbuf_hdr *tb,
				       __u64 addr, __u32 reason, __u32 seq, __u64 limited)
{
	e->tbuf = addr;
	e->pos = tb->pos;
	e->rec_pos = tb->rec_pos;
	e->lost_cnt = tb->lost_cnt;
	e->limited_recs = limited;
	e->len = tb->len;
	e->rec_cnt = tb->rec_cnt;
	e->tag = tb->tag;
	e->clock = tb->clock;
	e->reason = reason;
	e->sched_seq = seq;
}

CHUNK_TRY(256)
CHUNK_TRY(512)
CHUNK_TRY(1024)
CHUNK_TRY(2048)
CHUNK_TRY(4096)
CHUNK_TRY(8192)

/* Whether this process may put so much into the ring. */
static __always_inline bool may_send(__u32 bytes)
{
	return !scope_ring_is_filling() || scope_share_take(bpf_get_current_pid_tgid() >> 32,
							    bpf_get_current_uid_gid(), bytes, 0);
}

static __always_inline enum sent chunk_send(struct task_struct *task,
					    const struct scope_tbuf_hdr *tb, __u64 addr,
					    __u32 reason, __u64 limited)
{
	__u32 seq;
	enum sent sent;

	irqs_tell_copy(task, (__u32)bpf_get_current_pid_tgid());
	/* Before the ring has a place for it: what comes in between, if we are preempted, comes before it. */
	seq = sched_seq();

	if (!may_send(sizeof(struct scope_ev_chunk) + tb->len))
		return SENT_LIMITED;
	sent = chunk_try_256(task, tb, addr, reason, seq, limited);
	if (sent == SENT_NO_FIT)
		sent = chunk_try_512(task, tb, addr, reason, seq, limited);
	if (sent == SENT_NO_FIT)
		sent = chunk_try_1024(task, tb, addr, reason, seq, limited);
	if (sent == SENT_NO_FIT)
		sent = chunk_try_2048(task, tb, addr, reason, seq, limited);
	if (sent == SENT_NO_FIT)
		sent = chunk_try_4096(task, tb, addr, reason, seq, limited);
	if (sent == SENT_NO_FIT)
		sent = chunk_try_8192(task, tb, addr, reason, seq, limited);
	return sent;
}

static __always_inline void count_sent(enum sent sent, __u32 recs)
{
	if (sent == SENT_OK) {
		scope_count(SCOPE_STAT_CHUNKS, 1);
		scope_count(SCOPE_STAT_RECS, recs);
	} else {
		scope_count(sent == SENT_FAULT	   ? SCOPE_STAT_FAULT
			    : sent == SENT_LIMITED ? SCOPE_STAT_LIMITED
						   : SCOPE_STAT_RING_FULL,
			    1);
	}
}

/*
 * Sends a buffer of the thread that we are in, or counts its records as lost. A dying thread's buffer may be sent more than once (at the
 * probe, at the signal, at the exit): what was counted the first time and comes through the second is not
 * lost, what fails twice is lost once, and what came through the first time is not lost if it fails the second. rec_pos and
 * rec_cnt are the job's word: no more is taken back than was counted. The entries of the thread and of the process are looked up behind the
 * sending, not handed in: each may be there or not, and the verifier would go through the sending for all of these cases, while whoever
 * starts a recording waits.
 */
static __always_inline void chunk_submit(struct task_struct *task, const struct scope_tbuf_hdr *tb,
					 __u64 addr, __u32 reason, __u64 limited)
{
	enum sent sent = chunk_send(task, tb, addr, reason, limited);
	__u64 ids = bpf_get_current_pid_tgid(), again, known;
	__u32 tid = (__u32)ids, tgid = ids >> 32, lost;
	struct scope_thread *thread = bpf_map_lookup_elem(&scope_threads, &tid), unknown = {};
	struct scope_proc_stat *stat = bpf_map_lookup_elem(&scope_procs, &tgid);

	if (!thread)
		thread = &unknown;
	again = thread->lost_end > tb->rec_pos ? thread->lost_end - tb->rec_pos : 0;
	known = thread->sent_end > tb->rec_pos ? thread->sent_end - tb->rec_pos : 0;
	if (known > tb->rec_cnt)
		known = tb->rec_cnt;
	lost = sent == SENT_OK ? 0 : tb->rec_cnt - known;
	if (sent == SENT_OK)
		thread->sent_end = tb->rec_pos + tb->rec_cnt;
	if (again > tb->rec_cnt)
		again = tb->rec_cnt;
	if (again > thread->lost_cnt)
		again = thread->lost_cnt;
	count_sent(sent, tb->rec_cnt);
	if (sent == SENT_OK && !again)
		return;
	if (stat) {
		__sync_fetch_and_add(&stat->lost_recs, lost - again);
		if (sent == SENT_LIMITED || (again && thread->lost_limited))
			__sync_fetch_and_add(&stat->limited_recs,
					     (sent == SENT_LIMITED ? lost : 0) -
						     (thread->lost_limited ? again : 0));
		if (sent != SENT_OK)
			__sync_fetch_and_add(&stat->lost_chunks, 1);
		if (sent == SENT_FAULT)
			__sync_fetch_and_add(&stat->faults, 1);
	}
	if (!stat) /* counted nowhere: nothing is to be taken back */
		lost = 0;
	thread->lost_end = lost ? tb->rec_pos + tb->rec_cnt : 0;
	thread->lost_cnt = lost;
	thread->lost_limited = sent == SENT_LIMITED;
}

/* Reads a buffer's header; the job wrote it, so nothing in it is believed before it is bounded. */
static __always_inline bool tbuf_read(struct scope_tbuf_hdr *tb, __u64 addr)
{
	if (bpf_probe_read_user(tb, sizeof(*tb), (void *)addr))
		return false;
	return tb->magic == SCOPE_TBUF_MAGIC && tb->len <= SCOPE_TBUF_DATA_SIZE &&
	       tb->rec_cnt <= tb->len / SCOPE_REC_BYTES_MIN;
}

/*
 * The thread hands in this buffer, up to `end`: the one that is known, or it was given another. Whether that is new: overlayfs shows the
 * plugin of one image to each container as another file, and the kernel, for which there is one, has as many of our probes at this
 * place, all of which run in each container. The plugin empties a buffer that it has handed in, so with something in it the end is another.
 */
static __always_inline bool thread_see(__u32 tid, __u64 addr, __u64 end)
{
	struct scope_thread *thread = bpf_map_lookup_elem(&scope_threads, &tid);
	struct scope_thread fresh = {.tbuf = addr, .seen_end = end};

	if (thread && thread->tbuf == addr) {
		if (thread->seen_end == end)
			return false;
		thread->seen_end = end;
		return true;
	}
	if (bpf_map_update_elem(&scope_threads, &tid, &fresh, BPF_ANY))
		scope_count(SCOPE_STAT_MAP_FULL, 1);
	return true;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} scope_nothing SEC(".maps"), scope_nothing_m SEC(".maps");

/*
 * Since 6.13 a uprobe's program with 64 bytes of stack or more gets one that belongs to the CPU (x86's JIT). Nothing
 * keeps two threads out of it at a time where the kernel preempts: they overwrite each other's, up to an
 * oops in bpf_ringbuf_submit(). A program with a tail call keeps its stack to itself; this one never
 * gets there, and there is nothing to call. Old kernels do not mix tail calls with functions: hence
 * TASK_INLINE. New kernels (6.18 does) want the programs of one array
 * to be for one type of attachment: hence two.
 */
static __always_inline void no_private_stack(void *ctx, void *nothing)
{
	bpf_tail_call(ctx, nothing, 0);
}

static __always_inline int flush(void *ctx, void *nothing, __u64 addr, __u64 reason)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 ids = bpf_get_current_pid_tgid(), limited;
	struct scope_proc_stat *stat;
	struct scope_tbuf_hdr tb;

	if (!tbuf_read(&tb, addr)) {
		scope_count(SCOPE_STAT_BAD_TBUF, 1);
		no_private_stack(ctx, nothing);
		return 0;
	}
	if (!thread_see((__u32)ids, addr, tb.pos + tb.len))
		return 0;
	stat = proc_get(ids >> 32, BPF_CORE_READ(task, group_leader, start_time));
	limited = stat ? stat->limited_recs : 0;
	sched_see(task);
	if (tb.len)
		chunk_submit(task, &tb, addr, (__u32)reason & 0xf, limited);
	return 0;
}

/*
 * At the site of the flush probe, which is in a function of its own and has that function's arguments: the loader sees to that. libbpf's
 * USDT would do without, but reads the file for it, which is a job's.
 */
SEC("uprobe")
int BPF_KPROBE(scope_flush, __u64 tbuf, __u64 reason)
{
	return flush(ctx, &scope_nothing, tbuf, reason);
}

/*
 * The same for a uprobe_multi link (6.6), which takes no CAP_SYS_ADMIN; the loader sets its type of attachment, for
 * which old libbpfs have no section. Off where the kernel has it not.
 */
SEC("?uprobe")
int BPF_KPROBE(scope_flush_um, __u64 tbuf, __u64 reason)
{
	return flush(ctx, &scope_nothing_m, tbuf, reason);
}

/*
 * What a dying thread has left in its buffer, while its memory is still there. A thread that has ended in
 * good order gave its buffer back: by now another may own it, and be writing to it.
 */
static __always_inline void flush_dying(__u32 tid)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct scope_thread *thread = bpf_map_lookup_elem(&scope_threads, &tid);
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct scope_proc_stat *stat;
	struct scope_tbuf_hdr tb;

	if (!thread || !tbuf_read(&tb, thread->tbuf) || !tb.len ||
	    tb.tid != scope_ns_nr(BPF_CORE_READ(task, thread_pid)))
		return;
	scope_count(SCOPE_STAT_DYING, 1);
	/* Not proc_get(): where its end has been told already, it must not begin anew. */
	stat = bpf_map_lookup_elem(&scope_procs, &tgid);
	chunk_submit(task, &tb, thread->tbuf, SCOPE_FLUSH_DYING, stat ? stat->limited_recs : 0);
}

/*
 * Runs in every thread of a process that a signal kills, with its memory still mapped, also on kernels
 * where sched_process_exit comes too late. One that is handled, or stops it, leaves the thread alive: not our business.
 */
SEC("tp_btf/signal_deliver")
int BPF_PROG(scope_signal, int sig, struct kernel_siginfo *info, struct k_sigaction *ka)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	if (signal_is_of(sig, SIGNALS_STOP | SIGNALS_HARMLESS) ||
	    !bpf_map_lookup_elem(&scope_threads, &tid))
		return 0;
	if (sig == SIGKILL || !BPF_CORE_READ(ka, sa.sa_handler))
		flush_dying(tid);
	return 0;
}

/* wait(2)'s status of the group, whoever is the last of it to go. */
static __always_inline __s32 exit_status(struct task_struct *task)
{
	__s32 group = BPF_CORE_READ(task, signal, group_exit_code);

	return group ? group : BPF_CORE_READ(task, exit_code);
}

/*
 * Tells the loader that a thread (or, `dead`, the process) is gone. With a full ring the end of a
 * process stays behind in the map, so that its loss can be counted to the last record. stat NULL: a process
 * that was armed, but has handed in nothing yet.
 */
static __always_inline void tell_end(struct task_struct *task, struct scope_proc_stat *stat,
				     __u16 kind, __s32 code, bool dead, __u32 seq)
{
	bool oom = dead && BPF_CORE_READ(task, signal, oom_mm);
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 context = stat ? stat->context_lost : 0;
	struct scope_ev_exit *e = NULL;

	/* The end of a process comes once: it may have what room there is. */
	if (dead || may_send(sizeof(*e)))
		e = bpf_ringbuf_reserve(&scope_ring, sizeof(*e), 0);
	if (!e) {
		if (stat && dead) {
			stat->code = code;
			stat->ended = kind == SCOPE_EV_EXEC ? SCOPE_ENDED_EXEC : SCOPE_ENDED_EXIT;
		}
		scope_count(SCOPE_STAT_RING_FULL, 1);
		return;
	}
	scope_stamp(&e->h, kind, sizeof(*e), task);
	e->code = code;
	e->group_dead = dead;
	e->lost_recs = stat ? stat->lost_recs : 0;
	e->lost_chunks = stat ? stat->lost_chunks : 0;
	e->limited_recs = stat ? stat->limited_recs : 0;
	e->sched_seq = seq;
	e->context_lost = context < 0xffff ? context : 0xffff;
	e->oom = oom;
	e->pad = 0;
	bpf_ringbuf_submit(e, scope_wake_flags(dead));
	if (stat && dead)
		bpf_map_delete_elem(&scope_procs, &tgid);
}

/* The end of a thread for all maps; `dead`: and of its process. */
static __always_inline void forget(__u32 tgid, __u32 tid, bool dead)
{
	if (dead) /* first, or a switch would make the thread known again */
		scope_set_recorded(tgid, false);
	bpf_map_delete_elem(&scope_threads, &tid);
	task_forget(tid);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(scope_exit, struct task_struct *task)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = (__u32)ids;
	struct scope_proc_stat *stat = bpf_map_lookup_elem(&scope_procs, &tgid);
	__u32 seq;
	bool dead;

	/* First: another thread that goes at this time may have told the end of the process already. */
	flush_dying(tid);
	if (!stat && !scope_is_recorded(tgid)) {
		sched_seq(); /* if it was one of a process whose end has been told */
		forget(tgid, tid, false);
		return 0;
	}
	dead = BPF_CORE_READ(task, signal, live.counter) == 0;
	irqs_tell_copy(task, tid);
	seq = sched_seq();
	forget(tgid, tid, dead); /* first: nothing of this thread comes behind its end */
	switches_copy_here();	 /* nor what has been if we were preempted */
	tell_end(task, stat, SCOPE_EV_EXIT,
		 dead ? exit_status(task) : BPF_CORE_READ(task, exit_code), dead, seq);
	return 0;
}

/*
 * The last moment at which the memory of a thread that calls execve is still its own (tracepoint
 * since 6.10); its siblings are killed, and seen as such. Off where the kernel has it not.
 */
SEC("?tp_btf/sched_prepare_exec")
int BPF_PROG(scope_pre_exec, struct task_struct *task)
{
	flush_dying((__u32)bpf_get_current_pid_tgid());
	return 0;
}

/*
 * In its place on older kernels, and in place of sched_process_exit before 6.16, when that came after the
 * memory was gone. Functions are no promise of the kernel's: if they do not attach, record does without.
 */
SEC("?fentry/begin_new_exec")
int BPF_PROG(scope_pre_exec_f)
{
	flush_dying((__u32)bpf_get_current_pid_tgid());
	return 0;
}

SEC("?fentry/do_exit")
int BPF_PROG(scope_exit_f)
{
	flush_dying((__u32)bpf_get_current_pid_tgid());
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(scope_exec, struct task_struct *task, pid_t old_pid)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 tgid = ids >> 32, tid = (__u32)ids, old = old_pid;
	struct scope_proc_stat *stat = bpf_map_lookup_elem(&scope_procs, &tgid);
	__u32 seq;

	if (!stat && !scope_is_recorded(tgid))
		return 0;
	irqs_tell_copy(task, old);
	seq = sched_seq();
	forget(tgid, tid, true);
	/* A thread that is not the first takes over the first one's number. */
	bpf_map_delete_elem(&scope_threads, &old);
	task_forget(old);
	switches_copy_here();
	tell_end(task, stat, SCOPE_EV_EXEC, 0, true, seq);
	return 0;
}
