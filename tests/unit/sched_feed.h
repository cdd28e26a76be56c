/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The miniature kernel's records into a timeline (loader/correlate/sched_timeline.c), and what that says of a
 * span against the truth. For the tests by hand and by chance.
 */
#ifndef NCCLSCOPE_TESTS_SCHED_FEED_H
#define NCCLSCOPE_TESTS_SCHED_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "sched_kernel.h"
#include "sched_timeline.h"

#define JOB	100 /* the recorded process */
#define HOG	900 /* one that is not */
#define FOREVER UINT64_MAX

static struct sched s;
static struct kernel k;
static uint64_t lost;	/* as the timeline tells */
static uint32_t drop;	/* so many records find no room */
static bool drop_after; /* ... or all from here on */

/* ---- From the kernel into the timeline ------------------------------------------------------- */

static inline void feed_several(const struct scope_ev_switches *e)
{
	struct scope_ev_switch nth;
	struct sched_thread *who;
	uint32_t i;

	for (i = 0; i < SCOPE_SWITCHES_N(e->h.size); i++)
		if (sched__nth_switch(&s, e, i, &nth))
			lost += sched__switch(&s, &nth, &who);
}

static inline bool feed(struct kernel *from, const void *rec)
{
	const struct scope_ev_short *h = rec;
	const struct scope_ev_exit *e = rec;
	struct sched_thread *who = NULL;

	(void)from;
	if (h->kind == SCOPE_EV_EXIT) {
		who = sched__find(&s, e->h.tid);
		if (who)
			lost += sched__exit(&s, who, e->sched_seq, e->h.ts_ns);
		return true;
	}
	if (drop_after || (drop && drop--))
		return false;
	if (h->kind == SCOPE_EV_THREAD)
		sched__thread(&s, rec);
	else if (h->kind == SCOPE_EV_SWITCH)
		lost += sched__switch(&s, rec, &who);
	else if (h->kind == SCOPE_EV_SWITCHES)
		feed_several(rec);
	else if (h->kind == SCOPE_EV_MIGRATE)
		lost += sched__migrate(&s, rec, &who);
	else if (h->kind == SCOPE_EV_WOKEN)
		sched__woken(&s, rec);
	else
		sched__irq(&s, rec, &who);
	return true;
}

static inline void begin(uint32_t ncpus)
{
	assert_int_equal(sched__init(&s, ncpus), 0);
	k.ncpus = ncpus;
	k.ring = feed;
	k.now_ns = 1;
	lost = drop = 0;
	drop_after = false;
}

static inline int setup(void **state)
{
	(void)state;
	begin(4);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	sched__free(&s);
	sched__free(&s);
	k_free(&k);
	return 0;
}

static inline void at(uint64_t ns)
{
	assert_true(ns >= k.now_ns);
	k.now_ns = ns;
}

/* A thread of the job that sleeps and is not known yet; a task of another process. */
static inline struct k_task *job_thread(uint32_t n)
{
	return k_task(&k, JOB + n, JOB, "job", true);
}

static inline struct k_task *hog(uint32_t n, const char *comm)
{
	return k_task(&k, HOG + n, HOG + n, comm, false);
}

/* The same, running on a CPU since now, and known. */
static inline struct k_task *running(uint32_t n, uint32_t cpu)
{
	struct k_task *t = job_thread(n);

	k_wakeup(&k, t, cpu);
	k_preempts(&k, cpu, t);
	return t;
}

/* Ran from 10 on, and has slept since 20. */
static inline struct k_task *asleep(void)
{
	struct k_task *t;

	at(10);
	t = running(0, 0);
	at(20);
	k_blocks(&k, 0, POLL, NULL);
	return t;
}

/* A CPU's first record blames nobody: this is it. */
static inline void prime(uint32_t cpu)
{
	running(50 + cpu, cpu);
	k_blocks(&k, cpu, SCOPE_WHY_OTHER, NULL);
}

