/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel's numbers mean in records of packets that it dropped: reasons, whose numbers are others in each kernel. Whoever reads
 * the records adds a name before the first that needs it. The functions at addresses are in symbols.h.
 */
#ifndef NCCLSCOPE_NET_NAMES_H
#define NCCLSCOPE_NET_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include "scope_abi.h"

#define NET_REASONS_MAX 256 /* of enum skb_drop_reason; Linux 6.18 has 120 */
#define NET_NAME_LEN	SCOPE_SYMBOL_LEN

/* All zero at first. */
struct net_names {
	char *reasons[NET_REASONS_MAX]; /* owned; NULL: it has no name */
	bool harmless[NET_REASONS_MAX];
	bool old_sequence; /* TCP_OLD_SEQUENCE is among them, so that TCP_INVALID_SEQUENCE is not that as well */
};

/* A name of at most NET_NAME_LEN - 1 bytes, cut there. 0, -ENOMEM, or -ENOSPC: the number is too large. */
int net_names__add_reason(struct net_names *n, uint32_t reason, const char *name);

/* Valid until net_names__free(); NULL: it has no name. */
const char *net_names__reason(const struct net_names *n, uint32_t reason);
/* Whether the kernel frees packets for that reason in the normal course of things, whatever function does it. All names are known by then. */
bool net_names__is_harmless(const struct net_names *n, uint32_t reason);

void net_names__free(struct net_names *n);

#endif
