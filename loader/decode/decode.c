// SPDX-License-Identifier: BSD-2-Clause
/* Ring records in, correlate's input out; see decode.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "decode.h"
#include "decode_net.h"
#include "decode_sched.h"
#include "less.h"
#include "log.h"
#include "nccl_names.h"
#include "trace.h"

#define RING_HDR_SIZE 8 /* BPF_RINGBUF_HDR_SZ, before each record of the ring */

/* What a chunk's records have in common. */
struct chunk_ctx {
	struct session *s;
	struct proc *p;
	const struct scope_ev_chunk *c;
	struct stream *stream;
	struct corr_thread thread;
	uint64_t last_ns;
};

/* ---- Times ------------------------------------------------------------------------------------- */

/*
 * A record was made after its process began and before its chunk reached BPF; a clock that says
 * otherwise is the job's own invention.
 */
static uint64_t to_ns(struct chunk_ctx *x, uint64_t ticks)
{
	uint64_t ns = clock_fit__to_ns(&x->s->clock, x->c->clock, ticks);

	if (ns > x->c->h.ts_ns)
		ns = x->c->h.ts_ns;
	if (ns < x->p->key.start_ns)
		ns = x->p->key.start_ns;
	return ns;
}

/* ---- Sizes ------------------------------------------------------------------------------------- */

static size_t start_size(uint32_t what)
{
	switch (what) {
	case SCOPE_COLL:
		return sizeof(struct scope_rec_coll);
	case SCOPE_P2P:
		return sizeof(struct scope_rec_p2p);
	case SCOPE_PROXY_OP:
		return sizeof(struct scope_rec_proxy_op);
	case SCOPE_KERNEL_CH:
		return sizeof(struct scope_rec_kernel_ch);
	case SCOPE_KERNEL_PHASE:
		return sizeof(struct scope_rec_kernel_phase);
	case SCOPE_NET_PLUGIN:
		return sizeof(struct scope_rec_net_plugin);
	case SCOPE_COLL_API:
	case SCOPE_P2P_API:
		return sizeof(struct scope_rec_coll_api);
	case SCOPE_KERNEL_LAUNCH:
		return sizeof(struct scope_rec_stream);
	case SCOPE_CE_COLL:
		return sizeof(struct scope_rec_ce_coll);
	case SCOPE_CE_BATCH:
		return sizeof(struct scope_rec_ce_batch);
	default:
		return sizeof(struct scope_rec_start);
	}
}

/* ---- Records ----------------------------------------------------------------------------------- */

static enum role role_of(uint32_t what)
{
	switch (what) {
	case SCOPE_PROXY_OP:
	case SCOPE_PROXY_STEP:
	case SCOPE_PROXY_CTRL:
	case SCOPE_KERNEL_CH:
	case SCOPE_KERNEL_PHASE:
		return ROLE_PROXY;
	case SCOPE_NET_PLUGIN:
		return ROLE_OTHER;
	default:
		return ROLE_APP;
	}
}

/* The thread's first event tells its role; only then is it worth a record. */
static void note_thread(struct chunk_ctx *x, uint32_t what, uint64_t ns)
{
	struct thread *t = proc__thread(x->p, x->thread.tid, x->thread.host_tid, x->c->h.comm);

	if (!t || (t->role != ROLE_UNKNOWN && !t->by_slice))
		return;
	/* Where its slices have introduced it already, its end will tell. */
	t->role = role_of(what);
	if (!t->by_slice) {
		t->start_ns = ns;
		trace__thread(x->p, t, 0);
	}
	t->by_slice = false;
}

static bool rec_start(struct chunk_ctx *x, const struct scope_rec_hdr *r, uint64_t ns)
{
	uint32_t what = SCOPE_ID_WHAT(r->id);

	if (!r->id || what >= SCOPE_NTYPES || r->size < start_size(what) ||
	    r->size > sizeof(union corr_start))
		return false;
	note_thread(x, what, ns);
	correlate__start(&x->p->corr, (const struct scope_rec_start *)r, ns, &x->thread);
	return true;
}

