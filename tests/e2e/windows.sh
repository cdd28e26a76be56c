#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A part of a job: after a delay, for a time, for a number of collectives, every now and then. Whatever cuts it, no
# operation is in the trace by half, none in between is left out, and outside of it NCCL makes no callbacks.
. "$(dirname "$0")/lib.sh"

# cut_well NAME: of each recording by itself.
cut_well() {
	same "$rc" 0 "exit status" && clean "$1" && lossless "$1" && joined "$1" && holds "$1" 'whole(4)'
}
run=("$job" --ranks 2 --bytes 1M --json)

# ---- Options that make no sense

while read -r word opts; do
	# shellcheck disable=SC2086
	"$scope" record $opts >"$tmp/out" 2>"$tmp/err"
	is "record $opts: usage, says what" "$? $(grep -c -- "$word" "$tmp/err") $(wc -c <"$tmp/out")" "2 1 0"
done <<-'END'
	--for --every 10s
	--for --for 10s
	shorter --every 1s --for 2s
	--every --keep 1G
	size --every 1s --for 1s --keep much
	-o --every 1s --for 1s --keep 1G --raw capture
	-o --compress --raw capture
	'0' --collectives 0
	'-1' --collectives -1
	duration --delay never
END

# ---- Of a job that runs, at full speed

job_bg fast --ranks 2 --bytes 1M --iters 1000000 --no-check
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
sleep 0.2
for i in 1 2 3; do
	record "d$i" -d "${i}00ms"
	t "-d, $i: cut at operations" cut_well "d$i"
done
record n --collectives 7
t "--collectives 7: cut at operations" cut_well n
is "--collectives 7: of each process" "$(q n '[events | of("Coll") | group_by(.myPid)[] | length] | tojson')" "[7,7]"
t "--collectives 7: calls of these, and not of the next" holds n 'events | (of("CollApi") | length) == (of("Coll") | length)'
record_bg int
sleep 0.4
stop_recorder INT
t "SIGINT: cut at operations" cut_well int
is "masks afterwards" "$(mask_of "${ranks[0]}") $(mask_of "${ranks[1]}")" "0 0"

kill -INT "$starter"
wait "$starter"

# Another recorder has NCCL go on meanwhile: begin and end are the recorder's own then.
job_bg amid --ranks 2 --bytes 1M --iters 1000000 --sleep-us 10000 --no-check
until_true 10 children_ready "$starter" 2
sleep 0.2
record_bg other
other=$recorder
for i in 1 2; do
	record "in$i" -d 200ms
	t "amid another recording, $i: cut at operations" cut_well "in$i"
done
record inn --collectives 5
t "--collectives 5 amid another recording: cut at operations" cut_well inn
is "--collectives 5 amid another recording: of each process" "$(q inn '[events | of("Coll") | group_by(.myPid)[] | length] | tojson')" "[5,5]"
recorder=$other
stop_recorder INT
t "the other one: cut at operations" cut_well other
kill -INT "$starter"
wait "$starter"

# ---- Windows

job_bg every --ranks 2 --bytes 256K --iters 100000 --sleep-us 3000 --no-check
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
sleep 0.2
# Three of them: the first one, which begins when all is set up, however long that takes, is to do so 0.65 to 1.3 s after a moment at which those of
# all nodes begin. So it has ended when the next one begins, and the third one has time to be set up before -d is over.
since_moment() {
	echo $((${EPOCHREALTIME/[.,]/} % 2000000))
}
setup_us=300000
for _ in 1 2 3 4 5; do
	sleep "$(((4900000 - setup_us % 2000000 - $(since_moment)) % 2000000 / 1000))e-3"
	began=${EPOCHREALTIME/[.,]/}
	record_bg win --every 2s --for 300ms -d 4200ms
	setup_us=$((${EPOCHREALTIME/[.,]/} - began)) at=$(since_moment)
	[ "$at" -lt 650000 ] || [ "$at" -gt 1300000 ] || break
	echo "# windows: set up in $setup_us us, $at us after a moment: again"
	stop_recorder INT
	rm -rf "$tmp/win"
