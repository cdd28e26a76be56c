# SPDX-License-Identifier: BSD-2-Clause
# The product on other kernels, in qemu: make check-vm [VM_KERNELS="5.10 6.1 6.12 6.18"]. Not part of `make check`:
# it gets a Debian kernel for each, some 100 MB, and takes a minute each.

VM_DIR	   := tests/vm
VM_OUT	   := $(TESTS)/vm
VM_PROGS   := $(VM_OUT)/dying
VM_KERNELS ?= 5.10 6.1 6.12 6.18

$(VM_OUT)/%: $(VM_DIR)/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -pthread $< -ldl -o $@

.PHONY: check-vm
check-vm:
	$(Q)packaging/deps.sh vm
	$(Q)$(MAKE) --no-print-directory all standin $(VM_PROGS)
	$(Q)$(VM_DIR)/run.sh $(VM_KERNELS)

-include $(VM_PROGS:=.d)