static bool rec_state(struct chunk_ctx *x, const struct scope_rec_hdr *r, uint64_t ns)
{
	struct corr_state st = {.ts_ns = ns, .id = r->u8, .steps = r->u32, .thread = x->thread};

	if (!event_state_name(r->u8))
		return false;
	if (r->size >= sizeof(struct scope_rec_state)) {
		st.arg = ((const struct scope_rec_state *)r)->arg;
		st.has_arg = true;
	}
	correlate__state(&x->p->corr, r->id, &st);
	return true;
}

static bool rec_string(struct chunk_ctx *x, const struct scope_rec_hdr *r)
{
	struct interned *s;

	if (!r->u32 || r->u32 >= SCOPE_STRINGS || r->u8 > SCOPE_STRING_MAX ||
	    r->size < sizeof(*r) + r->u8)
		return false;
	s = &x->p->strings[r->u32];
	s->len = r->u8;
	memcpy(s->text, r + 1, r->u8);
	if (r->u8 == strlen("SIMPLE") && !memcmp(s->text, "SIMPLE", r->u8))
		x->p->corr.simple = (uint16_t)r->u32;
	return true;
}

static bool rec_comm(struct chunk_ctx *x, const struct scope_rec_hdr *r, uint64_t ns)
{
	struct scope_comm comm;

	if (r->size < sizeof(struct scope_rec_comm))
		return false;
	comm = ((const struct scope_rec_comm *)r)->comm;
	comm.name[sizeof(comm.name) - 1] = 0;
	if (comm.ctx != r->id || comm.api < 1 || comm.api > 7)
		return false;
	correlate__comm(&x->p->corr, &comm, ns, &x->thread);
	correlate__comm_made(&x->p->corr, comm.ctx);
	return true;
}

static bool rec_comm_name(struct chunk_ctx *x, const struct scope_rec_hdr *r)
{
	struct scope_rec_comm_name c;

	if (r->size < sizeof(c))
		return false;
	memcpy(&c, r, sizeof(c));
	c.name[sizeof(c.name) - 1] = 0;
	correlate__comm_name(&x->p->corr, r->id, c.hash, c.name, (int32_t)r->u32);
	return true;
}

/* Types that were not asked for reach us until NCCL's mask is narrowed, or for another recorder. */
static bool wanted(const struct session *s, const struct scope_rec_hdr *r)
{
	uint32_t what = SCOPE_ID_WHAT(r->id);

	return what >= SCOPE_NTYPES || (s->keep & 1u << what);
}

static bool rec_event(struct chunk_ctx *x, const struct scope_rec_hdr *r, uint64_t ns)
{
	if (!wanted(x->s, r))
		return true;
	switch (r->kind) {
	case SCOPE_REC_START:
		return rec_start(x, r, ns);
	case SCOPE_REC_STATE:
		return rec_state(x, r, ns);
	case SCOPE_REC_STATE_REPEAT:
		if (!event_state_name(r->u8))
			return false;
		correlate__state_repeat(&x->p->corr, r->id, r->u8, r->u32, ns);
		return true;
	case SCOPE_REC_START_REPEAT:
		correlate__start_repeat(&x->p->corr, r->id, r->u32);
		return true;
	default: /* SCOPE_REC_STOP */
		correlate__stop(&x->p->corr, r->id, ns, &x->thread);
		return true;
	}
}

/* Else it is from before this recording (what an earlier one left in the buffer), or from after it. */
static bool in_time(const struct chunk_ctx *x, uint64_t ns)
{
	return ns >= x->p->begin_ns && (!x->s->end_ns || ns <= x->s->end_ns);
}

/* False: a record that makes no sense; it is counted and skipped. */
static bool rec_decode(struct chunk_ctx *x, const struct scope_rec_hdr *r)
{
	uint64_t ns;

	if (r->kind == SCOPE_REC_STRING)
		return rec_string(x, r);
	ns = to_ns(x, r->ts);
	x->last_ns = ns;
	if (!in_time(x, ns)) {
		x->p->corr.counts.before++;
		return true;
	}
	switch (r->kind) {
	case SCOPE_REC_START:
	case SCOPE_REC_STATE:
	case SCOPE_REC_STOP:
	case SCOPE_REC_STATE_REPEAT:
	case SCOPE_REC_START_REPEAT:
		return rec_event(x, r, ns);
	case SCOPE_REC_COMM:
		return rec_comm(x, r, ns);
	case SCOPE_REC_COMM_NAME:
		return rec_comm_name(x, r);
	case SCOPE_REC_FINALIZE:
		correlate__finalize(&x->p->corr, r->id, ns, &x->thread);
		return true;
	default:
		return false; /* a kind from the future */
	}
}

