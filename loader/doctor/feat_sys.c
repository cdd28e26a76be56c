// SPDX-License-Identifier: BSD-2-Clause
/* Features that are not BPF programs: privileges and limits, clocks, and the plugin itself. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif
#include "attach.h"
#include "caps.h"
#include "clock.h"
#include "elf_file.h"
#include "feat_priv.h"
#include "kmsg.h"
#include "namespaces.h"
#include "node.h"
#include "plugin_path.h"
#include "scope_abi.h"
#include "scope_probes.h"

#define NOBODY 65534

int read_line(const char *path, char *buf, unsigned long len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int err;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	err = n < 0 ? -errno : 0;
	close(fd);
	if (err)
		return err;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* ---- Privileges ------------------------------------------------------------------------------ */

static bool has_cap(const struct feat_ctx *ctx, int cap)
{
	return ctx->caps >> cap & 1;
}

static int read_caps(struct feat_ctx *ctx)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &hdr, data))
		return -errno;
	ctx->caps = data[0].effective | (uint64_t)data[1].effective << 32;
	return 0;
}

static void probe_caps(struct feat_ctx *ctx)
{
	static const struct {
		enum feat_id id;
		int cap;
		bool implied; /* by CAP_SYS_ADMIN, which these were split off from; not CAP_SYSLOG any more */
	} caps[] = {
		{FEAT_CAP_BPF, CAP_BPF, true},
		{FEAT_CAP_PERFMON, CAP_PERFMON, true},
		{FEAT_CAP_SYS_PTRACE, CAP_SYS_PTRACE, false},
		{FEAT_CAP_SYS_ADMIN, CAP_SYS_ADMIN, false},
		{FEAT_CAP_DAC_OVERRIDE, CAP_DAC_OVERRIDE, false},
		{FEAT_CAP_CHECKPOINT_RESTORE, CAP_CHECKPOINT_RESTORE, true},
		{FEAT_CAP_CHOWN, CAP_CHOWN, false},
		{FEAT_CAP_SYSLOG, CAP_SYSLOG, false},
	};
	unsigned int i;

	for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		if (has_cap(ctx, caps[i].cap))
			feat_works(ctx, caps[i].id, "held%s",
				   ctx->init_userns ? "" : ", but in this user namespace only");
		else if (caps[i].implied && has_cap(ctx, CAP_SYS_ADMIN))
			feat_works(ctx, caps[i].id, "covered by CAP_SYS_ADMIN");
		else
			feat_denied(ctx, caps[i].id, "not held (uid %u)", geteuid());
	}
}

/* The user namespace of the host is the only one that maps all ids to themselves. */
static void probe_userns(struct feat_ctx *ctx)
{
	unsigned int inside = 0, outside = 0, count = 0;
	char line[128];
	int err;

	err = read_line("/proc/self/uid_map", line, sizeof(line));
	ctx->init_userns = err == -ENOENT ||
			   (!err && sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 &&
			    !inside && !outside && count == UINT_MAX);
	if (ctx->init_userns)
		feat_works(ctx, FEAT_USERNS, "yes");
	else if (err)
		feat_fails(ctx, FEAT_USERNS, err, "/proc/self/uid_map");
	else
		feat_denied(ctx, FEAT_USERNS, "no: this one maps %u ids from %u on to %u", count,
			    inside, outside);
}

static void probe_pidns(struct feat_ctx *ctx)
{
	if (namespaces__pid_is_nodes())
		feat_works(ctx, FEAT_PIDNS, "yes");
	else
		feat_fails(ctx, FEAT_PIDNS, 0, "no: this is of a container, or of unshare(1)");
}

void feat_probe_privileges(struct feat_ctx *ctx)
{
	int err;

	err = read_caps(ctx);
	if (err)
		ctx->caps = 0;
	probe_userns(ctx);
	/* It implies CAP_BPF and CAP_PERFMON, and uprobes want it itself. */
	ctx->privileged = ctx->init_userns && has_cap(ctx, CAP_SYS_ADMIN);
	probe_caps(ctx);
	probe_pidns(ctx);
}

