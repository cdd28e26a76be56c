// SPDX-License-Identifier: BSD-2-Clause
/* Ticks to CLOCK_MONOTONIC; see clock.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif
#include "clock.h"
#include "search.h"

#define COARSE_NS 10000000
_Static_assert(!(CLOCK_HISTORY & (CLOCK_HISTORY - 1)) && !(CLOCK_COARSE & (CLOCK_COARSE - 1)),
	       "pair_at()");

#define LEVER_NS 50000000 /* a rate measured over less than this is no prediction */

static uint64_t timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {0};

	clock_gettime(clock, &ts);
	return timespec_ns(&ts);
}

/* What our time namespace adds to the clocks. */
static int64_t ahead_ns, boot_ahead_ns;

/* The file has what our children are in: the same, but where an old kernel has executed us in what our parent was in. */
__attribute__((constructor)) static void learn_ahead(void)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	struct stat ours, childrens;
	long long s, ns, boot_s, boot_ns;

	if (f && !stat("/proc/self/ns/time", &ours) &&
	    !stat("/proc/self/ns/time_for_children", &childrens) &&
	    ours.st_ino == childrens.st_ino &&
	    fscanf(f, "monotonic %lld %lld boottime %lld %lld", &s, &ns, &boot_s, &boot_ns) == 4) {
		ahead_ns = s * NSEC_PER_SEC + ns;
		boot_ahead_ns = boot_s * NSEC_PER_SEC + boot_ns;
	}
	if (f)
		fclose(f);
}

uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - (uint64_t)ahead_ns;
}

struct timespec monotonic_until(uint64_t ns)
{
	ns += (uint64_t)ahead_ns;
	return (struct timespec){.tv_sec = (time_t)(ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(ns % NSEC_PER_SEC)};
}

int64_t boottime_ahead_ns(void)
{
	return boot_ahead_ns;
}

int64_t proc_tick_ns(void)
{
	long hz = sysconf(_SC_CLK_TCK);

	return NSEC_PER_SEC / (hz > 0 ? hz : 100);
}

void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){.tv_sec = ns / (long)NSEC_PER_SEC,
				     .tv_nsec = ns % (long)NSEC_PER_SEC},
		  NULL);
}

uint8_t clock_source(void)
{
#if defined(__x86_64__)
	unsigned int a, b, c, d;

	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)))
		return SCOPE_CLOCK_TSC;
#elif defined(__aarch64__)
	return SCOPE_CLOCK_CNTVCT;
#endif
	return SCOPE_CLOCK_MONOTONIC;
}

uint64_t clock_ticks(uint8_t source)
{
#if defined(__x86_64__)
	if (source == SCOPE_CLOCK_TSC)
		return __rdtsc();
#elif defined(__aarch64__)
	if (source == SCOPE_CLOCK_CNTVCT) {
		uint64_t v;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
		return v;
	}
#endif
	return monotonic_ns();
}

int clock_fit__init(struct clock_fit *fit, uint8_t source)
{
	struct clock_pair *pairs = calloc(CLOCK_HISTORY + CLOCK_COARSE, sizeof(*pairs));

	if (!pairs)
		return -ENOMEM;
	*fit = (struct clock_fit){
		.pairs = pairs,
		.fine = {.pair = pairs, .size = CLOCK_HISTORY},
		.coarse = {.pair = pairs + CLOCK_HISTORY, .size = CLOCK_COARSE},
		.source = source,
	};
	return 0;
}

void clock_fit__free(struct clock_fit *fit)
{
	free(fit->pairs);
	*fit = (struct clock_fit){0};
}

static const struct clock_pair *pair_at(const struct clock_ring *r, uint32_t i)
{
	return &r->pair[(r->first + i) & (r->size - 1)]; /* a power of two */
}

static const struct clock_pair *newest(const struct clock_ring *r)
{
	return r->n ? pair_at(r, r->n - 1) : NULL;
}

static void ring_add(struct clock_ring *r, struct clock_pair pair)
{
	if (r->n == r->size) {
		/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): clock_fit__init() */
		r->first = (r->first + 1) % r->size;
		r->n--;
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): likewise */
	r->pair[(r->first + r->n) % r->size] = pair;
	r->n++;
}

static bool is_later(const void *ring, uint64_t i, uint64_t ticks)
{
	return pair_at(ring, (uint32_t)i)->ticks > ticks;
}

/* Index of the pair that begins the segment around `ticks`; there are two pairs at least. */
static uint32_t segment(const struct clock_ring *r, uint64_t ticks)
{
	/* the first and the last go on as they are */
	return (uint32_t)search_later(1, r->n - 1, is_later, r, ticks) - 1;
}

