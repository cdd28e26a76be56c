// SPDX-License-Identifier: BSD-2-Clause
/* Kernel context on its way in; see decode_sched.h. */
#include "decode_sched.h"
#include "less.h"
#include "trace.h"

#define KEEP_NS (1 * NSEC_PER_SEC) /* chunks come later than what the kernel did meanwhile */

static void count_lost(struct session *s, const struct sched_thread *t, uint32_t lost)
{
	struct proc *p = t && lost ? proc__of_thread(s, t) : NULL;

	if (p)
		proc__count_loss(p, LOSS_CONTEXT, lost);
	else
		s->context_lost += lost;
}

/* ---- Slices ------------------------------------------------------------------------------------- */

/* The thread of a slice, as the trace knows it; one that has made no event is another's helper. */
static void introduce(struct proc *p, struct sched_thread *t, uint64_t ts_ns)
{
	struct thread *thread = proc__introduce(p, t->ns_tid, t->tid, t->comm, ts_ns);

	if (thread && !thread->sched) /* it is over already */
		thread->sched = sched_thread__get(t);
}

static void write_slices(struct session *s, struct sched_thread *t, uint64_t until_ns)
{
	const struct sched_slice *slice;
	struct proc *p = proc__of_thread(s, t);
	uint64_t end_ns, irq_ns;

	while ((slice = sched_thread__next_slice(t, until_ns, &end_ns, &irq_ns))) {
		if (!p || slice->state == SCHED_UNKNOWN || end_ns <= slice->start_ns)
			continue;
		introduce(p, t, slice->start_ns);
		trace__slice(p, t, slice, end_ns, irq_ns);
	}
	count_lost(s, t, t->overrun);
	t->overrun = 0;
}

/* ---- Records ------------------------------------------------------------------------------------ */

/* Both threads of a switch can have lost records, and be of different processes. */
static void count_switch(struct session *s, const struct scope_ev_switch *e)
{
	const struct sched_thread *t;

	t = e->flags & SCOPE_SWITCH_PREV ? sched__find(&s->sched, e->prev_tid) : NULL;
	count_lost(s, t, t ? t->gap : 0);
	t = e->flags & SCOPE_SWITCH_NEXT ? sched__find(&s->sched, e->next_tid) : NULL;
	count_lost(s, t, t ? t->gap : 0);
}

/* More than are kept until the next tick: out with them. */
static void bound_slices(struct session *s, struct sched_thread *who)
{
	if (s->sched_mode == SCHED_MODE_SLICES && who && sched_thread__slices_due(&s->sched, who))
		write_slices(s, who, UINT64_MAX);
}

static void on_switch(struct session *s, const struct scope_ev_switch *e)
{
	struct sched_thread *who;

	if (sched__switch(&s->sched, e, &who))
		count_switch(s, e);
	bound_slices(s, who);
}

static bool on_switches(struct session *s, const struct scope_ev_switches *e)
{
	uint32_t n = SCOPE_SWITCHES_N(e->h.size), i;
	struct scope_ev_switch nth;

	if (e->h.size != SCOPE_SWITCHES_SIZE(n) || n > SCOPE_SWITCHES)
		return false;
	for (i = 0; s->sched_mode && i < n; i++)
		if (sched__nth_switch(&s->sched, e, i, &nth))
			on_switch(s, &nth);
	return true;
}

static void on_thread(struct session *s, const struct scope_ev_thread *e)
{
	struct sched_thread *t;
	struct proc *p;

	sched__thread(&s->sched, e);
	t = sched__find(&s->sched, e->tid);
	p = t ? proc__of_thread(s, t) : NULL;
	if (p)
		proc__thread_known(p, t);
}

/* Of a process that does nothing, all that do not wake up are told of: one of them may be why. */
static void on_woken(struct session *s, const struct scope_ev_woken *e)
{
	struct sched_thread *t;
	struct proc *p;

	sched__woken(&s->sched, e);
	t = e->asleep ? sched__find(&s->sched, e->tid) : NULL;
	p = t ? proc__of_thread(s, t) : NULL;
	if (p && !p->recs && sched_thread__last(t) &&
	    sched_thread__last(t)->start_ns == e->since_ns)
		introduce(p, t, e->since_ns);
}

