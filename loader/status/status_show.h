/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `ncclscope status` has found, as JSON or as a table of at most 100 columns. Text that comes from a job is
 * escaped: no control character reaches the terminal.
 */
#ifndef NCCLSCOPE_STATUS_SHOW_H
#define NCCLSCOPE_STATUS_SHOW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>

#define STATUS_WIDTH 100

/* `doc` is what ncclscope-status(1) explains. 0 or -errno. */
int status_show__json(const json_t *doc, FILE *f);

/* now_us: CLOCK_MONOTONIC, as in the document; comms: with each communicator. */
void status_show__table(const json_t *doc, uint64_t now_us, bool comms, FILE *f);

/*
 * A mask in words, of at most `width` bytes: "none", "all", "all but kernelch", "coll,p2p", "coll,p2p,+3". `all`
 * is what there is to be had. buf has width + 1 bytes; 24 are enough for any mask.
 */
void status_mask_text(char *buf, size_t width, uint32_t mask, uint32_t all);

#endif
