#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Which flow served a step, and what is said of the flow: held against the sockets of the stand-in, which knows
# them, and against ss.
. "$(dirname "$0")/net_lib.sh"

# ---- The option

usage() {
	record usage "$@" -- true
	same "$rc" 2 "exit status" && grep -q 'none of off, events, flows' "$tmp/usage.err" && [ ! -e "$tmp/usage" ]
}
t "--net=none is told what there is" usage "--net=none"
t "--net wants a word" usage "--net="

# ---- Each step has its flow

# all_right NAME: that of its connection, all steps of it.
all_right() {
	local got
	got=$(nq "$1" 'attribution($truth) | tojson')
	jq -ne --argjson got "$got" '($got | keys) == ["right"]' >/dev/null && return
	echo "$got"
	nq "$1" '($truth | group_by(conn) | map({key: (.[0] | conn), value: map(.flow)}) | from_entries) as $flows | steps
		| map(. as $s | select(($flows[conn] // []) | index($s.net.flow) == null) | . + {want: $flows[conn]})[:4][] | tojson'
	return 1
}
# bytes_right NAME: of each flow those that went over the socket, within 0.1%.
bytes_right() {
	same "$(nq "$1" 'sockets($truth) | but(.seen and near(.seen.txBytes; .txBytes; 0.001; 0) and near(.seen.rxBytes; .rxBytes; 0.001; 0))
		| [length, (.[:3][] | {flow, txBytes, rxBytes, seen: (.seen | {why, txBytes, rxBytes}?)})] | tojson')" "[0]"
}
# steps_bytes NAME: those of the steps of a connection together, which are all but how it began.
steps_bytes() {
	same "$(nq "$1" '($truth | group_by(conn) | map({key: (.[0] | conn), value: {tx: sum(if .isSend then .txBytes - .greeting else 0 end),
			rx: sum(if .isSend then 0 else .rxBytes - .greeting end)}}) | from_entries) as $want
		| steps | group_by(conn) | map({conn: (.[0] | conn), tx: sum(.net.txBytes), rx: sum(.net.rxBytes)} | .want = $want[.conn])
		| but(.want and near(.tx; .want.tx; 0.001; 0) and near(.rx; .want.rx; 0.001; 0)) | [length, .[:3][]] | tojson')" "[0]"
}
# flows_right NAME: each socket that a step has used has a flow, which ends, with the process, the peer and the
# connection that it is of.
flows_right() {
	same "$(nq "$1" '($truth | map({key: .flow, value: .}) | from_entries) as $by | sockets($truth) | map(select(.txBytes + .rxBytes > .greeting))
		| but(. as $s | .seen.end == true and .seen.peerRank == .peer and .seen.peerPid == $by[.flow | turned].pid
			and (.role == "data" or .seen.channel == .channel) and (.role == "data" or .seen.isSend == .isSend)
			and (.seen.rank == null or .seen.rank == .rank))
		| [length, (.[:3][] | {flow, rank, peer, channel, isSend, role, seen: (.seen | {why, end: .end, rank, peerRank, peerPid, channel, isSend}?)})] | tojson')" "[0]"
}
# peers_right NAME: the step of the other end is told, where there is something to tell of it.
peers_right() {
	same "$(nq "$1" '($truth | map({key: .flow, value: .}) | from_entries) as $by | steps
		| but(.net.peer and .net.peer.rank == .peer and .net.peer.pid == $by[.net.flow | turned].pid)
		| [length, (.[:3][] | {rank, peer, flow: .net.flow, seen: .net.peer})] | tojson')" "[0]"
}
# attributed NAME: all of it.
attributed() {
	t "$1: right, clean, lossless" good "$1"
	t "$1: each step has one flow, and it is the one" all_right "$1"
	t "$1: bytes of each flow are those of the socket, within 0.1%" bytes_right "$1"
	t "$1: bytes of a connection's steps are what it has moved, within 0.1%" steps_bytes "$1"
	t "$1: a flow says whose it is, who is the peer, and when it ends" flows_right "$1"
}

