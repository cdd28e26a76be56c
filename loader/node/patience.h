/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading what is a job's can take for as long as its user likes: a page of its memory, its command line
 * or a file may lie on a file system (FUSE) that they serve, and not even SIGKILL ends the wait for a page
 * that another thread has asked for. So it is done in a process that can be left behind: forked from this one, without
 * its descriptors, asked over a socket.
 */
#ifndef NCCLSCOPE_PATIENCE_H
#define NCCLSCOPE_PATIENCE_H

#include <stddef.h>
#include <stdint.h>

/* What goes there and comes back. Descriptors: -1 none. */
struct patience_call {
	const void *in; /* the caller's */
	size_t in_len;
	int in_fd; /* the caller's; there, one of its own, closed after the call */
	void *out; /* malloc'ed there, and here: the caller's, NULL where out_len is 0 */
	size_t out_len;
	int out_fd; /* made there, closed there after the call; here, one of the caller's own */
};

/*
 * Has the other process call fn, which reads what is `uid`'s. What fn returned, <= 0; or -ETIMEDOUT: it hangs; -EBUSY: too
 * many of that user's hang already, or of all, or they have been waited for too long, all together; another -errno: there is
 * no such process, or it died.
 */
int patience__call(int (*fn)(struct patience_call *call), struct patience_call *call, uint32_t uid);

/*
 * For how long to leave alone what gave no answer (-ETIMEDOUT, -EBUSY), which may pass: 30 s, then twice as long as the last
 * time, up to 10 minutes. 0 before the first time.
 */
uint64_t patience__pause(uint64_t last_ns);

/*
 * Ends the process: the next call gets a new one, with the privileges that this one has then. Those that
 * hang stay for as long as they hang; they have nothing of ours.
 */
void patience__end(void);

#endif
