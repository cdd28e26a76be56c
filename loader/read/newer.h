/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces of a later schema than ours: what is in them may mean something else. */
#ifndef NCCLSCOPE_NEWER_H
#define NCCLSCOPE_NEWER_H

#include <stdbool.h>
#include <stdint.h>
#include "check_json.h"

#define NEWER_KNOWN 1 /* the schema that we know */

/* The schema that a header says, if it is a later one; else 0. */
uint64_t newer__schema(const struct json_doc *doc, const struct json_node *header);
/* If it is, says so: true. For those who go on. */
bool newer__warn(const struct json_doc *doc, const struct json_node *header, const char *path);

#endif
