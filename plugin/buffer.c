// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread's buffer: made at the thread's first callback, flushed through the probe, handed to the
 * next thread when its own ends. Also ids and interned strings, whose state lives in it.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "plugin.h"

__thread struct tbuf *tbuf_self TLS_NO_CALL;

uint8_t clock_kind;

#define ID_BLOCK 4096 /* ids a thread takes at once: one shared atomic in 4096 events */

/* ---- Flush ------------------------------------------------------------------------------------- */

/*
 * A BPF program cannot fault pages in: bring back what was swapped out since it was written. Returns
 * the sum only so that the reads are not optimised away.
 */
static unsigned int touch_pages(const struct tbuf *tb)
{
	unsigned int off, sum = 0;

	for (off = 0; off < sizeof(tb->h) + tb->h.len; off += 4096)
		sum += *((const volatile unsigned char *)tb + off);
	return sum;
}

void tbuf_flush(struct tbuf *tb, uint32_t reason)
{
	uint64_t pos = tb->h.pos + tb->h.len, rec_pos = tb->h.rec_pos + tb->h.rec_cnt;

	struct scope_area *area = area_peek();

	tb->h.flush_ts = clock_now();
	if (sems_read().flush) {
		/* threads without a buffer cannot tell of their loss: every other thread does */
		if (area)
			tb->h.lost_cnt = __atomic_load_n(&area->nobuf_lost_cnt, __ATOMIC_RELAXED);
		touch_pages(tb);
		probe_flush(tb, reason);
	}
	/*
	 * In this order: a reader that interrupts us here sees an empty buffer at the old position
	 * (nothing new), never the old bytes at a new position (everything twice).
	 */
	__atomic_store_n((uint64_t *)(void *)&tb->h.len, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&tb->h.rec_pos, rec_pos, __ATOMIC_RELEASE);
	__atomic_store_n(&tb->h.pos, pos, __ATOMIC_RELEASE);
#ifndef __SANITIZE_THREAD__ /* which does not know fences */
	/* And before what comes next into the same bytes, which a release store alone does not hold back. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/* ---- Life of a buffer -------------------------------------------------------------------------- */

static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;
static bool exit_key_ok;

/* Runs when a thread ends. `arg` may be a buffer of the parent process: after a fork it reads as 0. */
static void thread_exit(void *arg)
{
	struct tbuf *tb = arg;

	tbuf_self = NULL;
	if (tb->h.magic != SCOPE_TBUF_MAGIC)
		return;
	if (tb->h.len)
		tbuf_flush(tb, SCOPE_FLUSH_EXIT);
	__atomic_store_n(&tb->h.tid, 0, __ATOMIC_RELEASE);
}

static void make_exit_key(void)
{
	exit_key_ok = pthread_key_create(&exit_key, thread_exit) == 0;
}

/*
 * exit(3): only the calling thread may touch its buffer. The other threads are killed by exit_group
 * a moment later, and BPF reads theirs.
 */
__attribute__((destructor)) static void process_exit(void)
{
	struct tbuf *tb = tbuf_self;

	if (tb && tb->h.magic == SCOPE_TBUF_MAGIC && tb->h.len)
		tbuf_flush(tb, SCOPE_FLUSH_EXIT);
}

/* A buffer that an ended thread left: its position in the stream goes on. */
static struct tbuf *tbuf_reuse(struct scope_area *area, uint32_t tid)
{
	struct tbuf *tb;
	uint32_t free;
	int i;

	for (i = 0; i < SCOPE_TBUFS; i++) {
		tb = (struct tbuf *)(uintptr_t)__atomic_load_n(&area->tbufs[i], __ATOMIC_ACQUIRE);
		if (!tb)
			break; /* filled from the front, never emptied */
		free = 0;
		if (__atomic_load_n(&tb->h.tid, __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&tb->h.tid, &free, tid, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return tb;
	}
	return NULL;
}

static struct tbuf *tbuf_make(struct scope_area *area, uint32_t tid)
{
	__u64 none;
	struct tbuf *tb;
	int i;

	/* Filled from the front: no place. Events of more threads must not map and unmap memory for nothing. */
	if (__atomic_load_n(&area->tbufs[SCOPE_TBUFS - 1], __ATOMIC_RELAXED))
		return NULL;
	tb = mmap(NULL, sizeof(*tb), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (tb == MAP_FAILED)
		return NULL;
	/* A child must not hand in its parent's records a second time: it sees zeroes, and starts anew. */
	madvise(tb, sizeof(*tb), MADV_WIPEONFORK);
	tb->h.magic = SCOPE_TBUF_MAGIC;
	tb->h.tag = area->tag;
	tb->h.clock = area->clock;
	tb->h.tid = tid;
	for (i = 0; i < SCOPE_TBUFS; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&area->tbufs[i], &none, (uintptr_t)tb, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return tb;
	}
	munmap(tb, sizeof(*tb));
	return NULL;
}

/*
 * Callbacks of a thread that found no buffer until it looks again: a look is a system call where memory is refused, and
 * where all buffers are taken a read of each, 4096 cache misses. What such a callback costs must not be up to that.
 */
#define NOBUF_SKIP 1023

struct tbuf *tbuf_slow(void)
{
	static __thread uint32_t skip TLS_NO_CALL;
	uint32_t epoch = __atomic_load_n(&ncclscope_control.epoch, __ATOMIC_ACQUIRE);
	struct scope_area *area = area_get();
	struct tbuf *tb = tbuf_self;
	uint32_t tid;

	if (!area)
		return NULL;
	if (!tb ||
	    tb->h.magic != SCOPE_TBUF_MAGIC) { /* new thread, or first callback after a fork */
		if (skip) {
			skip--;
			return NULL;
		}
		pthread_once(&exit_key_once, make_exit_key);
		tid = (uint32_t)syscall(SYS_gettid);
		tb = tbuf_reuse(area, tid);
		if (!tb)
			tb = tbuf_make(area, tid);
		if (!tb) {
			skip = NOBUF_SKIP;
			return NULL;
		}
		tbuf_self = tb;
		if (exit_key_ok)
			pthread_setspecific(exit_key, tb);
	}
	/*
	 * A new epoch: somebody new listens. Records go to those who listened before; strings are told
	 * again; and flush_ts = 0 makes the next callback flush, which tells BPF where this buffer is. Ids come
	 * from a new block, so that a child of what began before is known by its parent's id.
	 */
	if (tb->h.len)
		tbuf_flush(tb, SCOPE_FLUSH_EPOCH);
	memset(tb->h.strings, 0, sizeof(tb->h.strings));
	tb->h.flush_ts = 0;
	tb->h.end_id = tb->h.next_id;
	tb->h.epoch = epoch;
	return tb;
}

void tbuf_missed(void)
{
	struct scope_area *area = area_peek();

	if (area)
		__atomic_fetch_add(&area->nobuf_lost_cnt, 1, __ATOMIC_RELAXED);
}

/* ---- Ids --------------------------------------------------------------------------------------- */

uint64_t id_slow(struct tbuf *tb, uint32_t what)
{
	struct scope_area *area = area_get();
	uint64_t first;

	/* No memory at all: an id that is no event's. NCCL needs only that it is not NULL. */
	if (!area)
		return id_make(SCOPE_TAG_NONE, what, 1);
	if (!tb)
		return id_make(area->tag, what,
			       __atomic_fetch_add(&area->ids, 1, __ATOMIC_RELAXED));
	first = __atomic_fetch_add(&area->ids, ID_BLOCK, __ATOMIC_RELAXED);
	tb->h.next_id = first;
	tb->h.end_id = first + ID_BLOCK;
	return id_make(tb->h.tag, what, tb->h.next_id++);
}

/* ---- Interned strings -------------------------------------------------------------------------- */

/* Keyed by address: NCCL's strings are static. Slot i has string id i; slot 0 stays empty. */
static const char *strings[SCOPE_STRINGS];

static uint16_t string_slot(const char *s)
{
	uint32_t i, n, at = (uint32_t)(((uintptr_t)s * 0x9e3779b97f4a7c15ULL) >> 56);

	for (n = 0; n < SCOPE_STRINGS; n++) {
		const char *was;

		i = (at + n) % SCOPE_STRINGS;
		if (!i)
			continue;
		was = __atomic_load_n(&strings[i], __ATOMIC_RELAXED);
		if (was == s)
			return (uint16_t)i;
		if (!was && (__atomic_compare_exchange_n(&strings[i], &was, s, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
			     was == s))
			return (uint16_t)i;
	}
	return 0;
}

static void string_announce(struct tbuf *tb, uint16_t id, const char *s)
{
	uint32_t len = (uint32_t)strnlen(s, SCOPE_STRING_MAX);
	uint32_t size = (uint32_t)sizeof(struct scope_rec_hdr) + ((len + 7) & ~7u);
	struct scope_rec_hdr *r = tbuf_reserve(tb, size);

	*r = (struct scope_rec_hdr){.size = (uint16_t)size,
				    .kind = SCOPE_REC_STRING,
				    .u8 = (uint8_t)len,
				    .u32 = id,
				    .ts = clock_now()};
	memcpy(r + 1, s, len);
	memset((char *)(r + 1) + len, 0, size - sizeof(*r) - len);
	tbuf_commit_as(tb, size, 0); /* told again after a loss, so never lost itself */
	tb->h.strings[id / 64] |= 1ULL << (id % 64);
}

uint16_t string_id(struct tbuf *tb, const char *s)
{
	uint16_t id;

	if (!s)
		return 0;
	id = string_slot(s);
	if (id && tb && unlikely(!(tb->h.strings[id / 64] & 1ULL << (id % 64))))
		string_announce(tb, id, s);
	return id;
}
