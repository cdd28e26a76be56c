// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope record`: set up, run, drain, tear down. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "attach.h"
#include "cmd.h"
#include "decode.h"
#include "decode_net.h"
#include "decode_sched.h"
#include "job.h"
#include "log.h"
#include "nccl_names.h"
#include "plugin_path.h"
#include "recorder.h"
#include "rlimits.h"
#include "target.h"
#include "trace.h"

#define POLL_MS	    50
#define OUTSIDE_NS  (200 * 1000000ull) /* a buffer silent for so long is read from outside */
#define FOLLOW_NS   (200 * 1000000ull) /* lines reach their file within this */
#define CLOCK_NS    (10 * NSEC_PER_SEC)
#define RDMA_AGE_NS (20 * 1000000ull) /* what drivers tell of their ports may be so old */
#define NODE_NS	    NSEC_PER_SEC
#define DRAIN_NS    (500 * 1000000ull) /* for processes of a job that has ended */
#define SETTLE_NS   (100 * 1000000ull) /* for operations in flight when the recording ends */
#define NET_END_NS  NSEC_PER_SEC /* the same, while its connections' last figures are not in */
#define END_NS	    (100 * 1000000ull) /* after a process' end, for its other threads' last records */

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

/* ---- The loop ---------------------------------------------------------------------------------- */

/* What the node and its process' network had counted now: the next interval begins here. */
static void hold_node(struct proc *p, struct netdev_sample *netdev)
{
	const struct session *s = p->session;

	node_sample__put(p->node);
	p->node = node_sample__get(s->node.last);
	if (netdev) {
		netdev_sample__put(p->netdev);
		p->netdev = netdev_sample__get(netdev);
	}
	p->softnet = s->netdev.softnet;
}

/* Besides what /proc tells. */
static void sample_net(struct recorder *r)
{
	struct node_sample *node = r->s.node.last;
	uint32_t cpu;

	netdev__round(&r->s.netdev);
	for (cpu = 0; r->s.features.irq && cpu < node->ncpus; cpu++) {
		node->cpus[cpu].has_net_rx = true;
		node->cpus[cpu].net_rx = attach__net_rx(r->attach, cpu);
	}
}

/* Once a process is in its file: what the node did since. Its first interval begins here. */
static void tick_node(struct recorder *r)
{
	struct session *s = &r->s;
	struct netdev_sample *netdev;
	struct proc *p, *tmp;

	if ((!s->sched_mode && !s->counters) || !s->procs || node__sample(&s->node))
		return;
	if (s->counters)
		sample_net(r);
	HASH_ITER (hh, s->procs, p, tmp) {
		netdev = s->counters ? netdev__of(&s->netdev, (pid_t)p->key.tgid) : NULL;
		if (p->node && p->header_written)
			trace__node(p, s->node.last, netdev);
		else if (!p->node && s->sched_mode &&
			 !node_cgroup__find(&p->cgroup, "", (pid_t)p->key.tgid))
			p->has_quota = !node_cgroup__read(&p->cgroup, &p->quota);
		hold_node(p, netdev);
	}
}

static void tick_rdma(struct recorder *r)
{
	struct proc *p, *tmp;
	uint64_t begin;

	HASH_ITER (hh, r->s.procs, p, tmp)
		if (!p->ended_ns)
			rdma__look(&r->s.rdma, &p->rdma, (pid_t)p->key.tgid);
	begin = monotonic_ns();
	if (rdma__sample(&r->s.rdma))
		r->rdma_ns = begin - RDMA_AGE_NS;
	HASH_ITER (hh, r->s.procs, p, tmp)
		p->net.ports_ns = p->rdma.devices ? r->rdma_ns : UINT64_MAX;
}

/* Sockets that a process had open before we knew it; then what all of them have counted. */
static void tick_net(struct recorder *r, uint64_t now, bool late)
{
	int n;

	if (r->s.net_mode && r->s.net.look) {
		n = attach__find_flows(r->attach);
		pr_debug("Sockets that were open already: %d\n", n);
		r->s.net.look = false;
	}
	decode_net__tick(&r->s, now, !late);
}

/* Its other threads' last records are in, and what its connections did until then. */
static bool has_ended(const struct recorder *r, const struct proc *p, uint64_t now)
{
	bool net = r->s.net_mode && r->s.net.complete_ns < p->ended_ns;

	return now >= p->ended_ns + (net ? NET_END_NS : END_NS);
}

/*
 * `now`: all that is older is in. When we are behind (`late`: we were kept from running, or the jobs are
 * faster), a process' time goes on with its records, or what is still in the ring would come too late.
 */
