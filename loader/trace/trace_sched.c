// SPDX-License-Identifier: BSD-2-Clause
/* Kernel context as JSON: sched of events, the sums of threads, slices. */
#include "clock.h"
#include "less.h"
#include "sched_join.h"
#include "sched_sleeps.h"
#include "session.h"
#include "syscalls.h"
#include "trace.h"
#include "trace_keys.h"

static const char *const state_names[] =
	{[SCHED_RUN] = "run", [SCHED_RUNQ] = "runq", [SCHED_BLOCKED] = "blocked"};

const char *sched_why_name(int32_t why)
{
	const char *name = why >= 0 ? syscall_name(why) : NULL;

	switch (why) {
	case SCOPE_WHY_PAGEFAULT:
		return "pagefault";
	case SCOPE_WHY_IO:
		return "io";
	case SCOPE_WHY_STOPPED:
		return "stopped";
	case SCOPE_WHY_FROZEN:
		return "frozen";
	default:
		return name ? name : "other";
	}
}

/* ---- Sums --------------------------------------------------------------------------------------- */

/* The first key is written without a comma: these open an object or follow one. */
static void put_times(struct json *j, const struct attach_features *f,
		      const struct sched_sums *sums, uint64_t unknown_ns)
{
	json_lit(j, "\"onCpu\":");
	json_us(j, sums->on_cpu_ns);
	KEY_US(j, "runq", sums->runq_ns);
	KEY_US(j, "blocked", sums->blocked_ns);
	if (unknown_ns)
		KEY_US(j, "unknown", unknown_ns);
	if (f->irq)
		KEY_US(j, "irq", sums->irq_ns);
	if (f->quota)
		KEY_US(j, "throttled", sums->throttled_ns);
	KEY_U64(j, "switches", sums->switches);
	KEY_U64(j, "preemptions", sums->preemptions);
	KEY_U64(j, "migrations", sums->migrations);
}

static void put_cpus(struct json *j, const struct sched_span *span)
{
	uint32_t i;

	json_lit(j, ",\"cpus\":[");
	for (i = 0; i < span->ncpus; i++) {
		if (i)
			json_char(j, ',');
		json_u64(j, span->cpus[i]);
	}
	json_char(j, ']');
}

static void put_culprit(struct json *j, const char *comm, uint32_t pid)
{
	json_lit(j, "{\"comm\":");
	json_str(j, comm, strnlen(comm, SCOPE_COMM_LEN));
	KEY_U64(j, "pid", pid);
}

static void put_who(struct json *j, const struct sched_span_who *who, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		json_char(j, i ? ',' : '[');
		put_culprit(j, who[i].comm, who[i].tgid);
		KEY_US(j, "us", who[i].ns);
		json_char(j, '}');
	}
	json_char(j, ']');
}

static void put_blocked_in(struct json *j, const struct sched_span *span)
{
	const char *why;
	uint32_t i;

	for (i = 0; i < span->nblocked_in; i++) {
		why = sched_why_name(span->blocked_in[i].why);
		json_char(j, i ? ',' : '[');
		json_lit(j, "{\"why\":");
		json_str(j, why, strlen(why));
		KEY_US(j, "us", span->blocked_in[i].ns);
		json_char(j, '}');
	}
	json_char(j, ']');
}

static void put_files(struct json *j, const struct sched_span *span)
{
	const struct sched_span_file *f = span->files;
	uint32_t i;

	for (i = 0; i < span->nfiles; i++, f++) {
		json_char(j, i ? ',' : '[');
		json_lit(j, "{\"file\":");
		json_str(j, f->name, strlen(f->name));
		KEY_STR(j, "fs", f->fs, strlen(f->fs));
		KEY_US(j, "us", f->ns);
		json_char(j, '}');
	}
	json_char(j, ']');
}

/* What it waited for, of each the most. */
static void put_causes(struct json *j, const struct sched_span *span)
{
	if (span->nbehind) {
		json_lit(j, ",\"behind\":");
		put_who(j, span->behind, span->nbehind);
	}
	if (span->nblocked_in) {
		json_lit(j, ",\"blockedIn\":");
		put_blocked_in(j, span);
	}
	if (span->nwoken_by) {
		json_lit(j, ",\"wokenBy\":");
		put_who(j, span->woken_by, span->nwoken_by);
	}
	if (span->nfiles) {
		json_lit(j, ",\"files\":");
		put_files(j, span);
	}
}

