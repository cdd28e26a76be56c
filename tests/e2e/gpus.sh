#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What GPUs do, as NVML would tell it if there were any: in the traces of those whose communicators are on them, in the verdict on a
# rank that came late, and without harm where NVML is missing, crashes or hangs.
. "$(dirname "$0")/lib.sh"
cuda=$build/tests/unit/cuda/libcuda.so.1
nvml=$build/tests/unit/nvml/libnvidia-ml.so.1
export FAKE_NVML=$tmp/gpus
uuid=82ff807f-dead-beef-9988-c0ffee0ab0

# gpu N: the beginning of its description.
gpu() {
	printf '%s uuid GPU-%s%02x\n%s name NVIDIA H200\n%s pci 0:%s:0\n' "$1" $uuid "$1" "$1" "$1" "$((30 + $1))"
	printf "$1 %s\n" 'smmax 1980' 'util 97' 'limit 700000' 'widthmax 16'
}

# One is braked.
{
	gpu 0
	printf '0 %s\n' 'sm 1965' 'temperature 61' 'power 650123' 'width 16' 'reasons 0x4' 'rate74 100000000' 'field94 3' 'rate138 1000000'
	gpu 1
	printf '1 %s\n' 'sm 1230' 'temperature 59' 'power 310000' 'width 8' 'reasons 0x88' 'rate271 840000000' 'rate94 20'
	gpu 2
	printf '2 %s\n' 'sm 1980' 'temperature 64' 'power 645000' 'width 16' 'reasons 0x0' 'field74 5'
} >"$tmp/braked.gpus"

# ranks NAME N [OPTION...]: a job whose rank R is on GPU R, to its end.
ranks() {
	local name=$1 n=$2 r pids=()
	shift 2
	rm -f "$tmp/id"
	for ((r = 0; r < n; r++)); do
		FAKE_CUDA_GPU=$r LD_PRELOAD=$cuda NCCL_PROFILER_PLUGIN=$plugin "$job" --json --ranks "$n" --rank-list $r --id-file "$tmp/id" \
			--bytes 64K --no-check "$@" >"$tmp/$name.$r" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
}

sampler() {
	pgrep -P "$recorder" -x ncclscope-gpu
}

