// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which findings are worth a line: docs/report.md has the rules. What is found is held against the operations that its rank was in: what
 * groups of ranks do side by side takes no longer the more of them there are.
 */
#include <stdlib.h>
#include "report_priv.h"

#define SURE_NS                                                                                    \
	INT64_C(100000000) /* what slow operations cost is worth naming in a job of any length */

/* What a finding is held against. */
struct measure {
	const struct report_whole *whole;
	int64_t ns; /* of its operations, or more, of ranks that had next to none */
	/* So often as that something is found somewhere by chance, of so many communicators. */
	uint32_t chance;
};

/*
 * Of the time of the operations: worth naming though none is slower than others. What no sound job has is so
 * sooner.
 */
static double systemic(const struct report_find *f)
{
	/* some rank is always the last one */
	if (f->key.code == CODE_LATE_RANK && f->together.n)
		return 0.5;
	switch (f->key.code) {
	case CODE_BLOCKED:
	case CODE_INTERRUPTS:
	case CODE_NET_LOSS:
	case CODE_THROTTLED:
	case CODE_STOPPED:
		return 0.1;
	default:
		return 0.25;
	}
}

/* Flows take turns in being the slowest one: what they suffer from is weighed for all of them together. */
static bool is_of_flows(uint32_t code)
{
	return code == CODE_NET_LOSS || code == CODE_RECEIVER || code == CODE_SENDER ||
	       code == CODE_BANDWIDTH;
}

static int64_t share(int64_t v, uint32_t part, uint32_t of)
{
	return part == of ? v : (int64_t)((__int128)v * part / of);
}

static void add_share(struct report_whole *to, const struct report_whole *w, uint32_t part,
		      uint32_t of)
{
	uint32_t i;

	to->ns += share(w->ns, part, of);
	to->ops += (uint64_t)share((int64_t)w->ops, part, of);
	to->unknown_ns += share(w->unknown_ns, part, of);
	to->unknown += (uint64_t)share((int64_t)w->unknown, part, of);
	for (i = 0; i < NR_CODES; i++)
		to->odd_ns[i] += share(w->odd_ns[i], part, of);
}

static void add_whole(struct report_whole *to, const struct report_whole *w)
{
	add_share(to, w, 1, 1);
}

static void count_ranks(const struct report_comm *c)
{
	const struct report_member *m, *tmp;
	struct report_proc *p;

	HASH_ITER (hh, c->members, m, tmp) {
		p = m->proc->self;
		p->in_comm = p->counted == c ? p->in_comm + 1 : 1;
		p->counted = c;
		p->ranks = p->in_comm > p->ranks ? p->in_comm : p->ranks;
	}
}

/*
 * To each process once. Of one that is several ranks, as of a node's GPUs, which work side by side, it is what one of them was in, taken
 * together: of eight groups that have one of its eight each that is an eighth, of one that has all of them all.
 */
static void add_to_members(const struct report_comm *c)
{
	const struct report_member *m, *tmp;
	struct report_proc *p;

	count_ranks(c);
	HASH_ITER (hh, c->members, m, tmp) {
		p = m->proc->self;
		if (p->counted != c)
			continue;
		add_share(&p->whole, &c->whole, p->in_comm, p->ranks);
		p->counted = NULL;
	}
}

/* What each job has: operations that are not numbered are of whichever is the first one. */
static void add_to_jobs(struct report *r)
{
	struct report_comm *c, *tmp;
	struct report_of_job *job;
	struct report_proc *p;

	HASH_ITER (hh, r->comms, c, tmp) {
		p = c->first ?: r->procs;
		if (p)
			add_whole(&report_judged_with(r, p)->of_job.whole, &c->whole);
	}
	for (p = r->procs; p; p = p->next) {
		job = &report_judged_with(r, p)->of_job;
		job->late += p->self == p ? (double)p->whole.odd_ns[CODE_LATE_RANK] : 0;
		job->recorded += p->last ? (double)(p->last - p->first) : 0;
	}
}

/* All there is, and what each process and job was in; returns how many communicators that is of. */
static uint32_t add_up(struct report *r, struct report_whole *all)
{
	struct report_whole nobodys = {
		0}; /* operations that are not numbered are of no known ranks */
	struct report_comm *c, *tmp;
	struct report_proc *p;
	uint32_t n = 0;

	HASH_ITER (hh, r->comms, c, tmp)
		count_ranks(c);
	for (p = r->procs; p; p = p->next)
		p->counted = NULL;
	HASH_ITER (hh, r->comms, c, tmp) {
		n += c->whole.ops > 0;
		add_whole(all, &c->whole);
		if (c->members)
			add_to_members(c);
		else
			add_whole(&nobodys, &c->whole);
	}
	for (p = r->procs; p; p = p->next)
		add_whole(&p->whole, &nobodys);
	add_to_jobs(r);
	return n;
}

/* Half of what the processes had in the middle: those that had less are held against that. */
static int64_t floor_of(const struct report *r, const struct report_whole *all)
{
	int64_t *list = calloc(r->nprocs + 1, sizeof(*list)), ns;
	const struct report_proc *p;
	uint32_t n = 0;

	if (!list)
		return all->ns;
	for (p = r->procs; p; p = p->next)
		if (p->self == p && p->whole.ns)
			list[n++] = p->whole.ns;
	ns = report_median(list, n) / 2;
	free(list);
	return ns;
}

static double share_of(const struct report_find *f, const struct measure *m)
{
	return m->ns ? (double)f->odd_ns / (double)m->ns : 0;
}

