// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/correlate/sched_timeline.c by little histories of which is known what comes of them: each way in
 * which a thread's states change, are lost, and are forgotten.
 */
#include <stdlib.h>
#include <string.h>
#include "sched_feed.h"
#include "sched_past.h"
#include "sched_priv.h"

/* Every span of a task's time, in steps: exact. */
static void all_spans(const struct k_task *t, struct sched_thread *of, uint64_t until,
		      uint64_t step)
{
	struct sched_span span;
	struct k_span want;
	uint64_t from, to;

	for (from = 0; from <= until; from += step) {
		for (to = from; to <= until; to += step) {
			span = span_of(of, from, to);
			k_span(&k, t, from, to, &want);
			assert_exact(&span, &want);
		}
	}
}

/* ---- Little histories ------------------------------------------------------------------------ */

/* Runs, sleeps, waits behind somebody, runs, waits again. */
static void test_states(void **state)
{
	struct k_task *t, *x = hog(0, "burn");
	struct sched_span span;

	(void)state;
	prime(0);
	at(100);
	t = running(0, 0);
	at(200);
	k_blocks(&k, 0, FUTEX, x);
	at(500);
	k_wakeup(&k, t, 0);
	at(530);
	k_preempts(&k, 0, t);
	at(600);
	k_preempts(&k, 0, x);
	at(605);
	k_blocks(&k, 0, 0, t);
	at(700);
	span = span_of(thread(t), 100, 700);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 100 + 70 + 95);
	assert_int_equal(span.sums.runq_ns, 30 + 5);
	assert_int_equal(span.sums.blocked_ns, 300);
	assert_int_equal(span.unknown_ns, 0);
	assert_int_equal(span.sums.switches, 2);
	assert_int_equal(span.sums.preemptions, 1);
	assert_int_equal(span.nbehind, 1);
	assert_int_equal(span.behind[0].tgid, HOG);
	assert_string_equal(span.behind[0].comm, "burn");
	assert_int_equal(span.behind[0].ns, 35);
	assert_int_equal(span.blocked_in[0].why, FUTEX);
	assert_int_equal(span.ncpus, 1);
	assert_int_equal(span.threads, 1);
	assert_int_equal(lost, 0);
	all_spans(t, thread(t), 700, 5);
}

/* However a thread is first seen, its time before that is unknown. */
static void test_first_sight(void **state)
{
	struct k_task *t[4], *x = hog(0, "burn");
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		prime((uint32_t)i);
	for (i = 0; i < 4; i++)
		t[i] = job_thread((uint32_t)i);
	at(10);
	for (i = 0; i < 3; i += 2) { /* 0 and 2 run, who knows since when */
		k.cpus[i].curr = t[i];
		t[i]->state = SCOPE_TASK_RUN;
	}
	t[3]->state = SCOPE_TASK_WAIT;
	at(100);
	seen(t[0]);
	k_wakeup(&k, t[1], 1);
	k_blocks(&k, 2, POLL, NULL);
	k_preempts(&k, 3, t[3]);
	at(150);
	k_preempts(&k, 0, x);
	k_preempts(&k, 1, t[1]);
	k_wakeup(&k, t[2], 2);
	k_preempts(&k, 2, t[2]);
	k_blocks(&k, 3, FUTEX, NULL);
	at(200);
	k_blocks(&k, 0, 0, t[0]);
	for (i = 0; i < 4; i++) {
		assert_int_equal(thread(t[i])->since_ns, 100);
		if (i != 3)
			all_spans(t[i], thread(t[i]), 200, 10);
	}
	all_spans(t[3], thread(t[3]), 150, 10);
}

static void test_born(void **state)
{
	struct k_task *parent, *t;

	(void)state;
	prime(0);
	prime(1);
	at(10);
	parent = running(0, 0);
	at(50);
	t = job_thread(1);
	k_fork(&k, t);
	at(55);
	k_wakeup(&k, t, 0);
	at(60);
	k_migrate(&k, t, 1);
	at(65);
	k_preempts(&k, 1, t);
	at(90);
	assert_int_equal(span_of(thread(t), 50, 65).behind[0].ns, 5); /* its parent */
	assert_int_equal(span_of(thread(t), 50, 90).sums.migrations, 0);
	all_spans(t, thread(t), 90, 5);
	all_spans(parent, thread(parent), 90, 5);
}

/* Woken to wait for one CPU, moved to another: behind whom, on each. */
static void test_moved_while_waiting(void **state)
{
	struct k_task *t, *a = hog(0, "a"), *b = hog(1, "b");
	struct sched_span span;

	(void)state;
	prime(0);
	prime(1);
	at(10);
	t = running(0, 0);
	at(20);
	k_blocks(&k, 0, POLL, a);
	at(22);
	k_preempts(&k, 1, b);
	at(30);
	k_wakeup(&k, t, 0);
	at(40);
	k_migrate(&k, t, 1);
	at(47);
	k_preempts(&k, 1, t);
	at(60);
	k_preempts(&k, 1, b); /* and again, now by preemption */
	at(63);
	k_migrate(&k, t, 0);
	at(70);
	k_blocks(&k, 0, 0, t);
	at(80);
	span = span_of(thread(t), 10, 80);
	assert_int_equal(span.nbehind, 2);
	assert_string_equal(span.behind[0].comm, "a");
	assert_int_equal(span.behind[0].ns, 10 + 7);
	assert_int_equal(span.behind[1].ns, 7 + 3);
	assert_int_equal(span.sums.migrations, 2);
	assert_int_equal(span.sums.runq_ns, 17 + 10);
	all_spans(t, thread(t), 80, 1);
}

/* A quota holds at the begin of a wait, whatever CPUs it is spread over. */
static void test_throttled(void **state)
{
	struct k_task *t, *x = hog(0, "burn");
	const struct k_out held = {.quota = true};

	(void)state;
	prime(0);
	prime(1);
	at(10);
	t = running(0, 0);
	at(20);
	k_switch(&k, 0, &held, x, 0);
	at(50);
	k_migrate(&k, t, 1);
	at(100);
	k_switch(&k, 1, &held, t, 45);
	at(110);
	k_switch(&k, 1, &held, NULL, 0);
	at(120);
	k_switch(&k, 1, &held, t, 1000); /* the group's, on several CPUs: no more than the wait */
	at(130);
	assert_int_equal(span_of(thread(t), 20, 50).sums.throttled_ns, 30);
	assert_int_equal(span_of(thread(t), 50, 60).sums.throttled_ns, 10);
	assert_int_equal(span_of(thread(t), 60, 110).sums.throttled_ns, 5);
	assert_int_equal(span_of(thread(t), 110, 130).sums.throttled_ns, 10);
	all_spans(t, thread(t), 130, 5);
}

/* A mark in a wait that goes on: what is told of the quota later never exceeds the wait. */
static void test_mark_in_wait(void **state)
{
	const struct k_out held = {.quota = true};
	struct sched_mark a, b, c;
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	at(20);
	k_switch(&k, 0, &held, NULL, 0);
	at(40);
	a = mark(thread(t), 15);
	b = mark(thread(t), 30);
	at(50);
	k_switch(&k, 0, &held, t, 28);
	c = mark(thread(t), 50);
	span = between(thread(t), &b, &c);
	assert_adds_up(&span);
	assert_int_equal(span.sums.runq_ns, 20);
	span = between(thread(t), &a, &c);
	assert_adds_up(&span);
	assert_int_equal(span.sums.runq_ns, 30);
	assert_int_equal(span.sums.throttled_ns, 28);
}

/*
 * The same where the wait is in two parts, with the mark in the second: the first is as it was
 * told.
 */
static void test_mark_in_second_wait(void **state)
{
	const struct k_out held = {.quota = true};
	struct sched_mark in, out, again;
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	at(20);
	k_switch(&k, 0, &held, NULL, 0);
	at(30);
	k_migrate(&k, t, 1);
	at(40);
	mark(thread(t), 35);
	at(50);
	k_switch(&k, 1, &held, t, 28);
	out = mark(thread(t), 50);
	in = mark(thread(t), 15);
	again = mark(thread(t), 50);
	assert_int_equal(again.sums.throttled_ns, out.sums.throttled_ns);
	span = between(thread(t), &in, &again);
	assert_adds_up(&span);
	assert_in_range(span.sums.throttled_ns, 20, 28);
}

/* Whatever a clock says: a thread's states follow each other. */
static void test_time_goes_back(void **state)
{
	struct sched_span span;
	struct k_task *t;
	uint64_t n;

	(void)state;
	at(100);
	t = running(0, 0);
	at(200);
	k_preempts(&k, 0, NULL);
	k.now_ns = 150;
	k_migrate(&k, t, 1);
	k.now_ns = 120;
	k_preempts(&k, 1, t);
	k.now_ns = 90;
	k_blocks(&k, 1, POLL, NULL);
	k.now_ns = 300;
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t);
	for (n = thread(t)->slices.first + 1; n < thread(t)->slices.end; n++)
		assert_true(thread(t)->slices.at[n].start_ns >=
			    thread(t)->slices.at[n - 1].start_ns);
	span = span_of(thread(t), 100, 300);
	assert_adds_up(&span);
	assert_int_equal(span.unknown_ns, 0);
}

