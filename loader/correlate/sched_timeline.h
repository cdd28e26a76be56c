/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the scheduler did, over time: the states of each thread of recorded processes, one after the other,
 * and who ran on the CPUs that they waited for. Pure, as correlate is: the kernel's records in, sums over
 * any span of a thread's time out; no I/O, no clock, no globals. All times are CLOCK_MONOTONIC in ns.
 *
 * A span is given by two marks. A mark holds the sums up to its time, so that scalars are exact whatever
 * has been forgotten since; one that is set when its time is forgotten already is as near as sched_past.h
 * says. Who a thread waited behind and what it slept in are found by walking the slices between the marks,
 * of which the last SCHED_SLICES_MAX are kept; spans that overlap share the walk.
 */
#ifndef NCCLSCOPE_SCHED_TIMELINE_H
#define NCCLSCOPE_SCHED_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "hash.h"
#include "scope_abi.h"

#define SCHED_TOP	 4     /* entries in `behind`, `blockedIn`, `wokenBy` and `files` */
#define SCHED_FILE_LEN	 128   /* a file's name, or two addresses */
#define SCHED_CPUS	 64    /* CPUs listed for a span */
#define SCHED_RAN_ON	 1024  /* CPUs in sched_thread.ran_on; those beyond are left out */
#define SCHED_SLICES_MAX 65536 /* of one thread */
#define SCHED_RUNS_MAX	 16384 /* of one CPU */
#define SCHED_RECENT	 1024

enum sched_state {
	SCHED_UNKNOWN, /* not seen: records were lost */
	SCHED_RUN = SCOPE_TASK_RUN,
	SCHED_RUNQ = SCOPE_TASK_WAIT,
	SCHED_BLOCKED = SCOPE_TASK_BLOCKED,
};

#define SCHED_NO_CPU UINT32_MAX

struct culprit;	      /* sched_culprits.h */
struct sched_tallies; /* sched_span.c */
struct sched_sleep;   /* sched_sleeps.h */
struct sched_file;

/* A stay in one state; it ends where the next one begins. */
struct sched_slice {
	uint64_t start_ns;
	uint64_t throttled_ns; /* SCHED_RUNQ: by a quota; counted from the slice's begin */
	uint64_t waits;	       /* of the thread's, the first that is of this one; SCHED_RUNQ */
	uint32_t cpu;	       /* SCHED_RUN, SCHED_RUNQ; else SCHED_NO_CPU */
	int32_t why;	       /* SCHED_BLOCKED: a system call or SCOPE_WHY_* */
	uint8_t state;	       /* enum sched_state */
	bool left;	       /* it began with the thread leaving a CPU */
	bool preempted;	       /* SCHED_RUNQ: and that while it was runnable, also by sched_yield */
	bool migrated;	       /* SCHED_RUN: on another CPU than the one before */
};

/* Sums since a thread was first seen. */
struct sched_sums {
	uint64_t on_cpu_ns, runq_ns, blocked_ns;
	uint64_t irq_ns;			    /* within on_cpu_ns */
	uint64_t net_rx_ns;			    /* within irq_ns: NET_RX softirq */
	uint64_t throttled_ns;			    /* within runq_ns */
	uint64_t switches, preemptions, migrations; /* preemptions: sched_slice.preempted */
};

/* A point in a thread's time. Slices and interrupts are numbered; the numbers only grow. */
struct sched_mark {
	uint64_t ns;
	uint64_t certain_ns; /* the sums go up to here: the state at ns is not known yet */
	uint64_t slice;	     /* that it lies in */
	uint64_t irq;	     /* first that is not in `sums` */
	bool early; /* of that time nothing is known any more: the sums are the first that are */
	struct sched_sums sums;
};

/* One stay in an interrupt. */
struct sched_irq {
	uint64_t start_ns, dur_ns;
	bool net_rx;
};

/* Rings that drop the oldest; `first` and `end` count all that ever were. */
struct sched_slices {
	struct sched_slice *at;
	uint32_t size;
	uint64_t first, end;
};

struct sched_irqs {
	struct sched_irq *at;
	uint32_t size;
	uint64_t first, end;
};

/* Who ran while a thread waited: of each wait that is over a few, in its order. */
struct sched_waits {
	struct culprit *at;
	uint32_t size;
	uint64_t first, end;
};

/* Long sleeps: who ended them, and in which file they were. */
struct sched_sleeps {
	struct sched_sleep *at;
	uint32_t size;
	uint64_t first, end;
};

/* Sums at times that are forgotten; see sched_past.h. */
struct sched_point {
	uint64_t ns;
	struct sched_sums sums;
};

struct sched_past {
	struct sched_point *at;
	uint32_t size;
	uint64_t first, end;
	uint64_t step_ns; /* between two, but for what is one slice */
	uint64_t last_ns; /* the last one's; 0: there is none */
};

