// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tries each BPF feature with a program of bpf/probe.bpf.c: load, attach, fire, look. Programs are loaded
 * together, as each load reads all types of the kernel, some 5 MiB; those that a kernel refuses, alone in the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include "attach.h"
#include "clock.h"
#include "feat_priv.h"
#include "fexit.h"
#include "node.h"
#include "realtime.h"
#include "scope_probe_io.h"
#include "scope_probes.h"
#include "syscalls.h"
#include "uprobe_multi.h"
#include "probe.skel.h"

#define SELF		   "/proc/self/exe"
#define VMLINUX_BTF	   "/sys/kernel/btf/vmlinux"
#define RING_BYTES_DEFAULT (64UL << 20)
#define CPUS_MAX	   8192
#define DISK_BLOCK	   4096

/* The kernel counts the programs that are attached to probe ncclscope:doctor in here. */
unsigned short ncclscope_doctor_semaphore __attribute__((section(".probes"), visibility("hidden")));

/* What the programs read out of this process, and out of its children, which change it first. */
static volatile uint64_t user_word;
static unsigned char user_page[SCOPE_PROBE_COPY_BYTES];

struct trial;

/* One try in progress. */
struct run {
	struct feat_ctx *ctx;
	const struct trial *trial;
	struct probe_bpf *skel; /* of all in its batch */
	struct bpf_program *prog;
	struct bpf_link *link;
	int link_fd; /* of a link that libbpf does not know, or -1 */
	uint64_t nonce;
	char comm[16];
	pid_t child;
	struct ring_buffer *ring;
	unsigned int ring_recs;
	struct scope_probe_rec ring_rec; /* the last one */
	unsigned short semaphore_before, semaphore_attached;
	struct node_cgroup cgroup;
	struct node_quota quota; /* before the program fired */
	const char *excuse;	 /* why what was attached need not fire */
	const char *stage;
};

/* OWN_OBJECT: it is refused by kernels, or by those who harden them, that take all others; SLEEPS: at the return of a function that does. */
enum { NOTHING = 0, MAP_RING = 1, MAP_USDT = 2, OWN_OBJECT = 4, SLEEPS = 8 };

struct trial {
	enum feat_id id;
	const char *prog;
	int (*attach)(struct run *run); /* NULL: as its section says */
	int (*fire)(struct run *run);
	/* Looks at what the program left; NULL: it must have fired, that is all. */
	void (*judge)(struct run *run);
	unsigned int needs; /* maps, or an object of its own */
};

static struct scope_probe_io *io(struct run *run)
{
	return &run->skel->bss->scope_io;
}

/* ---- Making programs fire -------------------------------------------------------------------- */

/* The function that uprobes are attached to: must exist once and take its argument by register. */
__attribute__((noinline, used)) static void uprobe_target(uint64_t nonce)
{
	__asm__ volatile("" : : "r"(nonce) : "memory");
}

__attribute__((noinline)) static void usdt_site(uint64_t nonce, const void *page)
{
	STAP_PROBE2(ncclscope, doctor, nonce, page);
}

static void exec_something(void)
{
	static const char *const paths[] = {"/bin/true", "/usr/bin/true", "/bin/sh"};
	char *const argv[] = {"true", NULL};
	int fd = open("/dev/null", O_RDWR);
	unsigned int i;

	/* The shell, if it comes to that, ends at the end of its input. */
	if (fd >= 0)
		dup2(fd, 0);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		execv(paths[i], argv);
	_exit(127);
}

/* As the system calls have it; the C library's type ends at 1024 CPUs. */
#define WORD_BITS (8 * sizeof(unsigned long))
struct cpus {
	unsigned long word[CPUS_MAX / WORD_BITS];
};

static int cpus_allowed(struct cpus *cpus)
{
	int n = 0;
	size_t i;

	memset(cpus, 0, sizeof(*cpus));
	if (syscall(SYS_sched_getaffinity, 0, sizeof(*cpus), cpus) < 0)
		return -errno;
	for (i = 0; i < CPUS_MAX / WORD_BITS; i++)
		n += __builtin_popcountl(cpus->word[i]);
	return n;
}

/* Runs on one CPU that it may and then on another: it is moved at least once. */
static void change_cpus(void)
{
	struct cpus allowed, one;
	unsigned long bit;
	size_t cpu, n = 0;

	if (cpus_allowed(&allowed) < 0)
		return;
	for (cpu = 0; cpu < CPUS_MAX && n < 2; cpu++) {
		bit = 1UL << cpu % WORD_BITS;
		if (!(allowed.word[cpu / WORD_BITS] & bit))
			continue;
		memset(&one, 0, sizeof(one));
		one.word[cpu / WORD_BITS] = bit;
		syscall(SYS_sched_setaffinity, 0, sizeof(one), &one);
		n++;
	}
}

/* A packet by way of the loopback device is handled in a soft interrupt. */
static void send_to_self(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&addr, len) &&
	    !getsockname(fd, (struct sockaddr *)&addr, &len))
		sendto(fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)&addr, len);
	if (fd >= 0)
		close(fd);
}

