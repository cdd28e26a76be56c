// SPDX-License-Identifier: BSD-2-Clause
/* What a recorder tells of itself; see status_self.h. ncclscope-status(1) explains the keys. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "attach.h"
#include "digest.h"
#include "feed.h"
#include "header.h"
#include "live.h"
#include "log.h"
#include "pid_stat.h"
#include "recorder.h"
#include "status_file.h"
#include "text.h"
#include "version.h"

#define WRITE_NS     NSEC_PER_SEC
#define WRITE_MAX_NS (3 * NSEC_PER_SEC)
#define COST_SHARE   200 /* of a CPU's time this takes one part in so many */
#define RANKS_MAX    16	 /* communicators of one process that are listed */

static json_int_t us(uint64_t ns)
{
	return (json_int_t)(ns / 1000);
}

/* ---- One process ------------------------------------------------------------------------------- */

/* What the trace will have told at its end. */
static uint64_t lost_by(const struct proc *p, int cause)
{
	uint64_t n = p->lost[cause];

	if (cause == LOSS_ORPHAN && p->corr.counts.orphans > n)
		return p->corr.counts.orphans;
	return cause == LOSS_WRITE_ERROR ? n + p->out.write_lost : n;
}

static json_t *proc_lost(const struct proc *p)
{
	json_t *o = json_object();
	uint64_t n;
	int i;

	for (i = 0; i < LOSS_CAUSES; i++) {
		n = lost_by(p, i);
		if (n)
			json_object_set_new(o, loss_names[i], json_integer((json_int_t)n));
	}
	return o;
}

static json_t *proc_ranks(const struct proc *p)
{
	struct corr_comm *comm, *tmp;
	json_t *a = json_array(), *o;
	char hash[24];

	HASH_ITER (hh, p->corr.comms, comm, tmp) {
		if (comm->finalized || json_array_size(a) == RANKS_MAX)
			continue;
		snprintf(hash, sizeof(hash), "0x%llx", (unsigned long long)comm->info.hash);
		o = json_pack("{s:s,s:i,s:i,s:o}", "commHash", hash, "rank", comm->info.rank,
			      "nranks", comm->info.nranks, "live", live__doc(p, comm));
		json_array_append_new(a, o);
	}
	return a;
}

static uint64_t last_record(const struct proc *p)
{
	const struct stream *st, *tmp;
	uint64_t last = 0;

	HASH_ITER (hh, p->streams, st, tmp)
		if (st->last_ns > last)
			last = st->last_ns;
	return last;
}

static json_t *proc_doc(const struct proc *p)
{
	json_t *o = json_pack(
		"{s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:I,s:o,s:o,s:I}", "pid", (json_int_t)p->id.ns_tgid,
		"hostPid", (json_int_t)p->key.tgid, "uid", (json_int_t)p->id.uid, "comm",
		status_text(p->id.comm, strnlen(p->id.comm, sizeof(p->id.comm))), "mask",
		(json_int_t)p->session->mask, "records", (json_int_t)p->recs, "events",
		(json_int_t)p->events, "communicators",
		(json_int_t)(p->comms_made - p->comms_finalized), "ranks", proc_ranks(p), "lost",
		proc_lost(p), "lastRecordUs", us(last_record(p)));

	json_object_set_new(o, "net", live__net(p)); /* NULL: not set */
	if (p->job_id)
		json_object_set_new(o, "jobId", status_text(p->job_id, strlen(p->job_id)));
	if (p->out.path)
		json_object_set_new(o, "trace", status_text(p->out.path, strlen(p->out.path)));
	return o;
}

static json_t *procs_doc(const struct session *s)
{
	const struct proc *p, *tmp;
	json_t *a = json_array();

	live__count_flows(s);
	HASH_ITER (hh, s->procs, p, tmp)
		json_array_append_new(a, proc_doc(p));
	return a;
}

/* ---- The recorder ------------------------------------------------------------------------------ */

