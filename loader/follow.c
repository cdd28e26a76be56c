// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keeping up with the processes that are recorded: reaching their plugin, reading what they do not hand
 * in, noticing their end. What their records mean is decode's business.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attach.h"
#include "decode.h"
#include "log.h"
#include "options.h"
#include "recorder.h"
#include "target.h"

#define FLUSH_AGE_PER_S 100 /* buffers are handed in at an age of 1/100 s */

uint64_t follow__flush_ticks(const struct recorder *r)
{
	return r->s.clock.hz / FLUSH_AGE_PER_S;
}

/* ---- Reaching a plugin ------------------------------------------------------------------------- */

static void tell_comm(void *arg, const struct scope_comm *comm)
{
	const struct proc *p = arg;
	const struct corr_thread thread = {p->id.ns_tid, p->id.tid};

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
	p->relearned_at = p->lost[LOSS_RING_FULL];
	if (t->mem < 0)
		err = target__find(t, (pid_t)p->key.tgid);
	if (!err)
		err = target__want(t, (uint32_t)getpid(), r->opt.mask, follow__flush_ticks(r));
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
			target__want(&t, (uint32_t)getpid(), mask,
				     mask ? follow__flush_ticks(r) : 0);
		target__close(&t);
	}
	if (proc)
		closedir(proc);
}

/* Asks one process for event types, or (mask 0) takes that back. */
static int want_pid(struct recorder *r, pid_t pid, uint32_t mask)
{
	struct target t;
	int err = target__find(&t, pid);

	if (!err)
		err = target__want(&t, (uint32_t)getpid(), mask, mask ? follow__flush_ticks(r) : 0);
	target__close(&t);
	return err;
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
		want_pid(r, r->opt.pids[i], 0);
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

int follow__read_outside(struct recorder *r, uint64_t now, uint64_t silent_ns, bool gaps)
{
	static union {
		struct scope_ev_chunk c;
		unsigned char room[sizeof(struct scope_ev_chunk) + SCOPE_TBUF_DATA_SIZE];
	} u;
	struct stream *st, *tmp;
	struct proc *p, *ptmp;
	int behind = 0;

	HASH_ITER (hh, r->s.procs, p, ptmp) {
		if (p->target.mem < 0)
			continue;
		HASH_ITER (hh, p->streams, st, tmp) {
			if (now - st->seen_ns < silent_ns && st->seen_ns < now)
				continue;
			if (target__read_tbuf(&p->target, st->tbuf, st->pos, &u.c) <= 0)
				continue;
			if (u.c.pos > st->pos && !gaps) {
				behind++;
				continue;
			}
			u.c.h = p->id;
			u.c.h.kind = SCOPE_EV_CHUNK;
			u.c.h.size = (uint32_t)(sizeof(u.c) + u.c.len);
			u.c.h.ts_ns = monotonic_ns();
			u.c.h.ns_tid = st->tid;
			u.c.h.tid = st->host_tid;
			decode__chunk(&r->s, &u.c, u.c.h.size);
		}
	}
	return behind;
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
