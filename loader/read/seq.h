/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the numbers of collectives (seq) are the same on all ranks, by what traces tell. */
#ifndef NCCLSCOPE_SEQ_H
#define NCCLSCOPE_SEQ_H

#include <stdbool.h>
#include "check_json.h"

/* Of what @header begins, where nothing else tells: not up to NCCL 2.25, which numbers only what a plugin is told of. */
bool seq__of_header(const struct json_doc *doc, const struct json_node *header);
/* Of a Coll by its details; @by_header: what seq__of_header() says. */
bool seq__is_common(const struct json_doc *doc, const struct json_node *details, bool by_header);

#endif
