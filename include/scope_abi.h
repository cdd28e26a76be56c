/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every byte that crosses plugin -> BPF -> loader. The only header that all three compile: plain
 * fixed-width types, widest first, no pointers, no bit-fields, padding spelled out, sizes asserted.
 *
 * Three layers, from the inside out:
 *   scope_rec_*   what the plugin appends to its thread's buffer, one per callback
 *   scope_tbuf    the thread's buffer (job memory; BPF and loader read it and trust nothing)
 *   scope_ev_*    what BPF writes to the ring: an identity stamp, then a copy of a buffer
 * and beside them scope_control, through which the loader finds and arms a process.
 *
 * Kinds are append-only; retired numbers stay as holes. Readers skip a kind that they do not know by
 * its size, and count it.
 */
#ifndef NCCLSCOPE_SCOPE_ABI_H
#define NCCLSCOPE_SCOPE_ABI_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

#define SCOPE_ABI 2 /* bumped when what the plugin knows changes; for the rest RAW_VERSION is */

/* ---- Ids ---------------------------------------------------------------------------------------
 *
 * Handles and contexts given to NCCL: tag (16 bits) | what (5 bits) | counter (43 bits). The tag
 * tells processes apart, the counter never repeats in a process, `what` is the bit number of the
 * event's type, so that a stop, which comes with nothing but the id, still knows its type. An id is
 * never 0 and never dereferenced by anyone.
 */
#define SCOPE_ID_COUNTER_BITS 43
#define SCOPE_ID_WHAT_BITS    5
#define SCOPE_ID_TAG_SHIFT    (SCOPE_ID_COUNTER_BITS + SCOPE_ID_WHAT_BITS)
#define SCOPE_ID_WHAT_CTX     16 /* a context (communicator); 0 to 15 are event types */

#define SCOPE_TAG_NONE	     0xffff /* of a process that had no memory for one */
#define SCOPE_ID_TAG(id)     ((__u16)((__u64)(id) >> SCOPE_ID_TAG_SHIFT))
#define SCOPE_ID_COUNTER(id) ((__u64)(id) & ((1ull << SCOPE_ID_COUNTER_BITS) - 1))
#define SCOPE_ID_WHAT(id)    ((__u32)((__u64)(id) >> SCOPE_ID_COUNTER_BITS) & 31)

/* Bit numbers of NCCL's event types: scope's name for 1 << n in the activation mask. */
enum scope_what {
	SCOPE_GROUP = 0,
	SCOPE_COLL = 1,
	SCOPE_P2P = 2,
	SCOPE_PROXY_OP = 3,
	SCOPE_PROXY_STEP = 4,
	SCOPE_PROXY_CTRL = 5,
	SCOPE_KERNEL_CH = 6,
	SCOPE_NET_PLUGIN = 7,
	SCOPE_GROUP_API = 8,
	SCOPE_COLL_API = 9,
	SCOPE_P2P_API = 10,
	SCOPE_KERNEL_LAUNCH = 11,
	SCOPE_CE_COLL = 12,
	SCOPE_CE_SYNC = 13,
	SCOPE_CE_BATCH = 14,
	SCOPE_KERNEL_PHASE = 15,
	SCOPE_NTYPES = 16,
};

/* ---- Records in a thread's buffer --------------------------------------------------------------
 *
 * Little-endian like every machine we run on; 8-byte aligned; `size` a multiple of 8.
 */
enum scope_rec_kind {
	SCOPE_REC_START = 1, /* scope_rec_start and the payload of its type */
	SCOPE_REC_STATE = 2, /* scope_rec_hdr (u8 = state), then an argument if size says so */
	SCOPE_REC_STOP = 3,  /* scope_rec_hdr alone */
	SCOPE_REC_STATE_REPEAT = 4, /* u8 = state, u32 = how often more, ts = the last time */
	SCOPE_REC_START_REPEAT = 5, /* u32 = how often more NCCL started the same step, ts = last */
	SCOPE_REC_STRING = 6,	    /* u32 = string id; text follows, u8 bytes, not terminated */
	SCOPE_REC_COMM = 7,	    /* scope_rec_comm: init of a context */
	SCOPE_REC_COMM_NAME = 8,    /* scope_rec_comm_name: v1 to v3 tell name and hash per event */
	SCOPE_REC_FINALIZE = 9,	    /* scope_rec_hdr, id = the context */
	SCOPE_REC_STEP = 10,	    /* scope_rec_step: a ProxyStep from its start to its stop */
};

struct scope_rec_hdr {
	__u16 size; /* bytes of the whole record */
	__u8 kind;  /* enum scope_rec_kind */
	__u8 u8;    /* by kind */
	__u32 u32;  /* by kind */
	__u64 ts;   /* ticks of the buffer's clock, see scope_tbuf.clock */
	__u64 id;   /* event or context */
};

/*
 * A state that carries an argument: transSize (bytes), appendedProxyOps, net data or pTimer (ns). With
 * the ProxyOp states of v1 to v3, h.u32 is `steps`.
 */
struct scope_rec_state {
	struct scope_rec_hdr h;
	__u64 arg;
};

/* Every start: the event's type is SCOPE_ID_WHAT(h.id). */
struct scope_rec_start {
	struct scope_rec_hdr h; /* u8 and u32 by type, see the payloads */
	__u64 parent;		/* as NCCL gave it; 0 none; foreign under PXN */
	__u64 ctx;		/* as NCCL gave it; foreign under PXN */
};

/*
 * A ProxyStep's start (h.u32 step) with room for what follows it, filled in where it lies for as long as it lies in the
 * buffer; what comes when it has been handed in, or has no place here, is a record of its own. Each part counts as
 * a record. Of a copy that was read from outside, a later one of the same bytes may know more.
 */