static json_t *options_doc(const struct recorder *r)
{
	json_t *o = json_pack("{s:I,s:o,s:s,s:s,s:I,s:b}", "mask", (json_int_t)r->opt.mask,
			      "maskNames", status_mask(r->opt.mask), "sched",
			      sched_mode_names[r->opt.sched], "net", net_mode_names[r->opt.net],
			      "ringBytes", (json_int_t)r->opt.ring_bytes, "strict", r->opt.strict);
	json_t *pids = json_array();
	int i;

	for (i = 0; i < r->opt.npids; i++)
		json_array_append_new(pids, json_integer(r->opt.pids[i]));
	json_object_set_new(o, "pids", pids);
	if (r->opt.dir)
		json_object_set_new(o, "output", status_text(r->opt.dir, strlen(r->opt.dir)));
	if (r->opt.raw)
		json_object_set_new(o, "capture", status_text(r->opt.raw, strlen(r->opt.raw)));
	if (r->opt.cmd)
		json_object_set_new(o, "command",
				    status_text(r->opt.cmd[0], strlen(r->opt.cmd[0])));
	return o;
}

/* As in the trace's header: what this kernel gives us. */
static json_t *features_doc(const struct session *s)
{
	const struct attach_features *f = &s->features;
	json_t *o = json_pack("{s:s}", "sched", sched_mode_names[s->sched_mode]);

	if (s->sched_mode) {
		json_object_set_new(o, "irq", json_boolean(f->irq));
		json_object_set_new(o, "throttled", json_boolean(f->quota));
		json_object_set_new(o, "blockedIn", json_boolean(f->why));
		json_object_set_new(o, "wokenBy", json_boolean(f->woken));
	}
	if (s->net_mode) {
		json_object_set_new(o, "net", json_string(f->net_calls ? "sockets" : "functions"));
		json_object_set_new(o, "noData", json_boolean(f->no_data));
		if (f->drops)
			json_object_set_new(o, "drops",
					    json_string(f->drop_reasons ? "reasons" : "locations"));
	}
	return o;
}

/* The directories as they are called now, also where -o was a relative name. */
static json_t *outputs_doc(const struct session *s)
{
	const struct out_dir *d, *tmp;
	char link[32], path[PATH_MAX];
	json_t *a = json_array();
	ssize_t n;

	HASH_ITER (hh, s->dirs, d, tmp) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", d->fd);
		n = readlink(link, path, sizeof(path));
		if (n > 0)
			json_array_append_new(a, status_text(path, (size_t)n));
	}
	return a;
}

static uint64_t ring_used(const struct recorder *r)
{
	struct ring_pos pos = attach__ring(r->attach);

	return pos.produced - pos.consumed;
}

/* Of processes that have ended, too. */
static json_t *counts_doc(const struct session *s, const struct digest_counts *counts)
{
	uint64_t records = s->summary.records, events = s->summary.traced;
	const struct proc *p, *tmp;

	HASH_ITER (hh, s->procs, p, tmp) {
		records += p->recs;
		events += p->events;
	}
	return json_pack("{s:I,s:I,s:I,s:I,s:I}", "chunks", (json_int_t)counts->chunks, "ringFull",
			 (json_int_t)counts->ring_full, "records", (json_int_t)records, "events",
			 (json_int_t)events, "processes", (json_int_t)s->summary.procs);
}

static json_t *lost_doc(const struct session *s)
{
	const struct proc *p, *tmp;
	json_t *o = json_object();
	uint64_t n;
	int i;

	for (i = 0; i < LOSS_CAUSES; i++) {
		n = s->summary.lost[i];
		HASH_ITER (hh, s->procs, p, tmp)
			n += lost_by(p, i) - p->lost[i];
		if (n)
			json_object_set_new(o, loss_names[i], json_integer((json_int_t)n));
	}
	return o;
}

