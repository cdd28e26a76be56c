// SPDX-License-Identifier: BSD-2-Clause
/* What recorders tell of themselves, as rows; see top.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "human.h"
#include "less.h"
#include "status_field.h"
#include "status_file.h"
#include "top.h"

#define HANGS_US 1000000 /* recorders tell once in so long */

const char *const top_sort_names[TOP_SORTS] = {
	[TOP_BY_RANK] = "rank",
	[TOP_BY_BUSBW] = "busbw, lowest first",
	[TOP_BY_PENDING] = "pending, longest first",
};

static json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static uint64_t num(const json_t *o, const char *key)
{
	return status_field__number(o, key);
}

static double real(const json_t *o, const char *key)
{
	double v = json_number_value(get(o, key));

	return v > 0 ? v : 0;
}

/* By how much it has grown; a sum of flows gets smaller when one goes. */
static double grown(const json_t *now, const json_t *was, const char *key)
{
	double d = real(now, key) - real(was, key);

	return d > 0 ? d : 0;
}

/* ---- The same, in the reading before ---------------------------------------------------------------- */

static const json_t *by_number(const json_t *array, const char *key, uint64_t n)
{
	const json_t *o;
	size_t i;

	json_array_foreach (array, i, o)
		if (num(o, key) == n)
			return o;
	return NULL;
}

/* The same one at the last reading. */
static const json_t *recorder_before(const struct top *t, const json_t *r)
{
	const json_t *was = by_number(t->before, "pid", num(r, "pid"));

	return num(was, "startTime") == num(r, "startTime") ? was : NULL;
}

/* In the same window: with the next one, what it counts begins anew. */
static const json_t *window_before(const struct top *t, const json_t *r)
{
	const json_t *was = recorder_before(t, r);

	return num(was, "startedUs") == num(r, "startedUs") ? was : NULL;
}

/* When what it says of processes was so: of one whose traces are behind, long before it wrote that. */
static uint64_t as_of(const json_t *r)
{
	return num(r, get(r, "asOfUs") ? "asOfUs" : "updatedUs");
}

static const json_t *rank_before(const json_t *proc, const json_t *rank)
{
	const char *hash = status_field__string(rank, "commHash");
	const json_t *o;
	size_t i;

	json_array_foreach (get(proc, "ranks"), i, o)
		if (!strcmp(status_field__string(o, "commHash"), hash) &&
		    json_integer_value(get(o, "rank")) == json_integer_value(get(rank, "rank")))
			return o;
	return NULL;
}

/* ---- Rows ------------------------------------------------------------------------------------------ */

/* The list with room for one more; NULL: no memory. */
static void *grow(void *list, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;

	if (n < *room)
		return list;
	list = reallocarray(list, more, size);
	if (list)
		*room = more;
	return list;
}

static struct top_row *row_new(struct top *t)
{
	struct top_row *rows = grow(t->rows, t->nrows, &t->room, sizeof(*rows));

	if (!rows)
		return NULL;
	t->rows = rows;
	memset(&rows[t->nrows], 0, sizeof(*rows));
	return &rows[t->nrows++];
}

static struct top_proc *proc_new(struct top *t)
{
	struct top_proc *procs = grow(t->procs, t->nprocs, &t->procs_room, sizeof(*procs));

	if (!procs)
		return NULL;
	t->procs = procs;
	memset(&procs[t->nprocs], 0, sizeof(*procs));
	return &procs[t->nprocs++];
}

static void name_row(struct top_row *row, const json_t *proc, const json_t *rank)
{
	const char *hash = status_field__string(rank, "commHash");
	char buf[HUMAN_CELL];

	row->comm = strtoull(hash, NULL, 16);
	snprintf(row->name, sizeof(row->name), "%s",
		 human__clean(buf, hash, sizeof(row->name) - 1, false));
	snprintf(row->command, sizeof(row->command), "%s",
		 human__clean(buf, status_field__string(proc, "comm"), 15, false));
	row->rank = (int32_t)json_integer_value(get(rank, "rank"));
	row->nranks = (int32_t)num(rank, "nranks");
	row->pid = (uint32_t)num(proc, "hostPid");
}

