// SPDX-License-Identifier: BSD-2-Clause
/*
 * What must hold between the keys of a record and between the records of a process. A rule is a
 * function in one of three tables: record_rules (one record), event_rules (an event with its
 * states, parent and children, when the process ends) and process_rules (the file as a whole).
 * Those of the network are in check_net.c.
 *
 * Memory: one struct event (200 bytes) for each event of the process being read, given back
 * at its end, and 24 bytes for each of its threads with slices; 8 bytes for each Coll and P2p of all
 * processes, as PXN events refer to them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "check_net.h"
#include "clock.h"
#include "fnv.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n)	      (1U << (n))
#define ULL(n)	      ((unsigned long long)(n))

/* Two threads' times come from one clock fit, which is good to 1 us; one thread's are exact. */
#define CROSS_THREAD_NS 1000
/* sched: the parts are rounded each for itself. */
#define SCHED_NS 1000
/* behind and blockedIn are cut after so many. */
#define SCHED_LIST 4
/* As many as Linux can have. */
#define NR_CPUS 8192
/* What is told while it is open has been so, and has not moved, for so long. */
#define OPEN_NS NSEC_PER_SEC

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

/* The last slice of a thread. */
struct slice_end {
	uint32_t tid;
	uint32_t line; /* 0: this place is free */
	int64_t ts, end;
};

struct proc {
	struct event *events;
	uint32_t nr, cap;
	uint32_t *index; /* open addressing, 0: free, else event number + 1 */
	uint32_t index_size;
	struct slice_end *slices; /* open addressing, by tid */
	uint32_t nr_slices, slices_size;
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
	struct net_rules net;
};

struct keys64 {
	uint64_t *keys;
	size_t nr, cap;
};

struct pxn {
	struct keys64 anchors; /* Coll and P2p: what a ProxyOp of another process may belong to */
	struct keys64 wants;
};

static const char *const causes[] = {"ring-full",  "thread-buffer",	"orphan", "write-error",
				     "rate-limit", "context-ring-full", NULL};

uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

uint64_t hash_text(const struct json_node *n)
{
	return n ? fnv_more(FNV_BEGIN, n->s, n->len) : FNV_BEGIN;
}

static void keys64_add(struct check *c, struct keys64 *set, uint64_t key)
{
	if (set->nr == set->cap) {
		size_t cap = set->cap ? set->cap * 2 : 1024;
		uint64_t *keys = realloc(set->keys, cap * sizeof(*keys));

		if (!keys) {
			c->err = -ENOMEM;
			return;
		}
		set->keys = keys;
		set->cap = cap;
	}
	set->keys[set->nr++] = key;
}

/* ------------------------------------------------------------------ the events of a process */

static uint32_t *index_slot(const struct proc *p, uint64_t id, uint32_t pid)
{
	uint32_t mask = p->index_size - 1, i = mix(id + ((uint64_t)pid << 48)) & mask;

	while (p->index[i] &&
	       (p->events[p->index[i] - 1].id != id || p->events[p->index[i] - 1].pid != pid))
		i = (i + 1) & mask;
	return &p->index[i];
}

static int index_grow(struct proc *p)
{
	uint32_t size = p->index_size ? p->index_size * 2 : 1024, i;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return -ENOMEM;
	free(p->index);
	p->index = index;
	p->index_size = size;
	for (i = 0; i < p->nr; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): nr > 0 has both */
		*index_slot(p, p->events[i].id, p->events[i].pid) = i + 1;
	return 0;
}

static struct event *event_find(const struct proc *p, uint64_t id, uint32_t pid)
{
	uint32_t *slot = p->index_size ? index_slot(p, id, pid) : NULL;

	return slot && *slot ? &p->events[*slot - 1] : NULL;
}

/* Finds or makes it; NULL: out of memory. Moves the other events: hold no pointer across it. */
static struct event *event_get(struct check *c, uint64_t id, uint32_t pid)
{
	struct proc *p = c->proc;
	struct event *ev = event_find(p, id, pid);

	if (ev)
		return ev;
	if (p->nr == p->cap) {
		uint32_t cap = p->cap ? p->cap + p->cap / 2 : 512;

		ev = realloc(p->events, cap * sizeof(*ev));
		if (!ev)
			goto nomem;
		p->events = ev;
		p->cap = cap;
	}
	if (p->nr + 1 > p->index_size / 2 && index_grow(p))
		goto nomem;
	ev = &p->events[p->nr++];
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): cap > nr has events */
	memset(ev, 0, sizeof(*ev));
	ev->id = id;
	ev->pid = pid;
	*index_slot(p, id, pid) = p->nr;
	return ev;
nomem:
	c->err = -ENOMEM;
	return NULL;
}

/* ------------------------------------------------------------------ reading keys */

int64_t get_time(struct check *c, const struct json_node *obj, const char *key)
{
	int64_t ns = 0;

	jn_time(jn_get(&c->doc, obj, key), c->compat, &ns);
	return ns;
}

uint64_t get_u64(struct check *c, const struct json_node *obj, const char *key)
{
	uint64_t val = 0;

	jn_u64(jn_get(&c->doc, obj, key), &val);
	return val;
}

static int64_t get_i64(struct check *c, const struct json_node *obj, const char *key)
{
	int64_t val = 0;

	jn_i64(jn_get(&c->doc, obj, key), &val);
	return val;
}

/* 0 for "null" and for a key that is absent. */
static uint64_t get_id(struct check *c, const struct json_node *obj, const char *key)
{
	return jn_addr(jn_get(&c->doc, obj, key));
}

bool get_true(struct check *c, const struct json_node *obj, const char *key)
{
	return jn_true(jn_get(&c->doc, obj, key));
}

const char *us(int64_t ns)
{
	static char text[4][32];
	static unsigned int at;
	char *to = text[at++ % 4];
	uint64_t abs = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	snprintf(to, sizeof(text[0]), "%s%llu.%03llu", ns < 0 ? "-" : "", ULL(abs / 1000),
		 ULL(abs % 1000));
	return to;
}

/* ------------------------------------------------------------------ what the kernel did to a thread */

/*
 * The figures of an event, of one role of an operation's threads, or of a thread's life. @at is where
 * in the record they are, for messages, and ends with a dot unless they are the record's own.
 */

/* The sum of behind or blockedIn; 0 if the list is none that a sum may be taken of. */
static int64_t sched_list(struct check *c, const struct json_node *sched, const char *at,
			  const char *key)
{
	const struct json_node *list = jn_get(&c->doc, sched, key);
	int64_t sum = 0, last = INT64_MAX, ns;
	bool sorted = true;
	unsigned int nr = 0;
	uint32_t i;

	for (i = list ? list->first : 0; i; i = c->doc.nodes[i].next) {
		if (++nr > SCHED_LIST) {
			find(c, FIND_ERROR, "sched-list", "%s%s has more than %d entries", at, key,
			     SCHED_LIST);
			return 0;
		}
		ns = get_time(c, &c->doc.nodes[i], "us");
		sorted &= ns <= last;
		last = ns;
		sum = ns > INT64_MAX - sum ? INT64_MAX : sum + ns;
	}
	if (!sorted)
		find(c, FIND_ERROR, "sched-list", "%s%s is not in order, most first", at, key);
	return sum;
}

