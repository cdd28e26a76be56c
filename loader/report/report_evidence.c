// SPDX-License-Identifier: BSD-2-Clause
/* What a verdict is told with: lines of figures, of the cause that report_verdict.c has found. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "human.h"
#include "report_priv.h"
#include "report_text_priv.h"

/* printf behind what is there, as far as there is room. */
static __attribute__((format(printf, 3, 4))) void append(char *at, size_t len, const char *fmt, ...)
{
	size_t n = strlen(at);
	va_list args;

	va_start(args, fmt);
	vsnprintf(at + n, len - n, fmt, args);
	va_end(args);
}

/* By the sender; or, if that is not in the input, by what the receiver saw. */
static void tell_loss(const struct report_cause *c, struct names *names, struct report_verdict *v)
{
	const struct report_link *l = c->link;
	uint32_t n =
		l->send ? (uint32_t)most(l->retrans, c->far ? c->far->peer_retrans : 0) : l->ooo;
	const char *s = human__s(n);
	char what[80];

	if (l->send)
		snprintf(what, sizeof(what), "%u segment%s sent again (%u needed)", n, s,
			 report_needed(l, c->far));
	else
		snprintf(what, sizeof(what), "%u segment%s came out of order", n, s);
	snprintf(v->evidence[0], sizeof(v->evidence[0]), "%s, %u dropped here%s%.40s; waited %s",
		 what, l->drops, l->reason ? ": " : "", names__text(names, l->reason),
		 words__span(c->ns));
}

static void tell_flow(const struct report_op *op, const struct report_cause *c, struct names *names,
		      struct report_verdict *v)
{
	const struct report_link *l = c->link;
	char peer[32] = "its other peers";

	if (l->peer >= 0)
		snprintf(peer, sizeof(peer), "rank %d", report_rank_in(op->comm, l->peer));
	snprintf(v->evidence[1], sizeof(v->evidence[1]), "flow of rank %d %s %s: busy %s",
		 report_rank(c->part->proc, c->part->rank), l->send ? "to" : "from", peer,
		 words__span(l->busy));
	if (l->rtt)
		append(v->evidence[1], sizeof(v->evidence[1]), ", rtt %s (least %s)",
		       words__span(l->rtt), words__span(l->rtt_min));
	switch (c->code) {
	case CODE_NET_LOSS:
		tell_loss(c, names, v);
		break;
	case CODE_RECEIVER:
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "the receiver's window was shut for %s of %s", words__span(c->ns),
			 words__span(v->duration));
		break;
	case CODE_SENDER:
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "the send buffer was too small for %s of %s", words__span(c->ns),
			 words__span(v->duration));
		break;
	default:
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "data was in flight for %s of %s, and neither end held it up",
			 words__span(c->ns), words__span(v->duration));
	}
}

/* What else is odd is of other ports, or of other counters. */
static void tell_ports(const struct report_op *op, const struct report_cause *c,
		       const struct names *names, struct report_verdict *v)
{
	const struct report_moved *also;
	size_t n;
	int sign;

	n = (size_t)snprintf(v->evidence[0], sizeof(v->evidence[0]),
			     "%.48s %u meanwhile, on %.40s; ",
			     names__text(names, c->moved->counter), c->moved->n,
			     names__text(names, c->moved->port));
	if (c->odd_ns)
		snprintf(v->evidence[0] + n, sizeof(v->evidence[0]) - n, "no data came for %s",
			 words__span(c->odd_ns));
	else
		snprintf(v->evidence[0] + n, sizeof(v->evidence[0]) - n,
			 "nothing else explains %s of the extra %s", words__span(c->ns),
			 words__span(v->excess));
	n = (size_t)snprintf(v->evidence[1], sizeof(v->evidence[1]),
			     "a port counts for all that use it");
	for (sign = 0; sign < NR_SIGNS && n < sizeof(v->evidence[1]); sign++) {
		also = report_sign_most(op, sign);
		if (also && also != c->moved)
			n += (size_t)snprintf(v->evidence[1] + n, sizeof(v->evidence[1]) - n,
					      ", %.40s %u", names__text(names, also->counter),
					      also->n);
	}
}

static const char *const code_says[NR_CODES] = {
	[CODE_PREEMPTED] = "its progress thread was ready but without a CPU",
	[CODE_BLOCKED] = "its progress thread was asleep",
	[CODE_THROTTLED] = "its progress thread was held back by a CPU quota",
	[CODE_BUSY] = "its progress thread was busy on a CPU, while the others' waited,",
	[CODE_INTERRUPTS] = "interrupts took the CPU of its progress thread",
	[CODE_GPU_WAIT] = "its transfers waited for the GPU",
	[CODE_STOPPED] = "its threads were stopped (SIGSTOP or a debugger)",
};

