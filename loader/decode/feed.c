// SPDX-License-Identifier: BSD-2-Clause
/* The world, read and fed into the pipeline; see feed.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <bpf/libbpf.h>
#include "attach.h"
#include "decode_net.h"
#include "feed.h"
#include "fnv.h"
#include "header.h"
#include "log.h"
#include "pipeline.h"

/* ---- The beginning ----------------------------------------------------------------------------- */

static uint32_t feature_bits(const struct attach_features *f)
{
	return (f->irq ? INPUT_IRQ : 0) | (f->quota ? INPUT_QUOTA : 0) | (f->why ? INPUT_WHY : 0) |
	       (f->net_calls ? INPUT_NET_CALLS : 0) | (f->drops ? INPUT_DROPS : 0) |
	       (f->drop_reasons ? INPUT_DROP_REASONS : 0) | (f->no_data ? INPUT_NO_DATA : 0) |
	       (f->woken ? INPUT_WOKEN : 0);
}

static void feed_reasons(struct recorder *r)
{
	struct {
		struct input_name in;
		char text[NET_NAME_LEN];
	} reason = {0};
	const char *name;
	uint32_t i;

	for (i = 0; i < NET_REASONS_MAX; i++) {
		name = attach__drop_reason(r->attach, i);
		if (!name)
			continue;
		reason.in.number = i;
		reason.in.len = (uint32_t)strnlen(name, NET_NAME_LEN - 1);
		memcpy(reason.text, name, reason.in.len);
		pipeline__feed(&r->s, INPUT_REASON, &reason, sizeof(reason.in) + reason.in.len);
	}
}

/* The coarse clocks go by the jiffy. */
static uint64_t jiffy_ns(void)
{
	struct timespec res;

	return clock_getres(CLOCK_MONOTONIC_COARSE, &res) || res.tv_sec ? 0 : (uint64_t)res.tv_nsec;
}

int feed__session(struct recorder *r, const struct attach_features *f)
{
	int cpus = libbpf_num_possible_cpus();
	struct input_session in = {.attach_ns = monotonic_ns(),
				   .ring_bytes = r->opt.ring_bytes,
				   .memory_bytes = r->opt.memory_bytes,
				   .collectives = r->opt.collectives,
				   .jiffy_ns = jiffy_ns(),
				   .mask = r->opt.mask,
				   .cpus = cpus > 0 ? (uint32_t)cpus : 1,
				   .features = feature_bits(f),
				   .sched_mode = f->sched ? (uint8_t)r->opt.sched : SCHED_MODE_OFF,
				   .net_mode = f->net ? (uint8_t)r->opt.net : NET_MODE_OFF,
				   .counters = r->opt.net != NET_MODE_OFF,
				   .clock = clock_source()};
	const struct host *h = &r->s.host;

	r->begin_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	in.realtime_offset_ns = realtime_offset_ns(&in.realtime_error_ns);
	memcpy(in.stamp, r->stamp, sizeof(in.stamp));
	memcpy(in.boot_id, h->boot_id, sizeof(in.boot_id));
	memcpy(in.node, h->node, sizeof(h->node));
	memcpy(in.release, h->release, sizeof(h->release));
	memcpy(in.machine, h->machine, sizeof(h->machine));
	pipeline__feed(&r->s, INPUT_SESSION, &in, sizeof(in));
	if (!r->s.begun)
		return -ENOMEM;
	feed__clock(r);
	feed_reasons(r);
	return 0;
}

uint64_t feed__cpu_ns(const struct recorder *r)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - r->begin_cpu_ns;
}

void feed__ns(struct recorder *r, enum input_kind kind, uint64_t ns)
{
	const struct input_ns in = {.ns = ns};

	pipeline__feed(&r->s, kind, &in, sizeof(in));
}

void feed__attached(struct recorder *r)
{
	feed__ns(r, INPUT_ATTACHED, monotonic_ns());
}

/* ---- Records ----------------------------------------------------------------------------------- */

