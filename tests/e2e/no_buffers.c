// SPDX-License-Identifier: BSD-2-Clause
/*
 * Preloaded into a job: of each process only the first NO_BUFFERS threads (none) get a buffer of the plugin's, as where memory
 * is refused: overcommit that is strict, RLIMIT_AS, mlockall(2) with all that there may be locked. Known by its size.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
#include "plugin.h"

static long left;

__attribute__((constructor)) static void setup(void)
{
	const char *n = getenv("NO_BUFFERS");

	left = n ? atol(n) : 0;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (len == sizeof(struct tbuf) && fd < 0 &&
	    __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) <= 0) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}
