// SPDX-License-Identifier: BSD-2-Clause
/*
 * A job that lies: it maps the real plugin, so that its hits are the recorder's, and hands in what it likes by
 * calling the probe's site itself. Usage: hostile PLUGIN MODE SECONDS [THREADS]; says on stdout, as JSON, what it
 * made. Modes:
 *   flood    well-formed buffers as fast as it can: each of 1 event and 90 records that become no line
 *   small    the same with nothing but the event: what a flush costs
 *   fuzz     buffers with a valid header and wild contents; wild headers; positions that go back
 *   bad      hits with addresses of nothing
 *   open     events that never stop, operations that wait for children, communicators: all that takes memory
 *   claim    communicators, events and parents of another process, by the ids that ARG_IDS names
 *   control  a control block full of lies
 *   switch   two threads that wake each other as fast as they can
 *   tiny     a TCP connection over which single bytes go back and forth
 *   short    processes that hand in one buffer and end
 *   elf      maps files that look like the plugin and are none
 *   hang     puts a file that nobody delivers under what the recorder reads: ARG_WHAT control, tbuf or args; ARG_FILE,
 *            whose server, process ARG_SERVER, is stopped then
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <link.h>
#include <unistd.h>
#include "elf_file.h"
#include "scope_abi.h"
#include "scope_probes.h"

#define THREADS_MAX 64
#define TAG	    0xbad
#define ID(what, n)                                                                                \
	((uint64_t)TAG << SCOPE_ID_TAG_SHIFT | (uint64_t)(what) << SCOPE_ID_COUNTER_BITS | (n))
#define CTX_ID ID(SCOPE_ID_WHAT_CTX, 1)

struct tbuf {
	struct scope_tbuf_hdr h;
	unsigned char data[SCOPE_TBUF_DATA_SIZE];
};

static void (*hit)(void *tbuf, uint64_t reason);
static struct scope_control *control;
static uint64_t end_ns;
static atomic_ullong made, hits, next_id = 2;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static bool over(void)
{
	return now_ns() >= end_ns;
}

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Where the probe's instruction lies in us: calling that is a hit, with any arguments. */
static void find_site(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_usdt_site site;
	unsigned long long vaddr;
	struct link_map *map;

	if (!lib || fd < 0 || dlinfo(lib, RTLD_DI_LINKMAP, &map) ||
	    elf__usdt_site(fd, SCOPE_PROVIDER, SCOPE_PROBE_FLUSH, &site) ||
	    elf__vaddr_of_offset(fd, site.offset & ~4095ull, &vaddr))
		die(path);
	close(fd);
	hit = (void (*)(void *, uint64_t))(map->l_addr + vaddr + (site.offset & 4095));
	control = dlsym(lib, SCOPE_CONTROL_SYMBOL);
	if (!control)
		die(SCOPE_CONTROL_SYMBOL);
}

/* ---- Buffers ------------------------------------------------------------------------------------ */

