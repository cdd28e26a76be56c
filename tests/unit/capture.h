/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small capture that has a record of every kind, fed into a session, for the test of captures and for the seeds of
 * their fuzzer.
 */
#ifndef NCCLSCOPE_TESTS_CAPTURE_H
#define NCCLSCOPE_TESTS_CAPTURE_H

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "pipeline.h"

#define CAPTURE_PID 4194001u
#define CAPTURE_MS  1000000ull

typedef void (*capture_feed_fn)(void *arg, enum input_kind kind, const void *data, size_t size);

struct capture_maker {
	capture_feed_fn feed;
	void *arg;
	uint64_t now;
	uint64_t pos, rec_pos, id;
};

static inline void capture_session(struct capture_maker *m)
{
	struct input_session in = {.attach_ns = m->now,
				   .ring_bytes = 1 << 20,
				   .memory_bytes = 64 << 20,
				   .jiffy_ns = 4000000,
				   .realtime_offset_ns = 1700000000000000000,
				   .mask = 0xffff,
				   .cpus = 4,
				   .features = 63,
				   .sched_mode = SCHED_MODE_SLICES,
				   .net_mode = NET_MODE_FLOWS,
				   .counters = 1,
				   .clock = SCOPE_CLOCK_MONOTONIC,
				   .stamp = "20260101-000000",
				   .boot_id = "00000000-1111-2222-3333-444444444444",
				   .node = "node7",
				   .release = "6.18.0"};
	struct utsname un;

	uname(&un);
	snprintf(in.machine, sizeof(in.machine), "%.60s", un.machine);
	m->feed(m->arg, INPUT_SESSION, &in, sizeof(in));
}

static inline struct scope_ev_hdr capture_hdr(const struct capture_maker *m, uint16_t kind,
					      size_t size)
{
	return (struct scope_ev_hdr){.abi = SCOPE_ABI,
				     .kind = kind,
				     .size = (uint32_t)size,
				     .ts_ns = m->now,
				     .start_ns = 10,
				     .tgid = CAPTURE_PID,
				     .tid = CAPTURE_PID,
				     .ns_tgid = 5,
				     .ns_tid = 5,
				     .comm = "job"};
}

static inline void capture_proc(struct capture_maker *m)
{
	static const char args[] = "python3\0train.py", env[] = "RANK=3\0SLURM_JOB_ID=77";
	static const char cgroup[] = "/job", id[] = "c0ffee";
	struct {
		struct input_proc in;
		char text[64];
	} p = {.in = {.id = capture_hdr(m, SCOPE_EV_CHUNK, 0), .begin_ns = 20}};
	char *at = p.text;

	p.in.flags = INPUT_HAS_WHO;
	p.in.who[WHO_ARGS] = sizeof(args);
	p.in.who[WHO_ENV] = sizeof(env);
	p.in.who[WHO_CGROUP] = sizeof(cgroup) - 1;
	p.in.who[WHO_BUILD_ID] = sizeof(id) - 1;
	at = (char *)memcpy(at, args, sizeof(args)) + sizeof(args) + 1;
	at = (char *)memcpy(at, env, sizeof(env)) + sizeof(env) + 1;
	at = (char *)memcpy(at, cgroup, sizeof(cgroup)) + sizeof(cgroup);
	at = (char *)memcpy(at, id, sizeof(id)) + sizeof(id);
	m->feed(m->arg, INPUT_PROC, &p, sizeof(p.in) + (size_t)(at - p.text));
}

/* An operation of a communicator: one chunk with both ends of it. */
static inline void capture_chunk(struct capture_maker *m, enum input_kind kind)
{
	struct {
		struct scope_ev_chunk c;
		struct scope_rec_coll start;
		struct scope_rec_hdr stop;
	} x = {.c = {.h = capture_hdr(m, SCOPE_EV_CHUNK, sizeof(x)),
		     .tbuf = 1,
		     .pos = m->pos,
		     .rec_pos = m->rec_pos,
		     .len = sizeof(x.start) + sizeof(x.stop),
		     .rec_cnt = 2,
		     .tag = 7,
		     .clock = SCOPE_CLOCK_MONOTONIC}};
	uint64_t id = 7ull << SCOPE_ID_TAG_SHIFT | (uint64_t)SCOPE_COLL << SCOPE_ID_COUNTER_BITS |
		      ++m->id;

	x.start.s.h.size = sizeof(x.start);
	x.start.s.h.kind = SCOPE_REC_START;
	x.start.s.h.ts = m->now - 1000;
	x.start.s.h.id = id;
	x.start.s.ctx = 9;
	x.stop.size = sizeof(x.stop);
	x.stop.kind = SCOPE_REC_STOP;
	x.stop.ts = m->now - 500;
	x.stop.id = id;
	m->feed(m->arg, kind, &x, sizeof(x));
	m->pos += x.c.len;
	m->rec_pos += 2;
}

