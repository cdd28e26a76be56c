// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeping up with the processes that are recorded: reaching their plugin, reading what they do not hand
 * in, noticing their end. What their records mean is decode's business.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attach.h"
#include "digest.h"
#include "feed.h"
#include "log.h"
#include "nccl_profiler.h"
#include "patience.h"
#include "pipeline.h"
#include "recorder.h"
#include "target.h"

#define FLUSH_AGE_PER_S 100 /* buffers are handed in at an age of 1/100 s, */
#define PER_CPU		4   /* twice that for more processes than so many a CPU, and so on: */
#define TIMES_MAX	8   /* below 100 ms, when they are read from outside for other reasons */
#define SILENT_NS	(300 * 1000000ull) /* no records of operations for so long: none is under way */
#define BEHIND_NS	(200 * 1000000ull)
#define IN_RING_NS	(50 * 1000000ull)
#define QUIET_NS	NSEC_PER_SEC /* who communicates hands in something within that */
#define GONE_NS                                                                                    \
	(2 *                                                                                       \
	 NSEC_PER_SEC) /* longer than a thread takes from its last memory to telling that it ends */

/*
 * How many times the usual age buffers may get. Handing one in costs as much as 150 callbacks, and of many processes on a
 * CPU each makes few in 10 ms: that the age grows with them has a callback cost the same however many they are.
 */
static uint32_t age_times(const struct recorder *r)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t n = 0, some = PER_CPU * (uint64_t)(cpus > 0 ? cpus : 1);
	const struct proc *p;
	uint32_t times = 1;

	for (p = r->s.procs; p; p = p->hh.next)
		n += !p->ended_ns;
	while (times < TIMES_MAX && n > times * some)
		times *= 2;
	return times;
}

/* The last that we told; once the usual age until there is a process. */
static uint32_t times_of(const struct recorder *r)
{
	return r->age_times ? r->age_times : 1;
}

static uint64_t flush_ticks(const struct recorder *r)
{
	return r->s.clock.hz / FLUSH_AGE_PER_S * times_of(r);
}

/* ---- Reaching a plugin ------------------------------------------------------------------------- */

struct comm_feeder {
	struct recorder *r;
	const struct proc *p;
};

static void tell_comm(void *arg, const struct scope_comm *comm)
{
	const struct comm_feeder *f = arg;
	const struct input_comm in = {.start_ns = f->p->key.start_ns,
				      .tgid = f->p->key.tgid,
				      .kernels_off = !(f->p->target.mask & KERNELS),
				      .comm = *comm};

	pipeline__feed(&f->r->s, INPUT_COMM, &in, sizeof(in));
}

/* Its plugin's file may be one that we found later than others. What it made before that is not ours. */
static void place_in_time(struct recorder *r, struct proc *p, bool reached)
{
	uint64_t attached_ns = reached && !p->placed ? scan__attached_ns(r, &p->target) : 0;
	uint64_t begin_ns = p->begin_ns, first_id = p->corr.first_id;
	bool from_start = p->from_start;

	if (attached_ns && from_start && p->key.start_ns <= attached_ns) {
		from_start = false;
		begin_ns = attached_ns;
	}
	if (reached && !from_start)
		first_id = scan__first_id(r, &p->target);
	p->placed |= reached;
	feed__proc(r, p, from_start, begin_ns, first_id);
}

static uint64_t ring_losses(const struct proc *p)
{
	return p->lost[LOSS_RING_FULL] + p->lost[LOSS_RATE_LIMIT];
}

/*
 * Whether the number still was this process' after its memory was opened: it is in BPF's table until it ends. Else
 * another may have got the number, and its records would come into this one's trace.
 */
static bool is_alive(const struct recorder *r, const struct proc *p)
{
	struct scope_proc_stat stat;

	return !attach__proc_stat(r->attach, p->key.tgid, &stat) &&
	       stat.start_ns == p->key.start_ns && !stat.ended;
}

