// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel did to threads: the parts of a time fill it, and a thread is in one state at a time. See check_sched.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "check_sched.h"

/* sched: the parts are rounded each for itself. */
#define SCHED_NS 1000
/* behind, blockedIn, wokenBy and files are cut after so many. */
#define SCHED_LIST 4
/* As many as Linux can have. */
#define NR_CPUS 8192

/* The last slice of a thread. */
struct slice_end {
	uint32_t tid;
	uint32_t line; /* 0: this place is free */
	int64_t ts, end;
};

/*
 * The figures of an event, of one role of an operation's threads, or of a thread's life. @at is where
 * in the record they are, for messages, and ends with a dot unless they are the record's own.
 */

/* The sum of one of the lists; 0 if the list is none that a sum may be taken of. */
static int64_t sched_list(struct check *c, const struct json_node *sched, const char *at,
			  const char *key)
{
	const struct json_node *list = jn_get(&c->doc, sched, key);
	int64_t sum = 0, last = INT64_MAX, ns;
	bool sorted = true;
	unsigned int nr = 0;
	uint32_t i;

	for (i = list ? list->first : 0; i; i = c->doc.nodes[i].next) {
		if (++nr > SCHED_LIST) {
			find(c, FIND_ERROR, "sched-list", "%s%s has more than %d entries", at, key,
			     SCHED_LIST);
			return 0;
		}
		ns = get_time(c, &c->doc.nodes[i], "us");
		sorted &= ns <= last;
		last = ns;
		sum = ns > INT64_MAX - sum ? INT64_MAX : sum + ns;
	}
	if (!sorted)
		find(c, FIND_ERROR, "sched-list", "%s%s is not in order, most first", at, key);
	return sum;
}

/* What is contained in the parts, and is thus no more than they. */
static void sched_contained(struct check *c, const struct json_node *sched, const char *at)
{
	int64_t on_cpu = get_time(c, sched, "onCpu"), runq = get_time(c, sched, "runq");
	int64_t blocked = get_time(c, sched, "blocked");
	int64_t behind = sched_list(c, sched, at, "behind");
	static const char *const of_blocked[] = {"blockedIn", "wokenBy", "files"};
	size_t i;

	if (get_time(c, sched, "irq") > on_cpu)
		find(c, FIND_ERROR, "sched-irq", "%sirq is more than %sonCpu", at, at);
	if (get_time(c, sched, "throttled") > runq)
		find(c, FIND_ERROR, "sched-throttled", "%sthrottled is more than %srunq", at, at);
	if (behind > runq)
		find(c, FIND_ERROR, "sched-behind", "%sbehind is %s together, %srunq only %s", at,
		     us(behind), at, us(runq));
	for (i = 0; i < ARRAY_SIZE(of_blocked); i++) {
		int64_t sum = sched_list(c, sched, at, of_blocked[i]);

		if (sum > blocked)
			find(c, FIND_ERROR, "sched-blocked",
			     "%s%s is %s together, %sblocked only %s", at, of_blocked[i], us(sum),
			     at, us(blocked));
	}
}

/* The states of a thread fill the time, each within it. @what: the time's name. */
static void sched_fills(struct check *c, const struct json_node *sched, const char *at,
			int64_t time, const char *what)
{
	static const char *const parts[] = {"onCpu", "runq", "blocked", "unknown"};
	uint64_t sum = 0; /* of four times, as 63 bits hold three */
	int64_t part;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		part = get_time(c, sched, parts[i]);
		sum += part;
		if (part <= time)
			continue;
		find(c, FIND_ERROR, "sched-part", "%s%s is %s, %s only %s", at, parts[i], us(part),
		     what, us(time));
		return;
	}
	if (sum > (uint64_t)time + SCHED_NS || sum + SCHED_NS < (uint64_t)time)
		find(c, FIND_ERROR, "sched-sum",
		     "%sonCpu + runq + blocked + unknown is %s, %s is %s", at, us(sum), what,
		     us(time));
}

