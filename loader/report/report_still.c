// SPDX-License-Identifier: BSD-2-Clause
/* What the ranks of a job are in that does nothing; see report.h. */
#include <stdlib.h>
#include "report_priv.h"

static int by_rank(const void *a, const void *b)
{
	const struct report_still *x = a, *y = b;

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

enum report_without report_without(const struct report *r)
{
	bool asked = !r->procs, engines = false;
	const struct report_proc *p;

	for (p = r->procs; p; p = p->next) {
		asked |= !p->no_ops && !has_others(p);
		engines |= p->has_engines;
	}
	if (engines)
		return WITHOUT_OTHERS;
	return asked ? WITHOUT_ANY : WITHOUT_ASKING;
}

struct report_still *report_stills(const struct report *r, uint32_t *n)
{
	struct report_still *list = calloc(r->nprocs + 1, sizeof(*list));
	const struct report_proc *p;
	struct report_thread *t;
	uint32_t tid;

	*n = 0;
	if (r->totals.ops || report_without(r))
		return list;
	for (p = r->procs; p && list; p = p->next) {
		tid = (uint32_t)p->pid;
		HASH_FIND(hh, p->threads, &tid, sizeof(tid), t);
		if (p->self != p || p->rank < 0 || !t)
			continue;
		list[*n] = (struct report_still){.proc = p, .thread = t};
		find_what(&list[(*n)++], r->names);
	}
	if (!list || !*n)
		return list;
	find_apart(list, *n);
	qsort(list, *n, sizeof(*list), by_rank);
	return list;
}
