#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Several ranks, threads and communicators in a process: a file for each process, every event with the
# communicator, rank and thread that it belongs to.
. "$(dirname "$0")/lib.sh"

# every WHAT PROCESSES COMMS OPTION...: COMMS: ranks of each communicator that shows, by process.
every() {
	local what=$1 procs=$2
	name=run$((n = ${n:-0} + 1))
	shift 2
	record "$name" -- "$job" --bytes 256K --check --json "$@"
	t "$what: right, clean, lossless, counted, joined" eval "same \"\$(said $name .ok)\" true && good $name"
	is "$what: files" "$(find "$tmp/$name" -name '*.jsonl' | wc -l)" "$procs"
	is "$what: a process in each" "$(for f in "$tmp/$name"/*.jsonl; do
		jq -s '[.[] | .myPid // empty] | unique | length' "$f"
	done | sort -u)" 1
	# Of each communicator and rank: Colls and P2ps, by the trace and by the job. Hashes without leading zeros.
	is "$what: operations of each communicator and rank" \
		"$(q "$name" '[events | of("Coll", "P2p")[] | [.commHash, .rank]] | group_by(.) | map([.[0][0], length]) | sort | tojson')" \
		"$(said "$name" '[.rank[].comms[] | [(.commHash | sub("^0x0*"; "0x")), .colls + .p2ps] | select(.[1] > 0)] | sort')"
	is "$what: communicators made and ended" \
		"$(q "$name" '[lifecycle("ProfilerInit", "ProfilerFinalize")] | map(length) | tojson')" \
		"$(said "$name" '[.rank[].comms[]] | [length, length]')"
	t "$what: a child has the communicator, rank and context of its parent" holds "$name" 'events | index_by_id as $all
		| map(select(.parentObj != "null") | $all["\(.myPid)/\(.parentObj)"] as $p
		| select($p.type != "ncclProfileGroupApi") # one may span communicators
		| select($p.commHash != .commHash or $p.rank != .rank or $p.ctx != .ctx)) == []'
}
# Ranks of each process as the trace has them.
ranks() {
	q "$name" '[lifecycle("ProfilerInit") | group_by(.myPid)[] | map([.commHash, .rank]) | group_by(.[0])
		| map(map(.[1]) | sort) | sort] | sort | tojson'
}

every "InitAll" 1 --ranks 4 --init-all --op mix --iters 7
is "InitAll: ranks" "$(ranks)" "[[[0,1,2,3]]]"
every "threads" 2 --ranks 4 --threads 2 --op mix --iters 7
is "threads: ranks" "$(ranks)" "[[[0,1]],[[2,3]]]"
every "split" 4 --ranks 4 --split 2 --iters 4
is "split: ranks in both communicators" "$(ranks)" "[[[0],[0]],[[0],[1]],[[1],[2]],[[1],[3]]]"
every "split, shared progress thread" 4 --ranks 4 --split 2 --split-share --iters 4
is "split, shared progress thread: ranks in both communicators" "$(ranks)" "[[[0],[0]],[[0],[1]],[[1],[2]],[[1],[3]]]"
every "split of 3 into 3" 3 --ranks 3 --split 3 --iters 2
every "threads and split" 2 --ranks 4 --threads 2 --split 2 --op mix --iters 7
is "threads and split: ranks" "$(ranks)" "[[[0],[0],[0,1]],[[1],[1],[2,3]]]"
every "groups" 2 --ranks 2 --groups 8 --iters 4
every "send and receive in groups" 3 --ranks 3 --op sendrecv --iters 4 --groups 3
every "alltoall" 3 --ranks 3 --op alltoall --iters 4
every "helper threads of sockets" 2 --ranks 2 --socket-threads 2 --net-profiler --iters 3

# Who made what: each rank calls from its own thread, proxies have theirs.
record who -- "$job" --ranks 3 --init-all --bytes 256K --iters 3 --json
facts who '. as $all | events as $e | {
	api: ($e | of("CollApi") | group_by(.rank) | map(map(.start.tid) | unique | length)),
	apis: ($e | of("CollApi") | map(.start.tid) | unique | length),
	proxy: ($e | of("ProxyStep") | group_by(.rank) | map(map(.start.tid, .stop.tid) | unique | length)),
	proxies: ($e | of("ProxyStep") | map(.start.tid) | unique | length),
	roles: ($all | records("thread") | map(select(has("stop") | not)) | group_by(.role) | map({(.[0].role): length}) | add),
	ended: ($all | records("thread") | map(select(.stop)) | length),
	tids: (($e | map(.start.tid) | unique) == ($all | records("thread") | map(.tid) | unique))}'
is "threads: one that calls for each rank" "$(fact api) $(fact apis)" "[1,1,1] 3"
is "threads: one that runs the proxy of each rank" "$(fact proxy) $(fact proxies)" "[1,1,1] 3"
is "threads: roles" "$(fact roles)" '{"app":3,"proxy":3}'
is "threads: all have ended" "$(fact ended)" 6
is "threads: those of the events" "$(fact tids)" true

finish
