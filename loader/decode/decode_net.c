// SPDX-License-Identifier: BSD-2-Clause
/* Flows on their way in and out; see decode_net.h. */
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include "decode_net.h"
#include "less.h"
#include "log.h"
#include "trace.h"

#define KEEP_NS	 (2 * NSEC_PER_SEC)
#define EVERY_NS NSEC_PER_SEC /* between two `flow` records, but for --net=flows */
#define BEHIND_NS                                                                                  \
	(5 * 1000000ULL) /* records so much younger than a sample: all older ones have come */
#define MISSED_NS                                                                                  \
	NSEC_PER_SEC /* a flow that samples lack for so long is gone: its record was lost */
#define USES_NS (NET_UNSURE_NS + KEEP_NS) /* no step that has stopped waits for longer */

void decode_net__init(struct session *s, uint64_t jiffy_ns)
{
	s->net.flows.jiffy_ns = jiffy_ns ? jiffy_ns : 4000000;
}

void decode_net__free(struct session *s)
{
	flows__free(&s->net.flows);
	free(s->net.samples);
	net_names__free(&s->net.names);
}

/* ---- Processes ---------------------------------------------------------------------------------- */

/* The one that a flow belongs to; NULL: it has shown nothing of NCCL yet, or has ended. */
static struct proc *proc_of(const struct session *s, const struct flow *flow)
{
	return proc__of_tgid(s, flow->tgid, flow->key.since_ns);
}

static void count_lost(struct session *s, struct flow *flow, uint32_t lost)
{
	struct proc *p;
	uint32_t n = lost - flow->lost;

	if ((int32_t)n <= 0)
		return;
	flow->lost = lost;
	p = proc_of(s, flow);
	if (p)
		proc__count_loss(p, LOSS_CONTEXT, n);
	else
		s->context_lost += n;
}

/* ---- Records ------------------------------------------------------------------------------------ */

static void put_begin(struct proc *p, struct flow *flow)
{
	bool open = flow->pending == SCOPE_FLOW_OPEN;

	trace__flow(p, flow, open ? SCOPE_FLOW_OPEN : SCOPE_FLOW_FOUND, flow->key.since_ns);
}

static void put_end(struct proc *p, struct flow *flow, uint16_t why)
{
	if (!flow->told_ns)
		put_begin(p, flow);
	trace__drops(p, flow);
	trace__flow(p, flow, why, flow->tcp_ns);
	flow->pending = 0;
	flow__gone(flow);
}

/* The oldest one with these addresses that is not over. What is older than one that is, is over. */
static struct flow *oldest_twin(const struct flow *flow)
{
	struct flow *twin, *oldest = NULL;

	for (twin = flow->twin; twin; twin = twin->twin) {
		if (twin->netns != flow->netns || twin->tgid != flow->tgid)
			continue;
		if (twin->gone)
			break;
		oldest = twin;
	}
	return oldest;
}

/*
 * How a flow began comes first, whatever else there is to tell. If others had its addresses, they
 * are over: closed by a reset, they are destroyed only when their owner closes them; or BPF was
 * skipped then.
 */
static void tell_begin(struct session *s, struct flow *flow)
{
	struct proc *p = flow->gone ? NULL : proc_of(s, flow);
	struct flow *twin;

	if (!p || !flow->pending || flow->pending == SCOPE_FLOW_GONE)
		return;
	while ((twin = oldest_twin(flow)))
		put_end(p, twin, SCOPE_FLOW_GONE);
	put_begin(p, flow);
	flow->pending = 0;
}

static void tell_end(struct proc *p, struct flow *flow, uint16_t why)
{
	if (!flow->told_ns && (!flow->pending || flow->pending == SCOPE_FLOW_GONE))
		flow->pending = SCOPE_FLOW_FOUND; /* before its process was */
	tell_begin(p->session, flow);
	put_end(p, flow, why);
}

static void put_reset(struct proc *p, struct flow *flow, const struct scope_ev_flow *ev)
{
	trace__flow(p, flow, ev->why, ev->h.ts_ns);
	/* One that is received closes it, which needs no further line. */
	if (ev->why == SCOPE_FLOW_RESET_IN)
		flow->told_tcp.state = TCP_CLOSE;
}

