// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records of traces into what an export is made of; see export.h. Nothing in them is trusted: what has a wrong type counts as
 * absent, what has no time is counted and told of, and what waits for a record that may never come is bounded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "export.h"
#include "lines.h"
#include "log.h"
#include "newer.h"
#include "seq.h"

#define PENDING_MAX  65536	 /* events of a process whose states have come */
#define STATES_BYTES (64u << 20) /* what all these take */
#define THREADS_MAX  65536
#define CPUS_MAX     4096

typedef const struct json_node *node_t;

/* States of an event that has not come. */
struct export_pending {
	uint64_t addr;
	struct export_state *first, **last;
	UT_hash_handle hh;
};

static const struct export_type types[] = {
	{"ncclProfileGroupApi", "GroupApi", EXPORT_THREAD, 0, false, false, false},
	{"ncclProfileCollApi", "CollApi", EXPORT_THREAD, 1, false, true, false},
	{"ncclProfileP2pApi", "P2pApi", EXPORT_THREAD, 1, false, true, false},
	{"ncclProfileKernelLaunch", "KernelLaunch", EXPORT_THREAD, 2, false, false, false},
	{"ncclProfileProxyCtrl", "ProxyCtrl", EXPORT_THREAD, 3, true, false, false},
	{"ncclProfileGroup", "Group", EXPORT_OPS, 2, false, false, false},
	{"ncclProfileColl", "Coll", EXPORT_OPS, 3, false, true, true},
	{"ncclProfileP2p", "P2p", EXPORT_OPS, 3, false, true, true},
	{"ncclProfileCeColl", "CeColl", EXPORT_OPS, 3, false, false, true},
	{"ncclProfileCeSync", "CeSync", EXPORT_OPS, 4, false, false, false},
	{"ncclProfileCeBatch", "CeBatch", EXPORT_OPS, 4, false, false, false},
	{"ncclProfileProxyOp", "ProxyOp", EXPORT_LINK, 4, false, true, true},
	{"ncclProfileProxyStep", "ProxyStep", EXPORT_STEPS, 5, true, false, true},
	{"ncclProfileNetPlugin", "NetPlugin", EXPORT_NET, 6, true, false, false},
	{"ncclProfileKernelCh", "KernelCh", EXPORT_GPU, 4, false, false, true},
	{"ncclProfileKernelPhase", "KernelPhase", EXPORT_GPU, 5, false, false, false},
	{"ProfilerLifecycle", "", EXPORT_THREAD, 0, false, false, false},
};
static const struct export_type cuda_type = {"cuptiActivity", "",    EXPORT_CUDA, 4,
					     false,	      false, false};
static const struct export_type other_type = {"event", "", EXPORT_THREAD, 3, false, false, false};

#define NTYPES	  (sizeof(types) / sizeof(types[0]))
#define LIFECYCLE (&types[NTYPES - 1])

/* ---- Values -------------------------------------------------------------------------------------- */

node_t rec_get(const struct export *x, node_t obj, const char *key)
{
	return jn_get(&x->doc, obj, key);
}

/* A point in time, as the export has it. */
bool rec_time(const struct export *x, node_t n, int64_t *ns)
{
	if (!jn_point(n, ns))
		return false;
	*ns += x->proc ? x->proc->offset : 0;
	return *ns >= 0;
}

int64_t rec_span(const struct export *x, node_t obj, const char *key)
{
	int64_t ns;

	return jn_point(rec_get(x, obj, key), &ns) ? ns : 0;
}

static int32_t get_int(const struct export *x, node_t obj, const char *key, int32_t none)
{
	return jn_i32(rec_get(x, obj, key), none);
}

static uint64_t get_addr(const struct export *x, node_t obj, const char *key)
{
	return jn_addr(rec_get(x, obj, key));
}

static bool get_bool(const struct export *x, node_t obj, const char *key)
{
	return jn_true(rec_get(x, obj, key));
}

/* A name for people: no control characters, cut where a character ends. */
static void get_name(char *to, size_t size, node_t n)
{
	size_t len = 0;

	if (n && n->kind == JSON_KIND_STR)
		len = n->len < size - 1 ? n->len : size - 1;
	while (len && n->len > len && ((unsigned char)n->s[len] & 0xc0) == 0x80)
		len--;
	if (len)
		memcpy(to, n->s, len);
	to[len] = '\0';
	while (len--)
		if ((unsigned char)to[len] < 0x20 || to[len] == 0x7f)
			to[len] = '?';
}

