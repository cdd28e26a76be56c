/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structures of the stand-in, shared by its files. Names and numbers follow NCCL 2.28.9, so that
 * its source can be read beside this one: step, slice, chunk, sub, args, plan, task.
 */
#ifndef STANDIN_INTERNAL_H
#define STANDIN_INTERNAL_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "nccl.h"
#include "standin.h"

#define NCCL_STEPS	  8
#define STEP_SIZE	  (512 << 10) /* Simple buffer of 4 MiB in 8 steps */
#define P2P_CHUNK_SIZE	  (128 << 10) /* NCCL_P2P_NET_CHUNKSIZE */
#define MAX_CHANNELS	  64
#define MAX_P2P_PER_BATCH 8	/* NCCL_MAX_DEV_WORK_P2P_PER_BATCH: subs of one args */
#define MAX_CONNS	  32768 /* of one proxy */
#define OPQ_LEN		  4096	/* operations posted and not yet taken by a proxy */
#define PROF_SLOTS	  64	/* MAX_PROFILER_EVENTS_PER_CHANNEL */
#define COMM_MAGIC	  0x5c0be5

#define ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))
#define DIV_UP(a, b)   (((a) + (b)-1) / (b))
#define ROUND_UP(a, b) (DIV_UP(a, b) * (b))
#define MIN(a, b)      ((a) < (b) ? (a) : (b))
#define MAX(a, b)      ((a) > (b) ? (a) : (b))

/* NCCL's ncclFunc_t: numbers are seen by v1 plugins. */
enum func {
	FUNC_BROADCAST = 0,
	FUNC_REDUCE = 1,
	FUNC_ALLGATHER = 2,
	FUNC_REDUCESCATTER = 3,
	FUNC_ALLREDUCE = 4,
	FUNC_SENDRECV = 5,
	FUNC_SEND = 6,
	FUNC_RECV = 7,
	FUNC_ALLTOALL = 8,
	FUNC_NUM = 9,
};

enum { NCCL_ALGO_RING = 1, NCCL_PROTO_SIMPLE = 2 }; /* as v1 plugins see them */

struct block;
struct args;
struct sub;
struct proxy;

/* ---- util.c: environment, time, messages ---- */
enum { LOG_ERROR = 1, LOG_WARN = 2, LOG_INFO = 3 }; /* NCCL's levels WARN and INFO */

long env_long(const char *name, long dflt);
/* Read once, at the first use of the library, after NCCL's configuration files. */
struct settings {
	int dry;	       /* STANDIN_DRY */
	int native_api;	       /* STANDIN_PROFILER_API */
	int ce;		       /* STANDIN_CE */
	int net_profiler;      /* STANDIN_NET_PROFILER */
	int timeout_s;	       /* STANDIN_TIMEOUT */
	int thread_names;      /* NCCL_SET_THREAD_NAME */
	int socket_inline;     /* NCCL_SOCKET_INLINE, SOCKET_INLINE_MAX at most */
	const char *flows;     /* STANDIN_FLOWS */
	const char *callbacks; /* STANDIN_CALLBACKS */
};
const struct settings *settings(void);
uint64_t now_ns(void);
uint64_t gpu_clock_ns(void);
uint64_t hash64(const void *data, size_t len, uint64_t seed);
/* NCCL's logger: what NCCL_DEBUG asks for, to stderr. Also handed to plugins. */
__attribute__((format(printf, 5, 6))) void si_log(int level, unsigned long flags, const char *file,
						  int line, const char *fmt, ...);
const char *si_last_error(void);
#define si_info(...) si_log(LOG_INFO, 1, __FILE__, __LINE__, __VA_ARGS__)
#define si_warn(...) si_log(LOG_WARN, ~0ul, __FILE__, __LINE__, __VA_ARGS__)

/* ---- calls.c: how many callbacks a thread has begun and how many have returned ---- */
void calls_open(void);
/* Around a callback; kind: enum call_kind. Never one inside another. */
void calls_begin(int kind);
void calls_end(int kind);

