// SPDX-License-Identifier: BSD-2-Clause
/*
 * Export as Perfetto's own format (loader/export/perfetto.proto): a sequence of packets for each process, written as it comes, in which words
 * are told once. Ids are hashes of node and process, so that files can be put one behind the other. Times are the node's real time
 * where the trace tells it; Perfetto calls the clock that a trace is in BOOTTIME.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "export.h"
#include "perfetto_fields.h"
#include "protobuf.h"

#define WORDS_MAX   8192 /* of a process; what is more is written out */
#define WORD_MAX    256
#define BUNDLE_MAX  (32u << 10)
#define EXACT	    15 /* decimal digits that a double always has */
#define PRIO_NORMAL 120

/* A word of a kind, such as the name of a slice: PB_InternedData_*. */
struct word {
	uint64_t iid;
	size_t len;
	char text[]; /* the kind, then the word */
};

struct word_entry {
	struct word *word; /* owned */
	UT_hash_handle hh;
};

/* A counter that has been told of. */
struct counter {
	uint64_t uuid;
	UT_hash_handle hh;
};

struct perfetto {
	uint32_t sequence, machine;
	struct word_entry *words;
	struct xbuf new_words; /* of InternedData */
	struct counter *counters;
	struct xbuf *cpus; /* FtraceEvents of each; owned */
	uint32_t ncpus;
};

static uint32_t fold(uint64_t h)
{
	uint32_t v = (uint32_t)(h ^ h >> 32);

	return v ? v : 1;
}

/* ---- Packets ------------------------------------------------------------------------------------------ */

static size_t begin_packet(struct export *x, uint32_t flags)
{
	const struct perfetto *pf = x->own;
	size_t at = pb_begin(&x->out, PB_Trace_packet);

	pb_varint(&x->out, PB_TracePacket_trusted_packet_sequence_id, pf->sequence);
	pb_varint(&x->out, PB_TracePacket_sequence_flags, flags);
	if (pf->machine)
		pb_varint(&x->out, PB_TracePacket_machine_id, pf->machine);
	return at;
}

