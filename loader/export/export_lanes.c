// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events of an export in the order in which the host had them begin, and onto tracks; see export.h. An event's line comes when it has stopped, and
 * an operation's a second after its last child: so they wait here for as long from their line on. What comes later still, as does what hung, finds
 * a lane of its own. Slices of one lane are within each other or apart, whatever a trace says.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "export.h"
#include "heap.h"

#define WINDOW_NS                                                                                  \
	(3 * NSEC_PER_SEC) /* an operation settles for one second, and is written within another */
#define HELD_MAX (128u << 20) /* bytes of events that wait; then the oldest go */
#define OPEN_MAX                                                                                   \
	(HELD_MAX / 2)	 /* of these that are open; more end with what has been read by then */
#define LANES_MAX  64	 /* of a group */
#define GROUPS_MAX 65536 /* of a process */
#define SEEN_MAX   65536 /* of a process */

struct export_order {
	struct heap heap;	   /* of struct export_event, owned */
	struct export_event *open; /* whose end is not known yet; owned */
	struct export_event *ops;  /* operations that end with their children, by address; owned */
	size_t bytes, open_bytes;  /* open_bytes: contained */
	uint64_t seq;
};

struct export_order *export_order__new(void)
{
	return calloc(1, sizeof(struct export_order));
}

static void free_event(struct export_event *ev)
{
	struct export_state *s, *next;

	if (!ev)
		return;
	for (s = ev->states; s; s = next) {
		next = s->next;
		free(s);
	}
	free(ev);
}

void export_order__free(struct export_order *o)
{
	struct export_event *ev, *tmp;
	size_t i;

	if (!o)
		return;
	HASH_ITER (hh, o->ops, ev, tmp) {
		HASH_DEL(o->ops, ev);
		free_event(ev);
	}
	while ((ev = o->open)) {
		o->open = ev->next;
		free_event(ev);
	}
	for (i = 0; i < o->heap.n; i++)
		free_event(o->heap.at[i]);
	free(o->heap.at);
	free(o);
}

/* ---- In order -------------------------------------------------------------------------------------------- */

/*
 * By the host's time: a kernel runs before the host has noted the operation that is its parent. What begins at the same time: parents
 * first, which are longer or of a higher level.
 */
static bool before(const void *pa, const void *pb)
{
	const struct export_event *a = pa, *b = pb;

	if (a->host != b->host)
		return a->host < b->host;
	if (a->end != b->end)
		return a->end > b->end;
	if (a->type->level != b->type->level)
		return a->type->level < b->type->level;
	return a->seq < b->seq;
}

/* About what it takes. */
static size_t size_of(const struct export_event *ev)
{
	const struct export_state *s;
	size_t n = sizeof(*ev) + ev->args_len + 32;

	for (s = ev->states; s; s = s->next)
		n += sizeof(*s) + s->args_len + 32;
	return n;
}

static struct export_event *first_of(const struct export_order *o)
{
	return o->heap.n ? o->heap.at[0] : NULL;
}

