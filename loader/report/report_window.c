// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which recordings of several processes were made at the same time: with `record --every` each window has a file for each process,
 * and one that did nothing in a window has none. What a rank sends in one is not received in another.
 */
#include <errno.h>
#include <stdlib.h>
#include "clock.h"
#include "report_priv.h"

#define SLACK_NS ((int64_t)NSEC_PER_SEC) /* processes of one window are found one after the other */

/* What was recorded at a time, of the processes whose times are of one clock. */
struct report_window {
	uint64_t clock;
	/* Of that clock's, from 0: by it go those of nodes whose clocks do not compare. */
	uint32_t nr;
	uint32_t open;	  /* files of it that are being read */
	int64_t from, to; /* by the real clock: so far */
};

static bool is_in(const struct report_proc *self, uint32_t i)
{
	return self->windows[i / 64] >> i % 64 & 1;
}

/* Whether a recording that begins at @first can be of that window: others of it go on, or were of that time. */
static bool has_room_for(const struct report_window *w, const struct report_proc *p, int64_t first)
{
	return w->clock == p->clock &&
	       (w->open || (first >= w->from - SLACK_NS && first <= w->to + SLACK_NS));
}

static int32_t add_window(struct report *r, const struct report_proc *p, int64_t first)
{
	struct report_window *w;
	uint32_t nr = 0, i;

	if (r->nwindows == REPORT_WINDOWS)
		return REPORT_WINDOWS - 1;
	for (i = 0; i < r->nwindows; i++)
		nr += r->windows[i].clock == p->clock;
	if (!r->windows)
		r->windows = calloc(REPORT_WINDOWS, sizeof(*r->windows));
	if (!r->windows) {
		r->err = -ENOMEM;
		return -1;
	}
	w = &r->windows[r->nwindows];
	*w = (struct report_window){.clock = p->clock, .nr = nr, .from = first, .to = first};
	return (int32_t)r->nwindows++;
}

static int32_t find_window(struct report *r, const struct report_proc *p, int64_t at)
{
	int64_t first = p->first < INT64_MAX ? p->first + p->offset : at;
	uint32_t i;

	for (i = 0; i < r->nwindows; i++)
		if (has_room_for(&r->windows[i], p, first) && !is_in(p->self, i))
			return (int32_t)i;
	return add_window(r, p, first);
}

uint32_t report_window_of(struct report *r, struct report_proc *p, int64_t at)
{
	struct report_window *w;

	if (p->window < 0) {
		p->window = find_window(r, p, at);
		if (p->window < 0)
			return 0;
		p->self->windows[p->window / 64] |= UINT64_C(1) << p->window % 64;
		r->windows[p->window].open++;
	}
	w = &r->windows[p->window];
	w->to = at > w->to ? at : w->to;
	return w->nr;
}

void report_window_end(struct report *r, const struct report_proc *p)
{
	if (p->window >= 0)
		r->windows[p->window].open--;
}
