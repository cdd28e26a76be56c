#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Jobs that fork, exec, leave without a word, and that make and destroy communicators (and load and unload
# the plugin with them) again and again. Each record once, in the trace of the process that made it.
. "$(dirname "$0")/lib.sh"
[ -x "$build/e2e/life" ] || {
	echo "not ok $self: Failed to find '$build/e2e/life': build it first (make tests)"
	exit 1
}
cp "$build/e2e/life" "$tmp/bin/"
life=$tmp/bin/life

# lived NAME CALLS...: exit status 0; clean and lossless; each process has so many Colls on both ranks together.
lived() {
	local name=$1
	shift
	same "$rc" 0 status && clean "$name" && lossless "$name" && joined "$name" && same \
		"$(q "$name" '[events | of("Coll") | group_by([.start.pid, .ctx])[] | length] | sort | tojson')" "$1" "calls"
}
footers() {
	q "$1" '[records("footer")[] | [.end, .exitCode]] | sort | tojson'
}
files() {
	find "$tmp/$1" -name '*.jsonl' | wc -l
}

record once -- "$life" once
t "one life: two ranks, one call" lived once "[1,1]"
is "one life: one file" "$(files once) $(footers once)" '1 [["exit",0]]'

# The children of a process with live communicators have records of its buffers in their memory, and must
# not hand them in.
record fork -- "$life" fork
t "children by fork that leave: the parent goes on, nothing twice" lived fork "[3,3]"
is "children by fork that leave: have no trace" "$(files fork) $(footers fork)" '1 [["exit",0]]'

record use -- "$life" fork-use
t "a child that makes its own: each its own" lived use "[1,1,1,1,1,1]"
is "a child that makes its own: files" "$(files use) $(footers use)" '2 [["exit",0],["exit",0]]'
t "a child that makes its own: not taken for PXN" holds use 'events | map(select(.isPxn)) == []'
is "a child that makes its own: ids of another process" "$(q use '[events[] | .ctx[:-12]] | unique | length')" 2

record exec -- "$life" exec
t "exec: both programs" lived exec "[1,1,1,1]"
is "exec: a file for each, of one pid" "$(files exec) $(q exec '[records("header")[].pid] | unique | length')" "2 1"
is "exec: how they end" "$(footers exec)" '[["exec",null],["exit",0]]'
is "exec: communicators of the first are not ended" "$(q exec '[lifecycle("ProfilerInit", "ProfilerFinalize") | length] | tojson')" "[4,2]"

record leave -- "$life" leave
is "_exit(3) at once: status" "$rc" 3
rc=0
t "_exit(3) at once: all is there" lived leave "[1,1]"
is "_exit(3) at once: footer" "$(footers leave)" '[["exit",3]]'

record again -- "$life" again 100
t "200 short communicators: each with its call" lived again "$(jq -nc '[range(200) | 1]')"
is "200 short communicators: made and ended" "$(q again '[lifecycle("ProfilerInit", "ProfilerFinalize") | length] | tojson')" "[200,200]"
is "200 short communicators: one file" "$(files again)" 1
is "200 short communicators: no id twice" "$(q again '[events[].eventAddr] | length - (unique | length)')" 0
is "200 short communicators: contexts" "$(q again '[lifecycle("ProfilerInit")[].ctx] | unique | length')" 200

record threads -- "$life" threads 60
t "each call from a new thread" lived threads "[60,60]"
is "each call from a new thread: threads that called" "$(q threads '[events | of("CollApi")[].start.tid] | unique | length')" 60
is "each call from a new thread: stops on the thread that starts" \
	"$(q threads '[events | of("CollApi", "GroupApi")[] | .start.tid == .stop.tid] | unique | tojson')" "[true]"
is "each call from a new thread: each told when it began and ended" \
	"$(q threads 'records("thread") | map(select(.role == "app")) | [(map(select(.stop | not)) | length), (map(select(.stop)) | length)] | tojson')" \
	"[60,60]"

# Recorded in the middle of such a life. A communicator that is made while the probes go on may have its
# first callbacks between the semaphore and the BPF program: their children are orphans, and said to be.
job_bg none --ranks 1 --iters 0
wait "$starter"
NCCL_PROFILER_PLUGIN=$plugin "$life" again 1000000 &
lifer=$!
until_true 5 grep -q "$plugin" "/proc/$lifer/maps"
for i in 1 2 3; do
	record "mid$i" -p "$lifer" -d 300ms
	t "recorded in the middle, $i: clean" eval "same $rc 0 status && clean mid$i"
	t "recorded in the middle, $i: orphans in the first moment only, nothing else lost" began_amid "mid$i"
	t "recorded in the middle, $i: communicators come and go" holds "mid$i" 'lifecycle("ProfilerInit") | length > 4'
done
t "recorded in the middle: it still lives" kill -0 "$lifer"
kill -KILL "$lifer"

finish
