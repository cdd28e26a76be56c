// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table is made at build time from the compiler's own <sys/syscall.h>, so it fits the target also when
 * that is not the build machine. Two names for one number would not compile.
 */
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include "syscalls.h"

#define SCOPE_SYSCALL(name) [__NR_##name] = #name,
static const char *const names[] = {
#include "syscall_table.h"
};
#undef SCOPE_SYSCALL

const char *syscall_name(int nr)
{
	return nr >= 0 && (size_t)nr < sizeof(names) / sizeof(names[0]) ? names[nr] : NULL;
}

/* Not polls of several: what they slept for is in no argument. */
static const char *const on_files[] = {
	"accept",     "accept4",   "connect",  "copy_file_range", "epoll_pwait",     "epoll_pwait2",
	"epoll_wait", "fallocate", "fcntl",    "fdatasync",	  "flock",	     "fstat",
	"fsync",      "ftruncate", "getdents", "getdents64",	  "ioctl",	     "pread64",
	"preadv",     "preadv2",   "pwrite64", "pwritev",	  "pwritev2",	     "read",
	"readahead",  "readv",	   "recvfrom", "recvmmsg",	  "recvmsg",	     "sendfile",
	"sendmmsg",   "sendmsg",   "sendto",   "splice",	  "sync_file_range", "syncfs",
	"tee",	      "vmsplice",  "write",    "writev"};

bool syscall_takes_file(int nr)
{
	const char *name = syscall_name(nr);
	size_t i;

	for (i = 0; name && i < sizeof(on_files) / sizeof(on_files[0]); i++)
		if (!strcmp(name, on_files[i]))
			return true;
	return false;
}