done
between=0
until ended "$recorder"; do
	[ "$(mask_of "${ranks[0]}")" = 0 ] && between=$((between + 1))
	sleep 0.05
done
wait "$recorder"
rc=$?
is "--every 2s --for 300ms -d 4200ms: three recordings of two processes, a file each" "$rc $(find "$tmp/win" -name '*.jsonl' | wc -l)" "0 6"
t "windows: nothing asked of NCCL in between ($between looks)" [ $between -gt 5 ]
one=1
for f in "$tmp"/win/*_pid"${ranks[0]}".jsonl "$tmp"/win/*_pid"${ranks[0]}"_*.jsonl; do
	[ -e "$f" ] || continue
	mkdir -p "$tmp/win$one"
	cp "$f" "$tmp/win$one/"
	t "window $one: cut at operations" cut_well "win$one"
	one=$((one + 1))
done
t "windows: apart" holds win '(events | of("Coll") | map(.start.ts) | sort) as $t
	| [range(1; $t | length) | $t[.] - $t[. - 1] | select(. > 400000)] | length == 2'
t "windows: the later ones begin when the real clock shows a multiple of --every" holds win '
	records("header")[0].clock.realtimeOffset as $offset | (events | of("Coll") | map(.start.ts) | sort) as $t
	| [range(1; $t | length) | select($t[.] - $t[. - 1] > 400000) | ($t[.] + $offset) as $us | $us - 2e6 * ($us / 2e6 | floor)]
	| all(. < 1.2e6)'
# cost NAME: us of CPU time, by its footers.
cost() {
	q "$1" '[records("footer")[].self.cpu] | max | floor'
}
t "windows: each tells of its own CPU time, not of those before: footers" [ "$(cost "win$((one - 1))")" -lt $((2 * $(cost win1))) ]
is "windows: when a process started is the same in all, and what /proc says" \
	"$(q win '[records("header")[] | "\(.hostPid) \(.startTime / 1e6 * '"$(getconf CLK_TCK)"' | floor)"] | unique[]')" \
	"$(for r in "${ranks[@]}"; do awk '{ print $1, $22 }' "/proc/$r/stat"; done | sort)"
is "windows: report knows that they are of the same processes" \
	"$("$scope" report "$tmp/win" | sed -n '1s/.*files, \(.* processes\) on.*/\1/p') $("$scope" report --json "$tmp/win" | jq -c '[.ranks[].rank]')" "2 processes [0,1]"

# One whose end takes until the next should have begun for long: here it is stopped until the middle between two.
phase_us() {
	echo $((${EPOCHREALTIME/[.,]/} % 6000000))
}
until [ "$(phase_us)" -lt 1000000 ]; do sleep 0.2; done
record_bg missed --every 6s --for 500ms --mask coll --sched off --net off --no-report
kill -STOP "$recorder"
sleep "$(((9000000 - $(phase_us)) / 1000))e-3"
kill -CONT "$recorder"
t "a window that the one before has left no time for is left out, and that is said" until_true 5 grep -q \
	"^ncclscope: warning: Left out 1 window of --every: ending the one before took until then$" "$tmp/missed.err"
until_true 10 eval '[ "$(find "$tmp/missed" -name "*.jsonl" -size +1k | wc -l)" -ge 4 ]'
stop_recorder
t "and the next begins when the real clock shows a multiple" holds missed '
	records("header")[0].clock.realtimeOffset as $offset | (events | of("Coll") | map(.start.ts) | sort) as $t
	| (first(range(1; $t | length) | select($t[.] - $t[. - 1] > 2e6)) as $i | $t[$i] + $offset) as $us | $us - 6e6 * ($us / 6e6 | floor) < 2.9e6'
kill -INT "$starter"
wait "$starter"

# ---- One behind the other, of which the newest stay