void feat_judge_attach(struct feat_ctx *ctx)
{
	static const enum feat_id by_perf[] = {FEAT_UPROBE, FEAT_USDT};
	bool multi = feat_works_already(ctx, FEAT_UPROBE_MULTI);
	unsigned int i;

	if (!multi) {
		if (feat_works_already(ctx, FEAT_USDT))
			feat_works(ctx, FEAT_ATTACH, "perf's uprobes, by CAP_SYS_ADMIN");
		else
			feat_fails(ctx, FEAT_ATTACH, has_cap(ctx, CAP_SYS_ADMIN) ? 0 : -EPERM,
				   "neither uprobe_multi links nor perf's uprobes");
		return;
	}
	feat_works(ctx, FEAT_ATTACH, "uprobe_multi links, without CAP_SYS_ADMIN%s",
		   attach__pid_is_process() ? "" : " (with -p: from 6.12 on)");
	if (!ctx->init_userns || has_cap(ctx, CAP_SYS_ADMIN))
		return;
	feat_works(ctx, FEAT_CAP_SYS_ADMIN, "not held, not needed: see attach-path");
	for (i = 0; i < sizeof(by_perf) / sizeof(by_perf[0]); i++)
		if (!feat_works_already(ctx, by_perf[i]))
			feat_works(ctx, by_perf[i], "not through perf, but see attach-path");
}

