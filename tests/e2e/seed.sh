#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The record layout of the original minimal profiler, key by key: what its documentation lists, and what
# a real trace of it has, is in our records in the same order, with the same JSON types.
. "$(dirname "$0")/lib.sh"
real=$top/tests/data/nccl-2.28-4xh100-allreduce.jsonl

record plain -- "$job" --ranks 2 --op mix --bytes 256K --iters 7 --json --name layout
record pxn -- "$job" --ranks 4 --pxn 2 --bytes 256K --iters 2 --json
record ce -- "$job" --ranks 2 --op allgather --ce --api 6 --bytes 64K --iters 2 --json
mkdir "$tmp/one"
cat "$tmp"/{plain,pxn,ce}/*.jsonl >"$tmp/one/all.jsonl"

# in_order: it has all keys of the list, in that order, whatever else it has.
defs='def in_order($list): keys_unsorted | map(select(. as $k | $list | index($k))) == $list;
	def number: type == "number"; def string: type == "string"; def hex: string and test("^0x[1-9a-f][0-9a-f]*$");
	def place: (keys_unsorted[:3] == ["ts", "pid", "tid"]) and all(.ts, .pid, .tid; number);
	def event_keys: ["recordType", "type", "func", "gpuUuid", "commId", "rank", "start", "stop", "duration", "myPid",
		"parentObj", "eventAddr", "ctx", "details"];
	def pxn_keys: ["recordType", "type", "func", "gpuUuid", "commId", "rank", "start", "stop", "duration", "myPid",
		"originPid", "parentObj", "eventAddr", "isPxn", "details"];
	def state_keys: ["recordType", "eventAddr", "ts", "name", "id", "pid", "tid"];
	def lifecycle_keys: event_keys - ["parentObj", "eventAddr", "ctx"];
'
# whole WHAT FILTER: the records that FILTER picks are some, and all are so.
whole() {
	t "$1" holds one "$defs$2"
}
whole "events: keys, in order" 'events | map(select(.isPxn | not)) | length > 300 and all(in_order(event_keys))'
whole "events: nothing before or between but commHash" 'events | map(select(.isPxn | not) | keys_unsorted
	| .[:index("details") + 1] - ["commHash"]) | unique == [event_keys]'
whole "events under PXN: keys, in order" 'events | map(select(.isPxn)) | length > 10 and all(in_order(pxn_keys))'
whole "events under PXN: values" 'events | map(select(.isPxn)) | all(.gpuUuid == "" and .commId == 0 and .rank == -1
	and .isPxn == true and (.originPid | number) and (has("ctx") | not))'
whole "events: types of the values" 'events | all((.type | string and startswith("ncclProfile")) and (.func | string)
	and (.gpuUuid | string) and (.commId | number) and (.rank | number) and (.start | place) and (.stop | place)
	and (.duration | number) and (.myPid | number) and (.parentObj | hex or . == "null") and (.eventAddr | hex)
	and (.ctx | . == null or hex) and (.details | type == "object"))'
whole "events: duration is stop minus start" 'events | all((.stop.ts - .start.ts - .duration) | fabs < 0.002)'
whole "states: keys, in order, first" 'records("state") | length > 300 and all(keys_unsorted[:7] == state_keys)'
whole "states: types of the values" 'records("state") | all((.eventAddr | hex) and (.ts | number) and (.name | string)
	and (.id | number) and (.pid | number) and (.tid | number))'
whole "states: transSize of SendWait" 'records("state") | map(select(.name == "ProxyStepSendWait")) | length > 10
	and all(.transSize | number)'
whole "lifecycle: keys, in order" 'records("event") | map(select(.type == "ProfilerLifecycle")) | length == 16
	and all(in_order(lifecycle_keys) and .duration == 0 and .start == .stop)
	and (map(.func) | unique == ["ProfilerFinalize", "ProfilerInit"])'
whole "lifecycle: details" 'lifecycle("ProfilerInit") | all(.details | in_order(["nranks", "commName", "eventMask"])
	and (.nranks | number) and (.commName | string) and (.eventMask | number))'
whole "lifecycle: values" 'lifecycle("ProfilerInit") | map(select(.details.commName == "layout") | .details | [.nranks, .eventMask])
	== [[2, 4095], [2, 4095]]'
whole "only events have a type" 'map(select(.recordType != "event") | has("type")) | any | not'
# A number with three decimals each, as text: a double may show fewer.
is "times: three decimals, as text" \
	"$(grep -Ehvc '"ts":[0-9]+\.[0-9]{3}[,}]' <(grep -h '"recordType":"\(event\|state\)"' "$tmp/one/all.jsonl"))" 0
is "commId: a whole number, as text" "$(grep -h '"recordType":"event"' "$tmp/one/all.jsonl" | grep -Evc '"commId":[0-9]+,')" 0
is "commHash: the same number" "$(q one 'events[] | select(.commHash) | .commHash' | sort -u | while read -r hex; do
	printf '%u\n' "$hex"
done | sort)" "$(grep -oh '"commId":[1-9][0-9]*,"commHash"' "$tmp/one/all.jsonl" | grep -o '[0-9]*' | sort -u)"

# Each type's details, as the original documents them: these first, in this order.
while IFS=: read -r type keys; do
	whole "details of $type" "(\"$keys\" | split(\" \")) as \$want | events | of(\"$type\") | length > 0 and all(.details
		| keys_unsorted[:(\$want | length)] == \$want)"
done <<-'EOT'
	GroupApi:depth graphCaptured
	CollApi:func count dtype root stream graphCaptured
	P2pApi:func count dtype stream graphCaptured
	KernelLaunch:stream
	Coll:func seq algo proto channels warps count root dtype sendBuff recvBuff parentGroup
	P2p:func peer channels count dtype buff parentGroup
	ProxyOp:channel peer steps chunkSize isSend eventPid
	ProxyStep:step
	KernelCh:channel pTimer
	CeColl:func seq count root dtype sendBuff recvBuff syncStrategy
EOT

# A real trace of the original, with its faults: taken under --compat, and no key of it that we lack.
# (extCorrId of its kernel launches comes from CUPTI.)
t "real trace of the original: check --compat" "$scope" check --compat "$real"
t "real trace of the original: not without --compat" eval '! "$scope" check "$real"'
jq -s '[.[] | select((.type // "") | startswith("ncclProfile"))] | map({key: .type, value: [(keys_unsorted - ["extCorrId"]), (.details | keys_unsorted)]})
	| unique | group_by(.key) | map({key: .[0].key, value: map(.value)}) | from_entries' "$real" >"$tmp/real"
its_keys='$real[0] as $real | events | map(select($real[.type] and (.isPxn | not))) | (length > 100)
	and all(. as $e | all($real[$e.type][]; . as $k | ($e | in_order($k[0])) and ($e.details | in_order($k[1]))))'
t "real trace of the original: all its keys, in its order" holds one "$defs$its_keys" --slurpfile real "$tmp/real"
# The original has the names of the states 23 and 24 in words of its own.
jq -s '[.[] | select(.recordType == "state" and .id < 22) | [.id, .name]] | unique' "$real" >"$tmp/real-states"
t "real trace of the original: names of its states" holds one '[records("state")[] | [.id, .name]] | unique as $ours
	| $real[0] | length > 3 and (. - $ours == [])' --slurpfile real "$tmp/real-states"

finish
