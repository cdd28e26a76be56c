// SPDX-License-Identifier: BSD-2-Clause
/* The command line of `ncclscope record`. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "attach.h"
#include "backlog.h"
#include "cmd.h"
#include "header.h"
#include "log.h"
#include "nccl_names.h"
#include "nccl_profiler.h"
#include "options.h"
#include "recorder.h"

enum {
	OPT_BACKLOG = 256,
	OPT_COLLECTIVES,
	OPT_COMPRESS,
	OPT_DELAY,
	OPT_EVERY,
	OPT_FOR,
	OPT_GPU,
	OPT_KEEP,
	OPT_MASK,
	OPT_MEMORY,
	OPT_NET,
	OPT_NO_REPORT,
	OPT_NVML,
	OPT_PLUGIN,
	OPT_RAW,
	OPT_RDMA_ROOT,
	OPT_RING,
	OPT_SCHED,
	OPT_STRICT
};

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0,
	 "Write traces to DIR (default ncclscope_dump-JOB, or -TIME without a job id)", 0},
	{"pid", 'p', "PID", 0,
	 "Record this process only, which has the plugin, to its end; may be repeated", 0},
	{"duration", 'd', "TIME", 0, "Stop after TIME (500ms, 10s, 2m, 1h)", 0},
	{"delay", OPT_DELAY, "TIME", 0,
	 "Attach after TIME; CMD starts at once, and nothing costs it anything until then", 0},
	{"backlog", OPT_BACKLOG, "SIZE", 0,
	 "What may wait on the disk to go into the traces when the job leaves no CPU time for "
	 "that; beyond, it is taken (default 4G)",
	 0},
	{"collectives", OPT_COLLECTIVES, "N", 0,
	 "Stop when each process has N collectives in its trace, the next N that it begins", 0},
	{"compress", OPT_COMPRESS, NULL, 0, "Compress the traces by zstd: trace_*.jsonl.zst", 0},
	{"every", OPT_EVERY, "TIME", 0,
	 "With --for: a recording every TIME, with files of its own, and nothing in between", 0},
	{"for", OPT_FOR, "TIME", 0,
	 "The length of each recording of --every; the same TIME: one behind the other", 0},
	{"keep", OPT_KEEP, "SIZE", 0,
	 "With --every: delete the traces of the oldest recordings when all take more than SIZE",
	 0},
	{"gpu", OPT_GPU, "WHAT", 0,
	 "What GPUs did, by NVML: samples (default: a line a second of each) or off", 0},
	{"mask", OPT_MASK, "LIST", 0,
	 "Event types: a list such as coll,proxystep, a number, or all (default). A type brings "
	 "its "
	 "parents along",
	 0},
	{"memory", OPT_MEMORY, "SIZE", 0,
	 "What jobs may make this program hold in memory, besides the ring (default 1G)", 0},
	{"net", OPT_NET, "WHAT", 0,
	 "What the network did: events (default: with each event, and a line a second for a "
	 "connection that moves), flows (a line every 100 ms) or off",
	 0},
	{"no-report", OPT_NO_REPORT, NULL, 0, "No verdict on what was slow at the end", 0},
	{"nvml", OPT_NVML, "PATH", 0,
	 "NVML's library, if it is not found as " GPU_LIBRARY " (in a container, for tests)", 0},
	{"plugin", OPT_PLUGIN, "PATH", 0, "The plugin to attach to and to start CMD with", 0},
	{"raw", OPT_RAW, "FILE", 0,
	 "Write what comes in to FILE as it is, for 'ncclscope convert'. No traces unless -o is "
	 "given",
	 0},
	{"rdma-root", OPT_RDMA_ROOT, "DIR", 0,
	 "The folder that has sys/class/infiniband and dev/infiniband, if not / (for tests)", 0},
	{"ring", OPT_RING, "SIZE", 0,
	 "Ring buffer between BPF and this program, 256K to 2G (default 64M), rounded up to a "
	 "power of two; each SIZE with K, M or G, or in bytes",
	 0},
	{"sched", OPT_SCHED, "WHAT", 0,
	 "What the kernel did to the threads: events (default: with each event), slices (a line "
	 "for "
	 "each stay in a state besides) or off",
	 0},
	{"strict", OPT_STRICT, NULL, 0, "Exit with status 5 if any record was lost", 0},
	{"verbose", 'v', NULL, 0, "Say more; -vv with libbpf's messages", 0},
	{"quiet", 'q', NULL, 0, "Warnings and errors only, no summary", 0},
	{0},
};

#define ALL_TYPES ((1u << SCOPE_NTYPES) - 1)

static int parse_mode(struct argp_state *state, const char *arg, const char *const words[])
{
	int mode = parse_word(arg, words);

	if (mode >= 0)
		return mode;
	argp_error(state, "'%s' is none of %s, %s, %s", arg, words[0], words[1], words[2]);
	return 0; /* not reached */
}

static uint64_t parse_time(struct argp_state *state, const char *arg)
{
	uint64_t ns = 0;

	if (parse_duration(arg, &ns) || !ns)
		argp_error(state, "'%s' is no duration: 500ms, 10s, 2m or 1h", arg);
	return ns;
}

/* Rounded up here already, as the kernel wants it: status and headers say what there is. */
static uint64_t parse_ring(struct argp_state *state, const char *arg)
{
	uint64_t bytes = 0, size = ATTACH_RING_MIN;

	if (parse_size(arg, &bytes) || bytes < ATTACH_RING_MIN || bytes > ATTACH_RING_MAX)
		argp_error(state, "'%s' is no size from 256K to 2G: 64M, 1G; without a unit, bytes",
			   arg);
	while (size < bytes)
		size *= 2;
	return size;
}

