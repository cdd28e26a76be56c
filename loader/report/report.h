/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of `ncclscope report`. Data flows one way: report_read.c makes parts of operations of
 * lines, report_join.c and, of Sends and Recvs, report_p2p.c join the parts of all ranks, report_stat.c sums up, report_verdict.c says of one
 * operation why it took so long, report_text*.c and report_json.c print. All times are ns.
 */
#ifndef NCCLSCOPE_REPORT_H
#define NCCLSCOPE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "check_json.h"
#include "copies.h"
#include "gpu.h"
#include "hash.h"
#include "heap.h"
#include "rdma_signs.h"

/* ---- Names -------------------------------------------------------------------------------------- */

/* Text of traces, each once, by number; 0 is "". What has no room any more is 1, "(others)". */
struct names;

#define NAMES_OTHERS 1

struct names *names__new(void);
void names__free(struct names *n);
/* NAMES_OTHERS if there are too many. */
uint32_t names__get(struct names *n, const char *s, size_t len);
/* From now on so many more than the input may have: for what is said of it. */
void names__more(struct names *n, uint32_t more);
__attribute__((format(printf, 2, 3))) uint32_t names__printf(struct names *n, const char *fmt, ...);
/* Valid until the next names__get(). */
const char *names__text(const struct names *n, uint32_t id);

/* ---- Figures of one rank's part in an operation ---------------------------------------------------- */

#define REPORT_WHO	4
#define REPORT_SOFTIRQ	-1
#define REPORT_SLEEPS	2
#define REPORT_EVIDENCE 3 /* lines */
#define REPORT_LINKS	8 /* peers and directions that are told apart */

/* Who ran instead, or in what a thread slept. */
struct report_who {
	uint32_t name;
	int32_t pid; /* REPORT_SOFTIRQ: one of the threads that do what interrupts leave */
	int64_t ns;
};

/* Threads of one role: sums over all of them. */
struct report_role {
	uint32_t threads;
	int32_t cpu; /* if it was one only, else -1 */
	int64_t span, on, runq, blocked, unknown, irq, throttled;
	struct report_who behind[REPORT_WHO], in[REPORT_WHO];
	struct report_who waker[REPORT_SLEEPS],
		file[REPORT_SLEEPS]; /* of sleeps of 1 ms and more */
};

/* What went to or came from one peer, over all channels. */
struct report_link {
	int32_t peer;
	bool send;
	bool tcp;		       /* of one of them a flow is known */
	uint32_t n;		       /* ProxyOps */
	int64_t dur, no_data, no_room; /* sums over them */
	/* Where no flow is known: sum of the time that steps were in RecvWait, and the longest of one. */
	int64_t recv, stall;
	int64_t gpu;		 /* sum: steps in SendGPUWait, RecvGPUWait, RecvFlushWait */
	uint32_t gpu_n;		 /* ProxyOps that have any of it */
	double gpu_from, gpu_to; /* sums over these: when the first such wait began and ended */
	int64_t loss_wait, maybe_wait; /* longest of a ProxyOp: no data in steps with losses; if
					 * the sender's retransmissions were needed */
	int64_t room_wait, data_wait;  /* longest of a ProxyOp: no room, no data */
	int64_t rwnd, sndbuf, busy;    /* longest of a ProxyOp */
	int64_t rtt, rtt_min;	       /* of that with the longest rtt */
	uint32_t retrans, lost, dsack, ooo, drops;
	/* Of the other end, while this one was at it: its own ProxyOp may have been over. */
	uint32_t peer_retrans, peer_lost, peer_dsack;
	uint32_t flow,
		reason; /* names: of the ProxyOp that is worst off; why its packets were dropped */
	int64_t worst;	/* by this */
};

/* Of ProxyOps that receive, also of those that never ended: sums of how long they took, and of how long they waited for data. */
struct report_receiving {
	int64_t ns, wait;
};

void report_receiving_add(struct report_receiving *to, const struct report_receiving *more);

/* When a GPU began a kernel, 0: not known; and by how much that may be wrong. */
struct report_kernel {
	int64_t at, error;
};

/* Of a sign the counter that moved most, of all ports. */
struct report_moved {
	uint32_t n;
	uint32_t port, counter; /* names */
};

struct report_proc;
struct report_part;

/* Parts of an operation, in their order. */
struct report_beside {
	struct report_part **at;
	uint32_t n;
};

struct report_part {
	struct report_proc *proc;
	int32_t rank;
	uint32_t gpu; /* its UUID, a name; 0: not known */
	int32_t tid;
	uint64_t group; /* the same of operations that are executed together; 0: not known */
	/* Of the execution, which begins when those before it in its communicator have ended. */
	int64_t start, stop;
	int64_t gap; /* since its operation before ended; -1: not known, or it did not wait for that */
	int64_t held; /* so long that operation, or others before, may have held it up, and not its peers */
	/* By how much later than usual it came, from the operation of its communicator before; and how much of that is told since. */
	bool knows_usual;
	int64_t later, told;
	int64_t quiet; /* of what is open: for how long it has not moved */
	int64_t beyond; /* of what is open: so long its recording goes on after the last word of it, which is `stop` */
	struct report_kernel kernel; /* the first of those that it has */
	int64_t after; /* what its kernel may have waited for, of its process, had ended; 0: nothing that is known */
	bool known; /* something tells when it ended; else that is by others of the operation, if any is */
	bool unfinished;
	uint32_t loss_near;
	struct report_moved moved[NR_SIGNS]; /* by the RDMA ports of its node, meanwhile */
	/* By report_index(): which part of its operation it is, and those, with itself, that are of its node, of its clock, and of both. */
	uint32_t nr;
	struct report_beside on_node, on_clock, on_both;
	int64_t last_start; /* of these: the last start, as far as clocks are sure; never before its own */
	struct report_role app, proxy;
	struct report_receiving receiving;
	struct report_role
		before; /* app's thread, since its operation before; threads 0: not known */
	uint32_t nlinks;
	struct report_link link[];
};