static void put_span(struct json *j, const struct attach_features *f, const struct sched_span *span)
{
	put_times(j, f, &span->sums, span->unknown_ns);
	put_cpus(j, span);
	put_causes(j, span);
}

static void put_role(struct json *j, const struct attach_features *f, const char *role,
		     const struct sched_span *span)
{
	if (!span->threads)
		return;
	json_char(j, ',');
	json_str(j, role, strlen(role));
	json_lit(j, ":{\"threads\":");
	json_u64(j, span->threads);
	KEY_US(j, "span", span->span_ns);
	json_char(j, ',');
	put_span(j, f, span);
	json_char(j, '}');
}

/* Of one that began before it was seen: by its sleep, if it was long. */
static const char *why_of(const struct sched_slice *slice, const struct sched_sleep *sleep)
{
	return sched_why_name(slice->why == SCOPE_WHY_OTHER && sleep ? sleep->call : slice->why);
}

static void put_state(struct json *j, const struct sched_slice *in, const struct sched_sleep *sleep)
{
	const char *name = in->state <= SCHED_BLOCKED ? state_names[in->state] : NULL;

	if (!name)
		return;
	KEY_STR(j, "state", name, strlen(name));
	if (in->state == SCHED_BLOCKED) {
		name = why_of(in, sleep);
		KEY_STR(j, "why", name, strlen(name));
	}
}

void put_sched(struct json *j, const struct proc *p, const struct corr_event *ev,
	       const struct sched_join *join)
{
	const struct attach_features *f = &p->session->features;
	bool operation = ev->what == SCOPE_COLL || ev->what == SCOPE_P2P;

	if (!join->all.threads)
		return;
	json_lit(j, ",\"sched\":{");
	if (operation) {
		json_lit(j, "\"span\":");
		json_us(j, join->all.span_ns);
		json_char(j, ',');
	}
	put_span(j, f, &join->all);
	if (operation) {
		put_role(j, f, "app", &join->app);
		put_role(j, f, "proxy", &join->proxy);
		put_role(j, f, "before", &join->before);
	}
	if (join->unfinished_in)
		put_state(j, join->unfinished_in, NULL);
	json_char(j, '}');
}

/* ---- Threads and slices ------------------------------------------------------------------------- */

/* The file that a long sleep was in a call on. */
static void put_file(struct json *j, const struct sched_sleep *sleep)
{
	if (!sleep || !sleep->file)
		return;
	KEY_STR(j, "file", sleep->file->id.name, strlen(sleep->file->id.name));
	KEY_STR(j, "fs", sleep->file->id.fs, strlen(sleep->file->id.fs));
}

/* Whether any function has a name. */
static bool has_names(const struct sched_stack *stack, const struct symbols *names)
{
	uint32_t i;

	for (i = 0; i < stack->n; i++)
		if (symbols__name(names, stack->at[i]))
			return true;
	return false;
}

void put_stack(struct json *j, const struct symbols *names, const struct sched_sleep *sleep)
{
	const struct sched_stack *stack = sleep ? sleep->stack : NULL;
	const char *name;
	uint32_t i;

	if (!stack || !has_names(stack, names))
		return;
	json_lit(j, ",\"stack\":[");
	for (i = 0; i < stack->n; i++) {
		name = symbols__name(names, stack->at[i]);
		name = name ? name : "?";
		json_str(j, name, strnlen(name, STACK_NAME_MAX));
		json_char(j, i + 1 < stack->n ? ',' : ']');
	}
}

/* What it is in when the recording ends, or was until it was killed: since when, in which file, and where in the kernel. */
static void put_last_state(struct json *j, const struct symbols *names,
			   const struct sched_thread *t, const struct sched_slice *in)
{
	const struct sched_sleep *sleep = sleeps__of(t, in);

	put_state(j, in, sleep);
	if (in->state != SCHED_UNKNOWN && in->state <= SCHED_BLOCKED)
		KEY_US(j, "stateSince", in->start_ns);
	if (in->state == SCHED_BLOCKED) {
		put_file(j, sleep);
		put_stack(j, names, sleep);
	}
}

#define KILL_WAKES_NS                                                                              \
	(NSEC_PER_SEC / 1000) /* a signal's record is later than the wake-up by some microseconds */

