// SPDX-License-Identifier: BSD-2-Clause
/* Inputs in, into decode, correlate and the writer; see pipeline.h. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "decode.h"
#include "decode_net.h"
#include "decode_sched.h"
#include "digest.h"
#include "header.h"
#include "nccl_names.h"
#include "nccl_profiler.h"
#include "pipeline.h"
#include "raw.h"
#include "trace.h"

#define END_NS	    (100 * 1000000ull) /* after a process' end, for its other threads' last records */
#define NET_END_NS  NSEC_PER_SEC /* the same, while its connections' last figures are not in */
#define DEAF_NS	    (600 * 1000000ull) /* buffers are read each 200 ms */
#define DEAF_MAX_NS (10 * NSEC_PER_SEC)
#define ERRNO_MAX   4095 /* the kernel's MAX_ERRNO */
#define TRIM_BYTES  (16u << 20)
#define TRIM_LOOKS  10 /* counting what is free takes milliseconds, where there are many pieces */
#define PROC_BYTES  (sizeof(struct proc) + (96 << 10)) /* with its buffers */

/* ---- A session --------------------------------------------------------------------------------- */

/* A half for events, a quarter for threads' time, an eighth for processes; the rest for flows and all that is small. */
static void share_memory(struct session *s, uint64_t bytes)
{
	uint64_t procs = bytes / 8 / PROC_BYTES;

	s->memory.max = bytes / 2;
	s->sched.room_max = bytes / 4;
	s->procs_max = procs < UINT32_MAX ? (uint32_t)procs : UINT32_MAX;
}

static void set_features(struct session *s, const struct input_session *in)
{
	s->sched_mode = in->sched_mode;
	s->net_mode = in->net_mode;
	s->counters = in->counters;
	s->self.skipped = INPUT_SKIPPED_UNKNOWN;
	s->features = (struct attach_features){.sched = in->sched_mode,
					       .irq = in->features & INPUT_IRQ,
					       .quota = in->features & INPUT_QUOTA,
					       .why = in->features & INPUT_WHY,
					       .woken = in->features & INPUT_WOKEN,
					       .net = in->net_mode,
					       .net_calls = in->features & INPUT_NET_CALLS,
					       .no_data = in->features &
							  (INPUT_NET_CALLS | INPUT_NO_DATA),
					       .drops = in->features & INPUT_DROPS,
					       .drop_reasons = in->features & INPUT_DROP_REASONS};
}