/* The record `nr` of CPU 0's, with n interrupts of 2 ns at ts_ns, 4 ns later and so on; how many records were lost. */
static uint32_t irqs(uint32_t tid, uint64_t ts_ns, uint64_t nr, uint32_t n, uint64_t flags)
{
	struct scope_ev_irq e = {.h = {SCOPE_ABI, SCOPE_EV_IRQ,
				       (uint32_t)offsetof(struct scope_ev_irq, at[n]), ts_ns},
				 .tid = tid,
				 .fill = nr << 8 | flags | n};
	struct sched_thread *who;
	uint32_t i, missing;

	for (i = 0; i < n; i++)
		e.at[i] =
			(struct scope_irq){.after_ns = 4 * i, .dur_ns = 2, .vec = 3, .soft = i & 1};
	missing = sched__irq(&s, &e, &who);
	assert_ptr_equal(who, sched__find(&s, tid));
	return missing;
}

/* Several in a record; what came already, or is not the thread's, is none. */
static void test_irqs(void **state)
{
	struct sched_thread *t;
	struct sched_span span;

	(void)state;
	at(10);
	t = sched__find(&s, running(0, 0)->tid);
	assert_int_equal(irqs(t->tid, 2, 1, 1, 0), 0);	/* another had its number */
	assert_int_equal(irqs(t->tid, 20, 2, 2, 0), 0); /* a copy */
	assert_int_equal(irqs(t->tid, 20, 2, 3, SCOPE_IRQS_UNTOLD), 0);
	assert_int_equal(irqs(t->tid, 20, 2, 2, 0), 0);
	assert_int_equal(irqs(t->tid, 20, 2, 4, 0), 0); /* told */
	assert_int_equal(t->irqs.end, 4);
	at(50);
	k_blocks(&k, 0, POLL, NULL);
	span = span_of(t, 10, 50);
	assert_int_equal(span.sums.irq_ns, 8);
	assert_int_equal(span.sums.net_rx_ns, 4);
	assert_int_equal(span_of(t, 22, 28).sums.irq_ns, 2);
}

/* What the loader reads where it gathers may be older than what it has, and be read anew when nothing is left of it. */
static void test_irqs_untold(void **state)
{
	struct sched_thread *t;

	(void)state;
	at(10);
	t = sched__find(&s, running(0, 0)->tid);
	assert_int_equal(irqs(t->tid, 20, 2, 3, SCOPE_IRQS_UNTOLD), 0);
	assert_int_equal(irqs(t->tid, 60, 3, 1, 0), 0);
	assert_int_equal(irqs(t->tid, 20, 2, 2, SCOPE_IRQS_UNTOLD), 0);
	assert_int_equal(irqs(t->tid, 80, 5, 1, SCOPE_IRQS_UNTOLD), 0);
	assert_int_equal(irqs(t->tid, 70, 4, 2, 0), 1); /* overtaken */
	assert_int_equal(t->irqs.end, 5);
	at(100);
	k_blocks(&k, 0, POLL, NULL);
	sched_thread__prune(&s, t, 100, false);
	assert_int_equal(t->irqs.first, 5);
	assert_int_equal(irqs(t->tid, 80, 5, 1, 0), 0);
	assert_int_equal(t->irqs.end, 5);
	assert_int_equal(irqs(t->tid, 60, 6, 1, 0), 0); /* nothing is there to be before */
}

static void test_irqs_bad(void **state)
{
	struct scope_ev_irq e = {.h = {SCOPE_ABI, SCOPE_EV_IRQ, sizeof(e), 20},
				 .fill = 1 << 8 | 0x7f};
	struct sched_thread *who;

	(void)state;
	at(10);
	e.tid = running(0, 0)->tid;
	e.cpu = s.ncpus;
	assert_int_equal(sched__irq(&s, &e, &who), 0);
	assert_int_equal(who->irqs.end, 0);
	e.cpu = 0;
	assert_int_equal(sched__irq(&s, &e, &who), 0); /* 16 at a time, without a length */
	assert_int_equal(who->irqs.end, SCOPE_IRQS);
	e.tid++;
	e.fill = UINT64_MAX;
	assert_int_equal(sched__irq(&s, &e, &who), 0);
	assert_null(who);
}

static void test_irq(void **state)
{
	struct scope_ev_irq over = {
		.h = {SCOPE_ABI, SCOPE_EV_IRQ, offsetof(struct scope_ev_irq, at[1]), 35},
		.fill = 1000 << 8 | 1,
		.at = {{.dur_ns = 50}}};
	struct sched_thread *who;
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	at(30);
	k_irq(&k, 0, 25);
	at(40);
	k_irq(&k, 0, 30); /* at once after the other */
	over.tid = t->tid;
	sched__irq(&s, &over, &who); /* and one that cannot be */
	at(50);
	k_blocks(&k, 0, POLL, NULL);
	at(60);
	k_irq(&k, 0, 55); /* on top of nobody */
	assert_int_equal(span_of(thread(t), 10, 25).sums.irq_ns, 0);
	assert_int_equal(span_of(thread(t), 10, 26).sums.irq_ns, 5);
	assert_int_equal(span_of(thread(t), 30, 31).sums.irq_ns, 1); /* no more than it ran */
	assert_int_equal(span_of(thread(t), 0, 50).sums.irq_ns, 15);
	span = span_of(thread(t), 26, 50);
	assert_int_equal(span.sums.irq_ns, 10);
	all_spans(t, thread(t), 50, 1);
}

/* Its time is over, but what is asked of it later is there for who holds it. */
static void test_exit(void **state)
{
	struct sched_thread *of;
	struct k_task *t;

	(void)state;
	t = asleep();
	of = sched_thread__get(thread(t));
	at(30);
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t);
	at(45);
	k_exit(&k, 0, NULL);
	assert_null(sched__find(&s, t->tid));
	assert_true(of->gone);
	at(100);
	all_spans(t, of, 100, 5);
	assert_int_equal(span_of(of, 40, 60).unknown_ns, 15);
	sched_thread__put(&s, of);
	sched_thread__put(&s, NULL);
	assert_int_equal(s.nslices, 0);
}

/* A number comes again in another process, and the end of the first was lost. */
static void test_number_of_another(void **state)
{
	struct k_task *t, *u;
	struct sched_thread *of;

	(void)state;
	t = asleep();
	of = sched_thread__get(thread(t));
	u = k_task(&k, t->tid, JOB + 7, "other", true);
	u->start_ns = 77;
	at(50);
	k_wakeup(&k, u, 1);
	k_preempts(&k, 1, u);
	at(60);
	assert_ptr_not_equal(thread(u), of);
	assert_true(of->gone);
	assert_int_equal(thread(u)->tgid, JOB + 7);
	assert_int_equal(thread(u)->proc_start_ns, 77);
	assert_int_equal(span_of(thread(u), 0, 60).sums.on_cpu_ns, 10);
	assert_int_equal(lost, 0);
	sched_thread__put(&s, of);
}

/* Marks that go back, that repeat, that are older than what is known. */
static void test_marks_in_any_order(void **state)
{
	static const uint64_t order[] = {500, 20, 480, 0, 1000, 1000, 21, 999, 20, 500, 1, 333};
	struct sched_mark from, to, again;
	struct sched_span span;
	struct k_span want;
	struct k_task *t;
	size_t i, j;

	(void)state;
	at(20);
	t = running(0, 0);
	while (k.now_ns < 1000) {
		at(k.now_ns + 5);
		k_irq(&k, 0, k.now_ns - 2);
		k_preempts(&k, 0, NULL);
		at(k.now_ns + 5);
		k_preempts(&k, 0, t);
	}
	for (i = 0; i < sizeof(order) / sizeof(*order); i++) {
		for (j = 0; j < sizeof(order) / sizeof(*order); j++) {
			from = mark(thread(t), order[i]);
			to = mark(thread(t), order[j]);
			span = between(thread(t), &from, &to);
			if (order[j] < order[i]) {
				assert_int_equal(span.threads, 0);
				continue;
			}
			k_span(&k, t, order[i], order[j], &want);
			assert_exact(&span, &want);
			sched_thread__mark_after(thread(t), &from, order[j], &again);
			span = between(thread(t), &from, &again);
			assert_exact(&span, &want);
		}
	}
}

/*
 * The last state lasts on: a sleep, of which only the next record tells the end, while BPF says so.
 */
