// SPDX-License-Identifier: BSD-2-Clause
/* The processes being recorded; see proc.h. */
#include <stdlib.h>
#include <string.h>
#include "decode_net.h"
#include "log.h"
#include "proc.h"
#include "retain.h"
#include "session.h"
#include "trace.h"

#define THREADS_MAX 65536 /* of a process, whose end was not seen */

const char *const loss_names[LOSS_CAUSES] = {
	[LOSS_RING_FULL] = "ring-full",
	[LOSS_THREAD_BUFFER] = "thread-buffer",
	[LOSS_ORPHAN] = "orphan",
	[LOSS_WRITE_ERROR] = "write-error",
	[LOSS_CONTEXT] = "context-ring-full",
	[LOSS_RATE_LIMIT] = "rate-limit",
};

/* ---- How many ----------------------------------------------------------------------------------- */

static struct session_user *user_get(struct session *s, uint32_t uid)
{
	struct session_user *u;

	HASH_FIND_INT(s->users, &uid, u);
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	HASH_ADD_INT(s->users, uid, u);
	if (!HASH_ADDED(hh, u)) {
		free(u);
		return NULL;
	}
	return u;
}

/* Who has many gets no more than twice of what is left: others can still come. */
static bool may_make(const struct session *s, const struct session_user *u)
{
	uint32_t n = HASH_COUNT(s->procs);

	return !s->procs_max || (n < s->procs_max && u->procs < 2 * (s->procs_max - n));
}

static void user_put(struct session *s, uint32_t uid)
{
	struct session_user *u;

	HASH_FIND_INT(s->users, &uid, u);
	if (u && !--u->procs) {
		HASH_DEL(s->users, u);
		free(u);
	}
}

static void refuse(struct session *s, const struct scope_ev_hdr *id, struct session_user *u)
{
	if (!s->refused && !s->echo)
		pr_warn("Failed to record process %u: %u processes are recorded at the same time, "
			"%u of user %u; continuing without it, its records are counted as lost; "
			"see --memory\n",
			id->tgid, HASH_COUNT(s->procs), u ? u->procs : 0, id->uid);
	s->refused = true;
	if (u && !u->procs) {
		HASH_DEL(s->users, u);
		free(u);
	}
}

/* ---- A process ---------------------------------------------------------------------------------- */

/* A pid may be another process' already while the one that had it is still here. */
static bool tgid_add(struct session *s, struct proc *p)
{
	struct proc *first;

	HASH_FIND(hh_tgid, s->by_tgid, &p->key.tgid, sizeof(p->key.tgid), first);
	if (!first) {
		HASH_ADD(hh_tgid, s->by_tgid, key.tgid, sizeof(p->key.tgid), p);
		return HASH_ADDED(hh_tgid, p);
	}
	p->twin = first->twin;
	first->twin = p;
	return true;
}

/* Where there was no memory for a twin, nobody finds it by its pid. */
static void tgid_del(struct session *s, struct proc *p)
{
	struct proc *first, **at;

	HASH_FIND(hh_tgid, s->by_tgid, &p->key.tgid, sizeof(p->key.tgid), first);
	if (first == p) {
		if (p->twin) /* before: the table is not empty then, and stays */
			HASH_ADD(hh_tgid, s->by_tgid, key.tgid, sizeof(p->key.tgid), p->twin);
		HASH_DELETE(hh_tgid, s->by_tgid, p);
		return;
	}
	for (at = first ? &first->twin : NULL; at && *at; at = &(*at)->twin)
		if (*at == p) {
			*at = p->twin;
			return;
		}
}

/* Into the tables of those that there are; false: no memory. */
static bool proc_add(struct session *s, struct proc *p)
{
	HASH_ADD(hh, s->procs, key, sizeof(p->key), p);
	if (!HASH_ADDED(hh, p))
		return false;
	if (tgid_add(s, p))
		return true;
	HASH_DEL(s->procs, p);
	return false;
}

static struct proc *proc_make(struct session *s, const struct scope_ev_hdr *id,
			      const struct proc_key *key)
{
	const struct corr_sink sink_of = {
		.event = trace__event,
		.state = trace__state,
		.lifecycle = trace__lifecycle,
		.open = trace__open,
	};
	struct session_user *u = user_get(s, id->uid);
	struct proc *p = u && may_make(s, u) ? calloc(1, sizeof(*p)) : NULL;
	struct corr_sink sink = sink_of;

	if (!p) {
		refuse(s, id, u);
		return NULL;
	}
	u->procs++;
	p->key = *key;
	p->id = *id;
	p->session = s;
	p->from_start = id->start_ns > s->attached_ns;
	p->begin_ns = p->from_start ? id->start_ns : s->attach_ns;
	p->out.fd = -1;
	p->target.mem = -1;
	sink.arg = p;
	if (correlate__init(&p->corr, &sink, id->ns_tgid)) {
		user_put(s, id->uid);
		free(p);
		return NULL;
	}
	p->corr.from_start = p->from_start;
	p->corr.colls_max = s->collectives;
	p->corr.sched = s->sched_mode ? &s->sched : NULL;
	net_join__init(&p->net, &s->net.flows);
	p->memory.of = s->memory.max ? &s->memory : NULL;
	p->corr.memory = p->net.memory = &p->memory;
	p->corr.net = s->net_mode ? &p->net : NULL;
	if (!proc_add(s, p)) {
		correlate__free(&p->corr);
		net_join__free(&p->net);
		user_put(s, id->uid);
		free(p);
		return NULL;
	}
	s->summary.procs++;
	if (!s->echo)
		pr_debug("Recording process %u (%u in its namespace) '%.16s'\n", id->tgid,
			 id->ns_tgid, id->comm);
	return p;
}

