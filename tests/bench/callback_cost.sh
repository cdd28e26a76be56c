#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a callback costs the thread that makes it: nothing there, an empty plugin, one of ours in the way of
# minimal_profiler, ncclscope's disarmed, with nobody attached but the mask forced on, and recording, by turns.
#
# Usage: callback_cost.sh [--rounds N] [--ops N] [--json]
# A round takes all, forwards or backwards by turns. What is recorded must be in the trace to the last record.
usage() {
	echo "Usage: callback_cost.sh [--rounds N] [--ops N] [--json]" >&2
	exit 2
}

rounds=7 ops=200 json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--ops) ops=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds$ops in *[!0-9]* | 0*) usage ;; esac

export E2E_TIMEOUT=$((rounds * (120 + ops / 2) + 120))
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
cp "$benches"/empty_plugin.so "$benches"/seed_plugin.so "$benches/callback" "$tmp/bin/" ||
	die "Failed to find the benches in '$benches': build them first (make bench)"
rate=250 # operations a second: 340,000 callbacks, which one core can also write

# run CASE OPTION...: once for means, once for quantiles.
run() {
	local case=$1 how
	shift
	for how in '' --each; do
		"$tmp/bin/callback" --cpus "$home,$one" --rate $rate --ops "$ops" $how "$@" >"$tmp/run.json" ||
			die "$case: the bench failed"
		note "[\"$case\", \"${how#--}\"]" "$(<"$tmp/run.json")"
		cat "$tmp/run.json" >>"$tmp/runs"
	done
}

seed() {
	SEED_PLUGIN_OUT=$tmp/seed.jsonl run seed --plugin "$tmp/bin/seed_plugin.so"
	[ "$(wc -l <"$tmp/seed.jsonl")" -gt 1000 ] || die "the seed's way wrote no records"
	rm "$tmp/seed.jsonl"
}

# Every callback is in the trace: two for each event, one for each state, and nothing is counted as lost.
recorded() {
	local calls events states
	calls=$(jq -s 'map(.app.allCalls + .proxy.allCalls) | add' "$tmp/runs")
	events=$(cat "$tmp/armed"/*.jsonl | grep -c '"recordType":"event","type":"nccl')
	states=$(cat "$tmp/armed"/*.jsonl | grep -c '"recordType":"state"')
	[ $((2 * events + states)) = "$calls" ] && grep -q "^Loss: 0" "$tmp/armed.err" ||
		die "$calls callbacks, but $events events and $states states recorded: $(grep "^Loss" "$tmp/armed.err")"
	[ "$round" -gt 1 ] || clean armed >&2 || die "the trace is not clean"
	note '["bytes"]' "$(jq -cn --argjson records "$calls" --argjson lines $((events + states)) \
		--argjson bytes "$(cat "$tmp/armed"/*.jsonl | wc -c)" --argjson ring "$(ring_bytes)" \
		'{records: $records, lines: $lines, jsonl: $bytes, ring: $ring}')"
}
ring_bytes() {
	sed -n 's/.*Ring: \([0-9]*\) bytes of chunks.*/\1/p' "$tmp/armed.err" | grep . || echo null
}

armed() {
	: >"$tmp/runs"
	recorder_on armed -v
	taskset -cp "$home" "$recorder" >/dev/null
	run armed --plugin "$plugin"
	stop_recorder
	recorded
	rm -rf "${tmp:?}/armed"
}

cases=('run nothing' 'run empty --plugin '"$tmp"'/bin/empty_plugin.so' seed "run disarmed --plugin $plugin"
	"run forced --plugin $plugin --force 0xfff" armed)
for round in $(seq "$rounds"); do
	order=("${!cases[@]}")
	[ $((round % 2)) = 1 ] || order=(5 4 3 2 1 0)
	for i in "${order[@]}"; do
		${cases[i]}
	done
	progress
done

jq -s --argjson rounds "$rounds" "$stats"'
	["nothing", "disarmed", "empty", "forced", "armed", "seed"] as $names
	| map(select(.key[0] == "bytes").value) as $bytes
	| map(select(.key[0] != "bytes")) as $v
	| ($v | map(select(.key[1] == "")) | group_by(.round) | map(map({(.key[0]): .value}) | add)) as $mean
	| ($v | map(select(.key[1] == "each")) | group_by(.round) | map(map({(.key[0]): .value}) | add)) as $each
	| {rounds: $rounds, callbacks: $mean[0].armed.proxy.points, pairNs: ($each | map(.armed.clockNs) | median),
		cases: ($names | map(. as $n | {name: $n,
			calls: ($mean | map(.[$n] | .proxy.calls + .app.calls) | max),
			mean: ($mean | map(.[$n].proxy.mean) | spread),
			above: ($mean | map(.[$n].proxy.mean - .nothing.proxy.mean) | spread),
			quiet: ($mean | map(.[$n].proxy.quiet - .nothing.proxy.quiet) | spread),
			app: ($mean | map(.[$n].app.mean - .nothing.app.mean) | spread),
			quantiles: (["p50", "p90", "p99", "p999"] | map({(.): (. as $q | $each | map(.[$n].proxy[$q] // empty) | median)}) | add),
			appP50: ($each | map(.[$n].app.p50 // empty) | median)})),
		cheaper: ($mean | map((.seed.proxy.mean - .nothing.proxy.mean) / (.armed.proxy.mean - .nothing.proxy.mean)) | spread),
		bytes: ($bytes | {records: map(.records) | add, lines: map(.lines) | add, jsonl: map(.jsonl) | add,
			ring: (map(.ring) | if any(. == null) then null else add end)})}
	| (.cases[] | select(.name == "armed")) as $armed | (.cases[] | select(.name == "disarmed")) as $disarmed
	| .targets = [
		{what: "recording, mean above nothing", unit: "ns", value: $armed.above.median, ci: $armed.above.ci, max: 35},
		{what: "recording, p99", unit: "ns", value: $armed.quantiles.p99, max: 100},
		{what: "cheaper than minimal_profiler'\''s way", unit: "times", value: .cheaper.median, ci: .cheaper.ci, min: 40},
		{what: "disarmed: callbacks", unit: "", value: $disarmed.calls, max: 0},
		{what: "disarmed: a point where NCCL would call, above nothing", unit: "ns", value: $disarmed.above.median, ci: $disarmed.above.ci, max: 2}]
	| .targets |= map(judge)' "$tmp/values" >"$tmp/result" || die "no result"

if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
echo "ns a callback on the proxy's thread: medians of $rounds rounds (95% interval)"
jq -r '
	def num: if . == null then "-" elif fabs >= 100 then round else . * 10 | round / 10 end | tostring;
	(["", "mean", "above nothing", "p50", "p99", "p99.9", "callbacks"],
	(.cases[] | [.name, (.mean.median | num), "\(.above.median | num) (\(.above.ci | map(num) | join("..")))",
		(.quantiles | (.p50, .p99, .p999) | num), .calls]) | @tsv)' "$tmp/result" |
	awk -F '\t' '{ printf "%-12s %10s  %-24s %8s %8s %8s %10s\n", $1, $2, $3, $4, $5, $6, $7 }'
jq -r "$stats"'.targets[] | "\(.what): \(.value * 10 | round / 10) \(.unit) (\(if .min then "at least \(.min)" else "at most \(.max)" end)) \(verdict)"' "$tmp/result"
exit 0