static struct tbuf *tbuf_new(void)
{
	struct tbuf *tb = mmap(NULL, sizeof(*tb), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (tb == MAP_FAILED)
		die("mmap");
	tb->h.magic = SCOPE_TBUF_MAGIC;
	tb->h.tag = TAG;
	tb->h.clock = SCOPE_CLOCK_MONOTONIC;
	tb->h.tid = (uint32_t)gettid();
	return tb;
}

/* Hands it in as the plugin does; what comes next lies behind it. */
static void tbuf_flush(struct tbuf *tb)
{
	hit(tb, SCOPE_FLUSH_FULL);
	hits++;
	made += tb->h.rec_cnt;
	tb->h.pos += tb->h.len;
	tb->h.rec_pos += tb->h.rec_cnt;
	tb->h.len = tb->h.rec_cnt = 0;
}

/* Room for a record of `size`, its head filled. */
static void *rec_add(struct tbuf *tb, size_t size, uint8_t kind, uint64_t id)
{
	struct scope_rec_hdr *r;

	if (tb->h.len + size > sizeof(tb->data))
		tbuf_flush(tb);
	r = (struct scope_rec_hdr *)(tb->data + tb->h.len);
	memset(r, 0, size);
	r->size = (uint16_t)size;
	r->kind = kind;
	r->id = id;
	r->ts = now_ns();
	tb->h.len += (uint32_t)size;
	tb->h.rec_cnt++;
	return r;
}

static void add_comm(struct tbuf *tb, uint64_t ctx, uint64_t hash, int rank)
{
	struct scope_rec_comm *r = rec_add(tb, sizeof(*r), SCOPE_REC_COMM, ctx);

	r->comm.ctx = ctx;
	r->comm.hash = hash;
	r->comm.rank = rank;
	r->comm.nranks = 2;
	r->comm.nnodes = 1;
	r->comm.api = 5;
	memset(r->comm.name, 'x', sizeof(r->comm.name)); /* no end */
}

static uint64_t add_start(struct tbuf *tb, uint32_t what, size_t size, uint64_t parent,
			  uint64_t ctx)
{
	uint64_t id = ID(what, next_id++);
	struct scope_rec_start *r = rec_add(tb, size, SCOPE_REC_START, id);

	r->parent = parent;
	r->ctx = ctx;
	return id;
}

/* ---- Floods ------------------------------------------------------------------------------------- */

/*
 * What `whole` holds, in one piece: whoever looks at the buffer in between finds nothing or all of it. A loader that reads a silent thread's
 * buffer from outside while it is filled has its event, and not the records behind that, if there is no room for those later; the
 * traces do not tell how many came of an event's 91.
 */
static void tbuf_flush_whole(struct tbuf *tb, struct tbuf *whole)
{
	memcpy(tb->data, whole->data, whole->h.len);
	tb->h.rec_cnt = whole->h.rec_cnt;
	__atomic_store_n(&tb->h.len, whole->h.len, __ATOMIC_RELEASE);
	hit(tb, SCOPE_FLUSH_FULL);
	hits++;
	made += tb->h.rec_cnt;
	__atomic_store_n(&tb->h.len, 0, __ATOMIC_RELEASE);
	tb->h.pos += whole->h.len;
	tb->h.rec_pos += whole->h.rec_cnt;
	tb->h.rec_cnt = whole->h.len = whole->h.rec_cnt = 0;
}

static void *flood(void *arg)
{
	struct tbuf *tb = tbuf_new(), *whole = tbuf_new();
	struct scope_rec_hdr *r;
	uint64_t id;
	int i;

	while (!over()) {
		id = add_start(whole, SCOPE_PROXY_CTRL, sizeof(struct scope_rec_start), 0, 0);
		rec_add(whole, sizeof(*r), SCOPE_REC_STOP, id);
		for (i = 0; i < 89; i++) {
			r = rec_add(whole, sizeof(*r) + 64, SCOPE_REC_STRING, 0);
			r->u32 = 1 + (uint32_t)i;
			r->u8 = SCOPE_STRING_MAX;
		}
		tbuf_flush_whole(tb, whole);
	}
	return arg;
}

static void *small(void *arg)
{
	struct tbuf *tb = tbuf_new();
	uint64_t id = add_start(tb, SCOPE_PROXY_CTRL, sizeof(struct scope_rec_start), 0, 0);

	rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, id);
	while (hits % 4096 || !over()) {
		hit(tb, SCOPE_FLUSH_FULL);
		hits++;
		made += tb->h.rec_cnt;
		tb->h.pos += tb->h.len;
		tb->h.rec_pos += tb->h.rec_cnt;
	}
	tb->h.len = tb->h.rec_cnt = 0;
	return arg;
}

