#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope check` and `ncclscope schema`: every rule is broken once, by one edit of a good trace,
# and must be reported once, with its place, its words and its code. The same edits go to a JSON
# Schema engine where there is one, so that docs/trace.schema.json and the C tables say the same.
#
# Usage: check.sh [NCCLSCOPE [SCHEMA_TABLES]]
. "$(dirname "$0")/lib.sh"
tables=$(realpath "${2:-$top/build/tests/schema_tables}")
schema=$top/docs/trace.schema.json
cd "$tmp" || exit 1
cases=0

# fail NAME: WHY, of what is no case of its own as long as it is well.
fail()
{
	verdict "$self: ${1%%:*}" "$1"
}

# gives STATUS STDOUT-REGEX (of the whole) COMMAND...
gives()
{
	local status=$1 regex=$2 out rc
	shift 2
	out=$("$@" 2>stderr)
	rc=$?
	same "$rc" "$status" "exit status" || { echo "$out"; head -n 3 stderr; return 1; }
	[[ $out =~ ^($regex)$ ]] || { echo "printed '$out', not '$regex'"; return 1; }
}

# expect NAME STATUS STDOUT-REGEX COMMAND...: a case.
expect()
{
	cases=$((cases + 1))
	t "$1" gives "${@:2}"
}

