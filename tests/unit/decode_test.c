// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/decode/decode.c: every record once, whatever comes twice or not at all; and nothing that a job can
 * write into its buffer does more than to be counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include "chunks.h"
#include "digest.h"
#include "input.h"
#include "log.h"
#include "pipeline.h"
#include "status_self.h"
#include "trace.h"

#define TAG 0x77

static struct session *s;
static uint64_t nr_events, nr_states, tbuf;
static bool written; /* not to our sink, but into the trace */

/* Of exactly the size that it says, so that ASan sees one byte too many. */
struct chunk {
	struct scope_ev_chunk *c;
	unsigned char data[SCOPE_TBUF_DATA_SIZE + 64];
	uint32_t len, n;
};

static void on_event(void *arg, const struct corr_event *ev)
{
	(void)arg;
	(void)ev;
	nr_events++;
}

static uint8_t reason;

static struct {
	uint64_t id;
	uint32_t state;
	uint64_t ns;
} states_seen[16];

static void on_state(void *arg, const struct corr_event *ev, const struct corr_state *st)
{
	(void)arg;
	if (nr_states < 16) {
		states_seen[nr_states].id = ev->id;
		states_seen[nr_states].state = st->id;
		states_seen[nr_states].ns = st->ts_ns;
	}
	nr_states++;
}

static int setup(void **state)
{
	(void)state;
	s = session_new();
	nr_events = nr_states = 0;
	written = false;
	tbuf = 0x10000;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	session_free(s);
	chunks_files(NULL);
	return 0;
}

static uint64_t id_of(uint32_t what, uint64_t n)
{
	return (uint64_t)TAG << SCOPE_ID_TAG_SHIFT | (uint64_t)what << SCOPE_ID_COUNTER_BITS | n;
}

static struct scope_rec_hdr *put(struct chunk *ch, uint16_t size, uint8_t kind, uint64_t id)
{
	struct scope_rec_hdr *r = (struct scope_rec_hdr *)(ch->data + ch->len);

	memset(r, 0, size < 24 ? 24 : size);
	*r = (struct scope_rec_hdr){.size = size, .kind = kind, .ts = 5000, .id = id};
	ch->len += size;
	ch->n++;
	return r;
}

/* An event that starts and stops: two records, one event. */
static void put_event(struct chunk *ch, uint64_t n)
{
	put(ch, sizeof(struct scope_rec_start), SCOPE_REC_START, id_of(SCOPE_PROXY_CTRL, n));
	put(ch, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, id_of(SCOPE_PROXY_CTRL, n));
}

static struct proc *send_as(const struct chunk *ch, uint64_t pos, uint64_t rec_pos, uint32_t len,
			    uint32_t n, size_t size)
{
	struct scope_ev_chunk *c = calloc(1, sizeof(*c) + ch->len);
	struct proc *p;

	c->h = (struct scope_ev_hdr){.abi = SCOPE_ABI,
				     .kind = SCOPE_EV_CHUNK,
				     .ts_ns = 9000,
				     .start_ns = 10,
				     .tgid = 4000000000u,
				     .tid = 4000000001u,
				     .ns_tgid = 5,
				     .ns_tid = 6,
				     .comm = "job"};
	c->h.size = (uint32_t)size;
	c->tbuf = tbuf;
	c->pos = pos;
	c->rec_pos = rec_pos;
	c->len = len;
	c->rec_cnt = n;
	c->reason = reason;
	c->tag = TAG;
	c->clock = SCOPE_CLOCK_TSC;
	memcpy(c + 1, ch->data, ch->len);
	p = decode__event(s, c, sizeof(*c) + ch->len);
	free(c);
	if (p && !written) {
		p->corr.sink.event = on_event;
		p->corr.sink.state = on_state;
	}
	return p;
}

static struct proc *send(const struct chunk *ch, uint64_t pos, uint64_t rec_pos)
{
	return send_as(ch, pos, rec_pos, ch->len, ch->n, sizeof(struct scope_ev_chunk) + ch->len);
}

/* The process, known and with our sink. */
static struct proc *begin(void)
{
	static const struct chunk none;

	return send(&none, 0, 0);
}

/* Another session, of nothing so far. */
static struct proc *begin_anew(bool live)
{
	teardown(NULL);
	setup(NULL);
	s->live = live;
	return begin();
}

/* ---- Once each --------------------------------------------------------------------------------- */

static void test_in_order(void **arg)
{
	struct chunk a = {0}, b = {0};
	struct proc *p = begin();

	(void)arg;
	put_event(&a, 1);
	put_event(&b, 2);
	put_event(&b, 3);
	assert_ptr_equal(send(&a, 0, 0), p);
	assert_ptr_equal(send(&b, a.len, a.n), p);
	assert_int_equal(nr_events, 3);
	assert_int_equal(p->recs, 6);
	assert_int_equal(p->lost[LOSS_RING_FULL], 0);
	assert_int_equal(s->bad_records, 0);
}

/* The same chunk twice, an old one late, and a part of one before the whole. */
static void test_twice(void **arg)
{
	struct chunk a = {0}, b = {0}, ab = {0};
	struct proc *p = begin();

	(void)arg;
	put_event(&a, 1);
	put_event(&b, 2);
	put_event(&ab, 1);
	put_event(&ab, 2);
	put_event(&ab, 3);
	send(&a, 0, 0);
	send(&a, 0, 0);
	send(&ab, 0, 0);
	send(&b, a.len, a.n);
	send(&a, 0, 0);
	put_event(&ab, 4);
	send(&ab, 0, 0);
	assert_int_equal(nr_events, 4);
	assert_int_equal(p->recs, 8);
	assert_int_equal(p->corr.counts.malformed + p->corr.counts.late, 0);
	assert_int_equal(p->lost[LOSS_RING_FULL], 0);
}