#define REPORT_WAITS 32

/* How late one end came to the messages of a connection. */
struct report_waits {
	uint64_t n;		   /* messages so far */
	uint32_t us[REPORT_WAITS]; /* of the last ones */
	uint32_t top[2][2];	   /* the two longest lately, and before that */
};

#define REPORT_AWAITED 4

/* Ranks whose other end of a Send or Recv is not known, the first of them; one may be there several times. */
struct report_awaited {
	int32_t rank[REPORT_AWAITED];
	uint32_t n;
};

/* One operation, with the parts of all ranks that are known. */
struct report_op {
	struct report_comm *comm;
	struct report_class *class;
	uint32_t func;
	uint64_t seq;
	uint64_t bytes;
	bool p2p; /* Sends and Recvs */
	/* Of some ranks, or of such as only send: that one waits for another is how a pipeline is made. */
	bool loose;
	struct report_waits *waits; /* of a connection of a loose one; NULL: not kept */
	int64_t usual;		    /* a wait that is no longer */
	int64_t typical;	    /* and what of a longer one is */
	struct report_awaited awaited;
	/* By report_carry(). */
	int64_t gap; /* the median of its parts'; -1: not known of two */
	int64_t own; /* how long it took, less waits for ranks that the operation before had held up */
	uint32_t nparts, cap;
	struct report_part **parts; /* owned */
	struct report_part **index; /* by rank, by node, by clock; owned; NULL: none yet */
	/* Of one that never ended: so many ranks have none that hung before it; and its communicator's others. */
	uint32_t firsts;
	struct report_op *prev, *next;
};

/* ---- Verdicts ------------------------------------------------------------------------------------- */

/* Stable: docs/report.md, and scripts, know their names. */
enum report_code {
	CODE_LATE_RANK,
	CODE_LATE_KERNEL,
	CODE_PREEMPTED,
	CODE_BLOCKED,
	CODE_THROTTLED,
	CODE_BUSY,
	CODE_INTERRUPTS,
	CODE_NET_LOSS,
	CODE_RECEIVER,
	CODE_SENDER,
	CODE_BANDWIDTH,
	CODE_RDMA_LOSS,
	CODE_RDMA_CONGESTION,
	CODE_GPU_WAIT,
	CODE_STOPPED,
	CODE_RESET,
	CODE_MISSING,
	CODE_UNKNOWN,
	NR_CODES,
};

extern const char *const report_code_names[NR_CODES];

/* Something that may have held an operation up. */
struct report_cause {
	enum report_code code;
	const struct report_proc *proc; /* whose; NULL: nobody's */
	int32_t rank;
	uint32_t culprit; /* a name: process, flow, CPU, system call, port; 0: the rank itself */
	int64_t ns;	  /* for how long */
	int64_t odd_ns;	  /* the part of that by which it differs from its peers */
	double trust;	  /* 0..1: how sure the figures are */
	bool died;	  /* missing: it failed while the others still moved */
	bool late;	  /* a reset: when they did not move any more */
	bool frozen;	  /* stopped: with its cgroup, not by a signal or a debugger */
	const struct report_part *part;
	const struct report_link *link;
	const struct report_link *far;	  /* of losses: the receiver's; NULL: not known */
	const struct report_moved *moved; /* of RDMA ports */
};

/*
 * What operations of a kind have of everything, the median where nothing else is said; all but `ns` is of those that do not take long.
 * All may be zero.
 */
struct report_typical {
	int64_t ns[NR_CODES];
	int64_t stall;		/* report_stall() */
	int64_t rate[NR_SIGNS]; /* report_sign_rate(); INT64_MAX: not known */
	double share[NR_SIGNS]; /* of operations, those with any of that */
	double window;		/* the mean of report_ports_window(); 0: too few to tell */
};

#define REPORT_CAUSES 64

struct report_verdict {
	struct report_cause cause;
	double confidence; /* 0..1 */
	int64_t duration;  /* of the operation */
	int64_t excess;	   /* what is to be explained */
	int64_t explained; /* what of that the cause accounts for */
	char evidence[REPORT_EVIDENCE][256];
};

struct report;
struct report_find;

/*
 * What may have held the operation up, one cause of a kind and rank; of more than REPORT_CAUSES those that
 * differ most from their peers'. Pure but for names of culprits.
 */
uint32_t report_causes(const struct report_op *op, struct names *names,
		       struct report_cause causes[REPORT_CAUSES]);
/*
 * Picks the cause that explains most of @excess beyond what is @typical of its kind. Where none explains enough, RDMA ports are asked
 * whether they had trouble; CODE_UNKNOWN if they had none.
 */
void report_judge(const struct report_op *op, const struct report_cause *causes, uint32_t n,
		  int64_t excess, const struct report_typical *typical, struct names *names,
		  struct report_verdict *v);
/* The primary cause, by what is odd about it, of an operation that is no slower than others; NULL: none. */
const struct report_cause *report_primary(const struct report_cause *causes, uint32_t n);
/* From its first start to its last end, as far as clocks allow. */
int64_t report_op_duration(const struct report_op *op);
/* Of what is open: for how long the recordings go on after that. */
int64_t report_op_beyond(const struct report_op *op);
/* Who came late by its own doing, and by how much after the median of its peers by one clock; NULL: nobody. */
const struct report_part *report_late(const struct report_op *op, int64_t *late, double *trust);
/* Whose kernel began late for another reason than that it came late, and by how much after the median of its peers'; NULL: nobody's. */
const struct report_part *report_late_kernel(const struct report_op *op, int64_t *late);
/*
 * Whom its parts are compared with; and sets the times of those of which they are not `known`, by those of which they are. To be called when
 * all are there, before any of the functions here is, and again when one of them gets other times. 0 or -ENOMEM: then nobody is beside
 * another.
 */