/* It gave no answer, which may pass: a server that is away for a while, or too many others that were waited for. */
static void retry_later(struct proc *p)
{
	p->pause_ns = patience__pause(p->pause_ns);
	p->retry_ns = monotonic_ns() + p->pause_ns;
}

static void leave_hanging(struct proc *p)
{
	p->hangs = true;
	retry_later(p);
}

/* There is one more process: those before it have the age of when they came. */
static void ages_keep(struct recorder *r)
{
	uint32_t times = age_times(r);
	struct proc *p, *tmp;

	if (times == r->age_times)
		return;
	r->age_times = times;
	HASH_ITER (hh, r->s.procs, p, tmp)
		if (p->target.mem >= 0 && !p->hangs && !p->ended_ns &&
		    target__age(&p->target, flush_ticks(r)) == -ETIMEDOUT)
			leave_hanging(p);
}

/*
 * A process we have not seen: narrow its mask to what we want, tell it when to flush, and learn which
 * communicators it had before us. Failure is no disaster: it may have ended by now.
 */
static void contact(struct recorder *r, struct proc *p, bool relearn)
{
	struct comm_feeder feeder = {r, p};
	struct target *t = &p->target;
	int err = 0;

	p->contacted = true;
	if (p->hangs)
		return;
	r->look |= !relearn; /* looked for among all files of the node */
	r->ask_threads |= !relearn;
	p->relearned_at = ring_losses(p);
	ages_keep(r);
	if (t->mem < 0) {
		err = target__find(t, (pid_t)p->key.tgid);
		if (!err && !is_alive(r, p)) {
			target__close(t);
			err = -ESRCH;
		}
	}
	if (!err)
		err = target__want(t, (uint32_t)getpid(), r->opt.mask, flush_ticks(r));
	place_in_time(r, p, !err);
	if (!err && (relearn || !p->from_start))
		err = target__comms(t, tell_comm, &feeder);
	if (p->hangs || err == -ETIMEDOUT)
		leave_hanging(p);
	else if (err == -EBUSY)
		retry_later(p);
	else
		p->pause_ns = p->retry_ns = 0;
	if (err)
		pr_debug("Failed to reach the plugin of process %u: %s, continuing\n", p->key.tgid,
			 strerror(-err));
}

void follow__relearn(struct recorder *r, struct proc *p)
{
	bool retry = p->retry_ns && monotonic_ns() >= p->retry_ns;

	if (retry)
		p->hangs = false;
	if (retry || ring_losses(p) > p->relearned_at)
		contact(r, p, true);
}

int follow__want(struct recorder *r, struct target *t, pid_t pid, uint32_t mask)
{
	bool was = mask && attach__watch(r->attach, (uint32_t)pid, true);
	struct scope_proc_stat stat;
	int err;

	err = target__want(t, (uint32_t)getpid(), mask, mask ? flush_ticks(r) : 0);
	/* One that we have had before goes on: it hands in what it makes. So does one that has just begun to by itself. */
	if (mask && err && err != -EAGAIN && !was &&
	    (attach__proc_stat(r->attach, (uint32_t)pid, &stat) || stat.ended))
		attach__watch(r->attach, (uint32_t)pid, false);
	if (mask && !err) {
		attach__armed(r->attach, (uint32_t)pid);
		if (!r->found_ns)
			r->found_ns = monotonic_ns() + QUIET_NS;
	}
	return err;
}

/* What is asked of a process, `hold` as target__leave() has it. */
typedef int (*ask_fn)(struct target *t, uint32_t hold);

static void ask_pid(pid_t pid, ask_fn ask, uint32_t hold)
{
	struct target t;

	if (!target__find(&t, pid))
		ask(&t, hold);
	target__close(&t);
}

/* Those whose memory is open. @again: also those that hang. */
static void ask_known(struct recorder *r, bool again, ask_fn ask, uint32_t hold)
{
	struct proc *p, *tmp;

	HASH_ITER (hh, r->s.procs, p, tmp)
		if (p->target.mem >= 0 && (again || !p->hangs) &&
		    ask(&p->target, hold) == -ETIMEDOUT)
			leave_hanging(p);
}

