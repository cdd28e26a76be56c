# SPDX-License-Identifier: BSD-2-Clause
# Test programs and the targets that run them.

.PHONY: standin
standin: $(STANDIN)

TESTS := $(BUILD)/tests
