/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes being recorded. A process is (tgid, start time), so that a reused pid is another one;
 * everything the loader knows of it, and its trace file, hangs here.
 */
#ifndef NCCLSCOPE_PROC_H
#define NCCLSCOPE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include "correlate.h"
#include "flows.h"
#include "hash.h"
#include "netdev.h"
#include "node.h"
#include "out.h"
#include "rdma.h"
#include "scope_abi.h"
#include "target.h"
#include "trace_text.h"
#include "who.h"

/* Why records were lost; the causes of the trace's `lost` records. */
enum loss {
	LOSS_RING_FULL,
	LOSS_THREAD_BUFFER,
	LOSS_ORPHAN,
	LOSS_WRITE_ERROR,
	LOSS_CONTEXT,	 /* of kernel context, in the ring */
	LOSS_RATE_LIMIT, /* there was room, but the process had its share of the ring */
	LOSS_CAUSES,
};
extern const char *const loss_names[LOSS_CAUSES];

/* A step's record that had parts to come when its buffer was read from outside. */
struct open_step {
	uint64_t pos;  /* of its record in the stream */
	uint8_t parts; /* that have been decoded, a bit each */
};

/* One thread's buffer as a stream of bytes and records; keyed by the buffer's address in the job. */
struct stream {
	uint64_t tbuf;
	uint64_t pos;	  /* next byte expected */
	uint64_t rec_pos; /* next record expected */
	uint64_t last_ns; /* of its last record */
	uint64_t seen_ns; /* when it was last heard of */
	bool outside;	  /* it can be read from outside, so it is heard of when it is silent */
	uint64_t ring_rec_pos; /* next record expected through the ring */
	/* Since the ring's last chunk: records that were lost, and that were read from outside. */
	uint64_t gap_recs, outside_recs;
	uint64_t presumed_recs; /* of the process' outside_recs: by a look from outside alone */
	uint32_t tid, host_tid; /* whose buffer it is now */
	/* A recorder's: what BPF said of that thread's records at the last look from outside. */
	uint32_t asked_tid, asked_seq;
	uint64_t asked_ns;
	uint32_t nopen;
	struct open_step *open; /* by pos; owned; NULL: it was never read from outside */
	UT_hash_handle hh;
};

enum role { ROLE_UNKNOWN, ROLE_APP, ROLE_PROXY, ROLE_OTHER };

struct thread {
	uint32_t tid; /* as the job sees it: the key */
	uint32_t host_tid;
	uint64_t start_ns;
	enum role role;
	bool by_slice; /* it has made no event so far: the role is a guess */
	char comm[SCOPE_COMM_LEN];
	struct sched_thread *sched; /* held; NULL: its states are not known */
	UT_hash_handle hh;
};

struct interned {
	uint8_t len;
	char text[SCOPE_STRING_MAX];
};

struct proc_key {
	uint64_t start_ns;
	uint32_t tgid;
	uint32_t pad;
};

#define SIGNALS 65 /* the kernel's, and 0 */

