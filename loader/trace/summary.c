// SPDX-License-Identifier: BSD-2-Clause
/* What `record` prints at its end; see summary.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "human.h"
#include "nccl_names.h"
#include "nccl_profiler.h"
#include "out.h"
#include "session.h"
#include "summary.h"
#include "trace_keys.h"

#define COLUMNS 100

/* What never ended has taken until now. */
static uint64_t took_ns(const struct proc *p, const struct corr_event *ev)
{
	uint64_t end = ev->open_children && p->corr.now_ns > ev->exec_stop_ns ? p->corr.now_ns
									      : ev->exec_stop_ns;

	return end - ev->start_ns;
}

static void op_fill(struct summary_op *op, const struct proc *p, const struct corr_event *ev)
{
	uint16_t func = ev->what == SCOPE_COLL ? ev->start.coll.func : ev->start.p2p.func;
	uint16_t type = ev->what == SCOPE_COLL ? ev->start.coll.datatype : ev->start.p2p.datatype;

	memset(op, 0, sizeof(*op));
	op->duration_ns = took_ns(p, ev);
	op->open = ev->open_children;
	op->seq = ev->what == SCOPE_COLL ? ev->start.coll.seq : 0;
	op->count = ev->what == SCOPE_COLL ? ev->start.coll.count : ev->start.p2p.count;
	op->comm_hash = ev->comm ? ev->comm->info.hash : 0;
	op->rank = ev->comm ? ev->comm->info.rank : -1;
	op->pid = p->id.tgid; /* the node's: containers count each on their own */
	if (func < SCOPE_STRINGS)
		memcpy(op->func, p->strings[func].text,
		       p->strings[func].len < sizeof(op->func) ? p->strings[func].len
							       : sizeof(op->func) - 1);
	if (type < SCOPE_STRINGS)
		memcpy(op->datatype, p->strings[type].text,
		       p->strings[type].len < sizeof(op->datatype) ? p->strings[type].len
								   : sizeof(op->datatype) - 1);
}

static void note_slow(struct summary *s, const struct proc *p, const struct corr_event *ev)
{
	uint64_t d = took_ns(p, ev);
	uint32_t i = s->nslowest;

	if (i == SUMMARY_SLOWEST && s->slowest[i - 1].duration_ns >= d)
		return;
	if (i < SUMMARY_SLOWEST)
		s->nslowest++;
	else
		i--;
	for (; i > 0 && s->slowest[i - 1].duration_ns < d; i--)
		s->slowest[i] = s->slowest[i - 1];
	op_fill(&s->slowest[i], p, ev);
}

void summary__event(struct summary *s, const struct proc *p, const struct corr_event *ev,
		    const struct sched_join *join)
{
	/* Only where something tells when it really ended, or that it did not. */
	bool ran = (ev->what == SCOPE_COLL || ev->what == SCOPE_P2P) &&
		   (ev->exec > EXEC_ENQUEUE || ev->open_children);

	s->events[ev->what]++;
	s->unfinished += ev->unfinished && !ev->silent;
	s->silent += ev->unfinished && ev->silent;
	s->orphans += ev->orphan;
	s->ran |= ran;
	if (ran && ev->stopped)
		note_slow(s, p, ev);
	if (join->app.threads)
		sched_span__add(&s->app, &join->app);
	if (join->proxy.threads)
		sched_span__add(&s->proxy, &join->proxy);
}

#define WORTH_TELLING 10 /* segments: some are lost on any network */

static bool is_worse(const struct summary_flow *a, const struct summary_flow *b)
{
	uint64_t held_a = a->rwnd_ns + a->sndbuf_ns, held_b = b->rwnd_ns + b->sndbuf_ns;

	return a->needed != b->needed ? a->needed > b->needed : held_a > held_b;
}

