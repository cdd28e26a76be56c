// SPDX-License-Identifier: BSD-2-Clause
/* A process with the plugin, from outside; see target.h. */
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include "clock.h"
#include "elf_file.h"
#include "log.h"
#include "mapping.h"
#include "nccl_profiler.h"
#include "patience.h"
#include "pid_stat.h"
#include "scope_probes.h"
#include "target.h"

#define MAX_TRIES 8  /* files named like the plugin that are looked into */
#define TURN_MS	  20 /* at most, for another loader to finish */
#define MAX_LOOKS 8  /* at a mask that changes: its process may do nothing else */

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

const char *target__error(int err)
{
	switch (err) {
	case -EPROTO:
		return "its plugin is of another version";
	case -EREMOTE:
		return "its plugin is on a file system that its user serves (FUSE); let it load a "
		       "copy "
		       "from elsewhere";
	case -ENODATA:
		return "its plugin's file was changed after it had been loaded, and what there was "
		       "before (overlayfs) cannot be reached any more; start it anew";
	default:
		return strerror(-err);
	}
}

/* Root in a container may lack it; who has it and is refused has another reason to look for. */
static const char *advice_to_root(void)
{
	if (!capng_get_caps_process() && capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_PTRACE))
		return "; root has CAP_SYS_PTRACE here: the kernel or a security module refuses "
		       "it, or another capability is missing (docs/privileges.md)";
	return "; root needs CAP_SYS_PTRACE for that, which a container has to be given";
}

const char *target__advice(int err)
{
	switch (err) {
	case -ESRCH:
		return "; 'ncclscope status' lists the processes that have the plugin";
	case -EPERM:
	case -EACCES:
		return geteuid() ? "; run as root or as its user" : advice_to_root();
	default:
		return "";
	}
}

bool target__is_thread(pid_t tid)
{
	pid_t pid;

	if (pid_stat__process(tid, &pid) || pid == tid)
		return false;
	pr_err("%d is a thread of process %d: -p %d\n", tid, pid, pid);
	return true;
}

void target__close(struct target *t)
{
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
}

/* ---- Finding the plugin ------------------------------------------------------------------------ */

/*
 * Whether what was opened is of the file system that check_served() has looked at, where it matters: the process may have
 * mapped another file meanwhile. That it is FUSE's is the kernel's word.
 */
static int check_same(int fd, const struct mapping *m)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) || fstat(fd, &st))
		return -errno;
	return fs.f_type == FUSE_SUPER_MAGIC && st.st_dev != makedev(m->dev_major, m->dev_minor)
		       ? -ESTALE
		       : 0;
}

/* Address of the control block, given a mapping of the file at t->path, which may be the plugin; and which file that is. */
static int control_address(struct target *t, const struct mapping *m)
{
	unsigned long long value, size, vaddr, semaphore;
	int fd, err;

	fd = elf__open(t->path);
	if (fd < 0)
		return fd;
	err = check_same(fd, m);
	if (!err)
		err = elf__id(fd, &t->file);
	if (!err)
		err = elf__symbol(fd, SCOPE_CONTROL_SYMBOL, &value, &size);
	if (!err && size < sizeof(struct scope_control))
		err = -EPROTO;
	if (!err)
		err = elf__vaddr_of_offset(fd, m->offset, &vaddr);
	if (!err)
		t->control = m->start + value - vaddr;
	if (!err && !elf__usdt(fd, SCOPE_PROVIDER, SCOPE_PROBE_FLUSH, NULL, &semaphore) &&
	    semaphore)
		t->semaphore = m->start + semaphore - vaddr;
	close(fd);
	return err;
}

static int control_check(const struct scope_control *ctl)
{
	return ctl->magic == SCOPE_CONTROL_MAGIC && ctl->abi == SCOPE_ABI ? 0 : -EPROTO;
}

static int control_read(const struct target *t, struct scope_control *ctl)
{
	int err = mem_read(t, t->control, ctl, sizeof(*ctl));

	return err ? err : control_check(ctl);
}

