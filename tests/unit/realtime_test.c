// SPDX-License-Identifier: BSD-2-Clause
/* loader/attach/realtime.c: kernels that are told apart by their types and by what they say of themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/btf.h>
#include "realtime.h"

#define RT    "#1 SMP PREEMPT_RT Debian 6.1.176-1 (2026-08-01)"
#define OLDRT "#1 SMP PREEMPT RT Wed May 5 12:00:00 UTC 2021"
#define PLAIN "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-08-01)"

/* With a ring whose lock is of that type, a typedef of a struct; NULL: there is no ring. */
static struct btf *types(const char *lock)
{
	struct btf *btf = btf__new_empty();
	int number, id;

	number = btf__add_int(btf, "unsigned int", 4, 0);
	if (!lock)
		return btf;
	btf__add_struct(btf, "spinlock", 4);
	btf__add_field(btf, "raw", number, 0, 0);
	id = btf__add_typedef(btf, lock, number + 1);
	btf__add_struct(btf, "bpf_ringbuf", 8);
	btf__add_field(btf, "mask", number, 0, 0);
	btf__add_field(btf, "spinlock", id, 32, 0);
	return btf;
}

static bool sleeps(const char *lock, const char *version)
{
	struct btf *btf = types(lock);
	bool ret = realtime_ring_sleeps(btf, version);

	btf__free(btf);
	return ret;
}

static void test_sleeps(void **state)
{
	(void)state;
	assert_true(sleeps("spinlock_t", RT));
	assert_true(sleeps("spinlock_t", OLDRT));
}

static void test_does_not(void **state)
{
	(void)state;
	assert_false(sleeps("spinlock_t", PLAIN));
	assert_false(sleeps("raw_spinlock_t", RT)); /* 6.12 */
	assert_false(sleeps("rqspinlock_t", RT));   /* 6.15 */
	assert_false(sleeps(NULL, RT));		    /* then there is nothing to load either */
	assert_false(realtime_ring_sleeps(NULL, RT));
}

/* Only what has been seen to record. */
static void test_here(void **state)
{
	struct btf *btf = btf__load_vmlinux_btf();

	(void)state;
	if (!btf)
		skip();
	assert_false(realtime_ring_sleeps_here(btf));
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps),
		cmocka_unit_test(test_does_not),
		cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
