#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The stand-in for NCCL against itself: results of every collective, counts against the formulas of
# NCCL 2.28.9, order of callbacks (logplugin.c judges), every API version, faults. No root, no GPU.
# Usage: selftest.sh [BUILD DIR] [NAME PATTERN]

build=${1:-build}
pattern=${2:-.}
job=$build/standin/scope-job
plugin=$(realpath "$build/standin/libnccl-profiler-logplugin.so")
tmp=$(mktemp -d)
failed=0
a=standin-$$-a b=standin-$$-b # network namespaces
cleanup()
{
	rm -rf "$tmp"
	ip netns del $a 2>/dev/null
	ip netns del $b 2>/dev/null
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP
export NCCL_PROFILER_PLUGIN=none LC_ALL=C

[ -x "$job" ] && [ -e "$plugin" ] || {
	echo "Failed to find '$job': build it first (make)" >&2
	exit 1
}

# Runs one test function with its name and its arguments; what it prints is shown if it fails.
t()
{
	local name=$1
	shift
	[[ $name =~ $pattern ]] || return 0
	rm -f "$tmp"/log "$tmp"/out "$tmp"/err
	if "$@" >"$tmp/say" 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name"
		sed 's/^/# /' "$tmp/say" "$tmp/err" 2>/dev/null | head -40
		failed=1
	fi
}

# The job alone, result in $tmp/out.
run()
{
	timeout 100 "$job" --json --timeout 60 "$@" >"$tmp/out" 2>"$tmp/err"
}

# The job under the counting plugin; one line per process in $tmp/log.
prof()
{
	rm -f "$tmp/log"
	NCCL_PROFILER_PLUGIN=$plugin LOGPLUGIN_OUT=$tmp/log run "$@"
}

# Every process has these counts: field=value ...
each()
{
	local want line n=0
	while read -r line; do
		n=$((n + 1))
		for want in "$@"; do
			[[ " $line " == *" $want "* ]] || {
				echo "want $want in: $line"
				return 1
			}
		done
	done <"$tmp/log"
	[ "$n" -gt 0 ] || { echo "no process reported"; return 1; }
}

total()
{
	tr ' ' '\n' <"$tmp/log" | awk -F= -v k="$1" '$1 == k { s += $2 } END { print s + 0 }'
}

# What the stand-in says it made, over all ranks and communicators.
made()
{
	grep -o "\"$1\":[0-9]*" "$tmp/out" | awk -F: '{ s += $2 } END { print s + 0 }'
}

# The plugin saw exactly what was made, nothing was left open and nothing was wrong.
seen_all()
{
	each bad=0 open=0 late=0 || return 1
	local pair k v
	for pair in ProxyOp:proxyOps ProxyStep:proxySteps Coll:colls P2p:p2ps Group:plans; do
		k=$(total "${pair%:*}")
		v=$(made "${pair#*:}")
		[ "$k" = "$v" ] || { echo "plugin saw $k ${pair%:*}, made were $v"; return 1; }
	done
}

# ---- results ----

ok() { run --check "$@"; }
ops() { ok --op mix --iters 7 "$@"; }
seen() { prof --check "$@" && seen_all; }

for n in 1 2 3 4 5; do
	t "results-ranks-$n" ops --ranks $n --bytes 300K
done
for b in 4 8 60 1K 64K 1M 4M 5000004; do
	t "results-bytes-$b" ops --ranks 3 --bytes $b
done
t results-bytes-0 ops --ranks 2 --bytes 0
for d in int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 bfloat16; do
	for r in sum prod max min avg; do
		t "results-$d-$r" ops --ranks 3 --bytes 50K --dtype $d --red $r
	done
done
t results-channels-1 ops --ranks 3 --bytes 3M --channels 1
t results-channels-5 ops --ranks 3 --bytes 3M --channels 5
t results-channels-16 ops --ranks 2 --bytes 3M --channels 16
t results-groups ops --ranks 3 --bytes 1M --groups 5
t results-in-place ok --ranks 4 --bytes 1M --in-place --iters 1
t results-threads ops --ranks 4 --threads 4 --bytes 1M
t results-threads-2x2 ops --ranks 4 --threads 2 --bytes 1M
t results-init-all ops --ranks 4 --init-all --bytes 1M
t results-one-thread ops --ranks 3 --one-thread --bytes 1M
t results-split ops --ranks 4 --split 2 --bytes 1M
t results-split-uneven ops --ranks 5 --split 2 --bytes 1M
t results-split-share ops --ranks 4 --split 2 --split-share --bytes 1M
t results-overlap ops --ranks 4 --split 2 --overlap --bytes 1M --iters 21
t results-overlap-share ops --ranks 4 --split 2 --split-share --overlap --bytes 1M --iters 21
t results-split-all-apart ops --ranks 3 --split 3 --bytes 100K
t results-pxn ops --ranks 4 --pxn 2 --bytes 1M
t results-pxn-odd ops --ranks 5 --pxn 2 --bytes 1M
t results-pxn-3 ops --ranks 3 --pxn 3 --bytes 1M
t results-pxn-threads ops --ranks 4 --threads 2 --pxn 2 --bytes 1M
t results-socket-threads ops --ranks 3 --socket-threads 2 --bytes 2M
t results-bind ops --ranks 3 --bind 127.0.0.1,127.0.0.2,127.0.0.3 --bytes 100K
t results-many-iterations ok --ranks 2 --bytes 8K --iters 500 --op mix

two_starts()
{
	"$job" --ranks 3 --rank-list 1-2 --id-file "$tmp/id" --bytes 100K >"$tmp/out2" 2>&1 &
	local pid=$!
	run --ranks 3 --rank-list 0 --id-file "$tmp/id" --bytes 100K && wait $pid
}
t results-two-starts two_starts

# Ranks in two network namespaces, over a veth pair: root only.
netns()
{
	local res
	ip netns add $a && ip netns add $b &&
		ip link add sij0 netns $a type veth peer name sij1 netns $b &&
		ip -n $a addr add 10.213.7.1/24 dev sij0 && ip -n $b addr add 10.213.7.2/24 dev sij1 &&
		ip -n $a link set lo up && ip -n $b link set lo up &&
		ip -n $a link set sij0 up && ip -n $b link set sij1 up &&
		run --ranks 4 --netns $a,$b --bind 10.213.7.1,10.213.7.2 --op mix --iters 7 "$@"
	res=$?
	ip netns del $a
	ip netns del $b
	return $res
}
if [ "$(id -u)" = 0 ] && ip netns list >/dev/null 2>&1; then
	t results-netns netns
	t results-netns-split netns --split 2
	t results-netns-split-all-in-one netns --split 3 --overlap
else
	echo "skip results-netns: needs root and ip netns"
fi

refuses()
{
	run --ranks 2 --op nosuch
	[ $? = 2 ] || { echo "unknown operation accepted"; return 1; }
	run --ranks 2 --rank-list 0
	[ $? = 2 ]
}
t usage refuses

# ---- --flows: what went over which socket ----

# The file as an array; the filter has to be true.
flows_hold()
{
	jq -sr "$1" "$tmp/flows" >"$tmp/held" && [ "$(cat "$tmp/held")" = true ] && return
	echo "got '$(head -c 300 "$tmp/held")' of: $1"
	return 1
}
# Both ends of each, a listener for each connection, and the bytes as the kernel and the other end count them;
# it counts a FIN as one.
flows()
{
	local socks=$1
	shift
	rm -f "$tmp/flows"
	ok --flows "$tmp/flows" "$@" || return
	flows_hold 'def turned: split(">") | reverse | join(">"); INDEX(.flow) as $by | length > 0 and
		all(.[]; . as $x | $by[.flow | turned] | .flow and .isSend != $x.isSend and .comm == $x.comm
			and .channel == $x.channel and .kind == $x.kind and .role == $x.role and .src == $x.src
			and .dst == $x.dst and .txBytes == $x.rxBytes and .rxBytes == $x.txBytes)' &&
		flows_hold 'all(.[]; .txBytes + .rxBytes >= .greeting and (.tcp.bytesReceived - .rxBytes | . == 0 or . == 1))' &&
		flows_hold 'map(select(.isSend | not)) | group_by(.flow | split(">")[0])
			| length > 0 and all(.[]; length == '$socks' and (unique_by([.comm, .src, .dst, .channel, .kind]) | length) == 1)' &&
		flows_hold 'map(select(.isSend | not)) | group_by([.comm, .src, .dst, .channel, .kind])
			| all(.[]; length == '$socks' and map(.role) == ["ctrl"] + [range('$socks' - 1) | "data"])'
}
# 2 (n - 1) / n of the buffer goes out of each rank, here in 2 x 24 messages with a header each
flows_bytes()
{
	flows 1 --ranks 4 --iters 2 --bytes 4M &&
		flows_hold 'group_by(.rank) | length == 4 and all(.[]; (map(.txBytes - if .isSend then .greeting else 0 end) | add)
			== 2 * (6 * 1048576 + 24 * 8))'
}
if command -v jq >/dev/null; then
	t flows-bytes flows_bytes
	t flows-mix flows 1 --ranks 4 --op mix --iters 7
	t flows-threads flows 3 --ranks 3 --socket-threads 2 --op mix --iters 7
	t flows-pxn flows 1 --ranks 4 --pxn 2
	t flows-split flows 1 --ranks 4 --split 2 --op mix --iters 7
	t flows-one-process flows 1 --ranks 4 --threads 4 --op mix --iters 7
	t flows-no-destroy flows 1 --ranks 3 --no-destroy --linger-ms 50
	flows_abort()
	{
		rm -f "$tmp/flows"
		! run --flows "$tmp/flows" --fault abort:rank=1:after=2 --ranks 3 --iters 5 &&
			flows_hold 'group_by(.rank) | length == 3 and all(.[]; length == 4)'
	}
	t flows-abort flows_abort
