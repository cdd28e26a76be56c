#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A proxy thread that is kept from its work in ways that are known: the trace names the right cause, and how
# much it was by another's account. Sizes are relative, other things run on this machine too.
. "$(dirname "$0")/sched_lib.sh"

# steps_of RANK: figures of the ProxySteps of a rank as an object, for facts: sums, and who and what.
steps_of() {
	echo "(events | of(\"ProxyStep\") | map(select(.rank == $1 and .sched)) | {
		n: length, duration: (map(.duration) | add), onCpu: (map(.sched.onCpu) | add), runq: (map(.sched.runq) | add),
		blocked: (map(.sched.blocked) | add), irq: (map(.sched.irq // 0) | add), preemptions: (map(.sched.preemptions) | add),
		behind: ([.[].sched.behind // []] | if . == [] then [] else by_name(\"comm\") end),
		pids: (map(.sched.behind // [] | .[]) | group_by(.comm) | map({(.[0].comm): (map(.pid) | unique)}) | add),
		blockedIn: ([.[].sched.blockedIn // []] | if . == [] then [] else by_name(\"why\") end)})"
}
# Nearly all of a job on one CPU, where progress threads take turns politely; that of rank 2 alone on another.
polite=slow-progress:rank=0:us=100,slow-progress:rank=1:us=100
apart=pin-progress:rank=2:cpu=$two,$polite

# ratio KEY1 KEY2: of two facts.
ratio() {
	jq -r ".$1 / .$2" "$tmp/facts"
}

cgroup=

# ---- (a) A busy loop on the same CPU

# Of more weight than whatever else may run there.
taskset -c "$two" nice -n -10 "$sched_load" hog scope-hog &
hog=$!
on "$one" record hog -- "$job" --ranks 3 --bytes 512K --iters 6 --no-check --json --fault "$apart"
kill "$hog"
wait "$hog" 2>/dev/null
t "busy loop: right, clean, lossless" good hog
facts hog "$(steps_of 2) + {others: ([events[] | select(.rank != 2) | .sched.behind // [] | .[] | select(.comm == \"scope-hog\")] | length)}"
t "busy loop: it waits for more than 30% of its steps' time" above "$(ratio runq duration)" 0.3
# First, or second where others keep that CPU as busy.
t "busy loop: it is behind that" below "$(fact 'behind | map(.name) | index("scope-hog")')" 1
t "busy loop: for much of the time" above "$(jq '(.behind[] | select(.name == "scope-hog").us) / .runq' "$tmp/facts")" 0.1
is "busy loop: by its pid" "$(fact 'pids["scope-hog"]')" "[$hog]"
is "busy loop: who is on the other CPU does not blame it" "$(fact others)" 0

# ---- (b) A real-time thread on the same CPU

if chrt -f 10 true 2>/dev/null; then
	taskset -c "$two" chrt -f 10 "$sched_load" hog scope-fifo 2000 2000 >"$tmp/bursts" &
	hog=$!
	on "$one" record fifo --sched=slices -- "$job" --ranks 3 --bytes 1M --iters 30 --no-check --json --fault "$apart"
	kill "$hog"
	wait "$hog" 2>/dev/null
	t "SCHED_FIFO: right, clean, lossless" good fifo
	sed 's/.*/[&]/; s/ /,/' "$tmp/bursts" >"$tmp/bursts.json"
	# Bursts while steps of the proxy were under way, and what it did then.
	q fifo "$(steps_of 2) + ((events | of(\"ProxyStep\") | map(select(.rank == 2))) as \$steps | \$steps[0].start.tid as \$tid
		| timelines[\"\\(\$tid)\"] as \$l | (\$steps | [(map(.start.ts) | min), (map(.stop.ts) | max)]) as \$w
		| [\$bursts[] | select(.[0] > \$w[0] and .[1] < \$w[1])] as \$b
		| {bursts: (\$b | length), in_bursts: (\$b | map(. as \$x | \$l | spent(\"runq\"; \$x[0]; \$x[1])) | add),
			ran: (\$b | map(. as \$x | \$l | spent(\"run\"; \$x[0]; \$x[1])) | add),
			ops: ([events | of(\"ProxyOp\")[] | select(.rank == 2 and .details.channel == 0 and .details.isSend) | .start.ts as \$from | .stop.ts as \$to
				| {us: ([.sched.behind // [] | .[] | select(.comm == \"scope-fifo\").us] | add // 0),
				bursts: ([\$bursts[] | select(.[1] > \$from and .[0] < \$to) | ([.[0], \$from] | max) as \$x | ([.[1], \$to] | min) as \$y
					| \$l | spent(\"runq\"; \$x; \$y)] | add // 0)}] | {us: (map(.us) | add), bursts: (map(.bursts) | add)}),
			waits: ([records(\"slice\")[] | select(.tid == \$tid and .behind.comm == \"scope-fifo\" and .ts >= \$w[0] and .ts < \$w[1])] | {n: length, preempted: (map(select(.preempted)) | length)})}) | tojson" \
		--slurpfile bursts "$tmp/bursts.json" >"$tmp/facts"
	is "SCHED_FIFO: most of the waiting is behind it" "$(fact 'behind[0].name')" scope-fifo
	t "SCHED_FIFO: it preempts" eval 'above "$(fact preemptions)" 20 && above "$(ratio waits.preempted waits.n)" 0.5'
	t "SCHED_FIFO: the proxy does not run while it does" eval 'above "$(fact bursts)" 20 && below "$(ratio ran in_bursts)" 0.05'
	t "SCHED_FIFO: waits behind it are its bursts, within 20%" between "$(ratio ops.us ops.bursts)" 0.8 1.2
else
	skip "SCHED_FIFO" "this cgroup gets no real-time"
fi

# ---- (c) A quota of the CPU

freezer=
trap '[ -z "$freezer" ] || freezer_set 0; cleanup; freezer_end; [ -d "$cgroup" ] && rmdir "$cgroup"' EXIT
# throttled_us [FACTOR]: as the kernel accounts for it; v1 has ns.
throttled_us() {
	awk -v by="${1:-1}" '$1 == "throttled_usec" { print by * $2 } $1 == "throttled_time" { print by * $2 / 1e3 }' "$cgroup/cpu.stat"
}

if cgroup_new; then
	# Rank 2 alone is in it, with all of its threads on one CPU: so that time is counted for one.
	cat >"$tmp/bin/quota" <<-END
		#!/bin/sh
		taskset -c $one $job --ranks 3 --rank-list 0-1 --id-file $tmp/id "\$@" >$tmp/quota.rest &
		echo 0 >$cgroup/cgroup.procs
		taskset -c $two $job --ranks 3 --rank-list 2 --id-file $tmp/id "\$@"
		wait
	END
	chmod +x "$tmp/bin/quota"
	record quota -- "$tmp/bin/quota" --bytes 256K --iters 40 --no-check --json --fault "slow-progress:rank=2:us=1000:busy=1,$polite"
	throttled=$(throttled_us) least=$(throttled_us 0.8) most=$(throttled_us 1.2)
	until_true 5 rmdir "$cgroup"
	cgroup=
	t "quota: clean, lossless" eval 'same "$rc" 0 && clean quota && lossless quota'
	facts quota '(events | of("Coll") | map(select(.rank == 2))) as $colls | ($colls[0].start.pid) as $pid | {
		proxy: ([thread_ends[] | select(.role == "proxy") | .throttled] | max),
		coll: ($colls | map(.sched.proxy.throttled) | add), runq: ($colls | map(.sched.proxy.runq) | add),
		others: ([events[] | select(.rank != 2) | .sched.throttled // 0] | add),
		node: ([records("node")[] | .throttled.time // 0] | add)}'
	t "quota: throttled is the kernel's, within 20%, of the thread" between "$(fact proxy)" "$least" "$most"
	t "quota: and of its operations" between "$(fact coll)" "$least" "$most"
	t "quota: it was used up" above "$throttled" 100000
	t "quota: no more than the waiting" below "$(ratio coll runq)" 1
	is "quota: others are not throttled" "$(fact others)" 0
	t "quota: the node's record has it, up to its last second" between "$(fact node)" 1 "$most"
else
	skip "quota" "no cgroup with the cpu controller can be made here"
fi

# ---- (d) Asleep in a system call

on "$one" record asleep -- "$job" --ranks 4 --bytes 128K --iters 6 --no-check --json \
	--fault slow-progress:rank=0:us=3000,slow-progress:rank=1:us=3000:poll=1,slow-progress:rank=2:us=3000:futex=1,slow-progress:rank=3:us=3000:vfork=1
t "asleep: right, clean, lossless" good asleep
calls=(nanosleep poll futex '(vfork|clone)')
for rank in 0 1 2 3; do
	call=${calls[rank]}
	facts asleep "$(steps_of $rank) + {by_name: records(\"header\")[0].features.blockedIn}"
	if [ "$(fact by_name)" = false ]; then
		is "asleep in $call, which this kernel does not tell" "$(fact 'blockedIn[0].name')" other
		continue
	fi
	t "asleep in $call: named so" grep -qE "^p?(clock_)?$call\$" <<<"$(fact 'blockedIn[0].name')"
	t "asleep in $call: nearly all of the time that it sleeps" above "$(ratio 'blockedIn[0].us' blocked)" 0.9
	t "asleep in $call: which is much" above "$(ratio blocked duration)" 0.3
done

# ---- (e) Pages that are on disk only

if [ -w /dev/fuse ]; then
	slow_disk 1 2
	export STANDIN_COLD_FILE=$tmp/disk/cold
fi
record_bg pages --sched=slices
on "$one" job_bg pages --ranks 3 --bytes 128K --iters 20 --no-check --linger-ms 60000 \
	--fault cold-file:rank=1:read=1,cold-file:rank=2
ranks_of 3
until_true 20 eval '"$sched_proc" still "${ranks[@]}" >"$tmp/still" && jq -se "any(.[]; .switches > 100)" "$tmp/still" >/dev/null'
stop_recorder INT
kill_job
t "pages: clean, lossless" eval 'clean pages && lossless pages'
q pages "$(steps_of 2) + {io: $(steps_of 1)} + ((events | of(\"ProxyStep\") | map(select(.rank == 2))[0].start.tid) as \$tid | {
	majflt: (\$still | map(select(.tid == \$tid).majflt)[0]),
	faults: ([records(\"slice\")[] | select(.tid == \$tid and .why == \"pagefault\")] | length)}) | tojson" --slurpfile still "$tmp/still" >"$tmp/facts"
if [ "$(q pages 'records("header")[0].features.blockedIn')" = false ]; then
	skip "page faults" "this kernel does not tell in what a thread sleeps"
elif ! [ -w /dev/fuse ]; then
	skip "page faults" "no /dev/fuse: a fast disk has a page before anybody sleeps for it"
else
	is "page faults: what a thread sleeps in" "$(fact 'blockedIn[0].name')" pagefault
	t "page faults: as often as the kernel counts major ones" between "$(ratio faults majflt)" 0.8 1.2
	is "reads from disk: what a thread sleeps in" "$(fact 'io.blockedIn[0].name')" io
fi

# ---- (f) Stopped

record_bg stopped --sched=slices
job_bg stopped --ranks 3 --bytes 256K --iters 100000 --no-check --fault slow-progress:us=200
ranks_of 3
# victim_shows NAME: rank 2's pid.
victim_shows() {
	for victim in "${ranks[@]}"; do
		grep -qs 'ProxyStep.*"rank":2,"start"' "$tmp/$1"/*_pid"$victim".jsonl && return
	done
	return 1
}
until_true 10 victim_shows stopped
"$sched_proc" freeze "$victim" 500 >"$tmp/freeze"
sleep 0.3
kill -STOP "$victim"
"$sched_proc" still "$victim" >"$tmp/still"
stop_recorder INT
kill_job
t "stopped: clean" clean stopped
# A CPU that the host has taken away wakes nobody for a while: 5 ms.
q stopped '$freeze[0] as $f | timelines as $times | (events | of("ProxyStep") | map(select(.rank == 2))) as $steps | $steps[0].start.tid as $tid | {
	stopped: ([records("slice")[] | select(.tid == $tid and .why == "stopped" and .ts < $f.done) | .dur] | add),
	least: ($f.cont - $f.stopped), most: ($f.done - $f.sent + 5000),
	ran: ($times["\($tid)"] | spent("run"; $f.stopped; $f.cont)),
	colls: ([events | of("Coll")[] | select(.rank == 2 and .start.ts < $f.stopped and .stop and .start.ts + .exec.duration > $f.cont)
		| .sched.proxy.blockedIn[0] | .why, .us >= $f.cont - $f.stopped] | unique),
	unfinished: ([events | of("ProxyOp", "ProxyStep")[] | select(.rank == 2 and .unfinished) | .sched | [.state, .why]] | unique)} | tojson' \
	--slurpfile freeze "$tmp/freeze" >"$tmp/facts"
t "stopped for 500 ms: for as long as it was" between "$(fact stopped)" "$(fact least)" "$(fact most)"
is "stopped for 500 ms: not on a CPU" "$(fact ran)" 0
is "stopped for 500 ms: the operation says so" "$(fact colls)" '[true,"stopped"]'
is "stopped when the recording ends: what is under way says so" "$(fact unfinished)" '[["blocked","stopped"]]'

# ---- (g) Frozen with its cgroup

# As a container is that is paused. Not amid a sleep, all of which v1 makes that.
frozen() {
	local least=0 most=0 a b victim

	record_bg "$1" --sched=slices
	job_bg "$1" --ranks 3 --bytes 256K --iters 100000 --no-check --fault slow-progress:us=200:busy=1
	ranks_of 3
	until_true 10 victim_shows "$1"
	for _ in 1 2 3; do # one may be between two operations
		read -r a b <<<"$(freezer_put "$victim")"
		least=$((least + a)) most=$((most + b + 5000))
		sleep 0.3
	done
	stop_recorder INT
	kill_job
	t "$1 for 500 ms, three times: clean" clean "$1"
	q "$1" '(events | of("ProxyStep") | map(select(.rank == 2))[0].start.tid) as $tid | {
		frozen: ([records("slice")[] | select(.tid == $tid and .why == "frozen") | .dur] | add),
		stopped: ([records("slice")[] | select(.why == "stopped")] | length),
		colls: ([events | of("Coll")[] | select(.rank == 2) | .sched.proxy.blockedIn[0] // {} | select(.us > $least / 4) | .why] | unique)} | tojson' \
		--argjson least "$least" >"$tmp/facts"
	t "$1 for 500 ms, three times: for as long as it was" between "$(fact frozen)" "$least" "$most"
	is "$1 for 500 ms, three times: nothing is stopped" "$(fact stopped)" 0
	is "$1 for 500 ms, three times: an operation says so" "$(fact colls)" '["frozen"]'
}
for kind in cgroup2 cgroup; do
	if freezer_new $kind; then
		frozen frozen-$kind
		freezer_end
	else
		skip "frozen-$kind" "no cgroup that can be frozen can be made here"
	fi
done

# ---- (h) Packets for others, handled on its CPU

net_rx() {
	awk -v col=$((two + 2)) '$1 == "NET_RX:" { print $col }' /proc/softirqs
}
softirq_job() {
	on "$one" record "$1" -- "$job" --ranks 3 --bytes 256K --iters 6 --no-check --json --fault "$apart"
	facts "$1" "$(steps_of 2)"
}
softirq_job calm
calm=$(ratio irq onCpu)
flood &
flooder=$!
sleep 0.5
before=$(net_rx)
softirq_job packets
after=$(net_rx)
if ! kill "$flooder" 2>/dev/null; then
	skip "soft interrupts" "packets cannot be steered here (RPS), or there is no nft"
else
	wait "$flooder" 2>/dev/null
	t "soft interrupts: right, clean, lossless" good packets
	t "soft interrupts: NET_RX on that CPU" above $((after - before)) 200
	t "soft interrupts: on top of it for much of its time" above "$(ratio irq onCpu)" 0.1
	t "soft interrupts: more than without" above "$(ratio irq onCpu)" "$calm"
fi

# ---- (i) Nothing

# Each proxy on a CPU of its own, and little to do.
quiet_job() {
	local stolen

	rm -rf "$tmp/clean" "$tmp/clean.err" # or record_bg sees that the last one was recording
	stolen=$("$sched_proc" still $$ | jq -s '.[0].stolen // 0')
	record_bg clean
	on "$one" job_bg clean --ranks 2 --bytes 512K --iters 30 --no-check --linger-ms 60000 \
		--fault slow-progress:us=500,pin-progress:rank=0:cpu="$one",pin-progress:rank=1:cpu="$two"
	ranks_of 2
	until_true 20 eval '"$sched_proc" still "${ranks[@]}" >"$tmp/still" && jq -se "any(.[]; .switches > 100)" "$tmp/still" >/dev/null'
	stop_recorder INT
	kill_job
	q clean '(events | of("ProxyStep")) as $steps | (INDEX($still[]; .tid)) as $still | ($steps | map(.duration) | add) as $all | {
		share: (($steps | map(.sched.runq) | add) / $all), blamed: (($steps | map(.sched.behind // [] | .[].us) | add // 0) / $all),
		threads: [thread_ends[] | select(.role == "proxy") | {runq, onCpu, unknown: (.unknown // 0)} + ($still["\(.tid)"] | {run, delay, switches, stolen: (.stolen - $stolen)})],
		time: ([$steps | group_by(.start.tid)[] | (map(.stop.ts) | max) - (map(.start.ts) | min)] | add)} | tojson' \
		--slurpfile still "$tmp/still" --argjson stolen "$stolen" >"$tmp/facts"
	idle=$(jq '(.threads | map(.delay) | add) / .time' "$tmp/facts")
}
for _ in 1 2 3; do # others run here too
	quiet_job
	below "$idle" 0.01 >/dev/null && break
done
t "nothing: clean, lossless" eval 'clean clean && lossless clean'
t "nothing: running and waiting are the kernel's" eval 'fact threads && fact threads |
	jq -se ".[0] | length == 2 and all(.[]; (.runq + .onCpu - .delay - .run | fabs) <= 0.01 * (.delay + .run) + 10 * .switches + .unknown + .stolen)" >/dev/null'
# On idle CPUs; on others, by as much more as the kernel says that it waited: steps lie over one another, and a wait
# that several of them share counts for each.
limit=$(jq -n "[0.02, 2.5 * $idle + 0.01] | max")
t "nothing: next to no waiting" below "$(fact share)" "$limit"
t "nothing: next to nobody to blame" below "$(fact blamed)" "$limit"

finish
