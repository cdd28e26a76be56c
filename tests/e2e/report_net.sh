#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `report` on jobs with faults of the network: the first verdict is the right one, and names the flow. REPS=5
# REPS_OUT=FILE: as often, and what it said. An argument: only the cases that it matches.
. "$(dirname "$0")/net_lib.sh"
. "$(dirname "$0")/report_lib.sh"
only=${1:-.}
wanted() {
	grep -qE "$only" <<<"$1"
}
flow() { # FROM TO: of these ranks, at the sender
	echo "^${ip_of[$1]}:[0-9]+>${ip_of[$2]}:"
}
quiet_net() {
	net_up
	net_record "$1" --ranks 4 --bytes 2M --iters 8
}
with_loss() {
	net_up ${2:+"$1"}
	drop_at "$ns_b" ip saddr "${ip_of[2]}" ip daddr "${ip_of[3]}" meta length ">" 200 numgen random mod 100 "<" 3
	net_record "${!#}" --ranks 4 --bytes 2M --iters 8
}
# In messages from each rank to the next.
with_lost_messages() {
	net_up
	drop_at "$ns_b" ip saddr "${ip_of[2]}" ip daddr "${ip_of[3]}" "tcp flags & syn == 0" meta length ">" 52 numgen random mod 100 "<" 10
	net_record "$1" --ranks 4 --op pipeline --bytes 4K --channels 1 --iters 60 --sleep-us 250000
	as_by_switch "$1"
}
# What is lost last in an operation, TCP notices when the sender's part is over.
with_lost_tails() {
	net_up
	drop_at "$ns_b" ip saddr "${ip_of[2]}" ip daddr "${ip_of[3]}" "tcp flags & syn == 0" meta length ">" 52 numgen random mod 100 "<" 10
	net_record "$1" --ranks 4 --bytes 4K --channels 1 --iters 40 --sleep-us 250000
	as_by_switch "$1"
}
# The same between two ranks that have a communicator of their own as well: for that they come later to what all are in.
with_lost_part() {
	net_up
	drop_at "$ns_b" ip saddr "${ip_of[0]}" ip daddr "${ip_of[3]}" "tcp flags & syn == 0" meta length ">" 52 numgen random mod 100 "<" 10
	net_record "$1" --ranks 4 --split 3 --bytes 4K --channels 1 --iters 40 --sleep-us 250000
	as_by_switch "$1"
}
with_slow_reader() {
	net_up
	set_net tcp_rmem "4096 131072 131072"
	net_record "$1" --ranks 4 --bytes 2M --iters 6 --fault slow-recv:rank=3:us=5000
}
with_small_buffer() {
	net_up 1
	set_net tcp_congestion_control reno && set_net tcp_wmem "4096 16384 16384" &&
		in_net "$ns_a" tc qdisc add dev v0 root tbf rate 20mbit burst 3kb latency 400ms
	net_record "$1" --ranks 2 --channels 1 --bytes 1M --iters 6
}
with_rate() {
	net_up
	in_net "$ns_a" tc qdisc add dev v0 root tbf rate 100mbit burst 64kb latency 400ms
	net_record "$1" --ranks 4 --bytes 2M --iters 6
}
with_queue() {
	net_up 1
	in_net "$ns_a" tc qdisc add dev v0 root tbf rate 50mbit burst 6kb limit 10kb
	net_record "$1" --ranks 4 --bytes 512K --iters 6
}
with_reset() {
	net_up
	net_record "$1" --ranks 4 --bytes 2M --iters 6 --fault reset:rank=2:after=30
}
# A firewall that forgets the connection: the sender's end gets the reset, and the other is told nothing.
with_firewall() {
	net_up
	in_net "$ns_b" nft "add table ip scope; add chain ip scope in { type filter hook input priority 0; };
		add rule ip scope in ip saddr ${ip_of[2]} ip daddr ${ip_of[3]} tcp flags & syn == 0 quota over 5 mbytes reject with tcp reset"
	net_record "$1" --ranks 4 --bytes 2M --iters 6
}
# As over RDMA: the job has two ports open, each of which counts what TCP has to send again in one namespace, how often it waited for
# that until its timer ended, and what comes out of order all the time, as where switches spread packets over several ways. No
# connection of the job is told of.
rdma_up() {
	local i
	for i in 0 1; do
		mkdir -p "$tmp/rdma/dev/infiniband" "$tmp/rdma/sys/class/infiniband_verbs/uverbs$i" "$tmp/rdma/sys/class/infiniband/ib$i/ports/1/hw_counters"
		: >"$tmp/rdma/dev/infiniband/uverbs$i"
		echo "ib$i" >"$tmp/rdma/sys/class/infiniband_verbs/uverbs$i/ibdev"
	done
}
count_again() { # NAMESPACE PORT: the file is there when it returns
	local dir=$tmp/rdma/sys/class/infiniband/$2/ports/1/hw_counters
	# shellcheck disable=SC2016
	ip netns exec "$1" bash -c 'put() { # NAME NUMBER
			printf "%020d\n" "$2" 1<>"$0/$1"
		}
		count() { # FILE PROTOCOL COUNTER NAME
			local names words at
			while read -r -a words; do
				[ "${words[0]}" = "$2:" ] || continue
				for at in "${!names[@]}"; do [ "${names[at]}" != "$3" ] || put "$4" "${words[at]}"; done
				names=("${words[@]}")
			done <"$1"
		}
		for ((i = 0; ; i++)); do
			count /proc/net/snmp Tcp RetransSegs packet_seq_err
			count /proc/net/netstat TcpExt TCPTimeouts local_ack_timeout_err
			put out_of_sequence "$i"
			sleep 0.02
		done' "$dir" &
	counters+=($!)
	until_true 10 [ -s "$dir/out_of_sequence" ]
}
by_rdma() { # NAME JOB-OPTION...
	local counters=()
	rdma_up && count_again "$ns_a" ib0 && count_again "$ns_b" ib1 || return
	record_opts="--rdma-root $tmp/rdma" net_record "$@" 7<"$tmp/rdma/dev/infiniband/uverbs0" 8<"$tmp/rdma/dev/infiniband/uverbs1"
	kill "${counters[@]}"
	wait "${counters[@]}" 2>/dev/null
	without_flows "$1" "$1"
}
quiet_rdma() {
	net_up
	by_rdma "$1" --ranks 4 --bytes 2M --iters 8
}
with_rdma_loss() {
	net_up
	drop_at "$ns_b" ip saddr "${ip_of[2]}" ip daddr "${ip_of[3]}" "tcp flags & syn == 0" meta length ">" 52 numgen random mod 100 "<" 8
	by_rdma "$1" --ranks 4 --bytes 4K --channels 1 --iters 40 --sleep-us 250000
}
# What goes wrong is not the ports' doing, who count as always.
with_rdma_late() {
	net_up
	by_rdma "$1" --ranks 4 --bytes 2M --iters 40 --fault late:rank=1:ms=300:every=10
}