int target__check_file(int fd)
{
	unsigned long long value, size;
	struct scope_control ctl;
	int err = elf__symbol(fd, SCOPE_CONTROL_SYMBOL, &value, &size);

	if (!err && size < sizeof(ctl))
		err = -EPROTO;
	if (!err)
		err = elf__read(fd, value, &ctl, sizeof(ctl));
	return err ? err : control_check(&ctl);
}

/* One line of /proc/PID/maps; true when it maps a file named like the plugin. */
static bool maps_plugin(char *line, struct mapping *m)
{
	/* "libnccl-profiler.so" is the link's name; a mapping shows the file's */
	return strstr(mapping__base(line), "nccl-profiler") && mapping__parse(m, line);
}

static bool is_same_file(const struct mapping *a, const struct mapping *b)
{
	return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/*
 * Whether it is the text of such a file: that is loaded as a library, and not only mapped by who reads or writes it, as a
 * linker, rsync or what looks for symbols does. To that one's memory, or to the file itself we would write.
 */
static bool maps_candidate(char *line, struct mapping *m)
{
	return maps_plugin(line, m) && !strcmp(m->perms, "r-xp");
}

/* Whether the control block, by the address of the text, is where the file's data is in memory. */
static bool has_control(const struct target *t, const struct mapping *text)
{
	char path[64], *line = NULL;
	struct mapping m;
	size_t room = 0;
	bool has = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", t->pid);
	f = fopen(path, "re");
	while (f && !has && getline(&line, &room, f) > 0)
		has = maps_plugin(line, &m) && is_same_file(&m, text) && !strcmp(m.perms, "rw-p") &&
		      t->control >= m.start && t->control + sizeof(struct scope_control) <= m.end;
	free(line);
	if (f)
		fclose(f);
	return has;
}

/*
 * What serves the file system of a mapping, by a list of mounts: 0 the kernel or root; -EREMOTE a user, by FUSE;
 * -ENOENT no mount has that device. `theirs`: mounts of another user namespace, where anybody can be user 0.
 */
static int served_by(const char *mounts, bool theirs, const struct mapping *m)
{
	char *line = NULL, *type, *user;
	unsigned int dev_major, dev_minor, uid;
	FILE *f = fopen(mounts, "re");
	int err = -ENOENT;
	size_t room = 0;

	/* Whole lines: what is in the middle of one may be what a user has called something. */
	while (f && err == -ENOENT && getline(&line, &room, f) > 0) {
		type = strstr(line, " - ");
		if (!type || sscanf(line, "%*d %*d %u:%u", &dev_major, &dev_minor) != 2 ||
		    dev_major != m->dev_major || dev_minor != m->dev_minor)
			continue;
		/* In the last field: the one before is the source, which is whatever its server calls it. */
		user = strstr(strrchr(type, ' '), ",user_id=");
		err = 0;
		if (!strncmp(type, " - fuse", 7) &&
		    (theirs || !user || sscanf(user, ",user_id=%u", &uid) != 1 || uid))
			err = -EREMOTE;
	}
	free(line);
	if (f)
		fclose(f);
	return err;
}

/* The number of the mount that a mapping's file is in, or -1. O_PATH: whoever serves the file is not asked. */
static int mount_of(const struct target *t, const struct mapping *m)
{
	char path[64], *line = NULL;
	int fd, id = -1;
	size_t room = 0;
	FILE *f;

	mapping__path(m, t->pid, path, sizeof(path));
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0 && sscanf(line, "mnt_id: %d", &id) != 1)
		;
	free(line);
	if (f)
		fclose(f);
	close(fd);
	return id;
}

static bool is_overlay(const char *mounts, int mount)
{
	char *line = NULL, *type;
	bool overlay = false;
	size_t room = 0;
	FILE *f = fopen(mounts, "re");
	int id;

	while (f && getline(&line, &room, f) > 0) {
		if (sscanf(line, "%d", &id) != 1 || id != mount)
			continue;
		type = strstr(line, " - ");
		overlay = type && !strncmp(type, " - overlay ", 11);
		break;
	}
	free(line);
	if (f)
		fclose(f);
	return overlay;
}

