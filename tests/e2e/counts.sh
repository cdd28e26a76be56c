#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# How many events: against NCCL's formulas, and against what the job says it made. Whose parent is whose,
# by a join of our own. How long: against the job's own timer.
. "$(dirname "$0")/lib.sh"

# ---- AllReduce of 64 MiB, 4 processes, 2 channels

record ar --mask all -- "$job" --ranks 4 --channels 2 --bytes 64M --iters 10 --json
t "allreduce 64M: status, check, loss, counters, parents" good ar
is "allreduce 64M: results are right" "$(said ar .ok)" true
is "allreduce 64M: a file for each process" "$(find "$tmp/ar" -name '*.jsonl' | wc -l)" 4
facts ar 'states_by_event as $states | events as $e | {
	of_rank: [$e | group_by(.rank)[] | [(of("ProxyOp"), of("ProxyStep") | length / 10)]],
	ops_of_coll: ($e | of("ProxyOp") | group_by([.myPid, .parentObj]) | map(length) | unique),
	steps_of_op: ($e | of("ProxyStep") | group_by([.myPid, .parentObj]) | map(map(.details.step) | sort) | unique),
	of_call: [$e | of("Coll", "CollApi", "GroupApi", "Group", "KernelLaunch") | length],
	comms: [lifecycle("ProfilerInit")[] | [.rank, .details.nranks]] | sort,
	hashes: [$e[].commHash] | unique,
	sent: ($e | of("ProxyStep") | map(select(.details.isSend) | $states[key]) | [length, unique]),
	received: ($e | of("ProxyStep") | map(select(.details.isSend | not) | $states[key]) | [length, unique]),
	op_states: ($e | of("ProxyOp") | map($states[key]) | unique),
	api_states: ($e | of("GroupApi") | map($states[key]) | unique),
	bytes: ([$e | of("ProxyStep") | group_by([.rank, .details.isSend])[] | map(.details.transSize) | add] | unique),
	seq: ([$e | of("Coll") | group_by(.rank)[] | map(.details.seq) | sort] | unique),
	peers: ([$e | of("ProxyOp")[] | [.details.channel, .details.isSend, (4 + .details.peer - .rank) % 4]] | unique),
	exec: ($e | of("Coll") | group_by(.rank) | map({rank: .[0].rank, us: (map(.exec.duration) | add)})),
	exec_source: ([$e | of("Coll")[].exec.source] | unique)
}'
is "allreduce 64M: ProxyOps and ProxySteps of each rank and iteration" "$(fact of_rank)" \
	"[[4,192],[4,192],[4,192],[4,192]]"
is "allreduce 64M: ProxyOps of each Coll" "$(fact ops_of_coll)" "[4]"
is "allreduce 64M: ProxySteps of each ProxyOp, by number" "$(fact steps_of_op)" "$(jq -nc '[[range(48)]]')"
is "allreduce 64M: a Coll, CollApi, GroupApi, Group and KernelLaunch for each call" "$(fact of_call)" \
	"[40,40,40,40,40]"
is "allreduce 64M: a communicator on each rank" "$(fact comms)" "[[0,4],[1,4],[2,4],[3,4]]"
is "allreduce 64M: one commHash, the job's" "$(fact hashes)" \
	"$(said ar '[.rank[].comms[].commHash | sub("^0x0*"; "0x")] | unique')"
is "allreduce 64M: states of each step sent" "$(fact sent)" "[3840,[[8,20,9]]]"
is "allreduce 64M: states of each step received" "$(fact received)" "[3840,[[10,11,12]]]"
is "allreduce 64M: states of ProxyOp" "$(fact op_states)" "[[19]]"
is "allreduce 64M: states of GroupApi" "$(fact api_states)" "[[23,24]]"
# 2 (n - 1) / n of the buffer goes out of each rank, and into it
is "allreduce 64M: bytes sent and received by each rank" "$(fact bytes)" "[$((10 * 2 * 3 * (64 << 20) / 4))]"
is "allreduce 64M: seq" "$(fact seq)" "$(jq -nc '[[range(10)]]')"
is "allreduce 64M: a ring on each channel" "$(fact peers)" "[[0,false,3],[0,true,1],[1,false,3],[1,true,1]]"

