// SPDX-License-Identifier: BSD-2-Clause
/* Flows over time; see flows.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "flows.h"
#include "search.h"

#define POINTS_MIN  16
#define POINTS_LOW  256	       /* that each flow may have, however many there are */
#define POINTS_ALL  (1u << 21) /* of all flows, if that is more */
#define POINTS_NEAR 8	       /* from one that was asked for to the next that is */
#define RESENT_NS   100000ULL  /* sent again within that: once */
#define FLOWS_MAX   65536      /* BPF follows a quarter of that at a time; the others are gone */

/* ---- Names -------------------------------------------------------------------------------------- */

static int put_end(char *buf, size_t size, const uint8_t addr[16], uint16_t port)
{
	struct in6_addr in6;
	char text[INET6_ADDRSTRLEN];

	memcpy(&in6, addr, sizeof(in6));
	if (IN6_IS_ADDR_V4MAPPED(&in6)) {
		inet_ntop(AF_INET, addr + 12, text, sizeof(text));
		return snprintf(buf, size, "%s:%u", text, port);
	}
	inet_ntop(AF_INET6, addr, text, sizeof(text));
	return snprintf(buf, size, "[%s]:%u", text, port);
}

void flow_name(char *text, size_t size, const struct scope_tuple *t)
{
	int n = put_end(text, size, t->local, t->local_port);

	text[n++] = '>';
	put_end(text + n, size - (size_t)n, t->remote, t->remote_port);
}

/* ---- The table ---------------------------------------------------------------------------------- */

struct flow *flows__find(const struct flows *f, uint64_t sk, uint64_t since_ns)
{
	const struct flow_key key = {sk, since_ns};
	struct flow *flow;

	HASH_FIND(hh, f->by_key, &key, sizeof(key), flow);
	return flow;
}

/* Addresses may come again: in another namespace, or after a while, when the old one is held still. */
static void tuple_add(struct flows *f, struct flow *flow)
{
	struct flow *first;

	HASH_FIND(hh_tuple, f->by_tuple, &flow->tuple, sizeof(flow->tuple), first);
	if (first)
		HASH_DELETE(hh_tuple, f->by_tuple, first);
	flow->twin = first;
	HASH_ADD(hh_tuple, f->by_tuple, tuple, sizeof(flow->tuple), flow);
	if (!HASH_ADDED(hh_tuple, flow))
		flow->twin =
			NULL; /* nobody finds it by its addresses, and nobody would take first off it */
}

static void tuple_del(struct flows *f, struct flow *flow)
{
	struct flow *first, *next, **at;

	HASH_FIND(hh_tuple, f->by_tuple, &flow->tuple, sizeof(flow->tuple), first);
	if (first == flow) {
		next = flow->twin;
		HASH_DELETE(hh_tuple, f->by_tuple, flow);
		if (next)
			HASH_ADD(hh_tuple, f->by_tuple, tuple, sizeof(next->tuple), next);
		return;
	}
	for (at = first ? &first->twin : NULL; at && *at; at = &(*at)->twin)
		if (*at == flow) {
			*at = flow->twin;
			return;
		}
}

static void counts_set(struct flow_counts *c, const struct scope_tcp_use *u)
{
	c->retrans = u->total_retrans;
	c->lost = u->lost;
	c->dsack = u->dsack_dups;
	c->rx_ooo = u->rcv_ooopack;
	c->busy = u->busy;
	c->rwnd = u->rwnd_limited;
	c->sndbuf = u->sndbuf_limited;
}

static void point_set(struct flow_point *p, const struct scope_tcp_use *u)
{
	counts_set(&p->c, u);
	p->srtt_us = u->srtt_us;
	p->rtt_min_us = u->rtt_min_us;
	p->cwnd = u->snd_cwnd;
}

static void flow_free(struct flows *f, struct flow *flow)
{
	HASH_DELETE(hh, f->by_key, flow);
	tuple_del(f, flow);
	free(flow->points);
	free(flow->drops);
	free(flow->resent);
	free(flow);
}