/* Since Linux 5.11 the memory of BPF counts against the cgroup and not against RLIMIT_MEMLOCK. */
static bool memlock_is_unused(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname uts;
	int has;

	/* A helper of that version tells, as in libbpf, also where a distribution moved it back. */
	has = libbpf_probe_bpf_helper(BPF_PROG_TYPE_SOCKET_FILTER, BPF_FUNC_ktime_get_coarse_ns,
				      NULL);
	if (has >= 0 && libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SOCKET_FILTER, NULL) == 1)
		return has == 1;
	/* Not privileged to ask: the version has to do. */
	if (uname(&uts) || sscanf(uts.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 5 || (major == 5 && minor >= 11);
}

static void probe_memlock(struct feat_ctx *ctx)
{
	struct rlimit now, all = {RLIM_INFINITY, RLIM_INFINITY};
	bool raised = false;
	char limit[32];

	getrlimit(RLIMIT_MEMLOCK, &now);
	snprintf(limit, sizeof(limit), "limit unlimited");
	if (now.rlim_cur != RLIM_INFINITY)
		snprintf(limit, sizeof(limit), "limit %" PRIu64 " KiB",
			 (uint64_t)now.rlim_cur >> 10);
	if (memlock_is_unused()) {
		feat_works(ctx, FEAT_MEMLOCK, "%s, not used by BPF on this kernel", limit);
		return;
	}
	/* It stays so, for the trials: record raises it for itself, and libbpf does only once. */
	if (now.rlim_cur != RLIM_INFINITY)
		raised = !setrlimit(RLIMIT_MEMLOCK, &all);
	if (now.rlim_cur == RLIM_INFINITY || raised)
		feat_works(ctx, FEAT_MEMLOCK, "%s%s", limit, raised ? ", can be raised" : "");
	else
		feat_denied(ctx, FEAT_MEMLOCK, "%s, and may not be raised", limit);
}

static void probe_sysctls(struct feat_ctx *ctx)
{
	char value[64];
	int err;

	err = read_line("/proc/sys/kernel/unprivileged_bpf_disabled", value, sizeof(value));
	feat_works(ctx, FEAT_UNPRIV_BPF, "kernel.unprivileged_bpf_disabled = %s",
		   err ? "(absent)" : value);

	err = read_line("/proc/sys/kernel/perf_event_paranoid", value, sizeof(value));
	if (err)
		feat_fails(ctx, FEAT_PERF_PARANOID, err, "no perf events");
	else if (ctx->privileged || (ctx->init_userns && has_cap(ctx, CAP_PERFMON)))
		feat_works(ctx, FEAT_PERF_PARANOID, "%s, does not bind us", value);
	else
		feat_denied(ctx, FEAT_PERF_PARANOID, "%s, binds us", value);

	/* "none [integrity] confidentiality": the brackets show which one is on. */
	err = read_line("/sys/kernel/security/lockdown", value, sizeof(value));
	if (err)
		feat_works(ctx, FEAT_LOCKDOWN, "none (%s)",
			   err == -ENOENT ? "not shown by this kernel" : strerror(-err));
	else if (strstr(value, "[confidentiality]"))
		feat_denied(ctx, FEAT_LOCKDOWN, "%s", value);
	else
		feat_works(ctx, FEAT_LOCKDOWN, "%s", value);
}

/* Writes into a process that is another user's, if we may become one: what arming a job does. */
static void probe_proc_mem(struct feat_ctx *ctx)
{
	static volatile uint64_t word;
	const uint64_t value = 1;
	bool other = false;
	char path[32], scope[16], ok = 0;
	int to_us[2], mem = -1, err = 0;
	pid_t pid;

	if (pipe2(to_us, O_CLOEXEC)) {
		feat_fails(ctx, FEAT_PROC_MEM, -errno, "pipe");
		return;
	}
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The system call, as the C library's call would do it for all threads. */
		ok = getuid() == NOBODY || syscall(SYS_setuid, NOBODY) ? 1 : 2;
		if (write(to_us[1], &ok, 1) == 1)
			pause();
		_exit(0);
	}
	if (pid < 0)
		err = -errno;
	else if (read(to_us[0], &ok, 1) != 1)
		err = -EIO;
	other = ok == 2;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	if (!err)
		mem = open(path, O_RDWR | O_CLOEXEC);
	if (!err && (mem < 0 ||
		     pwrite(mem, &value, sizeof(value), (off_t)(uintptr_t)&word) != sizeof(value)))
		err = -errno;
	if (mem >= 0)
		close(mem);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(to_us[0]);
	close(to_us[1]);
	if (read_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)))
		snprintf(scope, sizeof(scope), "absent");
	if (err)
		feat_fails(ctx, FEAT_PROC_MEM, err, "into a process of %s, ptrace_scope %s",
			   other ? "another user" : "our own", scope);
	else if (other)
		feat_works(ctx, FEAT_PROC_MEM, "into a process of another user, ptrace_scope %s",
			   scope);
	else
		feat_works(ctx, FEAT_PROC_MEM, "into processes of our own only, ptrace_scope %s",
			   scope);
}

/* Of our own cgroup; that of a job may be another, in the same hierarchy. */
static void probe_cpu_stat(struct feat_ctx *ctx)
{
	struct node_quota quota = {0};
	struct node_cgroup cgroup;
	int err;

	err = node_cgroup__find(&cgroup, "", 0);
	if (!err)
		err = node_cgroup__read(&cgroup, &quota);
	if (err == -ENODATA)
		feat_works(ctx, FEAT_CGROUP_CPU_STAT, "v%d, nothing counted for our own cgroup",
			   cgroup.v2 ? 2 : 1);
	else if (err)
		feat_fails(ctx, FEAT_CGROUP_CPU_STAT, err, "no cpu.stat of our own cgroup");
	else
		feat_works(ctx, FEAT_CGROUP_CPU_STAT,
			   "v%d, %s quota, %" PRIu64 " of %" PRIu64 " periods throttled",
			   cgroup.v2 ? 2 : 1, cgroup.limited ? "a" : "no", quota.throttled_periods,
			   quota.periods);
	node_cgroup__close(&cgroup);
}

