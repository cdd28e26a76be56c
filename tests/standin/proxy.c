// SPDX-License-Identifier: BSD-2-Clause
/*
 * The proxy progress thread: takes posted operations, moves their slices between the buffers that
 * it shares with the "GPU" and the network, and calls the profiler where NCCL 2.28.9 does
 * (src/proxy.cc, src/transport/net.cc, src/transport/profiler.cc).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "internal.h"
#include "prof_abi.h"

#define APPEND_OP_FREQ	  8  /* NCCL_PROGRESS_APPENDOP_FREQ */
#define APPEND_BATCH_SIZE 16 /* NCCL_PROXY_APPEND_BATCH_SIZE */
#define SHARED_STEPS	  16 /* NCCL_SHARED_STEPS */

void bell_ring(struct bell *b)
{
	if (!b)
		return;
	atomic_fetch_add(&b->word, 1);
	if (atomic_load(&b->waiting))
		syscall(SYS_futex, &b->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* ---- the queue of posted operations ---- */

static void opq_init(struct opq *q)
{
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;

	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&q->lock, &ma);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&q->cond, &ca);
}

struct opq *opq_map(const char *name, size_t len, void **base)
{
	int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	void *p;

	if (fd < 0)
		return NULL;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return NULL;
	*base = p;
	return p;
}

/* Posts one plan's operations for this queue at once: those of one args must not be torn apart. */
void opq_post(struct opq *q, const struct proxy_op *op, struct proxy *local)
{
	while (q->tail - q->head >= OPQ_LEN) {
		/* Full: show what is there and let the progress thread work. Caller holds the lock. */
		pthread_cond_signal(&q->cond);
		pthread_mutex_unlock(&q->lock);
		sched_yield();
		pthread_mutex_lock(&q->lock);
		if (q->stop || (local && atomic_load(&local->async_error)))
			return;
	}
	q->ops[q->tail % OPQ_LEN] = *op;
	__atomic_store_n(&q->tail, q->tail + 1, __ATOMIC_RELEASE);
}

void opq_wake(struct opq *q)
{
	pthread_mutex_lock(&q->lock);
	pthread_cond_signal(&q->cond);
	pthread_mutex_unlock(&q->lock);
}

static bool opq_stopped(struct opq *q)
{
	return __atomic_load_n(&q->stop, __ATOMIC_ACQUIRE);
}

/* ---- appending ---- */

static struct args *args_new(struct args **appendp, const struct proxy_op *op)
{
	struct args *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->nalloc = op->shared ? MAX_P2P_PER_BATCH : 1;
	a->subs = calloc(a->nalloc, sizeof(*a->subs));
	if (!a->subs) {
		free(a);
		return NULL;
	}
	a->appendp = appendp;
	a->kind = op->kind;
	a->shared = op->shared;
	a->op_count = op->op_count;
	a->state = ARGS_READY;
	return a;
}

static void args_free(struct args *a)
{
	free(a->subs);
	free(a);
}

static int op_to_args(struct proxy *p, const struct proxy_op *op, struct args *a)
{
	struct sub *s;

	if (a->nsubs == a->nalloc) {
		si_warn("Proxy append out of bounds");
		return -E2BIG;
	}
	s = &a->subs[a->nsubs++];
	s->op = *op;
	if (op->kind != OP_PROF) {
		s->conn = p->conns[op->conn_id];
		p->nops++;
		if (prof_native() >= 4)
			prof_op_start(a, s);
	}
	return 0;
}

static int proxy_append(struct proxy *p, const struct proxy_op *op)
{
	struct args **appendp, *a, *last;

	if (op->kind == OP_PROF)
		appendp = &p->prof_append[op->is_recv_func][op->channel];
	else
		appendp = p->conns[op->conn_id]->appendp;
	a = *appendp;
	if (a && op->shared && a->op_count == op->op_count && a->kind == op->kind &&
	    a->state == ARGS_READY && a->nsubs < a->nalloc)
		return op_to_args(p, op, a);
	a = args_new(appendp, op);
	if (!a)
		return -ENOMEM;
	if (op_to_args(p, op, a)) {
		args_free(a);
		return -E2BIG;
	}
	if (*appendp) {
		(*appendp)->next_peer = a;
	} else if (!p->active) {
		p->active = a;
	} else {
		for (last = p->active; last->next;)
			last = last->next;
		last->next = a;
	}
	*appendp = a;
	return 0;
}

