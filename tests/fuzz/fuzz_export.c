// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer over `ncclscope export`: any bytes behind a first record, to each format. It exits 0, as that one can be exported. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd.h"
#include "log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fd;
static char path[64];
static const char first[] = "{\"recordType\":\"node\",\"ts\":1.000}\n";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fd = memfd_create("trace", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	log_level = LOG_ERR;
	return fd < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "export", out[] = "-o/dev/null";
	static char to[][16] = {"-tperfetto", "-tchrome", "-tspeedscope", "-tcollapsed", "-tcsv"};
	char *argv[] = {name, out, to[(size ? size + data[size / 2] : 0) % 5], path, NULL};
	const ssize_t len = sizeof(first) - 1;

	if (ftruncate(fd, 0) || pwrite(fd, first, len, 0) != len ||
	    pwrite(fd, data, size, len) != (ssize_t)size)
		return 0;
	if (cmd_export(4, argv) != EXIT_OK)
		abort();
	return 0;
}
