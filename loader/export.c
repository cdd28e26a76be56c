// SPDX-License-Identifier: BSD-2-Clause
/* `ncclscope export`: traces for other tools. The command line and the output; see export.h for the parts. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd.h"
#include "export.h"
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
	       "Chrome's JSON, a flame graph, or a table of events. A TRACE is a file, a directory "
	       "(its trace_*.jsonl and trace_*.jsonl.zst), or - for standard input.\v"
	       "Exit status: 0 ok, 1 a trace could not be read or the output not be written, 2 "
	       "usage.",
};

/* ---- The output ------------------------------------------------------------------------------------ */

/* Beside the file until it is whole. For the handler of signals, too: written once, before there is one. */
static char part[4096];

static void remove_part(int sig)
{
	unlink(part);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void on_signals(void (*handler)(int))
{
	signal(SIGINT, handler);
	signal(SIGTERM, handler);
	signal(SIGHUP, handler);
}

/* An fd or -errno. What is no regular file (a device, a pipe) is written as it is. */
static int open_output(const char *path)
{
	mode_t mask = umask(0);
	struct stat st;
	int fd;

	umask(mask);
	if (!path || !strcmp(path, "-"))
		return STDOUT_FILENO;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if ((size_t)snprintf(part, sizeof(part), "%s.XXXXXX", path) >= sizeof(part)) {
		*part = '\0';
		return -ENAMETOOLONG;
	}
	fd = mkostemp(part, O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		*part = '\0';
		return fd;
	}
	on_signals(remove_part);
	fchmod(fd, 0640 & ~mask); /* as traces have it */
	return fd;
}

/* The file gets its name, or goes if there was an error. */
static int close_output(struct export *x, int err)
{
	if (x->fd != STDOUT_FILENO && close(x->fd) && !err)
		err = -errno;
	if (!*part)
		return err;
	if (!err && rename(part, x->out_path))
		err = -errno;
	if (err)
		unlink(part);
	on_signals(SIG_DFL);
	*part = '\0';
	return err;
}

void export_flush(struct export *x, bool all)
{
	size_t done = 0;
	ssize_t n;

	if (x->out.failed && !x->err)
		x->err = -ENOMEM;
	if (x->err || (x->out.len < FLUSH_BYTES && !all))
		return;
	while (done < x->out.len) {
		n = write(x->fd, x->out.s + done, x->out.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			x->err = -errno;
			pr_err("Failed to write '%s': %s\n", x->out_path ? x->out_path : "-",
			       strerror(-x->err));
			return;
		}
		done += (size_t)n;
	}
	x->out.len = 0;
}

/* ---- The whole -------------------------------------------------------------------------------------- */

static void tell(const struct export *x)
{
	if (x->torn)
		pr_warn("%" PRIu64 " torn lines: the recording broke off there, skipped\n",
			x->torn);
	if (x->skipped)
		pr_warn("%" PRIu64 " lines could not be used, skipped; the first: %s ('ncclscope "
			"check' tells more)\n",
			x->skipped, x->why);
	pr_info("%" PRIu64 " files, %" PRIu64 " processes, %" PRIu64 " lines; %" PRIu64
		" events, %" PRIu64 " states, %" PRIu64 " other records exported\n",
		x->files, x->procs, x->nlines, x->events, x->states, x->others);
}

static int run(struct export *x, char *const *paths)
{
	int err, ended;

	err = x->fmt->begin ? x->fmt->begin(x) : 0;
	err = err ? err : export_read(x, paths);
	/* what could be read is written, and the exit status tells that something could not */
	ended = x->err ? x->err : x->fmt->end ? x->fmt->end(x) : 0;
	export_flush(x, true);
	if (ended || x->err)
		return ended ? ended : x->err;
	if (!x->events && !x->states && !x->others) {
		pr_err("No records in '%s': is it a trace?\n", paths[0]);
		return err ? err : -ENODATA;
	}
	tell(x);
	return err;
}

int cmd_export(int argc, char **argv)
{
	struct options o = {0};
	struct export x = {0};
	bool whole;
	int err;

	options__parse(&argp, argc, argv, 0, &o);
	x.fmt = o.fmt;
	x.machine_ids = o.machine_ids;
	x.out_path = o.output;
	x.fd = open_output(o.output);
	if (x.fd < 0) {
		pr_err("Failed to write '%s': %s\n", o.output, strerror(-x.fd));
		return EXIT_FAILED;
	}
	if (x.fmt->binary && isatty(x.fd)) {
		pr_err("%s is nothing for a terminal: give a file with -o, or pipe it on\n",
		       x.fmt->name);
		close_output(&x, -EINVAL);
		return EXIT_USAGE;
	}
	err = run(&x, o.paths);
	if (err == -ENOMEM)
		pr_err("Failed to export: %s\n", strerror(ENOMEM));
	whole = !x.err && (x.events || x.states || x.others);
	if (close_output(&x, whole ? 0 : -EIO) && whole) {
		pr_err("Failed to write '%s': %s\n", o.output, strerror(errno));
		err = -EIO;
	}
	if (x.own)
		x.fmt->free(&x);
	export_read_free(&x);
	return err ? EXIT_FAILED : EXIT_OK;
}