static struct dev_prof *sub_dev_prof(const struct sub *s)
{
	return (struct dev_prof *)(uintptr_t)s->op.dev_prof;
}

/* Takes the done args off the list; the next of the same connection comes in its place. */
static void remove_args(struct args **link)
{
	struct args *a = *link;
	int i;

	if (*a->appendp == a) {
		*a->appendp = NULL;
		*link = a->next;
	} else {
		a->next_peer->next = a->next;
		*link = a->next_peer;
	}
	/* From here on a communicator that shares this thread may free the connection. */
	for (i = 0; i < a->nsubs; i++)
		atomic_fetch_sub(a->kind == OP_PROF ? &sub_dev_prof(&a->subs[i])->inflight
						    : &a->subs[i].conn->inflight,
				 1);
	args_free(a);
}

/* ---- send ---- */

static char *slot_buf(struct sub *s, int step)
{
	return s->conn->mem->buff + (s->base + step) % NCCL_STEPS * s->conn->step_size;
}

static void sub_begin(struct args *a, struct sub *s)
{
	s->base = ROUND_UP(s->conn->proxy_step, s->op.chunk_steps);
	s->conn->proxy_step = s->base + s->op.nsteps;
	s->posted = s->received = s->transmitted = s->done = 0;
	if (prof_native() >= 4)
		prof_op_progress(s);
	else
		prof_op_start(a, s);
}

static void send_post(struct args *a, struct sub *s)
{
	int step = s->posted;

	prof_step_start(s, step);
	s->posted += s->op.slice_steps;
	if (a->shared) {
		atomic_store(&s->conn->mem->head, (int64_t)(s->base + s->posted) - NCCL_STEPS);
		bell_ring(s->conn->bell);
	}
	prof_op_old_state(a, s, ncclProfilerProxyOpSendPosted, s->posted);
	prof_step_state(s, step, ncclProfilerProxyStepSendGPUWait);
}

/* False if the "GPU" has not filled the slot yet, or the (faulty) network takes no request. */
static bool send_transmit(struct proxy *p, struct args *a, struct sub *s)
{
	struct conn_mem *m = s->conn->mem;
	int step = s->transmitted;
	int slot = (s->base + step) % NCCL_STEPS;
	int64_t size = atomic_load_explicit(&m->size[slot], memory_order_acquire);

	if (size == -1 || atomic_load(&m->tail) <= (int64_t)(s->base + step))
		return false;
	prof_op_old_state(a, s, ncclProfilerProxyOpSendRemFifoWait, step + s->op.slice_steps);
	prof_step_state(s, step, ncclProfilerProxyStepSendPeerWait_v4);
	if (!step && s->repeats < p->faults.peerwait_repeat) {
		s->repeats++;
		return false;
	}
	if (++p->nsends == (uint64_t)p->faults.reset_after)
		sock__reset(s->conn->sock);
	req_start(&s->reqs[slot], s->conn->sock, slot, slot_buf(s, step), size, s, step);
	s->trans_size = size;
	s->transmitted += s->op.slice_steps;
	prof_op_old_state(a, s, ncclProfilerProxyOpSendTransmitted, s->transmitted);
	prof_step_state(s, step, ncclProfilerProxyStepSendWait);
	return true;
}

static int send_finish(struct args *a, struct sub *s)
{
	struct conn_mem *m = s->conn->mem;
	int step = s->done;
	int slot = (s->base + step) % NCCL_STEPS;
	int done = req_test(&s->reqs[slot]);

	if (done <= 0)
		return done;
	atomic_store(&m->size[slot], -1);
	s->done += s->op.slice_steps;
	prof_step_stop(s, step);
	prof_op_old_state(a, s, ncclProfilerProxyOpSendDone, s->done);
	if (!a->shared) {
		atomic_store(&m->head, (int64_t)(s->base + s->done));
		bell_ring(s->conn->bell);
	}
	a->idle = 0;
	if (s->done >= s->op.nsteps)
		a->done++;
	return 0;
}

