# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Shared by tests that are scripts, which source it, from wherever they run: where the tree is, and results in the protocol of tests/run.sh.
# A script has $tmp before its first case, a place of its own, and may have another $self.
set -u
export LC_ALL=C PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # su leaves these out
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
self=$(basename "$0" .sh)
failed=0

# own_tmp: $tmp, which goes when the script ends.
own_tmp() {
	tmp=$(mktemp -d) || exit 1
	trap 'rm -rf "$tmp"' EXIT
}

# skip_all WHY: the script ends here, skipped as a whole.
skip_all() {
	echo "SKIP: $(basename "$0"): $1"
	exit 77
}

# needs TOOL...
needs() {
	local need
	for need; do
		command -v "$need" >/dev/null || skip_all "needs $need"
	done
}

# a_bpftool: one that runs, if any. Ubuntu's in /usr/sbin wants the one of the running kernel; packaging/deps.sh looks in the same places.
a_bpftool() {
	local b
	for b in ${BPFTOOL:-} /usr/lib/linux-tools/*/bpftool /usr/lib/linux-tools-*/bpftool bpftool; do
		"$b" version >/dev/null 2>&1 || continue
		echo "$b"
		return
	done
}

# own_build_id FILE: one that nobody else has. A recorder takes every process that has the plugin, which it knows by that: so no test records the jobs of
# another that runs beside it. (Where there is no readelf, as in the guests of tests/vm, nothing does.)
own_build_id() {
	local at
	at=$(readelf -SW "$1" 2>/dev/null | sed -n 's/.*\.note\.gnu\.build-id *NOTE *[0-9a-f]* *\([0-9a-f]*\).*/\1/p')
	[ -z "$at" ] || dd if=/dev/urandom of="$1" bs=1 seek=$((0x$at + 16)) count=20 conv=notrunc status=none
}

# skip NAME WHY: a case.
skip() {
	echo "skip $self: $1: $2"
}

# as_comment: the beginning of standard input, below a case. cut ends a last line that has no end: the next case must not be behind it.
as_comment() {
	head -c 4000 | head -n 30 | cut -c1-1000 | sed 's/^/# /'
}

# t NAME COMMAND...: a case. What it prints is shown when it fails.
t() {
	local name=$1
	shift
	if "$@" >"$tmp/say" 2>&1; then
		echo "ok $self: $name"
	else
		echo "not ok $self: $name"
		as_comment <"$tmp/say"
		failed=1
	fi
}

# verdict NAME COMPLAINTS: a case, which has its own full name; ok if there are none.
verdict() {
	if [ -z "$2" ]; then
		echo "ok $1"
	else
		echo "not ok $1"
		as_comment <<<"$2"
		failed=1
	fi
}

# same GOT WANT [WHAT]
same() {
	[ "$1" = "$2" ] && return 0
	echo "${3:+$3: }got '$1', want '$2'"
	return 1
}

# is NAME GOT WANT: a case that two values are the same.
is() {
	t "$1" same "$2" "$3"
}

finish() {
	[ $failed = 0 ]
	exit
}