/* Past the page cache, so that a disk has to answer, where there is one below our file. */
static void read_disk(void)
{
	int fd = open(SELF, O_RDONLY | O_DIRECT | O_CLOEXEC);
	void *block = NULL;

	if (fd >= 0 && !posix_memalign(&block, DISK_BLOCK, DISK_BLOCK) &&
	    pread(fd, block, DISK_BLOCK, 0) < 0)
		errno = 0; /* no matter: other interrupts count as well */
	free(block);
	if (fd >= 0)
		close(fd);
}

/* By number: the C library's nanosleep() is this or that system call. */
static void sleep_in_call(long ns)
{
	struct timespec nap = {.tv_nsec = ns};

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
}

static void child_act(struct run *run)
{
	switch (run->trial->id) {
	case FEAT_SCHED_MIGRATE:
		change_cpus();
		break;
	case FEAT_IRQ_ENTRY:
	case FEAT_IRQ_EXIT:
		read_disk();
		break;
	case FEAT_SOFTIRQ_ENTRY:
	case FEAT_SOFTIRQ_EXIT:
		send_to_self();
		break;
	case FEAT_NET_SEND ... FEAT_NET_REASON:
		if (!run->ctx->mute)
			feat_talk();
		break;
	case FEAT_SYSCALL:
		sleep_in_call(1000000); /* long enough to sleep in it for sure */
		break;
	default:
		break;
	}
}

/* Sleeps (a switch), forks, waits, and is killed by a signal: an event of each kind we probe. */
static void child_main(struct run *run)
{
	sigset_t none;
	pid_t pid;

	prctl(PR_SET_NAME, run->comm);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(1); /* whatever hangs, it does not hang doctor */
	user_word = run->nonce + 1;
	child_act(run);
	sleep_in_call(1000);
	pid = fork();
	if (!pid) {
		if (run->trial->id == FEAT_SCHED_EXEC)
			exec_something();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	raise(SIGTERM);
	_exit(1);
}

static int fire_child(struct run *run)
{
	run->child = fork();
	if (run->child < 0)
		return -errno;
	if (!run->child)
		child_main(run);
	while (waitpid(run->child, NULL, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* What no act of ours brings about for sure. */
static int fire_chance(struct run *run)
{
	run->excuse = "none came meanwhile";
	return fire_child(run);
}

/* In a network namespace of its own the loopback device may be down, or packets be dropped: waiting for them once is enough. */
static int fire_talk(struct run *run)
{
	if (!run->ctx->mute)
		run->ctx->mute = feat_talk() != 0;
	if (run->ctx->mute)
		run->excuse = "no connection can be made to 127.0.0.1";
	return fire_child(run);
}

static int fire_migrate(struct run *run)
{
	struct cpus cpus;

	if (cpus_allowed(&cpus) < 2)
		run->excuse = "there is no second CPU to move to";
	return fire_child(run);
}

static int fire_ring(struct run *run)
{
	int err;

	run->ctx->bpf_before_ns = monotonic_ns();
	err = fire_child(run);
	run->ctx->bpf_after_ns = monotonic_ns();
	return err;
}

/* The figures that the kernel shows of our own task group, for comparison. */
static int fire_quota(struct run *run)
{
	if (node_cgroup__find(&run->cgroup, "", 0) || !run->cgroup.own ||
	    node_cgroup__read(&run->cgroup, &run->quota))
		node_cgroup__close(&run->cgroup);
	return fire_child(run);
}

static int fire_uprobe(struct run *run)
{
	/* By a pointer that the compiler cannot see through, or it may call a clone of its own. */
	void (*volatile target)(uint64_t) = uprobe_target;

	target(run->nonce);
	return 0;
}

static unsigned short read_semaphore(void)
{
	/* The kernel changes it behind the compiler's back. */
	return *(volatile unsigned short *)&ncclscope_doctor_semaphore;
}

static int fire_usdt(struct run *run)
{
	run->semaphore_attached = read_semaphore();
	usdt_site(run->nonce, user_page);
	return 0;
}

static int fire_uprobe_multi(struct run *run)
{
	run->semaphore_attached = read_semaphore();
	return fire_uprobe(run);
}

static int fire_iter(struct run *run)
{
	int fd, err = 0;
	char buf[64];
	ssize_t n;

	fd = bpf_iter_create(bpf_link__fd(run->link));
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf, sizeof(buf));
	} while (n > 0);
	if (n < 0)
		err = -errno;
	close(fd);
	return err;
}

static int fire_by_number(struct run *run)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	return bpf_prog_test_run_opts(bpf_program__fd(run->prog), &opts);
}

/* ---- Attaching what libbpf does not attach by itself ----------------------------------------- */

/* Offset in our own file of a function of ours. */
static int self_offset(const void *func, uint64_t *offset)
{
	uintptr_t addr = (uintptr_t)func;
	uint64_t start, end, off;
	char line[512];
	FILE *file;
	int err = -ENOENT;

	file = fopen("/proc/self/maps", "re");
	if (!file)
		return -errno;
	while (err && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &off) != 3)
			continue;
		if (addr >= start && addr < end) {
			*offset = addr - start + off;
			err = 0;
		}
	}
	fclose(file);
	return err;
}

