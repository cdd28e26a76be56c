#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# All that measures, one after the other, and what it found as one page: with the machine, its load and the command.
#
# Usage: bench.sh [--quick] [--only NAME[,NAME...]] [-o FILE]
# NAMES: callback, floors, startup, convert, job, nccl, growth, sched, net. -o: the page goes there, the plot of growth beside it;
# what this run does not measure is on it as it was measured last for a page (kept in build/tests/bench/results).
# --quick: each shortly, to see that it runs; figures are printed and mean little. As a test it fails if one does not run.
usage() {
	echo "Usage: bench.sh [--quick] [--only NAME[,NAME...]] [-o FILE]" >&2
	exit 2
}

names=callback,floors,startup,convert,job,nccl,growth,sched,net
quick='' only=$names out=''
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=1 ;;
	--only) only=${2:?} && shift ;;
	-o) out=${2:?} && shift ;;
	*) usage ;;
	esac
	shift
done
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || {
	echo "SKIP: bench.sh: takes root"
	exit 77
}
export LC_ALL=C
work=$(mktemp -d)
owned=/dev/shm/ncclscope-bench.$$
trap 'rm -rf "$work" "$owned"' EXIT
failed=0 rc=0
# What is measured: the last commit that changed it, and whether something of it is not committed yet.
measured=(bpf include loader plugin vmlinux)
commit=$(cd "$here/../.." && git log -1 --format=%h -- "${measured[@]}" 2>/dev/null)
git -C "$here/../.." diff --quiet HEAD -- "${measured[@]}" 2>/dev/null || commit=${commit:+$commit, changed}
commit=${commit:-${COMMIT:-not known}} # COMMIT: set by who measures a tree that is here without its history
programs=$(realpath -m "${BUILD:-$here/../../build}")/tests/bench
svg=${out:+${out%.md}-growth.svg}

# How quiet the machine is: mean ns of one and the same loop. What others do to it is done to the figures.
loop_ns() {
	"$programs/callback" --ops 20000 </dev/null | jq '.proxy.mean * 100 | round / 100'
}

# own_memory: half of the machine's that is free, 16 GiB at most, where there is a tmpfs to take it for; see own_memory.c.
own_memory() {
	[ ! -w /dev/shm ] || "$programs/own_memory" "$owned" "$(awk '/^MemAvailable/ { mib = int($2 / 2048); print mib < 16384 ? mib : 16384 }' /proc/meminfo)"
}

# once NAME SCRIPT OPTION...: its result in $work/NAME.json.
once() {
	local name=$1 script=$2
	shift 2
	"$here/$script" "$@" --json >"$work/$name.json" 2>"$work/err" </dev/null
	rc=$?
	[ $rc != 0 ] || jq -e 'type == "object"' "$work/$name.json" >/dev/null || rc=1
}

# what_failed: the end of what it said.
what_failed() {
	sed 's/^/# /' "$work/err" | tail -n 20
}

# bench NAME SCRIPT OPTION...: "ok" or "not ok" of the run, whatever the figures. Others may be at work on the
# machine: what fails is tried once more.
bench() {
	local name=$1 began=$SECONDS begun load loop
	case ,$only, in *,"$name",*) ;; *) return ;; esac
	begun=$(date -u '+%Y-%m-%d %H:%M') load=$(cut -d' ' -f1 /proc/loadavg) loop=$(loop_ns)
	once "$@"
	[ $rc = 0 ] || [ $rc = 77 ] || {
		echo "# $name failed after $((SECONDS - began)) s, once more:"
		what_failed
		once "$@"
	}
	if [ $rc = 77 ]; then
		echo "skip bench: $name: $(cat "$work/$name.json" "$work/err" | tail -n 1)"
	elif [ $rc = 0 ]; then
		echo "ok bench: $name ($((SECONDS - began)) s)"
		jq --arg command "${*:2}" --arg begun "$begun" --argjson seconds $((SECONDS - began)) --arg commit "$commit" --arg load "$load" \
			--argjson before "$loop" --argjson after "$(loop_ns)" '.run = ($ARGS.named | del(.before, .after) + {loop: [$before, $after]})' \
			"$work/$name.json" >"$work/with_run" && mv "$work/with_run" "$work/$name.json"
		return
	else
		echo "not ok bench: $name"
		what_failed
		failed=1
	fi
	rm -f "$work/$name.json"
}

if [ -n "$quick" ]; then
	bench callback callback_cost.sh --rounds 1 --ops 40
	bench floors floors.sh --ops 100
	bench startup startup.sh --rounds 2
	bench convert convert.sh --rounds 1 --records 100000
	bench job job_cost.sh --rounds 1 --seconds 1 --cases 4x4M,4x64K
	bench growth growth.sh --rounds 1 --events 100000
	bench sched sched_cost.sh --rounds 1 --seconds 0.2
	bench net net_cost.sh --rounds 1 --seconds 1
