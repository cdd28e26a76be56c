// SPDX-License-Identifier: BSD-2-Clause
/* BPF programs: load, attach, poll; see attach.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "attach.h"
#include "cmd.h"
#include "log.h"
#include "nccl.skel.h"
#include "scope_abi.h"
#include "scope_probes.h"

#define MAX_PLUGINS 64
#define RING_MIN    (256 * 1024)

struct attach {
	struct nccl_bpf *skel;
	struct ring_buffer *ring;
	struct bpf_link *plugin[MAX_PLUGINS];
	int nplugins;
	attach_record_fn fn;
	void *arg;
};

static int on_record(void *ctx, void *data, size_t size)
{
	struct attach *a = ctx;

	a->fn(a->arg, data, size);
	return 0;
}

static uint32_t ring_size(uint64_t bytes)
{
	uint64_t size = RING_MIN;

	while (size < bytes && size < 1u << 31)
		size *= 2;
	return (uint32_t)size;
}

/* What a failure to load means for the user. */
static int explain_load(int err)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		pr_err("This kernel has no BTF (/sys/kernel/btf/vmlinux: %s): a kernel with "
		       "CONFIG_DEBUG_INFO_BTF=y is needed; 'ncclscope doctor' tells more\n",
		       strerror(errno));
		return EXIT_KERNEL;
	}
	if (err == -EPERM || err == -EACCES) {
		pr_err("Failed to load the BPF programs: %s; run as root, see 'ncclscope doctor'\n",
		       strerror(-err));
		return EXIT_PRIVILEGE;
	}
	pr_err("Failed to load the BPF programs: %s; 'ncclscope doctor' tells what this kernel "
	       "lacks\n",
	       strerror(-err));
	return EXIT_KERNEL;
}

/* Programs on tracepoints that only newer kernels have. */
static void choose_programs(struct nccl_bpf *skel)
{
	if (libbpf_find_vmlinux_btf_id("sched_prepare_exec", BPF_TRACE_RAW_TP) > 0)
		bpf_program__set_autoload(skel->progs.scope_pre_exec, true);
	else
		pr_debug("This kernel has no sched_prepare_exec: what a thread has not yet handed "
			 "in is lost when it calls execve\n");
}

struct attach *attach__open(uint64_t ring_bytes, attach_record_fn fn, void *arg, int *status)
{
	/* Kernels before 5.11 count BPF memory against this limit. */
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct attach *a = calloc(1, sizeof(*a));
	int err;

	if (!a) {
		pr_err("Failed to allocate: %s\n", strerror(ENOMEM));
		*status = EXIT_FAILED;
		return NULL;
	}
	a->fn = fn;
	a->arg = arg;
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited))
		pr_debug("Failed to raise RLIMIT_MEMLOCK: %s, continuing\n", strerror(errno));
	a->skel = nccl_bpf__open();
	err = a->skel ? 0 : -errno;
	if (!err) {
		bpf_map__set_max_entries(a->skel->maps.scope_ring, ring_size(ring_bytes));
		choose_programs(a->skel);
		err = nccl_bpf__load(a->skel);
	}
	if (!err)
		err = nccl_bpf__attach(a->skel); /* all but usdt, which has no target yet */
	if (err) {
		*status = explain_load(err);
		goto cleanup;
	}
	a->ring = ring_buffer__new(bpf_map__fd(a->skel->maps.scope_ring), on_record, a, NULL);
	if (!a->ring) {
		pr_err("Failed to map the ring buffer: %s\n", strerror(errno));
		*status = EXIT_FAILED;
		goto cleanup;
	}
	return a;
cleanup:
	attach__close(a);
	return NULL;
}

int attach__plugin(struct attach *a, const char *path, pid_t pid)
{
	struct bpf_link *link;

	if (a->nplugins == MAX_PLUGINS)
		return -ENOSPC;
	link = bpf_program__attach_usdt(a->skel->progs.scope_flush, pid, path, SCOPE_PROVIDER,
					SCOPE_PROBE_FLUSH, NULL);
	if (!link)
		return -errno;
	a->plugin[a->nplugins++] = link;
	return 0;
}

int attach__poll(struct attach *a, int timeout_ms)
{
	int polled = ring_buffer__poll(a->ring, timeout_ms), taken;

	if (polled == -EINTR)
		polled = 0;
	if (polled < 0)
		return polled;
	/* Producers wake us past a threshold only: below it, nobody says that there is something. */
	taken = ring_buffer__consume(a->ring);
	return taken < 0 ? taken : polled + taken;
}

uint64_t attach__stat(const struct attach *a, uint32_t which)
{
	int n = libbpf_num_possible_cpus(), i;
	uint64_t *v, sum = 0;

	if (n <= 0)
		return 0;
	v = calloc((size_t)n, sizeof(*v));
	if (v && !bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.scope_stats), &which, v))
		for (i = 0; i < n; i++)
			sum += v[i];
	free(v);
	return sum;
}

int attach__proc_stat(const struct attach *a, uint32_t tgid, struct scope_proc_stat *stat)
{
	return bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.scope_procs), &tgid, stat) ? -errno
											: 0;
}

void attach__proc_forget(struct attach *a, uint32_t tgid)
{
	bpf_map_delete_elem(bpf_map__fd(a->skel->maps.scope_procs), &tgid);
}

void attach__detach(struct attach *a)
{
	while (a->nplugins)
		bpf_link__destroy(a->plugin[--a->nplugins]);
	nccl_bpf__detach(a->skel);
}

void attach__close(struct attach *a)
{
	if (!a)
		return;
	if (a->skel)
		attach__detach(a);
	ring_buffer__free(a->ring);
	nccl_bpf__destroy(a->skel);
	free(a);
}
