/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who a process is: what /proc and its libnccl say of it. All of it is the job's own text: bounded when it is
 * read, checked before it names a file, escaped when it is written.
 */
#ifndef NCCLSCOPE_WHO_H
#define NCCLSCOPE_WHO_H

#include <stddef.h>
#include <stdint.h>

#define WHO_ARGS_MAX   (64 * 1024) /* of the command line; what is longer is cut */
#define WHO_ENV_MAX    8192	   /* of the variables that we pass on */
#define WHO_VALUE_MAX  256	   /* of one of these */
#define WHO_CGROUP_MAX 8192

enum who_part {
	WHO_ARGS,     /* as in /proc/PID/cmdline: each ends with a 0 */
	WHO_ENV,      /* NAME=VALUE, each ends with a 0; of those that who__read() knows */
	WHO_CGROUP,   /* its path in the unified hierarchy; "": not known */
	WHO_BUILD_ID, /* of libnccl, hex; "": not known */
	WHO_PARTS,
};

/* All zero: nothing is known. */
struct who {
	char *text; /* owned: the parts, one after the other, each with a 0 behind it */
	uint32_t len[WHO_PARTS]; /* without that 0 */
};

/* The longest that a part may be. */
extern const uint32_t who_max[WHO_PARTS];

/* Variables that a header tells as `launcher`, up to NULL. */
extern const char *const who_launcher[];

/*
 * Of a process that may be gone: what cannot be read is empty. 0; -ETIMEDOUT: reading it hangs (patience.h), it is `uid`'s;
 * or -errno.
 */
int who__read(struct who *w, uint32_t pid, uint32_t uid);
/* A copy of `len` bytes that were a struct who's text, with these lengths. 0, -ENOMEM, or -EINVAL: they are none. */
int who__set(struct who *w, const uint32_t lens[WHO_PARTS], const char *text, size_t len);
size_t who__size(const struct who *w); /* of text, in bytes */
void who__free(struct who *w);

/* Never NULL; *len, if asked for, without the last 0. */
const char *who__part(const struct who *w, enum who_part part, size_t *len);
/* The value of a variable; NULL: it is not set. */
const char *who__env(const struct who *w, const char *name);

#endif
