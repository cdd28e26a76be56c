// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope record`: set up, run, drain, tear down. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "attach.h"
#include "caps.h"
#include "cmd.h"
#include "decode_net.h"
#include "digest.h"
#include "elf_file.h"
#include "feed.h"
#include "header.h"
#include "human.h"
#include "job.h"
#include "log.h"
#include "namespaces.h"
#include "notify.h"
#include "patience.h"
#include "pid_stat.h"
#include "pipeline.h"
#include "plugin_path.h"
#include "raw.h"
#include "recorder.h"
#include "rescue.h"
#include "report.h"
#include "retain.h"
#include "rlimits.h"
#include "scope_probes.h"
#include "target.h"

#define POLL_MS	       50
#define OUTSIDE_NS     (200 * 1000000ull) /* a buffer silent for so long is read from outside */
#define FOLLOW_NS      (200 * 1000000ull) /* lines reach their file within this */
#define CLOCK_NS       (10 * NSEC_PER_SEC)
#define NODE_NS	       NSEC_PER_SEC
#define BURY_NS	       (2 * NSEC_PER_SEC) /* whether other recorders were killed is asked so often */
#define HUNG_NS	       (250 * 1000000ull) /* whether something does not move is asked so often, */
#define HUNG_SILENT_NS (100 * 1000000ull) /* of threads that have handed in nothing for so long */
#define SILENT_NS      (3 * NSEC_PER_SEC) /* within that those are asked that hand in nothing */
#define DRAIN_NS       (500 * 1000000ull) /* for processes of a job that has ended */
#define SETTLE_NS      (2 * NSEC_PER_SEC) /* for operations in flight when the recording ends */
#define JOB_END_NS     (500 * 1000000ull) /* for a command that was told to end when we were */
#define QUIET_NS                                                                                   \
	(30 * 1000000ull) /* a stopped one whose children have stopped has no more of them */
#define PAUSE_MS    50
#define TOO_LATE_NS NSEC_PER_SEC       /* for a window to begin, or half of its length */
#define REPEAT_NS   (300 * 1000000ull) /* a signal that comes again within this is the same one */

/* ---- Signals ----------------------------------------------------------------------------------- */

static volatile sig_atomic_t stop_signals;

/*
 * The first drains and closes; a second one aborts. timeout(1) signals who it has started and then its process group, who is in
 * that as well: the same one right after the first is no second one.
 */
