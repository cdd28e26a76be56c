# SPDX-License-Identifier: BSD-2-Clause
# The callback fuzzer: the plugin's objects and one program, built plain, with ASan and UBSan, and
# with TSan.

FUZZ_DIR   := tests/fuzz
FUZZ_OUT   := $(BUILD)/tests/fuzz
FUZZ_WRAP  := -Wl,--wrap=probe_flush
FUZZ_WRAPS := $(FUZZ_WRAP),--wrap=probe_start,--wrap=probe_state,--wrap=probe_stop
FUZZ_FLAGS := -fvisibility=hidden -Iplugin -pthread
FUZZ_KINDS := plain asan tsan
FUZZ_SAN_plain :=
FUZZ_SAN_asan  := -fsanitize=address,undefined -fno-sanitize-recover=undefined \
		  -fno-omit-frame-pointer
FUZZ_SAN_tsan  := -fsanitize=thread
FUZZ_PROGS     := $(foreach k,$(FUZZ_KINDS),$(FUZZ_OUT)/plugin_fuzz-$(k))

define FUZZ_KIND
$(FUZZ_OUT)/$(1)/%.o: plugin/%.c
	$$(call msg,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SCOPE_CFLAGS) $$(CFLAGS) $$(FUZZ_SAN_$(1)) $$(FUZZ_FLAGS) -fPIC -c $$< -o $$@

$(FUZZ_OUT)/$(1)/%.o: $(FUZZ_DIR)/%.c
	$$(call msg,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SCOPE_CFLAGS) $$(CFLAGS) $$(FUZZ_SAN_$(1)) $$(FUZZ_FLAGS) -c $$< -o $$@

$(FUZZ_OUT)/plugin_fuzz-$(1): $(FUZZ_OUT)/$(1)/plugin_fuzz.o $$(PLUGIN_SRC:%=$(FUZZ_OUT)/$(1)/%.o)
	$$(call msg,LINK,$$@)
	$$(Q)$$(CC) $$(FUZZ_SAN_$(1)) -pthread $$(FUZZ_WRAPS) $$^ -o $$@
endef
$(foreach k,$(FUZZ_KINDS),$(eval $(call FUZZ_KIND,$(k))))

# 10^8 events; and the library itself, through dlopen.
$(FUZZ_OUT)/ids: $(FUZZ_OUT)/plain/ids.o $(PLUGIN_SRC:%=$(FUZZ_OUT)/plain/%.o)
	$(call msg,LINK,$@)
	$(Q)$(CC) -pthread $(FUZZ_WRAP) $^ -o $@

$(FUZZ_OUT)/plain/reopen.o: SCOPE_CFLAGS += $(LOADER_INC)

$(FUZZ_OUT)/reopen: $(FUZZ_OUT)/plain/reopen.o $(BUILD)/loader/find/elf_file.o
	$(call msg,LINK,$@)
	$(Q)$(CC) $(SAN) -pthread $^ -lelf -o $@

# ---- libFuzzer: what is read of a job's (records, control block, ELF files), and traces ---------------
# Seeds of decode and control come from the plugin itself, those of check, export, merge and job are the traces of tests/unit, those
# of elf come from the compiler. FUZZ_SECONDS in the environment runs them for longer.

LIBFUZZER_SAN := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
LIBFUZZER_LIB := $(FUZZ_OUT)/loader.a
LIBFUZZER_OK  := $(shell echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n); \
	int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n > 8 && 0; }' | \
	$(CLANG) -x c -fsanitize=fuzzer,address - -o /dev/null 2>/dev/null && echo yes)
LIBFUZZERS    := $(if $(LIBFUZZER_OK),$(addprefix $(FUZZ_OUT)/,fuzz_decode fuzz_raw fuzz_check fuzz_export fuzz_merge fuzz_job fuzz_elf fuzz_control))
FUZZ_CORPUS   := $(addprefix $(FUZZ_OUT)/corpus/,decode/seed-0 control/seed-0 raw/seed-0 elf/plugin)
# PROGRAM:MAX_LEN:SEEDS
FUZZ_RUNS     := $(if $(LIBFUZZERS),fuzz_decode:20000:$(FUZZ_OUT)/corpus/decode \
		   fuzz_check:20000:tests/unit/traces fuzz_export:20000:tests/unit/traces fuzz_merge:20000:tests/unit/traces fuzz_job:6000:tests/unit/traces fuzz_elf:65536:$(FUZZ_OUT)/corpus/elf \
		   fuzz_control:20000:$(FUZZ_OUT)/corpus/control fuzz_raw:20000:$(FUZZ_OUT)/corpus/raw)

$(eval $(call LOADER_NEEDS,$(FUZZ_OUT)))

