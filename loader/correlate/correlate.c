// SPDX-License-Identifier: BSD-2-Clause
/* Events in flight: see correlate.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "correlate.h"
#include "less.h"
#include "nccl_profiler.h"
#include "sched_join.h"

#define TABLE_MIN	10	   /* bits */
#define TABLE_IDLE	16	   /* a smaller one need not shrink */
#define GROUP_BITS	3	   /* slots side by side */
#define MAX_EVENTS	(1u << 20) /* in the table; beyond, the oldest open one is given up */
#define MAX_GONE	(1u << 16)
#define MAX_COMMS	(1u << 16)	    /* of one process, not finalized */
#define CHILD_GRACE_NS	(1 * NSEC_PER_SEC)  /* no child has started or ended for so long */
#define STUCK_CHILD_NS	(60 * NSEC_PER_SEC) /* NCCL may never stop a child: see schema, exec */
#define PARENT_GRACE_NS (1 * NSEC_PER_SEC) /* the parent's thread flushes after 10 ms, or is read */
#define ELSEWHERE_NS	(1 * NSEC_PER_SEC) /* what CPUs gather is read 20 times a second */
#define MANY_WAITING	4096 /* at `closing`: to look at them at each tick would cost too much */
#define WAITING_LOOK_NS (NSEC_PER_SEC / 4)
#define GONE_NS		(2 * NSEC_PER_SEC)
#define CHILDLESS_NS	(60 * NSEC_PER_SEC) /* its proxy may be kept from a CPU, or be stopped */
#define MAX_CHILDLESS	1024		    /* where no children are recorded, all are childless */
#define STATE_GRACE_NS	(1 * NSEC_PER_SEC)
#define MAX_SLEEPERS	4096 /* progress threads of one process */

#define NO_STATE UINT32_MAX

/* An event's places in the table. */
#define EVENT_EXTRA (4 * sizeof(struct corr_slot))

/* ---- Lists ------------------------------------------------------------------------------------- */

static void list_add(struct corr_list *l, struct corr_event *ev, uint64_t now_ns)
{
	ev->list = l;
	ev->list_ns = now_ns;
	ev->prev = l->last;
	ev->next = NULL;
	if (l->last)
		l->last->next = ev;
	else
		l->first = ev;
	l->last = ev;
	l->n++;
}

static void list_del(struct corr_event *ev)
{
	struct corr_list *l = ev->list;

	if (ev->prev)
		ev->prev->next = ev->next;
	else
		l->first = ev->next;
	if (ev->next)
		ev->next->prev = ev->prev;
	else
		l->last = ev->prev;
	l->n--;
}

/* ---- Table by id: open addressing, linear probing, no tombstones -------------------------------- */

static uint32_t table_mask(const struct correlate *c)
{
	return (1u << c->table_bits) - 1;
}

/*
 * A thread's ids count up, and what follows each other is looked for together: neighbours stay so, in groups, in the same
 * lines of the cache. Where the groups lie is nothing that a job, whose ids these are, could choose.
 */
static uint32_t slot_of(const struct correlate *c, uint64_t id)
{
	uint64_t group = id >> GROUP_BITS;

	group = hash__of(&group, sizeof(group));
	return (uint32_t)(group >> (64 - c->table_bits + GROUP_BITS)) << GROUP_BITS |
	       (uint32_t)(id & ((1u << GROUP_BITS) - 1));
}

struct corr_event *correlate__find(const struct correlate *c, uint64_t id)
{
	uint32_t i;

	for (i = slot_of(c, id); c->table[i].ev; i = (i + 1) & table_mask(c))
		if (c->table[i].id == id)
			return c->table[i].ev;
	return NULL;
}

static void table_put(struct correlate *c, struct corr_slot new)
{
	uint32_t i = slot_of(c, new.id);

	while (c->table[i].ev)
		i = (i + 1) & table_mask(c);
	c->table[i] = new;
}

static int table_resize(struct correlate *c, uint32_t bits)
{
	struct corr_slot *old = c->table;
	uint32_t i, old_size = 1u << c->table_bits;

	c->table = calloc((size_t)1 << bits, sizeof(*c->table));
	if (!c->table) {
		c->table = old;
		return -ENOMEM;
	}
	c->table_bits = bits;
	for (i = 0; i < old_size; i++)
		if (old[i].ev)
			table_put(c, old[i]);
	free(old);
	return 0;
}

/* Closes the gap, so that a search may stop at the first empty slot. */
static void table_del(struct correlate *c, uint64_t id)
{
	uint32_t mask = table_mask(c), i = slot_of(c, id), j, home;

	while (c->table[i].id != id)
		i = (i + 1) & mask;
	for (j = (i + 1) & mask; c->table[j].ev; j = (j + 1) & mask) {
		home = slot_of(c, c->table[j].id);
		if (((j - home) & mask) >= ((j - i) & mask)) {
			c->table[i] = c->table[j];
			i = j;
		}
	}
	c->table[i] = (struct corr_slot){0};
	c->table_used--;
}

/* ---- Communicators ----------------------------------------------------------------------------- */

struct corr_comm *correlate__comm_find(struct correlate *c, uint64_t ctx)
{
	struct corr_comm *comm;

	if (c->last_comm && c->last_comm->info.ctx == ctx)
		return c->last_comm;
	HASH_FIND(hh, c->comms, &ctx, sizeof(ctx), comm);
	if (comm)
		c->last_comm = comm;
	return comm;
}

static void comm_put(struct correlate *c, struct corr_comm *comm)
{
	if (!comm || --comm->refs)
		return;
	HASH_DELETE(hh, c->comms, comm);
	if (c->last_comm == comm)
		c->last_comm = NULL;
	budget_part__give(c->memory, sizeof(*comm));
	free(comm->live);
	free(comm);
}

/* The same for all communicators that are on one, as those of a process mostly are; for one beyond them its own. */
static struct gpu_clock *gpu_of(struct correlate *c, struct corr_comm *comm)
{
	static const char none[SCOPE_GPU_UUID_LEN];
	const char *uuid = comm->info.gpu_uuid;
	struct corr_gpu *g;

	for (g = c->gpus; g < c->gpus + CORR_GPUS && memcmp(uuid, none, sizeof(none)) != 0; g++) {
		if (!memcmp(g->uuid, none, sizeof(none)))
			memcpy(g->uuid, uuid, sizeof(g->uuid));
		if (!memcmp(g->uuid, uuid, sizeof(g->uuid)))
			return &g->clock;
	}
	return &comm->own_gpu;
}

/* A record that there is no memory for: what follows of its event is without a start, as after a loss. */
static void count_untaken(struct correlate *c)
{
	c->counts.orphans++;
	c->lost++;
}