/* What is contained in the parts, and is thus no more than they. */
static void sched_contained(struct check *c, const struct json_node *sched, const char *at)
{
	int64_t on_cpu = get_time(c, sched, "onCpu"), runq = get_time(c, sched, "runq");
	int64_t blocked = get_time(c, sched, "blocked");
	int64_t behind = sched_list(c, sched, at, "behind");
	int64_t blocked_in = sched_list(c, sched, at, "blockedIn");

	if (get_time(c, sched, "irq") > on_cpu)
		find(c, FIND_ERROR, "sched-irq", "%sirq is more than %sonCpu", at, at);
	if (get_time(c, sched, "throttled") > runq)
		find(c, FIND_ERROR, "sched-throttled", "%sthrottled is more than %srunq", at, at);
	if (behind > runq)
		find(c, FIND_ERROR, "sched-behind", "%sbehind is %s together, %srunq only %s", at,
		     us(behind), at, us(runq));
	if (blocked_in > blocked)
		find(c, FIND_ERROR, "sched-blocked",
		     "%sblockedIn is %s together, %sblocked only %s", at, us(blocked_in), at,
		     us(blocked));
}

/* The states of a thread fill the time, each within it. @what: the time's name. */
static void sched_fills(struct check *c, const struct json_node *sched, const char *at,
			int64_t time, const char *what)
{
	static const char *const parts[] = {"onCpu", "runq", "blocked", "unknown"};
	uint64_t sum = 0; /* of four times, as 63 bits hold three */
	int64_t part;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		part = get_time(c, sched, parts[i]);
		sum += part;
		if (part <= time)
			continue;
		find(c, FIND_ERROR, "sched-part", "%s%s is %s, %s only %s", at, parts[i], us(part),
		     what, us(time));
		return;
	}
	if (sum > (uint64_t)time + SCHED_NS || sum + SCHED_NS < (uint64_t)time)
		find(c, FIND_ERROR, "sched-sum",
		     "%sonCpu + runq + blocked + unknown is %s, %s is %s", at, us(sum), what,
		     us(time));
}

/* Each thread counts for no longer than the operation took; of app there is but one. */
static void sched_span(struct check *c, const struct json_node *rec, const struct json_node *part,
		       const char *at, uint64_t threads)
{
	const struct json_node *exec = jn_get(&c->doc, rec, "exec");
	uint64_t span = get_time(c, part, "span"), duration = get_time(c, exec, "duration");

	if (!exec || get_true(c, rec, "unfinished"))
		return;
	if (threads ? span / threads + !!(span % threads) > duration : span)
		find(c, FIND_ERROR, "sched-span",
		     "%sspan is %s, of %llu threads and an exec.duration of %s", at, us(span),
		     ULL(threads), us(duration));
}

static void cpus_of(struct check *c, const struct json_node *sched, uint64_t cpus[NR_CPUS / 64])
{
	const struct json_node *list = jn_get(&c->doc, sched, "cpus");
	uint64_t cpu;
	uint32_t i;

	for (i = list ? list->first : 0; i; i = c->doc.nodes[i].next)
		if (jn_u64(&c->doc.nodes[i], &cpu) && cpu < NR_CPUS)
			cpus[cpu / 64] |= 1ULL << cpu % 64;
}

/* The figures of the operation are those of app and proxy together. */
static void sched_total(struct check *c, const struct json_node *sched, const struct json_node *app,
			const struct json_node *proxy)
{
	static const char *const times[] = {"span",    "onCpu", "runq",	    "blocked",
					    "unknown", "irq",	"throttled"};
	static const char *const counts[] = {"switches", "preemptions", "migrations"};
	uint64_t all[NR_CPUS / 64] = {}, parts[NR_CPUS / 64] = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		int64_t sum = get_time(c, app, times[i]) + get_time(c, proxy, times[i]);

		if (get_time(c, sched, times[i]) != sum)
			find(c, FIND_ERROR, "sched-total", "sched.%s is %s, app and proxy have %s",
			     times[i], us(get_time(c, sched, times[i])), us(sum));
	}
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		uint64_t sum = get_u64(c, app, counts[i]) + get_u64(c, proxy, counts[i]);

		if (get_u64(c, sched, counts[i]) != sum)
			find(c, FIND_ERROR, "sched-total",
			     "sched.%s is %llu, app and proxy have %llu", counts[i],
			     ULL(get_u64(c, sched, counts[i])), ULL(sum));
	}
	cpus_of(c, sched, all);
	cpus_of(c, app, parts);
	cpus_of(c, proxy, parts);
	if (memcmp(all, parts, sizeof(all)))
		find(c, FIND_ERROR, "sched-total", "sched.cpus are not those of app and proxy");
}

/* On a Coll and P2p: the threads that served it, as a whole and by role. */
static void sched_operation(struct check *c, const struct json_node *rec,
			    const struct json_node *sched)
{
	const struct json_node *app = jn_get(&c->doc, sched, "app");
	const struct json_node *proxy = jn_get(&c->doc, sched, "proxy");
	const struct json_node *before = jn_get(&c->doc, sched, "before");

	sched_fills(c, sched, "sched.", get_time(c, sched, "span"), "span");
	if (app) {
		sched_contained(c, app, "sched.app.");
		sched_fills(c, app, "sched.app.", get_time(c, app, "span"), "span");
		sched_span(c, rec, app, "sched.app.", 1);
	}
	if (proxy) {
		sched_contained(c, proxy, "sched.proxy.");
		sched_fills(c, proxy, "sched.proxy.", get_time(c, proxy, "span"), "span");
		sched_span(c, rec, proxy, "sched.proxy.", get_u64(c, proxy, "threads"));
	}
	if (before) {
		sched_contained(c, before, "sched.before.");
		sched_fills(c, before, "sched.before.", get_time(c, before, "span"), "span");
	}
	sched_total(c, sched, app, proxy);
}

/* ------------------------------------------------------------------ rules of one record */

/* The seed computes with doubles, which are 2 ns apart at the times of its traces. */
static int64_t slack(const struct check *c)
{
	return c->compat ? 5 : 0;
}

static void rule_event_times(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t start = get_time(c, jn_get(&c->doc, rec, "start"), "ts");
	int64_t stop = get_time(c, jn_get(&c->doc, rec, "stop"), "ts");
	int64_t duration = get_time(c, rec, "duration");

	(void)etype;
	if (get_true(c, rec, "unfinished"))
		return;
	if (stop < start)
		find(c, FIND_ERROR, "time-order", "stop %s is before start %s", us(stop),
		     us(start));
	else if (llabs(duration - (stop - start)) > 1 + slack(c))
		find(c, FIND_ERROR, "duration", "duration is %s but stop - start is %s",
		     us(duration), us(stop - start));
}

