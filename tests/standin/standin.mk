# SPDX-License-Identifier: BSD-2-Clause
# The stand-in for NCCL, the job program over it, and the plugin that counts callbacks for its
# self test. The top-level Makefile includes this; outputs go to $(BUILD)/standin.

STANDIN_DIR    := tests/standin
STANDIN_OUT    := $(BUILD)/standin
STANDIN_CFLAGS := -fPIC -fvisibility=hidden -pthread
STANDIN_LIBSRC := util calls fault net flows boot proxy kernel reduce prof prof_table enqueue init
STANDIN_OBJS   := $(STANDIN_LIBSRC:%=$(STANDIN_OUT)/%.o)
STANDIN	       := $(STANDIN_OUT)/libnccl.so.2 $(STANDIN_OUT)/libnccl.so $(STANDIN_OUT)/scope-job \
		  $(STANDIN_OUT)/libnccl-profiler-logplugin.so $(STANDIN_OUT)/scope-calls

$(STANDIN_OUT)/%.o: $(STANDIN_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(SAN) $(STANDIN_CFLAGS) -c $< -o $@

$(STANDIN_OUT)/libnccl.so.2: $(STANDIN_OBJS) $(STANDIN_DIR)/standin.map
	$(call msg,LINK,$@)
	$(Q)$(CC) $(SAN) -shared -pthread -Wl,-soname,libnccl.so.2 -Wl,-z,defs \
		-Wl,--version-script=$(STANDIN_DIR)/standin.map $(STANDIN_OBJS) -ldl -lrt -o $@

$(STANDIN_OUT)/libnccl.so: $(STANDIN_OUT)/libnccl.so.2
	$(Q)ln -sf libnccl.so.2 $@

# -rdynamic: a profiler linked into the program must be found by STATIC_PLUGIN.
$(STANDIN_OUT)/scope-job: $(STANDIN_OUT)/job.o $(STANDIN_OUT)/job_check.o $(STANDIN_OUT)/libnccl.so
	$(call msg,LINK,$@)
	$(Q)$(CC) $(SAN) -pthread -rdynamic $(filter %.o,$^) -L$(STANDIN_OUT) -lnccl \
		-Wl,-rpath,'$$ORIGIN' -lm -o $@

$(STANDIN_OUT)/scope-calls: $(STANDIN_OUT)/calls_print.o
	$(call msg,LINK,$@)
	$(Q)$(CC) $(SAN) $< -o $@

$(STANDIN_OUT)/libnccl-profiler-logplugin.so: $(STANDIN_OUT)/logplugin.o
	$(call msg,LINK,$@)
	$(Q)$(CC) $(SAN) -shared -pthread $< -o $@

-include $(wildcard $(STANDIN_OUT)/*.d)