void correlate__comm(struct correlate *c, const struct scope_comm *info, uint64_t ts_ns,
		     const struct corr_thread *thread)
{
	struct corr_comm *comm = correlate__comm_find(c, info->ctx);

	if (comm) /* told twice: by its record and from outside */
		return;
	if (HASH_COUNT(c->comms) >= MAX_COMMS || !budget_part__take(c->memory, sizeof(*comm))) {
		c->counts.malformed++; /* a job that wants our memory */
		return;
	}
	comm = calloc(1, sizeof(*comm));
	if (comm) {
		comm->info = *info;
		comm->refs = 1; /* until finalize */
		comm->gpu = gpu_of(c, comm);
		HASH_ADD(hh, c->comms, info.ctx, sizeof(comm->info.ctx), comm);
	}
	if (!comm || !HASH_ADDED(hh, comm)) {
		free(comm);
		budget_part__give(c->memory, sizeof(*comm));
		count_untaken(c);
		return;
	}
	c->sink.lifecycle(c->sink.arg, comm, true, ts_ns, thread);
}

void correlate__comm_made(struct correlate *c, uint64_t ctx)
{
	struct corr_comm *comm = correlate__comm_find(c, ctx);

	if (comm)
		comm->made = true;
}

bool corr_counts_told(const struct corr_comm *comm)
{
	return comm->info.api <= 2;
}

bool corr_seq_common(const struct corr_comm *comm)
{
	const uint32_t told = ncclProfileColl | ncclProfileProxyOp | ncclProfileProxyStep;

	return !corr_counts_told(comm) || (comm->made && comm->info.mask & told);
}

void correlate__comm_name(struct correlate *c, uint64_t ctx, uint64_t hash, const char *name,
			  int32_t rank)
{
	struct corr_comm *comm = correlate__comm_find(c, ctx);

	if (!comm)
		return;
	comm->info.hash = hash;
	comm->info.rank = rank;
	strncpy(comm->info.name, name, sizeof(comm->info.name) - 1);
}

void correlate__finalize(struct correlate *c, uint64_t ctx, uint64_t ts_ns,
			 const struct corr_thread *thread)
{
	struct corr_comm *comm = correlate__comm_find(c, ctx);

	if (!comm && c->lost && SCOPE_ID_TAG(ctx) == c->tag)
		c->counts.orphans++;
	if (!comm || comm->finalized)
		return;
	comm->finalized = true;
	c->sink.lifecycle(c->sink.arg, comm, false, ts_ns, thread);
	comm_put(c, comm);
}

/* ---- Memory ------------------------------------------------------------------------------------ */

/* Kinds that others may name as their parent after they have stopped. */
static bool has_late_children(uint32_t what)
{
	return what != SCOPE_PROXY_STEP && what != SCOPE_PROXY_CTRL && what != SCOPE_NET_PLUGIN &&
	       what != SCOPE_KERNEL_LAUNCH;
}

/* They stay for seconds after their end, others go: not in the same pages. */
static struct slab *slab_of(struct correlate *c, uint32_t what)
{
	return &c->slabs[has_late_children(what)];
}

static struct corr_event *event_new(struct correlate *c, uint32_t what)
{
	struct corr_event *ev;

	if (c->table_used >= 1u << (c->table_bits - 1) && table_resize(c, c->table_bits + 1))
		return NULL;
	ev = slab__take(slab_of(c, what), c->memory);
	if (ev) {
		memset(ev, 0, sizeof(*ev));
		ev->what = what;
	}
	return ev;
}

/* ---- Waiting for a parent ---------------------------------------------------------------------- */

static void wait_begin(struct correlate *c, struct corr_event *ev)
{
	struct corr_wait *w;

	HASH_FIND(hh, c->waits, &ev->start.s.parent, sizeof(w->parent), w);
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return; /* it will be found without a parent, when its time is up */
		w->parent = ev->start.s.parent;
		HASH_ADD(hh, c->waits, parent, sizeof(w->parent), w);
		if (!HASH_ADDED(hh, w)) {
			free(w);
			return;
		}
	}
	ev->wait = w;
	ev->wait_prev = NULL;
	ev->wait_next = w->first;
	if (w->first)
		w->first->wait_prev = ev;
	w->first = ev;
}

static void wait_end(struct correlate *c, struct corr_event *ev)
{
	struct corr_wait *w = ev->wait;

	if (!w)
		return;
	ev->wait = NULL;
	if (ev->wait_next)
		ev->wait_next->wait_prev = ev->wait_prev;
	if (ev->wait_prev)
		ev->wait_prev->wait_next = ev->wait_next;
	else
		w->first = ev->wait_next;
	if (w->first)
		return;
	HASH_DELETE(hh, c->waits, w);
	free(w);
}

/* ---- Life of an event -------------------------------------------------------------------------- */

static void event_free(struct correlate *c, struct corr_event *ev)
{
	wait_end(c, ev);
	hung__forget(c, ev, c->now_ns);
	sched_join__release(c, ev);
	net_join__release(c->net, ev);
	table_del(c, ev->id);
	comm_put(c, ev->comm);
	slab__give(slab_of(c, ev->what), ev, c->memory);
}

static bool is_operation(uint32_t what)
{
	return what == SCOPE_COLL || what == SCOPE_P2P;
}

static bool is_captured(const struct corr_event *ev)
{
	return (ev->what == SCOPE_GROUP_API || ev->what == SCOPE_COLL_API ||
		ev->what == SCOPE_P2P_API) &&
	       ev->start.s.h.u8;
}

static void state_settle(struct correlate *c, struct corr_event *ev)
{
	if (!ev->has_state)
		return;
	if (!ev->outside)
		c->sink.state(c->sink.arg, ev, &ev->pending);
	ev->has_state = false;
}

uint64_t correlate__settle(struct correlate *c, struct corr_event *ev, uint64_t now_ns)
{
	uint64_t old_ns = ev->pending.ts_ns + STATE_GRACE_NS;

	if (!ev->has_state)
		return UINT64_MAX;
	if (now_ns < old_ns)
		return old_ns;
	state_settle(c, ev);
	return UINT64_MAX;
}

static void exec_close(struct corr_event *ev)
{
	if (ev->exec == EXEC_KERNEL)
		ev->exec_stop_ns = ev->child_ns;
	if (ev->exec == EXEC_NONE) {
		ev->exec = EXEC_ENQUEUE;
		ev->exec_stop_ns = ev->stop_ns;
	}
	if (ev->exec_stop_ns < ev->start_ns)
		ev->exec_stop_ns = ev->start_ns;
}

