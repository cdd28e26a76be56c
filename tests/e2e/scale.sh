#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Many at once: processes with many threads, communicators that come and go, processes that have the plugin
# and never use it. Every trace is complete, and the recorder's memory stays bounded and is given back.
. "$(dirname "$0")/lib.sh"

guest=$tmp/bin/guest
cp "$build/e2e/guest" "$guest"
PEAK_KB=196608 # docs/limits.md has what it really is
mkdir "$tmp/shm"
mount -t tmpfs -o size=4g none "$tmp/shm" # the disk's speed is not at issue

# memory KEY: of the recorder, in kB. RssAnon is what it has allocated; the ring is mapped, always whole.
memory() {
	awk -v key="$1:" '$1 == key { print $2 }' "/proc/$recorder/status"
}

# What is kept: 2 MiB of the backlog, 1 MiB at the end of each thread's heap, and what lies between pieces in use.
is_back() {
	[ "$(memory RssAnon)" -le $((begin + 6144)) ]
}

finished() {
	[ "$(tail -qn 1 "$tmp/shm/$1"/*.jsonl | grep -c '"recordType":"footer"')" = "$2" ]
}

# open_traces NAME FILES
open_traces() {
	[ "$(find "$tmp/shm/$1" -name 'trace_*.jsonl' | wc -l)" = "$2" ]
}

# memory_is WHAT NAME FILES KB: bounded since the beginning, and given back a moment after the last trace was finished.
memory_is() {
	local peak
	t "$1: traces are finished while the recorder goes on" until_true 20 finished "$2" "$3"
	t "$1: memory is given back" until_true 10 is_back
	peak=$(($(memory VmHWM) - rss))
	echo "# $1: peak $peak kB above the beginning, then $(($(memory RssAnon) - begin)) kB"
	t "$1: memory is bounded" [ $peak -le "$4" ]
}

# start NAME [OPTION...]: the recorder, and what it has allocated then.
start() {
	record_bg "shm/$1" "${@:2}"
	sleep 0.3
	begin=$(memory RssAnon)
	rss=$(memory VmHWM)
}

# complete NAME: of each trace, events, states and what was lost, by the footer, and how many traces are so.
complete() {
	tail -qn 1 "$tmp/shm/$1"/*.jsonl | jq -c '[.end, .counts.event, .counts.state, .lost]' | sort | uniq -c | tr -s ' '
}

# ---- 64 processes, 16 threads each: 20 operations each of 5 events and 6 states

start threads
began=$SECONDS
"$guest" "$plugin" 64 threads 16 20
is "64 processes x 16 threads: the job ends" $? 0
t "64 processes x 16 threads: within seconds" [ $((SECONDS - began)) -le 20 ]
memory_is "64 processes x 16 threads" threads 64 $PEAK_KB
stop_recorder
is "64 processes x 16 threads: every trace is complete" "$(complete threads)" \
	" 64 [\"exit\",$((16 * 20 * 5 + 2)),$((16 * 20 * 6)),{}]"
t "64 processes x 16 threads: check" clean shm/threads
is "64 processes x 16 threads: threads of each" "$(for file in "$tmp/shm/threads"/*.jsonl; do
	grep '"recordType":"thread"' "$file" | jq -r 'select(.stop).tid' | sort -u | wc -l
done | sort | uniq -c | tr -s ' ')" " 64 16"
rm -r "$tmp/shm/threads"

# ---- 10,000 communicators, one after the other

start comms
"$guest" "$plugin" 1 comms 10000
is "10,000 communicators: the job ends" $? 0
memory_is "10,000 communicators" comms 1 $PEAK_KB
stop_recorder
is "10,000 communicators: the trace is complete" "$(complete comms)" " 1 [\"exit\",70000,60000,{}]"
t "10,000 communicators: check" clean shm/comms
is "10,000 communicators: each has its begin, its operation and its end" \
	"$(jq -r 'select(.type == "ProfilerLifecycle" or .type == "ncclProfileColl") | "\(.commId) \(.func)"' "$tmp/shm/comms"/*.jsonl |
		sort -u | cut -d' ' -f2 | sort | uniq -c | tr -s ' ' | paste -sd,)" \
	" 10000 AllReduce, 10000 ProfilerFinalize, 10000 ProfilerInit"
rm -r "$tmp/shm/comms"

# ---- Few processes on a CPU, then many: how old a buffer gets before its thread hands it in, by the plugin's own word

# ages PARENT: of its processes, in ms, one of each
ages() {
	local pid
	for pid in $(pgrep -P "$1"); do
		memory_of "$pid" "${plugin##*/}" ncclscope_control 24 8
	done | awk -v hz="$hz" '{ print int($1 * 1000 / hz + 0.5) }' | sort -un | paste -sd,
}

# ages_are PARENT MS
ages_are() {
	[ "$(ages "$1")" = "$2" ]
}

record_bg shm/ages
"$guest" "$plugin" 2 paced 1 100000 500 &
few=$!
t "2 processes: both are recorded" until_true 10 open_traces ages 2
hz=$(jq -s 'map(select(.recordType == "header").clock.tscHz)[0]' "$tmp/shm/ages"/*.jsonl)
t "2 processes: buffers get 10 ms old" until_true 5 ages_are "$few" 10
"$guest" "$plugin" $((4 * $(nproc) + 1)) paced 1 100000 100 &
many=$!
t "many processes: all are recorded" until_true 20 open_traces ages $((4 * $(nproc) + 3))
t "many processes: buffers get twice as old" until_true 5 ages_are "$many" 20
t "many processes: those of before, too" until_true 5 ages_are "$few" 20
kill $few $many
wait $few $many 2>/dev/null
stop_recorder
t "many processes: check" clean shm/ages
rm -r "$tmp/shm/ages"

# ---- 1,000 processes that have loaded the plugin, and one that uses it

loaded() {
	[ "$(pgrep -P "$idle" | sed 's:.*:/proc/&/maps:' | xargs grep -ls "$plugin" | wc -l)" = 1000 ]
}
"$guest" "$plugin" 1000 idle &
idle=$!
t "1,000 idle processes: they are there" until_true 60 loaded
begin_ms=$(date +%s%3N)
start idle
"$guest" "$plugin" 1 threads 4 50
is "1,000 idle processes: a job beside them ends" $? 0
memory_is "1,000 idle processes" idle 1 16384
stop_recorder
echo "# 1,000 idle processes: recorded for $(($(date +%s%3N) - begin_ms)) ms"
is "1,000 idle processes: the recorder ends" $rc 0
is "1,000 idle processes: the one that is used has its trace, and no other" "$(complete idle)" " 1 [\"exit\",1002,1200,{}]"
kill "$idle"
wait "$idle"

finish
