// SPDX-License-Identifier: BSD-2-Clause
/*
 * The network's part from the ring into the trace (decode_net.c, flows.c, net_join.c, trace_net.c), by
 * little recordings of which every figure is known.
 */
#include <errno.h>
#include "sched_job.h"
#include "decode_net.h"
#include "live.h"

#define PEER	  (JOB + 1000) /* the process at the other end */
#define SEND_WAIT 9
#define RECV_WAIT 10
#define RECV_DONE 11
#define BACKLOG	  3 /* reasons of drops, by this kernel's numbers */
#define FILTER	  7
#define PURGE	  8
#define MERGE	  9
#define PLAIN	  2
#define OLD	  10
#define SEQUENCE  11

/* ---- Connections, as BPF knows them ------------------------------------------------------------- */

#define CONNS 8

static struct conn {
	uint64_t since_ns; /* 0: none, or gone */
	uint32_t tgid, lost;
	struct scope_tuple tuple;
	struct scope_flow_open side[2];
	struct scope_ev_uses uses[2]; /* that gather */
	struct scope_tcp tcp;
} conns[CONNS];

static uint64_t sk_of(const struct conn *c)
{
	return 0xffff888000000000ull + (uint64_t)(c - conns) * 64;
}

static void tell_flow(const struct conn *c, uint16_t why)
{
	struct scope_ev_flow e = {.h = {SCOPE_ABI, SCOPE_EV_FLOW, sizeof(e), k.now_ns},
				  .sk = sk_of(c),
				  .since_ns = c->since_ns,
				  .total = {c->side[SCOPE_TX].total, c->side[SCOPE_RX].total},
				  .tgid = c->tgid,
				  .netns = 4026531840u,
				  .lost = c->lost,
				  .why = why,
				  .tuple = c->tuple,
				  .tcp = c->tcp};

	decode__event(s, &e, sizeof(e));
}

/* Number n's: 10.0.0.1:41000+n/2 > 10.0.0.2:5000+n/2, or the other end of that if n is odd. */
static struct conn *conn_new(uint32_t n, uint32_t tgid)
{
	struct conn *c = &conns[n];
	uint8_t here[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		there[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};

	*c = (struct conn){.since_ns = k.now_ns, .tgid = tgid};
	memcpy(c->tuple.local, n % 2 ? there : here, 16);
	memcpy(c->tuple.remote, n % 2 ? here : there, 16);
	c->tuple.local_port = (uint16_t)((n % 2 ? 5000 : 41000) + n / 2);
	c->tuple.remote_port = (uint16_t)((n % 2 ? 41000 : 5000) + n / 2);
	c->tcp.state = 1;
	c->tcp.mss = 1448;
	return c;
}

static struct conn *connect_it(uint32_t n, uint32_t tgid, uint16_t why)
{
	struct conn *c = conn_new(n, tgid);

	tell_flow(c, why);
	return c;
}

/* The job has one since 90 ms. */
static struct conn *connected(void)
{
	at(90 * MS);
	return connect_it(0, JOB, SCOPE_FLOW_OPEN);
}

static void gone(struct conn *c)
{
	c->tcp.state = 7;
	tell_flow(c, SCOPE_FLOW_GONE);
	c->since_ns = 0;
}

/* A call, now, that moves bytes; it is told with the next one, or when the flow is looked at. */
static void call(struct conn *c, const struct k_task *t, int dir, uint32_t bytes)
{
	struct scope_flow_open *o = &c->side[dir];

	if (!o->calls++) {
		o->first_ns = k.now_ns;
		o->bytes = 0;
	}
	o->tid = t->tid;
	o->last_ns = k.now_ns;
	o->bytes += bytes;
	o->total += bytes;
}

/* The calls so far are a use. */
static void gather(struct conn *c, int dir)
{
	struct scope_flow_open *o = &c->side[dir];
	struct scope_ev_uses *e = &c->uses[dir];

	if (!e->n)
		*e = (struct scope_ev_uses){.h = {SCOPE_ABI, SCOPE_EV_USES, 0, o->last_ns},
					    .sk = sk_of(c),
					    .since_ns = c->since_ns,
					    .total = o->total,
					    .empty_ns = o->empty_ns,
					    .tgid = c->tgid,
					    .tid = o->tid,
					    .dir = (uint32_t)dir,
					    .nr = e->nr,
					    .tcp = c->tcp.use};
	e->at[e->n++] = (struct scope_use){
		.after_ns = (uint32_t)(o->last_ns - e->h.ts_ns),
		.dur_ns = (uint32_t)(o->last_ns - o->first_ns),
		.bytes = o->bytes,
		.total = (uint32_t)(o->total - e->total),
		.empty_ns = (uint32_t)(o->empty_ns - e->empty_ns),
		.srtt_us = c->tcp.use.srtt_us,
	};
	o->calls = 0;
}

static void copy_uses(const struct conn *c, int dir)
{
	struct scope_ev_uses e = c->uses[dir];

	e.h.size = SCOPE_USES_SIZE(e.n);
	e.lost = c->lost;
	decode__event(s, &e, sizeof(e));
}

static void tell_uses(struct conn *c, int dir)
{
	struct scope_ev_uses *e = &c->uses[dir];

	copy_uses(c, dir);
	e->nr += e->n;
	e->n = 0;
}

static void tell_use(struct conn *c, int dir)
{
	gather(c, dir);
	tell_uses(c, dir);
}

static void used(struct conn *c, const struct k_task *t, int dir, uint32_t bytes)
{
	call(c, t, dir, bytes);
	tell_use(c, dir);
}

static void retrans(struct conn *c, uint32_t segments)
{
	struct scope_ev_retrans e = {.h = {SCOPE_ABI, SCOPE_EV_RETRANS, sizeof(e), k.now_ns},
				     .sk = sk_of(c),
				     .since_ns = c->since_ns,
				     .lost = c->lost};

	e.total = c->tcp.use.total_retrans += segments;
	decode__event(s, &e, sizeof(e));
}

/* On its way to c. */
static void dropped(const struct conn *c, uint32_t reason, uint64_t location, uint32_t len)
{
	struct scope_ev_drop e = {.h = {SCOPE_ABI, SCOPE_EV_DROP, sizeof(e), k.now_ns},
				  .sk = sk_of(c),
				  .location = location,
				  .reason = reason,
				  .netns = 4026531840u,
				  .len = len,
				  .tuple = c->tuple,
				  .lost = c->lost};

	decode__event(s, &e, sizeof(e));
}

static bool unread; /* the iterator gives nothing */
static int cut;	    /* or the first only, and why */

static void read_flows(void)
{
	struct scope_flow_sample x[CONNS];
	const struct conn *c;
	uint32_t n = 0;

	for (c = conns; !unread && c < conns + CONNS; c++) {
		if (!c->since_ns)
			continue;
		x[n++] = (struct scope_flow_sample){.sk = sk_of(c),
						    .since_ns = c->since_ns,
						    .ts_ns = k.now_ns,
						    .tgid = c->tgid,
						    .lost = c->lost,
						    .open = {c->side[SCOPE_TX], c->side[SCOPE_RX]},
						    .tcp = c->tcp};
	}
	decode_net__samples(s, k.now_ns, x, cut && n ? 1 : n, cut);
}

static void name_drops(void)
{
	struct net_names *n = &s->net.names;

	assert_int_equal(net_names__add_reason(n, BACKLOG, "SOCKET_BACKLOG"), 0);
	assert_int_equal(net_names__add_reason(n, FILTER, "NETFILTER_DROP"), 0);
	assert_int_equal(net_names__add_reason(n, PURGE, "QUEUE_PURGE"), 0);
	assert_int_equal(net_names__add_reason(n, MERGE, "TCP_OFOMERGE"), 0);
	assert_int_equal(net_names__add_reason(n, PLAIN, "NOT_SPECIFIED"), 0);
	assert_int_equal(net_names__add_reason(n, SEQUENCE, "TCP_INVALID_SEQUENCE"), 0);
	assert_int_equal(symbols__add(&s->symbols, 0x1000, "nf_hook_slow"), 0);
	assert_int_equal(symbols__add(&s->symbols, 0x3000, "skb_release_data"), 0);
	assert_int_equal(symbols__add(&s->symbols, 0x4000, "tcp_v4_rcv"), 0);
}

/* ---- The job ------------------------------------------------------------------------------------ */

static struct k_task *app, *proxy, *other;

static struct k_task *thread_of(uint32_t tgid, uint32_t n, const char *comm)
{
	struct k_task *t = k_task(&k, tgid + n, tgid, comm, true);

