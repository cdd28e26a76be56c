// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer over the ELF reader: any bytes as the file that a job has mapped, asked what the loader asks. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "elf_file.h"
#include "scope_abi.h"
#include "scope_probes.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fd;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fd = memfd_create("elf", 0);
	return fd < 0;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void ask_build_id(size_t room)
{
	char id[ELF_BUILD_ID_LEN];
	int err;

	memset(id, 'z', sizeof(id));
	err = elf__build_id(fd, id, room);
	must(err <= 0);
	if (err)
		return;
	must(strnlen(id, room) < room);
	must(strlen(id) % 2 == 0 && strspn(id, "0123456789abcdef") == strlen(id));
}

static void ask_symbol(const char *name)
{
	unsigned long long value, size;
	char data[64];

	if (elf__symbol(fd, name, &value, &size))
		return;
	must(elf__read(fd, value, data, sizeof(data)) <= 0);
}

static void ask_probe(const char *name)
{
	unsigned long long semaphore;
	struct elf_usdt_site site;
	int sites = 0, err, one;

	err = elf__usdt(fd, SCOPE_PROVIDER, name, &sites, &semaphore);
	must(err < 0 || (!err && sites > 0));
	one = elf__usdt_site(fd, SCOPE_PROVIDER, name, &site);
	must(one <= 0 && strnlen(site.args, sizeof(site.args)) < sizeof(site.args));
	must(one || (!err && sites == 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned long long offset = 0, vaddr;

	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		return 0;
	ask_build_id(ELF_BUILD_ID_LEN);
	ask_build_id(size % ELF_BUILD_ID_LEN);
	ask_symbol(SCOPE_CONTROL_SYMBOL);
	ask_symbol("");
	ask_probe(SCOPE_PROBE_FLUSH);
	ask_probe("");
	must(elf__vaddr_of_offset(fd, 0, &vaddr) <= 0);
	if (size >= sizeof(offset))
		memcpy(&offset, data + size - sizeof(offset), sizeof(offset));
	must(elf__vaddr_of_offset(fd, offset & ~0xfffull, &vaddr) <= 0);
	return 0;
}
