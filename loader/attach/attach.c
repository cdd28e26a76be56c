// SPDX-License-Identifier: BSD-2-Clause
/* BPF programs: load, attach, poll; see attach.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "attach_priv.h"
#include "clock.h"
#include "cmd.h"
#include "human.h"
#include "log.h"
#include "realtime.h"
#include "rescue.h"
#include "scope.skel.h"
#include "scope_abi.h"

#define DRAIN_NS      (2 * NSEC_PER_SEC) /* to empty the ring */
#define DRAIN_WAIT_NS 20000		 /* for a record under way, where nothing else is there */
#define IN_FLIGHT_NS  20000000		 /* for a program under way on another CPU */

static int on_record(void *ctx, void *data, size_t size)
{
	struct attach *a = ctx;

	switches_tell(a); /* of before: what is younger than they are must not come first */
	a->fn(a->arg, data, size);
	return ++a->taken < ATTACH_POLL_MAX ? 0 : -EAGAIN;
}

/* EACCES to root is the verifier's word: no matter of privilege. */
static bool by_verifier(int err)
{
	return err == -EACCES && !geteuid();
}

/* What a failure to load means for the user. */
static int explain_load(int err, uint64_t ring_bytes)
{
	char ring[HUMAN_CELL];

	if (err == -ENOMEM) {
		pr_err("Failed to load the BPF programs: not enough memory for a ring of %s and "
		       "the tables; give the recorder's cgroup more, or ask for a smaller ring "
		       "with --ring\n",
		       human__bytes(ring, ring_bytes));
		return EXIT_FAILED;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		pr_err("This kernel has no BTF (/sys/kernel/btf/vmlinux: %s): a kernel with "
		       "CONFIG_DEBUG_INFO_BTF=y is needed; 'ncclscope doctor' tells more\n",
		       strerror(errno));
		return EXIT_KERNEL;
	}
	if (err == -EPERM || (err == -EACCES && !by_verifier(err))) {
		pr_err("Failed to load the BPF programs: %s; run as root, see 'ncclscope doctor'\n",
		       strerror(-err));
		return EXIT_PRIVILEGE;
	}
	pr_err("Failed to load the BPF programs: %s; 'ncclscope doctor' tells what this kernel "
	       "lacks\n",
	       strerror(-err));
	return EXIT_KERNEL;
}

int tracepoint_args(const struct btf *btf, const char *name)
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

int function_args(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);

	t = t ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? btf_vlen(t) : -1;
}

/*
 * Programs that depend on the kernel's age: by tracepoints, or by functions, which not every kernel lets us
 * have, where the kernel has no tracepoint while the memory of a dying thread is still there.
 */
static void choose_programs(struct scope_bpf *skel, const struct btf *btf, bool functions)
{
	bool pre_exec = btf && tracepoint_args(btf, "sched_prepare_exec") > 0;
	/* Its second argument, group_dead, came with the move to before exit_mm(), in 6.16. */
	bool early_exit = btf && tracepoint_args(btf, "sched_process_exit") > 1;

	bpf_program__set_autoload(skel->progs.scope_pre_exec, pre_exec);
	bpf_program__set_autoload(skel->progs.scope_pre_exec_f, !pre_exec && functions);
	bpf_program__set_autoload(skel->progs.scope_exit_f, !early_exit && functions);
	bpf_program__set_autoattach(skel->progs.scope_pre_exec_f, false);
	bpf_program__set_autoattach(skel->progs.scope_exit_f, false);
}

/* Programs of kernel context, without which there is none, and those that add to it. */
#define SCHED_PROGRAMS(skel)                                                                       \
	{(skel)->progs.scope_switch, &(skel)->links.scope_switch, true},                           \
		{(skel)->progs.scope_wakeup, &(skel)->links.scope_wakeup, true},                   \
		{(skel)->progs.scope_wake_new, &(skel)->links.scope_wake_new, true},               \
		{(skel)->progs.scope_waking, &(skel)->links.scope_waking, false},                  \
		{(skel)->progs.scope_fork, &(skel)->links.scope_fork, false},                      \
	{                                                                                          \
		(skel)->progs.scope_migrate, &(skel)->links.scope_migrate, false                   \
	}
#define IRQ_PROGRAMS(skel)                                                                         \
	{(skel)->progs.scope_irq_in, &(skel)->links.scope_irq_in, true},                           \
		{(skel)->progs.scope_irq_out, &(skel)->links.scope_irq_out, true},                 \
		{(skel)->progs.scope_soft_in, &(skel)->links.scope_soft_in, true},                 \
	{                                                                                          \
		(skel)->progs.scope_soft_out, &(skel)->links.scope_soft_out, true                  \
	}