enum scope_step_part {
	SCOPE_STEP_GPU = 0,  /* SendGPUWait;   of a receive: RecvWait */
	SCOPE_STEP_PEER = 1, /* SendPeerWait;  RecvFlushWait */
	SCOPE_STEP_DONE = 2, /* SendWait;      RecvGPUWait */
	SCOPE_STEP_STOP = 3,
	SCOPE_STEP_PARTS = 4,
};
#define SCOPE_STEP_SEND 1 /* h.u8; 0 before the first state */
#define SCOPE_STEP_RECV 2

struct scope_rec_step {
	struct scope_rec_start s;
	__u32 ticks[SCOPE_STEP_PARTS]; /* from h.ts to the part, and one; 0: it has not been */
	__u64 trans_size_bytes;	       /* with SendWait or RecvFlushWait */
};

/* So many bytes hold at most one record: a whole step is five in 64. */
#define SCOPE_REC_BYTES_MIN 12

/* Payloads. func, datatype, algo, ... are string ids, 0 none. Pointers of the job are numbers. */

/* GroupApi: h.u8 graphCaptured, h.u32 groupDepth; no more. Group, ProxyCtrl: nothing. */
/* ProxyStep: h.u32 step; no more. */

struct scope_rec_coll_api { /* CollApi and P2pApi (root unused); h.u8 graphCaptured */
	struct scope_rec_start s;
	__u64 count;
	__u64 stream;
	__u64 user_tag; /* v7, else 0 */
	__s32 root;
	__u16 func;
	__u16 datatype;
};

struct scope_rec_stream { /* KernelLaunch */
	struct scope_rec_start s;
	__u64 stream;
};

struct scope_rec_coll { /* h.u8 nChannels, h.u32 nWarps */
	struct scope_rec_start s;
	__u64 seq;
	__u64 send_buff;
	__u64 recv_buff;
	__u64 count;
	__u64 parent_group;
	__u64 user_tag; /* v7, else 0 */
	__s32 root;
	__s32 rank;
	__u16 func;
	__u16 datatype;
	__u16 algo;
	__u16 proto;
	__u16 kernel_variant; /* v7 */
	__u8 is_sym_coll;     /* v7 */
	__u8 pad[5];
};

struct scope_rec_p2p { /* h.u8 nChannels */
	struct scope_rec_start s;
	__u64 buff;
	__u64 count;
	__u64 parent_group;
	__u64 user_tag; /* v7, else 0 */
	__s32 peer;
	__s32 rank;
	__u16 func;
	__u16 datatype;
	__u8 pad[4];
};

struct scope_rec_proxy_op { /* h.u8 channelId, h.u32 isSend */
	struct scope_rec_start s;
	__s32 pid; /* of the originator, in its own namespace */
	__s32 peer;
	__s32 nsteps;
	__s32 chunk_size_bytes;
	__s32 rank;
	__s32 pad;
};

struct scope_rec_kernel_ch { /* KernelCh; h.u8 channelId */
	struct scope_rec_start s;
	__u64 ptimer_ns; /* GPU globaltimer; 0 before v4 */
};

struct scope_rec_kernel_phase { /* h.u8 channelId, h.u32 phaseId */
	struct scope_rec_start s;
	__u64 ptimer_ns;
	__u16 phase_name;
	__u8 pad[6];
};

struct scope_rec_net_plugin { /* h.u8: 1 when the fields behind `data` were decoded */
	struct scope_rec_start s;
	__s64 net_id;
	__u64 data;
	__u64 wr_id; /* IB */
	__u64 length_bytes;
	__s32 device_or_fd; /* IB: device, socket: fd */
	__s32 opcode_or_op; /* IB: opcode, socket: 0 send, 1 receive */
	__s32 qp_num;	    /* IB */
	__s32 pad;
};

struct scope_rec_ce_coll { /* h.u8 intraBatchSync */
	struct scope_rec_start s;
	__u64 seq;
	__u64 send_buff;
	__u64 recv_buff;
	__u64 count;
	__u64 stream;
	__u64 user_tag; /* v7, else 0 */
	__s32 root;
	__s32 rank;
	__u32 batch_size;
	__u32 num_batches;
	__u32 ce_seq;
	__u16 func;
	__u16 datatype;
	__u16 sync_strategy;
	__u8 pad[6];
};

/* CeSync: h.u8 isComplete, h.u32 nRanks; no more. */

struct scope_rec_ce_batch { /* h.u8 useIntraSync, h.u32 numOps */
	struct scope_rec_start s;
	__u64 total_bytes;
};

#define SCOPE_COMM_NAME_MAX 64 /* with the terminating 0; longer names are cut */
#define SCOPE_GPU_UUID_LEN  36 /* as nvidia-smi prints it after "GPU-", not terminated */

/* Why there is no KernelCh in a communicator's mask, though somebody wanted it when it was made. */
enum scope_no_kernels {
	SCOPE_KERNELS_MAY_HANG = 1, /* NCCL may wait for good with it */
	SCOPE_KERNELS_SHM_FULL = 2, /* NCCL may find no memory for it */
	SCOPE_KERNELS_LATE = 3,	    /* who wants it came too late: only the loader says so */
};

struct scope_comm {
	__u64 ctx;			   /* 0: slot free */
	__u64 hash;			   /* commHash / commId */
	__u64 mask_addr;		   /* of NCCL's activation mask, in the job */
	__s32 rank;			   /* -1 unknown (v1 to v3 do not say) */
	__s32 nranks;			   /* 0 unknown */
	__s32 nnodes;			   /* 0 unknown */
	__u32 nccl_version;		   /* as ncclGetVersion(), 0 unknown */
	__u32 api;			   /* 1 to 7 */
	__u32 mask;			   /* the activation mask when init returned */
	char gpu_uuid[SCOPE_GPU_UUID_LEN]; /* all 0: unknown */
	char name[SCOPE_COMM_NAME_MAX];
	__u8 no_kernels; /* enum scope_no_kernels; 0: none of these */
	__u8 pad[3];
};

struct scope_rec_comm {
	struct scope_rec_hdr h;
	struct scope_comm comm;
};

