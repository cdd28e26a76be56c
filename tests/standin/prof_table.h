/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between prof.c, which knows the events, and prof_table.c, which knows the seven layouts and
 * loads the plugin.
 */
#ifndef STANDIN_PROF_TABLE_H
#define STANDIN_PROF_TABLE_H

#include "internal.h"
#include "prof_abi.h"

/* What only the older layouts of Coll and P2p have. */
struct prof_extra {
	const char *name;
	uint64_t hash;
	int func;
	int type;
	int op;
	size_t traffic;
};

int prof_mask_read(void);
void prof_start(void *ctx, void **handle, ncclProfilerEventDescr_v7_t *d,
		const struct prof_extra *x);
void prof_record(void *handle, int state, ncclProfilerEventStateArgs_v4_t *args);
void prof_record_old(void *handle, int state, size_t trans_size, int steps);
void prof_stop(void *handle);
/* A ProxyStep's stop: the faults about stops take these only, unless told otherwise. */
void prof_stop_step(void *handle);
/* The fault: of ProxyOps their start is told, and nothing more, nor of their steps. */
bool prof_ops_are_silent(void);

#endif
