// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams and the "GPU": a worker thread per stream runs kernels; a kernel's blocks (one channel
 * part of one task) take turns, and do NCCL's ring primitives between user buffers and the slots
 * that they share with the proxy (src/device/{all_reduce,prims_simple}.h and their neighbours).
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

struct stream {
	struct stream *all_next;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct kernel *head, **tail;
	struct kernel *running;
	int error;
	bool stop;
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *all_streams;

/* ---- one block: which chunk operation comes next ---- */

static void chunk_op(struct block *b, int flags, size_t src, size_t dst, ssize_t nelem)
{
	b->flags = flags;
	b->src_off = src;
	b->dst_off = dst;
	b->nelem = MAX(nelem, 0);
}

static bool next_allreduce(struct block *b, int rank, int n)
{
	size_t rem = b->chan_count - b->elem_off, chunk = b->chunk_count, off;
	int p = b->phase, c, flags;

	if (b->elem_off >= b->chan_count)
		return false;
	if (rem < n * chunk)
		chunk = ROUND_UP(DIV_UP(rem, n), 16 / type_size(b->type));
	if (p == 0) {
		c = rank + n - 1;
		flags = BLK_SEND | BLK_SRC;
	} else if (p < n - 1) {
		c = rank + n - p - 1;
		flags = BLK_RECV | BLK_SRC | BLK_SEND;
	} else if (p == n - 1) {
		c = rank;
		flags = BLK_RECV | BLK_SRC | BLK_SEND | BLK_DST | BLK_POST;
	} else if (p < 2 * n - 2) {
		c = rank + n - (p - n + 1);
		flags = BLK_RECV | BLK_DST | BLK_SEND;
	} else {
		c = rank + 1;
		flags = BLK_RECV | BLK_DST;
	}
	c %= n;
	off = b->chan_off + b->elem_off + c * chunk;
	chunk_op(b, flags, off, off, MIN((ssize_t)chunk, (ssize_t)rem - c * (ssize_t)chunk));
	if (++b->phase == 2 * n - 1) {
		b->phase = 0;
		b->elem_off += n * b->chunk_count;
	}
	return true;
}

static bool next_reducescatter(struct block *b, int rank, int n)
{
	size_t data = b->chan_off + b->elem_off;
	size_t nelem = MIN(b->chunk_count, b->chan_count - b->elem_off);
	int p = b->phase, dest = (rank + n - 1 - p) % n;

	if (b->elem_off >= b->chan_count)
		return false;
	if (p == 0)
		chunk_op(b, BLK_SEND | BLK_SRC, data + dest * b->count, 0, nelem);
	else if (p < n - 1)
		chunk_op(b, BLK_RECV | BLK_SRC | BLK_SEND, data + dest * b->count, 0, nelem);
	else
		chunk_op(b, BLK_RECV | BLK_SRC | BLK_DST | BLK_POST, data + rank * b->count, data,
			 nelem);
	if (++b->phase == n) {
		b->phase = 0;
		b->elem_off += b->chunk_count;
	}
	return true;
}

static bool next_allgather(struct block *b, int rank, int n)
{
	size_t data = b->chan_off + b->elem_off;
	size_t nelem = MIN(b->chunk_count, b->chan_count - b->elem_off);
	int p = b->phase, dest = (rank + n - p) % n;
	size_t dst = data + dest * b->count;
	bool in_place;

	if (b->elem_off >= b->chan_count)
		return false;
	in_place = b->send == b->recv + rank * b->count;
	if (p == 0)
		chunk_op(b, BLK_SEND | BLK_SRC | (in_place ? 0 : BLK_DST), data, dst, nelem);
	else if (p < n - 1)
		chunk_op(b, BLK_RECV | BLK_DST | BLK_SEND, 0, dst, nelem);
	else
		chunk_op(b, BLK_RECV | BLK_DST, 0, dst, nelem);
	if (++b->phase == n) {
		b->phase = 0;
		b->elem_off += b->chunk_count;
	}
	return true;
}

/* Broadcast, Reduce, Send, Recv and a local copy: one operation a chunk, flags by place. */
static bool next_pipe(struct block *b, int flags)
{
	size_t off = b->chan_off + b->elem_off;

	if (b->elem_off >= b->chan_count && (b->chan_count || b->phase))
		return false;
	b->phase = 1; /* an empty Send or Recv is one step of 0 bytes */
	chunk_op(b, flags, off, off, MIN(b->chunk_count, b->chan_count - b->elem_off));
	b->elem_off += b->chunk_count;
	return true;
}

static int pipe_flags(const struct block *b, int rank, int n)
{
	int next = (rank + 1) % n, prev = (rank + n - 1) % n;

	switch (b->func) {
	case FUNC_BROADCAST:
		if (rank == b->root)
			return BLK_SEND | BLK_SRC | (b->send == b->recv ? 0 : BLK_DST);
		return BLK_RECV | BLK_DST | (next == b->root ? 0 : BLK_SEND);
	case FUNC_REDUCE:
		if (prev == b->root)
			return BLK_SEND | BLK_SRC;
		return BLK_RECV | BLK_SRC | (rank == b->root ? BLK_DST | BLK_POST : BLK_SEND);
	case FUNC_SEND:
		return BLK_SEND | BLK_SRC;
	case FUNC_RECV:
		return BLK_RECV | BLK_DST;
	default: /* to itself */
		return BLK_SRC | BLK_DST;
	}
}

static bool block_next(struct block *b)
{
	const struct ncclComm *c = b->work->comm;
	size_t full = b->step_size * b->slice_steps / type_size(b->type);
	int slices = b->chunk_steps / b->slice_steps;
	bool more;

	switch (b->func) {
	case FUNC_ALLREDUCE:
		more = next_allreduce(b, c->rank, c->nranks);
		break;
	case FUNC_REDUCESCATTER:
		more = next_reducescatter(b, c->rank, c->nranks);
		break;
	case FUNC_ALLGATHER:
		more = next_allgather(b, c->rank, c->nranks);
		break;
	default:
		more = next_pipe(b, pipe_flags(b, c->rank, c->nranks));
	}
	if (!more)
		return false;
	b->slice_elems = MAX(DIV_UP(b->nelem, 16 * slices) * 16, full / 32);
	b->off = 0;
	b->slice = 0;
	b->have_op = true;
	return true;
}

/* ---- one slice ---- */

static char *slot(struct conn *c)
{
	return c->mem->buff + c->kern_step % NCCL_STEPS * c->step_size;
}

static void move(struct block *b, size_t n)
{
	size_t es = type_size(b->type);
	const char *src = b->flags & BLK_SRC ? b->send + (b->src_off + b->off) * es : NULL;
	char *dst = b->flags & BLK_DST ? b->recv + (b->dst_off + b->off) * es : NULL;
	char *in = b->flags & BLK_RECV ? slot(b->rx) : NULL;
	char *out = b->flags & BLK_SEND ? slot(b->tx) : dst;

	if (!n || settings()->dry)
		return;
	if (in && src) {
		reduce2(out, in, src, n, b->type, b->op);
		if (b->flags & BLK_POST)
			reduce_post(out, n, b->type, b->op, b->work->comm->nranks);
	} else {
		memmove(out, in ? in : src, n * es);
	}
	if (dst && out != dst)
		memcpy(dst, out, n * es);
}

static bool slice_ready(const struct block *b)
{
	if ((b->flags & BLK_RECV) &&
	    atomic_load(&b->rx->mem->tail) < (int64_t)b->rx->kern_step + b->slice_steps)
		return false;
	return !(b->flags & BLK_SEND) || atomic_load(&b->tx->mem->head) + NCCL_STEPS >=
						 (int64_t)b->tx->kern_step + b->slice_steps;
}

static void slice_post(struct block *b, size_t n)
{
	if (b->flags & BLK_SEND) {
		struct conn *c = b->tx;

		atomic_store_explicit(&c->mem->size[c->kern_step % NCCL_STEPS],
				      n * type_size(b->type), memory_order_release);
		c->kern_step += b->slice_steps;
		atomic_store(&c->mem->tail, (int64_t)c->kern_step);
	}
	if (b->flags & BLK_RECV) {
		b->rx->kern_step += b->slice_steps;
		atomic_store(&b->rx->mem->head, (int64_t)b->rx->kern_step);
	}
}

/* True if something moved. */
static bool block_step(struct block *b)
{
	size_t n;

	if (!b->have_op && !block_next(b)) {
		b->done = true;
		return true;
	}
	if (!slice_ready(b))
		return false;
	n = MIN(b->slice_elems, b->nelem - b->off);
	move(b, n);
	slice_post(b, n);
	b->off += n;
	if (++b->slice == b->chunk_steps / b->slice_steps)
		b->have_op = false;
	return true;
}

/* ---- one kernel ---- */

static void stamp(struct dev_stamp *ring, const struct work *w)
{
	struct dev_stamp *s = &ring[w->counter % PROF_SLOTS];

	if (!w->counter || !w->stamped)
		return;
	atomic_store(&s->ts, gpu_clock_ns());
	atomic_store(&s->counter, w->counter);
}

/*
 * A block runs alone on its connections, and in the order of the plan: one that has to wait keeps
 * what it needs from those behind it for the rest of this pass.
 */
static bool block_begin(struct block *b, uint64_t pass)
{
	struct conn *c[2] = {b->rx, b->tx};
	bool busy = false;
	int i;

	for (i = 0; i < 2; i++)
		busy |= c[i] && (c[i]->owner || c[i]->reserved == pass);
	for (i = 0; i < 2; i++) {
		if (!c[i])
			continue;
		c[i]->reserved = pass;
		if (busy)
			continue;
		c[i]->owner = b;
		c[i]->kern_step = ROUND_UP(c[i]->kern_step, b->chunk_steps);
	}
	if (busy)
		return false;
	b->begun = true;
	if (!b->work->begun) {
		b->work->begun = true;
		if (b->work->comm->dev_prof)
			stamp(b->work->comm->dev_prof->started[b->work->channel], b->work);
	}
	return true;
}

static void block_end(struct block *b)
{
	struct work *w = b->work;

	if (b->rx)
		b->rx->owner = NULL;
	if (b->tx)
		b->tx->owner = NULL;
	if (++w->ndone == w->nblocks && w->comm->dev_prof)
		stamp(w->comm->dev_prof->completed[w->channel], w);
}

/* Number of blocks left; *moved is set if anything happened. */
static int kernel_pass(struct kernel *k, uint64_t pass, bool *moved)
{
	int left = 0, i;

	for (i = 0; i < k->nblocks; i++) {
		struct block *b = &k->blocks[i];

		if (b->done)
			continue;
		left++;
		if (!b->begun && !block_begin(b, pass))
			continue;
		if (!block_step(b))
			continue;
		*moved = true;
		if (b->done) {
			block_end(b);
			left--;
		}
	}
	return left;
}

static int comm_error(struct ncclComm *c)
{
	int none = 0;

	if (c->proxy && atomic_load(&c->proxy->async_error))
		atomic_compare_exchange_strong(&c->async_error, &none, ncclRemoteError);
	if (atomic_load(&c->abort))
		return -ECANCELED;
	return atomic_load(&c->async_error) ? -EIO : 0;
}

static void bell_wait(struct ncclComm *c, uint32_t seen)
{
	/* Under PXN another process fills our buffers and cannot ring our bell. */
	struct timespec ts = {.tv_nsec = c->pxn ? 50000 : 1000000};

	atomic_store(&c->bell.waiting, 1);
	syscall(SYS_futex, &c->bell.word, FUTEX_WAIT_PRIVATE, seen, &ts, NULL, 0);
	atomic_store(&c->bell.waiting, 0);
}

static int kernel_run(struct kernel *k)
{
	struct ncclComm *c = k->comm;
	uint64_t limit = settings()->timeout_s * 1000000000ull, last = now_ns();
	static _Atomic uint64_t passes;
	int err, none = 0;

	for (;;) {
		uint32_t seen = atomic_load(&c->bell.word);
		bool moved = false;

		if (!kernel_pass(k, atomic_fetch_add(&passes, 1) + 1, &moved))
			return 0;
		err = comm_error(c);
		if (err)
			return err;
		if (moved) {
			last = now_ns();
			continue;
		}
		if (now_ns() - last > limit)
			break;
		bell_wait(c, seen);
	}
	si_warn("Failed to complete a kernel of rank %d: no progress in %lu s, is a peer gone?",
		c->rank, (unsigned long)(limit / 1000000000));
	atomic_compare_exchange_strong(&c->async_error, &none, ncclRemoteError);
	return -ETIMEDOUT;
}

/* Fault busy-gpu: a computation is before it on the GPU. */
static void gpu_busy(const struct kernel *k)
{
	const struct faults *f = &k->comm->faults;

	if (f->busy_gpu_ms && (k->seq + 1) % f->busy_gpu_every == 0)
		usleep(f->busy_gpu_ms * 1000);
}

/* Kernels of one communicator run one at a time, in launch order, on whatever streams. */
static int kernel_in_order(struct kernel *k)
{
	struct ncclComm *c = k->comm;
	int i, err;

	pthread_mutex_lock(&c->lock);
	while (c->done_seq != k->seq)
		pthread_cond_wait(&c->cond, &c->lock);
	pthread_mutex_unlock(&c->lock);
	err = kernel_run(k);
	for (i = 0; err && i < k->nblocks; i++)
		if (k->blocks[i].begun && !k->blocks[i].done)
			block_end(&k->blocks[i]);
	pthread_mutex_lock(&c->lock);
	c->done_seq++;
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->lock);
	return err;
}

