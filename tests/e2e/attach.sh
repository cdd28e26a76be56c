#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A recorder that comes after the jobs: finds each process that has the plugin loaded, from whatever file and in
# whatever namespaces, arms it at once, and knows its communicators; and finds those that come later.
E2E_TIMEOUT=${E2E_TIMEOUT:-300}
. "$(dirname "$0")/lib.sh"

run=(--ranks 2 --bytes 256K --iters 1000000 --sleep-us 30000 --no-check)
starters=()
# running NAME FILE COMMAND...: a job in the background that has the plugin mapped from a file with that name.
running() {
	local name=$1 file=$2
	shift 2
	"$@" >"$tmp/$name.out" 2>"$tmp/$name.job-err" &
	starters+=($!)
	until_true 10 eval 'mapfile -t ranks < <(ranks_of "$file") && [ ${#ranks[@]} = 2 ]'
	ranks_by[$name]=${ranks[*]}
}
declare -A ranks_by
# Processes that map it, and that are ranks: those have a socket's file descriptor.
ranks_of() {
	local pid
	for pid in $(grep -ls -- "$tmp/.*$1" /proc/[0-9]*/maps | cut -d/ -f3); do
		find "/proc/$pid/fd" -lname 'socket:*' 2>/dev/null | grep -q . && echo "$pid"
	done
}
stop_jobs() {
	kill_rest 2>/dev/null # unshare ignores SIGINT while it waits
	wait "${starters[@]}" 2>/dev/null
	starters=()
}
masks() {
	local pid
	for pid in "$@"; do mask_of "$pid"; done | xargs
}
pids_in() {
	kinds=event q "$1" '[events[].start | .hostPid // .pid] | unique | map(tostring) | join(" ")'
}
sorted() {
	xargs -n1 | sort -n | xargs
}

# ---- Five jobs, each with the plugin in another way

# As in images of containers: a copy, another inode, the same build id; also one that is deleted, and one that has
# been replaced by something else.
for i in copy deleted replaced; do
	cp "$plugin" "$tmp/libnccl-profiler-$i.so"
done
running same libnccl-profiler-ncclscope.so env NCCL_PROFILER_PLUGIN="$plugin" "$job" "${run[@]}" --name main
for i in copy deleted replaced; do
	running $i "libnccl-profiler-$i.so" env NCCL_PROFILER_PLUGIN="$tmp/libnccl-profiler-$i.so" "$job" "${run[@]}"
done
rm "$tmp/libnccl-profiler-deleted.so"
cp "$tmp/bin/libnccl.so.2" "$tmp/other" && mv "$tmp/other" "$tmp/libnccl-profiler-replaced.so"
# All namespaces at once, and the file on a file system that only they have.
cat >"$tmp/inside" <<-'IN'
	mkdir -p "$1/image" && mount -t tmpfs none "$1/image" && cp "$1/bin"/* "$1/image" || exit 1
	mv "$1/image/libnccl-profiler-ncclscope.so" "$1/image/libnccl-profiler-image.so"
	ip link set lo up
	export NCCL_PROFILER_PLUGIN=$1/image/libnccl-profiler-image.so
	job=$1/image/scope-job
	shift
	exec "$job" "$@"
IN
running image libnccl-profiler-image.so unshare -UrmpniufC --mount-proc sh "$tmp/inside" "$tmp" "${run[@]}" --name image
# Another build of the plugin is not what --plugin names.
cp "$plugin" "$tmp/libnccl-profiler-build.so"
id_at=$(grep -obUaP '\x03\x00\x00\x00GNU\x00' "$tmp/libnccl-profiler-build.so" | head -n 1 | cut -d: -f1)
printf '\0\0\0\0' | dd of="$tmp/libnccl-profiler-build.so" bs=1 seek=$((id_at + 8)) conv=notrunc 2>/dev/null
running build libnccl-profiler-build.so env NCCL_PROFILER_PLUGIN="$tmp/libnccl-profiler-build.so" "$job" "${run[@]}"
# One that has no id is like no other: its note has another type.
cp "$plugin" "$tmp/libnccl-profiler-noid.so"
printf '\177' | dd of="$tmp/libnccl-profiler-noid.so" bs=1 seek="$id_at" conv=notrunc 2>/dev/null
running noid libnccl-profiler-noid.so env NCCL_PROFILER_PLUGIN="$tmp/libnccl-profiler-noid.so" "$job" "${run[@]}"
# Something else that is called like it.
cp "$tmp/bin/libnccl.so.2" "$tmp/libnccl-profiler-foreign.so"
LD_PRELOAD=$tmp/libnccl-profiler-foreign.so sleep 1000 &
foreign=$!
starters+=("$foreign")

# Who maps the file without loading it, as a linker does that writes it: what is in it is not in memory as it says.
cp "$plugin" "$tmp/libnccl-profiler-mapped.so"
python3 -c 'import mmap, sys, time
with open(sys.argv[1], "r+b") as f:
	m = mmap.mmap(f.fileno(), 0)
	time.sleep(1000)' "$tmp/libnccl-profiler-mapped.so" &
starters+=($!)
until_true 10 grep -q "$tmp/libnccl-profiler-mapped.so" "/proc/$!/maps"

ours=$(echo "${ranks_by[same]} ${ranks_by[copy]} ${ranks_by[deleted]} ${ranks_by[replaced]} ${ranks_by[image]}" | sorted)
is "five jobs, nobody there: masks" "$(masks $ours)" "0 0 0 0 0 0 0 0 0 0"

record_bg all -v
is "masks when it says that it records" "$(masks $ours | tr ' ' '\n' | sort -u | xargs)" "4031"
is "another build: not touched" "$(masks ${ranks_by[build]})" "0 0"
is "processes that it says it has found" \
	"$(sed -n 's/.*Process \([0-9]*\) has the plugin.*/\1/p' "$tmp/all.err" | sorted)" "$ours"
