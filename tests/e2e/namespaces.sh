#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Jobs in containers: their own pid, mount, network, user, time and IPC namespaces. The trace has what the
# job sees, and what the node sees beside it.
. "$(dirname "$0")/lib.sh"

opts=(--ranks 2 --bytes 256K --iters 3 --json)
# Pids and tids of a trace: the job's and the node's.
ids() {
	facts "$1" '{
		pids: [records("header")[].pid] | sort, files: [records("header")[] | [.pid, .hostPid]] | sort,
		events: [events[] | .start | [.pid, .hostPid]] | unique | sort,
		states: [records("state")[] | [.pid, .hostPid]] | unique | sort,
		tids: [events[] | .start | [.tid, .hostTid]] | unique | map(.[0] < .[1]) | unique,
		threads: (([records("thread")[] | [.tid, .hostTid]] | unique) == ([events[] | .start | [.tid, .hostTid]] | unique)),
		event_pid: [events | of("ProxyOp")[] | .details.eventPid == .myPid] | unique,
		mine: [events[] | .myPid] | unique}'
}

# ---- pid namespace: of the job as a whole, as unshare's child is 1 there

record pid -- unshare -pf --mount-proc "$job" "${opts[@]}"
t "pid namespace: as always" good pid
ids pid
t "pid namespace: pids are the job's: 2, and 3 or more if 2 has made threads by then" jq -e '.pids == .mine and .pids[0] == 2
	and (.pids | length == 2) and .pids[1] < 20' "$tmp/facts"
t "pid namespace: the node's are beside them, and others" jq -e '.files | all(.[1] > 20)' "$tmp/facts"
is "pid namespace: in events and states too" "$(fact events) $(fact states)" "$(fact files) $(fact files)"
is "pid namespace: tids" "$(fact tids) $(fact threads)" "[true] true"
is "pid namespace: not taken for PXN" "$(fact event_pid) $(q pid 'events | map(select(.isPxn)) | length')" "[true] 0"
is "pid namespace: files are called by the job's pid" "$(find "$tmp/pid" -name '*.jsonl' | sed 's/.*_pid//; s/.jsonl//' | sort -n | jq -sc)" \
	"$(fact pids)"
is "pid namespace: record's slowest operations are of the node's pids" \
	"$(awk '/^Slowest/ { on = 1 } !NF { on = 0 } on && $NF ~ /^0x/ { print $(NF - 1) }' "$tmp/pid.err" "$tmp/pid.out" | sort -nu | jq -sc)" \
	"$(jq -c '[.files[][1]] | sort' "$tmp/facts")"

# Two jobs with the same pids at the same time: two files each.
record_bg same
for i in 1 2; do
	NCCL_PROFILER_PLUGIN=$plugin unshare -pf --mount-proc "$job" "${opts[@]}" >"$tmp/same$i.out" &
	starter=$!
done
wait $!
until_true 10 ended "$starter"
sleep 0.5
stop_recorder INT
t "two jobs with the same pids: clean, lossless" eval 'clean same && lossless same'
is "two jobs with the same pids: files" "$(find "$tmp/same" -name '*_pid2*.jsonl' | wc -l) of $(find "$tmp/same" -name '*.jsonl' | wc -l)" "2 of 4"
is "two jobs with the same pids: processes" "$(q same '[records("header")[].hostPid] | unique | length')" 4
is "two jobs with the same pids: calls" "$(q same '[events | of("Coll") | group_by(.start.hostPid)[] | length] | tojson')" "[3,3,3,3]"

# A namespace within a namespace, reached from outside by -p with the node's pid.
NCCL_PROFILER_PLUGIN=$plugin unshare -pf --mount-proc unshare -pf --mount-proc "$job" --ranks 2 --bytes 256K --iters 100000 \
	--sleep-us 1000 --no-check >/dev/null 2>&1 &
until_true 10 eval 'in_job=$(pgrep -f "^$job" | tail -n 1) && grep -q "$plugin" /proc/$in_job/maps'
sleep 0.3
# shellcheck disable=SC2154
record deep -p "$in_job" -d 300ms
t "-p into a nested pid namespace: clean" clean deep
is "-p into a nested pid namespace: hostPid" "$rc $(q deep '[records("header")[].hostPid] | tojson')" "0 [$in_job]"
t "-p into a nested pid namespace: events, pid of the innermost" holds deep 'events | length > 100 and all(.myPid < 20)'
is "-p into a nested pid namespace: mask afterwards" "$(mask_of "$in_job")" 0
# In there our recorder's pid is nobody's, or another's.
record_bg beside -p "$in_job"
was=$(mask_of "$in_job")
nsenter -t "$in_job" -p -m "$scope" disarm -p "$(awk '/^NSpid:/ { print $NF }' "/proc/$in_job/status")" >"$tmp/beside.disarm" 2>&1
is "disarm within a nested pid namespace: exit status" $? 0
is "disarm within a nested pid namespace: who records outside goes on" "$(mask_of "$in_job")" "$was"
stop_recorder INT
is "disarm within a nested pid namespace: mask after the recorder" "$rc $(mask_of "$in_job")" "0 0"
kill_rest 2>/dev/null