static void set_host(struct session *s, const struct input_session *in)
{
	struct host *h = &s->host;

	memcpy(h->boot_id, in->boot_id, sizeof(h->boot_id));
	memcpy(h->node, in->node, sizeof(h->node) - 1);
	memcpy(h->release, in->release, sizeof(h->release) - 1);
	memcpy(h->machine, in->machine, sizeof(h->machine) - 1);
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

static bool session_makes_sense(const struct input_session *in)
{
	return in->cpus && in->cpus <= INPUT_CPUS_MAX && in->sched_mode <= SCHED_MODE_SLICES &&
	       in->net_mode <= NET_MODE_FLOWS && in->counters <= 1 &&
	       in->clock <= SCOPE_CLOCK_CNTVCT && is_text(in->stamp, sizeof(in->stamp)) &&
	       (!in->stamp[0] || name_is_safe(in->stamp)) &&
	       is_text(in->boot_id, sizeof(in->boot_id)) && in->boot_id[0] &&
	       is_text(in->node, sizeof(in->node)) && is_text(in->release, sizeof(in->release)) &&
	       is_text(in->machine, sizeof(in->machine));
}

static int session_begin(struct session *s, const struct input_session *in)
{
	int err;

	if (s->begun || !session_makes_sense(in))
		return -EINVAL;
	err = sched__init(&s->sched, in->cpus);
	if (err)
		return err;
	err = clock_fit__init(&s->clock, in->clock);
	if (err)
		return err;
	s->attach_ns = in->attach_ns;
	s->ring_bytes = in->ring_bytes;
	s->collectives = in->collectives;
	s->mask = in->mask;
	s->keep = event_mask_closure(in->mask);
	s->realtime = (struct realtime){in->realtime_offset_ns, in->realtime_error_ns};
	memcpy(s->stamp, in->stamp, sizeof(s->stamp));
	set_features(s, in);
	set_host(s, in);
	decode_net__init(s, in->jiffy_ns);
	share_memory(s, in->memory_bytes);
	s->begun = true;
	return 0;
}

void pipeline__free(struct session *s)
{
	struct out_dir *d, *tmp;

	pipeline_node_free(s);
	sched__free(&s->sched);
	clock_fit__free(&s->clock);
	decode_net__free(s);
	symbols__free(&s->symbols);
	rdma__free(&s->rdma);
	summary__free(&s->summary);
	HASH_ITER (hh, s->dirs, d, tmp) {
		HASH_DEL(s->dirs, d);
		close(d->fd);
		free(d);
	}
	memset(s, 0, sizeof(*s));
}

/* Whoever was kept from its CPU had seconds more to hold for once, and it is in pieces now that something lives between. */
static bool much_is_free(void)
{
	struct mallinfo2 heap = mallinfo2();

	return heap.fordblks > TRIM_BYTES && heap.fordblks > heap.uordblks / 4;
}

void pipeline__trim(struct session *s)
{
	if (s->trim || (++s->trims % TRIM_LOOKS == 0 && much_is_free()))
		malloc_trim(0);
	s->trim = false;
}

/* ---- Processes --------------------------------------------------------------------------------- */

static int on_proc(struct session *s, const void *data, size_t size)
{
	const struct input_proc *in = data;
	size_t text = size - sizeof(*in);
	struct proc *p;
	int err = 0;

	if (!(in->flags & INPUT_HAS_WHO) != !text)
		return -EINVAL;
	p = proc__get(s, &in->id, true);
	if (!p)
		return 0; /* one too many: said, and counted with its records */
	if (text)
		err = who__set(&p->who, in->who, (const char *)(in + 1), text);
	p->from_start = p->corr.from_start = in->flags & INPUT_FROM_START;
	p->begin_ns = in->begin_ns;
	p->corr.first_id = in->first_id;
	if (in->flags & INPUT_CEILING) {
		p->has_ceiling = true;
		p->ceiling = (uint16_t)in->ceiling;
	}
	return err;
}

/* The communicator is as the job's memory has it: where that makes no sense, the input still does. */
static int on_comm(struct session *s, const struct input_comm *in)
{
	struct proc *p = proc__find(s, in->tgid, in->start_ns);
	struct scope_comm comm = in->comm;
	struct corr_thread thread;

	comm.name[sizeof(comm.name) - 1] = 0;
	if (!p)
		return 0;
	if (!comm.ctx || comm.api < 1 || comm.api > 7) {
		s->bad_records++;
		p->corr.counts.malformed++;
		return 0;
	}
	if (comm.api >= 3 && !comm.no_kernels && comm.mask & KERNELS && in->kernels_off)
		comm.no_kernels = SCOPE_KERNELS_LATE;
	thread = (struct corr_thread){.tid = p->id.ns_tid, .host_tid = p->id.tid};
	correlate__comm(&p->corr, &comm, p->begin_ns, &thread);
	return 0;
}

/* What lies in the ring behind it may have ended the process. */
static int on_outside(struct session *s, const void *data, size_t size)
{
	const struct scope_ev_chunk *c = data;

	if (proc__get(s, &c->h, false))
		decode__chunk(s, c, size);
	return 0;
}

static int on_end(struct session *s, const struct input_end *in)
{
	struct proc *p = proc__find(s, in->tgid, in->start_ns);

	if (!p)
		return 0;
	p->limited_recs = in->limited_recs;
	proc__count_loss(p, LOSS_CONTEXT, in->context_lost);
	if (in->unseen) {
		decode__tail_loss(p, in->lost_recs);
		proc__end(p, "exit", false, 0);
		return 0;
	}
	decode__end(p, in->status, in->exec, in->lost_recs);
	return 0;
}

static int on_tail(struct session *s, const struct input_end *in)
{
	struct proc *p = proc__find(s, in->tgid, in->start_ns);

	if (!p) {
		decode__untold_loss(s, in->lost_recs, in->limited_recs);
		return 0;
	}
	p->limited_recs = in->limited_recs;
	proc__count_loss(p, LOSS_CONTEXT, in->context_lost);
	decode__tail_loss(p, in->lost_recs);
	return 0;
}

/* ---- Threads, connections ---------------------------------------------------------------------- */

static int on_still(struct session *s, const struct input_still *in)
{
	struct sched_thread *t = sched__find(&s->sched, in->tid);

	if (t && in->gone)
		decode_sched__gone(s, t);
	else if (t)
		sched__still(&s->sched, t, in->seq, in->wait_ns, in->cpu, in->now_ns);
	return 0;
}

static int on_counted(struct session *s, const struct input_counted *in)
{
	struct sched_thread *t = sched__find(&s->sched, in->tid);

	if (t)
		decode_sched__counted(s, t, in->seq);
	return 0;
}

static int on_name(struct session *s, enum input_kind kind, const void *data, size_t size)
{
	const struct input_name *in = data;
	char name[SCOPE_SYMBOL_LEN];

	if (in->len >= sizeof(name) || size != sizeof(*in) + in->len)
		return -EINVAL;
	memcpy(name, in + 1, in->len);
	name[in->len] = 0;
	if (kind == INPUT_SYMBOL)
		return symbols__add(&s->symbols, in->number, name) == -ENOMEM ? -ENOMEM : 0;
	return in->number < NET_REASONS_MAX
		       ? net_names__add_reason(&s->net.names, (uint32_t)in->number, name)
		       : -EINVAL;
}

static int on_flows(struct session *s, const void *data, size_t size)
{
	const struct input_flows *in = data;

	if (in->err > 0 || in->err < -ERRNO_MAX ||
	    in->n != (size - sizeof(*in)) / sizeof(struct scope_flow_sample) ||
	    (size - sizeof(*in)) % sizeof(struct scope_flow_sample))
		return -EINVAL;
	decode_net__samples(s, in->now_ns, (const struct scope_flow_sample *)(in + 1), in->n,
			    in->err);
	return 0;
}

/* ---- Time goes by ------------------------------------------------------------------------------ */

/* Its other threads' last records are in, and what its connections did until then. */
static bool has_ended(const struct session *s, const struct proc *p, uint64_t now)
{
	bool net = s->net_mode && s->net.flows.complete_ns < p->ended_ns;

	return now >= p->ended_ns + (net ? NET_END_NS : END_NS);
}

/*
 * Threads that are silent keep records in their buffers, which are read from outside: up to when all that there is has come
 * in. Where that fails for a while, time stands still, or what comes after it would be too late; not for good.
 */
static uint64_t heard_until(const struct proc *p, uint64_t now)
{
	uint64_t heard = now;
	const struct stream *st;

	for (st = p->streams; st; st = st->hh.next)
		if (st->outside && st->seen_ns < heard)
			heard = st->seen_ns;
	return now - heard > DEAF_NS && now - heard < DEAF_MAX_NS ? heard + DEAF_NS : now;
}

/*
 * When the recorder is behind (`late`: it was kept from running, or the jobs are faster), a process' time goes on with
 * its records, or what is still in the ring would come too late.
 */
static void tick_proc(struct proc *p, const struct input_tick *in)
{
	bool late = in->flags & INPUT_LATE;

	correlate__tick(&p->corr, late ? p->corr.now_ns : heard_until(p, in->now_ns));
	if (!p->header_written)
		return;
	if (in->flags & INPUT_CLOCKS)
		trace__clock(p, in->now_ns);
	if (in->flags & INPUT_FOLLOW) {
		trace__lost(p, in->now_ns, false);
		out_file__push(&p->out);
	}
}

static int on_tick(struct session *s, const struct input_tick *in)
{
	struct proc *p, *tmp;

	s->realtime = (struct realtime){in->realtime_offset_ns, in->realtime_error_ns};
	decode_net__tick(s, in->now_ns, !(in->flags & INPUT_LATE));
	HASH_ITER (hh, s->procs, p, tmp) {
		if (p->ended_ns && has_ended(s, p, in->now_ns))
			decode__end(p, p->end_status, false, p->end_lost_recs);
		else
			tick_proc(p, in);
	}
	if (in->flags & INPUT_FOLLOW)
		decode_sched__tick(s, in->now_ns);
	return 0;
}

static int on_hung(struct session *s)
{
	struct proc *p, *tmp;

	HASH_ITER (hh, s->procs, p, tmp) {
		if (p->ended_ns || !hung__due(&p->corr))
			continue;
		hung__tell(&p->corr);
		out_file__push(&p->out);
	}
	return 0;
}

static int on_cut(struct session *s, const struct input_ns *in)
{
	struct proc *p, *tmp;

	HASH_ITER (hh, s->procs, p, tmp)
		correlate__cut(&p->corr, in->ns);
	return 0;
}

static int on_finish(struct session *s, const struct input_finish *in)
{
	struct proc *p, *tmp;
	const char *how;

	if (!is_text(in->how, sizeof(in->how)))
		return -EINVAL;
	if (s->sched_mode)
		decode_sched__end(s, in->end_ns);
	HASH_ITER (hh, s->procs, p, tmp) {
		if (p->ended_ns) {
			decode__end(p, p->end_status, false, p->end_lost_recs);
			continue;
		}
		p->corr.now_ns = in->end_ns;
		how = p->comms_made && p->comms_finalized == p->comms_made ? "finalize" : in->how;
		proc__end(p, how, false, 0);
	}
	s->finished = true;
	return 0;
}

/* ---- The door ---------------------------------------------------------------------------------- */

/* What is fixed of each kind; `more`: something may follow. */
static const struct {
	uint32_t size;
	bool more;
} sizes[INPUT_KINDS] = {
	[INPUT_SESSION] = {sizeof(struct input_session), false},
	[INPUT_ATTACHED] = {sizeof(struct input_ns), false},
	[INPUT_CLOCK] = {sizeof(struct input_clock), false},
	[INPUT_RING] = {sizeof(struct scope_ev_short), true},
	[INPUT_OUTSIDE] = {sizeof(struct scope_ev_chunk), true},
	[INPUT_PROC] = {sizeof(struct input_proc), true},
	[INPUT_COMM] = {sizeof(struct input_comm), false},
	[INPUT_STILL] = {sizeof(struct input_still), false},
	[INPUT_COUNTED] = {sizeof(struct input_counted), false},
	[INPUT_END] = {sizeof(struct input_end), false},
	[INPUT_REASON] = {sizeof(struct input_name), true},
	[INPUT_SYMBOL] = {sizeof(struct input_name), true},
	[INPUT_FLOWS] = {sizeof(struct input_flows), true},
	[INPUT_TICK] = {sizeof(struct input_tick), false},
	[INPUT_HUNG] = {0, false},
	[INPUT_SELF] = {offsetof(struct input_self, skipped), true},
	[INPUT_NODE] = {sizeof(struct input_node), true},
	[INPUT_NETDEV] = {sizeof(struct input_netdev), true},
	[INPUT_NODE_OF] = {sizeof(struct input_node_of), false},
	[INPUT_RDMA] = {sizeof(struct input_rdma), true},
	[INPUT_RDMA_OF] = {sizeof(struct input_rdma_of), false},
	[INPUT_CUT] = {sizeof(struct input_ns), false},
	[INPUT_LINE] = {sizeof(struct input_ns), false},
	[INPUT_COMPLETE] = {0, false},
	[INPUT_TAIL] = {sizeof(struct input_end), false},
	[INPUT_FINISH] = {sizeof(struct input_finish), false},
	[INPUT_KMSG] = {sizeof(struct input_kmsg), true},
	[INPUT_GPU] = {sizeof(struct gpu_sample), false},
};

static int on_self(struct session *s, const void *data, size_t size)
{
	struct input_self self = {.skipped = INPUT_SKIPPED_UNKNOWN};

	memcpy(&self, data, size < sizeof(self) ? size : sizeof(self));
	if (size < sizeof(self))
		self.skipped = INPUT_SKIPPED_UNKNOWN;
	s->self = (struct self_cost){self.cpu_ns, self.peak_bytes, self.skipped};
	if (self.skipped != INPUT_SKIPPED_UNKNOWN)
		s->summary.skipped = self.skipped;
	return 0;
}

static int apply_other(struct session *s, enum input_kind kind, const void *data, size_t size)
{
	const struct input_clock *clock = data;
	const struct input_ns *at = data;

	switch (kind) {
	case INPUT_ATTACHED:
		s->attached_ns = at->ns;
		return 0;
	case INPUT_CLOCK:
		clock_fit__add(&s->clock, clock->ticks, clock->ns);
		return 0;
	case INPUT_SELF:
		return on_self(s, data, size);
	case INPUT_LINE:
		s->end_ns = at->ns;
		return 0;
	case INPUT_COMPLETE:
		decode_net__complete(s);
		return 0;
	case INPUT_NODE:
		return pipeline_node(s, data, size);
	case INPUT_NETDEV:
		return pipeline_netdev(s, data, size);
	case INPUT_NODE_OF:
		return pipeline_node_of(s, data);
	case INPUT_RDMA:
		return pipeline_rdma(s, data, size);
	case INPUT_RDMA_OF:
		return pipeline_rdma_of(s, data);
	case INPUT_KMSG:
		return pipeline_kmsg(s, data, size);
	case INPUT_GPU:
		return pipeline_gpu(s, data);
	default:
		return -EINVAL;
	}
}

int pipeline__apply(struct session *s, enum input_kind kind, const void *data, size_t size)
{
	if ((uint32_t)kind >= INPUT_KINDS || size < sizes[kind].size ||
	    (size > sizes[kind].size && !sizes[kind].more) || s->begun != (kind != INPUT_SESSION) ||
	    s->finished)
		return -EINVAL;
	switch (kind) {
	case INPUT_RING:
		decode__event(s, data, size);
		return 0;
	case INPUT_SESSION:
		return session_begin(s, data);
	case INPUT_OUTSIDE:
		return on_outside(s, data, size);
	case INPUT_PROC:
		return on_proc(s, data, size);
	case INPUT_COMM:
		return on_comm(s, data);
	case INPUT_STILL:
		return on_still(s, data);
	case INPUT_COUNTED:
		return on_counted(s, data);
	case INPUT_END:
		return on_end(s, data);
	case INPUT_TAIL:
		return on_tail(s, data);
	case INPUT_REASON:
	case INPUT_SYMBOL:
		return on_name(s, kind, data, size);
	case INPUT_FLOWS:
		return on_flows(s, data, size);
	case INPUT_TICK:
		return on_tick(s, data);
	case INPUT_HUNG:
		return on_hung(s);
	case INPUT_CUT:
		return on_cut(s, data);
	case INPUT_FINISH:
		return on_finish(s, data);
	default:
		return apply_other(s, kind, data, size);
	}
}

/* What the kernel did to threads and connections, and how much of it there was to be: a recorder needs none of it. */
static bool is_for_traces(enum input_kind kind, const void *data, size_t size)
{
	const struct scope_ev_short *h = data;

	if (kind != INPUT_RING || size < sizeof(*h))
		return kind == INPUT_COUNTED || kind == INPUT_KMSG || kind == INPUT_GPU;
	switch (h->kind) {
	case SCOPE_EV_SWITCH:
	case SCOPE_EV_SWITCHES:
	case SCOPE_EV_MIGRATE:
	case SCOPE_EV_WOKEN:
	case SCOPE_EV_STACK:
	case SCOPE_EV_IRQ:
	case SCOPE_EV_FLOW:
	case SCOPE_EV_USES:
	case SCOPE_EV_RETRANS:
	case SCOPE_EV_DROP:
	case SCOPE_EV_SIGNAL:
		return true;
	default:
		return false;
	}
}

void pipeline__feed(struct session *s, enum input_kind kind, const void *data, size_t size)
{
	if (s->raw)
		raw_writer__put(s->raw, kind, data, size);
	if (s->digest)
		digest__put(s->digest, kind, data, size);
	if (!is_for_traces(kind, data, size))
		pipeline__apply(s, kind, data, size);
}
