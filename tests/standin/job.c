// SPDX-License-Identifier: BSD-2-Clause
/*
 * scope-job: a job of several ranks that runs collectives, checks the results and says what it did
 * and how long it took. Over the stand-in it needs no GPU; with -DUSE_REAL_NCCL it runs NVIDIA's.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "job.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2 };

#define MAX_RANKS   256
#define SMALL_BYTES 256 /* --small */

struct opts {
	int ranks, first, last; /* of all ranks, those that this process starts */
	int threads;		/* ranks per process */
	int channels, iters, warmup, groups, small, ahead, split, pxn, api, timeout_s, check;
	bool init_all, one_thread, overlap, split_share, dry, json, in_place, no_destroy, nest;
	size_t bytes;
	enum job_op op;
	ncclDataType_t type;
	ncclRedOp_t red;
	const char *fault, *bind, *netns, *id_file, *name;
	long delay_ms, sleep_us, period_us, linger_ms;
};

static struct opts o = {
	.ranks = 2,
	.last = -1,
	.threads = 1,
	.channels = 2,
	.iters = 10,
	.groups = 1,
	.timeout_s = 120,
	.check = 1,
	.bytes = 1 << 20,
	.type = ncclFloat32,
	.red = ncclSum,
};

struct iter_rec {
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t enqueued_ns;
	uint64_t end_ns;
	int32_t op;
	int32_t comm; /* 0 the whole job, 1 the split part */
};

struct rank_rec {
	int32_t pid;
	int32_t done;
	int32_t nrecs;
	int32_t wrong;
	uint64_t comm_hash[2];
	char error[160];
#ifndef USE_REAL_NCCL
	struct standin_counters cnt[2];
#endif
};

/* Shared by all processes of the job. */
struct shared {
	ncclUniqueId id;
	_Atomic int id_ready;
	_Atomic int ending; /* SIGUSR1 has come */
	_Atomic int end_at; /* no rank begins this iteration, 0: all do */
	struct rank_rec ranks[MAX_RANKS];
	struct iter_rec recs[];
};
static struct shared *sh;
static int max_recs;

static const char *const op_names[JOB_NOPS + 2] = {
	"allreduce", "allgather", "reducescatter", "broadcast", "reduce",
	"sendrecv",  "alltoall",  "mix",	   "pipeline",
};
static const char *const type_names[] = {"int8",   "uint8",   "int32",	 "uint32",  "int64",
					 "uint64", "float16", "float32", "float64", "bfloat16"};
static const char *const red_names[] = {"sum", "prod", "max", "min", "avg"};

/* ---- device: the stand-in's is the host ---- */

#ifdef USE_REAL_NCCL
typedef cudaStream_t stream_t;

static void *dev_alloc(size_t n)
{
	void *p = NULL;

	return cudaMalloc(&p, n ? n : 1) ? NULL : p;
}
static void dev_free(void *p)
{
	cudaFree(p);
}
static int to_dev(void *dev, const void *host, size_t n)
{
	return cudaMemcpy(dev, host, n, cudaMemcpyHostToDevice);
}
static int from_dev(void *host, const void *dev, size_t n)
{
	return cudaMemcpy(host, dev, n, cudaMemcpyDeviceToHost);
}
static int stream_create(stream_t *s)
{
	return cudaStreamCreate(s);
}
static int stream_sync(stream_t s)
{
	return cudaStreamSynchronize(s);
}
static void stream_destroy(stream_t s)
{
	cudaStreamDestroy(s);
}
#else
typedef cudaStream_t stream_t;

static void *dev_alloc(size_t n)
{
	return o.dry ? calloc(1, 4096) : malloc(n ? n : 1);
}
static void dev_free(void *p)
{
	free(p);
}
static int to_dev(void *dev, const void *host, size_t n)
{
	memcpy(dev, host, n);
	return 0;
}
static int from_dev(void *host, const void *dev, size_t n)
{
	memcpy(host, dev, n);
	return 0;
}
static int stream_create(stream_t *s)
{
	return standinStreamCreate(s);
}
static int stream_sync(stream_t s)
{
	return standinStreamSynchronize(s);
}
static void stream_destroy(stream_t s)
{
	standinStreamDestroy(s);
}
#endif

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* ---- one rank ---- */

struct part { /* a communicator that the rank works on, with buffers of its own */
	ncclComm_t comm;
	int rank, nranks;
	stream_t stream;
	char *send;
	char **recv; /* one per operation of a group */
	struct job_call call;
	struct iter_rec *rec;
};

struct rank {
	int rank;
	struct rank_rec *rec;
	struct part parts[2];
	int nparts;
	char *host;
	pthread_t thread;
};

__attribute__((format(printf, 2, 3))) static int rank_fail(struct rank *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->rec->error, sizeof(r->rec->error), fmt, ap);
	va_end(ap);
	fprintf(stderr, "scope-job: rank %d: %s\n", r->rank, r->rec->error);
	return -1;
}

static int nccl_fail(struct rank *r, const char *what, ncclResult_t res)
{
	ncclResult_t async = ncclSuccess;

	if (r->parts[0].comm)
		ncclCommGetAsyncError(r->parts[0].comm, &async);
	return rank_fail(r, "Failed to %s: %s (%s)%s%s", what, ncclGetErrorString(res),
			 ncclGetLastError(r->parts[0].comm), async ? ", communicator: " : "",
			 async ? ncclGetErrorString(async) : "");
}

