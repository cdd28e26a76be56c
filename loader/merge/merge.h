/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of `ncclscope merge`. Data flows one way, twice through the files: merge_read.c and its parts learn from them who is who
 * and what passed between nodes, merge_clock.c makes of that how far the nodes' clocks are apart, and merge_write.c writes each
 * line again, in one clock and with what is known now. All times are ns.
 */
#ifndef NCCLSCOPE_MERGE_H
#define NCCLSCOPE_MERGE_H

#include <stdbool.h>
#include <stdint.h>
#include "check_json.h"
#include "copies.h"
#include "hash.h"
#include "merge_clock.h"
#include "output.h"
#include "streams.h"
#include "xbuf.h"

#define MERGE_UUID 36

/* CLOCK_REALTIME - CLOCK_MONOTONIC, which is another one once the former has been set. */
struct merge_real {
	int64_t offset, error;
};

/* What has one CLOCK_MONOTONIC: a node from one boot to the next. */
struct merge_node {
	char boot[MERGE_UUID + 1];
	char *host;		       /* owned */
	struct merge_real base;	       /* of the first header that was read: messages count by it */
	struct merge_real first, last; /* by time */
	int64_t first_ts, last_ts;
	const struct merge_real *real; /* which of them counts, once all is read */
	uint32_t procs;
	struct merge_fit fit; /* beyond @real */
	int64_t shift;	      /* of times, to the reference's CLOCK_MONOTONIC */
};

#define MERGE_NO_NODE UINT32_MAX

/* Which node has a bootId. */
struct merge_boot {
	char id[MERGE_UUID];
	uint32_t node;
	UT_hash_handle hh;
};

/* An operation that others worked on (PXN), as its own process has it. */
struct merge_origin {
	uint64_t key; /* of node, process and event */
	uint64_t comm, seq;
	int32_t rank;
	bool known, has_seq;
	UT_hash_handle hh;
};

/* A PXN ProxyOp, whose steps name it. */
struct merge_pxn {
	uint64_t addr;
	const struct merge_origin *origin;
};

/* A recording of a process: from a header to the next, or to the end of its stream. */
struct merge_proc {
	uint32_t node; /* MERGE_NO_NODE: it has no header, so nothing is known of its clock */
	int32_t pid, host_pid;
	int64_t started; /* -1: not known */
	struct copies_span when;
	bool is_copy;	       /* its trace has come before: left out */
	struct merge_pxn *pxn; /* by addr, once all is read; owned */
	uint32_t npxn, cap_pxn;
	struct merge_proc *next; /* in its stream */
};

/* Segments were sent again; once all is read, in order of time, and n and dsack those of all before as well. */
struct merge_resent {
	int64_t ts; /* its node's clock, as all in here */
	uint64_t n, dsack;
};

/* A connection as one of its ends has it, in one recording of that process. */
struct merge_end {
	const struct merge_proc *proc;
	int32_t rank;		     /* of what it served; -1: not known */
	bool is_local;		     /* both ends are of one node, by the recorder */
	bool is_cut;		     /* there were more than are kept */
	struct merge_resent *resent; /* owned */
	uint32_t nresent;
	int64_t from, to; /* when it would have been told that something was sent again */
	struct merge_end
		*more; /* of other recordings of its process: windows, or of two recorders; owned */
	struct merge_end *next; /* of other processes */
	struct merge_flow *flow;
};

struct merge_flow {
	struct merge_end *ends; /* the first of each process; owned */
	uint32_t nends;		/* processes */
	bool counted;
	UT_hash_handle hh;
	uint32_t len;
	char name[]; /* "10.0.0.7:41230>10.0.0.8:50021" */
};

struct merge {
	struct json_doc doc;
	struct merge_node *nodes; /* owned; as many as come */
	uint32_t nnodes, ref;
	struct merge_boot *boots;
	struct merge_proc **streams; /* by number: the first process of each; owned */
	uint32_t nstreams;
	struct merge_clock *clock;
	struct merge_flow *flows;
	uint64_t resent; /* entries of all ends */
	struct merge_origin *origins;
	struct merge_learner *learner; /* of merge_read.c */
	uint64_t recordings;	       /* of processes, those of copies too */
	uint64_t procs, headless, lines, torn, skipped, unknown; /* unknown: kinds of records */
	struct copies copies;
	uint64_t pxn, pxn_lost; /* PXN ProxyOps and steps; without their origin */
	uint64_t ties;		/* connections between two of the nodes */
	/* Writing. */
	char why[512]; /* of the first line that was skipped: where it is */
	struct output to;
	struct xbuf out;
	int err;
};

/* One line into @m->doc; 0, -EINVAL if there is nothing in it to go on with, or -ENOMEM. *s and *len are what was taken of it. */
int merge_parse(struct merge *m, const char **s, size_t *len, bool whole);

/* Reads all of @files and fills what is known. 0, -ENOMEM, -EALREADY or -ENOTSUP if a trace is merged already or of a later schema (told), -E2BIG (told), or a file's error (told). */
int merge_read(struct merge *m, struct streams *files);
/* Sets each node's shift. 0 or -ENOMEM. */
int merge_fit(struct merge *m);
/* Writes all of @files to @m->to, not closing it. 0 or -errno; @m->err is that of the output. */
int merge_write(struct merge *m, struct streams *files);

/* The first process of a stream, which leads to the others; NULL: it has none. */
const struct merge_proc *merge_first_proc(const struct merge *m, uint32_t stream);
/* Recordings of one process may be windows, one after the other, or of two recorders at once. */
bool merge_same_proc(const struct merge_proc *a, const struct merge_proc *b);
/* The other end of a connection that @proc has, on another node; NULL: not in the input, or which one is not sure. */
const struct merge_end *merge_peer(const struct merge *m, const struct merge_proc *proc,
				   const char *flow, size_t len);
/*
 * What @e, the other end of a connection of @proc, had to send again from @from to @to (INT64_MAX: until the end of recordings that
 * have @from), and what of that was needless. Times are the reference's. False: nothing, and its records do not cover all of that
 * time, or the clocks are too wrong to tell.
 */
bool merge_resent(const struct merge *m, const struct merge_proc *proc, const struct merge_end *e,
		  int64_t from, int64_t to, uint64_t *n, uint64_t *dsack);
/* How a node came to the reference's clock: clock.merged.by of the format. */
const char *merge_by(const struct merge *m, const struct merge_node *n);
/* What a PXN ProxyOp of @proc with parent @parent, of process @pid there, belongs to; NULL: that is not in the input. */
const struct merge_origin *merge_origin_of(const struct merge *m, const struct merge_proc *proc,
					   int32_t pid, uint64_t parent);

#endif
