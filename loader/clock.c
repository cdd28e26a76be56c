// SPDX-License-Identifier: BSD-2-Clause
/* Ticks to CLOCK_MONOTONIC; see clock.h. */
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif
#include "clock.h"

#define LEVER_NS 50000000 /* a rate measured over less than this is no prediction */

static uint64_t timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec;
}

uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return timespec_ns(&ts);
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

void clock_fit__init(struct clock_fit *fit, uint8_t source)
{
	memset(fit, 0, sizeof(*fit));
	fit->source = source;
}

static const struct clock_pair *pair_at(const struct clock_fit *fit, uint32_t i)
{
	return &fit->pair[(fit->first + i) % CLOCK_HISTORY];
}

/* On the line through a and b; ticks may lie before, between or behind them. */
static uint64_t on_line(const struct clock_pair *a, const struct clock_pair *b, uint64_t ticks)
{
	__int128 dt = (__int128)ticks - a->ticks;
	__int128 ns = (__int128)a->ns + dt * (__int128)(b->ns - a->ns) / (b->ticks - a->ticks);

	return ns < 0 ? 0 : ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

/* The newest pair that is at least LEVER_NS older than the last; NULL if the history is shorter. */
static const struct clock_pair *lever(const struct clock_fit *fit)
{
	uint64_t until = pair_at(fit, fit->n - 1)->ns;
	uint32_t lo = 0, hi = fit->n - 1, mid;

	if (until < LEVER_NS || pair_at(fit, 0)->ns > until - LEVER_NS)
		return NULL;
	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (pair_at(fit, mid)->ns <= until - LEVER_NS)
			lo = mid;
		else
			hi = mid;
	}
	return pair_at(fit, lo);
}

static void check_fit(struct clock_fit *fit, uint64_t ticks, uint64_t ns)
{
	const struct clock_pair *old = fit->n > 1 ? lever(fit) : NULL;
	uint64_t predicted, error;

	if (!old)
		return;
	predicted = on_line(old, pair_at(fit, fit->n - 1), ticks);
	error = predicted > ns ? predicted - ns : ns - predicted;
	fit->last_error_ns = error;
	/* A loader that was stopped for seconds predicts far ahead, but converts nothing by it. */
	if (error > fit->error_ns && ns - pair_at(fit, fit->n - 1)->ns < 200000000)
		fit->error_ns = error;
}

void clock_fit__add(struct clock_fit *fit, uint64_t ticks, uint64_t ns)
{
	const struct clock_pair *last = fit->n ? pair_at(fit, fit->n - 1) : NULL;

	if (last && (ticks <= last->ticks || ns <= last->ns))
		return;
	check_fit(fit, ticks, ns);
	if (fit->n == CLOCK_HISTORY) {
		fit->first = (fit->first + 1) % CLOCK_HISTORY;
		fit->n--;
	}
	fit->pair[(fit->first + fit->n) % CLOCK_HISTORY] = (struct clock_pair){ticks, ns};
	fit->n++;
	if (fit->n > 1) {
		const struct clock_pair *old = pair_at(fit, 0);

		fit->hz = (uint64_t)((__int128)(ticks - old->ticks) * 1000000000 / (ns - old->ns));
	}
}

void clock_fit__sample(struct clock_fit *fit)
{
	uint64_t best = UINT64_MAX, before, after, ns, at_ticks = 0, at_ns = 0;
	int i;

	if (fit->source == SCOPE_CLOCK_MONOTONIC)
		return;
	/* The narrowest of a few brackets: an interrupt or a hypervisor may come in between. */
	for (i = 0; i < 5; i++) {
		before = clock_ticks(fit->source);
		ns = monotonic_ns();
		after = clock_ticks(fit->source);
		if (after - before < best) {
			best = after - before;
			at_ticks = before + (after - before) / 2;
			at_ns = ns;
		}
	}
	clock_fit__add(fit, at_ticks, at_ns);
}

bool clock_fit__is_ahead(const struct clock_fit *fit, uint64_t ticks)
{
	return fit->source != SCOPE_CLOCK_MONOTONIC &&
	       (!fit->n || ticks > pair_at(fit, fit->n - 1)->ticks);
}

uint64_t clock_fit__to_ns(const struct clock_fit *fit, uint8_t source, uint64_t ticks)
{
	uint32_t lo, hi, mid;

	if (source == SCOPE_CLOCK_MONOTONIC || source != fit->source || fit->n < 2)
		return source == SCOPE_CLOCK_MONOTONIC ? ticks : 0;
	/* Nearly always the newest: records are milliseconds old. */
	hi = fit->n - 1;
	if (ticks >= pair_at(fit, hi - 1)->ticks)
		return on_line(pair_at(fit, hi - 1), pair_at(fit, hi), ticks);
	lo = 0;
	while (hi - lo > 1) {
		mid = (lo + hi) / 2;
		if (pair_at(fit, mid)->ticks <= ticks)
			lo = mid;
		else
			hi = mid;
	}
	return on_line(pair_at(fit, lo), pair_at(fit, lo + 1), ticks);
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
