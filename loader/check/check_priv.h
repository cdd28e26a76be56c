/* SPDX-License-Identifier: BSD-2-Clause */
/* Between check_rules.c, which takes records in, and check_events.c, which holds a process' events against each other. */
#ifndef NCCLSCOPE_CHECK_PRIV_H
#define NCCLSCOPE_CHECK_PRIV_H

#include "check.h"
#include "check_net.h"
#include "check_sched.h"

#define BIT(n) (1U << (n))

enum {
	EV_SEEN = 1, /* its event record, not just states */
	EV_UNFINISHED = 2,
	EV_PXN = 4,
	EV_ORPHAN = 8,
	EV_IS_SEND = 16,
	EV_HAS_DIR = 32, /* isSend is known */
	EV_HAS_OP = 64,	 /* a ProxyStep that says its channel and peer */
	EV_LATE_CHILD = 128,
	EV_HAS_BYTES = 256, /* of net */
};

enum exec_source { EXEC_NONE, EXEC_PROXY, EXEC_KERNEL, EXEC_ENQUEUE };

struct event {
	uint64_t id, parent, group, comm;
	int64_t start, stop, exec_stop;	     /* ns; stop only if not unfinished */
	int64_t st_first, st_last;	     /* of its states */
	int64_t proxy_end, proxy_max, k_end; /* of its children, 0: none stopped */
	uint64_t step, steps, nr_steps, channel;
	uint64_t bytes[2], child_bytes[2]; /* of net: sent, received; its children's */
	uint32_t pid; /* --compat only: one file may mix processes without headers */
	uint32_t
		open_line; /* last told while open; until it is seen, start and type are from there */
	uint32_t line, st_line, st_first_line, st_last_line, states;
	uint32_t types; /* all types that this id has had (--compat: addresses come again) */
	int32_t peer;
	uint16_t flags;
	uint8_t type, exec_source;
};

struct proc {
	struct event *events;
	uint32_t nr, cap;
	uint32_t *index; /* open addressing, 0: free, else event number + 1 */
	uint32_t index_size;
	bool header, footer, after_footer, any;
	bool pid_known; /* false after a header with faults */
	bool broken;	/* a record could not be taken: what it would explain is not reported */
	bool uncounted; /* nor can the footer's sums be checked */
	uint64_t boot;
	int64_t pid, clock_ts;
	uint64_t counts[NR_KINDS + 1];
	uint64_t nr_lost, lost[8]; /* of NCCL's records; of all, by cause */
	uint64_t header_line, footer_line;
	unsigned int min_api, max_api;
	struct sched_rules sched;
	struct net_rules net;
};

/* The seed computes with doubles, which are 2 ns apart at the times of its traces. */
static inline int64_t slack(const struct check *c)
{
	return c->compat ? 5 : 0;
}

/* Finds or makes it; NULL: out of memory. Moves the other events: hold no pointer across it. */
struct event *event_get(struct check *c, uint64_t id, uint32_t pid);
/* Of one whose address may come again, all that belongs to it having been read. */
void event_check_states(struct check *c, const struct proc *p, const struct event *ev);
/* All of the process have been read. */
void events_check(struct check *c);

#endif
