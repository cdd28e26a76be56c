// SPDX-License-Identifier: BSD-2-Clause
/*
 * libFuzzer over what the loader reads and writes in a job's memory: control block, area, communicators, a
 * thread's buffer, and lines of its maps. A memfd is the memory. Whatever lies there, nothing but what is the
 * loader's to write changes, and what it hands on keeps within bounds.
 */
#include <sys/mman.h>
#include "target.c" /* its static functions, too */
#include "control_item.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OWNER 4242 /* the loader's pid, as far as the job knows */

static const uint64_t places[] = {
	[CONTROL_BLOCK] = CONTROL_BLOCK_AT,
	[CONTROL_AREA] = CONTROL_AREA_AT,
	[CONTROL_COMMS] = CONTROL_AREA_AT + offsetof(struct scope_area, comms),
	[CONTROL_TBUF] = CONTROL_TBUF_AT,
	[CONTROL_MASKS] = CONTROL_MASKS_AT,
};

static struct target target = {.control = CONTROL_BLOCK_AT};
static char plugin[64]; /* an ELF file with no symbols */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd = memfd_create("plugin", 0);

	(void)argc;
	(void)argv;
	log_level = LOG_ERR;
	target.mem = memfd_create("mem", 0);
	snprintf(plugin, sizeof(plugin), "/proc/self/fd/%d", fd);
	return fd < 0 || target.mem < 0;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* ---- Lines of maps ------------------------------------------------------------------------------ */

static void ask_line(const uint8_t *data, size_t len)
{
	char line[4096 + 128];
	struct target t = {.mem = -1};
	struct mapping m;

	if (len >= sizeof(line))
		len = sizeof(line) - 1;
	memcpy(line, data, len);
	line[len] = 0;
	if (!maps_candidate(line, &m))
		return;
	must(m.name > line && m.name <= line + len && *m.name == '/' && !strchr(m.name, '\n'));
	snprintf(t.path, sizeof(t.path), "%s", plugin);
	must(control_address(&t, &m) < 0);
}

/* ---- Memory ------------------------------------------------------------------------------------- */

static void put(uint64_t addr, const void *data, size_t len)
{
	must(pwrite(target.mem, data, len, (off_t)addr) == (ssize_t)len);
}

/* A job with everything in its place, which the input then bends. */
static void good_job(void)
{
	struct scope_control ctl = {.magic = SCOPE_CONTROL_MAGIC,
				    .abi = SCOPE_ABI,
				    .size = sizeof(ctl),
				    .area = CONTROL_AREA_AT};
	struct scope_tbuf_hdr h = {.magic = SCOPE_TBUF_MAGIC, .tid = 1, .epoch = 1};
	struct scope_area area;
	const size_t head = offsetof(struct scope_area, tbufs);

	memset(&area, 0, head);
	area.magic = SCOPE_CONTROL_MAGIC;
	area.state = 2;
	area.ceiling = UINT32_MAX;
	area.masks[0] = CONTROL_MASKS_AT;
	must(!ftruncate(target.mem, 0));
	must(!ftruncate(target.mem, CONTROL_AREA_AT + sizeof(area)));
	put(CONTROL_BLOCK_AT, &ctl, sizeof(ctl));
	put(CONTROL_AREA_AT, &area, head);
	put(CONTROL_TBUF_AT, &h, sizeof(h));
}

static void memory(const uint8_t *data, size_t size)
{
	struct control_item it;

	for (; size >= sizeof(it); data += it.len, size -= it.len) {
		memcpy(&it, data, sizeof(it));
		data += sizeof(it);
		size -= sizeof(it);
		if (it.len > size)
			it.len = (uint16_t)size;
		it.where %= CONTROL_WHERES;
		if (it.where == CONTROL_LINE)
			ask_line(data, it.len);
		else
			put(places[it.where] + it.at % sizeof(struct scope_area), data, it.len);
	}
}

/* ---- Questions ---------------------------------------------------------------------------------- */

