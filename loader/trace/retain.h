/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What --keep leaves on the disk: the traces of the newest recordings. Those of the oldest go when all together are more than
 * was asked for. Only what was added here is ever deleted, and only while its name is still that file's.
 */
#ifndef NCCLSCOPE_RETAIN_H
#define NCCLSCOPE_RETAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct retain;

#define RETAIN_FILES_MAX 65536 /* for record: a name of 200 bytes and more in memory for each */

/*
 * For traces of max_bytes in all, and max_files, whatever their size. `own_dirs`: directories that nothing is left in go, too.
 * NULL: no memory.
 */
struct retain *retain__new(uint64_t max_bytes, uint32_t max_files, bool own_dirs);

/* A trace of the recording that runs, open as `fd`, at `path`. By whoever writes traces; once for each. */
void retain__add(struct retain *r, const char *path, int fd);

/*
 * The recording has ended, and its traces are whole; by whoever has joined the one that wrote them. Deletes those of the oldest
 * recordings; of the newest there are always all. `links`, `uid`: as in out_dir_open().
 */
void retain__end_recording(struct retain *r, bool links, uid_t uid);

/* What retain__end_recording() has deleted so far. */
struct retain_deleted {
	uint64_t recordings, files, bytes;
};
struct retain_deleted retain__deleted(const struct retain *r);

void retain__free(struct retain *r);

#endif
