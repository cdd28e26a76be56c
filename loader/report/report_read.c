// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lines of a process into parts of operations; see report.h. Children come before their operation, so their figures
 * are kept by its id until then. Nothing in a line is trusted: what has a wrong type counts as
 * absent, spans are bounded so that sums cannot overflow, and tables forget (recent.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "fnv.h"
#include "lines.h"
#include "log.h"
#include "nccl_names.h"
#include "nccl_profiler.h"
#include "newer.h"
#include "recent.h"
#include "report_priv.h"
#include "seq.h"
#include "streams.h"

#define KEEP	  65536 /* children of operations, of steps: of each kind in a process */
#define KEEP_OPS  1024	/* operations of traces that do not tell when they ended; open ones */
#define RANKS_MAX (1 << 24)
#define SETTLING  64
#define GROUP_MAX (KEEP_OPS / 2) /* that wait together; open ones have the rest */

/* A step's time in some of its states: from when it first was in one to when it last was, and whether it still is. */
struct stretch {
	int64_t from, to;
	bool in;
};

/* Of a ProxyStep that is under way. */
struct step {
	uint64_t addr;
	struct stretch gpu;  /* waits for the GPU */
	struct stretch recv; /* for data */
	UT_hash_handle hh;
};

/* Steps of a ProxyOp that is under way. */
struct steps {
	uint64_t addr;
	int64_t loss, maybe, gpu;
	int64_t last;	  /* when its last step but one stopped */
	int64_t received; /* when one last ended that waited for data */
	int64_t waited;	  /* such waits of all steps that ended */
	uint64_t op;	 /* of a ProxyOp that receives and has not ended: its operation's address */
	int64_t told_to; /* and up to when it is known what its open steps wait for */
	struct report_receiving still; /* what that operation has of it */
	int64_t recv, stall;	  /* such waits of steps without a flow: all of them, the longest */
	int64_t gpu_from, gpu_to; /* the first wait of `gpu` */
	UT_hash_handle hh;
};

/* ProxyOps of an operation that is under way. */
struct links {
	uint64_t addr;
	uint32_t n;
	bool open; /* one of them never ended */
	struct report_receiving over,
		still; /* those that ended; and those that did not, each as told last */
	struct report_kernel kernel; /* the first of the operation's */
	struct report_link link[REPORT_LINKS];
	UT_hash_handle hh;
};

/* A Recv that has been called. */
struct call {
	uint64_t addr;
	int64_t start;
	UT_hash_handle hh;
};

/* An operation whose line has come, but not its end; or that was told as open. */
struct waiting {
	uint64_t addr;
	struct report_op_info info;
	struct report_part *part; /* owned */
	bool open;
	bool timed; /* its end is known, if none of its children turns out to have none */
	UT_hash_handle hh;
};

struct report_reader {
	const struct reading *all;
	struct report *r;
	struct json_doc *doc;
	const char *path;
	struct report_proc *proc;
	struct copies_trace trace;
	struct copies_span when;
	struct step *steps;
	struct steps *step_sums;
	struct links *links;
	struct call *calls;
	struct waiting *waiting, *last; /* last: the last one of these that came */
	int64_t settles;		/* when the first of these does */
	uint64_t begun; /* a group that is too large to wait together: part of it is given */
	int64_t now;
	bool no_data; /* the kernel tells of reads that find nothing */
	bool common;  /* seq of its collectives, as far as its header tells: seq.h */
	bool has_asked;
	uint32_t asked; /* by its header: event mask that was asked for, and may be had */
};

/* ---- Values -------------------------------------------------------------------------------------- */

typedef const struct json_node *node_t;

static node_t get(const struct report_reader *rd, node_t obj, const char *key)
{
	return jn_get(rd->doc, obj, key);
}

static bool get_point(const struct report_reader *rd, node_t obj, const char *key, int64_t *ns)
{
	return jn_point(get(rd, obj, key), ns);
}

static int64_t get_span(const struct report_reader *rd, node_t obj, const char *key)
{
	int64_t ns;

	if (!jn_time(get(rd, obj, key), true, &ns) || ns < 0)
		return 0;
	return ns < REPORT_SPAN_MAX ? ns : REPORT_SPAN_MAX;
}

static uint64_t get_num(const struct report_reader *rd, node_t obj, const char *key)
{
	uint64_t v;

	return jn_u64(get(rd, obj, key), &v) ? v : 0;
}

static uint32_t get_count(const struct report_reader *rd, node_t obj, const char *key)
{
	uint64_t v = get_num(rd, obj, key);

	return v < 1u << 30 ? (uint32_t)v : 1u << 30;
}

static int32_t get_int(const struct report_reader *rd, node_t obj, const char *key, int32_t none)
{
	return jn_i32(get(rd, obj, key), none);
}

/* Of a communicator; -1: none that could be. */
static int32_t get_rank(const struct report_reader *rd, node_t obj, const char *key)
{
	int32_t rank = get_int(rd, obj, key, -1);

	return rank >= 0 && rank < RANKS_MAX ? rank : -1;
}

static uint64_t get_addr(const struct report_reader *rd, node_t obj, const char *key)
{
	return jn_addr(get(rd, obj, key));
}

static bool get_bool(const struct report_reader *rd, node_t obj, const char *key)
{
	return jn_true(get(rd, obj, key));
}

static uint32_t get_name(const struct report_reader *rd, node_t obj, const char *key)
{
	node_t n = get(rd, obj, key);

	return n && n->kind == JSON_KIND_STR ? names__get(rd->r->names, n->s, n->len) : 0;
}

static node_t child(const struct report_reader *rd, node_t n)
{
	return n && n->first && (n->kind == JSON_KIND_ARR || n->kind == JSON_KIND_OBJ)
		       ? &rd->doc->nodes[n->first]
		       : NULL;
}

static node_t sibling(const struct report_reader *rd, node_t n)
{
	return n->next ? &rd->doc->nodes[n->next] : NULL;
}

/* Whether there is room for another thing, of all processes together; it is taken. */
static bool take_room(struct report *r, size_t size)
{
	if (r->open_bytes + size > r->open_room)
		return false;
	r->open_bytes += size;
	return true;
}

/* How many a table of @n may have, to which one is to come: as many as it has, if it has to forget one for that. */
static uint32_t most_kept(struct report *r, uint32_t n, size_t size)
{
	if (n < KEEP && take_room(r, size))
		return n + 1;
	if (n) {
		r->totals.forgotten++;
		return n;
	}
	r->open_bytes += size; /* each may have one */
	return 1;
}

#define entry_of(head, type, address, make)                                                        \
	RECENT(head, type, address, make, most_kept(rd->r, HASH_COUNT(head), sizeof(type)),        \
	       &rd->r->err)

#define forget_entry(head, entry)                                                                  \
	do {                                                                                       \
		rd->r->open_bytes -= sizeof(*(entry));                                             \
		RECENT_FORGET(head, entry);                                                        \
	} while (0)

#define forget_entries(head)                                                                       \
	do {                                                                                       \
		rd->r->open_bytes -= HASH_COUNT(head) * sizeof(*(head));                           \
		HASH_FREE_ALL(head);                                                               \
	} while (0)

/* ---- Processes -------------------------------------------------------------------------------------- */

static struct report_proc *new_proc(struct report_reader *rd)
{
	struct report *r = rd->r;
	struct report_proc *p = calloc(1, sizeof(*p));

	if (!p) {
		r->err = -ENOMEM;
		return NULL;
	}
	p->index = r->nprocs++;
	p->rank = -1;
	p->pid = p->host_pid = -1;
	p->window = -1;
	p->key.started = -1;
	p->file = names__get(r->names, rd->path, strlen(rd->path));
	/* Without a header nothing says whose clock it is. */
	p->node = p->clock = fnv_more(FNV_BEGIN, rd->path, strlen(rd->path));
	p->first = INT64_MAX;
	p->self = p;
	*r->last_proc = p;
	r->last_proc = &p->next;
	return rd->proc = p;
}

static void give_part(struct report_reader *rd, const struct report_op_info *info,
		      struct report_part *part)
{
	struct report_comm *c = report_comm(rd->r, info->comm);

	part->stop = least(part->stop, part->start + REPORT_SPAN_MAX);
	rd->proc->self->has_ops = true; /* also where there is no room for it */
	if (c && rd->proc->rank < 0)	/* until report_member() knows better */
		rd->proc->rank = part->rank;
	if (c)
		report_add_part(rd->r, info, part);
	else
		free(part);
}

static size_t waiting_bytes(const struct report_part *part)
{
	return sizeof(struct waiting) + report_part_bytes(part);
}

/* What never ended tells for how long it has been so behind its operation. */
static void take_still(struct report_reader *rd, uint64_t addr, struct report_part *part)
{
	const struct links *ls = entry_of(rd->links, struct links, addr, false);

	if (ls && part->unfinished)
		report_receiving_add(&part->receiving, &ls->still);
}

static void unlink_waiting(struct report_reader *rd, struct waiting *w)
{
	rd->r->open_bytes -= waiting_bytes(w->part);
	if (w == rd->last)
		rd->last = w->hh.prev;
	HASH_DEL(rd->waiting, w);
}

static void give_waiting(struct report_reader *rd, struct waiting *w)
{
	const struct links *ls = entry_of(rd->links, struct links, w->addr, false);

	if (w->open) {
		w->part->unfinished = true;
		w->part->known = true;
		if (ls) /* ProxyOps may have ended since it was told */
			w->part->receiving = ls->over;
	}
	take_still(rd, w->addr, w->part);
	unlink_waiting(rd, w);
	give_part(rd, &w->info, w->part);
	free(w);
}

/* Nothing more comes from this process. */
static void end_proc(struct report_reader *rd)
{
	struct waiting *w, *tmp;

	HASH_ITER (hh, rd->waiting, w, tmp) {
		/* its recording breaks off before it moves */
		if (w->open && rd->proc && rd->proc->last > w->part->stop)
			w->part->beyond = least(rd->proc->last - w->part->stop, REPORT_SPAN_MAX);
		give_waiting(rd, w);
	}
	forget_entries(rd->steps);
	forget_entries(rd->step_sums);
	forget_entries(rd->links);
	forget_entries(rd->calls);
	if (rd->proc) {
		report_window_end(rd->r, rd->proc);
		report_gpus_told(rd->r, rd->proc);
	}
	if (rd->proc && rd->proc->header &&
	    copies__recorded(&rd->r->copies, rd->proc->node, rd->proc->host_pid, &rd->when,
			     rd->path))
		rd->r->err = -ENOMEM;
	rd->when = COPIES_SPAN_NONE;
	rd->proc = NULL;
	rd->begun = 0;
}

/* Times may have been moved to another node's clock, by messages: then they compare with that one's, too. */
static void take_clock(struct report_reader *rd, node_t clock)
{
	node_t merged = get(rd, clock, "merged"), boot = get(rd, merged, "bootId");
	struct report_proc *p = rd->proc;

	jn_offset(get(rd, clock, "realtimeOffset"), &p->offset);
	if (!boot || boot->kind != JSON_KIND_STR || !get(rd, merged, "error"))
		return;
	p->clock = fnv_more(FNV_BEGIN, boot->s, boot->len);
	p->clock_error = get_span(rd, merged, "error");
}

static uint64_t hash_list(const struct report_reader *rd, node_t list)
{
	uint64_t h = FNV_BEGIN;
	node_t n;

	for (n = child(rd, list); n; n = sibling(rd, n)) /* with the 0 between them */
		if (n->kind == JSON_KIND_STR)
			h = fnv_more(fnv_more(h, n->s, n->len), "", 1);
	return h;
}

/* Whether another recording of the process is in the input, as of another window (record --every). */
static void find_self(struct report_reader *rd, struct report_proc *p, uint64_t cmdline)
{
	struct report_proc *self;

	p->key.node = p->node;
	p->key.cmdline = cmdline;
	p->key.host_pid = p->host_pid;
	p->key.comm = p->comm;
	if (p->host_pid < 0)
		return;
	HASH_FIND(hh, rd->r->selves, &p->key, sizeof(p->key), self);
	if (self) {
		p->self = self;
		p->more = self->more;
		self->more = p;
		return;
	}
	HASH_ADD(hh, rd->r->selves, key, sizeof(p->key), p);
	if (!HASH_ADDED(hh, p))
		rd->r->err = -ENOMEM;
}

static bool leaves_out_ops(uint32_t mask)
{
	const uint32_t ops = ncclProfileColl | ncclProfileP2p;

	return (event_mask_closure(mask) & ops) != ops;
}

static void take_asked(struct report_proc *p, uint32_t mask)
{
	const uint32_t ops = ncclProfileColl | ncclProfileP2p | ncclProfileCeColl;

	p->no_ops |= !(event_mask_closure(mask) & ops);
	p->lacks_ops |= leaves_out_ops(mask);
}

static void take_features(struct report_reader *rd, node_t rec)
{
	node_t features = get(rd, rec, "features");
	uint32_t mask = get_count(rd, features, "maskAsked");
	struct report_proc *p = rd->proc;

	if (get(rd, rec, "maskCeiling"))
		mask &= (uint32_t)get_count(rd, rec, "maskCeiling");
	rd->has_asked = get(rd, features, "maskAsked"); /* older traces do not tell */
	rd->asked = mask;
	if (rd->has_asked)
		take_asked(p, mask);
	p->no_calls = get(rd, features, "blockedIn") && !get_bool(rd, features, "blockedIn");
	rd->no_data = get_bool(rd, features, "noData");
}

static void take_header(struct report_reader *rd, node_t rec)
{
	node_t boot = get(rd, rec, "bootId");
	struct report_proc *p;

	end_proc(rd);
	rd->r->newer = rd->r->newer || newer__warn(rd->doc, rec, rd->path);
	p = new_proc(rd);
	if (!p)
		return;
	p->header = true;
	p->host = get_name(rd, rec, "host");
	p->comm = get_name(rd, rec, "comm");
	p->cgroup = get_name(rd, rec, "cgroup");
	p->pid = get_int(rd, rec, "pid", -1);
	p->host_pid = get_int(rd, rec, "hostPid", p->pid);
	if (!get_point(rd, rec, "startTime", &p->key.started))
		p->key.started = -1;
	if (boot && boot->kind == JSON_KIND_STR)
		p->node = p->clock = fnv_more(FNV_BEGIN, boot->s, boot->len);
	take_features(rd, rec);
	rd->common = seq__of_header(rd->doc, rec);
	take_clock(rd, get(rd, rec, "clock"));
	find_self(rd, p, hash_list(rd, get(rd, rec, "cmdline")));
}

static int64_t settles(const struct waiting *w)
{
	return w->part->stop + REPORT_SETTLED;
}

/*
 * The last one that came, if all of its group stays with it: a group is one operation, of which no part is to come when that has been
 * counted. Not where that would take what others need.
 */
static const struct waiting *last_of_group(const struct report_reader *rd, bool last)
{
	const struct waiting *w = rd->last;

	if (!w || !w->info.p2p || !w->info.group || (!w->timed && !w->open))
		return NULL;
	if (w->info.group == rd->begun || HASH_COUNT(rd->waiting) >= GROUP_MAX ||
	    rd->r->open_bytes >= rd->r->open_room / 2)
		return NULL;
	return last && settles(w) <= rd->proc->last ? NULL : w;
}

static bool is_of_group(const struct waiting *w, const struct waiting *of)
{
	return of && w->info.p2p && w->info.group == of->info.group;
}

/*
 * Those of whose children nothing bad can come any more. The @last one stays until another comes, and its group with it: it may be the one
 * that hangs, which its children tell at the end.
 */
static void give_settled(struct report_reader *rd, bool last)
{
	const struct waiting *group = last_of_group(rd, last);
	struct waiting *w, *tmp;

	rd->settles = INT64_MAX;
	HASH_ITER (hh, rd->waiting, w, tmp) {
		if (w->open || (!last && is_of_group(w, group)))
			continue;
		if (!w->timed || (!last && !w->hh.next))
			break;
		/* others may be behind it, but with each that comes is too often to look */
		if (is_of_group(w, group)) {
			rd->settles = settles(group);
			break;
		}
		if (settles(w) > rd->proc->last && HASH_COUNT(rd->waiting) < SETTLING) {
			rd->settles = settles(w);
			break;
		}
		if (rd->last && w != rd->last && is_of_group(w, rd->last))
			rd->begun = w->info.group;
		give_waiting(rd, w);
	}
}

/* The latest time in a line: the process has come so far. */
static void move_to(struct report_reader *rd, int64_t ns)
{
	struct report_proc *p = rd->proc;

	if (ns < p->first)
		p->first = ns;
	if (ns > p->last) {
		p->last = ns;
		rd->now = ns + p->offset;
		if (ns >= rd->settles)
			give_settled(rd, false);
	}
}

static void take_footer(struct report_reader *rd, node_t rec)
{
	struct report_proc *p = rd->proc;

	p->footer = true;
	p->end = get_name(rd, rec, "end");
	if (!get_point(rd, rec, "ts", &p->end_ns))
		p->end_ns = p->last;
	if (p->last >= p->self->ended_at) {
		p->self->ended_at = p->last;
		p->self->newest = p;
	}
	p->exit_code = get_int(rd, rec, "exitCode", 0);
	p->failed = p->exit_code || report_by_signal(rd->r->names, p->end);
	if (report_by_signal(rd->r->names, p->end))
		report_killed(p, true);
	p->oom = get_bool(rd, rec, "oom");
}

static void take_signal(struct report_reader *rd, node_t rec)
{
	node_t from = get(rd, rec, "from");
	struct report_signal s = {.nr = get_int(rd, rec, "nr", 0),
				  .code = get_int(rd, rec, "code", 0),
				  .from_pid = get_int(rd, from, "pid", -1),
				  .from_tid = get_int(rd, from, "tid", -1),
				  .from_uid = (uint32_t)get_num(rd, from, "uid"),
				  .name = get_name(rd, rec, "signal"),
				  .comm = get_name(rd, from, "comm"),
				  .handled = get_bool(rd, rec, "handled"),
				  .exiting = get_bool(rd, from, "exiting")};

	if (!get_point(rd, rec, "ts", &s.ts))
		return;
	move_to(rd, s.ts);
	report_note_signal(rd->proc, &s);
}

static void take_lost(struct report_reader *rd, node_t rec)
{
	uint32_t cause = get_name(rd, rec, "cause");
	uint64_t n = get_num(rd, rec, "n");
	struct lost_cause *l;

	n = n < UINT64_C(1) << 40 ? n : UINT64_C(1) << 40;
	rd->proc->lost += n;
	HASH_FIND(hh, rd->r->losses, &cause, sizeof(cause), l);
	if (!l && HASH_COUNT(rd->r->losses) < 64) {
		l = calloc(1, sizeof(*l));
		if (l) {
			l->name = cause;
			HASH_ADD(hh, rd->r->losses, name, sizeof(cause), l);
		}
		if (!l || !HASH_ADDED(hh, l)) {
			free(l);
			rd->r->err = -ENOMEM;
			return;
		}
	}
	if (l)
		l->n += n;
}

/* A file by name and filesystem, but where that says the same: "shards/0012.tar (nfs4)", "pipe". */
static uint32_t file_name(const struct report_reader *rd, node_t at)
{
	node_t file = get(rd, at, "file"), fs = get(rd, at, "fs");
	char text[192];
	bool has_fs = fs && fs->kind == JSON_KIND_STR && !jn_is(fs, "pipefs") &&
		      !jn_is(fs, "sockfs") && !jn_is(fs, "anon_inodefs");
	int n;

	if (!file || file->kind != JSON_KIND_STR)
		return 0;
	n = snprintf(text, sizeof(text), "%.*s%s%.*s%s", file->len < 127 ? (int)file->len : 127,
		     file->s, has_fs ? " (" : "", has_fs ? fs->len < 16 ? (int)fs->len : 16 : 0,
		     has_fs ? fs->s : "", has_fs ? ")" : "");
	return names__get(rd->r->names, text, (size_t)n);
}

#define STACK_SHOWN 3
#define SHOWN_MAX   60 /* bytes of a function's name */

/* The innermost of the kernel's functions, without what the compiler adds to their names: "anon_pipe_read < vfs_read < ksys_read". */
static uint32_t stack_name(const struct report_reader *rd, node_t rec)
{
	node_t f = child(rd, get(rd, rec, "stack"));
	char text[STACK_SHOWN * (SHOWN_MAX + 3) + 1];
	size_t len = 0, name;
	int n;

	for (n = 0; f && f->kind == JSON_KIND_STR && !jn_is(f, "?") && n < STACK_SHOWN;
	     f = sibling(rd, f), n++) {
		for (name = 0; name < f->len && name < SHOWN_MAX && f->s[name] != '.'; name++)
			;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", n ? " < " : "",
					(int)name, f->s);
	}
	return n ? names__get(rd->r->names, text, len) : 0;
}

