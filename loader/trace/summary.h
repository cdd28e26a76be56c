/* SPDX-License-Identifier: BSD-2-Clause */
/* What `record` prints at its end: events by type, the slowest operations, what was lost. */
#ifndef NCCLSCOPE_SUMMARY_H
#define NCCLSCOPE_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "flows.h"
#include "proc.h"

#define SUMMARY_SLOWEST 8
#define SUMMARY_WORST	4
#define SUMMARY_PATHS	256

struct summary_op {
	uint64_t duration_ns;
	uint64_t seq;
	uint64_t comm_hash;
	uint64_t count;
	int32_t rank;
	uint32_t pid;
	bool open; /* when the recording of its process ended */
	char func[24];
	char datatype[16];
};

/* A connection that lost segments, or whose windows held it up. */
struct summary_flow {
	char name[FLOW_NAME_MAX];
	int32_t rank, peer; /* -1 unknown */
	uint32_t again;	    /* segments sent again, */
	uint32_t needed;    /* and those of them that the peer had not got before */
	uint64_t busy_ns, rwnd_ns, sndbuf_ns;
};

struct summary {
	uint64_t events[SCOPE_NTYPES];
	uint64_t unfinished, silent; /* apart: the trace has the latter as unfinished as well */
	uint64_t orphans, states;
	uint64_t hung,
		hung_ns; /* events that did not move for a second, and for how long at most */
	struct summary_op slowest[SUMMARY_SLOWEST]; /* longest first */
	uint32_t nslowest;
	struct sched_span app, proxy; /* of operations' threads, while they ran, */
	bool ran; /* as far as that is known of any; else they are of enqueues alone */
	uint64_t flows, tx_bytes, rx_bytes, again, needed, drops;
	struct summary_flow worst[SUMMARY_WORST]; /* most needed again first */
	uint32_t nworst;
	uint64_t lost[LOSS_CAUSES];
	uint64_t late, malformed, evicted;
	uint64_t skipped;	  /* runs of our BPF programs, by the kernel, as far as it tells */
	uint64_t records, traced; /* of processes that have ended, as these have recs and events */
	uint32_t procs, files;
	uint32_t
		may_have_kernels; /* processes that were not there before, or began to communicate */
	uint32_t kernels_late;	  /* processes that the recorder came too late for */
	uint32_t may_hang, shm_full;	/* processes without KernelCh, by enum scope_no_kernels */
	uint32_t unwritten;		/* processes without a file, since none could be written, */
	int unwritten_err;		/* and why, of the first */
	char example[256];		/* a trace's path */
	char *paths[SUMMARY_PATHS + 1]; /* of the first traces, for the report; owned */
	uint32_t npaths;
};

struct session;
struct correlate;
struct sched_join;

void summary__event(struct summary *s, const struct proc *p, const struct corr_event *ev,
		    const struct sched_join *join);
/* Its last figures, since the flow is known. */
void summary__flow(struct summary *s, const struct flow *flow, const struct flow_counts *c,
		   uint64_t jiffy_ns);
void summary__proc_end(struct summary *s, const struct proc *p);
uint64_t summary__lost(const struct summary *s);
/* There are no kernels, and the reason is that all processes ran before. */
bool summary__lacks_kernels(const struct summary *s);
/* There was something to write, and all of it is lost. */
bool summary__nothing_written(const struct summary *s);
void summary__print(const struct summary *s, const char *dir, FILE *f);
/* Of a recording that nobody has decoded; `cut`: its capture ends before it does. */
void summary__print_capture(const struct summary *s, bool cut, FILE *f);
void summary__free(struct summary *s);

#endif
