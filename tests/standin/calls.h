/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of callbacks: how many each thread has begun and how many have returned, by kind, in a file that
 * all processes of the job share. It outlives every one of them, however that ends: a test holds a trace
 * against it.
 */
#ifndef STANDIN_CALLS_H
#define STANDIN_CALLS_H

#include <stdint.h>

#define CALLS_MAGIC   0x736c6c6163ull /* "calls" */
#define CALLS_THREADS 8192
#define CALLS_TYPES   16 /* event types: bits of the mask */
#define CALLS_STATES  32

enum call_kind {
	CALL_INIT,
	CALL_FINALIZE,
	CALL_STOP,
	CALL_STOP_NULL, /* of a handle that no start has given */
	CALL_START,
	CALL_STATE = CALL_START + CALLS_TYPES,
	CALL_KINDS = CALL_STATE + CALLS_STATES,
};

struct calls_thread {
	int32_t pid, tid; /* as the process sees itself; the tid comes last, 0 until then */
	uint64_t begun[CALL_KINDS], returned[CALL_KINDS];
};

struct calls_file {
	uint64_t magic;
	uint64_t nthreads; /* that wanted a slot; there are CALLS_THREADS */
	struct calls_thread threads[CALLS_THREADS];
};

#endif
