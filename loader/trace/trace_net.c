// SPDX-License-Identifier: BSD-2-Clause
/* The network as JSON: net of events, flows, drops. */
#include <stdio.h>
#include <string.h>
#include "live.h"
#include "session.h"
#include "trace.h"
#include "trace_keys.h"

#define FLOWS_MAX    4	/* that an operation names */
#define SUBSYS_SHIFT 16 /* of a drop reason: SKB_DROP_REASON_SUBSYS_SHIFT */

/* ---- Parts -------------------------------------------------------------------------------------- */

static void put_flow_name(struct json *j, const struct flow *flow)
{
	json_str(j, flow->name, strlen(flow->name));
}

/* Some parts of the kernel have reasons of their own, which enum skb_drop_reason does not name. */
static void put_number(char *to, size_t size, uint32_t reason)
{
	if (reason >> SUBSYS_SHIFT)
		snprintf(to, size, "SUBSYS_%u_%u", reason >> SUBSYS_SHIFT,
			 reason & ((1u << SUBSYS_SHIFT) - 1));
	else
		snprintf(to, size, "%u", reason);
}

static void put_reason(struct json *j, const struct proc *p, uint32_t reason)
{
	const char *name = net_names__reason(&p->session->net.names, reason);
	char number[32];

	if (!name && reason) {
		put_number(number, sizeof(number), reason);
		name = number;
	}
	if (!name)
		name = "NOT_SPECIFIED";
	json_str(j, name, strlen(name));
}

/* ---- Of an event -------------------------------------------------------------------------------- */

struct net_of {
	const struct flows *flows;
	struct flow *list[FLOWS_MAX];
	uint32_t n;
	uint64_t from_ns, to_ns;
	struct flow_figures fig;
};

/* A connection that was made anew with the addresses of one before it has its name, too. Its place in the list. */
static uint32_t place_of(const struct net_of *of, const struct flow *flow)
{
	uint32_t i;

	for (i = 0; i < of->n && i < FLOWS_MAX; i++)
		if (!memcmp(&of->list[i]->tuple, &flow->tuple, sizeof(flow->tuple)))
			return i;
	return of->n;
}

static void note_flow(void *arg, struct flow *flow)
{
	struct net_of *of = arg;
	uint32_t at = place_of(of, flow);

	flow_figures__add(&of->fig, of->flows, flow, of->from_ns, of->to_ns);
	if (at < FLOWS_MAX)
		of->list[at] = flow;
	of->n += at == of->n;
}

static void put_flows(struct json *j, const struct net_of *of, uint32_t what)
{
	bool operation = what == SCOPE_COLL || what == SCOPE_P2P;
	uint32_t i;

	if (!operation) {
		json_lit(j, "\"flow\":");
		put_flow_name(j, of->list[0]);
	}
	if (what == SCOPE_PROXY_STEP || (!operation && of->n == 1))
		return;
	json_raw(j, operation ? "" : ",", operation ? 0 : 1);
	json_lit(j, "\"flows\":[");
	for (i = 0; i < of->n && i < FLOWS_MAX; i++) {
		if (i)
			json_char(j, ',');
		put_flow_name(j, of->list[i]);
	}
	json_char(j, ']');
	KEY_U64(j, "nFlows", of->n);
}

static void put_drops(struct json *j, const struct proc *p, const struct flow_figures *fig)
{
	uint32_t i;

	if (!fig->ndrops)
		return;
	json_lit(j, ",\"drops\":[");
	for (i = 0; i < fig->ndrops; i++) {
		if (i)
			json_char(j, ',');
		json_lit(j, "{\"reason\":");
		put_reason(j, p, fig->drops[i].reason);
		KEY_U64(j, "n", fig->drops[i].n);
		json_char(j, '}');
	}
	json_char(j, ']');
}

/* The kernel's figures and ours, of flows over a time; of waiting in the given directions. */
static void put_figures(struct json *j, const struct proc *p, const struct flow_figures *fig,
			bool tx, bool rx)
{
	KEY_U64(j, "retrans", fig->retrans);
	KEY_U64(j, "lost", fig->lost);
	KEY_U64(j, "dsack", fig->dsack);
	KEY_U64(j, "rxOoo", fig->rx_ooo);
	KEY_US(j, "busy", fig->busy_ns);
	KEY_US(j, "sndbufLimited", fig->sndbuf_ns);
	KEY_US(j, "rwndLimited", fig->rwnd_ns);
	if (p->session->features.no_data && rx)
		KEY_US(j, "noData", fig->empty_ns[SCOPE_RX]);
	if (tx)
		KEY_US(j, "noRoom", fig->empty_ns[SCOPE_TX]);
	if (p->session->features.drops)
		put_drops(j, p, fig);
}

