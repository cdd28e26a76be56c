// SPDX-License-Identifier: BSD-2-Clause
/*
 * loader/find/elf_file.c: right about good files, one of which is this test itself, and neither wrong, slow
 * nor out of bounds about bad ones. Run it with ASAN=1 for the last.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include "child.h"
#include "elf_file.h"
#include "slower.h"

/* ---- A small file, every part of which a test can bend --------------------------------------- */

#define BASE	     0x400000ULL /* difference of address and offset in the second segment */
#define NOTE_BASE    0x700000ULL /* .stapsdt.base when the notes were written ... */
#define NOW_BASE     0x711000ULL /* ... and after prelink moved it */
#define SEMAPHORE    0x702040ULL
#define BUILD_ID_HEX "000102030405060708090a0b0c0d0e0f10111213"

enum { SEC_NULL, SEC_BUILD_ID, SEC_USDT, SEC_DYNSYM, SEC_DYNSTR, SEC_BASE, SEC_SHSTR, SEC_CNT };

struct id_note {
	Elf64_Nhdr hdr;
	char name[4];
	unsigned char id[20];
};

struct usdt_note {
	Elf64_Nhdr hdr;
	char name[8];
	uint64_t pc, base, semaphore;
	char strings[24];  /* provider, name, arguments, and the padding of the note */
} __attribute__((packed)); /* the addresses lie 4 bytes off their natural alignment */

struct image {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[3];
	Elf64_Shdr shdr[SEC_CNT];
	struct id_note id;
	struct usdt_note usdt[3];
	Elf64_Sym sym[5];
	char str[64];
	char shstr[64];
};

#define OFF(member) offsetof(struct image, member)

static void set_section(Elf64_Shdr *sh, uint32_t name, uint32_t type, uint64_t off, uint64_t size)
{
	sh->sh_name = name;
	sh->sh_type = type;
	sh->sh_offset = off;
	sh->sh_size = size;
	sh->sh_addralign = 4;
}

static void set_usdt(struct usdt_note *note, const char *provider, const char *name,
		     uint64_t semaphore)
{
	size_t len = strlen(provider) + 1;

	note->hdr.n_namesz = sizeof("stapsdt");
	note->hdr.n_descsz = sizeof(*note) - offsetof(struct usdt_note, pc);
	note->hdr.n_type = 3;
	strcpy(note->name, "stapsdt");
	note->base = NOTE_BASE;
	note->semaphore = semaphore;
	strcpy(note->strings, provider);
	strcpy(note->strings + len, name);
}

static void set_symbol(Elf64_Sym *sym, uint32_t name, int type, uint16_t shndx, uint64_t value)
{
	sym->st_name = name;
	sym->st_info = ELF64_ST_INFO(STB_GLOBAL, type);
	sym->st_shndx = shndx;
	sym->st_value = value;
	sym->st_size = 72;
}

static void set_segments(struct image *image)
{
	image->phdr[0].p_type = PT_NOTE;
	image->phdr[0].p_offset = OFF(id);
	image->phdr[0].p_filesz = sizeof(image->id);
	image->phdr[0].p_align = 4;
	image->phdr[1].p_type = PT_LOAD;
	image->phdr[1].p_filesz = 0x2345;
	image->phdr[2].p_type = PT_LOAD; /* starts in the page where the other ends */
	image->phdr[2].p_offset = 0x2350;
	image->phdr[2].p_vaddr = 0x2350 + BASE;
	image->phdr[2].p_filesz = 0x3000;
}

static struct image good_image(void)
{
	/* "tail" occurs in "dovetail" too: linkers merge such names. */
	static const char str[] = "\0dovetail\0undefined\0tls\0tail\0ncclProfiler_v4";
	static const char shstr[] = "\0.stapsdt.base\0.other";
	struct image image;
	unsigned int i;

	memset(&image, 0, sizeof(image));
	memcpy(image.ehdr.e_ident, ELFMAG, SELFMAG);
	image.ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	image.ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	image.ehdr.e_phoff = OFF(phdr);
	image.ehdr.e_phentsize = sizeof(Elf64_Phdr);
	image.ehdr.e_phnum = 3;
	image.ehdr.e_shoff = OFF(shdr);
	image.ehdr.e_shentsize = sizeof(Elf64_Shdr);
	image.ehdr.e_shnum = SEC_CNT;
	image.ehdr.e_shstrndx = SEC_SHSTR;
	set_segments(&image);