static void test_last(void **state)
{
	struct sched_mark from, now;
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	from = mark(thread(t), 15);
	at(20);
	k_blocks(&k, 0, POLL, NULL);
	assert_int_equal(sched_thread__last(thread(t))->state, SCHED_BLOCKED);
	assert_int_equal(sched_thread__last(thread(t))->why, POLL);
	at(1020);
	sched_thread__mark_after(thread(t), &from, 1020, &now);
	span = between(thread(t), &from, &now);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 5);
	assert_int_equal(span.unknown_ns, 1000);
	still(t);
	at(1200);
	sched_thread__mark_after(thread(t), &from, 1100, &now);
	span = between(thread(t), &from, &now);
	assert_adds_up(&span);
	assert_int_equal(span.sums.blocked_ns, 1000);
	assert_int_equal(span.blocked_in[0].ns, 1000);
	assert_int_equal(span.unknown_ns, 80);
	all_spans(t, thread(t), 1020, 60);
}

/*
 * A span that begins in a sleep while its end is not known: what is learned later is no more than
 * the span.
 */
static void test_mark_in_sleep(void **state)
{
	struct sched_mark from, to;
	struct sched_span span;
	struct k_task *t;

	(void)state;
	t = asleep();
	at(40);
	from = mark(thread(t), 30);
	at(50);
	k_wakeup(&k, t, 0);
	at(60);
	k_preempts(&k, 0, t);
	to = mark(thread(t), 70);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	assert_true(span.sums.blocked_ns <= 20);
	sched_thread__mark_after(thread(t), &from, 70, &to);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	sched_thread__mark_after(thread(t), &from, 30, &to);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
}

/* Woken, and not run yet: who asks BPF knows, and the record to come changes nothing. */
static void test_woken(void **state)
{
	struct k_task *t, *x = hog(0, "burn");
	struct sched_span span;

	(void)state;
	at(10);
	t = running(0, 0);
	at(20);
	k_blocks(&k, 0, POLL, x);
	at(50);
	k_wakeup(&k, t, 0);
	at(70);
	span = span_of(thread(t), 10, 70);
	assert_int_equal(span.sums.blocked_ns, 0);
	still(t);
	still(t);
	assert_int_equal(sched_thread__last(thread(t))->state, SCHED_RUNQ);
	span = span_of(thread(t), 10, 70);
	assert_adds_up(&span);
	assert_int_equal(span.sums.blocked_ns, 30);
	assert_int_equal(span.sums.runq_ns, 20);
	at(80);
	k_migrate(&k, t, 1);
	at(90);
	k_preempts(&k, 1, t);
	assert_int_equal(lost, 0);
	all_spans(t, thread(t), 90, 5);
}

/* What BPF says after records that did not come through is not of this sleep. */
static void test_woken_after_loss(void **state)
{
	struct sched_span span;
	struct k_task *t;

	(void)state;
	t = asleep();
	at(50);
	k_wakeup(&k, t, 0);
	drop = 2;
	k_preempts(&k, 0, t);
	at(60);
	k_blocks(&k, 0, FUTEX, NULL);
	at(100);
	still(t);
	at(150);
	k_wakeup(&k, t, 0);
	still(t);
	at(160);
	k_preempts(&k, 0, t);
	span = span_of(thread(t), 10, 160);
	assert_adds_up(&span);
	assert_true(span.sums.blocked_ns <= 30 + 90);
	assert_int_equal(span.sums.runq_ns, 10);
	assert_int_equal(lost, 2);
}

/* ---- Several in a record -------------------------------------------------------------------- */

static struct scope_ev_switches several_kept[8];
static uint32_t nkept;

static bool keep(struct kernel *from, const void *rec)
{
	const struct scope_ev_short *h = rec;

	if (h->kind != SCOPE_EV_SWITCHES)
		return feed(from, rec);
	several_kept[nkept] = (struct scope_ev_switches){0};
	memcpy(&several_kept[nkept++], rec, h->size);
	return true;
}

/* Two threads take turns: 40 switches, of which 16 each are a record. */
static struct k_task *turns(struct k_task **b)
{
	struct k_task *a;
	uint32_t i;

	prime(0);
	nkept = 0;
	k.gathers = true;
	k.ring = keep;
	at(10);
	a = running(0, 0);
	*b = job_thread(1);
	k_wakeup(&k, *b, 0);
	for (i = 0; i < 20; i++) {
		at(k.now_ns + 7);
		k_preempts(&k, 0, *b);
		at(k.now_ns + 3);
		k_preempts(&k, 0, a);
	}
	k_look(&k);
	return a;
}

static void test_several(void **state)
{
	struct k_task *b, *a = turns(&b);
	uint32_t i;

	(void)state;
	assert_int_equal(nkept, 3);
	for (i = 0; i < nkept; i++)
		feed_several(&several_kept[i]);
	all_spans(a, thread(a), 200, 1);
	all_spans(b, thread(b), 200, 1);
	assert_int_equal(lost, 0);
	assert_string_equal(span_of(thread(b), 20, 200).behind[0].comm, "job");
}

/* A copy of what came comes again, with more or without; and later. */
static void test_several_again(void **state)
{
	struct k_task *b, *a = turns(&b);
	struct scope_ev_switches part;
	uint32_t i;

	(void)state;
	for (i = 0; i < nkept; i++) {
		part = several_kept[i];
		part.h.size = SCOPE_SWITCHES_SIZE(3);
		feed_several(&part);
		feed_several(&part);
		feed_several(&several_kept[i]);
		feed_several(&several_kept[i]);
		feed_several(&several_kept[0]);
	}
	all_spans(a, thread(a), 200, 1);
	all_spans(b, thread(b), 200, 1);
	assert_int_equal(lost, 0);
}

static void test_several_lost(void **state)
{
	struct k_task *b, *a = turns(&b);
	struct sched_span span;

	(void)state;
	feed_several(&several_kept[0]);
	feed_several(&several_kept[2]);
	assert_int_equal(lost, 2 * SCOPE_SWITCHES); /* of both threads */
	span = span_of(thread(a), 10, 200);
	assert_adds_up(&span);
	assert_true(span.unknown_ns >= 16 * 5 - 10 && span.unknown_ns <= 16 * 5 + 10);
	span = span_of(thread(b), 20, 200);
	assert_adds_up(&span);
	assert_true(span.unknown_ns >= 16 * 5 - 10);
}

/* Nothing that it may say is more than strange. */
static void test_several_bad(void **state)
{
	static const uint32_t cpus[] = {0, 3, 4, 1024, INT32_MAX, UINT32_MAX};
	struct scope_ev_switches e;
	uint32_t i, j;

	(void)state;
	for (i = 0; i < 6; i++) {
		memset(&e, 0xff, sizeof(e));
		e.h.size = SCOPE_SWITCHES_SIZE(SCOPE_SWITCHES);
		e.cpu = cpus[i];
		e.cpu_seq = i * 0x30000000u;
		for (j = 0; j < SCOPE_SWITCHES; j++) {
			e.at[j].ts_ns = j % 2 ? UINT64_MAX - j : j;
			e.at[j].prev_tid = j;
			e.at[j].next_tid = j + 1;
		}
		feed_several(&e);
		span_of(sched__find(&s, 3), 0, 1000);
	}
}

/* The name that a thread has now is told before it stands for it. */
static void test_several_renamed(void **state)
{
	struct k_task *b, *a = turns(&b);
	struct scope_ev_switch e = {
		.h = {SCOPE_ABI, SCOPE_EV_SWITCH, sizeof(e), 300},
		.cpu_seq = several_kept[2].cpu_seq + SCOPE_SWITCHES_N(several_kept[2].h.size),
		.flags = SCOPE_SWITCH_PREV,
		.prev_tid = a->tid,
		.prev_comm = "renamed",
	};
	struct scope_ev_switch nth;
	struct sched_thread *who;
	uint32_t i;

	(void)state;
	for (i = 0; i < nkept; i++)
		feed_several(&several_kept[i]);
	e.prev_seq = thread(a)->seq + 1;
	sched__switch(&s, &e, &who);
	several_kept[0].cpu_seq = e.cpu_seq + 1;
	several_kept[0].at[0].prev_tid = a->tid;
	several_kept[0].at[0].flags = SCOPE_SWITCH_PREV;
	assert_true(sched__nth_switch(&s, &several_kept[0], 0, &nth));
	assert_string_equal(nth.prev_comm, "renamed");
	assert_int_equal(nth.prev_tgid, JOB);
}

/* CPUs beyond those that there are: nobody is blamed, nothing is written where it must not. */
static void test_cpu_numbers(void **state)
{
	struct scope_ev_switch e = {
		.h = {SCOPE_ABI, SCOPE_EV_SWITCH, sizeof(e), 100},
		.flags = SCOPE_SWITCH_PREV | SCOPE_SWITCH_NEXT | SCOPE_SWITCH_WATCHED,
		.prev_tid = 1,
		.prev_seq = 1,
		.prev_state = SCOPE_TASK_WAIT,
		.next_tid = 2,
		.next_seq = 1,
		.wait_ns = 50,
	};
	struct scope_ev_migrate m = {
		.h = {SCOPE_ABI, SCOPE_EV_MIGRATE, sizeof(m), 200}, .tid = 1, .seq = 2};
	static const uint32_t cpus[] = {4, 63, 64, 1023, 1024, 8191, INT32_MAX, UINT32_MAX};
	struct sched_thread *who;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cpus) / sizeof(*cpus); i++) {
		e.cpu = m.from = cpus[i];
		m.to = cpus[sizeof(cpus) / sizeof(*cpus) - 1 - i];
		sched__switch(&s, &e, &who);
		sched__migrate(&s, &m, &who);
		e.prev_seq += 2;
		e.next_seq++;
		m.seq += 2;
		e.h.ts_ns += 200;
		m.h.ts_ns += 200;
		span_of(sched__find(&s, 1), 0, e.h.ts_ns);
		span_of(sched__find(&s, 2), 0, e.h.ts_ns);
	}
	assert_null(sched__find(&s, 3));
}

