#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What tests/vm/run.sh runs inside each kernel; runs as well on the machine itself, as root: does the product
# work on this kernel, and what is in the trace of a thread that dies with records in its buffer?
#
# docs/kernels.md has the answers as a table; a kernel that does better or worse than it says is a failure.
E2E_TIMEOUT=${E2E_TIMEOUT:-600} RECORD_TIMEOUT=180
. "$(dirname "$0")/../e2e/lib.sh"
dying=$build/tests/vm/dying

# On arm64 BPF attaches to functions since 6.4.
functions=true
case $(uname -m)-$(uname -r) in
aarch64-5.* | aarch64-6.[0-3].*) functions=false ;;
esac

# ---- The product

"$scope" doctor --plugin "$plugin" >"$tmp/doctor" 2>&1
rc=$?
sed 's/^/| /' "$tmp/doctor"
is "doctor: all that is needed works" $rc 0

record job -- "$job" --ranks 2 --channels 2 --bytes 4M --iters 2 --op allreduce --json
is "record a job: its exit status" "$rc" 0
is "record a job: its results are right" "$(said job .ok)" true
t "record a job: check finds nothing" clean job
t "record a job: nothing is lost" lossless job
t "record a job: counts are the job's own" counted job
t "record a job: parents are there" joined job

t "record a job: what the scheduler did is known, of every step" holds job 'events | of("ProxyStep") | all(.sched) and unknown_share < 0.05'
t "record a job: the flow of every step is known" holds job 'events | of("ProxyStep") | length > 0 and all(.net.flow)'
is "record a job: a step's bytes are NCCL's, and the size ahead of them (of all but one in 50)" "$(q job 'events | of("ProxyStep")
	| length as $n | map(select(.net.txBytes + .net.rxBytes != .details.transSize + 8)) | if length <= $n / 50 then [] else map({rank, details, net}) end')" '[]'

record waits -- "$job" --ranks 2 --channels 1 --bytes 256K --iters 4 --op allreduce --no-check --json --fault slow-progress:rank=1:us=5000
is "a peer that is late: the job's exit status" "$rc" 0
t "a peer that is late: how long a receiver had no data, where that is told, and a sender no room, is known of every step" holds waits "$functions"' as $told
	| events | of("ProxyStep") | (length > 0 and all(if .details.isSend then .net | has("noRoom") and (has("noData") | not)
		else .net | has("noData") == $told and (has("noRoom") | not) end))'
is "a peer that is late: the trace says whether that is told" "$(jq -rn '[inputs | select(.recordType == "header") | .features.noData == true] | unique | map(tostring) | join(" ")' "$tmp"/waits/*.jsonl)" $functions
if $functions; then
	t "a peer that is late: most of a receiver's time it had no data" holds waits 'events | of("ProxyOp") | map(select(.rank == 0 and .details.isSend == false))
		| length > 0 and (map(.net.noData) | add) > 0.5 * (map(.duration) | add)'
fi

