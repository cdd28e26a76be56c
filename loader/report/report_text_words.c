// SPDX-License-Identifier: BSD-2-Clause
/* Words of the report for people: names, times, headings. */
#include <stdarg.h>
#include <string.h>
#include "clock.h"
#include "report_text_priv.h"

void report_clean(char *to, size_t len, const char *s)
{
	size_t i;

	for (i = 0; i + 1 < len && s[i]; i++)
		to[i] = s[i] >= 0x20 && s[i] < 0x7f ? s[i] : '?';
	to[i] = 0;
}

const char *words__name(const struct report *r, uint32_t name, size_t max)
{
	static char text[4][96];
	static unsigned int turn;
	char *to = text[turn++ % 4];

	report_clean(to, max + 1 < sizeof(text[0]) ? max + 1 : sizeof(text[0]),
		     names__text(r->names, name));
	return to;
}

void words__heading(const struct report *r, FILE *f, const char *fmt, ...)
{
	va_list ap;

	fputs(r->opt.color ? "\n\033[1m" : "\n", f);
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputs(r->opt.color ? "\033[0m\n" : "\n", f);
}

/* In a unit that a time of @like goes into. */
static const char *figure(int64_t ns, int64_t like, bool unit)
{
	static char text[16][24];
	static unsigned int turn;
	char *to = text[turn++ % 16];

	if (like >= NSEC_PER_SEC)
		snprintf(to, sizeof(text[0]), "%.*f%s",
			 like >= 1000 * NSEC_PER_SEC ? 0
			 : like >= 10 * NSEC_PER_SEC ? 1
						     : 2,
			 (double)ns / 1e9, unit ? " s" : "");
	else if (like >= 1000000)
		snprintf(to, sizeof(text[0]), "%.1f%s", (double)ns / 1e6, unit ? " ms" : "");
	else
		snprintf(to, sizeof(text[0]), "%.1f%s", (double)ns / 1e3, unit ? " us" : "");
	return to;
}

const char *words__span(int64_t ns)
{
	return figure(ns, ns, true);
}

const char *words__span_like(int64_t ns, int64_t like)
{
	return figure(ns, like, false);
}

#define MUCH_LOST 10 /* % */

/* Lines of a trace that such a loss takes. Two callbacks make one at least; what the kernel tells of threads and flows is in lines that are there. */
static double lines_lost(const struct report *r, const struct lost_cause *l)
{
	const char *cause = names__text(r->names, l->name);

	if (!strcmp(cause, "write-error"))
		return (double)l->n;
	if (!strcmp(cause, "ring-full") || !strcmp(cause, "thread-buffer") ||
	    !strcmp(cause, "rate-limit"))
		return (double)l->n / 2;
	return 0;
}

double words__much_lost(const struct report *r)
{
	const struct lost_cause *l, *tmp;
	double lost = 0, of;

	HASH_ITER (hh, r->losses, l, tmp)
		lost += lines_lost(r, l);
	of = lost + (double)r->totals.records;
	return 100 * lost >= MUCH_LOST * of && lost > 0 ? 100 * lost / of : 0;
}

void words__no_memory(FILE *f)
{
	fputs("\n(A table is left out: there is no memory for it.)\n", f);
}

const char *words__comm(const struct report *r, const struct report_comm *c)
{
	static char text[24];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)c->hash);
	return c->name ? words__name(r, c->name, 12) : text;
}
