// SPDX-License-Identifier: BSD-2-Clause
/*
 * Export as time by call path, for flame graphs: process, NCCL's events as they call each other, the state of the event, and what its
 * thread did meanwhile. Kept are the paths, of which there are few however long the trace is, and events whose children may come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export.h"
#include "version.h"

#define CALLS_MAX 65536	     /* of a process, whose children may come */
#define PATHS_MAX (1u << 18) /* what is deeper then counts for what is above */
#define DEPTH_MAX 64	     /* likewise, as stacks are put by recursion */
#define WHY_MAX	  4

/* A place in the tree of paths. */
struct path {
	struct {
		uint32_t parent; /* 0: none */
		char name[80];
	} key;
	uint32_t index, depth, frame;
	int64_t ns;
	UT_hash_handle hh;
};

/* A name, whatever path it is in; for speedscope. */
struct frame {
	char name[80];
	uint32_t index;
	UT_hash_handle hh;
};

/* What the kernel did to the thread, as far as an event tells. */
struct shares {
	int64_t on, runq, blocked, unknown;
	struct {
		char why[24];
		int64_t ns;
	} in[WHY_MAX];
};

/* An event whose own time is not known yet: what its children do not cover. */
struct call {
	uint64_t addr;
	int64_t start, end, self;
	int64_t covered, until; /* what children cover: from when, and until when */
	uint32_t path;
	struct shares shares;
	UT_hash_handle hh;
};

struct paths {
	struct path *by_key;
	struct path **by_index; /* from 1 on */
	uint32_t n, cap, root;
	struct frame *frames;
	struct call *calls;
};

/* ---- The tree -------------------------------------------------------------------------------------------- */

static bool grow(struct paths *ps)
{
	uint32_t cap = ps->cap ? 2 * ps->cap : 256;
	struct path **by_index;

	if (ps->n + 1 < ps->cap)
		return true;
	by_index = reallocarray(ps->by_index, cap, sizeof(struct path *));
	if (!by_index)
		return false;
	ps->by_index = by_index;
	ps->cap = cap;
	return true;
}

/* The place of a name below another; that one itself if there are too many, or they are too deep. */
static uint32_t path_of(struct export *x, uint32_t parent, const char *name)
{
	struct paths *ps = x->own;
	struct path *p, look = {.key = {.parent = parent}};
	char *c;

	snprintf(look.key.name, sizeof(look.key.name), "%s", name);
	for (c = look.key.name; *c; c++) {
		if (*c == ';') /* which ends a name in collapsed stacks */
			*c = ':';
		else if ((unsigned char)*c < ' ' ||
			 *c == 0x7f) /* which could end a line, or steer a terminal */
			*c = '?';
	}
	HASH_FIND(hh, ps->by_key, &look.key, sizeof(look.key), p);
	if (p)
		return p->index;
	if (parent && (ps->n >= PATHS_MAX || ps->by_index[parent]->depth >= DEPTH_MAX))
		return parent;
	p = grow(ps) ? calloc(1, sizeof(*p)) : NULL;
	if (p) {
		p->key = look.key;
		p->index = ps->n + 1;
		p->depth = parent ? ps->by_index[parent]->depth + 1 : 1;
		HASH_ADD(hh, ps->by_key, key, sizeof(p->key), p);
	}
	if (!p || !HASH_ADDED(hh, p)) {
		free(p);
		x->err = -ENOMEM;
		return parent;
	}
	ps->by_index[++ps->n] = p;
	return p->index;
}

static void add_time(struct export *x, uint32_t path, int64_t ns)
{
	struct paths *ps = x->own;

	if (path && ns > 0 && ps->by_index[path]->ns < INT64_MAX / 2)
		ps->by_index[path]->ns += ns < INT64_MAX / 4 ? ns : INT64_MAX / 4;
}

/* ---- Threads' states ----------------------------------------------------------------------------------------- */

/* As part of @of; without overflow, as 128 bits have room for any two. */
static int64_t part_of(int64_t ns, int64_t part, int64_t of)
{
	return of > 0 ? (int64_t)((__int128)ns * part / of) : 0;
}