static void event_tell(struct correlate *c, struct corr_event *ev)
{
	if (ev->outside) {
		c->counts.outside++;
		return;
	}
	if (ev->orphan)
		c->counts.orphans++;
	c->sink.event(c->sink.arg, ev);
}

/*
 * It is over, though its end has not come: of a child NCCL may never tell it, or it was lost. What was called on the communicator
 * after it has ended, and they go one after the other. What was called together, in no order, all starts before any of it stops. But a Send
 * that fits into NCCL's buffers is over for the GPU, and what comes next may end, while its peer does not receive: its ProxyOp is open, whose
 * end NCCL does tell.
 */
static bool has_passed(const struct correlate *c, const struct corr_event *ev)
{
	const struct corr_comm *comm = ev->comm;

	if (!comm)
		return false;
	if (ev->stopped && ev->what == SCOPE_P2P && ev->open_ops && c->lost == ev->loss_at_start)
		return comm->finalized;
	if (ev->stopped)
		return comm->finalized || comm->ended_ns > ev->stop_ns;
	return c->lost != ev->loss_at_start &&
	       (ev->open_children ? comm->ended_ns : comm->closed_ns) > ev->start_ns;
}

/* Nothing of it moves any more. */
static void note_closed(const struct corr_event *op)
{
	struct corr_comm *comm = op->comm;

	if (!comm || op->open_children)
		return;
	if (op->start_ns > comm->closed_ns)
		comm->closed_ns = op->start_ns;
	if (op->exec > EXEC_ENQUEUE && op->start_ns > comm->ended_ns)
		comm->ended_ns = op->start_ns;
}

/* Where it stays, now that it is written. */
static struct corr_list *list_of_written(struct correlate *c, const struct corr_event *ev)
{
	if (is_captured(ev))
		return &c->captured;
	if (is_operation(ev->what) && ev->open_children && ev->comm && !has_passed(c, ev))
		return &c->stuck;
	return ev->exec == EXEC_ENQUEUE ? &c->childless : &c->gone;
}

/* Out with it; then it is kept for children to come, or forgotten. `ev` is on no list. */
static void event_write(struct correlate *c, struct corr_event *ev)
{
	wait_end(c, ev);
	hung__forget(c, ev, c->now_ns);
	if (is_operation(ev->what) && ev->stopped)
		exec_close(ev);
	sched_join__settle(ev);
	event_tell(c, ev);
	sched_join__release(c, ev);
	net_join__release(c->net, ev);
	ev->written = true;
	if (!has_late_children(ev->what) || ev->unfinished) {
		event_free(c, ev);
		return;
	}
	list_add(list_of_written(c, ev), ev, c->now_ns);
}

static struct corr_event *parent_of(const struct correlate *c, const struct corr_event *ev)
{
	return ev->linked ? correlate__find(c, ev->start.s.parent) : NULL;
}

/* Whose flows this event's are, too: a step's ProxyOp, a ProxyOp's operation; not once written. */
static struct corr_event *net_parent_of(const struct correlate *c, const struct corr_event *ev)
{
	struct corr_event *parent = parent_of(c, ev);

	if (!parent || parent->written)
		return NULL;
	if (ev->what == SCOPE_PROXY_STEP)
		return parent->what == SCOPE_PROXY_OP ? parent : NULL;
	return is_operation(parent->what) ? parent : NULL;
}

static void net_to_parent(struct correlate *c, const struct corr_event *ev)
{
	struct corr_event *parent = net_parent_of(c, ev);

	if (parent)
		net_join__child(parent, ev);
}

/* It has stopped, and has or has not found its parent. `ev` is on no list. */
static void event_done(struct correlate *c, struct corr_event *ev)
{
	struct corr_event *parent;

	if (!c->net || (ev->what != SCOPE_PROXY_OP && ev->what != SCOPE_PROXY_STEP)) {
		if (!ev->sched.elsewhere) {
			event_write(c, ev);
			return;
		}
		wait_end(c, ev);
		list_add(&c->elsewhere, ev, c->now_ns);
		return;
	}
	wait_end(c, ev);
	parent = net_parent_of(c, ev);
	if (parent)
		parent->net.held++;
	list_add(&c->held, ev, c->now_ns);
}

/* Its flows are known, or it must do without. */
static void held_write(struct correlate *c, struct corr_event *ev)
{
	list_del(ev);
	net_to_parent(c, ev);
	event_write(c, ev);
}

/* It has ended, or what came after it has: no child of it will come. */
static bool stuck_is_over(const struct correlate *c, const struct corr_event *ev)
{
	uint64_t age = less(c->now_ns, ev->list_ns);

	return c->stuck.n > MAX_GONE || (age >= GONE_NS && has_passed(c, ev)) ||
	       (age >= CHILDLESS_NS && !ev->open_children);
}

/* A call whose group goes on: what it is for begins at the group's end, after a while where connections to peers are to be made first. */
static bool is_before_launch(const struct correlate *c, const struct corr_event *ev)
{
	const struct corr_event *group;

	if (ev->what != SCOPE_COLL_API && ev->what != SCOPE_P2P_API)
		return false;
	group = parent_of(c, ev);
	return group && !group->stopped;
}

static void gone_expire(struct correlate *c)
{
	struct corr_event *ev = c->gone.first, *next;

	for (; ev; ev = next) {
		next = ev->next;
		if (next) { /* nobody has looked at it for as long */
			__builtin_prefetch(&next->id);
			__builtin_prefetch(&next->what);
			__builtin_prefetch(&next->list_ns);
		}
		if (c->gone.n <= MAX_GONE && c->now_ns - ev->list_ns < GONE_NS)
			break;
		list_del(ev);
		if (c->gone.n < MAX_GONE && is_before_launch(c, ev))
			list_add(&c->gone, ev, c->now_ns);
		else
			event_free(c, ev);
	}
	while (c->captured.n > MAX_GONE) {
		ev = c->captured.first;
		list_del(ev);
		event_free(c, ev);
	}
	while ((ev = c->childless.first) &&
	       (c->childless.n > MAX_CHILDLESS || c->now_ns - ev->list_ns >= CHILDLESS_NS)) {
		list_del(ev);
		event_free(c, ev);
	}
	while ((ev = c->stuck.first) && stuck_is_over(c, ev)) {
		list_del(ev);
		event_free(c, ev);
	}
}

/* ---- The GPU's time ------------------------------------------------------------------------------ */

/*
 * Of several kernels in a group it is not known which is an operation's: it began after the first of them was launched. A
 * captured one is told of by the host's part of the graph, which its kernel waits for.
 */
static void note_launch(const struct corr_event *parent, struct corr_event *op)
{
	if (parent && is_captured(parent))
		op->launch_ns = op->start_ns;
	else if (op->comm)
		op->launch_ns = op->comm->launch.ns;
}

