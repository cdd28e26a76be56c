// SPDX-License-Identifier: BSD-2-Clause
/*
 * Facts about ELF files that nobody vouches for. It reads small pieces by pread() instead of using
 * libelf, so that no size in the file ever becomes an allocation, no mapping can fault when its
 * owner truncates it, and one budget bounds the work, however the file is knotted.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "elf_file.h"

/* Far above what any real library takes, and still less than a second. */
#define ELF_MAX_READS (1 << 19)
#define ELF_MAX_BYTES (1ULL << 30)

#define ELF_PAGE  4096ULL /* file offsets in maps are multiples of at least this */
#define ELF_CHUNK 16384

struct elf {
	int fd;
	uint64_t size;
	int reads_left;
	uint64_t bytes_left;
	Elf64_Ehdr ehdr;
	uint64_t shnum;
};

/* A range of the file that is known to lie inside it. */
struct elf_range {
	uint64_t off, end;
};

static int elf_range(const struct elf *elf, uint64_t off, uint64_t len, struct elf_range *range)
{
	if (off > elf->size || len > elf->size - off)
		return -ENOEXEC;
	range->off = off;
	range->end = off + len;
	return 0;
}

static int elf_read(struct elf *elf, uint64_t off, void *buf, size_t len)
{
	struct elf_range range;
	ssize_t n;

	if (elf_range(elf, off, len, &range))
		return -ENOEXEC;
	if (elf->reads_left-- <= 0 || elf->bytes_left < len)
		return -EFBIG;
	elf->bytes_left -= len;
	do {
		n = pread(elf->fd, buf, len, (off_t)off);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -ENOEXEC; /* it shrank under us */
}

static int elf_section(struct elf *elf, uint64_t i, Elf64_Shdr *sh)
{
	if (i >= elf->shnum)
		return -ENOEXEC;
	return elf_read(elf, elf->ehdr.e_shoff + i * sizeof(*sh), sh, sizeof(*sh));
}

/* Checks the table of sections as a whole, so that i * sizeof cannot overflow afterwards. */
static int elf_open_sections(struct elf *elf)
{
	struct elf_range range;
	Elf64_Shdr sh0;
	int err;

	elf->shnum = elf->ehdr.e_shnum;
	if (!elf->ehdr.e_shoff) {
		elf->shnum = 0;
		return 0;
	}
	if (elf->ehdr.e_shentsize != sizeof(Elf64_Shdr))
		return elf->shnum ? -ENOEXEC : 0;
	if (!elf->shnum) { /* more than 0xff00: the number is in section 0 */
		err = elf_read(elf, elf->ehdr.e_shoff, &sh0, sizeof(sh0));
		if (err)
			return err;
		elf->shnum = sh0.sh_size;
	}
	if (elf->shnum > elf->size / sizeof(Elf64_Shdr))
		return -ENOEXEC;
	return elf_range(elf, elf->ehdr.e_shoff, elf->shnum * sizeof(Elf64_Shdr), &range);
}

static int elf_open(struct elf *elf, int fd)
{
	const unsigned char *ident;
	struct stat st;
	int err;

	*elf = (struct elf){.fd = fd, .reads_left = ELF_MAX_READS, .bytes_left = ELF_MAX_BYTES};
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0)
		return -ENOEXEC;
	elf->size = (uint64_t)st.st_size;
	err = elf_read(elf, 0, &elf->ehdr, sizeof(elf->ehdr));
	if (err)
		return err;
	ident = elf->ehdr.e_ident;
	if (memcmp(ident, ELFMAG, SELFMAG) || ident[EI_CLASS] != ELFCLASS64 ||
	    ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	return 0;
}

static int elf_segment(struct elf *elf, unsigned int i, Elf64_Phdr *ph)
{
	struct elf_range table;
	int err;

	if (elf->ehdr.e_phentsize != sizeof(*ph))
		return -ENOEXEC;
	err = elf_range(elf, elf->ehdr.e_phoff, (uint64_t)elf->ehdr.e_phnum * sizeof(*ph), &table);
	if (err)
		return err;
	return elf_read(elf, table.off + i * sizeof(*ph), ph, sizeof(*ph));
}

/*
 * Compares the NUL-terminated string at off, which must end before end, with want: 1 equal,
 * 0 not, or -errno.
 */
static int elf_streq(struct elf *elf, uint64_t off, uint64_t end, const char *want)
{
	size_t len = strlen(want) + 1;
	char buf[128];
	int err;

	if (off > end || len > end - off || len > sizeof(buf))
		return 0;
	err = elf_read(elf, off, buf, len);
	return err ? err : !memcmp(buf, want, len);
}

/* One note; desc is where its descriptor lies in the file. */
struct elf_note {
	uint32_t type;
	char name[8]; /* longer names are none of ours and come as "" */
	struct elf_range desc;
};

static uint64_t align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/* Takes the note at range->off and moves range behind it: 1, 0 at the end, or -errno. */
static int elf_next_note(struct elf *elf, struct elf_range *range, uint64_t align,
			 struct elf_note *note)
{
	uint64_t name, desc;
	Elf64_Nhdr hdr;
	int err;

	if (range->end - range->off < sizeof(hdr))
		return 0;
	err = elf_read(elf, range->off, &hdr, sizeof(hdr));
	if (err)
		return err;
	/* No overflow: off is within a file, and both sizes have 32 bits. */
	name = range->off + sizeof(hdr);
	desc = range->off + align_up(sizeof(hdr) + hdr.n_namesz, align);
	if (desc > range->end || hdr.n_descsz > range->end - desc)
		return -ENOEXEC;
	memset(note->name, 0, sizeof(note->name));
	if (hdr.n_namesz <= sizeof(note->name)) {
		err = elf_read(elf, name, note->name, hdr.n_namesz);
		if (err)
			return err;
		if (hdr.n_namesz && note->name[hdr.n_namesz - 1])
			note->name[0] = '\0';
	}
	note->type = hdr.n_type;
	note->desc.off = desc;
	note->desc.end = desc + hdr.n_descsz;
	range->off = align_up(note->desc.end, align);
	if (range->off > range->end)
		range->off = range->end; /* the last one may lack its padding */
	return 1;
}

static int build_id_in(struct elf *elf, uint64_t off, uint64_t len, uint64_t align, char *buf,
		       size_t buf_len)
{
	static const char digits[] = "0123456789abcdef";
	struct elf_range range;
	struct elf_note note = {0};
	unsigned char id[64];
	size_t id_len, i;
	int err;

	err = elf_range(elf, off, len, &range);
	if (err)
		return err;
	while ((err = elf_next_note(elf, &range, align == 8 ? 8 : 4, &note)) > 0) {
		if (note.type != NT_GNU_BUILD_ID || strcmp(note.name, ELF_NOTE_GNU))
			continue;
		id_len = (size_t)(note.desc.end - note.desc.off);
		if (!id_len)
			continue;
		if (id_len > sizeof(id) || 2 * id_len + 1 > buf_len)
			return -EOVERFLOW;
		err = elf_read(elf, note.desc.off, id, id_len);
		if (err)
			return err;
		for (i = 0; i < id_len; i++) {
			*buf++ = digits[id[i] >> 4];
			*buf++ = digits[id[i] & 15];
		}
		*buf = '\0';
		return 0;
	}
	return err ? err : -ENODATA;
}

int elf__build_id(int fd, char *buf, size_t len)
{
	Elf64_Phdr ph;
	Elf64_Shdr sh;
	struct elf elf;
	unsigned int i;
	int err;

	err = elf_open(&elf, fd);
	if (err)
		return err;
	for (i = 0; i < elf.ehdr.e_phnum; i++) {
		err = elf_segment(&elf, i, &ph);
		if (err)
			return err;
		if (ph.p_type != PT_NOTE)
			continue;
		err = build_id_in(&elf, ph.p_offset, ph.p_filesz, ph.p_align, buf, len);
		if (err != -ENODATA)
			return err;
	}
	/* An object without segments (.o, some debug files) has it in a section only. */
	err = elf_open_sections(&elf);
	if (err)
		return err;
	for (i = 0; i < elf.shnum; i++) {
		err = elf_section(&elf, i, &sh);
		if (err)
			return err;
		if (sh.sh_type != SHT_NOTE)
			continue;
		err = build_id_in(&elf, sh.sh_offset, sh.sh_size, sh.sh_addralign, buf, len);
		if (err != -ENODATA)
			return err;
	}
	return -ENODATA;
}

static bool symbol_is_defined(const Elf64_Sym *sym)
{
	int type = ELF64_ST_TYPE(sym->st_info);

	/* The value of a TLS symbol is an offset, and that of an absolute one is not relocated. */
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS &&
	       (type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
		type == STT_GNU_IFUNC);
}

/* Where in a string table a name occurs, whole or as the tail of another. */
struct str_hits {
	unsigned int n;
	uint64_t off[16];
};

/*
 * Looks for the name once, instead of at every symbol's name: two passes front to back, however
 * many symbols there are and in whatever order.
 */
static int find_string(struct elf *elf, struct elf_range strs, const char *name,
		       struct str_hits *hits)
{
	size_t len = strlen(name) + 1, n;
	char buf[ELF_CHUNK], *p;
	uint64_t off = strs.off;
	int err;

	hits->n = 0;
	if (len > sizeof(buf) / 2)
		return -EINVAL;
	for (; strs.end - off >= len; off += n - (len - 1)) {
		n = strs.end - off < sizeof(buf) ? (size_t)(strs.end - off) : sizeof(buf);
		err = elf_read(elf, off, buf, n);
		if (err)
			return err;
		for (p = buf; (p = memmem(p, n - (size_t)(p - buf), name, len)); p++) {
			if (hits->n == sizeof(hits->off) / sizeof(hits->off[0]))
				return -EFBIG;
			hits->off[hits->n++] = off + (uint64_t)(p - buf) - strs.off;
		}
	}
	return 0;
}

static bool symbol_matches(const Elf64_Sym *sym, const struct str_hits *hits)
{
	unsigned int i;

	for (i = 0; i < hits->n; i++)
		if (sym->st_name == hits->off[i])
			return symbol_is_defined(sym);
	return false;
}

static int symbol_in(struct elf *elf, const Elf64_Shdr *symtab, const char *name, Elf64_Sym *found)
{
	Elf64_Sym chunk[ELF_CHUNK / sizeof(Elf64_Sym)];
	struct elf_range syms = {0}, strs = {0};
	struct str_hits hits = {0};
	Elf64_Shdr strtab;
	uint64_t n, i;
	int err;

	if (symtab->sh_entsize != sizeof(Elf64_Sym))
		return -ENOEXEC;
	err = elf_range(elf, symtab->sh_offset, symtab->sh_size, &syms);
	if (!err)
		err = elf_section(elf, symtab->sh_link, &strtab);
	if (!err && strtab.sh_type != SHT_STRTAB)
		err = -ENOEXEC;
	if (!err)
		err = elf_range(elf, strtab.sh_offset, strtab.sh_size, &strs);
	if (!err)
		err = find_string(elf, strs, name, &hits);
	if (!err && !hits.n)
		err = -ENOENT;
	while (!err && (n = (syms.end - syms.off) / sizeof(Elf64_Sym))) {
		if (n > sizeof(chunk) / sizeof(chunk[0]))
			n = sizeof(chunk) / sizeof(chunk[0]);
		err = elf_read(elf, syms.off, chunk, n * sizeof(Elf64_Sym));
		for (i = 0; !err && i < n; i++) {
			if (symbol_matches(&chunk[i], &hits)) {
				*found = chunk[i];
				return 0;
			}
		}
		syms.off += n * sizeof(Elf64_Sym);
	}
	return err ? err : -ENOENT;
}

int elf__symbol(int fd, const char *name, unsigned long long *value, unsigned long long *size)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	struct elf elf;
	Elf64_Shdr sh;
	Elf64_Sym sym;
	unsigned int t;
	uint64_t i;
	int err;

	err = elf_open(&elf, fd);
	if (!err)
		err = elf_open_sections(&elf);
	if (err)
		return err;
	for (t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (i = 0; i < elf.shnum; i++) {
			err = elf_section(&elf, i, &sh);
			if (err)
				return err;
			if (sh.sh_type != types[t])
				continue;
			err = symbol_in(&elf, &sh, name, &sym);
			if (!err) {
				if (value)
					*value = sym.st_value;
				if (size)
					*size = sym.st_size;
			}
			if (err != -ENOENT)
				return err;
		}
	}
	return -ENOENT;
}