void feed__clock(struct recorder *r)
{
	struct clock_pair pair;
	struct input_clock in;

	if (!clock_pair__read(r->s.clock.source, &pair))
		return;
	in = (struct input_clock){.ticks = pair.ticks, .ns = pair.ns};
	pipeline__feed(&r->s, INPUT_CLOCK, &in, sizeof(in));
}

/* "" where there is none. Not every kernel tells a single one; then all are read. */
static void function_at(struct recorder *r, uint64_t address, char *text, size_t size)
{
	bool loaded = r->ksyms.loaded;
	const char *name;
	int err = attach__symbol(r->attach, address, text, size);

	if (!err || err == -ENOENT)
		return;
	name = ksyms__name(&r->ksyms, address);
	if (!loaded)
		pr_debug("Functions of the kernel, for addresses in it: %zu\n", r->ksyms.n);
	if (name)
		snprintf(text, size, "%s", name);
}

static void feed_symbol(struct recorder *r, uint64_t number, const char *name)
{
	struct {
		struct input_name in;
		char text[SCOPE_SYMBOL_LEN];
	} symbol = {
		.in = {.number = number, .len = (uint32_t)strnlen(name, sizeof(symbol.text) - 1)}};

	memcpy(symbol.text, name, symbol.in.len);
	pipeline__feed(&r->s, INPUT_SYMBOL, &symbol, sizeof(symbol.in) + symbol.in.len);
}

/*
 * The number of the function that an address is in: of its name, so that a capture does not tell where the kernel lies. It has no top
 * bit, which the kernel's addresses have. 0: it has no name, or there are too many.
 */
static uint64_t function_number(struct recorder *r, uint64_t address)
{
	struct function_known *known = &r->functions[address % FUNCTIONS_KNOWN];
	char name[SCOPE_SYMBOL_LEN];
	uint64_t number;

	/* In each window anew: the table is of one. */
	if (known->address == address &&
	    (!known->number || symbols__has(&r->s.symbols, known->number)))
		return known->number;
	function_at(r, address, name, sizeof(name));
	number = fnv_more(FNV_BEGIN, name, strlen(name)) >> 1;
	if (name[0] && !symbols__has(&r->s.symbols, number) && !symbols__are_full(&r->s.symbols))
		feed_symbol(r, number, name);
	*known = (struct function_known){address, symbols__has(&r->s.symbols, number) ? number : 0};
	return known->number;
}

/* Where a packet was dropped, unless that is nothing that anybody hears of. An address without a name stays one. */
static void feed_drop(struct recorder *r, const struct scope_ev_drop *from)
{
	struct scope_ev_drop e = *from;
	uint64_t number = 0;

	if (net_names__is_harmless(&r->s.net.names, e.reason))
		e.location = 0;
	else if (r->s.net_mode)
		number = function_number(r, e.location);
	if (number)
		e.location = number;
	pipeline__feed(&r->s, INPUT_RING, &e, sizeof(e));
}

/* Where a thread sleeps. What is on a stack is where calls return to, which may be behind the end of a function that does not return. */
static void feed_stack(struct recorder *r, const struct scope_ev_stack *from)
{
	struct scope_ev_stack e = *from;
	uint32_t i;

	for (i = 0; i < SCOPE_STACK_LEN; i++)
		e.at[i] = i < e.n ? function_number(r, e.at[i] - 1) : 0;
	pipeline__feed(&r->s, INPUT_RING, &e, sizeof(e));
}

/* Whatever a thread made came before it was handed in: a pair from then on has it between two. */
static void cover(struct recorder *r, uint64_t ts_ns)
{
	if (!clock_fit__covers(&r->s.clock, ts_ns))
		feed__clock(r);
}

void feed__record(struct recorder *r, const void *data, size_t size)
{
	const struct scope_ev_short *h = data;

	if (size >= sizeof(*h) && h->kind == SCOPE_EV_CHUNK)
		cover(r, h->ts_ns);
	if (size >= sizeof(struct scope_ev_drop) && h->kind == SCOPE_EV_DROP)
		feed_drop(r, data);
	else if (size >= sizeof(struct scope_ev_stack) && h->kind == SCOPE_EV_STACK)
		feed_stack(r, data);
	else
		pipeline__feed(&r->s, INPUT_RING, data, size);
}

