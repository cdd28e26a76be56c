// SPDX-License-Identifier: BSD-2-Clause
/* Who is at the other end: of a PXN event, the operation of another process that it is part of; of a connection, the peer. See merge_read.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "merge_read.h"
#include "recent.h"
#include "search.h"

#define FLOWS_MAX   (1u << 20)
#define ORIGINS_MAX (1u << 22)
#define FLOW_LEN    128
#define ENDS_MAX    16	       /* processes that have one connection's name */
#define RESENT_MAX  (1u << 20) /* of all of them */
#define RESENT_LATE 100000000  /* ns, FLOW_RESENT_NS: told so much later but by the last record */

/* An operation that somebody may turn out to have worked on for another process. */
struct seen {
	uint64_t addr; /* as merge_origin's key */
	uint64_t comm, seq;
	int32_t rank;
	bool has_seq;
	UT_hash_handle hh;
};

/* ---- PXN -------------------------------------------------------------------------------------------------- */

static struct merge_origin *origin_of(const struct merge *m, uint64_t key)
{
	struct merge_origin *o;

	HASH_FIND(hh, m->origins, &key, sizeof(key), o);
	return o;
}

/* A process names another of its node by the pid that this has for itself. */
static uint64_t origin_key(uint32_t node, int32_t pid, uint64_t addr)
{
	return KEY_OF(node, (uint32_t)pid, addr);
}

const struct merge_origin *merge_origin_of(const struct merge *m, const struct merge_proc *proc,
					   int32_t pid, uint64_t parent)
{
	const struct merge_origin *o = origin_of(m, origin_key(proc->node, pid, parent));

	return o && o->known ? o : NULL;
}

static void tell_origin(struct merge_origin *o, const struct seen *s)
{
	o->comm = s->comm;
	o->seq = s->seq;
	o->rank = s->rank;
	o->has_seq = s->has_seq;
	o->known = true;
}

static struct merge_origin *want_origin(struct merge_reader *rd, uint64_t key)
{
	struct merge_origin *o = origin_of(rd->m, key);
	struct seen *s;

	if (o || HASH_COUNT(rd->m->origins) >= ORIGINS_MAX)
		return o;
	o = calloc(1, sizeof(*o));
	if (o) {
		o->key = key;
		HASH_ADD(hh, rd->m->origins, key, sizeof(key), o);
	}
	if (!o || !HASH_ADDED(hh, o)) {
		free(o);
		rd->m->err = -ENOMEM;
		return NULL;
	}
	s = RECENT(rd->all->seen, struct seen, key, false, KEEP_MET, &rd->m->err);
	if (s)
		tell_origin(o, s);
	return o;
}

/* Its steps are written before it, and have to be told whose they are. */
void ends__pxn_op(struct merge_reader *rd, node_t rec)
{
	struct merge_proc *p = rd->proc;
	struct merge_origin *o =
		want_origin(rd, origin_key(p->node, get_i32(rd, rec, "originPid", -1),
					   get_addr(rd, rec, "parentObj")));
	struct merge_pxn *list;

	if (!o || p->npxn >= ORIGINS_MAX)
		return;
	if (p->npxn == p->cap_pxn) {
		list = reallocarray(p->pxn, p->cap_pxn ? 2 * p->cap_pxn : 64, sizeof(*list));
		if (!list) {
			rd->m->err = -ENOMEM;
			return;
		}
		p->pxn = list;
		p->cap_pxn = p->cap_pxn ? 2 * p->cap_pxn : 64;
	}
	p->pxn[p->npxn++] = (struct merge_pxn){get_addr(rd, rec, "eventAddr"), o};
}

