// SPDX-License-Identifier: BSD-2-Clause
/* What the ranks of a job are in that does nothing; see report.h. */
#include <stdlib.h>
#include "report_priv.h"

static int by_job(const void *a, const void *b)
{
	const struct report_still *x = a, *y = b;

	return (x->proc->job->index > y->proc->job->index) -
	       (x->proc->job->index < y->proc->job->index);
}

static int by_rank(const void *a, const void *b)
{
	const struct report_still *x = a, *y = b;

	if (x->proc->job != y->proc->job)
		return by_job(a, b);
	if (x->apart != y->apart)
		return x->apart ? -1 : 1;
	if (x->proc->rank != y->proc->rank)
		return x->proc->rank < y->proc->rank ? -1 : 1;
	return x->proc->index < y->proc->index ? -1 : 1;
}

bool report_has_ended(const struct report_proc *p, const struct names *names)
{
	return p->newest && (!strcmp(names__text(names, p->newest->end), "exit") ||
			     report_by_signal(names, p->newest->end));
}

bool report_how_ended(const struct report_proc *p, const struct names *names, char *at, size_t len)
{
	return report_has_ended(p, names) && report_tell_end(p->newest, names, at, len);
}

int64_t report_thread_ns(const struct report_thread *t)
{
	return t->on + t->runq + t->blocked + t->unknown;
}

/* Which of those that are alike it is one of. Addresses of connections are of one process only. */
static void find_what(struct report_still *s, const struct names *names)
{
	const struct report_thread *t = s->thread;

	s->what[0] = t->asleep ? 2 : report_has_ended(s->proc, names);
	if (!t->asleep)
		return;
	s->what[1] = t->why;
	s->what[2] = strchr(names__text(names, t->file), '>') ? 0 : t->file;
}

static int by_call(const void *a, const void *b)
{
	const uint32_t *x = ((const struct report_still *)a)->what,
		       *y = ((const struct report_still *)b)->what;
	int i;

	for (i = 0; i < 3; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

/* Most are in one and the same: those that are not may be whom they wait for. */
static void find_apart(struct report_still *list, uint32_t n)
{
	uint32_t i, begin, most = 0, most_at = 0;

	qsort(list, n, sizeof(*list), by_call);
	for (begin = 0; begin < n; begin = i) {
		for (i = begin + 1; i < n && !by_call(&list[begin], &list[i]); i++)
			;
		if (i - begin > most) {
			most = i - begin;
			most_at = begin;
		}
	}
	for (i = 0; i < n && most > n / 2; i++)
		list[i].apart = i < most_at || i >= most_at + most;
}

/*
 * Whose operations are none of those that are recorded: it goes on, and none came. Where all are to be, a group that ended says nothing:
 * NCCL tells of an operation as a stream comes to it, in what graphs replay and where they are in use, and the stream may hang before.
 */
static bool has_others(const struct report_proc *p)
{
	return p->lacks_ops && p->self->launched && !p->lost;
}

static bool has_left(const struct report_proc *p, const struct names *names)
{
	return p->newest && !p->newest->exit_code &&
	       !strcmp(names__text(names, p->newest->end), "exit");
}

void report_note_ops(struct report *r)
{
	struct report_of_job *all;
	struct report_proc *p;

	for (p = r->procs; p; p = p->next) {
		all = &p->job->of_job;
		all->ops |= p->has_ops;
		all->asked |= !p->no_ops && !has_others(p);
		all->engines |= p->has_engines;
		all->goes_on |= !has_left(p->self, r->names);
		all->ranks = (int32_t)most(all->ranks, p->of);
	}
}

enum report_without report_without(const struct report *r)
{
	bool asked = !r->procs, engines = false;
	const struct report_proc *p;

	for (p = r->procs; p; p = p->next) {
		asked |= p->of_job.asked;
		engines |= p->of_job.engines;
	}
	if (engines)
		return WITHOUT_OTHERS;
	return asked ? WITHOUT_ANY : WITHOUT_ASKING;
}

/*
 * Beside jobs that have some there is nothing to tell of a single rank, of which NCCL tells of no operation however well it does, nor of
 * one that has ended well.
 */
static bool does_nothing(const struct report *r, const struct report_of_job *job)
{
	return !job->ops && job->asked && !job->engines &&
	       ((job->ranks > 1 && job->goes_on) || !r->totals.ops);
}

uint32_t report_same_job(const struct report_still *list, uint32_t n)
{
	uint32_t i;

	for (i = 1; i < n && !by_job(&list[0], &list[i]); i++)
		;
	return i;
}

struct report_still *report_stills(const struct report *r, uint32_t *n)
{
	struct report_still *list = calloc(r->nprocs + 1, sizeof(*list));
	const struct report_proc *p;
	struct report_thread *t;
	uint32_t tid, begin, of;

	*n = 0;
	for (p = r->procs; p && list; p = p->next) {
		tid = (uint32_t)p->pid;
		HASH_FIND(hh, p->threads, &tid, sizeof(tid), t);
		if (p->self != p || p->rank < 0 || !t || !does_nothing(r, &p->job->of_job))
			continue;
		list[*n] = (struct report_still){.proc = p, .thread = t};
		find_what(&list[(*n)++], r->names);
	}
	if (!list || !*n)
		return list;
	qsort(list, *n, sizeof(*list), by_job);
	for (begin = 0; begin < *n; begin += of) {
		of = report_same_job(&list[begin], *n - begin);
		find_apart(&list[begin], of);
	}
	qsort(list, *n, sizeof(*list), by_rank);
	return list;
}