/*
 * Our own site and its semaphore, which is as good there as at any other. Whoever attaches there names both: the
 * kernel refuses a second one that differs, also while the first is still on its way out.
 */
static int self_site(uint64_t *offset, uint64_t *semaphore)
{
	int err = self_offset(uprobe_target, offset);

	return err ? err : self_offset(&ncclscope_doctor_semaphore, semaphore);
}

static int attach_uprobe(struct run *run)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts);
	uint64_t offset = 0, semaphore = 0;
	int err;

	err = self_site(&offset, &semaphore);
	if (err)
		return err;
	opts.ref_ctr_offset = semaphore;
	/* pid -1, every process: what record asks for, and what takes the privilege. */
	run->link = bpf_program__attach_uprobe_opts(run->prog, -1, SELF, offset, &opts);
	return run->link ? 0 : -errno;
}

/* What is only run by its number has nothing to be attached to. */
static int attach_nowhere(struct run *run)
{
	(void)run;
	return 0;
}

/*
 * Where another doctor runs at the same time, or has just ended, its program counts in here as well, for a
 * moment.
 */
static unsigned short semaphore_at_rest(void)
{
	int i;

	for (i = 0; i < 3000 && read_semaphore(); i++)
		sleep_ns(1000000);
	return read_semaphore();
}

static int attach_uprobe_multi(struct run *run)
{
	uint64_t offset = 0, semaphore = 0;
	int err;

	err = self_site(&offset, &semaphore);
	if (err)
		return err;
	run->semaphore_before = semaphore_at_rest();
	run->link_fd = uprobe_multi__link(bpf_program__fd(run->prog), SELF, offset, semaphore, -1);
	return run->link_fd < 0 ? run->link_fd : 0;
}

static int attach_either(struct run *run);

/* Programs that say nothing of the way that they are attached. */
static bool takes_multi(const struct feat_ctx *ctx, const struct trial *trial)
{
	return trial->id == FEAT_UPROBE_MULTI ||
	       (trial->attach == attach_either && feat_works_already(ctx, FEAT_UPROBE_MULTI));
}

static int attach_either(struct run *run)
{
	return takes_multi(run->ctx, run->trial) ? attach_uprobe_multi(run) : attach_uprobe(run);
}

static int attach_usdt(struct run *run)
{
	run->semaphore_before = semaphore_at_rest();
	run->link = bpf_program__attach_usdt(run->prog, -1, SELF, SCOPE_PROVIDER, "doctor", NULL);
	/* Before 5.15 libbpf can for one process only; record takes a uprobe then, which is tried too. */
	if (!run->link && errno == EOPNOTSUPP)
		run->link = bpf_program__attach_usdt(run->prog, getpid(), SELF, SCOPE_PROVIDER,
						     "doctor", NULL);
	return run->link ? 0 : -errno;
}

/* ---- Looking at what they left --------------------------------------------------------------- */

static void judge_word(struct run *run, enum feat_id id, uint64_t want)
{
	if (io(run)->err)
		feat_fails(run->ctx, id, (int)io(run)->err, "read of user memory");
	else if (io(run)->value != want)
		feat_fails(run->ctx, id, 0, "read of user memory gave a wrong value");
	else
		feat_works(run->ctx, id, "read the memory of the probing process");
}

static void judge_exit(struct run *run)
{
	feat_works(run->ctx, FEAT_SCHED_EXIT, "attached, fired at the exit of a process");
	judge_word(run, FEAT_EXIT_MEMORY, run->nonce + 1);
}

static void judge_signal(struct run *run)
{
	feat_works(run->ctx, FEAT_SIGNAL_DELIVER, "attached, fired at a fatal SIGTERM");
	judge_word(run, FEAT_SIGNAL_MEMORY, run->nonce + 1);
}

static void judge_parent_word(struct run *run)
{
	judge_word(run, run->trial->id, run->nonce);
}

static void judge_pid(struct run *run)
{
	enum feat_id id = run->trial->id;

	if (io(run)->err)
		feat_fails(run->ctx, id, (int)io(run)->err, "reading the pid");
	else if (io(run)->value != (uint64_t)run->child)
		feat_fails(run->ctx, id, 0, "pid %" PRIu64 " where %d was due",
			   (uint64_t)io(run)->value, run->child);
	else
		feat_works(run->ctx, id, "pid of the process as its namespace has it");
}

static void judge_uprobe(struct run *run)
{
	char type[16];

	if (read_line("/sys/bus/event_source/devices/uprobe/type", type, sizeof(type)))
		feat_works(run->ctx, FEAT_UPROBE, "attached, fired (by tracefs)");
	else
		feat_works(run->ctx, FEAT_UPROBE, "attached, fired (perf PMU, type %s)", type);
}

