// SPDX-License-Identifier: BSD-2-Clause
/*
 * From an API call to work: groups, tasks, plans. Which channel gets which part, how many steps an
 * operation has and in which order the profiler hears of it follow NCCL 2.28.9's src/enqueue.cc
 * and src/group.cc for ring/Simple and NET.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"
#include "prof_abi.h"

#define MIN_TRAFFIC_PER_CHANNEL (16 << 10)

#define API	    __attribute__((visibility("default")))
#define ALIAS(name) __attribute__((weak, alias(name), visibility("default")))

__thread int group_depth;
__thread uint64_t user_tag;
static __thread ncclResult_t group_error;
static __thread struct ncclComm *group_comms;
static __thread struct async_job *group_jobs;

void task_list_init(struct task_list *l)
{
	l->head = NULL;
	l->tail = &l->head;
	l->n = 0;
}

void task_list_add(struct task_list *l, struct task *t)
{
	t->next = NULL;
	*l->tail = t;
	l->tail = &t->next;
	l->n++;
}

struct task *task_list_pop(struct task_list *l)
{
	struct task *t = l->head;

	if (!t)
		return NULL;
	l->head = t->next;
	if (!l->head)
		l->tail = &l->head;
	l->n--;
	return t;
}

static void task_list_free(struct task_list *l)
{
	struct task *t;

	while ((t = task_list_pop(l)))
		free(t);
}

/* ---- plans: channel parts ---- */

static bool kernel_ch_on(const struct task *t)
{
	return prof_loaded() && prof_native() >= 3 && (t->mask & ncclProfileKernelCh);
}

/* The "GPU" goes by the mask of `t`, whoever else shares the work: the proxy waits for good where that had another (as in NCCL). */
static struct work *plan_work(struct plan *p, int channel, const struct task *t)
{
	struct kernel *k = p->kernel;
	struct work *w = &k->works[k->nworks++];

	w->comm = p->comm;
	w->channel = channel;
	w->stamped = kernel_ch_on(t);
	return w;
}

static struct block *plan_block(struct plan *p, struct work *w, const struct task *t)
{
	struct block *b = &p->kernel->blocks[p->kernel->nblocks++];

	b->work = w;
	w->nblocks++;
	b->func = t->func;
	b->type = t->type;
	b->op = t->op;
	b->root = t->root;
	b->send = t->send;
	b->recv = t->recv;
	b->count = t->count;
	return b;
}

static void plan_add_op(struct plan *p, struct conn *c, struct task *t, const struct proxy_op *op,
			struct work *w)
{
	struct plan_op *o = &p->ops[p->nops++];

	o->conn = c;
	o->task = t;
	o->op = *op;
	o->work = w;
}

/* A KernelCh operation follows the proxy operations of the same part, as in NCCL. */
static void plan_add_prof(struct plan *p, struct task *t, const struct proxy_op *op, struct work *w)
{
	struct proxy_op prof = *op;

	prof.kind = OP_PROF;
	prof.shared = 0;
	prof.is_recv_func = t->func == FUNC_RECV;
	plan_add_op(p, NULL, t, &prof, w);
}

static size_t max_send_recv(int func, int n)
{
	return func == FUNC_ALLGATHER || func == FUNC_REDUCESCATTER ? n : 1;
}

/* calcCollChunking() for ring/Simple: the steps of this part and the shape of its block. */
static void coll_shape(const struct ncclComm *c, const struct task *t, size_t count,
		       struct block *b, struct proxy_op *op)
{
	bool pipe = t->func == FUNC_BROADCAST || t->func == FUNC_REDUCE;
	int n = c->nranks, per_loop, chunks = pipe ? 1 : n;
	size_t es = type_size(t->type), bytes = es * max_send_recv(t->func, n) * count, chunk;

	op->chunk_steps = pipe ? 1 : NCCL_STEPS / 2;
	op->slice_steps = pipe ? 1 : NCCL_STEPS / 4;
	chunk = STEP_SIZE * op->chunk_steps;
	per_loop = pipe ? 1 : t->func == FUNC_ALLREDUCE ? 2 * (n - 1) : n - 1;
	op->chunk_size = chunk;
	op->nsteps = per_loop * DIV_UP(bytes, chunks * chunk) * op->chunk_steps;
	op->nbytes = STEP_SIZE * op->slice_steps;
	b->chunk_steps = op->chunk_steps;
	b->slice_steps = op->slice_steps;
	b->step_size = STEP_SIZE;
	b->chunk_count = chunk / es;
}

