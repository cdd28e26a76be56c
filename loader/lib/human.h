/* SPDX-License-Identifier: BSD-2-Clause */
/* Values as people read them in tables. Each fills buf and returns it. */
#ifndef NCCLSCOPE_HUMAN_H
#define NCCLSCOPE_HUMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUMAN_CELL 101

/*
 * Text that comes from a job: printable ASCII as it is, any other byte as \xNN. Cut to `width`, at the front
 * (keep_end) or at the end, and marked by two dots. s may be NULL.
 */
const char *human__clean(char buf[HUMAN_CELL], const char *s, size_t width, bool keep_end);

/* What a noun ends in behind a number: nothing or "s"; nothing or "es". */
static inline const char *human__s(uint64_t n)
{
	return n == 1 ? "" : "s";
}
static inline const char *human__es(uint64_t n)
{
	return n == 1 ? "" : "es";
}

/* "123", "12.30e9" */
const char *human__count(char buf[HUMAN_CELL], uint64_t n);
/* "1.2M": of 1024 */
const char *human__bytes(char buf[HUMAN_CELL], uint64_t n);
/* "1.2s", "3m07s" */
const char *human__time(char buf[HUMAN_CELL], uint64_t us);

#endif
