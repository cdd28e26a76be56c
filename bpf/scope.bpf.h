/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What every BPF program here shares: maps, counters, the wake-up policy and the identity stamp. No
 * policy lives on this side: copy, stamp, count.
 */
#ifndef NCCLSCOPE_SCOPE_BPF_H
#define NCCLSCOPE_SCOPE_BPF_H

#include "scope_abi.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/*
 * Objects are linked into one; what several of them define is marked SCOPE_SHARED and becomes one.
 */
#define SCOPE_SHARED __weak

/*
 * Between two stores of which another CPU, or the loader, goes by the second, and between its own two loads. x86 keeps their order as it is;
 * on arm64 an atomic operation that says what was there before keeps all that is before it before all that is behind it.
 */
#ifdef __TARGET_ARCH_arm64
#define smp_barrier()                                                                              \
	do {                                                                                       \
		__u64 __at = 0, __was = __sync_lock_test_and_set(&__at, 1);                        \
		asm volatile("" : : "r"(__was) : "memory");                                        \
	} while (0)
#else
#define smp_barrier() barrier()
#endif

/* Unread bytes from which on a record wakes the loader up. */
const volatile __u64 scope_wake_bytes SCOPE_SHARED = 256 * 1024;
/* Set by the loader before load: whether the programs of sched.bpf.c are on. */
const volatile bool scope_sched SCOPE_SHARED = false;

/* The one way to the loader. Full means: the record is dropped and counted, the job never waits. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024 * 1024); /* the loader sets what was asked for */
} scope_ring SCOPE_SHARED SEC(".maps");

/*
 * Processes that have handed us a buffer, by tgid. BPF inserts and deletes at exit; the loader reads
 * the loss counts. Full means: processes beyond are recorded, but their end and their loss are not.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct scope_proc_stat);
} scope_procs SCOPE_SHARED SEC(".maps");

#define SCOPE_PIDS_LINE 64

struct scope_pids_line {
	__u8 on[SCOPE_PIDS_LINE];
};

/*
 * Processes whose threads are recorded, by tgid: enum scope_pid. A look-up that the JIT turns into a load tells a thread
 * of another process, in every context switch of the node. BPF sets it at the first buffer and clears it
 * at the end; the loader sets it, through mmap, for a process that it arms. It covers all numbers that
 * a 64-bit kernel has (PID_MAX_LIMIT).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4 * 1024 * 1024 / SCOPE_PIDS_LINE);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct scope_pids_line);
} scope_pids SCOPE_SHARED SEC(".maps");

struct scope_thread {
	__u64 tbuf;	/* address of its buffer in the job */
	__u64 seen_end; /* position behind the last byte of it that was handed in at the probe */
	__u64 sent_end; /* position behind the last record of it that is in the ring */
	__u64 lost_end; /* position behind the last record of it that was counted as lost */
	__u32 lost_cnt; /* how many were counted then, */
	__u32 lost_limited; /* 1: as rate-limit */
};

/*
 * Where the buffer of a thread lies, by tid, so that it can be read when the thread dies. BPF inserts
 * at each flush and deletes at exit. Full means: the last records of threads beyond may be missed.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct scope_thread);
} scope_threads SCOPE_SHARED SEC(".maps");

/* enum scope_stat; the loader prints all of them at the end. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCOPE_STAT_N);
	__type(key, __u32);
	__type(value, __u64);
} scope_stats SCOPE_SHARED SEC(".maps");

/*
 * How much of the ring a process, or a user, holds: bytes that it has put there and the loader has not taken yet.
 * The ring's positions, which only grow, are cut into parts of an eighth of its size; `at` is what `total` was when
 * each part began, so what is held is known to a part, and no clock is asked. Only counted while the ring
 * fills up.
 */
#define SHARE_PARTS 8 /* of the ring's size */
#define SHARE_SLOTS                                                                                \
	16 /* parts that may be asked for: 8 and the two at the ends, in a power of two */
#define SHARE_USER (1ULL << 32)

struct scope_share {
	__u64 total;
	__u64 part; /* the last one in which it wrote */
	__u64 at[SHARE_SLOTS];
};

