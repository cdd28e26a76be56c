# SPDX-License-Identifier: BSD-2-Clause
# End to end: `ncclscope record`, `arm` and `doctor` on the running kernel, as root, with the stand-in job.

E2E_DIR := tests/e2e
E2E_OUT := $(BUILD)/e2e
E2E	:= doctor errors counts faults mask probes seed versions pxn threads owner paths caps service \
	   namespaces forks sched sched_faults raw export report_sched report_net hung net net_faults rdma attach windows status top

TEST_PROGS += $(E2E_OUT)/life $(E2E_OUT)/sched_proc $(E2E_OUT)/sched_load
TESTS_E2E  += $(foreach name,$(E2E),"$(E2E_DIR)/$(name).sh")
TESTS_SLOW += "$(E2E_DIR)/clock.sh"

# The stand-in is found beside the program, wherever both are copied.
$(E2E_OUT)/life: $(E2E_DIR)/life.c $(STANDIN_OUT)/libnccl.so
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -Itests/standin -pthread $< -L$(STANDIN_OUT) -lnccl -Wl,-rpath,'$$ORIGIN' -o $@

$(E2E_OUT)/sched_%: $(E2E_DIR)/sched_%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $< -o $@

-include $(wildcard $(E2E_OUT)/*.d)

TESTS_E2E += "$(E2E_DIR)/sched_rate.sh"
