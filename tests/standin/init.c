// SPDX-License-Identifier: BSD-2-Clause
/*
 * Communicators: bootstrap, connections of the ring and of point-to-point channels, PXN, split, and
 * the end. The plugin is initialised before the progress thread starts and finalised last, as in
 * NCCL (src/init.cc).
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"

#define API		 __attribute__((visibility("default")))
#define ALIAS(name)	 __attribute__((weak, alias(name), visibility("default")))
#define CONN_LEN(step)	 (sizeof(struct conn_mem) + (size_t)(step)*NCCL_STEPS)
#define DEFAULT_CHANNELS 2
#define P2P_PER_PEER	 2 /* NCCL's default towards a peer over the network */

static int timeout_ms(void)
{
	return settings()->timeout_s * 1000;
}

ncclResult_t comm_check(const struct ncclComm *c, const char *what)
{
	if (!c || c->magic != COMM_MAGIC) {
		si_warn("%s: invalid communicator", what);
		return ncclInvalidArgument;
	}
	return ncclSuccess;
}

static ncclResult_t to_result(int err)
{
	if (!err)
		return ncclSuccess;
	return err == -EINVAL ? ncclInvalidArgument
	       : err == -ECONNRESET || err == -EPIPE || err == -ETIMEDOUT || err == -EAGAIN
		       ? ncclRemoteError
		       : ncclSystemError;
}

/* ---- connections ---- */