# What it has done last lies in its threads' buffers, which nobody hands in.
record_bg away
job_bg away-job --ranks 2 --channels 1 --bytes 64K --iters 6 --no-check --fault late:rank=1:every=4:ms=100000
ranks_of 2
until_true 30 eval 'grep -qs "\"seq\":2" "$tmp"/away/*.jsonl'
sleep 10
stop_recorder
kill_job
is "a rank that stays away: report names it" "$("$scope" report --json "$tmp/away" | jq -c '.verdicts[0] | [.code, .rank]')" '["missing-collective",1]'
is "a rank that stays away: where in the kernel it sleeps" \
	"$(q away '(events | of("Coll") | map(select(.rank == 1))[0].start.tid) as $tid | [.[] | select(.recordType == "thread" and .tid == $tid and .state)
		| [.why, (.stack // [] | any(test("nanosleep")))]] | unique | tojson')" "$(jq -nc --argjson named "$(q away 'records("header") | any(.features.blockedIn)')" '[[if $named then "clock_nanosleep" else "other" end, true]]')"

# The same before it is recorded: its threads sleep all the while, and hand in nothing.
STANDIN_TIMEOUT=100 job_bg still-job --ranks 2 --channels 1 --bytes 64K --iters 6 --no-check --fault late:rank=1:every=4:ms=100000
ranks_of 2
sleep 8
record still -d 8s
kill_job
t "a job that hung before: clean, lossless" eval 'clean still && lossless still'
is "a job that hung before: what its ranks are in" "$("$scope" report --json "$tmp/still" | jq -c '[.still[] | select(.rank == 1) | .asleep > 1, (.stack | test("nanosleep"))]')" '[true,true]'

# Whoever sleeps in a function of the kernel when our programs come to its return, and go again, wakes up there later.
cat >"$tmp/sleeper.pl" <<-'END'
	use IO::Socket::INET;
	my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die;
	my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $l->sockport) or die;
	my $s = $l->accept or die;
	$| = 1;
	$SIG{USR1} = sub { syswrite $s, "data" };
	if (!fork) { print "reads\n"; sysread $c, my $got, 4; print "$got\n"; exit }
	print "waits\n";
	sleep 1 until waitpid -1, 1;
END
record_bg sleeper
perl "$tmp/sleeper.pl" >"$tmp/sleeper.got" 2>&1 &
sleeper=$!
until_true 30 grep -q reads "$tmp/sleeper.got"
sleep 1
stop_recorder
"$scope" doctor --plugin "$plugin" >"$tmp/doctor-again" 2>&1
sleep 1
kill -USR1 $sleeper
t "a reader that slept when we came and went: gets its data" until_true 10 grep -q data "$tmp/sleeper.got"

# A cgroup's quota that another thread of it uses up, while the progress thread sleeps or waits for the CPU: nothing happens to that
# one itself until the quota is there again.
cgroup=/sys/fs/cgroup/scope-guest
if { echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && mkdir $cgroup && echo 20000 100000 >$cgroup/cpu.max; } 2>/dev/null; then
	cat >"$tmp/in-quota" <<-END
		#!/bin/bash
		taskset -c 0 $job --ranks 2 --rank-list 0 --id-file $tmp/id "\$@" >$tmp/quota.rest &
		echo 0 >$cgroup/cgroup.procs
		taskset -c 1 sh -c 'while :; do :; done' &
		taskset -c 1 $job --ranks 2 --rank-list 1 --id-file $tmp/id "\$@"
		rc=\$?
		kill %2
		wait %1 && exit \$rc
	END
	chmod +x "$tmp/in-quota"
	record quota -- "$tmp/in-quota" --bytes 64K --iters 6 --no-check --json --fault slow-progress:rank=1:us=1000
	is "a quota: the job's exit status" "$rc" 0
	t "a quota: it was used up" [ "$(awk '$1 == "throttled_usec" { print $2 }' $cgroup/cpu.stat)" -gt 1000000 ]
	t "a quota: most of the time without a CPU is its, of the rank that is in it" holds quota \
		'(events | of("ProxyStep") | map(select(.rank == 1))[0].start.tid) as $tid | thread_ends | map(select(.role == "proxy"))
			| (map(select(.tid == $tid)) | (map(.throttled) | add) > 0.6 * (map(.runq) | add)) and (map(select(.tid != $tid)) | all(.throttled == 0))'
	until_true 5 rmdir $cgroup
else
	skip "a quota" "no cgroup with the cpu controller can be made here"
fi

# Segments that the receiver's kernel puts together (GRO) and has read: before 6.2 it told of most of them as dropped, once they were.
cat >"$tmp/offload.pl" <<-'END'
	use Socket;
	my ($dev, %set) = @ARGV;
	socket(my $s, AF_INET, SOCK_DGRAM, 0) or die;
	while (my ($cmd, $on) = each %set) {
		my $value = pack 'LL', hex $cmd, $on;
		ioctl($s, 0x8946, my $r = pack 'a16 P x16', $dev, $value) or die "$dev $cmd: $!";
	}
END
offload() {
	ip netns exec "$1" perl "$tmp/offload.pl" "$2" 2c 1 1f 0 # GRO on, TSO off
}
two_nodes() {
	ip netns add scope-a && ip netns add scope-b && ip link add v0 netns scope-a type veth peer name v1 netns scope-b &&
		ip -n scope-a addr add 10.213.9.1/24 dev v0 && ip -n scope-b addr add 10.213.9.2/24 dev v1 &&
		ip -n scope-a link set lo up && ip -n scope-b link set lo up && ip -n scope-a link set v0 up && ip -n scope-b link set v1 up && offload scope-a v0 && offload scope-b v1
}
if two_nodes 2>"$tmp/two_nodes"; then
	record gro -- "$job" --ranks 2 --channels 1 --bytes 4M --iters 4 --op allreduce --no-check --json \
		--netns scope-a,scope-b --bind 10.213.9.1,10.213.9.2
	is "segments put together: the job's exit status" "$rc" 0
	is "segments put together: none is told as dropped" \
		"$(q gro 'records("drop") | map(.where | select(startswith("skb_release_data") or startswith("kfree_skb_list"))) | unique | tojson')" '[]'
else
	skip "segments put together" "no two network devices that are joined can be made here: $(head -n 1 "$tmp/two_nodes")"
fi
ip netns del scope-a
ip netns del scope-b

# Many threads in the flush probe at a time. On kernels that preempt they shared a stack of BPF's since 6.13, and
# the kernel panicked.
# (The guest is too slow for more: what is found here is what the kernel, not the clock, has to say.)
record crowd -v -- "$job" --ranks 6 --channels 4 --bytes 64K --iters 12 --json
is "a crowd: its exit status" "$rc" 0
t "a crowd: no record is senseless" grep -q "bad records: 0," "$tmp/crowd.err"

# Whom a thread waited for: the process that loads its data, which the kernel tells apart from interrupts in ways of its own, as it does the file.
record loader -- "$job" --ranks 2 --bytes 64K --iters 10 --period-us 50000 --no-check --json --fault late:rank=1:every=5:ms=100:loader=1
is "a loader: the job's exit status" "$rc" 0
case $(uname -r) in
5.10.*) told='[false]' who='[[null,false]]' ;; # its BTF has no variables
*) told='[true]' who='[["pt_data_worker",true]]' ;;
esac
is "a loader: whether the kernel tells who wakes a thread" "$(q loader 'records("header") | map(.features.wokenBy) | unique | tojson')" "$told"
is "a loader: who woke the thread that came late" \
	"$(q loader '[events | of("Coll")[] | select(.rank == 1 and .details.seq % 5 == 4) | [.sched.before.wokenBy[]? | select(.comm != "standin-stream")][0] | [.comm, .us > 90000]] | unique | tojson')" "$who"