/* What a thread is in when the recording ends, if it sleeps. */
static void take_last_sleep(const struct report_reader *rd, node_t rec, struct report_thread *t)
{
	int64_t stop, since, first;

	t->asleep = 0;
	t->why = t->file = t->stack = 0;
	if (!jn_is(get(rd, rec, "state"), "blocked") ||
	    !jn_time(get(rd, rec, "stop"), true, &stop) ||
	    !jn_time(get(rd, rec, "stateSince"), true, &since) || since >= stop)
		return;
	t->asleep = stop - since < REPORT_SPAN_MAX ? stop - since : REPORT_SPAN_MAX;
	t->all_asleep = jn_time(get(rd, rec, "since"), true, &first) && since <= first;
	t->why = get_name(rd, rec, "why");
	t->file = file_name(rd, rec);
	t->stack = stack_name(rd, rec);
}

static void take_thread(struct report_reader *rd, node_t rec)
{
	struct report_proc *p = rd->proc->self;
	uint32_t tid = get_count(rd, rec, "tid");
	struct report_thread *t;
	int64_t stop;

	if (get_point(rd, rec, "stop", &stop))
		rd->proc->gone = most(rd->proc->gone, stop);
	HASH_FIND(hh, p->threads, &tid, sizeof(tid), t);
	if (!t) {
		if (p->nthreads >= 512)
			return;
		t = calloc(1, sizeof(*t));
		if (t) {
			t->tid = tid;
			HASH_ADD(hh, p->threads, tid, sizeof(tid), t);
		}
		if (!t || !HASH_ADDED(hh, t)) {
			free(t);
			rd->r->err = -ENOMEM;
			return;
		}
		p->nthreads++;
	}
	t->host_tid = get_int(rd, rec, "hostTid", (int32_t)tid);
	t->comm = get_name(rd, rec, "comm");
	t->role = get_name(rd, rec, "role");
	t->on += get_span(rd, rec, "onCpu");
	t->runq += get_span(rd, rec, "runq");
	t->blocked += get_span(rd, rec, "blocked");
	t->unknown += get_span(rd, rec, "unknown");
	t->irq += get_span(rd, rec, "irq");
	t->throttled += get_span(rd, rec, "throttled");
	rd->proc->is_stopped |= jn_is(get(rd, rec, "why"), "stopped");
	rd->proc->is_frozen |= jn_is(get(rd, rec, "why"), "frozen");
	take_last_sleep(rd, rec, t);
}

