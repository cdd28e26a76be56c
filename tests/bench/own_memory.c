// SPDX-License-Identifier: BSD-2-Clause
/*
 * own_memory FILE MIB: takes so much memory for a file on a tmpfs and gives it back, but for a page of each 512 KiB,
 * which the file keeps until it is removed. A virtual machine may give free memory back to its host, in large blocks
 * and within seconds, and then waits for each page when it is used again: traces cost several times as much
 * to write as on a machine that has its memory. What lies in pieces stays here, and can be used as any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (512L << 10)

static int fail(const char *doing, const char *path)
{
	fprintf(stderr, "Failed to %s '%s': %s\n", doing, path, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	static char zeros[BLOCK];
	long page = sysconf(_SC_PAGESIZE), blocks, i;
	ssize_t n;
	int fd;

	blocks = argc == 3 ? strtol(argv[2], NULL, 10) * ((1L << 20) / BLOCK) : 0;
	if (blocks < 1) {
		fprintf(stderr, "Usage: own_memory FILE MIB\n");
		return 2;
	}
	fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail("create", argv[1]);
	/* All of it first: what is given back early would be taken again. */
	for (i = 0; i < blocks; i++) {
		n = write(fd, zeros, BLOCK);
		if (n >= 0 && n < BLOCK) /* the last that had room */
			errno = ENOSPC;
		if (n < BLOCK)
			return fail("write", argv[1]);
	}
	for (i = 0; i < blocks; i++)
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, i * BLOCK + page,
			      BLOCK - page))
			return fail("punch holes into", argv[1]);
	return 0;
}
