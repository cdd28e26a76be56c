# SPDX-License-Identifier: BSD-2-Clause
# The tree, its documentation and its cross-build. No programs of their own.

TESTS_UNIT += "tests/unit/man.sh $(BUILD)/ncclscope" "tests/unit/docs.sh $(BUILD)/ncclscope" \
	      "tests/unit/completion.sh $(BUILD)/ncclscope" \
	      "tests/unit/tree.sh $(BUILD)" "tests/unit/cross.sh $(BUILD)" "tests/unit/deps.sh" "tests/unit/runner.sh"
TESTS_E2E  += "tests/e2e/demo_test.sh $(BUILD)"
