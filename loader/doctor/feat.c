// SPDX-License-Identifier: BSD-2-Clause
/* The table of features that ncclscope wants from a node, and how a probe's result is judged. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cmd.h"
#include "feat_priv.h"

#define PRIVILEGE "privilege"
#define BPF	  "bpf"
#define CONTEXT	  "kernel context"
#define NETWORK	  "network context"
#define CLOCK	  "clock"
#define PLUGIN	  "plugin"

static const char run_as_root[] =
	"Run ncclscope as root (sudo), or give it CAP_SYS_ADMIN and CAP_SYS_PTRACE, and for other "
	"users' jobs CAP_DAC_OVERRIDE and CAP_CHOWN.";

static const char newer_or_config[] =
	"Boot a kernel from 5.10 on with CONFIG_BPF_SYSCALL, CONFIG_BPF_EVENTS and "
	"CONFIG_DEBUG_INFO_BTF, as every current distribution builds it.";

static const char without_context[] = "record does without what the kernel did to the threads "
				      "(--sched=off). To have it: a kernel from "
				      "5.10 on with CONFIG_BPF_EVENTS and CONFIG_DEBUG_INFO_BTF.";

static const char without_irq[] =
	"record does without the time that interrupts took. To have it: a kernel from 5.10 on with "
	"CONFIG_BPF_EVENTS and CONFIG_DEBUG_INFO_BTF.";

static const char without_net[] = "record does without what the network did (--net=off). To have "
				  "it: a kernel from 5.10 on with CONFIG_INET, CONFIG_BPF_EVENTS "
				  "and CONFIG_DEBUG_INFO_BTF.";

static const char send_by_function[] = "Nothing to do: record follows tcp_sendmsg instead.";

static const char recv_by_function[] =
	"Nothing to do: record follows tcp_recvmsg instead, or tcp_rcv_space_adjust where there is "
	"no fexit, and cannot say then how long a receiver had no data. To have it: Linux 6.3.";

static const char no_recv_fexit[] =
	"Nothing to do where tp_btf-sock_recv_length works. Else record follows "
	"tcp_rcv_space_adjust, and cannot say how long a receiver had no data.";

static const char before_6_3[] =
	"Nothing to do where tp_btf-sock_send_length works, or one of fexit-tcp_sendmsg and "
	"kprobe-tcp_sendmsg. Without any, record does without what the network did.";

/* One feature a paragraph: what clang-format makes of it cannot be read. */
/* clang-format off */
const struct feat_desc feat_descs[FEAT_CNT] = {
	[FEAT_CAP_BPF] = {
		"CAP_BPF", PRIVILEGE, true,
		"loading BPF programs and maps",
		run_as_root},
	[FEAT_CAP_PERFMON] = {
		"CAP_PERFMON", PRIVILEGE, true,
		"attaching to probes of all processes, reading their memory",
		run_as_root},
	[FEAT_CAP_SYS_PTRACE] = {
		"CAP_SYS_PTRACE", PRIVILEGE, true,
		"finding and arming jobs of other users",
		run_as_root},
	[FEAT_CAP_SYS_ADMIN] = {
		"CAP_SYS_ADMIN", PRIVILEGE, true,
		"attaching uprobes before Linux 6.6: their perf events ask for it",
		run_as_root},
	[FEAT_CAP_DAC_OVERRIDE] = {
		"CAP_DAC_OVERRIDE", PRIVILEGE, false,
		"arming other users' jobs, their libraries and directories",
		"Run as root, or add CAP_DAC_OVERRIDE; without it other users' jobs are recorded only if "
		"they start later."},
	[FEAT_CAP_CHECKPOINT_RESTORE] = {
		"CAP_CHECKPOINT_RESTORE", PRIVILEGE, false,
		"the very files that a job has loaded (/proc/PID/map_files)",
		"Run as root, or add CAP_CHECKPOINT_RESTORE; without it libraries are found by name."},
	[FEAT_CAP_CHOWN] = {
		"CAP_CHOWN", PRIVILEGE, false,
		"giving trace files to the job's user",
		"Run as root, or add CAP_CHOWN; without it other users' jobs are not recorded."},
	[FEAT_CAP_SYSLOG] = {
		"CAP_SYSLOG", PRIVILEGE, false,
		"naming where in the kernel a packet was dropped, or a thread sleeps",
		"Run as root, or add CAP_SYSLOG; without it the place is not named."},
	[FEAT_USERNS] = {
		"init-user-namespace", PRIVILEGE, true,
		"capabilities that count for BPF",
		"Run outside the user namespace: BPF asks for capabilities of the host, which "
		"root in a rootless container does not have."},
	[FEAT_PIDNS] = {
		"init-pid-namespace", PRIVILEGE, false,
		"seeing the node's jobs, by the numbers that BPF knows",
		"Run in the node's pid namespace: docker run --pid=host, hostPID: true in a pod. Else only jobs "
		"of this container are recorded, and those that run already without names, ranks and environment."},
	[FEAT_MEMLOCK] = {
		"memlock", PRIVILEGE, true,
		"memory of BPF maps and rings",
		"Raise the limit: ulimit -l unlimited, LimitMEMLOCK=infinity in systemd, or "
		"--ulimit memlock=-1 for a container."},
	[FEAT_UNPRIV_BPF] = {
		"unprivileged-bpf", PRIVILEGE, false,
		"nothing; tells how BPF is guarded",
		"Nothing to do: record needs privileges in any case."},
	[FEAT_PERF_PARANOID] = {
		"perf-paranoid", PRIVILEGE, false,
		"perf events without CAP_PERFMON",
		"Run as root or with CAP_PERFMON, which this setting does not bind."},
	[FEAT_LOCKDOWN] = {
		"lockdown", PRIVILEGE, true,
		"BPF that reads memory",
		"Boot with lockdown=integrity or none: 'confidentiality' forbids BPF to read "
		"memory."},
	[FEAT_PROC_MEM] = {
		"process-memory", PRIVILEGE, true,
		"arming a running job by writing NCCL's mask",
		"Set kernel.yama.ptrace_scope below 3 (sysctl), and let us trace other users' processes "
		"(docker: --cap-add SYS_PTRACE)."},
	[FEAT_LIBBPF] = {
		"libbpf", BPF, true,
		"loading everything below",
		"Install libbpf 1.1 or later."},
	[FEAT_BTF] = {
		"btf", BPF, true,
		"fitting programs to this kernel (CO-RE), tp_btf",
		"Boot a kernel with CONFIG_DEBUG_INFO_BTF=y: RHEL from 8.2, Debian from 11, "
		"Ubuntu from 20.10; in a container mount /sys."},
	[FEAT_RINGBUF] = {
		"ring-buffer", BPF, true,
		"carrying records to the loader",
		newer_or_config},
	[FEAT_RING_MEMORY] = {
		"ring-memory", BPF, true,
		"the ring that record asks for",
		"Give the loader's cgroup more memory, or ask record for a smaller ring."},
	[FEAT_UPROBE] = {
		"uprobe", BPF, true,
		"attaching to the plugin",
		"Boot a kernel with CONFIG_UPROBE_EVENTS=y and CONFIG_PERF_EVENTS=y; in a "
		"container let seccomp pass perf_event_open."},
	[FEAT_READ_USER] = {
		"probe-read-user", BPF, true,
		"copying records out of the job",
		newer_or_config},
	[FEAT_USDT] = {
		"usdt-semaphore", BPF, true,
		"receiving records; a job that knows when nobody looks",
		"Boot a kernel from 5.10 on with CONFIG_UPROBE_EVENTS=y."},
	[FEAT_UPROBE_MULTI] = {
		"uprobe-multi", BPF, false,
		"attaching to the plugin without CAP_SYS_ADMIN (Linux 6.6)",
		"Nothing to do: record attaches through perf instead, which takes CAP_SYS_ADMIN."},
	[FEAT_ATTACH] = {
		"attach-path", BPF, true,
		"attaching to the plugin, by either way",
		run_as_root},
	[FEAT_SLEEPABLE] = {
		"sleepable-uprobe", BPF, false,
		"reading user pages that are not in memory (Linux 6.0)",
		"Nothing to do: strings that are swapped out stay unread."},
	[FEAT_BASE_PROGRAMS] = {
		"base-programs", BPF, true,
		"recording anything: what jobs hand in, and their end",
		"'ncclscope record -v' shows why. For a lack of memory: give the loader's cgroup more."},
	[FEAT_PROGRAMS] = {
		"record-programs", BPF, false,
		"what the scheduler and the network did",
		"record does without, but for a lack of memory: see base-programs. 'ncclscope record -v' shows why."},
	[FEAT_SCHED_SWITCH] = {
		"tp_btf-sched_switch", CONTEXT, false,
		"when threads ran and waited, who ran instead",
		without_context},
	[FEAT_SCHED_WAKEUP] = {
		"tp_btf-sched_wakeup", CONTEXT, false,
		"when a thread that slept began to wait for a CPU",
		without_context},
	[FEAT_SCHED_WAKEUP_NEW] = {
		"tp_btf-sched_wakeup_new", CONTEXT, false,
		"the same for a new thread",
		without_context},
	[FEAT_SCHED_WAKING] = {
		"tp_btf-sched_waking", CONTEXT, false,
		"who ended a thread's long sleep, and which file it slept in",
		"Nothing to do: sched has no wokenBy and no files."},
	[FEAT_SCHED_MIGRATE] = {
		"tp_btf-sched_migrate_task", CONTEXT, false,
		"threads that wait and are moved to another CPU",
		without_context},
	[FEAT_SCHED_FORK] = {
		"tp_btf-sched_process_fork", CONTEXT, false,
		"threads that are known from their beginning",
		without_context},
	[FEAT_SCHED_EXEC] = {
		"tp_btf-sched_process_exec", CONTEXT, true,
		"noticing that a process became another one",
		newer_or_config},
	[FEAT_SCHED_EXIT] = {
		"tp_btf-sched_process_exit", CONTEXT, true,
		"the end of threads and processes",
		newer_or_config},
	[FEAT_EXIT_MEMORY] = {
		"exit-memory", CONTEXT, false,
		"the last records of a thread that exits, read as it exits",
		"Nothing to do: on this kernel (before 6.16) the memory is gone by then, and record "
		"reads it at the entry of do_exit by fentry. Without that as well, what a thread has "
		"not handed in when it calls _exit(2), 10 ms at most, is lost."},
	[FEAT_SIGNAL_DELIVER] = {
		"tp_btf-signal_deliver", CONTEXT, true,
		"the last records of a process that is killed",
		newer_or_config},
	[FEAT_SIGNAL_MEMORY] = {
		"signal-memory", CONTEXT, false,
		"reading memory of a thread that is being killed",
		"Nothing to do, but up to 10 ms of records are lost when a job is killed."},
	[FEAT_SIGNAL_GENERATE] = {
		"tp_btf-signal_generate", CONTEXT, true,
		"who sent a process the signal that ended or stopped it",
		newer_or_config},
	[FEAT_IRQ_ENTRY] = {
		"tp_btf-irq_handler_entry", CONTEXT, false,
		"time that interrupts took from threads",
		without_irq},
	[FEAT_IRQ_EXIT] = {
		"tp_btf-irq_handler_exit", CONTEXT, false,
		"the same",
		without_irq},
	[FEAT_SOFTIRQ_ENTRY] = {
		"tp_btf-softirq_entry", CONTEXT, false,
		"time that soft interrupts (network, timers) took from threads",
		without_irq},
	[FEAT_SOFTIRQ_EXIT] = {
		"tp_btf-softirq_exit", CONTEXT, false,
		"the same",
		without_irq},
	[FEAT_SYSCALL] = {
		"syscall-in-progress", CONTEXT, false,
		"naming the system call in which a thread is blocked",
		"Nothing to do: blockedIn says \"other\". To have it: Linux 5.15, for its "
		"bpf_task_pt_regs."},
	[FEAT_RUN_QUEUE] = {
		"run-queue", CONTEXT, false,
		"nothing; who runs on a CPU that has not switched since recording began",
		"Nothing to do: record follows the switches instead. To have it: a kernel with "
		"CONFIG_FAIR_GROUP_SCHED=y."},
	[FEAT_THROTTLING] = {
		"cfs-throttling", CONTEXT, false,
		"telling a CPU quota from a busy CPU",
		"Nothing to do: threads held back by a quota are shown as waiting, without throttled. To "
		"have it: a kernel with CONFIG_CFS_BANDWIDTH=y."},
	[FEAT_CGROUP_CPU_STAT] = {
		"cgroup-cpu-stat", CONTEXT, false,
		"what CPU quotas did to the process, as the kernel counts it (node records)",
		"Mount the cgroup hierarchy that has the cpu controller (v2: enable it in "
		"cgroup.subtree_control); in a container show us /sys/fs/cgroup."},
	[FEAT_SCHEDSTAT] = {
		"schedstat", CONTEXT, false,
		"nothing; the kernel's own sums, to hold ours against",
		"Nothing to do. To have it: a kernel with CONFIG_SCHED_INFO=y."},
	[FEAT_KMSG] = {
		"kernel-log", CONTEXT, false,
		"what the kernel logs of GPUs, links, disks and memory that fail (kmsg records)",
		"Run as root or give it CAP_SYSLOG; in a container show us /dev/kmsg, and let us read it."},
	[FEAT_GPUS] = {
		"gpus-nvml", CONTEXT, false,
		"what clocks, power, heat and errors of the GPUs were (gpu records)",
		"Nothing to do where there is no GPU of NVIDIA's. Else: " GPU_LIBRARY " comes with the driver; "
		"in a container, NVIDIA_DRIVER_CAPABILITIES=utility, or see record --nvml."},
	[FEAT_CORE] = {
		"core-task_struct", CONTEXT, true,
		"pids as the job's container sees them",
		newer_or_config},
	[FEAT_NS_PID] = {
		"ns-pid-helper", CONTEXT, false,
		"the same by helper (bpf_get_ns_current_pid_tgid)",
		"Nothing to do: record reads task_struct instead."},
	[FEAT_RAW_TP] = {
		"raw-tracepoint", CONTEXT, false,
		"system-call entry and other events without BTF",
		newer_or_config},
	[FEAT_TRACEPOINT] = {
		"tracepoint", CONTEXT, false,
		"events through tracefs",
		"Mount it, if a tool asks for it: mount -t tracefs nodev /sys/kernel/tracing. "
		"record does without."},
	[FEAT_ITER] = {
		"iter-task", CONTEXT, false,
		"the threads that are there when recording starts",
		"Nothing to do: record reads /proc instead."},
	[FEAT_KPROBE] = {
		"kprobe", CONTEXT, false,
		"extras inside kernel functions",
		"Nothing to do: record uses tracepoints. To have it: a kernel with "
		"CONFIG_KPROBES=y."},
	[FEAT_FENTRY] = {
		"fentry", CONTEXT, false,
		"extras inside kernel functions, cheaper",
		"Nothing to do: record uses tracepoints. To have it: a kernel with "
		"CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS that lets BPF attach to functions."},
	[FEAT_NET_SEND] = {
		"tp_btf-sock_send_length", NETWORK, false,
		"which thread sent how much on which connection, and when it found no room",
		send_by_function},
	[FEAT_NET_RECV] = {
		"tp_btf-sock_recv_length", NETWORK, false,
		"which thread received how much on which connection, and when it found nothing",
		recv_by_function},
	[FEAT_NET_RECV_FEXIT] = {
		"fexit-tcp_recvmsg", NETWORK, false,
		"the same before Linux 6.3",
		no_recv_fexit},
	[FEAT_NET_ADJUST] = {
		"tp_btf-rcv_space_adjust", NETWORK, false,
		"which thread received how much, where there is no fexit (tcp_rcv_space_adjust)",
		"Nothing to do where tp_btf-sock_recv_length or fexit-tcp_recvmsg works."},
	[FEAT_NET_SEND_FEXIT] = {
		"fexit-tcp_sendmsg", NETWORK, false,
		"the same for senders before Linux 6.3",
		before_6_3},
	[FEAT_NET_KPROBE] = {
		"kprobe-tcp_sendmsg", NETWORK, false,
		"the same where there is no fexit",
		before_6_3},
	[FEAT_NET_STATE] = {
		"tp_btf-inet_sock_set_state", NETWORK, false,
		"connections that are opened and closed",
		without_net},
	[FEAT_NET_DESTROY] = {
		"tp_btf-tcp_destroy_sock", NETWORK, false,
		"the end of connections",
		without_net},
	[FEAT_NET_TCP] = {
		"core-tcp_sock", NETWORK, false,
		"the kernel's figures of a connection",
		without_net},
	[FEAT_NET_FLOWS] = {
		"prog-run", NETWORK, false,
		"reading the figures of all connections every 100 ms",
		without_net},
	[FEAT_NET_FILES] = {
		"iter-task_file", NETWORK, false,
		"connections that are there when recording starts",
		"Nothing to do: they are seen when they are used."},
	[FEAT_NET_RETRANS] = {
		"tp_btf-tcp_retransmit_skb", NETWORK, false,
		"the time of each retransmission",
		"Nothing to do: record has their number all the same."},
	[FEAT_NET_RESET_IN] = {
		"tp_btf-tcp_receive_reset", NETWORK, false,
		"connections that the other end resets",
		"Nothing to do: record sees that they are closed."},
	[FEAT_NET_RESET_OUT] = {
		"tp_btf-tcp_send_reset", NETWORK, false,
		"connections that this end resets",
		"Nothing to do: record sees that they are closed."},
	[FEAT_NET_DROP] = {
		"tp_btf-kfree_skb", NETWORK, false,
		"packets of connections that the kernel drops, and where",
		"Nothing to do: record sees that they are sent again."},
	[FEAT_NET_REASON] = {
		"drop-reasons", NETWORK, false,
		"why it drops them",
		"Nothing to do: record says where. To have it: Linux 5.17."},
	[FEAT_CLOCKSOURCE] = {
		"clocksource", CLOCK, false,
		"cheap time stamps",
		"Find out why the kernel left the TSC (dmesg | grep -i tsc); time stamps cost a "
		"system call until then."},
	[FEAT_TSC] = {
		"cpu-counter", CLOCK, false,
		"time stamps without the kernel",
		"Nothing to do: the plugin calls clock_gettime() instead, about 13 ns more per "
		"record."},
	[FEAT_TSC_RATE] = {
		"cpu-counter-rate", CLOCK, false,
		"turning counter values into CLOCK_MONOTONIC",
		"Check that the host does not change TSC scaling (live migration) while "
		"recording; record re-fits the clock all the time and says when it was off."},
	[FEAT_BPF_CLOCK] = {
		"bpf-clock", CLOCK, false,
		"one time line for job and kernel",
		"Run outside the time namespace: what it adds to CLOCK_MONOTONIC is not known here."},
	[FEAT_PLUGIN_PATH] = {
		"plugin-path", PLUGIN, true,
		"what the job has to load",
		"Install it (make install), or point to it: --plugin PATH or "
		"NCCLSCOPE_PLUGIN=PATH."},
	[FEAT_PLUGIN_BUILD_ID] = {
		"plugin-build-id", PLUGIN, false,
		"telling builds apart",
		"Link the plugin with -Wl,--build-id."},
	[FEAT_PLUGIN_PROBES] = {
		"plugin-probes", PLUGIN, true,
		"attaching to the plugin",
		"Rebuild the plugin with systemtap-sdt-dev installed; is this really our plugin?"},
	[FEAT_PLUGIN_NCCL] = {
		"plugin-nccl-versions", PLUGIN, true,
		"being loaded by NCCL",
		"Rebuild the plugin; is this really our plugin?"},
};
/* clang-format on */

