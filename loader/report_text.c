// SPDX-License-Identifier: BSD-2-Clause
/* The report for people: 100 columns, plain text, colour only on a terminal; see report.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "fnv.h"
#include "report.h"

#define COLUMNS	 100
#define TOP	 10
#define ROWS_MAX 32 /* ranks that are told of one by one */
#define COMMS	 16 /* and communicators */

static double ms(int64_t ns)
{
	return (double)ns / 1e6;
}

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* Job text on a terminal: what is not plain ASCII could steer it. Up to four results in use at a time. */
void report_clean(char *to, size_t len, const char *s)
{
	size_t i;

	for (i = 0; i + 1 < len && s[i]; i++)
		to[i] = s[i] >= 0x20 && s[i] < 0x7f ? s[i] : '?';
	to[i] = 0;
}

static const char *clean(const struct report *r, uint32_t name, size_t max)
{
	static char text[4][96];
	static unsigned int turn;
	char *to = text[turn++ % 4];

	report_clean(to, max + 1 < sizeof(text[0]) ? max + 1 : sizeof(text[0]),
		     names__text(r->names, name));
	return to;
}

static void heading(const struct report *r, FILE *f, const char *fmt, ...)
{
	va_list ap;

	fputs(r->opt.color ? "\n\033[1m" : "\n", f);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputs(r->opt.color ? "\033[0m\n" : "\n", f);
}