/*
 * Only resets count here; what flows did is in the events. Of any connection of the process: after which an operation ended did no
 * harm, and of several the others follow from the first.
 */
static void take_flow(struct report_reader *rd, node_t rec)
{
	node_t why = get(rd, rec, "why");
	struct report_proc *p = rd->proc;
	int64_t ts;

	if (get_point(rd, rec, "ts", &ts))
		move_to(rd, ts);
	else
		return;
	if (!jn_is(why, "reset-in") && !jn_is(why, "reset-out"))
		return;
	if (p->reset_ns && p->reset_ns >= p->op_ended)
		return;
	p->reset_ns = ts;
	p->reset_flow = get_name(rd, rec, "flow");
	p->reset_why = get_name(rd, rec, "why");
	p->reset_rank = get_rank(rd, rec, "peerRank");
	p->reset_pid = get_int(rd, rec, "peerPid", -1);
	p->reset_host = get_name(rd, rec, "peerHost");
}

/* ---- sched and net ---------------------------------------------------------------------------------- */

static void take_who(const struct report_reader *rd, node_t list, const char *key,
		     struct report_who who[REPORT_WHO])
{
	uint32_t i = 0;
	node_t n;

	for (n = child(rd, list); n && i < REPORT_WHO; n = sibling(rd, n), i++) {
		who[i].name = get_name(rd, n, key);
		who[i].pid = get_int(rd, n, "pid", 0);
		who[i].ns = get_span(rd, n, "us");
		if (!strncmp(names__text(rd->r->names, who[i].name), "ksoftirqd/", 10))
			who[i].pid = REPORT_SOFTIRQ;
	}
}

