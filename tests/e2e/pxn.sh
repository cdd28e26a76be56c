#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# PXN: a rank's sends run in the progress thread of a neighbour's process. Those events are the neighbour's
# and say so; by pid and parent they join with the Coll in the file of the process that asked for them.
. "$(dirname "$0")/lib.sh"

for how in "--ranks 4 --pxn 2" "--ranks 3 --pxn 3" "--ranks 4 --pxn 2 --threads 2"; do
	name=pxn$((n = ${n:-0} + 1))
	# shellcheck disable=SC2086
	record "$name" -- "$job" $how --channels 2 --bytes 1M --iters 4 --check --json
	is "$how: the job is right" "$rc $(said "$name" .ok)" "0 true"
	t "$how: check" clean "$name"
	t "$how: loss" lossless "$name"
	t "$how: parents" joined "$name"
	facts "$name" 'events | index_by_id as $all | {
		pxn: map(select(.isPxn)) | group_by(.type) | map([(.[0].type | ltrimstr("ncclProfile")), length]),
		steps: map(select(.isPxn)) | of("ProxyStep") | length,
		total: [of("ProxyOp", "ProxyStep") | length],
		values: map(select(.isPxn) | [.commId, .rank, .gpuUuid, has("ctx"), has("commHash"), .isPxn]) | unique,
		sends: map(select(.isPxn) | .details.isSend) | unique,
		foreign: map(select(.isPxn and .originPid == .myPid)) | length,
		event_pid: map(select(.isPxn and .type == "ncclProfileProxyOp") | .details.eventPid == .originPid) | unique,
		joined: map(select(.isPxn and .type == "ncclProfileProxyOp") | $all["\(.originPid)/\(.parentObj)"].type) | unique,
		step_parent: map(select(.isPxn and .type == "ncclProfileProxyStep") | $all["\(.myPid)/\(.parentObj)"] as $op
			| [$op.type, $op.isPxn, $op.originPid == .originPid]) | unique,
		ops_of_coll: (of("ProxyOp") | map(if .isPxn then "\(.originPid)/\(.parentObj)" else "\(.myPid)/\(.parentObj)" end)
			| group_by(.) | map(length) | unique),
		orphans: map(select(.orphan)) | length}'
	is "$how: ProxyOps and ProxySteps together as the job counts" "$(fact total)" \
		"$(said "$name" '[[.rank[].comms[]] | (map(.proxyOps) | add), (map(.proxySteps) | add)]')"
	if [[ $how != *threads* ]]; then
		t "$how: there are such events" jq -e '.steps > 0' "$tmp/facts"
		is "$how: kinds" "$(fact 'pxn | map(.[0])')" '["ProxyOp","ProxyStep"]'
		is "$how: no communicator, rank, GPU or context" "$(fact values)" '[[0,-1,"",false,false,true]]'
		is "$how: they are sends" "$(fact sends)" '[true]'
	fi
	is "$how: of other processes" "$(fact foreign)" 0
	is "$how: originPid is NCCL's pid" "$(jq -c '.event_pid - [true]' "$tmp/facts")" "[]"
	is "$how: parents are in the other file" \
		"$(jq -c ".joined - [\"ncclProfileColl\"]" "$tmp/facts")" "[]"
	is "$how: the parent of a step is here, and PXN too" "$(jq -c '.step_parent - [["ncclProfileProxyOp", true, true]]' "$tmp/facts")" "[]"
	is "$how: each Coll has its 4 ProxyOps, wherever they ran" "$(fact ops_of_coll)" "[4]"
	is "$how: no orphans" "$(fact orphans)" 0
done

# Check knows how to join them too.
pxn_seen() {
	"$scope" check --json "$tmp/pxn1"/*.jsonl >"$tmp/check.json" && jq -e '.pxn.matched > 0 and .pxn.unmatched == 0' "$tmp/check.json"
}
t "check joins them across files" pxn_seen

# A recording of the neighbour alone still says whose they are.
job_bg alone --ranks 2 --pxn 2 --bytes 256K --iters 100000 --sleep-us 1000 --no-check
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
record one -p "${ranks[0]}" -d 300ms
is "one of the two recorded: nothing of the other, as it is not armed" \
	"$(q one '[events[] | select(.isPxn)] | length') $(q one '[events[].myPid] | unique | tojson')" "0 [${ranks[0]}]"
t "one of the two recorded: clean" clean one
kill -INT "$starter"
wait "$starter"

finish
