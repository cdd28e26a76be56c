#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope status`: what it says of recorders and jobs against what the test has started, the traces and
# NCCL's own memory; recorders that leave, that are killed, and files and names that were made to do harm.
. "$(dirname "$0")/lib.sh"

run=$NCCLSCOPE_STATUS_DIR
user=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# look [OPTION...]: both forms, $tmp/table and $tmp/json.
look() {
	"$scope" status "$@" >"$tmp/table" 2>"$tmp/status.err" &&
		"$scope" status --json "$@" >"$tmp/json" 2>/dev/null
}
# j FILTER [ARG...]: of the JSON.
j() {
	jq -r "$@" "$tmp/json"
}
# says FILTER [ARG...]: a new look gives true; for until_true.
says() {
	look && [ "$(j "$@")" = true ]
}
# row PID FIELDS [RECORDER]: of the table's line of a process (or of one in a recorder's list).
row() {
	awk -v pid="$1" -v rec="${3:-}" 'rec == "" ? $1 == pid : $1 == rec && $2 == pid' "$tmp/table" |
		awk -v f="$2" '{ n = split(f, a, ","); for (i = 1; i <= n; i++) printf "%s%s", $a[i], i < n ? " " : "\n" }' | head -n 1
}
# printable FILE...: nothing for a terminal to obey, nothing wider than 100.
printable() {
	! grep -n '[^[:print:]]' "$@" && ! grep -nE '.{101}' "$tmp/table"
}

# ---- Nobody there

alone=(unshare --pid --fork --mount-proc)
"${alone[@]}" "$scope" status >"$tmp/none" 2>"$tmp/none.err"
is "empty node: exit status, output, a line about it" "$? $(wc -c <"$tmp/none") $(cat "$tmp/none.err")" \
	"0 0 ncclscope: No recorder, and no process with the plugin"
is "empty node: JSON" "$("${alone[@]}" "$scope" status --json 2>/dev/null | jq -c '[.recorders, .processes, .hidden]')" "[[],[],0]"
t "looking makes nothing" [ ! -e "$run" ]

# ---- A job that nobody records

evil=$tmp/bin/$'e\033[31m\n\177'
cp "$job" "$evil"
job=$evil job_bg run --ranks 2 --bytes 256K --iters 1000000 --sleep-us 2000 --name $'n\033]0;x\a\n\177\303\251'
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
until_true 10 says 'all(.processes[] | select(.hostPid == ('"${ranks[0]},${ranks[1]}"')); .communicators == 1)'
t "no recorder: its processes are found" same \
	"$(j --argjson a "${ranks[0]}" --argjson b "${ranks[1]}" -c '[.processes[] | select(.hostPid == ($a, $b)) |
		[.uid, .masks[].mask, .wants, .comms[0].nranks]] | unique')" '[[0,0,[],2]]'
is "no recorder: in the table" "$(row "${ranks[0]}" 4,5,6,7)" "1 none - -"
look -p "${ranks[0]}"
is "-p: that process alone" "$(j '[.processes[].hostPid] | tojson')" "[${ranks[0]}]"
is "communicator's name, in JSON" "$(j '.processes[0].comms[0].commName | tojson')" '"n\u001b]0;x\u0007\n\u007fé"'
t "communicator's name, in the table" grep -q 'of 2: n\\x1b\]0;x\\x07\\x0a\\x7f\\xc3\\xa9$' "$tmp/table"
t "command's name" grep -qF 'e\x1b[31m\x0' "$tmp/table"
t "hostile names reach no terminal" printable "$tmp/table" "$tmp/json"
"$scope" status -p $$ 2>"$tmp/status.err"
is "-p of a process without the plugin, and what to do" "$? $(cat "$tmp/status.err")" \
	"1 ncclscope: error: Process $$ has no ncclscope plugin loaded: start it with NCCL_PROFILER_PLUGIN=ncclscope; 'ncclscope status' lists those that have it"
for command in status "arm --mask coll"; do
	# shellcheck disable=SC2086
	"$scope" $command -p 4194304 2>"$tmp/status.err"
	is "$command -p of no process, and what to do" "$? $(sed 's/.*4194304: //' "$tmp/status.err")" \
		"1 No such process; 'ncclscope status' lists the processes that have the plugin"
	# shellcheck disable=SC2086
	setpriv --bounding-set=-sys_ptrace "$scope" $command -p "${ranks[0]}" 2>"$tmp/status.err"
	is "$command -p as root that may not look, and what to do" "$? $(sed 's/.*: Permission/Permission/' "$tmp/status.err")" \
		"3 Permission denied; root needs CAP_SYS_PTRACE for that, which a container has to be given"
	if unshare -Ur true 2>/dev/null; then
		# shellcheck disable=SC2086
		unshare -Ur "$scope" $command -p "${ranks[0]}" 2>"$tmp/status.err"
		is "$command -p as root that the kernel refuses all the same" "$? $(sed 's/.*: Permission/Permission/' "$tmp/status.err")" \
			"3 Permission denied; root has CAP_SYS_PTRACE here: the kernel or a security module refuses it, or another capability is missing (docs/privileges.md)"
	fi
