// SPDX-License-Identifier: BSD-2-Clause
/* What top shows of a communicator; see live.h. */
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "less.h"
#include "live.h"
#include "nccl_names.h"
#include "sched_join.h"
#include "session.h"
#include "status_file.h"
#include "trace_keys.h"

#define WAITS_NS (NSEC_PER_SEC / 2) /* what is pending for so long may hang */

static json_int_t us(uint64_t ns)
{
	return (json_int_t)(ns / 1000);
}

/* ---- Operations that are written ----------------------------------------------------------------- */

static const struct interned *text_of_id(const struct proc *p, uint16_t id)
{
	static const struct interned none;

	return id < SCOPE_STRINGS ? &p->strings[id] : &none;
}

/* The function's name with a 0 behind it. */
static void func_name(const struct proc *p, uint16_t id, char name[SCOPE_STRING_MAX + 1])
{
	const struct interned *s = text_of_id(p, id);

	memcpy(name, s->text, s->len);
	name[s->len] = 0;
}

static void add_size(struct live *l, const struct proc *p, const struct corr_event *ev)
{
	bool coll = ev->what == SCOPE_COLL;
	uint64_t count = coll ? ev->start.coll.count : ev->start.p2p.count;
	const struct interned *type =
		text_of_id(p, coll ? ev->start.coll.datatype : ev->start.p2p.datatype);
	int32_t n = ev->comm->info.nranks;
	char func[SCOPE_STRING_MAX + 1];
	double bytes;

	func_name(p, coll ? ev->start.coll.func : ev->start.p2p.func, func);
	bytes = (double)count * (double)nccl_type_size(type->text, type->len) *
		nccl_size_factor(func, n);
	l->bytes += bytes;
	l->bus_bytes += bytes * nccl_bus_factor(func, n);
}

/* Threads that go ahead have called several at a time, which are executed one after the other. */
static void add_time(struct live *l, const struct corr_event *ev)
{
	uint64_t from = ev->start_ns > l->until_ns ? ev->start_ns : l->until_ns;

	l->ops++;
	if (ev->exec_stop_ns <= from)
		return;
	l->op_ns += ev->exec_stop_ns - from;
	l->until_ns = ev->exec_stop_ns;
}

static void add_sched(struct live *l, const struct sched_span *proxy)
{
	l->span_ns += proxy->span_ns;
	l->sums.on_cpu_ns += proxy->sums.on_cpu_ns;
	l->sums.runq_ns += proxy->sums.runq_ns;
	l->sums.blocked_ns += proxy->sums.blocked_ns;
	l->sums.irq_ns += proxy->sums.irq_ns;
	l->sums.throttled_ns += proxy->sums.throttled_ns;
	sched_span__add(&l->recent, proxy);
}

void live__event(const struct proc *p, const struct corr_event *ev, const struct sched_join *join)
{
	struct corr_comm *comm = ev->comm;

	if (!comm || !ev->stopped || ev->pxn)
		return;
	if (!comm->live)
		comm->live = calloc(1, sizeof(*comm->live));
	if (!comm->live) /* top shows less */
		return;
	if (ev->exec > EXEC_ENQUEUE) {
		add_time(comm->live, ev);
		add_size(comm->live, p, ev);
	}
	if (join->proxy.threads)
		add_sched(comm->live, &join->proxy);
}

/* ---- JSON ------------------------------------------------------------------------------------------ */

static void put_ops(json_t *o, const struct live *l)
{
	json_object_set_new(o, "ops", json_integer((json_int_t)l->ops));
	json_object_set_new(o, "opUs", json_integer(us(l->op_ns)));
	json_object_set_new(o, "bytes", json_real(l->bytes));
	json_object_set_new(o, "busBytes", json_real(l->bus_bytes));
}

/* Progress threads; @r: of what the most is told. What the kernel does not tell is not there, as in the traces: it is not 0. */
static void put_waits(json_t *o, const struct attach_features *f, uint64_t span_ns,
		      const struct sched_sums *sums, const struct sched_span *r)
{
	json_object_set_new(o, "spanUs", json_integer(us(span_ns)));
	json_object_set_new(o, "onCpuUs", json_integer(us(sums->on_cpu_ns)));
	json_object_set_new(o, "runqUs", json_integer(us(sums->runq_ns)));
	json_object_set_new(o, "blockedUs", json_integer(us(sums->blocked_ns)));
	if (f->irq)
		json_object_set_new(o, "irqUs", json_integer(us(sums->irq_ns)));
	if (f->quota)
		json_object_set_new(o, "throttledUs", json_integer(us(sums->throttled_ns)));
	if (r->threads && r->nbehind)
		json_object_set_new(
			o, "behind",
			json_pack("{s:o,s:I,s:I}", "comm",
				  status_text(r->behind[0].comm,
					      strnlen(r->behind[0].comm, SCOPE_COMM_LEN)),
				  "pid", (json_int_t)r->behind[0].tgid, "us", us(r->behind[0].ns)));
	if (r->threads && r->nblocked_in)
		json_object_set_new(o, "blockedIn",
				    json_pack("{s:s,s:I}", "why",
					      sched_why_name(r->blocked_in[0].why), "us",
					      us(r->blocked_in[0].ns)));
}