bool decode_sched__event(struct session *s, const struct scope_ev_short *h)
{
	static const size_t sizes[] = {[SCOPE_EV_THREAD] = sizeof(struct scope_ev_thread),
				       [SCOPE_EV_SWITCH] = sizeof(struct scope_ev_switch),
				       [SCOPE_EV_MIGRATE] = sizeof(struct scope_ev_migrate),
				       [SCOPE_EV_IRQ] = SCOPE_IRQS_SIZE(1),
				       [SCOPE_EV_SWITCHES] = SCOPE_SWITCHES_SIZE(1),
				       [SCOPE_EV_WOKEN] = sizeof(struct scope_ev_woken),
				       [SCOPE_EV_STACK] = sizeof(struct scope_ev_stack)};
	struct sched_thread *who = NULL;
	uint32_t lost = 0;

	if (h->size < sizes[h->kind])
		return false;
	if (h->kind == SCOPE_EV_SWITCHES)
		return on_switches(s, (const struct scope_ev_switches *)h);
	if (!s->sched_mode)
		return true;
	switch (h->kind) {
	case SCOPE_EV_THREAD:
		on_thread(s, (const struct scope_ev_thread *)h);
		break;
	case SCOPE_EV_SWITCH:
		on_switch(s, (const struct scope_ev_switch *)h);
		break;
	case SCOPE_EV_MIGRATE:
		lost = sched__migrate(&s->sched, (const struct scope_ev_migrate *)h, &who);
		break;
	case SCOPE_EV_WOKEN:
		on_woken(s, (const struct scope_ev_woken *)h);
		break;
	case SCOPE_EV_STACK:
		sched__stack(&s->sched, (const struct scope_ev_stack *)h);
		break;
	default:
		lost = sched__irq(&s->sched, (const struct scope_ev_irq *)h, &who);
	}
	count_lost(s, who, lost);
	bound_slices(s, who);
	return true;
}

struct sched_thread *decode_sched__chunk(struct session *s, struct proc *p,
					 const struct scope_ev_chunk *c)
{
	struct sched_thread *t = s->sched_mode ? sched__find(&s->sched, c->h.tid) : NULL;

	if (!t || t->tgid != p->key.tgid ||
	    (t->proc_start_ns && t->proc_start_ns != p->key.start_ns))
		return NULL;
	if (c->reason == SCOPE_FLUSH_OUTSIDE)
		count_lost(s, t, sched__counted(&s->sched, t, c->sched_seq));
	else
		count_lost(s, t, sched__seen(&s->sched, t, c->sched_seq, c->h.ts_ns));
	return t;
}

void decode_sched__exit(struct session *s, const struct scope_ev_exit *e)
{
	struct sched_thread *t =
		s->sched_mode ? sched_thread__get(sched__find(&s->sched, e->h.tid)) : NULL;
	struct proc *p;

	if (!t)
		return;
	/* The next node record finds it no more. */
	p = proc__of_thread(s, t);
	if (p)
		proc__ran_on(p, t);
	/* Of a capture alone the thread's own number stands still: that is no loss. */
	count_lost(s, t, sched__exit(&s->sched, t, s->live ? 0 : e->sched_seq, e->h.ts_ns));
	if (s->sched_mode == SCHED_MODE_SLICES)
		write_slices(s, t, UINT64_MAX);
	sched_thread__put(&s->sched, t);
}

void decode_sched__gone(struct session *s, struct sched_thread *t)
{
	sched_thread__get(t);
	sched__exit(&s->sched, t, 0, t->seen_ns);
	if (s->sched_mode == SCHED_MODE_SLICES)
		write_slices(s, t, UINT64_MAX);
	sched_thread__put(&s->sched, t);
}

void decode_sched__unrecorded_exit(struct session *s, const struct scope_ev_exit *e)
{
	if (s->sched_mode && (e->group_dead || e->h.kind == SCOPE_EV_EXEC))
		sched__process_end(&s->sched, e->h.tgid, e->h.start_ns, e->h.ts_ns);
}

/* ---- Time goes by ------------------------------------------------------------------------------- */

void decode_sched__tick(struct session *s, uint64_t now_ns)
{
	uint64_t recent = now_ns > KEEP_NS ? now_ns - KEEP_NS : 0, keep = recent, oldest;
	bool slices = s->sched_mode == SCHED_MODE_SLICES;
	struct sched_thread *t, *tmp;
	struct proc *p, *ptmp;

	if (!s->sched_mode)
		return;
	HASH_ITER (hh, s->procs, p, ptmp) {
		/* What a thread did before it called (sched.before) is asked for with the operation, when that is over. */
		p->oldest_ns = correlate__oldest(&p->corr);
		if (p->oldest_ns != UINT64_MAX)
			p->oldest_ns = less(p->oldest_ns, KEEP_NS);
		keep = p->oldest_ns < keep ? p->oldest_ns : keep;
	}
	HASH_ITER (hh, s->sched.threads, t, tmp) {
		p = proc__of_thread(s, t);
		/* Held by events, not just by being alive: for as long as they may ask. */
		oldest = p && t->refs > 1 ? p->oldest_ns : UINT64_MAX;
		if (t->ctrl_ns && t->ctrl_ns < oldest)
			oldest = t->ctrl_ns;
		if (slices)
			write_slices(s, t, recent);
		sched_thread__prune(&s->sched, t, oldest < recent ? oldest : recent, slices);
	}
	sched__prune_cpus(&s->sched, keep);
}

void decode_sched__counted(struct session *s, struct sched_thread *t, uint32_t seq)
{
	count_lost(s, t, sched__counted(&s->sched, t, seq));
}

void decode_sched__end(struct session *s, uint64_t end_ns)
{
	struct sched_thread *t, *tmp;

	HASH_ITER (hh, s->sched.threads, t, tmp) {
		sched_thread__get(t);
		sched__exit(&s->sched, t, 0, end_ns);
		t->lives = true;
		if (s->sched_mode == SCHED_MODE_SLICES)
			write_slices(s, t, UINT64_MAX);
		sched_thread__put(&s->sched, t);
	}
}
