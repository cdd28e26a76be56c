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

#define MAX_RANKS 256

struct opts {
	int ranks, first, last; /* of all ranks, those that this process starts */
	int threads;		/* ranks per process */
	int channels, iters, warmup, groups, split, pxn, api, timeout_s, check;
	bool init_all, split_share, dry, json, in_place, no_destroy;
	size_t bytes;
	enum job_op op;
	ncclDataType_t type;
	ncclRedOp_t red;
	const char *fault, *bind, *netns, *id_file, *name;
	long delay_ms, sleep_us, linger_ms;
};

static struct opts o = {
	.ranks = 2,
	.last = -1,
	.threads = 1,
	.channels = 2,
	.iters = 10,
	.groups = 1,
	.timeout_s = 120,
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
	struct rank_rec ranks[MAX_RANKS];
	struct iter_rec recs[];
};
static struct shared *sh;
static int max_recs;

static const char *const op_names[JOB_NOPS + 1] = {
	"allreduce", "allgather", "reducescatter", "broadcast",
	"reduce",    "sendrecv",  "alltoall",	   "mix",
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

struct part { /* a communicator that the rank works on */
	ncclComm_t comm;
	int rank, nranks;
};

struct rank {
	int rank;
	struct rank_rec *rec;
	struct part parts[2];
	int nparts;
	stream_t stream;
	char *send, *host;
	char **recv; /* one per operation of a group */
	size_t buf_bytes;
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
	return 0;
}

static int rank_init(struct rank *r)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t res = ncclSuccess;
	int i;

	config.commName = o.name;
	r->rec->pid = getpid();
	r->recv = calloc(o.groups, sizeof(*r->recv));
	r->buf_bytes = o.bytes;
	r->send = dev_alloc(o.bytes);
	r->host = o.dry ? calloc(1, 4096) : malloc(o.bytes + 1);
	for (i = 0; i < o.groups && r->recv; i++)
		r->recv[i] = o.in_place ? r->send : dev_alloc(o.bytes);
	if (!r->recv || !r->send || !r->host || !r->recv[o.groups - 1])
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
	if (stream_create(&r->stream))
		return rank_fail(r, "Failed to create a stream");
	return o.split ? rank_split(r) : 0;
}

/* --bytes is the size of the bigger buffer, as in nccl-tests; for send/receive of one message. */
static size_t call_count(const struct job_call *c)
{
	size_t n = o.bytes / job_type_size(c->type);

	if (c->op == JOB_ALLGATHER || c->op == JOB_REDUCESCATTER || c->op == JOB_ALLTOALL)
		n /= c->nranks;
	return n;
}

static ncclResult_t sendrecv(const struct job_call *c, const struct part *p, const char *send,
			     char *recv, stream_t s)
{
	size_t bytes = c->count * job_type_size(c->type);
	ncclResult_t res = ncclGroupStart();
	int n = c->nranks, i;

	if (c->op == JOB_SENDRECV) {
		res = ncclSend(send, c->count, c->type, (c->rank + 1) % n, p->comm, s);
		if (!res)
			res = ncclRecv(recv, c->count, c->type, (c->rank + n - 1) % n, p->comm, s);
	}
	for (i = 0; c->op == JOB_ALLTOALL && i < n && !res; i++) {
		res = ncclSend(send + i * bytes, c->count, c->type, i, p->comm, s);
		if (!res)
			res = ncclRecv(recv + i * bytes, c->count, c->type, i, p->comm, s);
	}
	return res ? (ncclGroupEnd(), res) : ncclGroupEnd();
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
	c.count = call_count(&c);
	return c;
}