/* Everybody may read the file: it has no text of the job's. */
static const char *known_func(const char *name)
{
	static const char *const names[] = {"AllReduce",     "Broadcast", "Reduce",  "AllGather",
					    "ReduceScatter", "AlltoAll",  "Scatter", "Gather"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return names[i];
	return "other";
}

struct pending {
	const struct corr_comm *comm;
	const struct corr_event *oldest;
	uint64_t n;
};

static void count_pending(void *arg, const struct corr_event *op)
{
	struct pending *pending = arg;

	if (op->comm != pending->comm)
		return;
	if (!pending->n++ || op->start_ns < pending->oldest->start_ns)
		pending->oldest = op;
}

/* The sums know of it when it is written: of what hangs, a minute later. Then its threads are not followed any more. */
static void put_pending_threads(json_t *o, const struct proc *p, const struct corr_event *op)
{
	struct sched_join join;
	json_t *threads;

	if (less(p->corr.now_ns, op->start_ns) < WAITS_NS)
		return;
	sched_join__now(&p->corr, op, &join);
	if (!join.proxy.threads)
		return;
	threads = json_object();
	put_waits(threads, &p->session->features, join.proxy.span_ns, &join.proxy.sums,
		  &join.proxy);
	json_object_set_new(o, "pendingThreads", threads);
}

json_t *live__doc(const struct proc *p, struct corr_comm *comm)
{
	struct pending pending = {.comm = comm};
	char func[SCOPE_STRING_MAX + 1];
	json_t *o = json_object();

	correlate__pending(&p->corr, count_pending, &pending);
	json_object_set_new(o, "pending", json_integer((json_int_t)pending.n));
	if (pending.n) {
		json_object_set_new(o, "pendingSinceUs",
				    json_integer(us(pending.oldest->start_ns)));
		put_pending_threads(o, p, pending.oldest);
	}
	if (comm->last.start_ns) {
		func_name(p, comm->last.func, func);
		json_object_set_new(o, "func", json_string(known_func(func)));
		if (corr_seq_common(comm))
			json_object_set_new(o, "seq", json_integer((json_int_t)comm->last.seq));
		json_object_set_new(o, "calledUs", json_integer(us(comm->last.start_ns)));
	}
	if (comm->live) {
		put_ops(o, comm->live);
		if (comm->live->span_ns)
			put_waits(o, &p->session->features, comm->live->span_ns, &comm->live->sums,
				  &comm->live->recent);
		sched_span__clear(&comm->live->recent);
	}
	return o;
}

static void add_flow(struct flow_sums *sums, const struct flow_counts *c)
{
	int dir;

	for (dir = 0; dir < 2; dir++) {
		sums->bytes[dir] += c->bytes[dir];
		sums->empty_ns[dir] += c->empty_ns[dir];
	}
	sums->n++;
	sums->retrans += c->retrans;
	sums->dsack += c->dsack;
	if (c->retrans > c->dsack)
		sums->needed += c->retrans - c->dsack;
}

void live__flow_end(struct proc *p, const struct flow_counts *c)
{
	add_flow(&p->flows_over, c);
}

void live__count_flows(const struct session *s)
{
	const struct flow *flow, *ftmp;
	const struct flow_point *at;
	struct proc *p, *tmp;
	struct flow_counts c;

	HASH_ITER (hh, s->procs, p, tmp)
		memset(&p->flows_now, 0, sizeof(p->flows_now));
	HASH_ITER (hh, s->net.flows.by_key, flow, ftmp) {
		at = flow->gone ? NULL : flow__last(flow);
		p = at ? proc__of_tgid(s, flow->tgid, flow->key.since_ns) : NULL;
		if (!p)
			continue;
		c = at->c;
		flow_counts__since_known(&c, flow);
		add_flow(&p->flows_now, &c);
	}
}

static void add_sums(struct flow_sums *sums, const struct flow_sums *more)
{
	int dir;

	for (dir = 0; dir < 2; dir++) {
		sums->bytes[dir] += more->bytes[dir];
		sums->empty_ns[dir] += more->empty_ns[dir];
	}
	sums->n += more->n;
	sums->retrans += more->retrans;
	sums->dsack += more->dsack;
	sums->needed += more->needed;
}

json_t *live__net(const struct proc *p)
{
	const struct session *s = p->session;
	struct flow_sums sums = p->flows_over;
	json_t *o;

	add_sums(&sums, &p->flows_now);
	if (!sums.n)
		return NULL;
	o = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "flows", (json_int_t)p->flows_now.n,
		      "txBytes", (json_int_t)sums.bytes[SCOPE_TX], "rxBytes",
		      (json_int_t)sums.bytes[SCOPE_RX], "retrans", (json_int_t)sums.retrans,
		      "dsack", (json_int_t)sums.dsack, "retransNeeded", (json_int_t)sums.needed,
		      "noRoomUs", us(sums.empty_ns[SCOPE_TX]));
	if (s->features.no_data)
		json_object_set_new(o, "noDataUs", json_integer(us(sums.empty_ns[SCOPE_RX])));
	return o;
}
