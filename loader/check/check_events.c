// SPDX-License-Identifier: BSD-2-Clause
/*
 * The events of a process, and what must hold between one and its states, parent and children: the rules in event_rules, once all
 * have been read. While a process runs, or where its recording broke off, some are open.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "check_priv.h"

/* Two threads' times come from one clock fit, which is good to 1 us; one thread's are exact. */
#define CROSS_THREAD_NS 1000

/* ------------------------------------------------------------------ the events of a process */

static uint32_t *index_slot(const struct proc *p, uint64_t id, uint32_t pid)
{
	uint32_t mask = p->index_size - 1, i = mix(id + ((uint64_t)pid << 48)) & mask;

	while (p->index[i] &&
	       (p->events[p->index[i] - 1].id != id || p->events[p->index[i] - 1].pid != pid))
		i = (i + 1) & mask;
	return &p->index[i];
}

static int index_grow(struct proc *p)
{
	uint32_t size = p->index_size ? p->index_size * 2 : 1024, i;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return -ENOMEM;
	free(p->index);
	p->index = index;
	p->index_size = size;
	for (i = 0; i < p->nr; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): nr > 0 has both */
		*index_slot(p, p->events[i].id, p->events[i].pid) = i + 1;
	return 0;
}

static struct event *event_find(const struct proc *p, uint64_t id, uint32_t pid)
{
	uint32_t *slot = p->index_size ? index_slot(p, id, pid) : NULL;

	return slot && *slot ? &p->events[*slot - 1] : NULL;
}

struct event *event_get(struct check *c, uint64_t id, uint32_t pid)
{
	struct proc *p = c->proc;
	struct event *ev = event_find(p, id, pid);

	if (ev)
		return ev;
	if (p->nr == p->cap) {
		uint32_t cap = p->cap ? p->cap + p->cap / 2 : 512;

		ev = realloc(p->events, cap * sizeof(*ev));
		if (!ev)
			goto nomem;
		p->events = ev;
		p->cap = cap;
	}
	if (p->nr + 1 > p->index_size / 2 && index_grow(p))
		goto nomem;
	ev = &p->events[p->nr++];
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): cap > nr has events */
	memset(ev, 0, sizeof(*ev));
	ev->id = id;
	ev->pid = pid;
	*index_slot(p, id, pid) = p->nr;
	return ev;
nomem:
	c->err = -ENOMEM;
	return NULL;
}

/* ------------------------------------------------------------------ rules of an event */

#define S(n) BIT(n)
static const uint32_t states_of[NR_ETYPES] = {
	[ET_GROUP_API] = S(23) | S(24),
	[ET_PROXY_OP] = 0xff | S(19),
	[ET_PROXY_STEP] = S(8) | S(9) | S(20) | S(10) | S(11) | S(12),
	[ET_PROXY_CTRL] = S(13) | S(14) | S(15) | S(16) | S(17) | S(18),
	[ET_NET_PLUGIN] = S(21),
	[ET_KERNEL_CH] = S(22),
	[ET_CE_COLL] = S(25) | S(26),
	[ET_CE_SYNC] = S(27) | S(28),
	[ET_CE_BATCH] = S(29) | S(30),
	[ET_KERNEL_PHASE] = S(31),
};
#define SEND_STATES (S(8) | S(9) | S(20))
#define RECV_STATES (S(10) | S(11) | S(12))

static const char *state_of(uint32_t mask)
{
	return mask ? state_names[__builtin_ctz(mask)] : "no state";
}

/*
 * Something that should be in the file is not. While a process runs, or where its recording broke
 * off, events are open; and what was lost explains a gap, then it is no error of the file.
 */
__attribute__((format(printf, 5, 6))) static void
gap(struct check *c, const struct proc *p, uint32_t line, const char *code, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (!p->footer || p->broken)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	find_at(c, p->nr_lost ? FIND_WARNING : FIND_ERROR, line, code, "%s", text);
}