# broken S|R|J TRACE LINE[:LEVEL] CODE 'MESSAGE REGEX' 'SED SCRIPT'
# S: one line alone shows it, so the schema must refuse it too; R: only the lines together do, so
# the schema must accept it; J: not even JSON, or beyond what a schema can say of a line.
broken()
{
	local by=$1 trace=$2 line=${3%%:*} level=error code=$4 message=$5 script=$6 status=1 edited
	[[ $3 == *:* ]] && level=${3##*:}
	[ "$level" = warning ] && status=0
	edited=$(sed -E "$script" "$traces/$trace.jsonl" && echo .)
	[ "$edited" = "${text[$trace]}." ] && fail "$code: the edit '$script' changes nothing"
	printf %s "${edited%.}" >"$code.jsonl"
	expect "$code ($script)" $status "$code\\.jsonl:$line: $level: $message \\[$code\\]" \
		"$tool" check "$code.jsonl"
	printf %s "${edited%.}" >"for-engine-$by-$cases-$code.jsonl"
}

# The traces, as they are to their last byte.
declare -A text
for trace in "$traces"/*.jsonl; do
	name=$(basename "$trace" .jsonl)
	text[$name]=$(cat "$trace" && echo .)
	text[$name]=${text[$name]%.}
done

# ---- good traces
cp "$traces/good.jsonl" trace_1_pid4711.jsonl
cp "$traces/pxn.jsonl" trace_1_pid4712.jsonl
cp "$traces/running.jsonl" trace_1_pid4713.jsonl
cp "$traces/orphans.jsonl" trace_1_pid4714.jsonl
mkdir others
cp "$traces/sched.jsonl" others/trace_1_pid4715.jsonl
cp "$traces/net.jsonl" others/trace_1_pid4716.jsonl
cp "$traces/open.jsonl" others/trace_1_pid4717.jsonl
cp "$traces/signals.jsonl" others/trace_1_pid4718.jsonl
expect good 0 '' "$tool" check trace_1_pid4711.jsonl
expect good-strict 0 '' "$tool" check --strict trace_1_pid4711.jsonl
expect seed 0 '' "$tool" check --compat "$top/tests/data/nccl-2.28-4xh100-allreduce.jsonl"
expect seed-without-compat 1 '.*:1: error: key .recordType. is missing \[key-missing\].*' \
	"$tool" check "$top/tests/data/nccl-2.28-4xh100-allreduce.jsonl"
orphans='[^ ]*: warning: ncclProfileKernelCh 0x2d0000000040 is an orphan: its parent was not seen \[orphan\]
[^ ]*: warning: KernelChStop is an orphan: its event was not seen \[orphan\]'
running='[^ ]*:7: note: the last record is torn, skipped \[torn\]
[^ ]*:1: warning: process 4713 has no footer: [^[]* \[footer-missing\]'
expect pxn 0 '' "$tool" check --strict trace_1_pid4712.jsonl
"$tool" check trace_1_pid4713.jsonl >/dev/null 2>stderr
is "one is one, and none are several" "$(sed 's/.*: \(1 file\), [0-9]* records\(.*\)/\1\2/' stderr)" "1 file, 0 errors, 1 warning"
expect sched 0 '' "$tool" check --strict "$traces/sched.jsonl"
expect net 0 '' "$tool" check --strict "$traces/net.jsonl"
expect open 0 '' "$tool" check --strict "$traces/open.jsonl"
expect orphans 0 "$orphans" "$tool" check trace_1_pid4714.jsonl
expect orphans-strict 1 "${orphans//warning/error}" "$tool" check --strict trace_1_pid4714.jsonl
expect running 0 "$running" "$tool" check trace_1_pid4713.jsonl
expect directory 0 "$running
$orphans" "$tool" check .
grep -q 'PXN: 1 operation joined with their origin, 1 without' stderr || fail "PXN join: $(cat stderr)"
together=$("$tool" check . 2>&1)
is "in one file the sum comes last" "$(tail -n 1 <<<"$together" | cut -d, -f2-)" " 78 records, 0 errors, 3 warnings"
grep -q '4 files, 78 records, 0 errors, 3 warnings' stderr || fail "summary: $(cat stderr)"

# cat of all files, in any order, is a valid trace, torn ends included
for order in "1 2 3 4" "4 3 1 2" "2 3 4 1"; do
	for i in $order; do cat "trace_1_pid471$i.jsonl"; done >all.jsonl
	expect "cat $order" 0 '.*is an orphan.*' "$tool" check all.jsonl
	grep -q 'PXN: 1 operation joined with their origin, 1 without' stderr ||
		fail "PXN join in cat $order"
	expect "cat $order to stdin" 0 '\(stdin\):.*' sh -c "'$tool' check - <all.jsonl"
	grep -q ', 78 records, 0 errors, 3 warnings' stderr || fail "cat $order: $(cat stderr)"
done

# two recordings of one process, the first of which broke off, are in one file what they are in two
no_footer='warning: process 4711 has no footer: [^[]* \[footer-missing\]'
sed '$d' "$traces/good.jsonl" >broke-off.jsonl
cat broke-off.jsonl "$traces/good.jsonl" >in-one.jsonl
expect broke-off 0 "broke-off.jsonl:1: $no_footer" "$tool" check broke-off.jsonl "$traces/good.jsonl"
expect broke-off-cat 0 "in-one.jsonl:1: $no_footer" "$tool" check in-one.jsonl
expect broke-off-stdin 0 "\(stdin\):1: $no_footer" sh -c "'$tool' check - <in-one.jsonl"
sed '1p;s/"header":1/"header":2/' "$traces/good.jsonl" >header-twice.jsonl
expect header-twice 1 "header-twice.jsonl:1: $no_footer
header-twice.jsonl:50: error: counts.header is 2 but the file has 1 \[footer-counts\]" "$tool" check header-twice.jsonl
rm broke-off.jsonl in-one.jsonl header-twice.jsonl

# ---- the form of a line
broken J good 9 json "column [0-9]*: ',' or '}' is expected here" '9s/\{"stream/{{"stream/;9s/\{\{"stream/{"a":1 "stream/'
broken J good 9 json 'column [0-9]*: not a value of JSON \(NaN and Infinity are none\)' '9s/"duration":[0-9.]+/"duration":NaN/'
broken J good 9 json 'column [0-9]*: text behind the object' '9s/$/ {}/'
broken J good 9 json 'not an object' '9s/.*/[1]/'
broken J good 9 utf8 'column [0-9]*: not UTF-8' '9s/"stream":"0x3/&\xff/'
broken J good 9 key-twice 'column [0-9]*: a key occurs twice in this object' '9s/"rank":0/"rank":0,"rank":0/'
broken J good 9 key-twice 'column [0-9]*: a key occurs twice in this object' '9s/"rank":0/"rank":0,"r\\u0061nk":0/'
{ head -c 1100000 /dev/zero | tr '\0' ' '; echo; } >long
broken J good 10 line-long 'the line has more than 1 MiB' '9r long'

# ---- the keys of a record
broken S good 43 key-missing "key 'recordType' is missing" '43s/"recordType":"node",//'
broken S good 9 key-missing "key 'rank' is missing" '9s/"rank":0,//'
broken S good 9 key-missing "key 'start.tid' is missing" '9s/,"tid":4711//'
broken S good 9 key-missing "key 'details.stream' is missing" '9s/"stream":"0x3b35350"//'
broken S good 9 key-missing "key 'commHash' is missing from an event that is not PXN" '9s/"commHash":"0x[0-9a-f]*",//'
broken S good 9 key-missing "key 'ctx' is missing from an event that is not PXN" '9s/"ctx":"0x[0-9a-f]*",//'
broken S good 9 key-missing "key 'eventAddr' is missing from an event" '9s/"eventAddr":"0x[0-9a-f]*",//'
broken S good 46 key-missing "key 'lastState' is missing from an unfinished event" '46s/,"lastState":""//'
broken S good 14 key-missing "keys 'repeats' and 'lastTs' go together, one is missing" '14s/,"repeats":7//'
broken S pxn 4 key-missing "key 'originPid' is missing from a PXN event" '4s/"originPid":4711,//'
broken S good 9 key-excess "key 'exec' does not belong to an event that is no Coll or P2p" '9s/\}$/,"exec":{"stop":9000000000000.000,"duration":0.000,"source":"enqueue"}}/'
broken S good 9 key-excess "key 'originPid' does not belong to an event that is not PXN" '9s/\}$/,"originPid":4711}/'
broken S pxn 4 key-excess "key 'ctx' does not belong to a PXN event" '4s/\}$/,"ctx":"0x1"}/'
broken S pxn 4 pxn-keys 'a PXN event has gpuUuid "", commId 0 and rank -1, not those of a communicator' '4s/"rank":-1/"rank":1/'
broken S good 9 unfinished 'an event that is not unfinished has neither stop nor duration null' '9s/"duration":[0-9.]+/"duration":null/'
broken S good 46 key-excess "key 'silent' does not belong to what is no ProxyOp, or has stopped or a state" '46s/"lastState":""/"lastState":"ProxyOpInProgress","silent":true/'
broken S good 46 unfinished 'an unfinished event has stop and duration null' '46s/"duration":null/"duration":1.000/'
broken S good 9 key-value "key 'commId' is -1, not an unsigned 64-bit integer" '9s/"commId":[0-9]+/"commId":-1/'
broken S good 9 key-value "key 'commId' is 18446744073709551616, not an unsigned 64-bit integer" '9s/"commId":[0-9]+/"commId":18446744073709551616/'
broken S good 9 key-value "key 'rank' is \"0\", not a rank .*" '9s/"rank":0/"rank":"0"/'
broken S good 9 key-value "key 'type' is \"ncclProfileX\", not an event type of NCCL" '9s/ncclProfileKernelLaunch/ncclProfileX/'
broken S good 9 key-value "key 'gpuUuid' is \"ffffffd4[^\"]*\", not a UUID of 36 characters, or empty" '9s/"gpuUuid":"[^"]*"/"gpuUuid":"ffffffd4ffffffecffffffd1ffffffb7-637"/'
broken S good 9 key-value "key 'eventAddr' is \"0x0\", not an id .*" '9s/"eventAddr":"[^"]*"/"eventAddr":"0x0"/'
broken S good 9 key-value "key 'eventAddr' is \"0x2A\", not an id .*" '9s/"eventAddr":"[^"]*"/"eventAddr":"0x2A"/'
broken S good 9 key-value "key 'details.stream' is \"0x\", not an id .* or \"null\"" '9s/"stream":"[^"]*"/"stream":"0x"/'
broken S good 9 key-value "key 'details' is an array, not an object" '9s/"details":\{[^}]*\}/"details":[]/'
broken S good 2 key-value "key 'details.noKernelCh' is \"x\", not .*" '2s/("ncclApi":[0-9])/\1,"noKernelCh":"x"/'
broken S good 47 key-value "key 'func' is \"Finalize\", not \"ProfilerInit\" or \"ProfilerFinalize\"" '47s/ProfilerFinalize/Finalize/'
broken S good 17 key-value "key 'sched.behind.us' is \"x\", not a time .*" '17s/"us":4.000/"us":"x"/'
broken S good 17 key-value "key 'sched.cpus' is 3, not an array" '17s/"cpus":\[3\]/"cpus":3/'
broken S good 17 key-value "key 'net.flow' is \"10.0.0.7>10.0.0.8:1\", not a flow .*" '17s/"flow":"[^"]*"/"flow":"10.0.0.7>10.0.0.8:1"/'
broken S good 35 key-value "key 'exec.source' is \"guess\", not \"proxy\" or \"kernel\" or \"enqueue\"" '35s/"source":"proxy"/"source":"guess"/'
broken S good 46 key-value "key 'lastState' is \"X\", not the name of an NCCL state, or empty" '46s/"lastState":""/"lastState":"X"/'
broken S good 1 key-value "key 'schema' is 2, not 1, .*" '1s/"schema":1/"schema":2/'
broken S good 1 key-value "key 'bootId' is \"1111\", not a UUID of 36 characters" '1s/"bootId":"[^"]*"/"bootId":"1111"/'
broken S good 1 key-value "key 'startTime' is -1.000, not a time .*" '1s/"startTime":[0-9.]+/"startTime":-1.000/'
broken S good 1 key-value "key 'launcher.RANK' is 0, not a string" '1s/"RANK":"0"/"RANK":0/'
broken S good 1 key-value "key 'clock.source' is \"hpet\", not .*" '1s/"source":"tsc"/"source":"hpet"/'
broken S good 49 key-value "key 'end' is \"signal\", not an end .*" '49s/"end":"exit"/"end":"signal"/'
broken S good 49 key-value "key 'counts.flow' is null, not an unsigned 64-bit integer" '49s/"flow":1/"flow":null/'
broken S sched 12 key-missing "key 'interval' is missing" '12s/"interval":50.000,//'
broken S sched 12 key-missing "key 'cpus.cpu' is missing" '12s/"cpu":1\}/"busy":1.000}/'
broken S sched 12 key-missing "key 'throttled.time' is missing" '12s/"time":3.000,//'
broken S sched 12 key-value "key 'psi.io.full' is true, not a time .*" '12s/"full":0.500/"full":true/'
broken S sched 11 key-missing "key 'sched.app.threads' is missing" '11s/"app":\{"threads":1,/"app":{/'
broken S sched 11 key-missing "key 'span' is missing from the sched of a Coll or P2p" '11s/"span":67.000,//'
broken S sched 9 key-excess "key 'span' does not belong to the sched of one thread" '9s/"blocked":3.000/&,"span":1.000/'
broken S sched 9 key-excess "key 'app' does not belong to the sched of one thread" '9s/"blocked":3.000/&,"app":{"threads":1,"span":1.000,"onCpu":1.000,"runq":0.000,"blocked":0.000}/'
broken S sched 9 key-excess "key 'before' does not belong to the sched of one thread" '9s/"blocked":3.000/&,"before":{"threads":1,"span":1.000,"onCpu":1.000,"runq":0.000,"blocked":0.000}/'
broken S sched 9 key-excess "key 'state' does not belong to the sched of an event that is not unfinished" '9s/"blocked":3.000/&,"state":"run"/'
broken S sched 15 key-excess "key 'why' does not belong to the sched of a thread that is not blocked" '15s/"state":"run"/&,"why":"poll"/'
broken S sched 15 key-value "key 'sched.state' is \"sleep\", not \"run\" or \"runq\" or \"blocked\"" '15s/"state":"run"/"state":"sleep"/'
for key in since stop onCpu runq blocked; do
	broken S sched 16 key-missing "key '$key' is missing from a thread record with what the kernel did" "16s/\"$key\":[0-9.]+,//"
done
broken S sched 16 key-excess "key 'why' does not belong to a thread that is not blocked at its end" '16s/\}$/,"state":"runq","why":"poll"}/'
broken S sched 17 key-excess "key 'why' does not belong to a thread record without a state" '17s/\}$/,"why":"poll"}/'
broken S sched 17 key-missing "key '.*' is missing from a thread record with what the kernel did.*" '17s/\}$/,"since":9050.000,"onCpu":1.000,"runq":0.000}/'
broken S sched 16 key-excess "key 'file' does not belong to a thread that is not blocked at its end" '16s/\}$/,"state":"runq","file":"a"}/'
broken S sched 17 key-excess "key 'fs' does not belong to a thread record without a state" '17s/\}$/,"fs":"nfs4"}/'
broken S sched 16 key-excess "key 'stack' does not belong to a thread that is not blocked at its end" '16s/\}$/,"state":"runq","stack":["a"]}/'
broken S sched 17 key-excess "key 'stack' does not belong to a thread record without a state" '17s/\}$/,"stack":["a"]}/'
broken S sched 4 key-excess "key 'stack' does not belong to a slice that is not blocked" '4s/\}$/,"stack":["a"]}/'
broken S sched 7 key-value "key 'stack' is \"futex_wait\", not an array" '7s/"stack":\[[^]]*\]/"stack":"futex_wait"/'
broken S sched 17 key-excess "key 'stateSince' does not belong to a thread record without a state" '17s/\}$/,"stateSince":9050.000}/'
broken S sched 16 key-excess "key 'stateSince' does not belong to a thread record without a state" '16s/\}$/,"stateSince":9050.000}/'
broken S sched 4 key-excess "key 'why' does not belong to a slice that is not blocked" '4s/\}$/,"why":"poll"}/'
broken S sched 4 key-excess "key 'behind' does not belong to a slice that is not runq" '4s/\}$/,"behind":{"comm":"x","pid":1}}/'
broken S sched 4 key-excess "key 'throttled' does not belong to a slice that is not runq" '4s/\}$/,"throttled":0.000}/'
broken S sched 7 key-excess "key 'preempted' does not belong to a slice that is not runq" '7s/\}$/,"preempted":true}/'
broken S sched 6 key-excess "key 'wokenBy' does not belong to a slice that is not blocked" '6s/\}$/,"wokenBy":{"comm":"x","pid":1}}/'
broken S sched 4 key-excess "key 'file' does not belong to a slice that is not blocked" '4s/\}$/,"file":"a"}/'
broken S sched 4 key-excess "key 'fs' does not belong to a slice that is not blocked" '4s/\}$/,"fs":"nfs4"}/'
broken S sched 7 key-missing "key 'wokenBy.pid' is missing" '7s/,"pid":99//'
broken S sched 9 key-missing "key 'sched.files.fs' is missing" '9s/"blocked":3.000/&,"files":[{"file":"a","us":1.000}]/'
broken S sched 9 key-missing "key 'sched.wokenBy.comm' is missing" '9s/"blocked":3.000/&,"wokenBy":[{"pid":1,"us":1.000}]/'
broken S sched 6 key-excess "key 'irq' does not belong to a slice that is not run" '6s/\}$/,"irq":0.000}/'
broken S sched 7 key-excess "key 'cpu' does not belong to a slice that is blocked" '7s/\}$/,"cpu":1}/'
broken S sched 6 key-value "key 'preempted' is false, not true .*" '6s/"preempted":true/"preempted":false/'
broken S orphans 2 key-value "key 'cause' is \"bad luck\", not .*" '2,3d;5d;4s/ring-full/bad luck/;6s/"event":1,"state":1,"lost":2/"lost":1/;6s/,"orphan":2//'
for flow in 10.0.0:1 1.2.3.4.5:1 1.2.3.:1 1234.1.1.1:1 ::1:1 '[::1]' '[::1]:' '[::1]:123456' '[FE80::1]:1' '[]:1' host:1 1.2.3.4:; do
	broken S net 11 key-value "key 'flow' is .*, not a flow .*" "11s/10.0.0.7:41230>/$flow>/"
	broken S net 11 key-value "key 'flow' is .*, not a flow .*" "11s/>10.0.0.8:50021/>$flow/"
done
broken S net 1 key-value "key 'features.net' is true, not \"sockets\" or \"functions\"" '1s/"net":"sockets"/"net":true/'
broken S net 13 key-value "key 'net.rdma.counters.port_xmit_wait' is 3.5, not an unsigned 64-bit integer" '13s/"port_xmit_wait":3/"port_xmit_wait":3.5/'
broken S net 23 key-value "key 'rdma' is .*, not an array" '23s/"rdma":\[(.*)\]\}/"rdma":\1}/'
broken S net 20 key-value "key 'why' is \"close\", not \"open\" or .*" '20s/"why":"use"/"why":"close"/'
broken S net 11 key-value "key 'dir' is \"in\", not \"rx\" or \"tx\"" '11s/"dir":"tx"/"dir":"in"/'
for key in why tcp txBytes rxBytes retrans rxOoo lost dsack; do
	broken S net 25 key-missing "key '$key' is missing" "25s/\"$key\":(\\{[^}]*\\}|[^,}]*),?//;25s/,\\}/}/"
done
for key in n dir; do
	broken S net 12 key-missing "key '$key' is missing" "12s/,\"$key\":[^,}]*//"
done
broken S net 8 key-missing "key 'net.peer.pid' is missing" '8s/"pid":4720,//'
broken S net 23 key-missing "key 'softnet.timeSqueeze' is missing" '23s/"timeSqueeze":2,//'
broken S net 23 key-missing "key 'netdev.name' is missing" '23s/"name":"lo"//'
broken S net 15 key-missing "key 'net.rdma.counters' is missing" '15s/,"counters":\{[^}]*\}//'
for key in txBytes rxBytes retrans rxOoo; do
	broken S net 10 key-missing "key '$key' is missing from net" "10s/,\"$key\":[0-9]+//"
done
broken S net 10 key-missing "key 'flow' is missing from the net of a ProxyOp or ProxyStep" '10s/"flow":"[^"]*",//'
broken S net 17 key-missing "key 'flows' is missing from the net of a Coll or P2p" '17s/"flows":.*"nFlows":3,//'
broken S net 17 key-missing "keys 'flows' and 'nFlows' go together, one is missing" '17s/"nFlows":3,//'
broken S net 14 key-missing "keys 'flows' and 'nFlows' go together, one is missing" '14s/"flows":.*"nFlows"/"nFlows"/'
broken S net 24 key-missing "key 'end' is missing from the last record of a flow" '24s/"end":true,//'
broken S net 20 key-excess "key 'end' does not belong to a flow record that is not the last" '20s/"why":"use"/&,"end":true/'
broken S net 19 key-excess "key 'net' does not belong to an event that is no Coll, P2p, ProxyOp or ProxyStep" '19s/"details":\{\}/&,"net":{"rdma":[]}/'
for key in rtt rttMin cwnd; do
	broken S net 17 key-excess "key '$key' does not belong to the net of a Coll or P2p" "17s/\"noData\":19.000/\"$key\":19.000/;s/\"cwnd\":19.000/\"cwnd\":19/"
done
broken S net 17 key-excess "key 'flow' does not belong to the net of a Coll or P2p" '17s/"flows":\["([^"]*)"/"flow":"\1",&/'
broken S net 17 key-excess "key 'peer' does not belong to the net of a Coll or P2p" '17s/"noData":19.000/"peer":{"pid":1,"retrans":0}/'
broken S net 9 key-excess "key 'flows' does not belong to the net of a ProxyStep" '9s/"net":\{"flow":("[^"]*")/&,"flows":[\1,"10.0.0.7:41230>10.0.0.8:50021"],"nFlows":2/'
broken S net 9 key-excess "key 'rdma' does not belong to the net of a ProxyStep" '9s/"noData":19.000/&,"rdma":[]/'
broken S net 8 key-excess "key 'noData' does not belong to the net of a send" '8s/"noRoom":3.500/"noData":3.500/'
broken S net 14 key-excess "key 'noRoom' does not belong to the net of a receive" '14s/"noData":19.000/"noRoom":19.000/'
broken R net 23:warning key-unknown "key 'netdev.rxBytes' is none of schema 1" '23s/"rxErrors"/"rxBytes"/'
# what a schema cannot see: the digits of a number
broken J good 9 key-value "key 'start.ts' is 8993953423005.0, not a time .*" '9s/"ts":8993953423005.000/"ts":8993953423005.0/'
broken J good 9 key-value "key 'duration' is 1.0000, not a time .*" '9s/"duration":[0-9.]+/"duration":1.0000/'
broken J good 9 key-value "key 'duration' is 1e3, not a time .*" '9s/"duration":[0-9.]+/"duration":1e3/'
broken J good 9 key-value "key 'rank' is 0.0, not a rank .*" '9s/"rank":0/"rank":0.0/'
broken S signals 6 key-missing "key 'code' is missing" '6s/,"code":128//'
broken S signals 5 key-missing "key 'from.uid' is missing" '5s/,"uid":1000//'
broken S signals 5 key-value "key 'nr' is \"6\", not .*" '5s/"nr":6/"nr":"6"/'
broken S signals 4 key-value "key 'handled' is false, not true .*" '4s/"handled":true/"handled":false/'
broken S signals 10 key-value "key 'oom' is false, not true .*" '10s/"oom":true/"oom":false/'
broken S signals 8 key-missing "key 'text' is missing" '8s/,"text":"[^"]*"//'
broken S signals 7 key-value "key 'before' is false, not true .*" '7s/"before":true/"before":false/'
broken S signals 9 key-missing "key 'gpuUuid' is missing" '9s/"gpuUuid":"[^"]*",//'
broken S signals 9 key-value "key 'gpuUuid' is \"82FF.*\", not .*" '9s/"82ff/"82FF/'
broken J signals 9 key-value "key 'held.hwPowerBrakeSlowdown' is 840100, not .*" '9s/840100.000/840100/'
broken S signals 9 key-value "key 'errors.pcieReplay' is -5, not .*" '9s/"pcieReplay":5/"pcieReplay":-5/'
broken R signals 9:warning key-unknown "key 'held.applicationsClocks' is none of schema 1" '9s/"held":\{/"held":{"applicationsClocks":1.000,/'
broken R signals 10 footer-counts 'counts.signal is 4 but the file has 5' '10s/"signal":5/"signal":4/'
broken S good 12 state-name 'state 19 is ProxyOpInProgress in NCCL, not KernelChStop' '12s/ProxyOpInProgress/KernelChStop/'
broken S good 12 state-name 'NCCL has no state 32' '12s/"id":19/"id":32/'
broken S good 43 type-key "only events may have a key 'type', a node record has one" '43s/"ts"/"type":"x","ts"/'
broken R good 9:warning key-unknown "key 'details.strem' is none of schema 1" '9s/"stream"/"strem":1,"stream"/'
broken R good 9:warning key-unknown "key '\\\\x1b\[2Jx' is none of schema 1" '9s/"rank"/"\\u001b[2Jx":1,"rank"/'
broken R good 43:warning kind-unknown "record kind 'nodes' is none of schema 1" '43s/"node"/"nodes"/;49s/"node":1,//'

# ---- one record against itself and its process
broken R good 9 time-order 'stop 8993953423004.999 is before start 8993953423005.000' '9s/23006.000/23004.999/'
broken R good 9 duration 'duration is 1.002 but stop - start is 1.000' '9s/"duration":1.000/"duration":1.002/'
broken R good 48 time-order 'stop 1.000 is before start 8993953423010.000' '48s/"stop":[0-9.]+/"stop":1.000/'
broken R sched 16 time-order 'stop 9055.000 is before since 9055.001' '16s/"since":[0-9.]+/"since":9055.001/'
broken R good 9 comm-hash 'commHash 0xc00000000000[0-9a-f]* is not commId 7 \(0x7\)' '9s/"commId":[0-9]+/"commId":7/'
broken R good 9 rank 'rank is -1 but the communicator is known' '9s/"rank":0/"rank":-1/'
broken R good 9 pid 'myPid is 4712 in the file of process 4711' '9s/"myPid":4711/"myPid":4712/'
broken R good 9 pid 'start.pid is not that of process 4711' '9s/"pid":4711/"pid":4712/'
broken R good 12 pid 'pid is 4712 in the file of process 4711' '12s/"pid":4711/"pid":4712/'
broken R good 36 exec-order 'exec.stop 8993953423008.000 is before start 8993953423008.250' '36s/"exec":\{"stop":8993953423008.500/"exec":{"stop":8993953423008.000/'
broken R good 36 exec-duration 'exec.duration is 0.350 but exec.stop - start is 0.250' '36s/"duration":0.250,"source"/"duration":0.350,"source"/'
broken R good 36 exec-enqueue 'exec.source is enqueue but exec.stop is not stop' '36s/"exec":\{"stop":8993953423008.500,"duration":0.250/"exec":{"stop":8993953423008.600,"duration":0.350/'
broken R good 34 gpu-order 'gpuStop 8993953423004.000 is before gpuStart 8993953423004.500' '34s/"gpuStop":[0-9.]*/"gpuStop":8993953423004.000/'
broken R good 34 gpu-order 'gpuStop 8993953423044.501 is after stop 8993953423044.500' '34s/"gpuStop":[0-9.]*/"gpuStop":8993953423044.501/'
broken R good 34 key-missing "keys 'gpuStart', 'gpuStop' and 'gpuError' go together, one is missing" '34s/,"gpuError":2.250//'
broken R good 1 clock 'clock.source is tsc but clock.tscHz is missing' '1s/"tscHz":2100000000,//'
broken R good 45 clock 'clock record of 8993953000000.999 after one of 8993953000001.000' '45s/"ts":[0-9.]+/"ts":8993953000000.999/'
broken R pxn 6 pxn-origin 'originPid 4710 is not details.eventPid' '6s/"originPid":4799/"originPid":4710/'
broken R good 14 state-repeats 'lastTs 8993953423021.999 is before ts 8993953423022.000' '14s/"lastTs":8993953423022.500/"lastTs":8993953423021.999/'
broken R good 14 state-repeats 'repeats is 0: leave it out' '14s/"repeats":7/"repeats":0/'
broken R orphans 2 time-order 'to 8993953423029.000 is before from 8993953423029.001' '4s/"from":8993953423025.000/"from":8993953423029.001/;2,3d;5d;6s/"event":1,"state":1,"lost":2/"lost":1/;6s/,"orphan":2//'

# ---- what the kernel did to the threads
parts='onCpu \+ runq \+ blocked \+ unknown'
broken R good 17 sched-sum "sched.$parts is 9.001, duration is 8.000" '17s/"runq":4.000/"runq":5.001/'
broken R good 17 sched-sum "sched.$parts is 6.999, duration is 8.000" '17s/"onCpu":3.000/"onCpu":1.999/'
broken R sched 8 sched-sum "sched.$parts is 38.999, duration is 40.000" '8s/,"unknown":1.000//;8s/"onCpu":30.000/"onCpu":29.999/'
broken R sched 10 sched-sum "sched.$parts is 21.001, duration is 20.000" '10s/"unknown":2.000/"unknown":3.001/'
broken R sched 11 sched-sum "sched.app.$parts is 25.700, span is 27.000" '11s/"onCpu":30.000/"onCpu":29.600/;11s/"onCpu":20.000/"onCpu":18.700/;11s/"onCpu":10.000/"onCpu":10.900/'
broken R sched 11 sched-sum "sched.before.$parts is 10.001, span is 9.000" '11s/"blocked":4.000,"irq":0.250/"blocked":5.001,"irq":0.250/'
broken R sched 11 sched-sum "sched.$parts is 65.400, span is 67.000" '11s/"onCpu":30.000/"onCpu":28.400/;11s/"onCpu":20.000/"onCpu":19.200/;11s/"onCpu":10.000/"onCpu":9.200/'
broken R sched 16 sched-sum "$parts is 48.999, stop - since is 50.000" '16s/"unknown":2.000/"unknown":0.999/'
broken R good 17 sched-part 'sched.onCpu is 8.001, duration only 8.000' '17s/"onCpu":3.000,"runq":4.000,"blocked":1.000/"onCpu":8.001,"runq":0.000,"blocked":0.000/;17s/,"behind".*\}\]\},"net/},"net/'
broken R sched 9 sched-part 'sched.blocked is 20.001, duration only 20.000' '9s/"onCpu":5.000,"runq":12.000,"blocked":3.000/"onCpu":0.000,"runq":0.000,"blocked":20.001/'
broken R sched 16 sched-part 'unknown is 50.001, stop - since only 50.000' '16s/"unknown":2.000/"unknown":50.001/'
broken R good 17 sched-irq 'sched.irq is more than sched.onCpu' '17s/"irq":0.500/"irq":3.001/'
broken R sched 11 sched-irq 'sched.proxy.irq is more than sched.proxy.onCpu' '11s/"irq":1.500/"irq":10.501/;11s/"irq":1.000/"irq":10.001/'
broken R sched 11 sched-irq 'sched.before.irq is more than sched.before.onCpu' '11s/"irq":0.250/"irq":2.001/'
broken R sched 16 sched-irq 'irq is more than onCpu' '16s/"irq":1.000/"irq":20.001/'
broken R sched 15 sched-irq 'sched.irq is more than sched.onCpu' '15s/"onCpu":7.000/"onCpu":7.000,"irq":7.001/'
broken R sched 4 sched-irq 'irq is more than dur' '4s/"irq":1.000/"irq":5.001/'
broken R good 17 sched-throttled 'sched.throttled is more than sched.runq' '17s/"irq"/"throttled":4.001,"irq"/'
broken R sched 6 sched-throttled 'throttled is more than dur' '6s/"throttled":1.000/"throttled":4.001/'
broken R good 17 sched-behind 'sched.behind is 4.001 together, sched.runq only 4.000' '17s/"us":4.000/"us":4.001/'
broken R sched 11 sched-behind 'sched.app.behind is 2.001 together, sched.app.runq only 2.000' '11s/"us":1.500/"us":2.001/'
broken R sched 11 sched-behind 'sched.before.behind is 3.001 together, sched.before.runq only 3.000' '11s/"us":2.000\}\],"blockedIn":\[\{"why":"read/"us":3.001}],"blockedIn":[{"why":"read/'
broken R good 17 sched-blocked 'sched.blockedIn is 1.001 together, sched.blocked only 1.000' '17s/"us":1.000/"us":1.001/'
broken R sched 9 sched-blocked 'sched.wokenBy is 3.001 together, sched.blocked only 3.000' '9s/"blocked":3.000/&,"wokenBy":[{"comm":"x","pid":1,"us":3.001}]/'
broken R sched 9 sched-blocked 'sched.files is 3.001 together, sched.blocked only 3.000' '9s/"blocked":3.000/&,"files":[{"file":"a","fs":"","us":2.000},{"file":"b","fs":"","us":1.001}]/'
broken R sched 9 sched-list 'sched.files is not in order, most first' '9s/"blocked":3.000/&,"files":[{"file":"a","fs":"","us":1.000},{"file":"b","fs":"","us":1.001}]/'
broken R sched 10 sched-list 'sched.behind is not in order, most first' '10s/"us":2.000/"us":3.001/'
broken R sched 11 sched-list 'sched.proxy.blockedIn is not in order, most first' '11s/"us":1.000\}\]\}/"us":1.000},{"why":"x","us":1.001}]}/;11s/"us":3.000\},\{"why":"pagefault","us":1.000\},/"us":1.000},{"why":"pagefault","us":1.000},/'
broken S sched 10 sched-list 'sched.behind has more than 4 entries' '10s/"us":1.000\}\],"blockedIn/"us":1.000},{"comm":"","pid":0,"us":0.000}],"blockedIn/'
broken R sched 11 sched-span 'sched.app.span is 27.001, of 1 threads and an exec.duration of 27.000' '11s/"span":67.000/"span":67.001/;11s/"span":27.000/"span":27.001/'
broken R sched 11 sched-span 'sched.proxy.span is 40.000, of 1 threads and an exec.duration of 27.000' '11s/"threads":2/"threads":1/'
broken R sched 11 sched-span 'sched.proxy.span is 40.000, of 0 threads and an exec.duration of 27.000' '11s/"threads":2/"threads":0/'
broken R sched 11 sched-total 'sched.span is 67.001, app and proxy have 67.000' '11s/"span":67.000/"span":67.001/'
broken R sched 11 sched-total 'sched.irq is 1.501, app and proxy have 1.500' '11s/"irq":1.500/"irq":1.501/'
broken R sched 11 sched-total 'sched.switches is 12, app and proxy have 11' '11s/"switches":9/"switches":8/'
broken R sched 11 sched-total 'sched.cpus are not those of app and proxy' '11s/"cpus":\[0,1,2\]/"cpus":[0,1]/'
broken R sched 14 sched-total 'sched.throttled is 0.000, app and proxy have 0.001' '14s/"runq":0.000,"blocked":8.000\}/"runq":0.001,"blocked":8.000,"throttled":0.001}/;14s/"runq":0.000,"blocked":8.000,"span/"runq":0.001,"blocked":8.000,"span/'
broken R sched 6 slice-order 'slice of thread 5755 at 9009.999 comes after one at 9010.000 \(line 4\)' '6s/"ts":9015.000,"dur":4.000/"ts":9009.999,"dur":0.001/;6s/"throttled":1.000,//'
broken R sched 6 slice-overlap 'slice of thread 5755 at 9014.999 begins before the last one ends, at 9015.000 \(line 4\)' '6s/"ts":9015.000/"ts":9014.999/'
# to the microsecond
for ns in 2.000 4.000; do
	sed "17s/\"onCpu\":3.000/\"onCpu\":$ns/" "$traces/good.jsonl" >sum.jsonl
	expect "1 us off, onCpu $ns" 0 '' "$tool" check sum.jsonl
done
# slices of another thread, of one without hostTid too, say nothing of this one
sed -E '5s/"tid":4715/"tid":5755/;5s/9008.000/9016.000/' "$traces/sched.jsonl" >slices.jsonl
expect 'slices of two tids' 1 'slices.jsonl:6: error: slice of thread 5755 at 9015.000 comes after [^[]*\[slice-order\]' "$tool" check slices.jsonl
# many threads, and many slices
{
	head -3 "$traces/sched.jsonl"
	awk 'BEGIN {
		for (i = 0; i < 60000; i++)
			printf "{\"recordType\":\"slice\",\"tid\":%d,\"state\":\"run\",\"ts\":%d.000,\"dur\":1.000}\n", i % 20000 * 64, i
	}'
} >slices.jsonl
expect 'many slices' 0 'slices.jsonl:1: warning: .*\[footer-missing\]' "$tool" check slices.jsonl

