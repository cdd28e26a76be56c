// SPDX-License-Identifier: BSD-2-Clause
/*
 * Why one operation took so long, from the figures of its ranks; see report.h. What a rank's own threads suffer
 * counts only as far as they were not waiting for data or room of other ranks anyway: a rank that
 * polls in vain may be preempted as long as it likes. docs/report.md says all rules in words.
 */
#include <stdlib.h>
#include <string.h>
#include "report_priv.h"
#include "report_text_priv.h"

const char *const report_code_names[NR_CODES] = {
	[CODE_LATE_RANK] = "late-rank",
	[CODE_LATE_KERNEL] = "late-kernel",
	[CODE_PREEMPTED] = "proxy-preempted",
	[CODE_BLOCKED] = "proxy-blocked",
	[CODE_THROTTLED] = "cpu-throttled",
	[CODE_BUSY] = "proxy-busy",
	[CODE_INTERRUPTS] = "interrupts",
	[CODE_NET_LOSS] = "net-loss",
	[CODE_RECEIVER] = "receiver-limited",
	[CODE_SENDER] = "sender-limited",
	[CODE_BANDWIDTH] = "bandwidth-limited",
	[CODE_RDMA_LOSS] = "rdma-loss",
	[CODE_RDMA_CONGESTION] = "rdma-congestion",
	[CODE_GPU_WAIT] = "gpu-wait",
	[CODE_STOPPED] = "stopped",
	[CODE_RESET] = "connection-reset",
	[CODE_MISSING] = "missing-collective",
	[CODE_UNKNOWN] = "unknown",
};

/* What of a part, or (busy) of a connection, is compared with all others'. */
enum figure { OWN_RUNQ, IRQ_TIME, GPU_TIME, WORK_TIME, BUSY, NR_FIGURES };

struct figures {
	bool all; /* they are there, and sorted */
	uint32_t n;
	int64_t at[REPORT_LATE];
};

struct causes {
	const struct report_op *op;
	struct figures *figures; /* NR_FIGURES of them; filled in when they are asked for */
	struct names *names;
	struct report_cause *at;
	uint32_t n;
	int64_t rest; /* of the operation, once all ranks have come, and their kernels: the others' causes count from there */
	bool lacks;   /* ranks: who is here may be waiting for one of these, whatever it waits in */
	double least_waiting; /* report_waiting() of the rank that waits least */
	bool ring;	      /* all have the same to do */
};

/* Said of a rank in the operation as a whole, whatever its threads and connections suffered. */
static bool is_of_rank(enum report_code code)
{
	return code == CODE_LATE_RANK || code == CODE_LATE_KERNEL || code == CODE_STOPPED ||
	       code == CODE_RESET || code == CODE_MISSING;
}

/* Of those that may go for one of @code, the one that is least odd; NULL: none. What is said of a rank goes for the same of another only. */
static struct report_cause *least_odd(struct causes *c, enum report_code code)
{
	struct report_cause *least = NULL, *it;

	for (it = c->at; it < c->at + c->n; it++)
		if ((!is_of_rank(it->code) || it->code == code) &&
		    (!least || it->odd_ns < least->odd_ns))
			least = it;
	return least;
}

/* Where many ranks take part, each has a little of everything: the least of it makes room. */
static struct report_cause *add(struct causes *c, enum report_code code,
				const struct report_part *part, int64_t ns)
{
	struct report_cause *cause;

	if (ns <= 0)
		return NULL;
	if (c->n < REPORT_CAUSES) {
		cause = &c->at[c->n++];
	} else {
		cause = least_odd(c, code);
		if (!cause || cause->odd_ns >= ns)
			return NULL;
	}
	*cause = (struct report_cause){.code = code,
				       .proc = part ? part->proc : NULL,
				       .rank = part ? part->rank : -1,
				       .ns = ns,
				       .odd_ns = ns,
				       .trust = 1,
				       .part = part};
	return cause;
}

/* It has ranks, or ends of messages, that nothing here tells of. */
static bool lacks_ranks(const struct report_op *op)
{
	return op->p2p ? op->awaited.n > 0 : report_nranks(op->comm) > (int32_t)op->nparts;
}

/* ---- A rank's own threads --------------------------------------------------------------------------------- */

double report_waiting(const struct report_part *p)
{
	double data = 0, room = 0, recv = 0, send = 0;
	uint32_t i;

	for (i = 0; i < p->nlinks; i++) {
		const struct report_link *l = &p->link[i];

		if (l->send) {
			room += (double)l->no_room;
			send += (double)l->dur;
		} else {
			data += (double)l->no_data;
			recv += (double)l->dur;
		}
	}
	data = recv > 0 ? data / recv : 0;
	room = send > 0 ? room / send : 0;
	data = data > room ? data : room;
	return data < 1 ? data : 1;
}

/*
 * By how much more than the rank that waits least. In a ring all wait for each other to some degree, the one that holds
 * the others up the least; what its threads suffer counts in full. If that one may not be here, of nobody's.
 */
