/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the pipeline (decode, correlate, write) takes from outside: each thing that a trace is made of and that is
 * not computed from what came before. A recorder feeds these as they come; `record --raw` writes them to a file as
 * they are, and `convert` feeds them again. docs/raw.md is the format of the file. Fixed widths, widest first, padding
 * spelled out; kinds are append-only.
 */
#ifndef NCCLSCOPE_INPUT_H
#define NCCLSCOPE_INPUT_H

#include "gpu.h"
#include "netdev.h"
#include "node.h"
#include "rdma.h"
#include "scope_abi.h"
#include "who.h"

enum input_kind {
	INPUT_SESSION = 1,   /* a recording begins: struct input_session */
	INPUT_ATTACHED = 2,  /* its probes are on: struct input_ns */
	INPUT_CLOCK = 3,     /* struct input_clock */
	INPUT_RING = 4,	     /* a record of the ring: scope_abi.h */
	INPUT_OUTSIDE = 5,   /* from outside: scope_ev_chunk, records; tbuf 0: lost_cnt alone */
	INPUT_PROC = 6,	     /* struct input_proc, who's text */
	INPUT_COMM = 7,	     /* struct input_comm */
	INPUT_STILL = 8,     /* struct input_still */
	INPUT_COUNTED = 9,   /* struct input_counted */
	INPUT_END = 10,	     /* a process ended, which the ring has not told: struct input_end */
	INPUT_REASON = 11,   /* name of a drop reason: struct input_name, text */
	INPUT_SYMBOL = 12,   /* name of a function: the same */
	INPUT_FLOWS = 13,    /* struct input_flows, struct scope_flow_sample[n] */
	INPUT_TICK = 14,     /* struct input_tick */
	INPUT_HUNG = 15,     /* all that may have moved events that do not move is in; nothing */
	INPUT_SELF = 16,     /* struct input_self */
	INPUT_NODE = 17,     /* struct input_node, struct input_cpu[ncpus] */
	INPUT_NETDEV = 18,   /* struct input_netdev, struct netdev_dev[n] */
	INPUT_NODE_OF = 19,  /* struct input_node_of */
	INPUT_RDMA = 20,     /* struct input_rdma and its ports, see there */
	INPUT_RDMA_OF = 21,  /* struct input_rdma_of */
	INPUT_CUT = 22,	     /* what begins later is not recorded: struct input_ns */
	INPUT_LINE = 23,     /* what is younger is not recorded: struct input_ns */
	INPUT_COMPLETE = 24, /* no more records of flows come; nothing */
	INPUT_TAIL = 25,     /* what a process lost after its last record: struct input_end */
	INPUT_FINISH = 26,   /* the recording ends: struct input_finish */
	INPUT_KMSG = 27,     /* a line of the kernel's log: struct input_kmsg, text */
	INPUT_GPU = 28,	     /* what a GPU of the node does: struct gpu_sample */
	INPUT_KINDS,
};

/* input_session.features */
#define INPUT_IRQ	   1u
#define INPUT_QUOTA	   2u
#define INPUT_WHY	   4u
#define INPUT_NET_CALLS	   8u
#define INPUT_DROPS	   16u
#define INPUT_DROP_REASONS 32u
#define INPUT_NO_DATA	   64u /* absent from captures of before; implied by INPUT_NET_CALLS */
#define INPUT_WOKEN	   128u

#define INPUT_CPUS_MAX	    65536
#define INPUT_HOST_NAME_LEN 72

struct input_session {
	uint64_t attach_ns; /* nothing older is recorded */
	uint64_t ring_bytes;
	uint64_t memory_bytes; /* --memory */
	uint64_t collectives;  /* --collectives; 0: no end */
	uint64_t jiffy_ns;
	int64_t realtime_offset_ns;
	uint64_t realtime_error_ns;
	uint32_t mask;
	uint32_t cpus; /* that the kernel may have */
	uint32_t features;
	uint8_t sched_mode; /* enum sched_mode */
	uint8_t net_mode;   /* enum net_mode */
	uint8_t counters;   /* 1: of ports, devices and CPUs */
	uint8_t clock;	    /* enum scope_clock */
	char stamp[32];	    /* YYYYMMDD-HHMMSS; like all that follow with a 0 at the end */
	char boot_id[40];
	char node[INPUT_HOST_NAME_LEN];
	char release[INPUT_HOST_NAME_LEN];
	char machine[INPUT_HOST_NAME_LEN];
};

struct input_ns {
	uint64_t ns; /* CLOCK_MONOTONIC */
};

struct input_clock {
	uint64_t ticks;
	uint64_t ns;
};

#define INPUT_FROM_START 1u /* it started after the probes were on */
#define INPUT_HAS_WHO	 2u /* text follows */
#define INPUT_CEILING	 4u /* `ceiling` is known; not before version 11 of captures */

/* A process, when it has been found, and when its place in time is known better. */
struct input_proc {
	struct scope_ev_hdr id; /* of its first record */
	uint64_t begin_ns;	/* its recording began */
	uint64_t first_id;	/* older ids are none of ours */
	uint32_t flags;
	uint32_t who[WHO_PARTS]; /* bytes, without the 0 behind each */
	uint32_t ceiling;	 /* what its environment allows of NCCL's event types */
};

/* A communicator that it had before. */
struct input_comm {
	uint64_t start_ns; /* with tgid, the process */
	uint32_t tgid;
	uint32_t kernels_off; /* 1: NCCL's mask has no KernelCh now; since captures' version 11 */
	struct scope_comm comm;
};

/* A thread that slept is in that state still, or waits for a CPU. */
struct input_still {
	uint64_t wait_ns; /* since when; 0: it sleeps */
	uint64_t now_ns;
	uint32_t tid;
	uint32_t seq;
	uint32_t cpu;
	uint32_t gone; /* 1: it has ended, nobody knows when; 0 in older captures */
};

