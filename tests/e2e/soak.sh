#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A long recording at a high rate: for SOAK_SECONDS (300), 200,000 records a second with all kernel context, and a
# job with a network beside them. Nothing is lost, and the recorder's memory stays flat.
seconds=${SOAK_SECONDS:-300}
E2E_TIMEOUT=$((seconds * 2 + 120))
. "$(dirname "$0")/lib.sh"

guest=$tmp/bin/guest
cp "$build/e2e/guest" "$guest"
RATE=200000 # records a second, by 2 processes of 4 threads; an operation makes 16
ops=$((RATE / 16 / 2 / 4 * seconds)) # of a thread
mkdir "$tmp/soak"
mount -t tmpfs -o size=4g none "$tmp/soak"

# The traces are gigabytes: what was written is taken away again, but for the first and the last of it.
empty() {
	local file size
	while sleep 1; do
		for file in "$tmp/soak"/*.jsonl; do
			size=$(stat -c %s "$file") || continue
			[ "$size" -le 33554432 ] || fallocate --punch-hole --offset 65536 --length $((size - 16777216)) "$file"
		done
	done 2>/dev/null
}

# In kB: what it has allocated and not freed ("heap"), and what the kernel has given it for that (RssAnon; VmRSS has the ring
# as well, which is mapped, always whole).
sample() {
	touch "$tmp/heap" "$tmp/memory" "$tmp/load"
	while sleep 1; do
		"$scope" status --json | jq '.recorders[0].self.heap / 1024 | floor' >>"$tmp/heap"
		awk '$1 == "RssAnon:" { print $2 }' "/proc/$recorder/status" >>"$tmp/memory"
		cut -d. -f1 /proc/loadavg >>"$tmp/load"
	done 2>"$tmp/sample-err"
}

record_bg soak --strict --mask all --ring 256M # seconds of it: others may keep the recorder from its CPU
empty &
emptying=$!
sample &
sampling=$!
# A job with a network, besides. Not its ProxyCtrl, which a progress thread that finds nothing to do makes without end.
NCCL_PROFILE_EVENT_MASK=0x10 job_bg net --ranks 2 --bytes 1M --period-us 100000 --iters $((seconds * 10)) --timeout $((seconds * 2))
began=$(date +%s%3N)
"$guest" "$plugin" 2 paced 4 $ops $((RATE / 16 / 2))
is "the job ends" $? 0
took=$(($(date +%s%3N) - began))
kill $sampling
wait "$starter"
is "the job beside it ends" "$? $(said net .ok)" "0 true"
finished() {
	[ "$(tail -qn 1 "$tmp/soak"/*.jsonl | grep -c '"recordType":"footer"')" = 4 ]
}
until_true 20 finished
kill $emptying
stop_recorder

footers() {
	tail -qn 1 "$tmp/soak"/*.jsonl | jq "$@"
}
rate=$((ops * 4 * 2 * 16 * 1000 / took))
load=$(sort -n "$tmp/load" | tail -n 1)
echo "# $((ops * 4 * 2 * 16)) records in $took ms: $rate a second, load average up to $load"
echo "# recorder: $(footers -s 'map(.self.cpu) | max / 1e6 | floor') s of CPU time"
grep '^Loss' "$tmp/soak.err" | sed 's/^/# /'

# expect NAME COMMAND...: a case; but where others have kept the machine busy, a failure says nothing of us.
expect() {
	if [ "$load" -gt $((4 * $(nproc))) ] && ! "${@:2}" >/dev/null; then
		skip "$1" "others kept the machine busy, load average $load"
	else
		t "$@"
	fi
}

expect "about $RATE records a second" [ $rate -ge $((RATE * 9 / 10)) ]
complete() {
	same "$(footers -c 'select(.counts.event > '$((ops * 10))') | [.counts.event, .counts.state, .lost]' | sort | uniq -c | tr -s ' ')" \
		" 2 [$((ops * 4 * 5 + 2)),$((ops * 4 * 6)),{}]"
}
expect "every trace is complete" complete
is "exit status under --strict" "$rc" "$(footers -s 'if all(.[]; .lost == {}) then 0 else 5 end')"

# Medians of the second and of the last tenth. Who is kept from its CPU has more at once to do, and to hold, when it comes
# back: that much is noise of the one, and the other has what is kept for later as well, until it is given back.
median() {
	sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] + 0 }'
}
figures() { # NAME: of $tmp/NAME
	n=$(wc -l <"$tmp/$1")
	early=$(sed -n "$((n / 10 + 1)),$((n / 5))p" "$tmp/$1" | median)
	late=$(tail -n $((n / 10 + 1)) "$tmp/$1" | median)
	echo "# $1: $early kB in the second tenth, $late kB in the last, at most $(sort -n "$tmp/$1" | tail -n 1) kB"
}
# There is one for every four seconds, however busy the machine, and a recorder takes more than a MiB.
are_figures() {
	[ "$n" -ge $((seconds / 4)) ] && [ "$early" -gt 1024 ] && return
	echo "$n samples in $seconds s, $early kB"
	tail -n 3 "$tmp/sample-err"
	return 1
}
figures heap
t "what is allocated is known" are_figures
expect "what is allocated stays the same" [ "$late" -le $((early * 110 / 100 + 1024)) ]
figures memory
t "memory is known" are_figures
expect "memory is given back" [ "$late" -le $((early * 140 / 100)) ]

finish