/* Where groups are not recorded, the first of one is not known. */
static void launch_begins(struct corr_comm *comm, const struct corr_event *launch)
{
	uint64_t group = launch->start.s.parent;

	if (group && comm->launch.group == group)
		return;
	comm->launch.group = group;
	comm->launch.ns = group ? launch->start_ns : 0;
}

static bool has_gpu_stamps(const struct corr_event *ev)
{
	return (ev->what == SCOPE_KERNEL_CH || ev->what == SCOPE_KERNEL_PHASE) && ev->comm;
}

/* Its first stamp is seen now. */
static void gpu_begins(struct corr_event *ev, const struct corr_event *parent)
{
	uint64_t launch_ns = parent && is_operation(parent->what) ? parent->launch_ns : 0;

	/* at one place in both */
	gpu_clock__add(ev->comm->gpu, ev->start.kernel_ch.ptimer_ns, launch_ns, ev->start_ns);
}

/*
 * A kernel ends after it has taken the last of the data that was handed to it, however long it had waited in its stream: told of
 * by the channel, and so of all of them only. Other protocols than Simple see data without the proxy.
 */
static void gpu_was_handed(const struct correlate *c, const struct corr_event *op)
{
	if (op->what != SCOPE_COLL || !op->comm || op->open_children || !op->handed_ns ||
	    !c->simple || op->start.coll.proto != c->simple || op->nkernels != op->start.s.h.u8)
		return;
	gpu_clock__add(op->comm->gpu, op->ptimer_stop_ns, op->handed_ns, 0);
}

static void note_handed(struct corr_event *parent, const struct corr_event *child)
{
	if (child->handed_ns > parent->handed_ns)
		parent->handed_ns = child->handed_ns;
}

static void note_kernel(struct corr_event *op, const struct corr_event *kernel)
{
	op->nkernels++;
	if (kernel->ptimer_stop_ns > op->ptimer_stop_ns)
		op->ptimer_stop_ns = kernel->ptimer_stop_ns;
}

/* Now the other. What they are in node time is said as well as it is known so far. */
static void gpu_ends(struct corr_event *ev)
{
	uint64_t start = ev->start.kernel_ch.ptimer_ns, stop = ev->ptimer_stop_ns;
	struct gpu_clock *gpu = ev->comm->gpu;
	int64_t offset_ns;

	gpu_clock__add(gpu, stop, 0, ev->stop_ns);
	if (!gpu_clock__offset(gpu, ev->stop_ns, &offset_ns, &ev->gpu_error_ns))
		return;
	ev->gpu_start_ns = start + (uint64_t)offset_ns;
	ev->gpu_stop_ns = stop + (uint64_t)offset_ns;
	ev->has_gpu =
		start && ev->gpu_start_ns <= ev->gpu_stop_ns && ev->gpu_stop_ns <= ev->stop_ns;
}

/* ---- Parents and children ---------------------------------------------------------------------- */

/* A child of a Coll or P2p that its closure waits for. */
static bool counts_for_closure(uint32_t what)
{
	return what == SCOPE_PROXY_OP || what == SCOPE_KERNEL_CH || what == SCOPE_KERNEL_PHASE;
}

static void exec_note(struct corr_event *op, const struct corr_event *child)
{
	uint64_t end = child->stop_ns;

	if (child->what != SCOPE_PROXY_OP) {
		if (op->exec == EXEC_NONE)
			op->exec = EXEC_KERNEL;
		if (end > op->child_ns)
			op->child_ns = end;
		return;
	}
	/* NCCL stops all operations of one proxy args together: the last step tells the true end. */
	if (child->child_ns)
		end = child->child_ns;
	op->exec = EXEC_PROXY;
	if (end > op->exec_stop_ns)
		op->exec_stop_ns = end;
}

/* It is written, and its turn has come only now. */
static void goes_on(struct correlate *c, struct corr_event *op)
{
	if (op->list == &c->stuck || !op->comm)
		return;
	list_del(op);
	list_add(&c->stuck, op, c->now_ns);
}

static void child_started(struct correlate *c, struct corr_event *parent, struct corr_event *ev)
{
	ev->linked = true;
	if (parent->what == SCOPE_PROXY_OP && ev->what == SCOPE_PROXY_STEP) {
		parent->open_children++;
		ev->has_op = true;
		ev->channel = parent->start.s.h.u8;
		ev->is_send = (uint8_t)parent->start.s.h.u32;
		ev->peer = parent->start.proxy_op.peer;
		if (c->net)
			net_join__step(c->net, parent, ev);
	}
	if (is_operation(parent->what) && counts_for_closure(ev->what)) {
		parent->open_children++;
		parent->open_ops += ev->what == SCOPE_PROXY_OP;
		if (ev->start_ns > parent->activity_ns)
			parent->activity_ns = ev->start_ns;
		if (parent->written)
			goes_on(c, parent);
		else
			sched_join__served(parent, ev);
	}
	hung__child(c, parent, ev);
	/* What runs below a neighbour's operation is the neighbour's. */
	if (parent->pxn && (ev->what == SCOPE_PROXY_STEP || ev->what == SCOPE_NET_PLUGIN)) {
		ev->pxn = true;
		ev->origin_pid = parent->origin_pid;
	}
}

static void child_stopped(struct correlate *c, struct corr_event *parent, struct corr_event *ev)
{
	hung__moved(c, parent, ev->stop_ns);
	if (parent->what == SCOPE_PROXY_OP && ev->what == SCOPE_PROXY_STEP) {
		if (parent->open_children)
			parent->open_children--;
		note_handed(parent, ev);
		if (ev->stop_ns > parent->child_ns) {
			parent->child_ns = ev->stop_ns;
			if (ev->sched.thread == parent->sched.thread && !ev->sched.elsewhere)
				parent->sched_child = ev->sched.to;
		}
	}
	if (is_operation(parent->what) && counts_for_closure(ev->what)) {
		if (parent->open_children)
			parent->open_children--;
		if (ev->what == SCOPE_PROXY_OP && parent->open_ops)
			parent->open_ops--;
		if (ev->stop_ns > parent->activity_ns)
			parent->activity_ns = ev->stop_ns;
		exec_note(parent, ev);
		if (!parent->written)
			sched_join__served(parent, ev);
		if (ev->what == SCOPE_PROXY_OP)
			note_handed(parent, ev);
		else if (ev->what == SCOPE_KERNEL_CH)
			note_kernel(parent, ev);
		gpu_was_handed(c, parent);
	}
}