	t->ns_tid = 5 + n;
	k_fork(&k, t);
	k_wakeup(&k, t, tgid == JOB ? n : 2);
	k_preempts(&k, tgid == JOB ? n : 2, t);
	return t;
}

static int begin_net(enum net_mode mode)
{
	begin(SCHED_MODE_EVENTS);
	memset(conns, 0, sizeof(conns));
	unread = false;
	cut = 0;
	s->net_mode = mode;
	s->features.net = s->features.net_calls = s->features.no_data = s->features.drops =
		s->features.drop_reasons = mode != NET_MODE_OFF;
	name_drops();
	decode_net__init(s, 4 * MS);
	at(10 * MS);
	app = thread_of(JOB, 0, "python3");
	proxy = thread_of(JOB, 1, "NCCL Progress");
	other = NULL;
	communicator(app);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return begin_net(NET_MODE_EVENTS);
}

static int setup_flows(void **state)
{
	(void)state;
	return begin_net(NET_MODE_FLOWS);
}

static int setup_off(void **state)
{
	(void)state;
	return begin_net(NET_MODE_OFF);
}

static int teardown(void **state)
{
	struct proc *p, *tmp;

	(void)state;
	HASH_ITER (hh, s->procs, p, tmp)
		proc__end(p, "loader-stopped", false, 0);
	decode_net__free(s);
	release();
	return 0;
}

/* As tick() of record.c: the ring has been read before, and all of it. */
static void look(uint64_t ns)
{
	at(ns);
	decode_net__tick(s, k.now_ns, true);
	if (decode_net__due(s, k.now_ns))
		read_flows();
	tick();
}

/* Until nothing waits any more. */
static void look_on(uint64_t until)
{
	while (k.now_ns + 50 * MS <= until)
		look(k.now_ns + 50 * MS);
}

static uint32_t op_start(struct k_task *t, uint32_t coll, bool is_send, int32_t peer)
{
	uint32_t n = start(t, SCOPE_PROXY_OP, coll);
	struct buffer *b = buffer_of(t);
	struct scope_rec_proxy_op *r = (void *)(b->data + b->len - sizeof(*r));

	r->s.h.u32 = is_send;
	r->s.h.u8 = 3;
	r->peer = peer;
	return n;
}

static uint32_t operation(struct k_task *t)
{
	uint32_t n = start(t, SCOPE_COLL, start(t, SCOPE_COLL_API, start(t, SCOPE_GROUP_API, 0)));

	stop_event(n);
	stop_event(n - 1);
	stop_event(n - 2);
	flush(t, SCOPE_FLUSH_TOP);
	return n;
}

static void state_of(struct k_task *t, uint32_t n, uint8_t id, uint64_t size)
{
	struct scope_rec_state *r = (void *)put(t, sizeof(*r), SCOPE_REC_STATE, events[n].id);

	r->h.u8 = id;
	r->arg = size;
}

/* A whole step of a connection, `bytes` in one call, 1 ms long from now on. */
static uint32_t quick_step(struct k_task *t, uint32_t op, struct conn *c, int dir, uint32_t bytes)
{
	uint32_t n = start(t, SCOPE_PROXY_STEP, op);

	state_of(t, n, dir == SCOPE_TX ? SEND_WAIT : RECV_WAIT, bytes);
	at(k.now_ns + 1 * MS - 1 * US);
	used(c, t, dir, bytes);
	at(k.now_ns + 1 * US);
	if (dir == SCOPE_RX)
		state_of(t, n, RECV_DONE, bytes);
	stop_event(n);
	return n;
}

/* ---- What came of it ---------------------------------------------------------------------------- */

static char lines[512][1600];
static uint32_t nlines;

static void keep_line(const struct json_node *rec, const char *text)
{
	(void)rec;
	assert_true(nlines < 512);
	snprintf(lines[nlines++], sizeof(lines[0]), "%s", text);
}

static void finish(void)
{
	read_flows();
	decode_net__complete(s);
	nlines = 0;
	read_trace(keep_line);
	assert_int_equal(s->bad_records, 0);
}

/* From `net` on, of an event; "" if it has none. */
static const char *net_text(uint32_t n)
{
	char id[40];
	const char *net;
	uint32_t i;

	snprintf(id, sizeof(id), "\"eventAddr\":\"0x%" PRIx64 "\"", events[n].id);
	for (i = 0; i < nlines; i++) {
		if (!strstr(lines[i], id) || !strstr(lines[i], "\"recordType\":\"event\""))
			continue;
		net = strstr(lines[i], ",\"net\":");
		return net ? net : "";
	}
	fail_msg("event %u is not in the trace", n);
	return "";
}

/* The nth line that has this text. */
static const char *line_with(const char *text, uint32_t nth)
{
	uint32_t i;

	for (i = 0; i < nlines; i++)
		if (strstr(lines[i], text) && !nth--)
			return lines[i];
	return "";
}

static void must_have(const char *line, const char *text)
{
	if (!strstr(line, text))
		fail_msg("%s is not in: %s", text, line);
}

static void must_lack(const char *line, const char *text)
{
	if (strstr(line, text))
		fail_msg("%s is in: %s", text, line);
}

#define A_FLOW "\"10.0.0.1:41000>10.0.0.2:5000\""
#define B_FLOW "\"10.0.0.1:41001>10.0.0.2:5001\""
#define A_BACK "\"10.0.0.2:5000>10.0.0.1:41000\""

/* ---- Steps -------------------------------------------------------------------------------------- */

/* A step of 10 ms: one segment was sent again before, two within, one after it. */
static void test_send(void **state)
{
	uint32_t coll, op, step;
	struct conn *c;

	(void)state;
	c = connected();
	at(95 * MS);
	retrans(c, 1);
	at(99 * MS);
	coll = operation(app);
	op = op_start(proxy, coll, true, 1);
	at(100 * MS);
	step = start(proxy, SCOPE_PROXY_STEP, op);
	state_of(proxy, step, SEND_WAIT, 65536);
	at(100 * MS + 20 * US);
	used(c, proxy, SCOPE_TX, 8);
	at(100 * MS + 30 * US);
	call(c, proxy, SCOPE_TX, 1000);
	at(105 * MS);
	retrans(c, 2);
	at(110 * MS - 1 * US);
	c->side[SCOPE_TX].empty_ns = 2 * MS;
	c->tcp.use.lost = 1;
	c->tcp.use.dsack_dups = 1;
	c->tcp.use.busy = 2;
	c->tcp.use.rwnd_limited = 1;
	c->tcp.use.srtt_us = 8 * 250;
	c->tcp.use.rtt_min_us = 100;
	c->tcp.use.snd_cwnd = 7;
	call(c, proxy, SCOPE_TX, 64536);
	tell_use(c, SCOPE_TX);
	at(110 * MS);
	stop_event(step);
	at(112 * MS);
	retrans(c, 1);
	c->tcp.use.lost = 9; /* seen by the sample */
	at(115 * MS);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	look_on(2000 * MS);
	finish();
	assert_string_equal(net_text(step),
			    ",\"net\":{\"flow\":" A_FLOW ",\"txBytes\":65544,\"rxBytes\":0,"
			    "\"retrans\":2,\"lost\":1,\"dsack\":1,\"rxOoo\":0,\"busy\":8000.000,"
			    "\"sndbufLimited\":0.000,\"rwndLimited\":4000.000,\"noRoom\":2000.000,"
			    "\"rtt\":250.000,\"rttMin\":100.000,\"cwnd\":7,\"softirqRx\":0.000}}");
	/* The operation began when all that was not; and no sample came before its end. */
	must_have(net_text(op),
		  "{\"flow\":" A_FLOW ",\"txBytes\":65544,\"rxBytes\":0,\"retrans\":3,");
	must_have(net_text(coll), "{\"flows\":[" A_FLOW "],\"nFlows\":1,\"txBytes\":65544,");
	must_have(net_text(coll), "\"retrans\":2,\"lost\":1,");
	must_have(net_text(coll), "\"noData\":0.000,\"noRoom\":2000.000");
	must_lack(net_text(coll), "cwnd");
}

/* A connection whose other end is a process of this node, too, since 90 ms. */
static void both_ends(struct conn **tx, struct conn **rx, uint16_t rx_why)
{
	at(90 * MS);
	other = thread_of(PEER, 0, "NCCL Progress");
	communicator(other);
	*tx = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	*rx = connect_it(1, PEER, rx_why);
}

/* Which work on one operation of each, since 99 ms. */
static void both_operations(uint32_t *tx_op, uint32_t *rx_op)
{
	at(99 * MS);
	*tx_op = op_start(proxy, operation(app), true, 1);
	*rx_op = op_start(other, operation(other), false, 0);
}

/* The other end is a process of this node: what it did in the same time is told as well. */
static void test_receive_and_peer(void **state)
{
	uint32_t op, step, op2, step2;
	struct conn *tx, *rx;

	(void)state;
	both_ends(&tx, &rx, SCOPE_FLOW_FOUND);
	both_operations(&op, &op2);
	at(100 * MS);
	step2 = start(other, SCOPE_PROXY_STEP, op2);
	state_of(other, step2, RECV_WAIT, 0);
	step = quick_step(proxy, op, tx, SCOPE_TX, 50000); /* to 101 ms */
	at(102 * MS);
	retrans(tx, 3);
	at(103 * MS);
	tx->tcp.use.rwnd_limited = 1;
	tx->tcp.use.lost = 2;
	tx->tcp.use.busy = 3;
	used(tx, proxy, SCOPE_TX, 8);
	at(107 * MS);
	rx->side[SCOPE_RX].empty_ns = 6 * MS;
	rx->tcp.use.rcv_ooopack = 4;
	used(rx, other, SCOPE_RX, 50000);
	at(107 * MS + 1 * US);
	state_of(other, step2, RECV_DONE, 50000);
	at(109 * MS);
	stop_event(step2);
	stop_event(op2);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	flush(other, SCOPE_FLUSH_AGE);
	look_on(2000 * MS);
	finish();
	assert_string_equal(
		net_text(step2),
		",\"net\":{\"flow\":" A_BACK
		",\"txBytes\":0,\"rxBytes\":50000,\"retrans\":0,\"lost\":0,"
		"\"dsack\":0,\"rxOoo\":4,\"busy\":0.000,\"sndbufLimited\":0.000,\"rwndLimited\":0."
		"000,"
		"\"noData\":6000.000,\"cwnd\":0,"
		"\"peer\":{\"pid\":5,\"hostPid\":2000000000,\"rank\":0,\"retrans\":3,\"lost\":2,"
		"\"dsack\":0,\"sndbufLimited\":0.000,\"rwndLimited\":4000.000},\"softirqRx\":0.000}"
		"}");
	must_have(net_text(step),
		  "\"peer\":{\"pid\":5,\"hostPid\":2000001000,\"rank\":1,\"retrans\":0,");
	must_have(line_with(A_FLOW ",\"tid\"", 1), "\"peerRank\":1,\"channel\":3,\"isSend\":true");
}

/* A send that found no room, and a receive that found no data, by a kernel whose functions tell of calls. */
static void waits_by_function(bool reads, uint32_t *send, uint32_t *receive)
{
	uint32_t tx_op, rx_op;
	struct conn *tx, *rx;

	s->features.net_calls = false;
	s->features.no_data = reads;
	both_ends(&tx, &rx, SCOPE_FLOW_FOUND);
	both_operations(&tx_op, &rx_op);
	at(100 * MS);
	tx->side[SCOPE_TX].empty_ns = 500 * US;
	*send = quick_step(proxy, tx_op, tx, SCOPE_TX, 50000);
	at(102 * MS);
	rx->side[SCOPE_RX].empty_ns = 600 * US;
	*receive = quick_step(other, rx_op, rx, SCOPE_RX, 50000);
	stop_event(rx_op);
	stop_event(tx_op);
	flush(proxy, SCOPE_FLUSH_AGE);
	flush(other, SCOPE_FLUSH_AGE);
	look_on(2000 * MS);
	finish();
}

static void test_functions(void **state)
{
	uint32_t send, receive;

	(void)state;
	waits_by_function(true, &send, &receive);
	must_have(net_text(send), "\"noRoom\":500.000");
	must_have(net_text(receive), "\"noData\":600.000");
	must_have(line_with("\"recordType\":\"header\"", 0),
		  "\"net\":\"functions\",\"noData\":true");
}

/* Where nobody tells of a read that finds nothing, how long there was no data is not known. */
static void test_functions_but_reads(void **state)
{
	uint32_t send, receive;

	(void)state;
	waits_by_function(false, &send, &receive);
	must_have(net_text(send), "\"noRoom\":500.000");
	must_have(net_text(receive), "\"rxBytes\":50000");
	must_lack(net_text(receive), "noData");
	must_have(line_with("\"recordType\":\"header\"", 0),
		  "\"net\":\"functions\",\"noData\":false");
}

/* The last call is not told of by a record before the step is written, but a sample has it. */
static void test_open_calls(void **state)
{
	struct conn *c;
	uint32_t step;

	(void)state;
	c = connected();
	step = start(proxy, SCOPE_PROXY_STEP, op_start(proxy, operation(app), true, 1));
	state_of(proxy, step, SEND_WAIT, 4096);
	at(100 * MS);
	call(c, proxy, SCOPE_TX, 4096);
	at(100 * MS + 1 * US);
	stop_event(step);
	stop_event(step - 1);
	flush(proxy, SCOPE_FLUSH_AGE);
	look_on(1000 * MS);
	tell_use(c, SCOPE_TX);
	look_on(2000 * MS);
	finish();
	must_have(net_text(step), "{\"flow\":" A_FLOW ",\"txBytes\":4096,");
}

/* Uses come when there are enough of them; a sample has them copied before, as far as they have come. */
static void test_gathered(void **state)
{
	const struct net_uses *uses;
	uint32_t op, step[3], i;
	struct conn *c;

	(void)state;
	c = connected();
	op = op_start(proxy, operation(app), true, 1);
	for (i = 0; i < 3; i++) {
		at((100 + 10 * i) * MS);
		step[i] = start(proxy, SCOPE_PROXY_STEP, op);
		state_of(proxy, step[i], SEND_WAIT, 1000);
		call(c, proxy, SCOPE_TX, 400 + i);
		at((105 + 10 * i) * MS);
		c->side[SCOPE_TX].empty_ns += MS;
		c->tcp.use.srtt_us = 8 * (50 + i);
		call(c, proxy, SCOPE_TX, 600);
		at((105 + 10 * i) * MS + 1 * US);
		stop_event(step[i]);
		if (i == 2)
			look_on(200 * MS); /* there, it goes on, as far as the loader can tell */
		gather(c, SCOPE_TX);
		if (i == 1)
			copy_uses(c, SCOPE_TX);
	}
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	tell_uses(c, SCOPE_TX);
	uses = &job()->net.threads->uses[SCOPE_TX];
	assert_int_equal(uses->n, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(uses->at[i].last_ns - uses->at[i].first_ns, 5 * MS);
		assert_int_equal(uses->at[i].bytes, 1000 + i);
	}
	look_on(1000 * MS);
	finish();
	must_have(net_text(step[0]), "\"txBytes\":1000,");
	must_have(net_text(step[0]), "\"noRoom\":1000.000,\"rtt\":50.000,");
	must_have(net_text(step[1]), "\"txBytes\":1001,");
	must_have(net_text(step[1]), "\"noRoom\":1000.000,\"rtt\":51.000,");
	must_have(net_text(step[2]), "\"txBytes\":1002,");
	must_have(net_text(step[2]), "\"noRoom\":1000.000,\"rtt\":52.000,");
}

/* What says it has more than it can, or is shorter than it says. */
static void test_bad_uses(void **state)
{
	struct scope_ev_uses *e;
	struct conn *c;

	(void)state;
	c = connected();
	call(c, proxy, SCOPE_TX, 10);
	gather(c, SCOPE_TX);
	e = &c->uses[SCOPE_TX];
	e->dir = 2;
	copy_uses(c, SCOPE_TX);
	assert_int_equal(s->bad_records, 1);
	e->dir = SCOPE_TX;
	e->n = SCOPE_USES + 1;
	copy_uses(c, SCOPE_TX);
	assert_int_equal(s->bad_records, 2);
	e->n = 2;
	e->h.size = SCOPE_USES_SIZE(1);
	decode__event(s, e, sizeof(*e));
	assert_int_equal(s->bad_records, 3);
	e->n = 0;
	copy_uses(c, SCOPE_TX);
	assert_int_equal(s->bad_records, 4);
	e->n = 1;
	copy_uses(c, SCOPE_TX);
	assert_int_equal(s->bad_records, 4);
	s->bad_records = 0;
	assert_int_equal(job()->net.threads->uses[SCOPE_TX].n, 1);
	look_on(1000 * MS);
	finish();
}

/* The ProxyOp's start lies in another thread's buffer, as before API 4. */
static void test_late_op(void **state)
{
	uint32_t op, step[3], i;
	struct conn *c;

	(void)state;
	c = connected();
	op = op_start(app, operation(app), true, 1);
	at(100 * MS);
	for (i = 0; i < 3; i++)
		step[i] = quick_step(proxy, op, c, SCOPE_TX, 1000 + i);
	flush(proxy, SCOPE_FLUSH_AGE);
	look_on(400 * MS);
	stop_event(op);
	flush(app, SCOPE_FLUSH_AGE);
	look_on(2000 * MS);
	finish();
	must_have(net_text(step[0]), "{\"flow\":" A_FLOW ",\"txBytes\":1000,");
	must_have(net_text(step[1]), "{\"flow\":" A_FLOW ",\"txBytes\":1001,");
	must_have(net_text(step[2]), "{\"flow\":" A_FLOW ",\"txBytes\":1002,");
	must_have(net_text(op), "{\"flow\":" A_FLOW ",\"txBytes\":3003,");
}

/* Of a neighbour's operation, which is not in this process' trace. */
static uint32_t pxn_op_start(void)
{
	struct buffer *b = buffer_of(proxy);
	struct scope_rec_proxy_op *r;
	uint32_t n;

	events[EVENTS - 1].id = (TAG + 1ull) << SCOPE_ID_TAG_SHIFT |
				(uint64_t)SCOPE_COLL << SCOPE_ID_COUNTER_BITS | 1;
	n = op_start(proxy, EVENTS - 1, true, 1);
	r = (void *)(b->data + b->len - sizeof(*r));
	r->pid = 77;
	return n;
}

/* A ProxyOp that ran for long, stopped behind younger ones: its beginning is still known. */
static void test_long_op(void **state)
{
	uint32_t op, ops[2], i;
	struct conn *c;

	(void)state;
	c = connected();
	op = pxn_op_start();
	quick_step(proxy, op, c, SCOPE_TX, 1000);
	flush(proxy, SCOPE_FLUSH_AGE);
	look_on(1000 * MS);
	retrans(c, 5);
	look_on(4910 * MS);
	for (i = 0; i < 2; i++) {
		ops[i] = pxn_op_start();
		quick_step(proxy, ops[i], c, SCOPE_TX, 1000);
	}
	quick_step(proxy, op, c, SCOPE_TX, 1000);
	stop_event(ops[0]);
	stop_event(op);
	stop_event(ops[1]);
	flush(proxy, SCOPE_FLUSH_AGE);
	s->net.next_prune_ns = 0;
	look_on(8000 * MS);
	finish();
	must_have(net_text(op), "\"txBytes\":2000,\"rxBytes\":0,\"retrans\":5,");
	must_have(net_text(ops[1]), "\"txBytes\":1000,\"rxBytes\":0,\"retrans\":0,");
}

/* The oldest time that a connection's figures are known of. */
static uint64_t known_since(const struct conn *c)
{
	const struct flow *flow = flows__find(&s->net.flows, sk_of(c), c->since_ns);

	return flow->points[flow->first].ts_ns;
}

/* Who hangs may ask for its own connections and their other ends, and not for others'; a ProxyCtrl for none. */
static void test_kept(void **state)
{
	struct conn *tx, *rx, *alone;

	(void)state;
	both_ends(&tx, &rx, SCOPE_FLOW_OPEN);
	alone = connect_it(2, JOB, SCOPE_FLOW_OPEN);
	start(proxy, SCOPE_PROXY_CTRL, 0);
	flush(proxy, SCOPE_FLUSH_AGE);
	op_start(other, operation(other), false, 0); /* does not end */
	flush(other, SCOPE_FLUSH_AGE);
	while (k.now_ns < 8000 * MS) {
		used(tx, proxy, SCOPE_TX, 10);
		used(rx, other, SCOPE_RX, 10);
		used(alone, proxy, SCOPE_TX, 10);
		look(k.now_ns + 50 * MS);
	}
	assert_int_equal(known_since(rx), 90 * MS);
	assert_int_equal(known_since(tx), 90 * MS);
	assert_in_range(known_since(alone), k.now_ns - 4000 * MS, k.now_ns - 1000 * MS);
	finish();
}

/* A connection that is made anew with the addresses of the one before it bears its name: named once. */
static void test_same_addresses(void **state)
{
	uint32_t coll, op;
	struct conn *c;

	(void)state;
	c = connected();
	coll = operation(app);
	op = op_start(proxy, coll, true, 1);
	quick_step(proxy, op, c, SCOPE_TX, 1000);
	gone(c);
	at(k.now_ns + 1 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	c->tcp.use.srtt_us = 8 * 250;
	quick_step(proxy, op, c, SCOPE_TX, 2000);
	quick_step(proxy, op, connect_it(2, JOB, SCOPE_FLOW_OPEN), SCOPE_TX, 4000);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	look_on(2000 * MS);
	finish();
	must_have(net_text(coll), "{\"flows\":[" A_FLOW ",\"10.0.0.1:41001>10.0.0.2:5001\"],"
				  "\"nFlows\":2,\"txBytes\":7000,");
	must_have(net_text(op), "{\"flow\":" A_FLOW ",\"flows\":[" A_FLOW ",");
	must_have(net_text(op), "\"rtt\":250.000,"); /* of the one that is there */
}

/* The recording ends within an operation: what its steps did is its own, too. */
static void test_unfinished(void **state)
{
	uint32_t coll, op, step;
	struct conn *c;

	(void)state;
	c = connected();
	coll = operation(app);
	op = op_start(proxy, coll, true, 1);
	step = quick_step(proxy, op, c, SCOPE_TX, 1000);
	start(proxy, SCOPE_PROXY_STEP, op);
	flush(proxy, SCOPE_FLUSH_AGE);
	look_on(1000 * MS);
	finish();
	must_have(net_text(step), "\"txBytes\":1000,");
	must_have(net_text(op), "\"txBytes\":1000,");
	must_have(net_text(coll), "\"txBytes\":1000,");
	assert_string_equal(net_text(op + 2), "");
}

/* ---- Flows -------------------------------------------------------------------------------------- */

/* When segments were sent again is told a tenth of a second later, and which of them were needless. */
static void test_resent(void **state)
{
	struct conn *c;
	uint32_t i;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_FOUND);
	look_on(400 * MS);
	used(c, proxy, SCOPE_TX, 1000);
	look_on(1550 * MS); /* told */
	retrans(c, 2);
	at(1550 * MS + 70 * US);
	retrans(c, 1);
	at(1560 * MS);
	retrans(c, 1);
	at(1570 * MS);
	c->tcp.use.dsack_dups = 1; /* of the last one */
	look_on(2700 * MS);	   /* told, as each second */
	for (i = 0; i < 40; i++) {
		at(2800 * MS + i * MS);
		retrans(c, 1);
	}
	look_on(3200 * MS); /* so many are told at once */
	retrans(c, 5);
	c->tcp.use.dsack_dups += 5;
	at(3201 * MS);
	gone(c);
	look_on(4000 * MS);
	finish();
	must_lack(line_with(A_FLOW, 1), "resent");
	must_have(line_with(A_FLOW, 2), "\"resent\":[{\"ts\":1550000.000,\"n\":3},"
					"{\"ts\":1560000.000,\"n\":1,\"dsack\":1}],\"delta\":");
	must_have(line_with(A_FLOW, 3),
		  "\"resent\":[{\"ts\":2800000.000,\"n\":2},{\"ts\":2802000.000,\"n\":2},");
	must_have(line_with(A_FLOW, 3),
		  ",{\"ts\":2838000.000,\"n\":1},{\"ts\":2839000.000,\"n\":1}]");
	must_have(line_with(A_FLOW, 3), "\"retrans\":44,");
	must_have(line_with(A_FLOW, 4), "\"why\":\"end\"");
	must_have(line_with(A_FLOW, 4), "\"n\":5,\"dsack\":5}]");
}

/* What was sent again later than a record is told by the next one, however many there are. */
static void test_resent_later(void **state)
{
	struct conn *c;
	uint32_t i;

	(void)state;
	c = connected();
	look_on(2790 * MS);
	for (i = 0; i < 31; i++) {
		at(2800 * MS + i * MS);
		retrans(c, 1);
	}
	look_on(2930 * MS);
	retrans(c, 1);
	at(2932 * MS);
	retrans(c, 1);
	look_on(4500 * MS);
	finish();
	must_have(line_with("\"resent\"", 0), "{\"ts\":2830000.000,\"n\":1}]");
	must_have(line_with("\"resent\"", 1), "\"resent\":[{\"ts\":2930000.000,\"n\":1},");
}

/* Of one whose record was lost the next one tells. */
static void test_resent_lost(void **state)
{
	struct conn *c;

	(void)state;
	c = connected();
	look_on(300 * MS);
	c->tcp.use.total_retrans = 2;
	look_on(500 * MS);
	retrans(c, 1);
	look_on(2000 * MS);
	finish();
	must_have(line_with("\"resent\"", 0), "\"resent\":[{\"ts\":490000.000,\"n\":3}]");
	must_have(line_with("\"resent\"", 0), "\"retrans\":3,");
}

static void test_flow_lines(void **state)
{
	struct conn *c;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_FOUND);
	c->tcp.use.total_retrans = 7; /* of before */
	look_on(400 * MS);
	used(c, proxy, SCOPE_TX, 1000);
	c->tcp.bytes_acked = 1000;
	c->tcp.use.busy = 3;
	look_on(700 * MS); /* told at most once a second */
	used(c, proxy, SCOPE_RX, 500);
	retrans(c, 2);
	look_on(2500 * MS);
	used(c, proxy, SCOPE_TX, 24);
	c->tcp.bytes_acked = 1024;
	at(2510 * MS);
	gone(c);
	look_on(4000 * MS);
	finish();
	must_have(line_with(A_FLOW, 0),
		  "\"ts\":100000.000,\"netns\":4026531840,\"why\":\"found\",");
	must_have(line_with(A_FLOW, 0), "\"txBytes\":0,\"rxBytes\":0,");
	must_lack(line_with(A_FLOW, 0), "delta");
	must_have(line_with(A_FLOW, 1), "\"why\":\"use\",\"tcp\":{\"state\":\"established\"");
	must_have(line_with(A_FLOW, 1), "\"txBytes\":1000,\"rxBytes\":500,\"bytesAcked\":1000,");
	must_have(line_with(A_FLOW, 1), "\"retrans\":9,");
	must_have(line_with(A_FLOW, 1), "\"busy\":12000.000,");
	must_have(line_with(A_FLOW, 1), "\"delta\":{\"txBytes\":1000,\"rxBytes\":500,");
	must_have(line_with(A_FLOW, 2), "\"ts\":2510000.000,");
	must_have(line_with(A_FLOW, 2),
		  "\"why\":\"end\",\"end\":true,\"tcp\":{\"state\":\"close\"");
	must_have(line_with(A_FLOW, 2), "\"txBytes\":1024,\"rxBytes\":500,\"bytesAcked\":1024,");
	must_have(line_with(A_FLOW, 2),
		  "\"delta\":{\"txBytes\":24,\"rxBytes\":0,\"bytesAcked\":24,");
	assert_string_equal(line_with(A_FLOW, 3), "");
}

