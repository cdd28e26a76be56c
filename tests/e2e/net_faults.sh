#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A network that is kept from its work in ways that are known: the trace names the right cause on the right
# flow, and how much it was by the account of the kernel, of nft and of tc.
. "$(dirname "$0")/net_lib.sh"

# Of the flow from rank 2 to rank 3, and of the other senders': the last record of all their sockets, summed.
limits='(sockets($truth) | map(select(.isSend and .seen))) as $senders | def figures: {n: length, retrans: sum(.seen.retrans), lost: sum(.seen.lost), busy: sum(.seen.busy),
		rwnd: share(sum(.seen.rwndLimited); sum(.seen.busy)), sndbuf: share(sum(.seen.sndbufLimited); sum(.seen.busy)), rtt: (map(.seen.tcp.rtt) | max)};
	{it: ($senders | sends(2; 3) | figures), others: ($senders | but(.src == 2) | figures), n: ($truth | length), drops: records("drop") | length}'
# as_tcp_info NAME: how long senders were busy and limited, as the sockets said themselves when they were closed.
# That takes a FIN, which may be acknowledged late.
as_tcp_info() {
	same "$(nq "$1" 'sockets($truth) | map(select(.isSend)) | but(.seen and near(.seen.busy; .tcp.busy; 0.05; 60000) and near(.seen.rwndLimited; .tcp.rwndLimited; 0.05; 20000)
		and near(.seen.sndbufLimited; .tcp.sndbufLimited; 0.05; 20000) and .seen.retrans == .tcp.retrans)
		| [length, (.[:3][] | {flow, tcp, seen: (.seen | {why, busy, rwndLimited, sndbufLimited, retrans}?)})] | tojson')" "[0]"
}
# functions_read NAME: how often all of them were, which takes a CPU for tens of milliseconds. Of a recording with -v.
functions_read() {
	grep -c "debug: Functions of the kernel" "$tmp/$1.err"
}
# small NAME KEY...: facts that are no more than 0.2.
small() {
	local key
	for key in "$@"; do
		below "$(fact "$key")" 0.2 || return
	done
}

# ---- (g) Nothing

record_opts=-v
net_record clean --ranks 4 --bytes 2M --iters 6 --linger-ms 300
record_opts=''
t "nothing: right, clean, lossless" good clean
is "nothing: the kernel sent nothing again" "$(retrans_of "$ns_a") $(retrans_of "$ns_b")" "0 0"
nfacts clean "$limits + {steps: (events | map(select(.net)) | sum(.net.retrans) + sum(.net.lost) + sum(.net.rxOoo) + sum(.net.drops | length))}"
is "nothing: no flow did" "$(look '[.it, .others | .n, .retrans, .lost]')" '[2,0,0,6,0,0]'
is "nothing: no drops" "$(fact drops)" 0
is "nothing: no event tells of any" "$(fact steps)" 0
is "nothing: and nobody reads the names of all functions of the kernel" "$(functions_read clean)" 0
t "nothing: busy and limits are the kernel's" as_tcp_info clean
clean_rtt=$(fact it.rtt) clean_busy=$(fact it.busy)

# ---- (a) Loss at the receiver

