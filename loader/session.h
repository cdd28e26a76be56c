/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of `record`: what its stages share. Data flows one way: ring, decode, correlate, trace. */
#ifndef NCCLSCOPE_SESSION_H
#define NCCLSCOPE_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach.h"
#include "clock.h"
#include "proc.h"
#include "summary.h"

/* A directory that traces go to. */
struct out_dir {
	char path[PATH_MAX]; /* key */
	int fd;
	UT_hash_handle hh;
};

/* --sched: what of the scheduler goes into the traces. */
enum sched_mode { SCHED_MODE_OFF, SCHED_MODE_EVENTS, SCHED_MODE_SLICES };

struct session {
	/* options */
	const char *dir; /* -o; NULL: by job or time */
	uint32_t mask;	 /* --mask: what to ask for */
	uint32_t keep;	 /* its closure: what to write */
	uint64_t ring_bytes;
	enum sched_mode sched_mode; /* off, too, where the kernel cannot */
	struct attach_features features;

	uint64_t attach_ns;   /* before the probes went on: nothing older is recorded */
	uint64_t attached_ns; /* when they were on: processes that start later are seen whole */
	uint64_t end_ns;      /* what is younger is none of ours; 0 while recording */
	char stamp[32];	      /* YYYYMMDD-HHMMSS, in the directory's name */
	uid_t uid;	      /* who called us, through sudo: owner of directories that we make */
	gid_t gid;
	struct clock_fit clock;
	struct sched sched;
	struct node_sampler node;
	struct proc *procs;
	struct out_dir *dirs;
	struct summary summary;
	uint64_t skipped_kinds; /* ring records of kinds that we do not know */
	uint64_t bad_records;	/* that made no sense */
	uint64_t context_lost;	/* of kernel context, of no process that is recorded */
};

#endif
