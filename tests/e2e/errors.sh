#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What goes wrong around a recording, and what it then says and does. Above all: the job goes on, and
# what is missing is counted.
. "$(dirname "$0")/lib.sh"
# shellcheck source=memory_lib.sh
. "$here/memory_lib.sh"

# says NAME CODE TEXT...: the recording ended with CODE and said each text, on stderr.
says() {
	local name=$1 text
	same "$rc" "$2" "exit status" || { cat "$tmp/$name.err"; return 1; }
	shift 2
	for text in "$@"; do
		grep -qF -- "$text" "$tmp/$name.err" && continue
		echo "not said: '$text'"
		cat "$tmp/$name.err"
		return 1
	done
}
small=("$job" --ranks 2 --bytes 64K --iters 2 --json)

# ---- Usage

record u1 --unknown -- true
t "unknown option" says u1 2 unknown
record u2 --mask coll,nosuch -- true
t "unknown event type" says u2 2 nosuch
record u3 -d 10parsec -- true
t "no duration" says u3 2 10parsec
record u4 -p 12x
t "no process id" says u4 2 12x
record u5 --ring 64X
t "no ring size" says u5 2 64X
for size in 64 255K 3G; do
	record u5 --ring "$size" -- true
	t "ring of $size: refused, and what would do is said" says u5 2 "'$size'" "from 256K to 2G" "without a unit, bytes"
done
for args in "" "--unknown" "-p x" "-p 1 --mask nosuch"; do
	# shellcheck disable=SC2086
	"$scope" arm $args >"$tmp/arm.out" 2>"$tmp/arm.err"
	is "arm $args: usage" "$? $(wc -c <"$tmp/arm.out")" "2 0"
done
"$scope" nosuch >"$tmp/sub.out" 2>"$tmp/sub.err"
is "unknown sub-command: usage" "$? $(wc -c <"$tmp/sub.out")" "2 0"

# ---- Privilege and kernel

install -d -m 777 "$tmp/open"
setpriv --reuid 65534 --regid 65534 --clear-groups "$scope" record --plugin "$plugin" -o "$tmp/open/x" -- \
	"${small[@]}" >"$tmp/nobody.out" 2>"$tmp/nobody.err"
rc=$?
t "not root" says nobody 3 "ncclscope doctor"
is "not root: the job is not started" "$(wc -c <"$tmp/nobody.out")" 0
mkdir "$tmp/nobtf"
unshare -m sh -c 'mount --bind "$0" /sys/kernel/btf && exec "$@"' "$tmp/nobtf" \
	"$scope" record --plugin "$plugin" -o "$tmp/btf" -- "${small[@]}" >"$tmp/btf.out" 2>"$tmp/btf.err"
rc=$?
t "no BTF" says btf 4 "BTF" CONFIG_DEBUG_INFO_BTF

if "$scope" doctor --json --plugin "$plugin" | jq -e '.features[] | select(.name == "memlock").detail | contains("not used")' >/dev/null && cgroup_new; then
	(echo $BASHPID >"$cgroup/cgroup.procs" && exec timeout 60 "$scope" record --plugin "$plugin" -o "$tmp/mem" -d 300ms) 2>"$tmp/mem.err"
	rc=$?
	t "no memory for the ring" says mem 1 "not enough memory" "a ring of 64M" "--ring"
	until_true 5 rmdir "$cgroup"
else
	skip "no memory for the ring" "no cgroup that BPF's memory counts in can be made here"
fi

# ---- Plugin and process