void summary__flow(struct summary *s, const struct flow *flow, const struct flow_counts *c,
		   uint64_t jiffy_ns)
{
	struct summary_flow f = {.rank = flow->role.rank,
				 .peer = flow->role.peer,
				 .again = c->retrans,
				 .needed = c->retrans > c->dsack ? c->retrans - c->dsack : 0,
				 .busy_ns = c->busy * jiffy_ns,
				 .rwnd_ns = c->rwnd * jiffy_ns,
				 .sndbuf_ns = c->sndbuf * jiffy_ns};
	uint32_t i = s->nworst;

	s->flows++;
	s->tx_bytes += c->bytes[SCOPE_TX];
	s->rx_bytes += c->bytes[SCOPE_RX];
	s->again += f.again;
	s->needed += f.needed;
	if (f.needed < WORTH_TELLING && (f.rwnd_ns + f.sndbuf_ns) * 4 < f.busy_ns + 1)
		return;
	if (i == SUMMARY_WORST && !is_worse(&f, &s->worst[i - 1]))
		return;
	if (i < SUMMARY_WORST)
		s->nworst++;
	else
		i--;
	for (; i > 0 && is_worse(&f, &s->worst[i - 1]); i--)
		s->worst[i] = s->worst[i - 1];
	memcpy(f.name, flow->name, sizeof(f.name));
	s->worst[i] = f;
}

void summary__proc_end(struct summary *s, const struct proc *p)
{
	s->may_have_kernels += p->from_start || p->mask & KERNELS;
	s->kernels_late += p->kernels_late;
	s->may_hang += p->no_kernels == SCOPE_KERNELS_MAY_HANG;
	s->shm_full += p->no_kernels == SCOPE_KERNELS_SHM_FULL;
	s->late += p->corr.counts.late;
	s->malformed += p->corr.counts.malformed;
	s->evicted += p->corr.counts.evicted;
	s->hung += p->corr.hung.events;
	if (p->corr.hung.longest_ns > s->hung_ns)
		s->hung_ns = p->corr.hung.longest_ns;
	s->records += p->recs;
	s->traced += p->events;
	if (!p->header_written && p->header_err) {
		s->unwritten_err = s->unwritten++ ? s->unwritten_err : p->header_err;
		return;
	}
	if (!p->header_written || !p->out.path)
		return;
	s->files++;
	if (!s->example[0])
		snprintf(s->example, sizeof(s->example), "%s", p->out.path);
	if (s->npaths == SUMMARY_PATHS)
		return;
	s->paths[s->npaths] = strdup(p->out.path);
	s->npaths += s->paths[s->npaths] != NULL;
}

void summary__free(struct summary *s)
{
	while (s->npaths)
		free(s->paths[--s->npaths]);
}

uint64_t summary__lost(const struct summary *s)
{
	uint64_t n = 0;
	int i;

	for (i = 0; i < LOSS_CAUSES; i++)
		n += s->lost[i];
	return n;
}

bool summary__lacks_kernels(const struct summary *s)
{
	return s->kernels_late && !s->events[SCOPE_KERNEL_CH] && !s->events[SCOPE_KERNEL_PHASE] &&
	       !s->may_have_kernels && !s->may_hang && !s->shm_full;
}

/* Job text on a terminal: what is not plain ASCII could steer it, and becomes '?'. */
static char plain(char c)
{
	return (char)((unsigned char)c < 0x20 || (unsigned char)c > 0x7e ? '?' : c);
}

static void print_column(const char *s, int width, FILE *f)
{
	for (; width && *s; s++, width--)
		fputc(plain(*s), f);
	fprintf(f, "%*s", width, "");
}

static void print_no_kernels(const char *why, uint32_t procs, FILE *f)
{
	if (procs)
		fprintf(f, "  no KernelCh of %u process%s: %s (docs/limits.md)\n", procs,
			human__es(procs), why);
}

static void print_events(const struct summary *s, FILE *f)
{
	uint32_t what;

	fprintf(f, "\nEvents\n");
	for (what = 0; what < SCOPE_NTYPES; what++)
		if (s->events[what])
			fprintf(f, "  %-24s %12llu\n", event_type_name(what),
				(unsigned long long)s->events[what]);
	fprintf(f, "  %-24s %12llu\n", "states", (unsigned long long)s->states);
	if (s->unfinished)
		fprintf(f, "  %-24s %12llu\n", "unfinished", (unsigned long long)s->unfinished);
	if (s->silent)
		fprintf(f, "  %-24s %12llu\n", "silent", (unsigned long long)s->silent);
	print_no_kernels("with it NCCL may wait for good", s->may_hang, f);
	print_no_kernels("/dev/shm may be too small for it", s->shm_full, f);
}