static double waits_more(const struct causes *c, const struct report_part *p)
{
	return report_waiting(p) - c->least_waiting;
}

static double least_waiting(const struct report_op *op)
{
	double least = lacks_ranks(op) ? 0 : 1, w;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		w = report_waiting(op->parts[i]);
		least = w < least ? w : least;
	}
	return least;
}

/* Whether one of the job's own ranks is that process, by its pid on the node. */
static bool is_rank(const struct report_part *at, int32_t pid)
{
	uint32_t i;

	for (i = 0; i < at->on_node.n; i++)
		if (at->on_node.at[i]->proc->host_pid == pid)
			return true;
	return false;
}

static uint32_t process_name(struct names *names, uint32_t comm, int32_t pid)
{
	char text[64];

	snprintf(text, sizeof(text), "%.48s", names__text(names, comm));
	return names__printf(names, "%s[%d]", text, pid);
}

/*
 * Its time behind other ranks (@own) or behind everybody else, and who was most of that. The trace names four: what is
 * beyond them was behind many others, for less time each.
 */
static int64_t behind(const struct report_part *p, bool own, const struct report_who **who)
{
	int64_t sum = 0, all = 0;
	uint32_t i;

	*who = NULL;
	for (i = 0; i < REPORT_WHO && p->proxy.behind[i].ns; i++) {
		const struct report_who *b = &p->proxy.behind[i];

		all += b->ns;
		if (is_rank(p, b->pid) != own || b->pid == REPORT_SOFTIRQ)
			continue;
		sum += b->ns;
		*who = *who ?: b;
	}
	if (!own && i == REPORT_WHO)
		sum += most(0, p->proxy.runq - p->proxy.throttled - all);
	return report_per_thread(sum, &p->proxy);
}

#define NO_FIGURE                                                                                  \
	(-1) /* it has no transfers, as all of its peers are on its node: it is no measure for those that have */

static int64_t own_runq(const struct report_part *p)
{
	const struct report_who *who;

	if (!p->proxy.span)
		return NO_FIGURE;
	return behind(p, true, &who);
}

/* What interrupts leave to a thread of their own is theirs as well. */
static int64_t irq_time(const struct report_part *p)
{
	int64_t ns = p->proxy.irq;
	uint32_t i;

	if (!p->proxy.span)
		return NO_FIGURE;
	for (i = 0; i < REPORT_WHO; i++)
		if (p->proxy.behind[i].pid == REPORT_SOFTIRQ)
			ns += p->proxy.behind[i].ns;
	return report_per_thread(ns, &p->proxy);
}

/* The part of the time, 0..1, in which it waited for data, where no flow tells for how long there was none. */
static double awaiting(const struct report_part *p)
{
	double recv = 0, dur = 0;
	uint32_t i;

	for (i = 0; i < p->nlinks; i++) {
		recv += (double)p->link[i].recv;
		dur += p->link[i].send ? 0 : (double)p->link[i].dur;
	}
	return recv > 0 ? (recv < dur ? recv / dur : 1) : 0;
}

static int64_t gpu_time(const struct report_part *p)
{
	double gpu = 0, dur = 0;
	uint32_t i;

	for (i = 0; i < p->nlinks; i++) {
		gpu += (double)p->link[i].gpu;
		dur += (double)p->link[i].dur;
	}
	return dur > 0 ? (int64_t)(gpu / dur * (double)part_ns(p)) : NO_FIGURE;
}

/*
 * On a CPU with something to do. A progress thread polls while it waits, so what it waited for is taken off; what is spread how is not
 * known, and taken to be even. Only of those that send and receive: who does one of them has less to do, and that shows nothing; and only
 * where flows tell what it waited for: a thread that is busy is in RecvWait as well as one that has no data.
 */
static int64_t work_time(const struct report_part *p)
{
	bool sends = false, receives = false, told = true;
	int64_t on = report_per_thread(p->proxy.on - p->proxy.irq, &p->proxy);
	uint32_t i;

	for (i = 0; i < p->nlinks; i++) {
		sends |= p->link[i].send;
		receives |= !p->link[i].send;
		told &= p->link[i].send || p->link[i].tcp;
	}
	if (!sends || !receives || !told || !p->proxy.span)
		return NO_FIGURE;
	return most(0, (int64_t)((double)on * (1 - report_waiting(p))));
}

static int64_t (*const figure_of[NR_FIGURES])(const struct report_part *p) = {
	[OWN_RUNQ] = own_runq,
	[IRQ_TIME] = irq_time,
	[GPU_TIME] = gpu_time,
	[WORK_TIME] = work_time,
};

/* A figure of all parts, sorted. */
static const struct figures *sorted(const struct causes *c, enum figure which)
{
	struct figures *f = &c->figures[which];
	int64_t v;
	uint32_t i;

	if (f->all)
		return f;
	for (i = 0; i < c->op->nparts && f->n < REPORT_LATE; i++) {
		v = figure_of[which](c->op->parts[i]);
		if (v != NO_FIGURE)
			f->at[f->n++] = v;
	}
	report_median(f->at, f->n);
	f->all = true;
	return f;
}

