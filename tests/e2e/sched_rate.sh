#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# 100,000 context switches a second and more on recorded threads, with a ring of the default size: no record
# is lost, and each thread has as many switches and preemptions in the trace as the kernel has counted.
# SCHED_RATE_SECONDS: for how long (3).
. "$(dirname "$0")/lib.sh"

want=100000 seconds=${SCHED_RATE_SECONDS:-3}
[ -x "$build/tests/bench/switches" ] || {
	echo "not ok $self: Failed to find '$build/tests/bench/switches': build it first (make tests)"
	exit 1
}
cp "$build/tests/bench/switches" "$tmp/bin/"
allowed=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
mapfile -t cpus < <(head -n 2 <<<"$allowed")

# Two threads that wake each other on each of two CPUs, or on the only one.
record_bg rate -v
pids=()
for cpu in "${cpus[@]}"; do
	"$tmp/bin/switches" --plugin "$plugin" --cpus "$cpu" --rate $((want * 13 / 10 / ${#cpus[@]})) \
		--seconds "$seconds" >"$tmp/rate.$cpu.json" 2>"$tmp/rate.$cpu.err" &
	pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
	wait "$pid" || status=1
done
stop_recorder
is "$seconds s at full rate: the threads ran" "$status" 0
is "$seconds s at full rate: status" "$rc" 0

rate=$(jq -s 'map(.perSecond) | add | floor' "$tmp"/rate.*.json)
if [ "$rate" -ge $want ]; then
	echo "ok $self: $want switches a second ($rate)"
else # how fast it is does not depend on us
	skip "$want switches a second" "there was time for $rate only"
fi

t "at that rate: the summary tells of no loss" grep -q '^Loss: 0$' "$tmp/rate.err"
is "at that rate: the kernel's side tells of no loss" "$(sed -n 's/.*BPF: of these lost //p' "$tmp/rate.err")" 0
t "at that rate: nor do the traces" lossless rate
t "at that rate: check" clean rate

# What a thread does between its last look at the kernel's count and its end is one switch at most.
counted_switches() {
	q rate '($counts | [.[].threads[]]) as $counts
		| [records("thread") | map(select(has("stop")))[] as $t | $counts[] | select(.tid == ($t.hostTid // $t.tid))
			| {tid, switches: ($t.switches - .voluntary - .involuntary), preemptions: ($t.preemptions - .involuntary)}]
		| ., (length == ($counts | length) and all(.[]; .switches >= 0 and .switches <= 1 and .preemptions >= 0 and .preemptions <= 1))' \
		--slurpfile counts <(cat "$tmp"/rate.*.json) >"$tmp/counted"
	cat "$tmp/counted"
	[ "$(tail -n 1 "$tmp/counted")" = true ]
}
t "at that rate: switches and preemptions of each thread, as the kernel counts them" counted_switches

finish
