// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ranks by time, and which of thousands of ranks people are told of: the first ones say nothing, those that have verdicts, and those of
 * which something was found, do; see report.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report_priv.h"

/* ---- Heat map: rank x time --------------------------------------------------------------------------------- */

#define HEAT_ROWS REPORT_PARTS /* 1.1 KiB each */

struct heat_row {
	struct report_row_key {
		uint32_t proc; /* index */
		int32_t rank;
	} key; /* of those that are not their process' first */
	struct report_proc *proc;
	uint32_t nr;			       /* so many came before it */
	double op[HEAT_COLS], wait[HEAT_COLS]; /* ns */
	UT_hash_handle hh;
};

/* Columns get wider as time goes on: two become one. Where it begins and ends: recordings need not be read in their order. */
struct heat {
	int64_t from, to, width;
	uint32_t n, cap;
	uint64_t left;		/* parts of ranks for whose row there is no room */
	struct heat_row **rows; /* owned */
	struct heat_row
		*more; /* of processes that are several ranks, those that are not their first */
};

struct heat *report_heat_new(void)
{
	return calloc(1, sizeof(struct heat));
}

static void widen(struct heat *h)
{
	uint32_t r, c;

	for (r = 0; r < h->n; r++) {
		struct heat_row *row = h->rows[r];

		for (c = 0; c < HEAT_COLS; c++) {
			bool low = c < HEAT_COLS / 2;

			row->op[c] = low ? row->op[2 * c] + row->op[2 * c + 1] : 0;
			row->wait[c] = low ? row->wait[2 * c] + row->wait[2 * c + 1] : 0;
		}
	}
	h->width *= 2;
}

static int64_t columns(const struct heat *h, int64_t ns)
{
	return (ns + h->width - 1) / h->width;
}

/* What is in them goes so many columns on. */
static void move(struct heat *h, uint32_t n)
{
	size_t rest = (HEAT_COLS - n) * sizeof(double);
	uint32_t r;

	for (r = 0; r < h->n; r++) {
		struct heat_row *row = h->rows[r];

		memmove(row->op + n, row->op, rest);
		memmove(row->wait + n, row->wait, rest);
		memset(row->op, 0, n * sizeof(double));
		memset(row->wait, 0, n * sizeof(double));
	}
	h->from -= n * h->width;
}

/* Makes room for what was earlier than all before. */
static void begin_at(struct heat *h, int64_t from)
{
	while (columns(h, h->from - from) + columns(h, h->to - h->from) > HEAT_COLS)
		widen(h);
	move(h, (uint32_t)columns(h, h->from - from));
}

/* Its room; NULL: there is no memory. */
static struct heat_row *new_row(struct heat *h)
{
	uint32_t cap = h->cap ? 2 * h->cap : 64;
	struct heat_row **rows;

	if (h->n == h->cap) {
		rows = reallocarray(h->rows, cap, sizeof(struct heat_row *));
		if (!rows)
			return NULL;
		h->rows = rows;
		h->cap = cap;
	}
	return calloc(1, sizeof(struct heat_row));
}

static struct heat_row *add_row(struct report *r, struct report_proc *proc, int32_t rank)
{
	struct heat *h = r->heat;
	struct heat_row *row = new_row(h);

	if (row) {
		row->key = (struct report_row_key){proc->index, rank};
		row->proc = proc;
		row->nr = h->n;
		if (proc->heat)
			HASH_ADD(hh, h->more, key, sizeof(row->key), row);
	}
	if (!row || (proc->heat && !HASH_ADDED(hh, row))) {
		free(row);
		r->err = -ENOMEM;
		return NULL;
	}
	if (!proc->heat)
		proc->heat = row;
	return h->rows[h->n++] = row;
}

/* NULL: it has none. */
static struct heat_row *heat_row(struct report *r, const struct report_part *p)
{
	struct report_proc *proc = p->proc->self;
	struct report_row_key key = {proc->index, p->rank};
	struct heat_row *row = proc->heat;

	if (row && p->proc->several && row->key.rank != p->rank)
		HASH_FIND(hh, r->heat->more, &key, sizeof(key), row);
	if (!row && r->heat->n < HEAT_ROWS)
		row = add_row(r, proc, p->rank);
	else if (!row)
		r->heat->left++;
	return row;
}

void report_heat_add(struct report *r, const struct report_part *p, int64_t wait_ns)
{
	struct heat *h = r->heat;
	struct heat_row *row = heat_row(r, p);
	int64_t from = p->start + p->proc->offset, to = p->stop + p->proc->offset, at, end;
	double share = (double)wait_ns / (double)(to - from);

	if (!row || to <= from)
		return;
	if (!h->width) {
		h->width = 1000000;
		h->from = h->to = from;
	}
	if (from < h->from)
		begin_at(h, from);
	while (to - h->from >= h->width * HEAT_COLS)
		widen(h);
	h->to = most(h->to, to);
	for (at = from; at < to; at = end) {
		int64_t c = (at - h->from) / h->width;

		end = h->from + (c + 1) * h->width;
		end = end < to ? end : to;
		row->op[c] += (double)(end - at);
		row->wait[c] += (double)(end - at) * share;
	}
}

static int cmp_row(const void *a, const void *b)
{
	const struct heat_row *x = *(struct heat_row *const *)a, *y = *(struct heat_row *const *)b;
	int32_t i = report_rank(x->proc, x->key.rank), k = report_rank(y->proc, y->key.rank);
	int order = report_compare_groups(x->proc, y->proc);

	if (order)
		return order;
	return i != k ? (i < k ? -1 : 1) : (x->nr > y->nr) - (x->nr < y->nr);
}

