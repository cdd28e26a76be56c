// SPDX-License-Identifier: BSD-2-Clause
/* BPF programs: load, attach, poll; see attach.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "attach.h"
#include "cmd.h"
#include "elf_file.h"
#include "log.h"
#include "nccl.skel.h"
#include "scope_abi.h"
#include "scope_probes.h"

#define MAX_PLUGINS 64
#define POLL_MAX    1024 /* records taken at once: libbpf would go on for as long as jobs keep up */
#define RING_MIN    (256 * 1024)

/* Two arguments of a function, as a USDT note names them. */
#if defined(__x86_64__)
#define FLUSH_ARGS "8@%rdi 8@%rsi"
#else
#define FLUSH_ARGS "8@x0 8@x1"
#endif

struct attach {
	struct nccl_bpf *skel;
	struct ring_buffer *ring;
	struct bpf_link *plugin[MAX_PLUGINS];
	int nplugins;
	attach_record_fn fn;
	void *arg;
	int taken; /* records in this poll */
};

static int on_record(void *ctx, void *data, size_t size)
{
	struct attach *a = ctx;

	a->fn(a->arg, data, size);
	return ++a->taken < POLL_MAX ? 0 : -EAGAIN;
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
	/* EACCES to root is the verifier's word: no matter of privilege. */
	if (err == -EPERM || (err == -EACCES && geteuid())) {
		pr_err("Failed to load the BPF programs: %s; run as root, see 'ncclscope doctor'\n",
		       strerror(-err));
		return EXIT_PRIVILEGE;
	}
	pr_err("Failed to load the BPF programs: %s; 'ncclscope doctor' tells what this kernel "
	       "lacks\n",
	       strerror(-err));
	return EXIT_KERNEL;
}

/* How many arguments a tracepoint has on this kernel, -1 if it has no such tracepoint. */
static int tracepoint_args(const struct btf *btf, const char *name)
{
	const struct btf_type *t;
	char type[64];
	int id;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
	t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id); /* typedef -> pointer -> prototype */
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : -1; /* the first is not the caller's */
}

/*
 * Programs that depend on the kernel's age: by tracepoints, or by functions where the kernel has no tracepoint
 * while the memory of a dying thread is still there. Returns whether it chose any of the latter, which
 * not every kernel lets us have.
 */
static bool choose_programs(struct nccl_bpf *skel, bool functions)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool pre_exec = btf && tracepoint_args(btf, "sched_prepare_exec") > 0;
	/* Its second argument, group_dead, came with the move to before exit_mm(), in 6.16. */
	bool early_exit = btf && tracepoint_args(btf, "sched_process_exit") > 1;

	btf__free(btf);
	bpf_program__set_autoload(skel->progs.scope_pre_exec, pre_exec);
	bpf_program__set_autoload(skel->progs.scope_pre_exec_f, !pre_exec && functions);
	bpf_program__set_autoload(skel->progs.scope_exit_f, !early_exit && functions);
	bpf_program__set_autoattach(skel->progs.scope_pre_exec_f, false);
	bpf_program__set_autoattach(skel->progs.scope_exit_f, false);
	return functions && !(pre_exec && early_exit);
}

static int load_programs(struct attach *a, uint64_t ring_bytes, bool functions)
{
	int err;

	a->skel = nccl_bpf__open();
	if (!a->skel)
		return -errno;
	bpf_map__set_max_entries(a->skel->maps.scope_ring, ring_size(ring_bytes));
	functions = choose_programs(a->skel, functions);
	err = nccl_bpf__load(a->skel);
	if (!err || !functions)
		return err;
	pr_debug("Failed to load with programs at functions of the kernel: %s, trying without\n",
		 strerror(-err));
	nccl_bpf__destroy(a->skel);
	return load_programs(a, ring_bytes, false);
}

static void attach_function(struct bpf_program *prog, struct bpf_link **link, const char *loses)
{
	if (!bpf_program__autoload(prog))
		return;
	*link = bpf_program__attach(prog);
	if (!*link)
		pr_debug("Failed to attach to the kernel's function of '%s': %s, continuing "
			 "without: what a thread has not handed in is lost when it calls %s\n",
			 bpf_program__name(prog), strerror(errno), loses);
}

/* All but the plugin's probe, which has no target yet. */
static int attach_programs(struct nccl_bpf *skel)
{
	attach_function(skel->progs.scope_pre_exec_f, &skel->links.scope_pre_exec_f, "execve");
	attach_function(skel->progs.scope_exit_f, &skel->links.scope_exit_f, "_exit");
	return nccl_bpf__attach(skel);
}

struct attach *attach__open(uint64_t ring_bytes, attach_record_fn fn, void *arg, int *status)
{
	struct attach *a = calloc(1, sizeof(*a));
	int err;

	if (!a) {
		pr_err("Failed to allocate: %s\n", strerror(ENOMEM));
		*status = EXIT_FAILED;
		return NULL;
	}
	a->fn = fn;
	a->arg = arg;
	err = load_programs(a, ring_bytes, true);
	if (!err)
		err = attach_programs(a->skel);
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

/*
 * The flush probe by a plain uprobe, see scope_flush_up. That reads the registers in which a function gets
 * its arguments, so the note must name just those.
 */
static struct bpf_link *attach_site(struct attach *a, const char *path, pid_t pid)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts);
	struct elf_usdt_site site;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	err = elf__usdt_site(fd, SCOPE_PROVIDER, SCOPE_PROBE_FLUSH, &site);
	close(fd);
	if (!err && (strcmp(site.args, FLUSH_ARGS) || !site.semaphore_offset))
		err = -EOPNOTSUPP;
	if (err) {
		errno = -err;
		return NULL;
	}
	opts.ref_ctr_offset = site.semaphore_offset;
	return bpf_program__attach_uprobe_opts(a->skel->progs.scope_flush_up, pid, path,
					       site.offset, &opts);
}

int attach__plugin(struct attach *a, const char *path, pid_t pid)
{
	struct bpf_link *link;

	if (a->nplugins == MAX_PLUGINS)
		return -ENOSPC;
	link = bpf_program__attach_usdt(a->skel->progs.scope_flush, pid, path, SCOPE_PROVIDER,
					SCOPE_PROBE_FLUSH, NULL);
	if (!link && errno == EOPNOTSUPP)
		link = attach_site(a, path, pid);
	if (!link)
		return -errno;
	a->plugin[a->nplugins++] = link;
	return 0;
}

int attach__poll(struct attach *a, int timeout_ms)
{
	int err;

	a->taken = 0;
	err = ring_buffer__poll(a->ring, timeout_ms);
	/* Producers wake us past a threshold only: below it, nobody says that there is something. */
	if (err >= 0)
		err = ring_buffer__consume(a->ring);
	if (err < 0 && err != -EINTR && err != -EAGAIN)
		return err;
	return a->taken;
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