/* One state, if there was much of it: how long, and most of that in or behind what; of two, if both are much. */
static void tell_state(char *at, size_t len, bool first, const char *state, int64_t ns,
		       int64_t span, const char *how, const struct report_who who[2],
		       const struct names *names)
{
	if (ns < span / 10)
		return;
	append(at, len, "%s%s %s", first ? "" : ", ", state, words__span(ns));
	if (!who || !who[0].name)
		return;
	append(at, len, " (%s%.24s %s", how, names__text(names, who[0].name),
	       words__span_like(who[0].ns, ns));
	if (who[1].name && who[1].ns >= span / 10)
		append(at, len, ", %.24s %s", names__text(names, who[1].name),
		       words__span_like(who[1].ns, ns));
	append(at, len, ")");
}

/* Whether it was for a tenth of the time of a role's threads; then for how long of each. */
static int64_t was_long(const struct report_who *w, const struct report_role *role)
{
	return w->ns && w->ns >= role->span / 10 ? report_per_thread(w->ns, role) : 0;
}

/* Whom a role's threads waited for in sleeps, and in which files they were then. */
static void tell_sleeps(const struct report_proc *p, const struct report_role *role,
			const struct names *names, char *at, size_t len)
{
	const struct report_who *w;
	uint32_t i;

	*at = '\0';
	for (i = 0, w = role->waker; i < REPORT_SLEEPS && was_long(w, role); i++, w++) {
		append(at, len, "%s %s for ", *at ? "," : "it waited",
		       words__span(was_long(w, role)));
		if (w->pid == p->host_pid)
			append(at, len, "its own %.15s", names__text(names, w->name));
		else
			append(at, len, "%.15s[%d]", names__text(names, w->name), w->pid);
	}
	for (i = 0, w = role->file; i < REPORT_SLEEPS && was_long(w, role); i++, w++)
		append(at, len, "%s %s in calls on %.64s",
		       i     ? ","
		       : *at ? ", and slept"
			     : "it slept",
		       words__span(was_long(w, role)), names__text(names, w->name));
}

/* What the application's thread did until it called. */
static void tell_before(const struct report_part *p, const struct names *names, char *at,
			size_t len)
{
	const struct report_role *b = &p->before;
	size_t begin;

	snprintf(at, len, "in the %s before, its application (thread %d) was ",
		 words__span(b->span), p->tid);
	begin = strlen(at);
	tell_state(at, len, true, "on a CPU", b->on, b->span, "", NULL, names);
	tell_state(at, len, !at[begin], "asleep", b->blocked, b->span, "", b->in, names);
	tell_state(at, len, !at[begin], "ready without a CPU", b->runq, b->span, "behind ",
		   b->behind, names);
	if (!at[begin])
		append(at, len, "not seen");
}

static void tell_late(const struct report_op *op, const struct report_cause *c,
		      const struct names *names, struct report_verdict *v)
{
	if (report_op_duration(op) - op->own > c->ns / 10)
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "took %s longer than its peers to call this after the operation before, "
			 "which had held ranks up",
			 words__span(c->ns));
	else
		snprintf(v->evidence[0], sizeof(v->evidence[0]), "came %s after its peers, %s",
			 words__span(c->ns),
			 c->trust != 1 ? "judging by how long each rank was in it"
			 : c->ns <= report_late_on_node(op)
				 ? "by their node's clock"
				 : "by the clock that their nodes were merged into");
	if (c->part->before.threads && c->part->before.span >= c->ns / 2) {
		tell_before(c->part, names, v->evidence[1], sizeof(v->evidence[1]));
		tell_sleeps(c->part->proc, &c->part->before, names, v->evidence[2],
			    sizeof(v->evidence[2]));
	} else {
		snprintf(v->evidence[1], sizeof(v->evidence[1]),
			 "until then its application (thread %d) had not called NCCL for this; "
			 "%u rank%s seen",
			 c->part->tid, op->nparts, human__s(op->nparts));
	}
}

/* It is the end of its recording that hides when it came. */
static void tell_late_unseen(const struct report_op *op, const struct report_cause *c,
			     struct report_verdict *v)
{
	snprintf(v->evidence[0], sizeof(v->evidence[0]),
		 "had not called it when its recording ended; the others, which had, were in it "
		 "for %s",
		 words__span(v->duration));
	snprintf(v->evidence[1], sizeof(v->evidence[1]),
		 "nothing else explains %s of the extra %s; %u rank%s seen", words__span(c->ns),
		 words__span(v->excess), op->nparts, human__s(op->nparts));
}

