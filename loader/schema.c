// SPDX-License-Identifier: BSD-2-Clause
/*
 * `ncclscope schema`: prints the JSON Schema of the trace, which the build takes from
 * docs/trace.schema.json, so that the binary and the page cannot differ.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "cmd.h"
#include "log.h"
#include "trace_schema.h"

static const char usage[] = "Usage: ncclscope schema\n"
			    "Prints the JSON Schema (draft 2020-12) of one line of a trace.\n\n"
			    "  -h, --help  this text\n";

int cmd_schema(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {}};
	int opt;

	optind = 0; /* begin anew: the caller has parsed options of its own */
	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		fputs(usage, opt == 'h' ? stdout : stderr);
		return opt == 'h' ? EXIT_OK : EXIT_USAGE;
	}
	if (optind < argc) {
		pr_err("schema takes no argument, '%s' is one\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (fwrite(trace_schema_json, trace_schema_json_len, 1, stdout) != 1 || fflush(stdout)) {
		pr_err("Failed to write the schema: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}
