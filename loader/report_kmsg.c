// SPDX-License-Identifier: BSD-2-Clause
/* What the kernels of the nodes logged: each line once, and whose process it names. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
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

static bool begins_with(const char *text, const char *word)
{
	return !strncmp(text, word, strlen(word));
}

/*
 * "pid=24124,", "pid='24124'", "(pid 24124)", "Killed process 24124 (python)"; "INFO: task python:24124 blocked for more than", "watchdog: ...
 * [python:24124]", in which the name is anybody's choice. Other numbers are places in the kernel's source, devices, and what not.
 */
static bool is_process(const char *text, size_t at, const char *end)
{
	if (begins_with(text, "INFO: task "))
		return ends_with(text, at, ":") && begins_with(end, " blocked for more than");
	if (begins_with(text, "watchdog: "))
		return ends_with(text, at, ":") && !strcmp(end, "]");
	return ends_with(text, at, "pid=") || ends_with(text, at, "pid='") ||
	       ends_with(text, at, "(pid ") || ends_with(text, at, "Killed process ");
}

/* A process of a node, as lines name it. */
struct by_pid {
	uint64_t node;
	int32_t pid;
	const struct report_proc *proc;
};

static int cmp_pid(const void *a, const void *b)
{
	const struct by_pid *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

#define NEAR_NS (60 * INT64_C(1000000000)) /* of its recording: numbers come again */

static struct report_proc *proc_of(const struct by_pid *list, size_t n, uint64_t node, int32_t pid,
				   int64_t ts)
{
	const struct by_pid key = {.node = node, .pid = pid},
			    *at = bsearch(&key, list, n, sizeof(*list), cmp_pid);

	if (!at)
		return NULL;
	while (at > list && !cmp_pid(at - 1, &key))
		at--;
	for (; at < list + n && !cmp_pid(at, &key); at++)
		if (ts >= at->proc->first - NEAR_NS && ts <= at->proc->last + NEAR_NS)
			return at->proc->self;
	return NULL;
}

/* The first number in it that is a process'; *named: there is one. NULL: of none of the trace. */
static struct report_proc *named_in(const struct report_kmsg *k, const struct by_pid *list,
				    size_t nlist, bool *named)
{
	const char *at = k->text;
	unsigned long n;
	char *end;

	*named = false;
	for (; *at; at = end) {
		end = (char *)at + 1;
		if (!isdigit((unsigned char)*at))
			continue;
		n = strtoul(at, &end, 10);
		*named = is_process(k->text, (size_t)(at - k->text), end);
		if (*named)
			return n <= INT32_MAX ? proc_of(list, nlist, k->node, (int32_t)n, k->ts)
					      : NULL;
	}
	return NULL;
}

/* "NVRM: Xid (PCI:0000:3b:00): 79, ...": the one of them who alone is on that GPU, and was then. */
static struct report_proc *on_gpu(const struct report *r, const struct report_kmsg *k,
				  const struct by_pid *list, size_t nlist)
{
	const char *at = strstr(k->text, "(PCI:"), *pci;
	const struct report_gpu *g, *tmp;
	struct report_proc *p;
	size_t len;

	if (!at)
		return NULL;
	at += strlen("(PCI:");
	len = strspn(at, "0123456789abcdefABCDEF:");
	HASH_ITER (hh, r->gpus, g, tmp) {
		pci = names__text(r->names, g->pci);
		if (g->node != k->node || len < 10 || strncasecmp(pci, at, len) ||
		    (pci[len] && pci[len] != '.'))
			continue;
		p = proc_of(list, nlist, k->node, g->proc->host_pid, k->ts);
		return !g->shared && p == g->proc && k->ts >= p->first ? p : NULL;
	}
	return NULL;
}

static int by_time(const struct report_kmsg *a, const struct report_kmsg *b)
{
	int64_t x = a->ts + a->offset, y = b->ts + b->offset;

	return (x > y) - (x < y);
}

static void find_processes(struct report *r)
{
	struct by_pid *list = calloc(r->nprocs + 1, sizeof(*list));
	struct report_kmsg *k, *tmp;
	struct report_proc *p;
	bool named;
	size_t n = 0;

	if (!list) {
		r->err = -ENOMEM;
		return;
	}
	for (p = r->procs; p; p = p->next)
		list[n++] = (struct by_pid){p->node, p->host_pid, p};
	qsort(list, n, sizeof(*list), cmp_pid);
	HASH_ITER (hh, r->kmsg, k, tmp) {
		k->proc = named_in(k, list, n, &named);
		if (!named)
			k->proc = on_gpu(r, k, list, n);
	}
	free(list);
}

void report_kmsg_end(struct report *r)
{
	struct report_kmsg *k, *tmp;
	struct report_proc *p;
	int64_t first, last;

	HASH_SORT(r->kmsg, by_time);
	find_processes(r);
	report_times(r, &first, &last);
	HASH_ITER (hh, r->kmsg, k, tmp) {
		k->after = first < INT64_MAX ? k->ts + k->offset - first : 0;
		p = k->proc;
		if (p && !p->kmsg)
			p->kmsg = k;
	}
}
