// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a seed corpus for fuzz_decode: what the plugin itself flushes for every event type of every
 * version. Usage: seeds DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
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
	return 0;
}
