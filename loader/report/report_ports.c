// SPDX-License-Identifier: BSD-2-Clause
/* What RDMA ports counted, in an operation and over the whole trace; see report.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report_priv.h"

#define PORTS_MAX 16384 /* of all nodes: 8 of 2,048 each */

/* ---- In an operation ------------------------------------------------------------------------------------ */

/* Of the parts the one whose ports had most of it; all processes of a node have the same ones. NULL: none had any. */
static const struct report_part *part_of_sign(const struct report_op *op, enum rdma_sign sign)
{
	const struct report_part *part = NULL;
	uint32_t i, most_n = 0;

	for (i = 0; i < op->nparts; i++) {
		if (op->parts[i]->moved[sign].n <= most_n)
			continue;
		part = op->parts[i];
		most_n = part->moved[sign].n;
	}
	return part;
}

const struct report_moved *report_sign_most(const struct report_op *op, enum rdma_sign sign)
{
	const struct report_part *part = part_of_sign(op, sign);

	return part ? &part->moved[sign] : NULL;
}

/* They are read so often: what they counted within an operation is of as much more time, half of it on either side on average. */
#define READ_EVERY_NS INT64_C(100000000)

int64_t report_ports_window(const struct report_op *op)
{
	return most(report_op_duration(op), 0) + READ_EVERY_NS;
}

int64_t report_sign_rate(const struct report_op *op, enum rdma_sign sign)
{
	const struct report_moved *moved = report_sign_most(op, sign);
	const double max = (double)(INT64_C(1) << 44); /* a histogram has room for it */
	double rate;

	if (!moved)
		return 0;
	rate = (double)moved->n * 1e12 / (double)report_ports_window(op);
	return rate < 1 ? 1 : rate < max ? (int64_t)rate : (int64_t)max;
}

int64_t report_stall(const struct report_op *op)
{
	int64_t ns = 0;
	uint32_t i, k;

	for (i = 0; i < op->nparts; i++)
		for (k = 0; k < op->parts[i]->nlinks; k++)
			ns = most(ns, op->parts[i]->link[k].stall);
	return ns;
}

/* That it is the reason, if there is no other: what a port counts was not all for this operation. */
static const double trust[NR_SIGNS] = {
	[SIGN_TIMEOUT] = 0.8, [SIGN_LINK] = 0.6,   [SIGN_RESENT] = 0.7,
	[SIGN_MISSED] = 0.5,  [SIGN_MARKED] = 0.5, [SIGN_HELD] = 0.4,
};

#define ODD_RATE  4 /* times as often as usual */
#define BY_CHANCE 0.5

/*
 * What most operations have is odd if there is much more of it in the same time. Of what few have, a longer one has some sooner than
 * others, whether that made it so long or not.
 */
static bool is_odd(const struct report_op *op, const struct report_typical *typical,
		   enum rdma_sign sign)
{
	int64_t rate = report_sign_rate(op, sign);

	if (!rate || !(typical->window > 0))
		return false;
	if (typical->share[sign] > BY_CHANCE)
		return rate / ODD_RATE >= typical->rate[sign];
	return typical->share[sign] * (double)report_ports_window(op) < BY_CHANCE * typical->window;
}

static uint32_t port_on_node(struct names *names, const struct report_part *p, uint32_t port)
{
	char text[160];

	if (!p->proc->host)
		return port;
	snprintf(text, sizeof(text), "%.80s on %.64s", names__text(names, port),
		 names__text(names, p->proc->host));
	return names__get(names, text, strlen(text));
}

/* Of what it moved, some went another way than TCP, or nothing tells which. */
static bool may_use_ports(const struct report_op *op)
{
	uint32_t i, k;

	for (i = 0; i < op->nparts; i++)
		for (k = 0; k < op->parts[i]->nlinks; k++)
			if (!op->parts[i]->link[k].tcp)
				return true;
	return false;
}

bool report_ports_cause(const struct report_op *op, const struct report_typical *typical,
			struct names *names, struct report_cause *cause)
{
	const struct report_part *part;
	int sign;

	if (!may_use_ports(op))
		return false;
	for (sign = 0; sign < NR_SIGNS; sign++)
		if (is_odd(op, typical, sign))
			break;
	if (sign == NR_SIGNS)
		return false;
	part = part_of_sign(op, sign);
	*cause = (struct report_cause){
		.code = rdma_sign_is_loss(sign) ? CODE_RDMA_LOSS : CODE_RDMA_CONGESTION,
		.rank = -1,
		.trust = trust[sign],
		.part = part,
		.moved = &part->moved[sign],
		.culprit = port_on_node(names, part, part->moved[sign].port)};
	return true;
}

/* ---- Over the whole trace --------------------------------------------------------------------------------- */

