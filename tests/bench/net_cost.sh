#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What following the network costs those who do not ask for it: iperf3 between two network namespaces while a job is
# recorded beside it. iperf3 and the job run all the time, recorders come and go: what goes over the connection beside one is
# held against what does right before and after it. job_cost.sh tells what the job itself loses.
#
# Usage: net_cost.sh [--rounds N] [--seconds S] [--json]
# S: of each look at the connection.
# shellcheck disable=SC2034,SC2154 # used and set in lib.sh, to which net_lib.sh does not lead it
usage() {
	echo "Usage: net_cost.sh [--rounds N] [--seconds S] [--json]" >&2
	exit 2
}

rounds=41 seconds=2 json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--seconds) seconds=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds in '' | *[!0-9]* | 0*) usage ;; esac
case $seconds in '' | *[!0-9]* | 0*) usage ;; esac

export E2E_TIMEOUT=$((rounds * (seconds * 2 + 10) + 60))
export e2e_lib=net_lib.sh # for bench_lib.sh
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
command -v iperf3 >/dev/null || skip_all "needs iperf3"

# The recorder and its job have another CPU than iperf3.
printf '#!/bin/sh\nexec taskset -c %s %s "$@"\n' "$home" "$scope" >"$tmp/bin/pinned"
chmod +x "$tmp/bin/pinned"
scope=$tmp/bin/pinned

listens() {
	in_net "$ns_b" ss -Htln 'sport = 5201' | grep -q .
}

# Both ends are on one CPU: all that it costs them shows there, and packets do not overtake each other, which TCP
# would take for losses. reno is there in every namespace, and sends as fast as it may.
iperf_begin() { # no function in the background: that is a shell of its own
	ip netns exec "$ns_b" taskset -c "$one" iperf3 -s >/dev/null 2>&1 &
	server=$!
	until_true 10 listens
	ip netns exec "$ns_a" taskset -c "$one" iperf3 -c "${ip_of[1]}" -C reno -t "$E2E_TIMEOUT" -i 60 >/dev/null 2>&1 &
	client=$!
}

# What is recorded beside it: 64 KiB ten times a second.
job_begin() {
	NCCL_PROFILER_PLUGIN=$plugin taskset -c "$home" "$job" --ranks 2 --bytes 64K --iters 100000000 --sleep-us 100000 \
		--no-check --timeout "$E2E_TIMEOUT" >/dev/null 2>&1 &
	starter=$!
	ranks_of 2
}

received() {
	in_net "$ns_b" cat /sys/class/net/v1/statistics/rx_bytes
}

# window WHAT: what goes over the connection from now on, bytes for each us of time and for each us of CPU time.
window() {
	local us cpu bytes
	cpu=$(cpu_ns "$client" "$server")
	bytes=$(received)
	us=${EPOCHREALTIME/./}
	sleep "$seconds"
	us=$((${EPOCHREALTIME/./} - us))
	bytes=$(($(received) - bytes))
	cpu=$(($(cpu_ns "$client" "$server") - cpu))
	[ $((bytes * cpu)) != 0 ] || die "iperf3 has ended, or sends nothing"
	note "[\"time\", \"$1\"]" "$((bytes * 1000 / us))e-3"
	note "[\"CPU time\", \"$1\"]" "$((bytes * 1000000 / cpu))e-3"
}

recorded() {
	local cpu
	recorder_on trace --sched=off --net=events
	sleep 0.3
	cpu=$(cpu_ns "$recorder")
	window recorded
	note '["recorder"]' $((($(cpu_ns "$recorder") - cpu) / seconds))e-7
	recorder_gone trace
}

iperf_begin
job_begin
sleep 1
for round in $(seq "$rounds"); do
	window before
	recorded
	window after
	progress
done
kill "$client" "$server"
kill_job

jq -s --argjson rounds "$rounds" --argjson seconds "$seconds" --argjson lost "$(grep -cv '^0$' "$tmp/loss")" \
	--argjson others "$(wc -l <"$tmp/others")" "$stats"'
	{rounds: $rounds, seconds: $seconds, lossy: $lost, disturbed: $others,
		recorder: (map(select(.key[0] == "recorder").value) | median),
		cases: (map(select(.key[1])) | group_by(.key[0]) | map((group_by(.round) | map(map({(.key[1]): .value}) | add)) as $r
			| {case: "iperf3, bytes a second of \(.[0].key[0])", GBps: ($r | map(.before, .after | . / 1000) | spread),
				noise: ($r | map(100 * (.before / .after - 1)) | spread),
				slower: ($r | map(100 * ((.before + .after) / 2 / .recorded - 1)) | spread)}))}
	| .targets = [.cases[] | {what: .case, unit: "% fewer", value: .slower.median, ci: .slower.ci, max: 1}
		| judge]' "$tmp/values" >"$tmp/result" || die "no result"

if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
jq -r "$stats"'def num: . * 100 | round / 100 | tostring; def of: "\(.median | num)% (\(.ci | map(num) | join("..")))";
	(.cases[] | "\(.case): \(.GBps.median | num) GB, before against after \(.noise | of), slower beside a recorder by \(.slower | of)"),
	(.targets[] | "\(.what): at most \(.max)% fewer \(verdict)"),
	"The recorder: \(.recorder | num)% of a CPU",
	(select(.disturbed > 0) | "Another recorder was there in \(.disturbed) rounds: the figures are worth less"),
	(select(.lossy > 0) | "Something was lost in \(.lossy) recordings: the figures are too low")' "$tmp/result"