static json_t *self_doc(const struct status_self *s, const struct recorder *r)
{
	const struct digest *d = r->s.digest;
	struct text_file file = {0};
	struct rusage ru = {0};
	uint64_t size, rss = 0; /* pages, then bytes */
	struct text t;

	getrusage(RUSAGE_SELF, &ru);
	if (!text_file__read(&file, "", "/proc/self/statm", 256)) {
		t = text_of(file.at, file.len);
		if (!text__take(&t, 10, &size) || !text__take(&t, 10, &rss))
			rss = 0;
	}
	text_file__free(&file);
	rss *= (uint64_t)sysconf(_SC_PAGESIZE);
	return json_pack("{s:I,s:I,s:I,s:I,s:I}", "cpuUs", us(feed__cpu_ns(r)), "memory",
			 (json_int_t)rss, "peakMemory", (json_int_t)ru.ru_maxrss * 1024, "heap",
			 (json_int_t)(d ? digest__heap(d) : mallinfo2().uordblks), "statusUs",
			 us(s->cost_ns));
}

/* What is not in the traces yet. */
static json_t *backlog_doc(const struct recorder *r)
{
	struct digest_lag lag = {0};

	if (r->s.digest)
		lag = digest__lag(r->s.digest);
	return json_pack("{s:I,s:I,s:I,s:b}", "bytes", (json_int_t)lag.bytes, "onDisk",
			 (json_int_t)lag.file_bytes, "us", us(lag.ns), "givesWay", lag.gives_way);
}

/* Who it is and what it was asked for, whether it records or not. */
static json_t *who_doc(const struct status_self *s, const struct recorder *r, uint64_t started_ns)
{
	return json_pack("{s:i,s:s,s:i,s:I,s:I,s:I,s:o}", "schema", 1, "version", NCCLSCOPE_VERSION,
			 "pid", (int)getpid(), "startTime", (json_int_t)s->start, "startedUs",
			 us(started_ns), "updatedUs", us(monotonic_ns()), "options",
			 options_doc(r));
}

/* What the recorder itself knows. */
static json_t *recorder_doc(const struct status_self *s, const struct recorder *r)
{
	json_t *o = who_doc(s, r, r->s.attach_ns);

	json_object_set_new(o, "features", features_doc(&r->s));
	json_object_set_new(o, "ring",
			    json_pack("{s:I,s:I}", "bytes", (json_int_t)r->s.ring_bytes, "used",
				      (json_int_t)ring_used(r)));
	json_object_set_new(o, "backlog", backlog_doc(r));
	json_object_set_new(o, "self", self_doc(s, r));
	return o;
}

/* There is no session, and nothing to count. */
static json_t *sleeper_doc(const struct status_self *s, const struct recorder *r, uint64_t until_ns)
{
	json_t *o = who_doc(s, r, s->sleeps_ns);

	json_object_set_new(o, "waitsUntilUs", json_integer(us(until_ns)));
	return o;
}

static char *dump(json_t *doc)
{
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	return text;
}

char *status_session(const struct session *s, const struct digest_counts *counts)
{
	return dump(json_pack("{s:I,s:o,s:o,s:o,s:o}", "asOfUs", us(counts->now_ns), "outputs",
			      outputs_doc(s), "counts", counts_doc(s, counts), "lost", lost_doc(s),
			      "processes", procs_doc(s)));
}

/* Two objects as one; NULL: no memory. */
static char *joined(const char *a, const char *b)
{
	size_t len = a && b ? strlen(a) : 0;
	char *text = NULL;

	if (len && asprintf(&text, "%.*s,%s", (int)(len - 1), a, b + 1) < 0)
		text = NULL;
	return text;
}

/* ---- Its file ---------------------------------------------------------------------------------- */

static bool start(struct status_self *s)
{
	struct pid_stat self;

	s->tried = true;
	s->dirfd = pid_stat__read(getpid(), &self) ? -ESRCH : status_dir__make(status_dir());
	if (s->dirfd < 0) {
		pr_debug("Failed to open '%s': %s, continuing without a status file\n",
			 status_dir(), strerror(-s->dirfd));
		return false;
	}
	s->start = self.start;
	return true;
}

/* Whoever records has to take back what those asked for that were killed. */
static void start_recording(struct status_self *s)
{
	if (!s->tried && start(s))
		status_dir__expire(s->dirfd);
}