void report_heat_end(struct heat *h)
{
	if (h->n)
		qsort(h->rows, h->n, sizeof(struct heat_row *), cmp_row);
}

void report_heat_free(struct heat *h)
{
	uint32_t i;

	if (!h)
		return;
	HASH_CLEAR(hh, h->more);
	for (i = 0; i < h->n; i++)
		free(h->rows[i]);
	free(h->rows);
	free(h);
}

uint32_t report_heat_rows(const struct report *r)
{
	return r->heat->n;
}

int64_t report_heat_width(const struct report *r)
{
	return r->heat->width;
}

uint64_t report_heat_left(const struct report *r)
{
	return r->heat->left;
}

const struct report_proc *report_heat_row(const struct report *r, uint32_t row, int32_t *rank)
{
	*rank = report_rank(r->heat->rows[row]->proc, r->heat->rows[row]->key.rank);
	return r->heat->rows[row]->proc;
}

double report_heat_cell(const struct report *r, uint32_t row, uint32_t col)
{
	const struct heat_row *h = r->heat->rows[row];

	return h->op[col] > 0 ? h->wait[col] / h->op[col] : -1;
}

struct report_row *report_heat_list(const struct report *r)
{
	struct report_row *list = calloc(r->heat->n + 1, sizeof(*list));
	uint32_t i;

	for (i = 0; list && i < r->heat->n; i++)
		list[i] = (struct report_row){.proc = r->heat->rows[i]->proc,
					      .rank = r->heat->rows[i]->key.rank,
					      .nr = i};
	return list;
}

/* ---- Who is told of -------------------------------------------------------------------------------------- */

/* What was found of a rank, or (-1) of a process. */
struct found {
	struct report_row_key key;
	uint32_t verdict;
	int64_t ns;
};

static int cmp_key(struct report_row_key a, struct report_row_key b)
{
	if (a.proc != b.proc)
		return a.proc < b.proc ? -1 : 1;
	return (a.rank > b.rank) - (a.rank < b.rank);
}

static int by_key(const void *a, const void *b)
{
	return cmp_key(((const struct found *)a)->key, ((const struct found *)b)->key);
}

static struct found found_of(const struct report_find *f, uint32_t verdict)
{
	return (struct found){.key = {f->key.proc, f->key.rank},
			      .verdict = verdict,
			      .ns = f->odd_ns / 2 + f->slow_ns / 2}; /* may be large both */
}

/* All that was found of somebody, in the order of processes and ranks; NULL: no memory. */
static struct found *all_found(const struct report *r, uint32_t *n)
{
	struct found *list = calloc(HASH_COUNT(r->finds) + 1, sizeof(*list));
	const struct report_find *f, *tmp;
	struct report_find **named;
	uint32_t nnamed = 0, i;

	*n = 0;
	named = list ? report_findings(r, &nnamed) : NULL;
	for (i = 0; named && i < nnamed; i++)
		if (named[i]->who)
			list[(*n)++] = found_of(named[i], i);
	HASH_ITER (hh, r->finds, f, tmp)
		if (list && f->who && (!named || !f->named))
			list[(*n)++] = found_of(f, UINT32_MAX);
	free(named);
	if (*n)
		qsort(list, *n, sizeof(*list), by_key);
	return list;
}

static uint32_t first_from(const struct found *list, uint32_t n, struct report_row_key key)
{
	uint32_t from = 0, to = n, mid;

	while (from < to) {
		mid = from + (to - from) / 2;
		if (cmp_key(list[mid].key, key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* What is of those ranks of the row's process. */
static void take_found(struct report_row *row, const struct found *list, uint32_t n, int32_t from,
		       int32_t to)
{
	struct report_row_key key = {row->proc->index, from};
	uint32_t i = first_from(list, n, key);

	for (; i < n && list[i].key.proc == key.proc && list[i].key.rank <= to; i++) {
		row->found = least(row->found + list[i].ns, INT64_MAX / 2);
		row->verdict = list[i].verdict < row->verdict ? list[i].verdict : row->verdict;
	}
}

static int most_said(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;

	if (x->verdict != y->verdict)
		return x->verdict < y->verdict ? -1 : 1;
	if (x->found != y->found)
		return x->found > y->found ? -1 : 1;
	return (x->nr > y->nr) - (x->nr < y->nr);
}

static int by_nr(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;

	return (x->nr > y->nr) - (x->nr < y->nr);
}

void report_order_rows(const struct report *r, struct report_row *rows, uint32_t n)
{
	uint32_t nfound, i;
	struct found *list = all_found(r, &nfound);

	for (i = 0; i < n; i++) {
		rows[i].verdict = UINT32_MAX;
		rows[i].found = 0;
		take_found(&rows[i], list, nfound, -1, rows[i].rank < 0 ? INT32_MAX : -1);
		if (rows[i].rank >= 0)
			take_found(&rows[i], list, nfound, rows[i].rank, rows[i].rank);
	}
	free(list);
	if (n)
		qsort(rows, n, sizeof(*rows), most_said);
}

void report_pick_rows(const struct report *r, struct report_row *rows, uint32_t n, uint32_t max)
{
	if (n <= max)
		return;
	report_order_rows(r, rows, n);
	qsort(rows, max, sizeof(*rows), by_nr);
}
