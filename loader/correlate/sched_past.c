// SPDX-License-Identifier: BSD-2-Clause
/* Sums of what is forgotten; see sched_past.h. */
#include "sched_past.h"
#include "less.h"
#include "sched_ring.h"
#include "search.h"

static struct sched_point *point_at(const struct sched_past *p, uint64_t n)
{
	return &p->at[n & (p->size - 1)];
}

static uint64_t held(const struct sched_past *p)
{
	return p->end - p->first;
}

/* Fewer, and further apart: half of them at most. What is longer than a step stays apart. */
static void thin(struct sched_past *p, uint64_t next_ns)
{
	uint64_t i, kept, end_ns;

	do {
		p->step_ns *= 2;
		for (i = kept = p->first + 1; i < p->end; i++) {
			end_ns = i + 1 < p->end ? point_at(p, i + 1)->ns : next_ns;
			if (end_ns - point_at(p, kept - 1)->ns > p->step_ns)
				*point_at(p, kept++) = *point_at(p, i);
		}
		p->end = kept;
	} while (held(p) > p->size / 2);
}

void past__add(struct sched *s, struct sched_past *p, uint64_t ns, const struct sched_sums *sums)
{
	if (!held(p))
		p->step_ns = SCHED_PAST_STEP_NS;
	else if (ns == p->last_ns)
		return;
	if (held(p) && held(p) == p->size &&
	    !ring_grows(s, p->size, sizeof(*p->at), SCHED_PAST_MAX))
		thin(p, ns);
	if (!RING_ROOM(s, p, SCHED_PAST_MAX))
		return;
	*point_at(p, p->end++) = (struct sched_point){ns, *sums};
	p->last_ns = ns;
}

static bool is_later(const void *past, uint64_t i, uint64_t ns)
{
	return point_at(past, i)->ns > ns;
}

/* The share of what came between two points. */
struct share {
	uint64_t ns, of_ns;
};

static uint64_t part(const struct share *share, uint64_t end, uint64_t begin)
{
	return (uint64_t)((unsigned __int128)less(end, begin) * share->ns / share->of_ns);
}

/* States one after the other, so that they add up to the time; and a switch is a preemption or not. */
static void between(const struct sched_sums *a, const struct sched_sums *b,
		    const struct share *share, struct sched_sums *to)
{
	uint64_t on = part(share, b->on_cpu_ns, a->on_cpu_ns);
	uint64_t runnable = part(share, b->on_cpu_ns + b->runq_ns, a->on_cpu_ns + a->runq_ns);
	uint64_t all = part(share, b->on_cpu_ns + b->runq_ns + b->blocked_ns,
			    a->on_cpu_ns + a->runq_ns + a->blocked_ns);
	uint64_t preemptions = part(share, b->preemptions, a->preemptions);

	*to = (struct sched_sums){
		.on_cpu_ns = a->on_cpu_ns + on,
		.runq_ns = a->runq_ns + less(runnable, on),
		.blocked_ns = a->blocked_ns + less(all, runnable),
		.irq_ns = a->irq_ns + part(share, b->irq_ns, a->irq_ns),
		.net_rx_ns = a->net_rx_ns + part(share, b->net_rx_ns, a->net_rx_ns),
		.throttled_ns = a->throttled_ns + part(share, b->throttled_ns, a->throttled_ns),
		.switches = a->switches + preemptions +
			    part(share, b->switches - b->preemptions, a->switches - a->preemptions),
		.preemptions = a->preemptions + preemptions,
		.migrations = a->migrations + part(share, b->migrations, a->migrations),
	};
}

bool past__mark(const struct sched_past *p, const struct sched_point *next, uint64_t ns,
		struct sched_mark *mark)
{
	const struct sched_point *a, *b;
	uint64_t n;

	if (!held(p))
		return false;
	n = search_later(p->first, p->end, is_later, p, ns);
	*mark = (struct sched_mark){.ns = ns, .certain_ns = ns};
	if (n == p->first) {
		mark->early = true;
		mark->sums = point_at(p, n)->sums;
		return true;
	}
	a = point_at(p, n - 1);
	b = n < p->end ? point_at(p, n) : next;
	between(&a->sums, &b->sums, &(struct share){ns - a->ns, b->ns - a->ns}, &mark->sums);
	return true;
}

void past__prune(struct sched *s, struct sched_past *p, uint64_t next_ns, uint64_t keep_ns)
{
	for (; held(p); p->first++)
		if ((held(p) > 1 ? point_at(p, p->first + 1)->ns : next_ns) > keep_ns)
			break;
	if (!held(p))
		p->last_ns = 0;
	/* They were thinned out for a time that was longer. */
	if (held(p) < p->size / 4 && p->step_ns > SCHED_PAST_STEP_NS)
		p->step_ns /= 2;
	RING_SHRINK(s, p);
}
