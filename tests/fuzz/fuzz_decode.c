// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer over decode, correlate, the threads' timelines and the writer: whatever jobs put into
 * their buffers, and whatever of the kernel's records is lost, nothing reads or writes where it
 * must not, what comes out is a trace, line by line, and what it says of the scheduler adds up.
 */
#include <stdio.h>
#include "../unit/chunks.h"
#include "check.h"
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
		ours = !strncmp(code, "sched-", 6) || !strncmp(code, "slice-", 6);
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

static void rules_must_hold(enum kind kind, enum etype etype)
{
	in_rules = true;
	rules_record(&checker, &checker.doc.nodes[0], kind, etype, false);
	in_rules = false;
}

static void line_must_be_good(const char *line, size_t len)
{
	enum etype etype;
	enum kind kind;

	checker.line++;
	if (json_doc__parse(&checker.doc, line, len))
		checker.nr[FIND_ERROR]++;
	else if (!keys_check(&checker, &checker.doc.nodes[0], &kind, &etype))
		rules_must_hold(kind, etype);
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
	struct scope_ev_irq e = {
		.h = {SCOPE_ABI, SCOPE_EV_IRQ, sizeof(e), kernel_ns - (it->rec_pos & 0xfff)},
		.tid = tid_of(it->proc),
		.cpu = cpu_of(it->rec_pos >> 12),
		.dur_ns = it->rec_pos >> 63 ? it->rec_pos : it->rec_pos >> 20 & 0xfff,
		.lost = it->rec_cnt,
		.soft = it->rec_pos >> 40 & 1,
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
	case SCOPE_EV_MIGRATE:
		migrate(s, it);
		break;
	default:
		irq(s, it);
	}
}

/* Something that the kernel did before a thread handed in what the plugin has made of it. */
static void life(struct session *s, const struct fuzz_item *it)
{
	static const uint8_t kinds[] = {SCOPE_EV_SWITCH, SCOPE_EV_SWITCH,  SCOPE_EV_SWITCH,
					SCOPE_EV_SWITCH, SCOPE_EV_MIGRATE, SCOPE_EV_IRQ};
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

	ask_sleepers(s, ns);
	HASH_ITER (hh, s->procs, p, tmp)
		correlate__tick(&p->corr, p->corr.now_ns + ns);
	decode_sched__tick(s, kernel_ns + ns);
}

static size_t item(struct session *s, struct fuzz_item *it, const uint8_t *data, size_t size)
{
	uint32_t kind = it->kind & 15;

	if (it->kind == SCOPE_EV_EXIT || it->kind == SCOPE_EV_EXEC) {
		end(s, it, it->kind);
		return 0;
	}
	if (kind >= SCOPE_EV_THREAD && kind <= SCOPE_EV_IRQ) {
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session *s = session_new_sched(size & 1 ? SCHED_MODE_SLICES : SCHED_MODE_EVENTS);
	struct fuzz_item it;
	size_t len;

	kernel_ns = 1000000;
	memset(thread_seq, 0, sizeof(thread_seq));
	memset(cpu_seq, 0, sizeof(cpu_seq));
	while (size >= sizeof(it)) {
		memcpy(&it, data, sizeof(it));
		data += sizeof(it);
		size -= sizeof(it);
		len = item(s, &it, data, size);
		data += len;
		size -= len;
	}
	timelines_must_be_good(&s->sched);
	decode_sched__end(s, kernel_ns);
	session_free(s);
	checker.line = 0;
	chunks_files(file_must_be_good);
	return 0;
}