static struct conn *conn_new(struct ncclComm *c, int channel, int peer, bool is_send, bool p2p,
			     void *mem)
{
	struct conn *n = calloc(1, sizeof(*n));
	int i;

	if (!n)
		return NULL;
	n->step_size = p2p ? P2P_CHUNK_SIZE : STEP_SIZE;
	n->mem = mem;
	if (!mem) {
		n->map_len = CONN_LEN(n->step_size);
		n->mem = mmap(NULL, n->map_len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (n->mem == MAP_FAILED) {
		free(n);
		return NULL;
	}
	n->channel = channel;
	n->peer = peer;
	n->is_send = is_send;
	n->shared = p2p;
	n->q = c->proxy->q;
	n->bell = &c->bell;
	n->listen_fd = -1;
	for (i = 0; i < NCCL_STEPS; i++)
		atomic_store(&n->mem->size[i], -1);
	/* Shared buffers: no credit before the first post. */
	atomic_store(&n->mem->head, is_send && p2p ? -NCCL_STEPS : 0);
	c->conns = realloc(c->conns, (c->nconns + 1) * sizeof(*c->conns));
	c->conns[c->nconns++] = n;
	return n;
}

static void conn_free(struct conn *n)
{
	sock__free(n->sock);
	if (n->listen_fd >= 0)
		close(n->listen_fd);
	if (n->map_len)
		munmap(n->mem, n->map_len);
	free(n);
}

/* The rank of the same node that runs the send operations of this one. */
static int pxn_exec(const struct ncclComm *c, int orig)
{
	int base = orig / c->pxn_local * c->pxn_local;
	int n = MIN(c->pxn_local, c->nranks - base);

	return base + (orig - base + 1) % n;
}

/* A listener for this connection alone, as NCCL has it; its port is told to whom connects. */
static int conn_listen(struct ncclComm *c, struct conn *n)
{
	int to = n->shared ? n->peer : pxn_exec(c, n->peer), fd, err;
	struct hello h = {.comm_hash = c->hash,
			  .src = n->peer,
			  .dst = c->rank,
			  .channel = n->channel,
			  .p2p = n->shared,
			  .sock = -1};
	struct sockaddr_in addr;

	n->listen_fd = net_listen(&c->ip, &addr);
	if (n->listen_fd < 0)
		return n->listen_fd;
	h.port = ntohs(addr.sin_port);
	fd = net_connect(&c->peers[to].addr, &c->ip, timeout_ms());
	if (fd < 0)
		return fd;
	err = net_write_all(fd, &h, sizeof(h));
	close(fd);
	return err;
}

/* The port that the receiver tells for this connection: kept from before, or one that comes now. */
static int wait_port(struct ncclComm *c, struct hello *want)
{
	struct told **p, *t;
	struct hello h;
	int fd;

	for (;;) {
		for (p = &c->told; *p; p = &(*p)->next) {
			if (memcmp(&(*p)->h, want, offsetof(struct hello, port)))
				continue;
			t = *p;
			*p = t->next;
			want->port = t->h.port;
			free(t);
			return 0;
		}
		fd = net_accept_hello(c->listen_fd, &h, timeout_ms());
		if (fd < 0) {
			si_warn("Failed to learn from rank %d where it listens: %s", want->dst,
				strerror(-fd));
			return fd;
		}
		close(fd);
		t = h.comm_hash == c->hash ? malloc(sizeof(*t)) : NULL;
		if (!t)
			continue;
		t->h = h;
		t->next = c->told;
		c->told = t;
	}
}

/* src is the rank whose data goes out: under PXN not ours. */
static int conn_connect(struct ncclComm *c, struct conn *n, int src)
{
	struct hello h = {.comm_hash = c->hash,
			  .src = src,
			  .dst = n->peer,
			  .channel = n->channel,
			  .p2p = n->shared,
			  .sock = -1};
	struct sock *s = n->sock = sock__new(1);
	struct sockaddr_in to = c->peers[n->peer].addr;
	int err, fd;

	if (!s)
		return -ENOMEM;
	err = wait_port(c, &h);
	to.sin_port = htons(h.port);
	for (; h.sock < s->nsocks && !err; h.sock++) {
		fd = net_connect(&to, &c->ip, timeout_ms());
		if (fd < 0)
			return fd;
		(h.sock < 0 ? &s->ctrl : &s->data[h.sock])->fd = fd;
		err = net_write_all(fd, &h, sizeof(h));
	}
	return err ? err : sock__start(s, &h, c->rank, &c->proxy->faults);
}

static int conn_accept(struct ncclComm *c, struct conn *n)
{
	struct sock *s = n->sock = sock__new(0);
	struct hello h;
	struct wire *w;
	int left, fd;

	if (!s)
		return -ENOMEM;
	for (left = 1 + s->nsocks; left;) {
		fd = net_accept_hello(n->listen_fd, &h, timeout_ms());
		if (fd < 0) {
			si_warn("Failed to get a connection from rank %d: %s", n->peer,
				strerror(-fd));
			return fd;
		}
		w = h.sock == -1			? &s->ctrl
		    : h.sock >= 0 && h.sock < s->nsocks ? &s->data[h.sock]
							: NULL;
		if (!w || w->fd >= 0 || h.comm_hash != c->hash || h.src != n->peer) {
			close(fd);
			continue;
		}
		w->fd = fd;
		left--;
	}
	close(n->listen_fd);
	n->listen_fd = -1;
	return sock__start(s, &h, c->rank, &c->proxy->faults);
}

int comm_p2p_connect(struct ncclComm *c, int peer, int channel)
{
	struct conn **slot = &c->p2p_send[peer * MAX_CHANNELS + channel];
	struct conn *n;
	int err;

	if (*slot)
		return 0;
	n = conn_new(c, channel, peer, true, true, NULL);
	if (!n)
		return -ENOMEM;
	err = conn_connect(c, n, c->rank);
	if (err)
		return err;
	n->id = proxy_add_conn(c->proxy, n);
	*slot = n;
	return n->id < MAX_CONNS ? 0 : -EMFILE;
}

int comm_p2p_listen(struct ncclComm *c, int peer, int channel)
{
	struct conn **slot = &c->p2p_recv[peer * MAX_CHANNELS + channel];

	if (*slot)
		return 0;
	*slot = conn_new(c, channel, peer, false, true, NULL);
	return *slot ? conn_listen(c, *slot) : -ENOMEM;
}

int comm_p2p_accept(struct ncclComm *c, int peer, int channel)
{
	struct conn *n = c->p2p_recv[peer * MAX_CHANNELS + channel];
	int err;

	if (n->listen_fd < 0)
		return 0;
	err = conn_accept(c, n);
	if (err)
		return err;
	n->id = proxy_add_conn(c->proxy, n);
	return n->id < MAX_CONNS ? 0 : -EMFILE;
}

/* ---- ring ---- */

/* Connection numbers of the ring are agreed, so that a peer process can name them (PXN). */
static uint32_t pxn_id(const struct ncclComm *c, int orig, int channel)
{
	return (2 + orig % c->pxn_local) * c->nchannels + channel;
}

static int ring_recv(struct ncclComm *c, int ch)
{
	struct conn *n = conn_new(c, ch, (c->rank + c->nranks - 1) % c->nranks, false, false, NULL);

	if (!n)
		return -ENOMEM;
	c->ring_recv[ch] = n;
	return conn_listen(c, n);
}

static int ring_send(struct ncclComm *c, int ch)
{
	bool pxn = c->exec_q;
	void *mem = pxn ? (char *)c->buf_map + ch * CONN_LEN(STEP_SIZE) : NULL;
	struct conn *n = conn_new(c, ch, (c->rank + 1) % c->nranks, true, false, mem);

	if (!n)
		return -ENOMEM;
	c->ring_send[ch] = n;
	if (!pxn)
		return conn_connect(c, n, c->rank);
	n->q = c->exec_q;
	n->id = pxn_id(c, c->rank, ch);
	return 0;
}

/* PXN, the other side: send for a rank of this node from its buffers. */
static int ring_send_for(struct ncclComm *c, int orig)
{
	struct peer_info *pi = &c->peers[orig];
	void *map;
	int ch, err = 0;

	if (!opq_map(pi->buf_name, c->nchannels * CONN_LEN(STEP_SIZE), &map))
		return -errno;
	for (ch = 0; ch < c->nchannels && !err; ch++) {
		struct conn *n = conn_new(c, ch, (orig + 1) % c->nranks, true, false,
					  (char *)map + ch * CONN_LEN(STEP_SIZE));

		if (!n)
			return -ENOMEM;
		n->bell = NULL; /* it hangs in another process, which looks by itself */
		n->id = pxn_id(c, orig, ch);
		proxy_set_conn(c->proxy, n->id, n);
		err = conn_connect(c, n, orig);
	}
	return err;
}

static int ring_setup(struct ncclComm *c)
{
	int ch, err = 0, o;
	uint32_t id;

	for (ch = 0; ch < c->nchannels && !err; ch++)
		err = ring_recv(c, ch);
	for (ch = 0; ch < c->nchannels && !err; ch++)
		err = ring_send(c, ch);
	for (o = 0; o < c->nranks && !err && c->exec_q; o++)
		if (o / c->pxn_local == c->rank / c->pxn_local && pxn_exec(c, o) == c->rank)
			err = ring_send_for(c, o);
	for (ch = 0; ch < c->nchannels && !err; ch++)
		err = conn_accept(c, c->ring_recv[ch]);
	for (ch = 0; ch < c->nchannels && !err; ch++) {
		/* A shared proxy has numbers in use: only without PXN, see comm_channels(). */
		id = c->pxn ? (uint32_t)ch : proxy_add_conn(c->proxy, c->ring_recv[ch]);
		c->ring_recv[ch]->id = id;
		proxy_set_conn(c->proxy, id, c->ring_recv[ch]);
		if (c->exec_q)
			continue;
		id = c->pxn ? (uint32_t)(c->nchannels + ch)
			    : proxy_add_conn(c->proxy, c->ring_send[ch]);
		c->ring_send[ch]->id = id;
		proxy_set_conn(c->proxy, id, c->ring_send[ch]);
	}
	if (c->pxn)
		c->proxy->nconns = (2 + c->pxn_local) * c->nchannels;
	return err;
}

/* ---- init ---- */

static void comm_channels(struct ncclComm *c)
{
	long lo = env_long("NCCL_MIN_NCHANNELS", 0), hi = env_long("NCCL_MAX_NCHANNELS", 0);
	int n = lo > DEFAULT_CHANNELS ? lo : DEFAULT_CHANNELS;

	if (hi > 0)
		n = MIN(n, hi);
	c->nchannels = MAX(1, MIN(n, MAX_CHANNELS));
	for (n = 1; n < c->nchannels;)
		n *= 2;
	c->p2p_nchannels = n;
	c->p2p_per_peer = MIN(P2P_PER_PEER, n);
	if (!fault_get("pxn", -1, "local", 2, &c->pxn_local))
		c->pxn_local = env_long("STANDIN_PXN", 0);
	c->pxn = c->pxn_local > 1 && c->nranks > 1;
	if (!c->pxn)
		c->pxn_local = 1;
	c->nnodes = DIV_UP(c->nranks, c->pxn_local);
}

static int comm_alloc(struct ncclComm *c)
{
	int i;

	c->p2p_send = calloc((size_t)c->nranks * MAX_CHANNELS, sizeof(*c->p2p_send));
	c->p2p_recv = calloc((size_t)c->nranks * MAX_CHANNELS, sizeof(*c->p2p_recv));
	c->p2p_sends = calloc(c->nranks, sizeof(*c->p2p_sends));
	c->p2p_recvs = calloc(c->nranks, sizeof(*c->p2p_recvs));
	c->peers = calloc(c->nranks, sizeof(*c->peers));
	c->dev_prof = calloc(1, sizeof(*c->dev_prof));
	if (!c->p2p_send || !c->p2p_recv || !c->p2p_sends || !c->p2p_recvs || !c->peers ||
	    !c->dev_prof)
		return -ENOMEM;
	task_list_init(&c->colls);
	for (i = 0; i < c->nranks; i++) {
		task_list_init(&c->p2p_sends[i]);
		task_list_init(&c->p2p_recvs[i]);
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->cond, NULL);
	return 0;
}

/* Tells the others where we listen, and under PXN where our queue and our send buffers are. */
static int comm_exchange(struct ncclComm *c)
{
	struct peer_info me = {.pid = getpid()};
	int exec;

	c->listen_fd = net_listen(&c->ip, &me.addr);
	if (c->listen_fd < 0)
		return c->listen_fd;
	if (c->pxn) {
		c->buf_len = c->nchannels * CONN_LEN(STEP_SIZE);
		c->buf_map = proxy_shm(c->buf_name, sizeof(c->buf_name), c->buf_len);
		if (!c->buf_map)
			return -ENOMEM;
		memcpy(me.buf_name, c->buf_name, sizeof(me.buf_name));
		memcpy(me.shm_name, c->proxy->shm_name, sizeof(me.shm_name));
		me.q_len = c->proxy->q_len;
	}
	if (boot_allgather(c->boot_fd, &me, c->peers, sizeof(me), c->nranks))
		return -ECONNRESET;
	exec = pxn_exec(c, c->rank);
	if (exec == c->rank)
		return 0;
	c->exec_len = c->peers[exec].q_len;
	c->exec_q = opq_map(c->peers[exec].shm_name, c->exec_len, &c->exec_map);
	return c->exec_q ? 0 : -errno;
}

static int comm_barrier(struct ncclComm *c)
{
	char *all = malloc(c->nranks), mine = 0;
	int err = all ? boot_allgather(c->boot_fd, &mine, all, 1, c->nranks) : -ENOMEM;

	free(all);
	return err;
}

static void pxn_unlink(struct ncclComm *c)
{
	if (c->buf_name[0])
		shm_unlink(c->buf_name);
	if (c->proxy && c->proxy->shm_name[0])
		shm_unlink(c->proxy->shm_name);
	c->buf_name[0] = '\0';
}

static int comm_setup(struct ncclComm *c, const ncclUniqueId *id, struct proxy *share)
{
	int err = boot_join(id, c->rank, c->nranks, c->ip, &c->boot_fd);

	if (err)
		return err;
	if (share) {
		c->proxy = share;
		__atomic_add_fetch(&share->refs, 1, __ATOMIC_ACQ_REL);
	} else {
		c->proxy = proxy__new(c->rank, c->pxn);
		if (!c->proxy)
			return -ENOMEM;
	}
	err = comm_exchange(c);
	if (!err)
		err = prof_init(c);
	if (!err && c->nranks > 1)
		err = ring_setup(c);
	if (err)
		return err;
	if (!share) {
		c->proxy->prof_ctx = c->prof_ctx;
		err = proxy__start(c->proxy);
	}
	if (!err)
		err = comm_barrier(c);
	pxn_unlink(c);
	return err;
}

static void comm_free(struct ncclComm *c);

static ncclResult_t comm_new(struct ncclComm **out, int nranks, const ncclUniqueId *id, int rank,
			     const ncclConfig_t *config, uint64_t hash, struct proxy *share,
			     int dev, struct in_addr ip)
{
	struct ncclComm *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return ncclSystemError;
	c->magic = COMM_MAGIC;
	c->rank = rank;
	c->nranks = nranks;
	c->dev = dev;
	c->ip = ip;
	c->boot_fd = c->listen_fd = -1;
	c->hash = hash;
	if (config && config->commName)
		c->name = strdup(config->commName);
	fault_load(&c->faults, rank, nranks);
	fault_die_later(&c->faults.death, false);
	comm_channels(c);
	if (share) /* its queue has no agreed numbers for this communicator */
		c->pxn = false, c->pxn_local = 1, c->nnodes = nranks;
	err = comm_alloc(c);
	if (!err)
		err = comm_setup(c, id, share);
	if (err) {
		si_warn("Failed to initialise communicator, rank %d of %d: %s", rank, nranks,
			strerror(-err));
		atomic_store(&c->abort, 1);
		comm_free(c);
		return to_result(err);
	}
	*out = c;
	return ncclSuccess;
}

struct init_job {
	struct async_job job;
	struct ncclComm **out;
	int nranks, rank, dev;
	ncclUniqueId id;
	ncclConfig_t config;
};

static ncclResult_t init_fn(struct async_job *job)
{
	struct init_job *j = (struct init_job *)job;

	return comm_new(j->out, j->nranks, &j->id, j->rank, &j->config,
			hash64(&j->id, sizeof(j->id), 0), NULL, j->dev, boot_bind_addr(j->rank));
}

static void job_free(struct async_job *job)
{
	free(job);
}

static ncclResult_t init_rank(struct ncclComm **comm, int nranks, const ncclUniqueId *id, int rank,
			      const ncclConfig_t *config, int dev)
{
	struct init_job *j;

	if (!comm || nranks < 1 || rank < 0 || rank >= nranks) {
		si_warn("Invalid rank requested : %d/%d", rank, nranks);
		return ncclInvalidArgument;
	}
	if (config && config->magic != NCCL_CONFIG_MAGIC) {
		si_warn("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
		return ncclInvalidArgument;
	}
	j = calloc(1, sizeof(*j));
	if (!j)
		return ncclSystemError;
	j->job.fn = init_fn;
	j->job.destroy = job_free;
	j->out = comm;
	j->nranks = nranks;
	j->rank = rank;
	j->dev = dev;
	j->id = *id;
	if (config)
		j->config = *config;
	*comm = NULL;
	return async_launch(&j->job);
}

API ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	return init_rank(comm, nranks, &id, rank, NULL, 0);
}
ALIAS("pncclCommInitRank") ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);

API ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
					 ncclConfig_t *config)
{
	return init_rank(comm, nranks, &id, rank, config, 0);
}
ALIAS("pncclCommInitRankConfig")
ncclResult_t ncclCommInitRankConfig(ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);