/* Whether a process is in our user namespace. */
static bool is_in_our_userns(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return !stat("/proc/self/ns/user", &ours) && !stat(path, &theirs) &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/*
 * Who serves a file can hold up whoever reads it for good; and the kernel, which reads it when it puts a probe on,
 * lets no process of the node fork meanwhile. A file system without a device that nobody has mounted (any more)
 * may be such a one. One's own user may serve what they like.
 */
static int check_served(const struct target *t, const struct mapping *m)
{
	char path[64];
	bool ours;
	int err;

	if (t->uid && t->uid == geteuid())
		return 0;
	err = served_by("/proc/self/mountinfo", false, m);
	if (err != -ENOENT)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", t->pid);
	ours = is_in_our_userns(t->pid);
	err = served_by(path, !ours, m);
	/* Linux 6.1 gives the device of an overlay's layer, which need not be mounted: who has mounted the overlay has chosen it. */
	if (err == -ENOENT)
		err = m->dev_major || (ours && is_overlay(path, mount_of(t, m))) ? 0 : -EREMOTE;
	return err;
}

/*
 * The plugin behind a mapping. map_files leads to the very file, whatever lies at its name now, but needs
 * a capability; for a user who arms a process of their own, the name must do.
 */
static int try_mapping(struct target *t, const struct mapping *m)
{
	struct scope_control ctl;
	int err, n;

	err = check_served(t, m);
	if (err)
		return err;
	mapping__path(m, t->pid, t->path, sizeof(t->path));
	err = control_address(t, m);
	if (err == -EPERM || err == -EACCES) {
		n = snprintf(t->path, sizeof(t->path), "/proc/%d/root%s", t->pid, m->name);
		err = n < (int)sizeof(t->path) ? control_address(t, m) : -ENAMETOOLONG;
	}
	if (err == -EPROTO)
		return err;
	if (err || !has_control(t, m)) /* somebody else's plugin */
		return -ENOENT;
	return control_read(t, &ctl);
}

static int find(struct target *t, int flags)
{
	char path[64], seen[4096] = "", *line = NULL;
	int err = -ENOENT, tries = 0;
	pid_t pid = t->pid;
	struct mapping m;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	t->mem = open(path, flags | O_CLOEXEC); /* before the maps: they may be newer, not older */
	if (t->mem < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		err = errno == ENOENT ? -ESRCH : -errno;
	while (f && err && tries < MAX_TRIES && getline(&line, &room, f) > 0) {
		if (!maps_candidate(line, &m) || !strcmp(m.name, seen))
			continue;
		snprintf(seen, sizeof(seen), "%s", m.name);
		err = try_mapping(t, &m);
		tries++;
	}
	free(line);
	if (f)
		fclose(f);
	if (err)
		target__close(t);
	return err;
}

/* ---- Arming ------------------------------------------------------------------------------------ */

/* Our pid namespace, as scope_want.pidns has it. The initial one's is no 0, and one that cannot be told is nobody's. */
static uint16_t own_pidns(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (uint16_t)st.st_ino;
}

static bool is_manual(const struct scope_want *w)
{
	return w->owner == SCOPE_OWNER_MANUAL;
}

bool target__owner_is_here(const struct scope_want *w)
{
	return w->owner && !is_manual(w) && w->pidns && w->pidns == own_pidns();
}

bool target__owner_is_dead(const struct scope_want *w)
{
	return target__owner_is_here(w) &&
	       (w->owner > INT32_MAX || pid_stat__has_ended((pid_t)w->owner));
}

static int slot_put(const struct target *t, struct scope_control *ctl, int slot,
		    struct scope_want want)
{
	ctl->want[slot] = want;
	return mem_write(t,
			 t->control + offsetof(struct scope_control, want) +
				 (uint64_t)slot * sizeof(want),
			 &want, sizeof(want));
}

/* How many slots of loaders that died without giving theirs back there were, which are free now; or -errno. */
static int slots_bury(const struct target *t, struct scope_control *ctl)
{
	int i, n = 0, err = 0;

	for (i = 0; i < SCOPE_WANT_SLOTS && !err; i++) {
		if (!target__owner_is_dead(&ctl->want[i]))
			continue;
		err = slot_put(t, ctl, i, (struct scope_want){0});
		n++;
	}
	return err ? err : n;
}

/* The slot of whom `want` is of, or one to take; -1 when all are taken. */
static int slot_find(const struct scope_control *ctl, const struct scope_want *want)
{
	int i, at = -1;

	for (i = 0; i < SCOPE_WANT_SLOTS; i++) {
		if (ctl->want[i].owner == want->owner && ctl->want[i].pidns == want->pidns)
			return i;
		if (at < 0 && !ctl->want[i].owner)
			at = i;
	}
	return at;
}

static int slot_write(const struct target *t, struct scope_control *ctl, uint32_t owner,
		      uint32_t mask)
{
	struct scope_want want = {.mask = (uint16_t)mask, .owner = owner};
	int slot;

	if (!is_manual(&want))
		want.pidns = own_pidns();
	slot = slot_find(ctl, &want);
	if (slot < 0)
		return mask ? -EBUSY : 0;
	if (!mask && !ctl->want[slot].owner)
		return 0; /* nothing to take back */
	return slot_put(t, ctl, slot, mask ? want : (struct scope_want){0});
}

/*
 * One of NCCL's masks, and whether KernelCh has to stay as it is there, both at one moment: neither is to go off what has come into use since
 * the area was read, nor to come back what the plugin has turned off.
 */
static int mask_look(const struct target *t, const struct scope_control *ctl, uint64_t addr,
		     uint32_t *now, uint8_t *used)
{
	const uint64_t used_addr = ctl->area + offsetof(struct scope_area, kernels_used);
	int err, tries = MAX_LOOKS;
	uint32_t again = 0;

	do {
		err = mem_read(t, addr, now, sizeof(*now)) ?:
		      mem_read(t, used_addr, used, sizeof(*used)) ?:
		      mem_read(t, addr, &again, sizeof(again));
	} while (!err && again != *now && --tries);
	return err;
}

/* The masks of every libnccl in the process, from what all owners want together. */
static int masks_write(struct target *t, const struct scope_control *ctl)
{
	uint32_t want = 0, all = 0, allowed, now, next;
	struct scope_area area; /* only its head is read: the tables follow it */
	const size_t head = offsetof(struct scope_area, tbufs);
	int i, err, n = 0;
	uint8_t used;

	err = mem_read(t, ctl->area, &area, head);
	if (err)
		return err;
	if (area.magic != SCOPE_CONTROL_MAGIC)
		return -EAGAIN;
	for (i = 0; i < SCOPE_WANT_SLOTS; i++)
		if (ctl->want[i].owner)
			want |= ctl->want[i].mask;
	for (i = 0; i < SCOPE_MASKS; i++) {
		/* Without a base: what holds it may go, and the plugin could not turn it off. */
		if (!area.masks[i] || !area.mask_bases[i] ||
		    mask_look(t, ctl, area.masks[i], &now, &used))
			continue;
		/*
		 * Neither of these must come on in a running job: NCCL's work counters would drift. Nor go off while it works
		 * by them: the plugin does that, at the end of a group (plugin/kernels.c).
		 */
		allowed = area.ceiling & ~(KERNELS & ~(area.kernel_ch_ok ? now : 0));
		next = (want & allowed) | (used ? now & KERNELS : 0);
		if (next != now)
			err = mem_write(t, area.masks[i], &next, sizeof(next));
		all |= next;
		n++;
	}
	/* Not before the first communicator has a mask: until then it is not the environment's. */
	t->has_ceiling = n;
	t->ceiling = n ? (uint16_t)area.ceiling : 0;
	t->mask = (uint16_t)all;
	return err ? err : n ? 0 : -EAGAIN;
}

/*
 * Two loaders that find the same free slot, or that write masks of which each has seen half, would harm each
 * other: they take turns. The job's user can hold this lock as well; that must cost them no more than a
 * moment of ours, and a mask.
 */
static void turn_begin(const struct target *t)
{
	int tries = TURN_MS;

	while (flock(t->mem, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK && tries--)
		sleep_ns(1000000);
}

static void turn_end(const struct target *t)
{
	flock(t->mem, LOCK_UN);
}

static int age(const struct target *t, uint64_t flush_ticks)
{
	return mem_write(t, t->control + offsetof(struct scope_control, flush_ticks), &flush_ticks,
			 sizeof(flush_ticks));
}

static int want(struct target *t, uint32_t owner, uint32_t mask, uint64_t flush_ticks,
		uint32_t hold)
{
	struct scope_control ctl;
	uint32_t epoch;
	uint64_t ids;
	int err;

	err = control_read(t, &ctl);
	if (err)
		return err;
	if (hold != TARGET_HOLD_AS_IS)
		mem_write(t, t->control + offsetof(struct scope_control, kernels_hold), &hold,
			  sizeof(hold));
	err = slots_bury(t, &ctl);
	if (err >= 0)
		err = slot_write(t, &ctl, owner, mask);
	if (err)
		return err;
	t->first_id = 1;
	if (ctl.area &&
	    !mem_read(t, ctl.area + offsetof(struct scope_area, ids), &ids, sizeof(ids)))
		t->first_id = ids;
	if (flush_ticks)
		age(t, flush_ticks);
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

static bool any_dead(const struct scope_control *ctl)
{
	int i;

	for (i = 0; i < SCOPE_WANT_SLOTS; i++)
		if (target__owner_is_dead(&ctl->want[i]))
			return true;
	return false;
}

/* Looked for again and again: a turn is taken only where there is something to do, and not waited for, as it comes again. */
static int bury(struct target *t)
{
	struct scope_control ctl;
	int err = control_read(t, &ctl);

	if (err || !any_dead(&ctl))
		return err;
	if (flock(t->mem, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return -EAGAIN;
	err = control_read(t, &ctl);
	if (!err)
		err = slots_bury(t, &ctl);
	if (err > 0)
		err = ctl.area ? masks_write(t, &ctl) : 0;
	turn_end(t);
	return err;
}

/* ---- What it publishes ------------------------------------------------------------------------- */

static int state_read(const struct target *t, struct target_state *state)
{
	const size_t head = offsetof(struct scope_area, tbufs);
	struct scope_control ctl;
	struct scope_area area; /* only its head is read: the tables follow it */
	uint32_t mask;
	int i, err;

	memset(state, 0, sizeof(*state));
	err = control_read(t, &ctl);
	if (err)
		return err;
	state->epoch = ctl.epoch;
	memcpy(state->want, ctl.want, sizeof(state->want));
	if (!ctl.area || mem_read(t, ctl.area, &area, head) || area.magic != SCOPE_CONTROL_MAGIC)
		return 0; /* no communicator was ever made */
	state->ceiling = area.ceiling;
	for (i = 0; i < SCOPE_MASKS; i++)
		if (area.masks[i] && !mem_read(t, area.masks[i], &mask, sizeof(mask)))
			state->masks[state->nmasks++] = mask;
	return 0;
}

/* The published ones into `comms`, which has room for SCOPE_COMMS; *n how many. */
static int comms_read(const struct target *t, struct scope_comm *comms, int *n)
{
	struct scope_control ctl;
	uint64_t magic;
	int i, err;

	*n = 0;
	err = control_read(t, &ctl);
	if (err)
		return err;
	if (!ctl.area || mem_read(t, ctl.area, &magic, sizeof(magic)) ||
	    magic != SCOPE_CONTROL_MAGIC)
		return 0; /* no communicator was ever made */
	err = mem_read(t, ctl.area + offsetof(struct scope_area, comms), comms,
		       SCOPE_COMMS * sizeof(*comms));
	for (i = 0; !err && i < SCOPE_COMMS; i++) {
		if (SCOPE_ID_WHAT(comms[i].ctx) != SCOPE_ID_WHAT_CTX)
			continue;
		comms[*n] = comms[i];
		comms[(*n)++].name[SCOPE_COMM_NAME_MAX - 1] = 0;
	}
	return err;
}

/* Of a chunk and its data, so that another can follow. */
static size_t chunk_room(const struct scope_ev_chunk *chunk)
{
	return (sizeof(*chunk) + chunk->len + 7) & ~7ul;
}

/* What lies beyond pos in a buffer, malloc'ed; NULL: it was being flushed just now, or it cannot be read. */
static struct scope_ev_chunk *tbuf_read(const struct target *t, uint64_t tbuf, uint64_t pos)
{
	struct scope_ev_chunk *chunk;
	struct scope_tbuf_hdr h, again;

	if (mem_read(t, tbuf, &h, sizeof(h)) || h.magic != SCOPE_TBUF_MAGIC ||
	    h.len > SCOPE_TBUF_DATA_SIZE || h.rec_cnt > h.len / SCOPE_REC_BYTES_MIN ||
	    h.pos + h.len < pos)
		return NULL;
	if (h.pos + h.len == pos) { /* nothing: its own records are known */
		h.pos = pos;
		h.len = h.rec_cnt = 0;
	}
	chunk = malloc(sizeof(*chunk) + h.len);
	if (!chunk)
		return NULL;
	/*
	 * Flushed in between: what we copied may be a mixture, and is on its way through the ring. The fences: header,
	 * data, header, in this order, also where the CPU may load in another (arm64).
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (h.len && mem_read(t, tbuf + SCOPE_TBUF_HDR_SIZE, chunk + 1, h.len))
		goto mixed;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (h.len &&
	    (mem_read(t, tbuf, &again, sizeof(again)) || again.pos != h.pos || again.len < h.len))
		goto mixed;
	*chunk = (struct scope_ev_chunk){
		.tbuf = tbuf,
		.pos = h.pos,
		.rec_pos = h.rec_pos,
		.lost_cnt = h.lost_cnt,
		.len = h.len,
		.rec_cnt = h.rec_cnt,
		.tag = h.tag,
		.clock = h.clock,
		.reason = SCOPE_FLUSH_OUTSIDE,
	};
	return chunk;
mixed:
	free(chunk);
	return NULL;
}

/* What threads without a buffer have lost by now; NULL: there is no communicator yet, or it cannot be read. */
static struct scope_ev_chunk *unbuffered_read(const struct target *t)
{
	const size_t at = offsetof(struct scope_area, nobuf_lost_cnt);
	struct scope_ev_chunk *chunk;
	struct scope_control ctl;
	uint64_t magic, lost;

	if (control_read(t, &ctl) || !ctl.area || mem_read(t, ctl.area, &magic, sizeof(magic)) ||
	    magic != SCOPE_CONTROL_MAGIC || mem_read(t, ctl.area + at, &lost, sizeof(lost)))
		return NULL;
	chunk = malloc(sizeof(*chunk));
	if (chunk)
		*chunk = (struct scope_ev_chunk){.lost_cnt = lost, .reason = SCOPE_FLUSH_OUTSIDE};
	return chunk;
}

/* ---- Asking, by a process that may hang --------------------------------------------------------- */

/* What goes there; the target without its descriptor, which goes with it. */
struct ask {
	struct target t;
	int flags; /* find: of open(2) */
	uint32_t owner, mask, hold;
	uint64_t flush_ticks;
	int n;
	struct target_read reads[];
};

/* There: the target, as it can be used there. */
static struct target asked(const struct patience_call *call)
{
	const struct ask *a = call->in;
	struct target t = a->t;

	t.mem = call->in_fd;
	return t;
}

static int answer(struct patience_call *call, const void *data, size_t len)
{
	call->out = malloc(len);
	if (!call->out)
		return -ENOMEM;
	memcpy(call->out, data, len);
	call->out_len = len;
	return 0;
}

/*
 * Here: has fn called. 0 or -errno of the asking or of what was asked. What it answers has at least `len` bytes, and is
 * the caller's, also after an error.
 */
static int ask(struct target *t, int (*fn)(struct patience_call *call), const struct ask *in,
	       struct patience_call *call, size_t len)
{
	int err;

	*call = (struct patience_call){.in = in,
				       .in_len = sizeof(*in) + (size_t)in->n * sizeof(*in->reads),
				       .in_fd = t->mem};
	err = patience__call(fn, call, t->uid);
	if (err == -ETIMEDOUT) {
		target__close(t);
		pr_warn("Process %d cannot be looked into: reading its memory or files hangs, as "
			"on a "
			"file system that does not answer; continuing without\n",
			t->pid);
	}
	return !err && call->out_len < len ? -EPIPE : err;
}

static int ask_find(struct patience_call *call)
{
	const struct ask *a = call->in;
	struct target t = a->t;
	int err = find(&t, a->flags);

	if (err)
		return err;
	call->out_fd = t.mem;
	return answer(call, &t, sizeof(t));
}

static int find_patiently(struct target *t, pid_t pid, int flags)
{
	struct ask in = {.flags = flags};
	struct patience_call call;
	int err;

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	t->mem = -1;
	err = pid_stat__uid(pid, &t->uid);
	if (err)
		return err;
	in.t = *t;
	err = ask(t, ask_find, &in, &call, sizeof(*t));
	if (!err) {
		memcpy(t, call.out, sizeof(*t));
		t->mem = call.out_fd;
	}
	free(call.out);
	return err;
}

int target__find(struct target *t, pid_t pid)
{
	return find_patiently(t, pid, O_RDWR);
}

int target__find_readonly(struct target *t, pid_t pid)
{
	return find_patiently(t, pid, O_RDONLY);
}

static int ask_probed(struct patience_call *call)
{
	struct target t = asked(call);
	uint16_t probes;
	int err = mem_read(&t, t.semaphore, &probes, sizeof(probes));

	return err ? err : probes ? 0 : -ENODATA;
}

int target__probed(struct target *t)
{
	struct ask in = {.t = *t};
	struct patience_call call;

	return t->semaphore ? ask(t, ask_probed, &in, &call, 0) : -ENOENT;
}

/* What target__want() finds out. */
struct learned {
	uint64_t first_id;
	bool has_ceiling;
	uint16_t ceiling;
	uint16_t mask;
};

static int ask_want(struct patience_call *call)
{
	const struct ask *a = call->in;
	struct target t = asked(call);
	struct learned learned;
	int err;

	turn_begin(&t);
	err = want(&t, a->owner, a->mask, a->flush_ticks, a->hold);
	turn_end(&t);
	/* Also with an error: from which of its ids on it is armed when it has a communicator. */
	learned = (struct learned){t.first_id, t.has_ceiling, t.ceiling, t.mask};
	return answer(call, &learned, sizeof(learned)) ?: err;
}

static int want_patiently(struct target *t, const struct ask *in)
{
	struct learned learned;
	struct patience_call call;
	int err = ask(t, ask_want, in, &call, sizeof(learned));

	if (call.out_len >= sizeof(learned)) {
		memcpy(&learned, call.out, sizeof(learned));
		t->first_id = learned.first_id;
		t->has_ceiling = learned.has_ceiling;
		t->ceiling = learned.ceiling;
		t->mask = learned.mask;
	}
	free(call.out);
	return err;
}

int target__want(struct target *t, uint32_t owner, uint32_t mask, uint64_t flush_ticks)
{
	struct ask in = {.t = *t,
			 .owner = owner,
			 .mask = mask,
			 .flush_ticks = flush_ticks,
			 .hold = TARGET_HOLD_AS_IS};

	return want_patiently(t, &in);
}

int target__leave(struct target *t, uint32_t owner, uint32_t hold)
{
	struct ask in = {.t = *t, .owner = owner, .hold = hold};

	return want_patiently(t, &in);
}

static int ask_age(struct patience_call *call)
{
	const struct ask *a = call->in;
	struct target t = asked(call);

	return age(&t, a->flush_ticks);
}

int target__age(struct target *t, uint64_t flush_ticks)
{
	struct ask in = {.t = *t, .flush_ticks = flush_ticks};
	struct patience_call call;
	int err = ask(t, ask_age, &in, &call, 0);

	free(call.out);
	return err;
}

static int ask_bury(struct patience_call *call)
{
	struct target t = asked(call);

	return bury(&t);
}

int target__bury(struct target *t)
{
	struct ask in = {.t = *t};
	struct patience_call call;
	int err = ask(t, ask_bury, &in, &call, 0);

	free(call.out);
	return err;
}

static int ask_state(struct patience_call *call)
{
	struct target t = asked(call);
	struct target_state state;
	int err = state_read(&t, &state);

	return err ? err : answer(call, &state, sizeof(state));
}

int target__state(struct target *t, struct target_state *state)
{
	struct ask in = {.t = *t};
	struct patience_call call;
	int err = ask(t, ask_state, &in, &call, sizeof(*state));

	if (!err)
		memcpy(state, call.out, sizeof(*state));
	free(call.out);
	return err;
}

static int ask_comms(struct patience_call *call)
{
	struct target t = asked(call);
	int n = 0, err;

	call->out = malloc(SCOPE_COMMS * sizeof(struct scope_comm));
	if (!call->out)
		return -ENOMEM;
	err = comms_read(&t, call->out, &n);
	call->out_len = (size_t)n * sizeof(struct scope_comm);
	return err;
}

int target__comms(struct target *t, void (*fn)(void *arg, const struct scope_comm *comm), void *arg)
{
	struct ask in = {.t = *t};
	const struct scope_comm *comm;
	struct patience_call call;
	int err = ask(t, ask_comms, &in, &call, 0);

	if (!err)
		for (comm = call.out;
		     comm < (struct scope_comm *)call.out + call.out_len / sizeof(*comm); comm++)
			fn(arg, comm);
	free(call.out);
	return err;
}

/* One after the other, each a multiple of 8 bytes, in the order of the questions; some have none. */
static int ask_tbufs(struct patience_call *call)
{
	const struct ask *a = call->in;
	struct target t = asked(call);
	struct scope_ev_chunk *chunk;
	size_t room;
	int i, err = 0;
	void *out;

	for (i = 0; i < a->n && !err; i++) {
		chunk = a->reads[i].tbuf ? tbuf_read(&t, a->reads[i].tbuf, a->reads[i].pos)
					 : unbuffered_read(&t);
		if (!chunk)
			continue;
		room = chunk_room(chunk);
		out = realloc(call->out, call->out_len + room);
		err = out ? 0 : -ENOMEM;
		if (out) {
			memcpy((char *)out + call->out_len, chunk, sizeof(*chunk) + chunk->len);
			call->out = out;
			call->out_len += room;
		}
		free(chunk);
	}
	return err;
}

int target__read_tbufs(struct target *t, struct target_read *reads, int n)
{
	size_t len = (size_t)n * sizeof(*reads), room;
	struct ask *in = calloc(1, sizeof(*in) + len);
	struct scope_ev_chunk *chunk;
	struct patience_call call;
	char *at, *end;
	int i, err;

	if (!in)
		return -ENOMEM;
	in->t = *t;
	in->n = n;
	memcpy(in->reads, reads, len);
	err = ask(t, ask_tbufs, in, &call, 0);
	at = call.out;
	end = at + call.out_len;
	for (i = 0; !err && i < n && at < end; i++) {
		chunk = (struct scope_ev_chunk *)at;
		if (chunk->tbuf != reads[i].tbuf)
			continue;
		room = chunk_room(chunk);
		reads[i].chunk = malloc(room);
		if (reads[i].chunk)
			memcpy(reads[i].chunk, chunk, sizeof(*chunk) + chunk->len);
		at += room;
	}
	free(call.out);
	free(in);
	return err;
}
