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
wanted reset && faults reset connection-reset '2|3|1' '^10' with_reset
finish
