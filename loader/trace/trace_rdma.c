// SPDX-License-Identifier: BSD-2-Clause
/*
 * What RDMA ports counted, as JSON: the same for an event and for a `node` record. A port may have
 * 256 counters with long names, so there is a bound to the text, of which every port has its share.
 */
#include "session.h"
#include "trace.h"
#include "trace_keys.h"

#define PORT_TEXT    107 /* ,{"device":"63","port":10,"counters":{ */
#define COUNTER_TEXT 90	 /* ,"66":20 */
#define END_TEXT     13	 /* },"more":256} */
#define AROUND_TEXT  64	 /* what precedes the list, and its brackets */

/* However many ports there are: each can tell of one counter, and of how many it cannot. */
_Static_assert((RDMA_EVENT_MAX - AROUND_TEXT) / RDMA_PORTS_MAX >=
		       PORT_TEXT + COUNTER_TEXT + END_TEXT,
	       "room for all ports");
_Static_assert(RDMA_NAME_MAX <= 64 && sizeof(((struct rdma_counter *)0)->label) <= 67, "texts");
_Static_assert(RDMA_COUNTERS_MAX <= 999, "texts");

struct rdma_text {
	struct json *j;
	const char *begin;
	size_t room;
	uint32_t nports, port; /* that moved; how many of them have begun */
	const char *limit;     /* where the text of this port has to end */
	uint32_t counters, more;
};

static void count_ports(void *arg, const struct rdma_delta *d)
{
	uint32_t *nports = arg;

	*nports += d->first;
}

/* What one does not need is for those behind it. */
static void begin_port(struct rdma_text *t, const struct rdma_delta *d)
{
	if (t->port++)
		json_char(t->j, ',');
	t->limit = t->begin + t->room * t->port / t->nports;
	t->counters = t->more = 0;
	json_lit(t->j, "{\"device\":");
	json_str(t->j, d->device, strlen(d->device));
	KEY_U64(t->j, "port", d->port);
	json_lit(t->j, ",\"counters\":{");
}

static void put_counter(void *arg, const struct rdma_delta *d)
{
	struct rdma_text *t = arg;

	if (d->first)
		begin_port(t, d);
	if (t->limit - t->j->at < COUNTER_TEXT + END_TEXT) {
		t->more++;
	} else {
		if (t->counters++)
			json_char(t->j, ',');
		json_str(t->j, d->counter, strlen(d->counter));
		json_char(t->j, ':');
		json_u64(t->j, d->n);
	}
	if (!d->last)
		return;
	json_char(t->j, '}');
	if (t->more)
		KEY_U64(t->j, "more", t->more);
	json_char(t->j, '}');
}

bool put_rdma(struct json *j, const char *before, const struct proc *p, uint64_t from_ns,
	      uint64_t to_ns, size_t max)
{
	const struct rdma *r = &p->session->rdma;
	struct rdma_text t = {.j = j, .room = max - AROUND_TEXT};

	if (!p->rdma.devices ||
	    !rdma__deltas(r, p->rdma.devices, from_ns, to_ns, count_ports, &t.nports))
		return false;
	json_raw(j, before, strlen(before));
	json_char(j, '[');
	t.begin = j->at;
	rdma__deltas(r, p->rdma.devices, from_ns, to_ns, put_counter, &t);
	json_char(j, ']');
	return true;
}
