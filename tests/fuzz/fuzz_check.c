// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer over `ncclscope check`: any bytes as a trace. Exit 0 or 1, never more. */
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

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_level = LOG_ERR;
	fd = memfd_create("trace", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd < 0 || !freopen("/dev/null", "w", stdout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "check", all[] = "--max=0", compat[] = "--compat";
	char *argv[] = {name, all, path, NULL}, *argv_compat[] = {name, compat, path, NULL};
	int status;

	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		return 0;
	status = cmd_check(3, argv);
	if (status != EXIT_OK && status != EXIT_FAILED)
		abort();
	status = cmd_check(3, argv_compat);
	if (status != EXIT_OK && status != EXIT_FAILED)
		abort();
	return 0;
}