else
	echo "skip flows: needs jq"
fi

# ---- counts, NCCL 2.28.9 with ring and Simple, all hops over NET ----

counts()
{
	local want=$1
	shift
	prof --iters 1 "$@" && each $want bad=0 open=0 late=0 && seen_all
}
t counts-allreduce-64M counts "ProxyOp=4 ProxyStep=192 Coll=1 CollApi=1 GroupApi=1 Group=1 \
	KernelLaunch=1 KernelCh=2 s8=96 s20=96 s9=96 s10=96 s11=96 s12=96 s19=4 s23=1 s24=1" \
	--ranks 4 --channels 2 --bytes 64M
t counts-allreduce-1G counts "ProxyOp=32 ProxyStep=3584 Coll=1 CollApi=1" \
	--ranks 8 --channels 16 --bytes 1G --dry
t counts-allreduce-8r-1M-2c counts "ProxyOp=4 ProxyStep=112" --ranks 8 --channels 2 --bytes 1M
t counts-allreduce-8r-1G-2c counts "ProxyOp=4 ProxyStep=3584" \
	--ranks 8 --channels 2 --bytes 1G --dry
t counts-allgather counts "ProxyOp=4 ProxyStep=96" \
	--ranks 4 --op allgather --bytes 64M --dry
t counts-reducescatter counts "ProxyOp=4 ProxyStep=96" \
	--ranks 4 --op reducescatter --bytes 64M --dry