API ncclResult_t pncclCommInitAll(ncclComm_t *comms, int ndev, const int *devlist)
{
	ncclResult_t res, end;
	ncclUniqueId id;
	int i;

	if (!comms || ndev < 1)
		return ncclInvalidArgument;
	res = pncclGetUniqueId(&id);
	if (res)
		return res;
	pncclGroupStart();
	for (i = 0; i < ndev && !res; i++)
		res = init_rank(&comms[i], ndev, &id, i, NULL, devlist ? devlist[i] : i);
	end = pncclGroupEnd();
	return res ? res : end;
}
ALIAS("pncclCommInitAll") ncclResult_t ncclCommInitAll(ncclComm_t *, int, const int *);

API ncclResult_t pncclGetUniqueId(ncclUniqueId *id)
{
	return id ? to_result(boot_make_id(id, boot_bind_addr(0))) : ncclInvalidArgument;
}
ALIAS("pncclGetUniqueId") ncclResult_t ncclGetUniqueId(ncclUniqueId *);

/* ---- split ---- */

struct split_msg {
	int32_t color;
	int32_t key;
	ncclUniqueId id;
};

struct split_job {
	struct async_job job;
	struct ncclComm *parent;
	struct ncclComm **out;
	int color, key;
	ncclConfig_t config;
	bool have_config;
};