# ---- what the network did
broken R net 8 net-bounds 'net.sndbufLimited is 4.000 and net.rwndLimited 16.003, net.busy only 20.000' '8s/"rwndLimited":12.000/"rwndLimited":16.003/'
broken R net 17 net-bounds 'net.sndbufLimited is 4.000 and net.rwndLimited 41.003, net.busy only 45.000' '17s/"rwndLimited":41.000/"rwndLimited":41.003/'
broken R net 17 net-bounds 'net.sndbufLimited is 4.000 and net.rwndLimited 41.000, net.busy only 0.000' '17s/"busy":45.000,//'
broken R net 20 net-bounds 'sndbufLimited is 4.003 and rwndLimited 4.000, busy only 8.000' '20s/"sndbufLimited":4.000/"sndbufLimited":4.003/g;24s/"sndbufLimited":4.000/"sndbufLimited":4.003/;24s/8.000,"rwnd/9.000,"rwnd/;24s/"busy":0.000/"busy":1.000/'
broken R net 8 net-bounds 'net.busy is 20.003, duration only 20.000' '8s/"busy":20.000/"busy":20.003/'
broken R net 13 net-bounds 'net.busy is 21.003, duration only 21.000' '13s/"busy":21.000/"busy":21.003/'
broken R net 9 net-bounds 'net.noData is 19.003, duration only 19.000' '9s/"noData":19.000/"noData":19.003/'
broken R net 8 net-bounds 'net.noRoom is 20.003, duration only 20.000' '8s/"noRoom":3.500/"noRoom":20.003/'
broken R net 8 net-softirq 'net.softirqRx is 2.501, sched.irq only 2.500' '8s/"softirqRx":2.500/"softirqRx":2.501/'
broken R net 8 net-drops 'net.drops is not in order, most first' '8s/"n":1/"n":3/'
broken R net 17 net-drops 'net.drops has an entry with n 0' '17s/"n":1/"n":0/'
broken S net 17 net-drops 'net.drops has more than 4 entries' '17s/"n":1\}/&,{"reason":"A","n":1},{"reason":"B","n":1},{"reason":"C","n":1}/'
broken R net 17 net-flows 'net.flows has 3 entries, nFlows is 2' '17s/"nFlows":3/"nFlows":2/'
broken R net 17 net-flows 'net.flows has 3 entries, nFlows is 5' '17s/"nFlows":3/"nFlows":5/'
broken S net 19 net-flows 'net.flows has more than 4 entries, nFlows is 5' '17s/"nFlows":3/"nFlows":5/;17s/"flows":\[/&"10.0.0.7:1>10.0.0.8:1","10.0.0.7:2>10.0.0.8:2",/;4{p;s/7:41230>10.0.0.8:50021/7:1>10.0.0.8:1/;s/"why":"open"/"why":"detached","end":true/;p;s/7:1>10.0.0.8:1/7:2>10.0.0.8:2/};30s/"flow":13/"flow":15/'
broken R net 17 net-flows 'net.flows has 10.0.0.7:41230>10.0.0.8:50021 twice' '17s/\[2001:db8::7\]:50022>\[2001:db8::8\]:41231/10.0.0.7:41230>10.0.0.8:50021/'
broken R net 14 net-flows 'net.flow is not the first of two or more flows' '14s/"flow":"([^"]*)1"/"flow":"\12"/'
broken R net 13 net-flows 'net.flow is not the first of two or more flows' '13s/"flow":("[^"]*")/&,"flows":[\1],"nFlows":1/'
broken R net 10 net-flow '10.0.0.7:9>10.0.0.8:9 has no flow record in the file' '10s/"flow":"[^"]*"/"flow":"10.0.0.7:9>10.0.0.8:9"/'
broken R net 12 net-flow '\[::1\]:9>\[::1\]:9 has no flow record in the file' '12s/"flow":"[^"]*"/"flow":"[::1]:9>[::1]:9"/'
broken R net 17 net-flow '10.0.0.7:9>10.0.0.8:9 has no flow record in the file' '17s/"flows":\[/&"10.0.0.7:9>10.0.0.8:9",/;17s/"nFlows":3/"nFlows":7/'
broken R net 17 net-sum 'net.txBytes of ncclProfileColl 0x2f0000000011 is 4103, its children have 4104' '17s/"txBytes":4104/"txBytes":4103/'
broken R net 14 net-sum 'net.rxBytes of ncclProfileProxyOp 0x2f0000000021 is 3999, its children have 4000' '14s/"rxBytes":4000/"rxBytes":3999/;17s/"rxBytes":4000/"rxBytes":3999/'
broken R net 20 flow-total 'txBytes is 4604, it was 4605 in line 4' '4s/"txBytes":0/"txBytes":4605/'
broken R net 21 flow-total 'busy is 4000.000, it was 4000.001 in line 5' '5s/"busy":4000.000/"busy":4000.001/'
broken R net 28 flow-total 'retrans is 8, it was 9 in line 22' '28s/"retrans":9/"retrans":8/'
broken R net 20 flow-delta 'delta.txBytes is 4603, since line 4 it grew by 4604' '20s/"txBytes":4604,"rxBytes":0,"retrans":2,"rxOoo":0,"lost":1,"dsack":1,"busy":8.000,"rwndLimited":4.000,"sndbufLimited":4.000,"bytesAcked":4604/"txBytes":4603,"rxBytes":0,"retrans":2,"rxOoo":0,"lost":1,"dsack":1,"busy":8.000,"rwndLimited":4.000,"sndbufLimited":4.000,"bytesAcked":4604/'
broken R net 29 flow-delta 'delta.busy is 0.999, since line 25 it grew by 1.000' '29s/"delta":(.*)"busy":1.000/"delta":\1"busy":0.999/'
broken R net 21 flow-delta 'delta.rxOoo is missing' '21s/"delta":(.*)"rxOoo":5,/"delta":\1/'
broken R net 28 flow-delta 'delta.busy is of no counter in both records' '28s/"dsack":0\}/"dsack":0,"busy":0.000}/'
broken R net 22 flow-delta 'no delta, but 10.0.0.7:41230>10.0.0.8:50021 has a record in line 7' '22s/,"delta":.*/}/'
broken R net 5 flow-delta 'a delta in the first record of \[2001:db8::7\]:50022>\[2001:db8::8\]:41231' '5s/\}$/,"delta":{"txBytes":0}}/'
broken R net 21 flow-order 'flow record at 9005.999 comes after one at 9006.000 \(line 5\)' '21s/"ts":9045.000/"ts":9005.999/'
broken R net 20 flow-resent 'resent has 3 segments until now, retrans only 2' '20s/"n":1,"dsack"/"n":2,"dsack"/'
broken R net 20 flow-resent 'resent is not in order of time' '20s/"ts":9018.000/"ts":9012.499/'
broken R net 20 flow-resent 'resent has an entry later than ts' '20s/"ts":9018.000/"ts":9045.001/'
broken R net 20 flow-resent 'resent has an entry with n 0' '20s/"n":1\}/"n":0}/'
broken R net 20 flow-resent 'resent has an entry with more dsack than n' '20s/"dsack":1\}\]/"dsack":2}]/'
broken S net 20 key-missing "key 'resent.n' is missing" '20s/"n":1\}/"dsack":0}/'
broken R net 24 flow-resent 'resent has 3 segments until now, retrans only 2' '24s/"delta"/"resent":[{"ts":9050.000,"n":1}],"delta"/'
broken R net 29 flow-resent 'resent has 1 segments until now, retrans only 0' '29s/"delta"/"resent":[{"ts":9055.000,"n":1}],"delta"/'
broken R net 26 flow-end '\[2001:db8::7\]:50022>\[2001:db8::8\]:41231 has ended in line 21' '21s/"why":"use"/"why":"end","end":true/'
broken R net 25 flow-end '10.0.0.7:41230>10.0.0.8:50021 has ended in line 24' '25s/"why":"open"/"why":"end","end":true/;29d;30s/"flow":13/"flow":12/'
broken R net 27 flow-missing-end '\[2001:db8::7\]:50022>\[2001:db8::8\]:41232 has no last record in a finished file' '27s/"why":"end","end":true/"why":"state"/'
broken R net 30 flow-bytes 'txBytes of all ProxySteps are 4714, of all flows only 4713' '4,28s/"txBytes":4104/"txBytes":4713/;8s/4713/4714/;13s/4713/4714/;17s/4713/4714/;29s/"txBytes":10/"txBytes":9/g'
broken R net 30 flow-bytes 'rxBytes of all ProxySteps are 4217, of all flows only 4216' '9s/"rxBytes":3000/"rxBytes":3217/;14s/4000/4217/;17s/"rxBytes":4000/"rxBytes":4217/'
broken R net 11 drop-none 'a drop record with n 0: leave it out' '11s/"n":2/"n":0/'
# 2 ns more are the kernel's rounding
sed -E '8s/"rwndLimited":12.000/"rwndLimited":16.002/;13s/"busy":21.000/"busy":21.002/' "$traces/net.jsonl" >bounds.jsonl
expect '2 ns off' 0 '' "$tool" check --strict bounds.jsonl
# kernel context that was lost explains what is missing of a flow
lost='{"recordType":"lost","from":1.000,"to":2.000,"n":3,"cause":"context-ring-full"}'
sed -E "27d;10s/\"flow\":\"[^\"]*\"/\"flow\":\"10.0.0.7:9>10.0.0.8:9\"/;2s/^/$lost\\n/
30s/\"flow\":13/\"flow\":12,\"lost\":1/;30s/\"lost\":\{\}/\"lost\":{\"context-ring-full\":3}/" "$traces/net.jsonl" >lossy.jsonl
expect lossy 0 'lossy.jsonl:7: warning: .*:41232 has no last record in a finished file \[flow-missing-end\]
lossy.jsonl:11: warning: 10.0.0.7:9>10.0.0.8:9 has no flow record in the file \[net-flow\]
lossy.jsonl:30: warning: rxBytes of all ProxySteps are 4000, of all flows only 3216 \[flow-bytes\]' "$tool" check lossy.jsonl
# ... also where it comes last
sed -E "7d;30s/^/$lost\\n/;30s/\"flow\":13/\"flow\":12,\"lost\":1/;30s/\"lost\":\{\}/\"lost\":{\"context-ring-full\":3}/" \
	"$traces/net.jsonl" >late.jsonl
