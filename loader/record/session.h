/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of `record`: what its stages share. Data flows one way: ring, decode, correlate, trace. */
#ifndef NCCLSCOPE_SESSION_H
#define NCCLSCOPE_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach.h"
#include "budget.h"
#include "clock.h"
#include "kmsg.h"
#include "net_names.h"
#include "netdev.h"
#include "proc.h"
#include "rdma.h"
#include "summary.h"
#include "symbols.h"

/* A directory that traces go to. */
struct out_dir {
	char path[PATH_MAX]; /* key */
	int fd;
	UT_hash_handle hh;
};

/* A user with processes that are recorded. */
struct session_user {
	uint32_t uid; /* key */
	uint32_t procs;
	UT_hash_handle hh;
};

/* --sched: what of the scheduler goes into the traces. */
enum sched_mode { SCHED_MODE_OFF, SCHED_MODE_EVENTS, SCHED_MODE_SLICES };

/* --net: the same of the network. */
enum net_mode { NET_MODE_OFF, NET_MODE_EVENTS, NET_MODE_FLOWS };

/* What is known of flows, of all processes: either end may be another's. */
struct session_net {
	struct net_names names;
	struct flows flows;
	struct scope_flow_sample *samples; /* read, and not yet taken; owned */
	uint32_t nsamples, samples_cap;
	uint64_t sampled_ns; /* when; 0: there are none */
	uint64_t read_ns;    /* when the last of them was read */
	uint64_t newest_ns;  /* of the records that came */
	uint64_t next_ns, next_prune_ns;
	uint64_t steps, direct, helped, unsure; /* of processes that have ended, as in net_join.h */
	bool cut; /* of the samples some may be missing: that a flow is not among them says nothing */
	bool cut_told;
};

#define HOST_BOOT_ID_LEN 40
#define HOST_NAME_LEN	 66 /* with the 0; uname(2)'s own limit is 65 */

/* The node that the records are of. */
struct host {
	char boot_id[HOST_BOOT_ID_LEN]; /* "": nothing is known yet */
	char node[HOST_NAME_LEN], release[HOST_NAME_LEN], machine[HOST_NAME_LEN];
};

/* CLOCK_REALTIME - CLOCK_MONOTONIC, as it was at the last tick; and the bound of its error. */
struct realtime {
	int64_t offset_ns;
	uint64_t error_ns;
};

/* What recording has cost the recorder up to a moment ago. */
struct self_cost {
	uint64_t cpu_ns, peak_bytes;
	uint64_t skipped; /* as in struct input_self */
};

struct digest;
struct raw_writer;
struct retain;

#define SESSION_KMSG 256

/* A line of the kernel's log. */
struct session_kmsg {
	uint64_t ns;   /* CLOCK_MONOTONIC */
	uint64_t lost; /* before it, of any kind */
	bool before;   /* we were there: `ns` is by the log's own clock */
	struct kmsg_line line;
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
	char stamp[32];	      /* YYYYMMDD-HHMMSS, in the directory's name; "": none */
	struct host host;     /* read once, so that no header lacks it */
	struct realtime realtime;
	struct self_cost self;
	uint64_t collectives; /* to record of each process; 0: all */
	uid_t uid;	      /* who called us, through sudo: owner of directories that we make */
	gid_t gid;
	bool own_files; /* they are uid's; else the recorded process' user's */
	bool compress;	/* by zstd */
	struct out_threads
		*out_threads; /* that write traces; NULL: who makes the lines; the owner's */
	bool mute;	      /* nothing is written, only counted */
	bool live; /* a recorder's: mute, and decoded is only what tells who is recorded and what is lost; the rest
		      is its digest's business, or convert's */
	bool echo;	   /* a recorder's digest: what is of both, the recorder has told */
	uint64_t heard_ns; /* live: when the newest record of an operation was handed in */
	struct clock_fit clock;
	struct sched sched;
	struct session_net net;
	struct symbols symbols;
	struct node_sample *node;	/* the newest; NULL: none yet */
	struct netdev_softnet softnet;	/* then */
	struct netdev_sample **netdevs; /* then, of namespaces that processes are in; owned */
	uint32_t nnetdevs;
	struct session_kmsg
		*kmsg; /* the last ones, each at its number % SESSION_KMSG; NULL: none yet; owned */
	uint32_t nkmsg;
	struct gpu_sample *gpus; /* the newest of each, by index; NULL: none yet; owned */
	struct rdma rdma;
	uint64_t rdma_ns;	      /* what RDMA ports counted until then is known */
	struct proc *procs, *by_tgid; /* of one pid, any */
	struct session_user *users;
	uint32_t procs_max;   /* at a time; 0: no bound */
	bool refused;	      /* there were more */
	struct budget memory; /* of events, communicators and what joins them to flows */
	struct out_dir *dirs;
	struct summary summary;
	uint64_t skipped_kinds; /* ring records of kinds that we do not know */
	uint64_t bad_records;	/* that made no sense */
	/* Of the ring, that the plugin's records have taken with all around them. */
	uint64_t chunk_bytes;
	uint64_t context_lost;	/* of kernel context, of no process that is recorded */
	bool begun, finished;	/* by inputs */
	struct retain *retain;	/* that is told of each whole trace; NULL: none; not owned */
	struct raw_writer *raw; /* that takes all inputs; NULL: none; not owned */
	struct digest *digest;	/* likewise */
	uint32_t trims;
	bool trim; /* processes have ended: their memory lies about in the heap */
};

#endif
