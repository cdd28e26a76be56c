// SPDX-License-Identifier: BSD-2-Clause
/* loader/find/follow.c: processes and threads whose end the ring does not tell. What BPF and the pipeline are asked for is seen here. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "attach.h"
#include "log.h"
#include "pipeline.h"
#include "recorder.h"

#define S UINT64_C(1000000000)

static uint64_t ring_full;
static struct scope_proc_stat stat;
static int asked;	      /* for that */
static struct input_end told; /* tgid 0: nothing was */
static uint32_t forgotten, unwatched;
static struct input_proc placed;  /* in time, as it was told last */
static int outside;		  /* chunks of the kind that were fed */
static struct scope_ev_chunk fed; /* the last of them */
static struct input_still still;  /* tid 0: nothing was told of a thread */

uint64_t __wrap_attach__stat(const struct attach *a, uint32_t which);
int __wrap_attach__proc_stat(const struct attach *a, uint32_t tgid, struct scope_proc_stat *s);
void __wrap_attach__proc_forget(struct attach *a, uint32_t tgid);
bool __wrap_attach__watch(struct attach *a, uint32_t tgid, bool on);
int __wrap_pipeline__feed(struct session *s, enum input_kind kind, const void *data, size_t size);

uint64_t __wrap_attach__stat(const struct attach *a, uint32_t which)
{
	(void)a;
	return which == SCOPE_STAT_RING_FULL ? ring_full : 0;
}

int __wrap_attach__proc_stat(const struct attach *a, uint32_t tgid, struct scope_proc_stat *s)
{
	(void)a;
	(void)tgid;
	asked++;
	*s = stat;
	return stat.start_ns ? 0 : -ENOENT;
}

void __wrap_attach__proc_forget(struct attach *a, uint32_t tgid)
{
	(void)a;
	forgotten = tgid;
}

bool __wrap_attach__watch(struct attach *a, uint32_t tgid, bool on)
{
	(void)a;
	unwatched = on ? 0 : tgid;
	return true;
}

int __wrap_pipeline__feed(struct session *s, enum input_kind kind, const void *data, size_t size)
{
	(void)s;
	if (kind == INPUT_PROC)
		memcpy(&placed, data, sizeof(placed));
	outside += kind == INPUT_OUTSIDE;
	if (kind == INPUT_OUTSIDE)
		memcpy(&fed, data, sizeof(fed));
	if (kind == INPUT_STILL) {
		memcpy(&still, data, sizeof(still));
		return 0;
	}
	if (kind == INPUT_PROC || kind == INPUT_RING || kind == INPUT_OUTSIDE)
		return 0;
	assert_int_equal(kind, INPUT_END);
	assert_int_equal(size, sizeof(told));
	memcpy(&told, data, size);
	return 0;
}

static uint32_t wanted;
static int want_err = -ESRCH; /* it has just ended */
static uint64_t attached_ns;

int __wrap_target__want(struct target *t, uint32_t owner, uint32_t mask, uint64_t flush_ticks);
int __wrap_target__age(struct target *t, uint64_t flush_ticks);
int __wrap_target__comms(struct target *t, void (*fn)(void *arg, const struct scope_comm *comm),
			 void *arg);
uint64_t __wrap_scan__attached_ns(const struct recorder *rec, const struct target *t);

int __wrap_target__comms(struct target *t, void (*fn)(void *arg, const struct scope_comm *comm),
			 void *arg)
{
	(void)t;
	(void)fn;
	(void)arg;
	return 0;
}

uint64_t __wrap_scan__attached_ns(const struct recorder *rec, const struct target *t)
{
	(void)rec;
	(void)t;
	return attached_ns;
}

int __wrap_target__want(struct target *t, uint32_t owner, uint32_t mask, uint64_t flush_ticks)
{
	(void)t;
	(void)owner;
	(void)mask;
	(void)flush_ticks;
	wanted++;
	return want_err;
}

int __wrap_target__age(struct target *t, uint64_t flush_ticks)
{
	(void)t;
	(void)flush_ticks;
	return 0;
}

/* What lies in each buffer now; and what threads without one have lost. */
static struct scope_ev_chunk lies;
static uint64_t unbuffered;
static int areas_read;

int __wrap_target__read_tbufs(struct target *t, struct target_read *reads, int n);
void __wrap_attach__drain(struct attach *a);
uint64_t __wrap_attach__known_ns(const struct attach *a);
bool __wrap_clock_fit__covers(const struct clock_fit *fit, uint64_t ns);

