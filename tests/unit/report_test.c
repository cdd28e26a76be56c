// SPDX-License-Identifier: BSD-2-Clause
/*
 * `report`: the verdict on operations whose figures are known, each class and what only looks like it; quantiles against
 * sorting; and what the reader makes of traces that are torn, foreign or hostile.
 */
#include <setjmp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "chosen.h"
#include "log.h"
#include "report_priv.h"
#include "report_text.h"
#include "slower.h"

#define MS INT64_C(1000000)
#define US INT64_C(1000)

/* ---- Operations of two or three ranks --------------------------------------------------------------------- */

static struct names *names;
static struct report_comm comm;
static struct report_op op;
static struct report_proc procs[100];
static struct report_part *parts[100];
static struct report_verdict v;
static struct report_typical typical;

static uint32_t name(const char *s)
{
	return names__get(names, s, strlen(s));
}

/* Each rank sends to the next one and receives from the one before; 100 ms, polling, nothing in the way. */
static int ring(uint32_t n)
{
	uint32_t i;

	memset(&comm, 0, sizeof(comm));
	memset(&op, 0, sizeof(op));
	memset(procs, 0, sizeof(procs));
	memset(&typical, 0, sizeof(typical));
	names = names__new();
	comm.nranks = (int32_t)n;
	op.comm = &comm;
	op.parts = parts;
	for (i = 0; i < n; i++) {
		struct report_part *p = calloc(1, sizeof(*p) + 2 * sizeof(p->link[0]));

		assert_non_null(p);
		procs[i].rank = (int32_t)i;
		procs[i].pid = procs[i].host_pid = 100 + (int32_t)i;
		procs[i].self = &procs[i];
		procs[i].node = procs[i].clock = 7;
		procs[i].comm = name("job");
		*p = (struct report_part){.proc = &procs[i],
					  .rank = (int32_t)i,
					  .start = 1000 * MS,
					  .stop = 1100 * MS,
					  .gap = -1,
					  .known = true,
					  .nlinks = 2};
		p->proxy = (struct report_role){
			.threads = 1, .cpu = 3, .span = 100 * MS, .on = 100 * MS};
		p->link[0] = (struct report_link){.peer = (int32_t)((i + 1) % n),
						  .send = true,
						  .tcp = true,
						  .n = 1,
						  .dur = 100 * MS,
						  .flow = name("10.0.0.1:1>10.0.0.2:2")};
		p->link[1] = (struct report_link){
			.peer = (int32_t)((i + n - 1) % n), .tcp = true, .n = 1, .dur = 100 * MS};
		parts[i] = p;
	}
	op.nparts = n;
	return 0;
}

static void over(void)
{
	uint32_t i;

	for (i = 0; i < op.nparts; i++)
		free(parts[i]);
	free(op.index);
	names__free(names);
}

static void carry(void)
{
	assert_int_equal(report_index(&op), 0);
	report_carry(&op);
}

/* Of an operation that took @excess ms too long. */
static enum report_code judged(int64_t excess)
{
	struct report_cause causes[REPORT_CAUSES];
	uint32_t n;

	carry();
	n = report_causes(&op, names, causes);
	report_judge(&op, causes, n, excess * MS, &typical, names, &v);
	return v.cause.code;
}

/* The largest cause of the kind; 0: there is none. */
static int64_t ns_of(enum report_code code)
{
	struct report_cause causes[REPORT_CAUSES];
	int64_t ns = 0;
	uint32_t n, i;

	carry();
	n = report_causes(&op, names, causes);
	for (i = 0; i < n; i++)
		if (causes[i].code == code)
			ns = most(ns, causes[i].ns);
	return ns;
}

static enum report_code odd(void)
{
	struct report_cause causes[REPORT_CAUSES];
	const struct report_cause *c;

	carry();
	c = report_primary(causes, report_causes(&op, names, causes));
	return c ? c->code : CODE_UNKNOWN;
}

static void runq(uint32_t rank, const char *who, int32_t pid, int64_t ns)
{
	struct report_role *r = &parts[rank]->proxy;

	r->runq += ns;
	r->on -= ns;
	r->behind[0] = (struct report_who){name(who), pid, ns};
}

static void asleep(uint32_t rank, const char *why, int64_t ns)
{
	struct report_role *r = &parts[rank]->proxy;

	r->blocked += ns;
	r->on -= ns;
	r->in[0] = (struct report_who){name(why), 0, ns};
}

/* ---- Verdicts ----------------------------------------------------------------------------------------------- */

static void nothing_is_unknown(void **state)
{
	(void)state;
	ring(3);
	assert_int_equal(judged(50), CODE_UNKNOWN);
	assert_true(v.confidence == 0);
	assert_int_equal(odd(), CODE_UNKNOWN);
	over();
}

static void a_late_rank(void **state)
{
	(void)state;
	ring(3);
	parts[1]->start += 60 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 1);
	assert_int_equal(v.cause.ns, 60 * MS);
	assert_true(v.confidence > 0.9);
	assert_non_null(strstr(v.evidence[1], "had not called NCCL"));
	/* it explains too little of that */
	assert_int_equal(judged(200), CODE_UNKNOWN);
	over();
}

/* As in a Broadcast or a Reduce: who has handed its data over and left does not wait for who comes later. */
static void late_for_nobody(void **state)
{
	uint32_t i;

	(void)state;
	ring(3);
	for (i = 0; i < 3; i++)
		parts[i]->stop = 1001 * MS;
	parts[1]->start = 1060 * MS;
	parts[1]->stop = 1160 * MS;
	assert_int_equal(ns_of(CODE_LATE_RANK), 0);
	/* what else held it up counts in full */
	asleep(1, "read", 80 * MS);
	assert_int_equal(judged(90), CODE_BLOCKED);
	assert_int_equal(v.cause.ns, 80 * MS);
	/* for as long as one waited that was in it still, however short that was in all */
	parts[2]->start = 1050 * MS;
	parts[2]->stop = 1061 * MS;
	assert_int_equal(ns_of(CODE_LATE_RANK), 10 * MS);
	/* one that came before the last one was waited for */
	parts[0]->stop = parts[2]->stop = 1031 * MS;
	parts[2]->start = 1030 * MS;
	assert_int_equal(ns_of(CODE_LATE_RANK), 30 * MS);
	assert_int_equal(judged(35), CODE_BLOCKED);
	parts[1]->stop = 1061 * MS;
	assert_int_equal(judged(30), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 2);
	/* another clock, that is not quite the same */
	for (i = 0; i < 3; i++)
		parts[i]->start = 1000 * MS;
	parts[1]->start = 1060 * MS;
	parts[0]->stop = parts[2]->stop = 1055 * MS;
	procs[1].node = 8;
	assert_int_equal(ns_of(CODE_LATE_RANK), 0);
	procs[1].clock_error = 10 * MS;
	assert_int_equal(ns_of(CODE_LATE_RANK), 50 * MS);
	over();
}

/* Of operations of microseconds, what is told has figures. */
static void short_ones(void **state)
{
	uint32_t i;

	(void)state;
	ring(3);
	for (i = 0; i < 3; i++) {
		parts[i]->start = 1000 * MS;
		parts[i]->stop = 1000 * MS + 40000;
		parts[i]->proxy.span = parts[i]->proxy.on = 40000;
		parts[i]->link[0].dur = parts[i]->link[1].dur = 40000;
	}
	report_judge(&op, NULL, 0, 30500, &typical, names, &v);
	assert_string_equal(v.evidence[0],
			    "no single cause explains 40 % or more of the extra 30.5 us");
	parts[0]->link[0].busy = 35000;
	parts[0]->link[0].rwnd = 20500;
	assert_int_equal(judged(0), CODE_RECEIVER);
	assert_string_equal(v.evidence[0], "the receiver's window was shut for 20.5 us of 40.0 us");
	assert_string_equal(v.evidence[1], "flow of rank 0 to rank 1: busy 35.0 us");
	parts[0]->link[0].rtt = 213400;
	parts[0]->link[0].rtt_min = 20000;
	judged(0);
	assert_string_equal(v.evidence[1], "flow of rank 0 to rank 1: busy 35.0 us, rtt 213.4 us "
					   "(least 20.0 us)");
	parts[0]->link[0].rwnd = 0;
	parts[1]->start += 30000;
	parts[1]->before =
		(struct report_role){.threads = 1, .span = 50000, .on = 5000, .blocked = 45000};
	parts[1]->before.in[0] = (struct report_who){name("read"), 0, 40000};
	assert_int_equal(judged(0), CODE_LATE_RANK);
	assert_string_equal(v.evidence[0], "came 30.0 us after its peers, by their node's clock");
	assert_string_equal(v.evidence[1], "in the 50.0 us before, its application (thread 0) was "
					   "on a CPU 5.0 us, asleep 45.0 us (read 40.0)");
	/* and of long ones no thousands of ms */
	parts[1]->start = 4500 * MS;
	parts[1]->stop = parts[0]->stop = parts[2]->stop = 5000 * MS;
	parts[1]->before =
		(struct report_role){.threads = 1, .span = 4000 * MS, .blocked = 3900 * MS};
	parts[1]->before.in[0] = (struct report_who){name("read"), 0, 800 * MS};
	assert_int_equal(judged(3500), CODE_LATE_RANK);
	assert_non_null(strstr(v.evidence[1], "asleep 3.90 s (read 0.80)"));
	over();
}

static void what_a_late_rank_did_before(void **state)
{
	struct report_role *b;

	(void)state;
	ring(3);
	parts[1]->start += 60 * MS;
	parts[1]->tid = 4711;
	b = &parts[1]->before;
	*b = (struct report_role){
		.threads = 1, .span = 70 * MS, .on = 2 * MS, .blocked = 58 * MS, .runq = 10 * MS};
	b->in[0] = (struct report_who){name("read"), 0, 57 * MS};
	b->behind[0] = (struct report_who){name("stress-ng"), 815, 9 * MS};
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_string_equal(v.evidence[1], "in the 70.0 ms before, its application (thread 4711) "
					   "was asleep 58.0 ms (read 57.0), "
					   "ready without a CPU 10.0 ms (behind stress-ng 9.0)");
	assert_string_equal(v.evidence[2], "");
	/* whom it waited for, its own threads and others', each if it was for much of the time; and in which files */
	b->in[1] = (struct report_who){name("futex"), 0, 8 * MS};
	b->waker[0] = (struct report_who){name("pt_data_worker"), 815, 50 * MS};
	b->waker[1] = (struct report_who){name("python3"), 101, 7 * MS};
	b->file[0] = (struct report_who){name("shards/0012.tar (nfs4)"), 0, 40 * MS};
	b->file[1] = (struct report_who){name("pipe"), 0, 6 * MS};
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_non_null(strstr(v.evidence[1], "asleep 58.0 ms (read 57.0, futex 8.0), "));
	assert_string_equal(
		v.evidence[2],
		"it waited 50.0 ms for pt_data_worker[815], 7.0 ms for its own python3, "
		"and slept 40.0 ms in calls on shards/0012.tar (nfs4)");
	b->waker[0].ns = 6 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_string_equal(v.evidence[2], "it slept 40.0 ms in calls on shards/0012.tar (nfs4)");
	/* It was not late of its own. */
	b->in[0].name = name("stopped");
	assert_int_equal(judged(60), CODE_STOPPED);
	assert_int_equal(v.cause.culprit, 0);
	assert_non_null(strstr(v.evidence[0], "stopped (SIGSTOP"));
	b->in[0].name = name("frozen");
	assert_int_equal(judged(60), CODE_STOPPED);
	assert_non_null(strstr(v.evidence[0], "frozen with their cgroup"));
	/* Of many calls in a row that is no answer. */
	b->in[0].name = name("read");
	b->span = b->blocked = b->in[0].ns = 1 * MS;
	b->runq = b->on = 0;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_non_null(strstr(v.evidence[1], "had not called NCCL"));
	over();
}

static void clocks_of_nodes_do_not_compare(void **state)
{
	(void)state;
	ring(3);
	procs[1].node = procs[1].clock = 8;
	parts[1]->start += 500 * MS; /* another clock: in it for as long as the others */
	parts[1]->stop += 500 * MS;
	assert_int_equal(judged(60), CODE_UNKNOWN);
	parts[1]->start += 60 * MS; /* but this is late on any */
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 1);
	assert_true(v.confidence < 0.9);
	over();
}

static void of_two_nodes_nobody_knows_who(void **state)
{
	(void)state;
	ring(2);
	procs[1].node = procs[1].clock = 8;
	parts[1]->start += 60 * MS;
	assert_int_equal(judged(60), CODE_UNKNOWN);
	over();
}

/* What merge has put into one clock compares, as far as that is sure. */
static void clocks_that_were_merged(void **state)
{
	(void)state;
	ring(2);
	procs[1].node = 8;
	procs[1].clock_error = 2 * MS;
	parts[1]->start += 60 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 1);
	assert_int_equal(v.cause.ns, 58 * MS);
	assert_string_equal(v.evidence[0], "came 58.0 ms after its peers, by the clock that their "
					   "nodes were merged into");
	/* This may as well have been the other way round. */
	procs[1].clock_error = 61 * MS;
	assert_int_equal(judged(60), CODE_UNKNOWN);
	over();
}

/* However wrong the merged clock may be, a node's own is not. */
static void clocks_that_were_merged_badly(void **state)
{
	(void)state;
	ring(3);
	procs[0].node = 9;
	procs[1].clock_error = procs[2].clock_error = 500 * MS;
	parts[1]->start += 60 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 1);
	assert_int_equal(v.cause.ns, 60 * MS);
	/* and if it is by itself on its node, lengths tell as they do without a merge */
	procs[1].node = 10;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 1);
	assert_true(v.confidence < 0.9);
	over();
}

/* Only some of a node's traces were merged: their times are by two clocks, which do not compare. */
static void merged_in_part(void **state)
{
	uint32_t i;

	(void)state;
	ring(4);
	for (i = 0; i < 2; i++) {
		procs[i].clock = 1;
		parts[i]->start += 500 * MS;
		parts[i]->stop += 500 * MS;
	}
	assert_int_equal(judged(60), CODE_UNKNOWN);
	/* those of each do, and lengths tell as they do without a merge */
	parts[3]->start += 60 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 3);
	assert_int_equal(v.cause.ns, 60 * MS);
	over();
}

static void preempted_by_others(void **state)
{
	(void)state;
	ring(3);
	runq(2, "hog", 4711, 50 * MS);
	assert_int_equal(judged(50), CODE_PREEMPTED);
	assert_int_equal(v.cause.rank, 2);
	assert_string_equal(names__text(names, v.cause.culprit), "hog[4711]");
	assert_int_equal(odd(), CODE_PREEMPTED);
	over();
}

/* All ranks share CPUs with each other: none of them is the odd one out. */
static void ranks_that_share_cpus(void **state)
{
	(void)state;
	ring(3);
	runq(0, "job", 101, 50 * MS);
	runq(1, "job", 102, 50 * MS);
	runq(2, "job", 100, 50 * MS);
	assert_int_equal(odd(), CODE_UNKNOWN);
	/* typical of the class, so it does not explain what is slower than that */
	typical.ns[CODE_PREEMPTED] = 45 * MS;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	over();
	/* one has a little less of a CPU than the others */
	ring(3);
	runq(2, "job", 100, 20 * MS);
	assert_int_equal(odd(), CODE_UNKNOWN);
	runq(2, "job", 100, 60 * MS);
	assert_int_equal(odd(), CODE_PREEMPTED);
	over();
}

/* A rank's number in its container is another process on the node, whose time counts in full. */
static void a_pid_in_a_container(void **state)
{
	struct report_cause causes[REPORT_CAUSES];
	const struct report_cause *c;

	(void)state;
	ring(3);
	procs[1].pid = 17;
	runq(2, "hog", 17, 50 * MS);
	carry();
	c = report_primary(causes, report_causes(&op, names, causes));
	assert_non_null(c);
	assert_int_equal(c->code, CODE_PREEMPTED);
	assert_int_equal(c->odd_ns, 50 * MS);
	over();
}

/* A thread that polls in vain may be preempted: it would have waited anyway. */
static void preempted_while_it_waits(void **state)
{
	(void)state;
	ring(3);
	runq(2, "hog", 4711, 50 * MS);
	parts[2]->link[1].no_data = 95 * MS;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	over();
}

static void many_others(void **state)
{
	uint32_t i;

	(void)state;
	ring(2);
	runq(1, "a", 1, 1 * MS);
	for (i = 1; i < REPORT_WHO; i++)
		parts[1]->proxy.behind[i] = (struct report_who){name("b"), 2, 1 * MS};
	parts[1]->proxy.runq = 60 * MS;
	assert_int_equal(judged(60), CODE_PREEMPTED);
	assert_string_equal(names__text(names, v.cause.culprit), "many processes");
	over();
}

static void blocked_throttled_stopped(void **state)
{
	(void)state;
	ring(3);
	asleep(0, "nanosleep", 50 * MS);
	assert_int_equal(judged(50), CODE_BLOCKED);
	assert_string_equal(names__text(names, v.cause.culprit), "nanosleep");
	over();
	ring(3);
	asleep(0, "stopped", 50 * MS);
	procs[0].cgroup = name("/pods/a");
	procs[0].stops[0] = (struct report_signal){
		.nr = SIGSTOP, .name = name("SIGSTOP"), .comm = name("sh"), .from_pid = 77};
	procs[0].nstops = 1;
	assert_int_equal(judged(50), CODE_STOPPED);
	assert_string_equal(v.evidence[0], "its threads were stopped (SIGSTOP or a debugger) for "
					   "50.0 ms of 100.0 ms");
	assert_string_equal(v.evidence[1], "SIGSTOP was sent by sh[77], user 0");
	assert_int_equal(v.cause.culprit, 0); /* nor by itself */
	/* not by the signal that it was sent before */
	parts[0]->proxy.in[0].name = name("frozen");
	assert_int_equal(judged(50), CODE_STOPPED);
	assert_string_equal(v.evidence[0],
			    "its threads were frozen with their cgroup for 50.0 ms of 100.0 ms");
	assert_string_equal(v.evidence[1], "its cgroup: /pods/a");
	over();
	/* who ran meanwhile is not to blame, but for the rest */
	ring(3);
	runq(0, "hog", 4711, 60 * MS);
	parts[0]->proxy.throttled = 50 * MS;
	assert_int_equal(judged(50), CODE_THROTTLED);
	assert_int_equal(v.cause.culprit, 0); /* the rank itself */
	assert_int_equal(ns_of(CODE_PREEMPTED), 10 * MS);
	over();
}

static void interrupts(void **state)
{
	uint32_t i;

	(void)state;
	ring(3);
	parts[1]->proxy.irq = 50 * MS;
	assert_int_equal(judged(60), CODE_INTERRUPTS);
	assert_string_equal(names__text(names, v.cause.culprit), "CPU 3");
	assert_int_equal(odd(), CODE_INTERRUPTS);
	/* the job's own packets, on all ranks alike */
	for (i = 0; i < 3; i++)
		parts[i]->proxy.irq = 50 * MS;
	assert_int_equal(odd(), CODE_UNKNOWN);
	over();
	/* what they leave to their thread is no other program's doing */
	ring(3);
	runq(1, "ksoftirqd/3", REPORT_SOFTIRQ, 50 * MS);
	assert_int_equal(judged(60), CODE_INTERRUPTS);
	assert_int_equal(ns_of(CODE_INTERRUPTS), 50 * MS);
	assert_int_equal(ns_of(CODE_PREEMPTED), 0);
	over();
}

static void hold(int64_t held[3])
{
	assert_int_equal(report_index(&op), 0);
	report_held(&op, held, 3);
}

static int64_t carried_over(void)
{
	carry();
	return report_op_duration(&op) - op.own;
}

/* The operation before had held it up: it is not late by itself, and that the others wait is not due to this one. */
static void carried(void **state)
{
	uint32_t i;

	(void)state;
	ring(3);
	for (i = 0; i < 3; i++)
		parts[i]->gap = 250 * MS;
	parts[1]->start += 50 * MS;
	parts[1]->held = 60 * MS;
	assert_int_equal(carried_over(), 50 * MS);
	assert_int_equal(judged(50), CODE_UNKNOWN);
	/* a part of it is its own doing */
	parts[1]->gap = 280 * MS;
	assert_int_equal(carried_over(), 20 * MS);
	assert_int_equal(judged(30), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 1);
	assert_int_equal(v.cause.ns, 30 * MS);
	assert_non_null(strstr(v.evidence[0], "took 30.0 ms longer than its peers to call this"));
	/* so is what that operation was not found to be too long by */
	parts[1]->gap = 250 * MS;
	parts[1]->held = 15 * MS;
	assert_int_equal(carried_over(), 15 * MS);
	assert_int_equal(judged(35), CODE_LATE_RANK);
	assert_int_equal(v.cause.ns, 35 * MS);
	/* it had called before the one before had ended, or that is not known */
	parts[1]->held = 60 * MS;
	parts[1]->gap = -1;
	assert_int_equal(carried_over(), 0);
	assert_int_equal(judged(50), CODE_LATE_RANK);
	assert_int_equal(v.cause.ns, 50 * MS);
	/* one that came before it is late as well, by its own doing: for that they would have waited all the same */
	parts[1]->gap = 250 * MS;
	parts[2]->start += 40 * MS;
	parts[2]->gap += 40 * MS;
	assert_int_equal(judged(50), CODE_LATE_RANK);
	assert_int_equal(v.cause.rank, 2);
	assert_int_equal(carried_over(), 10 * MS);
	/* all but one come later: it waits for them */
	parts[0]->start += 50 * MS;
	parts[0]->held = 60 * MS;
	parts[2]->start -= 40 * MS;
	parts[2]->gap -= 40 * MS;
	assert_int_equal(carried_over(), 50 * MS);
	/* it takes as long by itself */
	parts[0]->stop += 50 * MS;
	assert_int_equal(carried_over(), 0);
	parts[0]->stop -= 50 * MS;
	parts[0]->start -= 50 * MS;
	/* what their threads do until it comes holds nobody up */
	asleep(0, "futex", 100 * MS);
	assert_int_equal(judged(100), CODE_BLOCKED);
	assert_int_equal(v.explained, 50 * MS);
	over();
}

/* A thread slept for 60 ms of 100, and waited for a rank that had been held up for 50 of them: 30 ms held others up. */
static void carried_and_asleep(void **state)
{
	uint32_t i;

	(void)state;
	ring(3);
	for (i = 0; i < 3; i++)
		parts[i]->gap = 250 * MS;
	parts[1]->start += 50 * MS;
	parts[1]->held = 60 * MS;
	asleep(0, "futex", 60 * MS);
	assert_int_equal(judged(50), CODE_BLOCKED);
	assert_int_equal(v.explained, 30 * MS);
	over();
}

/* Who is held up alone, in an operation that this made too long. */
static void held_up(void **state)
{
	int64_t held[3];

	(void)state;
	ring(3);
	op.seq = 1;
	parts[1]->stop += 40 * MS;
	carry();
	hold(held);
	assert_true(!held[0] && !held[1] && !held[2]);
	parts[1]->stop += 20 * MS;
	carry();
	hold(held);
	assert_true(!held[0] && held[1] == 60 * MS && !held[2]);
	/* all but one */
	parts[2]->stop += 59 * MS;
	hold(held);
	assert_true(!held[0] && held[1] == 60 * MS && held[2] == 59 * MS);
	/* by the clock of several nodes, as far as that is known */
	procs[1].node = 8;
	procs[1].clock_error = procs[0].clock_error = 2 * MS;
	hold(held);
	assert_int_equal(held[1], 56 * MS);
	procs[1].clock = 8;
	hold(held);
	assert_int_equal(held[1], 0);
	/* the first one, of which nothing is said */
	procs[1].clock = 7;
	op.seq = 0;
	hold(held);
	assert_int_equal(held[1], 0);
	over();
}

/* Of nodes without a clock in common: it was in it for less time as it came late, or as it ended early. */
static void short_parts(void **state)
{
	uint32_t i;

	(void)state;
	ring(6);
	for (i = 0; i < 6; i++)
		procs[i].node = procs[i].clock = 7 + i % 3;
	/* all of a node came late: which one of them is not known */
	parts[1]->start += 60 * MS;
	parts[4]->start += 60 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_true(v.cause.rank == 1 || v.cause.rank == 4);
	parts[1]->start -= 60 * MS;
	parts[4]->start -= 60 * MS;
	/* it came with the other one of its node, and ended before that */
	parts[1]->stop -= 60 * MS;
	assert_int_equal(judged(60), CODE_UNKNOWN);
	assert_int_equal(carried_over(), 0);
	/* it is alone on its node: it may have come late */
	procs[4].node = procs[4].clock = 20;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	assert_int_equal(carried_over(), 0);
	/* what was before had held it up, and that alone */
	for (i = 0; i < 6; i++)
		parts[i]->gap = 250 * MS;
	parts[4]->held = parts[1]->held = 60 * MS;
	assert_int_equal(carried_over(),
			 0); /* did it come later at all? the others may have ended later */
	for (i = 0; i < 6; i++)
		parts[i]->knows_usual = true;
	for (i = 1; i < 6; i += 3)
		parts[i]->later = parts[i]->told = 60 * MS;
	assert_int_equal(carried_over(), 60 * MS);
	assert_int_equal(judged(60), CODE_UNKNOWN);
	over();
}

/* Each rank has a little of everything, which is more than there are places for causes. */
static void many_ranks(void **state)
{
	uint32_t i;

	(void)state;
	ring(100);
	for (i = 0; i < 100; i++) {
		runq(i, "kworker", 9, MS / 10);
		asleep(i, "futex", MS / 5);
		parts[i]->proxy.irq = MS / 20;
	}
	parts[70]->link[0].retrans = parts[70]->link[0].lost = 5;
	parts[71]->link[1].loss_wait = 50 * MS;
	assert_int_equal(judged(50), CODE_NET_LOSS);
	assert_int_equal(v.cause.rank, 70);
	over();
	/* likewise of the threads of one that comes last */
	ring(100);
	for (i = 0; i < 100; i++) {
		runq(i, "kworker", 9, MS / 10);
		asleep(i, "futex", MS / 5);
	}
	runq(99, "stress-ng", 815, 60 * MS);
	assert_int_equal(judged(50), CODE_PREEMPTED);
	assert_int_equal(v.cause.rank, 99);
	over();
}

static struct report_link *queue(uint32_t rank, int64_t rtt)
{
	struct report_link *l = &parts[rank]->link[0];

	l->busy = 90 * MS;
	l->rtt = rtt;
	l->rtt_min = 20000;
	return l;
}

static void lost_segments(void **state)
{
	(void)state;
	ring(3);
	parts[0]->link[0].retrans = 5;
	parts[0]->link[0].lost = 5;
	parts[1]->link[1].loss_wait = 50 * MS;
	assert_int_equal(judged(50), CODE_NET_LOSS);
	assert_int_equal(v.cause.rank, 0);
	assert_string_equal(names__text(names, v.cause.culprit), "10.0.0.1:1>10.0.0.2:2");
	/* tail loss probes that were not needed are no losses */
	parts[0]->link[0].lost = 0;
	parts[0]->link[0].dsack = 5;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	over();
}

/* A receiver that is kept from its CPU confirms late: TCP sends again, and is told that it was needless when the receiver's part is over. */
static void late_confirmations(void **state)
{
	struct report_link *l;

	(void)state;
	ring(2);
	parts[0]->link[0].flow = name("127.0.0.1:1>127.0.0.2:2"); /* or of two containers */
	l = queue(0, 30 * MS);
	l->busy = 80 * MS;
	l->retrans = 2;
	parts[1]->link[1].maybe_wait = 80 * MS;
	assert_int_equal(judged(60), CODE_NET_LOSS);
	parts[1]->proxy.runq = parts[1]->proxy.throttled = 30 * MS;
	parts[1]->proxy.on -= 30 * MS;
	assert_int_equal(judged(60), CODE_THROTTLED);
	assert_int_equal(ns_of(CODE_NET_LOSS), 0);
	assert_int_equal(ns_of(CODE_BANDWIDTH), 0);
	/* what this kernel dropped, at whichever end it is told, was lost */
	parts[1]->link[1].drops = 1;
	assert_int_equal(judged(60), CODE_NET_LOSS);
	parts[1]->link[1].drops = 0;
	l->drops = 1;
	assert_int_equal(judged(60), CODE_NET_LOSS);
	l->drops = 0;
	/* a little does not explain it, and between nodes there is a network */
	parts[1]->proxy.throttled = 10 * MS;
	assert_int_equal(judged(60), CODE_NET_LOSS);
	parts[1]->proxy.throttled = 30 * MS;
	procs[1].node = 8;
	assert_int_equal(judged(60), CODE_NET_LOSS);
	over();
	/* a receiver that reads late makes the round trip long by itself */
	ring(3);
	l = queue(0, 6 * MS);
	assert_int_equal(judged(60), CODE_BANDWIDTH);
	parts[1]->proxy.runq = parts[1]->proxy.throttled = 60 * MS;
	parts[1]->proxy.on -= 60 * MS;
	assert_int_equal(judged(60), CODE_THROTTLED);
	assert_int_equal(ns_of(CODE_BANDWIDTH), 0);
	over();
}

/* Likewise one that other processes keep from its CPU. What may have been lost all the same, and what was, is loss. */
static void late_confirmations_of_preempted(void **state)
{
	struct report_link *far;

	(void)state;
	ring(2);
	parts[0]->link[0].flow = name("127.0.0.1:1>127.0.0.2:2");
	far = &parts[1]->link[1];
	far->peer_retrans = 2;
	far->maybe_wait = 80 * MS;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	runq(1, "stress-ng", 815,
	     50 * MS); /* some of it was the thread's, and it had no data either */
	assert_int_equal(judged(100), CODE_NET_LOSS);
	runq(1, "stress-ng", 815, 15 * MS);
	parts[1]->proxy.behind[0].ns = 65 * MS;
	assert_int_equal(judged(100), CODE_PREEMPTED);
	assert_int_equal(ns_of(CODE_NET_LOSS), 0);
	/* steps that wait at a time have more between them than there is */
	far->maybe_wait = 95 * MS;
	assert_int_equal(ns_of(CODE_NET_LOSS), 95 * MS);
	parts[1]->proxy.span = 80 * MS;
	assert_int_equal(ns_of(CODE_NET_LOSS), 0);
	/* that something was missing is more than that it was sent again */
	far->peer_lost = 1;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	far->peer_lost = 0;
	parts[0]->link[0].lost = 1;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	parts[0]->link[0].lost = 0;
	far->loss_wait = 1;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	far->loss_wait = 0;
	far->ooo = 1;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	far->ooo = 0;
	far->drops = 1;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	far->drops = 0;
	assert_int_equal(ns_of(CODE_NET_LOSS), 0);
	/* of two threads it is what one of them lacked */
	parts[1]->proxy.threads = 2;
	parts[1]->proxy.span = 160 * MS;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	parts[1]->proxy.threads = 1;
	parts[1]->proxy.span = 80 * MS;
	procs[1].node = 8; /* between nodes there is a network */
	assert_int_equal(judged(100), CODE_NET_LOSS);
	procs[1].node = procs[0].node;
	assert_int_equal(ns_of(CODE_NET_LOSS), 0);
	/* what is known of its threads is a sliver */
	parts[1]->proxy.span = MS;
	parts[1]->proxy.runq = 4 * MS / 5;
	assert_int_equal(judged(100), CODE_NET_LOSS);
	over();
}

/* Only the receiver is there. */
static void lost_by_others(void **state)
{
	(void)state;
	ring(3);
	parts[1]->link[1].peer = 7;
	parts[1]->link[1].loss_wait = 50 * MS;
	parts[1]->link[1].flow = name("10.0.0.2:2>10.0.0.7:1");
	assert_int_equal(judged(50), CODE_UNKNOWN);
	parts[1]->link[1].ooo = 4;
	assert_int_equal(judged(50), CODE_NET_LOSS);
	assert_int_equal(v.cause.rank, 1);
	assert_non_null(strstr(v.evidence[0], "4 segments came out of order, 0 dropped here;"));
	assert_non_null(strstr(v.evidence[1], "flow of rank 1 from rank 7"));
	over();
}

/* The sender had ended its part when TCP found that the last of it was lost. */
static void lost_tails(void **state)
{
	struct report_link *far;

	(void)state;
	ring(3);
	far = &parts[1]->link[1];
	far->maybe_wait = 50 * MS;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	far->peer_retrans = 3;
	assert_int_equal(judged(50), CODE_NET_LOSS);
	assert_int_equal(v.cause.rank, 0);
	assert_string_equal(names__text(names, v.cause.culprit), "10.0.0.1:1>10.0.0.2:2");
	assert_non_null(strstr(v.evidence[0], "3 segments sent again (3 needed)"));
	far->peer_dsack = 3;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	/* not sent again yet, but TCP knows */
	far->maybe_wait = 0;
	far->loss_wait = 50 * MS;
	far->peer_lost = 1;
	assert_int_equal(judged(50), CODE_NET_LOSS);
	over();
}

static void limits_of_flows(void **state)
{
	struct report_link *l;

	(void)state;
	ring(3);
	l = &parts[0]->link[0];
	l->busy = 90 * MS;
	l->rwnd = 60 * MS;
	assert_int_equal(judged(60), CODE_RECEIVER);
	assert_int_equal(v.cause.rank, 1);
	/* a receiver that is kept from running shuts its window, too: then that is why */
	asleep(1, "futex", 58 * MS);
	assert_int_equal(judged(60), CODE_BLOCKED);
	over();
	/* a stage that is not there yet does so, too, and that it comes later than the one before may be usual */
	ring(2);
	op.p2p = op.loose = true;
	l = &parts[0]->link[0];
	l->rwnd = 60 * MS;
	assert_int_equal(judged(60), CODE_RECEIVER);
	parts[1]->start += 50 * MS;
	assert_int_not_equal(judged(60), CODE_RECEIVER);
	parts[1]->start -= 50 * MS;
	procs[1].clock = 8; /* by lengths */
	assert_int_equal(judged(60), CODE_RECEIVER);
	parts[1]->stop -= 50 * MS;
	assert_int_not_equal(judged(60), CODE_RECEIVER);
	op.p2p = op.loose = false;
	over();
	ring(3);
	l = &parts[0]->link[0];
	l->busy = 90 * MS;
	l->sndbuf = 60 * MS;
	assert_int_equal(judged(60), CODE_SENDER);
	l->sndbuf = 0;
	assert_int_equal(judged(60), CODE_UNKNOWN); /* no queue: it is not the link */
	l->rtt = 20 * MS;
	l->rtt_min = 20000;
	assert_int_equal(judged(60), CODE_BANDWIDTH);
	l->flow = name("127.0.0.1:1>127.0.0.1:2");
	assert_int_equal(judged(60), CODE_UNKNOWN);
	over();
}

/* Its GPU, which takes long, and interrupts do not keep a receiver from reading. */
static void a_slow_gpu_of_a_receiver(void **state)
{
	(void)state;
	ring(3);
	parts[0]->link[0].rwnd = 60 * MS;
	parts[1]->link[0].gpu = parts[1]->link[1].gpu = 35 * MS;
	assert_int_equal(ns_of(CODE_GPU_WAIT), 35 * MS);
	assert_int_equal(judged(60), CODE_RECEIVER);
	parts[1]->link[0].gpu = parts[1]->link[1].gpu = 0;
	parts[1]->proxy.irq = 35 * MS;
	assert_int_equal(ns_of(CODE_INTERRUPTS), 35 * MS);
	assert_int_equal(judged(60), CODE_RECEIVER);
	over();
}

/* A queue on the way tells of a link that is too slow only where nothing else makes the flow take so long. */
static void queues(void **state)
{
	struct report_link *l;

	(void)state;
	ring(3);
	l = queue(0, 6 * MS);
	assert_int_equal(judged(60), CODE_BANDWIDTH);
	l->retrans = l->lost = 5;
	parts[1]->link[1].loss_wait = 30 * MS;
	assert_int_equal(judged(60), CODE_NET_LOSS);
	assert_int_equal(ns_of(CODE_BANDWIDTH), 0);
	over();
	/* the time that either end takes is none of it */
	ring(3);
	l = queue(0, 6 * MS);
	l->rwnd = 50 * MS;
	l->sndbuf = 10 * MS;
	assert_int_equal(judged(90), CODE_RECEIVER);
	assert_int_equal(ns_of(CODE_BANDWIDTH), 30 * MS);
	over();
	/* a short one is odd by what the others have less */
	ring(3);
	queue(0, 3 * MS);
	queue(1, 3 * MS);
	queue(2, 3 * MS);
	assert_int_equal(odd(), CODE_UNKNOWN);
	parts[1]->link[0].busy = parts[2]->link[0].busy = 10 * MS;
	assert_int_equal(odd(), CODE_BANDWIDTH);
	over();
	/* a long one tells by itself */
	ring(3);
	queue(0, 6 * MS);
	queue(1, 6 * MS);
	queue(2, 6 * MS);
	assert_int_equal(odd(), CODE_BANDWIDTH);
	over();
	/* and hides none that is longer, though its sender is the other one's receiver */
	ring(2);
	queue(0, 6 * MS)->busy = 60 * MS;
	queue(1, 6 * MS);
	assert_int_equal(judged(90), CODE_BANDWIDTH);
	assert_int_equal(v.cause.rank, 1);
	over();
}

static void the_gpu(void **state)
{
	uint32_t i;

	(void)state;
	ring(3);
	parts[1]->link[0].gpu = 100 * MS;
	parts[1]->link[1].gpu = 100 * MS;
	assert_int_equal(judged(80), CODE_GPU_WAIT);
	assert_int_equal(v.cause.rank, 1);
	for (i = 0; i < 3; i++)
		parts[i]->link[0].gpu = parts[i]->link[1].gpu = 100 * MS;
	assert_int_equal(odd(), CODE_UNKNOWN);
	over();
}

#define COLL(rank, seq, start, stop) COLL_OF("0xabc", rank, seq, start, stop)
#define COLL_OF(comm, rank, seq, start, stop)                                                      \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"" comm              \
	"\",\"rank\":" rank ",\"start\":{\"ts\":" start                                            \
	",\"pid\":1,\"tid\":1},\"stop\":{\"ts\":" start "},\"eventAddr\":\"0x1" seq                \
	"\",\"details\":{\"func\":\"AllReduce\",\"seq\":" seq                                      \
	",\"algo\":\"RING\",\"proto\":\"SIMPLE\",\"count\":1024,\"dtype\":\"ncclFloat32\"},"       \
	"\"exec\":{\"stop\":" stop ",\"duration\":1.000,\"source\":\"proxy\"}}\n"

