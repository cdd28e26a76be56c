// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope arm` and `disarm`: turn a job's callbacks on for its public probes (bpftrace, perf, bcc),
 * without recording anything.
 */
#include <argp.h>
#include <errno.h>
#include <string.h>
#include "cmd.h"
#include "log.h"
#include "nccl_names.h"
#include "options.h"
#include "target.h"

struct options {
	pid_t pids[MAX_PIDS];
	int npids;
	uint32_t mask;
};

enum { OPT_MASK = 256 };

static const struct argp_option arm_options[] = {
	{"pid", 'p', "PID", 0, "The process; may be repeated", 0},
	{"mask", OPT_MASK, "LIST", 0,
	 "Event types: a list such as coll,proxystep, a number, or all (default)", 0},
	{0},
};

static const struct argp_option disarm_options[] = {
	{"pid", 'p', "PID", 0, "The process; may be repeated", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'p':
		options__add_pid(state, arg, o->pids, &o->npids);
		return 0;
	case OPT_MASK:
		if (event_mask_parse(arg, &o->mask) || !o->mask)
			argp_error(state, "'%s' is no event mask, see ncclscope record --help",
				   arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->npids)
			argp_error(state, "which process? -p PID");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int apply(pid_t pid, uint32_t mask)
{
	struct target t;
	int err;

	if (target__is_thread(pid))
		return EXIT_FAILED;
	err = target__find(&t, pid);
	if (!err)
		err = target__want(&t, SCOPE_OWNER_MANUAL, mask, 0);
	target__close(&t);
	switch (err) {
	case 0:
		return EXIT_OK;
	case -EAGAIN:
		pr_info("Process %d has no communicator yet: its first will be %s\n", pid,
			mask ? "armed" : "left alone");
		return EXIT_OK;
	case -ENOENT:
		pr_err("Process %d has no ncclscope plugin loaded: start it with "
		       "NCCL_PROFILER_PLUGIN=ncclscope\n",
		       pid);
		return EXIT_FAILED;
	case -EPERM:
	case -EACCES:
		pr_err("Failed to look into process %d: %s%s\n", pid, strerror(-err),
		       target__advice(err));
		return EXIT_PRIVILEGE;
	default:
		pr_err("Failed to %s process %d: %s%s\n", mask ? "arm" : "disarm", pid,
		       target__error(err), target__advice(err));
		return EXIT_FAILED;
	}
}

static int arm_or_disarm(const struct argp *argp, struct options *o, int argc, char **argv)
{
	int i, status = EXIT_OK, one;

	options__parse(argp, argc, argv, 0, o);
	for (i = 0; i < o->npids; i++) {
		one = apply(o->pids[i], o->mask);
		if (one)
			status = one;
	}
	return status;
}

#define STATUS                                                                                     \
	"Exit status: 0 ok, 1 a process does not exist or has no such plugin, 2 usage, 3 "         \
	"privilege."

int cmd_arm(int argc, char **argv)
{
	static const struct argp argp = {
		.options = arm_options,
		.parser = parse_one,
		.doc = "Make NCCL call the plugin in a process, so that its public USDT probes "
		       "(ncclscope:start, state, stop) fire for other tracers. Nothing is "
		       "recorded; disarm ends it.\v" STATUS,
	};
	struct options o = {.mask = (1u << SCOPE_NTYPES) - 1};

	return arm_or_disarm(&argp, &o, argc, argv);
}

int cmd_disarm(int argc, char **argv)
{
	static const struct argp argp = {
		.options = disarm_options,
		.parser = parse_one,
		.doc = "End what arm began. What a recorder asked for goes on.\v" STATUS,
	};
	struct options o = {0};

	return arm_or_disarm(&argp, &o, argc, argv);
}