static int get_id(struct rank *r)
{
	ncclResult_t res;
	FILE *f;
	int i;

	if (!r->rank) {
		res = ncclGetUniqueId(&sh->id);
		if (res)
			return nccl_fail(r, "make a unique id", res);
		if (o.id_file) {
			char tmp[4096];

			snprintf(tmp, sizeof(tmp), "%s.tmp", o.id_file);
			f = fopen(tmp, "w");
			if (!f || fwrite(&sh->id, sizeof(sh->id), 1, f) != 1 || fclose(f) ||
			    rename(tmp, o.id_file))
				return rank_fail(r, "Failed to write '%s': %s", o.id_file,
						 strerror(errno));
		}
		atomic_store(&sh->id_ready, 1);
		return 0;
	}
	for (i = 0; i < o.timeout_s * 100; i++) {
		if (atomic_load(&sh->id_ready))
			return 0;
		f = o.id_file && o.first ? fopen(o.id_file, "r") : NULL;
		if (f) {
			bool ok = fread(&sh->id, sizeof(sh->id), 1, f) == 1;

			fclose(f);
			if (ok)
				return 0;
		}
		usleep(10000);
	}
	return rank_fail(r, "No unique id came from rank 0 within %d s", o.timeout_s);
}

static int part_alloc(struct rank *r, struct part *p)
{
	int i;

	p->recv = calloc(o.groups, sizeof(*p->recv));
	p->send = dev_alloc(o.bytes);
	for (i = 0; i < o.groups && p->recv; i++)
		p->recv[i] = o.in_place ? p->send : dev_alloc(o.bytes);
	if (!p->recv || !p->send || !p->recv[o.groups - 1])
		return rank_fail(r, "Failed to allocate %zu bytes", o.bytes);
	if (stream_create(&p->stream))
		return rank_fail(r, "Failed to create a stream");
	return 0;
}

static void part_free(struct part *p)
{
	int i;

	if (!o.no_destroy && p->stream)
		stream_destroy(p->stream);
	for (i = 0; p->recv && i < o.groups; i++)
		if (p->recv[i] != p->send)
			dev_free(p->recv[i]);
	dev_free(p->send);
	free(p->recv);
}

static int rank_split(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct part *p = &r->parts[1];
	ncclResult_t res;

	config.splitShare = o.split_share;
	config.commName = "split";
	res = ncclCommSplit(r->parts[0].comm, r->rank % o.split, r->rank, &p->comm, &config);
	if (res)
		return nccl_fail(r, "split the communicator", res);
	ncclCommCount(p->comm, &p->nranks);
	ncclCommUserRank(p->comm, &p->rank);
	r->nparts = 2;
	return part_alloc(r, p);
}

static int rank_init(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t res = ncclSuccess;

	config.commName = o.name;
	r->rec->pid = getpid();
	r->host = o.dry ? calloc(1, 4096) : malloc(o.bytes + 1);
	if (!r->host)
		return rank_fail(r, "Failed to allocate %zu bytes", o.bytes);
	if (!r->parts[0].comm) {
		if (get_id(r))
			return -1;
		res = ncclCommInitRankConfig(&r->parts[0].comm, o.ranks, sh->id, r->rank, &config);
	}
	if (res)
		return nccl_fail(r, "initialise the communicator", res);
	r->parts[0].rank = r->rank;
	r->parts[0].nranks = o.ranks;
	r->nparts = 1;
	if (part_alloc(r, &r->parts[0]))
		return -1;
	return o.split ? rank_split(r) : 0;
}

/* --bytes is the size of the bigger buffer, as in nccl-tests; for send/receive of one message. */
static size_t call_count(const struct job_call *c, int iter)
{
	bool is_small = o.small && iter % o.small == 0 && o.bytes > SMALL_BYTES;
	size_t n = (is_small ? SMALL_BYTES : o.bytes) / job_type_size(c->type);

	if (c->op == JOB_ALLGATHER || c->op == JOB_REDUCESCATTER || c->op == JOB_ALLTOALL)
		n /= c->nranks;
	return n;
}

/* One message; with --nest a group of its own within that of all. */
static ncclResult_t send_one(const struct job_call *c, const struct part *p, const char *send,
			     int peer, stream_t s)
{
	ncclResult_t res, end;

	if (!o.nest)
		return ncclSend(send, c->count, c->type, peer, p->comm, s);
	ncclGroupStart();
	res = ncclSend(send, c->count, c->type, peer, p->comm, s);
	end = ncclGroupEnd();
	return res ? res : end;
}

static ncclResult_t recv_one(const struct job_call *c, const struct part *p, char *recv, int peer,
			     stream_t s)
{
	ncclResult_t res, end;

	if (!o.nest)
		return ncclRecv(recv, c->count, c->type, peer, p->comm, s);
	ncclGroupStart();
	res = ncclRecv(recv, c->count, c->type, peer, p->comm, s);
	end = ncclGroupEnd();
	return res ? res : end;
}

static ncclResult_t sendrecv(const struct job_call *c, const struct part *p, const char *send,
			     char *recv, stream_t s)
{
	size_t bytes = c->count * job_type_size(c->type);
	ncclResult_t res = ncclGroupStart();
	int n = c->nranks, i;

	if (c->op == JOB_SENDRECV) {
		res = send_one(c, p, send, (c->rank + 1) % n, s);
		if (!res)
			res = recv_one(c, p, recv, (c->rank + n - 1) % n, s);
	}
	for (i = 0; c->op == JOB_ALLTOALL && i < n && !res; i++) {
		res = send_one(c, p, send + i * bytes, i, s);
		if (!res)
			res = recv_one(c, p, recv + i * bytes, i, s);
	}
	return res ? (ncclGroupEnd(), res) : ncclGroupEnd();
}

