// SPDX-License-Identifier: BSD-2-Clause
/* The writer; see trace.h. Key order is the seed format's, added keys behind. */
#include <stdio.h>
#include "header.h"
#include "input.h"
#include "log.h"
#include "live.h"
#include "nccl_names.h"
#include "nccl_profiler.h"
#include "session.h"
#include "trace.h"
#include "trace_keys.h"

/*
 * The header goes first, whenever the first line comes. Where a full disk swallowed it, or there was no
 * place for a file, lines are lost until it could be written.
 */
static bool trace_ready(struct proc *p)
{
	if (!p->header_written && p->corr.now_ns >= p->header_next_ns) {
		p->header_err = header__write(p);
		p->header_written = !p->header_err;
		p->header_next_ns = p->corr.now_ns + NSEC_PER_SEC;
		if (p->header_written)
			trace__recent_kmsg(p);
	}
	return p->header_written;
}

/* A line about the file itself: without it there is none, and nothing is lost. */
static struct json account_begin(struct proc *p)
{
	struct json none = {0};

	if (p->session->mute)
		p->header_written = true;
	return !p->session->mute && trace_ready(p) ? out_line_begin(&p->out, STATE_MAX) : none;
}

struct json trace_begin(struct proc *p, size_t max)
{
	struct json j = {0};

	if (p->session->mute) {
		p->header_written = true;
		return j;
	}
	if (trace_ready(p))
		j = out_line_begin(&p->out, max);
	if (!j.at)
		p->out.write_lost++;
	return j;
}

void trace_end(struct proc *p, struct json *j, enum out_kind kind)
{
	out_line_end(&p->out, j, kind, p->corr.now_ns);
	p->events += kind == OUT_EVENT;
}

/* ---- Parts of an event ------------------------------------------------------------------------- */

static void put_where(struct json *j, struct proc *p, uint64_t ts_ns, const struct corr_thread *t)
{
	json_lit(j, "{\"ts\":");
	json_us(j, ts_ns);
	put_thread(j, p, t);
	json_char(j, '}');
}

static void put_string(struct json *j, const struct proc *p, uint16_t id)
{
	if (id < SCOPE_STRINGS)
		json_str(j, p->strings[id].text, p->strings[id].len);
	else
		json_lit(j, "\"\"");
}

#define KEY_STRING(j, key, id)                                                                     \
	do {                                                                                       \
		json_lit(j, ",\"" key "\":");                                                      \
		put_string(j, p, id);                                                              \
	} while (0)

static uint16_t func_id(const struct corr_event *ev)
{
	switch (ev->what) {
	case SCOPE_COLL:
		return ev->start.coll.func;
	case SCOPE_P2P:
		return ev->start.p2p.func;
	case SCOPE_COLL_API:
	case SCOPE_P2P_API:
		return ev->start.coll_api.func;
	case SCOPE_CE_COLL:
		return ev->start.ce_coll.func;
	default:
		return 0;
	}
}

/* ---- Details, by type. Each writes its keys with a leading comma but for the first --------------- */

static void put_coll_api(struct json *j, const struct proc *p, const struct corr_event *ev)
{
	const struct scope_rec_coll_api *r = &ev->start.coll_api;

	json_lit(j, "\"func\":");
	put_string(j, p, r->func);
	KEY_U64(j, "count", r->count);
	KEY_STRING(j, "dtype", r->datatype);
	if (ev->what == SCOPE_COLL_API)
		KEY_I64(j, "root", r->root);
	KEY_PTR(j, "stream", r->stream);
	KEY_BOOL(j, "graphCaptured", r->s.h.u8);
	if (r->user_tag)
		KEY_U64(j, "userTag", r->user_tag);
}