int report_index(struct report_op *op);
/* By the gaps of the parts. To be called before its causes are asked for. */
void report_carry(struct report_op *op);
/*
 * For how long each of the first @n parts may have been held up alone: after the first of its peers had ended, if that made the
 * operation so long that it counts as slow; else 0.
 */
void report_held(const struct report_op *op, int64_t *held, uint32_t n);

/* ---- RDMA ports: report_ports.c ------------------------------------------------------------------------ */

/* How often the operation's ports counted that, in 1000 s; of the port that did most. */
int64_t report_sign_rate(const struct report_op *op, enum rdma_sign sign);
/* What ports counted for it is of so much time, on average. */
int64_t report_ports_window(const struct report_op *op);
/* The longest time in which nothing came over a connection that is no flow. */
int64_t report_stall(const struct report_op *op);

#define REPORT_SPANS 16384

struct report_span {
	int64_t from, to; /* by the node's clock */
	uint32_t by;	  /* the recording that told of it last: its `index` */
};

/*
 * The times that are told of already: recordings of a node tell of the same ports and GPUs. They are read side by side, but not in order:
 * more than a line at a time, what has no clock yet first, and of a pipe one after the other. Apart and in their order: each is what
 * recordings have told of from its beginning to its end, of which what is not mentioned in between did nothing.
 */
struct report_spans {
	uint32_t n, cap;
	struct report_span *at; /* owned */
};

/* Of a part of that, at least. */
bool report_spans_have(const struct report_spans *s, int64_t from, int64_t to);
/* False: no room (which is counted in *left), or no memory (r->err). */
bool report_spans_add(struct report *r, struct report_spans *s, uint32_t by, int64_t from,
		      int64_t to, uint64_t *left);

#define REPORT_COUNTERS 40 /* of a port: signs of trouble go before others */

/* Of a node, over the whole trace. */
struct report_port {
	uint64_t node; /* key, from here */
	uint32_t name; /* "mlx5_0:1" */
	uint32_t zero;
	uint32_t host;
	struct report_spans told;
	uint32_t ncounters;
	struct report_counter {
		uint32_t name;
		uint64_t n;
	} counters[REPORT_COUNTERS];
	UT_hash_handle hh;
};

static inline enum rdma_sign report_counter_sign(const struct report_counter *c,
						 const struct names *names)
{
	const char *name = names__text(names, c->name);

	return rdma_sign_of(name, strlen(name));
}

/* The one of that name, of @p's node; NULL: no room (which is counted), or no memory (r->err). */
struct report_port *report_port_of(struct report *r, const struct report_proc *p, uint32_t name);
void report_port_add(struct report *r, struct report_port *port, const char *counter, size_t len,
		     uint64_t n);
/* All input has been read: their counters in order, what is worst first, then what moved most. */
void report_ports_end(struct report *r);
/* Then: those of which a counter is a sign of loss, worst first; owned by the caller (free). NULL: no memory. */
struct report_port **report_ports_in_trouble(const struct report *r, uint32_t *n);

/* ---- The kernels' logs: report_kmsg.c ---- */

/* A line that all processes of its node have. */
struct report_kmsg {
	uint64_t node; /* key, from here */
	int64_t ts;    /* by the node's clock */
	char text[208];
	uint32_t host, sign; /* names */
	uint32_t level;
	int64_t offset; /* to CLOCK_REALTIME, for order only */
	/* At the end: how long after the first of all other times, and which process it names; NULL: none that is known. */
	int64_t after;
	struct report_proc *proc;
	UT_hash_handle hh;
};

/* @k: zero beyond what its text has. */
void report_kmsg_add(struct report *r, const struct report_proc *p, const struct report_kmsg *k);
/* All input has been read. */
void report_kmsg_end(struct report *r);

/* ---- GPUs: report_gpus.c ---- */

#define REPORT_HELD_WHYS   (GPU_HELD_LAST - GPU_HELD_FIRST + 1)
#define REPORT_GPU_ERRORS  (GPU_ERROR_LAST - GPU_ERROR_FIRST + 1)
#define REPORT_GPU_SAMPLES 64 /* operations are judged some time after they were */
#define REPORT_GPU_USERS   16

/* What a GPU did, mostly within a second; 0: not known, but for what is counted. */
struct report_gpu_sample {
	int64_t to, ns; /* by the node's clock; ns 0: nothing is counted */
	int64_t clock;	/* MHz, of one that has something to do */
	int64_t util;	/* %; -1: not known */
	int64_t temperature, power, width;
	int64_t held[REPORT_HELD_WHYS]; /* ns for which clocks were held down */
	uint64_t errors[REPORT_GPU_ERRORS];
	bool lost;
};

/* The last ones, in order, each at its number % REPORT_GPU_SAMPLES. */
struct report_gpu_past {
	struct report_gpu_sample at[REPORT_GPU_SAMPLES];
	uint32_t n; /* so many there have been */
};

/* What a recording tells of a GPU. Others, of other times, are read in between, and operations may be judged when all have been. */
struct report_gpu_told {
	struct report_gpu *gpu;
	struct report_gpu_past past;
	struct report_gpu_told *next;
};

