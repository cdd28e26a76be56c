#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A recorder that goes while NCCL works by KernelCh, or is killed: whatever call it comes upon, no Send and Recv of a group may differ
# in that. The stand-in's proxy then waits for the GPU's word for good, as NCCL's does, and so does who destroys the communicator.
. "$(dirname "$0")/lib.sh"

masks() {
	local pid all=''
	for pid in "${ranks[@]}"; do all+="$(mask_of "$pid") "; done
	echo "$all"
}
all_off() {
	[ "$(masks)" = "$(printf '0 %.0s' "${ranks[@]}")" ]
}

# round SIGNAL N PROCESSES [OPTION]: a job that begins beside a recorder, and loses it while it makes calls.
round() {
	record_bg "$1$2" --mask kernelch --sched=off --net=off
	job_bg "$1$2" --ranks 6 --op alltoall --bytes 256 --iters 1000000 --sleep-us 300 --no-check "${@:4}"
	ranks_of "$3"
	sleep 0.$((RANDOM % 5 + 4))
	stop_recorder "$1"
	# No jq: who was killed may have left half a line.
	t "$1, $2: KernelCh was on" grep -q '"type":"ncclProfileKernelCh"' -r "$tmp/$1$2"
}
goes_off() {
	t "$1, $2: all is off soon" until_true 5 all_off
	ends_well "$@"
}
ends_well() {
	kill -USR1 "$starter"
	wait "$starter"
	is "$1, $2: the job ends, and has not waited" "$?" 0
}

for i in $(seq "${KERNELS_ROUNDS:-2}"); do
	round INT "$i" 6
	goes_off INT "$i"
	round KILL "$i" 6
	goes_off KILL "$i"
	# NCCL stops a GroupApi at the end of each second one of the inner groups.
	round INT "nested$i" 6 --nest
	goes_off INT "nested$i"
	# Several threads of a process: each collective goes by its own mask, also of a group; a Send and its Recv by that of one of them.
	round INT "threads$i" 3 --threads 2 --op allreduce --groups 3
	goes_off INT "threads$i"
done
round INT p2p-threads 3 --threads 2
sleep 1
t "INT, p2p-threads: KernelCh stays on" [ "$(masks)" = "64 64 64 " ]
ends_well INT p2p-threads

# Before API 5 NCCL tells of a group when its calls have been made: KernelCh stays, also where it has told of none yet.
masks_are() {
	[ "$(masks)" = "$1" ]
}
record_bg v4 --mask coll --sched=off --net=off
kill -STOP "$recorder"
job_bg v4 --api 4 --ranks 2 --op alltoall --bytes 256 --iters 1000000 --sleep-us 300 --no-check --delay-ms 4000
ranks_of 2
sleep 1.5
kill -CONT "$recorder"
t "v4: KernelCh stays on" until_true 2 masks_are "66 66 "
sleep 2
stop_recorder INT
t "INT, v4: KernelCh stays on" until_true 5 masks_are "64 64 "
ends_well INT v4

# Windows that follow one another are one recording for NCCL, which could not have KernelCh come on again: it is in each of them.
recorder_bg windows -o "$tmp/windows" --mask coll,proxyop,kernelch --sched=off --net=off --every 2s --for 2s -d 7s
job_bg windows --ranks 2 --bytes 64K --iters 1000000 --sleep-us 1000 --no-check
ranks_of 2
until_true 20 ended "$recorder" || kill -TERM "$recorder"
wait "$recorder"
is "windows: exit status" $? 0
kernels() {
	local f
	for f in "$tmp"/windows/*.jsonl; do
		echo "$(grep -c '"type":"ncclProfileColl"' "$f") $(grep -c '"type":"ncclProfileKernelCh"' "$f")"
	done
}
# The last one may be as short as can be.
t "windows: two or more of two processes" [ "$(kernels | awk '$1 > 100' | wc -l)" -ge 4 ]
is "windows: KernelCh of each operation" "$(kernels | awk '$2 < $1 { print $1 " Colls, " $2 " KernelChs" }')" ""
t "windows: clean" clean windows
t "windows: all is off after the last" until_true 5 all_off
kill -USR1 "$starter"
wait "$starter"
is "windows: the job ends well" $? 0

finish