done
"$scope" status -p 1x 2>/dev/null
is "-p of no pid: usage" $? 2

# ---- Two recorders with different masks, and a hand that has armed one process

record_bg a --mask coll --sched off
a=$recorder
t "a recorder tells at its beginning how many have the plugin" until_true 5 grep -q "^ncclscope: 2 processes have the plugin now; 'ncclscope status' lists them\$" "$tmp/a.err"
record_bg b --mask proxystep --ring 600K --net off # rounded up to 1 MiB
b=$recorder
"$scope" arm -p "${ranks[0]}" --mask p2p
t "two recorders: both are there, with their processes" until_true 10 says --argjson a "$a" --argjson b "$b" \
	'[.recorders[] | select(.state == "running" and (.processes | length) == 2).pid] | sort == ([$a, $b] | sort)'
is "options" "$(j -c --argjson b "$b" '.recorders[] | select(.pid == $b) | [.options.maskNames, .options.sched, .options.net, .options.ringBytes, .outputs]')" \
	"[[\"proxystep\"],\"events\",\"off\",1048576,[\"$tmp/b\"]]"
is "who wants what" "$(j -c --argjson p "${ranks[0]}" '.processes[] | select(.hostPid == $p).wants | map([.by, .pid, .maskNames]) | sort')" \
	"[[\"arm\",null,[\"p2p\"]],[\"recorder\",$a,[\"coll\"]],[\"recorder\",$b,[\"proxystep\"]]]"
is "NCCL's mask is the stand-in's own" "$(j --argjson p "${ranks[0]}" '.processes[] | select(.hostPid == $p).masks[].mask')" "$(mask_of "${ranks[0]}")"
is "NCCL's mask in words" "$(row "${ranks[0]}" 5)" "coll,p2p,proxystep"
is "masks in the table" "$(grep -cE " $a +coll\$" "$tmp/table") $(grep -cE " $b +proxystep\$" "$tmp/table") $(grep -cE ' arm +p2p$' "$tmp/table")" \
	"2 2 1"

# The job stands still, so that counts can be compared.
kill -STOP "${ranks[@]}"
# settled: what both recorders say of each rank is in its trace, and in both forms.
settled() {
	local rec name rank want
	look || return 1
	for rec in "$a a" "$b b"; do
		name=${rec#* } rec=${rec% *}
		for rank in "${ranks[@]}"; do
			want=$(grep -c '"recordType":"event"' "$tmp/$name/"*"_pid$rank.jsonl")
			same "$(j --argjson r "$rec" --argjson p "$rank" '.recorders[] | select(.pid == $r).processes[] | select(.hostPid == $p).events')" "$want" "$name" || return 1
			same "$(row "$rank" 4,5 "$rec")" "$want 0" "$name in the table" || return 1
		done
	done
}
t "counts of each, in both forms, are their traces'" until_true 20 settled
t "sums" j -e 'all(.recorders[]; ([.processes[].events] | add) == .counts.events and ([.processes[].records] | add) == .counts.records)'
t "the traces are named" j -e --arg dir "$tmp" 'all(.recorders[].processes[]; .trace | startswith($dir))'
t "ranks, and how old the last record is" j -e 'all(.recorders[]; .updatedUs as $now | all(.processes[];
	.ranks[0].nranks == 2 and .lastRecordUs > 0 and .lastRecordUs < $now and .lastRecordUs > $now - 60e6))'
t "own CPU time and memory" j -e 'all(.recorders[].self; .cpuUs > 0 and .memory > 1e6 and .heap > 1e5 and .heap < .memory and .statusUs > 0)'