static void *bad(void *arg)
{
	static const uint64_t addrs[] = {0,
					 1,
					 4096,
					 0xffffffff81000000,
					 0xffff888000000000,
					 0x7fffffffefff,
					 0x8000000000000000,
					 UINT64_MAX,
					 UINT64_MAX - 64};
	uint64_t junk[sizeof(struct scope_tbuf_hdr) / 8];
	uint64_t n = 0;

	memset(junk, 0xff, sizeof(junk));
	while (n % 4096 || !over()) {
		hit(n & 1 ? (void *)junk : (void *)addrs[n / 2 % 9], n);
		n++;
	}
	hits += n;
	return arg;
}

/* ---- Nonsense ----------------------------------------------------------------------------------- */

static uint64_t rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static uint64_t wild(uint64_t *s)
{
	static const uint64_t some[] = {0,	    1,		UINT32_MAX,	   INT64_MAX,
					1ull << 63, UINT64_MAX, 0x7ff8000000000000};
	uint64_t r = rnd(s);

	return r & 8 ? some[(r >> 8) % 7] : r & 16 ? now_ns() + (r >> 40) : r;
}

/* A record whose size leads to the next; all else is as it comes. */
static void fuzz_record(struct tbuf *tb, uint64_t *s)
{
	size_t size = sizeof(struct scope_rec_hdr) + rnd(s) % 20 * 8, i;
	uint64_t *r, word;

	if (tb->h.len + size > sizeof(tb->data))
		return;
	r = (uint64_t *)(tb->data + tb->h.len);
	for (i = 0; i < size / 8; i++)
		r[i] = wild(s);
	word = rnd(s);
	((struct scope_rec_hdr *)r)->size = word & 0x7f ? (uint16_t)size : (uint16_t)word;
	((struct scope_rec_hdr *)r)->kind = (uint8_t)(word >> 16) % 11;
	((struct scope_rec_hdr *)r)->u8 = (uint8_t)(word >> 24);
	if (word >> 63)
		((struct scope_rec_hdr *)r)->ts = now_ns();
	if (word >> 60 & 3) /* an id of a kind there is, now and then one that there was */
		((struct scope_rec_hdr *)r)->id = ID(word >> 32 & 31, word >> 40 & 0xff);
	tb->h.len += (uint32_t)size;
	tb->h.rec_cnt++;
}

static void fuzz_header(struct tbuf *tb, uint64_t *s)
{
	switch (rnd(s) % 16) {
	case 0:
		tb->h.pos = wild(s);
		break;
	case 1:
		tb->h.rec_pos = wild(s);
		break;
	case 2:
		tb->h.len = (uint32_t)wild(s);
		break;
	case 3:
		tb->h.rec_cnt = (uint32_t)wild(s);
		break;
	case 4:
		tb->h.lost_cnt = wild(s);
		break;
	case 5:
		tb->h.tag = (uint16_t)wild(s);
		break;
	case 6:
		tb->h.clock = (uint8_t)wild(s);
		break;
	case 7:
		tb->h.pos -= rnd(s) % 100;
		break;
	}
}

static void *fuzz(void *arg)
{
	uint64_t s = 0x9e3779b97f4a7c15 + (uint64_t)(uintptr_t)arg * 7919 + (uint64_t)getpid();
	struct tbuf *tb = tbuf_new();
	int i;

	while (!over()) {
		for (i = 0; i < 100; i++)
			fuzz_record(tb, &s);
		fuzz_header(tb, &s);
		tbuf_flush(tb);
		if (rnd(&s) % 64 == 0) {
			munmap(tb, sizeof(*tb));
			tb = tbuf_new();
			tb->h.pos = rnd(&s) >> 20;
		}
	}
	return arg;
}

/* ---- What takes memory -------------------------------------------------------------------------- */

