/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which flow served which step of one process. Pure, as correlate is. NCCL tells nothing of its
 * sockets; what is known: it works on the oldest request of a connection only, so the steps of a
 * connection are consecutive pieces of its flows' bytes, and it tells that a step is done right after the call
 * that moved the last of them.
 *
 * So without helper threads it is the flow over which the thread itself moved bytes last. With them
 * (NCCL_SOCKET_NTHREADS) the thread itself sends a size ahead of each step and others the data, over sockets
 * that are connected to the same listening port: it is the port with exactly one size within each step, found
 * by ruling out all others. Until then, steps wait; what cannot be said for sure is not said.
 */
#ifndef NCCLSCOPE_NET_JOIN_H
#define NCCLSCOPE_NET_JOIN_H

#include <stdbool.h>
#include <stdint.h>
#include "budget.h"
#include "clock.h"
#include "flows.h"
#include "hash.h"

struct net_conn;
struct net_group;
struct flow_set;

/* What an event knows of its flows. */
struct corr_net {
	struct net_conn *conn;	 /* ProxyOp, ProxyStep: the operation's; the join's */
	struct flow *flow;	 /* ProxyStep: the one; held */
	struct net_group *group; /* with others, if helper threads worked on it; the join's */
	struct flow_set *set;	 /* ProxyOp, Coll, P2p: those of its steps; owned */
	uint64_t wait_ns;	 /* ProxyStep: when its request was made, */
	uint64_t done_ns;	 /* and, of a receive, when it was done; 0: when it stopped */
	uint64_t from_ns, to_ns; /* ProxyStep: within which it had the connection, once `cut` */
	uint64_t bytes[2];	 /* by enum scope_dir */
	uint32_t nr;		 /* ProxyStep: of its connection's, once `cut` */
	uint32_t held;		 /* children that are not written yet */
	bool cut;
};

struct corr_event;

#define NET_USES_MAX	65536 /* of a thread in one direction that are kept */
#define NET_THREADS_MAX 16384
#define NET_CONNS_MAX	65536
#define NET_GROUPS_MAX	65536
#define NET_UNSURE_NS	(10 * NSEC_PER_SEC) /* so long a step waits for its flow to be found */

/* One struct scope_use, as much as the join needs of it. */
struct net_use {
	struct flow *flow; /* held */
	uint64_t first_ns, last_ns;
	uint32_t bytes;
};

struct net_uses {
	struct net_use *at; /* from first on, in order of last_ns */
	uint32_t first, n, cap;
};

struct net_thread {
	uint32_t tid; /* host */
	struct net_uses uses[2];
	UT_hash_handle hh;
};

struct net_join {
	struct flows *flows;
	struct budget_part *memory; /* NULL: no bound; set by the owner */
	struct net_thread *threads; /* uthash */
	struct net_conn *conns;	    /* uthash */
	struct net_group *groups;   /* uthash */
	uint64_t
		ports_ns; /* until when what RDMA ports counted has come in; UINT64_MAX: it has none; set by the owner */
	uint64_t since_ns;			/* of the first use that was told */
	uint64_t counts;			/* of sizes within a step, so far */
	uint64_t steps, direct, helped, unsure; /* how steps came by their flow, or did not */
};

void net_join__init(struct net_join *j, struct flows *flows);
void net_join__free(struct net_join *j);

/*
 * What a thread did over a flow, n times, in order. The one with this first_ns may have been told before, when it was not
 * over; 0: none.
 */
void net_join__uses(struct net_join *j, struct flow *flow, uint32_t tid, int dir,
		    const struct net_use *use, uint32_t n, uint64_t again_ns);

/* A ProxyStep has found its ProxyOp. */
void net_join__step(struct net_join *j, struct corr_event *op, struct corr_event *step);

/*
 * What is known of the flow of a step that has stopped, and what the step tells of others. Once for each, in
 * their order on a connection. ready() does it when its time has come.
 */
void net_join__look(struct net_join *j, struct corr_event *step);

/* Whether an event that has stopped may be written. `end`: nothing more will come. */
bool net_join__ready(struct net_join *j, struct corr_event *ev, bool end);

/* A child that is written: its operation's figures are its own, too. */
void net_join__child(struct corr_event *parent, const struct corr_event *child);

void net_join__release(struct net_join *j, struct corr_event *ev);

/* Forgets what no event can ask for any more. */
void net_join__prune(struct net_join *j, uint64_t before_ns);

/* Calls fn for each flow of an event. */
void net_join__each(const struct corr_event *ev, void (*fn)(void *arg, struct flow *flow),
		    void *arg);

#endif
