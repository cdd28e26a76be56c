# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: BSD-2-Clause
# Shared by what measures: lib.sh of the end-to-end tests, with traces in memory, a CPU for the recorder and one
# for what is measured, and values that become medians.
[ -w /dev/shm ] && export TMPDIR=/dev/shm # traces on a disk would be the disk's cost
# shellcheck source=../e2e/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/${e2e_lib:-lib.sh}"
benches=$build/tests/bench
[ -n "$bpftool" ] || skip_all "needs bpftool"

mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
	while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
[ ${#cpus[@]} -ge 2 ] || skip_all "needs two CPUs: the recorder must not run on the one that is measured"
# The recorder has a CPU of its own where there are three.
home=${cpus[${#cpus[@]} > 2 ? 2 : 0]} one=${cpus[1]} two=${cpus[0]},${cpus[1]}

die() {
	echo "$self: $1" >&2
	exit 1
}

# recorder_on NAME OPTION...: traces in $tmp/NAME; when it is there, it records.
recorder_on() {
	recorder_with "$1" -o "$tmp/$1" "${@:2}"
}

# recorder_with NAME OPTION...: the same, with no other options than these.
recorder_with() {
	recorder_bg "$@" || until_true 50 grep -q '^ncclscope: Recording' "$tmp/$1.err" && return
	cat "$tmp/$1.err" >&2
	die "no recorder: see above"
}

# recorder_gone NAME: the one of recorder_on or recorder_with ends, with its trace. What it lost is a line in $tmp/loss, and that
# somebody else records one in $tmp/others; how long its end took, in $gone_ms.
touch "$tmp/others"
recorder_gone() {
	local begin=${EPOCHREALTIME/[.,]/}
	stop_recorder INT
	gone_ms=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
	sed -n 's/^Loss: //p' "$tmp/$1.err" >>"$tmp/loss"
	rm -rf "${tmp:?}/$1"
	nobody_records || echo other >>"$tmp/others"
	sleep 0.3
}

# note KEY VALUE: a value of this round, both JSON.
note() {
	jq -cn --argjson round "$round" --argjson key "$1" --argjson value "$2" '{round: $round, key: $key, value: $value}' \
		>>"$tmp/values"
}

# cpu_ns PID...: CPU time of these so far, all threads.
cpu_ns() {
	local pid
	for pid; do cat "/proc/$pid/task"/*/schedstat; done 2>/dev/null | awk '{ ns += $1 } END { printf "%.0f", ns }'
}

progress() {
	[ ! -t 2 ] || printf '\r%s: round %d of %d ' "$self" "$round" "$rounds" >&2
	[ ! -t 2 ] || [ "$round" != "$rounds" ] || printf '\r%60s\r' '' >&2
}

# Functions for jq that the results are made with. ci: that holds the median of such values in at least 95 of 100
# cases whatever their distribution (sign test); with fewer than six values it is their range, and holds it in less.
stats='
def at(q): sort | .[(length - 1) * q | round];
def median: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;
def choose(n; k): reduce range(k) as $i (1; . * (n - $i) / ($i + 1));
def rank: length as $n | [range(0; ($n / 2 | floor) + 1) | select(([range(0; .) as $i | choose($n; $i)] | add // 0) * 2 / pow(2; $n) <= 0.05)] | max // 0;
def ci: sort as $s | ($s | rank) as $r | ([$r - 1, 0] | max) as $i | [$s[$i], $s[($s | length) - 1 - $i]];
def spread: {median: median, ci: ci, p25: at(0.25), p75: at(0.75), n: length};
# Of a target, {value, max or min}, with ci if there are several values: met if all of the interval is on the right side,
# missed if all of it is on the other; else (within) neither is shown.
def judge: (.ci // [.value, .value]) as [$low, $high]
	| if .min then .met = ($low >= .min) | .within = ($high >= .min) else .met = ($high <= .max) | .within = ($low <= .max) end;
def verdict: if .met then "met" elif .within then "not shown: the interval contains the target" else "MISSED" end;
'
