// SPDX-License-Identifier: BSD-2-Clause
/* Events and the scheduler; see sched_join.h. */
#include <stdlib.h>
#include <string.h>
#include "sched_join.h"

#define SERVED_MAX 64 /* threads of one operation: NCCL has one progress thread a communicator */

static bool is_operation(const struct corr_event *ev)
{
	return ev->what == SCOPE_COLL || ev->what == SCOPE_P2P;
}

/* What a thread did before it called is what tells why it came late. Without memory that is not told. */
static void since_last_call(struct corr_event *ev, struct sched_thread *thread)
{
	if (thread->called.ns && thread->called.ns < ev->start_ns) {
		ev->before = malloc(sizeof(*ev->before));
		if (ev->before)
			*ev->before = thread->called;
	}
	thread->called = ev->sched.from;
}

void sched_join__start(struct corr_event *ev, struct sched_thread *thread)
{
	if (!thread)
		return;
	ev->sched.thread = sched_thread__get(thread);
	sched_thread__mark(thread, ev->start_ns, &ev->sched.from);
	if (is_operation(ev))
		since_last_call(ev, thread);
	if (ev->what == SCOPE_PROXY_CTRL)
		thread->ctrl_ns = ev->start_ns;
}

/* Before API 4 a ProxyOp is started for the progress thread by another: the one that worked counts. */
static void move(struct correlate *c, struct corr_event *ev, struct sched_thread *thread)
{
	sched_thread__put(c->sched, ev->sched.thread);
	ev->sched.thread = NULL;
	sched_join__start(ev, thread);
}

void sched_join__stop(struct correlate *c, struct corr_event *ev, struct sched_thread *thread)
{
	if (ev->what == SCOPE_PROXY_OP && thread && thread != ev->sched.thread)
		move(c, ev, thread);
	if (!ev->sched.thread)
		return;
	sched_thread__mark(ev->sched.thread, ev->stop_ns, &ev->sched.to);
	ev->sched.elsewhere = thread != ev->sched.thread;
}

void sched_join__settle(struct corr_event *ev)
{
	if (ev->sched.elsewhere && ev->stopped)
		sched_thread__mark_after(ev->sched.thread, &ev->sched.from, ev->stop_ns,
					 &ev->sched.to);
	ev->sched.elsewhere = false;
}

static struct corr_span *served_get(struct corr_event *op, struct sched_thread *thread)
{
	struct corr_span *grown;
	uint32_t i;

