#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope merge`: points in time move and nothing else does, in records of each kind, as another reader of the schema moves them; what
# cannot be merged is told. Clocks and connections of real jobs are tests/e2e/merge.sh's.
#
# Usage: merge.sh [NCCLSCOPE]
. "$(dirname "$0")/lib.sh"
schema=$top/docs/trace.schema.json
needs jq python3 zstd
cd "$tmp" || exit 1

# fails STATUS MESSAGE ARG...: with these, merge prints nothing else.
fails()
{
	local status=$1 message=$2 rc
	shift 2
	"$tool" merge "$@" >out 2>err
	rc=$?
	same "$rc" "$status" && same "$(wc -c <out)" 0 && grep -qE "$message" err || { cat err; return 1; }
}

other_node()
{
	python3 "$top/tests/unit/other_node.py" "$schema" "$@"
}

# ---- Lines

# Of a node that has been up for longer, so that all times are moved there; without operations, so that nothing tells of its clock.
other_node b0 1000000.001 0 <"$traces/orphans.jsonl" >b0.jsonl

# later US [SET] <TRACE: as if it were a window of the same recording so much later, the real clock having been set SET us ahead.
later()
{
	cat >window
	other_node 0 "$1" $((${1%.*} + ${2:-0})) <window | sed "1s/\"host\":\"0\"/\"host\":$(head -n 1 window | jq .host)/; 1s/\"bootId\":\"[^\"]*\"/\"bootId\":$(head -n 1 window | jq .bootId)/"
}

# What of a line is the reference's then.
real_clock='s/,"realtimeOffset":[0-9.]*//; s/,"realtimeError":[0-9.]*//; /^{"recordType":"clock"/s/,"error":[0-9.]*//'

# moved TRACE
moved()
{
	cp "$1" it.jsonl
	"$tool" merge -q it.jsonl b0.jsonl >merged.jsonl 2>err || return 1
	other_node b0 1000000.001 0 <it.jsonl >want.jsonl || return 1
	n=$(wc -l <want.jsonl)
	diff <(tail -n +2 want.jsonl | sed "$real_clock") <(head -n "$n" merged.jsonl | tail -n +2 | sed "$real_clock") &&
		diff b0.jsonl <(tail -n +"$((n + 1))" merged.jsonl | sed 's/,"merged":{[^}]*}//') &&
		same "$(head -n 1 merged.jsonl | jq -c '.clock.merged')" \
			'{"host":"b0","bootId":"000000b0-0000-4000-8000-000000000000","shift":1000000.001,"by":"realtime"}' &&
		same "$(head -n 1 merged.jsonl | sed "s/,\"merged\":{[^}]*}//; $real_clock")" "$(head -n 1 it.jsonl | sed "$real_clock")" &&
		same "$(jq -c 'select(.recordType == "header") | .clock | [.realtimeOffset, .realtimeError]' merged.jsonl | uniq | wc -l)" 1 &&
		"$tool" check merged.jsonl
}
for trace in good sched open orphans net pxn signals; do
	t "$trace: points in time, and no more" moved "$traces/$trace.jsonl"
done

one_node()
{
	"$tool" merge -q "$traces/good.jsonl" "$traces/net.jsonl" >merged.jsonl 2>err || return 1
	diff <(cat "$traces/good.jsonl" "$traces/net.jsonl") <(sed 's/,"merged":{[^}]*}//' merged.jsonl) &&
		same "$(jq -r 'select(.recordType == "header") | .clock.merged.by' merged.jsonl | uniq)" reference
}
t "of one node: as cat does, but that it says so" one_node

compressed()
{
	mkdir dir && zstd -q "$traces/good.jsonl" -o dir/trace_1_pid1.jsonl.zst && cp b0.jsonl dir/trace_2_pid2.jsonl &&
		"$tool" merge -q -o from_dir dir && "$tool" merge -q -o from_files "$traces/good.jsonl" b0.jsonl && cmp from_dir from_files &&
		same "$(stat -c %a from_dir)" 640
}
t "compressed, of a directory, into a file" compressed

# Traces are read twice, and what of one cannot be read is told once.
unreadable()
{
	mkdir bad && zstd -qc "$traces/net.jsonl" | head -c 100 >bad/trace_1_pid1.jsonl.zst && cp "$traces/good.jsonl" bad/trace_2_pid2.jsonl || return 1
	"$tool" merge -o merged.jsonl bad 2>err
	same "$?: $(grep -c 'Failed to read' err)" "1: 1" && same "$(wc -l <merged.jsonl)" "$(wc -l <"$traces/good.jsonl")"
}
t "what cannot be read is told once" unreadable

by_cat()
{
	# the first breaks off within a line, and cat has put the next one there; and into one compressed file
	{ head -n 20 "$traces/good.jsonl" && sed -n 21p "$traces/good.jsonl" | head -c 40 && cat b0.jsonl; } >cat.jsonl
	"$tool" merge cat.jsonl >merged.jsonl 2>err || return 1
	zstd -qf cat.jsonl && "$tool" merge -q cat.jsonl.zst >again.jsonl 2>>err
	grep -q '1 torn line:' err && same "$(wc -l <merged.jsonl)" $((20 + $(wc -l <b0.jsonl))) && cmp merged.jsonl again.jsonl
}
t "what cat has put behind a torn line" by_cat

