# SPDX-License-Identifier: BSD-2-Clause
# Other releases of Debian on this machine's kernel: sudo make check-distro [DISTROS="trixie sid"]. Not part of `make check`:
# it is `make demo` and `make check` in each, after getting all packages for these. check-distro-libc: a job in an old one.
# check-image: the image that packaging/Containerfile makes.

DISTROS ?= trixie

.PHONY: check-distro check-distro-libc check-image
check-distro:
	$(Q)packaging/deps.sh distro
	$(Q)TEST_SECONDS=7200 $(GIVE_BACK) tests/run.sh $(DISTROS:%="tests/distro/release.sh %")

check-distro-libc:
	$(Q)packaging/deps.sh distro
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory all
	$(Q)$(GIVE_BACK) tests/run.sh tests/distro/old_libc.sh

check-image:
	$(Q)packaging/deps.sh distro
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory all standin
	$(Q)TEST_SECONDS=1800 $(GIVE_BACK) tests/run.sh tests/distro/image.sh