static void test_span_add(void **state)
{
	struct sched_span a, b, none;
	uint32_t i;

	(void)state;
	sched_span__clear(&none);
	sched_span__clear(&a);
	sched_span__clear(&b);
	a.threads = 1;
	a.span_ns = 100;
	a.unknown_ns = 10;
	a.sums.on_cpu_ns = 50;
	a.sums.runq_ns = 40;
	a.sums.switches = 3;
	a.nbehind = 4;
	for (i = 0; i < 4; i++) {
		a.behind[i].tgid = i + 1;
		snprintf(a.behind[i].comm, sizeof(a.behind[i].comm), "p%u", i + 1);
		a.behind[i].ns = 10 - i;
	}
	a.ncpus = 2;
	a.cpus[0] = 1;
	a.cpus[1] = 5;
	b = a;
	b.behind[0].ns = 1;
	b.behind[3].ns = 20;
	b.cpus[1] = 2;
	sched_span__add(&none, &a);
	assert_memory_equal(&none, &a, sizeof(a));
	sched_span__add(&a, &b);
	assert_int_equal(a.threads, 2);
	assert_int_equal(a.span_ns, 200);
	assert_int_equal(a.sums.on_cpu_ns, 100);
	assert_int_equal(a.sums.switches, 6);
	assert_int_equal(a.ncpus, 3); /* in order, each once */
	assert_int_equal(a.cpus[0], 1);
	assert_int_equal(a.cpus[1], 2);
	assert_int_equal(a.cpus[2], 5);
	assert_int_equal(a.nbehind, 4);
	assert_int_equal(a.behind[0].tgid, 4);
	assert_int_equal(a.behind[0].ns, 27);
	assert_int_equal(a.behind[1].ns, 18);
	assert_int_equal(a.behind[3].tgid, 1);
	assert_adds_up(&a);
}

/* What is summed up while a job runs for days has more than 32 bits. */
static void test_for_days(void **state)
{
	struct sched_span sum = {0}, one = {.threads = 1, .span_ns = 10, .unknown_ns = 10};
	struct k_task *t, *x = hog(0, "burn");
	struct sched_mark mark;

	(void)state;
	prime(0);
	at(100);
	t = running(0, 0);
	at(200);
	k_preempts(&k, 0, x);
	at(300);
	k_preempts(&k, 0, t);
	/* 20,000 a second, for two days and a half */
	sched_thread__mark(thread(t), 300, &mark);
	thread(t)->cursor.sums.switches = thread(t)->cursor.sums.preemptions = UINT32_MAX;
	at(400);
	k_preempts(&k, 0, x);
	at(500);
	sched_thread__mark(thread(t), 500, &mark);
	assert_int_equal(mark.sums.switches, UINT32_MAX + 1ULL);
	assert_int_equal(mark.sums.preemptions, UINT32_MAX + 1ULL);
	/* A thousand operations a second, for fifty: the sum of all goes on. */
	sum = one;
	sum.threads = UINT32_MAX;
	sum.span_ns = sum.unknown_ns = 1ULL << 50;
	sched_span__add(&sum, &one);
	sched_span__add(&sum, &one);
	assert_int_equal(sum.span_ns, (1ULL << 50) + 20);
	assert_int_equal(sum.threads, UINT32_MAX + 2ULL);
}

/* One that is there all the time, but never for long, behind others that are each there once. */
static void test_steady_culprit(void **state)
{
	struct k_task *x = hog(0, "steady"), *others[40], *t;
	struct sched_span span;
	uint32_t i;

	(void)state;
	prime(0);
	at(10);
	t = running(0, 0);
	at(20);
	for (i = 0; i < 40; i++)
		others[i] = hog(1 + i, "other");
	for (i = 0; i < 40; i++) {
		k_preempts(&k, 0, others[i]);
		at(k.now_ns + 20);
	}
	for (i = 0; i < 40; i++) { /* x runs 10 of every 11 */
		k_preempts(&k, 0, x);
		at(k.now_ns + 10);
		k_preempts(&k, 0, others[i]);
		at(k.now_ns + 1);
	}
	k_preempts(&k, 0, t);
	span = span_of(thread(t), 10, k.now_ns);
	assert_adds_up(&span);
	assert_string_equal(span.behind[0].comm, "steady");
	assert_true(span.behind[0].ns > 200);
}

/* The first wait for a CPU that is seen at all has its culprit too. */
static void test_first_wait_of_cpu(void **state)
{
	struct k_task *t = job_thread(0), *x = hog(0, "burn");
	struct sched_span span;

	(void)state;
	k_preempts(&k, 0, x); /* nobody waits: no record */
	at(100);
	k_wakeup(&k, t, 0);
	at(150);
	k_preempts(&k, 0, t);
	at(200);
	span = span_of(thread(t), 100, 200);
	assert_int_equal(span.sums.runq_ns, 50);
	assert_int_equal(span.nbehind, 1);
	assert_int_equal(span.behind[0].ns, 50);
}

/* ---- Lost records ---------------------------------------------------------------------------- */

/* A whole round trip is missing: unknown from where it was last seen, known again from then on. */
static void test_gap(void **state)
{
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	at(20);
	seen(t);
	at(30);
	drop = 1;
	k_blocks(&k, 0, POLL, NULL);
	at(40);
	k_wakeup(&k, t, 0);
	at(45);
	k_preempts(&k, 0, t);
	assert_int_equal(lost, 1);
	span = span_of(thread(t), 10, 45);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10); /* as seen */
	assert_int_equal(span.sums.runq_ns, 5);	   /* as told when it ran again */
	assert_int_equal(span.unknown_ns, 20);
	at(60);
	drop = 1;
	k_blocks(&k, 0, POLL, NULL);
	at(70);
	k_wakeup(&k, t, 1);
	drop = 1;
	k_preempts(&k, 1, t);
	at(80);
	assert_int_equal(seen(t), 2);
	at(90);
	assert_int_equal(seen(t), 0);
	assert_int_equal(lost, 3);
	span = span_of(thread(t), 45, 90);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10);
	assert_int_equal(span.unknown_ns, 35);
	at(95);
	k_exit(&k, 1, NULL);
	assert_int_equal(lost, 3);
}

/* The end tells what was lost before it. */
static void test_gap_at_exit(void **state)
{
	struct sched_thread *of;
	struct sched_span span;
	struct k_task *t;

	(void)state;
	t = asleep();
	of = sched_thread__get(thread(t));
	at(30);
	k_wakeup(&k, t, 0);
	drop_after = true;
	k_preempts(&k, 0, t);
	at(40);
	k_exit(&k, 0, NULL);
	assert_int_equal(lost, 1);
	span = span_of(of, 10, 50);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10);
	assert_int_equal(span.unknown_ns, 30);
	sched_thread__put(&s, of);
}

/* Its introduction is lost: its states count all the same, and whose it is comes later. */
static void test_introduction_lost(void **state)
{
	struct k_task *t = job_thread(0);
	struct sched_span span;

	(void)state;
	at(10);
	drop = 1;
	k_wakeup(&k, t, 0);
	at(20);
	drop = 2;
	k_preempts(&k, 0, t); /* neither this */
	assert_null(sched__find(&s, t->tid));
	at(30);
	drop = 1;
	k_blocks(&k, 0, FUTEX, NULL); /* told again, in vain */
	assert_int_equal(thread(t)->proc_start_ns, 0);
	assert_int_equal(thread(t)->since_ns, 30);
	at(40);
	k_wakeup(&k, t, 1);
	assert_int_equal(thread(t)->proc_start_ns, t->start_ns);
	assert_string_equal(thread(t)->comm, "job");
	at(50);
	k_preempts(&k, 1, t);
	at(60);
	span = span_of(thread(t), 0, 60);
	assert_adds_up(&span);
	assert_int_equal(span.unknown_ns, 30);
	assert_int_equal(span.sums.blocked_ns, 10);
	assert_int_equal(span.sums.runq_ns, 10);
	assert_int_equal(span.sums.migrations, 1);
	assert_int_equal(lost, 0);
}

