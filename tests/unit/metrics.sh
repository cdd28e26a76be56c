#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope metrics`: the format by Prometheus' own rules, what recorders' files say in it, and files that say anything.
#
# Usage: metrics.sh [NCCLSCOPE]
. "$(dirname "$0")/lib.sh"
needs jq python3 prlimit
export NCCLSCOPE_STATUS_DIR=$tmp/run
mkdir "$tmp/run"
start=$(awk '{ print $22 }' "/proc/$$/stat")

# recorder PID FILTER: the file of a recorder, this shell for its pid; the filter changes what it says.
recorder() {
	local now
	now=$(python3 -c 'import time; print(time.monotonic_ns() // 1000)')
	jq -nc --argjson now "$now" --argjson pid "$1" --argjson start "$start" '
		def live: {pending: 1, pendingSinceUs: ($now - 2500000), func: "AllReduce", seq: 7, ops: 400, opUs: 2000000, bytes: 4.2e9, busBytes: 6.3e9,
			spanUs: 3000000, onCpuUs: 1000000, runqUs: 1500000, blockedUs: 500000, irqUs: 20000, throttledUs: 1000000};
		{schema: 1, version: "0.1.0", pid: $pid, startTime: $start, startedUs: ($now - 9000000), updatedUs: $now, asOfUs: $now,
			options: {mask: 65535}, ring: {bytes: 67108864, used: 4096}, backlog: {bytes: 512, onDisk: 0, us: 30000, givesWay: false},
			self: {cpuUs: 1250000, memory: 1048576}, outputs: ["/x"], counts: {chunks: 5, ringFull: 0, records: 9007199254740993, events: 70, processes: 1},
			lost: {ringFull: 3, "write-error": 4}, processes: [
			{pid: 1, hostPid: 4711, uid: 1000, comm: "python3", records: 90, events: 60, communicators: 2, lost: {ringFull: 3}, jobId: "job-5",
				ranks: [{commHash: "0xc0ffee", rank: 3, nranks: 8, live: live}, {commHash: "0xbeef", rank: 0, nranks: 2, live: {pending: 0}}],
				net: {flows: 4, txBytes: 1000, rxBytes: 2000, retrans: 12, dsack: 2, retransNeeded: 10, noDataUs: 1500000, noRoomUs: 0}},
			{pid: 2, hostPid: 4712, uid: 1000, comm: "other", records: 0, events: 0, communicators: 0, ranks: [], lost: {}}]} | '"${2:-.}" \
		>"$tmp/run/recorder-$1.json"
}

# format FILE: as Prometheus' text format wants it. A name's lines follow one another, HELP and TYPE before them, no sample twice.
format() {
	python3 - "$1" <<'END'
import re, sys
label = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
sample = re.compile(r'([a-z_]+)(\{%s(?:,%s)*\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)$' % (label, label))
text = open(sys.argv[1], "rb").read()
if not text.endswith(b"\n") or any(c < 32 and c != 10 or c == 127 for c in text):
    sys.exit("control characters, or no last newline")
seen, helped, kinds, at = set(), set(), {}, None
for line in text.decode("utf-8").splitlines():
    if line.startswith("# HELP "):
        name = line.split(" ")[2]
        if name in helped:
            sys.exit("twice: " + line)
        helped.add(name)
        at = name
    elif line.startswith("# TYPE "):
        _, _, name, kind = line.split(" ")
        if name != at or kind not in ("counter", "gauge") or (kind == "counter") != name.endswith("_total"):
            sys.exit("type: " + line)
        kinds[name] = kind
    else:
        m = sample.match(line)
        if not m or m[1] != at or m[1] not in kinds or (m[1], m[2]) in seen:
            sys.exit("sample: " + line)
        seen.add((m[1], m[2]))
END
}
metrics() {
	"$tool" metrics "$@" >"$tmp/out" 2>"$tmp/err"
}
# value NAME [LABEL...]: of the sample that has these labels.
value() {
	local name=$1 line
	line=$(grep "^${name}[{ ]" "$tmp/out")
	shift
	for label; do line=$(grep -F "$label" <<<"$line"); done
	echo "${line##* }"
}

metrics
t "no recorder: the format" format "$tmp/out"
is "no recorder: that is told, and nothing else" "$? $(grep -v '^#' "$tmp/out")" "0 ncclscope_recorders 0"

