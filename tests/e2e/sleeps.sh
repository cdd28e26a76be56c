#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What threads sleep for: who ended their long sleeps, and in which file these were. A rank comes late because a process that loads its data
# is slow, because a disk is, or because it has slept: the trace and the verdict name what it waited for.
. "$(dirname "$0")/sched_lib.sh"

# late NAME OPTION... -- FAULT: a job of three ranks, of which the second comes late to each tenth AllReduce as FAULT says. It records for no longer than
# some seconds: what is found out only then is to be in what its end says.
late() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	record "$name" "${options[@]}" -- "$job" --ranks 3 --bytes 256K --iters 40 --period-us 20000 --no-check --json --fault "late:rank=1:every=10:$2"
	t "$name: right, clean, lossless" good "$name"
}

# before NAME: of the calls that rank 1 was late to, what its thread did before, as facts.
before() {
	facts "$1" '[events | of("Coll")[] | select(.rank == 1 and .details.seq % 10 == 9) | .sched.before] | {
		n: length, blocked: (map(.blocked) | add),
		wokenBy: ([.[].wokenBy // []] | if . == [] then [] else by_name("comm") end),
		files: ([.[].files // []] | if . == [] then [] else by_name("file") end),
		fs: ([.[].files // [] | .[].fs] | unique),
		long: ([.[].wokenBy // [] | .[] | select(.us >= 30000) | .comm] | unique),
		pids: ([.[].wokenBy // [] | .[] | select(.comm == "pt_data_worker").pid] | unique | length)}'
}

# told NAME: what the recorder's end says of why it was slow, on one line.
told() {
	sed -n '/^Why it was slow/,/More:/p' "$tmp/$1.err" | tr -s ' \n' ' '
}

# ---- A process that loads

late loader -- ms=40:loader=1
before loader
is "loader: calls that came late" "$(fact n)" 4
if [ "$(q loader 'records("header")[0].features.wokenBy')" = false ]; then
	skip "loader: who woke it" "this kernel does not tell threads from interrupts"
else
	is "loader: who woke it" "$(fact 'wokenBy[0].name')" pt_data_worker
	is "loader: one process" "$(fact pids)" 1
	t "loader: for as long as it was slow" between "$(fact 'wokenBy[0].us')" 160000 400000
	t "loader: no more than the thread has slept" above "$(fact blocked)" "$(fact 'wokenBy | map(.us) | add')"
	if [ "$(q loader 'records("header")[0].features.blockedIn')" = true ]; then
		is "loader: through a pipe" "$(fact 'files[0].name') $(fact 'fs[0]')" "pipe pipefs"
	fi
	t "loader: the recorder's end has the verdict, however short the recording was" grep -q 'late-rank rank 1,' <<<"$(told loader)"
	t "loader: and whom it waited for" grep -qE 'it waited [0-9.]+ ms for pt_data_worker\[[0-9]+\]' <<<"$(told loader)"
fi

# ---- A disk

if ! [ -w /dev/fuse ]; then
	skip "disk" "no /dev/fuse: a fast disk has a page before anybody sleeps for it"
else
	slow_disk 1
	export STANDIN_COLD_FILE=$tmp/disk/cold
	late read --sched=slices -- file=1
	before read
	is "disk: in which file" "$(fact 'files[0].name') $(fact 'fs[0]')" "disk/cold.1 fuse"
	is "disk: slices, too" "$(q read '[records("slice")[] | select(.file == "disk/cold.1") | [.state, .why, .fs, .dur >= 1000]] | unique | tojson')" '[["blocked","io","fuse",true]]'
	record proxy --sched=slices -- "$job" --ranks 3 --bytes 128K --iters 20 --no-check --json --fault cold-file:rank=1:read=1
	t "progress thread: right, clean, lossless" good proxy
	is "progress thread: in which file" "$(q proxy '[events | of("ProxyStep")[] | select(.rank == 1) | .sched.files // [] | .[].file] | unique | tojson')" '["disk/cold.1"]'
	t "progress thread: the verdict names it" grep -qE 'proxy-blocked rank 1,.* in calls on disk/cold.1 \(fuse\)' <<<"$(told proxy)"
fi

# ---- What never ends

# hangs NAME [SERVER] -- OPTION...: a job whose rank 1 comes late by more than there is time for, maybe as a server is stopped. It is recorded for two
# seconds more.
hangs() {
	local run=$1 server=$2
	while [ "$1" != -- ]; do shift; done
	record_bg "$run" --raw "$tmp/$run.raw"
	job_bg "$run" --ranks 3 --bytes 64K --iters 100000 --no-check "${@:2}"
	ranks_of 3
	[ "$server" = -- ] || {
		until_true 20 eval 'readlink /proc/{${ranks[0]},${ranks[1]},${ranks[2]}}/fd/* | grep -q /cold.1'
		sleep 0.2
		kill -STOP "$server"
	}
	until_true 20 in_trace "$run" '"recordType":"open"'
	sleep 2
	stop_recorder INT
	[ "$server" = -- ] || kill -CONT "$server"
	kill_job
	t "$run: clean, lossless" eval 'clean "$run" && lossless "$run"'
}

# asleep NAME: of rank 1, in which the thread that calls is when the recording ends.
asleep() {
	q "$1" '(events | of("Coll") | map(select(.rank == 1))[0].start.tid) as $tid | [.[] | select(.recordType == "thread" and .tid == $tid and .state)
		| [.state, .why, .file, .fs, .stop - .stateSince > 2e6]] | tojson'
}

# where NAME PATTERN: in which of the kernel's functions that is; none of it is the scheduler's.
where() {
	q "$1" '[.[] | select(.recordType == "thread" and .state and .file) | .stack | any(test($pattern)) and (any(test("^(__|io_)?schedule$")) | not)] | unique | tojson' --arg pattern "$2"
}

if [ "$(q loader 'records("header")[0].features.blockedIn')" = true ]; then
	hangs stuck -- --fault late:rank=1:every=4:ms=100000:loader=1
	is "stuck: for a process" "$(asleep stuck)" '[["blocked","read","pipe","pipefs",true]]'
	is "stuck: where in the kernel" "$(where stuck '^(anon_)?pipe_read$')" '[true]'
	mkdir "$tmp/again"
	t "stuck: captured" "$scope" convert -o "$tmp/again" "$tmp/stuck.raw"
	is "stuck: where in the kernel, of the capture" "$(where again '^(anon_)?pipe_read$')" '[true]'
	[ "$(uname -m)" != x86_64 ] || is "stuck: no address of a function in the capture" \
		"$(od -An -v -tx8 -w8 "$tmp/stuck.raw" | grep -cE '^ ffffffff[89ab][0-9a-f]{7}$')" 0
	t "stuck: the verdict says what the rank is in that did not come" grep -qE \
		'missing-collective rank 1,.* its application \(thread [0-9]+\) had been asleep for [0-9.]+ s, in read on pipe \((anon_)?pipe_read < ' <<<"$(told stuck)"
fi
if [ -w /dev/fuse ]; then
	hangs disk-hangs "$(pgrep -f "^$build/e2e/slow_fs $tmp/disk.files")" -- --fault late:rank=1:every=1:file=1
	is "disk hangs: on a file" "$(asleep disk-hangs)" '[["blocked","io","disk/cold.1","fuse",true]]'
	is "disk hangs: where in the kernel" "$(where disk-hangs '^fuse_|^folio_|^filemap_')" '[true]'
	t "disk hangs: the verdict says so" grep -qE 'missing-collective rank 1,.* in io on disk/cold.1 \(fuse\)' <<<"$(told disk-hangs)"
fi

# ---- In each window

record_bg windows --sched=slices --every 4s --for 4s -d 14s
job_bg windows --ranks 2 --channels 1 --bytes 64K --iters 100 --no-check --fault late:rank=1:every=1:ms=1500
ranks_of 2
until_true 30 ended "$recorder"
kill_job
# Of four windows the first and the last may be too short for a sleep of a second.
slept_in() {
	grep -lr '"rank":1,' "$tmp/windows" | xargs grep -lE '"stack":\["(hrtimer|do)_nanosleep"' | wc -l
}
t "windows: where in the kernel, also in those behind the first" above "$(slept_in)" 2

# ---- Nobody: a timer

late timer -- ms=40
before timer
is "timer: calls that came late" "$(fact n)" 4
t "timer: it has slept" above "$(fact blocked)" 160000
is "timer: nobody woke it" "$(fact long)" '[]'
is "timer: it was in no file" "$(fact files)" '[]'

# ---- From a capture

record capture --raw "$tmp/capture.raw" -- "$job" --ranks 3 --bytes 256K --iters 20 --period-us 20000 --no-check --json --fault late:rank=1:every=10:ms=40:loader=1
mkdir -p "$tmp/capture"
rm -f "$tmp/capture"/*.jsonl
t "capture: converted" "$scope" convert -o "$tmp/capture" "$tmp/capture.raw"
before capture
[ "$(q loader 'records("header")[0].features.wokenBy')" = false ] || is "capture: who woke it" "$(fact 'wokenBy[0].name')" pt_data_worker

finish