/* A switch record is lost that was none of the thread's: nobody is blamed for that time. */
static void test_gap_of_cpu(void **state)
{
	struct k_task *t, *a = hog(0, "a"), *b = hog(1, "b");
	struct sched_span span;

	(void)state;
	prime(0);
	at(10);
	t = running(0, 0);
	at(20);
	k_preempts(&k, 0, a);
	at(30);
	drop = 1;
	k_preempts(&k, 0, b);
	at(40);
	k_preempts(&k, 0, a);
	at(45);
	k_preempts(&k, 0, t);
	span = span_of(thread(t), 10, 45);
	assert_adds_up(&span);
	assert_int_equal(span.sums.runq_ns, 25);
	assert_int_equal(span.nbehind, 1);
	assert_string_equal(span.behind[0].comm, "a");
	assert_int_equal(span.behind[0].ns, 5);
	assert_int_equal(lost, 0); /* of the thread */
}

/*
 * The kernel has skipped the program when a thread got its CPU: it shows when it leaves it again. It ran since what that
 * CPU told last, or later; and does not wait any more.
 */
static void test_switch_untold(void **state)
{
	struct k_task *t, *a = hog(0, "a"), *b = hog(1, "b");
	struct sched_span span;

	(void)state;
	prime(0);
	at(10);
	t = running(0, 0);
	at(20);
	k_preempts(&k, 0, a);
	at(25);
	k_preempts(&k, 0, b);
	at(30);
	k_preempts_untold(&k, 0, t);
	at(50);
	k_preempts(&k, 0, a);
	assert_int_equal(k.cpus[0].waiters, 1);
	at(60);
	k_preempts(&k, 0, t);
	assert_int_equal(k.cpus[0].waiters, 0);
	span = span_of(thread(t), 10, 60);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10);
	assert_int_equal(span.sums.runq_ns, 15);
	assert_int_equal(span.unknown_ns, 25);
	assert_int_equal(lost, 0);
}

/* It shows before that in what the thread hands in: it runs, and is unknown only from when it was last told of. */
static void test_switch_untold_seen(void **state)
{
	struct k_task *t, *a = hog(0, "a");
	struct sched_span span;
	uint32_t i;

	(void)state;
	prime(0);
	at(10);
	t = running(0, 0);
	at(20);
	k_blocks(&k, 0, POLL, a);
	at(30);
	k_wakeup(&k, t, 0);
	at(40);
	k_preempts_untold(&k, 0, t);
	for (i = 1; i <= 100; i++) {
		at(40 + 10 * i);
		seen(t);
		span = span_of(thread(t), 20, k.now_ns);
		assert_adds_up(&span);
		assert_int_equal(span.sums.on_cpu_ns, 10 * (i - 1));
		assert_int_equal(span.sums.blocked_ns, 0);
		assert_int_equal(span.unknown_ns, 30);
	}
	at(1050);
	k_preempts(&k, 0, a);
	span = span_of(thread(t), 10, 1050);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10 + 1000);
	assert_int_equal(span.sums.blocked_ns, 0);
	assert_int_equal(span.unknown_ns, 30);
	/* The same of one that waits: who ran meanwhile is not to blame. */
	at(1060);
	k_preempts_untold(&k, 0, t);
	at(1070);
	seen(t);
	at(1080);
	k_blocks(&k, 0, POLL, a);
	span = span_of(thread(t), 1050, 1080);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10);
	assert_int_equal(span.sums.runq_ns, 0);
	assert_int_equal(span.nbehind, 0);
	assert_int_equal(lost, 0);
}

/* What it was told to sleep in stays: from then on it is unknown. */
static void test_switch_untold_asleep(void **state)
{
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	at(20);
	k_blocks(&k, 0, POLL, NULL);
	at(50);
	sched__still(&s, thread(t), thread(t)->seq, 0, 0, 50);
	at(60);
	k_preempts_untold(&k, 0, t);
	at(80);
	seen(t);
	at(90);
	k_preempts(&k, 0, NULL);
	span = span_of(thread(t), 20, 90);
	assert_adds_up(&span);
	assert_int_equal(span.sums.blocked_ns, 30);
	assert_int_equal(span.unknown_ns, 30);
	assert_int_equal(span.sums.on_cpu_ns, 10);
	assert_int_equal(lost, 0);
}

/*
 * Where it waited is lost with the record of its move; who ran all that time on the CPU that it
 * came to is not to blame.
 */
static void test_gap_of_move(void **state)
{
	struct k_task *t, *x = hog(0, "burn");
	struct sched_span span;
	uint32_t i;

	(void)state;
	prime(0);
	prime(1);
	at(10);
	t = running(0, 1);
	at(20);
	k_blocks(&k, 1, POLL, NULL);
	at(100);
	k_preempts(&k, 0, x);
	k_wakeup(&k, t, 1);
	at(900);
	drop = 1;
	k_migrate(&k, t, 0);
	at(1000);
	k_preempts(&k, 0, t);
	assert_int_equal(lost, 1);
	span = span_of(thread(t), 10, 1000);
	assert_adds_up(&span);
	assert_int_equal(span.sums.runq_ns, 900);
	for (i = 0; i < span.nbehind; i++)
		assert_true(span.behind[i].ns <= 100);
}

/* What a quota held back in a wait is not counted to one long over. */
static void test_gap_and_quota(void **state)
{
	const struct k_out held = {.quota = true};
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	at(20);
	k_switch(&k, 0, &held, NULL, 0);
	at(120);
	k_switch(&k, 0, &held, t, 0); /* it was not, after all */
	at(130);
	drop = 1;
	k_switch(&k, 0, &held, NULL, 0);
	at(140);
	k_migrate(&k, t, 1);
	at(170);
	k_switch(&k, 1, &held, t, 35);
	span = span_of(thread(t), 10, 125);
	assert_adds_up(&span);
	assert_int_equal(span.sums.throttled_ns, 0);
	span = span_of(thread(t), 125, 170);
	assert_adds_up(&span);
	assert_true(span.sums.throttled_ns >= 25);
}

/* A chunk that was filled before a switch, but comes after its record, says nothing. */
static void test_old_chunk(void **state)
{
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	seen(t);
	at(20);
	k_preempts(&k, 0, NULL);
	at(30);
	k_preempts(&k, 0, t);
	at(40);
	assert_int_equal(sched__seen(&s, thread(t), 1, 15), 0);
	assert_int_equal(sched__seen(&s, thread(t), 2, 25), 0);
	k_preempts(&k, 0, NULL);
	assert_int_equal(lost, 0);
	all_spans(t, thread(t), 40, 5);
}

/* Two CPUs tell of a thread at the same time: it is one thread. */
static void test_told_twice(void **state)
{
	struct sched_thread *of;
	struct k_task *t;

	(void)state;
	at(10);
	t = job_thread(0);
	t->state = SCOPE_TASK_RUN;
	k.cpus[0].curr = t;
	seen(t);
	of = thread(t);
	at(20);
	k_tell(&k, t);
	assert_ptr_equal(thread(t), of);
	at(30);
	k_preempts(&k, 0, NULL);
	all_spans(t, thread(t), 30, 5);
}

/* A number comes again within the process, and the first thread's end was lost. */
static void test_number_again(void **state)
{
	struct sched_span span;
	struct k_task *t, *u;

	(void)state;
	at(10);
	t = running(0, 0);
	at(20);
	seen(t); /* ... and ends, which nobody hears of */
	k.cpus[0].curr = NULL;
	at(1000);
	u = job_thread(0);
	k_fork(&k, u);
	at(1010);
	k_wakeup(&k, u, 0);
	at(1020);
	k_preempts(&k, 0, u);
	at(1030);
	k_blocks(&k, 0, POLL, NULL);
	span = span_of(thread(u), 100, 1030);
	assert_adds_up(&span);
	assert_true(span.sums.on_cpu_ns <= 10);
	assert_true(span.sums.blocked_ns <= 10);
	assert_int_equal(lost, 0);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static uint64_t held(const struct sched_thread *t)
{
	return t->slices.end - t->slices.first;
}

/* n times on and off the CPU, 10 ns each. */
static void ping_pong(struct k_task *t, uint32_t n)
{
	while (n--) {
		at(k.now_ns + 10);
		k_irq(&k, 0, k.now_ns - 3);
		k_preempts(&k, 0, NULL);
		at(k.now_ns + 10);
		k_preempts(&k, 0, t);
		t->nstays = t->nirqs = 0; /* the truth would fill the memory */
		k.cpus[0].nruns = 0;
		t->wait = K_NO_CPU;
	}
}

static void assert_near(uint64_t is, uint64_t want, uint64_t by)
{
	assert_in_range(is, less(want, by), want + by);
}

/* More slices than are kept: scalars stay exact, from any mark that was set before. */
static void test_more_than_kept(void **state)
{
	uint32_t n = 2 * SCHED_SLICES_MAX, half = n / 2;
	struct sched_mark from, middle, to;
	struct sched_span span;
	struct k_task *t;
	uint64_t t0, t1;

	(void)state;
	at(10);
	t = running(0, 0);
	t0 = k.now_ns;
	from = mark(thread(t), t0);
	ping_pong(t, half);
	t1 = k.now_ns;
	middle = mark(thread(t), t1);
	ping_pong(t, n - half);
	assert_int_equal(held(thread(t)), SCHED_SLICES_MAX);
	assert_int_equal(thread(t)->slices.size, SCHED_SLICES_MAX);
	assert_true(thread(t)->irqs.size <= SCHED_SLICES_MAX);
	assert_int_equal(s.nslices, SCHED_SLICES_MAX);
	to = mark(thread(t), k.now_ns);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10ull * n);
	assert_int_equal(span.sums.runq_ns, 10ull * n);
	assert_int_equal(span.sums.irq_ns, 3ull * n);
	assert_int_equal(span.sums.switches, n);
	assert_int_equal(span.sums.preemptions, n);
	span = between(thread(t), &from, &middle);
	assert_int_equal(span.sums.on_cpu_ns, 10ull * half);
	sched_thread__mark_after(thread(t), &from, k.now_ns, &to);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 10ull * n);
	assert_int_equal(span.sums.irq_ns, 3ull * n);
}

