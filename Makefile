# SPDX-License-Identifier: BSD-2-Clause
# ncclscope. Everything lands in build/. `make help` lists the targets; V=1 shows the commands,
# ASAN=1 builds the loader and the tests with AddressSanitizer and UBSan.

VERSION := 0.1.0

BUILD	 ?= build
PREFIX	 ?= /usr/local
BINDIR	 ?= $(PREFIX)/bin
LIBDIR	 ?= $(PREFIX)/lib
MANDIR	 ?= $(PREFIX)/share/man
DOCDIR	 ?= $(PREFIX)/share/doc/ncclscope
INCDIR	 ?= $(PREFIX)/include/ncclscope
COMPDIR	 ?= $(PREFIX)/share/bash-completion/completions
UNITDIR	 ?= $(PREFIX)/lib/systemd/system

# CC and friends from the environment or the command line win over make's own defaults.
define allow-override
  $(if $(or $(findstring environment,$(origin $(1))),$(findstring command line,$(origin $(1)))),,$(eval $(1) = $(2)))
endef
$(call allow-override,CC,$(CROSS_COMPILE)gcc)
$(call allow-override,LD,$(CROSS_COMPILE)ld)
$(call allow-override,AR,$(CROSS_COMPILE)ar)
CLANG	?= clang
# Ubuntu's /usr/sbin/bpftool is a script that wants the one of the running kernel; any other will do.
BPFTOOL ?= $(firstword $(wildcard /usr/lib/linux-tools/*/bpftool /usr/lib/linux-tools-*/bpftool \
	     /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)

# The target's architecture, from the compiler, so that CROSS_COMPILE is enough.
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
MACHINE	  := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
ARCH	  := $(MACHINE:x86_64=x86)
ARCH	  := $(ARCH:aarch64=arm64)

ifeq ($(V),1)
  Q   =
  msg =
else
  Q   = @
  msg = @printf '  %-8s %s\n' "$(1)" "$(2)";
endif

# WERROR=1 is for those who work on it (.ci/run): a warning that only a newer compiler has must not keep anybody from building.
# CFLAGS are of who builds it, packagers give theirs on the command line. What it does not build without is in SCOPE_CFLAGS.
WARN   := -Wall -Wextra -Wshadow -Wmissing-prototypes $(if $(WERROR),-Werror)
CFLAGS ?= -O2 -g
SCOPE_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARN) -MMD -MP -Iinclude -I$(BUILD)
comma  := ,
SAN    := $(if $(ASAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined \
		-fno-omit-frame-pointer)

LOADER_DIR := $(wildcard loader/*/)
LOADER_SRC := $(patsubst loader/%.c,%,$(wildcard loader/*.c loader/*/*.c))
LOADER_INC := -Iloader $(LOADER_DIR:%/=-I%)
LOADER_OBJ := $(LOADER_SRC:%=$(BUILD)/loader/%.o)
LOADER_LIB := -lbpf -lelf -lz -ljansson -lcap-ng -lzstd -lncursesw -ltinfo -pthread
LOADER_DEF := $(LOADER_INC) -DNCCLSCOPE_VERSION='"$(VERSION)"' -DNCCLSCOPE_LIBDIR='"$(LIBDIR)"'

PLUGIN_SRC := plugin area buffer probes names kernels cuda
PLUGIN_OBJ := $(PLUGIN_SRC:%=$(BUILD)/plugin/%.o)
PLUGIN	   := libnccl-profiler-ncclscope.so

# Before each command of a target that root runs. Not in a dry run, which has every line run that $(MAKE) is in.
GIVE_BACK = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),,packaging/give_back.sh $(BUILD))

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all help clean demo check check-unit check-e2e install install-default uninstall image format lint deps

all: $(BUILD)/ncclscope $(BUILD)/$(PLUGIN) $(BUILD)/libnccl-profiler.so