/* By how much a figure of this part is beyond the median of the other parts'. */
static int64_t beyond_others(const struct causes *c, const struct report_part *p, enum figure which)
{
	const struct figures *f = sorted(c, which);
	int64_t own = figure_of[which](p);

	return most(0, own - report_median_but(f->at, f->n, own));
}

static void add_preempted(struct causes *c, const struct report_part *p, int64_t cap)
{
	const struct report_who *who;
	/* who ran while a quota kept it from running is not to blame */
	int64_t runq = report_per_thread(p->proxy.runq - p->proxy.throttled, &p->proxy);
	int64_t ns = least(least(behind(p, false, &who), cap), runq);
	struct report_cause *cause = add(c, CODE_PREEMPTED, p, ns);

	if (cause && who && report_per_thread(who->ns, &p->proxy) > ns / 4)
		cause->culprit = process_name(c->names, who->name, who->pid);
	else if (cause)
		cause->culprit = names__printf(c->names, "many processes");
	ns = least(least(behind(p, true, &who), cap), runq);
	cause = add(c, CODE_PREEMPTED, p, ns);
	if (!cause || !who)
		return;
	cause->culprit = process_name(c->names, who->name, who->pid);
	/* they share CPUs by turns: who has a little less of one is no finding */
	cause->odd_ns = most(0, least(ns, beyond_others(c, p, OWN_RUNQ)) - part_ns(p) / 4);
}

/* In "stopped" or "frozen" (@stopped), or in whatever else; @why: what of that it was in for longest, of which the trace names four. */
static int64_t asleep_in(const struct report_role *role, struct names *names, bool stopped,
			 uint32_t *why)
{
	int64_t in_stop = 0;
	uint32_t i;

	*why = 0;
	for (i = 0; i < REPORT_WHO && role->in[i].ns; i++) {
		bool is_stop = report_is_stop(names, role->in[i].name);

		in_stop += is_stop ? role->in[i].ns : 0;
		if (is_stop == stopped)
			*why = *why ?: role->in[i].name;
	}
	return report_per_thread(stopped ? in_stop : most(0, role->blocked - in_stop), role);
}

static void add_asleep(struct causes *c, const struct report_part *p, int64_t cap)
{
	struct report_cause *cause;
	uint32_t why, app_why;
	int64_t ns = asleep_in(&p->proxy, c->names, true, &why),
		app = asleep_in(&p->app, c->names, true, &app_why);

	cause = add(c, CODE_STOPPED, p, least(most(ns, app), part_ns(p)));
	if (cause)
		cause->frozen = report_is_frozen(c->names, app > ns ? app_why : why);
	ns = asleep_in(&p->proxy, c->names, false, &why);
	cause = add(c, CODE_BLOCKED, p, least(ns, cap));
	if (cause)
		cause->culprit = why;
}

/* A ring gives each rank as much to do as the others; in a tree those in the middle have more. */
static bool is_ring(const struct report_op *op, const struct names *names)
{
	return op->class && !strcmp(names__text(names, op->class->key.algo), "RING");
}

/* Something else than moving bytes as the others do, or that on a slower CPU. */
static void add_busy(struct causes *c, const struct report_part *p, int64_t cap)
{
	struct report_cause *cause;
	int64_t ns;

	if (work_time(p) == NO_FIGURE || sorted(c, WORK_TIME)->n < 2)
		return;
	/* who is busy sees late that the GPU is ready: what it has waited for that longer than the others may be its GPU's doing */
	ns = least(cap, beyond_others(c, p, WORK_TIME)) - beyond_others(c, p, GPU_TIME);
	/* what they wait tells about how long, not to the last percent: a little more is no finding */
	if (ns <= part_ns(p) / 4)
		return;
	cause = add(c, CODE_BUSY, p, ns);
	if (cause)
		cause->odd_ns = ns - part_ns(p) / 4;
}

static void add_threads(struct causes *c, const struct report_part *p)
{
	int64_t cap = least((int64_t)((double)part_ns(p) * (1 - waits_more(c, p))), c->rest);
	struct report_cause *cause;

	add(c, CODE_THROTTLED, p, least(report_per_thread(p->proxy.throttled, &p->proxy), cap));
	add_preempted(c, p, cap);
	add_asleep(c, p, cap);
	if (c->ring)
		add_busy(c, p, cap);
	cause = add(c, CODE_INTERRUPTS, p, least(irq_time(p), cap));
	if (cause) {
		cause->odd_ns = least(cause->ns, beyond_others(c, p, IRQ_TIME));
		if (p->proxy.cpu >= 0)
			cause->culprit = names__printf(c->names, "CPU %d", p->proxy.cpu);
	}
	if (c->lacks) /* a GPU waits for ranks, too */
		return;
	/*
	 * A thread that does not run does not see that the GPU is ready; of one of which that is not known, what it waited for others tells.
	 * And a GPU that has no data yet waits for that itself.
	 */
	if (p->proxy.span)
		cap = least(cap, report_per_thread(p->proxy.on, &p->proxy));
	else
		cap = least(cap, (int64_t)((double)part_ns(p) * (1 - report_waiting(p))));
	cap = least(cap, (int64_t)((double)part_ns(p) * (1 - awaiting(p))));
	cause = add(c, CODE_GPU_WAIT, p, least(gpu_time(p), cap));
	if (cause)
		cause->odd_ns = least(cause->ns, beyond_others(c, p, GPU_TIME));
}