# The same counts for Prometheus, from the same files.
metric() {
	awk -v name="$1" -v r="recorder=\"$2\"" -v p="pid=\"$3\"" 'index($1, name "{") == 1 && index($1, r) && index($1, p) { print $2 }' "$tmp/metrics"
}
"$scope" metrics >"$tmp/metrics"
is "metrics: both recorders" "$? $(grep -c '^ncclscope_recorder_up{.*} 1$' "$tmp/metrics") $(grep '^ncclscope_recorders ' "$tmp/metrics")" "0 2 ncclscope_recorders 2"
is "metrics: events of each process in each trace" "$(for r in $a $b; do for p in "${ranks[@]}"; do metric ncclscope_process_events_total $r "$p"; done; done | xargs)" \
	"$(for r in $a $b; do for p in "${ranks[@]}"; do j --argjson r "$r" --argjson p "$p" '.recorders[] | select(.pid == $r).processes[] | select(.hostPid == $p).events'; done; done | xargs)"

keys=$(j '[paths | map(strings) | last] | unique[]' | while read -r key; do
	grep -qw "$key" "$top/man/ncclscope-status.1" || echo "$key"
done | xargs)
is "every key is in ncclscope-status(1)" "$keys" ""

# ---- As a user

"${user[@]}" "$scope" status >"$tmp/user" 2>"$tmp/user.err"
is "as a user: exit status" $? 0
is "as a user: recorders and their counts" "$(grep -cE "^ *($a|$b) +(running|${ranks[0]}|${ranks[1]}|all) " "$tmp/user")" 8
is "as a user: others' processes are not looked into, which is said" \
	"$(grep -c "^PID" "$tmp/user") $(grep -cE '^ncclscope: [0-9]+ processes? may not be looked into, but by root: 1 \(.*[^,] and [0-9]+ more$' "$tmp/user.err")" "0 1"
# the shell, which has a process id namespace of its own, takes the name
timeout 20 "${alone[@]}" sh -c 'printf "s\\033[31m\\n\\177" >/proc/self/comm; "$@"; :' sh "${user[@]}" "$scope" status >/dev/null 2>"$tmp/user.err"
is "as a user: which ones, whatever their names" "$(tail -n 1 "$tmp/user.err")" \
	'ncclscope: 1 process may not be looked into, but by root: 1 (s\x1b[31m\x0a\x7f)'
"${user[@]}" "$scope" status -p "${ranks[0]}" >/dev/null 2>"$tmp/user.err"
is "as a user, -p of another's process" "$? $(grep -c 'run as root or as its user' "$tmp/user.err")" "3 1"
if [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ]; then
	NCCL_PROFILER_PLUGIN=$plugin "${user[@]}" "$tmp/bin/scope-job" --ranks 2 --bytes 4K --delay-ms 60000 >/dev/null 2>&1 &
	mine=$!
	until_true 10 children_ready "$mine" 2
	own() {
		"${user[@]}" "$scope" status --json 2>/dev/null | jq -e --argjson p "$(pgrep -P "$mine" | head -n 1)" \
			'.processes | length == 2 and any(.hostPid == $p and .uid == 65534 and (.wants | length > 0))'
	}
	t "as a user: own processes" until_true 10 own
	kill -KILL "$mine" $(pgrep -P "$mine")
	wait "$mine" 2>/dev/null
else
	skip "as a user: own processes" "this kernel's ptrace_scope forbids it"
fi

# ---- One leaves; what others put beside the files; one is killed

# Somebody else's from the start: a recorder may look at any moment, and remove what it takes for a dead one's.
echo "{\"pid\":1,\"startTime\":1,\"updatedUs\":1}" >"$run/other"
chown 65534 "$run/other"
mv "$run/other" "$run/recorder-1.json"
ln -s /etc/shadow "$run/recorder-2.json"
echo '{"pid":' >"$run/recorder-3.json"
mkfifo "$run/recorder-4.json"
look
is "others' files are skipped, with a word" "$(j '.recorders | length') $(sed -nE "s|.*/(recorder-.*\.json)': (.*), skipping|\1 \2;|p" "$tmp/status.err" | sort | tr -d "'" | xargs)" \
	"2 recorder-1.json somebody elses file; recorder-2.json a symbolic link; recorder-3.json no recorders status; recorder-4.json no regular file;"
rm -f "$run"/recorder-[1-4].json
kill -CONT "${ranks[@]}"
recorder=$b
stop_recorder
is "one has left: its file is gone, the other is there" "$rc $(ls "$run")" "0 recorder-$a.json"
t "one has left: the other goes on" until_true 10 says --argjson a "$a" --argjson p "${ranks[1]}" \
	'[.recorders[].pid] == [$a] and ([.processes[] | select(.hostPid == $p).wants[].pid] == [$a])'