# Exec windows: from the call to the end of the last step; the job's timer: from the call to its completion.
exec_fits() {
	jq -ne --slurpfile f "$tmp/facts" --slurpfile j "$tmp/ar.out" '
		[$f[0].exec[] as $x | $j[0].rank[] | select(.rank == $x.rank) | (.iterations | map(.us) | add) as $us
		| {rank, job: $us, exec: $x.us, ratio: ($x.us / $us)}]
		| (., (length == 4 and all(.[]; .ratio > 0.95 and .ratio < 1.05)))' >"$tmp/fits"
	cat "$tmp/fits"
	[ "$(tail -n 1 "$tmp/fits")" = true ]
}
t "allreduce 64M: exec windows within 5% of the job's timer" exec_fits
is "allreduce 64M: exec is told by the proxy" "$(fact exec_source)" '["proxy"]'

# All files, in any order, are one trace.
together() {
	mkdir "$tmp/cat" && printf '%s\n' "$tmp"/ar/*.jsonl | sort -r | xargs cat >"$tmp/cat/all.jsonl" && "$scope" check "$tmp/cat/all.jsonl" &&
		same "$(wc -l <"$tmp/cat/all.jsonl")" "$(cat "$tmp"/ar/*.jsonl | wc -l)" lines
}
t "allreduce 64M: cat of all files is a valid trace" together
rm -rf "$tmp/cat" "$tmp/ar"

# ---- 1 GiB, 8 ranks, 16 channels: a dry run, 8 bytes a transfer

record dry -- "$job" --ranks 8 --channels 16 --bytes 1G --dry --iters 1 --json
is "1G dry: status" "$rc" 0
t "1G dry: check" clean dry
t "1G dry: loss" lossless dry
is "1G dry: ProxyOps and ProxySteps of each rank" \
	"$(for f in "$tmp"/dry/*.jsonl; do
		jq -nc 'reduce (inputs.type // empty) as $t ({}; .[$t] += 1) | [.ncclProfileProxyOp, .ncclProfileProxyStep]' "$f"
	done | sort | uniq -c | tr -s ' ')" " 8 [32,3584]"
rm -rf "$tmp/dry"

# ---- Every operation, groups, sizes

for op in allreduce allgather reducescatter broadcast reduce sendrecv alltoall; do
	record $op -- "$job" --ranks 3 --op $op --bytes 300K --iters 3 --check --json
	t "$op: trace has what the job made" good $op
	t "$op: functions" holds $op '
		{allreduce: ["AllReduce"], allgather: ["AllGather"], reducescatter: ["ReduceScatter"], broadcast: ["Broadcast"],
		reduce: ["Reduce"], sendrecv: ["Recv", "Send"], alltoall: ["Recv", "Send"]}[$op] as $want
		| ([events | of("Coll", "P2p")[].func] | unique == $want) and ([events | of("CollApi", "P2pApi")[].details.func] | unique == $want)' --arg op $op
done
record mix -- "$job" --ranks 4 --op mix --bytes 1M --iters 14 --groups 3 --check --json
t "mix in groups of 3: trace has what the job made" good mix
# 5 of the 7 operations are collectives; groups of sends within a group are counted as NCCL does
is "mix in groups of 3: a GroupApi for each group of collectives, with 3 CollApis" \
	"$(q mix '[events | of("CollApi") | group_by([.myPid, .parentObj])[] | length] | tojson')" \
	"$(jq -nc '[range(4 * 10) | 3]')"
record empty -- "$job" --ranks 2 --bytes 0 --iters 2 --json
t "0 bytes: trace has what the job made" good empty
record one -- "$job" --ranks 1 --iters 3 --json
is "one rank: communicator, no event" "$rc $(q one '(lifecycle("ProfilerInit") | length | tostring) + " " + (events | map(select(.type != "ncclProfileProxyCtrl")) | length | tostring)')" "0 1 0"

finish