static void judge_uprobe_multi(struct run *run)
{
	if (run->semaphore_attached > run->semaphore_before)
		feat_works(run->ctx, FEAT_UPROBE_MULTI, "attached, fired, semaphore %u-%u",
			   run->semaphore_before, run->semaphore_attached);
	else
		feat_fails(run->ctx, FEAT_UPROBE_MULTI, 0, "fired, but the semaphore stayed at %u",
			   run->semaphore_attached);
}

static void judge_syscall(struct run *run)
{
	int nr = (int)io(run)->value;
	const char *name = syscall_name(nr);

	if (nr == SYS_clock_nanosleep)
		feat_works(run->ctx, FEAT_SYSCALL, "%s of a process that sleeps in it", name);
	else
		feat_fails(run->ctx, FEAT_SYSCALL, 0, "%d (%s) where %d was due", nr,
			   name ? name : "unknown", SYS_clock_nanosleep);
}

static void judge_runq(struct run *run)
{
	if (io(run)->err)
		feat_fails(run->ctx, FEAT_RUN_QUEUE, 0, "tasks do not show their queue");
	else if (!io(run)->value)
		feat_fails(run->ctx, FEAT_RUN_QUEUE, 0, "the CPU's queue shows another process");
	else
		feat_works(run->ctx, FEAT_RUN_QUEUE, "the CPU's queue shows who runs");
}

/* v2 has whole microseconds. */
static void judge_quota(struct run *run)
{
	uint64_t us = io(run)->value / 1000;
	struct node_quota now;

	if (io(run)->err)
		feat_fails(run->ctx, FEAT_THROTTLING, 0,
			   "queues do not show what a quota held back");
	else if (node_cgroup__read(&run->cgroup, &now))
		feat_works(run->ctx, FEAT_THROTTLING, "read, with no cpu.stat to compare");
	else if (us < run->quota.throttled / 1000 || us > now.throttled / 1000)
		feat_fails(run->ctx, FEAT_THROTTLING, 0,
			   "%" PRIu64 " us throttled where cpu.stat has %" PRIu64, us,
			   now.throttled / 1000);
	else
		feat_works(run->ctx, FEAT_THROTTLING, "%" PRIu64 " us throttled, as in cpu.stat",
			   us);
}

static void judge_iter(struct run *run)
{
	feat_works(run->ctx, FEAT_ITER, "walked %" PRIu64 " tasks", (uint64_t)io(run)->hits);
}

static void judge_tcp(struct run *run)
{
	if (io(run)->err)
		feat_fails(run->ctx, FEAT_NET_TCP, 0, "the socket does not show its tcp_sock");
	else if (io(run)->value != FEAT_TALK_BYTES)
		feat_fails(run->ctx, FEAT_NET_TCP, 0, "%" PRIu64 " bytes sent where %d were",
			   (uint64_t)io(run)->value, FEAT_TALK_BYTES);
	else
		feat_works(run->ctx, FEAT_NET_TCP, "%d bytes sent, as it was", FEAT_TALK_BYTES);
}

static void judge_run(struct run *run)
{
	feat_works(run->ctx, FEAT_NET_FLOWS, "ran");
}

static void judge_files(struct run *run)
{
	feat_works(run->ctx, FEAT_NET_FILES, "walked %" PRIu64 " open files",
		   (uint64_t)io(run)->hits);
}

/* By the names that this kernel has for its numbers. */
static void judge_reason(struct run *run)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "skb_drop_reason", BTF_KIND_ENUM) : -1, i;
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);
	static const char prefix[] = "SKB_DROP_REASON_";
	const char *name = NULL;

	for (i = 0; t && !name && i < btf_vlen(t); i++)
		if ((uint32_t)btf_enum(t)[i].val == io(run)->value)
			name = btf__name_by_offset(btf, btf_enum(t)[i].name_off);
	if (name)
		feat_works(run->ctx, FEAT_NET_REASON, "a refused connection: %s",
			   name + (strncmp(name, prefix, strlen(prefix)) ? 0 : strlen(prefix)));
	else
		feat_fails(run->ctx, FEAT_NET_REASON, 0, "no name for reason %" PRIu64,
			   (uint64_t)io(run)->value);
	btf__free(btf);
}

static int ring_take(void *arg, void *data, size_t size)
{
	struct run *run = arg;

	if (size < sizeof(run->ring_rec))
		return 0;
	memcpy(&run->ring_rec, data, sizeof(run->ring_rec));
	run->ring_recs++;
	return 0;
}

static int consume_ring(struct run *run)
{
	int err;

	run->ring =
		ring_buffer__new(bpf_map__fd(run->skel->maps.scope_p_ring), ring_take, run, NULL);
	if (!run->ring)
		return -errno;
	err = ring_buffer__consume(run->ring);
	if (err < 0)
		return err;
	return run->ring_recs && run->ring_rec.nonce == run->nonce ? 0 : -ENODATA;
}

static void judge_ring(struct run *run)
{
	int err = consume_ring(run);

	if (err) {
		feat_fails(run->ctx, FEAT_RINGBUF, err, "the record did not come through");
		return;
	}
	run->ctx->bpf_ts_ns = run->ring_rec.ts_ns;
	feat_works(run->ctx, FEAT_RINGBUF, "a record came through");
}

