/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP connections of recorded processes and what they counted over time. Pure: no I/O, no clock; a
 * point comes in with each record and each sample of a flow, and the figures of an event are the
 * difference between two times. What the counters mean is said at struct scope_tcp_use.
 */
#ifndef NCCLSCOPE_FLOWS_H
#define NCCLSCOPE_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hash.h"
#include "scope_abi.h"

#define FLOW_POINTS_MAX 16384	     /* beyond, of the older half every other one is kept */
#define FLOW_DROPS_MAX	4096	     /* that are kept to be asked for */
#define FLOW_RESENT_MAX 32	     /* that wait to be told */
#define FLOW_RESENT_NS	100000000ULL /* until then it is known which ones were needless */
#define FLOW_NAME_MAX	112	     /* "[...]:65535>[...]:65535" */

/* All of it only grows; the 32-bit ones are the kernel's, since the connection began, and wrap. */
struct flow_counts {
	uint64_t bytes[2];    /* by enum scope_dir: moved by calls since the flow is known */
	uint64_t empty_ns[2]; /* calls found no room, no data */
	uint32_t retrans, lost, dsack, rx_ooo;
	uint32_t busy, rwnd, sndbuf; /* jiffies */
	uint32_t pad;		     /* they are compared as a whole */
};

/* Several together. */
struct flow_sums {
	uint64_t n;
	uint64_t bytes[2], empty_ns[2]; /* as above */
	uint64_t retrans, dsack, needed;
};

struct flow_point {
	uint64_t ts_ns;
	struct flow_counts c;
	uint32_t srtt_us; /* times 8 */
	uint32_t rtt_min_us, cwnd;
};

struct flow_drop {
	uint64_t ts_ns, location;
	uint32_t reason, len;
	bool rx; /* this end is the receiver */
	bool told;
};

/* Segments were sent again, those of 100 us together; of longer if there are many. */
struct flow_resent {
	uint64_t ts_ns, last_ns; /* the first and the last one */
	uint32_t total;		 /* of the flow, these included */
};

/* Which operations it serves, once that is known. */
struct flow_role {
	bool known, is_send;
	uint8_t channel;
	int32_t rank, peer; /* -1 unknown */
	uint64_t ctx;	    /* of the last one's communicator; net_join's */
};

struct flow_key {
	uint64_t sk, since_ns;
};

struct flow {
	struct flow_key key;
	struct scope_tuple tuple;
	char name[FLOW_NAME_MAX]; /* "10.0.0.7:41230>10.0.0.8:50021" */
	uint32_t tgid, netns;
	uint32_t tid;  /* who used it last, 0 */
	uint32_t refs; /* one until it is forgotten, and one for whoever holds it */
	bool gone, forgotten;
	uint32_t lost; /* records of it that found the ring full, as far as counted */
	struct flow_role role;
	uint32_t conns;			  /* NCCL's that it was found to be of; net_join's */
	uint32_t peer_pid, peer_host_pid; /* of the process at the other end, once it was seen; 0 */
	struct scope_tcp tcp;		  /* the last in full */
	uint64_t tcp_ns;
	struct flow_point *points; /* from first on, in order of time */
	uint32_t first, npoints, cap;
	uint32_t seen;		 /* which was asked for last: the next is mostly near it */
	uint64_t keep_ns;	 /* flows__keep(), since the last flows__prune() */
	struct flow_drop *drops; /* in order of time */
	uint32_t ndrops, drops_cap;
	struct flow_resent *resent; /* in order of time, FLOW_RESENT_MAX; NULL: never any */
	uint32_t nresent;
	uint32_t resent_told;	   /* the total of the last one that was told */
	struct flow_counts before; /* what TCP had counted when the flow became known */
	/* What of it is in the trace; the owner's. */
	struct flow_counts told;
	struct scope_tcp told_tcp;
	uint64_t told_ns;
	uint16_t pending;    /* enum scope_flow_why that waits to be told; 0 */
	uint64_t open_ns[2]; /* by enum scope_dir: first_ns of calls that a sample told of */
	uint32_t next_nr[2]; /* likewise: of the next use */
	uint64_t given[2];   /* likewise: bytes that steps were given */
	struct flow *twin;   /* further flows of these addresses, in other namespaces */
	UT_hash_handle hh, hh_tuple;
};

struct flows {
	struct flow *by_key;
	struct flow *by_tuple;
	uint64_t jiffy_ns;    /* set by the owner, like the next */
	uint64_t complete_ns; /* all that happened until then has come in */
};