/* While who makes the traces has not come to the first question. */
static char *nothing_yet(const struct recorder *r)
{
	static const struct session none;
	const struct digest_counts counts = {.now_ns = r->s.attach_ns};

	return status_session(&none, &counts);
}

/*
 * The session's part is told by who makes the traces, if there is one, and when that comes to it: of one that is behind the file
 * has what it said last. true: it is there.
 */
static bool learn_session(struct status_self *s, const struct recorder *r, uint64_t now)
{
	const struct digest_counts counts = {.now_ns = now,
					     .chunks = attach__stat(r->attach, SCOPE_STAT_CHUNKS),
					     .ring_full =
						     attach__stat(r->attach, SCOPE_STAT_RING_FULL)};
	const char *answer;

	if (r->s.digest && !s->asked_ns) {
		digest__ask_status(r->s.digest, &counts);
		s->asked_ns = now;
		return false;
	}
	answer = r->s.digest ? digest__status(r->s.digest) : NULL;
	if (r->s.digest && !answer && now - s->asked_ns < WRITE_NS)
		return false;
	if (r->s.digest && !answer && s->session)
		return true;
	free(s->session);
	if (r->s.digest)
		s->session = answer ? strdup(answer) : nothing_yet(r);
	else
		s->session = status_session(&r->s, &counts);
	return s->session;
}

static void write_text(const struct status_self *s, const char *text)
{
	int err;

	err = text ? status_file__write(s->dirfd, getpid(), text, strlen(text)) : -ENOMEM;
	if (err)
		pr_debug("Failed to write a status file in '%s': %s, continuing\n", status_dir(),
			 strerror(-err));
}

static void write_file(struct status_self *s, const struct recorder *r)
{
	char *self = dump(recorder_doc(s, r)), *text = joined(self, s->session);

	write_text(s, text);
	free(text);
	free(self);
}

/* The next time is so much later that this takes its share of a CPU only. */
static void put_off(struct status_self *s, uint64_t begin, uint64_t now)
{
	uint64_t pause;

	s->cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	pause = s->cost_ns * COST_SHARE;
	if (pause < WRITE_NS)
		pause = WRITE_NS;
	s->next_ns = now + (pause < WRITE_MAX_NS ? pause : WRITE_MAX_NS);
}

bool status_self__tick(struct status_self *s, const struct recorder *r, uint64_t now)
{
	uint64_t begin;
	bool killed;

	start_recording(s);
	if (s->sleeps_ns) /* the recording may be shorter than the time between two writes */
		s->next_ns = s->sleeps_ns = 0;
	if (s->dirfd < 0 || now < s->next_ns)
		return false;
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!learn_session(s, r, now))
		return false;
	write_file(s, r);
	killed = status_dir__expire(s->dirfd);
	s->asked_ns = 0;
	put_off(s, begin, now);
	return killed;
}

void status_self__waits(struct status_self *s, const struct recorder *r, uint64_t now)
{
	uint64_t begin;

	if (!r->attach) /* while it is set up */
		return;
	start_recording(s);
	if (s->dirfd < 0 || now < s->next_ns)
		return;
	if (!s->session)
		s->session = nothing_yet(r);
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	write_file(s, r);
	put_off(s, begin, now);
}

/* Files of those that were killed are left to recorders that record, which have to take back what these asked for. */
void status_self__sleeps(struct status_self *s, const struct recorder *r, uint64_t until_ns,
			 uint64_t now)
{
	uint64_t begin;
	char *text;

	if (!s->tried)
		start(s);
	if (s->dirfd < 0 || now < s->next_ns)
		return;
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!s->sleeps_ns)
		s->sleeps_ns = now;
	text = dump(sleeper_doc(s, r, until_ns));
	write_text(s, text);
	free(text);
	put_off(s, begin, now);
}

void status_self__close(struct status_self *s)
{
	if (!s->tried || s->dirfd < 0)
		return;
	status_file__remove(s->dirfd, getpid());
	free(s->session);
	s->session = NULL;
	close(s->dirfd);
	s->dirfd = -1;
}
