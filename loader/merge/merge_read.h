/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of the first reading: merge_read.c takes lines and knows whose they are, merge_messages.c finds in them what passed
 * between nodes, merge_ends.c who is at the other end. Children come before their operation, so what counts of them is kept by its
 * id until then. Nothing in a line is trusted: what has a wrong type counts as absent, and tables forget (recent.h).
 */
#ifndef NCCLSCOPE_MERGE_READ_H
#define NCCLSCOPE_MERGE_READ_H

#include <stdbool.h>
#include <stdint.h>
#include "merge.h"

#define KEEP	 65536	/* of each kind in a process */
#define KEEP_MET 262144 /* of each kind that processes have in common */

/* What processes have in common; tables of merge_messages.c and, the last, merge_ends.c. */
struct merge_learner {
	struct met *met;
	struct whole *wholes;
	uint64_t whole_nodes; /* that there is room for in them */
	uint32_t gens;	      /* that they have had */
	struct part *parts;
	struct seen *seen;
};

/* Of one stream. */
struct merge_reader {
	struct merge *m;
	struct merge_learner *all;
	const char *path;
	uint32_t stream;
	struct merge_proc *first, *proc; /* of the stream; the one whose lines come */
	int64_t offset;			 /* of its node, by which messages count */
	struct merge_real real;		 /* of its header */
	int64_t began; /* its header's time, as its first record tells; INT64_MAX: none has come */
	struct copies_trace trace;
	bool common; /* its collectives' seq, as far as its header tells: seq.h */
	int64_t now;
	/* of merge_messages.c */
	struct step *steps;
	struct op *ops;
	struct coll *colls;
	struct call *calls;
};

typedef const struct json_node *node_t;

/* ---- merge_messages.c: records of a process that has a clock, in their order -------------------------------- */

void messages__state(struct merge_reader *rd, node_t rec);
void messages__step(struct merge_reader *rd, node_t rec, int64_t start, int64_t stop);
void messages__proxy_op(struct merge_reader *rd, node_t rec, int64_t start, int64_t stop);
void messages__call(struct merge_reader *rd, node_t rec, int64_t start);
void messages__operation(struct merge_reader *rd, node_t rec);
/* Nothing more comes from the process. */
void messages__forget(struct merge_reader *rd);
/* Nothing more comes from any: what has waited counts, and goes. */
void messages__settle(struct merge *m, struct merge_learner *all);

/* ---- merge_ends.c ------------------------------------------------------------------------------------------ */

void ends__flow(struct merge_reader *rd, node_t rec);
/* An operation that another process may have worked on, and a ProxyOp that is part of another process' operation. */
void ends__operation(struct merge_reader *rd, node_t rec);
void ends__pxn_op(struct merge_reader *rd, node_t rec);
/* Nothing more comes from any: now they can be asked for. */
void ends__settle(struct merge *m, struct merge_learner *all);

/* ---- Values ---------------------------------------------------------------------------------------------- */

static inline node_t get(const struct merge_reader *rd, node_t obj, const char *key)
{
	return jn_get(&rd->m->doc, obj, key);
}

static inline bool get_point(const struct merge_reader *rd, node_t obj, const char *key,
			     int64_t *ns)
{
	return jn_point(get(rd, obj, key), ns);
}

static inline uint64_t get_addr(const struct merge_reader *rd, node_t obj, const char *key)
{
	return jn_addr(get(rd, obj, key));
}

static inline uint64_t get_u64(const struct merge_reader *rd, node_t obj, const char *key)
{
	uint64_t v;

	return jn_u64(get(rd, obj, key), &v) ? v : 0;
}

static inline int32_t get_i32(const struct merge_reader *rd, node_t obj, const char *key,
			      int32_t none)
{
	return jn_i32(get(rd, obj, key), none);
}

/* What several numbers are together; that two differ and this does not is left to chance. */
static inline uint64_t key_of(const uint64_t *v, size_t n)
{
	uint64_t h = 0xcbf29ce484222325;

	while (n--) {
		h = (h ^ *v++) * 0x9e3779b97f4a7c15;
		h ^= h >> 29;
	}
	return h;
}

#define KEY_OF(...)                                                                                \
	key_of((const uint64_t[]){__VA_ARGS__},                                                    \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* The latest time in a line: its process has come so far. */
static inline void move_to(struct merge_reader *rd, int64_t ns)
{
	if (rd->began == INT64_MAX)
		rd->began = ns;
	if (ns + rd->offset > rd->now)
		rd->now = ns + rd->offset;
}

#endif
