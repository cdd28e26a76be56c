# SPDX-License-Identifier: BSD-2-Clause
# What the network's tests ask of a trace: `.` is the array of all its records, $truth that of the stand-in's
# lines of --flows.

include "trace";

# The other end's name of a flow.
def turned: split(">") | reverse | join(">");
# A step's or a socket's connection.
def conn: "\(.pid)/\(.comm)/\(.channel)/\(.peer)/\(.isSend)/\(.kind)";
def place: "\(.netns)/\(.flow)";
# Something that is near a number, by a share of it or by so much.
def near($a; $b; $share; $least): $a != null and ($a - $b | fabs) <= ([$share * $b, $least] | max);

# Operations of the proxy, each with the connection that it was for. That of a PXN operation is the parent's, in
# the file of another process; a parent from before the recording was a Coll.
def ops:
	(events | [of("Coll"), of("P2p") | .[]] | map({key: key, value: {comm: .commHash,
		kind: (if .type == "ncclProfileColl" then "coll" else "p2p" end)}}) | from_entries) as $parents
	| events | of("ProxyOp") | map($parents["\(.originPid // .myPid)/\(.parentObj)"] as $parent | {
		key: key, pid: .myPid, rank, comm: ($parent.comm // .commHash), channel: .details.channel, peer: .details.peer,
		isSend: .details.isSend, kind: ($parent.kind // "coll"), start: .start.ts, duration, net});
# And the steps of these.
def steps:
	INDEX(ops[]; .key) as $ops | events | of("ProxyStep")
	| map($ops["\(.myPid)/\(.parentObj)"] + {start: .start.ts, duration, net, tid: .start.tid, at: .details.step, bytes: .details.transSize});

# How many steps have the flow of their connection's socket, another, or none.
def attribution($truth):
	($truth | group_by(conn) | map({key: (.[0] | conn), value: map(.flow)}) | from_entries) as $flows
	| [steps[] | . as $s | if .net.flow == null then "none" elif ($flows[conn] // [] | index($s.net.flow)) != null then "right" else "wrong" end]
	| group_by(.) | map({key: .[0], value: length}) | from_entries;

# The last record of each flow, by place. A name that comes again is another flow.
def flow_ends: records("flow") | group_by(place) | map({key: (.[0] | place), value: .[-1]}) | from_entries;
# Sockets of connections with their flow's last record as .seen.
def sockets($truth): flow_ends as $ends | $truth | map(.seen = $ends[place]);
# Those that are not what the filter asks.
def but(filter): map(select(filter | not));
# The socket by which a rank sends its data to another.
def sends($src; $dst): map(select(.src == $src and .dst == $dst and .isSend));
def share($what; $of): if $of > 0 then $what / $of else 0 end;
def sum(f): map(f // 0) | add // 0;
