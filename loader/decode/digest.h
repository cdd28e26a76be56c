/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces while they are recorded: a thread of its own takes the inputs (input.h) through the pipeline and writes, as `convert`
 * does with a capture. Who records only reads the world and puts what it has read here, so it keeps up with the ring on
 * little CPU time; this thread takes what CPU time the job leaves (pace.h), now or later.
 */
#ifndef NCCLSCOPE_DIGEST_H
#define NCCLSCOPE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "input.h"

struct digest;
struct session;

/*
 * For a recording with the options of `like`, whose inputs are put from now on. backlog_max: bytes on the disk for what is not
 * digested, beside the traces where those have a directory already, else where we are. `waits`: called
 * again and again while there is no room for more, by the one who puts; or NULL. NULL: no memory.
 */
struct digest *digest__new(const struct session *like, uint64_t backlog_max,
			   void (*waits)(void *arg), void *arg);

/* The thread begins; what was put before waits for it. 0 or -errno. A thread keeps the privileges that it is born with. */
int digest__start(struct digest *d);

void digest__put(struct digest *d, enum input_kind kind, const void *data, size_t size);

/* A turn of who records is over. */
void digest__turn(struct digest *d, uint64_t now_ns);

/* Whether no operation is under way, by what was put until `now_ns`: asks, and says what is known so far. */
bool digest__settled(struct digest *d, uint64_t now_ns, uint64_t quiet_ns);

/* From now on somebody waits for it to be through. */
void digest__finish(struct digest *d);

/*
 * Waits until all that was put is digested; a line on a terminal tells how far it is where that is long. `turn`: what is to be done
 * meanwhile; NULL: nothing.
 */
void digest__catch_up(struct digest *d, void (*turn)(void *arg), void *arg);

/* The same, and the thread ends; its session is the caller's to look at, until it is freed. */
const struct session *digest__end(struct digest *d);

void digest__free(struct digest *d); /* after its end, or without a start */

/* ---- For the status file ------------------------------------------------------------------------- */

/* What BPF has counted, until then. */
struct digest_counts {
	uint64_t now_ns;
	uint64_t chunks, ring_full;
};

/* Asks for the session's part of it, see status_session(). false: the last answer is not there yet. */
bool digest__ask_status(struct digest *d, const struct digest_counts *counts);

/* The answer; NULL: not yet. Valid until it is asked for again. */
const char *digest__status(struct digest *d);

/* Bytes that are allocated in all, as of the last answer: counting them takes locks that the thread may have. */
uint64_t digest__heap(const struct digest *d);

struct digest_lag {
	uint64_t bytes, file_bytes; /* that wait; of these on the disk */
	uint64_t ns;		    /* since when the oldest does */
	bool gives_way;
};

struct digest_lag digest__lag(const struct digest *d);

#endif
