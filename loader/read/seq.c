// SPDX-License-Identifier: BSD-2-Clause
/* Numbers of collectives; see seq.h. */
#include <stdio.h>
#include <string.h>
#include "seq.h"

bool seq__of_header(const struct json_doc *doc, const struct json_node *header)
{
	const struct json_node *version = jn_get(doc, header, "ncclVersion");
	unsigned int major, minor;
	char text[16] = "";

	if (!version || version->kind != JSON_KIND_STR || version->len >= sizeof(text))
		return true;
	memcpy(text, version->s, version->len);
	return sscanf(text, "%u.%u", &major, &minor) != 2 || major > 2 || minor > 25;
}

bool seq__is_common(const struct json_doc *doc, const struct json_node *details, bool by_header)
{
	const struct json_node *common = jn_get(doc, details, "seqCommon");

	return common ? jn_true(common) : by_header;
}
