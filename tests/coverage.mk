# SPDX-License-Identifier: BSD-2-Clause
# Line coverage of plugin/ and loader/, by gcov: a build of its own, the tests that go through most of it, and a
# report. A process that is killed tells nothing of what it ran: the figure is a lower bound.
# COVERAGE_E2E says which end-to-end tests run (`all`: each of them).

COVERAGE_MIN  ?= 90
COVERAGE_E2E  ?= counts faults errors mask status top attach windows caps doctor inject raw export report_sched
COVERAGE_DIR  := $(BUILD)/coverage
COVERAGE_UNIT := $(foreach t,$(UNIT_LOADER) plugin cuda linker target,"$(UNIT_OUT)/$(t)_test") \
		 "tests/unit/check.sh $(BUILD)/ncclscope $(UNIT_OUT)/schema_tables" \
		 "$(UNIT_OUT)/check_json_test tests/unit/traces/*.jsonl" \
		 "tests/unit/export.sh $(BUILD)/ncclscope" "tests/view/view.sh $(BUILD)" \
		 "tests/unit/man.sh $(BUILD)/ncclscope" "tests/view/view.sh $(BUILD) command" "$(FUZZ_OUT)/plugin_fuzz-plain"

# Clang and BPF stay as they are; tests are instrumented as well, and left out of the report.
.PHONY: coverage coverage-run
coverage:
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory BUILD=$(COVERAGE_DIR) CC='$(CC) --coverage -fprofile-update=atomic -include $(CURDIR)/tests/coverage.h' tests
	$(Q)find $(COVERAGE_DIR) -name '*.gcda' -delete
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory BUILD=$(COVERAGE_DIR) coverage-run
	$(Q)$(GIVE_BACK) tests/coverage.sh $(COVERAGE_DIR) $(COVERAGE_MIN)

# What fails here fails in check as well, and is looked into there. Other users' jobs cannot write their counters.
coverage-run:
	-$(Q)BUILD=$(BUILD) GCOV_ERROR_FILE=/dev/null tests/run.sh -o $(BUILD)/test-logs $(COVERAGE_UNIT) \
	  $(foreach t,$(if $(filter all,$(COVERAGE_E2E)),$(E2E_BESIDE) $(E2E),$(COVERAGE_E2E)),"$(E2E_DIR)/$(t).sh")