/* Also those that never sent anything: idle, their mask would stay up until the next callback. */
static void ask_all(struct recorder *r, bool again, ask_fn ask, uint32_t hold)
{
	struct scan_proc *sp, *stmp;
	int i;

	ask_known(r, again, ask, hold);
	for (i = 0; i < r->opt.npids; i++)
		ask_pid(r->opt.pids[i], ask, hold);
	HASH_ITER (hh, r->scan.procs, sp, stmp)
		if (sp->file && !sp->hangs)
			ask_pid(sp->pid, ask, hold);
}

static int give_back(struct target *t, uint32_t hold)
{
	return target__leave(t, (uint32_t)getpid(), hold);
}

void follow__give_back(struct recorder *r, enum follow_leave how)
{
	const uint32_t hold[] = {
		[FOLLOW_LEAVE] = TARGET_HOLD_AS_IS,
		[FOLLOW_LEAVE_FOR_A_WHILE] = FOLLOW_BACK_WITHIN_S * FLUSH_AGE_PER_S / times_of(r),
		[FOLLOW_LEAVE_FOR_GOOD] = 0,
	};

	ask_all(r, true, give_back, hold[how]);
}

static int bury(struct target *t, uint32_t hold)
{
	(void)hold;
	return target__bury(t);
}

void follow__bury(struct recorder *r)
{
	ask_all(r, false, bury, TARGET_HOLD_AS_IS);
}

void follow__bury_known(struct recorder *r)
{
	ask_known(r, false, bury, TARGET_HOLD_AS_IS);
}

void follow__cut(struct recorder *r)
{
	uint64_t now = monotonic_ns();

	/* What began until now is in then, from all threads: a child of it is known by its parent. */
	attach__drain(r->attach);
	follow__read_outside(r, now, 0, false);
	feed__ns(r, INPUT_CUT, now);
}

void follow__unwatch(struct recorder *r)
{
	struct proc *p, *tmp;
	struct scan_proc *sp, *stmp;

	HASH_ITER (hh, r->s.procs, p, tmp)
		attach__watch(r->attach, p->key.tgid, false);
	HASH_ITER (hh, r->scan.procs, sp, stmp)
		if (sp->file)
			attach__watch(r->attach, (uint32_t)sp->pid, false);
}

static bool any_goes_on(const struct recorder *r)
{
	const struct proc *p;

	for (p = r->s.procs; p; p = p->hh.next)
		if (!p->ended_ns)
			return true;
	return false;
}

/* Which operations are under way is known to who makes the traces, where that is not behind. */
bool follow__settled(struct recorder *r, uint64_t quiet_ns)
{
	uint64_t now = monotonic_ns();

	if (!any_goes_on(r))
		return true;
	if (!r->s.digest || digest__lag(r->s.digest).ns > BEHIND_NS)
		return now - r->s.heard_ns >= SILENT_NS;
	return digest__settled(r->s.digest, now, quiet_ns);
}

/* ---- Records and ends --------------------------------------------------------------------------- */

void follow__record(void *arg, const void *data, size_t size)
{
	const struct scope_ev_hdr *h = data;
	struct recorder *r = arg;
	struct proc *p;

	if (size >= sizeof(*h) && h->abi == SCOPE_ABI &&
	    (h->kind == SCOPE_EV_CHUNK || h->kind == SCOPE_EV_FOUND)) {
		p = proc__get(&r->s, h, true);
		if (p && !p->contacted) {
			r->job_seen |= r->job_ns && p->key.start_ns >= r->job_ns;
			contact(r, p, false);
		}
	}
	feed__record(r, data, size);
}

/* Buffers read from outside, until the ring has given what was there before them. */
struct outside {
	struct scope_ev_chunk **chunks;
	size_t n, room;
};