static void check_all(struct argp_state *state, const struct record_options *o)
{
	if (o->cmd && o->npids)
		argp_error(state, "either --pid or CMD: a job that is started has no PID yet");
	if (!o->every_ns != !o->for_ns)
		argp_error(state, "--every and --for go together: --every 10m --for 5s");
	if (o->every_ns < o->for_ns)
		argp_error(state, "--every must not be shorter than --for");
	if (o->keep_bytes && !o->every_ns)
		argp_error(state, "--keep is about the recordings of --every: --every 1m --for 1m "
				  "--keep 10G");
	if (o->keep_bytes && o->raw && !o->dir)
		argp_error(state, "--keep is about traces, and --raw makes none without -o");
	if (o->compress && o->raw && !o->dir)
		argp_error(state, "--compress is about traces, and --raw makes none without -o: "
				  "give it to 'ncclscope convert'");
	options__no_stream(state, "-o", "a directory", o->dir);
	options__no_stream(state, "--raw", "a file", o->raw);
}

/* How much, how many, how long. */
static error_t parse_amount(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;

	switch (key) {
	case 'd':
		o->duration_ns = parse_time(state, arg);
		return 0;
	case OPT_BACKLOG:
		if (parse_size(arg, &o->backlog_bytes) || o->backlog_bytes > BACKLOG_FILE_MAX)
			argp_error(state,
				   "'%s' is no size up to 512G: 512M, 16G; without a unit, bytes",
				   arg);
		return 0;
	case OPT_COLLECTIVES:
		if (parse_count(arg, &o->collectives) || !o->collectives)
			argp_error(state, "'%s' is no number of collectives", arg);
		return 0;
	case OPT_DELAY:
		o->delay_ns = parse_time(state, arg);
		return 0;
	case OPT_EVERY:
		o->every_ns = parse_time(state, arg);
		return 0;
	case OPT_FOR:
		o->for_ns = parse_time(state, arg);
		return 0;
	case OPT_KEEP:
		if (parse_size(arg, &o->keep_bytes) || !o->keep_bytes)
			argp_error(state, "'%s' is no size: 512M, 16G; without a unit, bytes", arg);
		return 0;
	case OPT_MEMORY:
		if (parse_size(arg, &o->memory_bytes) || o->memory_bytes < 64 << 20)
			argp_error(state,
				   "'%s' is no size from 64M on: 256M, 4G; without a unit, bytes",
				   arg);
		return 0;
	case OPT_RING:
		o->ring_bytes = parse_ring(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void parse_mask(struct argp_state *state, const char *arg, struct record_options *o)
{
	if (event_mask_parse(arg, &o->mask) || !o->mask)
		argp_error(state,
			   "'%s' is no event mask: a number or a list of group, coll, p2p, "
			   "proxyop, proxystep, proxyctrl, kernelch, netplugin, groupapi, "
			   "collapi, p2papi, kernellaunch, cecoll, cesync, cebatch, "
			   "kernelphase, all",
			   arg);
	o->kernels = o->mask & KERNELS && o->mask != ALL_TYPES && !(*arg >= '0' && *arg <= '9');
}

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;

	switch (key) {
	case 'o':
		o->dir = arg;
		return 0;
	case 'p':
		options__add_pid(state, arg, o->pids, &o->npids);
		return 0;
	case OPT_COMPRESS:
		o->compress = true;
		return 0;
	case OPT_MASK:
		parse_mask(state, arg, o);
		return 0;
	case OPT_NET:
		o->net = parse_mode(state, arg, net_mode_names);
		return 0;
	case OPT_GPU:
		o->no_gpu = !strcmp(arg, "off");
		if (!o->no_gpu && strcmp(arg, "samples") != 0)
			argp_error(state, "'%s' is none of off, samples", arg);
		return 0;
	case OPT_NVML:
		o->nvml = arg;
		return 0;
	case OPT_RAW:
		o->raw = arg;
		return 0;
	case OPT_RDMA_ROOT:
		o->rdma_root = arg;
		return 0;
	case OPT_PLUGIN:
		o->plugin = arg;
		return 0;
	case OPT_SCHED:
		o->sched = parse_mode(state, arg, sched_mode_names);
		return 0;
	case OPT_NO_REPORT:
		o->no_report = true;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case 'v':
		log_level = log_level < LOG_DEBUG ? LOG_DEBUG : LOG_LIBBPF;
		return 0;
	case 'q':
		log_level = LOG_WARN;
		return 0;
	case ARGP_KEY_ARGS:
		o->cmd = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		check_all(state, o);
		return 0;
	default:
		return parse_amount(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "[-- CMD [ARG...]]",
	.doc = "Record NCCL's events of all processes of this node that have the plugin loaded, "
	       "now or later, as one JSON lines file per process; with CMD, start that with the "
	       "plugin besides, and end when it ends.\v"
	       "Exit status: that of CMD; else 0 ok, 1 failed, 2 usage, 3 privilege, 4 the kernel "
	       "lacks something, 5 data lost under --strict.",
};

void record_options__parse(struct record_options *o, int argc, char **argv)
{
	o->mask = ALL_TYPES;
	o->ring_bytes = 64 << 20;
	o->memory_bytes = 1 << 30;
	o->backlog_bytes = 4ull << 30;
	o->sched = SCHED_MODE_EVENTS;
	o->net = NET_MODE_EVENTS;
	o->rdma_root = "";
	options__parse(&argp, argc, argv, ARGP_IN_ORDER, o);
}
