// SPDX-License-Identifier: BSD-2-Clause
/*
 * LD_PRELOAD: the Nth call of one kind that the program makes fails. Only that program's own process: its children
 * do not see this library, nor do calls count that libc makes inside itself.
 *
 *   INJECT=KIND:N   KIND as in `names`; N from 1, 0: none fails
 *   INJECT_OUT=F    F has one uint64_t for each KIND, in the order of `names`: how many calls there were; and one that
 *                   says how many have failed
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ALLOC, OPEN, READ, WRITE, MAP, BPF, PERF, KINDS };
static const char *const names[KINDS] = {"malloc", "open", "read", "write", "mmap", "bpf", "perf"};
/* Two plausible reasons each, taken in turn. */
static const int errnos[KINDS][2] = {
	{ENOMEM, ENOMEM}, {EMFILE, EACCES}, {EIO, EINTR},     {ENOSPC, EIO},
	{ENOMEM, EAGAIN}, {ENOMEM, EPERM},  {EMFILE, EACCES},
};

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static uint64_t *counts; /* NULL until main() */
static int fail_kind, owner;
static uint64_t fail_at;

/* Before any program's code, without a call that is counted. */
__attribute__((constructor)) static void setup(void)
{
	const char *spec = getenv("INJECT"), *out = getenv("INJECT_OUT");
	size_t len = (KINDS + 1) * sizeof(*counts);
	void *at;
	long fd;

	unsetenv("LD_PRELOAD");
	if (!spec || !out || !strchr(spec, ':'))
		return;
	while (fail_kind < KINDS && strncmp(spec, names[fail_kind], strcspn(spec, ":")))
		fail_kind++;
	fail_at = strtoull(strchr(spec, ':') + 1, NULL, 10);
	fd = syscall(SYS_openat, AT_FDCWD, out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate((int)fd, (off_t)len))
		abort();
	/* Written to as the calls are made: whatever ends the program. */
	at = (void *)syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0l);
	if (at == MAP_FAILED)
		abort();
	syscall(SYS_close, fd);
	unsetenv("INJECT");
	unsetenv("INJECT_OUT");
	owner = getpid();
	counts = at;
}

/* One more call of this kind; true: it is to fail, errno is set. */
static bool fails(int kind)
{
	uint64_t n;

	if (!counts || getpid() != owner)
		return false;
	n = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_RELAXED);
	if (kind != fail_kind || n != fail_at)
		return false;
	counts[KINDS]++;
	errno = errnos[kind][n & 1];
	return true;
}

/* The next of that name, libc's. */
#define NEXT(name)                                                                                 \
	static __typeof__(name) *next;                                                             \
	if (!next)                                                                                 \
	next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

void *malloc(size_t size)
{
	return fails(ALLOC) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails(ALLOC) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails(ALLOC) ? NULL : __libc_realloc(p, size);
}

/* The mode is there whether or not it was given. */
#define MODE(flags, mode)                                                                          \
	do {                                                                                       \
		va_list ap;                                                                        \
		va_start(ap, flags);                                                               \
		mode = (flags) & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;                 \
		va_end(ap);                                                                        \
	} while (0)

int open(const char *path, int flags, ...)
{
	mode_t mode;

	MODE(flags, mode);
	return fails(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode;

	MODE(flags, mode);
	return fails(OPEN) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int dir, const char *path, int flags, ...) __attribute__((alias("openat")));

FILE *fopen(const char *path, const char *how)
{
	NEXT(fopen);
	return fails(OPEN) ? NULL : next(path, how);
}

FILE *fopen64(const char *path, const char *how) __attribute__((alias("fopen")));

DIR *opendir(const char *path)
{
	NEXT(opendir);
	return fails(OPEN) ? NULL : next(path);
}

ssize_t read(int fd, void *buf, size_t len)
{
	return fails(READ) ? -1 : syscall(SYS_read, fd, buf, len);
}

ssize_t pread(int fd, void *buf, size_t len, off_t at)
{
	return fails(READ) ? -1 : syscall(SYS_pread64, fd, buf, len, at);
}

ssize_t pread64(int fd, void *buf, size_t len, off_t at) __attribute__((alias("pread")));

char *fgets(char *buf, int size, FILE *f)
{
	NEXT(fgets);
	return fails(READ) ? NULL : next(buf, size, f);
}

ssize_t readlinkat(int dir, const char *path, char *buf, size_t len)
{
	return fails(READ) ? -1 : syscall(SYS_readlinkat, dir, path, buf, len);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	return fails(WRITE) ? -1 : syscall(SYS_write, fd, buf, len);
}

ssize_t pwrite(int fd, const void *buf, size_t len, off_t at)
{
	return fails(WRITE) ? -1 : syscall(SYS_pwrite64, fd, buf, len, at);
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off_t at) __attribute__((alias("pwrite")));

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	return fails(MAP) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, len, prot, flags, fd, off);
}

void *mmap64(void *at, size_t len, int prot, int flags, int fd, off_t off)
	__attribute__((alias("mmap")));

/* libbpf and we make these with it. Six arguments are passed on whatever their number. */
long syscall(long nr, ...)
{
	static long (*next)(long, ...);
	long a[6], i;
	va_list ap;
	int kind;

	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	kind = nr == SYS_bpf		   ? BPF
	       : nr == SYS_perf_event_open ? PERF
	       : nr == SYS_openat2	   ? OPEN
					   : -1;
	return kind >= 0 && fails(kind) ? -1 : next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
