#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# NCCL 2.23 to 2.31 and later, as the stand-in plays them: profiler API v1 to v7, each with the kinds of
# events, the states and the fields that it has, and no others.
. "$(dirname "$0")/lib.sh"

export NCCL_PROFILE_EVENT_MASK=0xffff # KernelPhase is not in the default
old="Coll Group ProxyCtrl ProxyOp ProxyStep"
v3="Coll Group KernelCh ProxyCtrl ProxyOp ProxyStep"
v5="Coll CollApi Group GroupApi KernelCh KernelLaunch ProxyCtrl ProxyOp ProxyStep"
v7="Coll CollApi Group GroupApi KernelCh KernelLaunch KernelPhase ProxyCtrl ProxyOp ProxyStep"
types=("" "$old" "$old" "$v3" "$v3" "$v5" "$v5" "$v7")
# Per process: one AllReduce of 1 MiB on 2 ranks and 2 channels has 2 + 2 ProxyOps of 4 steps each.
states_old='[[0,16],[1,16],[2,16],[3,16],[4,16],[5,16],[6,16],[7,16],[8,16],[9,16],[10,16],[11,16],[12,16]]'
v4_states='[8,16],[9,16],[10,16],[11,16],[12,16],[19,8],[20,16],[22,4]'
states=("" "$states_old" "$states_old" "$states_old" "[$v4_states]" "[$v4_states,[23,2],[24,2]]"
	"[$v4_states,[23,2],[24,2]]" "[$v4_states,[23,2],[24,2],[31,12]]")

