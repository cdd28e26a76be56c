// SPDX-License-Identifier: BSD-2-Clause
/*
 * What RDMA ports moved, as counters. All processes of a node tell of them, each in intervals of its own: of those that overlap, those of
 * the process that was read first count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "export.h"
#include "rdma_signs.h"

#define PORTS_MAX 16384 /* of all nodes */
#define RANGES	  16
#define IS_PORT	  1 /* in key.rank, which no connection has */

struct export_port {
	uint64_t
		key; /* hash of node and name: who makes others have the same one hides what his own trace tells */
	/* What processes that were read before have told of. */
	uint32_t n;
	struct export_range {
		int64_t from, to;
	} told[RANGES];
	UT_hash_handle hh;
};

static struct export_port *port_of(struct export *x, uint64_t name)
{
	uint64_t key = fnv_more(name, &x->proc->node, sizeof(x->proc->node));
	struct export_port *p;

	HASH_FIND(hh, x->ports, &key, sizeof(key), p);
	if (p || HASH_COUNT(x->ports) >= PORTS_MAX)
		return p;
	p = calloc(1, sizeof(*p));
	if (p) {
		p->key = key;
		HASH_ADD(hh, x->ports, key, sizeof(key), p);
	}
	if (!p || !HASH_ADDED(hh, p)) {
		free(p);
		x->err = -ENOMEM;
		return NULL;
	}
	return p;
}

static bool is_told(const struct export_port *p, int64_t from, int64_t to)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (from < p->told[i].to && to > p->told[i].from)
			return true;
	return false;
}

/* The process is over. Of more ranges than there is room for the last ones become one, with what is between them. */
void export_ports_end(struct export *x)
{
	const struct export_own_port *own;
	struct export_range *last;
	uint32_t i;

	for (i = 0; i < x->proc->nports; i++) {
		own = &x->proc->ports[i];
		if (own->from >= own->to)
			continue;
		if (own->port->n < RANGES)
			own->port->told[own->port->n++] = (struct export_range){own->from, own->to};
		last = &own->port->told[own->port->n - 1];
		last->from = own->from < last->from ? own->from : last->from;
		last->to = own->to > last->to ? own->to : last->to;
	}
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

static struct export_own_port *own_port(struct export *x, uint64_t name)
{
	uint32_t i;

	for (i = 0; i < x->proc->nports; i++)
		if (x->proc->ports[i].group->key.a == name)
			return &x->proc->ports[i];
	return NULL;
}

/* With its track. NULL: no room. */
static struct export_own_port *new_port(struct export *x, const struct export_key *key,
					const struct json_node *device, uint64_t nr)
{
	struct export_own_port own = {.from = INT64_MAX, .to = INT64_MIN, .seen = INT64_MIN};

	if (x->proc->nports == EXPORT_PORTS)
		return NULL;
	own.port = port_of(x, key->a);
	own.group = export_group_of(x, key, NULL, "RDMA %.*s:%llu",
				    device->len < 64 ? (int)device->len : 64, device->s,
				    (unsigned long long)nr);
	if (!own.port || !own.group)
		return NULL;
	x->proc->ports[x->proc->nports] = own;
	return &x->proc->ports[x->proc->nports++];
}

/* Told to the end of the interval, if no process has told of that before. */
static void tell(struct export *x, struct export_own_port *own, int64_t from, int64_t ts,
		 const double figures[3])
{
	static const char *const names[] = {"sent", "received", "lost"};
	int i;

	if (is_told(own->port, from, ts) || !export_lane_of(x, own->group, 0))
		return;
	own->from = from < own->from ? from : own->from;
	own->to = ts > own->to ? ts : own->to;
	for (i = 0; i < 3; i++)
		x->fmt->counter(x, own->group, names[i], i < 2 ? "B/s" : "events", ts, figures[i]);
}

static void take_port(struct export *x, const struct json_node *port, int64_t from, int64_t ts)
{
	const struct json_node *device = rec_get(x, port, "device"),
			       *counters = rec_get(x, port, "counters");
	struct export_key key = {.kind = EXPORT_FLOW, .rank = IS_PORT};
	const double s = (double)(ts - from) / 1e9;
	struct export_own_port *own;
	uint64_t nr = 0;

	if (!device || device->kind != JSON_KIND_STR)
		return;
	jn_u64(rec_get(x, port, "port"), &nr);
	key.a = fnv_more(fnv_more(FNV_BEGIN, device->s, device->len), &nr, sizeof(nr));
	own = own_port(x, key.a) ?: new_port(x, &key, device, nr);
	if (!own) {
		export_beyond(x, "too many RDMA ports");
		return;
	}
	own->seen = ts;
	tell(x, own, from, ts,
	     (const double[]){bytes_of(x, counters, "port_xmit_data", "tx_bytes") / s,
			      bytes_of(x, counters, "port_rcv_data", "rx_bytes") / s,
			      losses_of(x, counters)});
}

void export_ports(struct export *x, const struct json_node *rec)
{
	const struct json_node *list = rec_get(x, rec, "rdma"), *port;
	int64_t ts, from;
	uint32_t i;

	if (!list || list->kind != JSON_KIND_ARR || !x->fmt->counter ||
	    !rec_time(x, rec_get(x, rec, "ts"), &ts))
		return;
	from = ts - rec_span(x, rec, "interval");
	if (from >= ts)
		return;
	for (port = list->first ? &x->doc.nodes[list->first] : NULL; port;
	     port = port->next ? &x->doc.nodes[port->next] : NULL)
		take_port(x, port, from, ts);
	/* those that the record does not tell of moved nothing */
	for (i = 0; i < x->proc->nports; i++)
		if (x->proc->ports[i].seen != ts)
			tell(x, &x->proc->ports[i], from, ts, (const double[3]){0});
}

void export_ports_free(struct export *x)
{
	HASH_FREE_ALL(x->ports);
}
