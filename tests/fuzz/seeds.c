// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a seed corpus for fuzz_decode: what the plugin itself flushes for every event type of every
 * version; and steps with the connections that served them. Usage: seeds DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "descr.h"
#include "fuzz_item.h"
#include "plugin.h"

extern const ncclProfiler_v1_t ncclProfiler_v1, ncclProfiler_v3;
extern const ncclProfiler_v5_t ncclProfiler_v5, ncclProfiler_v7;

static FILE *file;

void __real_probe_flush(void *tb, uint64_t reason);
void __wrap_probe_flush(void *tb, uint64_t reason);

void __wrap_probe_flush(void *p, uint64_t reason)
{
	const struct tbuf *tb = p;
	struct fuzz_item it = {.len = (uint16_t)tb->h.len,
			       .kind = SCOPE_EV_CHUNK,
			       .proc = 4,
			       .rec_cnt = tb->h.rec_cnt,
			       .pos = tb->h.pos,
			       .rec_pos = tb->h.rec_pos};

	__real_probe_flush(p, reason);
	fwrite(&it, sizeof(it), 1, file);
	fwrite(tb->data, 1, tb->h.len, file);
}

static void events(struct rng *r, int api, uint32_t n)
{
	union any_descr d;
	void *handle, *parent = NULL;
	ncclProfilerEventStateArgs_v4_t v4 = {.proxyStep = {1 << 20}};
	ncclProfilerEventStateArgs_v1_t v1 = {.proxyOp = {1 << 20, 3}};
	uint32_t what;

	while (n--) {
		what = rnd_below(r, descr_types(api));
		descr_random(r, api, &d, 1ULL << what, (uintptr_t)parent);
		handle = NULL;
		if (api == 1)
			ncclProfiler_v1.startEvent(NULL, &handle, &d);
		else if (api == 3)
			ncclProfiler_v3.startEvent(NULL, &handle, &d);
		else if (api == 5)
			ncclProfiler_v5.startEvent(NULL, &handle, &d);
		else
			ncclProfiler_v7.startEvent(NULL, &handle, &d);
		if (api < 4)
			ncclProfiler_v1.recordEventState(handle, rnd_below(r, 32), &v1);
		else
			ncclProfiler_v7.recordEventState(handle, rnd_below(r, 32), &v4);
		if (rnd_below(r, 4))
			ncclProfiler_v7.stopEvent(handle);
		if (rnd_below(r, 2))
			parent = handle;
	}
}

/* ---- Two processes, each with an end of a connection -------------------------------------------- */

#define ID(what, n)                                                                                \
	(0x77ull << SCOPE_ID_TAG_SHIFT | (uint64_t)(what) << SCOPE_ID_COUNTER_BITS | (n))
#define MS 1000000

/* A process' thread and what is in its buffer. */
static struct end {
	uint8_t proc;
	uint32_t len, n, ids;
	uint64_t pos, rec_pos, op;
	unsigned char data[4096];
} ends[2];

static uint64_t now_ns; /* as fuzz_decode has it */

static void *put(struct end *e, size_t size, uint8_t kind, uint64_t id)
{
	struct scope_rec_hdr *r = (void *)(e->data + e->len);

	memset(r, 0, size);
	*r = (struct scope_rec_hdr){.size = (uint16_t)size, .kind = kind, .ts = now_ns, .id = id};
	e->len += (uint32_t)size;
	e->n++;
	return r;
}

static void flush(struct end *e)
{
	struct fuzz_item it = {.len = (uint16_t)e->len,
			       .kind = SCOPE_EV_CHUNK | 128,
			       .proc = e->proc,
			       .rec_cnt = e->n,
			       .pos = e->pos,
			       .rec_pos = e->rec_pos};

	fwrite(&it, sizeof(it), 1, file);
	fwrite(e->data, 1, e->len, file);
	e->pos += e->len;
	e->rec_pos += e->n;
	e->len = e->n = 0;
}

static void kernel(uint8_t kind, uint8_t proc, uint32_t rec_cnt, uint64_t how, uint32_t ns)
{
	struct fuzz_item it = {
		.kind = kind, .proc = proc, .rec_cnt = rec_cnt, .pos = ns, .rec_pos = how};

	now_ns += ns;
	fwrite(&it, sizeof(it), 1, file);
}

static void tick(void)
{
	kernel(SCOPE_EV_RETRANS | 64, 0, 100 * MS + 17, 0, 0);
	now_ns += 100 * MS + 17 + 16;
}