void event_check_states(struct check *c, const struct proc *p, const struct event *ev)
{
	uint32_t wrong = ev->states & ~states_of[ev->type];

	if (!ev->st_line)
		return;
	if (!(ev->flags & EV_SEEN)) {
		gap(c, p, ev->st_line, "state-event",
		    "%s belongs to event 0x%llx, which is not in the file", state_of(ev->states),
		    ULL(ev->id));
		return;
	}
	if (ev->st_first < ev->start - slack(c))
		find_at(c, FIND_ERROR, ev->st_first_line, "state-time",
			"state at %s is before its event 0x%llx starts at %s (line %u)",
			us(ev->st_first), ULL(ev->id), us(ev->start), ev->line);
	if (!(ev->flags & EV_UNFINISHED) && ev->st_last > ev->stop + slack(c))
		find_at(c, FIND_ERROR, ev->st_last_line, "state-time",
			"state at %s is after its event 0x%llx stopped at %s (line %u)",
			us(ev->st_last), ULL(ev->id), us(ev->stop), ev->line);
	if (ev->type == ET_PROXY_STEP && (ev->flags & EV_HAS_DIR) && !wrong)
		wrong = ev->states & (ev->flags & EV_IS_SEND ? RECV_STATES : SEND_STATES);
	if (wrong)
		find_at(c, FIND_ERROR, ev->st_line, "state-type",
			"%s is no state of %s 0x%llx (line %u)", state_of(wrong),
			etype_names[ev->type], ULL(ev->id), ev->line);
}

static void rule_open(struct check *c, const struct proc *p, const struct event *ev)
{
	if (ev->open_line && !(ev->flags & EV_SEEN))
		gap(c, p, ev->open_line, "open-event",
		    "event 0x%llx was open and is not in the file", ULL(ev->id));
}

#define T(type) BIT(ET_##type)

static uint32_t parents_of(const struct proc *p, enum etype type)
{
	static const uint32_t parents[NR_ETYPES] = {
		[ET_COLL_API] = T(GROUP_API),
		[ET_P2P_API] = T(GROUP_API),
		[ET_KERNEL_LAUNCH] = T(GROUP_API),
		[ET_PROXY_OP] = T(COLL) | T(P2P),
		[ET_PROXY_STEP] = T(PROXY_OP),
		[ET_KERNEL_CH] = T(COLL) | T(P2P),
		[ET_NET_PLUGIN] = T(PROXY_STEP),
		[ET_CE_COLL] = T(COLL_API),
		[ET_CE_SYNC] = T(CE_COLL),
		[ET_CE_BATCH] = T(CE_COLL),
		[ET_KERNEL_PHASE] = T(KERNEL_CH) | T(COLL) | T(P2P),
	};
	uint32_t group = p->min_api < 5 ? T(GROUP) : 0;

	/* API 5 put CollApi and P2pApi between; which one is in use the lifecycle records say. */
	if (type == ET_COLL)
		return group | (!p->max_api || p->max_api >= 5 ? T(COLL_API) : 0);
	if (type == ET_P2P)
		return group | (!p->max_api || p->max_api >= 5 ? T(P2P_API) : 0);
	return parents[type];
}

static void parent_fits(struct check *c, const struct proc *p, const struct event *ev,
			const struct event *parent)
{
	const char *name = etype_names[ev->type], *parent_name = etype_names[parent->type];

	if (!(parent->types & parents_of(p, ev->type))) {
		find_at(c, FIND_ERROR, ev->line, "parent-type",
			"%s 0x%llx has a %s for parent (0x%llx, line %u)", name, ULL(ev->id),
			parent_name, ULL(parent->id), parent->line);
		return;
	}
	if (c->compat)
		return;
	if (ev->start + CROSS_THREAD_NS < parent->start)
		find_at(c, FIND_ERROR, ev->line, "parent-time",
			"%s 0x%llx starts at %s, before its parent at %s (line %u)", name,
			ULL(ev->id), us(ev->start), us(parent->start), parent->line);
	/* A group may span communicators, and NCCL gives it to the first of them. */
	if (parent->type != ET_GROUP_API && ev->comm != parent->comm)
		find_at(c, FIND_ERROR, ev->line, "parent-comm",
			"%s 0x%llx has commId %llu, its parent %llu (line %u)", name, ULL(ev->id),
			ULL(ev->comm), ULL(parent->comm), parent->line);
}

static void rule_parent(struct check *c, const struct proc *p, const struct event *ev)
{
	const struct event *parent = ev->parent ? event_find(p, ev->parent, ev->pid) : NULL;

	if (!(ev->flags & EV_SEEN))
		return;
	if (ev->parent && !parents_of(p, ev->type)) {
		find_at(c, FIND_ERROR, ev->line, "parent-type", "%s 0x%llx has a parent",
			etype_names[ev->type], ULL(ev->id));
		return;
	}
	if (!ev->parent && parents_of(p, ev->type) && !c->compat && !(ev->flags & EV_ORPHAN)) {
		/* A recording that begins within a group has not seen the group begin. */
		bool api = parents_of(p, ev->type) == T(GROUP_API);

		find_at(c, api ? FIND_WARNING : FIND_ERROR, ev->line, "parent-none",
			"%s 0x%llx has no parent", etype_names[ev->type], ULL(ev->id));
	}
	/* The parent is in another process, or was never seen and the writer says so. */
	if (!ev->parent || (ev->flags & EV_ORPHAN) ||
	    ((ev->flags & EV_PXN) && ev->type == ET_PROXY_OP))
		return;
	if (parent && parent->types)
		parent_fits(c, p, ev, parent);
	else
		gap(c, p, ev->line, "parent-missing",
		    "%s 0x%llx has the parent 0x%llx, which is not in the file",
		    etype_names[ev->type], ULL(ev->id), ULL(ev->parent));
}