/* In the proportion in which the whole event had them: what is left of rounding goes to the path itself. */
static void add_shared(struct export *x, uint32_t path, int64_t ns, const struct shares *s)
{
	int64_t of = s->on + s->runq + s->blocked + s->unknown, left = ns, part, asleep, some;
	char name[40];
	int i;

	if (ns <= 0)
		return;
	if (of > 0) {
		part = part_of(ns, s->on, of);
		add_time(x, path_of(x, path, "[on CPU]"), part);
		left -= part;
		part = part_of(ns, s->runq, of);
		add_time(x, path_of(x, path, "[runnable]"), part);
		left -= part;
		asleep = part_of(ns, s->blocked, of);
		left -= asleep;
		for (i = 0; i < WHY_MAX && *s->in[i].why; i++) {
			some = part_of(ns, s->in[i].ns, of);
			some = some < asleep ? some : asleep;
			snprintf(name, sizeof(name), "[in %s]", s->in[i].why);
			add_time(x, path_of(x, path, name), some);
			asleep -= some;
		}
		if (asleep)
			add_time(x, path_of(x, path, "[asleep]"), asleep);
	}
	add_time(x, path, left);
}

static void paths_args(struct export *x, const struct json_node *rec, struct xbuf *b)
{
	const struct json_node *sched = rec_get(x, rec, "sched"), *n, *list, *why;
	struct shares s = {.on = rec_span(x, sched, "onCpu"),
			   .runq = rec_span(x, sched, "runq"),
			   .blocked = rec_span(x, sched, "blocked"),
			   .unknown = rec_span(x, sched, "unknown")};
	uint32_t i, k = 0;

	list = rec_get(x, sched, "blockedIn");
	for (i = list && list->kind == JSON_KIND_ARR ? list->first : 0; i && k < WHY_MAX;
	     i = x->doc.nodes[i].next) {
		n = &x->doc.nodes[i];
		why = rec_get(x, n, "why");
		if (!why || why->kind != JSON_KIND_STR || why->len >= sizeof(s.in[k].why))
			continue;
		memcpy(s.in[k].why, why->s, why->len);
		s.in[k++].ns = rec_span(x, n, "us");
	}
	if (sched)
		xbuf__put(b, &s, sizeof(s));
}

/* ---- Events ---------------------------------------------------------------------------------------------------- */

static void end_call(struct export *x, struct call *c)
{
	struct paths *ps = x->own;

	HASH_DEL(ps->calls, c);
	add_shared(x, c->path, c->self, &c->shares);
	free(c);
}

static int64_t length(int64_t from, int64_t to)
{
	return to > from ? to - from : 0;
}

/*
 * What a child takes of its parent's own time; two at a time take it once. One may begin before those that came first, as a kernel does
 * before ProxyOps; what lies between two of these is not looked for.
 */
static void cover(struct call *c, const struct export_event *child)
{
	int64_t from = child->start > c->start ? child->start : c->start;
	int64_t to = child->end < c->end ? child->end : c->end;

	if (to <= from)
		return;
	if (c->covered == c->until)
		c->covered = c->until = from;
	c->self -= length(from, to < c->covered ? to : c->covered);
	c->self -= length(from > c->until ? from : c->until, to);
	c->covered = from < c->covered ? from : c->covered;
	c->until = to > c->until ? to : c->until;
}

static struct call *begin_call(struct export *x, const struct export_event *ev, uint32_t path,
			       const struct shares *s)
{
	struct paths *ps = x->own;
	struct call *c;

	HASH_FIND(hh, ps->calls, &ev->addr, sizeof(ev->addr), c);
	if (c) /* other profilers use an address again */
		end_call(x, c);
	c = calloc(1, sizeof(*c));
	if (c) {
		c->addr = ev->addr;
		c->path = path;
		c->end = ev->end;
		c->start = ev->start;
		c->self = ev->end - ev->start;
		c->shares = *s;
		HASH_ADD(hh, ps->calls, addr, sizeof(c->addr), c);
	}
	if (!c || !HASH_ADDED(hh, c)) {
		free(c);
		x->err = -ENOMEM;
		return NULL;
	}
	if (HASH_COUNT(ps->calls) > CALLS_MAX)
		end_call(x, ps->calls);
	return c;
}

