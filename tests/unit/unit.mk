# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of the loader's and the plugin's parts, always with ASan and UBSan: most of what they are
# given is hostile. Each NAME_test.c here is one program over the objects that it needs.

UNIT_DIR    := tests/unit
UNIT_OUT    := $(BUILD)/tests/unit
UNIT_SAN    := -O1 -Wno-format-truncation -Wno-maybe-uninitialized -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
UNIT_LIB    := $(UNIT_OUT)/loader.a
UNIT_LOADER := elf correlate decode raw switches report report_p2p export protobuf json clock gpu_clock names out node sched sched_sleeps sched_random sched_trace sched_recordings net_join net_trace signal kmsg gpu rdma rdma_sampler netdev ksyms slab pace patience rescue scan blocks backlog retain status streams trace_text merge_clock record follow realtime fexit who attach feat
UNIT_PROGS  := $(UNIT_LOADER:%=$(UNIT_OUT)/%_test) $(UNIT_OUT)/plugin_test \
	       $(UNIT_OUT)/cuda_test $(UNIT_OUT)/linker_test $(UNIT_OUT)/target_test $(UNIT_OUT)/out_tsan_test $(UNIT_OUT)/backlog_tsan_test \
	       $(UNIT_OUT)/check_json_test \
	       $(UNIT_OUT)/schema_tables

export CMOCKA_MESSAGE_OUTPUT := TAP

# ---- The loader, all but main() --------------------------------------------------------------------

$(eval $(call LOADER_NEEDS,$(UNIT_OUT)))

$(UNIT_OUT)/loader/%.o: loader/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(UNIT_SAN) $(LOADER_DEF) -c $< -o $@

