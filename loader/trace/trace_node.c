// SPDX-License-Identifier: BSD-2-Clause
/* The machine as JSON: a `node` record for each process and second, of what the samplers have counted; lines of the kernel's log. */
#include "session.h"
#include "trace.h"
#include "trace_keys.h"

/* Of the longest line. */
#define NODE_CPU_MAX	176 /* seven numbers of 21 digits and their keys */
#define NODE_DEVICE_MAX 432 /* nine, and a name of 15 bytes, escaped */
#define NODE_RDMA_MAX	65536
#define NODE_REST_MAX	4096
_Static_assert(SCHED_RAN_ON *NODE_CPU_MAX + NETDEV_DEVICES_MAX * NODE_DEVICE_MAX + NODE_RDMA_MAX +
			       NODE_REST_MAX <
		       OUT_LINE_MAX,
	       "a line");
_Static_assert(NODE_RDMA_MAX >= RDMA_EVENT_MAX, "put_rdma()");

/* ---- CPUs, pressure, quota ---------------------------------------------------------------------- */

static void put_node_cpus(struct json *j, struct proc *p, const struct node_sample *now)
{
	const struct node_cpu *a, *b;
	const char *sep = "";
	uint32_t i;

	json_lit(j, ",\"cpus\":[");
	for (i = 0; i < SCHED_RAN_ON; i++) {
		a = node_sample__cpu(p->node, i);
		b = node_sample__cpu(now, i);
		if (!a || !b || !(p->ran_on[i / 64] >> i % 64 & 1))
			continue;
		json_raw(j, sep, strlen(sep));
		sep = ",";
		json_lit(j, "{\"cpu\":");
		json_u64(j, i);
		KEY_US(j, "busy", node_since(a->busy, b->busy));
		KEY_US(j, "irq", node_since(a->irq, b->irq));
		KEY_US(j, "softirq", node_since(a->softirq, b->softirq));
		KEY_US(j, "steal", node_since(a->steal, b->steal));
		if (a->has_net_rx && b->has_net_rx)
			KEY_US(j, "netRx", node_since(a->net_rx, b->net_rx));
		json_char(j, '}');
	}
	json_char(j, ']');
	memset(p->ran_on, 0, sizeof(p->ran_on));
}

/* A key of one kind of pressure, with a comma if something precedes it. */
static void put_psi_kind(struct json *j, const char **sep, const char *name,
			 const struct node_psi *a, const struct node_psi *b)
{
	bool some = a->has_some && b->has_some, full = a->has_full && b->has_full;

	if (!some && !full)
		return;
	json_raw(j, *sep, strlen(*sep));
	*sep = ",";
	json_str(j, name, strlen(name));
	json_lit(j, ":{");
	if (some) {
		json_lit(j, "\"some\":");
		json_us(j, node_since(a->some, b->some));
	}
	if (some && full)
		json_char(j, ',');
	if (full) {
		json_lit(j, "\"full\":");
		json_us(j, node_since(a->full, b->full));
	}
	json_char(j, '}');
}

static void put_psi(struct json *j, const struct node_sample *was, const struct node_sample *now)
{
	static const char *const names[NODE_PSI_CNT] = {
		[NODE_PSI_CPU] = "cpu", [NODE_PSI_MEMORY] = "memory", [NODE_PSI_IO] = "io"};
	const char *sep = "";
	char *begin = j->at;
	int i;

	json_lit(j, ",\"psi\":{");
	for (i = 0; i < NODE_PSI_CNT; i++)
		put_psi_kind(j, &sep, names[i], &was->psi[i], &now->psi[i]);
	if (!*sep)
		j->at = begin; /* this kernel does not measure it */
	else
		json_char(j, '}');
}

static void put_throttled(struct json *j, struct proc *p, const struct node_quota *now)
{
	const struct node_quota was = p->quota;

	if (!p->has_quota || !now)
		return;
	p->quota = *now;
	json_lit(j, ",\"throttled\":{\"time\":");
	json_us(j, node_since(was.throttled, p->quota.throttled));
	KEY_U64(j, "periods", node_since(was.periods, p->quota.periods));
	KEY_U64(j, "throttledPeriods",
		node_since(was.throttled_periods, p->quota.throttled_periods));
	json_char(j, '}');
}

/* What is of the scheduler's; the CPUs are those that it saw the process on. */
static void put_node_sched(struct json *j, struct proc *p, const struct node_sample *now,
			   const struct node_quota *quota)
{
	put_node_cpus(j, p, now);
	if (now->has_running)
		KEY_U64(j, "procsRunning", now->procs_running);
	if (now->has_blocked)
		KEY_U64(j, "procsBlocked", now->procs_blocked);
	put_psi(j, p->node, now);
	put_throttled(j, p, quota);
}

/* ---- Network ------------------------------------------------------------------------------------ */