/* In operations that are no slower than others, too. */
static bool is_always(const struct report_find *f, const struct measure *m)
{
	double least_share = systemic(f), share = share_of(f, m);

	if (is_of_flows(f->key.code) && share >= 0.05 && f->ops > m->chance &&
	    (double)m->whole->odd_ns[f->key.code] >= least_share * (double)m->ns)
		return true;
	return share >= least_share && f->ops >= 3 + m->chance && f->ops * 5 >= m->whole->ops;
}

static bool is_slow(const struct report_find *f, const struct measure *m)
{
	return f->slow_ns >= m->ns / 10 && (!m->chance || f->slow > m->chance);
}

static void weigh(struct report_find *f, const struct measure *all, const struct measure *own)
{
	bool always = is_always(f, all) || is_always(f, own);
	bool slow = is_slow(f, all) || is_slow(f, own), sure = f->slow_ns >= SURE_NS;
	double share;

	/* of many together there is that much in any long job */
	slow = f->together.n ? slow && sure : slow || sure;
	f->cost = f->slow_ns;
	if (f->slow)
		f->conf = f->slow_conf / (double)f->slow;
	if (always) {
		if (f->odd_ns > f->cost)
			f->cost = f->odd_ns;
		share = (0.5 + share_of(f, own)) * f->confidence;
		share = share > 0.95 ? 0.95 : share;
		f->conf = share > f->conf ? share : f->conf;
	}
	if (f->conf < f->failed)
		f->conf = f->failed;
	f->named = always || slow || f->hung || f->failed > 0;
}

/* It is nobody's: it cost what it did to the process that it cost most. */
static void weigh_unknown(const struct report *r, struct report_find *f, const struct measure *all,
			  uint32_t chance, int64_t floor)
{
	bool slow = f->slow_ns >= all->ns / 5;
	const struct report_comm *c, *tmp;
	const struct report_proc *p;

	f->cost = 0;
	/* of a process that is several ranks it may have been one that lost all of it */
	HASH_ITER (hh, r->comms, c, tmp)
		f->cost = most(f->cost, c->members ? c->whole.unknown_ns : 0);
	for (p = r->procs; p; p = p->next) {
		const struct report_whole *w = &p->whole;

		f->cost = most(f->cost, w->unknown_ns);
		slow |= w->unknown > chance && w->unknown_ns >= most(w->ns, floor) / 5;
	}
	if (f->slow)
		f->conf = f->slow_conf / (double)f->slow;
	f->named = slow || f->cost >= 10 * SURE_NS || f->hung || f->failed > 0;
}

/* Of the process, or the job, that it is of; NULL: nobody's. */
static const struct report_whole *whole_of(const struct report_find *f)
{
	if (f->who)
		return &f->who->whole;
	return f->together.job ? &f->together.job->of_job.whole : NULL;
}

static void weigh_all(const struct report *r, struct report_find *finds, const struct measure *all,
		      uint32_t chance, int64_t floor)
{
	const struct report_whole *whole;
	struct report_find *f, *tmp;
	struct measure own;

	HASH_ITER (hh, finds, f, tmp) {
		whole = whole_of(f);
		own = *all;
		if (whole && whole->ops && most(whole->ns, floor)) {
			own.whole = whole;
			own.ns = most(whole->ns, floor);
			own.chance = chance;
		}
		if (f->key.code == CODE_UNKNOWN)
			weigh_unknown(r, f, all, chance, floor);
		else
			weigh(f, all, &own);
	}
}

#define TURNS_SHARE 0.1	   /* of the time that was recorded */
#define TURNS_NS    100000 /* of each operation; less is how exactly ranks meet */
#define TURNS_CONF                                                                                 \
	0.5 /* some rank comes last in any job: it may be no more than how much their work varies */

/* Whether ranks that are late in turn cost the job's time, and not only much of operations that take next to none: of what late ranks cost each process, their part. */
static bool turns_cost(const struct report_find *g)
{
	const struct report_of_job *job = &g->together.job->of_job;
	double part = (double)g->odd_ns / (double)most(1, job->whole.odd_ns[CODE_LATE_RANK]);

	return part * job->late >= TURNS_SHARE * job->recorded && g->odd_ns >= SURE_NS &&
	       (double)g->odd_ns >= (double)g->ops * TURNS_NS;
}

/* Several that are not worth a line each. */
static void weigh_together(struct report *r, const struct measure *all, uint32_t chance,
			   int64_t floor)
{
	struct report_find *by_rank = report_by_rank(r), *in_turn, *g, *tmp;

	weigh_all(r, by_rank, all, chance, floor);
	HASH_ITER (hh, by_rank, g, tmp)
		g->named &= g->together.n > 1;
	in_turn = report_in_turn(r, by_rank);
	weigh_all(r, in_turn, all, chance, floor);
	HASH_ITER (hh, in_turn, g, tmp) {
		g->named &= g->together.n > 1;
		if (g->key.code != CODE_LATE_RANK)
			continue;
		g->named &= turns_cost(g);
		g->conf = g->conf < TURNS_CONF ? g->conf : TURNS_CONF;
	}
	report_keep_together(r, by_rank, in_turn);
}

void report_weigh(struct report *r)
{
	struct report_whole sum = {0};
	struct measure all = {.whole = &sum};
	uint32_t chance = report_log2(add_up(r, &sum));
	int64_t floor = floor_of(r, &sum);

	all.ns = sum.ns;
	weigh_all(r, r->finds, &all, chance, floor);
	weigh_together(r, &all, chance, floor);
}