recorder $$
metrics
t "a recorder: the format" format "$tmp/out"
is "a recorder: up" "$(value ncclscope_recorders) $(value ncclscope_recorder_up "recorder=\"$$\"" 'version="0.1.0"')" "1 1"
is "microseconds are seconds" "$(value ncclscope_recorder_cpu_seconds_total) $(value ncclscope_backlog_seconds)" "1.25 0.03"
is "large numbers" "$(value ncclscope_operation_bytes_total 'comm="0xc0ffee"') $(value ncclscope_operation_bus_bytes_total 'rank="3"')" "4200000000 6300000000"
is "losses by cause, of the recorder and of a process" "$(value ncclscope_lost_records_total 'cause="write-error"') $(value ncclscope_process_lost_records_total 'pid="4711"' 'cause="ringFull"')" "4 3"
is "a rank's operations" "$(value ncclscope_operations_total 'comm="0xc0ffee"' 'pid="4711"') $(value ncclscope_operations_pending 'comm="0xbeef"')" "400 0"
is "for how long one is pending" "$(value ncclscope_operation_pending_seconds 'comm="0xc0ffee"') $(value ncclscope_operation_pending_seconds 'comm="0xbeef"')" "2.5 0"
is "where the threads' time went" "$(for s in on_cpu runnable blocked; do value ncclscope_progress_thread_seconds_total "state=\"$s\""; done | xargs)" "1 1.5 0.5"
is "TCP" "$(value ncclscope_tcp_retransmitted_segments_total) $(value ncclscope_tcp_needless_retransmits_total) $(value ncclscope_tcp_no_data_seconds_total)" "12 2 1.5"
is "who a process is" "$(value ncclscope_process_info 'pid="4711"' 'command="python3"' 'job="job-5"' 'uid="1000"')" 1
is "no loss of a kind yet: 0, so that the first is seen to come; not so of a process" \
	"$(value ncclscope_lost_records_total 'cause="ring-full"') $(grep -c '^ncclscope_process_lost_records_total' "$tmp/out")" "0 1"
is "what is not told is absent, not 0" "$(grep -c '^ncclscope_operations_total.*0xbeef\|^ncclscope_tcp.*4712\|job=.*4712' "$tmp/out")" 0
is "every name is in its man page" "$(sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$tmp/out" | while read -r name; do
	grep -q "Cm $name\\b" "$top/man/ncclscope-metrics.1" || echo "$name"
done)" ""
is "docs/metrics.md asks for names that there are" "$(grep -o 'ncclscope_[a-z_]*' "$top/docs/metrics.md" | sort -u | while read -r name; do
	grep -q "^# TYPE $name " "$tmp/out" || echo "$name"
done)" ""

recorder $$ '.updatedUs -= 60000000 | .asOfUs -= 60000000 | .processes[0].ranks[0].live.pendingSinceUs -= 60000000'
metrics
is "one that is stopped is not up, and its operations are not pending any longer" \
	"$(value ncclscope_recorder_up) $(value ncclscope_recorders) $(value ncclscope_operation_pending_seconds 'comm="0xc0ffee"')" "0 1 2.5"
recorder $$ '.waitsUntilUs = .updatedUs + 600000000 | del(.ring, .backlog, .self, .outputs, .counts, .lost, .processes)'
metrics
t "one that waits for its next window: the format" format "$tmp/out"
is "one that waits for its next window is up, and tells no more" \
	"$(value ncclscope_recorder_up) $(value ncclscope_recorders) $(grep -vc '^#' "$tmp/out")" "1 1 2"
recorder $$ '.startTime += 3' # one more could be a time namespace's
metrics
is "a dead one: that, and nothing of what it said" "$(value ncclscope_recorder_up) $(value ncclscope_recorders) $(grep -vc '^#' "$tmp/out")" "0 0 2"

