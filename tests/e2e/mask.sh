#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Which events NCCL is asked for: by --mask, by the user's NCCL_PROFILE_EVENT_MASK as a ceiling, none
# without a recorder; and recordings that begin and end while a job runs. What NCCL itself goes by is
# read from the stand-in's memory.
. "$(dirname "$0")/lib.sh"

types() {
	q "$1" '[events[].type | ltrimstr("ncclProfile")] | unique | join(" ")'
}
small=("$job" --ranks 2 --bytes 64K --iters 3 --json)

# ---- record --mask: a type brings its parents along, and nothing else

while IFS=: read -r list want; do
	record "m" --mask "$list" -- "${small[@]}"
	is "--mask $list" "$(types m)" "$want"
	t "--mask $list: clean, lossless, joined" eval 'clean m && lossless m && joined m'
	rm -rf "$tmp/m"
done <<-'EOT'
	coll:Coll CollApi Group GroupApi
	proxystep:Coll CollApi Group GroupApi ProxyOp ProxyStep
	proxyop,kernelch:Coll CollApi Group GroupApi KernelCh ProxyOp
	0x10:Coll CollApi Group GroupApi ProxyOp ProxyStep
	16:Coll CollApi Group GroupApi ProxyOp ProxyStep
	kernellaunch:GroupApi KernelLaunch
	collapi:CollApi GroupApi
	proxyctrl:ProxyCtrl
	p2p:Group GroupApi
	groupapi:GroupApi
EOT
record all -- "${small[@]}"
# threads_while NAME: of which times the summary tells what threads did.
threads_while() {
	sed -n 's/^Threads of operations, while those //p' "$tmp/$1.err"
}
is "all: threads while operations ran" "$(threads_while all)" "ran"
is "all by default" "$(types all)" "Coll CollApi Group GroupApi KernelCh KernelLaunch ProxyCtrl ProxyOp ProxyStep"
masks='[lifecycle("ProfilerInit")[] | .details.eventMask] | unique | tojson'
is "mask of API 5 by default" "$(q all "$masks")" "[4095]"
is "its ceiling" "$(q all '[records("header")[].maskCeiling] | unique | tojson')" "[$((${NCCL_PROFILE_EVENT_MASK:-0xfff}))]"

# ---- From API 6 on NCCL may wait for good with KernelCh: only where the job says so

# has NAME: its mask and KernelChs, what it says of why, and how often the summary does.
has() {
	q "$1" '"\([lifecycle("ProfilerInit")[].details | [.eventMask, .noKernelCh]] | unique | tojson) \(events | of("KernelCh") | length > 0)"'
	grep -c 'no KernelCh of 2 processes: with it NCCL may wait for good' "$tmp/$1.err"
}
NCCL_PROFILE_EVENT_MASK='' NCCL_DEBUG=INFO record all6 -- "${small[@]}" --api 6
is "API 6: no KernelCh by default" "$(has all6)" '[[32703,"may-hang"]] false
1'
is "API 6: NCCL's log says how to have it" \
	"$(grep -c 'no KernelCh events,.* NCCL_ALLGATHERV_ENABLE=0 .* NCCL_PROFILE_EVENT_MASK=0x7fff' "$tmp/all6.err")" 2
# Room as the plugin looks for it, of which a tmpfs takes nothing.
NCCL_PROFILE_EVENT_MASK='' NCCL_ALLGATHERV_ENABLE=0 record off6 -- \
	unshare -m sh -c 'mount -t tmpfs -o size=16g none /dev/shm && exec "$@"' sh "${small[@]}" --api 6
is "API 6, NCCL_ALLGATHERV_ENABLE=0: KernelCh" "$(has off6)" '[[32767,null]] true
0'
NCCL_PROFILE_EVENT_MASK=0x7fff record env6 -- "${small[@]}" --api 6
is "API 6, the user's mask: KernelCh" "$(has env6)" '[[32767,null]] true
0'
NCCL_PROFILE_EVENT_MASK='' record coll6 --mask coll -- "${small[@]}" --api 6
is "API 6, nobody wants KernelCh: nothing is said" "$(has coll6)" '[[32703,null]] false
0'
t "API 6: clean" eval 'clean all6 && clean off6 && clean env6 && clean coll6'