static void judge_usdt(struct run *run)
{
	struct feat_ctx *ctx = run->ctx;
	unsigned short after;
	int err;

	err = consume_ring(run);
	bpf_link__destroy(run->link);
	run->link = NULL;
	after = semaphore_at_rest();
	if (err) {
		feat_fails(ctx, FEAT_USDT, err, "the record did not come through");
		return;
	}
	if (io(run)->err)
		feat_fails(ctx, FEAT_USDT, (int)io(run)->err, "copy of %d bytes",
			   SCOPE_PROBE_COPY_BYTES);
	else if (memcmp(run->ring_rec.data, user_page, sizeof(user_page)))
		feat_fails(ctx, FEAT_USDT, 0, "the copy of %d bytes is not the original",
			   SCOPE_PROBE_COPY_BYTES);
	else if (!run->semaphore_attached || after > run->semaphore_before)
		feat_fails(ctx, FEAT_USDT, 0, "semaphore went %u-%u-%u, not 0-1-0",
			   run->semaphore_before, run->semaphore_attached, after);
	else
		feat_works(ctx, FEAT_USDT, "semaphore %u-%u-%u, %d bytes copied",
			   run->semaphore_before, run->semaphore_attached, after,
			   SCOPE_PROBE_COPY_BYTES);
}

/* ---- The trials ------------------------------------------------------------------------------ */

static const struct trial trials[] = {
	{FEAT_UPROBE_MULTI, "scope_p_umulti", attach_uprobe_multi, fire_uprobe_multi,
	 judge_uprobe_multi, OWN_OBJECT}, /* first: takes_multi() */
	{FEAT_RINGBUF, "scope_p_ringbuf", NULL, fire_ring, judge_ring, MAP_RING},
	{FEAT_UPROBE, "scope_p_uprobe", attach_uprobe, fire_uprobe, judge_uprobe, NOTHING},
	{FEAT_READ_USER, "scope_p_rduser", attach_either, fire_uprobe, judge_parent_word, NOTHING},
	{FEAT_USDT, "scope_p_usdt", attach_usdt, fire_usdt, judge_usdt, MAP_RING | MAP_USDT},
	{FEAT_SLEEPABLE, "scope_p_sleep", attach_either, fire_uprobe, judge_parent_word, NOTHING},
	{FEAT_SCHED_SWITCH, "scope_p_switch", NULL, fire_child, NULL, NOTHING},
	{FEAT_SCHED_WAKEUP, "scope_p_wakeup", NULL, fire_child, NULL, NOTHING},
	{FEAT_SCHED_WAKEUP_NEW, "scope_p_wakenew", NULL, fire_child, NULL, NOTHING},
	{FEAT_SCHED_WAKING, "scope_p_waking", NULL, fire_child, NULL, NOTHING},
	{FEAT_SCHED_MIGRATE, "scope_p_migrate", NULL, fire_migrate, NULL, NOTHING},
	{FEAT_SCHED_FORK, "scope_p_fork", NULL, fire_child, NULL, NOTHING},
	{FEAT_SCHED_EXEC, "scope_p_exec", NULL, fire_child, NULL, NOTHING},
	{FEAT_SCHED_EXIT, "scope_p_exit", NULL, fire_child, judge_exit, NOTHING},
	{FEAT_SIGNAL_DELIVER, "scope_p_signal", NULL, fire_child, judge_signal, NOTHING},
	{FEAT_SIGNAL_GENERATE, "scope_p_sent", NULL, fire_child, NULL, NOTHING},
	{FEAT_IRQ_ENTRY, "scope_p_irqin", NULL, fire_chance, NULL, NOTHING},
	{FEAT_IRQ_EXIT, "scope_p_irqout", NULL, fire_chance, NULL, NOTHING},
	{FEAT_SOFTIRQ_ENTRY, "scope_p_softin", NULL, fire_chance, NULL, NOTHING},
	{FEAT_SOFTIRQ_EXIT, "scope_p_softout", NULL, fire_chance, NULL, NOTHING},
	{FEAT_SYSCALL, "scope_p_syscall", NULL, fire_child, judge_syscall, NOTHING},
	{FEAT_RUN_QUEUE, "scope_p_runq", NULL, fire_child, judge_runq, NOTHING},
	{FEAT_THROTTLING, "scope_p_quota", NULL, fire_quota, judge_quota, NOTHING},
	{FEAT_CORE, "scope_p_core", NULL, fire_child, judge_pid, NOTHING},
	{FEAT_NS_PID, "scope_p_nspid", NULL, fire_child, judge_pid, NOTHING},
	{FEAT_RAW_TP, "scope_p_rawtp", NULL, fire_child, NULL, NOTHING},
	{FEAT_TRACEPOINT, "scope_p_tp", NULL, fire_child, NULL, NOTHING},
	{FEAT_ITER, "scope_p_iter", NULL, fire_iter, judge_iter, NOTHING},
	{FEAT_KPROBE, "scope_p_kprobe", NULL, fire_child, NULL, NOTHING},
	{FEAT_NET_SEND, "scope_p_netsend", NULL, fire_talk, NULL, NOTHING},
	{FEAT_NET_RECV, "scope_p_netrecv", NULL, fire_talk, NULL, NOTHING},
	{FEAT_NET_ADJUST, "scope_p_rcvadj", NULL, fire_talk, NULL, NOTHING},
	{FEAT_NET_KPROBE, "scope_p_sendk", NULL, fire_talk, NULL, NOTHING},
	{FEAT_NET_STATE, "scope_p_tcpset", NULL, fire_talk, NULL, NOTHING},
	{FEAT_NET_DESTROY, "scope_p_tcpend", NULL, fire_chance, NULL, NOTHING},
	{FEAT_NET_TCP, "scope_p_tcp", NULL, fire_talk, judge_tcp, NOTHING},
	{FEAT_NET_FLOWS, "scope_p_run", attach_nowhere, fire_by_number, judge_run, NOTHING},
	{FEAT_NET_FILES, "scope_p_iterfd", NULL, fire_iter, judge_files, NOTHING},
	{FEAT_NET_RETRANS, "scope_p_retrans", NULL, fire_chance, NULL, NOTHING},
	{FEAT_NET_RESET_IN, "scope_p_rstin", NULL, fire_chance, NULL, NOTHING},
	{FEAT_NET_RESET_OUT, "scope_p_rstout", NULL, fire_talk, NULL, NOTHING},
	{FEAT_NET_DROP, "scope_p_drop", NULL, fire_chance, NULL, NOTHING},
	{FEAT_NET_REASON, "scope_p_dropwhy", NULL, fire_chance, judge_reason, NOTHING},
	{FEAT_FENTRY, "scope_p_fentry", NULL, fire_child, NULL, OWN_OBJECT},
	{FEAT_NET_RECV_FEXIT, "scope_p_recvf", NULL, fire_talk, NULL, OWN_OBJECT | SLEEPS},
	{FEAT_NET_SEND_FEXIT, "scope_p_sendf", NULL, fire_talk, NULL, OWN_OBJECT | SLEEPS},
};

