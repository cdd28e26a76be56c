// SPDX-License-Identifier: BSD-2-Clause
/* Lines of traces into records, each of them once, whatever is given twice; where times begin. See export.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "export.h"
#include "lines.h"

/* ---- Lines -------------------------------------------------------------------------------------------------- */

static void parse(struct export *x, const char *s, size_t len)
{
	x->err = x->err ?: json_doc__parse(&x->doc, s, len);
}

/* After another line has been. */
static void release_header(struct export *x)
{
	const char *s;
	size_t len;

	if (!copies__header(&x->trace, &s, &len))
		return;
	parse(x, s, len);
	if (!x->err)
		export_record(x, &x->doc.nodes[0]);
}

/* What was read of it is written. */
static void end_trace(struct export *x)
{
	release_header(x);
	export_end_proc(x);
	copies__end(&x->trace, x->path);
}

/* What has been parsed. */
static void take_text(struct export *x, const char *s, size_t len)
{
	int what;

	if (jn_is(rec_get(x, &x->doc.nodes[0], "recordType"), "header")) {
		end_trace(x);
		x->err = x->err ?: copies__begin(&x->trace, s, len);
		return;
	}
	what = copies__line(&x->copies, &x->trace, s, len, x->path);
	if (what < 0)
		x->err = what;
	if (what == COPIES_BEGIN) {
		release_header(x);
		parse(x, s, len);
	}
	if (what != COPIES_LEAVE && !x->err)
		export_record(x, &x->doc.nodes[0]);
}

static int take_line(void *to, const char *s, size_t len, bool whole)
{
	struct export *x = to;
	bool torn;
	int err;

	x->line++;
	if (!len)
		return 0;
	x->nlines++;
	err = lines_parse(&x->doc, &s, &len, &torn);
	if (torn || (err == -EINVAL && !whole))
		x->torn++;
	else if (err == -EINVAL)
		export_skip(x, x->doc.err);
	if (err == -ENOMEM)
		x->err = err;
	else if (!err)
		take_text(x, s, len);
	return x->err;
}

static int take_too_long(void *to)
{
	struct export *x = to;

	x->line++;
	x->nlines++;
	export_skip(x, "longer than 1 MiB");
	return 0;
}

static int begin_file(void *to, const char *path)
{
	struct export *x = to;

	end_trace(x); /* of a file that could not be read on */
	x->path = path;
	x->line = 0;
	x->files++;
	return x->err;
}

static int end_file(void *to)
{
	struct export *x = to;

	end_trace(x);
	return x->err;
}

static void show_progress(void *to, uint64_t done, uint64_t total)
{
	struct export *x = to;

	progress__show(&x->progress, done, total);
}

static const struct lines_ops ops = {
	.begin = begin_file,
	.line = take_line,
	.too_long = take_too_long,
	.end = end_file,
	.progress = show_progress,
};

/* ---- The first time of all ------------------------------------------------------------------------------------- */

/* The offset that times have from here on. */
static void first_header(struct export *x, const char *s, size_t len)
{
	bool torn;

	x->proc->offset = 0;
	if (!lines_parse(&x->doc, &s, &len, &torn))
		jn_offset(rec_get(x, rec_get(x, &x->doc.nodes[0], "clock"), "realtimeOffset"),
			  &x->proc->offset);
}

/* The first number behind a key is the earliest that the line has for it. */
static void first_time(struct export *x, const char *s, size_t len, const char *key)
{
	const char *at = memmem(s, len, key, strlen(key)), *end;
	struct json_node n = {.kind = JSON_KIND_REAL};
	int64_t ns;

	if (!at)
		return;
	n.s = at + strlen(key);
	for (end = n.s; end < s + len && ((*end >= '0' && *end <= '9') || *end == '.'); end++)
		;
	n.len = end - n.s;
	if (n.len && rec_time(x, &n, &ns) && ns < x->base)
		x->base = ns;
}

static bool begins(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(s, with, strlen(with));
}

/* Without parsing, as it is of every line. */
static int first_line(void *to, const char *s, size_t len, bool whole)
{
	struct export *x = to;

	(void)whole;
	if (memmem(s, len, "\"recordType\":\"header\"", 21))
		first_header(x, s, len);
	else if (begins(s, len, "{\"recordType\":\"kmsg\"") &&
		 memmem(s, len, "\"before\":true", 13))
		return 0; /* long before: see write_logged() */
	else if (begins(s, len, "{\"recordType\":\"lost\""))
		first_time(x, s, len, "\"to\":");
	else if (begins(s, len, "{\"recordType\":\"thread\""))
		first_time(x, s, len, "\"start\":");
	else
		first_time(x, s, len, "\"ts\":");
	return 0;
}

static int first_file(void *to, const char *path)
{
	(void)path;
	((struct export *)to)->proc->offset = 0;
	return 0;
}

static int first_other(void *to)
{
	(void)to;
	return 0;
}

/* Only of what can be read twice. */
static void find_first(struct export *x, char *const *paths)
{
	static const struct lines_ops first = {
		.begin = first_file,
		.line = first_line,
		.too_long = first_other,
		.end = first_other,
		.quiet = true,
	};
	struct export_proc p = {0};
	struct stat st;
	int i;

	for (i = 0; paths[i]; i++)
		if (!strcmp(paths[i], "-") ||
		    (!stat(paths[i], &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
			return;
	x->base = INT64_MAX;
	x->proc = &p;
	lines_read(paths, &first, x);
	x->proc = NULL;
	x->based = x->base < INT64_MAX;
}

int export_read(struct export *x, char *const *paths)
{
	int err = json_doc__init(&x->doc);

	x->order = export_order__new();
	x->join = export_join__new();
	if (err || !x->order || !x->join)
		return -ENOMEM;
	if (x->fmt->from_zero)
		find_first(x, paths);
	progress__begin(&x->progress, "Exporting");
	err = lines_read(paths, &ops, x);
	end_trace(x); /* of a last file that could not be read on */
	progress__end(&x->progress);
	return err;
}

void export_read_free(struct export *x)
{
	export_records_free(x);
	export_ports_free(x);
	export_order__free(x->order);
	export_join__free(x->join);
	json_doc__free(&x->doc);
	copies__free(&x->copies);
	copies__trace_free(&x->trace);
	xbuf__free(&x->out);
}
