/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording without a kernel and a job: threads of the miniature kernel do what NCCL's threads
 * do, all of it goes through decode into a trace, and the trace is checked and read.
 */
#ifndef NCCLSCOPE_TESTS_SCHED_JOB_H
#define NCCLSCOPE_TESTS_SCHED_JOB_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "chunks.h"
#include "check_json.h"
#include "cmd.h"
#include "decode_sched.h"
#include "log.h"
#include "nccl_profiler.h"
#include "sched_kernel.h"

#define TAG    0x77
#define CTX    ((uint64_t)TAG << SCOPE_ID_TAG_SHIFT | 16ull << SCOPE_ID_COUNTER_BITS | 1)
#define JOB    2000000000u /* above any that there can be */
#define HOG    900
#define US     1000ull
#define MS     1000000ull
#define EVENTS 4096

/* An event, as it was. */
struct event {
	uint64_t id, start_ns, stop_ns, child_ns; /* 0: not yet */
	uint32_t what, parent;
	struct k_task *task;
};

/* What a thread has in its buffer. The plugin's order: filled, handed in, emptied. */
struct buffer {
	uint64_t pos, rec_pos, begun_ns;
	uint32_t len, n;
	unsigned char data[SCOPE_TBUF_DATA_SIZE];
};

static struct session *s;
static struct kernel k;
static struct buffer buffers[K_TASKS];
static struct event events[EVENTS];
static uint32_t nevents, drop;

/* ---- The kernel and the plugin into decode --------------------------------------------------- */

static inline bool feed(struct kernel *from, const void *rec)
{
	const struct scope_ev_short *h = rec;

	(void)from;
	if (h->kind != SCOPE_EV_EXIT && drop && drop--)
		return false;
	decode__event(s, rec, h->size);
	return true;
}

static inline struct buffer *buffer_of(const struct k_task *t)
{
	return &buffers[t - k.tasks];
}

/* Hands a buffer in; `reason` tells whether the thread does it or the loader fetches it. */
static inline void flush(struct k_task *t, uint8_t reason)
{
	struct buffer *b = buffer_of(t);
	size_t size = sizeof(struct scope_ev_chunk) + b->len;
	struct scope_ev_chunk *c = calloc(1, size);

	c->h = (struct scope_ev_hdr){.abi = SCOPE_ABI,
				     .kind = SCOPE_EV_CHUNK,
				     .size = (uint32_t)size,
				     .start_ns = t->start_ns,
				     .tgid = t->tgid,
				     .tid = t->tid,
				     .ns_tgid = 5,
				     .ns_tid = t->ns_tid};
	memcpy(c->h.comm, t->comm, sizeof(c->h.comm));
	c->reason = reason;
	if (reason != SCOPE_FLUSH_OUTSIDE)
		c->sched_seq = k_chunk(&k, t);
	else
		k_look(&k);
	c->h.ts_ns = k.now_ns;
	c->tbuf = 0x10000 + t->tid;
	c->pos = b->pos;
	c->rec_pos = b->rec_pos;
	c->len = b->len;
	c->rec_cnt = b->n;
	c->tag = TAG;
	c->clock = SCOPE_CLOCK_MONOTONIC;
	memcpy(c + 1, b->data, b->len);
	if (t->got && reason != SCOPE_FLUSH_OUTSIDE)
		k_chunk_got(t, c->sched_seq);
	decode__event(s, c, size);
	free(c);
	if (reason == SCOPE_FLUSH_OUTSIDE) /* it stays in the job, which will hand it in too */
		return;
	b->pos += b->len;
	b->rec_pos += b->n;
	b->len = b->n = 0;
}

static inline struct scope_rec_hdr *put(struct k_task *t, uint16_t size, uint8_t kind, uint64_t id)
{
	struct buffer *b = buffer_of(t);
	struct scope_rec_hdr *r;

	if (b->len + size > sizeof(b->data))
		flush(t, SCOPE_FLUSH_FULL);
	if (!b->len)
		b->begun_ns = k.now_ns;
	r = (struct scope_rec_hdr *)(b->data + b->len);
	memset(r, 0, size);
	*r = (struct scope_rec_hdr){.size = size, .kind = kind, .ts = k.now_ns, .id = id};
	b->len += size;
	b->n++;
	return r;
}

/* An event of `t`, which runs, starts; its number in the list. Number 0 is none. */
static inline uint32_t start(struct k_task *t, uint32_t what, uint32_t parent)
{
	static const uint16_t sizes[SCOPE_NTYPES] = {
		[SCOPE_COLL] = sizeof(struct scope_rec_coll),
		[SCOPE_PROXY_OP] = sizeof(struct scope_rec_proxy_op),
		[SCOPE_COLL_API] = sizeof(struct scope_rec_coll_api)};
	uint32_t n = ++nevents;
	struct event *ev = &events[n];
	union corr_start *r;

	assert_true(n < EVENTS);
	assert_int_equal(t->state, SCOPE_TASK_RUN);
	*ev = (struct event){.id = (uint64_t)TAG << SCOPE_ID_TAG_SHIFT |
				   (uint64_t)what << SCOPE_ID_COUNTER_BITS | n,
			     .start_ns = k.now_ns,
			     .what = what,
			     .parent = parent,
			     .task = t};
	r = (void *)put(t, sizes[what] ? sizes[what] : sizeof(r->s), SCOPE_REC_START, ev->id);
	r->s.parent = events[parent].id;
	r->s.ctx = CTX;
	if (what == SCOPE_PROXY_OP) {
		r->proxy_op.pid = 5;
		r->proxy_op.nsteps = 1000;
	}
	return n;
}