/* Somebody may have worked on it, or have done so. */
void ends__operation(struct merge_reader *rd, node_t rec)
{
	uint64_t key = origin_key(rd->proc->node, rd->proc->pid, get_addr(rd, rec, "eventAddr"));
	struct merge_origin *o = origin_of(rd->m, key);
	struct seen *s = RECENT(rd->all->seen, struct seen, key, true, KEEP_MET, &rd->m->err);
	node_t details = get(rd, rec, "details");

	if (!s)
		return;
	s->comm = get_addr(rd, rec, "commHash");
	s->rank = get_i32(rd, rec, "rank", -1);
	s->has_seq = get(rd, details, "seq");
	s->seq = get_u64(rd, details, "seq");
	if (o && !o->known)
		tell_origin(o, s);
}

/* ---- Connections -------------------------------------------------------------------------------------------- */

static struct merge_flow *flow_of(const struct merge *m, const char *name, size_t len)
{
	struct merge_flow *f;

	HASH_FIND(hh, m->flows, name, len, f);
	return f;
}

static struct merge_flow *new_flow(struct merge *m, node_t name)
{
	struct merge_flow *f = flow_of(m, name->s, name->len);

	if (f || HASH_COUNT(m->flows) >= FLOWS_MAX)
		return f;
	f = calloc(1, sizeof(*f) + name->len + 1);
	if (f) {
		memcpy(f->name, name->s, name->len);
		f->len = name->len;
		HASH_ADD_KEYPTR(hh, m->flows, f->name, f->len, f);
	}
	if (!f || !HASH_ADDED(hh, f)) {
		free(f);
		m->err = -ENOMEM;
		return NULL;
	}
	return f;
}

bool merge_same_proc(const struct merge_proc *a, const struct merge_proc *b)
{
	return a == b || (a->node != MERGE_NO_NODE && a->node == b->node && a->host_pid >= 0 &&
			  a->host_pid == b->host_pid && a->started == b->started);
}

/* The first that a process has of it. */
static struct merge_end *end_of(const struct merge_flow *f, const struct merge_proc *proc)
{
	struct merge_end *e = f ? f->ends : NULL;

	while (e && !merge_same_proc(e->proc, proc))
		e = e->next;
	return e;
}

static struct merge_end *new_end(struct merge_reader *rd, struct merge_flow *f)
{
	struct merge_end *first = end_of(f, rd->proc), *e = first;

	while (e && e->proc != rd->proc)
		e = e->more;
	if (e || (!first && f->nends == ENDS_MAX))
		return e;
	e = calloc(1, sizeof(*e));
	if (!e) {
		rd->m->err = -ENOMEM;
		return NULL;
	}
	*e = (struct merge_end){
		.proc = rd->proc, .rank = -1, .from = INT64_MAX, .to = INT64_MIN, .flow = f};
	if (first) { /* the last one comes first of the others: it is the one that is asked for next */
		e->more = first->more;
		first->more = e;
		return e;
	}
	e->next = f->ends;
	f->ends = e;
	f->nends++;
	return e;
}

static void add_resent(struct merge *m, struct merge_end *e, struct merge_resent r)
{
	struct merge_resent *list = e->resent;

	e->is_cut |= m->resent == RESENT_MAX;
	if (e->is_cut)
		return;
	if (!(e->nresent & (e->nresent - 1))) /* full: it has room for the next power of two */
		list = reallocarray(list, e->nresent ? 2 * e->nresent : 1, sizeof(*list));
	if (!list) {
		m->err = -ENOMEM;
		return;
	}
	e->resent = list;
	e->resent[e->nresent++] = r;
	m->resent++;
}

/* As many as a record has segments; hostile ones are kept from overflowing sums. */
static uint64_t segments(const struct merge_reader *rd, node_t rec, const char *key)
{
	uint64_t n = get_u64(rd, rec, key);

	return n < UINT32_MAX ? n : UINT32_MAX;
}

