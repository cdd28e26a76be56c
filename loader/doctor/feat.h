/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this node offers to ncclscope, found out by trying: a BPF feature counts as working when a
 * program was loaded and attached, was made to fire, and was seen to have fired. A kernel version
 * or a configuration option proves nothing.
 */
#ifndef NCCLSCOPE_FEAT_H
#define NCCLSCOPE_FEAT_H

#include <stdbool.h>

/* In the order of the report. Names for people and for --json are in feat_descs[]. */
enum feat_id {
	FEAT_CAP_BPF,
	FEAT_CAP_PERFMON,
	FEAT_CAP_SYS_PTRACE,
	FEAT_CAP_SYS_ADMIN,
	FEAT_CAP_DAC_OVERRIDE,
	FEAT_CAP_CHECKPOINT_RESTORE,
	FEAT_CAP_CHOWN,
	FEAT_CAP_SYSLOG,
	FEAT_USERNS,
	FEAT_PIDNS,
	FEAT_MEMLOCK,
	FEAT_UNPRIV_BPF,
	FEAT_PERF_PARANOID,
	FEAT_LOCKDOWN,
	FEAT_PROC_MEM,
	FEAT_LIBBPF,
	FEAT_BTF,
	FEAT_RINGBUF,
	FEAT_RING_MEMORY,
	FEAT_UPROBE,
	FEAT_READ_USER,
	FEAT_USDT,
	FEAT_UPROBE_MULTI,
	FEAT_ATTACH,
	FEAT_SLEEPABLE,
	FEAT_BASE_PROGRAMS,
	FEAT_PROGRAMS,
	FEAT_SCHED_SWITCH,
	FEAT_SCHED_WAKEUP,
	FEAT_SCHED_WAKEUP_NEW,
	FEAT_SCHED_WAKING,
	FEAT_SCHED_MIGRATE,
	FEAT_SCHED_FORK,
	FEAT_SCHED_EXEC,
	FEAT_SCHED_EXIT,
	FEAT_EXIT_MEMORY,
	FEAT_SIGNAL_DELIVER,
	FEAT_SIGNAL_MEMORY,
	FEAT_SIGNAL_GENERATE,
	FEAT_IRQ_ENTRY,
	FEAT_IRQ_EXIT,
	FEAT_SOFTIRQ_ENTRY,
	FEAT_SOFTIRQ_EXIT,
	FEAT_SYSCALL,
	FEAT_RUN_QUEUE,
	FEAT_THROTTLING,
	FEAT_CGROUP_CPU_STAT,
	FEAT_SCHEDSTAT,
	FEAT_KMSG,
	FEAT_GPUS,
	FEAT_CORE,
	FEAT_NS_PID,
	FEAT_RAW_TP,
	FEAT_TRACEPOINT,
	FEAT_ITER,
	FEAT_KPROBE,
	FEAT_FENTRY,
	FEAT_NET_SEND,
	FEAT_NET_RECV,
	FEAT_NET_RECV_FEXIT,
	FEAT_NET_ADJUST,
	FEAT_NET_SEND_FEXIT,
	FEAT_NET_KPROBE,
	FEAT_NET_STATE,
	FEAT_NET_DESTROY,
	FEAT_NET_TCP,
	FEAT_NET_FLOWS,
	FEAT_NET_FILES,
	FEAT_NET_RETRANS,
	FEAT_NET_RESET_IN,
	FEAT_NET_RESET_OUT,
	FEAT_NET_DROP,
	FEAT_NET_REASON,
	FEAT_CLOCKSOURCE,
	FEAT_TSC,
	FEAT_TSC_RATE,
	FEAT_BPF_CLOCK,
	FEAT_PLUGIN_PATH,
	FEAT_PLUGIN_BUILD_ID,
	FEAT_PLUGIN_PROBES,
	FEAT_PLUGIN_NCCL,
	FEAT_CNT,
};

enum feat_status {
	FEAT_WORKS,
	FEAT_MISSING,	       /* required, and this node does not have it */
	FEAT_DENIED,	       /* this node may have it, but not for us as we run now */
	FEAT_OPTIONAL_MISSING, /* not there; record does without */
};

struct feat_desc {
	const char *name;
	const char *group;
	bool required; /* by `ncclscope record` */
	const char *needed_for;
	const char *advice; /* what to do when it does not work, unless the probe knows better */
};

struct feat_result {
	enum feat_status status;
	char detail[160];
	char advice[320];
};

struct feat_opts {
	const char *btf;	  /* in place of /sys/kernel/btf/vmlinux, or NULL */
	const char *plugin;	  /* as given by --plugin, or NULL */
	const char *nvml;	  /* in place of GPU_LIBRARY, or NULL */
	unsigned long ring_bytes; /* what record will ask for; 0: its default */
};

extern const struct feat_desc feat_descs[FEAT_CNT];

/* "works", "missing", "denied", "optional-missing": words of the --json contract. */
const char *feat_status_name(enum feat_status status);

/* Tries everything, in less than two seconds. Never fails: what cannot be tried is a result too. */
void feat__probe_all(const struct feat_opts *opts, struct feat_result results[FEAT_CNT]);

/*
 * Exit status that the results call for: EXIT_OK, EXIT_PRIVILEGE when something required is denied
 * (what else is wrong cannot be known before that is cured), EXIT_KERNEL when the kernel lacks it,
 * EXIT_FAILED when only the plugin is at fault.
 */
int feat_exit_status(const struct feat_result results[FEAT_CNT]);

#endif
