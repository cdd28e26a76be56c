/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a job's ticks to CLOCK_MONOTONIC. The loader runs on the same machine and reads the same
 * counter, so it keeps a history of (ticks, ns) pairs and interpolates between the two around a record:
 * exact also while NTP changes the rate, and
 * one monotone function for the whole recording, unless the counter begins anew, since pairs are only ever added at the end. Every new pair checks the
 * fit that was in use before it.
 */
#ifndef NCCLSCOPE_CLOCK_H
#define NCCLSCOPE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "scope_abi.h"

/* Signed, as the kernel's: right for times of both kinds. */
#define NSEC_PER_SEC INT64_C(1000000000)

#define CLOCK_HISTORY 65536 /* pairs: seconds at the highest rate of chunks, more at others */
#define CLOCK_COARSE  4096  /* pairs at least 10 ms apart, for records older than all of those */

struct clock_pair {
	uint64_t ticks;
	uint64_t ns;
};

/* A ring of pairs, oldest first from `first`. */
struct clock_ring {
	struct clock_pair *pair;
	uint32_t size, first, n;
};

struct clock_fit {
	struct clock_pair *pairs; /* of both rings: a megabyte, whose pages come as they are used */
	struct clock_ring fine, coarse;
	/* Around what was asked for last; between two of 0 lies nothing. */
	struct clock_pair begin, end;
	uint8_t source;		/* enum scope_clock of the ticks */
	uint64_t hz;		/* measured over the whole history, 0 before the second pair */
	uint64_t error_ns;	/* largest |predicted - measured| of a new pair, ever */
	uint64_t last_error_ns; /* of the last one */
};

/* Reads the counter that the plugin reads on this machine. */
uint64_t clock_ticks(uint8_t source);
/* The clock that plugins on this machine use. */
uint8_t clock_source(void);

/* -ENOMEM */
int clock_fit__init(struct clock_fit *fit, uint8_t source);
/* All zero is fine, too. */
void clock_fit__free(struct clock_fit *fit);

/* A pair of now; false where ticks are nanoseconds, and none is needed. */
bool clock_pair__read(uint8_t source, struct clock_pair *pair);

/* Adds a pair. One that is not later than the newest is left; but a counter that has begun anew has its pairs from there. */
void clock_fit__add(struct clock_fit *fit, uint64_t ticks, uint64_t ns);

/* CLOCK_MONOTONIC in ns of a record. `source` is the record's; ns pass through. */
uint64_t clock_fit__to_ns(struct clock_fit *fit, uint8_t source, uint64_t ticks);

/* Whether what was made until `ns` lies within the pairs; else add another before it is converted. */
bool clock_fit__covers(const struct clock_fit *fit, uint64_t ns);

/* CLOCK_MONOTONIC of the node, which is what the kernel stamps with: also where a time namespace has another. */
uint64_t monotonic_ns(void);
/* That, for a call that waits until then by CLOCK_MONOTONIC. */
struct timespec monotonic_until(uint64_t ns);

/* What our time namespace adds to CLOCK_BOOTTIME, by which /proc/PID/stat has when a process started. */
int64_t boottime_ahead_ns(void);

/* Of the clock ticks in which files of /proc count. */
int64_t proc_tick_ns(void);

/* Any other clock of the kernel's, as CLOCK_THREAD_CPUTIME_ID, in ns; 0: there is no such clock. */
uint64_t clock_ns(clockid_t clock);

/* At most so long, below a second: a signal ends it. */
void sleep_ns(long ns);

/* CLOCK_REALTIME - CLOCK_MONOTONIC in ns, and the bound of its error. */
int64_t realtime_offset_ns(uint64_t *error_ns);

#endif
