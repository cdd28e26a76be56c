#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What NVIDIA's NCCL did on a GPU, without one: a capture of two ranks on an H200 (NCCL 2.28.9, an MPS server, TCP on loopback, AllReduces of
# 1 MiB each 5 ms), of which this has the first 0.1 s. The traces made of it are right, and so are the GPU's times in them. It was recorded by
#     ncclscope record --raw FILE -- build/gpu/scope-job --ranks 2 --bytes 1M --iters 1000 --warmup 3 --sleep-us 5000
# and cut; names of its machine are made up. When the format of captures is another one, a new one has to be recorded, on a GPU.
#
# Usage: nccl_capture.sh [NCCLSCOPE]
. "$(dirname "$0")/lib.sh"
needs jq zstd
cd "$tmp" || exit 1

# is NAME FILTER WANT: of all events, as the array `.`, the filter makes that.
is() {
	t "$1" same "$(jq -L "$top/tests/e2e" -src "include \"trace\"; $2" events)" "$3"
}

zstd -q -d "$top/tests/data/nccl-2.28.9-h200.raw.zst" -o capture.raw || exit 1
t "it becomes traces, and nothing is lost" eval '"$tool" convert capture.raw -o out && "$tool" report --json out | jq -e ".losses == {}"'
t "these are clean" "$tool" check out/*.jsonl
cat out/*.jsonl >events || exit 1
is "NCCL" '[records("header")[].ncclVersion] | unique' '["2.28.9"]'
is "operations, and what NCCL made of each that is whole" 'events | (of("ProxyOp") | children_of) as $ops | (of("ProxyStep") | children_of) as $steps | (of("KernelCh") | children_of) as $kernels
	| map(select(.unfinished | not)) | [(of("Coll") | length > 60), (of("Coll") | map(select(.exec.source == "proxy") | [$ops[key], $kernels[key]]) | unique), (of("ProxyOp") | map($steps[key]) | unique)]' '[true,[[4,2]],[4]]'
is "every step has its flow" 'events | of("ProxyStep") | map(select(.unfinished | not)) | all(.net.flow)' true
is "kernels: all in node time, to within 15 us in the middle" 'kernels | [length > 120, all(.details | .gpuStop > .gpuStart), (map(.details.gpuError) | sort | .[length / 2 | floor] < 15)]' '[true,true,true]'
is "kernels: after their launch, and before the host saw them" kernels_in_time true
is "kernels: two processes say the same of one GPU" 'same_gpu_clock > 60' true
exit $failed
