// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope view`: a trace as one page for a browser, with what report says of it. The command line; the file is its
 * user's alone.
 */
#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "view.h"
#include "zst.h"

struct options {
	const char *output;
	char **paths;
};

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0,
	 "Write FILE; -: standard output. Default: the name of the first TRACE, with .html, in "
	 "this "
	 "directory",
	 0},
	{"quiet", 'q', NULL, 0, "Warnings and errors only, no progress line", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'o':
		if (!*arg)
			argp_error(state, "-o needs the name of a file");
		o->output = arg;
		return 0;
	case ARGP_KEY_END:
		options__traces(key, state, &o->paths);
		options__not_input(state, o->paths, o->output);
		return 0;
	default:
		return options__traces(key, state, &o->paths);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "TRACE...",
	.doc = "Make one HTML file of traces, to be opened in a browser, without a network: a "
	       "timeline of ranks and threads, what the kernel did to them, and why operations "
	       "were slow. " OPTIONS_TRACE
	       "\vExit status: 0 ok, 1 a trace could not be read or the page not be written, 2 "
	       "usage.",
};

/* ---- The file ------------------------------------------------------------------------------------------- */

/* The last part of what was typed, a link's own; of what ends in '.', '..' or is '/' that of the directory. Owned; NULL: no memory. */
static char *last_part(const char *path)
{
	const char *end = path + strlen(path), *at;
	char *real, *name;

	while (end > path && end[-1] == '/')
		end--;
	for (at = end; at > path && at[-1] != '/'; at--)
		;
	if (end - at > 2 || strncmp(at, "..", (size_t)(end - at)))
		return strndup(at, (size_t)(end - at));
	real = realpath(path, NULL);
	name = strdup(real ? strrchr(real, '/') + 1 : "");
	free(real);
	return name;
}

/* "trace_1_pid7.jsonl" to "trace_1_pid7.html"; NULL: no memory. */
static char *default_name(const char *trace)
{
	char *last = last_part(trace), *out = NULL;
	const char *name = "";
	struct stat st;
	size_t len;

	if (!last)
		return NULL;
	if (strcmp(trace, "-") && !stat(trace, &st) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		name = last;
	len = strlen(name);
	if (len > 4 && !strcmp(name + len - 4, ".zst"))
		len -= 4;
	if (len > 6 && !strncmp(name + len - 6, ".jsonl", 6))
		len -= 6;
	if (!len) {
		name = "ncclscope-view";
		len = strlen(name);
	}
	if (asprintf(&out, "%.*s.html", (int)len, name) < 0)
		out = NULL;
	free(last);
	return out;
}

/* ---- The page ------------------------------------------------------------------------------------------- */

/*
 * What report --json says; its size has a bound, whatever the trace's. -ENODATA: there is no record in any of them; *read_err tells if
 * that is because one could not be read.
 */
static int report_text_of(const struct view_inputs *in, char **text, size_t *len, int *read_err)
{
	struct report r = {.opt = {.json = true, .silent = true}};
	char **paths = calloc(in->n + 1, sizeof(*paths));
	FILE *f = open_memstream(text, len);
	int err = paths && f ? report_init(&r) : -ENOMEM;
	size_t i;

	for (i = 0; !err && i < in->n; i++)
		paths[i] = in->list[i].path;
	if (!err) {
		/* what it cannot read is read once more, and said then */
		*read_err = report_read(&r, paths);
		err = *read_err == -ENOMEM ? -ENOMEM : 0;
		copies__warn(&r.copies); /* the page leaves out the same */
		if (!err && !r.totals.records)
			err = -ENODATA;
		if (!err) {
			report_end(&r);
			err = report_json(&r, f);
		}
		report_free(&r);
	}
	if (f && fclose(f) && !err)
		err = -ENOMEM;
	free(paths);
	return err;
}

static int put_report(struct view_page *page, const struct view_inputs *in, int *read_err)
{
	char *text = NULL;
	size_t len = 0;
	int err = report_text_of(in, &text, &len, read_err);

	if (err == -ENODATA) {
		free(text);
		return err;
	}
	if (err)
		pr_warn("Failed to make the report: %s, continuing without it\n", strerror(-err));
	else
		err = view_page__open(page, "report", NULL) ?: view_page__put(page, text, len)
							    ?: view_page__close(page);
	free(text);
	return err;
}

/* @trace_err: of a trace that could not be read, which has been said but if nothing could be read, -ENODATA. */
static int write_page(const struct view_inputs *in, const struct output *to, int *trace_err)
{
	struct view_page *page = view_page__new(to);
	int err = page ? view_page__begin(page) : -ENOMEM;

	if (!err)
		err = put_report(page, in, trace_err);
	if (!err)
		*trace_err = view_inputs__read(in, page, &err);
	if (!err)
		err = view_page__end(page);
	view_page__free(page);
	return err;
}

static void say_where(const struct output *o)
{
	struct stat st;

	if (o->path && !stat(o->path, &st))
		pr_info("Wrote '%s', %.1f MB: open it in a browser\n", o->path,
			(double)st.st_size / 1e6);
}

static bool is_terminal(const char *name)
{
	return name && !strcmp(name, "-") && isatty(STDOUT_FILENO);
}

/* 0, or the error of the page; *bad: of a trace. */
static int make_page(const struct view_inputs *in, const char *name, int *bad)
{
	struct output out;
	int err = output__open(&out, name, 0600), one = 0, end;

	if (!err) {
		err = write_page(in, &out, &one);
		end = output__close(&out, !err);
		err = err ? err : end;
	}
	*bad = one ? one : *bad;
	if (err == -ENODATA && one)
		pr_err("Failed to read '%s': %s\n", in->list[0].given, zst_text__error(one));
	else if (err == -ENODATA)
		pr_err("No records in '%s': is it a trace?\n", in->list[0].given);
	else if (err)
		pr_err("Failed to write '%s': %s\n", output__name(name), strerror(-err));
	else
		say_where(&out);
	return err;
}

int cmd_view(int argc, char **argv)
{
	struct view_inputs in = {0};
	struct options o = {0};
	int err = 0, bad = 0, one;
	char **path, *name;

	options__parse(&argp, argc, argv, 0, &o);
	for (path = o.paths; *path; path++) {
		one = view_inputs__add(&in, *path);
		bad = one ? one : bad;
	}
	if (!in.n) { /* each has been said */
		view_inputs__free(&in);
		return EXIT_FAILED;
	}
	name = o.output ? strdup(o.output) : default_name(o.paths[0]);
	if (is_terminal(name)) {
		pr_err("A page is nothing for a terminal: -o FILE, or send it elsewhere\n");
		err = -EINVAL;
	} else if (name) {
		err = make_page(&in, name, &bad);
	} else {
		pr_err("Failed to write the page: %s\n", strerror(ENOMEM));
		err = -ENOMEM;
	}
	free(name);
	view_inputs__free(&in);
	return err || bad ? EXIT_FAILED : EXIT_OK;
}