$(FUZZ_OUT)/loader/%.o: loader/%.c
	$(call msg,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(SCOPE_CFLAGS) $(CFLAGS) $(LIBFUZZER_SAN) $(LOADER_DEF) -c $< -o $@

$(LIBFUZZER_LIB): $(patsubst %,$(FUZZ_OUT)/loader/%.o,$(filter-out main,$(LOADER_SRC)))
	$(call msg,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(FUZZ_OUT)/fuzz_%.o: $(FUZZ_DIR)/fuzz_%.c
	$(call msg,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(SCOPE_CFLAGS) $(CFLAGS) $(LIBFUZZER_SAN) $(LOADER_INC) -c $< -o $@

$(FUZZ_OUT)/fuzz_%: $(FUZZ_OUT)/fuzz_%.o $(LIBFUZZER_LIB)
	$(call msg,LINK,$@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined $^ $(LOADER_LIB) -o $@

$(FUZZ_OUT)/seeds: $(FUZZ_OUT)/plain/seeds.o $(PLUGIN_SRC:%=$(FUZZ_OUT)/plain/%.o)
	$(call msg,LINK,$@)
	$(Q)$(CC) -pthread $(FUZZ_WRAP) $^ -o $@

$(FUZZ_OUT)/seeds_control: $(FUZZ_OUT)/plain/seeds_control.o $(PLUGIN_SRC:%=$(FUZZ_OUT)/plain/%.o)
	$(call msg,LINK,$@)
	$(Q)$(CC) -pthread $(FUZZ_WRAP) $^ -o $@

$(FUZZ_OUT)/corpus/decode/seed-0: $(FUZZ_OUT)/seeds
	$(call msg,GEN,$(@D))
	$(Q)mkdir -p $(@D)
	$(Q)$< $(@D)

$(FUZZ_OUT)/corpus/control/seed-0: $(FUZZ_OUT)/seeds_control
	$(call msg,GEN,$(@D))
	$(Q)mkdir -p $(@D)
	$(Q)$< $(@D)

$(FUZZ_OUT)/plain/seed_raw.o: SCOPE_CFLAGS += $(LOADER_INC)

$(FUZZ_OUT)/seed_raw: $(FUZZ_OUT)/plain/seed_raw.o
	$(call msg,LINK,$@)
	$(Q)$(CC) $^ -o $@

$(FUZZ_OUT)/corpus/raw/seed-0: $(FUZZ_OUT)/seed_raw
	$(call msg,GEN,$(@D))
	$(Q)mkdir -p $(@D)
	$(Q)$< $(@D)

# Small files of both classes and byte orders, with and without segments, the plugin, and pieces of it.
$(FUZZ_OUT)/corpus/elf/plugin: $(FUZZ_DIR)/seed_elf.c $(BUILD)/$(PLUGIN)
	$(call msg,GEN,$(@D))
	$(Q)mkdir -p $(@D)
	$(Q)for t in x86_64 i386 powerpc64 powerpc aarch64; do \
	  $(CLANG) -target $$t-linux-gnu -O1 -c $< -o $(@D)/$$t.o || exit; done
	$(Q)$(CC) -nostdlib -fPIC -shared -Wl,--build-id=sha1 -Wl,-nmagic $< -o $(@D)/small
	$(Q)strip --strip-all -o $@ $(BUILD)/$(PLUGIN)
	$(Q)for n in 64 512 4096; do head -c $$n $@ > $(@D)/plugin-$$n; done
	$(Q)for n in 63 700 1500; do head -c $$n $(@D)/small > $(@D)/small-$$n; done

.PRECIOUS: $(FUZZ_OUT)/%.o

# ---- What runs -------------------------------------------------------------------------------------

TEST_PROGS += $(FUZZ_PROGS) $(FUZZ_OUT)/ids $(FUZZ_OUT)/reopen $(LIBFUZZERS) $(FUZZ_CORPUS)
TESTS_UNIT += $(foreach p,$(FUZZ_PROGS),"$(p)") "$(FUZZ_OUT)/ids" \
	      "$(FUZZ_OUT)/reopen $(BUILD)/$(PLUGIN)" \
	      "$(FUZZ_DIR)/libfuzzer.sh $(FUZZ_OUT) $(FUZZ_RUNS)"

.PHONY: fuzz-nightly
fuzz-nightly: $(LIBFUZZERS) $(FUZZ_CORPUS)
	$(Q)FUZZ_SECONDS=$${FUZZ_SECONDS:-600} $(FUZZ_DIR)/libfuzzer.sh $(FUZZ_OUT) $(FUZZ_RUNS)

-include $(wildcard $(addprefix $(FUZZ_OUT)/,*.d */*.d */*/*.d))
