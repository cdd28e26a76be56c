// SPDX-License-Identifier: BSD-2-Clause
/*
 * Export as Chrome's JSON: complete slices (X), points (i), counters (C), arrows (s, f), names (M). Times are microseconds from
 * the trace's first, as readers take them for doubles. Written as it comes; kept are the last operations, for the arrows between ranks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export.h"
#include "recent.h"
#include "version.h"

#define LANE_FIRST 1000000000 /* tids of lanes that are no threads: no real one is as high */
#define OPS_MAX	   262144     /* operations whose other ranks may come */
#define PROCS_MAX  65536      /* processes of which more windows may come */
#define LANES_MAX  262144     /* their lanes that are no threads */

/*
 * Readers take pids for 32 bits or for doubles, and one pid for one process, whatever its node: so each process has a number of its
 * own, in all its windows.
 */
struct number {
	uint64_t addr; /* export_proc's id */
	uint32_t pid;
	UT_hash_handle hh;
};

/* A lane that is no thread: its tid is no other lane's, of whatever process, and the same in all windows of its own. */
struct row {
	uint64_t addr; /* hash of process, group and index */
	uint32_t tid;
	UT_hash_handle hh;
};

/* The part of the rank that came before in an operation. */
struct op {
	uint64_t joined;
	uint64_t pid, tid;
	int64_t start;
	UT_hash_handle hh;
};

struct chrome {
	bool any;
	uint32_t pid, last_pid; /* the process' number; the last one given */
	struct number *numbers;
	uint32_t last_tid;
	struct row *rows;
	uint64_t arrows;
	struct op *ops;
};

static void put_time(struct export *x, int64_t ns)
{
	if (!x->based) {
		x->based = true;
		x->base = ns;
	}
	xbuf__us(&x->out, ns - x->base);
}