static void tell_late_kernel(const struct report_cause *c, struct report_verdict *v)
{
	snprintf(v->evidence[0], sizeof(v->evidence[0]),
		 "its GPU began the kernel %s after its application had come, "
		 "%s later than its peers' (+-%s)",
		 words__span(c->part->kernel.at - c->part->start), words__span(c->ns),
		 words__span(c->part->kernel.error));
	snprintf(v->evidence[1], sizeof(v->evidence[1]),
		 "the GPU had something else to do: what is before it in its stream, or of another "
		 "process");
}

/* When the last of it was seen that moved, and who did not come was gone by then. */
static bool had_exited(const struct report_op *op, const struct report_proc *p)
{
	uint32_t i;

	if (!p->footer || !p->failed)
		return false;
	for (i = 0; i < op->nparts; i++)
		if (op->parts[i]->proc->last + op->parts[i]->proc->offset < p->last + p->offset)
			return false;
	return true;
}

/* Whether a call does nothing but wait, so that where in the kernel it does adds nothing to its name. */
static bool is_wait(const char *call)
{
	static const char *const names[] = {
		"futex",	   "futex_wait",   "futex_waitv",   "nanosleep",
		"clock_nanosleep", "poll",	   "ppoll",	    "select",
		"pselect6",	   "pause",	   "epoll_wait",    "epoll_pwait",
		"epoll_pwait2",	   "wait4",	   "waitid",	    "rt_sigsuspend",
		"rt_sigtimedwait", "io_getevents", "io_uring_enter"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(call, names[i]))
			return true;
	return false;
}

/* " (a < b < c)", or as many of these as there is room for. */
static void append_stack(char *at, size_t len, const char *stack)
{
	size_t used = strlen(at), n = strlen(stack), room = len > used + 4 ? len - used - 4 : 0;

	while (n > room) {
		while (n && stack[n] != '<')
			n--;
		n -= n ? 1 : 0; /* the space before it */
		if (!n)
			return;
	}
	append(at, len, " (%.*s)", (int)n, stack);
}

void report_tell_sleep(const struct report_thread *t, const struct names *names, char *at,
		       size_t len)
{
	const char *why = names__text(names, t->why);

	at[0] = 0;
	if (strcmp(why, "other")) /* not known */
		append(at, len, "%.24s", why);
	if (t->file)
		append(at, len, " on %.64s", names__text(names, t->file));
	if (t->stack && !is_wait(why))
		append_stack(at, len, names__text(names, t->stack));
}

/* What the thread that would call next is in when the recording ends, if it has been that for long. */
static void tell_asleep(const struct report_proc *p, const struct names *names, char *at,
			size_t len)
{
	const struct report_thread *t;
	size_t n;

	HASH_FIND(hh, p->threads, &p->caller, sizeof(p->caller), t);
	if (!t || t->asleep < NSEC_PER_SEC)
		return;
	snprintf(at, len, "when %s, its application (thread %u) had been asleep for %.1f s, in ",
		 p->newest && report_by_signal(names, p->newest->end) ? "it was killed"
								      : "the recording ended",
		 t->tid, (double)t->asleep / 1e9);
	n = strlen(at);
	report_tell_sleep(t, names, at + n, len - n);
	if (!at[n])
		at[n - strlen(", in ")] = 0;
}

/* Who stopped it before @until, or which cgroup it was frozen with; false: not known. */
static bool tell_stop(const struct report_cause *c, int64_t until, const struct names *names,
		      char *at, size_t len)
{
	if (!c->frozen)
		return report_tell_stop(c->proc, until, names, at, len);
	if (!c->proc->cgroup)
		return false;
	snprintf(at, len, "its cgroup: %.200s", names__text(names, c->proc->cgroup));
	return true;
}

/* What is reset as it ends follows from that. */
static void tell_reset_before(const struct report_proc *p, const struct names *names, char *at,
			      size_t len)
{
	int64_t ns = report_died_at(p, names) - p->reset_ns - p->offset;
	int32_t rank = p->reset_by && !p->reset_by->several ? p->reset_by->rank : -1;
	bool in = !strcmp(names__text(names, p->reset_why), "reset-in");

	*at = 0;
	if (!p->reset_ns || ns < 0 || ns > REPORT_FAILS)
		return;
	snprintf(at, len, "%s before its end, its connection", words__span(ns));
	if (rank >= 0)
		append(at, len, " to rank %d", rank);
	append(at, len, " was reset, by %s", in ? "the other end" : "itself");
}

