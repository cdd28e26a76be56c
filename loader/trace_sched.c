// SPDX-License-Identifier: BSD-2-Clause
/* Kernel context as JSON: sched of events, the sums of threads, slices. */
#include "sched_join.h"
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

static void put_culprits(struct json *j, const struct sched_span *span)
{
	const char *why;
	uint32_t i;

	if (span->nbehind)
		json_lit(j, ",\"behind\":[");
	for (i = 0; i < span->nbehind; i++) {
		if (i)
			json_char(j, ',');
		put_culprit(j, span->behind[i].comm, span->behind[i].tgid);
		KEY_US(j, "us", span->behind[i].ns);
		json_char(j, '}');
	}
	if (span->nbehind)
		json_char(j, ']');
	if (span->nblocked_in)
		json_lit(j, ",\"blockedIn\":[");
	for (i = 0; i < span->nblocked_in; i++) {
		why = sched_why_name(span->blocked_in[i].why);
		if (i)
			json_char(j, ',');
		json_lit(j, "{\"why\":");
		json_str(j, why, strlen(why));
		KEY_US(j, "us", span->blocked_in[i].ns);
		json_char(j, '}');
	}
	if (span->nblocked_in)
		json_char(j, ']');
}

static void put_span(struct json *j, const struct attach_features *f, const struct sched_span *span)
{
	put_times(j, f, &span->sums, span->unknown_ns);
	put_cpus(j, span);
	put_culprits(j, span);
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

static void put_state(struct json *j, const struct sched_slice *in)
{
	const char *name = in->state <= SCHED_BLOCKED ? state_names[in->state] : NULL;

	if (!name)
		return;
	KEY_STR(j, "state", name, strlen(name));
	if (in->state == SCHED_BLOCKED) {
		name = sched_why_name(in->why);
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
		put_state(j, join->unfinished_in);
	json_char(j, '}');
}

/* ---- Threads and slices ------------------------------------------------------------------------- */

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
	in = sched_thread__last(t->sched);
	if ((!t->sched->gone || t->sched->lives) && !p->ended_ns && in)
		put_state(j, in);
}

static void put_slice_behind(struct json *j, const struct proc *p, const struct sched_slice *slice,
			     uint64_t end_ns)
{
	struct sched_span span;

	sched_span__clear(&span);
	sched__behind(&p->session->sched, slice, end_ns, &span);
	if (!span.nbehind)
		return;
	json_lit(j, ",\"behind\":");
	put_culprit(j, span.behind[0].comm, span.behind[0].tgid);
	json_char(j, '}');
}

void trace__slice(struct proc *p, const struct sched_thread *t, const struct sched_slice *slice,
		  uint64_t end_ns, uint64_t irq_ns)
{
	const struct attach_features *f = &p->session->features;
	const char *name = state_names[slice->state];
	struct json j = trace_begin(p, STATE_MAX);

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
		put_slice_behind(&j, p, slice, end_ns);
	if (slice->state == SCHED_RUN && f->irq)
		KEY_US(&j, "irq",
		       irq_ns < end_ns - slice->start_ns ? irq_ns : end_ns - slice->start_ns);
	if (slice->state == SCHED_RUNQ && slice->preempted)
		KEY_BOOL(&j, "preempted", 1);
	if (slice->state == SCHED_RUNQ && f->quota && slice->throttled_ns)
		KEY_US(&j, "throttled", slice->throttled_ns);
	if (slice->state == SCHED_BLOCKED) {
		name = sched_why_name(slice->why);
		KEY_STR(&j, "why", name, strlen(name));
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_SLICE);
}
