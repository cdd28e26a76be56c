#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What `sudo make demo` runs: a real job of four processes, of which one comes late to every tenth
# AllReduce, under `ncclscope record`; then says what to look at. No GPU, no NCCL: tests/standin.
#
# Usage: demo.sh [BUILD DIR [OUTPUT DIR]]
set -euo pipefail
# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

build=$(realpath "${1:-$top/build}")
out=$(realpath -ms "${2:-$top/ncclscope-demo}")
mark=.made-by-ncclscope-demo
iters=${DEMO_ITERS:-100}
scope=$build/ncclscope
job=$build/standin/scope-job
plugin=$build/libnccl-profiler-ncclscope.so

die()
{
	echo "demo: $*" >&2
	exit 1
}

# Removes what an earlier demo made, file by file, and nothing else.
remove_old()
{
	[ -e "$out" ] || [ -L "$out" ] || return 0
	if [ -L "$out" ] || [ ! -f "$out/$mark" ]; then
		die "'$out' is there and was not made by a demo: move it away"
	fi
	rm -f -- "$out"/trace_*.jsonl "$out/timeline.html" "$out/$mark"
	rmdir -- "$out" || die "'$out' holds more than an earlier demo's traces: move it away"
}

# Under sudo the job runs as the user who asked, like any job under `record`. That user may be unable to
# read a checkout below /root, or one built under a strict umask: then it runs as root.
choose_user()
{
	[ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ] || return 0
	# shellcheck disable=SC2016 # the inner shell expands them
	if setpriv --reuid "$SUDO_UID" --regid "${SUDO_GID:-$SUDO_UID}" --clear-groups \
		sh -c 'test -x "$1" && test -r "$2"' sh "$job" "$plugin" 2>/dev/null; then
		return 0
	fi
	echo "User ${SUDO_USER:-$SUDO_UID} cannot read '$build': the job runs as root"
	unset SUDO_UID SUDO_GID SUDO_USER
}

for f in "$scope" "$job" "$plugin"; do
	[ -e "$f" ] || die "'$f' is not there: run 'make demo', which builds it"
done
remove_old
mkdir -- "$out"
: >"$out/$mark"
choose_user
if [ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ]; then
	chown -R --no-dereference "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$out"
fi

# Other jobs on this machine, which a recorder takes as well, are not what is to be shown: a plugin that only this job has.
own=$(mktemp -d "$build/demo.XXXXXX")
trap 'rm -rf -- "$own"' EXIT
chmod 755 "$own"
install -m 755 "$plugin" "$own/"
own_build_id "$own/${plugin##*/}" || true
export NCCLSCOPE_PLUGIN=$own/${plugin##*/}

cd "$top"
scope=${scope#"$top"/} job=${job#"$top"/} dir=${out#"$top"/}
run=("$scope" record -o "$dir" -- "$job" --ranks 4 --op allreduce --bytes 32M --iters "$iters"
	--name demo --fault late:rank=2:every=10:ms=100)
echo "A job of 4 processes does $iters AllReduces of 32 MiB; rank 2 comes 100 ms late to every tenth:"
echo
echo "\$ ${run[*]}"
status=0
"${run[@]}" >"$build/demo.json" || status=$?
if [ $status -ne 0 ]; then
	cat "$build/demo.json" >&2
	[ $status -gt 2 ] && echo "'$scope doctor' tells what this machine lacks" >&2
	die "the recording ended with status $status"
fi
echo
echo "\$ $scope check $dir"
"$scope" check "$dir"
echo
echo "\$ $scope view -o $dir/timeline.html $dir"
"$scope" view -o "$dir/timeline.html" "$dir"
cat <<END

Every line of $dir/trace_*.jsonl is one record; docs/trace.md explains them. Which AllReduces
began at different times, by how much (us), and who came last?

  cat $dir/trace_*.jsonl | jq -sc 'map(select(.type == "ncclProfileColl"))
    | group_by([.commHash, .func, .details.seq]) | map(sort_by(.start.ts)
    | {comm: .[0].commHash, seq: .[0].details.seq, late: (.[-1].start.ts - .[0].start.ts | round), rank: .[-1].rank})
    | sort_by(-.late)[:5][]'

Your own job: $scope record -- CMD. More: man man/ncclscope-record.1, README.md.
END
