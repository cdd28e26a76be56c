#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Counters of RDMA ports and of network devices, in node records and with events. The ports are files, which the test
# moves by known amounts between times of rest; the devices are a veth in a network namespace, where packets are
# dropped, one by one.
. "$(dirname "$0")/lib.sh"
command -v ip >/dev/null || skip_all "needs ip"

# ---- What there is to be seen

# fake0 has two ports, one of them with nothing but `counters`; nobody has fake1 open.
root=$tmp/root
port=$root/sys/class/infiniband/fake0/ports/1
wait_file=$root/sys/class/infiniband/fake0/ports/2/counters/port_xmit_wait
other=$root/sys/class/infiniband/fake1/ports/1/counters/port_xmit_data
mkdir -p "$root/dev/infiniband" "$port"/{counters,hw_counters} "${wait_file%/*}" "${other%/*}"
for i in 0 1; do
	mkdir -p "$root/sys/class/infiniband_verbs/uverbs$i"
	echo "fake$i" >"$root/sys/class/infiniband_verbs/uverbs$i/ibdev"
	: >"$root/dev/infiniband/uverbs$i"
done
echo 5 >"$port/counters/port_rcv_errors" # stays
echo "N/A (no PMA)" >"$port/counters/symbol_error"
echo 12 >"$port/hw_counters/lifespan"
steps=60

# put NUMBER FILE: in one write, of one width, so that nobody reads a file without it, as in sysfs.
put() {
	printf '%020d\n' "$1" 1<>"$2"
}
# write_counters STEP: out_of_sequence has 32 bits and comes round on its way; np_cnp_sent moves once, by one. Names of irdma are words.
write_counters() {
	put $((70000000000 + 1000 * $1)) "$port/counters/port_xmit_data"
	put $(((0xfffffff0 + $1) & 0xffffffff)) "$port/hw_counters/out_of_sequence"
	put $((7 + ($1 > steps / 2))) "$port/hw_counters/np_cnp_sent"
	put $((2 * $1)) "$port/hw_counters/RNR received"
	put $((3 * $1)) "$wait_file"
	put $((5 * $1)) "$other"
}
write_counters 0
moved='[{"device":"fake0","port":1,"counters":{"RNR received":'$((2 * steps))',"np_cnp_sent":1,"out_of_sequence":'$steps',"port_xmit_data":'${steps}000'}},'
moved+='{"device":"fake0","port":2,"counters":{"port_xmit_wait":'$((3 * steps))'}}]'

# Says of each step when it began and when it was over.
move() {
	local step begin
	for ((step = 1; step <= steps; step++)); do
		begin=$EPOCHREALTIME
		write_counters $step
		echo "[$begin,$EPOCHREALTIME]"
		sleep 0.02
	done >"$tmp/journal"
}

# What is too long for v1 is dropped by v0, and by v1 as well.
drops=20
namespace() {
	unshare -n sleep 600 &
	holder=$!
	until_true 10 eval '[ "$(readlink /proc/$holder/ns/net)" != "$(readlink /proc/$$/ns/net)" ]' &&
		inside ip link set lo up &&
		inside ip link add v0 type veth peer name v1 mtu 600 &&
		inside ip addr add 10.9.0.1/24 dev v0 &&
		inside ip link set v0 up &&
		inside ip link set v1 up &&
		inside ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:01 dev v0
}
inside() {
	nsenter -t "$holder" -n "$@"
}
drop() {
	inside bash -c 'for ((i = 0; i < '$drops'; i++)); do printf %1000d 0 >/dev/udp/10.9.0.2/9; done'
}

# ---- Waiting for node records

