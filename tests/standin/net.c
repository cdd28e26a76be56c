// SPDX-License-Identifier: BSD-2-Clause
/*
 * TCP as NCCL's socket transport uses it: non-blocking sockets, a size ahead of each transfer, all
 * of it on the thread that tests the request, or (NCCL_SOCKET_NTHREADS) data on helper threads, but
 * for that of a short transfer, which goes with its size (NCCL_SOCKET_INLINE).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "internal.h"

#define HELPER_QUEUE  256
#define MIN_TASK_SIZE (64 << 10) /* NCCL_SOCKET_MIN_TASKSIZE */
#define DRY_BYTES     8

struct net_helper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct net_task *queue[HELPER_QUEUE];
	unsigned head, tail;
	int per_thread;
	bool stop;
};

static int set_nonblock(int fd, bool on)
{
	int fl = fcntl(fd, F_GETFL, 0);

	return fcntl(fd, F_SETFL, on ? fl | O_NONBLOCK : fl & ~O_NONBLOCK) ? -errno : 0;
}

int net_listen(const struct in_addr *ip, struct sockaddr_in *out)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = *ip};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, len) || listen(fd, 16384) ||
	    getsockname(fd, (struct sockaddr *)&a, &len)) {
		err = -errno;
		si_warn("Failed to listen on '%s': %s", inet_ntoa(*ip), strerror(-err));
		close(fd);
		return err;
	}
	*out = a;
	return fd;
}

static int connect_once(const struct sockaddr_in *to, const struct in_addr *from)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1, err;

	if (fd < 0)
		return -errno;
	if (from) {
		a.sin_addr = *from;
		/* Keeps thousands of connections from one address out of the ephemeral ports' way. */
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	}
	if ((from && bind(fd, (struct sockaddr *)&a, sizeof(a))) ||
	    connect(fd, (const struct sockaddr *)to, sizeof(*to))) {
		err = -errno;
		close(fd);
		return err;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int net_connect(const struct sockaddr_in *to, const struct in_addr *from, int timeout_ms)
{
	uint64_t end = now_ns() + timeout_ms * 1000000ull;
	int fd;

	for (;;) {
		fd = connect_once(to, from);
		if (fd >= 0 || now_ns() > end)
			break;
		usleep(20000);
	}
	if (fd < 0)
		si_warn("Failed to connect to '%s:%d': %s", inet_ntoa(to->sin_addr),
			ntohs(to->sin_port), strerror(-fd));
	return fd;
}

int net_write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;
	ssize_t n;

	while (len) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		p += n;
		len -= n;
	}
	return 0;
}