/* A quota; interrupts, if they took more than the rest; who had the CPU, if it was ready for longer than it slept; else in what it slept. */
static void explain(struct top_row *row, const json_t *live)
{
	const json_t *behind = get(live, "behind"), *in = get(live, "blockedIn");
	char buf[HUMAN_CELL];

	if (row->throttled > row->runq / 2 && row->throttled >= 0.05)
		snprintf(row->why, sizeof(row->why), "held by a CPU quota");
	else if (row->irq > row->runq && row->irq > row->blocked && row->irq >= 0.05)
		snprintf(row->why, sizeof(row->why), "interrupts %.0f%%",
			 (row->irq < 1 ? row->irq : 1) * 100);
	else if (row->runq >= row->blocked && row->runq >= 0.05 && behind)
		snprintf(row->why, sizeof(row->why), "behind %s[%u]",
			 human__clean(buf, status_field__string(behind, "comm"), 15, false),
			 (uint32_t)num(behind, "pid"));
	else if (row->blocked > row->runq && row->blocked >= 0.05 && in)
		snprintf(row->why, sizeof(row->why), "in %s",
			 human__clean(buf, status_field__string(in, "why"), 20, false));
}

/*
 * What hangs is not in the sums: where they tell nothing of now, as nothing was written since the last reading or there was none, it is
 * what threads have done since the oldest operation was called.
 */
static void fill_sched(struct top_row *row, const json_t *live, const json_t *was)
{
	const json_t *pending = get(live, "pendingThreads");
	double span = grown(live, was, "spanUs");

	if ((!was || span <= 0) && (pending || row->pending_us >= HANGS_US)) {
		live = pending;
		was = NULL;
		span = real(live, "spanUs");
	}

	row->sched = span > 0;
	if (!row->sched)
		return;
	row->on_cpu = grown(live, was, "onCpuUs") / span;
	row->runq = grown(live, was, "runqUs") / span;
	row->blocked = grown(live, was, "blockedUs") / span;
	row->throttled = grown(live, was, "throttledUs") / span;
	row->irq = grown(live, was, "irqUs") / span;
	explain(row, live);
}

static void fill_row(struct top_row *row, const json_t *live, const json_t *was, double us,
		     uint64_t now_us)
{
	double op_us = grown(live, was, "opUs");
	char buf[HUMAN_CELL];

	row->ops = us > 0 ? grown(live, was, "ops") * 1e6 / us : 0;
	row->busbw = op_us > 0 ? grown(live, was, "busBytes") / op_us / 1e3 : 0;
	row->pending = num(live, "pending");
	row->pending_us = row->pending ? less(now_us, num(live, "pendingSinceUs")) : 0;
	row->seq = get(live, "seq") ? num(live, "seq") + 1 : 0; /* 0: not comparable, or none yet */
	snprintf(row->func, sizeof(row->func), "%s",
		 human__clean(buf, status_field__string(live, "func"), 20, false));
	fill_sched(row, live, was);
}

/* `was`: the process in the reading before; us: the time between them. */
static int add_process(struct top *t, const json_t *recorder, const json_t *p, const json_t *was,
		       double us)
{
	struct top_proc *proc = proc_new(t);
	const json_t *rank, *rank_was;
	struct top_row *row;
	size_t i;

	if (!proc)
		return -ENOMEM;
	proc->pid = (uint32_t)num(p, "hostPid");
	proc->recorder = (uint32_t)num(recorder, "pid");
	proc->silent = !status_field__is_in(recorder, "running");
	proc->records = us > 0 ? grown(p, was, "records") * 1e6 / us : 0;
	json_array_foreach (get(p, "ranks"), i, rank) {
		row = row_new(t);
		if (!row)
			return -ENOMEM;
		name_row(row, p, rank);
		row->recorder = proc->recorder;
		rank_was = rank_before(was, rank);
		fill_row(row, get(rank, "live"), get(rank_was, "live"), us, as_of(recorder));
		if (us > 0)
			row->retrans =
				grown(get(p, "net"), get(was, "net"), "retransNeeded") * 1e6 / us;
		proc->ranks = true;
		proc->ops |= row->ops > 0;
	}
	return 0;
}