static int send_progress_sub(struct proxy *p, struct args *a, struct sub *s)
{
	int depth = MIN(NCCL_STEPS, SHARED_STEPS / a->nsubs);

	if (s->done >= s->op.nsteps)
		return 0;
	if (s->posted < s->op.nsteps && s->posted < s->done + depth) {
		send_post(a, s);
		a->idle = 0;
		return 0;
	}
	if (s->transmitted < s->posted && s->transmitted < s->done + NCCL_STEPS &&
	    send_transmit(p, a, s)) {
		a->idle = 0;
		return 0;
	}
	return s->done < s->transmitted ? send_finish(a, s) : 0;
}

static void args_end(struct args *a)
{
	int i;

	if (a->done < a->nsubs)
		return;
	for (i = 0; i < a->nsubs; i++)
		prof_op_stop(&a->subs[i]);
	a->state = ARGS_NONE;
}

static int send_progress(struct proxy *p, struct args *a)
{
	int i, err;

	for (i = 0; i < a->nsubs; i++) {
		err = send_progress_sub(p, a, &a->subs[i]);
		if (err)
			return err;
	}
	args_end(a);
	return 0;
}

/* ---- receive ---- */

static void recv_post(struct proxy *p, struct args *a, struct sub *s)
{
	int depth = MIN(NCCL_STEPS, SHARED_STEPS / a->nsubs);
	int step = s->posted, size, slot;

	if (step >= s->op.nsteps || step >= s->done + depth)
		return;
	prof_step_start(s, step);
	if (!step && s->repeats < p->faults.recv_repeat) {
		s->repeats++; /* as when irecv gives no request: start comes again at poll rate */
		return;
	}
	size = s->conn->step_size * s->op.slice_steps;
	if (s->op.nbytes < size)
		size = s->op.nbytes;
	slot = (s->base + step) % NCCL_STEPS;
	req_start(&s->reqs[slot], s->conn->sock, slot, slot_buf(s, step), size, s, step);
	s->posted += s->op.slice_steps;
	prof_op_old_state(a, s, ncclProfilerProxyOpRecvPosted, s->posted);
	prof_step_state(s, step, ncclProfilerProxyStepRecvWait);
	a->idle = 0;
}

static int recv_receive(struct args *a, struct sub *s)
{
	int step = s->received, done;
	struct req *r = &s->reqs[(s->base + step) % NCCL_STEPS];

	if (s->posted <= step)
		return 0;
	done = req_test(r);
	if (done <= 0)
		return done;
	s->trans_size = r->size;
	s->received += s->op.slice_steps;
	prof_op_old_state(a, s, ncclProfilerProxyOpRecvReceived, s->received);
	prof_step_state(s, step, ncclProfilerProxyStepRecvFlushWait);
	a->idle = 0;
	return 0;
}

/* Host memory needs no flush: the next pass hands the slot over. */
static void recv_transmit(struct args *a, struct sub *s)
{
	int step = s->transmitted;

	if (s->received <= step)
		return;
	s->transmitted += s->op.slice_steps;
	prof_op_old_state(a, s, ncclProfilerProxyOpRecvTransmitted, s->transmitted);
	prof_step_state(s, step, ncclProfilerProxyStepRecvGPUWait);
	atomic_store(&s->conn->mem->tail, (int64_t)(s->base + s->transmitted));
	bell_ring(s->conn->bell);
	a->idle = 0;
}

static void recv_finish(struct args *a, struct sub *s)
{
	int64_t head = atomic_load(&s->conn->mem->head);
	int step;

	while (s->done < s->op.nsteps && s->transmitted > s->done &&
	       head > (int64_t)(s->base + s->done)) {
		step = s->done;
		s->done += s->op.slice_steps;
		prof_step_stop(s, step);
		prof_op_old_state(a, s, ncclProfilerProxyOpRecvDone, s->done);
		a->idle = 0;
		if (s->done >= s->op.nsteps)
			a->done++;
	}
}

/* As in NCCL each stage goes over all subs, and a stage that moved something ends the pass. */
static int recv_progress(struct proxy *p, struct args *a)
{
	int i, err;

	for (i = 0; i < a->nsubs; i++)
		recv_post(p, a, &a->subs[i]);
	if (!a->idle)
		return 0;
	for (i = 0; i < a->nsubs; i++) {
		err = recv_receive(a, &a->subs[i]);
		if (err)
			return err;
	}
	if (!a->idle)
		return 0;
	for (i = 0; i < a->nsubs; i++)
		recv_transmit(a, &a->subs[i]);
	if (!a->idle)
		return 0;
	for (i = 0; i < a->nsubs; i++)
		recv_finish(a, &a->subs[i]);
	args_end(a);
	return 0;
}