/* "1.23 s", "12.3 ms", "8.0 us". Up to 16 results in use at a time. */
static const char *span(int64_t ns)
{
	static char text[16][24];
	static unsigned int turn;
	char *to = text[turn++ % 16];

	if (ns >= 10 * NSEC_PER_SEC)
		snprintf(to, sizeof(text[0]), "%.1f s", (double)ns / 1e9);
	else if (ns >= NSEC_PER_SEC)
		snprintf(to, sizeof(text[0]), "%.2f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		snprintf(to, sizeof(text[0]), "%.1f ms", ms(ns));
	else
		snprintf(to, sizeof(text[0]), "%.1f us", (double)ns / 1e3);
	return to;
}

static void put_no_memory(FILE *f)
{
	fputs("\n(A table is left out: there is no memory for it.)\n", f);
}

static void put_size(char *to, size_t len, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	double v = (double)bytes;
	size_t u;

	for (u = 0; v >= 1024 && u < 5; u++)
		v /= 1024;
	snprintf(to, len, v < 10 && v != (double)(int)v ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static const char *size_text(const struct report *r, const struct report_class *k)
{
	static char text[64];
	uint64_t low = report_size(r, k, false), high = report_size(r, k, true);
	char a[24], b[24];

	put_size(a, sizeof(a), low);
	put_size(b, sizeof(b), high);
	if (low == high)
		snprintf(text, sizeof(text), "%s", a);
	else
		snprintf(text, sizeof(text), "%.*s-%s", (int)strcspn(a, " "), a, b);
	return text;
}

/* Which one, where there are several; its name says more than its number. */
static const char *comm_of(const struct report *r, const struct report_comm *c)
{
	static char text[24];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)c->hash);
	return c->name ? clean(r, c->name, 12) : text;
}

static void put_rank(const struct report *r, const struct report_find *f, char *to, size_t len)
{
	const struct report_proc *p = f->who;
	int32_t rank = report_rank(p, f->key.rank);
	char of[32] = "";

	/* of a process that is several ranks: the same number is another one in each communicator */
	if (p && f->comm && f->key.comm && f->key.comm != p->within)
		snprintf(of, sizeof(of), " of %s", comm_of(r, f->comm));
	if (!p)
		snprintf(to, len, "-");
	else if (p->host)
		snprintf(to, len, "rank %d%s, %s[%d] on %.24s", rank, of, clean(r, p->comm, 15),
			 p->host_pid, clean(r, p->host, 24));
	else
		snprintf(to, len, "rank %d%s, process %d", rank, of, p->host_pid);
}

/* ---- The verdicts ------------------------------------------------------------------------------------------ */

/* On two lines where one is too short, cut behind a comma. There are names of others' in it. */
static void put_evidence(FILE *out, const char *before, const char *evidence)
{
	char text[sizeof(((struct report_find *)NULL)->evidence[0])] = "";
	size_t room = COLUMNS - 5 - strlen(before), len, n;

	report_clean(text, sizeof(text), evidence);
	n = len = strlen(text);
	if (len > room)
		for (n = room; n > room / 2 && (text[n] != ' ' || text[n - 1] != ','); n--)
			;
	if (n < len && text[n] != ' ')
		n = room;
	fprintf(out, "     %s%.*s\n", before, (int)n, text);
	if (n < len)
		fprintf(out, "       %s\n", text + n + (text[n] == ' '));
}

static void put_operations(const struct report_find *f, FILE *out)
{
	uint64_t n = f->ops > f->slow ? f->ops : f->slow;

	if (!n) {
		fputs("     in no operation that was recorded", out);
		return;
	}
	fprintf(out, "     in %llu operation%s, %llu of them slow", (unsigned long long)n,
		n == 1 ? "" : "s", (unsigned long long)f->slow);
	if (f->hung)
		fprintf(out, ", %llu never ended", (unsigned long long)f->hung);
}

static void print_finding(const struct report *r, const struct report_find *f, uint32_t no,
			  FILE *out)
{
	char rank[96];
	uint32_t i;

	put_rank(r, f, rank, sizeof(rank));
	fprintf(out, "%s%3u. %-18s%s", r->opt.color ? "\033[33m" : "", no,
		report_code_names[f->key.code], r->opt.color ? "\033[0m" : "");
	fprintf(out, " %-56.56s %9s  %3.0f %%\n", rank, span(f->cost), 100 * f->conf);
	if (f->key.culprit)
		fprintf(out, "     %s %.90s\n",
			f->key.code == CODE_PREEMPTED ? "behind"
			: f->key.code == CODE_BLOCKED ? "in"
						      : "by",
			clean(r, f->key.culprit, 80));
	for (i = 0; i < 2; i++)
		if (f->evidence[i][0])
			put_evidence(out, i ? "" : "worst: ", f->evidence[i]);
	put_operations(f, out);
	if (f->loss_near)
		fprintf(out, "; %llu records lost near them", (unsigned long long)f->loss_near);
	fputs("\n", out);
}

static void print_findings(const struct report *r, FILE *out, uint32_t max)
{
	uint32_t n, i;
	struct report_find **list = report_findings(r, &n);

	heading(r, out, "Why it was slow%s", n ? "" : ": nothing stands out");
	if (list && n)
		fprintf(out, "     %-18s %-56s %9s  %s\n", "verdict", "who", "cost", "sure");
	for (i = 0; list && i < n && i < max; i++)
		print_finding(r, list[i], i + 1, out);
	if (n > max)
		fprintf(out, "     and %u more\n", n - max);
	free(list);
}

/* ---- Operations ------------------------------------------------------------------------------------------------ */

static void print_class(const struct report *r, const struct report_class *k, FILE *f)
{
	char name[40];

	snprintf(name, sizeof(name), "%.14s %.13s", clean(r, k->key.func, 14), size_text(r, k));
	fprintf(f, "%-28s %-5.5s %-6.6s %7llu", name, clean(r, k->key.algo, 5),
		clean(r, k->key.proto, 6), (unsigned long long)k->n);
	if (!k->time.n) {
		fprintf(f, "  (when they really ended is not known)\n");
		return;
	}
	fprintf(f, " %8.8s %8.8s %8.8s %6.2f %6.2f", span(hist__quantile(&k->time, 0.5)),
		span(hist__quantile(&k->time, 0.99)), span(k->time.max), report_algbw(r, k),
		report_busbw(r, k));
	fprintf(f, " %4.0f\n", percent(k->late, k->op_span));
}

static void print_split(const struct report *r, const struct report_class *k, FILE *f)
{
	char name[40];

	if (!k->proxy_span)
		return;
	snprintf(name, sizeof(name), "%.14s %.13s", clean(r, k->key.func, 14), size_text(r, k));
	fprintf(f, "%-28s %9.0f %9.0f %9.0f %17.0f\n", name, percent(k->on, k->proxy_span),
		percent(k->runq, k->proxy_span), percent(k->blocked, k->proxy_span),
		percent(k->no_data, k->op_span));
}

static void print_kinds(const struct report *r, const struct report_class *first, FILE *f)
{
	const struct report_class *k;
	bool split = false;

	fprintf(f, "%-28s %-5s %-6s %7s %8s %8s %8s %6s %6s %4s\n", "operation", "algo", "proto",
		"count", "p50", "p99", "max", "algbw", "busbw", "late");
	fprintf(f, "%-28s %-5s %-6s %7s %8s %8s %8s %6s %6s %4s\n", "", "", "", "", "", "", "",
		"GB/s", "GB/s", "%");
	for (k = first; k; k = k->next) {
		if (k->n) {
			print_class(r, k, f);
			split |= k->proxy_span > 0;
		}
	}
	if (!split)
		return;
	fprintf(f, "\n%-28s %9s %9s %9s %17s\n", "progress threads, % of time", "on CPU",
		"runnable", "asleep", "receives: no data");
	for (k = first; k; k = k->next)
		if (k->n)
			print_split(r, k, f);
}

static int32_t ranks_of(const struct report_comm *c)
{
	return c->nranks ? c->nranks : c->max_rank + 1;
}

static void print_comm(const struct report *r, const struct report_comm *c, FILE *f)
{
	heading(r, f, "Communicator 0x%llx%s%s, %d ranks, %u of them here",
		(unsigned long long)c->hash, c->name ? " " : "", clean(r, c->name, 40), ranks_of(c),
		HASH_COUNT(c->members));
	print_kinds(r, c->classes, f);
}

/* ---- Many communicators ------------------------------------------------------------------------------------- */

struct comm_row {
	const struct report_comm *comm;
	uint32_t nr; /* its place among all */
	bool alone; /* there is something to be said of it: it hangs, or a verdict's worst operation was its */
	uint64_t kinds; /* hash of them; who makes others have the same one deceives nobody else */
	uint32_t nkinds;
};

/* Of those that are alike, or of one. */
struct comm_group {
	const struct comm_row *rows;
	uint32_t n;
	int64_t ns; /* of the one whose operations took longest */
};

static struct comm_row row_of(const struct report_comm *c, uint32_t nr)
{
	struct comm_row row = {.comm = c, .nr = nr, .alone = c->hung};
	const struct report_class *k;

	for (k = c->classes; k; k = k->next) {
		if (!k->n)
			continue;
		/* whatever their order */
		row.kinds += fnv_more(FNV_BEGIN, (const char *)&k->key.func,
				      sizeof(k->key) - offsetof(struct report_class_key, func));
		row.nkinds++;
	}
	return row;
}

static int cmp_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static bool are_alike(const struct comm_row *a, const struct comm_row *b)
{
	return !a->alone && !b->alone && ranks_of(a->comm) == ranks_of(b->comm) &&
	       HASH_COUNT(a->comm->members) == HASH_COUNT(b->comm->members) &&
	       a->nkinds == b->nkinds && a->kinds == b->kinds;
}

/* Those that are alike one after the other. */
static int by_shape(const void *pa, const void *pb)
{
	const struct comm_row *a = pa, *b = pb;

	if (a->alone != b->alone)
		return a->alone ? -1 : 1;
	if (a->alone)
		return cmp_u32(a->nr, b->nr);
	if (a->kinds != b->kinds)
		return a->kinds < b->kinds ? -1 : 1;
	return cmp_u32(a->nkinds, b->nkinds)
		       ?: cmp_u32((uint32_t)ranks_of(a->comm), (uint32_t)ranks_of(b->comm))
		       ?: cmp_u32(HASH_COUNT(a->comm->members), HASH_COUNT(b->comm->members))
		       ?: cmp_u32(a->nr, b->nr);
}

/* What hangs, then what verdicts are of, then what took longest. */
static int cmp_group(const void *pa, const void *pb)
{
	const struct comm_group *a = pa, *b = pb;
	const struct report_comm *x = a->rows->comm, *y = b->rows->comm;

	if (!x->hung != !y->hung)
		return x->hung ? -1 : 1;
	if (a->rows->alone != b->rows->alone)
		return a->rows->alone ? -1 : 1;
	return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : cmp_u32(a->rows->nr, b->rows->nr);
}

static int by_comm(const void *a, const void *b)
{
	const struct comm_row *x = a, *y = b;

	return (x->comm > y->comm) - (x->comm < y->comm);
}

/* All that had operations; owned by the caller (free). NULL: no memory. */
static struct comm_row *list_comms(const struct report *r, uint32_t *n)
{
	struct comm_row *list = calloc(HASH_COUNT(r->comms) + 1, sizeof(*list)), *row;
	struct comm_row key = {0};
	const struct report_comm *c, *tmp;
	struct report_find **finds;
	uint32_t nfinds, i;

	*n = 0;
	HASH_ITER (hh, r->comms, c, tmp)
		if (list && c->ops) {
			list[*n] = row_of(c, *n);
			++*n;
		}
	if (*n <= COMMS)
		return list;
	finds = report_findings(r, &nfinds);
	qsort(list, *n, sizeof(*list), by_comm);
	for (i = 0; finds && i < nfinds; i++) {
		key.comm = finds[i]->comm;
		row = bsearch(&key, list, *n, sizeof(*list), by_comm);
		if (row)
			row->alone = true;
	}
	free(finds);
	qsort(list, *n, sizeof(*list), by_shape);
	return list;
}

static uint32_t group_comms(const struct comm_row *rows, uint32_t n, struct comm_group *groups)
{
	uint32_t i, ngroups = 0;
	struct comm_group *g = NULL;

	for (i = 0; i < n; i++) {
		if (!g || !are_alike(g->rows, &rows[i])) {
			g = &groups[ngroups++];
			*g = (struct comm_group){.rows = &rows[i]};
		}
		g->n++;
		g->ns = g->ns > rows[i].comm->whole.ns ? g->ns : rows[i].comm->whole.ns;
	}
	qsort(groups, ngroups, sizeof(*groups), cmp_group);
	return ngroups;
}

static void add_kind(struct report_class *to, const struct report_class *k)
{
	to->min_bytes = to->min_bytes < k->min_bytes ? to->min_bytes : k->min_bytes;
	to->max_bytes = to->max_bytes > k->max_bytes ? to->max_bytes : k->max_bytes;
	to->n += k->n;
	to->bytes += k->bytes;
	hist__merge(&to->time, &k->time);
	to->late += k->late;
	to->on += k->on;
	to->runq += k->runq;
	to->blocked += k->blocked;
	to->proxy_span += k->proxy_span;
	to->no_data += k->no_data;
	to->op_span += k->op_span;
}

/* The one of @all that is of @k's kind, in whatever communicator; NULL: no memory. */
static struct report_class *sum_of(struct report_class **all, const struct report_class *k)
{
	struct report_class_key key = k->key;
	struct report_class *sum;

	key.comm = 0;
	HASH_FIND(hh, *all, &key, sizeof(key), sum);
	if (sum)
		return sum;
	sum = calloc(1, sizeof(*sum));
	if (!sum)
		return NULL;
	sum->key = key;
	sum->comm = k->comm; /* for how many ranks it is of */
	sum->min_bytes = UINT64_MAX;
	HASH_ADD(hh, *all, key, sizeof(key), sum);
	if (HASH_ADDED(hh, sum))
		return sum;
	free(sum);
	return NULL;
}

/* Of all that are alike; false: no memory. */
static bool sum_kinds(const struct comm_group *g, struct report_class **all)
{
	struct report_class *sum;
	const struct report_class *k;
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		for (k = g->rows[i].comm->classes; k; k = k->next) {
			sum = k->n ? sum_of(all, k) : NULL;
			if (k->n && !sum)
				return false;
			if (sum)
				add_kind(sum, k);
		}
	}
	for (sum = *all; sum; sum = sum->hh.next)
		sum->next = sum->hh.next;
	return true;
}