#define STATE(id, us)                                                                              \
	"{\"recordType\":\"state\",\"eventAddr\":\"0x3\",\"ts\":" us ",\"id\":" id "}\n"

/* A step waits for the GPU until it waits for its peer. */
static void steps_wait_in_turn(void **state)
{
	static const char text[] = HEADER("1") STATE("8", "1100.000") STATE("20", "1200.000") STATE(
		"9", "1600.000") "{\"recordType\":\"event\",\"type\":\"ncclProfileProxyStep\","
				 "\"parentObj\":\"0x2\",\"eventAddr\":\"0x3\",\"start\":{\"ts\":"
				 "1100.000},\"stop\":{\"ts\":1700.000}}\n"
				 "{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\","
				 "\"parentObj\":\"0x10\",\"eventAddr\":\"0x2\",\"start\":{\"ts\":"
				 "1000.000},\"stop\":{\"ts\":2000.000},"
				 "\"details\":{\"peer\":1,\"isSend\":true}}\n" COLL(
					 "0", "0", "1000.000", "2000.000");
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(r.procs->wait_gpu, 100000);
	report_free(&r);
}

/* A GPU cannot have its data ready that has none: over InfiniBand, say, where no flow tells, RecvWait does. */
static void a_gpu_without_data(void **state)
{
	(void)state;
	ring(3);
	parts[1]->link[0].gpu = 100 * MS;
	assert_int_equal(judged(60), CODE_GPU_WAIT);
	parts[1]->link[1].recv = 90 * MS;
	assert_int_equal(judged(60), CODE_UNKNOWN);
	over();
}

/* What its thread did is not known: a rank that has no data waits for that, whatever its steps are in. */
static void a_gpu_without_threads(void **state)
{
	(void)state;
	ring(3);
	memset(&parts[1]->proxy, 0, sizeof(parts[1]->proxy));
	parts[1]->link[0].gpu = parts[1]->link[1].gpu = 50 * MS;
	assert_int_equal(judged(50), CODE_GPU_WAIT);
	assert_string_equal(v.evidence[1], "it waited for others for 0 % of the time");
	parts[1]->link[1].no_data = 100 * MS;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	over();
}

/* ---- RDMA ports -------------------------------------------------------------------------------------------- */

/* The same, and no flow is known; operations of the kind take 100 ms, and ports counted nothing then. */
static void rdma_ring(uint32_t n)
{
	uint32_t i;

	ring(n);
	for (i = 0; i < n; i++)
		parts[i]->link[0].tcp = parts[i]->link[1].tcp = false;
	typical.window = 200 * MS;
}

static void moved(uint32_t rank, const char *port, const char *counter, uint32_t n)
{
	enum rdma_sign sign = rdma_sign_of(counter, strlen(counter));

	assert_int_not_equal(sign, NO_SIGN);
	parts[rank]->moved[sign] = (struct report_moved){n, name(port), name(counter)};
}

static void ports_of_an_operation(void **state)
{
	uint32_t i;

	(void)state;
	rdma_ring(3);
	procs[1].host = procs[2].host = name("nodeB");
	assert_int_equal(judged(50), CODE_UNKNOWN);
	moved(1, "mlx5_3:1", "packet_seq_err", 12);
	moved(2, "mlx5_3:1", "packet_seq_err", 11);
	moved(0, "mlx5_0:1", "out_of_sequence", 300);
	assert_int_equal(judged(50), CODE_RDMA_LOSS);
	assert_string_equal(names__text(names, v.cause.culprit), "mlx5_3:1 on nodeB");
	assert_null(v.cause.proc);
	assert_int_equal(v.cause.rank, -1);
	assert_int_equal(v.explained, 50 * MS);
	assert_true(v.confidence > 0.69 && v.confidence < 0.71);
	assert_string_equal(v.evidence[0], "packet_seq_err 12 meanwhile, on mlx5_3:1; nothing else "
					   "explains 50.0 ms of the extra 50.0 ms");
	assert_string_equal(v.evidence[1],
			    "a port counts for all that use it, out_of_sequence 300");
	/* the time in which nothing was confirmed says more than how often */
	moved(0, "mlx5_1:1", "hw_local_ack_timeout_err", 1);
	assert_int_equal(judged(50), CODE_RDMA_LOSS);
	assert_string_equal(names__text(names, v.cause.culprit), "mlx5_1:1");
	/* not of what went over TCP, and not if nothing tells what is usual */
	for (i = 0; i < 3; i++)
		parts[i]->link[0].tcp = parts[i]->link[1].tcp = true;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	parts[2]->link[0].tcp = false;
	assert_int_equal(judged(50), CODE_RDMA_LOSS);
	typical.window = 0;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	over();
	/* most have some of it: four times as often is odd; 12 in 200 ms, with what is around it, are 60 in a second */
	rdma_ring(3);
	moved(1, "mlx5_3:1", "out_of_sequence", 12);
	typical.share[SIGN_MISSED] = 0.6;
	typical.rate[SIGN_MISSED] = INT64_MAX;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	typical.rate[SIGN_MISSED] = 16 * 1000;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	typical.rate[SIGN_MISSED] = 15 * 1000;
	assert_int_equal(judged(50), CODE_RDMA_LOSS);
	/* few have, and one that takes four times as long has some by chance */
	typical.share[SIGN_MISSED] = 0.12;
	typical.window = 50 * MS;
	assert_int_equal(judged(50), CODE_RDMA_LOSS);
	typical.share[SIGN_MISSED] = 0.13;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	over();
	rdma_ring(3);
	moved(1, "mlx5_3:1", "np_cnp_sent", 12);
	assert_int_equal(judged(50), CODE_RDMA_CONGESTION);
	over();
}

/* What is known to have held the operation up for so long is why, and not what some port counted. */
static void ports_and_other_causes(void **state)
{
	(void)state;
	rdma_ring(3);
	moved(0, "mlx5_0:1", "local_ack_timeout_err", 3);
	runq(1, "stress-ng", 815, 45 * MS);
	assert_int_equal(judged(50), CODE_PREEMPTED);
	/* nothing came for as long: the others waited for that rank */
	parts[2]->link[1].recv = parts[2]->link[1].stall = 50 * MS;
	assert_int_equal(judged(50), CODE_PREEMPTED);
	/* a part of it is another matter */
	parts[2]->link[1].recv = parts[2]->link[1].stall = 0;
	assert_int_equal(judged(100), CODE_RDMA_LOSS);
	assert_int_equal(v.explained, 55 * MS);
	over();
	/* nothing comes, either, while all wait for a rank that is late, and no longer than usual is no finding */
	rdma_ring(3);
	moved(0, "mlx5_0:1", "packet_seq_err", 1);
	parts[1]->start += 60 * MS;
	parts[2]->link[1].recv = parts[2]->link[1].stall = 100 * MS;
	assert_int_equal(judged(100), CODE_LATE_RANK);
	over();
	rdma_ring(3);
	moved(0, "mlx5_0:1", "packet_seq_err", 1);
	runq(1, "job", 100, 60 * MS);
	parts[2]->link[1].recv = parts[2]->link[1].stall = 100 * MS;
	assert_int_equal(judged(100), CODE_RDMA_LOSS);
	typical.stall = 50 * MS;
	assert_int_equal(judged(100), CODE_PREEMPTED);
	over();
	/* what is plain to see goes first */
	rdma_ring(3);
	moved(0, "mlx5_0:1", "local_ack_timeout_err", 1);
	asleep(1, "stopped", 45 * MS);
	assert_int_equal(judged(100), CODE_STOPPED);
	over();
	/* threads that share a CPU have the less of it, while nothing comes */
	rdma_ring(3);
	moved(0, "mlx5_0:1", "local_ack_timeout_err", 3);
	runq(1, "job", 100, 60 * MS);
	assert_int_equal(judged(95), CODE_PREEMPTED);
	parts[2]->link[1].recv = parts[2]->link[1].stall = 90 * MS;
	assert_int_equal(judged(95), CODE_RDMA_LOSS);
	assert_int_equal(v.explained, 90 * MS);
	assert_non_null(strstr(v.evidence[0], "on mlx5_0:1; no data came for 90.0 ms"));
	over();
}

static void names_of_counters(void **state)
{
	(void)state;
	assert_int_equal(rdma_sign_of("local_ack_timeout_err", 21), SIGN_TIMEOUT);
	assert_int_equal(rdma_sign_of("hw_link_downed", 14), SIGN_LINK);
	assert_int_equal(rdma_sign_of("port_xmit_wait", 14), SIGN_HELD);
	assert_int_equal(rdma_sign_of("port_xmit_data", 14), NO_SIGN);
	assert_int_equal(rdma_sign_of("Nak Sequence Error", 18), SIGN_RESENT);
	assert_int_equal(rdma_sign_of("RTO", 3), SIGN_TIMEOUT);
	assert_int_equal(rdma_sign_of("hw_", 3), NO_SIGN);
	assert_int_equal(rdma_sign_of("", 0), NO_SIGN);
}

/* A thread that polls while it waits looks as busy as one that is: what it waited tells them apart. */
static void a_busy_thread(void **state)
{
	struct report_class kind;
	uint32_t i;

	(void)state;
	ring(3);
	memset(&kind, 0, sizeof(kind));
	kind.key.algo = name("RING");
	op.class = &kind;
	for (i = 0; i < 3; i++)
		parts[i]->link[1].no_data = 99 * MS;
	assert_int_equal(judged(80), CODE_UNKNOWN);
	parts[1]->link[1].no_data = 5 * MS;
	assert_int_equal(judged(80), CODE_BUSY);
	assert_int_equal(v.cause.rank, 1);
	assert_int_equal(v.cause.ns, 94 * MS);
	assert_int_equal(v.cause.odd_ns, 69 * MS);
	assert_int_equal(odd(), CODE_BUSY);
	/* over something else than TCP nothing tells who waited */
	parts[1]->link[1].tcp = false;
	assert_int_equal(judged(80), CODE_UNKNOWN);
	parts[1]->link[1].tcp = true;
	/* on a CPU, but because of the GPU, an interrupt or not at all */
	parts[1]->link[0].gpu = parts[1]->link[1].gpu = 90 * MS;
	assert_int_equal(judged(80), CODE_GPU_WAIT);
	parts[1]->link[0].gpu = parts[1]->link[1].gpu = 0;
	parts[1]->proxy.irq = 90 * MS;
	assert_int_equal(judged(80), CODE_INTERRUPTS);
	parts[1]->proxy.irq = 0;
	parts[1]->proxy.on = 10 * MS;
	runq(1, "hog", 9, 90 * MS);
	assert_int_equal(judged(80), CODE_PREEMPTED);
	parts[1]->proxy = parts[0]->proxy;
	/* a little more, and as much as all */
	parts[1]->link[1].no_data = 75 * MS;
	assert_int_equal(odd(), CODE_UNKNOWN);
	for (i = 0; i < 3; i++)
		parts[i]->link[1].no_data = 5 * MS;
	assert_int_equal(odd(), CODE_UNKNOWN);
	/* who only sends never waits for data; in a tree some have more to do */
	parts[0]->link[1].no_data = parts[2]->link[1].no_data = 99 * MS;
	parts[1]->nlinks = 1;
	assert_int_equal(odd(), CODE_UNKNOWN);
	parts[1]->nlinks = 2;
	assert_int_equal(odd(), CODE_BUSY);
	kind.key.algo = name("TREE");
	assert_int_equal(odd(), CODE_UNKNOWN);
	op.class = NULL;
	over();
}

/* Its own GPU's doing, whatever its thread suffered meanwhile, and whenever its application came. */
static void the_kernel(void **state)
{
	uint32_t i;

	(void)state;
	ring(3);
	for (i = 0; i < 3; i++)
		parts[i]->kernel.at = parts[i]->start + MS;
	parts[1]->kernel.at = parts[1]->start + 81 * MS;
	parts[1]->proxy.runq = 70 * MS;
	parts[1]->proxy.on = 30 * MS;
	parts[1]->proxy.behind[0] = (struct report_who){name("hog"), 9, 70 * MS};
	parts[1]->link[0].gpu = parts[1]->link[1].gpu = 80 * MS;
	assert_int_equal(judged(80), CODE_LATE_KERNEL);
	assert_int_equal(v.cause.rank, 1);
	assert_int_equal(v.cause.ns, 80 * MS);
	assert_non_null(
		strstr(v.evidence[0], "81.0 ms after its application had come, 80.0 ms later"));
	assert_int_equal(odd(), CODE_LATE_KERNEL);
	/* not sure enough by the GPU's clock: what else there is */
	parts[1]->kernel.error = parts[0]->kernel.error = 35 * MS;
	assert_int_equal(judged(80), CODE_PREEMPTED);
	/* nothing is known of the others */
	parts[1]->kernel.error = 0;
	parts[0]->kernel.at = parts[2]->kernel.at = 0;
	assert_int_equal(judged(80), CODE_PREEMPTED);
	over();
	/* it came late, and its kernel at once */
	ring(3);
	for (i = 0; i < 3; i++)
		parts[i]->kernel.at = parts[i]->start + MS;
	parts[1]->start += 80 * MS;
	parts[1]->kernel.at += 80 * MS;
	assert_int_equal(judged(80), CODE_LATE_RANK);
	over();
	/* a stage of a pipeline */
	ring(2);
	op.p2p = op.loose = true;
	parts[0]->kernel.at = parts[0]->start;
	parts[1]->kernel.at = parts[1]->start + 80 * MS;
	assert_int_equal(judged(80), CODE_UNKNOWN);
	over();
}

/* Four ranks whose applications call 0, @ahead, and so on before the first kernel, which begins at 1020 ms, that of rank 2 @late after it. */
static void kernels(int64_t ahead, int64_t late)
{
	uint32_t i;

	ring(4);
	for (i = 0; i < 4; i++) {
		parts[i]->start = (i ? 1010 : 1010 - ahead) * MS;
		parts[i]->kernel.at = (1020 + (i == 2 ? late : 0)) * MS;
	}
}

/* How far its application is ahead of its GPU is no matter: all kernels begin together, or one of another rank is late. */
static void called_before_the_kernel(void **state)
{
	uint32_t i;

	(void)state;
	kernels(60, 0);
	assert_int_equal(odd(), CODE_UNKNOWN);
	assert_int_equal(judged(60), CODE_UNKNOWN);
	over();
	kernels(60, 50);
	assert_int_equal(judged(50), CODE_LATE_KERNEL);
	assert_int_equal(v.cause.rank, 2);
	assert_int_equal(v.cause.ns, 50 * MS);
	/* by a clock that nodes were merged into, as far as that is sure */
	for (i = 0; i < 4; i++) {
		procs[i].node = 10 + i;
		procs[i].clock_error = MS;
	}
	assert_int_equal(judged(50), CODE_LATE_KERNEL);
	assert_int_equal(v.cause.rank, 2);
	/* and else by how long each kernel took */
	for (i = 0; i < 4; i++)
		procs[i].clock = procs[i].node;
	parts[0]->kernel.at += 500 * MS;
	parts[0]->start += 500 * MS;
	parts[0]->stop += 500 * MS;
	assert_int_equal(judged(50), CODE_LATE_KERNEL);
	assert_int_equal(v.cause.rank, 2);
	assert_int_equal(v.cause.ns, 50 * MS);
	/* which is not known of what has not ended */
	parts[3]->unfinished = true;
	assert_int_not_equal(odd(), CODE_LATE_KERNEL);
	over();
	kernels(60, 0);
	for (i = 0; i < 4; i++)
		procs[i].node = procs[i].clock = 10 + i;
	assert_int_not_equal(odd(), CODE_LATE_KERNEL);
	over();
}

static void what_follows_from_a_late_rank(void **state)
{
	(void)state;
	ring(3);
	parts[1]->start += 80 * MS;
	parts[0]->link[0].busy = 95 * MS;
	parts[0]->link[0].rwnd = 90 * MS; /* nobody reads before it comes */
	assert_int_equal(judged(80), CODE_LATE_RANK);
	over();
}

/* Called while another one was executed: what its first step waited for the GPU until then was for that. */
static void gpu_of_another(void **state)
{
	struct report_member m = {.rank = 0, .proc = &procs[0]};
	struct report_op_info info = {.group = 1};
	struct report_part *p;

	(void)state;
	ring(3);
	HASH_ADD(hh, comm.members, rank, sizeof(m.rank), &m);
	report_queue(&comm, &info, parts[0]);
	assert_true(parts[0]->start == 1000 * MS);
	p = parts[1];
	p->rank = 0;
	p->proc = &procs[0];
	p->stop = 1130 * MS;
	p->link[0].gpu = p->link[1].gpu = 60 * MS;
	p->link[0].gpu_n = p->link[1].gpu_n = 2;
	p->link[0].gpu_from = 2.0 * 1080 * MS;
	p->link[0].gpu_to = 2.0 * 1105 * MS;
	p->link[1].gpu_from = 2.0 * 1101 * MS;
	p->link[1].gpu_to = 2.0 * 1129 * MS;
	info.group = 2;
	report_queue(&comm, &info, p);
	assert_true(p->start == 1100 * MS);
	assert_int_equal(p->link[0].gpu, 20 * MS);
	assert_int_equal(p->link[1].gpu, 60 * MS);
	assert_int_equal(p->proxy.on, 100 * MS * 30 / 130);
	HASH_CLEAR(hh, comm.members);
	over();
}

/*
 * Rank 0 and its peer call, and the kernel of rank 0 begins 99 ms later, as that of its process' operation of another communicator ends, which is
 * its operation before by @group and takes @took ms. What is said of that, of which its GPU's share is @gpu ms.
 */
static enum report_code behind_another(uint64_t group, int64_t took, int64_t gpu)
{
	struct report_member m = {.rank = 0, .proc = &procs[0]}, same = m;
	struct report_op_info info = {.group = 1};
	struct report_comm other = {.nranks = 2};
	enum report_code code;

	ring(3);
	op.comm = &other;
	HASH_ADD(hh, comm.members, rank, sizeof(m.rank), &m);
	HASH_ADD(hh, other.members, rank, sizeof(same.rank), &same);
	parts[0]->stop = (1000 + took) * MS;
	parts[0]->kernel.at = 1000 * MS;
	report_queue(&comm, &info, parts[0]);
	parts[1]->proc = &procs[0];
	parts[1]->rank = 0;
	parts[1]->kernel.at = 1100 * MS;
	parts[1]->link[1].gpu = 98 * MS;
	parts[1]->link[1].gpu_n = 1;
	parts[1]->link[1].gpu_from = 1002.0 * MS;
	parts[1]->link[1].gpu_to = 1100.0 * MS;
	parts[2]->kernel.at = 1001 * MS;
	parts[1]->start = parts[2]->start = 1001 * MS;
	parts[1]->stop = parts[2]->stop = 1110 * MS;
	info.group = group;
	report_queue(&other, &info, parts[1]);
	assert_int_equal(parts[1]->link[1].gpu, gpu * MS);
	op.parts = parts + 1;
	op.nparts = 2;
	code = judged(99);
	op.parts = parts;
	op.nparts = 3;
	HASH_CLEAR(hh, comm.members);
	HASH_CLEAR(hh, other.members);
	over();
	return code;
}

/* What that took too long is told of it, and not of what its stream came to only then. */
static void kernel_of_another(void **state)
{
	(void)state;
	assert_int_equal(behind_another(2, 100, 0), CODE_UNKNOWN);
	/* which goes on for a moment by its proxy */
	assert_int_equal(behind_another(0, 101, 0), CODE_UNKNOWN);
	/* or it goes on beside it, in another stream; or they are one group, whose kernel was late */
	assert_int_equal(behind_another(2, 102, 98), CODE_LATE_KERNEL);
	assert_int_equal(behind_another(1, 100, 98), CODE_LATE_KERNEL);
	/* it had been over before */
	assert_int_equal(behind_another(2, 50, 50), CODE_LATE_KERNEL);
	assert_int_equal(v.cause.ns, 50 * MS);
}

static void losses_lower_the_confidence(void **state)
{
	double sure;

	(void)state;
	ring(3);
	runq(2, "hog", 4711, 50 * MS);
	judged(50);
	sure = v.confidence;
	parts[0]->loss_near = 3;
	assert_int_equal(judged(50), CODE_PREEMPTED);
	assert_true(v.confidence <= sure / 2 + 0.01);
	over();
}

static void must_be_sure(double confidence)
{
	assert_true(v.confidence > confidence - 0.001 && v.confidence < confidence + 0.001);
}

/* Half of what is to be explained: so sure is that, and less if something else may go for it, or ranks lack. */
static void what_else_lowers_the_confidence(void **state)
{
	(void)state;
	ring(3);
	runq(2, "hog", 4711, 50 * MS);
	assert_int_equal(judged(100), CODE_PREEMPTED);
	must_be_sure(0.5);
	asleep(0, "futex", 35 * MS);
	assert_int_equal(judged(100), CODE_PREEMPTED);
	must_be_sure(0.5);
	asleep(0, "futex", 5 * MS); /* 40 in all */
	assert_int_equal(judged(100), CODE_PREEMPTED);
	must_be_sure(0.5 * 0.8);
	comm.nranks = 4;
	assert_int_equal(judged(100), CODE_PREEMPTED);
	must_be_sure(0.5 * 0.8 * 0.9);
	over();
	/* whatever comes to it first; and what a stop is behind is plain */
	ring(3);
	asleep(0, "futex", 40 * MS);
	runq(2, "hog", 4711, 50 * MS);
	assert_int_equal(judged(100), CODE_PREEMPTED);
	must_be_sure(0.5 * 0.8);
	asleep(1, "stopped", 50 * MS);
	assert_int_equal(judged(100), CODE_STOPPED);
	must_be_sure(0.5);
	over();
}

/* Between two operations, of which none tells what its threads were in. */
static void stopped_between_operations(void **state)
{
	(void)state;
	ring(3);
	parts[1]->start += 60 * MS;
	procs[1].stop_ns = 40 * MS;
	procs[1].stop_why = name("stopped");
	procs[1].stop_from = parts[1]->start - 50 * MS;
	procs[1].stop_to = parts[1]->start - 10 * MS;
	assert_int_equal(judged(60), CODE_STOPPED);
	assert_int_equal(v.cause.rank, 1);
	assert_int_equal(v.cause.culprit, 0);
	procs[1].stop_ns = 30 * MS; /* not for most of the time */
	assert_int_equal(judged(60), CODE_LATE_RANK);
	/* before the others came, and after it did */
	procs[1].stop_ns = 40 * MS;
	procs[1].stop_why = name("stopped");
	procs[1].stop_from = parts[1]->start - 100 * MS;
	procs[1].stop_to = parts[1]->start - 60 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	procs[1].stop_from = parts[1]->start;
	procs[1].stop_to = parts[1]->start + 40 * MS;
	assert_int_equal(judged(60), CODE_LATE_RANK);
	over();
}

/* An operation of three ranks that does not end, and whose they are. */
static void open_ring(struct report_member m[3])
{
	uint32_t i;

	ring(3);
	for (i = 0; i < 3; i++) {
		m[i].rank = (int32_t)i;
		m[i].proc = &procs[i];
		HASH_ADD(hh, comm.members, rank, sizeof(m[i].rank), &m[i]);
		parts[i]->unfinished = true;
	}
}

static void never_ended(void **state)
{
	struct report_member m[3] = {0};
	uint32_t i;

	(void)state;
	open_ring(m);
	assert_int_equal(judged(100), CODE_UNKNOWN);
	assert_string_equal(v.evidence[0],
			    "it never ended, and nothing in the trace says what it waits for");
	assert_string_equal(v.evidence[1], "");
	comm.nranks = 16;
	judged(100);
	assert_string_equal(v.evidence[1], "it may wait for ranks that are not in this input: "
					   "3 of 16 are");
	comm.nranks = 3;
	procs[1].reset_ns = 1050 * MS;
	assert_int_equal(judged(100), CODE_RESET);
	procs[1].reset_ns = 900 * MS; /* long before */
	assert_int_equal(judged(100), CODE_UNKNOWN);
	/* a signal ended it, as they were at work; or long after all of them had come to a stand */
	procs[1].end = name("signal 9");
	procs[1].failed = true;
	procs[1].last = 1100 * MS;
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, 1);
	for (i = 0; i < 3; i++) {
		parts[i]->quiet = 5000 * MS;
		parts[i]->stop += 5000 * MS;
		procs[i].end = name("signal 9");
		procs[i].failed = true;
		procs[i].last = parts[i]->stop;
	}
	assert_int_equal(judged(5100), CODE_UNKNOWN);
	/* a link may have been dead as long; but not if there is more to be said */
	procs[0].reset_ns = parts[0]->stop - MS;
	assert_int_equal(judged(5100), CODE_RESET);
	assert_true(v.confidence <= 0.5);
	/* whose thread slept all the while is the one that they wait for */
	parts[2]->proxy =
		(struct report_role){.threads = 1, .blocked = 5000 * MS, .span = 5100 * MS};
	parts[2]->proxy.in[0] = (struct report_who){name("futex"), 0, 400 * MS};
	assert_int_equal(judged(5100), CODE_BLOCKED);
	assert_int_equal(v.cause.rank, 2);
	assert_string_equal(names__text(names, v.cause.culprit), "futex");
	procs[0].reset_ns = 0;
	memset(&parts[2]->proxy, 0, sizeof(parts[2]->proxy));
	op.nparts = 2; /* rank 2 never came */
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, 2);
	op.nparts = 3;
	HASH_CLEAR(hh, comm.members);
	over();
}

/* A rank crashes, which its core dump takes seconds for, and the launcher ends the others at once: it is the one that is told of. */
static void crashed_and_the_others_ended(void **state)
{
	struct report_member m[8] = {0};
	uint32_t i;

	(void)state;
	ring(8);
	for (i = 0; i < 8; i++) {
		m[i].rank = (int32_t)i;
		m[i].proc = &procs[i];
		HASH_ADD(hh, comm.members, rank, sizeof(m[i].rank), &m[i]);
		parts[i]->unfinished = true;
		procs[i].end = name("signal 15");
		procs[i].failed = true;
		procs[i].ends[0] = (struct report_signal){
			.nr = SIGTERM, .ts = (1300 + i) * MS, .from_pid = 77};
		procs[i].last = (1310 + i) * MS;
	}
	procs[5].end = name("signal 11");
	procs[5].ends[0] = (struct report_signal){
		.nr = SIGSEGV, .code = 1, .ts = 1150 * MS, .from_pid = procs[5].host_pid};
	procs[5].last = 4000 * MS;
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, 5);
	assert_true(v.cause.died);
	/* whoever has not come either, which it was ended for */
	parts[7]->rank = 8;
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, 5);
	/* of those whose signals are not known, the one that was over first */
	for (i = 0; i < 8; i++)
		memset(procs[i].ends, 0, sizeof(procs[i].ends));
	procs[3].last = 1200 * MS;
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, 3);
	HASH_CLEAR(hh, comm.members);
	over();
}

/* A rank exits with an error status, and the launcher ends the others soon after: who waits for whom is as if it had crashed. */
static void exited_and_the_others_ended(void **state)
{
	struct report_member m[3] = {0};
	uint32_t i;

	(void)state;
	open_ring(m);
	for (i = 0; i < 3; i++) {
		procs[i].end = name("signal 15");
		procs[i].failed = true;
		procs[i].last = 1300 * MS;
	}
	procs[2].end = name("exit");
	procs[2].exit_code = 3;
	procs[2].last = 1150 * MS;
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, 2);
	assert_true(v.cause.died);
	assert_string_equal(v.evidence[0], "its process exited; the others are waiting for it");
	assert_string_equal(v.evidence[1], "its process had exited with status 3");
	/* its connection had failed it: that is told, and nobody who was ended for it */
	procs[0].along = procs[1].along = true;
	procs[2].reset_ns = 1050 * MS;
	procs[2].reset_why = name("reset-in");
	assert_int_equal(judged(100), CODE_RESET);
	assert_int_equal(v.cause.rank, 2);
	/* long before; or by its own end */
	procs[2].last = 7000 * MS;
	for (i = 0; i < 3; i++)
		parts[i]->stop = 7000 * MS;
	assert_int_equal(judged(6000), CODE_MISSING);
	assert_int_equal(v.cause.rank, 2);
	procs[2].last = 7000 * MS;
	procs[2].reset_ns = 6999 * MS;
	assert_int_equal(judged(6000), CODE_RESET);
	procs[2].reset_why = name("reset-out");
	assert_int_equal(judged(6000), CODE_MISSING);
	HASH_CLEAR(hh, comm.members);
	over();
}

/* What the rank that does not come sleeps in: the call, the file, and as much as there is room for of where in the kernel that is. */
static void never_came(void **state)
{
	static const char asleep[] = "when the recording ended, its application (thread 4711) had "
				     "been asleep for 8.0 s, in ";
	char name120[121], want[sizeof(v.evidence[0])];
	struct report_member m[3] = {0};
	struct report_thread t = {.tid = 4711, .asleep = 8000 * MS};

	(void)state;
	open_ring(m);
	op.nparts = 2;
	procs[2].caller = t.tid;
	HASH_ADD(hh, procs[2].threads, tid, sizeof(t.tid), &t);
	t.why = name("pagefault");
	t.stack = name("folio_wait_bit_common < filemap_fault < __do_fault");
	assert_int_equal(judged(100), CODE_MISSING);
	snprintf(want, sizeof(want),
		 "%spagefault (folio_wait_bit_common < filemap_fault < __do_fault)", asleep);
	assert_string_equal(v.evidence[1], want);
	t.why = name("read");
	memset(name120, 'f', 120);
	name120[120] = 0;
	t.file = name(name120); /* which is cut */
	judged(100);
	snprintf(want, sizeof(want),
		 "%sread on %.64s (folio_wait_bit_common < filemap_fault < __do_fault)", asleep,
		 name120);
	assert_string_equal(v.evidence[1], want);
	t.stack = name("a_function_with_quite_a_long_name_1 < a_function_with_quite_a_long_name_2 "
		       "< a_function_with_quite_a_long_name_3");
	judged(100);
	snprintf(want, sizeof(want),
		 "%sread on %.64s (a_function_with_quite_a_long_name_1 < "
		 "a_function_with_quite_a_long_name_2)",
		 asleep, name120);
	assert_string_equal(v.evidence[1], want);
	t.stack = name(name120);
	judged(100);
	snprintf(want, sizeof(want), "%sread on %.64s", asleep, name120);
	assert_string_equal(v.evidence[1], want);
	/* what only waits says all by its name */
	t.file = 0;
	t.why = name("futex");
	t.stack = name("futex_do_wait < __futex_wait < futex_wait");
	judged(100);
	snprintf(want, sizeof(want), "%sfutex", asleep);
	assert_string_equal(v.evidence[1], want);
	HASH_CLEAR(hh, procs[2].threads);
	procs[2].is_frozen = true;
	assert_int_equal(judged(100), CODE_STOPPED);
	assert_string_equal(v.evidence[0],
			    "was frozen with its cgroup before it called this operation; "
			    "the others have been waiting in it for 100.0 ms");
	assert_string_equal(v.evidence[1], "");
	procs[2].is_stopped = true;
	assert_int_equal(judged(100), CODE_STOPPED);
	assert_non_null(strstr(v.evidence[0], "was stopped (SIGSTOP"));
	HASH_CLEAR(hh, comm.members);
	over();
}

#define TOO_MANY (REPORT_CAUSES + 8)

/* More ranks than there are causes have not come: what is said of one of them, or of a connection, is weighed all the same. */
static void many_never_came(void **state)
{
	struct report_member m[TOO_MANY] = {0};
	uint32_t i;

	(void)state;
	ring(TOO_MANY);
	for (i = 0; i < TOO_MANY; i++) {
		m[i].rank = (int32_t)i;
		m[i].proc = &procs[i];
		HASH_ADD(hh, comm.members, rank, sizeof(m[i].rank), &m[i]);
		parts[i]->unfinished = true;
	}
	op.nparts = 2;
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, 2);
	procs[TOO_MANY - 1].is_stopped = true;
	assert_int_equal(judged(100), CODE_STOPPED);
	assert_int_equal(v.cause.rank, TOO_MANY - 1);
	procs[TOO_MANY - 1].is_stopped = false;
	procs[1].reset_ns = 1050 * MS;
	assert_int_equal(judged(100), CODE_RESET);
	procs[TOO_MANY - 2].end = name("signal 9");
	procs[TOO_MANY - 2].failed = true;
	procs[TOO_MANY - 2].last = 1100 * MS;
	assert_int_equal(judged(100), CODE_MISSING);
	assert_int_equal(v.cause.rank, TOO_MANY - 2);
	assert_true(v.cause.died);
	op.nparts = TOO_MANY;
	HASH_CLEAR(hh, comm.members);
	over();
}

/* As many are stopped within it, the last one for longest. */
static void many_were_stopped(void **state)
{
	uint32_t i;

	(void)state;
	ring(TOO_MANY);
	for (i = 0; i < TOO_MANY; i++)
		asleep(i, "stopped", i == TOO_MANY - 1 ? 90 * MS : MS);
	assert_int_equal(judged(90), CODE_STOPPED);
	assert_int_equal(v.cause.rank, TOO_MANY - 1);
	over();
}

/* Of a thread record, the innermost functions, up to the first without a name. */
static void where_it_sleeps(void **state)
{
#define SLEEPS(tid, stack)                                                                         \
	"{\"recordType\":\"thread\",\"tid\":" tid ",\"stop\":9000.000,\"state\":\"blocked\","      \
	"\"why\":\"read\",\"stateSince\":1000.000,\"stack\":" stack "}\n"
	static const char text[] = HEADER("1") SLEEPS("1", "[\"a.constprop.0\",\"b\",\"c\",\"d\"]")
		SLEEPS("2", "[\"a\",\"?\",\"c\"]") SLEEPS("3", "[\"?\"]") SLEEPS("4", "[5,\"a\"]")
			SLEEPS("5", "\"a\"") SLEEPS("6", "{}");
	static const char *const want[] = {"a < b < c", "a", "", "", "", ""};
	struct report_thread *t;
	struct report r;
	uint32_t tid;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	for (tid = 1; tid <= 6; tid++) {
		HASH_FIND(hh, r.procs->threads, &tid, sizeof(tid), t);
		assert_non_null(t);
		assert_string_equal(t->stack ? names__text(r.names, t->stack) : "", want[tid - 1]);
	}
	report_free(&r);
}

static char *text_of(const struct report *r)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	report_text(r, f);
	fclose(f);
	return text;
}

static bool tells(const struct report *r, const char *words)
{
	char *text = text_of(r);
	bool found = strstr(text, words);

	free(text);
	return found;
}

#define INIT(rank)                                                                                 \
	"{\"recordType\":\"event\",\"type\":\"ProfilerLifecycle\",\"func\":\"ProfilerInit\","      \
	"\"commHash\":\"0xabc\",\"rank\":" rank ",\"start\":{\"ts\":1.5,\"pid\":1},\"stop\":"      \
	"{\"ts\":1.5},\"details\":{\"nranks\":4}}\n"
#define THREAD(tid, more)                                                                          \
	"{\"recordType\":\"thread\",\"tid\":" tid ",\"stop\":9000000.000" more "}\n"
#define ASLEEP(since, why)                                                                         \
	",\"since\":1000000.000,\"blocked\":8000000.000,\"state\":\"blocked\",\"why\":\"" why      \
	"\",\"stateSince\":" since
#define ON_A_DISK ",\"file\":\"a\\u001b/b\",\"fs\":\"nfs4\",\"stack\":[\"x\",\"y\"]"

/* A job that does nothing: what each first thread is in, and who is in something else than most. */
static void nothing_moves(void **state)
{
	static const char text[] = HEADER("1") INIT("2") THREAD("1", ASLEEP("1000000.000", "futex"))
		HEADER("2") INIT("0") THREAD("2", ASLEEP("1000000.000", "futex"))
			THREAD("3", ASLEEP("1000000.000", "poll")) HEADER("4") INIT("3")
				THREAD("4", ASLEEP("2000000.000", "read") ON_A_DISK) HEADER("5")
					INIT("1") THREAD("5", ASLEEP("1000000.000", "futex"))
						HEADER("6") THREAD("6", "");
	static const char with_op[] = HEADER("1") THREAD("1", ASLEEP("1000000.000", "futex"))
		COLL("2", "1", "1000.000", "2000.000");
	struct report_still *list;
	struct report r;
	char *said;
	uint32_t n;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	list = report_stills(&r, &n);
	assert_int_equal(n, 4);
	assert_true(list[0].apart && list[0].proc->rank == 3);
	assert_true(!list[1].apart && list[1].proc->rank == 0 && list[1].thread->tid == 2);
	free(list);
	said = text_of(&r);
	assert_non_null(strstr(said, "\nNo operation began or ended: what the ranks' first threads "
				     "were in at the end\n"));
	assert_non_null(strstr(
		said, "\n3     job[4]                      7.00 s ! read on a?/b (nfs4) (x < y)\n"
		      "0     job[2]                    > 8.00 s   futex\n"
		      "1     job[5]                    > 8.00 s   futex\n"));
	assert_non_null(strstr(said, "\n! 1 of 4 in something else than the others, who may wait "
				     "for it\n"));
	assert_null(strstr(said, "Why it was slow"));
	free(said);
	report_free(&r);
	read_text(&r, with_op, sizeof(with_op) - 1);
	free(report_stills(&r, &n));
	assert_int_equal(n, 0);
	report_free(&r);
}

#define HEADER_OF_MASK(mask)                                                                       \
	"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":1,"       \
	"\"comm\":\"job\",\"features\":{\"maskAsked\":" mask "}}\n"
#define API(type, more)                                                                            \
	"{\"recordType\":\"event\",\"type\":\"ncclProfile" type "\",\"start\":{\"ts\":2.5}" more   \
	"}\n"
#define HAS_ENDED  ",\"stop\":{\"ts\":3.5}"
#define OF_A_GRAPH ",\"details\":{\"graphCaptured\":true}"

static void must_tell_still(const char *text, size_t len, const char *want, uint32_t want_n)
{
	struct report r;
	char *said;
	uint32_t n;

	read_text(&r, text, len);
	free(report_stills(&r, &n));
	said = text_of(&r);
	if (n != want_n || !strstr(said, want))
		fail_msg("%u, not %u, or no '%s' in:\n%s", n, want_n, want, said);
	free(said);
	report_free(&r);
}