static bool need_recv(const struct ncclComm *c, const struct task *t)
{
	if (t->func == FUNC_BROADCAST)
		return c->rank != t->root;
	if (t->func == FUNC_REDUCE)
		return (c->rank + c->nranks - 1) % c->nranks != t->root;
	return true;
}

static bool need_send(const struct ncclComm *c, const struct task *t)
{
	if (t->func == FUNC_BROADCAST)
		return (c->rank + 1) % c->nranks != t->root;
	return t->func != FUNC_REDUCE || c->rank != t->root;
}

static void coll_part(struct plan *p, struct task *t, int channel, size_t off, size_t count)
{
	struct ncclComm *c = p->comm;
	struct proxy_op op = {.channel = channel, .rank = c->rank};
	struct work *w = plan_work(p, channel, t);
	struct block *b = plan_block(p, w, t);

	b->chan_off = off;
	b->chan_count = count;
	coll_shape(c, t, count, b, &op);
	op.op_count = (uint64_t)p->coll_ops << 1;
	if (need_recv(c, t)) {
		b->rx = c->ring_recv[channel];
		op.kind = OP_RECV;
		op.peer = (c->rank + c->nranks - 1) % c->nranks;
		plan_add_op(p, b->rx, t, &op, NULL);
	}
	if (need_send(c, t)) {
		b->tx = c->ring_send[channel];
		op.kind = OP_SEND;
		op.peer = (c->rank + 1) % c->nranks;
		plan_add_op(p, b->tx, t, &op, NULL);
	}
	plan_add_prof(p, t, &op, w);
}

/* How far the channels are filled: NCCL's continuous byte distribution over the plan's tasks. */
struct cbd {
	size_t per_channel;
	size_t current;
	int channel;
	int nchannels;
};

static int traffic_per_byte(int func, int n)
{
	return func == FUNC_ALLREDUCE ? 2 : max_send_recv(func, n);
}

/* A task's cells: on the first channel, on each in the middle, on the last. */
struct cells {
	size_t lo, per_mid, hi;
	int mid;
	size_t elems; /* of one cell */
	size_t total;
	size_t traffic;
};

static void cells_split(const struct cbd *s, struct cells *c)
{
	int n;

	c->per_mid = MIN(c->total, DIV_UP(s->per_channel, c->traffic));
	c->lo = s->channel + 1 == s->nchannels
			? c->total
			: MIN(c->total, DIV_UP(s->per_channel - s->current, c->traffic));
	c->mid = (c->total - c->lo) / c->per_mid;
	c->hi = (c->total - c->lo) % c->per_mid;
	n = (c->lo != 0) + c->mid + (c->hi != 0);
	if (s->nchannels < s->channel + n) {
		c->mid = s->nchannels - s->channel - 2;
		c->per_mid = (c->total - c->lo) / (c->mid + 1);
		c->hi = c->per_mid + (c->total - c->lo) % (c->mid + 1);
	}
	if (!c->hi && c->mid) {
		c->hi = c->per_mid;
		c->mid--;
	}
}

/* Nothing fits on the current channel any more: the next one becomes the first. */
static void cells_skip(struct cbd *s, struct cells *c)
{
	if (c->lo)
		return;
	s->channel++;
	if (!c->mid) {
		c->lo = c->hi;
		c->hi = 0;
	} else {
		c->lo = c->per_mid;
		c->mid--;
	}
}

static void cbd_advance(struct cbd *s, const struct cells *c, int n)
{
	if (c->hi) {
		s->channel += n - 1;
		s->current = c->hi * c->traffic;
	} else if (c->mid) {
		s->channel += n;
		s->current = 0;
	} else {
		s->current += c->lo * c->traffic;
	}
	if (s->current >= s->per_channel && s->channel + 1 != s->nchannels) {
		s->channel++;
		s->current = 0;
	}
}

