# SPDX-License-Identifier: BSD-2-Clause
# Layouts and the built plugin's outside: a script, nothing to build.

TESTS_UNIT += "tests/abi/abi.sh $(BUILD)/$(PLUGIN) $(CC) $(CLANG) $(BPFTOOL)"
