#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# RDMA counters of real devices: soft-RoCE (rxe) on both ends of a veth, and ibv_rc_pingpong between them. Runs in
# a kernel that has rdma_rxe: make check-vm-rdma. What the kernel's own files say before and after is the oracle.
#
# First by build/tests/vm/rdma_watch, which does nothing else: every counter, and who has a device open. Then by
# `record`, in the node records of a job.
. "$(dirname "$0")/../e2e/lib.sh"
watch=$build/tests/vm/rdma_watch
export PATH=$PATH:/usr/sbin:/sbin

# Routes are changed below, and not put back.
grep -q '^root / overlay ' /proc/mounts || skip_all "is for the machine that tests/vm/run.sh makes only: make check-vm-rdma"
for tool in ibv_rc_pingpong rdma ip tc modprobe "$watch"; do
	command -v "$tool" >/dev/null || skip_all "needs $tool"
done

# Modules lie where the kernel was unpacked to (tests/vm/kernel.sh), or in their usual place.
for root in "$build"/vm/*/root / ""; do
	[ ! -d "$root/lib/modules/$(uname -r)" ] || break
done
modprobe -d "${root:-/}" -a rdma_rxe ib_uverbs veth sch_netem 2>"$tmp/modprobe" ||
	skip_all "this kernel has no soft-RoCE: $(head -n 1 "$tmp/modprobe")"
modprobe -d "${root:-/}" crc32_generic 2>/dev/null # rxe asks the kernel for it, which knows the usual place only

# ---- Two devices

# In one namespace, with the local table asked last, so that traffic between the two leaves by the veth.
wire() {
	local name
	ip link add v0 type veth peer name v1
	ip addr add 10.8.0.1/32 dev v0
	ip addr add 10.8.0.2/32 dev v1
	ip link set v0 up
	ip link set v1 up
	for name in all v0 v1; do
		echo 1 >/proc/sys/net/ipv4/conf/$name/accept_local
		echo 0 >/proc/sys/net/ipv4/conf/$name/rp_filter
	done
	ip route add 10.8.0.2 dev v0 src 10.8.0.1
	ip route add 10.8.0.1 dev v1 src 10.8.0.2
	ip rule add pref 100 iif v0 lookup local
	ip rule add pref 101 iif v1 lookup local
	ip rule add pref 40000 lookup local
	ip rule del pref 0
	rdma link add r0 type rxe netdev v0
	rdma link add r1 type rxe netdev v1
}

# gid DEVICE ADDRESS: the index of that IPv4 address (in hex) among the device's.
gid() {
	grep -l ":ffff:$2\$" /sys/class/infiniband/"$1"/ports/1/gids/* 2>/dev/null | head -n 1 | sed 's|.*/||'
}

devices_up() {
	[ -n "$(gid r0 0a08:0001)" ] && [ -n "$(gid r1 0a08:0002)" ] &&
		[ -c /dev/infiniband/uverbs0 ] && [ -c /dev/infiniband/uverbs1 ] &&
		grep -q ACTIVE /sys/class/infiniband/r0/ports/1/state &&
		grep -q ACTIVE /sys/class/infiniband/r1/ports/1/state
}

