/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing that several sub-commands share: numbers with units, words, pids, traces. */
#ifndef NCCLSCOPE_OPTIONS_H
#define NCCLSCOPE_OPTIONS_H

#include <stdint.h>
#include <sys/types.h>

struct argp;
struct argp_state;

#define MAX_PIDS 64 /* of a command line */

/* The command line, by argp; returns if it is right. */
void options__parse(const struct argp *argp, int argc, char **argv, unsigned int flags, void *to);

/*
 * What commands that read traces have in common: --quiet, and the traces themselves, of which there has to be one. For
 * keys that a parser has no case for, and for ARGP_KEY_END; as a parser of argp's. `paths` stay argp's.
 */
int options__traces(int key, struct argp_state *state, char ***paths);

/* For their help texts. */
#define OPTIONS_TRACE                                                                              \
	"A TRACE is a file, a directory (its trace_*.jsonl and trace_*.jsonl.zst), or - for "      \
	"standard input."

/* The file to write must not be one of those to read: says so, and ends the process. */
void options__not_input(struct argp_state *state, char *const *paths, const char *output);

/* What is to be written to is no stream, as - is elsewhere: says so, and ends the process. @value may be NULL. */
void options__no_stream(struct argp_state *state, const char *option, const char *what,
			const char *value);

/* "500ms", "10s", "2m", "1h", or seconds without a unit; into ns. 0 or -EINVAL. */
int parse_duration(const char *text, uint64_t *ns);

/* "64M", "1G", "4096"; binary units, into bytes. 0 or -EINVAL. */
int parse_size(const char *text, uint64_t *bytes);

/* A whole number. 0 or -EINVAL. */
int parse_count(const char *text, uint64_t *n);

/* Its place in `words`, which ends with NULL, or -EINVAL. */
int parse_word(const char *text, const char *const *words);

/* 0 or -EINVAL. */
int parse_pid(const char *text, pid_t *pid);

/* One --pid more; says what is wrong with it, and ends the process. */
void options__add_pid(struct argp_state *state, const char *arg, pid_t pids[MAX_PIDS], int *npids);

#endif
