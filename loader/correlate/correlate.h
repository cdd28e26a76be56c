/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events of one process in flight: starts, states and stops in, whole events out. Pure: no I/O, no
 * clock, no globals; time comes in with the records and with correlate__tick(). Kernel context joins
 * here, as marks in the threads' time that an event takes at its start and stop (sched_join.h); and what
 * has steps on the network waits, once it has stopped, until its flows are known (net_join.h).
 *
 * Order: an event's start, states and stop come from one thread and so in order; its parent's start
 * may come later than the event itself, from another thread's buffer. Nothing that comes in is trusted.
 */
#ifndef NCCLSCOPE_CORRELATE_H
#define NCCLSCOPE_CORRELATE_H

#include <stdbool.h>
#include <stdint.h>
#include "budget.h"
#include "gpu_clock.h"
#include "hash.h"
#include "hung.h"
#include "net_join.h"
#include "sched_timeline.h"
#include "scope_abi.h"
#include "slab.h"

/* Which thread made a callback, as the job and as the node see it, and what the kernel did to it. */
struct corr_thread {
	uint32_t tid, host_tid;
	struct sched_thread *sched; /* NULL: not known; valid during a call only */
};

/* What an event keeps of its thread's time; see sched_join.h. */
struct corr_span {
	struct sched_thread *thread; /* held; NULL: not known */
	struct sched_mark from, to;  /* its start and stop */
	bool elsewhere; /* another thread has stopped it: `to` is not known before all that is older is in */
	/* An operation's: ProxyOps that have not stopped. */
	uint32_t open;
	/* A ProxyOp's: for which thread it is among those; not held. */
	const struct sched_thread *counted;
};

/* A communicator; lives as long as it is open or an event refers to it. */
struct corr_comm {
	struct scope_comm info;
	uint64_t moved_ns;  /* an operation of it last moved */
	uint64_t busy_look; /* at `closing`, the last that found one with open children */
	/* Start of the last operation that was closed with no child open, and of the last that something tells of when it ended. */
	uint64_t closed_ns, ended_ns;
	uint32_t refs;
	bool made; /* while it is recorded */
	bool finalized;
	struct {
		uint64_t seq, start_ns; /* 0: none yet */
		uint16_t func;
	} last; /* the Coll that was last begun */
	struct {
		uint64_t group, ns; /* 0: none yet */
	} launch; /* the first kernel of the group of calls that last launched one: began to be launched */
	struct gpu_clock *gpu;	  /* of the GPU that it is on, with others perhaps */
	struct gpu_clock own_gpu; /* where that GPU has no name */
	struct live *live;	  /* the owner's, malloc'ed; freed with this */
	UT_hash_handle hh;	  /* by info.ctx */
};

/* A progress thread that has slept. NCCL's does when all that it was handed is done. */
struct corr_sleeper {
	uint32_t host_tid;
	uint64_t slept_ns; /* the last time that it is known to */
	UT_hash_handle hh; /* by host_tid */
};

/* One state of an event, held back until the next record tells whether it repeats. */
struct corr_state {
	uint64_t ts_ns, last_ts_ns;
	uint64_t arg;
	uint32_t id;
	uint32_t steps;
	uint32_t repeats;
	struct corr_thread thread;
	bool has_arg;
};

enum corr_exec { EXEC_NONE, EXEC_ENQUEUE, EXEC_KERNEL, EXEC_PROXY };

/* The start record as it came, by type; see scope_abi.h. */
union corr_start {
	struct scope_rec_start s;
	struct scope_rec_coll_api coll_api;
	struct scope_rec_stream stream;
	struct scope_rec_coll coll;
	struct scope_rec_p2p p2p;
	struct scope_rec_proxy_op proxy_op;
	struct scope_rec_kernel_ch kernel_ch;
	struct scope_rec_kernel_phase kernel_phase;
	struct scope_rec_net_plugin net_plugin;
	struct scope_rec_ce_coll ce_coll;
	struct scope_rec_ce_batch ce_batch;
};

