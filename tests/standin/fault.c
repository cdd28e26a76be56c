// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults on request: STANDIN_FAULT is a list "name:key=value:key=value,name:...". A fault without
 * rank= holds for every rank. The names are listed in scope-job --help.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* Finds "key=" among the colon-separated parts of one fault; false if it is not there. */
static bool part_value(const char *f, size_t len, const char *key, long *val)
{
	size_t klen = strlen(key);
	const char *end = f + len;

	while (f < end) {
		const char *stop = memchr(f, ':', end - f);

		if (!stop)
			stop = end;
		if ((size_t)(stop - f) > klen && !strncmp(f, key, klen) && f[klen] == '=') {
			*val = strtol(f + klen + 1, NULL, 0);
			return true;
		}
		f = stop + 1;
	}
	return false;
}

static const char *find_fault(const char *name, int rank, size_t *len)
{
	const char *f = getenv("STANDIN_FAULT");
	size_t nlen = strlen(name);
	long r;

	while (f && *f) {
		*len = strcspn(f, ",");
		if (*len >= nlen && !strncmp(f, name, nlen) &&
		    (f[nlen] == ':' || f[nlen] == ',' || !f[nlen])) {
			if (rank < 0 || !part_value(f, *len, "rank", &r) || r == rank)
				return f;
		}
		f += *len;
		f += *f == ',';
	}
	return NULL;
}

bool fault_get(const char *name, int rank, const char *key, long dflt, long *val)
{
	size_t len;
	const char *f = find_fault(name, rank, &len);

	*val = dflt;
	if (f)
		part_value(f, len, key, val);
	return f != NULL;
}

bool fault_on(const char *name, int rank)
{
	size_t len;

	return find_fault(name, rank, &len) != NULL;
}

static long fault_or(const char *name, int rank, const char *key, long on, long off)
{
	long v;

	return fault_get(name, rank, key, on, &v) ? v : off;
}

void fault_load(struct faults *f, int rank)
{
	f->late_ms = fault_or("late", rank, "ms", 10, 0);
	f->late_every = fault_or("late", rank, "every", 1, 1);
	f->slow_us = fault_or("slow-progress", rank, "us", 500, 0);
	f->slow_busy = fault_or("slow-progress", rank, "busy", 0, 0);
	f->pin_cpu = fault_or("pin-progress", rank, "cpu", 0, -1);
	f->recv_repeat = fault_or("recv-repeat", rank, "n", 1000, 0);
	f->peerwait_repeat = fault_or("peerwait-repeat", rank, "n", 1000, 0);
	f->kill_after = fault_or("kill", rank, "after", 1, 0);
	f->abort_after = fault_or("abort", rank, "after", 1, 0);
	f->hang_after = fault_or("hang", rank, "after", 1, 0);
}