/* From one to the next; what is before the first is the event's own. */
static void add_states(struct export *x, const struct export_event *ev, uint32_t path,
		       const struct shares *s)
{
	const struct export_state *st;
	int64_t at = ev->start, to, from;

	for (st = ev->states; st; st = st->next) {
		from = st->ts > at ? st->ts : at;
		from = from < ev->end ? from : ev->end;
		if (st == ev->states)
			add_shared(x, path, from - ev->start, s);
		to = st->next && st->next->ts < ev->end ? st->next->ts : ev->end;
		add_shared(x, path_of(x, path, st->name), to - from, s);
		at = to > from ? to : from;
	}
}

static void paths_event(struct export *x, const struct export_event *ev)
{
	struct paths *ps = x->own;
	struct call *parent = NULL;
	struct shares s = {0};
	uint32_t path;
	char name[128];

	if (!ps->root) {
		snprintf(name, sizeof(name), "rank %d, %.30s[%d]%s%.30s", x->proc->rank,
			 x->proc->comm, x->proc->pid, *x->proc->host ? " on " : "", x->proc->host);
		ps->root = path_of(x, 0, name);
	}
	if (ev->args_len == sizeof(s))
		memcpy(&s, ev->args, sizeof(s));
	HASH_FIND(hh, ps->calls, &ev->parent, sizeof(ev->parent), parent);
	path = path_of(x, parent && ev->parent ? parent->path : ps->root, ev->name);
	if (parent && ev->parent)
		cover(parent, ev);
	if (ev->type->leaf && ev->states)
		add_states(x, ev, path, &s);
	else if (ev->addr)
		begin_call(x, ev, path, &s);
	else
		add_shared(x, path, ev->end - ev->start, &s);
}

static void paths_proc(struct export *x, struct export_proc *p)
{
	(void)p;
	((struct paths *)x->own)->root = 0;
}

static void paths_proc_end(struct export *x, struct export_proc *p)
{
	struct paths *ps = x->own;

	(void)p;
	while (ps->calls)
		end_call(x, ps->calls);
}

static int paths_begin(struct export *x)
{
	x->own = calloc(1, sizeof(struct paths));
	return x->own ? 0 : -ENOMEM;
}

static void paths_free(struct export *x)
{
	struct paths *ps = x->own;

	HASH_FREE_ALL(ps->calls);
	HASH_FREE_ALL(ps->by_key);
	HASH_FREE_ALL(ps->frames);
	free(ps->by_index);
	free(ps);
	x->own = NULL;
}

/* ---- Collapsed stacks ------------------------------------------------------------------------------------------- */

static void put_stack(struct export *x, uint32_t path)
{
	struct paths *ps = x->own;
	const struct path *p = ps->by_index[path];

	if (p->key.parent) {
		put_stack(x, p->key.parent);
		xbuf__lit(&x->out, ";");
	}
	xbuf__text(&x->out, p->key.name);
}

static int collapsed_end(struct export *x)
{
	struct paths *ps = x->own;
	uint32_t i;

	for (i = 1; i <= ps->n; i++) {
		if (!ps->by_index[i]->ns)
			continue;
		put_stack(x, i);
		xbuf__lit(&x->out, " ");
		xbuf__u64(&x->out, (uint64_t)ps->by_index[i]->ns);
		xbuf__lit(&x->out, "\n");
		export_flush(x, false);
	}
	return 0;
}

/* ---- speedscope --------------------------------------------------------------------------------------------------- */

static uint32_t frame_of(struct export *x, const char *name)
{
	struct paths *ps = x->own;
	struct frame *f;

	HASH_FIND_STR(ps->frames, name, f);
	if (f)
		return f->index;
	f = calloc(1, sizeof(*f));
	if (f) {
		snprintf(f->name, sizeof(f->name), "%s", name);
		f->index = HASH_COUNT(ps->frames);
		HASH_ADD_STR(ps->frames, name, f);
	}
	if (!f || !HASH_ADDED(hh, f)) {
		free(f);
		x->err = -ENOMEM;
		return 0;
	}
	return f->index;
}

