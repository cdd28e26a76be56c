/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of /proc/PID/maps. A job chooses what its files are called, and how long that is: read whole lines (getline(3)), as what is in the
 * middle of one can look like any other.
 */
#ifndef NCCLSCOPE_MAPPING_H
#define NCCLSCOPE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uint64_t start, end, offset, ino;
	unsigned int dev_major, dev_minor;
	char perms[5]; /* rwxp, or s for shared */
	char *name;    /* within the line */
};

/* The last component of the name in a line, up to the line's end; "": there is none. Cheap: most lines are of no interest. */
const char *mapping__base(const char *line);

/* A whole line, which loses its newline; false: it maps no file. */
bool mapping__parse(struct mapping *m, char *line);

/* What leads to the very file of a mapping, whatever lies at its name now; takes a capability. */
void mapping__path(const struct mapping *m, pid_t pid, char *path, size_t size);

#endif
