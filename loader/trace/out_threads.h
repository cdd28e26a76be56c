/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that compress and write, so that whoever makes lines need not: each file is one thread's, so its lines stay in
 * their order. All functions are for one thread only, the files' owner.
 */
#ifndef NCCLSCOPE_OUT_THREADS_H
#define NCCLSCOPE_OUT_THREADS_H

#include <stdint.h>
#include "out.h"

#define OUT_THREADS_MAX 64

struct out_threads;

/*
 * Up to n threads, at most OUT_THREADS_MAX; says so where there are less. NULL: there is none. The caller's, for
 * out_threads__free().
 */
struct out_threads *out_threads__new(uint32_t n);

/* Ends the threads; their files have been closed. NULL is fine. */
void out_threads__free(struct out_threads *t);

/* The one that the next file is to have: by turns. NULL of NULL. */
struct out_writer *out_threads__next(struct out_threads *t);

/*
 * Takes over the batch's buffer, and gives another one for it, empty or NULL. Waits while the thread has as much as it
 * may have. What has become of older batches is accounted.
 */
void out_writer__put(struct out_writer *w, struct out_batch *batch);

/* Waits until the thread has nothing more of the file, and accounts it. */
void out_writer__settle(struct out_writer *w, const struct out_file *file);

#endif
