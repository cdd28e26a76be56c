#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Who ended a process, or stopped it: each signal of that kind is in the trace, with its sender, as the kernel knows it; others
# are not. And report says so. And what the kernel logs meanwhile.
. "$(dirname "$0")/lib.sh"
# shellcheck source=memory_lib.sh
. "$here/memory_lib.sh"
needs python3
trap 'cleanup; [ -d "$cgroup" ] && rmdir "$cgroup"' EXIT

ulimit -c 0

export STANDIN_TIMEOUT=2 # peers of a rank that dies
base=(--ranks 2 --bytes 256K --sleep-us 1000 --iters 100000 --timeout 30)
cp "$(command -v dash || command -v sh)" "$tmp/bin/evict" # a sender's name that is nobody else's
as=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# of NAME PID FILTER: jq over each signal of a process, or of all (PID "*").
of() {
	grep -h '^{"recordType":"signal"' "$tmp/$1"/trace_*_pid$2.jsonl | jq -c "$3"
}

# signals NAME [PID]: as [name, number, code, sender's name], in order.
signals() {
	of "$1" "${2:-*}" '[.signal, .nr, .code, .from.comm]'
}

# evidence NAME CODE: what the verdict says beyond the plain fact.
evidence() {
	"$scope" report --json "$tmp/$1" | jq -r --arg c "$2" '[.verdicts[] | select(.code == $c)][0].evidence[1]'
}

# crash NAME FAULT [WRAPPER...]: a job whose rank 1 ends so, beside the recorder.
crash() {
	local name=$1 fault=$2
	shift 2
	record_bg "$name"
	NCCL_PROFILER_PLUGIN=$plugin "$@" "$job" "${base[@]}" --fault "$fault" >"$tmp/$name.job" 2>&1
	stop_recorder
}

# ---- By somebody else

record_bg others
NCCL_PROFILER_PLUGIN=$plugin "${as[@]}" "$job" "${base[@]}" >"$tmp/others.job" 2>&1 &
starter=$!
ranks_of 2
sleep 1.5
for how in STOP CONT; do
	"${as[@]}" "$tmp/bin/evict" -c "kill -$how ${ranks[1]}"
	sleep 1
done
kill -WINCH "${ranks[0]}" # which ends nobody
"${as[@]}" "$tmp/bin/evict" -c 'echo $$; kill -TERM "$1"; :' sh "${ranks[1]}" >"$tmp/evict.pid"
wait "$starter"
stop_recorder
t "stopped, continued, ended: the trace is clean" clean others
is "stopped, continued, ended: each signal, and whose" "$(signals others "${ranks[1]}" | paste -sd ' ')" \
	'["SIGSTOP",19,0,"evict"] ["SIGCONT",18,0,"evict"] ["SIGTERM",15,0,"evict"]'
is "stopped, continued, ended: the other rank was sent none" "$(signals others "${ranks[0]}")" ""
t "stopped, continued, ended: by its number and its user" holds others \
	'records("signal")[-1].from | .pid == $pid and .tid == $pid and .uid == 65534' --argjson pid "$(cat "$tmp/evict.pid")"
is "stopped, continued, ended: report says who ended it" "$(evidence others missing-collective | sed 's/, [0-9.]* ms before its end//')" \
	"SIGTERM was sent by evict[$(cat "$tmp/evict.pid")], user 65534"
t "stopped, continued, ended: report says who stopped it" grep -qE '^SIGSTOP was sent by evict\[[0-9]+\], user 65534$' \
	<(evidence others stopped)

# ---- By a debugger

record_bg traced
NCCL_PROFILER_PLUGIN=$plugin "$job" "${base[@]}" --iters 1500 >"$tmp/traced.job" 2>&1 &
starter=$!
ranks_of 2
sleep 1
python3 - "${ranks[1]}" <<'END'
import ctypes, os, sys, time
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
pid = int(sys.argv[1])
for request in (16, 17):  # PTRACE_ATTACH, PTRACE_DETACH
    if ptrace(request, pid, None, None):
        sys.exit(os.strerror(ctypes.get_errno()))
    if request == 16:
        os.waitpid(pid, 0x40000000)  # __WALL
        time.sleep(0.5)
END
wait "$starter"
stop_recorder
is "a debugger: it is told" "$(signals traced)" '["SIGSTOP",19,128,"python3"]'
t "a debugger: report says so" grep -qE '^a debugger stopped it: python3\[[0-9]+\]$' <(evidence traced stopped)

# ---- Of its own

crash abort kill:rank=1:after=200:sig=6
is "abort(3): the process itself" "$(signals abort)" '["SIGABRT",6,-6,"scope-job"]'
t "abort(3): by the thread that did so, for itself" holds abort \
	'records("signal")[0] as $s | $s.tid == $s.from.tid and (records("thread") | any(.tid == $s.tid and .role == "app")) and (records("header") | any(.pid == $s.from.pid))'
t "abort(3): report says so" grep -qE '^SIGABRT was its own doing, by its thread scope-job \([0-9]+\)' <(evidence abort missing-collective)

crash fault segv:rank=1:after=200
is "a fault: the kernel's, for a thread" "$(signals fault)" '["SIGSEGV",11,1,"scope-job"]'
t "a fault: report says so" grep -qE '^SIGSEGV: a fault of its thread scope-job \([0-9]+\)' <(evidence fault missing-collective)

# ---- By the kernel