static void rule_event_ids(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *hash = jn_get(&c->doc, rec, "commHash");
	uint64_t comm = get_u64(c, rec, "commId");
	const struct proc *p = c->proc;

	(void)etype;
	if (hash && get_id(c, rec, "commHash") != comm)
		find(c, FIND_ERROR, "comm-hash", "commHash %s is not commId %llu (0x%llx)",
		     quote(hash->s, hash->len), ULL(comm), ULL(comm));
	if (get_i64(c, rec, "rank") < 0 && comm)
		find(c, FIND_ERROR, "rank", "rank is -1 but the communicator is known");
	if (!p->pid_known)
		return;
	if (get_i64(c, rec, "myPid") != p->pid)
		find(c, FIND_ERROR, "pid", "myPid is %lld in the file of process %lld",
		     (long long)get_i64(c, rec, "myPid"), (long long)p->pid);
	if (get_i64(c, jn_get(&c->doc, rec, "start"), "pid") != p->pid)
		find(c, FIND_ERROR, "pid", "start.pid is not that of process %lld",
		     (long long)p->pid);
}

static void rule_event_pxn(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *details = jn_get(&c->doc, rec, "details");
	int64_t origin = get_i64(c, rec, "originPid");

	if (etype == ET_PROXY_OP && get_true(c, rec, "isPxn") && !c->compat &&
	    get_i64(c, details, "eventPid") != origin)
		find(c, FIND_ERROR, "pxn-origin", "originPid %lld is not details.eventPid",
		     (long long)origin);
}

static void rule_event_exec(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *exec = jn_get(&c->doc, rec, "exec");
	int64_t start = get_time(c, jn_get(&c->doc, rec, "start"), "ts");
	int64_t stop = get_time(c, exec, "stop"), duration = get_time(c, exec, "duration");

	(void)etype;
	if (!exec)
		return;
	if (stop < start)
		find(c, FIND_ERROR, "exec-order", "exec.stop %s is before start %s", us(stop),
		     us(start));
	else if (llabs(duration - (stop - start)) > 1)
		find(c, FIND_ERROR, "exec-duration",
		     "exec.duration is %s but exec.stop - start is %s", us(duration),
		     us(stop - start));
	else if (jn_is(jn_get(&c->doc, exec, "source"), "enqueue") &&
		 !get_true(c, rec, "unfinished") &&
		 stop != get_time(c, jn_get(&c->doc, rec, "stop"), "ts"))
		find(c, FIND_ERROR, "exec-enqueue",
		     "exec.source is enqueue but exec.stop is not stop");
}

/* Of a kernel: where it ran, which was before the host saw it. */
static void rule_event_gpu(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *details;
	int64_t start, stop, seen;
	int n;

	if (etype != ET_KERNEL_CH && etype != ET_KERNEL_PHASE)
		return;
	details = jn_get(&c->doc, rec, "details");
	start = get_time(c, details, "gpuStart");
	stop = get_time(c, details, "gpuStop");
	seen = get_time(c, jn_get(&c->doc, rec, "stop"), "ts");
	n = !!jn_get(&c->doc, details, "gpuStart") + !!jn_get(&c->doc, details, "gpuStop") +
	    !!jn_get(&c->doc, details, "gpuError");
	if (n && n < 3)
		find(c, FIND_ERROR, "key-missing",
		     "keys 'gpuStart', 'gpuStop' and 'gpuError' go together, one is missing");
	else if (n && stop < start)
		find(c, FIND_ERROR, "gpu-order", "gpuStop %s is before gpuStart %s", us(stop),
		     us(start));
	else if (n && !get_true(c, rec, "unfinished") && stop > seen)
		find(c, FIND_ERROR, "gpu-order", "gpuStop %s is after stop %s", us(stop), us(seen));
}

static void rule_event_sched(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *sched = jn_get(&c->doc, rec, "sched");

	if (!sched)
		return;
	sched_contained(c, sched, "sched.");
	if (etype == ET_COLL || etype == ET_P2P)
		sched_operation(c, rec, sched);
	else if (!get_true(c, rec, "unfinished"))
		sched_fills(c, sched, "sched.", get_time(c, rec, "duration"), "duration");
}

static void rule_event_net(struct check *c, const struct json_node *rec, enum etype etype)
{
	net_rules__event(c, &c->proc->net, rec, etype);
}

/* Takes the event into the process. */
static void event_fill(struct check *c, struct event *ev, const struct json_node *rec,
		       enum etype etype)
{
	const struct json_node *details = jn_get(&c->doc, rec, "details");
	const struct json_node *exec = jn_get(&c->doc, rec, "exec");
	const struct json_node *source = jn_get(&c->doc, exec, "source");
	const struct json_node *send = jn_get(&c->doc, details, "isSend");
	const struct json_node *net = jn_get(&c->doc, rec, "net");

	int64_t start = get_time(c, jn_get(&c->doc, rec, "start"), "ts");
	uint64_t parent = get_id(c, rec, "parentObj");

	if (ev->open_line && (ev->start != start || ev->type != etype || ev->parent != parent))
		find(c, FIND_ERROR, "open-differs",
		     "eventType, parentObj or start.ts of event 0x%llx was another in line %u",
		     ULL(ev->id), ev->open_line);
	ev->line = c->line;
	ev->type = etype;
	ev->types |= BIT(etype);
	ev->parent = parent;
	ev->comm = get_u64(c, rec, "commId");
	ev->group = get_id(c, details, "parentGroup");
	ev->start = start;
	ev->stop = get_time(c, jn_get(&c->doc, rec, "stop"), "ts");
	ev->channel = get_u64(c, details, "channel");
	ev->peer = get_i64(c, details, "peer");
	ev->step = get_u64(c, details, "step");
	ev->steps = get_u64(c, details, "steps");
	ev->bytes[0] = get_u64(c, net, "txBytes");
	ev->bytes[1] = get_u64(c, net, "rxBytes");
	ev->exec_stop = get_time(c, exec, "stop");
	ev->exec_source = jn_is(source, "proxy")     ? EXEC_PROXY
			  : jn_is(source, "kernel")  ? EXEC_KERNEL
			  : jn_is(source, "enqueue") ? EXEC_ENQUEUE
						     : EXEC_NONE;
	if (etype == ET_KERNEL_CH && jn_get(&c->doc, details, "gpuStop"))
		ev->k_end = get_time(c, details, "gpuStop");
	ev->flags = EV_SEEN;
	ev->flags |= get_true(c, rec, "unfinished") ? EV_UNFINISHED : 0;
	ev->flags |= get_true(c, rec, "isPxn") ? EV_PXN : 0;
	ev->flags |= get_true(c, rec, "orphan") ? EV_ORPHAN : 0;
	ev->flags |= send ? EV_HAS_DIR : 0;
	ev->flags |= jn_true(send) ? EV_IS_SEND : 0;
	ev->flags |= jn_get(&c->doc, net, "txBytes") ? EV_HAS_BYTES : 0;
	if (jn_get(&c->doc, details, "channel") && jn_get(&c->doc, details, "peer"))
		ev->flags |= EV_HAS_OP;
}