/* The same time at the other end, if that is recorded as well; of several flows, if all of them are. */
static void put_peer(struct json *j, const struct net_of *of, const struct corr_event *ev)
{
	struct flow *flow = of->list[0], *peer;
	struct flow_figures fig = {0};
	uint32_t i;

	for (i = 0; i < of->n; i++) {
		peer = i < FLOWS_MAX ? flows__peer(of->flows, of->list[i]) : NULL;
		if (!peer || !flow->peer_pid || of->list[i]->peer_pid != flow->peer_pid)
			return;
		flow_figures__add(&fig, of->flows, peer, of->from_ns, of->to_ns);
	}
	if (of->n > 1)
		flow_figures__clip(&fig, of->to_ns - of->from_ns);
	json_lit(j, ",\"peer\":{\"pid\":");
	json_u64(j, flow->peer_pid);
	if (flow->peer_host_pid != flow->peer_pid)
		KEY_U64(j, "hostPid", flow->peer_host_pid);
	KEY_I64(j, "rank",
		ev->what == SCOPE_PROXY_OP ? ev->start.proxy_op.peer : (int64_t)ev->peer);
	KEY_U64(j, "retrans", fig.retrans);
	KEY_U64(j, "lost", fig.lost);
	KEY_U64(j, "dsack", fig.dsack);
	KEY_US(j, "sndbufLimited", fig.sndbuf_ns);
	KEY_US(j, "rwndLimited", fig.rwnd_ns);
	json_char(j, '}');
}

/* Of the one that is called `flow`. */
static void put_at_end(struct json *j, const struct net_of *of)
{
	const struct flow_point *at = flow__at(of->list[0], of->to_ns);

	if (!at)
		return;
	if (at->srtt_us) {
		KEY_US(j, "rtt", at->srtt_us * 125ull);
		KEY_US(j, "rttMin", at->rtt_min_us * 1000ull);
	}
	KEY_U64(j, "cwnd", at->cwnd);
}

/* Until when an event's flows count. */
static uint64_t end_of(const struct proc *p, const struct corr_event *ev, bool operation)
{
	if (!ev->stopped)
		return p->corr.now_ns > ev->start_ns ? p->corr.now_ns : ev->start_ns;
	return operation && ev->exec_stop_ns ? ev->exec_stop_ns : ev->stop_ns;
}

static bool is_send(const struct corr_event *ev)
{
	return ev->what == SCOPE_PROXY_OP ? ev->start.s.h.u32 != 0 : ev->is_send;
}

static void put_tcp_of(struct json *j, const struct proc *p, const struct corr_event *ev,
		       const struct sched_join *join, struct net_of *of, bool operation)
{
	put_flows(j, of, ev->what);
	KEY_U64(j, "txBytes", ev->net.bytes[SCOPE_TX]);
	KEY_U64(j, "rxBytes", ev->net.bytes[SCOPE_RX]);
	if (operation) {
		put_figures(j, p, &of->fig, true, true);
	} else {
		flow_figures__clip(&of->fig, of->to_ns - of->from_ns);
		put_figures(j, p, &of->fig, is_send(ev), !is_send(ev));
		put_at_end(j, of);
		put_peer(j, of, ev);
	}
	if (join->all.threads && p->session->features.irq)
		KEY_US(j, "softirqRx", join->all.sums.net_rx_ns);
}

void put_net(struct json *j, const struct proc *p, const struct corr_event *ev,
	     const struct sched_join *join)
{
	bool operation = ev->what == SCOPE_COLL || ev->what == SCOPE_P2P, rdma = false;
	struct net_of of = {.flows = &p->session->net.flows, .from_ns = ev->start_ns};
	const char *before;

	of.to_ns = end_of(p, ev, operation);
	net_join__each(ev, note_flow, &of);
	if (of.n) {
		json_lit(j, ",\"net\":{");
		put_tcp_of(j, p, ev, join, &of, operation);
	}
	before = of.n ? ",\"rdma\":" : ",\"net\":{\"rdma\":";
	if (operation || ev->what == SCOPE_PROXY_OP)
		rdma = put_rdma(j, before, p, of.from_ns, of.to_ns, RDMA_EVENT_MAX);
	if (of.n || rdma)
		json_char(j, '}');
}

/* ---- Flows -------------------------------------------------------------------------------------- */

