/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machine as a whole was doing, from /proc: CPU times, pressure, and the CPU quota of a process'
 * cgroup. Sums since boot, in nanoseconds; what a file does not say is marked so and never 0.
 *
 *	node__init(&n, "");                 once; node__free() at the end
 *	node__sample(&n);                   every second, and when a process begins; the result is n.last
 *	p->node = node_sample__get(n.last)  at the beginning of a process: what its first interval counts from
 *	trace__node(p, p->node, n.last)     node_since(was, now) of each sum where both know it; then
 *	node_sample__put(p->node), p->node = node_sample__get(n.last)
 *	node_cgroup__find(&p->cgroup, "", pid) once, node_cgroup__read(&p->cgroup, &quota) at each sample,
 *	node_cgroup__close(&p->cgroup)      at the end; also of one that was never found or is all zero
 */
#ifndef NCCLSCOPE_NODE_H
#define NCCLSCOPE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "text.h"

#define NODE_CPUS_MAX 8192 /* numbers beyond are passed over; the kernel's own limit on x86 */

/* The kernel counts in ticks of 10 ms: over one second a sum may be two of them more than the second. */
struct node_cpu {
	bool known;	       /* false: offline, or there is no such CPU */
	uint64_t busy;	       /* user, nice, system, irq, softirq; neither idle nor stolen */
	uint64_t irq, softirq; /* contained in busy */
	uint64_t steal;	       /* wanted to run, but the hypervisor did not let it */
	bool has_net_rx;       /* not from /proc: whoever knows fills it in */
	uint64_t net_rx;       /* NET_RX softirq, a part of softirq that is measured, not ticks */
};

enum node_psi_what { NODE_PSI_CPU, NODE_PSI_MEMORY, NODE_PSI_IO, NODE_PSI_CNT };

/* Time in which some, or all, tasks of the node stood still for want of it. */
struct node_psi {
	uint64_t some, full;
	bool has_some, has_full;
};

struct node_sample {
	uint32_t refs;
	uint32_t ncpus;	 /* highest CPU number + 1; 0 if /proc/stat cannot be read */
	uint64_t now_ns; /* CLOCK_MONOTONIC of the CPU times */
	uint64_t procs_running, procs_blocked;
	bool has_running, has_blocked;
	struct node_psi psi[NODE_PSI_CNT];
	struct node_cpu cpus[];
};

struct node_sampler {
	const char *root; /* before every path: "", or a folder in tests; not copied */
	uint64_t tick_ns;
	struct text_file text;
	struct node_sample *last; /* NULL before the first */
};

void node__init(struct node_sampler *n, const char *root);
/* Reads everything; 0 or -ENOMEM. Files that cannot be read are values that are not known. */
int node__sample(struct node_sampler *n);
void node__free(struct node_sampler *n);

/* A sample stays as it is for as long as somebody holds it. NULL is fine for both. */
struct node_sample *node_sample__get(struct node_sample *s);
void node_sample__put(struct node_sample *s);

/* CPU `cpu` of a sample; NULL where it is not known. */
const struct node_cpu *node_sample__cpu(const struct node_sample *s, uint32_t cpu);

/* From one sum to a later one. Some run backwards a little (steal, in virtual machines): nothing then. */
static inline uint64_t node_since(uint64_t was, uint64_t now)
{
	return now > was ? now - was : 0;
}

/* Of a cgroup, since it was made. */
struct node_quota {
	uint64_t periods; /* in which it wanted to run */
	uint64_t throttled_periods;
	uint64_t throttled; /* time, summed over its CPUs */
};

/*
 * The cgroup whose quota holds for a process: the nearest, from its own upwards, that has a quota; else the
 * nearest that counts, where a quota may come yet. `fd` is its cpu.stat.
 */
struct node_cgroup {
	int fd; /* if found */
	bool found;
	bool v2;
	bool limited; /* it had a quota when it was found */
	bool own; /* no cgroup below it counts: the figures are those of the process' task group */
};

/*
 * 0; -ENOENT: no cgroup of the process with the cpu controller can be seen from here; -ENODATA: none of
 * them counts (the root, say); other errors of reading /proc. pid 0 is ourselves.
 */
int node_cgroup__find(struct node_cgroup *c, const char *root, pid_t pid);
int node_cgroup__read(const struct node_cgroup *c, struct node_quota *quota);
void node_cgroup__close(struct node_cgroup *c);

/* ---- Parsing: text in, whatever it is; for node.c and its test -------------------------------------- */

/* Highest number of a CPU in /proc/stat, plus one. */
uint32_t node_parse_ncpus(const char *text, size_t len);
/* /proc/stat into s->cpus[0 .. s->ncpus - 1], procs_*; all but s->ncpus is zero before. */
void node_parse_stat(const char *text, size_t len, uint64_t tick_ns, struct node_sample *s);
void node_parse_psi(const char *text, size_t len, struct node_psi *psi);
/* cpu.stat, v1 or v2; false where it does not have all three. */
bool node_parse_quota(const char *text, size_t len, struct node_quota *quota);
/* cpu.max (v2) or cpu.cfs_quota_us (v1): is there a limit? */
bool node_parse_limit(const char *text, size_t len);
/* /proc/PID/cgroup: the path in the hierarchy that has the cpu controller; false where there is none. */
bool node_parse_cgroup(const char *text, size_t len, char *path, size_t size, bool *v2);

struct node_mount {
	unsigned int major, minor;
	bool v2;
	char root[4096];  /* what of the hierarchy is mounted */
	char point[4096]; /* where */
};

/* One line of mountinfo, without its newline; false unless it is a cgroup mount of interest, and whole. */
bool node_parse_mount(const char *line, size_t len, struct node_mount *m);

#endif