static uint64_t pxn_key(uint64_t boot, int64_t pid, uint64_t id)
{
	return mix(mix(boot ^ mix(pid)) ^ id);
}

static void rule_states(struct check *c, const struct proc *p, const struct event *ev);

static void rule_event_take(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t pid = get_i64(c, jn_get(&c->doc, rec, "start"), "pid");
	uint64_t id = get_id(c, rec, "eventAddr");
	struct proc *p = c->proc;
	struct event *ev;

	if (etype == ET_LIFECYCLE || !id)
		return;
	ev = event_get(c, id, c->compat ? pid : 0);
	if (!ev)
		return;
	if ((ev->flags & EV_SEEN) && !c->compat) {
		find(c, FIND_ERROR, "id-twice", "event 0x%llx was already written in line %u",
		     ULL(id), ev->line);
		return;
	}
	event_fill(c, ev, rec, etype);
	if (c->compat) {
		/* The seed's addresses come again: what is known now is all that belongs here. */
		rule_states(c, p, ev);
		ev->st_line = 0;
	}
	if (ev->flags & EV_ORPHAN) {
		find(c, FIND_WARNING, "orphan", "%s 0x%llx is an orphan: its parent was not seen",
		     etype_names[etype], ULL(id));
	}
	if (etype == ET_COLL || etype == ET_P2P)
		keys64_add(c, &c->pxn->anchors, pxn_key(p->boot, pid, id));
	if (etype == ET_PROXY_OP && (ev->flags & EV_PXN) && ev->parent)
		keys64_add(c, &c->pxn->wants,
			   pxn_key(p->boot, get_i64(c, rec, "originPid"), ev->parent));
}

static void rule_open_times(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t start = get_time(c, jn_get(&c->doc, rec, "start"), "ts"),
		ts = get_time(c, rec, "ts");
	int64_t age = get_time(c, rec, "age"), quiet = get_time(c, rec, "quiet");
	int64_t state = get_time(c, rec, "lastStateTs");
	const struct json_node *more = jn_get(&c->doc, rec, "more");

	(void)etype;
	if (age != ts - start)
		find(c, FIND_ERROR, "open-age", "age is %s but ts - start is %s", us(age),
		     us(ts - start));
	else if (age < OPEN_NS || quiet < OPEN_NS)
		find(c, FIND_ERROR, "open-early",
		     "age is %s and quiet %s: an event is told after a second without movement",
		     us(age), us(quiet));
	else if (quiet > age)
		find(c, FIND_ERROR, "open-quiet", "quiet is %s, of an age of %s", us(quiet),
		     us(age));
	else if (jn_get(&c->doc, rec, "lastStateTs") && (state < start || state > ts))
		find(c, FIND_ERROR, "open-quiet", "lastStateTs %s is not between start and ts",
		     us(state));
	if (more && !get_u64(c, rec, "more"))
		find(c, FIND_ERROR, "open-more", "more is 0: leave it out");
}

static void rule_open_sched(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *sched = jn_get(&c->doc, rec, "sched");
	const struct json_node *app = jn_get(&c->doc, sched, "app");

	if (!sched)
		return;
	sched_contained(c, sched, "sched.");
	if (etype != ET_COLL && etype != ET_P2P)
		sched_fills(c, sched, "sched.", get_time(c, rec, "age"), "age");
	else
		sched_operation(c, rec, sched);
	if (app && get_time(c, app, "span") > get_time(c, rec, "age"))
		find(c, FIND_ERROR, "sched-span", "sched.app.span is %s, of an age of %s",
		     us(get_time(c, app, "span")), us(get_time(c, rec, "age")));
}

static void rule_open_net(struct check *c, const struct json_node *rec, enum etype etype)
{
	(void)etype;
	net_rules__open(c, &c->proc->net, rec);
}

/* Takes it into the process, until its event comes. */
static void rule_open_take(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t start = get_time(c, jn_get(&c->doc, rec, "start"), "ts"),
		ts = get_time(c, rec, "ts");
	uint64_t id = get_id(c, rec, "eventAddr"), parent = get_id(c, rec, "parentObj");
	struct event *ev = event_get(c, id, 0);

	if (!ev)
		return;
	if (ev->flags & EV_SEEN) {
		find(c, FIND_ERROR, "open-late", "told as open after its event 0x%llx (line %u)",
		     ULL(id), ev->line);
		return;
	}
	if (ev->open_line && (ev->start != start || ev->type != etype || ev->parent != parent))
		find(c, FIND_ERROR, "open-differs",
		     "eventType, parentObj or start.ts of event 0x%llx was another in line %u",
		     ULL(id), ev->open_line);
	else if (ev->open_line && ts <= ev->stop)
		find(c, FIND_ERROR, "open-order",
		     "event 0x%llx is told at %s, after it was at %s (line %u)", ULL(id), us(ts),
		     us(ev->stop), ev->open_line);
	ev->open_line = c->line;
	ev->start = start;
	ev->stop = ts;
	ev->type = etype;
	ev->parent = parent;
}

static void rule_event_api(struct check *c, const struct json_node *rec, enum etype etype)
{
	unsigned int api = get_u64(c, jn_get(&c->doc, rec, "details"), "ncclApi");
	struct proc *p = c->proc;

	if (etype != ET_LIFECYCLE || !api)
		return;
	p->min_api = p->min_api && p->min_api < api ? p->min_api : api;
	p->max_api = p->max_api > api ? p->max_api : api;
}

static void rule_state(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t pid = get_i64(c, rec, "pid"), ts = get_time(c, rec, "ts"), last = ts;
	uint64_t id = get_id(c, rec, "eventAddr"), state = get_u64(c, rec, "id");
	struct event *ev;

	(void)etype;
	if (c->proc->pid_known && pid != c->proc->pid)
		find(c, FIND_ERROR, "pid", "pid is %lld in the file of process %lld",
		     (long long)pid, (long long)c->proc->pid);
	if (jn_get(&c->doc, rec, "lastTs")) {
		last = get_time(c, rec, "lastTs");
		if (last < ts)
			find(c, FIND_ERROR, "state-repeats", "lastTs %s is before ts %s", us(last),
			     us(ts));
		if (!get_u64(c, rec, "repeats"))
			find(c, FIND_ERROR, "state-repeats", "repeats is 0: leave it out");
	}
	if (get_true(c, rec, "orphan")) {
		find(c, FIND_WARNING, "orphan", "%s is an orphan: its event was not seen",
		     state_names[state]);
		return;
	}
	ev = event_get(c, id, c->compat ? pid : 0);
	if (!ev)
		return;
	if ((ev->flags & EV_SEEN) && !c->compat) {
		find(c, FIND_ERROR, "state-late", "%s comes after its event 0x%llx (line %u)",
		     state_names[state], ULL(id), ev->line);
		return;
	}
	if (!ev->st_line) {
		ev->st_line = c->line;
		ev->states = 0;
		ev->flags &= ~EV_SEEN;
	}
	if (ev->st_line == c->line || ts < ev->st_first) {
		ev->st_first = ts;
		ev->st_first_line = c->line;
	}
	if (ev->st_line == c->line || last > ev->st_last) {
		ev->st_last = last;
		ev->st_last_line = c->line;
	}
	ev->states |= BIT(state);
}

