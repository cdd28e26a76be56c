// SPDX-License-Identifier: BSD-2-Clause
/* Values as people read them; see human.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "human.h"

/* Printable ASCII as it is, any other byte as \xNN. Cut to `width`, at the front or at the end. */
const char *human__clean(char buf[HUMAN_CELL], const char *s, size_t width, bool keep_end)
{
	char text[4 * 4096 + 1];
	size_t n = 0, i;

	for (i = 0; s && s[i] && n + 4 < sizeof(text); i++) {
		if (s[i] >= 0x20 && s[i] < 0x7f)
			text[n++] = s[i];
		else
			n += (size_t)sprintf(text + n, "\\x%02x", (unsigned char)s[i]);
	}
	text[n] = 0;
	if (width > HUMAN_CELL - 1)
		width = HUMAN_CELL - 1;
	if (n <= width)
		memcpy(buf, text, n + 1);
	else if (keep_end)
		snprintf(buf, width + 1, "..%s", text + n - width + 2);
	else
		snprintf(buf, width + 1, "%.*s..", (int)width - 2, text);
	return buf;
}

const char *human__count(char buf[HUMAN_CELL], uint64_t n)
{
	if (n < 10000000000ull)
		snprintf(buf, HUMAN_CELL, "%" PRIu64, n);
	else
		snprintf(buf, HUMAN_CELL, "%.2fe9", (double)n / 1e9);
	return buf;
}

const char *human__bytes(char buf[HUMAN_CELL], uint64_t n)
{
	static const char units[] = "BKMGTPE";
	double v = (double)n;
	int i;

	for (i = 0; v >= 1000 && units[i + 1]; i++)
		v /= 1024;
	snprintf(buf, HUMAN_CELL, i && v < 10 ? "%.1f%c" : "%.0f%c", v, units[i]);
	return buf;
}

const char *human__time(char buf[HUMAN_CELL], uint64_t us)
{
	uint64_t s = us / 1000000;

	if (s < 10)
		snprintf(buf, HUMAN_CELL, "%.1fs", (double)us / 1e6);
	else if (s < 100)
		snprintf(buf, HUMAN_CELL, "%" PRIu64 "s", s);
	else if (s < 100 * 60)
		snprintf(buf, HUMAN_CELL, "%" PRIu64 "m%02us", s / 60, (unsigned int)(s % 60));
	else if (s < 48 * 3600)
		snprintf(buf, HUMAN_CELL, "%" PRIu64 "h%02um", s / 3600,
			 (unsigned int)(s / 60 % 60));
	else
		snprintf(buf, HUMAN_CELL, "%" PRIu64 "d%02uh", s / 86400,
			 (unsigned int)(s / 3600 % 24));
	return buf;
}
