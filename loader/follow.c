// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeping up with the processes that are recorded: reaching their plugin, reading what they do not hand
 * in, noticing their end. What their records mean is decode's business.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach.h"
#include "decode.h"
#include "decode_sched.h"
#include "log.h"
#include "options.h"
#include "recorder.h"
#include "target.h"

#define FLUSH_AGE_PER_S 100 /* buffers are handed in at an age of 1/100 s */

static uint64_t flush_ticks(const struct recorder *r)
{
	return r->s.clock.hz / FLUSH_AGE_PER_S;
}

/* ---- Reaching a plugin ------------------------------------------------------------------------- */

static void tell_comm(void *arg, const struct scope_comm *comm)
{
	const struct proc *p = arg;
	const struct corr_thread thread = {.tid = p->id.ns_tid, .host_tid = p->id.tid};

	correlate__comm(&((struct proc *)arg)->corr, comm, p->begin_ns, &thread);
}

/*
 * A process we have not seen: narrow its mask to what we want, tell it when to flush, and learn which
 * communicators it had before us. Failure is no disaster: it may have ended by now.
 */
static void contact(struct recorder *r, struct proc *p, bool comms)
{
	struct target *t = &p->target;
	int err = 0;

	p->contacted = true;
	r->s.net.look = true;
	p->relearned_at = p->lost[LOSS_RING_FULL];
	if (t->mem < 0)
		err = target__find(t, (pid_t)p->key.tgid);
	if (!err)
		err = target__want(t, (uint32_t)getpid(), r->opt.mask, flush_ticks(r));
	if (!err && comms)
		err = target__comms(t, tell_comm, p);
	if (err)
		pr_debug("Failed to reach the plugin of process %u: %s, continuing\n", p->key.tgid,
			 strerror(-err));
}

void follow__relearn(struct recorder *r, struct proc *p)
{
	if (p->lost[LOSS_RING_FULL] > p->relearned_at)
		contact(r, p, true);
}

int follow__want(struct recorder *r, struct target *t, pid_t pid, uint32_t mask)
{
	int err;

	if (mask)
		attach__watch(r->attach, (uint32_t)pid, true);
	err = target__want(t, (uint32_t)getpid(), mask, mask ? flush_ticks(r) : 0);
	if (mask && err && err != -EAGAIN)
		attach__watch(r->attach, (uint32_t)pid, false);
	return err;
}

void follow__want_running(struct recorder *r, uint32_t mask)
{
	struct stat ours, its;
	struct dirent *d;
	struct target t;
	pid_t pid;
	DIR *proc;

	proc = stat(r->plugin, &ours) ? NULL : opendir("/proc");
	while (proc && (d = readdir(proc))) {
		if (parse_pid(d->d_name, &pid) || target__find(&t, pid))
			continue;
		if (!stat(t.path, &its) && its.st_dev == ours.st_dev && its.st_ino == ours.st_ino)
			follow__want(r, &t, pid, mask);
		target__close(&t);
	}
	if (proc)
		closedir(proc);
}

static void give_back_pid(struct recorder *r, pid_t pid)
{
	struct target t;

	if (!target__find(&t, pid))
		follow__want(r, &t, pid, 0);
	target__close(&t);
}

/* Also to those that never sent anything: idle, their mask would stay up until the next callback. */
void follow__give_back(struct recorder *r)
{
	struct proc *p, *tmp;
	int i;

	HASH_ITER (hh, r->s.procs, p, tmp)
		if (p->target.mem >= 0)
			target__want(&p->target, (uint32_t)getpid(), 0, 0);
	for (i = 0; i < r->opt.npids; i++)
		give_back_pid(r, r->opt.pids[i]);
	if (!r->opt.npids)
		follow__want_running(r, 0);
}

/* ---- Records and ends --------------------------------------------------------------------------- */

void follow__record(void *arg, const void *data, size_t size)
{
	const struct scope_ev_hdr *h = data;
	struct recorder *r = arg;
	struct proc *p;

	if (size >= sizeof(*h) && h->abi == SCOPE_ABI && h->kind == SCOPE_EV_CHUNK) {
		p = proc__get(&r->s, h, true);
		if (p && !p->contacted)
			contact(r, p, !p->from_start);
	}
	decode__event(&r->s, data, size);
}