void program_enable(struct bpf_program *prog, bool on)
{
	bpf_program__set_autoload(prog, on);
	bpf_program__set_autoattach(prog, false);
}

static void enable(const struct context_program *p, size_t n, bool on)
{
	for (; n; n--, p++)
		program_enable(p->prog, on);
}

void detach_group(const struct context_program *group, size_t n)
{
	for (; n; n--, group++) {
		bpf_link__destroy(*group->link);
		*group->link = NULL;
	}
}

bool attach_group(const struct context_program *group, size_t n, const char *loses)
{
	const struct context_program *p;

	for (p = group; p < group + n; p++) {
		if (!bpf_program__autoload(p->prog))
			continue;
		*p->link = bpf_program__attach(p->prog);
		if (*p->link || !p->needed)
			continue;
		pr_warn("Failed to attach '%s': %s, continuing without %s\n",
			bpf_program__name(p->prog), strerror(errno), loses);
		detach_group(group, n);
		return false;
	}
	return true;
}

static void choose_context(struct scope_bpf *skel, const struct attach_features *f)
{
	const struct context_program sched[] = {SCHED_PROGRAMS(skel)}, irq[] = {IRQ_PROGRAMS(skel)};
	int cpus = libbpf_num_possible_cpus();

	enable(sched, ARRAY_SIZE(sched), f->sched);
	program_enable(skel->progs.scope_asleep, f->sched);
	program_enable(skel->progs.scope_symbol, f->sched || f->net);
	program_enable(skel->progs.scope_found, true);
	enable(irq, ARRAY_SIZE(irq), f->sched && f->irq);
	skel->rodata->scope_sched = f->sched;
	bpf_map__set_max_entries(skel->maps.scope_cpus, cpus > 0 ? (__u32)cpus : 1);
	bpf_map__set_max_entries(skel->maps.scope_switches, cpus > 0 ? (__u32)cpus : 1);
}

static struct bpf_link *attach_iterator(struct bpf_program *prog, const char *loses)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);

	if (!link)
		pr_debug("Failed to attach '%s': %s, continuing without %s\n",
			 bpf_program__name(prog), strerror(errno), loses);
	return link;
}

static void attach_context(struct attach *a, struct attach_features *f)
{
	struct scope_bpf *skel = a->skel;
	const struct context_program sched[] = {SCHED_PROGRAMS(skel)}, irq[] = {IRQ_PROGRAMS(skel)};

	if (f->sched)
		f->sched = attach_group(sched, ARRAY_SIZE(sched), "the scheduler's context");
	if (!f->sched)
		return;
	a->asleep = attach_iterator(skel->progs.scope_asleep,
				    "what threads sleep in that do not wake up");
	if (f->irq)
		f->irq = attach_group(irq, ARRAY_SIZE(irq), "interrupts");
}

static bool has_member(const struct btf *btf, const char *type, const char *member)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT), i;
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);

	for (i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), member))
			return true;
	return false;
}

bool has_enumerator(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_ENUM), i;
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);

	for (i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), name))
			return true;
	return false;
}

#ifdef __x86_64__
/* Where each CPU has a variable of its own, behind the first of these; negative: it has none, or that is not told. */
static int64_t percpu_offset(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC), i;
	const struct btf_type *sec = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id), *var;

	for (i = 0; sec && i < btf_vlen(sec); i++) {
		var = btf__type_by_id(btf, btf_var_secinfos(sec)[i].type);
		if (var && !strcmp(btf__name_by_offset(btf, var->name_off), name))
			return btf_var_secinfos(sec)[i].offset;
	}
	return -1;
}

/* Where a member is in a type, in bytes, be it in a struct or union without a name; negative: it has none. */
static int64_t member_offset(const struct btf *btf, uint32_t type, const char *name, int depth)
{
	const struct btf_type *t = btf__type_by_id(btf, type);
	const struct btf_member *m = t && btf_is_composite(t) ? btf_members(t) : NULL;
	int64_t at;
	int i;

	for (i = 0; m && i < btf_vlen(t); i++) {
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), name))
			return btf_member_bit_offset(t, i) / 8;
		if (m[i].name_off || !depth)
			continue;
		at = member_offset(btf, m[i].type, name, depth - 1);
		if (at >= 0)
			return at + btf_member_bit_offset(t, i) / 8;
	}
	return -1;
}

