#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `ncclscope merge` of a job whose ranks were on several nodes. Here they are in network namespaces of one machine, so that it is known
# what two recorders of two machines do not know: traces are made those of nodes with other clocks (other_node.py), and what a
# recorder knows of processes of its own node only is taken out. What is found is held against what was.
. "$(dirname "$0")/net_lib.sh"
command -v python3 >/dev/null || skip_all "needs python3"

# as_node TRACE HOST AHEAD REAL [DRIFT]: on standard output.
as_node() {
	python3 "$top/tests/unit/other_node.py" "$top/docs/trace.schema.json" "${@:2}" <"$1" |
		sed -E '/^\{"recordType":"(flow|event)"/{s/,"(peerPid|peerRank)":[0-9]+//g; s/,"peer":\{[^}]*\}//g}'
}
# of_rank NAME RANK: the trace of that rank's process.
of_rank() {
	grep -lE "\"type\":\"ProfilerLifecycle\".*\"rank\":$2," "$tmp/$1"/trace_*.jsonl
}

# on_nodes NAME OF: rank R becomes one of node n\$((R % OF)), each with clocks of its own, in $tmp/NAME.nodes/. ahead[] is what is true.
ahead=(123456789.123 50000000.001 987654321.777 1.500)
wrong=(0.000 7300.000 -450.000 123456.000)
on_nodes() {
	local name=$1 of=$2 r n
	rm -rf "$tmp/$name.nodes"
	for ((r = 0; r < 4; r++)); do
		n=$((r % of))
		mkdir -p "$tmp/$name.nodes/n$n"
		as_node "$(of_rank "$name" $r)" "n$n" "${ahead[n]}" "${wrong[n]}" "${3:-0}" >"$tmp/$name.nodes/n$n/trace_1_pid$r.jsonl" || return 1
	done
}

# clocks_are NAME OF MAX: of each node what is to be added is known to MAX us, and it is within the error that it says.
clocks_are() {
	local name=$1 of=$2 max=$3
	"$scope" merge --clocks --json "$tmp/$name.nodes"/n* >"$tmp/clocks" || return 1
	jq -e --argjson of "$of" --argjson max "$max" --argjson ahead "$(printf '%s\n' "${ahead[@]:0:of}" | jq -sc .)" '
		($ahead | max) as $ref | (.nodes | length) == $of and
		all(.nodes[]; (.host | ltrimstr("n") | tonumber) as $n | ($ref - $ahead[$n]) as $true |
			if .by == "reference" then $true == 0
			else .by == "messages" and .error <= $max and (.shift - $true | fabs) <= .error end)' "$tmp/clocks" || { cat "$tmp/clocks"; false; }
}

net_args job
record job --net=flows -- "$job" "${args[@]}" --ranks 4 --op allreduce --bytes 256K --iters 60 --channels 2 --fault late:rank=1:every=6:ms=40
is "recorded" "$rc" 0
on_nodes job 2
t "two nodes: clocks" clocks_are job 2 3000
jq -r --argjson true "$(jq -n "${ahead[0]} - ${ahead[1]}")" '.nodes[] | select(.host == "n1")
	| "# found to \(.shift - $true | fabs * 10 | round / 10) us, says \(.error) us"' "$tmp/clocks"

merge() {
	"$scope" merge -o "$tmp/$1.jsonl" "$tmp/$1.nodes"/n* 2>"$tmp/$1.merge" && same "$(wc -l <"$tmp/$1.jsonl")" "$(cat "$tmp/$1.nodes"/n*/* | wc -l)" "lines"
}
t "two nodes: merged" merge job
clean_merged() {
	"$scope" check "$tmp/$1.jsonl" >"$tmp/say2" 2>&1 && grep -q ' 0 errors, 0 warnings' "$tmp/say2" || { cat "$tmp/say2"; false; }
}
t "two nodes: check" clean_merged job

# What is said of messages holds of all of them: nothing arrives before it was sent.
in_order() {
	jq -c '(select(.recordType == "state" and (.name == "ProxyStepSendWait" or .name == "ProxyStepRecvFlushWait")) | [.eventAddr, .ts]),
		(select(.type == "ncclProfileProxyStep") | [.eventAddr, .parentObj, .details.step, .rank, .details.peer, .details.isSend, .details.channel]),
		(select(.type == "ncclProfileProxyOp") | [.eventAddr, .parentObj]), (select(.type == "ncclProfileColl") | [.eventAddr, .details.seq, .func])' "$tmp/job.jsonl" >"$tmp/steps"
	python3 - "$tmp/steps" <<'EOF'
import json, sys
moved, up, seq, steps, sent, got = {}, {}, {}, [], {}, {}
for line in open(sys.argv[1]):
    v = json.loads(line)
    if len(v) == 7:
        steps.append(v)
    elif len(v) == 3:
        seq[v[0]] = v[1]
    elif isinstance(v[1], str):
        up[v[0]] = v[1]
    else:
        moved[v[0]] = v[1]
for addr, op, step, rank, peer, is_send, channel in steps:
    key = (seq[up[op]], channel, step) + ((rank, peer) if is_send else (peer, rank))
    (sent if is_send else got)[key] = moved[addr]
pairs = [(got[k] - sent[k], k) for k in sent if k in got]
print(len(pairs), 'messages, the fastest', min(pairs))
sys.exit(len(pairs) < 1000 or min(pairs)[0] < 0)
EOF
}
t "two nodes: no message arrives before it was sent" in_order

