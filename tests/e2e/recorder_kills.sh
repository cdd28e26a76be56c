#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The recorder killed by SIGKILL 50 times at random moments, while it starts and while it records, and one job that
# runs through all of it: it never fails, its results are right, no kill makes it wait; its callbacks stop; each file
# ends at a whole line or a torn last one; the next recorder goes on with new files, and the last one's are complete.
E2E_TIMEOUT=${E2E_TIMEOUT:-400}
. "$(dirname "$0")/lib.sh"

kills=${KILLS:-50}
window=0.3 # s after a kill, and as long after that, for comparison
limit_ms=50
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$seed
cp "$build/standin/scope-calls" "$tmp/bin/"
log=$(mktemp -p /dev/shm ncclscope-kills.XXXXXX)
trap 'cleanup; rm -f "$log"' EXIT

# Ahead of what else runs here, where we may: it is the recorder that is asked about.
nice=(nice -n -10)
"${nice[@]}" true 2>"$tmp/nice" && [ ! -s "$tmp/nice" ] || nice=()
NCCL_PROFILER_PLUGIN=$plugin "${nice[@]}" "$job" --ranks 2 --bytes 64K --iters 1000000 --sleep-us 2000 --timeout 600 \
	--check --json --callbacks "$log" >"$tmp/job.out" 2>"$tmp/job.err" &
starter=$!
until_true 20 children_ready "$starter" 2
mapfile -t ranks < <(pgrep -P "$starter")
until_true 20 test -s "$log"

# Where NCCL's mask lies in each rank: 50 times it is looked for quickly.
addr=$(nm "$tmp/bin/libnccl.so.2" | awk '$3 == "event_mask" { print $1 }')
for pid in "${ranks[@]}"; do
	base=$(awk '/libnccl\.so\.2$/ { sub(/-.*/, "", $1); print $1; exit }' "/proc/$pid/maps")
	masks+=("/proc/$pid/mem $((0x$base + 0x$addr))")
