/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The input of fuzz_control: one byte that says what is asked for, then a job's memory as items, each followed
 * by `len` bytes that lie `at` bytes behind the place that `where` names.
 */
#ifndef NCCLSCOPE_TESTS_CONTROL_ITEM_H
#define NCCLSCOPE_TESTS_CONTROL_ITEM_H

#include <stdint.h>

enum control_where {
	CONTROL_BLOCK,
	CONTROL_AREA,
	CONTROL_COMMS, /* in the area */
	CONTROL_TBUF,
	CONTROL_MASKS,
	CONTROL_LINE, /* not memory: a line of /proc/PID/maps */
	CONTROL_WHERES,
};

/* Where they lie, unless the control block says something else. */
#define CONTROL_BLOCK_AT 0x1000ull
#define CONTROL_MASKS_AT 0x1800ull
#define CONTROL_TBUF_AT	 0x2000ull
#define CONTROL_AREA_AT	 0x10000ull

struct control_item {
	uint8_t where; /* enum control_where */
	uint8_t pad;
	uint16_t len;
	uint32_t at;
};

#endif
