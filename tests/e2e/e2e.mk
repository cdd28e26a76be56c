# SPDX-License-Identifier: BSD-2-Clause
# End to end: `ncclscope record`, `arm` and `doctor` on the running kernel, as root, with the stand-in job.

E2E_DIR := tests/e2e
E2E_OUT := $(BUILD)/e2e
E2E	:= doctor errors counts faults mask probes seed versions pxn threads owner namespaces forks

TEST_PROGS += $(E2E_OUT)/life
TESTS_E2E  += $(foreach name,$(E2E),"$(E2E_DIR)/$(name).sh")
TESTS_SLOW += "$(E2E_DIR)/clock.sh"

# The stand-in is found beside the program, wherever both are copied.
$(E2E_OUT)/life: $(E2E_DIR)/life.c $(STANDIN_OUT)/libnccl.so
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -Itests/standin -pthread $< -L$(STANDIN_OUT) -lnccl -Wl,-rpath,'$$ORIGIN' -o $@

-include $(E2E_OUT)/life.d