/* ---- streams ---- */

struct kernel *kernel_new(struct ncclComm *c, int nblocks)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->comm = c;
	k->blocks = calloc(nblocks, sizeof(*k->blocks));
	k->works = calloc(nblocks, sizeof(*k->works));
	if (k->blocks && k->works)
		return k;
	kernel_free(k);
	return NULL;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	free(k->blocks);
	free(k->works);
	free(k);
}

static void *stream_main(void *arg)
{
	struct stream *s = arg;
	int err;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->head && !s->stop)
			pthread_cond_wait(&s->cond, &s->lock);
		if (!s->head)
			break;
		s->running = s->head;
		s->head = s->running->next;
		if (!s->head)
			s->tail = &s->head;
		pthread_mutex_unlock(&s->lock);
		gpu_busy(s->running);
		err = kernel_in_order(s->running);
		pthread_mutex_lock(&s->lock);
		if (err && !s->error)
			s->error = err;
		kernel_free(s->running);
		s->running = NULL;
		pthread_cond_broadcast(&s->cond);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static struct stream *stream_new(void)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->tail = &s->head;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->cond, NULL);
	if (pthread_create(&s->thread, NULL, stream_main, s)) {
		free(s);
		return NULL;
	}
	pthread_setname_np(s->thread, "standin-stream");
	pthread_mutex_lock(&all_lock);
	s->all_next = all_streams;
	all_streams = s;
	pthread_mutex_unlock(&all_lock);
	return s;
}