static inline void capture_comm(struct capture_maker *m)
{
	const struct input_comm in = {
		.start_ns = 10,
		.tgid = CAPTURE_PID,
		.comm = {.ctx = 9, .hash = 42, .nranks = 2, .api = 5, .name = "world"}};

	m->feed(m->arg, INPUT_COMM, &in, sizeof(in));
}

static inline void capture_sched(struct capture_maker *m)
{
	const struct scope_ev_thread t = {.h = {SCOPE_ABI, SCOPE_EV_THREAD, sizeof(t), m->now},
					  .start_ns = 10,
					  .tgid = CAPTURE_PID,
					  .tid = CAPTURE_PID,
					  .ns_tgid = 5,
					  .ns_tid = 5,
					  .seq = 1,
					  .state = SCOPE_TASK_BLOCKED,
					  .comm = "job"};
	const struct input_still still = {.now_ns = m->now + 1000, .tid = CAPTURE_PID, .seq = 1};
	const struct input_counted counted = {.tid = CAPTURE_PID, .seq = 1};

	m->feed(m->arg, INPUT_RING, &t, sizeof(t));
	m->feed(m->arg, INPUT_STILL, &still, sizeof(still));
	m->feed(m->arg, INPUT_COUNTED, &counted, sizeof(counted));
}

static inline void capture_name(struct capture_maker *m, enum input_kind kind, uint64_t number,
				const char *name)
{
	struct {
		struct input_name in;
		char text[32];
	} x = {.in = {.number = number, .len = (uint32_t)strlen(name)}};

	memcpy(x.text, name, x.in.len);
	m->feed(m->arg, kind, &x, sizeof(x.in) + x.in.len);
}

static inline void capture_flows(struct capture_maker *m)
{
	const struct scope_tuple tuple = {.local = {[10] = 0xff, 0xff, 10, 0, 0, 1},
					  .remote = {[10] = 0xff, 0xff, 10, 0, 0, 2},
					  .local_port = 1000,
					  .remote_port = 2000};
	const struct scope_ev_flow flow = {.h = {SCOPE_ABI, SCOPE_EV_FLOW, sizeof(flow), m->now},
					   .sk = 1,
					   .since_ns = m->now,
					   .tgid = CAPTURE_PID,
					   .tid = CAPTURE_PID,
					   .why = SCOPE_FLOW_OPEN,
					   .tuple = tuple,
					   .tcp = {.state = 1}};
	const struct scope_ev_drop drop = {.h = {SCOPE_ABI, SCOPE_EV_DROP, sizeof(drop), m->now},
					   .sk = 1,
					   .location = 0x1000,
					   .reason = 3,
					   .len = 100,
					   .tuple = tuple};
	struct {
		struct input_flows in;
		struct scope_flow_sample x;
	} all = {.in = {.now_ns = m->now, .n = 1},
		 .x = {.sk = 1, .since_ns = m->now, .ts_ns = m->now, .tgid = CAPTURE_PID}};

	capture_name(m, INPUT_REASON, 3, "NETFILTER_DROP");
	capture_name(m, INPUT_SYMBOL, 0x1000, "nf_hook_slow");
	m->feed(m->arg, INPUT_RING, &flow, sizeof(flow));
	m->feed(m->arg, INPUT_RING, &drop, sizeof(drop));
	m->feed(m->arg, INPUT_FLOWS, &all, sizeof(all));
}

static inline void capture_tick(struct capture_maker *m, uint64_t ms, uint32_t flags)
{
	const struct input_self self = {.cpu_ns = m->now, .peak_bytes = 4096, .skipped = 7};
	struct input_tick in = {.realtime_offset_ns = 1700000000000000000, .flags = flags};

	m->now += ms * CAPTURE_MS;
	in.now_ns = m->now;
	m->feed(m->arg, INPUT_SELF, &self, sizeof(self));
	m->feed(m->arg, INPUT_TICK, &in, sizeof(in));
	m->feed(m->arg, INPUT_HUNG, NULL, 0);
}

