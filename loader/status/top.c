// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope top`: what jobs do now, by what recorders of this node tell of them. Looks, and changes nothing. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "cmd.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "top.h"

struct options {
	uint64_t delay_ns;
	uint64_t n; /* 0: no end */
	bool batch;
};

static const struct argp_option options[] = {
	{"batch", 'b', NULL, 0, "Print lines, for logs; also where standard output is no terminal",
	 0},
	{"delay", 'd', "TIME", 0, "Between two readings (1s, which is how often recorders tell)",
	 0},
	{"iterations", 'n', "N", 0, "End after so many", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	char *end;

	switch (key) {
	case 'b':
		o->batch = true;
		return 0;
	case 'd':
		if (parse_duration(arg, &o->delay_ns) || o->delay_ns < 100000000)
			argp_error(state, "--delay is '%s', not a time of 100ms or more", arg);
		return 0;
	case 'n':
		errno = 0;
		o->n = strtoull(arg, &end, 10);
		if (errno || *end || end == arg || *arg == '-' || !o->n)
			argp_error(state, "--iterations is '%s', not a number above 0", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.doc = "Show what each rank on this node does now: operations and bandwidth, what its "
	       "progress "
	       "threads wait for, retransmissions, pending operations, and who is waited for. "
	       "Reads "
	       "what running recorders tell of themselves; needs no privilege.\v"
	       "Exit status: 0 ok, 1 the terminal cannot be used or the output not be written, 2 "
	       "usage.",
};

/* One reading: a head, a row each, an empty line. */
static int print(const struct top *t)
{
	char line[TOP_LINE];
	size_t i;

	top_text__head(t, line);
	puts(line);
	top_text__recorders(t, line);
	puts(line);
	if (t->nrows) {
		top_text__titles(TOP_LINE, line);
		puts(line);
	}
	for (i = 0; i < t->nrows; i++) {
		top_text__row(&t->rows[i], TOP_LINE, line);
		puts(line);
	}
	puts("");
	return output__flush();
}

static int run_batch(struct top *t, const struct options *o)
{
	struct timespec ts = {(time_t)(o->delay_ns / NSEC_PER_SEC),
			      (long)(o->delay_ns % NSEC_PER_SEC)};
	uint64_t i;
	int err;

	for (i = 0; !o->n || i < o->n; i++) {
		if (i)
			nanosleep(&ts, NULL);
		err = top__read(t);
		if (err) {
			pr_err("Failed to read what recorders tell: %s\n", strerror(-err));
			return EXIT_FAILED;
		}
		if (print(t))
			return EXIT_FAILED;
	}
	return EXIT_OK;
}

int cmd_top(int argc, char **argv)
{
	struct options o = {.delay_ns = NSEC_PER_SEC};
	struct top t = {0};
	int status;

	options__parse(&argp, argc, argv, 0, &o);
	if (o.batch || !isatty(STDOUT_FILENO))
		status = run_batch(&t, &o);
	else
		status = top_screen__run(&t, o.delay_ns, o.n);
	top__free(&t);
	return status;
}
