// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each line again, in one clock: its points in time are moved, spans and all else stay as they are to the byte. Added are a
 * header's clock.merged, the origin of PXN events, and who is at the other end of a connection.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "log.h"
#include "merge.h"

#define FLUSH_BYTES (256u << 10)
#define TIME_MAX    (INT64_MAX / 3) /* as in the format: 97 years */

struct writer {
	struct merge *m;
	const char *path;
	uint64_t line;
	uint32_t stream;
	const struct merge_proc *proc;
	const char *from;		  /* what of the line has not been copied yet */
	bool bad;			  /* a time cannot be moved */
	const struct json_node *also_at;  /* behind this value ... */
	const struct merge_end *also_end; /* ... comes who is at the other end */
	bool also_rank;
};

typedef const struct json_node *node_t;

/* ---- Parts of a line --------------------------------------------------------------------------------------- */

static void copy_to(struct writer *w, const char *to)
{
	xbuf__put(&w->m->out, w->from, (size_t)(to - w->from));
	w->from = to;
}

static void put_time(struct writer *w, node_t n, int64_t ns)
{
	copy_to(w, n->s);
	xbuf__us(&w->m->out, ns);
	w->from = n->s + n->len;
}

static void put_text(struct xbuf *b, const char *s)
{
	xbuf__str(b, s, strlen(s));
}

static void put_hex(struct xbuf *b, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "\"0x%" PRIx64 "\"", v);
	xbuf__text(b, text);
}

/* Who is at the other end of a connection; @rank: if it is known. */
static void put_end(struct writer *w)
{
	const struct merge_end *e = w->also_end;
	struct xbuf *b = &w->m->out;

	if (w->also_rank) {
		xbuf__lit(b, ",\"peerRank\":");
		xbuf__u64(b, (uint64_t)e->rank);
	}
	xbuf__lit(b, ",\"peerHost\":");
	put_text(b, w->m->nodes[e->proc->node].host);
	if (e->proc->pid >= 0) {
		xbuf__lit(b, ",\"peerPid\":");
		xbuf__u64(b, (uint64_t)e->proc->pid);
	}
}

static void move_time(void *to, node_t n)
{
	struct writer *w = to;
	int64_t ns, shift = w->m->nodes[w->proc->node].shift;

	if (n->kind == JSON_KIND_NULL)
		return;
	if (!jn_time(n, true, &ns) || __builtin_add_overflow(ns, shift, &ns) || ns < 0 ||
	    ns > TIME_MAX) {
		w->bad = true;
		return;
	}
	put_time(w, n, ns);
	if (n == w->also_at)
		put_end(w);
}

/* ---- Lines ------------------------------------------------------------------------------------------------- */

static const char *const by_names[] = {"reference", "messages", "realtime"};

static void put_merged(struct writer *w)
{
	const struct merge_node *n = &w->m->nodes[w->proc->node];
	const struct merge_node *ref = &w->m->nodes[w->m->ref];
	struct xbuf *b = &w->m->out;

	xbuf__lit(b, ",\"merged\":{\"host\":");
	put_text(b, ref->host);
	xbuf__lit(b, ",\"bootId\":");
	put_text(b, ref->boot);
	xbuf__lit(b, ",\"shift\":");
	xbuf__us(b, n->shift);
	if (n->fit.error >= 0) {
		xbuf__lit(b, ",\"error\":");
		xbuf__us(b, n->fit.error);
	}
	xbuf__lit(b, ",\"by\":");
	put_text(b, by_names[n == ref ? 0 : n->fit.error >= 0 ? 1 : 2]);
	xbuf__lit(b, "}");
}

/* What goes with an offset that has become the reference's; it comes behind that in what we write. */
static void put_error(struct writer *w, node_t offset, node_t error)
{
	if (error && error->s > offset->s)
		put_time(w, error, w->m->nodes[w->m->ref].offset_error);
}

/* Of all nodes the same real clock: the reference's. */
static void put_header(struct writer *w, node_t rec)
{
	const struct merge *m = w->m;
	node_t clock = jn_get(&m->doc, rec, "clock");
	node_t real = jn_get(&m->doc, clock, "realtimeOffset");

	node_t error = jn_get(&m->doc, clock, "realtimeError");

	if (!real || w->proc->node == MERGE_NO_NODE)
		return;
	put_time(w, real, m->nodes[m->ref].offset);
	put_merged(w);
	put_error(w, real, error);
}

/* How the reference's real clock went is in that node's own records. */
static void put_clock(struct writer *w, node_t rec)
{
	const struct merge *m = w->m;
	node_t real = jn_get(&m->doc, rec, "realtimeOffset");

	if (!real || w->proc->node == m->ref)
		return;
	put_time(w, real, m->nodes[m->ref].offset);
	put_error(w, real, jn_get(&m->doc, rec, "error"));
}

static void find_end(struct writer *w, node_t rec)
{
	const struct json_doc *doc = &w->m->doc;
	node_t name = jn_get(doc, rec, "flow");

	w->also_end = name && name->kind == JSON_KIND_STR
			      ? merge_peer(w->m, w->proc, name->s, name->len)
			      : NULL;
	w->also_at = w->also_end ? jn_get(doc, rec, "ts") : NULL;
	w->also_rank = w->also_end && w->also_end->rank >= 0 && !jn_get(doc, rec, "peerRank");
	w->m->ties += w->also_end && jn_true(jn_get(doc, rec, "end"));
}

