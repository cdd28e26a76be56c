// SPDX-License-Identifier: BSD-2-Clause
/* loader/attach/fexit.c: kernels that are told apart by their types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <bpf/btf.h>
#include "fexit.h"

/* A kernel with a structure of that name. */
static bool may_sleep(const char *name)
{
	struct btf *btf = btf__new_empty();
	bool ret;

	btf__add_struct(btf, name, 4);
	btf__add_field(btf, "at", btf__add_int(btf, "int", 4, BTF_INT_SIGNED), 0, 0);
	ret = fexit_may_sleep(btf);
	btf__free(btf);
	return ret;
}

static void test_by_types(void **state)
{
	(void)state;
	assert_true(may_sleep("bpf_tramp_image"));
	assert_false(may_sleep("bpf_trampoline")); /* 5.11 */
	assert_false(fexit_may_sleep(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