timeout 60 "$scope" record --plugin "$tmp/none.so" -o "$tmp/np" -- "${small[@]}" >"$tmp/np.out" 2>"$tmp/np.err"
rc=$?
t "plugin not found" says np 1 "$tmp/none.so" "No such file" --plugin
NCCLSCOPE_PLUGIN=$tmp/none.so timeout 60 "$scope" record -o "$tmp/np" -- "${small[@]}" >"$tmp/np.out" 2>"$tmp/np.err"
rc=$?
t "plugin not found, of the environment" says np 1 "Failed to find the plugin '$tmp/none.so'" "No such file" --plugin
cp "$tmp/bin/libnccl.so.2" "$tmp/other.so"
timeout 60 "$scope" record --plugin "$tmp/other.so" -o "$tmp/np" -- "${small[@]}" >"$tmp/np.out" 2>"$tmp/np.err"
rc=$?
t "a library that is no plugin" says np 1 "$tmp/other.so" "no probe ncclscope:flush" "doctor"
echo text >"$tmp/text.so"
timeout 60 "$scope" record --plugin "$tmp/text.so" -o "$tmp/np" -- "${small[@]}" >"$tmp/np.out" 2>"$tmp/np.err"
rc=$?
t "a file that is no library" says np 1 "$tmp/text.so" "no probe ncclscope:flush" "doctor"
sleep 60 &
record pid1 -p $!
t "-p of a process without the plugin" says pid1 1 "$!" "no ncclscope plugin"
kill %1
record pid2 -p 4194304
t "-p of no process" says pid2 1 4194304 "No such process" "ncclscope status"
job_bg jpid --ranks 2 --bytes 64K --iters 100000 --sleep-us 2000 --no-check
ranks_of 2
a_thread() {
	tid=$(find "/proc/${ranks[0]}/task" -mindepth 1 -maxdepth 1 ! -name "${ranks[0]}" -printf '%f\n' | head -n 1)
	[ -n "$tid" ]
}
until_true 10 a_thread
record tid -p "$tid" -d 1s
t "-p of a thread: of which process" says tid 1 "$tid is a thread of process ${ranks[0]}" "-p ${ranks[0]}"
for cmd in arm disarm status; do
	timeout 20 "$scope" $cmd -p "$tid" >"$tmp/tid.out" 2>"$tmp/tid.err"
	rc=$?
	t "$cmd -p of a thread: the same" says tid 1 "$tid is a thread of process ${ranks[0]}: -p ${ranks[0]}"
	is "$cmd -p of a thread: nothing more" "$(cat "$tmp/tid.out")$(wc -l <"$tmp/tid.err")" 1
done
# What a kernel has that calls itself older than 6.12, where one process' uprobe is perf's.
if setarch --uname-2.6 true 2>/dev/null; then
	setarch --uname-2.6 setpriv --bounding-set=-sys_admin timeout 30 "$scope" record --plugin "$plugin" -o "$tmp/perf" -d 300ms -p "${ranks[0]}" 2>"$tmp/perf.err"
	rc=$?
	t "-p before Linux 6.12, without CAP_SYS_ADMIN" says perf 3 "Failed to attach to process ${ranks[0]}" "CAP_SYS_ADMIN before Linux 6.12"
else
	skip "-p before Linux 6.12, without CAP_SYS_ADMIN" "needs setarch --uname-2.6"
fi
kill_job

# ---- The job

record c127 -- "$tmp/nosuch" arg
t "CMD does not exist: no directory stays" [ ! -e "$tmp/c127" ]
mkdir "$tmp/cthere" && record cthere -- "$tmp/nosuch"
t "CMD does not exist: a directory that was there does" [ "$rc" = 127 -a -d "$tmp/cthere" ]
for _ in 1 2; do
	timeout 60 "$scope" record --plugin "$plugin" --raw "$tmp/c.raw" -- "$tmp/nosuch" 2>"$tmp/craw.err"
	is "CMD does not exist: no capture stays, that would be in the way" "$? $(ls "$tmp/c.raw" 2>/dev/null)" "127 "
done
t "CMD does not exist" says c127 127 "$tmp/nosuch" "No such file"
is "CMD does not exist, with its path: PATH is not blamed" "$(grep -c PATH "$tmp/c127.err")" 0
SUDO_UID=0 SUDO_GID=0 record csudo -- ncclscope-no-such-command
t "CMD does not exist under sudo: that may have reset PATH" says csudo 127 "ncclscope-no-such-command" "No such file" "sudo may have reset PATH"
touch "$tmp/notexec"
record c126 -- "$tmp/notexec"
t "CMD is not executable" says c126 126 "$tmp/notexec" "Permission denied"
record c3 -- sh -c 'exit 3'
is "CMD's exit status is passed on" "$rc" 3
record c9 -- sh -c 'kill -KILL $$'
is "CMD killed by signal 9" "$rc" 137
record cpath -- true
is "CMD is looked for in PATH" "$rc" 0
record cdash -- sh -c 'echo "$0 $*"' -- -o x --mask
is "CMD keeps its options" "$(cat "$tmp/cdash.out")" "-- -o x --mask"
t "CMD that is no NCCL job: said" grep -q 'no process with the plugin' "$tmp/cdash.err"
hint="was started with NCCL_PROFILER_PLUGIN=$plugin"
either=": nothing is wrong if it does not use NCCL; if it does, with NCCL_DEBUG=INFO, too, NCCL tells"
record cenv -- env -u NCCL_PROFILER_PLUGIN "${small[@]}"
t "CMD that did not load the plugin: what it was started with, and how to see why" says cenv 0 "Trace: none" \
	"ncclscope: 'env' $hint$either"
