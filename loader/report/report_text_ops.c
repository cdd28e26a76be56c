// SPDX-License-Identifier: BSD-2-Clause
/* The report for people, what was done: a table for each communicator, or for many that are alike; the slow ones. */
#include <stdlib.h>
#include <string.h>
#include "fnv.h"
#include "human.h"
#include "report_text_priv.h"

#define COMMS 16 /* that are told of one by one */

/* ---- Operations ------------------------------------------------------------------------------------------------ */

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

/* Of a kind of which nothing tells how long one took. */
static void print_untimed(const struct report_class *k, FILE *f)
{
	if (!k->hung)
		fprintf(f, "  (when they really ended is not known)\n");
	else
		fprintf(f, "  (%llu never ended%s)\n", (unsigned long long)k->hung,
			k->hung < k->n ? ", when the others really did is not known" : "");
}

/* GB/s: two places, or as many as three figures take. */
static const char *bandwidth(double v, char *at, size_t len)
{
	static const double below[] = {0.1, 0.01, 0.001};
	int places = 2, i;

	for (i = 0; i < 3 && v > 0; i++)
		places = v < below[i] ? 4 + i : places;
	snprintf(at, len, "%.*f", places, v);
	return at;
}

static void print_class(const struct report *r, const struct report_class *k, FILE *f)
{
	char name[40], alg[32], bus[32];

	snprintf(name, sizeof(name), "%.14s %.13s", words__name(r, k->key.func, 14),
		 size_text(r, k));
	fprintf(f, "%-28s %-5.5s %-6.6s %7llu", name, words__name(r, k->key.algo, 5),
		words__name(r, k->key.proto, 6), (unsigned long long)k->n);
	if (!k->time.n) {
		print_untimed(k, f);
		return;
	}
	fprintf(f, " %8.8s %8.8s %8.8s %8s %8s", words__span(hist__quantile(&k->time, 0.5)),
		words__span(hist__quantile(&k->time, 0.99)), words__span(k->time.max),
		bandwidth(report_algbw(r, k), alg, sizeof(alg)),
		bandwidth(report_busbw(r, k), bus, sizeof(bus)));
	fprintf(f, " %4.0f\n", percent(k->late, k->op_span));
}

static void print_split(const struct report *r, const struct report_class *k, FILE *f)
{
	char name[40], no_data[16] = "-";

	if (!k->proxy_span)
		return;
	if (k->flows)
		snprintf(no_data, sizeof(no_data), "%.0f", percent(k->no_data, k->op_span));
	snprintf(name, sizeof(name), "%.14s %.13s", words__name(r, k->key.func, 14),
		 size_text(r, k));
	fprintf(f, "%-28s %9.0f %9.0f %9.0f %17s\n", name, percent(k->on, k->proxy_span),
		percent(k->runq, k->proxy_span), percent(k->blocked, k->proxy_span), no_data);
}

static void print_kinds(const struct report *r, const struct report_class *first, FILE *f)
{
	const struct report_class *k;
	bool split = false;

	fprintf(f, "%-28s %-5s %-6s %7s %8s %8s %8s %8s %8s %4s\n", "operation", "algo", "proto",
		"count", "p50", "p99", "max", "algbw", "busbw", "late");
	fprintf(f, "%-28s %-5s %-6s %7s %8s %8s %8s %8s %8s %4s\n", "", "", "", "", "", "", "",
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

static void print_comm(const struct report *r, const struct report_comm *c, FILE *f)
{
	words__heading(r, f, "Communicator 0x%llx%s%s, %d ranks, %u of them here",
		       (unsigned long long)c->hash, c->name ? " " : "", words__name(r, c->name, 40),
		       report_nranks(c), HASH_COUNT(c->members));
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

static bool are_alike(const struct comm_row *a, const struct comm_row *b)
{
	return !a->alone && !b->alone && report_nranks(a->comm) == report_nranks(b->comm) &&
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
		return compare_u32(a->nr, b->nr);
	if (a->kinds != b->kinds)
		return a->kinds < b->kinds ? -1 : 1;
	return compare_u32(a->nkinds, b->nkinds)
		       ?: compare_u32((uint32_t)report_nranks(a->comm), (uint32_t)report_nranks(b->comm))
		       ?: compare_u32(HASH_COUNT(a->comm->members), HASH_COUNT(b->comm->members))
		       ?: compare_u32(a->nr, b->nr);
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
	return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : compare_u32(a->rows->nr, b->rows->nr);
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

	words__heading(r, f,
		       "%u communicators of %d ranks, %u of them here, alike: 0x%llx%s%s and so on",
		       g->n, report_nranks(c), HASH_COUNT(c->members), (unsigned long long)c->hash,
		       c->name ? " " : "", words__name(r, c->name, 24));
	if (sum_kinds(g, &all))
		print_kinds(r, all, f);
	else
		words__no_memory(f);
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
	fprintf(f, "\n(%u more communicator%s", more, human__s(more));
	if (hung)
		fprintf(f, ", of which %u hang%s", hung, hung == 1 ? "s" : "");
	else
		fputs(", whose operations took less time", f);
	fputs(": see --json or --csv)\n", f);
}

/* A large job has hundreds, of which most do the same: of many those that are alike in one table, and of these those that matter most. */
void report_text_comms(const struct report *r, FILE *f)
{
	uint32_t n, ngroups, i;
	struct comm_row *rows = list_comms(r, &n);
	struct comm_group *groups = calloc(n + 1, sizeof(*groups));

	for (i = 0; groups && i < n && n <= COMMS; i++)
		print_comm(r, rows[i].comm, f);
	if (!rows || !groups)
		words__no_memory(f);
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

/* The last column; below it what is too long for it, up to the same end. */
static void put_culprit(const struct report *r, const struct report_slow *s, int at, FILE *f)
{
	const char *name = words__name(r, s->culprit, REPORT_COLUMNS - 1);

	if (at + 2 + (int)strlen(name) <= REPORT_COLUMNS)
		fprintf(f, "%s%s\n", *name ? "  " : "", name);
	else
		fprintf(f, "\n%*s\n", REPORT_COLUMNS, name);
}

static void slow_row(const struct report *r, const struct slow_of *of, FILE *f)
{
	const struct report_slow *s = of->slow;
	char rank[16] = "-";
	int at;

	if (s->rank >= 0)
		snprintf(rank, sizeof(rank), "%d", report_rank(s->who, s->rank));
	at = fprintf(f, "%-16.16s %9llu ", words__name(r, s->func, 16), (unsigned long long)s->seq);
	if (HASH_COUNT(r->comms) > 1)
		at += fprintf(f, "%-12.12s ", words__comm(r, of->class->comm));
	at += fprintf(f, "%9s %9s  %-18s %3.0f%% %5s", s->hung ? "open" : words__span(s->duration),
		      words__span(s->expected), report_code_names[s->code], 100 * s->confidence,
		      rank);
	put_culprit(r, s, at, f);
}

void report_text_slow(const struct report *r, FILE *f)
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
		words__heading(r, f, "Slow operations: %llu, the longest of them",
			       (unsigned long long)all);
		fprintf(f, "%-16s %9s ", "operation", "seq");
		if (HASH_COUNT(r->comms) > 1)
			fprintf(f, "%-12s ", "communicator");
		fprintf(f, "%9s %9s  %-18s %4s %5s  %s\n", "took", "expected", "verdict", "sure",
			"rank", "culprit");
	}
	for (i = 0; i < n && i < REPORT_TOP; i++)
		slow_row(r, &list[i], f);
	free(list);
}