expect 'lost record behind' 0 'late.jsonl:21: warning: a delta in the first record of 10.0.0.7:41230>10.0.0.8:50021 \[flow-delta\]' \
	"$tool" check late.jsonl
# ... and a file that goes on owes nothing yet
head -28 lossy.jsonl | grep -v '"lost","from' >on.jsonl
expect 'flows of a running process' 0 'on.jsonl:1: warning: .*\[footer-missing\]' "$tool" check on.jsonl
# many flows
{
	head -1 "$traces/net.jsonl"
	awk 'BEGIN {
		for (i = 0; i < 60000; i++)
			printf "{\"recordType\":\"flow\",\"flow\":\"10.0.%d.%d:%d>10.0.0.1:2\",\"tid\":0,\"ts\":%d.000,\"why\":\"use\",\"tcp\":{\"state\":\"close\"},\"txBytes\":%d,\"rxBytes\":0,\"retrans\":0,\"rxOoo\":0,\"lost\":0,\"dsack\":0%s}\n",
				i / 100 % 200, i % 100, 1 + int(i % 20000 / 200), i, i,
				i < 20000 ? "" : ",\"delta\":{\"txBytes\":20000,\"rxBytes\":0,\"retrans\":0,\"rxOoo\":0,\"lost\":0,\"dsack\":0}"
	}'
} >flows.jsonl
expect 'many flows' 0 'flows.jsonl:1: warning: .*\[footer-missing\]' "$tool" check flows.jsonl