/* The parent's start has come after its children's: from another thread's buffer. */
static void adopt(struct correlate *c, struct corr_event *parent)
{
	struct corr_event *ev, *next;
	struct corr_wait *w;

	HASH_FIND(hh, c->waits, &parent->id, sizeof(parent->id), w);
	/* From the last one: steps of a connection are joined to their flows in their order. */
	for (ev = w ? w->first : NULL; ev && ev->wait_next;)
		ev = ev->wait_next;
	for (; ev; ev = next) {
		next = ev->wait_prev;
		wait_end(c, ev);
		ev->outside = parent->outside;
		child_started(c, parent, ev);
		if (!ev->stopped)
			continue;
		child_stopped(c, parent, ev);
		if (is_operation(ev->what))
			continue; /* waits for its own children as well */
		list_del(ev);
		event_done(c, ev);
	}
}

/*
 * Its context is another process'. In a pid namespace of its own that may have the same pid as this one. Of two copies of the plugin in one
 * process each has its tag: what is of a communicator that this process made is its own.
 */
static bool is_foreign(struct correlate *c, const struct corr_event *ev)
{
	uint64_t ctx = ev->start.s.ctx;

	return ctx && SCOPE_ID_TAG(ctx) != c->tag && SCOPE_ID_TAG(ctx) != SCOPE_TAG_NONE &&
	       !correlate__comm_find(c, ctx);
}

/*
 * A ProxyOp of another process names its maker; everything below it is found by its parent. A step
 * whose ProxyOp was lost is told by its context, which carries the maker's tag.
 */
static void pxn_detect(struct correlate *c, struct corr_event *ev)
{
	if (ev->what == SCOPE_PROXY_OP) {
		int32_t pid = ev->start.proxy_op.pid;

		ev->pxn = is_foreign(c, ev) || (pid && pid != (int32_t)c->ns_tgid);
		ev->origin_pid = pid;
	} else if ((ev->what == SCOPE_PROXY_STEP || ev->what == SCOPE_NET_PLUGIN) && !ev->linked) {
		ev->pxn = is_foreign(c, ev);
	}
}

static void comm_resolve(struct correlate *c, struct corr_event *ev)
{
	int32_t rank = -1;

	ev->comm = correlate__comm_find(c, ev->start.s.ctx);
	if (!ev->comm)
		return;
	ev->comm->refs++;
	if (ev->what == SCOPE_COLL) {
		rank = ev->start.coll.rank;
		ev->comm->last.seq = ev->start.coll.seq;
		ev->comm->last.func = ev->start.coll.func;
		ev->comm->last.start_ns = ev->start_ns;
	} else if (ev->what == SCOPE_P2P)
		rank = ev->start.p2p.rank;
	else if (ev->what == SCOPE_PROXY_OP)
		rank = ev->start.proxy_op.rank;
	/* v1 to v3 do not give the rank at init, but with these. */
	if (ev->comm->info.rank < 0 && rank >= 0)
		ev->comm->info.rank = rank;
}

/* ---- Records in -------------------------------------------------------------------------------- */

static void open_add(struct correlate *c, struct corr_event *ev)
{
	list_add(&c->open, ev, c->now_ns);
	hung__opened(c, ev);
}

static void open_del(struct correlate *c, struct corr_event *ev)
{
	hung__closed(c, ev);
	list_del(ev);
}

static struct corr_list *longest_list(struct correlate *c)
{
	struct corr_list *const lists[] = {&c->gone,	  &c->held,	  &c->open,
					   &c->closing,	  &c->parentless, &c->elsewhere,
					   &c->childless, &c->captured,	  &c->stuck};
	struct corr_list *longest = lists[0];
	size_t i;

	for (i = 1; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i]->n > longest->n)
			longest = lists[i];
	return longest;
}

/*
 * The oldest of those that are most. One that is written may stay for its children, until such are most. False: there
 * is none.
 */
static bool give_up_oldest(struct correlate *c)
{
	struct corr_list *list = longest_list(c);
	struct corr_event *ev = list->first;

	if (!ev)
		return false;
	if (ev->written) {
		list_del(ev);
		event_free(c, ev);
		return true;
	}
	/* Those that wait for their flows, or for what their thread did, have all else. */
	if (list == &c->held) {
		held_write(c, ev);
		return true;
	}
	if (list == &c->elsewhere) {
		list_del(ev);
		event_write(c, ev);
		return true;
	}
	if (list == &c->open)
		open_del(c, ev);
	else
		list_del(ev);
	state_settle(c, ev);
	ev->unfinished = !ev->stopped;
	ev->orphan = ev->stopped && ev->start.s.parent && !ev->linked && !ev->pxn;
	c->counts.evicted++;
	event_write(c, ev);
	return true;
}

/* A place for one more: others give way. NULL: not even then. */
static struct corr_event *event_get(struct correlate *c, uint32_t what)
{
	struct corr_event *ev = c->table_used < MAX_EVENTS ? event_new(c, what) : NULL;

	while (!ev && give_up_oldest(c))
		if (c->table_used < MAX_EVENTS)
			ev = event_new(c, what);
	return ev;
}

static void note_time(struct correlate *c, uint64_t ts_ns)
{
	if (ts_ns > c->now_ns)
		c->now_ns = ts_ns;
}

bool corr_is_collective(uint32_t what)
{
	return what == SCOPE_COLL || what == SCOPE_CE_COLL;
}

bool correlate__is_older(const struct correlate *c, uint64_t id)
{
	return id && SCOPE_ID_TAG(id) == c->tag && SCOPE_ID_COUNTER(id) < c->first_id;
}

/*
 * What began before the recording has children that come during it: where another recorder had it begun. They
 * are told by their parent's id, for each thread begins a new block of ids when we come. Ids of other
 * processes (PXN) tell nothing. After the cut only children of what is recorded count.
 */
static bool is_outside(const struct correlate *c, const struct scope_rec_start *rec, uint64_t ts_ns,
		       const struct corr_event *parent)
{
	uint32_t what = SCOPE_ID_WHAT(rec->h.id);

	if (parent && parent->outside)
		return true;
	if (!parent && correlate__is_older(c, rec->parent))
		return true;
	return ts_ns > c->cut_ns && (!parent || is_operation(what) || what == SCOPE_CE_COLL);
}

static void count_coll(struct correlate *c, uint64_t ts_ns)
{
	if (++c->colls == c->colls_max)
		correlate__cut(c, ts_ns);
}