/*
 * What a thread suffered while it waited for ranks that the operation before had held up held nobody up. When that was is not
 * known: it is taken to be spread evenly.
 */
static void add_threads_of(struct causes *c, const struct report_part *p)
{
	double share = (double)c->op->own / (double)most(part_ns(p), 1);
	int64_t rest = c->rest;
	struct report_cause *it;

	if (share >= 1) {
		add_threads(c, p);
		return;
	}
	c->rest = share > 0 ? (int64_t)((double)rest / share) : 0;
	add_threads(c, p);
	c->rest = rest;
	for (it = c->at; it < c->at + c->n; it++) {
		if (it->part != p || is_of_rank(it->code))
			continue;
		it->ns = (int64_t)((double)it->ns * share);
		it->odd_ns = (int64_t)((double)it->odd_ns * share);
	}
}

/* ---- Connections -------------------------------------------------------------------------------------------- */

uint32_t report_needed(const struct report_link *l, const struct report_link *far)
{
	int64_t retrans = most(l->retrans, far ? far->peer_retrans : 0);

	return most(0, retrans - most(l->dsack, far ? far->peer_dsack : 0));
}

static struct report_cause *add_flow(struct causes *c, enum report_code code,
				     const struct report_part *p, const struct report_link *l,
				     int64_t ns)
{
	struct report_cause *cause = add(c, code, p, least(ns, c->rest));

	if (cause) {
		cause->culprit = l->flow;
		cause->link = l;
	}
	return cause;
}

/* Something of the part that `counts` tells of more than @ns. */
static bool has_cause(const struct causes *c, const struct report_part *p, int64_t ns,
		      bool (*counts)(const struct report_cause *))
{
	const struct report_cause *it;

	for (it = c->at; it < c->at + c->n; it++)
		if (it->part == p && it->odd_ns > ns && counts(it))
			return true;
	return false;
}

/* Threads of the receiver that are kept from reading are the cause of a window that is shut. */
static bool may_hold(const struct report_cause *it)
{
	return it->code != CODE_GPU_WAIT && it->code != CODE_INTERRUPTS;
}

/* Its threads alone: that its own connections are slow, or that it came late, makes no other's round trip long. */
static bool may_hold_threads(const struct report_cause *it)
{
	return may_hold(it) && !it->link && (it->code == CODE_STOPPED || !is_of_rank(it->code));
}

static bool is_quota(const struct report_cause *it)
{
	return it->code == CODE_THROTTLED;
}

static int64_t median_busy(const struct causes *c, const struct report_link *but)
{
	struct figures *f = &c->figures[BUSY];
	const struct report_part *p;
	uint32_t i, k;

	for (i = 0; i < c->op->nparts && !f->all; i++) {
		p = c->op->parts[i];
		for (k = 0; k < p->nlinks && f->n < REPORT_LATE; k++)
			if (p->link[k].send)
				f->at[f->n++] = p->link[k].busy;
	}
	if (!f->all)
		report_median(f->at, f->n);
	f->all = true;
	return report_median_but(f->at, f->n, but->busy);
}

/* "A:1>A:2": from an address to itself there is no link that could be too slow. */
static bool within_node(const struct names *names, uint32_t flow)
{
	const char *from = names__text(names, flow), *to = strchr(from, '>'), *port;
	size_t len;

	if (!to)
		return false;
	for (port = to; port > from && *port != ':'; port--)
		;
	len = (size_t)(port - from) + 1;
	return !strncmp(from, to + 1, len);
}

/*
 * Segments were missing. Within a node nothing gets lost but what the kernel drops; TCP takes a thread that is kept
 * from its CPU for loss, and the peer says only later, in another operation, that it was none.
 */
static bool is_lossy(const struct causes *c, const struct report_link *l,
		     const struct report_link *far)
{
	return l->drops || (far && far->drops) ||
	       (!within_node(c->names, l->flow) &&
		(report_needed(l, far) || l->lost || (far && far->peer_lost)));
}

/* That it was sent again is all: the receiver missed nothing, and the sender gave nothing up for lost. */
static bool is_resent_only(const struct report_link *l, const struct report_link *far)
{
	return far && !l->lost && !far->peer_lost && !far->ooo && !far->loss_wait;
}

/* For most of @ns its threads were ready, and without a CPU. Steps overlap, so their waits may be more than all the time that there was. */
static bool is_kept_off(const struct report_part *to, int64_t ns)
{
	const struct report_role *role = &to->proxy;
	int64_t span = report_per_thread(role->span, role);

	if (span < least(ns, part_ns(to)) / 2) /* little of it is known */
		return false;
	ns = least(ns, span);
	return ns > 0 && report_per_thread(role->runq, role) >= ns / 4 * 3;
}