static void coll_schedule(struct plan *p, struct cbd *s, struct task *t)
{
	size_t es = type_size(t->type), lo, mid, hi, off, count;
	int per_byte = traffic_per_byte(t->func, p->comm->nranks), n, i, first;
	size_t cell = ROUND_UP(DIV_UP((size_t)MIN_TRAFFIC_PER_CHANNEL, per_byte), 16);
	struct cells c = {.elems = cell / es};

	c.total = DIV_UP(t->count * es, cell);
	c.traffic = cell * per_byte;
	cells_split(s, &c);
	cells_skip(s, &c);
	mid = c.mid ? c.per_mid * c.elems : 0;
	lo = c.lo * c.elems;
	hi = c.hi * c.elems;
	*(hi ? &hi : &lo) -= c.total * c.elems - t->count;
	first = s->channel;
	n = t->nchannels = (lo != 0) + c.mid + (hi != 0);
	cbd_advance(s, &c, n);
	for (i = 0, off = 0; i < n; i++, off += count) {
		count = !i ? lo : i == n - 1 && hi ? hi : mid;
		coll_part(p, t, first + i, off, count);
	}
	p->coll_ops++;
}

/* NCCL takes the biggest first. */
static void sort_colls(struct task_list *in, struct task_list *out)
{
	struct task *t, **at;

	task_list_init(out);
	while ((t = task_list_pop(in))) {
		for (at = &out->head; *at && (*at)->traffic >= t->traffic;)
			at = &(*at)->next;
		t->next = *at;
		*at = t;
		out->n++;
	}
	for (at = &out->head; *at;)
		at = &(*at)->next;
	out->tail = at;
}

static void plan_colls(struct plan *p)
{
	struct ncclComm *c = p->comm;
	struct cbd s = {.nchannels = c->nchannels};
	size_t traffic = 0;
	struct task *t;

	sort_colls(&c->colls, &p->colls);
	if (!p->colls.n)
		return;
	for (t = p->colls.head; t; t = t->next)
		traffic += MAX((size_t)MIN_TRAFFIC_PER_CHANNEL, t->traffic);
	s.per_channel = MAX((size_t)MIN_TRAFFIC_PER_CHANNEL, traffic / c->nchannels);
	for (t = p->colls.head; t; t = t->next)
		coll_schedule(p, &s, t);
}

/* ---- plans: point to point ---- */

struct batch {
	int nbatches;
	int n;
	int rounds[MAX_P2P_PER_BATCH];
};

/* One batch of a channel has at most 8 pairs, none of one round twice, all of one epoch. */
static int batch_add(struct batch *b, int round)
{
	bool fresh = !b->nbatches || b->n == MAX_P2P_PER_BATCH;
	int i;

	for (i = 0; i < b->n && !fresh; i++)
		fresh = b->rounds[i] == round ||
			b->rounds[i] / MAX_P2P_PER_BATCH != round / MAX_P2P_PER_BATCH;
	if (fresh) {
		b->nbatches++;
		b->n = 0;
	}
	b->rounds[b->n++] = round;
	return b->nbatches;
}

static int p2p_base_channel(const struct ncclComm *c, int round)
{
	int bits = 0, rev = 0, i;

	while (1 << bits < c->p2p_nchannels)
		bits++;
	for (i = 0; i < bits; i++)
		rev |= (round >> i & 1) << (bits - 1 - i);
	return rev;
}

int p2p_channel(const struct ncclComm *c, int round, int part)
{
	return (p2p_base_channel(c, round) + part) & (c->p2p_nchannels - 1);
}

static int p2p_parts(const struct ncclComm *c, ssize_t bytes)
{
	ssize_t min_part = P2P_CHUNK_SIZE / 2, max_part = P2P_CHUNK_SIZE, part;
	int n_min = c->p2p_per_peer, n;

	while (n_min * c->nranks > c->p2p_nchannels && n_min > 1)
		n_min /= 2;
	if (!bytes)
		return 1;
	n = MIN((ssize_t)n_min, DIV_UP(bytes, min_part));
	part = MAX(min_part, DIV_UP(bytes, n));
	while (part > max_part && n <= c->p2p_per_peer / 2) {
		n *= 2;
		part = DIV_UP(bytes, n);
	}
	return n;
}

static int p2p_chunk(size_t bytes)
{
	if (bytes < P2P_CHUNK_SIZE)
		return P2P_CHUNK_SIZE / 4;
	return bytes < 8 * P2P_CHUNK_SIZE ? P2P_CHUNK_SIZE / 2 : P2P_CHUNK_SIZE;
}