int net_read_all(int fd, void *buf, size_t len)
{
	char *p = buf;
	ssize_t n;

	while (len) {
		n = recv(fd, p, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		p += n;
		len -= n;
	}
	return 0;
}

int net_accept_hello(int listen_fd, struct hello *h, int timeout_ms)
{
	struct pollfd pfd = {.fd = listen_fd, .events = POLLIN};
	int one = 1, fd, err;

	err = poll(&pfd, 1, timeout_ms);
	if (err <= 0)
		return err ? -errno : -ETIMEDOUT;
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	err = net_read_all(fd, h, sizeof(*h));
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Fault slow-recv: no more than bytes in us, on each socket. Others of the process go on meanwhile. */
static ssize_t slow_recv(struct wire *w, const struct faults *f, char *data, int size)
{
	uint64_t now = now_ns();
	ssize_t n;

	if (now < w->wait_ns) {
		errno = EAGAIN;
		return -1;
	}
	n = recv(w->fd, data, MIN(size, f->slow_recv_bytes), MSG_DONTWAIT);
	if (n > 0)
		w->wait_ns = now + f->slow_recv_us * 1000 * n / f->slow_recv_bytes;
	return n;
}

static ssize_t wire_move(struct sock *s, struct wire *w, char *data, int size)
{
	if (s->is_send)
		return send(w->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (s->faults->slow_recv_us)
		return slow_recv(w, s->faults, data, size);
	return recv(w->fd, data, size, MSG_DONTWAIT);
}

/* Moves what can be moved now: bytes moved, 0 if none, -errno. A peer that is gone is an error. */
static int progress(struct sock *s, struct wire *w, char *data, int size)
{
	int off = 0;
	ssize_t n;

	while (off < size) {
		n = wire_move(s, w, data + off, size - off);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			break;
		if (n < 0)
			return -errno;
		off += n;
		*(s->is_send ? &w->tx : &w->rx) += n;
	}
	return off;
}

/* ---- helper threads: NCCL's persistentSocketThread ---- */

/* True once all of the tasks are done; NCCL spins here too. */
static void helper_run(struct net_task **tasks, int n)
{
	bool left = true;
	int i, moved;

	while (left) {
		left = false;
		for (i = 0; i < n; i++) {
			struct net_task *t = tasks[i];

			if (!t->size || t->err)
				continue;
			prof_net_start(t->req, &t->net_handle, t->wire->fd, t->size);
			moved = progress(t->sock, t->wire, t->data, t->size);
			t->err = MIN(moved, 0);
			t->data += MAX(moved, 0);
			t->size -= MAX(moved, 0);
			left |= t->size > 0 && !t->err;
			if (!t->size || t->err)
				prof_net_stop(&t->net_handle);
		}
		if (left)
			yield_politely();
	}
	for (i = 0; i < n; i++)
		atomic_store_explicit(&tasks[i]->pending, 0, memory_order_release);
}

static void *helper_main(void *arg)
{
	struct net_helper *h = arg;
	struct net_task *tasks[MAX_SOCKS];
	int n;

	for (;;) {
		pthread_mutex_lock(&h->lock);
		while (h->head == h->tail && !h->stop)
			pthread_cond_wait(&h->cond, &h->lock);
		if (h->stop) {
			pthread_mutex_unlock(&h->lock);
			return NULL;
		}
		for (n = 0; h->head != h->tail && n < h->per_thread; h->head++)
			tasks[n++] = h->queue[h->head % HELPER_QUEUE];
		pthread_mutex_unlock(&h->lock);
		helper_run(tasks, n);
	}
}

static void helper_add(struct net_helper *h, struct net_task *t)
{
	pthread_mutex_lock(&h->lock);
	h->queue[h->tail++ % HELPER_QUEUE] = t;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->lock);
}

/* ---- connections ---- */

struct sock *sock__new(int is_send)
{
	struct sock *s = calloc(1, sizeof(*s));
	int threads = env_long("NCCL_SOCKET_NTHREADS", 0);
	int per = env_long("NCCL_NSOCKS_PERTHREAD", 1);
	int i;

	if (!s)
		return NULL;
	s->ctrl.fd = -1;
	s->is_send = is_send;
	if (threads > 0 && threads <= 16 && per > 0 && threads * per <= MAX_SOCKS) {
		s->nthreads = threads;
		s->nsocks = threads * per;
	}
	s->tasks = calloc(NCCL_STEPS * s->nsocks + 1, sizeof(*s->tasks));
	if (!s->tasks) {
		free(s);
		return NULL;
	}
	for (i = 0; i < MAX_SOCKS; i++)
		s->data[i].fd = -1;
	return s;
}

static int wire_start(struct sock *s, struct wire *w)
{
	*(s->is_send ? &w->tx : &w->rx) = sizeof(struct hello);
	return set_nonblock(w->fd, true);
}

int sock__start(struct sock *s, const struct hello *id, int rank, const struct faults *f)
{
	int i, err = wire_start(s, &s->ctrl);

	for (i = 0; i < s->nsocks && !err; i++)
		err = wire_start(s, &s->data[i]);
	s->id = *id;
	s->rank = rank;
	s->faults = f;
	flows_add(s);
	if (err || !s->nthreads)
		return err;
	s->helpers = calloc(s->nthreads, sizeof(*s->helpers));
	if (!s->helpers)
		return -ENOMEM;
	for (i = 0; i < s->nthreads; i++) {
		struct net_helper *h = &s->helpers[i];

		pthread_mutex_init(&h->lock, NULL);
		pthread_cond_init(&h->cond, NULL);
		h->per_thread = s->nsocks / s->nthreads;
		err = -pthread_create(&h->thread, NULL, helper_main, h);
		if (err) {
			s->nthreads = i;
			return err;
		}
		if (settings()->thread_names) {
			char name[16];

			snprintf(name, sizeof(name), "NCCL Sock%c%1u%2u%2u", s->is_send ? 'S' : 'R',
				 0, (unsigned)i % 100, 0);
			pthread_setname_np(h->thread, name);
		}
	}
	return 0;
}

void sock__reset(struct sock *s)
{
	struct linger now = {.l_onoff = 1};
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	si_warn("rank %d resets %s on request", s->rank, s->ctrl.flow);
	setsockopt(s->ctrl.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	/* Its number stays taken: another socket must not come in its place. */
	if (nothing < 0 || dup3(nothing, s->ctrl.fd, O_CLOEXEC) < 0)
		si_warn("Failed to reset a connection: %s", strerror(errno));
	close(nothing);
}

void sock__stop(struct sock *s)
{
	int i;

	/* A helper that is in the middle of a transfer is let go by the end of its socket. */
	for (i = 0; i < s->nsocks; i++)
		shutdown(s->data[i].fd, SHUT_RDWR);
	for (i = 0; s->helpers && i < s->nthreads; i++) {
		struct net_helper *h = &s->helpers[i];
		bool ended;

		pthread_mutex_lock(&h->lock);
		ended = h->stop;
		h->stop = true;
		pthread_cond_signal(&h->cond);
		pthread_mutex_unlock(&h->lock);
		if (!ended)
			pthread_join(h->thread, NULL);
	}
}

void sock__free(struct sock *s)
{
	int i;

	if (!s)
		return;
	flows_remove(s);
	sock__stop(s);
	free(s->helpers);
	free(s->tasks);
	for (i = 0; i < s->nsocks; i++)
		close(s->data[i].fd);
	if (s->ctrl.fd >= 0)
		close(s->ctrl.fd);
	free(s);
}

/* ---- requests ---- */

void req_start(struct req *r, struct sock *s, int slot, char *data, int size, struct sub *sub,
	       int step)
{
	r->used = 1;
	r->is_send = s->is_send;
	r->sock = s;
	r->data = data;
	r->size = size;
	r->hdr_off = 0;
	r->offset = 0;
	r->ntasks = 0;
	r->tasks = s->tasks + slot * s->nsocks;
	r->sub = sub;
	r->step = step;
	if (r->is_send) {
		r->wire = settings()->dry ? MIN(size, DRY_BYTES) : size;
		r->hdr[0] = size;
		r->hdr[1] = r->wire;
	}
}

static void make_tasks(struct req *r)
{
	struct sock *s = r->sock;
	int off = 0, part = MAX(MIN_TASK_SIZE, DIV_UP(r->wire, s->nsocks));

	while (off < r->wire) {
		struct net_task *t = &r->tasks[r->ntasks++];

		t->sock = s;
		t->wire = &s->data[s->next];
		t->data = r->data + off;
		t->size = MIN(part, r->wire - off);
		t->err = 0;
		t->req = r;
		t->net_handle = NULL;
		off += t->size;
		atomic_store(&t->pending, 1);
		helper_add(&s->helpers[s->next % s->nthreads], t);
		s->next = (s->next + 1) % s->nsocks;
	}
}

/* Bytes that go with the size. Those of a dry run stand for more. */
static int inline_size(const struct req *r)
{
	return r->wire == r->size && r->size <= settings()->socket_inline ? r->size : 0;
}

/* All that is sent before it is the helpers' turn, or what is left of it. */
static int send_size(struct req *r)
{
	char msg[sizeof(r->hdr) + SOCKET_INLINE_MAX];
	int n = inline_size(r);

	memcpy(msg, r->hdr, sizeof(r->hdr));
	memcpy(msg + sizeof(r->hdr), r->data, n);
	return progress(r->sock, &r->sock->ctrl, msg + r->hdr_off,
			(int)sizeof(r->hdr) + n - r->hdr_off);
}

/* The size goes first, so that the receiver knows how much comes: less than it has room for. */
static int exchange_sizes(struct req *r)
{
	int n = r->is_send ? send_size(r)
			   : progress(r->sock, &r->sock->ctrl, (char *)r->hdr + r->hdr_off,
				      (int)sizeof(r->hdr) - r->hdr_off);

	if (n < 0)
		return n;
	r->hdr_off += n;
	if (r->hdr_off < (int)sizeof(r->hdr) + (r->is_send ? inline_size(r) : 0))
		return 0;
	if (!r->is_send) {
		if (r->hdr[0] > (uint32_t)r->size || r->hdr[1] > r->hdr[0]) {
			si_warn("NET/Socket : message truncated : receiving %u bytes instead of %d",
				r->hdr[0], r->size);
			return -EMSGSIZE;
		}
		r->size = r->hdr[0];
		r->wire = r->hdr[1];
	}
	r->used = 2;
	if (r->is_send)
		r->offset = inline_size(r);
	if (r->sock->nsocks && !inline_size(r))
		make_tasks(r);
	return 0;
}

static int test_tasks(struct req *r)
{
	int i;

	for (i = 0; i < r->ntasks; i++) {
		if (atomic_load_explicit(&r->tasks[i].pending, memory_order_acquire))
			return 0;
		if (r->tasks[i].err)
			return r->tasks[i].err;
	}
	r->used = 0;
	return 1;
}

int req_test(struct req *r)
{
	int n;

	if (r->used == 1) {
		n = exchange_sizes(r);
		if (n < 0 || r->used == 1)
			return n;
	}
	if (r->ntasks)
		return test_tasks(r);
	prof_net_start(r, &r->net_handle, r->sock->ctrl.fd, r->size);
	n = progress(r->sock, &r->sock->ctrl, r->data + r->offset, r->wire - r->offset);
	if (n < 0)
		return n;
	r->offset += n;
	if (r->offset < r->wire)
		return 0;
	r->used = 0;
	prof_net_stop(&r->net_handle);
	return 1;
}
