/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin is built once, on a node, and loaded where jobs are: in containers too, whose glibc may be older by
 * years. So it asks for each function's oldest version, whatever it was built with, and runs from glibc 2.17 on.
 * In front of every file of the plugin's shared library (Makefile; tests/abi/abi.sh looks at what comes out).
 *
 * glibc 2.34 took libdl and libpthread into libc and gave what they had a new version there; the old one has
 * stayed. Before, it is in the libraries of those names, which is why the plugin needs both: today they are empty.
 */
#ifndef NCCLSCOPE_LIBC_VERSIONS_H
#define NCCLSCOPE_LIBC_VERSIONS_H

#include <stdlib.h>

#ifdef __GLIBC__

#if defined(__x86_64__)
#define LIBC_FIRST   "GLIBC_2.2.5"
#define LIBC_DLADDR1 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define LIBC_FIRST   "GLIBC_2.17"
#define LIBC_DLADDR1 "GLIBC_2.17"
#else
#error "the first glibc of this architecture?"
#endif

#define LIBC_VERSION(function, version) __asm__(".symver " #function ", " #function "@" version)

LIBC_VERSION(dladdr1, LIBC_DLADDR1);
LIBC_VERSION(dlclose, LIBC_FIRST);
LIBC_VERSION(dlopen, LIBC_FIRST);
LIBC_VERSION(dlsym, LIBC_FIRST);
LIBC_VERSION(pthread_key_create, LIBC_FIRST);
LIBC_VERSION(pthread_once, LIBC_FIRST);
LIBC_VERSION(pthread_setspecific, LIBC_FIRST);

/* From 2.38 on <stdlib.h> leads to one that takes "0b1" as well. */
unsigned long libc_strtoul(const char *text, char **end, int base) __asm__("strtoul");
#define strtoul libc_strtoul

#endif
#endif
