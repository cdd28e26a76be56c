# SPDX-License-Identifier: BSD-2-Clause
# What the end-to-end tests ask of a trace: `.` is the array of all its records.

def records($kind): map(select(.recordType == $kind));
def events: records("event") | map(select(.type != "ProfilerLifecycle"));
def of($type): map(select(.type == "ncclProfile" + $type));
def lifecycle($func): records("event") | map(select(.func == $func));

# Events by process; of each, how many of the kinds that the job counts.
def by_pid: events | group_by(.myPid);
def counters: {
	plans: (of("Group") | length), colls: (of("Coll") | length), p2ps: (of("P2p") | length),
	proxyOps: (of("ProxyOp") | length), proxySteps: (of("ProxyStep") | length),
	kernelChs: (of("KernelCh") | length), collApis: (of("CollApi") | length),
	p2pApis: (of("P2pApi") | length), ceColls: (of("CeColl") | length)
};

# The same as the job says it made, from its own output: `.` is its JSON.
def job_counters:
	.rank | group_by(.pid) | map({pid: .[0].pid} + (map(.comms[]) | {
		plans: (map(.plans) | add), colls: (map(.colls) | add), p2ps: (map(.p2ps) | add),
		proxyOps: (map(.proxyOps) | add), proxySteps: (map(.proxySteps) | add),
		kernelChs: (map(.kernelChs) | add), collApis: (map(.collApis) | add),
		p2pApis: (map(.p2pApis) | add), ceColls: (map(.ceColls) | add)
	})) | sort_by(.pid);

# Events by process and id.
def key: "\(.myPid)/\(.eventAddr)";
def index_by_id: map({key: key, value: .}) | from_entries;

# What a parent has to be. A Coll or P2p below a Group is API 1 to 4.
def parent_types: {
	ProxyStep: ["ProxyOp"], ProxyOp: ["Coll", "P2p"], KernelCh: ["Coll", "P2p"],
	Coll: ["CollApi", "Group"], P2p: ["P2pApi", "Group"], CollApi: ["GroupApi"], P2pApi: ["GroupApi"],
	KernelLaunch: ["GroupApi"], NetPlugin: ["ProxyStep"], CeColl: ["CollApi"], CeSync: ["CeColl"],
	CeBatch: ["CeColl"], KernelPhase: ["KernelCh", "Coll", "P2p"], Group: [], GroupApi: [], ProxyCtrl: []
};

# Events that do not have the parent that they should have.
def unjoined:
	events | index_by_id as $all | map(select(
		(.type | ltrimstr("ncclProfile")) as $type
		| parent_types[$type] as $want
		| if .isPxn and $type == "ProxyOp" then false
		elif $want == [] then .parentObj != "null"
		else ($all["\(.myPid)/\(.parentObj)"].type // "none" | ltrimstr("ncclProfile")) as $is
			| ($want | index($is)) == null
		end));

# Ids of the states of each event, in the order of the file: {"pid/id": [ids]}.
def states_by_event:
	reduce records("state")[] as $s ({}; .["\($s.pid)/\($s.eventAddr)"] += [$s.id]);

# ---- The GPU's times

# Kernels in the node's time, each of which began after its launch, and was over before the host saw that; `.` is all records.
def kernels: events | of("KernelCh") | map(select(.unfinished | not));
def kernels_in_time: (events | index_by_id) as $all
	| (events | of("KernelLaunch") | map({key: "\(.myPid)/\(.parentObj)", value: .start.ts}) | from_entries) as $launched
	| kernels | length > 0 and all(. as $k | $all["\(.myPid)/\(.parentObj)"] as $coll | $all["\(.myPid)/\($coll.parentObj)"] as $api
		| $launched["\(.myPid)/\($api.parentObj)"] <= $k.details.gpuStart + $k.details.gpuError
		and $k.details.gpuStart <= $k.details.gpuStop and $k.details.gpuStop <= $k.stop.ts);
# How many kernels two ranks on one GPU ran together, if each rank, which knows nothing of the other, says of all of them the same of
# the GPU's clock, to within their errors; else null. jq has times of 19 digits to half a microsecond.
def same_gpu_clock: kernels | group_by(.rank) | map(group_by(.details.channel) | map(sort_by(.start.ts)
		| map(.details | {ahead: (.pTimer / 1000 - .gpuStart), error: .gpuError}))) as [$a, $b]
	| [range($a | length) as $c | range([($a[$c] | length), ($b[$c] | length)] | min) as $i | [$a[$c][$i], $b[$c][$i]]]
	| if all((.[0].ahead - .[1].ahead | fabs) <= .[0].error + .[1].error + 0.5) then length else null end;

# ---- Kernel context

def states_of($s): $s.onCpu + $s.runq + $s.blocked + ($s.unknown // 0);
# How much of what the kernel did is not known: 0 to 1.
def unknown_share: if . == [] then 1 else (map(.sched.unknown // 0) | add) / (map(.duration) | add) end;
# Threads at their end, with their sums.
def thread_ends: records("thread") | map(select(.stop));
# Sums of `us` by who or why, most first: `.` is the array of all lists.
def by_name($name): map(.[]) | group_by(.[$name]) | map({name: .[0][$name], us: (map(.us) | add)}) | sort_by(-.us);

# The slices of each thread as sums up to the begin of each: {tid: {ts: [...], run: [...], runq: [...], blocked: [...]}}.
def timelines:
	records("slice") | group_by(.tid) | map({key: "\(.[0].tid)", value: (
		. as $s | {ts: map(.ts), dur: map(.dur), state: map(.state), stop: ($s[-1].ts + $s[-1].dur)}
		+ (["run", "runq", "blocked"] | map(. as $state | {key: $state, value: [foreach ($s[], null) as $x (
			{sum: 0, next: 0}; {sum: .next, next: (.next + (if $x.state == $state then $x.dur else 0 end))}; .sum)]})
			| from_entries))}) | from_entries;
# Of a timeline: how long it was in the state up to $t.
def last_before($t):
	. as $a | {lo: 0, hi: length} | until(.hi - .lo <= 1; ((.lo + .hi) / 2 | floor) as $mid
		| if $a[$mid] <= $t then .lo = $mid else .hi = $mid end) | .lo;
def spent($state; $t):
	(.ts | last_before($t)) as $i | .[$state][$i]
		+ if .state[$i] == $state and $t > .ts[$i] then [$t - .ts[$i], .dur[$i]] | min else 0 end; # what is unknown has no slice
def spent($state; $from; $to): spent($state; $to) - spent($state; $from);

# ---- Boundaries of a recording

# More than $colls collectives, each with its 4 ProxyOps, each of them with its 4 steps, and numbers without a gap.
def children_of: group_by("\(.myPid)/\(.parentObj)") | map({key: "\(.[0].myPid)/\(.[0].parentObj)", value: length}) | from_entries;
def whole($colls): events | (of("ProxyOp") | children_of) as $ops | (of("ProxyStep") | children_of) as $steps
	| (map(select(.unfinished)) == []) and (of("Coll") | length > $colls and all($ops[key] == 4))
	and (of("ProxyOp") | all($steps[key] == 4))
	and (of("Coll") | group_by(.myPid) | all(map(.details.seq) | sort | (.[-1] - .[0] + 1 == length)));