static void add_waiting(struct top *t, const json_t *r)
{
	uint64_t until = num(r, "waitsUntilUs");

	if (!t->waiting++ || until < t->waits_until)
		t->waits_until = until;
}

static int add_recorder(struct top *t, const json_t *r)
{
	const json_t *was = window_before(t, r), *p;
	const json_t *ring = get(r, "ring"), *opt = get(r, "options");
	uint64_t lost = status_field__lost(r, NULL, 0), started = num(r, "startedUs");
	double us = (double)less(num(r, "updatedUs"), was ? num(was, "updatedUs") : started);
	double told_us = (double)less(as_of(r), was ? as_of(was) : started);
	int err = 0;
	size_t i;

	if (status_field__is_in(r, "dead"))
		return 0;
	if (status_field__is_in(r, "waiting")) {
		add_waiting(t, r);
		return 0;
	}
	t->recorders++;
	t->silent += !status_field__is_in(r, "running");
	t->captures += get(opt, "capture") && !get(opt, "output");
	if (num(get(r, "backlog"), "us") > t->behind_us)
		t->behind_us = num(get(r, "backlog"), "us");
	t->lost += lost;
	if (recorder_before(t, r))
		t->lost_new += less(lost, was ? status_field__lost(was, NULL, 0) : 0);
	t->memory += num(get(r, "self"), "memory");
	if (num(ring, "bytes") && (double)num(ring, "used") / (double)num(ring, "bytes") > t->ring)
		t->ring = (double)num(ring, "used") / (double)num(ring, "bytes");
	if (us > 0)
		t->cpu += grown(get(r, "self"), get(was, "self"), "cpuUs") / us;
	json_array_foreach (get(r, "processes"), i, p)
		if (!err)
			err = add_process(
				t, r, p,
				by_number(get(was, "processes"), "hostPid", num(p, "hostPid")),
				told_us);
	return err;
}

/* ---- Each process once ------------------------------------------------------------------------------- */

/* By process, and first the recorder that knows most of it; between equals always the same one. */
static int by_worth(const void *pa, const void *pb)
{
	const struct top_proc *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->silent != b->silent)
		return a->silent - b->silent;
	if (a->ranks != b->ranks)
		return b->ranks - a->ranks;
	if (a->ops != b->ops)
		return b->ops - a->ops;
	return (a->recorder > b->recorder) - (a->recorder < b->recorder);
}