/* A new process begins; its identity is how the rest of the file is read. */
static void rule_header(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *clock = jn_get(&c->doc, rec, "clock");
	struct proc *p = c->proc;

	(void)etype;
	p->pid_known = true;
	p->pid = get_i64(c, rec, "pid");
	p->boot = hash_text(jn_get(&c->doc, rec, "bootId"));
	if (jn_is(jn_get(&c->doc, clock, "source"), "tsc") && !get_u64(c, clock, "tscHz"))
		find(c, FIND_ERROR, "clock", "clock.source is tsc but clock.tscHz is %s",
		     jn_get(&c->doc, clock, "tscHz") ? "0" : "missing");
}

static void rule_thread(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t start = get_time(c, rec, "start"), stop = get_time(c, rec, "stop");
	int64_t since = get_time(c, rec, "since");

	(void)etype;
	if (!jn_get(&c->doc, rec, "stop"))
		return;
	if (stop < start || stop < since) {
		find(c, FIND_ERROR, "time-order", "stop %s is before %s %s", us(stop),
		     stop < start ? "start" : "since", us(stop < start ? start : since));
		return;
	}
	if (!jn_get(&c->doc, rec, "since"))
		return;
	sched_contained(c, rec, "");
	sched_fills(c, rec, "", stop - since, "stop - since");
}

static struct slice_end *slice_slot(const struct proc *p, uint32_t tid)
{
	uint32_t mask = p->slices_size - 1, i = mix(tid) & mask;

	while (p->slices[i].line && p->slices[i].tid != tid)
		i = (i + 1) & mask;
	return &p->slices[i];
}

static int slices_grow(struct proc *p)
{
	uint32_t old_size = p->slices_size, i;
	struct slice_end *old = p->slices;

	p->slices = calloc(old_size ? old_size * 2 : 64, sizeof(*p->slices));
	if (!p->slices) {
		p->slices = old;
		return -ENOMEM;
	}
	p->slices_size = old_size ? old_size * 2 : 64;
	for (i = 0; i < old_size; i++)
		if (old[i].line)
			*slice_slot(p, old[i].tid) = old[i];
	free(old);
	return 0;
}

/* A thread is in one state at a time, and its slices come as they were. */
static void slice_follows(struct check *c, uint32_t tid, int64_t ts, int64_t end)
{
	struct proc *p = c->proc;
	struct slice_end *last;

	if (p->nr_slices + 1 > p->slices_size / 2 && slices_grow(p)) {
		c->err = -ENOMEM;
		return;
	}
	last = slice_slot(p, tid);
	if (!last->line)
		p->nr_slices++;
	else if (ts < last->ts)
		find(c, FIND_ERROR, "slice-order",
		     "slice of thread %u at %s comes after one at %s (line %u)", tid, us(ts),
		     us(last->ts), last->line);
	else if (ts < last->end)
		find(c, FIND_ERROR, "slice-overlap",
		     "slice of thread %u at %s begins before the last one ends, at %s (line %u)",
		     tid, us(ts), us(last->end), last->line);
	*last = (struct slice_end){.tid = tid, .line = c->line, .ts = ts, .end = end};
}

static void rule_slice(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t ts = get_time(c, rec, "ts"), dur = get_time(c, rec, "dur");
	bool host = jn_get(&c->doc, rec, "hostTid");

	(void)etype;
	if (get_time(c, rec, "irq") > dur)
		find(c, FIND_ERROR, "sched-irq", "irq is more than dur");
	if (get_time(c, rec, "throttled") > dur)
		find(c, FIND_ERROR, "sched-throttled", "throttled is more than dur");
	slice_follows(c, get_i64(c, rec, host ? "hostTid" : "tid"), ts, ts + dur);
}

static void rule_flow(struct check *c, const struct json_node *rec, enum etype etype)
{
	(void)etype;
	net_rules__flow(c, &c->proc->net, rec);
}

static void rule_drop(struct check *c, const struct json_node *rec, enum etype etype)
{
	(void)etype;
	net_rules__drop(c, &c->proc->net, rec);
}

static void rule_clock(struct check *c, const struct json_node *rec, enum etype etype)
{
	int64_t ts = get_time(c, rec, "ts");

	(void)etype;
	if (ts < c->proc->clock_ts)
		find(c, FIND_ERROR, "clock", "clock record of %s after one of %s", us(ts),
		     us(c->proc->clock_ts));
	c->proc->clock_ts = ts;
}

static void rule_lost(struct check *c, const struct json_node *rec, enum etype etype)
{
	uint64_t n = get_u64(c, rec, "n");
	int i;

	(void)etype;
	if (get_time(c, rec, "to") < get_time(c, rec, "from"))
		find(c, FIND_ERROR, "time-order", "to %s is before from %s",
		     us(get_time(c, rec, "to")), us(get_time(c, rec, "from")));
	if (!n)
		find(c, FIND_ERROR, "lost-none", "a lost record with n 0: leave it out");
	for (i = 0; causes[i]; i++)
		if (jn_is(jn_get(&c->doc, rec, "cause"), causes[i]))
			c->proc->lost[i] += n;
	c->proc->net.lossy = true;
	/* Kernel context that is lost explains no gap in NCCL's records. */
	if (!jn_is(jn_get(&c->doc, rec, "cause"), "context-ring-full"))
		c->proc->nr_lost += n;
}

static void footer_sum(struct check *c, const struct json_node *rec, const char *map,
		       const char *name, uint64_t have)
{
	uint64_t said = get_u64(c, jn_get(&c->doc, rec, map), name);

	if (said != have)
		find(c, FIND_ERROR, map[0] == 'c' ? "footer-counts" : "footer-lost",
		     "%s.%s is %llu but the file has %llu", map, name, ULL(said), ULL(have));
}

/* Counts and sums say that a file is whole: nothing was cut out of it. */
static void rule_footer(struct check *c, const struct json_node *rec, enum etype etype)
{
	const struct json_node *lost = jn_get(&c->doc, rec, "lost");
	struct proc *p = c->proc;
	uint32_t i;
	int k;

	(void)etype;
	for (k = 0; !p->uncounted && k < NR_KINDS; k++)
		if (k != KIND_FOOTER)
			footer_sum(c, rec, "counts", kind_names[k], p->counts[k]);
	for (k = 0; !p->uncounted && causes[k]; k++)
		footer_sum(c, rec, "lost", causes[k], p->lost[k]);
	for (i = lost->first; i; i = c->doc.nodes[i].next) {
		const struct json_node *n = &c->doc.nodes[i];

		for (k = 0; causes[k]; k++)
			if (strlen(causes[k]) == n->key_len &&
			    !memcmp(causes[k], n->key, n->key_len))
				break;
		if (!causes[k])
			find(c, FIND_ERROR, "footer-lost", "lost.%s is no cause",
			     quote(n->key, n->key_len));
	}
}