# ---- an event with its states, parent and children
broken R good 12 state-time 'state at 8993953423010.499 is before its event 0x2a0000000020 starts at 8993953423010.500 \(line 22\)' '12s/23011.000/23010.499/'
broken R good 15 state-time 'state at 8993953423028.001 is after its event 0x2a0000000021 stopped at 8993953423028.000 \(line 17\)' '15s/23023.000/23028.001/'
broken R good 14 state-time 'state at 8993953423028.001 is after its event 0x2a0000000021 stopped at 8993953423028.000 \(line 17\)' '14s/"lastTs":8993953423022.500/"lastTs":8993953423028.001/'
broken R good 5 state-type 'ProxyStepSendWait is no state of ncclProfileGroupApi 0x2a0000000010 \(line 37\)' '8s/GroupEndApiStart","id":24/ProxyStepSendWait","id":9/'
broken R good 24 state-type 'ProxyStepSendGPUWait is no state of ncclProfileProxyStep 0x2a0000000041 \(line 27\)' '24s/ProxyStepRecvWait","id":10/ProxyStepSendGPUWait","id":8/'
broken R good 12 state-event 'ProxyOpInProgress belongs to event 0x2a00000000ff, which is not in the file' '12s/0x2a0000000020/0x2a00000000ff/'
broken R good 18 state-late 'ProxyStepSendGPUWait comes after its event 0x2a0000000021 \(line 17\)' '18s/0x2a0000000022/0x2a0000000021/'
broken R good 10 id-twice 'event 0x2a0000000012 was already written in line 9' '10s/0x2a0000000013/0x2a0000000012/;s/,"parentGroup":"0x2a0000000013"//'
broken R good 40 parent-type 'ncclProfileProxyCtrl 0x2a0000000070 has a parent' '40s/"parentObj":"null"/"parentObj":"0x2a0000000010"/'
broken R good 34 parent-type 'ncclProfileKernelCh 0x2a0000000050 has a ncclProfileGroupApi for parent \(0x2a0000000010, line 37\)' '34s/"parentObj":"0x2a0000000014"/"parentObj":"0x2a0000000010"/'
broken R good 35 parent-type 'ncclProfileColl 0x2a0000000014 has a ncclProfileGroup for parent \(0x2a0000000013, line 10\)' '35s/"parentObj":"0x2a0000000011"/"parentObj":"0x2a0000000013"/'
broken R good 35 parent-type 'parentGroup of ncclProfileColl 0x2a0000000014 is a ncclProfileCollApi \(0x2a0000000011, line 6\)' '35s/"parentGroup":"0x2a0000000013"/"parentGroup":"0x2a0000000011"/'
broken R good 34 parent-missing 'ncclProfileKernelCh 0x2a0000000050 has the parent 0x2a0000000015, which is not in the file' '34s/"parentObj":"0x2a0000000014"/"parentObj":"0x2a0000000015"/'
broken R good 35 parent-missing 'ncclProfileColl 0x2a0000000014 has the parentGroup 0x2a0000000015, which is not in the file' '35s/"parentGroup":"0x2a0000000013"/"parentGroup":"0x2a0000000015"/'
broken R good 34 parent-none 'ncclProfileKernelCh 0x2a0000000050 has no parent' '34s/"parentObj":"0x2a0000000014"/"parentObj":"null"/'
broken R good 9:warning parent-none 'ncclProfileKernelLaunch 0x2a0000000012 has no parent' '9s/"parentObj":"0x2a0000000010"/"parentObj":"null"/'
broken R good 34 parent-time 'ncclProfileKernelCh 0x2a0000000050 starts at 8993953423006.000, before its parent at 8993953423007.500 \(line 35\)' '34s/23012.000/23006.000/;34s/"duration":32.500/"duration":38.500/'
broken R good 34 parent-comm 'ncclProfileKernelCh 0x2a0000000050 has commId 7, its parent [0-9]* \(line 35\)' '34s/"commId":[0-9]+,"commHash":"[^"]*"/"commId":7,"commHash":"0x7"/'
broken R good 21 step-range 'step 2 of a ProxyOp of 2 steps \(0x2a0000000020, line 22\)' '21s/"step":1/"step":2/'
broken R good 17 step-time 'ProxyStep 0x2a0000000021 from 8993953423010.499 to 8993953423028.000 is not within its ProxyOp, from 8993953423010.500 to 8993953423050.000 \(line 22\)' '17s/23020.000/23010.499/;17s/"duration":8.000/"duration":17.501/;17s/,"sched":\{[^}]*\}\]?[^}]*\}\]\}//'
broken R good 21 step-time 'ProxyStep 0x2a0000000022 from 8993953423030.000 to 8993953423038.000 is not within its ProxyOp, from 8993953423010.500 to 8993953423037.000 \(line 22\)' '22s/23050.000/23037.000/;22s/"duration":39.500/"duration":26.500/'
broken R good 21 step-op 'channel, peer or isSend differ from those of its ProxyOp \(0x2a0000000020, line 22\)' '21s/"channel":0/"channel":1/'
broken R pxn 4 step-op 'isPxn differs from that of its ProxyOp \(0x2b0000000020, line 5\)' '4s/"commId":0,"rank":-1/"commId":0,"commHash":"0x0","rank":-1/;4s/"originPid":4711,//;4s/"isPxn":true/"ctx":"0x1"/'
broken R good 29 step-count 'ProxyOp 0x2a0000000040 of 2 steps has 3 ProxySteps' '17s/,"sched":.*/}/;17s/"parentObj":"0x2a0000000020"/"parentObj":"0x2a0000000040"/;17s/"isSend":true/"isSend":false/;13,15d;49s/"state":19/"state":16/'
broken R good 35 exec-children 'exec.stop of ncclProfileColl 0x2a0000000014 is 8993953423038.249, but a child stopped at 8993953423038.250' '35s/38.250,"duration":30.750/38.249,"duration":30.749/'
broken R good 35 exec-children 'exec.stop of ncclProfileColl 0x2a0000000014 is 8993953423050.001, but its last child stopped at 8993953423050.000' '35s/38.250,"duration":30.750/50.001,"duration":42.501/'
broken R good 35 exec-children 'exec.stop of ncclProfileColl 0x2a0000000014 is 8993953423038.250, but a child stopped at 8993953423040.305' '35s/"source":"proxy"/"source":"kernel"/'
broken R good 35 exec-source 'exec.source is enqueue but a child of ncclProfileColl 0x2a0000000014 stopped at 8993953423050.000' '35s/"exec":.*/"exec":{"stop":8993953423008.000,"duration":0.500,"source":"enqueue"}}/'
broken R good 36 exec-source 'exec.source is kernel but ncclProfileP2p 0x2a0000000031 has no such child that stopped' '36s/"source":"enqueue"/"source":"kernel"/'

