/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kernel in miniature: tasks on CPUs, of which the true history is kept, and the ring records
 * that bpf/sched.bpf.c makes of it. Tests compare what the loader says with what was.
 *
 * Functions are named after the tracepoints. Whether a record finds room in the ring is up to the
 * test.
 */
#ifndef NCCLSCOPE_TESTS_SCHED_KERNEL_H
#define NCCLSCOPE_TESTS_SCHED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include "scope_abi.h"
#include "syscalls.h"

#define FUTEX SYS_futex
#define POLL  SYS_ppoll /* arm64 has no poll */

#define K_CPUS	 8
#define K_TASKS	 96
#define K_NO_CPU UINT32_MAX

/* A stay in one state, as the kernel side could see it. */
struct k_stay {
	uint64_t begin_ns;
	uint64_t throttled_ns; /* first of a wait: of all of it, from its begin */
	uint32_t cpu;
	int32_t why;
	uint8_t state;
	bool left, preempted, migrated; /* it began so */
	const struct k_task *by;	/* asleep: who woke it, if BPF told */
	uint32_t file;			/* and in which file it was; 0: none */
};

struct k_irq {
	uint64_t begin_ns, dur_ns;
};

struct k_task {
	uint32_t tid, tgid, ns_tid;
	uint64_t start_ns; /* of its process */
	char comm[SCOPE_COMM_LEN];
	bool recorded, ended;

	/* the truth */
	uint8_t state;
	uint32_t cpu;
	uint64_t left_ns, woken_ns, end_ns; /* it last left a CPU; began to wait; ended */
	struct k_stay *stays;
	uint32_t nstays, wait; /* the stay that its wait began with */
	struct k_irq *irqs;
	uint32_t nirqs;

	/* struct scope_task: what BPF knows */
	struct {
		bool known, born, told, quota;
		uint32_t seq, cpu;
		uint8_t state;
		uint64_t wait_ns, asleep_ns;
		uint32_t at_cpu, at_seq; /* its last switch */
	} bpf;

	/* The test's own. */
	uint32_t got_seq; /* of the last record that found room; with got */
	bool got;
	uint64_t lost;
};

/* Who ran from begin_ns on; NULL: nobody. */
struct k_run {
	uint64_t begin_ns;
	const struct k_task *task;
};

struct k_cpu {
	struct k_task *curr;
	struct k_run *runs;
	uint32_t nruns;
	uint32_t waiters; /* struct scope_cpu */
	uint64_t irqs;	  /* records of them */
	struct scope_switches gathered;
	uint32_t counted; /* of these, k_count() knows up to here */
};

struct kernel {
	uint64_t now_ns;
	struct k_task tasks[K_TASKS];
	uint32_t ntasks;
	struct k_cpu cpus[K_CPUS];
	uint32_t ncpus;
	/* A ring record; false: there was no room. */
	bool (*ring)(struct kernel *k, const void *rec);
	bool gathers;	   /* switches, as far as they fit */
	int32_t exit_code; /* of threads that k_exit() ends, as wait(2)'s status */
	/* A record of several: whether they come again with the next, as when two CPUs tell them at a time. NULL: no. */
	bool (*again)(void);
	void *arg;
	uint64_t no_room; /* records of kernel context that found none */
};

#define K_ADD(list, n)                                                                             \
	do {                                                                                       \
		if (((n) & ((n)-1)) == 0)                                                          \
			(list) = realloc(list, ((n) ? 2 * (n) : 1) * sizeof(*(list)));             \
		if (!(list))                                                                       \
			abort();                                                                   \
	} while (0)

/* ---- The truth ------------------------------------------------------------------------------- */

static inline struct k_task *k_task(struct kernel *k, uint32_t tid, uint32_t tgid, const char *comm,
				    bool recorded)
{
	struct k_task *t = &k->tasks[k->ntasks++];

	if (k->ntasks > K_TASKS)
		abort();
	*t = (struct k_task){.tid = tid,
			     .tgid = tgid,
			     .ns_tid = tid,
			     .start_ns = 10,
			     .recorded = recorded,
			     .state = SCOPE_TASK_BLOCKED};
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
	return t;
}

