/* SPDX-License-Identifier: BSD-2-Clause */
/* The job that `record -- CMD` starts: as the invoking user, with the plugin in its environment. */
#ifndef NCCLSCOPE_JOB_H
#define NCCLSCOPE_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Starts argv with NCCL_PROFILER_PLUGIN=plugin, as SUDO_UID when run under sudo, unless a handler of ours has set *stop. A signal
 * that comes too late for that reaches both, where it is for both. Returns its pid; -ECANCELED: *stop was set, and it is not started;
 * or -errno of what failed (of exec too); logs nothing.
 */
pid_t job__start(char **argv, const char *plugin, const volatile sig_atomic_t *stop);

/*
 * What NCCL_PROFILER_PLUGIN names here that job__start() takes from the command: another profiler than ours at `plugin`, a real path.
 * NULL: nothing. The environment's, valid until that changes.
 */
const char *job__replaced(const char *plugin);

/* What to do about one of these errors of `cmd`, for the end of its message: begins with "; ", or is "". */
const char *job__advice(const char *cmd, int err);

/*
 * True once the job has ended; *code is then its exit status, 128 + N for signal N.
 */
bool job__ended(pid_t pid, int *code);

/* Who called us, before sudo: the owner of what we make. Our own ids without sudo. */
void invoking_user(uid_t *uid, gid_t *gid);

#endif
