/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of a trace through `report`, for report_test.c and report_p2p_test.c. */
#ifndef NCCLSCOPE_REPORT_TEXT_H
#define NCCLSCOPE_REPORT_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <unistd.h>
#include "report_priv.h"

static char *trace_of(const char *text, size_t len)
{
	static char path[] = "/tmp/report_test.XXXXXX";
	int fd;

	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
	return path;
}

/* As with --slower-than; 0: without. */
static void read_text_than(struct report *r, const char *text, size_t len, int64_t slower_than)
{
	char *paths[] = {trace_of(text, len), NULL};
	FILE *null = fopen("/dev/null", "w");

	memset(r, 0, sizeof(*r));
	assert_int_equal(report_init(r), 0);
	r->opt.slower_than = slower_than;
	assert_int_equal(report_read(r, paths), 0);
	report_end(r);
	/* whatever it is, it can be printed */
	report_text(r, null);
	assert_int_equal(report_json(r, null), 0);
	report_csv(r, null);
	fclose(null);
	unlink(paths[0]);
}

static void read_text(struct report *r, const char *text, size_t len)
{
	read_text_than(r, text, len, 0);
}

#define HEADER(pid)                                                                                \
	"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":" pid     \
	",\"hostPid\":" pid ",\"comm\":\"job\"}\n"

/* That says when the process started, in us. */
#define HEADER_OF(pid, started)                                                                    \
	"{\"recordType\":\"header\",\"schema\":1,\"host\":\"n\",\"bootId\":\"b\",\"pid\":" pid     \
	",\"hostPid\":" pid ",\"comm\":\"job\",\"startTime\":" started "}\n"

#endif