# ---- the file as a whole
broken R good 1 header-first 'a thread record before any header \(traces of minimal_profiler need --compat\)' '1,2d;s/"header":1,"event":19/"event":18/;s/,"parentObj":"0x2a0000000011"(.*)/,"parentObj":"0x2a0000000011"\1/'
broken R good 1:warning footer-missing 'process 4711 has no footer: .*' '1p'
broken R good 1:warning footer-missing 'process 4711 has no footer: .*' '1{p;s/"startTime":8000/"startTime":7000/}'
broken R good 50 footer-last 'a node record after the footer in line 49' '43{h};$G'
broken R good 48 footer-counts 'counts.state is 19 but the file has 18' '12d'
broken R good 49 footer-counts 'counts.drop is 0 but the file has 1' '49s/,"drop":1//'
broken R good 49 footer-lost 'lost.orphan is 1 but the file has 0' '49s/"lost":\{\}/"lost":{"orphan":1}/'
broken R good 49 footer-lost 'lost.rats is no cause' '49s/"lost":\{\}/"lost":{"rats":1}/'
broken R good 1:warning footer-missing 'process 4711 has no footer: .*' '49d'
broken R good 49 lost-none 'a lost record with n 0: leave it out' '48{p};49s/"header":1/"header":1,"lost":1/;48s/.*/{"recordType":"lost","from":1.000,"to":1.000,"n":0,"cause":"orphan"}/'

