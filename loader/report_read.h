/* SPDX-License-Identifier: BSD-2-Clause */
/* Between report_files.c, which reads lines of many files side by side, and report_read.c, which takes them. */
#ifndef NCCLSCOPE_REPORT_READ_H
#define NCCLSCOPE_REPORT_READ_H

#include "report.h"

/* What is open in a process while its lines are read; its events may come before their parents. */
struct report_reader;

/* For a stream of lines in which no header has come yet; NULL: no memory. */
struct report_reader *report_reader__new(struct report *r, struct json_doc *doc, const char *path);
/* One line, without its newline. @whole: it had one. */
void report_reader__line(struct report_reader *rd, const char *s, size_t len, bool whole);
/* How far it has come, by the real clock. */
int64_t report_reader__now(const struct report_reader *rd);
/* Takes NULL. What is still open is given to the report as unfinished. */
void report_reader__free(struct report_reader *rd);

#endif
