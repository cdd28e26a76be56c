#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# NVIDIA's NCCL on a GPU that all ranks share, over TCP on loopback: what the stand-in claims of it, and what only a GPU
# can tell. The same jobs run over both, and their traces must have the same events.
E2E_TIMEOUT=${E2E_TIMEOUT:-240}
. "$(dirname "$0")/../e2e/lib.sh"

nvidia-smi -L >"$tmp/gpus" 2>/dev/null || skip_all "needs an NVIDIA GPU"
real=$build/gpu/scope-job
[ -x "$real" ] || skip_all "needs '$real': make check-gpu builds it"
standin=$job

# both NAME OPTION...: traces of NVIDIA's in $tmp/NAME, of the stand-in in $tmp/NAME-standin. scope-job has NVIDIA's take
# what the stand-in has: ring, Simple, TCP, and as many channels.
both() {
	local name=$1
	shift
	record "$name-standin" -- "$standin" --json "$@"
	record "$name" -- "$real" --json "$@"
	is "$name: exit status, results" "$rc $(said "$name" '[.ok, .checked]')" "0 [true,true]"
	t "$name: clean" clean "$name"
	t "$name: nothing lost" lossless "$name"
	t "$name: every event has its parent" joined "$name"
	is "$name: events as of the stand-in" "$(events_of "$name")" "$(events_of "$name-standin")"
	t "$name: every ProxyStep has its flow" holds "$name" 'events | of("ProxyStep") | length > 0 and all(.net.flow)'
}

# events_of NAME: how many of each kind each rank has. Of ProxyCtrl there are as many as the thread came to sleep.
events_of() {
	kinds=event q "$1" 'events | map(select(.type != "ncclProfileProxyCtrl")) | group_by([.rank, .type, .func])
		| map("\(.[0].rank) \(.[0].type | ltrimstr("ncclProfile")) \(.[0].func): \(length)")[]'
}

both allreduce --ranks 2 --bytes 4M --iters 10
both channels --ranks 4 --channels 4 --bytes 16M --iters 3
both mix --ranks 4 --bytes 1M --iters 7 --op mix
both groups --ranks 2 --bytes 1M --iters 4 --groups 3
both split --ranks 4 --bytes 1M --iters 3 --split 2
both threads --ranks 2 --bytes 1M --iters 5 --socket-threads 1

# ---- What the stand-in cannot know

is "GPU UUID" "$(q allreduce '[events[].gpuUuid] | unique | map("GPU-" + .) | join(" ")')" "$(sed -n '1s/.*UUID: \(.*\))$/\1/p' "$tmp/gpus")"
is "NCCL says its version" "$(q allreduce '[records("header")[].ncclVersion] | unique | map(test("^2[.][0-9]+[.][0-9]+$")) | tojson')" "[true]"
t "GPU times: there, and in order" holds allreduce 'events | of("KernelCh") | length == 40 and all(.details | .pTimer > 0 and .pTimerStop > .pTimer)
	and (group_by([.rank, .details.channel]) | all(. as $k | all(range(1; length); $k[.].details.pTimer >= $k[. - 1].details.pTimerStop)))'
t "GPU times in the node's: after the launch, and before the host saw them" holds allreduce kernels_in_time
is "GPU times in the node's: two processes say the same of one GPU, to within their errors" "$(q allreduce same_gpu_clock)" 20

# ---- A job that runs already; recorders come, go and are killed

NCCL_PROFILER_PLUGIN=$plugin "$real" --ranks 2 --bytes 1M --iters 1000000 --sleep-us 2000 --timeout 200 --json >"$tmp/long.out" 2>"$tmp/long.err" &
starter=$!
t "a job that runs" until_true 30 children_ready "$starter" 2
sleep 5 # the GPU's context takes seconds
for i in 1 2; do
	record attach$i -d 2s
	is "attach $i: exit status" "$rc" 0
	t "attach $i: clean" clean attach$i
	t "attach $i: nothing lost" holds attach$i 'records("footer") | length == 2 and all(.lost | keys - ["orphan"] == [])'
	t "attach $i: the communicator, both ranks, operations" holds attach$i 'lifecycle("ProfilerInit") as $c | ($c | map(.rank) | sort) == [0, 1]
		and (events | of("Coll") | length > 20 and all(.commHash == $c[0].commHash))'
	record_bg killed$i
	sleep 0.5
	stop_recorder KILL
done
kill -USR1 "$starter"
wait "$starter"
is "the job beside them all: its end, its results" "$? $(said long '[.ok, .checked]')" "0 [true,true]"

finish
