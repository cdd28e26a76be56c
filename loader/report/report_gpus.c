// SPDX-License-Identifier: BSD-2-Clause
/* What GPUs did: over the whole trace, and where their ranks came late; see report.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "human.h"
#include "report_priv.h"

#define GPUS_MAX       4096
#define GPUS_TOLD_MAX  8192 /* of recordings: 100 MB */
#define GPUS_TOLD_EACH 64   /* of one, which are looked through for each sample */

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
			HASH_ADD(hh, r->gpus, node, len, g);
		}
		if (!g || !HASH_ADDED(hh, g)) {
			free(g);
			r->err = -ENOMEM;
			return NULL;
		}
	}
	p->self->several_gpus |= p->self->gpu && p->self->gpu != g;
	p->self->gpu = g;
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

#define AFTER_NS INT64_C(3000000000) /* one has gone, and another comes */

/* A new one in place of the one that has been gone for longest, where there is no room. */
static struct report_gpu_user *user_of(struct report_gpu *g, struct report_proc *p, int64_t at)
{
	struct report_gpu_user *u = g->users, *oldest = u;

	for (; u < g->users + g->nusers; u++) {
		if (u->proc == p)
			return u;
		if (u->last < oldest->last)
			oldest = u;
	}
	u = g->nusers < REPORT_GPU_USERS ? &g->users[g->nusers++] : oldest;
	*u = (struct report_gpu_user){p, at, at};
	return u;
}

/* Whether others are on it at a time, and who is the last one. */
static void note_user(struct report_gpu *g, struct report_proc *p, int64_t at)
{
	struct report_gpu_user *own = user_of(g, p, at), *u;
	bool newest = true;

	own->first = least(own->first, at);
	own->last = most(own->last, at);
	for (u = g->users; u < g->users + g->nusers; u++) {
		if (u == own)
			continue;
		g->shared |= own->first <= u->last + AFTER_NS && u->first <= own->last + AFTER_NS;
		newest &= own->last > u->last;
	}
	if (newest && !g->shared)
		g->proc = p;
}

/* In its order; of what is older than all that there is room for the newest is kept. */
static void keep_sample(struct report_gpu_past *past, const struct report_gpu_sample *s)
{
	uint32_t i = past->n++;

	for (; i && i + REPORT_GPU_SAMPLES > past->n; i--) {
		if (past->at[(i - 1) % REPORT_GPU_SAMPLES].to <= s->to)
			break;
		past->at[i % REPORT_GPU_SAMPLES] = past->at[(i - 1) % REPORT_GPU_SAMPLES];
	}
	past->at[i % REPORT_GPU_SAMPLES] = *s;
}

static struct report_gpu_told *told_of(const struct report_proc *p, const struct report_gpu *g)
{
	struct report_gpu_told *t = p->gpus_told;

	while (t && t->gpu != g)
		t = t->next;
	return t;
}

/* Where it is kept for its recording; NULL: there are more than there is room for. */
static struct report_gpu_past *past_of(struct report *r, struct report_proc *p,
				       struct report_gpu *g)
{
	struct report_gpu_told *t = told_of(p, g);

	if (t)
		return &t->past;
	if (r->ngpus_told >= GPUS_TOLD_MAX || p->ngpus_told >= GPUS_TOLD_EACH)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t) {
		r->err = -ENOMEM;
		return NULL;
	}
	t->gpu = g;
	t->next = p->gpus_told;
	p->gpus_told = t;
	p->ngpus_told++;
	r->ngpus_told++;
	return &t->past;
}

void report_gpus_told(struct report *r, struct report_proc *p)
{
	struct report_gpu_told *t;

	while ((t = p->gpus_told) && r->ngpus_told > GPUS_TOLD_MAX / 2) {
		p->gpus_told = t->next;
		free(t);
		p->ngpus_told--;
		r->ngpus_told--;
	}
}

void report_gpus_told_free(struct report_proc *p)
{
	struct report_gpu_told *t;

	while ((t = p->gpus_told)) {
		p->gpus_told = t->next;
		free(t);
	}
}

void report_gpu_add(struct report *r, struct report_proc *p, struct report_gpu *g,
		    const struct report_gpu_sample *s)
{
	struct report_gpu_past *past;
	uint32_t i;

	if (s->lost && !p->self->lost_gpu)
		p->self->lost_gpu = g;
	note_user(g, p->self, s->to);
	past = past_of(r, p, g);
	if (past)
		keep_sample(past, s);
	if (report_spans_have(&g->told, s->to - 1,
			      s->to)) /* another process on it has told of it */
		return;
	if (!report_spans_add(r, &g->told, p->index, s->to - most(s->ns, 1), s->to,
			      &r->totals.gpus_left))
		return;
	g->lost |= s->lost;
	keep_sample(&g->past, s);
	add_time(&g->time, s->ns);
	for (i = 0; i < REPORT_HELD_WHYS; i++)
		add_time(&g->held[i], s->held[i]);
	for (i = 0; i < REPORT_GPU_ERRORS; i++)
		count(&g->errors[i], s->errors[i]);
	g->temperature = most(g->temperature, s->temperature);
	g->width = most(g->width, s->width);
	g->power += s->power;
	g->npower += s->power != 0;
	g->util += most(0, s->util);
	g->nutil += s->util >= 0;
	g->clock += s->clock;
	g->nclock += s->clock != 0;
}

