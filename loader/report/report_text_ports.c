// SPDX-License-Identifier: BSD-2-Clause
/* The report for people, what RDMA ports had trouble with. */
#include <stdlib.h>
#include <string.h>
#include "human.h"
#include "report_text_priv.h"

#define COUNTERS_COLUMNS 66

/* As many of its counters that are a sign of something as a line has room for. */
static void port_row(const struct report *r, const struct report_port *port, FILE *f)
{
	char line[COUNTERS_COLUMNS + 1], one[96];
	size_t n = 0, len;
	uint32_t i;

	for (i = 0; i < port->ncounters; i++) {
		if (report_counter_sign(&port->counters[i], r->names) == NO_SIGN)
			break; /* these are the last ones */
		len = (size_t)snprintf(one, sizeof(one), "%s%.60s %llu", n ? ", " : "",
				       words__name(r, port->counters[i].name, 60),
				       (unsigned long long)port->counters[i].n);
		if (n + len >= sizeof(line))
			break;
		memcpy(line + n, one, len);
		n += len;
	}
	fprintf(f, "%-16.16s %-15.15s %.*s\n", words__name(r, port->host, 16),
		words__name(r, port->name, 15), (int)n, line);
}

void report_text_ports(const struct report *r, FILE *f)
{
	uint32_t n, i, all = HASH_COUNT(r->ports);
	struct report_port **list = report_ports_in_trouble(r, &n);

	if (!list) {
		words__no_memory(f);
		return;
	}
	if (all && !n)
		words__heading(r, f, "RDMA ports: %u, without trouble", all);
	if (n)
		words__heading(r, f, "RDMA ports that had trouble: %u of %u, whoever used them", n,
			       all);
	for (i = 0; i < n && i < REPORT_TOP; i++)
		port_row(r, list[i], f);
	if (n > REPORT_TOP)
		fprintf(f, "(%u more port%s: see --json)\n", n - REPORT_TOP,
			human__s(n - REPORT_TOP));
	free(list);
}
