/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who records has to get a CPU some 20 times a second, or the ring is full. On some kernels (seen on 6.18) a job whose threads yield, as
 * NCCL's proxies do, keeps whoever is outside its group (there a session's autogroup) from its CPUs for many seconds, kernel
 * threads too, and whatever their nice value. So a thread of real-time priority, which such a job cannot keep waiting, looks whether who records
 * comes by, and makes it real-time as well for as long as that is needed: for a part of a CPU only, the rest of it is the job's.
 */
#ifndef NCCLSCOPE_RESCUE_H
#define NCCLSCOPE_RESCUE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Looks after the thread that calls this from now on. One at a time. 0; -EALREADY: it has a policy that somebody chose, which stays;
 * or another -errno: who is not allowed to be real-time does without.
 */
int rescue__start(void);

/* That thread, wherever it may have been for a while: it is there. `now_ns`: CLOCK_MONOTONIC. Nothing where nobody looks. */
void rescue__here(uint64_t now_ns);

/* That thread is nobody's care any more, and ordinary. How often it had to be made real-time. Nothing where nobody looks. */
uint32_t rescue__stop(void);

/*
 * A process (or thread) of ours that somebody waits for: real-time, or ordinary again. Its children are ordinary. 0;
 * -EALREADY: it is not ordinary; or another -errno.
 */
int rescue__raise(pid_t tid);
int rescue__lower(pid_t tid);

#endif
