// SPDX-License-Identifier: BSD-2-Clause
/* The report for people, who did it: tables of ranks and of threads, and the map of who waited when. */
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "human.h"
#include "report_text_priv.h"

#define ROWS_MAX 32 /* that are told of one by one */
#define TURN	 8  /* threads */

/* ---- Ranks and threads -------------------------------------------------------------------------------------------- */

/* Ranks of several communicators, of each its largest: their numbers say which one only with that. */
struct group {
	bool several, begun;
	uint64_t within;
};

static struct group group_begin(const struct report *r)
{
	const struct report_proc *p, *first = NULL;
	struct group g = {0};

	for (p = r->procs; p; p = p->next) {
		if (!p->within || p->self != p)
			continue;
		first = first ?: p;
		g.several |= p->within != first->within;
	}
	return g;
}

/* A line above ranks that go by that communicator, and maybe `others`. */
static void put_comm(const struct report *r, uint64_t within, const char *others, FILE *f)
{
	const struct report_comm *c;

	HASH_FIND(hh, r->comms, &within, sizeof(within), c);
	if (c)
		fprintf(f, "0x%llx%s%s, %d ranks%s:\n", (unsigned long long)c->hash,
			c->name ? " " : "", words__name(r, c->name, 40), report_nranks(c), others);
	else
		fprintf(f, "of no communicator:\n");
}

/* Above the first of its ranks. */
static void put_group(struct group *g, const struct report *r, const struct report_proc *p, FILE *f)
{
	if (!g->several || (g->begun && g->within == p->within))
		return;
	g->begun = true;
	g->within = p->within;
	put_comm(r, p->within, "", f);
}

/* "-" where nothing tells: without the scheduler's context, of operations without ProxyOps, or over something else than TCP. */
static const char *span_if(bool known, int64_t ns)
{
	return known ? words__span(ns) : "-";
}

static void rank_row(const struct report *r, const struct report_proc *p, FILE *f)
{
	bool sched = p->on + p->runq + p->blocked > 0;
	char name[64], irq[16] = "-";

	snprintf(name, sizeof(name), "%.11s[%d]", words__name(r, p->comm, 11), p->host_pid);
	if (sched)
		snprintf(irq, sizeof(irq), "%.0f%%", percent(p->irq, p->on));
	fprintf(f, "%-5d %-20.20s %9s | %8s %8s %8s %5s | %8s %8s %8s\n", p->rank, name,
		words__span(p->op_ns), span_if(sched, p->on), span_if(sched, p->runq),
		span_if(sched, p->blocked), irq, words__span(p->wait_peer),
		span_if(p->flows, p->wait_net), words__span(p->wait_gpu));
}

/* All that there are, in their order, of each process one; owned by the caller (free). NULL: no memory. */
static struct report_row *list_procs(const struct report *r, bool in_ops, uint32_t *n)
{
	struct report_row *list = calloc(r->nprocs + 1, sizeof(*list));
	const struct report_proc *p;

	*n = 0;
	for (p = r->procs; p && list; p = p->next) {
		if (in_ops && !p->op_ns)
			continue;
		list[*n] = (struct report_row){.proc = p, .rank = -1, .nr = *n};
		++*n;
	}
	return list;
}

static void put_more(uint32_t more, const char *what, FILE *f)
{
	if (more)
		fprintf(f, "(%u more %s%s: see --json)\n", more, what, human__s(more));
}

void report_text_ranks(const struct report *r, FILE *f)
{
	uint32_t n, i;
	struct report_row *list = list_procs(r, true, &n);
	struct group group = group_begin(r);

	if (!list) {
		words__no_memory(f);
		return;
	}
	if (n) {
		words__heading(r, f, "Where the time of the ranks' operations went");
		fprintf(f, "%-5s %-20s %9s | %8s %8s %8s %5s | %8s %8s %8s\n", "rank", "process",
			"in ops", "on CPU", "runnable", "asleep", "irq", "no data", "no room",
			"GPU");
	}
	report_pick_rows(r, list, n, ROWS_MAX);
	for (i = 0; i < n && i < ROWS_MAX; i++) {
		put_group(&group, r, list[i].proc, f);
		rank_row(r, list[i].proc, f);
	}
	put_more(n > ROWS_MAX ? n - ROWS_MAX : 0, "rank", f);
	free(list);
}