static void on_signal(int sig)
{
	static uint64_t first_ns;
	static int first;
	uint64_t now = monotonic_ns();

	if (!stop_signals) {
		first = sig;
		first_ns = now;
	} else if (sig == first && now - first_ns < REPEAT_NS) {
		return;
	}
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
	struct sigaction sa = {.sa_handler = on_signal}, was;

	sigfillset(&sa.sa_mask); /* one after the other */
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (!sigaction(SIGHUP, NULL, &was) && was.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* ---- The loop ---------------------------------------------------------------------------------- */

/* Sockets that a process had open before we knew it. */
static void look_for_flows(struct recorder *r)
{
	int n;

	if (!r->s.net_mode || !r->look)
		return;
	n = attach__find_flows(r->attach);
	pr_debug("Sockets that were open already: %d\n", n);
	r->look = false;
}

/*
 * Which events do not move is known to who makes the traces. What may have moved them lies in the ring or in a silent thread's
 * buffer, and what its threads do is asked: all of that every now and then, and that it is in.
 */
static void tick_hung(struct recorder *r, uint64_t now)
{
	if (now < r->next_hung_ns || !r->s.procs || attach__poll(r->attach, 0) >= ATTACH_POLL_MAX)
		return;
	follow__read_outside(r, monotonic_ns(), HUNG_SILENT_NS, false);
	follow__ask_sleepers(r);
	pipeline__feed(&r->s, INPUT_HUNG, NULL, 0);
	r->next_hung_ns = now + HUNG_NS;
}

/* What was lost may have been a string or a communicator: has all of them told again. */
static void relearn(struct recorder *r)
{
	struct proc *p, *tmp;

	HASH_ITER (hh, r->s.procs, p, tmp)
		if (!p->ended_ns)
			follow__relearn(r, p);
}

/* Footers tell what we cost. */
static void tick_self(struct recorder *r, bool follow)
{
	const struct proc *p;
	bool any = follow;

	for (p = r->s.procs; p; p = p->hh.next)
		any |= p->ended_ns != 0;
	if (any)
		feed__self(r);
}

/* We do not decode which records are missing; BPF knows how many, of all processes. */
static void count_context(struct recorder *r)
{
	r->s.summary.lost[LOSS_CONTEXT] = attach__stat(r->attach, SCOPE_STAT_SCHED_LOST) +
					  attach__stat(r->attach, SCOPE_STAT_NET_LOST);
}

/* The pipeline's share of a turn. `now`: all that is older is in; `late`: but what is left in the ring. */
static void tick_pipeline(struct recorder *r, uint64_t now, bool late)
{
	bool follow = now >= r->next_follow_ns, clock = now >= r->next_clock_ns;

	if (follow) {
		relearn(r);
		count_context(r);
	}
	tick_self(r, follow);
	feed__tick(r, now,
		   (late ? INPUT_LATE : 0) | (follow ? INPUT_FOLLOW : 0) |
			   (clock ? INPUT_CLOCKS : 0));
	if (decode_net__due(&r->s, monotonic_ns())) /* `now` is of before we slept */
		feed__flows(r);
	if (!late)
		tick_hung(r, now);
	if (follow && r->raw)
		raw_writer__flush(r->raw);
	if (follow)
		r->next_follow_ns = now + FOLLOW_NS;
	if (clock)
		r->next_clock_ns = now + CLOCK_NS;
}

static void tick_status(struct recorder *r, uint64_t now)
{
	if (status_self__tick(&r->status, r, now))
		follow__bury(r);
}

static void tick(struct recorder *r, uint64_t now, bool late)
{
	feed__rdma(r, false);
	feed__kmsg(r);
	feed__gpus(r, false);
	if (now >= r->next_outside_ns) {
		follow__read_outside(r, monotonic_ns(), OUTSIDE_NS, false);
		follow__ask_found(r);
		follow__ask_sleepers(r);
		r->next_outside_ns = now + OUTSIDE_NS;
		follow__reap(r, now, !late, false);
	}
	look_for_flows(r);
	tick_pipeline(r, now, late);
	scan__tick(r, monotonic_ns());
	if (now >= r->next_bury_ns) {
		follow__bury_known(r);
		r->next_bury_ns = now + BURY_NS;
	}
	if (now >= r->next_node_ns) {
		feed__node(r);
		if (!r->s.digest) /* who gives back all memory, and holds its locks, else */
			pipeline__trim(&r->s);
		r->next_node_ns = now + NODE_NS;
	}
	tick_status(r, now);
}

/* Each process that makes collectives has made as many as were asked for. What was there before a command is none of its. */
static bool has_enough(const struct recorder *r)
{
	const struct proc *p;
	bool any = false;

	if (!r->opt.collectives)
		return false;
	for (p = r->s.procs; p; p = p->hh.next) {
		if (p->key.start_ns < r->job_ns)
			continue;
		if (p->corr.colls && p->corr.colls < r->opt.collectives && !p->ended_ns)
			return false;
		any |= p->corr.colls >= r->opt.collectives;
	}
	return any;
}

static bool job_has_ended(struct recorder *r)
{
	if (r->job > 0 && !r->job_ended)
		r->job_ended = job__ended(r->job, &r->job_code);
	return r->job_ended;
}

/* All that -p has named. */
static bool pids_have_ended(struct recorder *r)
{
	return r->opt.npids && poll(r->pidfds, (nfds_t)r->opt.npids, 0) == r->opt.npids;
}

/* Nothing more comes of what we were started for. */
static bool is_over(struct recorder *r)
{
	return job_has_ended(r) || pids_have_ended(r);
}

static int loop(struct recorder *r, uint64_t until_ns)
{
	uint64_t now, drain_until = 0;
	int n = 0;

	for (;;) {
		feed__clock(r);
		now = monotonic_ns();
		notify__tick(now);
		/* Where more has been left in the ring, nobody need wake us for it. */
		n = attach__poll(r->attach, n < ATTACH_POLL_MAX ? POLL_MS : 0);
		if (n < 0) {
			pr_err("Failed to read the ring buffer: %s\n", strerror(-n));
			return EXIT_FAILED;
		}
		tick(r, now, n >= ATTACH_POLL_MAX);
		now = monotonic_ns();
		if (r->s.digest)
			digest__turn(r->s.digest, now);
		if (stop_signals || now >= until_ns || has_enough(r))
			return EXIT_OK;
		if (!drain_until && is_over(r))
			drain_until = now + DRAIN_NS;
		/* A job's processes may outlive it by a moment; others on the node are not waited for. */
		if (drain_until && (now >= drain_until || (!n && !r->s.procs)))
			return EXIT_OK;
	}
}

/* ---- Set-up and teardown ----------------------------------------------------------------------- */

/* Its lines are told once: those that come between two windows are of the second, from before it. */
static void open_kmsg(struct recorder *r)
{
	int err = r->until_ns ? 0 : kmsg__open(&r->kmsg);

	if (err)
		pr_debug("Failed to open '/dev/kmsg': %s, continuing without the kernel's log\n",
			 strerror(-err));
	r->kmsg.is_read = false;
}

static int session_init(struct recorder *r)
{
	struct session *s = &r->s;

	s->dir = r->opt.dir;
	s->raw = r->raw;
	s->retain = r->retain;
	s->compress = r->opt.compress;
	s->mute = s->live = true;
	invoking_user(&s->uid, &s->gid);
	node__init(&r->node, "");
	netdev__init(&r->netdev, "");
	open_kmsg(r);
	return header__host(s);
}

/* What we want of the kernel. */
static struct attach_features wanted(const struct record_options *o)
{
	return (struct attach_features){
		.sched = o->sched, .irq = o->sched, .net = o->net != NET_MODE_OFF};
}

static int open_rdma(struct recorder *r)
{
	int err = r->opt.net != NET_MODE_OFF ? rdma__init(&r->s.rdma, r->opt.rdma_root) : 0;

	if (err)
		pr_err("Failed to open '%s' for RDMA counters: %s\n", r->opt.rdma_root,
		       strerror(-err));
	rdma_sampler__reset(&r->rdma);
	return err ? EXIT_FAILED : EXIT_OK;
}

/* A capture alone needs no directory. */
static int check_dir(struct recorder *r)
{
	int made = -1, err;
	uid_t uid;
	gid_t gid;

	if (r->opt.raw && !r->opt.dir)
		return EXIT_OK;
	invoking_user(&uid, &gid);
	err = out_dir_check(r->opt.dir, uid, gid, &made);
	if (made >= 0) {
		if (r->made_dir >= 0) /* by a window before, and somebody has taken it away */
			close(r->made_dir);
		r->made_dir = made;
	}
	return err ? EXIT_FAILED : EXIT_OK;
}

/* What has not the plugin's probe is another file, and no fault of the kernel. */
static bool has_no_probe(const char *path)
{
	int fd = elf__open(path), err;

	if (fd < 0)
		return false;
	err = elf__usdt(fd, SCOPE_PROVIDER, SCOPE_PROBE_FLUSH, NULL, NULL);
	close(fd);
	return err == -ENOENT || err == -ENOEXEC;
}

/* `otherwise`: the exit status of all but a lack of privilege. */
static int status_of(int err, int otherwise)
{
	return err == -EPERM || err == -EACCES ? EXIT_PRIVILEGE : otherwise;
}

/*
 * In a window that is not the first: the file is away, or half there, as while it is replaced, or another version's. Jobs have
 * what was there before.
 */
static bool may_come_back(const struct recorder *r, int err)
{
	return r->until_ns &&
	       (err == -ENOENT || err == -ENOEXEC || err == -EPROTO || err == -EOPNOTSUPP);
}

static const char *plugin_error(int err)
{
	return err == -EPROTO ? "it is of another version" : strerror(-err);
}

static int attach_all(struct recorder *r)
{
	int err;

	if (r->until_ns) /* a link may lead to another file by now; if to none, it is said below */
		plugin__find(r->opt.plugin, r->plugin, sizeof(r->plugin));
	err = scan__init(r, plugin__named(r->opt.plugin) != NULL);
	if (err && may_come_back(r, err)) {
		pr_warn("Failed to attach to the plugin '%s': %s, continuing with the files that "
			"processes have\n",
			r->plugin, plugin_error(err));
		err = 0;
	}
	if (err && has_no_probe(r->plugin)) {
		pr_err("Failed to attach to the plugin '%s': it is none, as it has no probe "
		       "ncclscope:flush; 'ncclscope doctor --plugin FILE' tells more\n",
		       r->plugin);
		return EXIT_FAILED;
	}
	if (err) {
		pr_err("Failed to attach to the plugin '%s': %s; 'ncclscope doctor' tells more\n",
		       r->plugin, plugin_error(err));
		return status_of(err, err == -EPROTO ? EXIT_FAILED : EXIT_KERNEL);
	}
	feed__attached(r);
	scan__all(r);
	return EXIT_OK;
}

/* In a window that is not the first: it has done what it was named for, and only its end is not told yet. */
static bool has_just_ended(const struct recorder *r, pid_t pid)
{
	struct pid_stat st;
	int err;

	if (!r->until_ns)
		return false;
	err = pid_stat__read(pid, &st);
	return err == -ESRCH || (!err && st.flags & PF_EXITING);
}

static int attach_target(struct recorder *r, const struct target *t)
{
	int fd = elf__open_same(t->path, &t->file), err;
	char path[32];

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = attach__plugin(r->attach, path, t->pid);
	close(fd);
	return err;
}

static int explain_attach(pid_t pid, int err)
{
	int status = status_of(err, EXIT_FAILED);

	pr_err("Failed to attach to process %d: %s%s; 'ncclscope doctor' tells more\n", pid,
	       strerror(-err),
	       status == EXIT_PRIVILEGE && !attach__pid_is_process()
		       ? "; -p takes CAP_SYS_ADMIN before Linux 6.12"
		       : "");
	return status;
}

static int attach_pid(struct recorder *r, pid_t pid)
{
	struct target t;
	int err = target__find(&t, pid);

	if (err && has_just_ended(r, pid))
		return EXIT_OK;
	if (err == -ENOENT) {
		pr_err("Process %d has no ncclscope plugin loaded: start it with "
		       "NCCL_PROFILER_PLUGIN=%s\n",
		       pid, r->plugin[0] ? r->plugin : "ncclscope");
		return EXIT_FAILED;
	}
	if (err) {
		pr_err("Failed to look into process %d: %s%s\n", pid, target__error(err),
		       target__advice(err));
		return status_of(err, EXIT_FAILED);
	}
	err = attach_target(r, &t);
	feed__attached(r);
	if (err >= 0) {
		err = target__probed(&t);
		if (err == -ENODATA) { /* nothing would come */
			pr_err("Failed to attach to process %d: %s\n", pid, target__error(err));
			target__close(&t);
			return EXIT_FAILED;
		}
		if (err != -ETIMEDOUT)
			err = follow__want(r, &t, pid, r->opt.mask);
		scan__first_id(r, &t);
		if (err == -EAGAIN) /* no communicator yet: armed by its first */
			err = 0;
	}
	target__close(&t);
	return err && !has_just_ended(r, pid) ? explain_attach(pid, err) : EXIT_OK;
}

/* A number may be another process' later; what has ended until then is no mistake. */
static int open_pids(struct recorder *r)
{
	int i, err;

	for (i = 0; i < r->opt.npids; i++) {
		r->pidfds[i] = (struct pollfd){
			.fd = (int)syscall(SYS_pidfd_open, r->opt.pids[i], 0), .events = POLLIN};
		if (r->pidfds[i].fd >= 0)
			continue;
		err = -errno;
		if (err != -ESRCH && target__is_thread(r->opt.pids[i]))
			return EXIT_FAILED;
		if (err != -ESRCH)
			continue; /* without one its end is not seen, and that is all */
		pr_err("Failed to look into process %d: %s%s\n", r->opt.pids[i], target__error(err),
		       target__advice(err));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int open_raw(struct recorder *r)
{
	uid_t uid;
	gid_t gid;
	int err;

	if (!r->opt.raw)
		return EXIT_OK;
	invoking_user(&uid, &gid);
	r->raw = raw_writer__open(r->opt.raw, uid, gid, &err);
	if (r->raw)
		return EXIT_OK;
	pr_err("Failed to make the capture '%s': %s; name another file with --raw\n", r->opt.raw,
	       err == -EEXIST ? "it is there already" : out_dir_error(err));
	return EXIT_FAILED;
}

/* Nothing of it may be missing unnoticed. */
static void close_raw(struct recorder *r)
{
	uint64_t bytes;
	int err;

	if (!r->raw)
		return;
	if (!r->until_ns) { /* no recording has begun: once more with the same name shall be possible */
		raw_writer__abandon(r->raw);
		r->raw = NULL;
		return;
	}
	raw_writer__flush(r->raw);
	bytes = raw_writer__bytes(r->raw);
	err = raw_writer__close(r->raw);
	r->raw = NULL;
	if (!err) {
		pr_info("Capture: %llu bytes in %s, for 'ncclscope convert'\n",
			(unsigned long long)bytes, r->opt.raw);
		return;
	}
	pr_info("Capture: %llu bytes in %s, cut off: %s\n", (unsigned long long)bytes, r->opt.raw,
		strerror(-err));
	r->lost = true;
	r->failed |= !r->opt.dir || !bytes;
}

static int no_memory(void)
{
	pr_err("Failed to allocate: %s\n", strerror(ENOMEM));
	return EXIT_FAILED;
}

/* Of a container we want to see out. A command of ours would be in the namespace that we enter for that. */
static void look_out(bool for_command)
{
	int err = for_command ? 0 : namespaces__join_nodes_cgroup();

	if (!namespaces__pid_is_nodes())
		pr_warn("This pid namespace is a container's: jobs outside of it are not recorded, "
			"and of those inside much is not "
			"known; run ncclscope in the node's (docker run --pid=host, hostPID: true "
			"in a pod)\n");
	else if (err)
		pr_debug("Failed to enter the node's cgroup namespace: %s\n", strerror(-err));
}

/* Before there is anything that their processes would have of ours. */
static void start_samplers(struct recorder *r)
{
	int err = r->opt.no_gpu ? 0 : gpu_sampler__start(&r->gpus, r->opt.nvml);

	if (err)
		pr_warn("Failed to look at GPUs: %s, continuing without\n", strerror(-err));
	err = r->opt.net == NET_MODE_OFF ? 0 : rdma_sampler__start(&r->rdma, r->opt.rdma_root);
	if (err)
		pr_warn("Failed to look at RDMA counters: %s, continuing without\n",
			strerror(-err));
}

/* What can be known to be wrong before anything is attached, or started. */
static int prepare(struct recorder *r)
{
	time_t t = time(NULL);
	struct tm tm;
	int status, err = plugin__find(r->opt.plugin, r->plugin, sizeof(r->plugin));
	const char *named = plugin__named(r->opt.plugin);

	if (err && (!r->opt.npids || r->opt.cmd)) {
		pr_err("Failed to find the plugin '%s': %s; build it with make, or name it with "
		       "--plugin\n",
		       named ? named : PLUGIN_FILE, strerror(-err));
		return EXIT_FAILED;
	}
	if (err)
		r->plugin[0] = 0;
	if (geteuid() != 0)
		pr_info("Not root: trying with the capabilities at hand\n");
	look_out(r->opt.cmd != NULL);
	status = open_pids(r);
	if (!status)
		status = open_raw(r);
	if (status)
		return status;
	strftime(r->stamp, sizeof(r->stamp), "%Y%m%d-%H%M%S", localtime_r(&t, &tm));
	if (!r->opt.keep_bytes)
		return EXIT_OK;
	r->retain = retain__new(r->opt.keep_bytes, RETAIN_FILES_MAX, !r->opt.dir);
	return r->retain ? EXIT_OK : no_memory();
}

/* The backlog is full, for as long as a slow disk takes: we are there all the same. */
static void turn_of_wait(void *arg)
{
	struct recorder *r = arg;

	status_self__waits(&r->status, r, monotonic_ns());
}

static int setup(struct recorder *r)
{
	struct attach_features features = wanted(&r->opt);
	int status = EXIT_OK, i, err;

	err = session_init(r);
	if (err) {
		pr_err("Failed to read '%s': %s; no trace can be without it\n", BOOT_ID,
		       strerror(-err));
		return EXIT_FAILED;
	}
	status = open_rdma(r);
	if (!status)
		status = check_dir(r);
	if (status)
		return status;
	if (!r->raw || r->opt.dir) {
		r->s.digest = digest__new(&r->s, r->opt.backlog_bytes, turn_of_wait, r);
		if (!r->s.digest)
			return no_memory();
	}
	r->attach = attach__open(r->opt.ring_bytes, &features, follow__record, r, &status);
	if (!r->attach)
		return status;
	if (feed__session(r, &features))
		return no_memory();
	pids_have_ended(r); /* which of them, that is in their revents */
	for (i = 0; i < r->opt.npids && !status; i++)
		if (!r->pidfds[i].revents) /* or it was there for an earlier window */
			status = attach_pid(r, r->opt.pids[i]);
	if (!r->opt.npids && !status)
		status = attach_all(r);
	return status;
}

/* Whoever makes traces needs no more privileges than we have kept. */
static int start_digest(struct recorder *r)
{
	int err = r->s.digest ? digest__start(r->s.digest) : 0;

	if (err)
		pr_err("Failed to start the thread that makes traces: %s\n", strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
}

static int start_job(struct recorder *r)
{
	const char *other;

	if (!r->opt.cmd || r->job)
		return EXIT_OK;
	other = job__replaced(r->plugin);
	if (other)
		pr_warn("NCCL_PROFILER_PLUGIN=%s is replaced by %s for '%s': NCCL does not load "
			"'%s' there\n",
			other, r->plugin, r->opt.cmd[0], other);
	r->job_ns = monotonic_ns();
	r->job = job__start(r->opt.cmd, r->plugin, &stop_signals);
	if (r->job == -ECANCELED)
		return EXIT_OK; /* tell_not_begun() does */
	if (r->job < 0) {
		pr_err("Failed to start '%s': %s%s\n", r->opt.cmd[0], strerror(-r->job),
		       job__advice(r->opt.cmd[0], r->job));
		return r->job == -ENOENT ? 127 : 126; /* as the shell does */
	}
	return EXIT_OK;
}

/* The job is not to be born with less than who called us has: after it. */
static void drop_privileges(struct recorder *r)
{
	int err;

	patience__end(); /* a thread keeps what it was born with */
	err = caps__drop(attach__by_perf(r->attach), !limits_nice());
	if (err)
		pr_warn("Failed to drop capabilities: %s, continuing with them\n", strerror(-err));
}

/* No operation shall be in the trace by half: those in flight come to their end, if it comes soon. */
static void settle(struct recorder *r)
{
	uint64_t end = monotonic_ns() + SETTLE_NS, look_ns = 0, now;
	int n;

	do {
		feed__clock(r);
		n = attach__poll(r->attach, QUIET_NS / 1000000 / 3);
		now = monotonic_ns();
		/* A thread that is done makes no callbacks that would flush. */
		if (now >= look_ns) {
			follow__read_outside(r, now, QUIET_NS, false);
			look_ns = now + QUIET_NS;
		}
	} while ((n >= ATTACH_POLL_MAX || !follow__settled(r, QUIET_NS)) && stop_signals < 2 &&
		 monotonic_ns() < end);
}

/* What the ring had no room for after a process' last record; of some it had room for none. */
static void count_tails(struct recorder *r)
{
	struct scope_proc_stat stat;
	struct proc_key key = {0};
	const struct proc *p;

	while (attach__proc_next(r->attach, &key.tgid, &stat)) {
		key.start_ns = stat.start_ns;
		p = proc__find(&r->s, key.tgid, key.start_ns);
		if (p ? !p->ended_ns : stat.lost_recs)
			feed__end(r, INPUT_TAIL, &key, &stat);
	}
}

static void turn_of_catch_up(void *arg)
{
	tick_status(arg, monotonic_ns());
}

/* It is not silent meanwhile: the disk may take long for what is left. */
static void catch_up(struct recorder *r)
{
	if (r->s.digest)
		digest__catch_up(r->s.digest, turn_of_catch_up, r);
}

static bool follow_one_another(const struct recorder *r)
{
	return r->opt.every_ns && r->opt.every_ns == r->opt.for_ns;
}

static enum follow_leave how_to_leave(struct recorder *r)
{
	uint64_t soon = monotonic_ns() + FOLLOW_BACK_WITHIN_S * (uint64_t)NSEC_PER_SEC;

	if (!follow_one_another(r))
		return FOLLOW_LEAVE;
	return !stop_signals && r->next_window_ns < r->until_ns && r->next_window_ns < soon &&
			       !is_over(r)
		       ? FOLLOW_LEAVE_FOR_A_WHILE
		       : FOLLOW_LEAVE_FOR_GOOD;
}

/*
 * 1. Give back what we wanted of each process and let it come to rest, 2. draw the line: what is older
 * lies in the ring or in the buffers, 3. take it, 4. take the probes off, between whose parts the kernel
 * loses what is flushed then, all of it younger, 5. have the traces made of all that, and close them.
 */
static void drain(struct recorder *r, const char *how)
{
	struct input_finish finish = {0};
	int i, behind = 1;

	if (r->s.digest)
		digest__finish(r->s.digest);
	follow__give_back(r, how_to_leave(r));
	follow__cut(r);
	settle(r);
	feed__clock(r);
	feed__ns(r, INPUT_LINE, monotonic_ns());
	for (i = 0; behind && i < 5; i++) {
		attach__drain(r->attach);
		behind = follow__read_outside(r, monotonic_ns(), 0, false);
	}
	if (behind)
		follow__read_outside(r, monotonic_ns(), 0, true);
	/* Taking probes off can last for seconds: what the kernel does meanwhile is not ours. */
	follow__unwatch(r);
	finish.end_ns = monotonic_ns();
	attach__drain(r->attach);
	follow__ask_sleepers(r);
	if (r->s.net_mode)
		feed__flows(r);
	attach__detach(r->attach);
	attach__drain(r->attach);
	pipeline__feed(&r->s, INPUT_COMPLETE, NULL, 0);
	follow__reap(r, monotonic_ns(), true, true);
	follow__count_tail(r);
	feed__kmsg(r);
	feed__gpus(r, true);
	feed__rdma(r, true);
	count_tails(r);
	count_context(r);
	catch_up(r); /* what that costs is part of what we do */
	feed__self(r);
	snprintf(finish.how, sizeof(finish.how), "%s", how);
	pipeline__feed(&r->s, INPUT_FINISH, &finish, sizeof(finish));
	catch_up(r);
}

static void print_stats(const struct recorder *r, const struct session *s)
{
	static const char *const names[SCOPE_STAT_N] = {
		[SCOPE_STAT_CHUNKS] = "chunks",
		[SCOPE_STAT_RECS] = "records",
		[SCOPE_STAT_RING_FULL] = "ring full",
		[SCOPE_STAT_BAD_TBUF] = "bad buffers",
		[SCOPE_STAT_FAULT] = "unreadable",
		[SCOPE_STAT_DYING] = "of dying threads",
		[SCOPE_STAT_MAP_FULL] = "map full",
		[SCOPE_STAT_SCHED] = "records of context",
		[SCOPE_STAT_SCHED_LOST] = "of these lost",
		[SCOPE_STAT_SCHED_OTHERS] = "switches of others left out",
		[SCOPE_STAT_NET] = "records of flows",
		[SCOPE_STAT_NET_LOST] = "records of flows lost",
		[SCOPE_STAT_FLOWS_FULL] = "flows beyond the table",
		[SCOPE_STAT_LIMITED] = "over their share of the ring",
	};
	uint32_t i;

	for (i = 0; i < SCOPE_STAT_N; i++)
		pr_debug("BPF: %s %llu\n", names[i],
			 (unsigned long long)attach__stat(r->attach, i));
	pr_debug("Ring: %llu bytes of chunks\n", (unsigned long long)s->chunk_bytes);
	pr_debug("Clock: %llu Hz, worst fit %llu ns\n", (unsigned long long)s->clock.hz,
		 (unsigned long long)s->clock.error_ns);
	pr_debug("Late states and stops: %llu, bad records: %llu, of unknown kinds: %llu\n",
		 (unsigned long long)s->summary.late, (unsigned long long)s->bad_records,
		 (unsigned long long)s->skipped_kinds);
	pr_debug("Steps: %llu, whose flow is the thread's %llu, or helpers' %llu, not known %llu\n",
		 (unsigned long long)s->net.steps, (unsigned long long)s->net.direct,
		 (unsigned long long)s->net.helped, (unsigned long long)s->net.unsure);
	pr_debug("Kernel context lost of processes that are not recorded: %llu\n",
		 (unsigned long long)s->context_lost);
}

static void print_rdma(const struct rdma_sampler *s, const struct rdma *r)
{
	pr_debug("RDMA counters: %llu samples of devices, %llu us each, the longest %llu us\n",
		 (unsigned long long)s->samples,
		 (unsigned long long)(s->samples ? s->cost_ns / s->samples / 1000 : 0),
		 (unsigned long long)s->max_cost_ns / 1000);
	if (r->cut || s->cut)
		pr_warn("Some RDMA counters are not in the trace: there were more than %d devices, "
			"%d ports, %d counters of a port, or the open files that we may have\n",
			RDMA_DEVICES_MAX, RDMA_PORTS_MAX, RDMA_COUNTERS_MAX);
}

/* What is most often forgotten: NCCL goes on without a plugin that it is not told of, or does not find. A command need not use NCCL at all. */
static void print_how_to_load(const struct recorder *r)
{
	if (r->opt.cmd)
		pr_info("'%s' was started with NCCL_PROFILER_PLUGIN=%s: nothing is wrong if it "
			"does "
			"not use NCCL; if it does, with NCCL_DEBUG=INFO, too, NCCL tells whether "
			"it has loaded that\n",
			r->opt.cmd[0], r->plugin);
	else
		pr_info("Start jobs with NCCL_PROFILER_PLUGIN=%s; with NCCL_DEBUG=INFO, too, NCCL "
			"tells whether it has loaded that\n",
			r->plugin);
}

/* As with some capabilities and not others: what others' processes have is not known then. */
static void print_hidden(const struct recorder *r)
{
	uint32_t n = scan__hidden(&r->scan);

	if (n)
		pr_info("%u process%s may not be looked into%s: whether they have the plugin is "
			"not known\n",
			n, human__es(n), geteuid() ? ", but by root" : "");
}

/* Nothing came: of whom, and why. */
static void print_none(const struct recorder *r)
{
	uint32_t n = r->opt.npids ? (uint32_t)r->opt.npids : scan__users(&r->scan);
	bool brief = r->recorded_ns < SILENT_NS;

	if (n)
		pr_info("%u process%s the plugin, and nothing happened in %s%s\n", n,
			n > 1 ? "es have" : " has", n > 1 ? "them" : "it",
			brief ? ": of a job that hangs or idles record 3 s or longer (-d 10s)"
			      : "; without a communicator there is nothing to record");
	print_hidden(r);
	if (!r->opt.npids && !r->job_seen && (!n || r->job_ended))
		print_how_to_load(r);
}

/*
 * Other jobs' events say nothing of our command's. Parents and environment do not tell whose a process is (daemons, containers, srun): only that
 * what was there before the command is none that it has started.
 */
static void print_unrecorded(const struct recorder *r, const struct summary *s)
{
	if (!s->procs && !s->unwritten) {
		print_none(r);
	} else if (r->job_ended && !r->job_seen) {
		pr_info("'%s' started none of the processes that were recorded: all of them began "
			"before it\n",
			r->opt.cmd[0]);
		print_how_to_load(r);
	}
}

/*
 * NCCL loads a plugin when it begins, or never: who waits for events of all that have it is to know at once if none has. And who
 * starts a command, that others are recorded beside it.
 */
static void print_who_has_it(const struct recorder *r)
{
	uint32_t n = scan__users(&r->scan);

	if (r->opt.npids || r->until_ns || (r->opt.cmd && !n))
		return;
	if (n)
		pr_info("%u process%s the plugin now; 'ncclscope status' lists them\n", n,
			n > 1 ? "es have" : " has");
	else
		pr_info("No process%s has the plugin yet, and those that run without it are not "
			"recorded: "
			"start jobs with NCCL_PROFILER_PLUGIN=%s; 'ncclscope status' lists those "
			"that have it\n",
			scan__hidden(&r->scan) ? " that may be looked into" : "", r->plugin);
	if (!r->opt.cmd)
		print_hidden(r);
}

/* Who has asked for them by name is to know why there are none. Once, and not of each window. What a capture alone has is not known. */
static void print_no_kernels(struct recorder *r, const struct session *s)
{
	if (!r->opt.kernels || r->told_kernels || s->live || !summary__lacks_kernels(&s->summary))
		return;
	pr_warn("No KernelCh or KernelPhase was recorded, which is not to be had of processes that "
		"ran before: start the job when this is recording, or by 'record -- CMD'\n");
	r->told_kernels = true;
}

/* `s`: whose traces they are, or the recorder's own where there are none. */
static void print_result(struct recorder *r, const struct session *s)
{
	struct out_dir *d = s->dirs;

	print_stats(r, s);
	print_rdma(&r->rdma, &r->s.rdma);
	if (log_level >= LOG_INFO && s->live)
		summary__print_capture(&s->summary, raw_writer__flush(r->raw) != 0, stderr);
	else if (log_level >= LOG_INFO)
		summary__print(&s->summary, d ? d->path : "", stderr);
	print_unrecorded(r, &s->summary);
	print_no_kernels(r, s);
	if (log_level >= LOG_INFO && !r->opt.no_report)
		report_after_record(s->summary.paths, d ? d->path : "", stderr);
	if (s->summary.malformed || s->bad_records)
		pr_warn("%llu records made no sense and were skipped\n",
			(unsigned long long)s->bad_records);
}

/* All that belongs to one window. */
static void teardown(struct recorder *r)
{
	digest__free(r->s.digest);
	r->s.digest = NULL;
	attach__close(r->attach);
	r->attach = NULL;
	scan__free(&r->scan);
	node__free(&r->node);
	netdev__free(&r->netdev);
	pipeline__free(&r->s);
	rdma_sampler__reset(&r->rdma);
	status_self__close(&r->status);
	memset(&r->status, 0, sizeof(r->status));
	r->look = r->ask_threads = false;
	r->found_ns = 0;
	r->next_outside_ns = r->next_follow_ns = r->next_clock_ns = r->next_node_ns = 0;
	r->next_hung_ns = 0;
}

/* ---- Windows ----------------------------------------------------------------------------------- */

/* Nobody is attached meanwhile: it costs the job nothing. */
static void sleep_until(struct recorder *r, uint64_t ns)
{
	uint64_t now = monotonic_ns();

	while (!stop_signals && !is_over(r)) {
		/* also where the next one begins at once */
		status_self__sleeps(&r->status, r, ns, now);
		if (now >= ns)
			break;
		sleep_ns(PAUSE_MS * 1000000L);
		now = monotonic_ns();
		notify__tick(now);
	}
}

/* By so much a window may begin late. */
static uint64_t too_late(const struct recorder *r)
{
	return r->opt.for_ns / 2 < TOO_LATE_NS ? r->opt.for_ns / 2 : TOO_LATE_NS;
}

/*
 * Where windows follow one another: one of which less would be left has the time of the next as well. The first begins
 * at once, whenever that is; later ones shall end when those of other nodes do, unless hardly anything would be in them.
 */
static uint64_t worth_a_window(const struct recorder *r)
{
	if (!follow_one_another(r))
		return 0;
	return r->ended_ns ? too_late(r) / 2 : r->opt.every_ns / 2;
}

/*
 * When the next window begins: when the real clock shows a multiple of --every, so that the recorders of all nodes record
 * the same operations, whenever they were started. 0: there is none.
 */
static uint64_t next_window(const struct recorder *r, uint64_t now)
{
	uint64_t every = r->opt.every_ns, error_ns, real, left;

	if (!every)
		return 0;
	real = now + (uint64_t)realtime_offset_ns(&error_ns);
	left = every - real % every;
	return now + left + (left < worth_a_window(r) ? every : 0);
}

static void tell_left_out(uint64_t n)
{
	if (n)
		pr_warn("Left out %llu window%s of --every: ending the one before took until "
			"then\n",
			(unsigned long long)n, human__s(n));
}

/* Those that would begin late, as ending the one before took long: they would not be of what other nodes record. */
static void leave_out_missed(struct recorder *r)
{
	uint64_t now = monotonic_ns(), n = 0;

	if (follow_one_another(r))
		return;
	for (; r->next_window_ns < r->until_ns && r->next_window_ns + too_late(r) <= now; n++)
		r->next_window_ns += r->opt.every_ns;
	tell_left_out(n);
}

/* Of windows that follow one another, one begins now that should have at due_ns. */
static void tell_gap(const struct recorder *r, uint64_t now, uint64_t due_ns)
{
	uint64_t from = r->ended_ns > due_ns ? r->ended_ns : due_ns;
	char time[HUMAN_CELL];

	if (now > from && now - from >= too_late(r))
		pr_warn("Recorded nothing for %s between two windows of --every: ending the one "
			"and attaching for the other took until then\n",
			human__time(time, (now - from) / 1000));
}

/* How many windows this one, due then, has the time of, or lasts into. */
static uint64_t missed_until(const struct recorder *r, uint64_t due_ns)
{
	uint64_t every = r->opt.every_ns, next = r->next_window_ns, n = 0;

	/* the real clock is not read twice alike: half a period is none */
	for (; due_ns + every + every / 2 < next && due_ns + every < r->until_ns; n++)
		due_ns += every;
	return n;
}

/* When the window that begins now ends. -d counts from when the first one was attached. */
static uint64_t end_of_window(struct recorder *r)
{
	uint64_t now = monotonic_ns(), end = r->opt.for_ns ? now + r->opt.for_ns : UINT64_MAX;
	uint64_t due = r->next_window_ns;

	if (!r->until_ns)
		r->until_ns = r->opt.duration_ns ? now + r->opt.duration_ns : UINT64_MAX;
	r->next_window_ns = next_window(r, now);
	if (follow_one_another(r))
		end = r->next_window_ns;
	/* the first begins at once, and may have the time of the next as well; so may one that was attached late */
	while (r->next_window_ns && r->next_window_ns < end && end != UINT64_MAX)
		r->next_window_ns += r->opt.every_ns;
	if (r->opt.every_ns && r->ended_ns)
		tell_left_out(missed_until(r, due));
	if (follow_one_another(r) && r->ended_ns)
		tell_gap(r, now, due);
	return end < r->until_ns ? end : r->until_ns;
}

/* That we come to run in time. */
static void watch_begin(void)
{
	int err = rescue__start();

	if (err)
		pr_debug("Nobody looks whether the recorder gets a CPU: %s\n", strerror(-err));
}

static void watch_end(void)
{
	uint32_t n = rescue__stop();

	if (n)
		pr_debug("Was kept from its CPU for long, and made real-time, %u times\n", n);
}

/* What --keep has no room for any more. */
static void delete_old(struct recorder *r)
{
	struct retain_deleted before = retain__deleted(r->retain), now;
	uint64_t files, recordings;
	char size[HUMAN_CELL];

	retain__end_recording(r->retain, r->opt.dir, r->s.uid);
	now = retain__deleted(r->retain);
	files = now.files - before.files;
	recordings = now.recordings - before.recordings;
	if (recordings)
		pr_info("Deleted %llu trace%s of %llu earlier recording%s, %s, for --keep\n",
			(unsigned long long)files, human__s(files), (unsigned long long)recordings,
			human__s(recordings), human__bytes(size, now.bytes - before.bytes));
}

static int record(struct recorder *r)
{
	const struct session *s = &r->s;
	uint64_t begin;
	int status;

	notify__say("READY=1");
	pr_info("Recording%s%s%s, end with Ctrl-C\n", r->opt.cmd ? " " : "",
		r->opt.cmd ? r->opt.cmd[0] : "",
		r->opt.cmd ? " and all other processes of this node that have the plugin" : "");
	print_who_has_it(r);
	watch_begin();
	begin = monotonic_ns();
	status = loop(r, end_of_window(r));
	r->ended_ns = monotonic_ns();
	r->recorded_ns = r->ended_ns - begin;
	if (stop_signals)
		notify__say("STOPPING=1");
	drain(r, stop_signals ? "loader-stopped" : "detached");
	if (r->s.digest)
		s = digest__end(r->s.digest);
	watch_end();
	print_result(r, s);
	if (r->retain)
		delete_old(r);
	r->lost |= summary__lost(&s->summary) != 0;
	r->failed |= summary__nothing_written(&s->summary);
	return status;
}

/*
 * All is set up. Who was told to end meanwhile begins no recording, and starts no command, which nobody wants any more. What is started
 * here has begun: then it ends as recordings do.
 */
static int begin(struct recorder *r)
{
	bool stopped = stop_signals && !r->until_ns;
	int status = stopped ? EXIT_OK : start_job(r);

	if (stopped || r->job == -ECANCELED) {
		follow__give_back(r, FOLLOW_LEAVE); /* who is idle would not see that we are gone */
		return status;
	}
	if (!status) {
		drop_privileges(r);
		status = start_digest(r);
	}
	return status ? status : record(r);
}

static int window(struct recorder *r)
{
	int status = setup(r);

	if (!status)
		status = begin(r);
	teardown(r);
	return status;
}

/* --delay. Whoever waits for us to start, as a service, need not wait for that: systemd would end us after a while, and start us again. */
static int delay(struct recorder *r)
{
	int status = check_dir(r); /* before there is a job whose trace it could cost */

	if (!status)
		status = start_job(r);
	if (status)
		return status;
	notify__say("READY=1");
	sleep_until(r, monotonic_ns() + r->opt.delay_ns);
	return EXIT_OK;
}

/* Who asked for a recording is told if there is none; and whether there is a command. */
static void tell_not_begun(struct recorder *r)
{
	bool over = is_over(r);
	const char *advice = r->opt.delay_ns ? ": choose a shorter --delay" : "";

	if (r->opt.cmd && r->job <= 0)
		advice = ", nor is the command started";
	pr_err("%s before the recording began, and nothing is recorded%s\n",
	       !over	    ? "Stopped"
	       : r->opt.cmd ? "The command has ended"
			    : "All processes have ended",
	       advice);
	r->failed = true;
}

static int windows(struct recorder *r)
{
	int status = EXIT_OK;

	if (r->opt.delay_ns)
		status = delay(r);
	while (!status && !stop_signals && !is_over(r)) {
		status = window(r);
		if (!status && r->opt.every_ns && !stop_signals && !is_over(r))
			leave_out_missed(r);
		if (status || !r->opt.every_ns || r->next_window_ns >= r->until_ns)
			break;
		sleep_until(r, r->next_window_ns);
	}
	if (!status && !r->until_ns)
		tell_not_begun(r);
	status_self__close(&r->status); /* of one that has ended while it waited */
	return status;
}

/*
 * The recording ends before its command: that is left alone. Where the signal was for both, as ^C on a terminal is, the command may
 * just be ending, and how it does is told as ever.
 */
static void leave_job(struct recorder *r)
{
	uint64_t until = monotonic_ns() + (stop_signals ? JOB_END_NS : 0);

	if (r->job <= 0)
		return;
	while (!job_has_ended(r) && stop_signals < 2 && monotonic_ns() < until)
		sleep_ns(PAUSE_MS * 1000000L);
	if (!r->job_ended)
		pr_info("The command goes on, unrecorded: PID %d (%s)\n", (int)r->job,
			r->opt.cmd[0]);
}

static int exit_status(const struct recorder *r)
{
	if (r->job_ended && r->job_code)
		return r->job_code;
	if (r->opt.strict && r->lost)
		return EXIT_LOST;
	return r->failed ? EXIT_FAILED : EXIT_OK;
}

int cmd_record(int argc, char **argv)
{
	static struct recorder r = {
		.made_dir = -1, .kmsg = {.fd = -1}, .gpus = {.fd = -1}, .rdma = {.fd = -1}};
	int status;

	record_options__parse(&r.opt, argc, argv);
	log_setup_libbpf();
	setup_signals();
	notify__init();
	limits_raise();
	start_samplers(&r);
	status = prepare(&r);
	if (!status)
		status = windows(&r);
	if (r.made_dir >= 0) /* stays if anything is in it */
		out_dir_unmake(r.opt.dir, r.made_dir);
	close_raw(&r);
	retain__free(r.retain);
	gpu_sampler__stop(&r.gpus);
	rdma_sampler__stop(&r.rdma);
	leave_job(&r);
	return status ? status : exit_status(&r);
}