	set_section(&image.shdr[SEC_BUILD_ID], 15, SHT_NOTE, OFF(id), sizeof(image.id));
	set_section(&image.shdr[SEC_USDT], 15, SHT_NOTE, OFF(usdt), sizeof(image.usdt));
	set_section(&image.shdr[SEC_DYNSYM], 15, SHT_DYNSYM, OFF(sym), sizeof(image.sym));
	image.shdr[SEC_DYNSYM].sh_link = SEC_DYNSTR;
	image.shdr[SEC_DYNSYM].sh_entsize = sizeof(Elf64_Sym);
	set_section(&image.shdr[SEC_DYNSTR], 15, SHT_STRTAB, OFF(str), sizeof(image.str));
	set_section(&image.shdr[SEC_BASE], 1, SHT_PROGBITS, 0, 1);
	image.shdr[SEC_BASE].sh_addr = NOW_BASE;
	set_section(&image.shdr[SEC_SHSTR], 15, SHT_STRTAB, OFF(shstr), sizeof(image.shstr));

	image.id.hdr.n_namesz = 4;
	image.id.hdr.n_descsz = sizeof(image.id.id);
	image.id.hdr.n_type = NT_GNU_BUILD_ID;
	memcpy(image.id.name, "GNU", 4);
	for (i = 0; i < sizeof(image.id.id); i++)
		image.id.id[i] = (unsigned char)i;
	set_usdt(&image.usdt[0], "ncclscope", "flush", SEMAPHORE);
	set_usdt(&image.usdt[1], "ncclscope", "stop", 0);
	set_usdt(&image.usdt[2], "ncclscope", "flush", SEMAPHORE + 2);

	memcpy(image.str, str, sizeof(str));
	memcpy(image.shstr, shstr, sizeof(shstr));
	set_symbol(&image.sym[1], 1, STT_FUNC, 1, 0x1111);
	set_symbol(&image.sym[2], 10, STT_FUNC, SHN_UNDEF, 0);
	set_symbol(&image.sym[3], 20, STT_TLS, 1, 0x10);
	set_symbol(&image.sym[4], 5, STT_OBJECT, 1, 0x2222); /* "tail" of "dovetail" */
	return image;
}

static int file_of(const void *data, size_t len)
{
	int fd = memfd_create("elf_test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	return fd;
}

static int build_id_of(const struct image *image, char *buf, size_t len)
{
	int fd = file_of(image, sizeof(*image)), err;

	err = elf__build_id(fd, buf, len);
	close(fd);
	return err;
}

static int symbol_of(const struct image *image, const char *name, unsigned long long *value)
{
	int fd = file_of(image, sizeof(*image)), err;

	err = elf__symbol(fd, name, value, NULL);
	close(fd);
	return err;
}

static int usdt_of(const struct image *image, const char *name, int *sites,
		   unsigned long long *semaphore)
{
	int fd = file_of(image, sizeof(*image)), err;

	err = elf__usdt(fd, "ncclscope", name, sites, semaphore);
	close(fd);
	return err;
}

/* ---- Good files ------------------------------------------------------------------------------ */

static void test_build_id(void **state)
{
	struct image image = good_image();
	char buf[ELF_BUILD_ID_LEN];

	(void)state;
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), 0);
	assert_string_equal(buf, BUILD_ID_HEX);

	image.ehdr.e_phnum = 0; /* then the section has it */
	memset(buf, 0, sizeof(buf));
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), 0);
	assert_string_equal(buf, BUILD_ID_HEX);

	image.id.hdr.n_descsz = 16; /* as by --build-id=md5; the rest is no whole note */
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "000102030405060708090a0b0c0d0e0f");
}

static void test_build_id_refused(void **state)
{
	struct image image = good_image();
	char buf[ELF_BUILD_ID_LEN];

	(void)state;
	assert_int_equal(build_id_of(&image, buf, sizeof(buf) - 1), -EOVERFLOW);
	image.id.hdr.n_type = NT_GNU_ABI_TAG;
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), -ENODATA);
	image = good_image();
	memcpy(image.id.name, "GNX", 4);
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), -ENODATA);
	image = good_image();
	image.id.hdr.n_descsz = 21; /* one byte more than there is */
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), -ENOEXEC);
}

