/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of `ncclscope check`: check.c walks the inputs and prints findings,
 * check_keys.c knows the keys of each record, check_rules.c, check_events.c, check_sched.c and
 * check_net.c what must hold between records.
 */
#ifndef NCCLSCOPE_CHECK_H
#define NCCLSCOPE_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "check_json.h"
#include "progress.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ULL(n)	      ((unsigned long long)(n)) /* for printf */

enum level { FIND_ERROR, FIND_WARNING, FIND_NOTE, NR_FIND };

struct pxn; /* of check_rules.c: what joins the processes of one node */
struct proc;

struct check {
	bool compat, json, quiet, strict;
	uint64_t max_shown; /* of a level; 0: all */
	const char *file;   /* in force, as given by the user */
	uint64_t line;
	struct json_doc doc;
	struct progress progress;
	uint64_t nr[NR_FIND], nr_shown[NR_FIND], nr_files, nr_records;
	struct proc *proc;
	struct pxn *pxn;
	int err; /* first -errno that ends the run, such as -ENOMEM */
};

/* @code is stable: scripts and ncclscope-check(1) know it. @line 0 is the file as a whole. */
__attribute__((format(printf, 5, 6))) void find_at(struct check *c, enum level level, uint64_t line,
						   const char *code, const char *fmt, ...);
#define find(c, level, code, fmt, ...) find_at(c, level, (c)->line, code, fmt, ##__VA_ARGS__)

/*
 * Text of a trace, made safe for a terminal and cut. Up to four results may be in use at a time.
 */
const char *quote(const char *s, size_t len);

/* Record kinds, in the order of the tables; KIND_OTHER is one that we do not know. */
enum kind {
	KIND_EVENT,
	KIND_STATE,
	KIND_HEADER,
	KIND_THREAD,
	KIND_SLICE,
	KIND_FLOW,
	KIND_DROP,
	KIND_SIGNAL,
	KIND_NODE,
	KIND_GPU,
	KIND_KMSG,
	KIND_CLOCK,
	KIND_LOST,
	KIND_OPEN,
	KIND_FOOTER,
	NR_KINDS,
	KIND_OTHER = NR_KINDS,
};

/* NCCL's event types, in the order of the tables. */
enum etype {
	ET_GROUP_API,
	ET_COLL_API,
	ET_P2P_API,
	ET_KERNEL_LAUNCH,
	ET_GROUP,
	ET_COLL,
	ET_P2P,
	ET_PROXY_OP,
	ET_PROXY_STEP,
	ET_PROXY_CTRL,
	ET_KERNEL_CH,
	ET_NET_PLUGIN,
	ET_CE_COLL,
	ET_CE_SYNC,
	ET_CE_BATCH,
	ET_KERNEL_PHASE,
	ET_LIFECYCLE,
	NR_ETYPES,
};

#define NR_STATES 32

extern const char *const kind_names[NR_KINDS + 1];
extern const char *const etype_names[NR_ETYPES + 1];
extern const char *const state_names[NR_STATES + 1];

/*
 * Holds one record against the tables. Returns the number of errors found; @kind and, for an
 * event and an open one, @etype are valid where it is 0.
 */
int keys_check(struct check *c, const struct json_node *rec, enum kind *kind, enum etype *etype);
/*
 * Has @visit called for each point in time that @rec has by the tables, in the order of the line. Returns the record's
 * kind; of KIND_OTHER nothing is known.
 */
enum kind keys_moments(const struct json_doc *doc, const struct json_node *rec,
		       void (*visit)(void *to, const struct json_node *n), void *to);
/* The tables as text, a key a line: a test compares them with docs/trace.schema.json. */
void keys_dump(FILE *to);

/* Reading keys that the tables have vouched for; 0 for one that is absent. */
int64_t get_time(struct check *c, const struct json_node *obj, const char *key);
uint64_t get_u64(struct check *c, const struct json_node *obj, const char *key);
int64_t get_i64(struct check *c, const struct json_node *obj, const char *key);
bool get_true(struct check *c, const struct json_node *obj, const char *key);
uint64_t mix(uint64_t x);
uint64_t hash_text(const struct json_node *n);
/* "12.345", for messages. Up to four results may be in use at a time. */
const char *us(int64_t ns);

int rules_init(struct check *c);
void rules_free(struct check *c);
/* @broken: the record has faults and only its place counts; @rec is NULL where it is no JSON. */
void rules_record(struct check *c, const struct json_node *rec, enum kind kind, enum etype etype,
		  bool broken);
/* Where a process ends: before the next header and at the end of a file. */
void rules_end_process(struct check *c);
/* At the end of all input: joins PXN events with their origin. */
void rules_join_pxn(struct check *c, uint64_t *matched, uint64_t *unmatched);

#endif