/* Where each CPU has its preempt count: in a variable, or from 6.2 to 6.14 in one of several things. */
static int64_t preempt_count_offset(const struct btf *btf)
{
	int64_t at = percpu_offset(btf, "__preempt_count"), hot = percpu_offset(btf, "pcpu_hot");
	int id = btf__find_by_name_kind(btf, "pcpu_hot", BTF_KIND_STRUCT);

	if (at >= 0 || hot < 0 || id < 0)
		return at;
	at = member_offset(btf, (uint32_t)id, "preempt_count", 3);
	return at < 0 ? at : hot + at;
}

/* scope_preempt_at of the programs. */
static int64_t preempt_at(const struct btf *btf)
{
	int64_t queue, count;

	if (!btf || !has_member(btf, "sched_entity", "cfs_rq"))
		return 0;
	queue = percpu_offset(btf, "runqueues");
	count = preempt_count_offset(btf);
	return queue < 0 || count < 0 ? 0 : count - queue;
}
#endif

/* Whether the programs can tell a thread that wakes another from an interrupt on top of it. */
static bool preempt_known(const struct attach *a)
{
#ifdef __x86_64__
	return a->skel->rodata->scope_preempt_at != 0;
#else
	return has_member(a->btf, "task_struct", "thread_info");
#endif
}

/* What the programs find out for themselves, by the same questions to the kernel's types. */
static void ask_features(const struct attach *a, struct attach_features *f)
{
	const struct btf *btf = f->sched ? a->btf : NULL;

	f->quota = btf && has_member(btf, "sched_entity", "cfs_rq") &&
		   (has_member(btf, "cfs_rq", "throttled_clock_self_time") ||
		    has_member(btf, "cfs_rq", "throttled_clock_pelt_time") ||
		    has_member(btf, "cfs_rq", "throttled_clock_task_time"));
	f->why = btf && has_enumerator(btf, "bpf_func_id", "BPF_FUNC_task_pt_regs");
	f->woken = btf && a->skel->links.scope_waking && preempt_known(a);
	f->irq = f->sched && f->irq;
}

/* One attempt, with what is not everywhere or without. */
static int try_load(struct attach *a, uint64_t ring_bytes, const struct attach_features *f,
		    bool functions)
{
	int err;

	a->skel = scope_bpf__open();
	if (!a->skel)
		return -errno;
	bpf_map__set_max_entries(a->skel->maps.scope_ring, (uint32_t)ring_bytes);
	/* Of a small one: well before it is full. */
	if (ring_bytes / 4 < a->skel->rodata->scope_wake_bytes)
		a->skel->rodata->scope_wake_bytes = ring_bytes / 4;
	choose_programs(a->skel, a->btf, functions);
	probe_choose(a->skel, a->btf);
	choose_context(a->skel, f);
#ifdef __x86_64__
	a->skel->rodata->scope_preempt_at = preempt_at(a->btf);
#endif
	net_choose(a->skel, f, a->btf, functions);
	err = scope_bpf__load(a->skel);
	if (!err)
		return 0;
	scope_bpf__destroy(a->skel);
	a->skel = NULL;
	return err;
}

/* A lack of memory is no fault of a program, and what just fits without it would soon be killed. */
static bool less_may_do(int err)
{
	return err && err != -ENOMEM;
}

static int try_both(struct attach *a, uint64_t ring_bytes, const struct attach_features *f)
{
	int err = try_load(a, ring_bytes, f, true);

	if (!less_may_do(err))
		return err;
	pr_debug("Failed to load with programs at functions of the kernel: %s, trying without\n",
		 strerror(-err));
	return try_load(a, ring_bytes, f, false);
}

int attach__try(struct attach_features wanted)
{
	struct attach a = {.btf = btf__load_vmlinux_btf()};
	int err;

	net_ask(&wanted, a.btf);
	err = try_both(&a, ATTACH_RING_MIN, &wanted);
	scope_bpf__destroy(a.skel);
	btf__free(a.btf);
	return err;
}

static const char *why_not_loaded(int err)
{
	return by_verifier(err) ? "the kernel's verifier refuses them (-v shows why)"
				: strerror(-err);
}