wanted clean-net && faults_blind clean-net none '.*' '.*' quiet_net
wanted loss && faults_blind loss net-loss 2 "$(flow 2 3)" with_loss
wanted large && faults large-loss net-loss 2 "$(flow 2 3)" with_loss 1
wanted messages && faults_blind messages net-loss 2 "$(flow 2 3)" with_lost_messages
wanted tails && faults tails net-loss 2 "$(flow 2 3)" with_lost_tails
wanted part && faults part net-loss 0 "$(flow 0 3)" with_lost_part
# What is told of the part, from its first operations on, is not told again.
wanted part && t "part: nobody came late for that" eval \
	'jq -e "[.slow[] | select(.code == \"late-rank\" and .seq > 5 and .duration > 150000)] == []" "$tmp/part.report"'
wanted reader && faults reader receiver-limited 3 "$(flow 2 3)" with_slow_reader
wanted sndbuf && faults sndbuf sender-limited 0 "$(flow 0 1)" with_small_buffer
wanted rate && faults_blind rate bandwidth-limited '0|2' "^10.213.9.[13]:.*>10.213.9.[24]:" with_rate
wanted queue && faults queue net-loss '0|2' "^10.213.9.[13]:.*>10.213.9.[24]:" with_queue
wanted rdma-clean && faults rdma-clean none '.*' '.*' quiet_rdma
wanted rdma-loss && faults rdma-loss rdma-loss - '^ib0:1_on_' with_rdma_loss
wanted rdma-late && faults rdma-late late-rank 1 '.*' with_rdma_late
# Who resets its own connection, and then exits for it, has failed first: what tells of either end is right.
wanted reset && faults reset 'connection-reset|missing-collective' '2|3|1' '^(10|-)' with_reset
wanted firewall && faults firewall connection-reset 2 "$(flow 2 3)" with_firewall
finish