static inline struct k_stay *k_stay(struct kernel *k, struct k_task *t, uint8_t state, uint32_t cpu)
{
	struct k_stay *s;

	K_ADD(t->stays, t->nstays);
	s = &t->stays[t->nstays++];
	*s = (struct k_stay){
		.begin_ns = k->now_ns, .cpu = cpu, .why = SCOPE_WHY_OTHER, .state = state};
	return s;
}

static inline struct k_stay *k_last(const struct k_task *t)
{
	return t->nstays ? &t->stays[t->nstays - 1] : NULL;
}

/* Begins a wait; in the truth that the loader can know only if BPF follows the thread. */
static inline void k_waits(struct kernel *k, struct k_task *t, uint32_t cpu)
{
	t->state = SCOPE_TASK_WAIT;
	t->cpu = cpu;
	t->woken_ns = k->now_ns;
	t->wait = t->nstays;
	if (t->bpf.known)
		k_stay(k, t, SCOPE_TASK_WAIT, cpu);
}

static inline void k_free(struct kernel *k)
{
	uint32_t i;

	for (i = 0; i < k->ntasks; i++) {
		free(k->tasks[i].stays);
		free(k->tasks[i].irqs);
	}
	for (i = 0; i < k->ncpus; i++)
		free(k->cpus[i].runs);
	memset(k, 0, sizeof(*k));
}

/* ---- What BPF does --------------------------------------------------------------------------- */

static inline bool k_ring(struct kernel *k, const void *rec)
{
	if (k->ring(k, rec))
		return true;
	k->no_room++;
	return false;
}

/* A record with `seq` of a thread: how many the loader misses, once it gets this or a later one. */
static inline void k_count(struct k_task *t, uint32_t seq, bool got)
{
	if (got && t->got)
		t->lost += seq - t->got_seq - 1;
	if (got)
		t->got_seq = seq;
	t->got |= got;
}

static inline void k_tell(struct kernel *k, struct k_task *t)
{
	struct scope_ev_thread e = {
		.h = {SCOPE_ABI, SCOPE_EV_THREAD, sizeof(e), k->now_ns},
		.start_ns = t->start_ns,
		.tgid = t->tgid,
		.tid = t->tid,
		.ns_tgid = t->tgid,
		.ns_tid = t->ns_tid,
		.seq = t->bpf.seq,
		.state = t->bpf.state,
		.born = t->bpf.born,
	};

	memcpy(e.comm, t->comm, sizeof(e.comm));
	if (!k_ring(k, &e))
		return;
	if (!t->got)
		t->got_seq = t->bpf.seq;
	t->got = true;
	t->bpf.told = true;
	t->bpf.born = false;
}

/* The states of a thread are known from here on. */
static inline void k_begin(struct kernel *k, struct k_task *t, uint8_t state, bool born)
{
	memset(&t->bpf, 0, sizeof(t->bpf));
	t->bpf.known = true;
	t->bpf.state = state;
	t->bpf.born = born;
	t->wait = t->nstays;
	k_stay(k, t, state, K_NO_CPU);
	k_tell(k, t);
}

/* task_get(): false if the thread is on its way out. */
static inline bool k_get(struct kernel *k, struct k_task *t, uint8_t state)
{
	if (t->ended)
		return false;
	if (!t->bpf.known)
		k_begin(k, t, state, false);
	else if (!t->bpf.told)
		k_tell(k, t);
	return true;
}

static inline void k_bpf_wait(struct kernel *k, struct k_task *t, uint32_t cpu)
{
	t->bpf.state = SCOPE_TASK_WAIT;
	t->bpf.wait_ns = k->now_ns;
	t->bpf.cpu = cpu;
	k->cpus[cpu].waiters++;
}

static inline void k_bpf_waits_no_more(struct kernel *k, struct k_task *t)
{
	if (t->bpf.state == SCOPE_TASK_WAIT && t->bpf.wait_ns)
		k->cpus[t->bpf.cpu].waiters--;
	t->bpf.wait_ns = 0;
}

/* ---- Switches that gather -------------------------------------------------------------------- */

static inline struct k_task *k_find(struct kernel *k, uint32_t tid)
{
	uint32_t i = k->ntasks;

	while (i && (k->tasks[i - 1].tid != tid || !k->tasks[i - 1].recorded))
		i--;
	return i ? &k->tasks[i - 1] : NULL;
}

