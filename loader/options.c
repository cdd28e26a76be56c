// SPDX-License-Identifier: BSD-2-Clause
/* Numbers with units, words, pids and traces, from the command line. */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "clock.h"
#include "cmd.h"
#include "lines.h"
#include "log.h"
#include "options.h"

void options__parse(const struct argp *argp, int argc, char **argv, unsigned int flags, void *to)
{
	int err;

	argp_err_exit_status = EXIT_USAGE;
	/* argp has said what is wrong and where help is, and left; but for memory */
	err = argp_parse(argp, argc, argv, flags, NULL, to);
	if (!err)
		return;
	pr_err("Failed to read the command line: %s\n", strerror(err));
	exit(EXIT_FAILED);
}

int options__traces(int key, struct argp_state *state, char ***paths)
{
	switch (key) {
	case 'q':
		log_level = LOG_WARN;
		return 0;
	case ARGP_KEY_ARGS:
		*paths = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (!*paths)
			argp_error(state, "a trace is needed: a file, a directory, or - for "
					  "standard input");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options__not_input(struct argp_state *state, char *const *paths, const char *output)
{
	if (lines_have(paths, output))
		argp_error(state, "'%s' is one of the traces: it would be written over", output);
}

void options__no_stream(struct argp_state *state, const char *option, const char *what,
			const char *value)
{
	if (value && !strcmp(value, "-"))
		argp_error(state,
			   "%s takes %s, and '-' for standard output is none; one of that name is "
			   "./-",
			   option, what);
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* A whole number and one of the units; the last unit has the name "". */
static int parse_unit(const char *text, const struct unit *units, uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	for (; *units->name; units++)
		if (!strcmp(end, units->name))
			break;
	if (strcmp(end, units->name) || v > UINT64_MAX / 2 / units->factor)
		return -EINVAL;
	*out = v * units->factor;
	return 0;
}

int parse_duration(const char *text, uint64_t *ns)
{
	static const struct unit units[] = {{"ms", 1000000},
					    {"s", NSEC_PER_SEC},
					    {"m", 60 * NSEC_PER_SEC},
					    {"h", 3600 * NSEC_PER_SEC},
					    {"", NSEC_PER_SEC}};

	return parse_unit(text, units, ns);
}

int parse_size(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"", 1}};

	return parse_unit(text, units, bytes);
}

int parse_count(const char *text, uint64_t *n)
{
	static const struct unit none[] = {{"", 1}};

	return parse_unit(text, none, n);
}

int parse_word(const char *text, const char *const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -EINVAL;
}

int parse_pid(const char *text, pid_t *pid)
{
	uint64_t v;
	if (parse_count(text, &v) || !v || v > INT_MAX)
		return -EINVAL;
	*pid = (pid_t)v;
	return 0;
}

void options__add_pid(struct argp_state *state, const char *arg, pid_t pids[MAX_PIDS], int *npids)
{
	if (*npids == MAX_PIDS)
		argp_error(state, "more than %d --pid", MAX_PIDS);
	else if (parse_pid(arg, &pids[(*npids)++]))
		argp_error(state, "'%s' is no process id", arg);
}