/* Rules of one record, run in this order as it is read. Later kinds and families go here. */
static const struct {
	enum kind kind;
	void (*rule)(struct check *c, const struct json_node *rec, enum etype etype);
} record_rules[] = {
	{KIND_EVENT, rule_event_times}, {KIND_EVENT, rule_event_ids},
	{KIND_EVENT, rule_event_pxn},	{KIND_EVENT, rule_event_exec},
	{KIND_EVENT, rule_event_gpu},	{KIND_EVENT, rule_event_sched},
	{KIND_EVENT, rule_event_net},	{KIND_EVENT, rule_event_api},
	{KIND_EVENT, rule_event_take},	{KIND_STATE, rule_state},
	{KIND_HEADER, rule_header},	{KIND_THREAD, rule_thread},
	{KIND_SLICE, rule_slice},	{KIND_CLOCK, rule_clock},
	{KIND_LOST, rule_lost},		{KIND_FOOTER, rule_footer},
	{KIND_FLOW, rule_flow},		{KIND_DROP, rule_drop},
	{KIND_OPEN, rule_event_ids},	{KIND_OPEN, rule_event_pxn},
	{KIND_OPEN, rule_open_times},	{KIND_OPEN, rule_open_sched},
	{KIND_OPEN, rule_open_net},	{KIND_OPEN, rule_open_take},
};

/* ------------------------------------------------------------------ rules of an event */

#define S(n) BIT(n)
static const uint32_t states_of[NR_ETYPES] = {
	[ET_GROUP_API] = S(23) | S(24),
	[ET_PROXY_OP] = 0xff | S(19),
	[ET_PROXY_STEP] = S(8) | S(9) | S(20) | S(10) | S(11) | S(12),
	[ET_PROXY_CTRL] = S(13) | S(14) | S(15) | S(16) | S(17) | S(18),
	[ET_NET_PLUGIN] = S(21),
	[ET_KERNEL_CH] = S(22),
	[ET_CE_COLL] = S(25) | S(26),
	[ET_CE_SYNC] = S(27) | S(28),
	[ET_CE_BATCH] = S(29) | S(30),
	[ET_KERNEL_PHASE] = S(31),
};
#define SEND_STATES (S(8) | S(9) | S(20))
#define RECV_STATES (S(10) | S(11) | S(12))

static const char *state_of(uint32_t mask)
{
	return mask ? state_names[__builtin_ctz(mask)] : "no state";
}

/*
 * Something that should be in the file is not. While a process runs, or where its recording broke
 * off, events are open; and what was lost explains a gap, then it is no error of the file.
 */
__attribute__((format(printf, 5, 6))) static void
gap(struct check *c, const struct proc *p, uint32_t line, const char *code, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (!p->footer || p->broken)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	find_at(c, p->nr_lost ? FIND_WARNING : FIND_ERROR, line, code, "%s", text);
}

static void rule_states(struct check *c, const struct proc *p, const struct event *ev)
{
	uint32_t wrong = ev->states & ~states_of[ev->type];

	if (!ev->st_line)
		return;
	if (!(ev->flags & EV_SEEN)) {
		gap(c, p, ev->st_line, "state-event",
		    "%s belongs to event 0x%llx, which is not in the file", state_of(ev->states),
		    ULL(ev->id));
		return;
	}
	if (ev->st_first < ev->start - slack(c))
		find_at(c, FIND_ERROR, ev->st_first_line, "state-time",
			"state at %s is before its event 0x%llx starts at %s (line %u)",
			us(ev->st_first), ULL(ev->id), us(ev->start), ev->line);
	if (!(ev->flags & EV_UNFINISHED) && ev->st_last > ev->stop + slack(c))
		find_at(c, FIND_ERROR, ev->st_last_line, "state-time",
			"state at %s is after its event 0x%llx stopped at %s (line %u)",
			us(ev->st_last), ULL(ev->id), us(ev->stop), ev->line);
	if (ev->type == ET_PROXY_STEP && (ev->flags & EV_HAS_DIR) && !wrong)
		wrong = ev->states & (ev->flags & EV_IS_SEND ? RECV_STATES : SEND_STATES);
	if (wrong)
		find_at(c, FIND_ERROR, ev->st_line, "state-type",
			"%s is no state of %s 0x%llx (line %u)", state_of(wrong),
			etype_names[ev->type], ULL(ev->id), ev->line);
}

static void rule_open(struct check *c, const struct proc *p, const struct event *ev)
{
	if (ev->open_line && !(ev->flags & EV_SEEN))
		gap(c, p, ev->open_line, "open-event",
		    "event 0x%llx was open and is not in the file", ULL(ev->id));
}

#define T(type) BIT(ET_##type)

static uint32_t parents_of(const struct proc *p, enum etype type)
{
	static const uint32_t parents[NR_ETYPES] = {
		[ET_COLL_API] = T(GROUP_API),
		[ET_P2P_API] = T(GROUP_API),
		[ET_KERNEL_LAUNCH] = T(GROUP_API),
		[ET_PROXY_OP] = T(COLL) | T(P2P),
		[ET_PROXY_STEP] = T(PROXY_OP),
		[ET_KERNEL_CH] = T(COLL) | T(P2P),
		[ET_NET_PLUGIN] = T(PROXY_STEP),
		[ET_CE_COLL] = T(COLL_API),
		[ET_CE_SYNC] = T(CE_COLL),
		[ET_CE_BATCH] = T(CE_COLL),
		[ET_KERNEL_PHASE] = T(KERNEL_CH) | T(COLL) | T(P2P),
	};
	uint32_t group = p->min_api < 5 ? T(GROUP) : 0;

	/* API 5 put CollApi and P2pApi between; which one is in use the lifecycle records say. */
	if (type == ET_COLL)
		return group | (!p->max_api || p->max_api >= 5 ? T(COLL_API) : 0);
	if (type == ET_P2P)
		return group | (!p->max_api || p->max_api >= 5 ? T(P2P_API) : 0);
	return parents[type];
}

static void parent_fits(struct check *c, const struct proc *p, const struct event *ev,
			const struct event *parent)
{
	const char *name = etype_names[ev->type], *parent_name = etype_names[parent->type];

	if (!(parent->types & parents_of(p, ev->type))) {
		find_at(c, FIND_ERROR, ev->line, "parent-type",
			"%s 0x%llx has a %s for parent (0x%llx, line %u)", name, ULL(ev->id),
			parent_name, ULL(parent->id), parent->line);
		return;
	}
	if (c->compat)
		return;
	if (ev->start + CROSS_THREAD_NS < parent->start)
		find_at(c, FIND_ERROR, ev->line, "parent-time",
			"%s 0x%llx starts at %s, before its parent at %s (line %u)", name,
			ULL(ev->id), us(ev->start), us(parent->start), parent->line);
	/* A group may span communicators, and NCCL gives it to the first of them. */
	if (parent->type != ET_GROUP_API && ev->comm != parent->comm)
		find_at(c, FIND_ERROR, ev->line, "parent-comm",
			"%s 0x%llx has commId %llu, its parent %llu (line %u)", name, ULL(ev->id),
			ULL(ev->comm), ULL(parent->comm), parent->line);
}

