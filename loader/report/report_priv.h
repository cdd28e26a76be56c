/* SPDX-License-Identifier: BSD-2-Clause */
/* Between report_join.c, which has the operations, report_late.c, report_verdict.c and report_evidence.c, which judge one, and report_chain.c and report_stat.c, which see all. */
#ifndef NCCLSCOPE_REPORT_PRIV_H
#define NCCLSCOPE_REPORT_PRIV_H

#include <string.h>
#include "clock.h"
#include "report.h"

#define REPORT_LATE 8192 /* ranks of an operation that are compared */
#define REPORT_PARTS                                                                               \
	32768 /* that wait for other ranks or operations: the oldest ones wait no longer */
/* Of many recordings so many of each: when one has been read to its end all comes that has waited there, and waits for the others. */
#define REPORT_PARTS_EACH 128
#define REPORT_PARTS_MAX  (1u << 19)
#define REPORT_MESSAGES	  (1u << 18)	      /* that wait for their other end: likewise */
#define REPORT_WAIT_NS	  (3 * NSEC_PER_SEC)  /* an operation's line may be so late */
#define REPORT_GIVE_UP_NS (90 * NSEC_PER_SEC) /* for ranks that have not come */
#define REPORT_SETTLED                                                                             \
	INT64_C(1500000000) /* ns after an operation: until then there may be word of children that never ended */
#define REPORT_FAILS	(5 * NSEC_PER_SEC) /* a job ends so long after what it fails of */
#define REPORT_SPAN_MAX (INT64_C(1) << 50) /* ns, 13 days: nothing takes longer */
#define REPORT_TOO_LONG 1.5		   /* as much longer than expected is slow */
#define REPORT_ENDS                                                                                \
	INT64_C(1000000) /* ns: by the proxy an operation ends so much later than the GPU is done with it */

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Ranks of a job lie behind each other, and of these those of a communicator. */
static inline int report_compare_groups(const struct report_proc *a, const struct report_proc *b)
{
	if (a->job != b->job)
		return a->job->index < b->job->index ? -1 : 1;
	return (a->within > b->within) - (a->within < b->within);
}

/*
 * At the end, the process that stands for the job that @p is judged as one of. One of which no communicator is known may be of any job: it
 * is held to be that of the first process of which one is known.
 */
static inline struct report_proc *report_judged_with(const struct report *r,
						     const struct report_proc *p)
{
	const struct report_proc *first = r->joined ?: r->procs ?: p;

	return p->job->within ? p->job : first->job;
}

/* By the real clock, when others are waited for since: the last one of a recording comes as that has been read to its end, maybe long after it. */
static inline int64_t report_waits_since(const struct report_part *p)
{
	return most(p->stop + p->beyond, p->proc->last - REPORT_SETTLED) + p->proc->offset;
}

static inline int64_t part_ns(const struct report_part *p)
{
	return p->stop - p->start;
}

static inline uint64_t report_part_bytes(const struct report_part *p)
{
	return sizeof(*p) + p->nlinks * sizeof(p->link[0]);
}

/* With its parts, and their index. */
uint64_t report_op_bytes(const struct report_op *op);

/* NULL: the input has nobody of that rank. */
static inline struct report_member *report_member_of(const struct report_comm *c, int32_t rank)
{
	struct report_member *m;

	HASH_FIND(hh, c->members, &rank, sizeof(rank), m);
	return m;
}

/* Of that one and those of the lives before, the one that is @p's process; NULL: none is. */
static inline struct report_member *report_life_of(struct report_member *m,
						   const struct report_proc *p)
{
	while (m && m->proc->self != p->self)
		m = m->before;
	return m;
}

/* The rank whose part that is, in its own life. NULL: the input has no such, or there was no room for it. */
static inline struct report_member *report_member_as(const struct report_comm *c,
						     const struct report_part *p)
{
	return report_life_of(report_member_of(c, p->rank), p->proc);
}

/* When it was seen first, by the real clock: which of two lives was first. */
static inline int64_t report_begin(const struct report_proc *p)
{
	const struct report_proc *first = p->self->first < INT64_MAX ? p->self : p;

	return first->first + first->offset;
}

/* Of how a process ended. */
static inline bool report_by_signal(const struct names *names, uint32_t end)
{
	return !strncmp(names__text(names, end), "signal ", 7);
}

/* Of what a thread is in: that its cgroup's freezer keeps it there, or whatever does. */
static inline bool report_is_frozen(const struct names *names, uint32_t why)
{
	return !strcmp(names__text(names, why), "frozen");
}

static inline bool report_is_stop(const struct names *names, uint32_t why)
{
	return !strcmp(names__text(names, why), "stopped") || report_is_frozen(names, why);
}

/* The link to that peer, of @n; NULL: there is none. */
static inline struct report_link *report_link_of(struct report_link *link, uint32_t n, int32_t peer,
						 bool send)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (link[i].peer == peer && link[i].send == send)
			return &link[i];
	return NULL;
}

