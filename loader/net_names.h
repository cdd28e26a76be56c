/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's numbers mean in records of packets that it dropped: reasons, whose numbers are others in
 * each kernel, and the functions at addresses. Whoever reads the records adds a name before the first that needs it.
 */
#ifndef NCCLSCOPE_NET_NAMES_H
#define NCCLSCOPE_NET_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hash.h"
#include "scope_abi.h"

#define NET_REASONS_MAX 256 /* of enum skb_drop_reason; Linux 6.18 has 120 */
#define NET_SYMBOLS_MAX 4096
#define NET_NAME_LEN	SCOPE_SYMBOL_LEN

struct net_symbol {
	uint64_t address; /* key */
	UT_hash_handle hh;
	char name[];
};

/* All zero at first. */
struct net_names {
	char *reasons[NET_REASONS_MAX]; /* owned; NULL: it has no name */
	bool harmless[NET_REASONS_MAX];
	struct net_symbol *symbols;
};

/* A name of at most NET_NAME_LEN - 1 bytes, cut there. 0, -ENOMEM, or -ENOSPC: a number or one symbol too many. */
int net_names__add_reason(struct net_names *n, uint32_t reason, const char *name);
/* The same; a name of no bytes: the address is not known to the kernel. */
int net_names__add_symbol(struct net_names *n, uint64_t address, const char *name);

/* Valid until net_names__free(); NULL: it has no name. */
const char *net_names__reason(const struct net_names *n, uint32_t reason);
/* Whether the kernel frees packets for that reason in the normal course of things, whatever function does it. */
bool net_names__is_harmless(const struct net_names *n, uint32_t reason);
const char *net_names__symbol(const struct net_names *n, uint64_t address);

/* Whether net_names__add_symbol() has been called for it. */
bool net_names__has_symbol(const struct net_names *n, uint64_t address);

void net_names__free(struct net_names *n);

#endif
