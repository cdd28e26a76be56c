# SPDX-License-Identifier: BSD-2-Clause
# Other releases of Debian on this machine's kernel: sudo make check-distro [DISTROS="trixie sid"]. Not part of `make check`:
# it is `make demo` and `make check` in each, after getting all packages for these. check-distro-libc: a job in an old one.

DISTROS ?= trixie

.PHONY: check-distro check-distro-libc
check-distro:
	$(Q)packaging/deps.sh distro
	$(Q)TEST_SECONDS=7200 tests/run.sh $(DISTROS:%="tests/distro/release.sh %")

check-distro-libc:
	$(Q)packaging/deps.sh distro
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/run.sh tests/distro/old_libc.sh