/* The thread as the node knows it. */
static int32_t get_tid(const struct export *x, node_t obj)
{
	return get_int(x, obj, "hostTid", get_int(x, obj, "tid", 0));
}

void export_skip(struct export *x, const char *why)
{
	if (!x->skipped++)
		snprintf(x->why, sizeof(x->why), "%s, line %" PRIu64 ": %s", x->path, x->line, why);
}

void export_beyond(struct export *x, const char *why)
{
	if (!x->beyond++)
		snprintf(x->why_beyond, sizeof(x->why_beyond), "%s, line %" PRIu64 ": %s", x->path,
			 x->line, why);
}

/* ---- Processes -------------------------------------------------------------------------------------- */

static char *name_of(node_t n)
{
	char name[256];

	get_name(name, sizeof(name), n);
	return strdup(name);
}

static bool new_proc(struct export *x)
{
	x->proc = calloc(1, sizeof(*x->proc));
	if (!x->proc) {
		x->err = -ENOMEM;
		return false;
	}
	x->proc->rank = -1;
	x->proc->when = COPIES_SPAN_NONE;
	x->procs++;
	return true;
}

/* Ids are the same wherever and with whatever else the process is exported, and others where its pid is used again. */
static void begin_proc(struct export *x, node_t boot, node_t started)
{
	struct export_proc *p = x->proc;
	int64_t started_ns;

	p->node = boot && boot->kind == JSON_KIND_STR
			  ? fnv_more(FNV_BEGIN, boot->s, boot->len)
			  : fnv_more(FNV_BEGIN, x->path, strlen(x->path));
	p->id = fnv_more(p->node, &p->pid, sizeof(p->pid));
	if (jn_time(started, true, &started_ns))
		p->id = fnv_more(p->id, &started_ns, sizeof(started_ns));
	if (!x->first_node)
		x->first_node = p->node;
	if (!p->host || !p->comm) {
		x->err = -ENOMEM;
		return;
	}
	if (x->fmt->proc)
		x->fmt->proc(x, p);
}

static void orphan_states(struct export *x);
static void write_logged(struct export *x, int64_t ts);

void export_end_proc(struct export *x)
{
	struct export_proc *p = x->proc;
	struct export_thread *t, *tmp;

	if (!p)
		return;
	if (p->logged)
		write_logged(x, p->logged->ts); /* there is nothing else */
	if (!x->err && x->fmt->args) {
		orphan_states(x);
		export_order__write(x, true);
	}
	if (!x->err && x->fmt->stop)
		HASH_ITER (hh, p->threads, t, tmp)
			if (t->running)
				x->fmt->stop(x, t, t->cpu, t->run_end, 0);
	if (!x->err && x->fmt->proc_end)
		x->fmt->proc_end(x, p);
	if (!x->err)
		x->err = copies__recorded(&x->copies, p->node, p->pid, &p->when, x->path);
	export_ports_end(x);
	export_proc_free(p);
	x->proc = NULL;
}

static void take_header(struct export *x, node_t rec)
{
	struct export_proc *p;

	export_end_proc(x);
	x->newer = x->newer || newer__warn(&x->doc, rec, x->path);
	if (!new_proc(x))
		return;
	p = x->proc;
	p->host = name_of(rec_get(x, rec, "host"));
	p->comm = name_of(rec_get(x, rec, "comm"));
	p->pid = get_int(x, rec, "hostPid", get_int(x, rec, "pid", 0));
	p->common = seq__of_header(&x->doc, rec);
	p->real = jn_offset(rec_get(x, rec_get(x, rec, "clock"), "realtimeOffset"), &p->offset);
	begin_proc(x, rec_get(x, rec, "bootId"), rec_get(x, rec, "startTime"));
}

/* Traces of other profilers have no header. */
static bool have_proc(struct export *x, node_t rec)
{
	node_t start = rec_get(x, rec, "start");

	if (x->proc)
		return true;
	if (!new_proc(x))
		return false;
	x->proc->host = strdup("");
	x->proc->comm = strdup("");
	x->proc->common = true;
	x->proc->pid = get_int(x, start ? start : rec, "pid", 0);
	begin_proc(x, NULL, NULL);
	return !x->err;
}