void feed__outside(struct recorder *r, const struct scope_ev_chunk *c)
{
	cover(r, c->h.ts_ns);
	pipeline__feed(&r->s, INPUT_OUTSIDE, c, c->h.size);
}

/* ---- Processes --------------------------------------------------------------------------------- */

void feed__proc(struct recorder *r, struct proc *p, bool from_start, uint64_t begin_ns,
		uint64_t first_id)
{
	struct input_proc *in;
	struct who who = {0};
	int err = 0;
	size_t len;

	if (!p->who.text && !p->hangs)
		err = who__read(&who, p->key.tgid, p->id.uid);
	if (err == -ETIMEDOUT) {
		p->hangs = true;
		pr_warn("Process %u cannot be looked into: reading its command line or libraries "
			"hangs, "
			"as on a file system that does not answer; continuing without\n",
			p->key.tgid);
	} else if (err) {
		pr_warn("Failed to read who process %u is: %s, continuing without\n", p->key.tgid,
			strerror(-err));
	}
	len = who__size(&who);
	in = calloc(1, sizeof(*in) + len);
	if (in) {
		in->id = p->id;
		in->begin_ns = begin_ns;
		in->first_id = first_id;
		in->flags = (from_start ? INPUT_FROM_START : 0) | (len ? INPUT_HAS_WHO : 0) |
			    (p->target.has_ceiling ? INPUT_CEILING : 0);
		in->ceiling = p->target.ceiling;
		memcpy(in->who, who.len, sizeof(in->who));
		if (who.text)
			memcpy(in + 1, who.text, len);
		pipeline__feed(&r->s, INPUT_PROC, in, sizeof(*in) + len);
	}
	free(in);
	who__free(&who);
}

void feed__end(struct recorder *r, enum input_kind kind, const struct proc_key *key,
	       const struct scope_proc_stat *stat)
{
	const struct input_end in = {
		.start_ns = key->start_ns,
		.lost_recs = stat->lost_recs,
		.limited_recs = stat->limited_recs,
		.tgid = key->tgid,
		.status = stat->code,
		.exec = stat->ended == SCOPE_ENDED_EXEC,
		.unseen = kind == INPUT_END && !stat->ended,
		.context_lost = stat->context_lost < UINT16_MAX ? stat->context_lost : UINT16_MAX};

	pipeline__feed(&r->s, kind, &in, sizeof(in));
}

/* ---- Connections ------------------------------------------------------------------------------- */

struct flow_reader {
	struct input_flows *in; /* and what follows it */
	uint32_t cap;
	int err; /* some were left out */
};

static void add_flow(void *arg, const struct scope_flow_sample *sample)
{
	struct scope_flow_sample *all;
	struct flow_reader *reader = arg;
	struct input_flows *in = reader->in;
	uint32_t cap;

	if (in->n == reader->cap) {
		cap = reader->cap * 2;
		in = cap <= NET_SAMPLES_MAX ? realloc(in, sizeof(*in) + cap * sizeof(*sample))
					    : NULL;
		if (!in) {
			reader->err = -ENOBUFS;
			return;
		}
		reader->in = in;
		reader->cap = cap;
	}
	all = (struct scope_flow_sample *)(in + 1);
	all[in->n++] = *sample;
}

void feed__flows(struct recorder *r)
{
	struct flow_reader reader = {.cap = 64};
	struct input_flows *in;
	int err;

	reader.in = malloc(sizeof(*in) + reader.cap * sizeof(struct scope_flow_sample));
	if (!reader.in)
		return;
	*reader.in = (struct input_flows){.now_ns = monotonic_ns()};
	err = attach__flows(r->attach, add_flow, &reader); /* which may move it */
	in = reader.in;
	in->err = err ?: reader.err;
	pipeline__feed(&r->s, INPUT_FLOWS, in,
		       sizeof(*in) + in->n * sizeof(struct scope_flow_sample));
	free(in);
}