static void test_gap(void **arg)
{
	struct chunk a = {0};
	struct proc *p = begin();

	(void)arg;
	put_event(&a, 1);
	send(&a, 8000, 111);
	assert_int_equal(p->lost[LOSS_RING_FULL], 111);
	assert_int_equal(nr_events, 1);
	send(&a, 100000, 100 + 113);
	assert_int_equal(p->lost[LOSS_RING_FULL], 211);
	decode__tail_loss(p, 211);
	assert_int_equal(p->lost[LOSS_RING_FULL], 211);
	decode__tail_loss(p, 215);
	assert_int_equal(p->lost[LOSS_RING_FULL], 215);
}

/* BPF says how many of them there was no share for; the others found no room. */
static void test_limited(void **arg)
{
	struct chunk a = {0};
	struct proc *p = begin();

	(void)arg;
	put_event(&a, 1);
	p->limited_recs = 100;
	send(&a, 8000, 111);
	assert_int_equal(p->lost[LOSS_RATE_LIMIT], 100);
	assert_int_equal(p->lost[LOSS_RING_FULL], 11);
	p->limited_recs = 102;
	decode__tail_loss(p, 113);
	assert_int_equal(p->lost[LOSS_RATE_LIMIT], 102);
	assert_int_equal(p->lost[LOSS_RING_FULL], 11);
	decode__tail_loss(p, 113);
	assert_int_equal(s->summary.lost[LOSS_RATE_LIMIT] + s->summary.lost[LOSS_RING_FULL], 113);
}

/* Where nothing of a process came through, its end says how much that was; or nobody does, if it still runs when the recording ends. */
static void test_untold(void **arg)
{
	struct scope_ev_exit e = {.h = {.abi = SCOPE_ABI,
					.kind = SCOPE_EV_EXIT,
					.size = sizeof(e),
					.ts_ns = 9000,
					.start_ns = 10,
					.tgid = 500,
					.tid = 501},
				  .lost_recs = 5,
				  .limited_recs = 2};
	const struct input_end tail = {.start_ns = 11, .lost_recs = 7, .tgid = 600};

	(void)arg;
	decode__event(s, &e, sizeof(e)); /* one of its threads */
	assert_int_equal(s->summary.lost[LOSS_RING_FULL], 0);
	e.group_dead = 1;
	decode__event(s, &e, sizeof(e));
	assert_int_equal(s->summary.lost[LOSS_RATE_LIMIT], 2);
	assert_int_equal(s->summary.lost[LOSS_RING_FULL], 3);
	s->begun = true;
	assert_int_equal(pipeline__apply(s, INPUT_TAIL, &tail, sizeof(tail)), 0);
	assert_int_equal(s->summary.lost[LOSS_RING_FULL], 10);
}

/* What of kernel context no number shows to be missing is told with the end, or when the recording ends. */
static void test_untold_context(void **arg)
{
	struct proc *p = begin();
	struct input_end in = {.start_ns = p->key.start_ns, .tgid = p->key.tgid, .context_lost = 4};

	(void)arg;
	s->begun = true;
	assert_int_equal(pipeline__apply(s, INPUT_TAIL, &in, sizeof(in)), 0);
	assert_int_equal(p->lost[LOSS_CONTEXT], 4);
	in.context_lost = 3;
	assert_int_equal(pipeline__apply(s, INPUT_END, &in, sizeof(in)), 0);
	assert_int_equal(s->summary.lost[LOSS_CONTEXT], 7);
}

/* Positions are the job's word: what cannot have been is one record that is missing, and no sum overflows. */
static void test_wild_gap(void **arg)
{
	struct chunk a = {0};
	struct proc *p = begin();

	(void)arg;
	put_event(&a, 1);
	send(&a, 1ull << 62, 1ull << 62); /* more records than fit into the bytes */
	assert_int_equal(p->lost[LOSS_RING_FULL], 1);
	tbuf += 0x10000;
	send(&a, UINT64_MAX - 4096, 1ull << 62); /* more than nanoseconds have gone by */
	assert_int_equal(p->lost[LOSS_RING_FULL], 2);
	assert_int_equal(s->bad_records, 2);
	assert_int_equal(nr_events, 2);
}

/* Of a process that is recorded from its start all of it; of another what comes on top of what it had lost by then. */
static void test_thread_buffer_loss(void **arg)
{
	struct scope_ev_chunk c = {.h = {.abi = SCOPE_ABI,
					 .kind = SCOPE_EV_CHUNK,
					 .ts_ns = 9000,
					 .start_ns = 10,
					 .tgid = 4000000000u},
				   .lost_cnt = 5};
	struct proc *p = begin();

	(void)arg;
	p->from_start = true;
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	assert_int_equal(p->lost[LOSS_THREAD_BUFFER], 5);
	c.lost_cnt = UINT64_MAX;
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	assert_int_equal(p->lost[LOSS_THREAD_BUFFER], 5);
	assert_int_equal(s->bad_records, 1);
}