static void *open_all(void *arg)
{
	struct tbuf *tb = tbuf_new();
	uint64_t op = 0, n = 0;

	while (!over()) {
		switch (n++ % 8) {
		case 0: /* an operation that waits for a child which never ends */
			op = add_start(tb, SCOPE_COLL, sizeof(struct scope_rec_coll), 0, CTX_ID);
			add_start(tb, SCOPE_PROXY_OP, sizeof(struct scope_rec_proxy_op), op,
				  CTX_ID);
			rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, op);
			break;
		case 1: /* one whose parent never comes */
			op = add_start(tb, SCOPE_P2P, sizeof(struct scope_rec_p2p),
				       ID(SCOPE_GROUP, n), CTX_ID);
			rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, op);
			break;
		case 2:
			add_comm(tb, ID(SCOPE_ID_WHAT_CTX, next_id++), n, 0);
			break;
		case 3: /* calls captured in a graph are kept for its replays */
			op = ID(SCOPE_COLL_API, next_id++);
			((struct scope_rec_hdr *)rec_add(tb, sizeof(struct scope_rec_coll_api),
							 SCOPE_REC_START, op))
				->u8 = 1;
			rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, op);
			break;
		case 4: /* the beginning of time */
			add_start(tb, SCOPE_PROXY_STEP, sizeof(struct scope_rec_start), 0, CTX_ID);
			((struct scope_rec_hdr *)(tb->data + tb->h.len -
						  sizeof(struct scope_rec_start)))
				->ts = 0;
			break;
		default:
			add_start(tb, SCOPE_PROXY_OP, sizeof(struct scope_rec_proxy_op), op,
				  CTX_ID);
		}
	}
	tbuf_flush(tb);
	return arg;
}

/* ARG_IDS: "CTX HASH RANK PARENT PID" of somebody else's. */
static void *claim(void *arg)
{
	uint64_t ctx = 0, hash = 0, parent = 0, id;
	const char *ids = getenv("ARG_IDS");
	struct tbuf *tb = tbuf_new();
	struct scope_rec_proxy_op *op;
	int rank = 0, pid = 0, n = 0;

	if (!ids || sscanf(ids, "%" SCNi64 " %" SCNi64 " %d %" SCNi64 " %d", &ctx, &hash, &rank,
			   &parent, &pid) != 5)
		die("ARG_IDS");
	tb->h.tag = SCOPE_ID_TAG(ctx);
	add_comm(tb, ctx, hash, rank);
	while (!over()) {
		id = (uint64_t)SCOPE_ID_TAG(ctx) << SCOPE_ID_TAG_SHIFT |
		     (uint64_t)SCOPE_PROXY_OP << SCOPE_ID_COUNTER_BITS | (uint64_t)n;
		op = rec_add(tb, sizeof(*op), SCOPE_REC_START, id);
		op->s.parent = parent;
		op->s.ctx = ctx;
		op->pid = n++ & 1 ? pid : 0;
		op->rank = rank;
		rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, id);
		rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, parent);
		rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_FINALIZE, ctx ^ 1);
		tbuf_flush(tb);
		usleep(1000);
	}
	return arg;
}

/* ---- The control block -------------------------------------------------------------------------- */

/* An area with lies inside; its last table may lie behind the end of the mapping. */
static struct scope_area *area_fake(size_t bytes, const uint64_t *at, size_t n)
{
	size_t room = (sizeof(struct scope_area) + 8191) & ~4095ull, i;
	char *map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct scope_area *a;

	if (map == MAP_FAILED)
		die("mmap");
	memset(map, 0xff, room);
	a = (struct scope_area *)map;
	a->magic = SCOPE_CONTROL_MAGIC;
	a->ceiling = a->kernel_ch_ok = UINT32_MAX;
	for (i = 0; i < SCOPE_MASKS; i++)
		a->masks[i] = at[i % n];
	for (i = 0; i < SCOPE_COMMS; i++)
		a->comms[i].ctx = ID(SCOPE_ID_WHAT_CTX, i);
	if (bytes < room)
		munmap(map + (bytes & ~4095ull), room - (bytes & ~4095ull));
	return a;
}