static bool outside_add(struct outside *o, struct scope_ev_chunk *chunk)
{
	size_t room = o->room ? 2 * o->room : 64;
	void *p;

	if (o->n == o->room) {
		p = realloc(o->chunks, room * sizeof(struct scope_ev_chunk *));
		if (!p)
			return false;
		o->chunks = p;
		o->room = room;
	}
	o->chunks[o->n++] = chunk;
	return true;
}

/*
 * How many records of a thread there must be by now. BPF counts one before the ring has a place for it, and may be kept from going on in
 * between for as long as the CPU is taken away from a virtual machine: so what it said a while before the last that we know of.
 * 0: nobody knows.
 */
static uint32_t seq_by_now(struct recorder *r, struct stream *st)
{
	uint64_t now = monotonic_ns(), known = attach__known_ns(r->attach);
	struct scope_task task;
	uint32_t seq = 0;

	if (st->asked_tid == st->host_tid && known < st->asked_ns + IN_RING_NS)
		return 0;
	if (st->asked_tid == st->host_tid)
		seq = st->asked_seq;
	if (attach__task(r->attach, st->host_tid, &task))
		return seq;
	st->asked_tid = st->host_tid;
	st->asked_seq = task.seq;
	st->asked_ns = now;
	return seq;
}

/* What of a buffer is not its job's word: whose it is. `st` NULL: no thread's, and the process'. */
static void chunk_stamp(struct recorder *r, const struct proc *p, struct stream *st,
			struct scope_ev_chunk *c)
{
	c->h = p->id;
	c->h.kind = SCOPE_EV_CHUNK;
	c->h.size = (uint32_t)(sizeof(*c) + c->len);
	c->h.ts_ns = monotonic_ns();
	if (!st)
		return;
	c->h.ns_tid = st->tid;
	c->h.tid = st->host_tid;
	if (r->s.sched_mode)
		c->sched_seq = seq_by_now(r, st);
}

/*
 * The process' buffers that have been silent, as questions, and what was lost for want of one: whoever has one tells of that when it hands it in,
 * but none may, and a process may have none. NULL: there is nothing to ask, or no memory.
 */
static struct target_read *reads_new(const struct proc *p, uint64_t now, uint64_t silent_ns, int *n)
{
	struct target_read *reads = NULL;
	struct stream *st, *tmp;

	*n = 0;
	HASH_ITER (hh, p->streams, st, tmp) {
		if (now - st->seen_ns < silent_ns && st->seen_ns < now)
			continue;
		if (!reads)
			reads = calloc(HASH_COUNT(p->streams) + 1, sizeof(*reads));
		if (!reads)
			return NULL;
		reads[(*n)++] = (struct target_read){.tbuf = st->tbuf, .pos = st->pos, .arg = st};
	}
	if (!p->streams)
		reads = calloc(1, sizeof(*reads));
	if (reads)
		reads[(*n)++] = (struct target_read){.tbuf = 0};
	return reads;
}

/* The same loss as before: of most processes, none. */
static bool is_told(const struct proc *p, const struct scope_ev_chunk *c)
{
	return !c->tbuf && proc__knows_unbuffered(p) && c->lost_cnt <= p->unbuffered;
}

/* All of them as they are now. */
static void read_streams(struct recorder *r, struct proc *p, uint64_t now, uint64_t silent_ns,
			 struct outside *o)
{
	int n, i, err;
	struct target_read *reads = reads_new(p, now, silent_ns, &n);

	if (!reads)
		return;
	err = target__read_tbufs(&p->target, reads, n);
	if (err == -ETIMEDOUT)
		leave_hanging(p);
	for (i = 0; i < n; i++) {
		if (!reads[i].chunk)
			continue;
		chunk_stamp(r, p, reads[i].arg, reads[i].chunk);
		if (is_told(p, reads[i].chunk) || !outside_add(o, reads[i].chunk))
			free(reads[i].chunk);
	}
	free(reads);
}