static int by_pid(const void *pa, const void *pb)
{
	const struct top_proc *a = pa, *b = pb;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Several recorders may have a process: of each the first one stays, with the most records. */
static void choose_recorders(struct top *t)
{
	struct top_proc *from, *to = t->procs;

	qsort(t->procs, t->nprocs, sizeof(*t->procs), by_worth);
	for (from = t->procs; from < t->procs + t->nprocs; from++) {
		if (from == t->procs || to[-1].pid != from->pid)
			*to++ = *from;
		else if (to[-1].records < from->records)
			to[-1].records = from->records;
	}
	t->nprocs = (size_t)(to - t->procs);
}

static void take_once(struct top *t)
{
	struct top_row *row, *to = t->rows;
	const struct top_proc *p;
	size_t i;

	if (!t->nprocs)
		return;
	choose_recorders(t);
	t->processes = (uint32_t)t->nprocs;
	for (i = 0; i < t->nprocs; i++)
		t->records += t->procs[i].records;
	for (row = t->rows; row < t->rows + t->nrows; row++) {
		p = bsearch(&(struct top_proc){.pid = row->pid}, t->procs, t->nprocs,
			    sizeof(*t->procs), by_pid);
		if (p && p->recorder == row->recorder)
			*to++ = *row;
	}
	t->nrows = (size_t)(to - t->rows);
}

/* ---- Who is waited for -------------------------------------------------------------------------------- */

/* Records come in up to 200 ms after the call, of one rank sooner than of another. */
#define WAITED_US 500000

static bool is_behind(const struct top_row *a, const struct top_row *b)
{
	return a->rank != b->rank && b->pending_us >= WAITED_US && a->seq &&
	       !strcmp(a->func, b->func) && a->seq < b->seq;
}

/* ---- Order --------------------------------------------------------------------------------------------- */

static int by_rank(const void *pa, const void *pb)
{
	const struct top_row *a = pa, *b = pb;
	int order = strcmp(a->name, b->name);

	if (!order)
		order = (a->comm > b->comm) - (a->comm < b->comm);
	if (!order)
		order = (a->rank > b->rank) - (a->rank < b->rank);
	return order ? order : (a->recorder > b->recorder) - (a->recorder < b->recorder);
}

static int by_busbw(const void *pa, const void *pb)
{
	const struct top_row *a = pa, *b = pb;
	double x = a->busbw > 0 ? a->busbw : 1e30, y = b->busbw > 0 ? b->busbw : 1e30;

	return x != y ? (x > y) - (x < y) : by_rank(pa, pb);
}

static int by_pending(const void *pa, const void *pb)
{
	const struct top_row *a = pa, *b = pb;

	return a->pending_us != b->pending_us
		       ? (a->pending_us < b->pending_us) - (a->pending_us > b->pending_us)
		       : by_rank(pa, pb);
}

/*
 * Ranks that have not called what another one waits in. Which of other nodes are late is not known here. Rows of a
 * communicator lie behind each other.
 */
static void find_waited_for(struct top *t)
{
	struct top_row *row = t->rows, *end = row + t->nrows, *from = row, *other;

	for (; row < end; row++) {
		if (row->comm != from->comm)
			from = row;
		for (other = from; other < end && other->comm == from->comm; other++)
			row->waited_for |= is_behind(row, other);
	}
}

void top__sort(struct top *t)
{
	static int (*const orders[TOP_SORTS])(const void *, const void *) = {
		[TOP_BY_RANK] = by_rank,
		[TOP_BY_BUSBW] = by_busbw,
		[TOP_BY_PENDING] = by_pending,
	};

	if (t->nrows)
		qsort(t->rows, t->nrows, sizeof(*t->rows), orders[t->sort]);
}

/* ---- Readings -------------------------------------------------------------------------------------------- */

/* Recorders write once a second or less: those that have not since are shown as they were. */
static bool is_news(const struct top *t, const json_t *reading)
{
	const json_t *r, *was;
	size_t i;

	if (!t->now || json_array_size(reading) != json_array_size(t->now))
		return true;
	json_array_foreach (reading, i, r) {
		was = by_number(t->now, "pid", num(r, "pid"));
		if (!was || num(was, "updatedUs") != num(r, "updatedUs") ||
		    !status_field__is_in(was, status_field__string(r, "state")))
			return true;
	}
	return false;
}

/* Of a recorder that has told nothing new since, what it told before that, or all its rates would be 0. */
static void keep_older(struct top *t, json_t *reading)
{
	json_t *last = t->now, *r;
	const json_t *was;
	size_t i;

	json_array_foreach (last, i, r) {
		was = by_number(reading, "pid", num(r, "pid"));
		if (was && as_of(was) == as_of(r)) {
			was = recorder_before(t, r);
			if (was)
				json_array_set(last, i, (json_t *)was);
		}
	}
	json_decref(t->before);
	t->before = last;
	t->now = reading;
}

int top__read(struct top *t)
{
	json_t *reading, *r;
	int err = 0;
	size_t i;

	t->now_us = monotonic_ns() / 1000;
	reading = status_dir__read(status_dir(), t->now_us);
	if (!reading)
		return -ENOMEM;
	if (!is_news(t, reading)) {
		json_decref(reading);
		return 0;
	}
	keep_older(t, reading);
	t->nrows = t->nprocs = 0;
	t->recorders = t->silent = t->captures = t->processes = t->waiting = 0;
	t->records = t->cpu = t->ring = 0;
	t->lost = t->lost_new = t->memory = t->behind_us = 0;
	json_array_foreach (t->now, i, r)
		if (!err)
			err = add_recorder(t, r);
	take_once(t);
	if (t->nrows)
		qsort(t->rows, t->nrows, sizeof(*t->rows), by_rank);
	find_waited_for(t);
	top__sort(t);
	return err;
}

void top__free(struct top *t)
{
	json_decref(t->before);
	json_decref(t->now);
	free(t->rows);
	free(t->procs);
	memset(t, 0, sizeof(*t));
}