/* ---- Chunks ------------------------------------------------------------------------------------ */

static struct stream *stream_get(struct proc *p, const struct scope_ev_chunk *c)
{
	struct stream *st;

	HASH_FIND(hh, p->streams, &c->tbuf, sizeof(c->tbuf), st);
	if (st)
		return st;
	/* The plugin never has more: a job that shows others wants our memory. */
	if (HASH_COUNT(p->streams) >= SCOPE_TBUFS)
		return NULL;
	st = calloc(1, sizeof(*st));
	if (!st)
		return NULL;
	st->tbuf = c->tbuf;
	/* What came before we attached is none of ours; of a process seen from its start all is. */
	st->pos = p->from_start ? 0 : c->pos;
	st->rec_pos = p->from_start ? 0 : c->rec_pos;
	st->ring_rec_pos = st->rec_pos;
	st->last_ns = p->begin_ns;
	HASH_ADD(hh, p->streams, tbuf, sizeof(st->tbuf), st);
	if (!HASH_ADDED(hh, st)) {
		free(st);
		return NULL;
	}
	return st;
}

/* Records that did not get into the ring. Which of them for want of room, and which for its share: BPF knows in sum. */
static void count_ring_loss(struct proc *p, uint64_t n)
{
	uint64_t limited = less(p->limited_recs, p->lost[LOSS_RATE_LIMIT]);

	if (limited > n)
		limited = n;
	if (limited)
		proc__count_loss(p, LOSS_RATE_LIMIT, limited);
	if (n > limited)
		proc__count_loss(p, LOSS_RING_FULL, n - limited);
}

/*
 * How many records a gap held. rec_pos is the job's word: no more than fit into the bytes, and into those of a buffer that was read from
 * outside when they had room, nor than one for each nanosecond of its life, so that no sum overflows; of one that claims more, we know
 * that there was something.
 */
static uint64_t gap_records(const struct proc *p, const struct stream *st,
			    const struct scope_ev_chunk *c)
{
	uint64_t n = c->rec_pos > st->rec_pos ? c->rec_pos - st->rec_pos : 1;
	uint64_t bytes = c->pos - st->pos + (st->outside ? SCOPE_TBUF_DATA_SIZE : 0);

	if (n <= bytes / SCOPE_REC_BYTES_MIN && n <= c->h.ts_ns - p->key.start_ns)
		return n;
	p->session->bad_records++;
	return 1;
}

/*
 * What the stream lacks is parts of steps alone, in bytes that were read from outside. A buffer amid its flush shows the same: of that a
 * recorder tells once the ring has been emptied.
 */
static bool lacks_parts(const struct stream *st, const struct scope_ev_chunk *c)
{
	return st->outside && c->pos == st->pos && c->rec_pos > st->rec_pos;
}

/*
 * Chunks of one buffer reach us in order, some perhaps twice (a probe, then a dying thread's memory)
 * or in part before in whole (read from outside). Returns how many bytes of this one are old.
 */
static uint32_t chunk_overlap(struct proc *p, struct stream *st, const struct scope_ev_chunk *c)
{
	uint64_t lost;

	if (c->pos > st->pos || lacks_parts(st, c)) {
		if (!p->lost_from_ns || st->last_ns < p->lost_from_ns)
			p->lost_from_ns = st->last_ns;
		lost = gap_records(p, st, c);
		count_ring_loss(p, lost);
		st->gap_recs += lost;
		st->pos = c->pos;
		st->rec_pos = c->rec_pos;
	}
	return st->pos - c->pos > c->len ? c->len : (uint32_t)(st->pos - c->pos);
}

/* All before rec_pos has been handed in, and what the ring had no room for BPF counts as lost. How much of that was read from outside. */
static uint64_t handed_in(struct proc *p, struct stream *st, uint64_t rec_pos)
{
	uint64_t n = less(less(rec_pos, st->ring_rec_pos), st->gap_recs);

	if (n > st->outside_recs)
		n = st->outside_recs;
	p->outside_recs += n;
	st->gap_recs = st->outside_recs = 0;
	if (st->ring_rec_pos < rec_pos)
		st->ring_rec_pos = rec_pos;
	return n;
}