struct proc *proc__find(const struct session *s, uint32_t tgid, uint64_t start_ns)
{
	struct proc_key key = {.start_ns = start_ns, .tgid = tgid};
	struct proc *p;

	HASH_FIND(hh, s->procs, &key, sizeof(key), p);
	return p;
}

struct proc *proc__of_tgid(const struct session *s, uint32_t tgid, uint64_t ts_ns)
{
	struct proc *p, *best = NULL;

	HASH_FIND(hh_tgid, s->by_tgid, &tgid, sizeof(tgid), p);
	for (; p; p = p->twin)
		if (p->key.start_ns <= ts_ns && (!best || p->key.start_ns > best->key.start_ns))
			best = p;
	return best;
}

struct proc *proc__get(struct session *s, const struct scope_ev_hdr *id, bool make)
{
	struct proc_key key = {.start_ns = id->start_ns, .tgid = id->tgid};
	struct proc *p = proc__find(s, id->tgid, id->start_ns);

	if (!p && make)
		p = proc_make(s, id, &key);
	return p;
}

struct proc *proc__of_thread(const struct session *s, const struct sched_thread *t)
{
	return proc__find(s, t->tgid, t->proc_start_ns);
}

void proc__ran_on(struct proc *p, struct sched_thread *t)
{
	uint32_t i;

	for (i = 0; i < SCHED_RAN_ON / 64; i++)
		p->ran_on[i] |= t->ran_on[i];
	memset(t->ran_on, 0, sizeof(t->ran_on));
	if (t->last_cpu < SCHED_RAN_ON)
		p->ran_on[t->last_cpu / 64] |= 1ull << t->last_cpu % 64;
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
	t = HASH_COUNT(p->threads) < THREADS_MAX ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	t->tid = tid;
	t->host_tid = host_tid;
	memcpy(t->comm, comm, sizeof(t->comm));
	HASH_ADD_INT(p->threads, tid, t);
	if (!HASH_ADDED(hh, t)) {
		free(t);
		return NULL;
	}
	if (p->session->sched_mode)
		t->sched = sched_thread__get(sched_of(p, host_tid));
	return t;
}

void proc__thread_known(struct proc *p, struct sched_thread *known)
{
	uint32_t tid = known->ns_tid;
	struct thread *t;

	HASH_FIND_INT(p->threads, &tid, t);
	if (!t || t->host_tid != known->tid || (t->sched && !t->sched->gone))
		return;
	sched_thread__put(&p->session->sched, t->sched); /* its timeline has begun anew */
	t->sched = sched_thread__get(known);
}

struct thread *proc__introduce(struct proc *p, uint32_t tid, uint32_t host_tid, const char *comm,
			       uint64_t ts_ns)
{
	struct thread *t = proc__thread(p, tid, host_tid, comm);

	if (!t || t->role != ROLE_UNKNOWN)
		return t;
	t->role = ROLE_OTHER;
	t->by_slice = true;
	t->start_ns = ts_ns;
	trace__thread(p, t, 0);
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
		free(st->open);
		free(st);
	}
}

void proc__end(struct proc *p, const char *end, bool exited, int exit_code)
{
	struct session *s = p->session;
	uint64_t now = p->corr.now_ns, orphans, not_written;

	correlate__end(&p->corr);
	orphans = p->corr.counts.orphans;
	if (orphans > p->lost[LOSS_ORPHAN])
		proc__count_loss(p, LOSS_ORPHAN, orphans - p->lost[LOSS_ORPHAN]);
	free_threads(p, now);
	decode_net__proc_end(p);
	trace__footer(p, end, exited, exit_code);
	if (s->retain && p->out.path)
		retain__add(s->retain, p->out.path, p->out.fd);
	not_written = out_file__end(&p->out);
	if (p->out.write_lost + not_written)
		proc__count_loss(p, LOSS_WRITE_ERROR, p->out.write_lost + not_written);
	summary__proc_end(&s->summary, p);
	out_file__close(&p->out);
	target__close(&p->target);
	if (s->sched_mode)
		sched__process_end(&s->sched, p->key.tgid, p->key.start_ns, now);
	node_sample__put(p->node);
	node_cgroup__close(&p->cgroup);
	netdev_sample__put(p->netdev);
	HASH_DEL(s->procs, p);
	tgid_del(s, p);
	free_streams(p);
	correlate__free(&p->corr);
	net_join__free(&p->net);
	user_put(s, p->id.uid);
	free(p->job_id);
	who__free(&p->who);
	free(p);
	s->trim = true;
}