/* What the first rank has goes from each one to the next: two operations, of which the second follows from the first. */
static ncclResult_t pipeline(const struct job_call *c, const struct part *p, const char *send,
			     char *recv, stream_t s)
{
	ncclResult_t res = ncclSuccess;

	if (c->rank)
		res = ncclRecv(recv, c->count, c->type, c->rank - 1, p->comm, s);
	if (!res && c->rank + 1 < c->nranks)
		res = ncclSend(c->rank ? recv : send, c->count, c->type, c->rank + 1, p->comm, s);
	return res;
}

static ncclResult_t call_nccl(const struct job_call *c, const struct part *p, const char *send,
			      char *recv, stream_t s)
{
	switch (c->op) {
	case JOB_ALLREDUCE:
		return ncclAllReduce(send, recv, c->count, c->type, c->red, p->comm, s);
	case JOB_ALLGATHER:
		return ncclAllGather(send, recv, c->count, c->type, p->comm, s);
	case JOB_REDUCESCATTER:
		return ncclReduceScatter(send, recv, c->count, c->type, c->red, p->comm, s);
	case JOB_BROADCAST:
		return ncclBroadcast(send, recv, c->count, c->type, c->root, p->comm, s);
	case JOB_REDUCE:
		return ncclReduce(send, recv, c->count, c->type, c->red, c->root, p->comm, s);
	case JOB_PIPELINE:
		return pipeline(c, p, send, recv, s);
	default:
		return sendrecv(c, p, send, recv, s);
	}
}

static struct job_call make_call(const struct part *p, int iter)
{
	struct job_call c = {.op = o.op,
			     .type = o.type,
			     .red = o.red,
			     .rank = p->rank,
			     .nranks = p->nranks,
			     .seed = iter + 1};

	if (o.op == JOB_MIX)
		c.op = iter % JOB_NOPS;
	c.root = iter % p->nranks;
	c.count = call_count(&c, iter);
	return c;
}

static int check_part(struct rank *r, struct part *p)
{
	const struct job_call *c = &p->call;
	size_t es = job_type_size(c->type);
	int g;

	for (g = 0; g < o.groups; g++) {
		long bad;

		if (from_dev(r->host, p->recv[g], job_recv_count(c) * es))
			return rank_fail(r, "Failed to copy the result");
		bad = job_check(c, r->host);
		if (bad < 0)
			continue;
		r->rec->wrong++;
		return rank_fail(r, "%s of %zu %s on %d ranks is wrong at element %ld",
				 op_names[c->op], c->count, type_names[c->type], c->nranks, bad);
	}
	return 0;
}

static bool checked(int iter)
{
	if (o.dry || !o.check)
		return false;
	return o.check > 1 || iter < (o.op == JOB_MIX ? JOB_NOPS : 1) ||
	       iter == o.warmup + o.iters - 1;
}

static int part_prepare(struct rank *r, struct part *p, int iter)
{
	size_t es = job_type_size(o.type);

	p->call = make_call(p, iter);
	p->rec = &sh->recs[r->rank * max_recs + r->rec->nrecs++];
	p->rec->op = p->call.op;
	p->rec->comm = p - r->parts;
	if (!checked(iter))
		return 0;
	job_fill(&p->call, r->host);
	if (to_dev(p->send, r->host, job_send_count(&p->call) * es))
		return rank_fail(r, "Failed to copy the input");
	return 0;
}

static int part_enqueue(struct rank *r, struct part *p)
{
	ncclResult_t res = ncclSuccess, end = ncclSuccess;
	int g;

	p->rec->start_ns = now_ns();
	if (o.groups > 1)
		res = ncclGroupStart();
	for (g = 0; g < o.groups && !res; g++)
		res = call_nccl(&p->call, p, p->send, p->recv[g], p->stream);
	if (o.groups > 1)
		end = ncclGroupEnd();
	res = res ? res : end;
	p->rec->enqueued_ns = now_ns();
	return res ? nccl_fail(r, "enqueue", res) : 0;
}

/* --ahead: the thread goes on, as those of a training job do, and waits for several at once. Times are those of calls, then. */
static bool goes_ahead(int iter)
{
	return o.ahead > 1 && (iter + 1) % o.ahead && iter + 1 < o.warmup + o.iters &&
	       !checked(iter);
}

static int part_finish(struct rank *r, struct part *p, int iter)
{
	if (goes_ahead(iter)) {
		p->rec->end_ns = now_ns();
		return 0;
	}
	if (stream_sync(p->stream))
		return nccl_fail(r, "complete an operation", ncclRemoteError);
	p->rec->end_ns = now_ns();
	return checked(iter) ? check_part(r, p) : 0;
}

/* The communicators one after the other; with --overlap all at once, each on its stream. */
static int run_iter(struct rank *r, int iter)
{
	int p, err = 0;

	for (p = 0; p < r->nparts && !err; p++) {
		err = part_prepare(r, &r->parts[p], iter);
		if (!err)
			err = part_enqueue(r, &r->parts[p]);
		if (!err && !o.overlap)
			err = part_finish(r, &r->parts[p], iter);
	}
	for (p = 0; p < r->nparts && !err && o.overlap; p++)
		err = part_finish(r, &r->parts[p], iter);
	return err;
}