static void put_coll(struct json *j, const struct proc *p, const struct corr_event *ev)
{
	const struct scope_rec_coll *r = &ev->start.coll;

	json_lit(j, "\"func\":");
	put_string(j, p, r->func);
	KEY_U64(j, "seq", r->seq);
	KEY_STRING(j, "algo", r->algo);
	KEY_STRING(j, "proto", r->proto);
	KEY_U64(j, "channels", r->s.h.u8);
	KEY_U64(j, "warps", r->s.h.u32);
	KEY_U64(j, "count", r->count);
	KEY_I64(j, "root", r->root);
	KEY_STRING(j, "dtype", r->datatype);
	KEY_PTR(j, "sendBuff", r->send_buff);
	KEY_PTR(j, "recvBuff", r->recv_buff);
	KEY_PTR(j, "parentGroup", r->parent_group);
	if (r->kernel_variant)
		KEY_STRING(j, "kernelVariant", r->kernel_variant);
	if (r->is_sym_coll)
		KEY_BOOL(j, "isSymColl", 1);
	if (r->user_tag)
		KEY_U64(j, "userTag", r->user_tag);
	if (ev->comm && corr_counts_told(ev->comm))
		KEY_BOOL(j, "seqCommon", corr_seq_common(ev->comm));
}

static void put_p2p(struct json *j, const struct proc *p, const struct corr_event *ev)
{
	const struct scope_rec_p2p *r = &ev->start.p2p;

	json_lit(j, "\"func\":");
	put_string(j, p, r->func);
	KEY_I64(j, "peer", r->peer);
	KEY_U64(j, "channels", r->s.h.u8);
	KEY_U64(j, "count", r->count);
	KEY_STRING(j, "dtype", r->datatype);
	KEY_PTR(j, "buff", r->buff);
	KEY_PTR(j, "parentGroup", r->parent_group);
	if (r->user_tag)
		KEY_U64(j, "userTag", r->user_tag);
}

static void put_proxy_op(struct json *j, const struct corr_event *ev)
{
	const struct scope_rec_proxy_op *r = &ev->start.proxy_op;

	json_lit(j, "\"channel\":");
	json_u64(j, r->s.h.u8);
	KEY_I64(j, "peer", r->peer);
	KEY_I64(j, "steps", r->nsteps);
	KEY_I64(j, "chunkSize", r->chunk_size_bytes);
	KEY_BOOL(j, "isSend", r->s.h.u32);
	KEY_I64(j, "eventPid", r->pid);
}

static void put_proxy_step(struct json *j, const struct corr_event *ev)
{
	json_lit(j, "\"step\":");
	json_i64(j, (int32_t)ev->start.s.h.u32);
	if (ev->has_op) {
		KEY_U64(j, "channel", ev->channel);
		KEY_I64(j, "peer", ev->peer);
		KEY_BOOL(j, "isSend", ev->is_send);
	}
	if (ev->has_trans_size)
		KEY_U64(j, "transSize", ev->trans_size);
	if (ev->start_repeats)
		KEY_U64(j, "repeats", ev->start_repeats);
}

static void put_kernel(struct json *j, const struct proc *p, const struct corr_event *ev)
{
	json_lit(j, "\"channel\":");
	json_u64(j, ev->start.s.h.u8);
	if (ev->what == SCOPE_KERNEL_PHASE) {
		KEY_U64(j, "phaseId", ev->start.s.h.u32);
		if (ev->start.kernel_phase.phase_name)
			KEY_STRING(j, "phaseName", ev->start.kernel_phase.phase_name);
	}
	if (ev->start.kernel_ch.ptimer_ns) /* at one place in both */
		KEY_U64(j, "pTimer", ev->start.kernel_ch.ptimer_ns);
	if (ev->has_ptimer_stop)
		KEY_U64(j, "pTimerStop", ev->ptimer_stop_ns);
	if (ev->has_gpu) {
		KEY_US(j, "gpuStart", ev->gpu_start_ns);
		KEY_US(j, "gpuStop", ev->gpu_stop_ns);
		KEY_US(j, "gpuError", ev->gpu_error_ns);
	}
}

static void put_net_plugin(struct json *j, const struct corr_event *ev)
{
	const struct scope_rec_net_plugin *r = &ev->start.net_plugin;

	json_lit(j, "\"id\":");
	json_i64(j, r->net_id);
	KEY_PTR(j, "data", r->data);
	if (!r->s.h.u8)
		return;
	if ((uint64_t)r->net_id >> 16 == 1) {
		json_lit(j, ",\"netType\":\"ib\"");
		KEY_I64(j, "device", r->device_or_fd);
		KEY_U64(j, "wrId", r->wr_id);
		KEY_I64(j, "opcode", r->opcode_or_op);
		KEY_I64(j, "qp", r->qp_num);
	} else {
		json_lit(j, ",\"netType\":\"socket\"");
		KEY_I64(j, "fd", r->device_or_fd);
		KEY_I64(j, "op", r->opcode_or_op);
	}
	KEY_U64(j, "length", r->length_bytes);
}

