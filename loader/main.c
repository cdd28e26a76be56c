// SPDX-License-Identifier: BSD-2-Clause
/* ncclscope: one binary, sub-commands like git's and perf's. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd.h"
#include "log.h"
#include "output.h"
#include "version.h"

static int cmd_version(int argc, char **argv)
{
	bool help = argc == 2 && !strcmp(argv[1], "--help");

	if (argc > 1) {
		fputs("Usage: ncclscope version\nPrint the version.\n", help ? stdout : stderr);
		return help ? EXIT_OK : EXIT_USAGE;
	}
	printf("ncclscope %s\n", NCCLSCOPE_VERSION);
	return EXIT_OK;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *brief;
} commands[] = {
	{"record", cmd_record, "record the NCCL events of this node's jobs"},
	{"status", cmd_status, "tell who records what on this node, and what it asks of jobs"},
	{"top", cmd_top, "show what each rank on this node does now"},
	{"metrics", cmd_metrics, "print what recorders count, for Prometheus"},
	{"convert", cmd_convert, "make traces from a capture of record --raw"},
	{"report", cmd_report, "say why operations were slow"},
	{"export", cmd_export,
	 "write traces for Perfetto, Chrome's viewers, speedscope, or as a table"},
	{"view", cmd_view, "make a page of a trace, to look at in a browser"},
	{"merge", cmd_merge, "make one trace of those of several nodes, in one clock"},
	{"check", cmd_check, "hold traces against the format and its rules"},
	{"doctor", cmd_doctor, "tell what works on this machine, and what to do about the rest"},
	{"arm", cmd_arm, "turn a job's public probes on for other tracers"},
	{"disarm", cmd_disarm, "turn them off again"},
	{"schema", cmd_schema, "print the JSON Schema of a trace"},
	{"version", cmd_version, "print the version"},
};

#define NCOMMANDS (sizeof(commands) / sizeof(*commands))

static void usage(FILE *f)
{
	size_t i;

	fprintf(f, "Usage: ncclscope COMMAND [OPTION...]\n"
		   "Why was this NCCL collective slow? Down to the thread and the socket.\n\n");
	for (i = 0; i < NCOMMANDS; i++)
		fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].brief);
	fprintf(f, "\n'ncclscope COMMAND --help' or 'man ncclscope-COMMAND' tells more.\n");
}

/* What was printed last may not have gone anywhere; commands that write much have seen it before. */
static void check_output(void)
{
	if (output__flush())
		_exit(EXIT_FAILED);
}

/*
 * Where one of these is closed, what is opened first would be it: a capture, say, into which messages go. This can be neither read
 * nor written, nor opened for that by its name, and a command that is started has it closed as before.
 */
static void hold_standard(void)
{
	int fd;

	do
		fd = open("/", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	static char name[64], help[] = "--help";
	size_t i;

	hold_standard();
	/* Ignored by who has started us, children would go before we have seen their end, and their numbers be others'. */
	signal(SIGCHLD, SIG_DFL);
	atexit(check_output);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") && argc == 3) {
		argv[1] = argv[2];
		argv[2] = help;
	}
	if (argc == 3 && !strcmp(argv[2], "-h")) /* argp has -? for it */
		argv[2] = help;
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version"))
		return cmd_version(argc - 1, argv + 1);
	for (i = 0; i < NCOMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		/* usage and error texts begin with the whole command */
		snprintf(name, sizeof(name), "ncclscope %s", commands[i].name);
		argv[1] = name;
		return commands[i].run(argc - 1, argv + 1);
	}
	pr_err("unknown command '%s', see 'ncclscope --help'\n", argv[1]);
	return EXIT_USAGE;
}