uverbs_of() {
	grep -lx "$1" /sys/class/infiniband_verbs/*/ibdev | cut -d/ -f5
}

listening() { # port 18515
	grep -qE '^ *[0-9]+: [0-9A-F]+:4853 [0-9A-F]+:0000 0A' /proc/net/tcp /proc/net/tcp6
}

serve() { # ITERATIONS; $server
	ibv_rc_pingpong -d r1 -g "$(gid r1 0a08:0002)" -n "$1" -s 4096 >"$tmp/server" 2>&1 &
	server=$!
	until_true 30 listening
}

# play ITERATIONS: that many messages of 4 packets each way. The server may wait in vain for the acknowledgement of
# its last one, if that is lost: the client does not wait for it to have that.
play() {
	serve "$1" &&
		timeout 60 ibv_rc_pingpong -d r0 -g "$(gid r0 0a08:0001)" -n "$1" -s 4096 localhost >"$tmp/client" 2>&1
	rc=$?
	until_true 10 ended "$server" || kill "$server"
	wait "$server" 2>/dev/null
	[ $rc = 0 ] || tail -n 3 "$tmp/client" "$tmp/server"
	return $rc
}

# ---- Counters, by the kernel and by us

# What the files say, as rdma_watch names it.
counters() {
	local device
	for device in r0 r1; do
		(cd /sys/class/infiniband/$device/ports/1 && grep -H '^[0-9]*$' hw_counters/* counters/* 2>/dev/null) |
			sed "s/^/$device /"
	done | jq -R 'capture("(?<device>\\S+) (?<folder>\\w+)/(?<name>\\w+):(?<n>.*)") | .n |= tonumber' | jq -s .
}

# moved BEFORE AFTER: what watch_end has to print.
moved() {
	jq -c --slurpfile after "$2" '[[., $after[0]] | transpose[] | select(.[0].name != "lifespan")
		| select(.[0].n != .[1].n) | .[0] + {n: (.[1].n - .[0].n)}]
		| group_by(.device) | map({device: .[0].device, port: 1, counters: (
			(map(select(.folder == "counters")) | map({(.name): .n}) | add // {}) as $pma
			| map(select(.folder == "hw_counters") | {((if $pma[.name] then "hw_" else "" end) + .name): .n})
			| (add // {}) + $pma)})' "$1"
}

watch_begin() { # NAME PID
	"$watch" "$2" >"$tmp/$1" 2>"$tmp/$1.cost" &
	watcher=$!
	until_true 10 grep -q ready "$tmp/$1"
}

watch_end() { # NAME
	kill "$watcher"
	wait "$watcher"
	rc=$?
	sed -i /ready/d "$tmp/$1"
	sed 's/^/# /' "$tmp/$1.cost"
}

# observed NAME ITERATIONS: plays while a process that has both devices open is watched.
observed() {
	sleep 120 4<"/dev/infiniband/$(uverbs_of r0)" 5<"/dev/infiniband/$(uverbs_of r1)" &
	holder=$!
	t "$1: a process with both devices is seen" watch_begin "$1" $holder
	counters >"$tmp/before"
	t "$1: $2 ping-pongs" play "$2"
	counters >"$tmp/after"
	watch_end "$1"
	is "$1: the watch ended well" $rc 0
	kill $holder
	is "$1: all counters, as the kernel's files have them" "$(jq -cS 'sort_by(.device)' "$tmp/$1")" \
		"$(moved "$tmp/before" "$tmp/after" | jq -cS .)"
	jq -c '.[]' "$tmp/$1" | sed 's/^/# /'
}

# of NAME DEVICE COUNTER
of() {
	jq "[.[] | select(.device == \"$2\").counters.$3][0] // 0" "$tmp/$1"
}

more() { # GOT THAN
	[ "$1" -gt "$2" ] && return
	echo "$1 is not more than $2"
	return 1
}

who() { # PID
	"$watch" --devices "$1" | tr '\n' ' '
}

# ---- Cases

ready() {
	wire
	until_true 20 devices_up && return
	ip -br addr
	rdma link
	ls -l /dev/infiniband /sys/class/infiniband
	head /sys/class/infiniband/*/ports/1/{state,gids/[0-3]}
	return 1
}
t "soft-RoCE on both ends of a veth" ready
[ $failed = 0 ] || finish

observed clean 200
for device in r0 r1; do
	is "clean: $device sent its messages" "$(of clean $device rdma_sends)" 200
	t "clean: $device sent at least 4 packets for each" more "$(of clean $device sent_pkts)" 799
done
is "clean: what r0 sent r1 received" "$(of clean r1 rcvd_pkts)" "$(of clean r0 sent_pkts)"
is "clean: what r1 sent r0 received" "$(of clean r0 rcvd_pkts)" "$(of clean r1 sent_pkts)"

tc qdisc add dev v0 root netem loss 5%
observed loss 300
tc qdisc del dev v0 root
t "loss: r1 misses packets" more "$(of loss r1 out_of_seq_request)" 0
t "loss: r0 is told so" more "$(of loss r0 rcvd_seq_err)" 0
t "loss: more packets than without" more "$(of loss r0 sent_pkts)" $((300 * 4))