/* What is told of the job's connections now. */
static void must_tell(json_int_t flows, json_int_t tx, json_int_t rx, json_int_t retrans)
{
	struct proc *p, *tmp;
	json_t *net = NULL;

	live__count_flows(s);
	HASH_ITER (hh, s->procs, p, tmp)
		if (p->key.tgid == JOB)
			net = live__net(p);
	assert_non_null(net);
	assert_int_equal(json_integer_value(json_object_get(net, "flows")), flows);
	assert_int_equal(json_integer_value(json_object_get(net, "txBytes")), tx);
	assert_int_equal(json_integer_value(json_object_get(net, "rxBytes")), rx);
	assert_int_equal(json_integer_value(json_object_get(net, "retrans")), retrans);
	assert_int_equal(!!json_object_get(net, "noDataUs"), s->features.no_data);
	json_decref(net);
}

/* Counts only grow: what a connection had stays when it goes, while it is remembered and later. */
static void test_live(void **state)
{
	struct conn *c;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	used(c, proxy, SCOPE_TX, 1000);
	used(c, proxy, SCOPE_RX, 500);
	retrans(c, 2);
	look_on(500 * MS);
	must_tell(1, 1000, 500, 2);
	c = connect_it(2, JOB, SCOPE_FLOW_OPEN);
	used(c, proxy, SCOPE_TX, 24);
	look_on(1000 * MS);
	must_tell(2, 1024, 500, 2);
	gone(&conns[0]);
	look_on(1500 * MS);
	must_tell(1, 1024, 500, 2);
	look_on(60000 * MS);
	must_tell(1, 1024, 500, 2);
	s->features.no_data = false;
	must_tell(1, 1024, 500, 2);
	finish();
}

