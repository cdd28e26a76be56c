/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `ncclscope export`: traces for other tools. export_read.c makes records of lines, export_record.c events of these, and
 * export_lanes.c puts them into order and onto tracks, one process after the other; what is then written is a format's, one file for
 * each.
 */
#ifndef NCCLSCOPE_EXPORT_H
#define NCCLSCOPE_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "check_json.h"
#include "copies.h"
#include "fnv.h"
#include "hash.h"
#include "progress.h"
#include "output.h"
#include "xbuf.h"

/* ---- Tracks: what has slices that lie within each other or apart ----------------------------------------- */

enum export_kind {
	EXPORT_PROCESS,
	EXPORT_THREAD, /* what a thread called: GroupApi, CollApi, ..., ProxyCtrl */
	EXPORT_OPS,    /* operations of a rank */
	EXPORT_LINK,   /* ProxyOps to a peer over a channel */
	EXPORT_STEPS,  /* their steps */
	EXPORT_NET,    /* NetPlugin */
	EXPORT_GPU,    /* kernels of a channel */
	EXPORT_CUDA,   /* cuptiActivity of a stream */
	EXPORT_SCHED,  /* states of a thread */
	EXPORT_FLOW,   /* a connection, or a port of RDMA: no slices, but counters */
};

struct export_key {
	uint64_t a;
	uint32_t kind;
	int32_t tid, rank, channel, peer, send;
};

struct export_open {
	int64_t end;
	bool leaf; /* nothing fits into it */
};

/* One of the rows that a group needs for what overlaps. */
struct export_lane {
	struct export_group *group;
	uint32_t index;
	uint64_t id;		   /* the format's */
	struct export_open *stack; /* of slices whose end has not been written; owned */
	uint32_t depth, cap;
	int64_t last; /* time of what was last written */
};

struct export_group {
	struct export_key key;
	struct export_group *parent; /* NULL: the process */
	char name[128];
	struct export_lane **lanes;
	uint32_t nlanes;
	UT_hash_handle hh;
};

/* ---- Processes ------------------------------------------------------------------------------------------ */

struct export_thread {
	int32_t tid;
	char comm[64];
	/* the run that ends when the next slice says in what */
	bool running;
	uint32_t cpu;
	int64_t run_end;
	UT_hash_handle hh;
};

#define EXPORT_PORTS 64 /* of RDMA, of a process */

/* An RDMA port that the process tells of: from when to when, and when last, by any record. */
struct export_own_port {
	struct export_group *group;
	struct export_port *port; /* x->ports */
	int64_t from, to, seen;
};

struct export_state;

struct export_proc {
	char *host, *comm; /* owned; "" where unknown */
	int32_t pid;
	int32_t rank;	/* in the largest of its communicators, of these the first; -1: not known */
	int32_t of;	/* so many ranks has that */
	bool common;	/* seq of its collectives, as far as its header tells: seq.h */
	bool real;	/* times are the node's real time */
	int64_t offset; /* what is added to times of the trace */
	uint64_t node;	/* whose clock it is */
	uint64_t id;	/* of the process, wherever it is exported */
	int64_t last;	/* time of any line so far */
	struct export_state
		*logged; /* by the kernel before it was recorded; the newest first; owned */
	uint32_t nlogged;
	struct copies_span when; /* events were recorded */
	struct export_group *groups;
	struct export_thread *threads;
	struct export_own_port ports[EXPORT_PORTS];
	uint32_t nports;
	uint64_t nlanes;
};

/* ---- Events --------------------------------------------------------------------------------------------- */

struct export_state {
	struct export_state *next;
	int64_t ts;
	char name[48];
	size_t args_len;
	char args[];
};

struct export_event {
	int64_t start, end;
	int64_t host; /* when the host had it begin: they are written in that order */
	int64_t came; /* when its line did */
	uint64_t seq; /* in the order of lines */
	uint64_t addr, parent;
	uint64_t joined; /* same for the parts that ranks have in an operation; 0: not */
	const struct export_type *type;
	struct export_group *group; /* NULL where the format has no tracks */
	struct export_state *states;
	bool open;		   /* it had not ended: it goes on to the end of the recording */
	uint64_t open_children;	   /* then: of an operation, which ends with these if they do */
	struct export_event *next; /* of those without */
	UT_hash_handle hh;	   /* of those with */
	char name[64];
	size_t args_len;
	char args[];
};

/* What kinds of events there are, and where they go. */
struct export_type {
	const char *name, *label;
	enum export_kind kind;
	uint8_t level; /* parents before children that begin at the same time */
	bool leaf;     /* its states are slices within it, and nothing else is */
	bool from, to; /* arrows: to children on other tracks, from the parent on another */
};

/* A slice, an instant or a state of it that is to be written. */
struct export_slice {
	int64_t start, end;
	const char *cat, *name;
	const struct export_event *ev; /* NULL: something else */
	const char *args;
	size_t args_len;
};

/* Of an event that was written, for its children. */
struct export_seen {
	uint64_t addr;
	const struct export_lane *lane;
	int64_t start, end;
	UT_hash_handle hh;
};

struct export;

