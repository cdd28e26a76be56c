// SPDX-License-Identifier: BSD-2-Clause
/* Inputs that wait; see backlog.h. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backlog.h"
#include "blocks.h"
#include "clock.h"
#include "log.h"

#define MEMORY_MAX (32u << 20) /* of blocks that wait */
#define SLOTS_MIN  1024u       /* blocks that wait in memory, and some that are not full */
#define RETURNS	   1024	       /* more than MEMORY_MAX has blocks */
#define PUSH_MAX   64	       /* who is so many blocks behind gets whole ones only */
#define ALIGN	   8u
#define PUNCH	   (16u << 20) /* what is taken is given back to the disk in such parts */
#define WAIT_NS	   1000000L

struct rec_hdr {
	uint32_t size;
	uint32_t kind;
};

struct block {
	size_t len, cap;
	_Alignas(ALIGN) unsigned char data[];
};

/* The room in one; what needs more has one of its own, by malloc(). */
#define BLOCK (BLOCKS_SIZE - sizeof(struct block))

_Static_assert(MEMORY_MAX / BLOCKS_SIZE + 2 <= BLOCKS_PIECES * (BLOCKS_PIECE / BLOCKS_SIZE),
	       "those that wait, and the one that is being filled");

/* Written by the one who puts before it counts. */
struct slot {
	struct block *block; /* NULL: in the file */
	uint64_t at;	     /* there */
	uint64_t len, since_ns;
};

struct backlog {
	struct slot *slots;
	uint32_t nslots;	     /* a power of two, as `put` and `taken` begin again at 0 */
	_Atomic uint32_t put, taken; /* slots, ever */
	sem_t more;
	/* Blocks on their way back: only who puts allocates and frees, since malloc has locks. */
	struct block *returns[RETURNS];
	_Atomic uint32_t returned, reclaimed;
	_Atomic uint64_t taken_bytes;
	_Atomic uint64_t file_taken; /* up to where the file has been read, */

	/* The one who puts: */
	int dir, fd; /* fd -1: no file yet */
	uint64_t file_max, file_at, file_punched;
	bool no_file; /* it cannot be made: said */
	struct block *now;
	struct blocks blocks;
	uint64_t now_ns; /* when the first of `now` was put */
	uint64_t memory; /* of blocks that wait */
	uint64_t put_bytes;
	void (*waits)(void *arg);
	void *arg;

	/* The one who takes: */
	unsigned char *read;
	size_t read_cap;
	const unsigned char *at, *end;
};