/* What BPF knows of p. False: nothing, or it is another process' by now. */
static bool stat_of(const struct recorder *r, const struct proc *p, struct scope_proc_stat *stat)
{
	if (!attach__proc_stat(r->attach, p->key.tgid, stat) && stat->start_ns == p->key.start_ns)
		return true;
	*stat = (struct scope_proc_stat){0};
	return false;
}

/* What is between comes through the ring, or is lost: bytes, or parts of steps in bytes that were read from outside. */
static bool is_behind_gap(const struct stream *st, const struct scope_ev_chunk *c)
{
	return c->pos > st->pos || (st->outside && c->pos == st->pos && c->rec_pos > st->rec_pos);
}

/* The ring may have told meanwhile that another thread has the buffer, and what was lost for its process' share. */
static void chunk_stamp_again(struct scope_ev_chunk *c, const struct stream *st,
			      uint64_t limited_recs)
{
	if (c->h.tid != st->host_tid) {
		c->h.ns_tid = st->tid;
		c->h.tid = st->host_tid;
		c->sched_seq = 0;
	}
	c->limited_recs = limited_recs;
}

/* What the kernel did while the records were made lies in the ring: first that, or they would miss it. So many were left, behind a gap. */
static int decode_outside(struct recorder *r, struct outside *o, bool gaps)
{
	uint64_t read_ns = monotonic_ns();
	struct scope_proc_stat stat = {0};
	struct proc *p, *of = NULL; /* whose `stat` is: its buffers follow one another */
	struct scope_ev_chunk *c;
	struct stream *st;
	int behind = 0;
	size_t i;

	attach__drain(r->attach);
	/* All that was handed in before they were read has come: what is missing still is lost. */
	gaps |= attach__known_ns(r->attach) >= read_ns;
	for (i = 0; i < o->n; i++) {
		c = o->chunks[i];
		st = NULL;
		p = proc__get(&r->s, &c->h, false);
		if (p)
			HASH_FIND(hh, p->streams, &c->tbuf, sizeof(c->tbuf), st);
		if (st && p != of) {
			stat_of(r, p, &stat);
			of = p;
		}
		if (st)
			chunk_stamp_again(c, st, stat.limited_recs);
		if (st && !gaps && is_behind_gap(st, c))
			behind++;
		else
			feed__outside(r, c);
		free(c);
	}
	free(o->chunks);
	return behind;
}

int follow__read_outside(struct recorder *r, uint64_t now, uint64_t silent_ns, bool gaps)
{
	struct outside o = {0};
	struct proc *p, *ptmp;

	HASH_ITER (hh, r->s.procs, p, ptmp)
		if (p->target.mem >= 0)
			read_streams(r, p, now, silent_ns, &o);
	return decode_outside(r, &o, gaps);
}

#define ASLEEP_NS (500 * 1000000ull) /* what threads sleep in is asked for no sooner again */

/* BPF forgets a thread before it tells of its end, and may find no room for that: then nothing tells. */
static bool is_forgotten(struct sched_thread *t, int err, uint64_t now)
{
	if (err != -ENOENT)
		t->missed_ns = 0;
	else if (!t->missed_ns)
		t->missed_ns = now;
	return t->missed_ns && now - t->missed_ns >= GONE_NS;
}

/* So it is still, and all that BPF has told is in. */
static bool stays_forgotten(const struct recorder *r, const struct input_still *in)
{
	struct scope_task task;

	return attach__known_ns(r->attach) >= in->now_ns &&
	       attach__task(r->attach, in->tid, &task) == -ENOENT;
}

/*
 * What BPF says of a thread that sleeps or waits, or that it has forgotten it; false: none of these. `asleep`: so for long, and in what
 * is not told.
 */
