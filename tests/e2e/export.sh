#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope export` of a recording with all there is: each format has what jq counts in the trace, and the timeline has the job's
# processes and threads, the scheduler's switches on CPUs where no two threads run at once, connections, and the time of day.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "needs python3"
check=$top/tests/unit/perfetto_check.py

before=$(date +%s)
record all --sched=slices --net=flows --strict -- "$job" --json --ranks 2 --op allreduce --bytes 256K --iters 8
after=$(($(date +%s) + 1))
t "recorded" good all

# Its cases are ours.
"$top/tests/unit/export.sh" "$scope" "$tmp"/all/trace_*.jsonl | tee "$tmp/formats"
! grep -q '^not ok' "$tmp/formats" || failed=1

"$scope" export -q --to perfetto -o "$tmp/all.pftrace" "$tmp/all"
"$check" "$tmp/all.pftrace" >"$tmp/facts" || cat "$tmp/facts"
f() {
	jq -rc "$1" "$tmp/facts"
}
is "processes as the node knows them" "$(f .pids)" "$(q all '[records("header")[].hostPid] | sort | tojson')"
is "threads, too" "$(f '.tids - [0]')" "$(q all '[events[].start | .hostTid // .tid] + [records("thread")[] | .hostTid // .tid] | unique | tojson')"
is "16 parts of 8 operations" "$(f .slices.ncclProfileColl)" 16
t "switches, wake-ups and counters" [ "$(f '[.switches, .wakings, .values] | min')" -gt 5 ]
is "the time of day" "$(f "[.first, .last] | map(. / 1e9 | . > $before - 2 and . < $after + 2) | all")" true

"$scope" export -q --to collapsed -o "$tmp/all.collapsed" "$tmp/all"
t "paths down to the thread's state" grep -qE '^rank [01], scope-job\[[0-9]+\].*;AllReduce RING/SIMPLE;ProxyOp (send|receive);ProxyStep;ProxyStep[A-Za-z]+;\[(on CPU|runnable|in [a-z_]+)\] [0-9]+$' "$tmp/all.collapsed"

# What record compresses, and a process that is killed.
record cut --compress -- "$job" --json --ranks 2 --op allreduce --bytes 256K --iters 20 --fault kill:rank=1:iter=10
cut() {
	local want
	want=$(zstd -qdc "$tmp"/cut/*.zst | grep -c '"type":"ncclProfileColl"')
	"$scope" export -q --to perfetto -o "$tmp/cut.pftrace" "$tmp/cut" && "$check" "$tmp/cut.pftrace" >"$tmp/facts" || return 1
	[ "$want" -gt 0 ] && same "$(f '[.processes, .slices.ncclProfileColl]')" "[2,$want]"
}
if command -v zstd >/dev/null; then
	t "compressed, of a job of which a process was killed" cut
else
	skip compressed "needs zstd"
fi

finish