# ---- PXN

pxn()
{
	local id=0x2a0000000014
	{ head -n 1 "$traces/good.jsonl" && grep -m 1 '"type":"ncclProfileColl"' "$traces/good.jsonl" | sed "s/\"eventAddr\":\"[^\"]*\"/\"eventAddr\":\"$id\"/" &&
		tail -n 1 "$traces/good.jsonl"; } >origin.jsonl
	grep -q $id origin.jsonl && "$tool" merge -q "$traces/pxn.jsonl" origin.jsonl >merged.jsonl 2>err || return 1
	origin=$(jq -c 'select(.eventAddr) | {commHash, rank, seq: .details.seq}' origin.jsonl)
	same "$(grep isPxn merged.jsonl | grep -v 4799 | jq -c '.type, .origin')" "\"ncclProfileProxyStep\"
$origin
\"ncclProfileProxyOp\"
$origin" &&
		same "$(grep 4799 merged.jsonl | jq -c 'select(.isPxn).origin')" '{"commHash":"0x7","rank":3,"seq":4}' &&
		"$tool" merge "$traces/pxn.jsonl" >out 2>err && grep -q '2 of 2 PXN events' err || return 1
	# what the network has to tell is in a step, which says whose it is
	{ cat "$traces/pxn.jsonl" && grep -m 1 '"isPxn":true' "$traces/pxn.jsonl" |
		sed 's/ProxyStep/NetPlugin/; s/"parentObj":"[^"]*","eventAddr":"[^"]*"/"parentObj":"0x2b0000000021","eventAddr":"0x2b0000000060"/'; } >plugin.jsonl
	"$tool" merge plugin.jsonl origin.jsonl >merged.jsonl 2>err && grep -q '"type":"ncclProfileNetPlugin".*"parentObj":"0x2b0000000021".*"isPxn"' merged.jsonl &&
		! grep 'PXN events' err
}
t "PXN: whose it is, once both are there" pxn

# ---- Connections

# peers TRACE...: how many flow records of each end say what the other one is
peers()
{
	"$tool" merge -q "$@" >merged.jsonl && "$tool" check merged.jsonl >&2 &&
		jq -sr '[.[] | select(.recordType == "flow" and .peerHost).flow[:8]] | [(["10.0.0.7", "10.0.0.8"][] as $f | map(select(. == $f)) | length)] | join(" ")' merged.jsonl
}

