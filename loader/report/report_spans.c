// SPDX-License-Identifier: BSD-2-Clause
/* Of which times somebody has told already, where several tell of the same thing; see report.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report_priv.h"
#include "search.h"

static bool ends_from(const void *of, uint64_t i, uint64_t at)
{
	const struct report_spans *s = of;

	return s->at[i].to >= (int64_t)at;
}

/* The first that ends at @at or later. */
static uint32_t first_from(const struct report_spans *s, int64_t at)
{
	return (uint32_t)search_later(0, s->n, ends_from, s, (uint64_t)at);
}

bool report_spans_have(const struct report_spans *s, int64_t from, int64_t to)
{
	uint32_t i;

	for (i = first_from(s, from); i < s->n && s->at[i].from < to; i++)
		if (s->at[i].to > from)
			return true;
	return false;
}

/* What the recording has told of before; NULL: nothing, or that is another's by now. */
static const struct report_span *told_by(const struct report_spans *s, uint32_t by)
{
	uint32_t i;

	for (i = s->n; i--;)
		if (s->at[i].by == by)
			return &s->at[i];
	return NULL;
}

/* For one more. */
static bool make_room(struct report *r, struct report_spans *s, uint64_t *left)
{
	uint32_t cap = s->cap ? 2 * s->cap : 4;
	struct report_span *at;

	if (s->n == REPORT_SPANS) {
		(*left)++;
		return false;
	}
	if (s->n < s->cap)
		return true;
	at = reallocarray(s->at, cap, sizeof(*at));
	if (!at) {
		r->err = -ENOMEM;
		return false;
	}
	s->at = at;
	s->cap = cap;
	return true;
}

bool report_spans_add(struct report *r, struct report_spans *s, uint32_t by, int64_t from,
		      int64_t to, uint64_t *left)
{
	const struct report_span *own = told_by(s, by);
	uint32_t i, end;

	if (own) {
		from = least(from, own->from);
		to = most(to, own->to);
	}
	i = first_from(s, from);
	for (end = i; end < s->n && s->at[end].from <= to; end++) {
		from = least(from, s->at[end].from);
		to = most(to, s->at[end].to);
	}
	if (end == i && !make_room(r, s, left))
		return false;
	if (end != i + 1)
		memmove(&s->at[i + 1], &s->at[end], (s->n - end) * sizeof(s->at[0]));
	s->n = s->n - (end - i) + 1;
	s->at[i] = (struct report_span){from, to, by};
	return true;
}