kill -KILL "$a"
wait "$a" 2>/dev/null
t "killed: dead, not running" until_true 10 says --argjson a "$a" '[.recorders[] | [.pid, .state]] == [[$a, "dead"]]'
is "killed: in the table" "$(row "$a" 2,4,5,6)" "dead - - -"
t "killed: what it wanted is nobody's" says --argjson a "$a" 'all(.processes[].wants[]; .pid != $a or .by == "gone")'

# ---- What was lost; the next recorder takes the dead one's file away

record_bg c --ring 256K
t "the dead one's file is gone" until_true 10 eval '[ "$(ls "$run")" = "recorder-$recorder.json" ]'
until_true 10 says '[.recorders[].processes[].hostPid] | length == 2'
kill -STOP "$recorder"
sleep 1
kill -CONT "$recorder"
t "lost: shows" until_true 10 says '.recorders[0].lost["rate-limit"] > 0'
# caught_up: some more of the job, of which nothing was lost: gaps show when something comes after them.
caught_up() {
	local full
	full=$(j '.recorders[0].counts.ringFull')
	kill -CONT "${ranks[@]}"
	sleep 0.5
	kill -STOP "${ranks[@]}"
	look && until_true 10 says --argjson t "$(j '.recorders[0].updatedUs')" '.recorders[0].updatedUs > $t + 1.5e6' &&
		same "$(j '.recorders[0].counts.ringFull')" "$full"
}
t "lost: nothing more" until_true 30 caught_up
is "lost: the table's line" "$(grep -cE "^ +lost: .*rate-limit $(j '.recorders[0].lost["rate-limit"]')" "$tmp/table")" 1
t "lost: of the recorder, and of its processes" j -e '.recorders[0] | .lost["rate-limit"] > 0 and
	([.processes[].lost["rate-limit"] // 0] | add) == .lost["rate-limit"]'
stop_recorder
is "lost: as the traces have it" "$(j '.recorders[0].lost["rate-limit"]')" "$(q c '[records("footer")[].lost["rate-limit"] // 0] | add')"
is "at the end no file is left" "$(ls "$run")" ""

# ---- Traces far behind: the disk takes a second for each write, and memory has room for what waits

mkdir "$tmp/slow" "$tmp/slow.disk"
if [ -w /dev/fuse ]; then
	"$build/e2e/slow_fs" "$tmp/slow.disk" 1000 "$tmp/slow" &
	disk=$!
	until_true 10 mountpoint -q "$tmp/slow"
	job_bg behind --ranks 2 --bytes 64K --iters 1000000 --sleep-us 20000 --no-check
	ranks_of 2
	record_bg slow
	# mine FILTER: of this recorder.
	mine() {
		look && j -e --argjson pid "$recorder" '.recorders[] | select(.pid == $pid) | '"$1" >"$tmp/mine"
	}
	t "traces behind: the recorder is there all the same, as of when, and that nothing is known yet" until_true 3 mine '.state == "running" and
		.startedUs > 0 and .asOfUs == .startedUs and .processes == [] and .counts.records == 0 and .lost == {}'
	until_true 10 mine '.backlog.us > 3e6'
	kill -INT "$recorder"
	sleep 7
	t "traces behind, after its end: it runs, and says how far" mine '.state == "running" and .backlog.us > 3e6'
	t "traces behind, after its end: and goes on to" until_true 3 mine ".updatedUs > $(j --argjson pid "$recorder" '.recorders[] | select(.pid == $pid).updatedUs')"
	kill -KILL "$disk"
	wait "$disk" 2>/dev/null
	until_true 20 ended "$recorder"
	wait "$recorder"
	kill_job
	mkdir "$tmp/full" "$tmp/full.disk"
	"$build/e2e/slow_fs" "$tmp/full.disk" 1000 "$tmp/full" &
	disk=$!
	until_true 10 mountpoint -q "$tmp/full"
	job_bg full --ranks 2 --bytes 8K --iters 10000000 --no-check
	record_bg full --net off --ring 1M
	# Nobody empties the ring while its records have no room: for longer than a file takes to count as silent.
	full='.ring.used > .ring.bytes / 2 and .backlog.bytes > 20e6'
	if until_true 120 mine "$full"; then
		sleep 7
		t "no room for more: the recorder waits, and says that it runs" mine ".state == \"running\" and $full"
	else
		t "no room for more: it comes to that" false
	fi
	kill -KILL "$disk"
	wait "$disk" 2>/dev/null
	kill -KILL "$recorder"
	wait "$recorder" 2>/dev/null
	kill_job
else
	skip "traces behind" "no /dev/fuse"
fi

# ---- Between windows it waits, and is there

export TZ=UTC # so that hours of --every are full ones
# waits [FILTER]: that is told of $recorder, which waits, and of no other.
waits() {
	says --argjson p "$recorder" '(.recorders | map([.pid, .state])) == [[$p, "waiting"]] and (.recorders[0] | '"${1:-true}"')'
}
# begins: at which full second of the real clock the next recording does.
begins() {
	j --argjson ahead "$(awk -v now="$EPOCHREALTIME" '{ printf "%.6f", now - $1 }' /proc/uptime)" \
		'.recorders[0].waitsUntilUs / 1e6 + $ahead + 0.5 | floor'
}
record_bg pause --every 2h --for 300ms --mask coll
moment=$((EPOCHSECONDS / 7200 * 7200 + 7200))
t "between windows: it waits, and what it is asked for" until_true 10 waits '.options.output == "'"$tmp/pause"'" and .options.maskNames == ["coll"]'
is "between windows: until the next begins" "$(begins)" $moment
is "between windows: in the table, and no counts" "$(grep -cE "^ *$recorder +waiting +[0-9.ms]+ +- +- +- +coll +$tmp/pause$" "$tmp/table") $(
	grep -c "^ *its next recording begins at $(date -d @$moment +%T)$" "$tmp/table") $(grep -c RECORDS "$tmp/table")" "1 1 0"
is "between windows: top" "$("$scope" top -b -n 1 | sed -n 2p)" \
	"The recorder waits until $(date -d @$moment +%T). Start one for now: ncclscope record"
is "between windows: metrics: it is up" "$("$scope" metrics | grep -v '^#' | sed 's/{.*}//' | xargs)" "ncclscope_recorders 1 ncclscope_recorder_up 1"
sleep 2
t "between windows: it is heard of again" waits '.updatedUs > .startedUs + 1e6 and .ageUs < 1.5e6'
pause=$recorder
record_bg beside --net off
is "one records beside: top" "$(until_true 10 says 'any(.recorders[]; .state == "running")'
	"$scope" top -b -n 1 | sed -nE '2s/^(1 recorder), .*(; .*)/\1\2/p')" "1 recorder; 1 waits until $(date -d @$moment +%T)"