/* The thread hands in what it has: it is seen to run. */
static inline uint32_t seen(struct k_task *t)
{
	uint32_t seq = k_chunk(&k, t), n;

	k_chunk_got(t, seq);
	n = sched__seen(&s, sched__find(&s, t->tid), seq, k.now_ns);
	lost += n;
	return n;
}

/* The loader asks BPF about a thread. */
static inline void still(const struct k_task *t)
{
	sched__still(&s, sched__find(&s, t->tid), t->bpf.seq,
		     t->bpf.state == SCOPE_TASK_WAIT ? t->bpf.wait_ns : 0, t->bpf.cpu, k.now_ns);
}

static inline struct sched_thread *thread(const struct k_task *t)
{
	struct sched_thread *of = sched__find(&s, t->tid);

	assert_non_null(of);
	return of;
}

static inline struct sched_mark mark(struct sched_thread *t, uint64_t ns)
{
	struct sched_mark m;

	sched_thread__mark(t, ns, &m);
	assert_int_equal(m.ns, ns);
	return m;
}

static inline struct sched_span between(struct sched_thread *t, const struct sched_mark *from,
					const struct sched_mark *to)
{
	struct sched_span span;

	sched_span__clear(&span);
	sched__span(&s, t, from, to, &span);
	return span;
}

static inline struct sched_span span_of(struct sched_thread *t, uint64_t from_ns, uint64_t to_ns)
{
	struct sched_mark from = mark(t, from_ns), to = mark(t, to_ns);

	return between(t, &from, &to);
}

/* ---- Against the truth ----------------------------------------------------------------------- */

static inline void assert_adds_up(const struct sched_span *span)
{
	const struct sched_sums *sums = &span->sums;
	uint64_t behind = 0, blocked = 0, woken = 0, files = 0;
	uint32_t i;

	assert_int_equal(sums->on_cpu_ns + sums->runq_ns + sums->blocked_ns + span->unknown_ns,
			 span->span_ns);
	assert_true(sums->irq_ns <= sums->on_cpu_ns);
	assert_true(sums->throttled_ns <= sums->runq_ns);
	assert_true(span->nbehind <= SCHED_TOP && span->nblocked_in <= SCHED_TOP);
	for (i = 0; i < span->nbehind; i++) {
		assert_true(!i || span->behind[i].ns <= span->behind[i - 1].ns);
		behind += span->behind[i].ns;
	}
	for (i = 0; i < span->nblocked_in; i++) {
		assert_true(!i || span->blocked_in[i].ns <= span->blocked_in[i - 1].ns);
		blocked += span->blocked_in[i].ns;
	}
	for (i = 0; i < span->nwoken_by; i++)
		woken += span->woken_by[i].ns;
	for (i = 0; i < span->nfiles; i++)
		files += span->files[i].ns;
	assert_true(behind <= sums->runq_ns);
	assert_true(blocked <= sums->blocked_ns);
	assert_true(woken <= sums->blocked_ns);
	assert_true(files <= sums->blocked_ns);
}

/* Of those that are there, the most, and each with its own. */
static inline void assert_who(const struct sched_span_who *who, uint32_t nwho,
			      const struct k_culprit *want, uint32_t nwant)
{
	uint32_t i, j, n = nwant < SCHED_TOP ? nwant : SCHED_TOP, more;

	assert_int_equal(nwho, n);
	for (i = 0; i < n; i++) {
		for (j = more = 0; j < nwant; j++)
			more += want[j].ns > who[i].ns;
		assert_true(more <= i);
		for (j = 0; j < nwant; j++)
			if (want[j].tgid == who[i].tgid && !strcmp(want[j].comm, who[i].comm))
				break;
		assert_true(j < nwant);
		assert_int_equal(who[i].ns, want[j].ns);
	}
}

static inline void assert_behind(const struct sched_span *span, const struct k_span *want)
{
	assert_who(span->behind, span->nbehind, want->behind, want->nbehind);
}

/* "data/1" */
static inline uint32_t file_nr(const struct sched_span_file *f)
{
	assert_string_equal(f->fs, "ext4");
	assert_int_equal(strncmp(f->name, "data/", 5), 0);
	return (uint32_t)atoi(f->name + 5);
}