# A recorder that does not see the node's processes says so.
timeout 20 unshare -pf --mount-proc "$scope" record --plugin "$plugin" -o "$tmp/inner" -d 100ms >"$tmp/inner.out" 2>"$tmp/inner.err"
t "recorder in a pid namespace of its own: says what to do" grep -q "docker run --pid=host" "$tmp/inner.err"

# ---- mount namespace: the plugin at another path, and a job that sees only that

cat >"$tmp/mounts" <<-'EOT'
	mkdir "$1/seen" && mount --bind "$1/bin" "$1/seen" && mount -t tmpfs none "$1/bin" || exit 1
	export NCCL_PROFILER_PLUGIN=$1/seen/libnccl-profiler-ncclscope.so
	shift 1
	exec "$tmp/seen/scope-job" "$@"
EOT
record mnt -- env tmp="$tmp" unshare -m sh "$tmp/mounts" "$tmp" "${opts[@]}"
t "mount namespace: as always" good mnt
t "mount namespace: the build id of the job's libnccl" holds mnt 'records("header") | all(.ncclBuildId == $id)' \
	--arg id "$(readelf -n "$tmp/bin/libnccl.so.2" | sed -n 's/.*Build ID: //p')"

# ---- A root directory of its own, and a plugin file that is not there any more

root=$tmp/root
mkdir -p "$root"/{proc,usr,dev,tmp}
mount --bind /usr "$root/usr" && mount --bind /dev "$root/dev" && mount -t proc none "$root/proc"
for dir in lib lib64 bin; do ln -s "usr/$dir" "$root/$dir"; done
cp -a "$tmp/bin" "$root/job"
inside=(chroot "$root" /usr/bin/env NCCL_PROFILER_PLUGIN=/job/libnccl-profiler-ncclscope.so /job/scope-job)
timeout 60 "$scope" record --plugin "$root/job/libnccl-profiler-ncclscope.so" -o "$tmp/root-all" -- "${inside[@]}" "${opts[@]}" \
	>"$tmp/root-all.out" 2>"$tmp/root-all.err"
rc=$?
t "chroot: as always" good root-all
"${inside[@]}" --ranks 2 --bytes 256K --iters 100000 --sleep-us 1000 --no-check >/dev/null 2>&1 &
starter=$!
until_true 10 eval 'in_job=$(pgrep -P "$starter" | head -n 1) && grep -q nccl-profiler "/proc/$in_job/maps"'
sleep 0.3
record root-pid -p "$in_job" -d 300ms
t "chroot, -p: clean, lossless, events" eval 'same $rc 0 status && clean root-pid && lossless root-pid && holds root-pid "events | length > 100"'
rm "$root/job/libnccl-profiler-ncclscope.so"
record deleted -p "$in_job" -d 300ms
t "plugin file deleted, -p: clean, lossless, events" eval 'same $rc 0 status && clean deleted && lossless deleted && holds deleted "events | length > 100"'
kill -INT "$starter"
wait "$starter"

# ---- Containers of one image: overlayfs shows each a file system of its own, with one file below

cat >"$tmp/mount-image" <<-'EOT'
	# The image's files, at the same place, and a layer of our own above.
	layer=$(mktemp -d "$tmp/layer.XXXXXX") && mount -t tmpfs none "$layer" && mkdir "$layer/upper" "$layer/work" &&
		mount -t overlay overlay -o "lowerdir=$tmp/bin,upperdir=$layer/upper,workdir=$layer/work" "$tmp/bin" || exit 1
	exec "$@"
EOT
# from_image COMMAND...: in a container of it.
from_image() {
	env NCCL_PROFILER_PLUGIN="$plugin" tmp="$tmp" unshare -m sh "$tmp/mount-image" "$@"
}
# two_jobs NAME [COMMAND]: two at a time, each started by it; how many records came through the ring.
two_jobs() {
	local name=$1 i starters=()
	shift
	record_bg "$name" -v
	for i in 1 2; do
		NCCL_PROFILER_PLUGIN=$plugin "$@" "$job" --ranks 2 --bytes 256K --iters 100 --sleep-us 25000 --json >"$tmp/$name$i.out" 2>&1 &
		starters+=($!)
	done
	wait "${starters[@]}"
	sleep 0.5
	stop_recorder INT
	sed -n 's/.*BPF: records \([0-9]*\)$/\1/p' "$tmp/$name.err"
}