int elf__vaddr_of_offset(int fd, unsigned long long offset, unsigned long long *vaddr)
{
	bool found = false;
	struct elf elf;
	unsigned int i;
	Elf64_Phdr ph;
	uint64_t start;
	int err;

	err = elf_open(&elf, fd);
	if (err)
		return err;
	for (i = 0; i < elf.ehdr.e_phnum; i++) {
		err = elf_segment(&elf, i, &ph);
		if (err)
			return err;
		if (ph.p_type != PT_LOAD || !ph.p_filesz)
			continue;
		if (ph.p_filesz > UINT64_MAX - ph.p_offset)
			return -ENOEXEC;
		start = ph.p_offset & ~(ELF_PAGE - 1);
		if (offset < start || offset >= ph.p_offset + ph.p_filesz)
			continue;
		if (found && offset != start)
			continue;
		*vaddr = ph.p_vaddr - ph.p_offset + offset;
		if (offset == start)
			return 0;
		found = true;
	}
	return found ? 0 : -ENOENT;
}

/* What the descriptor of an NT_STAPSDT note starts with; provider, name and arguments follow. */
struct usdt_note {
	uint64_t pc, base, semaphore;
};

/* Whether the note is provider:name, 1 or 0 or -errno; fills in its addresses. */
static int usdt_match(struct elf *elf, const struct elf_note *note, const char *provider,
		      const char *name, struct usdt_note *usdt)
{
	uint64_t off = note->desc.off + sizeof(*usdt);
	int err;

	if (note->type != 3 /* NT_STAPSDT */ || strcmp(note->name, "stapsdt"))
		return 0;
	if (note->desc.end - note->desc.off < sizeof(*usdt))
		return -ENOEXEC;
	err = elf_streq(elf, off, note->desc.end, provider);
	if (err <= 0)
		return err;
	err = elf_streq(elf, off + strlen(provider) + 1, note->desc.end, name);
	if (err <= 0)
		return err;
	err = elf_read(elf, note->desc.off, usdt, sizeof(*usdt));
	return err ? err : 1;
}