named=$(q loader 'records("header") | any(.features.blockedIn)')
is "a loader: through a pipe, where the kernel tells what a thread sleeps in" \
	"$(q loader '[events | of("Coll")[] | select(.rank == 1 and .details.seq % 5 == 4) | .sched.before.files[0] | if . then [.file, .fs] else null end] | unique | tojson')" \
	"$([ "$named" = true ] && echo '[["pipe","pipefs"]]' || echo '[null]')"

# A job that runs already, and the other operations. An emulated CPU takes its time to reach it.
record_bg late
job_bg late-job --ranks 2 --op mix --bytes 1M --iters 14 --delay-ms 5000
wait "$starter"
is "record with no command: the job's exit status" $? 0
kill -INT "$recorder"
wait "$recorder"
rc=$?
cp "$tmp/late-job.out" "$tmp/late.out"
t "record with no command: status, check, loss, counts, parents" good late

# ---- Ways to die: the stand-in's

record killed -- "$job" --ranks 2 --bytes 1M --iters 6 --json --fault kill:rank=1:after=4
is "a rank is killed: the job's exit status" "$rc" 1
t "a rank is killed: check finds nothing" clean killed
t "a rank is killed: nothing is lost" lossless killed
is "a rank is killed: its three whole calls are there" \
	"$(q killed '[events[] | select(.rank == 1)] | [of("Coll") | length] == [3] and (of("ProxyOp") | length) >= 12')" true
is "a rank is killed: by whom" "$(q killed 'records("signal")[] | [.signal, .code, .from.comm, .handled] | tojson')" '["SIGKILL",-6,"scope-job",null]'

record left -- "$job" --ranks 2 --bytes 1M --iters 4 --json --no-destroy
t "exit without ncclCommDestroy: status, check, loss, counts, parents" good left

# ---- Ways to die: one by one

for way in $("$dying" --ways); do
	all=20
	$functions || case $way in _exit | exec) all=1 ;; esac
	record "$way" -- "$dying" "$plugin" "$way"
	is "$way: records that nobody has handed in" "$(sed -n 's/^buffered //p' "$tmp/$way.out")" 38
	t "$way: check finds nothing" clean "$way"
	is "$way: all events" "$(q "$way" '[events | of("ProxyCtrl")[] | select(.unfinished | not)] | length')" $all
done

finish
