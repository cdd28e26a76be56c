// SPDX-License-Identifier: BSD-2-Clause
/* Inputs to traces by a thread of its own; see digest.h. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "backlog.h"
#include "clock.h"
#include "correlate.h"
#include "digest.h"
#include "log.h"
#include "notify.h"
#include "out.h"
#include "pace.h"
#include "pid_stat.h"
#include "pipeline.h"
#include "progress.h"
#include "rescue.h"
#include "status_self.h"
#include "thread.h"

#define TURN_NS	     (50 * 1000000ull)
#define PAUSE_NS     1000000L
#define LIFT_NS	     8000000L  /* a fifth of a CPU, with PAUSE_MAX_NS */
#define PAUSE_MAX_NS 32000000L /* each look takes a CPU from the job, too */
#define TRIM_NS	     NSEC_PER_SEC

/*
 * malloc_trim() gives back what is free in a thread's arena, but not the end of it: free() does, from a size on that grows with
 * the largest block that was freed, to 64 MiB. These two stay as they are set.
 */
#define HEAP_END_BYTES	 (1 << 20)
#define HEAP_BLOCK_BYTES (1 << 20) /* from this size on a mapping, no part of an arena */

/* What is put besides inputs: questions, which are answered in their turn, and the end. */
enum { ASK_SETTLED = INPUT_KINDS + 1, ASK_STATUS, ASK_END };

struct settled_question {
	uint64_t now_ns, quiet_ns;
	uint32_t nr;
};

struct digest {
	struct backlog *backlog;
	int dir; /* of its file; -1: none */
	uint64_t backlog_max;
	pthread_t thread;
	bool started, ended;

	/* The thread's, until it has ended. */
	struct session s;
	char *status; /* what it told last; freed when it is asked again */
	uint64_t next_trim_ns;

	/* The thread's word to the other. */
	struct pace pace; /* set before `ready` */
	atomic_bool ready;
	_Atomic uint32_t settled_nr; /* the newest question whose answer was yes */
	_Atomic uint32_t answered;   /* of questions for the status */
	_Atomic uint64_t heap;	     /* bytes; when it was asked for that last */

	/* The other's, who puts. */
	uint32_t settled_asked, asked;
	uint64_t next_turn_ns;
	void (*waits)(void *arg);
	void *arg;
};

/* ---- The thread ---------------------------------------------------------------------------------- */

static bool all_settled(const struct session *s, const struct settled_question *q)
{
	const struct proc *p;

	for (p = s->procs; p; p = p->hh.next)
		if (!p->ended_ns && !correlate__settled(&p->corr, q->now_ns, q->quiet_ns))
			return false;
	return true;
}

static void answer_status(struct digest *d, const struct digest_counts *counts)
{
	pace__hold(&d->pace); /* malloc's locks, of all its arenas */
	free(d->status);
	d->status = status_session(&d->s, counts);
	d->heap = mallinfo2().uordblks;
	pace__again(&d->pace);
	atomic_fetch_add_explicit(&d->answered, 1, memory_order_release);
}

static void tick_trim(struct digest *d, uint64_t now_ns)
{
	if (now_ns < d->next_trim_ns)
		return;
	d->next_trim_ns = now_ns + TRIM_NS;
	pace__hold(&d->pace); /* the same locks */
	pipeline__trim(&d->s);
	pace__again(&d->pace);
}

/* false: that was the last. */
static bool digest_one(struct digest *d, const struct backlog_rec *rec)
{
	const struct settled_question *q = rec->data;
	int err;

	switch (rec->kind) {
	case ASK_SETTLED:
		if (all_settled(&d->s, q))
			d->settled_nr = q->nr;
		return true;
	case ASK_STATUS:
		answer_status(d, rec->data);
		return true;
	case ASK_END:
		return false;
	default:
		err = pipeline__apply(&d->s, (enum input_kind)rec->kind, rec->data, rec->size);
		if (err)
			pr_debug("Failed to digest an input of kind %u: %s\n", rec->kind,
				 strerror(-err));
		else if (rec->kind == INPUT_TICK)
			tick_trim(d, ((const struct input_tick *)rec->data)->now_ns);
		return true;
	}
}

static void *digest_main(void *arg)
{
	struct digest *d = arg;
	struct backlog_rec rec;
	int err;

	pace__begin(&d->pace);
	atomic_store_explicit(&d->ready, true, memory_order_release);
	for (;;) {
		pace__gate(&d->pace);
		err = backlog__take(d->backlog, &rec);
		if (err)
			pr_err("Failed to read what is not in the traces yet: %s; a part of it is "
			       "lost\n",
			       strerror(-err));
		else if (!digest_one(d, &rec))
			return NULL;
	}
}

/* ---- Beginning and end --------------------------------------------------------------------------- */

static void session_init(struct session *s, const struct session *like)
{
	s->dir = like->dir;
	s->own_files = like->own_files;
	s->compress = like->compress;
	s->uid = like->uid;
	s->gid = like->gid;
	s->retain = like->retain;
	s->echo = true;
}

static bool is_ready(const struct digest *d)
{
	return atomic_load_explicit(&d->ready, memory_order_acquire);
}

static void on_full(void *arg)
{
	struct digest *d = arg;
	uint64_t now = monotonic_ns();

	if (is_ready(d))
		pace__raise(&d->pace);
	rescue__here(now);
	notify__tick(now);
	if (d->waits)
		d->waits(d->arg);
}

