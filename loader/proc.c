// SPDX-License-Identifier: BSD-2-Clause
/* The processes being recorded; see proc.h. */
#include <stdlib.h>
#include <string.h>
#include "decode_net.h"
#include "log.h"
#include "proc.h"
#include "session.h"
#include "trace.h"

const char *const loss_names[LOSS_CAUSES] = {
	[LOSS_RING_FULL] = "ring-full",
	[LOSS_THREAD_BUFFER] = "thread-buffer",
	[LOSS_ORPHAN] = "orphan",
	[LOSS_WRITE_ERROR] = "write-error",
	[LOSS_CONTEXT] = "context-ring-full",
};

static struct proc *proc_make(struct session *s, const struct scope_ev_hdr *id,
			      const struct proc_key *key)
{
	const struct corr_sink sink_of = {
		.event = trace__event, .state = trace__state, .lifecycle = trace__lifecycle};
	struct proc *p = calloc(1, sizeof(*p));
	struct corr_sink sink = sink_of;

	if (!p)
		return NULL;
	p->key = *key;
	p->id = *id;
	p->session = s;
	p->from_start = id->start_ns > s->attached_ns;
	p->begin_ns = p->from_start ? id->start_ns : s->attach_ns;
	p->out.fd = -1;
	p->target.mem = -1;
	sink.arg = p;
	if (correlate__init(&p->corr, &sink, id->ns_tgid)) {
		free(p);
		return NULL;
	}
	p->corr.from_start = p->from_start;
	p->corr.sched = s->sched_mode ? &s->sched : NULL;
	net_join__init(&p->net, &s->net.flows);
	p->corr.net = s->net_mode ? &p->net : NULL;
	p->net.complete_ns = s->net.complete_ns;
	HASH_ADD(hh, s->procs, key, sizeof(p->key), p);
	s->summary.procs++;
	pr_debug("Recording process %u (%u in its namespace) '%.16s'\n", id->tgid, id->ns_tgid,
		 id->comm);
	return p;
}

struct proc *proc__get(struct session *s, const struct scope_ev_hdr *id, bool make)
{
	struct proc_key key = {.start_ns = id->start_ns, .tgid = id->tgid};
	struct proc *p;

	HASH_FIND(hh, s->procs, &key, sizeof(key), p);
	if (!p && make)
		p = proc_make(s, id, &key);
	return p;
}

struct proc *proc__of_thread(const struct session *s, const struct sched_thread *t)
{
	struct proc_key key = {.start_ns = t->proc_start_ns, .tgid = t->tgid};
	struct proc *p;

	HASH_FIND(hh, s->procs, &key, sizeof(key), p);
	return p;
}

void proc__count_loss(struct proc *p, enum loss cause, uint64_t n)
{
	p->lost[cause] += n;
	p->session->summary.lost[cause] += n;
	/* What is near an event is what never reached it; of kernel context it says so itself. */
	if (cause != LOSS_WRITE_ERROR && cause != LOSS_CONTEXT)
		p->corr.lost += n;
}

/* The scheduler's thread of that number, if it is this process'. */
static struct sched_thread *sched_of(const struct proc *p, uint32_t host_tid)
{
	struct sched_thread *t = sched__find(&p->session->sched, host_tid);

	return t && t->tgid == p->key.tgid && t->proc_start_ns == p->key.start_ns ? t : NULL;
}

struct thread *proc__thread(struct proc *p, uint32_t tid, uint32_t host_tid, const char *comm)
{
	struct thread *t;

	HASH_FIND_INT(p->threads, &tid, t);
	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	t->host_tid = host_tid;
	memcpy(t->comm, comm, sizeof(t->comm));
	if (p->session->sched_mode)
		t->sched = sched_thread__get(sched_of(p, host_tid));
	HASH_ADD_INT(p->threads, tid, t);
	return t;
}

void proc__thread_end(struct proc *p, struct thread *t, uint64_t stop_ns)
{
	if (t->role != ROLE_UNKNOWN)
		trace__thread(p, t, stop_ns);
	sched_thread__put(&p->session->sched, t->sched);
	HASH_DEL(p->threads, t);
	free(t);
}

static void free_threads(struct proc *p, uint64_t stop_ns)
{
	struct thread *t, *tmp;

	HASH_ITER (hh, p->threads, t, tmp) {
		/* Nothing was written: nor will this be. */
		if (!p->header_written && !p->recs)
			t->role = ROLE_UNKNOWN;
		proc__thread_end(p, t, stop_ns);
	}
}

static void free_streams(struct proc *p)
{
	struct stream *st, *tmp;

	HASH_ITER (hh, p->streams, st, tmp) {
		HASH_DEL(p->streams, st);
		free(st);
	}
}

void proc__end(struct proc *p, const char *end, bool exited, int exit_code)
{
	struct session *s = p->session;
	uint64_t now = p->corr.now_ns, orphans;

	correlate__end(&p->corr);
	orphans = p->corr.counts.orphans;
	if (orphans > p->lost[LOSS_ORPHAN])
		proc__count_loss(p, LOSS_ORPHAN, orphans - p->lost[LOSS_ORPHAN]);
	free_threads(p, now);
	decode_net__proc_end(p);
	trace__footer(p, end, exited, exit_code);
	if (p->out.write_lost)
		proc__count_loss(p, LOSS_WRITE_ERROR, p->out.write_lost);
	summary__proc_end(&s->summary, p);
	out_file__close(&p->out);
	target__close(&p->target);
	if (s->sched_mode)
		sched__process_end(&s->sched, p->key.tgid, p->key.start_ns, now);
	node_sample__put(p->node);
	node_cgroup__close(&p->cgroup);
	netdev_sample__put(p->netdev);
	HASH_DEL(s->procs, p);
	free_streams(p);
	correlate__free(&p->corr);
	net_join__free(&p->net);
	free(p->job_id);
	free(p);
}
