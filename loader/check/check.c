// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope check`: holds traces against the schema and against the rules between records, and
 * says file, line and what is wrong. This file takes the lines and prints what is found.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "cmd.h"
#include "human.h"
#include "lines.h"
#include "log.h"
#include "options.h"
#include "output.h"
#include "zst.h"

/* ------------------------------------------------------------------ findings */

static const char *const level_names[] = {"error", "warning", "note"};

static uint64_t of_all_levels(const uint64_t *nr)
{
	return nr[FIND_ERROR] + nr[FIND_WARNING] + nr[FIND_NOTE];
}

const char *quote(const char *s, size_t len)
{
	static char text[4][128];
	static unsigned int turn;
	char *to = text[turn++ % 4], *out = to;
	size_t i;

	for (i = 0; i < len && out < to + 96; i++) {
		unsigned char ch = s[i];

		if (ch >= 0x20 && ch < 0x7f)
			*out++ = ch;
		else
			out += sprintf(out, "\\x%02x", ch);
	}
	strcpy(out, i < len ? "..." : "");
	return to;
}

/* A JSON string; bytes that are not UTF-8 (of file names) as quote() shows them. */
static json_t *json_text(const char *s)
{
	json_t *text = json_string(s);

	return text ? text : json_string(quote(s, strlen(s)));
}

static void print_json(struct check *c, enum level level, uint64_t line, const char *code,
		       const char *message)
{
	json_t *obj =
		json_pack("{so si ss ss so}", "file", json_text(c->file), "line", (int)line,
			  "level", level_names[level], "code", code, "message", json_text(message));

	if (!obj) {
		c->err = -ENOMEM;
		return;
	}
	fputs(of_all_levels(c->nr_shown) ? ",\n" : "\n", stdout);
	json_dumpf(obj, stdout, JSON_COMPACT);
	json_decref(obj);
}

/* The name in full, where quote() cuts; who may write to the directory has chosen it. */
static void print_text(const struct check *c, enum level level, uint64_t line, const char *code,
		       const char *message)
{
	const char *s;

	for (s = c->file; *s; s++)
		fputs(quote(s, 1), stdout);
	if (line)
		printf(":%llu", (unsigned long long)line);
	printf(": %s: %s [%s]\n", level_names[level], message, code);
}

void find_at(struct check *c, enum level level, uint64_t line, const char *code, const char *fmt,
	     ...)
{
	char message[512];
	va_list ap;

	if (c->strict && level == FIND_WARNING)
		level = FIND_ERROR;
	c->nr[level]++;
	/* Each level has its own limit: where records were lost, warnings would hide every error. */
	if (c->quiet || (c->max_shown && c->nr_shown[level] >= c->max_shown))
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	progress__end(&c->progress);
	if (c->json)
		print_json(c, level, line, code, message);
	else
		print_text(c, level, line, code, message);
	c->nr_shown[level]++;
}

/* ------------------------------------------------------------------ lines */

static void parse_failed(struct check *c)
{
	const char *code = c->doc.err_utf8 ? "utf8" : c->doc.err_dup ? "key-twice" : "json";

	find(c, FIND_ERROR, code, "column %zu: %s", c->doc.err_at + 1, c->doc.err);
	rules_record(c, NULL, KIND_OTHER, NR_ETYPES, true);
}

/* The recording broke off in this line; where it is the first one, nothing tells that there was a recording. */
static void take_torn(struct check *c, bool header_behind)
{
	if (c->line > 1 || header_behind)
		find(c, FIND_NOTE, "torn", "the last record is torn, skipped");
	else
		find(c, FIND_ERROR, "header-first",
		     "no header, and no other whole record: it is no trace");
}

static void check_line(struct check *c, const char *s, size_t len, bool whole)
{
	enum etype etype;
	enum kind kind;
	bool torn;
	int err;

	c->line++;
	err = lines_parse(&c->doc, &s, &len, &torn);
	if (err == -ENOMEM) {
		c->err = err;
		return;
	}
	if ((err || torn) && !whole) {
		take_torn(c, torn);
		return;
	}
	if (err) {
		parse_failed(c);
		return;
	}
	if (torn)
		find(c, FIND_NOTE, "torn",
		     "a torn record, and the header of the next file behind it");
	if (c->doc.nodes[0].kind != JSON_KIND_OBJ) {
		find(c, FIND_ERROR, "json", "not an object");
		rules_record(c, NULL, KIND_OTHER, NR_ETYPES, true);
		return;
	}
	c->nr_records++;
	err = keys_check(c, &c->doc.nodes[0], &kind, &etype);
	rules_record(c, &c->doc.nodes[0], kind, etype, err);
}

static int take_line(void *to, const char *s, size_t len, bool whole)
{
	struct check *c = to;

	check_line(c, s, len, whole);
	return c->err;
}

static int take_too_long(void *to)
{
	struct check *c = to;

	c->line++;
	find(c, FIND_ERROR, "line-long", "the line has more than 1 MiB");
	rules_record(c, NULL, KIND_OTHER, NR_ETYPES, true);
	return c->err;
}

static int begin_file(void *to, const char *path)
{
	struct check *c = to;

	c->file = path;
	c->line = 0;
	c->nr_files++;
	return 0;
}

static int end_file(void *to)
{
	struct check *c = to;

	if (!c->line)
		find_at(c, FIND_ERROR, 0, "header-first", "the file is empty");
	rules_end_process(c);
	return c->err;
}