/* Of a job that does well nothing is still: its operations were not asked for, or NCCL was not to tell them. */
static void operations_are_left_out(void **state)
{
	static const char none[] =
		"\nOperations were not recorded (--mask, NCCL_PROFILE_EVENT_MASK)\n";
	static const char hangs[] = "\nNo operation began or ended: what";
	static const char engines[] = "\nNo operations but those of copy engines (CeColl)";
#define SLEEPER INIT("0") THREAD("1", ASLEEP("1000000.000", "futex"))
	static const char by_mask[] = HEADER_OF_MASK("512") SLEEPER API("CollApi", HAS_ENDED);
	static const char by_mask_none[] = HEADER_OF_MASK("32") SLEEPER;
#define SLEEPER_OF_MASK(mask)                                                                      \
	"{\"recordType\":\"event\",\"type\":\"ProfilerLifecycle\",\"func\":\"ProfilerInit\","      \
	"\"commHash\":\"0xabc\",\"rank\":0,\"start\":{\"ts\":1.5},\"details\":{"                   \
	"\"eventMask\":" mask "}}\n" THREAD("1", ASLEEP("1000000.000", "futex"))
	static const char by_ceiling[] =
		HEADER_OF_MASK("65535") SLEEPER_OF_MASK("4") API("GroupApi", HAS_ENDED);
	static const char by_mask_some[] = HEADER_OF_MASK("4") SLEEPER API("GroupApi", HAS_ENDED);
	/* communicators that were made before the recording, and what the job's mask leaves of it */
#define HEADER_OF_CEILING(asked, ceiling)                                                          \
	"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":1,"       \
	"\"comm\":\"job\",\"mask\":0,\"maskCeiling\":" ceiling                                     \
	",\"features\":{\"maskAsked\":" asked "}}\n"
	static const char before[] =
		HEADER_OF_CEILING("65535", "4") SLEEPER_OF_MASK("0") API("GroupApi", HAS_ENDED);
	static const char before_none[] = HEADER_OF_CEILING("65535", "32") SLEEPER_OF_MASK("0");
	static const char before_neither[] = HEADER_OF_CEILING("2", "16") SLEEPER_OF_MASK("0");
	static const char before_nothing[] = HEADER_OF_CEILING("65535", "0") SLEEPER_OF_MASK("0");
	static const char before_all[] =
		HEADER_OF_CEILING("65535", "4095") SLEEPER_OF_MASK("0") API("GroupApi", HAS_ENDED);
	/* what was launched hangs before NCCL tells of it; only another process leaves some out */
	static const char launches[] =
		HEADER_OF_MASK("65535") SLEEPER_OF_MASK("4095") API("GroupApi", HAS_ENDED);
	static const char was_there[] =
		HEADER_OF_MASK("65535") SLEEPER_OF_MASK("64") API("GroupApi", HAS_ENDED);
	static const char of_another[] = HEADER_OF_MASK("65535") SLEEPER_OF_MASK("4095")
		HEADER_OF_MASK("4") API("GroupApi", HAS_ENDED);
	static const char by_one[] = HEADER_OF_MASK("32") SLEEPER HEADER("2") INIT("1");
	/* a parent of what was asked for; a first operation that hangs as it connects; what is only captured */
	static const char steps[] = HEADER_OF_MASK("16") SLEEPER;
	static const char connects[] =
		HEADER_OF_MASK("65535") SLEEPER API("GroupApi", ",\"unfinished\":true")
			API("GroupApi", HAS_ENDED ",\"unfinished\":true") API("CollApi", HAS_ENDED);
	static const char captured[] =
		HEADER_OF_MASK("65535") SLEEPER API("GroupApi", HAS_ENDED OF_A_GRAPH);
	static const char by_engines[] =
		HEADER_OF_MASK("65535") SLEEPER API("CeColl", HAS_ENDED) API("GroupApi", HAS_ENDED);

	(void)state;
	must_tell_still(by_mask, sizeof(by_mask) - 1, none, 0);
	must_tell_still(by_mask_none, sizeof(by_mask_none) - 1, none, 0);
	must_tell_still(by_ceiling, sizeof(by_ceiling) - 1, none, 0);
	must_tell_still(by_mask_some, sizeof(by_mask_some) - 1, none, 0);
	must_tell_still(before, sizeof(before) - 1, none, 0);
	must_tell_still(before_none, sizeof(before_none) - 1, none, 0);
	must_tell_still(before_neither, sizeof(before_neither) - 1, none, 0);
	must_tell_still(before_nothing, sizeof(before_nothing) - 1, none, 0);
	must_tell_still(before_all, sizeof(before_all) - 1, hangs, 1);
	must_tell_still(launches, sizeof(launches) - 1, hangs, 1);
	must_tell_still(was_there, sizeof(was_there) - 1, hangs, 1);
	must_tell_still(of_another, sizeof(of_another) - 1, hangs, 1);
	must_tell_still(by_one, sizeof(by_one) - 1, hangs, 1);
	must_tell_still(steps, sizeof(steps) - 1, hangs, 1);
	must_tell_still(connects, sizeof(connects) - 1, hangs, 1);
	must_tell_still(captured, sizeof(captured) - 1, hangs, 1);
	must_tell_still(by_engines, sizeof(by_engines) - 1, engines, 0);
}

#define INIT_OF(comm, rank, nranks)                                                                \
	"{\"recordType\":\"event\",\"type\":\"ProfilerLifecycle\",\"func\":\"ProfilerInit\","      \
	"\"commHash\":\"" comm "\",\"rank\":" rank ",\"start\":{\"ts\":1.5},\"details\":{"         \
	"\"nranks\":" nranks "}}\n"
#define SLEEPER_OF(comm, pid, rank, why)                                                           \
	HEADER(pid) INIT_OF(comm, rank, "3") THREAD(pid, ASLEEP("1000000.000", why))
#define WORKER HEADER("1") INIT("0") THREAD("1", "") COLL("0", "1", "1000.000", "2000.000")
#define HUNG_JOB                                                                                   \
	SLEEPER_OF("0xdef", "2", "0", "futex")                                                     \
	SLEEPER_OF("0xdef", "3", "1", "read") SLEEPER_OF("0xdef", "4", "2", "futex")
#define AT_THE_END ": what the ranks' first threads were in at the end\n"

/* Beside a job that goes on: another one does nothing, and whose operations are not recorded is judged by its own. */
static void nothing_moves_in_another_job(void **state)
{
	static const char hung[] = WORKER HUNG_JOB;
	static const char two[] = WORKER HUNG_JOB SLEEPER_OF("0x123", "5", "0", "poll");
	static const char masked[] = WORKER
		"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":2,"
		"\"comm\":\"job\",\"features\":{\"maskAsked\":32}}\n" INIT_OF("0xdef", "0", "3")
			THREAD("2", ASLEEP("1000000.000", "futex"));
	static const char engines[] =
		WORKER SLEEPER_OF("0xdef", "2", "0", "futex") API("CeColl", HAS_ENDED);
	static const char beside_engines[] =
		HEADER("1") INIT("0") THREAD("1", "") API("CeColl", HAS_ENDED) HUNG_JOB;
	static const char alone[] = WORKER HEADER("2") INIT_OF("0xdef", "0", "1")
		THREAD("2", ASLEEP("1000000.000", "futex"));
	static const char of_it[] =
		WORKER HEADER("2") INIT("1") THREAD("2", ASLEEP("1000000.000", "futex"));
#define EXITED(code) "{\"recordType\":\"footer\",\"end\":\"exit\",\"exitCode\":" code "}\n"
	static const char ended[] = WORKER SLEEPER_OF("0xdef", "2", "0", "futex") EXITED("0")
		SLEEPER_OF("0xdef", "3", "1", "futex") EXITED("0");
	static const char failed_one[] = WORKER SLEEPER_OF("0xdef", "2", "0", "futex") EXITED("0")
		SLEEPER_OF("0xdef", "3", "1", "futex") EXITED("1");
	/* Coll would have come with KernelCh, of which nothing does */
	static const char no_kernels[] = WORKER
		"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":2,"
		"\"comm\":\"job\",\"features\":{\"maskAsked\":64}}\n"
		"{\"recordType\":\"event\",\"type\":\"ProfilerLifecycle\",\"func\":"
		"\"ProfilerInit\","
		"\"commHash\":\"0xdef\",\"rank\":0,\"start\":{\"ts\":1.5},\"details\":{\"nranks\":"
		"3,"
		"\"eventMask\":0,\"noKernelCh\":\"late\"}}\n" THREAD(
			"2", ASLEEP("1000000.000", "futex"));
	static const char why[] = "\nWhy it was slow";

	(void)state;
	must_tell_still(ended, sizeof(ended) - 1, why, 0);
	must_tell_still(failed_one, sizeof(failed_one) - 1, why, 2);
	must_tell_still(no_kernels, sizeof(no_kernels) - 1, why, 0);
	must_tell_still(hung, sizeof(hung) - 1,
			"\nWhy it was slow: nothing stands out\n"
			"\nNo operation began or ended in another job" AT_THE_END,
			3);
	must_tell_still(hung, sizeof(hung) - 1,
			"\n0xdef, 3 ranks:\n"
			"1     job[3]                    > 8.00 s ! read\n"
			"0     job[2]                    > 8.00 s   futex\n"
			"2     job[4]                    > 8.00 s   futex\n"
			"! 1 of 3 in something else than the others, who may wait for it\n",
			3);
	must_tell_still(two, sizeof(two) - 1,
			"\nNo operation began or ended in 2 other jobs" AT_THE_END, 4);
	must_tell_still(two, sizeof(two) - 1,
			"may wait for it\n0x123, 3 ranks:\n"
			"0     job[5]                    > 8.00 s   poll\n",
			4);
	must_tell_still(masked, sizeof(masked) - 1, why, 0);
	must_tell_still(engines, sizeof(engines) - 1, why, 0);
	must_tell_still(beside_engines, sizeof(beside_engines) - 1,
			"\nNo operation began or ended: what", 3);
	must_tell_still(alone, sizeof(alone) - 1, why, 0);
	must_tell_still(of_it, sizeof(of_it) - 1, why, 0);
}

/* Two jobs that do nothing: who is apart is told of each by itself, and of one as large as the table not all, so that the other has room. */
static void nothing_moves_in_two_jobs(void **state)
{
	static const char mixed[] = HUNG_JOB SLEEPER_OF("0x123", "5", "0", "poll")
		SLEEPER_OF("0x123", "6", "1", "poll") SLEEPER_OF("0x123", "7", "2", "poll");
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int i;

	(void)state;
	must_tell_still(mixed, sizeof(mixed) - 1,
			"! 1 of 3 in something else than the others, who may wait for it\n"
			"0x123, 3 ranks:\n"
			"0     job[5]                    > 8.00 s   poll\n"
			"1     job[6]                    > 8.00 s   poll\n"
			"2     job[7]                    > 8.00 s   poll\n\n",
			6);
	assert_non_null(f);
	for (i = 0; i < 40; i++)
		fprintf(f,
			"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\","
			"\"pid\":%d,\"hostPid\":%d,\"comm\":\"job\"}\n{\"recordType\":\"event\","
			"\"type\":\"ProfilerLifecycle\",\"func\":\"ProfilerInit\",\"commHash\":"
			"\"0x77\",\"rank\":%d,\"start\":{\"ts\":1.5},\"details\":{\"nranks\":40}}\n"
			"{\"recordType\":\"thread\",\"tid\":%d,\"stop\":9000000.000,\"since\":"
			"1000000.000,\"blocked\":8000000.000,\"state\":\"blocked\",\"why\":"
			"\"futex\","
			"\"stateSince\":1000000.000}\n",
			100 + i, 100 + i, i, 100 + i);
	fputs(HUNG_JOB, f);
	fclose(f);
	must_tell_still(text, len, "\n1     job[3]                    > 8.00 s ! read\n", 43);
	must_tell_still(text, len, "\n(24 more ranks: see --json)\n", 43);
	free(text);
}

/* The call is asked for two seconds after a recording began, and told where the kernel lets us see it. */
static void a_call_is_not_known_yet(void **state)
{
#define NOT_TOLD(from, since)                                                                      \
	HEADER_OF_MASK("65535")                                                                    \
	INIT("0")                                                                                  \
	NOT_TOLD_THREAD(from, since)
#define NOT_TOLD_THREAD(from, since)                                                               \
	THREAD("1", ",\"since\":" from                                                             \
		    ",\"blocked\":8000000.000,\"state\":\"blocked\",\"stateSince\":" since)
	static const char short_one[] = NOT_TOLD("8100000.000", "8100000.000");
	static const char long_one[] = NOT_TOLD("1000000.000", "1000000.000");
	static const char short_sleep[] = NOT_TOLD("1000000.000", "8100000.000");
	static const char asked[] = NOT_TOLD("7400000.000", "7400000.000");
	static const char old_kernel[] =
		"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":1,"
		"\"comm\":\"job\",\"features\":{\"maskAsked\":65535,\"blockedIn\":false}}\n" INIT(
			"0") NOT_TOLD_THREAD("8100000.000", "8100000.000");

	(void)state;
	must_tell_still(short_one, sizeof(short_one) - 1,
			" > 900.0 ms   not known yet: record 3 s or longer\n", 1);
	must_tell_still(long_one, sizeof(long_one) - 1, "> 8.00 s   not known\n", 1);
	must_tell_still(short_sleep, sizeof(short_sleep) - 1, " 900.0 ms   not known\n", 1);
	must_tell_still(asked, sizeof(asked) - 1, "> 1.60 s   not known\n", 1);
	must_tell_still(old_kernel, sizeof(old_kernel) - 1, "> 900.0 ms   not known\n", 1);
}

/* ---- Quantiles ------------------------------------------------------------------------------------------------ */

static int cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void quantiles_are_within_their_error(void **state)
{
	static const double qs[] = {0, 0.5, 0.9, 0.99, 1};
	static int64_t values[5000];
	struct hist *h = calloc(1, sizeof(*h));
	uint64_t seed = 1;
	size_t i, n;

	(void)state;
	assert_non_null(h);
	assert_int_equal(hist__quantile(h, 0.5), 0);
	for (n = 0; n < 5000; n++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		values[n] = (int64_t)((seed >> 33) >> (seed >> 60)) * 997;
		hist__add(h, values[n]);
	}
	qsort(values, n, sizeof(values[0]), cmp);
	for (i = 0; i < sizeof(qs) / sizeof(qs[0]); i++) {
		double want = (double)values[(size_t)(qs[i] * (double)(n - 1))];
		double got = (double)hist__quantile(h, qs[i]);

		assert_true(got >= want * 0.984 - 1 && got <= want * 1.016 + 1);
	}
	/* of few: no less than all but a hundredth of them */
	memset(h, 0, sizeof(*h));
	for (i = 1; i <= 20; i++)
		hist__add(h, i);
	assert_int_equal(hist__quantile(h, 0.99), 20);
	assert_int_equal(hist__quantile(h, 0.5), 10);
	assert_int_equal(hist__quantile(h, 0), 1);
	hist__add(h, -5);
	hist__add(h, INT64_MAX); /* beyond the last bucket */
	assert_int_equal(hist__quantile(h, 1), h->max < INT64_MAX ? h->max : hist__quantile(h, 1));
	free(h);
}

/* ---- The reader ---------------------------------------------------------------------------------------------------- */

static void ranks_of_one_file_are_joined(void **state)
{
	static const char text[] = HEADER("1") COLL("0", "1", "1000.000", "2000.000")
		COLL("0", "2", "3000.000", "9000.000") HEADER("2")
			COLL("1", "1", "1000.000", "2000.000")
				COLL("1", "2", "8000.000", "9000.000");
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(r.totals.ops, 2);
	assert_int_equal(r.nprocs, 2);
	assert_int_equal(r.classes->time.n, 2);
	assert_int_equal(r.classes->time.max, 6000000);
	assert_int_equal(r.classes->late, 5000000);
	/* 2 ranks: algbw and busbw are the same */
	assert_true(report_algbw(&r, r.classes) > 0.00117 && report_algbw(&r, r.classes) < 0.00118);
	assert_true(report_busbw(&r, r.classes) == report_algbw(&r, r.classes));
	report_free(&r);
}

#define SILENT(silent)                                                                             \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"parentObj\":\"0x11\","        \
	"\"eventAddr\":\"0x2\",\"start\":{\"ts\":1100.000},\"stop\":null,\"duration\":null,"       \
	"\"unfinished\":true" silent ",\"details\":{\"peer\":1,\"isSend\":true}}\n"

/* That a ProxyOp has no end is one of its operation's, unless NCCL tells of none of such ProxyOps. */
static void silent_proxy_ops(void **state)
{
	static const char silent[] =
		HEADER("1") SILENT(",\"silent\":true") COLL("0", "1", "1000.000", "2000.000")
			SILENT(",\"silent\":true") COLL("0", "2", "9000.000", "9500.000");
	static const char open[] = HEADER("1") SILENT("") COLL("0", "1", "1000.000", "2000.000")
		SILENT("") COLL("0", "2", "9000.000", "9500.000");
	struct report r;

	(void)state;
	read_text(&r, silent, sizeof(silent) - 1);
	assert_int_equal(r.classes->hung, 0);
	assert_int_equal(r.classes->time.n, 2);
	assert_int_equal(r.classes->time.max, MS);
	report_free(&r);
	read_text(&r, open, sizeof(open) - 1);
	assert_int_equal(r.classes->time.n, 1);
	report_free(&r);
}

#define REPLAY(rank, ms) COLL(rank, "1", ms "000.000", ms "999.000")
#define REPLAYS(rank)	 REPLAY(rank, "1") REPLAY(rank, "11") REPLAY(rank, "21") REPLAY(rank, "31")

/* Of a CUDA graph, all of one number: that of one rank is not joined with another one of the other's. */
static void replays(void **state)
{
	static const char text[] = HEADER("1") REPLAYS("0") HEADER("2") REPLAYS("1");
	static const char lost[] =
		HEADER("1") REPLAY("0", "1") HEADER("2") REPLAY("1", "11") REPLAY("1", "21");
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(r.classes->late, 0);
	assert_int_equal(r.totals.ops, 6); /* the last two of both came together */
	assert_int_equal(r.classes->op_span, 8 * 999000);
	report_free(&r);
	read_text(&r, lost, sizeof(lost) - 1);
	assert_int_equal(r.classes->late, 0);
	assert_int_equal(r.totals.ops, 3);
	report_free(&r);
}

/* Of 100 operations of which nothing tells the time, one each that rank 1 comes 8 ms late to. */
static void late_beside_untimed(void **state)
{
	struct report_find **finds;
	char *text = NULL;
	struct report r;
	uint32_t rank, seq, n;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	for (rank = 0; rank < 2; rank++) {
		fprintf(f, HEADER("%u"), rank + 1, rank + 1);
		for (seq = 1; seq < 1000; seq++)
			fprintf(f,
				"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\","
				"\"commHash\":\"0x%s\",\"rank\":%u,\"start\":{\"ts\":%u.000,"
				"\"pid\":1,\"tid\":1},\"stop\":{\"ts\":%u.000},\"eventAddr\":"
				"\"0x%x\",\"details\":{\"func\":\"AllReduce\",\"seq\":%u,"
				"\"count\":1024,\"dtype\":\"ncclFloat32\"},\"exec\":{\"stop\":"
				"%u.000,\"source\":\"%s\"}}\n",
				seq % 100 ? "def" : "abc", rank,
				seq * 1000 + (seq % 100 || !rank ? 0 : 8000), seq * 1000 + 8010,
				seq + 16, seq, seq * 1000 + (seq % 100 ? 10 : 10000),
				seq % 100 ? "enqueue" : "proxy");
	}
	fclose(f);
	read_text(&r, text, len);
	free(text);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
	assert_int_equal(finds[0]->ops, 9);
	assert_int_equal(finds[0]->slow, 0);
	free(finds);
	report_free(&r);
}

/* Of two nodes with four ranks each, of which only rank 0 has a peer that it reaches by a proxy. Rank 2 comes 200 ms late to every tenth one. */
static void timed_by_others(void **state)
{
	uint32_t rank, seq, start, stop, n;
	struct report_find **finds;
	char *text = NULL;
	struct report_proc *p;
	struct report r;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	for (rank = 0; rank < 8; rank++) {
		fprintf(f,
			"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n%u\",\"bootId\":\"%"
			"u\","
			"\"pid\":%u,\"hostPid\":%u,\"comm\":\"job\"}\n",
			rank / 4, rank / 4, rank + 1, rank + 1);
		for (seq = 1; seq <= 100; seq++) {
			start = seq * 1000000 + (rank == 2 && seq % 10 == 0 ? 200000 : 0);
			stop = seq * 1000000 + (seq % 10 ? 50000 : 250000);
			fprintf(f,
				"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\","
				"\"commHash\":\"0xabc\",\"rank\":%u,\"start\":{\"ts\":%u.000,"
				"\"pid\":1,\"tid\":1},\"stop\":{\"ts\":%u.000},\"eventAddr\":"
				"\"0x%x\",\"details\":{\"func\":\"AllReduce\",\"seq\":%u,"
				"\"count\":1024,\"dtype\":\"ncclFloat32\"},\"exec\":{\"stop\":"
				"%u.000,\"source\":\"%s\"}}\n",
				rank, start, start + 10, seq + 16, seq, rank ? start + 10 : stop,
				rank ? "enqueue" : "proxy");
		}
	}
	fclose(f);
	read_text(&r, text, len);
	free(text);
	assert_int_equal(r.classes->time.n, 100);
	assert_int_equal(r.classes->time.max, 250 * MS);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
	assert_int_equal(finds[0]->who->rank, 2);
	assert_int_equal(finds[0]->slow, 10);
	free(finds);
	for (p = r.procs; p; p = p->next)
		assert_int_equal(p->op_ns, (90 * 50 + 10 * (p->rank == 2 ? 50 : 250)) * MS);
	report_free(&r);
}

/* Who went ahead of the others was in it no sooner than they were; who has no transfers is no measure for who has. */
static void untimed_beside_timed(void **state)
{
	(void)state;
	ring(3);
	parts[2]->known = false;
	parts[2]->start -= 500 * MS;
	parts[2]->stop = parts[2]->start + 1;
	parts[2]->nlinks = 0;
	memset(&parts[2]->proxy, 0, sizeof(parts[2]->proxy));
	carry();
	assert_int_equal(parts[2]->start, 1000 * MS);
	assert_int_equal(parts[2]->stop, 1100 * MS);
	assert_int_equal(report_op_duration(&op), 100 * MS);
	parts[0]->link[0].gpu = parts[1]->link[0].gpu = 90 * MS;
	parts[0]->proxy.irq = parts[1]->proxy.irq = 30 * MS;
	assert_int_equal(odd(), CODE_UNKNOWN);
	/* what goes on is as long as it is seen */
	parts[0]->unfinished = true;
	parts[2]->stop = parts[2]->start + 1;
	carry();
	assert_int_equal(parts[2]->stop, parts[2]->start + 1);
	over();
}

/* Of the one finding that is named. */
static enum report_code only_code(const struct report *r)
{
	uint32_t n;
	struct report_find **finds = report_findings(r, &n);
	enum report_code code;

	assert_int_equal(n, 1);
	code = finds[0]->key.code;
	free(finds);
	return code;
}

/* Of rank @rank, in which its GPU had no data until @came, all us. */
static void put_waiting(FILE *f, uint32_t rank, uint32_t seq, uint32_t at, uint32_t came,
			uint32_t end)
{
	fprintf(f,
		STATE("8", "%u.000") STATE("20", "%u.000")
			STATE("9", "%u.000") "{\"recordType\":"
					     "\"event\",\"type\":\"ncclProfileProxyStep\","
					     "\"parentObj\":\"0x2\",\"eventAddr\":"
					     "\"0x3\",\"start\":{\"ts\":%u.000},\"stop\":{\"ts\":%"
					     "u.000}}\n{\"recordType\":"
					     "\"event\",\"type\":\"ncclProfileProxyOp\","
					     "\"parentObj\":\"0x%x\",\"eventAddr\":"
					     "\"0x2\",\"start\":{\"ts\":%u.000},\"stop\":{\"ts\":%"
					     "u.000},\"details\":{\"peer\":"
					     "%u,\"isSend\":true}}\n",
		at, came, came, at, end, seq + 16, at, end, (rank + 1) % 4);
	fprintf(f,
		"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"0xabc\","
		"\"rank\":%u,\"start\":{\"ts\":%u.000,\"pid\":1,\"tid\":1},\"stop\":{\"ts\":%u.000}"
		","
		"\"eventAddr\":\"0x%x\",\"details\":{\"func\":\"AllReduce\",\"seq\":%u,\"count\":"
		"1024,\"dtype\":\"ncclFloat32\"},\"exec\":{\"stop\":%u.000,\"source\":\"proxy\"}}"
		"\n",
		rank, at, at, seq + 16, seq, end);
}

/* Of four ranks those in @here (bits), of which rank 2 comes 200 ms late to every tenth operation. */
static void read_part_of_job(struct report *r, uint32_t here)
{
	uint32_t rank, seq, at, came;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (rank = 0; rank < 4; rank++) {
		if (!(here & 1u << rank))
			continue;
		fprintf(f, HEADER("%u") INIT("%u"), rank + 1, rank + 1, rank);
		for (seq = 1; seq <= 100; seq++) {
			at = seq * 1000000;
			came = at + (seq % 10 ? 1000 : 200000);
			put_waiting(f, rank, seq, rank == 2 ? came : at, came, came + 50000);
		}
	}
	fclose(f);
	read_text(r, text, len);
	free(text);
}

/* Who is not in the input may be whom the others wait for: that these waited is no answer, and it is said who is here. */
static void who_is_not_here(void **state)
{
	static const char partial[] = "\nRanks: 3 of 4 of communicator 0xabc are in this input.\n";
	const struct report_comm *worst;
	struct report r;
	char *said;

	(void)state;
	read_part_of_job(&r, 0xf);
	assert_int_equal(only_code(&r), CODE_LATE_RANK);
	assert_int_equal(report_partial(&r, &worst), 0);
	assert_null(worst);
	said = text_of(&r);
	assert_null(strstr(said, "\nRanks: "));
	free(said);
	report_free(&r);
	read_part_of_job(&r, 0xb);
	assert_int_equal(only_code(&r), CODE_UNKNOWN);
	assert_int_equal(report_partial(&r, &worst), 1);
	said = text_of(&r);
	assert_non_null(strstr(said, partial));
	assert_non_null(strstr(said, "it may have waited for ranks that are not in this input: "
				     "3 of 4 are"));
	free(said);
	report_free(&r);
	read_part_of_job(&r, 0x1);
	assert_int_equal(only_code(&r), CODE_UNKNOWN);
	report_free(&r);
}

/* What is a rank's own trouble is told all the same, of what it did not wait meanwhile. */
static void own_troubles_of_a_part(void **state)
{
	(void)state;
	ring(3);
	comm.nranks = 16;
	runq(2, "hog", 4711, 50 * MS);
	assert_int_equal(judged(50), CODE_PREEMPTED);
	assert_int_equal(v.cause.rank, 2);
	parts[0]->link[1].no_data = parts[1]->link[1].no_data = 95 * MS;
	parts[2]->link[1].no_data = 90 * MS;
	assert_int_equal(judged(50), CODE_UNKNOWN);
	comm.nranks = 3;
	assert_int_equal(judged(50), CODE_PREEMPTED);
	over();
	/* others may be why the GPU had nothing, or nobody read */
	ring(3);
	parts[1]->link[0].gpu = parts[1]->link[1].gpu = 100 * MS;
	assert_int_equal(judged(80), CODE_GPU_WAIT);
	comm.nranks = 16;
	assert_int_equal(judged(80), CODE_UNKNOWN);
	over();
	ring(3);
	parts[0]->link[0].busy = 90 * MS;
	parts[0]->link[0].rwnd = 60 * MS;
	comm.nranks = 16;
	assert_int_equal(judged(60), CODE_UNKNOWN);
	over();
	ring(3);
	comm.nranks = 16;
	parts[0]->link[0].retrans = parts[0]->link[0].lost = 5;
	parts[1]->link[1].loss_wait = 50 * MS;
	assert_int_equal(judged(50), CODE_NET_LOSS);
	over();
}

/* What is slow only by what was asked for is told beside what is usual all the same. */
static void slower_than_is_asked_for(void **state)
{
	static const char text[] = HEADER("1") COLL("0", "1", "1000.000", "2000.000")
		COLL("0", "2", "3000.000", "4000.000") HEADER("2")
			COLL("1", "1", "1000.000", "2000.000")
				COLL("1", "2", "3000.000", "4000.000");
	struct report r;

	(void)state;
	read_text_than(&r, text, sizeof(text) - 1, MS / 2);
	assert_int_equal(r.classes->all_slow, 2);
	assert_true(r.classes->slow[0].expected > MS * 98 / 100);
	assert_true(r.classes->slow[0].expected < MS * 102 / 100);
	report_free(&r);
}

/* A job that failed between two operations: it was the reset, and no operation is made up for it. */
static void reset_between_operations(void **state)
{
	static const char text[] = HEADER("1") COLL(
		"0", "1", "1000.000", "2000.000") "{\"recordType\":\"flow\",\"ts\":2500.000,"
						  "\"flow\":\"10.0.0.1:1>10.0.0.2:2\","
						  "\"why\":\"reset-in\",\"peerRank\":1,"
						  "\"peerPid\":2}\n"
						  "{\"recordType\":\"footer\",\"ts\":2600.000,"
						  "\"end\":\"exit\",\"exitCode\":1}\n" HEADER("2")
							  COLL("1", "1", "1000.000", "2000.000");
	struct report_find **finds;
	char *said = NULL;
	struct report r;
	size_t len;
	uint32_t n;
	FILE *f = open_memstream(&said, &len);

	(void)state;
	assert_non_null(f);
	read_text(&r, text, sizeof(text) - 1);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_RESET);
	assert_int_equal(finds[0]->slow, 0);
	assert_int_equal(finds[0]->hung, 0);
	assert_true(finds[0]->conf >= 0.8);
	free(finds);
	report_text(&r, f);
	fclose(f);
	assert_non_null(strstr(said, "connection-reset"));
	assert_non_null(strstr(said, "in no operation that was recorded"));
	assert_non_null(strstr(said, "the other end reset it: rank 1, process 2"));
	free(said);
	report_free(&r);
}

#define SIGNAL(us, nr, code, from)                                                                 \
	"{\"recordType\":\"signal\",\"ts\":" us ",\"signal\":\"SIG" nr "\",\"nr\":" nr             \
	",\"code\":" code from "}\n"
#define HANDLED(us, nr, code, from) SIGNAL(us, nr, code, ",\"handled\":true" from)
#define FROM(pid)		    ",\"from\":{\"pid\":" pid ",\"tid\":7,\"comm\":\"x\",\"uid\":1000}"
#define FOOTER(nr)		    "{\"recordType\":\"footer\",\"end\":\"signal " nr "\"}\n"
#define KILLED(us, nr)                                                                             \
	SIGNAL(us, "18", "0", "")                                                                  \
	FOOTER(nr)
#define TWO_RANKS(end_of_first, end_of_second)                                                     \
	HEADER("1")                                                                                \
	COLL("0", "1", "1000.000", "2000.000")                                                     \
	end_of_first HEADER("2") COLL("1", "1", "1000.000", "2000.000") end_of_second
#define FAILED "{\"recordType\":\"footer\",\"end\":\"exit\",\"exitCode\":1}\n"

#define HEADER_IN(pid, host_pid)                                                                   \
	"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":" pid     \
	",\"hostPid\":" host_pid ",\"comm\":\"job\"}\n"
#define RESET_BY(rank, pid)                                                                        \
	"{\"recordType\":\"flow\",\"ts\":2500.000,\"flow\":\"10.0.0.1:1>10.0.0.2:2\",\"why\":"     \
	"\"reset-in\",\"peerRank\":" rank ",\"peerPid\":" pid                                      \
	"}\n{\"recordType\":\"footer\",\"ts\":"                                                    \
	"2600.000,\"end\":\"exit\",\"exitCode\":1}\n"

static void must_tell_reset(const char *text, size_t len, const char *want)
{
	struct report_find **finds;
	struct report r;
	uint32_t n;

	read_text(&r, text, len);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_string_equal(finds[0]->evidence[1], want);
	free(finds);
	report_free(&r);
}

/* Who did so goes by the name that it has elsewhere: a flow has its rank in whichever communicator, and its pid in its container. */
static void who_has_reset(void **state)
{
	static const char known[] = HEADER_IN("17", "901") COLL("2", "1", "1000.000", "2000.000")
		RESET_BY("0", "18") HEADER_IN("18", "902") COLL("1", "1", "1000.000", "2000.000");
	static const char several[] = HEADER_IN("17", "901") COLL("2", "1", "1000.000", "2000.000")
		RESET_BY("0", "18") HEADER_IN("18", "902") COLL("1", "1", "1000.000", "2000.000")
			HEADER_IN("18", "903") COLL("0", "1", "1000.000", "2000.000");
	static const char no_pid[] =
		HEADER("1") COLL("2", "1", "1000.000", "2000.000") RESET_BY("0", "-1");

	(void)state;
	must_tell_reset(known, sizeof(known) - 1, "the other end reset it: rank 1, process 902");
	must_tell_reset(several, sizeof(several) - 1,
			"the other end reset it: rank 0 of its communicator, process 18");
	must_tell_reset(no_pid, sizeof(no_pid) - 1,
			"the other end reset it: rank 0 of its communicator");
}

/* The first line of evidence and the second of the only verdict, NULL: there is none. */
static void must_tell(const char *text, size_t len, const char *first, const char *second)
{
	struct report_find **finds;
	struct report r;
	uint32_t n;

	read_text(&r, text, len);
	finds = report_findings(&r, &n);
	assert_int_equal(n, first ? 1 : 0);
	if (first) {
		assert_int_equal(finds[0]->key.code, CODE_MISSING);
		assert_int_equal(finds[0]->who->rank, 1);
		assert_string_equal(finds[0]->evidence[0], first);
		assert_string_equal(finds[0]->evidence[1], second);
	}
	free(finds);
	report_free(&r);
}

#define MUST_TELL(text, first, second) must_tell(text, sizeof(text) - 1, first, second)
#define BY(nr)			       "its process ended by signal " nr ", and no operation was seen under way"
#define ENDING(pid)                                                                                \
	",\"from\":{\"pid\":" pid ",\"tid\":7,\"comm\":\"x\",\"uid\":4294967294,\"exiting\":true}"
#define FAILED_AT(us) SIGNAL(us, "18", "0", "") FAILED

/* A job of which a process crashes between two operations, and then the other one fails. */
static void crashed_between_operations(void **state)
{
	(void)state;
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    SIGNAL("2500.000", "6", "-6", FROM("2")) KILLED("2500.500", "6")),
		  BY("6"), "SIG6 was its own doing, by its thread x (7)");
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    SIGNAL("2500.000", "6", "-6", FROM("2")) KILLED("5000.000", "6")),
		  BY("6"), "SIG6 was its own doing, by its thread x (7), 2.5 ms before its end");
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    SIGNAL("2500.000", "11", "1", FROM("2")) KILLED("2500.500", "11")),
		  BY("11"), "SIG11: a fault of its thread x (7)");
	/* a handler has written where, and sent it again */
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"), SIGNAL("2500.000", "11", "1", FROM("2"))
							   SIGNAL("2500.400", "11", "-6", FROM("2"))
								   KILLED("2500.500", "11")),
		  BY("11"), "SIG11: a fault of its thread x (7)");
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"), HANDLED("2500.000", "11", "1", FROM("2"))
							   SIGNAL("2500.400", "11", "-6", FROM("2"))
								   KILLED("2500.500", "11")),
		  BY("11"), "SIG11: a fault of its thread x (7)");
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    SIGNAL("2500.000", "9", "128", "") "{\"recordType\":\"footer\",\"end\":"
							       "\"signal 9\",\"oom\":true}\n"),
		  BY("9"), "the kernel killed it to get memory back (out of memory)");
}

/* Somebody ends a job: another process, a terminal, a container; or a rank that ended first. Or nobody knows, as in older traces. */
static void ended_otherwise(void **state)
{
	(void)state;
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    SIGNAL("2500.000", "9", "0", FROM("77")) KILLED("2500.500", "9")),
		  NULL, NULL);
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    SIGNAL("2500.000", "2", "128", "") KILLED("2500.500", "2")),
		  NULL, NULL);
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"), SIGNAL("2500.000", "2", "128", "")
							   SIGNAL("2600.000", "2", "-6", FROM("2"))
								   KILLED("2600.500", "2")),
		  NULL, NULL);
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    SIGNAL("2500.000", "9", "128", ENDING("77")) KILLED("2500.500", "9")),
		  NULL, NULL);
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"), KILLED("2500.500", "6")), NULL, NULL);
	/* asked to end, it aborts as it cleans up */
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    "{\"recordType\":\"signal\",\"ts\":2400.000,\"signal\":\"SIGTERM\","
			    "\"nr\":15,\"code\":0,"
			    "\"handled\":true" FROM("77") "}\n" SIGNAL(
				    "2500.000", "6", "-6", FROM("2")) KILLED("2500.500", "6")),
		  NULL, NULL);
	/* the other one had been ended before */
	MUST_TELL(TWO_RANKS(SIGNAL("2400.000", "9", "0", FROM("77")) KILLED("2400.000", "9"),
			    SIGNAL("2500.000", "6", "-6", FROM("2")) KILLED("2500.500", "6")),
		  NULL, NULL);
}

#define IN_THIS                                                                                    \
	"{\"recordType\":\"flow\",\"ts\":2400.000,\"flow\":\"10.0.0.1:1>10.0.0.2:2\","             \
	"\"why\":\"reset-in\",\"peerPid\":"

#define GONE(us) "{\"recordType\":\"thread\",\"tid\":9,\"stop\":" us "}\n"

/* A process exits with an error status, and then the others fail, however that is. */
#define RESET(us)                                                                                  \
	"{\"recordType\":\"flow\",\"ts\":" us                                                      \
	",\"flow\":\"10.0.0.1:1>10.0.0.2:2\",\"why\":\"reset-in\"}\n"

