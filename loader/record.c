// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope record`: set up, run, drain, tear down. */
#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "attach.h"
#include "cmd.h"
#include "decode.h"
#include "job.h"
#include "rlimits.h"
#include "log.h"
#include "nccl_names.h"
#include "options.h"
#include "plugin_path.h"
#include "session.h"
#include "target.h"
#include "trace.h"

#define MAX_PIDS	64
#define POLL_MS		50
#define OUTSIDE_NS	(200 * 1000000ull) /* a buffer silent for so long is read from outside */
#define FOLLOW_NS	(200 * 1000000ull) /* lines reach their file within this */
#define CLOCK_NS	(10 * NSEC_PER_SEC)
#define DRAIN_NS	(500 * 1000000ull) /* for processes of a job that has ended */
#define SETTLE_NS	(100 * 1000000ull) /* for operations in flight when the recording ends */
#define RING_NS		(2 * NSEC_PER_SEC) /* to empty the ring at the end */
#define END_NS		(100 * 1000000ull) /* after a process' end, for its other threads' last records */
#define FLUSH_AGE_PER_S 100		   /* buffers are flushed at an age of 1/100 s */

struct options {
	char *dir;
	pid_t pids[MAX_PIDS];
	int npids;
	uint64_t duration_ns;
	uint32_t mask;
	char *plugin;
	uint64_t ring_bytes;
	bool strict;
	char **cmd;
};

struct recorder {
	struct options opt;
	struct session s;
	struct attach *attach;
	char plugin[PATH_MAX];
	pid_t job;
	int job_code;
	bool job_ended;
	uint64_t next_outside_ns, next_follow_ns, next_clock_ns;
	uint64_t ring_full; /* BPF's count when processes were last reaped */
};

/* ---- Options ----------------------------------------------------------------------------------- */

enum { OPT_MASK = 256, OPT_PLUGIN, OPT_RING, OPT_STRICT };

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0,
	 "Write traces to DIR (default ncclscope_dump-JOB, or -TIME without a job id)", 0},
	{"pid", 'p', "PID", 0, "Record this process only, which has the plugin; may be repeated",
	 0},
	{"duration", 'd', "TIME", 0, "Stop after TIME (500ms, 10s, 2m, 1h)", 0},
	{"mask", OPT_MASK, "LIST", 0,
	 "Event types: a list such as coll,proxystep, a number, or all (default). A type brings "
	 "its "
	 "parents along",
	 0},
	{"plugin", OPT_PLUGIN, "PATH", 0, "The plugin to attach to and to start CMD with", 0},
	{"ring", OPT_RING, "SIZE", 0, "Ring buffer between BPF and this program (default 64M)", 0},
	{"strict", OPT_STRICT, NULL, 0, "Exit with status 5 if any record was lost", 0},
	{"verbose", 'v', NULL, 0, "Say more; -vv with libbpf's messages", 0},
	{"quiet", 'q', NULL, 0, "Warnings and errors only, no summary", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'o':
		o->dir = arg;
		return 0;
	case 'p':
		if (o->npids == MAX_PIDS)
			argp_error(state, "more than %d --pid", MAX_PIDS);
		else if (parse_pid(arg, &o->pids[o->npids++]))
			argp_error(state, "'%s' is no process id", arg);
		return 0;
	case 'd':
		if (parse_duration(arg, &o->duration_ns) || !o->duration_ns)
			argp_error(state, "'%s' is no duration: 500ms, 10s, 2m or 1h", arg);
		return 0;
	case OPT_MASK:
		if (event_mask_parse(arg, &o->mask) || !o->mask)
			argp_error(state,
				   "'%s' is no event mask: a number or a list of group, coll, p2p, "
				   "proxyop, proxystep, proxyctrl, kernelch, netplugin, groupapi, "
				   "collapi, p2papi, kernellaunch, cecoll, cesync, cebatch, "
				   "kernelphase, all",
				   arg);
		return 0;
	case OPT_PLUGIN:
		o->plugin = arg;
		return 0;
	case OPT_RING:
		if (parse_size(arg, &o->ring_bytes) || o->ring_bytes > 1ull << 31)
			argp_error(state, "'%s' is no size up to 2G: 64M, 1G", arg);
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case 'v':
		log_level = log_level < LOG_DEBUG ? LOG_DEBUG : LOG_LIBBPF;
		return 0;
	case 'q':
		log_level = LOG_WARN;
		return 0;
	case ARGP_KEY_ARGS:
		o->cmd = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (o->cmd && o->npids)
			argp_error(state,
				   "either --pid or CMD: a job that is started has no PID yet");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "[-- CMD [ARG...]]",
	.doc = "Record NCCL's events of the processes that have the plugin loaded, now or later, "
	       "as one JSON lines file per process; with CMD, start it with the plugin and end "
	       "when it ends.\v"
	       "Exit status: that of CMD; else 0 ok, 1 failed, 2 usage, 3 privilege, 4 the kernel "
	       "lacks something, 5 data lost under --strict.",
};

