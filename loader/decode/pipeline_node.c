// SPDX-License-Identifier: BSD-2-Clause
/* Inputs about the machine: CPUs, pressure, network devices, RDMA ports, the kernel's log, GPUs; see pipeline.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "pipeline.h"
#include "trace.h"

/* ---- The node ---------------------------------------------------------------------------------- */

static void drop_netdevs(struct session *s)
{
	while (s->nnetdevs)
		netdev_sample__put(s->netdevs[--s->nnetdevs]);
}

void pipeline_node_free(struct session *s)
{
	drop_netdevs(s);
	free(s->netdevs);
	s->netdevs = NULL;
	node_sample__put(s->node);
	s->node = NULL;
	free(s->kmsg);
	s->kmsg = NULL;
	free(s->gpus);
	s->gpus = NULL;
}

static void set_cpu(struct node_cpu *cpu, const struct input_cpu *in)
{
	*cpu = (struct node_cpu){.known = in->flags & INPUT_CPU_KNOWN,
				 .busy = in->busy,
				 .irq = in->irq,
				 .softirq = in->softirq,
				 .steal = in->steal,
				 .has_net_rx = in->flags & INPUT_CPU_NET_RX,
				 .net_rx = in->net_rx};
}

/*
 * Where each process was since its last record, and is: of all at once, as it is the threads that know their process. Of those that have
 * ended it is known: decode_sched__exit().
 */
static void note_cpus(struct session *s)
{
	struct sched_thread *t, *tmp;
	struct proc *p;

	HASH_ITER (hh, s->sched.threads, t, tmp) {
		p = proc__of_thread(s, t);
		if (p)
			proc__ran_on(p, t);
	}
}

int pipeline_node(struct session *s, const void *data, size_t size)
{
	const struct input_node *in = data;
	const struct input_cpu *cpus = (const struct input_cpu *)(in + 1);
	struct node_sample *n;
	uint32_t i;

	if (in->ncpus > NODE_CPUS_MAX || size != sizeof(*in) + in->ncpus * sizeof(*cpus))
		return -EINVAL;
	n = calloc(1, sizeof(*n) + in->ncpus * sizeof(n->cpus[0]));
	if (!n)
		return -ENOMEM;
	n->refs = 1;
	n->ncpus = in->ncpus;
	n->now_ns = in->now_ns;
	n->procs_running = in->procs_running;
	n->procs_blocked = in->procs_blocked;
	n->has_running = in->flags & INPUT_NODE_RUNNING;
	n->has_blocked = in->flags & INPUT_NODE_BLOCKED;
	for (i = 0; i < NODE_PSI_CNT; i++)
		n->psi[i] = (struct node_psi){.some = in->some[i],
					      .full = in->full[i],
					      .has_some = in->flags & INPUT_NODE_SOME(i),
					      .has_full = in->flags & INPUT_NODE_FULL(i)};
	for (i = 0; i < n->ncpus; i++)
		set_cpu(&n->cpus[i], &cpus[i]);
	s->softnet = (struct netdev_softnet){.known = in->flags & INPUT_NODE_SOFTNET,
					     .processed = in->processed,
					     .dropped = in->dropped,
					     .squeezed = in->squeezed,
					     .flow_limit = in->flow_limit};
	drop_netdevs(s);
	node_sample__put(s->node);
	s->node = n;
	note_cpus(s);
	return 0;
}

struct netdev_sample *pipeline_netdev_of(const struct session *s, uint64_t netns)
{
	uint32_t i;

	for (i = 0; netns && i < s->nnetdevs; i++)
		if (s->netdevs[i]->netns == netns)
			return s->netdevs[i];
	return NULL;
}

