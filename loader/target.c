// SPDX-License-Identifier: BSD-2-Clause
/* A process with the plugin, from outside; see target.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf_file.h"
#include "log.h"
#include "nccl_profiler.h"
#include "target.h"

#define MAX_TRIES    8 /* files named like the plugin that are looked into */
#define NEVER_TOGGLE (ncclProfileKernelCh | ncclProfileKernelPhase)

static int mem_read(const struct target *t, uint64_t addr, void *buf, size_t len)
{
	ssize_t n = addr > INT64_MAX ? 0 : pread(t->mem, buf, len, (off_t)addr);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

static int mem_write(const struct target *t, uint64_t addr, const void *buf, size_t len)
{
	ssize_t n = addr > INT64_MAX ? 0 : pwrite(t->mem, buf, len, (off_t)addr);

	return n < 0 ? -errno : (size_t)n == len ? 0 : -EFAULT;
}

void target__close(struct target *t)
{
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
}

/* ---- Finding the plugin ------------------------------------------------------------------------ */

/* Address of the control block, given the first mapping of a file that may be the plugin. */
static int control_address(const char *path, uint64_t start, uint64_t offset, uint64_t *addr)
{
	unsigned long long value, size, vaddr;
	int fd, err;

	fd = elf__open(path);
	if (fd < 0)
		return fd;
	err = elf__symbol(fd, SCOPE_CONTROL_SYMBOL, &value, &size);
	if (!err && size < sizeof(struct scope_control))
		err = -EPROTO;
	if (!err)
		err = elf__vaddr_of_offset(fd, offset, &vaddr);
	if (!err)
		*addr = start + value - vaddr;
	close(fd);
	return err;
}

static int control_read(const struct target *t, struct scope_control *ctl)
{
	int err = mem_read(t, t->control, ctl, sizeof(*ctl));

	if (err)
		return err;
	return ctl->magic == SCOPE_CONTROL_MAGIC && ctl->abi == SCOPE_ABI ? 0 : -EPROTO;
}

struct mapping {
	uint64_t start, end, offset;
	char *name;
};

/* One line of /proc/PID/maps; true when it maps a file named like the plugin. */
static bool maps_candidate(char *line, struct mapping *m)
{
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &m->start, &m->end,
		   &m->offset, &at) < 3 ||
	    !at || line[at] != '/')
		return false;
	m->name = line + at;
	m->name[strcspn(m->name, "\n")] = 0;
	/* "libnccl-profiler.so" is the link's name; a mapping shows the file's */
	return strstr(m->name, "nccl-profiler") != NULL;
}

/*
 * The plugin behind a mapping. map_files leads to the very file, whatever lies at its name now, but needs
 * a capability; for a user who arms a process of their own, the name must do.
 */