static void take_resent(struct merge_reader *rd, node_t rec, struct merge_end *e, int64_t ts)
{
	node_t list = get(rd, rec, "resent"), n;
	struct merge_resent r;
	uint32_t i;

	for (i = list && list->kind == JSON_KIND_ARR ? list->first : 0; i; i = n->next) {
		n = &rd->m->doc.nodes[i];
		r = (struct merge_resent){.n = segments(rd, n, "n"),
					  .dsack = segments(rd, n, "dsack")};
		if (get_point(rd, n, "ts", &r.ts))
			add_resent(rd->m, e, r);
	}
	e->from = ts < e->from ? ts : e->from;
	if (!jn_true(get(rd, rec, "end")))
		ts -= RESENT_LATE;
	if (ts > e->to && !e->is_cut)
		e->to = ts;
}

void ends__flow(struct merge_reader *rd, node_t rec)
{
	node_t name = get(rd, rec, "flow");
	struct merge_flow *f;
	struct merge_end *e;
	int64_t ts;
	bool timed = get_point(rd, rec, "ts", &ts);

	if (timed)
		move_to(rd, ts);
	if (!name || name->kind != JSON_KIND_STR || name->len > FLOW_LEN)
		return;
	f = new_flow(rd->m, name);
	e = f ? new_end(rd, f) : NULL;
	if (!e)
		return;
	e->rank = get_i32(rd, rec, "rank", e->rank);
	e->is_local |= !!get(rd, rec, "peerPid");
	if (timed)
		take_resent(rd, rec, e, ts);
}

/* "a>b" to "b>a" in @to, FLOW_LEN bytes; false: it is none. */
static bool mirror(const char *name, size_t len, char *to)
{
	const char *gt = memchr(name, '>', len);
	size_t first;

	if (!gt || len > FLOW_LEN)
		return false;
	first = (size_t)(gt - name);
	memcpy(to, gt + 1, len - first - 1);
	to[len - first - 1] = '>';
	memcpy(to + len - first, name, first);
	return true;
}

/* Addresses that each node has for itself. */
static bool is_loopback(const char *name, size_t len)
{
	return (len > 4 && !memcmp(name, "127.", 4)) || (len > 5 && !memcmp(name, "[::1]", 5));
}

const struct merge_end *merge_peer(const struct merge *m, const struct merge_proc *proc,
				   const char *name, size_t len)
{
	const struct merge_end *mine = end_of(flow_of(m, name, len), proc), *e, *peer = NULL;
	const struct merge_flow *f;
	char other[FLOW_LEN];

	if (!mine || mine->is_local || is_loopback(name, len) || !mirror(name, len, other))
		return NULL;
	for (e = mine->flow->ends; e; e = e->next)
		if (e->proc->node != proc->node)
			return NULL; /* addresses that several nodes have */
	f = flow_of(m, other, len);
	for (e = f ? f->ends : NULL; e; e = e->next) {
		if (e->proc->node == MERGE_NO_NODE)
			continue;
		/* several that could be it, or one that its own node has for itself as well */
		if (peer || e->proc->node == proc->node || e->is_local)
			return NULL;
		peer = e;
	}
	return f && f->nends < ENDS_MAX ? peer : NULL;
}

static bool is_resent_later(const void *of, uint64_t i, uint64_t ts)
{
	const struct merge_end *e = of;

	return e->resent[i].ts > (int64_t)ts;
}

/* How many of them there were up to ts. */
static uint32_t resent_until(const struct merge_end *e, int64_t ts)
{
	return (uint32_t)search_later(0, e->nresent, is_resent_later, e, (uint64_t)ts);
}

/* How far the clocks of two processes' nodes may be apart; -1: not known. */
static int64_t clocks_doubt(const struct merge *m, const struct merge_proc *a,
			    const struct merge_proc *b)
{
	int64_t x = m->nodes[a->node].fit.error, y = m->nodes[b->node].fit.error;

	if (x < 0 || y < 0)
		return -1;
	return x < JN_TIME_MAX / 2 && y < JN_TIME_MAX / 2 ? x + y : JN_TIME_MAX;
}