/* What a thread slept in for long until the signal came that ended its process; NULL: it did not. */
static const struct sched_slice *killed_in(const struct proc *p, const struct sched_thread *t)
{
	uint64_t killed_ns = p->end_signal < SIGNALS ? p->unhandled_ns[p->end_signal] : 0;
	const struct sched_slice *in;

	if (!killed_ns)
		return NULL;
	in = sched_thread__at(t, less(killed_ns, KILL_WAKES_NS));
	return in && in->state == SCHED_BLOCKED && less(killed_ns, in->start_ns) >= NSEC_PER_SEC
		       ? in
		       : NULL;
}

void put_thread_sums(struct json *j, const struct proc *p, const struct thread *t, uint64_t stop_ns)
{
	const struct attach_features *f = &p->session->features;
	const struct sched_slice *in;
	uint64_t known, all;
	struct sched_mark to;

	if (!t->sched || !t->sched->slices.end || t->sched->since_ns > stop_ns)
		return;
	all = stop_ns - t->sched->since_ns;
	sched_thread__mark(t->sched, stop_ns, &to);
	if (to.early) /* so much came after its end that this is forgotten */
		memset(&to.sums, 0, sizeof(to.sums));
	known = to.sums.on_cpu_ns + to.sums.runq_ns + to.sums.blocked_ns;
	if (to.sums.irq_ns > to.sums.on_cpu_ns) /* of a run that turned out to be unknown */
		to.sums.irq_ns = to.sums.on_cpu_ns;
	KEY_US(j, "since", t->sched->since_ns);
	json_char(j, ',');
	put_times(j, f, &to.sums, all > known ? all - known : 0);
	in = (!t->sched->gone || t->sched->lives) && !p->ended_ns ? sched_thread__last(t->sched)
								  : killed_in(p, t->sched);
	if (in)
		put_last_state(j, &p->session->symbols, t->sched, in);
}

static void put_slice_behind(struct json *j, const struct proc *p, const struct sched_thread *t,
			     const struct sched_slice *slice, uint64_t end_ns)
{
	struct sched_span span;

	sched_span__clear(&span);
	sched__behind(&p->session->sched, t, slice, end_ns, &span);
	if (!span.nbehind)
		return;
	json_lit(j, ",\"behind\":");
	put_culprit(j, span.behind[0].comm, span.behind[0].tgid);
	json_char(j, '}');
}

/* Who ended a long sleep, the file that it was in a call on, and where in the kernel that was. */
static void put_slice_sleep(struct json *j, const struct symbols *names,
			    const struct sched_sleep *sleep)
{
	if (sleep && sleep->by_tgid) {
		json_lit(j, ",\"wokenBy\":");
		put_culprit(j, sleep->by_comm, sleep->by_tgid);
		json_char(j, '}');
	}
	put_file(j, sleep);
	put_stack(j, names, sleep);
}

void trace__slice(struct proc *p, const struct sched_thread *t, const struct sched_slice *slice,
		  uint64_t end_ns, uint64_t irq_ns)
{
	const struct attach_features *f = &p->session->features;
	const char *name = state_names[slice->state];
	const struct sched_sleep *sleep =
		slice->state == SCHED_BLOCKED ? sleeps__of(t, slice) : NULL;
	struct json j = trace_begin(p, SLICE_MAX + (sleep && sleep->stack ? STACK_MAX : 0));

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"slice\"");
	KEY_U64(&j, "tid", t->ns_tid);
	if (t->tid != t->ns_tid)
		KEY_U64(&j, "hostTid", t->tid);
	KEY_STR(&j, "state", name, strlen(name));
	KEY_US(&j, "ts", slice->start_ns);
	KEY_US(&j, "dur", end_ns - slice->start_ns);
	if (slice->cpu != SCHED_NO_CPU)
		KEY_U64(&j, "cpu", slice->cpu);
	if (slice->state == SCHED_RUNQ)
		put_slice_behind(&j, p, t, slice, end_ns);
	if (slice->state == SCHED_RUN && f->irq)
		KEY_US(&j, "irq",
		       irq_ns < end_ns - slice->start_ns ? irq_ns : end_ns - slice->start_ns);
	if (slice->state == SCHED_RUNQ && slice->preempted)
		KEY_BOOL(&j, "preempted", 1);
	if (slice->state == SCHED_RUNQ && f->quota && slice->throttled_ns)
		KEY_US(&j, "throttled", slice->throttled_ns);
	if (slice->state == SCHED_BLOCKED) {
		name = why_of(slice, sleep);
		KEY_STR(&j, "why", name, strlen(name));
		put_slice_sleep(&j, &p->session->symbols, sleep);
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_SLICE);
}