static void rule_parent(struct check *c, const struct proc *p, const struct event *ev)
{
	const struct event *parent = ev->parent ? event_find(p, ev->parent, ev->pid) : NULL;

	if (!(ev->flags & EV_SEEN))
		return;
	if (ev->parent && !parents_of(p, ev->type)) {
		find_at(c, FIND_ERROR, ev->line, "parent-type", "%s 0x%llx has a parent",
			etype_names[ev->type], ULL(ev->id));
		return;
	}
	if (!ev->parent && parents_of(p, ev->type) && !c->compat && !(ev->flags & EV_ORPHAN)) {
		/* A recording that begins within a group has not seen the group begin. */
		bool api = parents_of(p, ev->type) == T(GROUP_API);

		find_at(c, api ? FIND_WARNING : FIND_ERROR, ev->line, "parent-none",
			"%s 0x%llx has no parent", etype_names[ev->type], ULL(ev->id));
	}
	/* The parent is in another process, or was never seen and the writer says so. */
	if (!ev->parent || (ev->flags & EV_ORPHAN) ||
	    ((ev->flags & EV_PXN) && ev->type == ET_PROXY_OP))
		return;
	if (parent && parent->types)
		parent_fits(c, p, ev, parent);
	else
		gap(c, p, ev->line, "parent-missing",
		    "%s 0x%llx has the parent 0x%llx, which is not in the file",
		    etype_names[ev->type], ULL(ev->id), ULL(ev->parent));
}

static void rule_group(struct check *c, const struct proc *p, const struct event *ev)
{
	const struct event *group = ev->group ? event_find(p, ev->group, ev->pid) : NULL;

	if (!(ev->flags & EV_SEEN) || !ev->group)
		return;
	if (group && (group->types & ~T(GROUP)))
		find_at(c, FIND_ERROR, ev->line, "parent-type",
			"parentGroup of %s 0x%llx is a %s (0x%llx, line %u)", etype_names[ev->type],
			ULL(ev->id), etype_names[group->type], ULL(group->id), group->line);
	else if (!group || !group->types)
		gap(c, p, ev->line, "parent-missing",
		    "%s 0x%llx has the parentGroup 0x%llx, which is not in the file",
		    etype_names[ev->type], ULL(ev->id), ULL(ev->group));
}

static void rule_step(struct check *c, const struct proc *p, const struct event *ev)
{
	const struct event *op = ev->parent ? event_find(p, ev->parent, ev->pid) : NULL;
	bool stopped = op && !((ev->flags | op->flags) & EV_UNFINISHED);

	if (ev->type != ET_PROXY_STEP || !(ev->flags & EV_SEEN) || c->compat || !op ||
	    !(op->flags & EV_SEEN) || op->type != ET_PROXY_OP)
		return;
	if (ev->step >= op->steps)
		find_at(c, FIND_ERROR, ev->line, "step-range",
			"step %llu of a ProxyOp of %llu steps (0x%llx, line %u)", ULL(ev->step),
			ULL(op->steps), ULL(op->id), op->line);
	if (ev->start < op->start || (stopped && ev->stop > op->stop))
		find_at(c, FIND_ERROR, ev->line, "step-time",
			"ProxyStep 0x%llx from %s to %s is not within its ProxyOp, from %s to %s "
			"(line %u)",
			ULL(ev->id), us(ev->start), stopped ? us(ev->stop) : "its end",
			us(op->start), stopped ? us(op->stop) : "its end", op->line);
	if (((ev->flags & EV_HAS_OP) && (ev->channel != op->channel || ev->peer != op->peer)) ||
	    ((ev->flags & EV_HAS_DIR) && (ev->flags & EV_IS_SEND) != (op->flags & EV_IS_SEND)))
		find_at(c, FIND_ERROR, ev->line, "step-op",
			"channel, peer or isSend differ from those of its ProxyOp (0x%llx, line "
			"%u)",
			ULL(op->id), op->line);
	if ((ev->flags & EV_PXN) != (op->flags & EV_PXN))
		find_at(c, FIND_ERROR, ev->line, "step-op",
			"isPxn differs from that of its ProxyOp (0x%llx, line %u)", ULL(op->id),
			op->line);
}

static void rule_steps(struct check *c, const struct proc *p, const struct event *ev)
{
	(void)p;
	if ((ev->flags & EV_SEEN) && ev->type == ET_PROXY_OP && ev->nr_steps > ev->steps &&
	    !c->compat)
		find_at(c, FIND_ERROR, ev->line, "step-count",
			"ProxyOp 0x%llx of %llu steps has %llu ProxySteps", ULL(ev->id),
			ULL(ev->steps), ULL(ev->nr_steps));
}

static void rule_exec(struct check *c, const struct proc *p, const struct event *ev)
{
	bool kernel = ev->exec_source == EXEC_KERNEL;
	int64_t end = kernel ? ev->k_end : ev->proxy_end;
	int64_t last = kernel ? ev->k_end : ev->proxy_max;
	/* A child that came later than the writer waits is no mistake of the writer. */
	enum level level = ev->flags & EV_LATE_CHILD ? FIND_WARNING : FIND_ERROR;

	if (!(ev->flags & EV_SEEN) || ev->exec_source == EXEC_NONE)
		return;
	if (ev->exec_source == EXEC_ENQUEUE && (ev->proxy_max || ev->k_end))
		find_at(c, level, ev->line, "exec-source",
			"exec.source is enqueue but a child of %s 0x%llx stopped at %s",
			etype_names[ev->type], ULL(ev->id),
			us(ev->proxy_max > ev->k_end ? ev->proxy_max : ev->k_end));
	if (ev->exec_source == EXEC_ENQUEUE)
		return;
	if (!last)
		gap(c, p, ev->line, "exec-source",
		    "exec.source is %s but %s 0x%llx has no such child that stopped",
		    kernel ? "kernel" : "proxy", etype_names[ev->type], ULL(ev->id));
	else if (ev->exec_stop < end)
		find_at(c, level, ev->line, "exec-children",
			"exec.stop of %s 0x%llx is %s, but a child stopped at %s",
			etype_names[ev->type], ULL(ev->id), us(ev->exec_stop), us(end));
	else if (!kernel && ev->exec_stop > last)
		/* The line of the last one may be among what is lost. */
		find_at(c, p->nr_lost ? FIND_WARNING : level, ev->line, "exec-children",
			"exec.stop of %s 0x%llx is %s, but its last child stopped at %s",
			etype_names[ev->type], ULL(ev->id), us(ev->exec_stop), us(last));
}