ends()
{
	local flow='"flow":"10.0.0.7:41230>10.0.0.8:50021"' peer='"flow":"10.0.0.8:50021>10.0.0.7:41230"'
	grep -q "$flow" "$traces/net.jsonl" || { echo "no such flow"; return 1; }
	sed 's/,"peerRank":[0-9]*//; s/,"peerPid":[0-9]*//' "$traces/net.jsonl" >a.jsonl
	sed "s/${flow#*:}/${peer#*:}/g" a.jsonl | sed 's/"hostPid":[0-9]*/"hostPid":99/; s/\("pid"\|"myPid"\|"eventPid"\):4716/\1:98/g' | other_node b1 5000000.000 0 >b.jsonl
	"$tool" merge a.jsonl b.jsonl >merged.jsonl 2>err || return 1
	grep "$flow" merged.jsonl | grep '"recordType":"flow"' | jq -c '[.peerHost, .peerPid]' | uniq >got
	grep "$peer" merged.jsonl | grep '"recordType":"flow"' | jq -c '[.peerHost, .peerPid]' | uniq >>got
	same "$(cat got)" "[\"b1\",98]
[\"$(head -n 1 a.jsonl | jq -r .host)\",4716]" && "$tool" check merged.jsonl || return 1
	# a connection counts once, however often it is told to have ended, and on which sides
	grep -q ': 1 connection has its other end on another' err || { cat err; return 1; }
	grep -v '"end":true' a.jsonl >unended.jsonl
	"$tool" merge unended.jsonl b.jsonl 2>&1 >/dev/null | grep -q ': 1 connection has' || { echo "one side has no last records"; return 1; }
	# each window of a recording has a header, and there may be many: they are of the same two processes
	later 10000000.000 <a.jsonl >a2.jsonl
	later 10000000.000 <b.jsonl >b2.jsonl
	{ for i in {11..30}; do head -n 1 b.jsonl && grep -m 1 "{\"recordType\":\"flow\",$peer" b.jsonl | sed "s/\"ts\":[0-9.]*/\"ts\":70000$i.000/"; done; } >more.jsonl
	same "$(peers a.jsonl b.jsonl)" "8 8" && same "$(peers a.jsonl b.jsonl a2.jsonl b2.jsonl)" "16 16" &&
		same "$(peers a.jsonl b.jsonl b2.jsonl)" "8 16" && same "$(peers a.jsonl b.jsonl more.jsonl)" "8 28" || return 1
	# a later process that has the pid is another one
	sed 's/"startTime":8000/"startTime":8001/' b2.jsonl >c.jsonl
	same "$(peers a.jsonl b.jsonl c.jsonl)" "0 16" || return 1
	# two that could be it: none is
	sed 's/000000b1/000000b2/' b.jsonl >c.jsonl
	"$tool" merge -q a.jsonl b.jsonl c.jsonl >merged.jsonl
	same "$(grep "$flow" merged.jsonl | grep -c peerHost)" 0 || return 1
	# bridges of containers have the same addresses on each node: both ends are of one, and on another there is one that could be it
	sed "s/${flow#*:}/${peer#*:}/g" a.jsonl | sed 's/"hostPid":[0-9]*/"hostPid":99/; s/\("pid"\|"myPid"\|"eventPid"\):4716/\1:98/g' >a2.jsonl
	"$tool" merge -q a.jsonl a2.jsonl b.jsonl >merged.jsonl
	same "$(grep '"recordType":"flow"' merged.jsonl | grep -c peerHost)" 0
}
t "the other end of a connection, on another node" ends

# What one end had to send again while the other was at it: steps of the latter are told, those that it does not cover are not.
resent()
{
	local flow='10.0.0.7:41230>10.0.0.8:50021' peer='10.0.0.8:50021>10.0.0.7:41230' flow2='10.0.0.7:41231>10.0.0.8:50021' peer2='10.0.0.8:50021>10.0.0.7:41231'
	counts() { echo "\"txBytes\":0,\"rxBytes\":0,\"retrans\":$1,\"rxOoo\":0,\"lost\":0,\"dsack\":0"; }
	record() { # FLOW TS WHY RETRANS MORE
		echo "{\"recordType\":\"flow\",\"flow\":\"$1\",\"tid\":1,\"ts\":$2,\"netns\":1,\"why\":\"$3\",\"tcp\":{\"state\":\"established\"},$(counts "$4")${5:-}}"
	}
	step() { # START STOP ADDR
		echo "{\"recordType\":\"event\",\"type\":\"ncclProfileProxyStep\",\"start\":{\"ts\":$1},\"stop\":$2,\"eventAddr\":\"$3\",\"net\":{\"flow\":\"$peer\",$(counts 0)}}"
	}
	op() { # ADDR NFLOWS FLOW...
		echo "{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"start\":{\"ts\":1005000.000},\"stop\":{\"ts\":1030000.000},\"eventAddr\":\"$1\",\"net\":{\"flow\":\"$3\",\"flows\":$(jq -nc '$ARGS.positional' --args "${@:3}"),\"nFlows\":$2,$(counts 0)}}"
	}
	sent_again() { # TRACE...: of each step and ProxyOp, what it is told of the other end
		"$tool" merge -q "$@" | jq -c 'select(.eventAddr and .net) | [.eventAddr[2:], .net.peer.host, .net.peer.pid, .net.peer.retrans, .net.peer.dsack]' | tr -d '\n"'
	}
	{ calls 1 0 10 0 i 0 2.28.9 && record $flow2 1000000.000 open 0 && record $flow2 1090000.000 end 5 ',"end":true,"resent":[{"ts":1012000.000,"n":5}]' && record $flow 1000000.000 open 0 && record $flow 1090000.000 use 3 ',"resent":[{"ts":1010000.000,"n":2},{"ts":1020000.000,"n":1,"dsack":1}]' &&
		record $flow 1100000.000 end 7 ',"end":true,"resent":[{"ts":1095000.000,"n":4}]'; } >a.jsonl
	{ calls 2 1 20 0 i 0 2.28.9 && record $peer 1000000.000 open 0 && record $peer2 1000000.000 open 0 && op 0xa 2 $peer $peer2 && op 0xb 3 $peer $peer2 && op 0xc 2 $peer 10.0.0.8:1\>10.0.0.7:2 && step 1005000.000 '{"ts":1015000.000}' 0x1 && step 1016000.000 '{"ts":1030000.000}' 0x2 &&
		step 1021000.000 '{"ts":1094000.000}' 0x3 && step 1005000.000 '{"ts":1096000.000}' 0x4 && step 999000.000 '{"ts":1096000.000}' 0x5 &&
		step 1093000.000 '{"ts":1101000.000}' 0x6 && step 1096000.000 '{"ts":1101000.000}' 0x8 && step 1021000.000 null 0x7; } >b.jsonl
	same "$(sent_again a.jsonl b.jsonl)" \
		'[a,n1,10,8,1][b,null,null,null,null][c,null,null,null,null][1,n1,10,2,0][2,n1,10,1,1][3,n1,10,0,0][4,n1,10,7,1][5,n1,10,7,1][6,n1,10,4,0][8,null,null,null,null][7,n1,10,4,0]' || return 1
	# each goes by the window that it is in, an unfinished one by that in which it began, and between two nothing is known
	{ head -n 1 a.jsonl && record $flow 2000000.000 open 0 && record $flow 2090000.000 end 9 ',"end":true,"resent":[{"ts":2010000.000,"n":9}]'; } >a2.jsonl
	{ head -n 1 b.jsonl && record $peer 2000000.000 open 0 && step 2005000.000 '{"ts":2015000.000}' 0x9 && step 2021000.000 null 0xd &&
		step 1500000.000 '{"ts":1510000.000}' 0xe; } >b2.jsonl
	same "$(sent_again a.jsonl b.jsonl a2.jsonl b2.jsonl)" "$(sent_again a.jsonl b.jsonl)[9,n1,10,9,0][d,n1,10,0,0][e,null,null,null,null]" || return 1
	# a recording that was cut off: what was sent again in its last tenth of a second may not have been told
	grep -v '"end":true' a.jsonl >a2.jsonl
	"$tool" merge -q a2.jsonl b.jsonl >merged.jsonl 2>err
	same "$(jq -c 'select(.net.peer) | [.eventAddr[2:], .net.peer.retrans]' merged.jsonl | tr -d '\n"')" '[1,2][2,1][4,3][5,3]' || return 1
	# a clock that may be wrong by more than a step took tells nothing of it, or nothing at all
	{ calls 1 0 10 0 7 0 2.28.9 && grep '"flow"' a.jsonl; } >a3.jsonl
	{ calls 2 1 20 0 7 0 2.28.9 && grep '"flow"' b.jsonl; } >b3.jsonl
	"$tool" merge -q a3.jsonl b3.jsonl >merged.jsonl 2>err
	same "$(grep -c '"peer":' merged.jsonl) $(grep -c peerHost merged.jsonl)" '0 7'
}

# ---- Clocks

# calls NODE RANK PID AHEAD SEQ FROM VERSION: the trace of a rank that makes 100 AllReduces, one each ms from FROM ms on, of 200 us. Its real
# clock is AHEAD us ahead of what is right. SEQ: of operation i, as awk has it.
calls()
{
	awk -v node="$1" -v rank="$2" -v pid="$3" -v ahead="$4" -v from="$6" -v nccl="$7" 'BEGIN {
		printf "{\"recordType\":\"header\",\"host\":\"n%d\",\"bootId\":\"%08d-0000-4000-8000-000000000000\",", node, node
		printf "\"pid\":%d,\"ncclVersion\":\"%s\",\"clock\":{\"realtimeOffset\":1700000000000000.000}}\n", pid, nccl
		for (i = 0; i < 100; i++) {
			t = 1e6 + from * 1000 + i * 1000 + ahead + rank * 10
			printf "{\"recordType\":\"event\",\"type\":\"ncclProfileCollApi\",\"start\":{\"ts\":%.3f},\"stop\":{\"ts\":%.3f},\"eventAddr\":\"0x%x\"}\n", t, t + 5, 4096 + i
			printf "{\"recordType\":\"event\",\"type\":\"ncclProfileColl\",\"func\":\"AllReduce\",\"commHash\":\"0x7\",\"rank\":%d,\"start\":{\"ts\":%.3f},", rank, t + 3
			printf "\"stop\":{\"ts\":%.3f},\"parentObj\":\"0x%x\",\"eventAddr\":\"0x%x\",\"details\":{\"seq\":%d},", t + 4, 4096 + i, 8192 + i, '"$5"'
			printf "\"exec\":{\"stop\":%.3f,\"source\":\"proxy\"}}\n", t + 200 - rank * 10
		}
	}'
}

