// SPDX-License-Identifier: BSD-2-Clause
/* Switches that gather in BPF, read where they are; see attach_priv.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <bpf/libbpf.h>
#include "attach_priv.h"
#include "clock.h"
#include "scope.skel.h"

int switches_open(struct attach *a)
{
	a->switches.all = array_map(a->skel->maps.scope_switches, PROT_READ, &a->switches.size);
	if (!a->switches.all)
		return -errno;
	a->switches.seen = calloc((size_t)a->ncpus, sizeof(*a->switches.seen));
	a->switches.recs = calloc((size_t)a->ncpus, sizeof(*a->switches.recs));
	return a->switches.seen && a->switches.recs ? 0 : -ENOMEM;
}

void switches_close(struct attach *a)
{
	if (a->switches.all)
		munmap((void *)a->switches.all, a->switches.size);
	free(a->switches.seen);
	free(a->switches.recs);
}

/* `at` if it is further than `told`; it may be long ago. */
static uint32_t further(uint32_t told, uint32_t at)
{
	return at - told <= SCOPE_SWITCHES ? at : told;
}

/* What a CPU has in no record yet, and we have not seen; false: nothing, or it was told meanwhile. */
static bool cpu_look(const struct scope_switches *q, uint32_t seen, struct scope_ev_switches *rec)
{
	uint32_t told = __atomic_load_n(&q->told, __ATOMIC_ACQUIRE);
	uint32_t from = further(told, __atomic_load_n(&q->copied, __ATOMIC_RELAXED));
	uint32_t n, i;

	from = further(from, seen);
	n = __atomic_load_n(&q->seq, __ATOMIC_ACQUIRE) - from;
	if (!n || n > SCOPE_SWITCHES)
		return false;
	for (i = 0; i < n; i++)
		rec->at[i] = q->at[(from + 1 + i) % SCOPE_SWITCH_SLOTS];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&q->told, __ATOMIC_RELAXED) != told)
		return false;
	rec->h = (struct scope_ev_short){SCOPE_ABI, SCOPE_EV_SWITCHES,
					 (uint32_t)SCOPE_SWITCHES_SIZE(n), rec->at[0].ts_ns};
	rec->cpu_seq = from + 1;
	return true;
}

void switches_look(struct attach *a)
{
	int cpu;

	if (a->switches.look_ns)
		return;
	a->switches.look_ns = monotonic_ns();
	a->switches.n = 0;
	for (cpu = 0; cpu < a->ncpus; cpu++) {
		struct scope_ev_switches *rec = &a->switches.recs[a->switches.n];

		if (!cpu_look(&a->switches.all[cpu], a->switches.seen[cpu], rec))
			continue;
		rec->cpu = (uint32_t)cpu;
		a->switches.n++;
	}
	/* Last: what was told before we looked lies in the ring up to here. */
	a->switches.behind = attach__ring(a).produced;
}

void switches_tell(struct attach *a)
{
	const struct scope_ev_switches *rec;
	int i;

	if (!a->switches.look_ns || attach__ring(a).consumed < a->switches.behind)
		return;
	for (i = 0; i < a->switches.n; i++) {
		rec = &a->switches.recs[i];
		a->switches.seen[rec->cpu] = rec->cpu_seq + SCOPE_SWITCHES_N(rec->h.size) - 1;
		a->fn(a->arg, rec, rec->h.size);
	}
	a->switches.known_ns = a->switches.look_ns;
	a->switches.look_ns = 0;
}