static void operation(struct end *e, bool is_send)
{
	struct scope_rec_proxy_op *op;
	struct scope_rec_coll *coll;
	uint64_t id = ID(SCOPE_COLL, ++e->ids);

	coll = put(e, sizeof(*coll), SCOPE_REC_START, id);
	put(e, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, id);
	e->op = ID(SCOPE_PROXY_OP, ++e->ids);
	op = put(e, sizeof(*op), SCOPE_REC_START, e->op);
	op->s.parent = id;
	op->s.h.u32 = is_send;
	op->pid = 5 + (e->proc & 3);
}

/* `how` as in use() of fuzz_decode.c. */
static void step(struct end *e, bool is_send, uint64_t how)
{
	uint8_t helper = (uint8_t)(e->proc + (how >> 40 & 4) * 4);
	uint64_t id = ID(SCOPE_PROXY_STEP, ++e->ids);
	struct scope_rec_start *r = put(e, sizeof(*r), SCOPE_REC_START, id);
	uint32_t flow = (e->proc & 1) + (helper == e->proc ? 0 : 2);
	struct scope_rec_state *st;

	r->parent = e->op;
	now_ns += 10;
	st = put(e, sizeof(*st), SCOPE_REC_STATE, id);
	st->h.u8 = is_send ? 9 : 10;
	st->arg = 65536;
	kernel(SCOPE_EV_USES, e->proc, e->proc & 1, 0xe << 4 | 0xc | !is_send, 30);
	kernel(SCOPE_EV_USES, helper, flow, (how & ~1ull) | !is_send, 1000);
	kernel(SCOPE_EV_RETRANS, e->proc, flow, how & 3, 10);
	kernel(SCOPE_EV_DROP, e->proc, flow, how >> 8, 10);
	if (!is_send) {
		st = put(e, sizeof(*st), SCOPE_REC_STATE, id);
		st->h.u8 = 11;
		st->arg = 65536;
	}
	put(e, sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, id);
}

static void connections(struct rng *r, uint32_t steps)
{
	uint32_t i, n;

	now_ns = 1 * MS;
	for (i = 0; i < 2; i++)
		ends[i] = (struct end){.proc = (uint8_t)(8 + i)};
	for (i = 0; i < 4; i++) {
		kernel(SCOPE_EV_FLOW, ends[i & 1].proc, i, 1 + rnd_below(r, 2), 100);
		now_ns++;
	}
	for (i = 0; i < 2; i++)
		operation(&ends[i], !i);
	for (n = 0; n < steps; n++) {
		for (i = 0; i < 2; i++)
			step(&ends[i], !i, rnd(r) | (uint64_t)(rnd_below(r, 2)) << 3);
		if (rnd_below(r, 2))
			flush(&ends[n & 1]);
		if (rnd_below(r, 3) == 0)
			tick();
	}
	for (i = 0; i < 2; i++) {
		put(&ends[i], sizeof(struct scope_rec_hdr), SCOPE_REC_STOP, ends[i].op);
		kernel(SCOPE_EV_FLOW, ends[i].proc, i, SCOPE_FLOW_RESET_IN + i, 100);
		kernel(SCOPE_EV_FLOW, ends[i].proc, i, SCOPE_FLOW_GONE, 100);
		kernel(SCOPE_EV_SIGNAL, ends[i].proc, 0, rnd(r), 10);
		flush(&ends[i]);
	}
	for (i = 0; i < 20; i++)
		tick();
}

int main(int argc, char **argv)
{
	static const int apis[] = {1, 3, 5, 7};
	struct fuzz_item end = {.kind = SCOPE_EV_EXIT, .proc = 4, .pos = 1};
	struct rng r = {.s = 42};
	char path[4096];
	int i, mask = 0;
	void *ctx;

	if (argc != 2)
		return 2;
	scope_sems.flush = 1;
	for (i = 0; i < 32; i++) {
		snprintf(path, sizeof(path), "%s/seed-%d", argv[1], i);
		file = fopen(path, "w");
		if (!file) {
			perror(path);
			return 1;
		}
		__atomic_fetch_add(&ncclscope_control.epoch, 1, __ATOMIC_RELAXED);
		ncclProfiler_v7.init(&ctx, rnd(&r), &mask, "seed", 1, 2, i, NULL);
		events(&r, apis[i % 4], 1 + rnd_below(&r, 12));
		ncclProfiler_v7.finalize(ctx);
		fwrite(&end, sizeof(end), i % 3 == 0, file);
		fclose(file);
	}
	for (i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "%s/seed-net-%d", argv[1], i);
		file = fopen(path, "w");
		if (!file) {
			perror(path);
			return 1;
		}
		connections(&r, 1 + (uint32_t)i * 2);
		fclose(file);
	}
	return 0;
}