/* What lies far out may take 128 bits. */
static uint64_t on_long_line(const struct clock_pair *a, const struct clock_pair *b, uint64_t ticks)
{
	__int128 dt = (__int128)ticks - a->ticks;
	__int128 ns = (__int128)a->ns + dt * (__int128)(b->ns - a->ns) / (b->ticks - a->ticks);

	return ns < 0 ? 0 : ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

/*
 * On the line through a and b; ticks may lie before, between or behind them. Nearly always they lie between, and
 * 64 bits are enough for the product, which spares a division of 128.
 */
static uint64_t on_line(const struct clock_pair *a, const struct clock_pair *b, uint64_t ticks)
{
	uint64_t product;

	if (ticks >= a->ticks && ticks <= b->ticks && b->ns <= INT64_MAX &&
	    !__builtin_mul_overflow(ticks - a->ticks, b->ns - a->ns, &product))
		return a->ns + product / (b->ticks - a->ticks);
	return on_long_line(a, b, ticks);
}

/* A pair that is at least LEVER_NS older than the newest; NULL if the history is shorter. */
static const struct clock_pair *lever(const struct clock_fit *fit)
{
	uint64_t until = newest(&fit->fine)->ns;
	uint32_t i;

	for (i = fit->coarse.n; i > 0; i--)
		if (pair_at(&fit->coarse, i - 1)->ns + LEVER_NS <= until)
			return pair_at(&fit->coarse, i - 1);
	return NULL;
}

static void check_fit(struct clock_fit *fit, uint64_t ticks, uint64_t ns)
{
	const struct clock_pair *last = newest(&fit->fine), *old = last ? lever(fit) : NULL;
	uint64_t predicted, error;

	if (!old)
		return;
	predicted = on_line(old, last, ticks);
	error = predicted > ns ? predicted - ns : ns - predicted;
	fit->last_error_ns = error;
	/* A loader that was stopped for seconds predicts far ahead, but converts nothing by it. */
	if (error > fit->error_ns && ns - last->ns < 200000000)
		fit->error_ns = error;
}

/*
 * By more than a second: not another CPU's, which is behind by a little. The TSC can where a machine wakes up from ACPI's S3, also one
 * that is invariant (see the kernel's arch/x86/kernel/tsc.c). Were the old pairs to stay, none would fit behind them
 * until it has come as far again, and nothing that is made meanwhile had a time.
 */
static bool begins_anew(const struct clock_fit *fit, const struct clock_pair *last, uint64_t ticks,
			uint64_t ns)
{
	return fit->hz && ns > last->ns && ticks < last->ticks && last->ticks - ticks > fit->hz;
}

void clock_fit__add(struct clock_fit *fit, uint64_t ticks, uint64_t ns)
{
	const struct clock_pair *last = newest(&fit->fine), *coarse, *old;
	const struct clock_pair pair = {ticks, ns};

	if (last && begins_anew(fit, last, ticks, ns)) {
		fit->fine.n = fit->coarse.n = 0;
		last = NULL;
	}
	if (last && (ticks <= last->ticks || ns <= last->ns))
		return;
	coarse = newest(&fit->coarse);
	check_fit(fit, ticks, ns);
	/* The fine ring may forget it now: then the coarse one is asked. */
	fit->begin = fit->end = (struct clock_pair){0};
	ring_add(&fit->fine, pair);
	if (!coarse || ns - coarse->ns >= COARSE_NS)
		ring_add(&fit->coarse, pair);
	old = pair_at(&fit->coarse, 0);
	if (ns > old->ns)
		fit->hz =
			(uint64_t)((__int128)(ticks - old->ticks) * NSEC_PER_SEC / (ns - old->ns));
}

bool clock_pair__read(uint8_t source, struct clock_pair *pair)
{
	uint64_t best = UINT64_MAX, before, after, ns;
	int i;

	if (source == SCOPE_CLOCK_MONOTONIC)
		return false;
	/* The narrowest of a few brackets: an interrupt or a hypervisor may come in between. */
	for (i = 0; i < 5; i++) {
		before = clock_ticks(source);
		ns = monotonic_ns();
		after = clock_ticks(source);
		if (after - before < best) {
			best = after - before;
			*pair = (struct clock_pair){before + (after - before) / 2, ns};
		}
	}
	return true;
}

bool clock_fit__covers(const struct clock_fit *fit, uint64_t ns)
{
	const struct clock_pair *last = newest(&fit->fine);

	return fit->source == SCOPE_CLOCK_MONOTONIC || (last && ns <= last->ns);
}

uint64_t clock_fit__to_ns(struct clock_fit *fit, uint8_t source, uint64_t ticks)
{
	const struct clock_ring *r = &fit->fine;
	uint32_t i;

	if (source == SCOPE_CLOCK_MONOTONIC || source != fit->source || r->n < 2)
		return source == SCOPE_CLOCK_MONOTONIC ? ticks : 0;
	if (ticks >= fit->begin.ticks && ticks < fit->end.ticks) /* mostly */
		return on_line(&fit->begin, &fit->end, ticks);
	if (ticks < pair_at(r, 0)->ticks && fit->coarse.n > 1)
		r = &fit->coarse;
	i = segment(r, ticks);
	fit->begin = *pair_at(r, i);
	fit->end = *pair_at(r, i + 1);
	return on_line(&fit->begin, &fit->end, ticks);
}

int64_t realtime_offset_ns(uint64_t *error_ns)
{
	struct timespec real;
	uint64_t before, after;

	before = monotonic_ns();
	clock_gettime(CLOCK_REALTIME, &real);
	after = monotonic_ns();
	*error_ns = (after - before + 1) / 2;
	return (int64_t)(timespec_ns(&real) - (before + (after - before) / 2));
}