stop_recorder
recorder=$pause
kill -STOP "$recorder"
t "between windows, stopped: silent" until_true 10 says '[.recorders[].state] == ["silent"]'
kill -CONT "$recorder"
t "between windows, goes on: waits" until_true 5 waits
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
t "between windows, killed: dead" until_true 5 says --argjson p "$recorder" '[.recorders[] | [.pid, .state]] == [[$p, "dead"]]'
is "between windows, killed: top" "$("$scope" top -b -n 1 | sed -n 2p)" "No recorder runs on this node. Start one: ncclscope record"
record_bg turns --every 3s --for 1s
in_turns() {
	local state
	for state in running waiting running; do
		until_true 6 says '[.recorders[].state] == ["'$state'"]' || return
	done
}
t "windows: it records, waits and records again" in_turns
until_true 6 waits
stop_recorder INT
is "between windows, ended: its file is gone" "$rc $(ls "$run")" "0 "
env --default-signal=INT "$scope" record --plugin "$plugin" -q -o "$tmp/later" --delay 1h 2>/dev/null &
recorder=$!
t "--delay: the same" until_true 5 waits '.waitsUntilUs - .startedUs | . > 3590e6 and . <= 3600e6'
stop_recorder INT
is "--delay, ended: its file is gone" "$(ls "$run")" ""
unset TZ

# ---- A directory that cannot be had costs the recording nothing

NCCLSCOPE_STATUS_DIR=/proc/nonexistent record nodir -v -- "$tmp/bin/scope-job" --ranks 2 --bytes 64K --iters 3 --json
t "no directory: the recording is whole" good nodir
is "no directory: said with -v" "$(grep -c "Failed to open '/proc/nonexistent': .*, continuing without a status file" "$tmp/nodir.err")" 1

# ---- Where they lie

t "by default in /run/ncclscope, which is root's" unshare --mount bash -c '
	mount -t tmpfs none /run && umask 077 && unset NCCLSCOPE_STATUS_DIR || exit
	"$0" record --plugin "$1" -o "$2/default" -- sh -c "sleep 0.5; stat -c \"%a %u\" /run/ncclscope /run/ncclscope/recorder-\$PPID.json; \"$0\" status | sed -n 2p" >"$2/default.out" 2>"$2/default.err" &&
	[ "$(head -n 2 "$2/default.out" | xargs)" = "755 0 644 0" ] && grep -q " running " "$2/default.out" &&
	[ -z "$(ls /run/ncclscope)" ]' "$scope" "$plugin" "$tmp"

finish