for v in 1 2 3 4 5 6 7; do
	record "v$v" -- "$job" --api $v --ranks 2 --bytes 1M --iters 1 --json --name "of v$v"
	t "v$v: clean, lossless" eval "same $rc 0 status && clean v$v && lossless v$v"
	t "v$v: parents" joined "v$v"
	facts "v$v" '
	# The stand-in'\''s GPU counts from GPU_EPOCH_NS on (util.c), in steps of 1.024 us.
	def made: (. - 1756134813000000000) / 1000;
	def as_made: [(.gpuStart - (.pTimer | made)), (.gpuStop - (.pTimerStop | made))] as $off
		| .gpuError < 10000 and ($off | map(fabs) | max) <= .gpuError + 0.3;
	. as $all | {
		types: ($all | events | map(.type | ltrimstr("ncclProfile")) | unique | join(" ")),
		states: ($all | records("state") | map(select(.id < 13 or .id > 18)) | group_by(.id) | map([.[0].id, length])),
		hashes: ([$all | events[] | select(.type | test("Coll$|ProxyOp$|ProxyStep$|KernelCh$")) | .commHash] | unique),
		ranks: ([$all | events[] | select(.type | test("Coll$|ProxyOp$|ProxyStep$")) | .rank] | unique),
		counts: ($all | by_pid | map(counters | del(.collApis, .p2pApis)
			+ if '$v' < 3 then {kernelChs: 2} else {} end) | unique),
		init: ($all | lifecycle("ProfilerInit") | map(.details + {rank, known: (.commId != 0)}) | sort_by(.rank)),
		coll: ($all | events | of("Coll") | map(.details | del(.sendBuff, .recvBuff, .parentGroup)) | unique),
		buffers: ($all | events | of("Coll") | all(.[].details | .sendBuff, .recvBuff; test("^0x[0-9a-f]+$"))),
		group: ($all | (events | of("Group") | map({key: .eventAddr, value: 1}) | from_entries) as $g | events | of("Coll")
			| all($g['"$([ $v -ge 5 ] && echo .details.parentGroup || echo .parentObj)"'] == 1)),
		old_args: ($all | records("state") | map(select(.id < 8) | has("transSize") and has("steps")) | unique),
		trans: ($all | records("state") | map(select(.id == 9 or .id == 11) | .transSize) | unique),
		kernel: ($all | events | of("KernelCh") | map(.details | [has("pTimer"), has("pTimerStop")]) | unique),
		gpu: ($all | events | of("KernelCh") + of("KernelPhase") | map(.details | if has("gpuStart") then as_made else null end) | unique),
		exec: ($all | events | of("Coll") | map(.exec.source) | unique)}'
	is "v$v: kinds of events" "$(fact types)" "${types[v]}"
	is "v$v: states" "$(fact states)" "${states[v]}"
	is "v$v: counts are the job's" "$(fact counts)" \
		"$(jq -L "$here" -c 'include "trace"; job_counters | map(del(.pid, .collApis, .p2pApis)) | unique' "$tmp/v$v.out")"
	is "v$v: communicator of the events" "$(fact hashes)" \
		"$(said "v$v" '[.rank[].comms[].commHash | sub("^0x0*"; "0x")] | unique')"
	is "v$v: ranks of the events" "$(fact ranks)" "[0,1]"
	if [ $v -le 3 ]; then # NCCL tells who it is with each operation only
		is "v$v: init" "$(fact init)" "$(jq -nc "[range(2) | {nranks: 0, nNodes: 0, commName: \"\", eventMask: 65535,
			ncclApi: $v, rank: -1, known: false}]")"
		is "v$v: arguments of ProxyOp's states" "$(fact old_args)" "[true]"
		is "v$v: no arguments of ProxyStep's states" "$(fact trans)" "[null]"
	else
		is "v$v: init" "$(fact init)" "$(jq -nc "[range(2) | {nranks: 2, nNodes: 2, commName: \"of v$v\", eventMask: 65535,
			ncclApi: $v, rank: ., known: true}]")"
		is "v$v: transSize of ProxyStep's states" "$(fact trans)" "[131072]"
	fi
	is "v$v: Coll" "$(fact coll)" "$(jq -nc '[{func: "AllReduce", seq: 0, algo: "RING", proto: "SIMPLE", channels: 2,
		warps: 17, count: 262144, root: 0, dtype: "ncclFloat32"} + if '$v' < 3 then {seqCommon: true} else {} end]')"
	is "v$v: Coll: buffers and Group" "$(fact buffers) $(fact group)" "true true"
	[ $v -lt 3 ] || is "v$v: GPU times of KernelCh" "$(fact kernel)" "[[$([ $v -ge 4 ] && echo true,true || echo false,false)]]"
	# Before v5 NCCL tells of no launch, and of an operation's end only when its kernels' lines are written.
	[ $v -lt 3 ] || is "v$v: GPU times in the node's, to within their error" "$(fact gpu)" "[$([ $v -ge 5 ] && echo true || echo null)]"
	is "v$v: exec is told by the proxy" "$(fact exec)" '["proxy"]'

	record "m$v" -- "$job" --api $v --ranks 3 --op mix --bytes 256K --iters 7 --groups 2 --check --json
	t "v$v: every operation, in groups: clean, lossless" eval "same $rc 0 status && clean m$v && lossless m$v"
	t "v$v: every operation, in groups: parents" joined "m$v"
	is "v$v: every operation, in groups: counts" \
		"$(q "m$v" "[by_pid[] | counters | del(.collApis, .p2pApis) + if $v < 3 then {kernelChs: 0} else {} end] | tojson")" \
		"$(jq -L "$here" -c "include \"trace\"; job_counters | map(del(.pid, .collApis, .p2pApis)
			+ if $v < 3 then {kernelChs: 0} else {} end)" "$tmp/m$v.out")"
	# the shim of 2.28 for v4 leaves garbage in P2p's channels, NCCL 2.27 itself does not
	is "v$v: P2p" "$(q "m$v" '[events | of("P2p")[] | [.func, .details.dtype, .details.func == .func, .details.peer < 3]] | unique | tojson')" \
		'[["Recv","ncclFloat32",true,true],["Send","ncclFloat32",true,true]]'
	rm -rf "$tmp/m$v"
done

# ---- Up to NCCL 2.25 seq counts what is recorded only

# numbers NAME: what its Colls say of seq, how many the two ranks have for each operation of the report, and whether that says so.
numbers() {
	"$scope" report --json "$tmp/$1" >"$tmp/$1.json" && "$scope" report "$tmp/$1" >"$tmp/$1.text" || return 1
	echo "$(q "$1" '[events | of("Coll")[] | .details.seqCommon] | unique | tojson')" \
		"$(jq "$(q "$1" '[events | of("Coll")[]] | length') / ([.comms[].ops[].n] | add) | round" "$tmp/$1.json")" \
		"$(grep -c 'are not compared with each other' "$tmp/$1.text")"
}
is "v2: from the start: seq is common, ranks are joined" "$(numbers v2)" "[true] 2 0"
for v in 2 3; do
	job_bg "late$v" --api $v --ranks 2 --bytes 64K --iters 100000 --sleep-us 2000 --no-check
	ranks_of 2
	sleep 0.3
	record "late$v" -d 700ms
	t "v$v, attached: clean" clean "late$v"
	kill_job
	is "v$v, attached: whether seq is common, ranks are joined" "$(numbers "late$v")" "$([ $v = 2 ] && echo '[false] 1 1' || echo '[null] 2 0')"