struct report_port *report_port_of(struct report *r, const struct report_proc *p, uint32_t name)
{
	struct report_port key = {.node = p->node, .name = name}, *port;
	const size_t len = offsetof(struct report_port, host);

	HASH_FIND(hh, r->ports, &key, len, port);
	if (port)
		return port;
	if (HASH_COUNT(r->ports) >= PORTS_MAX) {
		r->totals.ports_left++;
		return NULL;
	}
	port = calloc(1, sizeof(*port));
	if (port) {
		*port = key;
		port->host = p->host;
		HASH_ADD(hh, r->ports, node, len, port);
	}
	if (!port || !HASH_ADDED(hh, port)) {
		free(port);
		r->err = -ENOMEM;
		return NULL;
	}
	return port;
}

static void count(struct report_counter *c, uint64_t n)
{
	if (__builtin_add_overflow(c->n, n, &c->n))
		c->n = UINT64_MAX;
}

/* Where one more fits: at the end, or of a sign of trouble in place of one that is none. NULL: nowhere. */
static struct report_counter *new_counter(const struct report *r, struct report_port *port,
					  enum rdma_sign sign)
{
	uint32_t i;

	if (port->ncounters < REPORT_COUNTERS)
		return &port->counters[port->ncounters++];
	for (i = 0; i < REPORT_COUNTERS && sign != NO_SIGN; i++)
		if (report_counter_sign(&port->counters[i], r->names) == NO_SIGN)
			return &port->counters[i];
	return NULL;
}

void report_port_add(struct report *r, struct report_port *port, const char *counter, size_t len,
		     uint64_t n)
{
	struct report_counter *c;
	const char *name;
	uint32_t i;

	for (i = 0; i < port->ncounters; i++) {
		name = names__text(r->names, port->counters[i].name);
		if (strlen(name) == len && !memcmp(name, counter, len)) {
			count(&port->counters[i], n);
			return;
		}
	}
	c = new_counter(r, port, rdma_sign_of(counter, len));
	r->totals.ports_left += !c;
	if (c)
		*c = (struct report_counter){.name = names__get(r->names, counter, len), .n = n};
}

/* Whether @a is to be told before @b. */
static bool goes_before(const struct names *names, const struct report_counter *a,
			const struct report_counter *b)
{
	enum rdma_sign x = report_counter_sign(a, names), y = report_counter_sign(b, names);

	return x != y ? x < y : a->n > b->n;
}

static void sort_counters(struct report_port *port, const struct names *names)
{
	struct report_counter c;
	uint32_t i, k;

	for (i = 1; i < port->ncounters; i++) {
		c = port->counters[i];
		for (k = i; k && goes_before(names, &c, &port->counters[k - 1]); k--)
			port->counters[k] = port->counters[k - 1];
		port->counters[k] = c;
	}
}

void report_ports_end(struct report *r)
{
	struct report_port *port, *tmp;

	HASH_ITER (hh, r->ports, port, tmp)
		sort_counters(port, r->names);
}

/* The first of its counters, in order, that is a sign of loss; NO_SIGN: none is. */
static enum rdma_sign worst_sign(const struct report *r, const struct report_port *port,
				 uint64_t *n)
{
	enum rdma_sign sign = NO_SIGN;

	if (port->ncounters)
		sign = report_counter_sign(&port->counters[0], r->names);
	if (!rdma_sign_is_loss(sign))
		return NO_SIGN;
	*n = port->counters[0].n;
	return sign;
}

struct trouble {
	enum rdma_sign sign;
	uint64_t n;
	struct report_port *port;
};

static int by_trouble(const void *a, const void *b)
{
	const struct trouble *x = a, *y = b;

	if (x->sign != y->sign)
		return x->sign < y->sign ? -1 : 1;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return (x->port->name > y->port->name) - (x->port->name < y->port->name);
}

struct report_port **report_ports_in_trouble(const struct report *r, uint32_t *n)
{
	struct trouble *list = calloc(HASH_COUNT(r->ports) + 1, sizeof(*list));
	struct report_port **ports = calloc(HASH_COUNT(r->ports) + 1, sizeof(struct report_port *)),
			   *port, *tmp;
	uint32_t i;

	*n = 0;
	if (!list || !ports) {
		free(list);
		free(ports);
		return NULL;
	}
	HASH_ITER (hh, r->ports, port, tmp) {
		list[*n].port = port;
		list[*n].sign = worst_sign(r, port, &list[*n].n);
		*n += list[*n].sign != NO_SIGN;
	}
	if (*n)
		qsort(list, *n, sizeof(*list), by_trouble);
	for (i = 0; i < *n; i++)
		ports[i] = list[i].port;
	free(list);
	return ports;
}
