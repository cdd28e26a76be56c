/* SPDX-License-Identifier: BSD-2-Clause */
/* What attach.c, attach_usdt.c, attach_switches.c and attach_net.c share: the loaded object, groups of programs, questions to the kernel's types. */
#ifndef NCCLSCOPE_ATTACH_PRIV_H
#define NCCLSCOPE_ATTACH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "attach.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define ATTACH_MAX_PLUGINS 128 /* files that are attached to: containers have copies of their own */
#define ATTACH_REASONS	   256 /* of enum skb_drop_reason; Linux 6.18 has 120 */

struct bpf_link;
struct bpf_map;
struct bpf_program;
struct btf;
struct ring_buffer;
struct scope_bpf;

/* Flows: attach_net.c. */
struct attach_net {
	struct bpf_link *files;		/* an iterator; NULL: none */
	const volatile uint64_t *socks; /* BPF's scope_socks, mapped; NULL: not */
	size_t socks_size;
	uint8_t *cpus; /* BPF's scope_cpus, mapped; NULL: not */
	size_t cpus_size;
	char *reasons[ATTACH_REASONS]; /* names, by number */
};

/* The flush probe on one file: attach_usdt.c. */
struct attach_probe {
	bool on;
	struct bpf_link *link; /* through perf; NULL: */
	int fd;		       /* a uprobe_multi link */
};

/* Switches that gather, by CPU: attach_switches.c. */
struct attach_switches {
	const struct scope_switches *all; /* BPF's, mapped; NULL: not */
	size_t size;			  /* of that, in bytes */
	uint32_t *seen;			  /* the last that was told of each */
	struct scope_ev_switches *recs;	  /* what was found at the last look, of n CPUs */
	int n;
	uint64_t behind;   /* what is older than they are lies in the ring up to here */
	uint64_t look_ns;  /* when that was; 0: they have been told */
	uint64_t known_ns; /* the last look that has been told */
};

struct attach {
	struct scope_bpf *skel;
	struct btf *btf; /* the kernel's, while opening; NULL: it has none */
	struct ring_buffer *ring;
	const volatile unsigned long *pos; /* its first two pages, mapped; NULL: not */
	struct attach_probe plugin[ATTACH_MAX_PLUGINS];
	struct bpf_link *asleep, *found; /* iterators; NULL: none */
	bool detached;			 /* nothing more comes into the ring */
	attach_record_fn fn;
	void *arg;
	int taken;     /* records in this poll */
	uint8_t *pids; /* BPF's scope_pids, mapped; NULL: not */
	size_t npids;
	/* For irqs_look(): an element for each of ncpus, thrice; of the first, nirqs are set. */
	struct scope_irqs *irqs;
	int ncpus, nirqs;
	struct attach_switches switches;
	struct attach_net net;
};

struct context_program {
	struct bpf_program *prog;
	struct bpf_link **link;
	bool needed; /* the group is no use without it */
};

/* Whether it is loaded; whoever attaches it then, it is not libbpf by itself. */
void program_enable(struct bpf_program *prog, bool on);

/* Those of a group that are loaded: all that are needed, or none. */
bool attach_group(const struct context_program *group, size_t n, const char *loses);
void detach_group(const struct context_program *group, size_t n);

/* Runs an iterator (NULL: there is none) to its end: how many bytes it has written, or -errno. */
int iterate(struct bpf_link *link);

/* All elements of an array that can be mapped, as BPF has them; *size bytes, to be unmapped. NULL, with errno. */
void *array_map(const struct bpf_map *map, int prot, size_t *size);

/* How many arguments a tracepoint has on this kernel, -1 if it has no such tracepoint. */
int tracepoint_args(const struct btf *btf, const char *name);

/* The same of a function. */
int function_args(const struct btf *btf, const char *name);

bool has_enumerator(const struct btf *btf, const char *type, const char *name);

/* Before load: the programs for the flush probe, that for which no CAP_SYS_ADMIN is taken if the kernel has it. */
void probe_choose(struct scope_bpf *skel, const struct btf *btf);
/*
 * Puts the flush probe of the plugin at `path` on, for one process or (pid -1) for all. 0, what elf_file.h says of the file, -EOPNOTSUPP: its
 * site is not as the plugin's, or another -errno.
 */
int probe_attach(struct attach *a, struct attach_probe *probe, const char *path, pid_t pid);
/* Takes it off; one that is not on is left. */
void probe_detach(struct attach_probe *probe);

/* What of net context this kernel can have: *f, as far as f->net asks for it. */
void net_ask(struct attach_features *f, const struct btf *btf);
/* Before load. `functions`: also programs at functions by fexit, which not every kernel takes. */
void net_choose(struct scope_bpf *skel, const struct attach_features *f, const struct btf *btf,
		bool functions);
/* After load: attaches what was chosen; *f says what there is. */
void net_attach(struct attach *a, struct attach_features *f);
void net_close(struct attach_net *net);

/* Maps what BPF gathers of ncpus. 0 or -errno. */
int switches_open(struct attach *a);
void switches_close(struct attach *a);
/*
 * Those that are in the ring's records not yet, and have not been told by us: looks, unless it did and has not told yet; tells when the ring
 * has been read up to where it was then. What the ring brings later may hold them again.
 */
void switches_look(struct attach *a);
void switches_tell(struct attach *a);

#endif