/* The latest time in a line: the process has come so far. */
static void move_to(struct export *x, int64_t ns)
{
	write_logged(x, ns);
	if (ns > x->proc->last)
		x->proc->last = ns;
}

/* ---- Where an event goes ---------------------------------------------------------------------------- */

static struct export_thread *thread_of(struct export *x, int32_t tid)
{
	struct export_proc *p = x->proc;
	struct export_thread *t;

	HASH_FIND(hh, p->threads, &tid, sizeof(tid), t);
	if (t || HASH_COUNT(p->threads) >= THREADS_MAX)
		return t;
	t = calloc(1, sizeof(*t));
	if (t) {
		t->tid = tid;
		HASH_ADD(hh, p->threads, tid, sizeof(tid), t);
	}
	if (!t || !HASH_ADDED(hh, t)) {
		free(t);
		x->err = -ENOMEM;
		return NULL;
	}
	return t;
}

static struct export_group *thread_group(struct export *x, int32_t tid)
{
	struct export_key key = {.kind = EXPORT_THREAD, .tid = tid};
	struct export_thread *t = thread_of(x, tid);

	if (t && *t->comm)
		return export_group_of(x, &key, NULL, "%s", t->comm);
	return export_group_of(x, &key, NULL, "thread %d", tid);
}

static struct export_group *process_group(struct export *x)
{
	struct export_key key = {.kind = EXPORT_PROCESS};

	return export_group_of(x, &key, NULL, "process %d", x->proc->pid);
}

/* ProxyOps of one channel, peer and direction follow each other but for a few; so do their steps. */
static struct export_group *link_group(struct export *x, node_t rec, int32_t tid,
				       enum export_kind kind)
{
	static const char *const what[] = {
		[EXPORT_LINK] = "", [EXPORT_STEPS] = " steps", [EXPORT_NET] = " network plugin"};
	node_t details = rec_get(x, rec, "details");
	struct export_key key = {.kind = EXPORT_LINK,
				 .tid = tid,
				 .rank = get_int(x, rec, "rank", -1),
				 .channel = get_int(x, details, "channel", -1),
				 .peer = get_int(x, details, "peer", -1),
				 .send = get_bool(x, details, "isSend")};
	struct export_group *parent = thread_group(x, tid);

	jn_u64(rec_get(x, rec, "commId"), &key.a);
	if (kind == EXPORT_NET) {
		key.kind = kind;
		return export_group_of(x, &key, parent, "network plugin");
	}
	parent = parent ? export_group_of(x, &key, parent, "channel %d %s %d", key.channel,
					  key.send ? "send to" : "receive from", key.peer)
			: NULL;
	if (kind == EXPORT_LINK || !parent)
		return parent;
	key.kind = kind;
	return export_group_of(x, &key, parent, "%s%s", parent->name, what[kind]);
}

static struct export_group *group_of(struct export *x, node_t rec, const struct export_type *type,
				     int32_t tid)
{
	node_t details = rec_get(x, rec, "details"), comm = rec_get(x, rec, "commId");
	struct export_key key = {.kind = type->kind, .rank = get_int(x, rec, "rank", -1)};
	char gpu[40] = "";

	switch (type->kind) {
	case EXPORT_OPS:
		jn_u64(comm, &key.a);
		return export_group_of(x, &key, NULL, "rank %d operations (0x%" PRIx64 ")",
				       key.rank, key.a);
	case EXPORT_LINK:
	case EXPORT_STEPS:
	case EXPORT_NET:
		return link_group(x, rec, tid, type->kind);
	case EXPORT_GPU:
		jn_u64(comm, &key.a);
		key.channel = get_int(x, details, "channel", -1);
		return export_group_of(x, &key, NULL, "rank %d GPU channel %d", key.rank,
				       key.channel);
	case EXPORT_CUDA:
		get_name(gpu, sizeof(gpu), rec_get(x, rec, "gpuUuid"));
		key.a = fnv_more(get_addr(x, rec, "stream"), gpu, strlen(gpu));
		return export_group_of(x, &key, NULL, "CUDA stream 0x%" PRIx64 " of GPU %s",
				       get_addr(x, rec, "stream"), gpu);
	default:
		return thread_group(x, tid);
	}
}

/* ---- Events ------------------------------------------------------------------------------------------ */