void report_tell_failed(const struct report_proc *p, const struct names *names,
			char (*evidence)[256])
{
	uint32_t at = report_tell_end(p, names, evidence[1], sizeof(evidence[1])) ? 2 : 1;

	tell_reset_before(p, names, evidence[at], sizeof(evidence[at]));
}

static void tell_missing(const struct report_op *op, const struct report_cause *c,
			 struct names *names, struct report_verdict *v)
{
	if (c->code == CODE_STOPPED)
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "was %s before it called this operation; the others have been waiting in "
			 "it for %s",
			 c->frozen ? "frozen with its cgroup" : "stopped (SIGSTOP or a debugger)",
			 words__span(v->duration));
	else if (c->died && report_by_signal(names, c->proc->end))
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "its process was ended by %.40s; the others are waiting for it",
			 names__text(names, c->proc->end));
	else if (c->died)
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "its process exited; the others are waiting for it");
	else
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "did not call this operation; the others have been waiting in it for %s",
			 words__span(v->duration));
	if (c->code == CODE_STOPPED)
		tell_stop(c, INT64_MAX, names, v->evidence[1], sizeof(v->evidence[1]));
	else if (c->died || had_exited(op, c->proc))
		report_tell_failed(c->proc, names, v->evidence);
	else
		tell_asleep(c->proc->self, names, v->evidence[1], sizeof(v->evidence[1]));
}

/* The other end, as far as its rank and its process are known: in whichever communicator, and as its job sees it. */
static void tell_reset_end(const struct report_proc *p, char *at, size_t len)
{
	const struct report_proc *by = p->reset_by;

	if (by && by->rank >= 0 && !by->several)
		append(at, len, ": rank %d", by->rank);
	else if (p->reset_rank >= 0)
		append(at, len, ": rank %d of its communicator", p->reset_rank);
	if (p->reset_pid >= 0)
		append(at, len, "%s process %d", strchr(at, ':') ? "," : ":",
		       by ? by->host_pid : p->reset_pid);
}

/* Who is told of a reset is not who did it: that was the other end of one that came in. */
void report_tell_reset(const struct report_proc *p, const struct names *names, char *at, size_t len)
{
	if (strcmp(names__text(names, p->reset_why), "reset-in")) {
		snprintf(at, len, "this end reset it");
		return;
	}
	snprintf(at, len, "the other end reset it");
	tell_reset_end(p, at, len);
	if (strchr(at, ':') && p->reset_host)
		append(at, len, " on %.24s", names__text(names, p->reset_host));
}

void report_tell(const struct report_op *op, const struct report_cause *c, struct names *names,
		 struct report_verdict *v)
{
	if (c->code == CODE_LATE_RANK && !c->part) {
		tell_late_unseen(op, c, v);
	} else if (c->code == CODE_LATE_RANK) {
		tell_late(op, c, names, v);
	} else if (c->code == CODE_LATE_KERNEL) {
		tell_late_kernel(c, v);
	} else if (c->code == CODE_MISSING || (c->code == CODE_STOPPED && !c->part)) {
		tell_missing(op, c, names, v);
	} else if (c->code == CODE_RESET) {
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "its connection was reset (%.20s) within the operation",
			 names__text(names, c->proc->reset_why));
		report_tell_reset(c->proc, names, v->evidence[1], sizeof(v->evidence[1]));
	} else if (c->moved) {
		tell_ports(op, c, names, v);
	} else if (c->link) {
		tell_flow(op, c, names, v);
	} else if (c->part) {
		snprintf(v->evidence[0], sizeof(v->evidence[0]), "%s for %s of %s",
			 c->frozen ? "its threads were frozen with their cgroup"
				   : code_says[c->code],
			 words__span(c->ns), words__span(v->duration));
		if (c->code == CODE_STOPPED &&
		    tell_stop(c, c->part->stop, names, v->evidence[1], sizeof(v->evidence[1])))
			return;
		if (c->part->proxy.span)
			snprintf(
				v->evidence[1], sizeof(v->evidence[1]),
				"meanwhile it was on a CPU for %s; ",
				words__span(report_per_thread(c->part->proxy.on, &c->part->proxy)));
		append(v->evidence[1], sizeof(v->evidence[1]),
		       "it waited for others for %.0f %% of the time",
		       100 * report_waiting(c->part));
		if (c->code == CODE_BLOCKED)
			tell_sleeps(c->part->proc, &c->part->proxy, names, v->evidence[2],
				    sizeof(v->evidence[2]));
	}
}