static void tick(struct recorder *r, uint64_t now, bool late)
{
	bool follow = now >= r->next_follow_ns, clock = now >= r->next_clock_ns;
	struct proc *p, *tmp;

	if (r->s.counters)
		tick_rdma(r);
	if (now >= r->next_outside_ns) {
		follow__read_outside(r, monotonic_ns(), OUTSIDE_NS, false);
		follow__ask_sleepers(r, OUTSIDE_NS / 2);
		r->next_outside_ns = now + OUTSIDE_NS;
		follow__reap(r);
	}
	tick_net(r, now, late);
	HASH_ITER (hh, r->s.procs, p, tmp) {
		if (p->ended_ns && has_ended(r, p, now)) {
			decode__end(p, p->end_status, false, p->end_lost_recs);
			continue;
		}
		correlate__tick(&p->corr, late ? p->corr.now_ns : now);
		if (clock && p->header_written)
			trace__clock(p, now);
		/* What was lost may have been a string or a communicator: have all of them told again. */
		if (follow)
			follow__relearn(r, p);
		if (follow && p->header_written) {
			trace__lost(p, now, false);
			out_file__flush(&p->out);
		}
	}
	if (follow) {
		decode_sched__tick(&r->s, now);
		r->next_follow_ns = now + FOLLOW_NS;
	}
	if (now >= r->next_node_ns) {
		tick_node(r);
		r->next_node_ns = now + NODE_NS;
	}
	if (clock)
		r->next_clock_ns = now + CLOCK_NS;
}

