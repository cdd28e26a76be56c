/* SPDX-License-Identifier: BSD-2-Clause */
/* What many lines of a process' trace have in common: numbers of threads and of communicators, as text. A process has it. */
#ifndef NCCLSCOPE_TRACE_TEXT_H
#define NCCLSCOPE_TRACE_TEXT_H

#include <stdint.h>
#include "json.h"

#define TRACE_THREADS                                                                              \
	8 /* by the lower bits of their numbers: whoever comes later takes the place */
#define TRACE_COMMS    4
#define TRACE_COMM_MAX 320 /* 36 characters, escaped, and three numbers with their keys */

struct trace_thread {
	uint32_t tid, host_tid;
	struct json_text text; /* of length 0: none yet */
};

struct trace_comm {
	uint64_t ctx, hash;
	int32_t rank;
	uint16_t len; /* 0: none yet */
	char text[TRACE_COMM_MAX];
};

/* All zero at first. */
struct trace_texts {
	struct trace_thread thread[TRACE_THREADS];
	struct trace_comm comm[TRACE_COMMS];
};

#endif
