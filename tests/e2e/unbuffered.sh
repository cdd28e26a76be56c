#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Threads that get no buffer, as memory is refused: what they would have recorded is lost, told of, and told once.
. "$(dirname "$0")/lib.sh"

shim=$build/e2e/no_buffers.so
job_args=(--ranks 2 --bytes 64K --no-check)

# unbuffered NAME: how many records each process has lost for that, by its footer; "0" for none.
unbuffered() {
	kinds=footer q "$1" 'records("footer") | map(.lost["thread-buffer"] // 0) | sort | map(tostring) | join(" ")'
}

# between LEAST MOST A B: both are.
between() {
	[ $# = 4 ] && [ "$3" -ge "$1" ] && [ "$3" -le "$2" ] && [ "$4" -ge "$1" ] && [ "$4" -le "$2" ]
}

# sums NAME: `lost` records and footers agree.
sums() {
	kinds='lost|footer' holds "$1" '(records("lost") | map(select(.cause == "thread-buffer") | .n) | add) == (records("footer") | map(.lost["thread-buffer"]) | add)'
}

# ---- No thread has one: nobody hands in anything

record none --raw "$tmp/none.raw" --strict --mask coll,proxyop -- \
	env LD_PRELOAD="$shim" "$job" --json "${job_args[@]}" --iters 150 --period-us 20000
is "no thread has a buffer: the job's results" "$(said none .ok)" true
is "no thread has a buffer: a file of each rank, and --strict's exit status" "$rc $(find "$tmp/none" -name '*.jsonl' | wc -l)" "5 2"
# shellcheck disable=SC2046
t "no thread has a buffer: lost, by the footers ($(unbuffered none))" between 150 1000000 $(unbuffered none)
t "no thread has a buffer: lost records and footers agree" sums none
t "no thread has a buffer: clean" clean none
t "no thread has a buffer: the summary says so" grep -qE '^Loss: [1-9][0-9]+.*thread-buffer' "$tmp/none.err"
"$scope" convert -o "$tmp/none.conv" "$tmp/none.raw" >"$tmp/none.say" 2>&1
t "no thread has a buffer: the same bytes by a capture" diff -rq "$tmp/none" "$tmp/none.conv"

# ---- Some have: a recorder that comes later tells what is lost from then on

NO_BUFFERS=1 LD_PRELOAD=$shim NCCL_PROFILER_PLUGIN=$plugin "$job" --json "${job_args[@]}" --iters 1000000 --period-us 5000 >"$tmp/some.out" 2>"$tmp/some.job-err" &
starter=$!
ranks_of 2
record first -d 4s
record second --raw "$tmp/second.raw" -d 1s
first=$(unbuffered first) second=$(unbuffered second)
# shellcheck disable=SC2086
t "some have: lost of each ($first)" between 500 1000000 $first
# shellcheck disable=SC2086
t "some have: a later recording tells of its own ($second)" between 50 "$((${first%% *} - 1))" $second
t "some have: lost records and footers agree" eval 'sums first && sums second'
"$scope" convert -o "$tmp/second.conv" "$tmp/second.raw" >"$tmp/second.say" 2>&1
t "some have: the same bytes by a capture" diff -rq "$tmp/second" "$tmp/second.conv"
kill_job

finish