/* Of a ProxyStep, by the ProxyOp that it is part of. */
static const struct merge_origin *step_origin(const struct merge_proc *p, uint64_t op)
{
	uint32_t low = 0, high = p->npxn, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (p->pxn[mid].addr < op)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->npxn && p->pxn[low].addr == op && p->pxn[low].origin->known
		       ? p->pxn[low].origin
		       : NULL;
}

static void put_origin(struct writer *w, node_t rec, const char *end)
{
	const struct json_doc *doc = &w->m->doc;
	uint64_t parent = jn_addr(jn_get(doc, rec, "parentObj"));
	const struct merge_origin *o;
	struct xbuf *b = &w->m->out;

	if (jn_get(doc, rec, "origin"))
		return;
	w->m->pxn++;
	o = jn_is(jn_get(doc, rec, "type"), "ncclProfileProxyOp")
		    ? merge_origin_of(w->m, w->proc, jn_i32(jn_get(doc, rec, "originPid"), -1),
				      parent)
		    : step_origin(w->proc, parent);
	if (!o || o->rank < 0) {
		w->m->pxn_lost++;
		return;
	}
	while (end > w->from && end[-1] != '}')
		end--;
	copy_to(w, end - 1);
	xbuf__lit(b, ",\"origin\":{\"commHash\":");
	put_hex(b, o->comm);
	xbuf__lit(b, ",\"rank\":");
	xbuf__u64(b, (uint64_t)o->rank);
	if (o->has_seq) {
		xbuf__lit(b, ",\"seq\":");
		xbuf__u64(b, o->seq);
	}
	xbuf__lit(b, "}");
}

static void put_record(struct writer *w, node_t rec, const char *end)
{
	enum kind kind;

	w->also_at = NULL;
	if (w->proc->node == MERGE_NO_NODE)
		return;
	if (jn_is(jn_get(&w->m->doc, rec, "recordType"), "flow"))
		find_end(w, rec);
	kind = keys_moments(&w->m->doc, rec, move_time, w);
	if (kind == KIND_HEADER)
		put_header(w, rec);
	else if (kind == KIND_CLOCK)
		put_clock(w, rec);
	else if (kind == KIND_EVENT && jn_get(&w->m->doc, rec, "isPxn"))
		put_origin(w, rec, end);
	else if (kind == KIND_OTHER)
		w->m->unknown++;
}

static int flush(struct merge *m, bool all)
{
	int err = m->out.failed ? -ENOMEM : 0;

	if (!err && (m->out.len >= FLUSH_BYTES || all)) {
		err = output__write(&m->to, m->out.s, m->out.len);
		m->out.len = 0;
	}
	return m->err = err;
}

/* As in merge_read(): the same lines in the same order begin processes. */
static bool begin_proc(struct writer *w, node_t rec)
{
	if (w->proc && !jn_is(jn_get(&w->m->doc, rec, "recordType"), "header"))
		return true;
	w->proc = w->proc ? w->proc->next : merge_first_proc(w->m, w->stream);
	w->line = 1;
	return w->proc;
}

/* From its process' header on, as there may be others before it in the file. */
static void say_where(struct writer *w)
{
	if (!*w->m->why)
		snprintf(w->m->why, sizeof(w->m->why), "%s, line %" PRIu64 " of process %d",
			 w->path, w->line, w->proc ? w->proc->host_pid : -1);
}

static int write_line(void *writer, const char *s, size_t len, bool whole)
{
	struct writer *w = writer;
	struct merge *m = w->m;
	uint64_t skipped = m->skipped;
	size_t before = m->out.len;
	int err;

	w->line++;
	err = merge_parse(m, &s, &len, whole);
	if (err) {
		if (m->skipped > skipped)
			say_where(w);
		return err == -ENOMEM ? m->err = err : 0;
	}
	if (!begin_proc(w, &m->doc.nodes[0]))
		return m->err = -ESTALE;
	w->from = s;
	w->bad = false;
	put_record(w, &m->doc.nodes[0], s + len);
	copy_to(w, s + len);
	xbuf__lit(&m->out, "\n");
	m->lines++;
	if (w->bad) {
		m->out.len = before;
		m->lines--;
		m->skipped++;
		say_where(w);
	}
	return flush(m, false);
}

static void *begin_stream(void *to, const char *path, uint32_t nr)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (w)
		*w = (struct writer){.m = to, .path = path, .stream = nr};
	return w;
}

int merge_write(struct merge *m, struct streams *files)
{
	static const struct streams_ops ops = {
		.what = "Writing", .begin = begin_stream, .line = write_line, .end = free};
	int err;

	m->torn = m->skipped = 0; /* reading has counted them as well */
	err = streams__read(files, &ops, m);
	m->skipped += streams__totals(files)->too_long;
	if (!m->err)
		flush(m, true);
	return m->err ?: err;
}
