#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope top`: its rates against the job's own counters, who is waited for and why, and what it looks like
# in a terminal of 80x24.
. "$(dirname "$0")/lib.sh"

# lines: of the last reading of $tmp/top; readings have an empty line behind them.
lines() {
	awk -v RS= 'END { print }' "$tmp/top"
}
# cell RANK N: of the last reading
cell() {
	lines | awk -v rank="$1/" -v n="$2" 'index($2, rank) == 1 { print $n; exit }'
}
# watch SECONDS: readings into $tmp/top; they overlap with what the recorder writes at any phase.
watch() {
	"$scope" top -b -d 500ms -n $(($1 * 2)) >"$tmp/top" 2>"$tmp/top.err"
}
printable() {
	! grep -n '[^[:print:]]' "$@"
}

# ---- Nobody there

"$scope" top -b -n 1 >"$tmp/top" 2>"$tmp/top.err"
is "nobody: exit status, what to do" "$? $(sed -n 2p "$tmp/top")" "0 No recorder runs on this node. Start one: ncclscope record"
"$scope" top -n 2 -d 100ms >"$tmp/top" 2>"$tmp/top.err"
is "no terminal: lines" "$? $(grep -c '^ncclscope top' "$tmp/top")" "0 2"
for wrong in "-d x" "-d 10ms" "-n 0" "-n -1" "-n 1x"; do
	# shellcheck disable=SC2086
	"$scope" top -b $wrong >"$tmp/out" 2>"$tmp/err"
	is "$wrong: exit status, and a message" "$? $(grep -c -- 'is .*, not a' "$tmp/err")" "2 1"
done

# A file may say anything. (The recorder is this shell, so it is not a dead one.)
run=$NCCLSCOPE_STATUS_DIR
mkdir -p "$run"
chmod 755 "$run"
tells() {
	echo "{\"pid\":$$,\"startTime\":$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20),\"updatedUs\":$(awk '{ printf "%.0f", $1 * 1e6 }' /proc/uptime),$1}" >"$run/recorder-$$.json"
}
odd() {
	tells "$1"
	"$scope" top -b -n 1 >"$tmp/top" 2>"$tmp/top.err"
	echo "$? $(grep -c . "$tmp/top")"
}
is "odd file: no processes" "$(odd '"processes":{"ranks":[]},"lost":3,"ring":[]')" "0 2"
is "odd file: processes of any type" "$(odd '"processes":[1,"x",null,{"ranks":"x"},{"ranks":[null,{"live":[]}]}],"counts":"x"')" "0 5"
is "odd file: huge, negative, text that is none" "$(odd '"processes":[{"hostPid":-1,"net":{"retransNeeded":1e300},"ranks":[{"commHash":"\u001b[31m\n","rank":-9223372036854775808,
	"nranks":9223372036854775807,"live":{"ops":1e308,"opUs":1e-308,"busBytes":1e308,"spanUs":1,"runqUs":1e308,"pending":5,"pendingSinceUs":9223372036854775807,
	"behind":{"comm":"\u001b]0;x","pid":-5},"func":["x"],"calledUs":1}}]}]')" "0 4"
# Of one whose traces are behind, what it tells is old: an operation that was under way then does not hang.
now_us=$(awk '{ printf "%.0f", $1 * 1e6 }' /proc/uptime)
odd "\"startedUs\":$((now_us - 60000000)),\"asOfUs\":$((now_us - 30000000)),\"backlog\":{\"us\":30000000},\"processes\":[{\"hostPid\":7,\"ranks\":[{\"commHash\":\"0x1\",
	\"rank\":0,\"nranks\":2,\"live\":{\"ops\":300,\"calledUs\":1,\"pending\":1,\"pendingSinceUs\":$((now_us - 33000000))}}]}]" >/dev/null
