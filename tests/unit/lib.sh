# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-2-Clause
# Shared by the tests of programs that read traces, which source it: the program, which their first argument names, a place of their
# own, and results in the runner's protocol.
set -u
export LC_ALL=C
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tool=$(realpath "${1:-$top/build/ncclscope}")
traces=$top/tests/unit/traces
self=$(basename "$0" .sh)
failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# needs TOOL...
needs()
{
	local need
	for need; do
		command -v "$need" >/dev/null || { echo "SKIP: $self.sh: needs $need"; exit 77; }
	done
}

# t NAME COMMAND...: a case. What it prints is shown when it fails.
t()
{
	local name=$1
	shift
	if "$@" >"$tmp/say" 2>&1; then
		echo "ok $self: $name"
	else
		echo "not ok $self: $name"
		head -n 20 "$tmp/say" | cut -c1-300 | sed 's/^/# /'
		failed=1
	fi
}

# same GOT WANT
same()
{
	[ "$1" = "$2" ] || { echo "got '$1', want '$2'"; return 1; }
}