static void probe_schedstat(struct feat_ctx *ctx)
{
	unsigned long long run = 0, wait = 0;
	char line[128];
	int err;

	err = read_line("/proc/self/schedstat", line, sizeof(line));
	if (err || sscanf(line, "%llu %llu", &run, &wait) != 2 || !run)
		feat_fails(ctx, FEAT_SCHEDSTAT, err, "/proc/self/schedstat");
	else
		feat_works(ctx, FEAT_SCHEDSTAT, "/proc/PID/task/TID/schedstat");
}

/* A line of it; there is always one. */
static void probe_kmsg(struct feat_ctx *ctx)
{
	struct kmsg_line line;
	uint32_t budget = 1;
	struct kmsg log;
	int err = kmsg__open(&log);

	if (!err)
		err = kmsg__next(&log, &line, &budget);
	kmsg__close(&log);
	if (err < 0)
		feat_fails(ctx, FEAT_KMSG, err, "/dev/kmsg");
	else
		feat_works(ctx, FEAT_KMSG, "/dev/kmsg");
}

#define GPUS_WAIT_MS 500 /* since it was started, beside what the rest of us takes */

void feat_start_gpus(struct feat_ctx *ctx)
{
	int err = gpu_sampler__start(&ctx->gpus, ctx->opts->nvml);

	if (err)
		feat_fails(ctx, FEAT_GPUS, err, "a process to look");
	gpu_sampler__ask(&ctx->gpus, monotonic_ns());
}

void feat_judge_gpus(struct feat_ctx *ctx)
{
	struct pollfd ready = {.fd = ctx->gpus.fd, .events = POLLIN};
	struct gpu_message m;
	int n = 0, sig = 0;

	if (ctx->gpus.fd < 0)
		return;
	if (poll(&ready, 1, GPUS_WAIT_MS) > 0)
		n = gpu_sampler__next(&ctx->gpus, &m, &sig);
	if (n > 0 && m.kind == GPU_READY)
		feat_works(ctx, FEAT_GPUS, "%s", m.text);
	else if (n > 0)
		feat_fails(ctx, FEAT_GPUS, 0, "%.140s", m.kind == GPU_FAILED ? m.text : "?");
	else if (sig)
		feat_fails(ctx, FEAT_GPUS, 0, "NVML was ended by signal %d (%s)", sig,
			   strsignal(sig));
	else
		feat_fails(ctx, FEAT_GPUS, 0,
			   n ? "NVML has ended without a word"
			     : "no answer from NVML within a second or so");
	gpu_sampler__stop(&ctx->gpus);
}

void feat_probe_system(struct feat_ctx *ctx)
{
	probe_memlock(ctx);
	probe_sysctls(ctx);
	probe_proc_mem(ctx);
	probe_cpu_stat(ctx);
	probe_schedstat(ctx);
	probe_kmsg(ctx);
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

static uint64_t cpu_ticks(void)
{
#if defined(__x86_64__)
	_mm_lfence();
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/* The tightest of a few tries, so that being preempted in the middle does not spoil it. */
void clock_sample(struct clock_sample *sample)
{
	uint64_t before, ticks, after;
	int i;

	*sample = (struct clock_sample){.width_ns = UINT64_MAX};
	for (i = 0; i < 50; i++) {
		before = monotonic_ns();
		ticks = cpu_ticks();
		after = monotonic_ns();
		if (after - before >= sample->width_ns)
			continue;
		sample->width_ns = after - before;
		sample->mono_ns = before + (after - before) / 2;
		sample->ticks = ticks;
	}
}

static double ticks_per_ns(const struct clock_sample *from, const struct clock_sample *to)
{
	return (double)(to->ticks - from->ticks) / (double)(to->mono_ns - from->mono_ns);
}

static void probe_clocksource(struct feat_ctx *ctx)
{
	static const char *const cheap[] = {"tsc", "kvm-clock", "arch_sys_counter",
					    "hyperv_clocksource_tsc_page"};
	char name[64];
	unsigned int i;
	int err;

	err = read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
			sizeof(name));
	if (err) {
		feat_fails(ctx, FEAT_CLOCKSOURCE, err, "current_clocksource");
		return;
	}
	for (i = 0; i < sizeof(cheap) / sizeof(cheap[0]); i++) {
		if (!strcmp(name, cheap[i])) {
			feat_works(ctx, FEAT_CLOCKSOURCE, "%s", name);
			return;
		}
	}
	feat_fails(ctx, FEAT_CLOCKSOURCE, 0, "%s, read by a system call", name);
}

static void probe_cpu_counter(struct feat_ctx *ctx)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && d & (1U << 8))
		feat_works(ctx, FEAT_TSC, "invariant TSC");
	else
		feat_fails(ctx, FEAT_TSC, 0, "the CPU (or hypervisor) shows no invariant TSC");