static void test_thread_buffer_loss_before(void **arg)
{
	struct scope_ev_chunk c = {.h = {.abi = SCOPE_ABI,
					 .kind = SCOPE_EV_CHUNK,
					 .ts_ns = 9000,
					 .start_ns = 10,
					 .tgid = 4000000000u},
				   .lost_cnt = 3,
				   .reason = SCOPE_FLUSH_DYING};
	struct proc *p = begin();

	(void)arg;
	p->from_start = false;
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)),
			 p); /* what it knew when it was handed in last */
	c.reason = SCOPE_FLUSH_EPOCH;
	c.lost_cnt = 5;
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	assert_int_equal(p->lost[LOSS_THREAD_BUFFER], 0);
	c.lost_cnt = 4; /* another thread's, older */
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	c.lost_cnt = 7;
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	assert_int_equal(p->lost[LOSS_THREAD_BUFFER], 2);
	assert_int_equal(s->summary.lost[LOSS_THREAD_BUFFER], 2);
	c.lost_cnt = UINT64_MAX;
	assert_ptr_equal(decode__chunk(s, &c, sizeof(c)), p);
	assert_int_equal(p->lost[LOSS_THREAD_BUFFER], 2);
	assert_int_equal(s->bad_records, 1);
}

/* Where no thread has a buffer, or none hands it in, the loader reads the count: that is no thread's stream. */
static void test_thread_buffer_loss_outside(void **arg)
{
	struct scope_ev_chunk c = {.h = {.abi = SCOPE_ABI,
					 .kind = SCOPE_EV_CHUNK,
					 .ts_ns = 9000,
					 .start_ns = 10,
					 .tgid = 4000000000u},
				   .reason = SCOPE_FLUSH_OUTSIDE};
	struct proc *p = begin();
	uint32_t n = HASH_COUNT(p->streams);

	(void)arg;
	s->begun = true;
	p->from_start = false;
	for (c.lost_cnt = 5; c.lost_cnt < 8; c.lost_cnt++)
		assert_int_equal(pipeline__apply(s, INPUT_OUTSIDE, &c, sizeof(c)), 0);
	assert_int_equal(p->lost[LOSS_THREAD_BUFFER], 2);
	assert_int_equal(HASH_COUNT(p->streams), n);
	assert_int_equal(p->corr.tag, TAG);
	assert_int_equal(s->bad_records, 0);
}

static void test_unwanted(void **arg)
{
	struct chunk a = {0};

	(void)arg;
	s->keep = 1u << SCOPE_COLL;
	begin();
	put_event(&a, 1);
	send(&a, 0, 0);
	assert_int_equal(nr_events, 0);
	assert_int_equal(s->bad_records, 0);
}

/* ---- Hostile ----------------------------------------------------------------------------------- */

static void test_sizes(void **arg)
{
	static const uint16_t sizes[] = {0, 1, 7, 8, 16, 23, 25, 44, 0xfff8, 0xffff};
	struct chunk a = {0};
	uint64_t pos = 0, i;

	(void)arg;
	begin();
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memset(&a, 0, sizeof(a));
		put_event(&a, 2 * i + 1);
		put(&a, 24, SCOPE_REC_STOP, 1)->size = sizes[i];
		put_event(&a, 2 * i + 2); /* not found any more */
		send(&a, pos, i * 5);
		pos += a.len;
		assert_int_equal(s->bad_records, i + 1);
		assert_int_equal(nr_events, i + 1);
	}
}

static void test_truncated(void **arg)
{
	struct chunk a = {0};
	size_t size;
	uint32_t len;

	(void)arg;
	put_event(&a, 1);
	for (size = 0; size < sizeof(struct scope_ev_chunk); size++)
		send_as(&a, 0, 0, a.len, a.n, size);
	assert_null(s->procs); /* nothing that short makes a process */
	/* A length beyond the record; beyond any buffer; and every shorter one. */
	send_as(&a, 0, 0, a.len + 1, a.n, sizeof(struct scope_ev_chunk) + a.len);
	send_as(&a, 0, 0, 0xffffffff, a.n, sizeof(struct scope_ev_chunk) + a.len);
	assert_null(s->procs);
	for (len = 0; len < a.len; len++)
		send_as(&a, len * 1000, 0, len, a.n, sizeof(struct scope_ev_chunk) + a.len);
	assert_non_null(s->procs);
}

static void test_positions(void **arg)
{
	struct chunk a = {0}, b = {0};
	struct proc *p = begin();
	uint64_t i;

	(void)arg;
	put_event(&a, 1);
	put_event(&a, 2);
	send(&a, UINT64_MAX, 0);
	send(&a, 0, UINT64_MAX);
	assert_int_equal(nr_events, 0);
	assert_int_equal(s->bad_records, 2);
	send(&a, 0, 0);
	for (i = 3; i < 9; i++)
		put_event(&b, i);
	for (i = 1; i < a.len; i++) { /* overlaps that cut records */
		tbuf++;
		send(&a, 0, 0);
		send(&b, i, 0);
	}
	send(&a, UINT64_MAX - a.len, 1);
	send(&a, 0, 0);
	assert_true(p->recs < 2000);
}

