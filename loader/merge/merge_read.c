// SPDX-License-Identifier: BSD-2-Clause
/* What lines tell before they can be merged: whose they are, and what they are for. See merge_read.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "fnv.h"
#include "log.h"
#include "merge_read.h"
#include "newer.h"
#include "seq.h"

#define HOST_LEN       256
#define RECORDINGS_MAX 65536

/* ---- Processes ------------------------------------------------------------------------------------------- */

static int add_boot(struct merge *m, const char *id)
{
	struct merge_boot *b = calloc(1, sizeof(*b));

	if (b) {
		memcpy(b->id, id, MERGE_UUID);
		b->node = m->nnodes;
		HASH_ADD(hh, m->boots, id, MERGE_UUID, b);
	}
	if (b && HASH_ADDED(hh, b))
		return 0;
	free(b);
	return -ENOMEM;
}

static uint32_t new_node(struct merge *m, const char *boot, node_t host, struct merge_real real)
{
	struct merge_node *nodes = reallocarray(m->nodes, m->nnodes + 1, sizeof(*nodes)), *n;
	uint32_t len = host && host->kind == JSON_KIND_STR ? host->len : 0;

	if (!nodes) {
		m->err = -ENOMEM;
		return MERGE_NO_NODE;
	}
	m->nodes = nodes;
	n = &nodes[m->nnodes];
	*n = (struct merge_node){
		.base = real,
		.first = real,
		.last = real,
		.first_ts = INT64_MAX,
		.last_ts = INT64_MIN,
		.host = strndup(len ? host->s : "", len < HOST_LEN ? len : HOST_LEN)};
	if (!n->host || add_boot(m, boot)) {
		free(n->host);
		m->err = -ENOMEM;
		return MERGE_NO_NODE;
	}
	memcpy(n->boot, boot, MERGE_UUID);
	return m->nnodes++;
}

static bool get_real(const struct merge_reader *rd, node_t obj, const char *error,
		     struct merge_real *real)
{
	*real = (struct merge_real){0};
	get_point(rd, obj, error, &real->error);
	return jn_offset(get(rd, obj, "realtimeOffset"), &real->offset);
}

/* Files come in any order. */
static void tell_real(struct merge_reader *rd, int64_t ts, struct merge_real real)
{
	struct merge_node *n = &rd->m->nodes[rd->proc->node];

	if (ts < n->first_ts) {
		n->first = real;
		n->first_ts = ts;
	}
	if (ts > n->last_ts) {
		n->last = real;
		n->last_ts = ts;
	}
}

static void take_clock(struct merge_reader *rd, node_t rec)
{
	struct merge_real real;
	int64_t ts;

	if (!get_point(rd, rec, "ts", &ts) || !get_real(rd, rec, "error", &real))
		return;
	if (rd->began >= ts) /* the header is older than any of these */
		rd->began = ts - 1;
	tell_real(rd, ts, real);
}

static uint32_t node_of(struct merge_reader *rd, node_t rec)
{
	node_t boot = get(rd, rec, "bootId"), clock = get(rd, rec, "clock");
	struct merge *m = rd->m;
	struct merge_boot *known;

	if (!boot || boot->kind != JSON_KIND_STR || boot->len != MERGE_UUID ||
	    !get_real(rd, clock, "realtimeError", &rd->real))
		return MERGE_NO_NODE;
	HASH_FIND(hh, m->boots, boot->s, MERGE_UUID, known);
	if (known)
		return known->node;
	if (m->nnodes == MERGE_NODES_MAX)
		return MERGE_NO_NODE;
	return new_node(m, boot->s, get(rd, rec, "host"), rd->real);
}

static struct merge_proc *new_proc(struct merge_reader *rd)
{
	struct merge_proc *p;

	if (rd->m->recordings == RECORDINGS_MAX) {
		pr_err("'%s' and those before it are more than %d recordings of processes\n",
		       rd->path, RECORDINGS_MAX);
		rd->m->err = -E2BIG;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		rd->m->err = -ENOMEM;
		return NULL;
	}
	p->node = MERGE_NO_NODE;
	p->pid = p->host_pid = -1;
	p->started = -1;
	p->when = COPIES_SPAN_NONE;
	if (rd->proc)
		rd->proc->next = p;
	else
		rd->first = p;
	rd->m->recordings++;
	return rd->proc = p;
}

