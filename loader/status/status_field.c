// SPDX-License-Identifier: BSD-2-Clause
/* Fields of status files; see status_field.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clock.h"
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

bool status_field__is_in(const json_t *recorder, const char *state)
{
	return !strcmp(status_field__string(recorder, "state"), state);
}

const char *status_field__when(char buf[STATUS_WHEN], uint64_t monotonic_us)
{
	uint64_t error_ns, offset_us = (uint64_t)(realtime_offset_ns(&error_ns) / 1000);
	/* the nearest second is what was meant: the offset is never read twice alike */
	time_t then = (time_t)((monotonic_us + offset_us + 500000) / 1000000);
	long long away = (long long)then - (long long)time(NULL);
	struct tm tm;

	if (!localtime_r(&then, &tm) ||
	    !strftime(buf, STATUS_WHEN, llabs(away) < 24 * 3600 ? "%T" : "%F %T", &tm))
		strcpy(buf, "-");
	return buf;
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