static void print_slowest(const struct summary *s, FILE *f)
{
	const struct summary_op *op;
	bool open = false;
	uint32_t i;

	if (!s->nslowest)
		return;
	fprintf(f,
		"\nSlowest operations, by execution time (to the end of their last child)\n"
		"  %12s  %-13s %7s %12s  %-14s %5s %7s  %s\n",
		"exec ms", "func", "seq", "count", "datatype", "rank", "pid", "communicator");
	for (i = 0; i < s->nslowest; i++) {
		op = &s->slowest[i];
		open |= op->open;
		fprintf(f, "%c %12.3f  ", op->open ? '>' : ' ', (double)op->duration_ns / 1e6);
		print_column(op->func, 13, f);
		fprintf(f, " %7llu %12llu  ", (unsigned long long)op->seq,
			(unsigned long long)op->count);
		print_column(op->datatype, 14, f);
		fprintf(f, " %5d %7u  0x%llx\n", op->rank, op->pid,
			(unsigned long long)op->comm_hash);
	}
	if (open)
		fprintf(f, "> still open\n");
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* How far a line has come; what does not fit on it goes on below. */
struct line {
	FILE *f;
	int at, indent;
};

__attribute__((format(printf, 3, 4))) static void put_part(struct line *l, const char *sep,
							   const char *fmt, ...)
{
	char part[96], *c;
	va_list ap;
	int len;

	va_start(ap, fmt);
	vsnprintf(part, sizeof(part), fmt, ap);
	va_end(ap);
	for (c = part; *c; c++)
		*c = plain(*c);
	len = (int)(strlen(sep) + strlen(part));
	if (l->at + len < COLUMNS) { /* and a comma */
		fprintf(l->f, "%s%s", sep, part);
		l->at += len;
	} else {
		fprintf(l->f, "%.1s\n%*s%s", sep, l->indent, "", part);
		l->at = l->indent + (int)strlen(part);
	}
}

/* Most of the time for which it was runnable; who ran meanwhile is not to blame then. */
static bool held_by_quota(const struct sched_sums *sums)
{
	return sums->throttled_ns && sums->throttled_ns * 2 >= sums->runq_ns;
}

static void print_role(const char *role, const struct sched_span *span, FILE *f)
{
	struct line l = {.f = f};
	const char *sep = "  ";
	uint32_t i;

	if (!span->span_ns)
		return;
	l.at = fprintf(f, "  %-8s %9.1f %% %9.1f %% %9.1f %%", role,
		       percent(span->sums.on_cpu_ns, span->span_ns),
		       percent(span->sums.runq_ns, span->span_ns),
		       percent(span->sums.blocked_ns, span->span_ns));
	l.indent = l.at + 2;
	if (held_by_quota(&span->sums)) {
		put_part(&l, sep, "held by a CPU quota %.1f %%",
			 percent(span->sums.throttled_ns, span->span_ns));
		sep = ", ";
	} else {
		for (i = 0; i < span->nbehind && i < 2; i++, sep = ", ")
			put_part(&l, sep, "behind %.*s[%u]", SCOPE_COMM_LEN, span->behind[i].comm,
				 span->behind[i].tgid);
	}
	if (span->nblocked_in && span->sums.blocked_ns)
		put_part(&l, sep, "in %s", sched_why_name(span->blocked_in[0].why));
	fprintf(f, "\n");
}

static void print_sched(const struct summary *s, FILE *f)
{
	if (!s->app.span_ns && !s->proxy.span_ns)
		return;
	fprintf(f,
		"\nThreads of operations, while those %s\n"
		"  %-8s %11s %11s %11s\n",
		s->ran ? "ran" : "were enqueued: when they ended is not recorded", "", "on CPU",
		"runnable", "asleep");
	print_role("app", &s->app, f);
	print_role("proxy", &s->proxy, f);
}

static void print_worst(const struct summary_flow *w, FILE *f)
{
	struct line l = {.f = f, .at = fprintf(f, "  %s", w->name), .indent = 4};

	if (w->peer >= 0)
		put_part(&l, ", ", "rank %d with rank %d", w->rank, w->peer);
	if (w->needed >= WORTH_TELLING)
		put_part(&l, ": ", "%u segments sent again, %u of them needlessly", w->again,
			 w->again - w->needed);
	if (w->rwnd_ns * 4 >= w->busy_ns + 1)
		put_part(&l, ": ", "held up by its receiver for %.0f %% of its time",
			 percent(w->rwnd_ns, w->busy_ns));
	if (w->sndbuf_ns * 4 >= w->busy_ns + 1)
		put_part(&l, ": ", "held up by its send buffer for %.0f %% of its time",
			 percent(w->sndbuf_ns, w->busy_ns));
	fprintf(f, "\n");
}

static void print_net(const struct summary *s, FILE *f)
{
	uint32_t i;

	if (!s->flows)
		return;
	fprintf(f,
		"\nTCP: %llu connection%s, %.3f GB sent, %.3f GB received\n"
		"  %llu segment%s sent again, %llu of them needlessly; %llu packet%s dropped on "
		"this "
		"node\n",
		(unsigned long long)s->flows, human__s(s->flows), (double)s->tx_bytes / 1e9,
		(double)s->rx_bytes / 1e9, (unsigned long long)s->again, human__s(s->again),
		(unsigned long long)(s->again - s->needed), (unsigned long long)s->drops,
		human__s(s->drops));
	for (i = 0; i < s->nworst; i++)
		print_worst(&s->worst[i], f);
}

static void print_loss(const struct summary *s, FILE *f)
{
	uint64_t lost = summary__lost(s);
	const char *sep = " (";
	int i;

	fprintf(f, "\nLoss: %llu", (unsigned long long)lost);
	for (i = 0; i < LOSS_CAUSES; i++) {
		if (!s->lost[i])
			continue;
		fprintf(f, "%s%s %llu", sep, loss_names[i], (unsigned long long)s->lost[i]);
		sep = ", ";
	}
	fprintf(f, "%s\n", lost ? ")" : "");
	if (s->skipped)
		fprintf(f,
			"The kernel skipped %llu run%s of the recorder's BPF programs: a thread's "
			"state or a step's connection may be missing\n",
			(unsigned long long)s->skipped, human__s(s->skipped));
}

void summary__print_capture(const struct summary *s, bool cut, FILE *f)
{
	if (s->procs)
		fprintf(f, "\nRecords: %llu of %u process%s, not decoded\n",
			(unsigned long long)s->records, s->procs, human__es(s->procs));
	else
		fprintf(f, "\nRecords: none, no process with the plugin told anything\n");
	if (cut)
		fprintf(f, "\nLoss: not known, as the capture was cut off\n");
	else
		print_loss(s, f);
}

bool summary__nothing_written(const struct summary *s)
{
	return s->unwritten && !s->files;
}

static void print_unwritten(const struct summary *s, FILE *f)
{
	fprintf(f, "%s of %u process%s could not be written: %s; name another directory with -o\n",
		s->files ? "Traces" : "Trace: none, those", s->unwritten, human__es(s->unwritten),
		out_dir_error(s->unwritten_err));
}

static void print_files(const struct summary *s, const char *dir, FILE *f)
{
	if (s->files)
		fprintf(f, "Trace: %u file%s of %u process%s in %s/\n", s->files,
			human__s(s->files), s->procs, human__es(s->procs), dir);
	if (s->unwritten)
		print_unwritten(s, f);
	else if (!s->files && s->procs)
		fprintf(f, "Trace: none, of %u process%s nothing was to be recorded\n", s->procs,
			human__es(s->procs));
	else if (!s->files)
		fprintf(f, "Trace: none, no process with the plugin told anything\n");
}

void summary__print(const struct summary *s, const char *dir, FILE *f)
{
	print_events(s, f);
	print_slowest(s, f);
	print_sched(s, f);
	print_net(s, f);
	print_loss(s, f);
	if (s->hung)
		fprintf(f, "%llu event%s seemed hung, the longest for %.1f s\n",
			(unsigned long long)s->hung, human__s(s->hung), (double)s->hung_ns / 1e9);
	if (s->malformed || s->evicted)
		fprintf(f, "Malformed records: %llu, events given up: %llu\n",
			(unsigned long long)s->malformed, (unsigned long long)s->evicted);
	print_files(s, dir, f);
}