if cgroup_new; then
	crash memory oom:rank=1:after=200 sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cgroup"
	is "out of memory: SIGKILL from nobody" "$(signals memory | sort -u)" '["SIGKILL",9,128,null]'
	t "out of memory: the footer of the one that was chosen says so" holds memory \
		'records("footer") | map(select(.oom)) | length == 1 and .[0].end == "signal 9"'
	is "out of memory: report says so" "$(evidence memory missing-collective)" "the kernel killed it to get memory back (out of memory)"
	t "out of memory: the trace is clean" clean memory
	t "out of memory: what the kernel logged of it is in both traces" holds memory \
		'(records("header") | length) == 2 and ([records("kmsg")[] | select(.sign == "memory" and (.before | not) and (.text | test("Killed process [0-9]+ \\(scope-job\\)"))).text] | length == 2 and (unique | length) == 1)'
	t "out of memory: report has it once, and whose process that was" eval '"$scope" report --json "$tmp/memory" |
		jq -e "[.kernelLog[] | select(.sign == \"memory\")] | length == 1 and .[0].rank == 1 and .[0].after > 0" >/dev/null'
	t "out of memory: and with the verdict" eval '"$scope" report "$tmp/memory" | grep -q "^     kernel.s log: Memory cgroup out of memory: Killed process"'
else
	skip "out of memory" "no cgroup with the memory controller can be made here"
fi

record_bg container
NCCL_PROFILER_PLUGIN=$plugin unshare --pid --fork --mount-proc "$tmp/bin/evict" -c '"$@" >/dev/null 2>&1 & sleep 2; exit 0' sh "$job" "${base[@]}"
stop_recorder
is "a container's first process ends: both ranks, by that" "$(signals container | sort | uniq -c | sed 's/^ *//')" '2 ["SIGKILL",9,128,"evict"]'

# ---- What else the kernel says

# Only the kernel can make a line that is the kernel's: of a device that has lost what was on it.
disk_error() {
	local loop
	truncate -s 1M "$tmp/disk" && loop=$(losetup -f --show "$tmp/disk") || return
	truncate -s 0 "$tmp/disk"
	dd if="$loop" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
	losetup -d "$loop"
}
if [ -r /dev/kmsg ] && disk_error; then
	sleep 1
	record_bg log
	job_bg log-job "${base[@]}" --iters 1000
	ranks_of 2
	sleep 0.5
	echo "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus" >/dev/kmsg
	echo "<3>NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus" >/dev/kmsg
	disk_error
	wait "$starter"
	stop_recorder
	is "the kernel's log: what was there before, and what came" \
		"$(kinds=kmsg q log 'group_by(.text + "\(.ts)")[] | [.[0].sign, .[0].before, length] | tojson' | tail -n 2 | sort | paste -sd ' ')" \
		'["storage",null,2] ["storage",true,2]'
	t "the kernel's log: when" holds log '([events[].start.ts] | min) as $first
		| records("kmsg") | all(.before == true and .ts < $first or (.before | not) and .ts > $first and .ts < $first + 10000000)'
	t "the kernel's log: nobody else can say what the kernel says" holds log 'records("kmsg") | all(.text | test("Xid") | not)'
	t "the kernel's log: clean, lossless" eval 'clean log && lossless log'
else
	skip "the kernel's log" "it cannot be read here, or there are no loop devices"
fi

# ---- What a process handles

record_bg handled
HANDLERS_FAULTS=2000 LD_PRELOAD=$build/e2e/handlers.so NCCL_PROFILER_PLUGIN=$plugin "$job" "${base[@]}" >"$tmp/handled.job" 2>&1 &
starter=$!
ranks_of 2
sleep 2.5
"$tmp/bin/evict" -c "kill -TSTP ${ranks[1]}; kill -TERM ${ranks[1]}; :"
wait "$starter"
stop_recorder
is "a handler that cleans up: who sent it first, and it itself" \
	"$(of handled "${ranks[1]}" 'select(.nr == 15) | [.code, .handled, .from.comm]' | paste -sd ' ')" \
	'[0,true,"evict"] [-6,null,"scope-job"]'
t "a handler that cleans up: report names who sent it first" grep -qE '^SIGTERM was sent by evict\[[0-9]+\], user 0, [2-9][0-9][.0-9]* ms before its end$' \
	<(evidence handled missing-collective)
is "a handler that does not stop: no stop is told" "$(of handled '*' 'select(.nr == 20)')" ""
t "2000 faults of each that are handled: one a second is told" holds handled \
	'records("signal") | map(select(.nr == 11)) | length >= 2 and length <= 6 and all(.handled and .code > 0)'
t "2000 faults of each that are handled: nothing lost" lossless handled

# ---- More than anybody can read

record_bg flood
job_bg flood-job "${base[@]}" --iters 1500
ranks_of 2
sleep 0.5
for _ in {1..500}; do kill -STOP "${ranks[1]}" && kill -CONT "${ranks[1]}"; done
wait "$starter"
is "stopped and continued 500 times: the job's exit status" $? 0
stop_recorder
facts flood '(records("footer") | map(.lost["context-ring-full"] // 0) | add) as $lost | records("signal") | length as $n
	| {some: ($n >= 64 and $n < 300), all: ($lost > 200 and $n + $lost <= 1000)}'
is "stopped and continued 500 times: a part is told, the rest is counted" "$(fact some) $(fact all)" "true true"
t "stopped and continued 500 times: the trace is clean" clean flood

# ---- Without other context

record_bg bare --sched=off --net=off
job_bg bare-job "${base[@]}"
ranks_of 2
sleep 1
kill -KILL "$starter"
until_true 10 ended "${ranks[0]}" && until_true 10 ended "${ranks[1]}"
wait "$starter"
stop_recorder
is "without other context: told as well; of who ends with its parent, whose end that was" \
	"$(of bare '*' '[.signal, .code, .from.comm, .from.exiting]' | sort -u)" '["SIGKILL",0,"scope-job",true]'

exit $failed