done
masks_off() {
	local m
	for m in "${masks[@]}"; do
		[ "$(dd if="${m% *}" iflag=skip_bytes skip="${m#* }" bs=4 count=1 2>/dev/null | od -An -tu4 | tr -d ' ')" = 0 ] || return
	done
}
# But for one that NCCL makes whatever the mask says: each call stops the last CollApi that it has a handle of.
callbacks() {
	"$tmp/bin/scope-calls" "$log" | jq -s 'map(select(.kind != "stop").begun) | add'
}
files() {
	find "$tmp/o" -type f -printf '%f %s %T@\n' 2>/dev/null | sort
}
# The job's clock, up to 10 ms: /proc/uptime is read without a process.
now() {
	read -r uptime _ </proc/uptime
}
cs() {
	echo $((10#${1/./}))
}

# kill_one N: starts a recorder, and kills it while it starts (every third) or while it records.
kill_one() {
	local i dead
	if [ $(($1 % 3)) = 0 ]; then
		"$scope" record --plugin "$plugin" -o "$tmp/o" >"$tmp/o.out" 2>"$tmp/o.err" &
		recorder=$!
	else
		record_bg o
	fi
	sleep "0.$(printf %03d $((RANDOM % 400)))"
	now
	kill -KILL "$recorder"
	echo "$uptime" >>"$tmp/kills"
	wait "$recorder" 2>/dev/null
	now
	dead=$uptime
	for ((i = 0; i < 100; i++)); do
		masks_off && break
	done
	now
	echo "$(($(cs "$uptime") - $(cs "$dead"))) $i" >>"$tmp/masks"
	sleep "$window"
	files >"$tmp/files-$1"
	i=$(callbacks)
	now
	echo "$uptime" >>"$tmp/quiet"
	sleep "$window"
	echo "$(($(callbacks) - i))" >>"$tmp/made"
	kill -0 "$starter" 2>/dev/null
}
for ((n = 1; n <= kills; n++)); do
	kill_one $n || break
done
cp -r "$tmp/o" "$tmp/before" # whose files must stay what they are
record_bg o --ring 256M
sleep 1
stop_recorder INT
is "after $kills kills: the next recorder's exit status" "$rc" 0
kill -USR1 "$starter"
wait "$starter"
is "$kills kills: the job's exit status" $? 0
is "$kills kills: the job's results are right" "$(said job .ok)" true
is "$kills kills: the job says nothing" "$(head -c 500 "$tmp/job.err")" ""
is "$kills kills: all were" "$(wc -l <"$tmp/kills")" "$kills"

# ---- The job's time

# In 10 ms, and how often it was looked for in vain.
t "mask is 0 within 1 s of the recorder's end" awk '$2 && ($1 > 100 || $2 >= 100) { print; bad = 1 } END { exit bad }' "$tmp/masks"
is "no callbacks from then on" "$(sort -u "$tmp/made")" 0

# The longest time from one iteration to the next in each window behind a kill, and in each one behind that, in which
# nothing happened: others load this machine, and what they do to the job they do in both. In ms.
jq -r '.rank[] | [.iterations[].start_ns] as $ns | range(1; $ns | length) | "\($ns[. - 1]) \($ns[.])"' "$tmp/job.out" | awk -v len="$window" '
	FILENAME ~ /kills$/ { kill[++n] = $1; next }
	FILENAME ~ /quiet$/ { quiet[++m] = $1; next }
	{
		from = $1 / 1e9; to = $2 / 1e9; ms = ($2 - $1) / 1e6
		while (at < n && kill[at + 1] + 3 < from) at++ # windows lie behind each other; a rank is behind another
		if (from < last) at = 0
		last = from
		for (i = at > 0 ? at : 1; i <= n && kill[i] - .01 < to; i++) {
			if (to > kill[i] - .01 && from < kill[i] + len && ms > k[i]) k[i] = ms
			if (i <= m && to > quiet[i] && from < quiet[i] + len && ms > q[i]) q[i] = ms
		}
	}
	END { for (i = 1; i <= n; i++) printf "%.1f %.1f\n", k[i], q[i] }' "$tmp/kills" "$tmp/quiet" - >"$tmp/waits"
# Not more often than chance allows, by what the quiet windows have: three standard deviations.
unhurt() {
	awk -v limit=$limit_ms '$1 > limit { k++ } $2 > limit { q++ }
		END { printf "over %d ms: %d of %d kills, %d of as many windows without\n", limit, k, NR, q; exit k > q + 3 * sqrt(q + 1) }' "$tmp/waits"
}
half() {
	sort -n -k"$1,$1" "$tmp/waits" | awk -v c="$1" '{ v[NR] = $c } END { print v[int((NR + 1) / 2)] }'
}
echo "# seed $seed; iterations usually $(said job '.stats[0].p50_us') us, and 2 ms from one to the next; longest behind a kill: $(sort -n "$tmp/waits" | tail -n 1 | cut -d' ' -f1) ms," \
	"half of them below $(half 1) ms; without: $(sort -n -k2 "$tmp/waits" | tail -n 1 | cut -d' ' -f2) ms, $(half 2) ms"
t "no kill makes the job wait for more than $limit_ms ms: $(unhurt)" unhurt
t "half of the kills are not felt: within $limit_ms ms, or twice what the job waits without" \
	awk -v k="$(half 1)" -v q="$(half 2)" -v limit=$limit_ms 'BEGIN { exit !(k <= limit || k <= 2 * q) }'

# ---- The files

# file_ok FILE: all lines are whole records, but for a last one without its end; and check takes it.
file_ok() {
	local lines
	lines=$(wc -l <"$1")
	same "$(head -n "$lines" "$1" | jq .recordType 2>&1 | grep -c '^"[a-z]*"$')" "$lines" "$1: whole records" &&
		"$scope" check -q "$1"
}
files_ok() {
	export -f file_ok same
	export scope
	find "$tmp/before" -type f -print0 | xargs -0 -P 2 -n 1 bash -c 'file_ok "$0" || exit 1'
}
torn=$(for f in "$tmp"/before/*; do [ -z "$(tail -c 1 "$f")" ] || echo torn; done | wc -l)
t "killed: $(find "$tmp/before" -type f | wc -l) files of whole lines, $torn with a torn last one; check takes them" files_ok
# A file that a recorder has left is never touched again.
untouched() {
	for ((n = 1; n <= kills; n++)); do
		cat "$tmp/files-$n"
	done | sort -u | comm -23 - <(files)
}
is "killed: no file is touched by a later recorder" "$(untouched)" ""
mkdir "$tmp/last"
comm -13 <(cut -d' ' -f1 "$tmp/files-$kills") <(files | cut -d' ' -f1) | while read -r f; do
	cp "$tmp/o/$f" "$tmp/last/"
done
is "the last: files of its own" "$(find "$tmp/last" -type f | wc -l)" 2
t "the last: clean, and nothing lost" eval 'clean last && began_amid last && joined last'
t "the last: operations without a gap" holds last 'events | of("Coll") | group_by(.myPid)
	| length == 2 and all(length > 50 and (map(.details.seq) | sort | .[-1] - .[0] + 1 == length))'

finish