struct proc {
	struct proc_key key;
	struct scope_ev_hdr id; /* the identity stamp of its first record */
	uint64_t begin_ns;	/* CLOCK_MONOTONIC when its recording began */
	bool from_start;	/* it started after the recorder had attached: nothing was missed */
	bool contacted;		/* its control block was looked for */
	bool placed; /* and found: what it made before begin_ns is not ours, whatever is attached to later */
	struct target target;	/* open if it was found */
	bool hangs;		/* reading it did, and is not tried before retry_ns */
	uint64_t retry_ns;	/* when to reach its plugin again: it gave no answer; 0: it did */
	uint64_t pause_ns;	/* how long that was from the last time on */
	uint64_t relearned_at;	/* ring-full losses when it was last asked to tell all again */
	uint64_t ended_ns;	/* its last thread is gone; chunks of others may be on their way */
	uint64_t end_lost_recs; /* BPF's count then */
	uint64_t outside_recs;	/* of what BPF counts as lost: read from outside */
	bool ending;		/* it has ended, by BPF's table: the ring had no room to tell */
	uint64_t gone_ns; /* since then its pid is nobody's, and no end was told; 0: it is not so */
	uint64_t
		limited_recs; /* of what did not get into the ring: for its share, by BPF's newest account */
	int end_status;			/* as wait(2) has it */
	int end_signal;			/* that ended its newest thread to end; 0: none did */
	uint64_t unhandled_ns[SIGNALS]; /* it was last sent that one, without a handler */
	bool oom;			/* the kernel ended it to get memory back */
	struct budget_part memory;	/* of what corr and net hold */
	struct correlate corr;
	uint64_t oldest_ns;	/* what its unwritten events may ask for, at the last tick */
	uint64_t net_oldest_ns; /* the same, of flows */
	struct net_join net;	/* what corr.net is, when flows are followed */
	struct flow_sums flows_over, flows_now; /* for live__net() */
	struct stream *streams;
	struct thread *threads;
	struct interned strings[SCOPE_STRINGS];
	uint32_t comms_made, comms_finalized;
	uint32_t mask;	  /* of its first communicator */
	uint16_t ceiling; /* what its environment allows of that, if has_ceiling */
	bool has_ceiling;
	bool kernels_late; /* we wanted them of a communicator, and came too late for it */
	uint8_t no_kernels; /* enum scope_no_kernels, but late, of its last communicator that has one, if we wanted them */
	uint32_t nccl_version;
	uint8_t clock; /* enum scope_clock of its records */
	/* Records of its threads without a buffer, by its newest word; what was lost before we came is in it, and known then. */
	uint64_t unbuffered;
	bool unbuffered_known;
	uint64_t recs; /* decoded, each part of a step; of a capture alone as they lie there */
	/* That went into its trace, also if they did not reach the file, or that was deleted: they only grow. */
	uint64_t events;
	uint64_t lost[LOSS_CAUSES];	     /* all */
	uint64_t lost_reported[LOSS_CAUSES]; /* of these, in the trace */
	uint64_t lost_from_ns;		     /* newest time before the loss */
	struct trace_texts texts;
	struct out_file out;
	bool out_failed; /* no file could be opened: said, counted, and tried again */
	bool header_written;
	int header_err;		  /* why not, when that was last tried */
	uint64_t header_next_ns;  /* when to try again; a disk stays full for a while */
	struct node_sample *node; /* that its last node record was made from; held */
	struct node_cgroup cgroup;
	struct node_quota quota; /* then */
	bool has_quota;
	uint64_t ran_on[SCHED_RAN_ON / 64]; /* CPUs that its threads were on since then */
	struct netdev_sample *netdev; /* as of its last node record, like the following; held */
	struct netdev_softnet softnet;
	struct rdma_user rdma;
	struct who who;
	char *job_id; /* of the launcher, checked for use in a name; NULL none; owned */
	struct session *session;
	struct proc *twin; /* another one of that pid, of which one has ended; in no order */
	UT_hash_handle hh, hh_tgid;
};

/* Whether there is something that its next word of `unbuffered` is held against. */
static inline bool proc__knows_unbuffered(const struct proc *p)
{
	return p->from_start || p->unbuffered_known;
}

struct session;

/* The process that a thread of the scheduler belongs to; NULL: none that is recorded. */
struct proc *proc__of_thread(const struct session *s, const struct sched_thread *t);

/* The process of that number that started then; NULL: none that is recorded. */
struct proc *proc__find(const struct session *s, uint32_t tgid, uint64_t start_ns);

/* The youngest of that number that had started by ts_ns; NULL. */
struct proc *proc__of_tgid(const struct session *s, uint32_t tgid, uint64_t ts_ns);

/* Finds the process of an identity stamp; makes it if `make`. NULL: not known, or no memory. */
struct proc *proc__get(struct session *s, const struct scope_ev_hdr *id, bool make);

/*
 * Its end: writes what is open, the footer, closes the file, frees. `end` as in the footer; exit_code is
 * written if `exited`.
 */
void proc__end(struct proc *p, const char *end, bool exited, int exit_code);

/* Where a thread ran since it was asked last, and is, for the process' next node record. */
void proc__ran_on(struct proc *p, struct sched_thread *t);

void proc__count_loss(struct proc *p, enum loss cause, uint64_t n);

/* Its end: a record, if it has a role, and it is freed. */
void proc__thread_end(struct proc *p, struct thread *t, uint64_t stop_ns);

/* The thread that made a record; told to the trace when its role shows. */
struct thread *proc__thread(struct proc *p, uint32_t tid, uint32_t host_tid, const char *comm);
/* The scheduler's side knows a thread from now on: so does the process, if that is one of its own that it lacked, or whose timeline has ended. */
void proc__thread_known(struct proc *p, struct sched_thread *known);
/* As proc__thread(), of one that has made no record so far: told as another's helper, since ts_ns. NULL: no memory, or too many. */
struct thread *proc__introduce(struct proc *p, uint32_t tid, uint32_t host_tid, const char *comm,
			       uint64_t ts_ns);

#endif