/* BPF has made so many records of a thread. */
struct input_counted {
	uint32_t tid;
	uint32_t seq;
};

struct input_end {
	uint64_t start_ns;
	uint64_t lost_recs;
	uint64_t limited_recs;
	uint32_t tgid;
	int32_t status;	       /* as wait(2) has it */
	uint32_t exec;	       /* 1: it became another program */
	uint16_t unseen;       /* 1: it is gone, and nobody told how: status says nothing */
	uint16_t context_lost; /* as in scope_ev_exit; 0 in captures of before */
};

struct input_name {
	uint64_t number; /* the reason's, or the address */
	uint32_t len;	 /* of the text behind it, without a 0; below NET_NAME_LEN */
	uint32_t pad;
};

struct input_flows {
	uint64_t now_ns; /* when reading them began */
	int32_t err;	 /* -errno: these are not all */
	uint32_t n;
};

#define INPUT_LATE   1u /* the ring was not emptied */
#define INPUT_FOLLOW 2u /* time to tell losses, to write, to forget */
#define INPUT_CLOCKS 4u /* time for `clock` records */

struct input_tick {
	uint64_t now_ns; /* all that is older is in */
	int64_t realtime_offset_ns;
	uint64_t realtime_error_ns;
	uint32_t flags;
	uint32_t pad;
};

#define INPUT_SKIPPED_UNKNOWN UINT64_MAX

/* What recording has cost so far. */
struct input_self {
	uint64_t cpu_ns;
	uint64_t peak_bytes;
	/* Not before version 5 of captures: */
	uint64_t skipped; /* runs of our BPF programs, by the kernel; or as above */
};

#define INPUT_CPU_KNOWN	 1u
#define INPUT_CPU_NET_RX 2u

struct input_cpu {
	uint64_t busy, irq, softirq, steal, net_rx; /* ns */
	uint32_t flags;
	uint32_t pad;
};

#define INPUT_NODE_RUNNING 1u
#define INPUT_NODE_BLOCKED 2u
#define INPUT_NODE_SOFTNET 4u
#define INPUT_NODE_SOME(i) (8u << 2 * (i)) /* of enum node_psi_what */
#define INPUT_NODE_FULL(i) (16u << 2 * (i))

struct input_node {
	uint64_t now_ns;
	uint64_t procs_running, procs_blocked;
	uint64_t some[NODE_PSI_CNT], full[NODE_PSI_CNT];   /* ns */
	uint64_t processed, dropped, squeezed, flow_limit; /* of softnet */
	uint32_t flags;
	uint32_t ncpus;
};

/* Devices of a network namespace; after the INPUT_NODE that they belong to. */
struct input_netdev {
	uint64_t now_ns;
	uint64_t netns;
	uint32_t n;
	uint32_t cut;
};

#define INPUT_HAS_QUOTA 1u

/* Time for a process' `node` record; after the INPUT_NETDEV of its namespace. */
struct input_node_of {
	uint64_t start_ns;
	uint64_t netns; /* 0: not known */
	uint64_t periods, throttled_periods, throttled_ns;
	uint32_t tgid;
	uint32_t flags;
};

/* All ports that are known, in their order; each struct input_port is followed by what it says. */
struct input_rdma {
	uint64_t rdma_ns; /* what ports counted until then is in */
	uint32_t nports;
	uint32_t pad;
};

#define INPUT_PORT_HERE 1u /* the place in the table of devices is its device's */
#define INPUT_PORT_ROW	2u /* totals follow, of a sample from begin_ns to end_ns */

struct input_port {
	uint64_t begin_ns, end_ns;
	uint64_t moves;
	char device[RDMA_NAME_MAX];
	uint32_t nr;
	uint32_t place;
	uint32_t flags;
	uint32_t ncounters; /* totals: a uint64_t each, with INPUT_PORT_ROW */
	uint32_t first_new; /* struct input_counter of those from here on, then the totals */
	uint32_t pad;
};

struct input_counter {
	char name[RDMA_NAME_MAX];
	uint64_t hw; /* 1: of hw_counters */
};

struct input_rdma_of {
	uint64_t start_ns;
	uint64_t devices; /* a bit for each place */
	uint32_t tgid;
	uint32_t pad;
};

/* Since version 6 of captures. */
struct input_kmsg {
	uint64_t
		ns; /* when it was read; of one that was there before we were, by the log's clock */
	uint64_t lost; /* lines that were overwritten, or too many, so far */
	uint32_t level;
	uint32_t before; /* 1: it was */
	uint32_t len;	 /* of the text, without a 0; at most KMSG_TEXT_MAX */
	uint32_t sign;	 /* enum kmsg_sign */
};

struct input_finish {
	uint64_t end_ns;
	char how[24]; /* a footer's `end` of processes that go on */
};

#define INPUT_SIZE(t, n) _Static_assert(sizeof(struct t) == (n), "raw format: sizeof " #t)
INPUT_SIZE(input_session, 360);
INPUT_SIZE(input_proc, 112);
INPUT_SIZE(input_still, 32);
INPUT_SIZE(input_kmsg, 32);
INPUT_SIZE(gpu_sample, 528);
INPUT_SIZE(input_end, 40);
INPUT_SIZE(input_tick, 32);
INPUT_SIZE(input_cpu, 48);
INPUT_SIZE(input_node, 112);
INPUT_SIZE(input_node_of, 48);
INPUT_SIZE(input_port, 112);
INPUT_SIZE(input_counter, 72);
INPUT_SIZE(input_finish, 32);
INPUT_SIZE(netdev_dev, 16 + 8 * NETDEV_FIELDS);
#undef INPUT_SIZE

#endif