done

# ---- KernelPhase

is "v7: three phases of each KernelCh" "$(q v7 '[events | of("KernelPhase") | group_by([.myPid, .parentObj])[]
	| sort_by(.details.phaseId) | map(.details.phaseName)] | unique | tojson')" '[["initial_sync","compute","final_sync"]]'
t "v7: phases follow each other on the GPU's clock" holds v7 'events | of("KernelPhase") | group_by([.myPid, .parentObj])
	| length == 4 and all(sort_by(.details.phaseId) | .[0].details.pTimerStop <= .[1].details.pTimer
	and .[1].details.pTimerStop <= .[2].details.pTimer)'
NCCL_PROFILE_EVENT_MASK=0x7fff record nophase -- "$job" --api 7 --ranks 2 --bytes 64K --iters 1 --json
is "v7: no KernelPhase under another mask" "$(q nophase 'events | of("KernelPhase") | length')" 0

# ---- Copy-engine collectives

for v in 5 6 7; do
	record "ce$v" -- "$job" --api $v --ce --ranks 2 --op allgather --bytes 64K --iters 3 --json --check
	t "v$v --ce: as the job counts" good "ce$v"
	is "v$v --ce: CeColl, CeSync, CeBatch, Coll of each process" \
		"$(q "ce$v" '[by_pid[] | [of("CeColl", "CeSync", "CeBatch", "Coll") | length]] | unique | tojson')" \
		"$([ $v = 5 ] && echo '[[0,0,0,3]]' || echo '[[3,6,3,0]]')"
done
is "v6: CeColl" "$(q ce6 'events | of("CeColl") | map(.details | del(.sendBuff, .recvBuff, .stream, .seq, .ceSeqNum)) | unique | tojson')" \
	"$(jq -nc '[{func: "AllGather", count: 32768, root: 0, dtype: "ncclInt8", syncStrategy: "UC",
		intraBatchSync: false, batchSize: 0, numBatches: 0}]')"
is "v6: CeSync and CeBatch" "$(q ce6 'events | [of("CeSync", "CeBatch")[] | .details] | unique | tojson')" \
	'[{"isComplete":false,"nRanks":2},{"isComplete":true,"nRanks":2},{"numOps":2,"totalBytes":65536,"useIntraSync":false}]'

# ---- NetPlugin, which NVIDIA's builds do not have

for v in 2 3 5; do
	record "net$v" -- "$job" --api $v --net-profiler --ranks 2 --bytes 1M --iters 1 --json
	t "v$v --net-profiler: clean, parents" eval "clean net$v && joined net$v && lossless net$v"
	is "v$v --net-profiler: one for each step" "$(q "net$v" 'events | of("NetPlugin") | length')" "$([ $v = 2 ] && echo 0 || echo 32)"
done
is "v5 --net-profiler: what was decoded" "$(q net5 'events | of("NetPlugin") | map(.details | [.id, .netType, .op, .length, .fd > 2])
	| unique | tojson')" '[[131073,"socket",0,131072,true],[131073,"socket",1,131072,true]]'

# ---- userTag, which v7 alone has

if [ -x "$build/e2e/life" ]; then
	cp "$build/e2e/life" "$tmp/bin/"
	for v in 6 7; do
		STANDIN_PROFILER_API=$v record "tag$v" -- "$tmp/bin/life" tag
		is "userTag with v$v" "$(cat "$tmp/tag$v"/*.jsonl | grep -o '"userTag":[0-9]*' | sort | uniq -c | tr -s ' ')" \
			"$([ $v = 7 ] && echo ' 4 "userTag":18369614221190033421')"
	done
else
	skip "userTag" "needs $build/e2e/life (make tests)"
fi

finish