/* Of two kernels the one that began first. */
static inline struct report_kernel report_first_kernel(struct report_kernel a,
						       struct report_kernel b)
{
	return !b.at || (a.at && a.at <= b.at) ? a : b;
}

/* By how much their clocks may be wrong about which of two came first. */
static inline int64_t report_clocks_doubt(const struct report_proc *a, const struct report_proc *b)
{
	return a->node == b->node ? 0 : a->clock_error + b->clock_error;
}

/* The power of two; 0 of 0. */
static inline uint32_t report_log2(uint64_t n)
{
	return n ? 63 - (uint32_t)__builtin_clzll(n) : 0;
}

/* Of a time that all threads of a role have together, what it is of one. */
static inline int64_t report_per_thread(int64_t ns, const struct report_role *role)
{
	return role->threads > 1 ? ns / role->threads : ns;
}

/* The part of the time, 0..1, in which its transfers waited for other ranks. */
double report_waiting(const struct report_part *p);
/*
 * Segments that had to be sent again, by the ProxyOps of both ends, of which the receiver's may be NULL: a sender's
 * is over when the kernel has taken its bytes, and the last of these may be lost after that.
 */
uint32_t report_needed(const struct report_link *l, const struct report_link *far);

/* Evidence, for that cause of a verdict whose duration is known. */
void report_tell(const struct report_op *op, const struct report_cause *c, struct names *names,
		 struct report_verdict *v);
/* Evidence: which end of a connection did so, and who that is, if the trace knows. */
void report_tell_reset(const struct report_proc *p, const struct names *names, char *at,
		       size_t len);
/* Evidence of one that failed, behind the first line: how it ended, and that a connection of it was reset not long before, if one was. */
void report_tell_failed(const struct report_proc *p, const struct names *names,
			char (*evidence)[256]);

/* The part of @op that is the finding's: how its GPU did then, beside its peers'. */
void report_gpu_note(const struct report *r, struct report_find *f, const struct report_op *op,
		     const struct report_part *part);

/* All input has been read: which processes are of one job, and of communicators of one size which one its ranks go by. */
void report_note_jobs(struct report *r);
/* After that: of which jobs there are operations, and of which there may be. */
void report_note_ops(struct report *r);

/* Of signals: report_signals.c. */
void report_note_signal(struct report_proc *p, const struct report_signal *s);
/* Evidence: how its end came, beyond what its footer says; false: nothing is known. */
bool report_tell_end(const struct report_proc *p, const struct names *names, char *at, size_t len);
/* Evidence: who stopped it last before @until, by its clock; false: not known. */
bool report_tell_stop(const struct report_proc *p, int64_t until, const struct names *names,
		      char *at, size_t len);
/* When the signal came that ended it, or asked it to end; if none is known, its threads; else the last that is known of it; by the real clock. */
int64_t report_died_at(const struct report_proc *p, const struct names *names);
/* After report_note_jobs(): who failed along with another one. Sets r->err. */
void report_note_deaths(struct report *r);
/* A signal ended it, *when (by the real clock), by its own mistake or for want of memory. */
bool report_has_crashed(const struct report *r, const struct report_proc *p, int64_t *when);
/* With an error status, and nobody had asked it to end. */
bool report_has_exited(const struct report *r, const struct report_proc *p);

/* What is odd about the operation's RDMA ports, first of all; false: nothing is. For how long that held it up they do not tell. */
bool report_ports_cause(const struct report_op *op, const struct report_typical *typical,
			struct names *names, struct report_cause *cause);

/* What moved most of that sign; NULL: nothing. */
const struct report_moved *report_sign_most(const struct report_op *op, enum rdma_sign sign);

/* Records that were lost near its parts. */
uint64_t report_losses_near(const struct report_op *op);

/* Sorts them. The lower one of two in the middle; 0 of none. */
int64_t report_median(int64_t *v, uint32_t n);

/* The same of all but one of them, which is @but, of values that are sorted already. */
static inline int64_t report_median_but(const int64_t *v, uint32_t n, int64_t but)
{
	uint32_t k = n > 1 ? (n - 2) / 2 : 0;

	return n < 2 ? 0 : v[k] < but ? v[k] : v[k + 1];
}

/* The first part of that rank; NULL: it has none. */
struct report_part *report_part_of(const struct report_op *op, int32_t rank);

/* As far as the clocks of single nodes tell: by how much the last rank came late; 0: none did. */
int64_t report_late_on_node(const struct report_op *op);

struct report_class *report_class_of(struct report *r, struct report_comm *c,
				     const struct report_op_info *info);
void report_op_free(struct report_op *op);