const char *feat_status_name(enum feat_status status)
{
	static const char *const names[] = {"works", "missing", "denied", "optional-missing"};

	return names[status];
}

void feat_works(struct feat_ctx *ctx, enum feat_id id, const char *fmt, ...)
{
	struct feat_result *result = &ctx->results[id];
	va_list ap;

	result->status = FEAT_WORKS;
	result->advice[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(result->detail, sizeof(result->detail), fmt, ap);
	va_end(ap);
}

/* Root of a user namespace needs other advice than a plain user. */
static const char *privilege_advice(const struct feat_ctx *ctx)
{
	return ctx->init_userns ? run_as_root : feat_descs[FEAT_USERNS].advice;
}

static void set_failure(struct feat_ctx *ctx, enum feat_id id, bool refused)
{
	struct feat_result *result = &ctx->results[id];
	const struct feat_desc *desc = &feat_descs[id];

	if (refused && (desc->required || !ctx->privileged))
		result->status = FEAT_DENIED;
	else
		result->status = desc->required ? FEAT_MISSING : FEAT_OPTIONAL_MISSING;
	feat_advise(ctx, id, "%s",
		    refused && !ctx->privileged ? privilege_advice(ctx) : desc->advice);
}

void feat_fails(struct feat_ctx *ctx, enum feat_id id, int err, const char *fmt, ...)
{
	struct feat_result *result = &ctx->results[id];
	size_t len;
	va_list ap;

	set_failure(ctx, id, err == -EPERM || err == -EACCES);
	va_start(ap, fmt);
	vsnprintf(result->detail, sizeof(result->detail), fmt, ap);
	va_end(ap);
	if (err == -ENOTSUPP_KERNEL)
		err = -EOPNOTSUPP; /* bpf() leaks a number that strerror() cannot name */
	len = strlen(result->detail);
	if (err)
		snprintf(result->detail + len, sizeof(result->detail) - len, ": %s",
			 strerror(-err));
}

void feat_denied(struct feat_ctx *ctx, enum feat_id id, const char *fmt, ...)
{
	struct feat_result *result = &ctx->results[id];
	va_list ap;

	set_failure(ctx, id, true);
	va_start(ap, fmt);
	vsnprintf(result->detail, sizeof(result->detail), fmt, ap);
	va_end(ap);
}

void feat_advise(struct feat_ctx *ctx, enum feat_id id, const char *fmt, ...)
{
	struct feat_result *result = &ctx->results[id];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(result->advice, sizeof(result->advice), fmt, ap);
	va_end(ap);
}

bool feat_works_already(const struct feat_ctx *ctx, enum feat_id id)
{
	return ctx->results[id].status == FEAT_WORKS;
}

void feat_skip(struct feat_ctx *ctx, enum feat_id id, enum feat_id needs)
{
	feat_fails(ctx, id, 0, "not tried, needs %s", feat_descs[needs].name);
	feat_advise(ctx, id, "See %s.", feat_descs[needs].name);
}

void feat__probe_all(const struct feat_opts *opts, struct feat_result results[FEAT_CNT])
{
	struct feat_ctx ctx = {.opts = opts, .results = results};

	memset(results, 0, FEAT_CNT * sizeof(results[0]));
	/* A first look at the clock here, the last at the end: time between tells its rate. */
	clock_sample(&ctx.first);
	feat_start_gpus(&ctx);
	feat_probe_privileges(&ctx);
	feat_probe_system(&ctx);
	feat_probe_plugin(&ctx);
	feat_probe_bpf(&ctx);
	feat_judge_attach(&ctx);
	feat_judge_gpus(&ctx);
	feat_probe_clock(&ctx);
}

int feat_exit_status(const struct feat_result results[FEAT_CNT])
{
	bool kernel = false, plugin = false;
	int id;

	for (id = 0; id < FEAT_CNT; id++) {
		if (!feat_descs[id].required)
			continue;
		if (results[id].status == FEAT_DENIED)
			return EXIT_PRIVILEGE;
		if (results[id].status != FEAT_MISSING)
			continue;
		if (!strcmp(feat_descs[id].group, PLUGIN))
			plugin = true;
		else
			kernel = true;
	}
	if (kernel)
		return EXIT_KERNEL;
	return plugin ? EXIT_FAILED : EXIT_OK;
}
