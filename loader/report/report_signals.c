// SPDX-License-Identifier: BSD-2-Clause
/* Which of the signals that a process was sent ended or stopped it, and who sent that: evidence of verdicts. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "report_priv.h"

#define HANDLED_NS (30 * INT64_C(1000000000)) /* who cleans up first ends so much later at most */

static bool stops(int32_t nr)
{
	return nr == SIGSTOP || nr == SIGTSTP || nr == SIGTTIN || nr == SIGTTOU;
}

/* By a call of its own, as abort(3) makes it, or a handler that has cleaned up and sends the signal again. */
static bool by_itself(const struct report_proc *p, const struct report_signal *s)
{
	return s->from_pid == p->host_pid && s->code <= 0;
}

static bool by_other(const struct report_proc *p, const struct report_signal *s)
{
	return s->from_pid >= 0 && s->from_pid != p->host_pid;
}

/* In place of one of the same number and kind, or of the oldest. */
void report_note_signal(struct report_proc *p, const struct report_signal *s)
{
	struct report_signal *at = p->ends, *e;

	if (stops(s->nr)) {
		p->stops[p->nstops++ % REPORT_SIGNALS] = *s;
		return;
	}
	if (s->nr == SIGCONT)
		return;
	for (e = p->ends; e < p->ends + REPORT_SIGNALS; e++) {
		if (e->nr == s->nr && by_itself(p, e) == by_itself(p, s)) {
			at = e;
			break;
		}
		if (!e->nr || (at->nr && e->ts < at->ts))
			at = e;
	}
	*at = *s;
}

/* The latest of that number that it did not send itself, or that it did; NULL: none is known. */
static const struct report_signal *latest(const struct report_proc *p, int32_t nr, bool itself)
{
	const struct report_signal *s;

	for (s = p->ends; s < p->ends + REPORT_SIGNALS; s++)
		if (s->nr == nr && by_itself(p, s) == itself)
			return s;
	return NULL;
}

/* The one that ended it: if a handler sent it again, the one before. */
static const struct report_signal *deadly(const struct report_proc *p, int32_t nr)
{
	const struct report_signal *own = latest(p, nr, true), *s = latest(p, nr, false);

	return s && (!own || own->ts - s->ts <= HANDLED_NS) ? s : own;
}

/* The latest that it had not sent itself, not long before, and that it handled; @faults: its own as well. NULL: none is known. */
static const struct report_signal *last_handled(const struct report_proc *p, int64_t before,
						bool faults)
{
	const struct report_signal *s, *last = NULL;

	for (s = p->ends; s < p->ends + REPORT_SIGNALS; s++)
		if (s->nr && s->handled && !by_itself(p, s) &&
		    (faults || s->from_pid != p->host_pid) && s->ts <= before &&
		    before - s->ts <= HANDLED_NS && (!last || s->ts > last->ts))
			last = s;
	return last;
}

static const struct report_signal *asked_to_end(const struct report_proc *p, int64_t before)
{
	return last_handled(p, before, false);
}

static const struct report_signal *end_signal(const struct report_proc *p,
					      const struct names *names)
{
	if (!report_by_signal(names, p->end))
		return p->failed ? last_handled(p, p->last, true) : NULL;
	return deadly(p, (int32_t)strtol(names__text(names, p->end) + strlen("signal "), NULL, 10));
}

