// SPDX-License-Identifier: BSD-2-Clause
/* What the kernels of the nodes logged: each line once, and whose process it names. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include "report_priv.h"

#define KMSG_MAX 4096 /* lines */

void report_kmsg_add(struct report *r, const struct report_proc *p, const struct report_kmsg *k)
{
	struct report_kmsg *at;
	const size_t len = offsetof(struct report_kmsg, host);

	HASH_FIND(hh, r->kmsg, k, len, at);
	if (at)
		return;
	if (HASH_COUNT(r->kmsg) >= KMSG_MAX) {
		r->totals.kmsg_left++;
		return;
	}
	at = malloc(sizeof(*at));
	if (at) {
		*at = *k;
		at->host = p->host;
		at->offset = p->offset;
		at->proc = NULL;
		HASH_ADD(hh, r->kmsg, node, len, at);
	}
	if (!at || !HASH_ADDED(hh, at)) {
		free(at);
		r->err = -ENOMEM;
	}
}

static bool ends_with(const char *text, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && !memcmp(text + len - n, word, n);
}

/* "pid=24124,", "Killed process 24124 (python)", "task python:24124 blocked", "[python:24124]", "pid='24124'" */
static bool is_process(const char *text, size_t at)
{
	return ends_with(text, at, "pid=") || ends_with(text, at, "pid='") ||
	       ends_with(text, at, "process ") || ends_with(text, at, ":") ||
	       ends_with(text, at, "[");
}

static const struct report_proc *proc_of(const struct report *r, uint64_t node, int32_t pid)
{
	const struct report_proc *p;

	for (p = r->procs; p; p = p->next)
		if (p->self == p && p->node == node && p->host_pid == pid)
			return p;
	return NULL;
}

/* The first number in it that is a process of the trace. */
static const struct report_proc *named_in(const struct report *r, const struct report_kmsg *k)
{
	const struct report_proc *p;
	const char *at = k->text;
	unsigned long n;
	char *end;

	for (; *at; at = end) {
		end = (char *)at + 1;
		if (!isdigit((unsigned char)*at))
			continue;
		n = strtoul(at, &end, 10);
		if (n > INT32_MAX || !is_process(k->text, (size_t)(at - k->text)))
			continue;
		p = proc_of(r, k->node, (int32_t)n);
		if (p)
			return p;
	}
	return NULL;
}

static int by_time(const struct report_kmsg *a, const struct report_kmsg *b)
{
	int64_t x = a->ts + a->offset, y = b->ts + b->offset;

	return (x > y) - (x < y);
}

void report_kmsg_end(struct report *r)
{
	struct report_kmsg *k, *tmp;
	const struct report_proc *p;
	int64_t first = INT64_MAX;

	for (p = r->procs; p; p = p->next)
		if (p->last && p->first + p->offset < first)
			first = p->first + p->offset;
	HASH_ITER (hh, r->kmsg, k, tmp) {
		k->proc = named_in(r, k);
		k->after = first < INT64_MAX ? k->ts + k->offset - first : 0;
	}
	HASH_SORT(r->kmsg, by_time);
}

const struct report_kmsg *report_kmsg_of(const struct report *r, const struct report_proc *p)
{
	const struct report_kmsg *k, *tmp;

	HASH_ITER (hh, r->kmsg, k, tmp)
		if (p && k->proc == p->self)
			return k;
	return NULL;
}