static inline void k_count_gathered(struct kernel *k, struct k_cpu *c, uint32_t seq, bool got)
{
	const struct scope_switch *s = &c->gathered.at[seq % SCOPE_SWITCH_SLOTS];

	if (seq <= c->counted)
		return;
	c->counted = seq;
	if (s->flags & SCOPE_SWITCH_PREV)
		k_count(k_find(k, s->prev_tid), s->prev_seq, got);
	if (s->flags & SCOPE_SWITCH_NEXT)
		k_count(k_find(k, s->next_tid), s->next_seq, got);
}

/* Tells those up to number `last`; `own`: it is the CPU itself. */
static inline void k_tell_gathered(struct kernel *k, uint32_t cpu, uint32_t last, bool own)
{
	struct k_cpu *c = &k->cpus[cpu];
	struct scope_switches *q = &c->gathered;
	uint32_t from = q->copied - q->told <= SCOPE_SWITCHES ? q->copied : q->told;
	struct scope_ev_switches e = {.cpu = cpu, .cpu_seq = from + 1};
	uint32_t n = last - from, i;
	bool got;

	if (n > SCOPE_SWITCHES && (own || (int32_t)n > 0))
		abort();
	for (i = 0; i < n && n <= SCOPE_SWITCHES; i++)
		e.at[i] = q->at[(from + 1 + i) % SCOPE_SWITCH_SLOTS];
	if (i) {
		e.h = (struct scope_ev_short){SCOPE_ABI, SCOPE_EV_SWITCHES,
					      (uint32_t)SCOPE_SWITCHES_SIZE(n), e.at[0].ts_ns};
		got = k_ring(k, &e);
		for (i = 1; i <= n; i++)
			k_count_gathered(k, c, from + i, got);
		if (!own && (!got || !k->again || !k->again()))
			q->copied = last;
	}
	if (own)
		q->told = last;
}

/* The loader reads what gathers. */
static inline void k_look(struct kernel *k)
{
	uint32_t i;

	for (i = 0; i < k->ncpus; i++)
		k_tell_gathered(k, i, k->cpus[i].gathered.seq, false);
}

/* task_goes_on(), and what comes before something else of the thread. */
static inline void k_goes_on(struct kernel *k, struct k_task *t)
{
	if (t->bpf.at_seq)
		k_tell_gathered(k, t->bpf.at_cpu, t->bpf.at_seq, false);
}

static inline bool k_fits(const struct kernel *k, const struct scope_ev_switch *e,
			  const struct k_task *prev, const struct k_task *next)
{
	bool ours = e->flags & (SCOPE_SWITCH_PREV | SCOPE_SWITCH_NEXT);

	return k->gathers && ours && !e->throttled_ns &&
	       !(e->flags & SCOPE_SWITCH_PREV && !prev->bpf.told) &&
	       !(e->flags & SCOPE_SWITCH_NEXT && !next->bpf.told) &&
	       !(e->flags & SCOPE_SWITCH_WATCHED && prev && !(e->flags & SCOPE_SWITCH_PREV));
}

static inline void k_gather(struct kernel *k, const struct scope_ev_switch *e)
{
	struct scope_switches *q = &k->cpus[e->cpu].gathered;

	q->at[e->cpu_seq % SCOPE_SWITCH_SLOTS] = (struct scope_switch){
		.ts_ns = e->h.ts_ns,
		.prev_tid = e->prev_tid,
		.prev_seq = e->prev_seq,
		.next_tid = e->next_tid,
		.next_seq = e->next_seq,
		.waited_ns = e->wait_ns ? (uint32_t)(e->h.ts_ns - e->wait_ns) : 0,
		.why = (int16_t)e->why,
		.prev_state = (uint8_t)e->prev_state,
		.flags = (uint8_t)(e->flags | (e->wait_ns ? SCOPE_SWITCH_WAITED : 0)),
	};
	if (q->seq - q->told >= SCOPE_SWITCHES) /* whatever has been copied */
		k_tell_gathered(k, e->cpu, q->seq, true);
}

/* ---- Switches -------------------------------------------------------------------------------- */

struct k_out {
	bool blocks; /* else it stays runnable */
	int32_t why;
	bool quota; /* runnable, but held back */
};

static inline void k_at(struct kernel *k, struct k_task *t, const struct scope_ev_switch *e)
{
	if (t->bpf.at_cpu != e->cpu)
		k_goes_on(k, t);
	t->bpf.at_cpu = e->cpu;
	t->bpf.at_seq = e->cpu_seq;
}

