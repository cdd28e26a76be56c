// SPDX-License-Identifier: BSD-2-Clause
/* Messages of the loader, to stderr, by level. */
#include <stdarg.h>
#include <stdio.h>
#include <bpf/libbpf.h>
#include "log.h"

enum log_level log_level = LOG_INFO;

static const char *const prefix[] = {"ncclscope: error: ", "ncclscope: warning: ", "ncclscope: ",
				     "ncclscope: debug: ", "libbpf: "};

static void log_vprintf(enum log_level level, const char *fmt, va_list ap)
{
	if (level > log_level)
		return;
	/* One lock over prefix and text, so that a line stays a line when threads log. */
	flockfile(stderr);
	fputs(prefix[level], stderr);
	vfprintf(stderr, fmt, ap);
	funlockfile(stderr);
}

void log_printf(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_vprintf(level, fmt, ap);
	va_end(ap);
}

/*
 * libbpf explains a failure that we report ourselves, in our words, right after: so its warnings
 * are shown with -v only and the rest with -vv.
 */
static int libbpf_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (log_level >= (level == LIBBPF_WARN ? LOG_DEBUG : LOG_LIBBPF)) {
		fputs(prefix[LOG_LIBBPF], stderr);
		return vfprintf(stderr, fmt, ap);
	}
	return 0;
}

void log_setup_libbpf(void)
{
	libbpf_set_print(libbpf_print);
}