/* One direction of one part: block, proxy operation and its KernelCh operation. */
static void p2p_part(struct plan *p, struct task *t, struct work *w, int part, int batch, bool inc)
{
	struct ncclComm *c = p->comm;
	bool is_send = t->func == FUNC_SEND;
	size_t part_bytes = ROUND_UP(DIV_UP(t->bytes, t->nchannels), 4096);
	size_t beg = MIN(part * part_bytes, t->bytes), end = MIN(beg + part_bytes, t->bytes);
	int chunk = p2p_chunk(t->bytes);
	struct proxy_op op = {.channel = w->channel, .rank = c->rank, .p2p = 1, .shared = 1};
	struct block *b = plan_block(p, w, t);

	b->type = ncclInt8;
	b->chan_off = beg;
	b->chan_count = end - beg;
	b->chunk_count = chunk;
	b->chunk_steps = b->slice_steps = 1;
	b->step_size = P2P_CHUNK_SIZE;
	op.kind = is_send ? OP_SEND : OP_RECV;
	op.peer = t->root;
	op.nsteps = end > beg ? DIV_UP(end - beg, chunk) : 1;
	op.nbytes = MIN(end - beg, (size_t)chunk);
	op.chunk_steps = op.slice_steps = 1;
	op.chunk_size = chunk;
	op.op_count = (uint64_t)batch << 1 | 1;
	if (is_send)
		b->tx = c->p2p_send[t->root * MAX_CHANNELS + w->channel];
	else
		b->rx = c->p2p_recv[t->root * MAX_CHANNELS + w->channel];
	plan_add_op(p, is_send ? b->tx : b->rx, t, &op, NULL);
	plan_add_prof(p, t, &op, inc ? w : NULL);
}

static void p2p_self(struct plan *p, struct task *send, struct task *recv)
{
	struct block *b = plan_block(p, plan_work(p, 0, recv), send);

	send->nchannels = recv->nchannels = 1;
	b->func = FUNC_SENDRECV;
	b->type = ncclInt8;
	b->recv = recv->recv;
	b->chan_count = b->chunk_count = MIN(send->bytes, recv->bytes);
	b->chunk_count = MAX(b->chunk_count, 1ul);
	b->chunk_steps = b->slice_steps = 1;
	b->step_size = b->chunk_count;
}

static void p2p_pair(struct plan *p, struct batch *batches, int round, struct task *send,
		     struct task *recv)
{
	struct ncclComm *c = p->comm;
	int parts = 0, part, batch, ch;
	struct work *w;

	if (send)
		parts = send->nchannels = p2p_parts(c, send->bytes);
	if (recv)
		recv->nchannels = p2p_parts(c, recv->bytes);
	parts = recv ? MAX(parts, recv->nchannels) : parts;
	for (part = 0; part < parts; part++) {
		bool inc = true;

		ch = p2p_channel(c, round, part);
		batch = batch_add(&batches[ch], round);
		w = plan_work(p, ch, recv ? recv : send);
		if (recv && part < recv->nchannels) {
			p2p_part(p, recv, w, part, batch, inc);
			inc = false;
		}
		if (send && part < send->nchannels)
			p2p_part(p, send, w, part, batch, inc);
	}
}

static ncclResult_t plan_p2p_round(struct plan *p, struct batch *batches, int round)
{
	struct ncclComm *c = p->comm;
	int to = (c->rank + round) % c->nranks, from = (c->rank - round + c->nranks) % c->nranks;
	struct task *send = task_list_pop(&c->p2p_sends[to]);
	struct task *recv = task_list_pop(&c->p2p_recvs[from]);
	bool self = to == c->rank;

	if (self && !send != !recv) {
		si_warn("Trying to send to self without a matching recv, or the reverse");
		free(send);
		free(recv);
		return ncclInvalidUsage;
	}
	if (self && send && send->send == recv->recv) { /* in place: nothing to do, no event */
		free(send);
		free(recv);
		return ncclSuccess;
	}
	if (self && send)
		p2p_self(p, send, recv);
	else if (send || recv)
		p2p_pair(p, batches, round, send, recv);
	if (send)
		task_list_add(&p->p2ps, send);
	if (recv)
		task_list_add(&p->p2ps, recv);
	return ncclSuccess;
}

static int count_p2ps(const struct ncclComm *c)
{
	int n = 0, i;

	for (i = 0; i < c->nranks; i++)
		n += c->p2p_sends[i].n + c->p2p_recvs[i].n;
	return n;
}

static ncclResult_t plan_p2ps(struct plan *p)
{
	struct batch *batches = calloc(MAX_CHANNELS, sizeof(*batches));
	ncclResult_t res = ncclSuccess;
	int round, i;

	if (!batches)
		return ncclSystemError;
	while (count_p2ps(p->comm) && !res)
		for (round = 0; round < p->comm->nranks && !res; round++)
			res = plan_p2p_round(p, batches, round);
	for (i = 0; i < MAX_CHANNELS; i++)
		p->p2p_batches[i] = batches[i].nbatches;
	free(batches);
	return res;
}

