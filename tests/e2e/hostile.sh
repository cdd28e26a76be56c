#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Jobs that lie in every way that they can, as three users, beside a job that does not: that one's trace is complete
# and exact, nobody's record is in another's, what the liars lost is counted, and the recorder stays within
# its memory and comes to rest.
E2E_TIMEOUT=${E2E_TIMEOUT:-500}
. "$(dirname "$0")/lib.sh"

[ -x "$build/e2e/hostile" ] || {
	echo "not ok $self: Failed to find '$build/e2e/hostile': build it first (make tests)"
	exit 1
}
cp "$build/e2e/hostile" "$tmp/bin/"
good_uid=21001
memory=256 # MiB, --memory
ring=8	   # MiB, --ring
backlog=1  # MiB, --backlog: what is made of a flood shall be short

# as UID COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# hostile UID MODE SECONDS [THREADS]: in the background, with its word in $tmp/MODE.UID.json
hostile() {
	as "$1" "$tmp/bin/hostile" "$plugin" "${@:2}" >"$tmp/$2.$1.json" 2>"$tmp/$2.$1.err" &
	liars+=($!)
}
liars=()
wait_liars() {
	local pid status=0
	for pid in "${liars[@]}"; do
		wait "$pid" || status=1
	done
	liars=()
	return "$status"
}

# good_job NAME [OPTION...]: it runs to its end, as its own user, and has something to be compared with.
good_job() {
	as "$good_uid" env NCCL_PROFILER_PLUGIN="$plugin" "$job" --json --ranks 2 --bytes 256K "${@:2}" \
		>"$tmp/$1.out" 2>"$tmp/$1.job-err"
}