static void *lie(void *arg)
{
	const uint64_t own = (uint64_t)(uintptr_t)control, text = (uint64_t)(uintptr_t)hit & ~15ull;
	const uint64_t at[] = {own,	   own + 40,	       text - 4096,	   4,
			       UINT64_MAX, 0xffffffffff600000, 0xffff888000000000, 1ull << 63};
	const uint64_t areas[] = {0,
				  1,
				  own,
				  own - 8,
				  own + 1,
				  0xffffffff81000000,
				  0xffffffffff600000,
				  INT64_MAX,
				  INT64_MAX - 8,
				  UINT64_MAX - 4,
				  0x7fffffffe000,
				  (uint64_t)(uintptr_t)area_fake(SIZE_MAX, at, 8),
				  (uint64_t)(uintptr_t)area_fake(4096, at, 8),
				  (uint64_t)(uintptr_t)area_fake(100000, at, 8)};
	struct tbuf *tb = tbuf_new();
	uint64_t n = 0;

	while (!over()) {
		control->area = areas[n % 14];
		memset(control->want, (int)n, n / 14 % 3 ? 0 : sizeof(control->want));
		control->epoch = UINT32_MAX;
		/* A piece seems to be missing: the recorder asks us for all that it may have missed. */
		tb->h.pos += 64;
		tb->h.rec_pos += 1;
		rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_FINALIZE, CTX_ID);
		tbuf_flush(tb);
		n++;
		usleep(100000);
	}
	return arg;
}

/* ---- Kernel context ----------------------------------------------------------------------------- */

static void *ping_pong(void *arg)
{
	const struct timespec wait = {.tv_nsec = 10000000};
	unsigned int me = (uintptr_t)arg & 1, pair = (unsigned int)(uintptr_t)arg / 2;
	static atomic_uint turns[THREADS_MAX];
	struct tbuf *tb = tbuf_new();

	add_comm(tb, CTX_ID + (uintptr_t)arg, 1, 0);
	tbuf_flush(tb);
	while (!over()) {
		if (turns[pair] % 2 != me) {
			syscall(SYS_futex, &turns[pair], FUTEX_WAIT_PRIVATE, 1 - me, &wait, NULL,
				0);
			continue;
		}
		turns[pair] = 1 - me;
		syscall(SYS_futex, &turns[pair], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		hits++;
	}
	return arg;
}

static void *tiny(void *arg)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0), b;
	struct tbuf *tb = tbuf_new();
	socklen_t len = sizeof(addr);
	char c = 0;

	add_comm(tb, CTX_ID + (uintptr_t)arg, 1, 0);
	tbuf_flush(tb);
	if (bind(s, (void *)&addr, len) || listen(s, 1) || getsockname(s, (void *)&addr, &len) ||
	    connect(a, (void *)&addr, len) || (b = accept(s, NULL, NULL)) < 0)
		die("connect");
	while (!over() && write(a, &c, 1) == 1 && read(b, &c, 1) == 1)
		hits++;
	return arg;
}

/* ---- Processes, files --------------------------------------------------------------------------- */

static void *brief(void *arg)
{
	struct tbuf *tb;
	pid_t pid;

	while (!over()) {
		pid = fork();
		if (!pid) {
			tb = tbuf_new();
			add_comm(tb, CTX_ID, 1, 0);
			tbuf_flush(tb);
			_exit(0);
		}
		if (pid > 0 && waitpid(pid, NULL, 0) == pid)
			hits++;
		usleep(10000); /* some hundred: each has a file, which the test reads */
	}
	return arg;
}

