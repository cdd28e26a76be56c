// SPDX-License-Identifier: BSD-2-Clause
/* The report for people: 100 columns, plain text, colour only on a terminal; see report.h. */
#include <stdlib.h>
#include <string.h>
#include "human.h"
#include "report_text_priv.h"

/* ---- The verdicts ------------------------------------------------------------------------------------------ */

static void put_rank(const struct report *r, const struct report_find *f, char *to, size_t len)
{
	const struct report_proc *p = f->who;
	int32_t rank = report_rank(p, f->key.rank);
	const struct report_comm *c = NULL;
	char of[32] = "";

	/* of a process that is several ranks: the same number is another one in each communicator; or of one of several jobs */
	if (f->key.comm && (!p || f->key.comm != p->within))
		HASH_FIND(hh, r->comms, &f->key.comm, sizeof(f->key.comm), c);
	if (c)
		snprintf(of, sizeof(of), " of %s", words__comm(r, c));
	if (f->together.ranks)
		snprintf(to, len, "%u ranks in turn%s", f->together.ranks, of);
	else if (!p)
		snprintf(to, len, "%s%.56s", f->key.culprit ? "port " : "-",
			 words__name(r, f->key.culprit, 56));
	else if (p->host)
		snprintf(to, len, "rank %d%s, %s[%d] on %.24s", rank, of,
			 words__name(r, p->comm, 15), p->host_pid, words__name(r, p->host, 24));
	else
		snprintf(to, len, "rank %d%s, process %d", rank, of, p->host_pid);
}

/* How much of a text goes into `room` columns: all of it, or up to behind a comma in the second half, or else a word there. */
static size_t line_len(const char *text, size_t room)
{
	size_t len = strlen(text), word = 0, n;

	if (len <= room)
		return len;
	for (n = room; n > room / 2; n--) {
		if (text[n] != ' ')
			continue;
		if (text[n - 1] == ',')
			return n;
		word = word ?: n;
	}
	return word ?: room;
}

/* On several lines where one is too short. There are names of others' in it. */
static void put_evidence(FILE *out, const char *before, const char *evidence)
{
	char text[sizeof(((struct report_find *)NULL)->evidence[0])] = "";
	const char *at = text, *indent = "     ";
	size_t n;

	report_clean(text, sizeof(text), evidence);
	do {
		n = line_len(at, REPORT_COLUMNS - strlen(indent) - strlen(before));
		fprintf(out, "%s%s%.*s\n", indent, before, (int)n, at);
		at += n + (at[n] == ' ');
		before = "";
		indent = "       ";
	} while (*at);
}

static void put_operations(const struct report_find *f, FILE *out)
{
	uint64_t n = f->ops > f->slow ? f->ops : f->slow;

	if (!n) {
		fputs("     in no operation that was recorded", out);
		return;
	}
	fprintf(out, "     in %llu operation%s, %llu of them slow", (unsigned long long)n,
		human__s(n), (unsigned long long)f->slow);
	if (f->hung)
		fprintf(out, ", %llu never ended", (unsigned long long)f->hung);
}

static void print_finding(const struct report *r, const struct report_find *f, uint32_t no,
			  FILE *out)
{
	char rank[96], gpu[160], most[256];
	uint32_t i;

	put_rank(r, f, rank, sizeof(rank));
	fprintf(out, "%s%3u. %-18s%s", r->opt.color ? "\033[33m" : "", no,
		report_code_names[f->key.code], r->opt.color ? "\033[0m" : "");
	fprintf(out, " %-56.56s %9s  %3.0f %%\n", rank, words__span(f->cost), 100 * f->conf);
	if (f->key.culprit && (f->who || f->key.code == CODE_PREEMPTED))
		fprintf(out, "     %s %.90s\n",
			f->key.code == CODE_PREEMPTED ? "behind"
			: f->key.code == CODE_BLOCKED ? "in"
						      : "by",
			words__name(r, f->key.culprit, 80));
	for (i = 0; i < REPORT_EVIDENCE; i++)
		if (f->evidence[i][0])
			put_evidence(out, i ? "" : "worst: ", f->evidence[i]);
	if (report_tell_most(r, f, most, sizeof(most)))
		put_evidence(out, "", most);
	if (f->who && f->who->self->kmsg)
		put_evidence(out, "kernel's log: ", f->who->self->kmsg->text);
	if (report_tell_gpu(f, gpu, sizeof(gpu)))
		put_evidence(out, "", gpu);
	put_operations(f, out);
	if (f->loss_near)
		fprintf(out, "; %llu records lost near them", (unsigned long long)f->loss_near);
	fputs("\n", out);
}

static void print_findings(const struct report *r, FILE *out, uint32_t max)
{
	uint32_t n, i;
	struct report_find **list = report_findings(r, &n);
	double lost = words__much_lost(r);

	if (!n && !r->totals.ops) { /* report_text_still() has said what there is */
		free(list);
		return;
	}
	if (!n && lost > 0)
		words__heading(r, out,
			       "Why it was slow: cannot tell, as %.0f %% of the records were lost",
			       lost);
	else
		words__heading(r, out, "Why it was slow%s", n ? "" : ": nothing stands out");
	if (list && n)
		fprintf(out, "     %-18s %-56s %9s  %s\n", "verdict", "who", "cost", "sure");
	for (i = 0; list && i < n && i < max; i++)
		print_finding(r, list[i], i + 1, out);
	if (n > max)
		fprintf(out, "     and %u more\n", n - max);
	free(list);
}

