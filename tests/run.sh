#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs tests one after the other and sums up: run.sh [-o LOGDIR] TEST... [--timed TEST...]
#
# A TEST is a command line. It prints a line `ok NAME`, `not ok NAME` or `skip NAME: why` per case (TAP's
# `ok 1 - name` counts too) and exits non-zero if any failed; exit 77 skips it as a whole. A test that
# prints no case counts as one. At the end, what failed, and the line `N passed, N failed, N skipped`.
#
# Tests after --timed hold what is recorded against the clock and the load of the machine, on which others may
# run. One of those that fails is run again, twice at most, and only the last run counts; what failed before is printed,
# marked `at first:`, and its log kept as NAME.first.log: a case that is there often is wrong.
logs=build/test-logs
[ "$1" = -o ] && { logs=$2; shift 2; }
mkdir -p "$logs"
passed=0 failed=0 skipped=0 timed=
failures=$logs/failures.log
: >"$failures"

# one COMMAND: runs it into $log; $rc, and counts as $ok, $bad and $skip.
one() {
	sh -c "$1" >"$log" 2>&1 </dev/null
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
}

show_end() {
	grep '^not ok ' "$1" | sed "s/^/$2/"
	echo "---- end of $1 (exit $rc)"
	tail -n 40 "$1" | sed "s/^/$2/"
	echo "----"
}

for t in "$@"; do
	[ "$t" = --timed ] && { timed=1; continue; }
	name=$(basename "${t%% *}")
	log=$logs/$name.log
	begin=$(date +%s)
	one "$t"
	for _ in ${timed:+1 2}; do
		[ "$bad" -gt 0 ] || break
		mv "$log" "$logs/$name.first.log"
		show_end "$logs/$name.first.log" 'at first: '
		one "$t"
	done
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	printf '%-40s %4d passed %3d failed %3d skipped %4d s\n' "$name" "$ok" "$bad" "$skip" \
		$(($(date +%s) - begin))
	grep '^skip ' "$log"
	[ $rc -eq 77 ] && tail -n 1 "$log"
	[ "$bad" -eq 0 ] && continue
	show_end "$log"
	grep '^not ok ' "$log" >>"$failures" || echo "not ok $name: exit $rc" >>"$failures"
done
cat "$failures"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