struct report_gpu {
	uint64_t node; /* key, from here */
	uint32_t uuid; /* name */
	uint32_t zero;
	uint32_t host, name, pci; /* names */
	uint32_t index;
	struct report_proc *proc; /* the last that is alone on it, or one of several */
	/* Those that told of it, from when to when: the last ones. */
	struct report_gpu_user {
		struct report_proc *proc;
		int64_t first, last;
	} users[REPORT_GPU_USERS];
	uint32_t nusers;
	struct report_spans told;
	/* Sums, but of temperature and width the most. */
	int64_t time, held[REPORT_HELD_WHYS];
	uint64_t errors[REPORT_GPU_ERRORS];
	int64_t clock, nclock, util, nutil, power, npower, temperature, width;
	int64_t clock_max, width_max; /* of its kind */
	int64_t usual; /* at the end: the median of the clocks of those of its name */
	bool lost;
	bool shared;		     /* by several processes at a time */
	struct report_gpu_past past; /* whoever told of it */
	UT_hash_handle hh;
};

/* Of a finding: operations in which the GPU of who was late did less than those of its peers. */
struct report_gpu_find {
	uint64_t judged; /* the last of them */
	const struct report_gpu *gpu;
	uint32_t n, odd;  /* whose GPU is known; and did less */
	int64_t last;	  /* the sample of the last of these */
	uint32_t samples; /* so many there were */
	int64_t time, held[REPORT_HELD_WHYS];
	int64_t clock, peers, nclock; /* sums: its own, the median of theirs */
};

/* The one of that UUID (a name), which @p is on; NULL: no room (which is counted), or no memory (r->err). */
struct report_gpu *report_gpu_of(struct report *r, struct report_proc *p, uint32_t uuid);
/* Which @p tells of. */
void report_gpu_add(struct report *r, struct report_proc *p, struct report_gpu *g,
		    const struct report_gpu_sample *s);
/* The recording has been read: if there is little room for what others tell, what it told is in report_gpu.past only. */
void report_gpus_told(struct report *r, struct report_proc *p);
void report_gpus_told_free(struct report_proc *p);
/* All input has been read: in order of their place. */
void report_gpus_end(struct report *r);
/* Whose it is; -1: not known, or of several, or that process is on others as well. */
int32_t report_gpu_rank(const struct report_gpu *g);
/* MHz, the mean of when it had something to do; 0: not known. */
int64_t report_gpu_clock(const struct report_gpu *g);
/* Evidence: what its GPU has to do with a finding; false: nothing that is known. */
bool report_tell_gpu(const struct report_find *f, char *at, size_t len);
/* Evidence: of findings that are told of as one, which of them cost most; false: it is one. */
bool report_tell_most(const struct report *r, const struct report_find *f, char *at, size_t len);
/* What is wrong with it, as text; false: nothing is. */
bool report_gpu_trouble(const struct report_gpu *g, char *at, size_t len);

/* ---- Quantiles ------------------------------------------------------------------------------------ */

#define HIST_SUB     32 /* a bucket is 3 % wide: a quantile is at most 1.6 % off */
#define HIST_BUCKETS (HIST_SUB * 41)

/* Of ns up to 2^45 (9 hours), in 5 KiB whatever their number. */
struct hist {
	uint64_t n, sum;
	int64_t max;
	uint32_t count[HIST_BUCKETS];
};

void hist__add(struct hist *h, int64_t ns);
void hist__merge(struct hist *h, const struct hist *more);
/* The least that a share of @q, 0..1, is not longer than; 0 of an empty one. */
int64_t hist__quantile(const struct hist *h, double q);

/* ---- The whole -------------------------------------------------------------------------------------- */

struct report_thread {
	uint32_t tid;	  /* key */
	int32_t host_tid; /* as its node calls it */
	uint32_t comm, role;
	int64_t on, runq, blocked, unknown, irq, throttled;
	/* It sleeps when the recording ends, or did until it was killed: in which call, in which file, where in the kernel; these if known. */
	uint32_t why, file, stack;
	int64_t asleep;	 /* and for how long; 0: it does not */
	bool all_asleep; /* and it has never been seen in anything else */
	UT_hash_handle hh;
};

/* Times of recordings that are told apart; what is beyond is of the last one. */
#define REPORT_WINDOWS 1024

/* Operations one after the other, of those that are judged: what findings are held against. */
struct report_whole {
	int64_t ns; /* sum of their durations */
	uint64_t ops;
	int64_t odd_ns[NR_CODES]; /* of all findings of a code */
	/* Slow ones of which nothing tells why. */
	int64_t unknown_ns;
	uint64_t unknown;
};

struct report_comm;

struct report_self_key {
	uint64_t node, cmdline; /* hashes */
	int64_t started;	/* its node's CLOCK_MONOTONIC; -1: the header does not tell */
	int32_t host_pid;
	uint32_t comm;
};

#define REPORT_LAST 8

/* An operation of a process, or those of a group. */
struct report_last {
	uint64_t group;
	int64_t called, began, ended;
};

#define REPORT_SIGNALS 8

/* A signal that a process was sent. */
struct report_signal {
	int64_t ts; /* by the clock of its process */
	int32_t nr; /* 0: none */
	int32_t code;
	int32_t from_pid, from_tid; /* -1: the kernel's own */
	uint32_t from_uid;
	uint32_t name, comm; /* names; comm: the sender's */
	bool handled;
	bool exiting; /* the sender was */
};