static void exited_between_operations(void **state)
{
	static const char first[] = "it was the first of 2 processes to fail, within 500.0 us, and "
				    "no operation was seen under way",
			  status[] = "its process had exited with status 1";

	(void)state;
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"), FAILED_AT("2500.000")), first, status);
	MUST_TELL(TWO_RANKS(SIGNAL("3000.000", "6", "-6", FROM("1")) KILLED("3000.500", "6"),
			    FAILED_AT("2500.000")),
		  first, status);
	MUST_TELL(TWO_RANKS(SIGNAL("3000.000", "15", "0", FROM("77")) KILLED("3000.500", "15"),
			    FAILED_AT("2500.000")),
		  first, status);
	/* its connections may outlive it, as the kernel still sends what is left */
	MUST_TELL(TWO_RANKS(GONE("3000.000") FAILED_AT("3001.000"),
			    GONE("2500.000") FAILED_AT("3002.000")),
		  first, status);
	/* as it exits its connections break */
	MUST_TELL(TWO_RANKS(IN_THIS "2}\n" FAILED_AT("3000.000"), FAILED_AT("2500.000")), first,
		  status);
	/* those of another node tell of no process that reset them, but it was before */
	MUST_TELL(TWO_RANKS(RESET("2600.000") FAILED_AT("3000.000"), FAILED_AT("2500.000")), first,
		  status);
	/* the others have nothing to do with it */
	MUST_TELL(TWO_RANKS("", FAILED_AT("2500.000")), NULL, NULL);
	MUST_TELL(TWO_RANKS(FAILED_AT("9000000.000"), FAILED_AT("2500.000")), NULL, NULL);
	/* it was asked to end */
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"),
			    "{\"recordType\":\"signal\",\"ts\":2400.000,\"signal\":\"SIGTERM\","
			    "\"nr\":15,\"code\":0,"
			    "\"handled\":true" FROM("77") "}\n" FAILED_AT("2500.000")),
		  NULL, NULL);
}

/* What a reset and a crash are told by is which came first. */
static void crash_or_reset(void **state)
{
	static const char after[] =
		TWO_RANKS(RESET("2600.000") FAILED_AT("3000.000"),
			  SIGNAL("2500.000", "11", "1", FROM("2")) KILLED("2500.500", "11")),
			  before[] = TWO_RANKS(RESET("2400.000") FAILED_AT("3000.000"),
					       SIGNAL("2500.000", "6", "-6", FROM("2"))
						       KILLED("2500.500", "6"));
	struct report_find **finds;
	struct report r;
	uint32_t n;

	(void)state;
	MUST_TELL(after, BY("11"), "SIG11: a fault of its thread x (7)");
	read_text(&r, before, sizeof(before) - 1);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_RESET);
	free(finds);
	report_free(&r);
}

/* Somebody ends the job, and its processes' connections break as one after the other dies. */
static void killed_then_reset(void **state)
{
#define KILLED_BY_OTHER                                                                            \
	SIGNAL("2500.000", "15", "0", FROM("77")) RESET("2500.800") KILLED("2501.000", "15")
#define ASKED                                                                                      \
	"{\"recordType\":\"signal\",\"ts\":2500.000,\"signal\":\"SIGTERM\",\"nr\":15,"             \
	"\"code\":0,\"handled\":true" FROM("77") "}\n"
	(void)state;
	MUST_TELL(TWO_RANKS(KILLED_BY_OTHER, KILLED_BY_OTHER), NULL, NULL);
	MUST_TELL(TWO_RANKS(ASKED RESET("2500.800") FAILED_AT("3000.000"), KILLED_BY_OTHER), NULL,
		  NULL);
}

#define OTHER_RESET(us)                                                                            \
	"{\"recordType\":\"flow\",\"ts\":" us                                                      \
	",\"flow\":\"10.0.0.1:3>10.0.0.2:4\",\"why\":\"reset-in\"}\n"
#define UNFINISHED(rank, seq, start) UNFINISHED_OF("0xabc", rank, seq, start)
#define UNFINISHED_OF(comm, rank, seq, start)                                                      \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"" comm              \
	"\",\"rank\":" rank ",\"start\":{\"ts\":" start                                            \
	",\"pid\":1,\"tid\":1},\"unfinished\":true,\"eventAddr\":\"0x1" seq                        \
	"\",\"details\":{\"func\":\"AllReduce\",\"seq\":" seq                                      \
	",\"algo\":\"RING\",\"proto\":\"SIMPLE\",\"count\":1024,\"dtype\":\"ncclFloat32\"}}\n"

/* That the only finding is a reset of that flow; NULL: that there is none. */
static void must_be_reset(const char *text, size_t len, const char *flow, uint64_t hung)
{
	struct report_find **finds;
	struct report r;
	uint32_t n;

	read_text(&r, text, len);
	finds = report_findings(&r, &n);
	assert_int_equal(n, flow != NULL);
	if (flow) {
		assert_int_equal(finds[0]->key.code, CODE_RESET);
		assert_int_equal(finds[0]->hung, hung);
		assert_string_equal(names__text(r.names, finds[0]->key.culprit), flow);
	}
	free(finds);
	report_free(&r);
}

#define MUST_BE_RESET(text, flow, hung) must_be_reset(text, sizeof(text) - 1, flow, hung)

/* Any connection may be reset, and the job goes on; later ones count all the same. */
static void a_harmless_reset(void **state)
{
	(void)state;
	MUST_BE_RESET(TWO_RANKS(OTHER_RESET("500.000") FAILED_AT("9000000.000"), ""), NULL, 0);
	MUST_BE_RESET(TWO_RANKS(OTHER_RESET("500.000") FAILED_AT("3000000.000"), ""),
		      "10.0.0.1:3>10.0.0.2:4", 0);
	MUST_BE_RESET(TWO_RANKS(OTHER_RESET("2500.000") FAILED_AT("9000000.000"), ""),
		      "10.0.0.1:3>10.0.0.2:4", 0);
	MUST_BE_RESET(TWO_RANKS(OTHER_RESET("500.000") RESET("2500.000") OTHER_RESET("2600.000")
					FAILED_AT("9000000.000"),
				""),
		      "10.0.0.1:1>10.0.0.2:2", 0);
	/* an operation that the end of the recording cuts off does not hang for it */
	MUST_BE_RESET(HEADER("1") OTHER_RESET("500.000") COLL("0", "1", "1000.000", "2000.000")
			      SIGNAL("5000.000", "18", "0", "") UNFINISHED("0", "2", "3000.000"),
		      NULL, 0);
	MUST_BE_RESET(HEADER("1") OTHER_RESET("500.000") COLL("0", "1", "1000.000", "2000.000")
			      RESET("4000.000") SIGNAL("5000.000", "18", "0", "")
				      UNFINISHED("0", "2", "3000.000"),
		      "10.0.0.1:1>10.0.0.2:2", 1);
}

/* Of another job two processes, of which the second one ends so, with the other one. */
#define OTHER_ENDS(end)                                                                            \
	HEADER("5")                                                                                \
	COLL_OF("0xdef", "0", "1", "1000.000", "2000.000")                                         \
	end HEADER("6") COLL_OF("0xdef", "1", "1", "1000.000", "2000.000") end
#define CANCELLED OTHER_ENDS(SIGNAL("2200.000", "15", "0", FROM("77")) KILLED("2200.500", "15"))
#define CRASHES	  SIGNAL("2500.000", "6", "-6", FROM("2")) KILLED("2500.500", "6")

/* Of two jobs the first verdict, and one that is of who failed, of a process of rank 1. */
static void must_tell_both(const char *text, size_t len, enum report_code code, uint64_t hung,
			   const char *of_failed)
{
	struct report_find **finds;
	struct report r;
	uint32_t n, i;

	read_text(&r, text, len);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 2);
	i = finds[0]->key.code != code;
	assert_int_equal(finds[i]->key.code, code);
	assert_int_equal(finds[i]->hung, hung);
	assert_int_equal(finds[!i]->key.code, CODE_MISSING);
	assert_int_equal(finds[!i]->hung, 0);
	assert_int_equal(finds[!i]->who->rank, 1);
	assert_string_equal(finds[!i]->evidence[0], of_failed);
	free(finds);
	report_free(&r);
}

#define MUST_TELL_BOTH(text, code, hung, of_failed)                                                \
	must_tell_both(text, sizeof(text) - 1, code, hung, of_failed)

/* How a job fails has nothing to do with how another one ended, or that it hangs. */
static void failed_beside_another_job(void **state)
{
	static const char first[] = "it was the first of 2 processes to fail, within 500.0 us, and "
				    "no operation was seen under way";

	(void)state;
	MUST_TELL(CANCELLED TWO_RANKS(FAILED_AT("3000.000"), CRASHES), BY("6"),
		  "SIG6 was its own doing, by its thread x (7)");
	/* one of which no communicator is known may be of it, whichever comes first */
	MUST_TELL(HEADER("9") FAILED_AT("2400.000") TWO_RANKS(FAILED_AT("3000.000"), CRASHES), NULL,
		  NULL);
	MUST_TELL(TWO_RANKS(FAILED_AT("3000.000"), CRASHES) HEADER("9") FAILED_AT("2400.000"), NULL,
		  NULL);
	MUST_BE_RESET(CANCELLED TWO_RANKS(OTHER_RESET("500.000") FAILED_AT("9000000.000"), ""),
		      NULL, 0);
	MUST_BE_RESET(CANCELLED HEADER("1") OTHER_RESET("2500.000")
			      COLL("0", "1", "3000.000", "4000.000") FAILED_AT("9000000.000"),
		      NULL, 0);
	/* the other job fails of a reset, or hangs for it */
#define OTHER_FAILS OTHER_ENDS(RESET("2300.000") FAILED_AT("2350.000"))
#define OTHER_HANGS                                                                                \
	HEADER("5")                                                                                \
	OTHER_RESET("500.000")                                                                     \
	COLL_OF("0xdef", "0", "1", "1000.000", "2000.000")                                         \
	RESET("4000.000")                                                                          \
	SIGNAL("5000.000", "18", "0", "") UNFINISHED_OF("0xdef", "0", "2", "3000.000")
	MUST_TELL_BOTH(OTHER_FAILS TWO_RANKS(FAILED_AT("3000.000"), CRASHES), CODE_RESET, 0,
		       BY("6"));
	MUST_TELL_BOTH(OTHER_FAILS TWO_RANKS(FAILED_AT("3000.000"), FAILED_AT("2500.000")),
		       CODE_RESET, 0, first);
	MUST_TELL_BOTH(OTHER_HANGS TWO_RANKS(FAILED_AT("3000.000"), CRASHES), CODE_RESET, 1,
		       BY("6"));
	MUST_TELL_BOTH(OTHER_HANGS TWO_RANKS(FAILED_AT("3000.000"), FAILED_AT("2500.000")),
		       CODE_RESET, 1, first);
	/* nor when it fails itself, of what it hangs for */
	MUST_BE_RESET(HEADER("1") COLL("0", "1", "1000.000", "2000.000") RESET("4000.000")
			      SIGNAL("5000.000", "18", "0", "") UNFINISHED("0", "2", "3000.000")
				      FAILED HEADER("2") COLL("1", "1", "1000.000", "2000.000")
					      RESET("4500.000") FAILED_AT("5000.000"),
		      "10.0.0.1:1>10.0.0.2:2", 1);
}

/* With an operation under way: the launcher ends who waits in it, or a watchdog of its own does. */
#define OTHER_JOB                                                                                  \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"0xdef\",\"rank\":"  \
	"0,"                                                                                       \
	"\"start\":{\"ts\":1000.000},\"stop\":{\"ts\":2000.000},\"eventAddr\":\"0x77\","           \
	"\"details\":{\"func\":\"AllReduce\",\"seq\":1}}\n"

static void exited_with_others_under_way(void **state)
{
#define WAITS(signal, nr)                                                                          \
	HEADER("1")                                                                                \
	COLL("0", "1", "1000.000", "2000.000")                                                     \
	signal SIGNAL("9500.000", "18", "0", "") UNFINISHED("0", "2", "3000.000") FOOTER(nr)       \
		HEADER("2") COLL("1", "1", "1000.000", "2000.000") FAILED_AT("9200.000")
	(void)state;
	MUST_TELL(WAITS(SIGNAL("9400.000", "15", "0", FROM("77")), "15"),
		  "its process exited; the others are waiting for it",
		  "its process had exited with status 1");
	MUST_TELL(WAITS(SIGNAL("9400.000", "6", "-6", FROM("1")), "6"),
		  "its process exited; the others are waiting for it",
		  "its process had exited with status 1");
	/* not for a process of another job */
	MUST_TELL(WAITS(SIGNAL("9400.000", "9", "0", FROM("77")), "9") HEADER("3")
			  OTHER_JOB FAILED_AT("9100.000"),
		  "its process exited; the others are waiting for it",
		  "its process had exited with status 1");
}

/* The third line of evidence of the only verdict. */
static void must_tell_third(const char *text, size_t len, const char *third)
{
	struct report_find **finds;
	struct report r;
	uint32_t n;

	read_text(&r, text, len);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_MISSING);
	assert_string_equal(finds[0]->evidence[2], third);
	free(finds);
	report_free(&r);
}

#define MUST_TELL_THIRD(text, third) must_tell_third(text, sizeof(text) - 1, third)
#define RESET_OUT(us)                                                                              \
	"{\"recordType\":\"flow\",\"ts\":" us                                                      \
	",\"flow\":\"10.0.0.1:1>10.0.0.2:2\",\"why\":\"reset-out\",\"peerPid\":1}\n"

/* A rank exits as a connection of it was reset: that it exited is the verdict, and the reset is told. */
static void exited_after_a_reset(void **state)
{
	(void)state;
	MUST_TELL_THIRD(TWO_RANKS(IN_THIS "2}\n" FAILED_AT("3000.000"),
				  RESET_OUT("2400.000") FAILED_AT("2500.000")),
			"100.0 us before its end, its connection to rank 0 was reset, by itself");
	MUST_TELL_THIRD(HEADER("1") COLL("0", "1", "1000.000", "2000.000")
				SIGNAL("9500.000", "6", "-6", FROM("1"))
					UNFINISHED("0", "2", "3000.000") FOOTER("6") HEADER("2")
						COLL("1", "1", "1000.000", "2000.000")
							RESET_OUT("8200.000") FAILED_AT("9200.000"),
			"1.0 ms before its end, its connection to rank 0 was reset, by itself");
	/* as it ended */
	MUST_TELL_THIRD(TWO_RANKS(IN_THIS "2}\n" FAILED_AT("3000.000"),
				  GONE("2500.000") RESET_OUT("2501.000") FAILED_AT("2502.000")),
			"");
}

#define RECV_OP(more)                                                                              \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"parentObj\":\"0x12\","        \
	"\"eventAddr\":\"0x2\",\"start\":{\"ts\":1000.000},\"details\":{\"peer\":1,\"isSend\":"    \
	"false}"                                                                                   \
	"," more "}\n"
#define RECV_STEP(addr, more)                                                                      \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyStep\",\"parentObj\":\"0x2\","       \
	"\"eventAddr\":\"" addr "\",\"start\":{\"ts\":1000.000}," more "}\n"
#define RECV_WAIT(addr, us)                                                                        \
	"{\"recordType\":\"state\",\"eventAddr\":\"" addr "\",\"ts\":" us ",\"id\":10}\n"
#define STILL(type, parent, addr, us)                                                              \
	"{\"recordType\":\"open\",\"eventType\":\"ncclProfile" type "\",\"commHash\":\"0xabc\","   \
	"\"rank\":0,\"start\":{\"ts\":1000.000},\"ts\":" us ",\"quiet\":1500000.000,"              \
	"\"parentObj\":\"" parent "\",\"eventAddr\":\"" addr                                       \
	"\",\"details\":{\"func\":\"AllReduce\",\"seq\":2,\"peer\":1,\"isSend\":false}}\n"
#define STILL_ALL(us)                                                                              \
	STILL("Coll", "0x0", "0x12", us)                                                           \
	STILL("ProxyOp", "0x12", "0x2", us)                                                        \
	STILL("ProxyStep", "0x2", "0x3", us) STILL("ProxyStep", "0x2", "0x4", us)
#define STILL_OP                                                                                   \
	RECV_WAIT("0x3", "751000.000")                                                             \
	STILL("ProxyOp", "0x12", "0x2", "1501000.000")                                             \
	STILL("ProxyStep", "0x2", "0x3", "1501000.000")
#define RECV_ENDS_LATER                                                                            \
	RECV_WAIT("0x3", "201000.000")                                                             \
	STILL_ALL("2001000.000")                                                                   \
	RECV_STEP("0x3", "\"stop\":{\"ts\":2101000.000}")                                          \
	RECV_OP("\"stop\":{\"ts\":2101000.000}")
#define SEND_OPEN                                                                                  \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"parentObj\":\"0x12\","        \
	"\"eventAddr\":\"0x5\",\"start\":{\"ts\":1000.000},\"details\":{\"peer\":1,\"isSend\":"    \
	"true},\"stop\":null,\"unfinished\":true}\n"
#define COLL_OPEN                                                                                  \
	"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"0xabc\","           \
	"\"rank\":0,\"start\":{\"ts\":1000.000},\"stop\":null,\"unfinished\":true,"                \
	"\"eventAddr\":\"0x12\",\"details\":{\"func\":\"AllReduce\",\"seq\":2}}\n"

/* For how long its only rank waits, by the table and by the map. */
static void must_wait(const char *text, size_t len, int64_t ns)
{
	struct report r;
	double whole;

	read_text(&r, text, len);
	assert_int_equal(r.procs->wait_peer, ns);
	whole = (double)ns / (double)r.procs->op_ns;
	assert_true(report_heat_cell(&r, 0, 0) > whole - 0.01);
	assert_true(report_heat_cell(&r, 0, 0) < whole + 0.01);
	report_free(&r);
}

#define MUST_WAIT(text, ns) must_wait(text, sizeof(text) - 1, ns)

/* noData ends when data comes: of what never ended, the steps that are in RecvWait tell of the rest. */
static void waits_of_what_hangs(void **state)
{
	(void)state;
	/* a signal ended its process: 0.5 ms before, and from 2 ms to 11 ms; steps are posted ahead, and wait at the same time */
	MUST_WAIT(HEADER("1") RECV_WAIT("0x3", "2000.000") RECV_WAIT("0x4", "2500.000") SIGNAL(
			  "11000.000", "9", "0", FROM("77")) UNFINISHED("0", "2", "1000.000")
			  RECV_OP("\"unfinished\":true,\"net\":{\"flow\":\"a\",\"noData\":500.000}")
				  RECV_STEP("0x3", "\"unfinished\":true")
					  RECV_STEP("0x4", "\"unfinished\":true") FOOTER("9"),
		  19 * MS / 2);
	/* it has been told of as open, twice; what comes at the end tells the same again */
	MUST_WAIT(HEADER("1") RECV_WAIT("0x3", "201000.000") RECV_WAIT("0x4", "201000.000")
			  STILL_ALL("1501000.000") STILL_ALL("2001000.000")
				  UNFINISHED("0", "2", "1000.000") RECV_OP("\"unfinished\":true")
					  RECV_STEP("0x3", "\"unfinished\":true")
						  RECV_STEP("0x4", "\"unfinished\":true")
							  FOOTER("x"),
		  1800 * MS);
	/* its recording breaks off */
	MUST_WAIT(HEADER("1") RECV_WAIT("0x3", "201000.000") STILL_ALL("2001000.000"), 1800 * MS);
	/* and its ProxyOp had been told of before: half of its time; three quarters, as it is told again; what has ended counts once */
	MUST_WAIT(HEADER("1") STILL_OP STILL("Coll", "0x0", "0x12", "3001000.000"), 1500 * MS);
	MUST_WAIT(HEADER("1") STILL_OP STILL_ALL("3001000.000"), 2250 * MS);
	MUST_WAIT(HEADER("1") STILL_OP RECV_STEP("0x3", "\"stop\":{\"ts\":2001000.000}")
			  RECV_OP("\"stop\":{\"ts\":2001000.000}")
				  STILL("Coll", "0x0", "0x12", "3001000.000"),
		  1875 * MS);
	/* it ended after its operation was told as open, which may come to an end or be told again no more */
	MUST_WAIT(HEADER("1") RECV_ENDS_LATER, 1900 * MS);
	MUST_WAIT(HEADER("1") RECV_ENDS_LATER SEND_OPEN COLL_OPEN,
		  1900 * MS * 20 / 21); /* up to when it was told */
	/* where no connection tells, as over RDMA, RecvWait counts for what has ended as well */
	MUST_WAIT(HEADER("1") RECV_WAIT("0x3", "3000.000")
			  RECV_STEP("0x3", "\"stop\":{\"ts\":9000.000}")
				  RECV_OP("\"stop\":{\"ts\":11000.000}")
					  COLL("0", "2", "1000.000", "11000.000"),
		  6 * MS);
	/* and where one does, it does not: who is busy is in that, too */
	MUST_WAIT(HEADER("1") RECV_WAIT("0x3", "3000.000") RECV_STEP("0x3",
								     "\"stop\":{\"ts\":9000.000}")
			  RECV_OP("\"stop\":{\"ts\":11000.000},\"net\":{\"flow\":\"a\",\"noData\":"
				  "1000.000}") COLL("0", "2", "1000.000", "11000.000"),
		  1 * MS);
}

#define LOST(n) "{\"recordType\":\"lost\",\"ts\":2000.000,\"cause\":\"write-error\",\"n\":" n "}\n"

static void must_say(const char *text, size_t len, const char *says)
{
	struct report r;
	char *said;

	read_text(&r, text, len);
	said = text_of(&r);
	assert_non_null(strstr(said, says));
	free(said);
	report_free(&r);
}

#define MUST_SAY(text, says) must_say(text, sizeof(text) - 1, says)

/* Where much was lost, that nothing stands out is no answer. */
static void nothing_in_what_is_left(void **state)
{
	(void)state;
	MUST_SAY(HEADER("1") COLL("0", "1", "1000.000", "2000.000"),
		 "\nWhy it was slow: nothing stands out\n");
	MUST_SAY(HEADER("1") COLL("0", "1", "1000.000", "2000.000") LOST("27"),
		 "\nWhy it was slow: cannot tell, as 90 % of the records were lost\n");
	/* what the kernel told of threads and flows is in no line of its own */
	MUST_SAY(HEADER("1") COLL("0", "1", "1000.000",
				  "2000.000") "{\"recordType\":\"lost\",\"ts\":2000.000,\"cause\":"
					      "\"context-ring-full\","
					      "\"n\":27}\n",
		 "\nWhy it was slow: nothing stands out\n");
	MUST_SAY(HEADER("1") LOST("38"),
		 "\nNo operation began or ended in what is left: 95 % of the records were lost\n");
}

/* Of slow networks, too, they have figures. */
static void bandwidths_have_figures(void **state)
{
	(void)state;
	MUST_SAY(HEADER("1") COLL("0", "1", "1000.000", "2000.000")
			 COLL("1", "1", "1000.000", "2000.000"),
		 "  0.00410  0.00410 ");
}

/* Of an end, as it is told beside other verdicts. */
static void senders(void **state)
{
	static const struct {
		const char *what, *says;
	} all[] = {
		{SIGNAL("2500.000", "9", "0", FROM("77")) KILLED("2500.500", "9"),
		 "SIG9 was sent by x[77], user 1000"},
		{SIGNAL("2500.000", "9", "128", ENDING("77")) KILLED("2500.500", "9"),
		 "SIG9 came as the first process of its container ended: x[77]"},
		{SIGNAL("2500.000", "15", "0", ENDING("77")) KILLED("2500.500", "15"),
		 "SIG15 came as x[77] ended"},
		{SIGNAL("2500.000", "2", "128", "") KILLED("2500.500", "2"),
		 "SIG2 came from the kernel itself, not from a process"},
		/* who sent it first counts, if that was not long ago; another number does not, nor one that stops */
		{SIGNAL("2500.000", "15", "0", FROM("77")) SIGNAL("2600.000", "15", "-6", FROM("2"))
			 KILLED("2600.500", "15"),
		 "SIG15 was sent by x[77], user 1000"},
		{SIGNAL("2500.000", "15", "0", FROM("77"))
			 SIGNAL("40002600.000", "15", "-6", FROM("2")) KILLED("40002600.500", "15"),
		 "SIG15 was its own doing, by its thread x (7)"},
		{SIGNAL("2500.000", "1", "0", FROM("77")) SIGNAL("2550.000", "19", "0", FROM("77"))
			 SIGNAL("2600.000", "15", "-6", FROM("2")) KILLED("2600.500", "15"),
		 "SIG15 was its own doing, by its thread x (7)"},
		/* many of another number do not make it forget */
		{SIGNAL("2500.000", "15", "0", FROM("77")) SIGNAL("2501.000", "10", "0", FROM("8"))
			 SIGNAL("2502.000", "10", "0", FROM("8")) SIGNAL("2503.000", "10", "0",
									 FROM("8"))
				 SIGNAL("2504.000", "10", "0", FROM("8")) SIGNAL("2505.000", "10",
										 "0", FROM("8"))
					 SIGNAL("2506.000", "10", "0",
						FROM("8")) SIGNAL("2507.000", "10", "0", FROM("8"))
						 SIGNAL("2508.000", "10", "0", FROM("8"))
							 SIGNAL("2509.000", "15", "-6", FROM("2"))
								 KILLED("2509.500", "15"),
		 "SIG15 was sent by x[77], user 1000"},
		/* it was dying when memory ran out */
		{SIGNAL("2500.000", "9", "0", FROM("77")) "{\"recordType\":\"footer\",\"end\":"
							  "\"signal 9\",\"oom\":true}\n",
		 "SIG9 was sent by x[77], user 1000"},
		{KILLED("2500.500", "9"), ""},
		{FAILED, "its process had exited with status 1"},
		{"{\"recordType\":\"signal\",\"ts\":2400.000,\"signal\":\"SIGTERM\",\"nr\":15,"
		 "\"code\":0,\"handled\":true" FROM("77") "}\n" FAILED,
		 "its process had exited with status 1; SIGTERM was sent by x[77], user 1000"},
	};
	char text[8192], told[160];
	struct report r;
	size_t i;
	int len;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		len = snprintf(text, sizeof(text), "%s%s",
			       HEADER("2") COLL("1", "1", "1000.000", "2000.000"), all[i].what);
		read_text(&r, text, (size_t)len);
		*told = 0;
		report_tell_end(r.procs, r.names, told, sizeof(told));
		assert_string_equal(told, all[i].says);
		report_free(&r);
	}
}

/* A job that did nothing, and that somebody ended: who that was, and what each was in before. In a window after one that it was in as well. */
static void ended_while_nothing_moved(void **state)
{
#define WINDOW(mask)                                                                               \
	"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":3,"       \
	"\"hostPid\":3,\"comm\":\"job\",\"mask\":" mask "}\n" INIT("0")
	static const char first[] = WINDOW("1")
		THREAD("3", "") "{\"recordType\":\"footer\",\"end\":\"loader-stopped\"}\n";
	static const char second[] = WINDOW("2") THREAD("3", ASLEEP("1000000.000", "futex"))
		SIGNAL("8999999.900", "9", "0", FROM("77")) KILLED("9000000.000", "9");
	static const char other[] = HEADER("4") INIT("1") THREAD("4", "") FAILED;
	char text[sizeof(first) + sizeof(second) + sizeof(other)];
	char *said = NULL;
	struct report r;
	size_t len;
	FILE *f;

	(void)state;
	snprintf(text, sizeof(text), "%s%s%s", first, second, other);
	read_text(&r, text, strlen(text));
	said = text_of(&r);
	assert_non_null(strstr(said, "\n0     job[3]                    > 8.00 s   futex; it "
				     "ended: signal 9; SIG9 was sent by x[77], user 1000\n"));
	assert_non_null(strstr(said, "it ended: exit; its process had exited with status 1\n"));
	free(said);
	f = open_memstream(&said, &len);
	assert_non_null(f);
	assert_int_equal(report_json(&r, f), 0);
	fclose(f);
	assert_non_null(strstr(
		said, "\"end\": \"signal 9\",\n   \"how\": \"SIG9 was sent by x[77], user 1000\""));
	assert_non_null(strstr(said, "\"in\": \"futex\""));
	free(said);
	report_free(&r);
}

#define LOGGED(us, text)                                                                           \
	"{\"recordType\":\"kmsg\",\"ts\":" us ",\"level\":3,\"sign\":\"gpu\",\"text\":\"" text     \
	"\"}\n"

#define STUCK(tid) "INFO: task a:1:" tid " blocked for more than 120 seconds."

static bool logged(const struct report *r, uint32_t i, const char *text, int32_t rank,
		   int64_t after)
{
	const struct report_kmsg *k = r->kmsg;

	for (; k && i; i--)
		k = k->hh.next;
	return k && !strcmp(k->text, text) && (k->proc ? k->proc->rank : -1) == rank &&
	       k->after == after;
}

/* Lines of the kernel's log are of the node: all its processes have them, and each is told once, with the rank that it names. */
static void kernels_log(void **state)
{
	static const char text[] = HEADER("1") LOGGED("1500.000", "Xid 31, pid=2, name=job")
		LOGGED("400.000", "pid=22, pid=3") COLL("1", "1", "1000.000", "2000.000") SIGNAL(
			"2500.000", "11", "1", FROM("1")) KILLED("2500.500", "11") HEADER("2")
			LOGGED("1500.000", "Xid 31, pid=2, name=job")
				LOGGED("1600.000", "watchdog: CPU#2 1 of 2 [a[1:x:2]:1]") LOGGED(
					"1700.000", STUCK("55"))
					LOGGED("1701.000",
					       STUCK("5")) "{\"recordType\":\"thread\",\"tid\":5,"
							   "\"hostTid\":55}\n" COLL(
								   "0", "1", "1000.000", "2000.000")
								   FAILED_AT("3000.000");
	struct report_find **finds;
	char *said = NULL;
	struct report r;
	size_t len;
	uint32_t n;
	FILE *f = open_memstream(&said, &len);

	(void)state;
	assert_non_null(f);
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(HASH_COUNT(r.kmsg), 5);
	assert_true(logged(&r, 3, STUCK("55"), 0, 700000));
	assert_true(logged(&r, 4, STUCK("5"), -1, 701000)); /* the node calls it otherwise */
	assert_true(logged(&r, 0, "pid=22, pid=3", -1, -600000));
	assert_true(logged(&r, 1, "Xid 31, pid=2, name=job", 0, 500000));
	assert_true(logged(&r, 2, "watchdog: CPU#2 1 of 2 [a[1:x:2]:1]", 1, 600000));
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->who->rank, 1);
	free(finds);
	report_text(&r, f);
	fclose(f);
	assert_non_null(strstr(said, "\n     kernel's log: watchdog: CPU#2"));
	assert_non_null(strstr(said, "\nFrom the kernel's log: 5 lines that may tell why\n"));
	assert_non_null(strstr(said, "-0.001  gpu        pid=22, pid=3\n"));
	assert_non_null(strstr(said, "+0.001  gpu        Xid 31, pid=2, name=job (rank 0)\n"));
	free(said);
	report_free(&r);
}

#define SIGBUS_TO(task)                                                                            \
	"Memory failure: 0x12: Sending SIGBUS to " task " due to hardware memory corruption"

/* Whom they name: a process, or as the node calls it a thread of one. */
static void kernels_log_names(void **state)
{
	static const struct {
		const char *text;
		int32_t rank;
	} all[] = {
		{STUCK("55"), 0},
		{"INFO: task a:55 blocked in I/O wait for more than 120 seconds.", 0},
		{"INFO: task a:55 blocked on 2 for more than 120 seconds.", -1},
		{SIGBUS_TO("a:1:55"), 0},
		{SIGBUS_TO("a:1"), 0},
		{SIGBUS_TO("a:5"), -1},
		{"Sending SIGBUS to a:55 due to hardware memory corruption", -1},
		{"mlx5_core 0000:17:00.0: wait_func:1195:(pid 55): timeout", 0},
		{"mlx5_core 0000:17:00.0: wait_func:1195:(pid 1): timeout", 0},
		{"mlx5_core 0000:17:00.0: wait_func:1195:(pid 5): timeout", -1},
		{"mlx5_core 0000:17:00.0: wait_func_handle_exec_timeout:1104:(pid 55): cmd[22]", 0},
		{"mlx5_core 0000:17:00.0: mlx5_cmd_check:771:(pid 55): CREATE_QP(0x500) failed", 0},
		{"mlx5_core 0000:17:00.0: mlx5_cmd_out_err:835:(pid 55): CREATE_QP(0x500)", 0},
		{"mlx5_core 0000:17:00.0: wait_func:1195:(pid 55): CREATE_MKEY(0x200) timeout", 0},
		/* who was on that CPU when a timer, or the device, interrupted */
		{"mlx5_core 0000:17:00.0: mlx5_cmd_out_err:835:(pid 55): CREATE_MKEY(0x200)", -1},
		{"mlx5_core 0000:17:00.0: poll_health:694:(pid 55): Fatal error 3 detected", -1},
		{"mlx5_core 0000:17:00.0: print_health_info:432:(pid 1): assert_var[0] 0x0", -1},
		{"mlx5_core 0000:17:00.0: port_module:259:(pid 1): Port module event[error]", -1},
		{"Xid 31, pid=55, name=job", -1},
	};
	char text[1024];
	struct report r;
	int len;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		len = snprintf(text, sizeof(text),
			       HEADER("1") LOGGED("1500.000",
						  "%s") "{\"recordType\":\"thread\","
							"\"tid\":5,\"hostTid\":55}\n" COLL(
								"0", "1", "1000.000", "2000.000"),
			       all[i].text);
		read_text(&r, text, (size_t)len);
		assert_true(logged(&r, 0, all[i].text, all[i].rank, 500000));
		report_free(&r);
	}
}

#define GPU(us, more)                                                                              \
	"{\"recordType\":\"gpu\",\"ts\":" us "," more ",\"name\":\"H200\",\"util\":97}\n"
/* Five operations of 10 ms each, to which one rank comes 8 ms late. */
#define FIVE(rank, a, b, c, d, e)                                                                  \
	COLL(rank, "1", a, "20000.000")                                                            \
	COLL(rank, "2", b, "30000.000")                                                            \
	COLL(rank, "3", c, "40000.000")                                                            \
	COLL(rank, "4", d, "50000.000") COLL(rank, "5", e, "60000.000")
#define COMES_LATE(rank) FIVE(rank, "18000.000", "28000.000", "38000.000", "48000.000", "58000.000")
#define COMES_SOON(rank) FIVE(rank, "10000.000", "20001.000", "30001.000", "40001.000", "50001.000")
#define GPU_A		 "\"gpuUuid\":\"a\",\"index\":0,\"pci\":\"0000:3b:00.0\","
#define GPU_B		 "\"gpuUuid\":\"b\",\"index\":4,\"pci\":\"0000:5e:00.0\","
#define TWICE(what)	 GPU("9000.000", what) GPU("29000.000", what)
#define COUNTED		 "\"interval\":8000.000,"
#define BRAKED		 COUNTED "\"held\":{\"hwPowerBrakeSlowdown\":6000.000,\"syncBoost\":1.000}"
#define CAPPED		 COUNTED "\"held\":{\"swPowerCap\":8000.000}"
#define FREE		 COUNTED "\"held\":{}"
#define LESS(n, mhz)	 "in " n " of 5 of these its GPU 4 did less than its peers'" mhz
#define BRAKED_SAYS	 ", held down by hwPowerBrakeSlowdown for 75 % of the time"
#define CLOCK(mhz, mw)	 ",\"smClock\":" mhz ",\"power\":" mw

/* Why a rank is late may be its GPU: if that did less than its peers' then, by its clock or by what held it down. */
static void gpus_that_are_slow(void **state)
{
	static const struct {
		const char *late, *soon, *says; /* records of the two GPUs */
	} all[] = {
		{TWICE(GPU_B BRAKED ",\"smClock\":1230"), TWICE(GPU_A FREE ",\"smClock\":1980"),
		 LESS("5", " (1230 MHz, theirs 1980)") BRAKED_SAYS},
		{TWICE(GPU_B BRAKED), TWICE(GPU_A FREE), LESS("5", "") BRAKED_SAYS},
		/* by its clock alone, or with the power limit that does it, if it does not take more than they */
		{TWICE(GPU_B FREE CLOCK("1230", "300000")),
		 TWICE(GPU_A FREE CLOCK("1980", "300000")), LESS("5", " (1230 MHz, theirs 1980)")},
		{TWICE(GPU_B CAPPED CLOCK("1230", "300000")),
		 TWICE(GPU_A FREE CLOCK("1980", "350000")),
		 LESS("5",
		      " (1230 MHz, theirs 1980), held down by swPowerCap for 100 % of the time")},
		/* who works more than those that wait for it: that is why it is slow, and not the other way around */
		{TWICE(GPU_B CAPPED CLOCK("1700", "699000")),
		 TWICE(GPU_A FREE CLOCK("1980", "350000")), NULL},
		{TWICE(GPU_B CAPPED), TWICE(GPU_A FREE), NULL},
		{TWICE(GPU_B COUNTED "\"held\":{\"syncBoost\":8000.000}"), TWICE(GPU_A FREE), NULL},
		/* of several reasons the one that is trouble */
		{TWICE(GPU_B COUNTED
		       "\"held\":{\"swPowerCap\":8000.000,\"hwPowerBrakeSlowdown\":6000.000}"),
		 TWICE(GPU_A CAPPED), LESS("5", "") BRAKED_SAYS},
		{TWICE(GPU_B FREE ",\"smClock\":1230"), TWICE(GPU_A FREE ",\"smClock\":1980"),
		 NULL},
		/* one that had nothing to do */
		{TWICE(GPU_B "\"util\":0" CLOCK("345", "80000")),
		 TWICE(GPU_A FREE CLOCK("1980", "350000")), NULL},
		/* of some of them, the lesser part of them, or but one moment */
		{TWICE(GPU_B BRAKED) GPU("49000.000", GPU_B FREE), TWICE(GPU_A FREE),
		 LESS("3", "") BRAKED_SAYS},
		{TWICE(GPU_B BRAKED) GPU("39000.000", GPU_B FREE), TWICE(GPU_A FREE), NULL},
		{GPU("9000.000", GPU_B BRAKED), TWICE(GPU_A FREE), NULL},
		{GPU("9000.000", GPU_B "\"lost\":true"), "",
		 "its GPU 4 is lost: the driver could not reach it any more"},
		/* of two GPUs of a process whose is which is told by its events: here by none, but one is lost */
		{TWICE(GPU_B BRAKED) GPU("9000.000", GPU_A FREE), TWICE("\"gpuUuid\":\"c\"," FREE),
		 NULL},
		{GPU("9000.000", GPU_B "\"lost\":true") GPU("9000.000", GPU_A FREE), "",
		 "its process' GPU 4 is lost: the driver could not reach it any more"},
		{TWICE(GPU_B BRAKED) GPU("9000.000", GPU_A FREE) COMES_LATE("1,\"gpuUuid\":\"b\""),
		 TWICE("\"gpuUuid\":\"c\"," FREE), LESS("5", "") BRAKED_SAYS},
		{TWICE(GPU_B BRAKED) GPU("9000.000", GPU_A FREE) COMES_LATE("1,\"gpuUuid\":\"a\""),
		 TWICE("\"gpuUuid\":\"c\"," FREE), NULL},
		/* as its peers, or nothing tells of it, or of them, or of what is like it */
		{TWICE(GPU_B BRAKED), TWICE(GPU_A BRAKED), NULL},
		{TWICE(GPU_B FREE CLOCK("1900", "1")), TWICE(GPU_A FREE CLOCK("1980", "1")), NULL},
		{"", TWICE(GPU_A FREE), NULL},
		{TWICE(GPU_B BRAKED), "", NULL},
		{TWICE(GPU_A BRAKED), TWICE(GPU_A BRAKED), NULL},
		{TWICE(GPU_B BRAKED), TWICE(GPU_A FREE ",\"name\":\"B200\""), NULL},
	};
	struct report_find **finds;
	char text[16384], told[160];
	struct report r;
	uint32_t n, i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		n = (uint32_t)snprintf(text, sizeof(text), "%s%s%s%s", HEADER("1"), all[i].soon,
				       COMES_SOON("0") HEADER("2"), all[i].late);
		if (!strstr(all[i].late, "ncclProfileColl"))
			n += (uint32_t)snprintf(text + n, sizeof(text) - n, "%s", COMES_LATE("1"));
		read_text(&r, text, n);
		finds = report_findings(&r, &n);
		assert_true(n >= 1);
		assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
		assert_int_equal(report_tell_gpu(finds[0], told, sizeof(told)),
				 all[i].says != NULL);
		if (all[i].says)
			assert_string_equal(told, all[i].says);
		free(finds);
		report_free(&r);
	}
}