t "armed within 200 ms" awk '/Process [0-9]+ has the plugin/ { n++; sub(/.*plugin, /, ""); if ($1 > 200000) { print "after " $1 " us"; bad = 1 } }
	END { exit bad || n != 10 }' "$tmp/all.err"
sleep 0.7
stop_recorder INT
is "exit status" "$rc" 0
is "masks afterwards" "$(masks $ours | tr ' ' '\n' | sort -u)" 0
"$scope" record -o "$tmp/any" -d 500ms >/dev/null 2>"$tmp/any.err"
any_rc=$?
"$scope" record --plugin "$tmp/libnccl-profiler-noid.so" -o "$tmp/noid" -d 500ms >/dev/null 2>"$tmp/noid.err"
noid_rc=$?
is "what is only mapped: as it was" "$(cmp "$plugin" "$tmp/libnccl-profiler-mapped.so")" ""
is "what is only called like it: alive and untouched" "$(kill -0 $foreign && echo alive)" alive
stop_jobs # first: what follows wants a CPU

is "processes in the trace" "$(pids_in all)" "$ours"
t "clean" clean all
t "nothing lost" lossless all
t "every event has its parent" joined all
is "communicators: known from the start, by rank, size and name" "$(kinds=event q all 'lifecycle("ProfilerInit")
	| map([.rank, .details.nranks, .details.commName]) | group_by(.) | map("\(.[0] | map(tostring) | join("/"))*\(length)") | join(" ")')" \
	"0/2/*3 0/2/image*1 0/2/main*1 1/2/*3 1/2/image*1 1/2/main*1"
t "communicators: every event has its process' own" holds all '(lifecycle("ProfilerInit") | map({key: "\(.start.hostPid // .myPid)", value: .commHash})
	| from_entries) as $c | events | length > 1000 and all(.commHash == $c["\(.start.hostPid // .myPid)"])'
is "without --plugin: other builds as well" "$any_rc $(comm -12 <(pids_in any | tr ' ' '\n' | sort) <(echo "${ranks_by[build]}" | xargs -n1 | sort) | wc -l)" \
	"0 2"
is "a plugin without a build id: that file's processes, and no others" "$noid_rc $(pids_in noid)" "0 $(sorted <<<"${ranks_by[noid]}")"

# ---- The GPU of a communicator that exists

LD_PRELOAD=$build/tests/unit/cuda/libcuda.so.1 job_bg gpu "${run[@]}"
until_true 10 children_ready "$starter" 2
sleep 0.3
record gpu -d 300ms
is "GPU UUID of a job that runs already" "$(q gpu '[events[].gpuUuid] | unique | tojson')" \
	"[\"$(q gpu 'lifecycle("ProfilerInit")[0].gpuUuid')\"]"
t "GPU UUID: as nvidia-smi prints it" holds gpu 'lifecycle("ProfilerInit")[0].gpuUuid | test("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")'
kill -INT "$starter"
wait "$starter"

# ---- Those that come later

record_bg later -v
begin=$(date +%s%N)
for i in 1 2 3; do
	cp "$plugin" "$tmp/libnccl-profiler-later$i.so"
	NCCL_PROFILER_PLUGIN=$tmp/libnccl-profiler-later$i.so "$job" --ranks 2 --bytes 256K --iters 150 --delay-ms 3000 --json \
		>"$tmp/later$i.out" 2>/dev/null &
	starters+=($!)
