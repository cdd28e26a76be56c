#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the libFuzzer programs, two at a time, for FUZZ_SECONDS each: libfuzzer.sh DIRECTORY
# PROGRAM:MAX_LEN:SEEDS[,SEEDS...]... What was found before (tests/fuzz/found/PROGRAM) is a seed as well.
# FUZZ_SECONDS: 60 unless set, or 25 of those that read by others' readers (traces, captures).
# What one finds lies in DIRECTORY/PROGRAM-*: give it to the program as an argument to see it again, and put
# it there once it is mended. Of a run whose files are out of reach its log has the input: base64 -d | gzip -d.
out=$1
shift
[ $# -gt 0 ] || {
	echo "skip libfuzzer: the compiler has none"
	exit 77
}
found=$(dirname "$0")/found
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# run_one NAME MAX_LEN SEEDS...
run_one()
{
	name=$1 max_len=$2
	shift 2
	[ -d "$found/$name" ] && set -- "$@" "$found/$name"
	mkdir "$work/$name"
	: >"$work/$name.begun"
	case $name in
		fuzz_export | fuzz_merge | fuzz_job | fuzz_raw) seconds=25 ;;
		*) seconds=60 ;;
	esac
	"$out/$name" -max_total_time="${FUZZ_SECONDS:-$seconds}" -timeout=10 -rss_limit_mb=2048 -max_len="$max_len" \
		-print_final_stats=1 -artifact_prefix="$out/$name-" "$work/$name" "$@" >"$work/$name.log" 2>&1 ||
		touch "$work/$name.failed"
}

# in_turn PROGRAM:MAX_LEN:SEEDS...: every second of them, one after the other.
in_turn()
{
	while [ $# -gt 0 ]; do
		# shellcheck disable=SC2046 # its words
		run_one $(echo "$1" | tr ':,' '  ')
		shift
		[ $# -eq 0 ] || shift
	done
}

in_turn "$@" &
first=$1
shift
in_turn "$@" &
wait
rc=0
for spec in "$first" "$@"; do
	name=${spec%%:*}
	if [ ! -e "$work/$name.log" ] || [ -e "$work/$name.failed" ]; then
		tail -n 60 "$work/$name.log"
		find "$out" -maxdepth 1 -name "$name-*-*" -newer "$work/$name.begun" | while read -r input; do
			echo "${input##*/}:"
			gzip -9 <"$input" | base64 -w 0; echo
		done
		# once more, for those who see the end only
		grep -E '^line |^SUMMARY|Sanitizer: ' "$work/$name.log" | cut -c 1-300 | sort -u | head -n 8
		echo "not ok $name"
		rc=1
	else
		grep -E 'number_of_executed_units|DONE' "$work/$name.log"
		echo "ok $name"
	fi
done
exit $rc