struct corr_list;

struct corr_event {
	uint64_t id; /* key in the table */
	uint64_t start_ns, stop_ns;
	struct corr_thread start_thread, stop_thread;
	union corr_start start;
	struct corr_comm *comm; /* NULL: not known, or PXN */
	uint32_t what;		/* enum scope_what */
	uint32_t last_state;	/* UINT32_MAX: none yet */
	uint64_t last_state_ns; /* since when; repeats do not count */
	struct corr_state pending;
	union {
		uint64_t trans_size; /* ProxyStep: the last seen; valid with has_trans_size */
		uint64_t launch_ns;  /* Coll, P2p: its kernel began after that; 0: not known */
	};
	uint64_t ptimer_stop_ns; /* Coll: the last of its kernels' */
	/* ProxyStep: its data was about to be handed to the GPU. ProxyOp, Coll: the last of all that came to it */
	uint64_t handed_ns;
	uint32_t nkernels; /* Coll: KernelChs that have stopped */
	uint32_t start_repeats;
	uint32_t loss_near; /* records lost in the process between start and stop */
	uint64_t loss_at_start;

	/* ProxyStep: of its operation; also valid when that has gone */
	uint8_t channel;
	uint8_t is_send;
	int32_t peer;

	union {
		struct {		      /* Coll, P2p: closure. ProxyOp: its steps */
			uint64_t child_ns;    /* last end of a child (ProxyOp: of a step) */
			uint64_t activity_ns; /* a child last started or ended */
			uint64_t exec_stop_ns;
		};
		struct { /* KernelCh, KernelPhase: when it ran; valid with has_gpu */
			uint64_t gpu_start_ns, gpu_stop_ns, gpu_error_ns;
		};
	};
	uint32_t open_children;
	uint32_t open_ops; /* of these, ProxyOps */
	enum corr_exec exec;

	struct corr_span sched;
	struct sched_mark sched_child; /* ProxyOp: at child_ns */
	struct sched_mark *before; /* Coll, P2p: start of the thread's operation before it; owned */
	struct corr_span *served;  /* Coll, P2p: the threads that worked on it; owned */
	uint32_t nserved;
	struct corr_net net;
	struct hung_event hung;

	int32_t origin_pid; /* PXN */
	bool has_state, has_trans_size, has_op, has_ptimer_stop, has_gpu;
	bool stopped, unfinished, orphan, pxn;
	bool silent; /* a ProxyOp, unfinished: its thread had nothing to do any more, and NCCL has told nothing of it */
	bool outside; /* belongs to what began before the recording, or after its end: not written */
	bool linked;  /* its parent is known and counts it */
	bool written; /* stays in the table for children and late records */

	struct corr_event *prev, *next; /* in exactly one of the lists below, */
	struct corr_list *list;		/* which is this one */
	uint64_t list_ns;		/* when it came onto it */
	struct corr_wait *wait; /* for its parent's start; NULL: it need not, or need no more */
	struct corr_event *wait_prev, *wait_next;
};

/* Events that name a parent whose start has not come: it lies in another thread's buffer, or is lost. */
struct corr_wait {
	uint64_t parent;
	struct corr_event *first;
	UT_hash_handle hh; /* by parent */
};

/* A list in the order of entry. */
struct corr_list {
	struct corr_event *first, *last;
	uint32_t n;
};

/* Where events go. Called with whole events; the pointers are valid during the call only. */
struct corr_sink {
	void *arg;
	void (*event)(void *arg, const struct corr_event *ev);
	void (*state)(void *arg, const struct corr_event *ev, const struct corr_state *st);
	/* ProfilerInit, ProfilerFinalize */
	void (*lifecycle)(void *arg, const struct corr_comm *comm, bool init, uint64_t ts_ns,
			  const struct corr_thread *thread);
	/*
	 * One that is open and does not move; `more`: so many others were due and are not told. NULL: nobody
	 * wants to know.
	 */
	void (*open)(void *arg, const struct corr_event *ev, uint32_t more);
};