# Two of whom a label cannot tell apart. NCCL says neither hash nor rank where a communicator begins, with the API before version 4.
recorder $$ '.processes[0].ranks += [{commHash: "0x0", rank: -1, nranks: 2, live: {ops: 0, pending: 0}}, {commHash: "0x0", rank: -1, nranks: 2, live: {ops: 0, pending: 0}}]'
metrics
t "communicators not known yet: the format" format "$tmp/out"
is "communicators not known yet: not told of" "$(grep -c '0x0\|rank="-1"' "$tmp/out")" 0
recorder $$ '.processes[0].ranks |= [.[0] * {live: {ops: 7}}] + .'
metrics
t "one hash and rank twice: the format" format "$tmp/out"
is "one hash and rank twice: the younger" "$(value ncclscope_operations_total 'comm="0xc0ffee"')" 400
recorder $$ '.processes |= [.[0] * {comm: "ended"}] + .'
metrics
t "a pid that is another's now: the format" format "$tmp/out"
is "a pid that is another's now: that one" "$(grep -c '^ncclscope_process_info.*4711' "$tmp/out") $(value ncclscope_process_info 'command="python3"')" "1 1"
recorder $$ '.processes[0] as $p | .processes = [range(4000) | . as $i | $p * {hostPid: $i}]'
t "thousands of processes: in time" timeout 20 "$tool" metrics

# Files that say anything; the text of a job.
recorder $$ '.processes[0].comm = "a\"b\\c\nd\u001b[31m\u007f" | .processes[0].jobId = ("ü" * 100) | .lost = {"x\"} 1\ny": 5}'
metrics
t "hostile names: the format" format "$tmp/out"
is "hostile names: as they are, escaped" "$(grep -cF 'command="a\"b\\c\\x0ad\\x1b[31m\\x7f"' "$tmp/out")" 1
recorder $$ '.processes[0].ranks = 5 | .processes[1] = [1] | .self = "x" | .counts = {records: -1, events: "7"} | .lost = {a: {}, b: -3}'
metrics
t "values of any type: the format" format "$tmp/out"
is "values of any type: are left out" "$(grep -c '^ncclscope_\(operations\|recorder_cpu\|records\|events\|lost_records.*"[ab]"\)' "$tmp/out")" 0
echo '{' >"$tmp/run/recorder-$$.json"
metrics
is "no JSON: a warning, and the rest" "$(value ncclscope_recorders) $(grep -c warning "$tmp/err")" "0 1"

# ---- Into a file

recorder $$
metrics -o "$tmp/m.prom"
is "-o: the file, for everybody to read" "$? $(stat -c %a "$tmp/m.prom") $(cat "$tmp/out")" "0 644 "
cp "$tmp/m.prom" "$tmp/out"
t "-o: the same" format "$tmp/out"
metrics -o "$tmp/none/m.prom"
is "-o: where there is no directory" "$? $(grep -c "Failed to write '$tmp/none/m.prom': No such file" "$tmp/err")" "1 1"
metrics -o /dev/full
is "-o: a full disk" "$? $(grep -c "Failed to write '/dev/full': No space" "$tmp/err")" "1 1"
for wrong in "-d 1s" "-d 10ms -o $tmp/m" "-d x -o $tmp/m" "-d 1s -o -"; do
	# shellcheck disable=SC2086
	metrics $wrong
	is "metrics ${wrong//$tmp\//}: usage" "$? $(grep -c -- --delay "$tmp/err")" "2 1"
done
rm "$tmp/m.prom"
trap '' XFSZ # a file that may not grow is an error then
"$tool" metrics -d 1s -o "$tmp/m.prom" 2> >(cat >"$tmp/again.err") &
again=$!
trap - XFSZ
for _ in $(seq 50); do [ -s "$tmp/m.prom" ] && break || sleep 0.1; done
t "-d: written" grep -q "^ncclscope_recorders 1$" "$tmp/m.prom"
rm "$tmp/run"/*
for _ in $(seq 50); do grep -q "^ncclscope_recorders 0$" "$tmp/m.prom" && break || sleep 0.1; done
t "-d: and again" grep -q "^ncclscope_recorders 0$" "$tmp/m.prom"
errors() {
	grep -c "Failed to write '$tmp/m.prom': File too large" "$tmp/again.err"
}
prlimit --pid $again --fsize=0:
for _ in $(seq 50); do [ -e "$tmp/m.prom" ] && sleep 0.1 || break; done
t "-d: what cannot be written: not as it was before either" [ ! -e "$tmp/m.prom" ]
sleep 2.2
is "-d: what cannot be written: said once" "$(errors)" 1
prlimit --pid $again --fsize=unlimited:
for _ in $(seq 50); do [ -e "$tmp/m.prom" ] && break || sleep 0.1; done
t "-d: and written again where there is room" grep -q "^ncclscope_recorders 0$" "$tmp/m.prom"
kill $again
wait $again
is "-d: the file goes with it, its exit status is 0" "$? $(ls "$tmp"/m.prom* 2>/dev/null)" "0 "
finish
