// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the process publishes: the control block that the loader finds by symbol, and the area with
 * communicators, masks and buffers. Set-up, arming at init and disarming live here, off the hot path.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "plugin.h"

/* Exported: see scope_abi.h. In .data, so that it survives fork; what it points to does not. */
__attribute__((visibility("default"))) struct scope_control ncclscope_control = {
	.magic = SCOPE_CONTROL_MAGIC,
	.abi = SCOPE_ABI,
	.size = sizeof(struct scope_control),
	.flush_ticks = 25000000, /* 10 ms at 2.5 GHz, until the loader knows better */
	.epoch = 1,		 /* 0 is what a buffer reads after a fork */
};

enum { AREA_NEW, AREA_SETUP, AREA_READY };

/* ---- The area ---------------------------------------------------------------------------------- */

static struct scope_area *area_map(void)
{
	__u64 none = 0;
	struct scope_area *area;

	area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		return NULL;
	madvise(area, sizeof(*area), MADV_WIPEONFORK);
	if (__atomic_compare_exchange_n(&ncclscope_control.area, &none, (uintptr_t)area, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return area;
	munmap(area, sizeof(*area)); /* another thread was first */
	return (struct scope_area *)(uintptr_t)none;
}

static uint16_t make_tag(uint32_t pid)
{
	uint64_t x = clock_now() ^ (uint64_t)pid << 32 ^ (uintptr_t)&ncclscope_control;

	x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	return (uint16_t)(x % 0xfffe + 1); /* 1 to 0xfffe: an id is never 0, nor without memory */
}

/* Live communicators that have found the table full; under the area's lock. */
static uint32_t unpublished;

static void area_setup(struct scope_area *area)
{
	clock_setup();
	area->pid = (uint32_t)getpid();
	area->clock = clock_kind;
	area->tag = make_tag(area->pid);
	area->ids = 1;
	area->kernel_ch_ok = sems_read().all != 0;
	area->ceiling = 0xfff;
	unpublished = 0; /* a parent's */
	area->magic = SCOPE_CONTROL_MAGIC;
	__atomic_store_n(&area->state, AREA_READY, __ATOMIC_RELEASE);
}

struct scope_area *area_peek(void)
{
	struct scope_area *area = (struct scope_area *)(uintptr_t)__atomic_load_n(
		&ncclscope_control.area, __ATOMIC_ACQUIRE);

	if (area && __atomic_load_n(&area->state, __ATOMIC_ACQUIRE) != AREA_READY)
		area = NULL;
	return area;
}

struct scope_area *area_get(void)
{
	struct scope_area *area = (struct scope_area *)(uintptr_t)__atomic_load_n(
		&ncclscope_control.area, __ATOMIC_ACQUIRE);
	uint32_t state = AREA_NEW;

	if (!area)
		area = area_map();
	if (!area)
		return NULL;
	/* New, or zeroed by a fork: one thread sets it up, others wait the microseconds it takes. */
	if (__atomic_compare_exchange_n(&area->state, &state, AREA_SETUP, false, __ATOMIC_ACQUIRE,
					__ATOMIC_ACQUIRE))
		area_setup(area);
	while (__atomic_load_n(&area->state, __ATOMIC_ACQUIRE) != AREA_READY)
		sched_yield();
	return area;
}

/*
 * init and finalize are rare and may take turns; events never come here. A fork in between leaves no
 * lock behind: the area is zeroed in the child.
 */
static void area_lock(struct scope_area *area)
{
	while (__atomic_exchange_n(&area->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void area_unlock(struct scope_area *area)
{
	__atomic_store_n(&area->lock, 0, __ATOMIC_RELEASE);
}

/* ---- Masks ------------------------------------------------------------------------------------- */

/* Longer is no mask either. */
static char env_mask[64];
static bool env_no_allgatherv;

/* When NCCL loads us, and not at each init: before glibc 2.41 getenv() crashes beside another thread's setenv(). */
__attribute__((constructor)) void area_read_env(void)
{
	const char *env = getenv("NCCL_PROFILE_EVENT_MASK");
	char *end;

	strncpy(env_mask, env ? env : "", sizeof(env_mask) - 1);
	env = getenv("NCCL_ALLGATHERV_ENABLE"); /* NCCL has put nccl.conf's there */
	env_no_allgatherv = env && *env && !strtoul(env, &end, 0) && !*end;
}

/* False: it is not set, or no mask. */
static bool env_value(uint32_t *mask)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(env_mask, &end, 0);
	*mask = (uint32_t)v;
	return *env_mask && *env_mask != '-' && !errno && !*end && v <= 0xffff;
}

bool area_env_wants(uint32_t types)
{
	uint32_t mask;

	return env_value(&mask) && mask & types;
}

bool area_env_no_allgatherv(void)
{
	return env_no_allgatherv;
}

/* Ceiling from the environment: the variable is the user's, not the loader's. */
static uint32_t mask_ceiling(uint32_t api, ncclDebugLogger_t logfn)
{
	uint32_t all = api >= 6 ? 0x7fff : 0xfff, mask;

	if (env_value(&mask))
		return mask;
	if (*env_mask && logfn)
		logfn(NCCL_LOG_WARN, NCCL_PROFILE, __FILE__, __LINE__,
		      "ncclscope: NCCL_PROFILE_EVENT_MASK='%.32s' is no event mask (decimal or "
		      "0x hex, at most 0xffff), using 0x%x",
		      env_mask, all);
	return all;
}

/* What is wanted of this process, by all loaders together; everything until one has said. */
static uint32_t mask_wanted(void)
{
	uint32_t want = 0, any = 0;
	int i;

	for (i = 0; i < SCOPE_WANT_SLOTS; i++) {
		any |= __atomic_load_n(&ncclscope_control.want[i].owner, __ATOMIC_SEQ_CST);
		want |= __atomic_load_n(&ncclscope_control.want[i].mask, __ATOMIC_RELAXED);
	}
	return any ? want : ~0u;
}

/* `ncclscope arm` asked to stay, also where nobody listens. */
static bool manual_arm(void)
{
	int i;

	for (i = 0; i < SCOPE_WANT_SLOTS; i++)
		if (__atomic_load_n(&ncclscope_control.want[i].owner, __ATOMIC_RELAXED) ==
		    SCOPE_OWNER_MANUAL)
			return true;
	return false;
}

uint32_t area_wanted(void)
{
	return sems_read().all || manual_arm() ? mask_wanted() : 0;
}

/*
 * Libraries that hold masks, each a libnccl, as dlsym() takes them. Never closed: they stay with communicators or without, so that an
 * event may write the mask without a look at what is loaded. That would wait for the dynamic linker's lock, which
 * is held while a constructor or a destructor runs; and one that waits for NCCL's threads would wait for good. A child
 * has the same ones.
 */
static struct {
	void *lib; /* first: whose place it is */
	uint64_t mask;
} kept[SCOPE_MASKS];

static void *lib_kept(uint64_t mask)
{
	int i;

	for (i = 0; i < SCOPE_MASKS; i++)
		if (__atomic_load_n(&kept[i].mask, __ATOMIC_ACQUIRE) == mask)
			return kept[i].lib;
	return NULL;
}

static void lib_keep(uint64_t mask, void *lib)
{
	void *none;
	int i;

	for (i = 0; i < SCOPE_MASKS; i++) {
		none = NULL;
		if (!__atomic_compare_exchange_n(&kept[i].lib, &none, lib, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&kept[i].mask, mask, __ATOMIC_RELEASE);
		return;
	}
}

/*
 * What holds the mask, as dlsym() takes it; RTLD_DEFAULT: the program itself, or not known. `base`: where it is loaded, 0 if it may
 * go. Opened once for each mask, and not for each communicator: a child that was forked amid another thread's dlopen() is
 * ended by its own. (The link map will not do: it is a handle only of what somebody has opened.)
 */
static void *mask_lib(const int *mask, uint64_t *base)
{
	uint64_t addr = (uintptr_t)mask;
	struct link_map *map = NULL;
	Dl_info info;
	void *lib;

	*base = 0;
	if (!dladdr1(mask, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return RTLD_DEFAULT;
	lib = lib_kept(addr);
	if (!lib && *map->l_name) {
		lib = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
		if (!lib)
			return RTLD_DEFAULT;
		lib_keep(addr, lib);
	}
	*base = (uintptr_t)info.dli_fbase;
	return lib ? lib : RTLD_DEFAULT;
}

/* Under the lock. `base`: of the library that holds it; 0: that may go. */
static void mask_publish(struct scope_area *area, const int *mask, uint64_t base)
{
	uint64_t addr = (uintptr_t)mask;
	int i, at = -1;

	for (i = 0; i < SCOPE_MASKS; i++) {
		if (area->masks[i] == addr)
			return;
		if (!area->masks[i] && at < 0)
			at = i;
	}
	if (at < 0)
		return; /* a ninth libnccl in one process: recorded, but not armed from outside */
	__atomic_store_n(&area->mask_bases[at], base, __ATOMIC_RELAXED);
	__atomic_store_n(&area->masks[at], addr, __ATOMIC_RELEASE);
	/* A libnccl not seen before may have other strings at known addresses. */
	__atomic_fetch_add(&ncclscope_control.epoch, 1, __ATOMIC_RELEASE);
}

static bool mask_in_use(const struct scope_area *area, uint64_t addr)
{
	int i;

	for (i = 0; i < SCOPE_COMMS; i++)
		if (area->comms[i].ctx && area->comms[i].mask_addr == addr)
			return true;
	return false;
}

/* Forgets a mask when the last communicator that came with it is gone. Under the lock. */
static void mask_unpublish(struct scope_area *area, uint64_t addr)
{
	int i;

	if (mask_in_use(area, addr))
		return;
	for (i = 0; i < SCOPE_MASKS; i++)
		if (area->masks[i] == addr)
			__atomic_store_n(&area->masks[i], 0, __ATOMIC_RELEASE);
}

/*
 * The epoch in which the masks were last turned off; 0: since then init has turned one on. Whoever arms
 * from outside begins a new epoch. Operations in flight make callbacks for a while: one of them is enough
 * to look.
 */
static uint32_t disarmed_in;

/*
 * NCCL shares one mask word between all communicators, and RAS may have set it: a later init must not
 * turn it back. Only the first finds it 0.
 */
static uint32_t mask_at_init(struct scope_area *area, int *mask, bool kernels)
{
	uint32_t allowed = area->ceiling, was, now, stays;
	bool in_use = mask_in_use(area, (uintptr_t)mask);

	was = now = (uint32_t)__atomic_load_n(mask, __ATOMIC_RELAXED);
	/* Nor may this communicator bring it back under others that have done without. */
	if (!kernels || (!(was & KERNELS) && in_use))
		allowed &= ~KERNELS;
	stays = in_use ? was & KERNELS : 0;
	if (!sems_read().all && !manual_arm())
		now = stays;
	else if (!(now & ~KERNELS)) /* or what the recorder before has left */
		now = (mask_wanted() & allowed) | stays;
	if (!in_use) /* nor may what the communicators before were allowed bring it to this one */
		now &= allowed | ~KERNELS;
	if (now)
		__atomic_store_n(&disarmed_in, 0, __ATOMIC_RELAXED);
	if (now != was) /* else a loader may be writing it just now */
		__atomic_store_n(mask, (int)now, __ATOMIC_RELAXED);
	return now;
}

/* NCCL's mask word; NULL: there is none, or libnccl may have been unloaded without a finalize: write only where it cannot have. */
static int *mask_safe(const struct scope_area *area, int i)
{
	uint64_t addr = __atomic_load_n(&area->masks[i], __ATOMIC_ACQUIRE);

	if (!addr || !__atomic_load_n(&area->mask_bases[i], __ATOMIC_RELAXED))
		return NULL;
	return (int *)(uintptr_t)addr;
}

/* They attach at this moment, and arm: what they have just written is to stay. */
static bool somebody_came(uint32_t epoch)
{
	return sems_read().all ||
	       __atomic_load_n(&ncclscope_control.epoch, __ATOMIC_ACQUIRE) != epoch;
}

void area_disarm(void)
{
	uint32_t epoch = __atomic_load_n(&ncclscope_control.epoch, __ATOMIC_ACQUIRE);
	struct scope_area *area = area_peek();
	int i, *mask;

	if (!area || __atomic_load_n(&disarmed_in, __ATOMIC_RELAXED) == epoch || manual_arm())
		return;
	/* All loaders are gone, also those that were killed before they could give back their slot. */
	for (i = 0; i < SCOPE_WANT_SLOTS; i++) {
		if (somebody_came(epoch))
			return;
		__atomic_store_n(&ncclscope_control.want[i].mask, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&ncclscope_control.want[i].owner, 0, __ATOMIC_RELAXED);
	}
	for (i = 0; i < SCOPE_MASKS; i++) {
		mask = mask_safe(area, i);
		if (!mask)
			continue;
		if (somebody_came(epoch))
			return;
		/* A group may begin just now, whose first call has KernelCh: what is left of it goes off after groups. */
		__atomic_fetch_and(mask, (int)KERNELS, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&disarmed_in, epoch, __ATOMIC_RELAXED);
}

void area_masks_clear(const struct scope_area *area, uint32_t types)
{
	int i, *mask;

	for (i = 0; i < SCOPE_MASKS; i++) {
		mask = mask_safe(area, i);
		if (mask)
			__atomic_fetch_and(mask, (int)~types, __ATOMIC_RELAXED);
	}
}

uint32_t area_masks(const struct scope_area *area)
{
	uint32_t all = 0;
	int i, *mask;

	for (i = 0; i < SCOPE_MASKS; i++) {
		mask = mask_safe(area, i);
		all |= mask ? (uint32_t)__atomic_load_n(mask, __ATOMIC_RELAXED) : 0;
	}
	return all;
}

/* ---- Communicators ----------------------------------------------------------------------------- */

/* ncclGetVersion() of NCCL's library; 0 when it cannot be found. */
static uint32_t nccl_version(void *lib)
{
	int (*get_version)(int *);
	int version = 0;

	get_version = (int (*)(int *))dlsym(lib, "ncclGetVersion");
	if (get_version && get_version(&version))
		version = 0;
	return version > 0 ? (uint32_t)version : 0;
}

/*
 * Under the lock; the context last, so that the loader, reading from outside, sees a whole entry. A
 * full table is no loss: the loader learns of this communicator by its records all the same.
 */
static void comm_publish(struct scope_area *area, const struct scope_comm *comm)
{
	int i;

	for (i = 0; i < SCOPE_COMMS; i++) {
		struct scope_comm *slot = &area->comms[i];

		if (slot->ctx)
			continue;
		memcpy((char *)slot + sizeof(slot->ctx), (const char *)comm + sizeof(comm->ctx),
		       sizeof(*slot) - sizeof(slot->ctx));
		__atomic_store_n(&slot->ctx, comm->ctx, __ATOMIC_RELEASE);
		return;
	}
	unpublished++;
}

/* Why those before it, with which it shares a mask, have no KernelCh; 0: they have, or nobody wanted it. Under the lock. */
static uint8_t no_kernels_before(const struct scope_area *area, uint64_t addr)
{
	int i;

	for (i = 0; i < SCOPE_COMMS; i++)
		if (area->comms[i].ctx && area->comms[i].mask_addr == addr &&
		    area->comms[i].no_kernels)
			return area->comms[i].no_kernels;
	return 0;
}

/* Under the lock. `kernels`: they are wanted, and can be had. */
static void comm_mask(struct scope_area *area, struct scope_comm *comm, int *mask, bool kernels)
{
	bool in_use = mask_in_use(area, comm->mask_addr);

	comm->mask = mask_at_init(area, mask, kernels && !comm->no_kernels);
	if (comm->mask & KERNELS) /* by those before it */
		comm->no_kernels = 0;
	else if (kernels && in_use)
		comm->no_kernels = no_kernels_before(area, comm->mask_addr);
}

static bool mask_used(struct scope_area *area, const int *mask)
{
	bool in_use;

	area_lock(area);
	in_use = mask_in_use(area, (uintptr_t)mask);
	area_unlock(area);
	return in_use;
}

uint64_t comm_init(struct scope_comm *comm, int *mask, const char *name, ncclDebugLogger_t logfn)
{
	struct scope_area *area = area_get();
	uint64_t base = 0;
	uint32_t ceiling;
	bool kernels;

	if (!area) {
		if (logfn)
			logfn(NCCL_LOG_WARN, NCCL_PROFILE, __FILE__, __LINE__,
			      "ncclscope: no memory for the profiler, this process is not "
			      "recorded");
		return id_slow(NULL, SCOPE_ID_WHAT_CTX);
	}
	comm->ctx = id_next(tbuf_get(), SCOPE_ID_WHAT_CTX);
	comm->mask_addr = (uintptr_t)mask;
	/* Whatever may take the dynamic linker's lock or NCCL's comes before ours. */
	comm->nccl_version = mask ? nccl_version(mask_lib(mask, &base)) : 0;
	if (name)
		strncpy(comm->name, name, sizeof(comm->name) - 1);
	cuda_uuid(comm->gpu_uuid);
	ceiling = mask_ceiling(comm->api, logfn);
	kernels = area->kernel_ch_ok && area_wanted() & ceiling & KERNELS;
	if (kernels) /* where others have decided, the log has it */
		comm->no_kernels = kernels_refused(comm, mask_used(area, mask) ? NULL : logfn);
	area_lock(area);
	area->ceiling = ceiling;
	if (mask) {
		comm_mask(area, comm, mask, kernels);
		/* From here on a loader may write it, by what it has seen there before: so it is set by now. */
		mask_publish(area, mask, base);
	}
	comm_publish(area, comm);
	area_unlock(area);
	if (logfn)
		logfn(NCCL_LOG_INFO, NCCL_PROFILE, __FILE__, __LINE__,
		      "ncclscope: rank %d of %d, commHash 0x%llx, event mask 0x%x%s", comm->rank,
		      comm->nranks, (unsigned long long)comm->hash, comm->mask,
		      comm->mask ? "" : " (no loader attached)");
	return comm->ctx;
}

void comm_settle(const struct scope_comm *comm, int *mask)
{
	struct scope_area *area = area_peek();

	if (!area || !mask || comm->api < 3 || comm->api > 4)
		return;
	area_lock(area); /* no init returns while another one turns something off */
	kernels_settle(area, mask);
	area_unlock(area);
}

static bool any_comm(const struct scope_area *area)
{
	int i;

	for (i = 0; i < SCOPE_COMMS; i++)
		if (area->comms[i].ctx)
			return true;
	return unpublished;
}

bool comm_finalize(uint64_t ctx)
{
	struct scope_area *area = area_peek();
	bool found = false;
	int i;

	if (!area || SCOPE_ID_WHAT(ctx) != SCOPE_ID_WHAT_CTX)
		return false;
	area_lock(area);
	for (i = 0; i < SCOPE_COMMS && !found; i++) {
		if (area->comms[i].ctx != ctx)
			continue;
		__atomic_store_n(&area->comms[i].ctx, 0, __ATOMIC_RELEASE);
		if (area->comms[i].mask_addr)
			mask_unpublish(area, area->comms[i].mask_addr);
		found = true;
	}
	/* One of these: NCCL ends each once. */
	if (!found && unpublished && SCOPE_ID_TAG(ctx) == area->tag) {
		unpublished--;
		found = true;
	}
	if (found && !any_comm(area))
		kernels_end(area);
	area_unlock(area);
	return found;
}
