// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults on request: STANDIN_FAULT is a list "name:key=value:key=value,name:...". A fault without
 * rank= holds for every rank. The names are listed in scope-job --help.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

#define COLD_BYTES (4 << 20)

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

static struct death death_load(int rank)
{
	static const char *const names[] = {
		[DEATH_KILL] = "kill", [DEATH_QUIT] = "quit", [DEATH_EXEC] = "exec",
		[DEATH_OOM] = "oom",   [DEATH_SEGV] = "segv",
	};
	struct death d = {0};
	int how;

	for (how = DEATH_KILL; how <= DEATH_SEGV; how++) {
		if (!fault_on(names[how], rank))
			continue;
		d.how = how;
		d.sig = fault_or(names[how], rank, "sig", SIGKILL, 0);
		d.us = fault_or(names[how], rank, "us", 0, 0);
		d.at_end = fault_or(names[how], rank, "end", 0, 0);
		d.after = fault_or(names[how], rank, "after", !d.us, 0);
		return d;
	}
	return d;
}

void fault_load(struct faults *f, int rank, int nranks)
{
	f->late_ms = fault_or("late", rank, "nranks", nranks, 0) == nranks
			     ? fault_or("late", rank, "ms", 10, 0)
			     : 0;
	f->late_every = fault_or("late", rank, "every", 1, 1);
	f->late_loader = fault_or("late", rank, "loader", 0, 0);
	f->late_file = fault_or("late", rank, "file", 0, 0) ? rank + 1 : 0;
	f->busy_gpu_ms = fault_or("busy-gpu", rank, "ms", 10, 0);
	f->busy_gpu_every = fault_or("busy-gpu", rank, "every", 1, 1);
	f->slow_us = fault_or("slow-progress", rank, "us", 500, 0);
	f->slow_busy = fault_or("slow-progress", rank, "busy", 0, 0);
	f->slow_poll = fault_or("slow-progress", rank, "poll", 0, 0);
	f->slow_futex = fault_or("slow-progress", rank, "futex", 0, 0);
	f->slow_vfork = fault_or("slow-progress", rank, "vfork", 0, 0);
	f->cold_file = fault_on("cold-file", rank) ? rank + 1 : 0;
	f->cold_read = fault_or("cold-file", rank, "read", 0, 0);
	f->pin_cpu = fault_or("pin-progress", rank, "cpu", 0, -1);
	f->recv_repeat = fault_or("recv-repeat", rank, "n", 1000, 0);
	f->peerwait_repeat = fault_or("peerwait-repeat", rank, "n", 1000, 0);
	f->death = death_load(rank);
	f->abort_after = fault_or("abort", rank, "after", 1, 0);
	f->hang_after = fault_or("hang", rank, "after", 1, 0);
	f->slow_recv_us = fault_or("slow-recv", rank, "us", 5000, 0);
	f->slow_recv_bytes = fault_or("slow-recv", rank, "bytes", 64 << 10, 0);
	f->reset_after = fault_or("reset", rank, "after", 1, 0);
}