help:
	@echo "make             build $(BUILD)/ncclscope and $(BUILD)/$(PLUGIN)"
	@echo "sudo make demo   install what is missing, build, record a real job, print the summary"
	@echo "sudo make check  install what tests need, build, run every test"
	@echo "make check-unit  the tests that need no root"
	@echo "sudo make check-gpu over NVIDIA's NCCL on a GPU (NCCL_HOME, CUDA_HOME: where they are)"
	@echo "sudo make soak   two hours of recording at 200,000 records a second"
	@echo "sudo make bench  what recording costs; writes docs/performance.md. bench-quick: in 3 minutes"
	@echo "make install     to PREFIX=$(PREFIX), below DESTDIR"
	@echo "make image       $(IMAGE), by $(CONTAINER_TOOL), for nodes on which nothing is installed"
	@echo "make check-vm    other kernels, and arm64, in qemu (VM_KERNELS)"
	@echo "sudo make check-distro  other releases of Debian (DISTROS); check-image: the image"
	@echo "make cross-check plugin and BPF programs for arm64"
	@echo "make fuzz-nightly each fuzzer for 10 minutes (FUZZ_SECONDS)"
	@echo "make analyze     clang-tidy and cppcheck"
	@echo "sudo make coverage lines of plugin/ and loader/ that the tests run"
	@echo "make uninstall, clean, format, lint, deps"

# ---- BPF -------------------------------------------------------------------------------------------
# vmlinux.h is of the target; <asm/errno.h> lies in the multiarch folder.

BPF_CFLAGS := -g -O2 -target bpf -D__TARGET_ARCH_$(ARCH) -Ivmlinux/$(ARCH) -Iinclude \
	      -idirafter /usr/include/$(MULTIARCH) -idirafter /usr/$(MULTIARCH)/include -Wall $(if $(WERROR),-Werror)