/* One of its ranks has not moved for long, or its connection was reset. */
bool report_stands_still(const struct report_op *op);
/* Not merely cut off by the end of the recording, or that of its ranks with the job's. */
bool report_is_hung(const struct report_op *op);
/* What holds one up that hangs, as far as its ranks' own show. */
void report_judge_hung(struct report *r, const struct report_op *op, struct report_verdict *v);
/* What is plain to see goes before what follows from it: the larger. */
int report_plain(const struct report_cause *c);
/*
 * report_hung.c: operations that never ended. One is taken over, and left out (which is counted) if there is no room. At the end of
 * each communicator the one that is told of is left; where its ranks' are not joined, as the first of them.
 */
void report_hung_take(struct report *r, struct report_op *op);
void report_hung_end(struct report *r);
void report_hung_free(struct report *r, struct report_comm *c);
/*
 * Of a rank (@m: its last life) the life that @op is of: the one that is in it, or the last that had begun before any who wait in it were
 * seen last (@until: report_open_until()).
 */
const struct report_member *report_member_in(const struct report_op *op, struct report_member *m,
					     int64_t until);
int64_t report_open_until(const struct report_op *op);
/* Whether a rank that @op waits for hangs itself, and not for @op: in a message, or in another communicator. */
bool report_hangs_elsewhere(const struct report_op *op, const struct report_member *m);
/* Whether any that it waits for does not, of those that the input has. */
bool report_waits_for_idle(const struct report_op *op);

/* All parts that there will be are there. Takes the operation over. */
void report_finish(struct report *r, struct report_op *op);

/* report_rows.c: a part of a rank, which waited for others for so long. */
void report_heat_add(struct report *r, const struct report_part *p, int64_t wait_ns);
struct heat *report_heat_new(void);
/* All have come: ranks in their order. */
void report_heat_end(struct heat *h);
void report_heat_free(struct heat *h);

/* Which findings are named, at what cost and how surely: report_weigh.c. All operations have been judged. */
void report_weigh(struct report *r);

/*
 * report_together.c: of findings that are not named, groups: of each rank those that were behind processes of others; and of all ranks of a job those
 * that came late, or were behind such processes. NULL: there are none, or there is no memory (r->err).
 */
struct report_find *report_by_rank(struct report *r);
struct report_find *report_in_turn(struct report *r, struct report_find *by_rank);
/* Those that are named go among the findings; the others are freed. */
void report_keep_together(struct report *r, struct report_find *by_rank,
			  struct report_find *in_turn);

/* All that still wait, in their order. */
void report_join_end(struct report *r);
void report_join_free(struct report *r);

/* Whether the clocks of all can be compared. */
bool report_one_clock(const struct report_op *op);
/* How much longer one was in it than another. */
int64_t report_longer(const struct report_op *op);

/* NULL: there is no memory (r->err), or no room for its communicator or kind, which is counted. */
struct report_op *report_op_new(struct report *r, const struct report_op_info *info);
/* 0, or -ENOMEM (r->err): then the part is still the caller's. */
int report_op_add(struct report *r, struct report_op *op, struct report_part *part);
/* It waits for no rank any more, but for its turn. Takes it over. @newest: when it ended, by the real clock. */
void report_ready(struct report *r, struct report_op *op, int64_t newest);

/*
 * report_window.c: the number of the window (record --every) that a recording is of, from 0: of what was recorded together the
 * same. @at: when something of it ended, by the real clock.
 */
uint32_t report_window_of(struct report *r, struct report_proc *p, int64_t at);
/* All of it has been read. */
void report_window_end(struct report *r, const struct report_proc *p);

/* report_p2p.c: of a Send or Recv, that began @start. Takes the part over. */
void report_p2p_add(struct report *r, const struct report_op_info *info, struct report_part *part,
		    int64_t start);
void report_p2p_expire(struct report *r, int64_t ns);
/* The oldest one waits no longer, of those whose other ends are known, or (@awaiting) are not. False: there is none. */
bool report_p2p_oldest(struct report *r, bool awaiting);
void report_p2p_free(struct report *r);

/* No room among @n links for another peer: there is none, or but the place that is kept for the first link of the other direction. */
bool report_links_full(const struct report_link *link, uint32_t n, uint32_t max, bool send);
/*
 * The link to that peer, of @n links; more peers than @max (at least 2) has room for share the last one of their direction,
 * which is to none (-1).
 */
struct report_link *report_link_to(struct report_link *link, uint32_t *n, uint32_t max,
				   int32_t peer, bool send);
/* How much it is worth being told apart. */
int64_t report_link_badness(const struct report_link *l);
/* Adds what went over one ProxyOp, or several of a Send or Recv. */
void report_link_merge(struct report_link *to, const struct report_link *l);

/* Takes from the part of an operation what it has waited for those before it in its communicator, which was called while they went on. */
void report_queue(struct report_comm *c, const struct report_op_info *info,
		  struct report_part *part);

/*
 * What ranks bring into it from their operations before, and into the next ones from it. They come in the order in which they end, but for
 * one whose line was late. @ended: by the real clock.
 */
void report_chain(struct report_op *op, int64_t ended);

#endif