/* One through the ring that was taken for lost: it came later than a look from outside. */
static void take_back(struct proc *p, struct stream *st, uint64_t n)
{
	if (n > st->presumed_recs)
		n = st->presumed_recs;
	st->presumed_recs -= n;
	p->outside_recs -= n;
}

/* BPF counts as lost what the ring had no room for when it was handed in; if it had been read from outside by then, it is not. */
static void note_outside(struct proc *p, struct stream *st, const struct scope_ev_chunk *c)
{
	uint64_t new = less(c->rec_pos + c->rec_cnt, st->rec_pos);

	if (c->reason == SCOPE_FLUSH_OUTSIDE) {
		/* the ring was emptied first; beyond the stream it is amid a flush */
		if (c->rec_pos > st->ring_rec_pos && c->rec_pos <= st->rec_pos)
			st->presumed_recs += handed_in(p, st, c->rec_pos);
		st->outside_recs += new < c->rec_cnt ? new : c->rec_cnt;
		return;
	}
	if (c->rec_pos < st->ring_rec_pos && c->rec_pos + c->rec_cnt <= st->ring_rec_pos) {
		take_back(p, st, c->rec_cnt);
		return;
	}
	handed_in(p, st, c->rec_pos);
	st->presumed_recs = 0;
	if (st->ring_rec_pos < c->rec_pos + c->rec_cnt)
		st->ring_rec_pos = c->rec_pos + c->rec_cnt;
}

/* ---- Steps in one record -----------------------------------------------------------------------
 *
 * A step's record lies where the step began, and holds what came later as well. Correlate gets each part at its
 * time, as if it had a record of its own.
 */
#define CHUNK_RECS  (SCOPE_TBUF_DATA_SIZE / sizeof(struct scope_rec_hdr))
#define CHUNK_STEPS (SCOPE_TBUF_DATA_SIZE / sizeof(struct scope_rec_step))

/* One callback: a record, or a part of a step's record. */
struct call {
	uint64_t ticks;
	const struct scope_rec_hdr *rec;
};

/* A chunk's callbacks: as they lie in it, and of each part of steps, by time. */
struct calls {
	uint32_t n, npart[SCOPE_STEP_PARTS];
	struct call call[CHUNK_RECS];
	struct call part[SCOPE_STEP_PARTS][CHUNK_STEPS];
};

/* One that is too short is of no kind that we know. */
static bool is_step(const struct scope_rec_hdr *r)
{
	return r->kind == SCOPE_REC_STEP && r->size >= sizeof(struct scope_rec_step);
}

/* Steps end nearly in the order in which they began. */
static void calls_add_part(struct calls *calls, uint32_t part, const struct scope_rec_step *r)
{
	struct call *c = calls->part[part], new = {r->s.h.ts + r->ticks[part] - 1, &r->s.h};
	uint32_t i = calls->npart[part]++;

	for (; i && c[i - 1].ticks > new.ticks; i--)
		c[i] = c[i - 1];
	c[i] = new;
}

/* `seen`: parts that were decoded before. Returns those that have been. */
static uint8_t calls_add_step(struct calls *calls, const struct scope_rec_step *r, uint8_t seen)
{
	uint8_t parts = 0;
	uint32_t i;

	for (i = 0; i < SCOPE_STEP_PARTS; i++) {
		if (!r->ticks[i])
			continue;
		parts |= (uint8_t)(1u << i);
		if (!(seen & 1u << i))
			calls_add_part(calls, i, r);
	}
	return parts;
}

static bool step_start(struct chunk_ctx *x, const struct scope_rec_hdr *r)
{
	struct scope_rec_start s = ((const struct scope_rec_step *)r)->s;

	if (SCOPE_ID_WHAT(r->id) != SCOPE_PROXY_STEP)
		return false;
	s.h.size = sizeof(s);
	s.h.kind = SCOPE_REC_START;
	s.h.u8 = 0;
	return rec_decode(x, &s.h);
}

