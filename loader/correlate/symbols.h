/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of the kernel's functions, by the numbers that records have in their place (see feed.c; addresses, in captures of before version 9).
 * Whoever reads the records adds a name before the first that needs it.
 */
#ifndef NCCLSCOPE_SYMBOLS_H
#define NCCLSCOPE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>
#include "hash.h"
#include "scope_abi.h"

#define SYMBOLS_MAX 4096

struct symbol {
	uint64_t number; /* key */
	UT_hash_handle hh;
	char name[];
};

/* All zero at first. */
struct symbols {
	struct symbol *by_number;
};

/*
 * A name of at most SCOPE_SYMBOL_LEN - 1 bytes, cut there; of none: the kernel has none. 0, -ENOMEM, or -ENOSPC: one too
 * many.
 */
int symbols__add(struct symbols *s, uint64_t number, const char *name);
/* Valid until symbols__free(); NULL: it has no name. */
const char *symbols__name(const struct symbols *s, uint64_t number);
/* Whether symbols__add() has been called for it. */
bool symbols__has(const struct symbols *s, uint64_t number);
/* Whether there is no room for another one. */
bool symbols__are_full(const struct symbols *s);

void symbols__free(struct symbols *s);

#endif
