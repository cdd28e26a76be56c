// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a context switch costs: two threads or processes that hand a byte to each other through pipes, on
 * one CPU or on two. With a plugin, in a process that a recorder knows: what kernel context adds there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "nccl_profiler.h"

#define NSEC_PER_SEC 1000000000ull
#define WARM_UP	     64 /* round trips before anything counts */
#define LOOK_EVERY   8	/* round trips between two looks at the clock */
#define SLOT_NS	     5000000
#define SLOTS	     4096 /* that are kept */
#define PACES	     100  /* bursts a second, with --rate */

struct options {
	const char *plugin;
	int cpus[2]; /* -1: anywhere */
	double seconds;
	unsigned long rate; /* switches a second, both together; 0: as many as will */
	int procs;
};

/* What the kernel has counted for a thread. */
struct count {
	long voluntary, involuntary; /* switches */
	uint64_t cpu_ns;
};

struct player {
	int cpu, in, out;
	pid_t tid;
	struct count begin, end; /* of the window */
	struct count life;	 /* up to its last call */
};

/* Shared with the other process where there is one. */
struct game {
	struct player player[2];
	double seconds;
	uint64_t ns; /* the window */
	unsigned long rate;
	unsigned long trips;
	double slots[SLOTS]; /* ns of a round trip, over SLOT_NS each */
	int nslots;
};

static const ncclProfiler_v5_t *prof;
static void *ctx;
static int mask;