/* Our rank among those of our color, by key and then by old rank; *leader gets rank 0's old rank. */
static int split_rank(const struct ncclComm *p, const struct split_msg *all, int *nranks,
		      int *leader)
{
	int me = 0, r, best = -1;

	*nranks = 0;
	for (r = 0; r < p->nranks; r++) {
		if (all[r].color != all[p->rank].color)
			continue;
		++*nranks;
		if (best < 0 || all[r].key < all[best].key)
			best = r;
		me += all[r].key < all[p->rank].key ||
		      (all[r].key == all[p->rank].key && r < p->rank);
	}
	*leader = best;
	return me;
}

static ncclResult_t split_fn(struct async_job *job)
{
	struct split_job *j = (struct split_job *)job;
	struct ncclComm *p = j->parent;
	struct split_msg mine = {.color = j->color, .key = j->key}, *all;
	int32_t seed[2] = {++p->split_count, j->color};
	bool share = j->have_config && j->config.splitShare == 1;
	int nranks, leader, rank;
	ncclResult_t res = ncclSuccess;

	*j->out = NULL;
	all = calloc(p->nranks, sizeof(*all));
	if (!all)
		return ncclSystemError;
	if (boot_allgather(p->boot_fd, &mine, all, sizeof(mine), p->nranks)) {
		free(all);
		return ncclRemoteError;
	}
	rank = split_rank(p, all, &nranks, &leader);
	if (leader == p->rank && j->color != NCCL_SPLIT_NOCOLOR)
		res = to_result(boot_make_id(&mine.id, p->ip));
	if (boot_allgather(p->boot_fd, &mine, all, sizeof(mine), p->nranks))
		res = ncclRemoteError;
	if (!res && j->color != NCCL_SPLIT_NOCOLOR)
		res = comm_new(j->out, nranks, &all[leader].id, rank,
			       j->have_config ? &j->config : NULL,
			       hash64(seed, sizeof(seed), p->hash), share ? p->proxy : NULL, p->dev,
			       p->ip);
	free(all);
	return res;
}

API ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
				ncclConfig_t *config)
{
	ncclResult_t res = comm_check(comm, "ncclCommSplit");
	struct split_job *j;

	if (res)
		return res;
	j = calloc(1, sizeof(*j));
	if (!j)
		return ncclSystemError;
	j->job.fn = split_fn;
	j->job.destroy = job_free;
	j->parent = comm;
	j->out = newcomm;
	j->color = color;
	j->key = key;
	if (config) {
		j->config = *config;
		j->have_config = true;
	}
	return async_launch(&j->job);
}
ALIAS("pncclCommSplit")
ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t *, ncclConfig_t *);

/* ---- the end ---- */

/* A shared progress thread goes on without us: our operations have to be through first. */
static void drain(struct ncclComm *c, _Atomic int *inflight)
{
	while (atomic_load(inflight) > 0 && !atomic_load(&c->proxy->async_error) &&
	       !atomic_load(&c->proxy->abort))
		usleep(100);
}

static void drain_shared(struct ncclComm *c)
{
	int i;

	for (i = 0; i < c->nconns; i++)
		drain(c, &c->conns[i]->inflight);
	if (c->dev_prof)
		drain(c, &c->dev_prof->inflight);
}

static void comm_free(struct ncclComm *c)
{
	bool abort = atomic_load(&c->abort);
	/* After an abort a shared progress thread may still hold our connections: they stay. */
	bool keep = abort && c->proxy && c->proxy->refs > 1;
	struct told *t;
	int i;

	fault_die_later(&c->faults.death, true);
	stream_wait_comm(c);
	if (c->proxy && !abort)
		drain_shared(c);
	if (c->pxn && !abort && !atomic_load(&c->async_error))
		comm_barrier(c); /* a neighbour may still need our progress thread */
	pxn_unlink(c);
	if (abort && c->proxy && c->proxy->refs == 1)
		atomic_store(&c->proxy->abort, 1);
	/* What helper threads are at is in the progress thread's memory, which goes first. */
	for (i = 0; abort && i < c->nconns && !keep; i++)
		if (c->conns[i]->sock)
			sock__stop(c->conns[i]->sock);
	proxy__put(c->proxy);
	for (i = 0; i < c->nconns && !keep; i++)
		conn_free(c->conns[i]);
	if (c->null_stream)
		standinStreamDestroy(c->null_stream);
	while ((t = c->told)) {
		c->told = t->next;
		free(t);
	}
	if (c->listen_fd >= 0)
		close(c->listen_fd);
	if (c->boot_fd >= 0)
		close(c->boot_fd);
	if (c->exec_map)
		munmap(c->exec_map, c->exec_len);
	if (c->buf_map)
		munmap(c->buf_map, c->buf_len);
	free(c->conns);
	free(c->p2p_send);
	free(c->p2p_recv);
	free(c->p2p_sends);
	free(c->p2p_recvs);
	free(c->peers);
	if (!keep)
		free(c->dev_prof);
	c->magic = 0;
	prof_finalize(c);
	free(c->name);
	free(c);
}

API ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
	ncclResult_t res = comm_check(comm, "ncclCommFinalize");

	if (!res)
		stream_wait_comm(comm);
	return res;
}
ALIAS("pncclCommFinalize") ncclResult_t ncclCommFinalize(ncclComm_t);

API ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
	ncclResult_t res;

	if (!comm)
		return ncclSuccess;
	res = comm_check(comm, "ncclCommDestroy");
	if (!res)
		comm_free(comm);
	return res;
}
ALIAS("pncclCommDestroy") ncclResult_t ncclCommDestroy(ncclComm_t);

API ncclResult_t pncclCommAbort(ncclComm_t comm)
{
	ncclResult_t res;

	if (!comm)
		return ncclSuccess;
	res = comm_check(comm, "ncclCommAbort");
	if (res)
		return res;
	atomic_store(&comm->abort, 1);
	if (comm->proxy->refs == 1)
		atomic_store(&comm->proxy->abort, 1);
	bell_ring(&comm->bell);
	opq_wake(comm->proxy->q);
	comm_free(comm);
	return ncclSuccess;
}
ALIAS("pncclCommAbort") ncclResult_t ncclCommAbort(ncclComm_t);

/* ---- questions ---- */

API ncclResult_t pncclGetVersion(int *version)
{
	if (!version)
		return ncclInvalidArgument;
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}
ALIAS("pncclGetVersion") ncclResult_t ncclGetVersion(int *);

