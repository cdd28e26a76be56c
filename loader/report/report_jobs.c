// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which processes are of one job: those that communicators join, each with others. None of these has to be of all ranks: tensor,
 * pipeline and data parallel groups make one job of them.
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

void report_note_jobs(struct report *r)
{
	struct report_member *m, *mtmp;
	struct report_comm *c, *ctmp;
	struct report_proc *p;

	for (p = r->procs; p; p = p->next)
		p->job = p->self;
	HASH_ITER (hh, r->comms, c, ctmp) {
		if (!c->hash) /* not known: of any */
			continue;
		HASH_ITER (hh, c->members, m, mtmp)
			join(c->first, m->proc);
	}
	/* those as well that there was no room for among the members */
	for (p = r->procs; p; p = p->next) {
		HASH_FIND(hh, r->comms, &p->within, sizeof(p->within), c);
		if (c && c->hash && c->first)
			join(c->first, p);
	}
	for (p = r->procs; p; p = p->next)
		p->job = stands_for(p);
}
