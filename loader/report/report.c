// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope report`: why the operations of a trace were slow. The command line; see report.h for the parts. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"
#include "cmd.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "report.h"

#define AFTER_RECORD_NS (3 * NSEC_PER_SEC) /* what the end of a recording may be delayed by */

enum { OPT_JSON = 256, OPT_CSV, OPT_SLOWER };

struct options {
	struct report_options opt;
	char **paths;
};

static const struct argp_option options[] = {
	{"json", OPT_JSON, NULL, 0, "One JSON object, with stable codes of verdicts", 0},
	{"csv", OPT_CSV, NULL, 0, "The table of operations, as comma-separated values", 0},
	{"slower-than", OPT_SLOWER, "TIME", 0,
	 "Slow is what takes longer than TIME (500us, 20ms, 2s), instead of 1.5 times the median "
	 "of its kind",
	 0},
	{"quiet", 'q', NULL, 0, "Warnings and errors only besides, no progress line", 0},
	{0},
};

/* As elsewhere, and microseconds. */
static int parse_span(const char *arg, int64_t *ns)
{
	size_t len = strlen(arg);
	uint64_t v;
	char *end;

	if (len > 2 && !strcmp(arg + len - 2, "us") && *arg >= '0' && *arg <= '9') {
		errno = 0;
		v = strtoull(arg, &end, 10);
		if (errno || end != arg + len - 2 || v > INT64_MAX / 1000)
			return -EINVAL;
		v *= 1000;
	} else if (parse_duration(arg, &v)) {
		return -EINVAL;
	}
	*ns = (int64_t)v;
	return *ns > 0 ? 0 : -EINVAL;
}

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_JSON:
		o->opt.json = true;
		return 0;
	case OPT_CSV:
		o->opt.csv = true;
		return 0;
	case OPT_SLOWER:
		if (parse_span(arg, &o->opt.slower_than))
			argp_error(state,
				   "'%s' is no duration: a whole number of us, ms, s (or of "
				   "seconds without a unit)",
				   arg);
		return 0;
	case ARGP_KEY_END:
		options__traces(key, state, &o->paths);
		if (o->opt.json && o->opt.csv)
			argp_error(state, "either --json or --csv");
		return 0;
	default:
		return options__traces(key, state, &o->paths);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "TRACE...",
	.doc = "Say why operations were slow, with evidence and how sure that is, from the traces "
	       "of a node or of a whole job. " OPTIONS_TRACE
	       "\vExit status: 0 ok, 1 a trace could not be read, 2 usage.",
};

static int print(const struct report *r)
{
	int err = 0;

	if (r->opt.json)
		err = report_json(r, stdout);
	else if (r->opt.csv)
		report_csv(r, stdout);
	else
		report_text(r, stdout);
	if (output__flush())
		return -EIO;
	if (err)
		pr_err("Failed to write the report: %s\n", strerror(-err));
	return err;
}

static bool wants_color(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

int cmd_report(int argc, char **argv)
{
	struct options o = {0};
	struct report r = {0};
	int err;

	options__parse(&argp, argc, argv, 0, &o);
	r.opt = o.opt;
	r.opt.color = wants_color();
	err = report_init(&r);
	if (err) {
		pr_err("Failed to allocate: %s\n", strerror(-err));
		return EXIT_FAILED;
	}
	err = report_read(&r, o.paths);
	if (err == -ENOMEM) {
		pr_err("Failed to read the trace: %s\n", strerror(ENOMEM));
	} else {
		copies__warn(&r.copies);
		report_end(&r);
		err = r.totals.records ? print(&r) ?: err : err ?: -ENODATA;
		if (err == -ENODATA)
			pr_err("No records in '%s': is it a trace?\n", o.paths[0]);
	}
	report_free(&r);
	return err ? EXIT_FAILED : EXIT_OK;
}

void report_after_record(char *const *paths, const char *dir, FILE *f)
{
	struct report r = {.opt = {.brief = true, .limit_ns = AFTER_RECORD_NS}};

	if (report_init(&r))
		return;
	if (report_read(&r, paths) != -ENOMEM) {
		report_end(&r); /* of a short recording, all operations are judged only now */
		if (r.totals.ops || r.procs)
			report_brief(&r, dir, f);
	}
	report_free(&r);
}