static void print_group(const struct report *r, const struct comm_group *g, FILE *f)
{
	const struct report_comm *c = g->rows->comm;
	struct report_class *all = NULL;

	heading(r, f, "%u communicators of %d ranks, %u of them here, alike: 0x%llx%s%s and so on",
		g->n, ranks_of(c), HASH_COUNT(c->members), (unsigned long long)c->hash,
		c->name ? " " : "", clean(r, c->name, 24));
	if (sum_kinds(g, &all))
		print_kinds(r, all, f);
	else
		put_no_memory(f);
	HASH_FREE_ALL(all);
}

static void put_more_comms(const struct comm_group *g, uint32_t n, FILE *f)
{
	uint32_t more = 0, hung = 0, i;

	for (i = 0; i < n; i++) {
		more += g[i].n;
		hung += g[i].rows->comm->hung != NULL;
	}
	if (!more)
		return;
	fprintf(f, "\n(%u more communicator%s", more, more == 1 ? "" : "s");
	if (hung)
		fprintf(f, ", of which %u hang%s", hung, hung == 1 ? "s" : "");
	else
		fputs(", whose operations took less time", f);
	fputs(": see --json or --csv)\n", f);
}

/* A large job has hundreds, of which most do the same: of many those that are alike in one table, and of these those that matter most. */
static void print_comms(const struct report *r, FILE *f)
{
	uint32_t n, ngroups, i;
	struct comm_row *rows = list_comms(r, &n);
	struct comm_group *groups = calloc(n + 1, sizeof(*groups));

	for (i = 0; groups && i < n && n <= COMMS; i++)
		print_comm(r, rows[i].comm, f);
	if (!rows || !groups)
		put_no_memory(f);
	if (rows && groups && n > COMMS) {
		ngroups = group_comms(rows, n, groups);
		for (i = 0; i < ngroups && i < COMMS; i++) {
			if (groups[i].n > 1)
				print_group(r, &groups[i], f);
			else
				print_comm(r, groups[i].rows->comm, f);
		}
		put_more_comms(groups + i, ngroups - i, f);
	}
	free(groups);
	free(rows);
}

