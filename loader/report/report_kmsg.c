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

enum names_what { NOTHING, A_PROCESS, A_TASK };

/*
 * "mlx5_core 0000:17:00.0: wait_func:1195:(pid 24125): ...": who asked the device, in functions that run for that one. Others run in timers
 * and interrupts, and name whom these interrupted; so does what is said of a CREATE_MKEY that nobody waits for.
 */
static bool is_asked_by(const char *text, size_t at)
{
	static const char *const functions[] = {
		": wait_func:",	     ": wait_func_handle_exec_timeout:",
		": cmd_exec:",	     ": mlx5_cmd_exec:",
		": mlx5_cmd_check:", ": mlx5_cmd_out_err:"};
	const char *found;
	size_t i;

	if (!ends_with(text, at, "(pid "))
		return false;
	if (strstr(text, ": mlx5_cmd_out_err:") && strstr(text, ": CREATE_MKEY("))
		return false;
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		found = strstr(text, functions[i]);
		if (found && found < text + at)
			return true;
	}
	return false;
}

/*
 * "pid=24124,", "pid='24124'", "Killed process 24124 (python)"; and of tasks, which are threads: is_asked_by(), "INFO: task python:24125 blocked for
 * more than" or "blocked in I/O wait for more than", "watchdog: ... [python:24125]", "Memory failure: 0x...: Sending SIGBUS to python:24125 due to",
 * in which the name is anybody's choice. Other numbers are places in the kernel's source, devices, and what not.
 */
static bool is_task(const char *text, size_t at, const char *end)
{
	if (is_asked_by(text, at))
		return true;
	if (!ends_with(text, at, ":"))
		return false;
	if (begins_with(text, "INFO: task "))
		return begins_with(end, " blocked for more than ") ||
		       begins_with(end, " blocked in I/O wait for more than ");
	if (begins_with(text, "Memory failure: "))
		return begins_with(end, " due to hardware memory corruption") ||
		       begins_with(end, " because of failure to unmap");
	return begins_with(text, "watchdog: ") && !strcmp(end, "]");
}

static enum names_what names_what(const char *text, size_t at, const char *end)
{
	if (is_task(text, at, end))
		return A_TASK;
	if (ends_with(text, at, "pid=") || ends_with(text, at, "pid='") ||
	    ends_with(text, at, "Killed process "))
		return A_PROCESS;
	return NOTHING;
}

/* A recording of a process of a node, as lines name it, or by a thread of it. */
struct by_pid {
	uint64_t node;
	int32_t pid;
	bool thread;
	const struct report_proc *proc;
};

static int cmp_pid(const void *a, const void *b)
{
	const struct by_pid *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->thread - y->thread;
}

#define NEAR_NS	  (60 * INT64_C(1000000000)) /* of its recording: numbers come again */
#define SAME_MAX  1024			     /* that are looked through */
#define NAMED_MAX (1u << 20)		     /* recordings and threads */

static bool is_near(const struct report_proc *p, int64_t ts)
{
	return ts >= p->first - NEAR_NS && ts <= p->last + NEAR_NS;
}

static struct report_proc *proc_of(const struct by_pid *list, size_t n, const struct by_pid *key,
				   int64_t ts)
{
	const struct by_pid *at = bsearch(key, list, n, sizeof(*list), cmp_pid);
	int left = SAME_MAX;

	if (!at)
		return NULL;
	while (at > list && !cmp_pid(at - 1, key))
		at--;
	for (; at < list + n && !cmp_pid(at, key) && left; at++, left--)
		if (is_near(at->proc, ts))
			return at->proc->self;
	return NULL;
}

/* The first number in it that is a process' or a task's; *named: there is one. NULL: of none of the trace. */
static struct report_proc *named_in(const struct report_kmsg *k, const struct by_pid *list,
				    size_t nlist, bool *named)
{
	struct by_pid key = {.node = k->node};
	enum names_what what = NOTHING;
	struct report_proc *p = NULL;
	const char *at = k->text;
	unsigned long n = 0;
	char *end;

	for (; *at && what == NOTHING; at = end) {
		end = (char *)at + 1;
		if (!isdigit((unsigned char)*at))
			continue;
		n = strtoul(at, &end, 10);
		what = names_what(k->text, (size_t)(at - k->text), end);
	}
	*named = what != NOTHING;
	if (!*named || n > INT32_MAX)
		return NULL;
	key.pid = (int32_t)n;
	p = proc_of(list, nlist, &key, k->ts);
	if (!p && what == A_TASK) {
		key.thread = true;
		p = proc_of(list, nlist, &key, k->ts);
	}
	return p;
}

/* Of who was on that GPU then; NULL: nobody that is known, or several. */
static struct report_proc *alone_on(const struct report *r, const struct report_gpu *g, int64_t ts)
{
	struct report_proc *p, *found = NULL;

	for (p = r->procs; p; p = p->next) {
		if ((p->self->gpu != g && p->self != g->proc) || ts < p->first || !is_near(p, ts) ||
		    p->self == found)
			continue;
		if (found)
			return NULL;
		found = p->self;
	}
	return found;
}

/* "NVRM: Xid (PCI:0000:3b:00): 79, ..." */
static struct report_proc *on_gpu(const struct report *r, const struct report_kmsg *k)
{
	const char *at = strstr(k->text, "(PCI:"), *pci;
	const struct report_gpu *g, *tmp;
	size_t len;

	if (!at)
		return NULL;
	at += strlen("(PCI:");
	len = strspn(at, "0123456789abcdefABCDEF:");
	HASH_ITER (hh, r->gpus, g, tmp) {
		pci = names__text(r->names, g->pci);
		if (g->node == k->node && len >= 10 && !strncasecmp(pci, at, len) &&
		    (!pci[len] || pci[len] == '.'))
			return alone_on(r, g, k->ts);
	}
	return NULL;
}

/* Each recording, and the threads that its trace tells of, which are the first's of its process; in order. NULL: no memory. */
static struct by_pid *all_named(const struct report *r, size_t *n)
{
	const struct report_proc *p;
	const struct report_thread *t, *tmp;
	struct by_pid *list;
	size_t max = r->nprocs + 1;

	for (p = r->procs; p; p = p->next)
		max += p->self->nthreads;
	max = max < NAMED_MAX ? max : NAMED_MAX;
	list = malloc(max * sizeof(*list));
	*n = 0;
	if (!list)
		return NULL;
	for (p = r->procs; p && *n < max; p = p->next)
		list[(*n)++] = (struct by_pid){p->node, p->host_pid, false, p};
	for (p = r->procs; p && *n < max; p = p->next)
		HASH_ITER (hh, p->self->threads, t, tmp)
			if (*n < max)
				list[(*n)++] = (struct by_pid){p->node, t->host_tid, true, p};
	qsort(list, *n, sizeof(*list), cmp_pid);
	return list;
}

static void find_processes(struct report *r)
{
	struct report_kmsg *k, *tmp;
	struct by_pid *list;
	bool named;
	size_t n;

	if (!r->kmsg)
		return;
	list = all_named(r, &n);
	if (!list) {
		r->err = -ENOMEM;
		return;
	}
	HASH_ITER (hh, r->kmsg, k, tmp) {
		k->proc = named_in(k, list, n, &named);
		if (!named)
			k->proc = on_gpu(r, k);
	}
	free(list);
}

static int by_time(const struct report_kmsg *a, const struct report_kmsg *b)
{
	int64_t x = a->ts + a->offset, y = b->ts + b->offset;

	return (x > y) - (x < y);
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