static int stream_sync(struct stream *s)
{
	int err;

	pthread_mutex_lock(&s->lock);
	while (s->head || s->running)
		pthread_cond_wait(&s->cond, &s->lock);
	err = s->error;
	s->error = 0;
	pthread_mutex_unlock(&s->lock);
	return err;
}

struct stream *stream_default(struct ncclComm *comm)
{
	if (!comm->null_stream)
		comm->null_stream = stream_new();
	return comm->null_stream;
}

void stream_launch(struct stream *s, struct kernel *k)
{
	pthread_mutex_lock(&k->comm->lock);
	k->seq = k->comm->launch_seq++;
	pthread_mutex_unlock(&k->comm->lock);
	pthread_mutex_lock(&s->lock);
	k->next = NULL;
	*s->tail = k;
	s->tail = &k->next;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
}

void stream_wait_comm(struct ncclComm *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->done_seq != c->launch_seq)
		pthread_cond_wait(&c->cond, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

int stream_sync_all(void)
{
	struct stream *s;
	int err = 0, e;

	pthread_mutex_lock(&all_lock);
	for (s = all_streams; s; s = s->all_next) {
		e = stream_sync(s);
		err = err ? err : e;
	}
	pthread_mutex_unlock(&all_lock);
	return err;
}

ncclResult_t __attribute__((visibility("default"))) standinStreamCreate(cudaStream_t *stream)
{
	*stream = stream_new();
	return *stream ? ncclSuccess : ncclSystemError;
}

ncclResult_t __attribute__((visibility("default"))) standinStreamSynchronize(cudaStream_t stream)
{
	int err = stream ? stream_sync(stream) : stream_sync_all();

	return err ? ncclRemoteError : ncclSuccess;
}

ncclResult_t __attribute__((visibility("default"))) standinStreamDestroy(cudaStream_t stream)
{
	struct stream *s = stream, **p;

	if (!s)
		return ncclSuccess;
	pthread_mutex_lock(&all_lock);
	for (p = &all_streams; *p && *p != s; p = &(*p)->all_next)
		;
	if (*p)
		*p = s->all_next;
	pthread_mutex_unlock(&all_lock);
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_broadcast(&s->cond);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->cond);
	free(s);
	return ncclSuccess;
}
