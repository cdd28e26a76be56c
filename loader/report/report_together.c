// SPDX-License-Identifier: BSD-2-Clause
/*
 * Findings that are not worth a line by themselves, together: those of a rank that processes in turn kept from a CPU, and those of ranks that
 * take turns. docs/report.md has the rules.
 */
#include <stdlib.h>
#include <string.h>
#include "report_priv.h"
#include "report_text_priv.h"

#define NAMES_OWN 4096 /* texts of groups */

/* A process of the input, by its pid on the node. */
struct seat {
	uint64_t node;
	int32_t pid;
};

struct seats {
	struct seat *at; /* sorted */
	uint32_t n;
};

static int cmp_seat(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool take_seats(const struct report *r, struct seats *s)
{
	const struct report_proc *p;

	s->n = 0;
	s->at = calloc(r->nprocs + 1, sizeof(*s->at));
	if (!s->at)
		return false;
	for (p = r->procs; p; p = p->next)
		s->at[s->n++] = (struct seat){p->node, p->host_pid};
	qsort(s->at, s->n, sizeof(*s->at), cmp_seat);
	return true;
}

/* Of a culprit that is a process, comm[pid]: how long its name is; 0: it is none. */
static size_t process_of(const char *culprit, int32_t *pid)
{
	const char *at = strrchr(culprit, '[');
	size_t len = strlen(culprit);

	if (!at || at == culprit || culprit[len - 1] != ']')
		return 0;
	*pid = (int32_t)strtol(at + 1, NULL, 10);
	return (size_t)(at - culprit);
}

/* Of the job's own processes nobody is told but the one that has most: they share CPUs by turns. */
static bool is_of_job(const struct seats *s, const struct report_find *f, int32_t pid)
{
	const struct seat key = {f->who->node, pid};

	return bsearch(&key, s->at, s->n, sizeof(key), cmp_seat) != NULL;
}

/* NULL: there is no memory. */
static struct report_find *group_of(struct report *r, struct report_find **groups,
				    const struct report_find_key *key,
				    const struct report_proc *who)
{
	struct report_find *g;

	HASH_FIND(hh, *groups, key, sizeof(*key), g);
	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (g) {
		g->key = *key;
		g->who = who;
		HASH_ADD(hh, *groups, key, sizeof(g->key), g);
	}
	if (!g || !HASH_ADDED(hh, g)) {
		free(g);
		r->err = -ENOMEM;
		return NULL;
	}
	return g;
}

/* Its place among those that weigh most. */
static void note_most(struct report_together *t, const struct report_find *f)
{
	const struct report_share share = {.who = f->who,
					   .rank = f->key.rank,
					   .culprit = f->key.culprit,
					   .ns = most(f->odd_ns, f->slow_ns)};
	uint32_t i = t->nmost < REPORT_MOST ? t->nmost++ : REPORT_MOST;

	for (; i > 0 && t->most[i - 1].ns < share.ns; i--)
		if (i < REPORT_MOST)
			t->most[i] = t->most[i - 1];
	if (i < REPORT_MOST)
		t->most[i] = share;
}

/* @ranks: they are several, so that it is told which one the worst operation is of. */
static void join(struct report_find *g, struct report_find *f, bool ranks)
{
	f->in = g;
	g->together.n++;
	g->ops += f->ops;
	g->slow += f->slow;
	g->odd_ns += f->odd_ns;
	g->slow_ns += f->slow_ns;
	g->slow_conf += f->slow_conf;
	g->loss_near += f->loss_near;
	note_most(&g->together, f);
	if (f->worst <= g->worst)
		return;
	g->worst = f->worst;
	g->comm = f->comm;
	g->confidence = f->confidence;
	memcpy(g->evidence, f->evidence, sizeof(g->evidence));
	if (ranks)
		snprintf(g->evidence[0], sizeof(g->evidence[0]), "rank %d: %.230s",
			 report_rank(f->who, f->key.rank), f->evidence[0]);
}

struct report_find *report_by_rank(struct report *r)
{
	struct report_find *groups = NULL, *f, *tmp, *g;
	struct report_find_key key;
	struct seats seats;
	size_t len;
	int32_t pid;

	if (!take_seats(r, &seats)) {
		r->err = -ENOMEM;
		return NULL;
	}
	HASH_ITER (hh, r->finds, f, tmp) {
		if (f->key.code != CODE_PREEMPTED || !f->who)
			continue;
		/* so many that they have no name are some of them, however much they have */
		if (f->named && f->key.culprit != NAMES_OTHERS)
			continue;
		len = process_of(names__text(r->names, f->key.culprit), &pid);
		if (len && is_of_job(&seats, f, pid))
			continue;
		key = f->key;
		key.culprit = 0;
		g = group_of(r, &groups, &key, f->who);
		if (!g)
			break;
		join(g, f, false);
		g->together.processes += len > 0;
		g->together.more |= !len;
	}
	free(seats.at);
	return groups;
}

/* That have operations: their ranks do not take turns with each other. */
static bool are_several_jobs(const struct report *r)
{
	const struct report_proc *p;
	uint32_t n = 0;

	for (p = r->procs; p && n < 2; p = p->next)
		n += p->of_job.whole.ops > 0;
	return n > 1;
}

static void join_ranks(struct report *r, struct report_find **groups, struct report_find *of,
		       enum report_code code, bool by_job)
{
	const struct report_proc *job;
	struct report_find *f, *tmp, *g;
	struct report_find_key key;

	HASH_ITER (hh, of, f, tmp) {
		if (f->named || f->key.code != code || !f->who)
			continue;
		memset(&key, 0, sizeof(key));
		key.code = code;
		key.proc = UINT32_MAX;
		key.rank = -1;
		job = report_judged_with(r, f->who);
		key.comm = by_job ? job->within : 0;
		g = group_of(r, groups, &key, NULL);
		if (!g)
			return;
		join(g, f, true);
		g->together.job = job;
		g->together.ranks++;
		g->together.more |= f->together.more;
	}
}

struct report_find *report_in_turn(struct report *r, struct report_find *by_rank)
{
	struct report_find *groups = NULL;
	bool by_job = are_several_jobs(r);

	join_ranks(r, &groups, r->finds, CODE_LATE_RANK, by_job);
	join_ranks(r, &groups, by_rank, CODE_PREEMPTED, by_job);
	return groups;
}

/* ---- What is told of them ------------------------------------------------------------------------------------ */

/* The group that is told in place of a finding; NULL: none is. */
static struct report_find *told_in(const struct report_find *f)
{
	struct report_find *g = f->in;

	if (g && !g->named)
		g = g->in;
	return g && g->named ? g : NULL;
}

static int64_t weight_of(const struct report_find *f)
{
	return f->odd_ns / 2 + f->slow_ns / 2; /* may be large both */
}

/* Of a culprit the process' name; 0: it is no process. */
static uint32_t comm_of(const struct report *r, const struct report_find *f)
{
	const char *culprit = names__text(r->names, f->key.culprit);
	int32_t pid;

	return names__get(r->names, culprit, process_of(culprit, &pid));
}

/* The only name that may have more than half of it all: each weighs against each other one. */
static void vote(const struct report *r)
{
	struct report_find *f, *tmp, *g;
	struct report_together *t;
	uint32_t comm;

	HASH_ITER (hh, r->finds, f, tmp) {
		g = told_in(f);
		comm = g ? comm_of(r, f) : 0;
		if (!comm)
			continue;
		t = &g->together;
		if (comm != t->comm && t->lead < weight_of(f)) {
			t->comm = comm;
			t->lead = weight_of(f) - t->lead;
		} else {
			t->lead += comm == t->comm ? weight_of(f) : -weight_of(f);
		}
	}
}

/* What it has, after all, and what all have. */
static void count(const struct report *r)
{
	struct report_find *f, *tmp, *g;

	vote(r);
	HASH_ITER (hh, r->finds, f, tmp) {
		g = told_in(f);
		if (!g)
			continue;
		g->together.all += weight_of(f);
		g->together.of_comm += comm_of(r, f) == g->together.comm ? weight_of(f) : 0;
	}
}

/* A process may be before several ranks: how many there are, and (*one) any of these. */
static uint32_t distinct(const struct report *r, const struct report_find *g, uint32_t *one)
{
	struct seat *list = calloc(HASH_COUNT(r->finds) + 1, sizeof(*list));
	const struct report_find *f, *tmp;
	uint32_t n = 0, i, found = 0;
	int32_t pid;

	HASH_ITER (hh, r->finds, f, tmp) {
		if (!list || told_in(f) != g ||
		    !process_of(names__text(r->names, f->key.culprit), &pid))
			continue;
		*one = f->key.culprit;
		list[n++] = (struct seat){f->who->node, pid};
	}
	if (n)
		qsort(list, n, sizeof(*list), cmp_seat);
	for (i = 0; i < n; i++)
		found += !i || cmp_seat(&list[i - 1], &list[i]);
	free(list);
	return found;
}

static uint32_t name_of(const struct report *r, struct report_find *g)
{
	struct report_together *t = &g->together;
	const char *comm = names__text(r->names, t->comm);
	char many[48] = "many processes";
	uint32_t one = 0;

	if (g->key.code == CODE_LATE_RANK)
		return names__printf(r->names, "%u ranks in turn", t->ranks);
	if (t->ranks)
		t->processes = distinct(r, g, &one);
	if (t->processes == 1 && !t->more && one)
		return one;
	if (t->processes > 1)
		snprintf(many, sizeof(many), "%u processes%s", t->processes,
			 t->more ? " or more" : "");
	if (!t->comm)
		return names__printf(r->names, "%s", many);
	if (t->of_comm == t->all)
		return names__printf(r->names, "%s, %s", comm, many);
	if (t->of_comm > t->all / 2)
		return names__printf(r->names, "%s, mostly %s", many, comm);
	return names__printf(r->names, "%s", many);
}

static void name_all(const struct report *r, struct report_find *groups)
{
	struct report_find *g, *tmp;

	HASH_ITER (hh, groups, g, tmp)
		g->together.name = g->named ? name_of(r, g) : 0;
}

static void keep(struct report *r, struct report_find **groups)
{
	struct report_find *g, *tmp;

	HASH_ITER (hh, *groups, g, tmp) {
		HASH_DEL(*groups, g);
		if (g->named) {
			g->key.culprit = g->together.name;
			HASH_ADD(hh, r->finds, key, sizeof(g->key), g);
		}
		if (!g->named || !HASH_ADDED(hh, g))
			free(g);
	}
}

void report_keep_together(struct report *r, struct report_find *by_rank,
			  struct report_find *in_turn)
{
	struct report_find *f, *tmp;

	HASH_ITER (hh, r->finds, f, tmp)
		f->named &= !told_in(f);
	count(r);
	names__more(r->names, NAMES_OWN);
	name_all(r, by_rank);
	name_all(r, in_turn);
	HASH_ITER (hh, r->finds, f, tmp)
		f->in = NULL; /* not all of them are kept */
	keep(r, &by_rank);
	keep(r, &in_turn);
}

bool report_tell_most(const struct report *r, const struct report_find *f, char *at, size_t len)
{
	const struct report_together *t = &f->together;
	const struct report_share *s;
	size_t used = 0;

	for (s = t->most; s < t->most + t->nmost && used < len; s++) {
		used += (size_t)snprintf(at + used, len - used, "%s ",
					 s == t->most ? "first of all" : ",");
		if (used >= len)
			break;
		if (!t->ranks)
			used += (size_t)snprintf(at + used, len - used, "%.60s %s",
						 names__text(r->names, s->culprit),
						 words__span(s->ns));
		else
			used += (size_t)snprintf(
				at + used, len - used, "rank %d%s%.24s %s",
				report_rank(s->who, s->rank), s->who->host ? " on " : "",
				names__text(r->names, s->who->host), words__span(s->ns));
	}
	return t->nmost;
}