/* All that is wanted; without connections; without the scheduler as well. Recording must go on. */
static int load_programs(struct attach *a, uint64_t ring_bytes, struct attach_features *f)
{
	int err = try_both(a, ring_bytes, f), first = err;
	bool net = f->net, sched = f->sched;

	if (less_may_do(err) && net) {
		f->net = f->net_calls = f->no_data = f->drops = f->drop_reasons = false;
		err = try_both(a, ring_bytes, f);
	}
	if (less_may_do(err) && sched) {
		f->sched = f->irq = false;
		err = try_both(a, ring_bytes, f);
	}
	if (err)
		return err;
	if (net && !f->net)
		pr_warn("Failed to load the programs for connections: %s, continuing without what "
			"the network did; 'ncclscope doctor' tells more\n",
			why_not_loaded(first));
	if (sched && !f->sched)
		pr_warn("Failed to load the programs for kernel context: %s, continuing without "
			"what the scheduler did; 'ncclscope doctor' tells more\n",
			why_not_loaded(first));
	return 0;
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
static int attach_programs(struct attach *a, struct attach_features *f)
{
	struct scope_bpf *skel = a->skel;

	attach_function(skel->progs.scope_pre_exec_f, &skel->links.scope_pre_exec_f, "execve");
	attach_function(skel->progs.scope_exit_f, &skel->links.scope_exit_f, "_exit");
	a->found = attach_iterator(skel->progs.scope_found, "processes that hand in nothing");
	attach_context(a, f);
	net_attach(a, f);
	return scope_bpf__attach(skel);
}

int iterate(struct bpf_link *link)
{
	char buf[4096];
	int fd, len = 0;
	ssize_t n;

	if (!link)
		return -EOPNOTSUPP;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		return -errno;
	for (;;) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		len += (int)n;
	}
	if (n < 0)
		len = -errno;
	close(fd);
	return len;
}

static bool ask(struct bpf_link *link, const char *what)
{
	int err = link ? iterate(link) : 0;

	if (err < 0)
		pr_debug("Failed to ask %s: %s\n", what, strerror(-err));
	return err >= 0;
}

bool attach__ask_found(struct attach *a)
{
	uint32_t missed = a->skel->bss->scope_found_missed;

	return ask(a->found, "which processes hand in nothing") &&
	       a->skel->bss->scope_found_missed == missed;
}

void attach__ask_asleep(struct attach *a)
{
	ask(a->asleep, "what threads sleep in");
}

int attach__symbol(struct attach *a, uint64_t address, char *name, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int fd = bpf_program__fd(a->skel->progs.scope_symbol), err;
	const char *text = a->skel->bss->scope_symbol_name;
	size_t len;

	name[0] = '\0';
	if (fd < 0)
		return -EOPNOTSUPP;
	a->skel->bss->scope_symbol_at = address;
	err = bpf_prog_test_run_opts(fd, &run);
	if (err)
		return err;
	if (!run.retval) /* the kernel has no such helper */
		return -EOPNOTSUPP;
	len = strcspn(text, " "); /* behind it, the module */
	if (!strncmp(text, "0x", 2) || len >= size)
		return -ENOENT;
	memcpy(name, text, len);
	name[len] = '\0';
	return 0;
}

void *array_map(const struct bpf_map *map, int prot, size_t *size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at;

	*size = ((size_t)bpf_map__max_entries(map) * bpf_map__value_size(map) + page - 1) / page *
		page;
	at = mmap(NULL, *size, prot, MAP_SHARED, bpf_map__fd(map), 0);
	return at == MAP_FAILED ? NULL : at;
}

/* The array of processes that BPF looks at, a byte each. Without it, those are known from their first buffer on. */
static void map_pids(struct attach *a)
{
	a->pids = array_map(a->skel->maps.scope_pids, PROT_READ | PROT_WRITE, &a->npids);
}

