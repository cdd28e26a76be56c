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

typedef const struct json_node *node_t;

/* A number of the line that becomes another one, or stays, and what comes behind it. */
struct edit {
	node_t n;
	int64_t ns;
	bool stays;
	enum { ALSO_NOTHING, ALSO_END, ALSO_MERGED, ALSO_PEER } also;
};

#define EDITS_MAX 64 /* no record has as many points in time */

struct writer {
	struct merge *m;
	const char *path;
	uint64_t line;
	uint32_t stream;
	const struct merge_proc *proc;
	struct edit edits[EDITS_MAX];
	uint32_t nedits;
	bool bad;			   /* a time is none, or cannot be moved */
	const struct merge_end *peer;	   /* of a flow; NULL: not known */
	bool peer_rank;			   /* of which only that tells the rank */
	uint64_t peer_n, peer_dsack;	   /* what it sent again meanwhile */
	const struct merge_origin *origin; /* NULL: none */
	const char *from;		   /* what of the line has not been copied yet */
};

/* ---- Parts of a line --------------------------------------------------------------------------------------- */

/* Keys come in any order; edits are put into that of the line when all are known. */
static void edit(struct writer *w, node_t n, int64_t ns)
{
	int64_t was;

	/* text may lie elsewhere than in the line */
	if (w->nedits == EDITS_MAX || !jn_time(n, true, &was))
		w->bad = true;
	else
		w->edits[w->nedits++] = (struct edit){.n = n, .ns = ns};
}

static int by_place(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;

	return x->n->s < y->n->s ? -1 : x->n->s > y->n->s;
}