job_bg keep --ranks 2 --bytes 256K --iters 100000 --sleep-us 20000 --no-check
ranks_of 2
mkdir "$tmp/keep"
echo "somebody's notes" >"$tmp/keep/trace_notes.jsonl"
record_bg keep --every 2s --for 2s --keep 1 -d 9s
until_true 8 eval '[ "$(find "$tmp/keep" -name "*_pid*.jsonl" -size +4k | wc -l)" -ge 2 ]'
first=$(find "$tmp/keep" -name '*_pid*.jsonl' | sort | head -1)
mv "$first" "$first.mine"
wait "$recorder"
rc=$?
t "--keep 1: of all that follow one another the newest stays" eval '[ "$rc $(find "$tmp/keep" -name "*_pid*.jsonl" | wc -l)" = "0 2" ]'
t "--keep: and what is somebody else's, or was taken away" [ -s "$tmp/keep/trace_notes.jsonl" -a -s "$first.mine" ]
t "--keep: says what it deletes" eval '[ "$(grep -c "^ncclscope: Deleted [12] traces\\? of 1 earlier recording, .* for --keep$" "$tmp/keep.err")" -ge 2 ]'
rm "$tmp/keep/trace_notes.jsonl"
t "--keep: the newest is as always" cut_well keep
record_bg follow --every 3s --for 3s --keep 1G -d 8s
until ended "$recorder"; do
	"$scope" status --json 2>/dev/null | jq -c --argjson pid "$recorder" '.recorders[] | select(.pid == $pid and .state == "running") |
		{began: .startedUs, us: (.updatedUs - .startedUs), cpu: .self.cpuUs}' >>"$tmp/cost"
	sleep 0.3
done
wait "$recorder"
t "windows that follow one another: a few seconds at most in between, all kept" holds follow '
	(records("header") | length) as $n | (events | of("Coll") | map(.start.ts) | sort) as $t
	| [range(1; $t | length) | $t[.] - $t[. - 1] | select(. > 200000)]
	| $n >= 6 and length == $n / 2 - 1 and all(. < 4e6)'
t "windows: and status, which has no more than there was time for" \
	jq -se 'map(select(.cpu > 2 * .us)) == [] and (map(.began) | unique | length) > 1' "$tmp/cost"

# One whose end takes until more than half of the next one is over: stopped when it has just begun to end.
until [ "$(phase_us)" -gt 300000 ] && [ "$(phase_us)" -lt 1500000 ]; do sleep 0.2; done
record_bg gap --every 6s --for 6s --mask coll --sched off --net off --no-report
until_true 10 eval '[ "$(mask_of "${ranks[0]}")" != 0 ]' && until_true 15 eval '[ "$(mask_of "${ranks[0]}")" = 0 ]'
kill -STOP "$recorder"
sleep 3.2
kill -CONT "$recorder"
t "windows that follow one another: what is missed in between is said" until_true 5 grep -qE \
	"^ncclscope: warning: Recorded nothing for [3-5]\.[0-9]+ ?s between two windows of --every: ending the one and attaching for the other took until then$" "$tmp/gap.err"
