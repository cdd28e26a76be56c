#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `make demo`, but short: it records, checks and explains; replaces what it made itself, and nothing else;
# under sudo the trace is the user's, and a checkout that this user cannot read does not stop it.
#
# Usage: demo_test.sh [BUILD DIR]
. "$(dirname "$0")/../lib.sh"
build=$(realpath "${1:-$top/build}")
unset SUDO_UID SUDO_GID SUDO_USER
export DEMO_ITERS=12
[ "$(id -u)" = 0 ] || skip_all "takes root"
umask 022 # another user's demo is in there, too
TMPDIR=/tmp own_tmp

# d NAME CONDITION...: a case; what the demo said is shown where the condition does not hold.
d()
{
	t "$1" so "${@:2}"
}

so()
{
	"$@" && return
	echo "not so: $*"
	cat "$tmp/said"
	return 1
}

demo()
{
	"$top/tests/e2e/demo.sh" "$build" "$1" >"$tmp/said" 2>&1
	status=$?
}

said()
{
	grep -qE "$1" "$tmp/said"
}

traces()
{
	find "$1" -name 'trace_*.jsonl' | wc -l
}

chmod 755 "$tmp"
# another job on the machine, with the same plugin: what is told is the demo's own all the same
NCCL_PROFILER_PLUGIN=$build/libnccl-profiler-ncclscope.so NCCL_PROFILE_EVENT_MASK=0x7fff \
	"$build/standin/scope-job" --ranks 2 --bytes 64K --iters 1000000 --sleep-us 2000 --no-check >"$tmp/other.out" 2>&1 &
other=$!
trap 'kill "$other" 2>/dev/null; rm -rf "$tmp"' EXIT
# other_has_it: both of its processes, within 10 s
other_has_it()
{
	local try
	for ((try = 0; try < 100; try++)); do
		[ "$(pgrep -P "$other" | sed 's,.*,/proc/&/maps,' | xargs -r grep -l libnccl-profiler-ncclscope 2>/dev/null | wc -l)" = 2 ] && return
		sleep 0.1
	done
	return 1
}
: >"$tmp/said"
d "another-job" other_has_it
demo "$tmp/demo"
kill "$other"
wait "$other" 2>/dev/null
d "runs" [ $status = 0 ]
d "operations" said '^  ncclProfileCollApi +48$'
d "slowest" said ' AllReduce +(0|9) '
d "loss" said '^Loss: 0$'
d "check" said ' 0 errors, 0 warnings$'
d "timeline" [ "$(head -c 15 "$tmp/demo/timeline.html")" = "<!DOCTYPE html>" ]
d "nobody complains" eval '! said "(warning|error): "'
d "four-files" [ "$(traces "$tmp/demo")" = 4 ]

# what it says to run next, run: half of the 100 ms is enough, the others may come late on their own as well
sed -n '/^  cat /,/^$/p' "$tmp/said" | sed "s,cat [^ ]*,cat $tmp/demo/trace_*.jsonl," >"$tmp/next"
sh "$tmp/next" >"$tmp/late" 2>&1
d "next" [ "$(jq 'select(.seq == 9 and .rank == 2).late >= 50000' "$tmp/late")" = true ]
# beside a job that ran an hour later, and numbers its operations from 0 as well
mkdir "$tmp/two"
cp "$tmp"/demo/trace_*.jsonl "$tmp/two/"
for file in "$tmp"/demo/trace_*.jsonl; do
	jq -c 'select(.type == "ncclProfileColl") | .commHash = "0x1" | .start.ts += 3600e6' "$file" >"$tmp/two/trace_1_${file##*_}"
done
sed "s,$tmp/demo/,$tmp/two/," "$tmp/next" | sh >"$tmp/late" 2>&1
d "next of two jobs" [ "$(jq -s 'length == 5 and all(.late < 10e6)' "$tmp/late")" = true ]
find "$tmp/demo" -name 'trace_*' >"$tmp/before"
demo "$tmp/demo"
d "again" [ $status = 0 ]
d "replaces" [ "$(traces "$tmp/demo")" = 4 ]
d "removes" [ -z "$(xargs ls 2>/dev/null <"$tmp/before")" ]

touch "$tmp/demo/precious"
demo "$tmp/demo"
d "keeps" [ $status = 1 -a -e "$tmp/demo/precious" ]
mkdir "$tmp/other"
touch "$tmp/other/trace_1_pid1.jsonl"
demo "$tmp/other"
d "refuses" [ $status = 1 -a -e "$tmp/other/trace_1_pid1.jsonl" ]
ln -s other "$tmp/link"
demo "$tmp/link"
d "refuses-link" [ $status = 1 -a -L "$tmp/link" ]

export SUDO_UID=65534 SUDO_GID=65534 SUDO_USER=nobody
mkdir -m 700 "$tmp/private"
cp -r "$build/ncclscope" "$build/libnccl-profiler-ncclscope.so" "$build/standin" "$tmp/private/"
build=$tmp/private
demo "$tmp/sudo"
d "private" [ $status = 0 ]
d "private-said" said '^User nobody cannot read .*: the job runs as root$'
chmod 755 "$tmp/private"
demo "$tmp/user"
d "user" [ $status = 0 ]
d "user-owns" [ "$(find "$tmp/user" -user 65534 | wc -l)" = 7 ]
finish