t "what the other end sent again meanwhile" resent

# found TRACE...: how node 2 comes to the first one's clock, and if by messages, whether that is 5 ms, as far as it says.
found()
{
	"$tool" merge --clocks --json "$@" 2>err | jq -c '[.nodes[] | select(.by != "reference")][0] | if .by == "messages" then
		[.by, (.shift | fabs) - .error <= 5000 and (.shift | fabs) + .error >= 5000, .error < 1000] else [.by] end'
}
by_calls()
{
	calls 1 0 10 0 i 0 2.28.9 >a.jsonl
	calls 2 1 20 5000 i 0 2.28.9 >b.jsonl
	same "$(found a.jsonl b.jsonl)" '["messages",true,true]' || return 1
	calls 1 0 11 0 i 60000 2.28.9 >a2.jsonl
	calls 2 1 21 5000 i 60000 2.28.9 >b2.jsonl
	same "$(found a.jsonl b.jsonl a2.jsonl b2.jsonl)" '["messages",true,true]' || { echo "the same communicator, later"; return 1; }
	calls 2 1 20 5000 i 0 2.25.1 >old.jsonl
	same "$(found a.jsonl old.jsonl)" '["realtime"]' || { echo "seq of which only what is recorded counts"; return 1; }
	for f in a b; do
		sed 's/2\.28\.9/2.25.1/; s/"seq":/"seqCommon":true,&/' $f.jsonl >$f.common.jsonl
	done
	same "$(found a.common.jsonl b.common.jsonl)" '["messages",true,true]' || { echo "such, recorded from the start"; return 1; }
	calls 1 0 10 0 7 0 2.28.9 >a.jsonl
	calls 2 1 20 5000 7 0 2.28.9 >b.jsonl
	same "$(found a.jsonl b.jsonl)" '["realtime"]' || { echo "replays of a graph"; return 1; }
}
t "clocks by AllReduces: a later run of the same, an old NCCL, replays of a graph" by_calls

