# SPDX-License-Identifier: BSD-2-Clause
# End to end: `ncclscope record`, `arm` and `doctor` on the running kernel, as root, with the stand-in job.

E2E_DIR := tests/e2e
E2E_OUT := $(BUILD)/e2e
# Those that wait more than they work, and whose cases other load does not decide.
E2E_BESIDE := gpus mask probes seed versions pxn threads owner paths caps service namespaces pod forks raw export merge_nodes still attach recorder_kills inject \
	      doctor errors hung signals rdma status top net unbuffered
E2E	:= counts faults sched sched_faults sleeps capture clangs report_sched report_net net_faults \
	   windows pace overload scale hostile kills kernels

TEST_PROGS += $(E2E_OUT)/life $(E2E_OUT)/sched_proc $(E2E_OUT)/sched_load $(E2E_OUT)/slow_fs \
	      $(E2E_OUT)/guest $(E2E_OUT)/hostile $(E2E_OUT)/inject.so $(E2E_OUT)/handlers.so $(E2E_OUT)/no_buffers.so
TESTS_BESIDE += $(foreach name,$(E2E_BESIDE),"$(E2E_DIR)/$(name).sh")
TESTS_E2E  += $(foreach name,$(E2E),"$(E2E_DIR)/$(name).sh")
TESTS_SLOW += "$(E2E_DIR)/clock.sh" "$(E2E_DIR)/soak.sh"

# With sanitizers: what exercises most of the recorder, and its defences. (Not where jobs crash on purpose: they report that.)
ASAN_E2E   := counts errors windows hostile
TESTS_SLOW += "$(E2E_DIR)/asan.sh $(ASAN_E2E)"

.PHONY: e2e-progs
e2e-progs: all standin $(filter $(E2E_OUT)/%,$(TEST_PROGS))

# The stand-in is found beside the program, wherever both are copied.
$(E2E_OUT)/life: $(E2E_DIR)/life.c $(STANDIN_OUT)/libnccl.so
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -Itests/standin -pthread $< -L$(STANDIN_OUT) -lnccl -Wl,-rpath,'$$ORIGIN' -o $@

$(E2E_OUT)/sched_%: $(E2E_DIR)/sched_%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $< -o $@

$(E2E_OUT)/guest: $(E2E_DIR)/guest.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -pthread $< -ldl -o $@

$(E2E_OUT)/slow_fs: $(E2E_DIR)/slow_fs.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $< -lfuse3 -o $@

# For LD_PRELOAD: without any sanitizer.
$(E2E_OUT)/no_buffers.so: SCOPE_CFLAGS += -Iplugin
$(E2E_OUT)/inject.so $(E2E_OUT)/handlers.so $(E2E_OUT)/no_buffers.so: $(E2E_OUT)/%.so: $(E2E_DIR)/%.c
	$(call msg,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -fPIC -shared $< -ldl -o $@

# The two hours that check has five minutes of.
.PHONY: soak
soak:
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory tests
	$(Q)export SOAK_SECONDS=$${SOAK_SECONDS:-7200} && TEST_SECONDS=$$((SOAK_SECONDS * 2 + 300)) $(GIVE_BACK) tests/run.sh "$(E2E_DIR)/soak.sh"

$(E2E_OUT)/hostile: $(E2E_DIR)/hostile.c $(BUILD)/loader/find/elf_file.o
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(SAN) $(LOADER_INC) -pthread $^ -lelf -ldl -o $@

-include $(wildcard $(E2E_OUT)/*.d)

TESTS_E2E += "$(E2E_DIR)/sched_rate.sh"