static inline void capture_node(struct capture_maker *m)
{
	const struct {
		struct input_kmsg in;
		char text[16];
	} log = {.in = {.ns = m->now, .level = 3, .len = 12, .sign = KMSG_GPU},
		 .text = "NVRM: Xid 79"};
	struct {
		struct input_node in;
		struct input_cpu cpus[2];
	} node = {.in = {.now_ns = m->now, .flags = 0x1ff, .ncpus = 2, .processed = m->id},
		  .cpus = {{.busy = m->now, .flags = INPUT_CPU_KNOWN | INPUT_CPU_NET_RX}}};
	struct {
		struct input_netdev in;
		struct netdev_dev dev;
	} netdev = {.in = {.now_ns = m->now, .netns = 4, .n = 1}, .dev = {.name = "eth0"}};
	const struct input_node_of of = {
		.start_ns = 10, .netns = 4, .periods = m->id, .tgid = CAPTURE_PID, .flags = 1};

	struct gpu_sample gpu = {.ns = m->now,
				 .known = 1ull << GPU_SM_CLOCK | 1ull << GPU_HELD_SW_POWER_CAP,
				 .name = "GPU"};

	memcpy(gpu.uuid, "82ff807f-dead-beef-9988-c0ffee0ab0f1", sizeof(gpu.uuid));
	gpu.value[GPU_SM_CLOCK] = 1980;
	gpu.value[GPU_HELD_SW_POWER_CAP] = m->now / 2;
	netdev.dev.v[NETDEV_RX_DROPPED] = m->id;
	m->feed(m->arg, INPUT_KMSG, &log, sizeof(log.in) + log.in.len);
	m->feed(m->arg, INPUT_GPU, &gpu, sizeof(gpu));
	m->feed(m->arg, INPUT_NODE, &node, sizeof(node));
	m->feed(m->arg, INPUT_NETDEV, &netdev, sizeof(netdev));
	m->feed(m->arg, INPUT_NODE_OF, &of, sizeof(of));
}

/* A port's row; the first time, what its counter is called. */
static inline void capture_rdma(struct capture_maker *m, bool first)
{
	const struct input_rdma_of of = {.start_ns = 10, .devices = 1, .tgid = CAPTURE_PID};
	struct {
		struct input_rdma in;
		struct input_port port;
		struct input_counter counter;
		uint64_t total;
	} x = {.in = {.rdma_ns = m->now, .nports = 1},
	       .port = {.begin_ns = m->now - 10,
			.end_ns = m->now,
			.moves = m->id,
			.device = "mlx5_0",
			.nr = 1,
			.flags = INPUT_PORT_HERE | INPUT_PORT_ROW,
			.ncounters = 1,
			.first_new = !first},
	       .counter = {.name = "symbol_error"},
	       .total = m->id};
	size_t size = sizeof(x);

	if (!first) {
		memcpy(&x.counter, &x.total, sizeof(x.total));
		size -= sizeof(x.counter);
	}
	m->feed(m->arg, INPUT_RDMA_OF, &of, sizeof(of));
	m->feed(m->arg, INPUT_RDMA, &x, size);
}

static inline void capture_end(struct capture_maker *m)
{
	const struct input_finish finish = {.end_ns = m->now, .how = "detached"};
	const struct input_end end = {.start_ns = 10, .lost_recs = 3, .tgid = CAPTURE_PID};
	const struct input_end other = {.start_ns = 11, .tgid = CAPTURE_PID};
	const struct input_ns ns = {.ns = m->now};

	m->feed(m->arg, INPUT_CUT, &ns, sizeof(ns));
	m->feed(m->arg, INPUT_LINE, &ns, sizeof(ns));
	m->feed(m->arg, INPUT_COMPLETE, NULL, 0);
	m->feed(m->arg, INPUT_END, &other, sizeof(other));
	m->feed(m->arg, INPUT_TAIL, &end, sizeof(end));
	m->feed(m->arg, INPUT_FINISH, &finish, sizeof(finish));
}

static inline void capture_make(capture_feed_fn feed, void *arg)
{
	struct capture_maker m = {.feed = feed, .arg = arg, .now = 1000 * CAPTURE_MS};
	const struct input_clock clock = {.ticks = 1000, .ns = 1000};
	const struct input_ns attached = {.ns = m.now};
	int i;

	capture_session(&m);
	feed(arg, INPUT_CLOCK, &clock, sizeof(clock));
	feed(arg, INPUT_ATTACHED, &attached, sizeof(attached));
	capture_proc(&m);
	capture_comm(&m);
	capture_sched(&m);
	capture_flows(&m);
	for (i = 0; i < 3; i++) {
		m.now += CAPTURE_MS;
		capture_chunk(&m, i == 1 ? INPUT_OUTSIDE : INPUT_RING);
		capture_rdma(&m, !i);
		capture_node(&m);
		capture_tick(&m, 1100, i == 1 ? INPUT_LATE : INPUT_FOLLOW | INPUT_CLOCKS);
	}
	capture_end(&m);
}

#endif
