# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Shared by the tests of the network's context, which source it: two network namespaces that a veth pair joins,
# a job with its ranks in both, and the other accounts of what went over its connections: the stand-in's,
# the kernel's of a namespace, ss, nft and tc.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for tool in ip ss nft tc taskset; do
	command -v $tool >/dev/null || skip_all "needs $tool"
done

ns_a=scope-$$-a
ns_b=scope-$$-b
ip_of=(10.213.9.1 10.213.9.2 10.213.9.3 10.213.9.4)
binds=$(IFS=, && echo "${ip_of[*]}")

net_down() {
	ip netns del "$ns_a"
	ip netns del "$ns_b"
} 2>/dev/null
trap 'cleanup; net_down' EXIT

# net_up [SEGMENTS]: new ones. Even ranks are in the first, odd ones in the second, each with an address of its
# own; SEGMENTS is the most that one packet may have before it is cut. A busy machine makes TCP
# send tail segments again that need not be; not here, where each is counted.
# shellcheck disable=SC2120
net_up() {
	local ns
	net_down
	ip netns add "$ns_a" && ip netns add "$ns_b" &&
		ip link add v0 netns "$ns_a" type veth peer name v1 netns "$ns_b" || return
	for ns in "$ns_a" "$ns_b"; do
		ip -n "$ns" link set lo up
		in_net "$ns" sh -c 'echo 0 >/proc/sys/net/ipv4/tcp_early_retrans'
	done
	ip -n "$ns_a" addr add "${ip_of[0]}/24" dev v0 && ip -n "$ns_a" addr add "${ip_of[2]}/24" dev v0 &&
		ip -n "$ns_b" addr add "${ip_of[1]}/24" dev v1 && ip -n "$ns_b" addr add "${ip_of[3]}/24" dev v1 &&
		ip -n "$ns_a" link set v0 up ${1:+gso_max_segs "$1"} &&
		ip -n "$ns_b" link set v1 up ${1:+gso_max_segs "$1"}
}

in_net() {
	ip netns exec "$@"
}
inode_of() {
	stat -Lc %i "/run/netns/$1"
}
# set_net NAME VALUE: of TCP, in both.
set_net() {
	in_net "$ns_a" sh -c 'echo "$2" >"/proc/sys/net/ipv4/$1"' sh "$@" &&
		in_net "$ns_b" sh -c 'echo "$2" >"/proc/sys/net/ipv4/$1"' sh "$@"
}

if ! net_up 2>"$tmp/net_up"; then
	skip_all "needs network namespaces and veth: $(head -n 1 "$tmp/net_up")"
fi

# On one CPU packets do not overtake each other on the way through the kernel, which TCP would take for a loss.
cpu=$(taskset -pc $$ | sed 's/.*[ ,-]//')

# net_args NAME: options of a job with its ranks in the namespaces, and its sockets in $tmp/NAME.flows.
net_args() {
	rm -f "$tmp/$1.flows"
	args=(--json --no-check --netns "$ns_a,$ns_b" --bind "$binds" --flows "$tmp/$1.flows")
}
# net_record NAME JOB-OPTION...: record it, on one CPU.
net_record() {
	local name=$1
	shift
	net_args "$name"
	# shellcheck disable=SC2086
	record "$name" ${record_opts:-} -- taskset -c "$cpu" "$job" "${args[@]}" "$@"
}

# nq NAME FILTER [ARG...]: as q, without states and with the job's sockets as $truth; net.jq is included.
nq() {
	local name=$1 filter=$2
	shift 2
	[ -s "$tmp/$name.flows" ] || echo "the job told of no socket"
	cat "$tmp/$name"/*.jsonl | grep -v '^{"recordType":"state"' | jq -L "$here" -sr --slurpfile truth "$tmp/$name.flows" "$@" \
		"include \"trace\"; include \"net\"; $filter"
}
nfacts() {
	local name=$1 filter=$2
	shift 2
	nq "$name" "$filter | tojson" "$@" >"$tmp/facts"
}

# look FILTER: at these.
look() {
	jq -c "$1" "$tmp/facts"
}

# retrans_of NS: segments that the namespace has sent again.
retrans_of() {
	in_net "$1" cat /proc/net/snmp | awk '$1 == "Tcp:" { if (col) { print $col; exit }
		for (i = 2; i <= NF; i++) if ($i == "RetransSegs") col = i }'
}

# drop_at NS RULE...: what the rule matches is dropped where it comes in, and counted. dropped_at NS tells how many.
drop_at() {
	local ns=$1
	shift
	in_net "$ns" nft "add table ip scope; add chain ip scope in { type filter hook input priority 0; };
		add rule ip scope in $* counter drop"
}
dropped_at() {
	in_net "$1" nft list table ip scope | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'
}

# as_by_switch NAME: its traces as if a switch had dropped what was dropped, of which no node's kernel tells.
as_by_switch() {
	sed -i -E '/^\{"recordType":"drop"/d; s/,"drops":\[[^]]*\]//; /^\{"recordType":"footer"/s/"drop":[0-9]+/"drop":0/' "$tmp/$1"/trace_*.jsonl
}

# ss_json: sockets that are established in both, an object each.
ss_json() {
	local ns
	for ns in "$ns_a" "$ns_b"; do
		in_net "$ns" ss -tinHO state established | awk -v netns="$(inode_of "$ns")" '{
			printf "{\"netns\":%s,\"flow\":\"%s>%s\"", netns, $3, $4
			for (i = 5; i <= NF; i++) {
				n = split($i, kv, ":")
				if (n == 2 && kv[1] ~ /^(rtt|minrtt|cwnd|mss|bytes_sent|bytes_acked|bytes_received|bytes_retrans|busy|rwnd_limited|sndbuf_limited|rcv_ooopack|dsack_dups)$/)
					printf ",\"%s\":%s", kv[1], kv[2] + 0
				else if (kv[1] == "retrans") {
					sub(".*/", "", kv[2])
					printf ",\"retrans\":%s", kv[2] + 0
				}
			}
			print "}" }'
	done
}

# below A B: A is a number, and no more than B.
below() {
	jq -ne --argjson a "${1:-null}" --argjson b "${2:-null}" '($a | type) == "number" and ($b | type) == "number" and $a <= $b' >/dev/null && return
	echo "$1 is more than $2"
	return 1
}
above() { below "$2" "$1"; }
between() { below "$1" "$3" && below "$2" "$1"; }