/* A device, with a comma if one precedes it, if anything went wrong there. */
static void put_device(struct json *j, const char **sep, const struct netdev_dev *was,
		       const struct netdev_dev *now)
{
	bool any = false;
	uint64_t n;
	int i;

	for (i = 0; i < NETDEV_FIELDS; i++) {
		n = NETDEV_IS_TROUBLE(i) ? netdev_since(was->v[i], now->v[i]) : 0;
		if (!n)
			continue;
		if (!any) {
			json_raw(j, *sep, strlen(*sep));
			json_lit(j, "{\"name\":");
			json_str(j, now->name, strlen(now->name));
		}
		*sep = ",";
		any = true;
		json_char(j, ',');
		json_str(j, netdev_field_names[i], strlen(netdev_field_names[i]));
		json_char(j, ':');
		json_u64(j, n);
	}
	if (any)
		json_char(j, '}');
}

/* Of a device that has come meanwhile, it is not known what it had counted elsewhere. */
static void put_netdev(struct json *j, const struct netdev_sample *was,
		       const struct netdev_sample *now)
{
	const struct netdev_dev *dev;
	const char *sep = "";
	uint32_t i;

	if (!was || !now || was->netns != now->netns)
		return;
	json_lit(j, ",\"netdev\":[");
	for (i = 0; i < now->n; i++) {
		dev = netdev_sample__was(was, now, i);
		if (dev)
			put_device(j, &sep, dev, &now->devs[i]);
	}
	json_char(j, ']');
}

static void put_softnet(struct json *j, const struct netdev_softnet *was,
			const struct netdev_softnet *now)
{
	if (!was->known || !now->known)
		return;
	json_lit(j, ",\"softnet\":{\"processed\":");
	json_u64(j, netdev_since(was->processed, now->processed));
	KEY_U64(j, "dropped", netdev_since(was->dropped, now->dropped));
	KEY_U64(j, "timeSqueeze", netdev_since(was->squeezed, now->squeezed));
	KEY_U64(j, "flowLimit", netdev_since(was->flow_limit, now->flow_limit));
	json_char(j, '}');
}

/*
 * Up to the newest sample that there is now, from the one that was the newest last time: nothing
 * is told twice or left out.
 */
static void put_node_rdma(struct json *j, const struct proc *p, const struct node_sample *now)
{
	if (!put_rdma(j, ",\"rdma\":", p, p->node->now_ns, now->now_ns, NODE_RDMA_MAX) &&
	    rdma__known(&p->session->rdma, p->rdma.devices, p->node->now_ns))
		json_lit(j, ",\"rdma\":[]");
}

/* ---- The record --------------------------------------------------------------------------------- */

static size_t line_max(const struct node_sample *now, const struct netdev_sample *netdev)
{
	uint32_t cpus = now->ncpus < SCHED_RAN_ON ? now->ncpus : SCHED_RAN_ON;

	return NODE_REST_MAX + NODE_RDMA_MAX + cpus * NODE_CPU_MAX +
	       (netdev ? netdev->n * NODE_DEVICE_MAX : 0);
}

void trace__node(struct proc *p, const struct node_sample *now, const struct netdev_sample *netdev,
		 const struct node_quota *quota)
{
	struct json j = trace_begin(p, line_max(now, netdev));
	const struct session *s = p->session;

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"node\"");
	KEY_US(&j, "ts", now->now_ns);
	KEY_US(&j, "interval", node_since(p->node->now_ns, now->now_ns));
	if (s->sched_mode)
		put_node_sched(&j, p, now, quota);
	if (s->counters) {
		put_netdev(&j, p->netdev, netdev);
		put_softnet(&j, &p->softnet, &s->softnet);
		put_node_rdma(&j, p, now);
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_NODE);
}

/* ---- The kernel's log -------------------------------------------------------------------------- */

void trace__kmsg(struct proc *p, const struct session_kmsg *k)
{
	const char *sign = kmsg__sign_name(k->line.sign);
	struct json j = trace_begin(p, STATE_MAX + 6 * KMSG_TEXT_MAX);

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"kmsg\"");
	KEY_US(&j, "ts", k->ns);
	if (k->before)
		KEY_BOOL(&j, "before", 1);
	KEY_U64(&j, "level", k->line.level);
	if (sign)
		KEY_STR(&j, "sign", sign, strlen(sign));
	KEY_STR(&j, "text", k->line.text, k->line.len);
	if (k->lost)
		KEY_U64(&j, "lost", k->lost);
	json_char(&j, '}');
	trace_end(p, &j, OUT_KMSG);
}

void trace__recent_kmsg(struct proc *p)
{
	const struct session *s = p->session;
	uint32_t i = s->nkmsg > SESSION_KMSG ? s->nkmsg - SESSION_KMSG : 0;
	const struct session_kmsg *k;

	for (; i < s->nkmsg; i++) {
		k = &s->kmsg[i % SESSION_KMSG];
		if (k->ns + KMSG_RECENT_NS >= p->begin_ns)
			trace__kmsg(p, k);
	}
}