/* Of a later attempt of the job: on the same GPUs, for much longer than samples are kept. */
static void put_later_samples(FILE *f, uint32_t pid, const char *gpu, const char *clock)
{
	uint32_t i;

	fprintf(f, HEADER("%u"), pid, pid);
	for (i = 0; i < 2 * REPORT_GPU_SAMPLES; i++)
		fprintf(f, GPU("%u000000.000", "%s" COUNTED "\"held\":{}%s"), 1000 + i, gpu, clock);
}

/* What GPUs did in an attempt of which more is read later, as others of the job's are there as well, is not what they did in these. */
static void gpus_of_an_earlier_attempt(void **state)
{
	static const char soon[] =
		HEADER("1") TWICE(GPU_A FREE CLOCK("1980", "300000")) COMES_SOON("0"),
			  late[] = HEADER("2") TWICE(GPU_B FREE CLOCK("1230", "300000"))
				  COMES_LATE("1");
	struct report_find **finds;
	char told[160], *text;
	struct report r;
	uint32_t n, i;
	size_t len;
	FILE *f;

	(void)state;
	for (i = 0; i < 2; i++) {
		f = open_memstream(&text, &len);
		assert_non_null(f);
		if (i)
			fprintf(f, "%s%s", soon, late);
		put_later_samples(f, 3, GPU_A, CLOCK("1980", "300000"));
		put_later_samples(f, 4, GPU_B, CLOCK("1980", "300000"));
		if (!i)
			fprintf(f, "%s%s", soon, late);
		fclose(f);
		read_text(&r, text, len);
		free(text);
		finds = report_findings(&r, &n);
		assert_true(n >= 1);
		assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
		assert_true(report_tell_gpu(finds[0], told, sizeof(told)));
		assert_string_equal(told, LESS("5", " (1230 MHz, theirs 1980)"));
		free(finds);
		report_free(&r);
	}
}

/* A window's operations come before its first sample: the one before has told of what the GPU did then. */
static void gpus_of_the_window_before(void **state)
{
	static const char text[] = HEADER("1") TWICE(GPU_A FREE CLOCK("1980", "300000")) HEADER("2")
		TWICE(GPU_B FREE CLOCK("1230", "300000")) HEADER("1") COMES_SOON("0") HEADER("2")
			COMES_LATE("1");
	struct report_find **finds;
	char told[160];
	struct report r;
	uint32_t n;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_true(report_tell_gpu(finds[0], told, sizeof(told)));
	free(finds);
	report_free(&r);
}

/* Where there is little room, what recordings that have been read told is with the GPU only. */
static void gpus_of_many_recordings(void **state)
{
	struct report_proc *p = &procs[0];
	struct report_gpu *g;
	struct report r;
	uint32_t i;

	(void)state;
	memset(&r, 0, sizeof(r));
	assert_int_equal(report_init(&r), 0);
	*p = (struct report_proc){.self = p};
	g = report_gpu_of(&r, p, names__get(r.names, "a", 1));
	assert_non_null(g);
	for (i = 1; i <= 100; i++)
		report_gpu_add(&r, p, g, &(struct report_gpu_sample){.to = i * MS, .ns = MS});
	report_gpus_told(&r, p);
	assert_int_equal(p->gpus_told->past.n, 100);
	r.ngpus_told = 1000000; /* of others */
	report_gpus_told(&r, p);
	assert_null(p->gpus_told);
	assert_int_equal(r.ngpus_told, 999999);
	assert_int_equal(g->past.n, 100);
	assert_int_equal(g->past.at[36].to, 37 * MS);
	report_gpu_add(&r, p, g, &(struct report_gpu_sample){.to = 101 * MS, .ns = MS});
	assert_null(p->gpus_told);
	assert_int_equal(g->past.at[36].to, 101 * MS);
	/* one that tells of very many */
	r.ngpus_told = 0;
	for (i = 0; i < 100; i++) {
		char uuid[8];

		snprintf(uuid, sizeof(uuid), "g%u", i);
		g = report_gpu_of(&r, p, names__get(r.names, uuid, strlen(uuid)));
		report_gpu_add(&r, p, g, &(struct report_gpu_sample){.to = 101 * MS, .ns = MS});
		assert_int_equal(g->past.n, 1);
	}
	assert_int_equal(p->ngpus_told, 64);
	assert_int_equal(r.ngpus_told, 64);
	report_gpus_told_free(p); /* of this one, which r does not have */
	report_free(&r);
}

#define XID(bus, more) "NVRM: Xid (PCI:" bus "): 79, " more "GPU has fallen off the bus."
#define TWO_OF(gpu)                                                                                \
	GPU("1000.000", gpu COUNTED                                                                \
	    "\"held\":{\"hwThermalSlowdown\":400.000,\"syncBoost\":8000.000},\"smClock\":1000")    \
	GPU("2000.000", gpu COUNTED "\"errors\":{\"eccUncorrected\":3,\"eccCorrected\":4,"         \
				    "\"pcieReplay\":8},\"smClock\":1500")

/* Over the whole trace: what several processes tell of a GPU counts once; Xid lines are of who alone is on theirs, and was then. */
static void gpus_in_all(void **state)
{
	static const char text[] = HEADER("1") TWO_OF(GPU_A) LOGGED("500.000",
								    XID("0000:3b:00", ""))
		LOGGED("1500.000", XID("0000:3B:00", "")) LOGGED("1501.000", XID("0000:3c:00", ""))
			LOGGED("1502.000", XID("", "")) LOGGED("1503.000", XID("0000:5e:00", ""))
				LOGGED("1504.000", XID("0000:3b:00", "pid=77, "))
					COLL("0", "1", "1000.000", "2000.000") HEADER("2")
						TWO_OF(GPU_B) COLL("1", "1", "1000.000", "2000.000")
							HEADER("3") TWO_OF(GPU_B) COLL(
								"2", "1", "1000.000", "2000.000");
	const struct report_gpu *g;
	char trouble[160];
	struct report r;
	int i;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(HASH_COUNT(r.gpus), 2);
	for (g = r.gpus, i = 0; i < 2; g = g->hh.next, i++) {
		assert_int_equal(g->index, i ? 4 : 0);
		assert_int_equal(g->time, 16000000);
		assert_int_equal(g->held[GPU_HELD_SYNC_BOOST - GPU_HELD_FIRST], 8000000);
		assert_int_equal(g->errors[GPU_ECC_UNCORRECTED - GPU_ERROR_FIRST], 3);
		assert_int_equal(report_gpu_clock(g), 1250);
		assert_int_equal(report_gpu_rank(g), i ? -1 : 0);
		assert_true(report_gpu_trouble(g, trouble, sizeof(trouble)));
		assert_string_equal(trouble, "hwThermalSlowdown 2 %, eccUncorrected 3");
	}
	assert_true(logged(&r, 0, XID("0000:3b:00", ""), -1, -500000));
	assert_true(logged(&r, 1, XID("0000:3B:00", ""), 0, 500000));
	assert_true(logged(&r, 2, XID("0000:3c:00", ""), -1, 501000));
	assert_true(logged(&r, 3, XID("", ""), -1, 502000));
	assert_true(logged(&r, 4, XID("0000:5e:00", ""), -1, 503000));
	assert_true(logged(&r, 5, XID("0000:3b:00", "pid=77, "), -1, 504000));
	report_free(&r);
}

/* Peers for which there is no room share a link, each direction its own. */
static void links_have_a_direction(void **state)
{
	struct report_link link[8] = {0}, *l;
	uint32_t n = 0;
	int32_t i;

	(void)state;
	for (i = 0; i < 40; i++) {
		l = report_link_to(link, &n, 8, i % 20, i < 20);
		assert_true(l >= link && l < link + n);
		assert_int_equal(l->send, i < 20);
		assert_true(l->peer == i % 20 || l->peer == -1);
		l->n++;
	}
	assert_int_equal(n, 8);
	for (n = i = 0; i < 8; i++)
		n += link[i].n;
	assert_int_equal(n, 40);
}

/*
 * 100 AllReduces of 10 ms with 5 between them, 4 ranks. Each @every-th rank 3 ends @more ms later than the others, and
 * comes @late ms after them to the next.
 */
static void read_job(struct report *r, uint32_t every, uint32_t more, uint32_t late)
{
	uint32_t rank, seq, ms, wait, longer;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (rank = 0; rank < 4; rank++) {
		fprintf(f, HEADER("%u"), rank + 1, rank + 1);
		for (seq = 0, ms = 1000; seq < 100; seq++, ms += 15 + wait) {
			longer = seq % every == 0 ? more : 0;
			wait = seq % every == 1 ? late : 0;
			fprintf(f,
				"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\","
				"\"commHash\":"
				"\"0xabc\",\"rank\":%u,\"start\":{\"ts\":%u000.000,\"pid\":1,"
				"\"tid\":1},\"stop\":{\"ts\":%u000.000},\"eventAddr\":\"0x%x\","
				"\"details\":{\"func\":\"AllReduce\",\"seq\":%u,\"count\":1024,"
				"\"dtype\":\"ncclFloat32\"},\"exec\":{\"stop\":%u000.000,"
				"\"source\":\"proxy\"}}\n",
				rank, ms + (rank == 3 ? wait : 0), ms + 1 + wait, seq + 16, seq,
				ms + 10 + wait + (rank == 3 ? longer : 0));
		}
	}
	fclose(f);
	read_text(r, text, len);
	free(text);
}

/* How many operations were slow in that job, and how many of them, or others, for a rank that came late. */
static void late_and_slow(uint32_t every, uint32_t more, uint32_t late, uint32_t slow,
			  uint32_t by_late)
{
	struct report_find **finds;
	struct report r;
	uint64_t got = 0;
	uint32_t n, i;

	read_job(&r, every, more, late);
	assert_int_equal(r.classes->all_slow, slow);
	finds = report_findings(&r, &n);
	for (i = 0; i < n; i++)
		if (finds[i]->key.code == CODE_LATE_RANK)
			got += finds[i]->ops;
	free(finds);
	assert_int_equal(got, by_late);
	report_free(&r);
}

static void held_up_and_late(void **state)
{
	(void)state;
	late_and_slow(20, 0, 0, 0, 0);
	/* what was too long made rank 3 come later: no more than that is slow; but for the first operation, which is not told of */
	late_and_slow(20, 200, 200, 5, 1);
	/* it came late by itself */
	late_and_slow(20, 0, 200, 5, 5);
	/* no operation was too long, so that it comes late has not been told yet */
	late_and_slow(5, 4, 6, 20, 20);
}

/* What read_job() reports, by text or as JSON, where its first finding says this. */
static char *said_with(const char *evidence, bool json)
{
	struct report_find **finds;
	char *text = NULL;
	struct report r;
	size_t len;
	uint32_t n;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	read_job(&r, 20, 0, 200);
	finds = report_findings(&r, &n);
	assert_true(n > 0);
	snprintf(finds[0]->evidence[1], sizeof(finds[0]->evidence[1]), "%s", evidence);
	free(finds);
	if (json)
		assert_int_equal(report_json(&r, f), 0);
	else
		report_text(&r, f);
	fclose(f);
	report_free(&r);
	return text;
}

/* What a process calls itself is in the evidence as it is, and reaches a terminal. */
static void evidence_is_defused(void **state)
{
	char *text = said_with("runnable 9.0 ms (behind \033]0;x\a 8.0)", false), *c;

	(void)state;
	assert_non_null(strstr(text, "behind ?]0;x? 8.0"));
	for (c = text; *c; c++)
		assert_true(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
	free(text);
}

/* A line that is too short for it ends between two words, behind a comma if there is one. */
static void evidence_is_wrapped(void **state)
{
	char *text = said_with(
		"in the 40.0 ms before, its application (thread 4711) was on a CPU 1.2 ms, "
		"asleep 37.2 ms (clock_nanosleep 33.1), ready without a CPU 1.6 ms",
		false);

	(void)state;
	assert_non_null(strstr(text, "on a CPU 1.2 ms,\n       asleep 37.2 ms"));
	free(text);
	text = said_with("in the 40.0 ms before its application (thread 4711) was on a CPU and "
			 "asleep 37.2 ms "
			 "(clock_nanosleep 33.1)",
			 false);
	assert_non_null(strstr(text, "asleep 37.2 ms\n       (clock_nanosleep 33.1)\n"));
	free(text);
}

/* A name that was cut within a character: the verdict is told nevertheless. */
static void evidence_is_cut(void **state)
{
	char *text = said_with("behind \xe4\xb8", true);

	(void)state;
	assert_non_null(strstr(text, "late-rank"));
	assert_non_null(strstr(text, "behind ??"));
	free(text);
}

/* Names, numbers and times of the longest that there are. */
static void lengthen(struct report *r, const char *culprit)
{
	struct report_thread *t, *tmp;
	struct report_proc *p;

	r->comms->name = names__get(r->names, "pretraining-dp-all", 18);
	report_comm(r, 0x41ff4d2d12345678)->name = names__get(r->names, "pretraining-tp-0", 16);
	r->classes->slow[0].code = CODE_MISSING;
	r->classes->slow[0].culprit = names__get(r->names, culprit, (uint32_t)strlen(culprit));
	for (p = r->procs; p; p = p->next) {
		p->comm = names__get(r->names, "python3-worker0", 15);
		p->host_pid = 4194303;
		p->op_ns = p->on = p->irq = p->runq = p->blocked = 999999000 * MS;
		p->wait_peer = p->wait_net = p->wait_gpu = 999999000 * MS;
		p->flows = true;
		HASH_ITER (hh, p->threads, t, tmp)
			t->on = t->irq = t->runq = t->blocked = t->throttled = 999999000 * MS;
	}
}

/* None is wider than a terminal of 100 columns, and the culprit's name is there as a whole: of slow operations it comes last. */
static void lines_fit(void **state)
{
	static const char *const culprits[] = {
		"python3[4194303]", "255.255.255.255:65535>255.255.255.255:65535",
		"[fd00:1234:5678:9abc::1]:65535>[fd00:1234:5678:9abc::2]:65535"};
	char *text, *line, *rest, want[80];
	struct report r;
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		read_job(&r, 20, 0, 200);
		lengthen(&r, culprits[i]);
		text = rest = text_of(&r);
		snprintf(want, sizeof(want), " %s\n", culprits[i]);
		assert_non_null(strstr(text, want));
		while ((line = strsep(&rest, "\n")))
			if (strlen(line) > 100)
				fail_msg("%zu columns: %s", strlen(line), line);
		free(text);
		report_free(&r);
	}
}

/*
 * 20 AllReduces of 10 ms on 2 ranks, which have called them all before the first one has ended, but rank 1 the tenth, @late ms after
 * that could have begun. @group: all in one.
 */
static void read_queue(struct report *r, uint32_t late, bool group)
{
	uint32_t rank, seq, end;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	for (rank = 0; rank < 2; rank++) {
		fprintf(f, HEADER("%u"), rank + 1, rank + 1);
		for (seq = 0, end = 1010; seq < 20; seq++, end += 10) {
			end += seq == 10 ? late : 0;
			fprintf(f,
				"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\","
				"\"commHash\":\"0xabc\",\"rank\":%u,\"start\":{\"ts\":%u000.000,"
				"\"pid\":1,\"tid\":1},\"stop\":{\"ts\":%u001.000},"
				"\"eventAddr\":\"0x%x\",\"details\":{\"func\":\"AllReduce\","
				"\"seq\":%u,\"count\":1024,\"dtype\":\"ncclFloat32\","
				"\"parentGroup\":\"0x%x\"},\"exec\":{\"stop\":%u000.000,"
				"\"source\":\"proxy\"},\"sched\":{\"proxy\":{\"threads\":1,"
				"\"span\":%u000.000,\"onCpu\":%u000.000}}}\n",
				rank, late && rank && seq == 10 ? end - 10 : 1000,
				late && rank && seq == 10 ? end - 10 : 1000, seq + 16, seq,
				group ? 99 : seq + 99, end, end - 1000, end - 1000);
		}
	}
	fclose(f);
	read_text(r, text, len);
	free(text);
}

/* Those that wait behind others in their communicator's queue take no longer for that. */
static void called_ahead(void **state)
{
	struct report_class *k;
	struct report r;

	(void)state;
	read_queue(&r, 0, false);
	k = r.classes;
	assert_int_equal(k->time.n, 20);
	assert_int_equal(k->time.max, 10 * MS);
	assert_int_equal(k->all_slow, 0);
	assert_int_equal(r.procs->op_ns, 200 * MS);
	assert_true(r.procs->on >= 199 * MS && r.procs->on <= 200 * MS);
	report_free(&r);
	/* what it comes late to is told */
	read_queue(&r, 50, false);
	k = r.classes;
	assert_int_equal(k->time.max, 60 * MS);
	assert_int_equal(k->all_slow, 1);
	assert_int_equal(k->slow[0].code, CODE_LATE_RANK);
	assert_int_equal(k->slow[0].rank, 1);
	report_free(&r);
	/* those of a group are executed together */
	read_queue(&r, 0, true);
	assert_int_equal(r.classes->time.max, 200 * MS);
	report_free(&r);
}

/* ---- Several communicators -------------------------------------------------------------------------------- */

/* Ranks 0 to 2, each with a trace of its own; 0 and 2 are 0 and 1 of a part. Each reckons, calls, and has it at the end of the last. */
static struct {
	FILE *f[3];
	char *text[3];
	size_t len[3];
	double ms[3]; /* its time */
	unsigned int seq[2];
	int lacks;	 /* the trace of this rank lacks what is told; -1 of none */
	double late_end; /* rank 1 ends so much later */
} two;

static const int part_rank[] = {0, -1, 1};

static void two_begin(void)
{
	int i;

	memset(&two, 0, sizeof(two));
	two.lacks = -1;
	for (i = 0; i < 3; i++) {
		two.f[i] = open_memstream(&two.text[i], &two.len[i]);
		assert_non_null(two.f[i]);
		fprintf(two.f[i], HEADER("%d"), i + 1, i + 1);
		two.ms[i] = 1000;
	}
}

static void two_init(int i, const char *hash, int rank, int nranks)
{
	fprintf(two.f[i],
		"{\"recordType\":\"event\",\"type\":\"ProfilerLifecycle\",\"func\":"
		"\"ProfilerInit\","
		"\"commHash\":\"%s\",\"rank\":%d,\"start\":{\"ts\":1.5,\"pid\":1},\"stop\":{\"ts\":"
		"1.5},"
		"\"details\":{\"nranks\":%d}}\n",
		hash, rank, nranks);
}

/* An operation of the whole or the part, @took ms from when the last one has come. @own: what each reckons before it. */
static void two_op(bool part, double took, double own0, double own1, double own2)
{
	const double own[] = {own0, own1, own2};
	double start[3], last = 0;
	int i;

	for (i = 0; i < 3; i++) {
		start[i] = two.ms[i] + own[i];
		if (part && part_rank[i] < 0)
			continue;
		last = start[i] > last ? start[i] : last;
	}
	for (i = 0; i < 3; i++) {
		if (part && part_rank[i] < 0)
			continue;
		two.ms[i] = last + took;
		if (i == two.lacks)
			continue;
		fprintf(two.f[i],
			"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"%"
			"s\","
			"\"rank\":%d,\"start\":{\"ts\":%.3f,\"pid\":1,\"tid\":1},\"stop\":{\"ts\":%"
			".3f},"
			"\"eventAddr\":\"0x%x\",\"details\":{\"func\":\"AllReduce\",\"seq\":%u,"
			"\"count\":1024,\"dtype\":\"ncclFloat32\"},\"exec\":{\"stop\":%.3f,"
			"\"source\":\"proxy\"}}\n",
			part ? "0xdef" : "0xabc", part ? part_rank[i] : i, start[i] * 1000,
			start[i] * 1000 + 1, (part ? 4096 : 16) + two.seq[part], two.seq[part],
			(two.ms[i] + (i == 1 ? two.late_end : 0)) * 1000);
	}
	two.seq[part]++;
}

/* One of the whole, for which rank 2 reckons so long, and one of the part, which takes so long. */
static void two_both(double own2, double took)
{
	two_op(false, 10, 5, 25, own2);
	two_op(true, took, 5, 0, 5);
}

static void two_usual(unsigned int n)
{
	while (n--)
		two_both(5, 10);
}

static void two_end(struct report *r)
{
	static const int order[] = {1, 0, 2};
	char *all = NULL;
	size_t len, i;
	FILE *f = open_memstream(&all, &len);

	assert_non_null(f);
	/* the one that is in the whole only first: then the operations of the part come after all of these */
	for (i = 0; i < 3; i++) {
		fclose(two.f[order[i]]);
		fwrite(two.text[order[i]], 1, two.len[order[i]], f);
		free(two.text[order[i]]);
	}
	fclose(f);
	read_text(r, all, len);
	free(all);
}

static uint64_t slow_of(const struct report *r, uint64_t hash)
{
	const struct report_class *k, *tmp;
	uint64_t n = 0;

	HASH_ITER (hh, r->classes, k, tmp)
		n += k->comm->hash == hash ? k->all_slow : 0;
	return n;
}

/* What is said: so many of the whole were slow, so many of the part, and @late of them for rank @rank; nobody else came late. */
static void two_says(uint64_t whole, uint64_t part, int32_t rank, uint64_t late)
{
	struct report r;
	struct report_find *f, *tmp;
	uint64_t got = 0;

	two_end(&r);
	assert_int_equal(slow_of(&r, 0xabc), whole);
	assert_int_equal(slow_of(&r, 0xdef), part);
	HASH_ITER (hh, r.finds, f, tmp) {
		if (f->key.code != CODE_LATE_RANK || !f->slow)
			continue;
		assert_int_equal(report_rank(f->who, f->key.rank), rank);
		got += f->slow;
	}
	assert_int_equal(got, late);
	report_free(&r);
}

/*
 * Rank 1, which is not in the part, ends one of the whole when the others have ended the part's next one. What held these up before is told
 * of the part all the same.
 */
static void ended_later_by_another(void **state)
{
	(void)state;
	two_begin();
	two_usual(8);
	two_op(false, 10, 5, 25, 5);
	two_op(true, 10, 5, 0, 105); /* rank 2 is late */
	two.late_end = 14; /* of the whole, for rank 1; the part's next one takes 5 and 5 */
	two_op(false, 10, 5, 25, 5);
	two.late_end = 0;
	two_op(true, 5, 2, 0, 2);
	two.ms[1] += 4;
	two_usual(8);
	two_says(1, 1, 2, 1); /* that one of the whole did take longer */
}

/* What the part has been held up for, its ranks bring into the whole, and nobody is late for that. */
static void carried_into_another(void **state)
{
	unsigned int i;

	(void)state;
	two_begin();
	two_usual(100);
	two_says(0, 0, -1, 0);
	/* before its kind has a median that is sure, and after */
	two_begin();
	two_usual(20);
	two_both(5, 210);
	two_usual(100);
	two_both(5, 210);
	two_usual(3);
	two_says(0, 2, -1, 0);
	/* there were others in between, of the same ranks */
	two_begin();
	for (i = 0; i < 40; i++) {
		two_op(false, 10, 5, 55, 5);
		two_op(true, i == 20 ? 210 : 10, 5, 0, 5);
		two_op(true, 10, 5, 0, 5);
		two_op(true, 10, 5, 0, 5);
	}
	two_says(0, 1, -1, 0);
	/* the GPU was done with it a moment before its proxy was */
	two_begin();
	two_usual(20);
	two_both(5, 210);
	two_op(false, 10, -0.2, 20, -0.2);
	two_op(true, 10, 5, 0, 5);
	two_usual(20);
	two_says(0, 1, -1, 0);
	/* it was late to the part, which is told of that one */
	two_begin();
	two_usual(20);
	two_op(false, 10, 5, 25, 5);
	two_op(true, 10, 5, 0, 205);
	two_usual(20);
	two_says(0, 1, 2, 1);
}

/* What is a rank's own doing is told, whatever was before. */
static void late_for_another(void **state)
{
	(void)state;
	/* nothing was */
	two_begin();
	two_usual(20);
	two_both(205, 10);
	two_usual(20);
	two_says(1, 0, 2, 1);
	/* the part had been held up, and then it took longer than the others */
	two_begin();
	two_usual(20);
	two_both(5, 210);
	two_both(105, 10);
	two_usual(20);
	two_says(1, 1, 2, 1);
	/* all had been in between, and were there at the same time */
	two_begin();
	two_usual(20);
	two_both(5, 210);
	two_usual(2);
	two_both(105, 10);
	two_usual(20);
	two_says(1, 1, 2, 1);
	/* it cost nobody time: the other one took as long */
	two_begin();
	two_usual(20);
	two_both(5, 210);
	two_op(false, 10, 5, 225, 5);
	two_op(true, 10, 5, 0, 5);
	two_both(205, 10);
	two_usual(20);
	two_says(1, 1, 2, 1);
}

/* What is told does not excuse what it did not cause. */
static void late_beside_what_is_told(void **state)
{
	unsigned int i;

	(void)state;
	/* both had been held up in the part, but the other one made up for it */
	two_begin();
	for (i = 0; i < 40; i++) {
		two_op(false, 10, i == 31 ? 5 : 105, 125, 105);
		two_op(true, i == 30 ? 110 : 10, 5, 0, 5);
	}
	two_says(1, 1, 2, 1);
	/* an operation of all that lacks a rank has brought all together */
	two_begin();
	two_usual(20);
	two_both(5, 210);
	two.lacks = 1;
	two_op(false, 10, 5, 25, 5);
	two.lacks = -1;
	two_op(true, 10, 5, 0, 5);
	two_op(false, 10, 5, 25, 5);
	two_op(true, 10, 5, 0, 205);
	two_both(5, 10);
	two_usual(20);
	two_says(0, 2, 2, 1);
	/* the part was slow, which the trace of one lacks; later they come late by themselves */
	two_begin();
	two_usual(20);
	two_both(5, 210);
	two.lacks = 1;
	two_op(false, 10, 5, 25, 5);
	two.lacks = -1;
	two_op(true, 10, 155, 0, 155);
	two_both(5, 10);
	two_usual(20);
	two_says(1, 1, 2, 1);
}

/* A process is known by its rank of the largest communicator, whichever comes first. */
static void ranks_have_one_name(void **state)
{
	struct report r;

	(void)state;
	two_begin();
	two_init(2, "0xdef", 1, 2);
	two_init(2, "0xabc", 2, 3);
	two_init(2, "0xfed", 0, 2);
	two_usual(20);
	two_op(true, 10, 5, 0, 205);
	two_usual(20);
	two_end(&r);
	assert_int_equal(r.procs->next->next->rank, 2);
	assert_false(r.procs->next->next->several);
	assert_int_equal(report_heat_rows(&r), 3);
	report_free(&r);
	/* nobody tells how many they are */
	two_begin();
	two_usual(20);
	two_end(&r);
	assert_int_equal(r.procs->next->next->rank, 2);
	assert_false(r.procs->next->next->several);
	report_free(&r);
	/* of one that is several, each has its own */
	two_begin();
	two_init(2, "0xabc", 2, 4);
	two_init(2, "0xabc", 3, 4);
	two_usual(20);
	two_end(&r);
	assert_true(r.procs->next->next->several);
	assert_int_equal(report_rank(r.procs->next->next, 3), 3);
	assert_int_equal(report_heat_rows(&r), 4);
	report_free(&r);
}

/* A window each in a file: one process, its first recording has the figures of all. */
static void windows_of_one_process(void **state)
{
	static const char text[] = HEADER("1") COLL("0", "1", "1000.000", "2000.000") HEADER("1")
		COLL("0", "9", "8000.000", "9000.000") HEADER("2")
			COLL("1", "9", "8000.000", "9500.000");
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(r.nprocs, 3);
	assert_ptr_equal(r.procs->self, r.procs);
	assert_ptr_equal(r.procs->next->self, r.procs);
	assert_ptr_equal(r.procs->next->next->self, r.procs->next->next);
	assert_int_equal(r.procs->op_ns, 2000000);
	assert_int_equal(r.procs->next->op_ns, 0);
	assert_int_equal(report_heat_rows(&r), 2);
	report_free(&r);
}

/* So many processes are said to be there twice. */
static int said_twice(const struct report *r)
{
	static const char says[] = "Processes that are in the input twice: ";
	char *text = NULL, *at;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int n;

	assert_non_null(f);
	report_text(r, f);
	fclose(f);
	at = strstr(text, says);
	n = at ? atoi(at + sizeof(says) - 1) : 0;
	free(text);
	return n;
}

/* An operation, and the next. */
#define TWO_COLLS(seq, from, to) COLL("0", seq, from, from) COLL("0", seq "0", to, to)

/* A pid that is used again: of each of its processes, and an older trace, which does not tell when its process started. */
static void windows_of_a_pid(void **state)
{
	static const char text[] = HEADER_OF("1", "10.000") TWO_COLLS("1", "1000.000", "2000.000")
		HEADER_OF("1", "3000.000") TWO_COLLS("2", "4000.000", "5000.000")
			HEADER_OF("1", "10.000") TWO_COLLS("3", "8000.000", "9000.000")
				HEADER_OF("1", "3000.000") TWO_COLLS("4", "4500.000", "5500.000")
					HEADER_OF("1", "2000.000")
						TWO_COLLS("5", "6000.000", "7000.000") HEADER("1");
	static const uint32_t self[] = {0, 1, 0, 1, 4, 5};
	const struct report_proc *p;
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(r.nprocs, 6);
	for (p = r.procs; p; p = p->next)
		assert_int_equal(p->self->index, self[p->index]);
	assert_int_equal(said_twice(&r), 1); /* the second and the fourth */
	report_free(&r);
}

/* Only a pid is the same. */
static void a_pid_twice(void **state)
{
	static const char text[] = HEADER_OF("1", "10.000") TWO_COLLS("1", "1000.000", "2000.000")
		HEADER_OF("1", "1100.000") TWO_COLLS("5", "1200.000", "1800.000");
	static const char old[] = HEADER("1") TWO_COLLS("1", "1000.000", "2000.000") HEADER("1")
		TWO_COLLS("5", "1200.000", "1800.000");
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(said_twice(&r), 0);
	report_free(&r);
	read_text(&r, old, sizeof(old) - 1);
	assert_int_equal(said_twice(&r), 1);
	report_free(&r);
}

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Many, of one pid and of as many nodes as somebody likes to make up: each is not held against all others. */
static void many_of_a_pid(void **state)
{
	enum { MANY = 60000 };
	char *text = NULL;
	struct report r;
	double began;
	size_t len;
	FILE *f;
	int i;

	(void)state;
	f = open_memstream(&text, &len);
	assert_non_null(f);
	for (i = 0; i < MANY; i++)
		fprintf(f,
			"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"%d\","
			"\"pid\":"
			"1,\"hostPid\":1,\"comm\":\"job\",\"startTime\":%d.000}\n" COLL(
				"0", "1", "1000.000", "2000.000"),
			i % 2 * i, i + 1);
	fclose(f);
	began = cpu_seconds();
	read_text(&r, text, len);
	assert_int_equal(said_twice(&r), 0);
	assert_true(cpu_seconds() - began < 20 * slower());
	report_free(&r);
	free(text);
}

/* All of the time, and two windows of it: one process, in whatever order they come. */
static void windows_and_all(void **state)
{
	static const char before[] = HEADER_OF("1", "10.000") TWO_COLLS("1", "1000.000", "5000.000")
		HEADER_OF("1", "10.000") TWO_COLLS("2", "1500.000", "2000.000")
			HEADER_OF("1", "10.000") TWO_COLLS("3", "3000.000", "4000.000");
	static const char behind[] = HEADER_OF("1", "10.000") TWO_COLLS("2", "1500.000", "2000.000")
		HEADER_OF("1", "10.000") TWO_COLLS("3", "3000.000", "4000.000")
			HEADER_OF("1", "10.000") TWO_COLLS("1", "1000.000", "5000.000");
	struct report r;

	(void)state;
	read_text(&r, before, sizeof(before) - 1);
	assert_int_equal(said_twice(&r), 1);
	report_free(&r);
	read_text(&r, behind, sizeof(behind) - 1);
	assert_int_equal(said_twice(&r), 1);
	report_free(&r);
}