/* A recording of a process. Outlives its stream. */
struct report_proc {
	uint32_t index;
	/* The first of the input's recordings of the same process, as of several windows: that is told of, and sums are its. */
	struct report_proc *self;
	struct report_proc *more;   /* the others, each behind the one before; not owned */
	struct report_self_key key; /* by which that is found */
	/* Bits of the first one: the windows that any of them is of. */
	uint64_t windows[REPORT_WINDOWS / 64];
	int32_t window;			  /* index of its own one; -1: not asked for yet */
	uint32_t host, comm, cgroup, end; /* names */
	const struct report_proc *newest; /* of its recordings that have a footer; NULL: none has */
	int64_t ended_at;		  /* the last that this one knows */
	uint64_t node;
	uint64_t clock;	     /* which compare: a node's, or the one that several were merged into */
	int64_t clock_error; /* its times are off by so much at most; 0 on a node that was not moved */
	struct report_seat {
		uint32_t host; /* name */
		int32_t pid;   /* as its job sees it */
	} seat;
	bool shares_seat; /* as in containers, which count on their own */
	int32_t pid, host_pid;
	int32_t rank;	 /* in the largest of its communicators, of these the first; -1 before */
	int32_t of;	 /* so many ranks has that */
	uint64_t within; /* that one's hash */
	struct report_proc *job; /* at the end: one that all of its job have */
	bool several; /* it is several ranks of that one: `rank` says which only with a part */
	bool header, footer;
	bool no_ops;	/* by its header: operations were not to be recorded, or cannot be */
	bool lacks_ops; /* or Coll or P2p were not, or NCCL was not to tell of them */
	bool no_calls;	/* by its header: the kernel does not tell in which calls threads sleep */
	bool launched; /* of the first one: a group of calls has ended, whose operations there would be */
	bool has_engines; /* operations of copy engines (CeColl) */
	bool has_ops;	  /* of the first one: an operation of it has come */
	/* At the end, of the one that `job` is: what there is of any of its job, and how many ranks the largest of its communicators has. */
	struct report_of_job {
		bool ops, asked, engines,
			goes_on; /* the last: not all of its processes have exited, with status 0 */
		int32_t ranks;
		bool hangs;		    /* an operation of it that never ended is judged */
		struct report_proc *failed; /* those that did, of report_judged_with(); not owned */
		/* While findings are weighed: all its operations; and of its processes, how long late ranks held them up, and how long they were recorded. */
		struct report_whole whole;
		double late, recorded;
	} of_job;
	struct report_proc *failed_prev, *failed_next; /* in of_job.failed */
	/*
	 * Its last operation, of whatever communicator: when that ended, if that is known; and how much later it comes for all
	 * that operations are told to have taken too long so far, its own and those of ranks that it waited for.
	 */
	bool has_ended;
	int64_t began, ended, lag;
	int64_t ended_before;		     /* the one before that; INT64_MAX: not known */
	struct report_last ops[REPORT_LAST]; /* the last ones, of whatever communicators */
	uint32_t nops;
	int64_t called; /* the last operation of all that are known */
	uint64_t events, lost;
	int64_t first, last;	    /* ns of its clock */
	int64_t end_ns;		    /* its recording ended, by its footer */
	int64_t offset;		    /* to CLOCK_REALTIME, for order only */
	int64_t gone;		    /* the last of its threads ended; 0: not known */
	int32_t exit_code;	    /* 0 if a signal ended it */
	bool killed;		    /* report_killed() */
	bool failed;		    /* it exited with a status that is not 0, or by a signal */
	bool oom;		    /* the kernel ended it to get memory back */
	int64_t died;		    /* at the end: report_died_at(), of one that failed */
	bool along;		    /* and that came soon after another one had failed */
	bool is_stopped, is_frozen; /* a thread of it was, when the recording ended */
	/* The last ones that it was sent: those that stop, each at its number % REPORT_SIGNALS, and those that end, in no order. */
	struct report_signal stops[REPORT_SIGNALS], ends[REPORT_SIGNALS];
	uint32_t nstops;
	const struct report_kmsg *
		kmsg; /* at the end: the first line of the kernel's log that names it; NULL: none does */
	struct report_gpu *gpu;		   /* that it is on; NULL: not known */
	bool several_gpus;		   /* it is on others as well */
	const struct report_gpu *lost_gpu; /* of these the first that was lost; NULL: none */
	struct report_gpu_told *gpus_told; /* of this recording, so many; owned */
	uint32_t ngpus_told;
	/* When a connection of it was reset, the first time since an operation of it had ended; 0: none was. And when the last such ended. */
	int64_t reset_ns, op_ended;
	uint32_t reset_flow, reset_why;
	int32_t reset_rank, reset_pid; /* at its other end; -1: not known */
	uint32_t reset_host;	       /* of that one, if it is another */
	const struct report_proc *
		reset_by; /* at the end: that process; NULL: the input has none, or several that it may be */
	int64_t stop_ns, stop_from,
		stop_to;   /* the longest that an operation saw it stopped, and when */
	uint32_t stop_why; /* name: in what that was */
	/* Whose operation it is in that never ended, and of others, too; at the end: one that is judged says why. */
	const struct report_comm *hangs_in;
	bool hangs_in_more, told;
	struct report_thread *threads; /* owned */
	uint32_t nthreads, caller;     /* the thread that called the last operation; 0: none */
	/* sums over its parts in operations */
	bool flows; /* of some of them: waits for the network are known */
	int64_t op_ns, app_wait, on, runq, blocked, irq, throttled, wait_net, wait_gpu, wait_peer,
		late;
	uint32_t file; /* name */
	/* At the end: of all communicators that it is in, the last of these that has been added. */
	struct report_whole whole;
	const struct report_comm *counted;
	uint32_t ranks;		  /* so many of a communicator, at most, it is */
	uint32_t in_comm;	  /* and of that one */
	struct heat_row *heat;	  /* of its ranks the first that has come; NULL: none has */
	struct report_member *in; /* ranks that it is, the last that it became first; not owned */
	struct report_proc *next;
	UT_hash_handle hh, seat_hh;
};

