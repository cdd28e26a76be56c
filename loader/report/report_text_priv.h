/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between report_text.c, which has the whole report for people, report_text_ops.c and report_text_ranks.c, which have its tables; times in
 * words are report_evidence.c's, too.
 */
#ifndef NCCLSCOPE_REPORT_TEXT_PRIV_H
#define NCCLSCOPE_REPORT_TEXT_PRIV_H

#include <stdio.h>
#include "report.h"

#define REPORT_COLUMNS 100
#define REPORT_TOP     10 /* of a list in which the worst come first */

static inline double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static inline int compare_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

/* ---- report_text_words.c ---- */

/* Job text on a terminal: what is not plain ASCII could steer it. Up to four results in use at a time. */
const char *words__name(const struct report *r, uint32_t name, size_t max);
/* Which one, where there are several; its name says more than its number. */
const char *words__comm(const struct report *r, const struct report_comm *c);
/* "1.23 s", "12.3 ms", "8.0 us". Up to 16 results in use at a time. */
const char *words__span(int64_t ns);
/* The same without a unit, in that which words__span() has for @like. */
const char *words__span_like(int64_t ns, int64_t like);
__attribute__((format(printf, 3, 4))) void words__heading(const struct report *r, FILE *f,
							  const char *fmt, ...);
/* How much of all records was lost, in %, if it is so much that nothing follows from what is not there; else 0. */
double words__much_lost(const struct report *r);
/* In place of a table. */
void words__no_memory(FILE *f);

/* ---- report_text_ops.c ---- */

/* What each communicator did; of many, those that are alike in one table. */
void report_text_comms(const struct report *r, FILE *f);
void report_text_slow(const struct report *r, FILE *f);

/* ---- report_text_ranks.c ---- */

void report_text_ranks(const struct report *r, FILE *f);
void report_text_threads(const struct report *r, FILE *f);
/* Of jobs in which there was no operation; nothing where there was one in all. */
void report_text_still(const struct report *r, FILE *f);
void report_text_heat(const struct report *r, FILE *f);

/* ---- report_text_ports.c ---- */

void report_text_ports(const struct report *r, FILE *f);

/* ---- report_text_gpus.c ---- */

void report_text_gpus(const struct report *r, FILE *f);

/* ---- report_text_kmsg.c ---- */

void report_text_kmsg(const struct report *r, FILE *f);

#endif