# 2 of 3 ranks receive and 2 send, 512 KiB a step, 1 MiB per channel

broadcast_sum() { counts "Coll=1" --ranks 3 --op "$1" --bytes 2M && [ "$(total ProxyStep)" = 16 ]; }
t counts-broadcast-steps broadcast_sum broadcast
t counts-reduce-steps broadcast_sum reduce
# 4 MiB to one peer: 2 parts of 2 MiB, 128 KiB a step, both directions
t counts-sendrecv counts "ProxyOp=4 ProxyStep=64 P2p=2 P2pApi=2 Coll=0 CollApi=0" \
	--ranks 3 --op sendrecv --bytes 4M
t counts-alltoall counts "P2pApi=8 P2p=8 Coll=0" --ranks 4 --op alltoall --bytes 4M
pipeline_sum() { counts "Coll=0" --ranks 3 --op pipeline --bytes 4M --check && [ "$(total P2p)" = 4 ]; }
t counts-pipeline pipeline_sum
t counts-one-rank run --ranks 1 --iters 3
one_rank() { prof --ranks 1 --iters 3 && each Group=0 GroupApi=0 Coll=0 ProxyOp=0 bad=0; }
t counts-one-rank-nothing one_rank
t counts-mix seen --ranks 3 --op mix --iters 7 --bytes 1M
t counts-group seen --ranks 3 --op mix --iters 7 --bytes 1M --groups 4
group_api() { prof --ranks 2 --iters 3 --groups 4 && each GroupApi=3 CollApi=12 Coll=12 Group=3; }
t counts-group-api group_api
# As in NCCL, which stops it at the end of each second one of the inner groups.
nested_api() { prof --ranks 3 --iters 4 --op alltoall --nest && each GroupApi=12 P2pApi=24 P2p=24 Group=4 bad=0; }
t counts-nested-group-api nested_api
t counts-threads seen --ranks 4 --threads 4 --op mix --iters 7 --bytes 1M
t counts-one-thread seen --ranks 3 --one-thread --op mix --iters 7 --bytes 1M
one_group() { prof --ranks 3 --one-thread --iters 4 && each GroupApi=4 CollApi=12 Coll=12 Group=12; }
t counts-one-thread-group one_group
t counts-overlap seen --ranks 4 --split 2 --overlap --op mix --iters 7 --bytes 1M
t counts-split seen --ranks 4 --split 2 --op mix --iters 7 --bytes 1M
t counts-split-share seen --ranks 4 --split 2 --split-share --op mix --iters 7 --bytes 1M
bytes_sum() { prof --ranks 4 --iters 1 --bytes 64M && [ "$(total bytes)" = 805306368 ]; }
t counts-bytes bytes_sum