/* ---- Time -------------------------------------------------------------------------------------- */

void feed__tick(struct recorder *r, uint64_t now, uint32_t flags)
{
	struct input_tick in = {.now_ns = now, .flags = flags};

	in.realtime_offset_ns = realtime_offset_ns(&in.realtime_error_ns);
	pipeline__feed(&r->s, INPUT_TICK, &in, sizeof(in));
}

void feed__self(struct recorder *r)
{
	struct input_self in = {.cpu_ns = feed__cpu_ns(r)};
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	in.peak_bytes = (uint64_t)ru.ru_maxrss * 1024;
	if (attach__skipped(r->attach, &in.skipped))
		in.skipped = INPUT_SKIPPED_UNKNOWN;
	pipeline__feed(&r->s, INPUT_SELF, &in, sizeof(in));
}

/* ---- The machine ------------------------------------------------------------------------------- */

static struct input_cpu cpu_of(struct recorder *r, const struct node_sample *n, uint32_t i)
{
	const struct node_cpu *c = &n->cpus[i];
	bool net_rx = r->s.counters && r->s.features.irq;

	return (struct input_cpu){.busy = c->busy,
				  .irq = c->irq,
				  .softirq = c->softirq,
				  .steal = c->steal,
				  .net_rx = net_rx ? attach__net_rx(r->attach, i) : 0,
				  .flags = (c->known ? INPUT_CPU_KNOWN : 0) |
					   (net_rx ? INPUT_CPU_NET_RX : 0)};
}

static void set_node(struct input_node *in, const struct node_sample *n,
		     const struct netdev_softnet *softnet)
{
	int i;

	in->now_ns = n->now_ns;
	in->procs_running = n->procs_running;
	in->procs_blocked = n->procs_blocked;
	in->processed = softnet->processed;
	in->dropped = softnet->dropped;
	in->squeezed = softnet->squeezed;
	in->flow_limit = softnet->flow_limit;
	in->ncpus = n->ncpus;
	in->flags = (n->has_running ? INPUT_NODE_RUNNING : 0) |
		    (n->has_blocked ? INPUT_NODE_BLOCKED : 0) |
		    (softnet->known ? INPUT_NODE_SOFTNET : 0);
	for (i = 0; i < NODE_PSI_CNT; i++) {
		in->some[i] = n->psi[i].some;
		in->full[i] = n->psi[i].full;
		in->flags |= (n->psi[i].has_some ? INPUT_NODE_SOME(i) : 0) |
			     (n->psi[i].has_full ? INPUT_NODE_FULL(i) : 0);
	}
}

static int feed_sample(struct recorder *r)
{
	const struct node_sample *n = r->node.last;
	size_t size = sizeof(struct input_node) + n->ncpus * sizeof(struct input_cpu);
	struct input_node *in = calloc(1, size);
	struct input_cpu *cpus;
	uint32_t i;

	if (!in)
		return -ENOMEM;
	set_node(in, n, &r->netdev.softnet);
	cpus = (struct input_cpu *)(in + 1);
	for (i = 0; i < n->ncpus; i++)
		cpus[i] = cpu_of(r, n, i);
	pipeline__feed(&r->s, INPUT_NODE, in, size);
	free(in);
	rdma_sampler__after(&r->rdma, n->now_ns);
	return 0;
}

/* A namespace that several processes are in is fed once. */
static uint64_t feed_netdev(struct recorder *r, pid_t pid)
{
	const struct netdev_sample *n = netdev__of(&r->netdev, pid);
	struct input_netdev *in;
	size_t size;

	if (!n || pipeline_netdev_of(&r->s, n->netns))
		return n ? n->netns : 0;
	size = sizeof(*in) + n->n * sizeof(n->devs[0]);
	in = malloc(size);
	if (!in)
		return 0;
	*in = (struct input_netdev){
		.now_ns = n->now_ns, .netns = n->netns, .n = n->n, .cut = n->cut};
	memcpy(in + 1, n->devs, n->n * sizeof(n->devs[0]));
	pipeline__feed(&r->s, INPUT_NETDEV, in, size);
	free(in);
	return n->netns;
}