void correlate__start(struct correlate *c, const struct scope_rec_start *rec, uint64_t ts_ns,
		      const struct corr_thread *thread)
{
	struct corr_event *ev, *parent;

	note_time(c, ts_ns);
	if (correlate__find(c, rec->h.id)) {
		c->counts.malformed++; /* ids are used once: not our plugin's doing */
		return;
	}
	ev = event_get(c, SCOPE_ID_WHAT(rec->h.id));
	if (!ev) {
		c->counts.evicted++;
		count_untaken(c);
		return;
	}
	ev->id = rec->h.id;
	memcpy(&ev->start, rec, rec->h.size);
	ev->start_ns = ts_ns;
	ev->start_thread = *thread;
	ev->last_state = NO_STATE;
	ev->loss_at_start = c->lost;
	sched_join__start(ev, thread->sched);
	table_put(c, (struct corr_slot){ev->id, ev});
	c->table_used++;
	open_add(c, ev);

	parent = rec->parent ? correlate__find(c, rec->parent) : NULL;
	ev->outside = is_outside(c, rec, ts_ns, parent);
	if (parent)
		child_started(c, parent, ev);
	pxn_detect(c, ev);
	if (!ev->pxn)
		comm_resolve(c, ev);
	if (is_operation(ev->what))
		note_launch(parent, ev);
	else if (ev->what == SCOPE_KERNEL_LAUNCH && ev->comm)
		launch_begins(ev->comm, ev);
	else if (has_gpu_stamps(ev))
		gpu_begins(ev, parent);
	if (rec->parent && !parent && !ev->pxn && !ev->outside)
		wait_begin(c, ev);
	if (!ev->outside && corr_is_collective(ev->what))
		count_coll(c, ts_ns);
	if (c->waits)
		adopt(c, ev);
}

void correlate__start_repeat(struct correlate *c, uint64_t id, uint32_t n)
{
	struct corr_event *ev = correlate__find(c, id);

	if (ev && !ev->stopped)
		ev->start_repeats += n;
}

/* NCCL stops some twice: NetPlugin events of InfiniBand, which are freed at the first, and CollApi. */
static bool stops_twice(uint64_t id)
{
	return SCOPE_ID_WHAT(id) == SCOPE_NET_PLUGIN || SCOPE_ID_WHAT(id) == SCOPE_COLL_API;
}

/* A state or stop of an event that is not open. */
static void latecomer(struct correlate *c, const struct corr_event *ev, uint64_t id, bool stop)
{
	/* After a loss, the start is what was lost, if it was in this recording; otherwise NCCL repeats itself, which it does. */
	if (!ev && c->lost && SCOPE_ID_TAG(id) == c->tag && !correlate__is_older(c, id) &&
	    !(stop && stops_twice(id)))
		c->counts.orphans++;
	else
		c->counts.late++;
}

/* For one more thread; of many the one whose sleep was noted first gives way. */
static struct corr_sleeper *sleeper_new(struct correlate *c)
{
	struct corr_sleeper *first = c->sleepers;

	if (HASH_COUNT(c->sleepers) >= MAX_SLEEPERS) {
		HASH_DELETE(hh, c->sleepers, first);
		free(first);
	}
	return calloc(1, sizeof(struct corr_sleeper));
}

static void note_sleep(struct correlate *c, uint32_t host_tid, uint64_t ts_ns)
{
	struct corr_sleeper *s;

	HASH_FIND(hh, c->sleepers, &host_tid, sizeof(host_tid), s);
	if (!s) {
		s = sleeper_new(c);
		if (!s)
			return;
		s->host_tid = host_tid;
		HASH_ADD(hh, c->sleepers, host_tid, sizeof(host_tid), s);
		if (!HASH_ADDED(hh, s)) {
			free(s);
			return;
		}
	}
	if (ts_ns > s->slept_ns)
		s->slept_ns = ts_ns;
	c->slept = true;
}

/* NCCL may tell the same of a step at poll rate, while it waits; before 2.27 of a ProxyOp. */
static void note_state(struct correlate *c, struct corr_event *ev, const struct corr_state *st)
{
	if (st->id == ev->last_state &&
	    (ev->what == SCOPE_PROXY_STEP || st->id == ncclProfilerProxyOpSendRemFifoWait))
		return;
	ev->last_state = st->id;
	ev->last_state_ns = st->ts_ns > ev->start_ns ? st->ts_ns : ev->start_ns;
	if (ev->what == SCOPE_PROXY_CTRL && st->id == ncclProfilerProxyCtrlSleep)
		note_sleep(c, ev->start_thread.host_tid, ev->last_state_ns);
	hung__moved(c, ev, ev->last_state_ns);
}

/* A request to the network is made, or one to receive is done. */
static void note_request(struct corr_event *ev, const struct corr_state *st)
{
	enum { SEND_WAIT = 9, RECV_WAIT, RECV_FLUSH_WAIT, RECV_GPU_WAIT }; /* nccl_profiler.h */

	if (st->id == SEND_WAIT || st->id == RECV_WAIT)
		ev->net.wait_ns = st->ts_ns;
	else if (st->id == RECV_FLUSH_WAIT && !ev->net.done_ns)
		ev->net.done_ns = st->ts_ns;
	else if (st->id == RECV_GPU_WAIT)
		ev->handed_ns = st->ts_ns;
}

void correlate__state(struct correlate *c, uint64_t id, const struct corr_state *st)
{
	struct corr_event *ev = correlate__find(c, id);

	note_time(c, st->ts_ns);
	if (!ev || ev->stopped) {
		latecomer(c, ev, id, false);
		return;
	}
	state_settle(c, ev);
	ev->pending = *st;
	if (ev->pending.ts_ns < ev->start_ns)
		ev->pending.ts_ns = ev->start_ns;
	ev->has_state = true;
	note_state(c, ev, st);
	if (ev->what == SCOPE_PROXY_STEP)
		note_request(ev, st);
	if (!st->has_arg)
		return;
	if (ev->what == SCOPE_PROXY_STEP) {
		ev->trans_size = st->arg;
		ev->has_trans_size = true;
	} else if (ev->what == SCOPE_KERNEL_CH || ev->what == SCOPE_KERNEL_PHASE) {
		ev->ptimer_stop_ns = st->arg;
		ev->has_ptimer_stop = true;
	}
}

void correlate__state_repeat(struct correlate *c, uint64_t id, uint32_t state, uint32_t n,
			     uint64_t last_ts_ns)
{
	struct corr_event *ev = correlate__find(c, id);

	if (!ev || ev->stopped) {
		latecomer(c, ev, id, false);
		return;
	}
	if (last_ts_ns < ev->start_ns)
		last_ts_ns = ev->start_ns;
	/* The first may have been written already because it was old: the repeats then stand alone. */
	if (!ev->has_state || ev->pending.id != state) {
		state_settle(c, ev);
		memset(&ev->pending, 0, sizeof(ev->pending));
		ev->pending.id = state;
		ev->pending.ts_ns = last_ts_ns;
		ev->pending.thread = ev->start_thread;
		ev->has_state = true;
	}
	ev->pending.repeats += n;
	ev->pending.last_ts_ns = last_ts_ns;
}