/* Whose it was: a clause that begins with the signal's name. */
static void tell_sender(const struct report_proc *p, const struct report_signal *s,
			const struct names *names, char *at, size_t len)
{
	const char *name = names__text(names, s->name), *comm = names__text(names, s->comm);

	if (s->from_pid < 0)
		snprintf(at, len, "%.20s came from the kernel itself, not from a process", name);
	else if (by_itself(p, s))
		snprintf(at, len, "%.20s was its own doing, by its thread %.16s (%d)", name, comm,
			 s->from_tid);
	else if (!by_other(p, s))
		snprintf(at, len, "%.20s: a fault of its thread %.16s (%d)", name, comm,
			 s->from_tid);
	else if (s->exiting && s->nr == SIGKILL && s->code > 0)
		snprintf(at, len,
			 "%.20s came as the first process of its container ended: %.16s[%d]", name,
			 comm, s->from_pid);
	else if (s->exiting)
		snprintf(at, len, "%.20s came as %.16s[%d] ended", name, comm, s->from_pid);
	else if (s->code > 0 && s->nr == SIGSTOP)
		snprintf(at, len, "a debugger stopped it: %.16s[%d]", comm, s->from_pid);
	else
		snprintf(at, len, "%.20s was sent by %.16s[%d], user %u", name, comm, s->from_pid,
			 s->from_uid);
}

bool report_tell_end(const struct report_proc *p, const struct names *names, char *at, size_t len)
{
	const struct report_signal *s = end_signal(p, names);
	int n = 0;

	if (p->oom && !(s && by_other(p, s))) { /* else it was dying when memory ran out */
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

	for (i = 0; i < p->nstops && i < REPORT_SIGNALS; i++) {
		s = &p->stops[(p->nstops - 1 - i) % REPORT_SIGNALS];
		if (s->ts > until)
			continue;
		tell_sender(p, s, names, at, len);
		return true;
	}
	return false;
}

int64_t report_died_at(const struct report_proc *p, const struct names *names)
{
	const struct report_signal *s =
		report_by_signal(names, p->end) ? end_signal(p, names) : asked_to_end(p, p->last);

	/* a core dump keeps it for a while, and connections may outlive it */
	return (s ? s->ts : p->gone ?: p->last) + p->offset;
}

static int died_first(const void *a, const void *b)
{
	const struct report_proc *x = *(struct report_proc *const *)a,
				 *y = *(struct report_proc *const *)b;

	if (x->job != y->job) /* one at a time */
		return x->job->index < y->job->index ? -1 : 1;
	if (x->died != y->died)
		return x->died < y->died ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* What hangs as a signal ended it does so for who failed first, in whatever way: a launcher ends the others then. */
static void give_blame(struct report_proc *from, struct report_proc *to)
{
	if (!from->killed)
		return;
	report_killed(from, false);
	report_killed(to, true);
}

void report_note_deaths(struct report *r)
{
	struct report_proc **list = calloc(r->nprocs + 1, sizeof(*list)), *p, *first = NULL;
	uint32_t n = 0, i;

	if (!list) {
		r->err = -ENOMEM;
		return;
	}
	for (p = r->procs; p; p = p->next) {
		if (!p->failed)
			continue;
		p->died = report_died_at(p, r->names);
		list[n++] = p;
	}
	qsort(list, n, sizeof(*list), died_first);
	for (i = 0; i < n; i++) {
		p = list[i];
		if (i && p->job == list[i - 1]->job)
			p->along = p->self == list[i - 1]->self /* another recording of it */
					   ? list[i - 1]->along
					   : p->died - list[i - 1]->died <= REPORT_FAILS;
		if (p->along)
			give_blame(p, first);
		else
			first = p;
	}
	free(list);
}

bool report_has_exited(const struct report *r, const struct report_proc *p)
{
	return p->failed && !report_by_signal(r->names, p->end) && !asked_to_end(p, p->last);
}

/* By its own mistake, or for want of memory: not by somebody who ends a job, nor because it was asked to end. */
bool report_has_crashed(const struct report *r, const struct report_proc *p, int64_t *when)
{
	const struct report_signal *s;

	if (!report_by_signal(r->names, p->end))
		return false;
	s = end_signal(p, r->names);
	if (!s || by_other(p, s) || (s->from_pid < 0 && !p->oom) || asked_to_end(p, s->ts))
		return false;
	*when = s->ts + p->offset;
	return true;
}