static const struct export_type *type_of(node_t type)
{
	size_t i;

	for (i = 0; i < NTYPES; i++)
		if (jn_is(type, types[i].name))
			return &types[i];
	return &other_type;
}

/* "Coll" as AllReduce RING/SIMPLE, "ProxyOp" as ProxyOp send: of few different words. */
static void name_event(const struct export *x, node_t rec, struct export_event *ev)
{
	node_t details = rec_get(x, rec, "details");
	char func[24], algo[16], proto[16];

	get_name(func, sizeof(func), rec_get(x, details, "func"));
	if (!*func)
		get_name(func, sizeof(func), rec_get(x, rec, "func"));
	get_name(algo, sizeof(algo), rec_get(x, details, "algo"));
	get_name(proto, sizeof(proto), rec_get(x, details, "proto"));
	if (ev->type == &cuda_type || ev->type == &other_type)
		get_name(ev->name, sizeof(ev->name),
			 rec_get(x, rec, ev->type == &cuda_type ? "name" : "type"));
	else if (ev->type->kind == EXPORT_LINK)
		snprintf(ev->name, sizeof(ev->name), "%s %s", ev->type->label,
			 get_bool(x, details, "isSend") ? "send" : "receive");
	else if (*func && *algo)
		snprintf(ev->name, sizeof(ev->name), "%s %s/%s", func, algo, proto);
	else if (*func && (ev->type->kind == EXPORT_OPS || ev->type == LIFECYCLE))
		snprintf(ev->name, sizeof(ev->name), "%s", func);
	else
		snprintf(ev->name, sizeof(ev->name), "%s%s%s", ev->type->label, *func ? " " : "",
			 func);
	if (!*ev->name)
		snprintf(ev->name, sizeof(ev->name), "event");
}

/* The parts that ranks have in a collective have this in common. */
static uint64_t joined_of(struct export *x, node_t rec, const struct export_event *ev)
{
	node_t details = rec_get(x, rec, "details");
	uint64_t comm = 0, seq, h;
	char func[24];

	get_name(func, sizeof(func), rec_get(x, details, "func"));
	if (strcmp(ev->type->label, "Coll") != 0 || !jn_u64(rec_get(x, rec, "commId"), &comm) ||
	    !comm || !jn_u64(rec_get(x, details, "seq"), &seq) ||
	    !seq__is_common(&x->doc, details, x->proc->common))
		return 0;
	h = fnv_more(FNV_BEGIN, &comm, sizeof(comm));
	h = fnv_more(h, &seq, sizeof(seq));
	h = fnv_more(h, func, strlen(func));
	return export_join_of(x, h, get_int(x, rec, "rank", -1), ev->start, ev->end);
}

/* Where the GPU's clock is known, a kernel is where it ran, not where the host saw it. */
static void gpu_times_of(struct export *x, node_t details, struct export_event *ev)
{
	int64_t start, stop;

	if (!rec_time(x, rec_get(x, details, "gpuStart"), &start) ||
	    !rec_time(x, rec_get(x, details, "gpuStop"), &stop) || stop < start)
		return;
	ev->start = start;
	ev->end = stop;
	ev->open = false;
}

/* Start, and when it really ended: `exec`, for what NCCL only enqueues. */
static bool times_of(struct export *x, node_t rec, struct export_event *ev)
{
	node_t stop = rec_get(x, rec, "stop"), exec = rec_get(x, rec, "exec");
	bool silent = jn_true(rec_get(x, rec, "silent"));
	int64_t end;

	if (!rec_time(x, rec_get(x, rec_get(x, rec, "start"), "ts"), &ev->start))
		return false;
	move_to(x, ev->start);
	ev->open = !silent && get_bool(x, rec, "unfinished");
	ev->end = silent ? ev->start : x->proc->last;
	if (rec_time(x, rec_get(x, stop, "ts"), &end)) {
		move_to(x, end);
		ev->open = false;
		ev->end = end;
	}
	if (rec_time(x, rec_get(x, exec, "stop"), &end)) {
		move_to(x, end);
		/* how far it had come, if some of its children had not ended */
		jn_u64(rec_get(x, exec, "openChildren"), &ev->open_children);
		ev->open = ev->open_children;
		ev->end = ev->open ? x->proc->last : end;
	}
	if (ev->end < ev->start)
		ev->end = ev->start;
	ev->host = ev->start;
	if (ev->type->kind == EXPORT_GPU)
		gpu_times_of(x, rec_get(x, rec, "details"), ev);
	return true;
}