/* ---- KernelCh ---- */

static int prof_progress(struct args *a)
{
	struct sub *s = &a->subs[0];
	struct dev_prof *dp = sub_dev_prof(s);
	int ch = s->op.channel, slot = s->op.work_counter % PROF_SLOTS;

	if (!s->posted && atomic_load(&dp->started[ch][slot].counter) >= s->op.work_counter) {
		prof_kernel_start(s, atomic_load(&dp->started[ch][slot].ts));
		s->posted = 1;
		return 0;
	}
	if (s->posted && atomic_load(&dp->completed[ch][slot].counter) >= s->op.work_counter) {
		prof_kernel_stop(s, atomic_load(&dp->completed[ch][slot].ts));
		a->state = ARGS_NONE;
	}
	return 0;
}

/* ---- the thread ---- */

static int args_progress(struct proxy *p, struct args *a)
{
	int i;

	if (a->state == ARGS_READY) {
		for (i = 0; i < a->nsubs && a->kind != OP_PROF; i++)
			sub_begin(a, &a->subs[i]);
		a->state = ARGS_PROGRESS;
	}
	a->idle = 1;
	if (a->kind == OP_PROF)
		return prof_progress(a);
	return a->kind == OP_SEND ? send_progress(p, a) : recv_progress(p, a);
}

static int progress_ops(struct proxy *p, int *idle)
{
	struct args **link = &p->active;
	int err;

	while (*link) {
		struct args *a = *link;

		err = args_progress(p, a);
		if (err)
			return err;
		*idle &= a->idle;
		if (a->state == ARGS_NONE)
			remove_args(link);
		else
			link = &a->next;
	}
	return 0;
}

static int get_posted_ops(struct proxy *p, int *added)
{
	struct opq *q = p->q;
	uint64_t last = 0;
	uint32_t tail, i;
	void *h = NULL;
	int batches = 0, err = 0;

	if (p->active && (__atomic_load_n(&q->tail, __ATOMIC_ACQUIRE) == q->head ||
			  pthread_mutex_trylock(&q->lock)))
		return 0;
	if (!p->active) {
		pthread_mutex_lock(&q->lock);
		if (q->tail == q->head && !q->stop) {
			prof_ctrl_start(p->prof_ctx, &h);
			prof_ctrl_state(h, 0, ncclProfilerProxyCtrlSleep);
			pthread_cond_wait(&q->cond, &q->lock);
			prof_ctrl_state(h, 0, ncclProfilerProxyCtrlWakeup);
			prof_ctrl_stop(h);
		}
	}
	tail = q->tail;
	pthread_mutex_unlock(&q->lock);

	prof_ctrl_start(p->prof_ctx, &h);
	prof_ctrl_state(h, 0, ncclProfilerProxyCtrlAppend);
	for (i = q->head; i != tail && !err; i++) {
		struct proxy_op *op = &q->ops[i % OPQ_LEN];

		if (last && op->op_count != last && ++batches > APPEND_BATCH_SIZE)
			break;
		last = op->op_count;
		err = proxy_append(p, op);
		(*added)++;
	}
	pthread_mutex_lock(&q->lock);
	q->head = i;
	pthread_mutex_unlock(&q->lock);
	prof_ctrl_state(h, *added, ncclProfilerProxyCtrlAppendEnd);
	prof_ctrl_stop(h);
	return err;
}

static void proxy_faults(struct proxy *p)
{
	if (p->faults.slow_us && p->active)
		fault_slow(&p->faults);
	if (p->faults.cold_file && p->active)
		fault_cold_file(&p->faults);
	if (p->faults.hang_after && p->nops >= (uint64_t)p->faults.hang_after)
		while (!atomic_load(&p->abort) && !opq_stopped(p->q))
			usleep(1000);
}