# ---- The user's ceiling

while IFS=: read -r env list mask want; do
	NCCL_PROFILE_EVENT_MASK=$env record "c" --mask "$list" -- "${small[@]}"
	is "ceiling $env, --mask $list" "$(types c)" "$want"
	is "ceiling $env, --mask $list: mask at init" "$(q c "$masks")" "[$mask]"
	t "ceiling $env, --mask $list: clean" clean c
	rm -rf "$tmp/c"
done <<-'EOT'
	2:all:2:Coll CollApi Group GroupApi
	0x10:all:16:Coll CollApi Group GroupApi ProxyOp ProxyStep
	0X0208:all:520:Coll CollApi Group GroupApi ProxyOp
	0:all:0:
	nonsense:coll:4095:Coll CollApi Group GroupApi
	-1:coll:4095:Coll CollApi Group GroupApi
EOT

# ---- A job whose operations are left out is not told to hang

while IFS=: read -r env list; do
	NCCL_PROFILE_EVENT_MASK=$env record out --mask "$list" -- "${small[@]}"
	is "ceiling $env, --mask $list: no operations, which is no hang" \
		"$(grep -cx 'Operations were not recorded (--mask, NCCL_PROFILE_EVENT_MASK)' "$tmp/out.err") $(
			grep -c 'No operation' "$tmp/out.err") $("$scope" report --json "$tmp/out" | jq -c .still)" "1 0 []"
	rm -rf "$tmp/out"
done <<-'EOT'
	0xffff:collapi
	0xffff:p2p
	4:all
EOT

# ---- Nobody there: mask 0, no callbacks, not a word

job_bg idle --ranks 2 --bytes 64K --iters 1000000 --sleep-us 2000 --check
until_true 10 children_ready "$starter" 2
sleep 0.3
is "no recorder: mask" "$(for pid in $(pgrep -P "$starter"); do mask_of "$pid"; done | xargs)" "0 0"
kill -USR1 "$starter"
wait "$starter"
is "no recorder: job is right, and nothing is said" "$? $(said idle .ok) $(wc -c <"$tmp/idle.job-err")" "0 true 0"
NCCL_DEBUG=INFO job_bg info --ranks 2 --bytes 64K --iters 2
wait "$starter"
is "no recorder: said when asked" "$(grep -c 'event mask 0x0 (no loader attached)' "$tmp/info.job-err")" 2
NCCL_DEBUG=WARN NCCL_PROFILE_EVENT_MASK=nonsense job_bg warn --ranks 2 --bytes 64K --iters 2
wait "$starter"
is "a mask that is none: said" "$(grep -c "WARN.*NCCL_PROFILE_EVENT_MASK='nonsense'" "$tmp/warn.job-err")" 2

# ---- A job that runs already

whole='events | (map(select(.unfinished) | .parentObj, .eventAddr) | map({key: ., value: 1}) | from_entries) as $open
	| (of("ProxyOp") | group_by("\(.myPid)/\(.parentObj)") | map({key: "\(.[0].myPid)/\(.[0].parentObj)", value: length}) | from_entries) as $ops
	| (of("ProxyStep") | group_by("\(.myPid)/\(.parentObj)") | map({key: "\(.[0].myPid)/\(.[0].parentObj)", value: length}) | from_entries) as $steps
	| (of("ProxyOp") | map(select($open[.eventAddr] | not)) | length > 20 and all($steps[key] == 4))
	and (of("Coll") | length > 10) and ([of("Coll")[] | select($ops[key] != 4)] | length <= 2)
	and (of("Coll") | group_by(.myPid) | all(map(.details.seq) | sort | (.[-1] - .[0] + 1 == length)))'