static bool step_part(struct chunk_ctx *x, const struct scope_rec_hdr *r, uint32_t part)
{
	static const uint8_t states[2][SCOPE_STEP_STOP] = {{8, 20, 9}, {10, 11, 12}};
	const struct scope_rec_step *step = (const struct scope_rec_step *)r;
	bool recv = r->u8 == SCOPE_STEP_RECV;
	struct scope_rec_state st = {
		.h = {.size = sizeof(st.h), .kind = SCOPE_REC_STOP, .id = r->id},
		.arg = step->trans_size_bytes,
	};

	if (SCOPE_ID_WHAT(r->id) != SCOPE_PROXY_STEP ||
	    (part != SCOPE_STEP_STOP && r->u8 != SCOPE_STEP_SEND && !recv))
		return false;
	st.h.ts = r->ts + step->ticks[part] - 1;
	if (part != SCOPE_STEP_STOP) {
		st.h.kind = SCOPE_REC_STATE;
		st.h.u8 = states[recv][part];
		if (part == (recv ? SCOPE_STEP_PEER : SCOPE_STEP_DONE))
			st.h.size = sizeof(st);
	}
	return rec_decode(x, &st.h);
}

static void count_malformed(struct chunk_ctx *x)
{
	x->s->bad_records++;
	x->p->corr.counts.malformed++;
}

static void call_decode(struct chunk_ctx *x, const struct call *call, uint32_t part)
{
	const struct scope_rec_hdr *r = call->rec;
	bool ok;

	if (part < SCOPE_STEP_PARTS)
		ok = step_part(x, r, part);
	else
		ok = is_step(r) ? step_start(x, r) : rec_decode(x, r);
	if (!ok)
		count_malformed(x);
	x->p->recs++;
	x->stream->rec_pos += r->kind != SCOPE_REC_STRING; /* as the plugin counts */
}

#define NO_CALL UINT64_MAX /* later than any other */

static uint64_t call_ticks(const struct call *at, const struct call *end)
{
	if (at == end)
		return NO_CALL;
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): chunk_records() has filled it in */
	return at->ticks < NO_CALL ? at->ticks : NO_CALL - 1;
}

/* All in the order of time; records that lie in the chunk never overtake each other. */
static void calls_decode(struct chunk_ctx *x, const struct calls *calls)
{
	const struct call *head[SCOPE_STEP_PARTS + 1], *end[SCOPE_STEP_PARTS + 1];
	uint64_t ticks[SCOPE_STEP_PARTS + 1], least;
	uint32_t i, first;

	for (i = 0; i <= SCOPE_STEP_PARTS; i++) {
		head[i] = i < SCOPE_STEP_PARTS ? calls->part[i] : calls->call;
		end[i] = head[i] + (i < SCOPE_STEP_PARTS ? calls->npart[i] : calls->n);
		ticks[i] = call_ticks(head[i], end[i]);
	}
	for (;;) {
		first = SCOPE_STEP_PARTS;
		least = ticks[first];
		for (i = 0; i < SCOPE_STEP_PARTS; i++) { /* no branch: nobody can foretell it */
			first = ticks[i] < least ? i : first;
			least = ticks[i] < least ? ticks[i] : least;
		}
		if (least == NO_CALL)
			return;
		call_decode(x, head[first]++, first);
		ticks[first] = call_ticks(head[first], end[first]);
	}
}

/* ---- A chunk's records -------------------------------------------------------------------------- */

static uint8_t open_parts(const struct stream *st, uint64_t pos)
{
	uint32_t i;

	for (i = 0; i < st->nopen; i++)
		if (st->open[i].pos == pos)
			return st->open[i].parts;
	return 0xff; /* it was whole */
}

/* Without memory, parts that come later are lost, as records of a step that is not known would be. */
static void open_note(struct stream *st, struct open_step *open, uint32_t nopen)
{
	struct open_step *mem = st->open;

	st->nopen = 0;
	if (!nopen)
		return;
	if (!mem)
		mem = st->open = calloc(CHUNK_STEPS, sizeof(*mem));
	if (!mem)
		return;
	memcpy(mem, open, nopen * sizeof(*mem));
	st->nopen = nopen;
}

/* NULL: there are no more, or no way to find the next one: the rest of this chunk is void, and that is counted. */
static const struct scope_rec_hdr *rec_at(struct chunk_ctx *x, uint32_t at)
{
	const struct scope_rec_hdr *r;

	if (at + sizeof(*r) > x->c->len)
		return NULL;
	r = (const struct scope_rec_hdr *)((const unsigned char *)(x->c + 1) + at);
	if (r->size >= sizeof(*r) && r->size % 8 == 0 && r->size <= x->c->len - at)
		return r;
	count_malformed(x);
	return NULL;
}

