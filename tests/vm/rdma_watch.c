// SPDX-License-Identifier: BSD-2-Clause
/*
 * What `record` does with RDMA counters, alone: follows one process by loader/node/rdma.c until SIGTERM,
 * then tells by how much the ports moved of the devices that the process has had open. rdma.sh
 * compares.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clock.h"
#include "rdma.h"

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void pause_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* As in a trace: an element of "rdma". Names are safe to be written as they are. */
static void print_delta(void *arg, const struct rdma_delta *d)
{
	bool *any = arg;

	if (d->first)
		printf("%s{\"device\":\"%s\",\"port\":%u,\"counters\":{", *any ? "," : "",
		       d->device, d->port);
	printf("%s\"%s\":%llu%s", d->first ? "" : ",", d->counter, (unsigned long long)d->n,
	       d->last ? "}}" : "");
	*any = true;
}

static void print_devices(const struct rdma *r, uint64_t devices)
{
	int i;

	for (i = 0; i < RDMA_DEVICES_MAX; i++)
		if (devices >> i & 1)
			puts(r->devices[i].name);
}

/* Until SIGTERM, and until there is a sample after it. Says when there is one to begin with. */
static void follow(struct rdma *r, struct rdma_user *user, pid_t pid)
{
	uint64_t begin_ns = monotonic_ns(), end_ns = 0, last;
	bool any = false;

	for (last = UINT64_MAX; !end_ns || r->samples < last; pause_ms(10)) {
		if (stop && !end_ns) {
			end_ns = monotonic_ns();
			last = r->samples + 3;
		}
		rdma__look(r, user, pid);
		if (rdma__sample(r) && r->samples == 1) {
			puts("ready");
			fflush(stdout);
		}
		if (end_ns && monotonic_ns() > end_ns + 3 * RDMA_SCAN_NS)
			break; /* it has no device any more */
	}
	printf("[");
	rdma__deltas(r, user->devices, begin_ns, end_ns, print_delta, &any);
	puts("]");
	fprintf(stderr, "%llu samples of %u ports, %llu us each, the longest %llu us\n",
		(unsigned long long)r->samples, r->nports,
		(unsigned long long)(r->samples ? r->cost_ns / r->samples / 1000 : 0),
		(unsigned long long)(r->max_cost_ns / 1000));
}

int main(int argc, char **argv)
{
	struct rdma_user user = {0};
	struct rdma r;
	bool ask = argc == 3 && !strcmp(argv[1], "--devices");
	pid_t pid = argc > 1 ? (pid_t)atol(argv[argc - 1]) : 0;

	if (pid <= 0 || (argc != 2 && !ask)) {
		fprintf(stderr, "Usage: rdma_watch [--devices] PID\n");
		return 2;
	}
	signal(SIGTERM, on_term);
	if (rdma__init(&r, ""))
		return 1;
	if (!ask)
		follow(&r, &user, pid);
	else if (!rdma__look(&r, &user, pid))
		print_devices(&r, user.devices);
	rdma__free(&r);
	return 0;
}