static inline void assert_files(const struct sched_span *span, const struct k_span *want)
{
	uint32_t i, n = 0;

	for (i = 1; i < K_FILES; i++)
		n += !!want->files[i];
	assert_int_equal(span->nfiles, n < SCHED_TOP ? n : SCHED_TOP);
	for (i = 0; i < span->nfiles; i++) {
		assert_true(!i || span->files[i].ns <= span->files[i - 1].ns);
		assert_int_equal(span->files[i].ns, want->files[file_nr(&span->files[i])]);
	}
}

static inline void assert_blocked_in(const struct sched_span *span, const struct k_span *want)
{
	uint32_t i, j, n = want->nblocked_in < SCHED_TOP ? want->nblocked_in : SCHED_TOP;

	assert_int_equal(span->nblocked_in, n);
	for (i = 0; i < n; i++) {
		for (j = 0; j < want->nblocked_in; j++)
			if (want->blocked_in[j].why == span->blocked_in[i].why)
				break;
		assert_true(j < want->nblocked_in);
		assert_int_equal(span->blocked_in[i].ns, want->blocked_in[j].ns);
	}
}

static inline void assert_cpus(const struct sched_span *span, const struct k_span *want)
{
	uint64_t cpus = 0;
	uint32_t i;

	for (i = 0; i < span->ncpus; i++) {
		assert_false(cpus >> span->cpus[i] & 1);
		cpus |= 1ull << span->cpus[i];
	}
	assert_int_equal(cpus, want->cpus);
}

static inline void assert_exact(const struct sched_span *span, const struct k_span *want)
{
	assert_adds_up(span);
	assert_int_equal(span->sums.on_cpu_ns, want->ns[SCOPE_TASK_RUN]);
	assert_int_equal(span->sums.runq_ns, want->ns[SCOPE_TASK_WAIT]);
	assert_int_equal(span->sums.blocked_ns, want->ns[SCOPE_TASK_BLOCKED]);
	assert_int_equal(span->unknown_ns, want->ns[0]);
	assert_int_equal(span->sums.irq_ns, want->irq_ns);
	assert_int_equal(span->sums.throttled_ns, want->throttled_ns);
	assert_int_equal(span->sums.switches, want->switches);
	assert_int_equal(span->sums.preemptions, want->preemptions);
	assert_int_equal(span->sums.migrations, want->migrations);
	assert_behind(span, want);
	assert_blocked_in(span, want);
	assert_who(span->woken_by, span->nwoken_by, want->woken_by, want->nwoken_by);
	assert_files(span, want);
	assert_cpus(span, want);
}

static inline uint64_t share_of(const struct k_culprit *list, uint32_t n,
				const struct sched_span_who *who)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (list[i].tgid == who->tgid && !strcmp(list[i].comm, who->comm))
			return list[i].ns;
	return 0;
}

/* With records lost: nothing is claimed that was not. */
static inline void assert_modest(const struct sched_span *span, const struct k_span *want)
{
	uint32_t i;

	assert_adds_up(span);
	assert_true(span->sums.on_cpu_ns <= want->ns[SCOPE_TASK_RUN]);
	assert_true(span->sums.runq_ns <= want->ns[SCOPE_TASK_WAIT]);
	assert_true(span->sums.blocked_ns <= want->ns[SCOPE_TASK_BLOCKED]);
	assert_true(span->sums.switches <= want->switches);
	assert_true(span->sums.preemptions <= want->preemptions);
	/* A move that was lost may show at a later one: of migrations only the sum counts. */
	for (i = 0; i < span->nbehind; i++)
		assert_true(span->behind[i].ns <=
			    share_of(want->behind, want->nbehind, &span->behind[i]));
	for (i = 0; i < span->nwoken_by; i++)
		assert_true(span->woken_by[i].ns <=
			    share_of(want->woken_by, want->nwoken_by, &span->woken_by[i]));
	for (i = 0; i < span->nfiles; i++)
		assert_true(span->files[i].ns <= want->files[file_nr(&span->files[i])]);
}

#endif