/* ---- Slow ones ----------------------------------------------------------------------------------------------- */

struct slow_of {
	const struct report_class *class;
	const struct report_slow *slow;
};

static int cmp_slow(const void *a, const void *b)
{
	const struct report_slow *x = ((const struct slow_of *)a)->slow,
				 *y = ((const struct slow_of *)b)->slow;

	return x->duration < y->duration ? 1 : x->duration > y->duration ? -1 : 0;
}

static void slow_row(const struct report *r, const struct slow_of *of, FILE *f)
{
	const struct report_slow *s = of->slow;

	fprintf(f, "%-16.16s %9llu ", clean(r, s->func, 16), (unsigned long long)s->seq);
	if (HASH_COUNT(r->comms) > 1)
		fprintf(f, "%-12.12s ", comm_of(r, of->class->comm));
	fprintf(f, "%10s %10s  %-18s %3.0f%% ", s->hung ? "open" : span(s->duration),
		span(s->expected), report_code_names[s->code], 100 * s->confidence);
	if (s->rank >= 0)
		fprintf(f, "%5d%s%s\n", report_rank(s->who, s->rank), s->culprit ? "  " : "",
			clean(r, s->culprit, 48));
	else
		fprintf(f, "%5s\n", "-");
}

static void print_slow(const struct report *r, FILE *f)
{
	struct report_class *k, *tmp;
	struct slow_of *list;
	uint64_t all = 0;
	uint32_t n = 0, i;

	list = calloc((size_t)HASH_COUNT(r->classes) * REPORT_SLOW + 1, sizeof(*list));
	if (!list)
		return;
	HASH_ITER (hh, r->classes, k, tmp) {
		for (i = 0; i < k->nslow; i++)
			list[n++] = (struct slow_of){k, &k->slow[i]};
		all += k->all_slow;
	}
	qsort(list, n, sizeof(*list), cmp_slow);
	if (n) {
		heading(r, f, "Slow operations: %llu, the longest of them",
			(unsigned long long)all);
		fprintf(f, "%-16s %9s ", "operation", "seq");
		if (HASH_COUNT(r->comms) > 1)
			fprintf(f, "%-12s ", "communicator");
		fprintf(f, "%10s %10s  %-18s %4s %5s  %s\n", "took", "expected", "verdict", "sure",
			"rank", "culprit");
	}
	for (i = 0; i < n && i < TOP; i++)
		slow_row(r, &list[i], f);
	free(list);
}

