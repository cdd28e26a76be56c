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
#include "netdev.h"
#include "proc.h"
#include "rdma.h"
#include "summary.h"

/* A directory that traces go to. */
struct out_dir {
	char path[PATH_MAX]; /* key */
	int fd;
	UT_hash_handle hh;
};

/* --sched: what of the scheduler goes into the traces. */
enum sched_mode { SCHED_MODE_OFF, SCHED_MODE_EVENTS, SCHED_MODE_SLICES };

/* --net: the same of the network. */
enum net_mode { NET_MODE_OFF, NET_MODE_EVENTS, NET_MODE_FLOWS };

/* What the kernel tells of flows when asked; all NULL: nothing. */
struct net_source {
	void *arg;
	/* Calls fn for each flow; 0 or -errno. */
	int (*flows)(void *arg, void (*fn)(void *fn_arg, const struct scope_flow_sample *s),
		     void *fn_arg);
	const char *(*drop_reason)(void *arg, uint32_t reason); /* NULL: it has no name */
	const char *(*symbol)(void *arg, uint64_t address);
};

/* What is known of flows, of all processes: either end may be another's. */
struct session_net {
	struct net_source source;
	struct flows flows;
	struct scope_flow_sample *samples; /* read, and not yet taken; owned */
	uint32_t nsamples, samples_cap;
	uint64_t sampled_ns;  /* when; 0: there are none */
	uint64_t read_ns;     /* when the last of them was read */
	uint64_t complete_ns; /* all until then is in */
	uint64_t newest_ns;   /* of the records that came */
	uint64_t next_ns, next_prune_ns;
	uint64_t steps, direct, helped, unsure; /* of processes that have ended, as in net_join.h */
	bool failed;
	bool look; /* there are processes whose open sockets are not known yet */
};

struct session {
	/* options */
	const char *dir; /* -o; NULL: by job or time */
	uint32_t mask;	 /* --mask: what to ask for */
	uint32_t keep;	 /* its closure: what to write */
	uint64_t ring_bytes;
	enum sched_mode sched_mode; /* off, too, where the kernel cannot */
	enum net_mode net_mode;	    /* the same */
	bool counters;		    /* --net: of ports, devices and CPUs; from files, without BPF */
	struct attach_features features;

	uint64_t attach_ns;   /* before the probes went on: nothing older is recorded */
	uint64_t attached_ns; /* when they were on: processes that start later are seen whole */
	uint64_t end_ns;      /* what is younger is none of ours; 0 while recording */
	char stamp[32];	      /* YYYYMMDD-HHMMSS, in the directory's name */
	uid_t uid;	      /* who called us, through sudo: owner of directories that we make */
	gid_t gid;
	struct clock_fit clock;
	struct sched sched;
	struct session_net net;
	struct node_sampler node;
	struct netdev_sampler netdev;
	struct rdma rdma;
	struct proc *procs;
	struct out_dir *dirs;
	struct summary summary;
	uint64_t skipped_kinds; /* ring records of kinds that we do not know */
	uint64_t bad_records;	/* that made no sense */
	uint64_t context_lost;	/* of kernel context, of no process that is recorded */
};

#endif