/* About what it takes. */
static size_t size_of(const struct export_state *s)
{
	return sizeof(*s) + s->args_len + 32;
}

static struct export_state *take_pending(struct export *x, uint64_t addr)
{
	struct export_state *first, *s;
	struct export_pending *pe;

	HASH_FIND(hh, x->pending, &addr, sizeof(addr), pe);
	if (!pe)
		return NULL;
	first = pe->first;
	HASH_DEL(x->pending, pe);
	free(pe);
	for (s = first; s; s = s->next)
		x->states_held -= size_of(s);
	return first;
}

static void write_instant(struct export *x, struct export_group *g, const char *cat,
			  const char *name, int64_t ts, const char *args, size_t args_len)
{
	struct export_slice s = {.start = ts,
				 .end = ts,
				 .cat = cat,
				 .name = name,
				 .args = args,
				 .args_len = args_len};
	struct export_lane *l = g && x->fmt->instant ? export_lane_of(x, g, 0) : NULL;

	if (l)
		x->fmt->instant(x, l, &s);
}

#define LOGGED_MAX 256 /* that recorders give a process */

/*
 * What the kernel logged up to ten minutes before: a timeline that begins there would show nothing of the rest. It is put where the
 * process begins, and says itself when it was.
 */
static void write_logged(struct export *x, int64_t ts)
{
	struct export_state *s, *next, *list = x->proc->logged;

	x->proc->logged = NULL;
	x->proc->nlogged = 0;
	for (s = list; s; s = next) {
		next = s->next;
		if (!x->err)
			write_instant(x, process_group(x), "kmsg", s->name, ts, s->args,
				      s->args_len);
		free(s);
	}
}

static void hold_logged(struct export *x, const char *name, int64_t ts)
{
	struct export_state *s = malloc(sizeof(*s) + x->args.len);

	if (!s) {
		x->err = -ENOMEM;
		return;
	}
	*s = (struct export_state){.next = x->proc->logged, .ts = ts, .args_len = x->args.len};
	snprintf(s->name, sizeof(s->name), "%.47s", name);
	if (x->args.len)
		memcpy(s->args, x->args.s, x->args.len);
	x->proc->logged = s;
	x->proc->nlogged++;
}

/* All keys of a record, in the words of the format, until the next. */
static void encode(struct export *x, node_t rec)
{
	x->args.len = 0;
	x->fmt->args(x, rec, &x->args);
	if (x->args.failed)
		x->err = -ENOMEM;
}

/* What people know the process by. @of: so many ranks has the communicator, if the record says so; else 0. */
static void name_rank(struct export_proc *p, int32_t rank, int32_t of)
{
	if (rank < 0 || (p->rank >= 0 && of <= p->of))
		return;
	p->rank = rank;
	p->of = of;
}

static void add_event(struct export *x, node_t rec, const struct export_type *type)
{
	struct export_event *ev, head = {.type = type};
	int32_t tid = get_tid(x, rec_get(x, rec, "start"));

	if (!times_of(x, rec, &head)) {
		export_skip(x, "an event without a time");
		return;
	}
	head.addr = get_addr(x, rec, "eventAddr");
	head.parent = get_addr(x, rec, "parentObj");
	name_event(x, rec, &head);
	name_rank(x->proc, get_int(x, rec, "rank", -1),
		  get_int(x, rec_get(x, rec, "details"), "nranks", 0));
	if (x->fmt->lane) {
		head.group = group_of(x, rec, type, tid);
		if (!head.group) {
			export_beyond(x, "too many tracks: export the processes one by one");
			return;
		}
		head.joined = joined_of(x, rec, &head);
	}
	encode(x, rec);
	if (type == LIFECYCLE && x->fmt->instant) {
		x->events++;
		write_instant(x, head.group, type->name, head.name, head.start, x->args.s,
			      x->args.len);
		return;
	}
	ev = x->err ? NULL : malloc(sizeof(*ev) + x->args.len);
	if (!ev) {
		x->err = -ENOMEM;
		return;
	}
	*ev = head;
	ev->args_len = x->args.len;
	if (x->args.len)
		memcpy(ev->args, x->args.s, x->args.len);
	ev->states = ev->addr ? take_pending(x, ev->addr) : NULL;
	export_order__add(x, ev);
	export_order__write(x, false);
}