struct sched_thread {
	uint32_t tid, tgid; /* host */
	uint32_t ns_tid;
	uint64_t proc_start_ns; /* with tgid: its process; 0 not known */
	char comm[SCOPE_COMM_LEN];
	char ran_as[SCOPE_COMM_LEN]; /* its name by the last record that told one */
	uint32_t refs;
	uint64_t ran_on[SCHED_RAN_ON / 64]; /* CPUs, since the owner last cleared it */
	uint32_t seq;			    /* of its last record */
	uint32_t gap;			    /* records that were missing before that */
	uint32_t last_cpu;
	bool gone;	    /* it has ended, and its number may be another's */
	bool lives;	    /* or only the recording has */
	uint64_t missed_ns; /* the owner's: since when BPF does not know it; 0: it does */
	uint64_t since_ns;  /* from when its states are known */
	uint64_t end_ns;    /* gone: when */
	uint64_t last_ns;   /* its last slice began */
	uint64_t seen_ns;   /* it was seen to be in that state still */
	uint64_t wait;	    /* the slice that its present wait began with */
	struct sched_slices slices;
	struct sched_irqs irqs;
	struct sched_waits waits;
	struct sched_sleeps sleeps;
	uint64_t sleeps_forgot_ns; /* the last that is forgotten began then */
	struct sched_past past;
	struct sched_mark oldest; /* the begin of the first slice, if its number is that */
	struct sched_mark cursor; /* a slice's begin, near the last mark: so the next is near too */
	struct sched_mark called; /* the owner's: its last operation started; ns 0: none yet */
	uint64_t ctrl_ns; /* the owner's: its last ProxyCtrl started, and is open; 0: none */
	uint64_t written; /* slices and interrupts before these may be forgotten */
	uint64_t written_irq;
	uint32_t overrun;  /* slices forgotten before they were asked for; the owner clears it */
	UT_hash_handle hh; /* by tid, while not gone */
};

/* Who ran on a CPU until end_ns; from the end of the one before, if that CPU was watched then. */
struct sched_run {
	uint64_t end_ns;
	uint32_t tgid; /* 0: idle, or not known */
	char comm[SCOPE_COMM_LEN];
};

struct sched_cpu {
	struct sched_run *at;
	uint32_t size;
	uint64_t first, end;
	uint64_t known_ns;  /* who ran before this is forgotten */
	uint32_t seq;	    /* of its last switch; BPF counts from 1 */
	uint64_t irqs_fill; /* of its last record of interrupts: scope_ev_irq.fill */
};

struct sched {
	struct sched_thread *threads; /* uthash: those that live */
	struct sched_cpu *cpus;
	struct sched_file *files; /* uthash: those of sleeps */
	uint32_t nfiles;	  /* that there ever were */
	uint32_t ncpus;
	uint64_t nslices;	       /* held, of all threads */
	struct sched_tallies *tallies; /* what spans keep from one to the next */
	uint64_t room, room_max;       /* bytes of all rings; 0: no bound; set by the owner */
};

struct sched_span_who {
	uint64_t ns;
	uint32_t tgid;
	char comm[SCOPE_COMM_LEN];
};

struct sched_span_file {
	uint64_t ns;
	char fs[16]; /* type of its filesystem */
	char name[SCHED_FILE_LEN];
};

/* What one thread, or several, did in a span of their time. */
struct sched_span {
	uint64_t threads; /* that it is the sum of; 0: nothing is known */
	uint32_t ncpus, nbehind, nblocked_in, nwoken_by, nfiles;
	uint64_t span_ns;
	uint64_t unknown_ns; /* on_cpu + runq + blocked + unknown = span */
	struct sched_sums sums;
	uint32_t cpus[SCHED_CPUS];		 /* where it ran */
	struct sched_span_who behind[SCHED_TOP]; /* who ran while it was runnable; most first */
	struct {
		uint64_t ns;
		int32_t why;
	} blocked_in[SCHED_TOP];
	struct sched_span_who
		woken_by[SCHED_TOP];		 /* who ended long sleeps, by how long those were */
	struct sched_span_file files[SCHED_TOP]; /* that long sleeps were in calls on */
};

/* Nothing so far. Entries beyond the counts stay as they are. */
static inline void sched_span__clear(struct sched_span *span)
{
	memset(span, 0, offsetof(struct sched_span, cpus));
}

/* ncpus: CPU numbers are below it. 0 or -ENOMEM. */
int sched__init(struct sched *s, uint32_t ncpus);
/* Frees all threads that nobody holds. Safe twice. */
void sched__free(struct sched *s);

/*
 * The kernel's records, in the order in which they came. They return how many records before this one were
 * lost, of the thread that *who is set to (NULL: none that is known).
 */
