/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recorder: what `ncclscope record` was asked for and what it has at hand. record.c drives it,
 * record_opts.c reads the command line, follow.c keeps up with the processes.
 */
#ifndef NCCLSCOPE_RECORDER_H
#define NCCLSCOPE_RECORDER_H

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "digest.h"
#include "gpu.h"
#include "kmsg.h"
#include "ksyms.h"
#include "netdev.h"
#include "node.h"
#include "options.h"
#include "rdma_sampler.h"
#include "scan.h"
#include "session.h"
#include "status_self.h"

struct target;

struct record_options {
	char *dir;
	pid_t pids[MAX_PIDS];
	int npids;
	uint64_t delay_ns, duration_ns;
	uint64_t every_ns, for_ns; /* windows; 0: one recording */
	uint64_t keep_bytes;	   /* of their traces; 0: all */
	uint64_t collectives;	   /* of each process; 0: no end */
	uint32_t mask;
	bool kernels; /* KernelCh or KernelPhase is in it by name */
	char *plugin;
	uint64_t ring_bytes;
	uint64_t memory_bytes;
	uint64_t backlog_bytes;
	enum sched_mode sched;
	enum net_mode net;
	const char *rdma_root; /* "": / */
	bool no_gpu;
	const char *nvml; /* NULL: GPU_LIBRARY */
	char *raw;	  /* the file of the capture; NULL: none */
	bool strict;
	bool compress;
	bool no_report;
	char **cmd;
};

/* Of addresses in stacks, those that were asked for last. */
#define FUNCTIONS_KNOWN 1021 /* a prime: calls are at any distance */

struct function_known {
	uint64_t address, number; /* see feed.c */
};

struct recorder {
	struct record_options opt;
	struct session s;
	struct attach *attach;
	struct ksyms ksyms;
	struct function_known functions[FUNCTIONS_KNOWN]; /* by address */
	struct raw_writer *raw;				  /* NULL: none; goes on over all windows */
	struct retain *retain;				  /* likewise, by --keep */
	struct node_sampler node;
	struct netdev_sampler netdev;
	struct kmsg kmsg;	  /* the kernel's log; goes on over all windows */
	struct gpu_sampler gpus;  /* likewise */
	struct rdma_sampler rdma; /* likewise */
	struct proc_key rdma_at;  /* of the process that is looked at next for RDMA devices */
	bool look;		  /* there are processes whose open sockets are not known yet */
	struct scan scan;
	/* Processes hand in their buffers at so many times the usual age; 0: none has been told yet. */
	uint32_t age_times;
	char plugin[PATH_MAX];
	int made_dir;	/* that of -o, if it was not there; else -1 */
	char stamp[32]; /* YYYYMMDD-HHMMSS of the first window, in the directory's name */
	struct pollfd pidfds[MAX_PIDS]; /* of -p's processes */
	pid_t job;
	uint64_t job_ns; /* before it was started; 0: there is none */
	int job_code;
	bool job_ended;
	bool job_seen; /* any window has a process that began after it: one of its own, as far as we know */
	bool told_kernels; /* that these are not to be had */
	bool lost;	   /* anything, in any window */
	bool failed; /* there is nothing to show: of a window no trace could be written, or none began */
	uint64_t until_ns;    /* end of the last window; 0 before the first */
	uint64_t recorded_ns; /* for so long this window was open, before it ended */
	uint64_t ended_ns;    /* when the window before did; 0: there was none */
	uint64_t next_window_ns;
	uint64_t begin_cpu_ns; /* CPU time that we had used when this window began */
	uint64_t next_outside_ns, next_follow_ns, next_clock_ns, next_node_ns, next_hung_ns,
		next_asleep_ns, next_bury_ns;
	uint64_t
		found_ns; /* when those are asked for that have the plugin and hand in nothing; 0: there are none */
	bool ask_threads; /* some sleep since before they were recorded */
	struct status_self status;
};

/* ---- record_opts.c ----------------------------------------------------------------------------- */

/* The command line into `o`, with defaults. Ends the process with a message if it makes no sense. */
void record_options__parse(struct record_options *o, int argc, char **argv);

/* ---- follow.c ---------------------------------------------------------------------------------- */

/* A record from the ring; arg is the recorder. */
void follow__record(void *arg, const void *data, size_t size);

/*
 * A thread that makes no callbacks flushes nothing: fetches what lies in its buffer, if it was silent for
 * silent_ns. Something missing before that is in the ring still, or lost once the ring has been emptied; with `gaps` it is
 * taken for lost in any case. Returns how many buffers were left because of that.
 */
int follow__read_outside(struct recorder *r, uint64_t now, uint64_t silent_ns, bool gaps);

/* Asks for processes that have the plugin and hand in nothing: those of a job that hangs, or does not communicate. Not before it is time. */
void follow__ask_found(struct recorder *r);
/* That a thread was woken is told when it runs: asks BPF about all of them. */
void follow__ask_sleepers(struct recorder *r);

/* At the end, with the ring empty: what BPF has told of threads and did not come is lost. */
void follow__count_tail(struct recorder *r);

/*
 * Ends processes whose end the ring had no room for: once it has been `emptied` since that was found, so that their last
 * records are in; `last`: it has been, and nothing comes any more. And those whose pid is nobody's any more, which nobody told.
 */
void follow__reap(struct recorder *r, uint64_t now, bool emptied, bool last);

/*
 * Asks a process that has to be told of a loss to tell strings and communicators again; and one that gave no answer, when it
 * is time.
 */
void follow__relearn(struct recorder *r, struct proc *p);

/*
 * Asks a process for event types, or (mask 0) takes that back. Its threads are followed from before it can
 * answer; if it is gone by now, another with its number is not. 0 or -errno; -EAGAIN: no communicator yet.
 */
int follow__want(struct recorder *r, struct target *t, pid_t pid, uint32_t mask);

enum follow_leave {
	FOLLOW_LEAVE,
	/* We are back within FOLLOW_BACK_WITHIN_S: until then KernelCh stays on where it is. */
	FOLLOW_LEAVE_FOR_A_WHILE,
	FOLLOW_LEAVE_FOR_GOOD, /* who has left for a while before */
};
#define FOLLOW_BACK_WITHIN_S 30

/* Takes back what we asked of every process. */
void follow__give_back(struct recorder *r, enum follow_leave how);

/* Another recorder was killed: takes back what that one asked of every process. */
void follow__bury(struct recorder *r);

/*
 * The same of those that have handed in anything, in case one was: its file tells one recorder, who need not have the same processes,
 * and a process may not have had it just then.
 */
void follow__bury_known(struct recorder *r);

/* Of operations that begin from now on nothing is recorded: another recorder may have them go on. */
void follow__cut(struct recorder *r);

/* The kernel's context of all processes ends here. */
void follow__unwatch(struct recorder *r);

/*
 * Whether no operation is under way that is recorded; quiet_ns: see correlate__settled(). Where no traces are made, or these are behind:
 * whether none has handed in a record for a while.
 */
bool follow__settled(struct recorder *r, uint64_t quiet_ns);

#endif