/* Who ended long sleeps, and in which files these were. */
static void take_sleeps(const struct report_reader *rd, node_t obj, struct report_role *role)
{
	uint32_t i = 0;
	node_t n;

	for (n = child(rd, get(rd, obj, "wokenBy")); n && i < REPORT_SLEEPS;
	     n = sibling(rd, n), i++)
		role->waker[i] = (struct report_who){.name = get_name(rd, n, "comm"),
						     .pid = get_int(rd, n, "pid", 0),
						     .ns = get_span(rd, n, "us")};
	for (i = 0, n = child(rd, get(rd, obj, "files")); n && i < REPORT_SLEEPS;
	     n = sibling(rd, n), i++)
		role->file[i] =
			(struct report_who){.name = file_name(rd, n), .ns = get_span(rd, n, "us")};
}

static void take_role(const struct report_reader *rd, node_t obj, struct report_role *role)
{
	node_t cpu = child(rd, get(rd, obj, "cpus"));
	int64_t n;

	if (!obj)
		return;
	role->threads = get_count(rd, obj, "threads");
	role->cpu = cpu && !cpu->next && jn_i64(cpu, &n) && n >= 0 && n < 1 << 20 ? (int32_t)n : -1;
	role->on = get_span(rd, obj, "onCpu");
	role->runq = get_span(rd, obj, "runq");
	role->blocked = get_span(rd, obj, "blocked");
	role->unknown = get_span(rd, obj, "unknown");
	role->irq = get_span(rd, obj, "irq");
	role->throttled = get_span(rd, obj, "throttled");
	role->span = role->on + role->runq + role->blocked + role->unknown;
	take_who(rd, get(rd, obj, "behind"), "comm", role->behind);
	take_who(rd, get(rd, obj, "blockedIn"), "why", role->in);
	take_sleeps(rd, obj, role);
}

static void take_drops(const struct report_reader *rd, node_t list, struct report_link *l)
{
	node_t n;

	for (n = child(rd, list); n; n = sibling(rd, n)) {
		if (!l->drops)
			l->reason = get_name(rd, n, "reason");
		l->drops += get_count(rd, n, "n") & 0xffffff;
	}
}

static uint32_t port_name(const struct report_reader *rd, node_t port)
{
	node_t device = get(rd, port, "device");
	char text[96];
	int n;

	if (!device || device->kind != JSON_KIND_STR)
		return 0;
	n = snprintf(text, sizeof(text), "%.*s:%u", device->len < 64 ? (int)device->len : 64,
		     device->s, get_count(rd, port, "port"));
	return names__get(rd->r->names, text, (size_t)n);
}

/* What RDMA ports counted during an operation. */
static void take_moved(const struct report_reader *rd, node_t net,
		       struct report_moved moved[NR_SIGNS])
{
	enum rdma_sign sign;
	node_t port, c;
	uint64_t n;

	for (port = child(rd, get(rd, net, "rdma")); port; port = sibling(rd, port)) {
		for (c = child(rd, get(rd, port, "counters")); c; c = sibling(rd, c)) {
			sign = c->key ? rdma_sign_of(c->key, c->key_len) : NO_SIGN;
			if (sign == NO_SIGN || !jn_u64(c, &n) || n <= moved[sign].n)
				continue;
			moved[sign].n = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
			moved[sign].port = port_name(rd, port);
			moved[sign].counter = names__get(rd->r->names, c->key, c->key_len);
		}
	}
}

static void take_kmsg(struct report_reader *rd, node_t rec)
{
	struct report_kmsg k = {.node = rd->proc->node,
				.sign = get_name(rd, rec, "sign"),
				.level = get_count(rd, rec, "level")};
	node_t text = get(rd, rec, "text");
	size_t len;

	if (!get_point(rd, rec, "ts", &k.ts) || !text || text->kind != JSON_KIND_STR)
		return;
	len = text->len < sizeof(k.text) ? text->len : sizeof(k.text) - 1;
	memcpy(k.text, text->s, len);
	report_kmsg_add(rd->r, rd->proc, &k);
}

static void take_gpu_counts(const struct report_reader *rd, node_t rec, struct report_gpu_sample *s)
{
	node_t held = get(rd, rec, "held"), errors = get(rd, rec, "errors");
	enum gpu_value v;

	s->ns = least(get_span(rd, rec, "interval"), REPORT_SPAN_MAX);
	for (v = GPU_HELD_FIRST; held && v <= GPU_HELD_LAST; v++)
		s->held[v - GPU_HELD_FIRST] = least(get_span(rd, held, gpu_value_names[v]), s->ns);
	for (v = GPU_ERROR_FIRST; errors && v <= GPU_ERROR_LAST; v++)
		s->errors[v - GPU_ERROR_FIRST] = get_num(rd, errors, gpu_value_names[v]);
}

/* Its clock says nothing then. */
static bool has_nothing_to_do(const struct report_reader *rd, node_t rec)
{
	node_t reason;

	if (get(rd, rec, "util"))
		return !get_count(rd, rec, "util");
	for (reason = child(rd, get(rd, rec, "reasons")); reason; reason = sibling(rd, reason))
		if (jn_is(reason, "gpuIdle"))
			return true;
	return false;
}

/* What stays; one that is lost tells none of it. */
static void take_gpu_kind(const struct report_reader *rd, node_t rec, struct report_gpu *g)
{
	g->index = get_count(rd, rec, "index");
	if (get(rd, rec, "name"))
		g->name = get_name(rd, rec, "name");
	if (get(rd, rec, "pci"))
		g->pci = get_name(rd, rec, "pci");
	g->clock_max = most(g->clock_max, get_count(rd, rec, "smClockMax"));
	g->width_max = most(g->width_max, get_count(rd, rec, "pcieWidthMax"));
}

