#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The public probes, with another tracer: bpftrace counts exactly what the job says it made, after
# `ncclscope arm` and until `disarm`, beside a recording, and with the one-liners of docs/probes.md.
. "$(dirname "$0")/lib.sh"
command -v bpftrace >/dev/null || skip_all "needs bpftrace"
docs=$top/docs/probes.md

# trace NAME ARG...: bpftrace in the background, its pid in $tracer; returns when its probes are on.
trace() {
	local name=$1
	shift
	bpftrace "$@" >"$tmp/$name.bt" 2>"$tmp/$name.bt-err" &
	tracer=$!
	until_true 10 grep -q '^Attaching' "$tmp/$name.bt" && until_true 10 attached $tracer
}
# It has a perf event open for each site by then.
attached() {
	[ "$(find "/proc/$1/fd" -lname 'anon_inode:\[perf_event\]' | wc -l)" -gt "$(nproc)" ] && sleep 0.3
}
stop_trace() {
	kill -INT "$tracer"
	wait "$tracer" 2>/dev/null
	return 0
}
# of NAME KEY: the count in what bpftrace printed.
of() {
	sed -n "s/^@$2: \([0-9]*\)\$/\1/p" "$tmp/$1.bt" | grep . || echo 0
}
made() {
	said "$1" "[.rank[].comms[].$2] | add"
}
probe="usdt:$plugin:ncclscope"

# ---- Arm a job that runs, count, compare

job_bg count --ranks 2 --bytes 1M --iters 25 --delay-ms 2500 --check
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
trace count -e "$probe:start /arg1 == 16/ { @n = count(); }
	$probe:start { @type[arg1] = count(); @start = count(); }
	$probe:state { @state[arg1] = count(); } $probe:state /arg1 == 9/ { @sent = sum(arg2); } $probe:stop { @stop = count(); }"
"$scope" arm -p "${ranks[0]}" -p "${ranks[1]}" --mask proxystep >"$tmp/arm.out" 2>"$tmp/arm.err"
is "arm: exit status, nothing said" "$? $(cat "$tmp/arm.out" "$tmp/arm.err" | wc -c)" "0 0"
is "arm: mask" "$(mask_of "${ranks[0]}") $(mask_of "${ranks[1]}")" "16 16"
wait "$starter"
is "armed: the job is right" "$? $(said count .ok)" "0 true"
stop_trace
steps=$(made count proxySteps)
is "ProxySteps by bpftrace, by the job" "$(of count n)" "$steps"
is "ProxySteps of 2 ranks, 25 iterations, by the formula" "$steps" $((2 * 25 * 16))
is "ProxyOps" "$(of count 'type\[8\]')" "$(made count proxyOps)"
is "Colls" "$(of count 'type\[2\]')" "$(made count colls)"
is "CollApis" "$(of count 'type\[512\]')" "$(made count collApis)"
is "no other types" "$(grep -c '^@type' "$tmp/count.bt")" 6
is "state 8, SendGPUWait, of each step sent" "$(of count 'state\[8\]')" $((steps / 2))
is "state 11, RecvFlushWait, of each step received" "$(of count 'state\[11\]')" $((steps / 2))
is "bytes sent, the argument of state 9" "$(of count sent)" $((2 * 25 * (1 << 20)))
is "a stop for each start" "$(of count stop)" "$(of count start)"

# ---- Disarm

job_bg dis --ranks 2 --bytes 64K --iters 100000 --sleep-us 1000 --no-check
until_true 10 children_ready "$starter" 2
rank=$(pgrep -P "$starter" | head -n 1)
until_true 5 "$scope" arm -p "$rank" --mask proxystep
trace dis1 -p "$rank" -e "$probe:start { @n = count(); }"
sleep 0.3
stop_trace
t "armed: probes fire ($(of dis1 n))" [ "$(of dis1 n)" -gt 100 ]
is "armed without a tracer: stays so" "$(mask_of "$rank")" 16
"$scope" disarm -p "$rank"
is "disarm: exit status" $? 0
is "disarm: mask" "$(mask_of "$rank")" 0
sleep 0.1
trace dis2 -p "$rank" -e "$probe:start { @n = count(); }"
sleep 0.5
stop_trace
is "disarmed: no probe fires" "$(of dis2 n)" 0