/* A child that takes its time until it execs or ends, which its parent waits for in vfork(). */
static void sleep_in_vfork(const struct timespec *ts)
{
	pid_t pid = vfork();

	if (!pid) {
		nanosleep(ts, NULL);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void fault_slow(const struct faults *f)
{
	const struct timespec ts = {f->slow_us / 1000000, f->slow_us % 1000000 * 1000};
	uint64_t end = now_ns() + f->slow_us * 1000;
	uint32_t word = 0;

	if (f->slow_poll)
		ppoll(NULL, 0, &ts, NULL);
	else if (f->slow_futex)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
	else if (f->slow_vfork)
		sleep_in_vfork(&ts);
	else if (!f->slow_busy)
		usleep(f->slow_us);
	while (f->slow_busy && now_ns() < end)
		;
}

/* ---- ends ---- */

/* Until the kernel ends it; where nothing limits us, not for ever. */
static void eat_memory(void)
{
	size_t len = 1 << 20, n;
	char *p;

	for (n = 0; n < 1024; n++) {
		p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p != MAP_FAILED)
			memset(p, 1, len);
	}
	si_warn("Failed to run out of memory: a memory cgroup of less than 1 GiB is needed");
}

/* A signal at a call is the calling thread's, as by its own mistake; else it is sent to the process. */
void fault_die(const struct death *d)
{
	if (d->how == DEATH_KILL && d->after)
		raise((int)d->sig);
	else if (d->how == DEATH_KILL)
		kill(getpid(), (int)d->sig);
	else if (d->how == DEATH_QUIT)
		_exit(3);
	else if (d->how == DEATH_EXEC)
		execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
	else if (d->how == DEATH_OOM)
		eat_memory();
	else if (d->how == DEATH_SEGV)
		*(volatile char *)(uintptr_t)d->after = 0; /* in the first page, which nobody has */
}

static void *die_thread(void *arg)
{
	struct death d = *(struct death *)arg;

	free(arg);
	usleep(d.us);
	fault_die(&d);
	return NULL;
}

void fault_die_later(const struct death *d, bool at_end)
{
	struct death *arg = d->us && !d->at_end == !at_end ? malloc(sizeof(*arg)) : NULL;
	pthread_t thread;

	if (!arg)
		return;
	*arg = *d;
	if (pthread_create(&thread, NULL, die_thread, arg))
		free(arg);
	else
		pthread_detach(thread);
}

/* ---- a file that is never in memory ---- */

/* A thread's own, and it goes with the process; -1 it cannot be made. */
static __thread int cold_fd = -2;
static __thread char *cold_map;
static __thread off_t cold_at;

/* Clean pages on disk: only those can be dropped. Not a hole: that takes no reading. */
static int cold_make(void)
{
	const char *dir = getenv("TMPDIR");
	char *data = malloc(COLD_BYTES), path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/cold-XXXXXX", dir && *dir ? dir : "/var/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	if (data)
		memset(data, 1, COLD_BYTES);
	if (!data || fd < 0 || pwrite(fd, data, COLD_BYTES, 0) != COLD_BYTES || fsync(fd)) {
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	free(data);
	return fd;
}

static void cold_open(long rank)
{
	const char *given = getenv("STANDIN_COLD_FILE");
	char path[4096];

	snprintf(path, sizeof(path), "%s.%ld", given ? given : "", rank);
	cold_fd = given ? open(path, O_RDONLY | O_CLOEXEC) : cold_make();
	if (cold_fd >= 0)
		cold_map = mmap(NULL, COLD_BYTES, PROT_READ, MAP_SHARED, cold_fd, 0);
	if (cold_fd < 0 || cold_map == MAP_FAILED) {
		si_warn("Failed to make a file for the fault cold-file: %s", strerror(errno));
		cold_fd = -1;
		return;
	}
	/* Out with all of it, which was written as large pieces; from now on it comes by the page. */
	posix_fadvise(cold_fd, 0, 0, POSIX_FADV_DONTNEED);
	posix_fadvise(cold_fd, 0, 0, POSIX_FADV_RANDOM);
	madvise(cold_map, COLD_BYTES, MADV_RANDOM);
}

void fault_cold_file(const struct faults *f)
{
	char c;

	if (cold_fd == -2)
		cold_open((f->cold_file ? f->cold_file : f->late_file) - 1);
	if (cold_fd < 0)
		return;
	cold_at = (cold_at + 4096) % COLD_BYTES;
	madvise(cold_map + cold_at, 4096, MADV_DONTNEED);
	posix_fadvise(cold_fd, cold_at, 4096, POSIX_FADV_DONTNEED);
	if ((f->cold_read || f->late_file) && pread(cold_fd, &c, 1, cold_at) == 1)
		return;
	(void)*(volatile char *)(cold_map + cold_at);
}

/* ---- who comes late ---- */

static pthread_mutex_t loader_lock = PTHREAD_MUTEX_INITIALIZER;
static int loader_ask = -1, loader_answer = -1; /* pipes to the process that loads */

/* As one of a framework's: it makes a batch of each number of milliseconds that it reads, for as long as somebody asks. */
static void loader_run(int ask, int answer)
{
	long ms;

	prctl(PR_SET_NAME, "pt_data_worker");
	while (read(ask, &ms, sizeof(ms)) == sizeof(ms)) {
		usleep((useconds_t)ms * 1000);
		if (write(answer, "", 1) != 1)
			break;
	}
	_exit(0);
}

static void loader_start(void)
{
	int ask[2], answer[2];
	pid_t pid;

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC)) {
		si_warn("Failed to make pipes for the fault late: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (pid < 0) {
		si_warn("Failed to fork for the fault late: %s", strerror(errno));
		return;
	}
	if (!pid) {
		close(ask[1]); /* its end is to be seen */
		loader_run(ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	loader_ask = ask[1];
	loader_answer = answer[0];
}

static void late_loader(long ms)
{
	char batch;

	pthread_mutex_lock(&loader_lock);
	if (loader_ask < 0)
		loader_start();
	if (write(loader_ask, &ms, sizeof(ms)) != sizeof(ms) || read(loader_answer, &batch, 1) != 1)
		si_warn("The fault late has no loader");
	pthread_mutex_unlock(&loader_lock);
}

void fault_late(const struct faults *f, long ncalls)
{
	if (!f->late_ms || ncalls % f->late_every)
		return;
	if (f->late_loader)
		late_loader(f->late_ms);
	else if (f->late_file)
		fault_cold_file(f);
	else
		usleep((useconds_t)f->late_ms * 1000);
}
