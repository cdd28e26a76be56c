#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Callbacks that NCCL leaves out, repeats or makes at poll rate; jobs that are killed, abort, or leave
# without a word: what was made is in the trace, and nothing that was not.
. "$(dirname "$0")/lib.sh"

base=(--ranks 2 --bytes 1M --iters 2 --json) # 4 ProxyOps and 16 ProxySteps per rank and iteration: 64 steps
fault() {
	local name=$1
	shift
	record "$name" -- "$job" "${base[@]}" --fault "$@"
}

# ---- Stops that do not come

fault nostop no-stop:every=2
t "every second step never stops: the rest is as always" good nostop
facts nostop 'states_by_event as $s | events | {
	open: (map(select(.unfinished)) | [length, (map(.type) | unique)]),
	nulls: (map(select(.unfinished)) | map([.stop, .duration]) | unique),
	last: (map(select(.unfinished)) | map([.details.isSend, .lastState]) | unique),
	states: (map(select(.unfinished)) | map($s[key]) | unique)}'
is "every second step never stops: unfinished, of 64 steps" "$(fact open)" '[32,["ncclProfileProxyStep"]]'
is "every second step never stops: stop and duration" "$(fact nulls)" '[[null,null]]'
is "every second step never stops: last states" "$(fact last)" \
	'[[false,"ProxyStepRecvGPUWait"],[true,"ProxyStepSendWait"]]'
is "every second step never stops: their states are there" "$(fact states)" '[[8,20,9],[10,11,12]]'

fault nostopall no-stop:every=3:all=1
t "every third stop of any kind: still clean, lossless, joined" good nostopall
t "every third stop of any kind: several kinds are unfinished" holds nostopall \
	'events | map(select(.unfinished) | .type) | unique | length > 2'

# ---- ProxyOps of CollNet, and of copies by the copy engine: started, and nothing more

silent() {
	local name=$1 source=$2
	shift 2
	record "$name" "$@" -- "$job" "${base[@]}" --fault silent-ops --period-us 2500000
	t "$name ProxyOps: exit status" same "$rc" 0
	t "$name ProxyOps: clean, lossless, joined" eval clean "$name" '&&' lossless "$name" '&&' joined "$name"
	facts "$name" 'events | {
		ops: (of("ProxyOp") | map([.unfinished, .lastState, .silent]) | group_by(.) | map([.[0], length])),
		steps: (of("ProxyStep") | length),
		colls: (of("Coll") | map([.exec.source, .exec.openChildren]) | group_by(.) | map([.[0], length]))}'
	is "$name ProxyOps: unfinished, in no state" "$(fact ops)" '[[[true,"",true],16]]'
	is "$name ProxyOps: no steps" "$(fact steps)" 0
	is "$name ProxyOps: their operations are not open" "$(fact colls)" "[[[\"$source\",null],4]]"
	is "$name ProxyOps: the summary tells of all that are unfinished, and which are silent" \
		"$(awk '$1 == "unfinished" || $1 == "silent" { sum += $2; n[$1] = $2 } END { print n["silent"], sum }' "$tmp/$name.err")" "16 $(q "$name" '[events[] | select(.unfinished)] | length')"
	is "$name ProxyOps: nothing hangs" "$(grep -c 'seemed hung' "$tmp/$name.err")" 0
	is "$name ProxyOps: none is told to" "$("$scope" report --json "$tmp/$name" | jq -c '[.verdicts[] | select(.hung > 0)]')" '[]'
}
silent silent kernel
silent enqueued enqueue --mask coll,proxyop,proxyctrl

# ---- Stops that come twice, states after them

record plain -- "$job" "${base[@]}"
t "no fault" good plain
shape='states_by_event as $s | events | map(select(.type != "ncclProfileProxyCtrl"))
	| map([.type, .unfinished, $s[key]]) | group_by(.) | map([.[0], length]) | tojson'
for f in double-stop state-after-stop; do
	fault "$f" $f
	t "$f: as without" good $f
	is "$f: same events, same states" "$(q $f "$shape")" "$(q plain "$shape")"
done

# ---- At poll rate: folded, and counted, within a second of the first