/*
 * By tgid, and by uid with SHARE_USER. BPF inserts; the oldest goes when it is full, and begins anew. Nobody deletes: what a
 * dead process held was taken long before its number comes again.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct scope_share);
} scope_shares SCOPE_SHARED SEC(".maps");

static const struct scope_share new_share;

static __always_inline __u8 *scope_pid(__u32 tgid)
{
	__u32 line = tgid / SCOPE_PIDS_LINE;
	struct scope_pids_line *pids = bpf_map_lookup_elem(&scope_pids, &line);

	return pids ? &pids->on[tgid % SCOPE_PIDS_LINE] : NULL;
}

static __always_inline bool scope_is_recorded(__u32 tgid)
{
	__u8 *on = scope_pid(tgid);

	return on && *on;
}

static __always_inline void scope_set_recorded(__u32 tgid, bool on)
{
	__u8 *v = scope_pid(tgid);

	if (v)
		*v = on ? SCOPE_PID_ON : SCOPE_PID_OFF;
}

static __always_inline void scope_count(__u32 which, __u64 n)
{
	__u64 *v = bpf_map_lookup_elem(&scope_stats, &which);

	if (v)
		*v += n;
}

/* The ring's position when the loader was last woken past the threshold. */
__u64 scope_woken_at SCOPE_SHARED;

/*
 * One policy for all records: wake the loader past a threshold, or when `urgent`; it consumes at each
 * poll timeout anyway. Waking it costs the job 2 us: not for every record, and not again before as much has come
 * on top, for one that has been woken and is behind is on its way. Two CPUs at the same time may both.
 */
static __always_inline __u64 scope_wake_flags(bool urgent)
{
	__u64 at;

	if (urgent)
		return BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_query(&scope_ring, BPF_RB_AVAIL_DATA) < scope_wake_bytes)
		return BPF_RB_NO_WAKEUP;
	at = bpf_ringbuf_query(&scope_ring, BPF_RB_PROD_POS);
	if (at - scope_woken_at < scope_wake_bytes)
		return BPF_RB_NO_WAKEUP;
	scope_woken_at = at;
	return BPF_RB_FORCE_WAKEUP;
}

#define SCOPE_WAKE_EVERY                                                                           \
	64 /* records of a thread, CPU or flow between two looks at how full the ring is */

/*
 * For records of kernel context, the nth of their kind: waking the loader costs the thread that runs 2 us, and nobody
 * waits for these. It comes by itself 20 times a second, and is only woken when the ring fills up.
 */
static __always_inline __u64 scope_wake_rarely(__u32 n)
{
	if (n % SCOPE_WAKE_EVERY || bpf_ringbuf_query(&scope_ring, BPF_RB_AVAIL_DATA) <
					    bpf_ringbuf_query(&scope_ring, BPF_RB_RING_SIZE) / 8)
		return BPF_RB_NO_WAKEUP;
	return BPF_RB_FORCE_WAKEUP;
}

/* ---- Shares of the ring -------------------------------------------------------------------------- */

/* Functions of their own, but where a program has a tail call: see no_private_stack(). */
#ifndef TASK_INLINE
#define TASK_INLINE __attribute__((unused)) __noinline
#endif

/* Below this everybody writes as much as they like. */
static __always_inline bool scope_ring_is_filling(void)
{
	return bpf_ringbuf_query(&scope_ring, BPF_RB_AVAIL_DATA) >=
	       bpf_ringbuf_query(&scope_ring, BPF_RB_RING_SIZE) / SHARE_PARTS;
}

static __always_inline struct scope_share *share_get(__u64 key)
{
	struct scope_share *s = bpf_map_lookup_elem(&scope_shares, &key);

	if (s)
		return s;
	bpf_map_update_elem(&scope_shares, &key, &new_share, BPF_NOEXIST);
	return bpf_map_lookup_elem(&scope_shares, &key);
}

/* What lies at or behind the part that the loader has come to. */
static __always_inline __u64 share_held(const struct scope_share *s, __u64 part)
{
	return part > s->part ? 0 : s->total - s->at[part % SHARE_SLOTS];
}

static __always_inline void share_add(struct scope_share *s, __u64 part, __u32 bytes)
{
	__u64 p;
	int i;

	for (i = 0; i < SHARE_SLOTS; i++) {
		p = part - i;
		if (p <= s->part)
			break;
		s->at[p % SHARE_SLOTS] = s->total;
	}
	if (part > s->part)
		s->part = part;
	__sync_fetch_and_add(&s->total, bytes);
}

