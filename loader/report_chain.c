// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operations one after another, pure: what one has held its ranks up for they bring into the next. What a single operation says of
 * that is report_late.c's.
 */
#include "report_priv.h"

/* How long each rank took from the operation before, which all of them were in that the input has. */
static void take_gaps(struct report_op *op)
{
	struct report_comm *c = op->comm;
	struct report_member *m;
	struct report_part *p;
	uint32_t i;

	for (i = 0; i < op->nparts; i++) {
		p = op->parts[i];
		HASH_FIND(hh, c->members, &p->rank, sizeof(p->rank), m);
		/* a call that did not wait for the operation before was not held up by it */
		if (!m || !m->nr || m->nr != c->nr || m->ended_proc != p->proc ||
		    p->start < m->ended)
			continue;
		p->gap = p->start - m->ended;
		p->held = m->held;
	}
}

static void note_ends(struct report_op *op)
{
	int64_t held[REPORT_LATE];
	uint32_t n = (uint32_t)least(op->nparts, REPORT_LATE), i;
	struct report_comm *c = op->comm;
	struct report_member *m;

	report_held(op, held, n);
	for (i = 0; i < n; i++) {
		HASH_FIND(hh, c->members, &op->parts[i]->rank, sizeof(op->parts[i]->rank), m);
		if (!m)
			continue;
		m->nr = c->nr;
		m->ended_proc = op->parts[i]->proc;
		m->ended = op->parts[i]->stop;
		m->held = held[i];
	}
}

void report_chain(struct report_op *op, int64_t ended)
{
	struct report_comm *c = op->comm;
	bool whole = op->nparts >= HASH_COUNT(c->members);
	uint32_t i;

	take_gaps(op);
	report_carry(op);
	for (i = 0; i < op->nparts; i++)
		whole &= op->parts[i]->known && !op->parts[i]->unfinished;
	if (ended < c->last)
		return;
	c->last = ended;
	c->nr++;
	if (whole)
		note_ends(op);
}
