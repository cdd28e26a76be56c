// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a seed corpus for fuzz_control: what the plugin itself publishes, with more and more communicators,
 * other loaders' requests and records, and the lines that map this program. Usage: seeds_control DIRECTORY
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "control_item.h"
#include "plugin.h"

extern const ncclProfiler_v5_t ncclProfiler_v7;

static FILE *file;

void __real_probe_flush(void *tb, uint64_t reason);
void __wrap_probe_flush(void *tb, uint64_t reason);

/* Nothing is handed in: it stays in the buffer as far as it fits. */
void __wrap_probe_flush(void *p, uint64_t reason)
{
	(void)p;
	(void)reason;
}

static void put(enum control_where where, size_t at, const void *data, size_t len)
{
	struct control_item it = {
		.where = (uint8_t)where, .len = (uint16_t)len, .at = (uint32_t)at};

	fwrite(&it, sizeof(it), 1, file);
	fwrite(data, 1, len, file);
}

static void put_block(int wanted)
{
	struct scope_control ctl = ncclscope_control;
	int i;

	ctl.area = CONTROL_AREA_AT;
	for (i = 0; i < wanted; i++)
		ctl.want[i] = (struct scope_want){.mask = 1u << i, .owner = i & 1 ? 1 : UINT32_MAX};
	put(CONTROL_BLOCK, 0, &ctl, sizeof(ctl));
}

static void put_area(void)
{
	struct scope_area area;
	int i;

	memcpy(&area, area_get(), sizeof(area));
	for (i = 0; i < SCOPE_MASKS; i++)
		area.masks[i] = area.masks[i] ? CONTROL_MASKS_AT + 4 * (uint64_t)i : 0;
	put(CONTROL_AREA, 0, &area, offsetof(struct scope_area, tbufs));
	for (i = 0; i < SCOPE_COMMS; i++)
		if (area.comms[i].ctx)
			put(CONTROL_COMMS, (size_t)i * sizeof(area.comms[i]), &area.comms[i],
			    sizeof(area.comms[i]));
}

static void put_maps(void)
{
	static const char plugin[] = "7f0000000000-7f0000009000 r--p 00002000 fe:00 4711   "
				     "/opt/lib/libnccl-profiler-ncclscope.so (deleted)\n";
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	put(CONTROL_LINE, 0, plugin, sizeof(plugin) - 1);
	while (maps && fgets(line, sizeof(line), maps))
		put(CONTROL_LINE, 0, line, strlen(line));
	if (maps)
		fclose(maps);
}

static void events(int n)
{
	ncclProfilerEventDescr_v7_t d = {.type = ncclProfileGroup};
	void *handle;

	while (n--) {
		handle = NULL;
		ncclProfiler_v7.startEvent(NULL, &handle, &d);
		ncclProfiler_v7.stopEvent(handle);
	}
}

static int open_seed(const char *dir, const char *name, int i)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s-%d", dir, name, i);
	file = fopen(path, "w");
	if (!file)
		perror(path);
	return file ? 0 : -1;
}

/* A job as it is. */
static void whole(int i)
{
	int mask = 0xfff;
	void *ctx;

	ncclProfiler_v7.init(&ctx, 77 + (uint64_t)i, &mask, i & 1 ? "seed" : NULL, 1, 2, i, NULL);
	events(11 * i); /* 64 bytes each */
	fputc(i * 21, file);
	put_block(i % (SCOPE_WANT_SLOTS + 1));
	put_area();
	put(CONTROL_MASKS, 0, &mask, sizeof(mask));
	put(CONTROL_TBUF, 0, tbuf_get(), SCOPE_TBUF_HDR_SIZE + tbuf_get()->h.len);
	if (i % 4 == 0)
		put_maps();
}

/* One field alone, at the edge of what it may be: short inputs are bent best. */
static const struct {
	enum control_where where;
	uint32_t at;
	uint64_t value;
} edges[] = {
	{CONTROL_BLOCK, offsetof(struct scope_control, abi), (uint64_t)104 << 32 | SCOPE_ABI},
	{CONTROL_BLOCK, offsetof(struct scope_control, area), CONTROL_AREA_AT - 8},
	{CONTROL_BLOCK, offsetof(struct scope_control, epoch), UINT32_MAX},
	{CONTROL_BLOCK, offsetof(struct scope_control, want), 1ull << 32 | 0xffff},
	{CONTROL_AREA, offsetof(struct scope_area, ceiling), 1ull << 32 | 0xfff},
	{CONTROL_AREA, offsetof(struct scope_area, masks), CONTROL_BLOCK_AT},
	{CONTROL_AREA, offsetof(struct scope_area, masks) + 8, UINT64_MAX - 3},
	{CONTROL_COMMS, offsetof(struct scope_comm, ctx), 16ull << SCOPE_ID_COUNTER_BITS | 1},
	{CONTROL_COMMS, offsetof(struct scope_comm, name) + 56, 0x7878787878787878},
	{CONTROL_TBUF, offsetof(struct scope_tbuf_hdr, pos), UINT64_MAX - 64},
	{CONTROL_TBUF, offsetof(struct scope_tbuf_hdr, len), 336ull << 32 | SCOPE_TBUF_DATA_SIZE},
};

int main(int argc, char **argv)
{
	const int nedges = (int)(sizeof(edges) / sizeof(edges[0]));
	int i;

	if (argc != 2)
		return 2;
	scope_sems.flush = 1;
	for (i = 0; i < nedges; i++) {
		if (open_seed(argv[1], "edge", i))
			return 1;
		fputc(i, file);
		put(edges[i].where, edges[i].at, &edges[i].value, sizeof(edges[i].value));
		fclose(file);
	}
	for (i = 11; i >= 0; i--) { /* make waits for the last */
		if (open_seed(argv[1], "seed", i))
			return 1;
		whole(i);
		fclose(file);
	}
	return 0;
}