/* Buffers read from outside, until the ring has given what was there before them. */
struct outside {
	struct outside *next;
	struct scope_ev_chunk c;
	unsigned char room[SCOPE_TBUF_DATA_SIZE];
};

/* The buffer of a stream as it is now; 1 if it goes on after a gap and was left, else 0. */
static int read_stream(struct recorder *r, struct proc *p, const struct stream *st, bool gaps,
		       struct outside **list)
{
	struct outside *o = malloc(sizeof(*o));
	struct scope_task task;

	if (!o || target__read_tbuf(&p->target, st->tbuf, st->pos, &o->c) <= 0) {
		free(o);
		return 0;
	}
	if (o->c.pos > st->pos && !gaps) {
		free(o);
		return 1;
	}
	o->c.h = p->id;
	o->c.h.kind = SCOPE_EV_CHUNK;
	o->c.h.size = (uint32_t)(sizeof(o->c) + o->c.len);
	o->c.h.ts_ns = monotonic_ns();
	o->c.h.ns_tid = st->tid;
	o->c.h.tid = st->host_tid;
	if (r->s.sched_mode && !attach__task(r->attach, st->host_tid, &task))
		o->c.sched_seq = task.seq;
	else
		o->c.sched_seq = 0;
	o->next = *list;
	*list = o;
	return 0;
}

/* What the kernel did while the records were made lies in the ring: first that, or they would miss it. */
static void decode_outside(struct recorder *r, struct outside *list)
{
	struct outside *next;

	if (list)
		attach__drain(r->attach);
	for (; list; list = next) {
		next = list->next;
		if (proc__get(&r->s, &list->c.h, false))
			decode__chunk(&r->s, &list->c, list->c.h.size);
		free(list);
	}
}

int follow__read_outside(struct recorder *r, uint64_t now, uint64_t silent_ns, bool gaps)
{
	struct outside *list = NULL;
	struct stream *st, *tmp;
	struct proc *p, *ptmp;
	int behind = 0;

	HASH_ITER (hh, r->s.procs, p, ptmp) {
		if (p->target.mem < 0)
			continue;
		HASH_ITER (hh, p->streams, st, tmp)
			if (now - st->seen_ns >= silent_ns || st->seen_ns >= now)
				behind += read_stream(r, p, st, gaps, &list);
	}
	decode_outside(r, list);
	return behind;
}

void follow__ask_sleepers(struct recorder *r, uint64_t silent_ns)
{
	const struct sched_slice *last;
	struct sched_thread *t, *tmp;
	struct scope_task task;
	uint64_t now;

	HASH_ITER (hh, r->s.sched.threads, t, tmp) {
		last = sched_thread__last(t);
		now = monotonic_ns();
		if (!last || last->state != SCHED_BLOCKED || now - last->start_ns < silent_ns ||
		    attach__task(r->attach, t->tid, &task))
			continue;
		if (task.state == SCOPE_TASK_BLOCKED)
			sched__still(&r->s.sched, t, task.seq, 0, 0, now);
		else if (task.state == SCOPE_TASK_WAIT)
			sched__still(&r->s.sched, t, task.seq, task.wait_ns, task.cpu, now);
	}
}

void follow__count_tail(struct recorder *r)
{
	struct sched_thread *t, *tmp;
	struct scope_task task;

	HASH_ITER (hh, r->s.sched.threads, t, tmp)
		if (!attach__task(r->attach, t->tid, &task))
			decode_sched__counted(&r->s, t, task.seq);
}

void follow__reap(struct recorder *r)
{
	uint64_t full = attach__stat(r->attach, SCOPE_STAT_RING_FULL);
	struct scope_proc_stat stat;
	struct proc *p, *tmp;

	if (full == r->ring_full)
		return;
	r->ring_full = full;
	HASH_ITER (hh, r->s.procs, p, tmp) {
		if (attach__proc_stat(r->attach, p->key.tgid, &stat) ||
		    stat.start_ns != p->key.start_ns || !stat.ended)
			continue;
		attach__proc_forget(r->attach, p->key.tgid);
		decode__end(p, stat.code, stat.ended == SCOPE_ENDED_EXEC, stat.lost_recs);
	}
}