/* All processes that are on it tell of it. */
static void take_gpu(struct report_reader *rd, node_t rec)
{
	struct report_gpu_sample s = {
		.clock = has_nothing_to_do(rd, rec) ? 0 : get_count(rd, rec, "smClock"),
		.util = get(rd, rec, "util") ? (int64_t)get_count(rd, rec, "util") : -1,
		.temperature = get_count(rd, rec, "temperature"),
		.power = get_count(rd, rec, "power"),
		.width = get_count(rd, rec, "pcieWidth"),
		.lost = get_bool(rd, rec, "lost")};
	uint32_t uuid = get_name(rd, rec, "gpuUuid");
	struct report_gpu *g;

	if (!get_point(rd, rec, "ts", &s.to) || !uuid)
		return;
	g = report_gpu_of(rd->r, rd->proc, uuid);
	if (!g)
		return;
	take_gpu_kind(rd, rec, g);
	take_gpu_counts(rd, rec, &s);
	report_gpu_add(rd->r, rd->proc, g, &s);
}

/* What they counted all the time: all processes of a node tell of it, each in intervals of its own, and one of them counts. */
static void take_node(struct report_reader *rd, node_t rec)
{
	struct report_port *at;
	int64_t ts, from;
	node_t port, c;
	uint64_t n;

	if (!get_point(rd, rec, "ts", &ts))
		return;
	from = ts - get_span(rd, rec, "interval");
	for (port = child(rd, get(rd, rec, "rdma")); port; port = sibling(rd, port)) {
		at = report_port_of(rd->r, rd->proc, port_name(rd, port));
		if (!at || report_spans_have(&at->told, from, ts))
			continue;
		if (!report_spans_add(rd->r, &at->told, rd->proc->index, from, ts,
				      &rd->r->totals.ports_left))
			continue;
		for (c = child(rd, get(rd, port, "counters")); c; c = sibling(rd, c))
			if (c->key && jn_u64(c, &n))
				report_port_add(rd->r, at, c->key, c->key_len, n);
	}
}

/* The figures of one ProxyOp. */
static void take_net(const struct report_reader *rd, node_t net, struct report_link *l)
{
	node_t peer = get(rd, net, "peer");

	l->no_data = l->data_wait = get_span(rd, net, "noData");
	l->no_room = l->room_wait = get_span(rd, net, "noRoom");
	l->busy = get_span(rd, net, "busy");
	l->rwnd = get_span(rd, net, "rwndLimited");
	l->sndbuf = get_span(rd, net, "sndbufLimited");
	l->rtt = get_span(rd, net, "rtt");
	l->rtt_min = get_span(rd, net, "rttMin");
	l->retrans = get_count(rd, net, "retrans");
	l->lost = get_count(rd, net, "lost");
	l->dsack = get_count(rd, net, "dsack");
	l->ooo = get_count(rd, net, "rxOoo");
	l->peer_retrans = get_count(rd, peer, "retrans");
	l->peer_lost = get_count(rd, peer, "lost");
	l->peer_dsack = get_count(rd, peer, "dsack");
	take_drops(rd, get(rd, net, "drops"), l);
	l->flow = get_name(rd, net, "flow");
	l->tcp = l->flow;
}

/* ---- Children ---------------------------------------------------------------------------------------- */

/* It ends with its step, and what is before `after` is no part of it. ns of it. */
static int64_t stretch_span(struct stretch *s, int64_t after, int64_t stop)
{
	if (!s->from)
		return 0;
	s->to = s->in ? stop : least(s->to, stop);
	s->from = most(s->from, after);
	return most(s->to - s->from, 0);
}

/* It has ended, or is told again; an operation whose address came again has nothing of it. */
static void withdraw_still(struct report_reader *rd, struct steps *sums)
{
	struct links *ls = sums->op ? entry_of(rd->links, struct links, sums->op, false) : NULL;

	if (ls) {
		ls->still.ns = most(ls->still.ns - sums->still.ns, 0);
		ls->still.wait = most(ls->still.wait - sums->still.wait, 0);
	}
	sums->still = (struct report_receiving){.ns = 0};
}

/*
 * A ProxyOp that receives and has been under way for @ns. What its connection tells is of waits that data has ended; what its steps still
 * wait comes behind it.
 */
static void take_still_op(struct report_reader *rd, node_t rec, int64_t ns)
{
	node_t no_data = get(rd, get(rd, rec, "net"), "noData");
	uint64_t parent = get_addr(rd, rec, "parentObj");
	struct steps *sums =
		entry_of(rd->step_sums, struct steps, get_addr(rd, rec, "eventAddr"), true);
	struct links *ls = entry_of(rd->links, struct links, parent, true);

	if (!sums || !ls)
		return;
	withdraw_still(rd, sums);
	sums->op = parent;
	sums->told_to = sums->received;
	sums->still = (struct report_receiving){
		.ns = ns,
		.wait = no_data ? get_span(rd, get(rd, rec, "net"), "noData") : sums->waited};
	report_receiving_add(&ls->still, &sums->still);
}

/* A step that has not ended, and has waited for data up to @stop, if it was in that last. */
static void take_still_step(struct report_reader *rd, node_t rec, int64_t start, int64_t stop)
{
	const struct step *s =
		entry_of(rd->steps, struct step, get_addr(rd, rec, "eventAddr"), false);
	struct steps *sums =
		entry_of(rd->step_sums, struct steps, get_addr(rd, rec, "parentObj"), false);
	struct links *ls =
		sums && sums->op ? entry_of(rd->links, struct links, sums->op, false) : NULL;
	struct report_receiving more = {.ns = 0};
	struct stretch recv;

	if (!s || !ls)
		return;
	recv = s->recv; /* it may go on */
	more.wait = stretch_span(&recv, most(start, sums->told_to), stop);
	sums->told_to = most(sums->told_to, recv.to);
	report_receiving_add(&sums->still, &more);
	report_receiving_add(&ls->still, &more);
}

static void take_step(struct report_reader *rd, node_t rec, int64_t start, int64_t stop)
{
	node_t net = get(rd, rec, "net"), peer = get(rd, net, "peer");
	uint64_t addr = get_addr(rd, rec, "eventAddr");
	struct step *s = entry_of(rd->steps, struct step, addr, false);
	int64_t no_data = get_span(rd, net, "noData"), recv = 0;
	bool lost = net && (get_num(rd, net, "rxOoo") || get_num(rd, peer, "lost") ||
			    child(rd, get(rd, net, "drops")));
	bool maybe = net && get_num(rd, peer, "retrans");
	struct steps *sums;

	sums = entry_of(rd->step_sums, struct steps, get_addr(rd, rec, "parentObj"), true);
	if (!sums)
		return;
	if (s) {
		/* that it was posted ahead, while another one was at the network, is no wait */
		sums->gpu += stretch_span(&s->gpu, most(start, sums->last), stop);
		if (!sums->gpu_to && s->gpu.to > s->gpu.from) {
			sums->gpu_from = s->gpu.from;
			sums->gpu_to = s->gpu.to;
		}
		recv = stretch_span(&s->recv, most(start, sums->received), stop);
		sums->received = most(sums->received, s->recv.to);
		forget_entry(rd->steps, s);
	}
	sums->last = most(sums->last, stop);
	recv = least(recv, REPORT_SPAN_MAX);
	sums->waited = least(sums->waited + recv, REPORT_SPAN_MAX);
	if (!get(rd, net, "flow")) {
		sums->recv = least(sums->recv + recv, REPORT_SPAN_MAX);
		sums->stall = most(sums->stall, recv);
	} else if (recv && !rd->no_data && !get(rd, net, "noData")) {
		no_data = recv;
	}
	if (lost)
		sums->loss = least(sums->loss + no_data, REPORT_SPAN_MAX);
	else if (maybe)
		sums->maybe = least(sums->maybe + no_data, REPORT_SPAN_MAX);
}

