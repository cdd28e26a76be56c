// SPDX-License-Identifier: BSD-2-Clause
/*
 * What RDMA ports moved, as counters. All processes of a node tell of them, each in intervals of its own: of those that overlap the one
 * that was read first counts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export.h"
#include "rdma_signs.h"

#define PORTS_MAX 16384 /* of all nodes */
#define IS_PORT	  1	/* in key.rank, which no connection has */

struct export_port {
	uint64_t
		key; /* hash of node and name: who makes others have the same one hides what his own trace tells */
	int64_t until;
	UT_hash_handle hh;
};

static struct export_port *port_of(struct export *x, uint64_t name)
{
	uint64_t key = fnv_more(name, &x->proc->node, sizeof(x->proc->node));
	struct export_port *p;

	HASH_FIND(hh, x->ports, &key, sizeof(key), p);
	if (p || HASH_COUNT(x->ports) >= PORTS_MAX)
		return p;
	p = malloc(sizeof(*p));
	if (p) {
		*p = (struct export_port){.key = key, .until = INT64_MIN};
		HASH_ADD(hh, x->ports, key, sizeof(key), p);
	}
	if (!p || !HASH_ADDED(hh, p)) {
		free(p);
		x->err = -ENOMEM;
		return NULL;
	}
	return p;
}

static double u64_of(const struct export *x, const struct json_node *obj, const char *key)
{
	uint64_t n;

	return jn_u64(rec_get(x, obj, key), &n) ? (double)n : 0;
}

/* InfiniBand counts four bytes as one. */
static double bytes_of(const struct export *x, const struct json_node *counters, const char *words,
		       const char *bytes)
{
	double n = 4 * u64_of(x, counters, words);

	return n > 0 ? n : u64_of(x, counters, bytes);
}

static double losses_of(const struct export *x, const struct json_node *counters)
{
	const struct json_node *c = counters && counters->kind == JSON_KIND_OBJ && counters->first
					    ? &x->doc.nodes[counters->first]
					    : NULL;
	double sum = 0;
	uint64_t n;

	for (; c; c = c->next ? &x->doc.nodes[c->next] : NULL)
		if (c->key && rdma_sign_is_loss(rdma_sign_of(c->key, c->key_len)) && jn_u64(c, &n))
			sum += (double)n;
	return sum;
}

/* With its lane. NULL: no room. */
static struct export_group *group_of(struct export *x, const struct export_key *key,
				     const struct json_node *device, uint64_t nr)
{
	struct export_proc *proc = x->proc;
	struct export_group *g;

	HASH_FIND(hh, proc->groups, key, sizeof(*key), g);
	if (g)
		return g->nlanes ? g : NULL;
	if (proc->nports == EXPORT_PORTS)
		return NULL;
	g = export_group_of(x, key, NULL, "RDMA %.*s:%llu",
			    device->len < 64 ? (int)device->len : 64, device->s,
			    (unsigned long long)nr);
	if (!g || !export_lane_of(x, g, 0))
		return NULL;
	return proc->ports[proc->nports++] = g;
}

static void put_port(struct export *x, const struct json_node *port, int64_t from, int64_t ts)
{
	const struct json_node *device = rec_get(x, port, "device"),
			       *counters = rec_get(x, port, "counters");
	struct export_key key = {.kind = EXPORT_FLOW, .rank = IS_PORT};
	uint64_t nr = (uint64_t)u64_of(x, port, "port");
	struct export_group *g;
	struct export_port *p;
	double s = (double)(ts - from) / 1e9;

	if (!device || device->kind != JSON_KIND_STR || s <= 0)
		return;
	key.a = fnv_more(fnv_more(FNV_BEGIN, device->s, device->len), &nr, sizeof(nr));
	p = port_of(x, key.a);
	if (!p || from < p->until)
		return;
	g = group_of(x, &key, device, nr);
	if (!g)
		return;
	p->until = g->lanes[0]->last = ts;
	x->fmt->counter(x, g, "sent", "B/s", ts,
			bytes_of(x, counters, "port_xmit_data", "tx_bytes") / s);
	x->fmt->counter(x, g, "received", "B/s", ts,
			bytes_of(x, counters, "port_rcv_data", "rx_bytes") / s);
	x->fmt->counter(x, g, "lost", "events", ts, losses_of(x, counters));
}

/* Those that the record does not tell of moved nothing. */
static void put_rest(struct export *x, int64_t ts)
{
	struct export_group *g;
	uint32_t i;

	for (i = 0; i < x->proc->nports; i++) {
		g = x->proc->ports[i];
		if (g->lanes[0]->last >= ts)
			continue;
		g->lanes[0]->last = ts;
		x->fmt->counter(x, g, "sent", "B/s", ts, 0);
		x->fmt->counter(x, g, "received", "B/s", ts, 0);
		x->fmt->counter(x, g, "lost", "events", ts, 0);
	}
}

void export_ports(struct export *x, const struct json_node *rec)
{
	const struct json_node *list = rec_get(x, rec, "rdma"), *port;
	int64_t ts, from;

	if (!list || list->kind != JSON_KIND_ARR || !x->fmt->counter ||
	    !rec_time(x, rec_get(x, rec, "ts"), &ts))
		return;
	from = ts - rec_span(x, rec, "interval");
	for (port = list->first ? &x->doc.nodes[list->first] : NULL; port;
	     port = port->next ? &x->doc.nodes[port->next] : NULL)
		put_port(x, port, from, ts);
	put_rest(x, ts);
}

void export_ports_free(struct export *x)
{
	HASH_FREE_ALL(x->ports);
}