# fit TRACE...: the same in numbers
fit()
{
	"$tool" merge --clocks --json "$@" 2>err | jq -c '.nodes[] | select(.by != "reference") | [.by, .shift, .error]'
}

# Of two runs of the same communicator the first one's last line is not there of one rank, as it was killed; and of the second one
# that rank's lines are read first.
runs()
{
	calls 1 0 10 0 i 0 2.28.9 >a.jsonl
	calls 2 1 20 5000 i 0 2.28.9 >b.jsonl
	calls 2 2 22 5000 i 0 2.28.9 >c.jsonl
	calls 1 0 11 0 i 60000 2.28.9 >a2.jsonl
	calls 2 1 21 5000 i 60000 2.28.9 >b2.jsonl
	calls 2 2 23 5000 i 60000 2.28.9 >c2.jsonl
	head -n -2 b.jsonl >b1.jsonl
	head -n -2 c.jsonl >c1.jsonl
	same "$(found a.jsonl b1.jsonl b2.jsonl a2.jsonl)" '["messages",true,true]' || { echo "of all of a node"; return 1; }
	same "$(found a.jsonl b.jsonl c1.jsonl c2.jsonl b2.jsonl a2.jsonl)" '["messages",true,true]' || { echo "of one of a node's"; return 1; }
	# and it is as if the first run had had another one: there is nothing else to go by
	for f in a b2 a2; do
		{ head -n 1 $f.jsonl && tail -n 2 $f.jsonl; } >$f.last.jsonl
	done
	sed 's/"seq":99/"seq":5/' a.last.jsonl >other.jsonl
	same "$(fit a.last.jsonl b2.last.jsonl a2.last.jsonl)" "$(fit other.jsonl b2.last.jsonl a2.last.jsonl)" || { echo "alone"; return 1; }
}
t "clocks by AllReduces of which some were of another run" runs

# Of these runs nothing is missing, but a node's clock is 40 s ahead: nearer to the next run of the others than to its own.
runs_ahead()
{
	calls 1 0 10 0 i 0 2.28.9 >a.jsonl
	calls 2 1 20 40000000 i 0 2.28.9 >b.jsonl
	calls 1 0 11 0 i 60000 2.28.9 >a2.jsonl
	calls 2 1 21 40000000 i 60000 2.28.9 >b2.jsonl
	fit a.jsonl b.jsonl a2.jsonl b2.jsonl >fit.json
	jq -se 'length == 1 and (.[0] | .[0] == "messages" and ((.[1] | fabs) - 40000000 | fabs) < 1000 and .[2] < 1000)' fit.json >/dev/null || { cat fit.json; return 1; }
}
t "clocks by AllReduces of runs nearer to each other than clocks" runs_ahead

# replay NODE RANK PID AHEAD MS: of a graph, MS ms after the others, of which rank 1 gets a message from rank 0
replay()
{
	local ts=$((1000000 + $5 * 1000 + $4)) is_send
	is_send=$([ "$2" = 0 ] && echo true || echo false)
	calls "$1" "$2" "$3" 0 0 0 2.28.9 | head -n 1
	echo '{"recordType":"event","type":"ncclProfileProxyOp","start":{"ts":'$ts.000'},"stop":{"ts":'$((ts + 50)).000'},"parentObj":"0x2","eventAddr":"0x3","details":{"channel":0,"peer":'$((1 - $2))',"isSend":'"$is_send"'}}'
	echo '{"recordType":"event","type":"ncclProfileColl","func":"AllGather","commHash":"0x7","rank":'"$2"',"start":{"ts":'$ts.000'},"stop":{"ts":'$((ts + 60)).000'},"eventAddr":"0x2","details":{"seq":7}}'
}

# Replays of a graph 20 s apart, of which the sender is recorded from the second on, and the last does not arrive.
replays()
{
	local i
	calls 1 0 10 0 i 0 2.28.9 >a.jsonl
	calls 2 1 20 5000 i 0 2.28.9 >b.jsonl
	replay 2 1 20 5000 20000 >r1.jsonl
	for i in 2 3; do
		replay 1 0 10 0 $((i * 20000)) >s$i.jsonl
		replay 2 1 20 5000 $((i * 20000)) >r$i.jsonl
	done
	replay 1 0 10 0 80000 >s4.jsonl
	same "$(fit a.jsonl b.jsonl r1.jsonl s2.jsonl r2.jsonl s3.jsonl r3.jsonl s4.jsonl)" "$(fit a.jsonl b.jsonl s2.jsonl r2.jsonl s3.jsonl r3.jsonl s4.jsonl)" &&
		same "$(found a.jsonl b.jsonl r1.jsonl s2.jsonl r2.jsonl s3.jsonl r3.jsonl s4.jsonl | jq .[1])" true
}
t "clocks by messages of which some were of another replay" replays