struct digest *digest__new(const struct session *like, uint64_t backlog_max,
			   void (*waits)(void *arg), void *arg)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	session_init(&d->s, like);
	d->backlog_max = backlog_max;
	d->waits = waits;
	d->arg = arg;
	d->dir = like->dir ? out_dir_open(like->dir, true, like->uid, like->gid)
			   : open(".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	d->backlog = backlog__new(d->dir, backlog_max, on_full, d);
	if (d->backlog)
		return d;
	digest__free(d);
	return NULL;
}

int digest__start(struct digest *d)
{
	int err;

	mallopt(M_TRIM_THRESHOLD, HEAP_END_BYTES);
	mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_BYTES);
	err = thread__start(&d->thread, digest_main, d, "ncclscope-trace");
	d->started = !err;
	return err;
}

void digest__put(struct digest *d, enum input_kind kind, const void *data, size_t size)
{
	backlog__put(d->backlog, kind, data, size);
}

void digest__finish(struct digest *d)
{
	if (is_ready(d))
		pace__end(&d->pace);
}

static uint64_t thread_cpu_ns(const struct digest *d)
{
	clockid_t clock;

	return pthread_getcpuclockid(d->thread, &clock) ? 0 : clock_ns(clock);
}

static bool wants_cpu(const struct digest *d)
{
	struct pid_stat st;

	return !pid_stat__read(d->pace.tid, &st) && st.state == 'R';
}

void digest__turn(struct digest *d, uint64_t now_ns)
{
	struct backlog_state b;
	struct pace_load load;

	backlog__push(d->backlog);
	if (now_ns < d->next_turn_ns || !is_ready(d))
		return;
	d->next_turn_ns = now_ns + TURN_NS;
	b = backlog__state(d->backlog);
	load = (struct pace_load){.now_ns = now_ns,
				  .put_bytes = b.put_bytes,
				  .taken_bytes = b.taken_bytes,
				  .oldest_ns = b.oldest_ns,
				  .file_bytes = b.file_bytes,
				  .file_max = d->backlog_max,
				  .cpu_ns = thread_cpu_ns(d),
				  .wants_cpu = b.oldest_ns && wants_cpu(d)};
	pace__turn(&d->pace, &load);
}

/* Each question has a number: a yes to an older one is none to what has begun since. */
bool digest__settled(struct digest *d, uint64_t now_ns, uint64_t quiet_ns)
{
	struct settled_question q = {
		.now_ns = now_ns, .quiet_ns = quiet_ns, .nr = ++d->settled_asked};

	backlog__put(d->backlog, ASK_SETTLED, &q, sizeof(q));
	backlog__push(d->backlog);
	return d->settled_nr && d->settled_nr + 1 >= q.nr;
}

/* It gets no CPU by asking for it like everybody else: a small part of one, then. */
static void lift(const struct digest *d)
{
	if (!d->pace.lift || rescue__raise(d->pace.tid))
		return;
	sleep_ns(LIFT_NS);
	rescue__lower(d->pace.tid);
}

void digest__catch_up(struct digest *d, void (*turn)(void *arg), void *arg)
{
	struct backlog_state b = backlog__state(d->backlog);
	uint64_t from = b.taken_bytes;
	struct progress progress;
	long pause_ns = PAUSE_NS;

	progress__begin(&progress, "Writing traces:");
	while (b.oldest_ns) {
		digest__finish(d);
		rescue__here(monotonic_ns());
		if (turn)
			turn(arg);
		digest__turn(d, monotonic_ns());
		lift(d);
		sleep_ns(pause_ns);
		if (pause_ns < PAUSE_MAX_NS)
			pause_ns *= 2;
		notify__tick(monotonic_ns());
		progress__show(&progress, b.taken_bytes - from, b.put_bytes - from);
		b = backlog__state(d->backlog);
	}
	progress__end(&progress);
}

const struct session *digest__end(struct digest *d)
{
	if (d->started && !d->ended) {
		digest__catch_up(d, NULL, NULL);
		backlog__put(d->backlog, ASK_END, NULL, 0);
		backlog__push(d->backlog);
		pthread_join(d->thread, NULL);
		if (d->pace.raised)
			pr_debug("Traces: had to catch up %llu times\n",
				 (unsigned long long)d->pace.raised);
	}
	d->ended = true;
	return &d->s;
}

void digest__free(struct digest *d)
{
	if (!d)
		return;
	digest__end(d);
	pipeline__free(&d->s);
	backlog__free(d->backlog);
	if (d->dir >= 0)
		close(d->dir);
	free(d->status);
	free(d);
}

/* ---- For the status file ------------------------------------------------------------------------- */

bool digest__ask_status(struct digest *d, const struct digest_counts *counts)
{
	if (d->asked != atomic_load_explicit(&d->answered, memory_order_acquire))
		return false;
	d->asked++;
	backlog__put(d->backlog, ASK_STATUS, counts, sizeof(*counts));
	return true;
}

const char *digest__status(struct digest *d)
{
	if (!d->asked || d->asked != atomic_load_explicit(&d->answered, memory_order_acquire))
		return NULL;
	return d->status;
}

uint64_t digest__heap(const struct digest *d)
{
	return d->heap;
}

struct digest_lag digest__lag(const struct digest *d)
{
	struct backlog_state b = backlog__state(d->backlog);
	uint64_t now = monotonic_ns();

	return (struct digest_lag){.bytes = b.put_bytes - b.taken_bytes,
				   .file_bytes = b.file_bytes,
				   .ns = b.oldest_ns && b.oldest_ns < now ? now - b.oldest_ns : 0,
				   .gives_way = is_ready(d) && d->pace.idle};
}