/* Kernel context leaves an eighth of the ring to NCCL's records. */
#define SHARE_CONTEXT 8

/*
 * May this process put so many bytes into the ring? One that is filling up is shared by what is left: a process
 * and its user together may hold twice what is free, less 1 / `spare` of the ring. Then whoever floods is stopped at half of it,
 * many processes of one user at two thirds, n users at 1 / (n + 0.5) each, and others always find room, without
 * anybody knowing how many there are or how fast the loader is.
 */
static TASK_INLINE int scope_share_take(__u32 tgid, __u32 uid, __u32 bytes, __u32 spare)
{
	__u64 size = bpf_ringbuf_query(&scope_ring, BPF_RB_RING_SIZE);
	__u64 cons = bpf_ringbuf_query(&scope_ring, BPF_RB_CONS_POS);
	__u64 prod = bpf_ringbuf_query(&scope_ring, BPF_RB_PROD_POS);
	__u64 kept = prod - cons + (spare ? size / spare : 0);
	struct scope_share *user = share_get(SHARE_USER | uid), *proc = share_get(tgid);
	__u64 from = cons / (size / SHARE_PARTS), to = prod / (size / SHARE_PARTS);

	if (!user || !proc || kept >= size)
		return 0;
	if (share_held(user, from) + share_held(proc, from) + 2 * bytes > 2 * (size - kept))
		return 0;
	share_add(user, to, bytes);
	share_add(proc, to, bytes);
	return 1;
}

static __always_inline __u32 scope_task_uid(struct task_struct *task)
{
	return BPF_CORE_READ(task, cred, uid.val);
}

/* A record of kernel context of this task's. */
static __always_inline bool scope_may_tell(struct task_struct *task, __u32 bytes)
{
	return !scope_ring_is_filling() ||
	       scope_share_take(BPF_CORE_READ(task, tgid), scope_task_uid(task), bytes,
				SHARE_CONTEXT);
}

/* The number that the task's innermost pid namespace knows it by. */
static __always_inline __u32 scope_ns_nr(struct pid *pid)
{
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid upid = {};

	bpf_probe_read_kernel(&upid, sizeof(upid),
			      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				      level * sizeof(struct upid));
	return upid.nr;
}

#define PF_EXITING 0x00000004 /* <linux/sched.h> */

static __always_inline void scope_stamp_ids(struct scope_ev_hdr *h, __u16 kind, __u32 size,
					    struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	h->abi = SCOPE_ABI;
	h->kind = kind;
	h->size = size;
	h->ts_ns = bpf_ktime_get_ns();
	h->start_ns = BPF_CORE_READ(leader, start_time);
	h->ns_tgid = scope_ns_nr(BPF_CORE_READ(leader, thread_pid));
	h->ns_tid = scope_ns_nr(BPF_CORE_READ(task, thread_pid));
}

/* Fills all of `h`, of the task that runs here; nothing in it comes from the job but comm, which the loader escapes. */
static __always_inline void scope_stamp(struct scope_ev_hdr *h, __u16 kind, __u32 size,
					struct task_struct *task)
{
	__u64 ids = bpf_get_current_pid_tgid(), ugid = bpf_get_current_uid_gid();

	scope_stamp_ids(h, kind, size, task);
	h->cgroup = bpf_get_current_cgroup_id();
	h->tgid = ids >> 32;
	h->tid = (__u32)ids;
	h->uid = (__u32)ugid;
	h->gid = ugid >> 32;
	if (bpf_get_current_comm(h->comm, sizeof(h->comm)))
		__builtin_memset(h->comm, 0, sizeof(h->comm));
}

/* The same of any task. */
static __always_inline void scope_stamp_task(struct scope_ev_hdr *h, __u16 kind, __u32 size,
					     struct task_struct *task)
{
	scope_stamp_ids(h, kind, size, task);
	h->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	h->tgid = BPF_CORE_READ(task, tgid);
	h->tid = BPF_CORE_READ(task, pid);
	h->uid = scope_task_uid(task);
	h->gid = BPF_CORE_READ(task, cred, gid.val);
	BPF_CORE_READ_INTO(&h->comm, task, comm);
}

#endif
