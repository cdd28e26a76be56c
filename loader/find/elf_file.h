/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts about ELF files: build id, symbols, segments, USDT notes. The files belong to the jobs
 * that are traced, in containers of users nobody trusts, so nothing in them is believed.
 * (Not named elf.h: with -I of this directory that would hide the system header of that name.)
 *
 * Only ELF64 little-endian is read. All functions take an open, seekable descriptor, leave its
 * position alone, and return 0 or -errno:
 *	-ENOEXEC	not an ELF file of that kind, or a damaged one
 *	-EFBIG		so large or so crooked that looking at it further is not worth the time
 */
#ifndef NCCLSCOPE_ELF_FILE_H
#define NCCLSCOPE_ELF_FILE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Opens a file that a job has named or mapped, for reading: an fd, or -errno; -EINVAL if it is no regular
 * file; -EAGAIN while its owner has a lease on it (fcntl(2)). Nothing else is ever opened, since opening a
 * device or a FIFO can have effects or block.
 */
int elf__open(const char *path);

/* Which file it is: a name may lead to another one by now, or to none. */
struct elf_file_id {
	uint64_t dev, ino;
};

/* Of a descriptor, as it is known here: a file system that does not answer is not asked, which could take for ever. */
int elf__id(int fd, struct elf_file_id *id);

/*
 * The file at `path`, if it is still that one: an O_PATH descriptor, by which it can be named (/proc/self/fd/N) without what the path leads to
 * coming into it again. -ESTALE: it is another one; or -errno.
 */
int elf__open_same(const char *path, const struct elf_file_id *id);

/* Room for the build id that elf__build_id() writes: SHA-1, two digits a byte, and the NUL. */
#define ELF_BUILD_ID_LEN (2 * 20 + 1)

/* Lower-case hex build id; -ENODATA: has none, -EOVERFLOW: longer than buf holds. */
int elf__build_id(int fd, char *buf, size_t len);

/*
 * Value (a virtual address as the file has it, before relocation) and size of a defined symbol,
 * from the dynamic symbol table or else the static one; -ENOENT: neither defines it.
 * Both value and size may be NULL.
 */
int elf__symbol(int fd, const char *name, unsigned long long *value, unsigned long long *size);

/*
 * Virtual address, as the file has it, of the byte at a page-aligned file offset; -ENOENT: no
 * segment loads it. With a line of /proc/PID/maps (start, offset) and an address st_value of the
 * file, the address in the process is start + st_value - vaddr.
 *
 * Where two segments share that page, the one that starts in it wins over the one that ends in
 * it, and the first one over later ones: take the first line of maps that shows the file.
 */
int elf__vaddr_of_offset(int fd, unsigned long long offset, unsigned long long *vaddr);

/* What a process begins with at a virtual address, as the file has it: `len` bytes. */
int elf__read(int fd, unsigned long long vaddr, void *buf, size_t len);

/*
 * Number of USDT sites (notes) of a probe, and the virtual address of the semaphore of the first,
 * as the file has it, 0 where it has none; -ENOENT: no such probe. sites and semaphore may be NULL.
 */
int elf__usdt(int fd, const char *provider, const char *name, int *sites,
	      unsigned long long *semaphore);

/*
 * The only site of a probe, for a plain uprobe: where in the file its instruction and its semaphore
 * (0: none) lie, and its arguments as the note has them, "8@%rdi 8@%rsi". -E2BIG: more than one site.
 */
struct elf_usdt_site {
	unsigned long long offset, semaphore_offset;
	char args[64]; /* "" if longer */
};
int elf__usdt_site(int fd, const char *provider, const char *name, struct elf_usdt_site *site);

#endif