static bool ask_sleeper(const struct recorder *r, struct sched_thread *t, struct input_still *in,
			bool *asleep)
{
	uint64_t now = monotonic_ns(); /* before the look: it may be woken behind that */
	struct scope_task task;
	int err;

	err = attach__task(r->attach, t->tid, &task);
	*in = (struct input_still){.now_ns = now, .tid = t->tid, .gone = is_forgotten(t, err, now)};
	if (err)
		return in->gone;
	in->seq = task.seq;
	*asleep |= task.state == SCOPE_TASK_BLOCKED && task.asleep_ns && !task.asleep &&
		   in->now_ns >= task.asleep_ns + SCOPE_ASLEEP_NS;
	if (task.state != SCOPE_TASK_WAIT)
		return task.state == SCOPE_TASK_BLOCKED;
	in->wait_ns = task.wait_ns;
	in->cpu = task.cpu;
	return true;
}

void follow__ask_found(struct recorder *r)
{
	if (!r->found_ns || monotonic_ns() < r->found_ns)
		return;
	r->found_ns = attach__ask_found(r->attach) ? 0 : monotonic_ns() + QUIET_NS;
	attach__drain(r->attach);
}

void follow__ask_sleepers(struct recorder *r)
{
	struct input_still *all =
		malloc((HASH_COUNT(r->s.sched.threads) + 1) * sizeof(*all)); /* again soon */
	struct sched_thread *t, *tmp;
	uint64_t now = monotonic_ns();
	bool asleep = r->ask_threads;
	uint32_t n = 0, i;

	if (!all)
		return;
	HASH_ITER (hh, r->s.sched.threads, t, tmp)
		n += ask_sleeper(r, t, &all[n], &asleep);
	/* That takes a look at all threads of the node. */
	if (asleep && now >= r->next_asleep_ns) {
		attach__ask_asleep(r->attach);
		r->ask_threads = false;
		r->next_asleep_ns = now + ASLEEP_NS;
	}
	/* How they came to what they are in lies in the ring: first that. */
	if (n)
		attach__drain(r->attach);
	for (i = 0; i < n; i++)
		if (!all[i].gone || stays_forgotten(r, &all[i]))
			pipeline__feed(&r->s, INPUT_STILL, &all[i], sizeof(all[i]));
	free(all);
}

void follow__count_tail(struct recorder *r)
{
	struct sched_thread *t, *tmp;
	struct input_counted in;
	struct scope_task task;

	HASH_ITER (hh, r->s.sched.threads, t, tmp) {
		if (attach__task(r->attach, t->tid, &task))
			continue;
		in = (struct input_counted){.tid = t->tid, .seq = task.seq};
		pipeline__feed(&r->s, INPUT_COUNTED, &in, sizeof(in));
	}
}

/*
 * The kernel skips a program that is under way on that CPU, from Linux 7.0 on also that of a thread's end: then nobody tells of it. One
 * whose pid another process has by now is not found so, and stays to the recording's end.
 */
static bool is_gone(struct proc *p, uint64_t now, bool last)
{
	if (p->ended_ns || p->target.pid <= 0 || !kill(p->target.pid, 0) || errno != ESRCH)
		p->gone_ns = 0;
	else if (!p->gone_ns && !last) /* whoever goes when probes are off was there at our end */
		p->gone_ns = now;
	return p->gone_ns && (last || now - p->gone_ns >= GONE_NS);
}

void follow__reap(struct recorder *r, uint64_t now, bool emptied, bool last)
{
	bool full = attach__stat(r->attach, SCOPE_STAT_RING_FULL), ended;
	struct scope_proc_stat stat;
	struct proc *p, *tmp;

	HASH_ITER (hh, r->s.procs, p, tmp) {
		ended = full && stat_of(r, p, &stat) && stat.ended;
		if (ended && !last && (!p->ending || !emptied)) {
			p->ending = true;
			continue;
		}
		if (!ended) {
			if (!emptied || !is_gone(p, now, last))
				continue;
			stat_of(r, p, &stat);
			attach__watch(r->attach, p->key.tgid, false);
			pr_debug("Process %u is gone, and its end was not told\n", p->key.tgid);
		}
		attach__proc_forget(r->attach, p->key.tgid);
		feed__end(r, INPUT_END, &p->key, &stat);
	}
}
