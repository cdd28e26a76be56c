// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer over decode, correlate, the threads' timelines, flows and the writer: whatever jobs put
 * into their buffers, and whatever of the kernel's records is lost, nothing reads or writes where it
 * must not, what comes out is a trace, line by line, and what it says of the scheduler and of the
 * network adds up.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include "../unit/chunks.h"
#include "check.h"
#include "decode_net.h"
#include "decode_sched.h"
#include "fuzz_item.h"
#include "log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct check checker = {.max_shown = 1};
static bool in_rules; /* of what holds between keys and lines, of which not all is ours */

/* The kernel, as far as its records make sense: time, and how many a thread and a CPU have made. */
static uint64_t kernel_ns;
static uint32_t thread_seq[256], cpu_seq[64];
static uint64_t irq_nr;
static struct scope_ev_switches told; /* the last of several switches */

/* And its connections: what BPF keeps of them. Two that are neighbours are the two ends of one. */
#define K_FLOWS 16

struct k_side {
	uint64_t first_ns, last_ns, total, empty_ns;
	uint32_t bytes, calls, tid, copied;
	struct scope_ev_uses uses; /* that gather */
};

static struct k_flow {
	uint64_t since_ns; /* 0: there is none */
	uint32_t tgid, netns, lost;
	bool told;
	struct scope_tuple tuple;
	struct k_side side[2];
	struct scope_tcp tcp;
} k_flows[K_FLOWS];