static void on_flow(struct session *s, const struct scope_ev_flow *ev)
{
	struct flow *flow = flows__get(&s->net.flows, ev);
	struct proc *p;

	if (!flow) {
		s->context_lost++;
		return;
	}
	if (ev->why != SCOPE_FLOW_STATE)
		tell_begin(s, flow);
	flow__told(flow, ev);
	count_lost(s, flow, ev->lost);
	if (ev->tid)
		flow->tid = ev->tid;
	switch (ev->why) {
	case SCOPE_FLOW_OPEN:
	case SCOPE_FLOW_FOUND:
	case SCOPE_FLOW_GONE: /* told with the next sample: steps that it served are still held */
		flow->pending = ev->why;
		break;
	case SCOPE_FLOW_RESET_IN:
	case SCOPE_FLOW_RESET_OUT:
		p = flow->gone ? NULL : proc_of(s, flow);
		if (p)
			put_reset(p, flow, ev);
		break;
	default: /* another state is told with the next sample: most are over by then */
		break;
	}
}

/* `open`: of a sample, they may go on. */
static void note_uses(struct session *s, struct flow *flow, const struct net_use *use, uint32_t n,
		      uint32_t tid, int dir, bool open)
{
	struct proc *p = proc_of(s, flow);

	if (p && p->corr.net)
		net_join__uses(p->corr.net, flow, tid, dir, use, n,
			       open ? use->first_ns : flow->open_ns[dir]);
	if (open)
		flow->open_ns[dir] = use->first_ns;
	else if (n && use[n - 1].first_ns >= flow->open_ns[dir])
		flow->open_ns[dir] = 0;
}

static void on_uses(struct session *s, const struct scope_ev_uses *ev)
{
	struct flow *flow = flows__find(&s->net.flows, ev->sk, ev->since_ns);
	struct net_use uses[SCOPE_USES];
	uint32_t known, i, n = 0;
	uint64_t last_ns = 0;

	if (!flow) {
		s->context_lost += ev->n; /* the flow's own record was */
		return;
	}
	known = flow__uses_known(flow, ev);
	for (i = known; i < ev->n; i++) {
		last_ns = ev->h.ts_ns + ev->at[i].after_ns;
		uses[n++] = (struct net_use){.first_ns = last_ns - ev->at[i].dur_ns,
					     .last_ns = last_ns,
					     .bytes = ev->at[i].bytes};
	}
	flow__uses(flow, ev, known);
	count_lost(s, flow, ev->lost);
	if (n)
		note_uses(s, flow, uses, n, ev->tid, (int)ev->dir, false);
	if (last_ns > s->net.newest_ns)
		s->net.newest_ns = last_ns;
}

static void on_retrans(struct session *s, const struct scope_ev_retrans *ev)
{
	struct flow *flow = flows__find(&s->net.flows, ev->sk, ev->since_ns);

	if (!flow)
		return;
	flow__retrans(flow, ev);
	count_lost(s, flow, ev->lost);
}

/* ---- Drops -------------------------------------------------------------------------------------- */

/* What the kernel frees in the normal course of things. */
static bool is_harmless(const struct session *s, const struct scope_ev_drop *ev)
{
	const char *reason = net_names__reason(&s->net.names, ev->reason), *where;

	if (net_names__is_harmless(&s->net.names, ev->reason))
		return true;
	if (reason && strcmp(reason, "NOT_SPECIFIED"))
		return false;
	where = symbols__name(&s->symbols, ev->location);
	if (!where)
		return false;
	/* Before Linux 6.2: parts of a packet that has been read. BPF leaves out those that it can tell. */
	if (!strcmp(where, "skb_release_data"))
		return true;
	/* Segments for a connection in TIME_WAIT; where the kernel gives no reason at all, it may be others. */
	return reason && (!strcmp(where, "tcp_v4_rcv") || !strcmp(where, "tcp_v6_rcv"));
}

