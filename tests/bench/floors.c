// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the parts of a callback cost at least on this machine: the clock, a store, a copy, a trap, a write. Each is
 * timed in a loop of its own, the quietest of many, so that others on the machine do not count.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#define _SDT_HAS_SEMAPHORES 1
unsigned short floors_hit_semaphore __attribute__((section(".probes")));
#include <sys/sdt.h>

#define NSEC_PER_SEC 1000000000ull
#define RUNS	     40
#define BUFFER	     8192 /* as the plugin's */
#define LINE	     300  /* bytes of a JSON line */

static char *memory, *other;
static int file;
static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static __attribute__((noinline)) void probe(void *arg)
{
	__asm__ volatile("" : "+r"(arg));
	DTRACE_PROBE1(floors, hit, arg);
	__asm__ volatile("" ::: "memory");
}

static void ticks(unsigned int n)
{
	uint64_t sum = 0;

	while (n--)
#if defined(__x86_64__)
		sum += __rdtsc();
#else
		sum += now_ns();
#endif
	sink = sum;
}

static void clocks(unsigned int n)
{
	uint64_t sum = 0;

	while (n--)
		sum += now_ns();
	sink = sum;
}

/* A record of 64 bytes, to the next place of a buffer. */
static void stores(unsigned int n)
{
	uint64_t v[8] = {n, n, n, n, n, n, n, n};

	while (n--) {
		v[0] = n;
		memcpy(memory + (size_t)(n % (BUFFER / 64)) * 64, v, sizeof(v));
		__asm__ volatile("" ::: "memory");
	}
}

static void copies(unsigned int n)
{
	while (n--) {
		memcpy(other + (size_t)(n % 512) * BUFFER, memory,
		       BUFFER); /* as into a ring of 4 MiB */
		__asm__ volatile("" ::: "memory");
	}
}

static void traps(unsigned int n)
{
	while (n--)
		probe(memory);
}

static void writes(unsigned int n)
{
	if (lseek(file, 0, SEEK_SET) < 0)
		abort();
	while (n--)
		if (write(file, memory, LINE) != LINE)
			abort();
}

static void formats(unsigned int n)
{
	while (n--)
		snprintf(other, BUFFER,
			 "{\"recordType\":\"state\",\"eventAddr\":\"%p\",\"ts\":%.3f,\"name\":\"%"
			 "s\","
			 "\"id\":%d,\"pid\":%d,\"tid\":%d}\n",
			 (void *)memory, (double)n * 1.001, "ProxyStepSendWait", 9, 12345, 12346);
}

static double floor_ns(void (*fn)(unsigned int n), unsigned int n)
{
	double best = 1e18, ns;
	uint64_t begin;
	int i;

	for (i = 0; i < RUNS; i++) {
		begin = now_ns();
		fn(n);
		ns = (double)(now_ns() - begin) / n;
		if (ns < best)
			best = ns;
	}
	return best;
}

/* floors FILE: writes there. floors --probe: the probe's site alone, for as long as somebody is attached or not. */
int main(int argc, char **argv)
{
	memory = aligned_alloc(4096, BUFFER);
	other = aligned_alloc(4096, 512 * BUFFER);
	if (argc != 2 || !memory || !other) {
		fprintf(stderr, "Usage: floors FILE | floors --probe\n");
		return 2;
	}
	memset(memory, 1, BUFFER);
	memset(other, 1, 512 * BUFFER);
	if (!strcmp(argv[1], "--probe")) {
		printf("{\"attached\":%s,\"probe\":%.2f}\n",
		       floors_hit_semaphore ? "true" : "false", floor_ns(traps, 20000));
		return 0;
	}
	file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0) {
		fprintf(stderr, "floors: Failed to make '%s': %s\n", argv[1], strerror(errno));
		return 1;
	}
	printf("{\"rdtsc\":%.2f,\"clockGettime\":%.2f,\"store64\":%.2f,\"copy8k\":%.1f,"
	       "\"site\":%.2f,\"write300\":%.1f,\"snprintf\":%.1f}\n",
	       floor_ns(ticks, 100000), floor_ns(clocks, 20000), floor_ns(stores, 100000),
	       floor_ns(copies, 2000), floor_ns(traps, 100000), floor_ns(writes, 2000),
	       floor_ns(formats, 2000));
	return 0;
}