/* ---- fault.c ---- */
/* True if STANDIN_FAULT names this fault for this rank; *val gets the value of key, or dflt. */
bool fault_get(const char *name, int rank, const char *key, long dflt, long *val);
bool fault_on(const char *name, int rank);
/* How, and at which call, or so long after the communicator's initialisation or end has begun. */
enum death_how { DEATH_NONE, DEATH_KILL, DEATH_QUIT, DEATH_EXEC, DEATH_OOM, DEATH_SEGV };
struct death {
	enum death_how how;
	long sig;
	long after;
	long us, at_end;
};
/* The faults of one rank that hot paths ask for, looked up once. */
struct faults {
	long late_ms;
	long late_every;
	long late_loader,
		late_file; /* for what it waits, if not just so long; late_file: 0 no, else the rank + 1 */
	long busy_gpu_ms;
	long busy_gpu_every;
	long slow_us;
	long slow_busy, slow_poll, slow_futex, slow_vfork; /* how, if not in nanosleep */
	long cold_file, cold_read;			   /* cold_file: 0 no, else the rank + 1 */
	long pin_cpu;
	long recv_repeat;
	long peerwait_repeat;
	struct death death;
	long abort_after;
	long hang_after;
	long slow_recv_us, slow_recv_bytes;
	long reset_after;
};
void fault_load(struct faults *f, int rank, int nranks);
/* Ends the process, unless a signal is handled. */
void fault_die(const struct death *d);
/* Has it ended in time, by a thread of its own, if that is asked for: a communicator begins or ends. */
void fault_die_later(const struct death *d, bool at_end);
/* Passes slow_us in the way that was asked for. */
void fault_slow(const struct faults *f);
/* Has the rank come late to its ncalls-th call, if that is asked for. */
void fault_late(const struct faults *f, long ncalls);
/* Touches, or with cold_read reads, a page of a file that is not in memory. */
void fault_cold_file(const struct faults *f);

/* ---- net.c: TCP between ranks, like NCCL's socket transport ---- */
/*
 * Which connection it is. The receiver says where it listens for it, to the listener of the rank that
 * connects; the sender says which of its sockets it is, on each.
 */
struct hello {
	uint64_t comm_hash;
	int32_t src, dst; /* ranks, as the data goes */
	int32_t channel;
	int32_t p2p;  /* connIndex */
	int32_t sock; /* -1: control socket, else data socket of the helper threads */
	int32_t port; /* of the receiver's listener for this connection */
};

/* One socket of a connection. It is used by one thread at a time. */
struct wire {
	int fd;
	uint64_t tx, rx;  /* bytes moved, the hello and the headers too */
	uint64_t wait_ns; /* fault slow-recv: nothing before then */
	char flow[56];	  /* local>remote */
};

struct req;
struct net_task {
	_Atomic int pending;
	struct sock *sock;
	struct wire *wire;
	char *data;
	int size;
	int err;
	struct req *req;
	void *net_handle;
};

#define MAX_SOCKS	  64
#define SOCKET_INLINE_MAX 128 /* and NCCL's default */
struct net_helper;
struct sock {
	struct wire ctrl;
	int is_send;
	int nsocks; /* data sockets; 0: all bytes go over ctrl, on the progress thread */
	int nthreads;
	int next;
	struct wire data[MAX_SOCKS];
	struct net_helper *helpers;
	struct net_task *tasks; /* nsocks for each of the NCCL_STEPS requests in flight */
	struct hello id;
	int rank;			/* in whose process this is; PXN: not that of the data */
	const struct faults *faults;	/* of its proxy */
	struct sock *next_flow, **link; /* flows.c */
};

struct req {
	int used; /* 0 free, 1 exchanging sizes, 2 data */
	int is_send;
	struct sock *sock;
	char *data;
	uint32_t hdr[2]; /* nominal size, bytes on the wire */
	int hdr_off;
	int size;
	int wire;
	int offset;
	int ntasks;
	struct net_task *tasks;
	struct sub *sub; /* with step: whose NetPlugin event this is */
	int step;
	void *net_handle;
};

int net_listen(const struct in_addr *ip, struct sockaddr_in *out);
int net_connect(const struct sockaddr_in *to, const struct in_addr *from, int timeout_ms);
int net_write_all(int fd, const void *buf, size_t len);
int net_read_all(int fd, void *buf, size_t len);
int net_accept_hello(int listen_fd, struct hello *h, int timeout_ms);
struct sock *sock__new(int is_send);
/* All sockets are connected: id says which connection it is. */
int sock__start(struct sock *s, const struct hello *id, int rank, const struct faults *f);
/* Fault reset: its control socket goes, with a RST to the peer. */
void sock__reset(struct sock *s);
/* Its helper threads end, whatever they are at. */
void sock__stop(struct sock *s);
void sock__free(struct sock *s);
/* slot is the number of the request among those in flight of the connection. */
void req_start(struct req *r, struct sock *s, int slot, char *data, int size, struct sub *sub,
	       int step);
/* 1 done, 0 not yet, -errno. */
int req_test(struct req *r);