# ---- what was lost explains what is missing: a warning then
sed -E '34s/"parentObj":"0x2a0000000014"/"parentObj":"0x2a0000000015"/
48{p;s/.*/{"recordType":"lost","from":1.000,"to":2.000,"n":3,"cause":"write-error"}/}
49s/"header":1/"header":1,"lost":1/;49s/"lost":\{\}/"lost":{"write-error":3}/' "$traces/good.jsonl" >gap.jsonl
expect gap 0 'gap.jsonl:34: warning: .* which is not in the file \[parent-missing\]' "$tool" check gap.jsonl
# ... but kernel context that was lost explains none of it
sed 's/write-error/context-ring-full/' gap.jsonl >no-gap.jsonl
expect no-gap 1 'no-gap.jsonl:34: error: .* which is not in the file \[parent-missing\]' "$tool" check no-gap.jsonl
# an operation whose steps are lost, and its own stop is behind the last of them
sed -E '24,31d;48{p;s/.*/{"recordType":"lost","from":1.000,"to":2.000,"n":8,"cause":"write-error"}/}
49s/"header":1/"header":1,"lost":1/;49s/"lost":\{\}/"lost":{"write-error":8}/
49s/"event":19/"event":17/;49s/"state":19/"state":13/' "$traces/good.jsonl" >steps.jsonl
expect lost-steps 0 '' "$tool" check steps.jsonl
sed 's/write-error/context-ring-full/' steps.jsonl >no-steps.jsonl
expect no-steps 1 'no-steps.jsonl:27: error: .* but a child stopped at 8993953423050.000 \[exec-children\]' "$tool" check no-steps.jsonl

# ---- events that are told while they are open
broken S open 7 key-missing "key 'ts' is missing" '7s/"ts":9000001200000.000,//'
for key in eventType age quiet parentObj eventAddr details lastState; do
	broken S open 7 key-missing "key '$key' is missing" "7s/\"$key\":(\\{[^}]*\\}|[^,}]*),//"
done
broken S open 7 type-key "only events may have a key 'type', a open record has one" '7s/"eventType":/"type":"ncclProfileProxyStep",&/'
broken S open 7 key-value "key 'eventType' is \"ProfilerLifecycle\", which is never open" '7s/ncclProfileProxyStep/ProfilerLifecycle/'
broken S open 7 key-missing "key 'details.step' is missing" '7s/"step":0,//'
broken S open 7 key-missing "key 'lastStateTs' is missing from an open event with a state" '7s/,"lastStateTs":[0-9.]+//'
broken S open 6 key-excess "key 'lastStateTs' does not belong to an open event without a state" '6s/"lastState":""/&,"lastStateTs":9000000000095.000/'
broken S open 6 key-missing "key 'openChildren' is missing from an open event of this type" '6s/,"openChildren":1//'
broken S open 7 key-excess "key 'openChildren' does not belong to an open event of this type" '7s/,"more":3/,"openChildren":0/'
broken S open 6 key-excess "key 'stop' does not belong to an open event of this type" '6s/"lastState":""/&,"stop":{"ts":9000000000095.000,"pid":4717,"tid":4720}/'
broken S open 7 key-missing "key 'commHash' is missing from an event that is not PXN" '7s/"commHash":"0x7",//'
broken S open 7 key-missing "key 'ctx' is missing from an event that is not PXN" '7s/"ctx":"[^"]*",//'
broken S open 7 key-excess "key 'originPid' does not belong to an event that is not PXN" '7s/"myPid":4717/&,"originPid":4718/'
broken S open 8 key-missing "key 'originPid' is missing from a PXN event" '8s/"originPid":4718,//'
broken S open 8 pxn-keys 'a PXN event has gpuUuid "", commId 0 and rank -1, not those of a communicator' '8s/"rank":-1/"rank":1/'
broken S open 5 key-missing "key 'span' is missing from the sched of a Coll or P2p" '5s/"span":2399830.000,//'
broken S open 4 key-excess "key 'net' does not belong to an event that is no Coll, P2p, ProxyOp or ProxyStep" '4s/"details":\{[^}]*\}/&,"net":{"rdma":[]}/'
broken S open 6 key-excess "key 'noRoom' does not belong to the net of a receive" '6s/"noData"/"noRoom"/'
broken R open 7 open-age 'age is 1199891.000 but ts - start is 1199890.000' '7s/"age":1199890/"age":1199891/'
broken R open 7 open-early 'age is 1199890.000 and quiet 999999.999: an event is told after a second without movement' '7s/"quiet":1199888.000/"quiet":999999.999/'
broken R open 6 open-early 'age is 900000.000 and quiet 900000.000: an event .*' '6s/"sched".*$/"x":1}/;6s/,"x":1//;6s/"ts":9000001200000/"ts":9000000900090/;6s/"age":1199910/"age":900000/;6s/"quiet":1199888/"quiet":900000/'
broken R open 7 open-quiet 'quiet is 1199891.000, of an age of 1199890.000' '7s/"quiet":1199888/"quiet":1199891/'
broken R open 7 open-quiet 'lastStateTs 9000000000109.000 is not between start and ts' '7s/"lastStateTs":9000000000112/"lastStateTs":9000000000109/'
broken R open 7 open-more 'more is 0: leave it out' '7s/"more":3/"more":0/'
broken R open 7 sched-sum 'sched.onCpu \+ runq \+ blocked \+ unknown is 1199888.000, age is 1199890.000' '7s/"runq":2.000/"runq":0.000/'
broken R open 5 sched-span 'sched.app.span is 1199921.000, of an age of 1199920.000' '5s/"span":1199920.000,"onCpu":10/"span":1199921.000,"onCpu":11/;5s/"span":2399830.000,"onCpu":20/"span":2399831.000,"onCpu":21/'
broken R open 6 net-bounds '.*' '6s/"busy":0.000/&,"rwndLimited":5.000/'
broken R open 6 net-flow '.*' '6s/"flow":"10.0.0.7:41230/"flow":"10.0.0.7:41231/'
broken R open 7 pid 'myPid is 1 in the file of process 4717' '7s/"myPid":4717/"myPid":1/'
broken R open 7 comm-hash 'commHash 0x8 is not commId 7 \(0x7\)' '7s/"commHash":"0x7"/"commHash":"0x8"/'
broken R open 8 pxn-origin 'originPid 4719 is not details.eventPid' '8s/"originPid":4718/"originPid":4719/'
broken R open 9 open-order 'event 0x2d0000000005 is told at 9000003300000.000, after it was at 9000003300000.000 \(line 7\)' '7s/"ts":9000001200000/"ts":9000003300000/;7s/"age":1199890/"age":3299890/;7s/"onCpu":1199888/"onCpu":3299888/'
broken R open 9 open-differs 'eventType, parentObj or start.ts of event 0x2d0000000005 was another in line 7' '9s/"start":\{"ts":9000000000110/"start":{"ts":9000000000111/;9s/"age":3299890/"age":3299889/;14s/"start":\{"ts":9000000000110/"start":{"ts":9000000000111/'
broken R open 11 open-differs 'eventType, parentObj or start.ts of event 0x2d0000000002 was another in line 4' '11s/"start":\{"ts":9000000000050/"start":{"ts":9000000000051/;11s/"duration":4999950/"duration":4999949/'
broken R open 14 open-late 'told as open after its event 0x2d0000000005 \(line 13\)' '9{h;d};14G'
broken R open 4 open-event 'event 0x2d00000000ff was open and is not in the file' '4s/"eventAddr":"0x2d0000000002"/"eventAddr":"0x2d00000000ff"/'