/* ---- Ranks and threads -------------------------------------------------------------------------------------------- */

/* "-" where nothing tells: without the scheduler's context, or of operations without ProxyOps. */
static const char *span_if(bool known, int64_t ns)
{
	return known ? span(ns) : "-";
}

static void rank_row(const struct report *r, const struct report_proc *p, FILE *f)
{
	bool sched = p->on + p->runq + p->blocked > 0;
	char name[64], irq[16] = "-";

	snprintf(name, sizeof(name), "%.14s[%d]", clean(r, p->comm, 14), p->host_pid);
	if (sched)
		snprintf(irq, sizeof(irq), "%.0f%%", percent(p->irq, p->on));
	fprintf(f, "%-5d %-24.24s %9s | %8s %8s %8s %6s | %8s %8s %8s\n", p->rank, name,
		span(p->op_ns), span_if(sched, p->on), span_if(sched, p->runq),
		span_if(sched, p->blocked), irq, span(p->wait_peer), span(p->wait_net),
		span(p->wait_gpu));
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
		fprintf(f, "(%u more %s%s: see --json)\n", more, what, more == 1 ? "" : "s");
}

static void print_ranks(const struct report *r, FILE *f)
{
	uint32_t n, i;
	struct report_row *list = list_procs(r, true, &n);

	if (!list)
		put_no_memory(f);
	if (n) {
		heading(r, f, "Where the time of the ranks' operations went");
		fprintf(f, "%-5s %-24s %9s | %8s %8s %8s %6s | %8s %8s %8s\n", "rank", "process",
			"in ops", "on CPU", "runnable", "asleep", "irq", "no data", "no room",
			"GPU");
	}
	report_pick_rows(r, list, n, ROWS_MAX);
	for (i = 0; i < n && i < ROWS_MAX; i++)
		rank_row(r, list[i].proc, f);
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

#define TURN 8 /* threads */

static int64_t thread_ns(const struct report_thread *t)
{
	return t->on + t->runq + t->blocked + t->unknown;
}

static int64_t kept_ns(const struct thread_row *row)
{
	return row->thread->runq + row->thread->irq + row->thread->throttled;
}

/* Of each process, those that were kept from running most. */
static int most_kept(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;
	int64_t i = kept_ns(x), k = kept_ns(y);

	return cmp_u32(x->place, y->place) ?: (i != k ? (i > k ? -1 : 1) : cmp_u32(x->nr, y->nr));
}

static int by_turn(const void *a, const void *b)
{
	const struct thread_row *x = a, *y = b;

	return cmp_u32(x->turn, y->turn) ?: cmp_u32(x->place, y->place) ?: most_kept(a, b);
}

static int by_nr(const void *a, const void *b)
{
	return cmp_u32(((const struct thread_row *)a)->nr, ((const struct thread_row *)b)->nr);
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
			if (thread_ns(t)) {
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
	int64_t all = thread_ns(t);

	fprintf(f, "%-5d %-16.16s %9u %-6.6s %10s %7.1f%% %8.1f%% %6.1f%%", row->proc->rank,
		clean(r, t->comm, 16), t->tid, clean(r, t->role, 6), span(all), percent(t->on, all),
		percent(t->runq, all), percent(t->blocked, all));
	fprintf(f, " %7.1f%% %9.1f%%\n", percent(t->irq, all), percent(t->throttled, all));
}

static void print_threads(const struct report *r, FILE *f)
{
	uint32_t n, i;
	struct thread_row *list = list_threads(r, &n);

	if (!list) {
		put_no_memory(f);
		return;
	}
	if (n) {
		heading(r, f, "Threads, from when they were first seen to the end");
		fprintf(f, "%-5s %-26s %-6s %10s %8s %9s %7s %8s %10s\n", "rank", "thread", "role",
			"time", "on CPU", "runnable", "asleep", "irq", "throttled");
	}
	if (n > ROWS_MAX)
		pick_threads(r, list, n);
	for (i = 0; i < n && i < ROWS_MAX; i++)
		thread_row(r, &list[i], f);
	put_more(n > ROWS_MAX ? n - ROWS_MAX : 0, "thread", f);
	free(list);
}

/* ---- Culprits ------------------------------------------------------------------------------------------------------- */

struct culprit {
	uint32_t name;
	int64_t cost;
	uint64_t ops;
	uint32_t code;
};

static int cmp_culprit(const void *a, const void *b)
{
	const struct culprit *x = a, *y = b;

	return x->cost < y->cost ? 1 : x->cost > y->cost ? -1 : 0;
}

static void print_culprits(const struct report *r, FILE *f)
{
	uint32_t n, i, k, m = 0;
	struct report_find **list = report_findings(r, &n);
	struct culprit *c = calloc(n + 1, sizeof(*c));

	for (i = 0; list && c && i < n; i++) {
		if (!list[i]->key.culprit)
			continue;
		for (k = 0;
		     k < m && (c[k].name != list[i]->key.culprit || c[k].code != list[i]->key.code);
		     k++)
			;
		m += k == m;
		c[k].name = list[i]->key.culprit;
		c[k].code = list[i]->key.code;
		c[k].cost += list[i]->cost;
		c[k].ops += list[i]->ops > list[i]->slow ? list[i]->ops : list[i]->slow;
	}
	if (m) {
		qsort(c, m, sizeof(*c), cmp_culprit);
		heading(r, f, "Culprits over the whole job");
		fprintf(f, "%-58s %-18s %10s %11s\n", "process, flow, CPU or call", "verdict",
			"operations", "cost");
	}
	for (i = 0; i < m && i < TOP; i++)
		fprintf(f, "%-58.58s %-18s %10llu %11s\n", clean(r, c[i].name, 58),
			report_code_names[c[i].code], (unsigned long long)c[i].ops,
			span(c[i].cost));
	free(c);
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
	fprintf(f, "%4d %-16.16s |", rank, clean(r, p->host, 16));
	for (col = 0; col < cols; col++) {
		v = report_heat_cell(r, row, col);
		fputc(v < 0 ? ' ' : shades[1 + (int)(v > 0.999 ? 8 : v * 9)], f);
	}
	fputs("|\n", f);
}

static void put_rows_left(const struct report *r, uint32_t more, FILE *f)
{
	if (more)
		fprintf(f, "(%u more rank%s%s)\n", more, more == 1 ? "" : "s",
			report_heat_left(r) ? ", and those for which there was no room" : "");
}

static void print_heat(const struct report *r, FILE *f)
{
	uint32_t rows = report_heat_rows(r), row, col, used = 0, i;
	struct report_row *list;

	for (row = 0; row < rows; row++)
		for (col = used; col < HEAT_COLS; col++)
			if (report_heat_cell(r, row, col) >= 0)
				used = col + 1;
	if (rows < 2 || used < 2)
		return;
	heading(r, f, "Waiting for others, rank x time, a column is %s",
		span(report_heat_width(r)));
	list = report_heat_list(r);
	if (!list) {
		put_no_memory(f);
		return;
	}
	report_pick_rows(r, list, rows, ROWS_MAX);
	for (i = 0; i < rows && i < ROWS_MAX; i++)
		heat_line(r, list[i].nr, used, f);
	free(list);
	put_rows_left(r, rows > ROWS_MAX ? rows - ROWS_MAX : 0, f);
	fprintf(f, "%21s  %s\n", "",
		". none of its time ... @ all of it; the rank that others wait for is light");
}

/* ---- The whole ------------------------------------------------------------------------------------------------------------ */

static bool has_kernel(const struct report *r)
{
	const struct report_proc *p;

	for (p = r->procs; p; p = p->next)
		if (p->nthreads || p->on + p->runq + p->blocked)
			return true;
	return false;
}

static uint32_t procs_of(const struct report *r)
{
	const struct report_proc *p;
	uint32_t n = 0;

	for (p = r->procs; p; p = p->next)
		n += p->self == p;
	return n;
}

static int compare_u64(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Of processes, or of those with a header, how many different ones there are; `which`: offset of the number. */
static uint32_t distinct(const struct report *r, size_t which, bool headers)
{
	uint64_t *list = calloc(r->nprocs + 1, sizeof(*list));
	const struct report_proc *p;
	uint32_t n = 0, i, found = 0;

	for (p = r->procs; p && list; p = p->next)
		if (p->header || !headers)
			list[n++] = *(const uint64_t *)((const char *)p + which);
	if (n)
		qsort(list, n, sizeof(*list), compare_u64);
	for (i = 0; i < n; i++)
		found += !i || list[i] != list[i - 1];
	free(list);
	return found;
}

static uint32_t nodes_of(const struct report *r)
{
	return distinct(r, offsetof(struct report_proc, node), false);
}

/* Of nodes that merge could put into one clock. */
static uint32_t clocks_of(const struct report *r)
{
	return distinct(r, offsetof(struct report_proc, clock), true);
}

static int compare_process(const struct report_proc *a, const struct report_proc *b)
{
	int diff = compare_u64(&a->node, &b->node);

	if (!diff)
		diff = (a->host_pid > b->host_pid) - (a->host_pid < b->host_pid);
	return diff ?: (a->key.started > b->key.started) - (a->key.started < b->key.started);
}

/* By process, then by time. */
static int by_begin(const void *pa, const void *pb)
{
	const struct report_proc *const *a = pa, *const *b = pb;
	int diff = compare_process(*a, *b);

	if (!diff)
		diff = compare_u64(&(*a)->clock, &(*b)->clock);
	return diff ?: ((*a)->first > (*b)->first) - ((*a)->first < (*b)->first);
}

/* Processes whose time another recording of the input has, too: a trace and what it was merged into, say. */
static uint32_t twice(const struct report *r)
{
	uint8_t *seen = calloc(r->nprocs + 1, 1); /* of several windows, any */
	const struct report_proc **list = calloc(r->nprocs + 1, sizeof(*list)), *p, *was = NULL;
	uint32_t n = 0, i, found = 0;
	int64_t last = 0;
	bool same;

	for (p = r->procs; p && list && seen; p = p->next)
		if (p->header && p->events)
			list[n++] = p;
	if (n)
		qsort(list, n, sizeof(*list), by_begin);
	for (i = 0; i < n; i++) {
		p = list[i];
		same = was && !compare_process(was, p);
		if (same && (was->clock != p->clock || p->first < last) && !seen[p->self->index]) {
			seen[p->self->index] = 1;
			found++;
		}
		if (!same || was->clock != p->clock || p->last > last)
			last = p->last;
		was = p;
	}
	free(list);
	free(seen);
	return found;
}

static void print_losses(const struct report *r, FILE *f)
{
	const struct lost_cause *l, *tmp;

	fprintf(f, "Records lost: %s", r->losses ? "" : "0");
	HASH_ITER (hh, r->losses, l, tmp)
		fprintf(f, "%s%llu %s", l == r->losses ? "" : ", ", (unsigned long long)l->n,
			clean(r, l->name, 24));
	if (r->losses)
		fprintf(f, "; verdicts near a gap are less sure");
	if (r->totals.torn)
		fprintf(f, "; torn lines: %llu", (unsigned long long)r->totals.torn);
	if (r->totals.skipped)
		fprintf(f, "; lines that are no records: %llu",
			(unsigned long long)r->totals.skipped);
	fputs("\n", f);
}

/* Their last line is not the recording's end. Of what was read in part that is not known. */
static void print_unfinished(const struct report *r, FILE *f)
{
	uint32_t n = 0, all = 0;
	const struct report_proc *p;

	for (p = r->procs; p && !r->totals.cut; p = p->next) {
		all += p->header;
		n += p->header && !p->footer;
	}
	if (n)
		fprintf(f,
			"Recordings without an end: %u of %u. They still go on, or broke off: what "
			"came "
			"after is not known.\n",
			n, all);
}

static void print_notes(const struct report *r, FILE *f)
{
	const struct report_totals *t = &r->totals;
	uint32_t doubles = twice(r), clocks = clocks_of(r);

	if (t->cut)
		fprintf(f, "Only the first %.0f %% of the trace was read.\n",
			100.0 * (double)t->bytes / (double)(t->total_bytes ?: 1));
	print_unfinished(r, f);
	if (t->ops && !has_kernel(r))
		fprintf(f,
			"No kernel context in this trace: who kept threads from running and what "
			"became of packets is not known.\n");
	if (doubles)
		fprintf(f,
			"Processes that are in the input twice: %u. Their events are counted "
			"twice.\n",
			doubles);
	if (clocks > 1)
		fprintf(f,
			"The nodes have %u clocks: across them, late ranks are found by lengths "
			"only, and what\nthe other node had to send again is not known. "
			"'ncclscope merge' makes one of them.\n",
			clocks);
	if (t->unjoined)
		fprintf(f, "%llu operations are left out: more communicators or kinds than fit.\n",
			(unsigned long long)t->unjoined);
	if (t->forgotten)
		fprintf(f,
			"What was known of %llu operations or steps is left out: more than fit "
			"were "
			"under way.\n",
			(unsigned long long)t->forgotten);
	if (t->hurried)
		fprintf(f,
			"%llu operation%s did not wait for all ranks: more than fit were under "
			"way.\n",
			(unsigned long long)t->hurried, t->hurried == 1 ? "" : "s");
	if (t->hung_left)
		fprintf(f, "Why %llu operations never ended is not told: more than fit.\n",
			(unsigned long long)t->hung_left);
	if (t->strangers)
		fprintf(f,
			"%llu lines are of ranks that are more than fit: communicators do not wait "
			"for these.\n",
			(unsigned long long)t->strangers);
}

void report_text(const struct report *r, FILE *f)
{
	const struct report_totals *t = &r->totals;
	const struct report_proc *p;
	int64_t first = INT64_MAX, last = 0;

	for (p = r->procs; p; p = p->next) {
		if (p->last && p->first + p->offset < first)
			first = p->first + p->offset;
		if (p->last && p->last + p->offset > last)
			last = p->last + p->offset;
	}
	fprintf(f, "%llu file%s, %u process%s on %u node%s, %s, %llu operation%s, %llu record%s\n",
		(unsigned long long)t->files, t->files == 1 ? "" : "s", procs_of(r),
		procs_of(r) == 1 ? "" : "es", nodes_of(r), nodes_of(r) == 1 ? "" : "s",
		last ? span(last - first) : "0 s", (unsigned long long)t->ops,
		t->ops == 1 ? "" : "s", (unsigned long long)t->records, t->records == 1 ? "" : "s");
	print_losses(r, f);
	print_notes(r, f);
	print_findings(r, f, TOP);
	print_comms(r, f);
	print_slow(r, f);
	if (t->ops)
		print_ranks(r, f);
	print_threads(r, f);
	print_culprits(r, f);
	print_heat(r, f);
}

void report_brief(const struct report *r, const char *dir, FILE *f)
{
	print_findings(r, f, 3);
	print_notes(r, f);
	fprintf(f, "  More: ncclscope report %s\n", dir);
}