/* Where its rank has come to in a communicator, whose operations are executed one after the other, but for those of a group. */
struct report_queue {
	const struct report_proc *proc; /* whose */
	uint64_t group;
	int64_t begin, end; /* of the last group, as far as its operations have come */
};

/* The last of a rank's collectives that are so, by when it was called (the real clock), and its group. */
struct report_call {
	int64_t at;
	uint64_t group;
};

#define REPORT_USUAL 9

/* A process, as a rank. Of a job that is restarted, which may have the same communicators, each life has one. */
struct report_member {
	int32_t rank; /* key */
	struct report_proc *proc;
	struct report_member *before; /* of the life before; owned; NULL: none is known */
	struct report_comm *comm;
	struct report_member *prev, *next; /* in proc->in */
	uint64_t forgot;		   /* what of comm->forgot its process knows */
	/* Its last operation: the how many-th of the communicator, whose, when it ended, and report_held(). */
	uint64_t nr;
	const struct report_proc *ended_proc;
	int64_t ended, held;
	int64_t lag; /* its process' then */
	/* How long it took from one operation to the next, the last ones. */
	int64_t took[REPORT_USUAL];
	uint32_t ntook;
	struct report_queue queue;
	/* Of what never ended: its first one, that is kept; and which recording of it hangs in a collective, in Sends and Recvs. */
	struct report_op *hung;
	struct report_proc *hangs[2];
	/* That has ended, and that never did. */
	struct report_call has_ended, hangs_in;
	UT_hash_handle hh;
};

struct report_comm {
	uint64_t hash; /* key */
	uint32_t name;
	int32_t nranks; /* 0: not told */
	int32_t max_rank;
	struct report_proc *first;     /* that came, also where there is no room for members */
	struct report_member *members; /* owned: ranks that the input has, of each the last life */
	bool restarted;		       /* and there are others */
	/* What it has of r->classes, in the order in which they came. */
	struct report_class *classes, *last_class;
	struct report_whole whole;
	/* That never ended, the first ones of its ranks, owned; at the end the one that is told of; of those that are not joined, as the first. */
	struct report_op *hung;
	/* Collectives that never ended and are freed: the last one's call; and the last call of any that has ended, by the real clock. */
	int64_t freed_at, ended_at;
	/* At the end: that waits for no rank that hangs in another; or for one of which another communicator's says why it hangs. */
	bool says_why, follows;
	uint64_t ops;
	uint64_t alone;	 /* collectives whose seq is not that of other ranks: each is one rank's */
	uint32_t killed; /* of its members, of all lives, those whose process is */
	uint32_t go_by;	 /* at the end: processes of which it is the largest, `within` */
	/* At so many of its operations what its members were at was forgotten, and at the last one how late they came; report_chain.c. */
	uint64_t forgot;
	int64_t forgot_lag;
	int64_t lag;  /* none of their processes has more */
	uint64_t nr;  /* of its operations, each after the one before */
	int64_t last; /* when the last of these ended, by the real clock */
	/* The number after the last one that waited in vain, and the clock of ranks that it has. */
	uint64_t in_vain, in_vain_clock;
	uint64_t given_up; /* likewise, whichever clocks they have */
	UT_hash_handle hh;
};

/* How many ranks it has; where nothing tells, as many as there must be at least. */
static inline int32_t report_nranks(const struct report_comm *c)
{
	return c->nranks > 0 ? c->nranks : c->max_rank + 1;
}

struct report_class_key {
	uint64_t comm;
	uint32_t func, algo, proto, size; /* size: log2 of bytes, rounded down */
};

/* What people know a process by that is @rank in one of its communicators. */
static inline int32_t report_rank(const struct report_proc *p, int32_t rank)
{
	return !p || p->rank < 0 || (p->several && rank >= 0) ? rank : p->rank;
}

/* The same of a rank of the communicator's, which may not be in the input. */
int32_t report_rank_in(const struct report_comm *c, int32_t rank);

#define REPORT_HELD 64 /* operations of a class that wait for a median */
#define REPORT_SLOW 16 /* that are told of a class, longest first */

struct report_slow {
	uint64_t seq;
	uint32_t func;
	const struct report_proc *who; /* whose doing it is; NULL: nobody's */
	int32_t rank;		       /* in its communicator */
	uint32_t culprit;
	enum report_code code;
	int64_t duration, expected;
	double confidence;
	bool hung;
};

struct report_class {
	struct report_class_key key;
	struct report_comm *comm;
	struct report_class *next; /* of its communicator */
	uint64_t min_bytes, max_bytes;
	uint64_t n, unknown_time, hung; /* without true execution time; that never ended */
	uint64_t freed;			/* of hung, collectives */
	uint64_t cut; /* of hung, freed: that hang only if a signal has ended one of their ranks */
	double bytes;
	struct hist time;
	struct hist *typical[NR_CODES]; /* owned */
	/* What RDMA ports counted, see struct report_typical; window: the sum. */
	struct hist *rate[NR_SIGNS], *stall; /* owned */
	uint64_t counted[NR_SIGNS], not_long;
	double window;
	int64_t late, on, runq, blocked, proxy_span, no_data, op_span;
	bool flows;			     /* no_data is known, of some */
	struct report_op *held[REPORT_HELD]; /* owned */
	uint32_t nheld;
	bool warm;
	struct report_slow slow[REPORT_SLOW];
	uint32_t nslow;
	uint64_t all_slow;
	UT_hash_handle hh;
};

/* One finding over all operations. */
struct report_find_key {
	uint32_t code, proc, culprit;
	int32_t rank; /* in its communicator, of a process that is several; else -1 */
	/* That one; or of ranks in turn, where there are several jobs, a largest one of theirs; else 0. */
	uint64_t comm;
};

