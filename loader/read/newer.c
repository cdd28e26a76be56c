// SPDX-License-Identifier: BSD-2-Clause
/* Traces of a later schema; see newer.h. */
#include <inttypes.h>
#include "log.h"
#include "newer.h"

uint64_t newer__schema(const struct json_doc *doc, const struct json_node *header)
{
	uint64_t nr;

	return jn_u64(jn_get(doc, header, "schema"), &nr) && nr > NEWER_KNOWN ? nr : 0;
}

bool newer__warn(const struct json_doc *doc, const struct json_node *header, const char *path)
{
	uint64_t nr = newer__schema(doc, header);

	if (nr)
		pr_warn("'%s' is of schema %" PRIu64 ", this ncclscope knows %d: what is said of "
			"it may be wrong; update ncclscope\n",
			path, nr, NEWER_KNOWN);
	return nr;
}
