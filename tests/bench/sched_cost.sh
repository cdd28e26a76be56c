#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What kernel context costs: context switches of processes that are not recorded and of ones that are, and
# the stand-in job, with no recorder, one with --sched=off and one with --sched=events by turns.
#
# Usage: sched_cost.sh [--rounds N] [--seconds S] [--json]
# A round measures without, off, events, without; what counts is the median, over the rounds, of the
# differences within a round: so a machine that is faster or slower for a while does little harm. The targets of one
# CPU, 75 and 220 ns, are of a machine whose switch takes 1,370 ns without: 5.5 and 16.1 % of one.
usage() {
	echo "Usage: sched_cost.sh [--rounds N] [--seconds S] [--json]" >&2
	exit 2
}

rounds=9 seconds=0.4 json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--seconds) seconds=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds in '' | *[!0-9]* | 0) usage ;; esac

[ -w /dev/shm ] && export TMPDIR=/dev/shm # traces on a disk would be the disk's cost
export E2E_TIMEOUT=$((rounds * 60 + 60))
# shellcheck source=../e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh"
[ -n "$bpftool" ] || skip_all "needs bpftool"

switches=$build/tests/bench/switches
[ -x "$switches" ] || {
	echo "Failed to find '$switches': build it first (make bench)" >&2
	exit 1
}
mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
	while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
[ ${#cpus[@]} -ge 2 ] || skip_all "needs two CPUs: the recorder must not run on the one that is measured"

# One recorder for the whole of a step, on a CPU of its own where one is left.
home=${cpus[${#cpus[@]} > 2 ? 2 : 0]} one=${cpus[1]} two=${cpus[0]},${cpus[1]}
printf '#!/bin/sh\nexec taskset -c %s %s "$@"\n' "$home" "$scope" >"$tmp/bin/pinned"
chmod +x "$tmp/bin/pinned"
scope=$tmp/bin/pinned

# Our own idle process that is recorded: with nobody to record, there is less to look at.
"$switches" --plugin "$plugin" --cpus "$home" --rate 2 --seconds $E2E_TIMEOUT >/dev/null &

note() { # CASE VALUE
	jq -cn --argjson round "$round" --arg step "$step" --arg case "$1" --argjson value "$2" \
		'{round: $round, step: $step, case: $case, value: $value}' >>"$tmp/values"
}

# What others on the machine disturb least: on one CPU the players' own CPU time, on two, where idling is part
# of it, the quiet tenth of the time on the wall; of a job's operations likewise.
measure() {
	note "one CPU, not recorded" "$("$switches" --cpus "$one" --seconds "$seconds" | jq .cpuNs)"
	note "one CPU, recorded" "$("$switches" --cpus "$one" --seconds "$seconds" --plugin "$plugin" | jq .cpuNs)"
	note "two CPUs, not recorded" "$("$switches" --cpus "$two" --seconds "$seconds" | jq .quietNs)"
	note "two CPUs, recorded" "$("$switches" --cpus "$two" --seconds "$seconds" --plugin "$plugin" | jq .quietNs)"
	note "AllReduce, 2 ranks, 64M" "$(NCCL_PROFILER_PLUGIN=$plugin "$job" --ranks 2 --bytes 64M --warmup 2 \
		--iters 20 --no-check --json | jq '[.rank[].iterations[] | select(.warmup | not).us] | sort[length / 10 | floor]')"
}

# with SCHED: the same under a recorder.
with() {
	record_bg "$step" -v --sched="$1" || {
		cat "$tmp/$step.err" >&2
		exit 1
	}
	measure
	stop_recorder
	sed -n 's/.*of these lost //p' "$tmp/$step.err" >>"$tmp/lost"
	nobody_records || others=$((others + 1))
	rm -rf "${tmp:?}/$step"
}

others=0
for round in $(seq "$rounds"); do
	step=before && measure
	step=off && with off
	step=events && with events
	step=after && measure
	[ ! -t 2 ] || printf '\rround %d of %d' "$round" "$rounds" >&2
done
[ ! -t 2 ] || printf '\r%20s\r' '' >&2

jq -s --argjson rounds "$rounds" --argjson others "$others" --argjson lost "$(jq -s add "$tmp/lost")" '
	def at(q): sort | .[(length - 1) * q | round];
	def spread: {median: at(0.5), p25: at(0.25), p75: at(0.75)};
	{"one CPU, not recorded": {percent: (7500 / 1370), ns: 75}, "one CPU, recorded": {percent: (22000 / 1370), ns: 220}, "two CPUs, not recorded": {percent: 2},
		"two CPUs, recorded": {percent: 2}, "AllReduce, 2 ranks, 64M": {percent: 2}} as $targets
	| map(.case) as $order
	| {rounds: $rounds, disturbed: $others, lost: $lost, cases: (group_by(.case) | map(
		(group_by(.round) | map(map({(.step): .value}) | add | .base = (.before + .after) / 2)) as $r
		| {case: .[0].case, base: ($r | map(.base) | spread), off: ($r | map(.off - .base) | spread),
			events: ($r | map(.events - .base) | spread), sched: ($r | map(.events - .off) | spread)}
		| .target = $targets[.case]
		| .percent = 100 * (if .target.ns then .events else .sched end).median / .base.median
		| .met = (.percent <= .target.percent))
		| sort_by(.case as $c | $order | index($c)))}' "$tmp/values" >"$tmp/result"

if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
echo "ns a switch, us an AllReduce: medians of $rounds rounds (quartiles), more than without a recorder"
jq -r '
	def num: if fabs >= 1000 then round else . * 10 | round / 10 end | tostring;
	def plus: (if . >= 0 then "+" else "" end) + num;
	def of: (.median | plus) + " (" + (.p25 | plus) + ".." + (.p75 | plus) + ")";
	(["", "without", "--sched=off", "--sched=events", "sched alone", "", "target", ""],
	(.cases[] | [.case, (.base.median | num), (.off | of), (.events | of), (.sched | of), (.percent | plus) + "%",
		(.target.percent | num) + "%", (if .met then "met" else "MISSED" end)])
		| @tsv)' "$tmp/result" |
	awk -F '\t' '{ printf "%-24s %8s  %-26s %-26s %-26s %8s %6s %s\n", $1, $2, $3, $4, $5, $6, $7, $8 }'
jq -r '"Records of kernel context lost: \(.lost)",
	(select(.disturbed > 0) | "Another recorder was there in \(.disturbed) steps: the figures are too high")' "$tmp/result"
exit 0