/* Of this recording, as correlate would find. */
static bool is_collective(struct chunk_ctx *x, const struct scope_rec_hdr *r)
{
	const struct scope_rec_start *start = (const struct scope_rec_start *)r;
	uint32_t what = SCOPE_ID_WHAT(r->id);

	return r->kind == SCOPE_REC_START && corr_is_collective(what) && wanted(x->s, r) &&
	       r->size >= start_size(what) && in_time(x, to_ns(x, r->ts)) &&
	       !correlate__is_older(&x->p->corr, start->parent);
}

static bool is_of_comm(const struct scope_rec_hdr *r)
{
	return r->kind == SCOPE_REC_COMM || r->kind == SCOPE_REC_COMM_NAME ||
	       r->kind == SCOPE_REC_FINALIZE;
}

/*
 * A progress thread that has nothing to do tells of that. And NCCL keeps the handle of the CollApi that came last: it
 * is stopped once more by each call, for as long as the job makes any.
 */
static bool tells_of_operation(const struct scope_rec_hdr *r)
{
	uint32_t what = SCOPE_ID_WHAT(r->id);

	return what != SCOPE_PROXY_CTRL && !(what == SCOPE_COLL_API && r->kind == SCOPE_REC_STOP);
}

/* For a recorder: which communicators there are, and how many collectives. Its digest, or convert, decodes the rest. */
static void chunk_skim(struct chunk_ctx *x, uint32_t off)
{
	const struct scope_rec_hdr *r;
	uint32_t at;

	for (at = off; (r = rec_at(x, at)); at += r->size) {
		x->p->recs++;
		if (tells_of_operation(r))
			x->s->heard_ns = x->c->h.ts_ns;
		x->p->corr.colls += is_collective(x, r);
		if (is_of_comm(r) && !rec_decode(x, r))
			count_malformed(x);
	}
	if (at == off)
		return;
	x->last_ns = x->c->h.ts_ns;
	/* The process' time goes on, also where ticks come late. */
	if (x->p->corr.now_ns < x->last_ns)
		x->p->corr.now_ns = x->last_ns;
}

/* From `off` on everything is new; before, only what steps have got since. */
static void chunk_records(struct chunk_ctx *x, uint32_t off)
{
	struct open_step open[CHUNK_STEPS];
	struct stream *st = x->stream;
	const struct scope_rec_hdr *r;
	struct calls calls;
	uint32_t at, nopen = 0;
	uint8_t parts;

	calls.n = 0;
	memset(calls.npart, 0, sizeof(calls.npart));
	for (at = st->nopen || x->c->reason == SCOPE_FLUSH_OUTSIDE ? 0 : off; (r = rec_at(x, at));
	     at += r->size) {
		if (at >= off)
			calls.call[calls.n++] = (struct call){r->ts, r};
		if (!is_step(r))
			continue;
		parts = calls_add_step(&calls, (const struct scope_rec_step *)r,
				       at < off ? open_parts(st, x->c->pos + at) : 0);
		if (parts != (1u << SCOPE_STEP_PARTS) - 1)
			open[nopen++] = (struct open_step){x->c->pos + at, parts};
	}
	calls_decode(x, &calls);
	open_note(st, open, x->c->reason == SCOPE_FLUSH_OUTSIDE ? nopen : 0);
}

static void stream_goes_on(struct stream *st, const struct scope_ev_chunk *c)
{
	if (st->pos < c->pos + c->len)
		st->pos = c->pos + c->len;
	if (st->rec_pos < c->rec_pos + c->rec_cnt)
		st->rec_pos = c->rec_pos + c->rec_cnt;
}

/*
 * Records of threads that got no buffer, by the job's own count since it began: no more than it can have made. Of a process that was there
 * before this recording the first word of it is where we begin; not that of a dying thread's buffer, which is as old as its last flush.
 */
static void count_unbuffered(struct proc *p, const struct scope_ev_chunk *c)
{
	bool known = proc__knows_unbuffered(p);

	if (known ? c->lost_cnt <= p->unbuffered : c->reason == SCOPE_FLUSH_DYING)
		return;
	if (c->lost_cnt > c->h.ts_ns - p->key.start_ns) {
		p->session->bad_records++;
		return;
	}
	if (known)
		proc__count_loss(p, LOSS_THREAD_BUFFER, c->lost_cnt - p->unbuffered);
	p->unbuffered = c->lost_cnt;
	p->unbuffered_known = true;
}