# The recorder of one machine knows both ends; merge has to find the same.
ends_of() {
	jq -c 'select(.recordType == "flow" and .end and .channel != null) | [.flow, .netns, .peerPid, .peerRank]' "$@" | sort
}
ends() {
	local n
	n=$(ends_of "$tmp"/job/trace_*.jsonl | wc -l)
	[ "$n" -ge 16 ] || { echo "$n ends of data connections"; return 1; }
	diff <(ends_of "$tmp"/job/trace_*.jsonl) <(ends_of "$tmp/job.jsonl") &&
		same "$(jq -c 'select(.recordType == "flow" and .end and .channel != null) | [.rank % 2, .peerHost]' "$tmp/job.jsonl" | sort -u | tr -d '\n')" '[0,"n1"][1,"n0"]' &&
		grep -qE 'connections? (has its|have their) other end' "$tmp/job.merge"
}
t "two nodes: who is at the other end of connections" ends

# In a ring of four nodes nothing comes back but all around.
on_nodes job 4
t "four nodes: clocks" clocks_are job 4 6000

# Each rank is by itself on its node.
report() {
	"$scope" report --json "$@" | jq -c '[.verdicts[] | select(.code == "late-rank")][0] | [.rank, .host, .evidence[0]]'
}
late() {
	merge job || return 1
	[[ $(report "$tmp/job.jsonl") =~ ^\[1,\"n1\",\"came\ (3[0-9]|4[0-9])\.[0-9]\ ms\ after\ its\ peers,\ by\ the\ clock\ that\ their\ nodes\ were\ merged\ into\"\]$ ]] || { report "$tmp/job.jsonl"; false; }
}
t "four nodes: who came late, by that clock" late
hint() {
	"$scope" report "$tmp"/job.nodes/n* | tr '\n' ' ' | grep -q 'The nodes have 4 clocks: .* send again is not known. .ncclscope merge' && ! "$scope" report "$tmp/job.jsonl" | grep -q 'The nodes have'
}
t "four nodes: what makes one clock of theirs is said" hint

# Segments are lost between the nodes, and the last ones of an operation are noticed only by TCP's timer, when the sender's part is over:
# the next operation comes later than that.
drop_at "$ns_b" ip saddr "${ip_of[2]}" ip daddr "${ip_of[3]}" "tcp flags & syn == 0" meta length ">" 52 numgen random mod 100 "<" 10
for _ in 1 2 3; do # such tails are left to chance
	net_record tails --ranks 4 --op allreduce --bytes 4K --channels 1 --iters 40 --sleep-us 250000
	cat "$tmp"/tails/*.jsonl | jq -c 'select(.type == "ncclProfileColl" and .exec.duration > 150000) | .details.seq' | grep -q . && break
done
as_by_switch tails
on_nodes tails 2
merged_tails() {
	merge tails && clean_merged tails
}
t "lost tails: merged, check" merged_tails
# The recorder of one machine knows of the other end as well: to the microsecond, which resent is not.
again_meanwhile() {
	jq -c 'select((.type == "ncclProfileProxyStep" or .type == "ncclProfileProxyOp") and .net.peer) | [.eventAddr, .myPid, .net.peer.pid, .net.peer.rank, .net.peer.retrans]' "$@" | sort
}
as_one_machine() {
	again_meanwhile "$tmp"/tails/trace_*.jsonl >"$tmp/one"
	again_meanwhile "$tmp/tails.jsonl" >"$tmp/two"
	jq -ce --slurpfile one "$tmp/one" --slurpfile two "$tmp/two" -n '($two | map({key: "\(.[:2])", value: .}) | from_entries) as $by
		| [$one[] | [., $by["\(.[:2])"]]] as $both | {n: ($one | length), none: ($both | map(select(.[1] | not)) | length),
		others: ($both | map(select(.[1] and .[0][:4] != .[1][:4])) | length), differ: ($both | map(select(.[1] and .[0][4] != .[1][4])) | length),
		sums: [($one | map(.[4]) | add), ($two | map(.[4]) | add)]}
		| ., (.n > 1000 and .none < 12 and .others == 0 and .differ < .n / 10 and .sums[0] > 50 and (.sums[1] / .sums[0] - 1 | fabs) < 0.1)'
}
t "lost tails: steps know what the other node sent again" as_one_machine
tails() {
	"$scope" report --json "$tmp/tails.jsonl" >"$tmp/tails.report"
	jq -e --arg flow "^${ip_of[2]}:[0-9]+>${ip_of[3]}:" '(.verdicts[0] | .code == "net-loss" and .rank == 2 and .host == "n0" and (.culprit | test($flow)))
		and ([.slow[] | select(.duration > 150000 and .seq > 1)] | length > 0 and all(.code != "unknown" and .code != "late-rank") and
			(map(select(.code == "net-loss" and .rank == 2)) | length) > length * 0.7)' "$tmp/tails.report" ||
		{ jq -c '.verdicts[], .slow[]' "$tmp/tails.report"; false; }
}
t "lost tails: why operations took so long" tails

# 80 ppm, which is more than most crystals have. The error says so.
drifted() {
	local first last
	first=$(jq 'select(.type == "ncclProfileColl") | .start.ts' "$tmp"/job/trace_*.jsonl | sort -n | head -n 1)
	last=$(jq 'select(.type == "ncclProfileColl") | .start.ts' "$tmp"/job/trace_*.jsonl | sort -n | tail -n 1)
	rm -rf "$tmp/job.nodes"
	mkdir -p "$tmp"/job.nodes/n{0,1}
	as_node "$(of_rank job 0)" n0 0 0 >"$tmp/job.nodes/n0/trace_1_pid0.jsonl"
	ORIGIN=$first as_node "$(of_rank job 1)" n1 -1000 0 80 >"$tmp/job.nodes/n1/trace_1_pid1.jsonl"
	"$scope" merge --clocks --json "$tmp"/job.nodes/n* >"$tmp/clocks"
	jq -e --argjson took "$(jq -n "$last - $first")" '.nodes[] | select(.host == "n1") | .by == "messages" and
		(.shift - 1000 | fabs) <= .error and (.shift - 1000 + $took * 0.00008 | fabs) <= .error and .error > $took * 0.00004' "$tmp/clocks" || { cat "$tmp/clocks"; false; }
}
t "a clock that drifts: the error covers it" drifted

# Less is recorded: operations of the proxy, or no more than collectives.
net_args ops
record ops --mask coll,proxyop,kernelch -- "$job" "${args[@]}" --ranks 4 --op allreduce --bytes 256K --iters 40
on_nodes ops 2
t "without steps: clocks by operations" clocks_are ops 2 50000
net_args few
record few --mask coll -- "$job" "${args[@]}" --ranks 2 --op sendrecv --bytes 64K --iters 10
rm -rf "$tmp/few.nodes" && mkdir -p "$tmp"/few.nodes/n{0,1}
as_node "$(of_rank few 0)" n0 1000.000 0 >"$tmp/few.nodes/n0/trace_1_pid0.jsonl"
as_node "$(of_rank few 1)" n1 -1000.000 250 >"$tmp/few.nodes/n1/trace_1_pid1.jsonl"
nothing_known() {
	"$scope" merge -o "$tmp/few.jsonl" "$tmp"/few.nodes/n* 2>"$tmp/few.merge" && grep -q 'no messages to it and back' "$tmp/few.merge" &&
		same "$(jq -sc '[.[] | select(.recordType == "header") | .clock.merged | [.by, has("error")]]' "$tmp/few.jsonl")" '[["reference",true],["realtime",false]]'
}
t "nothing that tells of clocks: said, and by the real clocks" nothing_known

# PXN, and processes of several ranks.
record pxn -- "$job" --json --no-check --ranks 4 --pxn 2 --channels 2 --bytes 1M --iters 4
merge_pxn() {
	"$scope" merge -o "$tmp/pxn.jsonl" "$tmp/pxn" 2>"$tmp/pxn.merge" && clean_merged pxn || return 1
	same "$(jq -sc '(map(select(.type == "ncclProfileColl")) | map({key: "\(.myPid)/\(.eventAddr)", value: {commHash, rank, seq: .details.seq}}) | from_entries) as $colls
		| (map(select(.type == "ncclProfileProxyOp")) | map({key: "\(.myPid)/\(.eventAddr)", value: .}) | from_entries) as $ops
		| map(select(.isPxn)) | [length > 100, all(.origin == $colls[if .type == "ncclProfileProxyOp" then "\(.originPid)/\(.parentObj)"
			else $ops["\(.myPid)/\(.parentObj)"] | "\(.originPid)/\(.parentObj)" end])]' "$tmp/pxn.jsonl")" '[true,true]' && ! grep -q 'of .* PXN events' "$tmp/pxn.merge"
}
t "PXN: each says whose it is" merge_pxn

finish