record cnone -d 200ms
t "no job at all: how one is to be started" says cnone 0 "Trace: none" "ncclscope: Start jobs with NCCL_PROFILER_PLUGIN=$plugin; with NCCL_DEBUG=INFO"
# "No process that may be looked into", where there are others, as a container's first process may be.
t "no job yet: said at the beginning" grep -qF " has the plugin yet, and those that run without it are not recorded: start jobs with NCCL_PROFILER_PLUGIN=$plugin" "$tmp/cnone.err"
is "no job yet: not said of a command that is to begin" "$(grep -c 'has the plugin' "$tmp/cenv.err")" 0
# Beside a job that was there before CMD, which is recorded as well: what that has loaded says nothing of CMD.
none="started none of the processes that were recorded: all of them began before it"
# not_blamed NAME: CMD and another job were recorded, or CMD goes on, and nothing is said of how to load the plugin.
not_blamed() {
	same "$rc" 0 "exit status" && same "$(grep -c "$hint\|$none" "$tmp/$1.err")" 0 hints || { cat "$tmp/$1.err"; return 1; }
}
job_bg jbeside --ranks 2 --bytes 64K --iters 100000 --sleep-us 2000 --no-check
ranks_of 2
record cbeside --no-report -- env -u NCCL_PROFILER_PLUGIN "${small[@]}"
t "CMD that did not load the plugin, beside a job that did: said as well" says cbeside 0 "of 2 processes in" \
	"ncclscope: 'env' $none" "ncclscope: 'env' $hint$either"
t "beside another job: who is recorded is said at the beginning" says cbeside 0 \
	"Recording env and all other processes of this node that have the plugin, end with Ctrl-C" "2 processes have the plugin now"
# shellcheck disable=SC2016
record cenough --no-report --collectives 2 -- sh -c 'sleep 1; "$@"' sh "${small[@]}"
t "--collectives beside another job: that has made as many is no matter, CMD has to" says cenough 0 "of 4 processes in"
record ctwo --no-report -- "${small[@]}"
t "CMD that loaded it, beside another job: not blamed" not_blamed ctwo
# shellcheck disable=SC2016
record cdaemon --no-report -- sh -c '(setsid "$@" >/dev/null &); sleep 2' sh "${small[@]}"
t "CMD whose job is no child of it any more: not blamed" not_blamed cdaemon
# shellcheck disable=SC2016
record cwindow --no-report --every 1s --for 1s -- sh -c '"$@"; sleep 3' sh "$job" --ranks 2 --bytes 64K --iters 300 --sleep-us 5000 --no-check
t "CMD that an earlier recording has: not blamed" not_blamed cwindow
record cgoes --no-report -d 300ms -- sleep 2
t "CMD that goes on: not blamed" not_blamed cgoes
kill_job
NCCL_PROFILER_PLUGIN=another record cother -- "${small[@]}"
t "another profiler's name is replaced: said, once" same "$(grep -F "NCCL_PROFILER_PLUGIN=another" "$tmp/cother.err")" \
	"ncclscope: warning: NCCL_PROFILER_PLUGIN=another is replaced by $plugin for '$job': NCCL does not load 'another' there"
t "another profiler's name is replaced: the job is recorded" good cother
record cquiet -q -d 200ms
is "no job at all, with -q: nothing" "$(cat "$tmp/cquiet.err")" ""
record cerr -- "$job" --ranks 2 --fault abort:after=2 --iters 4 --json
is "a job that fails: its status, its trace" "$rc $(clean cerr >/dev/null 2>&1; echo $?)" "1 0"