job_bg run --ranks 2 --bytes 1M --iters 1000000 --sleep-us 2000 --check
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
sleep 0.3

record one -p "${ranks[0]}" -d 700ms
is "-p, -d: exit status" "$rc" 0
is "-p: that process alone" "$(q one '[events[].myPid] | unique | tojson')" "[${ranks[0]}]"
t "-p: clean" clean one
t "-p: nothing lost" lossless one
t "-p: parents" joined one
t "-p: operations are whole" holds one "$whole"
t "-p: the communicator is known" holds one \
	'lifecycle("ProfilerInit") | length == 1 and .[0].commHash != "0x0" and .[0].details.nranks == 2 and .[0].details.ncclApi == 5'
t "-p: events have it" holds one 'lifecycle("ProfilerInit")[0] as $c | events | all(.commHash == $c.commHash and .rank == $c.rank)'
is "-p: end" "$(q one '[records("footer")[].end] | tojson')" '["detached"]'
is "-p: no KernelCh, which must not be switched on in a running job" "$(q one 'events | of("KernelCh") | length')" 0
why='[lifecycle("ProfilerInit")[].details | [.eventMask, .noKernelCh]] | unique | tojson'
is "-p: no KernelCh: why" "$(q one "$why")" '[[0,"late"]]'
is "-p: mask afterwards" "$(mask_of "${ranks[0]}") $(mask_of "${ranks[1]}")" "0 0"

record both -p "${ranks[0]}" -p "${ranks[1]}" -d 500ms --mask coll
is "-p -p: both" "$(q both '[events[].myPid] | unique | tojson')" "[${ranks[0]},${ranks[1]}]"
is "-p -p --mask coll: nobody wants KernelCh" "$(q both "$why")" '[[0,null]]'
is "-p -p --mask coll" "$(types both)" "Coll CollApi Group GroupApi"
is "-p -p --mask coll: threads during enqueues, which is all that is known" "$(threads_while both)" "were enqueued: when they ended is not recorded"
t "-p -p: clean" clean both

# said_of_kernels NAME OPTION...: how often a recording warns that kernels are not to be had.
said_of_kernels() {
	record "$@" -d 300ms
	echo "$rc $(grep -c '^ncclscope: warning: No KernelCh .* of processes that ran before' "$tmp/$1.err")"
}
is "-p --mask kernelch: not to be had, said once" "$(said_of_kernels k1 -p "${ranks[0]}" -p "${ranks[1]}" --mask kernelch)" "0 1"
is "--mask coll,kernelch in windows: said once" "$(said_of_kernels k2 --mask coll,kernelch --every 100ms --for 50ms)" "0 1"
is "-p --mask all: nobody asked for it by name" "$(said_of_kernels k3 -p "${ranks[0]}" --mask all)" "0 0"
is "-p --mask proxyop: nobody asked for it" "$(said_of_kernels k4 -p "${ranks[0]}" --mask proxyop)" "0 0"
record k5 --mask kernelch -- "${small[@]}"
is "--mask kernelch of a job that begins, beside one that ran: recorded, nothing is said" \
	"$(q k5 'events | of("KernelCh") | length > 0') $(grep -c 'ran before' "$tmp/k5.err")" "true 0"

# Without -p: every process that has the plugin, as it runs.
record_bg node --mask proxystep
sleep 0.5
is "node-wide: mask meanwhile" "$(mask_of "${ranks[0]}") $(mask_of "${ranks[1]}")" "16 16"
stop_recorder INT
is "node-wide: exit status" "$rc" 0
is "node-wide: processes that ran before" "$(q node '[events[].myPid] | unique | tojson')" "[${ranks[0]},${ranks[1]}]"
t "node-wide: clean" clean node
t "node-wide: nothing lost" lossless node
t "node-wide: operations are whole" holds node "$whole"
is "node-wide: mask afterwards" "$(mask_of "${ranks[0]}") $(mask_of "${ranks[1]}")" "0 0"

