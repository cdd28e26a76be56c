// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table is made at build time from the compiler's own <sys/syscall.h>, so it fits the target also when
 * that is not the build machine. Two names for one number would not compile.
 */
#include <stddef.h>
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