/* And of jobs that have none: what does nothing is nobody's verdict, and comes behind those of others. */
static void print_verdicts(const struct report *r, FILE *out, uint32_t max)
{
	if (!r->totals.ops)
		report_text_still(r, out);
	print_findings(r, out, max);
	if (r->totals.ops)
		report_text_still(r, out);
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
		if (!list[i]->key.culprit || list[i]->key.code == CODE_LATE_RANK)
			continue; /* the ranks themselves */
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
		words__heading(r, f, "Culprits over the whole job");
		fprintf(f, "%-58s %-18s %10s %11s\n", "process, flow, port, CPU or call", "verdict",
			"operations", "cost");
	}
	for (i = 0; i < m && i < REPORT_TOP; i++)
		fprintf(f, "%-58.58s %-18s %10llu %11s\n", words__name(r, c[i].name, 58),
			report_code_names[c[i].code], (unsigned long long)c[i].ops,
			words__span(c[i].cost));
	free(c);
	free(list);
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
			words__name(r, l->name, 24));
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

/* Who was held up is told of; that whoever did so may be nobody of these is to be said. */
static void print_partial(const struct report *r, FILE *f)
{
	const struct report_comm *c;
	uint32_t n = report_partial(r, &c);

	if (!n)
		return;
	fprintf(f, "Ranks: %u of %d of communicator %s", HASH_COUNT(c->members), report_nranks(c),
		words__comm(r, c));
	if (n > 1)
		fprintf(f, ", and not all of %u other%s,", n - 1, human__s(n - 1));
	fputs(" are in this input.\nWhoever held them up may be one of the others: "
	      "report all nodes' traces together.\n",
	      f);
}

/* What nobody can tell then is no verdict: that is to be said. */
static void print_alone(const struct report *r, FILE *f)
{
	const struct report_comm *c, *tmp;
	uint64_t n = 0;

	HASH_ITER (hh, r->comms, c, tmp)
		n += c->alone;
	if (n)
		fprintf(f,
			"NCCL up to 2.25 numbers only what is recorded: %llu collective%s of ranks "
			"that were\n"
			"recorded later than their communicators began are not compared with each "
			"other, and count\n"
			"for each rank. Record such jobs from their start, and not in windows "
			"(--every), to have\nthem joined.\n",
			(unsigned long long)n, human__s(n));
}

static void print_notes(const struct report *r, FILE *f)
{
	const struct report_totals *t = &r->totals;
	uint32_t doubles = twice(r), clocks = clocks_of(r);

	if (t->cut)
		fprintf(f, "Only the first %.0f %% of the trace was read.\n",
			100.0 * (double)t->bytes / (double)(t->total_bytes ?: 1));
	print_partial(r, f);
	print_unfinished(r, f);
	print_alone(r, f);
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
	if (clocks > 1 && t->too_late > t->ops / 100) /* fewer: a rank's record is lost */
		fprintf(f,
			"Of %llu operation%s ranks came when nobody waited for them any more, and "
			"count as another\noperation: real clocks seem to be too far apart. "
			"'ncclscope merge' first.\n",
			(unsigned long long)t->too_late, human__s(t->too_late));
	if (t->read_late && t->one_by_one)
		fprintf(f,
			"Of %llu operation%s ranks were read when nobody waited for them any more, "
			"and count as another\noperation: the processes of standard input or of "
			"one compressed file are not read side by side (give\ntheir directory or "
			"files, or that file unpacked), nor are more than 4,096 recordings of one "
			"time.\n",
			(unsigned long long)t->read_late, human__s(t->read_late));
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
			(unsigned long long)t->hurried, human__s(t->hurried));
	if (t->hung_left)
		fprintf(f, "Why %llu operations never ended is not told: more than fit.\n",
			(unsigned long long)t->hung_left);
	if (t->kmsg_left)
		fprintf(f, "%llu lines of kernels' logs are left out: more than fit.\n",
			(unsigned long long)t->kmsg_left);
	if (t->ports_left)
		fprintf(f,
			"What RDMA ports counted is left out %llu times: more ports, counters or "
			"recordings than fit.\n",
			(unsigned long long)t->ports_left);
	if (t->gpus_left)
		fprintf(f, "%llu samples of GPUs are left out: more GPUs or recordings than fit.\n",
			(unsigned long long)t->gpus_left);
	if (t->strangers)
		fprintf(f,
			"%llu lines are of ranks that are more than fit: communicators do not wait "
			"for these.\n",
			(unsigned long long)t->strangers);
}

void report_text(const struct report *r, FILE *f)
{
	const struct report_totals *t = &r->totals;
	int64_t first, last;

	report_times(r, &first, &last);
	fprintf(f, "%llu file%s, %u process%s on %u node%s, %s, %llu operation%s, %llu record%s\n",
		(unsigned long long)t->files, human__s(t->files), procs_of(r),
		human__es(procs_of(r)), nodes_of(r), human__s(nodes_of(r)),
		last ? words__span(last - first) : "0 s", (unsigned long long)t->ops,
		human__s(t->ops), (unsigned long long)t->records, human__s(t->records));
	print_losses(r, f);
	print_notes(r, f);
	print_verdicts(r, f, REPORT_TOP);
	report_text_comms(r, f);
	report_text_slow(r, f);
	if (t->ops)
		report_text_ranks(r, f);
	report_text_threads(r, f);
	report_text_ports(r, f);
	report_text_gpus(r, f);
	report_text_kmsg(r, f);
	print_culprits(r, f);
	report_text_heat(r, f);
}

void report_brief(const struct report *r, const char *dir, FILE *f)
{
	print_verdicts(r, f, 3);
	print_notes(r, f);
	fprintf(f, "  More: ncclscope report %s\n", dir);
}