# Something else on the same network, which is nobody's business.
net_args beside
"$job" "${args[@]}" --ranks 2 --bytes 1M --iters 150 --sleep-us 20000 >/dev/null 2>&1 &
other=$!
net_args ring
record ring -- "$job" "${args[@]}" --ranks 8 --channels 10 --bytes 16M --iters 3
wait "$other"
attributed ring
is "ring: so many steps of 8 ranks and 10 channels" "$(nq ring 'steps | length')" $((3 * 8 * 10 * 2 * 28))
t "ring: each step knows the other end" peers_right ring
# Of a step's own keys; those of an operation are sums of its steps, of which there are as many as it has.
is "ring: operations have the flow and the bytes of their steps" "$(nq ring '(steps | group_by([.pid, .key]) | map({key: "\(.[0].key)", value: .}) | from_entries) as $steps
	| ops | but($steps[.key] as $s | .net.flow == $s[0].net.flow and .net.txBytes == ($s | sum(.net.txBytes)) and .net.rxBytes == ($s | sum(.net.rxBytes))) | length')" 0
is "ring: Colls have the sums, and the first of their flows" "$(nq ring '(ops | map(select(.net)) | length) as $n | (events | of("Coll")) as $colls
	| [$n > 0, ($colls | map(.net | [.nFlows, (.flows | length)]) | unique), ($colls | sum(.net.txBytes)) == (steps | sum(.net.txBytes))] | tojson')" '[true,[[20,4]],true]'

# Who moves the bytes is another thread than who makes the step.
net_args helpers
record helpers -- "$job" "${args[@]}" --ranks 8 --channels 10 --bytes 16M --iters 3 --socket-threads 2
attributed helpers

# Short ones, of a scalar, between long ones: they go with their size, on the thread that makes the step.
net_args short
record short -- "$job" "${args[@]}" --ranks 8 --channels 1 --bytes 4M --iters 12 --small 3 --socket-threads 2
attributed short
is "short: there are some" "$(nq short 'steps | any(.bytes > 0 and .bytes <= 128)')" true

net_args alltoall
record alltoall -- "$job" "${args[@]}" --ranks 8 --channels 4 --op alltoall --bytes 8M --iters 4
attributed alltoall
is "alltoall: P2ps have flows" "$(nq alltoall 'events | of("P2p") | map(select(.details.peer != .rank)) | but(.net.nFlows > 0) | length')" 0

# One connection for collectives and another for sends, on the same channel to the same peer.
net_args mix
record mix -- "$job" "${args[@]}" --ranks 4 --op mix --bytes 2M --iters 14
attributed mix

net_args pxn
record pxn -- "$job" "${args[@]}" --ranks 4 --pxn 2 --bytes 4M --iters 6
t "pxn: status, check, loss" eval 'same "$rc" 0 && clean pxn && lossless pxn'
t "pxn: each step has one flow, and it is the one" all_right pxn

# ---- A flow, against ss and the job's own

