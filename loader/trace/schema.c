// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope schema`: prints the JSON Schema of the trace, which the build takes from
 * docs/trace.schema.json, so that the binary and the page cannot differ.
 */
#include <argp.h>
#include <stdio.h>
#include "cmd.h"
#include "options.h"
#include "output.h"
#include "trace_schema.h"

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	argp_error(state, "schema takes no argument, '%s' is one", arg);
	return 0;
}

static const struct argp argp = {
	.parser = parse_one,
	.doc = "Print the JSON Schema (draft 2020-12) of one line of a trace.",
};

int cmd_schema(int argc, char **argv)
{
	options__parse(&argp, argc, argv, 0, NULL);
	fwrite(trace_schema_json, trace_schema_json_len, 1, stdout);
	return output__flush() ? EXIT_FAILED : EXIT_OK;
}