static void test_symbol(void **state)
{
	struct image image = good_image();
	unsigned long long value = 0, size = 0;
	int fd;

	(void)state;
	fd = file_of(&image, sizeof(image));
	assert_int_equal(elf__symbol(fd, "dovetail", &value, &size), 0);
	assert_int_equal(value, 0x1111);
	assert_int_equal(size, 72);
	assert_int_equal(elf__symbol(fd, "dovetail", NULL, NULL), 0);
	close(fd);
	assert_int_equal(symbol_of(&image, "tail", &value), 0);
	assert_int_equal(value, 0x2222);
	/* A name in the table that no symbol bears, an import, an offset into TLS, nothing. */
	assert_int_equal(symbol_of(&image, "ncclProfiler_v4", &value), -ENOENT);
	assert_int_equal(symbol_of(&image, "undefined", &value), -ENOENT);
	assert_int_equal(symbol_of(&image, "tls", &value), -ENOENT);
	assert_int_equal(symbol_of(&image, "dove", &value), -ENOENT);

	image.shdr[SEC_DYNSYM].sh_type = SHT_SYMTAB;
	assert_int_equal(symbol_of(&image, "tail", &value), 0);
	image.ehdr.e_shnum = 0;
	image.ehdr.e_shoff = 0; /* all sections stripped */
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOENT);
}

/* More symbols than fit one read, and a name that lies across two. */
static void test_symbol_in_large_tables(void **state)
{
	enum { NSYMS = 5000, STRS = 64 * 1024 };
	struct image image = good_image();
	unsigned long long value;
	Elf64_Sym *syms = calloc(NSYMS, sizeof(*syms));
	char *strs = calloc(1, STRS);
	uint32_t at;
	int fd;

	(void)state;
	assert_non_null(syms);
	assert_non_null(strs);
	set_section(&image.shdr[SEC_DYNSYM], 0, SHT_DYNSYM, sizeof(image), NSYMS * sizeof(*syms));
	image.shdr[SEC_DYNSYM].sh_link = SEC_DYNSTR;
	image.shdr[SEC_DYNSYM].sh_entsize = sizeof(Elf64_Sym);
	set_section(&image.shdr[SEC_DYNSTR], 0, SHT_STRTAB, sizeof(image) + NSYMS * sizeof(*syms),
		    STRS);
	/* Wherever a reader cuts the table into pieces, some of these straddle the cut. */
	for (at = 16384 - 8; at < 16384 + 4; at++) {
		memset(strs, 'x', STRS);
		memcpy(strs + at, "\0needle", 8);
		set_symbol(&syms[NSYMS - 1], at + 1, STT_FUNC, 1, at);
		fd = file_of(&image, sizeof(image));
		assert_int_equal(write(fd, syms, NSYMS * sizeof(*syms)), NSYMS * sizeof(*syms));
		assert_int_equal(write(fd, strs, STRS), STRS);
		value = 0;
		assert_int_equal(elf__symbol(fd, "needle", &value, NULL), 0);
		assert_int_equal(value, at);
		close(fd);
	}
	free(syms);
	free(strs);
}

static void test_vaddr_of_offset(void **state)
{
	struct image image = good_image();
	unsigned long long vaddr = 1;
	int fd = file_of(&image, sizeof(image));

	(void)state;
	assert_int_equal(elf__vaddr_of_offset(fd, 0, &vaddr), 0);
	assert_int_equal(vaddr, 0);
	assert_int_equal(elf__vaddr_of_offset(fd, 0x1000, &vaddr), 0);
	assert_int_equal(vaddr, 0x1000);
	/* Both segments have bytes in this page; the mapping that starts there is the second. */
	assert_int_equal(elf__vaddr_of_offset(fd, 0x2000, &vaddr), 0);
	assert_int_equal(vaddr, 0x2000 + BASE);
	assert_int_equal(elf__vaddr_of_offset(fd, 0x5000, &vaddr), 0);
	assert_int_equal(vaddr, 0x5000 + BASE);
	assert_int_equal(elf__vaddr_of_offset(fd, 0x6000, &vaddr), -ENOENT);
	assert_int_equal(elf__vaddr_of_offset(fd, UINT64_MAX, &vaddr), -ENOENT);
	close(fd);
}

