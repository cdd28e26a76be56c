# SPDX-License-Identifier: BSD-2-Clause
# The product on other kernels, in qemu: make check-vm [VM_KERNELS="5.10 6.18"]. Not part of `make check`:
# it gets a Debian kernel for each, some 100 MB, and takes three minutes each. make check-vm-rdma: RDMA counters, there.

VM_DIR	   := tests/vm
VM_OUT	   := $(TESTS)/vm
VM_PROGS   := $(VM_OUT)/dying $(VM_OUT)/rdma_watch
VM_KERNELS ?= 5.10 6.1 6.12 6.18 7.2
VM_RDMA	   ?= 6.1

$(VM_OUT)/%: $(VM_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -pthread $< -ldl -o $@

$(VM_OUT)/rdma_watch: $(VM_DIR)/rdma_watch.c $(BUILD)/loader/rdma.o $(BUILD)/loader/clock.o
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -Iloader $(filter %.c %.o,$^) -o $@

.PHONY: check-vm check-vm-rdma
check-vm:
	$(Q)packaging/deps.sh vm
	$(Q)$(MAKE) --no-print-directory all standin $(VM_PROGS)
	$(Q)$(VM_DIR)/run.sh $(VM_KERNELS)

check-vm-rdma:
	$(Q)packaging/deps.sh vm
	$(Q)$(MAKE) --no-print-directory all standin $(VM_PROGS)
	$(Q)VM_COMMAND=$(VM_DIR)/rdma.sh $(VM_DIR)/run.sh $(VM_RDMA)

-include $(VM_PROGS:=.d)