static void test_kinds(void **arg)
{
	struct chunk a = {0};
	struct proc *p = begin();
	uint32_t kind, what;

	(void)arg;
	for (kind = 0; kind < 256; kind++)
		put(&a, 24, (uint8_t)kind, id_of(SCOPE_COLL, 1));
	send(&a, 0, 0);
	memset(&a, 0, sizeof(a));
	for (what = 0; what < 32; what++) { /* starts that are too short, or of no type */
		put(&a, 24, SCOPE_REC_START, id_of(what, what + 1));
		put(&a, 32, SCOPE_REC_START, id_of(what, what + 1));
	}
	send(&a, 256 * 24, 256);
	assert_int_equal(nr_events, 0);
	assert_int_equal(p->corr.open.n, 0);
	assert_true(s->bad_records > 240 + 64 - 1);
	/* and one that is too long for any type */
	memset(&a, 0, sizeof(a));
	put(&a, 512, SCOPE_REC_START, id_of(SCOPE_GROUP, 99));
	send(&a, 256 * 24 + 32 * 56, 320);
	assert_int_equal(p->corr.open.n, 0);
}

static void test_strings(void **arg)
{
	struct chunk a = {0};
	struct scope_rec_coll *coll;
	struct scope_rec_hdr *r;
	struct proc *p = begin();

	(void)arg;
	r = put(&a, 32, SCOPE_REC_STRING, 0);
	r->u32 = 7;
	r->u8 = 8;
	memcpy(r + 1, "AllRed\"\xff", 8);
	r = put(&a, 32, SCOPE_REC_STRING, 0); /* longer than its record */
	r->u32 = 8;
	r->u8 = 9;
	r = put(&a, 24, SCOPE_REC_STRING, 0);
	r->u32 = SCOPE_STRINGS;
	r = put(&a, 24, SCOPE_REC_STRING, 0);
	r->u32 = 0xffffffff;
	r = put(&a, 24 + 104, SCOPE_REC_STRING, 0);
	r->u32 = 9;
	r->u8 = 100;
	coll = (void *)put(&a, sizeof(*coll), SCOPE_REC_START, id_of(SCOPE_COLL, 1));
	coll->func = 7;
	coll->datatype = 0xffff;
	coll->algo = 300;
	coll->proto = 8;
	put(&a, 24, SCOPE_REC_STOP, id_of(SCOPE_COLL, 1));
	send(&a, 0, 0);
	assert_int_equal(s->bad_records, 4);
	assert_int_equal(p->strings[7].len, 8);
	assert_int_equal(p->strings[8].len, 0);
	assert_int_equal(p->strings[9].len, 0);
}

static void test_comm(void **arg)
{
	struct chunk a = {0};
	struct scope_rec_comm *r;
	struct proc *p = begin();
	int i;

	(void)arg;
	for (i = 0; i < 4; i++) {
		r = (void *)put(&a, sizeof(*r), SCOPE_REC_COMM, id_of(SCOPE_ID_WHAT_CTX, i + 1));
		r->comm.ctx = i == 1 ? 5 : r->h.id;
		r->comm.api = i == 2 ? 8 : 7;
		memset(r->comm.name, 'x', sizeof(r->comm.name)); /* no end */
		memset(r->comm.gpu_uuid, 0xff, sizeof(r->comm.gpu_uuid));
	}
	put(&a, 24, SCOPE_REC_COMM, id_of(SCOPE_ID_WHAT_CTX, 9));
	put(&a, 24, SCOPE_REC_COMM_NAME, id_of(SCOPE_ID_WHAT_CTX, 1));
	put(&a, 24, SCOPE_REC_FINALIZE, id_of(SCOPE_ID_WHAT_CTX, 77));
	send(&a, 0, 0);
	assert_int_equal(s->bad_records, 4);
	assert_int_equal(HASH_COUNT(p->corr.comms), 2);
}

/* A job that shows a new buffer with every chunk must not fill the loader's memory. */
static void test_many_buffers(void **arg)
{
	struct scope_ev_chunk c = {.h = {.abi = SCOPE_ABI,
					 .kind = SCOPE_EV_CHUNK,
					 .ts_ns = 9000,
					 .start_ns = 10,
					 .tgid = 4000000000u}};
	struct proc *p = begin();

	(void)arg;
	for (c.tbuf = 1; c.tbuf < 10 * SCOPE_TBUFS; c.tbuf++)
		decode__chunk(s, &c, sizeof(c));
	assert_true(HASH_COUNT(p->streams) <= SCOPE_TBUFS);
	assert_true(s->bad_records >= 9 * SCOPE_TBUFS - 1);
}