else
	own_memory || exit 1
	bench callback callback_cost.sh --rounds "${ROUNDS:-11}" --ops 300
	bench floors floors.sh
	bench startup startup.sh --rounds "${ROUNDS:-15}"
	bench convert convert.sh --rounds "${ROUNDS:-5}" --records "${RECORDS:-20000000}"
	bench growth growth.sh --rounds "${GROWTH_ROUNDS:-3}" --events "${EVENTS:-10000000}" ${svg:+--svg "$svg"}
	bench job job_cost.sh --rounds "${JOB_ROUNDS:-7}" --seconds "${JOB_SECONDS:-2}"
	! { [ -x "$programs/../../gpu/scope-job" ] && nvidia-smi -L >/dev/null 2>&1; } || bench nccl job_cost.sh --rounds "${NCCL_ROUNDS:-7}" --seconds "${JOB_SECONDS:-2}" --cases 2x64M,2x1M \
		--job "$programs/../../gpu/scope-job"
	bench sched sched_cost.sh --rounds "${SCHED_ROUNDS:-25}"
	bench net net_cost.sh --rounds "${NET_ROUNDS:-41}"
fi

# ---- The page

if [ -n "$out" ] && [ -z "$quick" ]; then
	mkdir -p "$programs/results"
	cp "$work"/*.json "$programs/results/" 2>/dev/null
	cp "$programs"/results/*.json "$work/"
fi

machine() {
	echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, $(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | sed 's/$/, /')$(awk '/MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo) GiB"
	echo "$(uname -sr), $(. /etc/os-release && echo "$PRETTY_NAME"), $(systemd-detect-virt 2>/dev/null || true)"
}

defs='
def num: if . == null then "-" elif fabs >= 1000 then round elif fabs >= 100 then . * 10 | round / 10 else . * 100 | round / 100 end | tostring;
def of($unit): "\(.median | num)\($unit) (\(.ci | map(num) | join(" to ")))";
def quartiles: "\(.median | num) (\(.p25 | num) to \(.p75 | num))";
def row: "| " + join(" | ") + " |";
def verdict: if .met then "met" elif .within then "not shown: the interval contains the target" else "**missed**" end;
def goals: .targets[] | "* \(.what): \(.value | num) \(.unit), wanted \(if .min then "at least \(.min)" else "at most \(.max)" end): \(verdict)";
'
# section NAME FILTER: prints what the filter makes of its result, if there is one.
section() {
	[ ! -e "$work/$1.json" ] || jq -r --argjson point "$point" "$defs $2" "$work/$1.json" || failed=1
}

# ns, at most, that a disarmed plugin takes where NCCL would call it, by the part on callbacks; or null.
point=$(jq '[.cases[] | select(.name == "disarmed").above.ci[1]] | .[0]' "$work/callback.json" 2>/dev/null || echo null)

# Of job and nccl.
# shellcheck disable=SC2016 # jq's
job_table='
	(["", "ms an AllReduce", "noise, %", "disarmed, %", "everything recorded, %", "captured, %", "empty programs, %", "the recorder, % of a CPU", "for a capture", "traces done, ms after the end"] | row), "|---|---|---|---|---|---|---|---|---|---|",
	(.cases[] | [.case, (.us.median / 1000 | num), (.noise | of("")), (.disarmed | of("")), (.everything | of("")), (.captured | of("")), (.hooked | of("")), (.recorder | num), (.capture | num), (.after | num)] | row), "", goals,
	(select($point and .cases[0].points) | "\nNo job is quiet enough to show 0.1 %. What a disarmed plugin costs is that NCCL looks at its mask wherever it would call: at most \($point | num) ns each",
	"(the upper end of the interval in the table of callbacks). All ranks'\'' looks, one behind the other, are of an AllReduce:\n",
	(["", "points where NCCL would call", "%"] | row), "|---|---|---|",
	(.cases[] | [.case, (.points | tostring), (.points * $point / 10 / .us.median | . * 10000 | round / 10000 | tostring)] | row), "",
	({value: ([.cases[] | .points * $point / 10 / .us.median] | max), max: 0.1} | .met = (.value <= .max) | .within = false
	| "* disarmed, by its points, the most of these: \(.value | . * 10000 | round / 10000) %, wanted at most 0.1: \(verdict)")),
	(select(.cases[0].begins) | "\nms of its time that the job loses while the recorder gets ready, and from the end of the recording until all is done: once for a",
	"recording, however long it is.\n", (["", "at the beginning", "at the end"] | row), "|---|---|---|", (.cases[] | [.case, (.begins | of("")), (.ends | of(""))] | row)),
	(select(.lossy > 0) | "\nIn \(.lossy) of the recordings something was lost: these figures are too low."),
	(select(.disturbed > 0) | "\nAnother recorder was there \(.disturbed) times: these figures are worth less.")'

# What somebody who asks what it costs may quote: of the parts that were measured.
in_short() {
	local over="It was not measured on nodes with GPUs."
	[ ! -e "$work/nccl.json" ] || over="Over NVIDIA's NCCL, all ranks on one GPU, it is further down."
	section callback '
		(.cases | INDEX(.name)) as $c
		| "* A callback that is recorded takes \($c.armed.above | of(" ns")) of the thread that makes it; where nobody records NCCL makes none,",
		"  and looks at its mask, which takes at most \($point | num) ns."'
	section convert '
		(.cases | INDEX(.case)) as $c
		| "* Traces take \($c.on.outEach | num) bytes for each callback, \($c["on --compress"].outEach | num) with `--compress`; with `--sched=off --net=off` \($c.off.outEach | num) and \($c["off --compress"].outEach | num)."'
	section job '
		"* A whole job of which everything was recorded took so much longer (ranks x bytes of an AllReduce):",
		"  \(.cases | map("\(.case) \(.everything | of(" %"))") | join(", ")).",
		"  Where the interval contains 0, neither a cost is shown nor that there is none.",
		"* The recorder took \(.cases | map(.recorder) | "\(min | num) to \(max | num)") % of a CPU meanwhile, and more after the end, for what of the traces was left.",
		"* That was a stand-in for NCCL on host memory and loopback TCP, on '"$(nproc)"' CPUs that the job shares with the recorder (`@one`: the job is on one of them",
		"  and leaves the others). '"$over"'"'
}

page() {
	printf '# Performance\n\n'
	in_short
	cat <<-END

		Made by \`make bench\`; no figure here is set by hand. Where there are two in parentheses, the median lies between them in 95 of 100
		cases, or in fewer where there are less than six values. Nothing was pinned to quiet CPUs but what says so: others on the machine
		are in the noise. Half of the free memory, 16 GiB at most, was used once and kept from the host, which a virtual machine else waits for page by page
		(tests/bench/own_memory.c).
		A target is met if all of its interval is within it, and missed if none is; where there is no interval, the figure decides.

		| | |
		|---|---|
		| machine | $(machine | head -n 1) |
		| system | $(machine | tail -n 1) |

		Each part is the last run of it, and this was the machine's state. The loop is one and the same before and after each (\`callback\`
		without a plugin, ns of each turn): where it took longer, others had the machine, and the figures have that in them, too.

		| of tests/bench | begun, UTC | s | commit | load before | loop before | after |
		|---|---|---|---|---|---|---|
	END
	for name in ${names//,/ }; do
		section "$name" '.run | ["`\(.command)`", .begun, (.seconds | tostring), .commit, .load, (.loop[] | num)] | row'
	done
	section callback '
		"\n## A callback\n",
		"ns of CPU time for each callback, on the proxy thread of `tests/bench/callback.c`, which replays AllReduces: 8 channels, 16 steps, all states,",
		"\(.callbacks) callbacks in each of \(.rounds) rounds that take all rows by turns. Quantiles are of single callbacks, less the \(.pairNs | num) ns of",
		"reading the clock around each.\n",
		(["", "mean", "above nothing", "p50", "p99", "p99.9", "app thread, p50"] | row), "|---|---|---|---|---|---|---|",
		({nothing: "nothing", disarmed: "plugin there, nobody records", empty: "a plugin that does nothing", forced: "nobody records, mask forced on",
			armed: "**recording, all in the trace**", seed: "JSON text and write() in the callback"} as $names
		| .cases[] | [$names[.name], (.mean.median | num), (.above | of("")), (.quantiles | (.p50, .p99, .p999) | num), (.appP50 | num)] | row), "",
		goals,
		"\nThe last row is `tests/bench/seed_plugin.c`, the way of minimal_profiler in our own lines; recording is \(.cheaper | of("")) times cheaper.",
		"\n## Bytes\n",
		(.bytes | "* on the ring: \(.ring / .records | num) bytes a callback, all around it included (wanted: at most 48)",
		"* JSON lines: \(.jsonl / .lines | num) bytes a line, \(.jsonl / .records | num) a callback")'
	section floors '
		"\n## Where the nanoseconds go\n",
		"What the parts cost at least on this machine, each alone in a loop, the quietest of many.\n",
		(["part", "ns"] | row), "|---|---|",
		(["read the clock (rdtsc); a callback does it once", (.rdtsc | num)], ["clock_gettime instead", (.clockGettime | num)],
		["store 64 bytes, as a step does in five callbacks", (.store64 | num)], ["a probe that nobody is attached to", (.site | num)],
		["a hit of a probe, with an empty BPF program", (.hit | num)], ["copy 8 KiB in user space", (.copy8k | num)],
		["BPF'\''s part of a flush: identity, room in the ring, copy; by the kernel'\''s count", (.flushBpf | num)],
		["callbacks in a flush", (.callsPerFlush | num)], ["**hit and BPF, for each callback**", (.flushShare | num)],
		["the text of a state by snprintf", (.snprintf | num)], ["write() of a line to memory", (.write300 | num)],
		["the recorder, for each callback, on another CPU: decode, correlate, format, write", (.recorderNs | num)] | row)'
	section startup '
		"\n## Startup\n",
		(["", "ms"] | row), "|---|---|", (.cases[] | [.name, (.ms | of(""))] | row), "", goals'
	section convert '
		"\n## Traces of a capture\n",
		"`ncclscope convert` of captures of the stand-in'\''s AllReduce, to memory: `off` without kernel context, `on` with, `short` with and a",
		"tenth as long. Medians of \(.rounds) rounds: of one thread (`--threads=0`) the records in a second of its CPU time, of two, of which",
		"one writes (`--threads=1`), those in a second.\n",
		(["", "records of NCCL", "of the kernel", "both, a second of one thread", "ns each", "of these the operating system", "two threads, a second", "bytes of trace for each of NCCL", "of the capture", "peak MiB"] | row),
		"|---|---|---|---|---|---|---|---|---|---|",
		(.cases[] | [.case, .nccl, .context, .perSecond, .nsEach, .nsKernel, .perSecondTwo, .outEach, .rawEach, (.peakKiB / 1024)] | map(if type == "number" then num else . end) | row), "", goals'
	section job '
		"\n## A whole job\n",
		"The stand-in'\''s AllReduce over loopback TCP, so many ranks, which share the CPUs with the recorder: what it does in \(.seconds) s and more beside one,",
		"against the same job right before and after. Captured is everything, with --raw, to be converted later; noise is nobody there before",
		"against nobody there after; disarmed is jobs with the plugin against jobs without, \(.rounds) of each. Empty programs are BPF'\''s at the tracepoints",
		"that a recorder looks at most (switches, wake-ups, soft interrupts, sends and receives): nobody who looks at each of these events takes less.",
		"Traces are made while the job leaves CPU time for it, and of the rest when the recording, of half a second more, has ended: after the end.",
		"With `@one` all ranks are on one CPU, and nobody but the recorder wants the others: that is a node which has a CPU to spare. With `@two` the job and",
		"the recorder share two CPUs of the machine, and have no other.\n",
'"$job_table"
	section nccl '
		"\n## A whole job over NVIDIA'\''s NCCL\n",
		"The same over NVIDIA'\''s NCCL and TCP on loopback, all ranks on one GPU: these take turns on it, or are there together if an MPS server runs.\n",
		'"$job_table"
	section growth '
		"\n## Growth\n",
		"Medians of \(.rounds) rounds; of more than 10^7 events there is one run. Many processes that take turns have cold caches, also for a plugin that",
		"does nothing.\n",
		(if "'"$svg"'" != "" then "![CPU time for each callback, over processes, channels and events](performance-growth.svg)\n" else "" end),
		(["", "", "ns, job", "ns, job, a plugin that does nothing", "ns, recorder"] | row), "|---|---|---|---|---|",
		(.axes[] | .name as $n | .points[] | [$n, (.x | tostring), (.job | num), (.empty | num), (.recorder | num)] | row), "", goals'
	section sched '
		"\n## The scheduler'\''s context\n",
		"ns a switch, us an AllReduce, more than without a recorder: medians and quartiles. In percent, on one CPU all",
		"of it, else what --sched=events takes more than off. The targets of one CPU are 75 and 220 ns of a switch that takes 1,370 ns.\n",
		(["", "without", "--sched=off", "--sched=events", "%", "target, %", ""] | row), "|---|---|---|---|---|---|---|",
		(.cases[] | [.case, (.base.median | num), (.off | quartiles), (.events | quartiles),
			(.percent | num), (.target.percent | num), (if .met then "met" else "**missed**" end)] | row)'
	section net '
		"\n## The network'\''s context\n",
		"iperf3 that is not recorded, over a veth pair and all on one CPU, while a job on the other is: what it moves in \(.seconds) s beside a recorder",
		"with `--sched=off --net=events`, against right before and after, \(.rounds) times.\n",
		(["", "GB without", "noise, %", "slower, %"] | row), "|---|---|---|---|",
		(.cases[] | [.case, (.GBps.median | num), (.noise | of("")), (.slower | of(""))] | row), "", goals'
}

page >"$work/page"
if [ -n "$out" ]; then
	cp "$work/page" "$out"
else
	sed 's/^/# /' "$work/page"
fi
exit $failed