/* Whether copies__warn() has @says to say. */
static bool warned(const struct report *r, const char *says)
{
	char text[2048];
	FILE *f = tmpfile();
	int err = dup(STDERR_FILENO);
	size_t len;

	assert_non_null(f);
	assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
	log_level = LOG_WARN;
	copies__warn(&r->copies);
	log_level = LOG_ERR;
	assert_true(dup2(err, STDERR_FILENO) >= 0);
	close(err);
	rewind(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	text[len] = '\0';
	fclose(f);
	return strstr(text, says);
}

/* A trace is taken once. That a copy has more in it is said, of those of which it is true. */
static void copies(void **state)
{
	static const char same[] = HEADER("1") TWO_COLLS("1", "1000.000", "2000.000") HEADER("1")
		TWO_COLLS("1", "1000.000", "2000.000");
	static const char longer[] = HEADER("1") COLL("0", "1", "1000.000", "1000.000") HEADER("1")
		TWO_COLLS("1", "1000.000", "2000.000");
	static const char shorter[] = HEADER("1") TWO_COLLS("1", "1000.000", "2000.000") HEADER("1")
		COLL("0", "1", "1000.000", "1000.000");
	struct report r;

	(void)state;
	read_text(&r, same, sizeof(same) - 1);
	assert_int_equal(r.totals.records, 3);
	assert_true(warned(&r, "Traces of 1 process are given more than once"));
	assert_false(warned(&r, "has more in it"));
	report_free(&r);
	read_text(&r, longer, sizeof(longer) - 1);
	assert_int_equal(r.totals.records, 2);
	assert_true(warned(&r, "has 2 records, 1 were taken"));
	report_free(&r);
	read_text(&r, shorter, sizeof(shorter) - 1);
	assert_int_equal(r.totals.records, 3);
	assert_false(warned(&r, "has more in it"));
	report_free(&r);
}

/* Of COLL()'s rank 0 and seq 1, which has not moved for 2 s. */
#define OPEN_COLL(ts)                                                                              \
	"{\"recordType\":\"open\",\"eventType\":\"ncclProfileColl\",\"commHash\":\"0xabc\","       \
	"\"rank\":0,\"ts\":" ts ",\"quiet\":2000000.000,\"start\":{\"ts\":1000.000,\"pid\":1,"     \
	"\"tid\":1},\"eventAddr\":\"0x11\",\"details\":{\"func\":\"AllReduce\",\"seq\":1,"         \
	"\"algo\":\"RING\",\"proto\":\"SIMPLE\",\"count\":1024,\"dtype\":\"ncclFloat32\"}}\n"

/* Told to be open, and then finished: that holds, whatever its last step tells of when it was. */
static void open_and_then_finished(void **state)
{
	static const char text[] =
		HEADER("1") OPEN_COLL("3000000.000") COLL("0", "1", "1000.000", "2999000.000")
			COLL("0", "2", "3001000.000", "3002000.000");
	static const char never[] = HEADER("1") OPEN_COLL("3000000.000");
	static const char enqueued[] = HEADER("1") OPEN_COLL(
		"3000000.000") "{\"recordType\":\"event\",\"type\":\"ncclProfileColl\","
			       "\"commHash\":\"0xabc\",\"rank\":0,\"start\":{\"ts\":1000.000,"
			       "\"pid\":1,\"tid\":1},\"stop\":{\"ts\":1005.000},\"eventAddr\":"
			       "\"0x11\",\"details\":{\"func\":\"AllReduce\",\"seq\":1,\"algo\":"
			       "\"RING\",\"proto\":\"SIMPLE\",\"count\":1024,\"dtype\":"
			       "\"ncclFloat32\"},\"exec\":{\"stop\":1005.000,\"source\":"
			       "\"enqueue\"}}\n";
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(r.classes->hung, 0);
	assert_int_equal(r.classes->time.n, 2);
	assert_int_equal(r.classes->time.max, 2998 * MS);
	report_free(&r);
	read_text(&r, never, sizeof(never) - 1);
	assert_int_equal(r.classes->hung, 1);
	/* its rank was in it up to then: the table of ranks and the map have that */
	assert_int_equal(r.procs->op_ns, 2999 * MS);
	assert_int_equal(report_heat_rows(&r), 1);
	assert_true(report_heat_cell(&r, 0, 0) >= 0);
	assert_int_equal(r.classes->op_span, 0);
	report_free(&r);
	/* which does not tell more than that NCCL had enqueued it */
	read_text(&r, enqueued, sizeof(enqueued) - 1);
	assert_int_equal(r.classes->hung, 1);
	report_free(&r);
}

/* A collective of 1 KiB in @comm, called at @at ms: over after 1 ms, or (@open) told to be open 2 s later. */
static void put_coll(FILE *f, const char *comm_hash, int rank, int seq, int at, int group,
		     bool open)
{
	fprintf(f,
		"{\"recordType\":\"%s\",\"commHash\":\"%s\",\"rank\":%d,\"start\":{\"ts\":%d.000,"
		"\"pid\":1,\"tid\":1},\"eventAddr\":\"0x%x\",\"details\":{\"func\":\"AllReduce\","
		"\"seq\":%d,\"algo\":\"RING\",\"proto\":\"SIMPLE\",\"count\":1024,\"dtype\":"
		"\"ncclInt8\",\"parentGroup\":\"0x%x\"},",
		open ? "open\",\"eventType\":\"ncclProfileColl"
		     : "event\",\"type\":\"ncclProfileColl",
		comm_hash, rank, at * 1000, at * 1000 + 64 + rank, seq, group);
	if (open)
		fprintf(f, "\"ts\":%d.000,\"quiet\":1990000.000}\n", at * 1000 + 2000000);
	else
		fprintf(f,
			"\"stop\":{\"ts\":%d.000},\"exec\":{\"stop\":%d.000,\"source\":\"kernel\"}}"
			"\n",
			at * 1000, at * 1000 + 1000);
}

static FILE *text_file;
static char *text_at;
static size_t text_len;

static void text_begin(void)
{
	text_file = open_memstream(&text_at, &text_len);
	assert_non_null(text_file);
}

static void text_read(struct report *r)
{
	fclose(text_file);
	read_text(r, text_at, text_len);
	free(text_at);
}

/* @n AllReduces of @rank in 0xa, of number @first and on, one each 10 ms from 1 s on; @last: the last one stays open. NCCL's @version. */
static void put_numbered(int rank, const char *version, const char *common, int first, int n,
			 bool last)
{
	char *line, *at;
	size_t len;
	FILE *f;
	int i;

	fprintf(text_file,
		"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":%"
		"d,"
		"\"hostPid\":%d,\"comm\":\"job\",\"ncclVersion\":\"%s\"}\n",
		rank + 1, rank + 1, version);
	for (i = 0; i < n; i++) {
		f = open_memstream(&line, &len);
		assert_non_null(f);
		put_coll(f, "0xa", rank, first + i, 1000 + 10 * i, 0, last && i == n - 1);
		fclose(f);
		at = strstr(line, "\"seq\":");
		assert_non_null(at);
		fprintf(text_file, "%.*s%s%s", (int)(at - line), line, common, at);
		free(line);
	}
}

/* Of two jobs the second of each pair of processes: the tables have the ranks of each by themselves, below its name. */
static void jobs_side_by_side(void **state)
{
	char *text, *at, *next;
	struct report r;
	int pid, i;

	(void)state;
	text_begin();
	for (pid = 1; pid <= 4; pid++) {
		fprintf(text_file,
			"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\","
			"\"pid\":%d,"
			"\"hostPid\":%d,\"comm\":\"job\"}\n",
			pid, pid);
		for (i = 0; i < 20; i++)
			put_coll(text_file, pid % 2 ? "0xb" : "0xa", (pid - 1) / 2, i,
				 1000 + 10 * i, 0, false);
	}
	text_read(&r);
	text = text_of(&r);
	at = strstr(text, "\nrank  process");
	assert_non_null(at);
	at = strstr(at, "\n0xb, 2 ranks:\n0     job[1] ");
	assert_non_null(at);
	at = strstr(at, "\n1     job[3] ");
	assert_non_null(at);
	next = strstr(at, "\n0xa, 2 ranks:\n0     job[2] ");
	assert_non_null(next);
	assert_ptr_equal(strstr(next, "job[1]"), NULL);
	at = strstr(next, "\nrank host\n0xb, 2 ranks:\n   0 n ");
	assert_non_null(at);
	assert_non_null(strstr(at, "\n0xa, 2 ranks:\n   0 n "));
	free(text);
	report_free(&r);
}

/* Two communicators of both ranks, to which they come in different order: one job, that has no need of names. */
static void two_of_one_size(void **state)
{
	char *text;
	struct report r;
	int rank, i;

	(void)state;
	text_begin();
	for (rank = 0; rank < 2; rank++) {
		fprintf(text_file, HEADER("%d"), rank + 1, rank + 1);
		for (i = 0; i < 40; i++)
			put_coll(text_file, i % 2 == rank ? "0xa" : "0xb", rank, i / 2,
				 1000 + 10 * i, 0, false);
	}
	text_read(&r);
	assert_int_equal(r.procs->within, r.procs->next->within);
	text = text_of(&r);
	assert_non_null(strstr(text, "\nrank  process"));
	assert_null(strstr(text, ", 2 ranks:\n"));
	free(text);
	report_free(&r);
}

static const struct report_comm *comm_a(const struct report *r)
{
	const struct report_comm *c;
	const uint64_t hash = 0xa;

	HASH_FIND(hh, r->comms, &hash, sizeof(hash), c);
	assert_non_null(c);
	return c;
}

#define COMMON	   "\"seqCommon\":true,"
#define NOT_COMMON "\"seqCommon\":false,"

/* Of two ranks that number the same operations @first0 and @first1 and on: @ops, of which @alone are one rank's. */
static void must_join(const char *version, const char *common0, const char *common1, int first1,
		      uint64_t ops, uint64_t alone)
{
	struct report r;
	char *said;

	text_begin();
	put_numbered(0, version, common0, 5, 6, false);
	put_numbered(1, version, common1, first1, 6, false);
	text_read(&r);
	said = text_of(&r);
	/* of windows the first one alone may have them numbered alike: a recording from the job's start is not enough */
	assert_int_equal(strstr(said, "from their start, and not in windows (--every)") != NULL,
			 alone != 0);
	free(said);
	assert_int_equal(r.totals.ops, ops);
	assert_int_equal(comm_a(&r)->alone, alone);
	assert_int_equal(HASH_COUNT(comm_a(&r)->members), 2);
	report_free(&r);
}

/* Up to NCCL 2.25 numbers are those of others only if all was recorded from the start. */
static void numbers_of_old_nccl(void **state)
{
	(void)state;
	must_join("2.28.9", "", "", 5, 6, 0);
	must_join("2.25.1", "", "", 5, 12, 12);
	must_join("2.25.1", "", "", 4, 12, 12);
	must_join("2.25.1", NOT_COMMON, NOT_COMMON, 4, 12, 12);
	must_join("2.25.1", COMMON, COMMON, 5, 6, 0);
	/* where libnccl does not say its version */
	must_join("", NOT_COMMON, NOT_COMMON, 4, 12, 12);
	/* one of them was attached to later */
	must_join("2.25.1", COMMON, NOT_COMMON, 4, 12, 6);
}

/* All ranks are in one that hangs, by whatever numbers: nobody is missing. */
static void nobody_is_missing_by_old_numbers(void **state)
{
	static const char *const common[] = {COMMON, NOT_COMMON};
	const struct report_find *f;
	struct report r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		text_begin();
		put_numbered(0, "2.25.1", common[i], 5, 6, true);
		put_numbered(1, "2.25.1", NOT_COMMON, 4, 6, true);
		text_read(&r);
		assert_true(comm_a(&r)->classes->hung);
		assert_non_null(r.finds);
		for (f = r.finds; f; f = f->hh.next)
			assert_true(f->key.code != CODE_MISSING && f->key.code != CODE_LATE_RANK);
		report_free(&r);
	}
	/* by common ones one that has not called it is */
	text_begin();
	put_numbered(0, "2.25.1", COMMON, 5, 6, true);
	put_numbered(1, "2.25.1", COMMON, 5, 5, false);
	text_read(&r);
	assert_non_null(r.finds);
	assert_int_equal(r.finds->key.code, CODE_MISSING);
	report_free(&r);
}

/* That it does not hang as well says nothing by such numbers; that it is stopped does. */
static void stopped_by_old_numbers(void **state)
{
	static const char *const why[] = {"stopped", "frozen"};
	struct report r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
		text_begin();
		put_numbered(0, "2.25.1", NOT_COMMON, 5, 6, true);
		put_numbered(1, "2.25.1", NOT_COMMON, 4, 5, false);
		fprintf(text_file, "{\"recordType\":\"thread\",\"tid\":1,\"why\":\"%s\"}\n",
			why[i]);
		text_read(&r);
		assert_non_null(r.finds);
		assert_int_equal(r.finds->key.code, CODE_STOPPED);
		assert_int_equal(r.finds->who->host_pid, 2);
		report_free(&r);
	}
}

/* Each waits in one of its own: what rank 1's shows is told, though it called it last (@ahead of rank 0: first). */
static void must_tell_reset_of_1(int ahead)
{
	const struct report_proc *p;
	struct report r;

	text_begin();
	put_numbered(0, "2.25.1", NOT_COMMON, 5, 6 + ahead, true);
	put_numbered(1, "2.25.1", NOT_COMMON, 4, 7 - ahead, true);
	fputs(RESET("1200000.000"), text_file);
	text_read(&r);
	assert_int_equal(HASH_COUNT(r.finds), 1);
	assert_int_equal(r.finds->key.code, CODE_RESET);
	assert_int_equal(r.finds->who->host_pid, 2);
	for (p = r.procs; p; p = p->next)
		assert_true(p->op_ns > 1990 * MS);
	report_free(&r);
}

static void reset_by_old_numbers(void **state)
{
	(void)state;
	must_tell_reset_of_1(0);
	must_tell_reset_of_1(1);
}

/* Of resets under several of them the first one is told, whichever rank called first. */
static void first_reset_by_old_numbers(void **state)
{
	struct report r;
	int first;

	(void)state;
	for (first = 0; first < 2; first++) {
		text_begin();
		put_numbered(0, "2.25.1", NOT_COMMON, 5, 6, true);
		fputs(first == 0 ? RESET("1200000.000") : RESET("1300000.000"), text_file);
		put_numbered(1, "2.25.1", NOT_COMMON, 4, 7, true);
		fputs(first == 1 ? RESET("1200000.000") : RESET("1300000.000"), text_file);
		text_read(&r);
		assert_int_equal(HASH_COUNT(r.finds), 1);
		assert_int_equal(r.finds->key.code, CODE_RESET);
		assert_int_equal(r.finds->who->host_pid, first + 1);
		report_free(&r);
	}
}

/* One that hangs, and is stopped then, as by a debugger, holds nobody up by that. */
static void stopped_while_it_hangs_by_old_numbers(void **state)
{
	struct report r;

	(void)state;
	text_begin();
	put_numbered(0, "2.25.1", NOT_COMMON, 5, 6, true);
	fputs(RESET("1200000.000"), text_file);
	put_numbered(1, "2.25.1", NOT_COMMON, 4, 7, true);
	fputs("{\"recordType\":\"thread\",\"tid\":1,\"why\":\"stopped\"}\n", text_file);
	text_read(&r);
	assert_int_equal(HASH_COUNT(r.finds), 1);
	assert_int_equal(r.finds->key.code, CODE_RESET);
	assert_int_equal(r.finds->who->host_pid, 1);
	report_free(&r);
}

/* Of a recorder that was killed: the last word of what hangs may be a minute old, and the file goes on. */
static void open_where_file_breaks_off(void **state)
{
	struct report r;

	(void)state;
	text_begin();
	fprintf(text_file, HEADER("%d"), 1, 1);
	put_coll(text_file, "0xa", 0, 1, 1000, 0, false);
	put_coll(text_file, "0xa", 0, 2, 2000, 0, true);
	fputs(RESET("9000000.000"), text_file);
	text_read(&r);
	assert_int_equal(comm_a(&r)->hung->parts[0]->stop, 9000 * MS);
	assert_int_equal(comm_a(&r)->hung->parts[0]->quiet, 6990 * MS);
	assert_int_equal(comm_a(&r)->hung->parts[0]->beyond, 0);
	assert_non_null(r.finds);
	assert_int_equal(r.finds->key.code, CODE_RESET);
	assert_int_equal(comm_a(&r)->hung->class->slow[0].duration, 7000 * MS);
	report_free(&r);
}

/* What its threads did is known up to then, and held against that. */
static void asleep_where_file_breaks_off(void **state)
{
	struct report r;
	int rank, seq;

	(void)state;
	text_begin();
	for (rank = 0; rank < 2; rank++) {
		fprintf(text_file, HEADER("%d"), rank + 1, rank + 1);
		for (seq = 1; seq <= 10; seq++)
			put_coll(text_file, "0xa", rank, seq, 1000 + 10 * seq, 0, false);
		put_coll(text_file, "0xa", rank, seq, 2000, 0, true);
		if (rank == 0)
			continue;
		fseeko(text_file, -2, SEEK_CUR);
		fputs(",\"sched\":{\"proxy\":{\"threads\":1,\"span\":2000000.000,\"onCpu\":800000."
		      "000,"
		      "\"runq\":0,\"blocked\":1200000.000,\"blockedIn\":[{\"why\":\"nanosleep\","
		      "\"us\":1200000.000}]}}}\n"
		      "{\"recordType\":\"open\",\"eventType\":\"ncclProfileGroupApi\",\"start\":{"
		      "\"ts\":"
		      "2000000.000},\"eventAddr\":\"0x9\",\"ts\":9000000.000,\"quiet\":1.000}\n",
		      text_file);
	}
	text_read(&r);
	assert_int_equal(HASH_COUNT(r.finds), 1);
	assert_int_equal(r.finds->key.code, CODE_BLOCKED);
	assert_int_equal(r.finds->slow_ns, 1200 * MS);
	assert_true(r.finds->slow_conf > 0.59 && r.finds->slow_conf < 0.61);
	/* and its rank was in it to the end */
	assert_int_equal(r.procs->next->rank, 1);
	assert_true(r.procs->next->op_ns >= 7000 * MS);
	report_free(&r);
}

/* Two ranks in 0xa: at the end of the window each has @n collectives open, the first called at @at ms, as a third rank comes late. */
static void put_window(int seq, int at, int n)
{
	int rank, i;

	for (rank = 0; rank < 2; rank++) {
		fprintf(text_file, HEADER("%d"), rank + 1, rank + 1);
		put_coll(text_file, "0xa", rank, seq, at, 0, false);
		for (i = 1; i <= n; i++)
			put_coll(text_file, "0xa", rank, seq + i, at + 10 * i, 0, true);
	}
}

/* So many are said to hang, of which the one that is told of is @seq; -1: none is. */
static void must_hang(struct report *r, uint64_t hung, int64_t seq)
{
	const struct report_comm *c;
	const uint64_t hash = 0xa;

	HASH_FIND(hh, r->comms, &hash, sizeof(hash), c);
	assert_non_null(c);
	assert_int_equal(c->classes->hung, hung);
	assert_int_equal(c->hung ? (int64_t)c->hung->seq : -1, seq);
	report_free(r);
}

/* A process that is a rank of 0xa: @n collectives, one each 10 ms from @at ms on, of which (@open) the last one does not end; @end: of its trace. */
static void put_life(int pid, int rank, int at, int n, bool open, const char *end)
{
	int i;

	fprintf(text_file, HEADER("%d"), pid, pid);
	for (i = 1; i <= n; i++)
		put_coll(text_file, "0xa", rank, i, at + 10 * i, 0, open && i == n);
	fputs(end, text_file);
}

/* The end of a window, or of what was lost, hides when a collective ended; its ranks go on with the next one. */
static void open_and_then_the_next(void **state)
{
	struct report r;

	(void)state;
	text_begin();
	put_window(1, 1000, 1);
	put_window(3, 9000, 0);
	text_read(&r);
	must_hang(&r, 0, -1);
	/* called ahead */
	text_begin();
	put_window(1, 1000, 5);
	put_window(9, 9000, 0);
	text_read(&r);
	must_hang(&r, 0, -1);
	/* a later one hangs */
	text_begin();
	put_window(1, 1000, 5);
	put_window(9, 9000, 2);
	text_read(&r);
	must_hang(&r, 2, 10);
	/* one of the ranks does not go on */
	text_begin();
	put_window(1, 1000, 1);
	fprintf(text_file, HEADER("%d"), 1, 1);
	put_coll(text_file, "0xa", 0, 3, 9000, 0, false);
	text_read(&r);
	must_hang(&r, 1, 2);
	/* another of its group is over, which says nothing */
	text_begin();
	fprintf(text_file, HEADER("%d"), 1, 1);
	put_coll(text_file, "0xa", 0, 1, 1000, 7, true);
	put_coll(text_file, "0xa", 0, 2, 1010, 7, false);
	text_read(&r);
	must_hang(&r, 1, 1);
	text_begin();
	fprintf(text_file, HEADER("%d"), 1, 1);
	put_coll(text_file, "0xa", 0, 1, 1000, 7, true);
	put_coll(text_file, "0xa", 0, 2, 1010, 8, false);
	text_read(&r);
	must_hang(&r, 0, -1);
	/* the job was restarted, and is of other processes since; one is read with its next life */
	text_begin();
	put_life(11, 0, 100, 1, false, "");
	put_window(1, 1000, 1);
	put_life(12, 1, 100, 1, false, "");
	put_window(3, 9000, 0);
	text_read(&r);
	must_hang(&r, 0, -1);
	/* the earlier life was cut off and does not go on */
	text_begin();
	put_life(11, 0, 100, 2, true, "");
	put_window(1, 4000, 1);
	put_window(3, 9000, 0);
	text_read(&r);
	must_hang(&r, 1, 2);
}

/*
 * A job of three ranks that is restarted. In either life ranks 0 and 1 may wait in a collective that the third never calls: as it was
 * killed, or as it does something else. The last life may be read first.
 */
static void put_lives(bool first_hangs, bool last_hangs, bool last_first)
{
	static const char killed[] =
		SIGNAL("1025000.000", "18", "0",
		       "") "{\"recordType\":\"footer\",\"end\":\"signal 9\",\"oom\":true}\n";
	int i, rank;
	bool last, hangs;

	text_begin();
	for (i = 0; i < 2; i++) {
		last = i == !last_first;
		hangs = last ? last_hangs : first_hangs;
		for (rank = 0; rank < 3; rank++)
			put_life((last ? 11 : 1) + rank, rank, last ? 200000 : 1000,
				 hangs && rank < 2 ? 3 : 2, hangs && rank < 2,
				 last || rank < 2 ? "" : killed);
	}
}

/* That the only finding is that this process is missing; 0: that there is none. */
static void must_be_missing(struct report *r, int32_t pid, const char *first, const char *second)
{
	struct report_find **finds;
	uint32_t n;

	text_read(r);
	finds = report_findings(r, &n);
	assert_int_equal(n, pid ? 1 : 0);
	if (pid) {
		assert_int_equal(finds[0]->key.code, CODE_MISSING);
		assert_int_equal(finds[0]->who->pid, pid);
		assert_non_null(strstr(finds[0]->evidence[0], first));
		assert_string_equal(finds[0]->evidence[1], second);
	}
	free(finds);
	report_free(r);
}

/* Who is missing is a process of the life that hangs: of several the last. */
static void missing_after_a_restart(void **state)
{
	static const char absent[] = "did not call this operation",
			  killed[] = "its process was ended by signal 9",
			  oom[] = "the kernel killed it to get memory back (out of memory)";
	struct report r;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		put_lives(false, true, i);
		must_be_missing(&r, 13, absent, "");
		put_lives(true, true, i);
		must_be_missing(&r, 13, absent, "");
		put_lives(true, false, i);
		must_be_missing(&r, 3, killed, oom);
		put_lives(false, false, i);
		must_be_missing(&r, 0, NULL, NULL);
	}
}

/* Who is missing hangs itself, in its next life, in another communicator: for who is not in this one. */
static void elsewhere_after_a_restart(void **state)
{
	struct report r;
	int rank;

	(void)state;
	text_begin();
	for (rank = 0; rank < 3; rank++)
		put_life(1 + rank, rank, 1000, 2, false,
			 SIGNAL("3000000.000", "18", "0", "")); /* which has settled */
	for (rank = 0; rank < 3; rank++)
		put_life(11 + rank, rank, 200000, rank < 2 ? 3 : 2, rank < 2, "");
	put_coll(text_file, "0xb", 0, 1, 200025, 0, false);
	put_coll(text_file, "0xb", 0, 2, 200028, 0, true);
	fprintf(text_file, HEADER("%d"), 14, 14);
	put_coll(text_file, "0xb", 1, 1, 200025, 0, false);
	must_be_missing(&r, 14, "did not call this operation", "");
}

/* What the end of the recording cuts off does not hang for a signal that ended one of its ranks in an earlier life. */
static void killed_in_an_earlier_life(void **state)
{
#define BEGIN(pid, rank, end) HEADER(pid) COLL(rank, "1", "1000.000", "2000.000") end
#define GO_ON(pid, rank)                                                                           \
	HEADER(pid)                                                                                \
	COLL(rank, "1", "9000000.000", "9000001.000")                                              \
	SIGNAL("9000100.000", "18", "0", "") UNFINISHED(rank, "2", "9000010.000")
#define CUT_OFF(pid, rank)                                                                         \
	BEGIN(pid, rank, SIGNAL("5000.000", "18", "0", "") UNFINISHED(rank, "2", "3000.000"))
	static const char earlier[] = BEGIN("1", "0", "") BEGIN("2", "1", KILLED("2500.000", "9"))
		GO_ON("11", "0") GO_ON("12", "1"),
			  both[] = CUT_OFF("1", "0") BEGIN("2", "1", KILLED("2500.000", "9"))
				  GO_ON("11", "0") GO_ON("12", "1"),
			  last[] = BEGIN("1", "0", "") BEGIN("2", "1", "") GO_ON("11", "0")
				  GO_ON("12", "1") FOOTER("9");
	struct report_find **finds;
	struct report r;
	uint32_t n;

	(void)state;
	read_text(&r, earlier, sizeof(earlier) - 1);
	assert_int_equal(r.classes->hung, 0);
	report_free(&r);
	read_text(&r, both, sizeof(both) - 1);
	assert_int_equal(r.classes->hung, 1);
	finds = report_findings(&r, &n);
	assert_int_equal(finds[0]->key.code, CODE_MISSING);
	assert_int_equal(finds[0]->who->pid, 2);
	free(finds);
	report_free(&r);
	read_text(&r, last, sizeof(last) - 1);
	assert_int_equal(r.classes->hung, 1);
	finds = report_findings(&r, &n);
	assert_int_equal(finds[0]->key.code, CODE_MISSING);
	assert_int_equal(finds[0]->who->pid, 12);
	free(finds);
	report_free(&r);
}

/* Who was in one that is over is who the others wait for in another. */
static void open_elsewhere_and_then_the_next(void **state)
{
	struct report_find **finds;
	struct report r;
	uint32_t n;
	int rank;

	(void)state;
	text_begin();
	put_window(1, 1000, 1);
	put_window(3, 9000, 0);
	for (rank = 0; rank < 2; rank++) {
		fprintf(text_file, HEADER("%d"), rank + 1, rank + 1);
		put_coll(text_file, "0xb", rank, 1, 9100, 0, false);
		if (!rank)
			put_coll(text_file, "0xb", rank, 2, 9200, 0, true);
	}
	text_read(&r);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_MISSING);
	assert_int_equal(finds[0]->who->pid, 2);
	free(finds);
	report_free(&r);
}

/* Of a kind of which none has ended it is said how many have not, and nothing of how long they take. */
static void only_hangs(void **state)
{
	static const char never[] = HEADER("1") OPEN_COLL("3000000.000");
	static const char cells[] = ",RING,SIMPLE,4096,4096,1,,,,,,1,1,,,,,\r\n";
	char *json = NULL, *csv = NULL, *text, *at;
	struct report r;
	size_t len;
	FILE *f;

	(void)state;
	read_text(&r, never, sizeof(never) - 1);
	f = open_memstream(&json, &len);
	assert_non_null(f);
	assert_int_equal(report_json(&r, f), 0);
	fclose(f);
	at = strstr(json, "\"n\": 1,");
	assert_non_null(at);
	assert_true(strstr(at, "\"hung\": 1") && strstr(at, "\"hung\": 1") < strchr(at, '}'));
	f = open_memstream(&csv, &len);
	assert_non_null(f);
	report_csv(&r, f);
	fclose(f);
	assert_non_null(strstr(csv, cells));
	text = text_of(&r);
	assert_non_null(strstr(text, " 1  (1 never ended)\n"));
	assert_null(strstr(text, "really ended"));
	free(json);
	free(csv);
	free(text);
	report_free(&r);
}

/* Writes what is open, and more than is read at a time when the time for reading is over, into a pipe; in a process of its own. */
static pid_t write_slowly(const int fds[2])
{
	static const char text[] =
		HEADER("1") OPEN_COLL("3000000.000") COLL("0", "2", "4000000.000", "4001000.000");
	static const char more[] = "{\"recordType\":\"none\"}\n";
	pid_t pid = fork();
	size_t left;

	if (pid)
		return pid;
	close(fds[0]);
	signal(SIGPIPE, SIG_DFL);
	if (write(fds[1], text, sizeof(text) - 1) < 0)
		_exit(1);
	usleep(700000);
	for (left = 64 << 20; left > sizeof(more); left -= sizeof(more))
		if (write(fds[1], more, sizeof(more) - 1) < 0)
			break;
	_exit(0);
}