# ---- masks: a child's bit brings its ancestors ----

masked()
{
	LOGPLUGIN_MASK=$1 prof --ranks 2 --iters 1 --bytes 1M && each $2 bad=0 open=0
}
t mask-0 masked 0 "GroupApi=0 CollApi=0 Coll=0 ProxyOp=0 ProxyStep=0 ProxyCtrl=0"
t mask-step masked 0x10 "GroupApi=1 CollApi=1 Group=1 Coll=1 ProxyOp=4 ProxyStep=16 ProxyCtrl=0 \
	KernelLaunch=0 KernelCh=0"
t mask-coll masked 0x2 "GroupApi=1 CollApi=1 Group=1 Coll=1 ProxyOp=0 ProxyStep=0"
t mask-op masked 0x8 "Coll=1 ProxyOp=4 ProxyStep=0"
t mask-collapi masked 0x200 "GroupApi=1 CollApi=1 Group=0 Coll=0"
t mask-launch masked 0x800 "GroupApi=1 CollApi=0 KernelLaunch=1"
t mask-kernelch masked 0x40 "GroupApi=1 Coll=1 ProxyOp=0 KernelCh=2"

# The mask of the call counts for all of its operation; the CollApi handle stays and is stopped again.
mask_off()
{
	LOGPLUGIN_OFF_AFTER=2 prof --ranks 2 --iters 5 --bytes 1M &&
		each CollApi=2 Coll=2 ProxyOp=8 ProxyStep=32 KernelCh=4 GroupApi=2 open=0 late=3 bad=0
}
t mask-off-stale-collapi mask_off

# ---- versions ----

version()
{
	prof --api "$1" --ranks 3 --op mix --iters 7 --bytes 1M && each "api=$1" bad=0 open=0 &&
		seen_all
}
for v in 1 2 3 4 5 6 7; do
	t "api-v$v" version $v
done
old_states()
{
	prof --api "$1" --ranks 2 --iters 1 --bytes 1M &&
		each s0=8 s1=8 s2=8 s3=8 s4=8 s5=8 s6=8 s7=8 s19=0 s20=0 GroupApi=0 bad=0
}
for v in 1 2 3; do
	t "api-v$v-states" old_states $v