static void run_prepare(struct run *run)
{
	struct stat st = {0};

	memset(io(run), 0, sizeof(*io(run))); /* of the trial before */
	run->nonce = monotonic_ns() | 1;
	user_word = run->nonce;
	/* 15 characters: before Linux 5.17 what is behind a shorter name is not zeroed. */
	snprintf(run->comm, sizeof(run->comm), "scope-dr-%06x", (unsigned int)getpid() & 0xffffff);
	memcpy(io(run)->comm, run->comm, sizeof(run->comm));
	io(run)->nonce = run->nonce;
	io(run)->user_addr = (uintptr_t)&user_word;
	stat("/proc/self/ns/pid", &st);
	io(run)->ns_dev = st.st_dev;
	io(run)->ns_ino = st.st_ino;
	io(run)->syscall = SYS_clock_nanosleep;
}

/* The programs of `n` trials, for one object; what they need. */
static int choose_programs(const struct feat_ctx *ctx, struct probe_bpf *skel,
			   const struct trial *batch, unsigned int n, unsigned int *needs)
{
	struct bpf_program *prog;
	unsigned int i;

	for (i = 0; i < n; i++) {
		prog = bpf_object__find_program_by_name(skel->obj, batch[i].prog);
		if (!prog)
			return -ENOENT;
		bpf_program__set_autoload(prog, true);
		if (takes_multi(ctx, &batch[i]))
			bpf_program__set_expected_attach_type(prog, TRACE_UPROBE_MULTI);
		*needs |= batch[i].needs;
	}
	return 0;
}

static int batch_load(struct feat_ctx *ctx, const struct trial *batch, unsigned int n,
		      struct probe_bpf **skel, const char **stage)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = ctx->opts->btf);
	unsigned int needs = NOTHING;
	int err;

	*stage = "open";
	*skel = probe_bpf__open_opts(&opts);
	if (!*skel)
		return -errno;
	err = choose_programs(ctx, *skel, batch, n, &needs);
	if (err)
		return err;
	bpf_map__set_autocreate((*skel)->maps.scope_p_ring, needs & MAP_RING);
	bpf_map__set_autocreate((*skel)->maps.__bpf_usdt_specs, needs & MAP_USDT);
	bpf_map__set_autocreate((*skel)->maps.__bpf_usdt_ip_to_spec_id, needs & MAP_USDT);
	*stage = "load";
	return probe_bpf__load(*skel);
}

static int run_attach_and_fire(struct run *run)
{
	int err;

	run_prepare(run);
	run->stage = "attach";
	if (run->trial->attach) {
		err = run->trial->attach(run);
	} else {
		run->link = bpf_program__attach(run->prog);
		err = run->link ? 0 : -errno;
	}
	if (err)
		return err;
	run->stage = "fire";
	return run->trial->fire(run);
}