/*
 * The same between two addresses of a node, as of its containers. But what is dropped within a tunnel between these is not told
 * (docs/limits.md), so only of a receiver that a quota held: for a quarter of it, as the sender waits on for its timer. Or that others kept
 * from its CPU, which happens to many now and then: for most of it, with nothing that tells of a loss.
 */
static bool confirms_late(const struct causes *c, const struct report_part *from,
			  const struct report_link *l, const struct report_part *to,
			  const struct report_link *far, int64_t ns)
{
	if (!to || !to->proc->node || from->proc->node != to->proc->node || l->drops ||
	    (far && far->drops))
		return false;
	return has_cause(c, to, ns / 4, is_quota) ||
	       (is_resent_only(l, far) && is_kept_off(to, ns));
}

/* How much later than its sender a stage of a pipeline called: until then nobody was there to read, however usual that is. */
static int64_t came_later(const struct report_op *op, const struct report_part *p,
			  const struct report_part *sender)
{
	if (!op->loose)
		return 0;
	if (p->proc->clock != sender->proc->clock)
		return most(0, part_ns(sender) - part_ns(p));
	return most(0, p->start - sender->start);
}

static void add_send(struct causes *c, const struct report_part *p, const struct report_link *l)
{
	struct report_part *to = report_part_of(c->op, l->peer);
	const struct report_link *at_peer =
		to ? report_link_of(to->link, to->nlinks, p->rank, false) : NULL;
	bool lossy = is_lossy(c, l, at_peer);
	struct report_cause *cause = NULL;
	int64_t ns = 0;

	if (lossy) {
		if (at_peer)
			ns = at_peer->loss_wait +
			     (report_needed(l, at_peer) ? at_peer->maybe_wait : 0);
		ns = least(most(ns, l->room_wait), c->rest);
		if (!confirms_late(c, p, l, to, at_peer, ns))
			cause = add_flow(c, CODE_NET_LOSS, p, l, ns);
		if (cause)
			cause->far = at_peer;
	}
	/* who waits for somebody reads nothing */
	if (!c->lacks && (!to || !has_cause(c, to, l->rwnd / 2, may_hold))) {
		cause = add_flow(c, CODE_RECEIVER, p, l,
				 l->rwnd - (to ? came_later(c->op, to, p) : 0));
		if (cause && to) { /* it is the receiver's doing */
			cause->proc = to->proc;
			cause->rank = to->rank;
		}
	}
	add_flow(c, CODE_SENDER, p, l, l->sndbuf);
	if (lossy || l->rtt < 1000000 || l->rtt < 20 * l->rtt_min || within_node(c->names, l->flow))
		return;
	ns = l->busy - l->rwnd - l->sndbuf;
	if (to && has_cause(c, to, ns / 2, may_hold_threads)) /* and confirms late */
		return;
	cause = add_flow(c, CODE_BANDWIDTH, p, l, ns);
	/* a queue that never drains tells by itself; a shorter one only if other flows have none */
	if (cause && l->rtt < 5000000)
		cause->odd_ns = most(0, least(cause->ns, ns - median_busy(c, l)));
}

/* What the receiver alone can tell, of a sender that is not in the input. */
static void add_recv(struct causes *c, const struct report_part *p, const struct report_link *l)
{
	struct report_cause *cause;

	if (report_part_of(c->op, l->peer) || (!l->ooo && !l->drops) ||
	    (within_node(c->names, l->flow) && !l->drops))
		return;
	cause = add_flow(c, CODE_NET_LOSS, p, l, l->loss_wait);
	if (cause)
		cause->trust = 0.8;
}

/* ---- What never ended ------------------------------------------------------------------------------------------ */

static bool is_open(const struct report_op *op)
{
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		if (op->parts[i]->unfinished)
			return true;
	return false;
}

/* What comes that much later than all have stood still did not make them do so. */
#define DEATH_NS INT64_C(1000000000)

/* When any of the operation moved last, by the real clock. */
static int64_t moved_last(const struct report_op *op)
{
	int64_t last = INT64_MIN;
	const struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		last = most(last, p->stop - p->quiet + p->proc->offset);
	}
	return last;
}

/* It exited as its connection had failed it: by a reset that came in, and not by its own end. */
static bool exited_of_reset(const struct report_proc *p, int64_t died, const struct names *names)
{
	int64_t ns = died - p->reset_ns - p->offset;

	return !report_by_signal(names, p->end) && p->reset_ns &&
	       !strcmp(names__text(names, p->reset_why), "reset-in") && ns >= 0 &&
	       ns <= REPORT_FAILS;
}