struct export_format {
	const char *name;
	bool binary, from_zero; /* from_zero: times from the trace's first */
	int (*begin)(struct export *x);
	int (*end)(struct export *x);
	void (*free)(struct export *x);
	/* Instead of all below: a record as it is. */
	void (*record)(struct export *x, const struct json_node *rec);
	void (*proc)(struct export *x, struct export_proc *p);
	void (*proc_end)(struct export *x, struct export_proc *p);
	/* All keys of a record, in its own words. */
	void (*args)(struct export *x, const struct json_node *rec, struct xbuf *b);
	/* Instead of all below: events in the order in which the host had them begin. */
	void (*event)(struct export *x, const struct export_event *ev);
	/* A lane is new, or its name is. */
	void (*lane)(struct export *x, struct export_lane *l);
	void (*slice)(struct export *x, struct export_lane *l, const struct export_slice *s);
	void (*slice_end)(struct export *x, struct export_lane *l, int64_t ts);
	void (*instant)(struct export *x, struct export_lane *l, const struct export_slice *s);
	/* Of a connection or a port: a name such as "rtt" and its unit. */
	void (*counter)(struct export *x, struct export_group *flow, const char *name,
			const char *unit, int64_t ts, double value);
	/* A thread begins to run on a CPU, or is woken; it stops, in a state of TASK_*. */
	void (*run)(struct export *x, const struct export_thread *t, uint32_t cpu, int64_t ts);
	void (*wake)(struct export *x, const struct export_thread *t, uint32_t cpu, int64_t ts);
	void (*stop)(struct export *x, const struct export_thread *t, uint32_t cpu, int64_t ts,
		     uint32_t state);
};

extern const struct export_format export_perfetto, export_chrome, export_speedscope,
	export_collapsed, export_csv;

struct export_order;
struct export_join;

struct export
{
	const struct export_format *fmt;
	bool machine_ids;
	struct output to;
	const char *out_path;
	struct xbuf out, args;
	int err; /* -errno of the output, or -ENOMEM */
	struct json_doc doc;
	struct export_proc *proc;
	struct export_order *order;
	struct export_join *join;
	struct export_seen *seen;	/* of the process, oldest first */
	struct export_pending *pending; /* states whose event has not come */
	size_t states_held;		/* bytes of these */
	uint64_t first_node;
	struct copies copies;
	bool newer; /* one of the traces is of a later schema, which has been told */
	struct copies_trace trace;
	int64_t base; /* what times are from */
	bool based;
	void *own;		   /* the format's; owned by it */
	struct export_port *ports; /* of RDMA */
	/* What was read, and what was not. */
	const char *path;
	uint64_t line, nlines, files, procs, events, states, others, torn, skipped, beyond;
	char why[256];	      /* the first that was skipped */
	char why_beyond[256]; /* the first for which there was no room */
	struct progress progress;
};

/* ---- export.c ------------------------------------------------------------------------------------------- */

/* Writes what there is, if that is much or @all; errors stay in x->err. */
void export_flush(struct export *x, bool all);

/* ---- export_read.c -------------------------------------------------------------------------------------- */

/* Everything in @paths. 0 or -errno. */
int export_read(struct export *x, char *const *paths);
void export_read_free(struct export *x);

/* ---- export_record.c ------------------------------------------------------------------------------------ */

/* Takes what has been parsed; errors stay in x->err. */
void export_record(struct export *x, const struct json_node *rec);
/* The file, or what is in it of a process, is over. */
void export_end_proc(struct export *x);
/* Counts a line that tells nothing, and notes where the first one was. */
void export_skip(struct export *x, const char *why);
/* The same of one with which nothing is wrong, but that there are too many of. */
void export_beyond(struct export *x, const char *why);
void export_records_free(struct export *x);

const struct json_node *rec_get(const struct export *x, const struct json_node *obj,
				const char *key);
/* False: it is none. By the real clock, from x->base on. */
bool rec_time(const struct export *x, const struct json_node *n, int64_t *ns);
/* A span; 0 where there is none. */
int64_t rec_span(const struct export *x, const struct json_node *obj, const char *key);

/* ---- export_ports.c ------------------------------------------------------------------------------------- */

/* What a node record tells of RDMA ports. */
void export_ports(struct export *x, const struct json_node *rec);
/* Of a `gpu` record of that time: export_gpus.c. */
void export_gpu(struct export *x, const struct json_node *rec, int64_t ts);
/* Before x->proc ends. */
void export_ports_end(struct export *x);
void export_ports_free(struct export *x);

/* ---- export_join.c -------------------------------------------------------------------------------------- */

struct export_join *export_join__new(void);
void export_join__free(struct export_join *j); /* takes NULL */
/* What a rank's part has in common with those of others in one operation, of all that have the name @hash. 0: nothing, or x->err. */
uint64_t export_join_of(struct export *x, uint64_t hash, int32_t rank, int64_t start, int64_t end);

/* ---- export_lanes.c ------------------------------------------------------------------------------------- */

struct export_order *export_order__new(void);
void export_order__free(struct export_order *o);
/* Takes the event; it is written when none that begins before it can be expected any more, and when it is known how long it was open. */
void export_order__add(struct export *x, struct export_event *ev);
/* Writes what is due, or @all as the recording is over, and the ends of all slices. */
void export_order__write(struct export *x, bool all);

/* The group of a key, made with that name below that parent if there is none. NULL: no memory. */
struct export_group *export_group_of(struct export *x, const struct export_key *key,
				     struct export_group *parent, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
struct export_lane *export_lane_of(struct export *x, struct export_group *g, uint32_t i);
/* A slice into a lane in which it has room. */
struct export_lane *export_put(struct export *x, struct export_group *g,
			       const struct export_slice *s, bool leaf);
void export_proc_free(struct export_proc *p);
struct export_seen *export_seen_of(struct export *x, uint64_t addr);

#endif
