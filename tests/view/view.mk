# SPDX-License-Identifier: BSD-2-Clause
# `view` and its page in a real browser, headless. What the tests need from npm lands in build/. perf.sh holds the page against the clock.

VIEW_OUT := $(BUILD)/tests/view

# With sanitizers, of the objects that unit tests have.
$(VIEW_OUT)/ncclscope: $(UNIT_OUT)/loader/main.o $(UNIT_LIB)
	$(call msg,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_SAN) $^ $(LOADER_LIB) -o $@

TEST_PROGS += $(VIEW_OUT)/ncclscope
TESTS_UNIT += "tests/view/view.sh $(BUILD)"
TESTS_E2E  += "tests/view/perf.sh $(BUILD)"

# Of what `make demo` has left, into docs/view.png.
.PHONY: picture
picture:
	$(Q)$(GIVE_BACK) tests/view/picture.sh $(BUILD)