# sort_out NAME: the traces of the good job's user stay in $tmp/NAME, all others go to $tmp/NAME-liars.
sort_out() {
	local f
	mkdir "$tmp/$1-liars"
	for f in "$tmp/$1"/*.jsonl; do
		[ "$(head -n 1 "$f" | jq .uid)" = $good_uid ] || mv "$f" "$tmp/$1-liars/"
	done
}

# whole NAME: every line of these traces is JSON, and each goes from header to footer.
whole() {
	local n
	n=$(find "$tmp/$1" -name '*.jsonl' | wc -l)
	[ "$n" -gt 0 ] && same "$(head -qn 1 "$tmp/$1"/*.jsonl | jq -r .recordType | sort | uniq -c | xargs)" "$n header" &&
		same "$(tail -qn 1 "$tmp/$1"/*.jsonl | jq -r .recordType | sort | uniq -c | xargs)" "$n footer" &&
		cat "$tmp/$1"/*.jsonl | jq -c empty
}

# lost NAME CAUSE: of all processes in there.
lost() {
	cat "$tmp/$1"/*.jsonl | jq -s --arg cause "$2" '[.[] | select(.recordType == "footer") | .lost[$cause] // 0] | add'
}

# own NAME: each file's owner is the uid of its header, and its lines name no other pid than that.
own() {
	[ -n "$(find "$tmp/$1" -name '*.jsonl')" ] &&
		same "$(stat -c %u "$tmp/$1"/*.jsonl | xargs)" "$(head -qn 1 "$tmp/$1"/*.jsonl | jq .uid | xargs)" owners &&
		same "$(cat "$tmp/$1"/*.jsonl | jq -nc 'foreach inputs as $r (null; if $r.recordType == "header" then $r.pid else . end;
			. as $pid | $r | (.pid, .myPid, .start.pid?, .stop.pid?) | values | select(. != $pid))' | head -n 3)" ""
}

# status KEY of the recorder, in KiB
status() {
	awk -v key="$1:" '$1 == key { print $2 }' "/proc/$recorder/status"
}
cpu_ticks() {
	awk '{ print $14 + $15 }' "/proc/$recorder/stat"
}
# at_rest NAME: with the end of every process in its file, less than a tenth of a CPU over half a second.
at_rest() {
	local before n
	n=$(find "$tmp/$1" -name '*.jsonl' | wc -l)
	[ "$(tail -qn 1 "$tmp/$1"/*.jsonl | grep -c '^{"recordType":"footer"')" = "$n" ] || return 1
	before=$(cpu_ticks)
	sleep 0.5
	[ $(($(cpu_ticks) - before)) -le 5 ]
}

# ---- Floods: by many threads, by many processes of one user, of kernel context, of hits with nothing behind them

record_bg flood -v --ring ${ring}M --backlog ${backlog}M
hostile 21666 flood 4 4
hostile 21666 bad 4 2
hostile 21667 flood 4
hostile 21667 small 4
hostile 21668 switch 4 4
hostile 21668 tiny 4
sleep 0.3
t "floods: the job's exit status" good_job flood --iters 10
t "floods: the liars end" wait_liars
t "floods: the recorder comes to rest" until_true 60 at_rest flood
stop_recorder
is "floods: exit status" "$rc" 0
sort_out flood
t "floods: the job's trace is clean, lossless, exact and joined" good flood
t "floods: the others' traces are whole" whole flood-liars
t "floods: everybody's file is their own" own flood
t "floods: everybody's file is their own, the liars'" own flood-liars
t "floods: who flooded was limited ($(lost flood-liars rate-limit))" [ "$(lost flood-liars rate-limit)" -gt 10000 ]
t "floods: the summary says that" grep -q "^Loss: .*rate-limit $(lost flood-liars rate-limit)" "$tmp/flood.err"
t "floods: hits with nothing behind them were counted" awk '/BPF: bad buffers/ { exit !($NF > 10000) }' "$tmp/flood.err"
# Of what a flood makes, 1 event and 89 strings are handed in at a time, or 1 event.
exact() {
	local f made pid event want got
	for f in "$tmp"/flood.*.json "$tmp"/small.*.json; do
		pid=$(jq .pid "$f") made=$(jq .made "$f") event=91
		[ "$(jq -r .mode "$f")" = small ] && event=2
		got=$(jq -s --argjson pid "$pid" --argjson n $event 'select(.[0].pid == $pid)
			| ([.[] | select(.recordType == "event")] | length) * $n
			+ (.[-1].lost | (.["ring-full"] // 0) + (.["rate-limit"] // 0))' "$tmp/flood-liars"/*_pid"$pid".jsonl)
		want=$made
		same "$got" "$want" "$f" || return 1
	done
}
t "floods: written and lost are what was made, to the record" exact

# ---- Lies: of positions, of others' ids, of the control block, of ELF files; and all that takes memory

# What our own job's traces have: context, hash, rank, an operation, and pid of a rank.
ARG_IDS=$(q flood '[records("event")[] | select(.func == "ProfilerInit")][0] as $i
	| [events[] | select(.type == "ncclProfileColl" and .myPid == $i.myPid)][0] as $op
	| "\($i.ctx) \($i.commHash) \($i.rank) \($op.eventAddr) \($i.myPid)"')
export ARG_IDS
t "there is something to claim ($ARG_IDS)" grep -Eq '^0x[0-9a-f]+ 0x[0-9a-f]+ 0 0x[0-9a-f]+ [0-9]+$' <<<"$ARG_IDS"

# Files that are taken for the plugin by their names.
export ARG_DIR=$tmp/elf
mkdir "$ARG_DIR"
scribble() { # FILE SEEK COUNT
	dd if=/dev/urandom of="$1" bs=1 seek="$2" count="$3" conv=notrunc status=none
}
size=$(stat -c %s "$plugin")
head -c 65536 /dev/urandom >"$ARG_DIR/0-nccl-profiler.so"
{ head -c 64 "$plugin"; head -c 65536 /dev/urandom; } >"$ARG_DIR/1-nccl-profiler.so"
head -c $((size / 2)) "$plugin" >"$ARG_DIR/2-nccl-profiler.so"
cp "$plugin" "$ARG_DIR/3-nccl-profiler.so"
scribble "$ARG_DIR/3-nccl-profiler.so" 600 3000
cp "$plugin" "$ARG_DIR/4-nccl-profiler.so"
scribble "$ARG_DIR/4-nccl-profiler.so" 32 32
cp "$plugin" "$ARG_DIR/5-nccl-profiler.so"
scribble "$ARG_DIR/5-nccl-profiler.so" $((size - 2000)) 2000
chmod -R a+rX "$ARG_DIR"

record_bg lies -v --ring ${ring}M --memory ${memory}M --backlog ${backlog}M
base=$(status VmHWM)
hostile 21666 open 4 2
hostile 21666 fuzz 4 1
hostile 21667 control 4
hostile 21667 elf 4
hostile 21668 short 4
hostile $good_uid claim 4
sleep 0.3
t "lies: the job's exit status" good_job lies --iters 10
t "lies: the liars end" wait_liars
t "lies: the recorder comes to rest" until_true 60 at_rest lies
peak=$(($(status VmHWM) - base))
stop_recorder
is "lies: exit status" "$rc" 0
t "lies: the recorder stayed within --memory ($((peak / 1024)) of $memory MiB)" [ $peak -le $((memory * 1024)) ]
# The one that claims has the job's uid: it is told by its pid, which is the kernel's word.
liar=$(jq .pid "$tmp/claim.$good_uid.json")
mkdir "$tmp/lies-claim"
mv "$tmp/lies"/*_pid"$liar".jsonl "$tmp/lies-claim/"
sort_out lies
t "lies: the job's trace is clean, lossless, exact and joined" good lies
t "lies: the others' traces are whole" whole lies-liars
t "lies: what claims to be the job is whole, and in its own file" whole lies-claim
t "lies: everybody's file is their own" own lies
t "lies: everybody's file is their own, the liars'" own lies-liars
t "lies: everybody's file is their own, that of the one that claims" own lies-claim
t "lies: nonsense was counted" grep -q 'records made no sense and were skipped' "$tmp/lies.err"
# Those that were too many at a time have no trace: their one record is in the summary.
short_ones() {
	local traces sum told
	traces=$(head -qn 1 "$tmp/lies-liars"/*.jsonl | jq 'select(.uid == 21668)' -c | wc -l)
	sum=$(sed -n 's/^Loss: .*rate-limit \([0-9]*\).*/\1/p' "$tmp/lies.err")
	told=$(($(lost lies-liars rate-limit) + $(lost lies-claim rate-limit)))
	same $((traces + ${sum:-0} - told)) "$(jq .hits "$tmp/short.21668.json")"
}
t "lies: short processes have a trace each, or are counted" short_ones

