/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where this node has the NCCL profiler plugin: what `record -- CMD` puts into the environment of
 * the job, and what doctor looks at.
 */
#ifndef NCCLSCOPE_PLUGIN_PATH_H
#define NCCLSCOPE_PLUGIN_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define PLUGIN_FILE "libnccl-profiler-ncclscope.so"

/*
 * Writes the real path of the plugin to buf, from the first of these that is set or exists:
 *	opt, the environment variable NCCLSCOPE_PLUGIN: only these, if set, so that a wrong path is
 *	an error and never another library;
 *	the directory of the executable, ../lib and ../lib/ncclscope next to it, NCCLSCOPE_LIBDIR.
 * Returns 0, -ENOENT, or what realpath() said about a path that was given.
 */
int plugin__find(const char *opt, char *buf, size_t len);

/* The path that somebody has named: opt, or else the environment's; NULL: nobody has. */
const char *plugin__named(const char *opt);

#endif
