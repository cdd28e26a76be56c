/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of fuzz_decode: items, each followed by `len` bytes of records, as a job would flush them. */
#ifndef NCCLSCOPE_TESTS_FUZZ_ITEM_H
#define NCCLSCOPE_TESTS_FUZZ_ITEM_H

#include <stdint.h>

struct fuzz_item {
	uint16_t len;
	uint8_t kind; /* enum scope_ev_kind; others become chunks */
	uint8_t proc; /* which process (low 2 bits) and buffer (the others) */
	uint32_t rec_cnt;
	uint64_t pos;
	uint64_t rec_pos;
};

#endif
