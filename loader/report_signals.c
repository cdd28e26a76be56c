// SPDX-License-Identifier: BSD-2-Clause
/* Which of the signals that a process was sent ended or stopped it, and who sent that: evidence of verdicts. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "report_priv.h"

#define HANDLED_NS (30 * INT64_C(1000000000)) /* who cleans up first ends so much later at most */
#define AT_ONCE_NS                                                                                 \
	(10 * INT64_C(1000000000)) /* who ends a job sends its processes signals within */

static bool stops(int32_t nr)
{
	return nr == SIGSTOP || nr == SIGTSTP || nr == SIGTTIN || nr == SIGTTOU;
}

void report_note_signal(struct report_proc *p, const struct report_signal *s)
{
	if (stops(s->nr))
		p->stops[p->nstops++ % REPORT_SIGNALS] = *s;
	else if (s->nr != SIGCONT)
		p->ends[p->nends++ % REPORT_SIGNALS] = *s;
}

/* The @i-th from the last; NULL: so many are not kept. */
static const struct report_signal *from_last(const struct report_signal *list, uint32_t n,
					     uint32_t i)
{
	return i < n && i < REPORT_SIGNALS ? &list[(n - 1 - i) % REPORT_SIGNALS] : NULL;
}

static bool by_other(const struct report_proc *p, const struct report_signal *s)
{
	return s->from_pid >= 0 && s->from_pid != p->host_pid;
}

/*
 * The one that ended it. Handlers that clean up send the same one again, to their own process: what counts is the one that another sent, if
 * there was one, not long before.
 */
static const struct report_signal *deadly(const struct report_proc *p, int32_t nr)
{
	const struct report_signal *s, *last = NULL;
	uint32_t i;

	for (i = 0; (s = from_last(p->ends, p->nends, i)); i++) {
		if (s->nr != nr)
			continue;
		if (!last)
			last = s;
		if (last->ts - s->ts <= HANDLED_NS && by_other(p, s))
			return s;
	}
	return last;
}

/* Of a process that exited in bad order: what another had sent it not long before, and it handled. */
static const struct report_signal *asked_to_end(const struct report_proc *p)
{
	const struct report_signal *s;
	uint32_t i;

	for (i = 0; (s = from_last(p->ends, p->nends, i)); i++)
		if (s->handled && by_other(p, s) && p->last - s->ts <= HANDLED_NS)
			return s;
	return NULL;
}

static const struct report_signal *end_signal(const struct report_proc *p,
					      const struct names *names)
{
	if (!report_by_signal(names, p->end))
		return p->failed ? asked_to_end(p) : NULL;
	return deadly(p, (int32_t)strtol(names__text(names, p->end) + strlen("signal "), NULL, 10));
}

/* Whose it was: a clause that begins with the signal's name. */
static void tell_sender(const struct report_proc *p, const struct report_signal *s,
			const struct names *names, char *at, size_t len)
{
	const char *name = names__text(names, s->name), *comm = names__text(names, s->comm);

	if (s->from_pid < 0)
		snprintf(at, len, "%.20s came from the kernel itself", name);
	else if (!by_other(p, s) && s->code > 0)
		snprintf(at, len, "%.20s: a fault of its thread %.16s (%d)", name, comm,
			 s->from_tid);
	else if (!by_other(p, s))
		snprintf(at, len, "%.20s was its own doing, by its thread %.16s (%d)", name, comm,
			 s->from_tid);
	else if (s->code > 0 && s->nr == SIGSTOP)
		snprintf(at, len, "a debugger stopped it: %.16s[%d]", comm, s->from_pid);
	else if (s->code > 0)
		snprintf(at, len,
			 "%.20s came as the first process of its container ended: %.16s[%d]", name,
			 comm, s->from_pid);
	else
		snprintf(at, len, "%.20s was sent by %.16s[%d], user %d", name, comm, s->from_pid,
			 s->from_uid);
}

bool report_tell_end(const struct report_proc *p, const struct names *names, char *at, size_t len)
{
	const struct report_signal *s = end_signal(p, names);
	int n = 0;

	if (p->oom) {
		snprintf(at, len, "the kernel killed it to get memory back (out of memory)");
		return true;
	}
	if (!report_by_signal(names, p->end) && p->failed)
		n = snprintf(at, len, "its process had exited with status %d%s", p->exit_code,
			     s ? "; " : "");
	if (!s)
		return n;
	tell_sender(p, s, names, at + n, len - (size_t)n);
	n = (int)strlen(at);
	if (p->last - s->ts >= INT64_C(1000000))
		snprintf(at + n, len - (size_t)n, ", %.1f ms before its end",
			 (double)(p->last - s->ts) / 1e6);
	return true;
}

bool report_tell_stop(const struct report_proc *p, int64_t until, const struct names *names,
		      char *at, size_t len)
{
	const struct report_signal *s;
	uint32_t i;

	for (i = 0; (s = from_last(p->stops, p->nstops, i)); i++) {
		if (s->ts > until)
			continue;
		tell_sender(p, s, names, at, len);
		return true;
	}
	return false;
}

/* Another process was sent the same one by the same process about then: somebody ends a job. */
static bool is_one_of_many(const struct report *r, const struct report_proc *p,
			   const struct report_signal *s)
{
	const struct report_signal *o;
	const struct report_proc *q;

	for (q = r->procs; q; q = q->next) {
		o = q != p && q->node == p->node ? end_signal(q, r->names) : NULL;
		if (o && o->nr == s->nr && o->from_pid == s->from_pid &&
		    llabs(o->ts - s->ts) <= AT_ONCE_NS)
			return true;
	}
	return false;
}

bool report_has_crashed(const struct report *r, const struct report_proc *p, int64_t *when)
{
	const struct report_signal *s;

	if (!report_by_signal(r->names, p->end))
		return false;
	s = end_signal(p, r->names);
	*when = (s ? s->ts : p->last) + p->offset;
	return p->oom || (s && (!by_other(p, s) || !is_one_of_many(r, p, s)));
}
