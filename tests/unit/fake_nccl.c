// SPDX-License-Identifier: BSD-2-Clause
/*
 * In place of libnccl.so.2: the mask word, and a version. With FAKE_NCCL_FDS="OUT IN" its constructor says that it runs,
 * and waits to be let go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int ncclProfilerEventMask;

int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
	*version = 22907;
	return 0;
}

__attribute__((constructor)) static void wait_if_asked(void)
{
	const char *fds = getenv("FAKE_NCCL_FDS");
	int out, in;
	char c = 'c';

	if (fds && sscanf(fds, "%d %d", &out, &in) == 2 && write(out, &c, 1) == 1 &&
	    read(in, &c, 1) < 0)
		perror("FAKE_NCCL_FDS");
}
