// SPDX-License-Identifier: BSD-2-Clause
/* How far long work is; see progress.h. */
#include <stdio.h>
#include <unistd.h>
#include "clock.h"
#include "log.h"
#include "progress.h"

#define TOTAL_MIN (UINT64_C(64) << 20)
#define STEP	  (UINT64_C(1) << 20)
#define PAUSE_NS  (NSEC_PER_SEC / 5)

void progress__begin(struct progress *p, const char *what)
{
	*p = (struct progress){.what = what, .on = isatty(STDERR_FILENO) && log_level >= LOG_INFO};
}

void progress__show(struct progress *p, uint64_t done, uint64_t total)
{
	uint64_t now;

	if (!p->on || total < TOTAL_MIN || done < p->next)
		return;
	p->next = done + STEP;
	now = monotonic_ns();
	if (now < p->next_ns)
		return;
	p->next_ns = now + PAUSE_NS;
	p->shown = true;
	fprintf(stderr, "\r%s %3.0f %% of %.1f GB", p->what, 100.0 * (double)done / (double)total,
		(double)total / 1e9);
	fflush(stderr);
}

void progress__end(struct progress *p)
{
	if (p->shown)
		fprintf(stderr, "\r%40s\r", "");
	p->shown = false;
}
