// SPDX-License-Identifier: BSD-2-Clause
/* Fields of status files; see status_field.h. */
#include <stdio.h>
#include "status_field.h"

uint64_t status_field__number(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

const char *status_field__string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "-";
}

/* All causes together, and (text not NULL) each with its number. */
uint64_t status_field__lost(const json_t *o, char *text, size_t size)
{
	json_t *lost = json_object_get(o, "lost"), *v;
	uint64_t sum = 0;
	const char *cause;
	size_t n = 0;

	if (text)
		*text = 0;
	json_object_foreach (lost, cause, v) {
		if (!json_is_integer(v) || json_integer_value(v) <= 0)
			continue;
		sum += (uint64_t)json_integer_value(v);
		if (text && n < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s %" JSON_INTEGER_FORMAT,
					      n ? ", " : "", cause, json_integer_value(v));
	}
	return sum;
}
