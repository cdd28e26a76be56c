#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What make check-vm-unit runs inside a kernel for arm64: the unit tests that are programs, built for it; without sanitizers, whose
# code takes an emulated CPU too long.
. "$(dirname "$0")/../lib.sh"
own_tmp

for program in "${BUILD:-$top/build}"/tests/unit/*_test; do
	CMOCKA_MESSAGE_OUTPUT=TAP TEST_SLOWER=10 timeout 200 "$program" >"$tmp/out" 2>&1 </dev/null
	rc=$?
	cases=$(grep -c '^ok ' "$tmp/out")
	bad=''
	[ $rc = 0 ] && [ "$cases" -gt 0 ] || bad=$(echo "status $rc" && grep -v '^ok ' "$tmp/out")
	verdict "$self.sh: $(basename "$program"), $cases cases" "$bad"
done
finish