static void show_progress(void *to, uint64_t done, uint64_t total)
{
	struct check *c = to;

	progress__show(&c->progress, done, total);
}

static void not_readable(void *to, int err)
{
	struct check *c = to;

	find_at(c, FIND_ERROR, 0, "unreadable", "it could not be read: %s", zst_text__error(err));
	rules_end_process(c); /* what has been read counts, and is this file's */
}

static const struct lines_ops check_ops = {
	.begin = begin_file,
	.line = take_line,
	.too_long = take_too_long,
	.end = end_file,
	.failed = not_readable,
	.progress = show_progress,
};

/* ------------------------------------------------------------------ the whole */

static void print_end(const struct check *c, uint64_t matched, uint64_t unmatched)
{
	uint64_t not_shown = of_all_levels(c->nr) - of_all_levels(c->nr_shown);
	json_t *obj;

	if (c->json && !c->quiet) {
		obj = json_pack(
			"{sI sI sI sI sI s{sI sI} sI}", "files", (json_int_t)c->nr_files, "records",
			(json_int_t)c->nr_records, "errors", (json_int_t)c->nr[FIND_ERROR],
			"warnings", (json_int_t)c->nr[FIND_WARNING], "notes",
			(json_int_t)c->nr[FIND_NOTE], "pxn", "matched", (json_int_t)matched,
			"unmatched", (json_int_t)unmatched, "notShown", (json_int_t)not_shown);
		fputs(of_all_levels(c->nr_shown) ? "\n],\n" : "],\n", stdout);
		if (obj)
			json_dumpf(obj, stdout, JSON_EMBED);
		fputs("}\n", stdout);
		json_decref(obj);
	}
	if (c->quiet)
		return;
	fflush(stdout); /* in one file the sum comes behind what it is of */
	if (not_shown)
		pr_info("%llu more finding%s not shown, see --max-errors\n",
			(unsigned long long)not_shown, human__s(not_shown));
	if (matched + unmatched)
		pr_info("PXN: %llu operation%s joined with their origin, %llu without it\n",
			(unsigned long long)matched, human__s(matched),
			(unsigned long long)unmatched);
	pr_info("%llu file%s, %llu record%s, %llu error%s, %llu warning%s\n",
		(unsigned long long)c->nr_files, human__s(c->nr_files),
		(unsigned long long)c->nr_records, human__s(c->nr_records),
		(unsigned long long)c->nr[FIND_ERROR], human__s(c->nr[FIND_ERROR]),
		(unsigned long long)c->nr[FIND_WARNING], human__s(c->nr[FIND_WARNING]));
}

static int check_run(struct check *c, char **paths)
{
	uint64_t matched, unmatched;
	int err, ret = EXIT_FAILED;

	err = json_doc__init(&c->doc) ?: rules_init(c);
	if (err)
		goto cleanup;
	if (c->json && !c->quiet)
		fputs("{\"findings\": [", stdout);
	if (!c->quiet)
		progress__begin(&c->progress, "Checking");
	err = lines_read(paths, &check_ops, c);
	progress__end(&c->progress);
	rules_join_pxn(c, &matched, &unmatched);
	print_end(c, matched, unmatched);
	if (output__flush())
		goto cleanup;
	if (!err && !c->nr[FIND_ERROR])
		ret = EXIT_OK;
cleanup:
	if (err == -ENOMEM)
		pr_err("Failed to check the traces: %s\n", strerror(ENOMEM));
	rules_free(c);
	json_doc__free(&c->doc);
	return ret;
}

/* ------------------------------------------------------------------ command line */

enum { OPT_COMPAT = 256, OPT_STRICT, OPT_JSON, OPT_MAX, OPT_DUMP };

struct options {
	struct check c;
	char **paths;
};

static const struct argp_option options[] = {
	{"compat", OPT_COMPAT, NULL, 0, "Accept what the original minimal_profiler writes", 0},
	{"strict", OPT_STRICT, NULL, 0, "Warnings are errors", 0},
	{"json", OPT_JSON, NULL, 0, "Findings as one JSON object", 0},
	{"max-errors", OPT_MAX, "N", 0,
	 "Print at most N errors, N warnings and N notes, 0: all (default 100); all are counted",
	 0},
	{"dump-tables", OPT_DUMP, NULL, OPTION_HIDDEN, NULL, 0}, /* for the test of the schema */
	{"quiet", 'q', NULL, 0, "Print nothing, only the exit status counts", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_COMPAT:
		o->c.compat = true;
		return 0;
	case OPT_STRICT:
		o->c.strict = true;
		return 0;
	case OPT_JSON:
		o->c.json = true;
		return 0;
	case OPT_MAX:
		if (parse_count(arg, &o->c.max_shown))
			argp_error(state, "--max-errors needs a number, not '%s'", arg);
		return 0;
	case OPT_DUMP:
		keys_dump(stdout);
		exit(EXIT_OK);
	case 'q':
		o->c.quiet = true;
		return 0;
	default:
		return options__traces(key, state, &o->paths);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.args_doc = "TRACE...",
	.doc = "Hold traces against the schema and the rules between records "
	       "(docs/trace.md). " OPTIONS_TRACE
	       "\vExit status: 0 clean, 1 something is wrong, 2 usage.",
};

int cmd_check(int argc, char **argv)
{
	struct options o = {.c = {.max_shown = 100}};

	options__parse(&argp, argc, argv, 0, &o);
	return check_run(&o.c, o.paths);
}