/* --period-us: iteration `next` begins so long after the first one, or at once if that time has passed. */
static void pace(uint64_t begin_ns, int next)
{
	uint64_t at = begin_ns + (uint64_t)next * (uint64_t)o.period_us * 1000;
	struct timespec ts = {.tv_sec = (time_t)(at / 1000000000ull),
			      .tv_nsec = (long)(at % 1000000000ull)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* No rank gets past an iteration that rank 0 has not begun: all of them see in time where it ends. */
static bool ended_early(const struct rank *r, int iter)
{
	int end;

	if (!r->rank && atomic_load(&sh->ending) && !atomic_load(&sh->end_at))
		atomic_store(&sh->end_at, iter + 1);
	end = atomic_load(&sh->end_at);
	return end && iter >= end;
}

static int rank_run(struct rank *r)
{
	uint64_t begin_ns;
	int i;

	if (o.delay_ms)
		usleep(o.delay_ms * 1000);
	begin_ns = now_ns();
	for (i = 0; i < o.warmup + o.iters; i++) {
		if (ended_early(r, i))
			break;
		if (run_iter(r, i))
			return -1;
		if (o.sleep_us)
			usleep(o.sleep_us);
		if (o.period_us)
			pace(begin_ns, i + 1);
	}
	return 0;
}

static void rank_end(struct rank *r, int err)
{
	int p;

	for (p = r->nparts - 1; p >= 0; p--) {
#ifndef USE_REAL_NCCL
		standinCounters(r->parts[p].comm, &r->rec->cnt[p]);
		standinCommHash(r->parts[p].comm, &r->rec->comm_hash[p]);
#endif
		if (o.no_destroy)
			continue;
		if (err)
			ncclCommAbort(r->parts[p].comm);
		else
			ncclCommDestroy(r->parts[p].comm);
		part_free(&r->parts[p]);
	}
	free(r->host);
	r->rec->done = !err;
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;
	int err = rank_init(r);

	if (!err)
		err = rank_run(r);
	if (o.linger_ms)
		usleep(o.linger_ms * 1000);
	rank_end(r, err);
	return NULL;
}

/* --one-thread: one group over all ranks, as a single-threaded program of many GPUs does it. */
static int run_grouped(struct rank *ranks, int n, int iter)
{
	int i, err = 0;

	for (i = 0; i < n && !err; i++)
		err = part_prepare(&ranks[i], &ranks[i].parts[0], iter);
	if (err || ncclGroupStart())
		return -1;
	for (i = 0; i < n && !err; i++)
		err = part_enqueue(&ranks[i], &ranks[i].parts[0]);
	if (ncclGroupEnd())
		return -1;
	for (i = 0; i < n && !err; i++)
		err = part_finish(&ranks[i], &ranks[i].parts[0], iter);
	return err;
}

static int one_thread_main(struct rank *ranks, int n)
{
	int i, err = 0;

	for (i = 0; i < n && !err; i++)
		err = rank_init(&ranks[i]);
	for (i = 0; i < o.warmup + o.iters && !err; i++)
		err = run_grouped(ranks, n, i);
	for (i = 0; i < n; i++)
		rank_end(&ranks[i], err);
	return err ? EXIT_WRONG : 0;
}

/* ---- one process: some ranks, a thread each ---- */

#ifdef USE_REAL_NCCL
/* Several ranks on one GPU: each its own host, so that all traffic goes over NET on loopback. */
static void real_env(int rank)
{
	char host[32];

	snprintf(host, sizeof(host), "node%d", rank);
	setenv("NCCL_HOSTID", host, 0);
	setenv("NCCL_NET", "Socket", 0);
	setenv("NCCL_SOCKET_IFNAME", "lo", 0);
	setenv("NCCL_NET_PLUGIN", "none", 0);
	setenv("NCCL_MNNVL_ENABLE", "0", 0);
	setenv("NCCL_RAS_ENABLE", "0", 0);
	setenv("NCCL_ALGO", "Ring", 0);
	setenv("NCCL_PROTO", "Simple", 0);
}
#else
static void real_env(int rank)
{
	(void)rank;
}
#endif

static int enter_netns(int rank)
{
	char path[256] = "/run/netns/";
	const char *p = o.netns;
	int n = 1, i, fd;
	size_t len;

	if (!p)
		return 0;
	for (; *p; p++)
		n += *p == ',';
	for (p = o.netns, i = rank % n; i > 0; i--)
		p = strchr(p, ',') + 1;
	len = strcspn(p, ",");
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "%.*s", (int)len, p);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		fprintf(stderr, "scope-job: Failed to enter network namespace '%s': %s\n", path,
			strerror(errno));
		return -1;
	}
	close(fd);
	return 0;
}

static int init_all(struct rank *ranks, int n)
{
	ncclComm_t *comms = calloc(n, sizeof(*comms));
	ncclResult_t res = comms ? ncclCommInitAll(comms, n, NULL) : ncclSystemError;
	int i;

	for (i = 0; i < n && !res; i++)
		ranks[i].parts[0].comm = comms[i];
	free(comms);
	return res ? nccl_fail(&ranks[0], "initialise all communicators", res) : 0;
}

static int process_main(int first, int n)
{
	struct rank *ranks = calloc(n, sizeof(*ranks));
	int i, err = 0;

	if (!ranks || enter_netns(first))
		return EXIT_WRONG;
	real_env(first);
	for (i = 0; i < n; i++) {
		ranks[i].rank = first + i;
		ranks[i].rec = &sh->ranks[first + i];
	}
	if (o.init_all && init_all(ranks, n))
		return EXIT_WRONG;
	if (o.one_thread)
		return one_thread_main(ranks, n);
	for (i = 1; i < n; i++)
		if (pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]))
			return EXIT_WRONG;
	rank_main(&ranks[0]);
	for (i = 1; i < n; i++)
		pthread_join(ranks[i].thread, NULL);
	for (i = 0; i < n; i++)
		err |= !ranks[i].rec->done;
	free(ranks);
	return err ? EXIT_WRONG : 0;
}

/* ---- the job ---- */

static pid_t pids[MAX_RANKS]; /* 0: has ended */
static struct {
	pid_t pid;
	int status; /* wait(2)'s */
} ends[MAX_RANKS];
static int npids, nends;
static volatile sig_atomic_t stop_signal;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		atomic_store(&sh->ending, 1);
	else
		stop_signal = sig;
}

