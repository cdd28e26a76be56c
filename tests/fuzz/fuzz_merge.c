// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer over `ncclscope merge`: any bytes behind the headers of two nodes, half of them each. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd.h"
#include "log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fds[2];
static char paths[2][64];
static const char *const headers[2] = {
	"{\"recordType\":\"header\",\"host\":\"a\",\"bootId\":\"11111111-2222-3333-4444-"
	"555555555555\",\"pid\":4711,\"clock\":{\"realtimeOffset\":1763600000000000.250}}\n",
	"{\"recordType\":\"header\",\"host\":\"b\",\"bootId\":\"11111111-2222-3333-4444-"
	"666666666666\",\"pid\":4712,\"clock\":{\"realtimeOffset\":1763500000000000.250}}\n",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int i;

	(void)argc;
	(void)argv;
	for (i = 0; i < 2; i++) {
		fds[i] = memfd_create("trace", 0);
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/fd/%d", fds[i]);
	}
	log_level = -1;
	return fds[1] < 0;
}

static int fill(int i, const uint8_t *data, size_t size)
{
	const ssize_t len = (ssize_t)strlen(headers[i]);

	return ftruncate(fds[i], 0) || pwrite(fds[i], headers[i], (size_t)len, 0) != len ||
	       pwrite(fds[i], data, size, len) != (ssize_t)size;
}

/* It may refuse: what is merged already, say. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "merge", out[] = "-o/dev/null";
	char *argv[] = {name, out, paths[0], paths[1], NULL};

	if (!fill(0, data, size / 2) && !fill(1, data + size / 2, size - size / 2))
		cmd_merge(4, argv);
	return 0;
}