/* What TCP counted before a connection was known is in its records, but nothing that the recording tells of. */
static void test_counts_of_before(void **state)
{
	const struct scope_tcp_use before = {
		.total_retrans = 3000, .dsack_dups = 10, .busy = 1000, .rwnd_limited = 900};
	struct summary *sum = &s->summary;
	struct conn *c;

	(void)state;
	at(100 * MS);
	c = conn_new(0, JOB);
	c->tcp.use = before;
	tell_flow(c, SCOPE_FLOW_FOUND);
	look_on(500 * MS);
	must_tell(1, 0, 0, 0);
	used(c, proxy, SCOPE_TX, 1000);
	retrans(c, 20);
	c->tcp.use.dsack_dups += 4;
	c->tcp.use.busy += 100;
	c->tcp.use.rwnd_limited += 30;
	look_on(1000 * MS);
	must_tell(1, 1000, 0, 20);
	finish();
	must_have(line_with("\"detached\"", 0), "\"retrans\":3020,");
	assert_int_equal(sum->again, 20);
	assert_int_equal(sum->needed, 16);
	assert_int_equal(sum->nworst, 1);
	assert_int_equal(sum->worst[0].busy_ns, 100 * 4 * MS);
	assert_int_equal(sum->worst[0].rwnd_ns, 30 * 4 * MS);
}