void correlate__stop(struct correlate *c, uint64_t id, uint64_t ts_ns,
		     const struct corr_thread *thread)
{
	struct corr_event *ev = correlate__find(c, id), *parent;

	note_time(c, ts_ns);
	if (!ev || ev->stopped) {
		latecomer(c, ev, id, true);
		return;
	}
	open_del(c, ev);
	if (ts_ns < ev->start_ns)
		ts_ns = ev->start_ns;
	if (ev->has_state && ev->pending.ts_ns > ts_ns)
		ev->pending.ts_ns = ts_ns;
	state_settle(c, ev);
	ev->stopped = true;
	ev->stop_ns = ts_ns;
	ev->stop_thread = *thread;
	ev->loss_near = (uint32_t)(c->lost - ev->loss_at_start);
	sched_join__stop(c, ev, thread->sched);
	parent = parent_of(c, ev);
	if (has_gpu_stamps(ev))
		gpu_ends(ev);
	if (parent)
		child_stopped(c, parent, ev);
	if (is_operation(ev->what)) {
		if (ts_ns > ev->activity_ns)
			ev->activity_ns = ts_ns;
		hung__moved(c, ev, ts_ns);
		list_add(&c->closing, ev, ts_ns);
		return;
	}
	hung__forget(c, ev, ts_ns);
	if (ev->start.s.parent && !ev->linked && !ev->pxn && !ev->outside)
		list_add(&c->parentless, ev, ts_ns);
	else
		event_done(c, ev);
}

/* ---- Time goes by ------------------------------------------------------------------------------ */

/*
 * Nobody has worked on it so far, and an operation of its communicator that stopped before it is not done: its turn comes, and
 * with it its children. False after STUCK_CHILD_NS.
 */
static bool is_queued(const struct correlate *c, const struct corr_event *ev, uint64_t now_ns)
{
	return !ev->open_children && ev->exec == EXEC_NONE && ev->comm &&
	       ev->comm->busy_look == c->looks && less(now_ns, ev->list_ns) < STUCK_CHILD_NS;
}

static void tick_closing(struct correlate *c, uint64_t now_ns, bool all)
{
	struct corr_event *ev, *next;
	uint64_t quiet;

	if (!all && c->waiting > MANY_WAITING && less(now_ns, c->look_ns) < WAITING_LOOK_NS)
		return;
	c->look_ns = now_ns;
	c->waiting = 0;
	c->looks++;
	for (ev = c->closing.first; ev; ev = next) {
		next = ev->next;
		if (!all && less(now_ns, ev->list_ns) < CHILD_GRACE_NS)
			return; /* nor, but for what threads were told late of, those behind it */
		if (is_queued(c, ev, now_ns))
			ev->activity_ns = now_ns;
		if (ev->open_children && ev->comm)
			ev->comm->busy_look = c->looks;
		quiet = less(now_ns, ev->activity_ns);
		if (!all && (ev->net.held ||
			     quiet < (ev->open_children ? STUCK_CHILD_NS : CHILD_GRACE_NS))) {
			if (ev->open_children && quiet >= CHILD_GRACE_NS)
				hung__watch(c, ev, now_ns);
			c->waiting++;
			continue;
		}
		list_del(ev);
		ev->orphan = ev->start.s.parent && !ev->linked;
		note_closed(ev);
		event_write(c, ev);
	}
}

/*
 * NCCL starts ProxyOps of which it tells nothing more, as those of CollNet, and those of SHM and P2P where the copy engine moves the data:
 * of one that waits behind others it does so as well, but then their thread does not sleep.
 */
static bool is_silent(const struct correlate *c, const struct corr_event *ev)
{
	const struct corr_sleeper *s;

	if (ev->what != SCOPE_PROXY_OP || ev->last_state != NO_STATE || ev->hung.begun ||
	    (ev->start.s.parent && !ev->linked && !ev->pxn))
		return false;
	HASH_FIND(hh, c->sleepers, &ev->start_thread.host_tid, sizeof(uint32_t), s);
	return s && s->slept_ns >= ev->start_ns;
}

/* Its operation does not wait for it any more. */
static void silence(struct correlate *c, struct corr_event *ev)
{
	struct corr_event *op = parent_of(c, ev);

	if (op && is_operation(op->what) && op->open_children && op->open_ops) {
		op->open_children--;
		op->open_ops--;
		sched_join__silent(op, ev);
	}
	open_del(c, ev);
	ev->unfinished = ev->silent = true;
	ev->loss_near = (uint32_t)(c->lost - ev->loss_at_start);
	event_write(c, ev);
}

static void tick_silent(struct correlate *c, uint64_t now_ns, bool all)
{
	bool often = c->open.n > MANY_WAITING && less(now_ns, c->silent_look_ns) < WAITING_LOOK_NS;
	struct corr_event *ev, *next;

	if (!all && (!c->slept || often))
		return;
	c->slept = false;
	c->silent_look_ns = now_ns;
	for (ev = c->open.first; ev; ev = next) {
		next = ev->next;
		if (is_silent(c, ev))
			silence(c, ev);
	}
}

/*
 * A step is forgotten when it stops; its NetPlugin events may come later, from another thread. Where
 * nothing was lost, it was there.
 */
static bool parent_forgotten(const struct correlate *c, const struct corr_event *ev)
{
	return ev->what == SCOPE_NET_PLUGIN && c->from_start && !c->lost &&
	       SCOPE_ID_TAG(ev->start.s.parent) == c->tag;
}

/* Those whose parent has come left the list when it came; in order of their stop. */
static void tick_parentless(struct correlate *c, uint64_t now_ns, bool all)
{
	struct corr_event *ev;

	while ((ev = c->parentless.first) &&
	       (all || less(now_ns, ev->list_ns) >= PARENT_GRACE_NS)) {
		list_del(ev);
		ev->orphan = !parent_forgotten(c, ev);
		event_done(c, ev);
	}
}

/* Now their own threads are known up to the stop, too. */
static void tick_elsewhere(struct correlate *c, uint64_t now_ns, bool all)
{
	struct corr_event *ev;

	while ((ev = c->elsewhere.first) && (all || less(now_ns, ev->list_ns) >= ELSEWHERE_NS)) {
		list_del(ev);
		event_write(c, ev);
	}
}

/* Steps whose flows are known by now; then their operations, which come behind them. */
static void tick_held(struct correlate *c, bool end)
{
	struct corr_event *ev, *next;

	for (ev = c->held.first; ev; ev = next) {
		next = ev->next;
		if (net_join__ready(c->net, ev, end))
			held_write(c, ev);
	}
}