/* Where .stapsdt.base is now: prelink moves addresses, but not those in notes. 0 where absent. */
static int usdt_base(struct elf *elf, uint64_t *base)
{
	struct elf_range strs;
	Elf64_Shdr sh;
	uint64_t i;
	int err;

	*base = 0;
	err = elf_section(elf, elf->ehdr.e_shstrndx, &sh);
	if (!err)
		err = elf_range(elf, sh.sh_offset, sh.sh_size, &strs);
	for (i = 0; !err && i < elf->shnum; i++) {
		err = elf_section(elf, i, &sh);
		if (err)
			break;
		err = elf_streq(elf, strs.off + sh.sh_name, strs.end, ".stapsdt.base");
		if (err > 0) {
			*base = sh.sh_addr;
			return 0;
		}
	}
	return err;
}

static int usdt_in(struct elf *elf, const Elf64_Shdr *sh, const char *provider, const char *name,
		   int *n, struct usdt_note *first, struct elf_range *args)
{
	struct elf_range range;
	struct elf_note note = {0};
	struct usdt_note usdt;
	int err;

	err = elf_range(elf, sh->sh_offset, sh->sh_size, &range);
	if (err)
		return err;
	while ((err = elf_next_note(elf, &range, sh->sh_addralign == 8 ? 8 : 4, &note)) > 0) {
		err = usdt_match(elf, &note, provider, name, &usdt);
		if (err < 0)
			return err;
		if (!err || (*n)++)
			continue;
		*first = usdt;
		args->off = note.desc.off + sizeof(usdt) + strlen(provider) + 1 + strlen(name) + 1;
		args->end = note.desc.end;
	}
	return err;
}