static void proxy_setup_thread(struct proxy *p)
{
	cpu_set_t set;

	if (env_long("NCCL_SET_THREAD_NAME",
		     0)) /* the number is that of local ranks, in NCCL too */
		pthread_setname_np(pthread_self(), "NCCL Progress 1");
	if (p->faults.pin_cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(p->faults.pin_cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		si_warn("Failed to pin the progress thread to CPU %ld: %s", p->faults.pin_cpu,
			strerror(errno));
}

static void ctrl_edge(struct proxy *p, int state)
{
	void *h = NULL;

	prof_ctrl_start(p->prof_ctx, &h);
	prof_ctrl_state(h, 0, state);
	prof_ctrl_stop(h);
}

static void *proxy_main(void *arg)
{
	struct proxy *p = arg;
	int last_idle = 0, appends = 0, idle, added, err;

	proxy_setup_thread(p);
	do {
		idle = 1;
		err = progress_ops(p, &idle);
		if (err)
			break;
		if (last_idle != idle)
			ctrl_edge(p,
				  idle ? ncclProfilerProxyCtrlIdle : ncclProfilerProxyCtrlActive);
		if (idle || !p->active || ++appends == APPEND_OP_FREQ) {
			appends = 0;
			added = 0;
			err = get_posted_ops(p, &added);
			if (err)
				break;
			if (!added)
				yield_politely();
		}
		if (p->faults.slow_us || p->faults.cold_file || p->faults.hang_after)
			proxy_faults(p);
		last_idle = idle;
	} while ((!opq_stopped(p->q) || p->active) && !atomic_load(&p->abort));
	if (err) {
		si_warn("Failed to progress an operation: %s", strerror(-err));
		atomic_store(&p->async_error, err);
	}
	return NULL;
}

/* ---- life ---- */

static void *shm_create(char *name, size_t name_len, size_t len)
{
	static _Atomic int serial;
	void *m;
	int fd;

	snprintf(name, name_len, "/nccl-%x-%x", (unsigned)getpid(), atomic_fetch_add(&serial, 1));
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return NULL;
	m = ftruncate(fd, len) ? MAP_FAILED
			       : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return m == MAP_FAILED ? NULL : m;
}

void *proxy_shm(char *name, size_t name_len, size_t len)
{
	void *m = shm_create(name, name_len, len);

	if (!m)
		si_warn("Failed to create shared memory '/dev/shm%s': %s", name, strerror(errno));
	return m;
}

struct proxy *proxy__new(int rank, bool in_shm)
{
	struct proxy *p = calloc(1, sizeof(*p));
	void *m;

	if (!p)
		return NULL;
	p->q_len = sizeof(struct opq);
	m = in_shm ? proxy_shm(p->shm_name, sizeof(p->shm_name), p->q_len)
		   : mmap(NULL, p->q_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	p->conns = calloc(MAX_CONNS, sizeof(*p->conns));
	if (!m || m == MAP_FAILED || !p->conns) {
		free(p->conns);
		free(p);
		return NULL;
	}
	p->q = m;
	opq_init(p->q);
	p->refs = 1;
	p->rank = rank;
	pthread_mutex_init(&p->conns_lock, NULL);
	fault_load(&p->faults, rank, 0);
	return p;
}

int proxy__start(struct proxy *p)
{
	int err = -pthread_create(&p->thread, NULL, proxy_main, p);

	p->started = !err;
	return err;
}

/* The last user: what is posted is finished first, unless the communicator was aborted. */
void proxy__put(struct proxy *p)
{
	if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_mutex_lock(&p->q->lock);
	__atomic_store_n(&p->q->stop, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&p->q->cond);
	pthread_mutex_unlock(&p->q->lock);
	if (p->started)
		pthread_join(p->thread, NULL);
	while (p->active) {
		struct args *a = p->active;

		p->active = a->next_peer ? a->next_peer : a->next;
		if (a->next_peer)
			a->next_peer->next = a->next;
		args_free(a);
	}
	munmap(p->q, p->q_len);
	free(p->conns);
	free(p);
}

uint32_t proxy_add_conn(struct proxy *p, struct conn *c)
{
	uint32_t id;

	pthread_mutex_lock(&p->conns_lock);
	id = p->nconns++;
	pthread_mutex_unlock(&p->conns_lock);
	proxy_set_conn(p, id, c);
	return id;
}

void proxy_set_conn(struct proxy *p, uint32_t id, struct conn *c)
{
	if (id >= MAX_CONNS)
		return;
	c->appendp = c->shared ? &p->p2p_append[c->is_send][c->channel] : &c->append;
	__atomic_store_n(&p->conns[id], c, __ATOMIC_RELEASE);
}