static bool read_quota(struct recorder *r, struct proc *p, struct node_quota *quota)
{
	if (!r->s.sched_mode)
		return false;
	if (!p->node && node_cgroup__find(&p->cgroup, "", (pid_t)p->key.tgid))
		return false;
	return (!p->node || p->has_quota) && !node_cgroup__read(&p->cgroup, quota);
}

static void feed_node_of(struct recorder *r, struct proc *p)
{
	struct node_quota quota = {0};
	struct input_node_of in = {.start_ns = p->key.start_ns, .tgid = p->key.tgid};

	if (r->s.counters)
		in.netns = feed_netdev(r, (pid_t)p->key.tgid);
	if (read_quota(r, p, &quota))
		in.flags = INPUT_HAS_QUOTA;
	in.periods = quota.periods;
	in.throttled_periods = quota.throttled_periods;
	in.throttled_ns = quota.throttled;
	pipeline__feed(&r->s, INPUT_NODE_OF, &in, sizeof(in));
}

void feed__node(struct recorder *r)
{
	struct session *s = &r->s;
	struct proc *p, *tmp;

	if ((!s->sched_mode && !s->counters) || !s->procs || node__sample(&r->node))
		return;
	if (s->counters)
		netdev__round(&r->netdev);
	if (feed_sample(r))
		return;
	HASH_ITER (hh, s->procs, p, tmp)
		feed_node_of(r, p);
}

/* ---- RDMA ports -------------------------------------------------------------------------------- */

/* False: there is no time left for it in this turn. */
static bool look_at(struct recorder *r, struct proc *p)
{
	struct input_rdma_of in = {.start_ns = p->key.start_ns, .tgid = p->key.tgid};
	uint64_t had = p->rdma.devices;
	int err = rdma__look(&r->s.rdma, &p->rdma, (pid_t)p->key.tgid);

	in.devices = p->rdma.devices;
	if (in.devices != had)
		pipeline__feed(&r->s, INPUT_RDMA_OF, &in, sizeof(in));
	return err != -EAGAIN;
}

/* From where the time for it was used up in the last turn: each has its turn. */
static void look_at_all(struct recorder *r)
{
	struct proc *first = proc__find(&r->s, r->rdma_at.tgid, r->rdma_at.start_ns), *p;

	if (!first)
		first = r->s.procs;
	if (!first)
		return;
	p = first;
	while ((p->ended_ns || look_at(r, p)) &&
	       (p = p->hh.next ? p->hh.next : r->s.procs) != first)
		;
	r->rdma_at = p->key;
}

static void feed_ports(struct recorder *r)
{
	struct input_rdma *in;
	const char *device;
	size_t size;
	int err;

	while ((in = rdma_sampler__next(&r->rdma, &size))) {
		pipeline__feed(&r->s, INPUT_RDMA, in, size);
		free(in);
	}
	while ((device = rdma_sampler__trouble(&r->rdma, &err))) {
		if (!device[0])
			pr_warn("What read RDMA counters has ended, continuing without them\n");
		else if (err == -ETIMEDOUT)
			pr_warn("The RDMA device %s does not answer: reading its counters hangs; "
				"continuing without them until it does\n",
				device);
		else if (err == -ENODEV)
			pr_warn("The RDMA device %s is in another network namespace: "
				"/sys/class/infiniband has no counters of it here, continuing "
				"without them ('rdma system set netns shared' has all of them in "
				"each)\n",
				device);
		else
			pr_warn("Failed to read counters of the RDMA device %s: %s, continuing "
				"without them\n",
				device, strerror(-err));
	}
}