/* A mark at a time that is forgotten: it adds up, and nothing of it is unknown. */
static void test_mark_of_the_forgotten(void **state)
{
	struct sched_mark from, to, after;
	struct sched_span span;
	struct k_task *t;
	uint64_t t0;

	(void)state;
	at(10);
	t = running(0, 0);
	ping_pong(t, 10);
	t0 = k.now_ns;
	from = mark(thread(t), t0 - 5);
	ping_pong(t, 2 * SCHED_SLICES_MAX);
	to = mark(thread(t), t0 + 100);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	sched_thread__mark_after(thread(t), &from, t0 + 100, &after);
	span = between(thread(t), &from, &after);
	assert_adds_up(&span);
	from = mark(thread(t), t0 + 200);
	after = mark(thread(t), k.now_ns);
	span = between(thread(t), &from, &after);
	assert_adds_up(&span);
}

/* Two marks at times that are forgotten, of which more is forgotten at the second. */
static void test_marks_of_the_forgotten(void **state)
{
	struct sched_mark from, to;
	struct sched_span span;
	struct k_task *t;
	uint64_t t0;

	(void)state;
	at(10);
	t = running(0, 0);
	ping_pong(t, 10);
	t0 = k.now_ns;
	ping_pong(t, SCHED_SLICES_MAX);
	from = mark(thread(t), t0);
	ping_pong(t, SCHED_SLICES_MAX);
	to = mark(thread(t), t0 + 100);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	assert_near(span.sums.on_cpu_ns, 50, 10);
	sched_thread__mark_after(thread(t), &from, t0 + 100, &to);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	assert_near(span.sums.on_cpu_ns, 50, 10);
}

/* Both marks of a span are set when their slices are gone, as those of a thread that polls: the sums are there, to a step. */
static void test_marks_too_late(void **state)
{
	uint64_t n = 4 * SCHED_SLICES_MAX, t0, len = 20 * n / 4;
	struct sched_span span;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	t0 = k.now_ns;
	ping_pong(t, (uint32_t)n);
	span = span_of(thread(t), t0 + len / 3, t0 + len / 3 + len);
	assert_adds_up(&span);
	assert_int_equal(span.unknown_ns, 0);
	assert_near(span.sums.on_cpu_ns, len / 2, 20);
	assert_near(span.sums.irq_ns, 3 * len / 20, 10);
	assert_near(span.sums.switches, len / 20, 2);
	assert_near(span.sums.preemptions, len / 20, 2);
	assert_int_equal(span.nbehind + span.nblocked_in, 0);
	/* The end is not forgotten: from there on all is exact. */
	span = span_of(thread(t), t0 + len / 3, k.now_ns);
	assert_int_equal(span.unknown_ns, 0);
	assert_near(span.sums.on_cpu_ns, (k.now_ns - t0 - len / 3) / 2, 20);
	assert_near(span.sums.irq_ns, 3 * (k.now_ns - t0 - len / 3) / 20, 10);
	/* As for the thread as a whole. */
	span = span_of(thread(t), t0, k.now_ns);
	assert_int_equal(span.sums.on_cpu_ns, 10 * n);
	assert_int_equal(span.sums.irq_ns, 3 * n);
	assert_int_equal(span.sums.switches, n);
}

/* A long sleep amid what is forgotten keeps its begin and its end. */
static void test_forgotten_sleep(void **state)
{
	const uint64_t len = 100 * SCHED_PAST_STEP_NS;
	struct sched_mark from, to;
	struct sched_span span;
	struct k_task *t;
	uint64_t t0;

	(void)state;
	at(10);
	t = running(0, 0);
	ping_pong(t, 2 * SCHED_SLICES_MAX);
	at(k.now_ns + 10);
	t0 = k.now_ns;
	k_blocks(&k, 0, POLL, NULL);
	at(t0 + len);
	k_wakeup(&k, t, 0);
	k_preempts(&k, 0, t);
	ping_pong(t, 2 * SCHED_SLICES_MAX);
	span = span_of(thread(t), t0 + len / 4, t0 + len / 2);
	assert_adds_up(&span);
	assert_int_equal(span.sums.blocked_ns, len / 4);
	assert_int_equal(span.sums.switches, 0);
	span = span_of(thread(t), t0 - 1000000, t0 + len + 1000000);
	assert_adds_up(&span);
	assert_int_equal(span.sums.blocked_ns, len);
	assert_near(span.sums.on_cpu_ns, 1000000, 20);
	/* One in time, and the other from it. */
	from = mark(thread(t), k.now_ns - 50);
	sched_thread__mark_after(thread(t), &from, t0, &to);
	assert_int_equal(to.sums.blocked_ns, 0);
	sched_thread__mark_after(thread(t), &from, t0 + len, &to);
	assert_int_equal(to.sums.blocked_ns, len);
}

/* n turns of step_ns, half on the CPU. */
static void turns_of(struct k_task *t, uint32_t n, uint64_t step_ns)
{
	while (n--) {
		at(k.now_ns + step_ns / 2);
		k_preempts(&k, 0, NULL);
		at(k.now_ns + step_ns / 2);
		k_preempts(&k, 0, t);
		t->nstays = 0;
		k.cpus[0].nruns = 0;
		t->wait = K_NO_CPU;
	}
}

/* More points than are kept: all of the time has some, and the thread's sums add up wherever they are asked for. */
static void past_thinned_out(uint32_t most)
{
	const uint64_t step = 2 * SCHED_PAST_STEP_NS + 2, n = 8 * SCHED_PAST_MAX, all = n * step;
	struct sched_span span;
	struct sched_past *p;
	struct k_task *t;
	uint64_t t0, i;

	at(10);
	t = running(0, 0);
	t0 = k.now_ns;
	turns_of(t, (uint32_t)n, step);
	ping_pong(t, 2 * SCHED_SLICES_MAX);
	p = &thread(t)->past;
	assert_true(p->end - p->first <= most && p->end - p->first >= most / 4);
	assert_int_equal(p->size, most);
	for (i = 0; i < 10; i++) {
		span = span_of(thread(t), t0 + i * all / 12, t0 + (i + 2) * all / 12);
		assert_adds_up(&span);
		assert_int_equal(span.unknown_ns, 0);
		assert_near(span.sums.on_cpu_ns, all / 12, 16 * all / most);
	}
	span = span_of(thread(t), t0, k.now_ns);
	assert_int_equal(span.sums.on_cpu_ns, (k.now_ns - t0) / 2);
	assert_int_equal(span.sums.switches, n + 2 * SCHED_SLICES_MAX);
}

static void test_past_thinned_out(void **state)
{
	(void)state;
	past_thinned_out(SCHED_PAST_MAX);
}

/* Others have taken all the memory: fewer points, and all there is goes back. */
static void test_past_without_room(void **state)
{
	(void)state;
	s.room_max = 1;
	past_thinned_out(64);
}

/* It is kept for as long as it may be asked for; what was taken for it goes back, and then points are near again. */
static void test_prune_past(void **state)
{
	struct sched_past *p;
	struct k_task *t;
	uint64_t t0, room;

	(void)state;
	at(10);
	t = running(0, 0);
	turns_of(t, 8 * SCHED_PAST_MAX, 2 * SCHED_PAST_STEP_NS + 2);
	ping_pong(t, 2 * SCHED_SLICES_MAX);
	p = &thread(t)->past;
	t0 = p->at[(p->first + 10) & (p->size - 1)].ns;
	sched_thread__prune(&s, thread(t), t0 + 1, false);
	assert_int_equal(p->at[p->first & (p->size - 1)].ns, t0);
	assert_true(p->step_ns > SCHED_PAST_STEP_NS);
	room = s.room;
	sched_thread__prune(&s, thread(t), k.now_ns, false);
	assert_int_equal(p->end - p->first, 0);
	assert_true(s.room < room);
	t0 = k.now_ns;
	ping_pong(t, 2 * SCHED_SLICES_MAX);
	assert_int_equal(p->step_ns, SCHED_PAST_STEP_NS);
	assert_near(span_of(thread(t), t0 + 5000, t0 + 105000).sums.on_cpu_ns, 50000, 20);
	k_exit(&k, 0, NULL);
	assert_int_equal(s.room, s.cpus[0].size * sizeof(*s.cpus[0].at));
}