int __wrap_target__read_tbufs(struct target *t, struct target_read *reads, int n)
{
	(void)t;
	for (; n; n--, reads++) {
		reads->chunk = calloc(1, sizeof(lies) + lies.len);
		assert_non_null(reads->chunk);
		*reads->chunk = lies;
		if (reads->tbuf)
			continue;
		*reads->chunk = (struct scope_ev_chunk){.lost_cnt = unbuffered,
							.reason = SCOPE_FLUSH_OUTSIDE};
		areas_read++;
	}
	return 0;
}

/* What was missing of it comes through the ring; NULL: nothing does. And up to when all that was there is known to have come. */
static struct stream *comes_in;
static uint64_t known_ns;
static int drains;

void __wrap_attach__drain(struct attach *a)
{
	(void)a;
	drains++;
	if (comes_in) {
		comes_in->pos = lies.pos;
		comes_in->rec_pos = lies.rec_pos;
		comes_in->host_tid = 9; /* another thread has it, and handed that in */
	}
}

uint64_t __wrap_attach__known_ns(const struct attach *a)
{
	(void)a;
	return known_ns;
}

bool __wrap_clock_fit__covers(const struct clock_fit *fit, uint64_t ns)
{
	(void)fit;
	(void)ns;
	return true;
}

static struct recorder r;
static struct proc p;
static pid_t child;

/* One process, recorded and alive; pids are as its own namespace has them. */
static int setup(void **state)
{
	(void)state;
	memset(&r, 0, sizeof(r));
	memset(&p, 0, sizeof(p));
	memset(&told, 0, sizeof(told));
	forgotten = unwatched = 0;
	ring_full = unbuffered = 0;
	stat = (struct scope_proc_stat){.start_ns = 5, .lost_recs = 3};
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	p.key = (struct proc_key){.start_ns = 5, .tgid = 4711};
	p.target.pid = child;
	p.unbuffered_known = true; /* and none is lost */
	HASH_ADD(hh, r.s.procs, key, sizeof(p.key), &p);
	return child > 0 ? 0 : -1;
}

static void end_child(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	child = 0;
}

static int teardown(void **state)
{
	(void)state;
	HASH_CLEAR(hh, r.s.procs);
	if (child)
		end_child();
	return 0;
}

static void test_gone(void **state)
{
	(void)state;
	follow__reap(&r, 10 * S, true, false);
	follow__reap(&r, 20 * S, true, false);
	end_child();
	follow__reap(&r, 30 * S, true, false);
	follow__reap(&r, 31 * S, true, false); /* what told of it may be on its way */
	follow__reap(&r, 33 * S, false, false);
	assert_int_equal(told.tgid, 0);
	follow__reap(&r, 34 * S, true, false);
	assert_int_equal(told.tgid, 4711);
	assert_int_equal(told.start_ns, 5);
	assert_int_equal(told.lost_recs, 3);
	assert_int_equal(told.unseen, 1);
	assert_int_equal(forgotten, 4711);
	assert_int_equal(unwatched, 4711);
}

/* All that could tell of it has come. One that went after that did so after the recording. */
static void test_gone_at_last(void **state)
{
	(void)state;
	follow__reap(&r, 10 * S, true, false);
	end_child();
	follow__reap(&r, 11 * S, true, true);
	assert_int_equal(told.tgid, 0);
	follow__reap(&r, 11 * S + 1, true, false);
	follow__reap(&r, 11 * S + 2, true, true);
	assert_int_equal(told.tgid, 4711);
	assert_int_equal(told.unseen, 1);
}

/* BPF has never heard of it, or of another one only. */
static void test_gone_unknown(void **state)
{
	(void)state;
	stat.start_ns = 6;
	end_child();
	follow__reap(&r, 30 * S, true, false);
	follow__reap(&r, 33 * S, true, false);
	assert_int_equal(told.tgid, 4711);
	assert_int_equal(told.lost_recs, 0);
	assert_int_equal(told.unseen, 1);
}

/* It waits for other threads' last records, or was never reached: the pid of such a one is not known. */
static void test_not_asked(void **state)
{
	(void)state;
	end_child();
	p.ended_ns = 1;
	follow__reap(&r, 30 * S, true, false);
	follow__reap(&r, 33 * S, true, false);
	p.ended_ns = 0;
	p.target.pid = 0;
	follow__reap(&r, 40 * S, true, false);
	follow__reap(&r, 43 * S, true, true);
	assert_int_equal(told.tgid, 0);
}