static void put_ce_coll(struct json *j, const struct proc *p, const struct corr_event *ev)
{
	const struct scope_rec_ce_coll *r = &ev->start.ce_coll;

	json_lit(j, "\"func\":");
	put_string(j, p, r->func);
	KEY_U64(j, "seq", r->seq);
	KEY_U64(j, "count", r->count);
	KEY_I64(j, "root", r->root);
	KEY_STRING(j, "dtype", r->datatype);
	KEY_PTR(j, "sendBuff", r->send_buff);
	KEY_PTR(j, "recvBuff", r->recv_buff);
	KEY_STRING(j, "syncStrategy", r->sync_strategy);
	KEY_BOOL(j, "intraBatchSync", r->s.h.u8);
	KEY_U64(j, "batchSize", r->batch_size);
	KEY_U64(j, "numBatches", r->num_batches);
	KEY_U64(j, "ceSeqNum", r->ce_seq);
	KEY_PTR(j, "stream", r->stream);
	if (r->user_tag)
		KEY_U64(j, "userTag", r->user_tag);
}

static void put_details(struct json *j, const struct proc *p, const struct corr_event *ev)
{
	json_lit(j, ",\"details\":{");
	switch (ev->what) {
	case SCOPE_GROUP_API:
		json_lit(j, "\"depth\":");
		json_i64(j, (int32_t)ev->start.s.h.u32);
		KEY_BOOL(j, "graphCaptured", ev->start.s.h.u8);
		break;
	case SCOPE_COLL_API:
	case SCOPE_P2P_API:
		put_coll_api(j, p, ev);
		break;
	case SCOPE_KERNEL_LAUNCH:
		json_lit(j, "\"stream\":");
		json_ptr(j, ev->start.stream.stream);
		break;
	case SCOPE_COLL:
		put_coll(j, p, ev);
		break;
	case SCOPE_P2P:
		put_p2p(j, p, ev);
		break;
	case SCOPE_PROXY_OP:
		put_proxy_op(j, ev);
		break;
	case SCOPE_PROXY_STEP:
		put_proxy_step(j, ev);
		break;
	case SCOPE_KERNEL_CH:
	case SCOPE_KERNEL_PHASE:
		put_kernel(j, p, ev);
		break;
	case SCOPE_NET_PLUGIN:
		put_net_plugin(j, ev);
		break;
	case SCOPE_CE_COLL:
		put_ce_coll(j, p, ev);
		break;
	case SCOPE_CE_SYNC:
		json_lit(j, "\"isComplete\":");
		json_bool(j, ev->start.s.h.u8);
		KEY_I64(j, "nRanks", (int32_t)ev->start.s.h.u32);
		break;
	case SCOPE_CE_BATCH:
		json_lit(j, "\"numOps\":");
		json_i64(j, (int32_t)ev->start.s.h.u32);
		KEY_U64(j, "totalBytes", ev->start.ce_batch.total_bytes);
		KEY_BOOL(j, "useIntraSync", ev->start.s.h.u8);
		break;
	default: /* Group, ProxyCtrl */
		break;
	}
	json_char(j, '}');
}

static void put_exec(struct json *j, const struct corr_event *ev)
{
	static const char *const sources[] = {
		[EXEC_ENQUEUE] = "enqueue", [EXEC_KERNEL] = "kernel", [EXEC_PROXY] = "proxy"};
	const char *source = sources[ev->exec];

	if (!source)
		return;
	json_lit(j, ",\"exec\":{\"stop\":");
	json_us(j, ev->exec_stop_ns);
	KEY_US(j, "duration", ev->exec_stop_ns - ev->start_ns);
	KEY_STR(j, "source", source, strlen(source));
	if (ev->open_children)
		KEY_U64(j, "openChildren", ev->open_children);
	json_char(j, '}');
}

/* ---- Records ----------------------------------------------------------------------------------- */

static void put_last_state(struct json *j, const struct corr_event *ev)
{
	const char *name = event_state_name(ev->last_state);

	KEY_STR(j, "lastState", name ? name : "", name ? strlen(name) : 0);
}