#elif defined(__aarch64__)
	feat_works(ctx, FEAT_TSC, "generic timer (cntvct_el0)");
#else
	feat_fails(ctx, FEAT_TSC, 0, "none known on this architecture");
#endif
}

/*
 * Whether the counter runs evenly: the rate of the first part of our run against that of the second.
 * What two readings can be off, over the time between, is what the comparison cannot see.
 */
static void probe_counter_rate(struct feat_ctx *ctx)
{
	double first, second, ppm, blur;
	struct clock_sample last;

	sleep_ns(10000000); /* without privilege everything before was over at once */
	clock_sample(&last);
	if (last.ticks == ctx->first.ticks) {
		feat_fails(ctx, FEAT_TSC_RATE, 0, "no counter to measure");
		return;
	}
	first = ticks_per_ns(&ctx->first, &ctx->middle);
	second = ticks_per_ns(&ctx->middle, &last);
	ppm = (second / first - 1) * 1e6;
	blur = ((double)(ctx->first.width_ns + ctx->middle.width_ns) /
			(double)(ctx->middle.mono_ns - ctx->first.mono_ns) +
		(double)(ctx->middle.width_ns + last.width_ns) /
			(double)(last.mono_ns - ctx->middle.mono_ns)) *
	       0.5e6;
	if (ppm > 50 + blur || ppm < -50 - blur)
		feat_fails(ctx, FEAT_TSC_RATE, 0, "changed by %.1f ppm (+-%.1f) meanwhile", ppm,
			   blur);
	else
		feat_works(ctx, FEAT_TSC_RATE, "%.3f MHz, even to %.1f ppm (+-%.1f)",
			   ticks_per_ns(&ctx->first, &last) * 1e3, ppm, blur);
}

static void probe_bpf_clock(struct feat_ctx *ctx)
{
	if (!ctx->bpf_ts_ns) {
		feat_skip(ctx, FEAT_BPF_CLOCK, FEAT_RINGBUF);
	} else if (ctx->bpf_ts_ns < ctx->bpf_before_ns || ctx->bpf_ts_ns > ctx->bpf_after_ns) {
		feat_fails(ctx, FEAT_BPF_CLOCK, 0, "%+.3f s from CLOCK_MONOTONIC",
			   ((double)ctx->bpf_ts_ns - (double)ctx->bpf_before_ns) / 1e9);
	} else {
		feat_works(ctx, FEAT_BPF_CLOCK, "is CLOCK_MONOTONIC");
	}
}

void feat_probe_clock(struct feat_ctx *ctx)
{
	probe_clocksource(ctx);
	probe_cpu_counter(ctx);
	probe_counter_rate(ctx);
	probe_bpf_clock(ctx);
}

/* ---- The plugin ------------------------------------------------------------------------------ */

static void probe_plugin_build_id(struct feat_ctx *ctx, int fd)
{
	char id[ELF_BUILD_ID_LEN];
	int err;

	err = elf__build_id(fd, id, sizeof(id));
	if (err)
		feat_fails(ctx, FEAT_PLUGIN_BUILD_ID, err, "no build id");
	else
		feat_works(ctx, FEAT_PLUGIN_BUILD_ID, "%s", id);
}

