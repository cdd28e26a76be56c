#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the kernel did to a thread, held against what others say: the kernel's own accounts in /proc, perf's
# reading of the same tracepoints, and the slices against the sums. Modes, and a job that runs already.
. "$(dirname "$0")/sched_lib.sh"

# none KEY LEAST FILTER: of a list among the facts, with LEAST entries or more, that the filter is true of none.
none() {
	fact "$1" | jq -e "length >= $2" && fact "$1" | jq -ec "map(select($3)) | (.[], . == [])"
}

# ---- The option

usage() {
	record usage "$@" -- true
	same "$rc" 2 "exit status" && grep -q 'none of off, events, slices' "$tmp/usage.err" && [ ! -e "$tmp/usage" ]
}
t "--sched=none is told what there is" usage "--sched=none"
t "--sched wants a word" usage "--sched="

# ---- Events

# programs PID: whether it has programs, and whether some of the scheduler are among them.
programs() {
	bpf_of prog "$1" | jq -c 'map(.name) | [length > 0, any(.[]; . == "scope_switch" or . == "scope_wakeup")]'
}
# mode ITERATIONS NAME OPTION...: records a job that is started meanwhile; $loaded tells of its programs.
mode() {
	local iters=$1
	shift
	record_bg "$@"
	loaded=$(programs "$recorder")
	job_bg "$1" --ranks 2 --bytes 1M --iters "$iters" --check --sleep-us 300000
	wait "$starter"
	until_true 10 eval '[ "$(grep -ls "\"recordType\":\"footer\"" "$tmp/'"$1"'"/*.jsonl | wc -l)" = 2 ]'
	stop_recorder INT
}

