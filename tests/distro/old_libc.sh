#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A job in a container whose libc is older than the one that the plugin was built with (plugin/libc_versions.h). The job is
# built there, the recorder is this machine's, and so is the plugin, which the job gets a copy of: old_libc.sh [NAME] (bullseye).
. "$(dirname "$0")/lib.sh"
release=${1:-bullseye}
own_tmp

libc_of() {
	"$@" ldd --version | head -n 1 | grep -oE '[0-9.]+$'
}

build_job() {
	inside "$release" sh -c 'apt-get -q update && apt-get -q -y install --no-install-recommends gcc libc6-dev make' &&
		inside "$release" sh -c 'cd /src && make -s standin'
}

t "$release: is there" distro "$release"
t "$release: the sources" sources "$release"
t "$release: the job builds" build_job
[ $failed = 0 ] || finish
theirs=$(libc_of inside "$release")
is "$release: has an older libc" "$(printf '%s\n' "$(libc_of)" "$theirs" | sort -uV | head -n 1)" "$theirs"
mkdir -p "$distros/$release/opt"
cp "$build/libnccl-profiler-ncclscope.so" "$distros/$release/opt/"
export -f inside
export release distros
# shellcheck disable=SC2016 # the inner shell's
timeout 60 "$build/ncclscope" record \
	-o "$tmp/trace" --plugin "$distros/$release/opt/libnccl-profiler-ncclscope.so" -- \
	bash -c 'inside "$release" env NCCL_PROFILER_PLUGIN=/opt/libnccl-profiler-ncclscope.so /src/build/standin/scope-job --ranks 2 --bytes 1M --iters 20 --check --json' >"$tmp/out" 2>"$tmp/err"
is "$release: the job runs, nobody complains" "$?$(grep -E 'warning|error' "$tmp/err")" 0
is "$release: a trace for each rank" "$(find "$tmp/trace" -name '*.jsonl' | wc -l)" 2
t "$release: clean" "$build/ncclscope" check "$tmp/trace"
is "$release: all AllReduces" "$(cat "$tmp"/trace/*.jsonl | grep -c '"type":"ncclProfileColl"')" 40
is "$release: steps with what their threads did (see steps_have_states), and their flow" "$(cat "$tmp"/trace/*.jsonl |
	jq -n '[inputs | select(.type == "ncclProfileProxyStep")] | length > 0 and all(.net) and (map(select(.sched | not)) | length * 20) <= length')" true
finish