/* --net=flows: with every sample, while it moves. */
static void test_flows_mode(void **state)
{
	struct conn *c;
	uint32_t i;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	look_on(200 * MS);
	for (i = 1; i <= 10; i++) {
		used(c, proxy, SCOPE_TX, 100);
		look_on(200 * MS + i * 100 * MS);
	}
	look_on(3000 * MS);
	finish();
	must_have(line_with(A_FLOW, 0), "\"why\":\"open\"");
	for (i = 1; i <= 10; i++)
		must_have(line_with(A_FLOW, i), "\"delta\":{\"txBytes\":100,");
	must_have(line_with(A_FLOW, 11), "detached");
}

/* Each begins and ends between two samples, and its addresses come again at once. */
static void test_short_flows(void **state)
{
	struct conn *c;
	uint32_t i;

	(void)state;
	at(100 * MS);
	for (i = 0; i < 3; i++) {
		at(k.now_ns + 1 * MS);
		c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
		at(k.now_ns + 1 * MS);
		used(c, proxy, SCOPE_TX, 10);
		at(k.now_ns + 1 * MS);
		if (i != 1)
			gone(&conns[0]); /* the one between is closed, but not yet destroyed */
	}
	look_on(1000 * MS);
	finish();
	for (i = 0; i < 6; i += 2) {
		must_have(line_with(A_FLOW, i), "\"why\":\"open\"");
		must_have(line_with(A_FLOW, i + 1), "\"why\":\"end\",\"end\":true");
		must_have(line_with(A_FLOW, i + 1), "\"txBytes\":10,");
	}
	assert_string_equal(line_with(A_FLOW, 6), "");
}