/* A trace without `exec`: an operation lasts to the end of its last child. */
static void extend(struct report_reader *rd, uint64_t parent, int64_t stop)
{
	struct waiting *w;

	HASH_FIND(hh, rd->waiting, &parent, sizeof(parent), w);
	if (!w || w->open || w->timed || stop < w->part->start)
		return;
	w->part->stop = most(w->part->stop, stop);
	w->part->known = true;
}

/* A child that never ended, told after its operation. */
static void reopen(struct report_reader *rd, uint64_t parent)
{
	struct waiting *w;

	HASH_FIND(hh, rd->waiting, &parent, sizeof(parent), w);
	if (!w || w->open)
		return;
	w->part->unfinished = w->part->known = true;
	w->part->stop = most(rd->proc->last, w->part->start);
}

/* What its steps tell of a ProxyOp. */
static void take_sums(const struct steps *sums, struct report_link *l)
{
	l->loss_wait = most(0, sums->loss < l->dur ? sums->loss : l->dur);
	l->maybe_wait = most(0, sums->maybe < l->dur ? sums->maybe : l->dur);
	l->gpu = sums->gpu < l->dur ? sums->gpu : l->dur; /* steps overlap */
	l->recv = most(0, least(sums->recv, l->dur));
	l->stall = most(0, least(sums->stall, l->dur));
	l->gpu_n = sums->gpu_to != 0;
	l->gpu_from = (double)sums->gpu_from;
	l->gpu_to = (double)sums->gpu_to;
}

/* Of another process' operation, or of none: nothing is known of it. */
static bool is_foreign(const struct report_reader *rd, node_t rec)
{
	return get_bool(rd, rec, "isPxn") || get_bool(rd, rec, "silent");
}

static bool is_send(const struct report_reader *rd, node_t rec)
{
	return get_bool(rd, get(rd, rec, "details"), "isSend");
}

/* For how long it waited for data, as far as that has ended, or it has not. */
static void take_receive(struct report_reader *rd, node_t rec, const struct report_link *l,
			 int64_t waited, struct links *ls)
{
	bool told = get(rd, get(rd, rec, "net"), "noData");

	if (get_bool(rd, rec, "unfinished"))
		take_still_op(rd, rec, l->dur);
	else
		report_receiving_add(
			&ls->over, &(struct report_receiving){.ns = l->dur,
							      .wait = told ? l->no_data : waited});
}

static void take_proxy_op(struct report_reader *rd, node_t rec, int64_t start, int64_t stop)
{
	node_t details = get(rd, rec, "details"), net = get(rd, rec, "net");
	uint64_t parent = get_addr(rd, rec, "parentObj");
	struct report_link l = {.dur = stop > start ? least(stop - start, REPORT_SPAN_MAX) : 0};
	struct steps *sums =
		entry_of(rd->step_sums, struct steps, get_addr(rd, rec, "eventAddr"), false);
	bool open = get_bool(rd, rec, "unfinished");
	int64_t waited = 0;
	struct links *ls;

	if (sums) {
		take_sums(sums, &l);
		waited = sums->waited;
		if (!open) {
			withdraw_still(rd, sums);
			forget_entry(rd->step_sums, sums);
		}
	}
	if (is_foreign(rd, rec))
		return;
	extend(rd, parent, stop);
	if (open)
		reopen(rd, parent);
	ls = entry_of(rd->links, struct links, parent, true);
	if (!ls)
		return;
	ls->open |= open;
	if (net)
		take_net(rd, net, &l);
	if (!is_send(rd, rec))
		take_receive(rd, rec, &l, waited, ls);
	report_link_merge(report_link_to(ls->link, &ls->n, REPORT_LINKS,
					 get_int(rd, details, "peer", -1), is_send(rd, rec)),
			  &l);
}

static void take_kernel(struct report_reader *rd, node_t rec, int64_t stop)
{
	node_t details = get(rd, rec, "details");
	uint64_t parent = get_addr(rd, rec, "parentObj");
	struct report_kernel kernel = {.error = get_span(rd, details, "gpuError")};
	struct links *ls;

	extend(rd, parent, stop);
	if (!get_point(rd, details, "gpuStart", &kernel.at))
		return;
	ls = entry_of(rd->links, struct links, parent, true);
	if (ls)
		ls->kernel = report_first_kernel(ls->kernel, kernel);
}

static void stretch_state(struct stretch *s, bool in, int64_t ts)
{
	if (!in && !s->in)
		return;
	if (!s->from)
		s->from = ts;
	s->in = in;
	s->to = ts;
}

/* States of a ProxyStep in which it waits for the GPU or for data, and those in which it does not. */
static void take_state(struct report_reader *rd, node_t rec)
{
	uint64_t id = get_num(rd, rec, "id");
	bool gpu = id == 8 || id == 11 || id == 12, recv = id == 10;
	struct step *s;
	int64_t ts;

	if (!get_point(rd, rec, "ts", &ts))
		return;
	move_to(rd, ts);
	if (!gpu && id != 9 && id != 10 && id != 20)
		return;
	s = entry_of(rd->steps, struct step, get_addr(rd, rec, "eventAddr"), gpu || recv);
	if (!s)
		return;
	stretch_state(&s->gpu, gpu, ts);
	stretch_state(&s->recv, recv, ts);
}

/* ---- Operations ---------------------------------------------------------------------------------------- */

static uint64_t comm_of(const struct report_reader *rd, node_t rec)
{
	uint64_t hash = get_addr(rd, rec, "commHash");

	return hash ? hash : get_num(rd, rec, "commId");
}

static void take_info(const struct report_reader *rd, node_t rec, bool coll,
		      struct report_op_info *info)
{
	node_t details = get(rd, rec, "details"), seq = get(rd, details, "seq");
	node_t type = get(rd, details, "dtype");
	uint64_t size =
		type && type->kind == JSON_KIND_STR ? nccl_type_size(type->s, type->len) : 1;

	memset(info, 0, sizeof(*info));
	info->comm = comm_of(rd, rec);
	info->count = get_num(rd, details, "count");
	if (__builtin_mul_overflow(info->count, size, &info->bytes) || info->bytes >> 50)
		info->bytes = 0;
	info->func = get_name(rd, details, "func");
	info->algo = get_name(rd, details, "algo");
	info->proto = get_name(rd, details, "proto");
	info->counted = coll && jn_u64(seq, &info->seq);
	info->joined = info->counted && seq__is_common(rd->doc, details, rd->common);
	info->peer = get_rank(rd, details, "peer");
	info->send = jn_is(get(rd, details, "func"), "Send");
	info->p2p = !coll && info->peer >= 0 && get_rank(rd, rec, "rank") >= 0 &&
		    (info->send || jn_is(get(rd, details, "func"), "Recv"));
	info->group = get_addr(rd, details, "parentGroup");
	if (!info->group)
		info->group = get_addr(rd, rec, "parentObj");
}

/* What a graph replays was called once for all, before. */
static void take_call(struct report_reader *rd, node_t rec, int64_t start)
{
	node_t details = get(rd, rec, "details");
	uint64_t addr = get_addr(rd, rec, "eventAddr");
	struct call *c;

	if (!addr || !jn_is(get(rd, details, "func"), "Recv") ||
	    get_bool(rd, details, "graphCaptured"))
		return;
	c = entry_of(rd->calls, struct call, addr, true);
	if (c)
		c->start = start;
}

/* What a group has called is launched when it ends, or later, by a graph that it is captured in. */
static void take_group(struct report_reader *rd, node_t rec)
{
	rd->proc->self->launched |= get(rd, rec, "stop") && !get_bool(rd, rec, "unfinished") &&
				    !get_bool(rd, get(rd, rec, "details"), "graphCaptured");
}

/* When what began @start was called; @ended: nothing asks for that again. */
static int64_t call_of(struct report_reader *rd, node_t rec, int64_t start, bool ended)
{
	struct call *c = entry_of(rd->calls, struct call, get_addr(rd, rec, "parentObj"), false);

	if (!c)
		return start;
	start = least(start, c->start);
	if (ended)
		forget_entry(rd->calls, c);
	return start;
}