/* ---- States ------------------------------------------------------------------------------------------- */

/* Its event was never seen, or has not come for long. */
static void orphan(struct export *x, struct export_pending *pe)
{
	struct export_state *s, *next;

	HASH_DEL(x->pending, pe);
	for (s = pe->first; s; s = next) {
		next = s->next;
		write_instant(x, process_group(x), "state", s->name, s->ts, s->args, s->args_len);
		x->states_held -= size_of(s);
		free(s);
	}
	free(pe);
}

static void orphan_states(struct export *x)
{
	while (x->pending)
		orphan(x, x->pending);
}

static struct export_pending *pending_of(struct export *x, uint64_t addr)
{
	struct export_pending *pe;

	HASH_FIND(hh, x->pending, &addr, sizeof(addr), pe);
	if (pe)
		return pe;
	if (HASH_COUNT(x->pending) >= PENDING_MAX)
		orphan(x, x->pending);
	pe = calloc(1, sizeof(*pe));
	if (pe) {
		pe->addr = addr;
		pe->last = &pe->first;
		HASH_ADD(hh, x->pending, addr, sizeof(pe->addr), pe);
	}
	if (!pe || !HASH_ADDED(hh, pe)) {
		free(pe);
		x->err = -ENOMEM;
		return NULL;
	}
	return pe;
}

static void take_state(struct export *x, node_t rec)
{
	uint64_t addr = get_addr(x, rec, "eventAddr");
	struct export_state *s;
	struct export_pending *pe;
	int64_t ts;

	if (!rec_time(x, rec_get(x, rec, "ts"), &ts)) {
		export_skip(x, "a state without a time");
		return;
	}
	move_to(x, ts);
	x->states++;
	encode(x, rec);
	pe = pending_of(x, addr);
	s = pe ? calloc(1, sizeof(*s) + x->args.len) : NULL;
	if (!s) {
		x->err = -ENOMEM;
		return;
	}
	s->ts = ts;
	get_name(s->name, sizeof(s->name), rec_get(x, rec, "name"));
	s->args_len = x->args.len;
	if (x->args.len)
		memcpy(s->args, x->args.s, x->args.len);
	*pe->last = s;
	pe->last = &s->next;
	x->states_held += size_of(s);
	while (x->states_held > STATES_BYTES)
		orphan(x, x->pending);
}

/* ---- Threads, and what the scheduler did to them -------------------------------------------------------- */

static void take_thread(struct export *x, node_t rec)
{
	struct export_group *g;
	struct export_thread *t = thread_of(x, get_tid(x, rec));

	if (!t || !x->fmt->lane)
		return;
	get_name(t->comm, sizeof(t->comm), rec_get(x, rec, "comm"));
	g = thread_group(x, t->tid);
	if (!g || !*t->comm)
		return;
	snprintf(g->name, sizeof(g->name), "%s", t->comm);
	if (g->nlanes)
		x->fmt->lane(x, g->lanes[0]);
	else
		export_lane_of(x, g, 0);
}

/* The kernel's: 0 runnable, 1 asleep, 2 asleep and not to be disturbed. */
static uint32_t task_state(const struct export *x, node_t rec)
{
	node_t why = rec_get(x, rec, "why");

	if (jn_is(rec_get(x, rec, "state"), "blocked"))
		return jn_is(why, "io") || jn_is(why, "pagefault") ? 2 : 1;
	return 0;
}

/*
 * Switches and wake-ups, of which slices are made. What ran before and after on that CPU is not known; it is drawn as idle, by
 * end of run 1 ns before the next may begin, so that nothing depends on the order of files.
 */
static void take_switch(struct export *x, node_t rec, struct export_thread *t, int64_t ts,
			int64_t end)
{
	int32_t cpu = get_int(x, rec, "cpu", -1);
	node_t state = rec_get(x, rec, "state");

	if (t->running) {
		x->fmt->stop(x, t, t->cpu, t->run_end,
			     ts == t->run_end + 1 ? task_state(x, rec) : 0);
		t->running = false;
	}
	if (cpu < 0 || cpu >= CPUS_MAX)
		return;
	if (jn_is(state, "runq") && !get_bool(x, rec, "preempted")) {
		x->fmt->wake(x, t, (uint32_t)cpu, ts);
	} else if (jn_is(state, "run") && end > ts) {
		x->fmt->run(x, t, (uint32_t)cpu, ts);
		t->running = true;
		t->cpu = (uint32_t)cpu;
		t->run_end = end - 1;
	}
}