static void test_usdt(void **state)
{
	struct image image = good_image();
	unsigned long long semaphore = 1;
	int sites = 0;

	(void)state;
	assert_int_equal(usdt_of(&image, "flush", &sites, &semaphore), 0);
	assert_int_equal(sites, 2);
	assert_int_equal(semaphore, SEMAPHORE + NOW_BASE - NOTE_BASE);
	assert_int_equal(usdt_of(&image, "stop", &sites, &semaphore), 0);
	assert_int_equal(sites, 1);
	assert_int_equal(semaphore, 0);
	assert_int_equal(usdt_of(&image, "flu", &sites, &semaphore), -ENOENT);
	assert_int_equal(usdt_of(&image, "flush", NULL, NULL), 0);

	image.shdr[SEC_BASE].sh_name = 15; /* no .stapsdt.base: take the note's word */
	assert_int_equal(usdt_of(&image, "flush", &sites, &semaphore), 0);
	assert_int_equal(semaphore, SEMAPHORE);
}

/* `name` and its arguments, for which set_usdt() has no room to spare. */
static void set_site(struct usdt_note *note, const char *name, const char *args, uint64_t pc,
		     uint64_t semaphore)
{
	set_usdt(note, "ncclscope", name, semaphore);
	note->pc = pc;
	strcpy(note->strings + sizeof("ncclscope") + strlen(name) + 1, args);
}

static int site_of(const struct image *image, const char *name, struct elf_usdt_site *site)
{
	int fd = file_of(image, sizeof(*image)), err;

	err = elf__usdt_site(fd, "ncclscope", name, site);
	close(fd);
	return err;
}

static void test_usdt_site(void **state)
{
	const uint64_t moved = NOW_BASE - NOTE_BASE;
	struct image image = good_image();
	struct elf_usdt_site site;

	(void)state;
	assert_int_equal(site_of(&image, "flush", &site), -E2BIG); /* which of the two? */
	assert_int_equal(site_of(&image, "flu", &site), -ENOENT);

	/* Addresses as of before prelink; the first segment is loaded at 0, the second at BASE. */
	set_site(&image.usdt[1], "at", "8@%rdi 8@x", 0x1234 - moved, 0x2360 + BASE - moved);
	assert_int_equal(site_of(&image, "at", &site), 0);
	assert_int_equal(site.offset, 0x1234);
	assert_int_equal(site.semaphore_offset, 0x2360);
	assert_string_equal(site.args, "8@%rdi 8@x");
	image.usdt[1].semaphore = 0;
	assert_int_equal(site_of(&image, "at", &site), 0);
	assert_int_equal(site.semaphore_offset, 0);

	image.usdt[1].pc = 0x2345 - moved; /* one byte behind the first segment */
	assert_int_equal(site_of(&image, "at", &site), -ENOEXEC);
	image.usdt[1].pc = UINT64_MAX;
	assert_int_equal(site_of(&image, "at", &site), -ENOEXEC);
}

/* ---- This very process ----------------------------------------------------------------------- */

unsigned short elf_test_here_semaphore __attribute__((section(".probes")));

int elf_test_variable = 42;

/* The address in this process of what our own file says about it, the way the loader does it. */
static uintptr_t self_address(int fd, unsigned long long value)
{
	unsigned long long start, off, vaddr;
	char line[512], exe[256];
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t addr = 0;
	ssize_t n;

	assert_non_null(maps);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	assert_true(n > 0);
	exe[n] = '\0';
	while (!addr && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, exe) || sscanf(line, "%llx-%*x %*s %llx", &start, &off) != 2)
			continue;
		assert_int_equal(elf__vaddr_of_offset(fd, off, &vaddr), 0);
		addr = (uintptr_t)(start + value - vaddr);
	}
	fclose(maps);
	return addr;
}

static void test_self(void **state)
{
	unsigned long long value = 0, size = 0, semaphore = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), sites = 0, was = 0;
	char id[ELF_BUILD_ID_LEN];

	(void)state;
	assert_true(fd >= 0);
	STAP_PROBE1(elf_test, here, fd);
	assert_int_equal(elf__symbol(fd, "elf_test_variable", &value, &size), 0);
	assert_int_equal(size, sizeof(elf_test_variable));
	assert_ptr_equal(self_address(fd, value), &elf_test_variable);
	elf_test_variable = 43; /* in memory; the file has what it was */
	assert_int_equal(elf__read(fd, value, &was, sizeof(was)), 0);
	assert_int_equal(was, 42);
	assert_int_equal(elf__read(fd, UINT64_MAX - 3, &was, sizeof(was)), -ENOEXEC);
	assert_int_equal(elf__usdt(fd, "elf_test", "here", &sites, &semaphore), 0);
	assert_true(sites >= 1);
	assert_ptr_equal(self_address(fd, semaphore), &elf_test_here_semaphore);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	/* Which id the linker chose we cannot know here; that it is one, we can. */
	assert_int_equal(elf__build_id(fd, id, sizeof(id)), 0);
	assert_int_equal(strspn(id, "0123456789abcdef"), strlen(id));
	close(fd);
}