many()
{
	local i
	mkdir many
	for ((i = 0; i < 300; i++)); do
		calls 1 0 $((100 + i)) 0 1000000+i 0 2.28.9 | head -n 40 >many/trace_0_pid$i.jsonl
	done
	calls 1 0 10 0 i 0 2.28.9 >many/trace_1_pid10.jsonl
	calls 2 1 20 5000 i 0 2.28.9 >many/trace_2_pid20.jsonl
	same "$(found many)" '["messages",true,true]'
}
t "more processes than files are open as a rule" many

# AllReduces of more nodes than a few, whose real clocks are 5 ms apart.
many_nodes()
{
	local i
	mkdir nodes
	for ((i = 0; i < 80; i++)); do
		calls $((100 + i)) $((i % 10)) 10 $((i * 5000)) i 0 2.28.9 | head -n 61 >nodes/trace_1_pid$((100 + i)).jsonl
	done
	"$tool" merge --clocks --json nodes 2>err >out && jq -c '(.nodes[] | select(.by == "reference") | .host[1:] | tonumber) as $ref |
		[.nodes[] | select(.by == "messages") | .error < 1000 and (.shift - 5000 * ($ref - (.host[1:] | tonumber)) | fabs) <= .error] | [length, all]' out
}
is "clocks by AllReduces of 80 nodes" "$(many_nodes)" "[79,true]"