static int run(struct recorder *r)
{
	uint64_t begin = monotonic_ns(), now, drain_until = 0;
	int n;

	for (;;) {
		clock_fit__sample(&r->s.clock);
		now = monotonic_ns();
		n = attach__poll(r->attach, POLL_MS);
		if (n < 0) {
			pr_err("Failed to read the ring buffer: %s\n", strerror(-n));
			return EXIT_FAILED;
		}
		tick(r, now, n >= ATTACH_POLL_MAX);
		now = monotonic_ns();
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

static int source_flows(void *arg, attach_flow_fn fn, void *fn_arg)
{
	return attach__flows(((struct recorder *)arg)->attach, fn, fn_arg);
}

static const char *source_drop_reason(void *arg, uint32_t reason)
{
	return attach__drop_reason(((struct recorder *)arg)->attach, reason);
}

static const char *source_symbol(void *arg, uint64_t address)
{
	return ksyms__name(&((struct recorder *)arg)->ksyms, address);
}

static int session_init(struct recorder *r)
{
	int cpus = libbpf_num_possible_cpus();
	struct session *s = &r->s;
	time_t t = time(NULL);
	struct tm tm;

	s->dir = r->opt.dir;
	s->mask = r->opt.mask;
	s->ring_bytes = r->opt.ring_bytes;
	s->sched_mode = r->opt.sched;
	s->counters = r->opt.net != NET_MODE_OFF;
	s->features.sched = s->features.irq = s->sched_mode;
	s->net_mode = r->opt.net;
	s->features.net = s->net_mode;
	s->keep = event_mask_closure(s->mask);
	strftime(s->stamp, sizeof(s->stamp), "%Y%m%d-%H%M%S", localtime_r(&t, &tm));
	invoking_user(&s->uid, &s->gid);
	clock_fit__init(&s->clock, clock_source());
	clock_fit__sample(&s->clock);
	node__init(&s->node, "");
	netdev__init(&s->netdev, "");
	s->net.source = (struct net_source){.arg = r,
					    .flows = source_flows,
					    .drop_reason = source_drop_reason,
					    .symbol = source_symbol};
	decode_net__init(s);
	return sched__init(&s->sched, cpus > 0 ? (uint32_t)cpus : 1);
}

static int open_rdma(struct recorder *r)
{
	int err = r->s.counters ? rdma__init(&r->s.rdma, r->opt.rdma_root) : 0;

	if (err)
		pr_err("Failed to open '%s' for RDMA counters: %s\n", r->opt.rdma_root,
		       strerror(-err));
	return err ? EXIT_FAILED : EXIT_OK;
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

static int attach_all(struct recorder *r)
{
	int err = attach__plugin(r->attach, r->plugin, -1);

	if (err) {
		pr_err("Failed to attach to the plugin '%s': %s; 'ncclscope doctor' tells more\n",
		       r->plugin, strerror(-err));
		return err == -EPERM || err == -EACCES ? EXIT_PRIVILEGE : EXIT_KERNEL;
	}
	r->s.attached_ns = monotonic_ns();
	follow__want_running(r, r->opt.mask);
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
		err = follow__want(r, &t, pid, r->opt.mask);
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

	err = session_init(r);
	if (err) {
		pr_err("Failed to allocate: %s\n", strerror(-err));
		return EXIT_FAILED;
	}
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
	status = open_rdma(r);
	if (!status)
		status = check_dir(&r->s);
	if (status)
		return status;
	r->attach = attach__open(r->opt.ring_bytes, &r->s.features, follow__record, r, &status);
	if (!r->attach)
		return status;
	if (!r->s.features.sched)
		r->s.sched_mode = SCHED_MODE_OFF;
	if (!r->s.features.net)
		r->s.net_mode = NET_MODE_OFF;
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
	uint64_t end_ns;

	follow__give_back(r);
	settle(r);
	clock_fit__sample(&r->s.clock);
	r->s.end_ns = monotonic_ns();
	for (i = 0; behind && i < 5; i++) {
		attach__drain(r->attach);
		behind = follow__read_outside(r, monotonic_ns(), 0, false);
	}
	if (behind)
		follow__read_outside(r, monotonic_ns(), 0, true);
	end_ns = monotonic_ns();
	follow__ask_sleepers(r, 0);
	decode_net__last(&r->s);
	attach__detach(r->attach);
	attach__drain(r->attach);
	decode_net__complete(&r->s);
	follow__reap(r);
	follow__count_tail(r);
	if (r->s.counters)
		rdma__sample_now(&r->s.rdma);
	if (r->s.sched_mode)
		decode_sched__end(&r->s, end_ns);
	HASH_ITER (hh, r->s.procs, p, tmp) {
		if (p->ended_ns) {
			decode__end(p, p->end_status, false, p->end_lost_recs);
			continue;
		}
		p->corr.now_ns = end_ns;
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
		[SCOPE_STAT_CHUNKS] = "chunks",
		[SCOPE_STAT_RECS] = "records",
		[SCOPE_STAT_RING_FULL] = "ring full",
		[SCOPE_STAT_BAD_TBUF] = "bad buffers",
		[SCOPE_STAT_FAULT] = "unreadable",
		[SCOPE_STAT_DYING] = "of dying threads",
		[SCOPE_STAT_MAP_FULL] = "map full",
		[SCOPE_STAT_SCHED] = "records of context",
		[SCOPE_STAT_SCHED_LOST] = "of these lost",
		[SCOPE_STAT_NET] = "records of flows",
		[SCOPE_STAT_NET_LOST] = "records of flows lost",
		[SCOPE_STAT_FLOWS_FULL] = "flows beyond the table",
	};
	uint32_t i;

	for (i = 0; i < SCOPE_STAT_N; i++)
		pr_debug("BPF: %s %llu\n", names[i],
			 (unsigned long long)attach__stat(r->attach, i));
	pr_debug("Clock: %llu Hz, worst fit %llu ns\n", (unsigned long long)r->s.clock.hz,
		 (unsigned long long)r->s.clock.error_ns);
	pr_debug("Late states and stops: %llu, bad records: %llu, of unknown kinds: %llu\n",
		 (unsigned long long)r->s.summary.late, (unsigned long long)r->s.bad_records,
		 (unsigned long long)r->s.skipped_kinds);
	pr_debug("Steps: %llu, whose flow is the thread's %llu, or helpers' %llu, not known %llu\n",
		 (unsigned long long)r->s.net.steps, (unsigned long long)r->s.net.direct,
		 (unsigned long long)r->s.net.helped, (unsigned long long)r->s.net.unsure);
	pr_debug("Kernel context lost of processes that are not recorded: %llu\n",
		 (unsigned long long)r->s.context_lost);
}

static void print_rdma(const struct rdma *r)
{
	pr_debug("RDMA counters: %llu samples, %llu us each, the longest %llu us\n",
		 (unsigned long long)r->samples,
		 (unsigned long long)(r->samples ? r->cost_ns / r->samples / 1000 : 0),
		 (unsigned long long)r->max_cost_ns / 1000);
	if (r->cut)
		pr_warn("Some RDMA counters are not in the trace: there were more than %d devices, "
			"%d ports, %d counters of a port, or the open files that we may have\n",
			RDMA_DEVICES_MAX, RDMA_PORTS_MAX, RDMA_COUNTERS_MAX);
}

static void print_result(const struct recorder *r)
{
	struct out_dir *d = r->s.dirs;

	print_stats(r);
	print_rdma(&r->s.rdma);
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
	node__free(&r->s.node);
	netdev__free(&r->s.netdev);
	rdma__free(&r->s.rdma);
	sched__free(&r->s.sched);
	decode_net__free(&r->s);
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

	record_options__parse(&r.opt, argc, argv);
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
