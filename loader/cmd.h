/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sub-commands of ncclscope. Each takes the arguments from its own name on (argv[0] is the
 * name of the sub-command) and returns the exit status of the process.
 */
#ifndef NCCLSCOPE_CMD_H
#define NCCLSCOPE_CMD_H

/* Exit status, a contract with scripts: see ncclscope(1). */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_PRIVILEGE = 3,
	EXIT_KERNEL = 4, /* the kernel or its BPF lacks something */
	EXIT_LOST = 5,	 /* data was lost and --strict was given */
};

int cmd_record(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_arm(int argc, char **argv);
int cmd_disarm(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_schema(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