int32_t report_gpu_rank(const struct report_gpu *g)
{
	return g->shared || g->proc->several_gpus ? -1 : g->proc->rank;
}

int64_t report_gpu_clock(const struct report_gpu *g)
{
	return g->nclock ? g->clock / g->nclock : 0;
}

/* ---- Where a rank came late --------------------------------------------------------------------- */

#define ODD_SHARE 0.1  /* of the time held down for so much more than its peers' */
#define ODD_CLOCK 0.95 /* or so much slower */
#define STALE_NS  (5 * INT64_C(1000000000))

/* That it is on; NULL: not known. */
static const struct report_gpu *gpu_of(const struct report *r, const struct report_part *p)
{
	const struct report_gpu key = {.node = p->proc->node, .uuid = p->gpu};
	struct report_gpu *g;

	if (!p->gpu)
		return p->proc->self->several_gpus ? NULL : p->proc->self->gpu;
	HASH_FIND(hh, r->gpus, &key, offsetof(struct report_gpu, host), g);
	return g;
}

/* The one that has that time, or the last one before it; NULL: none is so near. */
static const struct report_gpu_sample *sample_in(const struct report_gpu_past *past, int64_t at)
{
	const struct report_gpu_sample *s;
	uint32_t i;

	for (i = 1; i <= REPORT_GPU_SAMPLES && i <= past->n; i++) {
		s = &past->at[(past->n - i) % REPORT_GPU_SAMPLES];
		if (s->to - s->ns <= at)
			return at - s->to <= STALE_NS ? s : NULL;
	}
	return NULL;
}

/* The sample that tells of when the rank came, of its own recording or, if that has none so near, of any; NULL: none does. */
static const struct report_gpu_sample *sample_at(const struct report_gpu *g,
						 const struct report_part *p)
{
	const struct report_gpu_sample *s = NULL;
	const struct report_gpu_told *t;

	if (!g)
		return NULL;
	t = told_of(p->proc, g);
	if (t)
		s = sample_in(&t->past, p->start);
	return s ?: sample_in(&g->past, p->start);
}

/* What power limits and groups of GPUs that keep step take is how they are meant to work, and who works more comes to the former more often. */
static bool is_trouble(enum gpu_value held)
{
	return held == GPU_HELD_SW_THERMAL || held == GPU_HELD_HW_THERMAL ||
	       held == GPU_HELD_POWER_BRAKE || held == GPU_HELD_THERMAL;
}

static int64_t held_per_mille(const struct report_gpu_sample *s)
{
	int64_t sum = 0;
	int i;

	for (i = 0; i < REPORT_HELD_WHYS; i++)
		if (is_trouble(GPU_HELD_FIRST + i))
			sum += s->held[i]; /* each within ns */
	return s->ns > 0 ? 1000 * least(sum, s->ns) / s->ns : 0;
}

#define PEERS_MAX 1024

/* Medians of GPUs of the same kind; 0: not known. */
struct peers {
	uint32_t n;
	int64_t held, clock, power;
};

static struct peers peers_of(const struct report *r, const struct report_op *op,
			     const struct report_gpu *own)
{
	int64_t held[PEERS_MAX], clock[PEERS_MAX], power[PEERS_MAX];
	const struct report_gpu *g;
	uint32_t n = 0, nclock = 0, npower = 0, i;
	const struct report_gpu_sample *s;

	for (i = 0; i < op->nparts && n < PEERS_MAX; i++) {
		g = gpu_of(r, op->parts[i]);
		if (!g || g == own || g->name != own->name)
			continue;
		s = sample_at(g, op->parts[i]);
		if (!s)
			continue;
		held[n++] = held_per_mille(s);
		if (s->clock)
			clock[nclock++] = s->clock;
		if (s->power)
			power[npower++] = s->power;
	}
	return (struct peers){n, report_median(held, n), report_median(clock, nclock),
			      report_median(power, npower)};
}