done
until_true 10 eval '[ "$(grep -c "Process [0-9]* has the plugin" "$tmp/later.err")" -ge 6 ]'
t "new files while recording: found within 2 s, of which a start takes some ($((($(date +%s%N) - begin) / 1000000)) ms)" \
	[ $(($(date +%s%N) - begin)) -lt 3000000000 ]
wait "${starters[@]}"
sleep 0.3
stop_recorder INT
starters=()
t "new files while recording: clean, lossless, joined" eval 'clean later && lossless later && joined later'
is "new files while recording: every operation, for they were found before the first" \
	"$(kinds=event q later '[events | of("Coll") | group_by(.myPid)[] | length] | tojson')" "[150,150,150,150,150,150]"
for i in 1 2 3; do
	is "new files while recording: the job is right, $i" "$(jq .ok "$tmp/later$i.out")" true
done

# ---- A file that is written to

cp "$plugin" "$tmp/libnccl-profiler-over.so"
record_bg over -v
NCCL_PROFILER_PLUGIN=$tmp/libnccl-profiler-over.so "$job" "${run[@]}" >/dev/null 2>&1 &
starters+=($!)
until_true 10 eval '[ "$(grep -c "Process [0-9]* has the plugin" "$tmp/over.err")" -ge 2 ]'
dd if="$plugin" of="$tmp/libnccl-profiler-over.so" conv=notrunc status=none # the same bytes: else the job would crash
t "a file that is written to: said" until_true 10 grep -q "changed (or touched) while it is in use" "$tmp/over.err"
sleep 3
NCCL_PROFILER_PLUGIN=$tmp/libnccl-profiler-over.so "$job" --ranks 2 --bytes 64K --iters 5 --delay-ms 2500 --name second >/dev/null 2>&1
# Whoever owns it can touch it for days.
for i in 1 2 3; do
	touch "$tmp/libnccl-profiler-over.so"
	sleep 2.5
done
is "a file that is touched again and again: said once, with a process that has it" "$(grep -c "changed (or touched)" "$tmp/over.err") $(
	sed -n 's/.*file that process \([0-9]*\) has was changed.*/\1/p' "$tmp/over.err" | grep -cxFf <(sed -n 's/.*Process \([0-9]*\) has the plugin.*/\1/p' "$tmp/over.err"))" "1 1"
# While its file has no probe the plugin turns everything off.
mapfile -t ranks < <(pgrep -P "${starters[-1]}")
t "a file that is touched: who has it is recorded again" until_true 10 eval '! masks "${ranks[@]}" | grep -qw 0'
kill -INT "${starters[@]}"
wait "${starters[@]}" 2>/dev/null
starters=()
stop_recorder INT
is "a file that is written to: a job that comes later" \
	"$(kinds=event q over '[events[] | select(.type == "ncclProfileColl")] | group_by(.myPid) | sort_by(map(.start.ts) | min) | map(length) | .[-2:] | tojson')" "[5,5]"

# ---- The plugin's file is replaced by another build while we record

job_bg upgraded "${run[@]}"
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
cp "$plugin" "$tmp/libnccl-profiler-before.so"
record_bg upgrade
cp "$plugin" "$tmp/new" && own_build_id "$tmp/new" && mv "$tmp/new" "$plugin"
sleep 2.5 # two passes
for short in "$plugin --delay-ms 0" "$tmp/libnccl-profiler-before.so --delay-ms 2500"; do
	# shellcheck disable=SC2086
	NCCL_PROFILER_PLUGIN=${short%% *} "$job" --ranks 2 --bytes 256K --iters 50 ${short#* } >/dev/null 2>&1
done
kill -INT "$starter"
wait "$starter"
stop_recorder INT
kinds=event facts upgrade '{short: [events | of("Coll") | group_by(.myPid)[] | select(length < 60) | length],
	old: [events | of("Coll") | group_by(.myPid)[] | select(length > 60) | map(.start.ts) | max - min > 5e6]}'
t "an upgrade: clean, lossless" eval 'clean upgrade && lossless upgrade'
is "an upgrade: short jobs with the new plugin, and with a copy of the one before, are whole" "$(fact short)" "[50,50,50,50]"
is "an upgrade: who had it goes on" "$(fact old)" "[true,true]"

# ---- What it costs to look