static void start_all(void)
{
	int r;

	for (r = o.first; r <= o.last; r += o.threads) {
		int n = o.threads < o.last - r + 1 ? o.threads : o.last - r + 1;
		pid_t pid;

		fflush(NULL);
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			signal(SIGINT, SIG_DFL);
			signal(SIGTERM, SIG_DFL);
			exit(process_main(r, n));
		}
		if (pid < 0) {
			fprintf(stderr, "scope-job: Failed to start rank %d: %s\n", r,
				strerror(errno));
			stop_signal = SIGTERM;
			return;
		}
		pids[npids++] = pid;
	}
}

static void kill_all(void)
{
	int i;

	for (i = 0; i < npids; i++)
		if (pids[i])
			kill(pids[i], SIGKILL);
}

static int reap(pid_t pid, int status)
{
	int i;

	for (i = 0; i < npids; i++)
		if (pids[i] == pid)
			pids[i] = 0;
	ends[nends].pid = pid;
	ends[nends++].status = status;
	if (WIFSIGNALED(status))
		fprintf(stderr, "scope-job: process %d was killed by signal %d\n", (int)pid,
			WTERMSIG(status));
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

/* All processes end: by themselves, or ten seconds after the first that failed, or in time. */
static int wait_all(void)
{
	uint64_t end = now_ns() + o.timeout_s * 1000000000ull, t;
	int left = npids, err = 0, status;
	pid_t pid;

	while (left) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0) {
			left--;
			if (!reap(pid, status))
				continue;
			err = 1;
			t = now_ns() + 10000000000ull;
			end = t < end ? t : end;
			continue;
		}
		if (now_ns() > end || stop_signal) {
			if (!stop_signal)
				fprintf(stderr, "scope-job: ended after a failure or %d s\n",
					o.timeout_s);
			kill_all();
			err = 1;
			end = UINT64_MAX;
			stop_signal = 0;
		}
		usleep(1000);
	}
	return err;
}

/* ---- output ---- */

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_stats(int op, bool *first)
{
	double *us = calloc((size_t)o.ranks * max_recs + 1, sizeof(*us)), sum = 0;
	int n = 0, r, i;

	for (r = o.first; r <= o.last && us; r++) {
		for (i = o.warmup * (o.split ? 2 : 1); i < sh->ranks[r].nrecs; i++) {
			struct iter_rec *rec = &sh->recs[r * max_recs + i];

			if (rec->op != op || !rec->end_ns)
				continue;
			us[n] = (rec->end_ns - rec->start_ns) / 1000.0;
			sum += us[n++];
		}
	}
	if (n) {
		qsort(us, n, sizeof(*us), cmp_double);
		printf("%s{\"op\":\"%s\",\"calls\":%d,\"min_us\":%.1f,\"p50_us\":%.1f,"
		       "\"mean_us\":%.1f,\"max_us\":%.1f}",
		       *first ? "" : ",", op_names[op], n, us[0], us[n / 2], sum / n, us[n - 1]);
		*first = false;
	}
	free(us);
}

static void print_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		if ((unsigned char)*s < 0x20)
			printf("\\u%04x", *s);
		else
			putchar(*s);
	}
	putchar('"');
}

#ifndef USE_REAL_NCCL
static void print_counters(const struct rank_rec *r, int part)
{
	const struct standin_counters *c = &r->cnt[part];

	printf("{\"commHash\":\"0x%016" PRIx64 "\",\"plans\":%" PRIu64 ",\"colls\":%" PRIu64
	       ",\"p2ps\":%" PRIu64 ",\"proxyOps\":%" PRIu64 ",\"proxySteps\":%" PRIu64
	       ",\"kernelChs\":%" PRIu64 ",\"collApis\":%" PRIu64 ",\"p2pApis\":%" PRIu64
	       ",\"ceColls\":%" PRIu64 "}",
	       r->comm_hash[part], c->groups, c->colls, c->p2ps, c->proxy_ops, c->proxy_steps,
	       c->kernel_chs, c->coll_apis, c->p2p_apis, c->ce_colls);
}
#else
static void print_counters(const struct rank_rec *r, int part)
{
	(void)r;
	(void)part;
	printf("null");
}
#endif

/* null: the job was ended before it came to that. */
static void print_us(const char *key, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns)
		printf(",\"%s\":%.1f", key, (to_ns - from_ns) / 1000.0);
	else
		printf(",\"%s\":null", key);
}

static void print_rank(int rank)
{
	struct rank_rec *r = &sh->ranks[rank];
	int i;

	printf("%s\n{\"rank\":%d,\"pid\":%d,\"ok\":%s,\"comms\":[", rank == o.first ? "" : ",",
	       rank, r->pid, r->done ? "true" : "false");
	print_counters(r, 0);
	if (o.split) {
		putchar(',');
		print_counters(r, 1);
	}
	printf("],\"error\":");
	print_string(r->error);
	printf(",\"iterations\":[");
	for (i = 0; i < r->nrecs; i++) {
		struct iter_rec *rec = &sh->recs[rank * max_recs + i];

		printf("%s{\"op\":\"%s\",\"comm\":%d,\"warmup\":%s,\"start_ns\":%" PRIu64,
		       i ? "," : "", op_names[rec->op], rec->comm,
		       i < o.warmup * (o.split ? 2 : 1) ? "true" : "false", rec->start_ns);
		print_us("enqueue_us", rec->start_ns, rec->enqueued_ns);
		print_us("us", rec->start_ns, rec->end_ns);
		printf("}");
	}
	printf("]}");
}

