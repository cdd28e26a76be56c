# SPDX-License-Identifier: BSD-2-Clause
# What recording costs: programs and scripts that measure. `make bench` takes them all and writes docs/performance.md;
# figures need a quiet machine. `make bench-quick` runs each shortly and only prints: as a test it fails if one does
# not run, whatever it measures. tests/e2e/sched_rate.sh uses one of the programs.

BENCH_DIR   := tests/bench
BENCH_OUT   := $(BUILD)/tests/bench
BENCH_PROGS := $(addprefix $(BENCH_OUT)/,switches callback floors own_memory hooks hooks.bpf.o empty_plugin.so seed_plugin.so)

TEST_PROGS += $(BENCH_PROGS)
TESTS_SLOW += "$(BENCH_DIR)/bench.sh --quick"

$(BENCH_OUT)/%.so: $(BENCH_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -shared -pthread $< -o $@

$(BENCH_OUT)/hooks.bpf.o: $(BENCH_DIR)/hooks.bpf.c
	$(call msg,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(BENCH_OUT)/hooks: $(BENCH_DIR)/hooks.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $< -lbpf -o $@

$(BENCH_OUT)/%: $(BENCH_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -pthread $< -ldl -o $@

.PHONY: bench bench-quick
bench bench-quick:
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory all standin $(BENCH_PROGS)
	$(Q)BUILD=$(BUILD) $(GIVE_BACK) $(BENCH_DIR)/bench.sh $(if $(filter bench-quick,$@),--quick,-o docs/performance.md)

-include $(wildcard $(BENCH_OUT)/*.d)