/* Each thread counts for no longer than the operation took; of app there is but one. */
static void sched_span(struct check *c, const struct json_node *rec, const struct json_node *part,
		       const char *at, uint64_t threads)
{
	const struct json_node *exec = jn_get(&c->doc, rec, "exec");
	uint64_t span = get_time(c, part, "span"), duration = get_time(c, exec, "duration");

	if (!exec || get_true(c, rec, "unfinished"))
		return;
	if (threads ? span / threads + !!(span % threads) > duration : span)
		find(c, FIND_ERROR, "sched-span",
		     "%sspan is %s, of %llu threads and an exec.duration of %s", at, us(span),
		     ULL(threads), us(duration));
}

static void cpus_of(struct check *c, const struct json_node *sched, uint64_t cpus[NR_CPUS / 64])
{
	const struct json_node *list = jn_get(&c->doc, sched, "cpus");
	uint64_t cpu;
	uint32_t i;

	for (i = list ? list->first : 0; i; i = c->doc.nodes[i].next)
		if (jn_u64(&c->doc.nodes[i], &cpu) && cpu < NR_CPUS)
			cpus[cpu / 64] |= 1ULL << cpu % 64;
}

/* The figures of the operation are those of app and proxy together. */
static void sched_total(struct check *c, const struct json_node *sched, const struct json_node *app,
			const struct json_node *proxy)
{
	static const char *const times[] = {"span",    "onCpu", "runq",	    "blocked",
					    "unknown", "irq",	"throttled"};
	static const char *const counts[] = {"switches", "preemptions", "migrations"};
	uint64_t all[NR_CPUS / 64] = {}, parts[NR_CPUS / 64] = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		int64_t sum = get_time(c, app, times[i]) + get_time(c, proxy, times[i]);

		if (get_time(c, sched, times[i]) != sum)
			find(c, FIND_ERROR, "sched-total", "sched.%s is %s, app and proxy have %s",
			     times[i], us(get_time(c, sched, times[i])), us(sum));
	}
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		uint64_t sum = get_u64(c, app, counts[i]) + get_u64(c, proxy, counts[i]);

		if (get_u64(c, sched, counts[i]) != sum)
			find(c, FIND_ERROR, "sched-total",
			     "sched.%s is %llu, app and proxy have %llu", counts[i],
			     ULL(get_u64(c, sched, counts[i])), ULL(sum));
	}
	cpus_of(c, sched, all);
	cpus_of(c, app, parts);
	cpus_of(c, proxy, parts);
	if (memcmp(all, parts, sizeof(all)))
		find(c, FIND_ERROR, "sched-total", "sched.cpus are not those of app and proxy");
}

/* On a Coll and P2p: the threads that served it, as a whole and by role. */
static void sched_operation(struct check *c, const struct json_node *rec,
			    const struct json_node *sched)
{
	const struct json_node *app = jn_get(&c->doc, sched, "app");
	const struct json_node *proxy = jn_get(&c->doc, sched, "proxy");
	const struct json_node *before = jn_get(&c->doc, sched, "before");

	sched_fills(c, sched, "sched.", get_time(c, sched, "span"), "span");
	if (app) {
		sched_contained(c, app, "sched.app.");
		sched_fills(c, app, "sched.app.", get_time(c, app, "span"), "span");
		sched_span(c, rec, app, "sched.app.", 1);
	}
	if (proxy) {
		sched_contained(c, proxy, "sched.proxy.");
		sched_fills(c, proxy, "sched.proxy.", get_time(c, proxy, "span"), "span");
		sched_span(c, rec, proxy, "sched.proxy.", get_u64(c, proxy, "threads"));
	}
	if (before) {
		sched_contained(c, before, "sched.before.");
		sched_fills(c, before, "sched.before.", get_time(c, before, "span"), "span");
	}
	sched_total(c, sched, app, proxy);
}