# ---- hostile input: refused with words, never a crash, never slow
{ head -c 100000 /dev/zero | tr '\0' '['; echo; } >deep
expect deep 1 '.*nested deeper than 32 levels \[json\].*' "$tool" check deep
{ head -c 10000000 /dev/zero | tr '\0' 'x'; echo; cat "$traces/good.jsonl"; } >huge
expect huge 1 'huge:1: error: the line has more than 1 MiB \[line-long\]' "$tool" check huge
{ printf '{"recordType":"x"'; seq -f ',"k%.0f":1' 90000 | tr -d '\n'; echo '}'; } >many
expect many 1 'many:1: warning: record kind .x. is none of schema 1 \[kind-unknown\]
many:1: error: a further record before any header .*' "$tool" check many
printf '{"recordType":"node","ts":1.000,"interval":1.000,"a":1e999999999,"b":-123456789012345678901234567890}\n' >numbers
expect numbers 1 'numbers:1: error: a node record before any header [^[]*\[header-first\]' "$tool" check numbers
head -c 300000 "$tool" >binary
expect binary 1 '.*\[json\].*' "$tool" check --max-errors 3 binary
[[ $("$tool" check binary 2>&1) == *$'\x1b'* ]] && fail "binary: an escape sequence reached the terminal"
# what ends nowhere is no torn record where nothing whole comes before it
none='error: no header, and no other whole record: it is no trace \[header-first\]'
printf 'hello world' >hello
printf '{"recordType":"header","schema":1,"to' >torn-header
for file in hello torn-header; do
	expect "$file" 1 "$file:1: $none" "$tool" check "$file"
	expect "$file --strict" 1 "$file:1: $none" "$tool" check --strict "$file"
	expect "$file --compat" 1 "$file:1: $none" "$tool" check --compat "$file"
done
head -n 1 "$traces/good.jsonl" >torn-second
printf '{"recordType":"ev' >>torn-second
expect torn-second 0 'torn-second:2: note: the last record is torn, skipped \[torn\]
torn-second:1: warning: process 4711 has no footer: [^[]* \[footer-missing\]' "$tool" check torn-second
{ head -c 100 "$traces/good.jsonl"; cat "$traces/good.jsonl"; } >torn-headers
expect torn-headers 0 'torn-headers:1: note: a torn record, and the header of the next file behind it \[torn\]' "$tool" check torn-headers
head -c -1 "$traces/good.jsonl" >no-newline
expect no-newline 0 '' "$tool" check --strict no-newline
: >empty
expect empty 1 'empty: error: the file is empty \[header-first\]' "$tool" check empty
printf '\n' >blank
expect blank 1 'blank:1: error: column 1: .* \[json\]' "$tool" check blank
# times as large as they get: no sum of them overflows
for key in onCpu runq blocked unknown us span; do
	sed -E "s/\"$key\":[0-9.]+/\"$key\":3074457345618258.999/g" "$traces/sched.jsonl" >large
	expect "large $key" 1 '.*\[sched-.*' "$tool" check large
done
for key in busy rwndLimited sndbufLimited; do
	sed -E "s/\"$key\":[0-9.]+/\"$key\":3074457345618258.999/g" "$traces/net.jsonl" >large
	expect "large $key" 1 '.*\[(net-bounds|flow-delta)\].*' "$tool" check large
done
sed -E 's/"(tx|rx)Bytes":[0-9]+/"\1Bytes":18446744073709551615/g' "$traces/net.jsonl" >large
expect 'large bytes' 1 '.*\[flow-delta\].*' "$tool" check large
# good traces, each time with one byte of them changed: any answer but no crash
for ((i = 1; i < 14000; i += 61)); do
	for trace in good sched net open; do
		printf '%s\\%s' "${text[$trace]:0:i}" "${text[$trace]:i+1}" >"mutant-$trace"
	done
	"$tool" check -q mutant-*
	[ $? -le 1 ] || fail "mutants at $i: exit status above 1"
done

# ---- the command line
expect usage 2 '' "$tool" check
expect option 2 '' "$tool" check --nonsense trace_1_pid4711.jsonl
expect max-errors 2 '' "$tool" check --max-errors x trace_1_pid4711.jsonl
expect absent 1 "absent.jsonl: error: it could not be read: No such file or directory \[unreadable\]" "$tool" check absent.jsonl
# What was read of a file that cannot be read to its end is said of that file, also where another one follows.
if command -v zstd >/dev/null; then
	{ sed '$d' "$traces/good.jsonl" | zstd -qc && printf 'no frame of zstd'; } >damaged.zst
	damaged="damaged.zst: error: [^[]* \\[unreadable\\]"$'\n'"damaged.zst:1: $no_footer"
	expect 'damaged, alone' 1 "$damaged" "$tool" check damaged.zst
	expect 'damaged, before another' 1 "$damaged" "$tool" check damaged.zst "$traces/sched.jsonl"
else
	echo 'skip check: damaged: no zstd'
fi
mkdir none
expect no-traces 1 '' "$tool" check none
expect help 0 'Usage: .*' "$tool" check --help
expect quiet 1 '' "$tool" check -q empty
[ -s stderr ] && fail "quiet: said $(cat stderr)"
expect limit 1 '([^
]*
){5}[^
]*' "$tool" check --max-errors 3 "$top/tests/data/nccl-2.28-4xh100-allreduce.jsonl"
grep -q 'more findings not shown' stderr || fail "limit: $(cat stderr)"
# warnings do not hide the error behind them
expect limit-level 1 '[^ ]*:2: warning: [^
]* \[orphan\]
empty: error: the file is empty \[header-first\]' "$tool" check --max-errors 1 trace_1_pid4714.jsonl empty
expect json 1 '.*"file":"empty","line":0,"level":"error","code":"header-first","message":"the file is empty".*"errors": 1.*' \
	"$tool" check --json empty
if command -v jq >/dev/null; then
	"$tool" check --json empty trace_1_pid4712.jsonl trace_1_pid4714.jsonl 2>/dev/null | jq -e \
		'.errors == 1 and .warnings == 2 and (.findings | length) == 3 and .pxn.unmatched == 2' \
		>/dev/null || fail "json: not what jq expects"
	"$tool" check --json trace_1_pid4711.jsonl 2>/dev/null | jq -e '.findings == []' >/dev/null ||
		fail "json: a clean trace"
fi

# ---- the schema: printed as it is in docs/, and the same as the C tables, key by key
"$tool" schema >schema.json 2>stderr || fail "schema: $(cat stderr)"
cmp -s schema.json "$schema" || fail "schema: prints other than docs/trace.schema.json"
expect schema-argument 2 '' "$tool" schema x
"$tables" "$schema" >from-schema || fail "schema_tables failed"
"$tool" check --dump-tables >from-tables
[ "$(wc -l <from-schema)" -ge 250 ] || fail "schema_tables: only $(wc -l <from-schema) keys"
diff <(sort from-schema) <(sort from-tables) >drift ||
	fail "docs/trace.schema.json (<) and check_keys.c (>) differ: $(cat drift)"

# ---- docs/trace.md explains every key
while read -r name key _; do
	[[ $key == \"* ]] || grep -qw -- "$key" "$top/docs/trace.md" ||
		fail "docs/trace.md does not mention $name.$key"
done <from-schema

# ---- every code is in the man page, and the tests above have seen it
grep -ohE '(FIND_[A-Z]+|line|level_of\(n\)), "[a-z0-9-]+"' "$top"/loader/check/*.c | cut -d'"' -f2 | sort -u >codes
[ "$(wc -l <codes)" -ge 40 ] || fail "only $(wc -l <codes) codes found in the source"
while read -r code; do
	grep -qE "^\.It.*[ ]$code( |\$)" "$top/man/ncclscope-check.1" || fail "$code is not in the man page"
	grep -qE "(broken [SRJ] [a-z]+ [0-9:a-z]+ $code |\[$code)" "$top/tests/unit/check.sh" || fail "no test breaks $code"
done <codes

# ---- a file's name is somebody's text, too
odd=$'trace_\n\033[2J.jsonl'
printf '{"recordType":"event"}\n' >"$odd"
expect 'a name that is no text' 0 'trace_\\x0a\\x1b\[2J\.jsonl:1: error: .*' sh -c '"$1" check "$2" | head -n 1' - "$tool" "$odd"

# ---- the same edits before a JSON Schema engine
engine='
import glob, json, sys
from jsonschema import Draft202012Validator as V
schema = json.load(open(sys.argv[1]))
V.check_schema(schema)
v = V(schema)
def refused(path):
    return [n for n, l in enumerate(open(path), 1) if l.endswith("\n") and not v.is_valid(json.loads(l))]
bad = 0
for path in sorted(glob.glob("trace_1_*.jsonl") + glob.glob("others/*.jsonl") + glob.glob("for-engine-[RS]-*.jsonl")):
    lines = refused(path)
    if bool(lines) != path.startswith("for-engine-S"):
        print("the schema engine refuses lines %s of %s" % (lines, path))
        bad = 1
sys.exit(bad)'
if python3 -c 'from jsonschema import Draft202012Validator' 2>/dev/null; then
	python3 -c "$engine" "$schema" >engine || fail "engine: $(cat engine)"
else
	skip "an engine of its own" "no python3-jsonschema"
fi

exit $failed