done
phases()
{
	LOGPLUGIN_MASK=0xffff prof --api 7 --ranks 2 --iters 1 --bytes 1M &&
		each KernelCh=2 KernelPhase=6 s31=6 bad=0 open=0
}
t api-v7-phases phases
ce()
{
	LOGPLUGIN_MASK=0x7fff prof --api 6 --ce --ranks 2 --iters 3 --op allgather --check &&
		each CeColl=3 CeSync=6 CeBatch=3 CollApi=3 Coll=0 ProxyOp=0 bad=0 open=0
}
t api-v6-ce ce

# ---- finding the plugin ----

find_by_name()
{
	export LOGPLUGIN_OUT=$tmp/log
	NCCL_PROFILER_PLUGIN=logplugin LD_LIBRARY_PATH=$(dirname "$plugin") run --ranks 2 &&
		each init=1 bad=0
}
t plugin-by-name find_by_name
find_default()
{
	mkdir -p "$tmp/lib" && cp "$plugin" "$tmp/lib/libnccl-profiler.so" || return 1
	export LOGPLUGIN_OUT=$tmp/log
	env -u NCCL_PROFILER_PLUGIN LD_LIBRARY_PATH="$tmp/lib" "$job" --ranks 2 && each init=1
}
t plugin-default find_default
find_static()
{
	export LOGPLUGIN_OUT=$tmp/log
	NCCL_PROFILER_PLUGIN=STATIC_PLUGIN LD_PRELOAD=$plugin run --ranks 2 && each init=1 bad=0
}
t plugin-static find_static
find_conf()
{
	echo "NCCL_PROFILER_PLUGIN=$plugin" >"$tmp/nccl.conf"
	export LOGPLUGIN_OUT=$tmp/log
	env -u NCCL_PROFILER_PLUGIN NCCL_CONF_FILE="$tmp/nccl.conf" "$job" --ranks 2 && each init=1
}
t plugin-conf-file find_conf
find_missing() { NCCL_PROFILER_PLUGIN=/nonexistent/x.so run --ranks 2 && [ ! -e "$tmp/log" ]; }
t plugin-missing find_missing

# ---- PXN, NetPlugin, faults ----

