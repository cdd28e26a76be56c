// SPDX-License-Identifier: BSD-2-Clause
/* The report for people, what kernels logged. */
#include "human.h"
#include "report_text_priv.h"

#define KMSG_TOP 16

static void line_row(const struct report *r, const struct report_kmsg *k, FILE *f)
{
	char text[sizeof(k->text)], who[32] = "";

	report_clean(text, sizeof(text), k->text);
	if (k->proc && k->proc->rank >= 0)
		snprintf(who, sizeof(who), " (rank %d)", k->proc->rank);
	else if (k->proc)
		snprintf(who, sizeof(who), " (recorded)");
	fprintf(f, "%-16.16s %+12.3f  %-10.10s %.110s%s\n", words__name(r, k->host, 16),
		(double)k->after / 1e9, words__name(r, k->sign, 10), text, who);
}

void report_text_kmsg(const struct report *r, FILE *f)
{
	uint32_t n = HASH_COUNT(r->kmsg), i = 0;
	const struct report_kmsg *k, *tmp;

	if (!n)
		return;
	words__heading(r, f, "From the kernel's log: %u line%s that may tell why", n, human__s(n));
	fprintf(f, "%-16s %12s  %-10s %s\n", "host", "after s", "of", "line");
	HASH_ITER (hh, r->kmsg, k, tmp) {
		if (i++ >= KMSG_TOP)
			break;
		line_row(r, k, f);
	}
	if (n > KMSG_TOP)
		fprintf(f, "(%u more line%s: see --json)\n", n - KMSG_TOP, human__s(n - KMSG_TOP));
}