static void test_no_room(void **state)
{
	(void)state;
	ring_full = 1;
	stat.ended = SCOPE_ENDED_EXIT;
	stat.code = 9;
	follow__reap(&r, 10 * S, true, false);
	assert_int_equal(told.tgid, 0);
	follow__reap(&r, 11 * S, true, false);
	assert_int_equal(told.tgid, 4711);
	assert_int_equal(told.status, 9);
	assert_int_equal(told.unseen, 0);
	assert_int_equal(unwatched, 0);
}

static int task_err;
static struct scope_task task;
static bool begins_anew; /* as the ring is read */

int __wrap_attach__task(const struct attach *a, uint32_t tid, struct scope_task *to);

int __wrap_attach__task(const struct attach *a, uint32_t tid, struct scope_task *to)
{
	(void)a;
	assert_int_equal(tid, 4712);
	*to = task;
	return begins_anew && drains ? 0 : task_err;
}

static void ask(void)
{
	memset(&still, 0, sizeof(still));
	drains = 0;
	follow__ask_sleepers(&r);
}

/* BPF has forgotten a thread, and its end has not come: if it will, then soon. */
static void test_thread_gone(void **state)
{
	const struct scope_ev_thread e = {
		.start_ns = 5, .tgid = 4711, .tid = 4712, .state = SCOPE_TASK_RUN};
	struct sched_thread *t;

	(void)state;
	assert_int_equal(sched__init(&r.s.sched, 1), 0);
	sched__thread(&r.s.sched, &e);
	t = sched__find(&r.s.sched, 4712);
	known_ns = UINT64_MAX;
	task_err = -ENOENT;
	ask();
	ask();
	assert_int_equal(still.tid, 0);
	task_err = 0;
	task = (struct scope_task){.tid = 4712, .seq = 7, .state = SCOPE_TASK_BLOCKED};
	ask();
	assert_true(still.tid == 4712 && still.seq == 7 && !still.gone);
	task_err = -ENOENT;
	ask();
	assert_int_equal(still.tid, 0);
	t->missed_ns -= 3 * S;
	known_ns = 0; /* it may lie in the ring */
	ask();
	assert_int_equal(still.tid, 0);
	known_ns = UINT64_MAX;
	begins_anew = true; /* and its number is another's */
	ask();
	assert_int_equal(still.tid, 0);
	begins_anew = false;
	task_err = -EAGAIN;
	ask();
	assert_int_equal(still.tid, 0);
	task_err = -ENOENT;
	ask();
	t->missed_ns -= 3 * S;
	ask();
	assert_true(still.tid == 4712 && !still.seq && still.gone);
	known_ns = 0;
	sched__free(&r.s.sched);
}

/* The first that comes of it. */
static void comes(void)
{
	static const struct scope_ev_chunk c = {.h = {.abi = SCOPE_ABI,
						      .kind = SCOPE_EV_CHUNK,
						      .size = sizeof(c),
						      .start_ns = 5,
						      .tgid = 4711}};
	static char who[] = "";

	p.who.text = who;
	follow__record(&r, &c, sizeof(c));
}

/* Sockets that it has open are looked for when it comes, in all files of the node; a loss opens none. */
static void test_looks_once(void **state)
{
	(void)state;
	wanted = 0;
	comes();
	assert_int_equal(wanted, 1);
	assert_true(r.look);
	r.look = false;
	p.lost[LOSS_RING_FULL] = 7;
	follow__relearn(&r, &p);
	assert_int_equal(wanted, 2);
	assert_false(r.look);
	follow__relearn(&r, &p);
	assert_int_equal(wanted, 2);
}

/* The copy of its file, which is attached to later, is not what it has: after a loss it is still seen from its start on. */
static void test_placed_once(void **state)
{
	(void)state;
	p.from_start = true;
	p.begin_ns = 5;
	want_err = 0;
	attached_ns = 3;
	comes();
	assert_true(placed.flags & INPUT_FROM_START);
	attached_ns = 9;
	p.lost[LOSS_RING_FULL] = 7;
	follow__relearn(&r, &p);
	assert_true(placed.flags & INPUT_FROM_START);
	assert_int_equal(placed.begin_ns, 5);
	want_err = -ESRCH;
}

/*
 * What lies behind a gap is left while the ring may have what was there before; also where only parts of steps are missing, whose bytes
 * were read from outside already. Once that has come in, it fits, or what is missing is lost.
 */