# Two recorders: NCCL is asked for what both want together, each writes its own, the last one out turns it off.
record_bg a --mask coll
a=$recorder
record_bg b --mask proxystep
sleep 0.3
is "two recorders: mask" "$(mask_of "${ranks[0]}")" 18
stop_recorder INT
is "two recorders: one is gone" "$rc $(mask_of "${ranks[0]}")" "0 2"
recorder=$a
stop_recorder INT
is "two recorders: both are gone" "$rc $(mask_of "${ranks[0]}")" "0 0"
is "two recorders: each has its own" "$(types a), $(types b)" \
	"Coll CollApi Group GroupApi, Coll CollApi Group GroupApi ProxyOp ProxyStep"
t "two recorders: clean, and nothing lost" eval 'clean a && clean b && lossless a && joined a && began_amid b'

# One of them is killed: what it wanted is taken back by the other.
record_bg killed --mask proxystep
killed=$recorder
record_bg stays --mask coll
sleep 0.3
is "one will be killed: mask" "$(mask_of "${ranks[0]}") $(mask_of "${ranks[1]}")" "18 18"
kill -KILL $killed
wait $killed 2>/dev/null
masks_are() {
	same "$(mask_of "${ranks[0]}") $(mask_of "${ranks[1]}")" "$1"
}
t "one was killed: its part is taken back" until_true 6 masks_are "2 2"
stop_recorder INT
is "one was killed: the other ends as always" "$rc $(mask_of "${ranks[0]}")" "0 0"
t "one was killed: the other's trace is clean, and nothing lost" eval 'clean stays && lossless stays && began_amid stays'

kill -USR1 "$starter"
wait "$starter"
is "the job that was recorded seven times is right" "$? $(said run .ok) $(wc -c <"$tmp/run.job-err")" "0 true 0"

# ---- KernelCh went off with who had it from the start: who comes then says why there is none

record_bg had
job_bg goes --ranks 2 --bytes 64K --iters 1000000 --sleep-us 2000
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
sleep 0.3
stop_recorder INT
t "after a recorder from the start: KernelCh goes off" until_true 5 masks_are "0 0"
record after -d 700ms
kill -USR1 "$starter"
wait "$starter"
is "from the start: KernelCh" "$(q had "$why") $(q had 'events | of("KernelCh") | length > 0')" "[[$((${NCCL_PROFILE_EVENT_MASK:-0xfff})),null]] true"
is "after that: none, and why" "$(q after "$why") $(q after 'events | of("KernelCh") | length > 0')" "[[$((${NCCL_PROFILE_EVENT_MASK:-0xfff})),\"late\"]] false"
t "after a recorder from the start: clean" eval 'clean had && clean after'

# ---- One whose mask holds operations back: who joins it says so, and that it hangs of none

for env in 4 0x20 0; do
	NCCL_PROFILE_EVENT_MASK=$env job_bg held --ranks 2 --bytes 64K --iters 1000000 --sleep-us 2000
	until_true 10 children_ready "$starter" 2
	sleep 0.3
	record joined -d 2500ms
	is "ceiling $env, joined later: the header has it" \
		"$(q joined '"\([records("header")[].maskCeiling] | tojson) \([lifecycle("ProfilerInit")[].details.eventMask] | tojson)"')" \
		"[$((env)),$((env))] [0,0]"
	is "ceiling $env, joined later: no operations, which is no hang" \
		"$(grep -cx 'Operations were not recorded (--mask, NCCL_PROFILE_EVENT_MASK)' "$tmp/joined.err") $(
			"$scope" report --json "$tmp/joined" | jq -c .still)" "1 []"
	t "ceiling $env, joined later: clean" clean joined
	kill -USR1 "$starter"
	wait "$starter"
	rm -rf "$tmp/joined"
done

# ---- A job that somebody starts later

record_bg later
job_bg later-job --ranks 2 --op mix --bytes 256K --iters 14
wait "$starter"
stop_recorder INT
mv "$tmp/later-job.out" "$tmp/later.out"
t "a job started later by somebody else: everything" good later

finish
