// SPDX-License-Identifier: BSD-2-Clause
/* ncclscope doctor: what works on this node, and what to do about what does not. */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "clock.h"
#include "cmd.h"
#include "feat.h"
#include "log.h"
#include "namespaces.h"
#include "options.h"
#include "output.h"

#ifndef NCCLSCOPE_VERSION
#define NCCLSCOPE_VERSION "unknown"
#endif

#define DOCTOR_SCHEMA 1
#define WIDTH	      100
#define DETAIL_COLUMN 47

struct doctor {
	struct feat_opts opts;
	struct feat_result results[FEAT_CNT];
	struct utsname uts;
	double seconds;
	bool json, verbose, colour;
};

/* ---- Text ------------------------------------------------------------------------------------ */

/* Prints text from the current column, DETAIL_COLUMN, on; breaks lines at spaces where it can. */
static void print_wrapped(const char *text)
{
	size_t room = WIDTH - DETAIL_COLUMN, len, n;

	for (;;) {
		len = strlen(text);
		n = len;
		if (len > room) {
			for (n = room; n && text[n] != ' '; n--)
				;
			if (!n)
				n = room; /* a long path, say */
		}
		for (size_t i = 0; i < n; i++) /* names of files may hold anything */
			putchar((unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
		putchar('\n');
		text += n;
		text += *text == ' ';
		if (!*text)
			return;
		printf("%*s", DETAIL_COLUMN, "");
	}
}

static const char *status_colour(enum feat_status status)
{
	return status == FEAT_WORKS		 ? "\033[32m"
	       : status == FEAT_OPTIONAL_MISSING ? "\033[33m"
						 : "\033[31m";
}

static void print_feature(const struct doctor *doctor, enum feat_id id, const char **advice)
{
	const struct feat_result *result = &doctor->results[id];

	printf("  %-27s", feat_descs[id].name);
	if (doctor->colour)
		printf("%s%-16s\033[0m  ", status_colour(result->status),
		       feat_status_name(result->status));
	else
		printf("%-16s  ", feat_status_name(result->status));
	print_wrapped(result->detail);
	if (doctor->verbose) {
		printf("%*sfor: ", DETAIL_COLUMN - 5, "");
		print_wrapped(feat_descs[id].needed_for);
	}
	/* Without privilege the same advice holds for dozens of rows in a row. */
	if (result->advice[0] && strcmp(result->advice, *advice)) {
		*advice = result->advice;
		printf("%*s-> ", DETAIL_COLUMN - 3, "");
		print_wrapped(result->advice);
	}
}

static void print_verdict(const struct doctor *doctor, int status)
{
	static const char *const verdicts[] = {
		[EXIT_OK] = "Ready: everything that record requires works",
		[EXIT_FAILED] = "Not ready: the plugin is missing or unfit",
		[EXIT_PRIVILEGE] = "Not ready: privilege is missing",
		[EXIT_KERNEL] = "Not ready: the kernel lacks what record requires",
	};
	int id, n[4] = {0};

	for (id = 0; id < FEAT_CNT; id++)
		n[doctor->results[id].status]++;
	printf("\n%s.\n%d work, %d missing, %d denied, %d optional missing; %.1f s.\n",
	       verdicts[status], n[FEAT_WORKS], n[FEAT_MISSING], n[FEAT_DENIED],
	       n[FEAT_OPTIONAL_MISSING], doctor->seconds);
}

static void print_text(const struct doctor *doctor, int status)
{
	const char *group = "", *advice = "";
	int id;

	printf("ncclscope %s, Linux %s %s\n", NCCLSCOPE_VERSION, doctor->uts.release,
	       doctor->uts.machine);
	for (id = 0; id < FEAT_CNT; id++) {
		if (strcmp(group, feat_descs[id].group)) {
			group = feat_descs[id].group;
			printf("\n%s\n", group);
		}
		print_feature(doctor, id, &advice);
	}
	print_verdict(doctor, status);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Names of files need not be UTF-8; JSON must be. */
static json_t *json_text(const char *text)
{
	json_t *json = json_string(text);
	char ascii[512];
	size_t i;

	if (json)
		return json;
	snprintf(ascii, sizeof(ascii), "%s", text);
	for (i = 0; ascii[i]; i++)
		if ((unsigned char)ascii[i] >= 0x80)
			ascii[i] = '?';
	return json_string(ascii);
}

static json_t *json_feature(const struct doctor *doctor, enum feat_id id)
{
	const struct feat_result *result = &doctor->results[id];
	const struct feat_desc *desc = &feat_descs[id];

	return json_pack("{ss ss sb ss ss so so}", "name", desc->name, "group", desc->group,
			 "required", desc->required, "status", feat_status_name(result->status),
			 "neededFor", desc->needed_for, "detail", json_text(result->detail),
			 "advice", json_text(result->advice));
}

static int print_json(const struct doctor *doctor, int status)
{
	json_t *root, *features = json_array();
	int id, err = 0;

	for (id = 0; id < FEAT_CNT; id++)
		err |= json_array_append_new(features, json_feature(doctor, id));
	root = json_pack("{si ss ss ss ss sb si sf so}", "schema", DOCTOR_SCHEMA, "tool",
			 "ncclscope", "version", NCCLSCOPE_VERSION, "kernel", doctor->uts.release,
			 "arch", doctor->uts.machine, "ready", status == EXIT_OK, "exit", status,
			 "seconds", doctor->seconds, "features", features);
	if (err || !root || json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(4)))
		err = -EIO;
	else
		putchar('\n');
	json_decref(root);
	return err;
}

/* ---------------------------------------------------------------------------------------------- */

enum { OPT_JSON = 256, OPT_NVML, OPT_PLUGIN, OPT_BTF };

static const struct argp_option options[] = {
	{"json", OPT_JSON, NULL, 0, "One JSON object instead of a table", 0},
	{"nvml", OPT_NVML, "PATH", 0, "NVML's library, as for record", 0},
	{"plugin", OPT_PLUGIN, "PATH", 0,
	 "Look at this plugin (else NCCLSCOPE_PLUGIN, else the installed)", 0},
	{"btf", OPT_BTF, "PATH", 0, "Use this BTF in place of /sys/kernel/btf/vmlinux", 0},
	{"verbose", 'v', NULL, 0,
	 "Say what each feature is needed for; libbpf's warnings to stderr", 0},
	{0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	struct doctor *doctor = state->input;

	switch (key) {
	case OPT_JSON:
		doctor->json = true;
		return 0;
	case OPT_NVML:
		doctor->opts.nvml = arg;
		return 0;
	case OPT_PLUGIN:
		doctor->opts.plugin = arg;
		return 0;
	case OPT_BTF:
		doctor->opts.btf = arg;
		return 0;
	case 'v':
		doctor->verbose = true;
		if (log_level < LOG_LIBBPF)
			log_level = log_level < LOG_DEBUG ? LOG_DEBUG : LOG_LIBBPF;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "doctor takes options only, '%s' is none", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_one,
	.doc = "Try everything that ncclscope needs on this node, and say what to do about what "
	       "does "
	       "not work.\v"
	       "Exit status: 0 record can work, 1 the plugin is missing or unfit, 2 usage, 3 "
	       "privilege "
	       "is missing, 4 the kernel lacks something that record requires.",
};

int cmd_doctor(int argc, char **argv)
{
	struct doctor doctor = {0};
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	uint64_t start = monotonic_ns();
	int status, err = 0;

	options__parse(&argp, argc, argv, 0, &doctor);
	doctor.colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) &&
			!(term && !strcmp(term, "dumb"));
	uname(&doctor.uts);
	log_setup_libbpf();
	namespaces__join_nodes_cgroup(); /* as record does */
	fflush(NULL);			 /* the probes fork */
	feat__probe_all(&doctor.opts, doctor.results);
	status = feat_exit_status(doctor.results);
	doctor.seconds = (double)(monotonic_ns() - start) / NSEC_PER_SEC;

	if (doctor.json)
		err = print_json(&doctor, status);
	else
		print_text(&doctor, status);
	if (output__flush())
		return EXIT_FAILED;
	if (err) {
		pr_err("Failed to write: %s\n", strerror(-err));
		return EXIT_FAILED;
	}
	return status;
}
