#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What a whole job loses by being recorded: the stand-in's AllReduce over TCP, whose ranks share their CPUs with the
# recorder. One job runs all the time, recorders come to it and go, and what it does beside one, into traces or into a
# capture (record --raw), is held against what it does right before and after it. So is what it does while empty BPF
# programs are at the tracepoints that a recorder looks at most: nobody who looks at each of these events takes less.
# Traces are made of what the job leaves of the CPUs, and of the rest when the recording has ended: how long that takes is told, too, and
# how much of its time the job loses meanwhile, and while the recorder gets ready.
# What the plugin takes while nobody records is jobs with it and without by turns.
#
# Usage: job_cost.sh [--rounds N] [--seconds S] [--cases RANKSxBYTES[@one|@two][,...]] [--options OPTIONS] [--job PROGRAM] [--json]
# @one: all ranks are on one CPU and leave the others to whoever wants them; @two: ranks, recorder and all that is started here
# share two, of however many there are. S: of each look at the job, at least. OPTIONS are the recorder's: --options --net=off tells the rest's part.
# PROGRAM: instead of the stand-in's; build/gpu/scope-job is the same over NVIDIA's NCCL (make check-gpu builds it).
usage() {
	echo "Usage: job_cost.sh [--rounds N] [--seconds S] [--cases RANKSxBYTES[@one|@two][,...]] [--options OPTIONS] [--job PROGRAM] [--json]" >&2
	exit 2
}

rounds=11 seconds=2 cases='' options='' program='' json=''
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--seconds) seconds=${2:?} && shift ;;
	--cases) cases=${2:?} && shift ;;
	--options) options=${2:?} && shift ;;
	--job) program=$(realpath "${2:?}") && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $rounds in '' | *[!0-9]* | 0*) usage ;; esac
case $seconds in '' | *[!0-9]* | 0*) usage ;; esac
[ -n "$cases" ] || { [ "$(nproc)" -gt 2 ] && cases=4x64M@two,4x64K@two,4x64M,4x64K; } || cases=4x64M,4x64K,2x64M,4x64M@one,2x64M@one
IFS=, read -r -a cases <<<"$cases"