/* As merge_resent(), of one recording. */
static bool resent_in(const struct merge *m, const struct merge_end *e, int64_t doubt, int64_t from,
		      int64_t to, uint64_t *n, uint64_t *dsack)
{
	static const struct merge_resent none;
	const struct merge_resent *a = &none, *b = &none;
	uint32_t first, last;
	bool covered, unfinished = to == INT64_MAX;

	from -= m->nodes[e->proc->node].shift;
	to = unfinished ? e->to : to - m->nodes[e->proc->node].shift;
	if (e->to == INT64_MIN || from > to)
		return false;
	/* nobody knows when it ended: what came again in a later window need not be of it */
	if (unfinished && from + doubt < e->from)
		return false;
	first = resent_until(e, from - 1);
	last = resent_until(e, to);
	/* that there was none is not known if there was one that a wrong clock may have kept out */
	covered = from >= e->from && to <= e->to &&
		  resent_until(e, from - 1 - doubt) == resent_until(e, to + doubt);
	if (first)
		a = &e->resent[first - 1];
	if (last)
		b = &e->resent[last - 1];
	*n = b->n - a->n;
	*dsack = b->dsack - a->dsack;
	return covered || (*n && doubt <= to - from);
}

/* Windows do not add up, as two recorders tell the same: that which tells of most counts. */
bool merge_resent(const struct merge *m, const struct merge_proc *proc, const struct merge_end *e,
		  int64_t from, int64_t to, uint64_t *n, uint64_t *dsack)
{
	int64_t doubt = clocks_doubt(m, proc, e->proc);
	uint64_t v, needless;
	bool known = false;

	*n = *dsack = 0;
	for (; e && doubt >= 0; e = e->more) {
		if (!resent_in(m, e, doubt, from, to, &v, &needless))
			continue;
		if (!known || v > *n) {
			*n = v;
			*dsack = needless;
		}
		known = true;
	}
	return known;
}

/* ---- The end ------------------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
	const struct merge_resent *x = a, *y = b;

	return x->ts < y->ts ? -1 : x->ts > y->ts;
}

static void sum_up(struct merge_end *e)
{
	uint32_t i;

	if (e->nresent)
		qsort(e->resent, e->nresent, sizeof(*e->resent), by_time);
	for (i = 1; i < e->nresent; i++) {
		e->resent[i].n += e->resent[i - 1].n;
		e->resent[i].dsack += e->resent[i - 1].dsack;
	}
}

/* What any of its process' recordings tells. */
static void join(struct merge_end *first)
{
	struct merge_end *e;

	sum_up(first);
	for (e = first->more; e; e = e->more) {
		sum_up(e);
		first->is_local |= e->is_local;
		if (first->rank < 0)
			first->rank = e->rank;
	}
}

/* Of a connection there are two names, and any number of records on either side. */
static void count_ties(struct merge *m)
{
	const struct merge_end *e, *peer;
	struct merge_flow *f;

	for (f = m->flows; f; f = f->hh.next)
		for (e = f->ends; e && !f->counted; e = e->next) {
			peer = merge_peer(m, e->proc, f->name, f->len);
			if (!peer)
				continue;
			f->counted = true;
			m->ties += !peer->flow->counted;
		}
}

static int by_addr(const void *a, const void *b)
{
	const struct merge_pxn *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void ends__settle(struct merge *m, struct merge_learner *all)
{
	struct merge_flow *f;
	struct merge_end *e;
	struct merge_proc *p;
	uint32_t i;

	HASH_FREE_ALL(all->seen);
	for (f = m->flows; f; f = f->hh.next)
		for (e = f->ends; e; e = e->next)
			join(e);
	count_ties(m);
	for (i = 0; i < m->nstreams; i++)
		for (p = m->streams[i]; p; p = p->next)
			if (p->npxn)
				qsort(p->pxn, p->npxn, sizeof(*p->pxn), by_addr);
}