/* Opens the file and counts the sites of a probe; of the first, its addresses and its arguments. */
static int usdt_find(struct elf *elf, int fd, const char *provider, const char *name, int *n,
		     struct usdt_note *first, struct elf_range *args)
{
	uint64_t i, base;
	Elf64_Shdr sh;
	int err;

	*n = 0;
	err = elf_open(elf, fd);
	if (!err)
		err = elf_open_sections(elf);
	for (i = 0; !err && i < elf->shnum; i++) {
		err = elf_section(elf, i, &sh);
		if (!err && sh.sh_type == SHT_NOTE)
			err = usdt_in(elf, &sh, provider, name, n, first, args);
	}
	if (err)
		return err;
	if (!*n)
		return -ENOENT;
	err = usdt_base(elf, &base);
	if (err || !base)
		return err;
	first->pc += base - first->base;
	if (first->semaphore)
		first->semaphore += base - first->base;
	return 0;
}

int elf__usdt(int fd, const char *provider, const char *name, int *sites,
	      unsigned long long *semaphore)
{
	struct usdt_note first;
	struct elf_range args;
	struct elf elf;
	int n, err;

	err = usdt_find(&elf, fd, provider, name, &n, &first, &args);
	if (err)
		return err;
	if (sites)
		*sites = n;
	if (semaphore)
		*semaphore = first.semaphore;
	return 0;
}