/* One end. Of several with its addresses the one that BPF has found, or one of that network namespace. */
static struct flow *end_of(struct session *s, const struct scope_ev_drop *ev, bool turned)
{
	struct flow *first = flows__of_tuple(&s->net.flows, &ev->tuple, turned), *flow;

	for (flow = first; flow; flow = flow->twin)
		if (flow->key.sk == ev->sk)
			return flow;
	for (flow = first; flow; flow = flow->twin)
		if (flow->netns == ev->netns)
			return flow;
	return first;
}

/* More than are kept until the next sample: out with them. */
static void note_drop(struct session *s, struct flow *flow, const struct flow_drop *drop)
{
	struct proc *p = NULL;

	if (flow->ndrops >= FLOW_DROPS_MAX)
		p = proc_of(s, flow);
	if (p) {
		tell_begin(s, flow);
		trace__drops(p, flow);
	}
	flow__drop(flow, drop);
}

static void on_drop(struct session *s, const struct scope_ev_drop *ev)
{
	struct flow_drop drop = {.ts_ns = ev->h.ts_ns,
				 .location = ev->location,
				 .reason = ev->reason,
				 .len = ev->len,
				 .rx = true};
	struct flow *rx = end_of(s, ev, false), *tx = end_of(s, ev, true);

	if (is_harmless(s, ev))
		return;
	if (rx && rx->key.sk == ev->sk)
		count_lost(s, rx, ev->lost);
	else if (tx && tx->key.sk == ev->sk)
		count_lost(s, tx, ev->lost);
	if (rx)
		note_drop(s, rx, &drop);
	drop.rx = false;
	if (tx)
		note_drop(s, tx, &drop);
}

static bool uses_are_good(const struct scope_ev_short *h)
{
	const struct scope_ev_uses *ev = (const void *)h;

	return ev->dir <= SCOPE_RX && ev->n && ev->n <= SCOPE_USES &&
	       h->size >= SCOPE_USES_SIZE(ev->n);
}

bool decode_net__event(struct session *s, const struct scope_ev_short *h)
{
	static const size_t sizes[] = {[SCOPE_EV_FLOW] = sizeof(struct scope_ev_flow),
				       [SCOPE_EV_USES] = SCOPE_USES_SIZE(1),
				       [SCOPE_EV_RETRANS] = sizeof(struct scope_ev_retrans),
				       [SCOPE_EV_DROP] = sizeof(struct scope_ev_drop)};

	if (h->size < sizes[h->kind] || (h->kind == SCOPE_EV_USES && !uses_are_good(h)))
		return false;
	if (!s->net_mode)
		return true;
	switch (h->kind) {
	case SCOPE_EV_FLOW:
		on_flow(s, (const struct scope_ev_flow *)h);
		break;
	case SCOPE_EV_USES:
		on_uses(s, (const struct scope_ev_uses *)h);
		break;
	case SCOPE_EV_RETRANS:
		on_retrans(s, (const struct scope_ev_retrans *)h);
		break;
	default:
		on_drop(s, (const struct scope_ev_drop *)h);
	}
	return true;
}

/* ---- Samples ------------------------------------------------------------------------------------ */

/*
 * Calls that BPF has not told of yet: they are over, or go on. BPF tells when the next ones begin, so
 * those of a flow that rests are in every sample; but once is enough.
 */
static void take_open(struct session *s, struct flow *flow, const struct scope_flow_open *open,
		      int dir)
{
	const struct net_use use = {
		.first_ns = open->first_ns, .last_ns = open->last_ns, .bytes = open->bytes};
	bool known = flow->open_ns[dir] == open->first_ns &&
		     open->last_ns + BEHIND_NS < s->net.flows.complete_ns;

	if (open->calls && !known)
		note_uses(s, flow, &use, 1, open->tid, dir, true);
}