/* Of a reading that lacks some, nobody is gone; of the next whole one, whoever is not in it. As a digest and as convert read. */
static void cut_readings(bool echo)
{
	struct conn *c;

	log_level = LOG_ERR;
	s->echo = echo;
	at(100 * MS);
	connect_it(0, JOB, SCOPE_FLOW_OPEN);
	c = connect_it(2, JOB, SCOPE_FLOW_OPEN);
	used(c, proxy, SCOPE_TX, 10);
	look_on(500 * MS);
	cut = -ENOBUFS;
	look_on(4000 * MS);
	cut = 0;
	look_on(4500 * MS);
	used(c, proxy, SCOPE_TX, 20);
	look_on(6000 * MS);
	c->since_ns = 0; /* nobody tells */
	look_on(9000 * MS);
	finish();
	must_have(line_with(B_FLOW, 0), "\"why\":\"open\"");
	must_have(line_with(B_FLOW, 1), "\"why\":\"use\"");
	must_have(line_with(B_FLOW, 2), "\"why\":\"end\",\"end\":true");
	must_have(line_with(B_FLOW, 2), "\"txBytes\":30,");
	must_have(line_with(A_FLOW, 1), "\"why\":\"detached\"");
}

static void test_cut_reading(void **state)
{
	(void)state;
	cut_readings(false);
}

static void test_cut_reading_digest(void **state)
{
	(void)state;
	cut_readings(true);
}

static void test_reset(void **state)
{
	struct conn *c;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	at(100 * MS + 1 * US);
	used(c, proxy, SCOPE_TX, 10);
	at(101 * MS);
	tell_flow(c, SCOPE_FLOW_RESET_IN);
	at(102 * MS);
	gone(c);
	look_on(1000 * MS);
	finish();
	must_have(line_with(A_FLOW, 0), "\"why\":\"open\"");
	must_have(line_with(A_FLOW, 1), "\"ts\":101000.000,");
	must_have(line_with(A_FLOW, 1), "\"why\":\"reset-in\"");
	must_have(line_with(A_FLOW, 1), "\"delta\":{\"txBytes\":10,");
	must_have(line_with(A_FLOW, 2), "\"why\":\"end\",\"end\":true");
	assert_string_equal(line_with(A_FLOW, 3), "");
}

/* The other end has closed and this one does not: nothing moves any more, and that it is so is told, once. */
static void test_state(void **state)
{
	struct conn *c;

	(void)state;
	c = connected();
	at(100 * MS);
	used(c, proxy, SCOPE_TX, 10);
	look_on(500 * MS);
	c->tcp.state = 8;
	tell_flow(c, SCOPE_FLOW_STATE);
	look_on(5000 * MS);
	finish();
	must_have(line_with(A_FLOW, 1), "\"why\":\"state\",\"tcp\":{\"state\":\"close-wait\"");
	must_have(line_with(A_FLOW, 2), "\"why\":\"detached\",\"end\":true");
	assert_string_equal(line_with(A_FLOW, 3), "");
}

/* What it goes through as it comes about, is reset or is closed by this end has lines of its own. */
static void test_states_of_others(void **state)
{
	struct conn *c;

	(void)state;
	c = connected();
	tell_flow(c, SCOPE_FLOW_STATE);
	look_on(500 * MS);
	tell_flow(c, SCOPE_FLOW_RESET_IN);
	c->tcp.state = 7;
	tell_flow(c, SCOPE_FLOW_STATE);
	look_on(1000 * MS);
	gone(c);
	look_on(1500 * MS);
	at(2000 * MS);
	c = connect_it(2, JOB, SCOPE_FLOW_OPEN);
	look_on(2500 * MS);
	for (c->tcp.state = 4; c->tcp.state <= 5; c->tcp.state++)
		tell_flow(c, SCOPE_FLOW_STATE);
	gone(c);
	look_on(4000 * MS);
	finish();
	must_have(line_with(A_FLOW, 1), "\"why\":\"reset-in\"");
	must_have(line_with(A_FLOW, 2), "\"why\":\"end\",\"end\":true");
	must_have(line_with("41001>", 0), "\"why\":\"open\"");
	must_have(line_with("41001>", 1), "\"why\":\"end\",\"end\":true");
	assert_string_equal(line_with("\"why\":\"state\"", 0), "");
}

/* What was read before a record may be taken after it. */
static void test_overtaken(void **state)
{
	struct conn *c;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	look(150 * MS); /* reads */
	at(151 * MS);
	used(c, proxy, SCOPE_TX, 10);
	c->tcp.bytes_acked = 10;
	tell_flow(c, SCOPE_FLOW_RESET_OUT);
	unread = true;
	look(200 * MS); /* takes */
	look_on(400 * MS);
	gone(c);
	look_on(1000 * MS);
	finish();
	must_have(line_with(A_FLOW, 1), "\"ts\":151000.000,");
	must_have(line_with(A_FLOW, 1), "\"why\":\"reset-out\"");
	must_have(line_with(A_FLOW, 2), "\"why\":\"end\"");
	must_have(line_with(A_FLOW, 2), "\"bytesAcked\":10,");
}

/* The kernel forgot it, but the record of that was lost: it is in no sample any more. */
static void test_end_lost(void **state)
{
	(void)state;
	at(100 * MS);
	connect_it(0, JOB, SCOPE_FLOW_OPEN);
	connect_it(2, JOB, SCOPE_FLOW_OPEN);
	look_on(500 * MS);
	conns[0].since_ns = 0;
	look_on(3000 * MS);
	assert_int_equal(HASH_COUNT(s->net.flows.by_key), 2); /* for the other end's sake */
	look_on(6000 * MS);
	assert_int_equal(HASH_COUNT(s->net.flows.by_key), 1);
	finish();
	must_have(line_with(A_FLOW, 1), "\"why\":\"end\"");
	must_have(line_with("41001>", 1), "\"why\":\"detached\"");
}

/* What is read may be a moment behind what was read before: no total falls. */
static void test_never_back(void **state)
{
	struct conn *c;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	c->tcp.use.total_retrans = 5;
	c->tcp.use.busy = 10;
	c->tcp.use.rwnd_limited = 5;
	used(c, proxy, SCOPE_TX, 10);
	look_on(400 * MS);
	c->tcp.use.total_retrans = 4;
	c->tcp.use.busy = 9;
	c->tcp.use.rwnd_limited = 0;
	c->tcp.use.sndbuf_limited = 6;
	used(c, proxy, SCOPE_TX, 10);
	look_on(3000 * MS);
	finish();
	must_have(line_with(A_FLOW, 1), "\"retrans\":5,");
	must_have(line_with("detached", 0), "\"retrans\":5,");
}