static void put_unfinished(struct json *j, const struct corr_event *ev)
{
	json_lit(j, ",\"unfinished\":true");
	put_last_state(j, ev);
	if (ev->silent)
		json_lit(j, ",\"silent\":true");
}

/* Who it is of and below what: the same in `event` and `open`. */
static void put_family(struct json *j, const struct proc *p, const struct corr_event *ev)
{
	KEY_U64(j, "myPid", p->id.ns_tgid);
	if (ev->pxn)
		KEY_I64(j, "originPid", ev->origin_pid);
	KEY_PTR(j, "parentObj", ev->start.s.parent);
	json_lit(j, ",\"eventAddr\":");
	json_hex(j, ev->id);
	if (!ev->pxn)
		KEY_PTR(j, "ctx", ev->start.s.ctx);
	else
		json_lit(j, ",\"isPxn\":true");
}

void trace__event(void *arg, const struct corr_event *ev)
{
	struct proc *p = arg;
	struct json j = trace_begin(p, EVENT_MAX);
	struct sched_join join;

	sched_join__of(&p->corr, ev, &join);
	summary__event(&p->session->summary, p, ev, &join);
	if (ev->what == SCOPE_COLL || ev->what == SCOPE_P2P)
		live__event(p, ev, &join);
	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"event\"");
	json_ready(&j, event_type_text(ev->what));
	KEY_STRING(&j, "func", func_id(ev));
	put_comm(&j, p, ev->comm, ev->pxn);
	json_lit(&j, ",\"start\":");
	put_where(&j, p, ev->start_ns, &ev->start_thread);
	if (ev->stopped) {
		json_lit(&j, ",\"stop\":");
		put_where(&j, p, ev->stop_ns, &ev->stop_thread);
		KEY_US(&j, "duration", ev->stop_ns - ev->start_ns);
	} else {
		json_lit(&j, ",\"stop\":null,\"duration\":null");
	}
	put_family(&j, p, ev);
	put_details(&j, p, ev);
	if (ev->stopped)
		put_exec(&j, ev);
	else
		put_unfinished(&j, ev);
	put_sched(&j, p, ev, &join);
	put_net(&j, p, ev, &join);
	if (ev->orphan)
		json_lit(&j, ",\"orphan\":true");
	if (ev->loss_near)
		KEY_U64(&j, "lossNear", ev->loss_near);
	json_char(&j, '}');
	trace_end(p, &j, OUT_EVENT);
}

/* Where an operation is, when NCCL has enqueued it or is about to. */
static void put_progress(struct json *j, struct proc *p, const struct corr_event *ev)
{
	const char *name = event_state_name(ev->last_state);

	put_last_state(j, ev);
	if (name)
		KEY_US(j, "lastStateTs", ev->last_state_ns);
	if (ev->stopped) {
		json_lit(j, ",\"stop\":");
		put_where(j, p, ev->stop_ns, &ev->stop_thread);
	}
	if (ev->what == SCOPE_COLL || ev->what == SCOPE_P2P || ev->what == SCOPE_PROXY_OP)
		KEY_U64(j, "openChildren", ev->open_children);
}

void trace__open(void *arg, const struct corr_event *ev, uint32_t more)
{
	struct proc *p = arg;
	struct json j = trace_begin(p, EVENT_MAX);
	const char *type = event_type_name(ev->what);
	uint64_t now = p->corr.now_ns;
	struct corr_event open = *ev;
	struct sched_join join;

	if (!j.at)
		return;
	open.stopped = false; /* NCCL's stop of an operation: it goes on */
	sched_join__now(&p->corr, ev, &join);
	json_lit(&j, "{\"recordType\":\"open\"");
	KEY_STR(&j, "eventType", type, strlen(type));
	KEY_STRING(&j, "func", func_id(ev));
	put_comm(&j, p, ev->comm, ev->pxn);
	json_lit(&j, ",\"start\":");
	put_where(&j, p, ev->start_ns, &ev->start_thread);
	KEY_US(&j, "ts", now);
	KEY_US(&j, "age", now - ev->start_ns);
	KEY_US(&j, "quiet", now - ev->hung.moved_ns);
	put_family(&j, p, ev);
	put_details(&j, p, ev);
	put_progress(&j, p, ev);
	put_sched(&j, p, ev, &join);
	put_net(&j, p, &open, &join);
	if (more)
		KEY_U64(&j, "more", more);
	json_char(&j, '}');
	trace_end(p, &j, OUT_OPEN);
}