/* All that is known comes first, and what follows from it, before any step must do with less. */
static void end_held(struct correlate *c)
{
	struct corr_event *ev;

	for (ev = c->held.first; ev; ev = ev->next)
		net_join__look(c->net, ev);
	tick_held(c, false);
	tick_held(c, true);
}

void correlate__tick(struct correlate *c, uint64_t now_ns)
{
	note_time(c, now_ns);
	tick_parentless(c, now_ns, false);
	tick_elsewhere(c, now_ns, false);
	/* Nothing of it changes but by what the network did. */
	if (c->held.n && c->held_ns != c->net->flows->complete_ns) {
		c->held_ns = c->net->flows->complete_ns;
		tick_held(c, false);
	}
	tick_silent(c, now_ns, false);
	tick_closing(c, now_ns, false);
	hung__tick(c, now_ns);
	gone_expire(c);
	/* After much at once; without memory for it, later. */
	if (c->table_bits > TABLE_IDLE && c->table_used < 1u << (c->table_bits - 4))
		(void)table_resize(c, c->table_bits - 1);
}

void correlate__cut(struct correlate *c, uint64_t ns)
{
	if (ns < c->cut_ns)
		c->cut_ns = ns;
}

static bool is_pending(const struct correlate *c, const struct corr_event *op)
{
	return !op->outside && (op->open_children || !op->stopped) && !has_passed(c, op);
}

bool correlate__settled(const struct correlate *c, uint64_t now_ns, uint64_t quiet_ns)
{
	const struct corr_event *ev;

	/* The proxy thread is idle or asleep for as long as it has nothing to do. */
	for (ev = c->open.first; ev; ev = ev->next)
		if (!ev->outside && ev->what != SCOPE_PROXY_CTRL && !has_passed(c, ev))
			return false;
	for (ev = c->closing.first; ev; ev = ev->next)
		if (is_pending(c, ev) || (!ev->outside && less(now_ns, ev->activity_ns) < quiet_ns))
			return false;
	return true;
}

void correlate__pending(const struct correlate *c,
			void (*each)(void *arg, const struct corr_event *op), void *arg)
{
	const struct corr_list *const lists[] = {&c->open, &c->closing, &c->stuck};
	const struct corr_event *ev;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (ev = lists[i]->first; ev; ev = ev->next)
			if (is_operation(ev->what) && is_pending(c, ev))
				each(arg, ev);
}

/* Of the open ones from `open` on, and of all others. */
static uint64_t oldest_from(const struct correlate *c, const struct corr_event *open)
{
	/* In the order in which they stopped: one that took long is behind others that started after it. */
	const struct corr_list *const lists[] = {&c->closing, &c->parentless, &c->held,
						 &c->elsewhere};
	uint64_t oldest = open ? open->start_ns : UINT64_MAX;
	const struct corr_event *ev;
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (ev = lists[i]->first; ev; ev = ev->next)
			if (ev->start_ns < oldest)
				oldest = ev->start_ns;
	return oldest;
}

uint64_t correlate__oldest(const struct correlate *c)
{
	const struct corr_event *open = c->open.first;

	while (open && (open->what == SCOPE_PROXY_CTRL || has_passed(c, open)))
		open = open->next;
	return oldest_from(c, open);
}

uint64_t correlate__oldest_net(const struct correlate *c)
{
	const struct corr_event *open = c->open.first;

	while (open && open->what == SCOPE_PROXY_CTRL)
		open = open->next;
	return oldest_from(c, open);
}

/* A ProxyOp that never stopped: its steps that did tell how far its operation came, and over what. */
static void exec_note_open(struct correlate *c)
{
	struct corr_event *ev, *op;

	for (ev = c->open.first; ev; ev = ev->next) {
		if (c->net && ev->what == SCOPE_PROXY_OP)
			net_to_parent(c, ev);
		if (ev->what != SCOPE_PROXY_OP || !ev->child_ns || ev->pxn)
			continue;
		op = correlate__find(c, ev->start.s.parent);
		if (op && is_operation(op->what))
			exec_note(op, ev);
	}
}

void correlate__end(struct correlate *c)
{
	struct corr_event *ev;

	tick_silent(c, c->now_ns, true);
	hung__end(c);
	tick_parentless(c, c->now_ns, true);
	tick_elsewhere(c, c->now_ns, true);
	end_held(c);
	exec_note_open(c);
	tick_closing(c, c->now_ns, true);
	while ((ev = c->open.first)) {
		hung__forget(c, ev, c->now_ns);
		open_del(c, ev);
		state_settle(c, ev);
		ev->unfinished = true;
		ev->loss_near = (uint32_t)(c->lost - ev->loss_at_start);
		ev->orphan =
			ev->start.s.parent && !ev->linked && !ev->pxn && !parent_forgotten(c, ev);
		event_tell(c, ev);
		sched_join__release(c, ev);
		net_join__release(c->net, ev);
		ev->written = true;
		list_add(&c->gone, ev,
			 c->now_ns); /* parents must outlive their children's checks */
	}
}

int correlate__init(struct correlate *c, const struct corr_sink *sink, uint32_t ns_tgid)
{
	memset(c, 0, sizeof(*c));
	c->sink = *sink;
	c->ns_tgid = ns_tgid;
	c->cut_ns = UINT64_MAX;
	c->table = calloc(1u << TABLE_MIN, sizeof(*c->table));
	if (!c->table)
		return -ENOMEM;
	c->table_bits = TABLE_MIN;
	slab__init(&c->slabs[0], sizeof(struct corr_event), EVENT_EXTRA);
	slab__init(&c->slabs[1], sizeof(struct corr_event), EVENT_EXTRA);
	return 0;
}

void correlate__free(struct correlate *c)
{
	struct corr_sleeper *sleeper, *next;
	struct corr_comm *comm, *tmp;
	struct corr_event *ev;
	uint32_t i;

	if (!c)
		return;
	for (i = 0; c->table && i <= table_mask(c); i++) {
		ev = c->table[i].ev;
		if (!ev)
			continue;
		wait_end(c, ev);
		sched_join__release(c, ev);
		net_join__release(c->net, ev);
		slab__give(slab_of(c, ev->what), ev, c->memory);
	}
	free(c->table);
	hung__free(c);
	HASH_ITER (hh, c->sleepers, sleeper, next) {
		HASH_DELETE(hh, c->sleepers, sleeper);
		free(sleeper);
	}
	slab__free(&c->slabs[0], c->memory);
	slab__free(&c->slabs[1], c->memory);
	HASH_ITER (hh, c->comms, comm, tmp) {
		HASH_DELETE(hh, c->comms, comm);
		budget_part__give(c->memory, sizeof(*comm));
		free(comm->live);
		free(comm);
	}
	memset(c, 0, sizeof(*c));
}
