# SPDX-License-Identifier: BSD-2-Clause
# What recording costs: programs and scripts that measure. Figures need a quiet machine and judge nothing in
# CI, so nothing here is a test; tests/e2e/sched_rate.sh uses the program.

BENCH_DIR := tests/bench
BENCH_OUT := $(BUILD)/tests/bench

TEST_PROGS += $(BENCH_OUT)/switches

$(BENCH_OUT)/switches: $(BENCH_DIR)/switches.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -pthread $< -ldl -o $@

.PHONY: bench
bench: all standin $(BENCH_OUT)/switches
	$(Q)BUILD=$(BUILD) $(BENCH_DIR)/sched_cost.sh
	$(Q)BUILD=$(BUILD) $(BENCH_DIR)/net_cost.sh

-include $(BENCH_OUT)/switches.d
