#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What following the network costs those who do not ask for it, iperf3 between two network namespaces while a job
# is recorded beside it, and what recording with everything on costs the job itself, the stand-in's bandwidth: into
# traces, and into a capture (--raw), from which traces are made when the job has ended.
#
# Usage: net_cost.sh [--rounds N] [--seconds S] [--only net|job] [--options OPTIONS] [--json]
# A round measures without, with, with, without a recorder (the job: without, with, capture, capture, with, without);
# what counts is the median, over the rounds, of the ratio within a round. OPTIONS are the recorder's beside the job:
# --options --net=off tells the rest's part.
# shellcheck disable=SC2154 # set in lib.sh, to which net_lib.sh does not lead it
usage() {
	echo "Usage: net_cost.sh [--rounds N] [--seconds S] [--only net|job] [--options OPTIONS] [--json]" >&2
	exit 2
}

rounds=11 seconds=2 only='' options='' json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--seconds) seconds=${2:?} && shift ;;
	--only) only=${2:?} && shift ;;
	--options) options=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds in '' | *[!0-9]* | 0) usage ;; esac
case $seconds in '' | *[!0-9]* | 0) usage ;; esac
case $only in '' | net | job) ;; *) usage ;; esac

[ -w /dev/shm ] && export TMPDIR=/dev/shm # traces on a disk would be the disk's cost
export E2E_TIMEOUT=$((rounds * (seconds * 24 + 60) + 60))
# shellcheck source=../e2e/net_lib.sh
. "$(dirname "$0")/../e2e/net_lib.sh"
command -v iperf3 >/dev/null || skip_all "needs iperf3"

mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
	while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