static void copy_to(struct writer *w, const char *to)
{
	xbuf__put(&w->m->out, w->from, (size_t)(to - w->from));
	w->from = to;
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

/* Who is at the other end of a connection. */
static void put_peer(struct writer *w)
{
	const struct merge_end *e = w->peer;
	struct xbuf *b = &w->m->out;

	if (w->peer_rank) {
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

/* And what it counted meanwhile. */
static void put_net_peer(struct writer *w)
{
	const struct merge_end *e = w->peer;
	struct xbuf *b = &w->m->out;

	xbuf__lit(b, ",\"peer\":{\"host\":");
	put_text(b, w->m->nodes[e->proc->node].host);
	xbuf__lit(b, ",\"pid\":");
	xbuf__u64(b, (uint64_t)e->proc->pid);
	if (e->proc->host_pid != e->proc->pid && e->proc->host_pid >= 0) {
		xbuf__lit(b, ",\"hostPid\":");
		xbuf__u64(b, (uint64_t)e->proc->host_pid);
	}
	if (e->rank >= 0) {
		xbuf__lit(b, ",\"rank\":");
		xbuf__u64(b, (uint64_t)e->rank);
	}
	xbuf__lit(b, ",\"retrans\":");
	xbuf__u64(b, w->peer_n);
	xbuf__lit(b, ",\"dsack\":");
	xbuf__u64(b, w->peer_dsack);
	xbuf__lit(b, "}");
}

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
	put_text(b, merge_by(w->m, n));
	xbuf__lit(b, "}");
}

static void put_origin(struct writer *w)
{
	const struct merge_origin *o = w->origin;
	struct xbuf *b = &w->m->out;

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

/* The line, from its beginning to @end, with all edits. */
static void put_line(struct writer *w, const char *end)
{
	const struct edit *e;

	qsort(w->edits, w->nedits, sizeof(*w->edits), by_place);
	for (e = w->edits; e < w->edits + w->nedits; e++) {
		copy_to(w, e->n->s + (e->stays ? e->n->len : 0));
		if (!e->stays) {
			xbuf__us(&w->m->out, e->ns);
			w->from += e->n->len;
		}
		if (e->also == ALSO_PEER)
			put_net_peer(w);
		else if (e->also == ALSO_END)
			put_peer(w);
		else if (e->also == ALSO_MERGED)
			put_merged(w);
	}
	if (w->origin) {
		const char *last = end;

		while (last[-1] != '}')
			last--;
		copy_to(w, last - 1);
		put_origin(w);
	}
	copy_to(w, end);
	xbuf__lit(&w->m->out, "\n");
}

/* ---- What is to be edited ------------------------------------------------------------------------------------ */

static void move_time(void *to, node_t n)
{
	struct writer *w = to;
	int64_t ns, shift = w->m->nodes[w->proc->node].shift;

	if (n->kind == JSON_KIND_NULL)
		return;
	if (!jn_time(n, true, &ns) || __builtin_add_overflow(ns, shift, &ns) || ns < 0 ||
	    ns > TIME_MAX)
		w->bad = true;
	else
		edit(w, n, ns);
}

/* Of all nodes the same real clock: the reference's. Behind an offset comes what was merged, if it is a header's. */
static void edit_real(struct writer *w, node_t offset, node_t error, bool header)
{
	const struct merge_node *ref = &w->m->nodes[w->m->ref];
	int64_t was;

	if (!offset)
		return;
	edit(w, offset, ref->real->offset);
	if (header && w->nedits)
		w->edits[w->nedits - 1].also = ALSO_MERGED;
	if (jn_time(error, true, &was)) /* else it is nothing that could be right */
		edit(w, error, ref->real->error);
}

static void edit_header(struct writer *w, node_t rec)
{
	const struct json_doc *doc = &w->m->doc;
	node_t clock = jn_get(doc, rec, "clock");

	edit_real(w, jn_get(doc, clock, "realtimeOffset"), jn_get(doc, clock, "realtimeError"),
		  true);
}

/* What a GPU is ahead of its node is so much less where that was moved ahead. */
static void edit_gpu(struct writer *w, node_t offset)
{
	int64_t ns, shift = w->m->nodes[w->proc->node].shift;

	if (!shift || !jn_time(offset, true, &ns))
		return;
	if (__builtin_sub_overflow(ns, shift, &ns) || ns < -TIME_MAX || ns > TIME_MAX)
		w->bad = true;
	else
		edit(w, offset, ns);
}

/* How the reference's real clock went is in that node's own records. */
static void edit_clock(struct writer *w, node_t rec)
{
	const struct json_doc *doc = &w->m->doc;

	edit_gpu(w, jn_get(doc, jn_get(doc, rec, "gpu"), "offset"));
	if (w->proc->node != w->m->ref)
		edit_real(w, jn_get(doc, rec, "realtimeOffset"), jn_get(doc, rec, "error"), false);
}

static void edit_flow(struct writer *w, node_t rec)
{
	const struct json_doc *doc = &w->m->doc;
	node_t name = jn_get(doc, rec, "flow"), ts = jn_get(doc, rec, "ts");
	uint32_t i;

	w->peer = name && name->kind == JSON_KIND_STR
			  ? merge_peer(w->m, w->proc, name->s, name->len)
			  : NULL;
	if (!w->peer)
		return;
	w->peer_rank = w->peer->rank >= 0 && !jn_get(doc, rec, "peerRank");
	for (i = 0; i < w->nedits; i++)
		if (w->edits[i].n == ts)
			w->edits[i].also = ALSO_END;
}

/* A point in time of the line, in the reference's clock; false: none that can be one. */
static bool time_of(const struct writer *w, node_t n, int64_t *ns)
{
	return jn_time(n, true, ns) &&
	       !__builtin_add_overflow(*ns, w->m->nodes[w->proc->node].shift, ns) && *ns >= 0 &&
	       *ns <= TIME_MAX;
}

/* From when to when an event was, as merge_resent() has it. */
static bool span_of(const struct writer *w, node_t rec, int64_t *from, int64_t *to)
{
	const struct json_doc *doc = &w->m->doc;

	if (!time_of(w, jn_get(doc, jn_get(doc, rec, "start"), "ts"), from))
		return false;
	if (!time_of(w, jn_get(doc, jn_get(doc, rec, "stop"), "ts"), to))
		*to = INT64_MAX;
	return true;
}

/* Adds what the other end of one connection had to send again meanwhile; false: not known, or it is of another process than those before. */
static bool add_peer(struct writer *w, node_t rec, node_t name)
{
	const struct merge_end *peer;
	int64_t from, to;
	uint64_t n, dsack;

	if (name->kind != JSON_KIND_STR)
		return false;
	peer = merge_peer(w->m, w->proc, name->s, name->len);
	if (!peer || peer->proc->pid < 0 ||
	    (w->peer && !merge_same_proc(w->peer->proc, peer->proc)) ||
	    !span_of(w, rec, &from, &to) ||
	    !merge_resent(w->m, w->proc, peer, from, to, &n, &dsack))
		return false;
	w->peer = peer;
	w->peer_n += n;
	w->peer_dsack += dsack;
	return true;
}

/*
 * What the other end had to send again while this one was at it: what is lost after a sender's step is over, the receiver's waits
 * for. Of an operation that used several connections, only if all of them are known.
 */
static void edit_net(struct writer *w, node_t rec)
{
	const struct json_doc *doc = &w->m->doc;
	node_t net = jn_get(doc, rec, "net"), name = jn_get(doc, net, "flow"), n;
	node_t list = jn_get(doc, net, "flows"), retrans = jn_get(doc, net, "retrans");
	uint64_t all = 0, nr = 0, v;
	bool known = true;
	uint32_t i;

	if (!name || !jn_u64(retrans, &v) || jn_get(doc, net, "peer") || w->nedits == EDITS_MAX)
		return;
	w->peer_n = w->peer_dsack = 0;
	for (i = list && list->kind == JSON_KIND_ARR ? list->first : 0; i && known; i = n->next) {
		n = &doc->nodes[i];
		known = add_peer(w, rec, n);
		nr++;
	}
	if (!list)
		known = add_peer(w, rec, name);
	else if (!jn_u64(jn_get(doc, net, "nFlows"), &all) || all != nr)
		known = false;
	if (known && w->peer)
		w->edits[w->nedits++] =
			(struct edit){.n = retrans, .stays = true, .also = ALSO_PEER};
	else
		w->peer = NULL;
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

/* What is in a step has it by that. */
static void find_origin(struct writer *w, node_t rec)
{
	const struct json_doc *doc = &w->m->doc;
	node_t type = jn_get(doc, rec, "type");
	uint64_t parent = jn_addr(jn_get(doc, rec, "parentObj"));
	const struct merge_origin *o;

	if (jn_get(doc, rec, "origin"))
		return;
	if (jn_is(type, "ncclProfileProxyOp"))
		o = merge_origin_of(w->m, w->proc, jn_i32(jn_get(doc, rec, "originPid"), -1),
				    parent);
	else if (jn_is(type, "ncclProfileProxyStep"))
		o = step_origin(w->proc, parent);
	else
		return;
	w->origin = o && o->rank >= 0 ? o : NULL;
	w->m->pxn++;
	w->m->pxn_lost += !w->origin;
}

static void edit_record(struct writer *w, node_t rec)
{
	enum kind kind;

	w->nedits = 0;
	w->bad = false;
	w->peer = NULL;
	w->origin = NULL;
	if (w->proc->node == MERGE_NO_NODE)
		return;
	kind = keys_moments(&w->m->doc, rec, move_time, w);
	if (kind == KIND_HEADER)
		edit_header(w, rec);
	else if (kind == KIND_CLOCK)
		edit_clock(w, rec);
	else if (kind == KIND_FLOW)
		edit_flow(w, rec);
	else if (kind == KIND_OTHER)
		w->m->unknown++;
	if (kind == KIND_EVENT || kind == KIND_OPEN)
		edit_net(w, rec);
	if (kind == KIND_EVENT && jn_get(&w->m->doc, rec, "isPxn"))
		find_origin(w, rec);
}

/* ---- Lines -------------------------------------------------------------------------------------------------- */

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
	if (w->proc->is_copy)
		return 0;
	edit_record(w, &m->doc.nodes[0]);
	if (w->bad) {
		m->skipped++;
		say_where(w);
		return 0;
	}
	w->from = s;
	put_line(w, s + len);
	m->lines++;
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