/* ---- Bad files ------------------------------------------------------------------------------- */

static void test_not_elf(void **state)
{
	static const char script[] =
		"#!/bin/sh\necho this is no ELF file, but long enough for one\n";
	struct image image = good_image();
	char buf[ELF_BUILD_ID_LEN];
	int fd, fds[2];

	(void)state;
	fd = file_of(script, sizeof(script));
	assert_int_equal(elf__build_id(fd, buf, sizeof(buf)), -ENOEXEC);
	close(fd);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf__build_id(fd, buf, sizeof(buf)), -ENOEXEC);
	close(fd);
	assert_int_equal(elf__build_id(fd, buf, sizeof(buf)), -EBADF);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(elf__build_id(fds[0], buf, sizeof(buf)), -ENOEXEC); /* and returns */
	close(fds[0]);
	close(fds[1]);
	image.ehdr.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), -ENOEXEC);
	image = good_image();
	image.ehdr.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(build_id_of(&image, buf, sizeof(buf)), -ENOEXEC);
}

static void test_lies(void **state)
{
	struct image image = good_image();
	unsigned long long value;
	int sites;

	(void)state;
	image.shdr[SEC_DYNSYM].sh_size = UINT64_MAX - image.shdr[SEC_DYNSYM].sh_offset;
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOEXEC);
	image = good_image();
	image.shdr[SEC_DYNSTR].sh_offset = UINT64_MAX - 8;
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOEXEC);
	image = good_image();
	image.shdr[SEC_DYNSYM].sh_link = 0xffffffff;
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOEXEC);
	image = good_image();
	image.shdr[SEC_DYNSYM].sh_entsize = 0;
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOEXEC);
	image = good_image();
	image.sym[4].st_name = 0xffffffff;
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOENT);
	image = good_image();
	image.ehdr.e_shnum = 0; /* "see section 0", and there: */
	image.shdr[SEC_NULL].sh_size = UINT64_MAX / sizeof(Elf64_Shdr) + 2;
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOEXEC);
	image = good_image();
	image.ehdr.e_shoff = UINT64_MAX - 63;
	assert_int_equal(symbol_of(&image, "tail", &value), -ENOEXEC);
	image = good_image();
	image.usdt[0].hdr.n_namesz = 0xffffffff;
	assert_int_equal(usdt_of(&image, "flush", &sites, &value), -ENOEXEC);
	image = good_image();
	image.usdt[0].hdr.n_descsz = 0xffffffff;
	assert_int_equal(usdt_of(&image, "flush", &sites, &value), -ENOEXEC);
	image = good_image();
	image.usdt[0].hdr.n_descsz = 8; /* too short for its addresses; what follows is no note */
	assert_int_equal(usdt_of(&image, "flush", &sites, &value), -ENOEXEC);
	image = good_image();
	memset(image.usdt[2].strings, 'x', sizeof(image.usdt[2].strings)); /* no NUL to the end */
	assert_int_equal(usdt_of(&image, "flush", &sites, &value), 0);
	assert_int_equal(sites, 1);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A file of holes costs its maker nothing, so it must not cost us memory or minutes either. */
static void test_huge_sparse(void **state)
{
	const uint64_t size = 1ULL << 40;
	struct image image = good_image();
	unsigned long long value;
	double start = seconds();
	int fd, sites;

	(void)state;
	set_section(&image.shdr[SEC_DYNSYM], 0, SHT_DYNSYM, 0, size / 24 * 24);
	image.shdr[SEC_DYNSYM].sh_link = SEC_DYNSTR;
	image.shdr[SEC_DYNSYM].sh_entsize = sizeof(Elf64_Sym);
	image.shdr[SEC_USDT].sh_size = size / 2;
	fd = file_of(&image, sizeof(image));
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(elf__symbol(fd, "undefined", &value, NULL), -EFBIG);
	assert_int_equal(elf__usdt(fd, "ncclscope", "flush", &sites, &value), -EFBIG);
	image.shdr[SEC_DYNSTR].sh_size = size / 2;
	assert_int_equal(pwrite(fd, &image, sizeof(image), 0), sizeof(image));
	assert_int_equal(elf__symbol(fd, "absent", &value, NULL), -EFBIG);
	close(fd);
	assert_true(seconds() - start < 20 * slower());
}

