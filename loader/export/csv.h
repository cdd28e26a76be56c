/* SPDX-License-Identifier: BSD-2-Clause */
/* Cells of CSV. */
#ifndef NCCLSCOPE_CSV_H
#define NCCLSCOPE_CSV_H

#include <stdbool.h>

/* What a spreadsheet takes for a formula begins with this; behind a ' it is text. */
static inline bool csv__begins_formula(char first)
{
	return first == '=' || first == '+' || first == '-' || first == '@' || first == '\t' ||
	       first == '\r';
}

#endif
