// SPDX-License-Identifier: BSD-2-Clause
/* A GPU's clock in the node's; see gpu_clock.h. */
#include "gpu_clock.h"
#include "less.h"

#define TIME_MAX (UINT64_MAX / 4) /* what is later is made up; sums of two fit into 63 bits */

/* So far may a bound have moved since it was known. */
static int64_t drift_ns(const struct gpu_bound *b, uint64_t now_ns)
{
	return (int64_t)(less(now_ns, b->at_ns) / (1000000 / GPU_DRIFT_PPM));
}

static int64_t low_at(const struct gpu_bound *b, uint64_t now_ns)
{
	return b->ns - drift_ns(b, now_ns);
}

static int64_t high_at(const struct gpu_bound *b, uint64_t now_ns)
{
	return b->ns + drift_ns(b, now_ns);
}

static bool contradicts(const struct gpu_clock *g, const struct gpu_bound *low,
			const struct gpu_bound *high)
{
	return (low->at_ns && g->high.at_ns && low->ns > high_at(&g->high, low->at_ns)) ||
	       (high->at_ns && g->low.at_ns && high->ns < low_at(&g->low, high->at_ns));
}

void gpu_clock__add(struct gpu_clock *g, uint64_t stamp_ns, uint64_t after_ns, uint64_t before_ns)
{
	struct gpu_bound low = {.at_ns = after_ns}, high = {.at_ns = before_ns};

	if (!stamp_ns || stamp_ns > TIME_MAX || after_ns > TIME_MAX || before_ns > TIME_MAX ||
	    (before_ns && after_ns > before_ns))
		return;
	low.ns = (int64_t)after_ns - (int64_t)stamp_ns - GPU_GRAIN_NS;
	high.ns = (int64_t)before_ns - (int64_t)stamp_ns;
	if (contradicts(g, &low, &high))
		*g = (struct gpu_clock){0};
	if (after_ns && (!g->low.at_ns || low.ns >= low_at(&g->low, after_ns)))
		g->low = low;
	if (before_ns && (!g->high.at_ns || high.ns <= high_at(&g->high, before_ns)))
		g->high = high;
}

bool gpu_clock__offset(const struct gpu_clock *g, uint64_t now_ns, int64_t *offset_ns,
		       uint64_t *error_ns)
{
	int64_t low, high;

	if (!g->low.at_ns || !g->high.at_ns)
		return false;
	low = low_at(&g->low, now_ns);
	high = high_at(&g->high, now_ns);
	/* from one to the other may be more than 63 bits have room for */
	if (high < low || (uint64_t)high - (uint64_t)low > 2 * GPU_ERROR_MAX_NS)
		return false;
	*offset_ns = low + (high - low) / 2;
	*error_ns = (uint64_t)(high - low + 1) / 2 + GPU_GRAIN_NS;
	return true;
}