static void take_slice(struct export *x, node_t rec)
{
	struct export_key key = {.kind = EXPORT_SCHED, .tid = get_tid(x, rec)};
	struct export_thread *t = thread_of(x, key.tid);
	struct export_group *g = thread_group(x, key.tid);
	struct export_slice s = {.cat = "slice"};
	char name[64], why[40];

	if (!rec_time(x, rec_get(x, rec, "ts"), &s.start)) {
		export_skip(x, "a slice without a time");
		return;
	}
	s.end = s.start + rec_span(x, rec, "dur");
	move_to(x, s.end);
	g = g ? export_group_of(x, &key, g, "scheduler") : NULL;
	if (!g || !t) {
		export_beyond(x, "too many tracks: export the processes one by one");
		return;
	}
	get_name(name, sizeof(name), rec_get(x, rec, "state"));
	get_name(why, sizeof(why), rec_get(x, rec, "why"));
	if (*why)
		snprintf(name, sizeof(name), "%s", why);
	encode(x, rec);
	s.name = name;
	s.args = x->args.s;
	s.args_len = x->args.len;
	if (!export_put(x, g, &s, true))
		export_skip(x, "slices of a thread that overlap");
	if (x->fmt->run)
		take_switch(x, rec, t, s.start, s.end);
}

/* ---- Connections, and the rest ---------------------------------------------------------------------------- */

static void put_rate(struct export *x, struct export_group *g, node_t delta, const char *key,
		     const char *name, int64_t ts, int64_t since)
{
	uint64_t n;

	if (since >= 0 && ts > since && jn_u64(rec_get(x, delta, key), &n))
		x->fmt->counter(x, g, name, "B/s", ts, (double)n * 1e9 / (double)(ts - since));
}

static void take_flow(struct export *x, node_t rec)
{
	node_t flow = rec_get(x, rec, "flow"), delta = rec_get(x, rec, "delta");
	struct export_key key = {.kind = EXPORT_FLOW};
	struct export_group *g;
	struct export_lane *l;
	uint64_t n = 0;
	char name[100];
	int64_t ts, rtt;

	if (!rec_time(x, rec_get(x, rec, "ts"), &ts) || !flow || flow->kind != JSON_KIND_STR) {
		export_skip(x, "a flow without a time or a name");
		return;
	}
	move_to(x, ts);
	get_name(name, sizeof(name), flow);
	jn_u64(rec_get(x, rec, "netns"), &n);
	key.a = fnv_more(fnv_more(FNV_BEGIN, flow->s, flow->len), &n, sizeof(n));
	g = export_group_of(x, &key, NULL, "%s", name);
	l = g ? export_lane_of(x, g, 0) : NULL;
	if (!l) {
		export_beyond(x, "too many connections");
		return;
	}
	put_rate(x, g, delta, "txBytes", "sent", ts, l->last);
	put_rate(x, g, delta, "rxBytes", "received", ts, l->last);
	if (jn_time(rec_get(x, rec_get(x, rec, "tcp"), "rtt"), true, &rtt))
		x->fmt->counter(x, g, "rtt", "us", ts, (double)rtt / 1e3);
	if (jn_u64(rec_get(x, rec, "retrans"), &n))
		x->fmt->counter(x, g, "retransmissions", "segments", ts, (double)n);
	l->last = ts;
	get_name(name, sizeof(name), rec_get(x, rec, "why"));
	encode(x, rec);
	write_instant(x, g, "flow", *name ? name : "flow", ts, x->args.s, x->args.len);
}

/* What is no event: its end, if it has two. */
static bool time_of(const struct export *x, node_t rec, int64_t *ts)
{
	return rec_time(x, rec_get(x, rec, "ts"), ts) || rec_time(x, rec_get(x, rec, "to"), ts) ||
	       rec_time(x, rec_get(x, rec, "stop"), ts) ||
	       rec_time(x, rec_get(x, rec, "start"), ts);
}

/* The kernel logged it before there was a recording. */
static bool is_before(const struct export *x, node_t rec, const char *kind)
{
	return !strcmp(kind, "kmsg") && jn_true(rec_get(x, rec, "before"));
}