# lines NAME RANK: the records of a rank's GPU.
lines() {
	grep -lE '"func":"ProfilerInit".*"rank":'"$2"',' "$tmp/$1"/*.jsonl | xargs grep -h '^{"recordType":"gpu"'
}

# gpus NAME RANK FILTER: jq over them, as an array.
gpus() {
	lines "$1" "$2" | jq -sc "$3"
}

late=(--iters 250 --period-us 10000 --fault late:ms=8:every=5:rank=1)

# ---- What there is

cp "$tmp/braked.gpus" "$FAKE_NVML"
record_bg braked --nvml "$nvml" --raw "$tmp/braked.raw" -v
is "a process of its own, without any capability, and with no way to one" \
	"$(for key in CapEff CapPrm CapInh CapBnd CapAmb NoNewPrivs; do status_of "$(sampler)" $key; done | sort | uniq -c | xargs)" \
	"5 0000000000000000 1 1"
ranks braked 3 "${late[@]}"
pid=$(sampler)
stop_recorder
t "it ends with the recorder" ended "$pid"
t "the trace is clean" clean braked
t "nothing is lost" lossless braked
for r in 0 1 2; do
	is "rank $r has its own GPU, every second" "$(gpus braked $r 'map(.gpuUuid) | unique[] | .[-2:]') $(gpus braked $r 'length >= 2')" "\"0$r\" true"
done
is "what it is" "$(gpus braked 1 '.[1] | [.index, .name, .pci, .smClock, .smClockMax, .util, .temperature, .power, .powerLimit, .pcieWidth, .pcieWidthMax]')" \
	'[1,"NVIDIA H200","0000:31:00.0",1230,1980,97,59,310000,700000,8,16]'
is "why it is slow" "$(gpus braked 1 '.[1].reasons')" '["hwSlowdown","hwPowerBrakeSlowdown"]'
is "nothing counts before the second sample" "$(gpus braked 1 '.[0] | has("held") or has("errors") or has("interval")')" false
is "for how long it was held down" "$(gpus braked 1 '.[1:] | all(.held.hwPowerBrakeSlowdown / .interval | . > 0.83 and . < 0.85)')" true
is "what did not move is not there" "$(gpus braked 0 '.[1].errors') $(gpus braked 2 '.[1].held')" "{} {}"
is "bytes over NVLink" "$(gpus braked 0 '.[1] | .nvlinkSent / .interval | . > 1000 and . < 1050')" true
is "of a driver that tells little there is little" "$(gpus braked 2 '.[1] | has("errors") or has("nvlinkSent") or has("memClock")')" false
is "the footers count them" "$(kinds='gpu|footer' q braked '(records("footer") | map(.counts.gpu) | add) == (records("gpu") | length)')" true
"$scope" convert "$tmp/braked.raw" -o "$tmp/converted" 2>"$tmp/convert.err"
for r in 0 1 2; do
	is "rank $r: a capture has them, too" "$(lines converted $r)" "$(lines braked $r)"
done

# row [OPTION...]: doctor's.
row() {
	"$scope" doctor --json --plugin "$plugin" "$@" | jq -r '.features[] | select(.name == "gpus-nvml") | .status + ": " + .detail'
}
is "doctor: NVML answers" "$(row --nvml "$nvml")" "works: driver 570.00.fake, 3 GPUs"
t "doctor: there is none" grep -q '^optional-missing: /nowhere/x.so: cannot open' <<<"$(row --nvml /nowhere/x.so)"

# ---- What it is good for

report=$("$scope" report "$tmp/braked")
"$scope" report --json "$tmp/braked" >"$tmp/report"
is "the rank that came late: by its GPU" "$(jq -r '.verdicts[0] | .code, .rank, .evidence[-1]' "$tmp/report" | paste -sd ' ' | sed 's/in [0-9]* of [0-9]* of/in n of/; s/8[345] %/84 %/')" \
	"late-rank 1 in n of these its GPU 1 did less than its peers' (1230 MHz, theirs 1965), held down by hwPowerBrakeSlowdown for 84 % of the time"
t "for people" grep -q '^ *in [0-9]* of [0-9]* of these its GPU 1 did less' <<<"$report"
t "the table has the one that had trouble" grep -qE '^.* 1 +1 +1230 +97 +310 +59  hwPowerBrakeSlowdown 8[345] %, 735 MHz below others, PCIe x8 of x16, pcieReplay [0-9]+$' \
	<<<"$report"
t "and says that it is one of three" grep -q '^GPUs that had trouble: 1 of 3$' <<<"$report"
is "for programs: all of them" "$(jq -c '.gpus | map([.index, .rank, .smClock, .smClockMax, .power])' "$tmp/report")" \
	'[[0,0,1965,1980,650123],[1,1,1230,1980,310000],[2,2,1980,1980,645000]]'

sed 's/^1 sm 1230/1 sm 1965/; /^1 rate/d; s/^1 width 8/1 width 16/; s/^1 reasons .*/1 reasons 0x0/' "$tmp/braked.gpus" >"$FAKE_NVML"
record_bg fine --nvml "$nvml"
ranks fine 3 "${late[@]}"
stop_recorder
report=$("$scope" report "$tmp/fine")
t "a rank that comes late for another reason: not by its GPU" grep -q '^  1. late-rank  *rank 1' <<<"$report"
is "a rank that comes late for another reason: nothing of GPUs" "$(grep -c 'its GPU' <<<"$report")" 0
t "no trouble" grep -q '^GPUs: 3, without trouble$' <<<"$report"

# ---- It does no harm

record_bg off --nvml "$nvml" --gpu off -v
is "--gpu off: there is nobody to ask" "$(sampler)" ""
ranks off 2 --iters 100 --period-us 2000
stop_recorder
is "--gpu off: nobody asks" "$rc $(grep -c NVML "$tmp/off.err")" "0 0"
record idle --nvml "$nvml" -v -d 1500ms
is "no job: NVML is left alone" "$rc $(grep -c NVML "$tmp/idle.err")" "0 0"
record_bg none
ranks none 2 --iters 100 --period-us 2000
stop_recorder
is "no NVML: no word" "$rc $(grep -ci 'nvml\|gpu' "$tmp/none.err")" "0 0"

{
	gpu 0
	echo '0 crash 1'
} >"$FAKE_NVML"
record_bg crash --nvml "$nvml"
ranks crash 2 --iters 100 --period-us 2000
stop_recorder
is "NVML crashes: it is said, and nothing else is lost" "$rc $(grep -c 'looked at GPUs.*ended by signal 9' "$tmp/crash.err")" "0 1"
t "NVML crashes: the trace is whole" lossless crash

cp "$tmp/braked.gpus" "$FAKE_NVML"
record_bg hang --nvml "$nvml" -v
pid=$(sampler)
ranks hang 2 --iters 100000 --period-us 5000 2>/dev/null &
running=$!
until_true 20 grep -q 'GPUs, by NVML: driver' "$tmp/hang.err"
sleep 1
echo '0 hang 1' >>"$FAKE_NVML"
t "a GPU hangs: it is said" until_true 30 grep -q 'NVML has given no answer for [0-9]* s: a GPU, or its driver, hangs' "$tmp/hang.err"
before=${EPOCHREALTIME/./}
stop_recorder
is "a GPU hangs: the recorder does not" "$rc $((${EPOCHREALTIME/./} - before < 3000000))" "0 1"
pkill -KILL -f "^$job "
wait "$running" 2>/dev/null
t "a GPU hangs: the trace is whole" lossless hang
t "a GPU hangs: nobody is left" ended "$pid"

cp "$tmp/braked.gpus" "$FAKE_NVML"
record_bg killed --nvml "$nvml"
pid=$(sampler)
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
t "a recorder is killed: nobody is left" until_true 2 ended "$pid"

# ---- Windows

record_bg windows --nvml "$nvml" --every 3s --for 2s -d 10s
ranks windows 2 --iters 1700 --period-us 7000
wait "$recorder"
# Of each window that lasted: the first and the last may not.
windows() {
	local f
	for f in "$tmp"/windows/*.jsonl; do
		jq -s '(map(.start.ts? // empty) | min) as $from | (map(.stop.ts? // empty) | max) as $to
			| select($to - $from > 1500000) | map(select(.recordType == "gpu")) | length > 0' "$f"
	done | sort | uniq -c | awk '{ print $2, ($1 >= 4) }'
}
is "windows: each that lasted has them" "$(windows)" "true 1"

exit $failed