struct flow *flow__hold(struct flow *flow)
{
	if (flow)
		flow->refs++;
	return flow;
}

void flow__put(struct flows *f, struct flow *flow)
{
	if (flow && !--flow->refs)
		flow_free(f, flow);
}

void flow__gone(struct flow *flow)
{
	flow->gone = true;
}

void flows__free(struct flows *f)
{
	struct flow *flow, *tmp;

	HASH_ITER (hh, f->by_key, flow, tmp)
		flow_free(f, flow);
}

/* A loopback address is another one in each namespace; others are taken to be the node's, or the net's. */
static bool is_loopback(const struct scope_tuple *t)
{
	static const uint8_t v4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};

	return !memcmp(t->local, v4, sizeof(v4)) || !memcmp(t->local, &in6addr_loopback, 16);
}

struct flow *flows__of_tuple(const struct flows *f, const struct scope_tuple *tuple, bool turned)
{
	struct scope_tuple key = *tuple;
	struct flow *flow;

	if (turned) {
		memcpy(key.local, tuple->remote, sizeof(key.local));
		memcpy(key.remote, tuple->local, sizeof(key.remote));
		key.local_port = tuple->remote_port;
		key.remote_port = tuple->local_port;
	}
	HASH_FIND(hh_tuple, f->by_tuple, &key, sizeof(key), flow);
	return flow;
}

struct flow *flows__peer(const struct flows *f, const struct flow *flow)
{
	struct flow *peer = flows__of_tuple(f, &flow->tuple, true);
	bool loopback = is_loopback(&flow->tuple);

	while (peer && (peer == flow || (loopback && peer->netns != flow->netns)))
		peer = peer->twin;
	return peer;
}

/* ---- Counts ------------------------------------------------------------------------------------- */