struct thread_row {
	const struct report_proc *proc;
	const struct report_thread *thread;
	uint32_t nr;	/* its place in the table of all */
	uint32_t place; /* of its process, by what there is to be said of that */
	uint32_t turn;	/* some of each process, then some more */
};

static int64_t kept_ns(const struct thread_row *row)
{
	return row->thread->runq + row->thread->irq + row->thread->throttled;
}

/* Of each process, those that were kept from running most. */
static int most_kept(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;
	int64_t i = kept_ns(x), k = kept_ns(y);

	return compare_u32(x->place, y->place)
		       ?: (i != k ? (i > k ? -1 : 1) : compare_u32(x->nr, y->nr));
}

static int by_turn(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	return compare_u32(x->turn, y->turn) ?: compare_u32(x->place, y->place) ?: most_kept(a, b);
}

static int by_nr(const void *a, const void *b)
{
	return compare_u32(((const struct thread_row *)a)->nr, ((const struct thread_row *)b)->nr);
}

/* NULL: no memory. */
static struct thread_row *list_threads(const struct report *r, uint32_t *n)
{
	const struct report_thread *t, *tmp;
	const struct report_proc *p;
	struct thread_row *list;
	uint32_t max = 0, nr = 0;

	for (p = r->procs; p; p = p->next)
		max += HASH_COUNT(p->threads);
	list = calloc(max + 1, sizeof(*list));
	*n = 0;
	for (p = r->procs; p && list; p = p->next, nr++)
		HASH_ITER (hh, p->threads, t, tmp)
			if (report_thread_ns(t)) {
				list[*n] = (struct thread_row){
					.proc = p, .thread = t, .nr = *n, .place = nr};
				++*n;
			}
	return list;
}

/* Of more than there are lines for, those of the ranks that are told of first, in the order of all. */
static void pick_threads(const struct report *r, struct thread_row *list, uint32_t n)
{
	uint32_t nprocs, i, from = 0;
	struct report_row *procs = list_procs(r, false, &nprocs);
	uint32_t *place = calloc(nprocs + 1, sizeof(*place));

	if (procs && place) {
		report_order_rows(r, procs, nprocs);
		for (i = 0; i < nprocs; i++)
			place[procs[i].nr] = i;
		for (i = 0; i < n; i++)
			list[i].place = place[list[i].place];
	}
	free(procs);
	free(place);
	qsort(list, n, sizeof(*list), most_kept);
	for (i = 0; i < n; i++) {
		from = list[i].place == list[from].place ? from : i;
		list[i].turn = (i - from) / TURN;
	}
	qsort(list, n, sizeof(*list), by_turn);
	qsort(list, ROWS_MAX, sizeof(*list), by_nr);
}

static void thread_row(const struct report *r, const struct thread_row *row, FILE *f)
{
	const struct report_thread *t = row->thread;
	int64_t all = report_thread_ns(t);

	fprintf(f, "%-5d %-16.16s %9u %-6.6s %10s %7.1f%% %8.1f%% %6.1f%%", row->proc->rank,
		words__name(r, t->comm, 16), t->tid, words__name(r, t->role, 6), words__span(all),
		percent(t->on, all), percent(t->runq, all), percent(t->blocked, all));
	fprintf(f, " %7.1f%% %9.1f%%\n", percent(t->irq, all), percent(t->throttled, all));
}

void report_text_threads(const struct report *r, FILE *f)
{
	uint32_t n, i;
	struct thread_row *list = list_threads(r, &n);
	struct group group = group_begin(r);

	if (!list) {
		words__no_memory(f);
		return;
	}
	if (n) {
		words__heading(r, f, "Threads, from when they were first seen to the end");
		fprintf(f, "%-5s %-26s %-6s %10s %8s %9s %7s %8s %10s\n", "rank", "thread", "role",
			"time", "on CPU", "runnable", "asleep", "irq", "throttled");
	}
	if (n > ROWS_MAX)
		pick_threads(r, list, n);
	for (i = 0; i < n && i < ROWS_MAX; i++) {
		put_group(&group, r, list[i].proc, f);
		thread_row(r, &list[i], f);
	}
	put_more(n > ROWS_MAX ? n - ROWS_MAX : 0, "thread", f);
	free(list);
}