static inline void k_switch_out(struct kernel *k, struct scope_ev_switch *e, struct k_task *prev,
				const struct k_out *how)
{
	if (!k_get(k, prev, SCOPE_TASK_RUN))
		return;
	k_bpf_waits_no_more(k, prev);
	k_at(k, prev, e);
	e->flags |= SCOPE_SWITCH_PREV;
	e->prev_seq = ++prev->bpf.seq;
	if (how->blocks) {
		prev->bpf.state = SCOPE_TASK_BLOCKED;
		prev->bpf.asleep_ns = k->now_ns;
		e->why = how->why;
	} else {
		k_bpf_wait(k, prev, e->cpu);
		prev->bpf.quota = how->quota;
	}
	e->prev_state = prev->bpf.state;
}

static inline void k_switch_in(struct kernel *k, struct scope_ev_switch *e, struct k_task *next,
			       uint64_t throttled_ns)
{
	if (!k_get(k, next, SCOPE_TASK_WAIT))
		return;
	k_at(k, next, e);
	e->flags |= SCOPE_SWITCH_NEXT;
	e->next_seq = ++next->bpf.seq;
	if (next->bpf.state == SCOPE_TASK_WAIT && next->bpf.wait_ns) {
		e->wait_ns = next->bpf.wait_ns;
		if (next->bpf.quota && throttled_ns > k->now_ns - e->wait_ns)
			e->throttled_ns = k->now_ns - e->wait_ns;
		else if (next->bpf.quota)
			e->throttled_ns = throttled_ns;
		next->bpf.quota = false;
	}
	k_bpf_waits_no_more(k, next);
	next->bpf.state = SCOPE_TASK_RUN;
}

static inline void k_true_out(struct kernel *k, struct k_task *t, uint32_t cpu,
			      const struct k_out *how)
{
	struct k_stay *s;

	t->left_ns = k->now_ns;
	if (t->ended)
		return;
	if (k_last(t)) /* a run that was not seen to begin: now it shows where it was */
		k_last(t)->cpu = cpu;
	if (!how->blocks) {
		k_waits(k, t, cpu);
	} else {
		t->state = SCOPE_TASK_BLOCKED;
		if (t->bpf.known)
			k_stay(k, t, SCOPE_TASK_BLOCKED, K_NO_CPU);
	}
	s = k_last(t);
	if (!s || !t->bpf.known)
		return;
	s->left = true;
	s->preempted = !how->blocks;
	s->why = how->blocks ? how->why : SCOPE_WHY_OTHER;
}

static inline void k_true_in(struct kernel *k, struct k_task *t, uint32_t cpu, uint64_t throttled)
{
	uint32_t was = K_NO_CPU, i;

	t->state = SCOPE_TASK_RUN;
	t->cpu = cpu;
	if (!t->bpf.known)
		return;
	for (i = 0; i < t->nstays; i++)
		if (t->stays[i].state == SCOPE_TASK_RUN)
			was = t->stays[i].cpu;
	if (t->wait < t->nstays)
		t->stays[t->wait].throttled_ns = throttled;
	k_stay(k, t, SCOPE_TASK_RUN, cpu)->migrated = was != K_NO_CPU && was != cpu;
}

static inline void k_true_switch(struct kernel *k, uint32_t cpu, const struct k_out *how,
				 struct k_task *next, uint64_t throttled)
{
	struct k_cpu *c = &k->cpus[cpu];

	if (c->curr)
		k_true_out(k, c->curr, cpu, how);
	if (next)
		k_true_in(k, next, cpu, throttled);
	K_ADD(c->runs, c->nruns);
	c->runs[c->nruns++] = (struct k_run){k->now_ns, next};
	c->curr = next;
}

/* `cpu` goes from what runs there to `next` (NULL: idle), after `how`. */
static inline void k_switch(struct kernel *k, uint32_t cpu, const struct k_out *how,
			    struct k_task *next, uint64_t throttled_ns)
{
	struct k_cpu *c = &k->cpus[cpu];
	struct k_task *prev = c->curr;
	struct scope_ev_switch e = {
		.h = {SCOPE_ABI, SCOPE_EV_SWITCH, sizeof(e), k->now_ns},
		.cpu = cpu,
		.why = SCOPE_WHY_OTHER,
	};
	bool of_interest = c->waiters || (prev && prev->recorded) || (next && next->recorded), got;
	bool fits;