/* ---- flows.c: what went over which socket ---- */
void flows_add(struct sock *s);
/* Writes the lines of a connection, if STANDIN_FLOWS is set; before its sockets are closed. */
void flows_remove(struct sock *s);

/* ---- boot.c: who is who ---- */
int boot_make_id(ncclUniqueId *id, struct in_addr ip);
int boot_join(const ncclUniqueId *id, int rank, int nranks, struct in_addr ip, int *fd);
/* All ranks give size bytes and get those of all, in rank order. */
int boot_allgather(int fd, const void *mine, void *all, size_t size, int nranks);
struct in_addr boot_bind_addr(int rank);

/* ---- proxy.c ---- */
struct conn_mem {
	_Atomic int64_t head; /* credits: what the reader of the buffer has consumed */
	char pad0[56];
	_Atomic int64_t tail; /* what its writer has filled */
	char pad1[56];
	_Atomic int64_t size[NCCL_STEPS];
	char pad2[4096 - 192];
	char buff[];
};

/* One direction of one channel to one peer. */
struct conn {
	struct conn_mem *mem;
	size_t map_len; /* 0: mem is inside another mapping */
	size_t step_size;
	int channel;
	int peer;
	int is_send;
	int shared;	   /* p2p: credits come with posting, not with completion */
	struct sock *sock; /* NULL where another rank's proxy sends for us (PXN) */
	int listen_fd;	   /* receive: of this connection, until its sockets are there */
	uint64_t proxy_step;
	uint64_t kern_step;
	struct block *owner;
	uint64_t reserved;
	_Atomic int inflight; /* operations posted to our own proxy and not done */
	struct args *append;
	struct args **appendp;
	struct opq *q; /* the queue of the proxy that serves this connection */
	uint32_t id;   /* and its number there */
	struct bell *bell;
};

enum { OP_SEND = 0, OP_RECV = 1, OP_PROF = 2 };

/* Plain data: under PXN it goes to another process, with the originator's 64-bit values. */
struct proxy_op {
	uint32_t conn_id;
	uint8_t kind;
	uint8_t channel;
	uint8_t shared;
	uint8_t p2p;
	int32_t peer;
	int32_t rank;
	int32_t pid;
	int32_t mask;
	int32_t nsteps;
	int32_t chunk_steps;
	int32_t slice_steps;
	int32_t chunk_size;
	int32_t is_recv_func;
	int32_t nbytes;
	uint64_t op_count;
	uint64_t task_handle;
	uint64_t ctx;
	uint64_t work_counter;
	uint64_t dev_prof; /* struct dev_prof *, own process only */
};

struct opq {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint32_t head; /* next to take */
	uint32_t tail; /* next to fill */
	int stop;
	struct proxy_op ops[OPQ_LEN];
};

/* Stamps of the "GPU" per channel: read by the progress thread for KernelCh. */
struct dev_stamp {
	_Atomic uint64_t counter;
	_Atomic uint64_t ts;
};
struct dev_prof {
	_Atomic int inflight; /* KernelCh operations that the progress thread still has */
	struct dev_stamp started[MAX_CHANNELS][PROF_SLOTS];
	struct dev_stamp completed[MAX_CHANNELS][PROF_SLOTS];
};

/* Wakes the stream worker of a communicator. */
struct bell {
	_Atomic uint32_t word;
	_Atomic uint32_t waiting;
};
void bell_ring(struct bell *b);

struct sub {
	struct proxy_op op;
	struct conn *conn;
	uint64_t base;
	int posted;
	int received;
	int transmitted;
	int done;
	size_t trans_size; /* as in NCCL never cleared: states before the transfer carry the last */
	void *op_handle;
	void *kernel_handle;
	void *phase_handle;
	void *step_handle[NCCL_STEPS];
	int repeats;
	struct req reqs[NCCL_STEPS];
};

enum { ARGS_NONE = 0, ARGS_READY, ARGS_PROGRESS };
struct args {
	struct args *next;
	struct args *next_peer;
	struct args **appendp;
	int kind;
	int state;
	int idle;
	int done;
	int nsubs;
	int shared;
	int nalloc;
	uint64_t op_count;
	struct sub *subs;
};

struct proxy {
	struct opq *q;
	char shm_name[32]; /* empty: the queue is private memory */
	size_t q_len;
	struct conn **conns;
	uint32_t nconns;
	pthread_mutex_t conns_lock;
	pthread_t thread;
	bool started;
	int refs;
	int rank;
	void *prof_ctx; /* of the communicator that made it, as in NCCL: outlives its finalize */
	struct args *active;
	struct args *p2p_append[2][MAX_CHANNELS];
	struct args *prof_append[2][MAX_CHANNELS];
	_Atomic int abort;
	_Atomic int async_error;
	struct faults faults;
	uint64_t nops;
	uint64_t nsends; /* transfers begun */
	/* of all communicators that share it, so that no two operations have one number */
	uint64_t coll_opcount;
	uint64_t p2p_opcount[MAX_CHANNELS];
};