static int map_pos(struct attach *a)
{
	void *at = mmap(NULL, 2 * (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
			bpf_map__fd(a->skel->maps.scope_ring), 0);

	if (at == MAP_FAILED)
		return -errno;
	a->pos = at;
	return 0;
}

struct attach *attach__open(uint64_t ring_bytes, struct attach_features *features,
			    attach_record_fn fn, void *arg, int *status)
{
	struct attach *a = calloc(1, sizeof(*a));
	int ncpus = libbpf_num_possible_cpus(), err;
	bool net = features->net;

	if (a && ncpus > 0)
		a->irqs = calloc((size_t)ncpus * 3, sizeof(*a->irqs));
	if (!a || !a->irqs) {
		pr_err("Failed to allocate: %s\n", strerror(ENOMEM));
		*status = EXIT_FAILED;
		goto cleanup;
	}
	a->ncpus = ncpus;
	a->fn = fn;
	a->arg = arg;
	a->btf = btf__load_vmlinux_btf();
	if (realtime_ring_sleeps_here(a->btf)) {
		pr_err("Not recording: " REALTIME_RING_SLEEPS ", and writing to it at a context "
		       "switch could stop the machine; boot Linux 6.12 or later\n");
		*status = EXIT_KERNEL;
		goto cleanup;
	}
	net_ask(features, a->btf);
	err = load_programs(a, ring_bytes, features);
	if (!err)
		err = attach_programs(a, features);
	if (err) {
		*status = explain_load(err, ring_bytes);
		goto cleanup;
	}
	if (net && !a->btf)
		pr_warn("Failed to read the kernel's BTF, which is there, continuing without "
			"connections\n");
	ask_features(a, features);
	btf__free(a->btf);
	a->btf = NULL;
	map_pids(a);
	a->ring = ring_buffer__new(bpf_map__fd(a->skel->maps.scope_ring), on_record, a, NULL);
	if (!a->ring || map_pos(a)) {
		pr_err("Failed to map the ring buffer: %s\n", strerror(errno));
		*status = EXIT_FAILED;
		goto cleanup;
	}
	err = switches_open(a);
	if (err) {
		pr_err("Failed to map the context switches that BPF gathers: %s\n", strerror(-err));
		*status = EXIT_FAILED;
		goto cleanup;
	}
	return a;
cleanup:
	attach__close(a);
	return NULL;
}

bool attach__watch(struct attach *a, uint32_t tgid, bool on)
{
	bool was = false;

	if (a->pids && tgid < a->npids) {
		was = a->pids[tgid] != SCOPE_PID_OFF;
		a->pids[tgid] = on ? SCOPE_PID_ON : SCOPE_PID_OFF;
	}
	return was;
}

void attach__armed(struct attach *a, uint32_t tgid)
{
	if (a->pids && tgid < a->npids)
		__sync_bool_compare_and_swap(&a->pids[tgid], SCOPE_PID_ON, SCOPE_PID_ARMED);
}

int attach__plugin(struct attach *a, const char *path, pid_t pid)
{
	int at = 0, err;

	while (at < ATTACH_MAX_PLUGINS && a->plugin[at].on)
		at++;
	if (at == ATTACH_MAX_PLUGINS)
		return -ENOSPC;
	err = probe_attach(a, &a->plugin[at], path, pid);
	return err ? err : at;
}

void attach__plugin_off(struct attach *a, int link)
{
	probe_detach(&a->plugin[link]);
}

int attach__poll(struct attach *a, int timeout_ms)
{
	int err;

	a->taken = 0;
	rescue__here(monotonic_ns());
	err = ring_buffer__poll(a->ring, timeout_ms);
	/* Producers wake us past a threshold only: below it, nobody says that there is something. */
	if (err >= 0) {
		switches_tell(a); /* of before, if a record that was being written was in the way */
		switches_look(a);
		err = ring_buffer__consume(a->ring);
	}
	if (err >= 0)
		switches_tell(a);
	if (err < 0 && err != -EINTR && err != -EAGAIN)
		return err;
	return a->taken;
}

static bool irqs_lookup(const struct attach *a, struct scope_irqs *all)
{
	uint32_t zero = 0;

	return !bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.scope_irqs), &zero, all);
}

/*
 * Interrupts that BPF has not told of yet, kept in irqs: as many as there were first, of what there was then, unless that had become
 * another record afterwards.
 */
static void irqs_look(struct attach *a)
{
	struct scope_irqs *then = a->irqs, *was = then + a->ncpus, *now = was + a->ncpus;
	uint64_t fill;
	int i;

	a->nirqs = 0;
	if (!irqs_lookup(a, was) || !irqs_lookup(a, then) || !irqs_lookup(a, now))
		return;
	for (i = 0; i < a->ncpus; i++) {
		fill = was[i].rec.fill;
		if (!SCOPE_IRQS_N(fill) || SCOPE_IRQS_N(fill) > SCOPE_IRQS ||
		    SCOPE_IRQS_NR(fill) != SCOPE_IRQS_NR(now[i].rec.fill))
			continue;
		then[i].rec.fill = fill | SCOPE_IRQS_UNTOLD;
		then[i].rec.h.size = SCOPE_IRQS_SIZE(SCOPE_IRQS_N(fill));
		then[a->nirqs++] = then[i];
	}
}

