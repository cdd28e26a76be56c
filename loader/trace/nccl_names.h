/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NCCL's numbers in the words of the trace: event types by bit number, states by number. One table each,
 * for whoever writes, checks or prints.
 */
#ifndef NCCLSCOPE_NCCL_NAMES_H
#define NCCLSCOPE_NCCL_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include "json.h"

/* "ncclProfileColl"; NULL for a bit that no version of the ABI has. `what` is enum scope_what. */
const char *event_type_name(uint32_t what);
/* ,"type":"ncclProfileColl" of the same. */
const struct json_text *event_type_text(uint32_t what);
/* "coll": the name in --mask and in summaries. */
const char *event_type_short(uint32_t what);
/* "ProxyOpInProgress"; NULL for an unknown state. */
const char *event_state_name(uint32_t state);

/* ,"name":"ProxyOpInProgress","id":19 of the same. */
const struct json_text *event_state_text(uint32_t state);

/*
 * A mask from text: decimal, 0x hex, or a list such as "coll,proxystep" ("all", "none"). 0 or -EINVAL.
 */
int event_mask_parse(const char *text, uint32_t *mask);

/* The types that NCCL emits under a mask: a type brings its ancestors along. */
uint32_t event_mask_closure(uint32_t mask);

/* Bytes of an element of "ncclFloat32"; 1 of a type that is not known. */
uint64_t nccl_type_size(const char *name, size_t len);

/*
 * nccl-tests' definitions, of "AllReduce" among n ranks: a rank's buffer, as the trace has it, by the first is
 * the size; that by the second, per time, is busbw.
 */
double nccl_size_factor(const char *func, int32_t n);
double nccl_bus_factor(const char *func, int32_t n);

#endif