/* A trial that says something about memory at the same time settles a second feature. */
static bool second_of(enum feat_id id, enum feat_id *second)
{
	if (id == FEAT_SCHED_EXIT)
		*second = FEAT_EXIT_MEMORY;
	else if (id == FEAT_SIGNAL_DELIVER)
		*second = FEAT_SIGNAL_MEMORY;
	else
		return false;
	return true;
}

static bool tracefs_is_mounted(void)
{
	return !access("/sys/kernel/tracing/events", F_OK) ||
	       !access("/sys/kernel/debug/tracing/events", F_OK);
}

static void explain_failure(struct run *run, int err)
{
	struct feat_ctx *ctx = run->ctx;
	enum feat_id id = run->trial->id;

	feat_fails(ctx, id, err, "%s", run->stage);
	if (err == -EPERM && !ctx->privileged)
		return;
	if (id == FEAT_FENTRY && err == -EPERM)
		feat_fails(ctx, id, err, "%s, refused by the kernel to root as well", run->stage);
	if (id == FEAT_SYSCALL && err == -EINVAL)
		feat_fails(ctx, id, 0, "%s: this kernel has no bpf_task_pt_regs", run->stage);
	if ((id == FEAT_NET_RECV_FEXIT || id == FEAT_NET_SEND_FEXIT) && err == -EPERM)
		feat_fails(ctx, id, err, "%s, refused by the kernel to root as well", run->stage);
	if (id == FEAT_NET_REASON && err == -EACCES) /* the verifier's word on a third argument */
		feat_fails(ctx, id, 0, "%s: this kernel does not say", run->stage);
	if (err == -ESRCH && !strcmp(run->stage, "load"))
		feat_fails(ctx, id, 0, "%s: this kernel has no such tracepoint", run->stage);
	if ((id == FEAT_KPROBE || id == FEAT_NET_KPROBE) &&
	    access("/sys/bus/event_source/devices/kprobe", F_OK))
		feat_fails(ctx, id, 0, "%s: this kernel has no kprobe events", run->stage);
	if (id == FEAT_TRACEPOINT && !tracefs_is_mounted())
		feat_fails(ctx, id, 0, "%s: tracefs is not mounted", run->stage);
}

/* Why it is not to be tried on this kernel, or NULL. */
static const char *harm_of(const struct feat_ctx *ctx, const struct trial *trial)
{
	if (ctx->ring_sleeps && trial->needs & MAP_RING)
		return REALTIME_RING_SLEEPS;
	return !ctx->fexit_may_sleep && trial->needs & SLEEPS ? FEXIT_HARMS : NULL;
}

/* `err`: of its load, at `stage`. */
static void try_feature(struct feat_ctx *ctx, const struct trial *trial, struct probe_bpf *skel,
			int err, const char *stage)
{
	struct run run = {.ctx = ctx, .trial = trial, .skel = skel, .link_fd = -1, .stage = stage};
	const char *harm = harm_of(ctx, trial);
	enum feat_id second;

	if (!err && !harm) {
		run.prog = bpf_object__find_program_by_name(skel->obj, trial->prog);
		err = run_attach_and_fire(&run);
	}
	if (harm)
		feat_fails(ctx, trial->id, 0, "not tried: %s", harm);
	else if (err)
		explain_failure(&run, err);
	else if (!io(&run)->hits && run.excuse)
		feat_works(ctx, trial->id, "attached, %s", run.excuse);
	else if (!io(&run)->hits)
		feat_fails(ctx, trial->id, 0, "attached, but did not fire");
	else if (trial->judge)
		trial->judge(&run);
	else
		feat_works(ctx, trial->id, "attached, fired");
	if (second_of(trial->id, &second) && !feat_works_already(ctx, trial->id))
		feat_fails(ctx, second, err, "not tried, %s does not work",
			   feat_descs[trial->id].name);

	node_cgroup__close(&run.cgroup);
	ring_buffer__free(run.ring);
	bpf_link__destroy(run.link);
	if (run.link_fd >= 0)
		close(run.link_fd);
}

/*
 * All in one object. The kernel refuses it for the sake of one program: then smaller ones are tried. Who may load none of
 * them is refused each.
 */
static void try_batch(struct feat_ctx *ctx, const struct trial *batch, unsigned int n)
{
	struct probe_bpf *skel = NULL;
	const char *stage;
	unsigned int i, part;
	int err;

	err = batch_load(ctx, batch, n, &skel, &stage);
	if (err && n > 1) {
		probe_bpf__destroy(skel);
		part = err == -EPERM ? 1 : (n + 1) / 2;
		for (i = 0; i < n; i += part)
			try_batch(ctx, batch + i, i + part < n ? part : n - i);
		return;
	}
	for (i = 0; i < n; i++)
		try_feature(ctx, &batch[i], skel, err, stage);
	probe_bpf__destroy(skel);
}

static void try_all(struct feat_ctx *ctx)
{
	const unsigned int all = sizeof(trials) / sizeof(trials[0]);
	unsigned int i, n;

	for (i = 0; i < all; i += n) {
		n = 1;
		while (i + n < all && !((trials[i].needs | trials[i + n].needs) & OWN_OBJECT))
			n++;
		try_batch(ctx, &trials[i], n);
	}
}