/* ---- plans: launch ---- */

static ncclResult_t plan_alloc(struct plan *p)
{
	struct ncclComm *c = p->comm;
	/* At most one part per channel and task, for p2p one per channel of a peer. */
	int parts = c->colls.n * c->nchannels + count_p2ps(c) * c->p2p_per_peer;

	task_list_init(&p->colls);
	task_list_init(&p->p2ps);
	p->ops = calloc(3 * parts + 1, sizeof(*p->ops));
	p->kernel = kernel_new(c, parts + 1);
	return p->ops && p->kernel ? ncclSuccess : ncclSystemError;
}

/* Counters of works are kept also without KernelCh: the "GPU" counts all of them. */
static void plan_count_works(struct plan *p)
{
	struct ncclComm *c = p->comm;
	int i;

	for (i = 0; i < p->nops; i++) {
		struct plan_op *o = &p->ops[i];

		if (o->op.kind != OP_PROF)
			continue;
		if (o->work)
			o->work->counter = ++c->work_counter[o->op.channel];
		o->op.work_counter = c->work_counter[o->op.channel];
	}
}

/* What the profiler will need travels in the operation; uploadProxyOps() in NCCL. */
static void plan_upload(struct plan *p)
{
	struct ncclComm *c = p->comm;
	int i;

	for (i = 0; i < p->nops; i++) {
		struct plan_op *o = &p->ops[i];

		o->op.ctx = (uintptr_t)c->prof_ctx;
		o->op.mask = o->task->mask;
		o->op.task_handle = (uintptr_t)o->task->handle;
		o->op.pid = prof_pid();
		o->op.dev_prof = (uintptr_t)c->dev_prof;
		o->op.conn_id = o->conn ? o->conn->id : 0;
		o->op.op_count += o->op.op_count & 1 ? c->proxy->p2p_opcount[o->op.channel] << 1
						     : c->proxy->coll_opcount << 1;
		if (o->task->is_ce)
			continue;
		if (o->op.kind == OP_PROF) {
			c->cnt.kernel_chs++;
		} else {
			c->cnt.proxy_ops++;
			c->cnt.proxy_steps += DIV_UP(o->op.nsteps, o->op.slice_steps);
		}
	}
	c->proxy->coll_opcount += p->coll_ops;
	for (i = 0; i < MAX_CHANNELS; i++)
		c->proxy->p2p_opcount[i] += p->p2p_batches[i] ? p->p2p_batches[i] + 1 : 0;
}

static void plan_post_to(struct plan *p, struct opq *q)
{
	struct opq *own = p->comm->proxy->q;
	int i;

	pthread_mutex_lock(&q->lock);
	for (i = 0; i < p->nops; i++) {
		struct plan_op *o = &p->ops[i];
		struct opq *to = o->conn ? o->conn->q : own;

		if (to != q || (!o->conn && !kernel_ch_on(o->task)))
			continue;
		if (!o->conn)
			atomic_fetch_add(&p->comm->dev_prof->inflight, 1);
		else if (q == own)
			atomic_fetch_add(&o->conn->inflight, 1);
		opq_post(q, &o->op, q == own ? p->comm->proxy : NULL);
	}
	pthread_cond_signal(&q->cond);
	pthread_mutex_unlock(&q->lock);
}

/* hostStreamPlanTask() in NCCL: Group, Coll and P2p events around the posting. */
static void plan_host_task(struct plan *p)
{
	prof_group_start(p);
	prof_tasks_start(p);
	if (p->nops) {
		plan_upload(p);
		plan_post_to(p, p->comm->proxy->q);
		if (p->comm->exec_q)
			plan_post_to(p, p->comm->exec_q);
	}
	prof_tasks_stop(p);
	prof_group_stop(p);
}

static void plan_ce(struct plan *p)
{
	struct task *t;

	for (t = p->colls.head; t; t = t->next) {
		if (!t->is_ce)
			continue;
		prof_ce(p->comm, t, p->stream);
		t->mask = 0; /* no Coll, no proxy events: in NCCL no proxy takes part */
		p->comm->cnt.ce_colls++;
	}
}

