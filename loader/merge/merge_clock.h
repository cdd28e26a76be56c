/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far the clocks of nodes are apart, from messages between them: none arrives before it was sent. One that was fast bounds
 * the difference from one side, one that went back, over whatever nodes, from the other. Pure: no I/O, no clock.
 *
 * Times of a node are ns of a clock that is about the others' (its real clock, by what its recorder says of it), so that the
 * differences are small. docs/merge.md says how good it is.
 */
#ifndef NCCLSCOPE_MERGE_CLOCK_H
#define NCCLSCOPE_MERGE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define MERGE_NODES_MAX 4096

struct merge_clock;

/* What is to be added to the times of a node for those of the reference. */
struct merge_fit {
	int64_t add; /* ns */
	int64_t error; /* ns: it is off by at most so much, at any time; -1: not known, no message came and went */
};

struct merge_clock *merge_clock__new(void);    /* NULL: no memory */
void merge_clock__free(struct merge_clock *c); /* takes NULL */

/* What left @from at @sent was on @to at @arrived, or earlier. Nodes are numbers, other than each other. 0 or -ENOMEM. */
int merge_clock__message(struct merge_clock *c, uint32_t from, int64_t sent, uint32_t to,
			 int64_t arrived);

/* The error is to hold for this time of @node, too, as for that of each message. 0 or -ENOMEM. */
int merge_clock__time(struct merge_clock *c, uint32_t node, int64_t ns);

/*
 * For nodes 0 to n - 1, of which there are MERGE_NODES_MAX at most, in the clock of @ref. What @fits have to add before is taken where
 * messages say nothing. 0 or -ENOMEM.
 */
int merge_clock__solve(const struct merge_clock *c, uint32_t n, uint32_t ref,
		       struct merge_fit *fits);

#endif