	if (c->waiters)
		e.flags = SCOPE_SWITCH_WATCHED;
	memcpy(e.prev_comm, prev ? prev->comm : "swapper", prev ? sizeof(prev->comm) : 8);
	e.prev_tid = prev ? prev->tid : 0;
	e.prev_tgid = prev ? prev->tgid : 0;
	e.next_tid = next ? next->tid : 0;
	e.cpu_seq = c->gathered.seq + 1;
	if (prev && prev->recorded)
		k_switch_out(k, &e, prev, how);
	if (next && next->recorded)
		k_switch_in(k, &e, next, throttled_ns);
	k_true_switch(k, cpu, how, next, e.throttled_ns);
	fits = k_fits(k, &e, prev, next);
	if (!fits)
		k_tell_gathered(k, cpu, c->gathered.seq, true);
	c->gathered.seq += of_interest;
	if (fits) {
		k_gather(k, &e);
		return;
	}
	c->gathered.told = c->counted = c->gathered.seq;
	got = of_interest && k_ring(k, &e);
	if (e.flags & SCOPE_SWITCH_PREV)
		k_count(prev, e.prev_seq, got);
	if (e.flags & SCOPE_SWITCH_NEXT)
		k_count(next, e.next_seq, got);
}

static inline void k_blocks(struct kernel *k, uint32_t cpu, int32_t why, struct k_task *next)
{
	k_switch(k, cpu, &(struct k_out){.blocks = true, .why = why}, next, 0);
}

static inline void k_preempts(struct kernel *k, uint32_t cpu, struct k_task *next)
{
	k_switch(k, cpu, &(struct k_out){0}, next, 0);
}

/* The same, but that the kernel skips the program and nobody hears of it. */
static inline void k_preempts_untold(struct kernel *k, uint32_t cpu, struct k_task *next)
{
	k_true_switch(k, cpu, &(struct k_out){0}, next, 0);
}

/* ---- Wake-ups, births, moves, ends ----------------------------------------------------------- */

#define K_FILES 8

/* Somebody (NULL: an interrupt) is about to wake a task, which slept in a call on a file (0: none). */
static inline void k_waking(struct kernel *k, struct k_task *t, const struct k_task *by,
			    uint32_t file)
{
	struct scope_ev_woken e = {
		.h = {SCOPE_ABI, SCOPE_EV_WOKEN, sizeof(e), k->now_ns},
		.since_ns = t->bpf.asleep_ns,
		.tid = t->tid,
		.by_tgid = by ? by->tgid : 0,
		.dir = "data",
	};
	struct k_stay *s = k_last(t);

	if (!t->recorded || !t->bpf.known || t->bpf.state != SCOPE_TASK_BLOCKED ||
	    !t->bpf.asleep_ns)
		return;
	if (by)
		memcpy(e.by_comm, by->comm, sizeof(e.by_comm));
	e.call = s->why == SCOPE_WHY_IO ? SYS_read : s->why;
	snprintf(e.name, sizeof(e.name), "%u", file);
	if (file) /* in whatever call: a futex's address may be the number of a file */
		strcpy(e.fs, "ext4");
	t->bpf.asleep_ns = 0;
	k_goes_on(k, t);
	if (!k_ring(k, &e))
		return;
	s->by = by;
	s->file = syscall_takes_file(e.call) ? file : 0;
}

/* A task that sleeps is woken, to wait for `cpu`. */
static inline void k_wakeup(struct kernel *k, struct k_task *t, uint32_t cpu)
{
	bool follow = t->recorded && k_get(k, t, SCOPE_TASK_BLOCKED);

	k_waits(k, t, cpu);
	if (follow && t->bpf.state == SCOPE_TASK_BLOCKED)
		k_bpf_wait(k, t, cpu);
}

/* A thread of a recorded process is made; k_wakeup() is its first wake-up. */
static inline void k_fork(struct kernel *k, struct k_task *t)
{
	k_begin(k, t, SCOPE_TASK_BLOCKED, true);
}