export E2E_TIMEOUT=$((${#cases[@]} * (rounds * (seconds * 9 + 120) + 300)))
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
command -v python3 >/dev/null || skip_all "needs python3"
begins=1
[ -z "$program" ] || job=$program begins=3

# What CLOCK_MONOTONIC, which the job's iterations have, is ahead of CLOCK_REALTIME, which the shell has. A process that is
# started to ask at each end of a window would be part of what the window has.
clocks() {
	ahead_ns=$(python3 -c 'import time; print(time.monotonic_ns() - time.time_ns())')
}
# now: $now_ns of CLOCK_MONOTONIC
now() {
	now_ns=$((${EPOCHREALTIME/[.,]/} * 1000 + ahead_ns))
}

# job_of CASE PLUGIN OPTION...: becomes the job.
job_of() {
	local on=()
	[ "$1" = "${1%@one}" ] || on=(taskset -c "$one")
	NCCL_PROFILER_PLUGIN=$2 exec "${on[@]}" "$job" --ranks "${1%x*}" --op allreduce --bytes "$(bytes_of "$1")" --no-check --json "${@:3}"
}
bytes_of() {
	local bytes=${1#*x}
	echo "${bytes%@*}"
}

# look_for CASE: how long a look at it lasts, $look: at least the seconds that were asked for, and six operations.
look_for() {
	local us
	us=$(job_of "$1" none --iters 4 2>"$tmp/job.err" | jq '.stats[0].p50_us | ceil')
	[ -n "$us" ] || {
		cat "$tmp/job.err" >&2
		die "the job failed"
	}
	look=$((6 * us / 1000000 + 1))
	[ $look -gt "$seconds" ] || look=$seconds
}

# job_begin CASE PLUGIN: it runs until job_end.
job_begin() {
	clocks
	job_of "$1" "$2" --iters 1000000 --timeout "$E2E_TIMEOUT" >"$tmp/job.json" 2>"$tmp/job.err" &
	starter=$!
	sleep "$begins" # a GPU's context takes a while
}
# job_end CASE: us of an AllReduce in each window are noted.
job_end() {
	kill -USR1 "$starter"
	wait "$starter" || {
		cat "$tmp/job.err" >&2
		die "the job failed"
	}
	jq -Rs 'rtrimstr("\n") | split("\n") | map(split(" ") | {round: .[0] | tonumber, what: .[1], begin: .[2] | tonumber, end: .[3] | tonumber})' \
		"$tmp/windows" >"$tmp/windows.json"
	jq -c --arg case "$1" --slurpfile windows "$tmp/windows.json" '
		[.rank[0].iterations[] | .start_ns / 1000 + .us] as $ends
		| def behind($us): $ends | bsearch($us) | if . < 0 then -1 - . else . end; # the first operation that is not over then
		def each($w): behind($w.begin / 1000) as $from | (behind($w.end / 1000) - 1) as $to
			| select($to > $from) | ($ends[$to] - $ends[$from]) / ($to - $from);
		def done($us): behind($us) as $i | if $i == 0 or $i == ($ends | length) then $i
			else $i - 1 + ($us - $ends[$i - 1]) / ($ends[$i] - $ends[$i - 1]) end;
		def edge($w): {us: (($w.end - $w.begin) / 1000), operations: (done($w.end / 1000) - done($w.begin / 1000))};
		$windows[0][] | {round, key: [$case, .what], value: (if .what | test("-(begins|ends)$") then edge(.) else each(.) end)}' "$tmp/job.json" >"$tmp/seen"
	[ "$(wc -l <"$tmp/seen")" = "$(wc -l <"$tmp/windows")" ] || die "$1: too few operations in $look s, look longer (--seconds)"
	cat "$tmp/seen" >>"$tmp/values"
	rm -f "$tmp/windows"
}

# window WHAT: what the job does from now on
window() {
	local begin
	now
	begin=$now_ns
	sleep "$look"
	now
	echo "$round $1 $begin $now_ns" >>"$tmp/windows"
}

# recorded CASE WHAT OPTION...
recorded() {
	local cpu begin
	now
	begin=$now_ns
	# shellcheck disable=SC2086
	recorder_with trace "${@:3}" $options
	now
	echo "$round $2-begins $begin $now_ns" >>"$tmp/windows"
	sleep 0.3
	cpu=$(cpu_ns "$recorder")
	window "$2"
	note "[\"$1\", \"$2, recorder\"]" $((($(cpu_ns "$recorder") - cpu) / (look * 100000)))e-2
	now
	begin=$now_ns
	recorder_gone trace
	echo "$round $2-ends $begin $((begin + gone_ms * 1000000))" >>"$tmp/windows"
	note "[\"$1\", \"$2, after\"]" "$gone_ms"
}

# hooked: empty programs where a recorder has its own.
hooked() {
	local hooks
	rm -f "$tmp/hooks"
	"$benches/hooks" "$benches/hooks.bpf.o" >"$tmp/hooks" 2>"$tmp/hooks.err" &
	hooks=$!
	until_true 20 [ -s "$tmp/hooks" ] || {
		cat "$tmp/hooks.err" >&2
		die "no empty programs"
	}
	sleep 0.3
	window hooked
	kill "$hooks"
	wait "$hooks" 2>/dev/null
	sleep 0.2
}

# with_recorders CASE: windows without a recorder lie around each that has one.
with_recorders() {
	job_begin "$1" "$plugin"
	for round in $(seq "$rounds"); do
		window before
		recorded "$1" everything -o "$tmp/trace"
		window between
		recorded "$1" captured --raw "$tmp/trace"
		window behind
		hooked
		window after
		progress
	done
	job_end "$1"
}

# points_of CASE: how often NCCL comes to where it may call the plugin for an AllReduce, all ranks together, and what it does so at the
# job's begin and end.
points_of() {
	record points --sched=off --net=off -- "$job" --ranks "${1%x*}" --op allreduce --bytes "$(bytes_of "$1")" --iters 20 --no-check
	note "[\"$1\", \"points\"]" "$(cat "$tmp"/points/*.jsonl | jq -n '[inputs | if .recordType == "footer" then {points: (2 * .counts.event + .counts.state)}
		elif .type == "ncclProfileColl" then {rank, one: 1} else empty end]
		| (map(.points // 0) | add) / (map(select(.one)) | group_by(.rank)[0] | length)')"
	rm -rf "$tmp/points"
}

# without_recorder CASE WHAT PLUGIN
without_recorder() {
	job_begin "$1" "$3"
	window "$2"
	job_end "$1"
}

for case in "${cases[@]}"; do
	share=$(IFS=, && echo "${cpus[*]}")
	[ "$case" = "${case%@two}" ] || share=$two
	taskset -cp "$share" $$ >/dev/null
	look_for "$case"
	round=1
	points_of "$case"
	with_recorders "$case"
	for round in $(seq "$rounds"); do
		[ $((round % 2)) = 0 ] || without_recorder "$case" nothing none
		without_recorder "$case" disarmed "$plugin"
		[ $((round % 2)) = 1 ] || without_recorder "$case" nothing none
	done
done

jq -s --argjson rounds "$rounds" --argjson seconds "$seconds" --argjson lost "$(grep -cv '^0$' "$tmp/loss")" \
	--argjson others "$(wc -l <"$tmp/others")" --arg order "${cases[*]}" "$stats"'
	def more(a; b): 100 * (a / b - 1);
	def lost($us): (.us - .operations * $us) / 1000;
	def target: if test("64K(@|$)") then 5 else 2 end;
	($order | split(" ")) as $order
	| {rounds: $rounds, seconds: $seconds, lossy: $lost, disturbed: $others, cases: (group_by(.key[0]) | map(.[0].key[0] as $case
		| (group_by(.round) | map(group_by(.key[1]) | map({(.[0].key[1]): map(.value)}) | add)) as $r
		| {case: $case, us: ($r | map((.before + .between + .behind + .after)[]) | spread),
			points: ($r[0].points[0] | round), noise: ($r | map(more(.between[0]; .before[0]), more(.behind[0]; .between[0]), more(.after[0]; .behind[0])) | spread),
			disarmed: ($r | map(more(.disarmed[0]; .nothing[0])) | spread),
			everything: ($r | map(more(.everything[0]; (.before[0] + .between[0]) / 2)) | spread),
			captured: ($r | map(more(.captured[0]; (.between[0] + .behind[0]) / 2)) | spread),
			hooked: ($r | map(more(.hooked[0]; (.behind[0] + .after[0]) / 2)) | spread),
			begins: ($r | map(((.before[0] + .between[0]) / 2) as $us | .["everything-begins"][0] | lost($us)) | spread),
			ends: ($r | map(((.before[0] + .between[0]) / 2) as $us | .["everything-ends"][0] | lost($us)) | spread),
			after: ($r | map(.["everything, after"][0]) | median),
			recorder: ($r | map(.["everything, recorder"][0]) | median), capture: ($r | map(.["captured, recorder"][0]) | median)})
		| sort_by(.case as $c | $order | index($c)))}
	| .targets = [.cases[] | . as $c | ("disarmed", "everything", "captured") | {what: "\($c.case), \(.)", unit: "%", value: $c[.].median, ci: $c[.].ci,
		max: (if . == "disarmed" then 0.1 else $c.case | target end)}
		| judge]' "$tmp/values" >"$tmp/result" || die "no result"
if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
jq -r "$stats"'def num: . * 100 | round / 100 | tostring; def of: "\(.median | num)% (\(.ci | map(num) | join("..")))";
	(.cases[] | "\(.case): \(.us.median / 1000 | num) ms, noise \(.noise | of), disarmed \(.disarmed | of), everything \(.everything | of), captured \(.captured | of), \(.points) points where NCCL may call, empty programs \(.hooked | of), the recorder \(.recorder | num)% of a CPU, for a capture \(.capture | num)%, traces done \(.after | num) ms after the end, \(.begins.median | num) ms of the job lost at the beginning and \(.ends.median | num) at the end"),
	(.targets[] | "\(.what): at most \(.max)% \(verdict)"),
	(select(.disturbed > 0) | "Another recorder was there in \(.disturbed) windows: the figures are worth less"),
	(select(.lossy > 0) | "Something was lost in \(.lossy) recordings: the figures are too low")' "$tmp/result"