/* Who works more than peers that wait takes more power, and is slower for that: then it is no cause. */
static bool is_slower(const struct report_gpu_sample *s, const struct peers *peers)
{
	if (!s->clock || (double)s->clock >= ODD_CLOCK * (double)peers->clock)
		return false;
	return s->power && peers->power && s->power <= peers->power;
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
	const struct report_gpu *own;
	struct peers peers;
	int i;

	if (!r->gpus || !part || !is_of_gpu(f->key.code) || g->judged == r->judged)
		return;
	g->judged = r->judged;
	own = gpu_of(r, part);
	s = sample_at(own, part);
	if (!s)
		return;
	peers = peers_of(r, op, own);
	if (!peers.n)
		return;
	g->n++;
	if (held_per_mille(s) - peers.held < 1000 * ODD_SHARE && !is_slower(s, &peers))
		return;
	g->odd++;
	g->gpu = own;
	g->samples += s->to != g->last;
	g->last = s->to;
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

/* What is trouble goes before what is not. */
static int main_reason(const struct report_gpu_find *g)
{
	int i, why = 0;
	bool trouble = false, more;

	for (i = 0; i < REPORT_HELD_WHYS; i++) {
		more = is_trouble(GPU_HELD_FIRST + i) && g->held[i] > g->time / 100;
		if (more == trouble ? g->held[i] > g->held[why] : more)
			why = i;
		trouble |= more;
	}
	return why;
}

/* Of half of them at least, and not of one moment. */
#define SAMPLES_LEAST 2

bool report_tell_gpu(const struct report_find *f, char *at, size_t len)
{
	const struct report_proc *p = f->who ? f->who->self : NULL;
	const struct report_gpu_find *g = &f->gpu;
	int why = main_reason(g), n;

	if (p && p->lost_gpu) {
		snprintf(at, len, "%s GPU %u is lost: the driver could not reach it any more",
			 p->several_gpus ? "its process'" : "its", p->lost_gpu->index);
		return true;
	}
	if (!g->gpu || g->samples < SAMPLES_LEAST || 2 * (uint64_t)g->odd < g->n)
		return false;
	n = snprintf(at, len, "in %u of %u of these its GPU %u did less than its peers'", g->odd,
		     g->n, g->gpu->index);
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

static int by_clock(const void *a, const void *b)
{
	const struct report_gpu *x = *(struct report_gpu *const *)a,
				*y = *(struct report_gpu *const *)b;
	int64_t cx = report_gpu_clock(x), cy = report_gpu_clock(y);

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (cx > cy) - (cx < cy);
}

/* Of those of a name the lower of two in the middle. */
static void find_usual(struct report *r)
{
	struct report_gpu **list = calloc(HASH_COUNT(r->gpus) + 1, sizeof(struct report_gpu *)), *g,
			  *tmp;
	uint32_t n = 0, i, k, end;

	if (!list) {
		r->err = -ENOMEM;
		return;
	}
	HASH_ITER (hh, r->gpus, g, tmp)
		if (g->nclock)
			list[n++] = g;
	qsort(list, n, sizeof(*list), by_clock);
	for (i = 0; i < n; i = end) {
		for (end = i; end < n && list[end]->name == list[i]->name; end++)
			;
		for (k = i; k < end; k++)
			list[k]->usual = report_gpu_clock(list[i + (end - i - 1) / 2]);
	}
	free(list);
}

void report_gpus_end(struct report *r)
{
	HASH_SORT(r->gpus, by_place);
	find_usual(r);
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

#define RATE_NS                                                                                    \
	(INT64_C(60000000000) /                                                                    \
	 8) /* of what links send again: some are within what they are made for */

static bool are_too_many(const struct report_gpu *g, enum gpu_value error)
{
	uint64_t n = g->errors[error - GPU_ERROR_FIRST];

	switch (error) {
	case GPU_ECC_UNCORRECTED:
	case GPU_NVLINK_RECOVERY:
		return n;
	case GPU_ECC_CORRECTED:
		return false;
	default:
		return n > 8 && n > (uint64_t)(g->time / RATE_NS);
	}
}

bool report_gpu_trouble(const struct report_gpu *g, char *at, size_t len)
{
	int64_t clock = report_gpu_clock(g);
	int i;

	*at = 0;
	if (g->lost)
		add(at, len, "lost");
	for (i = 0; i < REPORT_HELD_WHYS; i++)
		if (is_trouble(GPU_HELD_FIRST + i) && g->held[i] > g->time / 100)
			add(at, len, "%s %.0f %%", gpu_value_names[GPU_HELD_FIRST + i],
			    100 * (double)g->held[i] / (double)g->time);
	if (clock && (double)clock < ODD_CLOCK * (double)g->usual)
		add(at, len, "%lld MHz below others", (long long)(g->usual - clock));
	if (g->width && g->width < g->width_max)
		add(at, len, "PCIe x%lld of x%lld", (long long)g->width, (long long)g->width_max);
	for (i = 0; i < REPORT_GPU_ERRORS; i++)
		if (are_too_many(g, GPU_ERROR_FIRST + i))
			add(at, len, "%s %llu", gpu_value_names[GPU_ERROR_FIRST + i],
			    (unsigned long long)g->errors[i]);
	return *at != 0;
}