if from_image true 2>/dev/null; then
	two_jobs plain env >"$tmp/records"
	plain=$(cat "$tmp/records")
	two_jobs image from_image >"$tmp/records"
	image=$(cat "$tmp/records")
	t "one image, two containers: clean, lossless" eval 'same $rc 0 status && clean image && lossless image'
	is "one image, two containers: calls" "$(q image '[events | of("Coll") | group_by(.myPid)[] | length] | tojson')" "[100,100,100,100]"
	t "one image, two containers: the ring has each record once ($image, of one file $plain)" [ "$image" -gt 0 -a "$image" -lt $((plain * 3 / 2)) ]

	# Who changes a file of the image, if only its owner, has another one from then on, by the same numbers.
	cat >"$tmp/change" <<-'EOT'
		"$@" --iters 100000 --sleep-us 10000 --no-check &
		sleep 2.5
		chown 1:1 "$NCCL_PROFILER_PLUGIN"
		"$@" --iters 50 --delay-ms 2500
		"$@" --iters 50
		touch "$tmp/later"
		until [ -e "$tmp/enough" ]; do sleep 0.1; done
		kill -INT $!
		wait
	EOT
	record_bg chowned -v
	from_image sh "$tmp/change" "$job" --ranks 2 --bytes 256K >/dev/null 2>&1 &
	starter=$!
	until_true 30 [ -e "$tmp/later" ]
	stop_recorder INT
	t "a file of an image that is changed: clean, lossless" eval 'same $rc 0 status && clean chowned && lossless chowned'
	kinds=event facts chowned '[events | of("Coll") | group_by(.myPid)[]] |
		{later: [.[] | select(length <= 50) | length], first: [.[] | select(length > 50) | map(.start.ts) | max - min > 5e6]}'
	is "a file of an image that is changed: jobs that come later" "$(fact later)" "[50,50,50,50]"
	is "a file of an image that is changed: the one that has it from before" "$(fact first)" "[true,true]"
	# Its processes' mappings lead to the new one: a recorder that comes now, and does not have the image's, has no way to the one before.
	cp "$plugin" "$tmp/copy.so"
	record none --plugin "$tmp/copy.so" -d 300ms
	is "a file of an image that was changed: who has it from before is not recorded, said" \
		"$(grep -c "warning: Process [0-9]*: its plugin's file was changed after" "$tmp/none.err")" 2
	record none-pid --plugin "$tmp/copy.so" -p "$(sed -n 's/.*warning: Process \([0-9]*\): its .*/\1/p' "$tmp/none.err" | head -n 1)" -d 300ms
	is "a file of an image that was changed, -p: said" "$(grep -c "its plugin's file was changed after" "$tmp/none-pid.err")" 1
	touch "$tmp/enough"
	wait "$starter"
else
	skip "containers of one image" "needs overlayfs"
fi

# ---- The others

if command -v ip >/dev/null; then
	record net -- unshare -n sh -c 'ip link set lo up && exec "$@"' sh "$job" "${opts[@]}"
	t "network namespace: as always" good net
else
	skip "network namespace" "needs ip"
fi
record ipc -- unshare -i -u "$job" "${opts[@]}"
t "IPC and UTS namespaces: as always" good ipc
chmod 755 "$tmp"
if unshare -U true 2>/dev/null; then
	record user -- unshare -Ur "$job" "${opts[@]}"
	t "user namespace: as always" good user
	is "user namespace: uid is the node's" "$(q user '[records("header")[].uid] | unique | tojson')" "[0]"
fi
# Its CLOCK_MONOTONIC is shifted for the job; the trace keeps to the node's, by the CPU's counter.
if [ "$(q ipc '[records("header")[].clock.source] | unique | tojson')" = '["clock_gettime"]' ]; then
	skip "time namespace" "no counter that the plugin reads"
elif unshare -T true 2>/dev/null; then
	begin=$(cut -d. -f1 /proc/uptime)
	record time -- unshare -T --monotonic 1000000 "$job" "${opts[@]}"
	t "time namespace: as always" good time
	t "time namespace: times are the node's" holds time 'events | all(.start.ts > $b and .start.ts < $b + 60e6)' \
		--argjson b "$((begin - 5))000000"
	# The recorder is in one as well, with all that it starts.
	timeout 60 unshare -T --monotonic 1000000 --boottime 2000000 --fork "$scope" record --plugin "$plugin" -o "$tmp/ours" -- \
		sh -c 'for i in $(seq 40); do sleep 0.5; nsenter -T/proc/$1/ns/time "$0" status --json >"$2"; jq -e ".recorders[0]" "$2" >/dev/null && break; done
			shift 2; exec "$@"' "$scope" $$ "$tmp/outside" "$job" "${opts[@]}" >"$tmp/ours.out" 2>"$tmp/ours.err"
	rc=$?
	t "the recorder's time namespace: as always" good ours
	t "the recorder's time namespace: times are the node's" holds ours 'events | all(.start.ts > $b and .start.ts < $b + 60e6)' \
		--argjson b "$((begin - 5))000000"
	is "the recorder's time namespace: outside it is no other process" "$(jq -c '[.recorders[].state]' "$tmp/outside")" '["running"]'
	is "the recorder's time namespace: the job is seen as CMD's" "$(grep -c 'started none' "$tmp/ours.err")" 0
fi

finish
