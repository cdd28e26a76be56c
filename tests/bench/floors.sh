#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Where the nanoseconds of a callback are, and what each part costs at least on this machine: what BPF itself says of a
# flush, how many there are, and floors.c for the rest.
#
# Usage: floors.sh [--ops N] [--json]
usage() {
	echo "Usage: floors.sh [--ops N] [--json]" >&2
	exit 2
}

ops=1000 json=''
while [ $# -gt 0 ]; do
	case $1 in
	--ops) ops=${2:?} && shift ;;
	--json) json=1 ;;
	*) usage ;;
	esac
	shift
done
case $ops in '' | *[!0-9]* | 0*) usage ;; esac

export E2E_TIMEOUT=$((180 + ops / 20))
# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
needs bpftrace
round=1

"$benches/floors" "$tmp/file" >"$tmp/floors" || die "no floors"
# A program that returns at once: what a hit costs with nothing done.
timeout 60 bpftrace -e "usdt:$benches/floors:floors:hit { }" -c "$benches/floors --probe" 2>"$tmp/bpftrace.err" |
	grep '^{' >"$tmp/hit" && [ "$(jq .attached "$tmp/hit")" = true ] || {
	cat "$tmp/bpftrace.err" >&2
	die "bpftrace did not attach"
}

# flush_stats: runs of BPF's flush program, and ns in it, by the kernel's own count.
flush_stats() {
	"$bpftool" -j prog show 2>/dev/null | jq -c '[.[] | select(.name // "" | startswith("scope_flush"))]
		| {runs: (map(.run_cnt // 0) | add), ns: (map(.run_time_ns // 0) | add)}'
}

was=$(sysctl -n kernel.bpf_stats_enabled)
recorder_on armed -v
taskset -cp "$home" "$recorder" >/dev/null
sysctl -qw kernel.bpf_stats_enabled=1
"$benches/callback" --cpus "$home,$one" --rate 250 --ops "$ops" --plugin "$plugin" >"$tmp/run" || die "the bench failed"
flush_stats >"$tmp/flush"
sysctl -qw kernel.bpf_stats_enabled="$was"
begin=$(cpu_ns "$recorder")
stop_recorder

jq -n --slurpfile floors "$tmp/floors" --slurpfile hit "$tmp/hit" --slurpfile flush "$tmp/flush" --slurpfile run "$tmp/run" \
	--argjson recorder "$begin" '
	($run[0].app.allCalls + $run[0].proxy.allCalls) as $calls
	| $floors[0] + {hit: $hit[0].probe, flushBpf: ($flush[0].ns / $flush[0].runs), callsPerFlush: ($calls / $flush[0].runs),
		flushShare: (($flush[0].ns / $flush[0].runs + $hit[0].probe) * $flush[0].runs / $calls),
		recorderNs: ($recorder / $calls)}' >"$tmp/result" || die "no result"
if [ -n "$json" ]; then
	cat "$tmp/result"
	exit 0
fi
jq -r 'def num: . * 10 | round / 10 | tostring;
	"read the clock: rdtsc \(.rdtsc | num) ns, clock_gettime \(.clockGettime | num) ns",
	"store a record of 64 bytes: \(.store64 | num) ns",
	"copy 8 KiB: \(.copy8k | num) ns",
	"a probe, nobody attached \(.site | num) ns, an empty BPF program \(.hit | num) ns",
	"a flush: \(.callsPerFlush | num) callbacks, in BPF \(.flushBpf | num) ns; hit and BPF, for each callback \(.flushShare | num) ns",
	"text of a record by snprintf \(.snprintf | num) ns, its write() to memory \(.write300 | num) ns",
	"the recorder, for each callback: \(.recorderNs | num) ns of another CPU"' "$tmp/result"