static void push_event(struct export *x, struct export_event *ev)
{
	struct export_order *o = x->order;

	ev->came = x->proc->last;
	if (heap__push(&o->heap, ev, before)) {
		free_event(ev);
		x->err = -ENOMEM;
		return;
	}
	o->bytes += size_of(ev);
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct export_event *op_of(const struct export_order *o, uint64_t addr)
{
	struct export_event *op;

	HASH_FIND(hh, o->ops, &addr, sizeof(addr), op);
	return op;
}

static void end_op(struct export *x, struct export_event *op)
{
	struct export_order *o = x->order;
	size_t size = size_of(op);

	HASH_DEL(o->ops, op);
	o->open_bytes -= size;
	o->bytes -= size;
	push_event(x, op);
}

/* Of an operation that was written while it was open: it ends with the last one. */
static void child_ended(struct export *x, const struct export_event *child)
{
	struct export_event *op = op_of(x->order, child->parent);

	if (!op)
		return;
	op->end = later(op->end, child->end);
	if (!--op->open_children)
		end_op(x, op);
}

static void hold_op(struct export *x, struct export_event *ev)
{
	struct export_order *o = x->order;
	struct export_event *old = op_of(o, ev->addr);

	if (old) /* the address is used again */
		end_op(x, old);
	HASH_ADD(hh, o->ops, addr, sizeof(ev->addr), ev);
	if (!HASH_ADDED(hh, ev)) {
		free_event(ev);
		x->err = -ENOMEM;
	}
}

void export_order__add(struct export *x, struct export_event *ev)
{
	struct export_order *o = x->order;
	size_t size = size_of(ev);

	ev->seq = o->seq++;
	if (!ev->open)
		child_ended(x, ev);
	if (!ev->open || size > OPEN_MAX - o->open_bytes) {
		push_event(x, ev);
		return;
	}
	o->open_bytes += size;
	o->bytes += size;
	if (ev->open_children && ev->addr) {
		hold_op(x, ev);
		return;
	}
	ev->next = o->open;
	o->open = ev;
}

/* The recording is over, and with it what is open. */
static void end_open(struct export *x)
{
	struct export_order *o = x->order;
	struct export_event *ev, *tmp;

	HASH_ITER (hh, o->ops, ev, tmp) {
		ev->end = later(ev->end, x->proc->last);
		end_op(x, ev);
	}
	o->bytes -= o->open_bytes;
	o->open_bytes = 0;
	while ((ev = o->open)) {
		o->open = ev->next;
		ev->end = later(ev->end, x->proc->last);
		push_event(x, ev);
	}
}

/* ---- Groups and lanes -------------------------------------------------------------------------------------- */

struct export_group *export_group_of(struct export *x, const struct export_key *key,
				     struct export_group *parent, const char *fmt, ...)
{
	struct export_proc *p = x->proc;
	struct export_group *g;
	va_list ap;

	HASH_FIND(hh, p->groups, key, sizeof(*key), g);
	if (g)
		return g;
	if (HASH_COUNT(p->groups) >= GROUPS_MAX)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (g) {
		g->key = *key;
		g->parent = parent;
		va_start(ap, fmt);
		vsnprintf(g->name, sizeof(g->name), fmt, ap);
		va_end(ap);
		HASH_ADD(hh, p->groups, key, sizeof(g->key), g);
	}
	if (!g || !HASH_ADDED(hh, g)) {
		free(g);
		x->err = -ENOMEM;
		return NULL;
	}
	return g;
}

struct export_lane *export_lane_of(struct export *x, struct export_group *g, uint32_t i)
{
	struct export_lane **lanes, *l;

	/* so that what is above has been told of before */
	if (g->parent && !export_lane_of(x, g->parent, 0))
		return NULL;
	if (i < g->nlanes)
		return g->lanes[i];
	if (i >= LANES_MAX || x->proc->nlanes >= GROUPS_MAX)
		return NULL;
	l = calloc(1, sizeof(*l));
	lanes = l ? reallocarray(g->lanes, g->nlanes + 1, sizeof(struct export_lane *)) : NULL;
	if (!lanes) {
		free(l);
		x->err = -ENOMEM;
		return NULL;
	}
	g->lanes = lanes;
	l->group = g;
	l->index = g->nlanes;
	l->last = INT64_MIN;
	g->lanes[g->nlanes++] = l;
	x->proc->nlanes++;
	x->fmt->lane(x, l);
	return l;
}

static void end_until(struct export *x, struct export_lane *l, int64_t ts)
{
	int64_t end;

	while (l->depth && l->stack[l->depth - 1].end <= ts) {
		end = l->stack[--l->depth].end;
		l->last = end;
		if (x->fmt->slice_end)
			x->fmt->slice_end(x, l, end);
	}
}

static bool has_room(const struct export_lane *l, const struct export_slice *s)
{
	const struct export_open *top = l->depth ? &l->stack[l->depth - 1] : NULL;

	return s->start >= l->last && (!top || (!top->leaf && s->end <= top->end));
}

static bool push(struct export *x, struct export_lane *l, int64_t end, bool leaf)
{
	struct export_open *stack;
	uint32_t cap;

	if (l->depth == l->cap) {
		cap = l->cap ? 2 * l->cap : 8;
		stack = reallocarray(l->stack, cap, sizeof(*stack));
		if (!stack) {
			x->err = -ENOMEM;
			return false;
		}
		l->stack = stack;
		l->cap = cap;
	}
	l->stack[l->depth++] = (struct export_open){end, leaf};
	return true;
}

struct export_lane *export_put(struct export *x, struct export_group *g,
			       const struct export_slice *s, bool leaf)
{
	struct export_lane *l;
	uint32_t i;

	for (i = 0; (l = export_lane_of(x, g, i)); i++) {
		end_until(x, l, s->start);
		if (has_room(l, s))
			break;
	}
	if (!l || !push(x, l, s->end, leaf))
		return NULL;
	l->last = s->start;
	x->fmt->slice(x, l, s);
	return l;
}

/* ---- Events that were written -------------------------------------------------------------------------------- */

struct export_seen *export_seen_of(struct export *x, uint64_t addr)
{
	struct export_seen *s;

	if (!addr)
		return NULL;
	HASH_FIND(hh, x->seen, &addr, sizeof(addr), s);
	return s;
}

static void forget_seen(struct export *x, uint32_t keep)
{
	struct export_seen *s;

	while (HASH_COUNT(x->seen) > keep) {
		s = x->seen;
		HASH_DEL(x->seen, s);
		free(s);
	}
}

static void remember(struct export *x, const struct export_event *ev, const struct export_lane *l)
{
	struct export_seen *s;

	if (!ev->type->from || !ev->addr)
		return;
	s = export_seen_of(x, ev->addr); /* other profilers use an address again */
	if (s) {
		HASH_DEL(x->seen, s);
		free(s);
	}
	s = calloc(1, sizeof(*s));
	if (s) {
		s->addr = ev->addr;
		s->lane = l;
		s->start = ev->start;
		s->end = ev->end;
		HASH_ADD(hh, x->seen, addr, sizeof(s->addr), s);
	}
	if (!s || !HASH_ADDED(hh, s)) {
		free(s);
		x->err = -ENOMEM;
		return;
	}
	forget_seen(x, SEEN_MAX);
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* Its states: slices within a leaf, from one to the next; else points. */
static void write_states(struct export *x, struct export_lane *l, const struct export_event *ev)
{
	const struct export_state *s;
	struct export_slice sub;
	int64_t at = ev->start;

	for (s = ev->states; s; s = s->next) {
		sub = (struct export_slice){
			.cat = "state", .name = s->name, .args = s->args, .args_len = s->args_len};
		sub.start = clamp(s->ts, at, ev->end);
		sub.end = s->next ? clamp(s->next->ts, sub.start, ev->end) : ev->end;
		if (!ev->type->leaf) {
			x->fmt->instant(x, l, &sub);
			continue;
		}
		at = l->last = sub.end;
		x->fmt->slice(x, l, &sub);
		if (x->fmt->slice_end)
			x->fmt->slice_end(x, l, sub.end);
	}
}

static void write_event(struct export *x, const struct export_event *ev)
{
	struct export_slice s = {.start = ev->start,
				 .end = ev->end,
				 .cat = ev->type->name,
				 .name = ev->name,
				 .ev = ev,
				 .args = ev->args,
				 .args_len = ev->args_len};
	struct export_lane *l;

	if (x->fmt->event) {
		x->events++;
		x->fmt->event(x, ev);
		return;
	}
	l = export_put(x, ev->group, &s, ev->type->leaf);
	if (!l) {
		if (!x->beyond++)
			snprintf(x->why_beyond, sizeof(x->why_beyond),
				 "too much at the same time on the track '%s'", ev->group->name);
		return;
	}
	x->events++;
	remember(x, ev, l);
	write_states(x, l, ev);
}

void export_order__write(struct export *x, bool all)
{
	struct export_order *o = x->order;
	struct export_group *g, *tmp;
	struct export_event *ev;
	uint32_t i;

	if (all)
		end_open(x);
	while (!x->err && (ev = first_of(o)) &&
	       (all || o->bytes > HELD_MAX || ev->came < x->proc->last - WINDOW_NS)) {
		heap__pop(&o->heap, before);
		o->bytes -= size_of(ev);
		write_event(x, ev);
		free_event(ev);
	}
	if (!all)
		return;
	HASH_ITER (hh, x->proc->groups, g, tmp)
		for (i = 0; i < g->nlanes; i++)
			end_until(x, g->lanes[i], INT64_MAX);
	forget_seen(x, 0);
}

void export_proc_free(struct export_proc *p)
{
	struct export_group *g, *gtmp;
	uint32_t i;

	if (!p)
		return;
	HASH_ITER (hh, p->groups, g, gtmp) {
		HASH_DEL(p->groups, g);
		for (i = 0; i < g->nlanes; i++) {
			free(g->lanes[i]->stack);
			free(g->lanes[i]);
		}
		free(g->lanes);
		free(g);
	}
	HASH_FREE_ALL(p->threads);
	free(p->host);
	free(p->comm);
	free(p);
}