nodes_of() { # FILE
	grep -c '"recordType":"node"' "$1"
}
# have_nodes NAME FILES N: so many files, with N node records each, or more.
have_nodes() {
	local file n=0
	for file in "$tmp/$1"/*.jsonl; do
		[ "$(nodes_of "$file")" -ge "$3" ] || return 1
		n=$((n + 1))
	done
	[ $n = "$2" ]
}
# rest NAME FILES: until each has two more than any has by now; the next one may have been made, and not be written yet. Between two
# of them counters were read, and what was read before the first is in it.
rest() {
	local file n most=0
	for file in "$tmp/$1"/*.jsonl; do
		n=$(nodes_of "$file")
		[ "$n" -le $most ] || most=$n
	done
	until_true 30 have_nodes "$1" "$2" $((most + 3))
}
# reads_ports NAME FILES: so many processes have a node record that says that nothing moved.
reads_ports() {
	[ "$(grep -ls '"rdma":\[\]' "$tmp/$1"/*.jsonl | wc -l)" = "$2" ]
}

kill_jobs() {
	kill -KILL "$@"
	wait "$@"
} 2>/dev/null

# ---- Two jobs at the same time: one has a device open, the other is in the namespace

opts=(--ranks 2 --channels 1 --bytes 256K --iters 1000000 --no-check --fault slow-progress:us=20000)
t "a namespace with a veth" namespace
record_bg both --rdma-root "$root" --raw "$tmp/both.raw"
job_bg opened "${opts[@]}" 7<"$root/dev/infiniband/uverbs0"
opened=$starter
NCCL_PROFILER_PLUGIN=$plugin nsenter -t "$holder" -n "$job" "${opts[@]}" >"$tmp/within.out" 2>&1 &
within=$!
t "four processes are recorded, two with ports" eval 'until_true 30 have_nodes both 4 1 && until_true 30 reads_ports both 2'
t "they rest" rest both 4
move
t "packets are dropped" drop
t "they rest again" rest both 4
files_of() {
	local pid
	for pid in $(pgrep -P "$1"); do
		echo "$tmp/both"/*_pid"$pid".jsonl
	done
}
mapfile -t of_opened < <(files_of "$opened")
mapfile -t of_within < <(files_of "$within")
stop_recorder INT
kill_jobs "$opened" "$within"
is "the recorder ended well" $rc 0
t "clean" clean both
t "the same bytes from a capture" eval '"$scope" convert -q "$tmp/both.raw" -o "$tmp/both.conv" && diff -rq "$tmp/both" "$tmp/both.conv"'

# Each process by itself: node records do not say whose they are.
mkdir "$tmp"/{one,two,within}
mv "${of_opened[0]}" "$tmp/one" && mv "${of_opened[1]}" "$tmp/two" && mv "${of_within[@]}" "$tmp/within"
is "nobody else is recorded" "$(find "$tmp/both" -name '*.jsonl' | wc -l)" 0

# ---- Node records

defs='def sums(of): map(of // [] | .[]) | group_by([.device // .name, .port])
	| map(.[0] + {counters: (map(.counters // {} | to_entries[]) | group_by(.key) | map({key: .[0].key, value: (map(.value) | add)}) | from_entries)});
def times: records("node") | map(.ts);'
for name in one two; do
	is "$name: node records have what the ports moved, once" "$(q $name "$defs"'records("node") | sums(.rdma) | tojson')" "$moved"
done
t "and as it came, not at once" holds one 'records("node") | map(select(.rdma | length > 0)) | length > 1'
is "of a device that is not open: nothing" "$(q within 'records("node") | map(select(has("rdma"))) | length')" 0

# Exported they are the node's: one process tells of them, and what rests is 0.
mkdir "$tmp/pair" && cp "$tmp"/{one,two}/*.jsonl "$tmp/pair"
"$scope" export -q --to chrome -o "$tmp/pair.json" "$tmp/pair"
is "exported: processes, what was lost, whether some was sent, and at the end" "$(jq -c '[.traceEvents[] | select(.ph == "C" and (.name | startswith("RDMA fake0:1 ")))]
	| map(select(.name | endswith(" sent")).args["B/s"]) as $sent
	| [(map(.pid) | unique | length), (map(select(.name | endswith(" lost")).args.events) | add), ($sent | max > 0), $sent[-1] + 0]' "$tmp/pair.json")" "[1,$((3 * steps)),true,0]"

dropped() {
	q within "[records(\"node\")[].netdev[] | select(.name == \"$1\").$2 // 0] | add // 0"
}
is "a veth's drops: of both processes in the namespace" "$(dropped v0 txDropped)" $((2 * drops))
t "and at its other end" [ "$(dropped v1 rxDropped)" -ge $((2 * drops)) ]
t "only what has moved" holds within '[records("node")[].netdev[] | to_entries[] | select(.key != "name").value] | all(. > 0)'
is "not of another namespace" "$(q one 'records("node") | [all(has("netdev")), any(.[].netdev[]; .name == "v0")] | tojson')" "[true,false]"
t "softnet, of all CPUs" holds one 'records("node") | all(.softnet | .processed >= 0 and .dropped >= 0 and .timeSqueeze >= 0 and .flowLimit >= 0)
	and (map(.softnet.processed) | add) > 100'
t "NET_RX, of the CPUs that the process ran on" holds within 'records("node") | (map(.interval as $i | .cpus[] | .netRx <= $i + 1000) | all and length > 0)
	and (map(.cpus[].netRx) | add) > 0'

# ---- Events

# An event has what moved within it at least; one that rest lies around has nothing. Times of the journal are of
# the wall clock.
q one "$defs"'(records("header")[0].clock.realtimeOffset) as $offset | ($journal | map(map(. * 1e6 - $offset))) as $steps
	| (times | map(select(. < $steps[0][0]))[-2]) as $quiet | (times | map(select(. > $steps[-1][1]))[1]) as $again
	| (events | of("Coll") + of("ProxyOp") | map(. + {end: ([.stop.ts, .exec.stop] | max), moved: ([.net.rdma[]? | .counters.port_xmit_data // 0] | add // 0)})
		| map(select(.stop and (.type == "ncclProfileProxyOp" or .exec)))) as $events | {
	amid: ($events | map(. as $e | . + {sure: ([$steps[] | select(.[0] > $e.start.ts + 1000 and .[1] < $e.end - 1000)] | length * 1000)}) | map(select(.sure > 0))
		| [(map(.type) | unique), map(select(.moved < .sure)) == []]),
	most: ($events | map(.moved) | max),
	quiet: ($events | map(select(.end < $quiet or .start.ts > $again)) | [length > 0, map(select(.net.rdma)) == []]),
	what: ([$events[].net.rdma[]? | .device + "/\(.port)/" + (.counters | keys[])] | unique)} | tojson' \
	--slurpfile journal "$tmp/journal" >"$tmp/facts"
is "Colls and ProxyOps have what moved while they lasted" "$(fact amid)" '[["ncclProfileColl","ncclProfileProxyOp"],true]'
t "and not more than there was" [ "$(fact most)" -le ${steps}000 ]
is "where nothing moved around them they have nothing" "$(fact quiet)" '[true,true]'
is "of counters that moved, and can be read" "$(fact what)" \
	'["fake0/1/RNR received","fake0/1/np_cnp_sent","fake0/1/out_of_sequence","fake0/1/port_xmit_data","fake0/2/port_xmit_wait"]'
is "events of a process without a device" "$(q within 'events | map(select(.net.rdma)) | length')" 0
is "steps do not have it" "$(q one 'events | of("ProxyStep") | map(select(.net.rdma)) | length')" 0

# ---- The options

few=(--ranks 2 --bytes 64K --iters 2 --linger-ms 60000)
short() { # NAME OPTION...
	record_bg "$@"
	job_bg "$1" "${few[@]}" 7<"$root/dev/infiniband/uverbs0"
	until_true 30 have_nodes "$1" 2 1
	local came=$?
	stop_recorder INT
	kill_jobs "$starter"
	cat "$tmp/$1.err"
	same $came 0 "node records have come" && clean "$1"
}
keys() {
	q "$1" 'records("node") | [(.[], .[].cpus[]?) | keys[] | select(. as $k | $words | index($k))] | unique | tojson' --argjson words "$2"
}
t "--net=off: recorded" short off --net=off --rdma-root "$root"
is "--net=off: node records" "$(keys off '["cpus","busy","netdev","softnet","rdma","netRx"]')" '["busy","cpus"]'
is "--net=off: events" "$(q off 'events | map(select(.net)) | length')" 0
t "--sched=off: recorded" short nosched --sched=off --rdma-root "$root"
is "--sched=off: node records" "$(keys nosched '["cpus","psi","procsRunning","netdev","softnet","rdma"]')" '["netdev","rdma","softnet"]'

refused() { # STATUS TEXT OPTION...
	record refused "${@:3}" -- true
	same "$rc" "$1" "exit status" && grep -qF "$2" "$tmp/refused.err" && [ ! -e "$tmp/refused" ]
}
t "--net=none is told what there is" refused 2 "'none' is none of off, events, flows" --net=none
t "--net wants a word" refused 2 "'' is none of off, events, flows" --net=
t "--rdma-root that is not there" refused 1 "Failed to open '$tmp/nowhere' for RDMA counters: No such file or directory" --rdma-root "$tmp/nowhere"

finish
