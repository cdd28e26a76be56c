// SPDX-License-Identifier: BSD-2-Clause
/* Names of drop reasons; see net_names.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net_names.h"

static bool is_harmless(const char *reason)
{
	/* What was there already, in order or waiting for what is missing (OFOMERGE), is dropped when it comes again. */
	static const char *const names[] = {"QUEUE_PURGE", "TCP_OLD_DATA",    "TCP_OLD_SEQUENCE",
					    "TCP_OLD_ACK", "NOT_DROPPED_YET", "CONSUMED",
					    "TCP_OFOMERGE"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(reason, names[i]))
			return true;
	return false;
}

int net_names__add_reason(struct net_names *n, uint32_t reason, const char *name)
{
	char *copy;

	if (reason >= NET_REASONS_MAX)
		return -ENOSPC;
	copy = strndup(name, NET_NAME_LEN - 1);
	if (!copy)
		return -ENOMEM;
	free(n->reasons[reason]);
	n->reasons[reason] = copy;
	n->harmless[reason] = is_harmless(copy);
	if (!strcmp(copy, "TCP_OLD_SEQUENCE"))
		n->old_sequence = true;
	return 0;
}

const char *net_names__reason(const struct net_names *n, uint32_t reason)
{
	return reason < NET_REASONS_MAX ? n->reasons[reason] : NULL;
}

bool net_names__is_harmless(const struct net_names *n, uint32_t reason)
{
	const char *name = net_names__reason(n, reason);

	if (!name)
		return false;
	/* Before Linux 6.6 that is also what segments that have come already are dropped for, and probes of a closed window. */
	if (!n->old_sequence && !strcmp(name, "TCP_INVALID_SEQUENCE"))
		return true;
	return n->harmless[reason];
}

void net_names__free(struct net_names *n)
{
	int i;

	for (i = 0; i < NET_REASONS_MAX; i++) {
		free(n->reasons[i]);
		n->reasons[i] = NULL;
	}
}