/* What is no event of NCCL is a point of the process, with all that it says. */
static void take_other(struct export *x, node_t rec, const char *kind)
{
	bool open = !strcmp(kind, "open");
	struct export_group *g =
		open ? thread_group(x, get_tid(x, rec_get(x, rec, "start"))) : process_group(x);
	char name[64], text[40];
	int64_t ts;
	bool past;

	if (!time_of(x, rec, &ts))
		ts = x->proc->last; /* the footer */
	past = is_before(x, rec, kind) && x->proc->nlogged < LOGGED_MAX;
	if (!past)
		move_to(x, ts);
	get_name(text, sizeof(text),
		 rec_get(x, rec,
			 open			   ? "eventType"
			 : !strcmp(kind, "drop")   ? "reason"
			 : !strcmp(kind, "signal") ? "signal"
			 : !strcmp(kind, "kmsg")   ? "text"
			 : !strcmp(kind, "lost")   ? "cause"
			 : !strcmp(kind, "thread") ? "comm"
						   : ""));
	snprintf(name, sizeof(name), "%.20s%s%s", kind, *text ? " " : "", text);
	encode(x, rec);
	if (past)
		hold_logged(x, name, ts);
	else
		write_instant(x, g, kind, name, ts, x->args.s, x->args.len);
	if (!strcmp(kind, "node"))
		export_ports(x, rec);
	if (!strcmp(kind, "gpu"))
		export_gpu(x, rec, ts);
}

/* ---- Records ---------------------------------------------------------------------------------------------- */

static void draw_context(struct export *x, node_t rec, const char *kind)
{
	if (!*kind)
		return;
	if (!strcmp(kind, "thread"))
		take_thread(x, rec);
	if (!strcmp(kind, "slice"))
		take_slice(x, rec);
	else if (!strcmp(kind, "flow"))
		take_flow(x, rec);
	else
		take_other(x, rec, kind);
}

/* Where there are no tracks it only tells how far the process has come. */
static void take_context(struct export *x, node_t rec, const char *kind)
{
	int64_t ts;

	x->others++;
	if (x->fmt->lane)
		draw_context(x, rec, kind);
	else if (!is_before(x, rec, kind) && time_of(x, rec, &ts))
		move_to(x, ts + rec_span(x, rec, "dur"));
}

static void take_tracked(struct export *x, node_t rec, node_t kind)
{
	char name[32];

	get_name(name, sizeof(name), kind);
	if (!strcmp(name, "header")) {
		take_header(x, rec);
		return;
	}
	if (!have_proc(x, rec))
		return;
	if (!kind || !strcmp(name, "event"))
		add_event(x, rec, type_of(rec_get(x, rec, "type")));
	else if (!strcmp(name, "state"))
		take_state(x, rec);
	else if (!strcmp(name, "cuptiActivity"))
		add_event(x, rec, &cuda_type);
	else
		take_context(x, rec, name);
}

/* When it was recorded: of events, which alone have a type. */
static void note_time(struct export *x, node_t rec)
{
	int64_t stop;

	if (x->proc && rec_get(x, rec, "type") &&
	    rec_time(x, rec_get(x, rec_get(x, rec, "stop"), "ts"), &stop))
		copies__extend(&x->proc->when, stop);
}

void export_record(struct export *x, node_t rec)
{
	node_t kind = rec_get(x, rec, "recordType");

	if (rec->kind != JSON_KIND_OBJ || (kind && kind->kind != JSON_KIND_STR) ||
	    (!kind && !rec_get(x, rec, "type"))) {
		export_skip(x, "not a record of a trace");
		return;
	}
	if (x->fmt->record) {
		if (jn_is(kind, "header"))
			take_header(x, rec);
		else if (!have_proc(x, rec))
			return;
		x->fmt->record(x, rec);
	} else {
		take_tracked(x, rec, kind);
	}
	note_time(x, rec);
	export_flush(x, false);
}

void export_records_free(struct export *x)
{
	struct export_state *s;
	struct export_pending *pe;

	while (x->pending) {
		pe = x->pending;
		HASH_DEL(x->pending, pe);
		while ((s = pe->first)) {
			pe->first = s->next;
			free(s);
		}
		free(pe);
	}
	HASH_FREE_ALL(x->seen);
	export_proc_free(x->proc);
	x->proc = NULL;
	xbuf__free(&x->args);
}