static void probe_btf(struct feat_ctx *ctx)
{
	const char *path = ctx->opts->btf ? ctx->opts->btf : VMLINUX_BTF;
	struct btf *btf = NULL;
	int err = 0;

	if (access(path, R_OK))
		err = -errno;
	if (!err) {
		btf = btf__parse(path, NULL);
		if (!btf)
			err = -errno;
	}
	if (err)
		feat_fails(ctx, FEAT_BTF, err, "no BTF in %s", path);
	else if (btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT) < 0)
		feat_fails(ctx, FEAT_BTF, 0, "%s has no task_struct", path);
	else
		feat_works(ctx, FEAT_BTF, "%s, %u types", path, btf__type_cnt(btf));
	ctx->ring_sleeps = realtime_ring_sleeps_here(btf);
	ctx->fexit_may_sleep = fexit_may_sleep(btf);
	btf__free(btf);
	clock_sample(&ctx->middle); /* somewhere in the middle, after what takes long anyway */
}

static void probe_ring_memory(struct feat_ctx *ctx)
{
	unsigned long bytes = ctx->opts->ring_bytes ? ctx->opts->ring_bytes : RING_BYTES_DEFAULT;
	int fd, err = 0;

	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "scope_p_mem", 0, 0, (uint32_t)bytes, NULL);
	if (fd < 0)
		err = -errno;
	if (err)
		feat_fails(ctx, FEAT_RING_MEMORY, err, "a ring of %lu MiB", bytes >> 20);
	else
		feat_works(ctx, FEAT_RING_MEMORY, "a ring of %lu MiB", bytes >> 20);
	if (fd >= 0)
		close(fd);
}

static void probe_libbpf(struct feat_ctx *ctx)
{
	unsigned int major = libbpf_major_version(), minor = libbpf_minor_version();

	if (major > 1 || (major == 1 && minor >= 1))
		feat_works(ctx, FEAT_LIBBPF, "%s", libbpf_version_string());
	else
		feat_fails(ctx, FEAT_LIBBPF, 0, "%s is older than v1.1", libbpf_version_string());
}

static const char other_clang[] =
	"The kernel's verifier follows what some compilers make of the programs, and not what "
	"others do: build with another clang (make clean; make CLANG=clang-14). 'ncclscope record "
	"-v' shows what it said.";

static void judge_programs(struct feat_ctx *ctx, enum feat_id id, int err)
{
	/* -E2BIG: it gave up at its limit of instructions */
	bool verifier = (err == -EACCES && ctx->privileged) || err == -E2BIG;

	if (!err)
		feat_works(ctx, id, "the verifier takes them");
	else if (verifier)
		feat_fails(ctx, id, 0, "refused by the verifier");
	else
		feat_fails(ctx, id, err, "load");
	if (verifier || err == -EINVAL)
		feat_advise(ctx, id, "%s%s", feat_descs[id].required ? "" : "record does without. ",
			    other_clang);
}

/* Those that record loads, by the verifier of this kernel: not the small ones that the other features are tried with. */
void feat_probe_programs(struct feat_ctx *ctx)
{
	const struct attach_features all = {.sched = true, .irq = true, .net = true}, base = {0};
	bool sched = feat_works_already(ctx, FEAT_SCHED_SWITCH);
	int err;

	if (!feat_works_already(ctx, FEAT_RINGBUF)) {
		feat_skip(ctx, FEAT_BASE_PROGRAMS, FEAT_RINGBUF);
		feat_skip(ctx, FEAT_PROGRAMS, FEAT_RINGBUF);
		return;
	}
	err = attach__try(sched ? all : base);
	if (sched)
		judge_programs(ctx, FEAT_PROGRAMS, err);
	else
		feat_skip(ctx, FEAT_PROGRAMS, FEAT_SCHED_SWITCH);
	if (sched && err &&
	    err != -ENOMEM) /* for a lack of memory record does not make do with less */
		err = attach__try(base);
	judge_programs(ctx, FEAT_BASE_PROGRAMS, err);
}

void feat_probe_bpf(struct feat_ctx *ctx)
{
	enum feat_id second;
	unsigned int i;

	for (i = 0; i < sizeof(user_page); i++)
		user_page[i] = (unsigned char)(i * 7 + (i >> 8));
	probe_libbpf(ctx);
	probe_btf(ctx);
	probe_ring_memory(ctx);
	if (feat_works_already(ctx, FEAT_BTF)) {
		try_all(ctx);
		feat_probe_programs(ctx);
		return;
	}
	/* None of our objects can be loaded without it, even for programs that have no use for it. */
	feat_skip(ctx, FEAT_BASE_PROGRAMS, FEAT_BTF);
	feat_skip(ctx, FEAT_PROGRAMS, FEAT_BTF);
	for (i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		feat_skip(ctx, trials[i].id, FEAT_BTF);
		if (second_of(trials[i].id, &second))
			feat_skip(ctx, second, FEAT_BTF);
	}
}