struct scope_rec_comm_name {
	struct scope_rec_hdr h; /* u32 = rank as the event said */
	__u64 hash;
	char name[SCOPE_COMM_NAME_MAX];
};

#define SCOPE_STRING_MAX 63  /* bytes of an interned string; longer ones are cut */
#define SCOPE_STRINGS	 256 /* ids 1 to 255; 0 is "none" (or: the table was full) */

/* ---- A thread's buffer -------------------------------------------------------------------------
 *
 * One writer, the thread. Committed with a release store of `len`, after the bytes. `pos` and
 * `rec_pos` count since the buffer was made and never go back, so a reader that sees a chunk twice
 * (once by a probe, once by reading the memory of a dying thread) drops the second copy, and one that
 * misses a chunk knows how many records it held. Strings do not count as records: after a loss they are told
 * again.
 */
#define SCOPE_TBUF_MAGIC     0x6662742d65706f63ULL /* "cope-tbf" */
#define SCOPE_TBUF_HDR_SIZE  128
#define SCOPE_TBUF_DATA_SIZE (8192 - SCOPE_TBUF_HDR_SIZE)

enum scope_clock {
	SCOPE_CLOCK_MONOTONIC = 0, /* ns, clock_gettime(CLOCK_MONOTONIC) */
	SCOPE_CLOCK_TSC = 1,	   /* x86 invariant time-stamp counter */
	SCOPE_CLOCK_CNTVCT = 2,	   /* arm64 virtual counter */
};

struct scope_tbuf_hdr {
	__u64 magic;
	__u64 pos;	/* bytes ever committed before data[0] */
	__u64 rec_pos;	/* records ever committed before data[0] */
	__u64 lost_cnt; /* records of threads without a buffer, in the whole process */
	__u64 flush_ts; /* ticks, when last flushed */
	__u64 next_id;	/* of this thread's block of ids */
	__u64 end_id;
	__u64 strings[SCOPE_STRINGS / 64]; /* bit set: the string was announced in this epoch */
	__u32 len;			   /* bytes committed in data */
	__u32 rec_cnt;			   /* records committed in data */
	__u32 tid;			   /* as the job sees it; 0: free for another thread */
	__u32 epoch; /* scope_control.epoch that this thread has seen; 0 after a fork */
	__u16 tag;   /* of the process: SCOPE_ID_TAG of its ids */
	__u8 clock;  /* enum scope_clock of the records in data */
	__u8 pad[21];
};

/* ---- The control block -------------------------------------------------------------------------
 *
 * Symbol ncclscope_control of the plugin. The loader finds it in a process by the ELF symbol and
 * /proc/PID/maps, and reads it and writes `epoch`, `kernels_hold`, `flush_ticks`, its own slot and, to free them, those of
 * loaders that are dead through /proc/PID/mem. It survives fork; what `area` points to does not (MADV_WIPEONFORK), so a
 * child starts afresh.
 */
#define SCOPE_CONTROL_MAGIC  0x6c7274632d65706fULL /* "ope-ctrl" */
#define SCOPE_CONTROL_SYMBOL "ncclscope_control"
#define SCOPE_WANT_SLOTS     8
#define SCOPE_MASKS	     8	  /* copies of libnccl in one process */
#define SCOPE_COMMS	     4096 /* live communicators of one process that are published */
#define SCOPE_TBUFS	     4096 /* threads that ever made a callback at the same time */

struct scope_want {
	__u16 mask;  /* event types wanted; 0 with owner 0: slot free */
	__u16 pidns; /* low bits of the inode of the owner's pid namespace, where it has that pid */
	__u32 owner; /* pid of the loader; SCOPE_OWNER_MANUAL for `ncclscope arm`, with pidns 0 */
};
#define SCOPE_OWNER_MANUAL 0xffffffffu

struct scope_control {
	__u64 magic;
	__u32 abi;
	__u32 size;	   /* of this struct */
	__u64 area;	   /* address of struct scope_area, 0 before the first init */
	__u64 flush_ticks; /* age at which a buffer is flushed at the next callback; the loader
			       writes 10 ms in ticks once it knows the rate, or more for many processes */
	__u32 epoch;	   /* bumped by the loader: threads announce strings and themselves anew */
	__u32 kernels_hold; /* flush ages for which KernelCh stays on when nobody wants it: written by a
			       loader that comes back soon, and set to 0 when it leaves for good */
	struct scope_want want[SCOPE_WANT_SLOTS];
};

/* NCCL has worked with KernelCh since it has communicators, or, where it does not tell in time, may have. */
#define SCOPE_KERNELS_USED 1
#define SCOPE_KERNELS_STAY 2 /* and may wait for good without: captured graphs, some Broadcasts */

struct scope_area {
	__u64 magic;	      /* SCOPE_CONTROL_MAGIC once ready; 0 after a fork */
	__u32 state;	      /* 0, 1 being set up, 2 ready */
	__u32 pid;	      /* as the job sees it */
	__u64 ids;	      /* next block of ids */
	__u64 nobuf_lost_cnt; /* records of threads that could not get a buffer */
	__u32 ceiling;	      /* NCCL_PROFILE_EVENT_MASK */
	__u32 kernel_ch_ok;   /* a loader was there at the first init: KernelCh may be armed */
	__u16 tag;
	__u8 clock;
	__u8 kernels_used;	  /* SCOPE_KERNELS_*: KernelCh must not go off but by the plugin */
	__u32 lock;		  /* the plugin's own, for init and finalize */
	__u64 masks[SCOPE_MASKS]; /* addresses of activation masks; 0 none */
	__u64 mask_bases[SCOPE_MASKS]; /* load address of the libnccl that owns it; 0: may go */
	__u64 tbufs[SCOPE_TBUFS];      /* addresses of thread buffers */
	struct scope_comm comms[SCOPE_COMMS];
};

/* ---- Between the loader and BPF: what the table of processes says of one --------------------------- */