struct corr_counts {
	uint64_t late;	    /* states and stops after the stop: NCCL's quirks, harmless */
	uint64_t orphans;   /* events without a parent, states and stops without an event */
	uint64_t before;    /* records older than the recording, or younger */
	uint64_t outside;   /* events that belong to what began before the recording, or after it */
	uint64_t malformed; /* records that make no sense */
	uint64_t evicted;   /* events given up before their time because there were too many */
};

#define CORR_GPUS 16 /* of one process; nodes have no more */

/* A GPU that communicators are on. */
struct corr_gpu {
	char uuid[SCOPE_GPU_UUID_LEN]; /* all 0: no more of them */
	struct gpu_clock clock;
	uint64_t sample_ns; /* of the last sample of it that the trace has; 0: none; the owner's */
};

/* An event's place in the table: the id is here too, so that passing one by does not touch it. */
struct corr_slot {
	uint64_t id;
	struct corr_event *ev; /* NULL: empty */
};

struct correlate {
	struct corr_sink sink;
	struct sched *sched;  /* whose threads corr_thread names; NULL: none; set by the owner */
	struct net_join *net; /* NULL: flows are not followed; set by the owner */
	struct budget_part
		*memory;  /* of events and communicators; NULL: no bound; set by the owner */
	uint32_t ns_tgid; /* of the process, as it sees itself */
	uint16_t simple; /* number of the string "SIMPLE", 0: it has not come; set by the decoder */
	uint16_t tag;	 /* of its ids */
	bool from_start; /* which has all of the process; set by the owner */
	uint64_t first_id; /* counter of the ids from which on it is recorded; set by the owner */
	uint64_t cut_ns; /* of operations that begin later, nothing is recorded; UINT64_MAX: none */
	uint64_t colls,
		colls_max; /* collectives so far; cut after so many, 0: not; set by the owner */
	uint64_t lost;	   /* records lost so far, set by the decoder */
	uint64_t now_ns;   /* newest record or tick */
	struct corr_slot *table; /* open addressing, by id */
	uint32_t table_bits;	 /* it has 2^table_bits slots */
	uint32_t table_used;
	struct corr_list open;	     /* started, not stopped */
	struct corr_list closing;    /* Coll and P2p: stopped, waiting for their children */
	struct corr_list parentless; /* stopped, waiting for the parent's start */
	struct corr_list held;	     /* ProxyOps and ProxySteps: stopped, waiting for their flows */
	struct corr_list
		elsewhere; /* stopped by another thread: their own may not be known so far yet */
	uint64_t held_ns;  /* net->flows->complete_ns when they were last looked through */
	struct corr_list gone;	    /* written, kept for latecomers */
	struct corr_list childless; /* likewise: Coll and P2p that nobody has worked on so far */
	/* Likewise, for as long as there is room: a graph's replays name the captured call as their parent while it lives. */
	struct corr_list captured;
	/* Likewise: Coll and P2p whose children have not stopped, or came late. */
	struct corr_list stuck;
	uint64_t looks;	  /* at `closing`, */
	uint64_t look_ns; /* the last, */
	uint32_t waiting; /* which left so many that it had to look at */
	struct corr_sleeper *sleepers;
	uint64_t
		silent_look_ns; /* when `open` was last looked through for what they have not told of */
	bool slept;		/* one has, since */
	struct hung hung;	/* which of them do not move */
	struct slab slabs[2];	 /* where they lie: those that soon go, and the others */
	struct corr_wait *waits; /* uthash */
	struct corr_comm *comms; /* uthash */
	struct corr_comm *last_comm;
	struct corr_gpu gpus[CORR_GPUS];
	struct corr_counts counts;
};