static int end_proc(struct merge_reader *rd)
{
	const struct merge_proc *p = rd->proc;
	const char *boot;
	int err;

	copies__end(&rd->trace, rd->path);
	if (!p || p->is_copy || p->node == MERGE_NO_NODE)
		return 0;
	if (rd->began != INT64_MAX)
		tell_real(rd, rd->began, rd->real);
	boot = rd->m->nodes[p->node].boot;
	err = copies__recorded(&rd->m->copies, fnv_more(FNV_BEGIN, boot, MERGE_UUID), p->host_pid,
			       &p->when, rd->path);
	rd->m->err = rd->m->err ?: err;
	return err;
}

/* What cannot be merged. */
static int refuse(const struct merge_reader *rd, node_t rec)
{
	uint64_t schema = newer__schema(&rd->m->doc, rec);

	if (schema) {
		pr_err("'%s' is of schema %" PRIu64 ", this ncclscope knows %d: update it\n",
		       rd->path, schema, NEWER_KNOWN);
		return -ENOTSUP;
	}
	if (get(rd, get(rd, rec, "clock"), "merged")) {
		pr_err("'%s' is merged already: merge the traces that it was made of, all at "
		       "once\n",
		       rd->path);
		return -EALREADY;
	}
	return 0;
}

static int take_header(struct merge_reader *rd, node_t rec)
{
	struct merge_proc *p;
	int err = refuse(rd, rec);

	if (err)
		return err;
	messages__forget(rd);
	p = end_proc(rd) ? NULL : new_proc(rd);
	if (!p)
		return rd->m->err;
	rd->common = seq__of_header(&rd->m->doc, rec);
	p->pid = get_i32(rd, rec, "pid", -1);
	p->host_pid = get_i32(rd, rec, "hostPid", p->pid);
	get_point(rd, rec, "startTime", &p->started);
	p->node = node_of(rd, rec);
	if (p->node == MERGE_NO_NODE) {
		rd->m->headless++;
		return rd->m->err;
	}
	rd->offset = rd->m->nodes[p->node].base.offset;
	rd->began = INT64_MAX;
	return 0;
}

/* ---- Lines ------------------------------------------------------------------------------------------------ */

static void take_event(struct merge_reader *rd, node_t rec)
{
	node_t type = get(rd, rec, "type");
	bool pxn = get(rd, rec, "isPxn");
	int64_t start, stop;

	if (!get_point(rd, get(rd, rec, "start"), "ts", &start))
		return;
	if (jn_is(type, "ncclProfileColl") || jn_is(type, "ncclProfileP2p"))
		ends__operation(rd, rec);
	if (pxn && jn_is(type, "ncclProfileProxyOp"))
		ends__pxn_op(rd, rec);
	if (!get_point(rd, get(rd, rec, "stop"), "ts", &stop)) {
		move_to(rd, start);
		return;
	}
	move_to(rd, stop);
	copies__extend(&rd->proc->when, stop);
	if (pxn)
		return;
	if (jn_is(type, "ncclProfileCollApi"))
		messages__call(rd, rec, start);
	if (jn_is(type, "ncclProfileProxyStep"))
		messages__step(rd, rec, start, stop);
	else if (jn_is(type, "ncclProfileProxyOp"))
		messages__proxy_op(rd, rec, start, stop);
	else if (jn_is(type, "ncclProfileColl") || jn_is(type, "ncclProfileP2p"))
		messages__operation(rd, rec);
}