static struct report_part *new_part(struct report_reader *rd, node_t rec, uint64_t addr)
{
	struct links *ls = entry_of(rd->links, struct links, addr, false);
	node_t sched = get(rd, rec, "sched");
	uint32_t n = ls ? ls->n : 0;
	struct report_part *part = calloc(1, sizeof(*part) + n * sizeof(part->link[0]));

	if (!part) {
		rd->r->err = -ENOMEM;
		return NULL;
	}
	part->proc = rd->proc;
	part->gap = -1;
	part->rank = get_rank(rd, rec, "rank");
	part->gpu = get_name(rd, rec, "gpuUuid");
	part->tid = get_int(rd, get(rd, rec, "start"), "tid", 0);
	rd->proc->self->caller = (uint32_t)part->tid;
	part->loss_near = get_count(rd, rec, "lossNear");
	take_role(rd, get(rd, sched, "app"), &part->app);
	take_role(rd, get(rd, sched, "proxy"), &part->proxy);
	take_role(rd, get(rd, sched, "before"), &part->before);
	take_moved(rd, get(rd, rec, "net"), part->moved);
	if (ls) {
		part->kernel = ls->kernel;
		part->receiving = ls->over;
	}
	part->nlinks = n;
	if (n)
		memcpy(part->link, ls->link, n * sizeof(part->link[0]));
	return part;
}

/* Until its children tell when it ended, or the recording does. */
static void wait_on(struct report_reader *rd, uint64_t addr, const struct report_op_info *info,
		    struct report_part *part, bool open, bool timed)
{
	size_t size = waiting_bytes(part);
	struct waiting *w = NULL;

	if (HASH_COUNT(rd->waiting) >= KEEP_OPS)
		give_waiting(rd, rd->waiting);
	for (; !take_room(rd->r, size); rd->r->totals.forgotten++) {
		if (!rd->waiting) {
			rd->r->open_bytes += size; /* each may have one */
			break;
		}
		give_waiting(rd, rd->waiting);
	}
	w = calloc(1, sizeof(*w));
	if (w) {
		w->addr = addr;
		w->info = *info;
		w->part = part;
		w->open = open;
		w->timed = timed;
		HASH_ADD(hh, rd->waiting, addr, sizeof(addr), w);
	}
	if (!w || !HASH_ADDED(hh, w)) {
		free(w);
		free(part);
		rd->r->err = -ENOMEM;
		return;
	}
	rd->last = w;
}

/* What was told of it while it was open; an address may come again (the seed's), then that one is over. */
static struct waiting *told_open(struct report_reader *rd, uint64_t addr)
{
	struct waiting *w;

	HASH_FIND(hh, rd->waiting, &addr, sizeof(addr), w);
	if (!w || w->open)
		return w;
	give_waiting(rd, w);
	return NULL;
}

static void forget_open(struct report_reader *rd, struct waiting *w)
{
	unlink_waiting(rd, w);
	free(w->part);
	free(w);
}

static void forget_links(struct report_reader *rd, uint64_t addr)
{
	struct links *ls = entry_of(rd->links, struct links, addr, false);

	if (ls)
		forget_entry(rd->links, ls);
}

/* When it ended, by what tells so; where children never did it is open, even if NCCL has enqueued it. */
static void set_stop(struct report_reader *rd, node_t rec, struct report_part *part, int64_t stop)
{
	node_t exec = get(rd, rec, "exec");
	const struct links *ls =
		entry_of(rd->links, struct links, get_addr(rd, rec, "eventAddr"), false);

	part->unfinished = get_bool(rd, rec, "unfinished") || (ls && ls->open) ||
			   get_num(rd, exec, "openChildren");
	part->known = part->unfinished || (exec && !jn_is(get(rd, exec, "source"), "enqueue"));
	part->stop = most(part->start, stop);
	if (part->unfinished)
		part->stop = most(rd->proc->last, part->start);
	else if (exec && get_point(rd, exec, "stop", &stop))
		part->stop = most(part->start, stop);
}

static void take_op(struct report_reader *rd, node_t rec, bool coll, int64_t start, int64_t stop)
{
	uint64_t addr = get_addr(rd, rec, "eventAddr");
	struct waiting *w = told_open(rd, addr);
	struct report_op_info info;
	struct report_part *part;

	take_info(rd, rec, coll, &info);
	info.called = call_of(rd, rec, start, true);
	part = new_part(rd, rec, addr);
	if (!part)
		return;
	part->start = start;
	set_stop(rd, rec, part, stop);
	take_still(rd, addr, part);
	if (part->known && !part->unfinished)
		rd->proc->op_ended = most(rd->proc->op_ended, part->stop);
	if (w && (part->unfinished || (!part->known && part->stop < w->part->stop))) {
		/* it never went on: what was told last tells most, up to then */
		free(part);
		give_waiting(rd, w);
		forget_links(rd, addr);
		return;
	}
	forget_links(rd, addr);
	if (w)
		forget_open(rd, w);
	wait_on(rd, addr, &info, part, false, part->unfinished || get(rd, rec, "exec"));
	give_settled(rd, true);
}

/* Told while it does not move; the last word of it if the file ends before it does. */
static void take_open(struct report_reader *rd, node_t rec)
{
	node_t type = get(rd, rec, "eventType");
	bool coll = jn_is(type, "ncclProfileColl");
	uint64_t addr = get_addr(rd, rec, "eventAddr");
	struct report_op_info info;
	struct report_part *part;
	struct waiting *w;
	int64_t ts, start;

	if (!get_point(rd, rec, "ts", &ts) || !get_point(rd, get(rd, rec, "start"), "ts", &start) ||
	    ts < start)
		return;
	move_to(rd, ts);
	if (jn_is(type, "ncclProfileProxyStep"))
		take_still_step(rd, rec, start, ts);
	else if (jn_is(type, "ncclProfileProxyOp") && !is_send(rd, rec) && !is_foreign(rd, rec))
		take_still_op(rd, rec, least(ts - start, REPORT_SPAN_MAX));
	if (!coll && !jn_is(type, "ncclProfileP2p"))
		return;
	w = told_open(rd, addr);
	if (w)
		forget_open(rd, w);
	take_info(rd, rec, coll, &info);
	info.called = call_of(rd, rec, start, false);
	part = new_part(rd, rec, addr);
	if (!part)
		return;
	part->start = start;
	part->stop = ts;
	part->quiet = get_span(rd, rec, "quiet");
	wait_on(rd, addr, &info, part, true, false);
}

static void take_lifecycle(struct report_reader *rd, node_t rec)
{
	node_t details = get(rd, rec, "details");
	uint64_t hash = comm_of(rd, rec);
	struct report_comm *c;
	int32_t rank = get_rank(rd, rec, "rank"), nranks;
	/* 0: it was made before, and the header knows. KernelCh alone may be what stayed on. */
	uint32_t mask = get_count(rd, details, "eventMask") & ~KERNELS;

	/* operations that only KernelCh would have brought along are not recorded either */
	if (rd->has_asked && get(rd, details, "noKernelCh"))
		take_asked(rd->proc, rd->asked & ~KERNELS);
	rd->proc->lacks_ops |= mask && leaves_out_ops(mask);
	if (!hash || rank < 0)
		return;
	c = report_comm(rd->r, hash);
	if (!c)
		return;
	nranks = get_int(rd, details, "nranks", 0);
	if (nranks > 0 && nranks <= RANKS_MAX)
		c->nranks = nranks;
	if (!c->name)
		c->name = get_name(rd, details, "commName");
	report_member(rd->r, c, rank, rd->proc);
}