struct proxy *proxy__new(int rank, bool in_shm);
int proxy__start(struct proxy *p);
void proxy__put(struct proxy *p);
struct opq *opq_map(const char *name, size_t len, void **base);
uint32_t proxy_add_conn(struct proxy *p, struct conn *c);
void proxy_set_conn(struct proxy *p, uint32_t id, struct conn *c);
void opq_post(struct opq *q, const struct proxy_op *op, struct proxy *local);
void opq_wake(struct opq *q);

/* ---- kernel.c: streams and the "GPU" ---- */
struct work { /* what NCCL counts as one work item of a channel */
	struct ncclComm *comm;
	int channel;
	int nblocks;
	int ndone;
	bool begun;
	bool stamped; /* tells the proxy when it runs */
	uint64_t counter;
};

enum { BLK_RECV = 1, BLK_SEND = 2, BLK_SRC = 4, BLK_DST = 8, BLK_POST = 16 };

/* One channel's part of one task: a CUDA block in NCCL. */
struct block {
	struct work *work;
	struct conn *rx, *tx;
	int func;
	int type;
	int op;
	int root;
	const char *send;
	char *recv;
	size_t count;	 /* per rank, for AllGather and ReduceScatter */
	size_t chan_off; /* elements */
	size_t chan_count;
	size_t chunk_count;
	size_t elem_off;
	int chunk_steps;
	int slice_steps;
	size_t step_size;
	int phase;
	bool begun;
	bool done;
	/* the chunk operation in progress */
	int flags;
	size_t src_off, dst_off;
	size_t nelem, slice_elems, off;
	int slice;
	bool have_op;
};

struct kernel {
	struct kernel *next;
	struct ncclComm *comm;
	uint64_t seq;
	int nblocks, nworks;
	struct block *blocks;
	struct work *works;
};

struct stream;
struct stream *stream_default(struct ncclComm *comm);
void stream_launch(struct stream *s, struct kernel *k);
int stream_sync_all(void);
void stream_wait_comm(struct ncclComm *comm);
void reduce2(void *out, const void *a, const void *b, size_t n, int type, int op);
void reduce_post(void *buf, size_t n, int type, int op, int nranks);
size_t type_size(int type);

/* ---- enqueue.c, init.c ---- */
struct task {
	struct task *next;
	int func;
	int api_func;
	const void *send;
	void *recv;
	size_t count;
	int type;
	int op;
	int root; /* peer of a p2p task */
	size_t bytes;
	size_t traffic;
	int nchannels;
	int mask;
	uint64_t tag;
	bool is_ce;
	void *group_api;
	void *api;
	void *handle;
};

struct task_list {
	struct task *head;
	struct task **tail;
	int n;
};

struct peer_info {
	struct sockaddr_in addr;
	int32_t pid;
	uint32_t q_len;
	char shm_name[32]; /* PXN: the queue */
	char buf_name[32]; /* PXN: the send buffers of the ring */
};

struct plan_op {
	struct conn *conn;
	struct proxy_op op;
	struct task *task;
	struct work *work; /* KernelCh: the one that this operation counts, or NULL */
};

struct plan {
	struct ncclComm *comm;
	struct stream *stream;
	void *group_handle;
	void *launch_handle;
	struct task_list colls;
	struct task_list p2ps;
	struct plan_op *ops;
	int nops, ops_cap;
	struct kernel *kernel;
	int blocks_cap, works_cap;
	int coll_ops;
	uint64_t p2p_batches[MAX_CHANNELS];
};

/* What a receiver has said and we did not ask for yet. */
struct told {
	struct told *next;
	struct hello h;
};

