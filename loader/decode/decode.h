/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From ring records to correlate's input: checks every length and number that a job may have written,
 * converts times, drops what was seen before, counts what was missed.
 */
#ifndef NCCLSCOPE_DECODE_H
#define NCCLSCOPE_DECODE_H

#include <stddef.h>
#include "session.h"

/* One ring record of `size` bytes. Returns the process it belongs to, NULL if none or ended by it. */
struct proc *decode__event(struct session *s, const void *data, size_t size);

/* One chunk whose header is filled and whose `len` bytes of records follow it. */
struct proc *decode__chunk(struct session *s, const struct scope_ev_chunk *chunk, size_t size);

/*
 * The end of a process: `status` as wait(2) has it, `exec` if it became another program; lost_recs as
 * counted by BPF, of which what came after the last chunk is news.
 */
void decode__end(struct proc *p, int status, bool exec, uint64_t lost_recs);

/* Counts what the ring had no room for after the last chunk that came through. */
void decode__tail_loss(struct proc *p, uint64_t lost_recs);
/* Of a process none of whose records came through, so that it has no trace: all that it lost, and how many of these for its share. */
void decode__untold_loss(struct session *s, uint64_t lost_recs, uint64_t limited_recs);

#endif