/* ---- What does nothing -------------------------------------------------------------------------------------------------- */

static void tell_ended(const struct report_proc *p, const struct names *names, char *at, size_t len)
{
	char how[256] = "";
	bool told = report_how_ended(p, names, how, sizeof(how));

	snprintf(at, len, "it ended: %.40s%s%s", names__text(names, p->newest->end),
		 told ? "; " : "", how);
}

static void tell_awake(const struct report_thread *t, char *at, size_t len)
{
	if (report_thread_ns(t))
		snprintf(at, len, "not asleep: on a CPU for %.0f %% of its time",
			 percent(t->on, report_thread_ns(t)));
	else
		snprintf(at, len, "not known");
}

#define ASKED_NS (1500 * 1000000ll) /* after so long the recorder has asked */

/* What it sleeps in, or slept in before it `ended`. */
static void tell_asleep(const struct report *r, const struct report_still *s, bool ended, char *at,
			size_t len)
{
	const struct report_thread *t = s->thread;
	bool yet = t->all_asleep && t->asleep < ASKED_NS && !s->proc->no_calls;

	report_tell_sleep(t, r->names, at, len);
	if (!*at && !ended)
		snprintf(at, len, "not known%s", yet ? " yet: record 3 s or longer" : "");
}

static void still_row(const struct report *r, const struct report_still *s, FILE *f)
{
	const struct report_thread *t = s->thread;
	bool ended = report_has_ended(s->proc, r->names);
	char name[64], in[600] = "", clean[600], asleep[32] = "-";
	size_t n;

	snprintf(name, sizeof(name), "%.14s[%d]", words__name(r, s->proc->comm, 14),
		 s->proc->host_pid);
	if (t->asleep) /* it may have been before it was recorded */
		snprintf(asleep, sizeof(asleep), "%s%s", t->all_asleep ? "> " : "",
			 words__span(t->asleep));
	if (t->asleep)
		tell_asleep(r, s, ended, in, 256);
	else if (!ended)
		tell_awake(t, in, sizeof(in));
	if (ended && *in)
		strcat(in, "; ");
	n = strlen(in);
	if (ended)
		tell_ended(s->proc, r->names, in + n, sizeof(in) - n);
	report_clean(clean, sizeof(clean), in);
	fprintf(f, "%-5d %-24.24s %9s %c %s\n", s->proc->rank, name, asleep, s->apart ? '!' : ' ',
		clean);
}

#define AT_THE_END ": what the ranks' first threads were in at the end"

/* Above them, which are of so many jobs. */
static void still_heading(const struct report *r, uint32_t jobs, FILE *f)
{
	enum report_without without = jobs ? WITHOUT_ANY : report_without(r);
	double lost = words__much_lost(r);
	char where[40] = "", gone[64] = "";

	if (r->totals.ops && jobs > 1)
		snprintf(where, sizeof(where), " in %u other jobs", jobs);
	else if (r->totals.ops)
		snprintf(where, sizeof(where), " in another job");
	if (lost > 0)
		snprintf(gone, sizeof(gone), " in what is left: %.0f %% of the records were lost",
			 lost);
	if (without == WITHOUT_ASKING)
		words__heading(r, f,
			       "Operations were not recorded (--mask, NCCL_PROFILE_EVENT_MASK)");
	else if (without == WITHOUT_OTHERS)
		words__heading(r, f,
			       "No operations but those of copy engines (CeColl), of which "
			       "nothing more is told");
	else
		words__heading(r, f, "No operation began or ended%s%s%s", where, gone,
			       jobs ? AT_THE_END : "");
}

