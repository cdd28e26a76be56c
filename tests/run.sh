#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs tests one after the other and sums up: run.sh [-o LOGDIR] TEST...
#
# A TEST is a command line. It prints a line `ok NAME`, `not ok NAME` or `skip NAME: why` per case (TAP's
# `ok 1 - name` counts too) and exits non-zero if any failed; exit 77 skips it as a whole. A test that
# prints no case counts as one. The last line is `N passed, N failed, N skipped`.
logs=build/test-logs
[ "$1" = -o ] && { logs=$2; shift 2; }
mkdir -p "$logs"
passed=0 failed=0 skipped=0
for t in "$@"; do
	name=$(basename "${t%% *}")
	log=$logs/$name.log
	begin=$(date +%s)
	sh -c "$t" >"$log" 2>&1 </dev/null
	rc=$?
	ok=$(grep -c '^ok ' "$log")
	bad=$(grep -c '^not ok ' "$log")
	skip=$(grep -c '^skip ' "$log")
	if [ $rc -eq 77 ]; then
		skip=$((skip + 1))
	elif [ $rc -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1 # died without saying which case
	elif [ $((ok + bad + skip)) -eq 0 ]; then
		ok=1
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '%-40s %4d passed %3d failed %3d skipped %4d s\n' "$name" "$ok" "$bad" "$skip" \
		$(($(date +%s) - begin))
	grep '^skip ' "$log"
	[ $rc -eq 77 ] && tail -n 1 "$log"
	if [ "$bad" -gt 0 ]; then
		grep '^not ok ' "$log"
		echo "---- end of $log (exit $rc)"
		tail -n 40 "$log"
		echo "----"
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