enum scope_pid {
	SCOPE_PID_OFF = 0,
	SCOPE_PID_ON = 1, /* its threads are recorded */
	SCOPE_PID_ARMED =
		2, /* the same, and it has a communicator, so that it is to be told of also if it hands in nothing */
};

/* ---- Ring records ------------------------------------------------------------------------------ */

enum scope_ev_kind {
	SCOPE_EV_CHUNK = 1, /* scope_ev_chunk: a copy of a thread's buffer */
	SCOPE_EV_EXIT = 2,  /* scope_ev_exit: a thread or a process ended */
	SCOPE_EV_EXEC = 3,  /* scope_ev_exit: the process became another program */
	/* Kernel context. These begin with a scope_ev_short only. */
	SCOPE_EV_THREAD = 4, /* scope_ev_thread: from here on the states of a thread are known */
	SCOPE_EV_SWITCH = 5, /* scope_ev_switch: a CPU went from one thread to another */
	SCOPE_EV_MIGRATE =
		6,	   /* scope_ev_migrate: a waiting thread was moved to another CPU's queue */
	SCOPE_EV_IRQ = 7,  /* scope_ev_irq: interrupts ran on top of a thread */
	SCOPE_EV_FLOW = 8, /* scope_ev_flow: a TCP connection begins, changes, is reset, ends */
	SCOPE_EV_USES = 9, /* scope_ev_uses: a thread moved bytes over one */
	SCOPE_EV_RETRANS = 10,	/* scope_ev_retrans: segments of one were sent again */
	SCOPE_EV_DROP = 11,	/* scope_ev_drop: the kernel dropped a packet of one */
	SCOPE_EV_SWITCHES = 12, /* scope_ev_switches: several of SCOPE_EV_SWITCH, of one CPU */
	SCOPE_EV_SIGNAL = 13,	/* scope_ev_signal: a process was sent one that ends or stops */
	SCOPE_EV_WOKEN = 14,	/* scope_ev_woken: a thread's long sleep was ended, or lasts */
	SCOPE_EV_STACK = 15,	/* scope_ev_stack: where in the kernel one sleeps */
	SCOPE_EV_FOUND =
		16, /* scope_ev_hdr, of its first thread: a process that has handed in nothing yet */
};

/* Why a buffer was flushed: the second argument of the flush probe. From 16 on: by BPF itself. */
enum scope_flush_reason {
	SCOPE_FLUSH_FULL = 0,
	SCOPE_FLUSH_TOP = 1, /* a top-level event ended on this thread */
	SCOPE_FLUSH_AGE = 2,
	SCOPE_FLUSH_INIT = 3, /* a communicator was made: the loader wants to know at once */
	SCOPE_FLUSH_FINALIZE = 4,
	SCOPE_FLUSH_EXIT = 5,	  /* thread or process exits in good order */
	SCOPE_FLUSH_EPOCH = 6,	  /* first record since the loader asked */
	SCOPE_FLUSH_DYING = 16,	  /* read by BPF: fatal signal or exit */
	SCOPE_FLUSH_OUTSIDE = 17, /* read by the loader from outside */
};

#define SCOPE_COMM_LEN 16 /* TASK_COMM_LEN */

/* Stamped by BPF from the kernel's own knowledge: nothing here comes from the job but `comm`. */
struct scope_ev_hdr {
	__u16 abi;
	__u16 kind;	/* enum scope_ev_kind */
	__u32 size;	/* of the whole record */
	__u64 ts_ns;	/* CLOCK_MONOTONIC */
	__u64 start_ns; /* CLOCK_MONOTONIC when the thread group leader started: with tgid, a process
			   for ever */
	__u64 cgroup;	/* id in the default hierarchy */
	__u32 tgid;	/* host */
	__u32 tid;	/* host */
	__u32 ns_tgid;	/* as the job sees it */
	__u32 ns_tid;
	__u32 uid;
	__u32 gid;
	char comm[SCOPE_COMM_LEN];
};

struct scope_ev_chunk {
	struct scope_ev_hdr h;
	__u64 tbuf; /* its address in the job: the stream's key in this process */
	__u64 pos;  /* bytes, see scope_tbuf_hdr */
	__u64 rec_pos;
	__u64 lost_cnt;
	__u64 limited_recs; /* of this process so far: see scope_proc_stat; by BPF's own account */
	__u32 len;	    /* bytes of data that follow */
	__u32 rec_cnt;
	__u16 tag;
	__u8 clock;
	__u8 reason;	 /* enum scope_flush_reason */
	__u32 sched_seq; /* of the thread, when it was copied; 0 none */
};

struct scope_ev_exit {
	struct scope_ev_hdr h;
	__s32 code;	  /* as wait(2)'s status: of the thread; of the group when group_dead */
	__u32 group_dead; /* this was the last thread */
	__u64 lost_recs; /* of this process: records in chunks that did not get into the ring, ever */
	__u64 lost_chunks;
	__u64 limited_recs; /* of lost_recs */
	__u32 sched_seq;    /* of the thread, at its end */
	__u16 context_lost; /* of this process: as in scope_proc_stat; 65,535: or more */
	__u8 oom;	    /* 1: the kernel had chosen it to get memory back */
	__u8 pad;
};

/* ---- Kernel context: what the scheduler did to the threads of recorded processes ----------------
 *
 * A thread's records carry its own sequence number, counted also where the ring was full: a reader
 * that sees a gap knows that states are missing there, and how many records. Ring order is time order
 * for one thread and for one CPU.
 */
struct scope_ev_short {
	__u16 abi;
	__u16 kind; /* enum scope_ev_kind */
	__u32 size;
	__u64 ts_ns; /* CLOCK_MONOTONIC */
};

enum scope_task_state {
	SCOPE_TASK_RUN = 1,
	SCOPE_TASK_WAIT = 2,	/* runnable: in a CPU's queue, or held back by a quota */
	SCOPE_TASK_BLOCKED = 3, /* asleep, interruptible or not; or not started yet */
};

