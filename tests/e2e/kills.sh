#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# 200 jobs that are killed at random moments, in many ways, from their first callback to their last: every record
# made before is in the trace, held against the log of callbacks that the stand-in keeps in shared
# memory; what was open is unfinished, with its last state; the footer says how it ended.
E2E_TIMEOUT=${E2E_TIMEOUT:-400} # 200 jobs, on a machine that others load
. "$(dirname "$0")/lib.sh"
# shellcheck source=memory_lib.sh
. "$here/memory_lib.sh"

kills=${KILLS:-200}
workers=3
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
ulimit -c 0
cp "$build/standin/scope-calls" "$tmp/bin/"
export STANDIN_TIMEOUT=2 # peers of a rank that dies while they wait for it to connect

# Counted in memory: nothing is written to disk while a callback is counted.
log=$(mktemp -p /dev/shm ncclscope-kills.XXXXXX)
trap 'cleanup; rm -f "$log"; [ -d "$cgroup" ] && rmdir "$cgroup"' EXIT

# ---- Jobs

# Ranks in one process or in several, one communicator or two, helper threads, small and large.
shapes=(
	"--ranks 2 --bytes 256K --iters 25 --sleep-us 500"
	"--ranks 2 --bytes 64K --iters 40"
	"--ranks 3 --op mix --bytes 128K --iters 14 --sleep-us 500"
	"--ranks 4 --threads 2 --bytes 64K --iters 20 --sleep-us 500"
	"--ranks 2 --socket-threads 1 --bytes 128K --iters 25"
	"--ranks 2 --split 1 --bytes 64K --iters 15"
)
# By somebody else (all), by a thread of its own (us: at a moment), in the thread that calls (after).
ways=(
	"all" "all" "all"
	"kill:sig=9:us" "kill:sig=9:us" "kill:sig=9:us" "kill:sig=9:us" "kill:sig=9:after"
	"kill:sig=11:us" "kill:sig=11:us" "kill:sig=11:after" "kill:sig=6:us" "kill:sig=6:us" "kill:sig=6:after"
	"kill:sig=15:us" "kill:sig=15:us" "kill:sig=15:after"
	"quit:us" "quit:after" "exec:us" "exec:after" "oom:us" "oom:after"
)

run() {
	NCCL_PROFILER_PLUGIN=$plugin "$@" --json --no-check --callbacks "$log"
}

# How long a job of each shape lives, in us; a job's first is to warm up.
measure() {
	local i from
	for i in "${!shapes[@]}"; do
		from=$(date +%s%N)
		# shellcheck disable=SC2086
		run "$job" ${shapes[i]} >"$tmp/ends/whole-$i" 2>"$tmp/ends.err/whole-$i"
		life[i]=$((($(date +%s%N) - from) / 1000))
	done
}

# shot NAME WAY SHAPE: a job that is to die by WAY.
shot() {
	local name=$1 way=$2 shape=${shapes[$3]} iters nranks=${shapes[$3]#--ranks } rank moment when='' as=()
	iters=${shape#*--iters }
	rank=$((RANDOM % ${nranks%% *}))
	moment=$((RANDOM * 32768 + RANDOM))
	case $((RANDOM % 6)) in
	0) moment=$((1 + moment % 25000)) ;;
	1 | 2) moment=$((1 + moment % 2000)) when=:end=1 ;;
	*) moment=$((1 + moment % life[$3])) ;;
	esac
	case $way in
	all) as=(timeout -s TERM "$(printf '%d.%06d' $((moment / 1000000)) $((moment % 1000000)))") ;;
	oom*) as=(sh -c 'echo $$ >$0/cgroup.procs && exec "$@"' "$cgroup") ;;
	esac
	case $way in
	all) set -- ;;
	*us) set -- --fault "${way%%:*}:rank=$rank:${way#*:}=$moment$when" ;;
	*) set -- --fault "${way%%:*}:rank=$rank:${way#*:}=$((1 + RANDOM % ${iters%% *}))" ;;
	esac
	# shellcheck disable=SC2086
	run "${as[@]}" "$job" $shape "$@" >"$tmp/ends/$name" 2>"$tmp/ends.err/$name"
}