struct proc *decode__chunk(struct session *s, const struct scope_ev_chunk *c, size_t size)
{
	struct chunk_ctx x = {.s = s, .c = c};
	uint32_t skip;

	if (size < sizeof(*c) || c->len > size - sizeof(*c) || c->len > SCOPE_TBUF_DATA_SIZE ||
	    c->pos > UINT64_MAX - c->len || c->rec_pos > UINT64_MAX - c->rec_cnt) {
		s->bad_records++;
		return NULL;
	}
	x.p = proc__get(s, &c->h, true);
	if (!x.p) { /* there is no trace that could tell */
		s->summary.lost[LOSS_RATE_LIMIT] += c->rec_cnt;
		return NULL;
	}
	if (!c->tbuf && c->reason == SCOPE_FLUSH_OUTSIDE) { /* no thread's */
		count_unbuffered(x.p, c);
		return x.p;
	}
	x.stream = stream_get(x.p, c);
	if (!x.stream) {
		s->bad_records++;
		return NULL;
	}
	x.thread.tid = c->h.ns_tid;
	x.thread.host_tid = c->h.tid;
	x.thread.sched = s->live ? NULL : decode_sched__chunk(s, x.p, c);
	if (!x.p->corr.tag) {
		x.p->corr.tag = c->tag;
		x.p->clock = c->clock;
	}
	count_unbuffered(x.p, c);
	if (c->limited_recs > x.p->limited_recs)
		x.p->limited_recs = c->limited_recs;
	skip = chunk_overlap(x.p, x.stream, c);
	note_outside(x.p, x.stream, c);
	if (skip % 8) { /* no record begins there */
		s->bad_records++;
		skip = c->len;
	}
	x.last_ns = x.stream->last_ns;
	if (c->reason == SCOPE_FLUSH_OUTSIDE)
		x.stream->outside = true;
	if (c->len || c->reason != SCOPE_FLUSH_OUTSIDE) { /* else there was nothing new */
		if (s->live)
			chunk_skim(&x, skip);
		else
			chunk_records(&x, skip);
		stream_goes_on(x.stream, c);
	}
	x.stream->last_ns = x.last_ns;
	x.stream->seen_ns = c->h.ts_ns;
	x.stream->tid = x.thread.tid;
	x.stream->host_tid = x.thread.host_tid;
	return x.p;
}

/* ---- Ends -------------------------------------------------------------------------------------- */

void decode__tail_loss(struct proc *p, uint64_t lost_recs)
{
	uint64_t known = p->lost[LOSS_RING_FULL] + p->lost[LOSS_RATE_LIMIT] + p->outside_recs;

	if (lost_recs > known)
		count_ring_loss(p, lost_recs - known);
}

void decode__untold_loss(struct session *s, uint64_t lost_recs, uint64_t limited_recs)
{
	uint64_t limited = limited_recs < lost_recs ? limited_recs : lost_recs;

	s->summary.lost[LOSS_RATE_LIMIT] += limited;
	s->summary.lost[LOSS_RING_FULL] += lost_recs - limited;
}

/* A process that ends hands in all its buffers at last, itself or by BPF: what was read from there and has not come since had no room. */
static void note_ended(struct proc *p)
{
	struct stream *st, *tmp;

	HASH_ITER (hh, p->streams, st, tmp) {
		p->outside_recs += st->outside_recs;
		st->outside_recs = 0;
	}
}

static void thread_end(struct proc *p, const struct scope_ev_hdr *h)
{
	uint32_t tid = h->ns_tid;
	struct thread *t;

	HASH_FIND_INT(p->threads, &tid, t);
	if (t)
		proc__thread_end(p, t, h->ts_ns);
}

void decode__end(struct proc *p, int status, bool exec, uint64_t lost_recs)
{
	char how[32];

	note_ended(p);
	decode__tail_loss(p, lost_recs);
	if (exec) {
		proc__end(p, "exec", false, 0);
	} else if (WIFSIGNALED(status)) {
		p->end_signal = WTERMSIG(status);
		snprintf(how, sizeof(how), "signal %d", p->end_signal);
		proc__end(p, how, false, 0);
	} else {
		proc__end(p, "exit", true, WEXITSTATUS(status));
	}
}