/* ---- Signals ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_signals;

/* The first drains and closes; a second one aborts. */
static void on_signal(int sig)
{
	if (stop_signals++) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
}

/*
 * SIGINT and SIGTERM always, also where a shell's `&` has them ignored: `kill -INT` is how a recording in
 * the background is ended. SIGHUP not under nohup.
 */
static void setup_signals(void)
{
	const struct sigaction sa = {.sa_handler = on_signal};
	struct sigaction was;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (!sigaction(SIGHUP, NULL, &was) && was.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* ---- Processes --------------------------------------------------------------------------------- */

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
		err = target__want(t, (uint32_t)getpid(), r->opt.mask,
				   r->s.clock.hz / FLUSH_AGE_PER_S);
	if (!err && comms)
		err = target__comms(t, tell_comm, p);
	if (err)
		pr_debug("Failed to reach the plugin of process %u: %s, continuing\n", p->key.tgid,
			 strerror(-err));
}

static void on_ring_record(void *arg, const void *data, size_t size)
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

/*
 * A thread that makes no callbacks flushes nothing: fetch what lies in its buffer. Something missing
 * before that is in the ring still; only with `gaps` it is taken for lost. Returns how many buffers had
 * such gaps.
 */
static int read_outside(struct recorder *r, uint64_t now, uint64_t silent_ns, bool gaps)
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

/* Processes whose end the ring had no room for. */
static void reap(struct recorder *r)
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

/* ---- The loop ---------------------------------------------------------------------------------- */

static void tick(struct recorder *r, uint64_t now)
{
	bool follow = now >= r->next_follow_ns, clock = now >= r->next_clock_ns;
	struct proc *p, *tmp;

	if (now >= r->next_outside_ns) {
		read_outside(r, now, OUTSIDE_NS, false);
		r->next_outside_ns = now + OUTSIDE_NS;
		reap(r);
	}
	HASH_ITER (hh, r->s.procs, p, tmp) {
		if (p->ended_ns && now >= p->ended_ns + END_NS) {
			decode__end(p, p->end_status, false, p->end_lost_recs);
			continue;
		}
		correlate__tick(&p->corr, now);
		if (clock && p->header_written)
			trace__clock(p, now);
		/* What was lost may have been a string or a communicator: have all of them told again. */
		if (follow && p->lost[LOSS_RING_FULL] > p->relearned_at)
			contact(r, p, true);
		if (follow && p->header_written) {
			trace__lost(p, now, false);
			out_file__flush(&p->out);
		}
	}
	if (follow)
		r->next_follow_ns = now + FOLLOW_NS;
	if (clock)
		r->next_clock_ns = now + CLOCK_NS;
}

static int run(struct recorder *r)
{
	uint64_t begin = monotonic_ns(), now, drain_until = 0;
	int n;

	for (;;) {
		clock_fit__sample(&r->s.clock);
		n = attach__poll(r->attach, POLL_MS);
		if (n < 0) {
			pr_err("Failed to read the ring buffer: %s\n", strerror(-n));
			return EXIT_FAILED;
		}
		now = monotonic_ns();
		tick(r, now);
		if (stop_signals || (r->opt.duration_ns && now - begin >= r->opt.duration_ns))
			return EXIT_OK;
		if (r->job > 0 && !r->job_ended && job__ended(r->job, &r->job_code)) {
			r->job_ended = true;
			drain_until = now + DRAIN_NS;
		}
		/* Its processes may outlive it by a moment; others on the node are not waited for. */
		if (r->job_ended && (now >= drain_until || (!n && !r->s.procs)))
			return EXIT_OK;
	}
}

/* ---- Set-up and teardown ----------------------------------------------------------------------- */

static void session_init(struct recorder *r)
{
	struct session *s = &r->s;
	time_t t = time(NULL);
	struct tm tm;

	s->dir = r->opt.dir;
	s->mask = r->opt.mask;
	s->ring_bytes = r->opt.ring_bytes;
	s->keep = event_mask_closure(s->mask);
	strftime(s->stamp, sizeof(s->stamp), "%Y%m%d-%H%M%S", localtime_r(&t, &tm));
	invoking_user(&s->uid, &s->gid);
	clock_fit__init(&s->clock, clock_source());
	clock_fit__sample(&s->clock);
}

/* Makes -o's directory now: a mistake in its name should not cost a job's trace. */
static int check_dir(const struct session *s)
{
	int fd;

	if (!s->dir)
		return EXIT_OK;
	fd = out_dir_open(s->dir, s->uid, s->gid);
	if (fd < 0) {
		pr_err("Failed to open the directory '%s' for traces: %s; name another with -o\n",
		       s->dir, strerror(-fd));
		return EXIT_FAILED;
	}
	close(fd);
	return EXIT_OK;
}

/*
 * Processes that run already have NCCL's mask at 0 and would never call us: tell those whose plugin is
 * the very file that we attached to. mask 0 takes it back.
 */
static void want_running(struct recorder *r, uint32_t mask)
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
				     mask ? r->s.clock.hz / FLUSH_AGE_PER_S : 0);
		target__close(&t);
	}
	if (proc)
		closedir(proc);
}