static void put_sample(struct export *x, uint32_t path)
{
	struct paths *ps = x->own;
	const struct path *p = ps->by_index[path];

	if (p->key.parent) {
		put_sample(x, p->key.parent);
		xbuf__lit(&x->out, ",");
	}
	xbuf__u64(&x->out, p->frame);
}

static uint32_t root_of(const struct paths *ps, uint32_t path)
{
	while (ps->by_index[path]->key.parent)
		path = ps->by_index[path]->key.parent;
	return path;
}

/* The stacks below a process, or their times. */
static uint64_t put_samples(struct export *x, const uint32_t *roots, uint32_t root, bool weights)
{
	struct paths *ps = x->own;
	uint64_t total = 0;
	bool any = false;
	uint32_t i;

	for (i = 1; i <= ps->n; i++) {
		if (roots[i] != root || !ps->by_index[i]->ns)
			continue;
		xbuf__text(&x->out, any ? "," : "");
		any = true;
		total += (uint64_t)ps->by_index[i]->ns;
		if (weights) {
			xbuf__u64(&x->out, (uint64_t)ps->by_index[i]->ns);
			continue;
		}
		xbuf__lit(&x->out, "[");
		put_sample(x, i);
		xbuf__lit(&x->out, "]");
		export_flush(x, false);
	}
	return total;
}

static void put_profile(struct export *x, const uint32_t *roots, uint32_t root)
{
	struct paths *ps = x->own;
	const char *name = ps->by_index[root]->key.name;
	uint64_t total;

	xbuf__lit(&x->out, "\n{\"type\":\"sampled\",\"name\":");
	xbuf__str(&x->out, name, strlen(name));
	xbuf__lit(&x->out, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"samples\":[");
	put_samples(x, roots, root, false);
	xbuf__lit(&x->out, "],\"weights\":[");
	total = put_samples(x, roots, root, true);
	xbuf__lit(&x->out, "],\"endValue\":");
	xbuf__u64(&x->out, total);
	xbuf__lit(&x->out, "}");
}

static int speedscope_end(struct export *x)
{
	struct paths *ps = x->own;
	uint32_t *roots = calloc(ps->n + 1, sizeof(*roots)), i;
	struct frame *f, *tmp;
	const char *comma = "";

	if (!roots)
		return -ENOMEM;
	xbuf__lit(&x->out,
		  "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		  "\"exporter\":\"ncclscope " NCCLSCOPE_VERSION "\",\"shared\":{\"frames\":[");
	for (i = 1; i <= ps->n; i++) {
		ps->by_index[i]->frame = frame_of(x, ps->by_index[i]->key.name);
		roots[i] = root_of(ps, i);
	}
	HASH_ITER (hh, ps->frames, f, tmp) {
		xbuf__text(&x->out, f->index ? ",\n{\"name\":" : "\n{\"name\":");
		xbuf__str(&x->out, f->name, strlen(f->name));
		xbuf__lit(&x->out, "}");
	}
	xbuf__lit(&x->out, "\n]},\"profiles\":[");
	for (i = 1; i <= ps->n; i++) {
		if (roots[i] != i)
			continue;
		xbuf__text(&x->out, comma);
		comma = ",";
		put_profile(x, roots, i);
	}
	xbuf__lit(&x->out, "\n]}\n");
	free(roots);
	return 0;
}

const struct export_format export_collapsed = {
	.name = "collapsed",
	.begin = paths_begin,
	.end = collapsed_end,
	.free = paths_free,
	.proc = paths_proc,
	.proc_end = paths_proc_end,
	.args = paths_args,
	.event = paths_event,
};

const struct export_format export_speedscope = {
	.name = "speedscope",
	.begin = paths_begin,
	.end = speedscope_end,
	.free = paths_free,
	.proc = paths_proc,
	.proc_end = paths_proc_end,
	.args = paths_args,
	.event = paths_event,
};