static inline void stop_by(struct k_task *t, uint32_t n)
{
	struct event *ev = &events[n], *op = &events[ev->parent];

	put(t, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, ev->id);
	ev->stop_ns = k.now_ns;
	if (ev->what == SCOPE_PROXY_STEP && k.now_ns > op->child_ns)
		op->child_ns = k.now_ns;
}

static inline void stop_event(uint32_t n)
{
	stop_by(events[n].task, n);
}

static inline void communicator(struct k_task *t)
{
	struct scope_rec_comm *r = (void *)put(t, sizeof(*r), SCOPE_REC_COMM, CTX);

	r->comm = (struct scope_comm){
		.ctx = CTX, .hash = 0xabc, .nranks = 2, .nnodes = 1, .api = 5, .mask = 0xfff};
	flush(t, SCOPE_FLUSH_INIT);
}

/* ---- A recording ----------------------------------------------------------------------------- */

static inline void begin(enum sched_mode mode)
{
	s = session_new_sched(mode);
	s->procs = NULL;
	k.ncpus = 4;
	k.ring = feed;
	k.now_ns = 1 * MS;
	nevents = drop = 0;
	memset(buffers, 0, sizeof(buffers));
	memset(events, 0, sizeof(events));
}

static inline void release(void)
{
	if (s)
		session_free(s);
	s = NULL;
	chunks_files(NULL);
	k_free(&k);
}

static inline void at(uint64_t ns)
{
	assert_true(ns >= k.now_ns);
	k.now_ns = ns;
}

/* A thread of the job that runs on `cpu` from now on, since it was born there. */
static inline struct k_task *job_thread(uint32_t n, uint32_t cpu, const char *comm)
{
	struct k_task *t = k_task(&k, JOB + n, JOB, comm, true);

	t->ns_tid = 5 + n;
	k_fork(&k, t);
	k_wakeup(&k, t, cpu);
	k_preempts(&k, cpu, t);
	return t;
}

static inline struct proc *job(void)
{
	const struct scope_ev_hdr id = {.start_ns = 10, .tgid = JOB};

	return proc__get(s, &id, false);
}

/* As follow.c does it. */
static inline void ask_sleepers(void)
{
	struct sched_thread *of;
	struct k_task *t;

	for (t = k.tasks; t < k.tasks + k.ntasks; t++) {
		of = t->bpf.known && !t->ended ? sched__find(&s->sched, t->tid) : NULL;
		if (!of || sched_thread__last(of)->state != SCHED_BLOCKED)
			continue;
		sched__still(&s->sched, of, t->bpf.seq,
			     t->bpf.state == SCOPE_TASK_WAIT ? t->bpf.wait_ns : 0, t->bpf.cpu,
			     k.now_ns);
	}
}

static inline void tick(void)
{
	struct proc *p, *tmp;

	k_look(&k);
	ask_sleepers();
	HASH_ITER (hh, s->procs, p, tmp)
		correlate__tick(&p->corr, k.now_ns);
	decode_sched__tick(s, k.now_ns);
}

/* As drain() of record.c does it. */
static inline void end(void)
{
	struct proc *p, *tmp;

	s->end_ns = k.now_ns;
	k_look(&k);
	ask_sleepers();
	decode_sched__end(s, k.now_ns);
	HASH_ITER (hh, s->procs, p, tmp) {
		p->corr.now_ns = k.now_ns;
		proc__end(p, "loader-stopped", false, 0);
	}
}

static inline void must_pass_check(void)
{
	static char name[] = "check", quiet[] = "-q", few[] = "--max-errors=9";
	char *argv[] = {name, quiet, chunks_dir, NULL}, *again[] = {name, few, chunks_dir, NULL};

	if (cmd_check(3, argv) == EXIT_OK)
		return;
	cmd_check(3, again);
	fail_msg("check finds errors");
}

/* ---- Reading what came of it ----------------------------------------------------------------- */

static struct json_doc doc;
static void (*on_line)(const struct json_node *rec, const char *text);

static inline const struct json_node *key(const struct json_node *obj, const char *name)
{
	return jn_get(&doc, obj, name);
}

/* 0 where it is absent. */
static inline uint64_t ns_of(const struct json_node *obj, const char *name)
{
	int64_t ns = 0;

	if (key(obj, name))
		assert_true(jn_time(key(obj, name), false, &ns) && ns >= 0);
	return (uint64_t)ns;
}

static inline uint64_t nr_of(const struct json_node *obj, const char *name)
{
	uint64_t n = 0;

	if (key(obj, name))
		assert_true(jn_u64(key(obj, name), &n));
	return n;
}

static inline void read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	assert_non_null(f);
	while ((len = getline(&line, &cap, f)) > 0) {
		line[--len] = 0;
		assert_int_equal(json_doc__parse(&doc, line, (size_t)len), 0);
		on_line(&doc.nodes[0], line);
	}
	free(line);
	fclose(f);
}

/* Ends the recording, has it checked, and calls fn for each line. */
static inline void read_trace(void (*fn)(const struct json_node *rec, const char *text))
{
	end();
	must_pass_check();
	on_line = fn;
	assert_int_equal(json_doc__init(&doc), 0);
	chunks_files(read_file);
	json_doc__free(&doc);
}

/* Runs a group of tests in a directory of its own. */
#define RUN_TESTS(name, tests)                                                                     \
	({                                                                                         \
		int failed = 1;                                                                    \
                                                                                                   \
		log_level = LOG_ERR;                                                               \
		if (mkdtemp(chunks_dir))                                                           \
			failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);             \
		rmdir(chunks_dir);                                                                 \
		failed;                                                                            \
	})

#endif