/* The words of what comes next, before it. */
static void put_words(struct export *x)
{
	struct perfetto *pf = x->own;
	size_t at;

	if (!pf->new_words.len)
		return;
	at = begin_packet(x, PB_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
	pb_bytes(&x->out, PB_TracePacket_interned_data, pf->new_words.s, pf->new_words.len);
	pb_end(&x->out, at);
	pf->new_words.len = 0;
}

/* Its number; 0: it is to be written out. */
static uint64_t iid_of(struct export *x, uint32_t kind, const char *s, size_t len)
{
	struct perfetto *pf = x->own;
	struct word_entry *e;
	char key[WORD_MAX + 1];
	size_t at;

	if (len > WORD_MAX || pf->new_words.failed)
		return 0;
	key[0] = (char)kind;
	if (len)
		memcpy(key + 1, s, len);
	HASH_FIND(hh, pf->words, key, len + 1, e);
	if (e)
		return e->word->iid;
	if (HASH_COUNT(pf->words) >= WORDS_MAX)
		return 0;
	e = calloc(1, sizeof(*e));
	if (e)
		e->word = malloc(sizeof(*e->word) + len + 1);
	if (!e || !e->word) {
		free(e);
		return 0;
	}
	memcpy(e->word->text, key, len + 1);
	e->word->len = len + 1;
	e->word->iid = HASH_COUNT(pf->words) + 1;
	HASH_ADD_KEYPTR(hh, pf->words, e->word->text, e->word->len, e);
	if (!HASH_ADDED(hh, e)) {
		free(e->word);
		free(e);
		return 0;
	}
	at = pb_begin(&pf->new_words, kind);
	pb_varint(&pf->new_words, PB_EventName_iid, e->word->iid);
	pb_bytes(&pf->new_words, PB_EventName_name, s, len);
	pb_end(&pf->new_words, at);
	return e->word->iid;
}

/* ---- Debug annotations: all that a record says ------------------------------------------------------------ */

static void put_annotation(struct export *x, struct xbuf *b, uint32_t field,
			   const struct json_node *n);

/* Numbers as numbers where that is exact, else as they are written: times of a node that is up for long. */
static void put_number(struct xbuf *b, const struct json_node *n)
{
	uint64_t u;
	int64_t i;
	char num[EXACT + 3];

	if (jn_u64(n, &u)) {
		pb_varint(b, PB_DebugAnnotation_uint_value, u);
	} else if (jn_i64(n, &i)) {
		pb_varint(b, PB_DebugAnnotation_int_value, (uint64_t)i);
	} else if (n->kind == JSON_KIND_REAL && n->len <= EXACT + 1) {
		memcpy(num, n->s, n->len);
		num[n->len] = '\0';
		pb_double(b, PB_DebugAnnotation_double_value, strtod(num, NULL));
	} else {
		pb_bytes(b, PB_DebugAnnotation_string_value, n->s, n->len);
	}
}

static void put_value(struct export *x, struct xbuf *b, const struct json_node *n)
{
	uint64_t v;
	uint32_t i;

	switch (n->kind) {
	case JSON_KIND_TRUE:
	case JSON_KIND_FALSE:
		pb_varint(b, PB_DebugAnnotation_bool_value, n->kind == JSON_KIND_TRUE);
		return;
	case JSON_KIND_INT:
	case JSON_KIND_REAL:
		put_number(b, n);
		return;
	case JSON_KIND_OBJ:
	case JSON_KIND_ARR:
		for (i = n->first; i; i = x->doc.nodes[i].next)
			put_annotation(x, b,
				       n->kind == JSON_KIND_OBJ ? PB_DebugAnnotation_dict_entries
								: PB_DebugAnnotation_array_values,
				       &x->doc.nodes[i]);
		return;
	default:
		if (jn_hex(n, &v))
			pb_varint(b, PB_DebugAnnotation_pointer_value, v);
		else
			pb_bytes(b, PB_DebugAnnotation_string_value, n->s, n->len);
	}
}

static void put_annotation(struct export *x, struct xbuf *b, uint32_t field,
			   const struct json_node *n)
{
	size_t at = pb_begin(b, field);
	uint64_t iid;

	if (n->key) {
		iid = iid_of(x, PB_InternedData_debug_annotation_names, n->key, n->key_len);
		if (iid)
			pb_varint(b, PB_DebugAnnotation_name_iid, iid);
		else
			pb_bytes(b, PB_DebugAnnotation_name, n->key, n->key_len);
	}
	put_value(x, b, n);
	pb_end(b, at);
}

static void perfetto_args(struct export *x, const struct json_node *rec, struct xbuf *b)
{
	uint32_t i;

	for (i = rec->first; i; i = x->doc.nodes[i].next)
		put_annotation(x, b, PB_TrackEvent_debug_annotations, &x->doc.nodes[i]);
}

/* ---- Processes and tracks ----------------------------------------------------------------------------------- */

static size_t begin_track(struct export *x, size_t *packet, uint64_t uuid, uint64_t parent)
{
	size_t at;

	*packet = begin_packet(x, PB_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
	at = pb_begin(&x->out, PB_TracePacket_track_descriptor);
	pb_varint(&x->out, PB_TrackDescriptor_uuid, uuid);
	if (parent)
		pb_varint(&x->out, PB_TrackDescriptor_parent_uuid, parent);
	return at;
}

static void end_track(struct export *x, size_t packet, size_t at)
{
	pb_end(&x->out, at);
	pb_end(&x->out, packet);
}

static void put_clock(struct export *x, uint32_t clock, uint64_t ns)
{
	size_t at = pb_begin(&x->out, PB_ClockSnapshot_clocks);

	pb_varint(&x->out, PB_Clock_clock_id, clock);
	pb_varint(&x->out, PB_Clock_timestamp, ns);
	pb_end(&x->out, at);
}

/*
 * A sequence begins, with its clock: the trace's is the real time, to the nanosecond. Always the same moment, as Perfetto wants those of a
 * trace in order, and files may come in any.
 */
static void put_first(struct export *x, const struct export_proc *p)
{
	size_t packet = begin_packet(x, PB_SequenceFlags_SEQ_INCREMENTAL_STATE_CLEARED), at;
	const uint64_t moment = UINT64_C(1000000000000000000); /* in 2001 */

	pb_varint(&x->out, PB_TracePacket_first_packet_on_sequence, 1);
	if (p->real) {
		at = pb_begin(&x->out, PB_TracePacket_clock_snapshot);
		put_clock(x, PB_BuiltinClock_BUILTIN_CLOCK_REALTIME, moment);
		put_clock(x, PB_BuiltinClock_BUILTIN_CLOCK_BOOTTIME, moment);
		pb_end(&x->out, at);
	}
	pb_end(&x->out, packet);
}

static void perfetto_proc(struct export *x, struct export_proc *p)
{
	struct perfetto *pf = x->own;
	size_t packet, at, process;

	pf->sequence = fold(p->id);
	pf->machine = x->machine_ids || p->node != x->first_node ? fold(p->node) : 0;
	put_first(x, p);
	at = begin_track(x, &packet, p->id, 0);
	process = pb_begin(&x->out, PB_TrackDescriptor_process);
	pb_varint(&x->out, PB_ProcessDescriptor_pid, (uint64_t)(int64_t)p->pid);
	if (*p->comm)
		pb_string(&x->out, PB_ProcessDescriptor_process_name, p->comm);
	if (*p->host)
		pb_string(&x->out, PB_ProcessDescriptor_process_labels, p->host);
	pb_end(&x->out, process);
	end_track(x, packet, at);
}

static void perfetto_lane(struct export *x, struct export_lane *l)
{
	const struct export_group *g = l->group;
	bool thread = g->key.kind == EXPORT_THREAD && !l->index;
	struct export_proc *p = x->proc;
	uint64_t parent = g->parent ? g->parent->lanes[0]->id : p->id;
	size_t packet, at, desc;

	if (g->key.kind == EXPORT_PROCESS) {
		l->id = p->id;
		return;
	}
	l->id = fnv_more(p->id, &g->key, sizeof(g->key));
	l->id = fnv_more(l->id, &l->index, sizeof(l->index));
	if (g->key.kind == EXPORT_THREAD && l->index)
		parent = g->lanes[0]->id;
	at = begin_track(x, &packet, l->id, parent);
	if (thread) {
		desc = pb_begin(&x->out, PB_TrackDescriptor_thread);
		pb_varint(&x->out, PB_ThreadDescriptor_pid, (uint64_t)(int64_t)p->pid);
		pb_varint(&x->out, PB_ThreadDescriptor_tid, (uint64_t)(int64_t)g->key.tid);
		pb_string(&x->out, PB_ThreadDescriptor_thread_name, g->name);
		pb_end(&x->out, desc);
	} else {
		pb_string(&x->out, PB_TrackDescriptor_name, g->name);
	}
	end_track(x, packet, at);
}

/* ---- Slices ------------------------------------------------------------------------------------------------ */

static size_t begin_event(struct export *x, size_t *packet, uint32_t type, uint64_t track,
			  int64_t ts)
{
	size_t at;

	*packet = begin_packet(x, PB_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
	pb_varint(&x->out, PB_TracePacket_timestamp, (uint64_t)ts);
	at = pb_begin(&x->out, PB_TracePacket_track_event);
	pb_varint(&x->out, PB_TrackEvent_type, type);
	pb_varint(&x->out, PB_TrackEvent_track_uuid, track);
	return at;
}

static uint64_t arrow_id(const struct export *x, uint64_t addr)
{
	return fnv_more(x->proc->id, &addr, sizeof(addr));
}

/* What has the same id is joined by arrows in the order of time: an event and its children, the ranks of an operation. */
static void put_arrows(struct export *x, const struct export_event *ev)
{
	if (ev->type->from && ev->addr)
		pb_fixed64(&x->out, PB_TrackEvent_flow_ids, arrow_id(x, ev->addr));
	if (ev->type->to && ev->parent)
		pb_fixed64(&x->out, PB_TrackEvent_flow_ids, arrow_id(x, ev->parent));
	if (ev->joined)
		pb_fixed64(&x->out, PB_TrackEvent_flow_ids, ev->joined);
}

static void put_event(struct export *x, const struct export_lane *l, const struct export_slice *s,
		      uint32_t type)
{
	size_t cat_len = strlen(s->cat), name_len = strlen(s->name), packet, at;
	uint64_t cat = iid_of(x, PB_InternedData_event_categories, s->cat, cat_len);
	uint64_t name = iid_of(x, PB_InternedData_event_names, s->name, name_len);

	put_words(x);
	at = begin_event(x, &packet, type, l->id, s->start);
	if (cat)
		pb_varint(&x->out, PB_TrackEvent_category_iids, cat);
	else
		pb_bytes(&x->out, PB_TrackEvent_categories, s->cat, cat_len);
	if (name)
		pb_varint(&x->out, PB_TrackEvent_name_iid, name);
	else
		pb_bytes(&x->out, PB_TrackEvent_name, s->name, name_len);
	if (s->ev)
		put_arrows(x, s->ev);
	xbuf__put(&x->out, s->args, s->args_len);
	pb_end(&x->out, at);
	pb_end(&x->out, packet);
}

static void perfetto_slice(struct export *x, struct export_lane *l, const struct export_slice *s)
{
	put_event(x, l, s, PB_Type_TYPE_SLICE_BEGIN);
}

static void perfetto_slice_end(struct export *x, struct export_lane *l, int64_t ts)
{
	size_t packet, at = begin_event(x, &packet, PB_Type_TYPE_SLICE_END, l->id, ts);

	pb_end(&x->out, at);
	pb_end(&x->out, packet);
}

static void perfetto_instant(struct export *x, struct export_lane *l, const struct export_slice *s)
{
	put_event(x, l, s, PB_Type_TYPE_INSTANT);
}

/* ---- Counters ------------------------------------------------------------------------------------------------ */

static bool tell_counter(struct export *x, uint64_t uuid, uint64_t parent, const char *name,
			 const char *unit)
{
	struct perfetto *pf = x->own;
	size_t packet, at, desc;
	struct counter *c;

	HASH_FIND(hh, pf->counters, &uuid, sizeof(uuid), c);
	if (c)
		return true;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->uuid = uuid;
		HASH_ADD(hh, pf->counters, uuid, sizeof(uuid), c);
	}
	if (!c || !HASH_ADDED(hh, c)) {
		free(c);
		x->err = -ENOMEM;
		return false;
	}
	at = begin_track(x, &packet, uuid, parent);
	pb_string(&x->out, PB_TrackDescriptor_name, name);
	desc = pb_begin(&x->out, PB_TrackDescriptor_counter);
	pb_string(&x->out, PB_CounterDescriptor_unit_name, unit);
	pb_end(&x->out, desc);
	end_track(x, packet, at);
	return true;
}

static void perfetto_counter(struct export *x, struct export_group *flow, const char *name,
			     const char *unit, int64_t ts, double value)
{
	uint64_t parent = flow->lanes[0]->id, uuid = fnv_more(parent, name, strlen(name));
	size_t packet, at;

	if (!tell_counter(x, uuid, parent, name, unit))
		return;
	at = begin_event(x, &packet, PB_Type_TYPE_COUNTER, uuid, ts);
	pb_double(&x->out, PB_TrackEvent_double_counter_value, value);
	pb_end(&x->out, at);
	pb_end(&x->out, packet);
}

/* ---- What ran on the CPUs -------------------------------------------------------------------------------------- */

static void put_bundle(struct export *x, uint32_t cpu)
{
	struct perfetto *pf = x->own;
	struct xbuf *b = &pf->cpus[cpu];
	size_t packet, at;

	if (b->failed)
		x->err = -ENOMEM;
	if (!b->len)
		return;
	packet = begin_packet(x, PB_SequenceFlags_SEQ_NEEDS_INCREMENTAL_STATE);
	at = pb_begin(&x->out, PB_TracePacket_ftrace_events);
	pb_varint(&x->out, PB_FtraceEventBundle_cpu, cpu);
	xbuf__put(&x->out, b->s, b->len);
	pb_end(&x->out, at);
	pb_end(&x->out, packet);
	b->len = 0;
}

static struct xbuf *cpu_of(struct export *x, uint32_t cpu)
{
	struct perfetto *pf = x->own;
	struct xbuf *cpus;

	if (cpu >= pf->ncpus) {
		cpus = reallocarray(pf->cpus, cpu + 1, sizeof(*cpus));
		if (!cpus) {
			x->err = -ENOMEM;
			return NULL;
		}
		memset(cpus + pf->ncpus, 0, (cpu + 1 - pf->ncpus) * sizeof(*cpus));
		pf->cpus = cpus;
		pf->ncpus = cpu + 1;
	}
	if (pf->cpus[cpu].len > BUNDLE_MAX)
		put_bundle(x, cpu);
	return &pf->cpus[cpu];
}

/* From one thread to another; NULL: idle. */
static void put_switch(struct export *x, uint32_t cpu, int64_t ts, const struct export_thread *prev,
		       uint32_t state, const struct export_thread *next)
{
	struct xbuf *b = cpu_of(x, cpu);
	size_t at, sw;
	char idle[24];

	if (!b)
		return;
	snprintf(idle, sizeof(idle), "swapper/%u", cpu);
	at = pb_begin(b, PB_FtraceEventBundle_event);
	pb_varint(b, PB_FtraceEvent_timestamp, (uint64_t)ts);
	pb_varint(b, PB_FtraceEvent_pid, prev ? (uint32_t)prev->tid : 0);
	sw = pb_begin(b, PB_FtraceEvent_sched_switch);
	pb_string(b, PB_SchedSwitchFtraceEvent_prev_comm, prev ? prev->comm : idle);
	pb_varint(b, PB_SchedSwitchFtraceEvent_prev_pid, prev ? (uint64_t)(int64_t)prev->tid : 0);
	pb_varint(b, PB_SchedSwitchFtraceEvent_prev_prio, PRIO_NORMAL);
	pb_varint(b, PB_SchedSwitchFtraceEvent_prev_state, state);
	pb_string(b, PB_SchedSwitchFtraceEvent_next_comm, next ? next->comm : idle);
	pb_varint(b, PB_SchedSwitchFtraceEvent_next_pid, next ? (uint64_t)(int64_t)next->tid : 0);
	pb_varint(b, PB_SchedSwitchFtraceEvent_next_prio, PRIO_NORMAL);
	pb_end(b, sw);
	pb_end(b, at);
}

static void perfetto_run(struct export *x, const struct export_thread *t, uint32_t cpu, int64_t ts)
{
	put_switch(x, cpu, ts, NULL, 0, t);
}

static void perfetto_stop(struct export *x, const struct export_thread *t, uint32_t cpu, int64_t ts,
			  uint32_t state)
{
	put_switch(x, cpu, ts, t, state, NULL);
}

static void perfetto_wake(struct export *x, const struct export_thread *t, uint32_t cpu, int64_t ts)
{
	struct xbuf *b = cpu_of(x, cpu);
	size_t at, waking;

	if (!b)
		return;
	at = pb_begin(b, PB_FtraceEventBundle_event);
	pb_varint(b, PB_FtraceEvent_timestamp, (uint64_t)ts);
	pb_varint(b, PB_FtraceEvent_pid, 0);
	waking = pb_begin(b, PB_FtraceEvent_sched_waking);
	pb_string(b, PB_SchedWakingFtraceEvent_comm, t->comm);
	pb_varint(b, PB_SchedWakingFtraceEvent_pid, (uint64_t)(int64_t)t->tid);
	pb_varint(b, PB_SchedWakingFtraceEvent_prio, PRIO_NORMAL);
	pb_varint(b, PB_SchedWakingFtraceEvent_success, 1);
	pb_varint(b, PB_SchedWakingFtraceEvent_target_cpu, cpu);
	pb_end(b, waking);
	pb_end(b, at);
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static void forget_proc(struct perfetto *pf)
{
	struct word_entry *e, *tmp;

	HASH_ITER (hh, pf->words, e, tmp) {
		HASH_DEL(pf->words, e);
		free(e->word);
		free(e);
	}
	HASH_FREE_ALL(pf->counters);
	pf->new_words.len = 0;
}

static void perfetto_proc_end(struct export *x, struct export_proc *p)
{
	struct perfetto *pf = x->own;
	uint32_t cpu;

	(void)p;
	for (cpu = 0; cpu < pf->ncpus; cpu++)
		put_bundle(x, cpu);
	forget_proc(pf);
	if (pf->new_words.failed)
		x->err = -ENOMEM;
}

static int perfetto_begin(struct export *x)
{
	x->own = calloc(1, sizeof(struct perfetto));
	return x->own ? 0 : -ENOMEM;
}

static void perfetto_free(struct export *x)
{
	struct perfetto *pf = x->own;
	uint32_t cpu;

	forget_proc(pf);
	for (cpu = 0; cpu < pf->ncpus; cpu++)
		xbuf__free(&pf->cpus[cpu]);
	free(pf->cpus);
	xbuf__free(&pf->new_words);
	free(pf);
	x->own = NULL;
}

const struct export_format export_perfetto = {
	.name = "perfetto",
	.binary = true,
	.begin = perfetto_begin,
	.free = perfetto_free,
	.proc = perfetto_proc,
	.proc_end = perfetto_proc_end,
	.args = perfetto_args,
	.lane = perfetto_lane,
	.slice = perfetto_slice,
	.slice_end = perfetto_slice_end,
	.instant = perfetto_instant,
	.counter = perfetto_counter,
	.run = perfetto_run,
	.wake = perfetto_wake,
	.stop = perfetto_stop,
};
