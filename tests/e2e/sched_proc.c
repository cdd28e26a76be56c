// SPDX-License-Identifier: BSD-2-Clause
/*
 * What /proc says about the threads of processes at a time when it does not change, and a process that stands
 * still for a known time: what the kernel's own accounts and its own doing say, to compare a trace with.
 *
 *   sched_proc still PID...   waits until no thread has run for a while; a line of JSON for each
 *   sched_proc freeze PID MS  SIGSTOP, SIGCONT MS after all threads have stopped; a line with the times
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 1024
#define STILL_US    100000
#define GIVE_UP_NS  20000000000ull

struct account {
	int pid, tid;
	char state;
	uint64_t run_ns, delay_ns, majflt, voluntary, involuntary;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* A file of a thread, as a string; empty if the thread is gone. */
static char *slurp(const struct account *a, const char *name, char *buf, size_t size)
{
	char path[64];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", a->pid, a->tid, name);
	f = fopen(path, "r");
	if (f) {
		n = fread(buf, 1, size - 1, f);
		fclose(f);
	}
	buf[n] = 0;
	return buf;
}

static uint64_t field_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void account_read(struct account *a)
{
	char buf[8192], *at;

	sscanf(slurp(a, "schedstat", buf, sizeof(buf)), "%" SCNu64 " %" SCNu64, &a->run_ns,
	       &a->delay_ns);
	slurp(a, "status", buf, sizeof(buf));
	a->voluntary = field_of(buf, "\nvoluntary_ctxt_switches:");
	a->involuntary = field_of(buf, "\nnonvoluntary_ctxt_switches:");
	at = strrchr(slurp(a, "stat", buf, sizeof(buf)), ')'); /* the name may hold anything */
	a->state = at ? at[2] : 'X';
	if (at)
		sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %" SCNu64, &a->majflt);
}

/* All threads of the processes; how many. */
static int accounts_read(char **pids, struct account *all)
{
	struct dirent *e;
	char path[32];
	int n = 0;
	DIR *dir;

	for (; *pids; pids++) {
		snprintf(path, sizeof(path), "/proc/%d/task", atoi(*pids));
		dir = opendir(path);
		while (dir && (e = readdir(dir)) && n < THREADS_MAX) {
			if (!isdigit((unsigned char)e->d_name[0]))
				continue;
			memset(&all[n], 0, sizeof(all[n]));
			all[n].pid = atoi(*pids);
			all[n].tid = atoi(e->d_name);
			account_read(&all[n++]);
		}
		if (dir)
			closedir(dir);
	}
	return n;
}

/*
 * How much time the hypervisor has taken from all CPUs, in us. The kernel takes it off the run time of whoever was
 * on (CONFIG_PARAVIRT_TIME_ACCOUNTING), whose CPU it was all the same.
 */
static uint64_t stolen_us(void)
{
	unsigned long long ticks = 0;
	FILE *f = fopen("/proc/stat", "r");

	if (f) {
		if (fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
			ticks = 0;
		fclose(f);
	}
	return ticks * (1000000 / sysconf(_SC_CLK_TCK));
}

static bool none_runs(const struct account *all, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (all[i].state == 'R')
			return false;
	return n > 0;
}

static void print_all(const struct account *all, int n, uint64_t ts_ns)
{
	uint64_t stolen = stolen_us();
	int i;

	for (i = 0; i < n; i++)
		printf("{\"ts\":%.3f,\"pid\":%d,\"tid\":%d,\"run\":%.3f,\"delay\":%.3f,"
		       "\"switches\":%" PRIu64 ",\"preemptions\":%" PRIu64 ",\"majflt\":%" PRIu64
		       ",\"stolen\":%" PRIu64 "}\n",
		       ts_ns / 1e3, all[i].pid, all[i].tid, all[i].run_ns / 1e3,
		       all[i].delay_ns / 1e3, all[i].voluntary + all[i].involuntary,
		       all[i].involuntary, all[i].majflt, stolen);
}

/* Two readings that say the same: the account is settled at all times between them. */
static int still(char **pids)
{
	static struct account one[THREADS_MAX], two[THREADS_MAX];
	uint64_t give_up = now_ns() + GIVE_UP_NS, ts;
	int n, m;

	while (now_ns() < give_up) {
		n = accounts_read(pids, one);
		usleep(STILL_US / 2);
		ts = now_ns();
		usleep(STILL_US / 2);
		m = accounts_read(pids, two);
		if (n != m || !none_runs(one, n) || memcmp(one, two, n * sizeof(*one)))
			continue;
		print_all(one, n, ts);
		return 0;
	}
	fprintf(stderr, "sched_proc: threads did not come to rest\n");
	return 1;
}

static bool all_stopped(char **pids)
{
	static struct account all[THREADS_MAX];
	int n = accounts_read(pids, all), i;

	for (i = 0; i < n; i++)
		if (all[i].state != 'T')
			return false;
	return n > 0;
}

static int freeze(char **pids, long ms)
{
	uint64_t sent = now_ns(), give_up = sent + GIVE_UP_NS, stopped, cont;
	pid_t pid = atoi(*pids);

	if (kill(pid, SIGSTOP)) {
		perror("sched_proc: Failed to stop it");
		return 1;
	}
	while (!all_stopped(pids) && now_ns() < give_up)
		usleep(1000);
	stopped = now_ns();
	usleep(ms * 1000);
	cont = now_ns();
	kill(pid, SIGCONT);
	printf("{\"sent\":%.3f,\"stopped\":%.3f,\"cont\":%.3f,\"done\":%.3f}\n", sent / 1e3,
	       stopped / 1e3, cont / 1e3, now_ns() / 1e3);
	return 0;
}

int main(int argc, char **argv)
{
	char *pids[2] = {NULL};

	if (argc >= 3 && !strcmp(argv[1], "still"))
		return still(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "freeze")) {
		pids[0] = argv[2];
		return freeze(pids, atol(argv[3]));
	}
	fprintf(stderr, "Usage: sched_proc still PID... | freeze PID MS\n");
	return 2;
}