/* From one reading to a later one; one that was read while it moved may seem to go back. */
static uint32_t moved(uint32_t was, uint32_t now)
{
	return (int32_t)(now - was) > 0 ? now - was : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The times that an end held it up are parts of that. */
static void hold_parts(struct flow_counts *c)
{
	c->busy += moved(c->busy, c->rwnd + c->sndbuf);
}

void flow_counts__at_least(struct flow_counts *c, const struct flow_counts *least)
{
	int dir;

	for (dir = 0; dir < 2; dir++) {
		c->bytes[dir] = later(c->bytes[dir], least->bytes[dir]);
		c->empty_ns[dir] = later(c->empty_ns[dir], least->empty_ns[dir]);
	}
	c->retrans = least->retrans + moved(least->retrans, c->retrans);
	c->lost = least->lost + moved(least->lost, c->lost);
	c->dsack = least->dsack + moved(least->dsack, c->dsack);
	c->rx_ooo = least->rx_ooo + moved(least->rx_ooo, c->rx_ooo);
	c->busy = least->busy + moved(least->busy, c->busy);
	c->rwnd = least->rwnd + moved(least->rwnd, c->rwnd);
	c->sndbuf = least->sndbuf + moved(least->sndbuf, c->sndbuf);
	hold_parts(c);
}

void flow_counts__since_known(struct flow_counts *c, const struct flow *flow)
{
	const struct flow_counts *before = &flow->before;

	c->retrans = moved(before->retrans, c->retrans);
	c->lost = moved(before->lost, c->lost);
	c->dsack = moved(before->dsack, c->dsack);
	c->rx_ooo = moved(before->rx_ooo, c->rx_ooo);
	c->busy = moved(before->busy, c->busy);
	c->rwnd = moved(before->rwnd, c->rwnd);
	c->sndbuf = moved(before->sndbuf, c->sndbuf);
	hold_parts(c);
}

/* ---- Points ------------------------------------------------------------------------------------- */

/* Of the older half every other one goes; counters only grow, so nothing but sharpness in time is lost. */
static void thin_out(struct flow *flow)
{
	struct flow_point *p = flow->points + flow->first;
	uint32_t half = flow->npoints / 2, i, n = 0;

	for (i = 0; i < half; i += 2)
		p[n++] = p[i];
	memmove(p + n, p + half, (flow->npoints - half) * sizeof(*p));
	flow->npoints -= half - n;
}

/* Many flows together have less: a job that never ends an event makes us keep all that is younger. */
static uint32_t points_max(const struct flow *flow)
{
	uint32_t share = POINTS_ALL / flow->hh.tbl->num_items;

	if (share > FLOW_POINTS_MAX)
		return FLOW_POINTS_MAX;
	return share < POINTS_LOW ? POINTS_LOW : share;
}

static int make_room(struct flow *flow)
{
	struct flow_point *grown;
	uint32_t cap;

	if (flow->npoints >= points_max(flow))
		thin_out(flow);
	if (flow->first + flow->npoints < flow->cap)
		return 0;
	if (flow->first > flow->cap / 2) {
		memmove(flow->points, flow->points + flow->first,
			flow->npoints * sizeof(*flow->points));
		flow->first = 0;
		return 0;
	}
	cap = flow->cap ? flow->cap * 2 : POINTS_MIN;
	grown = realloc(flow->points, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	flow->points = grown;
	flow->cap = cap;
	return 0;
}

/*
 * A point at ts_ns, as the one before it; NULL: no memory. Samples are taken aside of the ring: what
 * comes in after one may be a little older.
 */
static struct flow_point *point_new(struct flow *flow, uint64_t ts_ns)
{
	struct flow_point *p, *begin;

	if (make_room(flow))
		return NULL;
	begin = flow->points + flow->first;
	p = begin + flow->npoints++;
	for (; p > begin && p[-1].ts_ns > ts_ns; p--)
		p[0] = p[-1];
	if (p > begin)
		p[0] = p[-1];
	else
		memset(p, 0, sizeof(*p));
	p->ts_ns = ts_ns;
	return p;
}

struct flow *flows__get(struct flows *f, const struct scope_ev_flow *ev)
{
	struct flow *flow = flows__find(f, ev->sk, ev->since_ns);
	struct flow_point *p;

	if (flow)
		return flow;
	flow = HASH_COUNT(f->by_key) < FLOWS_MAX ? calloc(1, sizeof(*flow)) : NULL;
	if (!flow)
		return NULL;
	flow->key.sk = ev->sk;
	flow->key.since_ns = ev->since_ns;
	flow->tuple = ev->tuple;
	flow_name(flow->name, sizeof(flow->name), &flow->tuple);
	flow->tgid = ev->tgid;
	flow->netns = ev->netns;
	flow->role.rank = flow->role.peer = -1;
	flow->refs = 1;
	flow->keep_ns = UINT64_MAX;
	flow->tcp = ev->tcp;
	HASH_ADD(hh, f->by_key, key, sizeof(flow->key), flow);
	if (!HASH_ADDED(hh, flow)) {
		free(flow);
		return NULL;
	}
	tuple_add(f, flow);
	/* BPF tells of it with its first record, when it may have moved something already. */
	p = point_new(flow, ev->since_ns);
	if (p)
		point_set(p, &ev->tcp.use);
	flow->resent_told = ev->tcp.use.total_retrans;
	if (ev->why != SCOPE_FLOW_OPEN) /* of which nothing was before */
		counts_set(&flow->before, &ev->tcp.use);
	return flow;
}

/* What is told late was so for all that came after it: a point that has it from the one before did not know. */
static void point_set_later(struct flow *flow, const struct flow_point *p)
{
	struct flow_point *q = flow->points + flow->first + flow->npoints;

	while (--q > p)
		flow_counts__at_least(&q->c, &p->c);
}

uint32_t flow__uses_known(const struct flow *flow, const struct scope_ev_uses *ev)
{
	uint32_t n = flow->next_nr[ev->dir] - ev->nr;

	if ((int32_t)n <= 0)
		return 0;
	return n < ev->n ? n : ev->n;
}

int flow__uses(struct flow *flow, const struct scope_ev_uses *ev, uint32_t from)
{
	const struct scope_use *use;
	struct flow_point *p;

	for (; from < ev->n; from++) {
		use = &ev->at[from];
		p = point_new(flow, ev->h.ts_ns + use->after_ns);
		if (!p)
			return -ENOMEM;
		p->c.bytes[ev->dir] = ev->total + use->total;
		p->c.empty_ns[ev->dir] = ev->empty_ns + use->empty_ns;
		point_set(p, &ev->tcp);
		p->srtt_us = use->srtt_us;
		point_set_later(flow, p);
		flow->next_nr[ev->dir] = ev->nr + from + 1;
	}
	flow->tid = ev->tid;
	return 0;
}

/* ---- Sent again --------------------------------------------------------------------------------- */

/* No room for more: the two next to each other that are closest become one. */
static void thin_out_resent(struct flow *flow)
{
	struct flow_resent *r = flow->resent;
	uint32_t i, at = 0;

	for (i = 1; i + 1 < flow->nresent; i++)
		if (r[i + 1].last_ns - r[i].ts_ns < r[at + 1].last_ns - r[at].ts_ns)
			at = i;
	r[at].last_ns = r[at + 1].last_ns;
	r[at].total = r[at + 1].total;
	flow->nresent--;
	memmove(&r[at + 1], &r[at + 2], (flow->nresent - at - 1) * sizeof(*r));
}

static int note_resent(struct flow *flow, uint64_t ts_ns, uint32_t total)
{
	struct flow_resent *last = flow->nresent ? &flow->resent[flow->nresent - 1] : NULL;

	if (!moved(last ? last->total : flow->resent_told, total))
		return 0;
	if (last && ts_ns < last->ts_ns + RESENT_NS) {
		last->last_ns = later(last->last_ns, ts_ns);
		last->total = total;
		return 0;
	}
	if (!flow->resent) {
		flow->resent = calloc(FLOW_RESENT_MAX, sizeof(*flow->resent));
		if (!flow->resent)
			return -ENOMEM;
	}
	if (flow->nresent == FLOW_RESENT_MAX)
		thin_out_resent(flow);
	flow->resent[flow->nresent++] =
		(struct flow_resent){.ts_ns = ts_ns, .last_ns = ts_ns, .total = total};
	return 0;
}

uint32_t flow__resent_settled(const struct flow *flow, uint64_t ts_ns)
{
	uint32_t n = 0;

	while (n < flow->nresent && flow->resent[n].last_ns + FLOW_RESENT_NS <= ts_ns)
		n++;
	return n;
}

void flow__resent_count(struct flow *flow, uint64_t until_ns, uint32_t n[FLOW_RESENT_MAX],
			uint32_t dsack[FLOW_RESENT_MAX])
{
	const struct flow_point *from, *to = flow__at(flow, until_ns);
	uint32_t i, told = flow->resent_told, later = 0;

	for (i = 0; i < flow->nresent; i++) {
		n[i] = flow->resent[i].total - told;
		told = flow->resent[i].total;
	}
	/* The other end says so a round trip later, and we hear of it when the flow is looked at: the last ones first. */
	while (i--) {
		from = flow__at(flow, flow->resent[i].ts_ns);
		dsack[i] = from && to ? moved(from->c.dsack + later, to->c.dsack) : 0;
		if (dsack[i] > n[i])
			dsack[i] = n[i];
		later += dsack[i];
	}
}

void flow__resent_forget(struct flow *flow, uint32_t n)
{
	if (!n)
		return;
	flow->resent_told = flow->resent[n - 1].total;
	flow->nresent -= n;
	memmove(flow->resent, flow->resent + n, flow->nresent * sizeof(*flow->resent));
}

int flow__retrans(struct flow *flow, const struct scope_ev_retrans *r)
{
	struct flow_point *p = point_new(flow, r->h.ts_ns);

	if (!p || note_resent(flow, r->h.ts_ns, r->total))
		return -ENOMEM;
	if ((int32_t)(r->total - p->c.retrans) > 0)
		p->c.retrans = r->total;
	point_set_later(flow, p);
	return 0;
}

/* All of it, unless we have a younger one: samples and records overtake each other. */
static void take_tcp(struct flow *flow, const struct scope_tcp *tcp, uint64_t ts_ns)
{
	uint64_t acked = flow->tcp.bytes_acked, received = flow->tcp.bytes_received;

	if (ts_ns < flow->tcp_ns)
		return;
	flow->tcp = *tcp;
	flow->tcp.bytes_acked = later(acked, tcp->bytes_acked);
	flow->tcp.bytes_received = later(received, tcp->bytes_received);
	flow->tcp_ns = ts_ns;
}

/* Of a flow that rests, one point is as good as many. */
static void drop_if_same(struct flow *flow, const struct flow_point *p)
{
	const struct flow_point *was = p - 1;

	if (p == flow__last(flow) && flow->npoints > 1 && !memcmp(&p->c, &was->c, sizeof(p->c)) &&
	    p->srtt_us == was->srtt_us && p->rtt_min_us == was->rtt_min_us && p->cwnd == was->cwnd)
		flow->npoints--;
}

/*
 * Its last call was before the sample, and the step that it ended may ask for just that time; unless an
 * earlier sample has told of it.
 */
static int open_point(struct flow *flow, const struct scope_flow_open *open, int dir)
{
	const struct flow_point *was = open->calls ? flow__at(flow, open->last_ns) : NULL;
	struct flow_point *p;

	if (!open->calls ||
	    (was && was->c.bytes[dir] >= open->total && was->c.empty_ns[dir] >= open->empty_ns))
		return 0;
	p = point_new(flow, open->last_ns);
	if (!p)
		return -ENOMEM;
	if (open->total > p->c.bytes[dir])
		p->c.bytes[dir] = open->total;
	if (open->empty_ns > p->c.empty_ns[dir])
		p->c.empty_ns[dir] = open->empty_ns;
	point_set_later(flow, p);
	return 0;
}

int flow__sample(struct flow *flow, const struct scope_flow_sample *s)
{
	struct flow_point *p;
	int dir;

	if (open_point(flow, &s->open[SCOPE_TX], SCOPE_TX) ||
	    open_point(flow, &s->open[SCOPE_RX], SCOPE_RX))
		return -ENOMEM;
	p = point_new(flow, s->ts_ns);
	if (!p)
		return -ENOMEM;
	for (dir = 0; dir < 2; dir++) {
		p->c.bytes[dir] = s->open[dir].total;
		p->c.empty_ns[dir] = s->open[dir].empty_ns;
	}
	point_set(p, &s->tcp.use);
	point_set_later(flow, p);
	drop_if_same(flow, p);
	take_tcp(flow, &s->tcp, s->ts_ns);
	return 0;
}

int flow__told(struct flow *flow, const struct scope_ev_flow *ev)
{
	struct flow_point *p = point_new(flow, ev->h.ts_ns);

	if (!p)
		return -ENOMEM;
	p->c.bytes[SCOPE_TX] = ev->total[SCOPE_TX];
	p->c.bytes[SCOPE_RX] = ev->total[SCOPE_RX];
	point_set(p, &ev->tcp.use);
	take_tcp(flow, &ev->tcp, ev->h.ts_ns);
	return 0;
}

int flow__drop(struct flow *flow, const struct flow_drop *drop)
{
	struct flow_drop *grown;
	uint32_t cap;

	if (flow->ndrops >= FLOW_DROPS_MAX) {
		memmove(flow->drops, flow->drops + FLOW_DROPS_MAX / 2,
			(flow->ndrops - FLOW_DROPS_MAX / 2) * sizeof(*flow->drops));
		flow->ndrops -= FLOW_DROPS_MAX / 2;
	}
	if (flow->ndrops == flow->drops_cap) {
		cap = flow->drops_cap ? flow->drops_cap * 2 : POINTS_MIN;
		grown = realloc(flow->drops, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		flow->drops = grown;
		flow->drops_cap = cap;
	}
	flow->drops[flow->ndrops++] = *drop;
	return 0;
}

static bool is_later(const void *points, uint64_t i, uint64_t ns)
{
	return ((const struct flow_point *)points)[i].ts_ns > ns;
}

/* The last point up to ts_ns, if that is not far from `from`; else it is searched for among all. */
static uint32_t point_near(const struct flow_point *p, uint32_t n, uint32_t from, uint64_t ts_ns)
{
	uint32_t i = from < n ? from : n - 1, steps;
	uint64_t later;

	for (steps = 0; steps < POINTS_NEAR; steps++) {
		if (p[i].ts_ns > ts_ns) {
			if (!i)
				return 0;
			i--;
		} else if (i + 1 < n && p[i + 1].ts_ns <= ts_ns) {
			i++;
		} else {
			return i;
		}
	}
	later = search_later(0, n, is_later, p, ts_ns);
	return later ? (uint32_t)later - 1 : 0;
}

const struct flow_point *flow__at(struct flow *flow, uint64_t ts_ns)
{
	const struct flow_point *p = flow->points + flow->first;

	if (!flow->npoints)
		return NULL;
	flow->seen = point_near(p, flow->npoints, flow->seen, ts_ns);
	return &p[flow->seen];
}

bool flow__moved(struct flow *flow)
{
	const struct flow_point *p = flow__at(flow, flow->tcp_ns); /* what is told is of then */

	return p && (flow->tcp.bytes_acked != flow->told_tcp.bytes_acked ||
		     flow->tcp.bytes_received != flow->told_tcp.bytes_received ||
		     p->c.bytes[SCOPE_TX] != flow->told.bytes[SCOPE_TX] ||
		     p->c.bytes[SCOPE_RX] != flow->told.bytes[SCOPE_RX] ||
		     p->c.retrans != flow->told.retrans || p->c.rx_ooo != flow->told.rx_ooo);
}

/* After much at once, most of its room stays empty. */
static void shrink(struct flow *flow)
{
	struct flow_point *less;
	uint32_t cap = flow->cap;

	while (cap > POINTS_LOW && flow->npoints <= cap / 8)
		cap /= 2;
	if (cap == flow->cap)
		return;
	memmove(flow->points, flow->points + flow->first, flow->npoints * sizeof(*less));
	flow->first = 0;
	less = realloc(flow->points, cap * sizeof(*less));
	if (!less)
		return;
	flow->points = less;
	flow->cap = cap;
}

void flow__prune(struct flow *flow, uint64_t before_ns)
{
	const struct flow_point *p = flow__at(flow, before_ns);
	uint32_t n = p ? (uint32_t)(p - (flow->points + flow->first)) : 0, d = 0;

	flow->first += n;
	flow->npoints -= n;
	flow->seen = 0; /* the one that was found just now */
	while (d < flow->ndrops && flow->drops[d].told && flow->drops[d].ts_ns < before_ns)
		d++;
	if (d)
		memmove(flow->drops, flow->drops + d, (flow->ndrops - d) * sizeof(*flow->drops));
	flow->ndrops -= d;
	/* Its share was larger when there were fewer. */
	while (flow->npoints > points_max(flow))
		thin_out(flow);
	shrink(flow);
}

static void keep(struct flow *flow, uint64_t since_ns)
{
	if (flow && since_ns < flow->keep_ns)
		flow->keep_ns = since_ns;
}

void flows__keep(struct flows *f, struct flow *flow, uint64_t since_ns)
{
	if (since_ns == UINT64_MAX)
		return;
	keep(flow, since_ns);
	keep(flows__peer(f, flow), since_ns);
}

void flows__prune(struct flows *f, uint64_t before_ns)
{
	struct flow *flow, *tmp;
	uint64_t before;

	HASH_ITER (hh, f->by_key, flow, tmp) {
		before = flow->keep_ns < before_ns ? flow->keep_ns : before_ns;
		flow->keep_ns = UINT64_MAX;
		flow__prune(flow, before);
		if (!flow->gone || flow->forgotten ||
		    (flow->tcp_ns >= before && HASH_COUNT(f->by_key) < FLOWS_MAX / 2))
			continue;
		flow->forgotten = true;
		flow__put(f, flow);
	}
}

/* ---- Figures ------------------------------------------------------------------------------------ */

static uint64_t at_most(uint64_t v, uint64_t max)
{
	return v < max ? v : max;
}

static void count_drop(struct flow_figures *fig, uint32_t reason)
{
	uint32_t i;

	for (i = 0; i < fig->ndrops && fig->drops[i].reason != reason; i++)
		;
	if (i == FLOW_FIG_DROPS)
		return;
	if (i == fig->ndrops) {
		fig->drops[fig->ndrops].reason = reason;
		fig->drops[fig->ndrops++].n = 0;
	}
	fig->drops[i].n++;
	for (; i && fig->drops[i].n > fig->drops[i - 1].n; i--) {
		reason = fig->drops[i].reason;
		fig->drops[i].reason = fig->drops[i - 1].reason;
		fig->drops[i - 1].reason = reason;
		fig->drops[i].n--; /* they differ by just the one */
		fig->drops[i - 1].n++;
	}
}

/* NCCL's connections move data one way. What is dropped of the other way is made good by the next one. */
static bool is_ack(const struct flow *flow, const struct flow_drop *drop)
{
	return flow->role.known && drop->rx == flow->role.is_send;
}

void flow_figures__add(struct flow_figures *fig, const struct flows *f, struct flow *flow,
		       uint64_t from_ns, uint64_t to_ns)
{
	const struct flow_point *a = flow__at(flow, from_ns), *b = flow__at(flow, to_ns);
	uint64_t span = to_ns > from_ns ? to_ns - from_ns : 0, busy, sndbuf;
	uint32_t i;
	int dir;

	if (!a || !b)
		return;
	fig->retrans += moved(a->c.retrans, b->c.retrans);
	fig->lost += moved(a->c.lost, b->c.lost);
	fig->dsack += moved(a->c.dsack, b->c.dsack);
	fig->rx_ooo += moved(a->c.rx_ooo, b->c.rx_ooo);
	/* In whole jiffies, of which one may have begun before. */
	busy = at_most(moved(a->c.busy, b->c.busy) * f->jiffy_ns, span);
	sndbuf = at_most(moved(a->c.sndbuf, b->c.sndbuf) * f->jiffy_ns, busy);
	fig->busy_ns += busy;
	fig->sndbuf_ns += sndbuf;
	fig->rwnd_ns += at_most(moved(a->c.rwnd, b->c.rwnd) * f->jiffy_ns, busy - sndbuf);
	for (dir = 0; dir < 2; dir++)
		if (b->c.empty_ns[dir] > a->c.empty_ns[dir])
			fig->empty_ns[dir] +=
				at_most(b->c.empty_ns[dir] - a->c.empty_ns[dir], span);
	for (i = 0; i < flow->ndrops; i++)
		if (flow->drops[i].ts_ns >= from_ns && flow->drops[i].ts_ns <= to_ns &&
		    !is_ack(flow, &flow->drops[i]))
			count_drop(fig, flow->drops[i].reason);
}

void flow_figures__clip(struct flow_figures *fig, uint64_t span_ns)
{
	fig->busy_ns = at_most(fig->busy_ns, span_ns);
	fig->sndbuf_ns = at_most(fig->sndbuf_ns, fig->busy_ns);
	fig->rwnd_ns = at_most(fig->rwnd_ns, fig->busy_ns - fig->sndbuf_ns);
	fig->empty_ns[SCOPE_TX] = at_most(fig->empty_ns[SCOPE_TX], span_ns);
	fig->empty_ns[SCOPE_RX] = at_most(fig->empty_ns[SCOPE_RX], span_ns);
}
