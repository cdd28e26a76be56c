#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs tests and sums up: run.sh [-o LOGDIR] TEST... [--beside TEST...] [--timed TEST...]
#
# A TEST is a command line. It prints a line `ok NAME`, `not ok NAME` or `skip NAME: why` per case (TAP's
# `ok 1 - name` counts too) and exits non-zero if any failed; exit 77 skips it as a whole. A test that
# prints no case counts as one. A line `# at first: WHAT` is of a case that it has tried again by itself, and
# is told of. At the end, what failed, and the line `N passed, N failed, N skipped`.
#
# One that is still running after TEST_SECONDS (900 unless set) is ended, and has failed.
#
# As many run at once as there are CPUs; each has its log, LOGDIR/PATH.log with - for each / (PATH-2.log if that is taken, and so on), and is told
# of when it has ended.
#
# Tests after --timed run one after the other, with nothing beside them: they hold what is recorded against the clock and
# the load of the machine, on which others may run. One of those that fails is run again, twice at most, and only the
# last run counts; what failed before is printed, marked `at first:`, and its log kept as PATH.first.log: a case that
# is there often is wrong.
#
# Tests after --beside wait more than they work, so that as many as there are CPUs run at once, like those before them, but of their own kind
# only. One of those that fails becomes one of the timed.
set -u
declare -A running=() # the log of each process in the background
declare -A test_of=()	# that writes a log

# end_all: these ignore what the terminal sends. Who is told to end is timeout, and that tells its test.
end_all() {
	local pid
	for pid in "${!running[@]}"; do pkill -TERM -P "$pid"; done
	wait
}
trap 'end_all; exit 130' INT # what a test makes of that is no result
logs=${BUILD:-build}/test-logs limit=${TEST_SECONDS:-900}
[ "$1" = -o ] && { logs=$2; shift 2; }
mkdir -p "$logs"
passed=0 failed=0 skipped=0
failures=$logs/failures.log
: >"$failures"

# log_for TEST: $log, which no other one has: a script may be there twice, with other arguments.
log_for() {
	local n=1 path=${1%% *}
	path=${path#"$PWD/"}
	path=${path//\//-}
	log=$logs/$path.log
	while [ -n "${test_of[$log]:-}" ]; do
		n=$((n + 1))
		log=$logs/$path-$n.log
	done
	test_of[$log]=$1
}

# one TEST: $name runs into $log; $rc, and counts as $ok, $bad and $skip.
one() {
	timeout --foreground -k 20 "$limit" sh -c "exec $1" >"$log" 2>&1 </dev/null
	rc=$?
	[ "$rc" -ne 124 ] && [ "$rc" -ne 137 ] || echo "not ok $name: still running after $limit s" >>"$log"
	ok=$(grep -c '^ok ' "$log")
	bad=$(grep -c '^not ok ' "$log")
	skip=$(grep -c '^skip ' "$log")
	if [ "$rc" -eq 77 ]; then
		skip=$((skip + 1))
	elif [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1 # died without saying which case
	elif [ $((ok + bad + skip)) -eq 0 ]; then
		ok=1
	fi
}

show_end() {
	grep '^not ok ' "$1" | sed "s/^/$2/"
	echo "---- end of $1 (exit $rc)"
	tail -n 40 "$1" | sed "s/^/$2/"
	echo "----"
}

# fails_at_first KIND: keeps what the run that failed has to say, as PATH.KIND.log.
fails_at_first() {
	local kept=${log%.log}.$1.log
	mv "$log" "$kept"
	show_end "$kept" 'at first: '
}

# try LOG AGAIN: runs its test, if that fails up to AGAIN times more; `later`: not now. What is to be told of it goes to $log.told, how many to
# $log.counts, `later` if it is to be run then.
try() {
	local log=$1 again=$2 begin=$SECONDS name test=${test_of[$1]}
	local ok bad skip rc
	name=$(basename "${test%% *}")
	one "$test"
	{
		if [ "$again" = later ] && [ "$bad" -gt 0 ]; then
			fails_at_first beside
			echo later >"$log.counts"
			return
		fi
		while [ "$bad" -gt 0 ] && [ $((again--)) -gt 0 ]; do
			fails_at_first first
			one "$test"
		done
		printf '%-40s %4d passed %3d failed %3d skipped %4d s\n' "$name" "$ok" "$bad" "$skip" $((SECONDS - begin))
		grep -E '^(skip |# at first: )' "$log"
		[ "$rc" -eq 77 ] && tail -n 1 "$log"
		if [ "$bad" -gt 0 ]; then
			show_end "$log" ''
			grep '^not ok ' "$log" >>"$failures" || echo "not ok $name: exit $rc" >>"$failures"
		fi
	} >"$log.told"
	echo "$ok $bad $skip" >"$log.counts"
}

timed=() # logs

# told LOG: tells of a test that has ended.
told() {
	local log=$1 ok bad skip
	cat "$log.told"
	read -r ok bad skip <"$log.counts"
	if [ "$ok" = later ]; then
		timed+=("$log")
	else
		passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	fi
	rm "$log.told" "$log.counts"
}

told_next() {
	local pid
	wait -n -p pid
	told "${running[$pid]}"
	unset "running[$pid]"
}

told_all() {
	while [ ${#running[@]} -gt 0 ]; do told_next; done
}

# start TEST AGAIN: in the background.
start() {
	log_for "$1"
	try "$log" "$2" &
	running[$!]=$log
}

again=0
while [ $# -gt 0 ] && [ "$1" != --timed ]; do
	if [ "$1" = --beside ]; then
		told_all
		again=later
	else
		[ ${#running[@]} -lt "$(nproc)" ] || told_next
		start "$1" $again
	fi
	shift
done
told_all

for t in "${@:2}"; do
	log_for "$t"
	timed+=("$log")
done
for log in "${timed[@]}"; do
	try "$log" 2
	told "$log"
done
cat "$failures"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
