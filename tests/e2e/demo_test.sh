#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `make demo`, but short: it records, checks and explains; replaces what it made itself, and nothing else;
# under sudo the trace is the user's, and a checkout that this user cannot read does not stop it.
#
# Usage: demo_test.sh [BUILD DIR]
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$top/build}")
failed=0
umask 022 # another user's demo is in there, too
tmp=$(mktemp -d -p /tmp) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset SUDO_UID SUDO_GID SUDO_USER
export LC_ALL=C DEMO_ITERS=12

if [ "$(id -u)" != 0 ]; then
	echo "skip demo: takes root"
	exit 77
fi

# is NAME CONDITION...: what the demo said is shown where the condition does not hold.
is()
{
	local name=$1
	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name ($*)"
		sed 's/^/# /' "$tmp/said"
		failed=1
	fi
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
demo "$tmp/demo"
is demo-runs [ $status = 0 ]
is demo-operations said '^  ncclProfileCollApi +48$'
is demo-slowest said ' AllReduce +(0|9) '
is demo-loss said '^Loss: 0$'
is demo-check said ' 0 errors, 0 warnings$'
is demo-timeline [ "$(head -c 15 "$tmp/demo/timeline.html")" = "<!DOCTYPE html>" ]
is demo-four-files [ "$(traces "$tmp/demo")" = 4 ]

# what it says to run next, run: half of the 100 ms is enough, the others may come late on their own as well
sed -n '/^  cat /,/^$/p' "$tmp/said" | sed "s,cat [^ ]*,cat $tmp/demo/trace_*.jsonl," >"$tmp/next"
sh "$tmp/next" >"$tmp/late" 2>&1
is demo-next [ "$(jq 'select(.seq == 9 and .rank == 2).late >= 50000' "$tmp/late")" = true ]
find "$tmp/demo" -name 'trace_*' >"$tmp/before"
demo "$tmp/demo"
is demo-again [ $status = 0 ]
is demo-replaces [ "$(traces "$tmp/demo")" = 4 ]
is demo-removes [ -z "$(xargs ls 2>/dev/null <"$tmp/before")" ]

touch "$tmp/demo/precious"
demo "$tmp/demo"
is demo-keeps [ $status = 1 -a -e "$tmp/demo/precious" ]
mkdir "$tmp/other"
touch "$tmp/other/trace_1_pid1.jsonl"
demo "$tmp/other"
is demo-refuses [ $status = 1 -a -e "$tmp/other/trace_1_pid1.jsonl" ]
ln -s other "$tmp/link"
demo "$tmp/link"
is demo-refuses-link [ $status = 1 -a -L "$tmp/link" ]

export SUDO_UID=65534 SUDO_GID=65534 SUDO_USER=nobody
mkdir -m 700 "$tmp/private"
cp -r "$build/ncclscope" "$build/libnccl-profiler-ncclscope.so" "$build/standin" "$tmp/private/"
build=$tmp/private
demo "$tmp/sudo"
is demo-private [ $status = 0 ]
is demo-private-said said '^User nobody cannot read .*: the job runs as root$'
chmod 755 "$tmp/private"
demo "$tmp/user"
is demo-user [ $status = 0 ]
is demo-user-owns [ "$(find "$tmp/user" -user 65534 | wc -l)" = 7 ]
exit $failed
