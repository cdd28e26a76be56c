/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command makes of traces, in one piece: a file that is there when it is whole, and until then what was there
 * before; or standard output, a pipe or a device, which are written as they are. A file takes the place of a link instead of
 * following it: the directory may be somebody else's.
 */
#ifndef NCCLSCOPE_OUTPUT_H
#define NCCLSCOPE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct output {
	int fd;
	const char *path; /* where the file will be, the caller's; NULL: it is none */
};

/*
 * NULL and "-" are standard output. The file is sudo's caller's, who will look at it, with @mode less the umask. 0 or -errno. One
 * at a time: a signal that ends the program takes away what is not whole.
 */
int output__open(struct output *o, const char *path, mode_t mode);
/* Of what was given as @path, for messages. */
const char *output__name(const char *path);
/* 0 or -errno. */
int output__write(const struct output *o, const void *data, size_t len);
/* What was printed to stdout is where it goes; else that is told, once for all calls. 0 or -errno. */
int output__flush(void);
/* Into its place if @ok, else away with it. 0 or -errno; safe twice. */
int output__close(struct output *o, bool ok);

#endif