struct ncclComm {
	unsigned magic;
	int rank;
	int nranks;
	int dev;
	int nnodes;
	int nchannels;
	int p2p_nchannels;
	int p2p_per_peer;
	long pxn_local; /* ranks per node; 1: no PXN */
	bool pxn;
	uint64_t hash;
	char *name;
	int boot_fd;
	int listen_fd;
	struct in_addr ip;
	struct peer_info *peers;
	struct told *told;
	struct proxy *proxy;
	struct opq *exec_q; /* PXN: the queue of the rank that sends for us */
	void *exec_map;
	size_t exec_len;
	void *buf_map; /* PXN: our ring send buffers */
	size_t buf_len;
	char buf_name[32];
	struct conn **conns; /* all, to free */
	int nconns;
	struct conn *ring_send[MAX_CHANNELS];
	struct conn *ring_recv[MAX_CHANNELS];
	struct conn **p2p_send; /* [peer * MAX_CHANNELS + channel] */
	struct conn **p2p_recv;
	void *prof_ctx;
	bool prof_loaded;
	uint64_t seq[FUNC_NUM];
	uint32_t ce_seq;
	uint64_t work_counter[MAX_CHANNELS];
	struct dev_prof *dev_prof;
	struct bell bell;
	_Atomic int abort;
	_Atomic int async_error;
	int split_count;
	int ncalls;
	struct faults faults;
	struct standin_counters cnt;
	struct stream *null_stream;
	/* kernels of one communicator run one after the other, on whatever stream */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint64_t launch_seq;
	uint64_t done_seq;
	/* the group that is being put together */
	struct ncclComm *group_next;
	bool in_group;
	struct stream *group_stream;
	struct task_list colls;
	struct task_list *p2p_sends; /* by peer */
	struct task_list *p2p_recvs;
};

/* The stand-in's own state of ncclGroupStart in this thread. */
extern __thread int group_depth;
extern __thread uint64_t user_tag;

struct async_job {
	struct async_job *next;
	pthread_t thread;
	ncclResult_t (*fn)(struct async_job *job);
	void (*destroy)(struct async_job *job);
	ncclResult_t result;
};
ncclResult_t async_launch(struct async_job *job);
ncclResult_t comm_check(const struct ncclComm *comm, const char *what);
int p2p_channel(const struct ncclComm *c, int round, int part);
int comm_p2p_listen(struct ncclComm *comm, int peer, int channel);
int comm_p2p_connect(struct ncclComm *comm, int peer, int channel);
int comm_p2p_accept(struct ncclComm *comm, int peer, int channel);
void task_list_init(struct task_list *l);
void task_list_add(struct task_list *l, struct task *t);
struct task *task_list_pop(struct task_list *l);

/* ---- prof.c: the calls into the plugin ---- */
int prof_init(struct ncclComm *comm);
void prof_finalize(struct ncclComm *comm);
int prof_api(void);
int prof_api_mask(void); /* of the API call in progress */
void prof_group_api_start(struct ncclComm *comm);
void prof_group_api_state(int state);
void prof_group_api_stop(void);
void prof_group_depth_inc(void);
void prof_group_depth_dec(void);
void prof_coll_api_start(struct ncclComm *comm, const struct task *t, void *stream);
void prof_coll_api_stop(void);
void prof_p2p_api_start(struct ncclComm *comm, const struct task *t, void *stream);
void prof_p2p_api_stop(void);
void prof_task_handles(struct task *t);
void prof_launch_start(struct plan *p);
void prof_launch_stop(struct plan *p);
void prof_group_start(struct plan *p);
void prof_group_stop(struct plan *p);
void prof_tasks_start(struct plan *p);
void prof_tasks_stop(struct plan *p);
void prof_op_start(struct args *a, struct sub *s);
void prof_op_stop(struct sub *s);
void prof_op_progress(struct sub *s);
void prof_op_old_state(struct args *a, struct sub *s, int state, int steps);
void prof_step_start(struct sub *s, int step);
void prof_step_state(struct sub *s, int step, int state);
void prof_step_stop(struct sub *s, int step);

void prof_ctrl_start(void *ctx, void **handle);
void prof_ctrl_state(void *handle, int appended, int state);
void prof_ctrl_stop(void *handle);
void prof_kernel_start(struct sub *s, uint64_t ts);
void prof_kernel_stop(struct sub *s, uint64_t ts);
/* NetPlugin: of a request, or of one of its tasks on a helper thread. */
void prof_net_start(struct req *r, void **handle, int fd, int size);
void prof_net_stop(void **handle);
void prof_ce(struct ncclComm *comm, struct task *t, void *stream);
bool prof_ce_wanted(const struct task *t);
int prof_pid(void);
bool prof_loaded(void);
int prof_native(void);
struct kernel *kernel_new(struct ncclComm *c, int nblocks);
void kernel_free(struct kernel *k);
void *proxy_shm(char *name, size_t name_len, size_t len);

/*
 * For loops that wait: as NCCL does, sched_yield(); now and then a sleep, as Linux 6.18 lets threads that do nothing
 * but yield keep all others off their CPU for tens of seconds, the kernel's own among them.
 */
void yield_politely(void);

#endif