static const char *state_name(uint32_t state)
{
	static const char *const names[] = {"unknown",	   "established", "syn-sent",  "syn-recv",
					    "fin-wait-1",  "fin-wait-2",  "time-wait", "close",
					    "close-wait",  "last-ack",	  "listen",    "closing",
					    "new-syn-recv"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : names[0];
}

static void put_tcp(struct json *j, const struct scope_tcp *tcp)
{
	const char *state = state_name(tcp->state);

	json_lit(j, ",\"tcp\":{\"state\":");
	json_str(j, state, strlen(state));
	if (tcp->use.srtt_us) {
		KEY_US(j, "rtt", tcp->use.srtt_us * 125ull);
		KEY_US(j, "rttVar", tcp->mdev_us * 250ull);
		KEY_US(j, "rttMin", tcp->use.rtt_min_us * 1000ull);
	}
	KEY_U64(j, "cwnd", tcp->use.snd_cwnd);
	KEY_U64(j, "ssthresh", tcp->ssthresh);
	KEY_U64(j, "mss", tcp->mss);
	if (tcp->rate_interval_us)
		KEY_U64(j, "deliveryRate",
			(uint64_t)tcp->rate_delivered * tcp->mss * 1000000 / tcp->rate_interval_us);
	json_char(j, '}');
}

/* From `was` on; the first key is written without a comma. */
static void put_totals(struct json *j, const struct flow *flow, const struct flow_counts *now,
		       const struct flow_counts *was, const struct scope_tcp *tcp_was,
		       uint64_t jiffy_ns)
{
	const struct scope_tcp *tcp = &flow->tcp;

	json_lit(j, "\"txBytes\":");
	json_u64(j, now->bytes[SCOPE_TX] - was->bytes[SCOPE_TX]);
	KEY_U64(j, "rxBytes", now->bytes[SCOPE_RX] - was->bytes[SCOPE_RX]);
	KEY_U64(j, "bytesAcked", tcp->bytes_acked - tcp_was->bytes_acked);
	KEY_U64(j, "bytesReceived", tcp->bytes_received - tcp_was->bytes_received);
	KEY_U64(j, "retrans", now->retrans - was->retrans);
	KEY_U64(j, "rxOoo", now->rx_ooo - was->rx_ooo);
	KEY_U64(j, "lost", now->lost - was->lost);
	KEY_U64(j, "dsack", now->dsack - was->dsack);
	KEY_US(j, "busy", (now->busy - was->busy) * jiffy_ns);
	KEY_US(j, "rwndLimited", (now->rwnd - was->rwnd) * jiffy_ns);
	KEY_US(j, "sndbufLimited", (now->sndbuf - was->sndbuf) * jiffy_ns);
}

static void put_role(struct json *j, const struct flow *flow)
{
	if (flow->role.known) {
		if (flow->role.rank >= 0)
			KEY_I64(j, "rank", flow->role.rank);
		KEY_I64(j, "peerRank", flow->role.peer);
		KEY_U64(j, "channel", flow->role.channel);
		KEY_BOOL(j, "isSend", flow->role.is_send);
	}
	if (flow->peer_pid)
		KEY_U64(j, "peerPid", flow->peer_pid);
}

static const char *why_name(uint16_t why)
{
	switch (why) {
	case SCOPE_FLOW_OPEN:
		return "open";
	case SCOPE_FLOW_FOUND:
		return "found";
	case SCOPE_FLOW_RESET_IN:
		return "reset-in";
	case SCOPE_FLOW_RESET_OUT:
		return "reset-out";
	case SCOPE_FLOW_GONE:
		return "end";
	case SCOPE_FLOW_STATE:
		return "state";
	case TRACE_FLOW_USE:
		return "use";
	default:
		return "detached";
	}
}

/* As the job knows it; 0 where that is not known. */
static uint32_t tid_in_job(const struct proc *p, uint32_t host_tid)
{
	const struct sched_thread *st = sched__find(&p->session->sched, host_tid);
	struct thread *t, *tmp;

	if (p->id.tgid == p->id.ns_tgid)
		return host_tid;
	if (st && st->tgid == p->key.tgid)
		return st->ns_tid;
	HASH_ITER (hh, p->threads, t, tmp)
		if (t->host_tid == host_tid)
			return t->tid;
	return 0;
}

/* The first nr of those that wait. */
static void put_resent(struct json *j, struct flow *flow, uint32_t nr, uint64_t ts_ns)
{
	uint32_t n[FLOW_RESENT_MAX], dsack[FLOW_RESENT_MAX], i;

	if (!nr)
		return;
	flow__resent_count(flow, ts_ns, n, dsack);
	json_lit(j, ",\"resent\":[");
	for (i = 0; i < nr; i++) {
		if (i)
			json_char(j, ',');
		json_lit(j, "{\"ts\":");
		json_us(j, flow->resent[i].ts_ns);
		KEY_U64(j, "n", n[i]);
		if (dsack[i])
			KEY_U64(j, "dsack", dsack[i]);
		json_char(j, '}');
	}
	json_char(j, ']');
}

/* Its last record has the connection's totals; sums are the recording's. */
static void sum_up(struct proc *p, const struct flow *flow, struct flow_counts c)
{
	flow_counts__since_known(&c, flow);
	summary__flow(&p->session->summary, flow, &c, p->session->net.flows.jiffy_ns);
	live__flow_end(p, &c);
}

void trace__flow(struct proc *p, struct flow *flow, uint16_t why, uint64_t ts_ns)
{
	static const struct flow_counts none;
	static const struct scope_tcp none_tcp;
	bool end = !why || why == SCOPE_FLOW_GONE;
	const struct flow_point *at = end ? flow__last(flow) : flow__at(flow, ts_ns);
	struct flow_counts now;
	uint64_t jiffy_ns = p->session->net.flows.jiffy_ns;
	const char *name = why_name(why);
	uint32_t nresent;
	struct json j;

	if (!at)
		return;
	if (end && at->ts_ns > ts_ns)
		ts_ns = at->ts_ns;
	nresent = end ? flow->nresent : flow__resent_settled(flow, ts_ns);
	now = at->c;
	flow_counts__at_least(&now, &flow->told);
	j = trace_begin(p, FLOW_MAX);
	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"flow\",\"flow\":");
	put_flow_name(&j, flow);
	KEY_U64(&j, "tid", tid_in_job(p, flow->tid));
	KEY_US(&j, "ts", ts_ns);
	KEY_U64(&j, "netns", flow->netns);
	put_role(&j, flow);
	KEY_STR(&j, "why", name, strlen(name));
	if (end)
		KEY_BOOL(&j, "end", 1);
	put_tcp(&j, &flow->tcp);
	json_char(&j, ',');
	put_totals(&j, flow, &now, &none, &none_tcp, jiffy_ns);
	KEY_U64(&j, "reordering", flow->tcp.reordering);
	put_resent(&j, flow, nresent, ts_ns);
	if (flow->told_ns) {
		json_lit(&j, ",\"delta\":{");
		put_totals(&j, flow, &now, &flow->told, &flow->told_tcp, jiffy_ns);
		json_char(&j, '}');
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_FLOW);
	if (end)
		sum_up(p, flow, now);
	flow__resent_forget(flow, nresent);
	flow->told = now;
	flow->told_tcp = flow->tcp;
	flow->told_ns = p->corr.now_ns ? p->corr.now_ns : 1;
}

