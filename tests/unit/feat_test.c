// SPDX-License-Identifier: BSD-2-Clause
/* loader/doctor/feat_bpf.c: what doctor makes of record's own programs. Whether the kernel takes them is ours to say here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "attach.h"
#include "cmd.h"
#include "feat_priv.h"

/* What is answered to who wants all, and to who wants no more than the base; how often it was asked. */
static struct {
	int all, base;
	int asked;
} kernel;

int __wrap_attach__try(struct attach_features wanted);

int __wrap_attach__try(struct attach_features wanted)
{
	kernel.asked++;
	return wanted.sched || wanted.irq || wanted.net ? kernel.all : kernel.base;
}

static struct feat_result results[FEAT_CNT];
static struct feat_ctx ctx = {.results = results, .init_userns = true};

/* Of a node where all else works. */
static int exit_status(int all, int base)
{
	memset(results, 0, sizeof(results));
	kernel.all = all;
	kernel.base = base;
	kernel.asked = 0;
	feat_probe_programs(&ctx);
	return feat_exit_status(results);
}

static void assert_row(enum feat_id id, enum feat_status status, const char *detail)
{
	assert_int_equal(results[id].status, status);
	assert_non_null(strstr(results[id].detail, detail));
}

static bool blames_clang(enum feat_id id)
{
	return strstr(results[id].advice, "clang") != NULL;
}

static void test_all_or_less(void **state)
{
	(void)state;
	ctx.privileged = true;
	assert_int_equal(exit_status(0, -EIO), EXIT_OK);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_WORKS, "the verifier takes them");
	assert_row(FEAT_PROGRAMS, FEAT_WORKS, "the verifier takes them");
	assert_int_equal(kernel.asked, 1);
	assert_int_equal(exit_status(-EACCES, 0), EXIT_OK);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_WORKS, "the verifier takes them");
	assert_row(FEAT_PROGRAMS, FEAT_OPTIONAL_MISSING, "refused by the verifier");
	assert_true(blames_clang(FEAT_PROGRAMS));
}

/* Where record would do without all that it can, and end. */
static void test_nothing(void **state)
{
	(void)state;
	ctx.privileged = true;
	assert_int_equal(exit_status(-EACCES, -EACCES), EXIT_KERNEL);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_MISSING, "refused by the verifier");
	assert_true(blames_clang(FEAT_BASE_PROGRAMS));
	assert_int_equal(exit_status(-EINVAL, -EINVAL), EXIT_KERNEL);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_MISSING, "load: Invalid argument");
	assert_true(blames_clang(FEAT_BASE_PROGRAMS));
	assert_int_equal(exit_status(-E2BIG, -E2BIG), EXIT_KERNEL);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_MISSING, "refused by the verifier");
	assert_true(blames_clang(FEAT_BASE_PROGRAMS));
	/* record does not do without anything then */
	assert_int_equal(exit_status(-ENOMEM, 0), EXIT_KERNEL);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_MISSING, "load: Cannot allocate memory");
	assert_row(FEAT_PROGRAMS, FEAT_OPTIONAL_MISSING, "load: Cannot allocate memory");
	assert_false(blames_clang(FEAT_BASE_PROGRAMS) || blames_clang(FEAT_PROGRAMS));
	ctx.privileged = false;
	assert_int_equal(exit_status(-EPERM, -EPERM), EXIT_PRIVILEGE);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_DENIED, "load: Operation not permitted");
	assert_false(blames_clang(FEAT_BASE_PROGRAMS) || blames_clang(FEAT_PROGRAMS));
}

static void test_without_what_they_need(void **state)
{
	(void)state;
	ctx.privileged = true;
	exit_status(0, 0);
	results[FEAT_SCHED_SWITCH].status = FEAT_OPTIONAL_MISSING;
	feat_probe_programs(&ctx);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_WORKS, "the verifier takes them");
	assert_row(FEAT_PROGRAMS, FEAT_OPTIONAL_MISSING, "needs tp_btf-sched_switch");
	results[FEAT_RINGBUF].status = FEAT_MISSING;
	kernel.asked = 0;
	feat_probe_programs(&ctx);
	assert_row(FEAT_BASE_PROGRAMS, FEAT_MISSING, "needs ring-buffer");
	assert_row(FEAT_PROGRAMS, FEAT_OPTIONAL_MISSING, "needs ring-buffer");
	assert_int_equal(kernel.asked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_or_less),
					   cmocka_unit_test(test_nothing),
					   cmocka_unit_test(test_without_what_they_need)};

	return cmocka_run_group_tests_name("feat", tests, NULL, NULL);
}