/* Each process by its end, in the order of these. */
static void print_ends(void)
{
	int i;

	printf(",\"ends\":[");
	for (i = 0; i < nends; i++) {
		bool signaled = WIFSIGNALED(ends[i].status);

		printf("%s{\"pid\":%d,\"%s\":%d}", i ? "," : "", (int)ends[i].pid,
		       signaled ? "signal" : "exit",
		       signaled ? WTERMSIG(ends[i].status) : WEXITSTATUS(ends[i].status));
	}
	printf("]");
}

static void print_result(int err)
{
	bool first = true;
	int i;

	printf("{\"ok\":%s,\"ranks\":%d,\"channels\":%d,\"bytes\":%zu,\"op\":\"%s\",\"type\":\"%"
	       "s\","
	       "\"red\":\"%s\",\"iters\":%d,\"warmup\":%d,\"groups\":%d,\"split\":%d,\"pxn\":%d,"
	       "\"dry\":%s,\"checked\":%s,\"stats\":[",
	       err ? "false" : "true", o.ranks, o.channels, o.bytes, op_names[o.op],
	       type_names[o.type], red_names[o.red], o.iters, o.warmup, o.groups, o.split, o.pxn,
	       o.dry ? "true" : "false", o.check && !o.dry ? "true" : "false");
	for (i = 0; i < JOB_NOPS + 2; i++)
		print_stats(i, &first);
	printf("]");
	if (o.json) {
		print_ends();
		printf(",\"rank\":[");
		for (i = o.first; i <= o.last; i++)
			print_rank(i);
		printf("]");
	}
	printf("}\n");
}

/* ---- options ---- */

static const char help[] =
	"Usage: scope-job [OPTION]...\n"
	"Runs collectives on several ranks, checks the results, prints one JSON object.\n"
	"\n"
	"  --ranks N          number of ranks (2)\n"
	"  --threads T        ranks per process, a thread each (1); --procs is --threads 1\n"
	"  --rank-list A[-B]  start only these ranks here; needs --id-file\n"
	"  --id-file PATH     rank 0 writes the unique id there, other starts wait for it\n"
	"  --init-all         all ranks in one process, made by ncclCommInitAll\n"
	"  --one-thread       and driven by one thread, all ranks in one group\n"
	"  --channels C       NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS (2)\n"
	"  --bytes B          size of the bigger buffer, of a message for sendrecv; K, M, G (1M)\n"
	"  --op OP            allreduce, allgather, reducescatter, broadcast, reduce, sendrecv,\n"
	"                     alltoall, pipeline: from each rank to the next, or mix: all but\n"
	"                     that one after the other (allreduce)\n"
	"  --dtype TYPE       int8 uint8 int32 uint32 int64 uint64 float16 float32 float64\n"
	"                     bfloat16 (float32)\n"
	"  --red RED          sum, prod, max, min, avg (sum)\n"
	"  --iters I          counted iterations (10)\n"
	"  --warmup W         iterations before them (0)\n"
	"  --groups G         operations per ncclGroupStart/End (1: no group)\n"
	"  --nest             each message of sendrecv and alltoall in a group within that of all\n"
	"  --small E          the first and then each Eth iteration is of 256 bytes\n"
	"  --ahead N          wait for the operations only every N iterations: they queue up\n"
	"  --split K          work also on a part of the job: ncclCommSplit with rank modulo K\n"
	"  --split-share      the part shares the progress thread of the whole\n"
	"  --overlap          the whole and the part at the same time, on two streams\n"
	"  --in-place         one buffer to send and receive (not checked but for allreduce)\n"
	"  --check            check every iteration (default: the first and the last)\n"
	"  --no-check         check none\n"
	"  --sleep-us US      between iterations (a computation)\n"
	"  --period-us US     from the begin of one iteration to that of the next, at least\n"
	"  --delay-ms MS      after initialisation, before the first iteration\n"
	"  --linger-ms MS     after the last iteration, before the communicators go\n"
	"  --no-destroy       exit without ncclCommDestroy\n"
	"  --name NAME        commName of the communicator\n"
	"  --timeout S        end a job that hangs (120)\n"
	"  --json             add every rank, its counters and its iterations to the output\n"
	"\n"
	"Stand-in for NCCL only:\n"
	"  --api N            act as an NCCL that knows profiler API v1 to vN (5)\n"
	"  --bind A[,B...]    address of each rank (127.0.0.1)\n"
	"  --netns X[,Y...]   network namespace of each process, by its first rank;\n"
	"                     lo must be up in it\n"
	"  --pxn L            L ranks a node; each sends through the progress thread of the next\n"
	"  --socket-threads N helper threads per connection (NCCL_SOCKET_NTHREADS)\n"
	"  --dry              schedule, messages and callbacks, but 8 bytes a transfer, no data\n"
	"  --net-profiler     NetPlugin events (NVIDIA's builds have none)\n"
	"  --flows FILE       at its end each process appends a line for each of its sockets\n"
	"  --callbacks FILE   callbacks are counted there, by process, thread and kind; see\n"
	"                     scope-calls\n"
	"  --ce               AllGather acts as copy-engine collective (needs --api 6)\n"
	"  --fault F[,F...]   a fault is NAME[:key=value]..., with rank=R for one rank only:\n"
	"      late:ms=M:every=E           the rank comes late to every Eth call; with nranks=N\n"
	"                                  of communicators of N ranks only; with loader=1 it\n"
	"                                  waits for a process that reads, pt_data_worker; with\n"
	"                                  file=1 for a page of the file of cold-file\n"
	"      busy-gpu:ms=M:every=E       the GPU of the rank has something else to do before "
	"each\n"
	"                                  Eth kernel; the call comes in time\n"
	"      slow-progress:us=U[:busy=1] the progress thread sleeps (computes) in each pass;\n"
	"                                  with poll=1, futex=1, vfork=1 in these calls\n"
	"      cold-file[:read=1]          it touches (reads) a page that is on disk only, of a\n"
	"                                  file in $TMPDIR or /var/tmp, or of\n"
	"                                  $STANDIN_COLD_FILE.RANK, which has 4 MiB\n"
	"      pin-progress:cpu=C          the progress thread runs on one CPU\n"
	"      no-stop:every=N[:all=1]     each Nth stop of a ProxyStep (of all) never comes\n"
	"      silent-ops                  of ProxyOps nothing but the start is told, as of\n"
	"                                  NCCL's CollNet\n"
	"      double-stop                 stops of ProxySteps come twice\n"
	"      state-after-stop            and a state comes after them\n"
	"      recv-repeat:n=N             a receive step is started N times more, at poll rate\n"
	"      peerwait-repeat:n=N         SendPeerWait comes N times more, at poll rate; up to\n"
	"                                  --api 3 also the ProxyOp's SendRemFifoWait\n"
	"      pxn:local=L                 as --pxn\n"
	"      kill:after=N[:sig=S]        SIGKILL (or S) at the Nth call, in the calling thread\n"
	"      kill:us=U[:sig=S][:end=1]   the process gets it U us after its communicator has\n"
	"                                  begun to be made (to be destroyed)\n"
	"      quit, exec, oom, segv:after=N  _exit(3), execve of what exits with 4, memory until\n"
	"                                  the kernel ends it (in a memory cgroup), a store to an\n"
	"                                  address that is not there; or us=U\n"
	"      abort:after=N               the communicator aborts at the Nth call\n"
	"      hang:after=N                the progress thread stops after N proxy operations\n"
	"      slow-recv:us=U:bytes=B      it reads no more than B bytes in U us from a socket\n"
	"      reset:after=N               the connection of its Nth transfer is reset\n"
	"\n"
	"SIGUSR1 ends the iterations; only with operations that all ranks wait for (allreduce,\n"
	"allgather, reducescatter, alltoall).\n"
	"Exit: 0 all results right, 1 not, 2 usage.\n";

