/* SPDX-License-Identifier: BSD-2-Clause */
/* Between trace.c and its parts, trace_*.c: beginning and ending a line, and keys of every type. */
#ifndef NCCLSCOPE_TRACE_KEYS_H
#define NCCLSCOPE_TRACE_KEYS_H

#include "json.h"
#include "proc.h"
#include "sched_join.h"
#include "sched_sleeps.h"
#include "symbols.h"

/*
 * Longest event line: fixed keys and numbers, six names of at most 63 bytes, escaped, and four spans of
 * the scheduler with 64 CPUs and 8 culprits each, who ended their long sleeps and in which files these were; what RDMA ports counted.
 */
#define RDMA_EVENT_MAX 16384 /* 8 ports have room for 60 counters each, as they are in practice */
#define SLEEPS_MAX                                                                                 \
	(SCHED_TOP * 6 *                                                                           \
	 (2 * SCOPE_COMM_LEN + SCHED_FILE_LEN + 48)) /* of a span; keys are within the 48 */
#define EVENT_MAX (16384 + 4 * SLEEPS_MAX + RDMA_EVENT_MAX)
#define STATE_MAX 1024
#define SLICE_MAX (STATE_MAX + SLEEPS_MAX / SCHED_TOP)
#define FLOW_MAX  4096
/* Of a long sleep's functions in the kernel. */
#define STACK_NAME_MAX 64 /* bytes of one, unescaped: a longer one is cut */
#define STACK_MAX      (SCOPE_STACK_LEN * (6 * STACK_NAME_MAX + 3) + 16)

#define KEY_STR(j, key, s, len)                                                                    \
	do {                                                                                       \
		json_lit(j, ",\"" key "\":");                                                      \
		json_str(j, s, len);                                                               \
	} while (0)
#define KEY_U64(j, key, v)                                                                         \
	do {                                                                                       \
		json_lit(j, ",\"" key "\":");                                                      \
		json_u64(j, v);                                                                    \
	} while (0)
#define KEY_I64(j, key, v)                                                                         \
	do {                                                                                       \
		json_lit(j, ",\"" key "\":");                                                      \
		json_i64(j, v);                                                                    \
	} while (0)
#define KEY_PTR(j, key, v)                                                                         \
	do {                                                                                       \
		json_lit(j, ",\"" key "\":");                                                      \
		json_ptr(j, v);                                                                    \
	} while (0)
#define KEY_BOOL(j, key, v)                                                                        \
	do {                                                                                       \
		json_lit(j, ",\"" key "\":");                                                      \
		json_bool(j, v);                                                                   \
	} while (0)
#define KEY_US(j, key, v)                                                                          \
	do {                                                                                       \
		json_lit(j, ",\"" key "\":");                                                      \
		json_us(j, v);                                                                     \
	} while (0)

/*
 * Room for a line of at most `max` bytes, behind the header; at is NULL if there is none, and the line is
 * counted as lost. Then trace_end().
 */
struct json trace_begin(struct proc *p, size_t max);
void trace_end(struct proc *p, struct json *j, enum out_kind kind);

/* ,"pid":1,"tid":2 and what the host calls them where that is something else. trace_text.c */
void put_thread(struct json *j, struct proc *p, const struct corr_thread *t);
/* ,"gpuUuid":... to ,"rank":... of a communicator; NULL: not known. `pxn`: of another process, which nothing is said of. */
void put_comm(struct json *j, struct proc *p, const struct corr_comm *comm, bool pxn);

/* A system call's name, or "pagefault", "io", "stopped", "frozen", "other". */
const char *sched_why_name(int32_t why);
/* ,"sched":{...} of an event; nothing where it is not known. trace_sched.c */
void put_sched(struct json *j, const struct proc *p, const struct corr_event *ev,
	       const struct sched_join *join);
/* "stack": where in the kernel a long sleep was, the innermost function first; at most STACK_MAX bytes. Nothing if that is not known. */
void put_stack(struct json *j, const struct symbols *names, const struct sched_sleep *sleep);
/* ,"net":{...} of an event; nothing where its flows are not known. trace_net.c */
void put_net(struct json *j, const struct proc *p, const struct corr_event *ev,
	     const struct sched_join *join);
/*
 * `before`, then [{device, port, counters{}}] of the counters that moved in that time, of devices that the
 * process has open; nothing and false where none did. At most `max` bytes, RDMA_EVENT_MAX at least: a
 * counter too many is counted in `more` of its port. trace_rdma.c
 */
bool put_rdma(struct json *j, const char *before, const struct proc *p, uint64_t from_ns,
	      uint64_t to_ns, size_t max);
/* The sums of a thread at its end, keys with a leading comma. */
void put_thread_sums(struct json *j, const struct proc *p, const struct thread *t,
		     uint64_t stop_ns);

#endif