static size_t padded(size_t size)
{
	return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* So many that the file is full first. Two blocks that follow one another have more in them than one has room for. */
static uint32_t slots_for(uint64_t file_max)
{
	uint64_t need = 2 * ((file_max + MEMORY_MAX) / BLOCK) + SLOTS_MIN;
	uint32_t n = SLOTS_MIN;

	while (n < need)
		n *= 2;
	return n;
}

struct backlog *backlog__new(int dir, uint64_t file_max, void (*waits)(void *arg), void *arg)
{
	struct backlog *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->nslots = slots_for(file_max);
	b->slots = calloc(b->nslots, sizeof(*b->slots));
	if (!b->slots || sem_init(&b->more, 0, 0)) {
		free(b->slots);
		free(b);
		return NULL;
	}
	b->dir = dir;
	b->fd = -1;
	b->file_max = file_max;
	b->waits = waits;
	b->arg = arg;
	return b;
}

/* ---- Blocks -------------------------------------------------------------------------------------- */

static void block_end(struct backlog *b, struct block *block)
{
	if (block->cap > BLOCK)
		free(block);
	else
		blocks__put(&b->blocks, block);
}

static void reclaim(struct backlog *b)
{
	uint32_t n = b->reclaimed,
		 returned = atomic_load_explicit(&b->returned, memory_order_acquire);
	struct block *block;

	for (; n != returned; n++) {
		block = b->returns[n % RETURNS];
		b->memory -= block->cap;
		block_end(b, block);
	}
	b->reclaimed = n;
}

static struct block *block_new(struct backlog *b, size_t need)
{
	size_t cap = need > BLOCK ? need : BLOCK;
	struct block *block = need > BLOCK ? malloc(sizeof(*block) + cap) : blocks__get(&b->blocks);

	if (block)
		*block = (struct block){.cap = cap};
	return block;
}

/* ---- The file ------------------------------------------------------------------------------------ */

static uint64_t file_bytes(const struct backlog *b)
{
	return b->file_at - b->file_taken;
}

/* false: it cannot be made, which is said once. */
static bool file_open(struct backlog *b)
{
	if (b->fd >= 0 || b->no_file)
		return b->fd >= 0;
	if (b->dir >= 0)
		b->fd = openat(b->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	b->no_file = b->fd < 0;
	if (b->no_file)
		pr_warn("Failed to make a file for what is not in the traces yet: %s; continuing "
			"without, and with more of the job's CPU time\n",
			strerror(b->dir < 0 ? ENOTDIR : errno));
	return b->fd >= 0;
}

/* What has been read is given back to the disk; by the one who puts, as the file's locks are the kernel's. */
static void file_trim(struct backlog *b)
{
	uint64_t taken = b->file_taken;

	if (taken == b->file_at) { /* who takes has nothing to do with it then */
		if (b->file_at && ftruncate(b->fd, 0))
			pr_debug("Failed to truncate the backlog: %s\n", strerror(errno));
		b->file_taken = b->file_at = b->file_punched = 0;
	} else if (taken - b->file_punched >= PUNCH) {
		if (fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)b->file_punched, (off_t)(taken - b->file_punched)))
			pr_debug("Failed to punch the backlog: %s\n", strerror(errno));
		b->file_punched = taken;
	}
}

