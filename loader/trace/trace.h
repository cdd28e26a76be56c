/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The writer: whole events, states and the further records of one process as JSON lines into its file.
 * docs/trace.md is the format; `ncclscope check` holds this file to it.
 */
#ifndef NCCLSCOPE_TRACE_H
#define NCCLSCOPE_TRACE_H

#include "correlate.h"
#include "proc.h"

struct gpu_sample;
struct session_kmsg;

/* Where correlate's events go; arg is the struct proc. */
void trace__event(void *arg, const struct corr_event *ev);
void trace__state(void *arg, const struct corr_event *ev, const struct corr_state *st);
void trace__lifecycle(void *arg, const struct corr_comm *comm, bool init, uint64_t ts_ns,
		      const struct corr_thread *thread);

/* One that is open and does not move, as of now; `more` others were due and are not told. */
void trace__open(void *arg, const struct corr_event *ev, uint32_t more);

/* A thread's record: at its start (stop_ns 0) or its end. */
void trace__thread(struct proc *p, const struct thread *t, uint64_t stop_ns);

/* One stay of a thread in a scheduler state. */
void trace__slice(struct proc *p, const struct sched_thread *t, const struct sched_slice *slice,
		  uint64_t end_ns, uint64_t irq_ns);

/* Besides those of enum scope_flow_why: it moves. */
#define TRACE_FLOW_USE UINT16_MAX

/* A flow's figures; why is an enum scope_flow_why or TRACE_FLOW_USE, SCOPE_FLOW_GONE: its last, 0: our last. */
void trace__flow(struct proc *p, struct flow *flow, uint16_t why, uint64_t ts_ns);

/* Packets of it that the kernel dropped, those that have not been told yet. */
void trace__drops(struct proc *p, struct flow *flow);

/* One that ends or stops the process, by default or as a rule. */
void trace__signal(struct proc *p, const struct scope_ev_signal *e);

/*
 * What the node did since the process' last such record, up to `now`; `netdev` is of its network namespace,
 * `quota` of its cgroup; NULL: not known.
 */
void trace__node(struct proc *p, const struct node_sample *now, const struct netdev_sample *netdev,
		 const struct node_quota *quota);

/* A line of the kernel's log, into a trace that has its header; and those of the last minutes, into one that has it now. */
void trace__kmsg(struct proc *p, const struct session_kmsg *k);
void trace__recent_kmsg(struct proc *p);
/* @was: the sample before, NULL: there is none, and then nothing is told of what counts. */
void trace__gpu(struct proc *p, const struct gpu_sample *was, const struct gpu_sample *now);

/* The clocks' relation now. */
void trace__clock(struct proc *p, uint64_t now_ns);

/* Losses counted since the last call, up to now_ns. `last`: the footer follows. */
void trace__lost(struct proc *p, uint64_t now_ns, bool last);

void trace__footer(struct proc *p, const char *end, bool exited, int exit_code);

#endif