fault rrepeat recv-repeat:n=20000
t "receive steps started again and again: as without" good rrepeat
facts rrepeat 'events | of("ProxyStep") | {
	recv: (map(select(.details.isSend | not) | .details.repeats // empty) | [length, unique]),
	send: (map(select(.details.isSend) | .details.repeats) | unique)}'
# of each of the 8 receiving ProxyOps one step
is "receive steps started again and again: counted" "$(fact recv)" "[8,[20000]]"
is "receive steps started again and again: none of the others" "$(fact send)" "[null]"
fault prepeat peerwait-repeat:n=20000
t "SendPeerWait at poll rate: as without" good prepeat
facts prepeat 'records("state") | {
	peer: (map(select(.id == 20)) | [length, (map(.repeats // empty) | [length, unique])]),
	order: (map(select(.repeats)) | all(.lastTs > .ts)), other: (map(select(.id != 20) | .repeats) | unique)}'
is "SendPeerWait at poll rate: one line for each step, repeats counted" "$(fact peer)" "[32,[8,[20000]]]"
is "SendPeerWait at poll rate: lastTs" "$(fact order)" true
is "SendPeerWait at poll rate: no repeats of other states" "$(fact other)" "[null]"
# NCCL before 2.27 has that of the operation, with the step in its argument.
fault orepeat peerwait-repeat:n=20000 --api 3
t "SendRemFifoWait at poll rate: clean, lossless, joined" eval clean orepeat '&&' lossless orepeat '&&' joined orepeat
facts orepeat 'records("state") | {
	fifo: (map(select(.id == 1)) | [length, (map(.repeats // empty) | [length, unique])])}'
is "SendRemFifoWait at poll rate: one line for each step, repeats counted" "$(fact fifo)" "[32,[8,[20000]]]"

# ---- Slow and late: nothing wrong with the trace

record slow -- "$job" "${base[@]}" --fault slow-progress:rank=0:us=2000,late:rank=1:ms=20
t "slow and late ranks" good slow

# ---- Ends

# Footers have no pid: with one process a file they are told by their file.
footers() {
	local f
	for f in "$tmp/$1"/*.jsonl; do
		jq -sc '[(map(select(.func == "ProfilerInit")) | .[0].rank), .[-1].end, .[-1].exitCode]' "$f"
	done | sort | tr -d '\n'
}

# Rank 1 is killed at its 4th call: three are whole, the others see it.
record killed -- "$job" --ranks 3 --bytes 1M --iters 6 --json --fault kill:rank=1:after=4
is "killed at the 4th call: the job's exit status" "$rc" 1
t "killed at the 4th call: clean" clean killed
t "killed at the 4th call: nothing lost" lossless killed
is "killed at the 4th call: how the processes end" "$(footers killed)" '[0,"exit",1][1,"signal 9",null][2,"exit",1]'
is "killed at the 4th call: three whole calls of rank 1" "$(q killed '[events[] | select(.rank == 1)]
	| [of("Coll", "ProxyOp", "ProxyStep") | length] | tojson')" "[3,12,96]"
is "killed at the 4th call: the others began what they say they began" \
	"$(q killed '[events | map(select(.rank != 1)) | of("Coll") | group_by(.rank)[] | length] | tojson')" \
	"$(said killed '[.rank[] | select(.rank != 1) | .comms[0].colls]')"

record aborted -- "$job" --ranks 3 --bytes 1M --iters 6 --json --fault abort:rank=1:after=4
is "abort at the 4th call: the job's exit status" "$rc" 1
t "abort at the 4th call: clean" clean aborted
t "abort at the 4th call: nothing lost" lossless aborted
is "abort at the 4th call: how the processes end" "$(footers aborted)" '[0,"exit",1][1,"exit",1][2,"exit",1]'
is "abort at the 4th call: operations as the job counts" \
	"$(q aborted '[events | group_by(.rank)[] | [of("Coll", "ProxyOp") | length]] | tojson')" \
	"$(said aborted '[.rank[].comms[0] | [.colls, .proxyOps]]')"

# exit(3) without ncclCommDestroy, with operations not yet stopped: several times, for it is a race. A
# peer that is still at it may see that as a failure of the job.
nodestroy() {
	local i
	for i in 1 2 3 4 5 6; do
		record "nd$i" -- "$job" --ranks 3 --bytes 1M --iters 4 --json --no-destroy
		"$scope" check --strict "$tmp/nd$i"/*.jsonl && lossless "nd$i" && joined "nd$i" || return 1
		same "$(find "$tmp/nd$i" -name '*.jsonl' | wc -l)" 3 files || return 1
		[ "$(said "nd$i" .ok)" = false ] || good "nd$i" || return 1
		same "$(footers "nd$i" | sed 's/,[01]]/]/g')" '[0,"exit"][1,"exit"][2,"exit"]' ends || return 1
	done
}
t "exit without destroy: everything is there, in one file each" nodestroy

# SIGKILL and the like from outside, at full speed. What the peer has received whole was sent: the sender's
# trace must have the start of that step. The ring has room for seconds of this: what is asked is whether a
# death loses anything, not how long the recorder may be kept from a CPU.
for sig in KILL TERM SEGV; do
	name=shot$sig
	record_bg "$name" --ring 512M
	job_bg "$name-job" --ranks 2 --bytes 256K --iters 1000000 --no-check
	until_true 10 children_ready "$starter" 2
	sleep 0.2
	pgrep -P "$starter" | tail -n 1 | xargs kill -$sig
	wait "$starter"
	sleep 0.3
	stop_recorder INT
	t "SIG$sig at full speed: clean" clean "$name"
	t "SIG$sig at full speed: nothing lost" lossless "$name"
	is "SIG$sig at full speed: said in its footer" \
		"$(q "$name" '[records("footer")[].end | select(startswith("signal"))] | tojson')" "[\"signal $(kill -l $sig)\"]"
	for f in "$tmp/$name"/*.jsonl; do
		jq -sc '(.[-1].end | startswith("signal")) as $dead | map(select(.type == "ncclProfileProxyStep"))
			| {dead: $dead, sent: map(select(.details.isSend)) | length,
			received: map(select((.details.isSend | not) and .stop != null)) | length}' "$f"
	done | jq -sc '(map(select(.dead))[0].sent) as $sent | (map(select(.dead | not))[0].received) as $received
		| {sent: $sent, received: $received}' >"$tmp/shot"
	t "SIG$sig at full speed: all that arrived was seen leaving ($(cat "$tmp/shot"))" \
		jq -e '.received > 200 and .sent >= .received and .sent <= .received + 32' "$tmp/shot"
	rm -rf "${tmp:?}/$name"
done

finish