# ---- File systems that a user serves, and does not: under what is read of a process, and under the plugin itself

cp "$build/e2e/slow_fs" "$tmp/bin/"
mkdir -m 755 "$tmp/served"
head -c 65536 /dev/zero >"$tmp/served/page"
cp "$plugin" "$tmp/served/"
chmod -R a+rX "$tmp/served"
# In a user and mount namespace of its own: it serves itself, as root there.
cat >"$tmp/bin/serve" <<-'END'
	#!/bin/sh
	mkdir "$1"
	"${0%/*}/slow_fs" "$2" 0 "$1" >/dev/null 2>&1 &
	ARG_SERVER=$! n=0
	until [ -e "$1/page" ] || [ $n = 50 ]; do sleep 0.1; n=$((n + 1)); done
	export ARG_SERVER ARG_FILE="$1/page"
	shift 2
	"$@"
	status=$?
	kill -KILL $ARG_SERVER
	exit $status
END
chmod 755 "$tmp/bin/serve"
mkdir -m 1777 "$tmp/mounts"
[ -c /dev/fuse ] || {
	skip "hangs" "needs /dev/fuse"
	finish
}
# Everybody's, as distributions have it.
fuse_mode=$(stat -c %a /dev/fuse)
trap 'cleanup; chmod "$fuse_mode" /dev/fuse' EXIT
chmod 666 /dev/fuse
# serve UID COMMAND...
serve() {
	as "$1" unshare -Urm "$tmp/bin/serve" "$tmp/mounts/$1" "$tmp/served" "${@:2}" >"$tmp/serve.$1.out" 2>"$tmp/serve.$1.err" &
	liars+=($!)
}

record_bg hang -v --ring ${ring}M
ARG_WHAT=control serve 21671 "$tmp/bin/hostile" "$plugin" hang 6
ARG_WHAT=tbuf serve 21672 "$tmp/bin/hostile" "$plugin" hang 6
ARG_WHAT=args serve 21673 "$tmp/bin/hostile" "$plugin" hang 6
NCCL_PROFILER_PLUGIN=$tmp/mounts/21674/$(basename "$plugin") serve 21674 "$job" --ranks 2 --bytes 64K --iters 5 --linger-ms 6000
# Over the control block there is another file than the plugin then: that is not read at all. Nor are arguments, by the kernel.
t "hangs: a buffer is told of" until_true 10 grep -q "cannot be looked into" "$tmp/hang.err"
t "hangs: a control block is not looked at" grep -q "Failed to reach the plugin.*No such file" "$tmp/hang.err"
is "hangs: once" "$(grep -c 'cannot be looked into' "$tmp/hang.err")" 1
t "hangs: the job's exit status" good_job hang --iters 10
t "served plugin: it is told of" until_true 5 grep -q 'on a file system that its user serves' "$tmp/hang.err"
# First they: while a process holds on to its memory so, whoever takes a probe off it waits, and all that fork (docs/threat-model.md).
t "hangs: the liars end" wait_liars
stop_recorder
is "hangs: exit status" "$rc" 0
sort_out hang
t "hangs: the job's trace is clean, lossless, exact and joined" good hang
t "hangs: the others' traces are whole" whole hang-liars
t "hangs: everybody's file is their own, the liars'" own hang-liars
is "hangs: each has a trace, but for what is served" "$(head -qn 1 "$tmp/hang-liars"/*.jsonl | jq .uid | sort -u | xargs)" "21671 21672 21673"

finish