static void plan_count(struct plan *p)
{
	struct ncclComm *c = p->comm;
	struct task *t;
	int colls = 0;

	for (t = p->colls.head; t; t = t->next)
		colls += !t->is_ce;
	c->cnt.colls += colls;
	c->cnt.p2ps += p->p2ps.n;
	c->cnt.groups += colls + p->p2ps.n > 0;
}

static ncclResult_t comm_launch(struct ncclComm *c)
{
	struct plan p = {.comm = c, .stream = c->group_stream};
	ncclResult_t res;

	if (!c->colls.n && !count_p2ps(c))
		return ncclSuccess;
	res = plan_alloc(&p);
	if (!res) {
		plan_colls(&p);
		res = plan_p2ps(&p);
	}
	if (!res && p.colls.n + p.p2ps.n) {
		plan_count(&p);
		plan_count_works(&p);
		plan_ce(&p);
		prof_launch_start(&p);
		stream_launch(p.stream, p.kernel);
		prof_launch_stop(&p);
		plan_host_task(&p);
	} else {
		kernel_free(p.kernel);
	}
	task_list_free(&p.colls);
	task_list_free(&p.p2ps);
	free(p.ops);
	return res;
}

/* ---- groups ---- */

static void group_join(struct ncclComm *c, struct stream *s)
{
	c->group_stream = s ? s : stream_default(c);
	if (c->in_group)
		return;
	c->in_group = true;
	c->group_next = NULL;
	{
		struct ncclComm **at = &group_comms;

		while (*at)
			at = &(*at)->group_next;
		*at = c;
	}
}

ncclResult_t async_launch(struct async_job *job)
{
	struct async_job **at = &group_jobs;
	ncclResult_t res;

	if (!group_depth) {
		res = job->fn(job);
		job->destroy(job);
		return res;
	}
	while (*at)
		at = &(*at)->next;
	*at = job;
	return ncclSuccess;
}

static void *job_main(void *arg)
{
	struct async_job *job = arg;

	job->result = job->fn(job);
	return NULL;
}

/* Communicators that a group makes are made in parallel, each in a thread of its own. */
static ncclResult_t group_run_jobs(void)
{
	struct async_job *jobs = group_jobs, *j;
	ncclResult_t res = ncclSuccess;

	group_jobs = NULL;
	for (j = jobs; j; j = j->next)
		if (pthread_create(&j->thread, NULL, job_main, j)) {
			j->thread = 0;
			j->result = ncclSystemError;
		}
	while (jobs) {
		j = jobs;
		jobs = j->next;
		if (j->thread)
			pthread_join(j->thread, NULL);
		if (j->result && !res)
			res = j->result;
		j->destroy(j);
	}
	return res;
}

static int comm_preconnect(struct ncclComm *c, bool is_send,
			   int (*fn)(struct ncclComm *c, int peer, int channel))
{
	int peer, part, round, err = 0;

	for (peer = 0; peer < c->nranks && !err; peer++) {
		bool any = is_send ? c->p2p_sends[peer].n : c->p2p_recvs[peer].n;

		if (!any || peer == c->rank)
			continue;
		round = ((is_send ? peer - c->rank : c->rank - peer) + c->nranks) % c->nranks;
		for (part = 0; part < c->p2p_per_peer && !err; part++)
			err = fn(c, peer, p2p_channel(c, round, part));
	}
	return err;
}

static void comm_group_reset(struct ncclComm *c)
{
	int i;

	task_list_free(&c->colls);
	for (i = 0; i < c->nranks; i++) {
		task_list_free(&c->p2p_sends[i]);
		task_list_free(&c->p2p_recvs[i]);
	}
	c->in_group = false;
}

static ncclResult_t group_launch(void)
{
	ncclResult_t res = group_run_jobs();
	struct ncclComm *c;

	/* Each of all before the next of any: several communicators of one group may be in this thread. */
	for (c = group_comms; c && !res; c = c->group_next)
		res = comm_preconnect(c, false, comm_p2p_listen) ? ncclSystemError : ncclSuccess;
	for (c = group_comms; c && !res; c = c->group_next)
		res = comm_preconnect(c, true, comm_p2p_connect) ? ncclSystemError : ncclSuccess;
	for (c = group_comms; c && !res; c = c->group_next)
		res = comm_preconnect(c, false, comm_p2p_accept) ? ncclSystemError : ncclSuccess;
	for (c = group_comms; c && !res; c = c->group_next)
		res = comm_launch(c);
	return res;
}

