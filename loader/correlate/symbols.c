// SPDX-License-Identifier: BSD-2-Clause
/* Names of the kernel's functions; see symbols.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "symbols.h"

static struct symbol *find(const struct symbols *s, uint64_t number)
{
	struct symbol *sym;

	HASH_FIND(hh, s->by_number, &number, sizeof(number), sym);
	return sym;
}

bool symbols__are_full(const struct symbols *s)
{
	return HASH_COUNT(s->by_number) >= SYMBOLS_MAX;
}

int symbols__add(struct symbols *s, uint64_t number, const char *name)
{
	size_t len = strnlen(name, SCOPE_SYMBOL_LEN - 1);
	struct symbol *sym;

	if (find(s, number))
		return 0;
	if (symbols__are_full(s))
		return -ENOSPC;
	sym = malloc(sizeof(*sym) + len + 1);
	if (!sym)
		return -ENOMEM;
	sym->number = number;
	memcpy(sym->name, name, len);
	sym->name[len] = 0;
	HASH_ADD(hh, s->by_number, number, sizeof(sym->number), sym);
	if (!HASH_ADDED(hh, sym)) {
		free(sym);
		return -ENOMEM;
	}
	return 0;
}

const char *symbols__name(const struct symbols *s, uint64_t number)
{
	const struct symbol *sym = find(s, number);

	return sym && sym->name[0] ? sym->name : NULL;
}

bool symbols__has(const struct symbols *s, uint64_t number)
{
	return find(s, number) != NULL;
}

void symbols__free(struct symbols *s)
{
	HASH_FREE_ALL(s->by_number);
}