static int attach_all(struct recorder *r)
{
	int err = attach__plugin(r->attach, r->plugin, -1);

	if (err) {
		pr_err("Failed to attach to the plugin '%s': %s; 'ncclscope doctor' tells more\n",
		       r->plugin, strerror(-err));
		return err == -EPERM || err == -EACCES ? EXIT_PRIVILEGE : EXIT_KERNEL;
	}
	r->s.attached_ns = monotonic_ns();
	want_running(r, r->opt.mask);
	return EXIT_OK;
}

static int attach_pid(struct recorder *r, pid_t pid)
{
	struct target t;
	int err = target__find(&t, pid);

	if (err == -ENOENT) {
		pr_err("Process %d has no ncclscope plugin loaded: start it with "
		       "NCCL_PROFILER_PLUGIN=%s\n",
		       pid, r->plugin[0] ? r->plugin : "ncclscope");
		return EXIT_FAILED;
	}
	if (err) {
		pr_err("Failed to look into process %d: %s\n", pid,
		       err == -EPROTO ? "its plugin is of another version" : strerror(-err));
		return err == -EPERM || err == -EACCES ? EXIT_PRIVILEGE : EXIT_FAILED;
	}
	err = attach__plugin(r->attach, t.path, pid);
	r->s.attached_ns = monotonic_ns();
	if (!err)
		err = target__want(&t, (uint32_t)getpid(), r->opt.mask,
				   r->s.clock.hz / FLUSH_AGE_PER_S);
	target__close(&t);
	if (err && err != -EAGAIN) { /* no communicator yet: armed by its first */
		pr_err("Failed to attach to process %d: %s\n", pid, strerror(-err));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int setup(struct recorder *r)
{
	int status = EXIT_OK, i, err;

	session_init(r);
	err = plugin__find(r->opt.plugin, r->plugin, sizeof(r->plugin));
	if (err && (!r->opt.npids || r->opt.cmd)) {
		pr_err("Failed to find the plugin '%s': %s; build it with make, or name it with "
		       "--plugin\n",
		       r->opt.plugin ? r->opt.plugin : "libnccl-profiler-ncclscope.so",
		       strerror(-err));
		return EXIT_FAILED;
	}
	if (err)
		r->plugin[0] = 0;
	if (geteuid() != 0)
		pr_info("Not root: trying with the capabilities at hand\n");
	status = check_dir(&r->s);
	if (status)
		return status;
	r->attach = attach__open(r->opt.ring_bytes, on_ring_record, r, &status);
	if (!r->attach)
		return status;
	r->s.attach_ns = monotonic_ns();
	for (i = 0; i < r->opt.npids && !status; i++)
		status = attach_pid(r, r->opt.pids[i]);
	if (!r->opt.npids && !status)
		status = attach_all(r);
	return status;
}

static int start_job(struct recorder *r)
{
	if (!r->opt.cmd)
		return EXIT_OK;
	r->job = job__start(r->opt.cmd, r->plugin);
	if (r->job < 0) {
		pr_err("Failed to start '%s': %s\n", r->opt.cmd[0], strerror(-r->job));
		return r->job == -ENOENT ? 127 : 126; /* as the shell does */
	}
	return EXIT_OK;
}

/* Asks one process for event types, or (mask 0) takes that back. */
static int want_pid(struct recorder *r, pid_t pid, uint32_t mask)
{
	struct target t;
	int err = target__find(&t, pid);

	if (!err)
		err = target__want(&t, (uint32_t)getpid(), mask,
				   mask ? r->s.clock.hz / FLUSH_AGE_PER_S : 0);
	target__close(&t);
	return err;
}

/* Also to those that never sent anything: idle, their mask would stay up until the next callback. */
static void give_back(struct recorder *r)
{
	struct proc *p, *tmp;
	int i;

	HASH_ITER (hh, r->s.procs, p, tmp)
		if (p->target.mem >= 0)
			target__want(&p->target, (uint32_t)getpid(), 0, 0);
	for (i = 0; i < r->opt.npids; i++)
		want_pid(r, r->opt.pids[i], 0);
	if (!r->opt.npids)
		want_running(r, 0);
}

/* With the masks off, operations in flight come to their end, unless another recorder wants more. */
static void settle(struct recorder *r)
{
	uint64_t end = monotonic_ns() + SETTLE_NS;
	int quiet = 0;

	while (r->s.procs && quiet < 2 && monotonic_ns() < end) {
		clock_fit__sample(&r->s.clock);
		quiet = attach__poll(r->attach, SETTLE_NS / 1000000 / 10) ? 0 : quiet + 1;
	}
}

/* What the ring holds now; a job that goes on filling it is not waited for. */
static void drain_ring(struct recorder *r)
{
	uint64_t end = monotonic_ns() + RING_NS;

	while (attach__poll(r->attach, 0) > 0 && monotonic_ns() < end)
		;
}

/*
 * 1. Give back what we wanted of each process and let it come to rest, 2. draw the line: what is older
 * lies in the ring or in the buffers, 3. take it, 4. take the probes off, between whose parts the kernel
 * loses what is flushed then, all of it younger, 5. close the files.
 */
static void drain(struct recorder *r, const char *how)
{
	struct scope_proc_stat stat;
	struct proc *p, *tmp;
	int i, behind = 1;

	give_back(r);
	settle(r);
	clock_fit__sample(&r->s.clock);
	r->s.end_ns = monotonic_ns();
	for (i = 0; behind && i < 5; i++) {
		drain_ring(r);
		behind = read_outside(r, monotonic_ns(), 0, false);
	}
	if (behind)
		read_outside(r, monotonic_ns(), 0, true);
	attach__detach(r->attach);
	drain_ring(r);
	reap(r);
	HASH_ITER (hh, r->s.procs, p, tmp) {
		if (p->ended_ns) {
			decode__end(p, p->end_status, false, p->end_lost_recs);
			continue;
		}
		p->corr.now_ns = monotonic_ns();
		if (!attach__proc_stat(r->attach, p->key.tgid, &stat) &&
		    stat.start_ns == p->key.start_ns)
			decode__tail_loss(p, stat.lost_recs);
		proc__end(p,
			  p->comms_made && p->comms_finalized == p->comms_made ? "finalize" : how,
			  false, 0);
	}
}

static void print_stats(const struct recorder *r)
{
	static const char *const names[SCOPE_STAT_N] = {
		[SCOPE_STAT_CHUNKS] = "chunks",	      [SCOPE_STAT_RECS] = "records",
		[SCOPE_STAT_RING_FULL] = "ring full", [SCOPE_STAT_BAD_TBUF] = "bad buffers",
		[SCOPE_STAT_FAULT] = "unreadable",    [SCOPE_STAT_DYING] = "of dying threads",
		[SCOPE_STAT_MAP_FULL] = "map full",
	};
	uint32_t i;

	for (i = 0; i < SCOPE_STAT_N; i++)
		pr_debug("BPF: %s %llu\n", names[i],
			 (unsigned long long)attach__stat(r->attach, i));
	pr_debug("Clock: %llu Hz, worst fit %llu ns\n", (unsigned long long)r->s.clock.hz,
		 (unsigned long long)r->s.clock.error_ns);
	pr_debug("Late states and stops: %llu, bad records: %llu\n",
		 (unsigned long long)r->s.summary.late, (unsigned long long)r->s.bad_records);
}

static void print_result(const struct recorder *r)
{
	struct out_dir *d = r->s.dirs;

	print_stats(r);
	if (log_level >= LOG_INFO)
		summary__print(&r->s.summary, d ? d->path : "", stderr);
	if (r->s.summary.malformed || r->s.bad_records)
		pr_warn("%llu records made no sense and were skipped\n",
			(unsigned long long)r->s.bad_records);
}

static void teardown(struct recorder *r)
{
	struct out_dir *d, *tmp;

	attach__close(r->attach);
	HASH_ITER (hh, r->s.dirs, d, tmp) {
		HASH_DEL(r->s.dirs, d);
		close(d->fd);
		free(d);
	}
}

static int exit_status(const struct recorder *r)
{
	if (r->job_ended && r->job_code)
		return r->job_code;
	if (r->opt.strict && summary__lost(&r->s.summary))
		return EXIT_LOST;
	return EXIT_OK;
}

int cmd_record(int argc, char **argv)
{
	static struct recorder r;
	int status;

	r.opt.mask = (1u << SCOPE_NTYPES) - 1;
	r.opt.ring_bytes = 64 << 20;
	argp_err_exit_status = EXIT_USAGE;
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &r.opt))
		return EXIT_USAGE;
	log_setup_libbpf();
	setup_signals();
	limits_raise();
	status = setup(&r);
	if (!status)
		status = start_job(&r);
	if (status)
		goto cleanup;
	pr_info("Recording%s%s, end with Ctrl-C\n", r.opt.cmd ? " " : "",
		r.opt.cmd ? r.opt.cmd[0] : "");
	status = run(&r);
	drain(&r, stop_signals ? "loader-stopped" : "detached");
	print_result(&r);
	if (!status)
		status = exit_status(&r);
cleanup:
	teardown(&r);
	return status;
}