strace=$(command -v strace)
if [ -n "$strace" ]; then
	record_bg cost
	timeout 6 strace -f -qq -e trace=openat -o "$tmp/strace" -p "$recorder" 2>/dev/null &
	sleep 5
	stop_recorder INT
	passes=$(grep -c '"/proc", ' "$tmp/strace")
	maps=$(grep -c '"/proc/[0-9]*/maps"' "$tmp/strace")
	t "at most one pass over /proc a second ($passes in 5 s, $maps looks into mappings)" [ "$passes" -ge 2 -a "$passes" -le 6 ]
else
	skip "at most one pass over /proc a second" "needs strace"
fi

# ---- A probe does not keep a container's file system

mkdir "$tmp/fs"
mount -t tmpfs none "$tmp/fs"
cp "$plugin" "$tmp/fs/libnccl-profiler-fs.so"
record_bg held
NCCL_PROFILER_PLUGIN=$tmp/fs/libnccl-profiler-fs.so "$job" --ranks 2 --bytes 64K --iters 3 --delay-ms 2500 >/dev/null 2>&1
t "a file system with a plugin on it can be unmounted after its processes ended" until_true 10 umount "$tmp/fs"
stop_recorder INT
is "its operations were recorded" "$rc $(q held 'events | of("Coll") | length')" "0 6"

# ---- Containers with a copy of the plugin each, which all end at once

job_bg amid "${run[@]/30000/4000}"
until_true 10 children_ready "$starter" 2
sleepers=()
for i in {1..80}; do
	cp "$plugin" "$tmp/libnccl-profiler-many$i.so"
	LD_PRELOAD=$tmp/libnccl-profiler-many$i.so sleep 1000 &
	sleepers+=($!)
done
record_bg many -v --ring 16M
t "80 files: attached to" until_true 60 eval '[ "$(grep -c "Attached to another file" "$tmp/many.err")" -ge 80 ]'
kill "${sleepers[@]}"
wait "${sleepers[@]}" 2>/dev/null
sleep 10 # 60 ms for each probe that goes, on 6.18
kill -INT "$starter"
wait "$starter"
stop_recorder INT
t "80 files that nobody has any more: nothing lost while their probes go" began_amid many

# ---- Two recorders on one job, which come and go

job_bg two --ranks 2 --bytes 256K --iters 100000 --sleep-us 6000 --check
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
sleep 0.3
record_bg a
a=$recorder
for i in 1 2 3; do
	record_bg b$i --mask coll,proxystep
	sleep 0.4
	stop_recorder INT
	is "second recorder, $i: exit status, and the first's mask" "$rc $(masks "${ranks[@]}")" "0 4031 4031"
done
recorder=$a
stop_recorder INT
is "the first recorder: exit status, and no mask" "$rc $(masks "${ranks[@]}")" "0 0 0"
kill -USR1 "$starter" # its last iteration
wait "$starter"
is "the job is right" "$? $(said two .ok)" "0 true"
for i in a b1 b2 b3; do
	t "two recorders, $i: clean, lossless, joined" eval "clean $i && lossless $i && joined $i"
	t "two recorders, $i: no operation by half, none left out" holds $i 'whole(20)'
done


# ---- Of two recorders, one is killed: what it wanted is taken back by the other

job_bg rest --ranks 2 --bytes 256K --iters 100000 --sleep-us 6000 --no-check
until_true 10 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
sleep 0.3
record_bg narrow --mask coll
narrow=$recorder
alone=$(masks "${ranks[@]}")
masks_are() {
	[ "$(masks "${ranks[@]}")" = "$1" ]
}
# Whoever has started it does not wait for it.
"$BASH" -c '"$@" & exec sleep 1000' - "$scope" record --plugin "$plugin" -o "$tmp/wide" >"$tmp/wide.out" 2>"$tmp/wide.err" &
launcher=$!
until_true 60 grep -q '^ncclscope: Recording' "$tmp/wide.err"
is "two recorders: what both want" "$(masks "${ranks[@]}")" "4031 4031"
wide=$(pgrep -P "$launcher")
kill -KILL "$wide"
t "one is killed, and stays a zombie" until_true 5 grep -q '^State:.Z' "/proc/$wide/status"
t "one is killed, and a zombie: what the other one wants" until_true 8 masks_are "$alone"
kill "$launcher"
wait "$launcher" 2>/dev/null
# A third one is told of that first, which does not have all of its processes.
record_bg beside --mask coll -p "${ranks[0]}"
beside=$recorder
record_bg wide2
kill -STOP "$narrow"
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
t "one of three is killed: its file is gone" until_true 10 [ ! -e "$tmp/status/recorder-$recorder.json" ]
kill -CONT "$narrow"
t "one of three is killed, which one of a part of the processes is told of: what the others want" until_true 8 masks_are "$alone"
for recorder in "$beside" "$narrow"; do
	stop_recorder INT
done
kill_job

finish
