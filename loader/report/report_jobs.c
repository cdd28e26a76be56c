// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which processes are of one job: those that communicators join, each with others. None of these has to be of all ranks: tensor,
 * pipeline and data parallel groups make one job of them. And which communicator its ranks go by, where several are as large.
 */
#include "report_priv.h"

/* The process that stands for its set; all on the way there are nearer to it afterwards. */
static struct report_proc *stands_for(struct report_proc *p)
{
	while (p->job != p) {
		p->job = p->job->job;
		p = p->job;
	}
	return p;
}

static void join(struct report_proc *a, struct report_proc *b)
{
	a = stands_for(a);
	b = stands_for(b);
	/* of the earlier one, whatever the order of communicators */
	if (a->index < b->index)
		b->job = a;
	else
		a->job = b;
}

/* NULL: none that is known. */
static struct report_comm *goes_by(const struct report *r, const struct report_proc *p)
{
	struct report_comm *c;

	HASH_FIND(hh, r->comms, &p->within, sizeof(p->within), c);
	return c;
}

/* It has the same rank in another one that is as large, which as many processes go by, or more. */
static void go_by(const struct report *r, struct report_comm *c, const struct report_member *m)
{
	struct report_proc *p = m->proc->self;
	struct report_comm *was = goes_by(r, p);

	if (!was || was == c || p->several || p->rank != m->rank ||
	    report_nranks(was) != report_nranks(c) || c->go_by < was->go_by)
		return;
	p->within = c->hash;
	was->go_by--;
	c->go_by++;
}

/* Each goes by the first that it came to: ranks of a job may do so in different order. */
static void agree(struct report *r)
{
	struct report_member *m, *mtmp, *life;
	struct report_comm *c, *ctmp;
	struct report_proc *p;

	for (p = r->procs; p; p = p->next) {
		c = p->self == p ? goes_by(r, p) : NULL;
		if (c)
			c->go_by++;
	}
	HASH_ITER (hh, r->comms, c, ctmp)
		HASH_ITER (hh, c->members, m, mtmp)
			for (life = m; life; life = life->before)
				go_by(r, c, life);
}

void report_note_jobs(struct report *r)
{
	struct report_member *m, *mtmp, *life;
	struct report_comm *c, *ctmp;
	struct report_proc *p;

	for (p = r->procs; p; p = p->next)
		p->job = p->self;
	HASH_ITER (hh, r->comms, c, ctmp) {
		if (!c->hash) /* not known: of any */
			continue;
		HASH_ITER (hh, c->members, m, mtmp)
			for (life = m; life; life = life->before)
				join(c->first, life->proc);
	}
	/* those as well that there was no room for among the members */
	for (p = r->procs; p; p = p->next) {
		c = goes_by(r, p);
		if (c && c->hash && c->first)
			join(c->first, p);
	}
	for (p = r->procs; p; p = p->next) {
		p->job = stands_for(p);
		if (!r->joined && p->job->within)
			r->joined = p;
	}
	agree(r);
}
