# SPDX-License-Identifier: BSD-2-Clause
# Tests. Each folder's fragment sets its programs and appends its command lines to
#   TESTS_UNIT  need no root      TESTS_E2E  need root and the kernel      TESTS_SLOW  likewise, long
#   TESTS_BESIDE  as TESTS_E2E, but several at a time: see run.sh
# (each quoted: it is one argument of run.sh), and to TEST_PROGS what has to be built for them. tests/run.sh runs them and sums up.

TESTS	   := $(BUILD)/tests
TEST_PROGS :=
TESTS_UNIT :=
TESTS_BESIDE :=
TESTS_E2E  :=
TESTS_SLOW :=

-include tests/abi/abi.mk
-include tests/unit/unit.mk
-include tests/unit/tree.mk
-include tests/fuzz/fuzz.mk
-include tests/lint/lint.mk
-include tests/view/view.mk
-include tests/e2e/e2e.mk
-include tests/vm/vm.mk
-include tests/distro/distro.mk
-include tests/bench/bench.mk
-include tests/gpu/gpu.mk
-include tests/coverage.mk

# The stand-in against itself: what the others take for NCCL.
TESTS_SLOW += "$(STANDIN_DIR)/selftest.sh $(BUILD)"

.PHONY: standin tests
standin: $(STANDIN)

tests: all standin $(TEST_PROGS)


check:
	$(Q)packaging/deps.sh check
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory tests
	$(Q)$(GIVE_BACK) tests/run.sh $(TESTS_UNIT) --beside $(TESTS_BESIDE) --timed $(TESTS_E2E) $(TESTS_SLOW)

check-unit: tests
	$(Q)tests/run.sh $(TESTS_UNIT)

check-e2e: tests
	$(Q)tests/run.sh --beside $(TESTS_BESIDE) --timed $(TESTS_E2E)
