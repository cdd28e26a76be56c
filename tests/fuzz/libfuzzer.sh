#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the libFuzzer programs side by side for FUZZ_SECONDS (20): libfuzzer.sh DIRECTORY PROGRAM:SEEDS...
# What one finds lies in DIRECTORY/crash-*: give it to the program as an argument to see it again.
out=$1
shift
[ $# -gt 0 ] || {
	echo "skip libfuzzer: the compiler has none"
	exit 77
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for pair in "$@"; do
	name=${pair%%:*}
	mkdir "$work/$name"
	"$out/$name" -max_total_time="${FUZZ_SECONDS:-20}" -timeout=10 -rss_limit_mb=2048 -max_len=20000 \
		-print_final_stats=1 -artifact_prefix="$out/" "$work/$name" "${pair#*:}" \
		>"$work/$name.log" 2>&1 || touch "$work/$name.failed" &
done
wait
rc=0
for pair in "$@"; do
	name=${pair%%:*}
	if [ -e "$work/$name.failed" ]; then
		tail -n 60 "$work/$name.log"
		echo "not ok $name"
		rc=1
	else
		grep -E 'number_of_executed_units|DONE' "$work/$name.log"
		echo "ok $name"
	fi
done
exit $rc