/* What has not been read to its end may have gone on there. */
static void open_where_reading_ends(void **state)
{
	struct report r = {.opt = {.limit_ns = 500 * MS}};
	char path[32], *paths[] = {path, NULL};
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = write_slowly(fds);
	assert_true(pid > 0);
	close(fds[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
	assert_int_equal(report_init(&r), 0);
	assert_int_equal(report_read(&r, paths), 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	report_end(&r);
	assert_true(r.totals.cut);
	assert_int_equal(r.totals.ops, 1);
	assert_int_equal(r.classes->hung, 0);
	report_free(&r);
}

/* A recording has its end in its last line. */
static void recordings_without_an_end(void **state)
{
#define END "{\"recordType\":\"footer\",\"end\":\"exit\",\"exitCode\":0}\n"
	static const char all[] = HEADER("1") COLL("0", "1", "1000.000", "2000.000") END HEADER("2")
		COLL("1", "1", "1000.000", "2000.000") END;
	static const char one[] = HEADER("1") COLL("0", "1", "1000.000", "2000.000") HEADER("2")
		COLL("1", "1", "1000.000", "2000.000") END;
	const char *const texts[] = {all, one};
	char *said = NULL;
	struct report r;
	size_t len;
	FILE *f;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		read_text(&r, texts[i], strlen(texts[i]));
		f = open_memstream(&said, &len);
		assert_non_null(f);
		report_text(&r, f);
		fclose(f);
		assert_int_equal(strstr(said, "Recordings without an end: 1 of 2.") != NULL, i);
		free(said);
		report_free(&r);
	}
}

/* Objects that are no records, and threads that are known though no operation had ProxyOps. */
static void what_there_is(void **state)
{
	static const char foreign[] = "{\"a\":1}\n{\"b\":{\"type\":1}}\n";
	static const char threads[] = HEADER("1") COLL(
		"0", "1", "1000.000", "2000.000") "{\"recordType\":\"thread\",\"tid\":1,\"comm\":"
						  "\"job\",\"role\":\"app\",\"onCpu\":5.000,"
						  "\"runq\":1.000,\"blocked\":0.000}\n";
	char *text = NULL;
	struct report r;
	size_t len;
	FILE *f;

	(void)state;
	read_text(&r, foreign, sizeof(foreign) - 1);
	assert_int_equal(r.totals.records, 0);
	assert_int_equal(r.totals.skipped, 2);
	report_free(&r);
	read_text(&r, threads, sizeof(threads) - 1);
	f = open_memstream(&text, &len);
	assert_non_null(f);
	report_text(&r, f);
	fclose(f);
	assert_null(strstr(text, "No kernel context"));
	/* what is not known of the rank's operations is not 0 */
	assert_non_null(strstr(text, "|        -        -        -     - |"));
	free(text);
	report_free(&r);
}

static void torn_lines_are_skipped(void **state)
{
	static const char torn[] =
		HEADER("1") COLL("0", "1", "1000.000",
				 "2000.000") "{\"recordType\":\"event\",\"type\":\"nccl" HEADER("2")
			COLL("1", "1", "1000.000", "2000.000") "{\"recordType\":\"fo";
	struct report r;

	(void)state;
	read_text(&r, torn, sizeof(torn) - 1);
	assert_int_equal(r.totals.torn, 2);
	assert_int_equal(r.totals.ops, 1);
	assert_int_equal(r.nprocs, 2);
	report_free(&r);
}

/* An operation without exec lasts to the end of its last child, which comes later. */
static void other_profilers_traces(void **state)
{
	static const char text[] =
		"{\"type\":\"ProfilerLifecycle\",\"func\":\"ProfilerInit\",\"commId\":"
		"18446744073709551615,"
		"\"rank\":0,\"start\":{\"ts\":1.5,\"pid\":9},\"stop\":{\"ts\":1.5},\"details\":{"
		"\"nranks\":1}}\n"
		"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commId\":"
		"18446744073709551615,"
		"\"rank\":0,\"start\":{\"ts\":10,\"pid\":9},\"stop\":{\"ts\":11.25},\"eventAddr\":"
		"\"0x7f\","
		"\"details\":{\"func\":\"AllReduce\",\"seq\":0,\"count\":4,\"dtype\":\"ncclInt8\"}}"
		"\n"
		"{\"recordType\":\"event\",\"type\":\"ncclProfileKernelCh\",\"commId\":1,\"rank\":"
		"0,"
		"\"start\":{\"ts\":12},\"stop\":{\"ts\":30.5},\"parentObj\":\"0x7f\"}\n"
		"{\"recordType\":\"whatever\",\"type2\":[{}]}\n[1]\nnull\n\n";
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	assert_int_equal(r.totals.ops, 1);
	assert_int_equal(r.classes->time.max, 20500);
	assert_true(r.classes->comm->hash == UINT64_MAX);
	assert_int_equal(r.totals.skipped, 2);
	report_free(&r);
}

/* Waits of steps that say to have waited for 13 days each, 20,000 of them. */
static void hostile_sums(void **state)
{
	enum { MANY = 20000 };
	struct report r;
	int i;

	(void)state;
	text_begin();
	fputs(HEADER("1"), text_file);
	for (i = 1; i <= MANY; i++)
		fprintf(text_file,
			"{\"recordType\":\"state\",\"eventAddr\":\"0x%x\",\"ts\":1.000,\"id\":%d}\n"
			"{\"recordType\":\"state\",\"eventAddr\":\"0x%x\",\"ts\":1000000000000.000,"
			"\"id\":9}\n"
			"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyStep\",\"eventAddr\":"
			"\"0x%x\","
			"\"parentObj\":\"0x5\",\"start\":{\"ts\":1.000},\"stop\":{\"ts\":2.000},"
			"\"net\":{\"rxOoo\":1%s}}\n",
			0x100 + i, i % 2 ? 8 : 10, 0x100 + i, 0x100 + i,
			i % 2 ? ",\"noData\":1200000000000.000" : "");
	fputs("{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"eventAddr\":\"0x5\","
	      "\"parentObj\":\"0x11\",\"start\":{\"ts\":1.000},\"stop\":{\"ts\":3.000},"
	      "\"details\":{\"peer\":1},\"net\":{\"flow\":\"a\"}}\n" COLL("0", "1", "1.000",
									  "4.000"),
	      text_file);
	text_read(&r);
	assert_int_equal(r.err, 0);
	assert_int_equal(r.totals.records, 3 * MANY + 3);
	report_free(&r);
}

/* ProxyOps of an operation that took 73 years each, by their lines. */
static void hostile_proxy_ops(void **state)
{
	enum { MANY = 20000 };
	struct report r;
	int i;

	(void)state;
	text_begin();
	fputs(HEADER("1"), text_file);
	for (i = 0; i < MANY; i++)
		fprintf(text_file,
			"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"eventAddr\":"
			"\"0x%x\",\"parentObj\":\"0x11\",\"start\":{\"ts\":0.000},\"stop\":{\"ts\":"
			"2305843009213693.000},\"details\":{\"peer\":1}}\n",
			0x1000 + i);
	fputs(COLL("0", "1", "1.000", "4.000"), text_file);
	text_read(&r);
	assert_int_equal(r.totals.ops, 1);
	report_free(&r);
}

static void hostile_values(void **state)
{
	static const char text[] =
		HEADER("1") COLL("2147483647", "1", "1000.000", "9223372036854775807.999")
			COLL("-5", "18446744073709551615", "2305843009213693.000",
			     "1.000") "{\"recordType\":\"header\",\"clock\":{\"realtimeOffset\":-"
				      "99999999999999.000}}\n"
				      "{\"recordType\":\"lost\",\"n\":18446744073709551615,"
				      "\"cause\":\"\\u0000\\u001b[2J\"}\n"
				      "{\"recordType\":\"lost\",\"n\":18446744073709551615,"
				      "\"cause\":\"=1+1\"}\n"
				      "{\"recordType\":\"thread\",\"tid\":-1,\"comm\":\"\\u001b]0;"
				      "x\",\"onCpu\":99999999999999.000}\n"
				      "{\"recordType\":\"state\",\"eventAddr\":\"0x1\",\"ts\":-1."
				      "000,\"id\":8}\n"
				      "{\"recordType\":\"event\",\"type\":\"ncclProfileProxyStep\","
				      "\"start\":{\"ts\":9.000},"
				      "\"stop\":{\"ts\":1.000},\"parentObj\":\"null\",\"net\":{"
				      "\"noData\":-4.000,\"peer\":[]}}\n"
				      "{\"recordType\":\"open\",\"eventType\":\"ncclProfileColl\","
				      "\"ts\":5.000,"
				      "\"start\":{\"ts\":4.000},\"eventAddr\":\"0x2\",\"commHash\":"
				      "\"0xabc\",\"rank\":3,"
				      "\"sched\":{\"proxy\":{\"threads\":4294967295,\"blockedIn\":["
				      "1,{\"us\":{}}]}}}\n";
	struct report r;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	report_free(&r);
}

/* Any byte may be another: nothing breaks (with the sanitizers). */
static void mutations(void **state)
{
	static const char *const files[] = {
		"tests/unit/traces/good.jsonl", "tests/unit/traces/net.jsonl",
		"tests/unit/traces/open.jsonl", "tests/unit/traces/sched.jsonl"};
	static char text[65536], copy[65536];
	uint64_t seed = 7;
	struct report r;
	size_t len, i, k;
	FILE *f;

	(void)state;
	for (i = 0; i < 120; i++) {
		f = fopen(files[i % 4], "r");
		if (!f)
			skip();
		len = fread(text, 1, sizeof(text), f);
		fclose(f);
		memcpy(copy, text, len);
		for (k = 0; i >= 4 && k < 40; k++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			copy[(seed >> 33) % len] = "0123456789-.e\"{}[],:n\n\\"[(seed >> 20) % 24];
		}
		read_text(&r, copy, i % 3 ? len : len - (seed >> 40) % len);
		report_free(&r);
	}
}

/* ---- A large job ------------------------------------------------------------------------------------------ */

#define RANKS 2500
#define OPS   20
#define LATE  (RANKS - 7)
#define ODD   1777 /* once, and not for long enough to have a verdict */

/* In a ring, eight on a node, which run on each other's CPUs for a while. */
static struct report_part *part_of_many(struct report *r, struct report_proc *proc, uint32_t nr)
{
	struct report_part *p = calloc(1, sizeof(*p) + 2 * sizeof(p->link[0]));
	int64_t late = nr == OPS - 4 ? 30 * MS : nr == OPS - 8 ? 4 * MS : 0;
	int32_t i = (int32_t)proc->index;

	assert_non_null(p);
	*p = (struct report_part){.proc = proc,
				  .rank = i,
				  .start = (1000 + 50 * nr) * MS +
					   (i == (nr == OPS - 8 ? ODD : LATE) ? late : 0),
				  .stop = (1005 + 50 * nr) * MS + late,
				  .gap = -1,
				  .known = true,
				  .nlinks = 2};
	p->proxy = (struct report_role){.threads = 1,
					.cpu = -1,
					.span = 5 * MS,
					.on = 4 * MS,
					.runq = 1 * MS,
					.irq = 1000 + i};
	p->proxy.behind[0] = (struct report_who){
		.name = names__get(r->names, "job", 3), .pid = 100 + i % 7, .ns = 1 * MS};
	p->link[0] =
		(struct report_link){.peer = (i + 1) % RANKS, .send = true, .n = 1, .dur = 5 * MS};
	p->link[1] = (struct report_link){.peer = (i + RANKS - 1) % RANKS, .n = 1, .dur = 5 * MS};
	return p;
}

static void threads_of_many(struct report *r, struct report_proc *p)
{
	struct report_thread *t;
	uint32_t tid;

	for (tid = 1; tid <= 2; tid++) {
		t = calloc(1, sizeof(*t));
		assert_non_null(t);
		*t = (struct report_thread){.tid = tid + 10 * p->index,
					    .comm = names__get(r->names, "thr", 3),
					    .on = 5 * MS,
					    .runq = MS};
		HASH_ADD(hh, p->threads, tid, sizeof(t->tid), t);
	}
}

/* Each has been read to its end before the next one comes. */
static void one_of_many(struct report *r, int32_t i)
{
	struct report_op_info info = {.comm = 9, .bytes = 4096, .joined = true};
	struct report_op_info before = {.comm = 1000 + (uint64_t)i / 8, .joined = true};
	struct report_proc *p = calloc(1, sizeof(*p));
	struct report_part *part;

	assert_non_null(p);
	p->index = (uint32_t)i;
	p->self = p;
	p->rank = -1;
	p->pid = p->host_pid = 100 + i % 8;
	p->node = 7 + (uint64_t)i / 8;
	p->clock = 7;
	p->clock_error = MS / 10;
	p->header = true;
	threads_of_many(r, p);
	*r->last_proc = p;
	r->last_proc = &p->next;
	info.func = before.func = names__get(r->names, "AllReduce", 9);
	report_member(r, report_comm(r, 9), i, p);
	part = part_of_many(r, p, 0);
	part->rank = i % 8;
	part->start -= 50 * MS;
	part->stop -= 50 * MS;
	part->nlinks = 0;
	report_add_part(r, &before, part);
	for (; info.seq < OPS; info.seq++)
		report_add_part(r, &info, part_of_many(r, p, (uint32_t)info.seq));
}

static void text_of_many(const struct report *r)
{
	char *text = NULL, *at;
	size_t len, lines = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	report_text(r, f);
	fclose(f);
	for (at = text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_true(lines < 200);
	/* its row, though it is far behind the first ones, and its threads', and that of the other one of which something was found */
	assert_non_null(strstr(text, "\n2493  [105]"));
	assert_non_null(strstr(text, "\n1777  [101]"));
	assert_non_null(strstr(text, "\n2493  thr                  24931 "));
	assert_non_null(strstr(text, "\n1777  thr                  17771 "));
	assert_non_null(strstr(text, "(4968 more threads"));
	at = strstr(text, "Waiting for others");
	assert_non_null(at);
	assert_non_null(strstr(at, "\n2493  "));
	assert_non_null(strstr(at, "\n1777  "));
	assert_non_null(strstr(at, "\n(2468 more ranks)\n"));
	assert_non_null(strstr(text, "(2468 more ranks"));
	/* its nodes' communicators are alike, but for that of half a node; so none is left out */
	assert_non_null(
		strstr(text, "\n312 communicators of 8 ranks, 8 of them here, alike: 0x3e8 and "));
	assert_non_null(strstr(text, " 4 ranks, 4 of them here\n"));
	assert_null(strstr(text, "more communicators"));
	free(text);
}

/* What it takes is no more for a rank than in a small job: else this is for minutes. */
static void thousands_of_ranks(void **state)
{
	struct report_find **list;
	struct report r = {0};
	uint32_t n;
	int32_t i;

	(void)state;
	assert_int_equal(report_init(&r), 0);
	report_comm(&r, 9)->nranks = RANKS;
	r.nprocs = RANKS;
	for (i = 0; i < RANKS; i++)
		one_of_many(&r, i);
	report_end(&r);
	assert_int_equal(r.totals.ops, OPS + (RANKS + 7) / 8);
	list = report_findings(&r, &n);
	assert_non_null(list);
	assert_int_equal(n, 1);
	assert_int_equal(list[0]->key.code, CODE_LATE_RANK);
	assert_int_equal(list[0]->who->rank, LATE);
	assert_int_equal(list[0]->slow, 1);
	free(list);
	text_of_many(&r);
	report_free(&r);
}

/* ---- Many communicators side by side ---------------------------------------------------------------------- */

#define GROUPS	   256
#define GROUP_OF   4
#define GROUP_OPS  40
#define ODD_GROUP  200
#define SMALL_COMM 9999
#define FEW_OPS	   14

/* Of times that differ as those of any job do. */
static int64_t jitter(uint32_t a, uint32_t b)
{
	uint64_t x =
		(a * UINT64_C(7919) + b * UINT64_C(104729) + 1) * UINT64_C(6364136223846793005);

	return (int64_t)((x >> 33) % (2 * MS));
}

static void groups_begin(struct report *r, struct report_proc **list, uint32_t n)
{
	uint32_t i;

	memset(r, 0, sizeof(*r));
	assert_int_equal(report_init(r), 0);
	for (i = 0; i < n; i++) {
		list[i] = calloc(1, sizeof(*list[i]));
		assert_non_null(list[i]);
		list[i]->index = i;
		list[i]->self = list[i];
		list[i]->rank = -1;
		list[i]->pid = list[i]->host_pid = 100 + (int32_t)i % 8;
		list[i]->node = 7 + i / 8;
		list[i]->clock = 7;
		list[i]->header = true;
		*r->last_proc = list[i];
		r->last_proc = &list[i]->next;
	}
	r->nprocs = n;
}

/* Of rank @rank of a communicator: from @start to @stop ns. */
static void group_of(struct report *r, struct report_proc *proc, const char *func, uint64_t hash,
		     int32_t rank, uint64_t seq, int64_t start, int64_t stop)
{
	struct report_op_info info = {.comm = hash, .seq = seq, .bytes = 4096, .joined = true};
	struct report_part *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	info.func = names__get(r->names, func, strlen(func));
	*p = (struct report_part){
		.proc = proc, .rank = rank, .start = start, .stop = stop, .gap = -1, .known = true};
	report_add_part(r, &info, p);
}

static void group_part(struct report *r, struct report_proc *proc, uint64_t hash, int32_t rank,
		       uint64_t seq, int64_t start, int64_t stop)
{
	group_of(r, proc, "AllReduce", hash, rank, seq, start, stop);
}

/*
 * An operation of each group at a time, 10 ms from when the last of its ranks has come. @late: so much later the second one of ODD_GROUP
 * comes, to each.
 */
static void groups_run(struct report *r, struct report_proc **list, int64_t late)
{
	int64_t at, start[GROUP_OF], last;
	uint32_t seq, g, i;

	for (g = 0; g < GROUPS; g++)
		report_comm(r, 1000 + g)->nranks = GROUP_OF;
	for (seq = 0; seq < GROUP_OPS; seq++) {
		for (g = 0; g < GROUPS; g++) {
			at = (1000 + 50 * seq) * MS;
			for (i = 0, last = 0; i < GROUP_OF; i++) {
				start[i] = at + jitter(g * GROUP_OF + i, seq) +
					   (g == ODD_GROUP && i == 1 ? late : 0);
				last = start[i] > last ? start[i] : last;
			}
			/* one that nothing explains */
			last += seq == 2 + g % 30 ? 20 * MS : 0;
			for (i = 0; i < GROUP_OF; i++)
				group_part(r, list[g * GROUP_OF + i], 1000 + g, (int32_t)i, seq,
					   start[i], last + 10 * MS);
		}
	}
}

/* A rank that is late in each operation of its group costs the job as much however many other groups there are. */
static void late_in_one_group(void **state)
{
	static struct report_proc *list[GROUPS * GROUP_OF];
	struct report_find **finds;
	struct report r;
	uint32_t n;

	(void)state;
	groups_begin(&r, list, GROUPS * GROUP_OF);
	groups_run(&r, list, 12 * MS);
	report_end(&r);
	finds = report_findings(&r, &n);
	assert_non_null(finds);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
	assert_ptr_equal(finds[0]->who, list[ODD_GROUP * GROUP_OF + 1]);
	assert_true(finds[0]->ops >= GROUP_OPS - 1);
	assert_true(finds[0]->conf > 0.8);
	free(finds);
	report_free(&r);
}

/* In the map: so many operations of the process from that second on, one a second, half of which it waits. */
static void add_to_map(struct report *r, struct report_proc *proc, int64_t from, int64_t n)
{
	struct report_part p = {.proc = proc};
	int64_t s;

	for (s = from; s < from + n; s++) {
		p.start = s * 1000 * MS;
		p.stop = p.start + 900 * MS;
		report_heat_add(r, &p, 450 * MS);
	}
}

/* The columns in which it was in any: the first, and the one after the last. */
static void in_map(const struct report *r, const struct report_proc *proc, uint32_t *from,
		   uint32_t *to)
{
	uint32_t row, col;
	int32_t rank;
	double share;

	*from = HEAT_COLS;
	*to = 0;
	for (row = 0; row < report_heat_rows(r); row++) {
		for (col = 0; col < HEAT_COLS && report_heat_row(r, row, &rank) == proc; col++) {
			share = report_heat_cell(r, row, col);
			if (share < 0)
				continue;
			assert_true(share > 0.499 && share < 0.501);
			*from = col < *from ? col : *from;
			*to = col + 1;
		}
	}
}

/* Three attempts of 20 s, which begin at these times; in which order they are read has nothing to do with it. The map is as wide as it can be. */
static void must_map(const int64_t begin[3], const char *order)
{
	struct report_proc *list[3];
	uint32_t from, to, i;
	struct report r;
	double column;

	groups_begin(&r, list, 3);
	for (i = 0; i < 3; i++)
		add_to_map(&r, list[order[i] - '0'], begin[order[i] - '0'], 20);
	column = (double)report_heat_width(&r) / 1e9;
	for (i = 0; i < 3; i++) {
		in_map(&r, list[i], &from, &to);
		assert_true((double)(begin[i] - begin[0]) < (from + 1) * column);
		assert_true((double)(begin[i] - begin[0]) > (from - 1.0) * column);
		assert_true((to - from) * column >= 19.9);
		assert_true((to - from - 2.0) * column < 20);
	}
	assert_true(to > HEAT_COLS / 2 - 1);
	report_free(&r);
}

static void map_in_any_order(void **state)
{
	static const int64_t even[] = {10, 50, 100}, odd[] = {7, 1000, 1021},
			     apart[] = {1, 30, 1 << 24};
	static const char *const orders[] = {"012", "021", "102", "120", "201", "210"};
	uint32_t i;

	(void)state;
	for (i = 0; i < 6; i++) {
		must_map(even, orders[i]);
		must_map(odd, orders[i]);
		must_map(apart, orders[i]);
	}
}

#define NODE(ts, counters)                                                                         \
	"{\"recordType\":\"node\",\"ts\":" ts                                                      \
	",\"interval\":1000.000,\"rdma\":[{\"device\":\"ib0\","                                    \
	"\"port\":1,\"counters\":{" counters "}}]}\n"

/* Processes of a node tell of the same ports, each in intervals of its own: they count once. */
static void ports_of_nodes(void **state)
{
	static const char text[] =
		HEADER("1") NODE("1000.000", "\"port_xmit_data\":4000,\"symbol_error\":1")
			NODE("2000.000", "\"port_xmit_data\":4000,\"packet_seq_err\":2,"
					 "\"local_ack_timeout_err\":1") HEADER("2")
				NODE("1000.000", "\"symbol_error\":1") NODE("1500.000",
									    "\"packet_seq_err\":2")
					NODE("3000.000", "\"packet_seq_err\":5,\"np_cnp_sent\":9");
	static const char clean[] = HEADER("1") NODE("1000.000", "\"port_xmit_data\":4000");
	struct report_port *port;
	struct report r;
	char *said;

	(void)state;
	read_text(&r, text, sizeof(text) - 1);
	port = r.ports;
	assert_int_equal(HASH_COUNT(r.ports), 1);
	assert_int_equal(port->ncounters, 5);
	said = text_of(&r);
	assert_non_null(strstr(said, "RDMA ports that had trouble: 1 of 1, whoever used them\n"
				     "n                ib0:1           local_ack_timeout_err 1, "
				     "symbol_error 1, packet_seq_err 7\n"));
	free(said);
	report_free(&r);
	read_text(&r, clean, sizeof(clean) - 1);
	said = text_of(&r);
	assert_non_null(strstr(said, "RDMA ports: 1, without trouble"));
	free(said);
	report_free(&r);
}

/* Of a process that begins at that ms: what a port counted and its GPU did each second, and an operation. Trouble comes at the end. */
static void attempt(FILE *f, uint32_t pid, uint32_t ms, uint32_t seconds, const char *counters,
		    const char *errors)
{
	uint32_t i;

	fprintf(f, HEADER("%u"), pid, pid);
	for (i = 1; i <= seconds; i++, ms += 1000) {
		fprintf(f, NODE("%u000.000", "%s"), ms, i == seconds ? counters : "");
		fprintf(f,
			GPU("%u000.000",
			    GPU_A "\"interval\":1000000.000,\"errors\":{%s},\"held\":{}"),
			ms, i == seconds ? errors : "");
		fprintf(f, COLL("0", "%u", "%u001.000", "%u002.000"), ms, ms, i, i, ms);
	}
}

/* Samples are found by their order. */
static void in_order(const struct report_proc *p, uint32_t n)
{
	const struct report_gpu_past *past;
	uint32_t i;

	assert_non_null(p->gpus_told);
	assert_null(p->gpus_told->next);
	past = &p->gpus_told->past;
	assert_int_equal(past->n, n);
	i = n > REPORT_GPU_SAMPLES ? n - REPORT_GPU_SAMPLES : 0;
	for (i++; i < n; i++)
		assert_true(past->at[(i - 1) % REPORT_GPU_SAMPLES].to <
			    past->at[i % REPORT_GPU_SAMPLES].to);
}

/*
 * Two attempts, of which the later one is read first, all of it or as much as is read at a time: both count, and who was on the GPU is the
 * same rank each time. The samples of each are in their order.
 */
static void attempts(uint32_t seconds, uint32_t first, uint32_t then)
{
	const struct report_gpu *g;
	char *text = NULL;
	struct report r;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	attempt(f, 2, first, seconds, "\"symbol_error\":2", "");
	attempt(f, 1, then, seconds, "\"symbol_error\":5", "\"eccUncorrected\":3");
	fclose(f);
	read_text(&r, text, len);
	free(text);
	assert_int_equal(HASH_COUNT(r.ports), 1);
	assert_int_equal(r.ports->ncounters, 1);
	assert_int_equal(r.ports->counters[0].n, 7);
	assert_int_equal(HASH_COUNT(r.gpus), 1);
	g = r.gpus;
	assert_int_equal(g->errors[GPU_ECC_UNCORRECTED - GPU_ERROR_FIRST], 3);
	assert_int_equal(g->time, 2 * seconds * INT64_C(1000000000));
	assert_int_equal(report_gpu_rank(g), 0);
	assert_int_equal(g->proc->pid, first > then ? 2 : 1);
	in_order(r.procs, seconds);
	in_order(r.procs->next, seconds);
	assert_true(g->past.n > 0);
	report_free(&r);
}

static void attempts_in_any_order(void **state)
{
	(void)state;
	attempts(20, 100000, 10000);
	attempts(20, 10000, 100000);
	attempts(400, 10000000, 10000);
	attempts(400, 10000, 10000000);
}

/* More recordings of a node, each with a gap before it, than any small table has: of each more is read than at first, and all count. */
static void windows_of_a_day(void **state)
{
	const struct report_gpu *g;
	char *text = NULL;
	struct report r;
	size_t len;
	uint32_t i;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	for (i = 0; i < 40; i++)
		attempt(f, 7, 1000000 + 260000 * i, 120, "\"symbol_error\":1",
			"\"eccUncorrected\":1");
	fclose(f);
	assert_true(len > 40 * (size_t)65536);
	read_text(&r, text, len);
	free(text);
	assert_int_equal(r.ports->counters[0].n, 40);
	g = r.gpus;
	assert_int_equal(g->errors[GPU_ECC_UNCORRECTED - GPU_ERROR_FIRST], 40);
	assert_int_equal(g->time, 40 * 120 * INT64_C(1000000000));
	report_free(&r);
}

/* Which times have been told of: what recordings have told of, from the beginning to the end of each. */
static void spans_that_are_told(void **state)
{
	struct report_spans s = {0};
	struct report r = {0};
	uint64_t left = 0;
	uint32_t i;

	(void)state;
	assert_false(report_spans_have(&s, 0, 1));
	for (i = 100; i > 50; i--) /* backwards, by many, without a gap */
		assert_true(report_spans_add(&r, &s, i, 10 * i, 10 * i + 10, &left));
	assert_int_equal(s.n, 1);
	assert_true(report_spans_have(&s, 510, 1010));
	assert_true(report_spans_have(&s, 500, 511));
	assert_true(report_spans_have(&s, 1009, 1020));
	assert_false(report_spans_have(&s, 500, 510));
	assert_false(report_spans_have(&s, 1010, 1020));
	/* in turn by two, who have nothing to tell in between */
	for (i = 0; i < 1000; i++)
		assert_true(
			report_spans_add(&r, &s, 101 + i % 2, 2000 + 10 * i, 2005 + 10 * i, &left));
	assert_in_range(s.n, 2, 3);
	assert_true(report_spans_have(&s, 2005, 2010));
	assert_false(report_spans_have(&s, 1010, 2000));
	/* what has no length, and what goes over all */
	assert_true(report_spans_add(&r, &s, 103, 1500, 1500, &left));
	assert_false(report_spans_have(&s, 1010, 1500));
	assert_true(report_spans_add(&r, &s, 104, 0, 1000000, &left));
	assert_int_equal(s.n, 1);
	assert_false(report_spans_have(&s, 1000000, INT64_MAX));
	assert_false(report_spans_have(&s, INT64_MIN, 0));
	assert_int_equal(left, 0);
	free(s.at);
}

/* As many as there is room for stay apart; of more it is told that they do not count. */
static void spans_have_bounds(void **state)
{
	struct report_spans s = {0};
	struct report r = {0};
	uint64_t left = 0;
	uint32_t i;

	(void)state;
	for (i = 0; i < REPORT_SPANS; i++)
		assert_true(report_spans_add(&r, &s, i, 10 * i, 10 * i + 5, &left));
	assert_false(report_spans_add(&r, &s, i, 10 * i, 10 * i + 5, &left));
	assert_int_equal(left, 1);
	assert_int_equal(s.n, REPORT_SPANS);
	for (i = 0; i < REPORT_SPANS; i++) {
		assert_true(report_spans_have(&s, 10 * i, 10 * i + 1));
		assert_false(report_spans_have(&s, 10 * i + 5, 10 * i + 10));
	}
	assert_true(report_spans_add(&r, &s, i, 5, 10, &left)); /* between two */
	assert_int_equal(s.n, REPORT_SPANS - 1);
	assert_true(report_spans_add(&r, &s, REPORT_SPANS - 1, 10 * i, 10 * i + 5, &left));
	assert_int_equal(s.n, REPORT_SPANS - 1);
	assert_int_equal(left, 1);
	assert_int_equal(r.err, 0);
	free(s.at);
}

static void ports_have_bounds(void **state)
{
	struct report_port *port;
	struct report_proc p = {.node = 1};
	struct report r = {0};
	char text[16];
	uint32_t i;

	(void)state;
	assert_int_equal(report_init(&r), 0);
	for (i = 0; i < 20000; i++)
		report_port_of(&r, &p, 100 + i);
	assert_int_equal(HASH_COUNT(r.ports), 16384);
	assert_int_equal(r.totals.ports_left, 20000 - 16384);
	port = report_port_of(&r, &p, 100);
	assert_non_null(port);
	for (i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "counter_%u", i);
		report_port_add(&r, port, text, strlen(text), UINT64_MAX);
	}
	assert_int_equal(port->ncounters, REPORT_COUNTERS);
	assert_int_equal(r.totals.ports_left, 20000 - 16384 + 60);
	/* what is a sign of trouble has room */
	report_port_add(&r, port, "symbol_error", 12, UINT64_MAX);
	report_port_add(&r, port, "symbol_error", 12, 1);
	assert_int_equal(port->ncounters, REPORT_COUNTERS);
	report_ports_end(&r);
	assert_string_equal(names__text(r.names, port->counters[0].name), "symbol_error");
	assert_true(port->counters[0].n == UINT64_MAX);
	report_free(&r);
}

static void put_op(FILE *f, int rank, int seq, int64_t at, int64_t took, const char *counters)
{
	int addr = rank * 100000 + seq + 1;

	fprintf(f,
		"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"start\":{\"ts\":"
		"%" PRId64 ".000},\"stop\":{\"ts\":%" PRId64
		".000},\"parentObj\":\"0x%x\",\"eventAddr\":"
		"\"0xf%x\",\"details\":{\"peer\":%d,\"isSend\":true}}\n",
		at, at + took, addr, addr, !rank);
	fprintf(f,
		"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":\"0x1\","
		"\"rank\":%d,\"start\":{\"ts\":%" PRId64 ".000},\"stop\":{\"ts\":%" PRId64 ".000},"
		"\"eventAddr\":\"0x%x\",\"exec\":{\"stop\":%" PRId64 ".000,\"source\":\"kernel\"},"
		"\"details\":{\"seq\":%d,\"func\":\"AllReduce\",\"count\":1,\"dtype\":\"ncclInt8\"}"
		","
		"\"net\":{\"rdma\":[{\"device\":\"ib0\",\"port\":1,\"counters\":{%s}}]}}\n",
		rank, at, at + 10, addr, at + took, seq, counters);
}

/* Two windows of three ranks, to the last of whose operations in the first one those of @late come when their recordings have ended; or (@goes_on) one whose line was lost. */
static void read_cut(struct report *r, int late, bool goes_on, const char *end, int last_end)
{
	int rank, seq;

	text_begin();
	for (rank = 0; rank < 3; rank++) {
		fprintf(text_file, HEADER("%d"), rank + 1, rank + 1);
		for (seq = 0; seq < 20; seq++)
			put_op(text_file, rank, seq, 100000 * seq, 10000, "");
		if (!(late >> rank & 1))
			put_op(text_file, rank, 20, 2000000, 1900000, "");
		if (goes_on)
			put_op(text_file, rank, 21, 3910000, 10000, "");
		fprintf(text_file, "{\"recordType\":\"footer\",\"end\":\"%s\",\"ts\":%d.000}\n",
			end, rank == 2 ? last_end : 4000000);
	}
	text_read(r);
}

/* The end of a recording has the operation that was under way to its end, and not that a rank came to it late. */
static void late_at_the_end(void **state)
{
	struct report r;
	char *said;

	(void)state;
	read_cut(&r, 4, false, "detached", 4000000);
	assert_int_equal(only_code(&r), CODE_LATE_RANK);
	assert_int_equal(r.classes->slow[0].rank, 2);
	said = text_of(&r);
	assert_non_null(strstr(said, "had not called it when its recording ended; the others, "
				     "which had, were in it for 1.90 s"));
	free(said);
	report_free(&r);
	read_cut(&r, 6, false, "loader-stopped",
		 4000000); /* of two it is not known who came last */
	assert_int_equal(only_code(&r), CODE_UNKNOWN);
	said = text_of(&r);
	assert_non_null(
		strstr(said, "of its ranks 2 had not called it when their recordings ended"));
	free(said);
	report_free(&r);
	read_cut(&r, 4, true, "detached", 4000000);
	assert_int_equal(only_code(&r), CODE_UNKNOWN);
	report_free(&r);
	read_cut(&r, 4, false, "exit", 4000000);
	assert_int_equal(only_code(&r), CODE_UNKNOWN);
	report_free(&r);
	read_cut(&r, 4, false, "detached", 1950000); /* its recorder ended before the others */
	assert_int_equal(only_code(&r), CODE_UNKNOWN);
	report_free(&r);
}

/* Of a hundred operations four take 200 ms longer, and a port counted something @then; and something in each nth, of the others. */
static void read_ports_than(struct report *r, int64_t slower_than, int nth, const char *always,
			    const char *then)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int rank, i;

	assert_non_null(f);
	for (rank = 0; rank < 2; rank++) {
		fputs(rank ? HEADER("2") : HEADER("1"), f);
		for (i = 0; i < 100; i++)
			put_op(f, rank, i, 1000000 + i * 1000000, i % 30 == 9 ? 210000 : 10000,
			       i % 30 == 9 ? then
			       : i % nth   ? ""
					   : always);
	}
	fclose(f);
	read_text_than(r, text, len, slower_than);
	free(text);
}

static void read_ports(struct report *r, int nth, const char *always, const char *then)
{
	read_ports_than(r, 0, nth, always, then);
}

/* One finding, which is that. */
static void only(struct report *r, enum report_code code)
{
	assert_int_equal(only_code(r), code);
	report_free(r);
}

static void a_slow_port(void **state)
{
	struct report_find **finds;
	struct report r;
	char *said;
	uint32_t n;

	(void)state;
	read_ports(&r, 1, "\"port_xmit_data\":9",
		   "\"port_xmit_data\":9,\"packet_seq_err\":2}},{\"device\":\"ib1\",\"port\":2,"
		   "\"counters\":{\"packet_seq_err\":3");
	finds = report_findings(&r, &n);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_RDMA_LOSS);
	assert_int_equal(finds[0]->slow, 4);
	assert_null(finds[0]->who);
	assert_string_equal(names__text(r.names, finds[0]->key.culprit), "ib1:2 on n");
	free(finds);
	said = text_of(&r);
	assert_non_null(strstr(said, "rdma-loss          port ib1:2 on n "));
	assert_null(strstr(said, "by ib1:2"));
	assert_non_null(strstr(said, "     -  ib1:2 on n\n"));
	free(said);
	report_free(&r);
	/* all the time: it is read each 100 ms, so that what is longer has no more of it in the same time */
	read_ports(&r, 1, "\"packet_seq_err\":33", "\"packet_seq_err\":93");
	only(&r, CODE_UNKNOWN);
	read_ports(&r, 1, "\"packet_seq_err\":33", "\"packet_seq_err\":400");
	only(&r, CODE_RDMA_LOSS);
	/* now and then: one in 600 ms, so that three times as long has one sooner */
	read_ports(&r, 5, "\"packet_seq_err\":1", "\"packet_seq_err\":1");
	only(&r, CODE_UNKNOWN);
	read_ports(&r, 2, "\"packet_seq_err\":1", "\"packet_seq_err\":1");
	only(&r, CODE_UNKNOWN);
	read_ports(&r, 50, "\"packet_seq_err\":1", "\"packet_seq_err\":1");
	only(&r, CODE_RDMA_LOSS);
	/* though all are too long for whoever asks */
	read_ports_than(&r, MS, 1, "\"packet_seq_err\":33", "\"packet_seq_err\":93");
	only(&r, CODE_UNKNOWN);
}

static void hang(struct report *r, struct report_proc *proc, uint64_t hash, int64_t start)
{
	struct report_op_info info = {
		.comm = hash, .seq = GROUP_OPS, .bytes = 4096, .joined = true};
	struct report_part *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	info.func = names__get(r->names, "AllReduce", 9);
	*p = (struct report_part){.proc = proc,
				  .start = start,
				  .stop = start + 5000 * MS,
				  .gap = -1,
				  .quiet = 4000 * MS,
				  .known = true,
				  .unfinished = true};
	report_add_part(r, &info, p);
}

/* Groups whose second rank has not come to their last operation: each is one that hangs, whatever it has in common with others. */
static void many_that_hang(void **state)
{
	static struct report_proc *list[GROUPS * GROUP_OF];
	struct report r;
	char *text;
	uint32_t g;

	(void)state;
	groups_begin(&r, list, GROUPS * GROUP_OF);
	groups_run(&r, list, 0);
	for (g = 0; g < 20; g++)
		hang(&r, list[g * GROUP_OF], 1000 + g, 90000 * MS);
	report_end(&r);
	text = text_of(&r);
	assert_non_null(
		strstr(text, "(240 more communicators, of which 4 hang: see --json or --csv)"));
	free(text);
	report_free(&r);
}

/* Where nothing stands out, groups are told of as one. */
static void groups_that_are_alike(void **state)
{
	static struct report_proc *list[GROUPS * GROUP_OF];
	struct report r;
	char *text;

	(void)state;
	groups_begin(&r, list, GROUPS * GROUP_OF);
	groups_run(&r, list, 0);
	report_end(&r);
	text = text_of(&r);
	assert_non_null(
		strstr(text, "\n256 communicators of 4 ranks, 4 of them here, alike: 0x3e8 "));
	assert_non_null(strstr(text, " 10240 "));
	assert_null(strstr(text, "\nCommunicator "));
	assert_null(strstr(text, "more communicators"));
	free(text);
	report_free(&r);
	/* the one that a verdict is of is told of by itself */
	groups_begin(&r, list, GROUPS * GROUP_OF);
	groups_run(&r, list, 12 * MS);
	report_end(&r);
	text = text_of(&r);
	assert_non_null(strstr(text, "\nCommunicator 0x4b0, 4 ranks"));
	assert_non_null(strstr(text, "\n255 communicators of 4 ranks"));
	free(text);
	report_free(&r);
}

#define NODES 32
#define GPUS  8

/* A process on each node, whose ranks are in a group each, with those of the other nodes. @late: of the fourth one on node 7, or of @all there. */
static void ranks_of_nodes(struct report *r, struct report_proc **list, int64_t late, bool all)
{
	int64_t at, start[NODES], last;
	uint32_t seq, g, i;

	groups_begin(r, list, NODES);
	report_comm(r, 1)->nranks = NODES * GPUS;
	for (i = 0; i < NODES * GPUS; i++)
		report_member(r, report_comm(r, 1), (int32_t)i, list[i / GPUS]);
	for (seq = 0; seq < GROUP_OPS; seq++) {
		for (g = 0; g < GPUS; g++) {
			report_comm(r, 1000 + g)->nranks = NODES;
			at = (1000 + 50 * seq) * MS;
			for (i = 0, last = 0; i < NODES; i++) {
				start[i] = at + jitter(g * NODES + i, seq) +
					   (i == 7 && (all || g == 3) ? late : 0);
				last = start[i] > last ? start[i] : last;
			}
			for (i = 0; i < NODES; i++)
				group_part(r, list[i], 1000 + g, (int32_t)i, seq, start[i],
					   last + 10 * MS);
		}
	}
	report_end(r);
}

/* Ranks of one process work side by side as well. */
static void late_of_several_ranks(void **state)
{
	static struct report_proc *list[NODES];
	struct report_find **finds;
	struct report r;
	char *text;
	uint32_t n;

	(void)state;
	ranks_of_nodes(&r, list, 12 * MS, false);
	assert_int_equal(list[7]->ranks, GPUS);
	text = text_of(&r);
	assert_non_null(strstr(text, "late-rank          rank 7 of 0x3eb, process 107 "));
	free(text);
	finds = report_findings(&r, &n);
	assert_non_null(finds);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
	assert_ptr_equal(finds[0]->who, list[7]);
	assert_true(finds[0]->ops >= GROUP_OPS - 1);
	assert_true(finds[0]->conf > 0.8);
	free(finds);
	report_free(&r);
	/* what is too little of each of them is no more for being that of all */
	ranks_of_nodes(&r, list, 3 * MS / 2, true);
	free(report_findings(&r, &n));
	assert_int_equal(n, 0);
	report_free(&r);
}

#define TURN_RANKS 4
#define TURN_OPS   80

/* What keeps one of TURN_RANKS from an operation of 10 ms: rank @victim (-1: each in turn) is behind a process, or comes late. */
struct turns {
	int victim;
	int64_t late, behind;
	uint32_t life;	    /* operations: of each of the processes */
	const char *who[2]; /* they are called, in turn; NULL: all as the first */
	int32_t pid0;	    /* of the first one */
	uint32_t same;	    /* in so many of four operations it is this pid */
	int64_t lasts;	    /* the recordings */
	int64_t took;	    /* an operation without that; 0: 10 ms */
	uint32_t ops;	    /* 0: TURN_OPS */
	int64_t main_late; /* in so many of four operations rank 1 is late by that, and nobody in turn */
	/* Each operation of another job; 0: it has none. The longest that a rank of it is late, in turn; and how long its recordings last. */
	int64_t beside, beside_late, beside_lasts;
};

static bool is_main(const struct turns *t, uint32_t seq)
{
	return t->main_late && seq % 4 < t->same;
}

static void turn_part(struct report *r, struct report_proc *proc, int32_t rank, uint32_t seq,
		      int64_t start, const struct turns *t, bool its_turn)
{
	struct report_op_info info = {.comm = 5, .seq = seq, .bytes = 4096, .joined = true};
	int64_t at = (1000 + 50 * (int64_t)seq) * MS,
		took = (t->took ?: 10 * MS) + (is_main(t, seq) ? t->main_late : t->late);
	struct report_part *p = calloc(1, sizeof(*p));
	uint32_t nth = t->life ? seq / t->life : 0;
	const char *who = t->who[t->who[1] && nth % 3 == 2];

	assert_non_null(p);
	info.func = names__get(r->names, "AllReduce", 9);
	*p = (struct report_part){.proc = proc,
				  .rank = rank,
				  .start = start,
				  .stop = at + took,
				  .gap = -1,
				  .known = true};
	p->proxy = (struct report_role){.threads = 1, .cpu = 3, .span = took, .on = took};
	if (its_turn && t->behind) {
		p->proxy.runq = t->behind;
		p->proxy.on -= t->behind;
		p->proxy.behind[0] = (struct report_who){names__get(r->names, who, strlen(who)),
							 t->pid0 + (int32_t)nth, t->behind};
		if (seq % 4 < t->same)
			p->proxy.behind[0].pid = 77;
	}
	report_add_part(r, &info, p);
}

/* Of the other job, whose ranks are as many. */
static void turn_beside(struct report *r, struct report_proc **list, uint32_t seq,
			const struct turns *t)
{
	int64_t at = (1000 + 50 * (int64_t)seq) * MS;
	uint32_t i;

	report_comm(r, 6)->nranks = TURN_RANKS;
	for (i = 0; i < TURN_RANKS; i++)
		group_part(r, list[i], 6, (int32_t)i, seq,
			   at + (seq % TURN_RANKS == i ? t->beside_late : 0), at + t->beside);
}

static void turns_run(struct report *r, const struct turns *t)
{
	static struct report_proc *list[2 * TURN_RANKS]; /* half of them in another communicator */
	uint32_t seq, i;
	int64_t late;
	bool its_turn;

	groups_begin(r, list, 2 * TURN_RANKS);
	report_comm(r, 5)->nranks = TURN_RANKS;
	for (seq = 0; seq < (t->ops ?: TURN_OPS); seq++) {
		for (i = 0; i < TURN_RANKS; i++) {
			its_turn = t->victim < 0 ? seq % TURN_RANKS == i : (int)i == t->victim;
			late = its_turn ? t->late : 0;
			if (is_main(t, seq))
				late = i == 1 ? t->main_late : 0;
			turn_part(r, list[i], (int32_t)i, seq,
				  (1000 + 50 * (int64_t)seq) * MS + late, t, its_turn);
		}
		if (t->beside)
			turn_beside(r, list + TURN_RANKS, seq, t);
	}
	for (i = 0; i < 2 * TURN_RANKS; i++)
		list[i]->last = i < TURN_RANKS ? t->lasts : t->beside_lasts ?: t->lasts;
	report_end(r);
}

/* That there is one verdict, and its line of text and what is behind it; NULL: there is none. */
static void must_be_told(const struct turns *t, const char *line, const char *second,
			 const char *third, const char *json)
{
	struct report r;
	char *said;
	size_t len;
	FILE *f;
	uint32_t n;

	turns_run(&r, t);
	free(report_findings(&r, &n));
	said = text_of(&r);
	assert_int_equal(n, line ? 1 : 0);
	if (line) {
		assert_non_null(strstr(said, line));
		assert_non_null(strstr(said, second));
		assert_non_null(strstr(said, third));
	} else {
		assert_non_null(strstr(said, "Why it was slow: nothing stands out"));
	}
	free(said);
	f = open_memstream(&said, &len);
	assert_non_null(f);
	assert_int_equal(report_json(&r, f), 0);
	fclose(f);
	assert_non_null(strstr(said, json));
	free(said);
	report_free(&r);
}

/* A thread that is behind a process that is another one each time, as those of a compiler, is so behind all of them. */
static void behind_many_in_turn(void **state)
{
	struct turns t = {.victim = 1, .behind = 6 * MS, .life = 2, .who = {"cc1"}, .pid0 = 4000};

	(void)state;
	must_be_told(&t, "\n  1. proxy-preempted    rank 1, process 101 ",
		     "\n     behind cc1, 40 processes\n     worst: its progress thread was ready",
		     "\n     first of all cc1[4001] 12.0 ms, cc1[400",
		     "\"culprit\": \"cc1, 40 processes\",\n   \"processes\": 40");
	t.who[1] = "ld";
	must_be_told(&t, "\n  1. proxy-preempted    rank 1, process 101 ",
		     "\n     behind 40 processes, mostly cc1\n", "\n     first of all ",
		     "\"processes\": 40");
	/* what is too little of all operations is so for all of them together */
	t.behind = 2 * MS;
	must_be_told(&t, NULL, NULL, NULL, "\"verdicts\": []");
	/* the job's own processes share CPUs by turns, as those of another communicator here */
	t = (struct turns){.victim = 1, .behind = 6 * MS, .life = 20, .who = {"job"}, .pid0 = 100};
	must_be_told(&t, NULL, NULL, NULL, "\"verdicts\": []");
}

/* One of them that is enough by itself is told of, and the rest if it is, too. */
static void behind_one_and_others(void **state)
{
	struct turns t = {
		.victim = 1, .behind = 6 * MS, .life = 2, .who = {"cc1"}, .pid0 = 4000, .same = 2};
	struct report_find **finds;
	struct report r;
	uint32_t n;

	(void)state;
	turns_run(&r, &t);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 2);
	assert_string_equal(names__text(r.names, finds[0]->key.culprit), "cc1, 20 processes");
	assert_string_equal(names__text(r.names, finds[1]->key.culprit), "cc1[77]");
	assert_int_equal(finds[1]->cost + finds[0]->cost, (TURN_OPS - 1) * 6 * MS);
	free(finds);
	report_free(&r);
	t.same = 3;
	must_be_told(&t, "\n  1. proxy-preempted    rank 1, process 101 ",
		     "\n     behind cc1[77]\n", "", "\"culprit\": \"cc1[77]\"\n");
}

/* A node's ranks are hit in turn, each of them by little. */
static void ranks_behind_many(void **state)
{
	struct turns t = {.victim = -1, .behind = 6 * MS, .life = 2, .who = {"cc1"}, .pid0 = 4000};

	(void)state;
	must_be_told(
		&t, "\n  1. proxy-preempted    4 ranks in turn ",
		"\n     behind cc1, 40 processes\n     worst: rank ", "\n     first of all rank ",
		"\"culprit\": \"cc1, 40 processes\",\n   \"processes\": 40,\n   \"ranks\": 4\n");
	/* by one that is worth nothing on any of them, but on all */
	t.same = 4;
	must_be_told(&t, "\n  1. proxy-preempted    4 ranks in turn ", "\n     behind cc1[77]\n",
		     "", "\"culprit\": \"cc1[77]\",\n   \"ranks\": 4\n");
	t.behind = 2 * MS;
	must_be_told(&t, NULL, NULL, NULL, "\"verdicts\": []");
}