# It pauses, so that what ss reads stands still.
want=$((4 * 2 * 3 * (2 << 20) / 4 * 60))
net_args flows
record_bg flows --net=flows
NCCL_PROFILER_PLUGIN=$plugin "$job" "${args[@]}" --ranks 4 --bytes 2M --iters 60 --sleep-us 20000 --linger-ms 2500 >"$tmp/flows.out" 2>/dev/null &
starter=$!
arrived() {
	ss_json >"$tmp/ss"
	jq -se "map(.bytes_received // 0) | add >= $want" "$tmp/ss" >/dev/null
}
until_true 30 arrived
sleep 0.3
ss_json >"$tmp/ss"
wait "$starter"
until_true 10 eval '[ "$(grep -ls "\"recordType\":\"footer\"" "$tmp/flows"/*.jsonl | wc -l)" = 4 ]'
stop_recorder INT
t "flows: right, clean, lossless" good flows
t "flows: each step has one flow, and it is the one" all_right flows
# The last record of each of the job's sockets before it is closed, with what ss has said of it.
nfacts flows '. as $all | INDEX($ss[]; place) as $ss | (records("flow") | map(select((.end | not) and .tcp.state == "established")) | group_by(place)
	| map({key: (.[0] | place), value: .[-1]}) | from_entries) as $last | ($truth | map({place: place, role, isSend, txBytes, rxBytes, ss: $ss[place], flow: $last[place]})) as $both
	| {n: ($both | length), missing: ($both | but(.ss and .flow) | length),
	off: ($both | map(select(.ss and .flow)) | map({
		bytesAcked: [.ss.bytes_acked // 0, .flow.bytesAcked], bytesReceived: [.ss.bytes_received // 0, .flow.bytesReceived],
		retrans: [.ss.retrans // 0, .flow.retrans], rxOoo: [.ss.rcv_ooopack // 0, .flow.rxOoo], dsack: [.ss.dsack_dups // 0, .flow.dsack],
		cwnd: [.ss.cwnd, .flow.tcp.cwnd], mss: [.ss.mss, .flow.tcp.mss],
		busy: [(.ss.busy // 0) * 1000, .flow.busy], rwndLimited: [(.ss.rwnd_limited // 0) * 1000, .flow.rwndLimited], sndbufLimited: [(.ss.sndbuf_limited // 0) * 1000, .flow.sndbufLimited]}
		| to_entries[] | select(near(.value[1]; .value[0]; 0.001; 10 * (if .key | IN("busy", "rwndLimited", "sndbufLimited") then 1000 else 0 end)) | not)) | group_by(.key) | map({(.[0].key): [length, .[0].value]}) | add),
	rtt: ($both | map(select(.ss and .flow) | [.ss.rtt * 1000, .flow.tcp.rtt]) | but(near(.[1]; .[0]; 0.1; 50))),
	rttMin: ($both | map(select(.ss.minrtt and .flow) | [.ss.minrtt * 1000, .flow.tcp.rttMin]) | but(near(.[1]; .[0]; 0.1; 50)))}' --slurpfile ss "$tmp/ss"
is "ss: knows all of them, and so do we" "$(look '[.n > 0, .missing]')" '[true,0]'
is "ss: bytes, retransmits, cwnd, mss and what limits it, within 0.1%" "$(fact off)" null
is "ss: rtt within 10%" "$(fact rtt)" '[]'
is "ss: the least rtt within 10%" "$(fact rttMin)" '[]'
t "flows: bytes of each flow are those of the socket, within 0.1%" bytes_right flows
nfacts flows 'INDEX($truth[]; place) as $ours | records("flow") | map(select($ours[place])) | group_by(place) | {
	gaps: ([.[] | map(select(.why == "use").ts) | range(1; length) as $i | .[$i] - .[$i - 1]] | sort | .[length / 2 | floor]),
	rows: (map(length) | min),
	falls: [.[] | . as $rows | range(1; length) as $i | ("txBytes", "rxBytes", "retrans", "rxOoo", "lost", "dsack", "busy", "rwndLimited", "sndbufLimited") as $k
		| select($rows[$i][$k] < $rows[$i - 1][$k] or ($rows[$i][$k] - $rows[$i - 1][$k] - $rows[$i].delta[$k] | fabs) > 0.002) | [$k, $i]][:4],
	first: (map(.[0] | has("delta")) | unique), netns: [.[][] | select(.netns != $ours[place].netns)] | length}'
t "flows: a record each 100 ms" eval 'between "$(fact gaps)" 80000 150000 && above "$(fact rows)" 6'
is "flows: totals never fall, and are the sum of what each record adds" "$(fact falls)" '[]'
is "flows: nothing is added by the first" "$(fact first)" '[false]'

# ---- Events is the default: each second

nfacts ring '{flows: ([records("flow")[] | place] | unique | length), strangers: (([records("flow")[] | .flow] | unique) as $seen | $beside | map(select(.flow | IN($seen[]))) | length),
	often: ([records("flow") | group_by(place)[] | map(select(.why == "use").ts) | range(1; length) as $i | .[$i] - .[$i - 1] | select(. < 900000)] | length),
	named: ([events[] | .net | select(.) | (.flow, (.flows // [])[]) | select(.)] | unique), others: ($beside | map(.flow))} | .named = (.named - (.named - .others)) | del(.others)' \
	--slurpfile beside "$tmp/beside.flows"
is "events: records no more often than each second" "$(fact often)" 0
is "a process that is not recorded: none of its flows is told of" "$(fact strangers)" 0
is "a process that is not recorded: none of them is in an event" "$(fact named)" '[]'

# ---- Off

# programs PID: names of its programs.
programs() {
	bpf_of prog "$1" | jq -c 'map(.name) | unique'
}
networks='map(select(test("^scope_(net|rst|retrans|drop|sendmsg|recvmsg)")))'
# mode NAME OPTION...: records a job that is started meanwhile; $loaded tells of its programs.
mode() {
	record_bg "$@"
	loaded=$(programs "$recorder")
	net_args "$1"
	NCCL_PROFILER_PLUGIN=$plugin "$job" "${args[@]}" --ranks 2 --bytes 1M --iters 6 --sleep-us 400000 >"$tmp/$1.out" 2>/dev/null
	until_true 10 eval '[ "$(grep -ls "\"recordType\":\"footer\"" "$tmp/'"$1"'"/*.jsonl | wc -l)" = 2 ]'
	stop_recorder INT
}
if [ -n "$bpftool" ]; then
	mode on
	is "on: programs of the network" "$(jq -c "$networks | length >= 6" <<<"$loaded")" true
	mode off --net=off
	is "off: no programs of the network" "$(jq -c "[length > 0, ($networks)]" <<<"$loaded")" '[true,[]]'
else
	skip "programs of the network" "needs bpftool"
	mode on
	mode off --net=off
fi
t "on: what the job made, clean, lossless" good on
t "off: what the job made, clean, lossless" good off
said_of_net='[(records("header") | map(.features | has("net"), has("drops")) | unique), (events | any(.net)), ([records("flow", "drop")[]] | length > 0), (records("node") | any(has("netdev") or has("softnet") or (.cpus | any(has("netRx")))))] | tojson'
is "on: the network is in header, events, records and node" "$(q on "$said_of_net" | jq -c '.[1:]')" '[true,true,true]'
is "off: the network is nowhere" "$(q off "$said_of_net")" '[[false],false,false,false]'

# ---- A job that runs already

# found NAME: steps of which the flow is known, as a share, and whether one has another's.
found() {
	local got
	got=$(nq "$1" 'attribution($truth) | {n: ([.[]] | add), known: ((.right // 0) / ([.[]] | add)), wrong: (.wrong // 0)} | tojson')
	jq -ne --argjson got "$got" '$got | .n > 200 and .known >= 0.99 and .wrong == 0' >/dev/null || echo "$got" | grep .x
}
late_job() {
	net_args "$1"
	NCCL_PROFILER_PLUGIN=$plugin "$job" "${args[@]}" --ranks 4 --bytes 1M --iters 130 --sleep-us 20000 "${@:2}" >"$tmp/$1.out" 2>/dev/null &
	starter=$!
	until_true 10 children_ready "$starter" 4
	sleep 0.4
}
late_job late
mapfile -t ranks < <(pgrep -P "$starter")
record late -p "${ranks[0]}" -p "${ranks[1]}" -p "${ranks[2]}" -p "${ranks[3]}" -d 1s
wait "$starter"
t "already running: clean" clean late
t "already running: lossless" began_amid late
t "already running: steps have their flows" found late
is "already running: each open socket is found" "$(nq late '(records("flow") | group_by(place) | map({key: (.[0] | place), value: .}) | from_entries) as $all
	| $truth | map($all[place] as $f | [$f[0].why, $f[-1].end]) | unique | tojson')" '[["found",true]]'

late_job began --socket-threads 2
record_bg began
wait "$starter"
stop_recorder INT
t "already running, helper threads: clean" clean began
t "already running, helper threads: lossless" began_amid began
t "already running, helper threads: steps have their flows" found began

finish