static void irqs_tell(const struct attach *a)
{
	int i;

	for (i = 0; i < a->nirqs; i++)
		a->fn(a->arg, &a->irqs[i].rec, a->irqs[i].rec.h.size);
}

void attach__drain(struct attach *a)
{
	uint64_t begin, end;
	bool done;
	int n;

	/* First: what is not there then has been told before, and the ring holds it. */
	irqs_look(a);
	begin = monotonic_ns();
	end = begin + DRAIN_NS;
	/*
	 * What lies behind a record that BPF has begun and not ended yet is not to be had: for microseconds, or for as long as its CPU is
	 * taken away from a virtual machine. What comes from now on may wait. With the probes off nothing new comes: then all of it,
	 * however long that takes.
	 */
	for (;;) {
		n = attach__poll(a, 0);
		done = attach__known_ns(a) >= begin || monotonic_ns() >= end;
		if (n < 0 || (done && !(n && a->detached)))
			break;
		if (!n)
			sleep_ns(DRAIN_WAIT_NS);
	}
	if (n >= 0 && attach__known_ns(a) >= begin)
		irqs_tell(a);
}

/* The consumer's position begins the first page, the producer's the second. */
struct ring_pos attach__ring(const struct attach *a)
{
	struct ring_pos pos;

	pos.consumed = a->pos[0]; /* first: the other one is not behind it */
	pos.produced = a->pos[(size_t)sysconf(_SC_PAGESIZE) / sizeof(*a->pos)];
	return pos;
}

uint64_t attach__known_ns(const struct attach *a)
{
	return a->switches.known_ns;
}

int attach__skipped(const struct attach *a, uint64_t *skipped)
{
	struct bpf_prog_info info;
	struct bpf_program *prog;
	__u32 size;

	*skipped = 0;
	bpf_object__for_each_program(prog, a->skel->obj)
	{
		memset(&info, 0, sizeof(info));
		size = sizeof(info);
		if (bpf_program__fd(prog) < 0)
			continue;
		if (bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			return -errno;
		if (size < offsetof(struct bpf_prog_info, recursion_misses) +
				   sizeof(info.recursion_misses))
			return -EOPNOTSUPP;
		*skipped += info.recursion_misses;
	}
	return 0;
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

bool attach__proc_next(const struct attach *a, uint32_t *tgid, struct scope_proc_stat *stat)
{
	int fd = bpf_map__fd(a->skel->maps.scope_procs);

	while (!bpf_map_get_next_key(fd, *tgid ? tgid : NULL, tgid))
		if (!bpf_map_lookup_elem(fd, tgid, stat))
			return true;
	return false;
}

int attach__task(const struct attach *a, uint32_t tid, struct scope_task *task)
{
	uint32_t slot = tid % SCOPE_TASK_SLOTS;

	if (!bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.scope_slots), &slot, task) &&
	    task->tid == tid)
		return 0;
	return bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.scope_tasks), &tid, task) ? -errno : 0;
}

void attach__proc_forget(struct attach *a, uint32_t tgid)
{
	bpf_map_delete_elem(bpf_map__fd(a->skel->maps.scope_procs), &tgid);
}

/*
 * BPF counts a record before it tells it, and a virtual machine's CPU may be taken away in between: what is under way on
 * another CPU comes to its end. Where CPUs run without ticks the kernel does not wait for that, and a while has to do.
 */
static void wait_for_programs(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		sleep_ns(IN_FLIGHT_NS);
}

void attach__detach(struct attach *a)
{
	int i;

	if (a->detached)
		return;
	for (i = 0; i < ATTACH_MAX_PLUGINS; i++)
		attach__plugin_off(a, i);
	scope_bpf__detach(a->skel);
	wait_for_programs();
	a->detached = true;
}

void attach__close(struct attach *a)
{
	if (!a)
		return;
	if (a->skel)
		attach__detach(a);
	ring_buffer__free(a->ring);
	if (a->pos)
		munmap((void *)a->pos, 2 * (size_t)sysconf(_SC_PAGESIZE));
	free(a->irqs);
	switches_close(a);
	if (a->pids)
		munmap(a->pids, a->npids);
	net_close(&a->net);
	bpf_link__destroy(a->asleep);
	bpf_link__destroy(a->found);
	btf__free(a->btf);
	scope_bpf__destroy(a->skel);
	free(a);
}