# ---- Where the traces go

says_dir() {
	says "$1" 1 "$tmp/${3:-$1}" "$2" -o && same "$(wc -c <"$tmp/$1.out")" 0 "the job's output"
}
touch "$tmp/o1"
record o1 -- "${small[@]}"
t "-o is a file" says_dir o1 "Not a directory"
ln -s "$tmp/nowhere" "$tmp/o2"
record o2 -- "${small[@]}"
t "-o is a dangling link" says_dir o2 ""
t "-o is a dangling link: nothing made behind it" [ ! -e "$tmp/nowhere" ]
record o3/x/y -- "${small[@]}" 2>/dev/null
mkdir -p "$tmp/o3"
timeout 60 "$scope" record --plugin "$plugin" -o "$tmp/o3/x/y" -- "${small[@]}" >"$tmp/o3.out" 2>"$tmp/o3.err"
rc=$?
t "-o below a directory that is not there" says o3 1 "$tmp/o3/x/y" "No such file" "its parent must exist"
# began_not OPTION...: no such process can be recorded, and nothing is left of the try.
began_not() {
	timeout 60 "$scope" record --plugin "$plugin" -p $$ "$@" >"$tmp/began.out" 2>"$tmp/began.err"
	same "$?" 1 && [ ! -e "$tmp/began" ] || { cat "$tmp/began.err"; return 1; }
}
t "nothing begins: the directory made for it is gone again" began_not -o "$tmp/began"
t "nothing begins: that of a capture as well" began_not --raw "$tmp/began/x.raw"
t "nothing begins: that of both" began_not -o "$tmp/began" --raw "$tmp/began/x.raw"
t "nothing begins: one in the other" began_not -o "$tmp/began/t" --raw "$tmp/began/x.raw"
# delay_left NAME: what is there after a recording whose command ended before it began.
delay_left() {
	record "$1" --delay 30s -- true
	says "$1" 1 "The command has ended before the recording began" && ls -d "$tmp/$1" 2>/dev/null
}
is "--delay, nothing begins: the directory made for it is gone again" "$(delay_left gone)" ""
mkdir "$tmp/stays"
is "--delay, nothing begins: one that was there stays" "$(delay_left stays)" "$tmp/stays"
record none -d 200ms
t "nothing is recorded: the directory made for it is gone again" eval 'says none 0 "Trace: none" && [ ! -e "$tmp/none" ]'
# shellcheck disable=SC2016
record notes --delay 30s -- sh -c 'until [ -d "$0" ]; do sleep 0.05; done; echo mine >"$0/notes"' "$tmp/notes"
t "nothing begins: with what somebody has put there it stays" eval 'says notes 1 "before the recording began" && [ -s "$tmp/notes/notes" ]'
mkdir "$tmp/o4"
mount -t tmpfs -o size=64k,ro none "$tmp/o4"
record o4 -- "${small[@]}"
t "-o is read-only" says_dir o4 "Read-only file system"
mkdir "$tmp/o5"
(cd "$tmp/o5" && mount -t tmpfs -o size=1m,ro none "$tmp/o5" && cd "$tmp/o5" &&
	timeout 60 "$scope" record --plugin "$plugin" -- "${small[@]}" >"$tmp/o5.out" 2>"$tmp/o5.err"
	echo $? >"$tmp/o5.rc")
rc=$(cat "$tmp/o5.rc")
t "default directory not writable: said before the job is started" says_dir o5 "Read-only file system"

# lost_all NAME: the recording ended so, and its summary does not say that there was nothing to record.
lost_all() {
	says "$1" 1 "Trace: none, those of 2 processes could not be written: Read-only file system; name another directory with -o" &&
		! grep "no process with the plugin" "$tmp/$1.err"
}
mkdir "$tmp/o6"
if mount -t tmpfs none "$tmp/o6"; then
	record_bg o6
	mount -o remount,ro "$tmp/o6"
	NCCL_PROFILER_PLUGIN=$plugin "${small[@]}" >"$tmp/o6.out"
	stop_recorder INT
	t "-o becomes read-only: the summary says that all is lost" lost_all o6
	record_bg o7 --raw "$tmp/o7.raw"
	NCCL_PROFILER_PLUGIN=$plugin "${small[@]}" >"$tmp/o7.out"
	stop_recorder INT
	(cd "$tmp/o6" && "$scope" convert "$tmp/o7.raw" >"$tmp/o8.out" 2>"$tmp/o8.err")
	rc=$?
	t "convert, default directory not writable: said" says_dir o8 "Read-only file system" o6