/* Of @n ranks of one job the first ones, @max at most. */
static void still_job(const struct report *r, const struct report_still *list, uint32_t n,
		      uint32_t max, bool named, FILE *f)
{
	uint32_t apart = 0, i;
	bool others = false;

	for (i = 0; i < n; i++) {
		apart += list[i].apart;
		others |= list[i].proc->within != list[0].proc->within;
	}
	if (named)
		put_comm(r, list[0].proc->within, others ? ", and others" : "", f);
	for (i = 0; i < n && i < max; i++)
		still_row(r, &list[i], f);
	if (apart)
		fprintf(f, "! %u of %u in something else than the others, who may wait for %s\n",
			apart, n, apart == 1 ? "it" : "them");
}

#define EACH_MIN 4

/* As many rows of each job. */
static void still_jobs(const struct report *r, const struct report_still *list, uint32_t n,
		       uint32_t jobs, FILE *f)
{
	uint32_t each = ROWS_MAX / jobs < EACH_MIN ? EACH_MIN : ROWS_MAX / jobs, i, of, rows,
		 shown = 0;

	fprintf(f, "%-5s %-24s %9s   in\n", "rank", "process", "asleep");
	for (i = 0; i < n && shown < ROWS_MAX; i += of) {
		of = report_same_job(&list[i], n - i);
		rows = of < each ? of : each;
		if (rows > ROWS_MAX - shown)
			rows = ROWS_MAX - shown;
		still_job(r, &list[i], of, rows, jobs > 1 || r->totals.ops, f);
		shown += rows;
	}
	put_more(n - shown, "rank", f);
}

void report_text_still(const struct report *r, FILE *f)
{
	uint32_t n, jobs = 0, i;
	struct report_still *list = report_stills(r, &n);

	if (!list) {
		words__no_memory(f);
		return;
	}
	for (i = 0; i < n; i += report_same_job(&list[i], n - i))
		jobs++;
	if (n || !r->totals.ops)
		still_heading(r, jobs, f);
	if (n)
		still_jobs(r, list, n, jobs, f);
	free(list);
}

/* ---- Heat map ----------------------------------------------------------------------------------------------------------- */

static void heat_line(const struct report *r, uint32_t row, uint32_t cols, FILE *f)
{
	static const char shades[] = " .:-=+*#%@";
	const struct report_proc *p;
	uint32_t col;
	int32_t rank;
	double v;

	p = report_heat_row(r, row, &rank);
	fprintf(f, "%4d %-16.16s |", rank, words__name(r, p->host, 16));
	for (col = 0; col < cols; col++) {
		v = report_heat_cell(r, row, col);
		fputc(v < 0 ? ' ' : shades[1 + (int)(v > 0.999 ? 8 : v * 9)], f);
	}
	fputs("|\n", f);
}

static void put_rows_left(const struct report *r, uint32_t more, FILE *f)
{
	if (more)
		fprintf(f, "(%u more rank%s%s)\n", more, human__s(more),
			report_heat_left(r) ? ", and those for which there was no room" : "");
}

void report_text_heat(const struct report *r, FILE *f)
{
	uint32_t rows = report_heat_rows(r), row, col, used = 0, i;
	struct group group = group_begin(r);
	struct report_row *list;

	for (row = 0; row < rows; row++)
		for (col = used; col < HEAT_COLS; col++)
			if (report_heat_cell(r, row, col) >= 0)
				used = col + 1;
	if (rows < 2 || used < 2)
		return;
	words__heading(r, f, "Waiting for others, rank x time, a column is %s",
		       words__span(report_heat_width(r)));
	list = report_heat_list(r);
	if (!list) {
		words__no_memory(f);
		return;
	}
	report_pick_rows(r, list, rows, ROWS_MAX);
	fprintf(f, "%4s %s\n", "rank", "host");
	for (i = 0; i < rows && i < ROWS_MAX; i++) {
		put_group(&group, r, list[i].proc, f);
		heat_line(r, list[i].nr, used, f);
	}
	free(list);
	put_rows_left(r, rows > ROWS_MAX ? rows - ROWS_MAX : 0, f);
	fprintf(f, "%21s  %s\n", "",
		". none of its time ... @ all of it; the rank that others wait for is light");
}