/* Where in the file the byte lies that is loaded at vaddr; -ENOEXEC: in no segment. */
static int elf_offset_of_vaddr(struct elf *elf, uint64_t vaddr, unsigned long long *offset)
{
	unsigned int i;
	Elf64_Phdr ph;
	int err;

	for (i = 0; i < elf->ehdr.e_phnum; i++) {
		err = elf_segment(elf, i, &ph);
		if (err)
			return err;
		if (ph.p_type != PT_LOAD || vaddr < ph.p_vaddr || vaddr - ph.p_vaddr >= ph.p_filesz)
			continue;
		*offset = ph.p_offset + (vaddr - ph.p_vaddr);
		return 0;
	}
	return -ENOEXEC;
}

int elf__read(int fd, unsigned long long vaddr, void *buf, size_t len)
{
	unsigned long long offset;
	struct elf elf;
	int err = elf_open(&elf, fd);

	if (!err)
		err = elf_offset_of_vaddr(&elf, vaddr, &offset);
	return err ? err : elf_read(&elf, offset, buf, len);
}

int elf__usdt_site(int fd, const char *provider, const char *name, struct elf_usdt_site *site)
{
	struct usdt_note first;
	struct elf_range args;
	struct elf elf;
	int n, err;

	memset(site, 0, sizeof(*site));
	err = usdt_find(&elf, fd, provider, name, &n, &first, &args);
	if (err)
		return err;
	if (n > 1)
		return -E2BIG;
	err = elf_offset_of_vaddr(&elf, first.pc, &site->offset);
	if (!err && first.semaphore)
		err = elf_offset_of_vaddr(&elf, first.semaphore, &site->semaphore_offset);
	if (!err && args.off < args.end && args.end - args.off <= sizeof(site->args))
		err = elf_read(&elf, args.off, site->args, args.end - args.off);
	site->args[sizeof(site->args) - 1] = '\0';
	return err;
}

int elf__open(const char *path)
{
	char self[32];
	struct stat st;
	int fd, real;

	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	real = open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a lease would be waited for */
	if (real < 0)
		real = -errno;
	close(fd);
	return real;
}

int elf__id(int fd, struct elf_file_id *id)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st))
		return -errno;
	*id = (struct elf_file_id){.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
				   .ino = st.stx_ino};
	return 0;
}

int elf__open_same(const char *path, const struct elf_file_id *id)
{
	int fd = open(path, O_PATH | O_CLOEXEC), err;
	struct elf_file_id is = {0};

	if (fd < 0)
		return -errno;
	err = elf__id(fd, &is);
	if (!err && (is.dev != id->dev || is.ino != id->ino))
		err = -ESTALE;
	if (!err)
		return fd;
	close(fd);
	return err;
}