/* A launcher that gives a job that hangs up kills all of it; so it does when a rank has failed, which is the first one. NULL: none is. */
static const struct report_member *died_first(const struct causes *c, int64_t moved)
{
	int64_t at, first_at = moved + DEATH_NS + 1, until = report_open_until(c->op);
	const struct report_member *first = NULL;
	struct report_member *m, *tmp;
	const struct report_proc *proc;
	const struct report_part *p;

	HASH_ITER (hh, c->op->comm->members, m, tmp) {
		p = report_part_of(c->op, m->rank);
		proc = p ? p->proc : report_member_in(c->op, m, until)->proc;
		if (!proc->failed || proc->along)
			continue;
		at = report_died_at(proc, c->names);
		if (at >= first_at || exited_of_reset(proc, at, c->names))
			continue;
		first = m;
		first_at = at;
	}
	return first;
}

static bool is_awaited(const struct report_op *op, int32_t rank)
{
	uint32_t i;

	for (i = 0; i < op->awaited.n && i < REPORT_AWAITED; i++)
		if (op->awaited.rank[i] == rank)
			return true;
	return false;
}

/*
 * Ranks that the input has, and that are not in it, though they could: they were heard of later. Not those that hang in another one, if
 * there are such as do not. There may be hundreds, of which the same is to be said: the first stands for the others.
 */
static void add_missing(struct causes *c)
{
	const struct report_op *op = c->op;
	const struct report_member *dead = died_first(c, moved_last(op));
	bool idle = report_waits_for_idle(op);
	int64_t d = report_op_duration(op), until = report_open_until(op);
	struct report_member *m, *tmp;
	const struct report_member *life;
	const struct report_part *p;
	const struct report_proc *proc;
	struct report_cause *cause;
	bool stopped, said[2] = {false};

	HASH_ITER (hh, op->comm->members, m, tmp) {
		p = report_part_of(op, m->rank);
		if (!p && op->p2p && !is_awaited(op, m->rank))
			continue;
		life = report_member_in(op, m, until);
		if (m != dead && (p || (idle && report_hangs_elsewhere(op, life))))
			continue;
		proc = p ? p->proc : life->proc;
		stopped = !p && (proc->is_stopped || proc->is_frozen);
		/* by its number it may be in it; one that hangs may have been stopped since */
		if (!p && !op->p2p && op->comm->alone && m != dead &&
		    (!stopped || life->hangs[false] == proc))
			continue;
		if (m != dead && said[stopped])
			continue;
		said[stopped] |= m != dead;
		cause = add(c, stopped ? CODE_STOPPED : CODE_MISSING, p, d);
		if (!cause)
			return;
		cause->proc = proc;
		cause->rank = m->rank;
		cause->died = m == dead;
		cause->frozen = stopped && !proc->is_stopped;
	}
}

/* The first reset within the operation: others follow from it, when the ranks give up. */
static const struct report_part *first_reset(const struct report_op *op)
{
	const struct report_part *p, *first = NULL;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		if (!p->proc->reset_ns || p->proc->reset_ns < p->start ||
		    p->proc->reset_ns > p->stop + p->beyond)
			continue;
		if (!first || p->proc->reset_ns + p->proc->offset <
				      first->proc->reset_ns + first->proc->offset)
			first = p;
	}
	return first;
}

/* Long after all have stood still it may be that the link was dead all the time, or that the job is being killed. */
static void add_reset(struct causes *c)
{
	const struct report_part *p = first_reset(c->op);
	struct report_cause *cause = p ? add(c, CODE_RESET, p, report_op_duration(c->op)) : NULL;

	if (!cause)
		return;
	cause->culprit = p->proc->reset_flow;
	cause->late = p->proc->reset_ns + p->proc->offset > moved_last(c->op) + DEATH_NS;
	if (cause->late)
		cause->ns /= 2;
}

static void add_open(struct causes *c)
{
	add_missing(c);
	add_reset(c);
}

/* Late because it was stopped, in what: the operation before has seen that, or it was so between the two. 0: it was not. */
static uint32_t was_stopped(const struct report_part *p, int64_t late, struct names *names)
{
	const struct report_proc *proc = p->proc;
	uint32_t why;

	if (asleep_in(&p->before, names, true, &why) > late / 2)
		return why;
	return proc->stop_ns > late / 2 && proc->stop_from < p->start &&
			       proc->stop_to > p->start - late
		       ? proc->stop_why
		       : 0;
}

static void add_late(struct causes *c, const struct report_part *p, int64_t late, double trust)
{
	uint32_t stopped = was_stopped(p, late, c->names);
	struct report_cause *cause = add(c, stopped ? CODE_STOPPED : CODE_LATE_RANK, p, late);

	if (!cause)
		return;
	cause->trust = trust;
	if (c->op->loose)
		cause->odd_ns = 0; /* only one that is slow shows that it was more than usual */
	if (stopped)
		cause->frozen = report_is_frozen(c->names, stopped);
}

uint32_t report_causes(const struct report_op *op, struct names *names,
		       struct report_cause causes[REPORT_CAUSES])
{
	struct figures figures
		[NR_FIGURES]; /* not zeroed: it is large, and most operations ask for little of it */
	struct causes c = {.op = op,
			   .figures = figures,
			   .names = names,
			   .at = causes,
			   .lacks = lacks_ranks(op),
			   .least_waiting = least_waiting(op),
			   .ring = is_ring(op, names)};
	const struct report_part *p;
	uint32_t i, k;
	int64_t late;
	double trust;