is "behind: its rate, and since when, as of then" "$(awk '$2 == "0/2" { print $4, $(NF) }' "$tmp/top")" "10.0 3.0s"
t "behind: by how much" grep -q 'behind by 30' "$tmp/top"
t "odd file: no control characters" eval '! grep -n "[^[:print:]]" "$tmp/top"'
# two_ranks SEQ-OF-0: of one communicator, in which rank 1 waits in its AllReduce number 5; says how many are waited for.
two_ranks() {
	local rank='"commHash":"0x1","nranks":2' live="\"func\":\"AllReduce\",\"calledUs\":$((now_us - 3000000))"
	odd "\"startedUs\":$((now_us - 60000000)),\"processes\":[{\"hostPid\":7,\"ranks\":[{$rank,\"rank\":0,\"live\":{$live${1-}}}]},
		{\"hostPid\":8,\"ranks\":[{$rank,\"rank\":1,\"live\":{$live,\"seq\":5,\"pending\":1,\"pendingSinceUs\":$((now_us - 3000000))}}]}]" >/dev/null
	grep -c "WAITED FOR" "$tmp/top"
}
is "who has called less is waited for, but where the number says nothing" "$(two_ranks ',"seq":4') $(two_ranks)" "1 0"
# kept_by FIELDS: of a rank, of a second in which its progress thread was on a CPU for 900 ms: what WHY says.
kept_by() {
	odd "\"startedUs\":$((now_us - 60000000)),\"processes\":[{\"hostPid\":7,\"ranks\":[{\"commHash\":\"0x1\",\"rank\":0,\"nranks\":2,
		\"live\":{\"spanUs\":1000000,\"onCpuUs\":900000,$1}}]}]" >/dev/null
	awk '$2 == "0/2"' "$tmp/top" | cut -c69- | xargs
}
is "interrupts on its CPU are told, unless it was without one for longer, or they are few" \
	"$(kept_by '"irqUs":400000,"runqUs":100000,"blockedUs":0') $(kept_by '"irqUs":90000,"runqUs":100000,"behind":{"comm":"x","pid":3}') $(kept_by '"irqUs":40000')" \
	"interrupts 40% behind x[3] "
# One that waits until its next window, in microseconds of CLOCK_MONOTONIC; whatever it says.
waiting() {
	odd "\"waitsUntilUs\":$1" >/dev/null
	sed -n 2p "$tmp/top"
}
when='([0-9]+-[0-9-]+ )?[0-9]{2}:[0-9]{2}:[0-9]{2}'
for until in 9223372036854775807 -1 '"x"' '[]' null; do
	t "waits until $until: any time" grep -qE "^The recorder waits until $when\. Start one for now: ncclscope record$" <<<"$(waiting "$until")"
done
now_us=$(awk '{ printf "%.0f", $1 * 1e6 }' /proc/uptime)
is "waits until a time of this day" "$(waiting $((now_us + 60000000)) | sed -E "s/$when/WHEN/; s/\..*//")" "The recorder waits until WHEN"
sleep 60 &
sed "s/\"pid\":$$,\"startTime\":[0-9]*/\"pid\":$!,\"startTime\":$(sed 's/.*) //' /proc/$!/stat | cut -d' ' -f20)/; s/\(sUntilUs\":\)[0-9]*/\1$((now_us + 30000000))/" \
	"$run/recorder-$$.json" >"$run/recorder-$!.json"
first=$(TZ=UTC "$scope" top -b -n 1 | sed -n 2p)
is "two that wait: until the first does" "${first%%until*} $((($(date -u -d "${first:34:8}" +%s) - EPOCHSECONDS + 86400) % 86400 / 40))" "2 recorders wait, the first  0"
rm "$run/recorder-$!.json"
kill $!
wait $! 2>/dev/null
# What a recorder that records in windows tells begins anew with each of them.
# tells FIELDS, as of then
told_at() {
	tells "$1"
	sed -i "s/\"updatedUs\":[0-9]*/\"updatedUs\":$now_us/" "$run/recorder-$$.json"
}
now_us=$(awk '{ printf "%.0f", $1 * 1e6 }' /proc/uptime)
told_at "\"startedUs\":$((now_us - 9000000)),\"self\":{\"cpuUs\":5000000},\"lost\":{\"ringFull\":1}"
rm -f "$tmp/top" # or until_true finds that of the case before
"$scope" top -b -d 3s -n 2 >"$tmp/top" 2>"$tmp/top.err" &
until_true 2 [ -s "$tmp/top" ]
now_us=$(awk '{ printf "%.0f", $1 * 1e6 }' /proc/uptime)
told_at "\"startedUs\":$((now_us - 1000000)),\"self\":{\"cpuUs\":500000},\"lost\":{\"ringFull\":1}"
wait $!
is "windows: the CPU time of each since it began" "$(grep -oE '[0-9]+\.[0-9]% of a CPU' "$tmp/top" | awk '{ print ($1 > 45 && $1 < 60) }' | xargs)" "1 1"
is "windows: what the newer one has lost is new" "$(grep -oE '\(\+[0-9]+\)' "$tmp/top" | xargs)" "(+0) (+1)"
rm -f "$run/recorder-$$.json"

# ---- Rates

# ranks_say CONDITION: of ops and bw, after a while, both.
ranks_say() {
	watch 3
	for rank in 0 1; do
		awk -v ops="$(cell "$rank" 4)" -v bw="$(cell "$rank" 5)" "BEGIN { print ops, bw; exit !($1) }" || return
	done
}

record_bg rates
# One that has called 16 operations ahead, each slow, and is never idle: what is moved in a second is what moves while it works.
job_bg ahead --ranks 2 --bytes 1M --iters 1000000 --ahead 16 --no-check --fault slow-progress:us=2000
ranks_of 2
t "a job that goes ahead: the bandwidth is that of the wire" until_true 10 ranks_say 'ops > 0 && bw > 0.7 * ops * 1.048576e-3'
kill_job
job_bg rates --ranks 2 --bytes 64K --iters 1000000 --period-us 20000 --no-check --name $'\033]0;x\a\n'
ranks_of 2
t "a job of 50 operations a second: so says top" until_true 20 ranks_say 'ops > 40 && ops < 60 && bw > 0'
is "its ranks, by node's pid" "$(lines | awk 'NR > 3 { print $3 }' | sort | xargs)" "$(printf '%s\n' "${ranks[@]}" | sort | xargs)"
is "nobody is waited for" "$(grep -c 'WAITED FOR' "$tmp/top")" 0
t "no names of the job's" printable "$tmp/top"
t "as wide as other tables" eval '! grep -nE "^.{101}" "$tmp/top"'
t "another user sees the same" eval 'setpriv --reuid 65534 --regid 65534 --clear-groups "$scope" top -b -n 1 >"$tmp/top" && [ "$(cell 1 3)" -gt 0 ]'

# The same for Prometheus: what its rate() sees of a rank in three seconds.
grown() {
	local name=$1 before
	before=$("$scope" metrics | awk -v name="$name" -v r="$2" 'index($1, name "{") == 1 && index($1, r) { print $2 }')
	sleep 3
	"$scope" metrics | awk -v name="$name" -v r="$2" -v before="$before" 'index($1, name "{") == 1 && index($1, r) { print $2 - before }'
}
t "metrics: 50 operations a second" eval 'awk -v n="$(grown ncclscope_operations_total "rank=\"1\"")" "BEGIN { print n; exit !(n >= 100 && n <= 250) }"'
t "metrics: 64 KiB each, as bus bandwidth has it" eval 'awk -v n="$(grown ncclscope_operation_bus_bytes_total "rank=\"0\"")" "BEGIN { print n; exit !(n >= 100 * 65536 && n <= 250 * 65536) }"'

# ---- Several recorders of the same processes

# records: of the last reading, a second
records() {
	lines | sed -n '1s/.* \([0-9.]*[kMG]\{0,1\}\) records.*/\1/p' | tr k K | numfmt --from=si
}
once() {
	ranks_say 'ops > 40 && ops < 60' && same "$(lines | grep -oE '[0-9]+ processes, [0-9]+ ranks')" "2 processes, 2 ranks" &&
		same "$(lines | grep -oE '^[0-9]+ recorders')" "$1 recorders" &&
		same "$(lines | awk 'NR > 3 { print $2, $3 }' | sort | cut -d' ' -f2 | xargs)" "$by_rank" &&
		awk -v one="$one" -v all="$(records)" 'BEGIN { print one, all; exit !(all > one * 0.5 && all < one * 1.5) }'
}
by_rank=$(lines | awk 'NR > 3 { print $2, $3 }' | sort | cut -d' ' -f2 | xargs)
watch 3
one=$(records)
first=$recorder
record_bg rates2
t "two recorders: each process once, with figures, its records not twice" until_true 20 once 2
second=$recorder
record_bg rates3 --raw "$tmp/rates.raw"
third=$recorder
kill -STOP "$first"
t "three, of which one is stopped and one has no operations: the same" until_true 20 once 3
kill -CONT "$first"
for recorder in "$second" "$third"; do stop_recorder INT; done
recorder=$first

# ---- In a terminal

tmux() {
	command tmux -L "scope-$$" -f /dev/null "$@"
}
screen() {
	tmux capture-pane -p >"$tmp/screen"
}
shows() {
	screen && grep -qE -- "$1" "$tmp/screen"
}
tmux new-session -d -x 80 -y 24 "TERM=screen NCCLSCOPE_STATUS_DIR=$NCCLSCOPE_STATUS_DIR $scope top; echo status \$?; sleep 60"
t "terminal: a row of each rank" until_true 5 shows " 0/2 .* [0-9.]+ .*"
is "terminal: head, titles, rows, keys, each in its place" "$(sed -n '1s/ [0-9].*//p; 4s/ .*//p; 5,6s/.*\([01]\/2\).*/\1/p; 24s/ .*//p' "$tmp/screen" | xargs)" \
	"ncclscope top COMM 0/2 1/2 q"
tmux send-keys s
t "terminal: s sorts" until_true 3 shows "by busbw"
tmux send-keys Space
t "terminal: space stops" until_true 3 shows "^PAUSED"
tmux send-keys Space
tmux resize-window -x 60
t "terminal: narrow, what stays is who is waited for" until_true 3 shows "^COMM +RANK +PID +OP/S +BUSBW +PEND WHY"
tmux resize-window -x 40 -y 8
t "terminal: and in half of one" until_true 3 shows "^COMM +RANK +PEND WHY"
t "terminal: small" until_true 3 shows "0/2"
tmux resize-window -x 100 -y 30
tmux send-keys q
t "terminal: q quits" until_true 3 shows "^status 0"
tmux kill-server
stop_recorder INT
kill_job

# ---- Who is waited for

record_bg late
job_bg late --ranks 3 --bytes 64K --iters 1000 --no-check --fault late:rank=1:every=2:ms=60000
ranks_of 3
waited() {
	watch 1
	[ "$(cell 1 11) $(cell 1 12)" = "WAITED FOR" ] && [ "$(grep -c 'WAITED FOR' <<<"$(lines)")" = 1 ]
}
t "a rank that does not come is waited for" until_true 15 waited
t "and the others wait" eval '[[ $(cell 0 10) =~ ^[0-9.]+s$ && $(cell 2 10) =~ ^[0-9.]+s$ && $(cell 1 10) = - ]]'
stop_recorder INT
kill_job

# All ranks have called, and one does not go on: a first reading is of what it does in that operation, not of all before.
record_bg hang
job_bg hang --ranks 3 --bytes 64K --iters 100000 --no-check --fault hang:after=300:rank=1
ranks_of 3
hangs() {
	"$scope" top -b -n 1 >"$tmp/top" 2>"$tmp/top.err"
	[[ $(cell 1 10) =~ ^([3-9]\.[0-9]|[1-9][0-9]+\.[0-9])s$ ]]
}
t "a rank that hangs in an operation that all have called: for how long" until_true 15 hangs
t "in a first reading: its progress thread sleeps, and in what" eval 'echo "$(lines)"; [ "$(cell 1 8 | tr -d %)" -gt 50 ] && lines | grep -qE " 1/3 .* in clock_nanosleep$"'
t "nobody is waited for" eval '! grep "WAITED FOR" "$tmp/top"'
stop_recorder INT
kill_job

record_bg slow
job_bg slow --ranks 2 --bytes 256K --iters 1000000 --no-check --fault slow-progress:rank=1:us=3000:poll=1
ranks_of 2
slow() {
	watch 1
	lines | grep -qE ' 1/2 .* in p?poll$' && [ "$(cell 1 8 | tr -d %)" -gt 50 ]
}
t "a progress thread that sleeps: in what" until_true 15 slow
stop_recorder INT
kill_job

finish
