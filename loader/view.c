// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope view`: a trace as one page for a browser, with what report says of it. The command line, and the
 * file: it has no other name until it is whole, is its user's alone, and takes the place of a link instead of
 * following it.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd.h"
#include "job.h"
#include "log.h"
#include "options.h"
#include "report.h"
#include "view.h"

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
	default:
		return options__traces(key, state, &o->paths);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "TRACE...",
	.doc = "Make one HTML file of traces, to be opened in a browser, without a network: a "
	       "timeline "
	       "of ranks and threads, what the kernel did to them, and why operations were slow. A "
	       "TRACE is a file, a directory (its trace_*.jsonl and trace_*.jsonl.zst), or - for "
	       "standard input.\v"
	       "Exit status: 0 ok, 1 a trace could not be read or the page not be written, 2 "
	       "usage.",
};

/* ---- The file ------------------------------------------------------------------------------------------- */

struct output {
	int fd;
	char *path; /* where it will be; NULL: standard output, or no plain file. Owned, as the next */
	char *temp; /* where it is; NULL: nowhere any more */
};

/* "trace_1_pid7.jsonl" to "trace_1_pid7.html"; NULL: no memory. */
static char *default_name(const char *trace)
{
	char *real = strcmp(trace, "-") ? realpath(trace, NULL) : NULL, *out = NULL;
	const char *name = "";
	struct stat st;
	size_t len;

	if (real && !stat(real, &st) && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		name = strrchr(real, '/') + 1;
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
	free(real);
	return out;
}

/* sudo's caller is who will look at it. */
static int give_to_caller(int fd)
{
	uid_t uid;
	gid_t gid;

	if (geteuid())
		return 0;
	invoking_user(&uid, &gid);
	return uid && fchown(fd, uid, gid) ? -errno : 0;
}

/* Beside the place where it will be, so that rename() can put it there. */
static int open_temp(struct output *o)
{
	char *temp;
	int err;

	if (asprintf(&temp, "%s.XXXXXX", o->path) < 0)
		return -ENOMEM;
	o->fd = mkostemp(temp, O_CLOEXEC); /* 0600, and nobody else's */
	if (o->fd >= 0) {
		o->temp = temp;
		return give_to_caller(o->fd);
	}
	err = -errno;
	free(temp);
	return err;
}

/* Links that stand for an open file, not for a name that could be given to another one. */
static bool is_descriptor(const char *name)
{
	return !strncmp(name, "/dev/std", 8) || !strncmp(name, "/dev/fd/", 8) ||
	       !strncmp(name, "/proc/", 6);
}

static int output__open(struct output *o, const char *name, const char *trace)
{
	struct stat st;

	o->fd = STDOUT_FILENO;
	if (name && !strcmp(name, "-"))
		return isatty(STDOUT_FILENO) ? -EISCONN : 0;
	if (name && is_descriptor(name)) {
		o->fd = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
		return o->fd < 0 ? -errno : 0;
	}
	o->path = name ? strdup(name) : default_name(trace);
	if (!o->path)
		return -ENOMEM;
	if (!stat(o->path, &st) && S_ISDIR(st.st_mode))
		return -EISDIR;
	if (lstat(o->path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return open_temp(o);
	o->fd = open(o->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC); /* /dev/null, a fifo */
	return o->fd < 0 ? -errno : 0;
}

/* Into its place if @ok, else away with it. */
static int output__close(struct output *o, bool ok)
{
	int err = 0;

	if (o->fd > STDERR_FILENO && close(o->fd))
		err = -errno;
	o->fd = -1;
	if (o->temp && ok && !err && rename(o->temp, o->path))
		err = -errno;
	if (o->temp && (err || !ok))
		unlink(o->temp);
	free(o->temp);
	o->temp = NULL;
	return err;
}

/* ---- The page ------------------------------------------------------------------------------------------- */

/* What report --json says; its size has a bound, whatever the trace's. */
static int report_text_of(const struct view_inputs *in, char **text, size_t *len)
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
		err = report_read(&r, paths) == -ENOMEM ? -ENOMEM : 0;
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

static int put_report(struct view_page *page, const struct view_inputs *in)
{
	char *text = NULL;
	size_t len = 0;
	int err = report_text_of(in, &text, &len);

	if (err)
		pr_warn("Failed to make the report: %s, continuing without it\n", strerror(-err));
	else
		err = view_page__open(page, "report", NULL) ?: view_page__put(page, text, len)
							    ?: view_page__close(page);
	free(text);
	return err;
}

/* @trace_err: of a trace that could not be read, which has been said. */
static int write_page(const struct view_inputs *in, int fd, int *trace_err)
{
	struct view_page *page = view_page__new(fd);
	int err = page ? view_page__begin(page) : -ENOMEM;

	if (!err)
		err = put_report(page, in);
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

	if (o->path && !stat(o->path, &st) && S_ISREG(st.st_mode))
		pr_info("Wrote '%s', %.1f MB: open it in a browser\n", o->path,
			(double)st.st_size / 1e6);
}

int cmd_view(int argc, char **argv)
{
	struct view_inputs in = {0};
	struct output out = {.fd = -1};
	struct options o = {0};
	int err = 0, bad = 0, one;
	const char *where;
	char **path;

	options__parse(&argp, argc, argv, 0, &o);
	for (path = o.paths; *path; path++) {
		one = view_inputs__add(&in, *path);
		bad = one ? one : bad;
	}
	if (!in.n)
		goto cleanup; /* each has been said */
	err = output__open(&out, o.output, o.paths[0]);
	if (err == -EISCONN) {
		pr_err("A page is nothing for a terminal: -o FILE, or send it elsewhere\n");
		goto cleanup;
	}
	one = 0;
	if (!err)
		err = write_page(&in, out.fd, &one);
	bad = one ? one : bad;
	if (!err)
		err = output__close(&out, true);
	where = out.path ? out.path : o.output;
	if (err)
		pr_err("Failed to write '%s': %s\n", where ? where : "the page", strerror(-err));
	else
		say_where(&out);
cleanup:
	output__close(&out, false);
	free(out.path);
	view_inputs__free(&in);
	return err || bad ? EXIT_FAILED : EXIT_OK;
}