static void try_comms(void)
{
	static struct scope_comm comms[SCOPE_COMMS];
	int n, i;

	must(comms_read(&target, comms, &n) <= 0);
	must(n >= 0 && n <= SCOPE_COMMS);
	for (i = 0; i < n; i++) {
		must(strnlen(comms[i].name, sizeof(comms[i].name)) < sizeof(comms[i].name));
		must(SCOPE_ID_WHAT(comms[i].ctx) == SCOPE_ID_WHAT_CTX);
	}
}

static void try_tbuf(uint64_t addr, uint64_t pos)
{
	struct scope_ev_chunk *c = tbuf_read(&target, addr, pos);

	if (!c)
		return;
	must(c->len <= SCOPE_TBUF_DATA_SIZE && c->pos + c->len >= pos);
	must(c->rec_cnt <= c->len / SCOPE_REC_BYTES_MIN);
	must(c->tbuf == addr && c->reason == SCOPE_FLUSH_OUTSIDE);
	free(c);
}

/* The words that a mask's address may lead to. */
static bool is_mask(const struct scope_area *area, uint64_t addr)
{
	int i;

	for (i = 0; i < SCOPE_MASKS; i++)
		if (addr >= area->masks[i] && addr - area->masks[i] < sizeof(uint32_t))
			return true;
	return false;
}

/* What of the control block is the loader's. Its mask words go wherever the job says. */
static bool may_change(const struct scope_control *was, const struct scope_area *area, size_t at)
{
	const size_t ticks = offsetof(struct scope_control, flush_ticks);
	const size_t epoch = offsetof(struct scope_control, epoch);
	const size_t hold = offsetof(struct scope_control, kernels_hold);
	const size_t want = offsetof(struct scope_control, want);
	const struct scope_want *slot;

	if (is_mask(area, CONTROL_BLOCK_AT + at))
		return true;
	if (at < want)
		return (at >= ticks && at < ticks + sizeof(uint64_t)) ||
		       (at >= epoch && at < epoch + sizeof(uint32_t)) ||
		       (at >= hold && at < hold + sizeof(uint32_t));
	slot = &was->want[(at - want) / sizeof(struct scope_want)];
	return !slot->owner || (slot->owner == OWNER && slot->pidns == own_pidns()) ||
	       target__owner_is_dead(slot);
}

static bool area_overlaps_block(uint64_t area)
{
	return area < CONTROL_BLOCK_AT + sizeof(struct scope_control) &&
	       CONTROL_BLOCK_AT - area < offsetof(struct scope_area, tbufs);
}

static void try_want(uint32_t mask, uint64_t ticks, uint32_t hold)
{
	struct scope_control was = {0}, is = {0};
	struct scope_area area = {0};
	const unsigned char *a = (void *)&was, *b = (void *)&is;
	size_t i;
	int err;

	must(!mem_read(&target, CONTROL_BLOCK_AT, &was, sizeof(was)));
	mem_read(&target, was.area, &area, offsetof(struct scope_area, tbufs));
	err = want(&target, OWNER, mask, ticks, hold);
	must(err <= 0);
	must(!mem_read(&target, CONTROL_BLOCK_AT, &is, sizeof(is)));
	if (was.magic != SCOPE_CONTROL_MAGIC || was.abi != SCOPE_ABI)
		must(err && !memcmp(&was, &is, sizeof(is)));
	if (area_overlaps_block(was.area))
		return; /* its masks are others by the time they are read */
	for (i = 0; i < sizeof(is); i++)
		must(a[i] == b[i] || may_change(&was, &area, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t how;

	if (!size)
		return 0;
	how = *data;
	good_job();
	memory(data + 1, size - 1);
	try_want(how & 1 ? 0xffff : 1u << (how >> 4), how & 2 ? 12345 : 0, 0);
	try_comms();
	try_tbuf(CONTROL_TBUF_AT, 0);
	try_tbuf(how & 4 ? UINT64_MAX - how : CONTROL_AREA_AT, UINT64_MAX - (how & 8));
	try_want(0, 0, how & 1);
	return 0;
}
