/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recorder tells of itself in its status file, once a second. */
#ifndef NCCLSCOPE_STATUS_SELF_H
#define NCCLSCOPE_STATUS_SELF_H

#include <stdbool.h>
#include <stdint.h>

struct digest_counts;
struct recorder;
struct session;

struct status_self { /* zero at first */
	bool tried;
	char *session;	   /* its part, as it was told last */
	uint64_t asked_ns; /* it was asked for then; 0: not since the last write */
	int dirfd;	   /* -1 once tried: no file */
	uint64_t start;	   /* of our process, in clock ticks */
	uint64_t next_ns;
	uint64_t cost_ns;   /* of the last write, all in all */
	uint64_t sleeps_ns; /* since then, until the next recording; 0: it records */
};

/*
 * Writes the file if it is time. Failure is no disaster: nobody sees us in `ncclscope status`. Whether it found that another recorder was
 * killed, whose file is away then.
 */
bool status_self__tick(struct status_self *s, const struct recorder *r, uint64_t now);

/* The same while we wait for who makes the traces: what that has told stays as it is; if it has told nothing, that is what is known. */
void status_self__waits(struct status_self *s, const struct recorder *r, uint64_t now);

/* Nothing is recorded before until_ns; the file stays until the recorder tells of what it records then. */
void status_self__sleeps(struct status_self *s, const struct recorder *r, uint64_t until_ns,
			 uint64_t now);

/*
 * What is known of the traces and of whose they are: an object of JSON, the caller's to free; NULL: no memory. By the thread whose session
 * it is.
 */
char *status_session(const struct session *s, const struct digest_counts *counts);

/* Removes the file. Safe twice, and without a tick before. */
void status_self__close(struct status_self *s);

#endif