void sched__thread(struct sched *s, const struct scope_ev_thread *e);
uint32_t sched__switch(struct sched *s, const struct scope_ev_switch *e, struct sched_thread **who);
/* The nth of several, in full, for sched__switch(); false: it has come already. */
bool sched__nth_switch(const struct sched *s, const struct scope_ev_switches *e, uint32_t n,
		       struct scope_ev_switch *nth);
uint32_t sched__migrate(struct sched *s, const struct scope_ev_migrate *e,
			struct sched_thread **who);
/* Who ended a sleep: nothing where that is not known to have been one. */
void sched__woken(struct sched *s, const struct scope_ev_woken *e);
/* Where in the kernel it sleeps. */
void sched__stack(struct sched *s, const struct scope_ev_stack *e);
/* One that comes again counts with what is new in it. Lost is the record itself, or some of it, that comes too late. */
uint32_t sched__irq(struct sched *s, const struct scope_ev_irq *e, struct sched_thread **who);
/* A thread was seen running at ts_ns, after `seq` records (0: not counted). */
uint32_t sched__seen(struct sched *s, struct sched_thread *t, uint32_t seq, uint64_t ts_ns);
/* There have been `seq` records of a thread (0: not counted), of which all that came are in. */
uint32_t sched__counted(struct sched *s, struct sched_thread *t, uint32_t seq);
/*
 * BPF says of a thread, after `seq` records: it sleeps at now_ns (wait_ns 0), or it is runnable since
 * wait_ns. Without this a sleep is known to last only until the next record.
 */
void sched__still(struct sched *s, struct sched_thread *t, uint32_t seq, uint64_t wait_ns,
		  uint32_t cpu, uint64_t now_ns);
/* A process has ended: so have its threads, also those whose own end was lost. */
void sched__process_end(struct sched *s, uint32_t tgid, uint64_t start_ns, uint64_t end_ns);
/* A thread ended, after `seq` records (0: not counted). It is freed unless somebody holds it. */
uint32_t sched__exit(struct sched *s, struct sched_thread *t, uint32_t seq, uint64_t ts_ns);

/* The living thread with this host tid; NULL. */
struct sched_thread *sched__find(const struct sched *s, uint32_t tid);

/* A thread that an event needs stays until it is put, also when it has ended. NULL is fine. */
struct sched_thread *sched_thread__get(struct sched_thread *t);
void sched_thread__put(struct sched *s, struct sched_thread *t);

/* Marks a point in a thread's time; after the last record its last state lasts on. */
void sched_thread__mark(struct sched_thread *t, uint64_t ns, struct sched_mark *mark);
/* The same for a point after `from`, which is not near the last mark. */
void sched_thread__mark_after(const struct sched_thread *t, const struct sched_mark *from,
			      uint64_t ns, struct sched_mark *mark);
/* The state that it is in by the last record. */
const struct sched_slice *sched_thread__last(const struct sched_thread *t);
/* The state that it was in then; NULL: that is not known, or forgotten. */
const struct sched_slice *sched_thread__at(const struct sched_thread *t, uint64_t ns);
/*
 * The next slice that has ended and was not asked for, with its end and the interrupts in it; NULL if there
 * is none, or none that ended before until_ns.
 */
const struct sched_slice *sched_thread__next_slice(struct sched_thread *t, uint64_t until_ns,
						   uint64_t *end_ns, uint64_t *irq_ns);
/* Whether half of what is kept of them has not been asked for: soon more of them come than there is room for. */
bool sched_thread__slices_due(const struct sched *s, const struct sched_thread *t);

/* What happened between two marks of a thread; nothing (threads 0) if they are the wrong way round. */
void sched__span(const struct sched *s, const struct sched_thread *t, const struct sched_mark *from,
		 const struct sched_mark *to, struct sched_span *span);
/*
 * The same up to now; `behind`, `blockedIn` and `cpus` are those of the last SCHED_RECENT slices, so that a
 * thread that has spun for long costs no more than others.
 */
void sched__span_now(const struct sched *s, struct sched_thread *t, const struct sched_mark *from,
		     uint64_t now_ns, struct sched_span *span);
/* Who ran while a thread waited in a slice of its, a wait, that ended at end_ns: span->behind. */
void sched__behind(const struct sched *s, const struct sched_thread *t,
		   const struct sched_slice *slice, uint64_t end_ns, struct sched_span *span);
/* Adds one span to another. */
void sched_span__add(struct sched_span *to, const struct sched_span *from);

/*
 * Forgets what ended before keep_ns, but slices that sched_thread__next_slice() has not told yet if
 * `slices` (somebody asks for them).
 */
void sched_thread__prune(struct sched *s, struct sched_thread *t, uint64_t keep_ns, bool slices);
void sched__prune_cpus(struct sched *s, uint64_t keep_ns);

#endif