static int check_iter(struct rank *r, const struct job_call *c)
{
	size_t es = job_type_size(c->type);
	int g;

	for (g = 0; g < o.groups; g++) {
		long bad;

		if (from_dev(r->host, r->recv[g], job_recv_count(c) * es))
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

static int run_call(struct rank *r, int part, int iter)
{
	struct part *p = &r->parts[part];
	struct job_call c = make_call(p, iter);
	struct iter_rec *rec = &sh->recs[r->rank * max_recs + r->rec->nrecs];
	size_t es = job_type_size(c.type);
	ncclResult_t res = ncclSuccess, end = ncclSuccess;
	int g;

	if (checked(iter)) {
		job_fill(&c, r->host);
		if (to_dev(r->send, r->host, job_send_count(&c) * es))
			return rank_fail(r, "Failed to copy the input");
	}
	rec->op = c.op;
	rec->comm = part;
	rec->start_ns = now_ns();
	if (o.groups > 1)
		res = ncclGroupStart();
	for (g = 0; g < o.groups && !res; g++)
		res = call_nccl(&c, p, r->send, r->recv[g], r->stream);
	if (o.groups > 1)
		end = ncclGroupEnd();
	res = res ? res : end;
	rec->enqueued_ns = now_ns();
	if (res)
		return nccl_fail(r, "enqueue", res);
	if (stream_sync(r->stream))
		return nccl_fail(r, "complete an operation", ncclRemoteError);
	rec->end_ns = now_ns();
	r->rec->nrecs++;
	return checked(iter) ? check_iter(r, &c) : 0;
}

static int rank_run(struct rank *r)
{
	int i, p;

	if (o.delay_ms)
		usleep(o.delay_ms * 1000);
	for (i = 0; i < o.warmup + o.iters; i++) {
		for (p = 0; p < r->nparts; p++)
			if (run_call(r, p, i))
				return -1;
		if (o.sleep_us)
			usleep(o.sleep_us);
	}
	return 0;
}

static void rank_end(struct rank *r, int err)
{
	int p;

	if (o.linger_ms)
		usleep(o.linger_ms * 1000);
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
	}
	if (!o.no_destroy && r->stream)
		stream_destroy(r->stream);
	for (p = 0; r->recv && p < o.groups; p++)
		if (r->recv[p] != r->send)
			dev_free(r->recv[p]);
	dev_free(r->send);
	free(r->recv);
	free(r->host);
	r->rec->done = !err;
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;
	int err = rank_init(r);

	if (!err)
		err = rank_run(r);
	rank_end(r, err);
	return NULL;
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

static pid_t pids[MAX_RANKS];
static int npids;
static volatile sig_atomic_t stop_signal;

static void on_signal(int sig)
{
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

			if (rec->op != op)
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

		printf("%s{\"op\":\"%s\",\"comm\":%d,\"warmup\":%s,\"start_ns\":%" PRIu64
		       ",\"enqueue_us\":%.1f,\"us\":%.1f}",
		       i ? "," : "", op_names[rec->op], rec->comm,
		       i < o.warmup * (o.split ? 2 : 1) ? "true" : "false", rec->start_ns,
		       (rec->enqueued_ns - rec->start_ns) / 1000.0,
		       (rec->end_ns - rec->start_ns) / 1000.0);
	}
	printf("]}");
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
	for (i = 0; i < JOB_NOPS; i++)
		print_stats(i, &first);
	printf("]");
	if (o.json) {
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
	"  --channels C       NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS (2)\n"
	"  --bytes B          size of the bigger buffer, of a message for sendrecv; K, M, G (1M)\n"
	"  --op OP            allreduce, allgather, reducescatter, broadcast, reduce, sendrecv,\n"
	"                     alltoall, or mix: one after the other (allreduce)\n"
	"  --dtype TYPE       int8 uint8 int32 uint32 int64 uint64 float16 float32 float64\n"
	"                     bfloat16 (float32)\n"
	"  --red RED          sum, prod, max, min, avg (sum)\n"
	"  --iters I          counted iterations (10)\n"
	"  --warmup W         iterations before them (0)\n"
	"  --groups G         operations per ncclGroupStart/End (1: no group)\n"
	"  --split K          work also on a part of the job: ncclCommSplit with rank modulo K\n"
	"  --split-share      the part shares the progress thread of the whole\n"
	"  --in-place         one buffer to send and receive (not checked but for allreduce)\n"
	"  --check            check every iteration (default: the first and the last)\n"
	"  --no-check         check none\n"
	"  --sleep-us US      between iterations (a computation)\n"
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
	"  --netns X[,Y...]   network namespace of each process, by its first rank\n"
	"  --pxn L            L ranks a node; each sends through the progress thread of the next\n"
	"  --socket-threads N helper threads per connection (NCCL_SOCKET_NTHREADS)\n"
	"  --dry              schedule, messages and callbacks, but 8 bytes a transfer, no data\n"
	"  --net-profiler     NetPlugin events (NVIDIA's builds have none)\n"
	"  --ce               AllGather acts as copy-engine collective (needs --api 6)\n"
	"  --fault F[,F...]   a fault is NAME[:key=value]..., with rank=R for one rank only:\n"
	"      late:ms=M:every=E           the rank comes late to every Eth call\n"
	"      slow-progress:us=U          the progress thread sleeps in each pass\n"
	"      pin-progress:cpu=C          the progress thread runs on one CPU\n"
	"      no-stop:every=N[:all=1]     each Nth stop of a ProxyStep (of all) never comes\n"
	"      double-stop                 stops of ProxySteps come twice\n"
	"      state-after-stop            and a state comes after them\n"
	"      recv-repeat:n=N             a receive step is started N times more, at poll rate\n"
	"      peerwait-repeat:n=N         SendPeerWait comes N times more, at poll rate\n"
	"      kill:after=N                SIGKILL at the Nth call\n"
	"      abort:after=N               the communicator aborts at the Nth call\n"
	"      hang:after=N                the progress thread stops after N proxy operations\n"
	"\n"
	"Exit: 0 all results right, 1 not, 2 usage.\n";

enum {
	OPT_RANKS = 256,
	OPT_THREADS,
	OPT_PROCS,
	OPT_RANK_LIST,
	OPT_ID_FILE,
	OPT_INIT_ALL,
	OPT_CHANNELS,
	OPT_BYTES,
	OPT_OP,
	OPT_DTYPE,
	OPT_RED,
	OPT_ITERS,
	OPT_WARMUP,
	OPT_GROUPS,
	OPT_SPLIT,
	OPT_SPLIT_SHARE,
	OPT_IN_PLACE,
	OPT_CHECK,
	OPT_NO_CHECK,
	OPT_SLEEP,
	OPT_DELAY,
	OPT_LINGER,
	OPT_NO_DESTROY,
	OPT_NAME,
	OPT_TIMEOUT,
	OPT_JSON,
	OPT_API,
	OPT_BIND,
	OPT_NETNS,
	OPT_PXN,
	OPT_SOCK_THREADS,
	OPT_DRY,
	OPT_NET_PROF,
	OPT_CE,
	OPT_FAULT,
	OPT_HELP,
};

static const struct option long_opts[] = {
	{"ranks", 1, NULL, OPT_RANKS},
	{"threads", 1, NULL, OPT_THREADS},
	{"procs", 0, NULL, OPT_PROCS},
	{"rank-list", 1, NULL, OPT_RANK_LIST},
	{"id-file", 1, NULL, OPT_ID_FILE},
	{"init-all", 0, NULL, OPT_INIT_ALL},
	{"channels", 1, NULL, OPT_CHANNELS},
	{"bytes", 1, NULL, OPT_BYTES},
	{"op", 1, NULL, OPT_OP},
	{"dtype", 1, NULL, OPT_DTYPE},
	{"red", 1, NULL, OPT_RED},
	{"iters", 1, NULL, OPT_ITERS},
	{"warmup", 1, NULL, OPT_WARMUP},
	{"groups", 1, NULL, OPT_GROUPS},
	{"split", 1, NULL, OPT_SPLIT},
	{"split-share", 0, NULL, OPT_SPLIT_SHARE},
	{"in-place", 0, NULL, OPT_IN_PLACE},
	{"check", 0, NULL, OPT_CHECK},
	{"no-check", 0, NULL, OPT_NO_CHECK},
	{"sleep-us", 1, NULL, OPT_SLEEP},
	{"delay-ms", 1, NULL, OPT_DELAY},
	{"linger-ms", 1, NULL, OPT_LINGER},
	{"no-destroy", 0, NULL, OPT_NO_DESTROY},
	{"name", 1, NULL, OPT_NAME},
	{"timeout", 1, NULL, OPT_TIMEOUT},
	{"json", 0, NULL, OPT_JSON},
	{"api", 1, NULL, OPT_API},
	{"bind", 1, NULL, OPT_BIND},
	{"netns", 1, NULL, OPT_NETNS},
	{"pxn", 1, NULL, OPT_PXN},
	{"socket-threads", 1, NULL, OPT_SOCK_THREADS},
	{"dry", 0, NULL, OPT_DRY},
	{"net-profiler", 0, NULL, OPT_NET_PROF},
	{"ce", 0, NULL, OPT_CE},
	{"fault", 1, NULL, OPT_FAULT},
	{"help", 0, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

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

static void one_opt(int opt)
{
	switch (opt) {
	case OPT_RANKS:
		o.ranks = number(optarg, 1, MAX_RANKS);
		break;
	case OPT_THREADS:
		o.threads = number(optarg, 1, MAX_RANKS);
		break;
	case OPT_PROCS:
		o.threads = 1;
		break;
	case OPT_RANK_LIST:
		rank_list(optarg);
		break;
	case OPT_ID_FILE:
		o.id_file = optarg;
		break;
	case OPT_INIT_ALL:
		o.init_all = true;
		break;
	case OPT_CHANNELS:
		o.channels = number(optarg, 1, 64);
		break;
	case OPT_BYTES:
		o.bytes = number(optarg, 0, 1l << 40);
		break;
	case OPT_OP:
		o.op = choice(optarg, op_names, JOB_NOPS + 1);
		break;
	case OPT_DTYPE:
		o.type = choice(optarg, type_names, 10);
		break;
	case OPT_RED:
		o.red = choice(optarg, red_names, 5);
		break;
	case OPT_ITERS:
		o.iters = number(optarg, 0, 10000000);
		break;
	case OPT_WARMUP:
		o.warmup = number(optarg, 0, 1000000);
		break;
	case OPT_GROUPS:
		o.groups = number(optarg, 1, 64);
		break;
	case OPT_SPLIT:
		o.split = number(optarg, 0, MAX_RANKS);
		break;
	case OPT_SPLIT_SHARE:
		o.split_share = true;
		break;
	case OPT_IN_PLACE:
		o.in_place = true;
		break;
	case OPT_CHECK:
		o.check = 2;
		break;
	case OPT_NO_CHECK:
		o.check = 0;
		break;
	case OPT_SLEEP:
		o.sleep_us = number(optarg, 0, 1000000000);
		break;
	case OPT_DELAY:
		o.delay_ms = number(optarg, 0, 10000000);
		break;
	case OPT_LINGER:
		o.linger_ms = number(optarg, 0, 10000000);
		break;
	case OPT_NO_DESTROY:
		o.no_destroy = true;
		break;
	case OPT_NAME:
		o.name = optarg;
		break;
	case OPT_TIMEOUT:
		o.timeout_s = number(optarg, 1, 1000000);
		break;
	case OPT_JSON:
		o.json = true;
		break;
	case OPT_API:
		o.api = number(optarg, 1, 7);
		break;
	case OPT_BIND:
		put_env("STANDIN_BIND_ADDR", optarg);
		break;
	case OPT_NETNS:
		o.netns = optarg;
		break;
	case OPT_PXN:
		o.pxn = number(optarg, 0, MAX_RANKS);
		break;
	case OPT_SOCK_THREADS:
		put_env("NCCL_SOCKET_NTHREADS", optarg);
		break;
	case OPT_DRY:
		o.dry = true;
		break;
	case OPT_NET_PROF:
		put_env("STANDIN_NET_PROFILER", "1");
		break;
	case OPT_CE:
		put_env("STANDIN_CE", "1");
		break;
	case OPT_FAULT:
		put_env("STANDIN_FAULT", optarg);
		break;
	case OPT_HELP:
		fputs(help, stdout);
		exit(0);
	default:
		exit(EXIT_USAGE);
	}
}

static void parse(int argc, char **argv)
{
	int opt;

	o.check = 1;
	while ((opt = getopt_long(argc, argv, "", long_opts, NULL)) != -1)
		one_opt(opt);
	if (optind < argc)
		usage_exit("Unexpected argument", argv[optind]);
	if (o.last < 0)
		o.last = o.ranks - 1;
	if (o.last >= o.ranks)
		usage_exit("More ranks started than --ranks says:", "--rank-list");
	if ((o.first || o.last < o.ranks - 1) && !o.id_file)
		usage_exit("Some of the ranks need", "--id-file");
	if (o.init_all)
		o.threads = o.ranks;
	if (o.in_place && o.op != JOB_ALLREDUCE)
		o.check = 0;
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

	parse(argc, argv);
	max_recs = (o.warmup + o.iters) * (o.split ? 2 : 1);
	len = sizeof(*sh) + (size_t)o.ranks * max_recs * sizeof(struct iter_rec);
	sh = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED) {
		fprintf(stderr, "scope-job: Failed to map %zu bytes: %s\n", len, strerror(errno));
		return EXIT_WRONG;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	start_all();
	err = wait_all();
	print_result(err);
	return err ? EXIT_WRONG : 0;
}