static __attribute__((noreturn)) void die(const char *what)
{
	fprintf(stderr, "switches: Failed to %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static struct count count(void)
{
	struct timespec ts;
	struct rusage ru;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	getrusage(RUSAGE_THREAD, &ru);
	return (struct count){.voluntary = ru.ru_nvcsw,
			      .involuntary = ru.ru_nivcsw,
			      .cpu_ns = (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec};
}

/* ---- As NCCL would ----------------------------------------------------------------------------- */

/* An operation's worth of callbacks, after which the plugin hands in the thread's buffer. */
static void call_plugin(void)
{
	ncclProfilerEventDescr_v5_t d = {.type = ncclProfileGroupApi};
	void *handle = NULL;

	if (!prof || !(mask & ncclProfileGroupApi))
		return;
	prof->startEvent(ctx, &handle, &d);
	prof->stopEvent(handle);
}

static void open_plugin(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	prof = lib ? dlsym(lib, "ncclProfiler_v5") : NULL;
	if (!prof) {
		fprintf(stderr, "switches: Failed to load '%s': %s\n", path, dlerror());
		exit(1);
	}
	prof->init(&ctx, (uint64_t)getpid() << 32 | 1, &mask, "switches", 1, 1, 0, NULL);
	call_plugin();
}

/* ---- The game ---------------------------------------------------------------------------------- */

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("take the CPU");
}

static void put(const struct player *p, char c)
{
	if (write(p->out, &c, 1) != 1)
		die("write to a pipe");
}

static char get(const struct player *p)
{
	char c;

	if (read(p->in, &c, 1) != 1)
		die("read from a pipe");
	return c;
}

static void trip(const struct player *p)
{
	put(p, '.');
	get(p);
}

/* So many switches a second: bursts, each at its time. One that comes late is not left out. */
static void run_paced(struct game *g, struct player *p, uint64_t begin, uint64_t end)
{
	unsigned long burst = g->rate / 2 / PACES + 1, i;
	uint64_t next;

	for (next = begin; next < end; next += NSEC_PER_SEC / PACES) {
		sleep_until(next);
		for (i = 0; i < burst; i++)
			trip(p);
		g->trips += burst;
	}
}

/* So many round trips took so long: a slot when that is long enough. */
static bool slot_full(struct game *g, unsigned long trips, uint64_t ns)
{
	if (ns < SLOT_NS)
		return false;
	if (g->nslots < SLOTS)
		g->slots[g->nslots++] = (double)ns / (double)trips;
	return true;
}

static void run_freely(struct game *g, struct player *p, uint64_t begin, uint64_t end)
{
	unsigned long since = 0;
	uint64_t now = begin;
	int i;

	while (now < end) {
		for (i = 0; i < LOOK_EVERY; i++)
			trip(p);
		g->trips += LOOK_EVERY;
		now = now_ns();
		if (slot_full(g, g->trips - since, now - begin)) {
			since = g->trips;
			begin = now;
		}
	}
}

static void lead(struct game *g, struct player *p)
{
	uint64_t begin, end;
	int i;

	for (i = 0; i < WARM_UP; i++)
		trip(p);
	put(p, 'b');
	get(p);
	p->begin = count();
	begin = now_ns();
	end = begin + (uint64_t)(g->seconds * (double)NSEC_PER_SEC);
	if (g->rate)
		run_paced(g, p, begin, end);
	else
		run_freely(g, p, begin, end);
	g->ns = now_ns() - begin;
	p->end = count();
	put(p, 'e');
}

static void follow(struct player *p)
{
	char c;

	while ((c = get(p)) != 'e') {
		if (c == 'b')
			p->begin = count();
		put(p, c);
	}
	p->end = count();
}

static void play(struct game *g, int who)
{
	struct player *p = &g->player[who];

	p->tid = (pid_t)syscall(SYS_gettid);
	pin(p->cpu);
	call_plugin();
	if (who == 0)
		lead(g, p);
	else
		follow(p);
	p->life = count();
}

static struct game *game;

static void *play_leader(void *unused)
{
	play(game, 0);
	return unused;
}

static void *play_follower(void *unused)
{
	play(game, 1);
	return unused;
}

static void play_threads(void)
{
	pthread_t threads[2];

	if (pthread_create(&threads[0], NULL, play_leader, NULL) ||
	    pthread_create(&threads[1], NULL, play_follower, NULL))
		die("start a thread");
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void play_procs(void)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid) {
		play(game, 1);
		_exit(0);
	}
	play(game, 0);
	if (waitpid(pid, &status, 0) != pid || status)
		die("get an answer from the other process");
}

static void setup(const struct options *o)
{
	int to[2], from[2];

	game = mmap(NULL, sizeof(*game), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (game == MAP_FAILED)
		die("allocate");
	if (pipe(to) || pipe(from))
		die("make a pipe");
	game->seconds = o->seconds;
	game->rate = o->rate;
	game->player[0] = (struct player){.cpu = o->cpus[0], .in = from[0], .out = to[1]};
	game->player[1] = (struct player){.cpu = o->cpus[1], .in = to[0], .out = from[1]};
	if (o->plugin)
		open_plugin(o->plugin);
}

static void print_player(const struct player *p)
{
	printf("{\"tid\":%d,\"cpu\":%d,\"voluntary\":%ld,\"involuntary\":%ld}", p->tid, p->cpu,
	       p->life.voluntary, p->life.involuntary);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Of a switch, in the tenth of the slots that was least disturbed by others; 0: too short to say. */
static double quiet_ns(struct game *g, double switches)
{
	if (!g->nslots)
		return 0;
	qsort(g->slots, (size_t)g->nslots, sizeof(*g->slots), by_size);
	return g->slots[g->nslots / 10] * (double)g->trips / switches;
}

/* ns: on the wall; quietNs: there, without others' disturbance; cpuNs: CPU time of the players. */
static void print(const struct options *o)
{
	double n = 0, cpu = 0;
	int i;

	for (i = 0; i < 2; i++) {
		const struct player *p = &game->player[i];

		n += (double)(p->end.voluntary - p->begin.voluntary + p->end.involuntary -
			      p->begin.involuntary);
		cpu += (double)(p->end.cpu_ns - p->begin.cpu_ns);
	}
	printf("{\"pid\":%d,\"mask\":%d,\"procs\":%s,\"seconds\":%.6f,\"trips\":%lu,"
	       "\"switches\":%.0f,\"perSecond\":%.0f,\"ns\":%.2f,"
	       "\"quietNs\":%.2f,\"cpuNs\":%.2f,\"threads\":[",
	       getpid(), mask, o->procs ? "true" : "false", (double)game->ns / NSEC_PER_SEC,
	       game->trips, n, n * NSEC_PER_SEC / (double)game->ns, (double)game->ns / n,
	       quiet_ns(game, n), cpu / n);
	print_player(&game->player[0]);
	putchar(',');
	print_player(&game->player[1]);
	puts("]}");
}

/* ---- The command line -------------------------------------------------------------------------- */

static __attribute__((noreturn)) void usage(void)
{
	fprintf(stderr,
		"Usage: switches [--plugin PATH] [--cpus A[,B]] [--seconds S] [--rate N] "
		"[--procs]\n"
		"  --plugin PATH  load it and call it as NCCL does, so that a recorder knows us\n"
		"  --cpus A[,B]   both players on CPU A, or one on A and one on B (anywhere)\n"
		"  --seconds S    for so long (0.4)\n"
		"  --rate N       about N switches a second (as many as will)\n"
		"  --procs        two processes, not two threads; without --plugin\n");
	exit(2);
}

static void parse_cpus(struct options *o, const char *s)
{
	char *end;

	o->cpus[0] = o->cpus[1] = (int)strtol(s, &end, 10);
	if (*end == ',')
		o->cpus[1] = (int)strtol(end + 1, &end, 10);
	if (end == s || *end)
		usage();
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"plugin", required_argument, NULL, 'p'},  {"cpus", required_argument, NULL, 'c'},
		{"seconds", required_argument, NULL, 's'}, {"rate", required_argument, NULL, 'r'},
		{"procs", no_argument, NULL, 'P'},	   {0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'p')
			o->plugin = optarg;
		else if (c == 'c')
			parse_cpus(o, optarg);
		else if (c == 's')
			o->seconds = atof(optarg);
		else if (c == 'r')
			o->rate = strtoul(optarg, NULL, 10);
		else if (c == 'P')
			o->procs = 1;
		else
			usage();
	}
	if (optind != argc || o->seconds <= 0 || (o->procs && o->plugin))
		usage();
}

int main(int argc, char **argv)
{
	struct options o = {.cpus = {-1, -1}, .seconds = 0.4};

	parse(&o, argc, argv);
	setup(&o);
	if (o.procs)
		play_procs();
	else
		play_threads();
	print(&o);
	if (prof)
		prof->finalize(ctx);
	return 0;
}