void sched_rules__event(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *sched = jn_get(&c->doc, rec, "sched");

	if (!sched)
		return;
	sched_contained(c, sched, "sched.");
	if (etype == ET_COLL || etype == ET_P2P)
		sched_operation(c, rec, sched);
	else if (!get_true(c, rec, "unfinished"))
		sched_fills(c, sched, "sched.", get_time(c, rec, "duration"), "duration");
}

void sched_rules__open(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *sched = jn_get(&c->doc, rec, "sched");
	const struct json_node *app = jn_get(&c->doc, sched, "app");

	if (!sched)
		return;
	sched_contained(c, sched, "sched.");
	if (etype != ET_COLL && etype != ET_P2P)
		sched_fills(c, sched, "sched.", get_time(c, rec, "age"), "age");
	else
		sched_operation(c, rec, sched);
	if (app && get_time(c, app, "span") > get_time(c, rec, "age"))
		find(c, FIND_ERROR, "sched-span", "sched.app.span is %s, of an age of %s",
		     us(get_time(c, app, "span")), us(get_time(c, rec, "age")));
}

void sched_rules__thread(struct check *c, const struct json_node *rec, int64_t time)
{
	sched_contained(c, rec, "");
	sched_fills(c, rec, "", time, "stop - since");
}

static struct slice_end *slice_slot(const struct sched_rules *s, uint32_t tid)
{
	uint32_t mask = s->size - 1, i = mix(tid) & mask;

	while (s->slices[i].line && s->slices[i].tid != tid)
		i = (i + 1) & mask;
	return &s->slices[i];
}

static int slices_grow(struct sched_rules *s)
{
	uint32_t old_size = s->size, i;
	struct slice_end *old = s->slices;

	s->slices = calloc(old_size ? old_size * 2 : 64, sizeof(*s->slices));
	if (!s->slices) {
		s->slices = old;
		return -ENOMEM;
	}
	s->size = old_size ? old_size * 2 : 64;
	for (i = 0; i < old_size; i++)
		if (old[i].line)
			*slice_slot(s, old[i].tid) = old[i];
	free(old);
	return 0;
}

/* A thread is in one state at a time, and its slices come as they were. */
static void slice_follows(struct check *c, struct sched_rules *s, uint32_t tid, int64_t ts,
			  int64_t end)
{
	struct slice_end *last;

	if (s->nr + 1 > s->size / 2 && slices_grow(s)) {
		c->err = -ENOMEM;
		return;
	}
	last = slice_slot(s, tid);
	if (!last->line)
		s->nr++;
	else if (ts < last->ts)
		find(c, FIND_ERROR, "slice-order",
		     "slice of thread %u at %s comes after one at %s (line %u)", tid, us(ts),
		     us(last->ts), last->line);
	else if (ts < last->end)
		find(c, FIND_ERROR, "slice-overlap",
		     "slice of thread %u at %s begins before the last one ends, at %s (line %u)",
		     tid, us(ts), us(last->end), last->line);
	*last = (struct slice_end){.tid = tid, .line = c->line, .ts = ts, .end = end};
}

void sched_rules__slice(struct check *c, struct sched_rules *s, const struct json_node *rec)
{
	int64_t ts = get_time(c, rec, "ts"), dur = get_time(c, rec, "dur");
	bool host = jn_get(&c->doc, rec, "hostTid");

	if (get_time(c, rec, "irq") > dur)
		find(c, FIND_ERROR, "sched-irq", "irq is more than dur");
	if (get_time(c, rec, "throttled") > dur)
		find(c, FIND_ERROR, "sched-throttled", "throttled is more than dur");
	slice_follows(c, s, get_i64(c, rec, host ? "hostTid" : "tid"), ts, ts + dur);
}

void sched_rules__free(struct sched_rules *s)
{
	free(s->slices);
	memset(s, 0, sizeof(*s));
}