sleep 5
stop_recorder
# Of each recording of a rank: when its first collective began, and how long after a multiple of 6 s its last one did.
spans() {
	local file
	for file in "$tmp/$1"/*_pid"${ranks[0]}"*.jsonl; do
		jq -rs '.[0].clock.realtimeOffset as $offset | map(select(.type == "ncclProfileColl").start.ts + $offset) | select(. != [])
			| "\(min | floor) \(max | . - 6e6 * (. / 6e6 | floor) | floor)"' "$file"
	done | sort -n
}
spans gap >"$tmp/spans"
t "and one that begins late ends when the real clock shows a multiple all the same" awk '{ print } NR == 2 { began = $1; ok = $2 > 5500000 || $2 < 500000 }
	NR == 3 { ok = ok && $1 - began < 6000000 } END { exit !(ok && NR >= 3) }' "$tmp/spans"

# For a while the plugin's file is not there, as while it is replaced: jobs have it still. Five windows: one while it is away, and two at least after that.
record_bg away --every 4s --for 1s -d 17s
mv "$plugin" "$plugin.away"
t "windows: of a file that is not there, said" until_true 8 grep -q \
	"^ncclscope: warning: Failed to attach to the plugin '$plugin': No such file or directory, continuing with" "$tmp/away.err"
mv "$plugin.away" "$plugin"
until_true 30 ended "$recorder"
wait "$recorder"
is "windows: it goes on, and the file is taken again: exit status" "$? $(grep -c 'Failed to attach' "$tmp/away.err")" "0 1"
t "windows: each has both processes" eval '[ "$(find "$tmp/away" -name "*_pid*.jsonl" | wc -l)" -ge 8 ] &&
	! grep -L "\"type\":\"ncclProfileColl\"" "$tmp/away"/*.jsonl | grep .'
kill -INT "$starter"
wait "$starter"

# ---- To the end of processes

# ends_itself: the recorder in the background does, within 10 s; its exit status in $rc.
ends_itself() {
	until_true 10 ended "$recorder" || {
		stop_recorder INT
		echo "still records"
		return 1
	}
	wait "$recorder"
	rc=$?
}
job_bg gone --ranks 2 --bytes 256K --iters 400 --sleep-us 5000 --check
ranks_of 2
record_bg gone -p "${ranks[0]}" -p "${ranks[1]}"
t "-p: ends when all of these have ended" ends_itself
t "-p: exit status 0, clean, lossless" eval 'same "$rc" 0 "exit status" && clean gone && lossless gone'
t "-p: to the end of each" holds gone 'records("footer") | length == 2 and all(.end == "finalize" or .end == "exit")'
wait "$starter"
is "-p: the job is none the worse" "$? $(said gone .ok)" "0 true"
job_bg gonewin --ranks 2 --bytes 256K --iters 400 --sleep-us 5000 --no-check
ranks_of 2
record_bg gonewin --every 700ms --for 200ms -p "${ranks[0]}"
t "-p with --every: ends when it has ended" ends_itself
is "-p with --every: exit status" "$rc" 0
wait "$starter"

# ---- A delay: the job starts at once, and is attached to when it runs

record late --delay 1500ms -- "${run[@]}" --iters 400 --sleep-us 5000
is "--delay: exit status" "$rc" 0
t "--delay: clean, lossless, joined" eval 'clean late && lossless late && joined late'
t "--delay: not from the start, and to the end" holds late 'events | of("Coll") | group_by(.myPid) | length == 2 and
	all(map(.details.seq) | (min > 20) and (max == 399) and length == (max - min + 1))'
record never --delay 30s -- "${run[@]}" --iters 3
is "--delay: a job that ends before: failed, no trace" "$rc $(find "$tmp/never" -name '*.jsonl' 2>/dev/null | wc -l) $(said never .ok)" "1 0 true"
t "--delay: a job that ends before: said" grep -q 'The command has ended before the recording began, and nothing is recorded' "$tmp/never.err"
record never7 --delay 30s -- sh -c 'exit 7'
is "--delay: a job that ends before and fails: its exit status, said" "$rc $(grep -c 'before the recording began' "$tmp/never7.err")" "7 1"
env --default-signal=INT "$scope" record --plugin "$plugin" -o "$tmp/stopped" --delay 30s >"$tmp/stopped.out" 2>"$tmp/stopped.err" &
recorder=$!
sleep 0.5
stop_recorder INT
is "--delay: stopped before: failed, said" "$rc $(grep -c 'Stopped before the recording began' "$tmp/stopped.err")" "1 1"
job_bg brief --ranks 2 --bytes 256K --iters 100 --sleep-us 5000 --no-check
ranks_of 2
record brief --delay 30s -p "${ranks[0]}"
is "--delay: -p's process ends before: failed, said" "$rc $(grep -c 'All processes have ended before' "$tmp/brief.err")" "1 1"
wait "$starter"
record code --every 2s --for 300ms -- sh -c '"$@"; exit 9' sh "${run[@]}" --iters 300 --sleep-us 3000
is "--every with a command: its exit status" "$rc" 9
t "--every with a command: clean" clean code

finish
