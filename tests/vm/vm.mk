# SPDX-License-Identifier: BSD-2-Clause
# The product on other kernels, in qemu: make check-vm [VM_KERNELS="5.10 6.12-arm64"]. Not part of `make check`:
# it gets a Debian kernel for each, some 100 MB, and takes three minutes each. make check-vm-rdma: RDMA counters, there; check-vm-unit: the unit tests on arm64.
# For arm64 all is built here, against a Debian of that architecture, which is also what the machine runs.

VM_DIR	   := tests/vm
VM_OUT	   := $(TESTS)/vm
VM_PROGS   := $(VM_OUT)/dying $(VM_OUT)/rdma_watch
VM_KERNELS ?= 5.10 6.1 6.12 6.18 7.2 6.1-arm64 6.12-arm64 6.18-arm64-16k 7.2-arm64
VM_RDMA	   ?= 6.1

$(VM_OUT)/%: $(VM_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) -pthread $< -ldl -o $@

$(VM_OUT)/rdma_watch: $(VM_DIR)/rdma_watch.c $(BUILD)/loader/node/rdma.o $(BUILD)/loader/lib/clock.o
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(SAN) $(LOADER_INC) $(filter %.c %.o,$^) -o $@

.PHONY: check-vm check-vm-rdma check-vm-unit vm-build vm-unit
vm-build: all standin $(VM_PROGS)
# Without those that want TSan, or traces to read.
vm-unit: vm-build $(filter-out %_tsan_test %/check_json_test,$(UNIT_PROGS))

# Not build/arm64: that is cross-check's, without these libraries.
VM_SYSROOT     := $(abspath $(BUILD))/vm/arm64
VM_BUILD_ARM64 := $(BUILD)/vm/build-arm64

# vm-build-arm64, vm-unit-arm64; not (77) where there is no Debian to be had, which run.sh says of each kernel.
vm-%-arm64:
	$(Q)$(VM_DIR)/userland.sh arm64 $(VM_SYSROOT) || [ $$? = 77 ]
	$(Q)[ ! -d $(VM_SYSROOT) ] || $(MAKE) --no-print-directory CROSS_COMPILE=aarch64-linux-gnu- \
		CC="aarch64-linux-gnu-gcc --sysroot=$(VM_SYSROOT)" BUILD=$(VM_BUILD_ARM64) UNIT_SAN= vm-$*

check-vm:
	$(Q)packaging/deps.sh vm
	$(Q)$(MAKE) --no-print-directory vm-build $(if $(findstring -arm64,$(VM_KERNELS)),vm-build-arm64)
	$(Q)$(VM_DIR)/run.sh $(VM_KERNELS)

check-vm-unit:
	$(Q)packaging/deps.sh vm
	$(Q)$(MAKE) --no-print-directory vm-unit-arm64
	$(Q)VM_TIMEOUT=900 VM_COMMAND=$(VM_DIR)/unit.sh $(VM_DIR)/run.sh 6.12-arm64

check-vm-rdma:
	$(Q)packaging/deps.sh vm
	$(Q)$(MAKE) --no-print-directory vm-build
	$(Q)VM_COMMAND=$(VM_DIR)/rdma.sh $(VM_DIR)/run.sh $(VM_RDMA)

-include $(VM_PROGS:=.d)
