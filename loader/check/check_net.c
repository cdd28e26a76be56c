// SPDX-License-Identifier: BSD-2-Clause
/*
 * What must hold of flows, and of what events say about them; see check_net.h. Memory: two struct
 * net_flow (about 300 bytes) for each flow of the process being read, given back at its end.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check_net.h"
#include "hash.h"

/* The writer takes each time by itself from the kernel's units. */
#define NET_NS 2
/* flows and drops are cut after so many. */
#define NET_LIST   4
#define NET_RESENT 32

/* What a flow counts and never takes back. */
static const struct {
	const char *name;
	bool time;
} counters[] = {
	{"txBytes", false},    {"rxBytes", false},	 {"retrans", false},
	{"rxOoo", false},      {"lost", false},		 {"dsack", false},
	{"busy", true},	       {"rwndLimited", true},	 {"sndbufLimited", true},
	{"bytesAcked", false}, {"bytesReceived", false},
};

struct net_flow {
	uint64_t key; /* of name and namespace, or of the name alone */
	bool is_name; /* the latter: what events know a flow by */
	bool ended;
	uint32_t line;	     /* of its last record, 0: none yet */
	uint32_t named_line; /* is_name: of the first record of another kind that names it */
	int64_t ts;
	uint32_t known;	 /* bits: the counters that its last record had */
	uint64_t resent; /* segments, in all its records */
	uint64_t total[ARRAY_SIZE(counters)];
	char name[112]; /* made safe, and cut */
	UT_hash_handle hh;
};

static struct net_flow *flow_get(struct check *c, struct net_rules *n, const struct json_node *name,
				 const uint64_t *netns)
{
	uint64_t key = hash_text(name);
	struct net_flow *flow;

	if (netns)
		key = mix(key ^ mix(*netns + 1));
	HASH_FIND(hh, n->flows, &key, sizeof(key), flow);
	if (flow)
		return flow;
	flow = calloc(1, sizeof(*flow));
	if (!flow) {
		c->err = -ENOMEM;
		return NULL;
	}
	flow->key = key;
	flow->is_name = !netns;
	snprintf(flow->name, sizeof(flow->name), "%s", quote(name->s, name->len));
	HASH_ADD(hh, n->flows, key, sizeof(key), flow);
	if (!HASH_ADDED(hh, flow)) {
		free(flow);
		c->err = -ENOMEM;
		return NULL;
	}
	return flow;
}

/* A record of another kind names a flow. */
static void flow_named(struct check *c, struct net_rules *n, const struct json_node *name)
{
	struct net_flow *flow = name ? flow_get(c, n, name, NULL) : NULL;

	if (flow && !flow->named_line)
		flow->named_line = c->line;
}

#define LATE_MAX 1000

/* What a lost record would explain is a warning. */
static enum level level_of(const struct net_rules *n)
{
	return n->lossy ? FIND_WARNING : FIND_ERROR;
}

/*
 * A lost record comes behind the first lines that it explains: what it may turn into a warning is told when the file
 * has been read. Beyond LATE_MAX it is told at once.
 */
