/* SPDX-License-Identifier: BSD-2-Clause */
/* Whoever time is put down to: processes that ran while a thread waited, or the system calls that it slept in. */
#ifndef NCCLSCOPE_SCHED_CULPRITS_H
#define NCCLSCOPE_SCHED_CULPRITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "scope_abi.h"

#define CULPRITS_MAX 256 /* told apart; beyond, the smallest are dropped */

struct culprit {
	uint64_t ns;
	uint32_t id;		   /* tgid, or why */
	char comm[SCOPE_COMM_LEN]; /* filled up with 0 */
};

struct culprits {
	struct culprit at[CULPRITS_MAX]; /* the first n count */
	uint32_t n;
	bool dropped; /* there were more */
};

/* Both of SCOPE_COMM_LEN bytes. */
static inline void comm_copy(char *to, const char *from)
{
	size_t len = strnlen(from, SCOPE_COMM_LEN);

	memcpy(to, from, len);
	memset(to + len, 0, SCOPE_COMM_LEN - len);
}

static inline void culprits__clear(struct culprits *c)
{
	c->n = 0;
	c->dropped = false;
}

void culprits__copy(struct culprits *to, const struct culprits *from);

/* ns more of one; of another with the same id, if the name is another. */
void culprits__add(struct culprits *c, const struct culprit *one);
/* So much less: of one that was added, where none was dropped. */
void culprits__take(struct culprits *c, const struct culprit *one);

/* The few that count most come first, at most `top`; how many. */
uint32_t culprits__rank(struct culprits *c, uint32_t top);

#endif