/* A flow that rests costs nothing, though every sample has its last calls. */
static void test_rest(void **state)
{
	struct conn *c;

	(void)state;
	at(100 * MS);
	c = connect_it(0, JOB, SCOPE_FLOW_OPEN);
	start(app, SCOPE_GROUP_API, 0); /* and never ends */
	flush(app, SCOPE_FLUSH_AGE);
	call(c, proxy, SCOPE_TX, 10);
	look_on(60000 * MS);
	assert_in_range(s->net.flows.by_key->npoints, 1, 8);
	assert_null(job()->net.threads);
	finish();
	must_have(line_with("detached", 0), "\"txBytes\":10,");
}

/* ---- Drops -------------------------------------------------------------------------------------- */

static void test_drops(void **state)
{
	struct conn *tx, *rx;
	uint32_t i;

	(void)state;
	both_ends(&tx, &rx, SCOPE_FLOW_OPEN);
	for (i = 0; i < 3; i++) {
		at(k.now_ns + 1 * MS);
		dropped(rx, FILTER, 0x1000, 100 + i);
	}
	dropped(rx, BACKLOG, 0x2000, 50);
	dropped(rx, FILTER, 0x2000, 20);
	dropped(rx, PURGE, 0x1000, 9); /* what is left when a socket is closed */
	dropped(rx, MERGE, 0x1000, 9); /* what has come before, and waits for what is missing */
	look_on(1000 * MS);
	dropped(rx, FILTER, 0x1000, 1);
	look_on(2000 * MS);
	finish();
	assert_int_equal(s->summary.drops, 6);
	must_have(line_with("\"drop\","
			    "\"flow\":" A_BACK,
			    0),
		  "\"ts\":93000.000,\"reason\":\"NETFILTER_DROP\",\"n\":3,"
		  "\"where\":\"nf_hook_slow\",\"len\":303,\"dir\":\"rx\"}");
	must_have(line_with("\"drop\","
			    "\"flow\":" A_BACK,
			    1),
		  "\"reason\":\"SOCKET_BACKLOG\",\"n\":1,\"where\":\"0x2000\",\"len\":50,");
	must_have(line_with("\"drop\","
			    "\"flow\":" A_BACK,
			    2),
		  "\"len\":20,");
	must_have(line_with("\"drop\","
			    "\"flow\":" A_BACK,
			    3),
		  "\"n\":1,\"where\":\"nf_hook_slow\",\"len\":1,");
	assert_string_equal(line_with("\"drop\","
				      "\"flow\":" A_BACK,
				      4),
			    "");
	must_have(line_with("\"drop\","
			    "\"flow\":" A_FLOW,
			    0),
		  "\"n\":3,");
	must_have(line_with("\"drop\","
			    "\"flow\":" A_FLOW,
			    0),
		  "\"dir\":\"tx\"}");
}

/* Data that is dropped makes steps wait; acknowledgements of it do not, once it is known which way it goes. */
static void test_dropped_acks(void **state)
{
	uint32_t op, op2, step, step2;
	struct conn *tx, *rx;

	(void)state;
	both_ends(&tx, &rx, SCOPE_FLOW_OPEN);
	both_operations(&op, &op2);
	at(100 * MS);
	step = start(proxy, SCOPE_PROXY_STEP, op);
	state_of(proxy, step, SEND_WAIT, 1000);
	step2 = start(other, SCOPE_PROXY_STEP, op2);
	state_of(other, step2, RECV_WAIT, 0);
	at(101 * MS);
	used(tx, proxy, SCOPE_TX, 1000);
	dropped(rx, FILTER, 0x1000, 1000);
	dropped(tx, BACKLOG, 0x1000, 52);
	dropped(tx, BACKLOG, 0x1000, 52);
	at(105 * MS);
	used(rx, other, SCOPE_RX, 1000);
	at(106 * MS);
	state_of(other, step2, RECV_DONE, 1000);
	stop_event(step);
	stop_event(step2);
	stop_event(op);
	stop_event(op2);
	flush(proxy, SCOPE_FLUSH_AGE);
	flush(other, SCOPE_FLUSH_AGE);
	look_on(2000 * MS);
	finish();
	must_have(net_text(step), "\"drops\":[{\"reason\":\"NETFILTER_DROP\",\"n\":1}]");
	must_have(net_text(step2), "\"drops\":[{\"reason\":\"NETFILTER_DROP\",\"n\":1}]");
	must_have(net_text(op), "\"drops\":[{\"reason\":\"NETFILTER_DROP\",\"n\":1}]");
	must_have(line_with("\"SOCKET_BACKLOG\"", 0), "\"n\":2,");
}

/* Of a packet that was put together from several and has been read, kernels before 6.2 told each but the first as dropped. */
static void test_parts_of_a_packet(void **state)
{
	struct conn *tx, *rx;

	(void)state;
	both_ends(&tx, &rx, SCOPE_FLOW_OPEN);
	at(100 * MS);
	dropped(rx, PLAIN, 0x3000, 1448);
	dropped(rx, 0, 0x3000, 1448);	/* nor did older ones say why */
	dropped(rx, PLAIN, 0x4000, 52); /* of a connection in TIME_WAIT */
	look_on(1000 * MS);
	dropped(rx, FILTER, 0x3000, 100);
	dropped(rx, PLAIN, 0x1000, 101);
	dropped(rx, 0, 0x4000, 102);
	look_on(2000 * MS);
	finish();
	assert_int_equal(s->summary.drops, 3);
	must_have(line_with("\"drop\","
			    "\"flow\":" A_BACK,
			    0),
		  "\"reason\":\"NETFILTER_DROP\",\"n\":1,\"where\":\"skb_release_data\",\"len\":"
		  "100,");
}

/* Segments that have come already are told apart from those that cannot be since Linux 6.6 only. */
static void test_old_sequence(void **state)
{
	struct conn *tx, *rx;

	(void)state;
	both_ends(&tx, &rx, SCOPE_FLOW_OPEN);
	at(100 * MS);
	dropped(rx, SEQUENCE, 0x1000, 1448);
	look_on(1000 * MS);
	assert_int_equal(s->summary.drops, 0);
	assert_int_equal(net_names__add_reason(&s->net.names, OLD, "TCP_OLD_SEQUENCE"), 0);
	dropped(rx, SEQUENCE, 0x1000, 1448);
	dropped(rx, OLD, 0x1000, 1448);
	look_on(2000 * MS);
	finish();
	assert_int_equal(s->summary.drops, 1);
}

/* Reasons that only a part of the kernel has: which part, and which of its own; and one that nobody names. */
static void test_reasons_of_parts(void **state)
{
	struct conn *c;

	(void)state;
	c = connected();
	dropped(c, 3 << 16 | 2, 0x1000, 100);
	dropped(c, 250, 0x2000, 100);
	look_on(1000 * MS);
	finish();
	must_have(line_with("\"recordType\":\"drop\"", 0), "\"reason\":\"SUBSYS_3_2\",\"n\":1,");
	must_have(line_with("\"recordType\":\"drop\"", 1), "\"reason\":\"250\",\"n\":1,");
}

/* More within a sample than are kept: told before they are forgotten. */
static void test_many_drops(void **state)
{
	uint64_t n, sum = 0;
	const char *at_n;
	struct conn *c;
	uint32_t i;

	(void)state;
	c = connected();
	for (i = 0; i < 3 * FLOW_DROPS_MAX; i++)
		dropped(c, FILTER, 0x1000, 1);
	look_on(1000 * MS);
	finish();
	for (i = 0; *line_with("\"recordType\":\"drop\"", i); i++) {
		at_n = strstr(line_with("\"recordType\":\"drop\"", i), "\"n\":");
		assert_int_equal(sscanf(at_n, "\"n\":%" SCNu64, &n), 1);
		sum += n;
	}
	assert_int_equal(sum, 3 * FLOW_DROPS_MAX);
}