# died NAME WAY: it is WAY that a process of it died by, and nothing else.
died() {
	local end
	case $2 in
	all | oom*) end='"signal":9' ;;
	kill*) end=${2#*sig=} end="\"signal\":${end%:*}" ;;
	quit*) end='"exit":3' ;;
	exec*) end='"exit":4' ;;
	esac
	grep -qF "$end}" "$tmp/ends/$1"
}

# worker N: until its share of deaths is there; a job that was through before its moment is no kill.
worker() {
	local n=0 made=0 way name want
	RANDOM=$((seed + $1))
	want=$((kills / workers + ($1 < kills % workers)))
	while [ $made -lt $want ] && [ $n -lt $((want * 2)) ]; do
		way=${ways[(n * workers + $1) % ${#ways[@]}]}
		n=$((n + 1))
		[ "$cgroup" ] || [ "${way%%:*}" != oom ] || way=kill:sig=9:us
		name=$1-$n
		shot "$name" "$way" $((RANDOM % ${#shapes[@]}))
		died "$name" "$way" || continue
		made=$((made + 1))
		echo "${way%:*}" >>"$tmp/made"
	done
}

mkdir "$tmp/ends" "$tmp/ends.err"
cgroup_new || skip "out of memory" "no cgroup with the memory controller can be made here"
record_bg kills --ring 512M
measure
for ((w = 0; w < workers; w++)); do
	worker $w &
	pids[w]=$!
done
wait "${pids[@]}"
sleep 0.3
stop_recorder INT
echo "# seed $seed: $(sort "$tmp/made" | uniq -c | tr -s ' \n' ' ')of $(find "$tmp/ends" -type f | wc -l) jobs"
is "$kills jobs were killed" "$(wc -l <"$tmp/made")" "$kills"
is "recorder: exit status" "$rc" 0

# ---- Each file by itself

"$scope" check "$tmp/kills" >"$tmp/check" 2>&1
is "killed: clean" "$(grep 'error: ' "$tmp/check" | head -n 5)" ""
# Of what the kernel did something may be lost on a machine that others load; never of what NCCL did.
lost() {
	grep -h '^{"recordType":"footer"' "$tmp"/kills/*.jsonl | jq -c '.lost | del(.["context-ring-full"]) | select(. != {})'
}
is "killed: nothing lost" "$(lost)" ""

# How they ended, by the footers and by what wait(2) told the job.
for f in "$tmp"/kills/*.jsonl; do
	{
		head -n 1 "$f"
		tail -n 1 "$f"
	} | jq -sr '"\(.[0].pid) \(.[1].end) \(.[1].exitCode) \(.[1].lost)"'
done | sort >"$tmp/footers"
cat "$tmp"/ends/* | jq -r '.ends? // [] | .[] | if .signal then "\(.pid) signal \(.signal) null {}" elif .exit == 4 then "\(.pid) exec null {}"
	else "\(.pid) exit \(.exit) {}" end' | sort >"$tmp/waited"
"$tmp/bin/scope-calls" "$log" >"$tmp/calls"
# Who died in its first callback may have a trace or not; before it, none.
jq -r 'select(.returned > 0).pid' "$tmp/calls" >"$tmp/called"
of_called() {
	awk 'NR == FNR { called[$1]; next } $1 in called' "$tmp/called" "$1"
}
ended_so() {
	diff <(of_called "$tmp/footers") <(of_called "$tmp/waited") &&
		same "$(cut -d' ' -f1 "$tmp/footers" | grep -vxFf <(jq .pid "$tmp/calls"))" "" "traces of others"
}
t "killed: how each process ended" ended_so

# ---- Against the log of callbacks

# What the trace has of each thread and kind, and the open events. States come before their event.
cat >"$tmp/counts.jq" <<-'EOT'
	if .recordType == "state" then "\(.pid) \(.tid) state-\(.id) \(1 + (.repeats // 0)) \(.eventAddr) \(.name)"
	elif .recordType != "event" then empty
	elif .type == "ProfilerLifecycle" then "\(.start.pid) \(.start.tid) \(.func[8:] | ascii_downcase) 1"
	else "\(.start.pid) \(.start.tid) \(.type[11:]) \(1 + (.details.repeats // 0))",
		if .unfinished then "open \(.eventAddr) \(.stop) \(.lastState)" else "\(.stop.pid) \(.stop.tid) stop 1" end
	end
EOT
cat >"$tmp/counts.awk" <<-'EOT'
	$1 == "open" { open++; if ($3 != "null" || $4 != last[$2]) print "wrong: unfinished " $2 ": " $3, $4 ", not " last[$2]; next }
	{ n[$1 " " $2 " " $3] += $4 }
	NF == 6 { last[$5] = $6 }
	END { for (key in n) print key, n[key]; print "open", open + 0 }
EOT
printf '%s\n' "$tmp"/kills/*.jsonl | xargs -P 2 -n 40 sh -c 'jq -r -f "$0/counts.jq" "$@" | awk -f "$0/counts.awk" >"$0/counted.$$"' "$tmp"

# Each callback that has returned is in the trace, none is there that was not begun, and of each thread at most one is
# in between, which may or may not have made its record.
lost_none() {
	jq -r '"log \(.pid) \(.tid) \(.kind) \(.begun) \(.returned) \(.slot)"' "$tmp/calls" | cat - "$tmp"/counted.* | awk '
		$1 == "wrong:" { next }
		$1 == "open" { open += $2; next }
		$1 == "log" {
			key = $2 " " $3 " " $4; begun[key] += $5; returned[key] += $6; between[$7] += $5 - $6; calls += $6; flight += $5 - $6
			next
		}
		{ trace[$1 " " $2 " " $3] += $4; records += $4 }
		END {
			for (key in begun) if (trace[key] < returned[key] || trace[key] > begun[key]) {
				bad++; print key ": " returned[key] " returned, " begun[key] " begun, in the trace " trace[key]
			}
			for (key in trace) if (!(key in begun)) { bad++; print key ": in the trace " trace[key] ", not in the log" }
			for (slot in between) if (between[slot] > 1) { bad++; print slot ": " between[slot] " at the same time" }
			printf "%d callbacks returned, %d were in flight; the trace has %d records and %d open events\n", calls, flight, records, open
			exit bad || records < calls || records > calls + flight || open < 100
		}' >"$tmp/compared"
	local err=$?
	tail -n 1 "$tmp/compared"
	head -n 20 "$tmp/compared"
	return $err
}
t "killed: no record lost" lost_none
t "killed: unfinished events have their last state" eval '! grep -h wrong "$tmp"/counted.*'
echo "# $(tail -n 1 "$tmp/compared")"

# Where the moments fell, by the log: of the processes that were killed, how many had made no operation yet, how many had
# begun to take their communicator down.
when() {
	grep -E ' (signal|exec|exit 3)' "$tmp/waited" | cut -d' ' -f1 | sort >"$tmp/dead"
	jq -sr 'group_by(.pid)[] | [.[0].pid, if any(.kind == "finalize") then "end" elif any(.kind == "GroupApi") then "amid" else "init" end] | join(" ")' \
		"$tmp/calls" | sort | join "$tmp/dead" - | cut -d' ' -f2 | sort | uniq -c | tr -s ' \n' ' '
}
moments=$(when)
t "killed: at the beginning, amid operations, and at the end:$moments" eval '[[ $moments =~ amid.*end.*init ]]'

finish