/* ARG_DIR has files that a recorder takes for the plugin, by their names. */
static void *map_files(void *arg)
{
	const char *dir = getenv("ARG_DIR");
	struct tbuf *tb = tbuf_new();
	char path[256];
	int fd, i;

	for (i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/%d-nccl-profiler.so", dir ? dir : ".", i);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		/* Below the plugin: it comes first in maps. */
		if (fd < 0 ||
		    mmap((void *)(0x10000000ull + 0x100000ull * (unsigned int)i), 65536,
			 PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
			die(path);
		close(fd);
	}
	while (!over()) {
		tb->h.pos += 64;
		tb->h.rec_pos += 1;
		rec_add(tb, sizeof(struct scope_rec_hdr), SCOPE_REC_FINALIZE, CTX_ID);
		tbuf_flush(tb);
		usleep(100000);
	}
	return arg;
}

/* Waits for a page, and holds its lock meanwhile: now everybody waits. (Root of the node may not ask such a server.)
 * What of the page is a variable, and whose, is nothing to ASan: that of the environment can be main's stack as well.
 */
__attribute__((no_sanitize("address"))) static void *touch(void *page)
{
	return (void *)(uintptr_t) * (volatile unsigned char *)page;
}

/* The pages of [at, at + len) are ARG_FILE's from here on. */
static void cover(const void *at, size_t len)
{
	uintptr_t begin = (uintptr_t)at & ~4095ul, end = ((uintptr_t)at + len + 4095) & ~4095ul;
	const char *path = getenv("ARG_FILE"), *server = getenv("ARG_SERVER");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	pid_t pid = server ? atoi(server) : 0;
	pthread_t thread;

	if (fd < 0 || pid <= 0)
		die("ARG_FILE, ARG_SERVER");
	if (mmap((void *)begin, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
		 0) == MAP_FAILED)
		die("mmap");
	close(fd); /* which asks the server */
	if (kill(pid, SIGSTOP) || pthread_create(&thread, NULL, touch, (void *)begin))
		die("kill");
	usleep(100000);
}

static void *hang(void *arg)
{
	struct tbuf *covered = tbuf_new(), *tb = tbuf_new();
	const char *env = getenv("ARG_WHAT");
	char what[16];

	if (!env)
		die("ARG_WHAT");
	snprintf(what, sizeof(what), "%s", env);
	if (!strcmp(what, "control"))
		cover(control, sizeof(*control));
	else if (!strcmp(what, "args")) /* of which none are looked at any more */
		cover(environ[0], 1);
	rec_add(covered, sizeof(struct scope_rec_hdr), SCOPE_REC_FINALIZE, CTX_ID);
	tbuf_flush(covered);
	if (!strcmp(what, "tbuf"))
		cover(covered, sizeof(*covered));
	while (!over()) {
		add_start(tb, SCOPE_PROXY_CTRL, sizeof(struct scope_rec_start), 0, 0);
		tbuf_flush(tb);
		usleep(10000);
	}
	_exit(arg ? 1 : 0); /* the plugin's destructor would wait as well */
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void *(*fn)(void *arg);
	} modes[] = {{"flood", flood}, {"small", small},      {"bad", bad},
		     {"fuzz", fuzz},   {"open", open_all},    {"claim", claim},
		     {"control", lie}, {"switch", ping_pong}, {"tiny", tiny},
		     {"short", brief}, {"elf", map_files},    {"hang", hang}};
	int threads = argc > 4 ? atoi(argv[4]) : 1, i, m = -1;
	pthread_t t[THREADS_MAX];
	struct timespec cpu;

	for (i = 0; argc > 3 && i < (int)(sizeof(modes) / sizeof(*modes)); i++)
		if (!strcmp(argv[2], modes[i].name))
			m = i;
	if (m < 0 || threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "Usage: hostile PLUGIN MODE SECONDS [THREADS]\n");
		return 2;
	}
	find_site(argv[1]);
	end_ns = now_ns() + strtoull(argv[3], NULL, 10) * 1000000000;
	for (i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, modes[m].fn, (void *)(uintptr_t)i))
			die("pthread_create");
	for (i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("{\"mode\":\"%s\",\"pid\":%d,\"made\":%llu,\"hits\":%llu,\"cpu\":%.3f}\n", argv[2],
	       getpid(), (unsigned long long)made, (unsigned long long)hits,
	       (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
	return 0;
}