/* All of the block, behind what is there, and where; or false, and nothing. */
static bool file_put(struct backlog *b, const struct block *block, uint64_t *at)
{
	size_t done = 0;
	ssize_t n;

	if (!file_open(b))
		return false;
	file_trim(b);
	if (file_bytes(b) + block->len > b->file_max)
		return false;
	while (done < block->len) {
		n = pwrite(b->fd, block->data + done, block->len - done,
			   (off_t)(b->file_at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* a full disk: there may be room again */
			return false;
		done += (size_t)n;
	}
	*at = b->file_at;
	b->file_at += block->len;
	return true;
}

/* ---- The one who puts ---------------------------------------------------------------------------- */

static bool has_slot(const struct backlog *b)
{
	return b->put - b->taken < b->nslots;
}

static void count(struct backlog *b, struct slot slot)
{
	uint32_t put = b->put;

	b->slots[put % b->nslots] = slot;
	atomic_store_explicit(&b->put, put + 1, memory_order_release);
	sem_post(&b->more);
}

/* Whether `now` found room; then there is none. Memory first; where the file has some, that too, while there is room. */
static bool try_publish(struct backlog *b)
{
	struct block *block = b->now;
	struct slot slot = {.len = block->len, .since_ns = b->now_ns};

	reclaim(b);
	if (!has_slot(b))
		return false;
	if (!b->memory || b->memory + block->cap <= MEMORY_MAX) {
		b->memory += block->cap;
		slot.block = block;
		count(b, slot);
	} else {
		if (!file_put(b, block, &slot.at))
			return false;
		count(b, slot);
		block_end(b, block);
	}
	b->now = NULL;
	return true;
}

static void publish(struct backlog *b)
{
	while (!try_publish(b)) {
		b->waits(b->arg);
		sleep_ns(WAIT_NS);
	}
}

/* Memory that is missing now may be there when something was taken. */
static void begin(struct backlog *b, size_t need)
{
	while (!(b->now = block_new(b, need))) {
		b->waits(b->arg);
		sleep_ns(WAIT_NS);
		reclaim(b);
	}
	b->now_ns = monotonic_ns();
}

void backlog__put(struct backlog *b, uint32_t kind, const void *data, size_t size)
{
	const struct rec_hdr h = {.size = (uint32_t)size, .kind = kind};
	size_t whole = sizeof(h) + padded(size);
	unsigned char *to;

	if (b->now && whole > b->now->cap - b->now->len)
		publish(b);
	if (!b->now)
		begin(b, whole);
	to = b->now->data + b->now->len;
	memcpy(to, &h, sizeof(h));
	if (size)
		memcpy(to + sizeof(h), data, size);
	b->now->len += whole;
	b->put_bytes += whole;
}

void backlog__push(struct backlog *b)
{
	reclaim(b);
	if (b->fd >= 0)
		file_trim(b);
	if (b->now && b->put - b->taken < PUSH_MAX)
		publish(b);
}

struct backlog_state backlog__state(const struct backlog *b)
{
	uint32_t taken = atomic_load_explicit(&b->taken, memory_order_relaxed);
	struct backlog_state s = {.put_bytes = b->put_bytes,
				  .taken_bytes = b->taken_bytes,
				  .file_bytes = file_bytes(b)};

	if (taken != b->put)
		s.oldest_ns = b->slots[taken % b->nslots].since_ns;
	else if (b->now)
		s.oldest_ns = b->now_ns;
	return s;
}

/* ---- The one who takes --------------------------------------------------------------------------- */

/* The slot that was taken is the other's again. */
static void give_back(struct backlog *b)
{
	const struct slot *slot = &b->slots[b->taken % b->nslots];
	uint32_t returned = b->returned;

	atomic_fetch_add_explicit(&b->taken_bytes, slot->len, memory_order_relaxed);
	if (slot->block) {
		b->returns[returned % RETURNS] = slot->block;
		atomic_store_explicit(&b->returned, returned + 1, memory_order_release);
	} else {
		b->file_taken = slot->at + slot->len;
	}
	atomic_store_explicit(&b->taken, b->taken + 1, memory_order_release);
}

static int read_slot(struct backlog *b, const struct slot *slot)
{
	size_t done = 0;
	ssize_t n;

	if (slot->len > b->read_cap) {
		free(b->read);
		b->read = malloc(slot->len);
		b->read_cap = b->read ? slot->len : 0;
		if (!b->read)
			return -ENOMEM;
	}
	while (done < slot->len) {
		n = pread(b->fd, b->read + done, slot->len - done, (off_t)(slot->at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	b->at = b->read;
	return 0;
}

static int next_slot(struct backlog *b)
{
	const struct slot *slot;
	int err = 0;

	while (sem_wait(&b->more))
		;					     /* a signal */
	atomic_load_explicit(&b->put, memory_order_acquire); /* what the slot says is whole */
	slot = &b->slots[b->taken % b->nslots];
	if (slot->block)
		b->at = slot->block->data;
	else
		err = read_slot(b, slot);
	if (err) {
		give_back(b);
		b->at = b->end = NULL;
		return err;
	}
	b->end = b->at + slot->len;
	return 0;
}

int backlog__take(struct backlog *b, struct backlog_rec *rec)
{
	struct rec_hdr h;
	int err;

	if (b->at && b->at == b->end) {
		give_back(b);
		b->at = b->end = NULL;
	}
	if (!b->at) {
		err = next_slot(b);
		if (err)
			return err;
	}
	memcpy(&h, b->at, sizeof(h));
	rec->kind = h.kind;
	rec->size = h.size;
	rec->data = b->at + sizeof(h);
	b->at += sizeof(h) + padded(h.size);
	return 0;
}

/* ---- The end ------------------------------------------------------------------------------------- */

void backlog__free(struct backlog *b)
{
	struct block *block;
	uint32_t n;

	if (!b)
		return;
	reclaim(b);
	for (n = b->taken; n != b->put; n++) {
		block = b->slots[n % b->nslots].block;
		if (block)
			block_end(b, block);
	}
	if (b->now)
		block_end(b, b->now);
	blocks__free(&b->blocks);
	free(b->read);
	if (b->fd >= 0)
		close(b->fd);
	sem_destroy(&b->more);
	free(b->slots);
	free(b);
}