/* ---- Ends and losses ---------------------------------------------------------------------------- */

static struct proc *same_pid(uint64_t start_ns)
{
	const struct scope_ev_hdr id = {.start_ns = start_ns, .tgid = JOB, .ns_tgid = 5};

	return proc__get(s, &id, true);
}

/* A pid that another process has got: a connection is of the one that was there when it began. */
static void test_same_pid(void **state)
{
	struct proc *first = job(), *second, *third;

	(void)state;
	third = same_pid(3000 * MS);
	second = same_pid(2000 * MS);
	assert_null(proc__of_tgid(s, JOB, 9));
	assert_null(proc__of_tgid(s, JOB + 1, 2000 * MS));
	assert_ptr_equal(proc__of_tgid(s, JOB, 2000 * MS - 1), first);
	assert_ptr_equal(proc__of_tgid(s, JOB, 2000 * MS), second);
	assert_ptr_equal(proc__of_tgid(s, JOB, UINT64_MAX), third);
	proc__end(first, "exit", true, 0);
	assert_null(proc__of_tgid(s, JOB, 2000 * MS - 1));
	assert_ptr_equal(proc__of_tgid(s, JOB, 2000 * MS), second);
	assert_ptr_equal(proc__of_tgid(s, JOB, 3000 * MS), third);
	proc__end(third, "exit", true, 0);
	assert_ptr_equal(proc__of_tgid(s, JOB, 3000 * MS), second);
	proc__end(second, "exit", true, 0);
	assert_null(proc__of_tgid(s, JOB, 3000 * MS));
	assert_null(s->by_tgid);
}

/* The process ends, and is written, before any sample; what comes of its sockets then is nobody's. */
static void test_process_end(void **state)
{
	uint32_t op, step;
	struct conn *c;

	(void)state;
	c = connected();
	op = op_start(proxy, operation(app), true, 1);
	at(100 * MS);
	step = quick_step(proxy, op, c, SCOPE_TX, 1000);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	flush(app, SCOPE_FLUSH_AGE);
	job()->corr.now_ns = k.now_ns;
	proc__end(job(), "exit", true, 0);
	assert_null(job());
	tell_flow(c, SCOPE_FLOW_STATE);
	used(c, proxy, SCOPE_TX, 8);
	gone(c);
	dropped(c, FILTER, 0x1000, 1);
	look_on(6000 * MS);
	assert_null(s->net.flows.by_key);
	finish();
	must_have(net_text(step), "{\"flow\":" A_FLOW ",\"txBytes\":1000,");
	must_have(net_text(op), "\"txBytes\":1000,");
	must_have(line_with("\"recordType\":\"flow\"", 0), "\"why\":\"open\"");
	must_have(line_with("\"recordType\":\"flow\"", 1), "\"why\":\"detached\",\"end\":true,");
	must_have(line_with("\"recordType\":\"flow\"", 1), "\"txBytes\":1000,");
	assert_string_equal(line_with("\"recordType\":\"flow\"", 2), "");
	assert_string_equal(line_with("\"recordType\":\"drop\"", 0), "");
}

static void test_lost(void **state)
{
	struct conn *c;

	(void)state;
	c = connected();
	c->lost = 3;
	used(c, proxy, SCOPE_TX, 10);
	c->lost = 4;
	retrans(c, 1);
	c->lost = 2; /* comes late, from another CPU */
	dropped(c, FILTER, 0x1000, 1);
	c->lost = 6;
	look_on(1000 * MS);
	finish();
	assert_int_equal(s->summary.lost[LOSS_CONTEXT], 6);
	must_have(line_with("context-ring-full", 0), "\"recordType\":\"lost\"");
}

/* The flow's own record is lost: its uses are of nobody, until it is told again. */
static void test_begin_lost(void **state)
{
	struct conn *c = &conns[0];

	(void)state;
	at(90 * MS);
	drop = 0;
	connect_it(2, JOB, SCOPE_FLOW_OPEN);
	*c = conns[2];
	c->since_ns = k.now_ns;
	c->tuple.local_port = 41000;
	c->lost = 1;
	used(c, proxy, SCOPE_TX, 10);
	assert_int_equal(s->context_lost, 1);
	tell_flow(c, SCOPE_FLOW_FOUND);
	used(c, proxy, SCOPE_TX, 5);
	look_on(1000 * MS);
	finish();
	assert_int_equal(s->summary.lost[LOSS_CONTEXT], 1);
	must_have(line_with("41000>", 0), "\"why\":\"found\"");
	must_have(line_with("detached", 1), "\"txBytes\":15,");
}

/* No flow moves, and the ring is never read to its end: steps wait for no sample for ever. */
static void test_always_late(void **state)
{
	uint32_t op, step, i;

	(void)state;
	at(90 * MS);
	op = op_start(proxy, operation(app), true, 1);
	step = start(proxy, SCOPE_PROXY_STEP, op);
	at(100 * MS);
	stop_event(step);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	for (i = 0; i < 20; i++) {
		at(k.now_ns + 50 * MS);
		stop_event(start(proxy, SCOPE_PROXY_CTRL, 0));
		flush(proxy, SCOPE_FLUSH_AGE);
		decode_net__tick(s, k.now_ns, false);
		if (decode_net__due(s, k.now_ns))
			read_flows();
		correlate__tick(&job()->corr, job()->corr.now_ns);
	}
	assert_int_equal(job()->corr.held.n, 0);
	finish();
	assert_string_equal(net_text(step), "");
}

static void test_off(void **state)
{
	uint32_t op, step;
	struct conn *c;

	(void)state;
	c = connected();
	op = op_start(proxy, operation(app), true, 1);
	step = quick_step(proxy, op, c, SCOPE_TX, 1000);
	dropped(c, FILTER, 0x1000, 1);
	stop_event(op);
	flush(proxy, SCOPE_FLUSH_AGE);
	look_on(1000 * MS);
	assert_null(s->net.flows.by_key);
	finish();
	assert_string_equal(net_text(step), "");
	assert_string_equal(net_text(op), "");
	assert_string_equal(line_with("\"recordType\":\"flow\"", 0), "");
	assert_string_equal(line_with("\"recordType\":\"drop\"", 0), "");
}

#define TEST(name)	       cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_WITH(name, begin) cmocka_unit_test_setup_teardown(name, begin, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_send),
		TEST(test_receive_and_peer),
		TEST(test_functions),
		TEST(test_functions_but_reads),
		TEST(test_open_calls),
		TEST(test_gathered),
		TEST(test_bad_uses),
		TEST(test_late_op),
		TEST(test_long_op),
		TEST(test_kept),
		TEST(test_same_addresses),
		TEST(test_unfinished),
		TEST(test_resent),
		TEST(test_resent_later),
		TEST(test_resent_lost),
		TEST(test_flow_lines),
		TEST(test_live),
		TEST(test_counts_of_before),
		TEST_WITH(test_flows_mode, setup_flows),
		TEST(test_short_flows),
		TEST(test_cut_reading),
		TEST(test_cut_reading_digest),
		TEST(test_reset),
		TEST(test_state),
		TEST(test_states_of_others),
		TEST_WITH(test_overtaken, setup_flows),
		TEST(test_end_lost),
		TEST(test_never_back),
		TEST(test_rest),
		TEST(test_drops),
		TEST(test_dropped_acks),
		TEST(test_parts_of_a_packet),
		TEST(test_old_sequence),
		TEST(test_reasons_of_parts),
		TEST(test_many_drops),
		TEST(test_same_pid),
		TEST(test_process_end),
		TEST(test_lost),
		TEST(test_begin_lost),
		TEST(test_always_late),
		TEST_WITH(test_off, setup_off),
	};
	return RUN_TESTS("net_trace", tests);
}