# Who has which device open. The server waits for its client.
is "who: nobody" "$(who $$)" ""
t "who: a server starts" serve 1
is "who: the server" "$(who "$server")" "r1 "
kill "$server"
wait "$server" 2>/dev/null

# In a container, the device lies elsewhere; a file of its name is none.
mkdir -p "$tmp/box/dev/infiniband" "$tmp/fake/dev/infiniband"
: >"$tmp/fake/dev/infiniband/uverbs0"
sleep 60 4<"$tmp/fake/dev/infiniband/uverbs0" &
is "who: a file of that name" "$(who $!)" ""
kill $!
name=$(uverbs_of r0)
number=$(cat "/sys/class/infiniband_verbs/$name/dev")
unshare -m bash -c "mount -t tmpfs none '$tmp/box/dev' && mkdir '$tmp/box/dev/infiniband' &&
	mknod '$tmp/box/dev/infiniband/$name' c ${number/:/ } && exec sleep 60 4<'$tmp/box/dev/infiniband/$name'" &
is_r0() {
	[ "$(who "$1")" = "r0 " ]
}
t "who: a process in a container" until_true 10 is_r0 $!
kill $!

# ---- record

# A job that has r0 open, as what its shell has open, and counts nothing itself.
job_files() {
	grep -ls "$1" "$tmp"/job/*.jsonl | wc -l
}
seen() {
	[ "$(job_files '"rdma":\[\]')" = 2 ]
}
# Two more node records of each: the first may have begun before.
rested() {
	local file
	for file in "$tmp"/job/*.jsonl; do
		[ "$(grep -c '"recordType":"node"' "$file")" -ge $(($(wc -l <"$file.then") + 2)) ] || return 1
	done
}
sums='map(select(.recordType == "node").rdma // [] | .[]) | group_by([.device, .port]) | map({device: .[0].device, port: .[0].port,
	counters: (map(.counters | to_entries[]) | group_by(.key) | map({key: .[0].key, value: (map(.value) | add)}) | from_entries)})'
recorded() {
	local file
	record_bg job
	job_bg job --ranks 2 --channels 1 --bytes 64K --iters 2 --linger-ms 600000 4<"/dev/infiniband/$(uverbs_of r0)"
	t "record: a job with r0 open is seen" until_true 60 seen
	counters >"$tmp/before"
	t "record: $1 ping-pongs" play "$1"
	counters >"$tmp/after"
	for file in "$tmp"/job/*.jsonl; do
		grep '"recordType":"node"' "$file" >"$file.then"
	done
	t "record: it goes on" until_true 60 rested
	stop_recorder INT
	kill -KILL "$starter"
	is "record: it ended well" $rc 0
	t "record: check finds nothing" clean job
	for file in "$tmp"/job/*.jsonl; do
		is "record: r0's counters in node records, and nothing of r1" "$(jq -scS "$sums" "$file")" \
			"$(moved "$tmp/before" "$tmp/after" | jq -cS 'map(select(.device == "r0"))')"
	done
	jq -sc "$sums | .[]" "$file" | sed 's/^/# /'
	"$scope" report --json "$tmp/job" >"$tmp/report"
	is "report: the same, once for both ranks" "$(jq -cS '.rdmaPorts | map([.port, .counters])' "$tmp/report")" \
		"$(moved "$tmp/before" "$tmp/after" | jq -cS 'map(select(.device == "r0") | ["r0:1", .counters])')"
	t "report: that it had trouble" eval '"$scope" report "$tmp/job" | grep -A 1 "^RDMA ports that had trouble: 1 of 1" | grep "r0:1 .*rcvd_seq_err [1-9]"'
}
tc qdisc add dev v0 root netem loss 5%
recorded 100
tc qdisc del dev v0 root

# ---- Gone

# The device goes while it is watched: what it had counted is told.
sleep 60 4<"/dev/infiniband/$(uverbs_of r0)" &
holder=$!
t "gone: it is seen" watch_begin gone $holder
t "gone: it counts" play 20
sleep 0.3 # a sample
kill $holder
wait $holder 2>/dev/null
t "gone: it goes" rdma link delete r0
sleep 1.2 # a look at what is there
watch_end gone
is "gone: the watch ended well" $rc 0
is "gone: what it had counted" "$(of gone r0 rdma_sends)" 20

finish