mode 8 ev
t "events: what the job made, clean, lossless" good ev
is "events: programs of the scheduler" "$loaded" "[true,true]"
# A little may be unknown: not every kernel tells of every switch.
facts ev '. as $all | events as $e | ($e | map(select(.stop.tid == .start.tid and (.type | IN("ncclProfileColl", "ncclProfileP2p") | not)))) as $one | ($e | of("Coll")) as $colls | {
	kinds: ($one | map(.type | ltrimstr("ncclProfile")) | unique),
	without: ($one | map(select(.sched == null).type) | unique),
	off: ($one | map(select(.sched) | select((states_of(.sched) - .duration | fabs) > 1)) | length),
	unknown: ($one | map(select(.sched)) | group_by(.type) | map(unknown_share) | max),
	threads: ($colls | map(.sched | [.app.threads, .proxy.threads]) | unique),
	app: ($colls | map(.sched.app.span - .exec.duration | fabs) | max),
	proxy: ($colls | map(select(.sched.proxy.span > .exec.duration)) | length),
	span: ($colls | map(.sched | .app.span + .proxy.span - .span | fabs) | max),
	spans: ($colls | map(.sched | (., .app, .proxy) | states_of(.) - .span | fabs) | max),
	waits: ([$colls[].sched.app.blockedIn // []] | by_name("why")[0].name),
	ends: ($all | thread_ends | map(.role + if .since and .switches > 0 then "" else ": no sums" end) | group_by(.) | map([.[0], length])),
	ends_off: ($all | thread_ends | map(states_of(.) - .stop + .since | fabs) | max),
	slices: ($all | records("slice") | length),
	nodes: ($all | records("node") | map(.cpus | length > 0) | unique),
	busy: ($all | records("node") | map(.interval as $i | .cpus[] | select(.busy > 1.02 * $i + 20000)) | map([.busy, .cpu]))}'
is "events: all that starts and stops on one thread says what that did" \
	"$(fact kinds) without: $(fact without)" '["CollApi","Group","GroupApi","KernelCh","KernelLaunch","ProxyCtrl","ProxyOp","ProxyStep"] without: []'
is "events: the states are the duration" "$(fact off)" 0

t "events: from its start on a job has next to nothing unknown" below "$(fact unknown)" 0.02
is "events: threads of a Coll, of the application and proxy" "$(fact threads)" '[[1,1]]'
t "events: a Coll has its thread's time for all of exec" below "$(fact app)" 1
is "events: and its proxy's within exec" "$(fact proxy)" 0
t "events: of a Coll, the spans of both are its span" below "$(fact span)" 1
t "events: of a Coll, the states are the span, of each role" below "$(fact spans)" 1
is "events: the application waits in" "$(fact waits)" futex
is "events: threads have sums at their end" "$(fact ends)" '[["app",2],["proxy",2]]'
t "events: which are the time since then" below "$(fact ends_off)" 1
is "events: no slices" "$(fact slices)" 0
is "events: the node's CPUs, every second" "$(fact 'nodes | any')" true
is "events: they are not busier than there is time" "$(fact busy)" '[]'

mode 2 off --sched=off --net=off
t "off: what the job made, clean, lossless" good off
is "off: no programs of the scheduler" "$loaded" "[true,false]"
is "off: nothing is said of the kernel" \
	"$(q off '[(events | map(select(.sched)) | length), ([records("slice", "node")[]] | length), (thread_ends | map(select(has("since") or has("onCpu"))) | length)] | tojson')" '[0,0,0]'
is "off: and the header says so" "$(q off 'records("header") | map(.features.sched) | unique | tojson')" '["off"]'

# ---- Slices, and the kernel's own accounts

# The job stands still before its first call and after its last, so that both accounts are settled. In between
# the proxies share a CPU and compute. Not more switches than that takes: the clock by which the kernel tells
# running from waiting is as old as the wake-up that a switch follows, and 10 us may lie between the two.
accounts() {
	rm -rf "$tmp/or" "$tmp/or.err" # or record_bg sees that the last one was recording
	record_bg or --sched=slices
	on "$one" job_bg or --ranks 4 --threads 2 --channels 1 --bytes 2M --iters 8 --check --delay-ms 1500 --linger-ms 60000 \
		--fault slow-progress:us=1000:busy=1,pin-progress:cpu="$two"
	ranks_of 2
	until_true 10 eval '[ "$(cat /proc/${ranks[0]}/task/*/comm /proc/${ranks[1]}/task/*/comm | grep -c standin-stream)" = 4 ]'
	"$sched_proc" still "${ranks[@]}" >"$tmp/before"
	until_true 30 eval '"$sched_proc" still "${ranks[@]}" >"$tmp/after" && jq -nse --slurpfile a "$tmp/before" --slurpfile b "$tmp/after" \
		"[\$a, \$b | map(.run) | add] | .[1] - .[0] > 100000" >/dev/null'
	stop_recorder INT
	kill_job
	stolen=$(jq -n --slurpfile a "$tmp/before" --slurpfile b "$tmp/after" '$b[0].stolen - $a[0].stolen')
}
# Under a hypervisor that takes CPU time away, the kernel's account of run time lacks it. Best when it does not.
for _ in 1 2 3; do
	accounts
	[ "$stolen" != 0 ] || break
	echo "# stolen meanwhile: $stolen us"
done
# It is told in ticks, for each CPU.
[ "$stolen" = 0 ] || stolen=$((stolen + ${#cpus[@]} * 1000000 / $(getconf CLK_TCK)))
t "slices: clean" clean or
t "slices: lossless" lossless or
q or 'timelines as $times | thread_ends as $ends | events as $e | INDEX($before[]; .tid) as $before | INDEX($after[]; .tid) as $after | {
	ends: ($ends | group_by(.role) | map([.[0].role, length])),
	tiles: ($ends | INDEX(.tid) as $of | [records("slice") | group_by(.tid)[] | . as $s | [range(1; length) | $s[.].ts - $s[. - 1].ts - $s[. - 1].dur]
		| {tid: $s[0].tid, overlaps: (map(select(. < -0.002)) | length), unknown: ($of["\($s[0].tid)"].unknown // 0), between: map(select(. > 0.002))}
		| select(.overlaps > 0 or ((.between | add // 0) - .unknown | fabs) > 0.002 * ([1, (.between | length)] | max))]),
	covers: ($ends | map(.stop - .since - ($times["\(.tid)"] | .stop - .ts[0]) | fabs) | max),
	sums: ($ends | map($times["\(.tid)"] as $l | .onCpu - $l.run[-1], .runq - $l.runq[-1], .blocked - $l.blocked[-1] | fabs) | max),
	steps: ($e | of("ProxyStep") | length),
	clips: ($e | of("ProxyStep") | map($times["\(.start.tid)"] as $l | .start.ts as $from | .stop.ts as $to
		| (.sched.onCpu - ($l | spent("run"; $from; $to)), .sched.runq - ($l | spent("runq"; $from; $to)),
		.sched.blocked - ($l | spent("blocked"; $from; $to))) | fabs) | max),
	proxies: [$ends[] | select(.role == "proxy") | $after["\(.tid)"] as $k | {run: .onCpu, k_run: $k.run, delay: .runq, k_delay: $k.delay, unknown: (.unknown // 0), k_switches: $k.switches}
		+ {switches: (.switches - $k.switches), preemptions: (.preemptions - $k.preemptions)}],
	all: [$after[] | $before["\(.tid)"] as $b | . as $k | $times["\(.tid)"] | select(.) | {k: ($k.run + $k.delay - $b.run - $b.delay),
		us: (spent("run"; $b.ts; $k.ts) + spent("runq"; $b.ts; $k.ts)), switches: ($k.switches - $b.switches), unknown: ([$ends[] | select(.tid == $k.tid).unknown // 0] | add // 0)}]} | tojson' \
	--slurpfile before "$tmp/before" --slurpfile after "$tmp/after" >"$tmp/facts"
is "slices: threads, helpers included" "$(fact ends | jq -c 'map(select(.[0] != "other")), (map(select(.[0] == "other")[1])[0] >= 4)' | tr '\n' ' ')" \
	'[["app",4],["proxy",4]] true '
is "slices: of a thread, one begins where the other ends, but for what is unknown" "$(fact tiles)" '[]'
t "slices: from since to stop" below "$(fact covers)" 0.002
t "slices: their sums are the thread's" below "$(fact sums)" 0.002
t "slices: of a step, they are its sched" eval 'below 60 "$(fact steps)" && below "$(fact clips)" 0.002'
# within WHAT STOLEN: each of the proxies' figures is the kernel's, within 1%.
within() {
	none proxies 4 ".k_$1 < 50000 or (.$1 - .k_$1 | fabs) > 0.01 * .k_$1 + .unknown + 10 * .k_switches + $2"
}
t "schedstat: onCpu of proxies within 1%" within run "$stolen"
t "schedstat: runq of proxies within 1%" within delay 0
is "status: switches, of proxies" "$(fact proxies | jq -c 'map(.switches | fabs <= 1) | unique')" '[true]'
is "status: preemptions, of proxies" "$(fact proxies | jq -c 'map(.preemptions | fabs <= 1) | unique')" '[true]'
# All threads in the same window: run and wait together, which that clock does not move.
t "schedstat: onCpu and runq of all threads together" none all 12 \
	"(0.01 * .k + 10 * .switches + 1 + $stolen) as \$off | .us - .k > \$off or .k - .us > \$off + .unknown"
is "node: each interval begins where the other ends" "$(for f in "$tmp"/or/*.jsonl; do
	jq -sc 'map(select(.recordType == "node")) as $n | [$n | length > 1] + [range(1; $n | length) | $n[.].ts - $n[. - 1].ts - $n[.].interval | fabs | select(. > 0.002)]' "$f"
done | sort -u)" '[true]'

# ---- perf

# The same tracepoints, read by somebody else. Its own wake-ups, not sched_waking: "woken" is when it is in a queue.
perf_start() {
	local mount=:
	[ -d /sys/kernel/tracing/events ] || [ -d /sys/kernel/debug/tracing/events ] || mount="mount -t tracefs tracefs /sys/kernel/tracing"
	# its mount is its own
	env --default-signal=INT unshare -m sh -c "$mount && exec $perf_bin record -a -R -c 1 -m 4096 -k CLOCK_MONOTONIC \
		-e sched:sched_switch -e sched:sched_wakeup -e sched:sched_wakeup_new -e sched:sched_process_fork -o $tmp/perf.data" \
		>"$tmp/perf.out" 2>&1 &
	perf=$!
	until_true 10 eval '[ -s "$tmp/perf.data" ] || ended "$perf"'
	! ended "$perf"
}

# Lines of timehist as [tid, begin, end, wait, delay, run, whether it was runnable before]: a row begins where the
# row of the thread before it ends. Without those whose wake-up perf has missed.
perf_rows() {
	"$perf_bin" sched timehist -i "$tmp/perf.data" --state 2>"$tmp/perf.err" | awk '
		match($(NF - 4), /\[[0-9]+(\/[0-9]+)?\]$/) && $1 ~ /^[0-9.]+$/ {
			tid = substr($(NF - 4), RSTART + 1) + 0
			if (tid in end && ($(NF - 2) > 0 || $(NF - 3) == 0 || state[tid] ~ /^[RW]/))
				printf "[%d,%.0f,%.0f,%.0f,%.0f,%.0f,%s]\n", tid, end[tid], $1 * 1e6, $(NF - 3) * 1e3,
					$(NF - 2) * 1e3, $(NF - 1) * 1e3, state[tid] ~ /^[RW]/ ? "true" : "false"
			end[tid] = $1 * 1e6
			state[tid] = $NF
		}' >"$tmp/rows"
}

# Each CPU has something to do at all times: so that whoever waits does, and nothing depends on what idle CPUs do.
timehist() {
	local hogs=() cpu
	for cpu in "$one" "$two"; do
		taskset -c "$cpu" nice -n 19 "$sched_load" hog scope-idle &
		hogs+=($!)
	done
	record perf --sched=slices -- "$job" --ranks 3 --bytes 1M --iters 10 --check --json --fault slow-progress:us=300:busy=1
	kill "${hogs[@]}"
	kill -INT "$perf"
	wait "$perf" "${hogs[@]}" 2>/dev/null
	perf_rows
	q perf 'timelines as $times | [$rows[] | select($times["\(.[0])"])] | group_by(.[0]) | map($times["\(.[0][0])"] as $l
		| map(select(.[1] > $l.ts[0] and .[2] <= $l.stop)) | select(length > 5) | {tid: .[0][0], rows: length,
		run: [(map(.[5]) | add), (map(. as $r | $l | spent("run"; $r[1]; $r[2])) | add)],
		runq: [(map(if .[6] then .[3] else .[4] end) | add), (map(. as $r | $l | spent("runq"; $r[1]; $r[2])) | add)],
		blocked: [(map(if .[6] then 0 else .[3] - .[4] end) | add), (map(. as $r | $l | spent("blocked"; $r[1]; $r[2])) | add)]})
		| {threads: .} | tojson' --slurpfile rows "$tmp/rows" >"$tmp/facts"
}
# Its figures are cut to microseconds. A small one may be off by what one switch makes that the kernel did not
# tell of; it does not tell all of them of every switch.
agrees() {
	none threads 9 "(.${1}[0] - .${1}[1] | fabs) > ([0.02 * .${1}[0], 5000] | max) + .rows"
}

# Ubuntu's is a script that wants the one of the running kernel; any other will do.
perf_bin=
for bin in /usr/lib/linux-tools/*/perf /usr/lib/linux-tools-*/perf perf; do
	[ -n "$perf_bin" ] || ! "$bin" version >/dev/null 2>&1 || perf_bin=$bin
done
if [ -z "$perf_bin" ]; then
	skip "perf sched timehist" "needs perf (linux-perf)"
elif ! perf_start; then
	skip "perf sched timehist" "$(tail -n 1 "$tmp/perf.out")"
else
	timehist
	t "timehist: run time of each thread within 2%" agrees run
	t "timehist: sch delay and time preempted, as runq, within 2%" agrees runq
	t "timehist: the rest of its wait time, as blocked, within 2%" agrees blocked
	rm -f "$tmp/perf.data"
fi

# ---- Much at once

# Two progress threads that yield to each other, for as long as the third does nothing.
on "$one" record storm -- "$job" --ranks 3 --bytes 128K --iters 5 --no-check --json --fault slow-progress:rank=2:us=20000
t "a storm of switches: what the job made, clean, lossless" good storm
is "a storm of switches: it was one" "$(q storm 'thread_ends | map(.switches // 0) | add > 20000')" true

# A recorder that was kept from running takes up what is waiting for it as if it came in time.
record_bg stall
job_bg stall --ranks 2 --bytes 1M --iters 300 --no-check --fault slow-progress:us=100
until_true 10 in_trace stall ProxyStep
kill -STOP "$recorder"
sleep 1.5
kill -CONT "$recorder"
wait "$starter"
stop_recorder INT
t "a recorder that stood still: what the job made, clean, lossless" good stall
is "a recorder that stood still: operations end with their last step" "$(q stall '[events | of("Coll")[].exec.source] | unique | tojson')" '["proxy"]'

# ---- Whose switches are of interest

# Those of CPUs that recorded threads wait for. The kernel skips a program now and then, and who waited then must not be counted
# for good: nobody waits where all threads have been stopped.
waiters() {
	"$bpftool" -j map dump id "$(bpf_of map "$recorder" | jq '.[] | select(.name == "scope_cpus").id')" | jq -c 'map(.formatted.value.waiters)'
}
record_bg stopped
job_bg stopped --ranks 4 --bytes 4M --iters 1000000 --no-check
ranks_of 4
for rank in "${ranks[@]}"; do taskset -acp "$one" "$rank" >/dev/null; done # they wait for each other, however many CPUs there are
sleep 6
is "threads that are stopped: they waited" "$(for _ in 1 2 3 4 5; do waiters; done | jq -s 'flatten | any(. > 0)')" true
kill -STOP "${ranks[@]}"
sleep 0.5
is "threads that are stopped: no CPU has any that waits" "$(waiters | jq -c unique)" '[0]'
kill -CONT "${ranks[@]}"
kill_job
sleep 0.5
is "threads that are gone: no CPU has any that waits" "$(waiters | jq -c unique)" '[0]'
stop_recorder INT

# ---- A job that runs already

# What was not seen to begin is unknown and said to be, until the thread's first switch; nothing is after it.
job_bg late --ranks 2 --bytes 1M --iters 100000 --no-check --fault slow-progress:us=300
ranks_of 2
record_bg late -p "${ranks[0]}" -p "${ranks[1]}" -d 2s
wait "$recorder"
kill_job
t "already running: clean" clean late
t "already running: lossless" began_amid late
facts late '(thread_ends | INDEX(.tid)) as $ends | events | map(select(.sched and .stop and (.type | IN("ncclProfileColl", "ncclProfileP2p") | not) and .stop.tid == .start.tid)) | {
	threads: ($ends | map(.since != null) | unique),
	off: (map(select(states_of(.sched) - .duration | fabs > 1)) | length),
	later: (map(select(.start.ts >= $ends["\(.start.tid)"].since)) | [length > 1000, unknown_share]),
	before: (map(select(.stop.ts <= $ends["\(.start.tid)"].since)) | length)}'
is "already running: from when on its threads are known" "$(fact threads)" '[true]'
is "already running: the states are the duration" "$(fact off)" 0
t "already running: nothing is unknown once a thread is known" eval 'same "$(fact "later[0]")" true && below "$(fact "later[1]")" 0.01'
is "already running: nothing is said of the time before" "$(fact before)" 0

finish
