/* SPDX-License-Identifier: BSD-2-Clause */
/* BPF on this side: load, attach to a plugin, poll the ring, counters, detach. */
#ifndef NCCLSCOPE_ATTACH_H
#define NCCLSCOPE_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "scope_abi.h"

struct attach;

/* What of the kernel's context this kernel gives us. */
struct attach_features {
	bool sched; /* switches, wake-ups: states of threads */
	bool irq;
	bool quota;	   /* throttling by a cgroup */
	bool why;	   /* the system call that a thread sleeps in */
	bool woken;	   /* who ended its sleep */
	bool net;	   /* TCP connections */
	bool net_calls;	   /* by tracepoints at their calls; else by functions */
	bool no_data;	   /* of these, also reads that find nothing */
	bool drops;	   /* packets of theirs that the kernel drops */
	bool drop_reasons; /* and why */
};

/* Bytes since the ring was made; the difference is what it holds. */
struct ring_pos {
	uint64_t produced, consumed;
};

/* A ring record; see scope_abi.h. */
typedef void (*attach_record_fn)(void *arg, const void *data, size_t size);

#define ATTACH_RING_MIN (256ull << 10)
#define ATTACH_RING_MAX (1ull << 31)

/*
 * Loads the BPF programs with a ring of ring_bytes (a power of two, within the bounds above) and attaches
 * those that belong to no plugin. *features says what is wanted, and then what there is: the kernel may
 * lack some. Logs why it fails; *status is then the exit status (EXIT_KERNEL, EXIT_PRIVILEGE,
 * EXIT_FAILED). `fn` is called from attach__poll().
 */
struct attach *attach__open(uint64_t ring_bytes, struct attach_features *features,
			    attach_record_fn fn, void *arg, int *status);

/*
 * Whether the kernel takes all programs that attach__open() would load for what is wanted; attaches none, and logs nothing. 0 or
 * -errno, -EACCES from root's being the verifier's.
 */
int attach__try(struct attach_features wanted);

/* Has BPF follow the threads of a process also before it has handed in anything; or not any more. Whether it did. */
bool attach__watch(struct attach *a, uint32_t tgid, bool on);
/* One that is watched has a communicator and is armed: it may be told of by attach__ask_found(). Nothing if it has ended by now. */
void attach__armed(struct attach *a, uint32_t tgid);
/*
 * Attaches the flush probe of the plugin at `path`, for one process or (pid -1) for all that have this file
 * loaded, now or later. A number for attach__plugin_off(), or -errno; -ENOSPC: too many files.
 */
int attach__plugin(struct attach *a, const char *path, pid_t pid);
void attach__plugin_off(struct attach *a, int link);

/* Whether a plugin's probe is one of perf's uprobes, so that those of others will be, too: CAP_SYS_ADMIN. */
bool attach__by_perf(const struct attach *a);

/* Whether the kernel can attach to one process by something else than perf's uprobes: from 6.12 on. */
bool attach__pid_is_process(void);

#define ATTACH_POLL_MAX                                                                            \
	1024 /* records taken at once: libbpf would go on for as long as jobs keep up */

/*
 * Waits at most timeout_ms for records and takes what there is, up to ATTACH_POLL_MAX: a caller that wants all
 * calls again until 0. Number of records or -errno.
 */
int attach__poll(struct attach *a, int timeout_ms);

/* Takes what the ring holds now, and what BPF is about to put there; one that fills faster is left after a while. */
void attach__drain(struct attach *a);

/* Has BPF tell of processes that are armed and have handed in nothing (SCOPE_EV_FOUND), each once. Whether it could: else ask again. */
bool attach__ask_found(struct attach *a);
/* Has BPF tell of the threads that sleep for long and still do (scope_ev_woken.asleep, scope_ev_stack), each once; nothing where the kernel has no iterators. */
void attach__ask_asleep(struct attach *a);

/* How far the ring has been written and read. Any thread may ask. */
struct ring_pos attach__ring(const struct attach *a);

/* Up to when (CLOCK_MONOTONIC) all that BPF has told, or gathers, has been handed on. */
uint64_t attach__known_ns(const struct attach *a);

/* One of enum scope_stat, summed over CPUs. */
uint64_t attach__stat(const struct attach *a, uint32_t which);

/*
 * How often the kernel has skipped a program of ours, for whatever process: it runs none that is under way on that CPU already. 0;
 * -EOPNOTSUPP: it does not tell (before 5.12); another -errno.
 */
int attach__skipped(const struct attach *a, uint64_t *skipped);

/* What BPF knows of a process. 0 or -ENOENT. */
int attach__proc_stat(const struct attach *a, uint32_t tgid, struct scope_proc_stat *stat);
/* The next of all processes that BPF knows, behind *tgid; 0: the first. False: there is none. */
bool attach__proc_next(const struct attach *a, uint32_t *tgid, struct scope_proc_stat *stat);
/* What BPF knows of a thread's state. 0 or -ENOENT. */
int attach__task(const struct attach *a, uint32_t tid, struct scope_task *task);
/* Forgets a process that ended without the ring having had room to say so. */
void attach__proc_forget(struct attach *a, uint32_t tgid);

typedef void (*attach_flow_fn)(void *arg, const struct scope_flow_sample *s);

/*
 * All flows now, also after attach__detach(). A flow whose end was missed may be another's socket by now: then there is a newer one of
 * the same sk. 0 or -errno.
 */
int attach__flows(struct attach *a, attach_flow_fn fn, void *arg);
/* Connections that recorded processes have open already, told by the ring: how many were new, or -errno. */
int attach__find_flows(struct attach *a);
/* Of enum skb_drop_reason, without its prefix; NULL: unknown. */
const char *attach__drop_reason(const struct attach *a, uint32_t reason);
/*
 * Name of the kernel's function that an address is in, "" on error. 0; -ENOENT: it is in none; -EOPNOTSUPP: this kernel does not tell
 * (before 5.13); another -errno.
 */
int attach__symbol(struct attach *a, uint64_t address, char *name, size_t size);
/* Time that a CPU has spent in NET_RX soft interrupts, in ns since attach; 0 without `irq`. */
uint64_t attach__net_rx(const struct attach *a, uint32_t cpu);

/* Takes the probes off, so that plugins find their semaphore at 0; records already made stay readable. */
void attach__detach(struct attach *a);

/* Frees all; NULL is fine. */
void attach__close(struct attach *a);

#endif