# The real clock is set by 7 s between two windows: what it says since then counts, of the reference as of others.
clock_set()
{
	later 10000000.000 7000000 <"$traces/good.jsonl" >set.jsonl
	other_node b9 -10000000.000 0 <"$traces/orphans.jsonl" >b9.jsonl
	local headers='select(.recordType == "header") | [.host, .clock.realtimeOffset, .clock.realtimeError, .clock.merged.shift]'
	for files in "good set b0" "set good b0" "good set b9" "b9 set good"; do
		files=${files/good/$traces/good}
		# shellcheck disable=SC2086
		"$tool" merge ${files// /.jsonl }.jsonl 2>err >merged.jsonl && "$tool" check merged.jsonl 2>check || { cat err check; return 1; }
		same "$(grep -c '^ncclscope: warning: node7: its real clock was set by +7.000 s' err)" 1 || { cat err; return 1; }
		if [[ $files == *b0* ]]; then
			want='["b0",1763599999000000.249,1.500,0.000]
["node7",1763599999000000.249,1.500,8000000.251]'
		else
			want='["b9",1763600007000000.500,0.500,2999999.750]
["node7",1763600007000000.500,0.500,0.000]'
			same "$(grep -c '"recordType":"clock".*1763600000000000' merged.jsonl)" 2 || return 1
		fi
		same "$(jq -c "$headers" merged.jsonl | sort -u)" "$(jq -c . <<<"$want")" || return 1
	done
	# before the first record of a process in which nothing happens: its header was earlier than that
	{ head -n 1 "$traces/good.jsonl" && grep '^{"recordType":"clock"' "$traces/good.jsonl" | sed 's/"realtimeOffset":1763600000/"realtimeOffset":1763600007/'; } >quiet.jsonl
	"$tool" merge quiet.jsonl b9.jsonl 2>err >merged.jsonl && grep -q '^ncclscope: warning: node7: its real clock was set by +7.000 s' err || { cat err; return 1; }
	same "$(jq -c "$headers" merged.jsonl | grep node7)" "$(jq -c . <<<'["node7",1763600007000000.500,0.500,0.000]')" || return 1
	# messages are no less right for it
	calls 1 0 10 0 i 0 2.28.9 >a.jsonl
	calls 2 1 20 5000 i 0 2.28.9 >b.jsonl
	calls 2 1 20 5000 1000+i 1000 2.28.9 | sed 's/"realtimeOffset":17000/"realtimeOffset":17001/' >b2.jsonl
	same "$(found a.jsonl b.jsonl b2.jsonl)" '["messages",true,true]' &&
		"$tool" merge --clocks --json a.jsonl b.jsonl b2.jsonl | jq -e '.nodes[] | select(.by != "reference") | .realtimeOff - .shift | fabs | 99999999999.9 < . and . < 100000000000.1'
}
t "a real clock that is set meanwhile" clock_set

# ---- What cannot be merged

t "standard input" fails 1 "has to be a file" -
t "a pipe" fails 1 "has to be a file" <(cat "$traces/good.jsonl")
t "no such file" fails 1 "nowhere" nowhere
mkfifo fifo
gzip -c "$traces/good.jsonl" >good.jsonl.gz
pipe()
{
	timeout 10 "$tool" merge fifo "$traces/good.jsonl" >out 2>err
	same "$?" 1 && grep -q "has to be a file" err
}
t "a pipe with a name, to which nobody writes" pipe
t "compressed by others" fails 1 "compressed by gzip" good.jsonl.gz
t "over one of the traces" fails 2 "is one of the traces" -o b0.jsonl "$traces/good.jsonl" b0.jsonl
t "a directory without traces" fails 1 "no trace_" "$top/docs"
t "no header" fails 1 "No trace with a header" "$top/tests/data/nccl-2.28-4xh100-allreduce.jsonl"
t "merged already" fails 1 "merged already" from_files b0.jsonl
sed '1s/"schema":1/"schema":2/' "$traces/good.jsonl" >newer.jsonl
t "of a later schema" fails 1 "error: 'newer.jsonl' is of schema 2, this ncclscope knows 1" b0.jsonl newer.jsonl
t "nothing to merge" fails 2 "a trace is needed" -q
t "--json of what is JSON" fails 2 "clocks" --json b0.jsonl
t "nowhere to write" fails 1 "Failed to write '/nowhere/x'" -o /nowhere/x b0.jsonl

the_others()
{
	"$tool" merge nowhere "$traces/good.jsonl" b0.jsonl >merged.jsonl 2>err
	same "$?" 1 && same "$(wc -l <merged.jsonl)" "$(cat "$traces/good.jsonl" b0.jsonl | wc -l)"
}
t "one that cannot be read: the others are merged all the same" the_others

# once COPIES FIRST ARG...: so many copies are left out, which is said; what is written is as of the trace alone.
once()
{
	local copies=$1 first=$2
	shift 2
	"$tool" merge "$traces/good.jsonl" b0.jsonl >alone.jsonl 2>/dev/null || return 1
	"$tool" merge "$@" >merged.jsonl 2>err || { cat err; return 1; }
	grep -q "warning: Traces of $copies process[es]* are given more than once, and taken once; the first that was left out: '$first'" err &&
		grep -q "2 nodes, 2 processes, " err || { cat err; return 1; }
	cmp alone.jsonl merged.jsonl
}
mkdir again
cp "$traces/good.jsonl" again/trace_2_pid4711.jsonl
cat again/trace_2_pid4711.jsonl b0.jsonl >again/trace_1_both.jsonl
t "the same file twice is taken once" once 1 "$traces/good.jsonl" "$traces/good.jsonl" "$traces/good.jsonl" b0.jsonl
t "a copy is taken once" once 1 again/trace_2_pid4711.jsonl again/trace_1_both.jsonl again/trace_2_pid4711.jsonl
t "copies, also in one file" once 3 again/trace_2_pid4711.jsonl again again/trace_1_both.jsonl
# of a trace and a part of it the first is taken, and if that is the part it is said
part()
{
	head -n 20 "$traces/good.jsonl" >part.jsonl
	"$tool" merge part.jsonl "$traces/good.jsonl" b0.jsonl >merged.jsonl 2>err &&
		grep -q "Of 1 of these what was left out has more in it than what was taken, .*: '.*/good.jsonl' has 48 records, 19 were taken" err || { cat err; return 1; }
	"$tool" merge "$traces/good.jsonl" part.jsonl b0.jsonl >merged.jsonl 2>err && ! grep "has more in it" err
}
t "a copy that is longer is told of" part
# a later window of a recording has the same header
window()
{
	sed '2s/8993953000000.250/8993954000000.250/g' "$traces/good.jsonl" >window.jsonl
	"$tool" merge "$traces/good.jsonl" window.jsonl b0.jsonl >merged.jsonl 2>err && ! grep "more than once" err &&
		same "$(wc -l <merged.jsonl)" "$(cat "$traces/good.jsonl" window.jsonl b0.jsonl | wc -l)"
}
t "another recording of the same process is no copy" window
# processes OF-ALL OF-EACH-NODE TRACE...: in what is said at the end, in the table and in JSON.
processes()
{
	local all=$1 each=$2
	shift 2
	same "$("$tool" merge "$@" 2>&1 >/dev/null | grep -o '[0-9]* process[es]*, ')" "$all, " && same "$("$tool" merge --clocks "$@" 2>err | awk 'NR > 1 { print $2 }' | sort | xargs)" "$each" &&
		same "$("$tool" merge --clocks --json "$@" 2>err | jq '.nodes[].processes' | sort | xargs)" "$each"
}
windows()
{
	sed '1s/"startTime":[0-9]*/"startTime":77/' window.jsonl >other.jsonl
	head -n 1 window.jsonl >bare.jsonl
	grep -q '"startTime":77' other.jsonl && processes "1 process" 1 "$traces/good.jsonl" window.jsonl &&
		processes "2 processes" "1 1" "$traces/good.jsonl" b0.jsonl window.jsonl bare.jsonl "$traces/good.jsonl" && processes "3 processes" "1 2" "$traces/good.jsonl" b0.jsonl other.jsonl
}
t "windows are of one process, which counts once" windows

# two recorders at once: the second began later, and saw the process' events then
at_once()
{
	grep -v '"type":"ProfilerLifecycle"' "$traces/good.jsonl" >later.jsonl
	"$tool" merge "$traces/good.jsonl" later.jsonl b0.jsonl >merged.jsonl 2>err &&
		grep -q "Processes that two recordings have at the same time: 1\. .*\(later\|good\)\.jsonl'" err &&
		same "$(wc -l <merged.jsonl)" "$(cat "$traces/good.jsonl" later.jsonl b0.jsonl | wc -l)" || { cat err; return 1; }
	sed 's/"hostPid":5711/"hostPid":5712/' later.jsonl >other.jsonl
	"$tool" merge "$traces/good.jsonl" other.jsonl "$traces/good.jsonl" b0.jsonl >merged.jsonl 2>err && ! grep "same time" err
}
t "of a process that two recorders had at once all is there, which is said" at_once

full()
{
	"$tool" merge -o /dev/full "$traces/good.jsonl" 2>err
	same "$?" 1 && grep -q "No space left" err && ! "$tool" merge "$traces/good.jsonl" 2>err >/dev/full && grep -q "No space left" err
}
t "a full disk" full

unusable()
{
	{ cat "$traces/good.jsonl" && echo '{"recordType":"state","ts":"soon","eventAddr":"0x1"}' && echo '[1]' &&
		echo '{"recordType":"foo","at":1.000}'; } >odd.jsonl
	"$tool" merge odd.jsonl >merged.jsonl 2>err || return 1
	grep -q '2 lines could not be used, left out; the first: odd.jsonl, line 50 of process 5711 ' err && grep -q '1 record of kinds' err &&
		same "$(wc -l <merged.jsonl)" $(($(wc -l <"$traces/good.jsonl") + 1))
}
t "lines of no use, and of other kinds" unusable

# It is passed over before anybody counts lines.
too_long()
{
	{ cat "$traces/good.jsonl" && head -c $((1024 * 1024 + 1)) /dev/zero | tr '\0' x && echo; } >long.jsonl
	"$tool" merge long.jsonl 2>err >merged.jsonl && grep -q "1 line could not be used, left out ('ncclscope check' tells more)" err || { cat err; return 1; }
}
t "a line that is too long" too_long

# Keys in another order than ours, and texts, with and without escapes, where numbers belong: of a node whose times are moved.
hostile()
{
	local text
	{ cat "$traces/good.jsonl" &&
		echo '{"recordType":"clock","error":0.100,"realtimeOffset":5.000,"ts":8993953423000.000}' &&
		for text in '"x"' '"\u0041\n\u0041"' '[1.000]' '{"a":1.000}' true; do
			echo '{"recordType":"clock","ts":8993953423000.000,"realtimeOffset":'"$text"',"error":0.100}'
			echo '{"recordType":"clock","ts":8993953423000.000,"realtimeOffset":5.000,"error":'"$text"',"gpu":{"offset":'"$text"',"error":'"$text"'}}'
			echo '{"recordType":"clock","ts":'"$text"',"realtimeOffset":5.000,"error":0.100}'
		done &&
		head -n 1 "$traces/good.jsonl" | sed 's/"clock":{[^}]*}/"clock":{"realtimeError":"\\u0041\\n","realtimeOffset":1763600000000000.250}/' &&
		head -n 1 "$traces/good.jsonl" | sed 's/"clock":{[^}]*}/"clock":{"realtimeError":1.000,"realtimeOffset":1763600000000000.250}/'; } >hostile.jsonl
	timeout 20 "$tool" merge hostile.jsonl b0.jsonl >merged.jsonl 2>err || return 1
	jq -c . merged.jsonl >/dev/null && grep -q '^ncclscope: warning: 10 lines could not be used' err || { cat err; return 1; }
	grep -q '"gpuStart":8993954423004.501,"gpuStop":8993954423040.306,"gpuError":2.250' merged.jsonl &&
		grep -q '"gpu":{"offset":1770606440482381.499,"error":2.250}' merged.jsonl || { echo "a GPU's times are not moved"; return 1; }
	grep -q '^{"recordType":"clock","error":1.500,"realtimeOffset":1763599999000000.249,"ts":8993954423000.001}$' merged.jsonl &&
		same "$(grep -c '"clock":{"realtimeError":1.500,"realtimeOffset":1763599999000000.249,"merged":{"host":"b0"' merged.jsonl)" 1 &&
		same "$(grep -c '"clock":{"realtimeError":"\\u0041\\n","realtimeOffset":1763599999000000.249,"merged":{"host":"b0"' merged.jsonl)" 1
}
t "keys in any order, and texts for numbers" hostile

clocks()
{
	"$tool" merge --clocks "$traces/good.jsonl" b0.jsonl >out 2>err && grep -qE '^b0 +1 +\(reference\)$' out &&
		grep -qE ' 1 +\+1\.000 s +not known +not known$' out && grep -q "no messages to it and back" err &&
		"$tool" merge "$traces/good.jsonl" b0.jsonl 2>&1 >/dev/null | grep -q 'clocks not known of 1$' || { cat out err; return 1; }
	"$tool" merge --clocks --json "$traces/good.jsonl" b0.jsonl 2>/dev/null | jq -e '.schema == 1 and
		[.nodes[] | [.by, .shift]] == [["realtime", 1000000.001], ["reference", 0]] and (.nodes[0] | has("error") | not)'
}
t "--clocks, for people and for programs" clocks

exit $failed