/* A task that waits is moved. */
static inline void k_migrate(struct kernel *k, struct k_task *t, uint32_t to)
{
	struct scope_ev_migrate e = {
		.h = {SCOPE_ABI, SCOPE_EV_MIGRATE, sizeof(e), k->now_ns},
		.tid = t->tid,
		.from = t->bpf.cpu,
		.to = to,
		.wait_ns = t->bpf.wait_ns,
	};
	uint64_t woken_ns = t->woken_ns;
	uint32_t wait = t->wait;
	struct k_task *curr;

	if (t->cpu == to)
		return;
	if (t->bpf.known && t->bpf.wait_ns) {
		curr = k->cpus[e.from].curr;
		e.seq = ++t->bpf.seq;
		k_goes_on(k, t);
		e.cpu_seq = k->cpus[e.from].gathered.seq;
		k_tell_gathered(k, e.from, e.cpu_seq, false);
		e.curr_tid = curr ? curr->tid : 0;
		e.curr_tgid = curr ? curr->tgid : 0;
		memcpy(e.curr_comm, curr ? curr->comm : "swapper", curr ? sizeof(curr->comm) : 8);
		/* It makes no thread known. */
		k_count(t, e.seq, k_ring(k, &e) && t->got);
		k->cpus[e.from].waiters--;
		k->cpus[to].waiters++;
		t->bpf.cpu = to;
	}
	k_waits(k, t, to);
	t->woken_ns = woken_ns;
	t->wait = wait;
}

/* An interrupt on top of what runs on `cpu`, which lasts until now. */
static inline void k_irq(struct kernel *k, uint32_t cpu, uint64_t begin_ns)
{
	struct k_task *t = k->cpus[cpu].curr;
	struct scope_ev_irq e = {
		.h = {SCOPE_ABI, SCOPE_EV_IRQ, offsetof(struct scope_ev_irq, at[1]), begin_ns},
		.cpu = cpu,
		.fill = ++k->cpus[cpu].irqs << 8 | 1,
		.at = {{.dur_ns = (uint32_t)(k->now_ns - begin_ns)}},
	};

	if (!t || !t->recorded || !t->bpf.known)
		return;
	e.tid = t->tid;
	K_ADD(t->irqs, t->nirqs);
	t->irqs[t->nirqs++] = (struct k_irq){begin_ns, e.at[0].dur_ns};
	if (!k_ring(k, &e))
		t->nirqs--; /* told by nobody */
}

/* A thread that runs hands in a buffer: sched_see() and what goes into the chunk. */
static inline uint32_t k_chunk(struct kernel *k, struct k_task *t)
{
	if (!t->bpf.known)
		k_begin(k, t, SCOPE_TASK_RUN, false);
	k_goes_on(k, t);
	return t->bpf.seq;
}

/* The chunk has found room. */
static inline void k_chunk_got(struct k_task *t, uint32_t seq)
{
	if (seq)
		k_count(t, seq + 1, true);
	if (seq)
		t->got_seq = seq;
}

/* The thread that runs on `cpu` ends; then it leaves the CPU to `next`. */
static inline void k_exit(struct kernel *k, uint32_t cpu, struct k_task *next)
{
	struct k_task *t = k->cpus[cpu].curr;
	struct scope_ev_exit e = {
		.h = {.abi = SCOPE_ABI,
		      .kind = SCOPE_EV_EXIT,
		      .size = sizeof(e),
		      .ts_ns = k->now_ns,
		      .start_ns = t->start_ns,
		      .tgid = t->tgid,
		      .tid = t->tid,
		      .ns_tgid = t->tgid,
		      .ns_tid = t->ns_tid},
		.code = k->exit_code,
		.sched_seq = t->bpf.known ? t->bpf.seq : 0,
	};

	if (t->recorded) {
		k_goes_on(k, t);
		k_chunk_got(t, e.sched_seq);
		k_ring(k, &e);
	}
	t->ended = true;
	t->end_ns = k->now_ns;
	k_switch(k, cpu, &(struct k_out){.blocks = true}, next, 0);
}

/* ---- Questions ------------------------------------------------------------------------------- */

struct k_culprit {
	uint32_t tgid;
	const char *comm;
	uint64_t ns;
};

/* What a thread really did in a span, of what the kernel side can know. */
struct k_span {
	uint64_t ns[4]; /* by enum scope_task_state; 0: not known */
	uint64_t irq_ns, throttled_ns;
	uint32_t switches, preemptions, migrations;
	uint64_t cpus; /* bits */
	struct k_culprit behind[K_TASKS];
	uint32_t nbehind;
	struct {
		int32_t why;
		uint64_t ns;
	} blocked_in[16];
	uint32_t nblocked_in;
	struct k_culprit woken_by[K_TASKS];
	uint32_t nwoken_by;
	uint64_t files[K_FILES]; /* by number */
};