/* Asks everything of a file; whatever comes back, it came back, and said no more than it may. */
static void ask_everything(const void *data, size_t len)
{
	unsigned long long value, size;
	struct elf_usdt_site site;
	char buf[ELF_BUILD_ID_LEN];
	int fd = file_of(data, len), sites, err;

	memset(buf, 'z', sizeof(buf));
	err = elf__build_id(fd, buf, sizeof(buf));
	assert_true(err <= 0);
	if (!err)
		assert_int_equal(strspn(buf, "0123456789abcdef"), strnlen(buf, sizeof(buf) - 1));
	err = elf__symbol(fd, "tail", &value, &size);
	assert_true(err <= 0);
	err = elf__vaddr_of_offset(fd, 0x2000, &value);
	assert_true(err <= 0);
	err = elf__usdt(fd, "ncclscope", "flush", &sites, &value);
	assert_true(err < 0 || (!err && sites > 0));
	err = elf__usdt_site(fd, "ncclscope", "stop", &site);
	assert_true(err <= 0 && strnlen(site.args, sizeof(site.args)) < sizeof(site.args));
	close(fd);
}

static void test_truncated(void **state)
{
	struct image image = good_image();
	char buf[ELF_BUILD_ID_LEN];
	size_t len;
	int fd;

	(void)state;
	for (len = 0; len < sizeof(image); len++) {
		ask_everything(&image, len);
		fd = file_of(&image, len);
		if (len < OFF(usdt)) /* the build id is not all there */
			assert_true(elf__build_id(fd, buf, sizeof(buf)) < 0);
		close(fd);
	}
}

static void test_bent(void **state)
{
	static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	struct image image;
	unsigned char *bytes = (unsigned char *)&image;
	unsigned int i, n, round;
	size_t at;

	(void)state;
	for (at = 0; at < sizeof(image); at++) {
		for (i = 0; i < sizeof(values); i++) {
			image = good_image();
			bytes[at] = values[i];
			ask_everything(&image, sizeof(image));
		}
	}
	srand(1); /* the same each time, so that a finding can be found again */
	for (round = 0; round < 20000; round++) {
		image = good_image();
		for (n = 1 + (unsigned int)rand() % 8; n; n--)
			bytes[(size_t)rand() % sizeof(image)] = (unsigned char)rand();
		ask_everything(&image, sizeof(image));
	}
}

/* In a process of its own, until it is killed: what the kernel asks of it then, it does not do. Whether it could. */
static pid_t lease(const char *path)
{
	int ready[2], fd;
	pid_t pid = child_begin(ready);

	if (!pid) {
		signal(SIGIO, SIG_IGN);
		fd = open(path, O_RDWR | O_CLOEXEC);
		child_says(ready, fd >= 0 && !fcntl(fd, F_SETLEASE, F_WRLCK) ? 'y' : 'n');
	}
	if (child_said(ready) == 'y')
		return pid;
	child_end(pid);
	return -1;
}

/* Whoever opened it would wait until the lease is given back or taken away. */
static void test_leased(void **state)
{
	char path[] = "/tmp/elf_test.XXXXXX";
	int fd = mkstemp(path), was;
	double began;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	pid = lease(path);
	if (pid < 0) {
		unlink(path);
		skip();
	}
	began = seconds();
	was = elf__open(path);
	assert_true(seconds() - began < 5 * slower());
	assert_int_equal(was, -EAGAIN);
	child_end(pid);
	fd = elf__open(path);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_build_id_refused),
		cmocka_unit_test(test_symbol),
		cmocka_unit_test(test_symbol_in_large_tables),
		cmocka_unit_test(test_vaddr_of_offset),
		cmocka_unit_test(test_usdt),
		cmocka_unit_test(test_usdt_site),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_not_elf),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_huge_sparse),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_bent),
		cmocka_unit_test(test_leased),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
