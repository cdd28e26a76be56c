#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope export`: in each format, of traces of every kind, what the trace has is there, as often as jq counts it; the formats are what
# their readers want; hostile traces cost what could not be used, and are told.
#
# Usage: export.sh [NCCLSCOPE [TRACE...]], with traces: of these, each format
. "$(dirname "$0")/lib.sh"
[ $# -gt 0 ] && shift
given=()
for trace in "$@"; do given+=("$(realpath "$trace")"); done
seed=$top/tests/data/nccl-2.28-4xh100-allreduce.jsonl
needs jq python3
cd "$tmp" || exit 1

# The records of a trace, without what is torn.
records()
{
	jq -cR 'fromjson? // empty' "$@"
}

# out FORMAT TRACE...: exported, into out.FORMAT.
out()
{
	local fmt=$1
	shift
	"$tool" export -q --to "$fmt" -o "out.$fmt" "$@" 2>err || { echo "exit $?"; cat err; return 1; }
}

# ---- What is in a trace, by kind: events by type, states, and the rest

counted='
	def event: .type and (.recordType == null or .recordType == "event");
	reduce .[] as $r ({}; ($r | if event then .type elif .recordType == "header" then null else .recordType end) as $k
		| if $k then .[$k] += 1 else . end)'

t_chrome()
{
	out chrome "$@" && jq -e . out.chrome >/dev/null || return 1
	same "$(jq -cS '[.traceEvents[] | select((.ph == "X" or .ph == "i") and .cat != null) | .cat] | group_by(.) | map({(.[0]): length}) | add // {}' out.chrome)" \
		"$(records "$@" | jq -csS "$counted")" || return 1
	# arrows come in pairs, begin where there is a slice, and do not go back in time
	jq -e '.displayTimeUnit == "ns" and ([.traceEvents[] | .ts // 0] | min >= 0) and ([.traceEvents[] | select(.ph == "X") | .dur] | all(. >= 0))
		and ([.traceEvents[] | select(.ph == "s" or .ph == "f")] | group_by(.id) | all(length == 2 and .[0].ph == "s" and .[0].ts <= .[1].ts))' out.chrome >/dev/null || {
		echo "times or arrows"
		return 1
	}
	# slices of a thread are within each other or apart
	jq -e '[.traceEvents[] | select(.ph == "X")] | group_by([.pid, .tid]) | all(
		reduce .[] as $s ({open: [], ok: true};
			.open |= until(length == 0 or .[-1] > $s.ts + 0.0005; .[:-1])
			| if (.open | length) > 0 and $s.ts + $s.dur > .open[-1] + 0.001 then .ok = false else . end
			| .open += [$s.ts + $s.dur]) | .ok)' out.chrome >/dev/null || {
		echo "slices overlap"
		return 1
	}
}

t_perfetto()
{
	out perfetto "$@" && "$top/tests/unit/perfetto_check.py" out.perfetto >facts || { cat facts; return 1; }
	same "$(jq -cS '.slices as $s | .instants | to_entries + ($s | to_entries) | group_by(.key) | map({(.[0].key): map(.value) | add}) | add // {}' facts)" \
		"$(records "$@" | jq -csS "$counted")" || return 1
	# every key of every record is an annotation
	same "$(jq '[.keys[]] | add // 0' facts)" \
		"$(records "$@" | jq -s 'map(select(.recordType != "header") | keys | length) | add // 0')"
}

t_protoc()
{
	out perfetto "$@" || return 1
	protoc -I "$top/loader" --decode=perfetto.protos.Trace "$top/loader/export/perfetto.proto" <out.perfetto >decoded || return 1
	! grep -E '^ *[0-9]+: ' decoded || return 1 # a field that the .proto does not have
	same "$(grep -c '^packet {' decoded)" "$(jq .packets facts)"
}

t_csv()
{
	out csv "$@" || return 1
	records "$@" | jq -c 'select(.type and (.recordType == null or .recordType == "event"))' >events
	python3 - <<'END'
import csv, json
with open('out.csv', newline='') as f:
    rows = list(csv.DictReader(f, strict=True))
raw = open('out.csv', 'rb').read()
# as text, so that no digit is lost
events = [json.loads(l, parse_float=str, parse_int=str) for l in open('events')]
assert len(rows) == len(events), (len(rows), len(events))
for r, e in zip(rows, events):
    assert None not in r and None not in r.values(), r
    for column, want in (('type', e['type']), ('start', e['start']['ts']), ('stop', (e['stop'] or {}).get('ts', '')), ('eventAddr', e.get('eventAddr', '')),
                         ('channel', e['details'].get('channel', '')), ('sched_runq', e.get('sched', {}).get('runq', '')),
                         ('txBytes', e.get('net', {}).get('txBytes', '')), ('exec_source', e.get('exec', {}).get('source', ''))):
        # jq writes the numbers anew: 8.0 for 8.000
        same = r[column] == want or (want and r[column] and column not in ('type', 'eventAddr') and float(r[column]) == float(want))
        assert same, (column, r[column], want)
END
}

t_speedscope()
{
	out speedscope "$@" && out collapsed "$@" || return 1
	jq -e '."$schema" == "https://www.speedscope.app/file-format-schema.json" and (.shared.frames | length) as $n
		| .shared.frames | all(.name | type == "string")' out.speedscope >/dev/null || { echo "frames"; return 1; }
	jq -e '(.shared.frames | length) as $n | .profiles | all(.type == "sampled" and (.name | type) == "string" and .unit == "nanoseconds"
		and (.startValue == 0) and (.samples | length) == (.weights | length) and (.weights | add // 0) == .endValue
		and (.samples | all(length > 0 and all(. >= 0 and . < $n))))' out.speedscope >/dev/null || { echo "profiles"; return 1; }
	same "$(grep -cvE '^[^;]+(;[^;]+)* [0-9]+$' out.collapsed)" 0 || return 1
	same "$(awk '{ n += $NF } END { printf "%.0f", n }' out.collapsed)" "$(jq '[.profiles[].endValue] | add // 0' out.speedscope)"
}