# Of packets with data from rank 2 to rank 3. loss NAME LEAST MOST: retransmits of the flow by the namespace's account.
loss() {
	local name=$1 retrans dropped
	net_up ${4:+"$4"}
	drop_at "$ns_b" ip saddr "${ip_of[2]}" ip daddr "${ip_of[3]}" meta length ">" 200 numgen random mod 100 "<" 3
	net_record "$name" --ranks 4 --bytes 2M --iters 6 --linger-ms 400
	retrans=$(retrans_of "$ns_a") dropped=$(dropped_at "$ns_b")
	t "$name: right, clean, lossless" good "$name"
	t "$name: packets were dropped" above "$dropped" 5
	nfacts "$name" '(sockets($truth) | sends(2; 3) | map(.flow)) as $flows | steps as $steps | ops as $ops | INDEX($truth[]; place) as $by | {
		total: ([flow_ends[] | select(.netns == $a)] | sum(.retrans)), on: ([flow_ends[] | select(.flow | IN($flows[]))] | sum(.retrans)), all: ([flow_ends[]] | sum(.retrans)),
		lost: ([flow_ends[] | select(.flow | IN($flows[]))] | sum(.lost)), n: ($flows | length), resent: ([records("flow")[] | .resent // [] | .[].n] | add),
		rx: ($steps | map(select(.rank == 3 and .isSend == false)) | [any(.net.rxOoo > 0), any(.net.peer.retrans > 0), any(.net.rxOoo > 0 and .net.peer.retrans > 0)]),
		rx_others: ($steps | map(select(.rank != 3)) | sum(.net.rxOoo)),
		ooo_ops: ($ops | map(select(.rank == 3 and .isSend == false)) | sum(.net.rxOoo)), ooo: ([flow_ends[] | select(.flow | turned | IN($flows[]))] | sum(.rxOoo)),
		tx_ops: ($ops | map(select(.rank == 2 and .isSend)) | sum(.net.retrans)), tx_others: ($ops | map(select((.rank == 2 and .isSend) | not)) | sum(.net.retrans)),
		colls: [(events | of("Coll"))[] | {rank, retrans: .net.retrans, rxOoo: .net.rxOoo} | select(.retrans > 0 or .rxOoo > 0) | .rank] | unique,
		drops: (records("drop") | group_by(.dir) | map([.[0].dir, sum(.n), (map(.reason, (if .dir == "rx" then .flow | turned else .flow end | IN($flows[]))) | unique)])),
		in_steps: ($steps | map(select(.rank == 3 and .isSend == false)) | any(.net.drops[0].reason == "NETFILTER_DROP"))}' --argjson a "$(inode_of "$ns_a")"
	t "$name: retransmits are those of the namespace ($retrans)" between "$(fact total)" "$(jq -n "$retrans * $2")" "$(jq -n "$retrans * $3")"
	is "$name: all of them on the flows of rank 2 to rank 3" "$(look '[.n, .on == .all]')" '[2,true]'
	is "$name: when is told of each" "$(fact resent)" "$(fact total)"
	t "$name: TCP deems segments of these lost" above "$(fact lost)" 1
	is "$name: steps that rank 3 receives: out of order, and sent again by the peer" "$(fact rx)" '[true,true,true]'
	is "$name: nobody else's steps" "$(fact rx_others)" 0
	t "$name: out of order, of operations most of the flow's" between "$(fact ooo_ops)" "$(look .ooo*0.7)" "$(look .ooo*1.1)"
	t "$name: sent again within rank 2's operations, most of it" between "$(fact tx_ops)" "$(look .on*0.5)" "$(look .on*1.1)"
	is "$name: within nobody else's" "$(fact tx_others)" 0
	is "$name: Colls of ranks 2 and 3 tell of it" "$(fact colls)" '[2,3]'
	is "$name: drops of that flow at both ends, as many as nft counts" "$(fact drops)" \
		"[[\"rx\",$dropped,[true,\"NETFILTER_DROP\"]],[\"tx\",$dropped,[true,\"NETFILTER_DROP\"]]]"
	is "$name: steps of rank 3 name the reason" "$(fact in_steps)" true
	t "$name: busy and limits are the kernel's" as_tcp_info "$name"
}
loss "loss of packets" 1 1 1
loss "loss of large packets" 0.98 1.02

# ---- Loss before the recording, and in it

# again: what both namespaces have sent again.
again() {
	echo $(($(retrans_of "$ns_a") + $(retrans_of "$ns_b")))
}
# lose N: as many segments again, by loss that is over then.
lose() {
	local until=$(($(again) + $1))
	drop_at "$ns_b" ip daddr "${ip_of[1]}" meta length ">" 200 numgen random mod 100 "<" 3
	until_true 20 eval "[ \$(again) -gt $until ]"
	in_net "$ns_b" nft delete table ip scope
	sleep 1.5
}
status_tells() {
	told=$("$scope" status --json | jq '[.recorders[].processes[].net.retrans // 0] | add')
	between "$told" $((last - begun)) $(($(again) - first))
}
net_up
net_args old
NCCL_PROFILER_PLUGIN=$plugin taskset -c "$cpu" "$job" "${args[@]}" --ranks 2 --bytes 1M --iters 1000000 --sleep-us 5000 >"$tmp/old.out" 2>"$tmp/old.job-err" &
starter=$!
ranks_of 2
lose 200
first=$(again)
record_bg old -p "${ranks[0]}" -p "${ranks[1]}"
sleep 0.5
begun=$(again)
lose 20
last=$(again)
t "loss before: status tells of what was sent again since ($first, then $((last - begun)))" until_true 20 status_tells
kill_job
until_true 10 ended "$recorder" || stop_recorder INT
told=$(sed -n 's/^  \([0-9]*\) segments* .* dropped on this.*/\1/p' "$tmp/old.err")
t "loss before: so does the summary" between "$told" $((last - begun)) $(($(again) - first))

# ---- (b) A slow reader

net_up
set_net tcp_rmem "4096 131072 131072"
net_record reader --ranks 4 --bytes 2M --iters 4 --linger-ms 300 --fault slow-recv:rank=3:us=5000
t "slow reader: right, clean, lossless" good reader
nfacts reader "$limits + {steps: (steps | map(select(.rank == 2 and .isSend))) | {rwnd: share(sum(.net.rwndLimited); sum(.net.busy))}}"
t "slow reader: its window is what limits the flow" above "$(fact it.rwnd)" 0.5
t "slow reader: not the sender's buffer" below "$(fact it.sndbuf)" 0.2
is "slow reader: nothing lost or sent again, or dropped" "$(look '[.it.lost, .it.retrans, .drops]')" '[0,0,0]'
t "slow reader: nobody else is kept busy as long" below "$(fact others.busy)" "$(fact it.busy)"
t "slow reader: the sender's steps say so" above "$(fact steps.rwnd)" 0.5
t "slow reader: busy and limits are the kernel's" as_tcp_info reader

# ---- (c) A small send buffer

# Much of the time all of what it takes is on its way: by a slow device that takes all of it.
net_up 1
if set_net tcp_congestion_control reno 2>/dev/null && set_net tcp_wmem "4096 16384 16384" &&
	in_net "$ns_a" tc qdisc add dev v0 root tbf rate 20mbit burst 3kb latency 400ms; then
	net_record sndbuf --ranks 2 --channels 1 --bytes 1M --iters 4 --linger-ms 300
	t "small send buffer: right, clean, lossless" good sndbuf
	nfacts sndbuf '(steps | map(select(.rank == 0 and .isSend))) as $steps | sockets($truth) | sends(0; 1) | map(.seen)[0] | {noRoom: share($steps | sum(.net.noRoom); $steps | sum(.duration)), busy, sndbuf: share(.sndbufLimited; .busy), rwnd: share(.rwndLimited; .busy), lost, retrans}'
	t "small send buffer: it is what limits the flow" above "$(fact sndbuf)" 0.3
	t "small send buffer: the sender's steps find no room" above "$(fact noRoom)" 0.1
	t "small send buffer: not the window" below "$(fact rwnd)" 0.1
	is "small send buffer: nothing lost or sent again" "$(look '[.lost, .retrans]')" '[0,0]'
	t "small send buffer: busy and limits are the kernel's" as_tcp_info sndbuf
else
	skip "small send buffer" "takes tc's tbf, and reno in a network namespace"
fi

# ---- (d) A rate limit

net_up
if in_net "$ns_a" tc qdisc add dev v0 root tbf rate 100mbit burst 64kb latency 400ms; then
	net_record rate --ranks 4 --bytes 2M --iters 4 --linger-ms 300
	t "rate limit: right, clean, lossless" good rate
	nfacts rate "$limits"
	t "rate limit: the flow's rtt rises" above "$(fact it.rtt)" "$(jq -n "[3 * $clean_rtt, 1000] | max")"
	t "rate limit: and how long it is busy" above "$(fact it.busy)" "$(jq -n "[3 * $clean_busy, 100000] | max")"
	t "rate limit: neither window nor send buffer" small it.rwnd it.sndbuf
	is "rate limit: nothing lost or sent again, or dropped" "$(look '[.it.lost, .it.retrans, .drops]')" '[0,0,0]'
	t "rate limit: busy and limits are the kernel's" as_tcp_info rate
else
	skip "rate limit" "takes tc's tbf"
fi

# ---- (e) A queue that is full

net_up 1
if in_net "$ns_a" tc qdisc add dev v0 root tbf rate 50mbit burst 6kb limit 10kb; then
	record_opts=-v
	net_record queue --ranks 4 --bytes 512K --iters 4 --linger-ms 300
	record_opts=''
	dropped=$(in_net "$ns_a" tc -s qdisc show dev v0 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')
	t "full queue: right, clean, lossless" good queue
	t "full queue: packets were dropped" above "$dropped" 20
	# Not those of connections that nobody has seen to begin yet.
	nfacts queue '($truth | map({key: .flow, value: .netns}) | from_entries) as $by | records("drop") | {reasons: (map(.reason | sub("_.*"; "")) | unique),
		tx: (map(select(.dir == "tx")) | sum(.n)), rx: (map(select(.dir == "rx")) | sum(.n)),
		named: all(.where | test("^[a-z_]")), strangers: (map(select($by[.flow] and ($by[.flow] == $a) != (.dir == "tx"))) | length)}' --argjson a "$(inode_of "$ns_a")"
	t "full queue: as many drops as tc counts ($dropped), to the sender" between "$(fact tx)" "$(jq -n "$dropped * 0.98")" "$dropped"
	t "full queue: and to the receiver" between "$(fact rx)" "$(jq -n "$dropped * 0.98")" "$dropped"
	is "full queue: with the reason, at the right ends" "$(look '[.reasons, .strangers]')" '[["QDISC"],0]'
	is "full queue: in functions that have names, asked for one by one" "$(look '[.named]') $(functions_read queue)" '[true] 0'
else
	skip "full queue" "takes tc's tbf"
fi

# ---- (f) A reset in the middle of a collective

net_up
begin=$SECONDS
net_record reset --ranks 4 --bytes 2M --iters 4 --fault reset:rank=2:after=30
is "reset: the job fails" "$rc $(said reset .ok)" "1 false"
t "reset: and ends" below $((SECONDS - begin)) 15
t "reset: clean" clean reset
t "reset: lossless" lossless reset
nfacts reset '($truth | map(select(.tcp == null).flow)) as $cut | [records("flow") | group_by(place)[] | {flow: .[0].flow, whys: map(.why), end: .[-1].end}] | {
	n: ($cut | length), sent: [.[] | select(.flow | IN($cut[])) | .whys | any(. == "reset-out")], got: [.[] | select(.flow | turned | IN($cut[])) | .whys | any(. == "reset-in")],
	open: map(select(.end != true)) | length}'
is "reset: who sends it, and who gets it, of one connection" "$(look '[.n, .sent, .got]')" '[1,[true],[true]]'
is "reset: each flow has its end" "$(fact open)" 0
t "reset: the operations that it ended are there, unfinished" holds reset '[events[] | select(.unfinished)] | length > 0'

finish
