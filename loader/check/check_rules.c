// SPDX-License-Identifier: BSD-2-Clause
/*
 * What must hold between the keys of a record and between the records of a process. A rule is a
 * function in one of three tables: record_rules (one record), event_rules of check_events.c (an event
 * with its states, parent and children, when the process ends) and process_rules (the file as a whole).
 * Those of the kernel's context are in check_sched.c and check_net.c.
 *
 * Memory: one struct event (200 bytes) for each event of the process being read, given back
 * at its end, and 24 bytes for each of its threads with slices; 8 bytes for each Coll and P2p of all
 * processes, as PXN events refer to them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "check_priv.h"
#include "clock.h"
#include "fnv.h"

/* What is told while it is open has been so, and has not moved, for so long. */
#define OPEN_NS NSEC_PER_SEC

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

int64_t get_i64(struct check *c, const struct json_node *obj, const char *key)
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

/* ------------------------------------------------------------------ rules of one record */

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
		event_check_states(c, p, ev);
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
	sched_rules__thread(c, rec, stop - since);
}

static void rule_slice(struct check *c, const struct json_node *rec, enum etype etype)
{
	(void)etype;
	sched_rules__slice(c, &c->proc->sched, rec);
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
	{KIND_EVENT, rule_event_gpu},	{KIND_EVENT, sched_rules__event},
	{KIND_EVENT, rule_event_net},	{KIND_EVENT, rule_event_api},
	{KIND_EVENT, rule_event_take},	{KIND_STATE, rule_state},
	{KIND_HEADER, rule_header},	{KIND_THREAD, rule_thread},
	{KIND_SLICE, rule_slice},	{KIND_CLOCK, rule_clock},
	{KIND_LOST, rule_lost},		{KIND_FOOTER, rule_footer},
	{KIND_FLOW, rule_flow},		{KIND_DROP, rule_drop},
	{KIND_OPEN, rule_event_ids},	{KIND_OPEN, rule_event_pxn},
	{KIND_OPEN, rule_open_times},	{KIND_OPEN, sched_rules__open},
	{KIND_OPEN, rule_open_net},	{KIND_OPEN, rule_open_take},
};

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
	sched_rules__free(&p->sched);
	net_rules__free(&p->net);
	memset(p, 0, sizeof(*p));
}

void rules_end_process(struct check *c)
{
	struct proc *p = c->proc;
	size_t k;

	events_check(c);
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
		     "a %s record before any header (traces of minimal_profiler need --compat)",
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