static ncclResult_t group_end(void)
{
	ncclResult_t res = ncclSuccess;

	if (!group_depth) {
		si_warn("ncclGroupEnd: not in a group call.");
		return ncclInvalidUsage;
	}
	prof_group_depth_dec();
	if (--group_depth == 0) {
		res = group_error ? group_error : group_launch();
		while (group_comms) {
			struct ncclComm *c = group_comms;

			group_comms = c->group_next;
			comm_group_reset(c);
		}
		group_error = ncclSuccess;
	}
	prof_group_api_stop();
	return res;
}

API ncclResult_t pncclGroupStart(void)
{
	group_depth++;
	return ncclSuccess;
}
ALIAS("pncclGroupStart") ncclResult_t ncclGroupStart(void);

API ncclResult_t pncclGroupEnd(void)
{
	return group_end();
}
ALIAS("pncclGroupEnd") ncclResult_t ncclGroupEnd(void);

/* ---- tasks ---- */

static ncclResult_t append_p2p(struct ncclComm *c, const struct task *in, cudaStream_t stream)
{
	struct task *t = malloc(sizeof(*t));

	if (!t)
		return ncclSystemError;
	*t = *in;
	t->bytes = t->count * type_size(t->type);
	group_join(c, stream);
	prof_group_api_start(c);
	prof_group_api_state(ncclProfilerGroupStartApiStop);
	prof_p2p_api_start(c, t, stream);
	prof_task_handles(t);
	task_list_add(t->func == FUNC_SEND ? &c->p2p_sends[t->root] : &c->p2p_recvs[t->root], t);
	prof_p2p_api_stop();
	c->cnt.p2p_apis++;
	return ncclSuccess;
}

static ncclResult_t append_coll(struct ncclComm *c, const struct task *in, cudaStream_t stream)
{
	struct task *t = malloc(sizeof(*t));

	if (!t)
		return ncclSystemError;
	*t = *in;
	group_join(c, stream);
	prof_group_api_start(c);
	prof_group_api_state(ncclProfilerGroupStartApiStop);
	prof_coll_api_start(c, t, stream);
	t->is_ce = prof_ce_wanted(t);
	if (t->func == FUNC_ALLGATHER || t->func == FUNC_BROADCAST) {
		t->count *= type_size(t->type);
		t->type = ncclInt8;
	}
	t->bytes = t->count * type_size(t->type);
	t->traffic = t->bytes * traffic_per_byte(t->func, c->nranks);
	prof_task_handles(t);
	task_list_add(&c->colls, t);
	prof_coll_api_stop();
	c->cnt.coll_apis++;
	return ncclSuccess;
}

/* One rank: a copy on the stream, no task, no event. */
static ncclResult_t one_rank(struct ncclComm *c, const struct task *t, cudaStream_t stream)
{
	struct plan p = {.comm = c, .kernel = kernel_new(c, 1)};
	struct block *b;

	if (t->send == t->recv || !p.kernel) {
		kernel_free(p.kernel);
		return t->send == t->recv ? ncclSuccess : ncclSystemError;
	}
	b = plan_block(&p, plan_work(&p, 0, t), t);
	b->func = FUNC_SENDRECV;
	b->type = ncclInt8;
	b->chan_count = b->chunk_count = t->count * type_size(t->type);
	b->chunk_steps = b->slice_steps = 1;
	b->step_size = b->chunk_count;
	stream_launch(stream ? stream : stream_default(c), p.kernel);
	return ncclSuccess;
}

static ncclResult_t append_alltoall(struct ncclComm *c, struct task *t, cudaStream_t stream)
{
	const char *send = t->send;
	char *recv = t->recv;
	size_t bytes = t->count * type_size(t->type);
	ncclResult_t res = ncclSuccess;
	int r;

	for (r = 0; r < c->nranks && !res; r++) {
		t->root = r;
		t->func = FUNC_SEND;
		t->send = send + r * bytes;
		t->recv = recv + r * bytes;
		res = append_p2p(c, t, stream);
		t->func = FUNC_RECV;
		if (!res)
			res = append_p2p(c, t, stream);
	}
	return res;
}

static ncclResult_t task_append(struct ncclComm *c, struct task *t, cudaStream_t stream)
{
	if (t->func == FUNC_SEND || t->func == FUNC_RECV)
		return append_p2p(c, t, stream);
	if (!t->count)
		return ncclSuccess;
	if (c->nranks == 1)
		return one_rank(c, t, stream);
	if (t->func == FUNC_ALLTOALL)
		return append_alltoall(c, t, stream);
	return append_coll(c, t, stream);
}