API const char *pncclGetErrorString(ncclResult_t result)
{
	static const char *const names[] = {
		"no error",
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)",
		"invalid usage (run with NCCL_DEBUG=WARN for details)",
		"remote process exited or there was a network error",
		"NCCL operation in progress",
	};

	return (unsigned)result < ARRAY_SIZE(names) ? names[result] : "unknown result code";
}
ALIAS("pncclGetErrorString") const char *ncclGetErrorString(ncclResult_t);

API const char *pncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return si_last_error();
}
ALIAS("pncclGetLastError") const char *ncclGetLastError(ncclComm_t);

API ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *async)
{
	ncclResult_t res = comm_check(comm, "ncclCommGetAsyncError");

	if (res)
		return res;
	*async = atomic_load(&comm->async_error);
	if (!*async && atomic_load(&comm->proxy->async_error))
		*async = ncclRemoteError;
	return ncclSuccess;
}
ALIAS("pncclCommGetAsyncError")
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *);

#define GETTER(name, field)                                                                        \
	API ncclResult_t p##name(const ncclComm_t comm, int *out)                                  \
	{                                                                                          \
		ncclResult_t res = comm_check(comm, #name);                                        \
                                                                                                   \
		if (!res)                                                                          \
			*out = comm->field;                                                        \
		return res;                                                                        \
	}                                                                                          \
	ALIAS("p" #name) ncclResult_t name(const ncclComm_t, int *)
GETTER(ncclCommCount, nranks);
GETTER(ncclCommCuDevice, dev);
GETTER(ncclCommUserRank, rank);

API ncclResult_t standinCounters(ncclComm_t comm, struct standin_counters *out)
{
	ncclResult_t res = comm_check(comm, "standinCounters");

	if (!res)
		*out = comm->cnt;
	return res;
}

API ncclResult_t standinCommHash(ncclComm_t comm, uint64_t *hash)
{
	ncclResult_t res = comm_check(comm, "standinCommHash");

	if (!res)
		*hash = comm->hash;
	return res;
}

API void standinSetUserTag(uint64_t tag)
{
	user_tag = tag;
}
