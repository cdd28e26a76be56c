#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Jobs that hang, each for a reason that is known: within 2 s their files say which events are open, from the
# operation down to the step, and what the threads do, without a callback coming. When the job goes on, so does
# the trace; a job that is busy or idle says nothing of the kind.
. "$(dirname "$0")/lib.sh"

# file_of NAME JOB RANK: the trace of a rank's process, of the job with that name.
file_of() {
	grep -ls '"func":"ProfilerInit".*"rank":'"$3"',"start".*"commName":"'"$2"'"' "$tmp/$1"/*.jsonl
}
pid_of() {
	file_of "$@" | sed 's/.*_pid//; s/\.jsonl//'
}

# told NAME JOB RANK FILTER: the open events that the rank's file has by now, as an array, through the filter.
# shellcheck disable=SC2016
told() {
	grep '^{"recordType":"open".*}$' "$(file_of "$1" "$2" "$3")" | jq -src 'def of(f): map(select(.eventType | ltrimstr("ncclProfile") | IN(f)));
		def states: map([.sched.state, .sched.why]) | unique;
		def chains: INDEX(.eventAddr) as $all | of("ProxyStep") | map($all[.parentObj] as $op | select($op.eventType == "ncclProfileProxyOp"
			and ($all[$op.parentObj] | .eventType == "ncclProfileColl" and .func == "AllReduce"))); '"$4"
}
shows() {
	[ "$(told "$@" 2>/dev/null)" = true ]
}

# open_by NAME JOB RANKS TYPE: waits until all of their files have such an open event, behind what $tmp/sizes says that
# they had before; prints when that was (CLOCK_REALTIME, us), and how long the machine kept us from looking at most.
open_by() {
	local rank file skip last=${EPOCHREALTIME/[.,]/} worst=0 end=$((SECONDS + 8)) seen
	for rank in $3; do
		file=$(file_of "$1" "$2" "$rank")
		skip=$(awk -v file="$file" '$2 == file { print $1 }' "$tmp/sizes")
		until tail -c +$((${skip:-0} + 1)) "$file" | grep -q '^{"recordType":"open","eventType":"ncclProfile'"$4"'".*}$'; do
			[ $SECONDS -lt $end ] || return
			sleep 0.05
			seen=${EPOCHREALTIME/[.,]/}
			[ $((seen - last)) -le $worst ] || worst=$((seen - last))
			last=$seen
		done
	done
	echo "${EPOCHREALTIME/[.,]/} $worst"
} 2>/dev/null

# within_2s SINCE "SEEN WORST": by what open_by says. A recorder is kept from its work as we are.
within_2s() {
	local seen worst
	read -r seen worst <<<"$2"
	echo "after $(((${seen:-0} - $1) / 1000)) ms, of which others took up to $((${worst:-0} / 1000)) ms"
	[ -n "$seen" ] && [ $((seen - $1)) -le $((2000000 + 2 * worst)) ]
}

# began NAME JOB RANK: when (as $seen) the operation that hangs began, by the file's own clocks.
began() {
	local file
	file=$(file_of "$@")
	head -n 1 "$file" | jq -r --argjson ts "$(told "$@" 'of("Coll")[0].start.ts')" '.clock.realtimeOffset + $ts | floor'
}

colls() {
	[ "$(cat "$tmp/$1"/*.jsonl | grep -c '"type":"ncclProfileColl"')" -ge "$2" ]
} 2>/dev/null
opens() {
	cat "$tmp/$1"/*.jsonl | grep -c '^{"recordType":"open"'
}

# The events, as they were written in the end, of which it was told that they were open; a trace is long.
# shellcheck disable=SC2016
opened='def of_comm($name): lifecycle("ProfilerInit") | map(select(.details.commName == $name).commId)[0];
	def written(f): (records("open") | map(f | {key: key, value: true}) | from_entries) as $open
		| [events[] | select($open[key])] | if ($open | length) == length then . else [{unwritten: true}] end; .'

end_jobs() {
	kill_rest
	wait "${jobs[@]}"
} 2>/dev/null

# ---- (a) A rank is stopped amid a collective, and goes on

record_bg stopped
job_bg stopped-job --name stopped --ranks 3 --bytes 16M --iters 1000000 --no-check
jobs=("$starter")
until_true 10 colls stopped 10
sleep 1.5 # a second of it would do for a line
is "busy: nothing is told as open" "$(opens stopped)" 0
victim=$(pid_of stopped stopped 1)
for _ in 1 2 3; do # others run here too
	stat -c '%s %n' "$tmp"/stopped/*.jsonl >"$tmp/sizes"
	since=${EPOCHREALTIME/[.,]/}
	kill -STOP "$victim"
	seen=$(open_by stopped stopped "0 1 2" ProxyStep)
	within_2s "$since" "$seen" >/dev/null && break
	kill -CONT "$victim"
	sleep 0.5
done
t "stopped: in the files of all ranks within 2 s" within_2s "$since" "$seen"
for rank in 0 1 2; do
	t "stopped: rank $rank from the operation to the step" until_true 2 shows stopped stopped $rank 'chains | length > 0'
done
is "stopped: its own threads are" "$(told stopped stopped 1 'states')" '[["blocked","stopped"]]'
is "stopped: for nearly all of the time" "$(told stopped stopped 1 'map(.sched.blockedIn[0] | .why) | unique')" '["stopped"]'
is "stopped: the others' progress threads spin" "$(told stopped stopped 0 'of("ProxyOp", "ProxyStep") | states - [["run",null],["runq",null]]')" '[]'
is "stopped: their application waits" "$(told stopped stopped 0 'of("Coll") | states')" '[["blocked","futex"]]'
is "stopped: nothing is told before it is a second old" "$(told stopped stopped 0 'all(.quiet >= 1e6 and .age >= .quiet)')" true
t "stopped: told again" until_true 5 shows stopped stopped 0 'of("ProxyStep") | group_by(.eventAddr) | any(length >= 2)'
is "stopped: that is after 2 s" "$(told stopped stopped 0 'of("ProxyStep") | group_by(.eventAddr) | map(select(length > 1) | .[1].ts - .[0].ts | . >= 2e6 and . < 4e6) | unique')" '[true]'
kill -CONT "$victim"
sleep 0.3
n=$(opens stopped)
sleep 1.5
is "stopped: when it goes on, no more" "$(opens stopped)" "$n"
stop_recorder INT
end_jobs
t "stopped: clean, lossless" eval 'clean stopped && lossless stopped'
is "stopped: what was told was written when it stopped" \
	"$(q stopped "$opened"' | written(.) | map(.stop != null) | unique | tojson')" '[true]'
t "stopped: the summary has a word of it" grep -qE '^[0-9]+ events seemed hung, the longest for [0-9.]+ s$' "$tmp/stopped.err"

# ---- (b) A rank does not come, (c) a progress thread sleeps in a system call, (d) a peer is killed unnoticed

ns=scope-$$-hung
trap 'cleanup; ip netns del "$ns" 2>/dev/null' EXIT
cut=
ip netns add "$ns" 2>/dev/null && ip -n "$ns" link set lo up && ip netns exec "$ns" nft add table ip scope 2>/dev/null && cut=yes

record_bg hung
job_bg idle --name idle --ranks 2 --bytes 64K --iters 2 --no-check --linger-ms 60000
jobs=("$starter")
job_bg late --name late --ranks 3 --bytes 256K --iters 4 --fault late:rank=1:ms=6000:every=4,slow-progress:us=300
late=$starter
jobs+=("$starter")
# At its very first operation: nothing of it was ever flushed by age.
job_bg asleep --name asleep --ranks 3 --bytes 256K --iters 4 --no-check \
	--fault slow-progress:rank=1:us=60000000:poll=1,slow-progress:us=300
jobs+=("$starter")
until_true 10 file_of hung late 2 >/dev/null
open_by hung late "0 2" ProxyStep >"$tmp/late.seen" &
watchers=($!)
until_true 10 file_of hung asleep 2 >/dev/null
open_by hung asleep "0 1 2" ProxyOp >"$tmp/asleep.seen" &
watchers+=($!)
wait "${watchers[@]}"
if [ $cut ]; then
	job_bg killed --name killed --ranks 3 --bytes 256K --iters 1000000 --no-check --netns "$ns" --fault slow-progress:us=300
	jobs+=("$starter")
	until_true 10 file_of hung killed 1 >/dev/null
	victim=$(pid_of hung killed 1)
fi
t "late: in the files of the others within 2 s" within_2s "$(began hung late 0)" "$(cat "$tmp/late.seen")"
t "asleep: in the files of all ranks within 2 s" within_2s "$(began hung asleep 1)" "$(cat "$tmp/asleep.seen")"
if [ $cut ]; then
	ip netns exec "$ns" nft add chain ip scope in '{ type filter hook input priority 0; policy drop; }'
	since=${EPOCHREALTIME/[.,]/}
	kill -KILL "$victim"
	t "killed: in the files of the others within 2 s" within_2s "$since" "$(open_by hung killed "0 2" ProxyStep)"
	for rank in 0 2; do
		t "killed: rank $rank from the operation to the step" until_true 2 shows hung killed $rank 'chains | length > 0'
	done
	is "killed: its own file says so" "$(tail -n 1 "$(file_of hung killed 1)" | jq -r .end)" "signal 9"
else
	skip "killed" "needs network namespaces and nft"
fi
for rank in 0 2; do
	t "late: rank $rank from the operation to the step" until_true 2 shows hung late $rank 'chains | length > 0'
done
for rank in 0 1 2; do
	t "asleep: rank $rank from the operation to the operation of the proxy" until_true 2 shows hung asleep $rank 'of("ProxyOp") | length > 0'
done
is "asleep: in that call" "$(told hung asleep 1 'of("ProxyOp", "ProxyStep") | states')" '[["blocked","ppoll"]]'
is "asleep: for nearly all of the time" "$(told hung asleep 1 'of("ProxyOp", "ProxyStep") | map(.sched.blockedIn[0] | .why, .us >= 1e6) | unique')" '[true,"ppoll"]'
until_true 20 ended "$late"
is "late: the job ends well" "$(jq -r .ok "$tmp/late.out")" true
sleep 0.5
stop_recorder INT
end_jobs
t "hung: clean, lossless" eval 'clean hung && lossless hung'
is "late: what was told was written when it stopped" \
	"$(q hung "$opened"' | of_comm("late") as $c | written(select(.commId == $c)) | map(.stop != null) | unique | tojson')" '[true]'
is "asleep: what was told is unfinished" \
	"$(q hung "$opened"' | of_comm("asleep") as $c | written(select(.commId == $c))
	| map(.unfinished or .type == "ncclProfileColl") | unique | tojson')" '[true]'
is "idle: nothing is told" "$(cat "$(file_of hung idle 0)" "$(file_of hung idle 1)" | grep -c '^{"recordType":"open"')" 0

# ---- Buffers that cannot be read for a while

# Children begin in a progress thread that hands its buffer in after 1.5 s; until then it can be read from outside only, and
# whoever does that is kept from it for 5 s. The operations wait for what they do not know yet.
record_bg deaf
job_bg deaf --ranks 2 --bytes 4K --iters 1 --no-check --fault slow-progress:us=1500000:poll=1
until_true 10 grep -qs ncclProfileGroupApi "$tmp"/deaf/*.jsonl
for _ in {1..100}; do
	pkill -STOP -P "$recorder" -x ncclscope-read
	sleep 0.05
done
pkill -CONT -P "$recorder" -x ncclscope-read
until_true 60 ended "$starter"
sleep 0.5
stop_recorder INT
t "deaf: the job was that slow" holds deaf 'events | of("Coll") | map(.exec.duration) | length == 2 and all(. > 5e6)'
t "deaf: clean, lossless" eval 'clean deaf && lossless deaf'
is "deaf: their ends are known by their children" "$(q deaf 'events | of("Coll") | map(.exec.source) | unique | tojson')" '["proxy"]'

finish
