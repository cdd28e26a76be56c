// SPDX-License-Identifier: BSD-2-Clause
/* Of which times somebody has told already, where several tell of the same thing; see report.h. */
#include <string.h>
#include "report_priv.h"

bool report_spans_have(const struct report_spans *s, int64_t from, int64_t to)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->at[i].from < to && from < s->at[i].to)
			return true;
	return false;
}

/* The two with the least between them become one. */
static void join_closest(struct report_spans *s)
{
	int64_t gap, least_gap = INT64_MAX;
	uint32_t i, at = 1;

	for (i = 1; i < s->n; i++) {
		gap = s->at[i].from - s->at[i - 1].to;
		if (gap < least_gap) {
			least_gap = gap;
			at = i;
		}
	}
	s->at[at - 1].to = most(s->at[at - 1].to, s->at[at].to);
	s->n--;
	memmove(&s->at[at], &s->at[at + 1], (s->n - at) * sizeof(s->at[0]));
}

void report_spans_add(struct report_spans *s, int64_t from, int64_t to)
{
	uint32_t i;

	for (i = s->n++; i && s->at[i - 1].from > from; i--)
		s->at[i] = s->at[i - 1];
	s->at[i] = (struct report_span){from, to};
	if (s->n > REPORT_SPANS)
		join_closest(s);
}