static void rule_group(struct check *c, const struct proc *p, const struct event *ev)
{
	const struct event *group = ev->group ? event_find(p, ev->group, ev->pid) : NULL;

	if (!(ev->flags & EV_SEEN) || !ev->group)
		return;
	if (group && (group->types & ~T(GROUP)))
		find_at(c, FIND_ERROR, ev->line, "parent-type",
			"parentGroup of %s 0x%llx is a %s (0x%llx, line %u)", etype_names[ev->type],
			ULL(ev->id), etype_names[group->type], ULL(group->id), group->line);
	else if (!group || !group->types)
		gap(c, p, ev->line, "parent-missing",
		    "%s 0x%llx has the parentGroup 0x%llx, which is not in the file",
		    etype_names[ev->type], ULL(ev->id), ULL(ev->group));
}

static void rule_step(struct check *c, const struct proc *p, const struct event *ev)
{
	const struct event *op = ev->parent ? event_find(p, ev->parent, ev->pid) : NULL;
	bool stopped = op && !((ev->flags | op->flags) & EV_UNFINISHED);

	if (ev->type != ET_PROXY_STEP || !(ev->flags & EV_SEEN) || c->compat || !op ||
	    !(op->flags & EV_SEEN) || op->type != ET_PROXY_OP)
		return;
	if (ev->step >= op->steps)
		find_at(c, FIND_ERROR, ev->line, "step-range",
			"step %llu of a ProxyOp of %llu steps (0x%llx, line %u)", ULL(ev->step),
			ULL(op->steps), ULL(op->id), op->line);
	if (ev->start < op->start || (stopped && ev->stop > op->stop))
		find_at(c, FIND_ERROR, ev->line, "step-time",
			"ProxyStep 0x%llx from %s to %s is not within its ProxyOp, from %s to %s "
			"(line %u)",
			ULL(ev->id), us(ev->start), stopped ? us(ev->stop) : "its end",
			us(op->start), stopped ? us(op->stop) : "its end", op->line);
	if (((ev->flags & EV_HAS_OP) && (ev->channel != op->channel || ev->peer != op->peer)) ||
	    ((ev->flags & EV_HAS_DIR) && (ev->flags & EV_IS_SEND) != (op->flags & EV_IS_SEND)))
		find_at(c, FIND_ERROR, ev->line, "step-op",
			"channel, peer or isSend differ from those of its ProxyOp (0x%llx, line "
			"%u)",
			ULL(op->id), op->line);
	if ((ev->flags & EV_PXN) != (op->flags & EV_PXN))
		find_at(c, FIND_ERROR, ev->line, "step-op",
			"isPxn differs from that of its ProxyOp (0x%llx, line %u)", ULL(op->id),
			op->line);
}

static void rule_steps(struct check *c, const struct proc *p, const struct event *ev)
{
	(void)p;
	if ((ev->flags & EV_SEEN) && ev->type == ET_PROXY_OP && ev->nr_steps > ev->steps &&
	    !c->compat)
		find_at(c, FIND_ERROR, ev->line, "step-count",
			"ProxyOp 0x%llx of %llu steps has %llu ProxySteps", ULL(ev->id),
			ULL(ev->steps), ULL(ev->nr_steps));
}

