#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `report` on jobs with faults of the scheduler, late and missing ranks: the first verdict is the right one. Two ranks, whose
# progress threads have a CPU each. REPS=5 REPS_OUT=FILE: as often, and what it said.
. "$(dirname "$0")/sched_lib.sh"
. "$(dirname "$0")/report_lib.sh"
apart=pin-progress:rank=0:cpu=$one,pin-progress:rank=1:cpu=$two
# The cases that this matches; by default those that a busy machine leaves alone. What the others are told by is measured in sched_faults.sh, and
# their rules are in tests/unit/report_test.c.
only=${1:-^late|always|hangs|fifo|farm|nanosleep|busy|pages|reads|quota|stopped|idle-frozen|paused|missing|killed|quit|^clean}

# run NAME FAULT [OPTION...]: ranks' other threads on one CPU.
pair() {
	local name=${!#}
	on "$one" record "$name" -- "$job" --ranks 2 --no-check --json "${@:1:$#-2}" --fault "${*: -2:1}$apart"
}
wanted() {
	grep -qE "$only" <<<"$1"
}

hog_opts=() # of the job
with_hog() {
	local name=${!#} hog
	taskset -c "$two" "${@:1:$#-1}" >/dev/null &
	hog=$!
	pair --bytes 2M --iters 15 "${hog_opts[@]}" "" "$name"
	kill "$hog"
	wait "$hog" 2>/dev/null
}
# Each of the processes is there for a few operations only. They go before whatever else the machine has to do.
with_farm() {
	local farm
	taskset -c "$two" chrt -f 10 "$sched_load" forks scope-cc1 50000 3000 2000 &
	farm=$!
	pair --bytes 256K --iters 250 "" "$1"
	kill "$farm"
	wait "$farm" 2>/dev/null
}
with_quota() {
	cat >"$tmp/bin/quota" <<-END
		#!/bin/sh
		rm -f $tmp/id
		taskset -c $one $job --ranks 2 --rank-list 0 --id-file $tmp/id "\$@" >$tmp/quota.rest &
		echo 0 >$cgroup/cgroup.procs
		taskset -c $two $job --ranks 2 --rank-list 1 --id-file $tmp/id "\$@"
		wait
	END
	chmod +x "$tmp/bin/quota"
	record "${!#}" -- "$tmp/bin/quota" --bytes 2M --iters 160 --no-check --json "${@:1:$#-1}"
}
# In the middle of the operations of two ranks; $victim is the pid of rank 1, which is the other one's + 1.
begin_with_victim() {
	record_bg "$1"
	job_bg "$1" --ranks 2 --bytes 1M --iters 100000 --period-us 5000 --no-check --fault "$apart"
	ranks_of 2
	for victim in "${ranks[@]}"; do
		until_true 10 grep -qs 'Coll.*"rank":' "$tmp/$1"/*_pid"$victim".jsonl
		grep -qs 'ncclProfileColl".*"rank":1,"start"' "$tmp/$1"/*_pid"$victim".jsonl && break
	done
}
end_with_victim() {
	sleep 0.3
	stop_recorder INT
	kill_job
}
# SIGSTOP for half a second to rank 1.
with_stop() {
	begin_with_victim "$1"
	"$sched_proc" freeze "$victim" 500 >/dev/null
	end_with_victim
}
# As a container that is paused: it is frozen with its cgroup.
with_pause() {
	begin_with_victim "$1"
	kill -STOP "$victim" # an older one, which has nothing to do with it
	kill -CONT "$victim"
	freezer_put "$victim" >/dev/null
	end_with_victim
}
# The same, and the recording ends with it.
with_stop_for_ever() {
	record_bg "$1"
	job_bg "$1" --ranks 2 --bytes 1M --iters 100000 --period-us "${period:-5000}" --no-check --fault "$apart"
	ranks_of 2
	for victim in "${ranks[@]}"; do
		until_true 10 grep -qs 'Coll.*"rank":' "$tmp/$1"/*_pid"$victim".jsonl
		grep -qs 'ncclProfileColl".*"rank":1,"start"' "$tmp/$1"/*_pid"$victim".jsonl && break
	done
	kill -STOP "$victim"
	sleep 2.5
	stop_recorder INT
	kill_job
}
with_missing() {
	record_bg "$1"
	job_bg "$1" --ranks 2 --bytes 1M --iters 30 --no-check --fault "late:rank=1:every=20:ms=60000,$apart"
	ranks_of 2
	sleep 4
	stop_recorder INT
	kill_job
}
with_flood() {
	flood &
	local flooder=$!
	sleep 0.5
	pair --bytes 2M --iters 60 "" "$1"
	kill "$flooder"
	wait "$flooder" 2>/dev/null
}
# As a job should be: nobody is told which CPU to take.
record_clean() {
	record "$1" -- "$job" --ranks 2 --bytes 2M --iters 30 --no-check --json
}
with_disk() {
	slow_disk 1
	STANDIN_COLD_FILE=$tmp/disk/cold pair --bytes 512K --iters 15 "$1," "$2"
	umount "$tmp/disk"
}

cgroup=
freezer=
trap '[ -z "$freezer" ] || freezer_set 0; cleanup; freezer_end; [ -d "$cgroup" ] && rmdir "$cgroup"' EXIT

wanted clean && faults clean none "." "." record_clean
wanted late && faults late late-rank 1 '.*' pair --bytes 2M --iters 30 late:rank=1:every=5:ms=40,
wanted late && t "late: report tells what its application did before" eval \
	'"$scope" report "$tmp/late" | grep -qE "before, its application \(thread [0-9]+\) was asleep [0-9.]+ ms \(clock_nanosleep"'
wanted always-late && faults always-late late-rank 1 '.*' pair --bytes 1M --iters 20 late:rank=1:every=1:ms=20,
# Of ranks 0 and 2, which are a part as well, 2 comes late to that: so both come later to what all are in.
late_part() {
	record "$1" -- "$job" --ranks 3 --split 2 --bytes 1M --iters 60 --sleep-us 5000 --no-check --json --fault late:rank=1:nranks=2:ms=100:every=10
}
wanted late-part && faults late-part late-rank 2 '.*' late_part
wanted late-part && t "late-part: it is told once, of nobody else" eval \
	'jq -e ".verdicts | map(select(.code == \"late-rank\")) | length == 1 and .[0].cost < 0.9" "$tmp/late-part.report"'
# Its threads call far ahead, as those of a training job do: an operation takes no longer for what it waits in the queue.
wanted late-ahead && faults late-ahead late-rank 1 '.*' pair --bytes 2M --iters 64 --ahead 16 late:rank=1:every=8:ms=60,
wanted late-ahead && t "late-ahead: what waits in the queue is not slow" eval \
	'jq -e ".comms[0].ops[0] | .p50 < 30000 and .split.late > 0" "$tmp/late-ahead.report" && jq -e ".verdicts | map(select(.code == \"late-rank\").cost) | add < 0.6" "$tmp/late-ahead.report"'
# The call comes in time, and the GPU has something else to do. Progress threads poll meanwhile, share CPUs, and are preempted: that harms nobody.
busy_gpu() {
	record "$1" -- "$job" --ranks 3 --bytes 1M --iters "$2" --sleep-us 2000 --no-check --json --fault "busy-gpu:rank=1:ms=$3:every=$4"
}
late_kernel() {
	busy_gpu "$1" 60 40 10
}
always_late_kernel() {
	busy_gpu "$1" 40 15 1
}
wanted late-kernel && faults late-kernel late-kernel 1 '.*' late_kernel
wanted late-kernel && t "late-kernel: of the operations that were, by what they were" eval \
	'jq -e ".verdicts[0] | .ops >= 6 and .ops <= 9 and .slow == 6 and .cost > 0.22 and .cost < 0.3" "$tmp/late-kernel.report"'
wanted always-late-kernel && faults always-late-kernel late-kernel 1 '.*' always_late_kernel
# Sends and Recvs: of all with all, and from one rank to the next, where nobody but the first one is late.
late_all() {
	record "$1" -- "$job" --ranks 3 --op alltoall --bytes 2M --iters 30 --no-check --json --fault late:rank=1:every=18:ms=60
}
wanted late-all && faults late-all late-rank 1 '.*' late_all
wanted late-all && t "late-all: each with each is one operation" eval \
	'jq -e ".comms[0].ops | length == 1 and .[0].func == \"SendRecv\" and .[0].n == 30" "$tmp/late-all.report"'
late_ring() {
	record "$1" -- "$job" --ranks 3 --op sendrecv --bytes 2M --iters 60 --no-check --json --fault late:rank=1:every=15:ms=60
}
wanted late-ring && faults late-ring late-rank 1 '.*' late_ring
late_stage() {
	record "$1" -- "$job" --ranks 3 --op pipeline --bytes 256K --iters 400 --sleep-us 3000 --no-check --json --fault late:rank=0:ms=100:every=150
}
wanted late-stage && faults late-stage late-rank 0 '.*' late_stage
wanted late-stage && t "late-stage: of nobody else" eval \
	'jq -e ".verdicts | map(select(.code == \"late-rank\")) | length == 1" "$tmp/late-stage.report"'
wanted hog && faults hog proxy-preempted 1 '^scope-hog' with_hog nice -n -10 "$sched_load" hog scope-hog
if { wanted fifo || wanted farm; } && ! chrt -f 10 true 2>/dev/null; then
	skip "fifo, farm" "this cgroup gets no real-time"
else
	wanted fifo && faults fifo proxy-preempted 1 '^scope-fifo' with_hog chrt -f 10 "$sched_load" hog scope-fifo 2000 2000
	# An address each: what is confirmed late is sent again, and nothing is lost.
	hog_opts=(--bind "127.0.0.1,127.0.0.2")
	wanted fifo && faults fifo-containers proxy-preempted 1 '^scope-fifo' with_hog chrt -f 10 "$sched_load" hog scope-fifo 2000 2000
	hog_opts=()
	wanted fifo && t "fifo-containers: nothing was lost" eval \
		'jq -e "[.verdicts[], .slow[] | select(.code == \"net-loss\")] == []" "$tmp/fifo-containers.report"'
	wanted farm && faults farm proxy-preempted 1 '^scope-cc1,_[0-9]+_processes|^[0-9]+_processes(_or_more)?,_mostly_scope-cc1$' with_farm
fi
for call in nanosleep poll futex; do
	mode=:$call=1
	[ $call = nanosleep ] && mode=
	wanted $call && faults $call proxy-blocked 1 "p?(clock_)?$call" pair --bytes 512K --iters 10 "slow-progress:rank=1:us=3000$mode,"
done
wanted busy && faults busy proxy-busy 1 '.*' pair --bytes 512K --iters 10 slow-progress:rank=1:us=3000:busy=1,
if wanted "pages reads" && ! [ -w /dev/fuse ]; then
	skip "pages, reads" "no /dev/fuse"
else
	wanted pages && faults pages proxy-blocked 1 'pagefault|io' with_disk cold-file:rank=1
	wanted reads && faults reads proxy-blocked 1 'io|pagefault' with_disk cold-file:rank=1:read=1
fi
if wanted quota && ! cgroup_new; then
	skip "quota" "no cgroup with the cpu controller can be made here"
elif wanted quota; then
	faults quota cpu-throttled 1 '^-$' with_quota
	faults quota-containers cpu-throttled 1 '^-$' with_quota --bind 127.0.0.1,127.0.0.2 # each has an address
fi
if wanted interrupts && ! command -v nft >/dev/null; then
	skip "interrupts" "needs nft"
elif wanted interrupts; then
	faults interrupts interrupts 1 '.*' with_flood
fi
wanted stopped && faults stopped stopped 1 '^-$' with_stop
wanted frozen && faults frozen stopped 1 '.*' with_stop_for_ever
wanted idle-frozen && period=200000 faults idle-frozen stopped 1 '.*' with_stop_for_ever # between two operations
for kind in cgroup2 cgroup; do
	wanted paused || break
	if freezer_new $kind; then
		faults paused-$kind stopped 1 '.*' with_pause
		t "paused-$kind: so says report, and of no signal" eval \
			'"$scope" report "$tmp/paused-$kind" >"$tmp/said" && grep -q "its threads were frozen with their cgroup" "$tmp/said" && ! grep -q SIG "$tmp/said"'
		freezer_end
	else
		skip "paused-$kind" "no cgroup that can be frozen can be made here"
	fi
done
wanted missing && faults missing missing-collective 1 '.*' with_missing
longest_of() {
	"$scope" export -q -t chrome "$tmp/$1" | jq "[.. | objects | select(.dur? and (.name? // \"\" | test(\"AllReduce\"))) | .dur] | max"
}
# A progress thread that never goes on. The job gives up after 4 s and kills all of it: that was not the cause.
wanted hangs && faults hangs proxy-blocked 1 nanosleep pair --bytes 1M --iters 30 --timeout 4 hang:rank=1:after=20,
wanted hangs && t "hangs: for as long as it did" eval \
	'jq -e ".verdicts[0] | .hung == 1 and .cost > 2.5" "$tmp/hangs.report" && "$scope" report "$tmp/hangs" | grep -qE "^AllReduce +[0-9]+ +open +[0-9.]+ [mu]s +proxy-blocked"'
wanted hangs && t "hangs: so says record" grep -qE '^> +[0-9]{4}\.[0-9]+  AllReduce ' "$tmp/hangs.err"
wanted hangs && t "hangs: and export: $(longest_of hangs) us" [ "$(longest_of hangs | cut -d. -f1)" -gt 2500000 ]
wanted killed && faults killed missing-collective 1 '.*' pair --bytes 1M --iters 30 kill:rank=1:after=20,
wanted quit && faults quit missing-collective 1 '.*' pair --bytes 1M --iters 30 quit:rank=1:after=20,
finish