static struct proc *decode_exit(struct session *s, const struct scope_ev_exit *e)
{
	struct proc *p = proc__get(s, &e->h, false);

	decode_sched__exit(s, e);
	if (!p) {
		decode_sched__unrecorded_exit(s, e);
		if (e->group_dead || e->h.kind == SCOPE_EV_EXEC)
			decode__untold_loss(s, e->lost_recs, e->limited_recs);
		return NULL;
	}
	if (e->h.ts_ns > p->corr.now_ns)
		p->corr.now_ns = e->h.ts_ns;
	p->limited_recs = e->limited_recs;
	p->end_signal = WIFSIGNALED(e->code) ? WTERMSIG(e->code) : 0;
	thread_end(p, &e->h);
	if (e->group_dead || e->h.kind == SCOPE_EV_EXEC)
		proc__count_loss(p, LOSS_CONTEXT, e->context_lost);
	if (e->h.kind == SCOPE_EV_EXEC) { /* its other threads were gone before */
		decode__end(p, 0, true, e->lost_recs);
		return NULL;
	}
	if (!e->group_dead)
		return p;
	/*
	 * The kernel counts a thread as gone before its exit is traced: of threads that go at the same
	 * time, any may be seen last, with its last records.
	 */
	p->ended_ns = e->h.ts_ns;
	p->end_status = e->code;
	p->end_lost_recs = e->lost_recs;
	p->oom = e->oom;
	return p;
}

/* It has handed in nothing: what its first thread does tells most. */
static struct proc *decode_found(struct session *s, const struct scope_ev_hdr *h)
{
	struct proc *p = NULL;

	if (h->size < sizeof(*h))
		s->bad_records++;
	else
		p = proc__get(s, h, true);
	if (!p)
		return NULL;
	if (h->ts_ns > p->corr.now_ns)
		p->corr.now_ns = h->ts_ns;
	proc__introduce(p, h->ns_tid, h->tid, h->comm, h->ts_ns);
	return p;
}

/* Of a process without records, which has no trace, it says nothing. */
static struct proc *decode_signal(struct session *s, const struct scope_ev_signal *e)
{
	struct proc *p = proc__find(s, e->tgid, e->start_ns);

	if (!p)
		return NULL;
	if (!e->handled && e->sig > 0 && e->sig < SIGNALS)
		p->unhandled_ns[e->sig] = e->h.ts_ns;
	trace__signal(p, e);
	return p;
}

struct proc *decode__event(struct session *s, const void *data, size_t size)
{
	const struct scope_ev_short *h = data;

	if (size < sizeof(*h) || h->abi != SCOPE_ABI || h->size > size) {
		s->bad_records++;
		return NULL;
	}
	switch (h->kind) {
	case SCOPE_EV_THREAD:
	case SCOPE_EV_SWITCH:
	case SCOPE_EV_SWITCHES:
	case SCOPE_EV_MIGRATE:
	case SCOPE_EV_WOKEN:
	case SCOPE_EV_STACK:
	case SCOPE_EV_IRQ:
		if (!decode_sched__event(s, data))
			s->bad_records++;
		return NULL;
	case SCOPE_EV_FLOW:
	case SCOPE_EV_USES:
	case SCOPE_EV_RETRANS:
	case SCOPE_EV_DROP:
		if (!decode_net__event(s, data))
			s->bad_records++;
		return NULL;
	case SCOPE_EV_SIGNAL:
		if (h->size < sizeof(struct scope_ev_signal)) {
			s->bad_records++;
			return NULL;
		}
		return decode_signal(s, data);
	case SCOPE_EV_FOUND:
		return decode_found(s, data);
	case SCOPE_EV_CHUNK:
		s->chunk_bytes += size + RING_HDR_SIZE;
		return decode__chunk(s, data, h->size);
	case SCOPE_EV_EXIT:
	case SCOPE_EV_EXEC:
		if (h->size < sizeof(struct scope_ev_exit)) {
			s->bad_records++;
			return NULL;
		}
		return decode_exit(s, data);
	default:
		s->skipped_kinds++;
		return NULL;
	}
}