static void rule_exec(struct check *c, const struct proc *p, const struct event *ev)
{
	bool kernel = ev->exec_source == EXEC_KERNEL;
	int64_t end = kernel ? ev->k_end : ev->proxy_end;
	int64_t last = kernel ? ev->k_end : ev->proxy_max;
	/* A child that came later than the writer waits is no mistake of the writer. */
	enum level level = ev->flags & EV_LATE_CHILD ? FIND_WARNING : FIND_ERROR;

	if (!(ev->flags & EV_SEEN) || ev->exec_source == EXEC_NONE)
		return;
	if (ev->exec_source == EXEC_ENQUEUE && (ev->proxy_max || ev->k_end))
		find_at(c, level, ev->line, "exec-source",
			"exec.source is enqueue but a child of %s 0x%llx stopped at %s",
			etype_names[ev->type], ULL(ev->id),
			us(ev->proxy_max > ev->k_end ? ev->proxy_max : ev->k_end));
	if (ev->exec_source == EXEC_ENQUEUE)
		return;
	if (!last)
		gap(c, p, ev->line, "exec-source",
		    "exec.source is %s but %s 0x%llx has no such child that stopped",
		    kernel ? "kernel" : "proxy", etype_names[ev->type], ULL(ev->id));
	else if (ev->exec_stop < end)
		find_at(c, level, ev->line, "exec-children",
			"exec.stop of %s 0x%llx is %s, but a child stopped at %s",
			etype_names[ev->type], ULL(ev->id), us(ev->exec_stop), us(end));
	else if (!kernel && ev->exec_stop > last)
		/* The line of the last one may be among what is lost. */
		find_at(c, p->nr_lost ? FIND_WARNING : level, ev->line, "exec-children",
			"exec.stop of %s 0x%llx is %s, but its last child stopped at %s",
			etype_names[ev->type], ULL(ev->id), us(ev->exec_stop), us(last));
}

/* What an operation moved, its ProxyOps moved, and what these did, their steps. */
static void rule_net_sum(struct check *c, const struct proc *p, const struct event *ev)
{
	static const char *const keys[] = {"txBytes", "rxBytes"};
	enum level level = ev->flags & EV_LATE_CHILD || p->nr_lost ? FIND_WARNING : FIND_ERROR;
	int dir;

	if (p->broken)
		return;
	for (dir = 0; dir < 2; dir++)
		if (ev->flags & EV_HAS_BYTES && ev->child_bytes[dir] > ev->bytes[dir])
			find_at(c, level, ev->line, "net-sum",
				"net.%s of %s 0x%llx is %llu, its children have %llu", keys[dir],
				etype_names[ev->type], ULL(ev->id), ULL(ev->bytes[dir]),
				ULL(ev->child_bytes[dir]));
}

/* Rules of an event with all that belongs to it, run at the end of its process. */
static void (*const event_rules[])(struct check *c, const struct proc *p,
				   const struct event *ev) = {
	event_check_states, rule_open,	rule_parent, rule_group,
	rule_step,	    rule_steps, rule_exec,   rule_net_sum,
};

static void max_of(int64_t *max, int64_t val)
{
	if (val > *max)
		*max = val;
}

/* Hands what a child knows up to its parent: steps to ProxyOps first, these to Coll and P2p. */
static void sum_children(struct proc *p, enum etype type)
{
	struct event *parent, *ev;
	uint32_t i;

	for (i = 0; i < p->nr; i++) {
		ev = &p->events[i];
		if (!(ev->flags & EV_SEEN) || ev->type != type || !ev->parent ||
		    ((ev->flags & EV_PXN) && type == ET_PROXY_OP))
			continue;
		parent = event_find(p, ev->parent, ev->pid);
		if (!parent || !(parent->flags & EV_SEEN))
			continue;
		if (ev->line > parent->line)
			parent->flags |= EV_LATE_CHILD;
		if (type == ET_PROXY_STEP)
			parent->nr_steps++;
		parent->child_bytes[0] += ev->bytes[0];
		parent->child_bytes[1] += ev->bytes[1];
		if (type == ET_PROXY_OP && ev->proxy_max) {
			/* NCCL stops the ops of one batch together, the last step is the end */
			max_of(&parent->proxy_end, ev->proxy_max);
			max_of(&parent->proxy_max, ev->proxy_max);
		}
		if (ev->flags & EV_UNFINISHED)
			continue;
		/* Without steps its own stop counts; where they may be among what is lost, it may be too late. */
		if (type == ET_PROXY_OP && !ev->proxy_max && !p->nr_lost)
			max_of(&parent->proxy_end, ev->stop);
		if (type != ET_KERNEL_CH)
			max_of(&parent->proxy_max, ev->stop);
		else
			max_of(&parent->k_end, ev->k_end ? ev->k_end : ev->stop);
	}
}

void events_check(struct check *c)
{
	struct proc *p = c->proc;
	uint32_t i;
	size_t k;

	sum_children(p, ET_PROXY_STEP);
	sum_children(p, ET_PROXY_OP);
	sum_children(p, ET_KERNEL_CH);
	for (i = 0; i < p->nr; i++)
		for (k = 0; k < ARRAY_SIZE(event_rules); k++)
			event_rules[k](c, p, &p->events[i]);
}
