// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope export`: traces for other tools. The command line and the output; see export.h for the parts. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd.h"
#include "export.h"
#include "human.h"
#include "log.h"
#include "options.h"

#define FLUSH_BYTES (256u << 10)

enum { OPT_TO = 't', OPT_MACHINES = 256 };

struct options {
	const struct export_format *fmt;
	const char *output;
	bool machine_ids;
	char **paths;
};

static const struct export_format *const formats[] = {
	&export_perfetto, &export_chrome, &export_speedscope, &export_collapsed, &export_csv,
};

#define NFORMATS (sizeof(formats) / sizeof(formats[0]))

static const struct argp_option options[] = {
	{"to", OPT_TO, "FORMAT", 0, "perfetto, chrome, speedscope, collapsed or csv", 0},
	{"output", 'o', "FILE", 0,
	 "Write to FILE, which is there when it is whole, and not to standard output (-)", 0},
	{"machine-ids", OPT_MACHINES, NULL, 0,
	 "perfetto: tell nodes apart also where the traces are of one, so that exports of several "
	 "can be put together with cat",
	 0},
	{"quiet", 'q', NULL, 0, "Warnings and errors only, no progress line", 0},
	{0},
};

static const struct export_format *format_of(const char *name)
{
	size_t i;

	for (i = 0; i < NFORMATS; i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

static void check_options(struct options *o, struct argp_state *state)
{
	if (!o->fmt)
		argp_error(state, "--to is needed: perfetto, chrome, speedscope, collapsed or csv");
	options__traces(ARGP_KEY_END, state, &o->paths);
	options__not_input(state, o->paths, o->output);
	if (o->machine_ids && o->fmt != &export_perfetto)
		argp_error(state, "--machine-ids is for --to perfetto");
}

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_TO:
		o->fmt = format_of(arg);
		if (!o->fmt)
			argp_error(
				state,
				"'%s' is no format: perfetto, chrome, speedscope, collapsed or csv",
				arg);
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_MACHINES:
		o->machine_ids = true;
		return 0;
	case ARGP_KEY_END:
		check_options(o, state);
		return 0;
	default:
		return options__traces(key, state, &o->paths);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "TRACE...",
	.doc = "Write traces for other tools: a timeline for Perfetto's UI or for viewers of "
	       "Chrome's JSON, a flame graph, or a table of events. " OPTIONS_TRACE
	       "\vExit status: 0 ok, 1 a trace could not be read or the output not be written, 2 "
	       "usage.",
};

/* ---- The output ------------------------------------------------------------------------------------ */

void export_flush(struct export *x, bool all)
{
	if (x->out.failed && !x->err)
		x->err = -ENOMEM;
	if (x->err || (x->out.len < FLUSH_BYTES && !all))
		return;
	x->err = output__write(&x->to, x->out.s, x->out.len);
	if (x->err)
		pr_err("Failed to write '%s': %s\n", output__name(x->out_path), strerror(-x->err));
	x->out.len = 0;
}

/* ---- The whole -------------------------------------------------------------------------------------- */

static void tell(const struct export *x)
{
	char more[96] = "";

	copies__warn(&x->copies);
	if (x->torn)
		pr_warn("%" PRIu64 " torn line%s: the recording broke off there, skipped\n",
			x->torn, human__s(x->torn));
	if (x->skipped)
		pr_warn("%" PRIu64 " line%s could not be used, skipped; the first: %s ('ncclscope "
			"check' tells more)\n",
			x->skipped, human__s(x->skipped), x->why);
	if (x->beyond)
		pr_warn("%" PRIu64 " record%s found no room, skipped; the first: %s\n", x->beyond,
			human__s(x->beyond), x->why_beyond);
	/* csv has events only */
	if (x->fmt != &export_csv)
		snprintf(more, sizeof(more), ", %" PRIu64 " state%s, %" PRIu64 " other record%s",
			 x->states, human__s(x->states), x->others, human__s(x->others));
	pr_info("%" PRIu64 " file%s, %" PRIu64 " process%s, %" PRIu64 " line%s; %" PRIu64
		" event%s%s exported\n",
		x->files, human__s(x->files), x->procs, human__es(x->procs), x->nlines,
		human__s(x->nlines), x->events, human__s(x->events), more);
}

static int run(struct export *x, char *const *paths)
{
	int err, ended;

	err = x->fmt->begin ? x->fmt->begin(x) : 0;
	err = err ? err : export_read(x, paths);
	/* what could be read is written, and the exit status tells that something could not */
	ended = x->err ? x->err : x->fmt->end ? x->fmt->end(x) : 0;
	if (!ended && !x->events && !x->states && !x->others) {
		if (!err) /* else it has been said what is wrong */
			pr_err("No records in '%s': is it a trace?\n", paths[0]);
		return err ? err : -ENODATA;
	}
	export_flush(x, true);
	if (ended || x->err)
		return ended ? ended : x->err;
	tell(x);
	return err;
}

int cmd_export(int argc, char **argv)
{
	struct options o = {0};
	struct export x = {0};
	bool whole;
	int err, end;

	options__parse(&argp, argc, argv, 0, &o);
	x.fmt = o.fmt;
	x.machine_ids = o.machine_ids;
	x.out_path = o.output;
	err = output__open(&x.to, o.output, 0640);
	if (err) {
		pr_err("Failed to write '%s': %s\n", output__name(o.output), strerror(-err));
		return EXIT_FAILED;
	}
	if (x.fmt->binary && isatty(x.to.fd)) {
		pr_err("%s is nothing for a terminal: give a file with -o, or pipe it on\n",
		       x.fmt->name);
		output__close(&x.to, false);
		return EXIT_USAGE;
	}
	err = run(&x, o.paths);
	if (err == -ENOMEM)
		pr_err("Failed to export: %s\n", strerror(ENOMEM));
	whole = !x.err && (x.events || x.states || x.others);
	end = output__close(&x.to, whole);
	if (end) {
		pr_err("Failed to write '%s': %s\n", output__name(o.output), strerror(-end));
		err = end;
	}
	if (x.own)
		x.fmt->free(&x);
	export_read_free(&x);
	return err ? EXIT_FAILED : EXIT_OK;
}