/* What an operation moved, its ProxyOps moved, and what these did, their steps. */
static void rule_net_sum(struct check *c, const struct proc *p, const struct event *ev)
{
	static const char *const keys[] = {"txBytes", "rxBytes"};
	enum level level = ev->flags & EV_LATE_CHILD || p->nr_lost ? FIND_WARNING : FIND_ERROR;
	int dir;

	if (p->broken)
		return;
	for (dir = 0; dir < 2; dir++)
		if (ev->flags & EV_HAS_BYTES && ev->child_bytes[dir] > ev->bytes[dir])
			find_at(c, level, ev->line, "net-sum",
				"net.%s of %s 0x%llx is %llu, its children have %llu", keys[dir],
				etype_names[ev->type], ULL(ev->id), ULL(ev->bytes[dir]),
				ULL(ev->child_bytes[dir]));
}

/* Rules of an event with all that belongs to it, run at the end of its process. */
static void (*const event_rules[])(struct check *c, const struct proc *p,
				   const struct event *ev) = {
	rule_states, rule_open,	 rule_parent, rule_group,
	rule_step,   rule_steps, rule_exec,   rule_net_sum,
};

static void max_of(int64_t *max, int64_t val)
{
	if (val > *max)
		*max = val;
}

/* Hands what a child knows up to its parent: steps to ProxyOps first, these to Coll and P2p. */
static void sum_children(struct proc *p, enum etype type)
{
	struct event *parent, *ev;
	uint32_t i;

	for (i = 0; i < p->nr; i++) {
		ev = &p->events[i];
		if (!(ev->flags & EV_SEEN) || ev->type != type || !ev->parent ||
		    ((ev->flags & EV_PXN) && type == ET_PROXY_OP))
			continue;
		parent = event_find(p, ev->parent, ev->pid);
		if (!parent || !(parent->flags & EV_SEEN))
			continue;
		if (ev->line > parent->line)
			parent->flags |= EV_LATE_CHILD;
		if (type == ET_PROXY_STEP)
			parent->nr_steps++;
		parent->child_bytes[0] += ev->bytes[0];
		parent->child_bytes[1] += ev->bytes[1];
		if (type == ET_PROXY_OP && ev->proxy_max) {
			/* NCCL stops the ops of one batch together, the last step is the end */
			max_of(&parent->proxy_end, ev->proxy_max);
			max_of(&parent->proxy_max, ev->proxy_max);
		}
		if (ev->flags & EV_UNFINISHED)
			continue;
		/* Without steps its own stop counts; where they may be among what is lost, it may be too late. */
		if (type == ET_PROXY_OP && !ev->proxy_max && !p->nr_lost)
			max_of(&parent->proxy_end, ev->stop);
		if (type != ET_KERNEL_CH)
			max_of(&parent->proxy_max, ev->stop);
		else
			max_of(&parent->k_end, ev->k_end ? ev->k_end : ev->stop);
	}
}

/* ------------------------------------------------------------------ rules of a process */

static void rule_has_footer(struct check *c, const struct proc *p)
{
	if (p->header && !p->footer)
		find_at(c, FIND_WARNING, p->header_line, "footer-missing",
			"process %lld has no footer: it still runs, or its recording broke off",
			(long long)p->pid);
}

static void rule_net(struct check *c, const struct proc *p)
{
	if (p->footer)
		net_rules__end(c, &p->net, p->footer_line);
}

static void (*const process_rules[])(struct check *c, const struct proc *p) = {
	rule_has_footer,
	rule_net,
};

static void proc_reset(struct proc *p)
{
	free(p->events);
	free(p->index);
	free(p->slices);
	net_rules__free(&p->net);
	memset(p, 0, sizeof(*p));
}

void rules_end_process(struct check *c)
{
	struct proc *p = c->proc;
	uint32_t i;
	size_t k;

	sum_children(p, ET_PROXY_STEP);
	sum_children(p, ET_PROXY_OP);
	sum_children(p, ET_KERNEL_CH);
	for (i = 0; i < p->nr; i++)
		for (k = 0; k < ARRAY_SIZE(event_rules); k++)
			event_rules[k](c, p, &p->events[i]);
	net_rules__late(c, &p->net);
	for (k = 0; !c->compat && k < ARRAY_SIZE(process_rules); k++)
		process_rules[k](c, p);
	proc_reset(p);
}

static const char *kind_text(enum kind kind)
{
	return kind < NR_KINDS ? kind_names[kind] : "further";
}

/* Where in the file the record may stand. */
static void place_check(struct check *c, enum kind kind)
{
	struct proc *p = c->proc;

	/* also one of the same process: cat has put its next recording behind one that broke off */
	if (kind == KIND_HEADER) {
		rules_end_process(c);
		p->header = true;
		p->header_line = c->line;
	} else if (!p->any && !c->compat) {
		find(c, FIND_ERROR, "header-first",
		     "a %s record before any header (traces of the seed need --compat)",
		     kind_text(kind));
	} else if (p->footer && !p->after_footer) {
		find(c, FIND_ERROR, "footer-last", "a %s record after the footer in line %llu",
		     kind_text(kind), ULL(p->footer_line));
		p->after_footer = true;
	}
	p->any = true;
	if (kind != KIND_FOOTER)
		return;
	p->footer = true;
	p->footer_line = c->line;
}

void rules_record(struct check *c, const struct json_node *rec, enum kind kind, enum etype etype,
		  bool broken)
{
	size_t i;

	if (rec)
		place_check(c, kind);
	c->proc->broken |= broken;
	c->proc->net.unsure |= broken;
	c->proc->uncounted |= broken && (kind == KIND_OTHER || kind == KIND_LOST);
	for (i = 0; !broken && i < ARRAY_SIZE(record_rules); i++)
		if (record_rules[i].kind == kind)
			record_rules[i].rule(c, rec, etype);
	c->proc->counts[kind]++; /* KIND_OTHER is NR_KINDS: there is room for it */
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void rules_join_pxn(struct check *c, uint64_t *matched, uint64_t *unmatched)
{
	struct keys64 *anchors = &c->pxn->anchors, *wants = &c->pxn->wants;
	size_t i;

	*matched = *unmatched = 0;
	if (!wants->nr)
		return;
	if (anchors->nr)
		qsort(anchors->keys, anchors->nr, sizeof(*anchors->keys), cmp_u64);
	for (i = 0; i < wants->nr; i++) {
		if (anchors->nr && bsearch(&wants->keys[i], anchors->keys, anchors->nr,
					   sizeof(*anchors->keys), cmp_u64))
			++*matched;
		else
			++*unmatched;
	}
}

int rules_init(struct check *c)
{
	c->proc = calloc(1, sizeof(*c->proc));
	c->pxn = calloc(1, sizeof(*c->pxn));
	if (c->proc && c->pxn)
		return 0;
	rules_free(c);
	return -ENOMEM;
}

void rules_free(struct check *c)
{
	if (c->proc)
		proc_reset(c->proc);
	if (c->pxn) {
		free(c->pxn->anchors.keys);
		free(c->pxn->wants.keys);
	}
	free(c->proc);
	free(c->pxn);
	c->proc = NULL;
	c->pxn = NULL;
}
