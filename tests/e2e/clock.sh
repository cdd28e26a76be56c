#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Times of events are CLOCK_MONOTONIC, from the time-stamp counter, to better than a microsecond: by the
# loader's own check of its fit and against the clock of the job. CLOCK_SECONDS=600 for a long run.
E2E_TIMEOUT=$((${CLOCK_SECONDS:-25} * 3 + 120))
. "$(dirname "$0")/lib.sh"
seconds=${CLOCK_SECONDS:-25}

# A call every 20 ms or so.
before=$(date +%s%6N)
"$scope" record -v --mask collapi --plugin "$plugin" -o "$tmp/clk" -- "$job" --ranks 2 --bytes 4K --no-check --json \
	--iters $((seconds * 48)) --sleep-us 20000 --timeout $((seconds * 3 + 60)) >"$tmp/clk.out" 2>"$tmp/clk.err"
rc=$?
after=$(date +%s%6N)
is "the job is right" "$rc $(said clk .ok)" "0 true"
t "trace" eval 'clean clk && lossless clk'
took=$(((after - before) / 1000000))
t "took $took s, $seconds meant" [ $((took * 10)) -ge $((seconds * 8)) ]
if grep -qw nonstop_tsc /proc/cpuinfo && grep -qw constant_tsc /proc/cpuinfo; then
	is "source: invariant TSC" "$(q clk '[records("header")[].clock.source] | unique | tojson')" '["tsc"]'
	t "frequency: 0.5 to 10 GHz" holds clk '[records("header")[].clock.tscHz] | all(. > 5e8 and . < 1e10)'
fi
worst=$(sed -n 's/.*worst fit \([0-9]*\) ns.*/\1/p' "$tmp/clk.err")
t "worst fit of the whole run under 1 us: $worst ns" [ "${worst:-1000}" -lt 1000 ]

# Each call between the job's own readings of the clock around it, which has one decimal of a microsecond.
jq -s -L "$here" --slurpfile job "$tmp/clk.out" 'include "trace"; events | of("CollApi") | group_by(.rank)
	| map({key: (.[0].rank | tostring), value: (sort_by(.start.ts) | map([.start.ts, .stop.ts]))}) | from_entries as $calls
	| [$job[0].rank[] | $calls[.rank | tostring] as $c | .iterations | to_entries[] | (.value.start_ns / 1000) as $from
		| [$c[.key][0] - $from, $from + .value.enqueue_us + 0.1 - $c[.key][1]]]
	| {n: length, after_start: (map(.[0]) | min), before_end: (map(.[1]) | min), late: (map(.[0]) | sort | .[length / 2])}' \
	"$tmp"/clk/*.jsonl >"$tmp/fit"
is "calls compared" "$(jq .n "$tmp/fit")" $((2 * seconds * 48))
t "calls begin after the job says so, to 1 us: $(jq -c . "$tmp/fit")" jq -e '.after_start > -1' "$tmp/fit"
t "calls end before the job says so, to 1 us" jq -e '.before_end > -1' "$tmp/fit"
t "calls begin at most 100 us later, mostly" jq -e '.late < 100' "$tmp/fit"

# The wall clock.
wall() {
	holds clk "records(\"header\")[0].clock.realtimeOffset as \$o | [events[] | .start.ts + \$o] | min > $before - 1000
		and max < $after + 1000"
}
t "realtimeOffset: events lie between what date(1) said" wall
t "realtimeOffset: the same in both files, to 100 us" holds clk '[records("header")[].clock.realtimeOffset] | max - min < 100'
t "realtimeError: under 100 us" holds clk '[records("header")[].clock.realtimeError] | all(. >= 0 and . < 100)'
# A file's name has the time when its recording began.
named_by_time() {
	local file at
	for file in "$tmp"/clk/trace_*; do
		at=${file##*/trace_}
		at=${at%%_*}
		[ "$at" -ge $((before / 1000000)) ] && [ "$at" -le $((after / 1000000)) ] || { echo "$file: not from $before to $after"; return 1; }
	done
}
t "names of files: when they were recorded" named_by_time
t "clock records: every 10 s in each file" holds clk "records(\"clock\") | length >= 2 * ($took / 10 | floor) and length <= 2 * ($took / 10 + 2)
	and all(.error >= 0 and .error < 100)"

finish