/* Times of the job's own invention stay within its life and the chunk. */
static void test_times(void **arg)
{
	static const uint64_t ts[] = {0, 1, 999, 1000, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
	struct chunk a = {0};
	struct proc *p = begin();
	uint32_t i;

	(void)arg;
	for (i = 0; i < sizeof(ts) / sizeof(*ts); i++) {
		put(&a, sizeof(struct scope_rec_start), SCOPE_REC_START, id_of(SCOPE_GROUP, i + 1))
			->ts = ts[i];
	}
	send(&a, 0, 0);
	assert_true(p->corr.now_ns <= 9000);
}

static void test_other_events(void **arg)
{
	struct scope_ev_exit e = {.h = {.abi = SCOPE_ABI,
					.kind = SCOPE_EV_EXIT,
					.ts_ns = 9000,
					.size = sizeof(e),
					.start_ns = 10,
					.tgid = 4000000000u}};

	(void)arg;
	assert_null(decode__event(s, &e, sizeof(e))); /* of a process not known */
	assert_null(s->procs);
	begin();
	e.h.size = sizeof(e.h);
	assert_null(decode__event(s, &e, sizeof(e)));
	assert_int_equal(s->bad_records, 1);
	e.h.size = sizeof(e);
	e.h.kind = 99;
	assert_null(decode__event(s, &e, sizeof(e)));
	assert_int_equal(s->skipped_kinds, 1);
	e.h.abi++;
	assert_null(decode__event(s, &e, sizeof(e)));
	assert_int_equal(s->bad_records, 2);
	e.h.abi--;
	e.h.kind = SCOPE_EV_EXEC;
	assert_null(decode__event(s, &e, sizeof(e)));
	assert_null(s->procs);
}

/* A process that has handed in nothing is one all the same; found again, the same one. */
static void test_found(void **arg)
{
	struct scope_ev_hdr h = {.abi = SCOPE_ABI,
				 .kind = SCOPE_EV_FOUND,
				 .ts_ns = 9000,
				 .start_ns = 10,
				 .tgid = 7,
				 .tid = 7,
				 .ns_tgid = 1,
				 .ns_tid = 1,
				 .comm = "job"};
	struct proc *p;

	(void)arg;
	for (h.size = 0; h.size < sizeof(h); h.size++)
		assert_null(decode__event(s, &h, sizeof(h)));
	assert_int_equal(s->bad_records, sizeof(h));
	assert_null(s->procs);
	p = decode__event(s, &h, sizeof(h));
	assert_non_null(p);
	assert_int_equal(HASH_COUNT(p->threads), 1);
	assert_int_equal(p->threads->role, ROLE_OTHER);
	h.ts_ns = 8000;
	assert_ptr_equal(decode__event(s, &h, sizeof(h)), p);
	assert_int_equal(p->corr.now_ns, 9000);
	assert_int_equal(HASH_COUNT(s->procs), 1);
	assert_int_equal(HASH_COUNT(p->threads), 1);
}

static void thread_begins(uint32_t tid, uint32_t tgid, uint64_t start_ns)
{
	struct scope_ev_thread t = {
		.h = {.abi = SCOPE_ABI, .kind = SCOPE_EV_THREAD, .size = sizeof(t), .ts_ns = 8000},
		.start_ns = start_ns,
		.tgid = tgid,
		.tid = tid,
		.state = SCOPE_TASK_RUN};

	decode__event(s, &t, sizeof(t));
}

/* BPF can begin a living thread anew: what is told of it at its end is of the timeline that goes on. */
static void test_thread_begins_anew(void **arg)
{
	struct scope_ev_switch e = {
		.h = {.abi = SCOPE_ABI, .kind = SCOPE_EV_SWITCH, .size = sizeof(e), .ts_ns = 8500},
		.cpu_seq = 1,
		.flags = SCOPE_SWITCH_NEXT,
		.next_tid = 500,
		.next_seq = 1};
	const char comm[SCOPE_COMM_LEN] = "job";
	struct thread *thread;
	struct proc *p;

	(void)arg;
	teardown(NULL);
	s = session_new_sched(SCHED_MODE_EVENTS);
	thread_begins(500, 4000000000u, 10);
	p = begin();
	thread = proc__thread(p, 0, 500, comm);
	assert_ptr_equal(thread->sched, sched__find(&s->sched, 500));
	decode__event(s, &e, sizeof(e));
	thread_begins(500, 4000000000u, 10);
	assert_true(sched__find(&s->sched, 500) != NULL);
	assert_ptr_equal(thread->sched, sched__find(&s->sched, 500));
}

/*
 * A process that has the plugin and hands in nothing, as forked workers do, is followed, too: with it go its threads, whose own
 * end the ring may have had no room for.
 */
static void test_unrecorded_end(void **arg)
{
	static const uint16_t kinds[] = {SCOPE_EV_EXIT, SCOPE_EV_EXEC};
	uint32_t i, k;

	(void)arg;
	teardown(NULL);
	s = session_new_sched(SCHED_MODE_EVENTS);
	thread_begins(900, 900, 77);
	for (k = 0; k < 2; k++) {
		struct scope_ev_exit e = {.h = {.abi = SCOPE_ABI,
						.kind = kinds[k],
						.size = sizeof(e),
						.ts_ns = 9000,
						.start_ns = 10,
						.tgid = 500,
						.tid = 500}};

		for (i = 0; i < 8; i++)
			thread_begins(500 + i, 500, 10);
		e.h.tid = 501;
		e.h.kind = SCOPE_EV_EXIT;
		decode__event(s, &e, sizeof(e));
		assert_int_equal(HASH_COUNT(s->sched.threads), 8);
		e.h.tid = 500;
		e.h.kind = kinds[k];
		e.group_dead = 1;
		decode__event(s, &e, sizeof(e));
		assert_int_equal(HASH_COUNT(s->sched.threads), 1);
	}
	assert_non_null(sched__find(&s->sched, 900));
}

/* ---- Steps in one record ----------------------------------------------------------------------- */

/* `parts`: how many it has got, in order. A send's are 100 ticks apart, a receive's 70. */
static struct scope_rec_step *put_step(struct chunk *ch, uint64_t n, uint8_t dir, uint32_t parts)
{
	struct scope_rec_step *r =
		(void *)put(ch, sizeof(*r), SCOPE_REC_STEP, id_of(SCOPE_PROXY_STEP, n));
	uint32_t i;

	r->s.h.u8 = dir;
	r->s.h.ts += n;
	r->trans_size_bytes = 4711;
	for (i = 0; i < parts; i++)
		r->ticks[i] = 1 + (i + 1) * (dir == SCOPE_STEP_SEND ? 100 : 70);
	ch->n += parts;
	return r;
}

static void test_steps(void **arg)
{
	struct proc *p = begin();
	struct chunk a = {0};
	uint32_t i;

	(void)arg;
	put_step(&a, 1, SCOPE_STEP_SEND, 4);
	put_step(&a, 2, SCOPE_STEP_RECV, 4);
	send(&a, 0, 0);
	assert_int_equal(s->bad_records, 0);
	assert_int_equal(p->recs, 10);
	assert_int_equal(p->streams->rec_pos, 10);
	assert_int_equal(nr_states, 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(
			states_seen[i].id,
			id_of(SCOPE_PROXY_STEP,
			      states_seen[i].state < 10 || states_seen[i].state == 20 ? 1 : 2));
}

/* Read from outside before it was whole, twice; then handed in. Each part comes once. */
static void test_step_outside(void **arg)
{
	struct chunk a = {0}, b = {0}, c = {0}, d = {0};
	struct proc *p = begin();

	(void)arg;
	put_step(&a, 1, SCOPE_STEP_SEND, 1);
	reason = SCOPE_FLUSH_OUTSIDE;
	send(&a, 0, 0);
	assert_int_equal(p->recs, 2);
	put_step(&b, 1, SCOPE_STEP_SEND, 2);
	put_step(&b, 2, SCOPE_STEP_RECV, 0);
	send(&b, 0, 0);
	assert_int_equal(p->recs, 4);
	put_step(&c, 1, SCOPE_STEP_SEND, 4);
	put_step(&c, 2, SCOPE_STEP_RECV, 4);
	reason = SCOPE_FLUSH_FULL;
	send(&c, 0, 0);
	assert_int_equal(p->recs, 10);
	send(&c, 0, 0);
	put_event(&d, 3);
	send(&d, c.len, c.n);
	assert_int_equal(p->recs, 12);
	assert_int_equal(nr_states, 6);
	assert_int_equal(nr_events, 3);
	assert_int_equal(p->lost[LOSS_RING_FULL], 0);
	assert_int_equal(s->bad_records + p->corr.counts.malformed + p->corr.counts.late, 0);
}

/*
 * What open steps have got after they were read from outside is in no new bytes, or in few; then it finds the ring full. Told by the
 * next chunk, also to a recorder that looks at no records.
 */
static void test_step_outside_lost(void **arg)
{
	static const struct chunk none;
	struct chunk one = {0}, ten = {0}, next = {0};
	struct proc *p;
	uint32_t i;

	(void)arg;
	put_step(&one, 1, SCOPE_STEP_SEND, 3);
	for (i = 0; i < 10; i++)
		put_step(&ten, 1 + i, SCOPE_STEP_SEND, 0);
	put_event(&next, 30);
	for (i = 0; i < 2; i++) {
		p = begin_anew(i);
		reason = SCOPE_FLUSH_OUTSIDE;
		send(&one, 0, 0);
		reason = SCOPE_FLUSH_FULL;
		send(&next, one.len, one.n + 1);
		assert_int_equal(p->lost[LOSS_RING_FULL], 1);
		send(&next, one.len, one.n + 1);
		assert_int_equal(p->lost[LOSS_RING_FULL], 1);

		/* Or by the buffer, which is empty since. */
		p = begin_anew(i);
		reason = SCOPE_FLUSH_OUTSIDE;
		send(&one, 0, 0);
		send(&none, one.len, one.n + 1);
		assert_int_equal(p->lost[LOSS_RING_FULL], 1);
		decode__tail_loss(p, one.n + 1);
		assert_int_equal(p->lost[LOSS_RING_FULL], 1);
		reason = SCOPE_FLUSH_FULL;
		send(&next, one.len, one.n + 1);
		assert_int_equal(p->lost[LOSS_RING_FULL], 1);

		p = begin_anew(i);
		reason = SCOPE_FLUSH_OUTSIDE;
		send(&ten, 0, 0);
		reason = SCOPE_FLUSH_FULL;
		send(&next, ten.len + 24, ten.n + 41);
		assert_int_equal(p->lost[LOSS_RING_FULL], 41);
		assert_int_equal(s->bad_records, 0);
	}
}

/* What was read from outside, and handed in later, when the ring was full: BPF says that it was lost. */
static void test_outside_then_lost(void **arg)
{
	struct chunk a = {0}, b = {0}, next = {0};
	static const struct {
		int status;
		bool exec;
	} ends[] = {{SIGKILL, false}, {1 << 8, false}, {0, true}};
	struct proc *p;
	size_t i;

	(void)arg;
	put_event(&a, 1);
	put_event(&b, 2);
	put_event(&b, 3);
	put_event(&next, 4);
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		p = begin_anew(false);
		reason = SCOPE_FLUSH_OUTSIDE;
		send(&a, 0, 0);
		reason = SCOPE_FLUSH_FULL;
		send(&next, a.len + b.len, a.n + b.n);
		assert_int_equal(p->lost[LOSS_RING_FULL], b.n);
		decode__tail_loss(p, a.n + b.n);
		assert_int_equal(p->lost[LOSS_RING_FULL], b.n);
		decode__tail_loss(p, a.n + b.n + 3);
		assert_int_equal(p->lost[LOSS_RING_FULL], b.n + 3);

		/* All of a process that ends is handed in, at last. */
		p = begin_anew(false);
		reason = SCOPE_FLUSH_OUTSIDE;
		send(&a, 0, 0);
		reason = SCOPE_FLUSH_FULL;
		decode__end(p, ends[i].status, ends[i].exec, a.n + 3);
		assert_int_equal(s->summary.lost[LOSS_RING_FULL], 3);
	}
	/* Read behind a gap: what comes through the ring then was never lost. */
	p = begin_anew(false);
	reason = SCOPE_FLUSH_OUTSIDE;
	send(&a, b.len, b.n);
	reason = SCOPE_FLUSH_FULL;
	assert_int_equal(p->lost[LOSS_RING_FULL], b.n);
	send(&a, b.len, b.n);
	decode__tail_loss(p, b.n + 3);
	assert_int_equal(p->lost[LOSS_RING_FULL], b.n + 3);
}

/* That it was handed in is shown by where its buffer begins as well, when nothing comes through the ring any more. */
static void test_outside_then_emptied(void **arg)
{
	static const struct chunk none;
	struct chunk a = {0}, next = {0};
	struct proc *p;
	int i;

	(void)arg;
	put_event(&a, 1);
	put_event(&next, 2);
	for (i = 0; i < 2; i++) {
		p = begin_anew(i);
		reason = SCOPE_FLUSH_OUTSIDE;
		send(&a, 0, 0);
		send(&none, a.len, a.n);
		send(&next, a.len, a.n);
		send(&none, a.len + next.len, a.n + next.n);
		decode__tail_loss(p, a.n + next.n + 3);
		assert_int_equal(p->lost[LOSS_RING_FULL], 3);

		/* Some of it was never seen. */
		p = begin_anew(i);
		send(&a, 0, 0);
		send(&none, a.len + next.len, a.n + next.n);
		assert_int_equal(p->lost[LOSS_RING_FULL], next.n);
		decode__tail_loss(p, a.n + next.n + 3);
		assert_int_equal(p->lost[LOSS_RING_FULL], next.n + 3);

		/* The ring was held up, and has it after all. */
		p = begin_anew(i);
		send(&a, 0, 0);
		send(&next, a.len, a.n);
		reason = SCOPE_FLUSH_FULL;
		send(&a, 0, 0);
		decode__tail_loss(p, 3);
		assert_int_equal(p->lost[LOSS_RING_FULL], 3);
		reason = SCOPE_FLUSH_OUTSIDE;
		send(&none, a.len + next.len, a.n + next.n);
		decode__tail_loss(p, next.n + 3);
		assert_int_equal(p->lost[LOSS_RING_FULL], 3);
		reason = SCOPE_FLUSH_FULL;
	}
}

/* One of no step, one without a direction, one that is too short. */
static void test_step_lies(void **arg)
{
	struct proc *p = begin();
	struct chunk a = {0};

	(void)arg;
	put_step(&a, 1, SCOPE_STEP_SEND, 4)->s.h.id = id_of(SCOPE_COLL, 1);
	put_step(&a, 2, 3, 3);
	put(&a, sizeof(struct scope_rec_start), SCOPE_REC_STEP, id_of(SCOPE_PROXY_STEP, 3));
	send(&a, 0, 0);
	assert_int_equal(s->bad_records, 5 + 3 + 1);
	assert_int_equal(p->corr.counts.malformed, 5 + 3 + 1);
	assert_int_equal(nr_states, 0);
}

/* ---- A capture alone ---------------------------------------------------------------------------- */

struct known {
	uint64_t lost[LOSS_CAUSES], pos, rec_pos, colls, bad;
	uint64_t now_ns; /* the process' time */
	uint32_t comms, streams;
};

static void put_comm(struct chunk *ch, uint8_t api)
{
	struct scope_rec_comm *r;

	r = (void *)put(ch, sizeof(*r), SCOPE_REC_COMM, id_of(SCOPE_ID_WHAT_CTX, 1));
	r->comm.ctx = r->h.id;
	r->comm.api = api;
}

/* Chunks that go on, come twice, in part before in whole, behind a gap, and with what makes no sense. */
static struct known known_of_chunks(bool live)
{
	struct chunk a = {0}, b = {0}, bad = {0}, other = {0};
	struct scope_rec_start *start;
	struct known known;
	struct proc *p;
	uint64_t n;

	setup(NULL);
	s->live = live;
	p = begin();
	p->begin_ns = 3000;
	p->corr.first_id = 50;
	put_comm(&a, 7);
	for (n = 1; n < 5; n++)
		put(&a, sizeof(struct scope_rec_coll), SCOPE_REC_START, id_of(SCOPE_COLL, n));
	put(&a, sizeof(struct scope_rec_ce_coll), SCOPE_REC_START, id_of(SCOPE_CE_COLL, 5));
	/* none of ours: of an earlier recording, of a group of that */
	put(&a, sizeof(struct scope_rec_coll), SCOPE_REC_START, id_of(SCOPE_COLL, 6))->ts = 100;
	start = (void *)put(&a, sizeof(struct scope_rec_coll), SCOPE_REC_START,
			    id_of(SCOPE_COLL, 7));
	start->parent = id_of(SCOPE_GROUP, 49);
	put(&a, 24, SCOPE_REC_FINALIZE, id_of(SCOPE_ID_WHAT_CTX, 9));
	put_event(&b, 9);
	put_event(&other, 10);
	put_comm(&bad, 8);
	put(&bad, 24, SCOPE_REC_STOP, 0)->size = 16;
	send(&a, 0, 0);
	send(&a, 0, 0);
	send(&b, a.len, a.n);
	send(&bad, 80000, 500);
	p->limited_recs = 700;
	send(&bad, 160000, 1500);
	tbuf += 0x10000;
	reason = SCOPE_FLUSH_OUTSIDE;
	send(&other, 8000, 10);
	reason = 0;
	decode__tail_loss(p, 10000);
	known = (struct known){.pos = p->streams->pos,
			       .rec_pos = p->streams->rec_pos,
			       .colls = p->corr.colls,
			       .now_ns = p->corr.now_ns,
			       .bad = s->bad_records + p->corr.counts.malformed,
			       .comms = HASH_COUNT(p->corr.comms),
			       .streams = HASH_COUNT(p->streams)};
	memcpy(known.lost, p->lost, sizeof(known.lost));
	teardown(NULL);
	return known;
}

/* Who records one without decoding knows as much of its processes and of what is lost. */
/* In what the recorder tells of itself: of the process, and of all. */
static uint64_t events_told(bool all)
{
	const struct digest_counts counts = {0};
	char *text = status_session(s, &counts);
	json_t *doc = json_loads(text, 0, NULL), *of;
	uint64_t n;

	of = all ? json_object_get(doc, "counts")
		 : json_array_get(json_object_get(doc, "processes"), 0);
	n = (uint64_t)json_integer_value(json_object_get(of, "events"));
	json_decref(doc);
	free(text);
	return n;
}

/* A trace that is deleted, or a disk that is full: what was counted before does not become less, as if we had begun anew. */
static void test_events_told(void **arg)
{
	struct chunk a = {0}, b = {0}, c = {0};
	int full = open("/dev/full", O_WRONLY);
	struct proc *p;

	(void)arg;
	written = true;
	log_level = LOG_ERR;
	put_event(&a, 1);
	put_event(&a, 2);
	put_event(&b, 3);
	put_event(&c, 4);
	p = send(&a, 0, 0);
	assert_int_equal(out_file__flush(&p->out), 0);
	assert_int_equal(events_told(false), 2);
	assert_int_equal(unlink(p->out.path), 0);
	trace__lost(p, 9000, false);
	assert_int_equal(events_told(false), 2);
	send(&b, a.len, a.n);
	assert_int_equal(events_told(false), 3);
	assert_int_equal(dup2(full, p->out.fd), p->out.fd);
	assert_true(out_file__flush(&p->out) < 0);
	assert_int_equal(events_told(false), 3);
	send(&c, a.len + b.len, a.n + b.n);
	assert_int_equal(events_told(false), 4);
	assert_int_equal(events_told(true), 4);
	proc__end(p, "exit", true, 0);
	assert_int_equal(events_told(true), 4);
	close(full);
}

static void test_live(void **arg)
{
	struct known decoded = known_of_chunks(false), skimmed;

	(void)arg;
	assert_int_equal(decoded.colls, 5);
	assert_int_equal(decoded.comms, 1);
	assert_int_equal(decoded.bad, 8); /* of two chunks two each, counted twice */
	assert_true(decoded.lost[LOSS_RING_FULL] > 1000 && decoded.lost[LOSS_RATE_LIMIT]);
	nr_events = 0;
	skimmed = known_of_chunks(true);
	assert_int_equal(nr_events, 0);
	assert_int_equal(skimmed.now_ns, 9000);
	skimmed.now_ns = decoded.now_ns; /* of records, which is as good */
	assert_memory_equal(&skimmed, &decoded, sizeof(decoded));
}

/* NCCL stops the CollApi that came last once more by each call, recorded or not: nothing is under way for that. */
static void test_live_silence(void **arg)
{
	struct chunk idle = {0}, called = {0}, ended = {0};

	(void)arg;
	begin_anew(true);
	put_event(&idle, 1);
	put(&idle, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, id_of(SCOPE_COLL_API, 2));
	send(&idle, 0, 0);
	assert_int_equal(s->heard_ns, 0);
	put(&called, sizeof(struct scope_rec_coll_api), SCOPE_REC_START, id_of(SCOPE_COLL_API, 3));
	send(&called, idle.len, idle.n);
	assert_int_equal(s->heard_ns, 9000);
	s->heard_ns = 0;
	put(&ended, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, id_of(SCOPE_COLL, 4));
	send(&ended, idle.len + called.len, idle.n + called.n);
	assert_int_equal(s->heard_ns, 9000);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_steps),
		TEST(test_step_outside),
		TEST(test_step_outside_lost),
		TEST(test_outside_then_lost),
		TEST(test_outside_then_emptied),
		TEST(test_step_lies),
		TEST(test_in_order),
		TEST(test_twice),
		TEST(test_gap),
		TEST(test_limited),
		TEST(test_untold),
		TEST(test_untold_context),
		TEST(test_wild_gap),
		TEST(test_thread_buffer_loss),
		TEST(test_thread_buffer_loss_before),
		TEST(test_thread_buffer_loss_outside),
		TEST(test_unwanted),
		TEST(test_sizes),
		TEST(test_truncated),
		TEST(test_positions),
		TEST(test_kinds),
		TEST(test_strings),
		TEST(test_comm),
		TEST(test_many_buffers),
		TEST(test_times),
		TEST(test_other_events),
		TEST(test_found),
		TEST(test_thread_begins_anew),
		TEST(test_unrecorded_end),
		TEST(test_events_told),
		cmocka_unit_test(test_live),
		TEST(test_live_silence),
	};
	int failed;

	if (!mkdtemp(chunks_dir))
		return 1;
	failed = cmocka_run_group_tests_name("decode", tests, NULL, NULL);
	rmdir(chunks_dir);
	return failed;
}