#define REPORT_MOST 3

/* Of several findings that are told of as one: what one of them cost. */
struct report_share {
	const struct report_proc *who;
	int32_t rank;
	uint32_t culprit;
	int64_t ns;
};

/* Findings that are not worth a line each, and are so together. */
struct report_together {
	uint32_t n;		       /* so many; 0: it is one of its own */
	uint32_t processes;	       /* so many of the culprits are one */
	bool more;		       /* others are not one, but many */
	uint32_t ranks;		       /* in turn; 0: one */
	const struct report_proc *job; /* of these: by report_judged_with() */
	struct report_share most[REPORT_MOST];
	uint32_t nmost;
	/* Which name most of the processes have, if any, in what all of them weigh. */
	uint32_t comm;
	int64_t lead, of_comm, all;
	uint32_t name; /* all of them, as a culprit */
};

struct report_find {
	struct report_find_key key;
	const struct report_proc *who;
	const struct report_comm *comm; /* of the worst operation; NULL: of none that is known */
	uint64_t ops, slow, hung;
	int64_t odd_ns;	   /* over all operations */
	int64_t slow_ns;   /* what slow ones took too long */
	double confidence; /* sum, over slow or all ops */
	double slow_conf;
	uint64_t loss_near;
	int64_t worst;
	char evidence[REPORT_EVIDENCE][256];
	struct report_gpu_find gpu;
	double failed; /* how sure it is that the job did, of this, with no operation under way that we know of; 0: it did not */
	/* at the end */
	bool named;
	int64_t cost;
	double conf;
	struct report_together together;
	struct report_find *in; /* while they are weighed: what it is told in */
	UT_hash_handle hh;
};

#define HEAT_COLS 64

struct report_options {
	int64_t slower_than; /* ns; 0: 1.5 x the median of the class */
	bool json, csv, color, brief;
	bool silent;	  /* what cannot be read is the caller's to say */
	int64_t limit_ns; /* stop reading after so long; 0: never */
};

struct report_totals {
	uint64_t files, records, torn, skipped, ops, unjoined, bytes, total_bytes;
	uint64_t strangers; /* lines of ranks that their communicator has no room for */
	uint64_t hung_left; /* operations that never ended, likewise */
	uint64_t forgotten; /* operations and steps under way, likewise: what was known of them */
	uint64_t hurried;   /* operations that waited no longer for ranks, for want of room */
	uint64_t
		too_late; /* whose other ranks came, of another clock, when nobody waited for them any more */
	uint64_t read_late;  /* likewise, as their recordings were not read side by side */
	uint64_t kmsg_left;  /* lines of kernels' logs, likewise */
	uint64_t ports_left; /* counts of RDMA ports that there was no room for */
	uint64_t gpus_left;  /* samples of GPUs, likewise */
	bool cut;	     /* by limit_ns */
	bool one_by_one;     /* some recordings were read when others had been read */
};

struct heat; /* rank x time; report_rows.c */

struct report {
	struct report_options opt;
	struct names *names;
	struct report_proc *procs; /* in order of their index */
	struct report_proc **last_proc;
	/* At the end: the first of which a communicator is known; NULL: none is. */
	const struct report_proc *joined;
	uint32_t nprocs;
	struct report_proc *selves;
	struct report_window *windows; /* REPORT_WINDOWS of them, owned; NULL: none yet */
	uint32_t nwindows;
	struct report_comm *comms;
	struct report_class *classes;
	/* What these take, and what they were found to have typically; half of the room is each one's. */
	uint64_t kinds_bytes, typical_bytes, kinds_room;
	/* Bytes of operations that they hold, and of those that never ended, of all communicators together; and ranks of these. */
	uint64_t held_bytes, held_room, hung_bytes, hung_room;
	uint32_t nmembers, members_room;
	struct report_find *finds;
	struct report_port *ports;
	struct report_kmsg *kmsg; /* at the end in order of time */
	struct report_gpu *gpus;  /* at the end in order of place */
	uint32_t ngpus_told;	  /* report_gpu_told of all recordings */
	uint64_t judged;	  /* operations so far */
	struct pending *pending;  /* operations that wait for ranks */
	struct heap due;	  /* the same: that which waits no longer first is first */
	struct side *sides;	  /* groups of Sends and Recvs whose operation is not whole */
	struct report_conn *conns;
	uint32_t nwaits;  /* connections whose waits are kept */
	int64_t p2p_seen; /* when these were looked through last, by the real clock */
	/* These operations: all other ends are known, or not. */
	struct report_exchange *settling, *awaiting;
	struct heap ready; /* of struct pending, owned: wait for those that ended before them */
	uint64_t next_ready;
	uint32_t npending; /* parts that wait */
	/* Bytes of what readers keep of operations that are under way. */
	uint64_t open_bytes, open_room;
	/* Bytes of these and of parts_ready, with what is known of them. */
	uint64_t waiting_bytes, waiting_room;
	uint32_t nmessages;   /* that wait for their other end */
	uint32_t parts_ready; /* parts of those that are ready */
	int64_t released;     /* of the last one that has had its turn, when it ended */
	int64_t came_to;      /* the real clock up to which all input has been read */
	struct heat *heat;
	struct lost_cause *losses;
	struct copies copies;
	bool newer; /* one of the traces is of a later schema, which has been told */
	struct report_totals totals;
	int err; /* -ENOMEM */
};

struct lost_cause {
	uint32_t name; /* key */
	uint64_t n;
	UT_hash_handle hh;
};