$(UNIT_LIB): $(patsubst %,$(UNIT_OUT)/loader/%.o,$(filter-out main,$(LOADER_SRC)))
	$(call msg,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# Deprecated: cmocka 2 has other names for assert_in_range(), which cmocka 1 has not.
$(UNIT_OUT)/%.o: $(UNIT_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(UNIT_SAN) -Wno-deprecated-declarations $(LOADER_INC) -Iplugin -c $< -o $@

$(UNIT_OUT)/names_test: $(UNIT_OUT)/plugin/names.o # v1's numbers in words

# What follow.c asks BPF, processes and the pipeline for is the test's.
$(UNIT_OUT)/follow_test: UNIT_WRAP := attach__stat attach__proc_stat attach__proc_forget attach__watch attach__task pipeline__feed \
	target__want target__age target__comms target__read_tbufs scan__attached_ns attach__drain attach__known_ns clock_fit__covers

# What feed.c feeds and says, and reading that hangs.
$(UNIT_OUT)/rdma_sampler_test: UNIT_WRAP := pipeline__feed log_printf pread

# Signals that come while a command is started.
$(UNIT_OUT)/record_test: UNIT_WRAP := fork execvp

# And what scan.c says.
$(UNIT_OUT)/scan_test: UNIT_WRAP := log_printf

# Nothing is attached to, but asked of the kernel and of libbpf.
$(UNIT_OUT)/attach_test: UNIT_WRAP := uprobe_multi__link bpf_program__autoload bpf_program__fd bpf_program__attach_uprobe_opts \
	bpf_program__attach_usdt
$(UNIT_OUT)/attach_test.o: SCOPE_CFLAGS += -DPLUGIN_PATH='"$(abspath $(BUILD)/$(PLUGIN))"'
$(UNIT_OUT)/attach_test.o: $(BUILD)/scope.skel.h
$(UNIT_OUT)/attach_test: | $(BUILD)/$(PLUGIN)

# A recorder that is attached to nothing.
$(UNIT_OUT)/status_test: UNIT_WRAP := attach__ring attach__stat

# What the kernel says of record's programs.
$(UNIT_OUT)/feat_test: UNIT_WRAP := attach__try

$(UNIT_OUT)/%_test: $(UNIT_OUT)/%_test.o $(UNIT_LIB)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(UNIT_SAN) $(UNIT_WRAP:%=-Wl,--wrap=%) $^ -lcmocka $(LOADER_LIB) -o $@

$(UNIT_OUT)/plugin/%.o: plugin/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(UNIT_SAN) -Iplugin -c $< -o $@

$(UNIT_OUT)/plugin_test: $(UNIT_OUT)/plugin_test.o $(PLUGIN_SRC:%=$(UNIT_OUT)/plugin/%.o)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(UNIT_SAN) -Wl,--wrap=probe_start -pthread $^ -lcmocka -o $@

# The same tests with TSan, as there are threads.
OUT_TSAN     := $(addprefix trace/,out out_threads out_dir) $(addprefix lib/,json zst thread log)
BACKLOG_TSAN := $(addprefix decode/,backlog blocks) $(addprefix lib/,clock log)

$(UNIT_OUT)/tsan/%.o: loader/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -fsanitize=thread $(LOADER_DEF) -c $< -o $@

$(UNIT_OUT)/tsan/%.o: $(UNIT_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -fsanitize=thread $(LOADER_INC) -c $< -o $@

$(UNIT_OUT)/out_tsan_test: $(OUT_TSAN:%=$(UNIT_OUT)/tsan/%.o)
$(UNIT_OUT)/backlog_tsan_test: $(BACKLOG_TSAN:%=$(UNIT_OUT)/tsan/%.o)

$(UNIT_OUT)/%_tsan_test: $(UNIT_OUT)/tsan/%_test.o
	$(call msg,LINK,$@)
	$(Q)$(CC) -fsanitize=thread $^ -lcmocka $(LOADER_LIB) -o $@

# A libcuda for the test of the GPU's UUID, in three versions.
FAKE_CUDA      := $(UNIT_OUT)/cuda/libcuda.so.1 $(UNIT_OUT)/cuda-no-v2/libcuda.so.1 \
		  $(UNIT_OUT)/cuda-no-uuid/libcuda.so.1
FAKE_CUDA_DEFS  = $(if $(findstring no-v2,$@),-DCUDA_NO_V2) $(if $(findstring no-uuid,$@),-DCUDA_NO_UUID)

$(FAKE_CUDA): $(UNIT_DIR)/fake_cuda.c
	$(call msg,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(WARN) $(FAKE_CUDA_DEFS) -fPIC -shared -Wl,-soname,libcuda.so.1 $< -o $@

$(UNIT_OUT)/cuda_test.o: SCOPE_CFLAGS += -DFAKE_CUDA_DIR='"$(abspath $(UNIT_OUT))"'

$(UNIT_OUT)/cuda_test: $(UNIT_OUT)/cuda_test.o $(PLUGIN_SRC:%=$(UNIT_OUT)/plugin/%.o) $(FAKE_CUDA)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(UNIT_SAN) -pthread $(filter %.o,$^) -lcmocka \
		-Wl,--disable-new-dtags,-rpath,$(abspath $(UNIT_OUT))/cuda -o $@

# An NVML; and as older drivers name things.
FAKE_NVML := $(UNIT_OUT)/nvml/libnvidia-ml.so.1 $(UNIT_OUT)/nvml-old/libnvidia-ml.so.1

$(FAKE_NVML): $(UNIT_DIR)/fake_nvml.c loader/node/nvml_abi.h
	$(call msg,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -g -std=gnu11 -D_GNU_SOURCE $(WARN) $(if $(findstring old,$@),-DFAKE_NVML_OLD) $(LOADER_INC) -fPIC -shared \
		-Wl,-soname,libnvidia-ml.so.1 $< -o $@

$(UNIT_OUT)/gpu_test.o: SCOPE_CFLAGS += -DFAKE_NVML_DIR='"$(abspath $(UNIT_OUT))"'

$(UNIT_OUT)/gpu_test: | $(FAKE_NVML)

# Two libnccl, and the plugin as it is installed.
FAKE_NCCL := $(UNIT_OUT)/nccl/libnccl.so.2 $(UNIT_OUT)/nccl/other/libnccl.so.2

$(FAKE_NCCL): $(UNIT_DIR)/fake_nccl.c
	$(call msg,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(WARN) -fPIC -shared $< -o $@

$(UNIT_OUT)/linker_test: $(UNIT_DIR)/linker_test.c $(FAKE_NCCL) $(FAKE_CUDA) $(BUILD)/$(PLUGIN)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -Iplugin -DFAKE_NCCL_DIR='"$(abspath $(UNIT_OUT))/nccl"' \
		-DFAKE_CUDA='"$(abspath $(UNIT_OUT))/cuda/libcuda.so.1"' \
		-DPLUGIN_PATH='"$(abspath $(BUILD)/$(PLUGIN))"' -pthread $< -lcmocka -o $@

$(UNIT_OUT)/target_test.o: SCOPE_CFLAGS += -DFAKE_NCCL='"$(abspath $(UNIT_OUT))/nccl/libnccl.so.2"' \
		-DPLUGIN_PATH='"$(abspath $(BUILD)/$(PLUGIN))"'

$(UNIT_OUT)/target_test: $(UNIT_OUT)/target_test.o $(UNIT_LIB) $(FAKE_NCCL) $(BUILD)/$(PLUGIN)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(UNIT_SAN) $(filter %.o %.a,$^) -lcmocka $(LOADER_LIB) -o $@

$(UNIT_OUT)/schema_tables: $(UNIT_OUT)/schema_tables.o
	$(call msg,LINK,$@)
	$(Q)$(CC) $(UNIT_SAN) $^ -ljansson -o $@

.PRECIOUS: $(UNIT_OUT)/%.o

TEST_PROGS += $(UNIT_PROGS)
TESTS_UNIT += $(foreach t,$(UNIT_LOADER) out_tsan backlog_tsan plugin cuda linker target,"$(UNIT_OUT)/$(t)_test") \
	      "tests/unit/export.sh $(BUILD)/ncclscope" "tests/unit/nccl_capture.sh $(BUILD)/ncclscope" \
	      "tests/unit/merge.sh $(BUILD)/tests/view/ncclscope" \
	      "tests/unit/files.sh $(BUILD)/tests/view/ncclscope" \
	      "tests/unit/metrics.sh $(BUILD)/tests/view/ncclscope" \
	      "tests/unit/check.sh $(BUILD)/ncclscope $(UNIT_OUT)/schema_tables" \
	      "$(UNIT_OUT)/check_json_test tests/unit/traces/*.jsonl"

-include $(wildcard $(addprefix $(UNIT_OUT)/,*.d */*.d */*/*.d))
