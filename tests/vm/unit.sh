#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What make check-vm-unit runs inside a kernel for arm64: the unit tests that are programs, built for it; without sanitizers, whose
# code takes an emulated CPU too long.
. "$(dirname "$0")/../lib.sh"
own_tmp

for program in "${BUILD:-$top/build}"/tests/unit/*_test; do
	name=$(basename "$program")
	case $name in
	check_json_test) continue ;; # wants traces
	*_tsan_test) continue ;;     # TSan does not know how an emulated machine lays out its memory
	esac
	CMOCKA_MESSAGE_OUTPUT=TAP TEST_SLOWER=10 timeout 200 "$program" >"$tmp/out" 2>&1 </dev/null
	rc=$?
	verdict "$self.sh: $name, $(grep -c '^ok ' "$tmp/out") cases" "$([ $rc = 0 ] && grep -q '^ok ' "$tmp/out" || { echo "status $rc" && grep -v '^ok ' "$tmp/out"; })"
done
finish