	for (i = 0; i < NR_FIGURES; i++) {
		figures[i].all = false;
		figures[i].n = 0;
	}
	p = report_late(op, &late, &trust);
	c.rest = most(0, op->own - late);
	if (p)
		add_late(&c, p, late, trust);
	p = report_late_kernel(op, &late);
	if (p) {
		late = least(late, c.rest);
		add(&c, CODE_LATE_KERNEL, p, late);
		c.rest -= late;
	}
	if (is_open(op))
		add_open(&c);
	for (i = 0; i < op->nparts; i++)
		add_threads_of(&c, op->parts[i]);
	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		for (k = 0; k < p->nlinks; k++)
			(p->link[k].send ? add_send : add_recv)(&c, p, &p->link[k]);
	}
	return c.n;
}

/* ---- Choosing ------------------------------------------------------------------------------------------------- */

const struct report_cause *report_primary(const struct report_cause *causes, uint32_t n)
{
	const struct report_cause *best = NULL;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (causes[i].odd_ns > 0 && (!best || causes[i].odd_ns > best->odd_ns))
			best = &causes[i];
	return best;
}

int report_plain(const struct report_cause *c)
{
	switch (c->code) {
	case CODE_STOPPED:
		return 3;
	case CODE_RESET:
		return c->late ? 0 : 2;
	case CODE_MISSING:
		return c->died ? 4 : 1;
	default:
		return 0;
	}
}

uint64_t report_losses_near(const struct report_op *op)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < op->nparts; i++)
		n += op->parts[i]->loss_near;
	return n;
}

#define EXPLAINS 0.4 /* of what is to be explained; less is no verdict */

static bool is_better(const struct report_cause *c, int64_t gain, const struct report_cause *than,
		      int64_t than_gain, int64_t excess)
{
	if (!than || (double)gain < EXPLAINS * (double)excess ||
	    (double)than_gain < EXPLAINS * (double)excess || report_plain(c) == report_plain(than))
		return gain > than_gain;
	return report_plain(c) > report_plain(than);
}

/* For how long nothing came, but for what ranks or kernels that were late have the others wait, and for what is usual. */
static int64_t odd_stall(const struct report_op *op, const struct report_cause *causes, uint32_t n,
			 const struct report_typical *typical)
{
	int64_t stall = report_stall(op) - typical->stall;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (causes[i].code == CODE_LATE_RANK || causes[i].code == CODE_LATE_KERNEL)
			stall -= causes[i].ns;
	return most(0, stall);
}

/*
 * RDMA ports tell how often they had trouble, and not for how long: that is what nothing else explains; or, less surely, for how long
 * no data came, whatever threads suffered meanwhile. @gain: what @best explains.
 */
static bool is_of_ports(const struct report_op *op, const struct report_cause *best, int64_t gain,
			int64_t stall, const struct report_typical *typical, struct names *names,
			struct report_verdict *v, struct report_cause *ports)
{
	double enough = EXPLAINS * (double)v->excess;
	int64_t rest = v->excess - gain;

	if (best && (double)gain >= enough && (report_plain(best) || best->code == CODE_RESET))
		return false;
	if (!report_ports_cause(op, typical, names, ports))
		return false;
	stall = least(stall, v->excess);
	ports->ns = most(rest, stall);
	ports->odd_ns = stall >= rest ? stall : 0; /* which of them it is */
	return (double)ports->ns >= enough &&
	       (rest > gain || (double)stall * ports->trust > (double)gain);
}

/* Of several recordings of a process the last that had begun by then; NULL: none had. */
static const struct report_proc *recording_at(const struct report_proc *self, int64_t at)
{
	const struct report_proc *p, *last = NULL;

	for (p = self; p; p = p->more)
		if (p->last && p->first + p->offset <= at &&
		    (!last || p->first + p->offset > last->first + last->offset))
			last = p;
	return last;
}

/* The recording has ended, and not the process. */
static bool is_cut(const struct report_proc *p, const struct names *names)
{
	const char *end = names__text(names, p->end);

	return !strcmp(end, "detached") || !strcmp(end, "loader-stopped");
}

#define SETTLE_NS (5 * INT64_C(1000000000)) /* a recording waits no longer for what is under way */

static bool was_under_way(const struct report_op *op, const struct names *names)
{
	const struct report_part *p = op->parts[0];

	return !op->p2p && !op->comm->alone && lacks_ranks(op) && !is_open(op) &&
	       is_cut(p->proc, names) && p->proc->last - p->stop <= SETTLE_NS;
}

/*
 * When a recording ends what is under way is recorded to its end, and what is called then is not. So many ranks came that late; *last: one of
 * them. What they called before is long before: the clocks of nodes differ.
 */
