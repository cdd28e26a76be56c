/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's log (/dev/kmsg): of what the kernel itself says, the lines that tell why a job may be slow or hang. Whoever else writes
 * there, and other lines, are left out: the log may be root's (kernel.dmesg_restrict), and a trace is the job's user's.
 */
#ifndef NCCLSCOPE_KMSG_H
#define NCCLSCOPE_KMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "clock.h"

#define KMSG_TEXT_MAX 200 /* bytes of a line; what is beyond is cut off */

/* What a line is a sign of; in captures, and so append-only. */
enum kmsg_sign {
	KMSG_NO_SIGN,
	KMSG_GPU,
	KMSG_NVLINK,
	KMSG_PCIE,
	KMSG_HARDWARE,
	KMSG_THERMAL,
	KMSG_MEMORY,
	KMSG_LINK,
	KMSG_NIC,
	KMSG_HUNG_TASK,
	KMSG_LOCKUP,
	KMSG_STORAGE,
	KMSG_FILESYSTEM,
	KMSG_SIGNS,
};

struct kmsg_line {
	uint64_t ns; /* of the log's own clock, which is about CLOCK_MONOTONIC */
	enum kmsg_sign sign;
	uint32_t level; /* 0 (emergency) to 7 (debug) */
	bool device;	/* a driver has said it of a device */
	size_t len;
	char text[KMSG_TEXT_MAX];
};

/* Older lines are of no account to a recording; a job that hangs is often looked at no sooner. */
#define KMSG_RECENT_NS (600 * NSEC_PER_SEC)

#define KMSG_BURST                                                                                 \
	8 /* lines of a sign at once, and then one a second: somebody may have the kernel say things */

struct kmsg {
	int fd;		    /* -1: there is none */
	bool is_read;	    /* all that was there at first */
	uint64_t opened_ns; /* CLOCK_MONOTONIC */
	uint64_t
		lost; /* lines that were overwritten before we came to them, of whatever kind, or were too many of a sign */
	uint64_t next;		       /* the number that is due; 0: any */
	uint64_t share_ns[KMSG_SIGNS]; /* used up until then */
};

enum kmsg_sign kmsg__sign(const struct kmsg_line *line);
/* "gpu", "link", ...; NULL: it is none, or of a newer recorder. A constant. */
const char *kmsg__sign_name(uint32_t sign);

/* A record as /dev/kmsg gives it. False: it is none, or not the kernel's. *seq is its number (of any that is one). */
bool kmsg__parse(const char *record, size_t len, struct kmsg_line *line, uint64_t *seq);

/* From its oldest line on. 0 or -errno: then fd is -1. */
int kmsg__open(struct kmsg *k);
void kmsg__close(struct kmsg *k);

/*
 * The next line that is a sign of something, of at most *budget lines, which goes down by those that were read. 1; 0: there is none, now or
 * within the budget; -errno: there will be none.
 */
int kmsg__next(struct kmsg *k, struct kmsg_line *line, uint32_t *budget);

/* Whether there is room for one more of that sign, now; else it counts as lost. */
bool kmsg__has_share(struct kmsg *k, enum kmsg_sign sign, uint64_t now);

#endif
