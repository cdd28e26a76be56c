// SPDX-License-Identifier: BSD-2-Clause
/*
 * Small things that every file of the stand-in needs: environment, clocks, a hash, and NCCL's
 * logger (NCCL_DEBUG), which is also what plugins are given to log through.
 */
#include <pwd.h>
#include <stdarg.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

/* globaltimer is seeded from the wall clock long ago and runs free: an epoch of its own. */
#define GPU_EPOCH_NS	   1756134813000000000ull
#define GPU_GRANULARITY_NS 1024

#define API_MAX	    7
#define API_DEFAULT 5 /* NCCL 2.28.9 */

static __thread char last_error[256];

long env_long(const char *name, long dflt)
{
	const char *s = getenv(name);
	char *end;
	long v;

	if (!s || !*s)
		return dflt;
	v = strtol(s, &end, 0);
	return *end ? dflt : v;
}

/* NCCL's configuration files: NAME=value lines, the environment wins. */
static void read_conf(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL, *eq;
	size_t n = 0;

	if (!f)
		return;
	while (getline(&line, &n, f) != -1) {
		line[strcspn(line, "\n")] = '\0';
		eq = strchr(line, '=');
		if (line[0] == '#' || !eq)
			continue;
		*eq = '\0';
		setenv(line, eq + 1, 0);
	}
	free(line);
	fclose(f);
}

static void read_confs(void)
{
	const char *file = getenv("NCCL_CONF_FILE");
	struct passwd *pw = getpwuid(getuid());
	char path[1024];

	if (file && *file) {
		read_conf(file);
	} else if (pw && pw->pw_dir) {
		snprintf(path, sizeof(path), "%s/.nccl.conf", pw->pw_dir);
		read_conf(path);
	}
	read_conf("/etc/nccl.conf");
}

static struct settings set;

static void settings_init(void)
{
	read_confs();
	set.dry = env_long("STANDIN_DRY", 0) != 0;
	set.native_api = env_long("STANDIN_PROFILER_API", API_DEFAULT);
	if (set.native_api < 1 || set.native_api > API_MAX)
		set.native_api = API_DEFAULT;
	set.ce = env_long("STANDIN_CE", 0) != 0;
	set.net_profiler = env_long("STANDIN_NET_PROFILER", 0) != 0;
	set.timeout_s = env_long("STANDIN_TIMEOUT", 60);
	set.thread_names = env_long("NCCL_SET_THREAD_NAME", 0) != 0;
	set.socket_inline = env_long("NCCL_SOCKET_INLINE", SOCKET_INLINE_MAX);
	set.socket_inline = MIN(set.socket_inline, SOCKET_INLINE_MAX);
	set.flows = getenv("STANDIN_FLOWS");
	set.callbacks = getenv("STANDIN_CALLBACKS");
}

const struct settings *settings(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, settings_init);
	return &set;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

uint64_t gpu_clock_ns(void)
{
	return (GPU_EPOCH_NS + now_ns()) / GPU_GRANULARITY_NS * GPU_GRANULARITY_NS;
}

uint64_t hash64(const void *data, size_t len, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t h = seed ^ 0xcbf29ce484222325ull;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3ull;
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdull;
	return h ^ h >> 29;
}

static int debug_level(void)
{
	const char *s = getenv("NCCL_DEBUG");

	if (!s)
		return 0;
	if (!strcasecmp(s, "INFO") || !strcasecmp(s, "TRACE"))
		return LOG_INFO;
	return strcasecmp(s, "WARN") ? 0 : LOG_WARN;
}

void si_log(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	char msg[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (level == LOG_WARN)
		snprintf(last_error, sizeof(last_error), "%.255s", msg);
	if (level > debug_level())
		return;
	(void)flags;
	fprintf(stderr, "standin[%d] NCCL %s %s:%d %s\n", (int)getpid(),
		level == LOG_WARN ? "WARN" : "INFO", base ? base + 1 : file, line, msg);
}

const char *si_last_error(void)
{
	return last_error;
}

void yield_politely(void)
{
	static _Thread_local unsigned int n;

	if (++n % 1024)
		sched_yield();
	else
		usleep(1);
}
