// SPDX-License-Identifier: BSD-2-Clause
/* The report for people, GPUs that had trouble. */
#include <string.h>
#include "human.h"
#include "report_text_priv.h"

#define TROUBLE_COLUMNS 100

/* "-" where it is not known. */
static const char *figure(char at[24], bool known, int64_t n)
{
	if (known)
		snprintf(at, 24, "%lld", (long long)n);
	else
		snprintf(at, 24, "-");
	return at;
}

static void gpu_row(const struct report *r, const struct report_gpu *g, const char *trouble,
		    FILE *f)
{
	char rank[24], clock[24], busy[24], power[24], heat[24];

	fprintf(f, "%-16.16s %4u %5s %6s %5s %6s %5s  %s\n", words__name(r, g->host, 16), g->index,
		figure(rank, report_gpu_rank(g) >= 0, report_gpu_rank(g)),
		figure(clock, g->nclock, report_gpu_clock(g)),
		figure(busy, g->nutil, g->nutil ? g->util / g->nutil : 0),
		figure(power, g->npower, g->npower ? g->power / g->npower / 1000 : 0),
		figure(heat, g->temperature, g->temperature), trouble);
}

void report_text_gpus(const struct report *r, FILE *f)
{
	uint32_t all = HASH_COUNT(r->gpus), bad = 0, told = 0;
	const struct report_gpu *g, *tmp;
	char trouble[TROUBLE_COLUMNS + 1];

	HASH_ITER (hh, r->gpus, g, tmp)
		bad += report_gpu_trouble(g, trouble, sizeof(trouble));
	if (all && !bad)
		words__heading(r, f, "GPUs: %u, without trouble", all);
	if (!bad)
		return;
	words__heading(r, f, "GPUs that had trouble: %u of %u", bad, all);
	fprintf(f, "%-16s %4s %5s %6s %5s %6s %5s\n", "host", "gpu", "rank", "MHz", "busy%", "watt",
		"degC");
	HASH_ITER (hh, r->gpus, g, tmp)
		if (told < 2 * REPORT_TOP && report_gpu_trouble(g, trouble, sizeof(trouble))) {
			gpu_row(r, g, trouble, f);
			told++;
		}
	if (bad > told)
		fprintf(f, "(%u more: see --json)\n", bad - told);
}