static ncclResult_t call_faults(struct ncclComm *c)
{
	struct faults *f = &c->faults;

	c->ncalls++;
	fault_late(f, c->ncalls);
	if (f->death.after && c->ncalls == f->death.after)
		fault_die(&f->death);
	if (f->abort_after && c->ncalls == f->abort_after) {
		si_warn("rank %d aborts on request", c->rank);
		atomic_store(&c->abort, 1);
		atomic_store(&c->proxy->abort, 1);
		return ncclSystemError;
	}
	return ncclSuccess;
}

static ncclResult_t args_check(struct ncclComm *c, const struct task *t)
{
	if (!type_size(t->type) || t->op < 0 || t->op >= ncclNumOps || t->root < 0 ||
	    t->root >= c->nranks) {
		si_warn("Invalid type %d, operation %d or root/peer %d (of %d ranks)", t->type,
			t->op, t->root, c->nranks);
		return ncclInvalidArgument;
	}
	if (atomic_load(&c->async_error))
		return atomic_load(&c->async_error);
	return ncclSuccess;
}

/* ncclEnqueueCheck(): every call is a group of its own if it is not in one. */
static ncclResult_t enqueue(struct ncclComm *c, struct task *t, cudaStream_t stream)
{
	ncclResult_t res = comm_check(c, "enqueue"), end;

	if (res)
		return res;
	t->api_func = t->func;
	t->tag = user_tag;
	res = call_faults(c);
	prof_group_depth_inc();
	group_depth++;
	if (!res)
		res = args_check(c, t);
	if (!res)
		res = task_append(c, t, stream);
	if (res && !group_error)
		group_error = res;
	end = group_end();
	return res ? res : end;
}

API ncclResult_t pncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
				ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	struct task t = {.func = FUNC_ALLREDUCE,
			 .send = send,
			 .recv = recv,
			 .count = count,
			 .type = type,
			 .op = op};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclAllReduce")
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
			   cudaStream_t);

API ncclResult_t pncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
				ncclComm_t comm, cudaStream_t stream)
{
	struct task t = {
		.func = FUNC_ALLGATHER, .send = send, .recv = recv, .count = count, .type = type};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclAllGather")
ncclResult_t ncclAllGather(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);

API ncclResult_t pncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
				    ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	struct task t = {.func = FUNC_REDUCESCATTER,
			 .send = send,
			 .recv = recv,
			 .count = count,
			 .type = type,
			 .op = op};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclReduceScatter")
ncclResult_t ncclReduceScatter(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
			       ncclComm_t, cudaStream_t);

API ncclResult_t pncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
				int root, ncclComm_t comm, cudaStream_t stream)
{
	struct task t = {.func = FUNC_BROADCAST,
			 .send = send,
			 .recv = recv,
			 .count = count,
			 .type = type,
			 .root = root};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclBroadcast")
ncclResult_t ncclBroadcast(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t,
			   cudaStream_t);

API ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t type, int root,
			    ncclComm_t comm, cudaStream_t stream)
{
	return pncclBroadcast(buff, buff, count, type, root, comm, stream);
}
ALIAS("pncclBcast")
ncclResult_t ncclBcast(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);

API ncclResult_t pncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			     ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	struct task t = {.func = FUNC_REDUCE,
			 .send = send,
			 .recv = recv,
			 .count = count,
			 .type = type,
			 .op = op,
			 .root = root};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclReduce")
ncclResult_t ncclReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
			cudaStream_t);

API ncclResult_t pncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
			       ncclComm_t comm, cudaStream_t stream)
{
	struct task t = {
		.func = FUNC_ALLTOALL, .send = send, .recv = recv, .count = count, .type = type};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclAlltoAll")
ncclResult_t ncclAlltoAll(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);

API ncclResult_t pncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
			   ncclComm_t comm, cudaStream_t stream)
{
	struct task t = {
		.func = FUNC_SEND, .send = send, .count = count, .type = type, .root = peer};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclSend")
ncclResult_t ncclSend(const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);

API ncclResult_t pncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
			   cudaStream_t stream)
{
	struct task t = {
		.func = FUNC_RECV, .recv = recv, .count = count, .type = type, .root = peer};

	return enqueue(comm, &t, stream);
}
ALIAS("pncclRecv")
ncclResult_t ncclRecv(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