	for (i = 0; i < op->nserved; i++)
		if (op->served[i].thread == thread)
			return &op->served[i];
	if (op->nserved == SERVED_MAX)
		return NULL;
	grown = realloc(op->served, (op->nserved + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	op->served = grown;
	grown += op->nserved++;
	memset(grown, 0, sizeof(*grown));
	grown->thread = sched_thread__get(thread);
	grown->from.ns = UINT64_MAX;
	return grown;
}

/*
 * A ProxyOp stops that counts as open. If it was another thread that had started it, that one may have done
 * nothing else for the operation.
 */
static void served_close(struct corr_event *op, struct corr_event *proxy_op)
{
	const struct sched_thread *thread = proxy_op->sched.counted;
	struct corr_span *s = op->served;

	proxy_op->sched.counted = NULL;
	while (s < op->served + op->nserved && s->thread != thread)
		s++;
	if (s < op->served + op->nserved && s->open)
		s->open--;
}

void sched_join__served(struct corr_event *op, struct corr_event *proxy_op)
{
	const struct sched_mark *to = &proxy_op->sched.to;
	struct sched_thread *thread = proxy_op->sched.thread;
	struct corr_span *s;

	if (!thread || proxy_op->what != SCOPE_PROXY_OP)
		return;
	/* Started by the application's thread: it will turn out whose it is when it stops. */
	if (!proxy_op->stopped && thread == op->sched.thread)
		return;
	s = served_get(op, thread);
	if (!s)
		return;
	if (proxy_op->sched.from.ns < s->from.ns)
		s->from = proxy_op->sched.from;
	if (!proxy_op->stopped) {
		s->open++;
		proxy_op->sched.counted = thread;
		return;
	}
	if (proxy_op->sched.counted)
		served_close(op, proxy_op);
	/* The last step's end, if the thread itself made it. */
	if (proxy_op->child_ns && proxy_op->sched_child.ns == proxy_op->child_ns)
		to = &proxy_op->sched_child;
	if (to->ns > s->to.ns)
		s->to = *to;
}

void sched_join__silent(struct corr_event *op, struct corr_event *proxy_op)
{
	if (proxy_op->sched.counted)
		served_close(op, proxy_op);
}

void sched_join__release(struct correlate *c, struct corr_event *ev)
{
	struct sched_thread *thread = ev->sched.thread;
	uint32_t i;

	if (thread && ev->what == SCOPE_PROXY_CTRL && thread->ctrl_ns == ev->start_ns)
		thread->ctrl_ns = 0;
	sched_thread__put(c->sched, thread);
	ev->sched.thread = NULL;
	ev->sched.elsewhere = false;
	free(ev->before);
	ev->before = NULL;
	for (i = 0; i < ev->nserved; i++)
		sched_thread__put(c->sched, ev->served[i].thread);
	free(ev->served);
	ev->served = NULL;
	ev->nserved = 0;
}

/* Nothing is said of a span if all of it is unknown. */
static void forget_unknown(struct sched_span *span)
{
	if (span->span_ns && span->unknown_ns == span->span_ns)
		sched_span__clear(span);
}

static void known(const struct correlate *c, const struct corr_span *s, const struct sched_mark *to,
		  struct sched_span *span)
{
	sched__span(c->sched, s->thread, &s->from, to, span);
	forget_unknown(span);
}

/* Whoever reads a span looks at `threads` first. */
static void join_clear(struct sched_join *join)
{
	join->all.threads = 0;
	join->app.threads = 0;
	join->proxy.threads = 0;
	join->before.threads = 0;
	join->unfinished_in = NULL;
}

/* Until when an event that has not stopped is told. */
static uint64_t now_of(const struct correlate *c, const struct corr_event *ev)
{
	return c->now_ns > ev->start_ns ? c->now_ns : ev->start_ns;
}

/* An operation's own thread, and those that served it, until it really ended. */
static void of_operation(const struct correlate *c, const struct corr_event *ev,
			 struct sched_join *join)
{
	uint64_t end = ev->stopped ? ev->exec_stop_ns : now_of(c, ev);
	const struct corr_span *s;
	struct sched_span one;
	struct sched_mark to;
	uint32_t i;

	if (ev->sched.thread) {
		sched_thread__mark_after(ev->sched.thread, &ev->sched.from, end, &to);
		known(c, &ev->sched, &to, &join->app);
	}
	if (ev->before) {
		sched__span(c->sched, ev->sched.thread, ev->before, &ev->sched.from, &join->before);
		forget_unknown(&join->before);
	}
	for (i = 0; i < ev->nserved; i++) {
		s = &ev->served[i];
		/* Or it started a ProxyOp for another, and that was all. */
		if (s->from.ns > end || (!s->open && !s->to.ns))
			continue;
		to = s->to;
		/* One of its ProxyOps is open still, or has stopped after the last step. */
		if (s->open || to.ns > end)
			sched_thread__mark_after(s->thread, &s->from, end, &to);
		known(c, s, &to, &one);
		if (one.threads)
			sched_span__add(&join->proxy, &one);
	}
	if (join->app.threads)
		sched_span__add(&join->all, &join->app);
	if (join->proxy.threads)
		sched_span__add(&join->all, &join->proxy);
}

void sched_join__of(const struct correlate *c, const struct corr_event *ev, struct sched_join *join)
{
	struct sched_mark now;

	join_clear(join);
	if (!c->sched)
		return;
	if (is_operation(ev)) {
		of_operation(c, ev, join);
	} else if (ev->sched.thread && ev->stopped) {
		known(c, &ev->sched, &ev->sched.to, &join->all);
	} else if (ev->sched.thread) {
		sched_thread__mark_after(ev->sched.thread, &ev->sched.from, now_of(c, ev), &now);
		known(c, &ev->sched, &now, &join->all);
	}
	if (!ev->stopped && ev->sched.thread)
		join->unfinished_in = sched_thread__last(ev->sched.thread);
}

/* An operation's proxy threads: those with ProxyOps that are open, and what the others did for it. */
static void of_served_now(const struct correlate *c, const struct corr_event *ev, uint64_t now_ns,
			  struct sched_span *proxy)
{
	const struct corr_span *s;
	struct sched_span one;
	uint32_t i;

	for (i = 0; i < ev->nserved; i++) {
		s = &ev->served[i];
		if (s->from.ns > now_ns || (!s->open && !s->to.ns))
			continue;
		if (s->open)
			sched__span_now(c->sched, s->thread, &s->from, now_ns, &one);
		else
			sched__span(c->sched, s->thread, &s->from, &s->to, &one);
		forget_unknown(&one);
		if (one.threads)
			sched_span__add(proxy, &one);
	}
}

void sched_join__now(const struct correlate *c, const struct corr_event *ev,
		     struct sched_join *join)
{
	uint64_t now_ns = now_of(c, ev);

	join_clear(join);
	if (!c->sched || !ev->sched.thread)
		return;
	join->unfinished_in = sched_thread__last(ev->sched.thread);
	sched__span_now(c->sched, ev->sched.thread, &ev->sched.from, now_ns, &join->all);
	forget_unknown(&join->all);
	if (!is_operation(ev))
		return;
	join->app = join->all;
	of_served_now(c, ev, now_ns, &join->proxy);
	if (join->proxy.threads)
		sched_span__add(&join->all, &join->proxy);
}