else
	skip "-o becomes read-only" "no mount"
fi

# ---- Without standard input, output, error

# What is said goes into no file that is opened first, nor does it wait for whoever reads a socket.
timeout 60 "$scope" record --plugin "$plugin" --gpu off --net off --raw "$tmp/closed.raw" -d 500ms -v 0<&- 2>&-
rc=$?
is "closed: the capture is one" "$rc $("$scope" convert -q "$tmp/closed.raw" -o "$tmp/closed" 2>&1)" "0 "
timeout -k 5 30 "$scope" record --plugin "$plugin" --raw "$tmp/closed2.raw" -v -- "${small[@]}" >"$tmp/closed.out" 2>&-
is "closed: the recording ends" $? 0
timeout 30 "$scope" record --plugin "$plugin" -o "$tmp/closed3" -q -- sh -c '! [ -e /proc/self/fd/2 ]' 2>&-
is "closed: for the command, too" $? 0
t "closed: nothing is written by another name of it" eval '! "$scope" export --to csv -o /dev/stdout "$tmp/cerr" 2>"$tmp/closed.err" >&- && grep -q "Failed to write" "$tmp/closed.err"'

# ---- Signals to the recorder

long=(--ranks 2 --bytes 256K --iters 100000 --sleep-us 2000 --no-check)
# ends_right NAME CODE END: the recorder ended so, its files are finished so.
ends_right() {
	same "$rc" "$2" "exit status" && clean "$1" && same "$(q "$1" '[records("footer")[].end] | unique | tojson')" "$3" end
}
for sig in INT TERM; do
	job_bg "j$sig" "${long[@]}"
	until_true 10 children_ready "$starter" 2
	record_bg "s$sig"
	sleep 0.7
	stop_recorder $sig
	t "SIG$sig drains and closes" ends_right "s$sig" 0 '["loader-stopped"]'
	t "SIG$sig: events were recorded" holds "s$sig" 'events | of("Coll") | length > 20'
	t "SIG$sig: the job goes on" kill -0 "$starter"
	kill -INT "$starter"
	wait "$starter"
done

# With a command: it is left alone, and that is said; but if the signal was for both, its end is waited for.
# command_bg NAME [OPTION...] -- CMD...: as record_bg, in a process group of its own.
command_bg() {
	rm -f "$tmp/$1.err"
	setsid env --default-signal=INT "$scope" record --plugin "$plugin" -o "$tmp/$1" "${@:2}" >"$tmp/$1.out" 2>"$tmp/$1.err" &
	recorder=$!
	until_true 10 command_runs
}
command_runs() {
	command=$(pgrep -P "$recorder" sleep)
}
goes_on() {
	same "$rc" 0 "exit status" && same "$(grep -c "goes on, unrecorded: PID $command (sleep)" "$tmp/$1.err")" "$2" lines && kill -0 "$command"
}
command_bg left -- sleep 60
stop_recorder INT
t "SIGINT with a command: this goes on, and that is said" goes_on left 1
kill "$command"
command_bg leftq -q -- sleep 60
stop_recorder INT
t "SIGINT with a command, -q: the same, without a word" goes_on leftq 0
kill "$command"
command_bg leftd -d 300ms -- sleep 60
wait "$recorder"
rc=$?
t "-d with a command: this goes on, and that is said" goes_on leftd 1
kill "$command"
command_bg both -- sleep 60
kill -INT -- "-$recorder"
wait "$recorder"
is "SIGINT to both: the command's exit status" "$? $(grep -c 'goes on' "$tmp/both.err")" "130 0"
record fast -d 300ms -- sh -c 'sleep 0.1; exit 7'
is "-d, and a command that ends before: its exit status" "$rc $(grep -c 'goes on' "$tmp/fast.err")" "7 0"