void feed__rdma(struct recorder *r, bool last)
{
	uint64_t end = monotonic_ns() + RDMA_FINISH_NS;

	if (!r->s.counters)
		return;
	if (last) {
		rdma_sampler__ask_now(&r->rdma);
	} else {
		look_at_all(r);
		rdma_sampler__ask(&r->rdma, &r->s.rdma, monotonic_ns());
	}
	do
		feed_ports(r);
	while (last && rdma_sampler__wait(&r->rdma, end));
}

/* ---- The kernel's log -------------------------------------------------------------------------- */

#define KMSG_LINES 1024 /* that are read in a turn: 2 ms, and a log that is full in some seconds */

/* Of what was there before: what may still matter. Whom memory ran out for before we came is none of ours. */
static bool is_recent(const struct kmsg *k, const struct kmsg_line *line, uint64_t now)
{
	return line->ns + KMSG_RECENT_NS >= now &&
	       (line->sign != KMSG_MEMORY || line->ns >= k->opened_ns);
}

void feed__kmsg(struct recorder *r)
{
	struct {
		struct input_kmsg in;
		char text[KMSG_TEXT_MAX];
	} out = {0};
	struct kmsg_line line;
	uint32_t budget = KMSG_LINES;
	uint64_t now;
	int err;

	while ((err = kmsg__next(&r->kmsg, &line, &budget)) > 0) {
		now = monotonic_ns();
		if (r->kmsg.is_read ? !kmsg__has_share(&r->kmsg, line.sign, now)
				    : !is_recent(&r->kmsg, &line, now))
			continue;
		out.in = (struct input_kmsg){.ns = now,
					     .lost = r->kmsg.lost,
					     .level = line.level,
					     .before = !r->kmsg.is_read,
					     .len = (uint32_t)line.len,
					     .sign = line.sign};
		if (out.in.before && line.ns < now)
			out.in.ns = line.ns;
		memcpy(out.text, line.text, line.len);
		pipeline__feed(&r->s, INPUT_KMSG, &out, sizeof(out.in) + line.len);
	}
	if (err && err != -EBADF) {
		pr_warn("Failed to read the kernel's log: %s, continuing without it\n",
			strerror(-err));
		kmsg__close(&r->kmsg);
	}
}

/* ---- GPUs -------------------------------------------------------------------------------------- */

#define GPU_SOON_NS (NSEC_PER_SEC / 10)

/*
 * While there is anybody whose GPU it may be; at once where somebody has just ended: that may be as its GPU is lost, and is known
 * for a moment only.
 */
static void ask_about_gpus(struct recorder *r, uint64_t now)
{
	struct gpu_sampler *g = &r->gpus;
	const struct proc *p;

	if (g->fd < 0)
		return;
	for (p = r->s.procs; p; p = p->hh.next)
		if (p->ended_ns > g->last_ns && now > g->last_ns + GPU_SOON_NS)
			g->next_ns = now;
	if (r->s.procs)
		gpu_sampler__ask(g, now);
}

void feed__gpus(struct recorder *r, bool last)
{
	uint64_t now = monotonic_ns(), hangs;
	struct gpu_message m;
	int err, sig;

	while ((err = gpu_sampler__next(&r->gpus, &m, &sig)) > 0) {
		if (m.kind == GPU_SAMPLE && m.sample.ns >= r->s.attach_ns)
			pipeline__feed(&r->s, INPUT_GPU, &m.sample, sizeof(m.sample));
		else if (m.kind != GPU_SAMPLE)
			pr_debug("GPUs, by NVML: %s\n", m.text);
	}
	if (err && sig)
		pr_warn("What looked at GPUs, by NVML, was ended by signal %d (%s), continuing "
			"without\n",
			sig, strsignal(sig));
	hangs = gpu_sampler__hangs(&r->gpus, now);
	if (hangs)
		pr_warn("NVML has given no answer for %llu s: a GPU, or its driver, hangs\n",
			(unsigned long long)(hangs / NSEC_PER_SEC));
	if (!last)
		ask_about_gpus(r, now);
}