/* In no sample any more: the kernel forgot them, and the ring was full, or BPF was skipped. */
static void find_missing(struct session *s)
{
	struct flow *flow, *tmp;

	HASH_ITER (hh, s->net.flows.by_key, flow, tmp) {
		if (flow->gone || flow->tcp_ns + MISSED_NS >= s->net.sampled_ns)
			continue;
		tell_begin(s, flow);
		flow->pending = SCOPE_FLOW_GONE;
	}
}

static void take_samples(struct session *s)
{
	const struct scope_flow_sample *x;
	struct flow *flow;
	uint32_t i;

	for (i = 0; i < s->net.nsamples; i++) {
		x = &s->net.samples[i];
		flow = flows__find(&s->net.flows, x->sk, x->since_ns);
		if (!flow || flow->pending == SCOPE_FLOW_GONE)
			continue;
		flow__sample(flow, x);
		count_lost(s, flow, x->lost);
		take_open(s, flow, &x->open[SCOPE_TX], SCOPE_TX);
		take_open(s, flow, &x->open[SCOPE_RX], SCOPE_RX);
	}
	s->net.nsamples = 0;
}

static void take_sample_set(struct session *s)
{
	bool any = s->net.nsamples;

	take_samples(s);
	if (any && !s->net.cut)
		find_missing(s);
	s->net.flows.complete_ns = s->net.sampled_ns;
	s->net.sampled_ns = 0;
}

static uint32_t copy_samples(struct session *s, const struct scope_flow_sample *x, uint32_t n)
{
	struct scope_flow_sample *grown;

	if (n > s->net.samples_cap) {
		grown = realloc(s->net.samples, n * sizeof(*grown));
		if (!grown)
			return 0;
		s->net.samples = grown;
		s->net.samples_cap = n;
	}
	if (n)
		memcpy(s->net.samples, x, n * sizeof(*x));
	return n;
}

void decode_net__samples(struct session *s, uint64_t now_ns, const struct scope_flow_sample *x,
			 uint32_t n, int err)
{
	if (!s->net_mode)
		return;
	s->net.cut = err;
	if (err && !s->net.cut_told && !s->echo) {
		s->net.cut_told = true;
		pr_warn("Failed to read the flows: %s; steps get theirs late\n", strerror(-err));
	}
	s->net.nsamples = copy_samples(s, x, n < NET_SAMPLES_MAX ? n : NET_SAMPLES_MAX);
	/* From the first one on until the last one was read. */
	s->net.sampled_ns = s->net.read_ns = now_ns;
	if (s->net.nsamples) {
		s->net.sampled_ns = s->net.samples[0].ts_ns;
		s->net.read_ns = s->net.samples[s->net.nsamples - 1].ts_ns;
	}
	/* Those that are asked for every 50 ms come 100 ms apart, not at the first turn that is more than that behind the last. */
	if (now_ns - s->net.next_ns < NET_SAMPLE_NS)
		s->net.next_ns += NET_SAMPLE_NS;
	else
		s->net.next_ns = now_ns + NET_SAMPLE_NS;
}

/* ---- Into the trace ----------------------------------------------------------------------------- */

/* Remembered, because it may end before this one does. */
static void note_peer(struct session *s, struct flow *flow)
{
	struct flow *peer = flow->peer_pid ? NULL : flows__peer(&s->net.flows, flow);
	struct proc *p = peer ? proc_of(s, peer) : NULL;

	if (!p)
		return;
	flow->peer_pid = p->id.ns_tgid;
	flow->peer_host_pid = p->id.tgid;
}

/* It has moved, or sent something again; before its turn only if there is much of that. */
static bool has_news(struct flow *flow, bool its_turn)
{
	uint32_t resent = flow__resent_settled(flow, flow->tcp_ns);

	return its_turn ? resent || flow__moved(flow) : resent >= FLOW_RESENT_MANY;
}

/* That it is established is told as it comes about. */
static bool has_new_state(const struct flow *flow)
{
	return flow->tcp.state != flow->told_tcp.state && flow->tcp.state != TCP_ESTABLISHED;
}

