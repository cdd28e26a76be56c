// SPDX-License-Identifier: BSD-2-Clause
/* loader/attach/attach_switches.c: what CPUs gather, read beside a BPF program that is played here, and told in the ring's order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "attach_priv.h"

#define CPUS 2

static struct attach *a;
static struct scope_switches gathered[CPUS];
static unsigned long *ring; /* the consumer's page, the producer's page */
static uint32_t told[CPUS][256];
static int ntold[CPUS];

static void take(void *arg, const void *data, size_t size)
{
	const struct scope_ev_switches *e = data;
	uint32_t i;

	(void)arg;
	assert_int_equal(e->h.kind, SCOPE_EV_SWITCHES);
	assert_int_equal(size, e->h.size);
	assert_int_equal(e->h.ts_ns, e->at[0].ts_ns);
	for (i = 0; i < SCOPE_SWITCHES_N(e->h.size); i++) {
		assert_int_equal(e->at[i].ts_ns, e->cpu_seq + i); /* whose number it is */
		told[e->cpu][ntold[e->cpu]++] = e->cpu_seq + i;
	}
}

static int setup(void **state)
{
	(void)state;
	memset(gathered, 0, sizeof(gathered));
	memset(ntold, 0, sizeof(ntold));
	ring = calloc(2, (size_t)sysconf(_SC_PAGESIZE));
	a = calloc(1, sizeof(*a));
	if (!ring || !a)
		return -1;
	a->fn = take;
	a->pos = ring;
	a->ncpus = CPUS;
	a->switches.all = gathered;
	a->switches.seen = calloc(CPUS, sizeof(*a->switches.seen));
	a->switches.recs = calloc(CPUS, sizeof(*a->switches.recs));
	return a->switches.seen && a->switches.recs ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(a->switches.seen);
	free(a->switches.recs);
	free(a);
	free(ring);
	return 0;
}

static void produced(unsigned long at)
{
	ring[(size_t)sysconf(_SC_PAGESIZE) / sizeof(*ring)] = at;
}

/* n more switches of a CPU; it tells them itself as soon as there are SCOPE_SWITCHES. */
static void switches(int cpu, int n)
{
	struct scope_switches *q = &gathered[cpu];

	while (n--) {
		q->at[(q->seq + 1) % SCOPE_SWITCH_SLOTS] =
			(struct scope_switch){.ts_ns = q->seq + 1};
		q->seq++;
		if (q->seq - q->told == SCOPE_SWITCHES)
			q->told = q->seq;
	}
}

static void turn(void)
{
	switches_tell(a);
	switches_look(a);
	switches_tell(a);
}

static void assert_told(int cpu, uint32_t first, int n)
{
	int i;

	assert_int_equal(ntold[cpu], n);
	for (i = 0; i < n; i++)
		assert_int_equal(told[cpu][i], first + (uint32_t)i);
	ntold[cpu] = 0;
}

static void test_new_ones(void **state)
{
	(void)state;
	turn();
	assert_told(0, 0, 0);
	switches(0, 3);
	switches(1, 15);
	turn();
	assert_told(0, 1, 3);
	assert_told(1, 1, 15);
	turn();
	assert_told(0, 0, 0);
	switches(0, 2);
	switches(1, 1); /* it has told all of its own */
	turn();
	assert_told(0, 4, 2);
	assert_told(1, 0, 0);
	switches(0, 1000); /* likewise, many times over: 1,005 */
	turn();
	assert_told(0, 993, 13);
}

/* Somebody else has told a part of them. */
static void test_copied(void **state)
{
	(void)state;
	switches(0, 7);
	gathered[0].copied = 5;
	turn();
	assert_told(0, 6, 2);
	switches(0, 40); /* 47, of which 32 are told; `copied` is long ago */
	turn();
	assert_told(0, 33, 15);
}

/* A record that has been begun lies before what is older than they: they come behind it, and so does the time up to which all is known. */
static void test_ring_first(void **state)
{
	uint64_t known, look;

	(void)state;
	turn();
	known = attach__known_ns(a);
	assert_int_not_equal(known, 0);
	produced(100);
	switches(0, 2);
	turn();
	look = a->switches.look_ns;
	assert_told(0, 0, 0);
	assert_int_equal(attach__known_ns(a), known);
	ring[0] = 60;
	produced(300);
	switches(0, 2);
	turn();
	assert_told(0, 0, 0);
	assert_int_equal(attach__known_ns(a), known);
	/* What was there at the first look, though the ring has gone on meanwhile. */
	ring[0] = 100;
	turn();
	assert_told(0, 1, 2);
	assert_int_equal(attach__known_ns(a), look);
	ring[0] = 300;
	turn();
	assert_told(0, 3, 2);
	assert_true(attach__known_ns(a) > look);
}

/* Numbers end, and begin again. */
static void test_numbers_wrap(void **state)
{
	(void)state;
	gathered[0].seq = gathered[0].told = gathered[0].copied = UINT32_MAX - 3;
	a->switches.seen[0] = UINT32_MAX - 3;
	switches(0, 8);
	turn();
	assert_told(0, UINT32_MAX - 2, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_new_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ring_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_wrap, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
