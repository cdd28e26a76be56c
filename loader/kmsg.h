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

#define KMSG_TEXT_MAX 200 /* bytes of a line; what is beyond is cut off */

struct kmsg_line {
	uint64_t ns;	/* of the log's own clock, which is about CLOCK_MONOTONIC */
	uint32_t level; /* 0 (emergency) to 7 (debug) */
	size_t len;
	char text[KMSG_TEXT_MAX];
};

struct kmsg {
	int fd;	       /* -1: there is none */
	bool is_read;  /* all that was there at first */
	uint64_t lost; /* lines that were overwritten before we came to them, of whatever kind */
	uint64_t next; /* the number that is due; 0: any */
};

/* What a line is a sign of: "gpu", "link", ...; NULL: nothing that we look for. A constant. */
const char *kmsg__sign(uint32_t level, const char *text, size_t len);

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

#endif
