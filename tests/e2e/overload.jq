# SPDX-License-Identifier: BSD-2-Clause
# What was made, what was written and what was lost, of each process.
include "trace";

# `.` is the array of all records of one file. Every callback is a record in the job: a start, a stop or a
# state; a folded repeat is one more. What came without its start has no line of its own: it is counted as orphan, as
# events are whose parent is missing.
def account:
	records("footer")[0] as $footer | {
	pid: records("header")[0].hostPid,
	records: ((records("event") | map(if .type == "ProfilerLifecycle" or .unfinished then 1 else 2 end) | add // 0)
		+ (records("state") | map(if .repeats then 2 else 1 end) | add // 0)
		+ ($footer.lost.orphan // 0) - (records("event") | map(select(.orphan)) | length)),
	lines: map(select(.recordType | IN("event", "state", "thread"))) | length,
	lost: $footer.lost,
	told: (records("lost") | group_by(.cause) | map({(.[0].cause): (map(.n) | add)}) | add // {})};

# `.` is what the job says of itself; its ceiling for event types is ProxyStep's closure.
def made: .rank | map({pid,
	records: (.comms | map(2 * (.plans + .colls + .proxyOps + .proxySteps + 2 * .collApis)
		+ 2 * .collApis + .proxyOps + 3 * .proxySteps + 2) | add),
	# its communicators' begin and end, its two threads' as well
	lines: (.comms | map(.plans + .colls + .proxyOps + .proxySteps + 2 * .collApis
		+ 2 * .collApis + .proxyOps + 3 * .proxySteps + 2 + 4) | add)});

# The longest time from the begin of one iteration to that of the next, of any rank, in ms.
def longest: [.rank[].iterations | map(.start_ns) | [.[1:], .[:-1]] | transpose[] | .[0] - .[1]] | max / 1e6;
