/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of feature probing share: feat.c (table, verdicts), feat_bpf.c, feat_sys.c. */
#ifndef NCCLSCOPE_FEAT_PRIV_H
#define NCCLSCOPE_FEAT_PRIV_H

#include "feat.h"
#include "gpu.h"

#define ENOTSUPP_KERNEL 524

/* One reading of the CPU's counter, and the time around it. */
struct clock_sample {
	unsigned long long ticks;
	unsigned long long mono_ns; /* middle of the two clock_gettime() around it */
	unsigned long long width_ns;
};

struct feat_ctx {
	const struct feat_opts *opts;
	struct feat_result *results;
	unsigned long long caps; /* effective */
	bool init_userns;
	bool privileged;  /* no capability is missing: who refuses us does so for other reasons */
	bool ring_sleeps; /* writing to the ring may, on this kernel */
	bool fexit_may_sleep;
	bool mute; /* nobody can be talked to over the loopback device */
	struct clock_sample first, middle;
	struct gpu_sampler gpus; /* which looks meanwhile */
	/* the time of the record of FEAT_RINGBUF, and around it */
	unsigned long long bpf_ts_ns, bpf_before_ns, bpf_after_ns;
};

/*
 * Verdicts, with a printf format for the detail. feat_fails() derives the status from err (-errno,
 * or 0 where there is none to tell), from whether the feature is required, and from our privileges;
 * feat_denied() is the same as if err were -EPERM, where the detail says it in better words.
 */
__attribute__((format(printf, 3, 4))) void feat_works(struct feat_ctx *ctx, enum feat_id id,
						      const char *fmt, ...);
__attribute__((format(printf, 4, 5))) void feat_fails(struct feat_ctx *ctx, enum feat_id id,
						      int err, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void feat_denied(struct feat_ctx *ctx, enum feat_id id,
						       const char *fmt, ...);
/* Replaces the advice of the table for this result. */
__attribute__((format(printf, 3, 4))) void feat_advise(struct feat_ctx *ctx, enum feat_id id,
						       const char *fmt, ...);

/* It was not tried, as it needs another that does not work. */
void feat_skip(struct feat_ctx *ctx, enum feat_id id, enum feat_id needs);

bool feat_works_already(const struct feat_ctx *ctx, enum feat_id id);
/* First line of a small file of /proc or /sys, without its newline; 0 or -errno. */
int read_line(const char *path, char *buf, unsigned long len);

void clock_sample(struct clock_sample *sample);

/*
 * An event of each kind that record follows of TCP connections: over the loopback device, with FEAT_TALK_BYTES sent before
 * the first end; a retransmission is not among them. 0 or -errno.
 */
#define FEAT_TALK_BYTES 1000
int feat_talk(void);

void feat_probe_privileges(struct feat_ctx *ctx);
void feat_probe_system(struct feat_ctx *ctx);
/* What takes others their time is started first, and looked at late. */
void feat_start_gpus(struct feat_ctx *ctx);
void feat_judge_gpus(struct feat_ctx *ctx);
void feat_probe_bpf(struct feat_ctx *ctx);
/* Part of that: the programs that record loads. */
void feat_probe_programs(struct feat_ctx *ctx);
/* After both: which way the plugin's probe takes, and what of privileges and uprobes that makes superfluous. */
void feat_judge_attach(struct feat_ctx *ctx);
void feat_probe_clock(struct feat_ctx *ctx);
void feat_probe_plugin(struct feat_ctx *ctx);

#endif