/* ns_tgid: the process, as it sees itself. Returns 0 or -ENOMEM. */
int correlate__init(struct correlate *c, const struct corr_sink *sink, uint32_t ns_tgid);
/* Frees everything; writes nothing. NULL is fine, twice is fine. */
void correlate__free(struct correlate *c);

void correlate__comm(struct correlate *c, const struct scope_comm *info, uint64_t ts_ns,
		     const struct corr_thread *thread);
/* It is made just now, and was not there before the recording. */
void correlate__comm_made(struct correlate *c, uint64_t ctx);
/*
 * Up to 2.25 (API 1 and 2) NCCL numbers only the collectives that it tells a plugin of: two ranks of which it began to do so at
 * different moments have different numbers for the same one. Those that are told of from the communicator's making on have the same.
 */
bool corr_counts_told(const struct corr_comm *comm);
bool corr_seq_common(const struct corr_comm *comm);
void correlate__comm_name(struct correlate *c, uint64_t ctx, uint64_t hash, const char *name,
			  int32_t rank);
void correlate__finalize(struct correlate *c, uint64_t ctx, uint64_t ts_ns,
			 const struct corr_thread *thread);
/* Of what --collectives counts. */
bool corr_is_collective(uint32_t what);
/* Whether this event (0: none) began before the recording: it and what has it as parent are none of its. */
bool correlate__is_older(const struct correlate *c, uint64_t id);
/* `rec` is a scope_rec_start and its payload, its size already checked against its type. */
void correlate__start(struct correlate *c, const struct scope_rec_start *rec, uint64_t ts_ns,
		      const struct corr_thread *thread);
void correlate__start_repeat(struct correlate *c, uint64_t id, uint32_t n);
void correlate__state(struct correlate *c, uint64_t id, const struct corr_state *st);
void correlate__state_repeat(struct correlate *c, uint64_t id, uint32_t state, uint32_t n,
			     uint64_t last_ts_ns);
void correlate__stop(struct correlate *c, uint64_t id, uint64_t ts_ns,
		     const struct corr_thread *thread);

/* Time has come to now_ns and everything older is in: writes what need not wait any longer. */
void correlate__tick(struct correlate *c, uint64_t now_ns);

/* The recording or the process has ended: writes everything, open events as unfinished. */
void correlate__end(struct correlate *c);

/* Of operations that begin after `ns`, nothing is recorded; those in flight go on to their end. */
void correlate__cut(struct correlate *c, uint64_t ns);

/* Whether all that began before the cut is complete, or passed over; quiet_ns: how long no child of it has moved by now. */
bool correlate__settled(const struct correlate *c, uint64_t now_ns, uint64_t quiet_ns);

/*
 * Tells an event's last state, if it is old enough at now_ns not to be repeated any more. Else until when it
 * waits; UINT64_MAX: there is none.
 */
uint64_t correlate__settle(struct correlate *c, struct corr_event *ev, uint64_t now_ns);

/*
 * Tells each Coll and P2p that is not done: of those that have stopped, the ones with open children, also when they are written.
 * Not those whose end was lost, or never told by NCCL, once an operation has ended that was called after them.
 */
void correlate__pending(const struct correlate *c,
			void (*each)(void *arg, const struct corr_event *op), void *arg);

/*
 * Start of the oldest event that is not written yet, UINT64_MAX if there is none. Not of a ProxyCtrl, which stays open for as long as its
 * thread sleeps and asks for that one's time alone (sched_thread.ctrl_ns); nor of what is over though its stop was lost.
 */
uint64_t correlate__oldest(const struct correlate *c);
/* The same, of those that may have flows: of a ProxyCtrl neither. */
uint64_t correlate__oldest_net(const struct correlate *c);

/* The event with this id, open or recently written; NULL. */
struct corr_event *correlate__find(const struct correlate *c, uint64_t id);
struct corr_comm *correlate__comm_find(struct correlate *c, uint64_t ctx);

#endif