static void tell_flow(struct session *s, struct flow *flow, uint64_t now_ns)
{
	struct proc *p = flow->gone ? NULL : proc_of(s, flow);
	uint64_t every = s->net_mode == NET_MODE_FLOWS ? 0 : EVERY_NS;

	if (!p) {
		/* Its process has ended, or never was NCCL's. */
		if (flow->pending == SCOPE_FLOW_GONE)
			flow__gone(flow);
		return;
	}
	note_peer(s, flow);
	if (flow->pending == SCOPE_FLOW_GONE) {
		/* What it served in the end is known by now. */
		if (flow->tcp_ns <= s->net.flows.complete_ns)
			tell_end(p, flow, SCOPE_FLOW_GONE);
		return;
	}
	if (flow->pending)
		tell_begin(s, flow);
	else if (has_new_state(flow))
		trace__flow(p, flow, SCOPE_FLOW_STATE, flow->tcp_ns);
	else if (has_news(flow, now_ns - flow->told_ns >= every))
		trace__flow(p, flow, TRACE_FLOW_USE, flow->tcp_ns);
	trace__drops(p, flow);
}

static void tell_flows(struct session *s, uint64_t now_ns)
{
	struct flow *flow, *tmp;

	HASH_ITER (hh, s->net.flows.by_key, flow, tmp)
		tell_flow(s, flow, now_ns);
}

void decode_net__proc_end(struct proc *p)
{
	struct session *s = p->session;
	struct flow *flow, *tmp;

	if (!s->net_mode)
		return;
	s->net.steps += p->net.steps;
	s->net.direct += p->net.direct;
	s->net.helped += p->net.helped;
	s->net.unsure += p->net.unsure;
	HASH_ITER (hh, s->net.flows.by_key, flow, tmp) {
		if (flow->gone || flow->tgid != p->key.tgid || proc_of(s, flow) != p)
			continue;
		note_peer(s, flow);
		tell_end(p, flow, flow->pending == SCOPE_FLOW_GONE ? SCOPE_FLOW_GONE : 0);
	}
}

/* ---- Time goes by ------------------------------------------------------------------------------- */

/* What a process asks for is of its own flows, and of their other ends: one that hangs does not keep those of all. */
static void prune(struct session *s, uint64_t now_ns)
{
	uint64_t recent = less(now_ns, KEEP_NS), uses = less(now_ns, USES_NS), keep;
	struct flow *flow, *ftmp;
	struct proc *p, *ptmp;

	HASH_ITER (hh, s->procs, p, ptmp) {
		p->net_oldest_ns = correlate__oldest_net(&p->corr);
		keep = p->net_oldest_ns < recent ? p->net_oldest_ns : recent;
		net_join__prune(&p->net, keep > uses ? keep : uses);
	}
	HASH_ITER (hh, s->net.flows.by_key, flow, ftmp) {
		p = proc_of(s, flow);
		if (p)
			flows__keep(&s->net.flows, flow, p->net_oldest_ns);
	}
	flows__prune(&s->net.flows, recent);
	s->net.next_prune_ns = now_ns + NSEC_PER_SEC;
}

/* How far the ring has been read; there may be no flow that is used. */
static uint64_t newest(const struct session *s)
{
	uint64_t ns = s->net.newest_ns;
	struct proc *p, *tmp;

	HASH_ITER (hh, s->procs, p, tmp)
		if (p->corr.now_ns > ns)
			ns = p->corr.now_ns;
	return ns;
}

void decode_net__tick(struct session *s, uint64_t now_ns, bool drained)
{
	if (!s->net_mode)
		return;
	if (s->net.sampled_ns && (drained || newest(s) > s->net.read_ns + BEHIND_NS)) {
		tell_flows(s, now_ns); /* before: steps until the last time have been joined */
		take_sample_set(s);
	}
	if (now_ns >= s->net.next_prune_ns)
		prune(s, now_ns);
}

bool decode_net__due(const struct session *s, uint64_t now_ns)
{
	return s->net_mode && !s->net.sampled_ns && now_ns >= s->net.next_ns;
}

void decode_net__complete(struct session *s)
{
	if (!s->net_mode)
		return;
	take_samples(s);
	s->net.flows.complete_ns = UINT64_MAX;
}