formats="chrome csv perfetto speedscope"
command -v protoc >/dev/null && formats="$formats protoc" || echo "skip export: protoc: not here"
if [ ${#given[@]} -gt 0 ]; then
	for fmt in $formats; do
		t "${#given[@]} files: $fmt" "t_$fmt" "${given[@]}"
	done
	exit $failed
fi
for trace in "$traces"/*.jsonl "$seed"; do
	for fmt in $formats; do
		t "$(basename "$trace" .jsonl): $fmt" "t_$fmt" "$trace"
	done
done

# ---- The seed by hand: its one AllReduce over four ranks, 96 kernel channels on tracks of their own, arrows

cp "$seed" trace_seed.jsonl
out perfetto trace_seed.jsonl && "$top/tests/unit/perfetto_check.py" out.perfetto >facts
t "seed: slices" same "$(jq -c '[.slices.ncclProfileColl, .slices.ncclProfileKernelCh, .slices.cuptiActivity, .instants.ProfilerLifecycle, .threads]' facts)" "[4,96,4,8,9]"
t "seed: arrows: of CollApi, of Coll, of the collective" same "$(jq .joined facts)" 9
t "seed: times" same "$(jq -c '[.first, .last] | map(. / 1e9 | floor)' facts)" "[8993953,8993954]"
out collapsed trace_seed.jsonl
t "seed: paths" grep -qE '^rank 2, \[503639\];GroupApi;CollApi AllReduce;AllReduce RING/SIMPLE;KernelCh [0-9]+$' out.collapsed
t "seed: time" same "$(awk '/;KernelCh / { printf "%.0f", $NF / 1000 }' out.collapsed)" "$(jq -s 'map(select(.type == "ncclProfileKernelCh") | .duration) | add | round' "$seed")"

# ---- Kernels, which run before the host has noted their operation: of a GPU, and by hand

# Their operation is their parent all the same: an arrow leads to each, and no path has one alone.
kernels_have_parents()
{
	"$tool" convert -q -o h200 capture.raw 2>err && t_chrome h200/*.jsonl || return 1
	same "$(jq '[.traceEvents[] | select(.name == "thread_name" and (.args.name | test("GPU channel"))) | {("\(.pid) \(.tid)"): true}] as $gpu | ($gpu | add) as $gpu
		| [.traceEvents[] | select(.ph == "f" and .name == "child" and $gpu["\(.pid) \(.tid)"])] | length' out.chrome)" "$(cat h200/*.jsonl | grep -c '"ncclProfileKernelCh"')" || return 1
	out collapsed h200/*.jsonl && ! grep -E '^[^;]*;KernelCh' out.collapsed
}
if command -v zstd >/dev/null; then
	zstd -q -d "$top/tests/data/nccl-2.28.9-h200.raw.zst" -o capture.raw
	t "a GPU's kernels have their parents" kernels_have_parents
fi

# ---- Kernel context by hand

out perfetto "$traces/sched.jsonl" && "$top/tests/unit/perfetto_check.py" out.perfetto >facts
t "slices are switches and wake-ups" same "$(jq -c '[.slices.slice, .switches > 0]' facts)" "[$(grep -c '"recordType":"slice"' "$traces/sched.jsonl"),true]"
out perfetto "$traces/net.jsonl" && "$top/tests/unit/perfetto_check.py" out.perfetto >facts
t "connections have counters" [ "$(jq .values facts)" -ge "$(grep -c '"recordType":"flow"' "$traces/net.jsonl")" ]
t "a clock" same "$(jq .clocks facts)" 1
# More than a process' tracks: nothing is wrong with them, of which `check` would tell.
many_connections()
{
	{ head -n 1 "$traces/net.jsonl" && awk 'BEGIN { for (i = 0; i < 65600; i++)
		printf "{\"recordType\":\"flow\",\"flow\":\"10.0.0.7:1>10.0.%d.%d:2\",\"ts\":9005.000,\"txBytes\":1,\"rxBytes\":1}\n", i / 256, i % 256 }'; } >many.jsonl
	"$tool" export --to chrome -o many.chrome many.jsonl 2>err && grep -qE 'warning: [0-9]+ records found no room, skipped; the first: many.jsonl, line 65[0-9]+: too many connections$' err &&
		! grep -q 'tells more' err || { cat err; return 1; }
}
t "more connections than there is room for" many_connections
t "real time" same "$(jq '.first / 1e18 | floor' facts)" 1

# process PID TID TS...: its thread runs on CPU 1 for 10 us from each TS on, and is preempted then
process()
{
	local pid=$1 tid=$2 ts
	shift 2
	printf '{"recordType":"header","pid":%d,"comm":"p%d","bootId":"b","clock":{"realtimeOffset":1000000.000}}\n' "$pid" "$pid"
	for ts in "$@"; do
		printf '{"recordType":"slice","tid":%d,"cpu":1,"state":"run","ts":%d.000,"dur":10.000}\n' "$tid" "$ts"
		printf '{"recordType":"slice","tid":%d,"cpu":1,"state":"runq","ts":%d.000,"dur":10.000,"preempted":true}\n' "$tid" $((ts + 10))
	done
}
process 10 11 100 120 140 >a.jsonl
process 20 21 110 130 150 >b.jsonl
t "a CPU from one process to another, in any order of files" eval 't_perfetto a.jsonl b.jsonl && t_perfetto b.jsonl a.jsonl && same "$(jq .switches facts)" 12'

# A process goes by its rank of the largest communicator.
{
	for of in 2:1 8:5 8:6 4:3; do
		printf '{"recordType":"event","type":"ProfilerLifecycle","func":"ProfilerInit","commId":7,"rank":%s,"start":{"ts":1.000,"pid":5,"tid":6},"stop":{"ts":1.000,"pid":5,"tid":6},"details":{"nranks":%s}}\n' \
			"${of#*:}" "${of%:*}"
	done
	printf '{"recordType":"event","type":"ncclProfileCollApi","commId":7,"rank":1,"start":{"ts":10.000,"pid":5,"tid":6},"stop":{"ts":60.000,"pid":5,"tid":6},"parentObj":"null","eventAddr":"0x2","details":{}}\n'
} >ranks.jsonl
t "paths: by the rank of the largest communicator" eval 'out collapsed ranks.jsonl && grep -q "^rank 5, .5.;CollApi" out.collapsed'

# replays RANK PID I...: a rank's AllReduces of one seq, as replays of a CUDA graph have it, each from I ms on
replays()
{
	local rank=$1 pid=$2 i
	shift 2
	printf '{"recordType":"header","pid":%d,"comm":"p","bootId":"b","clock":{"realtimeOffset":1000000.000}}\n' "$pid"
	for i; do
		printf '{"recordType":"event","type":"ncclProfileColl","func":"AllReduce","commId":7,"rank":%d,"start":{"ts":%d%d.000},"stop":{"ts":%d210.000},"eventAddr":"0x%x","details":{"seq":3}}\n' \
			"$rank" "$i" $((100 + rank)) "$i" "$((i + 256))"
	done
}
# joined ARROWS OPS TRACE...: so many arrows between ranks, each within what is one operation, of as many that several ranks are in
joined()
{
	local arrows=$1 ops=$2
	shift 2
	out chrome "$@" && same "$(jq -c '[.traceEvents[] | select(.cat == "collective")] | group_by(.id) | [length, all(.[1].ts - .[0].ts < 10 and .[0].pid != .[1].pid)]' out.chrome)" "[$arrows,true]" || return 1
	out perfetto "$@" && "$top/tests/unit/perfetto_check.py" out.perfetto >facts && same "$(jq .joined facts)" "$ops"
}
replays 0 10 1 2 3 4 >r0.jsonl
replays 1 11 3 4 5 6 >r1.jsonl
replays 2 12 2 4 5 >r2.jsonl
replays 0 20 9 >again0.jsonl
replays 1 21 9 >again1.jsonl
t "replays of a graph, of ranks that were attached one after the other" eval 'joined 2 2 r0.jsonl r1.jsonl && joined 2 2 r1.jsonl r0.jsonl'
t "replays of a graph, of three ranks" joined 5 4 r0.jsonl r1.jsonl r2.jsonl
t "ranks that were restarted" joined 3 3 r0.jsonl r1.jsonl again0.jsonl again1.jsonl
for f in r0 r1; do
	sed 's/"seq":/"seqCommon":false,&/' $f.jsonl >own-$f.jsonl
	sed '1s/"comm"/"ncclVersion":"2.25.1",&/; s/"seq":/"seqCommon":true,&/' $f.jsonl >common-$f.jsonl
done
t "ranks whose numbers are not the same (NCCL up to 2.25)" joined 0 0 own-r0.jsonl own-r1.jsonl
t "ranks of NCCL 2.25 whose numbers are" joined 2 2 common-r0.jsonl common-r1.jsonl

# path TYPE START STOP PARENT ADDR [SCHED]
path()
{
	printf '{"recordType":"event","type":"ncclProfile%s","commId":7,"rank":3,"start":{"ts":%s.000,"pid":5,"tid":6},"stop":{"ts":%s.000,"pid":5,"tid":6},"parentObj":"%s","eventAddr":"%s","details":{}%s}\n' \
		"$1" "$2" "$3" "$4" "$5" "${6:+,\"sched\":$6}"
}
{
	path CollApi 10 60 0x1 0x2 '{"onCpu":40.000,"runq":0.000,"blocked":10.000,"blockedIn":[{"why":"futex","us":6.000}]}'
	path KernelLaunch 50 80 0x1 0x3                                     # in part at the same time
	path GroupApi 0 100 null 0x1 '{"onCpu":75.000,"runq":25.000,"blocked":0.000}' # 30 of its own
	printf '{"recordType":"state","eventAddr":"0x5","ts":%s.000,"name":"%s"}\n' 110 Wait 140 Work
	path ProxyOp 100 200 0x9 0x4
	path ProxyStep 105 165 0x4 0x5 '{"onCpu":30.000,"runq":30.000,"blocked":0.000}'
	path ProxyStep 120 180 0x4 0x6
} >paths.jsonl
t "paths by hand" eval 'out collapsed paths.jsonl && same "$(sed "s/^rank 3, .5.;//" out.collapsed | sort)" "GroupApi;CollApi;[asleep] 4000
GroupApi;CollApi;[in futex] 6000
GroupApi;CollApi;[on CPU] 40000
GroupApi;KernelLaunch 30000
GroupApi;[on CPU] 22500
GroupApi;[runnable] 7500
ProxyOp receive 25000
ProxyOp receive;ProxyStep 60000
ProxyOp receive;ProxyStep;Wait;[on CPU] 15000
ProxyOp receive;ProxyStep;Wait;[runnable] 15000
ProxyOp receive;ProxyStep;Work;[on CPU] 12500
ProxyOp receive;ProxyStep;Work;[runnable] 12500
ProxyOp receive;ProxyStep;[on CPU] 2500
ProxyOp receive;ProxyStep;[runnable] 2500"'
# As on a GPU: the kernel begins before its Coll, and the host sees it after the ProxyOp has begun. What both cover is not the Coll's own.
{
	path Coll 100 200 null 0x1
	path ProxyOp 150 190 0x1 0x2
	path KernelCh 160 200 0x1 0x3 | sed 's/"details":{/&"gpuStart":95.000,"gpuStop":180.000/'
} >kernel.jsonl
t "paths: a kernel that began before its operation" eval 'out collapsed kernel.jsonl && same "$(sed "s/^rank 3, .5.;//" out.collapsed | sort)" "Coll 10000
Coll;KernelCh 85000
Coll;ProxyOp receive 40000"'
{
	path CollApi 10 20 null 0x1 '{"onCpu":0.000,"runq":0.000,"blocked":10.000,"blockedIn":[{"why":"\u001b[31mx\ny\u0001z\u007f","us":6.000}]}'
	printf '{"recordType":"state","eventAddr":"0x2","ts":30.000,"name":"a\\nb\\tc"}\n'
	path ProxyStep 30 40 null 0x2
} >controls.jsonl
t "paths: no control characters" eval 'out collapsed controls.jsonl && same "$(sed "s/^rank 3, .5.;//" out.collapsed | sort)" "CollApi;[asleep] 4000
CollApi;[in ?[31mx?y?z?] 6000
ProxyStep;a?b?c 10000"'

# What hangs: an operation and its ProxyOp go on to the end of the recording, 60 s after their lines; one that is silent does not.
{
	printf '{"recordType":"header","pid":5,"comm":"p","bootId":"b"}\n'
	path GroupApi 1000000 1000010 null 0x9
	path ProxyOp 1000030 0 0x1 0x3 | sed 's/"stop":{[^}]*}/"stop":null,"unfinished":true,"silent":true/'
	path Coll 1000010 1000012 null 0x1 | sed 's/}$/,"exec":{"stop":1000050.000,"source":"proxy","openChildren":1}}/'
	path ProxyOp 1000020 0 0x1 0x2 | sed 's/"stop":{[^}]*}/"stop":null,"unfinished":true/'
	printf '{"recordType":"thread","tid":6,"comm":"p","role":"proxy","start":1000000.000,"stop":61000000.000}\n{"recordType":"footer","end":"exit"}\n'
} >hung.jsonl
hung_timeline()
{
	t_chrome hung.jsonl && same "$(jq -c '[.traceEvents[] | select(.ph == "X") | [.name, .dur + 0]]' out.chrome)" \
		'[["GroupApi",10],["Coll",59999990],["ProxyOp receive",59999980],["ProxyOp receive",0]]' || return 1
	# its arrow leads from the one to the other all the same
	same "$(jq '[.traceEvents[] | select(.ph == "f")] | length' out.chrome)" 2 && t_perfetto hung.jsonl && same "$(jq .ended facts)" 61000000000
}
t "what hangs is drawn to the end of the recording" hung_timeline
t "paths: what hangs" eval 'out collapsed hung.jsonl && same "$(sed "s/^rank 3, p.5.;//" out.collapsed | sort)" "Coll 10000
Coll;ProxyOp receive 59999980000
GroupApi 10000"'

# operation TYPE-AND-REST-OF-path EXEC: as path, with an exec
operation()
{
	local exec=${!#}
	path "${@:1:$#-1}" | sed "s/}$/,\"exec\":{\"source\":\"proxy\",$exec}}/"
}
# A wait of ten seconds: what is below the operation began long before its line has come.
{
	printf '{"recordType":"header","pid":5,"comm":"p","bootId":"b"}\n'
	path ProxyStep 1000040 11000000 0x3 0x4
	path ProxyOp 1000030 11000010 0x1 0x3
	path GroupApi 12000000 12000010 null 0x8
	operation Coll 1000010 1000012 null 0x1 '"stop":11000010.000'
	path GroupApi 20000000 20000010 null 0x9
} >wait.jsonl
waited()
{
	out chrome wait.jsonl && same "$(jq '[.traceEvents[] | select(.ph == "f")] | length' out.chrome)" 2 &&
		out collapsed wait.jsonl && same "$(sed "s/^rank 3, p.5.;//" out.collapsed | sort)" "Coll 20000
Coll;ProxyOp receive 20000
Coll;ProxyOp receive;ProxyStep 9999960000
GroupApi 20000"
}
t "a long wait has its operation" waited

# One of 90 s, after 60 of which the operation is written: it ends with its last child, not with the recording. Of one of these nothing more was told.
{
	printf '{"recordType":"header","pid":5,"comm":"p","bootId":"b"}\n'
	path GroupApi 61000000 61000010 null 0x8
	operation Coll 1000010 1000012 null 0x1 '"stop":1000050.000,"openChildren":3'
	path ProxyStep 1000040 91000000 0x3 0x4
	path ProxyOp 1000030 91000010 0x1 0x3
	path ProxyOp 1000030 91000000 0x1 0x5
	path ProxyOp 1000020 0 0x1 0x2 | sed 's/"stop":{[^}]*}/"stop":null,"unfinished":true,"silent":true/'
	path Coll 93000000 93000010 null 0x6
	path GroupApi 98000000 98000010 null 0x9
	printf '{"recordType":"thread","tid":6,"comm":"p","role":"proxy","start":1000000.000,"stop":500000000.000}\n{"recordType":"footer","end":"exit"}\n'
} >late.jsonl
came_late()
{
	t_chrome late.jsonl && same "$(jq -c '[.traceEvents[] | select(.ph == "X" and .name == "Coll") | .dur + 0]' out.chrome)" "[90000000,10]" &&
		same "$(jq '[.traceEvents[] | select(.ph == "f")] | length' out.chrome)" 4 || return 1
	t_perfetto late.jsonl && out collapsed late.jsonl && same "$(sed "s/^rank 3, p.5.;//" out.collapsed | sort)" "Coll 30000
Coll;ProxyOp receive 89999990000
Coll;ProxyOp receive;ProxyStep 89999960000
GroupApi 20000"
}
t "an operation that is written before its children end, ends with them" came_late

# ---- Several files, nodes, one behind the other

whom_and_where()
{
	local whom='"wokenBy":[{"comm":"pt_data_worker","pid":99,"us":2.000},{"comm":"b","pid":1,"us":1.000}],"files":[{"file":"shards/7","fs":"nfs4","us":1.500}]'
	sed "9s|\"blocked\":3.000|&,$whom|" "$traces/sched.jsonl" >whom.jsonl
	t_csv whom.jsonl && same "$(grep -c ',pt_data_worker,99,2.000,shards/7,nfs4,1.500,' out.csv)" 1
}
t "csv: whom a thread waited for, and in which file" whom_and_where
# Who can be recorded names threads and hosts; whoever opens the table must not run what they say. Numbers stay as they are.
formulas()
{
	local first
	for first in = + - @ '\t' '\r'; do
		sed "s/\"pt_data_worker\"/\"${first//\\/\\\\}1+1\"/; 1s/\"host\":\"[^\"]*\"/\"host\":\"=2\"/" whom.jsonl >formula.jsonl
		out csv formula.jsonl && grep -qF ",\"'$(printf '%b' "$first")1+1\"," out.csv && same "$(grep -vc "^\"'=2\"," out.csv)" 1 || return 1
	done
	path CollApi -5 10 null 0x2 >below.jsonl
	out csv below.jsonl && grep -q ',-5.000,10.000,' out.csv
}
t "csv: what a spreadsheet would take for a formula is text" formulas
sed 's/4711/4811/g; s/5711/5811/g; s/4722/4822/g; s/5722/5822/g; s/"cpu":3/"cpu":2/g' "$traces/good.jsonl" >other.jsonl
sed 's/"bootId":"[^"]*"/"bootId":"99999999-2222-3333-4444-555555555555"/; s/"host":"[^"]*"/"host":"elsewhere"/' "$traces/good.jsonl" >elsewhere.jsonl
both()
{
	"$tool" export -q --to perfetto -o one.pf "$traces/good.jsonl" && "$tool" export -q --to perfetto "$@" -o two.pf other.jsonl &&
		cat one.pf two.pf >both.pf && "$top/tests/unit/perfetto_check.py" both.pf >facts || { cat facts; return 1; }
	same "$(jq -c '[.processes, .sequences, .slices.ncclProfileColl]' facts)" "[2,2,$(cat "$traces/good.jsonl" other.jsonl | grep -c '"ncclProfileColl"')]"
}
t "two exports, one behind the other" both
t "a trace that cat made of two" eval 'cat "$traces/good.jsonl" other.jsonl >cat.jsonl && t_perfetto cat.jsonl && t_chrome cat.jsonl && same "$(jq -c "[.processes, .sequences]" facts)" "[2,2]"'
for start in 1000 2000; do
	jq -c "if .recordType == \"header\" then .startTime = $start else . end" "$traces/good.jsonl" >"started$start.jsonl"
	jq -c '(.start, .stop | objects | .ts) += 1e9 | (.details | objects | .gpuStart, .gpuStop | numbers) += 1e9 | if .ts then .ts += 1e9 else . end' "started$start.jsonl" >"started$start.later.jsonl"
done
# + 0, here and below: jq 1.7 prints a number as it was written, 32.500.
kernel_at()
{
	local at='.traceEvents[] | select(.name == "KernelCh") | .ts, .dur'
	sed 's/"gpuStart":[^}]*}/"x":1}/' "$traces/good.jsonl" >seen.jsonl
	"$tool" export -q --to chrome -o gpu.json "$traces/good.jsonl" && "$tool" export -q --to chrome -o seen.json seen.jsonl || return 1
	same "$(jq -c --slurpfile seen seen.json "[$at] as [\$ts, \$dur] | \$seen[0] | [$at] | [.[0] - \$ts, \$dur + 0, .[1] + 0]" gpu.json)" "[7.5,35.805,32.5]"
}
t "a kernel is where the GPU ran it" kernel_at
t "windows of one process are one" eval 't_perfetto started1000.jsonl started1000.later.jsonl && same "$(jq -c .processes facts)" 1'
t "a pid that is used again is another process" eval 't_perfetto started1000.jsonl started2000.later.jsonl && same "$(jq -c .processes facts)" 2'
t "two nodes" eval 't_perfetto "$traces/good.jsonl" elsewhere.jsonl && same "$(jq -c ".machines | [length, .[0]]" facts)" "[2,0]" && t_chrome "$traces/good.jsonl" elsewhere.jsonl'
# Readers take a pid for 32 bits, and one pid for one process.
numbers()
{
	local name='rank 0: python3 on %s, pid 5711'
	out chrome "$@" || return 1
	jq -e '[.traceEvents[].pid] | all(. > 0 and . < 2147483648)' out.chrome >/dev/null || { jq -c '[.traceEvents[].pid] | unique' out.chrome; return 1; }
	# shellcheck disable=SC2059
	same "$(jq -r '[.traceEvents[] | select(.name == "process_name")] | unique_by(.pid)[].args.name' out.chrome)" \
		"$(for host in node7 elsewhere node7; do printf "$name\n" $host; done)"
}
t "chrome: processes of two nodes, and two of one pid, have numbers of their own" numbers "$traces/good.jsonl" elsewhere.jsonl started1000.jsonl started1000.later.jsonl
# What the kernel logged before a recording is where the process begins: a timeline of ten minutes would show nothing of it.
logged_before()
{
	{
		printf '{"recordType":"header","pid":5,"comm":"p","bootId":"b","clock":{"realtimeOffset":1000000.000}}\n'
		printf '{"recordType":"kmsg","ts":%s.000,"before":true,"level":3,"sign":"gpu","text":"Xid"}\n' 5 6
		printf '{"recordType":"event","type":"ncclProfileCollApi","commId":7,"rank":1,"start":{"ts":9000000.000,"pid":5,"tid":6},"stop":{"ts":9000060.000,"pid":5,"tid":6},"parentObj":"null","eventAddr":"0x2","details":{}}\n'
		printf '{"recordType":"kmsg","ts":9000050.000,"level":3,"sign":"gpu","text":"Xid"}\n'
	} >logged.jsonl
	"$tool" export -q --to perfetto -o logged.pftrace logged.jsonl && same "$("$top/tests/unit/perfetto_check.py" logged.pftrace | jq -c '[.first, .last]')" '[10000000000,10000060000]' || return
	"$tool" export -q --to chrome -o logged.json logged.jsonl &&
		same "$(jq -c '.traceEvents | map(select(.name | startswith("kmsg")) | [.ts, .args.ts]) | sort' logged.json)" '[[0,5],[0,6],[50,9000050]]' || return
	head -n 3 logged.jsonl >alone.jsonl
	"$tool" export -q --to chrome -o alone.json alone.jsonl && same "$(jq '.traceEvents | map(select(.name | startswith("kmsg"))) | length' alone.json)" 2
}
t "what was logged before is where the process begins" logged_before

# A window that has other lanes first than the one before has none but these, and no lane has two names.
lanes()
{
	local names='[.traceEvents[] | select(.name == "thread_name" and .tid >= 1e9) | [.pid, .tid, .args.name]] | unique'
	out chrome started1000.jsonl && jq -c "$names" out.chrome >one && grep -v '"ncclProfileProxy' started1000.later.jsonl >window.jsonl &&
		out chrome started1000.jsonl window.jsonl && same "$(jq -c "$names" out.chrome)" "$(cat one)" || return 1
	out chrome started1000.jsonl started2000.jsonl &&
		same "$(jq -c "$names | [length, (unique_by(.[1]) | length)]" out.chrome)" "$(jq -c '[2 * length, 2 * length]' one)"
}
t "chrome: lanes are those of the process, in all its windows" lanes
t "--machine-ids" eval '"$tool" export -q --to perfetto --machine-ids -o two.pf elsewhere.jsonl && "$top/tests/unit/perfetto_check.py" two.pf >facts && same "$(jq -c "[.machines[] > 0]" facts)" "[true]"'
mkdir dir
cp "$traces/good.jsonl" dir/trace_1_pid1.jsonl
if command -v zstd >/dev/null; then
	zstd -q other.jsonl -o dir/trace_1_pid2.jsonl.zst
	t "a directory, one of it compressed" eval '"$tool" export -q --to chrome -o d.json dir && "$tool" export -q --to chrome -o f.json dir/trace_1_pid1.jsonl other.jsonl && cmp d.json f.json'
fi
# Nobody writes to it, and who opened it would wait.
mkdir pipes
cp "$traces/good.jsonl" pipes/trace_1_pid1.jsonl
mkfifo fifo pipes/trace_1_pid2.jsonl
ln -s ../fifo pipes/trace_1_pid3.jsonl
leads_to_pipe()
{
	timeout 20 "$tool" export -q --to csv -o pipes.csv pipes && "$tool" export -q --to csv -o one.csv pipes/trace_1_pid1.jsonl && cmp pipes.csv one.csv &&
		timeout 20 "$tool" check pipes && timeout 20 "$tool" report pipes >report.pipes
}
t "a directory, a pipe in it, and what leads to one" leads_to_pipe
only_pipes()
{
	rm -r pipes/trace_1_pid1.jsonl
	timeout 20 "$tool" check pipes 2>err
	same "$?" 1 && grep -q "no trace_" err
}
t "a directory with nothing else" only_pipes
t "a pipe that was named" eval '{ cat "$traces/good.jsonl" >fifo & timeout 20 "$tool" export -q --to csv -o pipes.csv fifo && cmp pipes.csv one.csv; }'
t "standard input and output" eval '"$tool" export -q --to csv - <"$traces/good.jsonl" >a.csv && "$tool" export -q --to csv -o b.csv "$traces/good.jsonl" && cmp a.csv b.csv && "$tool" export -q --to csv -o - "$traces/good.jsonl" | cmp - b.csv'

# ---- Broken off, and broken

t "torn: counted and told" eval '"$tool" export --to csv -o a.csv "$traces/running.jsonl" 2>err && grep -q "warning: 1 torn line:" err'
head -c 3000 "$traces/good.jsonl" >torn.jsonl
cat other.jsonl >>torn.jsonl
t "torn amid, another behind it" eval '"$tool" export --to csv -o a.csv torn.jsonl 2>err && grep -q "1 torn line:" err && grep -q " 2 processes" err'
head -c 100 "$traces/good.jsonl" >torn.jsonl
cat torn.jsonl other.jsonl >headers.jsonl
t "torn within the header, another behind it" eval '"$tool" export --to csv -o a.csv headers.jsonl 2>err && grep -q "1 torn line:" err && grep -q " 1 process," err && "$tool" export -q --to csv -o b.csv other.jsonl && cmp a.csv b.csv'
{ head -c 3000 "$traces/good.jsonl" && cat torn.jsonl torn.jsonl other.jsonl; } >headers.jsonl
t "torn, and three headers in that line" eval '"$tool" export --to csv -o a.csv headers.jsonl 2>err && "$tool" export -q --to csv -o b.csv "$traces/good.jsonl" other.jsonl && same "$(grep -c ,5811, a.csv)" "$(grep -c ,5811, b.csv)"'

ev='{"recordType":"event","type":"%s","func":"%s","commId":7,"rank":0,"start":{"ts":%s,"pid":1,"tid":2},"stop":{"ts":%s,"pid":1,"tid":2},"duration":1.000,"myPid":1,"parentObj":"%s","eventAddr":"%s","details":{"func":"%s"}}\n'
# event TYPE START STOP PARENT ADDR [FUNC]
event()
{
	# shellcheck disable=SC2059
	printf "$ev" "$1" "${6:-f}" "$2" "$3" "$4" "$5" "${6:-f}"
}
{
	event ncclProfileGroupApi 100.000 200.000 0x1 0x1          # its own parent
	event ncclProfileCollApi 150.000 250.000 0x3 0x2           # overlaps, and a circle with the next
	event ncclProfileCollApi 160.000 120.000 0x2 0x3           # ends before it begins
	event ncclProfileCollApi 160.000 160.000 null 0x3          # the same address again
	event ncclProfileColl 9223372036854775.000 9223372036854776.000 null 0x4 # too late to be true
	event ncclProfileColl 1e3 2e3 null 0x5
	event ncclProfileNew 10.000 20.000 null 0x6 $'a;b,c\\"d\\u0000\\u001b[31m\\n\\u2028'
	event ncclProfileColl 100.5 130 '' '' 'AllReduceWithANameThatIsLongerThanAnyFunctionOfNCCLEverWas\u00e9\u00e9\u00e9'
	for i in $(seq 100); do event ncclProfileP2p "$((1000 + i)).000" "$((2000 + i)).000" null "0x1$i"; done
	echo '{"recordType":"state","eventAddr":"0x2","ts":1.000,"name":"early","id":1,"pid":1,"tid":2}'
	echo '{"recordType":"state","eventAddr":"0x999","ts":5.000,"name":"\u0007","id":-1,"pid":1,"tid":2}'
	echo '{"recordType":"slice","tid":2,"cpu":99999999,"state":"run","ts":5.000,"dur":-5.000}'
	echo '{"recordType":"slice","tid":2,"cpu":4000,"state":"runq","ts":4.000,"dur":5000000000000000.000}'
	echo '{"recordType":"slice","tid":2,"cpu":3,"state":"run","ts":4.000,"dur":5.000}'
	echo '{"recordType":"flow","flow":"x\"\ny","ts":5.000,"delta":{"txBytes":18446744073709551615},"tcp":{"rtt":-1},"retrans":18446744073709551616}'
	echo '{"recordType":"node"}'
	echo '{"recordType":7}'
	echo '[1,2]'
	echo '{"type":{}}'
	echo '{"recordType":"header","pid":-5,"clock":{"realtimeOffset":-9000000000000000.000}}'
	event ncclProfileColl 100.000 200.000 null 0x4
	echo '{"recordType":"header","bootId":7,"host":"h\u0000","clock":{"realtimeOffset":2305843009213692.000}}'
	event ncclProfileColl 2000000000000000.000 2000000000000001.000 null 0x4
	for i in $(seq 31); do printf '{"recordType":"node","ts":1.000,"a":'; done
	printf '1'
	for i in $(seq 31); do printf '}'; done
	echo
	printf '{"recordType":"drop","ts":1.000,"reason":"\xff"}\n'
	head -c 1100000 /dev/zero | tr '\0' x
	echo
	: | cat
} >hostile.jsonl
t_hostile()
{
	local fmt
	for fmt in chrome csv perfetto speedscope collapsed; do
		"$tool" export --to "$fmt" -o "h.$fmt" hostile.jsonl 2>err || { cat err; return 1; }
		[ "$fmt" = perfetto ] && cp err err.perfetto
	done
	jq -e . h.chrome >/dev/null && jq -e . h.speedscope >/dev/null && "$top/tests/unit/perfetto_check.py" --no-cpu h.perfetto >facts || { cat facts; return 1; }
	grep -qE 'warning: [0-9]+ lines could not be used, skipped; the first: hostile.jsonl, line [0-9]+: an event without a time' err.perfetto || { cat err.perfetto; return 1; }
	same "$(grep -cvaE '^[^;]+(;[^;]+)* [0-9]+$' h.collapsed)" 0 || return 1
	! grep -aP '\x1b|\x00' h.csv h.collapsed h.speedscope
}
t "hostile: bounded, told, and still what readers want" t_hostile
if command -v protoc >/dev/null; then
	t "hostile: protoc" eval 'protoc -I "$top/loader" --decode=perfetto.protos.Trace "$top/loader/export/perfetto.proto" <h.perfetto >decoded'
fi
t "control characters in CSV" eval 'grep -qaF "a;b,c\"\"d\\u0000\\u001b[31m" h.csv'

# ---- What is said, and left behind

says()
{
	local status=$1 regex=$2 said rc
	shift 2
	said=$("$@" 2>&1 </dev/null)
	rc=$?
	[ $rc = "$status" ] && [[ $said =~ $regex ]] || { echo "exit $rc: $said"; return 1; }
}
t "no format" says 2 "--to is needed: perfetto" "$tool" export x
t "another format" says 2 "'svg' is no format: perfetto" "$tool" export --to svg x
t "no trace" says 2 "a trace is needed" "$tool" export --to csv
t "a trace that is not there" says 1 "Failed to read 'nowhere': No such file" "$tool" export --to csv -o keep.csv nowhere
t "nothing is left of it" [ -z "$(ls keep.csv* 2>/dev/null)" ]
echo before >keep.csv
t "what was there stays" eval '! "$tool" export --to csv -o keep.csv nowhere 2>/dev/null && same "$(cat keep.csv)" before'
: >empty.jsonl
t "an empty trace" says 1 "No records in 'empty.jsonl'" "$tool" export --to csv empty.jsonl
# once FORMAT: a trace that is given twice is exported as if once, and that is said.
once()
{
	cp "$traces/good.jsonl" copy.jsonl
	"$tool" export --to "$1" -o once "$traces/good.jsonl" 2>/dev/null && "$tool" export --to "$1" -o twice "$traces/good.jsonl" copy.jsonl 2>err &&
		grep -q "Traces of 1 process are given more than once, and taken once; the first that was left out: 'copy.jsonl'" err || { cat err; return 1; }
	cmp once twice
}
for format in csv chrome perfetto collapsed speedscope; do t "a copy is taken once, $format" once $format; done
# part FIRST SECOND: of a trace and a part of it, the first is taken, and if that is the part it is said
head -n 20 "$traces/good.jsonl" >part.jsonl
part()
{
	local said="Of 1 of these what was left out has more in it than what was taken, .*: '$2' has 48 records, 19 were taken"
	"$tool" export --to csv -o one "$1" 2>/dev/null && "$tool" export --to csv -o both "$@" 2>err && cmp one both || return 1
	if [ "$1" = part.jsonl ]; then grep -q "$said" err; else ! grep "has more in it" err; fi
}
t "a copy that is longer is told of" part part.jsonl copy.jsonl
t "one that is shorter is not" part copy.jsonl part.jsonl
at_once()
{
	grep -v '"type":"ProfilerLifecycle"' "$traces/good.jsonl" >later.jsonl
	"$tool" export --to "$1" -o both "$traces/good.jsonl" later.jsonl 2>err && grep -q "Processes that two recordings have at the same time: 1. .*'later.jsonl'" err || return 1
	sed 's/"hostPid":5711/"hostPid":5712/' later.jsonl >other.jsonl
	"$tool" export --to "$1" -o both "$traces/good.jsonl" other.jsonl "$traces/good.jsonl" 2>err && ! grep "same time" err
}
for format in csv perfetto; do t "of a process that two recorders had at once all is there, which is said, $format" at_once $format; done
head -n 1 "$traces/good.jsonl" >header.jsonl
t "a trace of a header alone, and another" says 0 "2 files, 2 processes" "$tool" export --to csv -o two header.jsonl "$traces/good.jsonl"
mkdir -p way/to
: >way/to/empty.jsonl
t "an empty trace, report: as it was named" says 1 "No records in 'way/to/empty.jsonl'" "$tool" report way/to/empty.jsonl
t "an empty trace, view: as it was named" says 1 "No records in 'way/to/empty.jsonl'" "$tool" view -o view.html way/to/empty.jsonl
t "no file, view: as it was named" says 1 "No records in '/dev/null'" "$tool" view -o view.html /dev/null
{ printf 'NCCLRAW\0\3\0\0\0\1\0\0\0' && head -c 4096 /dev/zero; } >way/to/capture
is_capture="'way/to/capture': it is a capture of record --raw: 'ncclscope convert' makes traces of it"
for command in "export --to csv" "export --to chrome" report "view -o view.html" "merge -o merged.jsonl"; do
	# shellcheck disable=SC2086
	t "a capture is none, $command" says 1 "Failed to read $is_capture" "$tool" $command way/to/capture
done
t "a capture is none, check" says 1 "way/to/capture: error: it could not be read: it is a capture of record --raw: 'ncclscope convert'" \
	"$tool" check way/to/capture
piped()
{
	says 1 "it is a capture of record --raw: 'ncclscope convert' makes traces of it" sh -c 'cat way/to/capture | "$@"' sh "$tool" "$@"
}
for command in "export --to csv -" "report -" "view -o view.html -" "check -"; do
	# shellcheck disable=SC2086
	t "a capture from a pipe is none, $command" piped $command
done
# Each event below the one before: stacks are put by recursion, and each has all names of those above it.
deep() {
	awk 'BEGIN {
		print "{\"recordType\":\"header\",\"schema\":1,\"pid\":1,\"hostPid\":1,\"comm\":\"j\"}"
		for (i = 1; i <= 3000; i++)
			printf "{\"recordType\":\"event\",\"type\":\"ncclProfileProxyOp\",\"eventAddr\":\"0x%x\",\"parentObj\":\"0x%x\",\"start\":{\"ts\":%d.000,\"pid\":1,\"tid\":1},\"stop\":{\"ts\":90000.000},\"details\":{\"isSend\":true}}\n", i, i - 1, i
	}' >deep.jsonl
	"$tool" export -q --to collapsed -o deep.collapsed deep.jsonl || return
	[ "$(awk -F';' '{ if (NF > most) most = NF; split($NF, last, " "); ns += last[length(last)] } END { print most, ns }' deep.collapsed)" = "64 89999000" ]
}
t "events three thousand levels deep, none of the time lost" deep

# Compressed it is the same, and has to be unpacked first.
gzip -k -c way/to/capture >way/to/capture.gz
t "a capture that gzip has compressed, convert" says 1 "Failed to read 'way/to/capture.gz': it is compressed by gzip: unpack it, gzip -d FILE, and convert that" "$tool" convert -o converted way/to/capture.gz
if command -v zstd >/dev/null; then
	zstd -q way/to/capture -o way/to/capture.zst
	is_packed="it is a capture of record --raw, compressed by zstd: 'ncclscope convert' makes traces of what 'zstd -d' makes of it"
	for command in "export --to csv" "export --to chrome" report "view -o view.html" "merge -o merged.jsonl"; do
		# shellcheck disable=SC2086
		t "a compressed capture is none, $command" says 1 "Failed to read 'way/to/capture.zst': $is_packed" "$tool" $command way/to/capture.zst
	done
	t "a compressed capture is none, check" says 1 "way/to/capture.zst: error: it could not be read: $is_packed" "$tool" check way/to/capture.zst
	piped_packed()
	{
		says 1 "$is_packed" sh -c 'cat way/to/capture.zst | "$@"' sh "$tool" "$@"
	}
	for command in "export --to csv -" "report -" "view -o view.html -" "check -"; do
		# shellcheck disable=SC2086
		t "a compressed capture from a pipe is none, $command" piped_packed $command
	done
	packed_to_convert="it is compressed by zstd: unpack it, zstd -d FILE, or convert what comes through a pipe, zstd -dc FILE [|] ncclscope convert -"
	t "a compressed capture, convert" says 1 "Failed to read 'way/to/capture.zst': $packed_to_convert" "$tool" convert -o converted way/to/capture.zst
	t "a compressed capture from a pipe, convert" says 1 "Failed to read '-': $packed_to_convert" sh -c 'cat way/to/capture.zst | "$@"' sh "$tool" convert -o converted -
	zstd -q "$traces/good.jsonl" -o way/to/trace.zst
	t "what cannot be converted leaves no directory" [ ! -e converted ]
	t "a compressed trace, convert" says 1 "it is no capture of 'ncclscope record --raw'" "$tool" convert -o converted way/to/trace.zst
else
	echo 'skip export: compressed captures: no zstd'
fi
# cut_at BYTES: a compressed trace whose recorder came no further; each command says so, and that there is nothing more to be had of it.
cut_at()
{
	local command cut="it is compressed, and cut before its first record is whole"
	head -c "$1" way/to/trace.zst >cut.zst
	for command in report "export --to csv" "view -o cut.html" merge; do
		says 1 "Failed to read 'cut.zst': $cut" "$tool" $command cut.zst || return 1
		same "$("$tool" $command cut.zst 2>&1 | wc -l)" 1 "lines that $command says" || return 1
	done
	says 1 "Failed to read '-': $cut" sh -c 'cat cut.zst | "$1" report -' sh "$tool" && says 1 "cut.zst: error: it could not be read: $cut" "$tool" check cut.zst
}
if command -v zstd >/dev/null; then
	for bytes in 4 9 100; do t "cut within its first block, after $bytes bytes" cut_at $bytes; done
	# of a size that is not known beforehand, so that the window is not made smaller
	for level in --long --ultra\ -20; do
		# shellcheck disable=SC2086
		zstd -qc $level <"$traces/good.jsonl" >window.zst
		for command in report "export --to csv" "view -o window.html" merge; do
			t "a window that is too large, $level, ${command%% *}" says 1 "Failed to read 'window.zst': it is compressed with a window of more than 8 MiB" "$tool" $command window.zst
		done
		t "a window that is too large, $level, check" says 1 "window.zst: error: it could not be read: it is compressed with a window" "$tool" check window.zst
	done
	zstd -qc -19 <"$traces/good.jsonl" >window.zst
	t "the largest window" says 0 "1 file, 1 process, " "$tool" export --to csv -o window.csv window.zst
	: | zstd -qc >nothing.zst
	t "nothing, compressed, is empty and not cut" says 1 "the file is empty" "$tool" check nothing.zst
fi
t "one of two is not there" says 1 "Failed to read 'nowhere'" "$tool" export --to csv -o two.csv nowhere "$traces/good.jsonl"
t "the other one is exported" same "$(wc -l <two.csv)" "$(($(grep -c '"recordType":"event"' "$traces/good.jsonl") + 1))"
# broken_off FORMAT: of a file whose compression is damaged all before that is exported, and belongs to that process
broken_off()
{
	"$tool" export -q --to "$1" -o whole.out "$traces/good.jsonl" && says 1 "Failed to read 'damaged.zst': its compression is damaged" "$tool" export -q --to "$1" -o damaged.out damaged.zst && cmp whole.out damaged.out || return 1
	"$tool" export -q --to "$1" -o whole.out "$traces/good.jsonl" other.jsonl && says 1 "Failed to read 'damaged.zst'" "$tool" export -q --to "$1" -o damaged.out damaged.zst other.jsonl && cmp whole.out damaged.out
}
if command -v zstd >/dev/null; then
	{ zstd -qc "$traces/good.jsonl" && printf 'no frame of zstd'; } >damaged.zst
	for format in chrome perfetto collapsed speedscope csv; do t "a file that cannot be read on, $format" broken_off "$format"; done
fi
t "a place that is not there" says 1 "Failed to write 'no/where.csv': No such file" "$tool" export --to csv -o no/where.csv "$traces/good.jsonl"
[ -e /dev/full ] && t "a full disk" says 1 "Failed to write '/dev/full': No space left" "$tool" export --to csv -o /dev/full "$traces/good.jsonl"
# full COMMAND...: standard output on a full disk is told of once, by its name
full()
{
	"$tool" "$@" 2>say3 >/dev/full
	same "$?: $(grep error: say3)" "1: ncclscope: error: Failed to write 'standard output': No space left on device"
}
if [ -e /dev/full ]; then
	for command in report "report --json" "report --csv" "check --json" "export -q --to csv" "merge -q" "merge --clocks" "merge --clocks --json" "view -o -"; do
		# shellcheck disable=SC2086
		t "standard output is full, $command" full $command "$traces/good.jsonl"
	done
	for command in "status --json" "top -b -n 1" schema version --help "report --help"; do
		# shellcheck disable=SC2086
		t "standard output is full, $command" full $command
	done
fi
# Ports of RDMA are the node's. The first file is of a later time than the second one; the third is of what both tell, and 7 s later.
node() { # SECOND COUNTERS
	echo '{"recordType":"node","ts":'"$1"'000000,"interval":1000000,"rdma":['"${2:+{\"device\":\"ib0\",\"port\":1,\"counters\":{$2\}\}}"']}'
}
header() { # PID
	echo '{"recordType":"header","schema":1,"host":"n","bootId":"b","pid":'"$1"',"hostPid":'"$1"'}'
}
ports() {
	{ header 1 && node 11 '"symbol_error":1' && node 12 '"port_xmit_data":500' && node 13 "" && node 14 '"packet_seq_err":10'; } >later.jsonl
	{ header 2 && node 2 '"symbol_error":100' && node 3 ""; } >sooner.jsonl
	{ header 3 && node 2 '"symbol_error":100' && node 3 '"symbol_error":5000' && node 12 '"packet_seq_err":9000' && node 20 '"symbol_error":1000'; } >same.jsonl
	out chrome later.jsonl sooner.jsonl same.jsonl
	same "$(jq -c '[.traceEvents[] | select(.ph == "C" and .name == "RDMA ib0:1 lost")] | group_by(.pid) | map(map(.args.events + 0))' out.chrome)" \
		"[[1,0,0,10],[100,0],[1000]]" &&
		same "$(jq -c '[.traceEvents[] | select(.ph == "C" and .name == "RDMA ib0:1 sent")] | map(.args["B/s"] + 0)' out.chrome)" "[0,2000,0,0,0,0,0]"
}
t "ports of a node: each time is told once, whatever the order of files" ports
gpus() {
	{
		header 1
		echo '{"recordType":"gpu","ts":2000000,"gpuUuid":"u","index":5,"smClock":1980,"power":310500}'
		echo '{"recordType":"gpu","ts":3000000,"interval":500000,"gpuUuid":"u","index":5,"smClock":1230,"power":310500,"held":{"a":100000,"b":25000},"nvlinkSent":1000}'
		echo '{"recordType":"gpu","ts":4000000,"interval":500000,"gpuUuid":"u","index":5,"held":{"a":500000,"b":500000},"nvlinkReceived":3000}'
	} >gpu.jsonl
	out chrome gpu.jsonl
	same "$(jq -c '[.traceEvents[] | select(.ph == "C" and .cat != "x")] | map([.name, (.args | to_entries[0] | .key, .value + 0)])' out.chrome)" \
		'[["GPU 5 SM clock","MHz",1980],["GPU 5 power","W",310.5],["GPU 5 SM clock","MHz",1230],["GPU 5 power","W",310.5],["GPU 5 held down","%",25],["GPU 5 NVLink sent","B/s",2000],["GPU 5 held down","%",100],["GPU 5 NVLink received","B/s",6000]]'
}
t "GPUs: clock, power, how much of the time they were held down, bytes over NVLink" gpus
t "damaged" eval 'printf "\x28\xb5\x2f\xfdxxxxxxxxxxxx" >bad.zst && says 1 "its compression is damaged" "$tool" export --to csv bad.zst'
if command -v script >/dev/null; then
	t "binary is nothing for a terminal" eval 'script -qec "$tool export --to perfetto $traces/good.jsonl" /dev/null </dev/null >say2; grep -q "nothing for a terminal" say2'
	t "text is" eval 'script -qec "$tool export -q --to csv $traces/good.jsonl" /dev/null </dev/null >say2 && grep -q "^host,pid,type" say2'
fi
t "only its owner's" same "$(stat -c %a out.csv)" "$(printf %o $((0640 & ~$(umask))))"
exit $failed