int pipeline_netdev(struct session *s, const void *data, size_t size)
{
	const struct input_netdev *in = data;
	struct netdev_sample *n, **all;

	if (in->n > NETDEV_DEVICES_MAX || size != sizeof(*in) + in->n * sizeof(n->devs[0]) ||
	    pipeline_netdev_of(s, in->netns))
		return -EINVAL;
	all = realloc(s->netdevs, (s->nnetdevs + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	s->netdevs = all;
	n = malloc(sizeof(*n) + in->n * sizeof(n->devs[0]));
	if (!n)
		return -ENOMEM;
	*n = (struct netdev_sample){
		.refs = 1, .n = in->n, .cut = in->cut, .now_ns = in->now_ns, .netns = in->netns};
	memcpy(n->devs, in + 1, in->n * sizeof(n->devs[0]));
	while (n->n && !memchr(n->devs[n->n - 1].name, 0, NETDEV_NAME_MAX))
		n->n--; /* only where somebody has written the file by hand */
	s->netdevs[s->nnetdevs++] = n;
	return 0;
}

/* What the node and its process' network had counted now: the next interval begins here. */
static void hold_node(struct proc *p, struct netdev_sample *netdev)
{
	struct session *s = p->session;

	node_sample__put(p->node);
	p->node = node_sample__get(s->node);
	if (netdev) {
		netdev_sample__put(p->netdev);
		p->netdev = netdev_sample__get(netdev);
	}
	p->softnet = s->softnet;
}

int pipeline_node_of(struct session *s, const struct input_node_of *in)
{
	const struct node_quota quota = {.periods = in->periods,
					 .throttled_periods = in->throttled_periods,
					 .throttled = in->throttled_ns};
	struct netdev_sample *netdev = pipeline_netdev_of(s, in->netns);
	struct proc *p = proc__find(s, in->tgid, in->start_ns);
	bool has_quota = in->flags & INPUT_HAS_QUOTA;

	if (!s->node)
		return -EINVAL;
	if (!p)
		return 0;
	if (p->node && p->header_written) {
		trace__node(p, s->node, netdev, has_quota ? &quota : NULL);
	} else if (!p->node) {
		p->has_quota = has_quota;
		p->quota = quota;
	}
	hold_node(p, netdev);
	return 0;
}

/* ---- RDMA ports -------------------------------------------------------------------------------- */

static struct rdma_port *port_find(const struct rdma *r, const struct input_port *in)
{
	uint32_t i;

	for (i = 0; i < r->nports; i++)
		if (r->ports[i] && r->ports[i]->nr == in->nr &&
		    !strcmp(r->ports[i]->device, in->device))
			return r->ports[i];
	return NULL;
}

/* Whether a port's part at `in` lies before `end`, and makes sense; where the next one begins. */
static const struct input_port *port_check(const struct input_port *in, const char *end)
{
	size_t left = (size_t)(end - (const char *)in), need = sizeof(*in);
	const struct input_counter *c;
	uint32_t i;

	if (left < need || in->ncounters > RDMA_COUNTERS_MAX || in->first_new > in->ncounters ||
	    in->place >= RDMA_DEVICES_MAX || !memchr(in->device, 0, sizeof(in->device)) ||
	    !rdma_name_ok(in->device))
		return NULL;
	need += (in->ncounters - in->first_new) * sizeof(*c);
	if (in->flags & INPUT_PORT_ROW)
		need += in->ncounters * sizeof(uint64_t);
	if (left < need)
		return NULL;
	c = (const struct input_counter *)(in + 1);
	for (i = in->first_new; i < in->ncounters; i++, c++)
		if (!memchr(c->name, 0, sizeof(c->name)) || !rdma_counter_name_ok(c->name) ||
		    c->hw > 1)
			return NULL;
	return (const struct input_port *)((const char *)in + need);
}

static bool ports_check(const struct input_rdma *in, size_t size)
{
	const char *end = (const char *)in + size;
	const struct input_port *port = (const struct input_port *)(in + 1);
	uint32_t i;

	if (in->nports > RDMA_PORTS_MAX)
		return false;
	for (i = 0; port && i < in->nports; i++)
		port = port_check(port, end);
	return port && (const char *)port == end;
}

/* The port as it is now: what it counts, and how much so far. */
static void port_set(struct rdma *r, struct rdma_port *p, const struct input_port *in)
{
	const struct input_counter *c = (const struct input_counter *)(in + 1);
	const uint64_t *total = (const uint64_t *)(c + (in->ncounters - in->first_new));
	uint32_t i;

	p->place = in->place;
	if (in->flags & INPUT_PORT_HERE)
		memcpy(r->devices[in->place].name, in->device, sizeof(in->device));
	for (i = in->first_new; i < in->ncounters; i++, c++)
		rdma_port__counter(p, c->name, c->hw);
	if (!(in->flags & INPUT_PORT_ROW) || p->ncounters != in->ncounters)
		return;
	for (i = 0; i < p->ncounters; i++)
		p->counters[i].total = total[i];
	p->moves = in->moves;
	rdma_port__row(p, in->begin_ns, in->end_ns);
}

/* Those that are not among the ports any more are forgotten; the others stand in the order of the input. */
int pipeline_rdma(struct session *s, const void *data, size_t size)
{
	const struct input_rdma *in = data;
	const struct input_port *port = (const struct input_port *)(in + 1);
	struct rdma *r = &s->rdma;
	struct rdma_port *ports[RDMA_PORTS_MAX], *p;
	struct proc *proc, *tmp;
	uint32_t i, n = 0, k;

	if (!ports_check(in, size))
		return -EINVAL;
	for (i = 0; !s->live && i < in->nports; i++) {
		p = port_find(r, port);
		for (k = 0; p && k < r->nports; k++)
			if (r->ports[k] == p)
				r->ports[k] = NULL;
		if (!p)
			p = rdma_port__new(port->device, port->nr);
		if (p) {
			port_set(r, p, port);
			ports[n++] = p;
		}
		port = port_check(port, (const char *)data + size);
	}
	if (!s->live) {
		for (k = 0; k < r->nports; k++)
			rdma_port__free(r->ports[k]);
		memcpy(r->ports, ports, n * sizeof(*ports));
		r->nports = n;
	}
	s->rdma_ns = in->rdma_ns;
	HASH_ITER (hh, s->procs, proc, tmp)
		if (proc->rdma.devices)
			proc->net.ports_ns = s->rdma_ns;
	return 0;
}

int pipeline_rdma_of(struct session *s, const struct input_rdma_of *in)
{
	struct proc *p = proc__find(s, in->tgid, in->start_ns);

	if (!p)
		return 0;
	p->rdma.devices = in->devices;
	p->net.ports_ns = in->devices ? s->rdma_ns : UINT64_MAX;
	return 0;
}

/* ---- The kernel's log -------------------------------------------------------------------------- */

/* Traces that have no header yet get it behind that: trace__recent_kmsg(). */
int pipeline_kmsg(struct session *s, const void *data, size_t size)
{
	const struct input_kmsg *in = data;
	struct session_kmsg *k;
	struct proc *p, *tmp;

	if (in->len > KMSG_TEXT_MAX || size != sizeof(*in) + in->len || in->level > 7)
		return -EINVAL;
	if (!s->kmsg)
		s->kmsg = calloc(SESSION_KMSG, sizeof(*s->kmsg));
	if (!s->kmsg)
		return -ENOMEM;
	k = &s->kmsg[s->nkmsg++ % SESSION_KMSG];
	*k = (struct session_kmsg){.ns = in->ns,
				   .lost = in->lost,
				   .before = in->before,
				   .line = {.sign = in->sign < KMSG_SIGNS ? in->sign : KMSG_NO_SIGN,
					    .level = in->level,
					    .len = in->len}};
	memcpy(k->line.text, in + 1, in->len);
	HASH_ITER (hh, s->procs, p, tmp)
		if (p->header_written) /* who has just ended may be whom it is about */
			trace__kmsg(p, k);
	return 0;
}

/* ---- GPUs -------------------------------------------------------------------------------------- */

/* The one that one of its communicators is on; NULL: none is. */
static struct corr_gpu *gpu_of(struct proc *p, const struct gpu_sample *s)
{
	struct corr_gpu *g;

	for (g = p->corr.gpus; g < p->corr.gpus + CORR_GPUS && g->uuid[0]; g++)
		if (!memcmp(g->uuid, s->uuid, sizeof(s->uuid)))
			return g;
	return NULL;
}

/* What counts is told from one sample to the next that the process has: before, it may not have been there. */
static void tell_gpu(struct proc *p, const struct gpu_sample *was, const struct gpu_sample *now)
{
	struct corr_gpu *g = gpu_of(p, now);

	/* that it was lost is why who was on it has just ended */
	if (!g || !p->header_written || (p->ended_ns && !now->lost))
		return;
	trace__gpu(p, was && g->sample_ns == was->ns ? was : NULL, now);
	g->sample_ns = now->ns;
}

int pipeline_gpu(struct session *s, const struct gpu_sample *now)
{
	struct gpu_sample *was;
	struct proc *p, *tmp;
	bool same;

	if (!gpu_sample__ok(now))
		return -EINVAL;
	if (!s->gpus)
		s->gpus = calloc(GPU_MAX, sizeof(*s->gpus));
	if (!s->gpus)
		return -ENOMEM;
	was = &s->gpus[now->index];
	same = was->ns && was->ns < now->ns && !memcmp(was->uuid, now->uuid, sizeof(was->uuid));
	HASH_ITER (hh, s->procs, p, tmp)
		tell_gpu(p, same ? was : NULL, now);
	*was = *now;
	return 0;
}
