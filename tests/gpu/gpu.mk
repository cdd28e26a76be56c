# SPDX-License-Identifier: BSD-2-Clause
# What only a GPU and NVIDIA's NCCL can show: that the stand-in, with which all other tests work, is like them. `check`
# has these tests too, and they say what they miss; check-gpu first builds the job over NVIDIA's libraries.
# NCCL_HOME is where include/nccl.h and lib/libnccl.so.2 are: a package's /usr, or what Python's nvidia-nccl-* installs.

GPU_OUT	  := $(BUILD)/gpu
CUDA_HOME ?= /usr/local/cuda
# Asked for only where it is needed: each takes a while.
NCCL_HOME ?= $(or $(shell python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])' 2>/dev/null),/usr)
NCCL_LIB  = $(firstword $(wildcard $(NCCL_HOME)/lib/libnccl.so.2 $(NCCL_HOME)/lib/$(MULTIARCH)/libnccl.so.2))

TESTS_SLOW += "tests/gpu/nccl.sh"

$(GPU_OUT)/scope-job: $(STANDIN_DIR)/job.c $(STANDIN_DIR)/job_check.c $(STANDIN_DIR)/job.h
	$(call msg,LINK,$@)
	$(Q)[ -n "$(NCCL_LIB)" ] || { echo "Failed to find NVIDIA's NCCL in '$(NCCL_HOME)': set NCCL_HOME" >&2; exit 1; }
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -DUSE_REAL_NCCL -I$(NCCL_HOME)/include -I$(CUDA_HOME)/include -pthread $(filter %.c,$^) \
		$(NCCL_LIB) -Wl,-rpath,$(dir $(NCCL_LIB)) -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt -lm -o $@

.PHONY: check-gpu
check-gpu:
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory all standin $(GPU_OUT)/scope-job
	$(Q)$(GIVE_BACK) tests/run.sh --timed "tests/gpu/nccl.sh"