/* What NCCL's argument means follows from the state. */
static void put_state_arg(struct json *j, const struct corr_state *st)
{
	switch (st->id) {
	case 9:	 /* ProxyStepSendWait */
	case 11: /* ProxyStepRecvFlushWait */
		KEY_U64(j, "transSize", st->arg);
		break;
	case 18: /* ProxyCtrlAppendEnd */
		KEY_I64(j, "appendedProxyOps", (int64_t)st->arg);
		break;
	case 21: /* NetPluginUpdate */
		KEY_PTR(j, "data", st->arg);
		break;
	case 22: /* KernelChStop */
	case 31: /* KernelPhaseStop */
		KEY_U64(j, "pTimer", st->arg);
		break;
	default: /* 0 to 7: ProxyOp of v1 to v3 */
		KEY_U64(j, "transSize", st->arg);
		KEY_U64(j, "steps", st->steps);
	}
}

void trace__state(void *arg, const struct corr_event *ev, const struct corr_state *st)
{
	const struct json_text *name = event_state_text(st->id);
	struct proc *p = arg;
	struct json j;

	if (!name) /* not NCCL's: the decoder has counted it */
		return;
	j = trace_begin(p, STATE_MAX);
	if (!j.at)
		return;
	p->session->summary.states++;
	json_lit(&j, "{\"recordType\":\"state\",\"eventAddr\":");
	json_hex(&j, ev->id);
	KEY_US(&j, "ts", st->ts_ns);
	json_ready(&j, name);
	put_thread(&j, p, &st->thread);
	if (st->has_arg)
		put_state_arg(&j, st);
	if (st->repeats) {
		KEY_U64(&j, "repeats", st->repeats);
		KEY_US(&j, "lastTs", st->last_ts_ns);
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_STATE);
}

/*
 * That of the plugin first, which it tells only where it could have been given. We came too late where it is not in the mask
 * though both we and the job's environment have it, and NCCL does (interface 3).
 */
static uint8_t why_no_kernels(const struct proc *p, const struct scope_comm *c)
{
	uint32_t wanted = p->has_ceiling ? p->session->mask & p->ceiling & KERNELS : 0;

	if (c->no_kernels || c->api < 3)
		return c->no_kernels;
	return wanted && !(c->mask & KERNELS) ? SCOPE_KERNELS_LATE : 0;
}

/* Why NCCL's mask has no KernelCh, which we wanted; NULL. */
static const char *no_kernel_ch(struct proc *p, const struct scope_comm *c)
{
	static const char *const texts[] = {[SCOPE_KERNELS_MAY_HANG] = "may-hang",
					    [SCOPE_KERNELS_SHM_FULL] = "shm-full",
					    [SCOPE_KERNELS_LATE] = "late"};
	uint8_t why = why_no_kernels(p, c);

	if (!why || why > SCOPE_KERNELS_LATE || !(p->session->keep & 1u << SCOPE_KERNEL_CH))
		return NULL;
	if (why == SCOPE_KERNELS_LATE)
		p->kernels_late = true;
	else /* no advice would help */
		p->no_kernels = why;
	return texts[why];
}

void trace__lifecycle(void *arg, const struct corr_comm *comm, bool init, uint64_t ts_ns,
		      const struct corr_thread *thread)
{
	const struct scope_comm *c = &comm->info;
	struct proc *p = arg;
	const char *why = no_kernel_ch(p, c);
	struct json j;

	if (init)
		p->comms_made++;
	else
		p->comms_finalized++;
	if (!p->header_written) {
		p->mask = c->mask;
		p->nccl_version = c->nccl_version;
	}
	j = trace_begin(p, EVENT_MAX);
	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"event\",\"type\":\"ProfilerLifecycle\"");
	if (init)
		json_lit(&j, ",\"func\":\"ProfilerInit\"");
	else
		json_lit(&j, ",\"func\":\"ProfilerFinalize\"");
	put_comm(&j, p, comm, false);
	json_lit(&j, ",\"start\":");
	put_where(&j, p, ts_ns, thread);
	json_lit(&j, ",\"stop\":");
	put_where(&j, p, ts_ns, thread);
	json_lit(&j, ",\"duration\":0.000");
	KEY_U64(&j, "myPid", p->id.ns_tgid);
	json_lit(&j, ",\"ctx\":");
	json_hex(&j, c->ctx);
	json_lit(&j, ",\"details\":{");
	json_lit(&j, "\"nranks\":");
	json_i64(&j, c->nranks);
	KEY_I64(&j, "nNodes", c->nnodes);
	KEY_STR(&j, "commName", c->name, strnlen(c->name, sizeof(c->name)));
	KEY_U64(&j, "eventMask", c->mask);
	KEY_U64(&j, "ncclApi", c->api);
	if (why)
		KEY_STR(&j, "noKernelCh", why, strlen(why));
	json_lit(&j, "}}");
	trace_end(p, &j, OUT_EVENT);
}