/* ---- Drops -------------------------------------------------------------------------------------- */

static void put_where(struct json *j, const struct proc *p, uint64_t location)
{
	const char *name = symbols__name(&p->session->symbols, location);

	json_lit(j, ",\"where\":");
	if (name)
		json_str(j, name, strlen(name));
	else
		json_hex(j, location);
}

static void put_drop(struct proc *p, const struct flow *flow, const struct flow_drop *d, uint32_t n,
		     uint64_t len)
{
	struct json j = trace_begin(p, STATE_MAX);

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"drop\",\"flow\":");
	put_flow_name(&j, flow);
	KEY_U64(&j, "netns", flow->netns);
	KEY_US(&j, "ts", d->ts_ns);
	json_lit(&j, ",\"reason\":");
	put_reason(&j, p, d->reason);
	KEY_U64(&j, "n", n);
	put_where(&j, p, d->location);
	KEY_U64(&j, "len", len);
	KEY_STR(&j, "dir", d->rx ? "rx" : "tx", 2);
	/* Both ends tell of it, if both are recorded: counted once. */
	if (d->rx || !flows__peer(&p->session->net.flows, flow))
		p->session->summary.drops += n;
	json_char(&j, '}');
	trace_end(p, &j, OUT_DROP);
}

static bool alike(const struct flow_drop *a, const struct flow_drop *b)
{
	return a->reason == b->reason && a->location == b->location && a->rx == b->rx;
}

void trace__drops(struct proc *p, struct flow *flow)
{
	struct flow_drop *d = flow->drops, *end, *e, *last;
	uint64_t len;
	uint32_t n;

	if (!flow->ndrops)
		return;
	for (end = d + flow->ndrops; d < end; d++) {
		if (d->told)
			continue;
		n = 0;
		len = 0;
		for (e = last = d; e < end; e++) {
			if (e->told || !alike(d, e))
				continue;
			e->told = true;
			last = e;
			len += e->len;
			n++;
		}
		put_drop(p, flow, last, n, len);
	}
}