static void probe_plugin_probes(struct feat_ctx *ctx, int fd)
{
	static const char *const probes[] = {SCOPE_PROBE_FLUSH, SCOPE_PROBE_START,
					     SCOPE_PROBE_STATE, SCOPE_PROBE_STOP};
	unsigned long long semaphore;
	char found[128] = "";
	unsigned int i;
	size_t len;
	int sites, err;

	for (i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		err = elf__usdt(fd, SCOPE_PROVIDER, probes[i], &sites, &semaphore);
		if (!err && !semaphore)
			err = -ENODATA;
		if (err) {
			feat_fails(ctx, FEAT_PLUGIN_PROBES, 0, SCOPE_PROVIDER ":%s %s", probes[i],
				   err == -ENOENT    ? "is not in it"
				   : err == -ENODATA ? "has no semaphore"
						     : strerror(-err));
			return;
		}
		len = strlen(found);
		snprintf(found + len, sizeof(found) - len, " %s", probes[i]);
	}
	err = elf__symbol(fd, SCOPE_CONTROL_SYMBOL, NULL, NULL);
	if (err)
		feat_fails(ctx, FEAT_PLUGIN_PROBES, err, "symbol " SCOPE_CONTROL_SYMBOL);
	else
		feat_works(ctx, FEAT_PLUGIN_PROBES, SCOPE_PROVIDER ":%s, with semaphores",
			   found + 1);
}

static void probe_plugin_nccl(struct feat_ctx *ctx, int fd)
{
	unsigned int version, n = 0, last = 0;
	char name[32], found[64] = "";
	size_t len;
	int err;

	for (version = 1; version <= 7; version++) {
		snprintf(name, sizeof(name), "ncclProfiler_v%u", version);
		err = elf__symbol(fd, name, NULL, NULL);
		if (err == -ENOENT)
			continue;
		if (err) {
			feat_fails(ctx, FEAT_PLUGIN_NCCL, err, "symbols");
			return;
		}
		len = strlen(found);
		snprintf(found + len, sizeof(found) - len, " v%u", version);
		last = version;
		n++;
	}
	if (!n)
		feat_fails(ctx, FEAT_PLUGIN_NCCL, 0, "no symbol ncclProfiler_v1 to v7");
	else if (n < 7)
		feat_fails(ctx, FEAT_PLUGIN_NCCL, 0, "only%s of v1 to v7", found);
	else
		feat_works(ctx, FEAT_PLUGIN_NCCL, "ncclProfiler_v1 to v%u", last);
}

void feat_probe_plugin(struct feat_ctx *ctx)
{
	static const enum feat_id rest[] = {FEAT_PLUGIN_BUILD_ID, FEAT_PLUGIN_PROBES,
					    FEAT_PLUGIN_NCCL};
	const char *given = ctx->opts->plugin;
	char path[PATH_MAX];
	unsigned int i;
	int err, fd = -1;

	if (!given)
		given = getenv("NCCLSCOPE_PLUGIN");
	err = plugin__find(ctx->opts->plugin, path, sizeof(path));
	if (!err) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			err = -errno;
	}
	if (err) {
		feat_fails(ctx, FEAT_PLUGIN_PATH, err, "%s", given && *given ? given : PLUGIN_FILE);
		for (i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
			feat_fails(ctx, rest[i], 0, "not tried, no plugin");
			feat_advise(ctx, rest[i], "See plugin-path.");
		}
		return;
	}
	feat_works(ctx, FEAT_PLUGIN_PATH, "%s", path);
	probe_plugin_build_id(ctx, fd);
	probe_plugin_probes(ctx, fd);
	probe_plugin_nccl(ctx, fd);
	close(fd);
}
