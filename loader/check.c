// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope check`: holds traces against the schema and against the rules between records, and
 * says file, line and what is wrong. This file takes the lines and prints what is found.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "cmd.h"
#include "lines.h"
#include "log.h"
#include "zst.h"

static const char usage[] =
	"Usage: ncclscope check [OPTION]... TRACE...\n"
	"Holds traces against the schema and the rules between records (docs/trace.md).\n"
	"A TRACE is a file, a directory (its trace_*.jsonl and trace_*.jsonl.zst), or - for "
	"standard input.\n\n"
	"  --compat        accept what the original minimal_profiler writes\n"
	"  --strict        warnings are errors\n"
	"  --json          findings as one JSON object\n"
	"  --max-errors N  print at most N errors, N warnings and N notes, 0: all (default 100);\n"
	"                  all are counted\n"
	"  -q, --quiet     print nothing, only the exit status counts\n"
	"  -h, --help      this text\n\n"
	"Exit status: 0 clean, 1 something is wrong, 2 usage.\n";

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
		pr_info("%llu more findings not shown, see --max-errors\n",
			(unsigned long long)not_shown);
	if (matched + unmatched)
		pr_info("PXN: %llu operations joined with their origin, %llu without it\n",
			(unsigned long long)matched, (unsigned long long)unmatched);
	pr_info("%llu files, %llu records, %llu errors, %llu warnings\n",
		(unsigned long long)c->nr_files, (unsigned long long)c->nr_records,
		(unsigned long long)c->nr[FIND_ERROR], (unsigned long long)c->nr[FIND_WARNING]);
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
	if (fflush(stdout) || ferror(stdout)) {
		pr_err("Failed to write the findings: %s\n", strerror(errno));
		goto cleanup;
	}
	if (!err && !c->nr[FIND_ERROR])
		ret = EXIT_OK;
cleanup:
	if (err == -ENOMEM)
		pr_err("Failed to check the traces: %s\n", strerror(ENOMEM));
	rules_free(c);
	json_doc__free(&c->doc);
	return ret;
}

enum { OPT_COMPAT = 256, OPT_STRICT, OPT_JSON, OPT_MAX, OPT_DUMP };

static const struct option options[] = {
	{"compat", no_argument, NULL, OPT_COMPAT},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"json", no_argument, NULL, OPT_JSON},
	{"quiet", no_argument, NULL, 'q'},
	{"max-errors", required_argument, NULL, OPT_MAX},
	{"dump-tables", no_argument, NULL, OPT_DUMP}, /* for the test of the schema */
	{"help", no_argument, NULL, 'h'},
	{},
};

static int parse_max(struct check *c, const char *arg)
{
	char *end;

	errno = 0;
	c->max_shown = strtoull(arg, &end, 10);
	if (*arg >= '0' && *arg <= '9' && !*end && !errno)
		return 0;
	pr_err("--max-errors needs a number, not '%s'\n", arg);
	return -EINVAL;
}

int cmd_check(int argc, char **argv)
{
	struct check c = {.max_shown = 100};
	int opt;

	optind = 0; /* begin anew: the caller has parsed options of its own */
	while ((opt = getopt_long(argc, argv, "qh", options, NULL)) != -1) {
		switch (opt) {
		case OPT_COMPAT:
			c.compat = true;
			break;
		case OPT_STRICT:
			c.strict = true;
			break;
		case OPT_JSON:
			c.json = true;
			break;
		case OPT_MAX:
			if (parse_max(&c, optarg))
				return EXIT_USAGE;
			break;
		case OPT_DUMP:
			keys_dump(stdout);
			return EXIT_OK;
		case 'q':
			c.quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return EXIT_OK;
		default:
			fputs(usage, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return check_run(&c, argv + optind);
	pr_err("check needs a trace: a file, a directory, or - for standard input\n");
	fputs(usage, stderr);
	return EXIT_USAGE;
}