pxn()
{
	prof --ranks 4 --pxn 2 --bytes 4M --iters 3 --check && each bad=0 open=0 foreign=6 &&
		seen_all
}
t pxn-foreign pxn
net_plugin()
{
	prof --net-profiler --ranks 2 --iters 1 --bytes 1M && each NetPlugin=16 ProxyStep=16 bad=0
}
t net-plugin net_plugin
net_threads()
{
	prof --net-profiler --socket-threads 2 --ranks 2 --iters 1 --bytes 4M && each bad=0 open=0 &&
		[ "$(total NetPlugin)" = "$((2 * $(total ProxyStep)))" ]
}
t net-plugin-threads net_threads
fault()
{
	local want=$2 args=$1
	shift 2
	prof --fault "$args" --ranks 2 --iters 2 --bytes 1M "$@" && each $want bad=0
}
t fault-no-stop fault no-stop:every=2 "open=16 late=0"
t fault-silent-ops fault silent-ops "open=8 late=0"
t fault-double-stop fault double-stop "open=0 late=32"
t fault-state-after-stop fault state-after-stop "open=0 late=32"
t fault-recv-repeat fault recv-repeat:n=1000 "repeats=4000 open=0"
t fault-peerwait-repeat fault peerwait-repeat:n=500 "repeats=2000 open=0"
t fault-pin fault pin-progress:rank=1:cpu=0 "open=0"
late() {
	run --fault late:rank=1:ms=50 --ranks 2 --iters 3 --bytes 1K &&
		[ "$(grep -o '"p50_us":[0-9]*' "$tmp/out" | cut -d: -f2)" -ge 45000 ]
}
t fault-late late
slow() {
	run --fault slow-progress:rank=0:us=3000 --ranks 2 --iters 3 --bytes 1K &&
		[ "$(grep -o '"min_us":[0-9]*' "$tmp/out" | cut -d: -f2)" -ge 12000 ]
}
t fault-slow slow
# 64 KiB in 10 ms: the other ranks wait for most of it.
slow_recv() {
	run --fault slow-recv:rank=2:us=10000 --ranks 4 --iters 2 --bytes 1M --check &&
		[ "$(grep -o '"min_us":[0-9]*' "$tmp/out" | cut -d: -f2)" -ge 40000 ]
}
t fault-slow-recv slow_recv
t fault-slow-recv-threads ok --fault slow-recv:rank=1:us=1000 --ranks 3 --iters 2 --socket-threads 2
reset() {
	rm -f "$tmp/flows"
	! run --fault reset:rank=1:after=5 --ranks 3 --iters 5 --bytes 4M --flows "$tmp/flows" "$@" &&
		grep -q "remote process exited" "$tmp/out" && [ "$(grep -c '"tcp":null' "$tmp/flows")" = 1 ]
}
t fault-reset reset
t fault-reset-threads reset --socket-threads 2
fails() { ! run "$@"; }
t fault-kill fails --fault kill:rank=1:after=2 --ranks 3 --iters 5
# How a process ended, as wait(2) has it.
ends_by() {
	local end=$1
	shift
	fails "$@" --ranks 3 --bytes 64K --iters 500 && [ "$(grep -o "\"ends\":.*\"rank\":" "$tmp/out" | grep -cF "$end}")" = 1 ]
}
t fault-kill-signal ends_by '"signal":11' --fault kill:rank=1:after=2:sig=11
t fault-kill-in-time ends_by '"signal":15' --fault kill:rank=0:us=30000:sig=15
# It may be through before the thread that kills it has run.
at_end() {
	local _
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		ends_by '"signal":9' --fault kill:rank=2:us=1:end=1 && return
	done
	return 1
}
t fault-kill-at-end at_end
t fault-quit ends_by '"exit":3' --fault quit:rank=1:after=2
t fault-quit-in-time ends_by '"exit":3' --fault quit:rank=1:us=30000
t fault-exec ends_by '"exit":4' --fault exec:rank=1:after=2
t fault-exec-in-time ends_by '"exit":4' --fault exec:rank=1:us=30000
t fault-abort fails --fault abort:rank=1:after=2 --ranks 3 --iters 5
hang() { ! STANDIN_TIMEOUT=2 run --fault hang:rank=1:after=2 --ranks 2 --iters 3 --bytes 4M; }
t fault-hang hang
# In the middle of an operation that hangs: what has not ended has no time, and is in no sum.
ended() {
	local pid
	rm -f "$tmp/out"
	timeout 100 "$job" --json --timeout 60 --fault hang:rank=1:after=2 --ranks 2 --iters 3 --bytes 4M "$@" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	sleep 1
	kill -TERM $pid
	! wait $pid && grep -q '"ok":false' "$tmp/out" && grep -q '"us":null}' "$tmp/out" && ! grep -qE '[0-9]{9}[0-9]*[.][0-9]' "$tmp/out" || {
		head -c 1000 "$tmp/out"
		return 1
	}
}
t ended-within ended
t ended-within-overlap ended --split 2 --overlap

# ---- the log of callbacks has what the plugin counted, of each process and kind ----

logged() {
	rm -f "$tmp/calls"
	prof "$@" --callbacks "$tmp/calls" || return 1
	"$build/standin/scope-calls" "$tmp/calls" | awk -F '[{}",:]+' '
		function type(k) { return k ~ /^state-/ ? "s" substr(k, 7) : k == "finalize" ? "final" : k }
		NR == FNR { if ($11 != $13) bad = 1; else if ($9 !~ /^stop/) n[$5 " " type($9)] += $11; next }
		{
			m = split($0, pair, " ")
			for (i = 3; i <= m; i++) {
				split(pair[i], kv, "=")
				if (kv[1] == "bytes") break
				if (n[substr(pair[1], 5) " " kv[1]] + 0 != kv[2]) { bad = 1; print pair[1], pair[i] ", logged " n[substr(pair[1], 5) " " kv[1]] }
				total += kv[2]
			}
		}
		END { exit bad || total < 100 }' - "$tmp/log"
}
for api in 1 2 3 4 5 6 7; do
	t "calls-api-$api" logged --api $api --ranks 2 --op mix --bytes 64K --iters 7 --net-profiler
done
t calls-threads logged --ranks 4 --threads 2 --split 2 --iters 5
leftovers() { ! ls /dev/shm/nccl-* 2>/dev/null; }
t no-shm-left leftovers

exit $failed
