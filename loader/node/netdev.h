/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What network devices counted, from /proc/PID/net/dev, which is of the process' network namespace,
 * and what the CPUs did with packets, from /proc/net/softnet_stat, which is of the node.
 *
 *	netdev__init(&n, "");               once; netdev__free() at the end
 *	netdev__round(&n);                  every second, before the processes' turn
 *	now = netdev__of(&n, pid)           its namespace's, read once a round; or NULL
 *	trace: netdev_sample__was(p->netdev, now, i) is device i of `now` as it was; netdev_since()
 *	       of each field, and of p->softnet and n.softnet, sums that begin with the first round
 *	netdev_sample__put(p->netdev), p->netdev = netdev_sample__get(now); p->softnet = n.softnet
 *
 * Names of devices are whatever the owner of the namespace likes, short of '/', ':' and white
 * space.
 */
#ifndef NCCLSCOPE_NETDEV_H
#define NCCLSCOPE_NETDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "text.h"

#define NETDEV_NAME_MAX	   16  /* the kernel's own limit, with the 0 */
#define NETDEV_DEVICES_MAX 256 /* of a namespace, the oldest ones */
#define NETDEV_CPUS_MAX	   8192

/* In the order of the file. Kernels add up: see netdev_field_names. */
enum netdev_field {
	NETDEV_RX_BYTES,
	NETDEV_RX_PACKETS,
	NETDEV_RX_ERRORS,
	NETDEV_RX_DROPPED, /* and missed: no room in the NIC's ring */
	NETDEV_RX_FIFO,
	NETDEV_RX_FRAME, /* length, over, crc, frame */
	NETDEV_RX_COMPRESSED,
	NETDEV_RX_MULTICAST,
	NETDEV_TX_BYTES,
	NETDEV_TX_PACKETS,
	NETDEV_TX_ERRORS,
	NETDEV_TX_DROPPED,
	NETDEV_TX_FIFO,
	NETDEV_TX_COLLISIONS,
	NETDEV_TX_CARRIER, /* carrier, aborted, window, heartbeat */
	NETDEV_TX_COMPRESSED,
	NETDEV_FIELDS,
};

/* "rxErrors" and the like. */
extern const char *const netdev_field_names[NETDEV_FIELDS];

/* Those that are never good news; the others are traffic. */
#define NETDEV_IS_TROUBLE(field)                                                                   \
	(((field) >= NETDEV_RX_ERRORS && (field) <= NETDEV_RX_FRAME) ||                            \
	 ((field) >= NETDEV_TX_ERRORS && (field) <= NETDEV_TX_CARRIER))

struct netdev_dev {
	char name[NETDEV_NAME_MAX];
	uint64_t v[NETDEV_FIELDS];
};

struct netdev_sample {
	uint32_t refs;
	uint32_t n;
	bool cut;	 /* there were more than NETDEV_DEVICES_MAX */
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	uint64_t netns;	 /* inode of the namespace */
	struct netdev_dev devs[];
};

/* Sums over all CPUs since the first round. */
struct netdev_softnet {
	bool known;	     /* false until there was a file that could be understood */
	uint64_t processed;  /* packets */
	uint64_t dropped;    /* the CPU's backlog was full */
	uint64_t squeezed;   /* times that NET_RX had more to do than it was allowed at a time */
	uint64_t flow_limit; /* of these, because their own flow had filled it */
};

/* A CPU's line: the kernel's 32 bits, which wrap. */
struct netdev_cpu {
	bool known;
	uint32_t processed, dropped, squeezed, flow_limit;
};

struct netdev_sampler {
	const char *root; /* before every path: "", or a folder in tests; not copied */
	struct text_file text;
	struct netdev_sample *
		*spaces;  /* one for each namespace, of this round and of the one before */
	uint64_t *rounds; /* when they were read */
	uint32_t nspaces, cap;
	uint64_t round;
	struct netdev_softnet softnet;
	struct netdev_cpu *cpus; /* as they were, by number */
	uint32_t ncpus, nlines;
};

void netdev__init(struct netdev_sampler *n, const char *root);
void netdev__free(struct netdev_sampler *n);

/*
 * Reads softnet_stat; what was read of namespaces is old from here on. 0 or -errno, which
 * leaves softnet as it was.
 */
int netdev__round(struct netdev_sampler *n);

/*
 * This round's sample of the namespace of a process, which is the sampler's; NULL if there is
 * none.
 */
struct netdev_sample *netdev__of(struct netdev_sampler *n, pid_t pid);

/* A sample stays as it is for as long as somebody holds it. NULL is fine for both. */
struct netdev_sample *netdev_sample__get(struct netdev_sample *s);
void netdev_sample__put(struct netdev_sample *s);

/*
 * Device i of `now` in an earlier sample of the same namespace; NULL where it was not there, or
 * either is NULL.
 */
const struct netdev_dev *netdev_sample__was(const struct netdev_sample *was,
					    const struct netdev_sample *now, uint32_t i);

/* From one sum to a later one. A device that was made anew under the name counts from 0. */
static inline uint64_t netdev_since(uint64_t was, uint64_t now)
{
	return now >= was ? now - was : now;
}

/* ---- Parsing: text in, whatever it is; for netdev.c and its test -------------------------------------- */

/* The devices of net/dev, at most `max` of them; *cut: there were more. */
uint32_t netdev_parse(const char *text, size_t len, struct netdev_dev *devs, uint32_t max,
		      bool *cut);

/*
 * One line of softnet_stat, without its newline; false unless it is one. *cpu is the number in it,
 * from Linux 5.10 on, and else left as it is: online CPUs have a line each, in their order.
 */
bool netdev_parse_softnet(const char *line, size_t len, struct netdev_cpu *stat, uint32_t *cpu);

/* "net:[4026531840]"; 0 if it is no such thing. */
uint64_t netdev_parse_netns(const char *link, size_t len);

#endif