# Arm beside a recording that wants something else: each gets its own.
"$scope" arm -p "$rank" --mask proxyop
record beside -p "$rank" -d 400ms --mask coll
is "recorder beside arm: its own types only" "$(q beside '[events[].type | ltrimstr("ncclProfile")] | unique | join(" ")')" \
	"Coll CollApi Group GroupApi"
is "recorder beside arm: what was armed stays" "$(mask_of "$rank")" 8
"$scope" disarm -p "$rank"
is "disarmed again" "$(mask_of "$rank")" 0
kill -INT "$starter"
wait "$starter"
"$scope" disarm -p "$rank" 2>"$tmp/gone"
is "disarm of a process that is gone: exit status" $? 1

# ---- Beside a recording of everything: the same counts, and nothing lost. The tracer is there first, so
# that KernelCh is on as well.
trace rec -e "$probe:start { @type[arg1] = count(); } $probe:state { @state = count(); }"
record rec -- "$job" --ranks 2 --op mix --bytes 256K --iters 7 --json
stop_trace
t "beside a recording: it has all" good rec
is "beside a recording: bpftrace has the same" "$(sed -n 's/^@type\[\([0-9]*\)\]: /\1 /p' "$tmp/rec.bt" | sort -n | xargs)" \
	"$(q rec 'events | group_by(.type) | map({"ncclProfileGroup": 1, "ncclProfileColl": 2, "ncclProfileP2p": 4,
		"ncclProfileProxyOp": 8, "ncclProfileProxyStep": 16, "ncclProfileProxyCtrl": 32, "ncclProfileKernelCh": 64,
		"ncclProfileGroupApi": 256, "ncclProfileCollApi": 512, "ncclProfileP2pApi": 1024,
		"ncclProfileKernelLaunch": 2048}[.[0].type] as $t | [$t, length]) | sort | flatten | join(" ")')"
is "beside a recording: states" "$(of rec state)" "$(q rec 'records("state") | map(1 + (.repeats // 0)) | add')"

# ---- What the documentation shows

# Indented blocks of the section on bpftrace, a file each.
awk -v out="$tmp/block" '/^## bpftrace/ { on = 1; next } /^## / { on = 0 } on && /^    / {
	if (!inside) n++
	inside = 1; print substr($0, 5) > (out n); next } { inside = 0 }' "$docs"
is "documentation: examples" "$(find "$tmp" -name 'block*' | wc -l)" 3
job_bg doc --ranks 2 --bytes 256K --iters 100000 --sleep-us 1000 --no-check
until_true 10 children_ready "$starter" 2
rank=$(pgrep -P "$starter" | head -n 1)
until_true 5 "$scope" arm -p "$rank"
for n in 1 2 3; do
	sed -i "s|/usr/local/lib/libnccl-profiler-ncclscope.so|$plugin|; s|'\\\$P'|$plugin|; s/ PID / $rank /" "$tmp/block$n"
	if grep -q ^bpftrace "$tmp/block$n"; then
		eval "args=($(sed s/^bpftrace// "$tmp/block$n"))"
	else
		args=(-I "$top/include" "$tmp/block$n")
	fi
	trace "doc$n" "${args[@]}"
	sleep 0.4
	stop_trace
	case $n in
	1) t "documentation: events by type" grep -q '^@\[16\]: [1-9]' "$tmp/doc1.bt" ;;
	2) t "documentation: how long steps take" grep -q '^\[.*@' "$tmp/doc2.bt" ;;
	3) t "documentation: peers" grep -Eq '^@\[[0-9]+, (from|to), [01]\]: [1-9]' "$tmp/doc3.bt" ;;
	esac
done
kill -INT "$starter"
wait "$starter"

finish
