/* SPDX-License-Identifier: BSD-2-Clause */
/* What decode writes of a process: its lines of some kinds, as text. For signal_test.c, kmsg_test.c and gpu_test.c. */
#ifndef NCCLSCOPE_TESTS_TRACE_LINES_H
#define NCCLSCOPE_TESTS_TRACE_LINES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "chunks.h"

#define OWN 4000000000u /* a process: above any that there can be */

static struct session *s;
static char lines[65536];
static size_t used;

/* For chunks_files(): those that one of these is in go behind @lines. */
static const char *wanted[2];

static void take_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;

	assert_non_null(f);
	while (getline(&line, &cap, f) > 0)
		if (strstr(line, wanted[0]) || (wanted[1] && strstr(line, wanted[1])))
			used += (size_t)snprintf(lines + used, sizeof(lines) - used, "%s", line);
	free(line);
	fclose(f);
}

/* The @n-th process hands in a buffer, and so has a trace. */
static struct proc *process(uint32_t n, uint64_t ts_ns)
{
	const struct scope_ev_chunk c = {.h = {.abi = SCOPE_ABI,
					       .kind = SCOPE_EV_CHUNK,
					       .size = sizeof(c),
					       .ts_ns = ts_ns,
					       .start_ns = 10,
					       .tgid = OWN + n,
					       .tid = OWN + n,
					       .ns_tgid = 5 + n,
					       .ns_tid = 5 + n,
					       .comm = "job"},
					 .tbuf = 64,
					 .tag = 7,
					 .clock = SCOPE_CLOCK_MONOTONIC};

	return decode__event(s, &c, sizeof(c));
}

#endif
