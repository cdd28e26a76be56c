// SPDX-License-Identifier: BSD-2-Clause
/* What GPUs did: over the whole trace, and where their ranks came late; see report.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "human.h"
#include "report_priv.h"

#define GPUS_MAX 4096

/* ---- Reading ----------------------------------------------------------------------------------- */

struct report_gpu *report_gpu_of(struct report *r, struct report_proc *p, uint32_t uuid)
{
	struct report_gpu key = {.node = p->node, .uuid = uuid}, *g;
	const size_t len = offsetof(struct report_gpu, host);

	HASH_FIND(hh, r->gpus, &key, len, g);
	if (!g && HASH_COUNT(r->gpus) >= GPUS_MAX) {
		r->totals.gpus_left++;
		return NULL;
	}
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (g) {
			*g = key;
			g->host = p->host;
			g->proc = p->self;
			g->until = INT64_MIN;
			HASH_ADD(hh, r->gpus, node, len, g);
		}
		if (!g || !HASH_ADDED(hh, g)) {
			free(g);
			r->err = -ENOMEM;
			return NULL;
		}
	}
	p->several_gpus |= p->gpu && p->gpu != g;
	p->gpu = p->self->gpu = g;
	return g;
}

/* A trace says what it likes. */
static void count(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

static void add_time(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

void report_gpu_add(struct report_gpu *g, const struct report_gpu_sample *s)
{
	uint32_t i;

	if (s->to <= g->until) /* another process on it has told of it */
		return;
	g->until = s->to;
	g->lost |= s->lost;
	g->last[g->nlast++ % REPORT_GPU_SAMPLES] = *s;
	add_time(&g->time, s->ns);
	for (i = 0; i < REPORT_HELD_WHYS; i++)
		add_time(&g->held[i], s->held[i]);
	for (i = 0; i < REPORT_GPU_ERRORS; i++)
		count(&g->errors[i], s->errors[i]);
	g->temperature = most(g->temperature, s->temperature);
	g->width = most(g->width, s->width);
	if (s->power) {
		g->power += s->power;
		g->npower++;
	}
	g->util += s->util;
	g->n++;
	if (s->clock && s->util) { /* one that has nothing to do is slow */
		g->clock += s->clock;
		g->nclock++;
	}
}

int32_t report_gpu_rank(const struct report_gpu *g)
{
	return g->proc->several_gpus ? -1 : g->proc->rank;
}

int64_t report_gpu_clock(const struct report_gpu *g)
{
	return g->nclock ? g->clock / g->nclock : 0;
}

/* ---- Where a rank came late --------------------------------------------------------------------- */

#define ODD_SHARE 0.1  /* of the time held down for so much more than its peers' */
#define ODD_CLOCK 0.95 /* or so much slower */
#define STALE_NS  (5 * INT64_C(1000000000))

/* The sample that has that time, or the last one before it; NULL: none that tells of it. */
static const struct report_gpu_sample *sample_at(const struct report_part *p)
{
	const struct report_gpu *g = p->proc->gpu;
	const struct report_gpu_sample *best = NULL, *s;
	uint32_t i;

	if (!g || p->proc->several_gpus)
		return NULL;
	for (i = 0; i < REPORT_GPU_SAMPLES && i < g->nlast; i++) {
		s = &g->last[i];
		if (s->to - s->ns <= p->start && (!best || s->to > best->to))
			best = s;
		if (s->to - s->ns <= p->start && s->to >= p->start)
			return s;
	}
	return best && p->start - best->to <= STALE_NS ? best : NULL;
}

static int64_t held_per_mille(const struct report_gpu_sample *s)
{
	int64_t sum = 0;
	int i;

	for (i = 0; i < REPORT_HELD_WHYS; i++)
		sum += s->held[i]; /* each within ns */
	return s->ns > 0 ? 1000 * least(sum, s->ns) / s->ns : 0;
}

#define PEERS_MAX 1024

struct peers {
	uint32_t n;
	int64_t held, clock; /* medians; clock 0: not known */
};

static struct peers peers_of(const struct report_op *op, const struct report_part *but)
{
	int64_t held[PEERS_MAX], clock[PEERS_MAX];
	uint32_t n = 0, nclock = 0, i;
	const struct report_gpu_sample *s;

	for (i = 0; i < op->nparts && n < PEERS_MAX; i++) {
		s = op->parts[i] != but && op->parts[i]->proc->gpu != but->proc->gpu
			    ? sample_at(op->parts[i])
			    : NULL;
		if (!s)
			continue;
		held[n++] = held_per_mille(s);
		if (s->clock && s->util)
			clock[nclock++] = s->clock;
	}
	return (struct peers){n, report_median(held, n), report_median(clock, nclock)};
}

static bool is_of_gpu(enum report_code code)
{
	return code == CODE_LATE_RANK || code == CODE_LATE_KERNEL || code == CODE_GPU_WAIT;
}

void report_gpu_note(const struct report *r, struct report_find *f, const struct report_op *op,
		     const struct report_part *part)
{
	struct report_gpu_find *g = &f->gpu;
	const struct report_gpu_sample *s;
	struct peers peers;
	int i;

	if (!r->gpus || !part || !is_of_gpu(f->key.code) || g->judged == r->judged)
		return;
	g->judged = r->judged;
	s = sample_at(part);
	if (!s)
		return;
	peers = peers_of(op, part);
	if (!peers.n)
		return;
	g->n++;
	if (held_per_mille(s) - peers.held < 1000 * ODD_SHARE &&
	    !(s->util && s->clock && (double)s->clock < ODD_CLOCK * (double)peers.clock))
		return;
	g->odd++;
	add_time(&g->time, s->ns);
	for (i = 0; i < REPORT_HELD_WHYS; i++)
		add_time(&g->held[i], s->held[i]);
	if (s->clock && peers.clock) {
		g->clock += s->clock;
		g->peers += peers.clock;
		g->nclock++;
	}
}

/* ---- Telling ----------------------------------------------------------------------------------- */

static int longest(const int64_t held[REPORT_HELD_WHYS])
{
	int i, why = 0;

	for (i = 1; i < REPORT_HELD_WHYS; i++)
		if (held[i] > held[why])
			why = i;
	return why;
}

bool report_tell_gpu(const struct report_find *f, char *at, size_t len)
{
	const struct report_gpu *gpu = f->who ? f->who->self->gpu : NULL;
	const struct report_gpu_find *g = &f->gpu;
	int why = longest(g->held), n;

	if (gpu && gpu->lost) {
		snprintf(at, len, "its GPU %u is lost: the driver could not reach it any more",
			 gpu->index);
		return true;
	}
	if (!gpu || !g->odd || g->odd < g->n / 4)
		return false;
	n = snprintf(at, len, "in %u of %u of these its GPU %u was slower than its peers'", g->odd,
		     g->n, gpu->index);
	if (g->nclock)
		n += snprintf(at + n, len - (size_t)n, " (%lld MHz, theirs %lld)",
			      (long long)(g->clock / g->nclock), (long long)(g->peers / g->nclock));
	if (g->held[why] > g->time / 100)
		snprintf(at + n, len - (size_t)n, ", held down by %s for %.0f %% of the time",
			 gpu_value_names[GPU_HELD_FIRST + why],
			 100 * (double)g->held[why] / (double)g->time);
	return true;
}

/* ---- Over the whole trace ------------------------------------------------------------------------ */

static int by_place(const struct report_gpu *a, const struct report_gpu *b)
{
	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

void report_gpus_end(struct report *r)
{
	HASH_SORT(r->gpus, by_place);
}

/* The median of the clocks of those that are alike. */
static int64_t usual_clock(const struct report *r, const struct report_gpu *gpu)
{
	int64_t clock[PEERS_MAX];
	const struct report_gpu *g, *tmp;
	uint32_t n = 0;

	HASH_ITER (hh, r->gpus, g, tmp)
		if (g->name == gpu->name && g->nclock && n < PEERS_MAX)
			clock[n++] = report_gpu_clock(g);
	return report_median(clock, n);
}

/* A word more; it stands as far as there is room. */
__attribute__((format(printf, 3, 4))) static void add(char *at, size_t len, const char *fmt, ...)
{
	size_t n = strlen(at);
	va_list args;

	if (n && n + 3 < len) {
		memcpy(at + n, ", ", 3);
		n += 2;
	}
	va_start(args, fmt);
	vsnprintf(at + n, len - n, fmt, args);
	va_end(args);
}

/* What a power limit takes is how most GPUs work. */
bool report_gpu_trouble(const struct report *r, const struct report_gpu *g, char *at, size_t len)
{
	int64_t usual = usual_clock(r, g), clock = report_gpu_clock(g);
	int i;

	*at = 0;
	if (g->lost)
		add(at, len, "lost");
	for (i = 0; i < REPORT_HELD_WHYS; i++)
		if (GPU_HELD_FIRST + i != GPU_HELD_SW_POWER_CAP && g->held[i] > g->time / 100)
			add(at, len, "%s %.0f %%", gpu_value_names[GPU_HELD_FIRST + i],
			    100 * (double)g->held[i] / (double)g->time);
	if (clock && (double)clock < ODD_CLOCK * (double)usual)
		add(at, len, "%lld MHz below others", (long long)(usual - clock));
	if (g->width && g->width < g->width_max)
		add(at, len, "PCIe x%lld of x%lld", (long long)g->width, (long long)g->width_max);
	for (i = 0; i < REPORT_GPU_ERRORS; i++)
		if (g->errors[i] && GPU_ERROR_FIRST + i != GPU_ECC_CORRECTED)
			add(at, len, "%s %llu", gpu_value_names[GPU_ERROR_FIRST + i],
			    (unsigned long long)g->errors[i]);
	return *at != 0;
}