static uint32_t called_unseen(const struct report_op *op, const struct names *names,
			      const struct report_member **last)
{
	int64_t end = moved_last(op), half = end - report_op_duration(op) / 2;
	const struct report_member *life;
	struct report_member *m, *tmp;
	const struct report_proc *p;
	uint32_t n = 0;

	if (!was_under_way(op, names))
		return 0;
	HASH_ITER (hh, op->comm->members, m, tmp) {
		if (report_part_of(op, m->rank))
			continue;
		life = report_member_in(op, m, end);
		p = recording_at(life->proc->self, end);
		if (!p || !is_cut(p, names) || p->called + p->offset >= half ||
		    p->end_ns + p->offset < half) /* nobody knows what it did then */
			continue;
		*last = life;
		n++;
	}
	return n;
}

/* Nothing else tells why: then it is the only rank that is not in it, whose recording ended before it called. */
static bool is_of_unseen(const struct report_op *op, const struct names *names,
			 struct report_verdict *v)
{
	const struct report_member *m = NULL;

	if (report_nranks(op->comm) != (int32_t)op->nparts + 1 || called_unseen(op, names, &m) != 1)
		return false;
	v->cause = (struct report_cause){.code = CODE_LATE_RANK,
					 .proc = m->proc,
					 .rank = m->rank,
					 .ns = v->excess,
					 .trust = 0.8};
	return true;
}

/* Nobody's: what there is to be said of it. */
static void tell_unknown(const struct report_op *op, const struct names *names,
			 struct report_verdict *v)
{
	int32_t here = (int32_t)HASH_COUNT(op->comm->members);
	const struct report_member *m;
	uint32_t unseen;

	if (is_open(op))
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "it never ended, and nothing in the trace says what it waits for");
	else
		snprintf(v->evidence[0], sizeof(v->evidence[0]),
			 "no single cause explains %.0f %% or more of the extra %s", 100 * EXPLAINS,
			 words__span(v->excess));
	if (lacks_ranks(op) && report_nranks(op->comm) > here) {
		snprintf(v->evidence[1], sizeof(v->evidence[1]),
			 "it may %s ranks that are not in this input: %d of %d are",
			 is_open(op) ? "wait for" : "have waited for", here,
			 report_nranks(op->comm));
		return;
	}
	unseen = called_unseen(op, names, &m);
	if (unseen)
		snprintf(v->evidence[1], sizeof(v->evidence[1]),
			 "of its ranks %u had not called it when their recordings ended", unseen);
}

/* Who has stopped or has not come, and a connection that is reset, hold it up for good. What threads did is known up to the last word of it. */
static bool lasts(const struct report_cause *c)
{
	return c->code == CODE_RESET || c->code == CODE_MISSING ||
	       (c->code == CODE_STOPPED && !c->part);
}

/* Its recordings go on after the last word of it, by which it was judged. */
static void go_on(const struct report_op *op, struct report_verdict *v)
{
	int64_t beyond = report_op_beyond(op);

	v->explained += (int64_t)((double)v->explained / (double)v->excess * (double)beyond);
	v->excess += beyond;
	v->duration += beyond;
}

void report_judge(const struct report_op *op, const struct report_cause *causes, uint32_t n,
		  int64_t excess, const struct report_typical *typical, struct names *names,
		  struct report_verdict *v)
{
	const struct report_cause *best = NULL;
	struct report_cause ports;
	int64_t gain, best_gain = 0, second = 0;
	uint32_t i;

	memset(v, 0, sizeof(*v));
	v->duration = report_op_duration(op);
	v->excess = most(excess, 1);
	for (i = 0; i < n; i++) {
		gain = least(causes[i].ns - typical->ns[causes[i].code], v->excess);
		if (is_better(&causes[i], gain, best, best_gain, v->excess)) {
			if (best && best->code != causes[i].code)
				second = best_gain;
			best = &causes[i];
			best_gain = gain;
		} else if (best && causes[i].code != best->code) {
			second = most(second, gain);
		}
	}
	if (is_of_ports(op, best, best_gain, odd_stall(op, causes, n, typical), typical, names, v,
			&ports)) {
		second = best_gain;
		best = &ports;
		best_gain = ports.ns;
	}
	if (!best || (double)best_gain < EXPLAINS * (double)v->excess) {
		if (!is_of_unseen(op, names, v)) {
			v->cause = (struct report_cause){.code = CODE_UNKNOWN, .rank = -1};
			go_on(op, v);
			tell_unknown(op, names, v);
			return;
		}
		best = &v->cause;
		best_gain = v->excess;
	}
	v->cause = *best;
	v->explained = best_gain;
	v->confidence = (double)best_gain / (double)v->excess * best->trust;
	if (second > best_gain * 7 / 10 && !report_plain(best))
		v->confidence *= 0.8;
	if (lacks_ranks(op))
		v->confidence *= 0.9;
	if (report_losses_near(op))
		v->confidence *= 0.5;
	if (v->confidence > 0.99)
		v->confidence = 0.99;
	if (lasts(best))
		go_on(op, v);
	else
		v->duration += report_op_beyond(op);
	report_tell(op, best, names, v);
}