void trace__thread(struct proc *p, const struct thread *t, uint64_t stop_ns)
{
	static const char *const roles[] = {"other", "app", "proxy", "other"};
	struct json j = trace_begin(p, SLICE_MAX + STACK_MAX);

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"thread\"");
	KEY_U64(&j, "tid", t->tid);
	if (t->host_tid != t->tid)
		KEY_U64(&j, "hostTid", t->host_tid);
	KEY_STR(&j, "comm", t->comm, strnlen(t->comm, sizeof(t->comm)));
	KEY_STR(&j, "role", roles[t->role], strlen(roles[t->role]));
	KEY_US(&j, "start", t->start_ns);
	if (stop_ns) {
		KEY_US(&j, "stop", stop_ns);
		put_thread_sums(&j, p, t, stop_ns);
	}
	json_char(&j, '}');
	trace_end(p, &j, OUT_THREAD);
}

/* What the GPU that all communicators of the process are on is ahead of the node; of several, each event says its own. */
static void put_gpu_clock(struct json *j, const struct proc *p, uint64_t now_ns)
{
	const struct corr_comm *first = p->corr.comms, *comm;
	uint64_t error_ns;
	int64_t offset_ns;

	for (comm = first; comm; comm = comm->hh.next)
		if (comm->gpu != first->gpu)
			return;
	if (!first || !gpu_clock__offset(first->gpu, now_ns, &offset_ns, &error_ns))
		return;
	json_lit(j, ",\"gpu\":{\"offset\":");
	json_us_signed(j, -offset_ns);
	KEY_US(j, "error", error_ns);
	json_char(j, '}');
}

void trace__clock(struct proc *p, uint64_t now_ns)
{
	const struct realtime *real = &p->session->realtime;
	struct json j = trace_begin(p, STATE_MAX);

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"clock\"");
	KEY_US(&j, "ts", now_ns);
	json_lit(&j, ",\"realtimeOffset\":");
	json_us_signed(&j, real->offset_ns);
	KEY_US(&j, "error", real->error_ns + p->session->clock.last_error_ns);
	put_gpu_clock(&j, p, now_ns);
	json_char(&j, '}');
	trace_end(p, &j, OUT_CLOCK);
}

/* Where each cause strikes. */
static const char *const loss_where[LOSS_CAUSES] = {
	[LOSS_RING_FULL] = "ring buffer",
	[LOSS_THREAD_BUFFER] = "plugin, no memory for a buffer",
	[LOSS_ORPHAN] = "correlate, start lost",
	[LOSS_WRITE_ERROR] = "trace file",
	[LOSS_CONTEXT] = "ring buffer, kernel context",
	[LOSS_RATE_LIMIT] = "ring buffer, more than this process' share",
};

static void put_lost(struct proc *p, int cause, uint64_t n, uint64_t now_ns)
{
	uint64_t from = p->lost_from_ns ? p->lost_from_ns : p->begin_ns;
	struct json j = account_begin(p);

	if (!j.at)
		return;
	json_lit(&j, "{\"recordType\":\"lost\"");
	KEY_US(&j, "from", from);
	/* A process whose records come late is behind what was told before. */
	KEY_US(&j, "to", now_ns > from ? now_ns : from);
	KEY_U64(&j, "n", n);
	KEY_STR(&j, "cause", loss_names[cause], strlen(loss_names[cause]));
	KEY_STR(&j, "where", loss_where[cause], strlen(loss_where[cause]));
	json_char(&j, '}');
	trace_end(p, &j, OUT_LOST);
	p->lost_reported[cause] += n;
}