/* Who ran on a CPU is kept for shorter, for so many runs: nobody is blamed for what is forgotten. */
static void behind_the_forgotten(uint32_t kept)
{
	struct k_task *t, *x = hog(0, "first"), *a = hog(1, "a"), *b = hog(2, "b");
	struct sched_mark from, to;
	struct sched_span span;
	uint32_t i;

	prime(0);
	at(10);
	t = running(0, 0);
	from = mark(thread(t), 10);
	at(20);
	k_preempts(&k, 0, x);
	at(1000000);
	for (i = 0; i < 2 * kept; i++) {
		k_preempts(&k, 0, i % 2 ? a : b);
		at(k.now_ns + 10);
	}
	k_preempts(&k, 0, t);
	to = mark(thread(t), k.now_ns);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	for (i = 0; i < span.nbehind; i++)
		if (*span.behind[i].comm != 'f')
			assert_true(span.behind[i].ns <= 10 * kept);
}

static void test_behind_the_forgotten(void **state)
{
	(void)state;
	behind_the_forgotten(SCHED_RUNS_MAX);
}

/* Other threads' time has taken all the memory that there is for that: as few are kept as there are places now. */
static void test_behind_the_forgotten_early(void **state)
{
	(void)state;
	s.room_max = 1;
	behind_the_forgotten(64);
}

/* Many short waits: who ran in them is known when who else ran on the CPU is long forgotten. */
static void test_waits_outlast_runs(void **state)
{
	struct k_task *t, *x = hog(0, "burn");
	uint64_t t0, end, irq;
	const struct sched_slice *slice;
	struct sched_span span;
	uint32_t i, n = SCHED_RUNS_MAX, waits = 0;

	(void)state;
	prime(0);
	at(10);
	t = running(0, 0);
	t0 = k.now_ns;
	for (i = 0; i < n; i++) {
		k_preempts(&k, 0, x);
		at(k.now_ns + 10);
		k_preempts(&k, 0, t);
		at(k.now_ns + 10);
		t->nstays = 0;
		k.cpus[0].nruns = 0;
	}
	span = span_of(thread(t), t0, k.now_ns);
	assert_adds_up(&span);
	assert_int_equal(span.nbehind, 1);
	assert_int_equal(span.behind[0].ns, 10ull * n);
	while ((slice = sched_thread__next_slice(thread(t), FOREVER, &end, &irq))) {
		if (slice->state != SCHED_RUNQ || slice->start_ns == end)
			continue;
		sched_span__clear(&span);
		sched__behind(&s, thread(t), slice, end, &span);
		assert_int_equal(span.nbehind, 1);
		assert_string_equal(span.behind[0].comm, "burn");
		assert_int_equal(span.behind[0].ns, 10);
		waits++;
	}
	assert_int_equal(waits, n);
}

/* It was said to sleep, and turns out to have been woken before: no time counts twice. `prune`: and what is older is forgotten by now. */
static void sleep_that_was_over(bool prune)
{
	struct sched_mark from, to;
	struct sched_span span;
	struct k_task *t = asleep();

	sched__still(&s, thread(t), thread(t)->seq, 0, 0, 100);
	from = mark(thread(t), 90);
	sched__still(&s, thread(t), thread(t)->seq, 50, 0, 120);
	to = mark(thread(t), 130);
	if (prune) {
		sched_thread__prune(&s, thread(t), 90, false);
		assert_true(thread(t)->slices.first > from.slice);
	}
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	assert_int_equal(span.sums.runq_ns, 40);
	assert_int_equal(span.sums.blocked_ns, 0);
}

static void test_mark_in_sleep_that_was_over(void **state)
{
	(void)state;
	sleep_that_was_over(false);
}

static void test_mark_in_sleep_that_is_forgotten(void **state)
{
	(void)state;
	sleep_that_was_over(true);
}

static void assert_same(const struct sched_span *a, const struct sched_span *b)
{
	uint32_t i;

	assert_adds_up(a);
	assert_int_equal(a->nbehind, b->nbehind);
	for (i = 0; i < b->nbehind; i++) {
		assert_int_equal(a->behind[i].tgid, b->behind[i].tgid);
		assert_int_equal(a->behind[i].ns, b->behind[i].ns);
		assert_string_equal(a->behind[i].comm, b->behind[i].comm);
	}
	assert_int_equal(a->nblocked_in, b->nblocked_in);
	for (i = 0; i < b->nblocked_in; i++) {
		assert_int_equal(a->blocked_in[i].why, b->blocked_in[i].why);
		assert_int_equal(a->blocked_in[i].ns, b->blocked_in[i].ns);
	}
	assert_int_equal(a->ncpus, b->ncpus);
	assert_memory_equal(a->cpus, b->cpus, b->ncpus * sizeof(*b->cpus));
}

/* Whoever is asked for overlapping spans, to and fro, is told the same as who asks for each alone. */
static void slide(struct sched_thread *t, const struct sched_mark *marks, uint32_t n)
{
	struct sched_span slid, alone;
	uint32_t a, b, round;

	srandom(1);
	for (round = 0; round < 2000; round++) {
		a = (uint32_t)random() % n;
		b = round % 3 ? a + (uint32_t)random() % (n - a) : n - 1;
		slid = between(t, &marks[a], &marks[b]);
		tallies_forget(s.tallies, t);
		alone = between(t, &marks[a], &marks[b]);
		assert_same(&slid, &alone);
		/* the next one slides from this */
		between(t, &marks[a / 2], &marks[(b + n) / 2]);
	}
}

static void test_spans_that_slide(void **state)
{
	enum { N = 300 };
	static struct sched_mark marks[N];
	struct k_task *t, *x[40];
	uint32_t i, cpu;

	(void)state;
	prime(0);
	prime(1);
	at(10);
	for (i = 0; i < 40; i++)
		x[i] = hog(i, i % 3 ? "odd" : "even");
	t = running(0, 0);
	for (i = 0; i < N; i++) {
		cpu = i / 100 % 2;
		marks[i] = mark(thread(t), k.now_ns);
		k_preempts(&k, cpu, x[i * 7 % 40]);
		at(k.now_ns + 10 + i % 13);
		k_preempts(&k, cpu, t);
		at(k.now_ns + 7);
		if (i % 5 && i % 100 != 99)
			continue;
		k_blocks(&k, cpu, i % 2 ? POLL : FUTEX, NULL);
		at(k.now_ns + 3);
		cpu = (i + 1) / 100 % 2;
		k_wakeup(&k, t, cpu);
		k_preempts(&k, cpu, t);
	}
	slide(thread(t), marks, N);
}

/* More calls than are told apart: which of them are dropped does not depend on what was asked before. */
static void test_spans_of_many(void **state)
{
	enum { N = CULPRITS_MAX + 50 };
	static struct sched_mark marks[N];
	struct k_task *t;
	uint32_t i;

	(void)state;
	at(10);
	t = running(0, 0);
	for (i = 0; i < N; i++) {
		marks[i] = mark(thread(t), k.now_ns);
		k_blocks(&k, 0, (int32_t)i, NULL);
		at(k.now_ns + 10 + i * 37 % 101);
		k_wakeup(&k, t, 0);
		k_preempts(&k, 0, t);
		at(k.now_ns + 5);
	}
	slide(thread(t), marks, N);
}

/*
 * The same where it was asked for to be forgotten, amid a wait of a slice that is told when it
 * ends.
 */
static void test_behind_the_pruned(void **state)
{
	struct k_task *t, *x = hog(0, "first"), *a = hog(1, "a");
	const struct sched_slice *slice;
	struct sched_span span;
	uint64_t end, irq;
	uint32_t i;

	(void)state;
	prime(0);
	at(10);
	t = running(0, 0);
	at(20);
	k_preempts(&k, 0, x);
	at(1000);
	k_preempts(&k, 0, a);
	at(1010);
	k_preempts(&k, 0, x);
	sched__prune_cpus(&s, 1005);
	at(1020);
	k_preempts(&k, 0, t);
	at(1030);
	k_preempts(&k, 0, x);
	while ((slice = sched_thread__next_slice(thread(t), FOREVER, &end, &irq)))
		if (slice->state == SCHED_RUNQ && slice->start_ns == 20)
			break;
	assert_non_null(slice);
	assert_int_equal(end, 1020);
	sched_span__clear(&span);
	sched__behind(&s, thread(t), slice, end, &span);
	for (i = 0; i < span.nbehind; i++)
		if (*span.behind[i].comm == 'a')
			assert_true(span.behind[i].ns <= 10);
}