static void take_event(struct report_reader *rd, node_t rec)
{
	node_t type = get(rd, rec, "type"), start = get(rd, rec, "start"),
	       stop = get(rd, rec, "stop");
	int64_t from, to;

	rd->proc->events++;
	if (!get_point(rd, start, "ts", &from))
		return;
	if (get_point(rd, stop, "ts", &to))
		copies__extend(&rd->when, to);
	else
		to = get_bool(rd, rec, "unfinished") ? rd->proc->last : from;
	to = most(to, from);
	if (rd->proc->pid < 0)
		rd->proc->pid = rd->proc->host_pid = get_int(rd, start, "pid", -1);
	move_to(rd, to);
	if (jn_is(type, "ncclProfileProxyStep") && get_bool(rd, rec, "unfinished"))
		take_still_step(rd, rec, from, to);
	if (jn_is(type, "ncclProfileProxyStep"))
		take_step(rd, rec, from, to);
	else if (jn_is(type, "ncclProfileProxyOp"))
		take_proxy_op(rd, rec, from, to);
	else if (jn_is(type, "ncclProfileColl"))
		take_op(rd, rec, true, from, to);
	else if (jn_is(type, "ncclProfileP2p"))
		take_op(rd, rec, false, from, to);
	else if (jn_is(type, "ncclProfileP2pApi"))
		take_call(rd, rec, from);
	else if (jn_is(type, "ncclProfileGroupApi"))
		take_group(rd, rec);
	else if (jn_is(type, "ncclProfileCeColl"))
		rd->proc->has_engines = true;
	else if (jn_is(type, "ncclProfileKernelCh"))
		take_kernel(rd, rec, to);
	else if (jn_is(type, "ProfilerLifecycle"))
		take_lifecycle(rd, rec);
}

/* ---- Lines --------------------------------------------------------------------------------------------- */

static void take_record(struct report_reader *rd, node_t rec)
{
	static const struct {
		const char *kind;
		void (*take)(struct report_reader *rd, node_t rec);
	} kinds[] = {{"event", take_event}, {"state", take_state},   {"thread", take_thread},
		     {"flow", take_flow},   {"lost", take_lost},     {"open", take_open},
		     {"node", take_node},   {"signal", take_signal}, {"kmsg", take_kmsg},
		     {"gpu", take_gpu},	    {"footer", take_footer}};
	node_t kind = get(rd, rec, "recordType");
	size_t i;

	if (jn_is(kind, "header")) {
		take_header(rd, rec);
		return;
	}
	if (!rd->proc && !new_proc(rd))
		return;
	if (!kind && get(rd, rec, "type")) /* as the seed's profiler writes its lifecycle */
		take_event(rd, rec);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (jn_is(kind, kinds[i].kind))
			kinds[i].take(rd, rec);
}

/* Again, after another line has been. */
static void parse_and_take(struct report_reader *rd, const char *s, size_t len)
{
	if (json_doc__parse(rd->doc, s, len)) { /* it has been parsed before */
		rd->r->err = -ENOMEM;
		return;
	}
	rd->r->totals.records++;
	take_record(rd, &rd->doc->nodes[0]);
}

static void release_header(struct report_reader *rd)
{
	const char *s;
	size_t len;

	if (copies__header(&rd->trace, &s, &len))
		parse_and_take(rd, s, len);
}

/* Not only its process, which a header ends as well: that is taken when its trace has begun. */
static void end_trace(struct report_reader *rd)
{
	release_header(rd);
	end_proc(rd);
	copies__end(&rd->trace, rd->path);
}

/* A record that is no header. */
static void take_behind(struct report_reader *rd, node_t rec, const char *s, size_t len)
{
	int what = copies__line(&rd->r->copies, &rd->trace, s, len, rd->path);

	if (what < 0) {
		rd->r->err = what;
	} else if (what == COPIES_BEGIN) {
		release_header(rd);
		parse_and_take(rd, s, len);
	} else if (what == COPIES_TAKE) {
		rd->r->totals.records++;
		take_record(rd, rec);
	}
}

/* What has been parsed. */
static void take_text(struct report_reader *rd, const char *s, size_t len)
{
	node_t rec = &rd->doc->nodes[0];

	/* the seed's lifecycle lines say no recordType */
	if (rec->kind != JSON_KIND_OBJ || (!get(rd, rec, "recordType") && !get(rd, rec, "type"))) {
		rd->r->totals.skipped += !rd->trace.is_copy;
	} else if (jn_is(get(rd, rec, "recordType"), "header")) {
		rd->r->totals.one_by_one = rd->r->totals.one_by_one || rd->proc;
		end_trace(rd);
		if (copies__begin(&rd->trace, s, len))
			rd->r->err = -ENOMEM;
	} else {
		take_behind(rd, rec, s, len);
	}
}

static int read_line(void *reader, const char *s, size_t len, bool whole)
{
	struct report_reader *rd = reader;
	bool torn;
	int err = lines_parse(rd->doc, &s, &len, &torn);

	if (err == -ENOMEM)
		return err;
	if ((err || torn) && (!whole || !err))
		rd->r->totals.torn += !rd->trace.is_copy;
	else if (err)
		rd->r->totals.skipped += !rd->trace.is_copy;
	if (!err && (whole || !torn))
		take_text(rd, s, len);
	return rd->r->err;
}

/* ---- The files of a report --------------------------------------------------------------------------- */

struct reading {
	struct report *r;
	struct streams *files;
	struct json_doc doc;
};

static void *begin_reader(void *to, const char *path, uint32_t nr)
{
	struct report_reader *rd = calloc(1, sizeof(*rd));
	struct reading *all = to;

	(void)nr;
	if (!rd)
		return NULL;
	rd->all = all;
	rd->r = all->r;
	rd->doc = &all->doc;
	rd->path = path;
	rd->now = INT64_MIN;
	rd->settles = INT64_MAX;
	rd->when = COPIES_SPAN_NONE;
	rd->common = true;
	return rd;
}

/* How what is open went on may be in what has not been read. */
static void forget_all_open(struct report_reader *rd)
{
	struct waiting *w, *tmp;

	HASH_ITER (hh, rd->waiting, w, tmp)
		if (w->open)
			forget_open(rd, w);
}

/* What is still open is given to the report as unfinished. */
static void end_reader(void *reader)
{
	struct report_reader *rd = reader;

	release_header(rd);
	if (streams__totals(rd->all->files)->cut)
		forget_all_open(rd);
	end_trace(rd);
	copies__trace_free(&rd->trace);
	free(rd);
}

/* By the real clock. */
static int64_t reader_now(const void *reader)
{
	const struct report_reader *rd = reader;

	return rd->now;
}

static void all_came_to(void *to, int64_t now)
{
	struct reading *all = to;

	report_expire(all->r, now);
}

static void sum_up(struct report_totals *to, const struct streams_totals *read)
{
	to->files = read->files;
	to->bytes = read->bytes;
	to->total_bytes = read->total_bytes;
	to->skipped += read->too_long;
	to->cut = read->cut;
	to->one_by_one = to->one_by_one || read->waited;
}

int report_read(struct report *r, char *const *paths)
{
	const struct streams_options opt = {
		.brief = r->opt.brief, .silent = r->opt.silent, .limit_ns = r->opt.limit_ns};
	const struct streams_ops ops = {.what = r->opt.brief ? NULL : "Reading",
					.begin = begin_reader,
					.line = read_line,
					.now = reader_now,
					.end = end_reader,
					.floor = all_came_to};
	struct reading all = {.r = r};
	int err = json_doc__init(&all.doc), one;

	if (err)
		return err;
	all.files = streams__new(paths, &opt, &err);
	one = all.files ? streams__read(all.files, &ops, &all) : -ENOMEM;
	if (all.files)
		sum_up(&r->totals, streams__totals(all.files));
	streams__free(all.files);
	json_doc__free(&all.doc);
	return r->err ?: one ?: err;
}