static int learn_line(void *reader, const char *s, size_t len, bool whole)
{
	struct merge_reader *rd = reader;
	int err = merge_parse(rd->m, &s, &len, whole);
	node_t rec = &rd->m->doc.nodes[0], kind;
	int what;

	if (err)
		return err == -ENOMEM ? err : 0;
	kind = get(rd, rec, "recordType");
	if (jn_is(kind, "header"))
		return take_header(rd, rec) ?: copies__begin(&rd->trace, s, len);
	if (!rd->proc) {
		rd->m->headless++;
		if (!new_proc(rd))
			return rd->m->err;
	}
	what = copies__line(&rd->m->copies, &rd->trace, s, len, rd->path);
	if (what < 0)
		return rd->m->err = what;
	if (what == COPIES_LEAVE)
		rd->proc->is_copy = true; /* and its header, which has been taken already */
	if (what == COPIES_LEAVE || rd->proc->node == MERGE_NO_NODE)
		return 0;
	if (jn_is(kind, "event"))
		take_event(rd, rec);
	else if (jn_is(kind, "state"))
		messages__state(rd, rec);
	else if (jn_is(kind, "flow"))
		ends__flow(rd, rec);
	else if (jn_is(kind, "clock"))
		take_clock(rd, rec);
	return rd->m->err;
}

static int add_stream(struct merge *m, uint32_t nr)
{
	struct merge_proc **list;

	if (nr < m->nstreams)
		return 0;
	list = reallocarray(m->streams, nr + 1, sizeof(struct merge_proc *));
	if (!list)
		return -ENOMEM;
	memset(list + m->nstreams, 0, (nr + 1 - m->nstreams) * sizeof(struct merge_proc *));
	m->streams = list;
	m->nstreams = nr + 1;
	return 0;
}

static void *begin_stream(void *to, const char *path, uint32_t nr)
{
	struct merge *m = to;
	struct merge_reader *rd = calloc(1, sizeof(*rd));

	if (!rd || add_stream(m, nr)) {
		free(rd);
		return NULL;
	}
	rd->m = m;
	rd->all = m->learner;
	rd->path = path;
	rd->stream = nr;
	rd->now = INT64_MIN;
	return rd;
}

static int64_t reader_now(const void *reader)
{
	const struct merge_reader *rd = reader;

	return rd->now;
}

static void end_stream(void *reader)
{
	struct merge_reader *rd = reader;

	if (rd->proc && rd->proc->node != MERGE_NO_NODE && rd->now > INT64_MIN)
		rd->m->err = rd->m->err ?: merge_clock__time(rd->m->clock, rd->proc->node, rd->now);
	end_proc(rd);
	rd->m->streams[rd->stream] = rd->first;
	messages__forget(rd);
	copies__trace_free(&rd->trace);
	free(rd);
}

static int by_process(const void *pa, const void *pb)
{
	const struct merge_proc *a = *(const struct merge_proc *const *)pa;
	const struct merge_proc *b = *(const struct merge_proc *const *)pb;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->host_pid != b->host_pid)
		return a->host_pid < b->host_pid ? -1 : 1;
	return (a->started > b->started) - (a->started < b->started);
}

/* A process has a recording of each window. */
static int count_procs(struct merge *m)
{
	const struct merge_proc **all = calloc(m->recordings + 1, sizeof(*all)), *p;
	uint32_t n = 0, i;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < m->nstreams; i++)
		for (p = m->streams[i]; p; p = p->next)
			if (!p->is_copy)
				all[n++] = p;
	qsort(all, n, sizeof(*all), by_process);
	for (i = 0; i < n; i++) {
		if (i && merge_same_proc(all[i], all[i - 1]))
			continue;
		m->procs++;
		if (all[i]->node != MERGE_NO_NODE)
			m->nodes[all[i]->node].procs++;
	}
	free(all);
	return 0;
}

int merge_read(struct merge *m, struct streams *files)
{
	static const struct streams_ops ops = {.what = "Reading",
					       .begin = begin_stream,
					       .line = learn_line,
					       .now = reader_now,
					       .end = end_stream};
	struct merge_learner all = {0};
	int err;

	m->learner = &all;
	err = streams__read(files, &ops, m);
	m->learner = NULL;
	messages__settle(m, &all);
	ends__settle(m, &all);
	m->err = m->err ?: count_procs(m);
	return m->err ?: err;
}