/* Stragglers that take turns: each is late in a fourth of the operations. That one of them comes last by a little is usual. */
static void late_in_turn(void **state)
{
	struct turns t = {.victim = -1, .late = 20 * MS};

	(void)state;
	must_be_told(&t, "\n  1. late-rank          4 ranks in turn ", "\n     worst: rank ",
		     "\n     first of all rank ",
		     "\"culprit\": \"4 ranks in turn\",\n   \"ranks\": 4\n");
	t.late = 8 * MS;
	must_be_told(&t, NULL, NULL, NULL, "\"verdicts\": []");
	/* most of the time of short operations, and next to nothing of the job's */
	t.late = 20 * MS;
	t.lasts = 6 * TURN_OPS * 50 * MS;
	must_be_told(&t, NULL, NULL, NULL, "\"verdicts\": []");
	/* how exactly ranks meet, in a loop of nothing else */
	t = (struct turns){.victim = -1, .late = 80 * US, .took = 20 * US, .ops = 4000};
	must_be_told(&t, NULL, NULL, NULL, "\"verdicts\": []");
	/* what a rank costs that is told by itself is not theirs */
	t = (struct turns){
		.victim = -1, .late = 20 * MS, .took = MS, .same = 1, .main_late = 40 * MS};
	t.lasts = TURN_OPS * 180 * MS;
	must_be_told(&t, "\n  1. late-rank          rank 1, ", "came", "", "");
}

/* So it is beside another job, whatever that does meanwhile, and that is told by itself. */
static void late_in_turn_beside_another_job(void **state)
{
	static const char line[] = "\n  1. late-rank          4 ranks in turn of 0x5 ";
	struct turns t = {.victim = -1, .late = 20 * MS, .lasts = TURN_OPS * 50 * MS};
	struct report_find **finds;
	struct report r;
	char *said;
	uint32_t n;

	(void)state;
	/* of all operations it is less than half; and of all that was recorded less than a tenth */
	t.beside = 45 * MS;
	must_be_told(&t, line, "\n     worst: rank ", "\n     first of all rank ",
		     "\"commHash\": \"0x5\",\n   \"culprit\": \"4 ranks in turn\",\n   "
		     "\"ranks\": 4\n");
	t.beside = MS;
	t.beside_lasts = 20 * t.lasts;
	must_be_told(&t, line, "\n     worst: rank ", "\n     first of all rank ", "");
	/* too little of it */
	t = (struct turns){.victim = -1, .late = 8 * MS, .lasts = TURN_OPS * 50 * MS};
	t.beside = MS;
	must_be_told(&t, NULL, NULL, NULL, "\"verdicts\": []");
	/* both of them */
	t.late = 20 * MS;
	t.beside = 45 * MS;
	t.beside_late = 40 * MS;
	turns_run(&r, &t);
	finds = report_findings(&r, &n);
	assert_int_equal(n, 2);
	assert_int_equal(finds[0]->key.comm, 6);
	assert_int_equal(finds[0]->cost, (TURN_OPS - 1) * 40 * MS);
	assert_int_equal(finds[1]->key.comm, 5);
	assert_int_equal(finds[1]->cost, (TURN_OPS - 1) * 20 * MS);
	free(finds);
	said = text_of(&r);
	assert_non_null(strstr(said, "\n  2. late-rank          4 ranks in turn of 0x5 "));
	free(said);
	report_free(&r);
	/* those of both that are behind others */
	t = (struct turns){.victim = -1, .behind = 6 * MS, .life = 2, .who = {"cc1"}, .pid0 = 4000};
	t.beside = 45 * MS;
	must_be_told(&t, "\n  1. proxy-preempted    4 ranks in turn of 0x5 ",
		     "\n     behind cc1, 40 processes\n", "\n     first of all rank ", "");
}

/* A communicator of the two processes, of short operations to which one is late as a rule, comes to nothing. */
static void small_comm(struct report *r, struct report_proc **pair, uint64_t hash)
{
	uint64_t seq;
	int64_t at;

	report_comm(r, hash)->nranks = 2;
	for (seq = 0; seq < FEW_OPS; seq++) {
		at = (5000 + 50 * (int64_t)seq) * MS;
		group_part(r, pair[0], hash, 0, seq, at, at + MS);
		group_part(r, pair[1], hash, 1, seq, at + MS * 9 / 10, at + MS);
	}
}

/* Each group has an operation that was slow by nobody knows what, for 5 s in all, but 20 ms for anybody. */
static void nothing_in_many_groups(void **state)
{
	static struct report_proc *list[GROUPS * GROUP_OF + 2];
	struct report_find **finds;
	struct report r;
	uint32_t n;

	(void)state;
	groups_begin(&r, list, GROUPS * GROUP_OF + 2);
	groups_run(&r, list, 0);
	small_comm(&r, list, SMALL_COMM);
	/* these two are in nothing else */
	small_comm(&r, list + GROUPS * GROUP_OF, SMALL_COMM + 1);
	report_end(&r);
	assert_int_equal(r.totals.ops, GROUPS * GROUP_OPS + 2 * FEW_OPS);
	finds = report_findings(&r, &n);
	assert_non_null(finds);
	assert_int_equal(n, 0);
	free(finds);
	report_free(&r);
}

/* Of each rank so many operations in a communicator of its own. */
static void own_comms(struct report *r, struct report_proc **list, uint32_t n, uint32_t ops)
{
	uint32_t i;
	uint64_t seq;

	for (seq = 0; seq < ops; seq++) {
		for (i = 0; i < n; i++) {
			report_comm(r, 1000 + i)->nranks = 1;
			group_part(r, list[i], 1000 + i, 0, seq, (1000 + 50 * (int64_t)seq) * MS,
				   (1010 + 50 * (int64_t)seq) * MS);
		}
	}
	report_end(r);
}

/* There are as many kinds as there is memory for, and what is beyond that is counted. */
static void many_kinds(void **state)
{
	static struct report_proc *list[6000];
	struct report r;

	(void)state;
	groups_begin(&r, list, 6000);
	own_comms(&r, list, 6000, 2);
	assert_int_equal(HASH_COUNT(r.classes), 6000);
	assert_int_equal(r.totals.unjoined, 0);
	assert_int_equal(r.totals.ops, 12000);
	report_free(&r);
	groups_begin(&r, list, 100);
	r.kinds_room = 2 * 30 * sizeof(struct report_class);
	own_comms(&r, list, 100, 2);
	assert_int_equal(HASH_COUNT(r.classes), 30);
	assert_int_equal(r.totals.unjoined, 140);
	assert_true(r.kinds_bytes + r.typical_bytes <= r.kinds_room);
	report_free(&r);
	/* What is typical of those that there are takes no room from more of them. */
	groups_begin(&r, list, 100);
	r.kinds_room = 2 * 30 * sizeof(struct report_class);
	r.typical_bytes = r.kinds_room / 2;
	own_comms(&r, list, 100, 2);
	assert_int_equal(HASH_COUNT(r.classes), 30);
	report_free(&r);
}

/* Of one node, but not of one clock, as only some of its traces have been merged: their starts are not compared. */
static void beside_by_clock(void **state)
{
	struct report_proc own[3] = {
		{.node = 7, .clock = 7}, {.node = 7, .clock = 1}, {.node = 7, .clock = 7}};
	struct report_part some[3] = {{.proc = &own[0], .rank = 0, .start = 10},
				      {.proc = &own[1], .rank = 1, .start = 1000000},
				      {.proc = &own[2], .rank = 2, .start = 20}};
	struct report_part *list[3] = {&some[0], &some[1], &some[2]};
	struct report_op one = {.nparts = 3, .parts = list};

	(void)state;
	assert_int_equal(report_index(&one), 0);
	assert_int_equal(some[0].on_node.n, 3);
	assert_int_equal(some[0].on_clock.n, 2);
	assert_int_equal(some[0].on_both.n, 2);
	assert_int_equal(some[1].on_both.n, 1);
	assert_int_equal(some[0].last_start, 20);
	assert_int_equal(some[1].last_start, 1000000);
	assert_ptr_equal(report_part_of(&one, 2), &some[2]);
	assert_null(report_part_of(&one, 3));
	free(one.index);
}

/* Of more ranks than are compared, whatever the order of their clocks: no more are. */
static void beside_has_bounds(void **state)
{
	static struct report_proc own[2] = {{.node = 7, .clock = 9}, {.node = 7, .clock = 8}};
	static struct report_part some[REPORT_LATE + 100];
	static struct report_part *list[REPORT_LATE + 100];
	struct report_op one = {.nparts = REPORT_LATE + 100, .parts = list};
	int64_t late;
	double trust;
	uint32_t i;

	(void)state;
	for (i = 0; i < one.nparts; i++) {
		some[i] = (struct report_part){.proc = &own[i > 0],
					       .rank = (int32_t)i,
					       .start = 1000 + i % 7,
					       .stop = 2000,
					       .kernel = {.at = 1500}};
		list[i] = &some[i];
	}
	assert_int_equal(report_index(&one), 0);
	report_carry(&one);
	report_late(&one, &late, &trust);
	assert_in_range(late, 0, 7);
	report_late_kernel(&one, &late);
	assert_int_equal(late, 0);
	free(one.index);
}

/* What all kinds together hold until they have a median has its bounds, and is judged all the same. */
static void held_has_bounds(void **state)
{
	static struct report_proc *list[GROUPS * GROUP_OF];
	const struct report_class *k, *tmp;
	struct report_find **finds;
	struct report r;
	uint32_t n, i;

	(void)state;
	groups_begin(&r, list, GROUPS * GROUP_OF);
	r.held_room = 10 * GROUPS * GROUP_OF * (sizeof(struct report_part) + 64);
	groups_run(&r, list, 12 * MS);
	report_expire(&r, 100 * NSEC_PER_SEC);
	assert_true(r.held_bytes <= r.held_room);
	assert_true(r.classes->warm);
	report_end(&r);
	assert_int_equal(r.held_bytes, 0);
	n = 0;
	HASH_ITER (hh, r.classes, k, tmp) {
		assert_int_equal(k->time.n, GROUP_OPS);
		n += (uint32_t)k->all_slow;
	}
	assert_int_equal(n, GROUPS);
	finds = report_findings(&r, &n);
	assert_non_null(finds);
	assert_int_equal(n, 1);
	assert_int_equal(finds[0]->key.code, CODE_LATE_RANK);
	free(finds);
	report_free(&r);
	/* one that is larger than all there is room for */
	groups_begin(&r, list, GROUP_OF);
	r.held_room = sizeof(struct report_part);
	report_comm(&r, 7)->nranks = GROUP_OF;
	for (i = 0; i < GROUP_OF; i++)
		group_part(&r, list[i], 7, (int32_t)i, 1, 1000 * MS, 1010 * MS);
	report_end(&r);
	assert_int_equal(r.classes->time.n, 1);
	report_free(&r);
}

/* What never ended is kept to the end: of all communicators together there is room for so much, and what is beyond is counted. */
static void hung_has_bounds(void **state)
{
	static struct report_proc *list[100];
	const struct report_comm *c, *tmp;
	uint64_t kept = 0, hung = 0;
	struct report r;
	uint32_t i;

	(void)state;
	groups_begin(&r, list, 100);
	r.hung_room = 20 * 2 * sizeof(struct report_part);
	for (i = 0; i < 100; i++)
		hang(&r, list[i], 1000 + i, 90000 * MS);
	report_join_end(&r);
	assert_true(r.hung_bytes <= r.hung_room);
	HASH_ITER (hh, r.comms, c, tmp) {
		kept += c->hung != NULL;
		hung += c->classes->hung;
	}
	assert_true(kept >= 20 && kept < 40);
	assert_int_equal(hung, 100);
	assert_int_equal(kept + r.totals.hung_left, 100);
	/* one that hung before it takes its room, if there is enough */
	c = report_comm(&r, 1000);
	assert_non_null(c->hung);
	hang(&r, list[0], 1000, 80000 * MS);
	report_join_end(&r);
	assert_null(c->hung->next);
	r.hung_room = 0;
	hang(&r, list[0], 1000, 70000 * MS);
	report_join_end(&r);
	r.totals.hung_left--;
	report_end(&r);
	assert_int_equal(c->hung->parts[0]->start, 80000 * MS);
	assert_int_equal(kept + r.totals.hung_left, 100);
	report_free(&r);
}

/* What waits takes no more memory than there is room for, whatever is known of it; what does not wait for all ranks is counted. */
static void waiting_has_bounds(void **state)
{
	static struct report_proc *list[GROUP_OF];
	struct report r;
	uint64_t most_bytes = 0;
	char *text;
	uint32_t i;

	(void)state;
	groups_begin(&r, list, GROUP_OF);
	r.waiting_room = 100 * 1024;
	report_comm(&r, 7)->nranks = GROUP_OF;
	for (i = 0; i < 1000; i++) {
		group_part(&r, list[0], 7, 0, i, (1000 + i) * MS, (1001 + i) * MS);
		most_bytes = r.waiting_bytes > most_bytes ? r.waiting_bytes : most_bytes;
	}
	assert_true(most_bytes > 90 * 1024 && most_bytes <= r.waiting_room);
	/* a part alone: its figures, and the tables of what has come */
	assert_true(r.totals.hurried > 1000 - 60 && r.totals.hurried < 1000 - 40);
	assert_int_equal(r.npending, 1000 - r.totals.hurried);
	text = text_of(&r);
	assert_non_null(strstr(text, " operations did not wait for all ranks"));
	free(text);
	report_end(&r);
	assert_int_equal(r.waiting_bytes, 0);
	assert_int_equal(r.totals.ops, 1000);
	report_free(&r);
}

/* Children of operations that never come, in all files together, take no more memory than there is room for. */
static void children_have_bounds(void **state)
{
	struct report r = {.opt = {.silent = true}};
	char *text = NULL, *paths[2] = {NULL};
	FILE *f;
	size_t len;
	uint32_t i;

	(void)state;
	f = open_memstream(&text, &len);
	assert_non_null(f);
	fprintf(f, HEADER("1"));
	for (i = 0; i < 1000; i++)
		fprintf(f,
			"{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"parentObj\":"
			"\"0x%x\",\"start\":{\"ts\":10.000},\"stop\":{\"ts\":11.000},\"details\":"
			"{\"peer\":1,\"isSend\":true}}\n",
			i + 16);
	for (i = 0; i < 100; i++)
		fprintf(f,
			"{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"commHash\":"
			"\"0xabc\",\"rank\":0,\"start\":{\"ts\":%u.000},\"stop\":{\"ts\":%u.000},"
			"\"eventAddr\":\"0x%x\",\"details\":{\"func\":\"AllReduce\",\"seq\":%u}}\n",
			100 + i, 101 + i, i + 5000, i);
	fclose(f);
	paths[0] = trace_of(text, len);
	assert_int_equal(report_init(&r), 0);
	r.open_room = 50 * (REPORT_LINKS * sizeof(struct report_link));
	assert_int_equal(report_read(&r, paths), 0);
	report_end(&r);
	assert_int_equal(r.open_bytes, 0);
	assert_int_equal(r.totals.ops, 100);
	/* all but some 47, and the operations that did not wait for theirs */
	assert_true(r.totals.forgotten > 1000 - 50 && r.totals.forgotten < 1000 + 100);
	report_free(&r);
	/* with room for it, nothing is */
	memset(&r, 0, sizeof(r));
	assert_int_equal(report_init(&r), 0);
	assert_int_equal(report_read(&r, paths), 0);
	report_end(&r);
	assert_int_equal(r.totals.forgotten, 0);
	assert_int_equal(r.open_bytes, 0);
	report_free(&r);
	unlink(paths[0]);
	free(text);
}

/* There is room for so many ranks, of all communicators together; those beyond are judged, but nobody waits for them. */
static void members_have_bounds(void **state)
{
	static struct report_proc *list[GROUPS * GROUP_OF];
	struct report r;
	uint32_t n = 0;
	const struct report_comm *c, *tmp;
	char *text;

	(void)state;
	groups_begin(&r, list, GROUPS * GROUP_OF);
	r.members_room = 100 * GROUP_OF + 2;
	groups_run(&r, list, 0);
	report_end(&r);
	HASH_ITER (hh, r.comms, c, tmp)
		n += HASH_COUNT(c->members);
	assert_int_equal(n, r.members_room);
	assert_int_equal(r.nmembers, n);
	assert_int_equal(r.totals.ops, GROUPS * GROUP_OPS);
	assert_int_equal(r.totals.strangers, (GROUPS * GROUP_OF - n) * GROUP_OPS);
	text = text_of(&r);
	assert_non_null(strstr(text, "24880 lines are of ranks that are more than fit"));
	free(text);
	report_free(&r);
}

/* ---- What takes time ------------------------------------------------------------------------------------- */

#define MANY_COMMS   20000
#define MANY_WAITING 30000

/* A kind's communicator is not looked for among all others. */
static void json_of_many_comms(void **state)
{
	struct report_op_info info = {.bytes = 4096};
	struct report r = {0};
	FILE *null = fopen("/dev/null", "w");
	double began;

	(void)state;
	assert_non_null(null);
	assert_int_equal(report_init(&r), 0);
	info.func = names__get(r.names, "AllReduce", 9);
	for (info.comm = 1; info.comm <= MANY_COMMS; info.comm++)
		assert_non_null(report_class_of(&r, report_comm(&r, info.comm), &info));
	began = cpu_seconds();
	assert_int_equal(report_json(&r, null), 0);
	assert_true(cpu_seconds() - began < slower());
	fclose(null);
	report_free(&r);
}

/* Hashes of communicators are the trace's, as addresses are: however they are chosen, it takes no longer. */
static void chosen_ids(void **state)
{
	struct report r = {0};
	double took = 0;
	uint64_t hash = 1;
	int i;

	(void)state;
	assert_int_equal(report_init(&r), 0);
	for (i = 0; i < MANY_COMMS; i++) {
		hash = chosen_after(hash);
		took -= cpu_seconds();
		assert_non_null(report_comm(&r, hash));
		took += cpu_seconds();
	}
	assert_true(took < slower() / 2);
	report_free(&r);
}

/* As where the input has some nodes' traces only: operations wait, and are not looked through whenever time goes on. */
static void many_that_wait(void **state)
{
	static struct report_proc *list[2];
	struct report r;
	double began;
	uint32_t i;

	(void)state;
	groups_begin(&r, list, 2);
	report_comm(&r, 7)->nranks = 3;
	report_member(&r, report_comm(&r, 7), 1, list[1]);
	for (i = 0; i < MANY_WAITING; i++)
		group_part(&r, list[0], 7, 0, i, (1000 + i) * MS, (1001 + i) * MS);
	assert_int_equal(r.npending, MANY_WAITING);
	began = cpu_seconds();
	/* of rank 1 there is still nothing */
	for (i = 0; i < MANY_WAITING; i++)
		report_expire(&r, (40000 + i) * MS);
	assert_int_equal(r.npending, MANY_WAITING);
	assert_true(cpu_seconds() - began < slower());
	/* it comes to the last one; the first 8,999 wait for more than 90 s then */
	group_part(&r, list[1], 7, 1, MANY_WAITING - 1, MANY_WAITING * MS,
		   (1000 + MANY_WAITING) * MS);
	report_expire(&r, (70000 + i) * MS);
	assert_int_equal(r.npending, MANY_WAITING + 1 - 2 - 8999);
	report_end(&r);
	assert_int_equal(r.totals.ops, MANY_WAITING);
	report_free(&r);
}

/* From rank 0 to rank 1. */
static void end_of_message(struct report *r, struct report_proc *proc, int32_t rank)
{
	struct report_op_info info = {
		.comm = 7, .bytes = 4096, .p2p = true, .send = !rank, .peer = 1 - rank};
	struct report_part *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	info.func = names__printf(r->names, "%s", rank ? "Recv" : "Send");
	*p = (struct report_part){.proc = proc,
				  .rank = rank,
				  .start = 2000 * MS,
				  .stop = 2001 * MS,
				  .gap = -1,
				  .known = true};
	report_add_part(r, &info, p);
}

/* The last one of each rank comes when its recording has been read to the end, which may go on for long: its ranks meet all the same. */
static void last_ones_meet(void **state)
{
	static struct report_proc *list[2];
	struct report r;
	int rank;

	(void)state;
	groups_begin(&r, list, 2);
	report_comm(&r, 7)->nranks = 2;
	for (rank = 0; rank < 2; rank++) {
		list[rank]->last = (200000 + rank) * MS;
		report_expire(&r, list[rank]->last);
		group_part(&r, list[rank], 7, rank, 0, 1000 * MS, 1001 * MS);
	}
	report_expire(&r, 300000 * MS);
	assert_int_equal(r.totals.ops, 1);
	for (rank = 0; rank < 2; rank++) {
		list[rank]->last = (400000 + 2000 * rank) * MS;
		report_expire(&r, list[rank]->last);
		list[rank]->window = -1;
		end_of_message(&r, list[rank], rank);
	}
	report_expire(&r, 500000 * MS);
	assert_int_equal(r.totals.ops, 2);
	report_end(&r);
	report_free(&r);
}

#define MANY_OF_ONE  REPORT_PARTS
#define MANY_LACKING 20000

/* The real clock of one node is wrong by 120 s: of each operation its ranks come after nobody waits for them any more. */
static void real_clocks_far_apart(void **state)
{
	static struct report_proc *list[2];
	struct report r;
	int64_t at;
	int turn, i;

	(void)state;
	for (turn = 0; turn < 2; turn++) {
		groups_begin(&r, list, 2);
		list[1]->node = 8;
		list[1]->clock = turn ? 8 : 7;
		list[1]->offset = turn ? 120000 * MS : 0;
		for (i = 0; i < 3000; i++) {
			at = i * 100 * MS;
			report_comm(&r, 7)->nranks = 2;
			group_part(&r, list[0], 7, 0, (uint64_t)i, at, at + MS);
			if (!turn)
				group_part(&r, list[1], 7, 1, (uint64_t)i, at, at + MS);
			else if (i >= 1200)
				group_part(&r, list[1], 7, 1, (uint64_t)i - 1200, at - 120000 * MS,
					   at - 120000 * MS + MS);
			report_expire(&r, at);
		}
		report_end(&r);
		assert_int_equal(tells(&r, "Of 1800 operations ranks came when nobody waited "
					   "for them any more"),
				 turn);
		report_free(&r);
	}
}

/* Of more recordings than are read side by side: all of one rank's parts come when the other's have been waited with for too long. */
static void one_after_the_other(void **state)
{
	static struct report_proc *list[2];
	struct report r;
	int64_t at;
	int turn, i;

	(void)state;
	for (turn = 0; turn < 2; turn++) {
		groups_begin(&r, list, 2);
		report_comm(&r, 7)->nranks = 2;
		for (i = 0; i < 3000; i++) {
			at = i * 100 * MS;
			group_part(&r, list[0], 7, 0, (uint64_t)i, at, at + MS);
			if (!turn)
				group_part(&r, list[1], 7, 1, (uint64_t)i, at, at + MS);
			report_expire(&r, at);
		}
		for (i = 0; turn && i < 3000; i++)
			group_part(&r, list[1], 7, 1, (uint64_t)i, i * 100 * MS, i * 100 * MS + MS);
		report_end(&r);
		r.totals.one_by_one = true;
		assert_int_equal(r.totals.ops,
				 turn ? 2969 + 3000 : 3000); /* who is alone waits for 3 s */
		assert_int_equal(tells(&r, "Of 2969 operations ranks were read when nobody "
					   "waited for them any more"),
				 turn);
		report_free(&r);
	}
}

/* Of a communicator of four ranks two are here, of two clocks. What one of them has lost is nothing of their clocks. */
static void not_all_clocks_are_here(void **state)
{
	static struct report_proc *list[2];
	struct report r;
	int64_t at;
	char *text;
	int i;

	(void)state;
	groups_begin(&r, list, 2);
	list[1]->node = 8;
	list[1]->clock = 8;
	report_comm(&r, 7)->nranks = 4;
	for (i = 0; i < 3000; i++) {
		at = i * 100 * MS;
		group_part(&r, list[i & 1], 7, i & 1, (uint64_t)i, at, at + MS);
		if (i != 1000)
			group_part(&r, list[!(i & 1)], 7, !(i & 1), (uint64_t)i, at, at + MS);
		if (i % 3 == 0) { /* and another function, which counts by itself */
			group_of(&r, list[1], "AllGather", 7, 1, (uint64_t)i / 3, at, at + MS);
			group_of(&r, list[0], "AllGather", 7, 0, (uint64_t)i / 3, at, at + MS);
		}
		report_expire(&r, at);
	}
	report_end(&r);
	text = text_of(&r);
	assert_null(strstr(text, "ranks came when nobody waited"));
	assert_true(r.totals.too_late < r.totals.ops / 100);
	free(text);
	report_free(&r);
}

/* Operations of a large communicator that one rank only has a part in, which is open: no walk over all of its ranks for each. */
static void many_that_lack_ranks(void **state)
{
	static struct report_proc *list[2];
	struct report r;
	double began;
	int32_t i;

	(void)state;
	groups_begin(&r, list, 2);
	for (i = 0; i < MANY_OF_ONE; i++)
		report_member(&r, report_comm(&r, 7), i, list[i > 0]);
	began = cpu_seconds();
	for (i = 0; i < MANY_LACKING; i++)
		group_part(&r, list[0], 7, 0, (uint64_t)i, (1000 + i) * MS, (1001 + i) * MS);
	report_end(&r);
	assert_int_equal(r.totals.ops, MANY_LACKING);
	assert_true(cpu_seconds() - began < 2 * slower());
	report_free(&r);
}

/* All of two large communicators, one after the other: what a rank was held up by is forgotten with an operation that lacks one. */
static void forgotten_of_many(void **state)
{
	static struct report_proc *list[64];
	struct report_member *m;
	struct report_comm *c;
	struct report r;
	int32_t i;

	(void)state;
	groups_begin(&r, list, 64);
	c = report_comm(&r, 7);
	for (i = 0; i < 64; i++)
		report_member(&r, c, i, list[i]);
	for (i = 0; i < 64; i++)
		group_part(&r, list[i], 7, i, 1, 1000 * MS, 1010 * MS);
	report_member(&r, report_comm(&r, 8), 0, list[5]);
	report_expire(&r, 200000 * MS);
	assert_true(list[5]->has_ended && list[6]->has_ended);
	list[6]->lag = c->lag = 40 * MS;
	for (i = 0; i < 5; i++)
		group_part(&r, list[i], 7, i, 2, 201000 * MS, 201010 * MS);
	report_expire(&r, 400000 * MS);
	assert_false(list[0]->has_ended);
	assert_int_equal(list[0]->lag, 40 * MS);
	/* who has not come yet is told when it comes to another one */
	group_part(&r, list[5], 8, 0, 1, 401000 * MS, 401010 * MS);
	report_expire(&r, 600000 * MS);
	assert_int_equal(list[5]->lag, 40 * MS);
	m = report_member_of(c, 5);
	assert_int_equal(m->forgot, c->forgot);
	assert_int_equal(report_member_of(c, 7)->forgot + 1, c->forgot);
	report_end(&r);
	report_free(&r);
}

/* A rank that a signal ended, and one that took its place. */
static void killed_members(void **state)
{
	static struct report_proc *list[3];
	struct report_comm *c;
	struct report r;

	(void)state;
	groups_begin(&r, list, 3);
	c = report_comm(&r, 7);
	report_member(&r, c, 0, list[0]);
	report_member(&r, c, 1, list[1]);
	report_killed(list[1], true);
	report_killed(list[1], true);
	assert_int_equal(c->killed, 1);
	list[2]->self = list[1]; /* another recording of it */
	report_member(&r, c, 1, list[2]);
	assert_int_equal(c->killed, 0);
	report_killed(list[2], true);
	report_member(&r, report_comm(&r, 8), 0, list[2]);
	assert_int_equal(c->killed + report_comm(&r, 8)->killed, 2);
	report_free(&r);
}

#define RESTARTS 70

/* Of a rank that is restarted again and again the last processes are told apart, in whatever order they come. */
static void lives_have_bounds(void **state)
{
	static struct report_proc *list[RESTARTS];
	const struct report_member *m;
	struct report_comm *c;
	struct report r;
	uint32_t i, n;
	int back;

	(void)state;
	for (back = 0; back < 2; back++) {
		groups_begin(&r, list, RESTARTS);
		c = report_comm(&r, 7);
		for (i = 0; i < RESTARTS; i++)
			list[i]->first = (i + 1) * MS;
		for (i = 0; i < RESTARTS; i++)
			report_member(&r, c, 0, list[back ? RESTARTS - 1 - i : i]);
		for (m = report_member_of(c, 0), n = 0; m; m = m->before, n++)
			assert_ptr_equal(m->proc, list[RESTARTS - 1 - n]);
		assert_int_equal(n, 64);
		assert_int_equal(r.nmembers, n);
		assert_int_equal(HASH_COUNT(c->members), 1);
		report_killed(list[0], true); /* of which nothing is known any more */
		assert_int_equal(c->killed, 0);
		report_killed(list[RESTARTS - 1], true);
		report_killed(list[RESTARTS - 64], true);
		assert_int_equal(c->killed, 2);
		report_member(&r, c, 0, list[0]);
		assert_int_equal(c->killed, 2);
		assert_int_equal(r.nmembers, n);
		report_free(&r);
	}
}

/* Where no communicator is known, processes that have one rank are not one after the other. */
static void no_lives_of_the_unknown(void **state)
{
	static struct report_proc *list[2];
	struct report_comm *c;
	struct report r;

	(void)state;
	groups_begin(&r, list, 2);
	c = report_comm(&r, 0);
	list[0]->first = MS;
	list[1]->first = 2 * MS;
	report_member(&r, c, 0, list[0]);
	report_member(&r, c, 0, list[1]);
	assert_ptr_equal(report_member_of(c, 0)->proc, list[0]);
	assert_null(report_member_of(c, 0)->before);
	assert_false(c->restarted);
	assert_int_equal(r.nmembers, 1);
	report_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_unknown),
		cmocka_unit_test(a_late_rank),
		cmocka_unit_test(late_for_nobody),
		cmocka_unit_test(short_ones),
		cmocka_unit_test(what_a_late_rank_did_before),
		cmocka_unit_test(clocks_of_nodes_do_not_compare),
		cmocka_unit_test(of_two_nodes_nobody_knows_who),
		cmocka_unit_test(clocks_that_were_merged),
		cmocka_unit_test(clocks_that_were_merged_badly),
		cmocka_unit_test(merged_in_part),
		cmocka_unit_test(preempted_by_others),
		cmocka_unit_test(ranks_that_share_cpus),
		cmocka_unit_test(a_pid_in_a_container),
		cmocka_unit_test(preempted_while_it_waits),
		cmocka_unit_test(many_others),
		cmocka_unit_test(blocked_throttled_stopped),
		cmocka_unit_test(interrupts),
		cmocka_unit_test(carried),
		cmocka_unit_test(carried_and_asleep),
		cmocka_unit_test(held_up),
		cmocka_unit_test(short_parts),
		cmocka_unit_test(lost_segments),
		cmocka_unit_test(lost_by_others),
		cmocka_unit_test(lost_tails),
		cmocka_unit_test(late_confirmations),
		cmocka_unit_test(late_confirmations_of_preempted),
		cmocka_unit_test(limits_of_flows),
		cmocka_unit_test(a_slow_gpu_of_a_receiver),
		cmocka_unit_test(queues),
		cmocka_unit_test(the_gpu),
		cmocka_unit_test(steps_wait_in_turn),
		cmocka_unit_test(a_gpu_without_data),
		cmocka_unit_test(a_gpu_without_threads),
		cmocka_unit_test(ports_of_an_operation),
		cmocka_unit_test(ports_and_other_causes),
		cmocka_unit_test(names_of_counters),
		cmocka_unit_test(ports_of_nodes),
		cmocka_unit_test(map_in_any_order),
		cmocka_unit_test(attempts_in_any_order),
		cmocka_unit_test(windows_of_a_day),
		cmocka_unit_test(spans_that_are_told),
		cmocka_unit_test(spans_have_bounds),
		cmocka_unit_test(ports_have_bounds),
		cmocka_unit_test(late_at_the_end),
		cmocka_unit_test(a_slow_port),
		cmocka_unit_test(a_busy_thread),
		cmocka_unit_test(the_kernel),
		cmocka_unit_test(called_before_the_kernel),
		cmocka_unit_test(what_follows_from_a_late_rank),
		cmocka_unit_test(gpu_of_another),
		cmocka_unit_test(kernel_of_another),
		cmocka_unit_test(losses_lower_the_confidence),
		cmocka_unit_test(what_else_lowers_the_confidence),
		cmocka_unit_test(stopped_between_operations),
		cmocka_unit_test(never_ended),
		cmocka_unit_test(crashed_and_the_others_ended),
		cmocka_unit_test(exited_and_the_others_ended),
		cmocka_unit_test(quantiles_are_within_their_error),
		cmocka_unit_test(ranks_of_one_file_are_joined),
		cmocka_unit_test(replays),
		cmocka_unit_test(late_beside_untimed),
		cmocka_unit_test(timed_by_others),
		cmocka_unit_test(untimed_beside_timed),
		cmocka_unit_test(who_is_not_here),
		cmocka_unit_test(own_troubles_of_a_part),
		cmocka_unit_test(slower_than_is_asked_for),
		cmocka_unit_test(reset_between_operations),
		cmocka_unit_test(who_has_reset),
		cmocka_unit_test(crashed_between_operations),
		cmocka_unit_test(ended_otherwise),
		cmocka_unit_test(exited_between_operations),
		cmocka_unit_test(crash_or_reset),
		cmocka_unit_test(killed_then_reset),
		cmocka_unit_test(a_harmless_reset),
		cmocka_unit_test(failed_beside_another_job),
		cmocka_unit_test(exited_with_others_under_way),
		cmocka_unit_test(exited_after_a_reset),
		cmocka_unit_test(waits_of_what_hangs),
		cmocka_unit_test(nothing_in_what_is_left),
		cmocka_unit_test(bandwidths_have_figures),
		cmocka_unit_test(senders),
		cmocka_unit_test(ended_while_nothing_moved),
		cmocka_unit_test(kernels_log),
		cmocka_unit_test(kernels_log_names),
		cmocka_unit_test(gpus_that_are_slow),
		cmocka_unit_test(gpus_of_an_earlier_attempt),
		cmocka_unit_test(gpus_of_the_window_before),
		cmocka_unit_test(gpus_of_many_recordings),
		cmocka_unit_test(gpus_in_all),
		cmocka_unit_test(links_have_a_direction),
		cmocka_unit_test(held_up_and_late),
		cmocka_unit_test(evidence_is_defused),
		cmocka_unit_test(evidence_is_cut),
		cmocka_unit_test(evidence_is_wrapped),
		cmocka_unit_test(lines_fit),
		cmocka_unit_test(jobs_side_by_side),
		cmocka_unit_test(two_of_one_size),
		cmocka_unit_test(many_ranks),
		cmocka_unit_test(called_ahead),
		cmocka_unit_test(carried_into_another),
		cmocka_unit_test(ended_later_by_another),
		cmocka_unit_test(late_for_another),
		cmocka_unit_test(late_beside_what_is_told),
		cmocka_unit_test(ranks_have_one_name),
		cmocka_unit_test(windows_of_one_process),
		cmocka_unit_test(windows_of_a_pid),
		cmocka_unit_test(a_pid_twice),
		cmocka_unit_test(copies),
		cmocka_unit_test(many_of_a_pid),
		cmocka_unit_test(windows_and_all),
		cmocka_unit_test(open_and_then_finished),
		cmocka_unit_test(silent_proxy_ops),
		cmocka_unit_test(open_and_then_the_next),
		cmocka_unit_test(missing_after_a_restart),
		cmocka_unit_test(elsewhere_after_a_restart),
		cmocka_unit_test(killed_in_an_earlier_life),
		cmocka_unit_test(numbers_of_old_nccl),
		cmocka_unit_test(nobody_is_missing_by_old_numbers),
		cmocka_unit_test(stopped_by_old_numbers),
		cmocka_unit_test(reset_by_old_numbers),
		cmocka_unit_test(first_reset_by_old_numbers),
		cmocka_unit_test(stopped_while_it_hangs_by_old_numbers),
		cmocka_unit_test(open_elsewhere_and_then_the_next),
		cmocka_unit_test(open_where_file_breaks_off),
		cmocka_unit_test(asleep_where_file_breaks_off),
		cmocka_unit_test(only_hangs),
		cmocka_unit_test(open_where_reading_ends),
		cmocka_unit_test(recordings_without_an_end),
		cmocka_unit_test(never_came),
		cmocka_unit_test(many_never_came),
		cmocka_unit_test(many_were_stopped),
		cmocka_unit_test(where_it_sleeps),
		cmocka_unit_test(nothing_moves),
		cmocka_unit_test(operations_are_left_out),
		cmocka_unit_test(nothing_moves_in_another_job),
		cmocka_unit_test(nothing_moves_in_two_jobs),
		cmocka_unit_test(a_call_is_not_known_yet),
		cmocka_unit_test(what_there_is),
		cmocka_unit_test(torn_lines_are_skipped),
		cmocka_unit_test(other_profilers_traces),
		cmocka_unit_test(hostile_proxy_ops),
		cmocka_unit_test(hostile_values),
		cmocka_unit_test(hostile_sums),
		cmocka_unit_test(mutations),
		cmocka_unit_test(thousands_of_ranks),
		cmocka_unit_test(late_in_one_group),
		cmocka_unit_test(late_of_several_ranks),
		cmocka_unit_test(behind_many_in_turn),
		cmocka_unit_test(behind_one_and_others),
		cmocka_unit_test(ranks_behind_many),
		cmocka_unit_test(late_in_turn),
		cmocka_unit_test(late_in_turn_beside_another_job),
		cmocka_unit_test(nothing_in_many_groups),
		cmocka_unit_test(many_that_hang),
		cmocka_unit_test(groups_that_are_alike),
		cmocka_unit_test(many_kinds),
		cmocka_unit_test(beside_by_clock),
		cmocka_unit_test(beside_has_bounds),
		cmocka_unit_test(held_has_bounds),
		cmocka_unit_test(hung_has_bounds),
		cmocka_unit_test(waiting_has_bounds),
		cmocka_unit_test(children_have_bounds),
		cmocka_unit_test(members_have_bounds),
		cmocka_unit_test(json_of_many_comms),
		cmocka_unit_test(chosen_ids),
		cmocka_unit_test(many_that_wait),
		cmocka_unit_test(last_ones_meet),
		cmocka_unit_test(real_clocks_far_apart),
		cmocka_unit_test(one_after_the_other),
		cmocka_unit_test(not_all_clocks_are_here),
		cmocka_unit_test(many_that_lack_ranks),
		cmocka_unit_test(forgotten_of_many),
		cmocka_unit_test(killed_members),
		cmocka_unit_test(lives_have_bounds),
		cmocka_unit_test(no_lives_of_the_unknown),
	};

	log_level = LOG_ERR;
	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