static void usage_exit(const char *what, const char *arg)
{
	fprintf(stderr, "scope-job: %s '%s'; see --help\n", what, arg);
	exit(EXIT_USAGE);
}

static long number(const char *s, long min, long max)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(s, &end, 0);
	switch (*end) {
	case 'G':
		v *= 1024;
		/* fallthrough */
	case 'M':
		v *= 1024;
		/* fallthrough */
	case 'K':
		v *= 1024;
		end++;
	}
	if (errno || end == s || *end || v < min || v > max)
		usage_exit("Not a valid number:", s);
	return v;
}

static int choice(const char *s, const char *const *names, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!strcmp(s, names[i]))
			return i;
	usage_exit("Unknown name", s);
	return 0;
}

static void put_env(const char *name, const char *val)
{
	if (setenv(name, val, 1))
		usage_exit("Failed to set", name);
}

static void put_env_long(const char *name, long v)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "%ld", v);
	put_env(name, buf);
}

static void rank_list(const char *s)
{
	char *end;

	o.first = o.last = strtol(s, &end, 10);
	if (*end == '-')
		o.last = strtol(end + 1, &end, 10);
	if (end == s || *end || o.first < 0 || o.last < o.first)
		usage_exit("Not a valid list of ranks:", s);
}

static void opt_op(const char *s)
{
	o.op = choice(s, op_names, JOB_NOPS + 2);
}

static void opt_type(const char *s)
{
	o.type = choice(s, type_names, 10);
}

static void opt_red(const char *s)
{
	o.red = choice(s, red_names, 5);
}

static void opt_procs(const char *s)
{
	(void)s;
	o.threads = 1;
}

static void opt_check(const char *s)
{
	(void)s;
	o.check = 2;
}

static void opt_no_check(const char *s)
{
	(void)s;
	o.check = 0;
}

static void opt_help(const char *s)
{
	(void)s;
	fputs(help, stdout);
	exit(0);
}

/* How an option is taken: a number of some width, a flag, a string, a variable, a function. */
enum opt_kind { TO_INT, TO_LONG, TO_SIZE, TO_FLAG, TO_STR, TO_ENV, TO_ENV_1, TO_FN, TO_FN_ARG };