static inline uint64_t k_overlap(uint64_t a, uint64_t b, uint64_t from, uint64_t to)
{
	a = a > from ? a : from;
	b = b < to ? b : to;
	return b > a ? b - a : 0;
}

static inline void k_blame(struct k_culprit *list, uint32_t *n, const struct k_task *t, uint64_t ns)
{
	uint32_t i;

	for (i = 0; i < *n; i++)
		if (list[i].tgid == t->tgid && !strcmp(list[i].comm, t->comm))
			break;
	if (i == *n)
		list[(*n)++] = (struct k_culprit){t->tgid, t->comm, 0};
	list[i].ns += ns;
}

static inline void k_behind(const struct kernel *k, struct k_span *span, uint32_t cpu,
			    uint64_t from, uint64_t to)
{
	const struct k_cpu *c = &k->cpus[cpu];
	uint64_t end, ns;
	uint32_t i;

	for (i = 0; i < c->nruns && c->runs[i].begin_ns < to; i++) {
		end = i + 1 < c->nruns ? c->runs[i + 1].begin_ns : UINT64_MAX;
		ns = k_overlap(c->runs[i].begin_ns, end, from, to);
		if (ns && c->runs[i].task)
			k_blame(span->behind, &span->nbehind, c->runs[i].task, ns);
	}
}

static inline void k_blocked_in(struct k_span *span, int32_t why, uint64_t ns)
{
	uint32_t i;

	for (i = 0; i < span->nblocked_in && span->blocked_in[i].why != why; i++)
		;
	if (i == span->nblocked_in) {
		span->blocked_in[i].why = why;
		span->blocked_in[i].ns = 0;
		span->nblocked_in++;
	}
	span->blocked_in[i].ns += ns;
}

static inline uint64_t k_stay_end(const struct k_task *t, uint32_t i)
{
	if (i + 1 < t->nstays)
		return t->stays[i + 1].begin_ns;
	return t->ended ? t->end_ns : UINT64_MAX;
}

static inline void k_span_stay(const struct kernel *k, const struct k_task *t, uint32_t i,
			       uint64_t from, uint64_t to, struct k_span *span)
{
	const struct k_stay *s = &t->stays[i];
	uint64_t ns = k_overlap(s->begin_ns, k_stay_end(t, i), from, to);

	span->ns[s->state] += ns;
	if (s->begin_ns > from && s->begin_ns <= to) {
		span->switches += s->left;
		span->preemptions += s->preempted;
		span->migrations += s->migrated;
	}
	span->throttled_ns += k_overlap(s->begin_ns, s->begin_ns + s->throttled_ns, from, to);
	if (!ns)
		return;
	if (s->state == SCOPE_TASK_RUN && s->cpu != K_NO_CPU)
		span->cpus |= 1ull << s->cpu;
	if (s->state == SCOPE_TASK_WAIT && s->cpu != K_NO_CPU)
		k_behind(k, span, s->cpu, s->begin_ns > from ? s->begin_ns : from,
			 k_stay_end(t, i) < to ? k_stay_end(t, i) : to);
	if (s->state != SCOPE_TASK_BLOCKED)
		return;
	k_blocked_in(span, s->why, ns);
	if (s->by)
		k_blame(span->woken_by, &span->nwoken_by, s->by, ns);
	if (s->file)
		span->files[s->file] += ns;
}

static inline void k_span(const struct kernel *k, const struct k_task *t, uint64_t from,
			  uint64_t to, struct k_span *span)
{
	uint32_t i;

	memset(span, 0, sizeof(*span));
	for (i = 0; i < t->nstays; i++)
		k_span_stay(k, t, i, from, to, span);
	for (i = 0; i < t->nirqs; i++)
		if (t->irqs[i].begin_ns >= from && t->irqs[i].begin_ns < to)
			span->irq_ns += t->irqs[i].dur_ns;
	if (span->irq_ns > span->ns[SCOPE_TASK_RUN])
		span->irq_ns = span->ns[SCOPE_TASK_RUN];
	span->ns[0] = to - from - span->ns[1] - span->ns[2] - span->ns[3];
}

#endif