$(BUILD)/%.bpf.o: bpf/%.bpf.c
	$(call msg,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

# All of record's programs share their maps: one object.
$(BUILD)/scope.bpf.o: $(BUILD)/nccl.bpf.o $(BUILD)/signal.bpf.o $(BUILD)/symbol.bpf.o $(BUILD)/sched.bpf.o $(BUILD)/net.bpf.o
	$(call msg,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(BUILD)/%.skel.h: $(BUILD)/%.bpf.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# ---- Loader ----------------------------------------------------------------------------------------

SKEL_OBJ := $(addprefix loader/attach/,attach.o attach_usdt.o attach_net.o attach_switches.o)

# What has to be there before objects of the loader that are built in $(1).
define LOADER_NEEDS
$(SKEL_OBJ:%=$(1)/%): $(BUILD)/scope.skel.h
$(1)/loader/doctor/feat_bpf.o: $(BUILD)/probe.skel.h
$(1)/loader/correlate/syscalls.o: $(BUILD)/syscall_table.h
$(1)/loader/export/export_perfetto.o: $(BUILD)/perfetto_fields.h
$(1)/loader/trace/schema.o: $(BUILD)/trace_schema.h
$(1)/loader/view/view_page.o: $(BUILD)/view_template.h
endef
$(eval $(call LOADER_NEEDS,$(BUILD)))

$(BUILD)/trace_schema.h: docs/trace.schema.json
	$(call msg,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q){ echo 'static const unsigned char trace_schema_json[] = {'; \
	  od -An -v -tx1 $< | sed 's/[0-9a-f][0-9a-f]/0x&,/g'; \
	  echo '};'; \
	  echo 'static const unsigned int trace_schema_json_len = sizeof(trace_schema_json);'; } > $@

# The page of `view`: what viewer/ has, put together. The order is that in which the page runs it.
VIEWER_JS := util names store join parse load layout raster lanes draw heat filter search panel detail input main
VIEWER	  := viewer/page.html viewer/page.css $(VIEWER_JS:%=viewer/%.js)

$(BUILD)/view_template.html: viewer/assemble.sh $(VIEWER)
	$(call msg,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)viewer/assemble.sh $(VIEWER) > $@

$(BUILD)/view_template.h: $(BUILD)/view_template.html
	$(call msg,GEN,$@)
	$(Q){ echo 'static const unsigned char view_template_html[] = {'; \
	  od -An -v -tx1 $< | sed 's/[0-9a-f][0-9a-f]/0x&,/g'; \
	  echo '};'; \
	  echo 'static const unsigned int view_template_html_len = sizeof(view_template_html);'; } > $@

# The system calls of the target, by the names that its headers define; the numbers come when it is compiled.
$(BUILD)/syscall_table.h:
	$(call msg,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)echo '#include <sys/syscall.h>' | $(CC) -E -dM - | \
	  sed -n 's/^#define __NR_\([a-z_][a-z0-9_]*\) .*/SCOPE_SYSCALL(\1)/p' | \
	  sed '/(syscalls)/d; /(arch_specific_syscall)/d' | LC_ALL=C sort > $@
	$(Q)[ -s $@ ]

# PB_MESSAGE_FIELD and PB_ENUM_VALUE, of Perfetto's messages and enumerations.
$(BUILD)/perfetto_fields.h: loader/export/perfetto.proto
	$(call msg,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)awk '/^ *(message|enum) / { of[++n] = $$2 } /^ *}/ { n-- } \
	  / = [0-9]+;/ { sub(/;/, "", $$NF); print "#define PB_" of[n] "_" $$(NF - 2), $$NF }' $< > $@
	$(Q)[ -s $@ ]

$(BUILD)/loader/%.o: loader/%.c
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(SAN) $(LOADER_DEF) -c $< -o $@

# The directory of the plugin is compiled in, and may be another one when it is installed.
$(BUILD)/loader/find/plugin_path.o: $(BUILD)/libdir
ifneq ($(shell cat $(BUILD)/libdir 2>/dev/null),$(LIBDIR))
.PHONY: $(BUILD)/libdir
endif

$(BUILD)/libdir:
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(LIBDIR)' > $@

$(BUILD)/ncclscope: $(LOADER_OBJ)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(LDFLAGS) $(SAN) $^ $(LOADER_LIB) -o $@

# ---- Plugin ----------------------------------------------------------------------------------------
# A guest in somebody else's process: libc only (plugin/libc_versions.h: however old), nothing exported but NCCL's
# tables and the control block, never unmapped (a thread may end after dlclose, and its exit handler is ours).

PLUGIN_CFLAGS  := -fPIC -fvisibility=hidden -include plugin/libc_versions.h
PLUGIN_LIB     := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0
PLUGIN_LDFLAGS := -shared -Wl,--version-script=plugin/plugin.map -Wl,-z,nodelete -Wl,-z,defs \
		  -Wl,-z,now -Wl,-z,relro -Wl,--build-id=sha1 -Wl,-soname,$(PLUGIN)

$(BUILD)/plugin/%.o: plugin/%.c plugin/libc_versions.h
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SCOPE_CFLAGS) $(CFLAGS) $(PLUGIN_CFLAGS) -Iplugin -c $< -o $@

$(BUILD)/$(PLUGIN): $(PLUGIN_OBJ) plugin/plugin.map
	$(call msg,LINK,$@)
	$(Q)$(CC) $(PLUGIN_LDFLAGS) $(PLUGIN_OBJ) $(PLUGIN_LIB) -o $@

$(BUILD)/libnccl-profiler.so: $(BUILD)/$(PLUGIN)
	$(Q)ln -sf $(PLUGIN) $@

# ---- For another architecture ----------------------------------------------------------------------
# make CROSS_COMPILE=aarch64-linux-gnu- BUILD=build/arm64 plugin bpf: what runs in the job and in the
# kernel; the loader needs the libraries of the target besides. <sys/sdt.h> is the same everywhere, but
# lies among the headers of the build machine: only it is borrowed.

.PHONY: plugin bpf cross-check

plugin: $(BUILD)/$(PLUGIN)

bpf: $(patsubst bpf/%.c,$(BUILD)/%.o,$(wildcard bpf/*.bpf.c))

ifneq ($(CROSS_COMPILE),)
$(BUILD)/plugin/probes.o: $(BUILD)/sdt/sys/sdt.h
$(BUILD)/plugin/probes.o: SCOPE_CFLAGS += -idirafter $(BUILD)/sdt

$(BUILD)/sdt/sys/sdt.h: $(firstword $(wildcard /usr/include/sys/sdt.h /usr/include/*/sys/sdt.h))
	$(Q)mkdir -p $(@D)
	$(Q)cp $< $(<D)/sdt-config.h $(@D)/
endif

cross-check:
	$(Q)$(MAKE) --no-print-directory CROSS_COMPILE=aarch64-linux-gnu- CC=aarch64-linux-gnu-gcc \
		BUILD=$(BUILD)/arm64 plugin bpf

# ---- The stand-in for NCCL, and tests --------------------------------------------------------------

include tests/standin/standin.mk
include tests/tests.mk

# ---- Around ----------------------------------------------------------------------------------------

deps:
	$(Q)packaging/deps.sh build

demo:
	$(Q)packaging/deps.sh demo
	$(Q)$(GIVE_BACK) $(MAKE) --no-print-directory all standin
	$(Q)$(GIVE_BACK) tests/e2e/demo.sh $(BUILD)

# For nodes on which nothing is installed; docs/containers.md.
CONTAINER_TOOL ?= $(notdir $(shell command -v podman || command -v docker || echo podman))
IMAGE	       ?= ncclscope:$(VERSION)
image:
	$(CONTAINER_TOOL) build $(IMAGE_OPTIONS) -f packaging/Containerfile -t $(IMAGE) .

# What uninstall takes away is exactly what install has brought, file by file.
INST_MAN := $(notdir $(wildcard man/*.1))
INST_DOC := $(wildcard docs/*.md docs/*.json docs/*.svg docs/*.png) LICENSE LICENSE.GPL-2.0
INST_INC := include/scope_abi.h include/scope_probes.h

install: all
	$(Q)$(GIVE_BACK)
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(LIBDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(DOCDIR) \
	  $(DESTDIR)$(INCDIR) $(DESTDIR)$(COMPDIR) $(DESTDIR)$(UNITDIR)
	install -m 755 $(BUILD)/ncclscope $(DESTDIR)$(BINDIR)/
	install -m 644 $(BUILD)/$(PLUGIN) $(DESTDIR)$(LIBDIR)/
	install -m 644 $(INST_MAN:%=man/%) $(DESTDIR)$(MANDIR)/man1/
	install -m 644 $(INST_DOC) $(DESTDIR)$(DOCDIR)/
	sed 's|](docs/|](|g; s|\[CONTRIBUTING.md\](CONTRIBUTING.md)|CONTRIBUTING.md in its sources|' README.md \
	  > $(DESTDIR)$(DOCDIR)/README.md
	chmod 644 $(DESTDIR)$(DOCDIR)/README.md
	install -m 644 $(INST_INC) $(DESTDIR)$(INCDIR)/
	install -m 644 packaging/ncclscope.bash-completion $(DESTDIR)$(COMPDIR)/ncclscope
	sed 's|/usr/local/bin/|$(BINDIR)/|' packaging/ncclscope.service > $(DESTDIR)$(UNITDIR)/ncclscope.service
	chmod 644 $(DESTDIR)$(UNITDIR)/ncclscope.service

# The plugin for every NCCL job on this machine that names no other: dormant until somebody records.
install-default: install
	ln -sfn $(PLUGIN) $(DESTDIR)$(LIBDIR)/libnccl-profiler.so

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/ncclscope $(DESTDIR)$(LIBDIR)/$(PLUGIN) \
	  $(DESTDIR)$(COMPDIR)/ncclscope $(DESTDIR)$(UNITDIR)/ncclscope.service
	[ "$$(readlink $(DESTDIR)$(LIBDIR)/libnccl-profiler.so)" != $(PLUGIN) ] || \
	  rm -f $(DESTDIR)$(LIBDIR)/libnccl-profiler.so
	rm -f $(INST_MAN:%=$(DESTDIR)$(MANDIR)/man1/%)
	rm -f $(addprefix $(DESTDIR)$(DOCDIR)/,$(notdir $(INST_DOC)) README.md)
	rm -f $(addprefix $(DESTDIR)$(INCDIR)/,$(notdir $(INST_INC)))
	rmdir $(DESTDIR)$(DOCDIR) $(DESTDIR)$(INCDIR) 2>/dev/null || true

CLANG_FORMAT ?= $(firstword $(wildcard /usr/bin/clang-format-14) clang-format)
FORMAT_SRC   := $(wildcard include/*.h bpf/*.[ch] plugin/*.[ch] loader/*.[ch] loader/*/*.[ch] tests/*/*.[ch])
LINT_SH	     := $(wildcard packaging/*.sh) viewer/assemble.sh .ci/run $(wildcard tests/*.sh tests/*/*.sh)

format:
	$(CLANG_FORMAT) -i $(FORMAT_SRC)

lint:
	$(CLANG_FORMAT) --dry-run -Werror $(FORMAT_SRC)
	mandoc -T lint -W error man/*.1
	shellcheck -x -P SCRIPTDIR -S warning $(LINT_SH)

clean:
	rm -rf $(BUILD)

-include $(LOADER_OBJ:.o=.d) $(PLUGIN_OBJ:.o=.d) $(wildcard $(BUILD)/*.bpf.d)
