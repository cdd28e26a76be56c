#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# More than the recorder can take: a ring too small, a recorder that is stopped, a disk that is full, slow or
# hangs, a directory that is deleted. The job does not notice, and what was made is what was written and what
# was lost: of each process, to the record.
. "$(dirname "$0")/lib.sh"

export NCCL_PROFILE_EVENT_MASK=0x10 # the job's ceiling: a stopped recorder cannot narrow the mask
paced=(--dry --ranks 2 --channels 4 --bytes 64M --period-us 40000) # 35,000 records a second

# ---- What was made, written and lost

# accounts NAME JOB...: of each process in the traces of $tmp/NAME, in $tmp/accounts; what the jobs made, in $tmp/made.
accounts() {
	local name=$1 file out
	shift
	for file in "$tmp/$name"/*.jsonl; do
		jq -L "$here" -sc 'include "overload"; account' "$file"
	done >"$tmp/accounts"
	for out in "$@"; do
		jq -L "$here" -c 'include "overload"; made[]' "$tmp/$out.out"
	done >"$tmp/made"
}

# account_is UNIT CAUSE: of every process, what was written and lost for that cause is what was made, in UNIT
# (records: callbacks of the job; lines: of the trace), and nothing was lost for another cause; ring-full stands for
# rate-limit as well, since a process alone has no more than its share of a ring either. Every 10 s a clock line
# comes, of which the job knows nothing, and which may be lost.
account_is() {
	jq -n --slurpfile got "$tmp/accounts" --slurpfile made "$tmp/made" --arg unit "$1" --arg cause "$2" \
		--argjson clocks $clocks '
		(if $cause == "ring-full" then [$cause, "rate-limit"] else [$cause] end) as $causes
		| $made | map(. as $m | ($got | map(select(.pid == $m.pid))) as $g | {pid, made: .[$unit],
			files: ($g | length), written: $g[0][$unit], lost: $g[0].lost})
		| ., (length > 0 and all(.[]; .files == 1
			and (.written + ([.lost[$causes[]] // 0] | add) - .made | . == 0 or ($unit == "lines" and . > 0 and . <= $clocks))
			and (.lost | del(.[$causes[]], .orphan, .["context-ring-full"])) == {}))' >"$tmp/is"
	[ "$(tail -n 1 "$tmp/is")" = true ] || { jq -c . "$tmp/is"; return 1; }
}

# lost CAUSE...: of all processes, by the footers.
lost() {
	jq -s 'map(.lost[$ARGS.positional[]] // 0) | add' "$tmp/accounts" --args "$@"
}

# told_everywhere NAME: `lost` records, footers and the summary say the same.
told_everywhere() {
	local sums
	jq -se 'all(.[]; .lost == .told)' "$tmp/accounts" >/dev/null || { echo "footers are not the sums of lost records"; cat "$tmp/accounts"; return 1; }
	sums=$(jq -sr 'map(.lost | to_entries[]) | group_by(.key) | map({key: .[0].key, n: (map(.value) | add)})
		| [.[] | "\(.key) \(.n)"] | sort | join(", ")' "$tmp/accounts")
	same "$(sed -n 's/^Loss: [0-9]*\( (\(.*\))\)\{0,1\}$/\2/p' "$tmp/${1%.disk}.err" | sed 's/, /\n/g' | sort | paste -sd, | sed 's/,/, /g')" "$sums" "the summary"
}

# not_blocked JOB SECONDS: no iteration took as long as the fault did, by a fifth; others load the machine as well.
not_blocked() {
	local ms
	ms=$(jq -L "$here" 'include "overload"; longest | floor' "$tmp/$1.out")
	[ "$ms" -lt $(($2 * 800)) ] && return 0
	echo "longest iteration: $ms ms"
	return 1
}

# exact WHAT NAME UNIT CAUSE JOB...: all of it, and the exit status.
exact() {
	local what=$1 name=$2 unit=$3 cause=$4
	shift 4
	accounts "$name" "$@"
	t "$what: what was made was written or is counted, of each process" account_is "$unit" "$cause"
	t "$what: lost records, footers and summary say the same" told_everywhere "$name"
	t "$what: what was written is whole" clean "$name"
	is "$what: exit status under --strict" "$rc" "$(if [ "$(jq -s 'map(.lost[]) | add // 0' "$tmp/accounts")" -gt 0 ]; then echo 5; else echo 0; fi)"
	is "$what: the job is right" "$(for out in "$@"; do said "$out" .ok; done | sort -u)" true
}

# during NAME SECONDS FAULT [OPTION...]: a recording of the paced job for about so long, FAULT amid it.
during() {
	local name=$1 long=$2 fault=$3
	shift 3
	clocks=$SECONDS
	record_bg "$name" --strict --mask proxystep "$@"
	job_bg "$name-job" "${paced[@]}" --iters $((long * 25))
	until_true 10 children_ready "$starter" 2
	sleep 0.5
	$fault "$name"
	wait "$starter"
	stop_recorder
	clocks=$(((SECONDS - clocks) / 10 + 1))
}

# another NAME: a job that begins amid the fault; its pid in $another.
another() {
	local first=$starter
	job_bg "$1" "${paced[@]}" --iters 40
	another=$starter
	starter=$first
	until_true 10 children_ready "$another" 2
}

# ---- Without a fault

during calm 1 true
exact "no fault" calm records ring-full calm-job
t "no fault: nothing lost" lossless calm
lines=(--sched=off --net=off) # what is not of the job has lines as well
during lines 1 true "${lines[@]}"
exact "no fault" lines lines write-error lines-job
t "no fault: nothing lost" lossless lines

# ---- The recorder is stopped

stopped() {
	kill -STOP "$recorder"
	sleep 2
	kill -CONT "$recorder"
}
during stop 3 stopped
exact "recorder stopped for 2 s" stop records ring-full stop-job
t "recorder stopped for 2 s: the job is not blocked" not_blocked stop-job 2

during tight 3 stopped --ring 256K
exact "ring too small" tight records ring-full tight-job
t "ring too small: much was lost" [ "$(lost ring-full rate-limit)" -gt 10000 ]
t "ring too small: the job is not blocked" not_blocked tight-job 2

# ---- The disk is full

# Full from almost the beginning to the end: the account of it and the footer have their room all the same.
mkdir "$tmp/full"
mount -t tmpfs -o size=512k none "$tmp/full"
during full 1 true "${lines[@]}"
exact "disk full" full lines write-error full-job
t "disk full: much was lost" [ "$(lost write-error)" -gt 10000 ]
t "disk full: every trace has its end" holds full '[records("header", "footer") | length] == [2, 2]'
is "disk full: said for each file, not for each line" \
	"$(grep -o "Failed to write '[^']*'.*No space left" "$tmp/full.err" | sort | uniq -c |
		awk '{ n++; many += $1 > 10 } END { print n, many + 0 }')" "2 0"

# As good as full: no file of the recorder's may get larger than this.
ulimit -S -f 512
during limited 1 true "${lines[@]}"
ulimit -S -f unlimited
exact "size of files limited" limited lines write-error limited-job
t "size of files limited: much was lost" [ "$(lost write-error)" -gt 10000 ]
t "size of files limited: every trace has its end" holds limited '[records("header", "footer") | length] == [2, 2]'
t "size of files limited: said" grep -q "Failed to write '.*File too large" "$tmp/limited.err"

# With room again; and a process that begins while there is none for its header.
full_for_a_time() {
	another "$1-other"
	sleep 0.5
	mount -o remount,size=64m "$tmp/$1"
	wait "$another"
}
mkdir "$tmp/room"
mount -t tmpfs -o size=512k none "$tmp/room"
during room 3 full_for_a_time "${lines[@]}"
exact "disk full for a time" room lines write-error room-job room-other
t "disk full for a time: much was lost" [ "$(lost write-error)" -gt 10000 ]
t "disk full for a time: and then written again" [ "$(jq -s 'map(.lines) | min' "$tmp/accounts")" -gt 1000 ]
t "disk full for a time: the job is not blocked" not_blocked room-job 1

# ---- The disk is slow, or hangs

slow_disk() {
	mkdir -p "$tmp/$1" "$tmp/$1.disk"
	"$build/e2e/slow_fs" "$tmp/$1.disk" "$2" "$tmp/$1" &
	disk=$!
	until_true 10 mountpoint -q "$tmp/$1"
}
hangs() {
	kill -STOP "$disk"
	sleep 2
	kill -CONT "$disk"
}
if [ -w /dev/fuse ]; then
	slow_disk slow 15 # 48 KiB a write: 3 MB/s, a third of what it would take
	during slow 3 true
	exact "disk slow" slow.disk records ring-full slow-job
	t "disk slow: it takes longer, and nothing is lost" [ "$(lost ring-full rate-limit)" = 0 ]
	t "disk slow: the job is not blocked" not_blocked slow-job 1
	slow_disk hang 0
	during hang 3 hangs
	exact "disk hangs for 2 s" hang.disk records ring-full hang-job
	t "disk hangs for 2 s: the job is not blocked" not_blocked hang-job 2
else
	skip "disk slow" "no /dev/fuse"
fi

# ---- The directory is deleted

deleted() {
	rm -rf "${tmp:?}/$1"
	another "$1-other"
	wait "$another"
}
during deleted 3 deleted "${lines[@]}"
exact "directory deleted" deleted lines write-error deleted-job deleted-other
t "directory deleted: said" grep -q "was deleted, continuing in a new file" "$tmp/deleted.err"
t "directory deleted: and then written again" [ "$(jq -s 'map(.lines) | min' "$tmp/accounts")" -gt 10000 ]
t "directory deleted: the job is not blocked" not_blocked deleted-job 1

# No place for another one: all is lost, and said.
uprooted() {
	rm -rf "$tmp/away"
	mkdir "$tmp/uprooted" # no trace is in it
}
mkdir "$tmp/away"
during uprooted 2 uprooted "${lines[@]}" -o "$tmp/away/x"
is "no place for a directory: exit status under --strict" $rc 5
is "no place for a directory: the job is right" "$(said uprooted-job .ok)" true
is "no place for a directory: said once for each process" \
	"$(grep -c "Failed to open a trace file in '$tmp/away/x': No such file or directory" "$tmp/uprooted.err")" 2
all_lost() {
	local made got
	made=$(jq -L "$here" 'include "overload"; made | map(.lines) | add' "$tmp/uprooted-job.out")
	got=$(sed -n 's/^Loss: .*write-error \([0-9]*\).*/\1/p' "$tmp/uprooted.err")
	[ "$got" -ge "$made" ] && [ "$got" -le $((made + 2 * clocks)) ] && return 0
	echo "counted as lost: $got lines, made: $made"
	return 1
}
t "no place for a directory: the summary counts all that was made" all_lost

finish
