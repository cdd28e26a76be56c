/* SPDX-License-Identifier: BSD-2-Clause */
/* A line on standard error that tells how far long work is: only on a terminal, without --quiet, and of long inputs. */
#ifndef NCCLSCOPE_PROGRESS_H
#define NCCLSCOPE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* "Reading" */
	bool on, shown;
	uint64_t next_ns;
	uint64_t next; /* bytes; so that asking costs nothing */
};

/* @what stays the caller's. */
void progress__begin(struct progress *p, const char *what);
/* In bytes; as often as anybody likes. Of less than 64 MiB in all nothing is shown. */
void progress__show(struct progress *p, uint64_t done, uint64_t total);
/* Takes the line away. */
void progress__end(struct progress *p);

#endif