/*
 * Somebody has deleted the file, with its directory perhaps. What it had is lost, and the recording goes on in
 * a new one, which tells all losses anew: its footer sums up what it holds.
 */
static void start_over(struct proc *p)
{
	uint64_t lost;

	out_file__flush(&p->out);
	lost = p->out.write_lost + out_file__lines(&p->out);
	pr_warn("'%s' was deleted, continuing in a new file; its %llu lines are counted as lost\n",
		p->out.path, (unsigned long long)out_file__lines(&p->out));
	out_file__close(&p->out);
	p->out.write_lost = lost;
	p->header_written = false;
	p->header_next_ns = 0;
	p->lost_from_ns = 0;
	memset(p->lost_reported, 0, sizeof(p->lost_reported));
}

void trace__lost(struct proc *p, uint64_t now_ns, bool last)
{
	uint64_t reported[LOSS_CAUSES];
	int cause;

	if (out_file__is_gone(&p->out))
		start_over(p);
	/* While the disk is full this would be lost too; at the end it is now or never. */
	if (p->out.write_lost && (last || !p->out.failing)) {
		proc__count_loss(p, LOSS_WRITE_ERROR, p->out.write_lost);
		p->out.write_lost = 0;
	}
	memcpy(reported, p->lost_reported, sizeof(reported));
	if (memcmp(reported, p->lost, sizeof(reported))) {
		if (!last)
			out_file__flush(&p->out);
		for (cause = 0; cause < LOSS_CAUSES; cause++)
			if (p->lost[cause] > reported[cause])
				put_lost(p, cause, p->lost[cause] - reported[cause], now_ns);
		/* Those that did not reach the file are told again: the footer sums up what it holds. */
		if (!last && out_file__flush(&p->out)) {
			memcpy(p->lost_reported, reported, sizeof(reported));
			return;
		}
	}
	if (p->header_written)
		p->lost_from_ns = now_ns;
}

void trace__footer(struct proc *p, const char *how, bool exited, int exit_code)
{
	const char *sep = "";
	struct json j;
	int i;

	/*
	 * What is still in the buffer may not reach the file; the counts must be the file's. The lost
	 * records go out with the footer: both or none.
	 */
	out_file__flush(&p->out);
	p->header_next_ns = 0;
	trace__lost(p, p->corr.now_ns, true);
	j = account_begin(p);
	if (!j.at) {
		if (p->header_written && !p->session->mute)
			proc__count_loss(p, LOSS_WRITE_ERROR, 1);
		return;
	}
	json_lit(&j, "{\"recordType\":\"footer\"");
	KEY_STR(&j, "end", how, strlen(how));
	if (exited)
		KEY_I64(&j, "exitCode", exit_code);
	if (p->oom)
		KEY_BOOL(&j, "oom", 1);
	json_lit(&j, ",\"counts\":{");
	for (i = 0; i < OUT_FOOTER; i++, sep = ",") {
		json_raw(&j, sep, strlen(sep));
		json_str(&j, out_kind_names[i], strlen(out_kind_names[i]));
		json_char(&j, ':');
		json_u64(&j, p->out.counts[i]);
	}
	json_lit(&j, "},\"lost\":{");
	for (i = 0, sep = ""; i < LOSS_CAUSES; i++) {
		if (!p->lost_reported[i])
			continue;
		json_raw(&j, sep, strlen(sep));
		json_str(&j, loss_names[i], strlen(loss_names[i]));
		json_char(&j, ':');
		json_u64(&j, p->lost_reported[i]);
		sep = ",";
	}
	json_lit(&j, "},\"self\":{\"cpu\":");
	json_us(&j, p->session->self.cpu_ns);
	KEY_U64(&j, "peakMemory", p->session->self.peak_bytes);
	if (p->session->self.skipped != INPUT_SKIPPED_UNKNOWN)
		KEY_U64(&j, "skipped", p->session->self.skipped);
	json_lit(&j, "}}");
	trace_end(p, &j, OUT_FOOTER);
	p->out.ending = true;
	/* Nobody will tell of it in this file any more: who recorded has to know. */
	if (out_file__flush(&p->out))
		proc__count_loss(p, LOSS_WRITE_ERROR, 1);
}