/* @r: all zero but for opt. 0 or -ENOMEM. */
int report_init(struct report *r);
struct report_comm *report_comm(struct report *r, uint64_t hash);
void report_member(struct report *r, struct report_comm *c, int32_t rank, struct report_proc *p);
/* Whether a signal ended the process, and not as one of a job that ended with another one; or it is that other one. */
void report_killed(struct report_proc *p, bool killed);

struct report_op_info {
	uint64_t comm, seq, count, bytes;
	uint64_t group; /* the same of operations that are executed together; 0: not known */
	uint32_t func, algo, proto;
	bool counted; /* has a seq */
	bool joined;  /* by that, with those of other ranks */
	bool p2p;     /* a Send, or a Recv, and whom to or from */
	bool send;
	int32_t peer;
	int64_t called; /* by its P2pApi, which may be long before it began; where that is not known, when it began */
};

/* Takes the part over. */
void report_add_part(struct report *r, const struct report_op_info *info, struct report_part *part);
/* All input has been read up to @ns (of the real clock): what has waited for long enough waits no longer. */
void report_expire(struct report *r, int64_t ns);
/* All input has been read. */
void report_end(struct report *r);
void report_free(struct report *r);

/* report_read.c: 0, or -errno of a file that could not be read (which is said). */
int report_read(struct report *r, char *const *paths);

/* Findings that are named, most costly first; owned by the caller (free). */
struct report_find **report_findings(const struct report *r, uint32_t *n);
/* GB/s by nccl-tests' definitions: bytes of all operations by their time. */
double report_algbw(const struct report *r, const struct report_class *c);
double report_busbw(const struct report *r, const struct report_class *c);
/* What nccl-tests call the size, of the smallest or largest one of the class, bytes. */
uint64_t report_size(const struct report *r, const struct report_class *c, bool largest);
const char *report_func_text(const struct report *r, const struct report_class *c);
/* Shares 0..1 of a rank's waiting in column @col of HEAT_COLS; -1: no operation then. */
double report_heat_cell(const struct report *r, uint32_t row, uint32_t col);
uint32_t report_heat_rows(const struct report *r);
const struct report_proc *report_heat_row(const struct report *r, uint32_t row, int32_t *rank);
/* Those rows, to be picked from; owned by the caller (free). NULL: no memory. */
struct report_row *report_heat_list(const struct report *r);
int64_t report_heat_width(const struct report *r);
/* Parts of ranks that have no row, as there is no room for more of them. */
uint64_t report_heat_left(const struct report *r);

/* A rank that may be told of, or (rank -1) all of a process'. */
struct report_row {
	const struct report_proc *proc;
	int32_t rank;	  /* in its communicator */
	uint32_t nr;	  /* its place among those that there are */
	uint32_t verdict; /* of those the first that is about it; UINT32_MAX: none is */
	int64_t found;	  /* of what it may have held up, whether that is worth a verdict or not */
};

/*
 * By what there is to be said of them: those that have a verdict, in the order of these, then those of which most was found, then the
 * others in theirs (nr).
 */
void report_order_rows(const struct report *r, struct report_row *rows, uint32_t n);
/* So many of them, the first ones of that order, in their own. */
void report_pick_rows(const struct report *r, struct report_row *rows, uint32_t n, uint32_t max);

/* Of a rank that does nothing: what its first thread is in when the recording ends. */
struct report_still {
	const struct report_proc *proc;
	const struct report_thread *thread;
	uint32_t what[3]; /* the same of those that are in the same */
	bool apart;	  /* in something else than most of the others of its job are */
};

/* The time of a thread that is known of: in whatever state. */
int64_t report_thread_ns(const struct report_thread *t);
/* Whether the process itself, and not its recording, has ended. */
bool report_has_ended(const struct report_proc *p, const struct names *names);
/* How it did so beyond that: whose the signal was, or its status; false: nothing is known. */
bool report_how_ended(const struct report_proc *p, const struct names *names, char *at, size_t len);

/* Why an input has no operation. */
enum report_without {
	WITHOUT_ANY,	/* there was none */
	WITHOUT_ASKING, /* none were to be recorded: --mask, or NCCL_PROFILE_EVENT_MASK */
	WITHOUT_OTHERS, /* but those of copy engines, which are not looked at */
};

/* Of an input without, of which there are no report_stills(). */
enum report_without report_without(const struct report *r);

/*
 * Of each job without any operation, as of one that hung before it was recorded: its ranks, those of a job behind each other, first those
 * that are apart. None of a job where there were operations all the same. Owned by the caller (free); NULL: no memory.
 */
struct report_still *report_stills(const struct report *r, uint32_t *n);
/* So many of @n of them, from the first on, are of its job. */
uint32_t report_same_job(const struct report_still *list, uint32_t n);

void report_text(const struct report *r, FILE *f);
/* How many communicators have ranks that the input has not; *worst: the largest of these, NULL: none has. */
uint32_t report_partial(const struct report *r, const struct report_comm **worst);
/* Others' text for whoever takes ASCII only: any other byte is '?', and it is cut to len - 1. */
void report_clean(char *to, size_t len, const char *s);
/* The first and the last time of all, by the real clock; INT64_MAX and 0: there is none. */
void report_times(const struct report *r, int64_t *first, int64_t *last);
void report_brief(const struct report *r, const char *dir, FILE *f);
/* "read on pipe (anon_pipe_read < vfs_read < ksys_read)": what a thread sleeps in when the recording ends; "" where that is not known. */
void report_tell_sleep(const struct report_thread *t, const struct names *names, char *at,
		       size_t len);
int report_json(const struct report *r, FILE *f);
void report_csv(const struct report *r, FILE *f);

/* At the end of record: the verdict on the files in @paths, to @f; says itself what goes wrong. */
void report_after_record(char *const *paths, const char *dir, FILE *f);

#endif
