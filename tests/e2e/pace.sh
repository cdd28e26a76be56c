#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The recorder takes what the job leaves of the CPUs, and is not left behind for that: not where all of them are taken, not
# where the ring would not last; whoever it starts has nothing of it.
. "$(dirname "$0")/lib.sh"

# policy_of TID: 0 SCHED_OTHER, 3 SCHED_BATCH, 5 SCHED_IDLE. A comm of ours has no blank.
policy_of() {
	awk '{ print $41 }' "/proc/$1/stat"
}
has_policy() {
	[ "$(policy_of "$1")" = "$2" ]
}
# of_recorder COMM: the tid of its thread, or of its child.
of_recorder() {
	local task
	for task in /proc/"$recorder"/task/* $(pgrep -P "$recorder" | sed 's,^,/proc/,'); do
		[ "$(cat "$task/comm")" = "$1" ] && echo "${task##*/}"
	done
}
late() {
	sed -n 's/.*late \([0-9]*\) times.*/\1/p' "$tmp/$1.err"
}
users_job() {
	NCCL_PROFILER_PLUGIN=$plugin setpriv --reuid 65533 --regid 65533 --clear-groups "$job" --json "$@"
}

# ---- While there is time

record_bg calm
users_job --ranks 2 --bytes 64K --iters 100 --sleep-us 10000 >"$tmp/calm.out" 2>&1 &
starter=$!
t "it gives way" until_true 5 has_policy "$recorder" 5
is "who looks after it does not" "$(policy_of "$(of_recorder ncclscope-pace)")" 0
is "nor does who reads for it" "$(policy_of "$(of_recorder ncclscope-read)")" 0
wait $starter
stop_recorder
t "its trace: right, clean, lossless, counted, joined" good calm

# ---- Who started it decides

env --default-signal=INT chrt -b 0 "$scope" record --plugin "$plugin" -o "$tmp/batch" >"$tmp/batch.out" 2>"$tmp/batch.err" &
recorder=$!
until_true 10 grep -q '^ncclscope: Recording' "$tmp/batch.err"
sleep 0.5
is "a policy that was chosen stays, and nobody looks after it" "$(policy_of "$recorder") $(of_recorder ncclscope-pace)" "3 "
stop_recorder
is "its end" "$rc" 0
record cmd -d 2s -- sh -c 'sleep 1; chrt -p $$; prlimit --nice --raw --noheadings'
is "the job that it starts has the policy and the limit of whoever called" "$(sed 's/pid [0-9]*//' "$tmp/cmd.out")" \
	"$(sh -c 'chrt -p $$; prlimit --nice --raw --noheadings' | sed 's/pid [0-9]*//')"

# ---- All CPUs are taken

for _ in $(seq $((2 * $(nproc)))); do
	sh -c 'while :; do :; done' &
	spinners="${spinners:-} $!"
done
record_bg taken -v --strict
job_bg taken --ranks 2 --bytes 64K --iters 200 --sleep-us 20000
wait "$starter"
stop_recorder
# shellcheck disable=SC2086
kill $spinners
t "with all CPUs taken: right, clean, lossless, counted, joined" good taken
t "with all CPUs taken: it was behind, and got its share" [ "$(late taken)" -gt 0 ]
facts taken '{node: [records("node")[].ts] | sort} | {n: (.node | length), gap: ([.node[1:], .node[:-1]] | transpose | map(.[0] - .[1]) | max)}'
t "with all CPUs taken: it looked at the machine each second: $(cat "$tmp/facts")" jq -e '.n > 2 and .gap < 1500000' "$tmp/facts"

# ---- The ring would not last

record_bg small --ring 256K
job_bg small --ranks 2 --bytes 4M --iters 100000 --no-check
ranks_of 2
sleep 0.5
is "a ring that would be full in no time: it does not give way" "$(for _ in $(seq 20); do
	policy_of "$recorder"
	sleep 0.05
done | sort | uniq -c | sort -rn | awk '{ print $2; exit }')" 0
kill_job
t "a ring that would be full in no time: it does again when the job has ended" until_true 5 has_policy "$recorder" 5
stop_recorder

finish