/* Why a thread is asleep: the number of the system call that it is in, or one of these. */
#define SCOPE_WHY_OTHER (-1)
#define SCOPE_WHY_PAGEFAULT                                                                        \
	(-2) /* an exception in user mode, which is as good as always a page fault */
#define SCOPE_WHY_IO	  (-3) /* block I/O, in whatever call */
#define SCOPE_WHY_STOPPED (-4) /* SIGSTOP, ptrace */
#define SCOPE_WHY_FROZEN  (-5) /* with its cgroup */

struct scope_ev_thread {
	struct scope_ev_short h;
	__u64 start_ns; /* of the thread group leader, as in scope_ev_hdr */
	__u32 tgid;	/* host, as all that follow but ns_ */
	__u32 tid;
	__u32 ns_tgid;
	__u32 ns_tid;
	__u32 seq;
	__u8 state; /* enum scope_task_state, from ts_ns on */
	__u8 born;  /* 1: it began here; 0: it was in that state before already */
	__u8 pad[2];
	char comm[SCOPE_COMM_LEN];
};

/* scope_ev_switch.flags */
#define SCOPE_SWITCH_PREV    1 /* prev is recorded: prev_state, prev_seq and why count */
#define SCOPE_SWITCH_NEXT    2 /* next is recorded: next_seq, wait_ns and throttled_ns count */
#define SCOPE_SWITCH_WATCHED 4 /* a recorded thread waited for this CPU: prev_comm counts */

struct scope_ev_switch {
	struct scope_ev_short h;
	__u32 cpu;
	__u32 cpu_seq; /* of this CPU's switches that are recorded */
	__u32 flags;
	__u32 prev_tid;
	__u32 prev_tgid;
	__u32 prev_seq;
	__s32 why;	  /* prev blocked: SCOPE_WHY_* or a system call */
	__u32 prev_state; /* enum scope_task_state: what it is in now */
	__u32 next_tid;
	__u32 next_seq;
	__u64 wait_ns;	    /* next: runnable since */
	__u64 throttled_ns; /* next: of this, for so long a cgroup's quota held back its queue */
	char prev_comm[SCOPE_COMM_LEN];
};

/*
 * A switch whose parties the loader knows: a thread that it concerns has been told of (SCOPE_EV_THREAD), under the name that prev
 * has now, and what is left fits.
 */
#define SCOPE_SWITCH_WAITED 8 /* scope_switch.flags, beside the others: waited_ns counts */

struct scope_switch {
	__u64 ts_ns;	/* CLOCK_MONOTONIC */
	__u32 prev_tid; /* 0: idle */
	__u32 prev_seq;
	__u32 next_tid;
	__u32 next_seq;
	__u32 waited_ns; /* next: runnable for so long */
	__s16 why;
	__u8 prev_state;
	__u8 flags;
};

#define SCOPE_SWITCHES 16 /* in a record, at most */

/* Switches of a CPU, one after the other. Some may come twice: cpu_seq tells. */
struct scope_ev_switches {
	struct scope_ev_short h; /* ts_ns: the first one's */
	__u32 cpu;
	__u32 cpu_seq; /* of the first */
	struct scope_switch at[SCOPE_SWITCHES];
};

#define SCOPE_SWITCHES_SIZE(n)                                                                     \
	((__u32)(__builtin_offsetof(struct scope_ev_switches, at) +                                \
		 (n) * sizeof(struct scope_switch)))
#define SCOPE_SWITCHES_N(size)                                                                     \
	(((size)-SCOPE_SWITCHES_SIZE(0)) / (__u32)sizeof(struct scope_switch))

/*
 * Where a CPU's gather, in the BPF map scope_switches, until there are SCOPE_SWITCHES of them or somebody needs them: the one with
 * cpu_seq n at n % SCOPE_SWITCH_SLOTS. Those that are younger than `told` and `copied` are in no record yet. BPF writes, on that
 * CPU, but `copied`; the loader reads those that gather, too. Who has copied some, and finds `told` as it was before, has what he
 * wanted: it changes before their slots are used again.
 */
#define SCOPE_SWITCH_SLOTS 32

struct scope_switches {
	__u32 seq;    /* of its last switch */
	__u32 told;   /* in the ring, or lost, up to here */
	__u32 copied; /* the same, by others */
	/* The rest is of the switch that is being recorded, beside its slot. */
	__s32 why;
	__u64 wait_ns;
	__u64 throttled_ns;
	__u32 whole; /* it takes a scope_ev_switch */
	__u32 pad[7];
	struct scope_switch at[SCOPE_SWITCH_SLOTS];
};

/* The thread waited for `from`, where `curr` ran; from ts_ns on it waits for `to`. */
struct scope_ev_migrate {
	struct scope_ev_short h;
	__u32 tid;
	__u32 seq;
	__u32 from;
	__u32 to;
	__u32 cpu_seq; /* of the last switch of `from` */
	__u32 curr_tid;
	__u32 curr_tgid; /* 0: idle, or no switch of that CPU was seen yet */
	__u32 pad;
	__u64 wait_ns; /* runnable since */
	char curr_comm[SCOPE_COMM_LEN];
};

