#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Who makes traces takes what the job leaves of the CPUs, who records does not wait for that; nothing is lost for it, neither where
# all CPUs are taken nor where the backlog is small; whoever the recorder starts has nothing of it.
. "$(dirname "$0")/lib.sh"

# policy_of TID: 0 SCHED_OTHER, 2 SCHED_RR, 3 SCHED_BATCH, 5 SCHED_IDLE. nice_of TID: its nice value. A comm of ours has no blank.
policy_of() {
	awk '{ print $41 }' "/proc/$1/stat"
}
nice_of() {
	awk '{ print $19 }' "/proc/$1/stat"
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
# keeps_up TID: it is like everybody else, or real-time if a busy machine kept it from its CPU.
keeps_up() {
	[[ $(policy_of "$1") == [02] ]]
}
rescued() {
	sed -n 's/.*made real-time, \([0-9]*\) times.*/\1/p' "$tmp/$1.err"
}
caught_up() {
	sed -n 's/.*had to catch up \([0-9]*\) times.*/\1/p' "$tmp/$1.err"
}
# behind: us that its traces are, by its status file
behind() {
	"$scope" status --json | jq --argjson pid "$recorder" '.recorders[] | select(.pid == $pid) | .backlog.us'
}
users_job() {
	NCCL_PROFILER_PLUGIN=$plugin setpriv --reuid 65533 --regid 65533 --clear-groups "$job" --json "$@"
}

"$scope" record --backlog 513G 2>"$tmp/usage"
is "--backlog larger than there may be: usage" "$? $(grep -c 'no size up to 512G' "$tmp/usage")" "2 1"

# ---- While there is time

record_bg calm
users_job --ranks 2 --bytes 64K --iters 100 --sleep-us 10000 >"$tmp/calm.out" 2>&1 &
starter=$!
tracer() {
	has_policy "$(of_recorder ncclscope-trace)" "$1"
}
t "it gives way" until_true 5 tracer 5
t "who records does not" keeps_up "$recorder"
t "nor does who reads for it" keeps_up "$(of_recorder ncclscope-read)"
is "who looks after it is real-time" "$(policy_of "$(of_recorder ncclscope-watch)")" 2
wait $starter
stop_recorder
t "its trace: right, clean, lossless, counted, joined" good calm

# ---- Who started it decides

env --default-signal=INT chrt -b 0 "$scope" record --plugin "$plugin" -o "$tmp/batch" >"$tmp/batch.out" 2>"$tmp/batch.err" &
recorder=$!
until_true 10 grep -q '^ncclscope: Recording' "$tmp/batch.err"
sleep 0.5
t "a policy that was chosen stays" tracer 3
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
t "with all CPUs taken: right, clean, lossless, counted, joined" good taken
t "with all CPUs taken: little came, and it caught up" [ "$(caught_up taken)" -gt 0 ]
facts taken '{node: [records("node")[].ts] | sort} | {n: (.node | length), gap: ([.node[1:], .node[:-1]] | transpose | map(.[0] - .[1]) | max)}'
t "with all CPUs taken: it looked at the machine each second: $(cat "$tmp/facts")" jq -e '.n > 2 and .gap < 1500000' "$tmp/facts"

# shellcheck disable=SC2086
kill $spinners

# ---- Somebody lets nobody have a CPU: what a kernel does to those outside the job's group, real-time spinners do here

record_bg kept -v --strict
job_bg kept --ranks 2 --bytes 64K --iters 100 --sleep-us 10000
spinners=
for _ in $(seq "$(nproc)"); do
	chrt -r 1 timeout 3 sh -c 'while :; do :; done' &
	spinners="$spinners $!"
done
# shellcheck disable=SC2086
wait $spinners "$starter" || true
stop_recorder
t "kept from its CPU: made real-time" [ "$(rescued kept)" -gt 0 ]
t "kept from its CPU: right, clean, lossless, counted, joined" good kept

# ---- A job that leaves nothing, and makes more than the memory is for

mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done)
taskset -cp "${cpus[0]},${cpus[1]:-${cpus[0]}}" $$ >/dev/null
flood=(--ranks 4 --bytes 64K --no-check --iters 3000)
record_bg flood -v --strict --compress
job_bg flood "${flood[@]}"
fell_behind() {
	local us
	us=$(behind)
	[ "${us:-0}" -gt 1000000 ]
}
t "a flood: the traces fall behind, and status says so" until_true 20 fell_behind
# It sleeps although there is something to do. Who only gives way waits for a CPU all the time.
stands_still() {
	local tid i still=0
	tid=$(of_recorder ncclscope-trace)
	for ((i = 0; i < 20; i++)); do
		[ "$(awk '{ print $3 }' "/proc/$tid/stat")" = S ] && still=$((still + 1))
		sleep 0.05
	done
	[ $still -ge $((i / 2)) ]
}
t "a flood: who makes traces stands still" until_true 10 stands_still
t "a flood: who records is on its way all the same" keeps_up "$recorder"
is "a flood: who makes traces is not" "$(policy_of "$(of_recorder ncclscope-trace)")" 5
wait "$starter"
stop_recorder
is "a flood: exit status" "$rc" 0
t "a flood: clean" "$scope" check -q "$tmp/flood"
t "a flood: all operations" grep -qE '^ +ncclProfileColl +12000$' "$tmp/flood.err"

# ---- It ends, and the job goes on

record_bg ends --strict
job_bg ends "${flood[@]}" --iters 1000000 --timeout 90
until_true 20 fell_behind || true
kill -INT "$recorder"
ends_nicely() {
	local tid
	tid=$(of_recorder ncclscope-trace 2>/dev/null)
	[ "$(policy_of "$tid" 2>/dev/null) $(nice_of "$tid" 2>/dev/null)" = "0 19" ]
}
t "it ends beside its job: who makes traces wants the CPU like others, and lets them go first" until_true 5 ends_nicely
t "it ends beside its job: before the job does" until_true 60 ended "$recorder"
t "it ends beside its job: that goes on" kill -0 "$starter"
wait "$recorder"
# Now and then the kernel holds up who records for seconds, in a job that leaves no CPU: what finds no room then is counted.
is "it ends beside its job: exit status" "$?" "$(if grep -q '^Loss: 0' "$tmp/ends.err"; then echo 0; else echo 5; fi)"
t "it ends beside its job: clean" "$scope" check -q "$tmp/ends"
kill -USR1 "$starter" # its last iteration
wait "$starter"

record_bg small -v --strict --compress --backlog 1M
job_bg small "${flood[@]}"
wait "$starter"
stop_recorder
t "a backlog that is full in no time: it has to take its share" [ "$(caught_up small)" -gt 0 ]
t "a backlog that is full in no time: what finds no room is counted" "$scope" check -q "$tmp/small"
is "a backlog that is full in no time: exit status" "$rc" "$(if grep -q '^Loss: 0' "$tmp/small.err"; then echo 0; else echo 5; fi)"

finish