/* What nobody can ask for is forgotten, whether or not the thread makes events. */
static void test_prune(void **state)
{
	struct sched_mark from, to;
	struct sched_span span;
	struct k_task *t;
	uint64_t t0;

	(void)state;
	at(10);
	t = running(0, 0);
	from = mark(thread(t), 10);
	ping_pong(t, 1000);
	t0 = k.now_ns;
	ping_pong(t, 100);
	to = mark(thread(t), k.now_ns);
	sched_thread__prune(&s, thread(t), t0, false);
	sched__prune_cpus(&s, t0);
	assert_in_range(held(thread(t)), 200, 202);
	assert_int_equal(s.nslices, held(thread(t)));
	assert_in_range(thread(t)->irqs.end - thread(t)->irqs.first, 100, 101);
	span = between(thread(t), &from, &to);
	assert_adds_up(&span);
	assert_int_equal(span.sums.on_cpu_ns, 11000);
	to = mark(thread(t), t0);
	span = between(thread(t), &from, &to);
	assert_int_equal(span.sums.on_cpu_ns, 10000);
	assert_int_equal(span.sums.irq_ns, 3000);
	/* Slices that nobody has been told of stay. */
	ping_pong(t, 100);
	mark(thread(t), k.now_ns);
	sched_thread__prune(&s, thread(t), k.now_ns, true);
	assert_in_range(held(thread(t)), 400, 402);
}

static void test_prune_without_events(void **state)
{
	struct k_task *t;
	int i;

	(void)state;
	at(10);
	t = running(0, 0);
	for (i = 0; i < 50; i++) {
		ping_pong(t, 100);
		sched_thread__prune(&s, thread(t), k.now_ns - 100, false);
		sched__prune_cpus(&s, k.now_ns - 100);
	}
	assert_true(held(thread(t)) <= 220);
	assert_true(thread(t)->irqs.end - thread(t)->irqs.first <= 120);
	assert_true(thread(t)->slices.size <= 512);
	/* The sums of its life are all there. */
	assert_int_equal(mark(thread(t), k.now_ns).sums.on_cpu_ns, 50000);
	assert_int_equal(mark(thread(t), k.now_ns).sums.irq_ns, 15000);
}

/* A CPU that had much to do gives back what that took. */
static void test_prune_cpus(void **state)
{
	const struct sched_cpu *cpu = &s.cpus[0];
	struct k_task *t;
	int i;

	(void)state;
	at(10);
	t = running(0, 0);
	ping_pong(t, SCHED_RUNS_MAX);
	assert_int_equal(cpu->size, SCHED_RUNS_MAX);
	for (i = 0; i < 20; i++)
		sched__prune_cpus(&s, k.now_ns - 50);
	assert_in_range(cpu->size, 1, 128);
	assert_int_equal(cpu->end - cpu->first, 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(cpu->at[(cpu->first + i) % cpu->size].end_ns,
				 k.now_ns - 50 + 10 * i);
	k_exit(&k, 0, NULL);
	assert_int_equal(s.room, cpu->size * sizeof(*cpu->at));
}

/* ---- Slices ---------------------------------------------------------------------------------- */

static void test_slices(void **state)
{
	const struct sched_slice *slice;
	struct sched_thread *of;
	uint64_t end, irq;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	of = sched_thread__get(thread(t));
	at(20);
	k_irq(&k, 0, 15);
	k_irq(&k, 0, 20);
	at(30);
	k_blocks(&k, 0, FUTEX, NULL);
	at(35);
	k_wakeup(&k, t, 1);
	at(40);
	k_preempts(&k, 1, t);
	at(50);
	k_irq(&k, 1, 48);
	/* Born asleep and woken at once: two of no length. */
	assert_int_equal(sched_thread__next_slice(of, 30, &end, &irq)->state, SCHED_BLOCKED);
	assert_int_equal(sched_thread__next_slice(of, 30, &end, &irq)->state, SCHED_RUNQ);
	assert_null(sched_thread__next_slice(of, 29, &end, &irq));
	slice = sched_thread__next_slice(of, 30, &end, &irq);
	assert_int_equal(slice->state, SCHED_RUN);
	assert_int_equal(end, 30);
	assert_int_equal(irq, 5);
	assert_null(sched_thread__next_slice(of, 34, &end, &irq));
	slice = sched_thread__next_slice(of, FOREVER, &end, &irq);
	assert_int_equal(slice->state, SCHED_BLOCKED);
	assert_int_equal(slice->why, FUTEX);
	assert_int_equal(end, 35);
	slice = sched_thread__next_slice(of, FOREVER, &end, &irq);
	assert_int_equal(slice->state, SCHED_RUNQ);
	assert_false(slice->preempted);
	assert_int_equal(slice->cpu, 1);
	assert_null(sched_thread__next_slice(of, FOREVER, &end, &irq)); /* it runs still */
	k_exit(&k, 1, NULL);
	slice = sched_thread__next_slice(of, FOREVER, &end, &irq);
	assert_int_equal(slice->state, SCHED_RUN);
	assert_int_equal(end, 50);
	assert_int_equal(irq, 2);
	assert_null(sched_thread__next_slice(of, FOREVER, &end, &irq));
	sched_thread__put(&s, of);
}

/* Slower than the kernel: the oldest are gone, the others follow each other. */
static void test_slices_overrun(void **state)
{
	const struct sched_slice *slice;
	uint64_t end = 0, irq, last = 0, n = 0;
	struct k_task *t;

	(void)state;
	at(10);
	t = running(0, 0);
	ping_pong(t, SCHED_SLICES_MAX);
	while ((slice = sched_thread__next_slice(thread(t), FOREVER, &end, &irq))) {
		assert_true(slice->start_ns >= last && end >= slice->start_ns);
		assert_true(irq == 0 || irq == 3);
		last = end;
		n++;
	}
	assert_int_equal(n, SCHED_SLICES_MAX - 1);
	/* all that came were told, or counted; it runs still */
	assert_int_equal(n + thread(t)->overrun, thread(t)->slices.end - 1);
	assert_int_not_equal(thread(t)->overrun, 0);
}

/* Where rings may not grow, it is time to ask sooner. */
static void test_slices_due(void **state)
{
	uint64_t end, irq, came;
	struct k_task *t;
	int i;

	(void)state;
	s.room_max = 1;
	at(10);
	t = running(0, 0);
	for (i = 0; i < 1000; i++) {
		came = thread(t)->slices.end;
		ping_pong(t, 1);
		assert_true(thread(t)->slices.end - came < 16);
		if (!sched_thread__slices_due(&s, thread(t)))
			continue;
		while (sched_thread__next_slice(thread(t), FOREVER, &end, &irq))
			;
	}
	assert_int_equal(thread(t)->slices.size, 64);
	assert_int_equal(thread(t)->overrun, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_states),
		TEST(test_first_sight),
		TEST(test_born),
		TEST(test_moved_while_waiting),
		TEST(test_throttled),
		TEST(test_mark_in_wait),
		TEST(test_mark_in_second_wait),
		TEST(test_time_goes_back),
		TEST(test_irqs),
		TEST(test_irqs_untold),
		TEST(test_irqs_bad),
		TEST(test_irq),
		TEST(test_exit),
		TEST(test_number_of_another),
		TEST(test_marks_in_any_order),
		TEST(test_last),
		TEST(test_mark_in_sleep),
		TEST(test_woken),
		TEST(test_woken_after_loss),
		TEST(test_several),
		TEST(test_several_again),
		TEST(test_several_lost),
		TEST(test_several_bad),
		TEST(test_several_renamed),
		TEST(test_cpu_numbers),
		TEST(test_span_add),
		TEST(test_for_days),
		TEST(test_steady_culprit),
		TEST(test_first_wait_of_cpu),
		TEST(test_gap),
		TEST(test_gap_at_exit),
		TEST(test_introduction_lost),
		TEST(test_gap_of_cpu),
		TEST(test_switch_untold),
		TEST(test_switch_untold_seen),
		TEST(test_switch_untold_asleep),
		TEST(test_gap_of_move),
		TEST(test_gap_and_quota),
		TEST(test_old_chunk),
		TEST(test_told_twice),
		TEST(test_number_again),
		TEST(test_more_than_kept),
		TEST(test_mark_of_the_forgotten),
		TEST(test_marks_of_the_forgotten),
		TEST(test_marks_too_late),
		TEST(test_forgotten_sleep),
		TEST(test_past_thinned_out),
		TEST(test_past_without_room),
		TEST(test_prune_past),
		TEST(test_behind_the_forgotten),
		TEST(test_behind_the_forgotten_early),
		TEST(test_waits_outlast_runs),
		TEST(test_mark_in_sleep_that_was_over),
		TEST(test_mark_in_sleep_that_is_forgotten),
		TEST(test_spans_that_slide),
		TEST(test_spans_of_many),
		TEST(test_behind_the_pruned),
		TEST(test_prune),
		TEST(test_prune_without_events),
		TEST(test_prune_cpus),
		TEST(test_slices),
		TEST(test_slices_overrun),
		TEST(test_slices_due),
	};

	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