# Told to end before it records, as by ^C: no command is started for that. It is stopped where it is, so that the signal comes there.
# stopped_at NAME WHERE [OPTION...]: it gets the signal once WHERE, a command, is true of $recorder.
stopped_at() {
	local name=$1 where=$2
	setsid env --default-signal=INT "$scope" record --plugin "$plugin" -o "$tmp/$name" "${@:3}" >"$tmp/$name.out" 2>"$tmp/$name.err" &
	recorder=$!
	until_true 10 "$where"
	kill -STOP "$recorder"
	kill -INT -- "-$recorder"
	kill -CONT "$recorder"
	until_true 60 ended "$recorder"
	wait "$recorder"
	rc=$?
}
catches() {
	grep -qx ncclscope "/proc/$recorder/comm" && [ $((0x$(status_of "$recorder" SigCgt) & 2)) != 0 ]
}
attaches() {
	grep -qs '^prog_id:' "/proc/$recorder/fdinfo/"*
}
# not_begun NAME TEXT: nothing was recorded, nor the command started, and that is said.
not_begun() {
	says "$1" 1 "Stopped before the recording began, and nothing is recorded$2" &&
		same "$(grep -c 'Recording\|goes on' "$tmp/$1.err") $(ls -d "$tmp/$1" "$tmp/started" 2>/dev/null)" "0 " "what began"
}
for where in catches attaches; do
	stopped_at early $where -- touch "$tmp/started"
	t "SIGINT as soon as it $where: no command is started, and that is said" not_begun early ", nor is the command started"
	stopped_at early $where
	t "SIGINT as soon as it $where, without a command: said" not_begun early ""
done

# A recorder killed: the job goes on without it, and its mask goes off.
job_bg jkill --ranks 2 --bytes 256K --iters 1000 --sleep-us 5000 --check
until_true 10 children_ready "$starter" 2
record_bg skill
sleep 0.5
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
sleep 0.5
for pid in $(pgrep -P "$starter"); do
	is "recorder killed: mask of $((n = ${n:-0} + 1)) is 0 again" "$(mask_of "$pid")" 0
done
wait "$starter"
is "recorder killed: the job ends right" "$? $(said jkill .ok)" "0 true"
t "recorder killed: its files say so, and are valid" "$scope" check "$tmp"/skill/*.jsonl

# The same signal twice, as from timeout(1), which signals who it has started and then its process group: it counts once.
twice_bg() {
	job_bg "j$1" "${long[@]}"
	until_true 10 children_ready "$starter" 2
}
twice_end() {
	t "$2: drains and closes" ends_right "$1" 0 '["loader-stopped"]'
	t "$2: events were recorded" holds "$1" 'events | of("Coll") | length > 20'
	kill -INT "$starter"
	wait "$starter"
}
for sig in INT TERM; do
	twice_bg "twice$sig"
	record_bg "twice$sig"
	sleep 0.7
	kill -$sig "$recorder"
	sleep 0.02 # or they may be one already when they come
	stop_recorder $sig
	twice_end "twice$sig" "SIG$sig twice at once"
done
twice_bg timeout
timeout --preserve-status -s INT 3 "$scope" record --plugin "$plugin" -o "$tmp/timeout" >"$tmp/timeout.out" 2>"$tmp/timeout.err"
rc=$?
twice_end timeout "timeout -s INT"

# Two signals: the second aborts.
job_bg jtwo "${long[@]}"
until_true 10 children_ready "$starter" 2
record_bg two
kill -STOP "$recorder"
kill -INT "$recorder"
kill -TERM "$recorder"
kill -CONT "$recorder"
wait "$recorder"
rc=$?
t "two signals: ends, by the second" [ $rc -gt 128 ]
kill -INT "$starter"
wait "$starter"

# ---- Children that end unseen

# As under a shell or a supervisor that ignores SIGCHLD: the command's end and the reader's are still ours to see.
timeout 20 env --ignore-signal=CHLD "$scope" record --plugin "$plugin" -o "$tmp/chld" -- sh -c 'exit 7' >/dev/null 2>&1
is "SIGCHLD ignored: the command's exit status" $? 7

finish