[ ${#cpus[@]} -ge 2 ] || skip_all "needs two CPUs: the recorder must not run on the one that is measured"
# Beside iperf3 the recorder and its job have another CPU, one of their own where one is left.
home=${cpus[${#cpus[@]} > 2 ? 2 : 0]} one=${cpus[1]}
printf '#!/bin/sh\nexec taskset -c %s %s "$@"\n' "$home" "$scope" >"$tmp/bin/pinned"
chmod +x "$tmp/bin/pinned"

note() { # CASE FIGURE VALUE
	jq -cn --argjson round "$round" --arg step "$step" --arg case "$1" --arg figure "$2" --argjson value "$3" \
		'{round: $round, step: $step, case: $case, figure: $figure, value: $value}' >>"$tmp/values"
}

# recorder_on OPTION...: when it is there, it records into $tmp/trace.
recorder_on() {
	recorder_bg trace -v "$@" && return
	cat "$tmp/trace.err" >&2
	exit 1
}

# Loss would make it cheap, and another recorder dear.
recorder_off() {
	stop_recorder
	sed -n 's/.*\(of these lost\|ring full\) //p' "$tmp/trace.err" >>"$tmp/lost"
	nobody_records || others=$((others + 1))
	rm -rf "${tmp:?}/trace"
}

# cpu_ns PID...: CPU time of these so far, all threads.
cpu_ns() {
	local pid
	for pid; do cat "/proc/$pid/task"/*/schedstat; done 2>/dev/null | awk '{ ns += $1 } END { printf "%.0f", ns }'
}

# ---- iperf3

# A line each 100 ms, with the time at which it came.
stamp() {
	local line
	while read -r line; do
		echo "$EPOCHREALTIME $line"
	done
}

# iperf_window: when it began and ended, and the CPU time of both ends, as a line in windows.
iperf_window() {
	local begin=$EPOCHREALTIME begin_ns
	begin_ns=$(cpu_ns "$client" "$server")
	sleep "$seconds"
	echo "$step $begin $EPOCHREALTIME $(($(cpu_ns "$client" "$server") - begin_ns))" >>"$tmp/windows"
}

# Of each window its step and Gbit/s: of all, of the tenth that others disturb least, for each second of CPU time.
# iperf3's clock began when the line that came soonest says it did.
iperf_values() {
	awk 'NR == FNR { step[FNR] = $1; from[FNR] = $2; to[FNR] = $3; cpu[FNR] = $4; n = FNR; next }
		/sec .*bits\/sec/ && !/sender|receiver/ {
			sub(/\[ *[0-9]+\]/, "")
			split($2, span, "-")
			if (!lines++ || $1 - span[2] < zero)
				zero = $1 - span[2]
			begin[lines] = span[1]; end[lines] = span[2]; rate[lines] = $6
		}
		END {
			for (w = 1; w <= n; w++) {
				sec = sum = m = 0
				for (i = 1; i <= lines; i++) {
					if (zero + begin[i] < from[w] || zero + end[i] > to[w])
						continue
					sec += end[i] - begin[i]
					sum += rate[i] * (end[i] - begin[i])
					for (j = ++m; j > 1 && sorted[j - 1] < rate[i]; j--)
						sorted[j] = sorted[j - 1]
					sorted[j] = rate[i]
				}
				if (m)
					printf "%s %.6f %.6f %.6f\n", step[w], sum / sec / 1000,
						sorted[int(m / 10) + 1] / 1000,
						cpu[w] ? sum / sec * (to[w] - from[w]) / (cpu[w] / 1e9) / 1000 : 0
			}
		}' "$tmp/windows" "$tmp/lines" | while read -r step all quiet cpu; do
		note "iperf3, not recorded" "" "$all"
		note "iperf3, not recorded" "quiet tenth" "$quiet"
		[ "$cpu" = 0.000000 ] || note "iperf3, not recorded" "by CPU time" "$cpu"
	done
}

# One connection all the time, the recorder comes and goes. Both ends are on one CPU: all that it costs them
# shows there, and packets do not overtake each other, which TCP would take for losses.
iperf() {
	local whole=$scope
	scope=$tmp/bin/pinned
	ip netns exec "$ns_b" taskset -c "$one" iperf3 -s >/dev/null 2>&1 &
	server=$!
	until_true 10 listens
	# reno is there in every namespace, and sends as fast as it may
	ip netns exec "$ns_a" taskset -c "$one" iperf3 -c "${ip_of[1]}" -C reno -t $((seconds * 4 + 60)) -i 0.1 -f m \
		--forceflush > >(stamp >"$tmp/lines") 2>/dev/null &
	client=$!
	rm -f "$tmp/windows"
	sleep 0.5
	step=before && iperf_window
	recorder_on -o "$tmp/trace" --sched=off --net=events
	sleep 0.3
	step=on && iperf_window
	step=on2 && iperf_window
	recorder_off
	sleep 0.3
	step=after && iperf_window
	kill "$client" "$server"
	wait "$client" "$server" 2>/dev/null
	scope=$whole
	iperf_values
}
listens() {
	in_net "$ns_b" ss -Htln 'sport = 5201' | grep -q .
}

# ---- The job

job_values() {
	# shellcheck disable=SC2016
	NCCL_PROFILER_PLUGIN=$plugin "$job" --ranks 2 --bytes 64M --warmup 2 --iters $((seconds * 10)) --no-check \
		--json | jq '[.rank[].iterations[] | select(.warmup | not).us] | sort
			| 67108864 / 1000 / (add / length), 67108864 / 1000 / .[length / 10 | floor]' >"$tmp/busbw"
	note "AllReduce, 2 ranks, 64M" "" "$(sed -n 1p "$tmp/busbw")"
	note "AllReduce, 2 ranks, 64M" "quiet tenth" "$(sed -n 2p "$tmp/busbw")"
}

# job_with OPTION...
job_with() {
	local begin begin_ns
	# shellcheck disable=SC2086
	recorder_on "$@" $options
	begin=${EPOCHREALTIME/./}
	begin_ns=$(cpu_ns "$recorder")
	job_values
	echo "$(($(cpu_ns "$recorder") - begin_ns)) $((${EPOCHREALTIME/./} - begin))" >>"$tmp/cpu.${step%2}"
	recorder_off
}

# ---- Rounds

idle_job() {
	# what is recorded beside iperf3: 64 KiB ten times a second
	NCCL_PROFILER_PLUGIN=$plugin taskset -c "$home" "$job" --ranks 2 --bytes 64K --iters 100000000 --sleep-us 100000 \
		--no-check --timeout $((seconds * 40 + 120)) >/dev/null 2>&1 &
	idle=$!
	until_true 10 children_ready $idle 2
}
idle_end() {
	pkill -KILL -P "$idle"
	kill -KILL "$idle" 2>/dev/null
	wait "$idle" 2>/dev/null
}

net_round() {
	idle_job
	iperf
	idle_end
}

job_round() {
	step=before && job_values
	step=on && job_with -o "$tmp/trace"
	step=raw && job_with --raw "$tmp/trace"
	step=raw2 && job_with --raw "$tmp/trace"
	step=on2 && job_with -o "$tmp/trace"
	step=after && job_values
}

others=0
for round in $(seq "$rounds"); do
	[ "$only" = job ] || net_round
	[ "$only" = net ] || job_round
	[ ! -t 2 ] || printf '\rround %d of %d' "$round" "$rounds" >&2
done
[ ! -t 2 ] || printf '\r%20s\r' '' >&2

# cpu_of STEP: of the recorder, in percent of one
cpu_of() {
	cat "$tmp/cpu.$1" 2>/dev/null | awk '{ cpu += $1; us += $2 } END { print us ? cpu / us / 10 : "null" }'
}
jq -s --argjson rounds "$rounds" --argjson others "$others" --argjson lost "$(jq -s add "$tmp/lost")" \
	--argjson cpu "$(cpu_of on)" --argjson cpuRaw "$(cpu_of raw)" '
	def at(q): sort | .[(length - 1) * q | round];
	def spread: {median: at(0.5), p25: at(0.25), p75: at(0.75)};
	(map(select(.step | startswith("raw") | not)) + map(select(.case | startswith("AllReduce")) | select(.step | startswith("on") | not)
		| .case += ", captured" | .step |= sub("raw"; "on"))) as $values
	| ($values | map([.case, .figure])) as $order
	| {rounds: $rounds, disturbed: $others, lost: $lost, recorderCpuPercent: $cpu, captureCpuPercent: $cpuRaw,
		cases: ($values | group_by([.case, .figure]) | map(
		(group_by(.round) | map(map({(.step): .value}) | add | .base = (.before + .after) / 2)) as $r
		| {case: .[0].case, figure: .[0].figure, without: ($r | map(.base) | spread),
			noise: ($r | map(100 * (.after / .before - 1)) | spread),
			percent: ($r | map(100 * ((.on + .on2) / 2 / .base - 1)) | spread),
			target: (if .[0].case | startswith("iperf3") then -1 else -2 end)}
		| .met = (.percent.median >= .target))
		| sort_by([.case, .figure] as $c | $order | index([$c])))}' "$tmp/values" >"$tmp/result"

if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
echo "Gbit/s, GB/s (busbw): medians of $rounds rounds (quartiles), against without a recorder"
jq -r '
	def num: . * 100 | round / 100 | tostring;
	def plus: (if . >= 0 then "+" else "" end) + num;
	def of: (.median | plus) + "% (" + (.p25 | plus) + ".." + (.p75 | plus) + ")";
	(["", "without", "after/before", "with", "target", ""],
	(.cases[] | [(if .figure == "" then .case else "  " + .figure end), (.without.median | num), (.noise | of), (.percent | of),
		"\(.target)%", (if .met then "met" else "MISSED" end)])
		| @tsv)' "$tmp/result" |
	awk -F '\t' '{ printf "%-24s %10s  %-26s %-26s %7s %s\n", $1, $2, $3, $4, $5, $6 }'
jq -r '"Records lost: \(.lost)", (select(.recorderCpuPercent) | "The recorder itself, beside AllReduce: \(.recorderCpuPercent | round)% of a CPU, for a capture \(.captureCpuPercent | round)%"),
	(select(.disturbed > 0) | "Another recorder was there in \(.disturbed) steps: the figures are worth less")' "$tmp/result"
exit 0
