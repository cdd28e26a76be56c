/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files in which recorders tell what they do, one each, in a directory of root's. Everybody may read
 * them; nothing is asked of a recorder, so nobody can hold one up.
 */
#ifndef NCCLSCOPE_STATUS_FILE_H
#define NCCLSCOPE_STATUS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <jansson.h>

/* Where they lie: /run/ncclscope, or NCCLSCOPE_STATUS_DIR for tests. */
const char *status_dir(void);

enum status_state {
	STATUS_RUNNING,
	STATUS_WAITING, /* there, and records nothing before waitsUntilUs */
	STATUS_SILENT,	/* there, but its file is old: stopped, or hung */
	STATUS_DEAD,	/* killed: its file stayed */
};

/*
 * Whose file this is, by pid and start time; now_us is CLOCK_MONOTONIC, as in the file. A file that says neither
 * is a dead one's.
 */
enum status_state status_file__state(const json_t *doc, uint64_t now_us);

/* Opens the directory, and makes it. -EPERM: others could write in it. An fd or -errno. */
int status_dir__make(const char *path);

/* Puts `text` into the file of this pid, whole or not at all. 0 or -errno. */
int status_file__write(int dirfd, pid_t pid, const char *text, size_t len);
void status_file__remove(int dirfd, pid_t pid);

/* Removes files of recorders that are dead; whether there were any. */
bool status_dir__expire(int dirfd);

/*
 * All recorders that have a file in the directory, by pid: what it says, and "state", "file" and "ageUs". Files
 * that are no recorder's are skipped, with a warning. An array, empty without a directory; NULL: no memory.
 */
json_t *status_dir__read(const char *path, uint64_t now_us);

/* Text of a job's or a file's name, which may be no UTF-8: what is none becomes U+FFFD. */
json_t *status_text(const char *s, size_t len);

/* ["coll", "proxystep"] */
json_t *status_mask(uint32_t mask);

#endif