/* The addresses of a connection. */
struct scope_tuple {
	__u8 local[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u8 remote[16];
	__u16 local_port; /* host order */
	__u16 remote_port;
};

#define SCOPE_SLEEP_LONG_NS 1000000
#define SCOPE_ASLEEP_NS                                                                            \
	1000000000 /* from then on it is told of while it lasts, if the loader asks */
#define SCOPE_FILE_LEN 64

/*
 * Who ended a thread's sleep of SCOPE_SLEEP_LONG_NS or more, and the file that the system call it slept in was given first, if that was a
 * file's descriptor at all: the call tells. Comes between the switches with which the thread went to sleep and ran again. It has no
 * number of the thread's.
 */
struct scope_ev_woken {
	struct scope_ev_short h;
	__u64 since_ns; /* ts_ns of the switch with which it went to sleep */
	__u32 tid;
	__u32 by_tgid;		      /* 0: an interrupt did, or it is not known */
	__s32 call;		      /* number of the system call, or SCOPE_WHY_*, but for _IO */
	__u32 has_sock;		      /* `sock` counts */
	char by_comm[SCOPE_COMM_LEN]; /* of the thread that did */
	char fs[16];		      /* type of the file's filesystem; "": no file */
	char dir[SCOPE_FILE_LEN]; /* last parts of its path, each ends with a 0: what is longer is cut */
	char name[SCOPE_FILE_LEN];
	struct scope_tuple sock; /* of a TCP or UDP socket */
	__u32 asleep;		 /* 1: nobody has ended it yet */
};

#define SCOPE_STACK_LEN 32

/*
 * Behind a scope_ev_woken of a thread that is asleep: the functions of the kernel that it is in. `at` of BPF is where calls return to; the
 * loader, before anything else, puts numbers of INPUT_SYMBOL in their place.
 */
struct scope_ev_stack {
	struct scope_ev_short h;
	__u64 since_ns; /* as in scope_ev_woken */
	__u32 tid;
	__u32 n;		   /* of `at` */
	__u64 at[SCOPE_STACK_LEN]; /* the innermost first; what is further out is cut */
};

/* One stay in hard or soft interrupt, those nested in it included. */
struct scope_irq {
	__u32 after_ns; /* it began, h.ts_ns of its record */
	__u32 dur_ns;
	__u16 vec;
	__u8 soft; /* 0: hard, vec is the interrupt's number; 1: soft, vec as in /proc/softirqs */
	__u8 pad;
};

#define SCOPE_IRQS    16      /* in a record, at most */
#define SCOPE_IRQS_NS 1000000 /* between the begins of the first and the last */

/*
 * What came on top of a thread, in order; before its switch, its chunk and its end, if these are younger. A chunk and the end may find some that
 * have not been told yet: then the record comes again, with those and more.
 */
struct scope_ev_irq {
	struct scope_ev_short h; /* ts_ns: the first one's begin */
	__u32 tid;
	__u32 cpu;
	__u64 fill; /* which record of its CPU's it is, from 1, << 8 | SCOPE_IRQS_UNTOLD | how many there are: one access for all */
	struct scope_irq at[SCOPE_IRQS];
};

#define SCOPE_IRQS_NR(fill) ((fill) >> 8)
#define SCOPE_IRQS_N(fill)  ((__u32)((fill)&0x7f))
#define SCOPE_IRQS_SIZE(n)                                                                         \
	((__u32)(__builtin_offsetof(struct scope_ev_irq, at) + (n) * sizeof(struct scope_irq)))
#define SCOPE_IRQS_UNTOLD 0x80 /* the loader has read it where it gathers */

/* Those that gather on a CPU, in the BPF map scope_irqs; the loader reads it too. */
struct scope_irqs {
	struct scope_ev_irq rec; /* h.size is not set; none in it: told */
	__u64 copied;		 /* rec.fill of the last that was told as a copy */
};

/*
 * A signal was sent to a recorded process: one of those that end or stop a process by default, if that has no handler for it; and
 * SIGCONT that continues it. Of those with a handler the ones that people and launchers send (SIGTERM), and faults,
 * of these no more than one a second.
 */
struct scope_ev_signal {
	struct scope_ev_short h;
	__u64 start_ns; /* of the thread group leader, as in scope_ev_hdr */
	__u32 tgid;	/* host; whom it is for */
	__u32 ns_tid;	/* the thread that it is for; 0: any of the process */
	__s32 sig;
	__s32 code;	    /* si_code: above 0 it is the kernel's, else a call's */
	__u32 from_tgid;    /* host; who ran when it was sent: the sender, */
	__u32 from_tid;	    /* unless the kernel did so on somebody else's account */
	__u32 from_ns_tgid; /* as its own innermost pid namespace has it */
	__u32 from_uid;
	__u8 handled; /* 1: the process has a handler */
	__u8 exiting; /* 1: who ran was on its way to its end */
	__u8 pad[6];
	char from_comm[SCOPE_COMM_LEN];
};

/*
 * The state of a thread, in the BPF map scope_slots at tid % SCOPE_TASK_SLOTS, or in scope_tasks, key tid, if
 * another thread was there first. BPF writes; the loader reads those that sleep long.
 */
#define SCOPE_TASK_SLOTS 32768

struct scope_task {
	__u64 wait_ns;	/* waiting: since when */
	__u64 quota_rq; /* waiting: its cgroup's queue of that CPU, as a number, and */
	union {
		__u64 quota_ns;	 /* what a quota had held that back in all then */
		__u64 asleep_ns; /* asleep: since when; 0: not known, or told */
	};
	__u32 seq;  /* of its records */
	__u32 cpu;  /* waiting: in whose queue */
	__u8 state; /* enum scope_task_state */
	__u8 born;
	__u8 told;		   /* its scope_ev_thread is in the ring */
	__u8 asleep;		   /* asleep: that it is has been told */
	__u32 tid;		   /* 0: the slot is free */
	__u32 at_cpu;		   /* its last switch is that CPU's with */
	__u32 at_seq;		   /* this number */
	char comm[SCOPE_COMM_LEN]; /* the name under which it was told of last */
};

/* ---- Kernel context: TCP connections of recorded processes --------------------------------------
 *
 * A flow is known by the address of its struct sock and the time since which it is known: addresses
 * come again. `lost` of each record: how many of this flow's records have found the ring full so far.
 * Counters are the kernel's own (struct tcp_sock), since the connection began. Nothing may rest on
 * seeing every call: the kernel skips a program that interrupts itself.
 */

/* What a step's figures are made of. Times of the kernel's chronometers are in jiffies. */
struct scope_tcp_use {
	__u32 total_retrans; /* segments */
	__u32 lost;
	__u32 rcv_ooopack; /* segments received out of order */
	__u32 dsack_dups;  /* segments that the peer says it had already */
	__u32 srtt_us;	   /* times 8 */
	__u32 rtt_min_us;
	__u32 snd_cwnd; /* segments */
	__u32 busy;	/* data outstanding; the next two contained */
	__u32 rwnd_limited;
	__u32 sndbuf_limited;
};

/* What a flow record is made of besides. */
struct scope_tcp {
	__u64 bytes_acked;
	__u64 bytes_received;
	struct scope_tcp_use use;
	__u32 mdev_us; /* times 4 */
	__u32 ssthresh;
	__u32 mss;
	__u32 rate_delivered; /* segments, in */
	__u32 rate_interval_us;
	__u32 reordering; /* degree */
	__u32 state;	  /* TCP_ESTABLISHED is 1, and so on */
	__u32 pad;
};

enum scope_flow_why {
	SCOPE_FLOW_OPEN = 1,  /* a recorded process' connection has come about */
	SCOPE_FLOW_FOUND = 2, /* first use seen, or open already when its process was found */
	SCOPE_FLOW_STATE = 3, /* tcp.state is another */
	SCOPE_FLOW_RESET_IN = 4,
	SCOPE_FLOW_RESET_OUT = 5,
	SCOPE_FLOW_GONE = 6, /* the kernel forgets it */
};

struct scope_ev_flow {
	struct scope_ev_short h;
	__u64 sk;
	__u64 since_ns;
	__u64 total[2]; /* bytes moved since since_ns, by enum scope_dir */
	__u32 tgid;	/* host; the owner */
	__u32 tid;	/* who did it; 0 for what comes from the network */
	__u32 netns;	/* inode of the network namespace */
	__u32 lost;
	__u32 why; /* enum scope_flow_why */
	struct scope_tuple tuple;
	struct scope_tcp tcp;
};

enum scope_dir { SCOPE_TX, SCOPE_RX };

/*
 * Calls of one thread on one flow in one direction, close to each other. Small calls (NCCL's size header) are
 * uses of their own.
 */
struct scope_use {
	__u32 after_ns; /* the last call's end, after h.ts_ns of the record */
	__u32 dur_ns;	/* from the first call's end to the last one's */
	__u32 bytes;	/* in these calls */
	__u32 total;	/* more than `total` of the record */
	__u32 empty_ns; /* likewise */
	__u32 srtt_us;	/* after the last call, times 8 */
};

#define SCOPE_USES 8 /* in a record, at most */

/*
 * Uses of one thread on one flow in one direction, in order. They gather until there are SCOPE_USES of them or one is not
 * like the others. Some may come twice: nr tells.
 */
struct scope_ev_uses {
	struct scope_ev_short h; /* ts_ns: the first one's last call ended */
	__u64 sk;
	__u64 since_ns;
	__u64 total; /* bytes in this direction since since_ns, with the first one's */
	__u64 empty_ns; /* in all: from a call that found nothing, or no room, to the next that did not */
	__u32 tgid; /* host */
	__u32 tid;
	__u32 dir; /* enum scope_dir */
	__u32 lost;
	__u32 nr; /* of the first, in this direction of the flow, from 0 */
	__u32 n;
	struct scope_tcp_use tcp; /* after each of them, but for srtt_us */
	struct scope_use at[SCOPE_USES];
};

#define SCOPE_USES_SIZE(n)                                                                         \
	((__u32)(__builtin_offsetof(struct scope_ev_uses, at) + (n) * sizeof(struct scope_use)))

struct scope_ev_retrans {
	struct scope_ev_short h;
	__u64 sk;
	__u64 since_ns;
	__u32 total; /* of the flow, these included */
	__u32 lost;
};

#define SCOPE_SYMBOL_LEN 128 /* of a kernel function's name, with its 0: KSYM_NAME_LEN before 6.1 */

struct scope_ev_drop {
	struct scope_ev_short h;
	__u64 sk; /* of the flow: the receiver's if it is recorded, else the sender's */
	__u64 location; /* address in the kernel; from the loader on as `at` of scope_ev_stack, if that has a name */
	__u32 reason; /* enum skb_drop_reason; 0 where the kernel does not say */
	__u32 netns;  /* of the device that the packet is on; 0 not known */
	__u32 len;    /* bytes, headers included */
	__u32 lost;
	struct scope_tuple tuple; /* as the receiver has it */
	__u32 pad;
};

/* Calls in one direction that have come to an end yet, as far as that is known; calls 0: none. */
struct scope_flow_open {
	__u64 first_ns;
	__u64 last_ns;
	__u64 total; /* since since_ns; valid without calls, too */
	__u64 empty_ns;
	__u32 bytes;
	__u32 calls;
	__u32 tid;
	__u32 pad;
};

#define SCOPE_SAMPLES 64 /* that the loader asks for at a time */

/* A flow now; the loader asks for all of them. ts_ns: when this one was read. */
struct scope_flow_sample {
	__u64 sk;
	__u64 since_ns;
	__u64 ts_ns;
	__u32 tgid;
	__u32 lost;
	struct scope_flow_open open[2]; /* by enum scope_dir */
	struct scope_tcp tcp;
};

/* How a process ended for whose end the ring had no room. */
enum scope_ended {
	SCOPE_ENDED_NOT = 0,
	SCOPE_ENDED_EXIT = 1,
	SCOPE_ENDED_EXEC = 2,
};

/*
 * Per process, in the BPF map scope_procs, key tgid. BPF writes, and deletes at the end of the process
 * unless it had to leave `ended` behind; the loader reads, and deletes that.
 */
struct scope_proc_stat {
	__u64 start_ns;
	__u64 lost_recs;
	__u64 lost_chunks;
	__u64 limited_recs; /* of lost_recs: there was room, but the process had more than its share */
	__u64 faults;
	__u64 fault_ns;	  /* when a fault that it handles was told of last */
	__u64 signals_ns; /* its signals have used up their share until then */
	__u32 ended;	  /* enum scope_ended */
	__s32 code;	  /* then: as in scope_ev_exit */
	__u32 context_lost; /* scope_ev_signal, _woken and _stack that did not get into the ring: no numbers show it */
	__u8 pad[4];
};

/* Counters of the BPF side, map scope_stats (per CPU). */
enum scope_stat {
	SCOPE_STAT_CHUNKS,
	SCOPE_STAT_RECS,
	SCOPE_STAT_RING_FULL, /* chunks or events that found the ring full */
	SCOPE_STAT_BAD_TBUF,  /* header unreadable or nonsense */
	SCOPE_STAT_FAULT,     /* data not readable */
	SCOPE_STAT_DYING,     /* buffers read from dying threads */
	SCOPE_STAT_MAP_FULL,
	SCOPE_STAT_SCHED,      /* records of kernel context */
	SCOPE_STAT_SCHED_LOST, /* more of these, of recorded threads, that found the ring full */
	SCOPE_STAT_NET,	       /* records of flows */
	SCOPE_STAT_NET_LOST,   /* of these, found the ring full */
	SCOPE_STAT_FLOWS_FULL, /* flows that found the table full */
	SCOPE_STAT_LIMITED,    /* chunks of processes that had more than their share */
	SCOPE_STAT_SCHED_OTHERS, /* switches of others, on a CPU that is waited for, that were left out */
	SCOPE_STAT_N,
};

#define SCOPE_ABI_SIZE(t, n) _Static_assert(sizeof(struct t) == (n), "scope ABI: sizeof " #t)
#define SCOPE_ABI_AT(t, f, n)                                                                      \
	_Static_assert(__builtin_offsetof(struct t, f) == (n), "scope ABI: " #t "." #f)

SCOPE_ABI_SIZE(scope_rec_hdr, 24);
SCOPE_ABI_SIZE(scope_rec_state, 32);
SCOPE_ABI_SIZE(scope_rec_start, 40);
SCOPE_ABI_SIZE(scope_rec_step, 64);
SCOPE_ABI_SIZE(scope_rec_coll_api, 72);
SCOPE_ABI_SIZE(scope_rec_stream, 48);
SCOPE_ABI_SIZE(scope_rec_coll, 112);
SCOPE_ABI_SIZE(scope_rec_p2p, 88);
SCOPE_ABI_SIZE(scope_rec_proxy_op, 64);
SCOPE_ABI_SIZE(scope_rec_kernel_ch, 48);
SCOPE_ABI_SIZE(scope_rec_kernel_phase, 56);
SCOPE_ABI_SIZE(scope_rec_net_plugin, 88);
SCOPE_ABI_SIZE(scope_rec_ce_coll, 120);
SCOPE_ABI_SIZE(scope_rec_ce_batch, 48);
SCOPE_ABI_SIZE(scope_comm, 152);
SCOPE_ABI_SIZE(scope_rec_comm, 176);
SCOPE_ABI_SIZE(scope_rec_comm_name, 96);
SCOPE_ABI_SIZE(scope_tbuf_hdr, SCOPE_TBUF_HDR_SIZE);
SCOPE_ABI_AT(scope_tbuf_hdr, pos, 8);
SCOPE_ABI_AT(scope_tbuf_hdr, len, 88);
SCOPE_ABI_SIZE(scope_want, 8);
SCOPE_ABI_SIZE(scope_control, 40 + 8 * SCOPE_WANT_SLOTS);
SCOPE_ABI_AT(scope_control, epoch, 32);
SCOPE_ABI_AT(scope_control, want, 40);
SCOPE_ABI_SIZE(scope_area, 48 + 16 * SCOPE_MASKS + 8 * SCOPE_TBUFS + 152 * SCOPE_COMMS);
SCOPE_ABI_SIZE(scope_ev_hdr, 72);
SCOPE_ABI_SIZE(scope_ev_chunk, 128);
SCOPE_ABI_SIZE(scope_ev_exit, 112);
SCOPE_ABI_SIZE(scope_ev_short, 16);
SCOPE_ABI_SIZE(scope_ev_thread, 64);
SCOPE_ABI_SIZE(scope_ev_switch, 88);
SCOPE_ABI_SIZE(scope_switch, 32);
SCOPE_ABI_SIZE(scope_ev_switches, 24 + 32 * SCOPE_SWITCHES);
SCOPE_ABI_SIZE(scope_switches, 64 + 32 * SCOPE_SWITCH_SLOTS);
SCOPE_ABI_SIZE(scope_ev_migrate, 72);
SCOPE_ABI_SIZE(scope_irq, 12);
SCOPE_ABI_SIZE(scope_ev_irq, 224);
SCOPE_ABI_SIZE(scope_irqs, 232);
SCOPE_ABI_SIZE(scope_ev_signal, 80);
SCOPE_ABI_SIZE(scope_ev_woken, 240);
SCOPE_ABI_SIZE(scope_ev_stack, 288);
SCOPE_ABI_SIZE(scope_task, 64);
SCOPE_ABI_SIZE(scope_tuple, 36);
SCOPE_ABI_SIZE(scope_tcp_use, 40);
SCOPE_ABI_SIZE(scope_tcp, 88);
SCOPE_ABI_SIZE(scope_ev_flow, 192);
SCOPE_ABI_SIZE(scope_use, 24);
SCOPE_ABI_SIZE(scope_ev_uses, 112 + 24 * SCOPE_USES);
SCOPE_ABI_SIZE(scope_ev_retrans, 40);
SCOPE_ABI_SIZE(scope_ev_drop, 88);
SCOPE_ABI_SIZE(scope_flow_open, 48);
SCOPE_ABI_SIZE(scope_flow_sample, 216);
SCOPE_ABI_SIZE(scope_proc_stat, 72);

#endif