static void test_outside_behind_gap(void **state)
{
	struct stream st = {.tbuf = 1, .outside = true};
	static const struct {
		uint64_t pos, rec_pos;
		uint32_t len;
		int behind;
	} at[] = {{64, 2, 24, 0}, {32, 1, 56, 0}, {64, 2, 0, 0},
		  {64, 5, 0, 1},  {88, 3, 24, 1}, {64, 5, 24, 1}};
	size_t i;

	(void)state;
	p.id = (struct scope_ev_hdr){.abi = SCOPE_ABI, .start_ns = 5, .tgid = 4711};
	HASH_ADD(hh, p.streams, tbuf, sizeof(st.tbuf), &st);
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		st.pos = 64;
		st.rec_pos = 2;
		st.host_tid = 8;
		stat.limited_recs = 4;
		outside = 0;
		lies = (struct scope_ev_chunk){
			.tbuf = 1, .pos = at[i].pos, .rec_pos = at[i].rec_pos, .len = at[i].len};
		comes_in = NULL;
		known_ns = 0;
		assert_int_equal(follow__read_outside(&r, S, 0, false), at[i].behind);
		assert_int_equal(outside, !at[i].behind);
		assert_int_equal(follow__read_outside(&r, S, 0, true), 0);
		assert_int_equal(outside, 1 + !at[i].behind);
		known_ns = UINT64_MAX;
		assert_int_equal(follow__read_outside(&r, S, 0, false), 0);
		assert_int_equal(outside, 2 + !at[i].behind);
		comes_in = &st;
		known_ns = 0;
		assert_int_equal(follow__read_outside(&r, S, 0, false), 0);
		assert_int_equal(outside, 3 + !at[i].behind);
		assert_int_equal(fed.h.tid, 9);
		assert_int_equal(fed.limited_recs, 4);
	}
	HASH_CLEAR(hh, p.streams);
}

/* What BPF knows of a process is asked for once, however many buffers it has. */
static void test_outside_asks_once(void **state)
{
	struct stream st[3] = {{.tbuf = 1}, {.tbuf = 2}, {.tbuf = 3}};
	int i;

	(void)state;
	p.id = (struct scope_ev_hdr){.abi = SCOPE_ABI, .start_ns = 5, .tgid = 4711};
	for (i = 0; i < 3; i++)
		HASH_ADD(hh, p.streams, tbuf, sizeof(st[i].tbuf), &st[i]);
	lies = (struct scope_ev_chunk){.tbuf = 2};
	stat.limited_recs = 6;
	comes_in = NULL;
	asked = outside = 0;
	follow__read_outside(&r, S, 0, true);
	assert_int_equal(outside, 3);
	assert_int_equal(fed.limited_recs, 6);
	assert_int_equal(asked, 1);
	HASH_CLEAR(hh, p.streams);
}

/* What threads without a buffer have lost is asked for where none hands in one that would tell of it, and fed when it is news. */
static void test_unbuffered(void **state)
{
	struct stream st = {.tbuf = 1};

	(void)state;
	p.id = (struct scope_ev_hdr){.abi = SCOPE_ABI, .start_ns = 5, .tgid = 4711, .tid = 4711};
	lies = (struct scope_ev_chunk){.tbuf = 1};
	outside = areas_read = 0;
	p.unbuffered_known = false;
	follow__read_outside(&r, S, 0, true); /* where we begin */
	assert_int_equal(areas_read, 1);
	assert_int_equal(outside, 1);
	assert_int_equal(fed.tbuf, 0);
	assert_int_equal(fed.h.kind, SCOPE_EV_CHUNK);
	assert_int_equal(fed.h.size, sizeof(fed));
	assert_int_equal(fed.h.tgid, 4711);
	p.unbuffered_known = true;
	follow__read_outside(&r, S, 0, true);
	assert_int_equal(areas_read, 2);
	assert_int_equal(outside, 1);
	unbuffered = 3;
	follow__read_outside(&r, S, 0, true);
	assert_int_equal(outside, 2);
	assert_int_equal(fed.lost_cnt, 3);
	st.seen_ns = 10 * S; /* this one tells */
	HASH_ADD(hh, p.streams, tbuf, sizeof(st.tbuf), &st);
	follow__read_outside(&r, 10 * S + 1, S, true);
	assert_int_equal(areas_read, 3);
	follow__read_outside(&r, 12 * S, S, true);
	assert_int_equal(areas_read, 4);
	assert_int_equal(outside, 4);
	HASH_CLEAR(hh, p.streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_at_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_looks_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_placed_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outside_behind_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outside_asks_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unbuffered, setup, teardown),
	};

	log_level = LOG_ERR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
