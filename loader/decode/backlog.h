/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inputs on their way from the thread that reads the world to the one that makes traces of them: in memory, and in a file that
 * nobody sees when that would be too much. One puts, one takes; neither ever holds a lock that the other needs, so that the one who takes may
 * be kept from its CPU for as long as others want that.
 */
#ifndef NCCLSCOPE_BACKLOG_H
#define NCCLSCOPE_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct backlog;

/* There is a table of what may wait in the file: at most a thousandth of that. */
#define BACKLOG_FILE_MAX (512ull << 30)

struct backlog_rec {
	uint32_t kind;
	uint32_t size;
	const void *data; /* aligned to 8 bytes; valid until the next one is taken */
};

/* What the one who puts sees of it. */
struct backlog_state {
	uint64_t put_bytes, taken_bytes; /* since it was made */
	uint64_t file_bytes;		 /* of what is not taken, in the file */
	uint64_t oldest_ns; /* CLOCK_MONOTONIC: when the oldest of it was put; 0: all is taken */
};

/*
 * `dir`: where the file may be made, a directory that is open; -1: nowhere; it stays the caller's and open. file_max: bytes in it, at
 * most, up to BACKLOG_FILE_MAX; `waits`: called with `arg` again and again while there is no room, by the one who puts. NULL: no memory.
 */
struct backlog *backlog__new(int dir, uint64_t file_max, void (*waits)(void *arg), void *arg);

/* ---- The one who puts ---------------------------------------------------------------------------- */

/* Copies `data`. Waits where there is no room: what comes meanwhile has to be lost, and counted, before. */
void backlog__put(struct backlog *b, uint32_t kind, const void *data, size_t size);

/* What has been put may be taken: at every turn. */
void backlog__push(struct backlog *b);

struct backlog_state backlog__state(const struct backlog *b);

/* ---- The one who takes --------------------------------------------------------------------------- */

/* The next one; waits for it. 0, or -errno: the file cannot be read, what was in that part of it is gone. */
int backlog__take(struct backlog *b, struct backlog_rec *rec);

/* ---- Nobody does any more ------------------------------------------------------------------------ */

void backlog__free(struct backlog *b);

#endif