__attribute__((format(printf, 4, 5))) static void find_late(struct check *c, struct net_rules *n,
							    const char *code, const char *fmt, ...)
{
	struct net_late *grown = NULL;
	char text[sizeof(n->late->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!n->lossy && n->nlate < LATE_MAX)
		grown = realloc(n->late, (n->nlate + 1) * sizeof(*grown));
	if (!grown) {
		find(c, level_of(n), code, "%s", text);
		return;
	}
	n->late = grown;
	grown += n->nlate++;
	grown->line = c->line;
	grown->code = code;
	memcpy(grown->text, text, sizeof(text));
}

void net_rules__late(struct check *c, struct net_rules *n)
{
	size_t i;

	for (i = 0; i < n->nlate; i++)
		find_at(c, level_of(n), n->late[i].line, n->late[i].code, "%s", n->late[i].text);
	free(n->late);
	n->late = NULL;
	n->nlate = 0;
}

static void add(uint64_t *sum, uint64_t val)
{
	*sum = val > UINT64_MAX - *sum ? UINT64_MAX : *sum + val;
}

/* The two limits are parts of the time in which data was outstanding. @at: where, for messages. */
static void limits_check(struct check *c, const struct json_node *figures, const char *at)
{
	uint64_t sndbuf = get_time(c, figures, "sndbufLimited");
	uint64_t rwnd = get_time(c, figures, "rwndLimited");
	int64_t busy = get_time(c, figures, "busy");

	if (sndbuf + rwnd > (uint64_t)busy + NET_NS)
		find(c, FIND_ERROR, "net-bounds",
		     "%ssndbufLimited is %s and %srwndLimited %s, %sbusy only %s", at, us(sndbuf),
		     at, us(rwnd), at, us(busy));
}

/* ------------------------------------------------------------------ net of an event */

/* One thread's: it cannot have waited for longer than it took. */
static void times_check(struct check *c, const struct json_node *rec, const struct json_node *net)
{
	static const char *const within[] = {"busy", "noData", "noRoom"};
	int64_t duration = get_time(c, rec, "duration"), time;
	size_t i;

	if (get_true(c, rec, "unfinished"))
		return;
	for (i = 0; i < ARRAY_SIZE(within); i++) {
		time = get_time(c, net, within[i]);
		if (time - NET_NS > duration)
			find(c, FIND_ERROR, "net-bounds", "net.%s is %s, duration only %s",
			     within[i], us(time), us(duration));
	}
}

/* NET_RX is one of the interrupts on top of the thread. */
static void softirq_check(struct check *c, const struct json_node *rec, const struct json_node *net)
{
	const struct json_node *sched = jn_get(&c->doc, rec, "sched");
	int64_t rx = get_time(c, net, "softirqRx"), irq = get_time(c, sched, "irq");

	if (jn_get(&c->doc, sched, "irq") && rx > irq)
		find(c, FIND_ERROR, "net-softirq", "net.softirqRx is %s, sched.irq only %s", us(rx),
		     us(irq));
}

static void drops_check(struct check *c, const struct json_node *net)
{
	const struct json_node *list = jn_get(&c->doc, net, "drops");
	uint64_t last = UINT64_MAX, val;
	unsigned int nr = 0;
	uint32_t i;

	for (i = list ? list->first : 0; i; i = c->doc.nodes[i].next) {
		val = get_u64(c, &c->doc.nodes[i], "n");
		if (++nr > NET_LIST || !val || val > last) {
			find(c, FIND_ERROR, "net-drops", "net.drops %s",
			     nr > NET_LIST ? "has more than 4 entries"
			     : val	   ? "is not in order, most first"
					   : "has an entry with n 0");
			return;
		}
		last = val;
	}
}

static bool same_text(const struct json_node *a, const struct json_node *b)
{
	return a->len == b->len && !memcmp(a->s, b->s, a->len);
}

/* Several flows: as many as nFlows says or the first of them, each once, and `flow` before others. */
static void flows_check(struct check *c, struct net_rules *n, const struct json_node *net)
{
	const struct json_node *list = jn_get(&c->doc, net, "flows"), *at[NET_LIST];
	const struct json_node *flow = jn_get(&c->doc, net, "flow");
	uint64_t all = get_u64(c, net, "nFlows");
	unsigned int nr = 0, k;
	uint32_t i;

	if (!list)
		return;
	for (i = list->first; i && nr < NET_LIST; i = c->doc.nodes[i].next) {
		at[nr] = &c->doc.nodes[i];
		flow_named(c, n, at[nr]);
		for (k = 0; k < nr; k++)
			if (same_text(at[k], at[nr]))
				find(c, FIND_ERROR, "net-flows", "net.flows has %s twice",
				     quote(at[k]->s, at[k]->len));
		nr++;
	}
	if (i || nr != (all < NET_LIST ? all : NET_LIST))
		find(c, FIND_ERROR, "net-flows", "net.flows has %s%u entries, nFlows is %llu",
		     i ? "more than " : "", nr, ULL(all));
	if (flow && (nr < 2 || !same_text(flow, at[0])))
		find(c, FIND_ERROR, "net-flows", "net.flow is not the first of two or more flows");
}

void net_rules__open(struct check *c, struct net_rules *n, const struct json_node *rec)
{
	const struct json_node *net = jn_get(&c->doc, rec, "net");

	if (!net)
		return;
	limits_check(c, net, "net.");
	softirq_check(c, rec, net);
	drops_check(c, net);
	flow_named(c, n, jn_get(&c->doc, net, "flow"));
	flows_check(c, n, net);
}

void net_rules__event(struct check *c, struct net_rules *n, const struct json_node *rec,
		      enum etype etype)
{
	const struct json_node *net = jn_get(&c->doc, rec, "net");

	if (!net)
		return;
	net_rules__open(c, n, rec);
	if (etype == ET_COLL || etype == ET_P2P)
		return;
	times_check(c, rec, net);
	if (etype != ET_PROXY_STEP)
		return;
	add(&n->step_bytes[0], get_u64(c, net, "txBytes"));
	add(&n->step_bytes[1], get_u64(c, net, "rxBytes"));
}

/* ------------------------------------------------------------------ flows and drops */

/* "12", or "12.345" of a time, for messages; two may be in use at a time. */
static const char *figure(size_t counter, uint64_t val)
{
	static char text[2][32];
	static unsigned int turn;
	char *to = text[turn++ % 2];

	if (counters[counter].time)
		return us(val);
	snprintf(to, sizeof(text[0]), "%llu", ULL(val));
	return to;
}

static bool figure_get(struct check *c, const struct json_node *obj, size_t counter, uint64_t *val)
{
	const char *name = counters[counter].name;

	*val = counters[counter].time ? (uint64_t)get_time(c, obj, name) : get_u64(c, obj, name);
	return jn_get(&c->doc, obj, name);
}

/* One counter of a record that is not the flow's first: it never falls, and delta is its growth. */
static void counter_follows(struct check *c, struct net_rules *n, const struct net_flow *flow,
			    const struct json_node *rec, size_t k)
{
	const struct json_node *delta = jn_get(&c->doc, rec, "delta");
	uint64_t was = flow->total[k], now, moved;
	bool had = flow->known >> k & 1, has = figure_get(c, rec, k, &now);
	bool said = figure_get(c, delta, k, &moved);

	if (had && has && now < was)
		find(c, FIND_ERROR, "flow-total", "%s is %s, it was %s in line %u",
		     counters[k].name, figure(k, now), figure(k, was), flow->line);
	else if (!delta)
		return;
	else if (said != (had && has))
		find_late(c, n, "flow-delta", "delta.%s %s", counters[k].name,
			  said ? "is of no counter in both records" : "is missing");
	else if (said && moved != now - was)
		find_late(c, n, "flow-delta", "delta.%s is %s, since line %u it grew by %s",
			  counters[k].name, figure(k, moved), flow->line, figure(k, now - was));
}

static void flow_follows(struct check *c, struct net_rules *n, const struct net_flow *flow,
			 const struct json_node *rec)
{
	int64_t ts = get_time(c, rec, "ts");
	size_t k;

	if (ts < flow->ts)
		find(c, FIND_ERROR, "flow-order",
		     "flow record at %s comes after one at %s (line %u)", us(ts), us(flow->ts),
		     flow->line);
	if (!jn_get(&c->doc, rec, "delta"))
		find_late(c, n, "flow-delta", "no delta, but %s has a record in line %u",
			  flow->name, flow->line);
	for (k = 0; k < ARRAY_SIZE(counters); k++)
		counter_follows(c, n, flow, rec, k);
}

/*
 * The record's place in the life of its flow. After the last one the addresses may be those of
 * another flow; its first record is one without delta that does not end it at once.
 */
static void flow_place(struct check *c, struct net_rules *n, const struct net_flow *flow,
		       const struct json_node *rec)
{
	bool delta = jn_get(&c->doc, rec, "delta"), end = get_true(c, rec, "end");

	if (n->unsure)
		return;
	if (flow->ended && (delta || end))
		find_late(c, n, "flow-end", "%s has ended in line %u", flow->name, flow->line);
	else if (flow->line && !flow->ended)
		flow_follows(c, n, flow, rec);
	else if (delta)
		find_late(c, n, "flow-delta", "a delta in the first record of %s", flow->name);
}

/* What of resent is wrong by itself; NULL: nothing. */
static const char *resent_fault(struct check *c, const struct json_node *e, int64_t after,
				int64_t until)
{
	uint64_t segments = get_u64(c, e, "n");
	int64_t ts = get_time(c, e, "ts");

	if (ts < after)
		return "is not in order of time";
	if (ts > until)
		return "has an entry later than ts";
	if (!segments)
		return "has an entry with n 0";
	return get_u64(c, e, "dsack") > segments ? "has an entry with more dsack than n" : NULL;
}

/* When segments were sent again, of all that retrans counts. */
static void resent_check(struct check *c, struct net_rules *n, struct net_flow *flow,
			 const struct json_node *rec)
{
	const struct json_node *list = jn_get(&c->doc, rec, "resent"), *e;
	int64_t until = get_time(c, rec, "ts"), after = 0;
	const char *fault = NULL;
	unsigned int nr = 0;
	uint32_t i;

	if (!jn_get(&c->doc, rec, "delta"))
		flow->resent = 0; /* another flow with these addresses */
	for (i = list ? list->first : 0; i && !fault; i = e->next) {
		e = &c->doc.nodes[i];
		fault = ++nr > NET_RESENT ? "has more than 32 entries"
					  : resent_fault(c, e, after, until);
		after = get_time(c, e, "ts");
		add(&flow->resent, get_u64(c, e, "n"));
	}
	if (fault)
		find(c, FIND_ERROR, "flow-resent", "resent %s", fault);
	else if (nr && !n->unsure && flow->resent > get_u64(c, rec, "retrans"))
		find_late(c, n, "flow-resent",
			  "resent has %llu segments until now, retrans only %llu",
			  ULL(flow->resent), ULL(get_u64(c, rec, "retrans")));
}

static void flow_take(struct check *c, struct net_rules *n, struct net_flow *flow,
		      const struct json_node *rec)
{
	uint64_t val;
	size_t k;

	flow->known = 0;
	for (k = 0; k < ARRAY_SIZE(counters); k++) {
		flow->known |= (uint32_t)figure_get(c, rec, k, &val) << k;
		flow->total[k] = val;
	}
	flow->ts = get_time(c, rec, "ts");
	flow->line = c->line;
	flow->ended = get_true(c, rec, "end");
	if (!flow->ended)
		return;
	add(&n->flow_bytes[0], flow->total[0]);
	add(&n->flow_bytes[1], flow->total[1]);
}

void net_rules__flow(struct check *c, struct net_rules *n, const struct json_node *rec)
{
	const struct json_node *name = jn_get(&c->doc, rec, "flow");
	uint64_t netns = get_u64(c, rec, "netns");
	struct net_flow *named = flow_get(c, n, name, NULL), *flow = flow_get(c, n, name, &netns);

	if (!named || !flow)
		return;
	named->line = c->line;
	limits_check(c, rec, "");
	flow_place(c, n, flow, rec);
	resent_check(c, n, flow, rec);
	flow_take(c, n, flow, rec);
}

void net_rules__drop(struct check *c, struct net_rules *n, const struct json_node *rec)
{
	flow_named(c, n, jn_get(&c->doc, rec, "flow"));
	if (!get_u64(c, rec, "n"))
		find(c, FIND_ERROR, "drop-none", "a drop record with n 0: leave it out");
}

/* ------------------------------------------------------------------ a finished file */

/* A byte belongs to one step at most. */
static void bytes_check(struct check *c, const struct net_rules *n, const uint64_t flow_bytes[2],
			uint64_t line)
{
	static const char *const keys[] = {"txBytes", "rxBytes"};
	int dir;

	for (dir = 0; dir < 2; dir++)
		if (n->step_bytes[dir] > flow_bytes[dir])
			find_at(c, level_of(n), line, "flow-bytes",
				"%s of all ProxySteps are %llu, of all flows only %llu", keys[dir],
				ULL(n->step_bytes[dir]), ULL(flow_bytes[dir]));
}

void net_rules__end(struct check *c, const struct net_rules *n, uint64_t line)
{
	uint64_t bytes[2] = {n->flow_bytes[0], n->flow_bytes[1]};
	const struct net_flow *flow;

	if (n->unsure)
		return;
	for (flow = n->flows; flow; flow = flow->hh.next) {
		if (flow->is_name && !flow->line)
			find_at(c, level_of(n), flow->named_line, "net-flow",
				"%s has no flow record in the file", flow->name);
		if (flow->is_name || flow->ended)
			continue;
		find_at(c, level_of(n), flow->line, "flow-missing-end",
			"%s has no last record in a finished file", flow->name);
		add(&bytes[0], flow->total[0]);
		add(&bytes[1], flow->total[1]);
	}
	bytes_check(c, n, bytes, line);
}

void net_rules__free(struct net_rules *n)
{
	free(n->late);
	HASH_FREE_ALL(n->flows);
}