/* Frees all of them, held ones too. */
void flows__free(struct flows *f);

struct flow *flows__find(const struct flows *f, uint64_t sk, uint64_t since_ns);

/* Makes it if it is not known; NULL: no memory. */
struct flow *flows__get(struct flows *f, const struct scope_ev_flow *ev);

/*
 * It is over: when it is forgotten, nobody holds it any more, and whose other end may still ask is done as
 * well (flows__prune()).
 */
void flow__gone(struct flow *flow);

struct flow *flow__hold(struct flow *flow);
void flow__put(struct flows *f, struct flow *flow); /* NULL is fine */

/* Addresses as text: "10.0.0.7:41230>10.0.0.8:50021"; size: FLOW_NAME_MAX or more. */
void flow_name(char *text, size_t size, const struct scope_tuple *t);

/* The newest with these addresses, or, `turned`, of their other end; others are its twins. NULL: none. */
struct flow *flows__of_tuple(const struct flows *f, const struct scope_tuple *tuple, bool turned);

/* The other end, if it is a recorded one of this node; NULL. */
struct flow *flows__peer(const struct flows *f, const struct flow *flow);

/* How many uses at the beginning of a record have come before; ev->dir is good, and ev->n. */
uint32_t flow__uses_known(const struct flow *flow, const struct scope_ev_uses *ev);

/*
 * Points in time: the last one's figures with those of a record. Comes nearly in order. -ENOMEM
 * Of uses, those from number `from` of the record on.
 */
int flow__uses(struct flow *flow, const struct scope_ev_uses *ev, uint32_t from);
int flow__retrans(struct flow *flow, const struct scope_ev_retrans *r);
int flow__sample(struct flow *flow, const struct scope_flow_sample *s);
/* Of SCOPE_FLOW_GONE and others. */
int flow__told(struct flow *flow, const struct scope_ev_flow *ev);

int flow__drop(struct flow *flow, const struct flow_drop *drop);

/* Enough of it waits to be told before there is another reason to. */
#define FLOW_RESENT_MANY (FLOW_RESENT_MAX / 2)

/* How many of `resent` there are that nothing more will be known of at ts_ns. */
uint32_t flow__resent_settled(const struct flow *flow, uint64_t ts_ns);
/* The segments of each, and how many of them the other end had already, as far as known at until_ns. */
void flow__resent_count(struct flow *flow, uint64_t until_ns, uint32_t n[FLOW_RESENT_MAX],
			uint32_t dsack[FLOW_RESENT_MAX]);
/* The first n are told. */
void flow__resent_forget(struct flow *flow, uint32_t n);

/* The last point up to ts_ns; the first one if all are later; NULL: none. */
const struct flow_point *flow__at(struct flow *flow, uint64_t ts_ns);
static inline const struct flow_point *flow__last(const struct flow *flow)
{
	return flow->npoints ? &flow->points[flow->first + flow->npoints - 1] : NULL;
}

/* Whether it has moved anything since it was told. */
bool flow__moved(struct flow *flow);

/* Forgets what is older, but for the last point up to then. */
void flow__prune(struct flow *flow, uint64_t before_ns);

/* An event may still ask for what this one, and its other end, did from since_ns on. UINT64_MAX: none does. */
void flows__keep(struct flows *f, struct flow *flow, uint64_t since_ns);

/* Forgets what is older, but for what is to be kept; of that, all flows together have no more points than their share. */
void flows__prune(struct flows *f, uint64_t before_ns);

/* What happened to flows within an event. */
#define FLOW_FIG_DROPS 4

struct flow_figures {
	uint64_t retrans, lost, dsack, rx_ooo;
	uint64_t busy_ns, rwnd_ns, sndbuf_ns; /* the latter two no more than the first together */
	uint64_t empty_ns[2];
	struct {
		uint32_t reason, n;
	} drops[FLOW_FIG_DROPS]; /* most first */
	uint32_t ndrops;
};

/* Adds a flow's, from one time to another: no time more than there is between them. */
void flow_figures__add(struct flow_figures *fig, const struct flows *f, struct flow *flow,
		       uint64_t from_ns, uint64_t to_ns);

/* Of flows together: no time more than there is. */
void flow_figures__clip(struct flow_figures *fig, uint64_t span_ns);

/* A reading that was made while counters moved may lie a little behind one before it. */
void flow_counts__at_least(struct flow_counts *c, const struct flow_counts *least);

/* Of a flow's totals, what was counted since it is known: a connection may be older than the recording. */
void flow_counts__since_known(struct flow_counts *c, const struct flow *flow);

#endif