static const struct opt_def {
	const char *name;
	enum opt_kind kind;
	void *to;
	const char *env;
	void (*fn)(const char *s);
	long min, max;
} opts[] = {
	{"ranks", TO_INT, .to = &o.ranks, .min = 1, .max = MAX_RANKS},
	{"threads", TO_INT, .to = &o.threads, .min = 1, .max = MAX_RANKS},
	{"channels", TO_INT, .to = &o.channels, .min = 1, .max = 64},
	{"iters", TO_INT, .to = &o.iters, .max = 10000000},
	{"warmup", TO_INT, .to = &o.warmup, .max = 1000000},
	{"groups", TO_INT, .to = &o.groups, .min = 1, .max = 64},
	{"small", TO_INT, .to = &o.small, .max = 10000000},
	{"ahead", TO_INT, .to = &o.ahead, .max = 10000000},
	{"split", TO_INT, .to = &o.split, .max = MAX_RANKS},
	{"pxn", TO_INT, .to = &o.pxn, .max = MAX_RANKS},
	{"api", TO_INT, .to = &o.api, .min = 1, .max = 7},
	{"timeout", TO_INT, .to = &o.timeout_s, .min = 1, .max = 1000000},
	{"sleep-us", TO_LONG, .to = &o.sleep_us, .max = 1000000000},
	{"period-us", TO_LONG, .to = &o.period_us, .max = 1000000000},
	{"delay-ms", TO_LONG, .to = &o.delay_ms, .max = 10000000},
	{"linger-ms", TO_LONG, .to = &o.linger_ms, .max = 10000000},
	{"bytes", TO_SIZE, .to = &o.bytes, .max = 1l << 40},
	{"init-all", TO_FLAG, .to = &o.init_all},
	{"one-thread", TO_FLAG, .to = &o.one_thread},
	{"overlap", TO_FLAG, .to = &o.overlap},
	{"split-share", TO_FLAG, .to = &o.split_share},
	{"nest", TO_FLAG, .to = &o.nest},
	{"in-place", TO_FLAG, .to = &o.in_place},
	{"no-destroy", TO_FLAG, .to = &o.no_destroy},
	{"json", TO_FLAG, .to = &o.json},
	{"dry", TO_FLAG, .to = &o.dry},
	{"id-file", TO_STR, .to = &o.id_file},
	{"name", TO_STR, .to = &o.name},
	{"netns", TO_STR, .to = &o.netns},
	{"bind", TO_ENV, .env = "STANDIN_BIND_ADDR"},
	{"flows", TO_ENV, .env = "STANDIN_FLOWS"},
	{"callbacks", TO_ENV, .env = "STANDIN_CALLBACKS"},
	{"fault", TO_ENV, .env = "STANDIN_FAULT"},
	{"socket-threads", TO_ENV, .env = "NCCL_SOCKET_NTHREADS"},
	{"net-profiler", TO_ENV_1, .env = "STANDIN_NET_PROFILER"},
	{"ce", TO_ENV_1, .env = "STANDIN_CE"},
	{"procs", TO_FN, .fn = opt_procs},
	{"check", TO_FN, .fn = opt_check},
	{"no-check", TO_FN, .fn = opt_no_check},
	{"help", TO_FN, .fn = opt_help},
	{"rank-list", TO_FN_ARG, .fn = rank_list},
	{"op", TO_FN_ARG, .fn = opt_op},
	{"dtype", TO_FN_ARG, .fn = opt_type},
	{"red", TO_FN_ARG, .fn = opt_red},
};

#define NOPTS (sizeof(opts) / sizeof(opts[0]))

static void one_opt(const struct opt_def *d)
{
	switch (d->kind) {
	case TO_INT:
		*(int *)d->to = number(optarg, d->min, d->max);
		break;
	case TO_LONG:
		*(long *)d->to = number(optarg, d->min, d->max);
		break;
	case TO_SIZE:
		*(size_t *)d->to = number(optarg, d->min, d->max);
		break;
	case TO_FLAG:
		*(bool *)d->to = true;
		break;
	case TO_STR:
		*(const char **)d->to = optarg;
		break;
	case TO_ENV:
		put_env(d->env, optarg);
		break;
	case TO_ENV_1:
		put_env(d->env, "1");
		break;
	default:
		d->fn(optarg);
	}
}

static void parse_opts(int argc, char **argv)
{
	struct option longs[NOPTS + 1] = {{0}};
	size_t i;
	int opt;

	for (i = 0; i < NOPTS; i++) {
		enum opt_kind k = opts[i].kind;

		longs[i].name = opts[i].name;
		longs[i].has_arg = k != TO_FLAG && k != TO_ENV_1 && k != TO_FN;
		longs[i].val = 256 + i;
	}
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt < 256)
			exit(EXIT_USAGE);
		one_opt(&opts[opt - 256]);
	}
	if (optind < argc)
		usage_exit("Unexpected argument", argv[optind]);
}

static void check_opts(void)
{
	if (o.last < 0)
		o.last = o.ranks - 1;
	if (o.last >= o.ranks)
		usage_exit("More ranks started than --ranks says:", "--rank-list");
	if ((o.first || o.last < o.ranks - 1) && !o.id_file)
		usage_exit("Some of the ranks need", "--id-file");
	if (o.one_thread && (o.split || o.pxn))
		usage_exit("--split and --pxn do not go with", "--one-thread");
	if (o.init_all && (o.first || o.last < o.ranks - 1))
		usage_exit("--init-all needs all ranks, not a", "--rank-list");
	o.init_all |= o.one_thread;
	if (o.init_all)
		o.threads = o.ranks;
	if (o.in_place && o.op != JOB_ALLREDUCE)
		o.check = 0;
}

/* The stand-in and NCCL read the rest from the environment. */
static void set_env(void)
{
	put_env_long("NCCL_MIN_NCHANNELS", o.channels);
	put_env_long("NCCL_MAX_NCHANNELS", o.channels);
	if (o.api)
		put_env_long("STANDIN_PROFILER_API", o.api);
	if (o.pxn)
		put_env_long("STANDIN_PXN", o.pxn);
	if (o.dry)
		put_env("STANDIN_DRY", "1");
	if (!getenv("STANDIN_TIMEOUT"))
		put_env_long("STANDIN_TIMEOUT", o.timeout_s > 60 ? 60 : o.timeout_s);
}

int main(int argc, char **argv)
{
	size_t len;
	int err;

	parse_opts(argc, argv);
	check_opts();
	set_env();
	max_recs = (o.warmup + o.iters) * (o.split ? 2 : 1);
	len = sizeof(*sh) + (size_t)o.ranks * max_recs * sizeof(struct iter_rec);
	sh = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED) {
		fprintf(stderr, "scope-job: Failed to map %zu bytes: %s\n", len, strerror(errno));
		return EXIT_WRONG;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	start_all();
	err = wait_all();
	print_result(err);
	return err ? EXIT_WRONG : 0;
}
