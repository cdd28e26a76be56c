# SPDX-License-Identifier: BSD-2-Clause
# Static analysis, of what is built: the generated headers have to be there.

.PHONY: analyze
analyze: $(BUILD)/scope.skel.h $(BUILD)/probe.skel.h $(BUILD)/trace_schema.h $(BUILD)/syscall_table.h \
	$(BUILD)/perfetto_fields.h $(BUILD)/view_template.h
	$(Q)ANALYZE_NODES=$${ANALYZE_NODES:-225000} tests/lint/analyze.sh $(BUILD)

TESTS_UNIT += "tests/lint/analyze.sh $(BUILD)"
