// SPDX-License-Identifier: BSD-2-Clause
/* Messages of the loader, to stderr, by level. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <bpf/libbpf.h>
#include "log.h"

enum log_level log_level = LOG_INFO;

static const char *const prefix[] = {"ncclscope: error: ", "ncclscope: warning: ", "ncclscope: ",
				     "ncclscope: debug: ", "libbpf: "};

/* Names of processes and files are the jobs': no control characters of theirs reach a terminal or begin a line of their own. */
static void defuse(char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
}

static void log_vprintf(enum log_level level, const char *fmt, va_list ap)
{
	char text[2 * PATH_MAX];
	size_t len;

	if (level > log_level)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	len = strlen(text);
	defuse(text, len && text[len - 1] == '\n' ? len - 1 : len);
	/* One lock over prefix and text, so that a line stays a line when threads log. */
	flockfile(stderr);
	fputs(prefix[level], stderr);
	fputs(text, stderr);
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