static void cleanup_dir(void)
{
	rmdir(chunks_dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_level = LOG_ERR;
	checker.file = "trace";
	if (!mkdtemp(chunks_dir) || json_doc__init(&checker.doc))
		return 1;
	atexit(cleanup_dir);
	return 0;
}

/*
 * In place of check.c's: a job may claim any number (a pid below 0, say), and any order, and the
 * trace repeats it; but which keys a line has, and of what type, is ours, and so is what the kernel
 * has done.
 */
void find_at(struct check *c, enum level level, uint64_t line, const char *code, const char *fmt,
	     ...)
{
	bool ours = strcmp(code, "key-value") != 0;

	if (in_rules)
		ours = !strncmp(code, "sched-", 6) || !strncmp(code, "slice-", 6) ||
		       !strncmp(code, "net-", 4) || !strncmp(code, "flow-", 5) ||
		       !strncmp(code, "drop-", 5);
	/* Which connection a step is of is for the job to say, and so may be said twice. */
	if (!strcmp(code, "flow-bytes"))
		ours = false;
	if (level != FIND_ERROR || !ours)
		return;
	fprintf(stderr, "line %llu: %s: %s\n", (unsigned long long)line, code, fmt);
	c->nr[level]++;
}

const char *quote(const char *s, size_t len)
{
	(void)len;
	return s;
}

/* `broken`: a key has the job's nonsense for a value; nothing is asked for that the line would explain. */
static void rules_must_hold(enum kind kind, enum etype etype, bool broken)
{
	in_rules = true;
	rules_record(&checker, &checker.doc.nodes[0], kind, etype, broken);
	in_rules = false;
}

static void line_must_be_good(const char *line, size_t len)
{
	enum etype etype;
	enum kind kind;
	bool broken;

	checker.line++;
	if (json_doc__parse(&checker.doc, line, len)) {
		checker.nr[FIND_ERROR]++;
	} else {
		broken = keys_check(&checker, &checker.doc.nodes[0], &kind, &etype);
		rules_must_hold(kind, etype, broken);
	}
	if (checker.nr[FIND_ERROR]) {
		fprintf(stderr, "%.*s\n", (int)len, line);
		abort();
	}
}

static void file_must_be_good(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (!f || rules_init(&checker))
		abort();
	while ((len = getline(&line, &cap, f)) > 0) {
		if (line[len - 1] != '\n')
			abort(); /* a file that was closed in good order has no torn line */
		line_must_be_good(line, (size_t)len - 1);
	}
	in_rules = true;
	rules_end_process(&checker);
	in_rules = false;
	if (checker.nr[FIND_ERROR])
		abort();
	rules_free(&checker);
	free(line);
	fclose(f);
}

/* What BPF stamps is not the job's to choose. */
static struct scope_ev_hdr header(const struct fuzz_item *it, uint16_t kind, size_t size)
{
	uint32_t n = it->proc & 3;

	return (struct scope_ev_hdr){.abi = SCOPE_ABI,
				     .kind = kind,
				     .size = (uint32_t)size,
				     .ts_ns = 1000000 + it->pos % 1000000,
				     .start_ns = n < 2 ? 10 : 5000,
				     .tgid = 4194000 + n,
				     .tid = 4194000 + n + it->proc,
				     .ns_tgid = 5 + n,
				     .ns_tid = 5 + n + it->proc,
				     .comm = "job \"\\\xff\n"};
}

static void chunk(struct session *s, const struct fuzz_item *it, const uint8_t *data)
{
	size_t size = sizeof(struct scope_ev_chunk) + it->len;
	struct scope_ev_chunk *c = malloc(size);

	memset(c, 0, sizeof(*c));
	c->h = header(it, SCOPE_EV_CHUNK, size);
	if (c->h.ts_ns > kernel_ns)
		kernel_ns = c->h.ts_ns;
	c->h.ts_ns = kernel_ns;
	c->tbuf = 1 + (it->proc >> 2);
	c->pos = it->pos;
	c->rec_pos = it->rec_pos;
	c->len = it->len;
	c->rec_cnt = it->rec_cnt;
	c->tag = 0x77;
	c->clock = it->proc & 4 ? SCOPE_CLOCK_TSC : SCOPE_CLOCK_MONOTONIC;
	c->reason = it->kind & 16 ? SCOPE_FLUSH_OUTSIDE : SCOPE_FLUSH_FULL;
	c->sched_seq = it->kind & 32 ? it->kind : thread_seq[it->proc];
	memcpy(c + 1, data, it->len);
	decode__event(s, c, size);
	free(c);
}

static void end(struct session *s, const struct fuzz_item *it, uint16_t kind)
{
	struct scope_ev_exit e = {.h = header(it, kind, sizeof(e)),
				  .code = (int32_t)it->rec_cnt,
				  .group_dead = it->pos & 1,
				  .lost_recs = it->rec_pos,
				  .sched_seq = it->pos & 2 ? thread_seq[it->proc] : it->rec_cnt};

	e.h.ts_ns = kernel_ns;
	decode__event(s, &e, sizeof(e));
	thread_seq[it->proc] = 0;
}

/* A process that has handed in nothing, or not yet. */
static void found(struct session *s, const struct fuzz_item *it)
{
	struct scope_ev_hdr h = header(it, SCOPE_EV_FOUND, sizeof(h));

	h.ts_ns = kernel_ns;
	if (it->pos & 0x1000)
		h.size = (uint32_t)(it->pos & 0xfff) % sizeof(h);
	decode__event(s, &h, sizeof(h));
}

/* ---- The kernel's records -------------------------------------------------------------------- */

/* The next one of a thread or a CPU; some before it are lost, or it is nonsense. */
static uint32_t seq_next(uint32_t *seq, uint32_t how)
{
	*seq += 1 + (how & 7 ? 0 : how >> 3 & 3);
	return how >> 30 ? *seq : how;
}

static uint32_t tid_of(uint8_t proc)
{
	return 4194000 + (proc & 3) + proc;
}

static uint32_t cpu_of(uint64_t bits)
{
	return bits & 0x38 ? bits & 3 : (uint32_t)(bits & 7) * 0x20000003;
}

static void thread(struct session *s, const struct fuzz_item *it)
{
	struct scope_ev_hdr h = header(it, SCOPE_EV_THREAD, 0);
	struct scope_ev_thread e = {
		.h = {SCOPE_ABI, SCOPE_EV_THREAD, sizeof(e), kernel_ns},
		.start_ns = h.start_ns,
		.tgid = h.tgid,
		.tid = h.tid,
		.ns_tgid = h.ns_tgid,
		.ns_tid = h.ns_tid,
		.seq = it->rec_cnt >> 30 ? thread_seq[it->proc] : it->rec_cnt,
		.state = it->rec_pos & 7,
		.born = it->rec_pos >> 3 & 1,
		.comm = "job \"\\\xff\n",
	};

	decode__event(s, &e, sizeof(e));
}

static void context_switch(struct session *s, const struct fuzz_item *it)
{
	uint8_t prev = it->proc, next = (uint8_t)(it->rec_pos >> 8);
	struct scope_ev_switch e = {
		.h = {SCOPE_ABI, SCOPE_EV_SWITCH, sizeof(e), kernel_ns},
		.cpu = cpu_of(it->rec_pos),
		.flags = it->rec_pos >> 16 & 7,
		.prev_tid = tid_of(prev),
		.prev_tgid = 4194000 + (prev & 3),
		.why = (int8_t)(it->rec_pos >> 24),
		.prev_state = it->rec_pos >> 32 & 3,
		.next_tid = tid_of(next),
		.wait_ns = kernel_ns - (it->rec_pos >> 34 & 0xfff),
		.throttled_ns = it->rec_pos >> 46 & 0xfff,
		.prev_comm = "b\xfe\"\t",
	};

	e.cpu_seq = seq_next(&cpu_seq[e.cpu % 64], it->rec_cnt);
	if (e.flags & SCOPE_SWITCH_PREV)
		e.prev_seq = seq_next(&thread_seq[prev], it->rec_cnt >> 5 | it->rec_cnt << 27);
	if (e.flags & SCOPE_SWITCH_NEXT)
		e.next_seq = seq_next(&thread_seq[next], it->rec_cnt >> 10 | it->rec_cnt << 22);
	if (it->rec_pos >> 63)
		e.wait_ns = e.throttled_ns = it->rec_pos;
	decode__event(s, &e, sizeof(e));
}

/* One of several: between few threads; what else there is of it comes from `x`. */
static struct scope_switch one_switch(uint64_t x)
{
	uint8_t prev = x & 0xf, next = x >> 4 & 0xf;
	struct scope_switch one = {.ts_ns = kernel_ns,
				   .prev_tid = x >> 8 & 7 ? tid_of(prev) : 0,
				   .next_tid = tid_of(next),
				   .waited_ns = (uint32_t)(x >> 11 & 0xfff),
				   .why = (int8_t)(x >> 23),
				   .prev_state = x >> 31 & 3,
				   .flags = x >> 33 & 15};

	kernel_ns += x >> 37 & 0xff;
	if (one.flags & SCOPE_SWITCH_PREV && one.prev_tid)
		one.prev_seq = seq_next(&thread_seq[prev], (uint32_t)(x >> 45) | 1u << 30);
	if (one.flags & SCOPE_SWITCH_NEXT)
		one.next_seq = seq_next(&thread_seq[next], (uint32_t)(x >> 50) | 1u << 30);
	return one;
}

/* Those that were told last may come again, with more. */
static void switches(struct session *s, const struct fuzz_item *it)
{
	uint32_t n = 1 + (it->rec_cnt >> 24 & 15), i, cpu = cpu_of(it->rec_pos);
	bool again = it->pos & 1 && told.h.size && told.cpu == cpu;
	struct scope_ev_switches e = told;
	uint64_t x = it->rec_pos;

	e.cpu = cpu;
	if (!again)
		e.cpu_seq = seq_next(&cpu_seq[cpu % 64], it->rec_cnt);
	for (i = again ? SCOPE_SWITCHES_N(told.h.size) : 0; i < n; i++) {
		e.at[i] = one_switch(x);
		x = x * 6364136223846793005u + 1442695040888963407u;
	}
	e.h = (struct scope_ev_short){SCOPE_ABI, SCOPE_EV_SWITCHES, SCOPE_SWITCHES_SIZE(n),
				      e.at[0].ts_ns};
	if (!again || n > SCOPE_SWITCHES_N(told.h.size)) {
		cpu_seq[cpu % 64] = e.cpu_seq + n - 1;
		told = e;
	}
	if (it->pos & 0x1000) /* nonsense, unless it happens to be whole */
		e.h.size = (uint32_t)(it->pos & 0xfff) % sizeof(e);
	decode__event(s, &e, sizeof(e));
}

/* Mostly of a sleep that there is. */
static void woken(struct session *s, const struct fuzz_item *it)
{
	static const int32_t calls[] = {SYS_read, SYS_recvfrom, SYS_futex, SCOPE_WHY_OTHER};
	static const char *const types[] = {"ext4", "sockfs", "pipefs", ""};
	struct sched_thread *t = sched__find(&s->sched, tid_of(it->proc));
	const struct sched_slice *last = t ? sched_thread__last(t) : NULL;
	struct scope_ev_woken e = {
		.h = {SCOPE_ABI, SCOPE_EV_WOKEN, sizeof(e), kernel_ns},
		.since_ns = last && it->rec_cnt & 7 ? last->start_ns : it->rec_pos,
		.tid = tid_of(it->proc),
		.by_tgid = it->rec_pos & 3,
		.call = calls[it->rec_pos >> 2 & 3],
		.has_sock = it->rec_pos >> 4 & 1,
		.asleep = it->rec_pos >> 24 & 1,
		.by_comm = "waker",
		.dir = "dir",
	};

	memset(e.fs, it->rec_pos >> 5 & 1 ? 'f' : 0, sizeof(e.fs));
	if (!e.fs[0])
		strcpy(e.fs, types[it->rec_pos >> 6 & 3]);
	memset(e.name, (int)(it->rec_pos >> 8 & 0xff), sizeof(e.name)); /* without an end */
	memset(e.sock.remote, (int)(it->rec_pos >> 16 & 0xff), sizeof(e.sock.remote));
	decode__event(s, &e, sizeof(e));
}

/* The same; some of its functions have names. */
static void stack(struct session *s, const struct fuzz_item *it)
{
	struct sched_thread *t = sched__find(&s->sched, tid_of(it->proc));
	const struct sched_slice *last = t ? sched_thread__last(t) : NULL;
	struct scope_ev_stack e = {
		.h = {SCOPE_ABI, SCOPE_EV_STACK, sizeof(e), kernel_ns},
		.since_ns = last && it->rec_cnt & 7 ? last->start_ns : it->rec_pos,
		.tid = tid_of(it->proc),
		.n = it->rec_pos >> 8 & 63,
		.at = {0, 1, 2, 3, it->rec_pos, 1, 2},
	};

	if (it->pos & 0x1000)
		e.h.size = (uint32_t)(it->pos & 0xfff) % sizeof(e);
	decode__event(s, &e, sizeof(e));
}

static void migrate(struct session *s, const struct fuzz_item *it)
{
	struct scope_ev_migrate e = {
		.h = {SCOPE_ABI, SCOPE_EV_MIGRATE, sizeof(e), kernel_ns},
		.tid = tid_of(it->proc),
		.seq = seq_next(&thread_seq[it->proc], it->rec_cnt),
		.from = cpu_of(it->rec_pos),
		.to = cpu_of(it->rec_pos >> 8),
		.curr_tgid = it->rec_pos >> 16 & 3,
		.wait_ns =
			it->rec_pos >> 63 ? it->rec_pos : kernel_ns - (it->rec_pos >> 20 & 0xfff),
		.curr_comm = "",
	};

	e.cpu_seq = seq_next(&cpu_seq[e.from % 64], it->rec_cnt >> 5 | it->rec_cnt << 27);
	decode__event(s, &e, sizeof(e));
}

static void irq(struct session *s, const struct fuzz_item *it)
{
	uint64_t nr = (irq_nr += it->rec_pos >> 8 & 1) - (it->rec_pos >> 9 & it->rec_pos >> 10 & 1);
	size_t n = it->rec_cnt % (SCOPE_IRQS + 1), i;
	struct scope_ev_irq e = {
		.h = {SCOPE_ABI, SCOPE_EV_IRQ, (uint32_t)offsetof(struct scope_ev_irq, at[n]),
		      kernel_ns - (it->rec_pos & 0xfff)},
		.tid = tid_of(it->proc),
		.cpu = cpu_of(it->rec_pos >> 12),
		.fill = nr << 8 | (it->rec_pos & SCOPE_IRQS_UNTOLD) | n,
	};

	for (i = 0; i < n; i++)
		e.at[i] = (struct scope_irq){
			.after_ns = (uint32_t)(i * (it->rec_pos >> 32 & 0xff)),
			.dur_ns = (uint32_t)(it->rec_pos >> (it->rec_pos >> 63 ? 0 : 52)),
			.vec = it->rec_pos >> 20 & 3,
			.soft = it->rec_pos >> 40 & 1};
	decode__event(s, &e, sizeof(e));
}

/* ---- Its records of connections ---------------------------------------------------------------- */

/* The addresses of both ends of a pair; now and then they come again. */
static struct scope_tuple tuple_of(uint32_t n, uint8_t generation)
{
	struct scope_tuple t = {.local = {[10] = 0xff, 0xff, n & 4 ? 10 : 127},
				.local_port = (uint16_t)(1000 + n),
				.remote_port = (uint16_t)(1000 + (n ^ 1))};

	if (n & 8)
		memset(t.local + 10, 0x20, 3);
	t.local[15] = generation & 3;
	memcpy(t.remote, t.local, sizeof(t.remote));
	return t;
}

static struct k_flow *flow_of(const struct fuzz_item *it)
{
	return &k_flows[it->rec_cnt % K_FLOWS];
}

/* Of all records, one in 16 finds no room. */
static bool to_ring(struct session *s, struct k_flow *f, const struct fuzz_item *it,
		    const void *rec)
{
	if ((it->rec_cnt >> 4 & 15) == 15) {
		f->lost++;
		return false;
	}
	decode__event(s, rec, ((const struct scope_ev_short *)rec)->size);
	return true;
}

static void flow_tell(struct session *s, struct k_flow *f, const struct fuzz_item *it, uint16_t why)
{
	struct scope_ev_flow e = {
		.h = {SCOPE_ABI, SCOPE_EV_FLOW, sizeof(e), kernel_ns},
		.sk = (uint64_t)(f - k_flows) + 1,
		.since_ns = f->since_ns,
		.total = {f->side[SCOPE_TX].total, f->side[SCOPE_RX].total},
		.tgid = f->tgid,
		.tid = tid_of(it->proc),
		.netns = f->netns,
		.lost = f->lost,
		.why = why,
		.tuple = f->tuple,
		.tcp = f->tcp,
	};

	f->told |= to_ring(s, f, it, &e);
}

static void flow_begin(struct session *s, struct k_flow *f, const struct fuzz_item *it,
		       uint16_t why)
{
	uint32_t n = (uint32_t)(f - k_flows);

	/* A connection's addresses come again when it is over, but not always is that seen. */
	memset(f, 0, sizeof(*f));
	f->since_ns = ++kernel_ns;
	f->tgid = 4194000 + (it->proc & 3);
	f->netns = 1 + (n >> 1 & 1);
	f->tuple = tuple_of(n, (uint8_t)(it->rec_cnt >> 8));
	f->tcp.state = 1;
	f->tcp.mss = 1448;
	flow_tell(s, f, it, why);
}

/* Counters go on; a reader may be in the middle of it. */
static struct scope_tcp_use counters_move(struct k_flow *f, uint64_t how)
{
	struct scope_tcp_use *u = &f->tcp.use, read;
	uint32_t limited = how & 7;

	u->total_retrans += how >> 3 & 3;
	u->lost += how >> 5 & 1;
	u->dsack_dups += how >> 6 & 1;
	u->rcv_ooopack += how >> 7 & 3;
	u->rwnd_limited += how & 8 ? limited : 0;
	u->sndbuf_limited += how & 16 ? limited : 0;
	u->busy += 2 * limited + (how >> 9 & 3);
	u->srtt_us = how >> 11 & 0xffff;
	u->rtt_min_us = 1;
	u->snd_cwnd = 10;
	f->tcp.bytes_acked = f->side[SCOPE_TX].total;
	f->tcp.bytes_received = f->side[SCOPE_RX].total;
	read = *u;
	if ((how >> 60) == 1 && read.total_retrans)
		read.total_retrans--;
	if ((how >> 60) == 2 && read.rwnd_limited) {
		read.busy -= read.rwnd_limited;
		read.rwnd_limited = 0;
	}
	return read;
}

static void uses_tell(struct session *s, struct k_flow *f, const struct fuzz_item *it, uint32_t dir)
{
	struct scope_ev_uses *e = &f->side[dir].uses;

	if (!e->n)
		return;
	e->h.size = SCOPE_USES_SIZE(e->n);
	e->lost = f->lost;
	if (!to_ring(s, f, it, e))
		f->lost += e->n - 1;
	e->nr += e->n;
	e->n = 0;
}

/* The calls so far are a use; the counters have moved, or its round trip only. */
static void use_end(struct session *s, struct k_flow *f, const struct fuzz_item *it, uint32_t dir)
{
	struct k_side *side = &f->side[dir];
	struct scope_ev_uses *e = &side->uses;
	bool fits = it->rec_pos >> 59 & 1 && e->tid == side->tid &&
		    side->last_ns - e->h.ts_ns <= UINT32_MAX;

	if (!f->told)
		flow_tell(s, f, it, SCOPE_FLOW_FOUND);
	if (!fits)
		uses_tell(s, f, it, dir);
	if (!e->n)
		*e = (struct scope_ev_uses){.h = {SCOPE_ABI, SCOPE_EV_USES, 0, side->last_ns},
					    .sk = (uint64_t)(f - k_flows) + 1,
					    .since_ns = f->since_ns,
					    .total = side->total,
					    .empty_ns = side->empty_ns,
					    .tgid = f->tgid,
					    .tid = side->tid,
					    .dir = dir,
					    .nr = e->nr,
					    .tcp = counters_move(f, it->rec_pos)};
	e->at[e->n++] = (struct scope_use){
		.after_ns = (uint32_t)(side->last_ns - e->h.ts_ns),
		.dur_ns = (uint32_t)(side->last_ns - side->first_ns),
		.bytes = side->bytes,
		.total = (uint32_t)(side->total - e->total),
		.empty_ns = (uint32_t)(side->empty_ns - e->empty_ns),
		.srtt_us = it->rec_pos >> 11 & 0xffff,
	};
	side->calls = 0;
	if (e->n == SCOPE_USES)
		uses_tell(s, f, it, dir);
}

/* For a sample; their own record comes still. */
static void uses_copy(struct session *s, const struct k_flow *f, struct k_side *side)
{
	struct scope_ev_uses e = side->uses;

	if (!e.n || side->copied == e.nr + e.n)
		return;
	side->copied = e.nr + e.n;
	e.h.size = SCOPE_USES_SIZE(e.n);
	e.lost = f->lost;
	decode__event(s, &e, e.h.size);
}

/* A call that moves bytes; what came before it may be told with it, or be more of the same. */
static void use(struct session *s, const struct fuzz_item *it)
{
	struct k_flow *f = flow_of(it);
	uint32_t dir = it->rec_pos & 1, bytes;
	struct k_side *side = &f->side[dir];

	if (!f->since_ns)
		flow_begin(s, f, it, SCOPE_FLOW_FOUND);
	if (side->calls && (it->rec_pos & 2 || side->tid != tid_of(it->proc)))
		use_end(s, f, it, dir);
	bytes = 1 + (it->rec_pos >> 8 & (it->rec_pos & 4 ? 0xff : 0xfffff));
	if (!side->calls++) {
		side->first_ns = kernel_ns;
		side->bytes = 0;
	}
	side->tid = tid_of(it->proc);
	side->last_ns = kernel_ns;
	side->bytes += bytes;
	side->total += bytes;
	side->empty_ns += it->rec_pos >> 28 & 0xfff;
	if (it->rec_pos & 8)
		use_end(s, f, it, dir);
}

static void flow(struct session *s, const struct fuzz_item *it)
{
	uint16_t why = it->rec_pos & 7;
	struct k_flow *f = flow_of(it);
	uint32_t dir;

	if (why <= SCOPE_FLOW_FOUND || !f->since_ns) {
		flow_begin(s, f, it, why == SCOPE_FLOW_OPEN ? why : SCOPE_FLOW_FOUND);
		return;
	}
	for (dir = 0; why == SCOPE_FLOW_GONE && dir < 2; dir++) {
		if (f->side[dir].calls)
			use_end(s, f, it, dir);
		uses_tell(s, f, it, dir);
	}
	f->tcp.state = it->rec_pos >> 3 & 15;
	flow_tell(s, f, it, why);
	if (why == SCOPE_FLOW_GONE)
		f->since_ns = 0;
}

static void retrans(struct session *s, const struct fuzz_item *it)
{
	struct k_flow *f = flow_of(it);
	struct scope_ev_retrans e = {.h = {SCOPE_ABI, SCOPE_EV_RETRANS, sizeof(e), kernel_ns},
				     .sk = (uint64_t)(f - k_flows) + 1,
				     .since_ns = f->since_ns};

	f->tcp.use.total_retrans += it->rec_pos & 15;
	e.total = f->tcp.use.total_retrans;
	e.lost = f->lost;
	to_ring(s, f, it, &e);
}

static void dropped(struct session *s, const struct fuzz_item *it)
{
	struct k_flow *f = flow_of(it);
	struct scope_ev_drop e = {
		.h = {SCOPE_ABI, SCOPE_EV_DROP, sizeof(e), kernel_ns},
		.sk = (uint64_t)(f - k_flows) + 1,
		.location = it->rec_pos >> 4 & 7,
		.reason = it->rec_pos & 15,
		.netns = f->netns,
		.len = it->rec_pos >> 8 & 0xffff,
		.tuple = tuple_of((uint32_t)(f - k_flows), (uint8_t)(it->rec_cnt >> 8)),
		.lost = f->lost};

	to_ring(s, f, it, &e);
}

static void name_numbers(struct session *s)
{
	static const char *const names[] = {"NOT_SPECIFIED", "QUEUE_PURGE", "NETFILTER_DROP",
					    "TCP_OLD_DATA", "SOCKET_BACKLOG"};
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		net_names__add_reason(&s->net.names, i, names[i]);
	symbols__add(&s->symbols, 1, "tcp_v4_rcv");
	symbols__add(&s->symbols, 2, "nf_hook_slow");
}

/* All connections as they are now. */
static void read_flows(struct session *s)
{
	struct scope_flow_sample all[K_FLOWS], x;
	struct k_side *side;
	uint64_t now = kernel_ns;
	uint32_t i, dir, n = 0;

	for (i = 0; i < K_FLOWS; i++) {
		if (!k_flows[i].since_ns)
			continue;
		x = (struct scope_flow_sample){.sk = i + 1,
					       .since_ns = k_flows[i].since_ns,
					       .ts_ns = kernel_ns + i,
					       .tgid = k_flows[i].tgid,
					       .lost = k_flows[i].lost,
					       .tcp = k_flows[i].tcp};
		for (dir = 0; dir < 2; dir++) {
			side = &k_flows[i].side[dir];
			x.open[dir] = (struct scope_flow_open){.first_ns = side->first_ns,
							       .last_ns = side->last_ns,
							       .total = side->total,
							       .empty_ns = side->empty_ns,
							       .bytes = side->bytes,
							       .calls = side->calls,
							       .tid = side->tid};
			uses_copy(s, &k_flows[i], side);
		}
		all[n++] = x;
	}
	kernel_ns += K_FLOWS;
	decode_net__samples(s, now, all, n, 0);
}

/* Numbers are the kernel's, but a job chooses them when it sends itself one. */
static void signal_sent(struct session *s, const struct fuzz_item *it)
{
	struct scope_ev_hdr h = header(it, SCOPE_EV_SIGNAL, 0);
	struct scope_ev_signal e = {
		.h = {SCOPE_ABI, SCOPE_EV_SIGNAL, sizeof(e), kernel_ns},
		.start_ns = h.start_ns,
		.tgid = h.tgid,
		.ns_tid = it->rec_pos & 64 ? h.ns_tid : 0,
		.sig = (int32_t)(it->rec_pos & 63),
		.code = (int8_t)(it->rec_pos >> 8),
		.from_tgid = h.tgid + (it->rec_pos >> 16 & 1),
		.from_tid = h.tid,
		.from_ns_tgid = it->rec_pos >> 17 & 1,
		.from_uid = (uint32_t)(it->rec_pos >> 32),
		.handled = it->rec_pos >> 18 & 1,
		.from_comm = "job \"\\\xff\n",
	};

	decode__event(s, &e, sizeof(e));
}

static void kernel(struct session *s, const struct fuzz_item *it)
{
	kernel_ns += it->pos & 0x1fff;
	switch (it->kind & 15) {
	case SCOPE_EV_THREAD:
		thread(s, it);
		break;
	case SCOPE_EV_SWITCH:
		context_switch(s, it);
		break;
	case SCOPE_EV_SWITCHES:
		switches(s, it);
		break;
	case SCOPE_EV_MIGRATE:
		migrate(s, it);
		break;
	case SCOPE_EV_WOKEN:
		woken(s, it);
		break;
	case SCOPE_EV_STACK:
		stack(s, it);
		break;
	case SCOPE_EV_FLOW:
		flow(s, it);
		break;
	case SCOPE_EV_USES:
		use(s, it);
		break;
	case SCOPE_EV_RETRANS:
		retrans(s, it);
		break;
	case SCOPE_EV_DROP:
		dropped(s, it);
		break;
	case SCOPE_EV_SIGNAL:
		signal_sent(s, it);
		break;
	default:
		irq(s, it);
	}
}

/* Something that the kernel did before a thread handed in what the plugin has made of it. */
static void life(struct session *s, const struct fuzz_item *it)
{
	static const uint8_t kinds[] = {SCOPE_EV_SWITCH,   SCOPE_EV_SWITCH, SCOPE_EV_SWITCHES,
					SCOPE_EV_SWITCHES, SCOPE_EV_USES,   SCOPE_EV_USES,
					SCOPE_EV_MIGRATE,  SCOPE_EV_IRQ,    SCOPE_EV_WOKEN,
					SCOPE_EV_STACK};
	uint64_t x = it->pos ^ it->rec_pos << 20 ^ (uint64_t)it->rec_cnt << 40 ^ it->len;
	struct fuzz_item of = {.kind = SCOPE_EV_THREAD, .proc = it->proc, .rec_cnt = UINT32_MAX};
	uint32_t i;

	for (i = 0; i < 16; i++) {
		kernel(s, &of);
		x = x * 6364136223846793005u + 1442695040888963407u;
		of.kind = kinds[(x >> 33) % sizeof(kinds)];
		of.rec_cnt = (uint32_t)(x >> 20) | 1u << 30;
		of.pos = x >> 48 & 0x1fff;
		of.rec_pos = (x ^ x >> 29) & ~(1ull << 63);
		/* among few threads */
		of.rec_pos = (of.rec_pos & ~0xff00ull) | (uint64_t)((it->proc + i) & 7) << 8;
	}
}

/* What holds of every thread whatever has come. */
static void timelines_must_be_good(const struct sched *sched)
{
	const struct sched_thread *t;
	uint64_t n, sum = 0, last;

	for (t = sched->threads; t; t = t->hh.next) {
		if (!t->slices.end || !t->refs || t->cursor.slice < t->slices.first ||
		    t->cursor.slice >= t->slices.end || t->cursor.irq < t->irqs.first ||
		    t->cursor.irq > t->irqs.end)
			abort();
		for (last = 0, n = t->slices.first; n < t->slices.end; n++) {
			if (t->slices.at[n % t->slices.size].start_ns < last)
				abort();
			last = t->slices.at[n % t->slices.size].start_ns;
		}
		sum += t->slices.end - t->slices.first;
	}
	if (sum > sched->nslices) /* those of threads that are gone, but held, count too */
		abort();
}

/* What holds of every flow; `held`: something may still ask for its past. */
static void flows_must_be_good(const struct flows *flows, bool held)
{
	const struct flow_point *p;
	const struct flow *f;
	uint32_t i;

	for (f = flows->by_key; f; f = f->hh.next) {
		if (!f->refs || (!held && (f->refs != 1 || f->forgotten)) ||
		    f->first + f->npoints > f->cap || f->npoints > FLOW_POINTS_MAX ||
		    f->ndrops > FLOW_DROPS_MAX)
			abort();
		p = f->points + f->first;
		for (i = 1; i < f->npoints; i++)
			if (p[i].ts_ns < p[i - 1].ts_ns)
				abort();
	}
}

/* ---- Items ----------------------------------------------------------------------------------- */

/* What BPF says of those that sleep. */
static void ask_sleepers(struct session *s, uint64_t how)
{
	struct sched_thread *t, *tmp;

	HASH_ITER (hh, s->sched.threads, t, tmp)
		sched__still(&s->sched, t, t->seq + (how & 1),
			     how & 2 ? kernel_ns - (how >> 2 & 0xfff) : 0, cpu_of(how >> 14),
			     kernel_ns);
}

static void tick(struct session *s, uint64_t ns)
{
	struct proc *p, *tmp;

	kernel_ns += ns;
	ask_sleepers(s, ns);
	decode_net__tick(s, kernel_ns, ns & 1);
	if (decode_net__due(s, kernel_ns))
		read_flows(s);
	HASH_ITER (hh, s->procs, p, tmp)
		correlate__tick(&p->corr, p->corr.now_ns + ns);
	decode_sched__tick(s, kernel_ns);
}

static size_t item(struct session *s, struct fuzz_item *it, const uint8_t *data, size_t size)
{
	uint32_t kind = it->kind & 15;

	if (it->kind == SCOPE_EV_EXIT || it->kind == SCOPE_EV_EXEC) {
		end(s, it, it->kind);
		return 0;
	}
	if (it->kind == SCOPE_EV_FOUND) {
		found(s, it);
		return 0;
	}
	if ((kind >= SCOPE_EV_THREAD && kind <= SCOPE_EV_DROP) || kind == SCOPE_EV_SIGNAL) {
		kernel(s, it);
		it->len = 0;
	} else {
		it->len = it->len > size ? (uint16_t)size : it->len;
		if (!(it->kind & 128))
			life(s, it);
		chunk(s, it, data);
	}
	if (it->kind & 64)
		tick(s, it->rec_cnt);
	return it->len;
}

static struct session *session_begin(size_t how)
{
	struct session *s = session_new_sched(how & 1 ? SCHED_MODE_SLICES : SCHED_MODE_EVENTS);

	s->net_mode = how & 8 ? NET_MODE_FLOWS : NET_MODE_EVENTS;
	if (how % 31 == 0)
		s->net_mode = NET_MODE_OFF;
	s->features.net = s->features.net_calls = s->features.no_data = s->features.drops =
		s->features.drop_reasons = s->net_mode != NET_MODE_OFF;
	s->live = s->mute = how % 13 == 0;
	name_numbers(s);
	decode_net__init(s, 4000000);
	return s;
}

/* As drain() of record.c does it. */
static void session_end(struct session *s)
{
	struct proc *p, *tmp;

	read_flows(s);
	decode_net__complete(s);
	decode_sched__end(s, kernel_ns);
	HASH_ITER (hh, s->procs, p, tmp) {
		p->corr.now_ns = kernel_ns;
		proc__end(p, "loader-stopped", false, 0);
	}
	flows_must_be_good(&s->net.flows, false);
	decode_net__free(s);
	session_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session *s = session_begin(size);
	struct fuzz_item it;
	size_t len;

	kernel_ns = 1000000;
	memset(thread_seq, 0, sizeof(thread_seq));
	memset(cpu_seq, 0, sizeof(cpu_seq));
	irq_nr = 0;
	memset(&told, 0, sizeof(told));
	memset(k_flows, 0, sizeof(k_flows));
	while (size >= sizeof(it)) {
		memcpy(&it, data, sizeof(it));
		data += sizeof(it);
		size -= sizeof(it);
		len = item(s, &it, data, size);
		data += len;
		size -= len;
	}
	timelines_must_be_good(&s->sched);
	flows_must_be_good(&s->net.flows, true);
	session_end(s);
	checker.line = 0;
	chunks_files(file_must_be_good);
	return 0;
}