static int try_mapping(struct target *t, const struct mapping *m)
{
	struct scope_control ctl;
	int err, n;

	snprintf(t->path, sizeof(t->path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, t->pid,
		 m->start, m->end);
	err = control_address(t->path, m->start, m->offset, &t->control);
	if (err == -EPERM || err == -EACCES) {
		n = snprintf(t->path, sizeof(t->path), "/proc/%d/root%s", t->pid, m->name);
		err = n < (int)sizeof(t->path)
			      ? control_address(t->path, m->start, m->offset, &t->control)
			      : -ENAMETOOLONG;
	}
	if (err == -EPROTO)
		return err;
	return err ? -ENOENT : control_read(t, &ctl); /* -ENOENT: somebody else's plugin */
}

int target__find(struct target *t, pid_t pid)
{
	char path[64], line[4096 + 128], seen[4096] = "";
	int err = -ENOENT, tries = 0;
	struct mapping m;
	FILE *f;

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	t->mem = open(path, O_RDWR | O_CLOEXEC); /* before the maps: they may be newer, not older */
	if (t->mem < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		err = errno == ENOENT ? -ESRCH : -errno;
	while (f && err && tries < MAX_TRIES && fgets(line, sizeof(line), f)) {
		if (!maps_candidate(line, &m) || !strcmp(m.name, seen))
			continue;
		snprintf(seen, sizeof(seen), "%s", m.name);
		err = try_mapping(t, &m);
		tries++;
	}
	if (f)
		fclose(f);
	if (err)
		target__close(t);
	return err;
}

/* ---- Arming ------------------------------------------------------------------------------------ */

/* A loader that died without giving its slot back. */
static bool owner_is_dead(uint32_t owner)
{
	return owner && owner != SCOPE_OWNER_MANUAL && kill((pid_t)owner, 0) && errno == ESRCH;
}

/* Our slot, or one to take; -1 when all are taken by living loaders. */
static int slot_find(const struct scope_control *ctl, uint32_t owner)
{
	int i, at = -1;

	for (i = 0; i < SCOPE_WANT_SLOTS; i++) {
		if (ctl->want[i].owner == owner)
			return i;
		if (at < 0 && (!ctl->want[i].owner || owner_is_dead(ctl->want[i].owner)))
			at = i;
	}
	return at;
}

static int slot_write(const struct target *t, const struct scope_control *ctl, uint32_t owner,
		      uint32_t mask)
{
	struct scope_want want = {.mask = mask, .owner = mask ? owner : 0};
	int slot = slot_find(ctl, owner);

	if (slot < 0)
		return mask ? -EBUSY : 0;
	if (!mask && ctl->want[slot].owner != owner)
		return 0; /* nothing to take back */
	return mem_write(t,
			 t->control + offsetof(struct scope_control, want) +
				 (uint64_t)slot * sizeof(want),
			 &want, sizeof(want));
}

/* The masks of every libnccl in the process, from what all owners want together. */
static int masks_write(const struct target *t, const struct scope_control *ctl)
{
	uint32_t want = 0, allowed, now, next;
	struct scope_area area; /* only its head is read: the tables follow it */
	const size_t head = offsetof(struct scope_area, tbufs);
	int i, err, n = 0;

	err = mem_read(t, ctl->area, &area, head);
	if (err)
		return err;
	if (area.magic != SCOPE_CONTROL_MAGIC)
		return -EAGAIN;
	for (i = 0; i < SCOPE_WANT_SLOTS; i++)
		if (ctl->want[i].owner && !owner_is_dead(ctl->want[i].owner))
			want |= ctl->want[i].mask;
	for (i = 0; i < SCOPE_MASKS; i++) {
		if (!area.masks[i] || mem_read(t, area.masks[i], &now, sizeof(now)))
			continue;
		allowed = area.ceiling;
		/* These must not come on in a running job: NCCL's work counters would drift. */
		if (!area.kernel_ch_ok || !(now & NEVER_TOGGLE))
			allowed &= ~(uint32_t)NEVER_TOGGLE;
		next = want & allowed;
		if (next != now)
			err = mem_write(t, area.masks[i], &next, sizeof(next));
		n++;
	}
	return err ? err : n ? 0 : -EAGAIN;
}

int target__want(const struct target *t, uint32_t owner, uint32_t mask, uint64_t flush_ticks)
{
	struct scope_control ctl;
	uint32_t epoch;
	int err;

	err = control_read(t, &ctl);
	if (!err)
		err = slot_write(t, &ctl, owner, mask);
	if (err)
		return err;
	if (flush_ticks)
		mem_write(t, t->control + offsetof(struct scope_control, flush_ticks), &flush_ticks,
			  sizeof(flush_ticks));
	if (mask) {
		epoch = ctl.epoch + 1;
		if (!epoch) /* 0 means: forked */
			epoch = 1;
		mem_write(t, t->control + offsetof(struct scope_control, epoch), &epoch,
			  sizeof(epoch));
	}
	err = control_read(t, &ctl);
	if (err)
		return err;
	return ctl.area ? masks_write(t, &ctl) : -EAGAIN;
}

/* ---- What it publishes ------------------------------------------------------------------------- */

int target__comms(const struct target *t, void (*fn)(void *arg, const struct scope_comm *comm),
		  void *arg)
{
	struct scope_control ctl;
	struct scope_comm *comms;
	uint64_t magic;
	int i, err;

	err = control_read(t, &ctl);
	if (err)
		return err;
	if (!ctl.area || mem_read(t, ctl.area, &magic, sizeof(magic)) ||
	    magic != SCOPE_CONTROL_MAGIC)
		return 0; /* no communicator was ever made */
	comms = malloc(SCOPE_COMMS * sizeof(*comms));
	if (!comms)
		return -ENOMEM;
	err = mem_read(t, ctl.area + offsetof(struct scope_area, comms), comms,
		       SCOPE_COMMS * sizeof(*comms));
	for (i = 0; !err && i < SCOPE_COMMS; i++) {
		comms[i].name[SCOPE_COMM_NAME_MAX - 1] = 0;
		if (SCOPE_ID_WHAT(comms[i].ctx) == SCOPE_ID_WHAT_CTX)
			fn(arg, &comms[i]);
	}
	free(comms);
	return err;
}

int target__read_tbuf(const struct target *t, uint64_t tbuf, uint64_t pos,
		      struct scope_ev_chunk *chunk)
{
	struct scope_tbuf_hdr h, again;
	int err;

	err = mem_read(t, tbuf, &h, sizeof(h));
	if (err)
		return err;
	if (h.magic != SCOPE_TBUF_MAGIC || h.len > SCOPE_TBUF_DATA_SIZE ||
	    h.rec_cnt > h.len / sizeof(struct scope_rec_hdr))
		return -EPROTO;
	if (h.pos + h.len <= pos)
		return 0;
	err = h.len ? mem_read(t, tbuf + SCOPE_TBUF_HDR_SIZE, chunk + 1, h.len) : 0;
	if (!err)
		err = mem_read(t, tbuf, &again, sizeof(again));
	if (err)
		return err;
	/* Flushed in between: what we copied may be a mixture, and is on its way through the ring. */
	if (again.pos != h.pos || again.len < h.len)
		return 0;
	chunk->tbuf = tbuf;
	chunk->pos = h.pos;
	chunk->rec_pos = h.rec_pos;
	chunk->lost_cnt = h.lost_cnt;
	chunk->len = h.len;
	chunk->rec_cnt = h.rec_cnt;
	chunk->tag = h.tag;
	chunk->clock = h.clock;
	chunk->reason = SCOPE_FLUSH_OUTSIDE;
	return 1;
}