/* {"ph":"X","pid":1,"tid":2 */
static void begin(struct export *x, char ph, uint64_t pid, uint64_t tid)
{
	struct chrome *c = x->own;

	xbuf__text(&x->out, c->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	c->any = true;
	xbuf__put(&x->out, &ph, 1);
	xbuf__lit(&x->out, "\",\"pid\":");
	xbuf__u64(&x->out, pid);
	xbuf__lit(&x->out, ",\"tid\":");
	xbuf__u64(&x->out, tid);
}

static void put_text(struct export *x, const char *key, const char *text)
{
	xbuf__lit(&x->out, ",\"");
	xbuf__text(&x->out, key);
	xbuf__lit(&x->out, "\":");
	xbuf__str(&x->out, text, strlen(text));
}

static void put_ts(struct export *x, int64_t ns)
{
	xbuf__lit(&x->out, ",\"ts\":");
	put_time(x, ns);
}

static void put_args(struct export *x, const struct export_slice *s)
{
	if (s->args_len) {
		xbuf__lit(&x->out, ",\"args\":");
		xbuf__put(&x->out, s->args, s->args_len);
	}
	xbuf__lit(&x->out, "}");
}

static void put_name(struct export *x, uint64_t tid, const char *what, const char *name)
{
	struct chrome *c = x->own;

	begin(x, 'M', c->pid, tid);
	put_text(x, "name", what);
	xbuf__lit(&x->out, ",\"args\":{\"name\":");
	xbuf__str(&x->out, name, strlen(name));
	xbuf__lit(&x->out, "}}");
}

/* ---- Processes and lanes ----------------------------------------------------------------------------- */

static void chrome_proc(struct export *x, struct export_proc *p)
{
	struct chrome *c = x->own;
	struct number *n = RECENT(c->numbers, struct number, p->id, true, PROCS_MAX, &x->err);

	if (!n)
		return;
	if (!n->pid)
		n->pid = ++c->last_pid;
	c->pid = n->pid;
}

/* Last, as its events tell what rank it is. */
static void chrome_proc_end(struct export *x, struct export_proc *p)
{
	char name[600], rank[24] = "";

	if (p->rank >= 0)
		snprintf(rank, sizeof(rank), "rank %d: ", p->rank);
	snprintf(name, sizeof(name), "%s%s%s%s, pid %d", rank, *p->comm ? p->comm : "process",
		 *p->host ? " on " : "", p->host, p->pid);
	put_name(x, 0, "process_name", name);
}

static uint32_t row_tid(struct export *x, const struct export_lane *l)
{
	const struct export_key *key = &l->group->key;
	uint64_t id = fnv_more(x->proc->id, key, sizeof(*key));
	struct chrome *c = x->own;
	struct row *r;

	id = fnv_more(id, &l->index, sizeof(l->index));
	r = RECENT(c->rows, struct row, id, true, LANES_MAX, &x->err);
	if (!r)
		return 0;
	if (!r->tid)
		r->tid = LANE_FIRST + c->last_tid++;
	return r->tid;
}

static void chrome_lane(struct export *x, struct export_lane *l)
{
	const struct export_group *g = l->group;
	bool thread = g->key.kind == EXPORT_THREAD && !l->index && g->key.tid < LANE_FIRST;

	if (g->key.kind == EXPORT_PROCESS) {
		l->id = (uint32_t)x->proc->pid;
		return;
	}
	l->id = thread ? (uint32_t)g->key.tid : row_tid(x, l);
	put_name(x, l->id, "thread_name", g->name);
}

/* ---- Slices ------------------------------------------------------------------------------------------ */

static void put_arrow(struct export *x, char ph, const char *what, uint64_t id, uint64_t pid,
		      uint64_t tid, int64_t ts)
{
	begin(x, ph, pid, tid);
	put_text(x, "name", what);
	put_text(x, "cat", what);
	xbuf__lit(&x->out, ",\"id\":");
	xbuf__u64(&x->out, id);
	if (ph == 'f')
		xbuf__lit(&x->out, ",\"bp\":\"e\"");
	put_ts(x, ts);
	xbuf__lit(&x->out, "}");
}

static void arrow_from_parent(struct export *x, const struct export_lane *l,
			      const struct export_event *ev)
{
	const struct export_seen *s = ev->type->to ? export_seen_of(x, ev->parent) : NULL;
	struct chrome *c = x->own;
	int64_t ts = ev->start;

	if (!s || s->lane == l)
		return;
	ts = ts < s->start ? s->start : ts > s->end ? s->end : ts;
	if (ts > ev->end) /* it was over when its parent began, and no arrow goes back in time */
		return;
	put_arrow(x, 's', "child", ++c->arrows, c->pid, s->lane->id, ts);
	put_arrow(x, 'f', "child", c->arrows, c->pid, l->id, ts > ev->start ? ts : ev->start);
}

/* From the rank that came before to this one, as their files come. */
static void arrow_to_rank(struct export *x, const struct export_lane *l,
			  const struct export_event *ev)
{
	struct chrome *c = x->own;
	struct op *op, *old, now = {ev->joined, c->pid, l->id, ev->start, {0}};
	bool first;

	HASH_FIND(hh, c->ops, &ev->joined, sizeof(ev->joined), op);
	if (op) {
		first = op->start <= now.start;
		c->arrows++;
		old = first ? op : &now;
		put_arrow(x, 's', "collective", c->arrows, old->pid, old->tid, old->start);
		old = first ? &now : op;
		put_arrow(x, 'f', "collective", c->arrows, old->pid, old->tid, old->start);
		op->pid = now.pid;
		op->tid = now.tid;
		op->start = now.start;
		return;
	}
	if (HASH_COUNT(c->ops) >= OPS_MAX) {
		old = c->ops;
		HASH_DEL(c->ops, old);
		free(old);
	}
	op = malloc(sizeof(*op));
	if (op) {
		*op = now;
		HASH_ADD(hh, c->ops, joined, sizeof(op->joined), op);
	}
	if (!op || !HASH_ADDED(hh, op)) {
		free(op);
		x->err = -ENOMEM;
	}
}

static void chrome_slice(struct export *x, struct export_lane *l, const struct export_slice *s)
{
	struct chrome *c = x->own;

	begin(x, 'X', c->pid, l->id);
	put_text(x, "name", s->name);
	put_text(x, "cat", s->cat);
	put_ts(x, s->start);
	xbuf__lit(&x->out, ",\"dur\":");
	xbuf__us(&x->out, s->end - s->start);
	put_args(x, s);
	if (!s->ev)
		return;
	arrow_from_parent(x, l, s->ev);
	if (s->ev->joined)
		arrow_to_rank(x, l, s->ev);
}

static void chrome_instant(struct export *x, struct export_lane *l, const struct export_slice *s)
{
	struct chrome *c = x->own;

	begin(x, 'i', c->pid, l->id);
	put_text(x, "name", s->name);
	put_text(x, "cat", s->cat);
	put_text(x, "s", l->group->key.kind == EXPORT_PROCESS ? "p" : "t");
	put_ts(x, s->start);
	put_args(x, s);
}

static void chrome_counter(struct export *x, struct export_group *flow, const char *name,
			   const char *unit, int64_t ts, double value)
{
	struct chrome *c = x->own;
	char text[200], num[48];

	begin(x, 'C', c->pid, 0);
	snprintf(text, sizeof(text), "%s %s", flow->name, name);
	put_text(x, "name", text);
	put_ts(x, ts);
	xbuf__lit(&x->out, ",\"args\":{");
	xbuf__str(&x->out, unit, strlen(unit));
	snprintf(num, sizeof(num), ":%.3f}}", value);
	xbuf__text(&x->out, num);
}

static void chrome_args(struct export *x, const struct json_node *rec, struct xbuf *b)
{
	xbuf__node(b, &x->doc, rec);
}

static int chrome_begin(struct export *x)
{
	x->own = calloc(1, sizeof(struct chrome));
	xbuf__lit(&x->out, "{\"traceEvents\":[");
	return x->own ? 0 : -ENOMEM;
}

static int chrome_end(struct export *x)
{
	/* so that a time of the trace can be found again */
	xbuf__lit(&x->out, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":"
			   "\"ncclscope " NCCLSCOPE_VERSION "\",\"base_us\":\"");
	xbuf__us(&x->out, x->base);
	xbuf__lit(&x->out, "\"}}\n");
	return 0;
}

static void chrome_free(struct export *x)
{
	struct chrome *c = x->own;

	HASH_FREE_ALL(c->numbers);
	HASH_FREE_ALL(c->rows);
	HASH_FREE_ALL(c->ops);
	free(c);
	x->own = NULL;
}

const struct export_format export_chrome = {
	.name = "chrome",
	.from_zero = true,
	.begin = chrome_begin,
	.end = chrome_end,
	.free = chrome_free,
	.proc = chrome_proc,
	.proc_end = chrome_proc_end,
	.args = chrome_args,
	.lane = chrome_lane,
	.slice = chrome_slice,
	.instant = chrome_instant,
	.counter = chrome_counter,
};
